"""Samples for the coarser levels of fidelity: each pair kind of a run is sampled once per process, and once per store.

`Samples` receives the function that simulates, so that the simulation itself can request the samples it needs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from retrompi.sim import sampling
from retrompi.sim.fidelity import LogGP, Pair, asks_from, classes_of, fit, host_kind, pairs_of
from retrompi.sim.fitted import FittedModel
from retrompi.sim.sampling import NotSampled, Sample
from retrompi.spec.compiled.compile import compile_runtime
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.layout import Layout
from retrompi.spec.question import Beside, Experiment, Replay, ScenarioRef

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.sim.resolved import Resolved
    from retrompi.sim.result import Result

__all__ = ["SAMPLE", "SampleStore", "Samples"]

SAMPLE = Experiment("sample", "sample of a pair", "null")

_KNOWN: dict[str, Sample] = {}
_LOCKS: dict[str, threading.Lock] = {}
_GUARD = threading.Lock()


class SampleStore(Protocol):
    """Persistent storage of samples: a store."""

    def has(self, asked: Resolved) -> bool:
        """Whether this sample is stored already."""

    def facts(self, asked: Resolved, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The stored sample, or else the result of ``measure``, which is then stored."""


class Samples:
    """Samples of pairs of ranks. ``run`` simulates a resolved question at fidelity ``mechanism``."""

    def __init__(self, run: Callable[[Resolved], Result], shelf: SampleStore | None = None) -> None:
        self.run, self.shelf = run, shelf

    def of(self, asked: Resolved, pair: Pair) -> Sample:
        """The sample of a pair kind: that of a fitted model, or else from this process, from the store, or measured now."""
        if issubclass(asked.model, FittedModel):
            return asked.model.sample(asked.platform, pair.hosts)
        at = asked.with_fields(
            workload=SAMPLE, placement=pair.hosts, cores=pair.hosts.cores, fidelity="mechanism", beside=Beside(), start_up=False,
            limit_s=None, wildcards="recorded", idle_overrides=True, asked=ScenarioRef(),
        )
        with _GUARD:
            lock = _LOCKS.setdefault(at.key, threading.Lock())
        with lock:
            if at.key not in _KNOWN or (self.shelf is not None and not self.shelf.has(at)):

                def sample_row() -> dict[str, Any]:
                    return (_KNOWN.get(at.key) or self._measure(at, pair)).as_dict()

                _KNOWN[at.key] = Sample.from_dict(sample_row() if self.shelf is None else self.shelf.facts(at, sample_row))
            return _KNOWN[at.key]

    def prepare(self, asked: Resolved) -> None:
        """Measures or loads every sample that a run at a level below ``mechanism`` needs."""
        for pair in pairs_of(classes_of(asked.placement, asked.platform), asked.placement, asked.platform):
            self.of(asked, pair)

    def loggp(self, asked: Resolved) -> list[LogGP]:
        """The LogGP parameters of a model from the first rank to the second."""
        pair = pairs_of(classes_of(asked.placement, asked.platform), asked.placement, asked.platform)[0]
        sample = self.of(asked, pair)
        compiled = compile_runtime(asked.model, asked.values.fresh(), Layout(asked.platform, asked.placement)).rows
        return fit(sample.there, asks_from(compiled["protocol_same" if pair.same else "protocol_remote"]))

    def _measure(self, at: Resolved, pair: Pair) -> Sample:
        def run(trace: Trace, sides: Sequence[int]) -> Result:
            # An override may be of a host that this pair does not use.
            cores = [pair.hosts.cores[s] for s in sides] if pair.hosts.cores else ()
            result = self.run(at.with_fields(workload=Replay(trace), placement=tuple(pair.hosts[s] for s in sides), cores=cores))
            if result.outcome == Outcome.LIMIT:  # says nothing about the pair
                raise NotSampled(result.outcome, result.detail)
            return result

        compiled = compile_runtime(at.model, at.values, Layout(at.platform, pair.hosts)).rows
        where = "same" if pair.same else "remote"
        hops, protocol = compiled[where], compiled[f"protocol_{where}"]
        a, b = (at.platform.hosts[h] for h in pair.hosts)
        processors = int(a.cores) // 2 if pair.same else int(min(a.cores, b.cores))
        if pair.hosts.cores:  # further pairs on other cores would be another pair kind
            processors = 1
        return sampling.measure(
            run,
            sampling.sizes_for(hops, protocol),
            pairs=max(1, min(processors, sampling.MOST_PAIRS)),
            eager_below=asks_from(protocol),
            connects=any(h.get("connect", 0) > 0 for h in hops),
            alike=host_kind(at.platform, (pair.hosts[0], -1)) == host_kind(at.platform, (pair.hosts[1], -1)),
        )
