"""Predictions of numbers that the project does not know: a run with nominal values, and an interval from the ranges of its parameters.

``validate/predictions/plan.toml`` and the curves of the papers' folders that are marked blind say what is predicted; `made` simulates it,
and `written` is the text of its file beside the plan, for a paper's curve in a folder of its own. An interval is the 5 to 95 % range over
a seeded Latin hypercube, each parameter that the run uses drawn log-uniformly from its sourced range; parameters without a range keep
their value. A second interval keeps fitted parameters at their fit.
"""

from __future__ import annotations

import csv
import math
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.papers import curves
from retrompi.papers.curves import Curve
from retrompi.papers.paper import all_papers
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, pingpong
from retrompi.studies.keys import sourced_of
from retrompi.studies.tornado import Factor

__all__ = ["Made", "Plan", "Value", "chosen", "file_of", "folder", "held_out_error", "made", "nominal", "plans", "quantile", "same",
           "shipped", "sizes", "stamps", "written"]  # fmt: skip

LOW, HIGH = 0.05, 0.95
"""The quantiles of an interval."""
WARM_UP = 5
"""Exchanges before each size that are not timed: connections are open, buffers known."""
PLAN_KEYS = ("name", "title", "machine", "model", "platform", "placement", "sizes", "repetitions", "use", "note")
TIMES = ("nominal", "low", "median", "high", "fitted_low", "fitted_high")
STAMPS = ("date", "commit", "code")
"""The lines of a file that differ when it is made again from the same models and machines."""
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Plan:
    """What is predicted: the one-way times of a PingPong at ``sizes`` (B); ``draws`` and ``seed`` are the sample's.

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
class Value:
    """One-way seconds at ``size`` B: with nominal values, and over the samples (``fitted_low``..``fitted_high``: with fits held)."""

    size: int
    nominal: float
    low: float
    median: float
    high: float
    fitted_low: float
    fitted_high: float


@dataclass(frozen=True)
class Made:
    """A prediction: its values, the ``factors`` that were drawn, and how many draws of both samples did not complete."""

    plan: Plan
    values: tuple[Value, ...]
    factors: tuple[Factor, ...]
    dropped: int = 0
    stamps: Mapping[str, str] = field(default_factory=dict)


def folder() -> Path:
    """The folder of the plan and of the shipped predictions."""
    return paths.validate_dir() / "predictions"


@cache
def plans() -> Mapping[str, Plan]:
    """Name -> plan, in the order of ``plan.toml``; InputError for a wrong file."""
    file = folder() / "plan.toml"
    data = toml_text.read(file, "plan of predictions")[1]
    out: dict[str, Plan] = {}
    with toml_text.taken_apart("plan of predictions", file):
        for given in data["prediction"]:
            unknown = [k for k in given if k not in PLAN_KEYS]
            if unknown:
                raise InputError(f"unknown key '{unknown[0]}'{nearest(unknown[0], PLAN_KEYS)}", file, code="unknown-key")
            sizes = tuple(units.parse_sizes(given["sizes"]))
            more = {k: given[k] for k in ("title", "machine", "model", "platform", "placement", "repetitions", "use", "note") if k in given}
            out[given["name"]] = Plan(name=given["name"], sizes=sizes, draws=data["draws"], seed=data["seed"], **more)
        few = {k: data["curves"][k] for k in ("draws", "seed", "repetitions")}
        known = data["curves"]["known"]
    for paper, c in _blind():
        name = f"{paper}/{c.name}"
        if name in known:
            continue
        out[name] = Plan(
            name=name, title=c.title, machine=c.platform, model=c.model, platform=c.platform, placement=c.placement,
            sizes=c.grid, paper=paper, sets=c.sets, **few,
        )  # fmt: skip
    return out


def _blind() -> Iterator[tuple[str, Curve]]:
    """(paper, curve) of every curve of the package's papers that is kept apart."""
    for paper in all_papers().values():
        if paper.folder.parent == paths.papers_dir():
            yield from ((paper.key, curve) for curve in curves.of(paper) if curve.blind)


