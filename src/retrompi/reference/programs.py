"""Programs that are hard on a simulator, by a seed each, and how one that shows a difference is made small.

A program is a question and the lines of its ranks. Everything is drawn: runtime, platform, placement, cores, overrides of either, level
of detail, random seed, limit; and calls of all kinds that the specification covers, with wildcards, probes, tests, persistent requests,
messages to oneself and to nobody, blocks that repeat equally, unequally and almost, ranks that end early, buffers that are too small,
messages that nobody receives. A program need not complete: how it does not is compared as well.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from retrompi.base.errors import RetrompiError
from retrompi.reference.compare import compared
from retrompi.reference.values import ANY_SOURCE, ANY_TAG, PROC_NULL, NotCovered
from retrompi.spec import machines, registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace

__all__ = ["Program", "Tally", "compare_programs", "drawn", "shrunk"]

SIZES = (0, 0, 0, 1, 1, 8, 100, 1000, 1460, 1461, 4000, 5000, 16_384, 20_000, 65_536, 131_073)
TAGS = (0, 0, 0, 1, 2, 77, (1 << 31) - 1)
SENDS = {"send": "isend", "Ssend": "ISsend", "bsend": "ibsend", "rsend": "irsend"}
INITS = {"send": "sendInit", "Ssend": "ssendInit", "bsend": "bsendInit", "rsend": "rsendInit"}
MOST = 50_000
"""Events of a program's run."""
FACTORS = ("x0.1", "x0.5", "x0.9", "x1.1", "x3", "x10")


@dataclass(frozen=True)
class Program:
    """A question, and the lines of each rank without its number."""

    model: str
    platform: str
    placement: tuple[int, ...]
    lines: tuple[tuple[str, ...], ...]
    sets: tuple[tuple[str, str], ...] = ()
    cores: tuple[int, ...] = ()
    seed: int = 1
    fidelity: str = "mechanism"
    wildcards: str = "recorded"
    limit_s: float | None = None

    @property
    def size(self) -> int:
        """Lines of all ranks."""
        return sum(map(len, self.lines))

    def question(self) -> Question:
        """The question; raises a RetrompiError if it cannot be asked."""
        sources = []
        for rank, lines in enumerate(self.lines):
            text = "".join(line + "\n" if line.startswith("#") else f"{rank} {line}\n" for line in lines)
            sources.append((text.encode(), f"rank-{rank}.txt", rank))
        return Question(
            self.model, self.platform, Replay(Trace.parse(sources)), self.placement, dict(self.sets), seed=self.seed,
            fidelity=self.fidelity,
            wildcards=self.wildcards, cores=self.cores, limit_s=self.limit_s, idle_overrides=True, what_if_hardware=True,
        )  # fmt: skip

    def text(self) -> str:
        """The program as a Python expression that makes it."""
        parts = [f"{name}={value!r}" for name, value in vars(self).items() if value != Program.__dataclass_fields__[name].default]
        return f"Program({', '.join(parts)})"


@dataclass
class _Rank:
    lines: list[str] = field(default_factory=list)
    pending: list[tuple[int, str]] = field(default_factory=list)
    requests: int = 0


