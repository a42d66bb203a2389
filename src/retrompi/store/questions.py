"""The question of a stored run, so that it can be asked with something else observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Question
from retrompi.store.identity import RunSpec, specification
from retrompi.store.schema import MEASURED
from retrompi.traces.source import read_again

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["beside_columns", "question_of"]

_LABELS = ("code_version", "stopped", "platform", "trace", "scenario", "question", "kind")
_WORDS = {"model_hash": "the model", "platform_hash": "the platform", "trace_hash": "the program", "parameters": "a parameter",
          "mode": "the placement"}


_OF_COLUMNS = ("model", "platform", "mode", "set", "seed", "fidelity", "network", "asked", "bounds")


def beside_columns(run: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run's question (`Store.run`) that are no columns of the run: ``kills``, ``workload.size``, ..."""
    out: dict[str, Any] = {}
    for key, value in (run["question"] or {}).items():
        if key not in _OF_COLUMNS:
            out |= {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {key: value}
    return out


def question_of(store: Store, run_id: int) -> Question:
    """The question whose answer the run is; without the bounds that did not end it.

    Raises StoreError for an unknown run, UsageError if it was stored without its question, or its model, platform or trace has changed.
    """
    row = store.run(run_id)
    if row["question"] is None:
        why = "it is a measurement" if row["kind"] in MEASURED else "it was stored by a retrompi that did not keep questions, or imported"
        raise UsageError(f"run {run_id} cannot be asked again: {why}; repeat the command that made it", code="not-the-same")
    try:
        question = Question.from_row(row["question"], read_again)
        different = _differences(specification(question), row)
    except UsageError as error:
        raise UsageError(f"run {run_id} cannot be asked again: {error}", code="not-the-same") from None
    if different:
        told = f"{' and '.join(different)} {'is' if len(different) == 1 else 'are'} not what the run had"
        raise UsageError(f"run {run_id} cannot be asked again: {told}", code="not-the-same")
    return question if row["outcome"] == Outcome.LIMIT else question.with_(bounds=Bounds())


def _differences(spec: RunSpec, row: Mapping[str, Any]) -> list[str]:
    """The properties that determine a run and differ from its row; the code may be newer."""
    names = [f.name for f in fields(spec) if f.name not in _LABELS and getattr(spec, f.name) != row[f.name]]
    return [_WORDS.get(name, f"the {name}") for name in names]
