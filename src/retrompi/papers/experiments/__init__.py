"""The kinds of experiment in a paper's study: one module for each kind, named in ``paper.toml``.

Those here serve any paper; what one paper alone needs is in its folder (``experiments/KIND.py``, `retrompi.papers.statements.own_code`). A
module defines ``jobs(plan, store, fresh) -> list[Job]``. A job is a unit of work that finds its runs in the store or simulates them, and
returns its result with the destination. It may also define

- ``looks(model, platform) -> list[Look]``: the runs by which a model is measured for its fit;
- ``kernels() -> Iterable[KernelComparison]``: kernels that were measured, beside the roofline (`retrompi.papers.fit.kernel_rates`);
- ``SLOW = True``: it takes longer than all others together, so only some draws of the parameters have it;
- ``JUDGED = False``: no statement is judged by it, so no draw has it;
- ``FACTS``: first word of the path of a fact -> what a statement about it is about (`MESSAGES`: what one about a curve is).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError, nearest
from retrompi.base.paths import paper_dirs
from retrompi.papers.statements import own_code
from retrompi.papers.statements.paper import kinds_of_experiment

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from retrompi.papers.statements.paper import Paper
    from retrompi.spec.question import Question
    from retrompi.store.database import Store

__all__ = ["MESSAGES", "Done", "Job", "Look", "Seen", "jobs", "look", "looks", "merge", "module"]

MESSAGES = "times and rates of messages"

Seen = tuple[list[dict[str, Any]], dict[str, Any]]
"""Points (rows model, platform, mode, size_B, time_us) and facts, as `retrompi.papers.judging.verdicts.judge` takes them."""


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
        """The observations with these overrides; those that the run does not use change nothing. Raises the errors of a simulation."""
        return self.seen(self.question.with_(overrides=[*(f"{k}={v}" for k, v in self.question.sets.items()), *sets]))


def look(looks: Sequence[Look], sets: Sequence[str]) -> Seen:
    """The observations of all of them together."""
    points: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    for one in looks:
        more, told = one.with_(sets)
        points += more
        for key, value in told.items():
            merge(facts, key, value)
    return points, facts


def module(kind: str, folder: Path) -> ModuleType:
    """The module of a kind of experiment, of the paper in ``folder`` or of this package. Raises UsageError for an unknown one."""
    if kind in own_code.names(folder, "experiments"):
        return own_code.module(folder, "experiments", kind)
    if kind not in kinds_of_experiment():
        raise UsageError(f"paper '{folder.name}': no experiment '{kind}'{nearest(kind, kinds_of_experiment(folder))}", code="unknown-name")
    return importlib.import_module(f"{__name__}.{kind}")


def jobs(kind: str, plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """The jobs of one kind for a study; UsageError for an unknown kind."""
    found: list[Job] = module(kind, plan.folder).jobs(plan, store, fresh)
    return found


def looks(kind: str, model: str, platform: str) -> list[Look]:
    """The runs by which an experiment measures a model: one of this package, or the first of that name in a paper's folder.

    Raises LookupError when there is none that measures a model.
    """
    if kind in kinds_of_experiment():
        found = importlib.import_module(f"{__name__}.{kind}")
    else:
        folder = next((f for f in paper_dirs() if kind in own_code.names(f, "experiments")), None)
        if folder is None:
            raise LookupError(kind)
        found = own_code.module(folder, "experiments", kind)
    if not hasattr(found, "looks"):
        raise LookupError(kind)
    measured: list[Look] = found.looks(model, platform)
    return measured


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
