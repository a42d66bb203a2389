"""No function of the spine takes more than six parameters: what belongs together is one value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import retrompi

SPINE = ("base", "spec", "traces", "sim", "store", "studies")
MOST = 6


def lists() -> Iterator[tuple[int, str]]:
    """(parameters, where) of every function; ``self`` and ``cls`` are none, ``*args`` and ``**kwargs`` are one each."""
    root = Path(retrompi.__file__).parent
    for folder in SPINE:
        for file in sorted((root / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    a = node.args
                    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
                    own = names[:1] in (["self"], ["cls"])
                    yield len(names) - own + (a.vararg is not None) + (a.kwarg is not None), f"{file.name}:{node.lineno} {node.name}"


def test_no_function_of_the_spine_takes_more_than_six_parameters() -> None:
    found = list(lists())
    assert len(found) > 800  # it does look at them
    assert [where for count, where in found if count > MOST] == []
