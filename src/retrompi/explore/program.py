"""The calls of a trace as the steps of an abstract machine: sends, receives, waits, probes, and choices whose outcome is open.

What a trace records about its receives is not kept: a receive from any source may take any message that MPI's rules allow. What it
records about a *completion* is kept, because the following lines name the requests that are left: a test that succeeded is a wait, one
that failed does nothing, ``done=`` says which requests a waitany completed. A completion that is not recorded is a choice.

A probe decides which message the receive behind it takes: the first later receive of the rank that names exactly the source and tag that
the probe is recorded to have found follows the probe, as programs with MPI_Probe do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi._engine import Trace
from retrompi.base.errors import InputError
from retrompi.spec.declare.calls import CALLS, Family, is_nonblocking, names
from retrompi.traces.lines import COLLECTIVES, COMM_MAKERS

from .buffers import Buffers

__all__ = ["ANY_SOURCE", "ANY_TAG", "CALL", "CHOICE", "COUNTED", "JOIN", "NOTIFY", "PROBE", "RECV", "SEND", "SPAWN", "WAIT",
           "ExploredProgram", "Op", "ProgramCall"]

ANY_SOURCE, ANY_TAG, PROC_NULL = -555, -444, -666

CALL, SEND, RECV, WAIT, CHOICE, PROBE, NOTIFY, COUNTED, JOIN, SPAWN = range(10)
"""Kinds of steps, with their arguments:

CALL number                              a call of the program begins
SEND dst ctx tag bytes waits slot eager  starts a send; ``waits``: until a receive has matched; ``eager``: the data go ahead of that
RECV src ctx tag bytes slot probe        starts a receive; ``probe``: the PROBE step whose message it takes (-1: none)
WAIT slots                               until all are complete
CHOICE what slots number                 a test or wait with an open outcome: test, all (testall), any, some, anytest, sometest
PROBE src ctx tag blocking               until there is a message; ``blocking`` False: or not (its outcome is open)
NOTIFY rank                              one more notification for a rank
COUNTED n                                until n of them have come, which are then used up
JOIN key members                         until all members are there
SPAWN strand slot                        a non-blocking collective begins on a strand of its own; it completes the slot
"""

Op = tuple[Any, ...]
_MODES = {name.lower(): call.mode for call in CALLS if call.mode for name in call.names}
_QUIET = names(Family.LOCAL, Family.FREES_COMM)
_TRANSFERS = names(Family.TRANSFER) | {name for name in names(Family.EPOCH) if name.startswith("Win_flush")}
_ISEND, _IRECV, _STEP_WAIT, _WAIT_ALL, _COPY, _COMBINE, _PUT, _TAKEN, _ALL_TAKEN = range(9)


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A line of a rank: a call of the program."""

    rank: int
    line: int
    name: str


@dataclass
class _Filed:
    req: int
    key: tuple[int, int, int]
    slot: int
    template: tuple[Any, ...] | None = None  # of a persistent request: what a start does
    active: bool = True


@dataclass
class ExploredProgram:
    """The steps of each strand; the first ``ranks`` strands are the ranks, the others their non-blocking collectives."""

    ranks: int
    files: Sequence[str]
    strands: list[list[Op]] = field(default_factory=list)
    rank_of: list[int] = field(default_factory=list)
    calls: list[ProgramCall] = field(default_factory=list)
    requests: dict[int, int] = field(default_factory=dict)
    """Slot -> identity of its request in the trace, where it has one."""
    choices: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Slot of a choice's number -> (call, what)."""
    slots: int = 0

    @classmethod
    def of(cls, trace: Trace, buffers: Buffers, library: Sequence[Any]) -> ExploredProgram:
        """The steps of a trace under a runtime's protocol; ``library`` is what `_engine.library_steps` returns.

        Raises InputError for a line that the search cannot take.
        """
        for file, line, action, reason in trace.unsupported()[:1]:
            raise InputError(f"{file}:{line}: {action}: {reason}", code="unsupported-action")
        made = cls(trace.ranks, trace.files, [[] for _ in range(trace.ranks)], list(range(trace.ranks)))
        for rank in range(trace.ranks):
            _Rank(made, trace, buffers, rank, dict(library[rank])).read()
        return made

    @property
    def open_ended(self) -> int:
        """How many receives, probes and tests have an outcome that the order decides."""
        return sum(
            1 for ops in self.strands for op in ops
            if (op[0] in (RECV, PROBE) and op[1] == ANY_SOURCE) or (op[0] == PROBE and not op[4]) or op[0] == CHOICE
        )


