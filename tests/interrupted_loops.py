"""Programs of loops that almost repeat: what interrupts them does so on one side only, or every k-th time.

They are made to be hard on whoever leaves repetitions out: the ranks fall out of step, states come back at other places of the program, and
loops end in the middle of a pattern. Each program completes, since every message is written in one global order, or is posted before it is
waited for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from retrompi.traces import Trace

SIZES = [0, 1, 8, 100, 1000, 1460, 1461, 2920, 4000, 5000, 8000, 16_384, 20_000, 65_536, 131_073, 300_000]


class Program:
    """Lines by rank; requests have numbers of their own rank."""

    def __init__(self, ranks: int, rng: random.Random) -> None:
        self.ranks, self.rng = ranks, rng
        self.lines = [[f"{r} init"] for r in range(ranks)]
        self.requests = [0] * ranks
        self.reuse_requests = rng.random() < 0.7

    def add(self, rank: int, text: str) -> None:
        self.lines[rank].append(f"# {text[2:]}" if text.startswith("# ") else f"{rank} {text}")

    def request(self, rank: int) -> int:
        self.requests[rank] += 1
        return 1 + self.requests[rank] % 3 if self.reuse_requests else self.requests[rank]

    def message(self, src: int, dst: int, size: int, tag: int, form: str) -> None:
        """One message in one of the forms of MPI, complete at both ends."""
        if form == "ssend":
            self.add(src, f"ssend {dst} {tag} {size} 6")
            self.add(dst, f"recv {src} {tag} {size} 6")
        elif form == "posted":
            r, s = self.request(dst), self.request(src)
            self.add(dst, f"irecv {src} {tag} {size} 6 req={r}")
            self.add(src, f"isend {dst} {tag} {size} 6 req={s}")
            self.add(src, f"wait req={s}")
            self.add(dst, f"wait req={r}")
        elif form == "wildcard":
            self.add(src, f"send {dst} {tag} {size} 6")
            self.add(dst, f"recv -555 -444 {size} 6 from={src} mtag={tag}")
        elif form == "probed":
            self.add(src, f"send {dst} {tag} {size} 6")
            self.add(dst, f"probe {src} {tag}")
            self.add(dst, f"recv {src} {tag} {size} 6")
        elif form == "polled":
            r = self.request(dst)
            self.add(dst, f"irecv {src} {tag} {size} 6 req={r}")
            for _ in range(self.rng.randint(1, 3)):
                self.add(dst, f"test req={r} flag=0")
            self.add(src, f"send {dst} {tag} {size} 6")
            self.add(dst, f"wait req={r}")
        elif form == "exchange":
            self.add(src, f"sendRecv {size} {dst} {size} {dst} 6 6")
            self.add(dst, f"sendRecv {size} {src} {size} {src} 6 6")
        else:
            self.add(src, f"send {dst} {tag} {size} 6")
            self.add(dst, f"recv {src} {tag} {size} 6")

    def trace(self) -> Trace:
        texts = ["\n".join([*lines, f"{r} finalize\n"]) for r, lines in enumerate(self.lines)]
        return Trace.parse([(text.encode(), f"rank-{r}.txt", r) for r, text in enumerate(texts)])


FORMS = ["plain", "ssend", "posted", "wildcard", "probed", "polled", "exchange"]


def _interruption(p: Program) -> Callable[[int], None]:
    """Something that happens on one side, or to two ranks, every k-th time."""
    rng = p.rng
    rank = rng.randrange(p.ranks)
    other = rng.choice([r for r in range(p.ranks) if r != rank])
    size, tag = rng.choice(SIZES), rng.randint(0, 3)
    kind = rng.choice(["compute", "compute", "compute", "sleep", "mark", "size", "tag", "barrier", "message", "iprobe"])
    amount = rng.choice([1, 1000, 50_000, 3_000_000, 20_000_000])
    form = rng.choice(FORMS)

    def happen(i: int) -> None:
        if kind == "compute":
            p.add(rank, f"compute {amount}")
        elif kind == "sleep":
            p.add(rank, f"sleep {rng.choice([1e-6, 3e-4, 0.012])}")
        elif kind == "mark":
            p.add(rank, f"# mark at-{i}")
        elif kind == "barrier":
            for r in range(p.ranks):
                p.add(r, "barrier")
        elif kind == "iprobe":
            p.add(rank, f"iprobe {other} 77 flag=0")
        else:
            p.message(rank, other, size if kind != "tag" else 8, tag if kind != "size" else 0, form if kind == "message" else "plain")

    return happen


def _body(p: Program) -> list[Callable[[], None]]:
    rng = p.rng
    shape = rng.choice(["pingpong", "pingpong", "random", "random", "stream", "ring", "halo"])
    size, form, tag = rng.choice(SIZES), rng.choice(FORMS), rng.randint(0, 2)
    if shape == "pingpong":
        back = size if rng.random() < 0.8 else rng.choice(SIZES)
        kind = rng.choice(["plain", form])
        return [lambda: p.message(0, 1, size, tag, kind), lambda: p.message(1, 0, back, tag, kind)]
    if shape == "stream":
        many = rng.randint(1, 6)

        def burst() -> None:
            for _ in range(many):
                p.add(0, f"send 1 {tag} {size} 6")
            for _ in range(many):
                p.add(1, f"recv 0 {tag} {size} 6")

        return [burst]
    if shape == "ring":
        return [lambda r=r: p.message(r, (r + 1) % p.ranks, size, tag, "plain") for r in range(p.ranks)]  # type: ignore[misc]
    if shape == "halo":
        by_key = rng.random() < 0.5

        def exchange() -> None:
            for r in range(p.ranks):
                for peer in {(r - 1) % p.ranks, (r + 1) % p.ranks} - {r}:
                    p.add(r, f"irecv {peer} {tag} {size} 6")
                for peer in {(r - 1) % p.ranks, (r + 1) % p.ranks} - {r}:
                    p.add(r, f"isend {peer} {tag} {size} 6")
                if by_key:
                    p.add(r, "waitall")
                else:
                    for peer in {(r - 1) % p.ranks, (r + 1) % p.ranks} - {r}:
                        p.add(r, f"wait {peer} {r} {tag}")
                        p.add(r, f"wait {r} {peer} {tag}")

        return [exchange]
    steps: list[Callable[[], None]] = []
    for _ in range(rng.randint(1, 5)):
        a, b = rng.sample(range(p.ranks), 2)
        n, f, t = rng.choice(SIZES), rng.choice(FORMS), rng.randint(0, 2)
        steps.append(lambda a=a, b=b, n=n, f=f, t=t: p.message(a, b, n, t, f))  # type: ignore[misc]
    return steps


def interrupted_loops(rng: random.Random) -> Trace:
    """A program of one to three loops, each with up to three interruptions."""
    ranks = rng.choice([2, 2, 2, 3, 4, 5])
    p = Program(ranks, rng)
    for _ in range(rng.choice([1, 1, 2, 3])):
        body = _body(p)
        compute: Sequence[int] = rng.choice([(), (), (1000,), (50_000, 50_000)])
        interruptions = [
            (rng.choice([3, 5, 7, 10, 17, 25, 40, 50]), rng.randint(0, 9), rng.randint(0, len(body)), _interruption(p))
            for _ in range(rng.randint(0, 3))
        ]
        for i in range(rng.choice([20, 40, 60, 100, 300])):
            for rank, amount in enumerate(compute):
                p.add(rank, f"compute {amount}")
            for at in range(len(body) + 1):
                for every, first, place, happen in interruptions:
                    if place == at and i % every == first % every and i >= first:
                        happen(i)
                if at < len(body):
                    body[at]()
        if rng.random() < 0.4:  # who has no part in the loop waits there through all of it
            together = rng.choice(["barrier", "bcast 1000 0 6", "allreduce 100 0 6", "alltoall 300 300 6 6"])
            for rank in range(ranks):
                p.add(rank, together)
    return p.trace()


def computing_pingpong(rng: random.Random) -> Trace:
    """A PingPong in which one rank, or both, computes before every k-th exchange."""
    p = Program(2, rng)
    size, every, times = rng.choice(SIZES[:12]), rng.choice([10, 17, 25, 40, 50]), rng.choice([100, 300, 1000])
    amount, who = rng.choice([1, 1000, 100_000, 10_000_000]), rng.choice([(0,), (1,), (0, 1)])
    for i in range(times):
        if i and i % every == 0:
            for rank in who:
                p.add(rank, f"compute {amount}")
        p.message(0, 1, size, 0, "plain")
        p.message(1, 0, size, 0, "plain")
    return p.trace()
