"""The kinds of experiment in a paper's study: one module for each kind, named in ``paper.toml``.

A module defines ``jobs(plan, store, fresh) -> list[Job]``. A job is a unit of work that finds its runs in the store or
simulates them, and returns its result with the destination. Some define ``looks(model, platform) -> list[Look]``: the runs by which a model
is measured for its fit.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError, nearest
from retrompi.papers.paper import kinds_of_experiment

if TYPE_CHECKING:
    from retrompi.papers.paper import Paper
    from retrompi.spec.question import Question
    from retrompi.store.database import Store

__all__ = ["Done", "Job", "Look", "Seen", "jobs", "look", "merge", "names"]

Seen = tuple[list[dict[str, Any]], dict[str, Any]]
"""Points (rows model, platform, mode, size_B, time_us) and facts, as `retrompi.papers.verdicts.judge` takes them."""


@dataclass(frozen=True)
class Done:
    """The result of a job, to be put at ``where`` ("points", "anatomy", or a dotted path in the facts).

    ``run_ids`` are the runs it is based on, ``simulated`` how many of them were simulated now.
    """

    where: str
    result: Any
    run_ids: tuple[int, ...] = ()
    simulated: int = 0


@dataclass(frozen=True)
class Job:
    """A unit of work; jobs with a larger ``weight`` (approximate seconds of work) are started first."""

    label: str
    work: Callable[[], Done]
    weight: float = 1.0


@dataclass(frozen=True)
class Look:
    """One run that a model is measured by: its name, its question without overrides, and what a run of such a question shows."""

    name: str
    question: Question
    seen: Callable[[Question], Seen]

    def with_(self, sets: Sequence[str]) -> Seen:
        """What it shows with these overrides; those that the run does not use change nothing. Raises the errors of a simulation."""
        return self.seen(self.question.with_(overrides=[*(f"{k}={v}" for k, v in self.question.sets.items()), *sets]))


def look(looks: Sequence[Look], sets: Sequence[str]) -> Seen:
    """What all of them show together."""
    points: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    for one in looks:
        more, told = one.with_(sets)
        points += more
        for key, value in told.items():
            merge(facts, key, value)
    return points, facts


def names() -> list[str]:
    """Every available kind of experiment."""
    return kinds_of_experiment()


def jobs(kind: str, plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """The jobs of one kind for a study; UsageError for an unknown kind."""
    if kind not in names():
        raise UsageError(f"paper '{plan.key}': no experiment '{kind}'{nearest(kind, names())}", code="unknown-name")
    module = importlib.import_module(f"{__name__}.{kind}")
    found: list[Job] = module.jobs(plan, store, fresh)
    return found


def merge(facts: dict[str, Any], path: str, value: Any) -> None:
    """Puts ``value`` at a dotted path of ``facts``; a mapping is merged with an existing one."""
    *heads, last = path.split(".")
    here = facts
    for head in heads:
        here = here.setdefault(head, {})
    old = here.get(last)
    if isinstance(old, dict) and isinstance(value, Mapping):
        for key, inner in value.items():
            merge(old, key, inner) if "." not in key else old.update({key: inner})
    else:
        here[last] = dict(value) if isinstance(value, Mapping) else value