class _Rank:
    """Reads the lines of one rank."""

    def __init__(self, made: ExploredProgram, trace: Trace, buffers: Buffers, rank: int, library: Mapping[int, Any]) -> None:
        self.made, self.trace, self.buffers, self.rank, self.library = made, trace, buffers, rank, library
        self.ops = made.strands[rank]
        self.filed: list[_Filed] = []
        self.sends: list[int] = []  # slots that MPI_Finalize waits for
        self.probed: list[tuple[int, int, int, int]] = []  # step of a probe, and what it found when recorded
        self.windows: dict[int, Any] = {}
        self.joins: dict[Any, int] = {}

    def read(self) -> None:
        line = 0
        for line, name, peer, tag, peer2, size, size2, _, more in self.trace.rank_actions(self.rank, extension=True):
            if name.startswith("mark ") or name in _QUIET:
                continue
            self.made.calls.append(ProgramCall(self.rank, line, name))
            self.ops.append((CALL, len(self.made.calls) - 1))
            self.line(line, name, (peer, tag, peer2, size, size2), more)
        self.made.calls.append(ProgramCall(self.rank, line, "finalize"))
        self.ops.append((CALL, len(self.made.calls) - 1))
        if self.sends:
            self.ops.append((WAIT, tuple(self.sends)))

    def line(self, line: int, name: str, numbers: tuple[int, ...], more: Mapping[str, Any]) -> None:
        peer, tag, peer2, size, size2 = numbers
        low, ctx, req = name.lower(), 2 * int(more.get("comm", 0)), int(more.get("req", 0))
        if name in COLLECTIVES or name in COMM_MAKERS:
            self.collective(line, is_nonblocking(name) and req > 0, req)
        elif low in _MODES and not low.endswith("init"):
            slot = self.send(peer, ctx, tag, size, _MODES[low])
            if low.startswith("i"):
                self.file(req, (self.rank, peer, tag), slot)
            else:
                self.wait([slot])
        elif low in ("recv", "irecv"):
            slot = self.receive(peer, ctx, tag, size, more)
            if low == "irecv":
                self.file(req, (peer, self.rank, tag), slot)
            else:
                self.wait([slot])
        elif low == "sendrecv":
            incoming = self.receive(peer2, ctx, int(more.get("rtag", 0)), size2, more)
            outgoing = self.send(peer, ctx, tag, size, "standard")
            self.wait([outgoing, incoming])
        elif low in ("probe", "iprobe"):
            self.probe(low, peer, ctx, tag, more)
        elif low in ("wait", "test"):
            self.one(low, (peer, peer2, tag), req, more)
        elif low in ("waitall", "waitany", "waitsome", "testall", "testany", "testsome"):
            self.several(line, low, more)
        elif low.endswith("init"):
            receive = low == "recvinit"
            key = (peer, self.rank, tag) if receive else (self.rank, peer, tag)
            template = (receive, peer, ctx, tag, size, _MODES.get(low, "standard"))
            self.filed.append(_Filed(req, key, -1, template, False))
        elif low == "start":
            key = (peer, peer2, tag)
            self.start([f for f in self.filed if f.template and not f.active and (f.req == req if req else f.key == key)][:1])
        elif low == "startall":
            wanted = more.get("reqs")
            self.start([f for f in self.filed if f.template and not f.active and (wanted is None or f.req in wanted)])
        elif low == "requestfree":
            found = [f for f in self.filed if (f.req == req if req else f.key == (peer, peer2, tag))]
            self.filed = [f for f in self.filed if f not in found[:1]]
        elif name in _TRANSFERS:
            if req:
                self.file(req, (self.rank, self.rank, 0), -1)
        elif low in ("win_create", "win_free", "win_fence"):
            self.window(low, peer2, ctx)
        else:
            raise InputError(
                f"{self.trace.files[self.rank]}:{line}: {name}: the search of orders takes no locks of windows, and no post and start",
                code="unsupported-action",
            )

    # ---- parts

    def slot(self, req: int = 0) -> int:
        self.made.slots += 1
        if req:
            self.made.requests[self.made.slots] = req
        return self.made.slots

    def send(self, dst: int, ctx: int, tag: int, size: int, mode: str) -> int:
        if dst == PROC_NULL:
            return -1
        eager = dst == self.rank or self.buffers.path(self.rank, dst).eager(size)
        waits = mode == "synchronous" or not eager
        slot = self.slot()
        self.ops.append((SEND, dst, ctx, tag, size, waits, slot, eager))
        if waits:
            self.sends.append(slot)
        return -1 if mode == "buffered" else slot

    def receive(self, src: int, ctx: int, tag: int, size: int, more: Mapping[str, Any]) -> int:
        if src == PROC_NULL:
            return -1
        after = -1
        if src != ANY_SOURCE and tag != ANY_TAG:
            after = next((at for at, c, s, t in self.probed if (c, s, t) == (ctx, src, tag)), -1)
            self.probed = [p for p in self.probed if p[0] != after]
        slot = self.slot()
        self.ops.append((RECV, src, ctx, tag, size, slot, after))
        return slot

    def wait(self, slots: Sequence[int]) -> None:
        some = tuple(s for s in slots if s > 0)
        if some:
            self.ops.append((WAIT, some))

    def probe(self, low: str, src: int, ctx: int, tag: int, more: Mapping[str, Any]) -> None:
        if src == PROC_NULL or (low == "iprobe" and more.get("flag") is False):
            return
        told = low == "probe" or more.get("flag") is True
        if (src == ANY_SOURCE or tag == ANY_TAG) and ("from" in more or "mtag" in more):
            self.probed.append((len(self.ops), ctx, int(more.get("from", src)), int(more.get("mtag", tag))))
        self.ops.append((PROBE, src, ctx, tag, told))

    def file(self, req: int, key: tuple[int, int, int], slot: int) -> None:
        if req:
            self.filed = [f for f in self.filed if f.req != req or f.template]
            self.made.requests[slot] = req
        self.filed.append(_Filed(req, key, slot))

    def start(self, filed: Sequence[_Filed]) -> None:
        for f in filed:
            assert f.template is not None
            receive, peer, ctx, tag, size, mode = f.template
            f.slot = self.receive(peer, ctx, tag, size, {}) if receive else self.send(peer, ctx, tag, size, mode)
            f.active = True
            if f.req:
                self.made.requests[f.slot] = f.req

    def retire(self, done: Sequence[_Filed]) -> None:
        for f in done:
            if f.template:
                f.active = False
        gone = {id(f) for f in done if not f.template}
        self.filed = [f for f in self.filed if id(f) not in gone]

    def find(self, key: tuple[int, int, int], req: int) -> list[_Filed]:
        return [f for f in self.filed if f.active and (f.req == req if req else f.key == key)][:1]

    def one(self, low: str, key: tuple[int, int, int], req: int, more: Mapping[str, Any]) -> None:
        found = self.find(key, req)
        if low == "wait" or more.get("flag") is True:
            self.wait([f.slot for f in found])
            self.retire(found)
        elif "flag" not in more and found:
            self.choose("test", [f.slot for f in found])

    def several(self, line: int, low: str, more: Mapping[str, Any]) -> None:
        reqs, done = more.get("reqs"), more.get("done")
        listed = [f for f in self.filed if f.active and (reqs is None or f.req in reqs)]
        if low == "waitall" or (low == "testall" and more.get("flag") is True):
            done_now = listed
        elif low == "testall":
            if "flag" not in more:
                self.choose("all", [f.slot for f in listed])
            return
        elif done is not None:
            done_now = [f for f in listed if f.req in done]
        elif not listed:
            return
        elif reqs is None:
            raise InputError(
                f"{self.trace.files[self.rank]}:{line}: {low}: which of the open requests it completes cannot be told apart without reqs=; "
                "record the program with 'retrompi trace record'",
                code="unsupported-action",
            )
        else:
            what = {"waitany": "any", "waitsome": "some", "testany": "anytest", "testsome": "sometest"}[low]
            self.choose(what, [f.slot for f in listed])
            return
        self.wait([f.slot for f in done_now])
        self.retire(done_now)

    def choose(self, what: str, slots: Sequence[int]) -> None:
        number = self.slot()
        self.made.choices[number] = (len(self.made.calls) - 1, what)
        self.ops.append((CHOICE, what, tuple(s for s in slots if s > 0), number))

    def window(self, low: str, window: int, ctx: int) -> None:
        if low == "win_create":
            self.windows[window] = ctx // 2
        comm = self.windows.get(window, 0)
        members = tuple(range(self.trace.ranks)) if comm == 0 else tuple(int(r) for r in self.trace.communicator(comm)["group"])
        self.join(("win", window), members)

    def join(self, what: Any, members: tuple[int, ...]) -> None:
        turn = self.joins[what] = self.joins.get(what, -1) + 1
        self.ops.append((JOIN, (*what, turn), members))

    def collective(self, line: int, nonblocking: bool, req: int) -> None:
        """The messages of the library's own algorithm; a non-blocking one's are on a strand of their own."""
        ops, mine = self.ops, self.ops
        if nonblocking:
            slot = self.slot(req)
            ops = []
            self.made.strands.append(ops)
            self.made.rank_of.append(self.rank)
            mine.append((SPAWN, len(self.made.strands) - 1, slot))
            self.file(req, (self.rank, self.rank, 0), slot)
        self.ops = ops
        for context, tag, steps in self.library.get(line, ()):
            open_: list[tuple[int, int]] = []
            for kind, peer, place, size in steps:
                if kind == _ISEND:
                    open_.append((place, self.send(peer, context, tag, size, "standard")))
                elif kind == _IRECV:
                    open_.append((place, self.receive(peer, context, tag, size, {})))
                elif kind == _STEP_WAIT:
                    at = next((i for i, (p, _) in enumerate(open_) if p == place), None)
                    if at is not None:
                        self.wait([open_.pop(at)[1]])
                elif kind == _WAIT_ALL:
                    self.wait([s for _, s in open_])
                    open_ = []
                elif kind == _TAKEN:
                    self.ops.append((NOTIFY, peer))
                elif kind == _ALL_TAKEN:
                    self.ops.append((COUNTED, place))
            self.wait([s for _, s in open_])
        self.ops = mine
