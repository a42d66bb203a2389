"""Comparison of two stored runs: the inputs and results that differ.

Rows have a ``part`` (input, parameter, platform, override, result, point, rank, stage), ``what``, ``a`` and ``b`` in base units,
``difference`` b - a and ``ratio`` b / a where both are numbers, a ``unit``, and the sources of a parameter's two values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import RetrompiError
from retrompi.sim.result import Result
from retrompi.spec import registry
from retrompi.spec.declare.result import OutputField, RankRow, SectionRow, StartsRow, outputs
from retrompi.store.questions import beside_columns
from retrompi.studies.define.metrics import fact_of

if TYPE_CHECKING:
    from retrompi.spec.model import RuntimeModel
    from retrompi.spec.platform import Platform
    from retrompi.store import Store

__all__ = ["PARTS", "Differences", "diff", "show"]

PARTS = ("input", "parameter", "platform", "override", "result", "point", "rank", "stage")
INPUTS = ("kind", "model", "model_hash", "platform", "platform_hash", "mode", "seed", "fidelity", "network", "trace", "trace_hash",
          "scenario", "scenario_hash", "code_version", "simgrid_version")
RESULTS: Mapping[str, OutputField] = {
    **{o.path: o for o in outputs(Result).values() if o.kind != "part" and not o.effort},
    **{f"facts.{part}.{o.name}": o for part, row in (("section", SectionRow), ("startup", StartsRow)) for o in outputs(row).values()},
}
"""Where the row of a run has it -> a declared result that is compared."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Differences:
    """The differences between runs ``a`` and ``b`` (rows of `Store.run`)."""

    a: Mapping[str, Any]
    b: Mapping[str, Any]
    inputs: list[Row] = field(default_factory=list)
    results: list[Row] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    """Inputs that are equal."""
    unknown: list[str] = field(default_factory=list)
    """What can no longer be determined, such as the numbers of a platform whose file has changed since."""
    only: Mapping[str, int] = field(default_factory=dict)
    """Model -> number of parameters that the other model does not have; these have no rows."""

    @property
    def rows(self) -> list[Row]:
        """Inputs, then results."""
        return [*self.inputs, *self.results]

    @property
    def parts_at(self) -> int | None:
        """The first size (bytes) at which the curves differ; None if they do not, or there are none."""
        sizes = [r["size_B"] for r in self.results if r["part"] == "point"]
        return min(sizes) if sizes else None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _row(part: str, what: str, a: Any, b: Any, unit: str = "", **more: Any) -> Row:
    both = _number(a) and _number(b)
    return {
        "part": part, "what": what, "a": a, "b": b, "difference": b - a if both else None, "ratio": b / a if both and a else None,
        "unit": unit, "source_a": "", "source_b": "", **more,
    }


def show(row: Mapping[str, Any], side: str) -> str:
    """A side (``a``, ``b`` or ``difference``) of a row with its unit; "-" for a missing value."""
    value, unit = row[side], row["unit"]
    if value is None or value == "":
        return "-"
    if not _number(value) or not unit:
        return str(value)
    if unit == "B":
        return units.format_bytes(value) if value >= 0 else f"-{units.format_bytes(-value)}"
    if unit in ("B/s", "Hz", "flop/s", "s/B") and value < 0:
        return f"-{units.format_quantity(-value, unit)}"
    return units.format_quantity(float(value), unit)


def diff(store: Store, first: int, second: int) -> Differences:
    """The differences between two stored runs, by id; UsageError for an unknown id."""
    a, b = store.run(first), store.run(second)
    found = Differences(a, b, same=[k for k in INPUTS if a[k] == b[k]], only={})
    inputs = [_row("input", k, _short(k, a[k]), _short(k, b[k])) for k in INPUTS if a[k] != b[k]]
    inputs += _questions(a, b)
    unknown: list[str] = []
    parameters, only = _parameters(a, b)
    if a["platform_hash"] != b["platform_hash"]:
        platforms = [_platform_of(run, unknown) for run in (a, b)]
        if platforms[0] is not None and platforms[1] is not None:
            inputs += _platforms(platforms[0], platforms[1])
    inputs += parameters
    left, right = a["overrides"], b["overrides"]
    inputs += [_row("override", k, left.get(k), right.get(k)) for k in {**left, **right} if left.get(k) != right.get(k)]
    inputs.sort(key=lambda r: PARTS.index(r["part"]))
    results = [
        _row("result", k.removeprefix("facts."), x, y, o.unit) for k, o in RESULTS.items() if (x := fact_of(a, k)) != (y := fact_of(b, k))
    ]
    results += _points(store.points(first), store.points(second))
    results += _ranks(store.ranks(first), store.ranks(second))
    results += _stages(store.anatomy(first), store.anatomy(second))
    return Differences(a, b, inputs, results, found.same, list(dict.fromkeys(unknown)), only)


def _questions(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Row]:
    """Rows of what was asked beside the columns and differs, where both runs have kept it."""
    if a["question"] is None or b["question"] is None:
        return []
    left, right = (beside_columns(run) for run in (a, b))
    keys = [k for k in {**left, **right} if left.get(k) != right.get(k)]
    return [_row("input", f"question.{k}", _as_text(left.get(k)), _as_text(right.get(k))) for k in keys]


