"""From a recording to a model and a platform: thresholds, segments, overheads, and the errors at sizes that the fit did not see."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import toml as toml_text
from retrompi.base.units import PS
from retrompi.measure import fit as curve_fit
from retrompi.measure.this_machine import estimate, mpich4, plan, switches
from retrompi.measure.this_machine.estimate import Estimate
from retrompi.measure.this_machine.recording import MachineRecording

if TYPE_CHECKING:
    from retrompi.measure.fit import SegmentFit
    from retrompi.sim.sampling import Sample

__all__ = ["FittedRecording", "PairKindFit", "fit", "summary", "write"]

BY = "retrompi calibrate this-machine"
FIT = "fit: measured by 'retrompi calibrate this-machine'"
MOST_SEGMENTS = 16
_WORDS = {"mpich": "MPICH", "openmpi": "Open MPI"}


_WORK = {
    "call": f"{FIT}: the call on MPI_COMM_SELF",
    "combine": f"{FIT}: MPI_Reduce_local of doubles, MPI_SUM",
    "buffers": f"{FIT}: memory taken, filled and given back, less the same copies between ordinary buffers",
}


@dataclass(frozen=True)
class PairKindFit:
    """One pair kind: its fit, the curve of all columns, its limits, and the measured times for validation."""

    fit: SegmentFit
    sample: Sample
    limit: switches.Behaviour
    steps: tuple[switches.CurveStep, ...]
    seen: Mapping[int, Estimate]
    held_out: Mapping[int, Estimate]
    sources: Mapping[str, str]

    def rows(self) -> list[dict[str, Any]]:
        """size_B, measured_us, low_us, high_us (middle 80 % of all batches), fitted_us, error, deviation, seen; in order of size."""
        times = [(s, e, True) for s, e in self.seen.items()] + [(s, e, False) for s, e in self.held_out.items()]
        return [
            {
                "size_B": s,
                "measured_us": e.value * 1e6,
                "low_us": e.low * 1e6,
                "high_us": e.high * 1e6,
                "fitted_us": self.fit.time(s) * 1e6,
                "error": self.fit.time(s) / e.value - 1,
                "deviation": e.deviation,
                "seen": seen,
            }
            for s, e, seen in sorted(times, key=lambda x: x[0])
        ]


@dataclass(frozen=True)
class FittedRecording:
    """All pair kinds of a recording and the host's properties."""

    recording: MachineRecording
    kinds: Mapping[str, PairKindFit]
    costs: Mapping[str, float]
    levels: Sequence[Mapping[str, Any]]
    rates: Mapping[str, float]
    work: Mapping[str, Mapping[int, float]]


def fit(recording: MachineRecording) -> FittedRecording:
    """The fit of the whole recording. It reads no size of ``plan.HELD_OUT``."""
    kinds = {kind: _kind(recording, kind) for kind in recording.rows}
    levels = estimate.levels(estimate.copies(recording), recording.facts.get("caches", []))
    return FittedRecording(recording, kinds, estimate.costs(recording), levels, estimate.rates(recording), estimate.work(recording))


def _kind(recording: MachineRecording, kind: str) -> PairKindFit:
    limit = plan.limits_from(recording.rows[kind])
    # A program has just written the data it sends, so their cache lines are those of the sending core; recordings without an echo, where
    # one buffer was sent repeatedly, are used as they are.
    times = estimate.times(recording, "echo", kind) or estimate.times(recording, "pingpong", kind)
    seen = {s: e for s, e in times.items() if s not in plan.HELD_OUT}
    held = {s: e for s, e in times.items() if s in plan.HELD_OUT}
    steps: tuple[switches.CurveStep, ...] = ()
    if kind == "same":
        samples = {s: [estimate.one_way(v) for v in r] for s, r in recording.of("pingpong").items() if s in seen}
        before = {s: v for s, v in samples.items() if s in plan.FIT_SIZES or s in (limit.size, (limit.size or 0) - 1)}
        steps = tuple(switches.find(plan.recorded_probe(recording), sorted(before), before))
    pins = {s.size for s in steps if s.kind == "step" and s.low == s.high}
    if limit.size is not None and limit.size - 1 in seen:
        pins.add(limit.size)
    sizes = sorted(seen)
    found = curve_fit.fit(
        sizes,
        [seen[s].value for s in sizes],
        spread=[seen[s].deviation for s in sizes],
        thresholds=sorted(p for p in pins if sizes[0] < p <= sizes[-1]),
        max_segments=MOST_SEGMENTS,
    )
    parts = _parts(recording, kind, limit)
    sample = curve_fit.sample_of(found, parts, connect_s=estimate.first_use(recording, kind))
    return PairKindFit(found, sample, limit, steps, seen, held, parts.column_sources())


