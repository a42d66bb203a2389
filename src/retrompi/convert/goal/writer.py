"""GOAL export: a trace as a schedule for LogGOPSim."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.goal.collectives import expand
from retrompi.convert.goal.file import operations_of
from retrompi.convert.losses import Effect, Losses
from retrompi.convert.same_messages import PlacedJob, possible, refuse_lost_order
from retrompi.spec.declare.calls import BY_NAME, CALLS, Family, is_nonblocking, names
from retrompi.traces.errors import TraceError
from retrompi.traces.lines import COLLECTIVES, FAMILIES, ONE_SIDED, PERSISTENT, RECVS, SENDS, rank_lines, split
from retrompi.traces.matching import MatchedJob
from retrompi.traces.tracker import ANY_SOURCE, ANY_TAG, End, Request, Tracker

__all__ = ["goal_text", "write_goal"]

COLLECTIVE_TAGS = 1 << 30
"""First tag of collectives' messages, if the trace does not use the tags from there on."""
TURNS = 1 << 16
LAST_TAG = (1 << 31) - 1
AT_ONCE = "posted and waited for at once: becomes one blocking call"
PROBES = names(Family.PROBE)
MODES = {name for call in CALLS if call.mode not in ("", "standard") for name in call.names}


def write_goal(trace: Trace, path: Path, losses: Losses, *, rate: float = 1e9) -> None:
    """Write ``trace`` as a GOAL schedule; ``rate`` in flop/s converts operations into ns. Losses are added to ``losses``."""
    try:
        path.write_text(goal_text(trace, losses, rate=rate), encoding="utf-8")
    except OSError as e:
        raise TraceError(f"cannot be written: {e.strerror or e}", str(path), code="unwritable-file") from e


def goal_text(trace: Trace, losses: Losses, *, rate: float = 1e9) -> str:
    """The schedule as text; see `write_goal`."""
    rows = [rank_lines(trace, r) for r in range(trace.ranks)]
    job = MatchedJob([texts for texts, _ in rows])
    numbers = [n for _, n in rows]

    def is_lost(rank: int, at: int, action: str) -> bool:
        if action in COLLECTIVES:
            return not _is_expanded(trace, action, int(split(job.lines[rank][at])[2].get("comm", 0)))
        return action.lower() not in ("waitany", "waitsome") or at not in job.completes[rank]

    refuse_lost_order(PlacedJob(trace, job, numbers), "GOAL", is_lost)
    tags = _Tags(job)
    out = [f"num_ranks {trace.ranks}\n"]
    for rank in range(trace.ranks):
        out += ["\n", f"rank {rank} {{\n", *_Writer(trace, job, rank, numbers[rank], tags, losses, rate).lines(), "}\n"]
    return "".join(out)


def _is_expanded(trace: Trace, action: str, comm: int) -> bool:
    """Whether a collective becomes messages."""
    return BY_NAME[action].family is Family.COLLECTIVE and not (comm and trace.communicator(comm).get("remote"))


class _Tags:
    """GOAL has no communicators: every pair of a communicator other than MPI_COMM_WORLD and a tag becomes a tag of its own, and so does
    every collective of a communicator (the 65536 that follow each other)."""

    def __init__(self, job: MatchedJob) -> None:
        ends = [e for t in job.trackers for e in (*t.sends, *t.recvs) if e.tag >= 0]
        taken = {e.tag for e in ends if e.comm == 0}
        others = sorted({(e.comm, e.tag) for e in ends if e.comm != 0})
        free = _gap(taken, len(others), max(taken, default=-1) + 1)
        self.numbers = {pair: free + number for number, pair in enumerate(others)}
        self.turns: dict[int, int] = {}  # by communicator: tags of its collectives
        for (key, turn), _ in job.collectives.items():
            if isinstance(key, tuple) and key[0] == "comm":
                self.turns[key[1]] = max(self.turns.get(key[1], 0), min(turn + 1, TURNS))
        taken |= set(self.numbers.values())
        first = _gap(taken, sum(self.turns.values()), max(COLLECTIVE_TAGS, free + len(others)))
        self.first: dict[int, int] = {}
        for comm, turns in sorted(self.turns.items()):
            self.first[comm] = first
            first += turns

    def of(self, comm: int, tag: int) -> int:
        """The tag in the schedule."""
        return tag if comm == 0 else self.numbers[comm, tag]

    def of_collective(self, comm: int, turn: int) -> int:
        """The tag of the messages of a communicator's ``turn``-th collective."""
        return self.first[comm] + turn % self.turns[comm]


