"""Definition of a lab: ``labs/NN-name/`` with lab.toml (goals, parameters, tasks), text.md and reference.py.

    version = 1                                    # a new version draws different parameters
    title = "..."
    summary = "one line"
    minutes = 75
    needs = ["smpicc or mpicc"]                    # additional tools; usually none

    [[goal]]
    text = "The student can ..."
    topic = "Latency"                              # as the NSF/IEEE-TCPP curriculum names it, see labs/tcpp.toml
    area = "Architecture"
    bloom = "K"                                    # the curriculum's level: K know, C comprehend, A apply

    [[parameter]]
    name = "library"
    unit = "s"                                     # a base unit of `retrompi.base.units`, "" for a word
    choices = ["40 us", "50 us"]                   # or low, high and step; or words
    about = "description"

    [[task]]
    id = "latency"
    kind = "number"                                # prediction, number, choice, order, text, file
    question = "... {library} ..."
    title = "Start-up latency"                     # what a page calls it, in a few words; a prediction has that of its task
    unit = "s"                                     # of a number or of a predicted number
    tolerance = 0.03                               # relative; or absolute = "2 us"
    points = 2
    after = ["p-latency"]                          # predictions that must be sealed first
    hints = ["...", "..."]
    choices = ["a", "b"]                           # of a choice, an order or a predicted choice
    words = 20                                     # minimum number of words of a text
    of = "latency"                                 # of a prediction: the task that it is compared with
    file = "program.c"                             # of a file
    model = "..."                                  # of a text: a model answer for teachers (else TEXTS of reference.py)
    [[task.mistake]]
    name = "round-trip"                            # reference.mistakes() computes the value that results
    says = "That is ..., not ..."                  # without the answer
    [[task.criterion]]                             # of a text: what marks are given for; the points sum to the task's
    name = "mechanism"
    points = 1
    says = "names the wait for the processor"      # what is looked for
    levels = ["0: not named", "0.5: named", "1: named, with its cause"]   # optional: marks to choose from, rising
"""

from __future__ import annotations

import importlib.util
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from retrompi.base import paths, translate, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.base.translate import _, lazy
from retrompi.labs import translated

__all__ = ["CURRICULUM", "KINDS", "Criterion", "Goal", "Lab", "Mistake", "Parameter", "Task", "curriculum", "lab", "lab_names", "labs",
           "load"]

KINDS = ("prediction", "number", "choice", "order", "text", "file")
CURRICULUM = (
    "NSF/IEEE-TCPP Curriculum Initiative on Parallel and Distributed Computing, Core Topics for Undergraduates, version 1 (December 2012)"
)
HINT_COST = 0.25
"""Default cost of a hint, points."""
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_FOLDER = re.compile(r"(\d\d)-[a-z0-9-]+")
_OWN = ("lab.toml", "text.md", "reference.py", "slides.md")
_LOADING = threading.Lock()


@cache
def curriculum() -> dict[str, dict[str, str]]:
    """Area -> topic -> Bloom level, of the curriculum's topics in labs/tcpp.toml."""
    _text, data = toml_text.read(paths.labs_dir() / "tcpp.toml", "list of topics")
    return {area: {topic: row["bloom"] for topic, row in topics.items()} for area, topics in data.items() if isinstance(topics, dict)}


@dataclass(frozen=True)
class Goal:
    """A learning goal, and the curriculum's topic that it belongs to."""

    text: str
    topic: str
    area: str
    bloom: str


@dataclass(frozen=True)
class Parameter:
    """A number or word that differs between students: it is drawn from the texts ``values``."""

    name: str
    unit: str
    values: tuple[str, ...]
    about: str = ""

    def base(self, text: str) -> float | str:
        """The value in its base unit; a word unchanged."""
        return units.parse(text, self.unit) if self.unit else text


@dataclass(frozen=True)
class Mistake:
    """A common mistake: ``reference.mistakes`` computes its value; ``says`` describes the mistake without revealing the answer."""

    name: str
    says: str


