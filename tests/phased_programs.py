"""Programs in one global order of events, with their two ends moved apart: a second source of programs for tools that rewrite traces.

    python tests/phased_programs.py SEED      prints a program

An event is a message, a collective or the making of a communicator. All ranks come to their events in this order, so
that no program can hang; receives are posted earlier than their event, as far as no other receive could take their message, and requests
are completed later. In a phase of wildcards some ranks receive whatever is sent to them, from anybody with any tag; a barrier ends it.
What `program_generator` has not: many ranks, programs of which not all requests are named, groups that go down or in steps, two-dimensional
grids, graphs and intercommunicators, ready sends, requests to MPI_PROC_NULL, numbers as SMPI writes them, requests used again.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field

from collective_programs import MAKERS, Room, make_rooms

from retrompi import traces
from retrompi.traces import Trace
from retrompi.traces.lines import show_group

ANY_SOURCE, ANY_TAG, PROC_NULL, ALL = -555, -444, -666, -1
SIZES = (0, 0, 0, 1, 1, 7, 64, 64, 1000, 1000, 4096, 4096, 20_000, 150_000)
TAGS = (0, 1, 5, 99, (1 << 30) - 2, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, (1 << 30) + 99, (1 << 31) - 1)
SENDS = {"send": "isend", "Ssend": "ISsend", "ssend": "issend", "bsend": "ibsend"}
NO_KEY = "-333 -333 0"
Signature = tuple[int, int, int]
"""Communicator, source and tag of a receive, `ALL` for any."""


def overlap(a: Signature, b: Signature) -> bool:
    """Whether one message may fit both receives."""
    return a[0] == b[0] and all(ALL in (x, y) or x == y for x, y in zip(a[1:], b[1:], strict=True))


@dataclass(eq=False)
class Request:
    """A request of a rank: the key of its wait, whether its lines name it, and whether it is persistent."""

    key: str
    named: bool
    persistent: bool = False
    number: int = 0


@dataclass(eq=False)
class Line:
    """A line without its rank: ``{0}`` and so on stand for the numbers of requests. ``takes``: what it receives; ``all``: no receive may be
    posted before it that is not complete behind it."""

    text: str
    requests: tuple[Request, ...] = ()
    posts: Request | None = None
    frees: tuple[Request, ...] = ()
    takes: Signature | None = None
    all: bool = False


@dataclass
class Rank:
    """A rank: its lines, its pending requests in the order of their posting, how it writes, and the line that its phase begins with."""

    me: int
    names: float  # the share of requests with a number
    reuses: bool
    lines: list[Line] = field(default_factory=list)
    pending: list[Request] = field(default_factory=list)
    phase: int = 0
    wild: bool = False
    recorded: bool = False


class Program:
    """One program."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(f"phased {seed}")
        n = self.n = rng.choices((2, 3, 4, 5, 6, 7, 12, 24), (12, 12, 12, 8, 6, 4, 4, 1))[0]
        names = rng.choice((1.0, 1.0, 0.5, 0.0))
        self.ranks = [Rank(r, names, rng.random() < 0.6) for r in range(n)]
        self.rooms: list[Room] = [Room(0, list(range(n)))]
        if rng.random() < 0.4:
            rows: list[list[str]] = [[] for _ in range(n)]
            self.rooms = make_rooms(rng, n, rows)
            for r, row in enumerate(rows):
                self.ranks[r].lines += map(Line, row)
        self.comms = 20
        self.modes = rng.choice((["send"], ["send", "bsend"], list(SENDS)))
        self.nonblocking = rng.choice((0.0, 0.3))
        self.tag = 1000
        self.kept: list[tuple[int, int, str, Room, Request, Request]] = []

    # -- writing

    def put(self, rank: int, text: str, *requests: Request, at: int | None = None, **more: object) -> Line:
        """A line, at the end or inserted."""
        line = Line(text, requests, **more)  # type: ignore[arg-type]
        self.ranks[rank].lines.insert(len(self.ranks[rank].lines) if at is None else at, line)
        return line

    def request(self, rank: int, key: str, named: bool | None = None) -> Request:
        made = Request(key, self.rng.random() < self.ranks[rank].names if named is None else named)
        self.ranks[rank].pending.append(made)
        return made

    def count(self, size: int) -> str:
        """COUNT and TYPE, or COUNT alone, of ``size`` bytes."""
        forms = [f"{size} 6", f"{size}", f"{float(size):.1f} 2"]
        if size % 1000 == 0 and size:
            forms.append(f"{size // 1000}e3 6")
        forms += [f"{size // width} {code}" for width, code in ((2, 3), (4, 1), (8, 0), (8, 4), (16, 26)) if size % width == 0]
        return self.rng.choice(forms)

    @staticmethod
    def on(room: Room) -> str:
        return room.attribute

    # -- messages

    def earliest(self, rank: Rank, takes: Signature) -> int:
        """The first line of the phase before which a receive may be posted without taking what another takes."""
        at = len(rank.lines)
        while at > rank.phase and not rank.lines[at - 1].all:
            other = rank.lines[at - 1].takes
            if other is not None and overlap(other, takes):
                break
            at -= 1
        return at

    def message(self) -> None:
        """A message in one of many forms."""
        rng = self.rng
        room = rng.choice([r for r in self.rooms if not r.far or rng.random() < 0.3])
        a = rng.choice(room.members)
        b = rng.choice(room.other(a))
        tag, size = rng.choice(TAGS), rng.choice(SIZES)
        to = self.ranks[b]
        takes: Signature = (room.number, a, tag)
        source, told, wanted = str(a), tag, size
        match = ""
        if to.wild:
            takes, source, told, wanted = (room.number, ALL, ALL), str(ANY_SOURCE), ANY_TAG, -1
            match = f" from={a} mtag={tag}" if to.recorded else ""
        elif rng.random() < 0.15:
            self.tag += 1
            tag = told = self.tag
            takes, source = (room.number, ALL, tag), str(ANY_SOURCE)
            match = f" from={a}" if rng.random() < 0.4 else ""
        elif rng.random() < 0.15:
            takes, told, wanted = (room.number, a, ALL), ANY_TAG, -1
            match = f" mtag={tag}" if rng.random() < 0.4 else ""
        buffer = f"{wanted} 6" if wanted < 0 else rng.choice((self.count(size), self.count(size), f"{size + 17} 6", "-1 6"))
        receive = f"{source} {told} {buffer}"
        blocks = rng.random() < 0.5 and a != b and not to.wild
        posts_early = a == b or rng.random() < 0.5
        if posts_early:
            self.post(b, f"irecv {receive}{match}{self.on(room)}", f"{source} {b} {told}", takes, early=True)
        if blocks and not posts_early and rng.random() < 0.25 and tag < 1 << 30 and not room.far:
            self.put(a, f"sendRecv {size} {b} 3 {PROC_NULL} 6 6 stag={tag}{self.on(room)}")
        elif blocks:
            self.put(a, f"{rng.choice(self.modes)} {b} {tag} {self.count(size)}{self.on(room)}")
        else:
            self.post(a, f"{SENDS[rng.choice(self.modes)]} {b} {tag} {self.count(size)}{self.on(room)}", f"{a} {b} {tag}")
        if posts_early:
            return
        if rng.random() < 0.3 and not (to.wild and not to.recorded and to.pending):
            for _ in range(rng.randint(0, 2)):
                self.put(b, f"iprobe {source} {told} flag=0{self.on(room)}")
            self.put(b, rng.choice(("probe {} {}{}{}", "iprobe {} {} flag=1{}{}")).format(source, told, match, self.on(room)), takes=takes)
        if rng.random() < 0.2 and not room.far:
            self.put(
                b, f"sendRecv 5 {PROC_NULL} {max(SIZES) if to.wild else size} {source} 6 6 rtag={told}{match}{self.on(room)}", takes=takes
            )
        else:
            self.put(b, f"recv {receive}{match}{self.on(room)}", takes=takes)

    def post(self, rank: int, text: str, key: str, takes: Signature | None = None, early: bool = False) -> Request:
        """A call that returns a request."""
        me = self.ranks[rank]
        first = self.earliest(me, takes) if early and takes is not None else len(me.lines)
        made = self.request(rank, key)
        # A request that has no number, or the key of a send to itself, would be older than another of its key.
        moves = made.named and takes is not None and takes[1] != rank and self.rng.random() < 0.7
        at = self.rng.randint(first, len(me.lines)) if moves else None
        self.put(rank, text + (" req={0}" if made.named else ""), made, at=at, posts=made, takes=takes)
        return made

    def persistent(self) -> None:
        """A persistent pair: made, and started; or one that is there, started again."""
        rng = self.rng
        able = [k for k in self.kept if k[4] not in self.ranks[k[0]].pending and k[5] not in self.ranks[k[1]].pending]
        if able and rng.random() < 0.6:
            kept = rng.choice(able)
        else:
            room = rng.choice(self.rooms)
            a = rng.choice(room.members)
            b = rng.choice(room.other(a))
            if a == b or self.ranks[a].wild or self.ranks[b].wild:
                return
            self.tag += 1
            size = rng.choice(SIZES)
            key, on = f"{a} {b} {self.tag}", self.on(room)
            ends = [Request(key, True, True), Request(key, True, True)]
            mode = {"send": "sendInit", "bsend": "bsendInit"}.get(rng.choice(self.modes), "ssendInit")
            self.put(a, f"{mode} {b} {self.tag} {self.count(size)}{on} req={{0}}", ends[0], posts=ends[0])
            self.put(b, f"recvInit {a} {self.tag} {self.count(size)}{on} req={{0}}", ends[1], posts=ends[1])
            kept = (a, b, key, room, *ends)
            self.kept.append(kept)
        for rank, end in ((kept[1], kept[5]), (kept[0], kept[4])):
            form = rng.choice(("start req={0}", f"start {kept[2]} req={{0}}", "startall 1 reqs={0}", "startall reqs={0}"))
            self.put(rank, form, end)
            self.ranks[rank].pending.append(end)

    def ready(self) -> None:
        """A ready send: its receive is posted before a barrier."""
        room = self.rooms[0]
        a, b = self.rng.sample(room.group, 2)
        if self.ranks[b].wild:
            return
        self.tag += 1
        self.post(b, f"irecv {a} {self.tag} 500 6", f"{a} {b} {self.tag}", (0, a, self.tag))
        self.barrier()
        if self.rng.random() < 0.5:
            self.put(a, f"rsend {b} {self.tag} 500 6")
        else:
            self.post(a, f"irsend {b} {self.tag} 500 6", f"{a} {b} {self.tag}")

    def nobody(self) -> None:
        """Calls with MPI_PROC_NULL, and requests of them."""
        r = self.rng.randrange(self.n)
        form = self.rng.choice(("send", "recv", "isend", "irecv", "probe", "sendRecv"))
        if form == "probe":
            self.put(r, f"probe {PROC_NULL} 3")
        elif form == "sendRecv":
            self.put(r, f"sendRecv 9 {PROC_NULL} 9 {PROC_NULL} 6 6")
        elif form.startswith("i"):
            self.post(r, f"{form} {PROC_NULL} 3 8 6", f"{r} {PROC_NULL} 3" if form == "isend" else f"{PROC_NULL} {r} 3")
        else:
            self.put(r, f"{form} {PROC_NULL} 3 8 6")

    # -- completing

    def complete(self, rank: int, everything: bool = False) -> None:
        """Completes some requests of a rank, or all."""
        me, rng = self.ranks[rank], self.rng
        while me.pending:
            self.completed(me, everything)
            if not everything and rng.random() < 0.5:
                return

    def completed(self, me: Rank, everything: bool) -> None:
        rng, r = self.rng, me.me
        if rng.random() < 0.15 or (everything and rng.random() < 0.3):
            self.put(r, rng.choice(("waitall", f"waitall {len(me.pending)}")), frees=self.gone(me, me.pending), all=True)
            return
        named = [q for q in me.pending if q.named]
        if not named or rng.random() < 0.3:
            one = rng.choice(me.pending)
            if not one.named:
                one = next(q for q in me.pending if q.key == one.key)
            if one.named and next(q for q in me.pending if q.key == one.key) is not one:
                return
            forms = [f"wait {one.key}", f"wait {one.key}", f"test {one.key} flag=1"]
            if one.named:
                forms += ["wait req={0}", "wait req={0}", "wait -333 -333 0 req={0}", f"wait {one.key} req={{0}}", "test req={0} flag=1"]
                forms = forms[3:] if one.persistent or one.key == NO_KEY else forms
            form = rng.choice(forms)
            if rng.random() < 0.2:
                self.put(r, f"test {one.key}{' req={0}' if one.named else ''} flag=0", one)
            self.put(r, form, one, frees=self.gone(me, [one]), all="req" not in form)
            return
        some = rng.sample(named, rng.randint(1, len(named)))
        reqs = "reqs=" + ",".join(f"{{{i}}}" for i in range(len(some)))
        if rng.random() < 0.4:
            self.put(r, rng.choice((f"waitall {reqs}", f"waitall {len(some)} {reqs}", f"testall {reqs} flag=1")), *some,
                     frees=self.gone(me, some))
            return
        which = sorted(rng.sample(range(len(some)), rng.randint(1, len(some))))
        call = rng.choice(("waitany", "waitAny", "waitsome", "testany", "testsome"))
        if call.lower().endswith("any"):
            which = which[:1]
        if call.startswith("test") and rng.random() < 0.5:
            self.put(r, f"{call} {reqs} done=none", *some)
        self.put(r, f"{call} {reqs} done={','.join(f'{{{i}}}' for i in which)}", *some, frees=self.gone(me, [some[i] for i in which]))

    @staticmethod
    def gone(me: Rank, some: list[Request]) -> tuple[Request, ...]:
        """Takes requests from those pending; returns those whose number is free then."""
        taken = list(some)
        me.pending = [q for q in me.pending if q not in taken]
        return tuple(q for q in taken if not q.persistent)

    # -- collectives, communicators, windows

    def collective(self) -> None:
        rng = self.rng
        word = rng.choice(list(MAKERS))
        fit = [x for x in self.rooms if (x.sources or not word.startswith("neighbor")) and not (x.far and word in ("scan", "exscan"))]
        if not fit:
            return
        room = rng.choice(fit)
        later = rng.random() < self.nonblocking
        for r, text in MAKERS[word](rng, room).items():
            if later:
                made = self.request(r, NO_KEY, True)
                self.put(r, f"i{text}{self.on(room)} req={{0}}", made, posts=made)
            else:
                self.put(r, text + self.on(room))

    def group(self, ranks: list[int]) -> str:
        """A text of these ranks in this order."""
        if len(ranks) > 2 and ranks == list(range(ranks[0], ranks[-1] - 1, -1)):
            return f"{ranks[0]}-{ranks[-1]}"
        return self.rng.choice((show_group(ranks), ",".join(map(str, ranks))))

    def communicator(self) -> None:
        rng = self.rng
        parent = rng.choice([x for x in self.rooms if not x.far])
        self.comms += 1
        group = list(parent.group)
        how = rng.choice(("halves", "reversed", "dup", "grid", "create"))
        if how == "halves":
            colour = {r: rng.randrange(2) for r in group}
            parts = [[r for r in group if colour[r] == c] for c in (0, 1)]
            numbers = [self.comms, self.comms + 1]
            self.comms += 1
            for r in group:
                self.put(r, f"comm_split {numbers[colour[r]]} {self.group(parts[colour[r]])}{self.on(parent)}", all=True)
            self.rooms += [Room(number, part) for number, part in zip(numbers, parts, strict=True) if part]
            return
        room = Room(self.comms, group[::-1] if how == "reversed" else group)
        if how == "create":
            room.group = rng.sample(group, rng.randint(1, len(group)))
        text = self.group(room.group)
        for r in group:
            if how == "reversed":
                self.put(r, f"comm_split {room.number} {text}{self.on(parent)}", all=True)
            elif how == "dup":
                self.put(r, f"comm_dup {room.number} {text}{self.on(parent)}", all=True)
            elif how == "create" and r in room.group:
                self.put(r, f"comm_create_group {room.number} {text}{self.on(parent)}", all=True)
            elif how == "grid":
                self.put(r, f"cart_create {room.number} {text}{self.on(parent)} dims={len(group)}x1 periods=0x1", all=True)
        if how == "dup":
            room.sources, room.destinations = parent.sources, parent.destinations
        self.rooms.append(room)

    def beside(self) -> None:
        """What is no call of MPI, or is ignored."""
        rng = self.rng
        r = rng.randrange(self.n)
        calls = ("compute 12345", "compute 1e5", "compute 0", "compute 0.25", "sleep 1e-7", "# mark a label = 3", "comm_size 4")
        self.put(r, rng.choice(calls))

    def barrier(self) -> None:
        for r in range(self.n):
            self.put(r, "barrier")

    # -- the program

    def phase(self) -> None:
        """Some events between two points at which no request is open."""
        rng = self.rng
        wild = rng.random() < 0.3
        for me in self.ranks:
            me.phase, me.wild = len(me.lines), wild and rng.random() < 0.5
            me.recorded = rng.random() < 0.5
        events = [
            *[self.message] * 10,
            *[self.collective] * 3,
            *[self.persistent] * 2,
            self.communicator,
            self.beside,
            self.beside,
            self.nobody,
        ]
        events += [self.ready] if rng.random() < 0.2 else []
        for _ in range(rng.randint(1, 14)):
            event = rng.choice(events)
            if any(me.wild for me in self.ranks) and event in (self.persistent, self.ready):
                continue
            event()
            for r in range(self.n):
                # What is sent to a rank that takes anything is taken for sure only when all of the phase is sent.
                if not any(me.wild for me in self.ranks) and rng.random() < 0.12:
                    self.complete(r)
        for r in range(self.n):
            self.complete(r, everything=True)
        if any(me.wild for me in self.ranks):
            self.barrier()

    def text(self) -> str:
        """The lines of all ranks, in one file."""
        for _ in range(self.rng.randint(1, 3)):
            self.phase()
        for a, b, key, _, *ends in self.kept:
            for rank, end in zip((a, b), ends, strict=True):
                self.put(rank, self.rng.choice(("requestFree req={0}", f"requestFree {key} req={{0}}")), end, frees=(end,))
        rows = [[f"{me.me} init", *self.numbered(me), f"{me.me} finalize"] for me in self.ranks]
        if self.rng.random() < 0.5:  # in any mixture
            mixed: list[str] = []
            while any(rows):
                mixed.append(self.rng.choice([row for row in rows if row]).pop(0))
            rows = [mixed]
        return "".join(line + "\n" for row in rows for line in row)

    def numbered(self, me: Rank) -> list[str]:
        """The lines with numbers for requests: the lowest that is free, or always a new one."""
        free, new, out = list[int](), 1, []
        for line in me.lines:
            if line.posts is not None and line.posts.named:
                if free and me.reuses:
                    line.posts.number = free.pop(free.index(min(free)))
                else:
                    line.posts.number, new = new, new + 1
            text = line.text.format(*(q.number for q in line.requests))
            free += [q.number for q in line.frees if q.named]
            out.append(f"# {me.me} {text[2:]}" if text.startswith("#") else f"{me.me} {text}")
        return out


def text(seed: int) -> str:
    """The lines of a program, in one file."""
    return Program(seed).text()


def program(seed: int) -> Trace:
    """The program as a trace."""
    return traces.parse(text(seed), name=f"phased-{seed}")


if __name__ == "__main__":
    print(text(int(sys.argv[1])), end="")
