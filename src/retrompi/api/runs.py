"""Runs: a PingPong curve, the replay of a trace, and the anatomy of one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from retrompi.api.frames import Progress, Row, Table, opened, texts
from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, parse, parse_sizes
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import SimulationEnded
from retrompi.spec.question import Beside, Message, Question, Replay, Workload
from retrompi.spec.question import pingpong as pingpong_of
from retrompi.store.lookup import Found, answer

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi._engine import Trace
    from retrompi.store import Store
    from retrompi.studies.uncertainty import Ensemble, Interval

__all__ = ["Anatomy", "Curve", "Options", "Run", "message", "pingpong", "replay"]

Size = int | str


class Options(TypedDict, total=False):
    """What every run may be given, by name. The defaults are those of the commands."""

    mode: str
    """Placement of the ranks: ``natural`` (default), ``shared``, ``distributed``, ``block``, ``cyclic``, or hosts."""
    set: Mapping[str, str | float]
    """Overrides of parameters: ``{"wmpi.packet": "1 MiB", "platform.host.quantum": "20 ms"}``."""
    seed: int
    """Seed of the random numbers (default: 1)."""
    fidelity: Literal["mechanism", "curve", "loggp"]
    """Level of detail (default: mechanism)."""
    network: str
    """The network's law: ``native`` (default), ``fluid``, ``simgrid`` or ``simgrid:MODEL``."""
    traffic: Sequence[str]
    """Cross traffic: ``["any 2Mbps 1500B poisson"]``."""
    failures: Sequence[str]
    """Components that are down: ``["link server@1s..2s"]``."""
    time_limit: str | float
    """Simulated time after which the job ends, as text with a unit or in seconds."""
    store: Store | Path | str | None
    """Store of runs (default: as for the commands)."""
    fresh: bool
    """Whether to simulate even if an identical run is stored."""


@dataclass(frozen=True)
class _Where:
    """A question's store, and whether stored runs are used."""

    store: Store
    fresh: bool


def _bytes(size: Size) -> int:
    if isinstance(size, int):
        return size
    found = parse_sizes(size)
    if len(found) != 1:
        raise UsageError(f"'{size}' is not one size", code="bad-size")
    return found[0]


def _sizes(sizes: str | Sequence[Size] | None) -> list[int] | None:
    return None if sizes is None else parse_sizes(sizes if isinstance(sizes, str) else list(sizes))


def _seconds(value: str | float) -> float:
    return parse(value, "s") if isinstance(value, str) else float(value)


def _asked(model: str | Path, platform: str | Path, workload: Workload, given: Options, **more: Any) -> tuple[Resolved, _Where]:
    if unknown := set(given) - set(Options.__annotations__):
        from retrompi.base.errors import nearest

        name = sorted(unknown)[0]
        raise UsageError(f"no option '{name}'{nearest(name, Options.__annotations__)}", code="unknown-name")
    limit = given.get("time_limit")
    beside = Beside(given.get("traffic", ()), given.get("failures", ()), kills=more.pop("kills", ()))
    question = Question(
        str(model), str(platform), workload, given.get("mode", "natural"), texts(given.get("set", {})), given.get("seed", 1),
        given.get("fidelity", "mechanism"), beside=beside, network=given.get("network", "native"),
        limit_s=None if limit is None else _seconds(limit), **more,
    )  # fmt: skip
    asked = Resolved.of(question)
    return asked, _Where(opened(given.get("store")), given.get("fresh", False))


@dataclass(frozen=True, repr=False)
class _Answer(Table):
    """The answer to a question: its ``rows`` and its run in the store."""

    asked: Resolved
    found: Found
    where: _Where
    drawn: Ensemble | None = None

    @property
    def question(self) -> Question:
        """The question: model, platform, workload, placement, overrides, seed."""
        return self.asked.question

    @property
    def run_id(self) -> int:
        """The number of the run in the store."""
        return self.found.run_id

    @property
    def outcome(self) -> str:
        """``completed``, or how the job ended otherwise: ``deadlock``, ``aborted``, ``failed-start``, ``timeout``, ``limit``."""
        return str(self.row["outcome"])

    @property
    def detail(self) -> str:
        """Why the job did not complete; empty if it did."""
        return str(self.row["detail"] or "")

    def diagnosis(self) -> list[str]:
        """Why the job did not complete, line by line: who waits for whom, and on which line of the trace."""
        from retrompi.sim import diagnosis

        return [] if self.outcome == "completed" else diagnosis.of_run(self.row)

    @property
    def row(self) -> dict[str, Any]:
        """The run as it is stored: outcome, times (s), counts, versions, hashes of model, platform and trace, facts."""
        return self.where.store.run(self.run_id)

    @property
    def title(self) -> str:
        """What was asked, in a few words."""
        q = self.question
        return f"{q.model} on {q.platform}, {self.asked.mode}"

    @property
    def rows(self) -> Sequence[Row]:
        """The rows, as the command prints them with ``--json``."""
        return self.found.rows

    def _draw(self, level: float, draws: int, progress: Progress | None, asked: Resolved | None = None) -> Ensemble:
        from retrompi.studies.uncertainty import Spec, ensemble

        if not 0 < level < 1:
            raise UsageError(f"a level of {level} is not above 0 and below 1; example: 0.9", code="out-of-range")
        return ensemble(self.where.store, [asked or self.asked], Spec(level, draws), progress, self.where.fresh)[0]


