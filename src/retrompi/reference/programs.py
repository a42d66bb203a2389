"""Programs that are hard on a simulator, by a seed each, and how one that shows a difference is made small.

A program is a question and the lines of its ranks (`drawing`). Everything is drawn: runtime, platform, placement, cores, overrides of
either, algorithms of collectives, level of detail, random seed, limit, and what happens beside it: cross traffic, failures, killed
processes. A program need not complete: how it does not is compared as well.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from retrompi.base.errors import RetrompiError
from retrompi.reference.collectives import is_collective
from retrompi.reference.compare import by_engine, compare_rows
from retrompi.reference.drawing import Drawing
from retrompi.reference.values import NotCovered
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import engine_rows
from retrompi.spec import registry
from retrompi.spec.channels import work
from retrompi.spec.collectives import OPERATIONS, PREFIX, algorithms
from retrompi.spec.declare.fields import Field, fields_of
from retrompi.spec.host import Host
from retrompi.spec.machine import machines
from retrompi.spec.machine.link import Link
from retrompi.spec.media import MEDIA, Medium, SampledCurve
from retrompi.spec.question import Beside, Question, Replay
from retrompi.traces import Trace

__all__ = ["DrawnProgram", "ProgramTally", "compare_programs", "draw_program", "shrink"]

MOST = 50_000
"""Events of a program's run."""
PATHS = ("same", "same_bulk", "remote")
"""Of a compiled question: the hops within a host, of the data of a rendezvous there, and between hosts."""
FACTORS = ("x0.1", "x0.5", "x0.9", "x1.1", "x3", "x10")
SOME = {"s": ("0s", "3us", "2ms"), "B": ("1500B", "50kB")}
"""Values of some units, also for what is nothing by default."""


@dataclass(frozen=True)
class DrawnProgram:
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
    network: str = "native"
    traffic: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    kills: tuple[str, ...] = ()
    work: Mapping[str, Any] | None = None
    hops: tuple[tuple[str, int, str, Any], ...] = ()
    """Changes of the path of messages that no parameter of a model makes: path, number of the hop, field, value."""

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
            fidelity=self.fidelity, network=self.network, wildcards=self.wildcards, cores=self.cores, limit_s=self.limit_s,
            idle_overrides=True, what_if_hardware=True, beside=Beside(self.traffic, self.failures, (), self.kills),
        )

    def rows(self) -> tuple[dict[str, Any], Trace]:
        """What the engine is given, and the trace; raises a RetrompiError if the question cannot be asked."""
        asked = Resolved.of(self.question())
        rows = {**engine_rows(asked), "event_limit": MOST} | ({"work": self.work} if self.work else {})
        for path, position, name, value in self.hops:
            if position < len(rows[path]):
                before = rows[path][position]
                after = Medium.of({**before, name: value}).to_engine() if name in before else before
                for same in PATHS:  # a hop of two paths is one
                    rows[same] = [after if hop == before else hop for hop in rows[same]]
        return rows, asked.trace

    def compare(self) -> tuple[dict[str, Any], dict[str, Any], str]:
        """By the engine, by the specification, and what differs; raises a RetrompiError or NotCovered if that cannot be said."""
        return compare_rows(*self.rows())

    def text(self) -> str:
        """The program as a Python expression that makes it."""
        parts = [f"{name}={value!r}" for name, value in vars(self).items() if value != DrawnProgram.__dataclass_fields__[name].default]
        return f"DrawnProgram({', '.join(parts)})"


def _drawn_field(rng: random.Random, declared: type) -> Field:
    """A field of a declared struct that is a number or a choice."""
    return rng.choice([f for f in fields_of(declared).values() if f.is_quantity or f.kind == "choice"])


def _overrides(rng: random.Random, model: str) -> Iterator[tuple[str, str]]:
    """Up to a few overrides of the machine, the network and the runtime, many at their bounds."""
    if rng.random() < 0.1:
        yield "platform.link.kind", "pausing-switch"
        yield "platform.link.buffer", rng.choice(("1B", "2kB", "4000B", "20kB"))
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        match rng.randrange(5):
            case 0 | 1 as of:
                part, declared = ("link", Link) if of else ("host", Host)
                f = _drawn_field(rng, declared)
                values = {"flag": "01", "choice": f.choices, "whole": ("1", "2", "3", "7")}.get(f.kind, (*FACTORS, *SOME.get(f.unit, ())))
                yield f"platform.{part}.{f.name}", rng.choice(values)
            case 2:
                yield rng.choice((("platform.host.cores", rng.choice("124")), ("platform.link.latency", rng.choice(("0us", "x3"))),
                                  ("platform.link.bandwidth", rng.choice(FACTORS)), ("platform.link.buffer", rng.choice(("3000B", "20kB"))),
                                  ("platform.link.mtu", "x0.5"), ("platform.host.mem_streams", "2"), ("platform.link.access", "csma-cd"),
                                  ("platform.host.quantum", rng.choice(("1ms", "10ms")))))
            case _:
                name, param = rng.choice(sorted(registry.model(model).params().items()))
                if param.choices:
                    yield f"{model.partition(':')[0]}.{name}", rng.choice(param.choices)
                else:
                    yield f"{model.partition(':')[0]}.{name}", rng.choice((*FACTORS, "0", "1"))


