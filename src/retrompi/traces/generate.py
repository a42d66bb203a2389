"""Synthetic traces: benchmarks as the papers define them and the usual communication patterns.

Sizes are bytes. Every rank begins with ``init`` and ends with ``finalize``; rank 0 has marks where the sections of a
benchmark begin and end. Generators that repeat something do it ``warm_up`` times before it is timed: by name (`GENERATORS`) `WARM_UP`
times unless told otherwise, as functions not at all. Arguments out of range raise UsageError.
"""

from __future__ import annotations

import inspect
import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from retrompi._engine import Trace
from retrompi.base.errors import UsageError, nearest
from retrompi.traces import osu
from retrompi.traces.making import Again, Lines, trace_of_lines, watch_over

__all__ = ["DEFAULT_SIZES", "GENERATORS", "REPEATING", "WARM_UP", "Generator", "all_at_once", "allreduce", "alltoall", "broadcast",
           "default_reps", "generator", "half_to_half", "halo", "halo2d", "late_receive", "pingping", "pingpong", "rinf1",
           "ring"]

KIB = 1024

#: 0 B and the powers of two up to 4 MiB: the sizes of the PingPong study of Baker and Fox.
DEFAULT_SIZES: tuple[int, ...] = (0, *(1 << k for k in range(23)))

MOST_RANKS = 1 << 20
"""The limit of the engine (engine/trace/parser.hpp, MAX_RANKS)."""

WARM_UP = 1
"""Repetitions that are not timed, before those of each size, of a generator that is asked for by its name. After one the time is that of
the steady state, which `retrompi explain` shows; without any the first size includes what the first call sets up (connections, pools)."""

Reps = int | Mapping[int, int] | Callable[[int], int] | None


def default_reps(size: int) -> int:
    """Repetitions of the published PingPong at ``size`` bytes.

    1000 up to 64 KiB (paper: Baker & Fox 5.4, claim BF-CFG-04); above it the paper says only "fewer": 100 up to 512 KiB and 20
    beyond are assumed.
    """
    if size <= 64 * KIB:
        return 1000
    return 100 if size <= 512 * KIB else 20


def pingpong(sizes: Iterable[int] | None = None, reps: Reps = None, warm_up: int = 0) -> Trace:
    """PingPong of two ranks with MPI_Send and MPI_Recv: rank 0 sends first, rank 1 replies.

    Before each size come ``warm_up`` exchanges that are not timed. The published PingPongs had none: with 0 the first size includes what
    the first call sets up (connections, buffers).

    ``reps`` is a number, a mapping or a function of the size, or None for ``default_reps``. Rank 0 has the mark
    ``size S reps R`` before the loop of each size and ``end`` after the last. The published time is half that of an exchange.
    """
    a: list[str | Again] = ["0 init\n"]
    b: list[str | Again] = ["1 init\n"]
    _check_reps(warm_up + 1)
    for size, n in _plan(sizes, reps):
        a += _loop(0, size, f"0 send 1 0 {size} 6\n0 recv 1 0 {size} 6\n", n, warm_up)
        b += _loop(1, size, f"1 recv 0 0 {size} 6\n1 send 0 0 {size} 6\n", n, warm_up)
    a.append("# mark end\n0 finalize\n")
    b.append("1 finalize\n")
    return trace_of_lines("pingpong", [a, b])


def pingping(sizes: Iterable[int] | None = None, reps: Reps = None, warm_up: int = 0) -> Trace:
    """PingPing of two ranks: both send at once (MPI_Isend, MPI_Recv, MPI_Wait). Arguments and marks as in ``pingpong``."""
    ranks: list[list[str | Again]] = [["0 init\n"], ["1 init\n"]]
    _check_reps(warm_up + 1)
    for size, n in _plan(sizes, reps):
        for me, other in ((0, 1), (1, 0)):
            step = f"{me} isend {other} 0 {size} 6\n{me} recv {other} 0 {size} 6\n{me} wait {me} {other} 0\n"
            ranks[me] += _loop(me, size, step, n, warm_up)
    ranks[0].append("# mark end\n")
    for me, lines in enumerate(ranks):
        lines.append(f"{me} finalize\n")
    return trace_of_lines("pingping", ranks)


