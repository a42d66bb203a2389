"""A parameter as a runtime model declares it: default, unit, help, source, and the sourced range to which a fit is limited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.base import units
from retrompi.base.errors import UsageError, nearest
from retrompi.spec.declare.sources import wrong_source

__all__ = ["COSTS", "Param"]

_STRING_UNITS = ("choice", "str")
COSTS: Mapping[str, str] = {
    "work": "work of a processor, which another machine does faster or slower",
    "os": "a service of the operating system, which another machine's system gives faster or slower",
    "time": "a time that is the same on every machine: a timer, a wait that a programmer chose",
    "device": "a time or rate of a network card or link, which every host has that uses it",
}
"""What a time or rate can be, and so what becomes of it on another machine (docs/transfer.md)."""
_TIMED = ("s", "s/B", "B/s")
_OF_A_HOST = ("work", "os")


@dataclass(eq=False)
class Param:
    """One parameter of a runtime, declared as a class attribute of a `RuntimeModel`.

    ``default`` is a text with its unit (``"16 KiB"``), a plain number for units ``1``, ``count`` and
    ``probability``, or one of ``choices`` (unit ``choice``). ``source`` says where
    the number comes from and begins ``paper: doc: code: fit: assumed:``. ``low`` and ``high`` are the sourced range
    to which a fit is limited; a what-if may go as far as `units.WIDEST`. A time or rate says what it is (``cost``, one of `COSTS`); work
    and services of the operating system also say on which host they take so long (``on``: ``PLATFORM:HOST``). Raises ValueError for an
    invalid declaration, so that a bad model fails on import.
    """

    default: Any
    unit: str
    help: str
    source: str = field(kw_only=True)
    low: Any = field(default=None, kw_only=True)
    """Declared as text, converted to a float in the base unit; likewise ``high``."""
    high: Any = field(default=None, kw_only=True)
    choices: Sequence[str] | None = field(default=None, kw_only=True)
    on: str = field(default="", kw_only=True)
    cost: str = field(default="", kw_only=True)
    name: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.default = str(self.default)
        self.choices = tuple(self.choices) if self.choices else None
        declared, self.unit = self.unit, "choice" if self.choices else self.unit
        where = f"Param({self.default!r})"
        if not self.help.strip():
            raise ValueError(f"{where}: the help is empty")
        if problem := wrong_source(self.source):
            raise ValueError(f"{where}: the source '{self.source}' {problem}")
        if self.choices is None and (declared in _STRING_UNITS or not units.check_unit(declared)):
            problem = "needs choices" if declared in _STRING_UNITS else f"valid: {', '.join(units.UNITS)}, choice"
            raise ValueError(f"{where}: the unit '{declared}' {problem}")
        if problem := self._cost_problem(declared):
            raise ValueError(f"{where}: {problem}")
        try:
            self.low, self.high = (None if v is None else float(self.parse(str(v))) for v in (self.low, self.high))
            value = self.parse(self.default)
        except UsageError as error:
            raise ValueError(f"{where}: {error}") from None
        if not self.inside(value):
            raise ValueError(f"{where}: the default lies outside {self.range_text}")

    def _cost_problem(self, unit: str) -> str:
        """The error in `cost` and `on` of a parameter in ``unit``; "" without one."""
        if unit not in _TIMED:
            return f"a parameter in {unit} has neither cost nor on" if self.cost or self.on else ""
        if self.cost not in COSTS:
            told = f"'{self.cost}' is no kind of cost{nearest(self.cost, COSTS)}" if self.cost else f"a parameter in {unit} says what it is"
            return f"{told}; cost is one of {', '.join(COSTS)}"
        platform, _, host = self.on.rpartition(":")
        if self.cost in _OF_A_HOST:
            return "" if platform and host else f"cost '{self.cost}' needs on='PLATFORM:HOST', the host on which it takes so long"
        return f"cost '{self.cost}' is the same on every host and has no on" if self.on else ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def parse(self, text: str) -> float | str:
        """``text`` as this parameter's value: a float in its base unit, or one of its choices. Raises UsageError."""
        if self.choices is None:
            value = units.parse(text, self.unit)
            if problem := units.beyond(value, self.unit):
                raise UsageError(f"'{text}' {problem}", code="out-of-range")
            return value
        if text not in self.choices:
            raise UsageError(f"'{text}' is no choice{nearest(text, self.choices)}", code="unknown-name")
        return text

    def inside(self, value: float | str) -> bool:
        """Whether ``value`` (base unit) lies in ``low``..``high``; with a relative tolerance of 1e-9 for rounded texts."""
        if isinstance(value, str):
            return True
        slack = 1e-9 * max(abs(value), abs(self.low or 0), abs(self.high or 0))
        return (self.low is None or value >= self.low - slack) and (self.high is None or value <= self.high + slack)

    @property
    def fitted(self) -> bool:
        """Whether the value comes from the model's fit.toml."""
        return self.source.startswith("fit:")

    @property
    def cost_text(self) -> str:
        """``work on nt-pair:server``, ``time``; empty for what is no time and no rate."""
        return f"{self.cost} on {self.on}" if self.on else self.cost

    @property
    def range_text(self) -> str:
        """``range 5 us..30 us``, or an empty string without a range."""
        if self.low is None and self.high is None:
            return ""
        low, high = (("?" if v is None else units.format_quantity(v, self.unit)) for v in (self.low, self.high))
        return f"range {low}..{high}"
