"""The kinds of experiment that a paper's study is made of: one module a kind, named in ``papers/KEY.toml``.

A module defines ``jobs(plan, store, fresh) -> list[Job]``. A job is one piece of work that finds its runs in the store or
simulates them, and returns where its result belongs.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError, nearest

if TYPE_CHECKING:
    from retrompi.papers.paper import Paper
    from retrompi.store.database import Store

__all__ = ["Done", "Job", "jobs", "merge", "names"]


@dataclass(frozen=True)
class Done:
    """What a job gave: ``result`` belongs to ``where`` ("points", "anatomy", or a dotted path in the facts).

    ``run_ids`` are the runs it rests on, ``simulated`` how many of them were made now.
    """

    where: str
    result: Any
    run_ids: tuple[int, ...] = ()
    simulated: int = 0


@dataclass(frozen=True)
class Job:
    """One piece of work; jobs with a larger ``weight`` (about seconds of work) are begun first."""

    label: str
    work: Callable[[], Done]
    weight: float = 1.0


def names() -> list[str]:
    """Every kind of experiment there is."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def jobs(kind: str, plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """The jobs of one kind for a study; UsageError for an unknown kind."""
    if kind not in names():
        raise UsageError(f"paper '{plan.key}': no experiment '{kind}'{nearest(kind, names())}", code="unknown-name")
    module = importlib.import_module(f"{__name__}.{kind}")
    found: list[Job] = module.jobs(plan, store, fresh)
    return found


def merge(facts: dict[str, Any], path: str, value: Any) -> None:
    """Puts ``value`` at a dotted path of ``facts``; a mapping joins what is already there."""
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