def plan(name: str) -> Plan:
    """The plan of that name; raises UsageError, suggesting the nearest, if there is none."""
    if name not in plans():
        raise UsageError(f"no prediction '{name}'{nearest(name, plans(), 20)}", code="unknown-name")
    return plans()[name]


def chosen(names: Sequence[str]) -> list[str]:
    """The predictions of these names, those of a paper for its key; all without any. Raises UsageError for an unknown one."""
    papers = dict.fromkeys(p.paper for p in plans().values() if p.paper)
    found: dict[str, None] = {}
    for name in names:
        mine = [n for n, p in plans().items() if name in papers and p.paper == name]
        found |= dict.fromkeys(mine or [plan(name).name])
    return list(found) if names else list(plans())


def sizes(asked: Plan) -> tuple[int, ...]:
    """The sizes of the plan; of a curve, also the last and the first size at each change of its protocol with nominal values."""
    if not asked.paper:
        return asked.sizes
    compiled = simulate.compile_question(Resolved.of(asked.question()))
    changes = (math.ceil(begin) for begin, _, _ in compiled.rows["protocol_same" if asked.placement == "shared" else "protocol_remote"])
    inside = (size for begin in changes for size in (begin - 1, begin) if asked.sizes[0] < size < asked.sizes[-1])
    return tuple(sorted({*asked.sizes, *inside}))


# --- the sample ----------------------------------------------------------------------------------------------------------------


def factors(asked: Resolved) -> list[Factor]:
    """Every number that the run uses and that has a sourced range, to be drawn log-uniformly where the range does not begin at zero;
    none that the configuration sets."""
    found = []
    for f in sourced_of(asked):
        if f.key in asked.question.sets:
            continue
        span = f.axis.span
        assert span is not None
        found.append(replace(f, axis=replace(f.axis, span=replace(span, log=span.low > 0))))
    return found


def hypercube(drawn: Sequence[Factor], draws: int, seed: str) -> list[dict[str, str]]:
    """A Latin hypercube: every factor has one value in each of ``draws`` parts of its range. The same seed gives the same points."""
    rng = random.Random(seed)
    columns = {}
    for f in drawn:
        places = list(range(draws))
        rng.shuffle(places)
        columns[f.key] = [f.at((place + rng.random()) / draws) for place in places]
    return [{key: texts[i] for key, texts in columns.items()} for i in range(draws)]


