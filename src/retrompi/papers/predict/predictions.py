"""Predictions of numbers that the project does not know: a run with nominal values, and an interval over draws of its parameters.

``validate/predictions/plan.toml`` and the curves of the papers' folders that are marked blind say what is predicted; `simulate_prediction`
simulates it, and `file_text` is the text of its file beside the plan, for a paper's curve in a folder of its own. The draws are those of
every interval (`retrompi.studies.draws.uncertainty`): posteriors where there are some, priors elsewhere, and the model's discrepancy. A
second interval leaves the discrepancy out.
"""

from __future__ import annotations

import csv
import math
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.papers.statements import curves
from retrompi.papers.statements.curves import PaperCurve
from retrompi.papers.statements.paper import all_papers
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.declare.number import Number
from retrompi.spec.question import Question, pingpong

if TYPE_CHECKING:
    from retrompi.studies.draws.posteriors import PosteriorFile
    from retrompi.studies.draws.uncertainty import Drawn

__all__ = ["LATER", "PredictedValue", "Prediction", "PredictionPlan", "file_of", "file_text", "folder", "held_out_error", "in_force",
           "nominal", "plans", "quantile", "same", "select_names", "shipped_predictions", "simulate_prediction", "sizes",
           "stamps"]

LEVEL = 0.90
"""The level of an interval: 5 to 95 %."""
WARM_UP = 5
"""Exchanges before each size that are not timed: connections are open, buffers known."""
PLAN_KEYS = ("name", "title", "machine", "model", "platform", "placement", "sizes", "repetitions", "use", "note")
TIMES = ("nominal", "low", "median", "high", "parameters_low", "parameters_high")
LATER = ("third", "second")
"""Folders of predictions that changed models wrote beside those that had been compared with what is published; the newest comes first."""
DRAWN = "# What was drawn: its nominal value, its range, and where its draws come from."
STAMPS = ("date", "commit", "code")
"""The lines of a file that differ when it is made again from the same models and machines."""
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class PredictionPlan:
    """A planned prediction: the one-way times of a PingPong at ``sizes`` (B); ``draws`` and ``seed`` are the sample's.

    ``use`` is ``blind``, or ``input`` if a value of the model or machine comes from another report of the same number. A whole curve has
    its ``paper``, the overrides ``sets`` of its configuration, and further `sizes` where its protocol changes.
    """

    name: str
    title: str
    machine: str
    model: str
    platform: str
    placement: str
    sizes: tuple[int, ...]
    repetitions: int
    draws: int
    seed: int
    use: str = "blind"
    note: str = ""
    paper: str = ""
    sets: tuple[str, ...] = ()

    def question(self, sets: Mapping[str, str] | None = None, at: Sequence[int] = ()) -> Question:
        """The run with these overrides, at the sizes ``at`` (default: those of the plan)."""
        work = pingpong(at or self.sizes, self.repetitions, 1 if self.paper else WARM_UP)
        asked = Question(self.model, self.platform, work, self.placement, list(self.sets), idle_overrides=bool(self.paper))
        return replace(asked, overrides={**asked.sets, **(sets or {})})


@dataclass(frozen=True)
class PredictedValue:
    """One-way seconds at ``size`` B: with nominal values, and over the draws (``parameters_low``..``parameters_high``: without the
    model's discrepancy)."""

    size: int
    nominal: float
    low: float
    median: float
    high: float
    parameters_low: float
    parameters_high: float


@dataclass(frozen=True)
class Prediction:
    """A prediction: its values, what was ``drawn``, and how many draws did not complete."""

    plan: PredictionPlan
    values: tuple[PredictedValue, ...]
    drawn: Drawn
    dropped: int = 0
    stamps: Mapping[str, str] = field(default_factory=dict)


def folder() -> Path:
    """The folder of the plan and of the shipped predictions."""
    return paths.validate_dir() / "predictions"


@cache
def plans() -> Mapping[str, PredictionPlan]:
    """Name -> plan, in the order of ``plan.toml``; InputError for a wrong file."""
    file = folder() / "plan.toml"
    data = toml_text.read(file, "plan of predictions")[1]
    out: dict[str, PredictionPlan] = {}
    with toml_text.taken_apart("plan of predictions", file):
        for given in data["prediction"]:
            unknown = [k for k in given if k not in PLAN_KEYS]
            if unknown:
                raise InputError(f"unknown key '{unknown[0]}'{nearest(unknown[0], PLAN_KEYS)}", file, code="unknown-key")
            sizes = tuple(units.parse_sizes(given["sizes"]))
            more = {k: given[k] for k in ("title", "machine", "model", "platform", "placement", "repetitions", "use", "note") if k in given}
            out[given["name"]] = PredictionPlan(name=given["name"], sizes=sizes, draws=data["draws"], seed=data["seed"], **more)
        few = {k: data["curves"][k] for k in ("draws", "seed", "repetitions")}
        known = data["curves"]["known"]
    for paper, c in _blind():
        name = f"{paper}/{c.name}"
        if name in known:
            continue
        out[name] = PredictionPlan(
            name=name, title=c.title, machine=c.platform, model=c.model, platform=c.platform, placement=c.placement,
            sizes=c.grid, paper=paper, sets=c.sets, **few,
        )
    return out


