"""The result of a run: what is declared of it in `retrompi.spec.declare.result`, and what was recorded on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrompi.base.units import PS
from retrompi.sim.rank_table import RankTable
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import (
    CollectiveRow,
    Counters,
    Ending,
    MarkRow,
    RankRow,
    SectionRow,
    StageRow,
    StepRow,
    Totals,
    TrafficRow,
    WaitRow,
    duration,
    outputs,
    part,
    stored_fields,
)

if TYPE_CHECKING:
    from retrompi.sim.cautions import Caution
    from retrompi.sim.critical_path import CriticalPath
    from retrompi.sim.message_path import MessagePath
    from retrompi.spec.conditions.cojobs import CompiledJob

__all__ = ["COLUMNS", "NUMBERS", "Result", "counters_of", "job_result", "network_lines", "traffic_results"]


@dataclass(kw_only=True)
class Result(Totals, Counters, Ending):
    """The result of a run. Times in simulated seconds (``_ps`` in picoseconds), sizes in bytes.

    Numbers and rows are of the first job; `Totals`, ``traffic`` and ``failed`` are of the whole simulation.
    """

    time_ps: int = part("time of the job, ps", default=0)
    wall_s: float = duration("what simulating took", column=True, effort=True, cpp="")
    per_rank: Sequence[RankRow] = part("ranks", default=list)
    marks: Sequence[MarkRow] = part("marks", default=list)
    waits: Sequence[WaitRow] = part("ranks that had not finished", default=list)
    collectives: Sequence[CollectiveRow] = part("algorithms of the collectives", default=list)
    done: Mapping[str, int] = part("actions of the trace carried out, by name", default=dict)
    section: SectionRow | None = part("the timed section")
    startup: Sequence[StepRow] = part("steps of the start", default=list)
    anatomy: Sequence[StageRow] = part("stages of a message", default=list)
    anatomy_ps: int = part("sum of the stages, ps", default=0)
    diagnosis: Mapping[str, Any] = part("why it did not complete, described in `retrompi.sim.diagnosis`", default=dict)
    traffic: Sequence[TrafficRow] = part("flows of cross traffic", default=list)
    failed: str = part("the failures that lost frames: ``link server down from 1 s on (3 frames lost)``", default="")
    jobs: Sequence[Mapping[str, Any]] = part("results of the further jobs (`job_result`)", default=list)
    cautions: Sequence[Caution] = part("what one should know of it", default=list)
    used: Sequence[str] = part("parameters of the model and values of the platform that it used, as ``--set`` has them", default=list)
    profile: Mapping[str, Any] = part(
        "if requested: ``calls`` (action, bytes, section of MPI_Pcontrol or -1, count, ps) summed over the ranks, ``finalized_ps`` by rank "
        "(-1: never)", default=dict)
    timeline: Any = part("the `retrompi.sim.timeline.Timeline`, if requested; its row in a stored run")
    message_path: MessagePath | None = part("the path of the requested directions")
    critical_path: CriticalPath | None = part("if requested, of a run that completed")

    @property
    def recorded_path(self) -> CriticalPath:
        """The critical path of a run that was asked to record it and has completed."""
        assert self.critical_path is not None
        return self.critical_path


COLUMNS = stored_fields(Result)
"""Fields that a stored run has a column for; the others are among its facts."""
NUMBERS = tuple(name for name, o in outputs(Result).items() if o.column and o.is_number and not o.effort)
"""Of these, the numbers that the same question always has."""


def counters_of(got: Mapping[str, Any]) -> dict[str, int]:
    """The counters of a job in the engine's answer."""
    return {name: got[name] for name in outputs(Counters)}


def traffic_results(texts: Sequence[str], got: Sequence[Mapping[str, int]]) -> list[TrafficRow]:
    """Results of each flow of cross traffic."""
    return [{"traffic": text, **row} for text, row in zip(texts, got, strict=True)]  # type: ignore[typeddict-item]


def network_lines(facts: Mapping[str, Any]) -> list[str]:
    """The traffic and failures of a stored run, one per line; [] if there were none."""
    said = []
    for row in facts.get("traffic") or []:
        gone = "".join(f", {row[k]} {k}" for k in ("dropped", "lost") if row[k])
        said.append(f"traffic {row['traffic']}: {row['arrived']} of {row['frames']} frames arrived{gone}")
    return said + ([facts["failed"]] if facts.get("failed") else [])


def job_result(job: CompiledJob, got: Mapping[str, Any] | None, hosts: Sequence[str]) -> dict[str, Any]:
    """The result of one further job; ``got`` is the engine's answer, None for a job that could not be started."""
    s = job.spec
    about = {"name": s.name, "model": s.model, "mode": s.where, "trace": s.label, "start_s": s.start_s, "background": s.background,
             "ranks": s.trace.ranks}
    if got is None:
        return {**about, "outcome": Outcome.FAILED_START, "detail": job.apart, "time_s": 0.0, "time_ps": 0, "runs": 0}
    return {
        **about,
        "outcome": Outcome(got["outcome"]),
        "detail": got["detail"],
        "time_s": got["time_ps"] * PS,
        "time_ps": got["time_ps"],
        "runs": got["runs"] if s.background else int(got["outcome"] == Outcome.COMPLETED),
        "per_rank": RankTable(got["per_rank"], hosts).some(),
        "waits": got["waits"],
        "diagnosis": got.get("diagnosis", {}),
        **counters_of(got),
    }
