"""A program on one of the three backends, on several of them, and on several runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Report, Row, Table, as_store, reporting, texts
from retrompi.base.errors import UsageError
from retrompi.base.units import parse
from retrompi.sim.cautions import Caution
from retrompi.spec import needs

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi.measure.compare import Comparison as Compared
    from retrompi.measure.launch import Execution as Executed
    from retrompi.store import Store
    from retrompi.studies.compare.compare_runtimes import Candidates, DrawnComparison, RuntimeRow
    from retrompi.studies.execute.run import Executor

__all__ = ["Comparison", "Execution", "Runtimes", "compare", "compare_runtimes", "run"]

Backend = Literal["native", "smpi", "model"]
RUN_LIMIT = "600s"
"""The wall time of a program, unless another is given."""


class Execution(Table):
    """A program's run on a backend: a row for the whole MPI part (section ""), then one for each section; times in s.

    >>> retrompi.run("examples/pingpong.c", model="wmpi").rows[0]["median_s"]    # doctest: +SKIP
    """

    def __init__(self, done: Executed) -> None:
        self.done = done
        """Everything about it: machine, noise, calls, output, notes."""

    @property
    def title(self) -> str:
        """Program, ranks, backend, runtime."""
        model = f", {self.done.model} on {self.done.platform}" if self.done.model else ""
        return f"{self.done.program}, {self.done.ranks} ranks, {self.done.backend}{model}"

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about a simulated run; ``done.notes`` has those about a measurement."""
        return tuple(self.done.cautions)

    @property
    def rows(self) -> Sequence[Row]:
        """section, parts, n (repetitions), min_s, q25_s, median_s, q75_s, p95_s, max_s."""
        from retrompi.measure.launch.stats import summary

        def row(section: str, parts: int, samples: Sequence[float]) -> Row:
            told = summary(samples)
            return {"section": section, "parts": parts, "n": told.pop("n"), **{f"{k}_s": v for k, v in told.items()}}

        whole = [row("", 1, self.done.samples_s)] if self.done.samples_s else []
        return whole + [row(label, self.done.parts.get(label, 1), samples) for label, samples in self.done.sections.items()]

    @property
    def calls(self) -> Table:
        """The profile: call, size_B, section, count, seconds (all ranks), mean_s, share of the time in MPI."""
        total = sum(c.seconds for c in self.done.calls)
        return Rows(f"MPI calls of {self.title}", [
            {"call": c.call, "size_B": c.size_B, "section": c.section, "count": c.count, "seconds": c.seconds,
             "mean_s": c.seconds / c.count, "share": c.seconds / total if total else 0.0} for c in self.done.calls
        ])

    @property
    def outcome(self) -> str:
        """``completed``, or ``failed``, ``killed``, ``timeout``, ``limit``, ``deadlock``, ``aborted``, ``failed-start``."""
        return self.done.outcome

    @property
    def run_id(self) -> int | None:
        """The number of the run in the store."""
        return self.done.run_id


class Rows(Table):
    """A table made from a title and finished rows."""

    def __init__(self, title: str, rows: Sequence[Row]) -> None:
        self._title, self._rows = title, rows

    @property
    def title(self) -> str:
        """The table in a few words, e.g. for a heading."""
        return self._title

    @property
    def rows(self) -> Sequence[Row]:
        """The rows it was made from."""
        return self._rows


class Comparison(Table):
    """A program on several backends: a row for each section and for the whole (times in s, errors relative to the reference).

    >>> retrompi.compare("examples/pingpong.c", model="mpich").rows[0]["model_to_native"]    # doctest: +SKIP
    """

    def __init__(self, found: Compared) -> None:
        self.found = found
        """Everything about it: executions, calls, the origin of the difference, warnings."""

    @property
    def title(self) -> str:
        """Program, ranks, backends."""
        return f"{self.found.program}, {self.found.ranks} ranks, {', '.join(self.found.executions)}"

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about the executions: reasons why they cannot be compared, and the notes of each."""
        from retrompi.measure.compare import cautions

        return tuple(cautions(self.found))

    @property
    def rows(self) -> Sequence[Row]:
        """section, size_B, parts, use; native_s, smpi_s, model_s, band_low_s, band_high_s (s); model_to_native and the like, which are
        time / reference - 1."""
        return [r.row(self.found.pairs) for r in (*self.found.sections, self.found.whole)]

    @property
    def errors(self) -> Table:
        """The distribution of the relative errors of each pair of backends: median, p95, worst, bias, share inside the noise."""
        return Rows(f"errors of {self.title}", self.found.distributions())

    def plot(self, what: Literal["curves", "distribution", "origin"] = "curves") -> go.Figure:
        """A Plotly figure: the times, the errors' distribution, or the origin of the difference. UsageError where there is none."""
        from retrompi.render.pages import compare_page

        found = compare_page.figures(self.found)
        if what not in found:
            raise UsageError(f"no figure of '{what}'; this comparison has {', '.join(found)}", code="unknown-name")
        return found[what]