def _blind() -> Iterator[tuple[str, PaperCurve]]:
    """(paper, curve) of every curve of the package's papers that is kept apart."""
    for paper in all_papers().values():
        if paper.folder.parent == paths.papers_dir():
            yield from ((paper.key, curve) for curve in curves.of(paper) if curve.blind)


def plan(name: str) -> PredictionPlan:
    """The plan of that name; raises UsageError, suggesting the nearest, if there is none."""
    if name not in plans():
        raise UsageError(f"no prediction '{name}'{nearest(name, plans(), 20)}", code="unknown-name")
    return plans()[name]


def select_names(names: Sequence[str]) -> list[str]:
    """The predictions of these names, those of a paper for its key; all without any. Raises UsageError for an unknown one."""
    papers = dict.fromkeys(p.paper for p in plans().values() if p.paper)
    found: dict[str, None] = {}
    for name in names:
        mine = [n for n, p in plans().items() if name in papers and p.paper == name]
        found |= dict.fromkeys(mine or [plan(name).name])
    return list(found) if names else list(plans())


def sizes(asked: PredictionPlan) -> tuple[int, ...]:
    """The sizes of the plan; of a curve, also the last and the first size at each change of its protocol with nominal values."""
    if not asked.paper:
        return asked.sizes
    compiled = simulate.compile_question(Resolved.of(asked.question()))
    changes = (math.ceil(begin) for begin, _, _ in compiled.rows["protocol_same" if asked.placement == "shared" else "protocol_remote"])
    inside = (size for begin in changes for size in (begin - 1, begin) if asked.sizes[0] < size < asked.sizes[-1])
    return tuple(sorted({*asked.sizes, *inside}))


# --- the sample ----------------------------------------------------------------------------------------------------------------


def quantile(values: Sequence[float], share: float) -> float:
    """The ``share`` quantile of ``values``, interpolated linearly."""
    ranked = sorted(values)
    at = share * (len(ranked) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (at - below) * (ranked[above] - ranked[below])


def _times(asked: PredictionPlan, at: Sequence[int], sets: Mapping[str, str]) -> list[float] | None:
    """One-way seconds at these sizes; None if the run does not complete or the values exclude each other."""
    try:
        rows = simulate.benchmark(asked.question(sets, at))
    except (simulate.SimulationEnded, UsageError):
        return None
    return [float(r["time_us"]) * 1e-6 for r in rows]


def nominal(asked: PredictionPlan) -> dict[int, float]:
    """Size -> one-way seconds with nominal values. Raises RetrompiError if the run does not complete."""
    at = sizes(asked)
    times = _times(asked, at, {})
    if times is None:
        raise RetrompiError(f"the run of '{asked.name}' with nominal values does not complete", code="not-completed")
    return dict(zip(at, times, strict=True))


def simulate_prediction(name: str, progress: Progress | None = None, workers: int = 1) -> Prediction:
    """Simulates the prediction ``name``, its draws by ``workers`` at a time. Deterministic but for the stamps.

    Raises UsageError for an unknown name, model or platform, RetrompiError if the nominal run or most draws do not complete.
    """
    from retrompi.studies.draws.uncertainty import Spec, drawn_of, interval, log_discrepancy  # numpy, which showing one does not need

    asked = plan(name)
    middle = nominal(asked)
    at = list(middle)
    resolved, spec = Resolved.of(asked.question(at=at)), Spec(LEVEL, asked.draws, asked.seed, population=True)
    drawn = drawn_of(resolved, spec)
    told: list[list[float] | None] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for times in pool.map(lambda draw: _times(asked, at, drawn.sets(draw)), range(asked.draws)):
            told.append(times)
            if progress is not None:
                progress(len(told), asked.draws, name)
    dropped = sum(times is None for times in told)
    if dropped > asked.draws // 2:
        raise RetrompiError(f"most draws of '{name}' do not complete: there is no interval", code="not-completed")
    slower = [[math.exp(v) for v in row] for row in log_discrepancy(resolved, at, spec)]
    values = []
    for i, size in enumerate(at):
        every = interval([None if times is None else times[i] * slower[n][i] for n, times in enumerate(told)], LEVEL)
        plain = interval([None if times is None else times[i] for times in told], LEVEL)
        values.append(PredictedValue(size, middle[size], every.low, every.median, every.high, plain.low, plain.high))
    return Prediction(asked, tuple(values), drawn, dropped, stamps())


# --- files ---------------------------------------------------------------------------------------------------------------------


def stamps() -> dict[str, str]:
    from datetime import UTC, datetime

    from retrompi.store.identity import code_version

    root = paths.source_root()
    commit = "none: not a checkout"
    if root is not None:
        try:
            told = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=30)
            commit = told.stdout.strip()
        except (OSError, subprocess.SubprocessError):
            commit = "unknown"
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "commit": commit, "code": code_version()}


