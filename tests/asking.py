"""Running a trace in one line: options are fields of a question, of what is beside it, of what is observed, or of its program."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.result import Result
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Beside, Question, Replay

_BESIDE, _OBSERVED = ({f.name for f in fields(c)} for c in (Beside, Observe))


def ask(model: str, platform: str, trace: Any, mode: Any = "distributed", **options: Any) -> Result:
    """Replays ``trace``; ``sets`` are the overrides."""
    beside, observed = ({k: options.pop(k) for k in names & options.keys()} for names in (_BESIDE, _OBSERVED))
    workload = Replay(trace, program=options.pop("program", Program()))
    question = Question(model, platform, workload, mode, options.pop("sets", ()), beside=Beside(**beside), **options)
    return simulate.run(question, Observe(**observed))
