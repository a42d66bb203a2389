"""Kernels of computation judged: what the roofline of a host's caches and memory gives beside what was measured.

PETSc's kernels on seven machines (`validate/reference/kernels.csv`), and what the experiments of papers have measured, such as loops or
a program on one process: a module of a paper's ``experiments`` may define ``kernels() -> Iterable[Judged]``. Nothing is fitted to any.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from retrompi.base.paths import paper_dirs, reference_dir
from retrompi.papers import experiments
from retrompi.papers.statements import own_code
from retrompi.spec import registry
from retrompi.spec.host import Host
from retrompi.spec.machine import roofline

__all__ = ["WITHIN", "KernelComparison", "compare", "judge_kernels", "spread", "totals"]

WITHIN = 1.25
"""The factor within which a rate agrees: 25 %."""


@dataclass(frozen=True)
class KernelComparison:
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
                "computed_s": self.computed, "ratio": self.ratio, "slowest": self.slowest, "agrees": self.agrees}


def judge_kernels() -> list[KernelComparison]:
    """Every measured kernel with what its host's caches and memory give, in the order of the data."""
    return [*_petsc(), *(row for folder in paper_dirs() for kind in own_code.names(folder, "experiments")
                         for row in getattr(experiments.module(kind, folder), "kernels", tuple)())]


def totals(rows: Iterable[KernelComparison]) -> dict[tuple[str, str], tuple[int, int]]:
    """(set, host) -> how many agree, and of how many."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        good, all_ = found.get((row.of, row.host), (0, 0))
        found[row.of, row.host] = good + row.agrees, all_ + 1
    return found


def spread(rows: Iterable[KernelComparison]) -> float:
    """What the rule misses, as the logarithm of a factor: the root mean square over the rows of a set on a host, in the median over those
    of three rows or more. The discrepancy of computation by kernel (`retrompi.studies.draws.uncertainty.COMPUTATION_SCALE`)."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row.of, row.host), []).append(math.log(row.ratio) ** 2)
    return median(math.sqrt(fmean(squares)) for squares in found.values() if len(squares) >= 3)


def compare(id: str, of: str, name: str, one: roofline.Kernel, n: float, host: Host, seconds: float) -> KernelComparison:
    """A pass of a kernel at length ``n`` that took ``seconds``, beside the roofline of the host."""
    terms = roofline.terms(one, n, host)
    return KernelComparison(id, of, host.name, name, n, seconds, max(terms.values()), max(terms, key=terms.__getitem__))


def _petsc() -> Iterator[KernelComparison]:
    with (reference_dir() / "kernels.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            one, n = roofline.kernel(row["kernel"]), float(row["length"])
            value = float(row["value"])
            taken = value / int(row["calls"]) if row["unit"] == "s" else one.work(n).operations / (value * 1e6)
            host = registry.platform(row["host"]).hosts[0]
            name = row["kernel"].partition(",over")[0].partition(":over")[0]
            yield replace(compare(row["id"], f"PETSc {row['matrix']}", name, one, n, host, taken), host=row["host"])
