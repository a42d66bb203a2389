"""Simulation-based calibration of the models: which data, which runs, and the table of what was found.

Every model is judged by a standard curve, and one with calibrating statements by those too; the rules are in docs/uncertainty.md.

    retrompi posterior check wmpi        # a row for each kind of data, kept in validate/posteriors/ranks.csv
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrompi.base import paths
from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.inference import ranks
from retrompi.inference.design import Training, sobol
from retrompi.inference.likelihood import Array
from retrompi.inference.problem import PointObservable, PosteriorMember, Problem, ProblemPart, of_model, of_paper
from retrompi.inference.stored_rows import read_rows, write_table
from retrompi.papers.experiments import Look, Seen
from retrompi.papers.judging import curve_checks
from retrompi.papers.statements.claims import papers
from retrompi.papers.statements.paper import find_paper
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.model import RuntimeModel
from retrompi.spec.question import Question, pingpong

__all__ = ["ERROR", "SIZES", "TRAINED", "TRUTHS", "RankCheck", "check", "file", "of", "pool_histograms", "read_checks", "standard", "write"]

SIZES = (0, 16, 64, 256, 1024, 4096, 16384, 32768, 65536, 131072, 262144, 1048576)
"""Sizes (B) of the standard curve."""
ERROR = 0.05
"""Relative error of its points."""
TRAINED, TRUTHS = 300, 100
REPETITIONS = 10
LONGEST_S = 30.0
INFORMED = 0.8
"""The share of the prior's variance below which a parameter counts as informed by the data."""
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class RankCheck:
    """A row of the table; coverages are of 90 % intervals, histograms counts of ranks in ten equal bins, errors root mean squares over
    the observables. ``data``: what the model was judged by."""

    model: str
    data: str
    where: str
    truths: int
    incomplete: int
    parameters: int
    seen: int
    informed: int
    coverage: float
    coverage_seen: float
    coverage_informed: float
    coverage_discrepancy: float
    p_seen: float
    error_stated: float
    error_actual: float
    r_hat: float
    ess: float
    ranks: str
    ranks_seen: str
    seed: int

    @property
    def right(self) -> bool:
        """Whether the pooled coverage is 85 to 95 %."""
        return 0.85 <= self.coverage <= 0.95


def file() -> Path:
    """The stored table of the shipped models."""
    return paths.validate_dir() / "posteriors" / "ranks.csv"


def read_checks(path: Path | None = None) -> dict[tuple[str, str], RankCheck]:
    """(model, data) -> row of the table; empty without one. Raises InputError for a file that cannot be read."""
    return {(c.model, c.data): c for c in read_rows(path or file(), RankCheck, "ranks")}


def write(rows: Sequence[RankCheck], path: Path | None = None) -> Path:
    """Replaces these rows in the table and keeps the others. Raises InputError if it cannot be written."""
    path = path or file()
    every = {**read_checks(path), **{(c.model, c.data): c for c in rows}}
    write_table(path, RankCheck, [every[key] for key in sorted(every)], "ranks")
    return path


# --- what a model is judged by -----------------------------------------------------------------------------------------------------


def _curve(question: Question) -> Seen:
    times = {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in simulate.benchmark(question)}
    return [], {"curves": {"standard": curve_checks.facts_of(SIZES, times)}}


def standard(cls: type[RuntimeModel], platform: str = "") -> Problem:
    """The standard curve of a model on the first platform of its calibrated range (or ``platform``), between two hosts where it joins
    them, otherwise on one. Raises UsageError if it runs on neither."""
    on = platform or registry.own_platform(cls)
    why = ""
    for placement in ("distributed", "shared"):
        asked = Question(cls.name, on, pingpong(SIZES, REPETITIONS, 1), placement, idle_overrides=True)
        asked = asked.with_(bounds=Bounds(wall_s=LONGEST_S))
        try:
            nominal = {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in simulate.benchmark(asked)}
        except RetrompiError as error:
            why = str(error)
            continue
        base = cls.name.partition(":")[0]
        points = tuple(PointObservable("standard", base, size, nominal[size], ERROR) for size in SIZES)
        part = ProblemPart(f"{on} {placement}", (Look("standard", asked, _curve),), points)
        return Problem(cls.name, on, (part,), (PosteriorMember(cls.name, Path(), base, (), (0,), ()),), ())
    raise UsageError(f"'{cls.name}' completes no PingPong on '{on}': {why}", code="not-completed")


