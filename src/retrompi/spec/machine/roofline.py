"""Computation stated by what it does: kernels with operations and bytes, on the roofline of a host's caches and memory.

A kernel of a trace is ``KIND`` or ``KIND:PARAMETER=VALUE,...`` at a length: ``axpy``, ``spmv:nz=5``, ``gemm:n=8,k=60`` (`KINDS`). A pass
over its length does operations, moves bytes between registers and the first-level cache, and has to move bytes beyond each level that does
not keep its data from one use to the next. It takes as long as the slowest of these (Williams, Waterman, Patterson, 2009):

    T = max(operations / peak,  inner / 2 copy_l1,  beyond / 2 copy_l2,  read / read_mem + written (1 / copy_mem - 1 / read_mem))

A copy of a byte is a load and a store, and one from memory reads the byte and writes it. ``peak`` is the host's ``flops_per_cycle`` by
its clock; where that is not stated, its ``flops``. The first level keeps what fits into it (LRU), the second what `lost_l2` says. Nothing
here was fitted: docs/computation.md judges the rule on machines whose kernels were published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from retrompi.base.errors import UsageError, nearest
from retrompi.spec.host import Host

__all__ = ["KINDS", "Kernel", "KernelWork", "Kind", "kernel", "lost_l2", "lost_shares", "peak", "seconds", "terms"]

WORD = 8
"""Bytes of a number (double precision)."""
INDEX = 4
"""Bytes of an index of a sparse matrix."""
VECTORS_AT_A_TIME = 4
"""Vectors that PETSc's multiple dot products and updates take in one pass over the common one (doc: PETSc 2, src/vec/impls/seq/dvec2.c)."""
BLOCKED = ("gemm", "trsm")
"""Kinds that a library blocks for the caches, whose rate is published as that of its matrix product."""
TILE = 4
"""Rows and columns of the result that a blocked matrix product keeps in registers (assumed: 16 of the 32 registers of a RISC processor)."""


@dataclass(frozen=True)
class KernelWork:
    """The work of one pass over the length of a kernel: ``operations`` in floating point; bytes ``inner`` between registers and the
    first-level cache; bytes ``read`` and ``written`` beyond it unless they are kept; ``kept``: bytes touched between two uses of the same
    data."""

    operations: float
    inner: float
    read: float
    written: float
    kept: float


@dataclass(frozen=True)
class Kind:
    """A kind of kernel: ``work`` gives a pass over a length with the parameters; ``parameters``: name -> default, None if there is none."""

    name: str
    title: str
    work: Callable[[float, Mapping[str, float]], KernelWork]
    parameters: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Kernel:
    """A kind with its parameters: what a trace names."""

    kind: Kind
    parameters: Mapping[str, float]
    over: float | None = None

    def work(self, n: float) -> KernelWork:
        """One pass over the length ``n``."""
        made = self.kind.work(n, self.parameters)
        return made if self.over is None else KernelWork(made.operations, made.inner, made.read, made.written, max(self.over, made.kept))


def _stream(
    operations: float, read: float, written: float, kept: float | None = None
) -> Callable[[float, Mapping[str, float]], KernelWork]:
    """Vectors passed once: ``operations``, words ``read`` and ``written`` an element; ``kept``: vectors (default: read or written)."""

    def work(n: float, _: Mapping[str, float]) -> KernelWork:
        bytes_kept = WORD * n * (max(read, written) if kept is None else kept)
        return KernelWork(operations * n, WORD * n * (read + written), WORD * n * read, WORD * n * written, bytes_kept)

    return work