def _gap(taken: set[int], length: int, first: int) -> int:
    """The first of ``length`` numbers in a row, none of them a tag that is taken: from ``first`` on if enough follow."""
    ordered = sorted(taken)
    for start in (first, 0, *(tag + 1 for tag in ordered)):
        at = bisect_left(ordered, start)
        if start + length - 1 <= LAST_TAG and (at == len(ordered) or ordered[at] >= start + length):
            return start
    raise TraceError(f"GOAL has tags up to {LAST_TAG}; there are not {length} in a row that the trace does not use", "GOAL")


class _Writer:
    """One rank's schedule.

    A blocking call requires the previous blocking call; a call that only posts requires the previous blocking call and follows the
    previous posting by irequires; a wait makes the next call require the operations that were waited for.
    """

    def __init__(self, trace: Trace, job: MatchedJob, rank: int, numbers: list[int], tags: _Tags, losses: Losses, rate: float) -> None:
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
        self.done_by: dict[int | None, list[int]] = {}  # by line: the messages that it completes
        self.of_collective: dict[int, list[int]] = {}  # by line of a non-blocking collective: its last step
        self.turn: dict[int, int] = {}
        self.at = 0
        self.action = ""
        self.posts: dict[int, tuple[str, int]] = {}  # open operations: the call that posted it, and its line
        self.kinds: dict[int, str] = {}  # send or recv
        self.waits: dict[int, tuple[str, int]] = {}  # those waited for before the next operation: by which call
        self.waited: list[int] = []
        self.ends: dict[int, list[tuple[str, End]]] = {}  # by line: the messages that it posts
        for kind, ends in (("send", job.trackers[rank].sends), ("recv", job.trackers[rank].recvs)):
            for end in ends:
                self.ends.setdefault(end.post, []).append((kind, end))
        self.seen: set[int] = set()  # lines of which a loss is told

    def place(self, at: int | None = None) -> str:
        return f"{self.trace.files[self.rank]}:{self.numbers[self.at if at is None else at]}"

    def lose(self, what: str, effect: Effect = "approximated", call: tuple[str, int] | None = None) -> None:
        """Count a loss of the current line, or of ``call``: at most one a line, the first that is told."""
        action, at = call or (self.action, self.at)
        if at not in self.seen:
            self.seen.add(at)
            self.losses.add(action, what, self.place(at), effect)

    def note_blocking(self, left: Sequence[int]) -> None:
        """What the reader takes for one blocking call: an operation that is waited for before any other begins."""
        if left and left[0] == self.posted and self.posted in self.posts:
            self.lose(AT_ONCE, call=self.posts[self.posted])
            if self.posted in self.waits:
                self.lose(AT_ONCE, call=self.waits[self.posted])
        for op in left:
            self.posts.pop(op, None)
            self.waits.pop(op, None)

    def join(self) -> None:
        """One joining node instead of many edges: the schedule's size stays proportional to the trace's."""
        if len(self.before) > 4:
            self.count += 1
            self.out.append(f"l{self.count}: calc 0\n")
            self.out += [f"l{self.count} requires l{b}\n" for b in self.before]
            self.before, self.posted = [self.count], None

    def op(self, text: str, *, blocking: bool = True) -> int:
        self.note_blocking(self.waited)
        self.waited = []
        self.join()
        self.count += 1
        me = self.count
        self.out.append(f"l{me}: {text}\n")
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
        self.note_blocking(left)
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
        elif action in PROBES:
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
        ends = self.ends.get(self.at, [])
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
                self.done_by.setdefault(e.done, []).append(ops[-1])
        if not ops:
            self.lose("GOAL has no MPI_PROC_NULL", "lost")
        if not blocking:
            self.posts |= dict.fromkeys(ops, (action, self.at))
            self.kinds |= zip(ops, kinds, strict=True)
        if action == "sendRecv":
            self.wait(ops)

    def message(self, kind: str, e: End) -> str | None:
        if e.peer < 0 and e.peer != ANY_SOURCE:
            return None  # MPI_PROC_NULL
        if kind == "send":
            if e.comm != 0:
                self.lose("its communicator becomes part of the tag")
            return f"send {e.bytes}b to {e.peer} tag {self.tags.of(e.comm, e.tag)}"
        tag, size = e.tag, e.bytes
        if tag == ANY_TAG:
            tag = self.any_tag(e)
            if tag != ANY_TAG:
                self.lose("any tag is written as the tag of what it can take")
        if e.comm != 0:
            self.lose("its communicator becomes part of the tag" if tag != ANY_TAG else "its communicator is lost, no other has messages")
        if e.sure and e.match is not None:
            size = e.match.bytes
        elif size < 0:
            size = max((s.bytes for s in possible(self.job, e)), default=0)
        if size != e.bytes:
            self.lose("the length of its buffer is lost: that of the message is taken")
        peer = -1 if e.peer == ANY_SOURCE else e.peer
        return f"recv {size}b from {peer} tag {-1 if tag == ANY_TAG else self.tags.of(e.comm, tag)}"

    def any_tag(self, e: End) -> int:
        """The tag that a receive of any tag is written with: ANY_TAG where nothing else can match it.

        Raises TraceError if the receive could take a message of a collective or of another communicator, and the order of messages
        decides which tag it takes.
        """
        tags = {s.tag for s in possible(self.job, e)}
        if len(tags) == 1:
            return tags.pop()
        if e.sure and e.match is not None:
            return e.match.tag
        other = self.other_messages(e)
        if not other:
            return ANY_TAG
        raise TraceError(
            f"GOAL has neither collectives nor communicators: this receive of any tag could take a message of {other}, and which of the "
            f"tags {', '.join(map(str, sorted(tags)[:4]))} it takes is not determined; record it (from= and mtag=)",
            self.trace.files[self.rank], self.numbers[self.at], code="lossy-conversion",
        )

    def other_messages(self, e: End) -> str:
        """Other messages of the schedule that match a receive of any tag."""
        for (to, comm), sent in self.job.sent_to.items():
            if to == self.rank and comm != e.comm and any(e.peer in (ANY_SOURCE, source) for source, _ in sent):
                return f"communicator {comm}" if comm else "MPI_COMM_WORLD"
        for (key, _), members in self.job.collectives.items():
            if isinstance(key, tuple) and key[0] == "comm" and self.rank in members and len(members) > 1:
                action = split(self.job.lines[self.rank][members[self.rank]])[0]
                if action in COLLECTIVES and (e.peer == ANY_SOURCE or e.peer in members):
                    return f"this rank's {action} in line {self.numbers[members[self.rank]]}"
        return ""

    def completion(self, action: str, done: list[Request], target: Request | None) -> None:
        ops = self.done_by.pop(self.at, []) + [op for r in done if r.end is None for op in self.of_collective.pop(r.post, [])]
        if not ops:
            self.lose("completes nothing that is in a schedule" if done or target is None else "that completed nothing", "lost")
        elif action != "wait":
            self.lose("becomes a wait for each request")
        self.wait(ops)

    def collective(self, action: str, a: list[str], attributes: dict[str, str]) -> None:
        comm = int(attributes.get("comm", 0))
        group = list(range(self.trace.ranks)) if comm == 0 else list(self.trace.communicator(comm).get("group", ()))
        turn = self.turn[comm] = self.turn.get(comm, -1) + 1
        if self.rank not in group or not _is_expanded(self.trace, action, comm):
            self.lose("is not expanded into messages", "lost")
            return
        steps = expand(BY_NAME[action], a, group.index(self.rank), len(group))
        self.lose("becomes messages: trees, rings and chains")
        tag = self.tags.of_collective(comm, turn)
        texts = [[f"{kind} {size}b {'to' if kind == 'send' else 'from'} {group[peer]} tag {tag}" for kind, peer, size in s] for s in steps]
        if is_nonblocking(action):
            self.of_collective[self.at] = self.beside(texts)
            return
        for step in texts:
            self.wait([self.op(text, blocking=False) for text in step])

    def beside(self, steps: list[list[str]]) -> list[int]:
        """The steps of a non-blocking collective: each requires the one before, and the rank goes on meanwhile. Returns the last one."""
        self.join()
        last = list(self.before)
        for number, step in enumerate(steps):
            ops = []
            for text in step:
                self.count += 1
                ops.append(self.count)
                self.out.append(f"l{self.count}: {text}\n")
                self.out += [f"l{self.count} requires l{b}\n" for b in last]
                if number == 0 and self.posted is not None and self.posted not in last:
                    self.out.append(f"l{self.count} irequires l{self.posted}\n")
            last = ops
        return last if steps else []