def _algorithms(rng: random.Random, model: str, lines: Iterable[Iterable[str]]) -> Iterator[tuple[str, str]]:
    """Other algorithms than the model's for some of the collectives that the program calls, and for those that they are made of."""
    called = {line.split()[0] for rank in lines for line in rank} & {name for call in OPERATIONS for name in (call, f"i{call}")}
    for operation in OPERATIONS if called else ():
        others = [name for name in algorithms(operation) if name != "nothing"]
        if rng.random() < 0.4:
            yield f"{model.partition(':')[0]}.{PREFIX}{operation}", rng.choice(others)


def _points(rng: random.Random) -> list[tuple[int, int]]:
    """The cost of sizes (bytes, ps), none or some; it may fall."""
    sizes = sorted(rng.sample((0, 1, 8, 100, 1460, 5000, 20_000, 200_000), rng.choice((0, 1, 2, 2, 4))))
    return [(size, rng.choice((0, rng.randrange(10**5), rng.randrange(10**9)))) for size in sizes]


def _drawn_work(rng: random.Random) -> dict[str, Any]:
    """What a library does in collectives besides sending."""
    calls = {operation: _points(rng) for operation in OPERATIONS if rng.random() < 0.4}
    return work(call=calls, combine=_points(rng), buffers=(_points(rng), _points(rng)))


def _field_value(rng: random.Random, declared: Field) -> Any:
    """A value of a field of a medium, many at its bounds."""
    match declared.kind, declared.unit:
        case "flag", _:
            return rng.choice((0.0, 1.0))
        case "choice", _:
            return rng.choice(declared.choices)
        case "whole", _:
            return max(declared.low or 0.0, rng.choice((0.0, 1.0, 2.0, 3.0, 7.0)))
        case _, "s":
            return rng.choice((0.0, 1e-7, 5e-6, 1e-4, 3e-3))
        case _, "B/s":
            return rng.choice((1e6, 3e7, 1e9))
        case _, "B":
            return max(declared.low or 0.0, rng.choice((0.0, 1.0, 40.0, 1000.0, 1461.0, 20_000.0, 131_072.0)))
        case _, "probability":
            return rng.choice((0.0, 0.01, 0.2))
    return max(declared.low or 0.0, rng.choice((0.0, 1.0, 2.0, 2.5)))


def _hops(rng: random.Random, program: DrawnProgram) -> Iterator[tuple[str, int, str, Any]]:
    """One or a few changes of the path of messages."""
    try:
        rows, _ = program.rows()
    except (RetrompiError, NotCovered):
        return
    there = [(path, k, hop) for path in PATHS for k, hop in enumerate(rows[path]) if hop["medium"] != SampledCurve.name]
    for _ in range(rng.choice((1, 1, 2, 4)) if there else 0):
        path, k, hop = rng.choice(there)
        declared = _drawn_field(rng, MEDIA[hop["medium"]])
        yield path, k, declared.name, _field_value(rng, declared)


def _crowd(rng: random.Random, ranks: int) -> tuple[tuple[str, ...], ...]:
    """All send to all at once, so that frames wait everywhere."""
    rounds, found = rng.choice((1, 2, 3)), []
    for rank in range(ranks):
        peers = [(rank + distance) % ranks for distance in range(1, ranks)]
        size = rng.choice((1500, 4000, 9000, 20000))
        exchange = [*(f"irecv {peer} 0 20000 6" for peer in peers), *(f"isend {peer} 0 {size} 6" for peer in peers), "waitall"]
        found.append(tuple(exchange * rounds))
    return tuple(found)


def _duration(program: DrawnProgram) -> float:
    """Seconds that a program takes; 1 where that is not known."""
    try:
        ended = by_engine(*program.rows()).get("time_ps")
    except (RetrompiError, NotCovered):
        return 1.0
    return max(1e-6, ended * 1e-12) if isinstance(ended, int) else 1.0