def _many(n: float, p: Mapping[str, float], stored: bool) -> KernelWork:
    vectors = p["vectors"]
    passes = -(-vectors // VECTORS_AT_A_TIME)
    read, written = WORD * n * (vectors + passes), WORD * n * passes * stored
    return KernelWork(2 * vectors * n, read + written, read, written, WORD * n * (vectors + 1))


def _sparse(n: float, p: Mapping[str, float]) -> KernelWork:
    """A product or the two triangular solves with as many entries: values, an index for each block, the vector by blocks, the result."""
    nz, block = p["nz"], p["block"]
    matrix = n * nz * (WORD + INDEX / block**2)
    return KernelWork(2 * nz * n, matrix + WORD * n * (nz / block + 1), matrix + WORD * n, WORD * n, matrix + 2 * WORD * n)


def _product(n: float, p: Mapping[str, float]) -> KernelWork:
    """C (n x cols) += A (n x depth) B, blocked for registers and caches: A and B are read, C is read and written."""
    cols, depth = p["n"], p["k"]
    operations = 2 * n * cols * depth
    matrices = WORD * (n * depth + depth * cols + n * cols)
    return KernelWork(operations, WORD * (operations / TILE + 2 * n * cols), matrices, WORD * n * cols, matrices)


def _solve(n: float, p: Mapping[str, float]) -> KernelWork:
    """Triangular solve with ``n`` right-hand sides of order ``order``, blocked as `_product`."""
    order = p["order"]
    operations = n * order**2
    triangle, sides = WORD * order**2 / 2, WORD * n * order
    return KernelWork(operations, WORD * operations / TILE + 2 * sides, triangle + sides, sides, triangle + sides)


def _rank_one(n: float, p: Mapping[str, float]) -> KernelWork:
    """A (n x cols) += x y: what an unblocked factorisation does a column."""
    block = WORD * n * p["n"]
    return KernelWork(2 * n * p["n"], 2 * block + WORD * n, block + WORD * n, block, block + WORD * n)


def _matrix_vector(n: float, p: Mapping[str, float]) -> KernelWork:
    block = WORD * n * p["n"]
    return KernelWork(2 * n * p["n"], block + WORD * (n + p["n"]), block + WORD * p["n"], WORD * n, block + WORD * n)


def _stencil(n: float, p: Mapping[str, float]) -> KernelWork:
    """A difference star of ``points`` whose rows stay in the cache: each element is read once and one is written."""
    points = p["points"]
    return KernelWork(2 * points * n, WORD * n * (points + 1), WORD * n, WORD * n, 2 * WORD * n)


def _stated_work(n: float, p: Mapping[str, float]) -> KernelWork:
    return KernelWork(p["operations"] * n, (p["read"] + p["written"]) * n, p["read"] * n, p["written"] * n, (p["read"] + p["written"]) * n)


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("copy", "y = x", _stream(0, 1, 1, 2)),
        Kind("set", "x = a", _stream(0, 0, 1)),
        Kind("scale", "x = a x", _stream(1, 1, 1, 1)),
        Kind("axpy", "y = y + a x", _stream(2, 2, 1, 2)),
        Kind("dot", "s = x . y", _stream(2, 2, 0)),
        Kind("norm", "s = x . x", _stream(2, 1, 0)),
        Kind("mdot", "dot products of VECTORS vectors with one", lambda n, p: _many(n, p, False), {"vectors": None}),
        Kind("maxpy", "y = y + sum of VECTORS multiples", lambda n, p: _many(n, p, True), {"vectors": None}),
        Kind("spmv", "sparse product: LENGTH rows of NZ entries in blocks of BLOCK x BLOCK", _sparse, {"nz": None, "block": 1}),
        Kind("sptrsv", "sparse triangular solves: LENGTH rows of NZ entries in both factors", _sparse, {"nz": None, "block": 1}),
        Kind("gemm", "matrix product: C (LENGTH x N) += A (LENGTH x K) B", _product, {"n": None, "k": None}),
        Kind("gemv", "matrix by vector: y += A (LENGTH x N) x", _matrix_vector, {"n": None}),
        Kind("ger", "update of rank one: A (LENGTH x N) += x y", _rank_one, {"n": None}),
        Kind("trsm", "dense triangular solve of order ORDER with LENGTH right-hand sides", _solve, {"order": None}),
        Kind("stencil", "difference star of POINTS points", _stencil, {"points": 5}),
        Kind("work", "stated: OPERATIONS, bytes READ and WRITTEN for each of LENGTH", _stated_work,
             {"operations": 0, "read": 0, "written": 0}),
    )
}
"""Kind of kernel by name. Every kind also takes ``over``: the bytes touched between two uses of its data, if that is more than its own."""