@dataclass(frozen=True)
class Criterion:
    """A criterion of a teacher's marks for an open answer; ``levels`` are the marks to choose from: (points, description)."""

    name: str
    points: float
    says: str
    levels: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Task:
    """A question of a lab; the fields are those of ``[[task]]``."""

    id: str
    kind: str
    question: str
    points: float = 1.0
    unit: str = ""
    tolerance: float = 0.03
    absolute: float = 0.0
    after: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    choices: tuple[str, ...] = ()
    words: int = 15
    of: str = ""
    file: str = ""
    criteria: tuple[Criterion, ...] = ()
    model: str = field(default="", repr=False)
    """A model answer to an open question, for teachers only."""
    title: str = ""
    """What a page calls it, in a few words: its own title, that of the task which a prediction is compared with, else its id."""
    names: Mapping[str, str] = field(default_factory=dict, compare=False)
    """How a choice is shown in the lab's language; an answer is kept as ``choices`` has it."""

    def choice_text(self, choice: str) -> str:
        """A choice in the lab's language."""
        return self.names.get(choice, choice)

    @property
    def number(self) -> bool:
        """Whether the answer is a number, predicted or computed."""
        return self.kind == "number" or (self.kind == "prediction" and not self.choices)

    @property
    def asked(self) -> str:
        """The form of an answer, in a few words."""
        if self.kind == "text":
            return _("at least {n} words").format(n=self.words)
        if self.kind == "file":
            return _("the file {name}").format(name=self.file)
        choices = ", ".join(self.choice_text(c) for c in self.choices)
        if self.kind == "order":
            return _("all of {choices}").format(choices=choices)
        if self.choices:
            return _("one of {choices}").format(choices=choices)
        base = units.canonical(self.unit)
        if self.unit == "count":
            return _("a whole number")
        if base == "1":
            return _("a plain number")
        if base == "probability":
            return _("a share, as 0.25 or 25 %")
        return _("a number with its unit, e.g. {examples}").format(examples=_(_EXAMPLES[base]) if base in _EXAMPLES else base)


_EXAMPLES = {"s": lazy("12.5 ms or 80 us"), "B": lazy("1500 B, 12.5 KiB or 12.8 kB"), "B/s": lazy("2.5 MB/s or 300 KiB/s"),
             "s/B": "40 ns/B", "Hz": "150 MHz", "flop/s": "20 Mflop/s"}


@dataclass(frozen=True)
class Lab:
    """A loaded lab. ``key`` is its number as two digits, ``name`` its folder's name."""

    key: str
    name: str
    folder: Path
    version: int
    title: str
    summary: str
    minutes: int
    goals: tuple[Goal, ...]
    parameters: tuple[Parameter, ...]
    tasks: tuple[Task, ...]
    needs: tuple[str, ...] = ()
    hint_cost: float = HINT_COST
    text: str = field(default="", repr=False)
    language: str = translate.ENGLISH
    """In which its texts are; English where it has none in the language asked for."""

    @property
    def points(self) -> float:
        """Maximum number of points of a submission."""
        return sum(t.points for t in self.tasks)

    @property
    def predictions(self) -> tuple[Task, ...]:
        """The prediction tasks, which are sealed before the others."""
        return tuple(t for t in self.tasks if t.kind == "prediction")

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that `lab start` writes for the student, besides the text and the sheet of answers."""
        return tuple(
            f for f in sorted(self.folder.iterdir()) if f.is_file() and f.name not in _OWN and not f.name.startswith((".", "_"))
            and not translated.FILE.fullmatch(f.name)
        )

    def task(self, name: str) -> Task:
        """A task by its id; UsageError names the nearest."""
        found = next((t for t in self.tasks if t.id == name), None)
        if found is None:
            raise UsageError(f"lab {self.key} has no task '{name}'{nearest(name, [t.id for t in self.tasks], 20)}", code="unknown-task")
        return found

    @cached_property
    def reference(self) -> ModuleType:
        """The lab's reference.py; InputError with file and line when it cannot be loaded."""
        with _LOADING:
            return _module(self.folder / "reference.py")


def _module(file: Path) -> ModuleType:
    name = f"retrompi_lab_{file.parent.name.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError("cannot be imported as a lab's reference", file, code="broken-lab")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except RetrompiError:
        raise
    except Exception as error:  # any error raised by a user's file is reported against that file
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise InputError(f"this lab cannot be loaded: {type(error).__name__}: {error}", file, line, code="broken-lab") from error
    return module


def _folders() -> dict[str, Path]:
    """Folder name -> folder, in numerical order: the package's, and the user's if the name is not in the package."""
    found: dict[str, Path] = {}
    for place in (paths.labs_dir(), paths.user_labs_dir()):
        for f in place.iterdir() if place.is_dir() else ():
            if f.is_dir() and _FOLDER.fullmatch(f.name) and (f / "lab.toml").is_file():
                found.setdefault(f.name, f)
    return dict(sorted(found.items()))


