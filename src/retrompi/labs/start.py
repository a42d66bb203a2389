"""Creates a student's folder, and fills in a correct or wrong solution (for tests, and for authors of labs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import toml as toml_text
from retrompi.base import units
from retrompi.base.errors import InputError, UsageError
from retrompi.labs import answers, grade, text
from retrompi.labs.shelf import write_folder
from retrompi.labs.student import ANSWERS, STATE, folder_name
from retrompi.labs.work import begin, folder_files

if TYPE_CHECKING:
    from retrompi.labs.bench import Bench
    from retrompi.labs.lab import Lab, Task
    from retrompi.labs.student import Parameters

__all__ = ["solve", "spoil", "start", "value_text"]


def start(lab: Lab, student: str, folder: Path | None = None) -> Path:
    """Make the folder of a student's lab (default: a new one here) with text, blank sheet and files; returns it.

    Raises UsageError when a lab was already started there or the folder has other contents,
    InputError when it cannot be created.
    """
    place = folder if folder is not None else Path(folder_name(lab, student))
    if (place / STATE).exists():
        raise UsageError(f"a lab was started in {place} already; go on there, or give another --folder", code="exists-already")
    if place.is_dir() and any(place.iterdir()):
        raise UsageError(f"the folder {place} is not empty; give another --folder", code="exists-already")
    write_folder(place, folder_files(begin(lab, student), lab))
    return place


def value_text(task: Task, value: Any) -> str:
    """A correct value as TOML text in the form a student writes: four or five digits, with a unit."""
    if task.kind == "order":
        return toml_text.value(list(value))
    if task.number:
        base = units.canonical(task.unit)
        shown = {"s": _time, "B": _size, "B/s": _rate}
        if base == "B" and float(value).is_integer():
            return toml_text.quote(f"{value:.0f} B")
        if base in shown:
            return toml_text.quote(shown[base](float(value)))
        return toml_text.quote(f"{float(value):.6g}" + ("" if base in ("1", "probability") else f" {base}"))
    return toml_text.quote(str(value))


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.5g} us" if abs(seconds) < 1e-3 else f"{seconds * 1e3:.5g} ms" if abs(seconds) < 1 else f"{seconds:.5g} s"


def _size(size: float) -> str:
    return f"{size:.5g} B" if size < 1e5 else f"{size / 1024:.5g} KiB"


def _rate(rate: float) -> str:
    return f"{rate / 1e6:.5g} MB/s"


def solve(lab: Lab, folder: Path, p: Parameters, bench: Bench, student: str) -> None:
    """Write the reference solution into a started folder: inaccurate predictions, correct answers, the reference's texts and files."""
    values = grade.right_values(lab, p, bench)
    texts: Mapping[str, str] = getattr(lab.reference, "TEXTS", {})
    sheet = {}
    for task in lab.tasks:
        if task.kind == "prediction":
            value: Any = values[task.of] if task.of else (task.choices or (1.0,))[0]
            sheet[task.id] = value_text(task, value if task.choices else (0.3 if task.unit == "probability" else float(value) * 1.7))
        elif task.kind == "text":
            model = task.model or texts.get(task.id)
            if not model:
                raise InputError(f"no 'model' answer to '{task.id}'", lab.folder / "lab.toml", code="missing-key")
            sheet[task.id] = toml_text.quote(text.fill(model, text.names(lab, p, student), strict=False))
        elif task.kind != "file":
            sheet[task.id] = value_text(task, values[task.id])
    (folder / ANSWERS).write_text(answers.sheet(lab, p, student, sheet), encoding="utf-8")
    _files(lab, "solve", folder, p, bench)


def spoil(lab: Lab, folder: Path, p: Parameters, bench: Bench, student: str) -> None:
    """Write a plausible wrong solution: the value of each task's first common mistake or, without one, 1.5 times the correct value."""
    values, wrongs = grade.right_values(lab, p, bench), grade.usual(lab, p, bench)
    sheet = {}
    for task in lab.tasks:
        if task.kind in ("prediction", "text", "file"):
            continue
        wrong = next((w for w in wrongs.get(task.id, {}).values() if not grade.is_right(task, w, values[task.id])), None)
        if wrong is None:
            wrong = _other(task, values[task.id])
        sheet[task.id] = value_text(task, wrong)
    for task in lab.predictions:
        sheet[task.id] = value_text(task, task.choices[-1] if task.choices else 0.5 if task.unit == "probability" else 3.0)
    (folder / ANSWERS).write_text(answers.sheet(lab, p, student, sheet), encoding="utf-8")
    _files(lab, "wrong", folder, p, bench)


def _other(task: Task, right: Any) -> Any:
    if task.kind == "number":
        return right * 1.5 if right else 1.0
    if task.kind == "order":
        return list(reversed(right))
    return next(c for c in task.choices if c != right)


def _files(lab: Lab, function: str, folder: Path, p: Parameters, bench: Bench) -> None:
    write: Callable[[Path, Any, Any], None] | None = getattr(lab.reference, function, None)
    if write is not None:
        write(folder, p, bench)