def ring(ranks: int, size: int, reps: int = 1, warm_up: int = 0) -> Trace:
    """A token of ``size`` bytes passes around ``ranks`` ranks ``reps`` times, starting at rank 0. Marks as in ``pingpong``."""
    _check_ranks(ranks, 2)
    _check_size(size)
    _check_reps(reps)
    lines = []
    for me in range(ranks):
        send = f"{me} send {(me + 1) % ranks} 0 {size} 6\n"
        receive = f"{me} recv {(me - 1) % ranks} 0 {size} 6\n"
        lines.append(_timed_lines(me, size, reps, send + receive if me == 0 else receive + send, warm_up))
    return trace_of_lines("ring", lines)


def halo2d(
    rows: int, columns: int, size: int, reps: int = 1, *, flops: float = 0.0, periodic: bool = False, warm_up: int = 0
) -> Trace:
    """Halo exchange on a grid of ``rows`` × ``columns`` ranks, ``reps`` steps.

    Each rank posts a receive from and a send to each neighbour (``size`` bytes), waits for all and computes ``flops`` operations.
    Without ``periodic`` ranks at the edges have fewer neighbours. A rank that would be its own neighbour is omitted.
    """
    for what, n in (("rows", rows), ("columns", columns)):
        if n < 1:
            raise UsageError(f"halo2d needs at least 1 of {what}, not {n}", code="out-of-range")
    _check_size(size)
    _check_reps(reps)
    if not 0 <= flops < float("inf"):
        raise UsageError(f"flops must be a finite number of at least 0, not {flops}", code="out-of-range")
    _check_ranks(rows * columns, 1)

    def rank(me: int) -> list[str | Again]:
        row, column = divmod(me, columns)
        # The tag is the direction: on a ring of two, both neighbours are the same rank.
        receives, sends = "", ""
        for tag, (down, right) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
            to = _neighbour(row + down, column + right, rows, columns, periodic)
            source = _neighbour(row - down, column - right, rows, columns, periodic)
            if source is not None and source != me:
                receives += f"{me} irecv {source} {tag} {size} 6\n"
            if to is not None and to != me:
                sends += f"{me} isend {to} {tag} {size} 6\n"
        requests = receives.count("\n") + sends.count("\n")
        step = receives + sends + (f"{me} waitall {requests}\n" if requests else "") + (f"{me} compute {flops!r}\n" if flops else "")
        return _timed_lines(me, size, reps, step, warm_up)

    return _on_grid("halo2d", [columns, rows], rank)