@cache
def kernel(text: str) -> Kernel:
    """The kernel that ``KIND`` or ``KIND:PARAMETER=VALUE,...`` names. Raises UsageError for an unknown kind or parameter, one that is
    missing, and for a value that is no number above zero (of ``work``: not below)."""
    name, _, rest = text.partition(":")
    if name not in KINDS:
        raise UsageError(f"no kernel '{name}'{nearest(name, KINDS, 20)}", code="unknown-kernel")
    kind = KINDS[name]
    given: dict[str, float] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key in given:
            raise UsageError(f"kernel '{text}': '{item}' is not one PARAMETER=VALUE", code="bad-syntax")
        if key not in kind.parameters and key != "over":
            raise UsageError(f"kernel '{text}' has no parameter '{key}'{nearest(key, [*kind.parameters, 'over'], 20)}", code="unknown-key")
        given[key] = _number(text, key, value, least=0.0 if name == "work" else None)
    for key, default in kind.parameters.items():
        if key not in given:
            if default is None:
                raise UsageError(f"kernel '{text}' lacks its parameter '{key}': {kind.title}", code="missing-key")
            given[key] = default
    over = given.pop("over", None)
    if name == "work" and not any(given.values()):
        raise UsageError(f"kernel '{text}' does nothing: it has neither operations nor bytes", code="out-of-range")
    return Kernel(kind, given, over)


def _number(text: str, key: str, value: str, least: float | None) -> float:
    try:
        found = float(value)
    except ValueError:
        raise UsageError(f"kernel '{text}': {key}={value} is not a number", code="bad-value") from None
    if not ((found > 0 if least is None else found >= least) and found <= 1e15):
        raise UsageError(f"kernel '{text}': {key}={value} is out of range (above 0, at most 1e15)", code="out-of-range")
    return found


def peak(host: Host) -> float:
    """Operations a second that a host does at most, flop/s."""
    return host.flops_per_cycle * host.clock if host.flops_per_cycle > 0 else host.flops


def lost_l2(load: float, ways: int) -> float:
    """Miss rate of a second-level cache with randomly coloured pages, ``load`` of them on the ``ways`` of a colour in the mean: Poisson, as
    for the hosts of the engine (HostSpec::misses)."""
    if load > 700:  # exp(-load) leaves the range of a double
        return 1.0
    term, below = math.exp(-load), 0.0
    for k in range(ways):
        below += term
        term *= load / (k + 1)
    return min(1.0, max(0.0, 1 - below))


def lost_shares(kept: float, host: Host) -> tuple[float, float]:
    """Shares of the data that the first and the second cache no longer have when ``kept`` bytes were touched since."""
    first = float(kept > host.l1)
    if host.l2 <= host.l1:
        return first, first
    return first, first * lost_l2(kept / host.l2 * host.l2_ways, int(host.l2_ways))


def terms(one: Kernel, n: float, host: Host) -> dict[str, float]:
    """Seconds that each part of a host needs for a pass over the length ``n``: arithmetic, l1, l2, memory.

    Products and solves with dense matrices are computed at the host's ``gemm_rate``, arithmetic and first level together, if it has one.
    """
    work = one.work(n)
    first, second = lost_shares(work.kept, host)
    known = host.gemm_rate if one.kind.name in BLOCKED else 0.0
    return {
        "arithmetic": work.operations / (known or peak(host)),
        "l1": 0.0 if known else work.inner / (2 * host.copy_l1),
        "l2": first * (work.read + work.written) / (2 * host.copy_l2),
        "memory": second * (work.read / host.read_mem + work.written * max(0.0, 1 / host.copy_mem - 1 / host.read_mem)),
    }


def seconds(one: Kernel, n: float, host: Host) -> float:
    """Seconds for a pass of a kernel over the length ``n`` on ``host``."""
    return max(terms(one, n, host).values())