def _parts(recording: MachineRecording, kind: str, limit: switches.Behaviour) -> curve_fit.Parts:
    times = estimate.times(recording, "pingpong", kind) or estimate.times(recording, "echo", kind)
    sends, back = (estimate.median_times(recording, what, kind) for what in ("send", "send_back"))
    send = {s: (t + back.get(s, t)) / 2 for s, t in sends.items()}
    recv = estimate.median_times(recording, "late", kind)
    if limit.size is not None:
        # A rendezvous sender is blocked until the receiver has copied everything: the receiver's work lies inside that time.
        recv = {s: t for s, t in recv.items() if s < limit.size} | {limit.size: 0.0, plan.TOP: 0.0}
    exchange = estimate.times(recording, "exchange", kind)
    both = {s: max(0.0, e.value - times[s].value) for s, e in exchange.items() if s in times}
    gap = estimate.stream_gap(recording, "stream", kind)
    measured = {"send": send, "recv": recv, "gap": gap, "both": both}
    sources = {
        "send": f"{FIT}: time inside the sends of a PingPong",
        "recv": f"{FIT}: receives of messages that had arrived",
        "gap": f"{FIT}: what a message adds to a stream",
        "both": f"{FIT}: an exchange in both directions at once less a message in one",
    }
    measured = {k: v for k, v in measured.items() if v}
    if kind == "remote" and gap:
        measured["port"] = gap
        sources["port"] = f"{FIT}: a stream of one pair, the only one there is"
    return curve_fit.Parts(measured, {k: sources[k] for k in measured}, remote=kind == "remote")


