"""GOAL export: a trace as a schedule for LogGOPSim."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.goal.collectives import expand
from retrompi.convert.goal.file import operations_of
from retrompi.convert.losses import Effect, Losses
from retrompi.traces.errors import TraceError
from retrompi.traces.lines import COLLECTIVES, FAMILIES, ONE_SIDED, PERSISTENT, RECVS, SENDS, rank_lines, split
from retrompi.traces.matching import ANY_SOURCE, ANY_TAG, End, Job, Request, Tracker

__all__ = ["goal_text", "write_goal"]

COLLECTIVE_TAGS = 1 << 30
"""First tag of collectives' messages, or the one above the tags of the trace: one a collective of the communicator."""
LAST_TAG = (1 << 31) - 1
AT_ONCE = "posted and waited for at once: becomes one blocking call"
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
    """GOAL has no communicators: every pair of a communicator other than MPI_COMM_WORLD and a tag becomes a tag of its own."""

    def __init__(self, job: Job) -> None:
        ends = [e for t in job.trackers for e in (*t.sends, *t.recvs)]
        self.plain = all(e.comm == 0 for e in ends)
        free = 1 + max((e.tag for e in ends if e.comm == 0), default=-1)
        others = sorted({(e.comm, e.tag) for e in ends if e.comm != 0 and e.tag >= 0})
        self.numbers = {pair: free + number for number, pair in enumerate(others)}
        self.collectives = max(COLLECTIVE_TAGS, free + len(others))

    def of(self, comm: int, tag: int) -> int | None:
        """The tag in the schedule; None where it is not determined (any tag of one communicator among several)."""
        if tag == ANY_TAG:
            return -1 if self.plain else None
        return tag if comm == 0 else self.numbers[comm, tag]


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
        self.rate = rate
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
        self.action = ""
        self.posts: dict[int, tuple[str, int]] = {}  # open operations: the call that posted it, and its line
        self.kinds: dict[int, str] = {}  # send or recv
        self.waits: dict[int, tuple[str, int]] = {}  # those waited for before the next operation: by which call
        self.waited: list[int] = []
        self.receives = dict[int, list[End]]()
        for end in job.trackers[rank].recvs:
            self.receives.setdefault(end.post, []).append(end)
        self.seen: set[int] = set()  # lines of which a loss is told

    def place(self, at: int | None = None) -> str:
        return f"{self.trace.files[self.rank]}:{self.numbers[self.at if at is None else at]}"

    def lose(self, what: str, effect: Effect = "approximated", call: tuple[str, int] | None = None) -> None:
        """Count a loss of the current line, or of ``call``: at most one a line, the first that is told."""
        action, at = call or (self.action, self.at)
        if at not in self.seen:
            self.seen.add(at)
            self.losses.add(action, what, self.place(at), effect)

    def merged(self, left: Sequence[int]) -> None:
        """What the reader takes for one blocking call: an operation that is waited for before any other begins."""
        if left and left[0] == self.posted and self.posted in self.posts:
            self.lose(AT_ONCE, call=self.posts[self.posted])
            if self.posted in self.waits:
                self.lose(AT_ONCE, call=self.waits[self.posted])
        for op in left:
            self.posts.pop(op, None)
            self.waits.pop(op, None)

    def op(self, text: str, *, blocking: bool = True) -> int:
        self.merged(self.waited)
        self.waited = []
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
        for op in ops:
            if op in self.posts:
                self.waited.append(op)
                self.waits[op] = self.action, self.at

    def lines(self) -> list[str]:
        tracker = Tracker(self.rank)
        for at, line in enumerate(self.job.lines[self.rank]):
            self.at = at
            target = tracker.target(line) if line.split(None, 2)[1:2] in (["wait"], ["test"]) else None
            done = tracker.line(at, line)
            self.line(line, tracker, done, target)
        # The reader completes what is open at the end, what was posted last first.
        left = list(dict.fromkeys([*self.waited, *self.posts]))
        if self.posted in self.posts:
            left = [self.posted, *(op for op in left if op != self.posted)]
        for op in left:
            if op not in self.waits:  # a loss of its own: what is missing is a line
                at = self.posts[op][1]
                kind = "isend" if self.kinds[op] == "send" else "irecv"
                self.losses.add(kind, "never completed: waited for at the end", self.place(at), "approximated")
        self.merged(left)
        return self.out

    def line(self, line: str, tracker: Tracker, done: list[Request], target: Request | None) -> None:
        action, a, attributes = split(line)
        self.action = action
        if action == "#":
            self.action = "mark"
            self.lose("GOAL has no marks", "lost")
        elif action in ("init", "finalize"):
            pass
        elif action == "requestFree" or action in PERSISTENT:
            self.lose("GOAL has no persistent requests: each start becomes a message", "lost")
        elif action == "compute":
            self.compute(float(a[0]))
        elif action == "sleep":
            self.op(f"calc {round(float(a[0]) * 1e9)}")
            self.lose("becomes a calculation")
        elif action in SENDS or action in RECVS or action == "sendRecv" or action in ("start", "startall"):
            self.messages(action, tracker)
        elif action in ("wait", "test") or action in FAMILIES:
            self.completion(action, done, target)
        elif action in COLLECTIVES:
            self.collective(action, a, attributes)
        elif action in ("probe", "iprobe"):
            self.lose("GOAL has no probe", "lost")
        elif action in ONE_SIDED or action.startswith(("Win_", "win_")):
            self.lose("GOAL has no one-sided communication", "lost")
        elif action.startswith(("comm_", "cart_", "graph_", "intercomm_")):
            self.lose("making and freeing communicators is not in a schedule", "lost")
        else:
            self.lose("has no counterpart in GOAL", "lost")

    def compute(self, operations: float) -> None:
        ns = round(operations * self.ns)
        if ns:
            self.op(f"calc {ns}")
        if operations_of(ns, self.rate) != operations:
            self.lose("rounded to a whole number of nanoseconds")

    def messages(self, action: str, tracker: Tracker) -> None:
        ends = [(kind, e) for kind, some in (("send", tracker.sends), ("recv", tracker.recvs)) for e in _last(some, self.at)]
        blocking = action in ("send", "recv", "Ssend", "ssend", "bsend", "rsend")
        if action in ("sendRecv", "start", "startall"):
            self.lose("becomes messages that are posted and waited for")
        elif action in MODES:
            self.lose("GOAL has one mode of sending")
        ops, kinds = [], []
        for kind, e in ends:
            text = self.message(kind, e)
            if text is not None:
                ops.append(self.op(text, blocking=blocking))
                kinds.append(kind)
        if not ops:
            self.lose("GOAL has no MPI_PROC_NULL", "lost")
        if not blocking:
            self.posts |= dict.fromkeys(ops, (action, self.at))
            self.kinds |= zip(ops, kinds, strict=True)
        if action == "sendRecv":
            self.wait(ops)
        elif not blocking:
            self.of_request.setdefault(self.at, []).extend(ops)

    def message(self, kind: str, e: End) -> str | None:
        if e.peer < 0 and e.peer != ANY_SOURCE:
            return None  # MPI_PROC_NULL
        tag = self.tags.of(e.comm, e.tag)
        if e.comm != 0:
            self.lose("its communicator becomes part of the tag" if tag is not None else "any tag of one communicator: taken as any at all")
        elif tag is None:
            self.lose("any tag of one communicator among several: taken as any at all")
        tag = -1 if tag is None else tag
        size = e.bytes
        if kind == "recv" and e.match is None:
            # The tracker of this pass has no matches; the job's has.
            found = next((o for o in self.receives.get(self.at, ()) if o.peer == e.peer and o.tag == e.tag), None)
            size = found.match.bytes if found is not None and found.match is not None else max(size, 0)
            if size != e.bytes:
                self.lose("the length of its buffer is lost: that of the message is taken")
        peer = -1 if e.peer == ANY_SOURCE else e.peer
        return f"{kind} {size}b {'to' if kind == 'send' else 'from'} {peer} tag {tag}"

    def completion(self, action: str, done: list[Request], target: Request | None) -> None:
        ops = [op for r in done for op in self.of_request.pop(r.post, [])]
        if not ops:
            self.lose("completes nothing that is in a schedule" if done or target is None else "that completed nothing", "lost")
        elif action != "wait":
            self.lose("becomes a wait for each request")
        self.wait(ops)

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
            self.lose("is not expanded into messages", "lost")
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
            self.lose("is not expanded into messages", "lost")
            return
        self.lose("becomes messages: trees, rings and chains")
        tag = self.tags.collectives + comm * 65536 + turn % 65536
        if tag > LAST_TAG:
            raise TraceError(f"the messages of {action} would need tag {tag}; the largest is {LAST_TAG}", self.trace.files[self.rank],
                             self.numbers[self.at])  # fmt: skip
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
