"""Whatever the law of contention: what finds its links free takes the same picoseconds (a sample of benchmarks/uncontended.py)."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

from cases import for_each


def _golden() -> Any:
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "uncontended.py"
    spec = importlib.util.spec_from_file_location("uncontended", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["uncontended"] = module
    spec.loader.exec_module(module)
    return module


golden = _golden()


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
