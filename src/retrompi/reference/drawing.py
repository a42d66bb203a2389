"""The lines of a generated program: calls of all kinds that the specification covers, drawn at random.

Point to point with wildcards, probes, tests, persistent requests, messages to oneself and to nobody; communicators of every kind, and
collectives over them, blocking or not, with unequal counts and any root; blocks that repeat equally, unequally and almost; ranks that end
early, buffers that are too small, messages that nobody receives.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from retrompi.reference.values import ANY_SOURCE, ANY_TAG, PROC_NULL

__all__ = ["Drawing"]

SIZES = (0, 0, 0, 1, 1, 8, 100, 1000, 1460, 1461, 4000, 5000, 16_384, 20_000, 65_536, 131_073)
TAGS = (0, 0, 0, 1, 2, 77, (1 << 31) - 1)
SENDS = {"send": "isend", "Ssend": "ISsend", "bsend": "ibsend", "rsend": "irsend"}
INITS = {"send": "sendInit", "Ssend": "ssendInit", "bsend": "bsendInit", "rsend": "rsendInit"}
ROOT = -777
ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")
COLLECTIVES = ("barrier", *ROOTED, "allreduce", "scan", "exscan", "reducescatter", "reducescatterblock", "alltoall", "alltoallv",
               "alltoallw", "allgather", "allgatherv")
NEIGHBOURS = ("neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw")


@dataclass(frozen=True)
class DrawnCommunicator:
    """A communicator: world ranks of its members, of an intercommunicator those of the other group; with a topology, each member's
    neighbours, ranks of the communicator."""

    number: int
    group: tuple[int, ...]
    remote: tuple[int, ...] = ()
    sources: tuple[tuple[int, ...], ...] = ()
    targets: tuple[tuple[int, ...], ...] = ()

    @property
    def on(self) -> str:
        """How a line names it."""
        return f" comm={self.number}" if self.number else ""

    @property
    def sides(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Each group, and the one that it exchanges data with."""
        return ((self.group, self.remote), (self.remote, self.group)) if self.remote else ((self.group, self.group),)


def _comma_list(ranks: Sequence[int]) -> str:
    return ",".join(map(str, ranks))


@dataclass
class _Rank:
    lines: list[str] = field(default_factory=list)
    pending: list[tuple[int, str]] = field(default_factory=list)
    requests: int = 0


