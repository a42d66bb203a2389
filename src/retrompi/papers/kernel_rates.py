"""Kernels of computation judged: what the roofline of a host's caches and memory gives beside what was measured.

PETSc's kernels on seven machines (`validate/reference/kernels.csv`), the vector loops of Rinf1 (Baker & Fox), and LU of NAS (Lefevre &
Westrelin). Nothing is fitted to any of them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from retrompi.base.paths import reference_dir
from retrompi.papers import nas
from retrompi.papers.claims import find
from retrompi.spec import kernels, registry, roofline
from retrompi.spec.host import Host

__all__ = ["WITHIN", "Judged", "judged", "of_loop", "spread", "totals"]

WITHIN = 1.25
"""The factor within which a rate agrees: 25 %."""
_LINE = 32
"""Bytes of a cache line of the Pentiums, for elements that are not next to each other."""


@dataclass(frozen=True)
class Judged:
    """A measured kernel: ``seconds`` a pass, and ``computed`` beside it; ``slowest``: what the roofline says is the slowest part."""

    id: str
    of: str
    host: str
    kernel: str
    length: float
    seconds: float
    computed: float
    slowest: str

    @property
    def ratio(self) -> float:
        """Computed over measured time."""
        return self.computed / self.seconds

    @property
    def agrees(self) -> bool:
        """Whether it is within `WITHIN`."""
        return 1 / WITHIN <= self.ratio <= WITHIN

    def row(self) -> dict[str, Any]:
        """For tables."""
        return {"id": self.id, "of": self.of, "host": self.host, "kernel": self.kernel, "length": self.length, "measured_s": self.seconds,
                "computed_s": self.computed, "ratio": self.ratio, "slowest": self.slowest, "agrees": self.agrees}  # fmt: skip


def judged() -> list[Judged]:
    """Every measured kernel with what its host's caches and memory give, in the order of the data."""
    return [*_petsc(), *_rinf1(), *_nas()]


def totals(rows: Iterable[Judged]) -> dict[tuple[str, str], tuple[int, int]]:
    """(set, host) -> how many agree, and of how many."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        good, all_ = found.get((row.of, row.host), (0, 0))
        found[row.of, row.host] = good + row.agrees, all_ + 1
    return found


def spread(rows: Iterable[Judged]) -> float:
    """What the rule misses, as the logarithm of a factor: the root mean square over the rows of a set on a host, in the median over those
    of three rows or more. The discrepancy of computation by kernel (`retrompi.studies.uncertainty.COMPUTATION_SCALE`)."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row.of, row.host), []).append(math.log(row.ratio) ** 2)
    return median(math.sqrt(fmean(squares)) for squares in found.values() if len(squares) >= 3)


def _judged(id: str, of: str, name: str, one: roofline.Kernel, n: float, host: Host, seconds: float) -> Judged:
    terms = roofline.terms(one, n, host)
    return Judged(id, of, host.name, name, n, seconds, max(terms.values()), max(terms, key=terms.__getitem__))


def _petsc() -> Iterator[Judged]:
    with (reference_dir() / "kernels.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            one, n = roofline.kernel(row["kernel"]), float(row["length"])
            value = float(row["value"])
            taken = value / int(row["calls"]) if row["unit"] == "s" else one.work(n).operations / (value * 1e6)
            host = registry.platform(row["host"]).hosts[0]
            name = row["kernel"].partition(",over")[0].partition(":over")[0]
            yield replace(_judged(row["id"], f"PETSc {row['matrix']}", name, one, n, host, taken), host=row["host"])


def of_loop(which: kernels.Loop) -> roofline.Kernel:
    """A vector loop of Rinf1 as operations and bytes: loads and stores, and a cache line for each element that is not next to the last."""
    moved = [(s, s.size if s.stride * s.size < _LINE and not s.random else _LINE) for s in which.streams]

    def work(n: float, _: Mapping[str, float]) -> roofline.Work:
        inner = n * sum(s.size * (2 if s.use == "update" else 1) for s, _ in moved)
        read = n * sum(size for s, size in moved if s.use != "write")
        written = n * sum(size for s, size in moved if s.use != "read")
        return roofline.Work(which.counted * n, inner, read, written, n * sum(size for _, size in moved))

    return roofline.Kernel(roofline.Kind(which.key, which.title, work), {})


def _rinf1() -> Iterator[Judged]:
    """The fastest and the slowest of all vector lengths, as the paper's table has them."""
    room = registry.platform("nt-pair")
    for host in room.hosts:
        for which in kernels.loops().values():
            claim = find(f"{which.claim}{host.name[0].upper()}")
            if which.shape != "vector" or not claim.low or not claim.high:
                continue
            one, lengths = of_loop(which), kernels.lengths(which)
            by_rate = sorted(lengths, key=lambda n, one=one, host=host: roofline.seconds(one, n, host) / n)  # type: ignore[misc]
            for rate, n in ((claim.high, by_rate[0]), (claim.low, by_rate[-1])):
                yield _judged(claim.id, "Rinf1", which.key, one, n, host, which.counted * n / (rate * 1e6))


def _nas() -> Iterator[Judged]:
    """LU on one process: the words of its loops at the memory's rates, its operations at what a P6 does in cache (validate/nas.toml)."""
    platform = "myrinet-piii"
    for cell, claim in nas.published().items():
        arithmetic = nas.arithmetic_seconds(cell.program, platform)
        if cell.processes == 1 and arithmetic is not None and claim.low is not None:
            terms = {"arithmetic": arithmetic, "memory": nas.memory_seconds(cell.program, platform)}
            yield Judged(claim.id, "NAS", platform, cell.program, 1, claim.low, max(terms.values()), max(terms, key=terms.__getitem__))
