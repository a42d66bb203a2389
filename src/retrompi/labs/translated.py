"""A lab in another language: ``text.de.md`` and ``lab.de.toml`` beside the English files, which alone say what the lab is.

    title = "..."                                  # of lab.de.toml; what is missing is shown in English
    summary = "..."
    goals = ["...", "..."]                         # in the order of lab.toml

    [about]
    library = "..."                                # a parameter's description

    [choices]
    "half the library work" = "..."                # how a choice is shown; an answer may be given in either language

    [task.startup]
    title = "..."
    question = "..."
    hints = ["...", "..."]
    model = "..."
    [task.startup.mistakes]
    plain-machine = "..."                          # what is said to a mistake
    [[task.startup.criterion]]                     # a rubric's criteria, in order, with the texts that those of lab.toml have
    name = "..."

    [source]                                       # fingerprints of the English at the time of translation, written by
    title = "1f3a9c02"                             # `make messages-labs`: a text whose English has changed since is found by the tests
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from retrompi.base import toml as toml_text
from retrompi.base import translate
from retrompi.base.errors import InputError, nearest

__all__ = ["FILE", "english", "fingerprints", "languages_of", "merge_translation", "paragraphs", "text_file", "translated_texts"]

FILE = re.compile(r"(lab|text)\.([a-z]{2,3})\.(toml|md)")
"""The files of a lab in another language; a student does not get them."""
_TASK_TEXTS = ("title", "question", "model")
_CRITERION_TEXTS = ("name", "says", "levels")


def languages_of(folder: Path) -> list[str]:
    """The languages that a lab is translated to."""
    return sorted({found[2] for f in folder.iterdir() if (found := FILE.fullmatch(f.name)) and found[1] == "lab"})


def text_file(folder: Path, language: str) -> Path:
    """The file of a lab's text in a language; the English one if there is none in it."""
    file = folder / f"text.{language}.md"
    return file if language != translate.ENGLISH and file.is_file() else folder / "text.md"


def merge_translation(data: dict[str, Any], folder: Path, language: str) -> dict[str, Any]:
    """lab.toml's content with its texts in a language, English where there is none in it; a choice's text becomes ``names`` of its task.

    Raises InputError for a translation that names what lab.toml does not have.
    """
    file = folder / f"lab.{language}.toml"
    if language == translate.ENGLISH or not file.is_file():
        return data
    said = _read(file, data)
    out = copy.deepcopy(data)
    out |= {k: said[k] for k in ("title", "summary") if k in said}
    for row, text in zip(out.get("goal", []), said.get("goals", []), strict=False):
        row["text"] = text
    for row in out.get("parameter", []):
        if row.get("name") in said.get("about", {}):
            row["about"] = said["about"][row["name"]]
    for row in out.get("task", []):
        _task(row, said.get("task", {}).get(row.get("id"), {}), said.get("choices", {}))
    return out


def _task(row: dict[str, Any], said: Mapping[str, Any], choices: Mapping[str, str]) -> None:
    row |= {k: said[k] for k in _TASK_TEXTS if k in said and k in row}
    hints = said.get("hints", [])
    if "hints" in row:
        row["hints"] = [*hints, *row["hints"][len(hints) :]]
    for mistake in row.get("mistake", []):
        mistake["says"] = said.get("mistakes", {}).get(mistake.get("name"), mistake.get("says"))
    for criterion, texts in zip(row.get("criterion", []), said.get("criterion", []), strict=False):
        criterion |= {k: texts[k] for k in _CRITERION_TEXTS if k in texts and k in criterion}
    row["names"] = {c: choices[c] for c in row.get("choices", []) if c in choices}


