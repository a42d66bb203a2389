"""The numbers of model and platform cards as the studio shows them: each with its value, range, and source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.translate import _, lazy
from retrompi.base.units import format_quantity
from retrompi.spec import registry
from retrompi.spec.declare.fields import quantities
from retrompi.spec.declare.sources import SOURCE_KINDS
from retrompi.spec.host import Host
from retrompi.spec.model import RuntimeModel, model_values
from retrompi.spec.platform import Platform
from retrompi.spec.question import Question, Starts

__all__ = [
    "AREAS",
    "KINDS",
    "HostGroup",
    "ShownNumber",
    "SideBySide",
    "VariantChanges",
    "area_of",
    "by_kind",
    "differences",
    "fitting",
    "groups",
    "model_numbers",
    "platform_numbers",
    "range_text",
    "sides",
    "starts",
    "with_micro_sign",
]

KINDS = {
    "paper": lazy("printed in a paper of the reference"),
    "doc": lazy("from documentation of the time"),
    "code": lazy("read in the source code"),
    "fit": lazy("fitted to statements marked for fitting"),
    "assumed": lazy("assumed, with a range where one is known"),
}
"""Kind of a source (`SOURCE_KINDS`) -> its meaning."""

_MICRO = re.compile(r"(?<=\d )u(?=s\b)")

AREAS = ("processor", "scheduler", "memory", "protocol stack", "network card")
"""The areas of a host in display order; a field of `Host` states its area."""


@dataclass(frozen=True)
class ShownNumber:
    """A parameter or quantity: texts ready for display, its source split into ``kind`` and the rest, the reference rows it cites."""

    name: str
    value: str
    unit: str
    span: str
    kind: str
    source: str
    help: str
    rows: tuple[Mapping[str, str], ...] = ()
    area: str = ""


def range_text(row: Mapping[str, Any]) -> str:
    """``low – high`` of a card's row in its unit, or its choices; "" without either."""
    if row.get("choices"):
        return " | ".join(row["choices"])
    if row.get("low") is None and row.get("high") is None:
        return ""
    ends = ["…" if row[k] is None else format_quantity(row[k], row["unit"]) for k in ("low", "high")]
    return ends[0] if ends[0] == ends[1] else " – ".join(ends)


def _kind(source: str) -> tuple[str, str]:
    kind, _, rest = source.partition(":")
    return (kind, rest.strip()) if f"{kind}:" in SOURCE_KINDS else ("assumed", source)


def with_micro_sign(text: str) -> str:
    """A quantity as the field writes it: µs, not us."""
    return _MICRO.sub("µ", text)


def _number(row: Mapping[str, Any], name: str, area: str = "") -> ShownNumber:
    kind, rest = _kind(str(row["source"]))
    value = str(row["text"]) if isinstance(row["value"], str) else format_quantity(row["value"], row["unit"])
    return ShownNumber(
        name,
        with_micro_sign(value),
        "" if row["unit"] in ("choice", "str") else str(row["unit"]),
        with_micro_sign(range_text(row)),
        kind,
        rest,
        str(row["help"]),
        tuple(row.get("rows", ())),
        area,
    )


def model_numbers(dossier: Mapping[str, Any]) -> list[ShownNumber]:
    """The parameters of a model's card (`retrompi.render.cards.dossier.model_dossier`)."""
    return [_number(r, str(r["name"])) for r in dossier["parameters"]]


def area_of(path: str) -> str:
    """The area of a platform's quantity: one of `AREAS`, or ``wire``."""
    owner, _, key = path.rpartition(".")
    if owner == "link":
        return "wire"
    return quantities(Host)[key].area


def platform_numbers(dossier: Mapping[str, Any]) -> list[ShownNumber]:
    """The quantities of a platform's card (`retrompi.render.cards.dossier.platform_dossier`), followed by the costs of its loops."""
    found = [_number(r, str(r["path"]), area_of(str(r["path"]))) for r in dossier["quantities"]]
    return found + [_number(r, str(r["path"]), "loops") for r in dossier["kernels"]]


def by_kind(some: Iterable[ShownNumber]) -> Counter[str]:
    """The number of values from each kind of source."""
    return Counter(n.kind for n in some)


def fitting(some: Sequence[ShownNumber], kind: str = "", text: str = "", area: str = "") -> list[ShownNumber]:
    """The numbers with this kind of source and area whose name, meaning or source contains every word of ``text``.

    Raises UsageError for an unknown kind.
    """
    if kind and kind not in KINDS:
        raise UsageError(f"source '{kind}'{nearest(kind, KINDS)}", code="unknown-name")
    words = text.casefold().split()
    return [
        n
        for n in some
        if kind in ("", n.kind) and area in ("", n.area) and all(w in f"{n.name} {n.help} {n.source} {n.value}".casefold() for w in words)
    ]


