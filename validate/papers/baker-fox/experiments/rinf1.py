"""The Rinf1 loops on every host of the study's platform, timed with its clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from retrompi.papers.experiments import Done, Job
from retrompi.papers.fit.kernel_rates import KernelComparison, compare
from retrompi.papers.statements.claims import find
from retrompi.papers.statements.draw import apply_draw
from retrompi.spec import registry
from retrompi.spec.machine import kernels as loop_data
from retrompi.spec.machine import roofline
from retrompi.spec.question import Benchmark, Question
from retrompi.store.lookup import answer

from . import _rinf1 as benchmark

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

FACTS = {"rinf1": "loops of one processor"}
_LINE = 32
"""Bytes of a cache line of the Pentiums, for elements that are not next to each other."""


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Option ``platform`` (the study's first); the facts are ``rinf1.HOST.KERNEL.min`` and ``max``, ``rinf1.peak``, ``rinf1.ratio``."""
    platform = str(plan.options("rinf1").get("platform", plan.platform))
    asked = Question(plan.models[0], platform, Benchmark("rinf1"))
    hosts = [h.name for h in registry.platform(platform).hosts]

    def loops() -> Done:
        got = {h: answer(store, apply_draw(plan.draw, asked.with_(placement=h)), fresh=fresh) for h in hosts}
        runs = tuple(g.run_id for g in got.values())
        return Done("rinf1", benchmark.facts({h: g.rows for h, g in got.items()}), runs, sum(not g.found for g in got.values()))

    return [Job("Rinf1", partial(loops), 0.5)]


def kernels() -> Iterator[KernelComparison]:
    """The fastest and the slowest of all vector lengths, as the paper's table has them."""
    room = registry.platform("nt-pair")
    for host in room.hosts:
        for which in loop_data.loops().values():
            claim = find(f"{which.claim}{host.name[0].upper()}")
            if which.shape != "vector" or not claim.low or not claim.high:
                continue
            one, lengths = _of_loop(which), loop_data.lengths(which)
            by_rate = sorted(lengths, key=lambda n, one=one, host=host: roofline.seconds(one, n, host) / n)  # type: ignore[misc]
            for rate, n in ((claim.high, by_rate[0]), (claim.low, by_rate[-1])):
                yield compare(claim.id, "Rinf1", which.key, one, n, host, which.counted * n / (rate * 1e6))


def _of_loop(which: loop_data.Loop) -> roofline.Kernel:
    """A vector loop of Rinf1 as operations and bytes: loads and stores, and a cache line for each element that is not next to the last."""
    moved = [(s, s.size if s.stride * s.size < _LINE and not s.random else _LINE) for s in which.streams]

    def work(n: float, _: Mapping[str, float]) -> roofline.KernelWork:
        inner = n * sum(s.size * (2 if s.use == "update" else 1) for s, _ in moved)
        read = n * sum(size for s, size in moved if s.use != "write")
        written = n * sum(size for s, size in moved if s.use != "read")
        return roofline.KernelWork(which.counted * n, inner, read, written, n * sum(size for _, size in moved))

    return roofline.Kernel(roofline.Kind(which.key, which.title, work), {})