def lab_names() -> list[str]:
    """The folders' names of `labs`, without reading them."""
    return list(_folders())


def labs() -> list[Lab]:
    """Every lab, by its number."""
    return [load(folder) for folder in _folders().values()]


def lab(name: str) -> Lab:
    """A lab by its number (``1``, ``01``) or its folder's name; never by a path: labs are code, and a submission may give the name.

    Raises UsageError for an unknown lab.
    """
    folders = _folders()
    if name.isdecimal() and name.isascii():
        found = [f for n, f in folders.items() if int(n[:2]) == int(name[:9])]
    else:
        found = [f for n, f in folders.items() if name in (n, n[3:])]
    if not found:
        valid = [n[:2] for n in folders] if name.isdecimal() else list(folders)
        raise UsageError(f"no lab '{name[:60]}'{nearest(name[:60], valid, 20)}", code="unknown-lab")
    return load(found[0])


def load(folder: Path, language: str | None = None) -> Lab:
    """The lab in ``folder``, its texts in a language (default: that of the context, `retrompi.base.translate`).

    Raises InputError with file and line when lab.toml, text.md or a translation is invalid.
    """
    wanted = translate.language() if language is None else language
    now = {f: paths.stamp(f) for f in (folder.iterdir() if folder.is_dir() else ())}
    known = _LOADED.get((folder, wanted))
    if known is not None and known[0] == now:
        return known[1]
    made = _LOADED[folder, wanted] = now, _read(folder, wanted)
    return made[1]


_LOADED: dict[tuple[Path, str], tuple[dict[Path, tuple[int, int] | None], Lab]] = {}
"""(folder, language) -> its files with their stamps, and what was read: a class asks for the same lab with everything it types."""


def _read(folder: Path, wanted: str) -> Lab:
    file = folder / "lab.toml"
    text, data = toml_text.read(file, "lab")
    with toml_text.taken_apart("lab", file):
        return _Reader(file, text, wanted).lab(folder, translated.merge_translation(data, folder, wanted))


