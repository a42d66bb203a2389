"""Writes the tables of layers and folders in docs/architecture.md: their order from the contracts of pyproject.toml, the text of each
from the first sentence of its package's docstring.

    python packaging/layers.py        # writes the page; tests/test_structure.py compares
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"


@cache
def _tools() -> dict[str, Any]:
    """The part of pyproject.toml for tools."""
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"])


def contracts() -> list[dict[str, Any]]:
    """The contracts of import-linter in pyproject.toml."""
    return list(_tools()["importlinter"]["contracts"])


def layers() -> dict[str, list[str]]:
    """Package -> the packages in it from the highest to the lowest, of every contract that orders them.

    The folders of ``spec`` are ordered by what each may not import, since the modules beside them are in no layer.
    """
    found: dict[str, list[str]] = {}
    for contract in contracts():
        if contract["type"] == "layers":
            (package,) = contract["containers"]
            found[package] = list(contract["layers"])
    above = {c["source_modules"][0]: c["forbidden_modules"] for c in contracts() if str(c["name"]).startswith("spec.")}
    lowest_first = sorted(above, key=lambda module: -len(above[module]))
    highest = set(above[lowest_first[0]]) - set(above)
    found["retrompi.spec"] = [m.rpartition(".")[2] for m in (*highest, *reversed(lowest_first))]
    return found


def contents(module: str) -> str:
    """The first sentence of a package's docstring, without its full stop."""
    places = _tools()["scikit-build"]["wheel"]["packages"]
    folder = ROOT / places.get(module.replace(".", "/"), "src/" + module.replace(".", "/"))
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.split(r"\.(?= |$)", first)[0].replace("``", "`")


def tables() -> dict[str, str]:
    """Name of a table in the page -> its Markdown."""
    found = layers()
    whole = ["| layer | contents |", "|---|---|", *(f"| `{name}` | {contents(f'retrompi.{name}')} |" for name in found["retrompi"])]
    folders = ["| folder | contents |", "|---|---|"]
    for package in (p for p in found if p != "retrompi"):
        folders += [f"| `{package.partition('.')[2]}.{name}` | {contents(f'{package}.{name}')} |" for name in found[package]]
    return {"layers": "\n".join(whole), "folders": "\n".join(folders)}


def written(page: str) -> str:
    """The page's text with its tables made anew, each between ``<!-- NAME -->`` and ``<!-- end of NAME -->``."""
    for name, table in tables().items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        if not begin or not end:
            raise SystemExit(f"{PAGE.name}: no place for the table '{name}'")
        page = f"{before}{begin}{table}\n{end}{after}"
    return page


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
