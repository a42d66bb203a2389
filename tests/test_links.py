"""Links of the README and of the documentation lead somewhere in a checkout, or to what `make docs` generates."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
GENERATED = ("reference/", "notebooks/", "slides/", "schema.md")
"""What the site has beside the files of `docs/`; tests/test_docs_site.py follows the links of the built site itself."""
_LINK = re.compile(r"(?<!`)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def _relative(file: Path) -> list[str]:
    text = re.sub(r"^ *```.*?^ *```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = (found.partition("#")[0] for found in _LINK.findall(text))
    return [t for t in targets if t and "://" not in t and not t.startswith("mailto:")]


def test_every_link_leads_to_a_file_or_to_a_generated_page() -> None:
    lost, seen = [], 0
    docs = [f for f in (ROOT / "docs").rglob("*.md") if not str(f.relative_to(ROOT / "docs")).startswith(GENERATED)]
    for file in (ROOT / "README.md", *docs):
        for target in _relative(file):
            seen += 1
            to = (file.parent / target).resolve()
            generated = to.is_relative_to(ROOT / "docs") and str(to.relative_to(ROOT / "docs")).startswith(GENERATED)
            if not to.exists() and not (generated and file.name != "README.md"):
                lost.append(f"{file.relative_to(ROOT)}: {target}")
    assert lost == []
    assert seen > 200


def test_a_reader_of_a_checkout_is_told_what_is_generated() -> None:
    told = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for name in GENERATED:
        assert f"`{name}`" in told
    assert "`make docs`" in told


_SOURCE = re.compile(r"(?<![\w/.-])(?:[a-z_]+/)+\w+\.(?:cpp|hpp|py)\b")


def test_a_source_that_a_decision_names_is_there() -> None:
    """By the end of its path: ``engine/network/queue_wire.cpp``, ``papers/statements/metrics.py``."""
    there = [str(f) for folder in ("src", "tests", "benchmarks", "packaging", "models", "cli", "labs", "examples")
             for f in (ROOT / folder).rglob("*") if f.suffix in (".cpp", ".hpp", ".py")]  # fmt: skip
    pages = [*(ROOT / "docs" / "decisions").glob("*.md"), ROOT / "docs" / "architecture.md"]
    named = {(page.name, name) for page in pages for name in _SOURCE.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert sorted(n for n in named if not any(f"/{file}".endswith(f"/{n[1]}") for file in there)) == []