def _traffic(rng: random.Random, hosts: list[str], span: float) -> Iterator[str]:
    """Up to two flows of cross traffic."""
    for _ in range(rng.choice((1, 1, 2))):
        ends = rng.choice(("any", f"any->{rng.choice(hosts)}", f"{rng.choice(hosts)}->any", "->".join(rng.sample(hosts, 2))))
        size = rng.choice((64, 200, 1000, 1500))
        rate = size / span * 10 ** rng.uniform(0, 2.5)  # up to some hundred frames while it runs
        on, off = (span * 10 ** rng.uniform(-3, 0) for _ in range(2))
        yield f"{ends} {rate:.6g}B/s {size}B {rng.choice(('constant', 'poisson', f'onoff:{on:.6g}s/{off:.6g}s'))}"


def _failures(rng: random.Random, link: Link, hosts: list[str], span: float) -> Iterator[str]:
    """Up to three failures, of whatever this network has, while it runs."""
    pair = rng.sample(hosts, 2)
    things = [f"link {pair[0]}"] * 2
    match link.kind:
        case "hub" | "switch":
            things += [str(link.kind)]
        case "cable" | "torus":
            things += [f"link {pair[0]}-{pair[1]}"] * 3
        case "fat-tree":
            things += [f"switch {rng.randint(1, 2)}.{rng.randrange(4)}"] * 3
        case "wan":
            things += ["wan", f"switch {rng.randrange(2)}", "wan 0-1"]
    if link.rails > 1:
        things.append("rail 1")
    for _ in range(rng.choice((1, 1, 2, 3))):
        begin = span * rng.random()
        end = begin + span * 10 ** rng.uniform(-5, 0)
        yield f"{rng.choice(things)}@{begin:.9g}s{rng.choice(('', f'..{end:.9g}s', f'..{end:.9g}s'))}"


def _kills(rng: random.Random, program: DrawnProgram, hosts: list[str], span: float) -> Iterator[str]:
    """Up to two processes that are killed, ranks or a runtime's own."""
    roles = {"winmpich": "proxy", "wmpi": "daemon", "pvm": "pvmd", "lam": "lamd"}
    role = roles.get(program.model.partition(":")[0])
    for _ in range(rng.choice((1, 1, 2))):
        process = f"rank {rng.randrange(len(program.lines))}"
        if role and rng.random() < 0.5:
            process = f"{role} on {hosts[program.placement[rng.randrange(len(program.lines))]]}"
        yield f"{process}@{span * rng.random() if rng.random() < 0.95 else 0:.9g}s"


def _beside(rng: random.Random, program: DrawnProgram, crowded: bool) -> DrawnProgram:
    """The program with cross traffic, failures and killed processes beside it, or with none of them."""
    wired, kills = program.fidelity == "mechanism", rng.random() < 0.1
    traffic, fails = rng.random() < 0.12, rng.random() < (0.8 if crowded else 0.15)
    platform = registry.platform(program.platform)
    hosts = [host.name for host in platform.hosts]
    if not (kills or (wired and (traffic or fails))) or len(hosts) < 2:
        return program
    span = _duration(program)
    return replace(
        program, traffic=tuple(_traffic(rng, hosts, span)) if wired and traffic else (),
        failures=tuple(_failures(rng, platform.link, hosts, span)) if wired and fails else (),
        kills=tuple(_kills(rng, program, hosts, span)) if kills else (),
    )


def draw_program(seed: int) -> DrawnProgram:
    """The program of a seed; it may be one that cannot be asked."""
    rng = random.Random(f"reference {seed}")
    model, platform = rng.choice(sorted(registry.models())), rng.choice(registry.platform_names())
    if composed := rng.random() < 0.5:
        host, other, network = rng.choice(machines.host_names()), rng.choice(machines.host_names()), rng.choice(machines.network_names())
        few = machines.network(network).kind == "cable"
        platform = f"{host}*{2 if few else 4}@{network}" if rng.random() < 0.6 else f"{host}*{2 - few}+{other}*{2 - few}@{network}"
    hosts = 2 if composed and few else 4 if composed else len(registry.platform(platform).hosts)
    ranks = rng.choice((2, 2, 2, 3, 3, 4, 5, 6, 7, 9))
    on = rng.sample(range(hosts), min(hosts, rng.choice((1, 2, 4)))) if rng.random() < 0.3 else range(min(hosts, rng.choice((1, 2, 4))))
    among = len(on)
    placement = tuple(on[rng.randrange(among)] if rng.random() < 0.5 else on[r % among] for r in range(ranks))
    crowded = among > 1 and rng.random() < 0.08
    lines = _crowd(rng, ranks) if crowded else tuple(Drawing(rng, ranks, model.startswith("craympt")).lines())
    level = rng.random()
    fidelity = "mechanism" if level < 0.94 else "curve" if level < 0.97 else "loggp"
    # A curve is sampled first, which an odd machine makes long.
    sets = dict((*(_overrides(rng, model) if fidelity == "mechanism" else ()), *_algorithms(rng, model, lines)))
    program = DrawnProgram(
        model, platform, placement, lines, tuple(sets.items()), seed=rng.choice((1, 2, 12345, 2**31)), fidelity=fidelity,
        wildcards=rng.choice(("recorded", "free")), limit_s=rng.choice((None,) * 9 + (0.01,)),
        work=_drawn_work(rng) if rng.random() < 0.1 else None,
        cores=(0,) * ranks if rng.random() < 0.05 else (), network=rng.choice(("native",) * 9 + ("fluid",)),
    )
    if rng.random() < 0.15:
        program = replace(program, hops=tuple(_hops(rng, program)))
    return _beside(rng, program, crowded)


