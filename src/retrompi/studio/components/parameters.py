"""The parameters that a what-if may change: slider positions, their range and its source, and the source of the value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import UsageError, nearest
from retrompi.base.translate import _, language, lazy
from retrompi.sim.resolved import place
from retrompi.spec import registry
from retrompi.spec.compiled.compile import compile_runtime
from retrompi.spec.layout import Layout
from retrompi.spec.model import resolve
from retrompi.spec.platform import declaration
from retrompi.studio.components import menus
from retrompi.traces.calls import PINGPONG

if TYPE_CHECKING:
    from retrompi.spec.platform import Placement, Platform

__all__ = ["Slot", "check_names", "command_line", "modes", "overrides", "readable", "slots", "slots_for"]

_WIDE = 8.0
"""Ratio of a slider's ends from which it is logarithmic."""
_STEPS = 24
_SHARES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Slider positions of probabilities: the loss rate of a wire is rarely above a hundredth."""
_MICRO = re.compile(r"(?<![A-Za-z])us(?![A-Za-z])")
_EVERY = "platform.host."
_OWN = lazy("each its own")
_WITHOUT = 8
"""A number without a sourced range can be varied from an eighth to eight times its value."""


@dataclass(frozen=True)
class Slot:
    """One parameter: ``name`` as in --set. ``texts``: the slider positions in order, () for none; ``choices`` of a word parameter.

    ``range`` describes the slider's ends and their source; ``scale`` is log or linear.
    """

    name: str
    label: str
    group: str
    help: str
    source: str
    unit: str
    base: str
    texts: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    range: str = ""
    scale: str = "linear"

    @property
    def position(self) -> int:
        """The slider position of the base value."""
        return self.texts.index(self.base) if self.base in self.texts else 0

    def nearest(self, text: str) -> int:
        """The slider position nearest to ``text``, which may lie between or beyond the positions."""
        try:
            value = units.parse(text, self.unit)
        except UsageError:
            return self.position
        return min(range(len(self.texts)), key=lambda i: abs(units.parse(self.texts[i], self.unit) - value))

    def numbers(self) -> list[float]:
        """The values of ``texts`` in base units."""
        return [units.parse(t, self.unit) for t in self.texts]


def check_names(model: str | None = None, platform: str | None = None) -> None:
    """Raises UsageError for an unknown model or platform name. A path would work elsewhere, but a browser must not name code to run."""
    if model is not None and model not in (known := registry.model_names()):
        raise UsageError(f"no model '{model[:60]}'{nearest(model[:60], known)}", code="unknown-model")
    if platform is not None and not menus.is_platform(platform):
        known = registry.platform_names()
        raise UsageError(f"no platform '{platform[:60]}'{nearest(platform[:60], known)}", code="unknown-platform")


def modes(platform: str) -> list[str]:
    """Placements of a PingPong's two ranks: shared, distributed, a named placement, or two of the hosts (if there are few)."""
    check_names(platform=platform)
    loaded = registry.platform(platform)
    names = [h.name for h in loaded.hosts]
    pairs = [f"{a},{b}" for a in names for b in names] if len(names) <= 3 else []
    return ["shared", *(["distributed"] if len(names) > 1 else []), *loaded.placements, *(pairs if len(names) > 1 else [])]


def readable(text: str) -> str:
    """A quantity as pages write it: µs instead of us."""
    return _MICRO.sub("µs", text)


