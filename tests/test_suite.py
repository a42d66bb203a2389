"""The suite itself: every test asserts something, loops name what fails, and the files that are named for pytest-xdist exist."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import conftest
from cases import spread
from forked_commands import Forked, plain_words

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


def test_long_tests_exist() -> None:
    """Every row of long.csv is a file of tests or a function in it, once."""
    names = [row["tests"].partition("[")[0] for row in conftest.long_tests()]
    known = {file.stem: {f.name for f in _functions(file)} for file in FOLDER.glob("test_*.py")}
    for name in names:
        file, *inside = name.split("::")
        assert file in known
        assert not inside or inside[-1] in known[file]
    assert len(set(names)) == len(names)


LOOPED = '''
import pytest
from cases import for_each

@for_each("a", lambda: [1, 2, 3])
@for_each("b, c", [(1, 2), (3, 3)])
def test_product(a, b, c, tmp_path, monkeypatch):
    (tmp_path / "made").mkdir()  # in a folder of its own
    if a == 2:
        pytest.skip("two is even")
    assert a * b != c, "equal"

@for_each("n", range(100), few=3)
def test_sampled(n, record_property):
    assert n not in (0, 49, 99), "taken"

@pytest.mark.exhaustive
def test_long():
    assert False, "only with --exhaustive"

@for_each("n", [])
def test_of_nothing(n):
    assert True
'''


def _run_looped(folder: Path, *words: str) -> str:
    (folder / "test_looped.py").write_text(LOOPED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-rf", *words, "test_looped.py"], cwd=folder,
        env=os.environ | {"PYTHONPATH": str(FOLDER)}, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_loop_names_every_case_that_fails(tmp_path: Path) -> None:
    out = _run_looped(tmp_path)
    failed = [line for line in out.splitlines() if line.startswith("SUBFAILED")]
    assert [line.partition(" test_looped")[0] for line in failed if "a=" in line] == ["SUBFAILED(a=1, b=3, c=3)"]
    assert [line.partition(")")[0] for line in failed if "n=" in line] == [f"SUBFAILED(n={n}" for n in (0, 49, 99)]
    assert "FAILED test_looped.py::test_of_nothing - AssertionError: there is no case" in out
    assert "    2  two is even" in out
    assert "only with --exhaustive" not in out


def test_cases_are_chosen_by_a_text(tmp_path: Path) -> None:
    out = _run_looped(tmp_path, "--case", "'a': 1", "-k", "product")
    assert out.count("SUBFAILED") == 1
    assert "skipped, and why" not in out


def test_all_cases_and_what_takes_minutes_are_exhaustive(tmp_path: Path) -> None:
    out = _run_looped(tmp_path, "--exhaustive")
    assert "only with --exhaustive" in out
    assert "SUBFAILED(n=49)" in out
    assert "test_product" not in out


def test_a_sample_has_both_ends() -> None:
    assert spread(range(10), 4) == [0, 3, 6, 9]
    assert spread("abc", 5) == ["a", "b", "c"]
    assert spread("abc", 0) == ["a", "b", "c"]
    assert spread("abc", 1) == ["a"]


def test_a_forked_command_is_the_command(tmp_path: Path) -> None:
    """Its words, folder, environment, both streams and exit code; what one command changes the next does not see."""
    forked = Forked()
    environment = {"PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path), "NO_COLOR": "1"}
    try:
        assert forked.run(["models", "list", "--csv"], tmp_path, environment, tmp_path / "out") == 0
        assert (tmp_path / "out").read_text().startswith("name,")
        assert forked.run(["models", "show", "wmpj"], tmp_path, environment, tmp_path / "out") == 2
        assert (tmp_path / "out").read_text().startswith("error: no model 'wmpj'")
        assert forked.run(["scenarios", "run", "mine.toml"], tmp_path, environment, tmp_path / "out") == 2
        assert "mine.toml" in (tmp_path / "out").read_text()
    finally:
        forked.close()


def test_what_needs_a_shell_gets_one() -> None:
    assert plain_words("retrompi pingpong --mode 'n1*3,n2' -m wmpi") == ["pingpong", "--mode", "n1*3,n2", "-m", "wmpi"]
    for text in ("retrompi runs list | tail -1", "retrompi show $L", 'retrompi show "$L"', "retrompi x > y", "retrompi a && b", "make"):
        assert plain_words(text) is None, text
