"""Everything that is wrong in a paper's folder, found without simulating: what ``retrompi paper check`` lists and `run_papers` refuses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from retrompi.base import paths
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, nearest
from retrompi.papers.fit import curve_fits
from retrompi.papers.judging.curve_checks import curves_of, sizes_for
from retrompi.papers.judging.evaluators import EVALUATORS
from retrompi.papers.judging.findings import UNITS, Data, Unavailable
from retrompi.papers.statements import curves, own_code
from retrompi.papers.statements import paper as of_paper
from retrompi.papers.statements.claims import USES, Checks, Claim, check_files, models_of, read, read_checks, state, version
from retrompi.papers.statements.exhibits import ClaimTable, MeasuredFigure
from retrompi.papers.statements.paper import Paper
from retrompi.papers.statements.tables import line_of, text_of
from retrompi.spec import registry
from retrompi.spec.declare.curve import TimeCurve
from retrompi.spec.machine import machines

__all__ = ["Inspected", "inspect", "refuse"]

_POINTS = ("pingpong", "scenarios")
"""Experiments that make curves, as one of the paper's own may; the modes of the first are in its options."""
_MEASURED = ("range", "fact", "near", "digits", "extremes", "plateau", "ratio")
"""Kinds of check that convert to the claim's unit."""


@dataclass
class Inspected:
    """A paper's folder as far as it can be read, and what is wrong in it, in the order of files and lines."""

    folder: Path
    paper: Paper | None = None
    claims: list[Claim] = field(default_factory=list)
    checks: Checks = field(default_factory=dict)
    problems: list[InputError] = field(default_factory=list)

    def wrong(self, said: str, path: Path, line: int | None, code: str) -> None:
        """Adds a problem."""
        self.problems.append(InputError(said, path, line, code=code))

    def counts(self) -> dict[str, int]:
        """How many claims of each use, checks, curves, models and platforms it has."""
        found = {f"claims: {use}": sum(c.use == use for c in self.claims) for use in USES}
        found["claims with checks"] = len(self.checks)
        if self.paper is not None:
            found |= {what: len(getattr(self.paper, what)) for what in ("curves", "fits", "models", "platforms", "experiments")}
        return found

    def claims_without_check(self) -> list[str]:
        """The claims to be judged that have no check."""
        return [c.id for c in self.claims if c.use in ("calibrate", "validate") and c.id not in self.checks]


def inspect(paper: str) -> Inspected:
    """Reads the folder of a paper (a key or a path) and lists all errors in it. Raises UsageError if it is no paper's folder."""
    return _inspect(of_paper.folder_of(paper))


def _inspect(folder: Path) -> Inspected:
    found = Inspected(folder)
    found.problems += of_paper.shadowing(folder)
    file = folder / "paper.toml"
    found.paper, problems = of_paper.read(folder)
    found.problems += problems
    table = folder / "claims.csv"
    if table.exists() or table.is_symlink():
        found.claims, problems = read(table, folder.name)
        found.problems += problems
    found.checks, problems = read_checks(folder, (c.id for c in found.claims))
    if found.claims or not table.exists():
        found.problems += problems
    if found.paper is not None:
        with paths.working_with(folder):
            _own_files(found)
            _names(found, found.paper, file)
            _contents(found, found.paper, file)
            found.problems += curves.inspect_curves(found.paper) if found.paper.curves or found.paper.fits else []
            found.problems += curve_fits.inspect_fits(found.paper) if found.paper.fits and not found.problems else []
            _judgeable(found, found.paper)
    order = {f: i for i, f in enumerate((str(file), str(table), *map(str, check_files(folder))))}
    found.problems = list({str(p): p for p in found.problems}.values())  # a model's file is read for itself and for each of its curves
    found.problems.sort(key=lambda p: (order.get(p.path or "", len(order)), p.path or "", p.line or 0))
    return found


def _own_files(found: Inspected) -> None:
    """Loads the folder's own models, platforms, hosts, networks, scenarios, experiments and commands."""
    from retrompi.spec.machine import platform_file
    from retrompi.studies.define import scenario

    folder = found.folder
    loaders: Mapping[str, Any] = {
        "models/*/__init__.py": lambda f: registry.model(str(f.parent)),
        "platforms/*.toml": platform_file.load,
        "platforms/hosts/*.toml": machines.at,
        "platforms/networks/*.toml": machines.at,
        "scenarios/*.toml": scenario.load,
        "experiments/[!_]*.py": lambda f: _has(f, "jobs", "the jobs of a study"),
        "commands/[!_]*.py": lambda f: _has(f, "command", "a click command"),
    }
    for pattern, load in loaders.items():
        for file in sorted(folder.glob(pattern)):
            if not file.name.endswith(".fit.toml"):
                _succeeds(found, file, None, lambda f=file, load=load: load(f))


