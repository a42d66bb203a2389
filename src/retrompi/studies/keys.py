"""What a numeric key of a scenario is: its unit, its value now, where that is from, and its sourced range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrompi import registry, units
from retrompi.errors import UsageError, nearest
from retrompi.studies import axes, case, tornado

if TYPE_CHECKING:
    from retrompi.platform import Platform, Quantity
    from retrompi.runtime import Values
    from retrompi.scenario import Scenario

__all__ = ["Key", "about", "ranks_of", "sourced"]

_WORDS = ("model", "platform", "mode", "fidelity")


@dataclass(frozen=True)
class Key:
    """A key that is a number: ``value`` in base units of ``unit`` (None: nothing is set), ``text`` as a person reads it."""

    name: str
    unit: str
    whole: bool
    value: float | None
    text: str
    source: str
    low: float | None = None
    high: float | None = None


def ranks_of(scenario: Scenario) -> int:
    """How many ranks the scenario's job has."""
    if scenario.start:
        return scenario.start["ranks"]
    if scenario.trace is not None:
        from retrompi import traces

        return traces.read(scenario.trace, np=scenario.np).ranks
    if "ranks" in scenario.args:
        return int(scenario.args["ranks"])
    from retrompi.traces import generate

    return generate.generator(str(scenario.generator)).make(**scenario.args).ranks


def about(scenario: Scenario, key: str) -> Key:
    """What ``key`` is in ``scenario``; UsageError in one line when there is no such key, or it is a word and no number."""
    name = case.proper(key)
    if name in (*_WORDS, *case.LISTS):
        raise UsageError(f"'{key}' is no number; give a key with values that have an order, e.g. platform.link.bandwidth")
    if name == "seed":
        return Key(name, "count", True, float(scenario.seed), str(scenario.seed), "the scenario")
    if name == "hosts":
        have = len(registry.platform(scenario.platform).hosts)
        return Key(name, "count", True, float(have), str(have), "the platform")
    if name.startswith("trace."):
        return _of_trace(scenario, key, name)
    from retrompi.runtime import resolve

    values, room = resolve(registry.model(scenario.model), registry.platform(scenario.platform), scenario.sets)
    if name.startswith("platform."):
        return _of_platform(scenario, name, room)
    if not case.concerns(name, scenario.model):
        raise UsageError(f"'{key}' is a parameter of another model than '{scenario.model}'")
    return _of_model(scenario, key, name, values)


def _of_trace(scenario: Scenario, key: str, name: str) -> Key:
    known = case.trace_keys(scenario)
    if name not in known:
        raise UsageError(f"'{scenario.name}' has no '{key}'{nearest(name, known)}")
    short = name.removeprefix("trace.")
    whole = case.whole(name, scenario.model)
    if short in ("size", "sizes"):
        sizes = scenario.args.get(short)
        one = sizes if short == "size" else sizes[0] if sizes is not None and len(sizes) == 1 else None
        return Key(name, "B", True, None if one is None else float(one), "" if one is None else units.format_bytes(one), "the scenario")
    if scenario.start:
        return Key(name, "count", True, float(scenario.start[short]), str(scenario.start[short]), "the scenario")
    if scenario.trace is not None:
        if short in ("file", "section"):
            raise UsageError(f"'{key}' is no number")
        given = {"np": scenario.np, "compute": scenario.program.compute_s, "memory_share": scenario.program.memory_share}[short]
        unit = {"np": "count", "compute": "s", "memory_share": "1"}[short]
        value = None if given is None else float(given)
        return Key(name, unit, whole, value, "" if value is None else units.format_quantity(value, unit), "the scenario")
    from retrompi.traces import generate

    parameter = generate.generator(str(scenario.generator)).arguments[short]
    kind = str(parameter.annotation)
    if not kind.startswith(("int", "float", "Reps")):
        raise UsageError(f"'{key}' is no number")
    given = scenario.args.get(short, None if parameter.default is parameter.empty else parameter.default)
    number = float(given) if isinstance(given, int | float) else None
    return Key(name, "1" if kind == "float" else "count", whole, number, "" if number is None else f"{number:.6g}", "the scenario")


def _of_platform(scenario: Scenario, name: str, room: Platform) -> Key:
    path = name.removeprefix("platform.")
    if path in ("link.kind", "link.shape"):
        raise UsageError(f"'{name}' is no number")
    known = {p: q for p, q in room.quantities.items() if not isinstance(q.value, str)}
    head, _, short = path.rpartition(".")
    hosts = _hosts(scenario, room)
    if head == "host":
        found = {f"{h}.{short}": known[f"{h}.{short}"] for h in hosts if f"{h}.{short}" in known}
        if not found:
            valid = dict.fromkeys(f"platform.host.{p.rpartition('.')[2]}" for p in known if not p.startswith("link."))
            raise UsageError(f"no key '{name}'{nearest(name, valid, 30)}")
        first = next(iter(found.values()))
        if any(q.value != first.value for q in found.values()):
            told = ", ".join(f"platform.{p} = {q.text}" for p, q in list(found.items())[:4])
            raise UsageError(f"'{name}' differs among the hosts; take one of {told}")
        return _key(scenario, name, first)
    if path not in known:
        valid = [f"platform.{p}" for p in known if p.startswith("link." if head == "link" else "")]
        raise UsageError(f"platform '{scenario.platform}' has no '{name}'{nearest(name, valid, 30)}")
    return _key(scenario, name, known[path])


