"""Programs that complete whatever the order of messages, with what the trace format allows mixed. Seeded: a number names a program.

    python tests/program_generator.py SEED      prints a program

Every step is one operation of all ranks that take part in it. A call blocks only on what its own step or an earlier one begins, so no
program can hang, with any size of buffers. Receives of any source or tag come in bags: whatever message one of them takes, the others can
take the rest, and nothing else that matches is on its way until the bag is empty. Messages of other communicators and of collectives are.
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass, field

from collective_programs import MAKERS, Room

from retrompi import traces
from retrompi.traces import Trace

ANY_SOURCE, ANY_TAG, PROC_NULL = -555, -444, -666
SIZES = (0, 0, 1, 8, 100, 3000, 20_000, 70_000)
TAGS = (0, 0, 1, 2, 3, 77, (1 << 30) - 1, 1 << 30, (1 << 30) + 65_536, (1 << 31) - 1)
BAG_TAG, TOKEN_TAG = 1000, 5000
"""Tags of bags, each used once, and of the messages that tell that a bag is empty."""
SENDS = ("send", "Ssend", "ssend", "bsend")
PERSISTENT = {"send": "sendInit", "Ssend": "ssendInit", "ssend": "ssendInit", "bsend": "bsendInit"}
NON_BLOCKING = {"send": "isend", "Ssend": "ISsend", "ssend": "issend", "bsend": "ibsend"}


def seeds(count: int) -> list[int]:
    """``count`` seeds, or ``RETROMPI_PROGRAMS``, from ``RETROMPI_SEED`` on, which is new in every run."""
    first = int(os.environ.get("RETROMPI_SEED") or random.SystemRandom().getrandbits(32))
    count = int(os.environ.get("RETROMPI_PROGRAMS") or count)
    print(f"programs {first} to {first + count - 1}: RETROMPI_SEED={first} RETROMPI_PROGRAMS={count}")
    return list(range(first, first + count))


@dataclass
class _Rank:
    """One rank: its lines, and the requests that it has not completed, as (identity, the key of a wait)."""

    number: int
    named: bool
    default: int  # bytes of an element where a line names no type
    lines: list[str] = field(default_factory=list)
    pending: list[tuple[int, str]] = field(default_factory=list)
    requests: int = 0


class Generator:
    """One program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"program {seed}")
        self.ranks: list[_Rank] = []
        for r in range(self.rng.randint(2, 5)):
            doubles = self.rng.random() < 0.1
            self.ranks.append(_Rank(r, self.rng.random() < 0.7, 8 if doubles else 1, ["init 1" if doubles else "init"]))
        self.n = len(self.ranks)
        self.rooms = [Room(0, list(range(self.n)))]
        self.grid: Room | None = None
        # Not every program has everything, so that what one call excludes is tried with the others.
        self.sends = self.rng.choice((SENDS[:1], (*SENDS[:1], "bsend"), SENDS))
        self.recorded = self.rng.choice((0.0, 0.0, 0.3, 1.0))
        self.later = self.rng.choice((0.0, 0.3))
        self.bags = 0
        self.persistent: list[tuple[int, int, tuple[str, str]]] = []
        self.numbers = 0

    # -- words

    def put(self, rank: int, text: str) -> None:
        """A line."""
        self.ranks[rank].lines.append(text)

    def count(self, rank: int, size: int) -> str:
        """A COUNT and perhaps a TYPE of ``size`` bytes."""
        choices = [f"{size} 6"]
        if size % self.ranks[rank].default == 0:
            choices.append(str(size // self.ranks[rank].default))
        if size % 8 == 0:
            choices.append(f"{size // 8} 0")
        if size % 4 == 0:
            choices.append(f"{size // 4} 1")
        return self.rng.choice(choices)

    def room_for(self, rank: int, size: int) -> str:
        """The buffer of a receive: as long as its message, longer, or of unknown length."""
        how = self.rng.random()
        return "-1 6" if how < 0.1 else self.count(rank, size + (self.rng.choice((1, 64, 5000)) if how < 0.3 else 0))

    def on(self, room: Room) -> str:
        return f" comm={room.number}" if room.number else ""

    def post(self, rank: int, text: str, source: int, destination: int, tag: int) -> None:
        """A call that returns a request."""
        me = self.ranks[rank]
        if not me.named:
            self.put(rank, text)
            me.pending.append((0, f"{source} {destination} {tag}"))
            return
        me.requests += 1
        self.put(rank, f"{text} req={me.requests}")
        me.pending.append((me.requests, f"{source} {destination} {tag}"))

    def named(self, rank: int, req: int, key: str) -> str:
        """How a line names a request: each of the documented forms."""
        if not req:
            return key
        return self.rng.choice((f"req={req}", f"req={req}", f"{key} req={req}", f"-333 -333 0 req={req}"))

    # -- completing

    def complete(self, rank: int, *, everything: bool = False) -> None:
        """Waits for one, some or all requests of a rank, in one of the many ways; polls perhaps before."""
        me, rng = self.ranks[rank], self.rng
        if not me.pending:
            return
        if not me.named:
            if everything or rng.random() < 0.4:
                self.put(rank, rng.choice(("waitall", f"waitall {len(me.pending)}")))
                me.pending.clear()
            else:
                _, key = oldest = rng.choice(me.pending)
                me.pending.remove(oldest)
                self.put(rank, f"wait {key}")
            return
        if everything and rng.random() < 0.3:
            self.put(rank, rng.choice(("waitall", f"waitall {len(me.pending)}")))
            me.pending.clear()
            return
        chosen = list(me.pending) if everything else rng.sample(me.pending, rng.randint(1, len(me.pending)))
        me.pending = [p for p in me.pending if p not in chosen]
        while chosen:
            chosen = self.completed(rank, chosen)

    def completed(self, rank: int, chosen: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Completes one or more of ``chosen``; returns the others."""
        rng, reqs = self.rng, ",".join(str(req) for req, _ in chosen)
        one, key = chosen[0]
        count = rng.choice(("", f" {len(chosen)}"))
        calls = ("wait", "poll", "open poll", "waitall", "waitany", "waitsome", "testall", "testsome", "testany", "open any")
        match rng.choice((*calls, "wait", "waitall")):
            case "wait":
                self.put(rank, f"wait {self.named(rank, one, key)}")
                return chosen[1:]
            case "poll":
                for _ in range(rng.randint(0, 3)):
                    self.put(rank, f"test {self.named(rank, one, key)} flag=0")
                self.put(rank, f"test {self.named(rank, one, key)} flag=1")
                return chosen[1:]
            case "open poll":  # whether a test succeeds is recorded, or left to the replay
                for _ in range(rng.randint(1, 3)):
                    self.put(rank, f"test {self.named(rank, one, key)}{rng.choice((' flag=0', ''))}")
                self.put(rank, f"wait {self.named(rank, one, key)}")
                return chosen[1:]
            case "waitall":
                self.put(rank, f"waitall{count} reqs={reqs}")
                return []
            case "waitany":
                done = rng.choice(chosen)
                self.put(rank, f"{rng.choice(('waitany', 'waitAny'))}{count} reqs={reqs} done={done[0]}")
                return [p for p in chosen if p != done]
            case "testany":
                self.put(rank, f"testany{count} reqs={reqs} done=none")
                self.put(rank, f"testany{count} reqs={reqs} done={one}")
                return chosen[1:]
            case "waitsome" | "testsome" as call:
                some = rng.sample(chosen, rng.randint(1, len(chosen)))
                self.put(rank, f"{call}{count} reqs={reqs} done={','.join(str(req) for req, _ in some)}")
                return [p for p in chosen if p not in some]
            case "testall":
                self.put(rank, f"testall{count} reqs={reqs} flag=0")
                self.put(rank, f"testall{count} reqs={reqs} flag=1")
                return []
            case _:  # which of them is not recorded: the replay decides, and all of them are complete at the end
                for _ in chosen:
                    self.put(rank, f"waitany{count} reqs={reqs}")
                return []

    def quiet(self, rank: int) -> None:
        """Completes all requests of a rank."""
        while self.ranks[rank].pending:
            self.complete(rank, everything=True)

    # -- steps

    def message(self) -> None:
        """A message with its receive, in any mode, of any communicator; perhaps to oneself, perhaps probed."""
        rng, room = self.rng, self.rng.choice(self.rooms)
        a, b = rng.choice(room.group), rng.choice(room.group)
        tag, size = rng.choice(TAGS), rng.choice(SIZES)
        early = a == b or rng.random() < 0.6
        if early:
            self.post(b, f"irecv {a} {tag} {self.room_for(b, size)}{self.on(room)}", a, b, tag)
        if a != b and rng.random() < 0.5:
            self.put(a, f"{rng.choice(self.sends)} {b} {tag} {self.count(a, size)}{self.on(room)}")
        else:
            self.post(a, f"{NON_BLOCKING[rng.choice(self.sends)]} {b} {tag} {self.count(a, size)}{self.on(room)}", a, b, tag)
        if early:
            return
        if not self.ranks[b].pending and rng.random() < 0.5:
            self.put(b, f"probe {a} {tag}{self.on(room)}")
            if rng.random() < 0.3:
                self.put(b, f"compute {rng.randrange(10_000)}")
            if rng.random() < 0.3:
                self.put(b, f"iprobe {a} {tag}{self.on(room)} flag=1")
        self.put(b, f"recv {a} {tag} {self.room_for(b, size)}{self.on(room)}")

    def exchange(self) -> None:
        """MPI_Sendrecv around a ring of some ranks, with MPI_PROC_NULL at the ends if it is open, and with oneself."""
        rng, room = self.rng, self.rng.choice(self.rooms)
        ring = rng.sample(room.group, rng.randint(1, len(room.group)))
        closed, tags = rng.random() < 0.5, rng.choice(((0, 0), (rng.choice(TAGS), 9), (3, 3)))
        sizes = [rng.choice(SIZES) for _ in ring]
        for at, me in enumerate(ring):
            there, here = ring[(at + 1) % len(ring)], ring[at - 1]
            to = there if closed or at + 1 < len(ring) else PROC_NULL
            source = here if closed or at else PROC_NULL
            room_for = sizes[at - 1] + rng.choice((0, 0, 10))
            attributes = (f" stag={tags[0]}" if tags[0] else "") + (f" rtag={tags[0]}" if tags[0] else "")
            self.put(me, f"sendRecv {sizes[at]} {to} {room_for} {source} 6 6{attributes}{self.on(room)}")

    def swap(self) -> None:
        """Two ranks that both send before they receive: it needs buffers."""
        rng, room = self.rng, self.rng.choice(self.rooms)
        if "bsend" not in self.sends or len(room.group) < 2:
            return
        a, b = rng.sample(room.group, 2)
        tag, size = rng.choice(TAGS), rng.choice((8, 1_000_000))
        for me, other in ((a, b), (b, a)):
            self.put(me, f"bsend {other} {tag} {self.count(me, size)}{self.on(room)}")
            self.put(me, f"recv {other} {tag} {self.room_for(me, size)}{self.on(room)}")

    def null(self) -> None:
        """A message to nobody."""
        r = self.rng.randrange(self.n)
        self.put(r, self.rng.choice((f"send {PROC_NULL} 3 8 6", f"recv {PROC_NULL} 3 8 6")))

    def collective(self) -> None:
        """Any collective on any communicator, perhaps non-blocking and completed much later."""
        rng = self.rng
        word = rng.choice(["barrier", *MAKERS])
        if word.startswith("neighbor"):
            if self.grid is None:
                return
            room = self.grid
        else:
            room = rng.choice(self.rooms)
        later = rng.random() < self.later and all(self.ranks[r].named for r in room.group)
        for r, text in MAKERS[word](rng, room).items():
            if later:
                self.post(r, f"i{text}{self.on(room)}", r, r, 0)
                self.ranks[r].pending[-1] = (self.ranks[r].requests, "-333 -333 0")
            else:
                self.put(r, text + self.on(room))

    def communicator(self) -> None:
        """One more communicator."""
        rng, parent = self.rng, self.rng.choice(self.rooms)
        self.numbers += 1
        how = rng.choice(("split", "dup", "group", "grid"))
        group = list(parent.group)
        if how in ("split", "group"):
            group = rng.sample(group, rng.randint(1, len(group)))
        text = ",".join(map(str, group))
        room = Room(self.numbers, group)
        for r in parent.group:
            if how == "split":
                self.put(r, (f"comm_split {room.number} {text}" if r in group else "comm_split -1") + self.on(parent))
            elif how == "dup":
                self.put(r, f"comm_dup {room.number} {text}{self.on(parent)}")
            elif how == "group" and r in group:
                self.put(r, f"comm_create_group {room.number} {text}{self.on(parent)}")
            elif how == "grid":
                self.put(r, f"cart_create {room.number} {text}{self.on(parent)} dims={len(group)} periods=1")
        if how == "grid":
            size = len(group)
            room.sources = room.destinations = [[] for _ in range(self.n)]
            for at, r in enumerate(group):
                room.sources[r] = [group[at - 1], group[(at + 1) % size]]
            self.grid = room
        self.rooms.append(room)

    def computation(self) -> None:
        r = self.rng.randrange(self.n)
        long = f"compute {self.rng.randrange(100_000)}"
        others = ("compute 0.7", "sleep 1e-6", "# mark here", "iprobe -555 -444 flag=0", "iprobe -555 3", "comm_size 0", "comm_dup")
        self.put(r, self.rng.choice((long, *others)))

    def make_persistent(self) -> None:
        """A message that is sent again and again."""
        rng, room = self.rng, self.rng.choice(self.rooms)
        if len(room.group) < 2:
            return
        a, b = rng.sample(room.group, 2)
        tag, size = rng.choice(TAGS), rng.choice(SIZES)
        if any((x, y) == (a, b) for x, y, _ in self.persistent):
            return
        keys = []
        for r, text in ((a, f"{PERSISTENT[rng.choice(self.sends)]} {b} {tag} {self.count(a, size)}"),
                        (b, f"recvInit {a} {tag} {self.room_for(b, size)}")):
            me = self.ranks[r]
            key = f"{a} {b} {tag}"
            me.requests += me.named
            self.put(r, text + self.on(room) + (f" req={me.requests}" if me.named else ""))
            keys.append(f"{key} req={me.requests}" if me.named else key)
        self.persistent.append((a, b, (keys[0], keys[1])))

    def use_persistent(self) -> None:
        """Starts a persistent pair, and waits for it at once or after the other side has started."""
        if not self.persistent:
            return
        a, b, keys = self.rng.choice(self.persistent)
        for r in (a, b):
            if not self.ranks[r].named:
                self.quiet(r)  # an unnamed request of the same key would be waited for first
        for r, key in ((b, keys[1]), (a, keys[0])):
            _, _, named = key.partition(" req=")
            if named and self.rng.random() < 0.3:
                self.put(r, f"startall 1 reqs={named}")
            else:
                self.put(r, f"start {self.named(r, int(named or 0), key.split(' req=')[0])}")
        for r, key in ((b, keys[1]), (a, keys[0])):
            _, _, named = key.partition(" req=")
            self.put(r, f"wait {self.named(r, int(named or 0), key.split(' req=')[0])}")

    # -- any source, any tag

    def bag(self) -> None:
        """Messages of some ranks to one, received in any order; with what is on its way beside them."""
        rng = self.rng
        room = rng.choice([room for room in self.rooms if len(room.group) > 1])
        me = rng.choice(room.group)
        self.bags += 1
        self.quiet(me)
        senders = rng.choices([r for r in room.group if r != me], k=rng.randint(1, 4))
        one_tag = rng.random() < 0.3
        sole = rng.choice((BAG_TAG + self.bags, rng.choice(TAGS)))
        sent = [(s, sole if one_tag else rng.choice((1, 2, 1 << 30, BAG_TAG + self.bags)), rng.choice(SIZES)) for s in senders]
        tag = sole if one_tag and rng.random() < 0.7 else ANY_TAG
        source = senders[0] if len(set(senders)) == 1 and rng.random() < 0.7 else ANY_SOURCE
        alone = one_tag and tag != ANY_TAG and sole == BAG_TAG + self.bags
        beside = self.beside(room, me, sent) if rng.random() < 0.5 else []
        self.receive_bag(room, me, source, tag, sent, beside)
        if not alone:
            self.emptied(room, me)

    def beside(self, bag: Room, me: int, sent: list[tuple[int, int, int]]) -> list[tuple[Room, int, int, int]]:
        """Messages with the same tags on another communicator, on their way at the same time: communicator, sender, tag, bytes."""
        found = []
        for s, tag, _ in sent:
            room = self.rng.choice([room for room in self.rooms if s in room.group and me in room.group])
            # A bag on the other communicator is empty: `me` is behind it, and so is all that was sent to it.
            if room is not bag and self.rng.random() < 0.5:
                found.append((room, s, tag, self.rng.choice(SIZES)))
        return found

    def receive_bag(
        self, room: Room, me: int, source: int, tag: int, sent: list[tuple[int, int, int]], beside: list[tuple[Room, int, int, int]]
    ) -> None:
        """What ``me`` does for its bag, and what the senders do."""
        rng, largest = self.rng, max(size for _, _, size in sent)
        order = list(sent)
        if rng.random() < 0.5:  # any merging of the senders' sequences is possible
            taken: dict[int, list[tuple[int, int, int]]] = {}
            for m in sent:
                taken.setdefault(m[0], []).append(m)
            order = [taken[s].pop(0) for s in rng.sample([m[0] for m in sent], len(sent))]
        recorded = rng.random() < self.recorded
        how = rng.choice(("recv", "irecv", "irecv", "probe", "sendRecv", "persistent"))
        if how == "persistent" and not self.ranks[me].named:
            how = "irecv"
        matches = [f" from={s} mtag={t}" if recorded else "" for s, t, _ in order]
        buffer = f"{source} {tag} {rng.choice((largest, largest + 1, -1))} 6{self.on(room)}"
        if how == "irecv":
            for match in matches:
                self.post(me, f"irecv {buffer}{match}", source, me, tag)
        elif how == "persistent":
            first = self.ranks[me].requests + 1
            for _ in matches:
                self.ranks[me].requests += 1
                self.put(me, f"recvInit {buffer} req={self.ranks[me].requests}")
            reqs = ",".join(str(first + i) for i in range(len(matches)))
            told = ""
            if recorded:
                told = " from=" + ",".join(f"{first + i}:{m[0]}" for i, m in enumerate(order))
                told += " mtag=" + ",".join(f"{first + i}:{m[1]}" for i, m in enumerate(order))
            self.put(me, f"startall {len(matches)} reqs={reqs}{told}")
            self.ranks[me].pending += [(first + i, f"{source} {me} {tag}") for i in range(len(matches))]
        for s, t, size in sent:
            if how in ("irecv", "persistent") and rng.random() < 0.5:
                self.put(s, f"{rng.choice(self.sends)} {me} {t} {self.count(s, size)}{self.on(room)}")
            else:
                self.post(s, f"{NON_BLOCKING[rng.choice(self.sends)]} {me} {t} {self.count(s, size)}{self.on(room)}", s, me, t)
        for there, s, t, size in beside:
            self.post(s, f"isend {me} {t} {self.count(s, size)}{self.on(there)}", s, me, t)
        if how in ("irecv", "persistent") and rng.random() < 0.6:
            around = rng.choice([x for x in self.rooms if me in x.group])
            word = rng.choice(("barrier", "allreduce", "gather", "alltoall", "bcast"))
            for r, text in MAKERS[word](rng, around).items():
                self.put(r, text + self.on(around))
        if how in ("irecv", "persistent"):
            self.quiet(me)
            if how == "persistent":
                for i in range(len(matches)):
                    self.put(me, f"requestFree {self.named(me, first + i, f'{source} {me} {tag}')}")
        elif how == "sendRecv":
            for match, (_, _, size) in zip(matches, order, strict=True):
                attribute = f" rtag={tag}" if tag else ""
                self.put(me, f"sendRecv 8 {PROC_NULL} {max(largest, size)} {source} 6 6{attribute}{match}{self.on(room)}")
        else:
            for match in matches:
                if how == "probe":
                    self.put(me, f"probe {source} {tag}{match}{self.on(room)}")
                self.put(me, f"recv {buffer}{match}")
        for there, s, t, size in beside:
            self.put(me, f"recv {s} {t} {self.room_for(me, size)}{self.on(there)}")

    def emptied(self, room: Room, me: int) -> None:
        """Nobody sends to ``me`` on this communicator before its bag is empty: a barrier, or a message of ``me`` to each."""
        if self.rng.random() < 0.6:
            for r in room.group:
                self.put(r, "barrier" + self.on(room))
            return
        for r in room.group:
            if r != me:
                self.put(me, f"send {r} {TOKEN_TAG + self.bags} 0 6{self.on(room)}")
                self.put(r, f"recv {me} {TOKEN_TAG + self.bags} 0 6{self.on(room)}")

    # -- the program

    def steps(self) -> None:
        """All of it."""
        rng = self.rng
        steps = [*[self.message] * 6, *[self.bag] * 3, *[self.collective] * 3, *[self.exchange] * 2, *[self.use_persistent] * 2]
        steps += [self.swap, self.communicator, self.computation, self.make_persistent, self.null]
        for _ in range(rng.randint(2, 30)):
            rng.choice(steps)()
            for r in range(self.n):
                if rng.random() < 0.15:
                    self.complete(r)
        for r in range(self.n):
            self.quiet(r)
        for a, b, keys in self.persistent:
            for r, key in ((a, keys[0]), (b, keys[1])):
                _, _, named = key.partition(" req=")
                self.put(r, f"requestFree {self.named(r, int(named or 0), key.split(' req=')[0])}")

    def text(self) -> str:
        """The lines of all ranks, in one file."""
        self.steps()
        lines = []
        for me in self.ranks:
            for line in [*me.lines, "finalize"]:
                lines.append(f"# {me.number} {line[2:]}" if line.startswith("#") else f"{me.number} {line}")
        return "".join(line + "\n" for line in lines)


def text(seed: int) -> str:
    """The lines of a program, in one file."""
    return Generator(seed).text()


def program(seed: int) -> Trace:
    """The program as a trace."""
    return traces.parse(text(seed), name=f"program-{seed}")


if __name__ == "__main__":
    print(text(int(sys.argv[1])), end="")