def halo(ranks: int, reps: int, size: int, dims: Sequence[int] = (), warm_up: int = 0) -> Trace:
    """Halo exchange on a periodic grid of any number of dimensions (``dims``; if empty, two dimensions as square as possible).

    In each of ``reps`` steps a rank posts a receive from and a send of ``size`` bytes to each of its neighbours and waits for all.
    Ranks that have the same neighbours at the same distances share what they do: a million ranks take less than a second.
    """
    _check_ranks(ranks, 1)
    _check_size(size)
    _check_reps(reps)
    shape = list(dims)
    if not shape:
        side = next(d for d in range(math.isqrt(ranks), 0, -1) if ranks % d == 0)
        shape = [ranks // side, side]
    if min(shape) < 1 or math.prod(shape) != ranks:
        raise UsageError(f"a grid of {'x'.join(map(str, shape))} has {math.prod(shape)} places, not {ranks}", code="wrong-ranks")

    def rank(me: int) -> list[str | Again]:
        receives, sends = "", ""
        stride = 1
        for dimension, length in enumerate(shape):
            at = me // stride % length
            for tag, step in ((2 * dimension, 1), (2 * dimension + 1, -1)):  # the tag is the direction
                to, source = (me + ((at + way) % length - at) * stride for way in (step, -step))
                if to != me:
                    receives += f"{me} irecv {source} {tag} {size} 6\n"
                    sends += f"{me} isend {to} {tag} {size} 6\n"
            stride *= length
        requests = receives.count("\n") + sends.count("\n")
        return _timed_lines(me, size, reps, receives + sends + f"{me} waitall {requests}\n", warm_up)

    return _on_grid("halo", shape, rank)


def allreduce(ranks: int, size: int, reps: int = 1, warm_up: int = 0) -> Trace:
    """``reps`` reductions of ``size`` bytes to all ranks (MPI_Allreduce)."""
    return _collective("allreduce", ranks, reps, size, f"{size} 0 6", warm_up)


def alltoall(ranks: int, size: int, reps: int = 1, warm_up: int = 0) -> Trace:
    """``reps`` times every rank sends ``size`` bytes to every other (MPI_Alltoall)."""
    return _collective("alltoall", ranks, reps, size, f"{size} {size} 6 6", warm_up)


def _collective(name: str, ranks: int, reps: int, size: int, arguments: str, warm_up: int) -> Trace:
    _check_ranks(ranks, 1)
    _check_size(size)
    _check_reps(reps)
    return trace_of_lines(name, (_timed_lines(me, size, reps, f"{me} {name} {arguments}\n", warm_up) for me in range(ranks)))


def broadcast(ranks: int, size: int, reps: int = 1, *, root: int = 0, warm_up: int = 0) -> Trace:
    """``reps`` broadcasts (MPI_Bcast) of ``size`` bytes from ``root`` to all ranks."""
    _check_ranks(ranks, 1)
    _check_size(size)
    _check_reps(reps)
    if not 0 <= root < ranks:
        raise UsageError(f"root {root} is out of range 0..{ranks - 1}", code="unknown-rank")
    return trace_of_lines("broadcast", [_timed_lines(me, size, reps, f"{me} bcast {size} {root} 6\n", warm_up) for me in range(ranks)])


def half_to_half(ranks: int, size: int, reps: int = 1, *, both: bool = False, warm_up: int = 0) -> Trace:
    """Every rank of the lower half sends ``size`` bytes to its partner in the upper half, all pairs at once, ``reps`` times.

    Rank ``i`` is paired with ``i + ranks / 2``. With ``both`` the pairs exchange (MPI_Sendrecv). This is the benchmark of Hudson and
    Wang (their Tables 2 and 5), which report some rows for one direction and some for both.
    """
    _check_ranks(ranks, 2)
    if ranks % 2:
        raise UsageError(f"half_to_half needs an even number of ranks, not {ranks}", code="wrong-ranks")
    _check_size(size)
    _check_reps(reps)
    half = ranks // 2
    lines = []
    for me in range(ranks):
        other = me + half if me < half else me - half
        if both:
            step = f"{me} sendRecv {size} {other} {size} {other} 6 6\n"
        else:
            step = f"{me} {'send' if me < half else 'recv'} {other} 0 {size} 6\n"
        lines.append(_timed_lines(me, size, reps, step, warm_up))
    return trace_of_lines("half-to-half", lines)


def late_receive(ranks: int, size: int, count: int = 1) -> Trace:
    """Every rank but 0 sends ``count`` messages of ``size`` bytes to rank 0 and finally an empty one, which rank 0 receives first.

    All others are therefore unexpected: ``(ranks - 1) * count * size`` bytes wait at rank 0.
    """
    _check_ranks(ranks, 2)
    _check_size(size)
    _check_reps(count)
    last = "".join(f"0 recv {r} 2 0 6\n" for r in range(1, ranks))
    first = _once(0, size, last, *(Again(f"0 recv {r} 1 {size} 6\n", count) for r in range(1, ranks)))
    rest = (_once(r, size, Again(f"{r} send 0 1 {size} 6\n", count), f"{r} send 0 2 0 6\n") for r in range(1, ranks))
    return trace_of_lines("late-receive", [first, *rest])


def all_at_once(ranks: int, size: int) -> Trace:
    """Every rank sends ``size`` bytes to every other (MPI_Isend), and only then receives: all messages are pending at the same time."""
    _check_ranks(ranks, 2)
    _check_size(size)
    lines = []
    for me in range(ranks):
        others = [(me + k) % ranks for k in range(1, ranks)]
        sends = "".join(f"{me} isend {o} 0 {size} 6\n" for o in others)
        receives = "".join(f"{me} recv {o} 0 {size} 6\n" for o in others)
        lines.append(_once(me, size, sends + receives + f"{me} waitall {ranks - 1}\n"))
    return trace_of_lines("all-at-once", lines)


# --- by name ---------------------------------------------------------------------------------------------------------------


def rinf1(kernels: str = "") -> Trace:
    """The Rinf1 benchmark on one rank: every loop at every length (`retrompi.spec.machine.kernels`), marked ``kernel NAME n N reps R``.

    ``kernels`` names the loops, separated by commas; all 17 if it is empty. Each measurement ends at the next mark, the last at
    ``end``.
    """
    from retrompi.spec.machine import kernels as model

    names = [w.strip() for w in kernels.split(",") if w.strip()] or list(model.loops())
    lines = ["0 init\n"]
    for which in map(model.loop, names):
        for n in model.lengths(which):
            reps = model.repetitions(which, n)
            lines.append(f"# mark kernel {which.key} n {n} reps {reps}\n0 kernel {which.key} {n} {reps}\n")
    return trace_of_lines("rinf1", [[*lines, "# mark end\n0 finalize\n"]])


def _one(size: int, args: Mapping[str, Any]) -> int:
    return size


@dataclass(frozen=True)
class Generator:
    """A named benchmark: its generator function and the meaning of its marks ``size S reps R``.

    The published time is the time of a repetition divided by ``parts`` (2: half a round trip); its rate counts
    ``counted(S, arguments)`` bytes in that time, as described by ``rule``.
    """

    make: Callable[..., Trace]
    parts: int = 1
    counted: Callable[[int, Mapping[str, Any]], int] = _one
    rule: str = "the bytes of one message"

    @property
    def one_way(self) -> bool:
        """Whether the published time is that of one message, half of a round trip, and not that of a repetition."""
        return self.parts == 2

    @property
    def between_two(self) -> bool:
        """Whether it measures messages between two ranks, and nothing else: its natural placement is on two hosts."""
        return "sizes" in self.arguments and "ranks" not in self.arguments

    @property
    def arguments(self) -> Mapping[str, inspect.Parameter]:
        """The keyword arguments of ``make`` by name."""
        return _arguments(self.make)

    def with_defaults(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments completed by defaults, so that questions with explicit and implicit defaults are equal."""
        given = {k: p.default for k, p in self.arguments.items() if p.default is not p.empty} | dict(args)
        return given | ({"sizes": DEFAULT_SIZES} if given.get("sizes", ()) is None else {})

    def check(self, args: Mapping[str, Any]) -> None:
        """Raises UsageError for an unknown or missing argument."""
        for key in args:
            if key not in self.arguments:
                raise UsageError(f"this generator has no argument '{key}'{nearest(key, self.arguments)}", code="unknown-key")
        missing = [k for k in self.required if k not in args]
        if missing:
            example = " ".join(f"{k}={_EXAMPLES.get(k, 1)}" for k in missing)
            line = f"this generator needs {' and '.join(repr(k) for k in missing)}, e.g. {example}; see 'retrompi scenarios generators'"
            raise UsageError(line, code="missing-key")

    @property
    def required(self) -> list[str]:
        """The arguments without a default."""
        return [k for k, p in self.arguments.items() if p.default is p.empty]

    @property
    def usage(self) -> str:
        """Its arguments as one writes them, with their defaults: ``ranks=4 size=1KiB [reps=1]``."""
        optional = {k: p.default for k, p in self.arguments.items() if p.default is not p.empty}
        told = [f"{k}={_EXAMPLES.get(k, 1)}" for k in self.required]
        return " ".join([*told, *(f"[{k}={_default_text(v)}]" if _default_text(v) else f"[{k}=...]" for k, v in optional.items())])

    @property
    def summary(self) -> str:
        """The first line of what its function says."""
        made = self.make.func if isinstance(self.make, partial) else self.make
        return " ".join((inspect.getdoc(made) or "").split("\n\n")[0].split()).replace("``", "")


_EXAMPLES: Mapping[str, object] = {"ranks": 4, "size": "1KiB", "sizes": "1KiB", "reps": 10, "rows": 2, "columns": 2,
                                   "n": 1000, "nb": 50, "p": 2, "q": 2, "m": 1000}
"""A value of each argument that has no default, as an example."""


def _default_text(value: Any) -> str:
    """A default as a user writes it; "" for one that is not written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) if len(value) < 4 else ""
    return f"{value:g}" if isinstance(value, int | float) else str(value or "")


@cache
def _arguments(make: Callable[..., Trace]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(make).parameters


def _with_warm_up(make: Callable[..., Trace]) -> Callable[..., Trace]:
    """A generator whose ``warm_up`` is `WARM_UP` by default."""
    return partial(make, warm_up=WARM_UP)


GENERATORS: dict[str, Generator] = {
    "pingpong": Generator(_with_warm_up(pingpong), parts=2),
    "pingping": Generator(_with_warm_up(pingping)),
    "osu_latency": Generator(osu.latency, parts=2),
    "osu_bandwidth": Generator(osu.bandwidth, rule="the bytes of one message in the time of one of a window"),
    "overlap": Generator(
        osu.overlap,
        counted=lambda size, a: 2 * size * int(a.get("messages", osu.MESSAGES)),
        rule="the bytes of the messages of both directions",
    ),
    "ring": Generator(
        _with_warm_up(ring), counted=lambda size, a: size * int(a["ranks"]), rule="the bytes of one message times the ranks it passes"
    ),
    "halo2d": Generator(_with_warm_up(halo2d)),
    "halo": Generator(_with_warm_up(halo)),
    "allreduce": Generator(_with_warm_up(allreduce)),
    "alltoall": Generator(_with_warm_up(alltoall)),
    "broadcast": Generator(
        _with_warm_up(broadcast),
        counted=lambda size, a: size * int(a["ranks"]),
        rule="the bytes of one message times the ranks in the broadcast",
    ),
    "late_receive": Generator(late_receive),
    "all_at_once": Generator(all_at_once),
    "half_to_half": Generator(
        _with_warm_up(half_to_half),
        counted=lambda size, a: size * int(a["ranks"]) // (1 if a.get("both") else 2),
        rule="the bytes of the messages that travel at the same time: one a pair, or two if both halves send",
    ),
    "rinf1": Generator(rinf1, rule="operations of the loop, see `retrompi.sim.loop_rates`"),
}
"""Name -> generator, for scenarios and studies; other modules may add theirs."""


REPEATING = tuple(name for name, g in GENERATORS.items() if isinstance(g.make, partial))
"""The generators that have a warm-up of `WARM_UP` unless told otherwise."""


def generator(name: str) -> Generator:
    """The generator of that name; raises UsageError, suggesting the nearest, if there is none."""
    if name not in GENERATORS:
        raise UsageError(f"no generator '{name}'{nearest(name, GENERATORS)}", code="unknown-name")
    return GENERATORS[name]


def make_trace(name: str, args: Mapping[str, Any]) -> Trace:
    """The trace of a generator, from a cache of the last ones: the points of a study share few programs. Raises UsageError."""
    try:
        key = name, json.dumps(args, sort_keys=True)
    except TypeError:  # an argument that is a function cannot be compared
        return generator(name).make(**args)
    trace = _MADE.get(key)
    if trace is None:
        trace = generator(name).make(**args)
        if trace.actions > _KEPT_ACTIONS:
            return trace
        _MADE[key] = trace
        while len(_MADE) > _KEPT:
            del _MADE[next(iter(_MADE))]
    return trace


_MADE: dict[tuple[str, str], Trace] = {}
_KEPT, _KEPT_ACTIONS = 4, 1_000_000


# --- parts -----------------------------------------------------------------------------------------------------------------


def _on_grid(name: str, shape: Sequence[int], lines: Callable[[int], Iterable[str | Again]]) -> Trace:
    """A trace of the ranks of a grid (the first dimension varies fastest), of which ``lines`` depends on the neighbours' distances alone:
    ranks at the same borders follow one pattern. Rank 0, which has the marks, has its own."""
    place = [0]
    for length in reversed(shape):
        border = [0 if at == 0 else 2 if at == length - 1 else 1 for at in range(length)]
        place = [3 * of + at for of in place for at in border]
    place[0] = 3 ** len(shape)
    first: dict[int, int] = {}
    for me, where in enumerate(place):
        first.setdefault(where, me)
    number = {where: i for i, where in enumerate(first)}
    watch = watch_over(name)
    patterns = [(Lines(lines(me), watch), f"{name}/rank-{me}.txt", me) for me in first.values()]
    return Trace.of_patterns(patterns, array("q", [number[where] for where in place]), name)


def _once(me: int, size: int, *body: str | Again) -> list[str | Again]:
    """A rank that does ``body`` once; rank 0 has the marks."""
    if me:
        return [f"{me} init\n", *body, f"{me} finalize\n"]
    return ["0 init\n", f"# mark size {size} reps 1\n", *body, "# mark end\n", "0 finalize\n"]


def _timed_lines(me: int, size: int, reps: int, step: str, warm_up: int) -> list[str | Again]:
    """A rank that does ``step`` ``reps`` times, after ``warm_up`` times that are not timed; rank 0 has the marks."""
    _check_reps(warm_up + 1)
    end = ["# mark end\n"] if me == 0 else []
    return [f"{me} init\n", *_loop(me, size, step, reps, warm_up), *end, f"{me} finalize\n"]


def _loop(me: int, size: int, step: str, reps: int, warm_up: int) -> list[str | Again]:
    """The repetitions of a size, after those that are not timed; rank 0 has the marks."""
    if me:
        return [Again(step, warm_up + reps)]
    before: list[str | Again] = ["# mark warm-up\n", Again(step, warm_up)] if warm_up else []
    return [*before, f"# mark size {size} reps {reps}\n", Again(step, reps)]


def _plan(sizes: Iterable[int] | None, reps: Reps) -> list[tuple[int, int]]:
    plan = []
    for size in DEFAULT_SIZES if sizes is None else sizes:
        _check_size(size)
        if reps is None:
            n = default_reps(size)
        elif isinstance(reps, int):
            n = reps
        elif isinstance(reps, Mapping):
            if size not in reps:
                raise UsageError(f"no number of repetitions for size {size} B", code="bad-size")
            n = reps[size]
        else:
            n = reps(size)
        _check_reps(n)
        plan.append((size, n))
    if not plan:
        raise UsageError("at least one message size is needed", code="out-of-range")
    return plan


def _neighbour(row: int, column: int, rows: int, columns: int, periodic: bool) -> int | None:
    if periodic:
        return row % rows * columns + column % columns
    return row * columns + column if 0 <= row < rows and 0 <= column < columns else None


def _check_ranks(ranks: int, least: int) -> None:
    if ranks > MOST_RANKS:  # checked before any line is generated
        raise UsageError(f"{ranks} ranks are more than the {MOST_RANKS} that a trace can have", code="out-of-range")
    if ranks < least:
        raise UsageError(f"at least {least} rank{'s are' if least > 1 else ' is'} needed, not {ranks}", code="out-of-range")


def _check_size(size: int) -> None:
    if size < 0:
        raise UsageError(f"a message size is at least 0 B, not {size}", code="out-of-range")


def _check_reps(reps: int) -> None:
    if reps < 1:
        raise UsageError(f"at least 1 repetition is needed, not {reps}", code="out-of-range")