class Curve(_Answer):
    """A PingPong curve: rows size_B, time_us (one way), bandwidth_MBps (10^6 B/s), repetitions; with `uncertainty` also their intervals.

    >>> curve = retrompi.pingpong("wmpi", mode="shared", sizes="256KiB,512KiB")
    >>> curve.time("512 KiB")     # s
    0.1299514685
    """

    def time(self, size: Size) -> float:
        """The one-way time (s) of a size that was simulated; UsageError for another."""
        return float(self._at(size)["time_us"]) * 1e-6

    def bandwidth(self, size: Size) -> float:
        """The bandwidth (B/s) at a size that was simulated; UsageError for another."""
        return float(self._at(size)["bandwidth_MBps"]) * 1e6

    def _at(self, size: Size) -> Row:
        wanted = _bytes(size)
        for row in self.found.rows:
            if row["size_B"] == wanted:
                return row
        told = ", ".join(format_bytes(r["size_B"]) for r in self.found.rows[:6])
        more = ", ..." if len(self.found.rows) > 6 else ""
        raise UsageError(f"{format_bytes(wanted)} was not simulated; sizes: {told}{more}", code="bad-size")

    def interval(self, size: Size) -> Interval:
        """The interval of the one-way time (s) at a size. UsageError for a curve without draws."""
        if self.drawn is None:
            raise UsageError("this curve has no draws; ask for curve.uncertainty(0.9)", code="not-run-yet")
        return self.drawn.curve([_bytes(size)])[0]

    def uncertainty(self, level: float = 0.9, draws: int = 100, progress: Progress | None = None) -> Curve:
        """The same curve with central intervals at ``level`` over ``draws`` draws of what is uncertain (docs/uncertainty.md).

        The draws are runs of the store: asking again finds them. ``progress`` is called with (done, all, outcome).
        """
        from retrompi.studies.uncertainty import brief, with_intervals

        drawn = self._draw(level, draws, progress, brief(self.asked))
        return replace(self, found=replace(self.found, rows=with_intervals(self.found.rows, drawn)), drawn=drawn)

    def anatomy(self, size: Size) -> Anatomy:
        """Where the time of one message of this size goes."""
        asked = self.asked.changed(workload=Message(_bytes(size)), beside=Beside())
        return Anatomy(asked, answer(self.where.store, asked, fresh=self.where.fresh), self.where)

    def plot(self, what: Literal["time", "bandwidth"] = "bandwidth") -> go.Figure:
        """A Plotly figure of time or bandwidth against size, with published statements about the same configuration."""
        from retrompi.render import curve_page

        spec = self.drawn.spec if self.drawn is not None else None
        level, draws = (spec.level, spec.draws) if spec is not None else (0.0, 0)
        q = self.question
        found = curve_page.figures(curve_page.Simulated(q.model, q.platform, self.asked.mode, tuple(self.rows), self.run_id, level, draws))
        if what not in found:
            raise UsageError(f"no figure of '{what}': time or bandwidth", code="unknown-name")
        return found[what]


class Anatomy(_Answer):
    """The time of one message by stage: rows stage, process, seconds, ps; the picoseconds sum to the total exactly."""

    @property
    def size(self) -> int:
        """The size of the message (B)."""
        workload = self.question.workload
        assert isinstance(workload, Message)
        return workload.size

    @property
    def total(self) -> float:
        """The one-way time (s)."""
        return float(self.row["time_s"])

    @property
    def title(self) -> str:
        """What was asked, in a few words."""
        return f"{format_bytes(self.size)} with {super().title}"

    def plot(self) -> go.Figure:
        """A Plotly figure: a bar for each stage."""
        from retrompi.render import message_page

        whole: Row = {"stage": "total", "process": "", "seconds": self.total}
        return message_page.figures(message_page.Stages(self.title, tuple(self.rows), whole, self.run_id))["stages"]