def _difference(program: DrawnProgram) -> str:
    """What differs; "" for nothing, or when it cannot be asked."""
    try:
        return program.compare()[2]
    except (RetrompiError, NotCovered):
        return ""


def _without_a_collective(program: DrawnProgram) -> Iterator[DrawnProgram]:
    """The program without one of its collectives, on all members of the communicator: the n-th call over it on each rank."""
    places: dict[tuple[str, int], list[set[int]]] = {}
    for rank, lines in enumerate(program.lines):
        turns: dict[str, int] = {}
        for at, line in enumerate(lines):
            if not is_collective(line.split()[0]):
                continue
            on = next((word for word in line.split() if word.startswith("comm=")), "")
            turns[on] = turns.get(on, 0) + 1
            places.setdefault((on, turns[on]), [set() for _ in program.lines])[rank].add(at)
    for out in reversed(places.values()):
        kept = (tuple(line for at, line in enumerate(lines) if at not in out[rank]) for rank, lines in enumerate(program.lines))
        yield replace(program, lines=tuple(kept))


def shrink(program: DrawnProgram, differs: Callable[[DrawnProgram], object] = _difference) -> DrawnProgram:
    """The smallest program found that still differs: without ranks, lines, overrides and everything else that it does not need."""

    def try_smaller(smaller: DrawnProgram) -> bool:
        nonlocal program
        if smaller == program or not differs(smaller):
            return False
        program = smaller
        return True

    changed = True
    while changed:
        before = program
        for simple in ({"limit_s": None}, {"network": "native"}, {"cores": ()}, {"seed": 1}, {"wildcards": "recorded"}, {"sets": ()},
                       {"traffic": ()}, {"failures": ()}, {"kills": ()}, {"work": None}, {"hops": ()}):
            try_smaller(replace(program, **simple))
        for name in ("sets", "traffic", "failures", "kills", "hops"):
            for one in getattr(program, name):
                without: dict[str, Any] = {name: tuple(other for other in getattr(program, name) if other != one)}
                try_smaller(replace(program, **without))
        try_smaller(replace(program, lines=program.lines[:-1], placement=program.placement[:-1], cores=program.cores[:-1]))
        while any(try_smaller(less) for less in _without_a_collective(program)):
            pass
        chunk = max(map(len, program.lines))
        while chunk:
            for rank in range(len(program.lines)):
                at = 0
                while at < len(program.lines[rank]):
                    mine = program.lines[rank]
                    less = (*program.lines[:rank], mine[:at] + mine[at + chunk :], *program.lines[rank + 1 :])
                    if not try_smaller(replace(program, lines=less)):
                        at += chunk
            chunk //= 2
        changed = program != before
    return program


@dataclass
class ProgramTally:
    """What came out of a number of programs."""

    compared: int = 0
    refused: int = 0
    not_covered: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    differences: list[tuple[int, str, DrawnProgram]] = field(default_factory=list)

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


def compare_programs(
    seeds: Iterable[int], wanted: int, seconds: float = math.inf, make: Callable[[int], DrawnProgram] = draw_program
) -> ProgramTally:
    """Compares the programs of these seeds until ``wanted`` could be, or processor time is over. Differences are shrunk."""
    tally, begin = ProgramTally(), time.process_time()
    for seed in seeds:
        if tally.compared >= wanted or time.process_time() - begin > seconds:
            break
        try:
            program = make(seed)
            engine, _, what = program.compare()
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
            tally.differences.append((seed, what, shrink(program)))
    return tally
