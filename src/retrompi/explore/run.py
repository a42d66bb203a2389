"""The search for a question: a trace on a runtime, a platform and a placement."""

from __future__ import annotations

from dataclasses import replace

from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay

from .buffers import Buffers
from .program import ExploredProgram
from .result import ExecutionEnd, Explored
from .search import DEFAULT, Progress, SearchLimits, explore_program

__all__ = ["explore", "force_execution", "replay"]

MOST_REPLAYED = 20
"""Ends whose shortest execution the engine follows."""


def explore(
    question: Question | Resolved, limits: SearchLimits = DEFAULT, progress: Progress | None = None, *, confirm: bool = True
) -> Explored:
    """Visit every execution of the question's trace that its program can distinguish, under the buffers of its runtime.

    ``confirm``: the engine then follows the shortest execution to each end (`ExecutionEnd.replayed`). Raises InputError for a trace that
    the search cannot take, UsageError for a wrong name.
    """
    asked = Resolved.of(question)
    if asked.apart:
        return Explored(asked.question.model, refused=asked.apart)
    found, library = simulate.library_steps(asked)
    buffers = Buffers.of(found.rows)
    program = ExploredProgram.of(asked.trace, buffers, library)
    result = explore_program(program, buffers, limits, progress)
    result.model = asked.question.model
    if confirm:
        for end in result.ends[:MOST_REPLAYED]:
            end.replayed = replay(asked, end)
    return result


def force_execution(question: Question, end: ExecutionEnd) -> Question:
    """The question whose run follows the shortest execution to an end."""
    workload = question.workload
    assert isinstance(workload, Replay)
    trace = workload.trace.with_outcomes(end.matches, end.completions)
    return question.with_(workload=replace(workload, trace=trace), order=tuple(end.order), wildcards="recorded")


def replay(asked: Resolved, end: ExecutionEnd) -> str:
    """How the engine ends when it follows the shortest execution to an end."""
    return simulate.run(force_execution(asked.question, end)).outcome
