"""The job of the replay page, independent of Dash, whose import takes a process long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from retrompi.base.translate import _
from retrompi.sim import simulate
from retrompi.sim.cautions import calibration, of_run, split
from retrompi.sim.computation import scale_of
from retrompi.sim.diagnosis import lines
from retrompi.sim.observe import Observe
from retrompi.sim.resolved import Resolved
from retrompi.sim.timeline import TimelineRequest
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import Counters, Ending, outputs
from retrompi.spec.question import Question, Replay
from retrompi.studio.anatomy.anatomy_job import sets_of
from retrompi.studio.anatomy.offered_traces import load

__all__ = ["perform", "sums"]

LIMIT_S = 1e6
"""Simulated seconds after which a replay ends, eleven days: no program of the studio's size computes longer."""
DRAWN = 60_000
"""The most states, calls and messages recorded of a run: about a megabyte of tiles for a browser."""
ROWS = 512
"""The most rows of a table, one a rank or process."""


def perform(report: Any, asked: Mapping[str, Any], path: str, label: str) -> dict[str, Any]:
    """Reads, simulates, draws. A program that hangs or aborts is a result, not an error."""
    report(0, 3, _("reading the trace"))
    trace, name = load(asked["trace"], asked["ranks"], asked["size"], path, label)

    from retrompi.render.timeline import timeline_page

    report(1, 3, _("simulating {ranks} ranks, {actions} calls").format(ranks=trace.ranks, actions=trace.actions))
    sets = sets_of(asked["set"])
    question = Question(asked["model"], asked["platform"], Replay(trace, name), asked["mode"], sets, limit_s=LIMIT_S)
    resolved = Resolved.of(question)
    scale = scale_of(resolved)
    beyond = calibration(asked["model"], asked["platform"], sizes=[trace.info()["largest_B"]], ranks=trace.ranks, sets=sets)
    result = simulate.run(resolved, Observe(timeline=TimelineRequest(limit=DRAWN)))
    report(2, 3, _("drawing"))
    cycle = result.diagnosis.get("cycle", ())
    out: dict[str, Any] = {
        "name": name,
        **{k: getattr(result, k) for k in (*outputs(Ending), *outputs(Counters), "wall_s")},
        **split([*of_run(resolved, result.cautions), *beyond]),
        "computation": scale.line if scale and not scale.assumed else "",
        "per_rank": result.per_rank[:ROWS],
        "waits": result.waits[:ROWS],
        "waiting": len(result.waits),
        "collectives": [c for c in result.collectives if c["calls"]],
        "told": [] if result.outcome == Outcome.COMPLETED else lines(result.outcome, result.detail, [], result.diagnosis),
        "cycle": [{k: row.get(k) for k in ("process", "file", "line", "action", "waits_for")} for row in cycle[:ROWS]],
        "closed": bool(result.diagnosis.get("closed")),
    }
    if result.timeline is not None:
        t = result.timeline
        out["notes"] = t.notes()
        out["chart"] = timeline_page.alone(t)
        figures = {what: timeline_page.matrix_figure(t, what) for what in ("bytes", "messages")} if t.traffic else {}
        out["figures"] = {k: json.loads(f.to_json()) for k, f in figures.items()}
        out["sums"] = sums(result.timeline)
    return out


def sums(t: Any) -> list[dict[str, Any]]:
    """For the first `ROWS` processes: their shares of the run in each kind of state."""
    from retrompi.render.timeline.timeline_view import order
    from retrompi.sim.timeline.kinds import KINDS

    rows = []
    for i in order(t)[:ROWS]:
        p = t.processes[i]
        whole = sum(p.totals.values()) or 1
        shares = {name: sum(p.totals.get(s, 0) for s in states) / whole for name, _, _, states in KINDS}
        rows.append({"process": p.name, "host": p.host, **{k: v for k, v in shares.items() if v >= 0.0005}})
    return rows