def _has(file: Path, name: str, what: str) -> None:
    """Loads a module of a paper's own code; InputError if it cannot be loaded or defines nothing of this name."""
    if not callable(getattr(own_code.module(file.parents[1], file.parent.name, file.stem), name, None)):
        raise InputError(f"this file defines no '{name}': {what}", file, code="broken-code")


def _succeeds(found: Inspected, path: Path, line: int | None, work: Any) -> bool:
    """Whether ``work`` raises nothing; an error of the user becomes a problem, at ``path`` and ``line`` if it names no file."""
    try:
        work()
    except InputError as error:
        if str(error) not in map(str, found.problems):
            found.problems.append(error if error.path else InputError(error.message, path, line, code=error.code))
        return False
    except RetrompiError as error:
        found.wrong(str(error), path, line, error.code)
        return False
    return True


def _names(found: Inspected, paper: Paper, file: Path) -> None:
    """Looks up the models, platforms, experiments and modes of paper.toml."""
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.question import Question, pingpong

    text = text_of(file)
    models = [m for m in paper.models if _succeeds(found, file, line_of(text, "models"), lambda m=m: registry.model(m))]
    platforms = [p for p in paper.platforms if _succeeds(found, file, line_of(text, "platforms"), lambda p=p: registry.platform(p))]
    for kind in paper.experiments:
        if kind not in (valid := of_paper.kinds_of_experiment(paper.folder)):
            found.wrong(f"no experiment '{kind[:60]}'{nearest(kind, valid, 20)}", file, line_of(text, "experiments"), "unknown-name")
    if "pingpong" in paper.experiments and platforms and platforms[:1] == list(paper.platforms[:1]):
        with toml_text.taken_apart("paper", file):
            _succeeds(found, file, line_of(text, "sizes", "pingpong"), lambda: paper.sizes)
        if not isinstance(paper.options("pingpong").get("modes"), list):
            said = 'the experiment pingpong needs modes, such as modes = ["distributed"]'
            found.wrong(said, file, line_of(text, "", "pingpong") or line_of(text, "experiments"), "missing-key")
        for mode in paper.modes if models else ():
            asked = Question(models[0], paper.platform, pingpong([0]), str(mode))
            _succeeds(found, file, line_of(text, "modes", "pingpong"), lambda asked=asked: Resolved.of(asked))


def _contents(found: Inspected, paper: Paper, file: Path) -> None:
    """Claims that the page names exist, and a paper says who wrote it or where it is."""
    text = text_of(file)
    ids = [c.id for c in found.claims]
    if not (paper.authors or paper.address):
        said = "'authors' or 'address' is needed: the source of all that claims.csv states"
        found.wrong(said, file, line_of(text, "title"), "missing-key")
    if not found.claims and not paper.curves and not any(p.path == str(found.folder / "claims.csv") for p in found.problems):
        found.wrong("nothing to judge: neither claims.csv has rows nor paper.toml a [[curve]]", file, None, "missing-key")
    for index, why in enumerate(paper.why):
        for claim in why.claims:
            if claim not in ids:
                said = f"[[why]]: no claim '{claim[:60]}'{nearest(claim, ids, 4)}"
                found.wrong(said, file, line_of(text, "claims", "why", index), "unknown-claim")
    names = [str(c.get("name")) for c in paper.curves]
    for index, drawn in enumerate(paper.figure_plans):
        for pattern in drawn.measured if isinstance(drawn, MeasuredFigure) else ():
            if not any(fnmatchcase(name, str(pattern)) for name in names):
                said = f"[[figure]]: no [[curve]] is named '{str(pattern)[:60]}'{nearest(str(pattern), names)}"
                found.wrong(said, file, line_of(text, "measured", "figure", index), "unknown-name")
    for index, plan in enumerate(paper.table_plans):
        for pattern in plan.claims if isinstance(plan, ClaimTable) else ():
            if not any(fnmatchcase(i, pattern) for i in ids):
                said = f"[[table]]: no claim is like '{pattern[:60]}'{nearest(pattern, ids, 4)}"
                found.wrong(said, file, line_of(text, "claims", "table", index), "unknown-claim")


_SIZES = (0, *(1 << n for n in range(24)))


class _Anything(Data):
    """Data in which every curve and every fact exists: what a check cannot do with it, it can do with no simulation's results."""

    def __init__(self, sizes: Iterable[int], below: Mapping[str, str]) -> None:
        sizes = sorted({*_SIZES, *sizes})
        times = [50 + n / 10 for n in sizes]
        told = {"size_B": sizes, "time_us": times, "at_B": [], "at_us": []}
        super().__init__(facts={"curves": dict.fromkeys(below, told), "layers_below": below})
        self.one = TimeCurve(tuple(sizes), tuple(t * 1e-6 for t in times))
        self.asked: list[tuple[str, str]] = []

    def curve(self, model: str, mode: str) -> TimeCurve:
        """A curve of an ideal network; what was asked for is kept."""
        self.asked.append((model, mode))
        return self.one

    def fact(self, path: str) -> Any:
        """The number 1; the ideal network's curves."""
        return self.facts.get(path.split(".")[0], 1.0)


