"""Metrics: one number of a run, by name, as shown in figures and compared by searches.

    metric = parse("time@1MiB")
    metric.of(store.run(i), store.points(i), store.ranks(i))      # seconds, or None where the run has no such number
    metric.require(run, points, ranks, what="run 12")             # the same, but UsageError with the reason
    metric.check(scenario)                                        # UsageError before anything runs

Values are in base units: seconds, bytes, bytes per second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import UsageError, nearest
from retrompi.base.translate import _, lazy
from retrompi.spec.declare.curve import NUMBERS, NotOnCurve, TimeCurve
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import OutputField, RankRow, SectionRow, StartsRow, outputs
from retrompi.spec.declare.result import metrics as counters

if TYPE_CHECKING:
    from retrompi.studies.define.scenario import Scenario

__all__ = ["NAMES", "Metric", "columns", "fact_of", "facts", "parse", "sizes_of"]

Row = Mapping[str, Any]
Rows = Sequence[Row]
Reader = Callable[[Row, Rows, Rows, int | None], float | None]
"""Computes a metric from what it `reads <_Kind>` of a run's row, by name, the run's points and its ranks' rows, at a message size in
bytes."""


@dataclass(frozen=True)
class _Kind:
    """A family of metrics: ``needs`` is the data a run must have, ``sized`` whether @SIZE may follow.

    ``reads``: the columns of a run's row that ``read`` sees, and facts by their path (``facts.section.seconds``). It sees nothing else, so
    that a large study, of whose runs only what metrics read is held (`stored_study`), has the same numbers as a small one.
    """

    label: str
    unit: str
    needs: str
    read: Reader
    reads: tuple[str, ...] = ()
    sized: str = "never"
    more_is_better: bool = False


_FACTS = "facts."


def fact_of(run: Row, path: str) -> Any:
    """The value of a run's row at a path, ``messages`` or ``facts.section.seconds``; None for nothing."""
    value: Any = run
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _curve_number(name: str) -> Reader:
    def read(run: Row, points: Rows, ranks: Rows, size: int | None) -> float | None:
        if name == "time" and size is None:
            return _number(run["time_s"])
        try:
            return TimeCurve.of(points).number(name, *(() if size is None else (size,)))
        except NotOnCurve:
            return None

    return read


def _of_curve(name: str) -> _Kind:
    """The kind of a metric that is a number of the run's curve."""
    number = NUMBERS[name]
    return _Kind(number.label, number.unit, "curve", _curve_number(name), sized="must" if number.sized else "never",
                 more_is_better=number.more_is_better)


def _timed_seconds(run: Row, points: Rows, ranks: Rows, size: int | None) -> float | None:
    from retrompi.traces import generate

    made = generate.GENERATORS.get(str(run.get("trace")))
    parts = 1 if made is None else made.parts
    return sum(float(p["time_us"]) * 1e-6 * parts * int(p["repetitions"]) for p in points) if points else None


def _largest(key: str) -> Reader:
    def read(run: Row, points: Rows, ranks: Rows, size: int | None) -> float | None:
        return max((float(r[key]) for r in ranks), default=None)

    return read


def _one(declared: OutputField, needs: str = "run", path: str = "") -> _Kind:
    """The kind of a metric that is a number of the run's row as it stands, at its declared path or another."""
    name = path or declared.path
    return _Kind(declared.title, declared.unit, needs, lambda run, points, ranks, size: _number(run[name]), (name,))


def _nothing(run: Row, points: Rows, ranks: Rows, size: int | None) -> float | None:
    return None


_KINDS: Mapping[str, _Kind] = {
    "time": _Kind(lazy("time of the job"), "s", "run", _curve_number("time"), ("time_s",), sized="may"),
    "timed": _Kind(lazy("time of all timed repetitions"), "s", "curve", _timed_seconds, ("trace",)),
    **{name: _of_curve(name) for name in ("bandwidth", "latency", "peak", "n_half")},
    "section": _one(outputs(SectionRow)["seconds"], "section", "facts.section.seconds"),
    **{o.member: _Kind(o.largest, o.unit, "ranks", _largest(o.name)) for o in outputs(RankRow).values() if o.largest},
    "speedup": _Kind(lazy("speed-up"), "1", "base", _nothing, sized="may", more_is_better=True),
    **{name: _one(o) for name, o in counters().items()},
    "start": _one(outputs(StartsRow)["seconds"], "start", "facts.startup.seconds"),
    "failed_starts": _one(outputs(StartsRow)["failure_rate"], "start", "facts.startup.failure_rate"),
    "outcome": _Kind(lazy("completed (1) or not (0)"), "1", "any", lambda r, p, k, s: 1.0 if r["outcome"] == Outcome.COMPLETED else 0.0,
                     ("outcome",), more_is_better=True),
}


