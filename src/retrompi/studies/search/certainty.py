"""Words about certainty: in how many draws of an ensemble one side is ahead, where it overtakes the other, how far a key can move.

A statement is about draws: draw i of one run and draw i of another have the same values of the parameters that both use, so that what is
common to them cancels. Draws in which a side does not complete are counted, never left out.

Searches run once a draw (`together`): all of them at once, their requests as one batch, which a `DrawnAsker` answers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from retrompi.base.units import format_bytes
from retrompi.sim.resolved import Resolved
from retrompi.studies.define import case
from retrompi.studies.draws.uncertainty import (
    Interval,
    Spec,
    interval,
    log_computation,
    log_discrepancy,
    log_job,
    sets_of,
    with_discrepancy,
)
from retrompi.studies.execute.run import runs_of
from retrompi.studies.search.breakeven import BreakEven, Rules
from retrompi.studies.search.reading import Asker, NoNumber, Reading

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.execute.run import Executor
    from retrompi.studies.search.tolerance import Tolerance

__all__ = ["WIDTH", "Ahead", "Change", "Crossed", "Distance", "DrawnAsker", "ahead", "better", "coarser", "distances", "merge_crossings",
           "together"]

T = TypeVar("T")
_FASTER = {"time": "", "bandwidth": "", "latency": " at the smallest size", "peak": " at its best size", "section": " in the section",
           "start": " to start"}
"""Kind of metric -> where the side that is ahead is faster."""
WIDTH = 0.05
"""How narrow, relative to the value, the intervals of a search in a draw are: what lies inside is interpolated."""
Ask = Callable[[Sequence[Any]], Sequence[Any]]


# --- which side is ahead -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ahead:
    """In how many draws ``a`` or ``b`` is ahead, both are equal, only one of them completes, or neither."""

    a: int
    b: int
    equal: int
    only_a: int
    only_b: int
    neither: int

    @property
    def draws(self) -> int:
        """All draws."""
        return self.a + self.b + self.equal + self.only_a + self.only_b + self.neither

    def winner(self, level: float) -> str:
        """``a`` or ``b``, if it alone completes or is ahead in so many draws that a central interval of ``level`` of the difference
        leaves out equality; otherwise empty."""
        enough = (1 + level) / 2 * self.draws - 1e-9
        for side, count in (("a", self.a + self.only_a), ("b", self.b + self.only_b)):
            if count >= enough:
                return side
        return ""

    def sentence(self, names: tuple[str, str], metric: Metric, level: float) -> str:
        """The statement in words, with its share of draws."""
        side = self.winner(level)
        first, second = names if side != "b" else names[::-1]
        counts = (self.a, self.b) if side != "b" else (self.b, self.a)
        if side:
            line = f"{first} {better(metric, second)}: in {counts[0]} of {self.draws} draws"
        else:
            line = (f"whether {first} or {second} {better(metric)} is not determined: {first} in {self.a}, {second} in {self.b} of "
                    f"{self.draws} draws")
        odd = [(self.equal, "they are equal"), (self.only_a, f"only {names[0]} completes"), (self.only_b, f"only {names[1]} completes"),
               (self.neither, "neither completes")]
        return "; ".join([line, *(f"in {n} {what}" for n, what in odd if n)])

    def row(self) -> dict[str, int]:
        """The counts."""
        return {"draws": self.draws, "a_ahead": self.a, "b_ahead": self.b, "equal": self.equal, "only_a": self.only_a,
                "only_b": self.only_b, "neither": self.neither}


def ahead(a: Sequence[float | None], b: Sequence[float | None], more_is_better: bool) -> Ahead:
    """Compares the sides draw by draw; None: it did not complete in that draw."""
    count: Counter[str] = Counter()
    for x, y in zip(a, b, strict=True):
        if x is None or y is None:
            count["neither" if x is y else "only_b" if x is None else "only_a"] += 1
        else:
            count["equal" if x == y else "a" if (x > y) == more_is_better else "b"] += 1
    return Ahead(*(count[k] for k in ("a", "b", "equal", "only_a", "only_b", "neither")))


def better(metric: Metric, than: str = "") -> str:
    """The predicate of a side that is ahead: ``is faster than hpvm at 64 KiB``, ``has the larger peak``."""
    at = "" if metric.size_B is None else f" at {format_bytes(metric.size_B)}"
    to = f" than {than}" if than else ""
    if metric.kind in _FASTER:
        return f"is faster{to}{at}{_FASTER[metric.kind]}"
    if metric.unit == "count" or metric.kind == "bytes":
        return f"has {'more' if metric.more_is_better else 'fewer'} {metric.label}{to}"
    return f"has the {'larger' if metric.more_is_better else 'smaller'} {metric.label.partition(',')[0]}{to}"


# --- searches, once a draw -----------------------------------------------------------------------------------------------------


class _Stopped(Exception):
    """The searches are no longer wanted."""


class _Search(Generic[T]):
    """A search in a thread of its own, which waits whenever it asks."""

    def __init__(self, work: Callable[[Ask], T], said: SimpleQueue[int], number: int) -> None:
        self.said, self.number = said, number
        self.answers: SimpleQueue[Sequence[Any] | None] = SimpleQueue()
        self.asked: Sequence[Any] | None = None
        self.result: T | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()

    def _run(self, work: Callable[[Ask], T]) -> None:
        try:
            self.result = work(self._ask)
        except BaseException as error:  # told to whoever waits for the result
            self.error = error
        self.asked = None
        self.said.put(self.number)

    def _ask(self, points: Sequence[Any]) -> Sequence[Any]:
        self.asked = list(points)
        self.said.put(self.number)
        answer = self.answers.get()
        if answer is None:
            raise _Stopped
        return answer


def together(searches: Sequence[Callable[[Ask], T]], evaluate: Callable[[Sequence[tuple[int, Any]]], Sequence[Any]]) -> list[T | NoNumber]:
    """The results of ``searches``, each called with a function that evaluates points; a search that has none gives its `NoNumber`.

    Whenever all that are not finished have asked, ``evaluate`` gets (number of the search, point) of them all, in this thread.
    """
    said: SimpleQueue[int] = SimpleQueue()
    running = [_Search(work, said, i) for i, work in enumerate(searches)]
    waiting: list[_Search[T]] = []
    left = len(running)
    try:
        while left:
            search = running[said.get()]
            if search.asked is not None:
                waiting.append(search)
            elif search.error is not None and not isinstance(search.error, NoNumber):
                raise search.error
            else:
                left -= 1
            if left and len(waiting) == left:
                waiting.sort(key=lambda s: s.number)
                answers = iter(evaluate([(s.number, point) for s in waiting for point in s.asked or ()]))
                now, waiting = waiting, []
                for s in now:
                    s.answers.put([next(answers) for _ in s.asked or ()])
    finally:
        for s in running:
            s.answers.put(None)
            s.thread.join()
    return [s.error if isinstance(s.error, NoNumber) else s.result for s in running]  # type: ignore[misc]


@dataclass
class DrawnAsker:
    """Evaluates points of a scenario in draws, as `retrompi.studies.search.reading.Asker` does without: called with (draw, ``{key: text}``)
    of each. The metric has the model's discrepancy in that draw; a number that the point sets is not drawn.
    """

    store: Store
    scenario: Scenario
    metric: Metric
    executor: Executor
    spec: Spec
    fresh: bool = False
    report: Callable[[int, int, str], None] = lambda done, total, what: None
    expected: int = 0
    _made: dict[tuple[tuple[str, str], ...], tuple[Scenario, Resolved]] = field(default_factory=dict)
    _known: dict[tuple[int, tuple[tuple[str, str], ...]], Reading] = field(default_factory=dict)
    _done: int = 0

    @classmethod
    def like(cls, ask: Asker, spec: Spec) -> DrawnAsker:
        """One for the same scenario, metric, store and workers."""
        return cls(ask.store, ask.scenario, ask.metric, ask.executor, spec, ask.fresh, ask.report, ask.expected * spec.draws)

    def __call__(self, points: Sequence[tuple[int, Mapping[str, str]]]) -> list[Reading]:
        """The readings of ``points``, in their order. Raises what a scenario that is wrong in every draw raises."""
        names = [(draw, tuple(sorted(point.items()))) for draw, point in points]
        new = [n for n in dict.fromkeys(names) if n not in self._known]
        if new:
            before = self._done

            def report_draw(done: int, total: int, what: str) -> None:
                self._done = before + done
                self.report(self._done, max(self.expected, before + total + 1), what)

            made = [self._scenario_of_draw(draw, point) for draw, point in new]
            found = runs_of(self.store, made, executor=self.executor, fresh=self.fresh, report=report_draw, part_of="draws")
            for name, ran in zip(new, found, strict=True):
                self._known[name] = Reading(self._value(name, ran.run_id), ran.run_id, ran.outcome, ran.reason, ran.found)
        return [self._known[n] for n in names]

    def _nominal(self, point: tuple[tuple[str, str], ...]) -> tuple[Scenario, Resolved]:
        """The scenario at a point, with only the sizes that the metric needs; resolved once, so that what is drawn is found out once."""
        if point not in self._made:
            made = self.metric.shorten(case.apply(self.scenario, dict(point)))
            self._made[point] = made, Resolved.of(made.question())
        return self._made[point]

    def _scenario_of_draw(self, draw: int, point: tuple[tuple[str, str], ...]) -> Scenario:
        made, asked = self._nominal(point)
        return replace(made, drawn=sets_of(asked, draw, self.spec))

    def _value(self, name: tuple[int, tuple[tuple[str, str], ...]], run_id: int | None) -> float | None:
        if run_id is None:
            return None
        draw, point = name
        asked = self._nominal(point)[1]
        run, points, ranks = self.store.run(run_id), self.store.points(run_id), self.store.ranks(run_id)
        sizes = [int(p["size_B"]) for p in points]
        logs = dict(zip(sizes, log_discrepancy(asked, sizes, self.spec)[draw], strict=True)) if sizes else {}
        job, computation = (float(of(asked, self.spec)[draw]) for of in (log_job, log_computation))
        told = with_discrepancy(run, points, ranks, at=lambda size: float(logs[size]), job=job, computation=computation)
        return self.metric.of(*told)


# --- where one side overtakes the other ----------------------------------------------------------------------------------------


def coarser(rules: Rules) -> Rules:
    """The rules of the search in a draw: intervals are narrow enough at `WIDTH`, within which a crossing is interpolated."""
    return replace(rules, tolerance=max(rules.tolerance, WIDTH))


@dataclass(frozen=True)
class Change:
    """A change of the leader along the key, from state ``before`` to ``after``: how many ``draws`` have it, and the interval of the value
    where it happens (base units), the first one in a draw that has several."""

    before: str
    after: str
    draws: int
    value: Interval

    def row(self) -> dict[str, Any]:
        """JSON values."""
        return {"before": self.before, "after": self.after, "draws": self.draws, "estimate_low": self.value.low,
                "estimate_median": self.value.median, "estimate_high": self.value.high}


@dataclass(frozen=True)
class Crossed:
    """A break-even over draws: its ``changes``, the most frequent first; the state of the draws ``without`` any and how many these are; how
    many have ``several``; and at each value (as text) that all draws have, which side is ``ahead``."""

    changes: list[Change]
    without: Mapping[str, int]
    several: int
    ahead: Mapping[str, Ahead]
    spec: Spec

    def row(self) -> dict[str, Any]:
        """JSON values."""
        return {"level": self.spec.level, "draws": self.spec.draws, "changes": [c.row() for c in self.changes],
                "without": dict(self.without), "several": self.several,
                "ahead": [{"text": text, **a.row()} for text, a in self.ahead.items()]}


def merge_crossings(found: Sequence[BreakEven | NoNumber], spec: Spec) -> Crossed:
    """The results of the searches of all draws, combined. A change lies where the ratio of the sides is one between two simulated points,
    or in their middle where a side does not complete."""
    places: dict[tuple[str, str], list[float]] = {}
    without: Counter[str] = Counter()
    known = [f for f in found if not isinstance(f, NoNumber)]
    for one in known:
        if not one.crossings:
            without[one.states[0]] += 1
        first = {(c.before, c.after): c for c in reversed(one.crossings)}
        for states, c in first.items():
            middle = one.scale.middle(c.low.x, c.high.x) or c.high.x
            places.setdefault(states, []).append(middle if c.estimate is None else c.estimate)
    if len(known) < len(found):
        without["neither"] += len(found) - len(known)
    changes = [Change(*states, len(at), interval(at, spec.level)) for states, at in places.items()]
    points = [{p.x: p for p in f.points} for f in known]
    every = sorted(set.intersection(*map(set, points))) if points else []
    more = known[0].more_is_better if known else False
    sides = {points[0][x].text: ahead([p[x].a.value for p in points], [p[x].b.value for p in points], more) for x in every}
    several = sum(len(f.crossings) > 1 for f in known)
    return Crossed(sorted(changes, key=lambda c: (-c.draws, c.before)), dict(without.most_common()), several, sides, spec)


# --- how far a key can move ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Distance:
    """For one share ``slower``: the ``draws`` by status (reached, never, ends; none: the base has no number), and the interval of the
    key's value at which the metric is worse by it (base units), of the draws that reach it."""

    slower: float
    reached: int
    never: int
    ends: int
    none: int
    value: Interval | None

    @property
    def draws(self) -> int:
        """All draws."""
        return self.reached + self.never + self.ends + self.none

    def row(self) -> dict[str, Any]:
        """JSON values."""
        v = self.value
        return {"slower": self.slower, "draws": self.draws, "reached": self.reached, "never": self.never, "ends": self.ends,
                "none": self.none, "estimate_low": v.low if v else None, "estimate_median": v.median if v else None,
                "estimate_high": v.high if v else None}


def distances(found: Sequence[Tolerance | NoNumber], shares: Sequence[float], level: float) -> list[Distance]:
    """The answers over the draws, one for each of ``shares``."""
    told = []
    for i, share in enumerate(shares):
        answers = [None if isinstance(one, NoNumber) else one.answers[i] for one in found]
        count = Counter("none" if a is None else a.status for a in answers)
        values = [a.estimate for a in answers if a is not None and a.estimate is not None]
        told.append(Distance(share, count["reached"], count["never"], count["ends"], count["none"],
                             interval(values, level) if values else None))
    return told
