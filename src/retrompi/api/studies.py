"""Studies: many runs over the combinations of their axes, stored as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Row, Table, as_store, reporting, texts
from retrompi.sim.cautions import Caution
from retrompi.spec import needs

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi.store import Store
    from retrompi.studies.execute.design import Study
    from retrompi.studies.execute.run import StudyRun
    from retrompi.studies.read.stored_study import StoredStudy
    from retrompi.studies.read.view import View

__all__ = ["StudyResult", "study", "sweep"]

Values = str | float | Sequence[str | float]


class StudyResult(Table):
    """A study that has been run: a row for each point, with its axes, outcome, times (s) and reason.

    >>> told = retrompi.sweep("bf-wmpi-shared", {"model": ["wmpi", "hpvm"]}, set={"trace.sizes": "1KiB", "trace.reps": 5})
    >>> [row["outcome"] for row in told.rows]
    ['completed', 'completed']
    """

    def __init__(self, store: Store, told: StudyRun, level: float = 0.9) -> None:
        self.store, self.told, self.level = store, told, level

    @cached_property
    def stored(self) -> StoredStudy:
        """The study with its points and runs."""
        from retrompi.studies.read import stored_study

        return stored_study.read(self.store, str(self.told.study_id))

    @property
    def title(self) -> str:
        """The study's name."""
        return str(self.store.study(self.told.study_id)["name"])

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about the points; ``about`` says how many of them a caution concerns, unless it concerns all."""
        from retrompi.studies.read.cautions import of_study
        from retrompi.studies.read.interval_reasons import of_view

        return (*of_study(self.store, self.told), *(of_view(self.view()) if self.told.draws else ()))

    @property
    def rows(self) -> Sequence[Row]:
        """The points: position, their axes, outcome, reason, run_id, time_s (simulated, s), ranks, messages, wall_s (s), identity.

        With draws those of the nominal values, with time_s_low and time_s_high (s), the interval at ``level``, and completed, the share
        of the draws that completed.
        """
        from retrompi.studies.execute.design import DRAW
        from retrompi.studies.read import results

        if not self.told.draws:
            return results.rows(self.store, self.told.study_id)
        times = {r["position"]: r for r in self.view("time").rows}
        out = []
        for row in self.stored.rows:
            mine = times[row["position"]]
            both = {"time_s_low": mine["low"], "time_s_high": mine["high"], "completed": mine["completed"]}
            out.append({k: v for name in row if name != DRAW for k, v in ({name: row[name]} | (both if name == "time_s" else {})).items()})
        return out

    def view(self, metric: str | None = None, level: float | None = None) -> View:
        """The points with the values of a metric (``time@1MiB``, ...) in its unit, with intervals if there are draws."""
        return self.stored.view(metric, self.level if level is None else level)

    def values(self, metric: str) -> list[float | None]:
        """The metric of every point, in its unit; None where the run did not complete."""
        return [row["value"] for row in self.view(metric).rows]

    def plot(self, metric: str | None = None) -> go.Figure:
        """The study's first figure: curves over its longest axis, or a heat map of two."""
        from retrompi.render.figures.sweep_figures import choose
        from retrompi.render.pages import study_page

        drawn = study_page.figures(view := self.view(metric), choose(view)[:1])
        return next(figure for named in drawn.values() for figure in named.values())


def _texts(axes: Mapping[str, Values]) -> dict[str, str | list[str]]:
    return {k: v if isinstance(v, str) else [str(one) for one in v] if isinstance(v, Sequence) else str(v) for k, v in axes.items()}


def _run(study: Study, store: Store | Path | str | None, fresh: bool, jobs: int | None, progress: Progress | None) -> StudyResult:
    from retrompi.studies.execute.run import run_study
    from retrompi.studies.execute.worker_pool import WorkerPool

    at = as_store(store)
    with reporting(progress, study.name) as report:
        return StudyResult(at, run_study(at, study, executor=WorkerPool(jobs), fresh=fresh, report=report))


@check_arguments
def sweep(
    scenario: str | Path, vary: Mapping[str, Values], *, set: Mapping[str, str | float] | None = None, sample: str = "", draws: int = 0,
    what_if_hardware: bool = False, store: Store | Path | str | None = None, fresh: bool = False, jobs: int | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Varies a scenario over all combinations of the axes; points that are stored are not simulated again.

    ``vary`` has the values of each key, as a list or as text: ``{"wmpi.packet": "64KiB..1MiB:x2", "model": ["wmpi", "hpvm"]}``.
    ``sample`` draws points instead (``"lhs:200"``); ``draws`` adds draws of the uncertain parameters to each point; ``jobs`` processes
    (default: one a processor). ``what_if_hardware`` accepts platforms on which a model cannot have run. ``progress`` is called with (done,
    all, what); True shows a bar. Raises UsageError for an unknown key or a wrong value.

    >>> axes = {"wmpi.packet": ["64 KiB", "256 KiB"]}
    >>> retrompi.sweep("bf-wmpi-shared", axes, set={"trace.sizes": "512KiB", "trace.reps": 5}).values("time@512KiB")    # s
    [..., ...]
    """
    from retrompi.studies.execute import design

    with needs.asking(what_if_hardware or needs.allows_fiction()):
        made = design.from_command(str(scenario), _texts(vary), (), texts(set or {}), sample=sample)
    return _run(replace(made, draws=draws), store, fresh, jobs, progress)


@check_arguments
def study(
    name: str | Path, *, draws: int = 0, what_if_hardware: bool = False, store: Store | Path | str | None = None, fresh: bool = False,
    jobs: int | None = None, progress: Progress | None = None,
) -> StudyResult:
    """Runs a study by name (``retrompi study list``) or TOML file; what is stored is not simulated again. ``what_if_hardware`` as in
    `sweep`.

    >>> retrompi.study("proxy-cost").frame    # time_s: s  # doctest: +SKIP
    """
    from retrompi.studies.execute import design

    with needs.asking(what_if_hardware or needs.allows_fiction()):
        made = design.study(str(name))
    return _run(replace(made, draws=draws), store, fresh, jobs, progress)
