"""The question of a stored run, put together again from its row, so that it can be asked with something else observed.

A row has the names, overrides and hashes of its question, and not the program itself: a generated curve is asked again for its sizes, a
trace is read again, a scenario is opened again. The hashes of the run say whether that is the same question; if not, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi import traces
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.spec.question import Question, Replay, Workload, pingpong
from retrompi.store.identity import RunSpec, specification
from retrompi.traces.generate import WARM_UP

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["question_of"]

_LABELS = ("code_version", "stopped", "platform", "trace", "scenario")


def question_of(store: Store, run_id: int, scenario: Callable[[str], Question] | None = None) -> Question:
    """The question whose answer the run is. ``scenario``: the question of a scenario by its name.

    Raises StoreError for an unknown run, UsageError if its row does not say enough, or its model, platform or trace has changed since.
    """
    row = store.run(run_id)
    why = f"its {row['kind']} cannot be asked again from what is stored; repeat the command that made it"
    for question in _candidates(store, row, scenario):
        try:
            spec = specification(question)
        except RetrompiError as error:
            why = str(error)
            continue
        different = _differences(spec, row)
        if not different:
            return question
        why = f"{' and '.join(different)} {'is' if len(different) == 1 else 'are'} not what the run had"
    raise UsageError(f"run {run_id} cannot be put together again: {why}", code="not-the-same")


def _candidates(store: Store, row: Mapping[str, Any], scenario: Callable[[str], Question] | None) -> Iterator[Question]:
    if row["scenario"] and scenario is not None:
        yield scenario(row["scenario"])
    placement = _placement(str(row["mode"]))
    for workload in _workloads(store, row):
        yield Question(
            row["model"], row["platform"], workload, placement, row["overrides"], row["seed"], row["fidelity"], network=row["network"],
            idle_overrides=True, what_if_hardware=True,  # who stored it has asked for it
        )  # fmt: skip


def _workloads(store: Store, row: Mapping[str, Any]) -> Iterator[Workload]:
    if row["kind"] == "pingpong":
        points = store.points(int(row["id"]))
        sizes, told = [p["size_B"] for p in points], {p["repetitions"] for p in points}
        for warm_up in (WARM_UP, 0):
            yield pingpong(warm_up=warm_up)
            yield pingpong(sizes, warm_up=warm_up)
            if len(told) == 1:
                yield pingpong(sizes, next(iter(told)), warm_up)
    if row["kind"] == "replay" and Path(row["trace"]).exists():
        yield Replay(traces.read(row["trace"]), row["trace"])
        yield Replay(traces.read(row["trace"], np=int(row["ranks"])), row["trace"])


def _placement(mode: str) -> str | list[int]:
    parts = mode.split(",")
    return [int(p) for p in parts] if all(p.isdigit() for p in parts) else mode


def _differences(spec: RunSpec, row: Mapping[str, Any]) -> list[str]:
    """What determines a run and is another than in its row; the code may be newer."""
    names = {"model_hash": "the model", "platform_hash": "the platform", "trace_hash": "the program", "parameters": "a parameter",
             "mode": "the placement"}  # fmt: skip
    return [
        names.get(f.name, f"the {f.name}") for f in fields(spec)
        if f.name not in _LABELS and f.name in row and getattr(spec, f.name) != row[f.name]
        and not (f.name == "scenario_hash" and not spec.scenario)
    ]  # fmt: skip
