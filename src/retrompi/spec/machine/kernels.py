"""The Rinf1 loops as a compute model: the cost of an inner loop on a machine, from its instructions and its memory traffic.

An iteration of the inner loop of a loop of ``kernels.toml`` costs the cycles of its instructions on an in-order machine
(`turn_cycles`), times the machine's ``cycle_scale``; a second-level cache access for every first-level miss; a memory access for
every second-level miss; likewise for page translations. Entering the loop costs ``startup`` cycles. Misses follow from the number
of lines that share the sets of a cache between two uses.

    T(n) = start-up + n x cost(n)        rate(n) = operations x n / T(n)        (Hockney's Rinf and n1/2 are those of the cached loop)

Machines are described in ``platforms/kernels/NAME.toml``; values determined by the paper are fitted (`retrompi paper rinf1 --fit`).
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec.declare.sources import wrong_source
from retrompi.spec.host import Host
from retrompi.spec.machine import roofline
from retrompi.spec.platform import Platform, Quantity

__all__ = ["KernelMachine", "Loop", "VectorStream", "benchmark_rules", "compute_sets", "cost", "in_order_cycles", "lengths", "loop",
           "loops", "machine", "model_hash", "rows", "seconds", "timings", "turn_cycles"]

SHAPES = ("vector", "matrix", "product")
USES = ("read", "write", "update")
MACHINE_KEYS: Mapping[str, tuple[str, str]] = {
    "line": ("B", "cache line"),
    "page": ("B", "memory page"),
    "l1_ways": ("count", "associativity of the first-level data cache"),
    "tlb": ("count", "entries of the data translation buffer"),
    "l2_cycles": ("count", "cycles for a line of the second-level cache"),
    "cycle_scale": ("count", "cycles of an in-cache turn against an in-order Pentium's"),
    "startup": ("count", "cycles to enter and leave a loop"),
}
"""Key of a machine -> (unit, meaning)."""


@dataclass(frozen=True)
class VectorStream:
    """A vector traversed by an inner loop; the comment at the top of ``kernels.toml`` explains the fields."""

    array: str
    use: str
    stride: int = 1
    size: int = 8
    random: bool = False
    of: float = 1.0
    sweep: str = "row"
    column: bool = False


@dataclass(frozen=True)
class Loop:
    """One of the loops. ``counted``: operations per iteration of the inner loop; ``claim``: prefix of the ids of its claims."""

    key: str
    claim: str
    title: str
    statement: str
    shape: str
    counted: int
    code: tuple[str, ...]
    streams: tuple[VectorStream, ...]
    note: str = ""

    def turns(self, n: int) -> int:
        """Iterations of the inner loop for a vector length (or matrix order) of ``n``."""
        return int(n ** (1 + SHAPES.index(self.shape)))

    def entries(self, n: int) -> int:
        """Number of times an inner or outer loop is entered."""
        return sum(n**level for level in range(1 + SHAPES.index(self.shape)))


@dataclass(frozen=True)
class KernelMachine:
    """The values of a host that the loops depend on, in Hz, seconds, bytes and bytes/s; ``startup`` and ``l2_cycles`` in cycles."""

    name: str
    clock: float
    tick: float
    l1: float
    l2: float
    l2_ways: int
    line: int
    page: int
    l1_ways: int
    tlb: int
    l2_cycles: float
    cycle_scale: float
    startup: float
    copy_mem: float
    read_mem: float
    quantities: Mapping[str, Quantity] | None = None

    @property
    def line_read(self) -> float:
        """Seconds to read a line from main memory."""
        return self.line / self.read_mem

    @property
    def line_write(self) -> float:
        """Seconds to write a line to main memory, fetched and written back: what copying a line takes beyond reading it."""
        return max(0.0, self.line / self.copy_mem - self.line_read)

    def with_values(self, values: Mapping[str, float]) -> KernelMachine:
        """A copy with some ``values`` replaced."""
        return replace(self, **values)  # type: ignore[arg-type]


@cache
def _file() -> dict[str, Any]:
    path = Path(__file__).with_suffix(".toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def benchmark_rules() -> Mapping[str, Quantity]:
    """How the benchmark measures: ``iterations`` of a measurement, ``longest`` vector, ``leading`` dimension, with their sources."""
    return {
        k: Quantity(float(e["value"]), "1", str(e["value"]), e["source"], e.get("help", "")) for k, e in _file()["benchmark"].items()
    }


def _rule(name: str) -> int:
    return int(_file()["benchmark"][name]["value"])


@cache
def loops() -> Mapping[str, Loop]:
    """Every loop by key, in the paper's order."""
    out = {}
    for t in _file()["loop"]:
        streams = tuple(VectorStream(**s) for s in t["streams"])
        made = Loop(
            key=t["key"], claim=t["claim"], title=t["title"], statement=t["statement"], shape=t.get("shape", "vector"),
            counted=t["counted"], code=tuple(t["code"]), streams=streams, note=t.get("note", ""),
        )
        if made.shape not in SHAPES or any(s.use not in USES for s in streams):
            raise InputError(f"loop '{made.key}' has an unknown shape or use", Path(__file__).with_suffix(".toml"))
        out[made.key] = made
    return out