class _Drawing:
    """The lines of one program."""

    def __init__(self, rng: random.Random, ranks: int) -> None:
        self.rng = rng
        self.named = [rng.random() < 0.5 for _ in range(ranks)]
        self.ranks = [_Rank() for _ in range(ranks)]
        self.sizes = [rng.choice(SIZES) for _ in range(rng.randint(1, 4))]
        self.disorder = rng.choice((0.0, 0.0, 0.05, 0.2))
        self.wild = rng.choice((0.0, 0.3, 0.7))
        self.wrong = rng.choice((0.0, 0.0, 0.02))
        self.amount = rng.choice((1e3, 1e5, 1e7))

    def lines(self) -> Iterator[tuple[str, ...]]:
        """All of them: blocks, most of which are repeated."""
        rng = self.rng
        whole: list[list[str]] = [["init"] for _ in self.ranks]
        for block in range(rng.randint(1, 4)):
            for rank in self.ranks:
                rank.lines = []
            for _ in range(rng.randint(1, 5)):
                self.step()
            if rng.random() < 0.9:
                for r in range(len(self.ranks)):
                    self.complete(r)
            clean = not any(rank.pending for rank in self.ranks)
            times = rng.choice((1, 1, 2, 3, 8)) if clean else 1
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

    def put(self, rank: int, line: str) -> None:
        """A line; now and then before the one that stands there."""
        lines = self.ranks[rank].lines
        early = lines and "req" not in line and self.rng.random() < self.disorder
        lines.insert(len(lines) - bool(early), line)

    def step(self) -> None:
        """What one rank does, or two with each other."""
        rng, n = self.rng, len(self.ranks)
        a, b = rng.randrange(n), rng.randrange(n)
        kind = rng.random()
        if kind < 0.12:
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
        room = size + rng.choice((0, 0, 100)) if rng.random() >= self.wrong else size // 2
        recorded = ""
        if rng.random() < 0.3:
            recorded = (f" from={a}" if source != a else "") + (f" mtag={tag}" if any_tag != tag else "")
        posts = rng.random() < 0.4
        if posts:
            self.put(b, f"irecv {source} {any_tag} {room} 6{self.request(b, f'{source} {b} {any_tag}')}")
        if rng.random() < 0.4:
            self.put(a, f"{SENDS[send]} {b} {tag} {size} 6{self.request(a, f'{a} {b} {tag}')}")
        elif a == b:
            self.put(a, f"bsend {b} {tag} {size} 6")
        elif rng.random() >= self.wrong:
            self.put(a, f"{send} {b} {tag} {size} 6")
        if posts:
            return
        match rng.random():
            case x if x < 0.15:
                self.put(b, f"probe {source} {any_tag}{recorded}")
            case x if x < 0.3:
                for _ in range(rng.randint(1, 3)):
                    self.put(b, f"iprobe {source} {any_tag}")
            case x if x < 0.35:
                self.put(b, f"iprobe {a} {tag} flag=1")
        if rng.random() >= self.wrong:
            self.put(b, f"recv {source} {any_tag} {room if rng.random() < 0.9 else -1} 6{recorded}")

    def exchange(self, a: int, b: int) -> None:
        """Both send to each other at once, or a ring of all."""
        size = self.rng.choice(self.sizes)
        n = len(self.ranks)
        if self.rng.random() < 0.5 and a != b:
            for x, y in ((a, b), (b, a)):
                self.put(x, f"sendRecv {size} {y} {size} {y} 6 6")
        else:
            for r in range(n):
                self.put(r, f"sendRecv {size} {(r + 1) % n} {size} {(r + n - 1) % n} 6 6 stag=3 rtag=3")

    def persistent(self, a: int, b: int) -> None:
        """A persistent send and receive, started several times."""
        rng, size = self.rng, self.rng.choice(self.sizes)
        send = rng.choice(tuple(INITS))
        self.put(a, f"{INITS[send]} {b} 9 {size} 6")
        self.put(b, f"recvInit {a} 9 {size} 6")
        for _ in range(rng.randint(1, 3)):
            for r in (b, a):
                self.put(r, rng.choice((f"start {a} {b} 9", "startall")))
            for r in (a, b):
                self.put(r, rng.choice((f"wait {a} {b} 9", f"wait {a} {b} 9", "waitall")))
        for r in (a, b):
            self.put(r, f"requestFree {a} {b} 9")

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


def _overrides(rng: random.Random, model: str) -> Iterator[tuple[str, str]]:
    """Up to a few overrides of the machine, the network and the runtime,
    many at their bounds."""
    machine = ("quantum", "tick", "dispatch", "syscall", "copy_mem", "copy_l2", "l2", "tcp_segment", "tcp_byte", "interrupt",
                "window", "sndbuf", "mss",
               "delayed_ack", "nic_rate", "nic_latency", "line_bus", "fsb_rate", "loopback_mss", "loopback_segment")  # fmt: skip
    flags = ("boost", "quantum_carry", "quantum_at_tick")
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        match rng.randrange(5):
            case 0:
                yield f"platform.host.{rng.choice(machine)}", rng.choice(FACTORS)
            case 1:
                yield f"platform.host.{rng.choice(flags)}", rng.choice("01")
            case 2:
                yield rng.choice((("platform.host.cores", rng.choice("124")), ("platform.link.latency", rng.choice(("0us", "x3"))),
                                  ("platform.link.bandwidth", rng.choice(FACTORS)), ("platform.link.buffer", rng.choice(("3000B", "20kB"))),
                                  ("platform.link.mtu", "x0.5"), ("platform.host.mem_streams", "2"), ("platform.link.access", "csma-cd"),
                                  ("platform.host.quantum", rng.choice(("1ms", "10ms")))))  # fmt: skip
            case _:
                name, param = rng.choice(sorted(registry.model(model).params().items()))
                if param.choices:
                    yield f"{model.partition(':')[0]}.{name}", rng.choice(param.choices)
                else:
                    yield f"{model.partition(':')[0]}.{name}", rng.choice((*FACTORS, "0", "1"))


