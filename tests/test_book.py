"""The specification as a book: every rule is in a chapter, whole, and its run is simulated alike by engine and specification."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import retrompi.reference
from retrompi.labs.lab import labs
from retrompi.manual import book

FOLDER = Path(str(retrompi.reference.__file__)).parent
BESIDE = {"__init__", "__main__", "compare", "drawing", "programs", "standard", "values"}
"""What compares, decides or draws programs is no rule."""
PAGES = {page.path.rpartition("/")[2].removesuffix(".md"): page for page in book.book_pages()}


def test_every_rule_has_its_chapter() -> None:
    assert {c.file for c in book.chapters()} == {f.stem for f in FOLDER.glob("*.py")} - BESIDE
    assert set(PAGES) == {"index", *(c.file for c in book.chapters())}


@pytest.mark.parametrize("file", [c.file for c in book.chapters()])
def test_a_chapter_has_all_of_its_file(file: str) -> None:
    """Every line of code in order, imports apart, and every docstring; a run whose drawing has something on it."""
    source, page = (FOLDER / f"{file}.py").read_text(encoding="utf-8"), PAGES[file].text
    tree = ast.parse(source)
    told: set[int] = set()
    methods = [n for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body]
    for node in [tree, *tree.body, *methods]:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (said := ast.get_docstring(node)):
            assert said in page
            told |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"):
            told |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    lines, at = [line.strip() for line in page.splitlines()], 0
    for number, line in enumerate(source.splitlines(), 1):
        if number not in told and line.strip():
            assert line.strip() in lines[at:], (number, line)
            at = lines.index(line.strip(), at) + 1
    assert page.count("<rect") > 3
    assert "equal in every call and counter" in page


def test_a_lab_names_the_rules_behind_it() -> None:
    assert {key for c in book.chapters() for key in c.labs} <= {lab.key for lab in labs()}
