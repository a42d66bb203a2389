"""Periods of a run that only repeat: left out by the engine (`engine/mpi/recurrence.hpp`), and checked here against runs in full.

Leaving them out changes no result. Three things keep that true beside the engine's own conditions:

- a run that was shortened and does not end cleanly (a deadlock, messages that nobody received), or in which the period after those
  that were left out did not repeat them, is simulated in full, and that is the result;
- of those that end cleanly a share is simulated in full as well and compared in every field. The share is such that these checks cost about
  a twentieth of the time that the shortened runs take;
- a difference is a defect of retrompi (exit code 3), with the fields that differ.

The environment variable ``RETROMPI_REPETITIONS`` chooses: ``on`` (the default), ``check`` (every shortened run is compared) or ``off``.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any

from retrompi.base.errors import EngineError, UsageError, nearest
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import Totals, outputs

__all__ = ["CHECK_SHARE", "VARIABLE", "RepetitionDefect", "Repetitions", "differences", "from_environment", "simulate"]

VARIABLE = "RETROMPI_REPETITIONS"
CHECK_SHARE = 0.05
"""Events simulated to check shortened runs, as a share of the events that the shortened runs simulate."""

EFFORT = frozenset({"spent", "state_incomplete", "unconfirmed", *(name for name, o in outputs(Totals).items() if o.effort)})
"""What a run reports of its own effort, which is meant to differ."""
REPORT = ("detail", "diagnosis", "leftovers", "waits")
"""What is reported of a run that did not end cleanly names calls and when they were made; it is taken from the run in full."""


class Repetitions(IntEnum):
    """The treatment of periods that only repeat; the value is what the engine's configuration holds."""

    OFF = 0
    ON = 1
    CHECK = 2


class RepetitionDefect(EngineError):
    """A shortened run differs from the same run in full (exit 3)."""

    code = "repetition-defect"


def from_environment(environment: Mapping[str, str] = os.environ) -> Repetitions:
    """The choice of the environment. Raises UsageError for a word that is none."""
    word = environment.get(VARIABLE, "on")
    try:
        return Repetitions[word.upper()]
    except KeyError:
        raise UsageError(f"{VARIABLE}={word}: no such choice{nearest(word, [r.name.lower() for r in Repetitions])}") from None


def simulate(config: Mapping[str, Any], traces: Sequence[Any]) -> dict[str, Any]:
    """The engine's answer for one configuration, whose ``repetitions`` is a `Repetitions`; ``traces`` are those of all its jobs.

    Raises RepetitionDefect where a shortened run was checked and differs; otherwise what ``_engine.simulate`` raises.
    """
    from retrompi import _engine

    choice = Repetitions(config.get("repetitions", Repetitions.OFF))
    began = time.monotonic()
    answer: dict[str, Any] = _engine.simulate({**config, "repetitions": int(choice is not Repetitions.OFF)}, traces[0], traces[1:])
    if choice is Repetitions.CHECK and answer["state_incomplete"]:
        raise RepetitionDefect("a state that came back took another course than before: a defect of retrompi, please report it")
    if not answer["events_left_out"] or answer["outcome"] == Outcome.LIMIT:  # in full it would be stopped sooner
        return answer
    clean = answer["outcome"] == Outcome.COMPLETED and not answer["leftovers"] and not answer["unconfirmed"]
    bound = config.get("wall_limit", 0.0)
    if clean and choice is Repetitions.ON and (bound or not _is_checked(answer)):
        return answer
    rest = {"wall_limit": max(bound - (time.monotonic() - began), 1e-3)} if bound else {}
    in_full: dict[str, Any] = _engine.simulate({**config, **rest, "repetitions": int(Repetitions.OFF)}, traces[0], traces[1:])
    if answer["unconfirmed"] or (not clean and choice is Repetitions.ON):
        return in_full
    if in_full["outcome"] == Outcome.LIMIT:
        return answer
    if fields := differences(answer, in_full, () if clean else REPORT):
        raise RepetitionDefect(
            f"a run with repetitions left out differs from the same run in full in {', '.join(fields)}: a defect of retrompi, please "
            f"report it with the command; {VARIABLE}=off simulates in full"
        )
    return in_full | {field: answer[field] for field in EFFORT & answer.keys()}


def differences(answer: Mapping[str, Any], in_full: Mapping[str, Any], but: Collection[str] = ()) -> list[str]:
    """The fields of two answers of the engine, ``but`` these, that differ, ``field (value, in full value)`` where that is short."""
    found = []
    for field in sorted((answer.keys() | in_full.keys()) - EFFORT - set(but)):
        one, other = answer.get(field), in_full.get(field)
        if one != other:
            text = f"{field} ({one}, in full {other})"
            found.append(text if len(text) <= 80 else field)
    return found


def _is_checked(answer: Mapping[str, Any]) -> bool:
    """Whether this one is checked. Not from the run's seed: the same run should not always be the one that is checked."""
    in_full = answer["events"] + answer["events_left_out"]
    return bool(random.SystemRandom().random() * in_full < CHECK_SHARE * answer["events"])