class Drawing:
    """The lines of one program."""

    def __init__(self, rng: random.Random, ranks: int, one_sided: bool = False) -> None:
        self.rng = rng
        everybody = rng.random() < 0.4
        self.named = [everybody or rng.random() < 0.5 for _ in range(ranks)]
        self.ranks = [_Rank() for _ in range(ranks)]
        self.communicators = [DrawnCommunicator(0, tuple(range(ranks)))]
        self.one_sided = rng.choice((0.0, 0.2, 0.5)) if one_sided else 0.0
        self.windows: list[DrawnCommunicator] = []
        self.together = rng.choice((0.0, 0.1, 0.4, 0.9))
        self.blocking = rng.choice((1.0, 0.5))
        self.sizes = [rng.choice(SIZES) for _ in range(rng.randint(1, 4))]
        self.disorder = rng.choice((0.0, 0.0, 0.05, 0.2))
        self.wild = rng.choice((0.0, 0.3, 0.7))
        self.wrong = rng.choice((0.0, 0.0, 0.02))
        self.amount = rng.choice((1e3, 1e5, 1e7))
        self.loops = rng.random() < 0.03
        self.steady = rng.random() < 0.1
        self.plain = self.steady and rng.random() < 0.7

    def lines(self) -> Iterator[tuple[str, ...]]:
        """All of them: blocks, most of which are repeated."""
        rng = self.rng
        whole: list[list[str]] = [["init"] for _ in self.ranks]
        for block in range(rng.randint(1, 1 if self.steady else 4)):
            for rank in self.ranks:
                rank.lines = []
            if self.one_sided and rng.random() < 0.7:
                comm = rng.choice([r for r in self.communicators if not r.remote])
                self.windows.append(comm)
                for r in comm.group:
                    whole[r].append(f"win_create {len(self.windows)} 1000{comm.on}")
            for _ in range(rng.choice((0, 0, 1, 3, 5)) if self.together else 0):
                for r, line in self.new_communicators():
                    whole[r].append(line)
            for _ in range(rng.randint(1, 2 if self.steady else 5)):
                self.step()
            if rng.random() < 0.9:
                for r in range(len(self.ranks)):
                    self.complete(r)
            clean = not any(rank.pending for rank in self.ranks)
            often = (40, 100, 200) if self.plain else (12, 30, 60) if self.steady else (1, 1, 2, 3, 8)
            times = rng.choice(often) if clean else 1
            extra = [rng.choice((0, 0, 0, 0, 1)) if clean and rng.random() < self.wrong else 0 for _ in self.ranks]
            marked = rng.random() < 0.2
            odd = rng.randrange(times) if rng.random() < 0.3 else -1
            late = rng.randrange(len(self.ranks))
            for k in range(times + max(extra)):
                for r, rank in enumerate(self.ranks):
                    if k < times + extra[r]:
                        whole[r] += [f"# mark {block}-{k}"] * marked + rank.lines
                        if k == odd and r == late:
                            whole[r].append(f"compute {self.amount:g}")
        ends = rng.random() < 0.8
        for lines in whole:
            if rng.random() < 0.05:
                del lines[rng.randint(1, len(lines)) :]
            yield (*lines, *["finalize"] * ends)

    def new_communicators(self) -> Iterator[tuple[int, str]]:
        """Communicators made out of one that is there: lines of the ranks that take part."""
        rng = self.rng
        parent = rng.choice(self.communicators)
        ranks, fresh = list(parent.group), len(self.communicators)
        if parent.remote:
            if rng.random() < 0.5:
                comm = DrawnCommunicator(fresh, parent.group, parent.remote)
                for mine, _ in comm.sides:
                    yield from ((r, f"comm_dup {fresh} {_comma_list(mine)}{parent.on}") for r in mine)
            else:
                comm = DrawnCommunicator(fresh, (*parent.remote, *parent.group))
                yield from ((r, f"intercomm_merge {fresh} {_comma_list(comm.group)}{parent.on}") for r in comm.group)
            self.communicators.append(comm)
            return
        beside = [r for r in self.communicators if not r.remote and not set(r.group) & set(ranks)]
        if beside and rng.random() < 0.7:
            comm = DrawnCommunicator(fresh, parent.group, rng.choice(beside).group)
            locals_ = (parent, next(r for r in beside if r.group == comm.remote))
            for (mine, other), local in zip(comm.sides, locals_, strict=True):
                yield from ((r, f"intercomm_create {fresh} {_comma_list(mine)} {_comma_list(other)}{local.on}") for r in mine)
            self.communicators.append(comm)
            return
        how = rng.choice(("dup", "split", "split", "create", "create_group", "cart", "graph"))
        if how == "dup":
            self.communicators.append(replace(parent, number=fresh))
            yield from ((r, f"comm_dup {fresh} {_comma_list(ranks)}{parent.on}") for r in ranks)
            return
        rng.shuffle(ranks)
        parts = [ranks[: rng.randint(1, len(ranks))]]
        if how == "split" and rng.random() < 0.7 and len(parts[0]) < len(ranks):
            parts.append(ranks[len(parts[0]) :])
        for part in parts:
            number, n = len(self.communicators), len(part)
            comm, more = DrawnCommunicator(number, tuple(part)), [""] * n
            if how == "cart":
                rows = rng.choice([k for k in range(1, n + 1) if n % k == 0])
                more = [f" dims={rows}x{n // rows} periods={rng.randrange(2)}x{rng.randrange(2)}"] * n
                comm = replace(comm, sources=((-1,) * 4,) * n, targets=((-1,) * 4,) * n)
            elif how == "graph":
                edges = [(a, b) for a in range(n) for b in range(n) if rng.random() < 0.5]
                comm = replace(comm, sources=tuple(tuple(a for a, b in edges if b == me) for me in range(n)),
                               targets=tuple(tuple(b for a, b in edges if a == me) for me in range(n)))
                ends = zip(comm.sources, comm.targets, strict=True)
                more = [f" in={_comma_list(sources) or 'none'} out={_comma_list(targets) or 'none'}" for sources, targets in ends]
            self.communicators.append(comm)
            word = f"{how}_create" if how in ("cart", "graph") else f"comm_{how}"
            yield from ((r, f"{word} {number} {_comma_list(part)}{parent.on}{own}") for r, own in zip(part, more, strict=True))
        left_out = set(parent.group) - {r for part in parts for r in part}
        if how != "create_group":
            yield from ((r, f"{word} -1{parent.on}") for r in sorted(left_out))

    def communicator_of(self, a: int, b: int) -> DrawnCommunicator:
        """A communicator in which two ranks can exchange messages."""
        there = [r for r in self.communicators if any(a in mine and b in other for mine, other in r.sides)]
        return self.rng.choice(there) if self.rng.random() < 0.5 else self.communicators[0]

    def collective(self) -> None:
        """A collective over one of the communicators."""
        rng = self.rng
        comm = rng.choice(self.communicators)
        word = rng.choice(NEIGHBOURS if comm.sources and rng.random() < 0.7 else COLLECTIVES)
        if comm.remote and word in ("scan", "exscan"):
            return
        later = rng.random() > self.blocking and all(self.named[r] for r in (*comm.group, *comm.remote))
        size, flops = rng.choice(self.sizes), rng.choice((0, self.amount))
        sizes: dict[tuple[int, int], int] = {}

        def between(sender: int, receiver: int) -> int:
            return sizes.setdefault((sender, receiver), rng.choice((0, *self.sizes)))

        from_, root = rng.randrange(len(comm.sides)), 0
        if word in ROOTED:
            root = rng.randrange(len(comm.sides[from_][0]))
        for side, (mine, other) in enumerate(comm.sides):
            for me, r in enumerate(mine):
                named = root if not comm.remote or side != from_ else ROOT if me == root else PROC_NULL
                sent, received = [between(me, k) for k in range(len(other))], [between(k, me) for k in range(len(other))]
                if comm.remote:  # of one group the other's numbers
                    sent = [between(2 * me + side, 2 * k + 1 - side) for k in range(len(other))]
                    received = [between(2 * k + 1 - side, 2 * me + side) for k in range(len(other))]
                line = self.arguments(word, comm, me, (size, flops, named), (sent, received), (len(mine), len(other)))
                text = f"{'i' * later}{word} {line}".rstrip() + comm.on
                self.ranks[r].lines.append(text + (self.request(r, "") if later else ""))

    def access(self) -> None:
        """One-sided operations between calls that begin and end an epoch of one of the windows."""
        rng, number = self.rng, self.rng.randint(1, len(self.windows))
        group, window = self.windows[number - 1].group, f" win={number}"
        a, b = rng.choice(group), rng.choice(group)

        def put(rank: int, text: str) -> None:
            self.ranks[rank].lines.append(text + window)

        def move(origin: int, target: int) -> None:
            for _ in range(rng.randint(1, 3)):
                word = rng.choice(("Put", "Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"))
                later = self.named[origin] and word in ("Put", "Get", "Accumulate") and rng.random() < 0.4
                text = f"{f'R{word.lower()}' if later else word} {target} 0 {rng.choice(self.sizes)} 6"
                put(origin, text + (self.request(origin, "") if later else ""))
            if rng.random() < 0.3:
                put(origin, rng.choice((f"Win_flush {target}", "Win_flush_all", "Win_flush_local_all")))

        match rng.randrange(4):
            case 0:
                for r in group:
                    put(r, "Win_fence")
                move(a, b)
                for r in group:
                    put(r, "Win_fence")
            case 1:
                put(a, f"Win_lock {b} {rng.randrange(2)}")
                move(a, b)
                put(a, f"Win_unlock {b}")
            case 2:
                put(a, "Win_lock_all")
                move(a, b)
                put(a, "Win_unlock_all")
            case _ if a != b:
                put(b, f"Win_post {a}")
                put(a, f"Win_start {b}")
                move(a, b)
                put(a, "Win_complete")
                put(b, "Win_wait")

    def arguments(self, word: str, comm: DrawnCommunicator, me: int, each: tuple[int, float, int], many: tuple[list[int], list[int]],
                  members: tuple[int, int]) -> str:
        """The arguments of one member: ``each`` is (size, operations, root), ``many`` what it sends to and gets from each."""
        (size, flops, root), (sent, received), (n, others) = each, many, members
        to, of, whole = " ".join(map(str, sent)), " ".join(map(str, received)), size * (others if comm.remote else 1)
        unequal = [str(size + 8 * k) for k in range(others)]  # what member k of the other group, or of the own one, contributes
        mine = size + 8 * me
        match word:
            case "barrier":
                return ""
            case "bcast":
                return f"{size} {root} 6"
            case "reduce":
                return f"{size} {flops:g} {root} 6"
            case "allreduce" | "scan" | "exscan":
                return f"{size} {flops:g} 6"
            case "reducescatterblock":
                return f"{whole} {flops:g} 6"
            case "reducescatter":
                parts = [str(whole)] * n if comm.remote else unequal
                return f"{' '.join(parts)} {flops:g} 6"
            case "alltoall" | "allgather":
                return f"{size} {size} 6 6"
            case "gather" | "scatter":
                return f"{size} {size} {root} 6 6"
            case "gatherv":
                return f"{mine} {' '.join(unequal)} {root} 6 6"
            case "scatterv":
                return f"{' '.join(unequal)} {mine} {root} 6 6"
            case "allgatherv":
                return f"{mine} {' '.join(unequal)} 6 6"
            case "alltoallv":
                return f"{sum(sent)} {to} {sum(received)} {of} 6 6"
            case "alltoallw":
                return f"{to} {of}"
        sources, targets = comm.sources[me], comm.targets[me]
        known = not any(k < 0 for k in (*sources, *targets))  # of a grid all give the same
        match word:
            case "neighbor_allgatherv":
                return f"{mine if known else size} {' '.join(str(size + 8 * k if known else size) for k in sources)} 6 6"
            case "neighbor_alltoallv" | "neighbor_alltoallw":
                gets = [str(size + 8 * k if known else size) for k in sources]
                return " ".join([*[str(mine if known else size)] * len(targets), *gets, *["6 6"] * (word[-1] == "v")])
        return f"{size} {size} 6 6"

    def put(self, rank: int, line: str) -> None:
        """A line; now and then before the one that stands there."""
        lines = self.ranks[rank].lines
        early = lines and "req" not in line and self.rng.random() < self.disorder
        lines.insert(len(lines) - bool(early), line)

    def step(self) -> None:
        """What one rank does, or two with each other."""
        rng, n = self.rng, len(self.ranks)
        if self.plain:
            self.plain_exchange()
            return
        if self.windows and rng.random() < self.one_sided:
            self.access()
            return
        if rng.random() < self.together:
            self.collective()
            return
        a, b = rng.randrange(n), rng.randrange(n)
        kind = rng.random()
        if kind < 0.05 and self.loops:
            self.put(a, f"kernel {rng.choice(('daxpy', 'dyads', 'triads'))} {rng.choice((1, 100, 5000))} {rng.randint(1, 20)}")
        elif kind < 0.12:
            self.put(a, rng.choice((f"compute {self.amount * rng.random():g}", f"sleep {rng.choice((0, 1e-6, 0.003, 0.0101)):g}")))
        elif kind < 0.16:
            self.put(
                a,
                rng.choice(
                    (f"send {PROC_NULL} 0 8 6", f"recv {PROC_NULL} 0 8 6", f"iprobe {ANY_SOURCE} {ANY_TAG}", f"iprobe {b} 0 flag=0")
                ),
            )
        elif kind < 0.26:
            self.exchange(a, b)
        elif kind < 0.34 and a != b:
            self.persistent(a, b)
        elif kind < 0.46 and n > 2:
            for other in range(n):  # many to one: who comes first?
                if other != a:
                    self.message(other, a)
        else:
            for _ in range(rng.choice((1, 1, 2, 5))):
                self.message(a, b)
        if rng.random() < 0.3:
            self.complete(rng.randrange(n))

    def request(self, rank: int, key: str) -> str:
        """A new request, with a number if the rank names its requests."""
        me = self.ranks[rank]
        if not self.named[rank]:
            me.pending.append((0, key))
            return ""
        used = {number for number, _ in me.pending}
        me.requests = next(k for k in range(1, 1000) if k not in used)
        me.pending.append((me.requests, key))
        return f" req={me.requests}"

    def message(self, a: int, b: int) -> None:
        """One message."""
        rng = self.rng
        size, tag = rng.choice(self.sizes), rng.choice(TAGS)
        send = rng.choice(("send", "send", "Ssend", "bsend", "rsend")) if a != b else "bsend"
        source = ANY_SOURCE if rng.random() < self.wild else a
        any_tag = ANY_TAG if rng.random() < self.wild else tag
        capacity = size + rng.choice((0, 0, 100)) if rng.random() >= self.wrong else size // 2
        recorded = ""
        if rng.random() < 0.3:
            recorded = (f" from={a}" if source != a else "") + (f" mtag={tag}" if any_tag != tag else "")
        posts, on = rng.random() < 0.4, self.communicator_of(a, b).on
        if posts:
            self.put(b, f"irecv {source} {any_tag} {capacity} 6{on}{self.request(b, f'{source} {b} {any_tag}')}")
        if rng.random() < 0.4:
            self.put(a, f"{SENDS[send]} {b} {tag} {size} 6{on}{self.request(a, f'{a} {b} {tag}')}")
        elif a == b:
            self.put(a, f"bsend {b} {tag} {size} 6{on}")
        elif rng.random() >= self.wrong:
            self.put(a, f"{send} {b} {tag} {size} 6{on}")
        if posts:
            return
        match rng.random():
            case x if x < 0.15:
                self.put(b, f"probe {source} {any_tag}{on}{recorded}")
            case x if x < 0.3:
                for _ in range(rng.randint(1, 3)):
                    self.put(b, f"iprobe {source} {any_tag}{on}")
            case x if x < 0.35:
                self.put(b, f"iprobe {a} {tag} flag=1{on}")
        if rng.random() >= self.wrong:
            self.put(b, f"recv {source} {any_tag} {capacity if rng.random() < 0.9 else -1} 6{on}{recorded}")

    def plain_exchange(self) -> None:
        """Calls that the engine can leave repetitions of out; some ranks may wait for the end meanwhile."""
        rng, n = self.rng, len(self.ranks)
        a, b = rng.sample(range(n), 2)
        size, back = rng.choice(self.sizes), rng.choice(self.sizes)
        match rng.randrange(6):
            case 0:
                self.put(a, f"compute {self.amount * rng.random():g}")
            case 1:
                self.exchange(a, b)
            case 2:
                for x, y in ((a, b), (b, a)):
                    self.put(x, f"irecv {y} 0 {size} 6{self.request(x, f'{y} {x} 0')}")
                    self.put(x, f"{rng.choice(('isend', 'ISsend', 'irsend'))} {y} 0 {size} 6{self.request(x, f'{x} {y} 0')}")
            case 3:
                for r in range(1, n):  # one to all, and back
                    self.put(0, f"send {r} 1 {size} 6")
                    self.put(r, f"recv 0 1 {size} 6")
                    self.put(r, f"send 0 2 {back} 6")
                for r in range(1, n):
                    self.put(0, f"recv {r} 2 {back} 6")
            case _:
                for x, y, each in ((a, b, size), (b, a, back)):
                    for _ in range(rng.choice((1, 1, 3))):
                        self.put(x, f"{rng.choice(('send', 'send', 'Ssend', 'bsend'))} {y} 3 {each} 6")
                        self.put(y, f"recv {x} 3 {each} 6")

    def exchange(self, a: int, b: int) -> None:
        """Both send to each other at once, or a ring of all."""
        size = self.rng.choice(self.sizes)
        n = len(self.ranks)
        if self.rng.random() < 0.5 and a != b:
            on = self.communicator_of(a, b).on
            for x, y in ((a, b), (b, a)):
                self.put(x, f"sendRecv {size} {y} {size} {y} 6 6{on}")
        else:
            for r in range(n):
                self.put(r, f"sendRecv {size} {(r + 1) % n} {size} {(r + n - 1) % n} 6 6 stag=3 rtag=3")

    def persistent(self, a: int, b: int) -> None:
        """Persistent sends and receives, one or a few, started several times."""
        rng = self.rng
        keys = [f"{a} {b} {tag}" for tag in range(9, 9 + rng.choice((1, 1, 2, 3)))]
        for key in keys:
            size, send, on = rng.choice(self.sizes), rng.choice(tuple(INITS)), self.communicator_of(a, b).on
            tag = key.split()[-1]
            self.put(a, f"{INITS[send]} {b} {tag} {size} 6{on}")
            self.put(b, f"recvInit {a} {tag} {size} 6{on}")
        for _ in range(rng.randint(1, 3)):
            for r in (b, a):
                for line in rng.choice(([f"start {key}" for key in keys], ["startall"])):
                    self.put(r, line)
            for r in (a, b):
                for line in rng.choice(([f"wait {key}" for key in keys], [f"wait {key}" for key in reversed(keys)], ["waitall"])):
                    self.put(r, line)
        for r in (a, b):
            for key in keys:
                self.put(r, f"requestFree {key}")

    def complete(self, rank: int) -> None:
        """Completes the requests of a rank, in one of MPI's ways, perhaps after tests."""
        rng, me = self.rng, self.ranks[rank]
        if not me.pending:
            return
        pending, me.pending = me.pending, []
        if not self.named[rank]:
            if rng.random() < 0.3:
                self.put(rank, rng.choice(("testall flag=0", "testany", "testsome", "waitAny", "waitsome", "testall")))
            if rng.random() < 0.2:
                self.put(rank, f"test {pending[0][1]} flag=0")
            if rng.random() < 0.5:
                self.put(rank, "waitall")
            else:
                for _, key in pending if rng.random() < 0.7 else reversed(pending):
                    self.put(rank, f"wait {key}")
            return
        numbers = [number for number, _ in pending]
        listed = ",".join(map(str, numbers))
        if rng.random() < 0.3:
            call = rng.choice(("testall", "testany", "testsome", "waitany", "waitsome"))
            told = rng.choice(("", " flag=0"))
            if call != "testall" and rng.random() < 0.5:
                told = f" done={numbers.pop(rng.randrange(len(numbers)))}"
            self.put(rank, f"{call} {len(pending)} reqs={listed}{told if call == 'testall' or 'done' in told else ''}")
            listed = ",".join(map(str, numbers))
            if not numbers:
                return
        if rng.random() < 0.2:
            self.put(rank, f"test req={numbers[-1]} flag=0")
        if rng.random() < 0.6 or len(numbers) > 1:
            self.put(rank, f"waitall {len(numbers)} reqs={listed}")
        else:
            self.put(rank, f"wait req={numbers[0]}")
