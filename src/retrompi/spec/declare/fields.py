"""Declaration classes, whose fields each state unit, default, bounds and meaning once.

`Host`, `Link`, the media and the question of a run are such classes. Everything else is derived from them: TOML keys and ``--set``, the
validation of values, the C++ structs and their readers (`retrompi.spec.compiled.cpp`), the options of commands, the controls of the studio
and the reference pages. A field is one line.

Imports only `retrompi.base`, since the build of the engine runs it before the package is installed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeVar

from retrompi.base import units
from retrompi.base.errors import UsageError, nearest

__all__ = ["ITSELF", "Field", "Follows", "Use", "beside", "choice", "fields_of", "flag", "quantities", "quantity", "rate_of", "rest_of",
           "stating_what_follows", "structure", "texts", "time_of", "to_engine", "used_by", "whole", "word"]


class Use(StrEnum):
    """A kind of work in a simulation that uses a value of the platform; the enum value is its name in messages."""

    ALWAYS = "every run"
    COMPUTE = "amounts of computation in a trace"
    KERNELS = "loops of Rinf1 named in a trace"
    ROOFLINE = "kernels stated by operations and bytes in a trace"
    CARRY = "quanta of which a wait leaves the rest"
    COPIES = "copies in memory"
    SHARED_MEMORY = "processors that share a memory"
    CACHES = "buffers that processors share"
    CALLS = "system calls (sockets, direct copies)"
    TCP = "TCP connections"
    TCP_SEND_BUFFER = "TCP connections whose send buffer the runtime leaves to the system"
    TCP_RECEIVE_BUFFER = "TCP connections whose receive buffer the runtime leaves to the system"
    TCP_LOCAL = "TCP connections within a host"
    TCP_REMOTE = "TCP connections between hosts"
    TCP_LOSS = "TCP connections between hosts when something fails on the way"
    IP = "TCP or UDP between hosts"
    WIRE = "messages between hosts"
    FRAGMENTS = "datagrams and transfers by a card, which are cut into frames"
    BURSTS = "transfers between the memories of two hosts"
    INTERRUPTS = "cards that wake a sleeping process"
    CORES = "queues between pinned or shared cores"
    BYTE_ORDER = "conversion between byte orders"
    SITES = "messages between sites"


@dataclass(frozen=True, slots=True)
class Follows:
    """How a value changes when the user sets the value that it derives from: ``clock`` of the same host, or ``link.mtu``.

    ``how``: ``rate`` (in proportion), ``time`` (in inverse proportion), ``rest`` (the base less ``less``, where it was that before), or
    ``stays`` (a speed of the same machine that does not derive from the base; the answer says that it did not follow).
    """

    base: str
    how: str
    less: float = 0.0

    def text(self, own: str, unit: str, before: float, after: float) -> str | None:
        """The value whose text was ``own`` when the base goes from ``before`` to ``after`` (base units); None if it stays."""
        if before == after or self.how == "stays":
            return None
        if self.how == "rest":
            return units.format_quantity(after - self.less, unit) if units.parse(own, unit) == before - self.less else None
        if before == 0 or after == 0:
            return None
        factor = Fraction(after) / Fraction(before)
        return units.scale_text(own, factor if self.how == "rate" else 1 / factor, unit)


ITSELF: tuple[Follows, ...] = ()
"""A value that derives from no other."""


def rate_of(base: str) -> tuple[Follows, ...]:
    """A rate in proportion to ``base``."""
    return (Follows(base, "rate"),)


def time_of(base: str) -> tuple[Follows, ...]:
    """A time in inverse proportion to ``base``."""
    return (Follows(base, "time"),)


def rest_of(base: str, less: float) -> tuple[Follows, ...]:
    """``base`` less a number in base units."""
    return (Follows(base, "rest", less),)


def beside(*bases: str) -> tuple[Follows, ...]:
    """A speed of the same machine that has a value of its own, whatever these are."""
    return tuple(Follows(base, "stays") for base in bases)


@dataclass(frozen=True, slots=True)
class Field:
    """The declaration of one field.

    ``kind`` is quantity (a number with a unit), whole (a count), flag (0 or 1), choice, word (any text), texts (a list of them) or other
    (not parsed from text).
    ``low`` and ``high`` are inclusive bounds, ``above`` is an exclusive lower bound; `units.WIDEST` bounds every number. ``area`` groups
    fields in tables; ``used_by`` lists the kinds of work that use it; ``plain`` is its value on a host known only by a measured curve.
    ``cpp`` is the C++ type, "" for none. ``scale`` is the kind of a time or rate of a model (`retrompi.spec.declare.param.COSTS`): work and
    os are stated for the reference host, and the engine turns them into time of the host at hand. ``follows``: the values that it derives
    from.

    Of a question: ``key`` is its name for users, in files, studies and the Python interface (default: the field's); ``option`` are its
    names on the command line ("-m --model"), ``metavar`` is what these take, and ``of`` the workload that it belongs to ("" for any).
    """

    name: str
    kind: str
    unit: str
    help: str
    default: Any = MISSING
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    area: str = ""
    used_by: tuple[Use, ...] = (Use.ALWAYS,)
    plain: str = ""
    cpp: str = ""
    scale: str = ""
    follows: tuple[Follows, ...] | None = None
    key: str = ""
    option: str = ""
    metavar: str = ""
    of: str = ""

    @property
    def optional(self) -> bool:
        """Whether it has a default."""
        return self.default is not MISSING

    @property
    def is_quantity(self) -> bool:
        """Whether it is a number, written with a unit unless its unit is 1."""
        return self.kind in ("quantity", "whole", "flag")

    @property
    def bounds(self) -> str:
        """The allowed values in words; "" if only the unit restricts them."""
        if self.kind == "flag":
            return "0 or 1"
        if self.kind == "choice":
            return ", ".join(self.choices)
        said = [f"more than {self.above:g}"] if self.above is not None else []
        low = self.low or 0.0
        if self.kind == "whole":
            said = [f"whole, {low:g} or more"]
        elif low:
            said.append(f"{low:g} or more")
        return ", ".join(said + ([f"{self.high:g} or less"] if self.high is not None else []))

    def parse(self, text: str, where: str) -> Any:
        """The value of ``text`` in the field's unit. Raises UsageError, beginning with ``where``, if it is not allowed."""
        if not self.is_quantity:
            return self.check(text.strip(), where)
        try:
            value = units.parse(text, self.unit)
        except UsageError as error:
            raise UsageError(f"{where}: {error}", code=error.code) from None
        return self.check(value, where, text)

    def check(self, value: Any, where: str, text: str | None = None) -> Any:
        """``value`` if it is allowed, else raises UsageError beginning with ``where``; ``text`` is the value as written by the user."""
        if self.kind == "choice":
            if value not in self.choices:
                raise UsageError(f"{where}: '{value}'{nearest(str(value), self.choices)}", code="unknown-name")
            return value
        if self.kind == "texts" and (isinstance(value, str) or not all(isinstance(item, str) for item in value)):
            raise UsageError(f"{where}: {value!r} is not a list of texts", code="bad-value")
        if not self.is_quantity:
            return value
        if not isinstance(value, bool | int | float):
            raise UsageError(f"{where}: {value!r} is not a number", code="bad-value")
        problem = self._problem(float(value))
        if problem:
            code = "bad-value" if self.kind == "flag" else "out-of-range"
            raise UsageError(f"{where}: '{f'{value:g}' if text is None else text}' {problem}", code=code)
        return value

    def take(self, given: Any, where: str) -> Any:
        """The value that a user gives a question, as text or as it is. Texts are joined by `` + `` or ``none``, a flag is ``true`` or
        ``false``, a whole number stays exact. Raises UsageError, beginning with ``where``, if it is not allowed."""
        if self.kind == "texts" and isinstance(given, str):
            return () if given.strip() in ("", "none") else tuple(item.strip() for item in given.split(" + "))
        if self.kind == "texts":
            return tuple(self.check(given, where))
        if self.kind == "flag":
            words = {"true": True, "false": False}
            if not isinstance(given, bool) and given not in words:
                raise UsageError(f"{where}: '{given}' is not true or false", code="bad-value")
            return words.get(given, given)
        if self.kind == "whole":
            low, high = int(self.low or 0), self.high
            text = str(given)
            if isinstance(given, bool) or not text.isdecimal() or int(text) < low or (high is not None and int(text) > high):
                span = f"from {low} on" if high is None else f"from {low} to {int(high)}"
                raise UsageError(f"{where}: '{given}' is not a whole number {span}", code="out-of-range")
            return int(text)
        return self.parse(given, where) if isinstance(given, str) else self.check(given, where)

    def refusal(self, value: Any) -> str:
        """Why a number is not allowed, as the end of a line; "" if it is."""
        if not isinstance(value, bool | int | float):
            return f"is {value!r} and not a number"
        problem = self._problem(float(value))
        return problem and f"'{value:g}' {problem}"

    def _problem(self, value: float) -> str:
        if self.kind == "flag":
            return "" if value in (0, 1) else "is neither 0 nor 1"
        low = self.low or 0.0
        if not math.isfinite(value):
            return "is not a finite number"
        if value < 0 and units.canonical(self.unit) != "1":
            return "is negative"
        if self.kind == "whole" and (value < low or value != int(value)):
            return f"is not a whole number from {low:g} on"
        if self.above is not None and not value > self.above:
            return "must be more than zero" if self.above == 0 else f"must be more than {self.above:g}"
        if self.low is not None and value < self.low:
            return f"must be {low:g} or more"
        if self.high is not None and value > self.high:
            return f"must be {self.high:g} or less"
        if value == units.NO_LIMIT and self.unit == "B":  # said by a model, not by a user: parameters end before it
            return ""
        return units.beyond(value, self.unit)


def _field(default: Any, *, kw_only: bool = False, compare: bool = True, **facts: Any) -> Any:
    work = facts.get("used_by", Use.ALWAYS)
    facts["used_by"] = (work,) if isinstance(work, Use) else tuple(work)
    made: Any = {"default_factory": default} if callable(default) else {"default": default}
    return dataclasses.field(**made, kw_only=kw_only or MISSING, compare=compare, metadata={"declared": facts})


_CPP = {"s": "Ps", "B": "int64_t", "s/B": "PsPerByte"}
"""Unit -> the engine's type of a quantity; any other is a double."""
_SCALED = {"work": "Work", "os": "Service"}
"""Scale -> the engine's type of a time on the reference host."""


def quantity(
    unit: str,
    help: str,
    *,
    default: Any = MISSING,
    low: float | None = None,
    high: float | None = None,
    **more: Any,
) -> Any:
    """A number in ``unit`` (`units.UNITS`). ``more`` are `Field`'s ``above``, ``area``, ``used_by``, ``plain``, ``cpp``, ``scale``
    and ``follows``."""
    if not units.check_unit(unit):
        raise ValueError(f"no base unit '{unit}'")
    facts: dict[str, Any] = {
        "kind": "quantity",
        "unit": unit,
        "help": help,
        "low": low,
        "high": high,
        "above": None,
        "cpp": _SCALED.get(more.get("scale", ""), _CPP.get(unit, "double")),
    }
    return _field(default, **facts | more)


def whole(help: str, *, default: float = MISSING, low: float = 0, high: float | None = None, **more: Any) -> Any:  # type: ignore[assignment]
    """A whole number, at least ``low``. ``more`` as for `quantity`."""
    facts: dict[str, Any] = {"kind": "whole", "unit": "count", "help": help, "low": low, "high": high, "cpp": "int"}
    return _field(default, **facts | more)


def flag(help: str, *, default: Any = MISSING, **more: Any) -> Any:
    """0 or 1; True and False are accepted as well. ``more`` as for `quantity`."""
    return _field(default, **{"kind": "flag", "unit": "count", "help": help, "cpp": "bool"} | more)


def choice(help: str, choices: Sequence[str], *, enum: str = "", default: str = MISSING, **more: Any) -> Any:  # type: ignore[assignment]
    """One of ``choices``; in C++ an enumeration called ``enum``, or a string if that is empty. ``more`` as for `quantity`."""
    facts: dict[str, Any] = {"kind": "choice", "unit": "choice", "help": help, "choices": tuple(choices), "cpp": enum or "std::string"}
    return _field(default, **facts | more)


def word(help: str, *, default: Any = MISSING, **more: Any) -> Any:
    """Any text; with another ``cpp`` type, a value that is not parsed from one text. ``more`` as for `quantity`.

    A ``default`` that can be called makes the value of a new object.
    """
    kind = "other" if more.get("cpp", "std::string") not in ("", "std::string") else "word"
    return _field(default, **{"kind": kind, "unit": "str", "help": help, "cpp": "std::string"} | more)


def texts(help: str, *, default: Any = (), **more: Any) -> Any:
    """A list of texts. ``more`` as for `quantity`."""
    return _field(default, **{"kind": "texts", "unit": "str", "help": help} | more)


def structure(help: str, *, default: Any = MISSING, **more: Any) -> Any:
    """A value with a form of its own, which no text states. ``more`` as for `quantity`."""
    return _field(default, **{"kind": "other", "unit": "str", "help": help} | more)


_DECLARED: dict[type, Mapping[str, Field]] = {}
_QUANTITIES: dict[type, Mapping[str, Field]] = {}


_C = TypeVar("_C", bound=type)


def stating_what_follows(cls: _C) -> _C:
    """Class decorator: every number says what it derives from (``follows``), so that no new one stays behind unnoticed.

    Raises TypeError for a field that does not.
    """
    for name, f in quantities(cls).items():
        if f.follows is None:
            ways = "ITSELF, rate_of(...), time_of(...), rest_of(...) or beside(...)"
            raise TypeError(f"{cls.__name__}.{name} does not say what it follows: {ways}")
    return cls


def fields_of(cls: type) -> Mapping[str, Field]:
    """Name -> `Field` of every field of a declaration class, in order."""
    if cls not in _DECLARED:
        _DECLARED[cls] = _of(cls)
    return _DECLARED[cls]


def _of(cls: Any) -> Mapping[str, Field]:
    return {f.name: Field(name=f.name, default=f.default, **f.metadata["declared"]) for f in dataclasses.fields(cls)}


def quantities(cls: type) -> Mapping[str, Field]:
    """The fields of `fields_of` that are numbers."""
    if cls not in _QUANTITIES:
        _QUANTITIES[cls] = {name: f for name, f in fields_of(cls).items() if f.is_quantity}
    return _QUANTITIES[cls]


def used_by(cls: type, work: Iterable[Use]) -> list[str]:
    """The names of the fields used by a run with these kinds of ``work``; fields used by every run are always included."""
    there = {Use.ALWAYS, *work}
    return [name for name, f in fields_of(cls).items() if there.intersection(f.used_by)]


def to_engine(value: Any) -> dict[str, Any]:
    """Name -> value of a declaration object for the engine, whose reader `retrompi.spec.compiled.cpp` generates from the same
    declaration."""
    out = {}
    for name, f in fields_of(type(value)).items():
        if f.cpp:
            given = getattr(value, name)
            out[name] = to_engine(given) if dataclasses.is_dataclass(given) else given
    return out