class Runtimes(Table):
    """A program on several runtimes: a row for each, the fastest first (times in s; relative: time / that of the fastest).

    >>> retrompi.compare_runtimes("ring", ["wmpi", "hpvm"], arguments={"size": "1KiB", "reps": 3}).rows[0]["model"]
    'wmpi'
    """

    def __init__(self, store: Store, candidates: Candidates, found: Sequence[RuntimeRow], drawn: DrawnComparison | None = None) -> None:
        self.store, self.candidates, self.found, self.drawn = store, candidates, found, drawn

    def uncertainty(self, level: float = 0.9, draws: int = 100, progress: Progress | None = None, fresh: bool = False) -> Runtimes:
        """The same comparison over ``draws`` draws of what is uncertain: rows with intervals at ``level``, and `statements`."""
        from retrompi.studies.compare import compare_runtimes as comparing
        from retrompi.studies.draws.uncertainty import Spec, ensemble

        asked = comparing.questions_of(self.candidates, self.found)
        with reporting(progress, "draws") as report:
            told = ensemble(self.store, list(asked.values()), Spec(level, draws), report, fresh)
        drawn = comparing.with_draws(self.candidates, self.found, dict(zip(asked, told, strict=True)))
        return Runtimes(self.store, self.candidates, drawn.rows, drawn)

    @property
    def title(self) -> str:
        """The program, how many runtimes, and on how many platforms."""
        models, platforms = ({getattr(r, key) for r in self.found} for key in ("model", "platform"))
        return f"{self.candidates.base.name} on {len(models)} runtimes" + (f" and {len(platforms)} platforms" if len(platforms) > 1 else "")

    @cached_property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about the runs; ``about`` names the runtimes that a caution concerns, unless it concerns all."""
        from retrompi.studies.compare.compare_runtimes import cautions, cautions_of_draws

        drawn = [] if self.drawn is None else cautions_of_draws(self.candidates, self.drawn)
        return (*cautions(self.candidates, self.found), *drawn)

    @property
    def rows(self) -> Sequence[Row]:
        """model, platform, outcome, reason, time_s, relative, in_mpi, computing (shares), messages, packets, run_id, found, fiction (what
        is said of a pair that never was), and each metric; with draws time_s_low, time_s_high, ..."""
        return [r.row() for r in self.found]

    @property
    def statements(self) -> list[str]:
        """A sentence for each pair of neighbours in the ranking, with the certainty of their order; empty without draws."""
        return [] if self.drawn is None else self.drawn.lines()

    @cached_property
    def causes(self) -> list[str]:
        """Why the fastest is faster than the next one, in words: the first line names the two, each further one a mechanism. Both are
        simulated once more, with their critical paths; empty with fewer than two that completed."""
        from retrompi.studies.compare.compare_runtimes import causes

        return causes(self.candidates, self.found)

    def plot(self) -> go.Figure:
        """A Plotly figure: the times of all pairs as a matrix of platforms and runtimes."""
        from retrompi.render.pages import runtimes_page

        return runtimes_page.figures(self.found, self.title)["matrix"]


@check_arguments
def run(
    program: str | Path, arguments: Sequence[str] = (), *, ranks: int = 2, backend: Backend | None = None, model: str | Path | None = None,
    platform: str | Path | None = None, mode: str | None = None, set: Mapping[str, str | float] | None = None,
    fidelity: Literal["mechanism", "curve", "loggp"] = "mechanism", repetitions: int = 10, store: Store | Path | str | None = None,
    what_if_hardware: bool = False, fresh: bool = False, progress: Progress | None = None,
) -> Execution:
    """Runs a program (a source file, a binary or an mpi4py script): natively, on SMPI, or recorded and replayed on a runtime model.

    ``backend`` is ``native`` (this machine; ``repetitions`` runs are measured), ``smpi`` or ``model`` (default: model with ``model``, else
    native). A program that fails, hangs or deadlocks is a result; ``outcome`` says how it ended. Raises UsageError for a wrong name,
    BackendError (a RetrompiError) for a program that cannot be built or started, or a backend that is not installed.
    ``what_if_hardware`` accepts a platform on which the model cannot have run; the answer calls it a fiction.

    >>> retrompi.run("examples/jacobi.c", ranks=4, model="wmpi", platform="nt-cluster").rows[0]["median_s"]    # s  # doctest: +SKIP
    """
    from retrompi.measure import launch

    on = backend or ("model" if model is not None else "native")
    with reporting(progress, Path(program).name) as report, needs.asking(what_if_hardware or needs.allows_fiction()):
        return Execution(launch.run(
            as_store(store), on, str(program), arguments, ranks, set=texts(set or {}), model=None if model is None else str(model),
            platform=None if platform is None else str(platform), mode=mode, fidelity=fidelity, repetitions=repetitions,
            timeout_s=None if on == "model" else parse(RUN_LIMIT, "s"), fresh=fresh, report=report,
        ))


@check_arguments
def compare(
    program: str | Path, arguments: Sequence[str] = (), *, ranks: int = 2, model: str | Path | None = None,
    platform: str | Path | None = None, backends: Sequence[Backend] = ("native", "smpi", "model"), repetitions: int = 10,
    what_if_hardware: bool = False, store: Store | Path | str | None = None, fresh: bool = False, progress: Progress | None = None,
) -> Comparison:
    """Runs a program on several backends and compares them: prediction against measurement (docs/compare.md).

    Errors are relative to the native time, or to SMPI's without one; ``repetitions`` native runs give the noise;
    ``what_if_hardware`` as in `run`. Raises what `run` raises.

    >>> retrompi.compare("examples/pingpong.c", model="mpich", backends=["native", "model"]).errors.rows    # doctest: +SKIP
    """
    from retrompi.measure import compare as comparing

    with reporting(progress, "comparing") as report, needs.asking(what_if_hardware or needs.allows_fiction()):
        return Comparison(comparing.compare(
            as_store(store), str(program), arguments, ranks, model=None if model is None else str(model),
            platform=None if platform is None else str(platform), backends=backends, repetitions=repetitions, fresh=fresh, report=report,
        ))


@check_arguments
def compare_runtimes(
    program: str | Path, models: Sequence[str], *, platforms: Sequence[str] = (), ranks: int | None = None, mode: str | None = None,
    platform: str | Path | None = None, arguments: Mapping[str, str | float] | None = None, metrics: Sequence[str] = (),
    what_if_hardware: bool = False, store: Store | Path | str | None = None, fresh: bool = False, jobs: int | None = None,
    progress: Progress | None = None,
) -> Runtimes:
    """Runs a program on several runtimes: a scenario's name, a trace, or a generator such as ``ring`` with its ``arguments``.

    ``platform`` is that of all runtimes, ``platforms``: each runtime on each of them, and on ``platform`` (default: the scenario's, or the
    first runtime's own); ``all`` and ``own`` among them stand for what they do in the command. ``metrics`` are further columns
    (``time@1MiB``); ``what_if_hardware`` as in `run`. A runtime that cannot run the program is a row with the reason. Raises UsageError
    for a wrong name.

    >>> retrompi.compare_runtimes("ring", ["wmpi", "hpvm"], arguments={"size": "1KiB", "reps": 3}).frame    # time_s: s  # doctest: +SKIP
    """
    from retrompi.studies.compare import compare_runtimes as comparing
    from retrompi.studies.define import metrics as known
    from retrompi.studies.define.keys import ranks_of
    from retrompi.studies.execute.worker_pool import WorkerPool

    models = comparing.runtimes(models)
    if platform is not None and platforms:
        platforms = tuple(dict.fromkeys((str(platform), *platforms)))
    first = next((p for p in platforms if p not in comparing.SEVERAL), None if platform is None else str(platform))
    given = [f"{key}={value}" for key, value in (arguments or {}).items()]
    with needs.asking(what_if_hardware or needs.allows_fiction()):
        base = comparing.program(str(program), given, models[0], first, mode, ranks)
    if platforms:
        platforms = comparing.platforms_of(platforms, (), ranks_of(base), models)
    candidates = comparing.Candidates(base, models, platforms, [known.parse(m) for m in metrics])
    with reporting(progress, "comparing") as report, WorkerPool(jobs) as executor:
        return runtimes_of(as_store(store), candidates, executor, fresh, report)


def runtimes_of(store: Store, candidates: Candidates, executor: Executor, fresh: bool, report: Report) -> Runtimes:
    """The comparison of the candidates."""
    from retrompi.studies.compare.compare_runtimes import rows

    return Runtimes(store, candidates, rows(store, candidates, executor=executor, fresh=fresh, report=report))