def of(what: str, platform: str = "") -> dict[str, Problem]:
    """Kind of data -> problem: the standard curve of a model, and the statements and curves that its calibration sees, with those of the
    models that share its posterior; of a paper the latter. Raises UsageError for an unknown name."""
    if what in papers():
        found = of_paper(find_paper(what))
        return {f"fit of {', '.join(m.name for m in one.members)}": one for one in found}
    cls = registry.model(what)
    told = {"standard curve": standard(cls, platform)}
    on = platform or registry.own_platform(cls)
    try:
        own = of_model(what, on)
        told[f"statements of {', '.join(m.name for m in own.members)}"] = own
    except UsageError:
        return told  # it has none
    return told


def check(
    problem: Problem, data: str, *, seed: int = 1, trained: int = TRAINED, progress: Progress | None = None
) -> tuple[RankCheck, ranks.Ranks]:
    """Simulates the ``trained`` training runs and truths that are not known yet, and judges the ranks. The same seed gives the same row.

    Raises InputError if too few runs complete for an emulator.
    """
    dims = len(problem.priors)
    design = np.concatenate([sobol(dims, trained, seed), np.random.default_rng([seed, 1]).uniform(size=(TRUTHS, dims))])
    total = len(design) * len(problem.parts)
    y, blocks, at = [], [], 0
    for i, part in enumerate(problem.parts):
        own = problem.dims(part)
        y.append(Training(part).at(design[:, own], progress, i * len(design), total))
        blocks.append(ranks.Block(own, range(at, at + len(part.observables))))
        at += len(part.observables)
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):  # matrices are small: threads of the linear algebra would only wait for each other
            found = ranks.check(design, np.concatenate(y, axis=1), problem.data, blocks=blocks, truths=TRUTHS, seed=seed)
    except ValueError as error:
        raise InputError(f"'{problem.of}', {data}: {error}", code="not-completed") from None
    return _row(problem, data, found, seed), found


def _row(problem: Problem, data: str, found: ranks.Ranks, seed: int) -> RankCheck:
    every, seen = found.judge_columns(range(found.dims)), found.judge_columns(found.seen)
    informed = [i for i in found.seen if found.left[i] < INFORMED]
    sigma = found.judge_columns(range(found.dims, found.dims + found.deviations))
    return RankCheck(
        problem.of, data, problem.parts[0].name if data == "standard curve" else problem.platform or problem.of, len(found.ranks),
        found.skipped, found.dims, len(found.seen), len(informed), _r(every.coverage), _r(seen.coverage),
        _r(found.judge_columns(informed).coverage), _r(sigma.coverage), _r(seen.p), _rms(found.error), _rms(found.actual), _r(found.r_hat),
        round(found.ess), _text(every.histogram), _text(seen.histogram), seed,
    )


def _r(value: float) -> float:
    return round(float(value), 4)


def _rms(values: Array) -> float:
    return _r(float(np.sqrt(np.mean(values**2))))


def _text(counts: Sequence[int]) -> str:
    return " ".join(map(str, counts))


def pool_histograms(rows: Mapping[tuple[str, str], RankCheck]) -> list[int]:
    """The histogram of all rows together, of the parameters that are seen."""
    return [sum(int(c.ranks_seen.split()[i]) for c in rows.values()) for i in range(ranks.BINS)]
