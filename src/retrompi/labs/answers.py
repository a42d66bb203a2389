"""A student's answers: the sheet answers.toml with one key for each task, and values with units."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import toml as toml_text
from retrompi.base import units
from retrompi.base.bidi import plain_direction
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.translate import _, lazy
from retrompi.labs import text as _text
from retrompi.labs.student import ANSWERS, Parameters, read_toml

if TYPE_CHECKING:
    from retrompi.labs.lab import Lab, Task

__all__ = ["LONGEST", "Given", "UnreadableAnswer", "answer_text", "as_text", "blank", "line_of", "lines", "normal", "plain", "read",
           "rewritten", "sheet", "value", "words_of"]

LONGEST = 20_000
"""Maximum length of an answer, characters."""


class UnreadableAnswer(UsageError):
    """An answer that cannot be read in the required form: the message says what it is and which form is valid.

    ``negative``: the number, if it is refused only because it is below zero. A common mistake may lead there.
    """

    code = "bad-answer"
    negative: float | None = None


@dataclass(frozen=True)
class Given:
    """An answer as written: ``raw`` is the TOML value, ``text`` its display form, ``line`` its line number."""

    raw: Any
    text: str
    line: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", plain_direction(self.text))
        if isinstance(self.raw, str):  # is quoted where it cannot be read
            object.__setattr__(self, "raw", plain_direction(self.raw))
        elif isinstance(self.raw, list):
            object.__setattr__(self, "raw", [plain_direction(r) if isinstance(r, str) else r for r in self.raw])

    @property
    def empty(self) -> bool:
        """Whether nothing was answered."""
        return not self.text.strip()


def line_of(text: str, key: str) -> int | None:
    """The line of a sheet that sets ``key``."""
    pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    return next((i for i, raw in enumerate(text.splitlines(), 1) if pattern.match(raw)), None)


def read(folder: Path, lab: Lab) -> dict[str, Given]:
    """Task id -> answer of ``folder``'s sheet. Raises InputError with file and line for an invalid sheet or one of another lab."""
    file = folder / ANSWERS
    text, data = read_toml(file, "the sheet of answers")
    ids = [t.id for t in lab.tasks if t.kind != "file"]
    out = {}
    for key, raw in data.items():
        line = line_of(text, key)
        if key not in ids:
            raise InputError(f"lab {lab.key} has no task '{key[:60]}'{nearest(key[:60], ids, 30)}", file, line, code="unknown-task")
        if isinstance(raw, dict):
            raise InputError(f"'{key}' is a table; an answer is a text between quotes", file, line)
        try:
            out[key] = Given(raw, as_text(raw), line)
        except (RecursionError, ValueError):
            raise InputError(f"'{key}' is no answer: a number too long, or lists within lists", file, line) from None
        if len(out[key].text) > LONGEST:
            raise InputError(f"'{key}' has {len(out[key].text)} characters; at most {LONGEST} are read", file, line, code="out-of-range")
    return {i: out.get(i, Given("", "")) for i in ids}


def lines(folder: Path, lab: Lab) -> dict[str, int]:
    """Task id -> line of its answer in ``folder``'s sheet."""
    return {i: g.line for i, g in read(folder, lab).items() if g.line is not None}


def plain(raw: Any) -> Any:
    """A sheet's value as a work keeps it: text, number or a list of texts; anything else (a date) as text."""
    if isinstance(raw, list):
        return [as_text(r) for r in raw]
    return raw if isinstance(raw, str | int | float) else as_text(raw)


def as_text(raw: Any) -> str:
    """An answer as text, on one line if it is a list."""
    if isinstance(raw, list):
        return ", ".join(as_text(r) for r in raw)
    return raw if isinstance(raw, str) else str(raw)


def normal(text: str) -> str:
    """A word or choice normalised for comparison: lower case, single blanks, no full stop."""
    return " ".join(text.casefold().split()).rstrip(".")


def words_of(text: str) -> list[str]:
    """The words of a free-text answer."""
    return re.findall(r"[^\W_][\w'’.-]*", text)


def value(task: Task, given: Given) -> Any:
    """The answer converted by the task's kind: a number in its base unit, a choice, or a list of choices. Raises Problem in one line."""
    if task.number:
        return _number(task, given.raw)
    if task.kind == "order":
        return _parse_order(task, given.raw)
    if task.choices:
        return _parse_choice(task, given.text)
    return given.text


def _number(task: Task, raw: Any) -> float:
    base = units.canonical(task.unit)
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise UnreadableAnswer(_("not a number; asked is {form}").format(form=task.asked))
    text = str(raw).strip().replace(" ", " ").replace("×10^", "e").replace("*10^", "e").replace("−", "-")
    if re.fullmatch(r"[+-]?\d+,\d+(\s*\S+)?", text):
        raise UnreadableAnswer(_("'{text}' has a decimal comma; write a point").format(text=text[:40]))
    if base == "1":  # a factor, as it is said
        text = _TIMES.sub("", text)
    try:
        return units.parse(text, task.unit)
    except UsageError as error:
        if base == "B/s" and re.fullmatch(r"[+-]?[\d.]\S*?\s*([kKMG]i?B?|B)", text):
            raise UnreadableAnswer(_("'{text}' has the unit of a size; a rate needs one such as MB/s").format(text=text[:40])) from None
        for other, what in _WHAT.items():
            if other != base and base in _WHAT and _parses(text, other):
                says = _("'{text}' is {what}; asked is {form}")
                raise UnreadableAnswer(says.format(text=text[:40], what=_(what), form=_(_WHAT[base]))) from None
        if not re.match(r"[+-]?(\d|\.\d)", text):
            raise UnreadableAnswer(_("'{text}' is not a number; asked is {form}").format(text=text[:40], form=task.asked)) from None
        problem = UnreadableAnswer(str(error)[:300])
        if text.startswith("-") and _parses(text[1:], task.unit):
            problem.negative = -units.parse(text[1:], task.unit)
        raise problem from None
    except OverflowError:
        raise UnreadableAnswer(_("not a number that can be computed with")) from None


