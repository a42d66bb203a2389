"""The outcome that the MPI standard prescribes for a program on any library and machine: a third reading of its lines, without time.

Ranks take their calls one after the other; a message takes the first posted receive that fits it, a receive the first message (MPI 1.1,
3.5). What a library is free in is taken both ways:

* *tight*: a standard send is complete when its receive is posted, a collective returns when all members are in it. A program that
  completes so completes with every library.
* *loose*: a standard send is complete at once, and of the collectives only a barrier waits for anybody. A program that is stuck so is
  stuck with every library.

Who comes first at a receive from any source is decided only if every other message that fits is sent after it: because its sender had
heard, over messages, synchronous sends and barriers, that it was complete (Lamport 1978: "happened before", by vector clocks).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from retrompi.reference.values import ANY_SOURCE, ANY_TAG, PROC_NULL

__all__ = ["Decision", "Match", "Operation", "Undecided", "decide", "operations"]

SENDS = {"send": "", "Ssend": "S", "bsend": "b", "isend": "", "ISsend": "S", "ibsend": "b", "sendInit": "", "ssendInit": "S",
         "bsendInit": "b"}
"""Calls that send, and their mode: standard, synchronous, buffered."""
RECEIVES = ("recv", "irecv", "recvInit")
ALL = ("waitall", "testall")
MAKERS = ("comm_dup", "comm_split", "comm_create", "comm_create_group", "cart_create", "graph_create", "intercomm_create",
          "intercomm_merge")
"""Calls that make a communicator."""
BESIDE = ("init", "finalize", "compute", "sleep", "kernel", "comm_size")
Match = tuple[int, int, int, int, int, int]
"""(receiver, its line, sender, its line, tag, bytes)."""


class Undecided(Exception):
    """Why the standard leaves open what happens."""


@dataclass(frozen=True)
class Operation:
    """A line. ``numbers``: its arguments; ``request``: the slot of the one that it makes; ``slots``: those that it is about; ``told``: the
    slot of the one that a wait has to complete, or whether a test or look has to succeed; ``groups``, ``rest``: of a new communicator."""

    line: int
    word: str
    comm: int
    numbers: tuple[int, ...]
    request: int = 0
    slots: tuple[int, ...] = ()
    told: int = -1
    stag: int = 0
    rtag: int = 0
    groups: tuple[tuple[int, ...], ...] = ()
    rest: tuple[tuple[str, str], ...] = ()


def _numbers(words: Iterable[str]) -> tuple[int, ...]:
    return tuple(int(float(word)) for word in words)


def operations(lines: Sequence[str]) -> list[Operation]:
    """The calls of one rank. Requests get slots: a named one its number; a persistent one, which lines name by its key, from 1000 on."""
    found: list[Operation] = []
    named: set[int] = set()
    persistent: dict[int, tuple[tuple[str, ...], bool]] = {}
    made = 1000
    for at, text in enumerate(lines, 1):
        if text.startswith("#"):
            continue
        word, *fields = text.split()
        attributes = dict(part.split("=", 1) for part in fields if "=" in part)
        arguments = [part for part in fields if "=" not in part]
        if word in BESIDE:
            continue
        word = {"waitAny": "waitany"}.get(word, word)
        given = attributes.get("flag") or attributes.get("done")
        op = Operation(at, word, int(attributes.get("comm", 0)), (), told=-1 if given is None else int(given))
        if word.endswith("Init"):
            made += 1
            persistent[made] = tuple(arguments[:2]), False
            op = replace(op, numbers=_numbers(arguments[:3]), request=made)
        elif word in ("start", "startall"):
            idle = [slot for slot, (of, active) in persistent.items() if not active and (word == "startall" or _is(of, arguments))]
            if word == "start" and not idle:
                raise Undecided("a start without an inactive request")
            op = replace(op, word="start", slots=tuple(idle[:1] if word == "start" else idle))
            persistent.update({slot: (persistent[slot][0], True) for slot in op.slots})
        elif word == "requestFree" or (word in ("wait", "test") and "req" not in attributes):
            wanted = word != "requestFree"
            mine = [slot for slot, (of, active) in persistent.items() if active == wanted and _is(of, arguments)]
            if not mine and not wanted:
                raise Undecided("a request is freed that is active, or not there")
            op = replace(op, slots=tuple(mine[:1]))
            if word == "requestFree":
                del persistent[mine[0]]
            elif word == "wait":
                persistent.update({slot: (persistent[slot][0], False) for slot in op.slots})
            else:
                raise Undecided("a test by key")
        elif word.startswith(("wait", "test")):
            if "req" in attributes:
                slots: tuple[int, ...] = (int(attributes["req"]),)
            elif "reqs" in attributes:
                slots = _numbers(attributes["reqs"].split(","))
            else:
                slots = (*sorted(named), *(slot for slot, (_, active) in persistent.items() if active))
                if word != "waitall":
                    raise Undecided("a call over all requests that completes some")
                persistent = {slot: (of, False) for slot, (of, _) in persistent.items()}
            op = replace(op, slots=slots)
            if word in ("wait", "waitall"):
                named -= set(slots)
        elif word == "sendRecv":
            op = replace(op, numbers=_numbers(arguments[:4]), stag=int(attributes.get("stag", 0)), rtag=int(attributes.get("rtag", 0)))
        elif "probe" in word:
            op = replace(op, numbers=_numbers(arguments[:2]))
        elif word in MAKERS:
            new = int(arguments[0])
            op = replace(op, numbers=(new,), groups=tuple(_numbers(a.split(",")) for a in arguments[1:]), rest=tuple(attributes.items()))
        else:
            numbers = _numbers(arguments[:3] if word in SENDS or word in RECEIVES else arguments)
            op = replace(op, numbers=numbers, request=int(attributes.get("req", 0)))
            if op.request:
                named.add(op.request)
        if not (op.word in ("start", *ALL, "wait") and not op.slots):
            found.append(op)
    return found


def _is(peer_and_tag: tuple[str, ...], arguments: Sequence[str]) -> bool:
    """Whether SRC DST TAG are the key of a persistent request, whose own rank is the other of the two."""
    source, target, tag = arguments
    return tag == peer_and_tag[1] and peer_and_tag[0] in (source, target)


@dataclass(eq=False)
class _Message:
    source: int
    target: int
    tag: int
    comm: int
    size: int
    line: int
    mode: str
    clock: list[int]
    taken: _Receive | None = None
    acknowledged: float = math.inf


@dataclass(eq=False)
class _Receive:
    """A posted receive, or a probe, which takes nothing."""

    rank: int
    line: int
    source: int
    tag: int
    comm: int
    capacity: int
    order: int
    clock: list[int]
    message: _Message | None = None
    seen: float = math.inf

    def fits(self, m: _Message) -> bool:
        return m.target == self.rank and m.comm == self.comm and self.source in (m.source, ANY_SOURCE) and self.tag in (m.tag, ANY_TAG)


@dataclass(eq=False)
class _Together:
    """A collective: who is in it, with the clocks of those."""

    word: str
    members: int
    clocks: list[list[int]] = field(default_factory=list)


@dataclass
class _Request:
    done: Callable[[], bool]
    finish: Callable[[], None]


@dataclass(frozen=True)
class Decision:
    """``outcome``: completed, deadlock or truncated. ``matches``: of what is received at least, or what is too long; ``most``: at most.
    ``probed``: (rank, line) to source, tag and bytes, where only one message can be found. ``stuck``: (rank, line) of those that are
    stuck, where that is decided."""

    outcome: str
    matches: frozenset[Match] = frozenset()
    most: frozenset[Match] = frozenset()
    probed: Mapping[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    stuck: tuple[tuple[int, int], ...] | None = None


@dataclass(eq=False)
class _WaitAny:
    """A wait for one of several of which the trace says which it was: the receives beside that one, and when it ended."""

    rank: int
    others: list[_Receive]
    ended: float = math.inf



class _Run:
    """One of the two ways."""

    def __init__(self, programs: Sequence[Sequence[Operation]], tight: bool) -> None:
        self.tight, self.n = tight, len(programs)
        self.clocks = [[0] * self.n for _ in programs]
        self.messages: list[_Message] = []
        self.receives: list[_Receive] = []
        self.probes: list[_Receive] = []
        self.waitanys: list[_WaitAny] = []
        self.together: dict[tuple[object, ...], _Together] = {}
        self.turns: list[dict[int, int]] = [{} for _ in programs]
        self.members = [{0: frozenset(range(self.n))} for _ in programs]
        self.lines: list[int] = [0] * self.n
        self.unfinished = False
        """Whether a rank ends before its requests are complete: the standard does not say what becomes of it (MPI 1.1, 7.5)."""
        self._go([self._rank(r, ops) for r, ops in enumerate(programs)])

    def _go(self, ranks: list[Iterator[Callable[[], bool]]]) -> None:
        conditions: dict[int, Callable[[], bool]] = dict.fromkeys(range(self.n), lambda: True)
        moved = True
        while moved:
            moved = False
            for r in list(conditions):
                while r in conditions and conditions[r]():
                    moved = True
                    try:
                        conditions[r] = next(ranks[r])
                    except StopIteration:
                        del conditions[r]
        self.stuck = tuple((r, self.lines[r]) for r in sorted(conditions))

    # -- one rank

    def _rank(self, me: int, program: Sequence[Operation]) -> Iterator[Callable[[], bool]]:
        requests: dict[int, _Request] = {}
        inits: dict[int, Operation] = {}
        owned: dict[int, _Receive] = {}
        for op in program:
            self.lines[me] = op.line
            self._tick(me)
            word = op.word
            if word.endswith("Init"):
                inits[op.request] = op
            elif word == "start":
                for slot in op.slots:
                    if slot in requests:
                        raise Undecided("an active request is started")
                    requests[slot] = self._begin(me, replace(inits[slot], line=op.line), owned)
            elif word == "requestFree":
                if op.slots[0] in requests:
                    raise Undecided("an active request is freed")
            elif word in SENDS or word in RECEIVES:
                request = self._begin(me, op, owned)
                if op.request:
                    if op.request in requests:
                        raise Undecided("a request's number is used twice")
                    requests[op.request] = request
                else:
                    yield request.done
                    request.finish()
            elif word == "sendRecv":
                size, target, capacity, source = op.numbers
                both = (self._receive(me, op.line, source, op.rtag, op.comm, capacity), self._send(me, op, target, op.stag, size, ""))
                yield lambda both=both: all(r.done() for r in both)  # type: ignore[misc]
                for request in both:
                    request.finish()
            elif "probe" in word:
                if op.numbers[0] == PROC_NULL or (word == "iprobe" and op.told != 1):
                    continue
                source, tag = op.numbers
                look = _Receive(me, op.line, source, tag, op.comm, -1, len(self.receives), list(self.clocks[me]))
                yield lambda look=look: any(m.taken is None and look.fits(m) for m in self.messages)  # type: ignore[misc]
                look.seen = self._tick(me)
                self.probes.append(look)
            elif word.startswith(("wait", "test")):
                yield from self._complete(me, op, requests, owned)
            else:
                request = self._meet(me, op)
                if op.request:
                    requests[op.request] = request
                else:
                    yield request.done
                    request.finish()
        self.unfinished |= bool(requests)

    def _complete(self, me: int, op: Operation, requests: dict[int, _Request], owned: dict[int, _Receive]) -> Iterator[Callable[[], bool]]:
        """A wait completes what it names. A test that may fail, and a wait for some of several, are taken to have completed nothing: what
        they do complete a later wait finds so."""
        there = {slot: requests[slot] for slot in op.slots if slot in requests}
        if op.word in ("waitany", "waitsome") and op.told < 0:
            if there:
                yield lambda: any(r.done() for r in there.values())
            return
        if op.word.startswith("test") and op.told != 1:
            return
        if op.word in ("waitany", "waitsome"):
            others = [owned[slot] for slot in there if slot != op.told and slot in owned]
            if op.told not in there or len(others) < len(there) - 1:
                raise Undecided("which request is complete first")
            there = {op.told: there[op.told]}
            waiting = _WaitAny(me, others)
            self.waitanys.append(waiting)
            yield there[op.told].done
            waiting.ended = self._tick(me)
        else:
            yield lambda: all(r.done() for r in there.values())
        for slot, request in there.items():
            request.finish()
            del requests[slot]

    def _begin(self, me: int, op: Operation, owned: dict[int, _Receive]) -> _Request:
        peer, tag, size = op.numbers
        if op.word in SENDS:
            owned.pop(op.request, None)
            return self._send(me, op, peer, tag, size, SENDS[op.word])
        request = self._receive(me, op.line, peer, tag, op.comm, size)
        if peer != PROC_NULL:
            owned[op.request] = self.receives[-1]
        return request

    # -- messages

    def _tick(self, me: int) -> int:
        self.clocks[me][me] += 1
        return self.clocks[me][me]

    def _join(self, me: int, clock: Sequence[int]) -> None:
        self.clocks[me] = [max(a, b) for a, b in zip(self.clocks[me], clock, strict=True)]

    def _send(self, me: int, op: Operation, target: int, tag: int, size: int, mode: str) -> _Request:
        if target == PROC_NULL:
            return _Request(lambda: True, lambda: None)
        self._tick(me)
        m = _Message(me, target, tag, op.comm, size, op.line, mode, list(self.clocks[me]))
        self.messages.append(m)
        self._match(next((r for r in self.receives if r.message is None and r.fits(m)), None), m)
        waits = mode == "S" or (self.tight and not mode)

        def finish() -> None:
            if mode == "S" and m.taken:
                m.acknowledged = self._tick(me)
                self._join(me, m.taken.clock)

        return _Request(lambda: not waits or m.taken is not None, finish)

    def _receive(self, me: int, line: int, source: int, tag: int, comm: int, capacity: int) -> _Request:
        if source == PROC_NULL:
            return _Request(lambda: True, lambda: None)
        self._tick(me)
        r = _Receive(me, line, source, tag, comm, capacity, len(self.receives), list(self.clocks[me]))
        self.receives.append(r)
        self._match(r, next((m for m in self.messages if m.taken is None and r.fits(m)), None))

        def finish() -> None:
            assert r.message is not None
            self._join(me, r.message.clock)
            r.seen = self._tick(me)

        return _Request(lambda: r.message is not None, finish)

    def _match(self, r: _Receive | None, m: _Message | None) -> None:
        if r is not None and m is not None:
            r.message, m.taken = m, r

    # -- collectives and communicators

    def _meet(self, me: int, op: Operation) -> _Request:
        word, members = op.word, self.members[me].get(op.comm)
        if members is None:
            raise Undecided("a communicator of others")
        key: tuple[object, ...]
        if word in ("comm_create_group", "intercomm_create"):
            key, members = (word, op.numbers[0]), frozenset(r for group in op.groups for r in group)
        else:
            turn = self.turns[me][op.comm] = self.turns[me].get(op.comm, 0) + 1
            key = (op.comm, turn)
        if op.groups:
            far = members - frozenset(op.groups[0]) if word == "comm_dup" else frozenset()
            self.members[me][op.numbers[0]] = frozenset(r for group in op.groups for r in group) | far
        meeting = self.together.setdefault(key, _Together(word, len(members)))
        if meeting.word != word:
            raise Undecided("another collective than the other members'")
        self._tick(me)
        meeting.clocks.append(list(self.clocks[me]))
        waits = self.tight or word in ("barrier", "ibarrier")

        def finish() -> None:
            if word in ("barrier", "ibarrier"):
                for clock in meeting.clocks:
                    self._join(me, clock)

        return _Request(lambda: not waits or len(meeting.clocks) == meeting.members, finish)

    # -- what is decided

    def possible(self, r: _Receive) -> list[_Message]:
        """Messages that a receive or probe can have met first, the earliest of each sender."""
        first: dict[int, _Message] = {}
        for m in self.messages:
            if not r.fits(m) or (m.taken is not None and m.taken.order < r.order):
                continue
            told = m.clock[r.rank] >= r.seen
            if r.message is not None and r.message.mode == "S":
                told |= m.clock[r.message.source] >= r.message.acknowledged
            if not told:
                first.setdefault(m.source, m)
        return list(first.values())

    def truncations(self, told: bool) -> frozenset[Match]:
        """Messages that are longer than their receives' buffers; ``told``: whose receive a call has to complete, which is what tells of
        it."""
        long = {(r.rank, r.line) for r in self.receives if r.message and 0 <= r.capacity < r.message.size}
        return frozenset(match for match in self.matches(complete=told) if match[:2] in long)

    def matches(self, complete: bool) -> frozenset[Match]:
        """What receives have got: of those that a call has completed, or of all."""
        return frozenset((r.rank, r.line, r.message.source, r.message.line, r.message.tag, r.message.size)
                         for r in self.receives if r.message and (r.seen < math.inf or not complete))

    def check(self) -> None:
        """Raises Undecided where another order of events leads elsewhere."""
        for r in self.receives:
            if r.source == ANY_SOURCE and len(self.possible(r)) > 1:
                raise Undecided("which message comes first")
        for w in self.waitanys:
            if any(r.message is not None and r.message.clock[w.rank] < w.ended for r in w.others):
                raise Undecided("which request is complete first")


def decide(programs: Sequence[Sequence[str]]) -> Decision:
    """What the standard decides of the lines of each rank. Raises Undecided."""
    calls = [operations(lines) for lines in programs]
    tight, loose = _Run(calls, True), _Run(calls, False)
    run = loose if tight.stuck or tight.truncations(told=False) else tight
    run.check()
    if (long := tight.truncations(told=True)) and loose.truncations(told=True):
        return Decision("truncated", long)
    if tight.truncations(told=False) and loose.truncations(told=False):
        raise Undecided("whether anybody is told of a message that is too long")
    if loose.truncations(told=False):
        raise Undecided("whether a message that is too long arrives")
    if tight.stuck and not loose.stuck:
        raise Undecided("whether standard sends are buffered")
    if not tight.stuck and any(m.taken is None for m in run.messages):
        raise Undecided("a message that nobody receives")
    if not tight.stuck and run.unfinished:
        raise Undecided("a request that nobody completes")
    probed = {(p.rank, p.line): (found[0].source, found[0].tag, found[0].size) for p in run.probes if len(found := run.possible(p)) == 1}
    return Decision(
        "deadlock" if run.stuck else "completed", tight.matches(complete=True), loose.matches(complete=False), probed,
        run.stuck if tight.stuck == loose.stuck and not run.unfinished else None,
    )
