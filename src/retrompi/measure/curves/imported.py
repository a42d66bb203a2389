"""Measured curves in the store: runs of kind ``measured`` with their points and provenance."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError, nearest
from retrompi.measure.curves.series import Measured, Point, Provenance
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import canonical_hash
from retrompi.store.identity import RunSpec, code_version

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["default_label", "save", "series_of", "stored_rows"]


def default_label(series: Measured) -> str:
    """Tool, version and benchmark."""
    tool = f"{series.provenance.tool} {series.provenance.version}".strip()
    ranks = f", {series.ranks} ranks" if series.ranks not in (None, 2) else ""
    return f"{series.what} ({tool}{ranks}, {series.provenance.file})"


def _spec(series: Measured, label: str, number: int) -> RunSpec:
    p = series.provenance
    declared = {"what": series.what, "ranks": series.ranks, "units": p.units, "host": p.host, "date": p.date, "by": p.by, "label": label}
    rows = [point.row() for point in series.points]
    return RunSpec(
        kind="measured",
        model=label[:80],
        model_hash="",
        platform=p.host[:80],
        platform_hash="",
        mode=series.what,
        parameters={},
        overrides={},
        seed=0,
        fidelity="",
        trace=p.file,
        trace_hash=canonical_hash({"file": p.sha256, "number": number, "declared": declared, "points": rows}),
        scenario="",
        scenario_hash="",
        code_version=code_version(),
    )


def save(store: Store, series: Measured, *, label: str = "", number: int = 1) -> tuple[int, bool]:
    """Store a curve; returns (run id, whether it was already stored). ``number`` distinguishes the tables of one file."""
    name = label or default_label(series)
    spec = _spec(series, name, number)
    known = store.find_run(spec.identity)
    if known is not None:
        return known, True
    facts = {
        "outcome": Outcome.COMPLETED,
        "ranks": series.ranks,
        "label": name,
        "what": series.what,
        "provenance": asdict(series.provenance),
        "pairs": series.pairs,
        "window": series.window,
        "columns": [point.row() for point in series.points],
    }
    rows = [{k: getattr(p, k) for k in ("size_B", "time_us", "bandwidth_MBps", "repetitions")} for p in series.points]
    return store.add_run(spec, facts, points=rows), False


def stored_rows(store: Store) -> list[dict[str, Any]]:
    """All stored curves as rows id, label, what, ranks, points, from_B, to_B, tool, version, units, host, date, file, sha256, by, said,
    created."""
    out = []
    for run in store.runs(kind="measured"):
        facts = run["facts"]
        p = facts.get("provenance", {})
        sizes = [int(c["size_B"]) for c in facts.get("columns", ())]
        out.append(
            {
                "id": run["id"],
                "label": facts.get("label", run["model"]),
                "what": facts.get("what", run["mode"]),
                "ranks": run["ranks"],
                "points": len(sizes),
                "from_B": min(sizes, default=None),
                "to_B": max(sizes, default=None),
                **{k: p.get(k, "") for k in ("tool", "version", "units", "host", "date", "file", "sha256", "by", "said")},
                "created": run["created"],
            }
        )
    return out


def series_of(store: Store, which: str) -> Measured:
    """A stored measured curve as it was read, by run id or label. Raises UsageError when there is none."""
    known = {row["label"]: row["id"] for row in stored_rows(store)}
    if not which.isdigit() and which not in known:
        raise UsageError(f"no measured curve '{which}': neither a file, nor a run, nor a label{nearest(which, known)}", code="unknown-name")
    run = store.run(int(which) if which.isdigit() else known[which])
    facts = run["facts"]
    if run["kind"] != "measured":
        raise UsageError(
            f"run {run['id']} is of kind {run['kind']}; a curve is one that 'retrompi measured import' has stored", code="wrong-kind"
        )
    own = set(Point.__dataclass_fields__) - {"more"}
    points = tuple(
        Point(**{k: v for k, v in row.items() if k in own}, more={k: v for k, v in row.items() if k not in own}) for row in facts["columns"]
    )
    p = dict(facts["provenance"])
    return Measured(
        facts["what"], points, Provenance(**{**p, "said": tuple(p.get("said", ()))}), run["ranks"], facts.get("pairs"), facts.get("window")
    )