_TIMES = re.compile(r"(?<=[\d.])\s*(x|×|times|mal|fois)$", re.IGNORECASE)
_WHAT = {"s": lazy("a time"), "B": lazy("a size"), "B/s": lazy("a rate (size over time)"), "Hz": lazy("a frequency"),
         "flop/s": lazy("a rate of computing"), "s/B": lazy("a time for each byte")}


def _parses(text: str, unit: str) -> bool:
    try:
        units.parse(text, unit)
    except UsageError:
        return False
    return bool(re.search(r"[^\W\d]\S*$", text))


def _parse_choice(task: Task, text: str) -> str:
    # In the lab's language or in English: a sheet that was begun in another language stays readable.
    wanted = {normal(task.choice_text(c)): c for c in task.choices} | {normal(c): c for c in task.choices}
    if normal(text) not in wanted:
        choices = ", ".join(task.choice_text(c) for c in task.choices)
        raise UnreadableAnswer(_("'{text}' is none of the choices: {choices}").format(text=text[:40], choices=choices))
    return wanted[normal(text)]


def _parse_order(task: Task, raw: Any) -> list[str]:
    parts: Sequence[Any] = raw if isinstance(raw, list) else re.split(r"[,;>\n]+", str(raw))
    found = [_parse_choice(task, str(p)) for p in parts if str(p).strip()]
    if len(set(found)) != len(found):
        raise UnreadableAnswer(_("something is there twice; each belongs into the order once"))
    if len(found) != len(task.choices):
        raise UnreadableAnswer(_("{n} of {of}; asked is {form}").format(n=len(found), of=len(task.choices), form=task.asked))
    return found


def blank(task: Task) -> str:
    """An empty answer in the syntax of the sheet."""
    return '"""\n"""' if task.kind == "text" else "[]" if task.kind == "order" else '""'


def sheet(lab: Lab, p: Parameters, student: str, answers: Mapping[str, Any] | None = None) -> str:
    """The sheet of a student, blank or with ``answers`` (task id -> TOML text of the value)."""
    known = _text.names(lab, p, student)
    out = [f"# Lab {lab.key}: {lab.title}", "# " + _("Answers go between the quotes, numbers with their unit. Then: retrompi lab check"),
           "# " + _("First only the predictions: one that is sealed while its answer stands here is marked for your teacher.")]
    for task in lab.tasks:
        if task.kind == "file":
            out += ["", "# " + _("{task}: in the file {name}").format(task=task.id, name=task.file)]
            continue
        question = " ".join(_text.fill(task.question, known).split())
        out += ["", *_wrap_comment(f"{task.id}: {question}"), *_wrap_comment(f"({task.asked})")]
        out.append(f"{task.id} = {(answers or {}).get(task.id, blank(task))}")
    return "\n".join(out) + "\n"


def answer_text(task: Task, raw: Any) -> str:
    """An answer as TOML text; a long one over several lines, to be read and edited."""
    if isinstance(raw, str) and task.kind == "text" and '"""' not in raw and "\\" not in raw and raw.isprintable() is False:
        lined = raw.replace("\r\n", "\n").replace("\r", "\n")
        if all(c.isprintable() or c == "\n" for c in lined) and not lined.endswith('"'):
            return f'"""\n{lined}"""'
    return toml_text.value(raw)


def rewritten(before: str, lab: Lab, answers: Mapping[str, Any]) -> str | None:
    """The sheet ``before`` with other answers and all its comments; None if that cannot be done line by line."""
    kept = tomllib.loads(before)
    out = before.splitlines()
    for task in lab.tasks:
        if task.kind == "file" or answers.get(task.id, "") == plain(kept.get(task.id, "")):
            continue
        value = answer_text(task, answers[task.id]) if task.id in answers else blank(task)
        first = line_of("\n".join(out), task.id)
        if first is None:
            out += ["", f"{task.id} = {value}"]
            continue
        last = next((end for end in range(first, len(out) + 1) if _is_whole("\n".join(out[first - 1 : end]))), None)
        if last is None:
            return None
        out[first - 1 : last] = [f"{task.id} = {value}"]
        out = "\n".join(out).split("\n")
    text = "\n".join(out) + "\n"
    try:
        found = {k: plain(v) for k, v in tomllib.loads(text).items()}
    except tomllib.TOMLDecodeError:
        return None
    return text if {k: v for k, v in found.items() if as_text(v).strip()} == dict(answers) else None


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return False
    return True


def _wrap_comment(text: str) -> list[str]:
    from textwrap import wrap

    return [f"# {line}" for line in wrap(text, 110)]
