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
             for f in (ROOT / folder).rglob("*") if f.suffix in (".cpp", ".hpp", ".py")]
    pages = [*(ROOT / "docs" / "decisions").glob("*.md"), ROOT / "docs" / "architecture.md"]
    named = {(page.name, name) for page in pages for name in _SOURCE.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert sorted(n for n in named if not any(f"/{file}".endswith(f"/{n[1]}") for file in there)) == []


def test_a_decision_has_its_date() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    entries = [(page.name, entry) for page in pages for entry in page.read_text(encoding="utf-8").split("\n## ")[1:]]
    assert len(entries) > 150
    assert [(name, entry.splitlines()[0]) for name, entry in entries if not re.match(r"[^\n]+\n\n\*2\d{3}-\d\d-\d\d\*\n\n\S", entry)] == []


_WORD = re.compile(r"[A-Za-z_]\w{3,}")
_GONE = {"aio", "compile_model", "hdmr", "inproc", "run_spec", "ruptures", "tg4perfetto"}
"""What an entry names because it was not taken, or is gone."""
_OTHERS = {"Lock_all", "OPEN", "SimObject", "hugetlb", "make_tuple", "DRETROMPI_UNITY", "contract", "X_of"}
"""Words of other projects and languages."""


def test_a_name_of_the_code_in_a_decision_is_one_of_the_code() -> None:
    """Functions, classes, keys and options between backticks: each word of them stands somewhere in the sources."""
    suffixes = (".c", ".cpp", ".h", ".hpp", ".js", ".py", ".pyi", ".sh", ".toml", ".txt", ".yml", ".csv")
    folders = ("src", "cli", "models", "platforms", "scenarios", "labs", "validate", "packaging", "benchmarks", "tests", "examples")
    files = [f for folder in folders for f in (ROOT / folder).rglob("*") if f.suffix in suffixes and f != Path(__file__).resolve()]
    files += [ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / "CMakeLists.txt"]
    words = set().union(*(_WORD.findall(f.read_text(encoding="utf-8", errors="replace")) for f in files), (f.stem for f in files))
    unknown = []
    for page in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        for name in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
            unknown += [f"{page.name}: {name}" for word in _WORD.findall(name) if word not in words | _GONE | _OTHERS]
    assert unknown == []