def _read(kind: _Kind, run: Row, points: Rows, ranks: Rows, size: int | None) -> float | None:
    return kind.read({name: fact_of(run, name) for name in kind.reads}, points, ranks, size)


def columns() -> set[str]:
    """The columns of a run's row that metrics read, without its facts."""
    return {name for kind in _KINDS.values() for name in kind.reads if not name.startswith(_FACTS)} | {"outcome", "detail", "kind"}


def facts() -> set[str]:
    """The facts of a run that metrics read, by the first part of their path."""
    return {name.split(".")[1] for kind in _KINDS.values() for name in kind.reads if name.startswith(_FACTS)}


NAMES: Mapping[str, str] = {
    name + {"never": "", "may": "[@SIZE]", "must": "@SIZE"}[k.sized]: f"{k.label}, {k.unit}" for name, k in _KINDS.items()
}
"""How a metric is written -> what it is, for help and documentation."""


@dataclass(frozen=True)
class Metric:
    """A metric: ``name`` as `parse` takes it, ``unit`` a base unit of `retrompi.base.units`, ``label`` for axes and tables."""

    name: str
    unit: str
    label: str
    kind: str
    size_B: int | None = None
    more_is_better: bool = False
    base: Metric | None = None
    """For ``speedup``, the metric whose ratio it is (`over`); None for every other metric."""

    def of(self, run: Row, points: Rows = (), ranks: Rows = ()) -> float | None:
        """The number of a stored run (rows of `Store.run`, `points`, `ranks`), in ``unit``.

        None where the run has no such number: it did not complete (only ``outcome`` has a value then), or is of another kind.
        """
        if run.get("outcome") != Outcome.COMPLETED and self.kind != "outcome":
            return None
        return _read(_KINDS[self.kind], run, points, ranks, self.size_B)

    def over(self, values: Iterable[float | None], base: float | None) -> list[float | None]:
        """``base`` divided by each of ``values`` (times): the speed-ups; None where either is missing."""
        return [None if v is None or base is None or v <= 0 else base / v for v in values]

    def require(self, run: Row, points: Rows = (), ranks: Rows = (), *, what: str = "the run") -> float:
        """`of`, but UsageError in one line where the run has no such number."""
        value = self.of(run, points, ranks)
        if value is not None:
            return value
        if run.get("outcome") != Outcome.COMPLETED:
            raise UsageError(
                f"{what} has no '{self.name}': it ended as {run.get('outcome')}: {run.get('detail') or 'no reason given'}", code="no-metric"
            )
        raise UsageError(f"{what} has no '{self.name}': {self._lacks(run, points, ranks)}", code="no-metric")

    def _lacks(self, run: Row, points: Rows, ranks: Rows) -> str:
        if self.base is not None:
            return f"a speed-up compares two runs; of one run take '{self.base.name}'"
        if self.size_B is not None and points:
            return _other_sizes(self.size_B, [int(p["size_B"]) for p in points])
        have = [name for name, k in _KINDS.items() if k.sized != "must" and _read(k, run, points, ranks, None) is not None]
        return f"a {run.get('kind') or 'run'} of this kind has {', '.join(have)}{' and a number at each size' if points else ''}"

    def check(self, scenario: Scenario) -> None:
        """UsageError in one line when runs of ``scenario`` cannot have this number; only the scenario is examined."""
        needs = _KINDS[self.kind].needs
        curve = not scenario.start and scenario.trace is None and not scenario.setting("kills") and scenario.outcome == Outcome.COMPLETED
        curve = curve and scenario.generator != "rinf1"
        if needs == "base":
            raise UsageError(
                f"'{self.name}' compares two runs; of one run take '{self.base.name if self.base else 'time'}'", code="no-metric"
            )
        if scenario.start:
            if needs not in ("start", "any"):
                raise UsageError(
                    f"'{scenario.name}' only starts a job: it has start, failed_starts and outcome, not '{self.name}'", code="no-metric"
                )
            return
        if needs == "start":
            raise UsageError(f"'{scenario.name}' starts no job: '{self.name}' is of scenarios with [start]", code="no-metric")
        if scenario.generator == "rinf1" and (self.name not in ("time", "outcome")):
            raise UsageError(
                f"'{scenario.name}' times loops: it has time and outcome, not '{self.name}'; see 'retrompi paper rinf1'", code="no-metric"
            )
        if needs == "section" and scenario.program.section is None:
            raise UsageError(f"'{scenario.name}' times no section; give one in its [trace], or take 'time'", code="no-metric")
        if (needs == "curve" or self.size_B is not None) and not curve:
            what = "a trace's replay" if scenario.trace is not None else "a benchmark that is not to complete"
            raise UsageError(
                f"'{scenario.name}' is {what}: it has no curve, so no '{self.name}'; it has time, mpi, compute, messages", code="no-metric"
            )
        if self.size_B is not None:
            sizes = sizes_of(scenario)
            if self.size_B not in sizes:
                raise UsageError(f"'{scenario.name}' has no '{self.name}': {_other_sizes(self.size_B, sizes)}", code="no-metric")

    def shorten(self, scenario: Scenario) -> Scenario:
        """``scenario`` without the sizes that come after those on which this number depends.

        Sizes are simulated one after the other, so what comes later cannot change it: the number is the whole curve's, to the
        picosecond. The sizes before it stay, since the state that they leave (connections, buffers, clocks) is part of it, and so
        does the one after it: the other rank, already waiting for it, may hold the processor while the last exchange ends.
        """
        if scenario.generator not in ("pingpong", "pingping") or _KINDS[self.kind].needs == "base":
            return scenario
        sizes = sizes_of(scenario)
        wanted = min(sizes) if self.kind == "latency" else self.size_B
        if wanted not in sizes or sizes.index(wanted) + 2 >= len(sizes):
            return scenario
        return replace(scenario, args={**scenario.args, "sizes": tuple(sizes[: sizes.index(wanted) + 2])})

    def show(self, value: float | None) -> str:
        """A value with its unit, for tables; empty for None."""
        if value is None:
            return ""
        if self.unit == "B":
            return units.format_bytes(round(value))
        if self.unit in ("1", "count"):
            return f"{value:.4g}" if self.unit == "1" else f"{value:.0f}"
        return f"{100 * value:.3g} %" if self.unit == "probability" else units.format_quantity(value, self.unit)


