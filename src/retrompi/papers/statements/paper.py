"""A paper: a folder with ``paper.toml`` (models, experiments, the contents of its page), ``claims.csv`` and checks, anywhere.

The folder may also have ``models/``, ``platforms/`` (with ``hosts/`` and ``networks/``) and ``scenarios/`` of its own, which are found by
name while the paper is worked with (`working_with`), and code: ``experiments/`` and ``commands/`` (`retrompi.papers.statements.own_code`).
The papers of the package are the folders of ``validate/papers/``, read by the same code. The name of a paper's folder is its key.
``validate/papers/README.md`` explains every file.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.base.files import is_dir, is_file
from retrompi.papers.statements import own_code
from retrompi.papers.statements.claims import Checks, Claim, checks_in, claims_in, folders, paper_key, state
from retrompi.papers.statements.exhibits import FigurePlan, TablePlan, read_figures, read_tables
from retrompi.papers.statements.tables import line_of, text_of

if TYPE_CHECKING:
    from retrompi.papers.statements.draw import Draw

__all__ = ["Anomaly", "Paper", "all_papers", "find_paper", "folder_of", "keys", "kinds_of_experiment", "read", "shadowing", "working_with"]


@dataclass(frozen=True)
class Anomaly:
    """An anomaly and the mechanism that causes it; ``size`` (bytes) of the message whose anatomy shows it, or None."""

    title: str
    model: str
    mode: str
    claims: tuple[str, ...]
    mechanism: str
    text: str
    size: int | None = None


@dataclass(frozen=True)
class Paper:
    """A paper as its ``paper.toml`` describes it: its experiments (`retrompi.papers.experiments`) and their options.

    ``models`` and ``platforms`` are shown as cards; the first platform is the default of the experiments.
    ``figure_plans`` and ``table_plans`` are the figures and tables of the report, ``curves`` and ``fits`` the tables [[curve]] and [[fit]].
    """

    key: str
    title: str
    authors: str
    models: tuple[str, ...]
    platforms: tuple[str, ...]
    experiments: tuple[str, ...]
    why: tuple[Anomaly, ...] = ()
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fidelity: str = "mechanism"
    """Fidelity of the simulated curves, scenarios and anatomies."""
    figure_plans: tuple[FigurePlan, ...] = ()
    table_plans: tuple[TablePlan, ...] = ()
    year: str = ""
    address: str = ""
    """Where the paper is printed, or can be read."""
    remark: str = ""
    """What a reader of the page is to know of the paper."""
    folder: Path = Path()
    draw: Draw | None = None
    """The draw of the parameters with which its experiments run; None: nominal values."""
    curves: tuple[Mapping[str, Any], ...] = ()
    fits: tuple[Mapping[str, Any], ...] = ()

    def options(self, kind: str) -> Mapping[str, Any]:
        """The options of an experiment; {} without any."""
        return self.tables.get(kind, {})

    @property
    def platform(self) -> str:
        """The default platform of the experiments."""
        return self.platforms[0]

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes of the PingPong curves; () without any."""
        return tuple(self.options("pingpong").get("modes", ()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Message sizes of the PingPong curves, bytes; () without any."""
        text = self.options("pingpong").get("sizes")
        return () if text is None else tuple(units.parse_sizes(text))

    @property
    def citation(self) -> str:
        """Authors, year and address, as far as they are known."""
        return "; ".join(t for t in (f"{self.authors} ({self.year})" if self.year else self.authors, self.address) if t)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Its claims; () without ``claims.csv``."""
        return claims_in(self.folder)

    @property
    def checks(self) -> Checks:
        """The checks of its claims."""
        return checks_in(self.folder)


# --- reading -------------------------------------------------------------------------------------------------------------------

_WORDS = ("title", "authors", "year", "address", "remark")
_LISTS = ("models", "platforms", "experiments")
_TABLES = ("why", "figure", "table", "curve", "fit")
_ANOMALY = ("title", "model", "mode", "claims", "mechanism", "text", "size")


_EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def kinds_of_experiment(folder: Path | None = None) -> list[str]:
    """Every kind of experiment for any paper, the modules of `retrompi.papers.experiments`, and those of the paper in ``folder``."""
    own = own_code.names(folder, "experiments") if folder else []
    return sorted({*own, *(m.name for m in pkgutil.iter_modules([str(_EXPERIMENTS)]))})


def keys(folder: Path | None = None) -> tuple[str, ...]:
    """Every key of paper.toml: texts, lists, tables, and a table for each kind of experiment (with those of the paper in ``folder``)."""
    return (*_WORDS, "order", *_LISTS, *_TABLES, *kinds_of_experiment(folder))


class _File:
    """One paper.toml being read: its text, its tables, and what is wrong with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[InputError] = []
        self.text = text_of(path)
        self.data: dict[str, Any] = toml_text.parse(self.text, path, "paper")

    def wrong(self, said: str, code: str, key: str = "", table: str = "", index: int = 0) -> None:
        self.problems.append(InputError(said, self.path, line_of(self.text, key, table, index), code=code))

    def word(self, key: str) -> str:
        value = self.data.get(key, "")
        if isinstance(value, int) and not isinstance(value, bool) and key == "year":
            value = str(value)
        if not isinstance(value, str):
            self.wrong(f"'{key}' is a text", "bad-value", key)
            return ""
        if not value.strip() and key == "title":
            self.wrong("'title' is missing: the paper's title", "missing-key", key)
        return " ".join(value.split())

    def names(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            self.wrong(f"'{key}' is a list of names, such as {key} = [\"...\"]", "bad-value", key)
            return ()
        return tuple(value)

    def entries(self, key: str) -> list[Mapping[str, Any]]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            self.wrong(f"'{key}' is a list of tables: [[{key}]]", "bad-value", key, key)
            return []
        return value

    def anomaly(self, entry: Mapping[str, Any], index: int) -> Anomaly | None:
        before = len(self.problems)
        for key in entry:
            if key not in _ANOMALY:
                self.wrong(f"[[why]]: no key '{key[:60]}'{nearest(key, _ANOMALY)}", "unknown-key", key, "why", index)
        for key in _ANOMALY[:-1]:
            kind, said = (list, "a list of claims") if key == "claims" else (str, "a text")
            if key not in entry:
                self.wrong(f"[[why]]: '{key}' is missing", "missing-key", "", "why", index)
            elif not isinstance(entry[key], kind):
                self.wrong(f"[[why]]: '{key}' is {said}", "bad-value", key, "why", index)
        size = None
        if "size" in entry:
            try:
                size = int(units.parse(str(entry["size"]), "B"))
            except RetrompiError as error:
                self.wrong(f"[[why]]: {error}", error.code, "size", "why", index)
        if len(self.problems) > before:
            return None
        return Anomaly(**{k: entry[k] for k in ("title", "model", "mode", "mechanism")}, claims=tuple(map(str, entry["claims"])),
                       text=" ".join(entry["text"].split()), size=size)

    def exhibits(self, key: str) -> tuple[Any, ...]:
        entries = self.entries(key)
        try:
            with toml_text.taken_apart("paper", self.path):
                return read_figures(entries, self.path) if key == "figure" else read_tables(entries, self.path)
        except InputError as error:
            number = re.match(r"\[\[\w+\]\] (\d+)", error.message)
            line = line_of(self.text, "", key, int(number[1]) - 1 if number else 0)
            self.problems.append(InputError(error.message, self.path, line, code=error.code))
        return ()

    def options(self) -> dict[str, Mapping[str, Any]]:
        """The tables of experiments; other keys are wrong."""
        kinds = kinds_of_experiment(self.path.parent)
        valid = keys(self.path.parent)
        found: dict[str, Mapping[str, Any]] = {}
        for key, value in self.data.items():
            if key not in valid:
                table = key if isinstance(value, dict | list) else ""
                self.wrong(f"no key '{key[:60]}'{nearest(key, valid, 30)}", "unknown-key", key, table)
            elif key in kinds and not isinstance(value, dict):
                self.wrong(f"the options of an experiment are a table: [{key}]", "bad-value", key, key)
            elif key in kinds:
                found[key] = value
        return found

    def paper(self) -> Paper:
        words = {key: self.word(key) for key in _WORDS}
        if not isinstance(self.data.get("order", 0), int):
            self.wrong("'order' is a whole number", "bad-value", "order")
        lists = {key: self.names(key) for key in _LISTS}
        if lists["experiments"] and not lists["platforms"]:
            self.wrong("the experiments run on the first of 'platforms', which has none", "missing-key", "platforms")
        found = [self.anomaly(entry, i) for i, entry in enumerate(self.entries("why"))]
        return Paper(
            key=self.path.parent.name,
            title=words["title"],
            authors=words["authors"],
            year=words["year"],
            address=words["address"],
            remark=words["remark"],
            models=lists["models"],
            platforms=lists["platforms"],
            experiments=lists["experiments"],
            why=tuple(a for a in found if a is not None),
            tables=self.options(),
            figure_plans=self.exhibits("figure"),
            table_plans=self.exhibits("table"),
            folder=self.path.parent,
            curves=tuple(self.entries("curve")),
            fits=tuple(self.entries("fit")),
        )


def read(folder: Path) -> tuple[Paper | None, list[InputError]]:
    """The paper that ``paper.toml`` in ``folder`` describes (None if the file cannot be read), and what is wrong with the file.

    Claims, checks and names of models are not looked at; see `retrompi.papers.reproduce.inspection`.
    """
    try:
        file = _File(folder / "paper.toml")
    except InputError as error:
        return None, [error]
    paper = file.paper()
    return paper, file.problems


@lru_cache(maxsize=64)
def _paper(folder: Path, _: Hashable) -> Paper:
    paper, problems = read(folder)
    for problem in problems:
        raise problem
    assert paper is not None, "a paper that cannot be read has a problem"
    return paper


def all_papers() -> Mapping[str, Paper]:
    """Key -> paper, of the package and at hand, in the order of the reference; InputError for an invalid file."""
    return {folder.name: _paper(folder, state(folder)) for folder in folders()}


def find_paper(paper: str) -> Paper:
    """The paper of that key, of the package or at hand; UsageError names the nearest."""
    key = paper_key(paper)
    known = all_papers()
    if key not in known:
        raise UsageError(f"no paper '{paper[:80]}'{nearest(paper, known)}; a folder is given by its path, ./{Path(paper).name[:40]}",
                         code="unknown-paper")
    return known[key]


# --- a folder anywhere ---------------------------------------------------------------------------------------------------------


def folder_of(paper: str) -> Path:
    """The folder of a paper, given by the key of one of the package or at hand, or by its path.

    Raises UsageError for neither, and for a folder with the name of a paper of the package: verdicts are stored by that key.
    """
    known = {folder.name: folder for folder in folders()}
    if (key := paper_key(paper)) in known:
        return known[key]
    given = Path(paper)
    if not is_dir(given):
        what = "is a file; give its folder" if is_file(given) else "is neither a paper of the package nor a folder"
        raise UsageError(f"'{paper[:80]}' {what}{nearest(paper, known)}", code="unknown-paper")
    folder = given.resolve()
    if folder in known.values():
        return folder
    if not is_file(folder / "paper.toml"):
        raise UsageError(f"{given}: no paper.toml in this folder; 'retrompi paper new {given}' makes one", code="unknown-paper")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", folder.name):
        said = "letters, digits, '.', '_' and '-', at most 60"
        raise UsageError(f"{given}: the folder's name is the paper's key and has {said}; rename the folder", code="bad-name")
    if folder.name in known:
        raise UsageError(f"{given}: the package has a paper '{folder.name}', and verdicts are stored by this key; rename the folder",
                         code="duplicate-name")
    return folder


_OWN = {"models": "*/__init__.py", "platforms": "*.toml", "platforms/hosts": "*.toml", "platforms/networks": "*.toml",
        "scenarios": "*.toml", "experiments": "[!_]*.py"}


def shadowing(folder: Path) -> list[InputError]:
    """Each model, platform, host, network, scenario and experiment of a paper's folder that has the name of one of the package."""
    ours = {"models": paths.models_dir(), "platforms": paths.platforms_dir(), "platforms/hosts": paths.platforms_dir() / "hosts",
            "platforms/networks": paths.platforms_dir() / "networks", "scenarios": paths.scenarios_dir(),
            "experiments": _EXPERIMENTS}
    problems = []
    for place, pattern in _OWN.items():
        for file in sorted((folder / place).glob(pattern)):
            name = file.relative_to(folder / place)
            if not file.name.endswith(".fit.toml") and (ours[place] / name).is_file():
                what, shown = place.rpartition("/")[2].rstrip("s"), name.parent.name or file.stem
                said = f"the {what} '{shown}' has the name of one of the package; give it another name"
                problems.append(InputError(said, file, code="duplicate-name"))
    return problems


@contextmanager
def working_with(*papers: str) -> Iterator[list[Paper]]:
    """In the body the papers, given as `folder_of` takes them, are at hand: their models, platforms and scenarios are found by name.

    Raises UsageError for an unknown paper, InputError for a broken paper.toml, or a model or platform with the name of one of the package.
    """
    found = [folder_of(paper) for paper in papers]
    for folder in found:
        for problem in shadowing(folder):
            raise problem
    with paths.working_with(*found):
        known = all_papers()
        yield [known[folder.name] for folder in found]
