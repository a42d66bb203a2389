"""Scenarios that differ in their seed only, resolved once: most of what a small run costs does not depend on the seed."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from retrompi.sim.resolved import Resolved
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.question import ScenarioRef, canonical_parts, hash_of_parts
from retrompi.store.identity import specification
from retrompi.studies.define.scenario import Scenario

if TYPE_CHECKING:
    from retrompi.store.identity import RunSpec

__all__ = ["Alike"]

KEPT = 16
"""Scenarios kept: a study whose last axis is the seed needs one, one with the seed before a short axis a few."""


class Alike:
    """Resolves scenarios one after another. It is made anew every few hundred of them at most, since it does not look at the files
    of models and platforms again."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Resolved, dict[str, str]]] = {}

    def resolve(self, scenario: Scenario, bounds: Bounds | None = None) -> Resolved:
        """The question of a scenario, resolved. Raises the errors of `Resolved.of`."""
        key = _key(scenario)
        known = self._known.get(key) if key is not None else None
        if known is not None:
            first, parts = known
            seed = scenario.setting("seed")
            asked = ScenarioRef(scenario.name, hash_of_parts({**parts, "seed": str(seed)}))
            return first.with_seed(seed, asked, bounds or Bounds())
        question = scenario.question()
        found = Resolved.of(question.with_(bounds=bounds) if bounds is not None else question)
        if key is not None:
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = found, canonical_parts(scenario.facts())
        return found

    def specification(self, scenario: Scenario) -> RunSpec:
        """The specification of a scenario's run."""
        return specification(self.resolve(scenario))


def _key(scenario: Scenario) -> Any:
    """All of a scenario but its seed and descriptions, as a key; None for one whose parts are not resolved together."""
    if scenario.jobs:
        return None
    # The arguments as text: 1, 1.0 and True are equal, and not the same argument.
    settings = tuple(sorted((key, value) for key, value in scenario.settings.items() if key != "seed"))
    return (settings, *[getattr(scenario, name) for name in _PLAIN], *[tuple(getattr(scenario, name).items()) for name in _MAPPINGS],
            repr(scenario.args))


_MAPPINGS = ("sets", "drawn", "start")
_NOT_LOOKED_AT = ("settings", "given", "jobs", "path", "title", "summary", "reproduces", "claims", "expect", "args", *_MAPPINGS)
_PLAIN = tuple(f.name for f in fields(Scenario) if f.name not in _NOT_LOOKED_AT)
