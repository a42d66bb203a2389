"""Arguments of the interface are checked before anything runs: what is wrong with one is a UsageError that names it, never a TypeError."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from retrompi.api.options import Options
from retrompi.base.errors import UsageError, nearest
from retrompi.spec.question import OPTIONS

__all__ = ["check_arguments"]

P = ParamSpec("P")
R = TypeVar("R")

_KINDS: Mapping[str, tuple[type, str]] = {
    "str": (str, "text"), "int": (Integral, "a whole number"), "float": (Real, "a number"), "bool": (bool, "True or False"),
    "Path": (Path, "a path"), "None": (type(None), "None"),
}
_OTHERWISE: Mapping[str, str] = {
    "Size": "int | str", "Progress": "bool | Callable", "Values": "str | float | Sequence[str | float]", "Backend": "str",
    "Method": "str", "ClockName": "str",
}
"""What the names of the interface's own types stand for."""


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which raises UsageError if it is called with an argument that it does not have or of another type than is declared.

    Numbers and arrays of NumPy are numbers and lists, and a text is no list of texts.
    """
    told, signature = function.__name__, inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = sorted(set(kwargs) - set(signature.parameters))
            if unknown:
                raise UsageError(f"{told} has no argument '{unknown[0]}'{nearest(unknown[0], signature.parameters)}",
                                 code="unknown-name") from None
            raise UsageError(f"{told}: {error}; it takes {', '.join(_argument_names(signature))}", code="missing-argument") from None
        bound.arguments = {name: _plain(value) for name, value in bound.arguments.items()}
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                for key, one in value.items() if parameter.annotation == "Unpack[Options]" else ():
                    if key not in _options():
                        raise UsageError(f"no option '{key}'{nearest(key, _options())}", code="unknown-name")
                    _check(told, key, one, _options()[key])
            else:
                for one in value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (value,):
                    _check(told, name, one, parameter.annotation)
        return function(*bound.args, **bound.kwargs)

    return call


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as numbers and lists: what is asked becomes JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {k: _plain(v) for k, v in value.items()} if type(value) is dict else value


def _argument_names(signature: inspect.Signature) -> Iterable[str]:
    return (n for n in signature.parameters if n != "self")


_TYPES = {"texts": "Sequence[str]", "quantity": "str | float", "whole": "int", "flag": "bool", "choice": "str", "word": "str"}
"""Kind of a field of a question -> the type of its argument."""


@cache
def _options() -> Mapping[str, str]:
    """Option of every run -> its declared type."""
    typed = {name: getattr(of, "__forward_arg__", str(of)) for name, of in Options.__annotations__.items()}
    declared = {key: _TYPES[f.kind] for key, f in OPTIONS.items() if not f.of and f.kind in _TYPES and key not in ("model", "platform")}
    return {**declared, **typed}


def _check(function: str, name: str, value: Any, declared: Any) -> None:
    if not isinstance(declared, str):
        return
    kinds = _union(declared)
    if any(_fits(value, kind) for kind in kinds):
        return
    hint = f"; write [{value!r}]" if isinstance(value, str) and any(_name(k) == "Sequence" for k in kinds) else ""
    what = " or ".join(dict.fromkeys(t for k in kinds if (t := _words(k)) != "None"))
    raise UsageError(f"{function}: '{name}' is {what}, not {_short(value)}{hint}", code="wrong-type")


def _short(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:39] + '…'}"


@cache
def _union(declared: str) -> tuple[ast.expr, ...]:
    """The alternatives of a declared type."""

    def parts(node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.BinOp):
            return [*parts(node.left), *parts(node.right)]
        if isinstance(node, ast.Name) and node.id in _OTHERWISE:
            return parts(ast.parse(_OTHERWISE[node.id], mode="eval").body)
        return [node]

    return tuple(parts(ast.parse(declared, mode="eval").body))


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node.value if isinstance(node, ast.Subscript) else node).rpartition(".")[2]


def _items(node: ast.expr) -> list[ast.expr]:
    inside = node.slice if isinstance(node, ast.Subscript) else None
    return [] if inside is None else list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]


def _fits(value: Any, node: ast.expr) -> bool:
    name, inside = _name(node), _items(node)
    if name in _KINDS:
        return isinstance(value, _KINDS[name][0]) and (name in ("bool", "None") or not isinstance(value, bool))
    if name == "Literal":
        return isinstance(value, str)  # which of them is said, with the nearest, where it is used
    if name == "Sequence":  # also an array; what is no longer there once it is read is not looked into
        listed = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        return listed and (not isinstance(value, Collection) or all(_any_fits(one, inside[:1]) for one in value))
    if name == "Mapping":
        return isinstance(value, Mapping) and all(_any_fits(k, inside[:1]) and _any_fits(v, inside[1:]) for k, v in value.items())
    if name == "Callable":
        return callable(value)
    return any(c.__name__ == name for c in type(value).__mro__)


def _any_fits(value: Any, declared: Sequence[ast.expr]) -> bool:
    return not declared or any(_fits(value, kind) for kind in _union(ast.unparse(declared[0])))


def _words(node: ast.expr) -> str:
    name, inside = _name(node), _items(node)
    if name in _KINDS:
        return _KINDS[name][1]
    if name == "Literal":
        return " or ".join(ast.unparse(i) for i in inside)
    if name == "Sequence":
        return f"a list of {' or '.join(_plural(k) for k in _union(ast.unparse(inside[0])))}" if inside else "a list"
    if name == "Mapping":
        return "a dictionary"
    return "a function" if name == "Callable" else f"a {name}"


def _plural(node: ast.expr) -> str:
    return {"str": "texts", "int": "whole numbers", "float": "numbers", "Path": "paths"}.get(_name(node), f"{_name(node)} objects")
