"""Searches over several keys of a scenario at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.api.answering import Answer, Asking, asking_in, cautions_of, metric_of, scenario_of
from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Row, texts
from retrompi.sim.cautions import Caution
from retrompi.spec import needs

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi.store import Store
    from retrompi.studies.define.axes import Axis
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.search.optimise import Optimum

__all__ = ["Search", "optimise", "search_of"]


class Search(Answer):
    """A search for the best value of a metric: a row for each trial, with its keys, the metric (``unit``), outcome and run_id.

    >>> found = retrompi.optimise("bf-wmpi-shared", {"wmpi.event": "1us..100us"}, metric="time@4KiB",
    ...                           set={"trace.sizes": "4KiB", "trace.reps": 2}, trials=4)
    >>> found.best["wmpi.event"], found.best["time@4KiB"]    # s
    ('...us', ...)
    """

    def __init__(self, scenario: Scenario, metric: Metric, found: Optimum, overs: Sequence[Axis], warnings: Sequence[Caution]) -> None:
        super().__init__(scenario, metric, warnings)
        self.found, self.overs = found, overs

    @property
    def title(self) -> str:
        """The metric and the keys of the search."""
        return f"{self.scenario.name}: {self.metric.label}, the {'largest' if self.metric.more_is_better else 'smallest'}"

    @cached_property
    def rows(self) -> Sequence[Row]:
        """The trials; number 0 is the scenario as it is."""
        return [t.row(self.overs, self.metric) for t in (self.found.base, *self.found.trials)]

    @property
    def best(self) -> Row:
        """The row of the best of them. Raises UsageError if no run has a number."""
        from retrompi.base.errors import UsageError

        if self.found.best is None:
            raise UsageError(f"no trial has {self.metric.label}; .rows has the reasons", code="not-a-number")
        return self.found.best.row(self.overs, self.metric)

    def plot(self) -> go.Figure:
        """The metric of every trial and the best so far, in its unit."""
        import plotly.graph_objects as go

        from retrompi.render.figures.figures import AXIS, PALETTE, layout
        from retrompi.render.figures.sweep_figures import metric_axis

        having = [r for r in self.rows if r[self.metric.name] is not None]
        values = [float(r[self.metric.name]) for r in having]
        best: list[float] = []
        for value in values:
            best.append(value if not best else max(best[-1], value) if self.metric.more_is_better else min(best[-1], value))
        at = [r["trial"] for r in having]
        hover = [", ".join(f"{o.key}={r[o.key]}" for o in self.overs if r[o.key]) for r in having]
        figure = go.Figure(go.Scatter(x=at, y=values, mode="markers", name="trial", text=hover, marker={"color": PALETTE[0], "size": 8}))
        figure.add_scatter(x=at, y=best, mode="lines", line={"shape": "hv", "color": PALETTE[1]}, name="best so far")
        layout(figure, self.title)
        figure.update_layout(xaxis={**AXIS, "title": {"text": "trial"}}, yaxis=metric_axis(self.metric, self.metric.label, values))
        return figure


@check_arguments
def optimise(
    scenario: str | Path, over: Mapping[str, str | Sequence[str | float]], *, metric: str = "time", trials: int = 60, seed: int = 1,
    set: Mapping[str, str | float] | None = None, what_if_hardware: bool = False, store: Store | Path | str | None = None,
    fresh: bool = False, jobs: int | None = None, progress: Progress | None = None,
) -> Search:
    """Searches for the least time, or the largest bandwidth, over several keys of a scenario at once (Optuna).

    ``over`` has a range (``"16KiB..1MiB"``, ``":log"`` or ``":linear"`` after it) or a list of values for each key. ``seed`` is that of the
    search and decides its trials, whatever the number of processes ``jobs`` (default: one a processor); runs that are stored are not
    simulated again, so that more ``trials`` continue a search. ``what_if_hardware`` as in `sweep`. ``progress``
    is called with (done, all, what); True shows a bar. Raises UsageError for a wrong key or range, and without the package optuna.

    >>> keys = {"platform.host.quantum": "10ms..200ms", "model": ["wmpi", "winmpich"]}
    >>> short = {"trace.sizes": "4KiB", "trace.reps": 2}
    >>> retrompi.optimise("bf-wmpi-shared", keys, metric="time@4KiB", trials=4, set=short).best["outcome"]    # its "time@4KiB" is in s
    'completed'
    """
    from retrompi.studies.search import optimise as searching

    with needs.asking(what_if_hardware or needs.allows_fiction()):
        base = scenario_of(scenario, texts(set or {}))
        wanted = metric_of(metric, "time", base)
        overs = searching.space(base, [f"{k}={v if isinstance(v, str) else ','.join(map(str, v))}" for k, v in over.items()])
        return search_of(base, wanted, overs, asking_in(store, fresh, jobs, progress, "optimise"), trials=trials, seed=seed)


def search_of(base: Scenario, metric: Metric, overs: Sequence[Axis], asking: Asking, *, trials: int, seed: int) -> Search:
    """The search over the keys ``overs``."""
    from retrompi.studies.define import case
    from retrompi.studies.search.optimise import optimise

    with asking(base, metric, trials + 1) as ask:
        found = optimise(ask, overs, trials=trials, seed=seed, more_is_better=metric.more_is_better)
        ends = [base, *(case.apply(base, {over.key: end}) for over in overs for end in over.ends)]
        return Search(base, metric, found, overs, cautions_of(ask, ends))