def _read(file: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """The file, with every name in it checked against lab.toml's content."""
    _text, said = toml_text.read(file, "lab's translation")

    def check_names(found: Any, valid: Iterable[str], what: str) -> None:
        if not isinstance(found, dict):
            raise InputError(f"{what} is not a table", file, code="bad-value")
        names = list(valid)
        wrong = next((k for k in found if k not in names), None)
        if wrong is not None:
            raise InputError(f"{what}: lab.toml has no '{wrong}'{nearest(wrong, names, 20)}", file, code="unknown-key")

    tasks = {str(t.get("id")): t for t in data.get("task", []) if isinstance(t, dict)}
    check_names(said, ("title", "summary", "goals", "about", "choices", "task", "source"), "this translation")
    check_names(said.get("about", {}), [str(p.get("name")) for p in data.get("parameter", [])], "[about]")
    check_names(said.get("choices", {}), [c for t in tasks.values() for c in t.get("choices", [])], "[choices]")
    check_names(said.get("task", {}), tasks, "[task]")
    for name, row in said.get("task", {}).items():
        check_names(row, (*_TASK_TEXTS, "hints", "mistakes", "criterion"), f"[task.{name}]")
        check_names(row.get("mistakes", {}), [str(m.get("name")) for m in tasks[name].get("mistake", [])], f"[task.{name}.mistakes]")
        for key in ("hints", "criterion"):
            there = tasks[name].get({"hints": "hints"}.get(key, key), [])
            if not isinstance(row.get(key, []), list) or len(row.get(key, [])) > len(there):
                raise InputError(f"[task.{name}]: '{key}' is not a list of as many as lab.toml has", file, code="bad-value")
    if not isinstance(said.get("goals", []), list) or len(said.get("goals", [])) > len(data.get("goal", [])):
        raise InputError("'goals' is not a list of as many texts as lab.toml has goals", file, code="bad-value")
    for text in _texts({k: v for k, v in said.items() if k != "source"}):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{text!r} where a text is expected", file, code="bad-value")
    return said


def _texts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
    else:
        yield value


# -- what there is to translate, and whether it has changed since --------------------------------------------------------------


def english(folder: Path) -> dict[str, str]:
    """Name -> text of all that is to be translated; the text's paragraphs by their number."""
    _text, data = toml_text.read(folder / "lab.toml", "lab")
    out = {"title": data["title"], "summary": data["summary"]}
    out |= {f"goals.{i}": g["text"] for i, g in enumerate(data["goal"])}
    out |= {f"about.{p['name']}": p["about"] for p in data["parameter"] if p.get("about")}
    out |= {f"choices.{c}": c for t in data["task"] for c in t.get("choices", [])}
    for task in data["task"]:
        name = f"task.{task['id']}"
        out |= {f"{name}.{k}": task[k] for k in _TASK_TEXTS if k in task}
        out |= {f"{name}.hints.{i}": h for i, h in enumerate(task.get("hints", []))}
        out |= {f"{name}.mistakes.{m['name']}": m["says"] for m in task.get("mistake", [])}
        out |= _flat(f"{name}.criterion", [{k: c[k] for k in _CRITERION_TEXTS if k in c} for c in task.get("criterion", [])])
    return out | {f"text.{i}": p for i, p in enumerate(paragraphs((folder / "text.md").read_text(encoding="utf-8")))}


def translated_texts(folder: Path, language: str) -> dict[str, str]:
    """Name -> translated text, by the names of `english`, as far as there is one."""
    _text, said = toml_text.read(folder / f"lab.{language}.toml", "lab's translation")
    out: dict[str, str] = {}
    for key, value in said.items():
        if key != "source":
            out |= _flat(key, value)
    if text_file(folder, language).name != "text.md":
        out |= {f"text.{i}": p for i, p in enumerate(paragraphs(text_file(folder, language).read_text(encoding="utf-8")))}
    return out


def _flat(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for key, one in parts for k, v in _flat(f"{name}.{key}", one).items()}
    return {name: value} if isinstance(value, str) else {}


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, without those that are the same in every language: commands and places of tasks."""
    found = [p.strip("\n") for p in re.split(r"\n[ \t]*\n", text)]
    return [p for p in found if p.strip() and not p.startswith("    ") and not re.fullmatch(r"\[task [a-z0-9_-]+\]", p.strip())]


def fingerprints(folder: Path) -> dict[str, str]:
    """Name -> the first half of a hash of each English text, however it is broken into lines."""
    return {k: hashlib.sha256(" ".join(v.split()).encode()).hexdigest()[:8] for k, v in english(folder).items()}