def drawn(seed: int) -> Program:
    """The program of a seed; it may be one that cannot be asked."""
    rng = random.Random(f"reference {seed}")
    model, platform = rng.choice(sorted(registry.models())), rng.choice(registry.platform_names())
    if composed := rng.random() < 0.5:
        host, other, network = rng.choice(machines.host_names()), rng.choice(machines.host_names()), rng.choice(machines.network_names())
        few = machines.network(network).kind == "cable"
        platform = f"{host}*{2 if few else 4}@{network}" if rng.random() < 0.6 else f"{host}*{2 - few}+{other}*{2 - few}@{network}"
    hosts = 2 if composed and few else 4 if composed else len(registry.platform(platform).hosts)
    ranks = rng.choice((2, 2, 2, 3, 4, 6))
    among = rng.choice((1, 2, min(hosts, 4)))
    placement = tuple(rng.randrange(min(among, hosts)) if rng.random() < 0.5 else r % min(among, hosts) for r in range(ranks))
    lines = tuple(_Drawing(rng, ranks).lines())
    level = rng.random()
    return Program(
        model, platform, placement, lines, tuple(dict(_overrides(rng, model)).items()),
        seed=rng.choice((1, 2, 12345, 2**31)), fidelity="mechanism" if level < 0.94 else "curve" if level < 0.97 else "loggp",
        wildcards=rng.choice(("recorded", "free")), limit_s=rng.choice((None,) * 9 + (0.01,)),
        cores=(0,) * ranks if rng.random() < 0.05 else (),
    )  # fmt: skip


def _difference(program: Program) -> str:
    """What differs; "" for nothing, or when it cannot be asked."""
    try:
        return compared(program.question(), MOST)[2]
    except (RetrompiError, NotCovered):
        return ""


def shrunk(program: Program, differs: Callable[[Program], object] = _difference) -> Program:
    """The smallest program found that still differs: without ranks, lines, overrides and everything else that it does not need."""

    def tried(smaller: Program) -> bool:
        nonlocal program
        if smaller == program or not differs(smaller):
            return False
        program = smaller
        return True

    changed = True
    while changed:
        before = program
        for simple in ({"limit_s": None}, {"cores": ()}, {"seed": 1}, {"wildcards": "recorded"}, {"sets": ()}):
            tried(replace(program, **simple))
        for pair in program.sets:
            tried(replace(program, sets=tuple(p for p in program.sets if p != pair)))
        tried(replace(program, lines=program.lines[:-1], placement=program.placement[:-1], cores=program.cores[:-1]))
        chunk = max(map(len, program.lines))
        while chunk:
            for rank in range(len(program.lines)):
                at = 0
                while at < len(program.lines[rank]):
                    mine = program.lines[rank]
                    less = (*program.lines[:rank], mine[:at] + mine[at + chunk :], *program.lines[rank + 1 :])
                    if not tried(replace(program, lines=less)):
                        at += chunk
            chunk //= 2
        changed = program != before
    return program


@dataclass
class Tally:
    """What came out of a number of programs."""

    compared: int = 0
    refused: int = 0
    not_covered: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    differences: list[tuple[int, str, Program]] = field(default_factory=list)

    def text(self) -> str:
        """One line, and a paragraph for each difference."""
        told = f"{self.compared} programs compared, {len(self.differences)} differ; " + ", ".join(
            f"{k} {n}" for k, n in sorted(self.outcomes.items())
        )
        beyond = ", ".join(f"{what} {n}" for what, n in sorted(self.not_covered.items()))
        told += f"\nnot asked: {self.refused} that cannot be" + (f"; not covered: {beyond}" if beyond else "")
        for seed, what, program in self.differences:
            told += f"\nseed {seed}: {what}\n  {program.text()}"
        return told


def compare_programs(seeds: Iterable[int], wanted: int, seconds: float = math.inf, make: Callable[[int], Program] = drawn) -> Tally:
    """Compares the programs of these seeds until ``wanted`` could be, or processor time is over. Differences are shrunk."""
    tally, begin = Tally(), time.process_time()
    for seed in seeds:
        if tally.compared >= wanted or time.process_time() - begin > seconds:
            break
        try:
            program = make(seed)
            engine, _, what = compared(program.question(), MOST)
        except NotCovered as error:
            kind = str(error).rpartition(": ")[2]
            tally.not_covered[kind] = tally.not_covered.get(kind, 0) + 1
            continue
        except RetrompiError:
            tally.refused += 1
            continue
        tally.compared += 1
        tally.outcomes[engine["outcome"]] = tally.outcomes.get(engine["outcome"], 0) + 1
        if what:
            tally.differences.append((seed, what, shrunk(program)))
    return tally