class Run(_Answer):
    """The replay of a trace: a row for each rank (times in s), and how the job ended.

    A job that does not complete is a result: `outcome` says how it ended, and `detail` why.
    """

    @property
    def time(self) -> float | None:
        """The job's time (s), of one that did not complete until it ended; None for one that did not start."""
        found = self.row["time_s"]
        return None if found is None else float(found)

    @property
    def section(self) -> dict[str, Any] | None:
        """The timed section: section, begin_s, end_s, seconds; None without one."""
        found: dict[str, Any] | None = (self.row["facts"] or {}).get("section")
        return found

    def uncertainty(self, level: float = 0.9, draws: int = 100, progress: Progress | None = None) -> Run:
        """The same run with draws; `interval` then has the interval of the job's time."""
        return replace(self, drawn=self._draw(level, draws, progress))

    def interval(self, metric: str = "time") -> Interval:
        """The interval of a metric (``time``, ``section``, ...) in its unit. UsageError for a run without draws."""
        from retrompi.studies import metrics

        if self.drawn is None:
            raise UsageError("this run has no draws; ask for run.uncertainty(0.9)", code="not-run-yet")
        return self.drawn.interval(metrics.parse(metric))


def pingpong(
    model: str | Path, platform: str | Path = "nt-pair", *, sizes: str | Sequence[Size] | None = None, reps: int | None = None,
    warm_up: int = 0, **options: Unpack[Options],
) -> Curve:  # fmt: skip
    """A PingPong curve: one-way time (µs) and bandwidth (10^6 B/s) against the size of the message (B).

    ``model`` is a runtime's name or the folder of one's own, ``platform`` a name, a composition (``"nt4-p6-200*2@switch-100"``) or a file.
    ``sizes`` is a list of bytes or texts, or a text such as ``"1KiB..1MiB:x2"`` (default: powers of two up to 4 MiB); ``reps`` repetitions
    at each (default: as in the papers); ``warm_up`` exchanges before each size are not timed. `Options` has the others.

    A PingPong that does not complete is a result too: the curve has the sizes that it finished, its ``outcome`` and its ``detail``.
    Raises UsageError for a wrong name, unit or size.

    >>> retrompi.pingpong("wmpi", mode="shared", sizes=["256 KiB"]).time("256 KiB")    # s
    0.0093869...
    """
    asked, where = _asked(model, platform, pingpong_of(_sizes(sizes), reps, warm_up), options)
    try:
        found = answer(where.store, asked, fresh=where.fresh)
    except SimulationEnded as ended:
        if ended.run_id is None:
            raise
        found = Found(ended.run_id, where.store.points(ended.run_id), False)
    return Curve(asked, found, where)


def message(model: str | Path, platform: str | Path = "nt-pair", *, size: Size, **options: Unpack[Options]) -> Anatomy:
    """The anatomy of one message of ``size`` (B, or text): its one-way time by stage and process, exact to the picosecond.

    Raises UsageError for a wrong name, unit or size, and SimulationEnded if the message does not arrive.

    >>> retrompi.message("wmpi", size="512 KiB", mode="shared").rows[0]["stage"]
    'quantum'
    """
    asked, where = _asked(model, platform, Message(_bytes(size)), options)
    return Anatomy(asked, answer(where.store, asked, fresh=where.fresh), where)


def replay(
    trace: Trace | str | Path, model: str | Path, platform: str | Path = "nt-pair", *, ranks: int | None = None,
    section: str | None = None, kills: Sequence[str] = (), wildcards: Literal["recorded", "free"] = "recorded", **options: Unpack[Options],
) -> Run:  # fmt: skip
    """The replay of a trace: a file or folder (docs/trace-format.md), or one read by `retrompi.traces.read`.

    ``section`` times a part of the program (lines of rank 0, or from one mark to another); ``kills`` are processes killed at a time
    (``"proxy on server@0.5s"``). A job that does not complete is returned as any other, with its outcome.

    Raises UsageError for a wrong name or placement, InputError for a trace that cannot be read or simulated.

    >>> retrompi.replay("examples/traces/jacobi-4.tar.zst", "wmpi", "nt-cluster").time    # s
    """
    from retrompi import traces
    from retrompi.spec.timed_section import Program

    read = traces.read(trace, np=ranks) if isinstance(trace, str | Path) else trace
    label = str(trace) if isinstance(trace, str | Path) else "a trace"
    workload = Replay(read, label, Program(section, None, 0.0))
    asked, where = _asked(model, platform, workload, options, kills=tuple(kills), wildcards=wildcards)
    return Run(asked, answer(where.store, asked, fresh=where.fresh), where)