def _exact_text(value: float, unit: str, like: str) -> str:
    """A value as a text that represents it exactly; rates stay in bits per second if the base is."""
    spelling = re.sub(r"[\d\s._+-]", "", like)
    if units.canonical(unit) == "B":
        return units.format_bytes(round(value))
    if spelling.endswith("bps"):
        bits = value * 8
        factor, name = next((f, n) for f, n in ((1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps"), (1, "bps")) if bits >= f or f == 1)
        return f"{bits / factor:.4g} {name}"
    return readable(units.format_quantity(value, unit))


def _round(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _positions(low: float, high: float, unit: str, base: str, whole: bool) -> tuple[tuple[str, ...], str]:
    """(texts in order, log or linear): round numbers from ``low`` to ``high``, including the ends and the base."""
    wide = low > 0 and high / low >= _WIDE
    kind = units.canonical(unit)
    if kind == "probability" and low == 0:
        values, wide = [v for v in _SHARES if v <= high], True
    elif kind == "B":
        values = _sizes(low, high, wide)
    else:
        values = [_round(v, 2) for v in _evenly(low, high, wide)]
    if whole:
        values = [float(round(v)) for v in values]
    texts = {units.parse(t, unit): t for t in (_exact_text(v, unit, base) for v in [low, *(v for v in values if low < v < high), high])}
    texts[units.parse(base, unit)] = base
    return tuple(texts[v] for v in sorted(texts)), "log" if wide else "linear"


def _sizes(low: float, high: float, wide: bool) -> list[float]:
    """Powers of two and 1.5 times these, or, if the ends are close together, multiples of a power of two."""
    if wide and low >= 16:
        return [v for k in range(1, 64) for v in (2.0**k, 3.0 * 2.0 ** (k - 1)) if low <= v <= high]
    step = 2.0 ** max(0, math.floor(math.log2(max(high - low, 1) / 16)))
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _evenly(low: float, high: float, wide: bool) -> list[float]:
    if wide:
        return [low * math.exp(math.log(high / low) * i / _STEPS) for i in range(_STEPS + 1)]
    return [low + (high - low) * i / _STEPS for i in range(_STEPS + 1)]


def _slot(name: str, label: str, group: str, row: Mapping[str, Any], kind: str) -> Slot:
    unit, base, value = row["unit"], readable(row["text"]), row["value"]
    common = {"name": name, "label": label, "group": group, "help": row["help"], "source": row["source"], "unit": unit, "base": base}
    if row.get("choices"):
        return Slot(**common, choices=tuple(row["choices"]))
    whole = kind == "whole"
    if kind == "flag":
        return Slot(**common, choices=("0", "1"))
    low, high = row["low"], row["high"]
    if low is None or high is None or low == high:
        if not value:
            return Slot(**common, range=_("no sourced range, and none can be made of 0: type a value"))
        ends = (value / _WITHOUT, value * _WITHOUT)
        if units.canonical(unit) == "probability":
            ends = (0.0, 1.0)
        elif whole:
            ends = (1.0, max(_WITHOUT, value * _WITHOUT))
        what = _("the source gives one value") if low is not None else _("no sourced range")
        told = _("{what}; the slider goes from an eighth to eight times").format(what=what) if ends[0] == value / _WITHOUT else what
    else:
        ends = (low, high)
        told = _("sourced range {spelled} to {spelled2}").format(
            spelled=_exact_text(low, unit, base), spelled2=_exact_text(high, unit, base)
        )
    texts, scale = _positions(*ends, unit, base, whole)
    return Slot(**common, texts=texts, range=told, scale=scale)


def slots(model: str, platform: str, mode: str) -> tuple[Slot, ...]:
    """The parameters that a PingPong in this configuration uses: the runtime's, those of the ranks' hosts, of the link between them.

    Raises UsageError for a wrong name or mode.
    """
    return _slots(model, platform, mode, language())


@lru_cache(maxsize=64)
def _slots(model: str, platform: str, mode: str, spoken: str) -> tuple[Slot, ...]:
    """In the language of the context, which is ``spoken``."""
    check_names(model, platform)
    cls = registry.model(model)
    values, loaded = resolve(cls, registry.platform(platform))
    placement: Placement = place(loaded, loaded.placement(mode), 2)
    used = compile_runtime(cls, values, Layout(loaded, placement), PINGPONG).used
    base = cls.name.partition(":")[0]
    out = []
    for row in values.describe():
        if f"{base}.{row['name']}" in used:
            kind = "whole" if row["unit"] == "count" else ""
            out.append(_slot(f"{cls.name}.{row['name']}", row["name"], _("Runtime: {title}").format(title=cls.title), row, kind))
    hosts = list(dict.fromkeys(loaded.hosts[i].name for i in placement))
    out += [s for host in hosts for s in _of_part(loaded, host, _("Machine: {host}").format(host=host))]
    out += _of_part(loaded, "link", _("Network"))
    return tuple(s for s in out if not s.name.startswith("platform.") or s.name in used)


def slots_for(model: str, platform: str, mode: str, names: Iterable[str]) -> tuple[Slot, ...]:
    """`slots`, and one more for each ``platform.host.KEY`` among ``names``: it applies to every host, as in --set.

    They precede those of single hosts, which therefore take precedence.
    """
    known = slots(model, platform, mode)
    wanted = set(names)
    of_one: dict[str, list[Slot]] = {}
    for slot in known:
        head, host, key = [*slot.name.split(".", 2), "", ""][:3]
        if head == "platform" and host != "link" and f"{_EVERY}{key}" in wanted:
            of_one.setdefault(key, []).append(slot)
    every = tuple(_of_every(key, mine) for key, mine in of_one.items())
    at = next((i for i, s in enumerate(known) if s.name.startswith("platform.")), len(known))
    return (*known[:at], *every, *known[at:])


def _of_every(key: str, mine: list[Slot]) -> Slot:
    """The slot of a key of all hosts; its base is their common value, or else a text that is not a value."""
    first = mine[0]
    name, group = f"{_EVERY}{key}", _("Every machine")
    if len({s.base for s in mine}) == 1:
        return replace(first, name=name, group=group)
    before = _("Machine: {host}").format(host="")
    told = "; ".join(f"{s.group.removeprefix(before)} {s.base}, {s.source}" for s in mine)
    return replace(first, name=name, group=group, base=_(_OWN), source=told)


def _of_part(platform: Platform, part: str, group: str) -> list[Slot]:
    rows = [r for r in platform.describe() if r["path"].startswith(f"{part}.")]
    return [_slot(f"platform.{path}", path.partition(".")[2], group, r, declaration(path).kind) for r in rows for path in [r["path"]]]


def overrides(known: Iterable[Slot], changed: Mapping[str, str]) -> list[str]:
    """``NAME=VALUE`` for values that differ from the base, in slot order; unknown names come last, to be refused."""
    base = {s.name: s.base for s in known}
    order = [n for n in base if n in changed] + [n for n in changed if n not in base]
    told = {n: readable(changed[n].strip()) for n in order}
    return [f"{n}={told[n].replace(' ', '').replace('µ', 'u')}" for n in order if told[n] and told[n] != base.get(n)]


def command_line(model: str, platform: str, mode: str, sets: Iterable[str], sizes: str = "") -> str:
    """The command that simulates the same."""
    from shlex import join

    words = ["retrompi", "pingpong", "--model", model, "--platform", platform, "--mode", mode]
    words += ["--sizes", sizes] if sizes else []
    return join([*words, *(w for item in sets for w in ("--set", item))])