def _as_text(value: Any) -> Any:
    """A list or a table as JSON, any other value as it is."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def _short(key: str, value: Any) -> Any:
    return str(value)[:12] if key.endswith("_hash") else value


def _model(run: Mapping[str, Any]) -> type[RuntimeModel] | None:
    try:
        return registry.model(run["model"])
    except RetrompiError:
        return None


def _parameters(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[list[Row], dict[str, int]]:
    """Rows of the common parameters that differ; and the number of parameters that only one model has."""
    told = [_describe(run) for run in (a, b)]
    left, right = a["parameters"], b["parameters"]
    shared = [k for k in left if k in right and left[k] != right[k]]
    rows = []
    for key in shared:
        unit = next((d[key][0] for d in told if key in d), "")
        sources = [d.get(key, ("", ""))[1] for d in told]
        rows.append(_row("parameter", key, left[key], right[key], unit, source_a=sources[0], source_b=sources[1]))
    only = {a["model"]: len(left.keys() - right.keys()), b["model"]: len(right.keys() - left.keys())}
    return rows, {k: n for k, n in only.items() if n}


def _describe(run: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Parameter -> (unit, source), from the current model; the source only if the value is unchanged."""
    from retrompi.spec.model import model_values

    cls = _model(run)
    if cls is None:
        return {}
    try:
        sets = {k: v for k, v in run["overrides"].items() if not k.startswith("platform.")}
        rows = model_values(cls, sets).describe()
    except RetrompiError:
        rows = model_values(cls).describe()
    kept = run["parameters"]
    return {
        r["name"]: ("" if r["unit"] == "choice" else r["unit"], r["source"] if kept.get(r["name"]) == r["value"] else "changed since")
        for r in rows
    }


def _platform_of(run: Mapping[str, Any], unknown: list[str]) -> Platform | None:
    """The platform as the run had it; None, with an entry in ``unknown``, if its file has changed."""
    try:
        platform = registry.platform(run["platform"])
        sets = {k.removeprefix("platform."): v for k, v in run["overrides"].items() if k.startswith("platform.")}
        platform = platform.with_overrides(sets) if sets else platform
    except RetrompiError:
        unknown.append(f"the platform {run['platform']} of run {run['id']} is not here")
        return None
    if platform.hash != run["platform_hash"]:
        unknown.append(f"the platform {run['platform']} here is not that of run {run['id']} (changed since, or another file)")
        return None
    return platform


def _platforms(a: Platform, b: Platform) -> list[Row]:
    """Rows of the numbers that differ; a number with the same difference on every host is one row ``host.KEY``."""
    rows: dict[str, Row] = {}
    if (a.link.kind, a.link.shape) != (b.link.kind, b.link.shape):
        kinds = [f"{r.link.kind} {r.link.of_kind.text(r.link.shape)}".strip() for r in (a, b)]
        rows["link.kind"] = _row("platform", "link.kind", *kinds)
    if [h.name for h in a.hosts] != [h.name for h in b.hosts]:
        rows["hosts"] = _row("platform", "hosts", len(a.hosts), len(b.hosts), "count")
    for path in {**a.quantities, **b.quantities}:
        p, q = a.quantities.get(path), b.quantities.get(path)
        if p is None or q is None or p.value == q.value:
            continue
        rows[path] = _row("platform", path, p.value, q.value, p.unit, source_a=p.source, source_b=q.source)
    return _merge_hosts(rows, [h.name for h in a.hosts if h.name in {k.name for k in b.hosts}])


def _merge_hosts(rows: dict[str, Row], hosts: Sequence[str]) -> list[Row]:
    out: dict[str, Row] = {}
    for path, row in rows.items():
        host, _, key = path.rpartition(".")
        alike = [rows.get(f"{h}.{key}") for h in hosts]
        if host in hosts and len(hosts) > 1 and all(r is not None and (r["a"], r["b"]) == (row["a"], row["b"]) for r in alike):
            out.setdefault(f"host.{key}", {**row, "what": f"host.{key}"})
        else:
            out[path] = row
    return list(out.values())


def _points(a: Sequence[Row], b: Sequence[Row]) -> list[Row]:
    left, right = ({p["size_B"]: p["time_us"] for p in side} for side in (a, b))
    return [
        _row("point", f"time at {units.format_bytes(size)}", _seconds(left.get(size)), _seconds(right.get(size)), "s", size_B=size)
        for size in sorted({**left, **right})
        if left.get(size) != right.get(size)
    ]


def _seconds(time_us: float | None) -> float | None:
    return None if time_us is None else time_us * 1e-6


def _ranks(a: Iterable[Row], b: Iterable[Row]) -> list[Row]:
    left, right = ({r["rank"]: r for r in side} for side in (a, b))
    return [
        _row("rank", f"{name} of rank {rank}", x, y, o.unit, rank=rank)
        for rank in sorted({**left, **right})
        for name, o in outputs(RankRow).items()
        if (x := left.get(rank, {}).get(name)) != (y := right.get(rank, {}).get(name))
    ]


def _stages(a: Iterable[Row], b: Iterable[Row]) -> list[Row]:
    sums: list[dict[tuple[str, str], float]] = []
    for side in (a, b):
        total: dict[tuple[str, str], float] = {}
        for r in side:
            total[(r["stage"], r["process"])] = total.get((r["stage"], r["process"]), 0.0) + r["seconds"]
        sums.append(total)
    if not all(sums):
        return []  # only one of them has an anatomy
    left, right = sums
    rows = [
        _row("stage", f"{stage} ({process})", left.get((stage, process), 0.0), right.get((stage, process), 0.0), "s")
        for stage, process in {**left, **right}
        if left.get((stage, process), 0.0) != right.get((stage, process), 0.0)
    ]
    return sorted(rows, key=lambda r: -abs(r["difference"]))
