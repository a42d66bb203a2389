"""The suite itself: every test asserts something, and the files that are named for pytest-xdist exist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import conftest

FOLDER = Path(__file__).parent
ASSERTING = {"raises", "warns", "fail", "refused", "agrees", "assert_index"}
"""What asserts, besides the statement and whatever helper has one."""


def _functions(file: Path) -> Iterator[ast.FunctionDef]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))


def _is_test(file: Path, function: ast.FunctionDef) -> bool:
    return file.name.startswith("test_") and function.name.startswith("test")


def _calls(function: ast.FunctionDef) -> set[str]:
    """Names of what a function calls, and of the fixtures it asks for."""
    called = (n.func for n in ast.walk(function) if isinstance(n, ast.Call))
    names = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in called}
    return names | {a.arg for a in function.args.args}


def _asserts(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Assert) for n in ast.walk(function))


def test_every_test_asserts_something() -> None:
    every = [(file, f) for file in sorted(FOLDER.glob("*.py")) for f in _functions(file)]
    helpers = [(file, f) for file, f in every if not _is_test(file, f)]
    known = ASSERTING | {f.name for _, f in helpers if _asserts(f)}
    while more := {f.name for _, f in helpers if f.name not in known and _calls(f) & known}:
        known |= more
    silent = [f"{file.name}:{f.lineno}: {f.name}" for file, f in every if _is_test(file, f) and not (_asserts(f) or _calls(f) & known)]
    assert silent == []


def test_files_named_for_xdist_exist() -> None:
    for name in (*conftest.APART, *conftest.TOGETHER):
        assert (FOLDER / f"{name}.py").is_file(), name
