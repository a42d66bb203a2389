"""The overrides of a study's points that their runs use.

An axis such as ``wmpi.pool`` applies to runs on one machine only. A point whose run does not use an override is run without it and has
the value ``-``; the study reports this before anything runs, and rejects an axis that no point uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.sim.resolved import place
from retrompi.spec import registry
from retrompi.spec.compiled.compile import compile_runtime, unused_by_start, unused_overrides
from retrompi.spec.declare.calls import Calls
from retrompi.spec.layout import Layout
from retrompi.spec.registry import resolve
from retrompi.studies.define.scenario import Scenario, trace_of
from retrompi.traces.calls import calls_of

__all__ = ["Applies", "Idle", "refuse_idle"]

Idle = dict[str, str]
"""Key of an override, as written -> why the run does not use it."""


@dataclass
class Applies:
    """Finds the overrides that runs do not use, and counts the points of each: points with the same structure are examined once."""

    points: int = 0
    idle: Counter[str] = field(default_factory=Counter)
    given: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    known: dict[Any, Idle] = field(default_factory=dict, repr=False)
    _calls: dict[Any, tuple[Calls, int]] = field(default_factory=dict, repr=False)

    def count(self, scenario: Scenario, times: int = 1) -> None:
        """Counts a point, or several that differ in their seed."""
        found = self.of(scenario)
        self.points += times
        self.given.update(dict.fromkeys(scenario.sets, times))
        self.idle.update(dict.fromkeys(found, times))
        for key, line in found.items():
            self.reasons.setdefault(key, line)

    def of(self, scenario: Scenario) -> Idle:
        """The overrides that a scenario's run does not use; none for a scenario without a run."""
        if not scenario.sets:
            return {}
        try:
            return self._of(scenario)
        except RetrompiError:
            return {}

    def lines(self) -> list[str]:
        """A line for each override that some of the points use and others do not."""
        return [
            f"{key} applies to {self.given[key] - n} of {self.points} points: {self.reasons[key]}"
            for key, n in self.idle.items() if n < self.given[key]
        ]

    def nowhere(self) -> Idle:
        """The overrides that no point uses."""
        return {key: self.reasons[key] for key, n in self.idle.items() if n == self.given[key]}

    def _of(self, scenario: Scenario) -> Idle:
        program = (scenario.trace, scenario.np, scenario.generator, repr(scenario.args), scenario.program)
        structure = (scenario.model, scenario.platform, scenario.mode, program, bool(scenario.start), *_beside(scenario),
                     bool(scenario.jobs), tuple((k, _kind(v)) for k, v in scenario.sets.items()))
        if structure not in self.known:
            self.known[structure] = self._find_idle(scenario, program)
        return self.known[structure]

    def _find_idle(self, scenario: Scenario, program: Any) -> Idle:
        values, platform = resolve(scenario.model, scenario.platform, scenario.sets)
        cls = registry.model(scenario.model)
        if scenario.start:
            layout = Layout(platform, place(platform, scenario.mode, scenario.start["ranks"]))
            return _as_written(scenario.sets, unused_by_start(cls, values, layout))
        calls, ranks = self._program(scenario, program)
        found = compile_runtime(cls, values, Layout(platform, place(platform, scenario.mode, ranks)), calls)
        others = []
        for job in scenario.jobs:  # their use of the platform counts
            spec = job.spec()
            theirs, _ = resolve(spec.model, scenario.platform, spec.alone())
            layout = Layout(platform, place(platform, spec.mode, spec.trace.ranks))
            others.append(compile_runtime(registry.model(spec.model), theirs, layout, calls_of(spec.trace)))
        return _as_written(scenario.sets, unused_overrides(cls, values, found, calls, others))

    def _program(self, scenario: Scenario, program: Any) -> tuple[Calls, int]:
        key = (program, *_beside(scenario))
        if key not in self._calls:
            once = scenario
            if scenario.trace is None and "reps" in scenario.args:
                once = replace(scenario, args={**scenario.args, "reps": 1})  # the calls made do not depend on the repetitions
            trace = trace_of(once)
            self._calls[key] = calls_of(trace, scenario.question()), trace.ranks
        return self._calls[key]


def _beside(scenario: Scenario) -> tuple[bool, bool]:
    return bool(scenario.setting("failures")), bool(scenario.setting("traffic"))


def _kind(text: str) -> str:
    """The part of a value that can decide what a run uses: a word itself; of a number, whether it is zero."""
    number = re.match(r"[+-]?(\d*\.?\d+)", text)
    return text if number is None else "0" if float(number[1]) == 0 else "#"


def _as_written(sets: Mapping[str, str], lines: Mapping[str, str]) -> Idle:
    """The lines by the keys of ``sets`` as written: ``pool`` or ``wmpi.pool`` for ``wmpi.pool``, ``platform.host.KEY`` for every host's."""
    found = {}
    for key in sets:
        name = key if key.startswith("platform.") else key.rpartition(".")[2]
        for full, line in lines.items():
            if full == name or (not full.startswith("platform.") and full.rpartition(".")[2] == name):
                found[key] = line
    return found


def refuse_idle(*scenarios: Scenario) -> None:
    """Raises UsageError with the reason for an override that none of the scenarios' runs uses."""
    found = Applies()
    for scenario in scenarios:
        found.count(scenario)
    for line in found.nowhere().values():
        raise UsageError(line, code="idle-override")
