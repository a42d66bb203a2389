"""Bundles of options: declared as fields of a frozen dataclass, which a command receives as one argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, fields
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

__all__ = ["Option", "debug_option", "instead_of", "option", "options"]

F = TypeVar("F", bound=Callable[..., Any])


def _debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(dict)["debug"] = True


def debug_option(command: F) -> F:
    """``--debug`` after the command works as well as before it; hidden so that help shows it once."""
    return click.option("--debug", is_flag=True, hidden=True, expose_value=False, is_eager=True, callback=_debug)(command)


class Option(click.Option):
    """A Click option with ``aliases``: names that are accepted, for those used to them elsewhere, and not shown."""

    def __init__(self, *args: Any, aliases: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shown = list(self.opts)
        self.opts += [alias for alias in aliases if alias not in self.opts]
        self.aliases = self.opts[len(self.shown) :]

    @contextmanager
    def _as_shown(self) -> Iterator[None]:
        every, self.opts = self.opts, self.shown
        try:
            yield
        finally:
            self.opts = every

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The help's two columns, without the aliases."""
        with self._as_shown():
            return super().get_help_record(ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option's name in an error, without the aliases."""
        with self._as_shown():
            return super().get_error_hint(ctx)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """The value given by the option, or by the positional argument that stands for it (`instead_of`)."""
        word = ctx.meta.get(f"retrompi.instead-of.{self.name}")
        if word is None:
            return super().consume_value(ctx, opts)
        if self.name in opts:
            raise click.UsageError(f"both '{word}' and {self.shown[-1]} are given; give one of them", ctx)
        return word, ParameterSource.COMMANDLINE


class _Unshown(click.Argument):
    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return []


def instead_of(name: str, **about: Any) -> Callable[[F], F]:
    """An optional positional argument that stands for the option of parameter ``name``; help does not show it."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.meta[f"retrompi.instead-of.{name}"] = value

    return click.argument(f"{name}_word", cls=_Unshown, required=False, expose_value=False, is_eager=True, callback=keep, **about)


def option(help: str, *names: str, question: str = "", **about: Any) -> Any:
    """A field of a bundle: ``help``, the option's names (default: the field's), and further arguments of `click.option`.

    The annotation gives the type: a bool is a flag, a tuple may be repeated, a Literal lists the choices, int, float and Path convert.
    ``aliases`` are further names, accepted but not shown. An option of several commands has one meaning (tests/test_cli_options.py):
    its help begins with what it is ("Runtime model"), and what this command does with it follows after a colon. ``question`` is the key of
    the field of a question that it gives.
    """
    return field(metadata={"help": help, "names": names, "about": about, "question": question})


def _option(name: str, kind: Any, declared: Mapping[str, Any]) -> Callable[[F], F]:
    """The Click option of a field."""
    about: dict[str, Any] = {"help": declared["help"], **declared["about"]}
    kinds = [k for k in get_args(kind) if k is not NoneType] if get_origin(kind) in (UnionType, Union) else [kind]
    if kind is bool:
        about.setdefault("is_flag", "flag_value" not in about)
    elif get_origin(kinds[0]) is tuple:
        about.setdefault("multiple", "callback" not in about)  # a callback that splits a list returns the tuple itself
    elif get_origin(kinds[0]) is Literal:
        about.setdefault("type", click.Choice(get_args(kinds[0])))
    elif kinds[0] in (int, float):
        about.setdefault("type", kinds[0])
    elif kinds[0] is Path:
        about.setdefault("type", click.Path(path_type=Path))
    if about.get("default") not in (None, "", False):
        about.setdefault("show_default", True)
    return click.option(*(declared["names"] or (f"--{name.replace('_', '-')}",)), name, cls=Option, **about)


def options(**bundles: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of each bundle as one argument: ``@options(given=ReplayOptions, output=RunOutput)``.

    A bundle is a frozen dataclass whose fields are made by `option`. ``--debug`` is added to every command.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*args: Any, **kwargs: Any) -> Any:
            made = {arg: bundle(**{f.name: kwargs.pop(f.name) for f in fields(bundle)}) for arg, bundle in bundles.items()}
            return function(*args, **kwargs, **made)

        wrapped: Callable[..., Any] = debug_option(command)
        for bundle in reversed(bundles.values()):
            kinds = get_type_hints(bundle)
            for f in reversed(fields(bundle)):
                wrapped = _option(f.name, kinds[f.name], f.metadata)(wrapped)
        return wrapped

    return decorate
