"""The subset of TI that SimGrid's SMPI replays."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.formats import Format, FormatOptions
from retrompi.convert.losses import PLACES, Losses
from retrompi.convert.same_messages import PlacedJob, refuse_changed_messages, refuse_lost_order
from retrompi.convert.ti import ONE_FILE
from retrompi.spec.declare.calls import BY_NAME, Family, is_nonblocking
from retrompi.traces import files
from retrompi.traces.errors import TraceError
from retrompi.traces.execution import JobExecution
from retrompi.traces.lines import COLLECTIVES, rank_lines, split
from retrompi.traces.matching import MatchedJob
from retrompi.traces.tracker import End

__all__ = ["FORMAT"]


def _write(trace: Trace, out: Path, losses: Losses, options: FormatOptions) -> None:
    remarks, counts = trace.smpi_losses()
    places: dict[tuple[str, str], list[str]] = {}
    for file, line, action, reason in remarks:
        places.setdefault((action, reason), []).append(f"{file}:{line}")
    if counts:
        _refuse_another_program(trace)
    for action, reason, omitted, count in counts:
        losses.add(action, reason, places.get((action, reason), [])[:PLACES], "lost" if omitted else "approximated", count)
    files.write(trace, out, shared=out.suffix in ONE_FILE, smpi=True)


def _refuse_another_program(trace: Trace) -> None:
    """Raises ``TraceError`` if the lines that SMPI's replay supports hang or match messages otherwise than the trace."""
    rows = [rank_lines(trace, r) for r in range(trace.ranks)]
    job = MatchedJob([texts for texts, _ in rows])
    place = PlacedJob(trace, job, [numbers for _, numbers in rows])

    def is_lost(rank: int, at: int, action: str) -> bool:
        if action not in COLLECTIVES:
            return True
        comm = int(split(job.lines[rank][at])[2].get("comm", 0))
        everybody = comm == 0 or (
            list(trace.communicator(comm).get("group", ())) == list(range(trace.ranks)) and not trace.communicator(comm).get("remote")
        )
        return not everybody or is_nonblocking(action) or BY_NAME[action].family is Family.NEIGHBOUR

    def left_out(end: End) -> bool:
        action, _, attributes = split(job.lines[end.rank][end.post])
        return (action == "start" and "req" not in attributes) or (action == "startall" and "reqs" not in attributes)

    refuse_lost_order(place, "SMPI's replay", is_lost)
    started = next((e for t in job.trackers for e in (*t.sends, *t.recvs) if left_out(e) and e.real), None)
    if started is not None:
        raise place.refuse(started, "SMPI's replay has no persistent requests, and without req= none can be told apart; name them")
    try:
        written = files.parse([trace.to_smpi(r) or f"{r} comm_size {trace.ranks}\n" for r in range(trace.ranks)], name="smpi")
    except TraceError as error:
        why = f"the lines that SMPI's replay supports are no program: {error}"
        raise TraceError(why, trace.files[0], code="lossy-conversion") from None
    after = MatchedJob([rank_lines(written, r)[0] for r in range(trace.ranks)])
    refuse_changed_messages(place, after, "SMPI's replay")
    _refuse_needed_buffers(place, after)


def _refuse_needed_buffers(place: PlacedJob, after: MatchedJob) -> None:
    """Raises ``TraceError`` if the trace runs only because sends are buffered that SMPI's replay knows as standard ones."""
    job = place.job

    def is_buffered(end: End) -> bool:
        return split(job.lines[end.rank][end.made])[0] in ("bsend", "ibsend", "bsendInit")

    first = next((s for t in job.trackers for s in t.sends if s.real and is_buffered(s)), None)
    if first is None or JobExecution(after, lambda end: True).stuck is None:
        return
    if JobExecution(job, lambda end: not is_buffered(end)).stuck is None:
        raise place.refuse(first, "SMPI's replay has no buffered sends; with sends that end when they are received this trace hangs")


FORMAT = Format("smpi", write=_write)