def error_summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Count, median, 95th percentile, largest and signed median of the errors of rows; {} without rows."""
    errors = sorted(abs(r["error"]) for r in rows)
    if not errors:
        return {}
    from retrompi.measure.launch.stats import quantile

    return {"sizes": len(errors), "median": statistics.median(errors), "p95": quantile(errors, 0.95), "worst": errors[-1],
            "signed_median": statistics.median(r["error"] for r in rows)}


def summary(found: FittedRecording) -> dict[str, Any]:
    """All results for --json: machine, noise, limits, steps, segments, errors seen and held out, levels, costs, rates."""
    kinds = {}
    for name, k in found.kinds.items():
        rows = k.rows()
        kinds[name] = {
            "eager_limit": k.limit.row(),
            "steps": [s.row() for s in k.steps],
            "segments": [s.row() for s in k.fit.segments],
            "errors_seen": error_summary([r for r in rows if r["seen"]]),
            "errors_held_out": error_summary([r for r in rows if not r["seen"]]),
            "points": rows,
        }
    return {"machine": found.recording.facts, "kinds": kinds, "levels": [dict(x) for x in found.levels], "costs_s": dict(found.costs),
            "rates_flops": dict(found.rates), "work_s": {k: dict(v) for k, v in found.work.items()},
            "first_use_s": {k: x.sample.connect * PS for k, x in found.kinds.items()}}


def write(found: FittedRecording, folder: Path, platform_file: Path) -> None:
    """Writes the model into ``folder`` (whose name is the model's) and the platform into ``platform_file``, with its fit beside it."""
    facts = found.recording.facts
    family = facts["family"]
    eager = {}
    for kind, k in found.kinds.items():
        size = k.limit.size
        text = f"{FIT}: bisection on what a send does while its receiver is away, {k.limit.agree} of {k.limit.trials} the same"
        eager[kind] = (size, text, k.limit.low, k.limit.high) if size is not None else (None, "assumed: no send waited up to 4 MiB")
    curve_fit.ModelFiles(
        name=folder.name,
        samples={kind: k.sample for kind, k in found.kinds.items()},
        title=f"{facts['mpi']} on this machine",
        version=facts["mpi"].partition(" ")[2] or facts["mpi"],
        years="2020s",
        summary=f"{facts['mpi']} ({facts['device'] or _WORDS.get(family, family)}) as measured between two ranks of {facts['cpu']}",
        platform=platform_file.stem,
        source=FIT,
        eager=eager,
        test=(found.costs.get("test", 1e-7), f"{FIT}: MPI_Test of a request that stays open"),
        seen={kind: sorted(k.seen) for kind, k in found.kinds.items()},
        held_out={kind: sorted(k.held_out) for kind, k in found.kinds.items()},
        fits={kind: k.fit for kind, k in found.kinds.items()},
        sources=found.kinds["same"].sources,
        collectives=mpich4.TABLE if family == "mpich" else None,
        work={what: (sizes, _WORK[what.partition(" ")[0]]) for what, sizes in found.work.items()},
        communicators=mpich4.MAKING if family == "mpich" else None,
        meta={
            "line_ns": facts.get("state", {}).get("line_ns", 0.0),
            "machine": {k: facts[k] for k in ("host", "cpu", "cores", "mpi") if k in facts},
        },
        extra={f"{kind}-held-out": {f"{r['size_B']} B": {k: r[k] for k in ("measured_us", "fitted_us", "error")}
                                    for r in k.rows() if not r["seen"]} for kind, k in found.kinds.items()},
        by=BY,
        note="" if family == "mpich" else "collectives: MPICH 1's, since nothing of this library was read",
    ).write(folder)
    _write_platform(found, platform_file)


def _rate(levels: Sequence[Mapping[str, Any]], low: float, high: float) -> float | None:
    """The rate of the level that covers most of the working sets low..high (in octaves); None if nothing was measured there."""
    def overlap(row: Mapping[str, Any]) -> float:
        a, b = max(low, row["low_B"] / 1.42), min(high, row["high_B"] * 1.42)
        return math.log2(b / a) if b > a else 0.0

    best = max(levels, key=overlap, default=None)
    return float(best["rate_Bps"]) if best is not None and overlap(best) > 0 else None


def _flops(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The rate of computation, measured as recording measures it; a recording from before that has none."""
    if "flops" in facts:
        return f"{facts['flops'] * 1e-6:.6g} Mflop/s", "doc: docs/recording.md: measured, mean of the maxima of the 17 Rinf1 loops"
    return "1000 Mflop/s", "assumed: this calibration timed no loops; 'retrompi calibrate this-machine' does"


def _write_platform(found: FittedRecording, file: Path) -> None:
    facts = found.recording.facts
    by_level = {c["level"]: c for c in facts.get("caches", [])}
    known: dict[str, tuple[str, str]] = {
        "cores": (str(facts["cores"]), "doc: the cores the kernel gives a process (sched_getaffinity)"),
        "flops": _flops(facts),
    }
    measured: dict[str, str] = {}
    if facts.get("clock_Hz"):
        known["clock"] = (f"{facts['clock_Hz'] / 1e6:.0f} MHz", "doc: /proc/cpuinfo")
    for key, level in (("l1", 1), ("l2", 2)):
        if level in by_level:
            known[key] = (f"{by_level[level]['size_B'] // 1024} KiB", "doc: sysfs, cpu/cache")
    if 2 in by_level:
        known["l2_ways"] = (str(by_level[2]["ways"]), "doc: sysfs, cpu/cache")
        known["l2_shared_by"] = (str(by_level[2]["shared_by"]), "doc: sysfs, cpu/cache")
    known["package_cores"] = (str(facts["cores"]), "assumed: one package")
    l1, l2 = (by_level.get(n, {}).get("size_B", 0) for n in (1, 2))
    last = max((c["size_B"] for c in by_level.values()), default=0)
    for key, low, high in (("copy_l1", 4096, l1), ("copy_l2", 2 * l1, l2), ("copy_mem", 1.5 * last, 1 << 40)):
        rate = _rate(found.levels, low, high) if high > low else None
        if rate is not None:
            measured[key] = f"{rate / 1e9:.3f} GB/s"
    costs = found.costs
    if "syscall" in costs:
        measured["syscall"] = f"{costs['syscall'] * 1e9:.1f} ns"
    if "switch" in costs:
        measured["dispatch"] = f"{max(0.0, costs['switch'] - 2 * costs.get('syscall', 0.0)) * 1e9:.0f} ns"
    if "line" in costs:
        measured["line_bus"] = f"{costs['line'] * 1e9:.1f} ns"
    known |= {k: (v, FIT) for k, v in measured.items()}
    curve_fit.IdealPlatform(
        name=file.stem,
        title=f"This machine: {facts['cpu']}, {facts['cores']} cores",
        summary=f"measured by '{BY}': {facts['cpu']}, {facts['system']}, {facts['mpi']}",
        years="2020s",
        hosts=2 if "remote" in found.kinds else 1,
        known=known,
        os=facts["system"],
        by=BY,
    ).write(file)
    values = {f"host.{k}": v for k, v in measured.items()}
    beside = file.with_name(f"{file.stem}.fit.toml")
    beside.write_text(toml_text.tables(BY, {"fit": {"values": values}}), encoding="utf-8")
