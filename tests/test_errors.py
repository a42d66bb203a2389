"""Codes of errors: documented, stable across processes, and one line each."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import for_each

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.sim.sampling import NotSampled

ROOT = Path(__file__).parents[1]
KEBAB = re.compile(r"[a-z]+(-[a-z]+)*")


def _codes(file: Path) -> Iterator[str]:
    """Codes at raise sites (``code="..."``) and of classes (``code = "..."``)."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            values = [k.value for k in node.keywords if k.arg == "code"]
        elif isinstance(node, ast.ClassDef):
            pairs = [(t, b.value) for b in node.body if isinstance(b, ast.Assign) for t in b.targets]
            pairs += [(b.target, b.value) for b in node.body if isinstance(b, ast.AnnAssign) and b.value is not None]
            values = [v for t, v in pairs if isinstance(t, ast.Name) and t.id == "code"]
        else:
            continue
        yield from (v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str) and KEBAB.fullmatch(v.value))


def test_every_code_is_documented_and_every_documented_code_is_used() -> None:
    used = {code for folder in ("src/retrompi", "cli", "models", "labs") for file in (ROOT / folder).rglob("*.py") for code in _codes(file)}
    documented = re.findall(r"^\| `([\w-]+)` \| \S", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert sorted(documented) == sorted(used)


@for_each("error", [
    RetrompiError("a"), UsageError("a", code="bad-unit"), InputError("a", "f.toml", 3), InputError("a", "f.toml", None, code="missing-key"),
    NotSampled("aborted", "pool empty"),
])
def test_an_error_crosses_a_pipe_whole(error: RetrompiError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code, again.exit_code) == (type(error), str(error), error.code, error.exit_code)


@pytest.mark.parametrize("text", ["a\nb", "a\r b", "a\n\n  b\n"])
def test_an_error_is_one_line(text: str) -> None:
    assert str(UsageError(text)) == "a b"