def sizes_of(scenario: Scenario) -> list[int]:
    """The message sizes (bytes) of a benchmark's curve."""
    from retrompi.traces import generate

    if "size" in scenario.args:
        return [int(scenario.args["size"])]
    given = scenario.args.get("sizes")
    return [int(s) for s in (generate.DEFAULT_SIZES if given is None else given)]


def _other_sizes(wanted: int, sizes: Sequence[int]) -> str:
    close = min(sizes, key=lambda s: abs(s - wanted))
    shown = [units.format_bytes(s) for s in sorted(sizes)]
    listed = ", ".join(shown) if len(shown) <= 8 else f"{', '.join(shown[:3])} … {shown[-1]}"
    return f"no point at {units.format_bytes(wanted)}; the nearest is {units.format_bytes(close)} of {listed}"


def parse(text: str) -> Metric:
    """``"time"``, ``"time@1MiB"``, ``"peak"``: a metric by name; UsageError in one line names the nearest."""
    name, at, size_text = text.strip().partition("@")
    kind = _KINDS.get(name)
    if kind is None:
        raise UsageError(f"no metric '{name}'{nearest(name, _KINDS, 20)}", code="unknown-metric")
    if at and kind.sized == "never":
        raise UsageError(f"'{text}': '{name}' is one number of a run and takes no @SIZE", code="bad-metric")
    if not at and kind.sized == "must":
        raise UsageError(f"'{name}' needs a message size; example: {name}@1MiB", code="bad-metric")
    if not at:
        base = parse("time") if name == "speedup" else None
        return Metric(name, kind.unit, _(kind.label), name, None, kind.more_is_better, base)
    value = units.parse(size_text, "B")
    if value != int(value):
        raise UsageError(f"'{text}': '{size_text}' is not a whole number of bytes", code="bad-metric")
    size = int(value)
    shown = units.format_bytes(size)
    label = _("{metric} at {size}").format(metric=_(NUMBERS["time"].label if name == "time" else kind.label), size=shown)
    full = f"{name}@{shown.replace(' ', '')}"
    base = parse(f"time@{shown.replace(' ', '')}") if name == "speedup" else None
    return Metric(full, kind.unit, label, name, size, kind.more_is_better, base)
