"""Rival mechanisms of the Rinf1 loops, each refitted by the command's own fit and judged on all 38 rows; docs/rinf1.md has the outcome.

    python benchmarks/rinf1_rivals.py [RIVAL ...]

A rival is one rule for every loop it applies to. All were written down here before any of them was run, by an author who knew the published
table and the rows that fail. Nothing is stored: the current machines stay unchanged. Claims outside the fit are only read for judging.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from retrompi.base import paths
from retrompi.papers.statements import claims, own_code
from retrompi.papers.statements.metrics import SAME
from retrompi.sim import loop_rates, simulate
from retrompi.spec import registry
from retrompi.spec.machine import kernels
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

rinf1 = own_code.module(paths.papers_dir() / "baker-fox", "experiments", "_rinf1")
HOSTS = {"server": "S", "workstation": "W"}
Loops = dict[str, kernels.Loop]
Work = tuple[float, float, float, float]  # seconds of instructions, of L2 and translations, of memory read, of memory written


# --- what a rival may change ---------------------------------------------------------------------------------------------------


def table(host: str) -> dict[str, dict[str, float]]:
    """Instruction timings (cycles): the current ones, and those that rivals add."""
    given = kernels.timings()
    # An integer multiplication: 10 cycles on a Pentium, during which nothing else starts; pipelined, 4 until its result, on a Pentium Pro.
    given["imul"] = {"issue": 10, "latency": 10} if host == "workstation" else {"issue": 1, "latency": 4}
    # A store whose element is loaded again: the load waits for it; a Pentium Pro forwards it from its store buffer (about five cycles).
    given["stf"] = {"issue": 2, "latency": 2 if host == "workstation" else 5, "early": 1}
    return given


@cache
def turn(code: tuple[str, ...], host: str) -> float:
    """As `kernels.turn_cycles`, with the timings of `table`."""
    return kernels.in_order_cycles(code, table(host))


def throughput(code: tuple[str, ...]) -> float:
    """Cycles per iteration on an out-of-order processor (Pentium Pro): three micro-operations, one load, one store per cycle.

    A multiplication starts every second cycle; a chain from turn to turn costs its latencies (load 3, multiply 5, add 3).
    """
    words = [(t.partition(" = ")[2] or t).split() for t in code]
    ops = [w[0] for w in words]
    memory = sum(1 for w in words if w[0] in ("mul", "add") and any(a.isupper() for a in w[1:]))
    loads = memory + sum(o in ("ld", "idx") for o in ops)
    uops = len(ops) + memory + sum(o == "st" for o in ops) + 3
    # What each turn adds when every instruction starts as soon as its operands are there.
    ready: dict[str, float] = {}
    ends = []
    for _ in range(24):
        for text, used in zip(code, words, strict=True):
            done = max((ready.get(w, 0) for w in used[1:]), default=0) + {"ld": 3, "idx": 3, "mul": 5, "add": 3}.get(used[0], 1)
            if " = " in text:
                ready[text.partition(" = ")[0]] = done
        ends.append(max(ready.values()))
    chain = (ends[-1] - ends[11]) / 12
    return max(uops / 3, loads, 2 * ops.count("mul"), ops.count("add"), chain)


@dataclass(frozen=True)
class Rival:
    """``text`` states the rule; the other fields define how it changes the model."""

    key: str
    text: str
    change: Callable[[Loops], None] = lambda found: None
    leading: int | None = None
    shortest: int = 1
    out_of_order: bool = False
    combine: Callable[[kernels.Loop, kernels.KernelMachine, Work], float] = lambda one, m, w: sum(w)
    no_allocate: bool = False
    walk: str = "l2"
    mesh: Callable[[kernels.Loop, int], float | None] = lambda one, n: None
    machines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def code(found: Loops, key: str, *lines: str) -> None:
    found[key] = replace(found[key], code=lines)


def streams(found: Loops, key: str, **arrays: dict[str, Any]) -> None:
    old = found[key].streams
    found[key] = replace(found[key], streams=tuple(replace(s, **arrays.get(s.array, {})) for s in old))


def pointer_rows(found: Loops) -> None:
    code(found, "transposition", "p = idx A", "x = ld A p", "q = idx B", "st B x q")
    code(found, "matmul-inner", "x = ld B", "p = idx C", "x = mul x C p", "s = add s x")
    for key in ("matmul-middle", "matmul-outer"):
        code(found, key, "p = idx B", "x = ld B p", "t = idx C", "x = mul x C t", "q = idx A", "x = add x A q", "r = idx A", "st A x r")


def multiplied(found: Loops) -> None:
    code(found, "transposition", "p = imul A", "x = ld A p", "q = imul B", "st B x q")
    code(found, "matmul-inner", "p = imul B", "x = ld B p", "q = imul C", "x = mul x C q", "s = add s x")
    for key in ("matmul-middle", "matmul-outer"):
        code(found, key, "p = imul B", "x = ld B p", "t = imul C", "x = mul x C t", "q = imul A", "x = add x A q", "st A x q")


def multiplied_if_varying(found: Loops) -> None:
    code(found, "transposition", "p = imul A", "x = ld A p", "st B x")
    code(found, "matmul-inner", "x = ld B", "q = imul C", "x = mul x C q", "s = add s x")


def swapped(found: Loops) -> None:
    column, again = {"column": True, "sweep": "matrix"}, {"stride": kernels._rule("leading"), "sweep": "row"}
    streams(found, "transposition", A={"column": False}, B=column)
    streams(found, "matmul-middle", B=column, A=again)
    streams(found, "matmul-outer", A=column, B=again)


def swapped_multiplied(found: Loops) -> None:
    swapped(found)
    code(found, "transposition", "x = ld A", "q = imul B", "st B x q")
    code(found, "matmul-inner", "x = ld B", "q = imul C", "x = mul x C q", "s = add s x")
    for key in ("matmul-middle", "matmul-outer"):
        code(found, key, "p = imul B", "x = ld B p", "x = mul x c", "q = imul A", "x = add x A q", "st A x q")


def swapped_pointers(found: Loops) -> None:
    pointer_rows(found)
    swapped(found)


def as_printed(found: Loops) -> None:
    for key in ("inner-product", "matmul-inner"):
        code(found, key, "x = ld B", "x = mul x C", "x = add x s", "s = stf S x")


def reload(found: Loops) -> None:
    code(found, "recurrence", "x = ld B", "x = mul x a", "x = add x D", "a = stf A x")


def two_moves(found: Loops) -> None:
    code(found, "scatter-gather", "k = idx K", "x = ld B k", "st C x", "turn", "j = idx J", "y = ld C", "st A y j")
    old = found["scatter-gather"]
    found["scatter-gather"] = replace(old, streams=(*old.streams, kernels.VectorStream("C", "update")))


def once(found: Loops) -> None:
    found["scatter-gather"] = replace(found["scatter-gather"], counted=1)


def whole_array(one: kernels.Loop, n: int) -> float | None:
    return min(kernels._rule("longest"), 4 * n) / n


def charge_mesh(points: int) -> Callable[[kernels.Loop, int], float | None]:
    return lambda one, n: min(points, 4 * n) / n if one.key == "charge" else None


def mesh_share(share: float) -> Callable[[kernels.Loop, int], float | None]:
    return lambda one, n: share if one.key == "charge" else None


def overlap_server(one: kernels.Loop, m: kernels.KernelMachine, w: Work) -> float:
    busy, memory = w[0] + w[1], w[2] + w[3]
    return max(busy, memory) if m.name == "server" and one.key != "recurrence" else busy + memory


def overlap_half(one: kernels.Loop, m: kernels.KernelMachine, w: Work) -> float:
    busy, memory = w[0] + w[1], w[2] + w[3]
    return (max(busy, memory) + busy + memory) / 2 if m.name == "server" and one.key != "recurrence" else busy + memory


def overlap_writes(one: kernels.Loop, m: kernels.KernelMachine, w: Work) -> float:
    return w[2] + max(w[0] + w[1], w[3])


RIVALS = [
    Rival("in-force", "the model as it is"),
    Rival(
        "1a",
        "matrices are arrays of pointers to rows; a store may change what they point to, so each access loads its row's pointer",
        pointer_rows,
    ),
    Rival(
        "1b", "run-time dimension, no common subexpressions: each two-dimensional access multiplies (f2c without an optimiser)", multiplied
    ),
    Rival(
        "1c",
        "the same, but only where the multiplied subscript changes in the inner loop (invariants hoisted, no strength reduction)",
        multiplied_if_varying,
    ),
    Rival("1d", "the Fortran order of loops kept in C: transposition writes, middle and outer product walk by columns", swapped),
    Rival("1e", "1d with 1a", swapped_pointers),
    Rival("1f", "1d with 1c", swapped_multiplied),
    Rival("1g", "leading dimension a power of two (256, the largest whose square fits the longest vector)", leading=256),
    Rival("1h", "1f with 1g", swapped_multiplied, leading=256),
    Rival("1i", "sums are kept in memory as the statement says, not in a register", as_printed),
    Rival("2a", "the recurrence loads the element just written: store forwarding in its chain", reload),
    Rival("2b", "the Server's instructions start as soon as they can (micro-operation throughput and carried chains)", out_of_order=True),
    Rival(
        "3a",
        "memory and arithmetic overlap wholly on the Server; never in the recurrence, never on the Workstation",
        combine=overlap_server,
    ),
    Rival("3b", "as 3a, half of it", combine=overlap_half),
    Rival("3c", "written lines drain behind the instructions, read lines stall, on both machines", combine=overlap_writes),
    Rival("4a", "index vectors point into the whole array, whatever the length", mesh=whole_array),
    Rival("4b", "the scatter/gather counts one operation a turn", once),
    Rival("4c", "scatter and gather are two loops, one operation each", two_moves),
    Rival("5a", "charge: a particle a cell", mesh=mesh_share(1.0)),
    Rival("5b", "charge: a hundred particles a cell", mesh=mesh_share(0.01)),
    Rival("5c", "charge: a mesh of 1024 points, whatever the number of particles (32 x 32)", mesh=charge_mesh(1024)),
    Rival("5d", "charge: a mesh of 64 x 64 points", mesh=charge_mesh(4096)),
    Rival("6a", "a page walk reads directory and table: two accesses to the second-level cache", walk="two"),
    Rival("6b", "a page walk of the Workstation reads memory", walk="memory"),
    Rival(
        "6c",
        "the Workstation's second-level cache is direct-mapped, as boards for the Pentium had it",
        machines={"workstation": {"l2_ways": 1}},
    ),
    Rival(
        "7a",
        "a Pentium does not fetch a line that it only writes: a missing store costs one word, a quarter of a written line",
        no_allocate=True,
    ),
    Rival("7b", "7a with 6b", no_allocate=True, walk="memory"),
    # Second round, after the first rivals (all but 1b to 3a, 6b to 7b) had been seen: minima at length 1 are start-up, not memory.
    Rival("8a", "the shortest vector has 10 elements", shortest=10),
    Rival("8b", "8a with 3a and 7a: what is known of the two processors", shortest=10, combine=overlap_server, no_allocate=True),
    Rival("8c", "3a with 7a", combine=overlap_server, no_allocate=True),
]


# --- the model with a rival in it ------------------------------------------------------------------------------------------------


class Model:
    """Installs a rival in `retrompi.spec.machine.kernels` for the duration of a ``with`` block."""

    def __init__(self, rival: Rival) -> None:
        self.rival = rival
        self.old: dict[str, Any] = {}

    def __enter__(self) -> None:
        r = self.rival
        rule = kernels._rule
        self.old = {n: getattr(kernels, n) for n in ("_rule", "loops", "cost", "machine", "lengths")}
        kernels._rule = lambda name: r.leading if r.leading and name == "leading" else rule(name)
        lengths = self.old["lengths"]
        kernels.lengths = lambda one: [n for n in lengths(one) if n >= r.shortest]
        found = dict(self.old["loops"]())
        r.change(found)
        kernels.loops = lambda: found
        base, traffic = self.old["machine"], kernels._traffic
        kernels.machine = lambda room, host: (lambda m: m.with_values(r.machines.get(m.name, {})))(base(room, host))

        @cache
        def counted(one: kernels.Loop, n: int, shape: kernels.KernelMachine) -> tuple[float, float, float, float, float, float]:
            share = r.mesh(one, n)
            if share is not None:
                one = replace(one, streams=tuple(replace(s, of=share) if s.random else s for s in one.streams))
            lines = traffic(one, n, shape)
            # Translations alone: what is left when there are enough of them is not lost to them.
            pages = lines[0] - traffic(one, n, replace(shape, tlb=10**9))[0]
            # Written lines that nothing reads, of vectors whose neighbours are written in other turns: a word each instead.
            single = 0.0
            for s in one.streams:
                if s.use == "write":
                    alone = traffic(replace(one, streams=tuple(x if x is s else replace(x, use="read") for x in one.streams)), n, shape)[2]
                    words = 1.0 if s.random or s.column or s.stride >= shape.line / s.size else None
                    single += alone * 0.75 if words else 0.0
            return (*lines, pages, single, 0.0)

        def cost(one: kernels.Loop, n: int, m: kernels.KernelMachine) -> float:
            from_l2, read, written, pages, single, _ = counted(one, n, kernels._geometry(m))
            cycles = throughput(one.code) if r.out_of_order and m.name == "server" else turn(one.code, m.name)
            if r.no_allocate and m.name == "workstation":
                written -= single
            aside = from_l2 * m.l2_cycles / m.clock
            if r.walk == "two":
                aside += pages * m.l2_cycles / m.clock
            if r.walk == "memory" and m.name == "workstation":
                aside += pages * (m.line_read - m.l2_cycles / m.clock)
            work = (cycles * m.cycle_scale / m.clock, aside, read * m.line_read, written * m.line_write)
            return r.combine(one, m, work)

        kernels.cost = cost

    def __exit__(self, *_: object) -> None:
        for name, value in self.old.items():
            setattr(kernels, name, value)


def judge(facts: Mapping[str, Any]) -> tuple[list[str], list[str], dict[str, tuple[float, float]]]:
    """(fitted rows that pass, held-out rows that pass, factor of minimum and maximum by row)."""
    fitted, held, away = [], [], {}
    for claim in claims.load():
        if not claim.id.startswith("BF-R-"):
            continue
        name = claim.id.removeprefix("BF-R-")
        found: Any = facts
        words = str(claims.checks()[claim.id][0]["path"]).split(".")[1:]
        if name == "20":
            good = all(claim.low <= facts["ratio"][e] <= claim.high for e in ("min", "max"))
            away[name] = (facts["ratio"]["min"], facts["ratio"]["max"])
        else:
            for w in words:
                found = found[w]
            away[name] = (found["min"] * 1e-6 / claim.low, found["max"] * 1e-6 / claim.high)
            good = all(1 / SAME <= f <= SAME for f in away[name])
        if good:
            (held if claim.held_out else fitted).append(name)
    return fitted, held, away


def main(chosen: list[str]) -> None:
    base: set[str] = set()
    for rival in RIVALS:
        if chosen and rival.key not in chosen:
            continue
        with Model(rival):
            tables, fits = {}, {}
            for i, host in enumerate(HOSTS):
                fits[host] = rinf1.fit("nt-pair", host)
                room = registry.platform("nt-pair")
                m = kernels.machine(room, host).with_values(rinf1.found_values(fits[host], room))
                inner = kernels.machine
                kernels.machine = lambda room, at, inner=inner, m=m, i=i, host=host: m if at in (i, host) else inner(room, at)
                result = simulate.run(Question("wmpi", "nt-pair", Replay(generate.rinf1("")), [i]))
                tables[host] = loop_rates.table(loop_rates.readings(result, m.tick))
            fitted, held, away = judge(rinf1.facts(tables))
        if rival.key == "in-force":
            base = set(held)
        print(f"{rival.key:8s} fitted {len(fitted)}/6 held-out {len(held)}/32  gains {' '.join(sorted(set(held) - base)) or '-'}  "
              f"loses {' '.join(sorted(base - set(held))) or '-'}")
        print("         " + rival.text)
        for host, f in fits.items():
            shown = (f"{v['parameter']} {v['value']}{' EDGE' if 'edge' in v['note'] else ''}" for v in f.values)
            print(f"         {host}: " + ", ".join(shown))
        print("         " + "  ".join(f"{k} {a:.2f} {b:.2f}" for k, (a, b) in away.items()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