def _key(scenario: Scenario, name: str, q: Quantity) -> Key:
    return Key(name, q.unit, case.whole(name, scenario.model), q.value, units.format_quantity(q.value, q.unit), q.source, q.low, q.high)


def _of_model(scenario: Scenario, key: str, name: str, values: Values) -> Key:
    rows = {r["name"]: r for r in values.describe()}
    short = name.rpartition(".")[2]
    if short not in rows:
        raise UsageError(f"model '{scenario.model}' has no parameter '{key}'{nearest(key, [f'{values.model}.{r}' for r in rows], 40)}")
    row = rows[short]
    if isinstance(row["value"], str):
        raise UsageError(f"'{key}' is no number but one of {', '.join(row['choices'] or ())}")
    text = units.format_quantity(row["value"], row["unit"])
    return Key(name, row["unit"], case.whole(name, scenario.model), row["value"], text, row["source"], row["low"], row["high"])


def _hosts(scenario: Scenario, room: Platform) -> list[str]:
    """The hosts that run a rank, in the platform's order."""
    from retrompi import simulate

    used = set(simulate.place(room, room.placement(scenario.mode), ranks_of(scenario)))
    return [room.hosts[i].name for i in sorted(used)]


def sourced(scenario: Scenario) -> list[tornado.Factor]:
    """Every number of the scenario's model and platform that has a sourced range and is read, as a factor between its ends.

    Of the model: what its compilation reads for this placement. Of the platform: hosts that run a rank (``platform.host.KEY`` where all
    of them have the same range), and the link unless all ranks are on one host.
    """
    from retrompi import simulate
    from retrompi.runtime import resolve

    cls = registry.model(scenario.model)
    values, changed = resolve(cls, registry.platform(scenario.platform), scenario.sets)
    placement = simulate.place(changed, scenario.mode, ranks_of(scenario))
    cls().compile(values, changed, placement)
    unread = set(values.unread())
    found = []
    for row in values.describe():
        if row["low"] is not None and row["high"] is not None and row["name"] not in unread:
            found.append(_factor(about(scenario, f"{cls.name.partition(':')[0]}.{row['name']}"), cls.params()[row["name"]].source))
    hosts = [changed.hosts[i].name for i in sorted(set(placement))]
    ranged = {p: q for p, q in changed.quantities.items() if q.low is not None and q.high is not None}
    shorts = dict.fromkeys(p.rpartition(".")[2] for p in ranged if p.rpartition(".")[0] in hosts)
    for short in shorts:
        own = [ranged.get(f"{h}.{short}") for h in hosts]
        same = all(q is not None for q in own) and len({(q.value, q.low, q.high) for q in own if q is not None}) == 1
        # An override of every host reaches those without a rank too; they do nothing.
        names = [f"platform.host.{short}"] if same else [f"platform.{h}.{short}" for h, q in zip(hosts, own, strict=True) if q is not None]
        found += [_factor(about(scenario, name)) for name in names]
    if len(hosts) > 1:
        found += [_factor(about(scenario, f"platform.{p}")) for p in ranged if p.startswith("link.")]
    return [f for f in found if f.ends[0] != f.ends[1]]


def _factor(key: Key, source: str = "") -> tornado.Factor:
    """A key between the ends of its range. A fitted value says ``fit:``, its range is where the parameter's source says."""
    assert key.low is not None
    assert key.high is not None
    span = axes.Span(key.low, key.high, units.canonical(key.unit), _spelling(key.unit, (key.low, key.high)))
    return tornado.Factor(axes.Axis(key.name, (), span), key.whole, key.text, source or key.source)


def _spelling(unit: str, ends: Sequence[float]) -> str:
    """The spelling in which the larger end has one to three digits before the point."""
    base = units.canonical(unit)
    if base == "B":
        return "B"
    plain = {"s": ("s", "ms", "us", "ns", "ps"), "B/s": ("GB/s", "MB/s", "kB/s", "B/s"), "s/B": ("s/B", "us/B", "ns/B", "ps/B"),
             "Hz": ("GHz", "MHz", "kHz", "Hz"), "flop/s": ("Gflop/s", "Mflop/s", "kflop/s", "flop/s")}.get(base, ("",))  # fmt: skip
    return next((s for s in plain if max(ends) >= units.UNITS[base][s] * 0.99995), plain[-1])