def file_text(found: Prediction) -> str:
    """The text of the file of a prediction."""
    asked = found.plan
    head: dict[str, Any] = {
        "title": asked.title, "machine": asked.machine, "use": asked.use, **found.stamps,
        "command": f"retrompi predict --write {asked.name}",
        "model": asked.model, "platform": asked.platform, "placement": asked.placement, "set": asked.sets or "",
        "repetitions": asked.repetitions,
        "draws": asked.draws, "seed": asked.seed, "dropped": found.dropped, "discrepancy": _discrepancy(found.drawn), "note": asked.note,
    }
    lines = ["# Written by `retrompi predict --write`; not by hand. README.md explains it.", ""]
    lines += [f"{k} = {toml_text.value(v)}" for k, v in head.items() if v != ""]
    drawn = [_row(prior, found.drawn) for prior in found.drawn.priors]
    if asked.paper:
        told = ([v.size, *(float(f"{getattr(v, k):.5g}") for k in TIMES)] for v in found.values)
        lines += ["", f"# A row a size: size_B, and one-way times, {', '.join(f'{k}_s' for k in TIMES)}.", "value = ["]
        lines += [*(f"  {toml_text.value(row)}," for row in told), "]", "", DRAWN, "drawn = ["]
        lines += [*("  { " + ", ".join(f"{k} = {toml_text.value(v)}" for k, v in row.items()) + " }," for row in drawn), "]"]
        return "\n".join(lines) + "\n"
    for v in found.values:
        lines += ["", "[[value]]", 'what = "one-way time"', f"size_B = {v.size}"]
        lines += [f"{k}_s = {getattr(v, k):.6g}" for k in TIMES]
    lines += ["", DRAWN]
    for row in drawn:
        lines += ["", "[[drawn]]", *(f"{k} = {toml_text.value(v)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _discrepancy(drawn: Drawn) -> str:
    """The origin of the discrepancy, and the median of its standard deviation."""
    middle = quantile([float(v) for v in drawn.sigma], 0.5)
    return f"{_origin(drawn.applied.discrepancy)}: {middle:.3f}"


def _origin(of: PosteriorFile | None) -> str:
    """A posterior by those that it is joint of."""
    return "prior" if of is None else f"posterior of {', '.join(of.about.get('members', [of.of]))}"


def _from(prior: Number, drawn: Drawn) -> str:
    among = drawn.population(prior)
    return _origin(drawn.applied.paths.get(prior.path)) if among is None else f"prior of {len(among.means)} other machines"


def _row(prior: Number, drawn: Drawn) -> dict[str, str]:
    low, high = (prior.text(prior.at(u)) for u in (0.0, 1.0))
    return {"key": prior.path, "value": units.format_quantity(prior.value, prior.unit), "low": low, "high": high,
            "source": prior.source, "from": _from(prior, drawn)}


def same(one: str, other: str) -> bool:
    """Whether two files of a prediction are equal but for their stamps."""
    def rest(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.partition(" = ")[0] not in STAMPS]

    return rest(one) == rest(other)


def file_of(name: str, below: Path | None = None) -> Path:
    """The file of a prediction, in the folder ``below`` (default: `folder`)."""
    return (below or folder()) / f"{name}.toml"


def shipped_predictions(paper: str | None = None) -> dict[str, dict[str, Any]]:
    """Name -> the tables of the shipped file of every plan, of ``paper`` or of all, that has one; the values of a curve as tables too."""
    out = {}
    for name, asked in plans().items():
        if paper in (None, asked.paper) and file_of(name).is_file():
            told = _read(file_of(name), paths.stamp(file_of(name)))
            out[name] = {**told, "paper": asked.paper}
            if asked.paper:
                out[name]["value"] = [_value_of(row) for row in told["value"]]
    return out


@lru_cache(maxsize=256)
def _read(file: Path, stamp: tuple[int, int] | None) -> dict[str, Any]:
    """The tables of a prediction's file, read once until it changes (``stamp``)."""
    return toml_text.read(file, "prediction")[1]


def in_force(name: str) -> dict[str, Any]:
    """The tables of the newest file of a curve: the last that a changed model wrote beside the first (in a folder of `LATER`), or that."""
    files = (*(file_of(name, folder() / later) for later in LATER), file_of(name))
    newest = next((f for f in files if f.is_file()), files[-1])
    told = _read(newest, paths.stamp(newest))
    return {**told, "value": [_value_of(row) for row in told["value"]]}


def _value_of(row: Sequence[float]) -> dict[str, Any]:
    return {"what": "one-way time", **dict(zip(("size_B", *(f"{k}_s" for k in TIMES)), row, strict=True))}


def held_out_error(file: Path | None = None) -> float:
    """The factor that nine of ten held-out times and rates of the models' own machines stay within (``errors.csv``)."""
    with (file or folder() / "errors.csv").open(newline="", encoding="utf-8") as handle:
        away = [abs(math.log(float(r["simulated"]) / float(r["published"]))) for r in csv.DictReader(handle)]
    return math.exp(quantile(away, 0.9))