class _Reader:
    """Reader of one lab.toml, with line numbers in errors."""

    def __init__(self, file: Path, text: str, language: str) -> None:
        self.file, self.lines, self.language = file, text.splitlines(), language

    def fail(self, message: str, near: str = "", code: str | None = None) -> InputError:
        """InputError at the first line that holds ``near``."""
        line = next((i for i, raw in enumerate(self.lines, 1) if near and near in raw), None)
        return InputError(message, self.file, line, code=code)

    def keys(self, row: Any, what: str, known: Sequence[str], needed: Sequence[str], near: str = "") -> Mapping[str, Any]:
        """Checks that ``row`` is a table of ``known`` keys including the ``needed`` ones."""
        if not isinstance(row, dict):
            raise self.fail(f"{what} is not a table", near, code="bad-value")
        for key in row:
            if key not in known:
                raise self.fail(f"{what}: unknown key '{key}'{nearest(key, known, 20)}", key, code="unknown-key")
        for key in needed:
            if key not in row:
                raise self.fail(f"{what} has no '{key}'", near, code="missing-key")
        return row

    def texts(self, row: Mapping[str, Any], key: str, what: str) -> tuple[str, ...]:
        """Reads a list of texts."""
        given = row.get(key, [])
        if not isinstance(given, list) or not all(isinstance(t, str) and t.strip() for t in given):
            raise self.fail(f"{what}: '{key}' is not a list of texts", key, code="bad-value")
        return tuple(given)

    def lab(self, folder: Path, data: Mapping[str, Any]) -> Lab:
        """Reads the whole file."""
        known = ("version", "title", "summary", "minutes", "needs", "hint_cost", "goal", "parameter", "task")
        row = self.keys(data, "this lab", known, ("version", "title", "summary", "minutes", "goal", "parameter", "task"))
        for key in ("version", "minutes"):
            if not isinstance(row[key], int) or isinstance(row[key], bool) or row[key] < 1:
                raise self.fail(f"'{key}' is not a whole number from 1 on", key, code="out-of-range")
        parameters = tuple(self.parameter(p) for p in row["parameter"])
        tasks = tuple(self.task(t) for t in row["task"])
        _once([p.name for p in parameters], "parameter", self)
        _once([t.id for t in tasks], "task", self)
        titles = {t.id: t.title for t in tasks}
        tasks = tuple(replace(t, title=t.title or titles.get(t.of) or t.id) for t in tasks)
        ids = {t.id: t for t in tasks}
        for task in tasks:
            for other in task.after:
                if other not in ids or ids[other].kind != "prediction":
                    raise self.fail(f"task '{task.id}': 'after' names '{other}', which is no prediction", other, code="bad-value")
            if task.of and (task.of not in ids or ids[task.of].kind == "prediction" or bool(ids[task.of].choices) != bool(task.choices)):
                raise self.fail(f"task '{task.id}': 'of' names '{task.of}', which has no answer of its kind", task.of)
        said = translated.text_file(folder, self.language)
        try:
            text = said.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read this lab's text: {error}", said, code="unreadable-file") from None
        found = _FOLDER.fullmatch(folder.resolve().name)
        return Lab(
            found[1] if found else folder.resolve().name, folder.resolve().name, folder, row["version"], str(row["title"]),
            str(row["summary"]), row["minutes"], tuple(self.goal(g) for g in row["goal"]), parameters, tasks,
            self.texts(row, "needs", "this lab"), float(row.get("hint_cost", HINT_COST)), text,
            self.language if said.name != "text.md" else translate.ENGLISH,
        )

    def goal(self, given: Any) -> Goal:
        """Reads a ``[[goal]]``."""
        row = self.keys(given, "a goal", ("text", "topic", "area", "bloom"), ("text", "topic", "area", "bloom"), "[[goal]]")
        area, topic, level = str(row["area"]), str(row["topic"]), str(row["bloom"])
        topics = curriculum()
        if area not in topics:
            raise self.fail(f"a goal: the curriculum has no area '{area}'{nearest(area, topics)}", area, code="unknown-name")
        if topic not in topics[area]:
            raise self.fail(
                f"a goal: no topic '{topic}' of {area} in labs/tcpp.toml{nearest(topic, topics[area], 30)}", topic, code="unknown-name"
            )
        if level != topics[area][topic]:
            raise self.fail(
                f"a goal: the curriculum's level of '{topic}' ({area}) is {topics[area][topic]}, not {level}", topic, code="bad-value"
            )
        return Goal(str(row["text"]), topic, area, level)

    def parameter(self, given: Any) -> Parameter:
        """Reads a ``[[parameter]]``."""
        row = self.keys(given, "a parameter", ("name", "unit", "choices", "low", "high", "step", "about"), ("name",), "[[parameter]]")
        name, unit = str(row["name"]), str(row.get("unit", ""))
        what = f"parameter '{name}'"
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise self.fail(f"{what}: a name has small letters, digits and _", name, code="bad-name")
        if unit and not units.check_unit(unit):
            raise self.fail(f"{what}: no unit '{unit}'{nearest(unit, units.UNITS, 20)}", unit, code="unknown-name")
        values = self.texts(row, "choices", what) if "choices" in row else self.steps(row, unit, what)
        found = Parameter(name, unit, values, str(row.get("about", "")))
        try:
            drawn = [found.base(v) for v in values]
        except UsageError as error:
            raise self.fail(f"{what}: {error}", name, code=error.code) from None
        if len(set(drawn)) < 2:
            raise self.fail(f"{what} has fewer than two values, so that it does not differ between students", name, code="missing-key")
        return found

    def steps(self, row: Mapping[str, Any], unit: str, what: str) -> tuple[str, ...]:
        """The values of ``low``, ``high`` and ``step``, in the spelling of ``low``."""
        try:
            low, high, step = (str(row[k]) for k in ("low", "high", "step"))
            spelling = low.split()[-1] if " " in low else ""
            factor = units.UNITS[units.canonical(unit)][spelling] if unit else 1
            ends = [units.parse(t, unit) / factor for t in (low, high, step)]
        except (KeyError, IndexError, ValueError, UsageError) as error:
            raise self.fail(
                f"{what} has neither 'choices' nor 'low', 'high' and 'step' with units ({error})", str(row["name"]), code="bad-value"
            ) from None
        count = round((ends[1] - ends[0]) / ends[2])
        return tuple(f"{ends[0] + i * ends[2]:.10g} {spelling}".strip() for i in range(count + 1))

    def task(self, given: Any) -> Task:
        """Reads a ``[[task]]``."""
        known = ("id", "kind", "question", "points", "unit", "tolerance", "absolute", "after", "hints", "mistake", "choices", "words", "of",
                 "file", "criterion", "model", "title", "names")
        row = self.keys(given, "a task", known, ("id", "kind", "question"), "[[task]]")
        name, kind = str(row["id"]), row["kind"]
        what = f"task '{name}'"
        if not _NAME.fullmatch(name):
            raise self.fail(f"{what}: an id has small letters, digits, - and _", name, code="bad-name")
        if kind not in KINDS:
            raise self.fail(f"{what}: no kind '{kind}'{nearest(str(kind), KINDS)}", name, code="unknown-name")
        unit, choices = str(row.get("unit", "")), self.texts(row, "choices", what)
        numeric = kind == "number" or (kind == "prediction" and not choices)
        if numeric and not (unit and units.check_unit(unit)):
            raise self.fail(f"{what}: a number needs a 'unit' of {', '.join(units.UNITS)}", name, code="missing-key")
        if kind in ("choice", "order") and len(choices) < 2:
            raise self.fail(f"{what}: a {kind} needs 'choices'", name, code="missing-key")
        if kind == "file" and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", str(row.get("file", ""))):
            raise self.fail(f"{what}: a file needs the name of a 'file' in the student's folder", name, code="missing-key")
        try:
            absolute = units.parse(str(row.get("absolute", "0")), unit) if numeric else 0.0
        except UsageError as error:
            raise self.fail(f"{what}: 'absolute': {error}", name, code=error.code) from None
        points = float(row.get("points", {"prediction": 0.5, "text": 2.0, "number": 2.0}.get(kind, 1.0)))
        mistakes = tuple(
            Mistake(str(m["name"]), str(m["says"]))
            for m in (self.keys(m, f"{what}: a mistake", ("name", "says"), ("name", "says"), name) for m in row.get("mistake", []))
        )
        _once([m.name for m in mistakes], f"{what}: mistake", self)
        return Task(
            name, kind, str(row["question"]).strip(), points, unit, float(row.get("tolerance", 0.03)), absolute,
            self.texts(row, "after", what), self.texts(row, "hints", what), mistakes, choices, int(row.get("words", 15)),
            str(row.get("of", "")), str(row.get("file", "")), self.criteria(row, points, what), str(row.get("model", "")).strip(),
            str(row.get("title", "")).strip(), dict(row.get("names", {})),
        )

    def criteria(self, task: Mapping[str, Any], points: float, what: str) -> tuple[Criterion, ...]:
        """Reads the ``[[task.criterion]]`` of a text."""
        name = str(task["id"])
        if task["kind"] != "text" and ("criterion" in task or "model" in task):
            raise self.fail(f"{what}: only a text has a 'criterion' or a 'model' answer", name, code="bad-value")
        found = []
        for given in task.get("criterion", []):
            row = self.keys(given, f"{what}: a criterion", ("name", "points", "says", "levels"), ("name", "points", "says"), name)
            most = float(row["points"])
            levels = []
            for level in self.texts(row, "levels", what):
                mark, _, said = level.partition(":")
                if not re.fullmatch(r"\s*\d+(\.\d+)?\s*", mark) or not said.strip() or float(mark) > most:
                    told = f"{what}: a level is 'POINTS: text', with at most the criterion's {most:g} points, not '{level[:40]}'"
                    raise self.fail(told, level[:40], code="bad-value")
                levels.append((float(mark), said.strip()))
            if levels and (levels != sorted(levels) or levels[-1][0] != most):
                raise self.fail(f"{what}: the levels of '{row['name']}' do not rise to its {most:g} points", name, code="bad-value")
            found.append(Criterion(str(row["name"]), most, str(row["says"]), tuple(levels)))
        _once([c.name for c in found], f"{what}: criterion", self)
        if found and abs(sum(c.points for c in found) - points) > 1e-9:
            total = sum(c.points for c in found)
            raise self.fail(f"{what}: its criteria have {total:g} points, the task {points:g}", name, code="bad-value")
        return tuple(found)


def _once(names: Sequence[str], what: str, reader: _Reader) -> None:
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise reader.fail(f"two of {what} '{twice}'", twice, code="duplicate-name")