@dataclass(frozen=True)
class HostGroup:
    """Hosts that are identical except for their name."""

    names: tuple[str, ...]
    os: str
    byte_order: str

    @property
    def title(self) -> str:
        """``workstation`` or ``workstation and 4 more``."""
        more = len(self.names) - 1
        return self.names[0] if not more else _("{names} and {more} more like it").format(names=self.names[0], more=more)


def groups(platform: Platform, some: Sequence[ShownNumber]) -> list[HostGroup]:
    """The hosts of a platform, identical ones grouped; ``some`` are the platform's numbers."""
    found = {n.name: n for n in some}
    alike: dict[tuple[object, ...], list[str]] = {}
    for h in platform.hosts:
        own = (found.get(f"{h.name}.{key}") for key in quantities(Host))
        key = (h.os, h.byte_order, *((n.value, n.kind, n.source) if n else None for n in own))
        alike.setdefault(key, []).append(h.name)
    return [HostGroup(tuple(names), str(key[0]), str(key[1])) for key, names in alike.items()]


@dataclass(frozen=True)
class SideBySide:
    """A quantity of every group of hosts side by side: ``cells`` in the order of `groups`, None of one that does not state it."""

    key: str
    help: str
    area: str
    cells: tuple[ShownNumber | None, ...]

    @property
    def stated(self) -> list[ShownNumber]:
        """The cells that there are."""
        return [c for c in self.cells if c is not None]

    @property
    def same(self) -> bool:
        """Whether all have the same value from the same source."""
        return len({c and (c.value, c.kind, c.source) for c in self.cells}) == 1


def sides(platform: Platform, some: Sequence[ShownNumber]) -> list[SideBySide]:
    """The quantities of the hosts, each key once with its value on every group of hosts; ``some`` are the platform's numbers."""
    found = {n.name: n for n in some}
    firsts = [g.names[0] for g in groups(platform, some)]
    out = []
    for key, declared in quantities(Host).items():
        cells = tuple(found.get(f"{name}.{key}") for name in firsts)
        if any(cells):
            out.append(SideBySide(key, declared.help, area_of(f"host.{key}"), cells))
    return sorted(out, key=lambda s: AREAS.index(s.area))


@dataclass(frozen=True)
class VariantChanges:
    """The changes of a variant: (parameter, base value, variant's value, its source). ``code``: mechanisms that differ as well."""

    name: str
    title: str
    note: str
    changed: tuple[tuple[str, str, str, str], ...]
    code: tuple[str, ...]


_ELSEWHERE = {
    "startup": lazy("the start of a job"),
    "joins": lazy("which machines it joins"),
    "cautions": lazy("its cautions"),
    "collectives": lazy("its collectives"),
    "communicators": lazy("how communicators are made"),
}
_PATH = lazy("the path of a message")


def _code(variant: type[RuntimeModel], base: type[RuntimeModel]) -> tuple[str, ...]:
    """Differences of a variant's mechanism from its base's, apart from parameters, in words."""
    own = dict.fromkeys(n for k in variant.__mro__ if k not in base.__mro__ for n, v in vars(k).items() if callable(v) or n in _ELSEWHERE)
    changed = [n for n in own if not n.startswith("__") and getattr(variant, n) is not getattr(base, n, None)]
    return tuple(dict.fromkeys(_(_ELSEWHERE.get(n, _PATH)) for n in changed))


def differences(cls: type[RuntimeModel]) -> list[VariantChanges]:
    """The variants of a model's folder against the model of that folder, by name; for a variant, only itself."""
    base = registry.model(cls.name.partition(":")[0]) if registry.origin(cls.folder()) in ("retrompi", "user") else cls
    family = {n: c for n, c in registry.models().items() if c.variant_of == base.name and (cls is base or c is cls)}
    before = model_values(base)
    out = []
    for name, variant in sorted(family.items()):
        values = model_values(variant)
        changed = []
        for key, setting in values.settings.items():
            old = before.settings.get(key)
            there = "" if old is None else old.text
            if old is None or (old.value, old.source) != (setting.value, setting.source):
                changed.append((key, there, setting.text, setting.source))
        gone = [(k, s.text, "", "") for k, s in before.settings.items() if k not in values.settings]
        out.append(VariantChanges(name, variant.title, variant.variant_note, (*changed, *gone), _code(variant, base)))
    return out


STARTS = 200
"""Number of starts simulated for the failure rate: drawing them needs no simulation of messages."""


def starts(model: str, platform: str, mode: str = "distributed") -> Mapping[str, Any]:
    """How a job of one rank per host is started (`retrompi.sim.simulate.startup`), with ``refused``: why the runtime cannot connect them.

    ``refused`` alone if a start cannot even be described there.
    """
    from retrompi.sim import simulate
    from retrompi.sim.resolved import Resolved

    try:
        asked = Resolved.of(Question(model, platform, Starts(len(registry.platform(platform).hosts), STARTS), mode))
        return {**simulate.startup(asked), "refused": asked.apart}
    except RetrompiError as error:
        return {"steps": [], "refused": str(error)}
