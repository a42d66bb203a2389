"""Whether a conversion that loses communicators, tags or calls leaves every message to the receive that took it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrompi._engine import Trace
from retrompi.spec.declare.calls import CALLS, Family, names
from retrompi.traces.errors import TraceError
from retrompi.traces.lines import COLLECTIVES, split
from retrompi.traces.matching import MatchedJob
from retrompi.traces.tracker import End

__all__ = ["PlacedJob", "possible", "refuse_changed_messages", "refuse_lost_order"]

_SYNCHRONOUS = frozenset(name for call in CALLS if call.mode == "synchronous" for name in call.names)
_EPOCHS = frozenset(name for name in names(Family.EPOCH) if not name.startswith("Win_flush")) - {"Win_post"}


@dataclass(frozen=True)
class PlacedJob:
    """A job, and where its lines stand: ``numbers`` are those in the files of ``trace``, by rank."""

    trace: Trace
    job: MatchedJob
    numbers: Sequence[Sequence[int]]

    def of(self, rank: int, at: int) -> str:
        """``file:line``."""
        return f"{self.trace.files[rank]}:{self.numbers[rank][at]}"

    def refuse(self, end: End, why: str) -> TraceError:
        """The error that names a receive or send."""
        return TraceError(why, self.trace.files[end.rank], self.numbers[end.rank][end.post], code="lossy-conversion")


def orders_messages(job: MatchedJob, rank: int, at: int) -> str:
    """The action of a line whose only effect may be that what follows it is later than what came before it on another rank; empty for
    others. A probe that is followed by its receive is none: that receive waits as well."""
    lines = job.lines[rank]
    action, a, attributes = split(lines[at])
    if at in job.probes[rank]:
        following = (split(line) for line in lines[at + 1 :])
        then = next((x for x in following if x[0] not in ("#", "compute", "sleep", "kernel", "iprobe", "probe")), None)
        same = then is not None and then[0] == "recv" and then[1][:2] == a[:2] and then[2].get("comm") == attributes.get("comm")
        return "" if same else action
    if action in _SYNCHRONOUS or action in _EPOCHS or action in COLLECTIVES:
        return action
    return action if action.lower() in ("waitany", "waitsome") and "done" not in attributes else ""


def refuse_lost_order(place: PlacedJob, target: str, lost: Callable[[int, int, str], bool]) -> None:
    """Raises ``TraceError`` if the order of messages decides what a receive takes, and a call that may order them is lost.

    ``lost`` says of a rank, a line and its action whether ``target`` has no counterpart of it.
    """
    job = place.job
    receives = [r for t in job.trackers for r in t.recvs if not r.sure]
    if not receives:
        return
    first = min(receives, key=lambda r: (r.rank, r.post))
    for rank, lines in enumerate(job.lines):
        for at in range(len(lines)):
            action = orders_messages(job, rank, at)
            if action and lost(rank, at, action):
                raise place.refuse(
                    first,
                    f"which message this receive takes is decided by their order, and {target} loses the {action} of {place.of(rank, at)}, "
                    "which may order them; record what it took (from= and mtag=)",
                )


def refuse_changed_messages(place: PlacedJob, after: MatchedJob, target: str) -> None:
    """Raises ``TraceError`` unless every receive takes from the converted job ``after``, which has all messages of the original in the
    same order on each rank, what it takes from the original."""
    job = place.job
    new: dict[int, End] = {}  # id of an end of the original -> the one that it has become
    for old, made in zip(job.trackers, after.trackers, strict=True):
        for some, others in ((old.sends, made.sends), (old.recvs, made.recvs)):
            kept = [e for e in some if e.real]
            there = [e for e in others if e.real]
            if len(kept) != len(there):
                raise AssertionError(f"{target}: {len(kept)} messages of rank {old.rank} became {len(there)}")
            new |= {id(a): b for a, b in zip(kept, there, strict=True)}
            # Waits for one of several equal requests may be for another of them: what counts is how many are complete in the end.
            if sum(b.done is None for b in there) > sum(a.done is None for a in kept):
                a = next(a for a, b in zip(kept, there, strict=True) if a.done is not None and b.done is None)
                call = place.of(a.rank, a.done or 0)
                raise place.refuse(a, f"{target} loses the call that completes it, in {call}; record what it completed (done=)")
    for tracker in job.trackers:
        for r in tracker.recvs:
            if r.match is None:  # what it would take from others is seen at their receives
                continue
            now = new[id(r)]
            before, there = ([r.match] if r.match else [], [now.match] if now.match else []) if r.sure and now.sure else (
                possible(job, r), possible(after, now))
            was, becomes = {id(new[id(s)]) for s in before}, {id(s): s for s in there}
            if was != becomes.keys() or r.sure != now.sure:
                other = next((s for s in there if id(s) not in was), None)
                sent = next((s for s in (x for t in job.trackers for x in t.sends) if other is not None and new.get(id(s)) is other), None)
                what = f"could take the message of {place.of(sent.rank, sent.post)}" if sent is not None else "would lose its message"
                raise place.refuse(r, f"{target} matches messages by source and tag alone, where this receive {what}")


def possible(job: MatchedJob, receive: End) -> list[End]:
    """The messages of its communicator that a receive may take, by what the lines say of source and tag."""
    return [s for key, some in job.sent_to.get((receive.rank, receive.comm), {}).items() if receive.fits(*key) for s in some]
