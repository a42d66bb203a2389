"""GOAL export: a trace as a schedule for LogGOPSim."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.goal.collectives import expand
from retrompi.convert.losses import Losses
from retrompi.traces.errors import TraceError
from retrompi.traces.lines import COLLECTIVES, FAMILIES, ONE_SIDED, PERSISTENT, RECVS, SENDS, rank_lines, split
from retrompi.traces.matching import ANY_SOURCE, ANY_TAG, End, Job, Request, Tracker

__all__ = ["goal_text", "write_goal"]

COLLECTIVE_TAGS = 1 << 30
"""First tag of collectives' messages, one tag per collective of the communicator; a trace's own tags above it are refused."""
MODES = {"Ssend", "ssend", "ISsend", "issend", "bsend", "ibsend", "rsend", "irsend", "ssendInit", "bsendInit", "rsendInit"}


def write_goal(trace: Trace, path: Path, losses: Losses, *, rate: float = 1e9) -> None:
    """Write ``trace`` as a GOAL schedule; ``rate`` in flop/s converts operations into ns. Losses are added to ``losses``."""
    try:
        path.write_text(goal_text(trace, losses, rate=rate), encoding="utf-8")
    except OSError as e:
        raise TraceError(f"cannot be written: {e.strerror or e}", str(path), code="unwritable-file") from e


def goal_text(trace: Trace, losses: Losses, *, rate: float = 1e9) -> str:
    """The schedule as text; see `write_goal`."""
    rows = [rank_lines(trace, r) for r in range(trace.ranks)]
    job = Job([texts for texts, _ in rows])
    tags = _Tags(job)
    out = [f"num_ranks {trace.ranks}\n"]
    for rank in range(trace.ranks):
        out += ["\n", f"rank {rank} {{\n", *_Writer(trace, job, rank, rows[rank][1], tags, losses, rate).lines(), "}\n"]
    return "".join(out)


class _Tags:
    """GOAL has no communicators: where a trace sends on several, every (communicator, tag) pair is mapped to a distinct tag."""

    def __init__(self, job: Job) -> None:
        ends = [e for t in job.trackers for e in (*t.sends, *t.recvs)]
        self.plain = all(e.comm == 0 for e in ends)
        self.numbers: dict[tuple[int, int], int] = {}
        if not self.plain:
            for comm, tag in sorted({(e.comm, e.tag) for e in ends if e.tag >= 0}):
                self.numbers[comm, tag] = len(self.numbers)

    def of(self, comm: int, tag: int) -> int | None:
        """The tag in the schedule; None where it is not determined (any tag of one communicator among several)."""
        if tag == ANY_TAG:
            return -1 if self.plain else None
        return tag if self.plain else self.numbers[comm, tag]


class _Writer:
    """One rank's schedule.

    A blocking call requires the previous blocking call; a call that only posts requires the previous blocking call and follows the
    previous posting by irequires; a wait makes the next call require the operations that were waited for.
    """

    def __init__(self, trace: Trace, job: Job, rank: int, numbers: list[int], tags: _Tags, losses: Losses, rate: float) -> None:
        self.trace = trace
        self.job = job
        self.rank = rank
        self.numbers = numbers
        self.tags = tags
        self.losses = losses
        self.ns = 1e9 / rate
        self.out: list[str] = []
        self.count = 0
        self.before: list[int] = []  # what the next operation requires
        self.posted: int | None = None  # the operation started last
        self.of_request: dict[int, list[int]] = {}  # line of the posting -> operations
        self.turn: dict[int, int] = {}
        # By line: its index among all collective calls of its communicator, as `Job` counts them.
        self.turns = {members[rank]: turn for (_, turn), members in job.collectives.items() if rank in members}
        self.at = 0

    def place(self) -> str:
        return f"{self.trace.files[self.rank]}:{self.numbers[self.at]}"

    def op(self, text: str, *, blocking: bool = True) -> int:
        self.count += 1
        me = self.count
        self.out.append(f"l{me}: {text}\n")
        if len(self.before) > 4:  # one joining node instead of many edges: the schedule's size stays proportional to the trace's
            self.out[-1] = f"l{me}: calc 0\n"
            self.out += [f"l{me} requires l{b}\n" for b in self.before]
            self.before, self.posted = [me], None
            return self.op(text, blocking=blocking)
        self.out += [f"l{me} requires l{b}\n" for b in self.before]
        if self.posted is not None and self.posted not in self.before:
            self.out.append(f"l{me} irequires l{self.posted}\n")
        self.posted = me
        if blocking:
            self.before = [me]
        return me

    def wait(self, ops: Sequence[int]) -> None:
        """The next operation requires ``ops`` as well."""
        self.before = list(dict.fromkeys([*self.before, *ops]))

    def lines(self) -> list[str]:
        tracker = Tracker(self.rank)
        for at, line in enumerate(self.job.lines[self.rank]):
            self.at = at
            target = tracker.target(line) if line.split(None, 2)[1:2] in (["wait"], ["test"]) else None
            done = tracker.line(at, line)
            self.line(line, tracker, done, target)
        return self.out

    def line(self, line: str, tracker: Tracker, done: list[Request], target: Request | None) -> None:
        action, a, attributes = split(line)
        if action in ("#", "init", "finalize", "requestFree") or action in PERSISTENT:
            if action in MODES:
                self.losses.add(action, "GOAL has one mode of sending", self.place(), "approximated")
        elif action == "compute":
            self.op(f"calc {round(float(a[0]) * self.ns)}")
        elif action == "sleep":
            self.op(f"calc {round(float(a[0]) * 1e9)}")
            self.losses.add(action, "becomes a calculation", self.place(), "approximated")
        elif action in SENDS or action in RECVS or action == "sendRecv" or action in ("start", "startall"):
            self.messages(action, tracker)
        elif action in ("wait", "test") or action in FAMILIES:
            self.completion(action, attributes, done, target)
        elif action in COLLECTIVES:
            self.collective(action, a, attributes)
        elif action in ("probe", "iprobe"):
            self.losses.add(action, "GOAL has no probe", self.place())
        elif action in ONE_SIDED or action.startswith(("Win_", "win_")):
            self.losses.add(action, "GOAL has no one-sided communication", self.place())
        elif action.startswith(("comm_", "cart_", "graph_", "intercomm_")):
            self.losses.add(action, "making a communicator is not in the schedule", self.place(), "approximated")
        else:
            self.losses.add(action, "has no counterpart in GOAL", self.place())

    def messages(self, action: str, tracker: Tracker) -> None:
        ends = [(kind, e) for kind, some in (("send", tracker.sends), ("recv", tracker.recvs)) for e in _last(some, self.at)]
        blocking = action in ("send", "recv", "Ssend", "ssend", "bsend", "rsend")
        if action in MODES:
            self.losses.add(action, "GOAL has one mode of sending", self.place(), "approximated")
        ops = []
        for kind, e in ends:
            text = self.message(kind, e)
            if text is not None:
                ops.append(self.op(text, blocking=blocking))
        if action == "sendRecv":
            self.wait(ops)
        elif not blocking:
            self.of_request.setdefault(self.at, []).extend(ops)

    def message(self, kind: str, e: End) -> str | None:
        if e.peer < 0 and e.peer != ANY_SOURCE:
            return None  # MPI_PROC_NULL
        tag = self.tags.of(e.comm, e.tag)
        if tag is None:
            self.losses.add("recv", "any tag of one communicator among several: taken as any at all", self.place(), "approximated")
            tag = -1
        if tag >= COLLECTIVE_TAGS:
            raise TraceError(f"tag {tag} is needed for collectives; GOAL out takes tags below {COLLECTIVE_TAGS}",
                             self.trace.files[self.rank], self.numbers[self.at])  # fmt: skip
        size = e.bytes
        if kind == "recv" and e.match is None:
            # The tracker of this pass has no matches; the job's has.
            found = next((o for o in _last(self.job.trackers[self.rank].recvs, self.at) if o.peer == e.peer and o.tag == e.tag), None)
            size = found.match.bytes if found is not None and found.match is not None else max(size, 0)
        peer = -1 if e.peer == ANY_SOURCE else e.peer
        return f"{kind} {size}b {'to' if kind == 'send' else 'from'} {peer} tag {tag}"

    def completion(self, action: str, attributes: dict[str, str], done: list[Request], target: Request | None) -> None:
        if not done:
            if action.startswith(("test", "waitAny", "waitany", "waitsome")) and (action != "test" or target is not None):
                what = "that completed nothing, or does not say what: left out"
                self.losses.add(action, what, self.place(), "approximated")
            return
        self.wait([op for r in done for op in self.of_request.pop(r.post, [])])

    def collective(self, action: str, a: list[str], attributes: dict[str, str]) -> None:
        comm = int(attributes.get("comm", 0))
        group = list(range(self.trace.ranks)) if comm == 0 else list(self.trace.communicator(comm).get("group", ()))
        turn = self.turn[comm] = self.turn.get(comm, -1) + 1
        members = self.job.collectives[("comm", comm), self.turns[self.at]]
        if (
            self.rank not in group
            or action.removeprefix("i").startswith("neighbor")
            or (comm and self.trace.communicator(comm).get("remote"))
        ):
            self.losses.add(action, "is not expanded into messages", self.place())
            return

        def counts(r: int) -> list[int]:
            at = members.get(group[r])
            if at is None:
                raise TraceError(f"{action}: rank {group[r]} does not take part", self.trace.files[self.rank], self.numbers[self.at])
            return [int(float(x)) for x in split(self.job.lines[group[r]][at])[1]]

        try:
            steps = expand(action, a, group.index(self.rank), len(group), counts)
        except (IndexError, ValueError):
            steps = None
        if steps is None:
            self.losses.add(action, "is not expanded into messages", self.place())
            return
        self.losses.add(action, "becomes messages: trees, rings and chains", self.place(), "approximated")
        tag = COLLECTIVE_TAGS + comm * 65536 + turn % 65536
        for step in steps:
            ops = []
            for kind, peer, size in step:
                ops.append(self.op(f"{kind} {size}b {'to' if kind == 'send' else 'from'} {group[peer]} tag {tag}", blocking=False))
            self.wait(ops)


def _post(end: End) -> int:
    return end.post


def _last(ends: Sequence[End], at: int) -> list[End]:
    """The operations posted at line ``at``, from a list in line order."""
    return list(ends[bisect_left(ends, at, key=_post) : bisect_right(ends, at, key=_post)])
