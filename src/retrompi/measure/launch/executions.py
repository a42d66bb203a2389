"""Storing and loading an execution: a run of kind ``native``, ``smpi`` or ``program`` with its sections as points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.measure.launch.execution import KINDS, CallProfile, Execution, NativeMachine, Noise
from retrompi.measure.launch.stats import quantile
from retrompi.sim.cautions import stored_cautions
from retrompi.spec.question import canonical_hash
from retrompi.store.identity import RunSpec, code_version

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["MOST_TEXT", "facts", "load", "measured_spec", "points", "save"]

MOST_TEXT = 64 << 10
"""Characters of a program's output that are stored, at most."""
_FACTS = (
    "backend", "arguments", "mpi", "machine", "exit_code", "output", "errors", "samples_s", "sections", "parts",
    "calls", "profile_s", "noise",
    "notes", "cautions", "trace_folder",
)


def points(execution: Execution) -> list[dict[str, Any]]:
    """Its sections as points of a curve: size = label, time = median of the samples, repetitions = parts."""
    rows = []
    for label, samples in execution.sections.items():
        middle = quantile(samples, 0.5)
        rate = int(label) / middle / 1e6 if middle > 0 else 0.0
        rows.append({"size_B": int(label), "time_us": middle * 1e6, "bandwidth_MBps": rate, "repetitions": execution.parts.get(label, 1)})
    return rows


def facts(execution: Execution) -> dict[str, Any]:
    """The fields without a column of their own in the store, as plain values."""
    row = {**execution.row(), "trace_folder": execution.trace}
    row |= {name: row[name][:MOST_TEXT] for name in ("output", "errors")}
    # Calls are stored by column: each name once instead of once per row.
    row["calls"] = {f.name: [getattr(c, f.name) for c in execution.calls] for f in fields(CallProfile)} if execution.calls else {}
    return {k: row[k] for k in _FACTS}


def measured_spec(execution: Execution, digest: str) -> RunSpec:
    """The identity of a measurement: program, arguments and machine. ``digest``: of the program."""
    where = asdict(execution.machine) if execution.machine else {}
    where.pop("load", None)
    what = {"program": digest, "arguments": execution.arguments, "ranks": execution.ranks}
    return RunSpec(
        kind=KINDS[execution.backend], model=execution.mpi, model_hash=canonical_hash(execution.mpi), platform=where.get("host", ""),
        platform_hash=canonical_hash(where), mode=execution.mode, parameters={}, overrides={}, seed=0, fidelity=execution.fidelity,
        trace=execution.program, trace_hash=canonical_hash(what), scenario="", scenario_hash="", code_version=code_version(),
    )


def save(store: Store, spec: RunSpec, execution: Execution, more: Mapping[str, Any] | None = None) -> Execution:
    """Store a finished execution and return it with its ``run_id``. ``more``: additional columns and facts."""
    time_s = quantile(execution.samples_s, 0.5) if execution.samples_s else None
    result = {
        **facts(execution), "outcome": execution.outcome, "detail": execution.detail, "wall_s": execution.wall_s, "time_s": time_s,
        "ranks": execution.ranks, **(more or {}),
    }
    return replace(execution, run_id=store.add_run(spec, result, points=points(execution), fresh=True))


def load(store: Store, run_id: int) -> Execution:
    """The execution that `save` stored. Raises UsageError for a run of another kind."""
    run = store.run(run_id)
    if run["kind"] not in KINDS.values():
        raise UsageError(f"run {run_id} is a {run['kind']}, not one of a program (kinds {', '.join(KINDS.values())})", code="wrong-kind")
    kept = run["facts"]
    columns = kept.get("calls") or {}
    rows = zip(*(columns[f.name] for f in fields(CallProfile)), strict=True) if columns else ()
    simulated = run["kind"] != "native"
    return Execution(
        backend=kept["backend"],
        program=run["trace"],
        arguments=list(kept.get("arguments", [])),
        ranks=run["ranks"],
        mpi=kept.get("mpi", ""),
        machine=NativeMachine(**kept["machine"]) if kept.get("machine") else None,
        model=run["model"] if simulated else "",
        platform=run["platform"] if simulated else "",
        mode=run["mode"],
        fidelity=run["fidelity"],
        outcome=run["outcome"],
        detail=run["detail"],
        exit_code=kept.get("exit_code"),
        output=kept.get("output", ""),
        errors=kept.get("errors", ""),
        wall_s=run["wall_s"],
        samples_s=list(kept.get("samples_s", [])),
        sections={k: list(v) for k, v in kept.get("sections", {}).items()},
        parts=dict(kept.get("parts", {})),
        calls=[CallProfile(*row) for row in rows],
        profile_s=kept.get("profile_s"),
        noise=Noise(**kept["noise"]) if kept.get("noise") else None,
        notes=list(kept.get("notes", [])),
        cautions=stored_cautions(kept),
        trace=kept.get("trace_folder", ""),
        run_id=run_id,
    )
