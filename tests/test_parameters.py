"""No function of the spine takes more than six parameters: what belongs together is one value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import retrompi

SPINE = ("base", "spec", "traces", "sim", "store", "studies")
MOST = 6
MORE = {"halo2d": 7, "hpl": 9, "lap2d": 10, "sweep3d": 16}
"""A program's parameters are what its user gives by name, as those of `retrompi trace generate`."""


def lists() -> Iterator[tuple[int, str, str]]:
    """(parameters, name, file and line) of every function; ``self`` and ``cls`` are none, ``*args`` and ``**kwargs`` are one each."""
    root = Path(retrompi.__file__).parent
    for folder in SPINE:
        for file in sorted((root / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    a = node.args
                    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
                    own = names[:1] in (["self"], ["cls"])
                    yield len(names) - own + (a.vararg is not None) + (a.kwarg is not None), node.name, f"{file.name}:{node.lineno}"


def test_no_function_of_the_spine_takes_more_than_six_parameters() -> None:
    found = list(lists())
    assert len(found) > 800  # it does look at them
    assert [f"{where} {name}" for count, name, where in found if count > MORE.get(name, MOST)] == []