def loop(key: str) -> Loop:
    """The loop with that key; raises UsageError, suggesting the nearest, if there is none."""
    if key not in loops():
        raise UsageError(f"no kernel '{key}'{nearest(key, loops(), 20)}", code="unknown-kernel")
    return loops()[key]


def lengths(which: Loop) -> list[int]:
    """The vector lengths (matrix orders) of a measurement: 1 to 9, 10 to 90, 100 to 900, ... and the longest that fits."""
    most = _rule("longest") // max(s.stride for s in which.streams) if which.shape == "vector" else _rule("leading")
    steps = [m * 10**e for e in range(len(str(most))) for m in range(1, 10)]
    return sorted({n for n in steps if n <= most} | {most})


def repetitions(which: Loop, n: int) -> int:
    """Number of times a measurement runs the loop at length ``n``."""
    return max(1, _rule("iterations") // which.turns(n))


# --- instructions ------------------------------------------------------------------------------------------------------------


@cache
def turn_cycles(which: Loop) -> float:
    """Cycles per iteration of the inner loop in the first-level cache, in the steady state of an in-order machine."""
    return in_order_cycles(which.code, timings())


def timings() -> dict[str, dict[str, float]]:
    """Instruction -> its timings in cycles (issue, latency and, where relevant, early and again)."""
    return {name: given for name, given in _file()["instructions"].items() if name != "source"}


def in_order_cycles(code: Sequence[str], table: Mapping[str, Mapping[str, float]]) -> float:
    """Cycles per iteration of ``code``: each instruction starts when its predecessor has been issued and its operands are ready."""
    turns = 24
    ready: dict[str, float] = {}
    free = dict.fromkeys(table, 0.0)
    now, ends = 0.0, []
    for _ in range(turns):
        for text in (*code, "turn"):
            target, equals, rest = text.partition(" = ")
            words = (rest if equals else text).split()
            op = table[words[0]]
            # Operands that no instruction computes (a vector, a scalar in a register) are ready from the start.
            wait = max((ready.get(w, 0) for w in words[1:]), default=0) + (op.get("early", 0) if words[1:] else 0)
            start = max(now, wait, free[words[0]])
            free[words[0]] = start + op.get("again", 0)
            now = start + op["issue"]
            if equals:
                ready[target] = start + op["latency"]
        ends.append(now)
    half = turns // 2
    return (ends[-1] - ends[half - 1]) / (turns - half)


# --- memory ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Walk:
    """Lines touched between two uses of a vector, and how they spread over the sets of a cache."""

    lines: float
    spread: float  # share of the sets (of a page's line places) on which they may fall
    pages: float
    arrays: float = 1


def _walk(s: VectorStream, n: int, whole: bool, m: KernelMachine) -> _Walk:
    """One pass of ``n`` elements of a stream, or the ``whole`` matrix of a stream that sweeps it."""
    per_line, row = m.line / s.size, _rule("leading") * s.size
    if s.random:
        size = max(1.0, s.of * n)
        return _Walk(min(size, math.ceil(size / per_line)), 1.0, max(1.0, size * s.size / m.page))
    if whole and s.sweep == "matrix":
        return _Walk(n * math.ceil(n / per_line), 1.0, max(1.0, n * min(1.0, row / m.page)))
    step = row if s.column else s.stride * s.size
    if step < m.line:
        return _Walk(math.ceil(n * step / m.line), 1.0, max(1.0, n * step / m.page))
    # Lines a fixed step apart fall on few places of a page when the step and the page have a large common divisor.
    places = max(1.0, m.page / max(m.line, math.gcd(step, m.page)))
    return _Walk(n, places * m.line / m.page, max(1.0, n * min(1.0, step / m.page)))


def _load(own: _Walk, others: Iterable[_Walk], sets: float) -> float:
    """Mean number of lines per set of a stream: its own on the sets it uses, plus an even share of those of the others."""
    used = max(1.0, min(own.lines, sets * own.spread))
    return own.lines / used + sum(o.lines for o in others) / sets


def _lost_l1(load: float, m: KernelMachine) -> float:
    """Miss rate: a set with more lines than ways that is traversed in order loses all of its lines between two uses."""
    return min(1.0, max(0.0, load - m.l1_ways))


def _traffic(which: Loop, n: int, m: KernelMachine) -> tuple[float, float, float]:
    """(line reads from L2 and translations, lines read from memory, lines written to memory) per iteration."""
    l1_sets, l2_sets = m.l1 / m.line / m.l1_ways, m.l2 / m.line / m.l2_ways
    from_l2 = read = written = 0.0

    def touch(s: VectorStream, rate: float, whole: bool) -> None:
        nonlocal from_l2, read, written
        walks = {o: _walk(o, n, whole, m) for o in which.streams}
        own, others = walks[s], [w for o, w in walks.items() if o is not s]
        if any(o.random for o in which.streams):
            lost1, lost2, lost_page = (
                _lost_lru(which, s, n, capacity, unit)
                for capacity, unit in ((m.l1 / m.line, m.line), (m.l2 / m.line, m.line), (m.tlb, m.page))
            )
            lost2 = min(lost1, lost2)
        else:
            lost1 = _lost_l1(_load(own, others, l1_sets), m)
            # A single line has no conflicts with lines of its own stream.
            lost2 = lost1 * (roofline.lost_l2(_load(own, others, l2_sets), m.l2_ways) if own.lines > 1 else 0.0)
            lost_page = float(sum(w.pages for w in walks.values()) > m.tlb)
        from_l2 += rate * (lost1 - lost2)
        if s.use == "write":
            written += rate * lost2
        else:
            read += rate * lost2
            written += rate * lost2 / 2 if s.use == "update" else 0.0  # fetched by the read; only the write-back remains
        turns = 1.0 if s.random else n * n if whole else n
        from_l2 += min(1.0, own.pages / turns if not s.random else 1.0) * lost_page

    for s in which.streams:
        per_line = s.size * (1 if s.column else s.stride) / m.line
        if s.random:
            touch(s, 1.0, False)
        elif which.shape == "vector" or s.sweep == "row":
            touch(s, min(1.0, per_line), False)
        elif s.column:
            # The other elements of a column's lines belong to the next columns: reused after one pass, the line itself after all of them.
            touch(s, 1 - per_line, False)
            touch(s, per_line, True)
        else:
            touch(s, per_line, True)
    return from_l2, read, written


def _lost_lru(which: Loop, s: VectorStream, n: int, capacity: float, unit: int) -> float:
    """Miss rate of a stream in an LRU memory of ``capacity`` lines (or pages) of ``unit`` B.

    Che's approximation: a line is lost if it is not reused before as many distinct lines have been touched as the memory
    holds. A line of a random vector of L lines is reused within t iterations with probability 1 - exp(-t / L), a line of a vector
    traversed in order after n iterations.
    """
    holds = {o: max(1.0, o.of * n * o.size / unit) for o in which.streams}
    fresh = sum(min(1.0, o.stride * o.size / unit) for o in which.streams if not o.random)

    def touched_bytes(turns: float) -> float:
        return fresh * turns - sum(holds[o] * math.expm1(-turns / holds[o]) for o in which.streams if o.random)

    if touched_bytes(n) <= capacity and sum(holds.values()) <= capacity:
        return 0.0
    low, high = 0.0, float(max(n, 1))
    while touched_bytes(high) < capacity and high < 1e9:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if touched_bytes(middle) < capacity else (low, middle)
    return math.exp(-low / holds[s]) if s.random else float(low < n)


@cache
def _cached_traffic(which: Loop, n: int, shape: KernelMachine) -> tuple[float, float, float]:
    return _traffic(which, n, shape)


def _geometry(m: KernelMachine) -> KernelMachine:
    """The machine with all times neutralized: the fields that memory traffic depends on, as a cache key."""
    return replace(m, name="", clock=1, tick=1, cycle_scale=1, startup=0, copy_mem=1, read_mem=1, l2_cycles=0, quantities=None)


def cost(which: Loop, n: int, m: KernelMachine) -> float:
    """Seconds per iteration of the inner loop at length ``n``, without start-up."""
    from_l2, read, written = _cached_traffic(which, n, _geometry(m))
    memory = read * m.line_read + written * m.line_write
    return (turn_cycles(which) * m.cycle_scale + from_l2 * m.l2_cycles) / m.clock + memory


def in_cache(which: Loop, m: KernelMachine) -> tuple[float, float]:
    """(Rinf in flop/s, n1/2) of a loop whose vectors stay in the first-level cache."""
    turn = turn_cycles(which) * m.cycle_scale / m.clock
    return which.counted / turn, m.startup / m.clock / turn


def seconds(which: Loop, n: int, m: KernelMachine) -> float:
    """Seconds of one execution of the whole loop (or loop nest) at length ``n``."""
    return which.turns(n) * cost(which, n, m) + which.entries(n) * m.startup / m.clock


def rate(which: Loop, n: int, m: KernelMachine) -> float:
    """Counted operations per second at length ``n``."""
    return which.counted * which.turns(n) / seconds(which, n, m)


# --- machines ----------------------------------------------------------------------------------------------------------------


def _table(path: Path) -> dict[str, Any]:
    return _read(path, paths.stamp(path))


@lru_cache(maxsize=64)  # a paper's loops ask for the same few machines hundreds of times
def _read(path: Path, _stamp: tuple[int, int] | None) -> dict[str, Any]:
    return toml_text.read(path, "table of machines")[1]


def _home(platform: Platform, host: str) -> tuple[Path, str] | None:
    """The file and table that describe ``host``, following ``like`` of the platform's own file."""
    folder = (platform.path or paths.platforms_dir() / "x.toml").parent
    file, name = platform.name, host
    for _ in range(16):
        for place in (folder, paths.platforms_dir()):
            own = place / "kernels" / f"{file}.toml"
            if own.is_file() and name in _table(own):
                return own, name
        source = next((p for p in (folder / f"{file}.toml", paths.platforms_dir() / f"{file}.toml") if p.is_file()), platform.path)
        if source is None:
            return None
        entry: dict[str, Any] = next((h for h in _table(source).get("host", []) if h.get("name") == name), {})
        if "like" not in entry:
            return None
        other, colon, name = str(entry["like"]).rpartition(":")
        file = other if colon else file
    return None


def _quantity(key: str, entry: Any, path: Path) -> Quantity:
    unit, help = MACHINE_KEYS[key]
    if not isinstance(entry, dict) or "value" not in entry or wrong_source(entry.get("source")):
        raise InputError(f"'{key}' is not a table with value and source", path, code="bad-value")
    try:
        value, low, high = (units.parse(str(entry[k]), unit) if k in entry else None for k in ("value", "low", "high"))
    except UsageError as error:
        raise InputError(f"'{key}': {error}", path, code=error.code) from None
    return Quantity(value or 0.0, units.canonical(unit), str(entry["value"]), entry["source"], entry.get("help", help), low, high)


def quantities(platform: Platform, host: str) -> dict[str, Quantity]:
    """The kernel values of a host with their sources, fitted ones from the fit. Raises UsageError if the host is not described."""
    home = _home(platform, host)
    if home is None:
        raise UsageError(
            f"host '{host}' of platform '{platform.name}' has no kernel numbers: write platforms/kernels/{platform.name}.toml as nt-pair's",
            code="unknown-kernel",
        )
    path, name = home
    given = _table(path)[name]
    unknown = [k for k in given if k not in MACHINE_KEYS]
    missing = [k for k in MACHINE_KEYS if k not in given]
    if unknown or missing:
        raise InputError(f"[{name}] {'does not know' if unknown else 'lacks'} '{(unknown or missing)[0]}'", path, code="unknown-key")
    out = {k: _quantity(k, given[k], path) for k in MACHINE_KEYS}
    fitted = path.with_name(f"{path.stem}.fit.toml")
    values = _table(fitted).get(name, {}).get("values", {}) if fitted.is_file() else {}
    for key, q in out.items():
        if not q.source.startswith("fit:"):
            continue
        if key not in values:
            out[key] = replace(q, source="assumed: not fitted yet")
            continue
        value = units.parse(str(values[key]), MACHINE_KEYS[key][0])
        if q.low is None or q.high is None or not q.low * (1 - 1e-6) <= value <= q.high * (1 + 1e-6):
            raise InputError(f"[{name}.values] {key} = {values[key]} lies outside its sourced range", fitted, code="out-of-range")
        out[key] = replace(q, value=value, text=str(values[key]))
    return out


def machine(platform: Platform, host: str | int) -> KernelMachine:
    """The `KernelMachine` of a host (name or index); clock, tick, caches and memory are those of the platform, including overrides.

    Raises UsageError for a host without kernel values, InputError for a wrong file.
    """
    h = platform.hosts[host] if isinstance(host, int) else platform.host(host)
    own = quantities(platform, h.name)
    v = {k: q.value for k, q in own.items()}
    whole = {k: int(v.pop(k)) for k in ("line", "page", "l1_ways", "tlb")}
    return KernelMachine(
        name=h.name, clock=h.clock, tick=h.tick, l1=h.l1, l2=h.l2, l2_ways=int(h.l2_ways), copy_mem=h.copy_mem, read_mem=h.read_mem,
        quantities=_Frozen(own), **whole, **v,  # type: ignore[arg-type]
    )


class _Frozen(dict[str, Quantity]):
    """A dict in a frozen, hashable machine; it affects neither equality nor hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen)


def rows(named: Iterable[tuple[str, int, str, int]], platform: Platform, placement: Sequence[int]) -> list[tuple[str, int, list[float]]]:
    """The engine's rows for the kernels named in a trace: (name, n, seconds on every host used, in the engine's order).

    ``named`` as of ``Trace.kernels()``: a loop of Rinf1 on a machine that has kernel values, or a kernel stated by operations and bytes
    (`retrompi.spec.machine.roofline`). Raises UsageError, with file and line for an unknown kernel, or for a host without kernel values.
    """
    hosts = [platform.hosts[i] for i in sorted(set(placement))]
    kinds: dict[Host, int] = {}
    which = [kinds.setdefault(replace(h, name=""), i) for i, h in enumerate(hosts)]
    described = cache(lambda host: machine(platform, host))
    out = []
    for name, n, file, line in named:
        try:
            one = _find_kernel(name)
        except UsageError as error:
            raise UsageError(f"{file}:{line}: {error}", code=error.code) from None
        if isinstance(one, Loop):
            took = [seconds(one, n, described(h.name)) for h in hosts]
        else:
            by_kind = {i: roofline.seconds(one, n, hosts[i]) for i in kinds.values()}
            took = [by_kind[i] for i in which]
        out.append((name, n, took))
    return out


def _find_kernel(name: str) -> Loop | roofline.Kernel:
    if name in loops():
        return loops()[name]
    if name.partition(":")[0] not in roofline.KINDS:
        raise UsageError(f"no kernel '{name}'{nearest(name, [*loops(), *roofline.KINDS], 40)}", code="unknown-kernel")
    return roofline.kernel(name)


def compute_sets(platform: Platform, kernel: str) -> dict[str, str]:
    """Overrides that run compute amounts at the rate of a kernel on every host: ``daxpy`` in cache, ``daxpy:1000`` at a length."""
    name, colon, text = kernel.partition(":")
    which = loop(name)
    if colon and not (text.isdigit() and int(text) > 0):
        raise UsageError(f"'{kernel}' is not KERNEL or KERNEL:LENGTH; example: daxpy:1000", code="bad-syntax")
    out = {}
    for h in platform.hosts:
        m = machine(platform, h.name)
        flops = rate(which, int(text), m) if colon else in_cache(which, m)[0]
        out[f"platform.{h.name}.flops"] = f"{flops:.9g} flop/s"
    return out


def model_hash(platform: Platform) -> str:
    """SHA-256 of the loops and of the kernel values of the hosts: what a run with kernels depends on beside trace and platform."""
    facts = [_file(), [[h.name, [q.value for q in quantities(platform, h.name).values()]] for h in platform.hosts]]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