def _judgeable(found: Inspected, paper: Paper) -> None:
    """Judges every claim as if everything had been simulated, so that a check that cannot be judged is found before."""
    unread = {p.path for p in found.problems if p.code in ("unreadable-file", "too-large")}
    files = {path: text_of(path) for path in check_files(found.folder) if str(path) not in unread}
    table = found.folder / "claims.csv"
    for claim in found.claims:
        entries = found.checks.get(claim.id, ())
        if not entries and claim.use in ("calibrate", "validate") and claim.low is not None and claim.unit not in (*UNITS, "-"):
            said = f"claim '{claim.id}': the unit '{claim.unit[:40]}' is none that a check could convert to{nearest(claim.unit, UNITS, 40)}"
            found.wrong(said, table, claim.line, "bad-unit")
        for index, check in enumerate(entries):
            path, text = next((p, t) for p, t in files.items() if line_of(t, "", claim.id) is not None or len(files) == 1)
            line = line_of(text, "", claim.id, index)
            for said, code, of_row in _wrong_check(claim, check, paper):
                found.wrong(f"claim '{claim.id}': {said}", table if of_row else path, claim.line if of_row else line, code)


def _wrong_check(claim: Claim, check: Mapping[str, Any], paper: Paper) -> Iterable[tuple[str, str, bool]]:
    """(what is wrong, code, whether with the claim's row) of one check."""
    kind = str(check.get("kind", ""))
    if kind not in EVALUATORS:
        yield f"no kind of check '{kind[:60]}'{nearest(kind, EVALUATORS, 30)}", "unknown-name", False
        return
    unit = str(check.get("unit", claim.unit))
    if kind in _MEASURED and claim.kind == "quant" and claim.low is not None and unit not in UNITS and not _unitless(check):
        yield f"the unit '{unit[:40]}' cannot be converted{nearest(unit, UNITS, 40)}", "bad-unit", "unit" not in check
        return
    named = claim.sizes() if claim.configuration else None
    sizes = [n for n in ((named.low, named.high) if named else ()) if n is not None]
    below = {str(c.get("name")): str(c.get("layer_below", "")) for c in paper.curves}
    try:
        if kind == "curve":
            sizes += sizes_for(claim, check)
            for name in curves_of(check, below.get(str(check["curve"]), "")):
                if name not in below:
                    yield f"no curve '{name[:60]}'{nearest(name, below)}", "unknown-name", False
                    return
        data = _Anything(sizes, below)
        EVALUATORS[kind](claim, check, data)
    except KeyError as error:
        yield f"its check needs '{error.args[0] if error.args else '?'}'", "missing-key", False
        return
    except Unavailable as error:
        if "why" not in check and kind != "curve":
            yield f"its check {error}", "bad-value", False
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        said = str(error).removeprefix(f"{claim.id}: ")
        yield f"its check cannot be judged: {said}", "bad-value", "in the column" in said or "low..high" in said
        return
    for name in sorted(models_of(check) - {"MODEL"} if kind in _POINT_KINDS else ()):
        if name not in paper.models:
            yield f"'{name[:60]}' is not one of the paper's models{nearest(name, paper.models)}", "unknown-model", False
    making = [k for k in paper.experiments if k in (*_POINTS, *own_code.names(paper.folder, "experiments"))]
    if data.asked and not making:
        yield "its check reads a simulated curve, and no experiment makes one; add \"pingpong\" to experiments", "missing-key", False
    elif making == ["pingpong"]:
        for mode in sorted({mode for _, mode in data.asked} - set(paper.modes)):
            yield f"the experiment pingpong has no mode '{mode[:60]}'{nearest(mode, paper.modes)}", "unknown-name", False


_POINT_KINDS = ("range", "plateau", "knee", "trend", "ratio", "faster")


def _unitless(check: Mapping[str, Any]) -> bool:
    return bool("among" in check or check.get("positive") or check.get("value") is False or check.get("within") == "same"
                or check.get("op") in ("ratio", "percent"))


@lru_cache(maxsize=32)
def _problems_of(folder: Path, _: Any) -> tuple[InputError, ...]:
    return tuple(_inspect(folder).problems)


def refuse(paper: Paper) -> None:
    """Raises InputError for the first of what is wrong in a paper's folder, and how many more there are; a paper may have no folder."""
    if paper.folder == Path():
        return
    problems = _problems_of(paper.folder, (state(paper.folder), version()))
    if problems:
        first, more = problems[0], len(problems) - 1
        name = paper.key if paper.folder.parent == paths.papers_dir() else os.path.relpath(paper.folder)
        tail = f" ({more} more: 'retrompi paper check {name}' lists them)" if more else ""
        raise InputError(f"{first.message}{tail}", first.path, first.line, code=first.code)