def quantile(values: Sequence[float], share: float) -> float:
    """The ``share`` quantile of ``values``, interpolated linearly."""
    ranked = sorted(values)
    at = share * (len(ranked) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (at - below) * (ranked[above] - ranked[below])


def _times(asked: Plan, at: Sequence[int], sets: Mapping[str, str]) -> list[float] | None:
    """One-way seconds at these sizes; None if the run does not complete or the values exclude each other."""
    try:
        rows = simulate.benchmark(asked.question(sets, at))
    except (simulate.SimulationEnded, UsageError):
        return None
    return [float(r["time_us"]) * 1e-6 for r in rows]


def nominal(asked: Plan) -> dict[int, float]:
    """Size -> one-way seconds with nominal values. Raises RetrompiError if the run does not complete."""
    at = sizes(asked)
    times = _times(asked, at, {})
    if times is None:
        raise RetrompiError(f"the run of '{asked.name}' with nominal values does not complete", code="not-completed")
    return dict(zip(at, times, strict=True))


def made(name: str, progress: Progress | None = None, workers: int = 1) -> Made:
    """Simulates the prediction ``name``, its draws by ``workers`` at a time: nominal values, and both samples. Deterministic but for the
    stamps.

    Raises UsageError for an unknown name, model or platform, RetrompiError if the nominal run does not complete.
    """
    asked = plan(name)
    middle = nominal(asked)
    at = list(middle)
    drawn = [f for f in factors(Resolved.of(asked.question())) if not (asked.paper and f.source.startswith("code:"))]
    free = [f for f in drawn if not f.source.startswith("fit:")]
    samples: list[list[list[float]]] = []
    dropped, done = 0, 0
    for part, which in (("all", drawn), ("free", free)):
        told = []
        with ThreadPoolExecutor(max_workers=workers) as pool:
            for times in pool.map(lambda sets: _times(asked, at, sets), hypercube(which, asked.draws, f"{asked.seed} {name} {part}")):
                done += 1
                if progress is not None:
                    progress(done, 2 * asked.draws, name)
                if times is None:
                    dropped += 1
                else:
                    told.append(times)
        if len(told) < asked.draws // 2:
            raise RetrompiError(f"most draws of '{name}' do not complete: there is no interval", code="not-completed")
        samples.append(told)
    values = []
    for i, size in enumerate(at):
        every, held = ([times[i] for times in sample] for sample in samples)
        interval = quantile(every, LOW), median(every), quantile(every, HIGH)
        values.append(Value(size, middle[size], *interval, quantile(held, LOW), quantile(held, HIGH)))
    return Made(asked, tuple(values), tuple(drawn), dropped, stamps())


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


def written(found: Made) -> str:
    """The text of the file of a prediction."""
    asked = found.plan
    head: dict[str, Any] = {
        "title": asked.title, "machine": asked.machine, "use": asked.use, **found.stamps,
        "command": f"retrompi predict --write {asked.name}",
        "model": asked.model, "platform": asked.platform, "placement": asked.placement, "set": asked.sets or "",
        "repetitions": asked.repetitions,
        "draws": asked.draws, "seed": asked.seed, "dropped": found.dropped, "note": asked.note,
    }  # fmt: skip
    lines = ["# Written by `retrompi predict --write`; not by hand. README.md explains it.", ""]
    lines += [f"{k} = {toml_text.value(v)}" for k, v in head.items() if v != ""]
    drawn = [{"key": f.key, "value": f.base, "low": f.ends[0], "high": f.ends[-1], "source": f.source} for f in found.factors]
    if asked.paper:
        told = ([v.size, *(float(f"{getattr(v, k):.5g}") for k in TIMES)] for v in found.values)
        lines += ["", f"# A row a size: size_B, and one-way times, {', '.join(f'{k}_s' for k in TIMES)}.", "value = ["]
        lines += [*(f"  {toml_text.value(row)}," for row in told), "]", "", "# What was drawn: its value and its range.", "drawn = ["]
        lines += [*("  { " + ", ".join(f"{k} = {toml_text.value(v)}" for k, v in row.items()) + " }," for row in drawn), "]"]
        return "\n".join(lines) + "\n"
    for v in found.values:
        lines += ["", "[[value]]", 'what = "one-way time"', f"size_B = {v.size}"]
        lines += [f"{k}_s = {getattr(v, k):.6g}" for k in TIMES]
    lines += ["", "# What was drawn: its value and its range."]
    for row in drawn:
        lines += ["", "[[drawn]]", *(f"{k} = {toml_text.value(v)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def same(one: str, other: str) -> bool:
    """Whether two files of a prediction are equal but for their stamps."""
    def rest(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.partition(" = ")[0] not in STAMPS]

    return rest(one) == rest(other)


def file_of(name: str, below: Path | None = None) -> Path:
    """The file of a prediction, in the folder ``below`` (default: `folder`)."""
    return (below or folder()) / f"{name}.toml"


def shipped() -> dict[str, dict[str, Any]]:
    """Name -> the tables of the shipped file of every plan that has one; the values of a curve as tables too."""
    out = {}
    for name, asked in plans().items():
        if file_of(name).is_file():
            told = toml_text.read(file_of(name), "prediction")[1]
            if asked.paper:
                keys = ("size_B", *(f"{k}_s" for k in TIMES))
                told["value"] = [{"what": "one-way time", **dict(zip(keys, row, strict=True))} for row in told["value"]]
            out[name] = {**told, "paper": asked.paper}
    return out


def held_out_error(file: Path | None = None) -> float:
    """The factor that nine of ten held-out times and rates of the models' own machines stay within (``errors.csv``)."""
    with (file or folder() / "errors.csv").open(newline="", encoding="utf-8") as handle:
        away = [abs(math.log(float(r["simulated"]) / float(r["published"]))) for r in csv.DictReader(handle)]
    return math.exp(quantile(away, 0.9))
