"""A timeline as JSON (columns, read back by `Timeline.from_row`) and as one flat CSV table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrompi.base.csv_safe import write_rows
from retrompi.sim.timeline import PS, Timeline, call_name

__all__ = ["COLUMNS", "LOSS_CSV", "records", "write_csv", "write_json"]

COLUMNS = (
    "kind", "process", "host", "begin_ps", "end_ps", "begin_s", "end_s", "name", "file", "line", "source", "destination", "tag", "comm",
    "bytes", "sampled",
)
LOSS_CSV = ("the traffic between ranks and the sums by state (JSON has them)", "which calls had not returned when the run ended")


def write_json(timeline: Timeline, path: Path) -> list[str]:
    """Write the whole timeline as one JSON object. Nothing is lost; returns how the run was sampled."""
    path.write_text(json.dumps({"notes": timeline.notes(), **timeline.row()}, separators=(",", ":")) + "\n", encoding="utf-8")
    return timeline.notes()


def records(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Flat rows: states, calls, messages and hops; ``sampled``: a state that merges several."""
    t = timeline
    for p in t.processes:
        for begin, end, state, merged in p.states():
            yield {"kind": "state", "process": p.name, "host": p.host, "begin_ps": begin, "end_ps": end, "name": t.states[state],
                   "sampled": merged}
    c, host = t.calls, {p.name: p.host for p in t.processes}
    for i in range(len(c)):
        rank = f"rank {c.rank[i]}"
        yield {"kind": "call", "process": rank, "host": host[rank], "begin_ps": c.begin[i], "end_ps": c.end[i],
               "name": call_name(t.ops[c.op[i]], c.peer[i], c.tag[i], c.bytes[i]), "file": t.files[c.rank[i]], "line": c.line[i],
               "comm": _comm(t, c.comm[i]), "bytes": c.bytes[i]}
    m = t.messages
    for i, path in enumerate(m.paths()):
        shared = {"source": m.source[i], "destination": m.destination[i], "tag": m.tag[i], "comm": _comm(t, m.context[i] // 2),
                  "bytes": m.bytes[i], "file": t.files[m.source[i]], "line": m.line[i]}
        came = m.received[i] if m.received[i] >= 0 else None
        yield {"kind": "message", "name": "of a collective" if m.context[i] % 2 else "", "begin_ps": m.sent[i], "end_ps": came, **shared}
        for process, entered, left in path:
            p = t.processes[process]
            yield {"kind": "hop", "process": p.name, "host": p.host, "begin_ps": entered, "end_ps": left if left >= 0 else None, **shared}


def _comm(t: Timeline, place: int) -> int:
    return t.comms[place][0] if place < len(t.comms) else 0


def _ends(row: Mapping[str, Any]) -> dict[str, float]:
    return {f"{k}_s": row[f"{k}_ps"] * PS for k in ("begin", "end") if row[f"{k}_ps"] is not None}


def write_csv(timeline: Timeline, path: Path) -> list[str]:
    """Write one table of all records; returns what the format cannot express."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        write_rows(handle, COLUMNS, ({**row, **_ends(row)} for row in records(timeline)))
    return [*LOSS_CSV, *timeline.notes()]
