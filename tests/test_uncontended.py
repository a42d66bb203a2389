"""Whatever the law of contention: what finds its links free takes the same picoseconds (a sample of benchmarks/uncontended.py)."""

from __future__ import annotations

import random

from cases import for_each
from scripts import script

golden = script("benchmarks/uncontended.py")


def test_the_set_is_large_and_spans_models_platforms_and_networks() -> None:
    alone = [run for run, times in golden.read() if times.contended == 0]
    assert len(alone) >= 1440
    assert len({r.model for r in alone}) >= 20
    assert len({r.platform for r in alone}) >= 10
    assert {r.network for r in alone} == {*golden.NETWORKS}


@for_each("network", golden.NETWORKS)
def test_runs_without_contention_take_the_picoseconds_they_took(network: str) -> None:
    of = [(run, times) for run, times in golden.read() if run.network == network]
    alone, wrong, _ = golden.differences(random.Random(network).sample(of, 40))
    assert not wrong, "the wire has changed; if a model or a platform has: python benchmarks/uncontended.py write"
    assert alone >= 10
