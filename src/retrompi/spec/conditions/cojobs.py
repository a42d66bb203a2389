"""Further jobs that share the platform with the first one, each with its own runtime, trace, placement and start time.

They share processors, caches, memory buses, network cards and the wire with it, but nothing of the runtime: each job has its own proxies,
daemons, pools and connections. docs/sharing.md lists what is simulated and what is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.spec.hosts import one_by_one, rows_of
from retrompi.spec.runtime.overrides import parse_sets

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.spec.compiled import compile as runtime
    from retrompi.spec.model import RuntimeModel
    from retrompi.spec.platform import Platform
    from retrompi.spec.values import Values

__all__ = ["CompiledJob", "JobSpec", "merge_hosts", "rows", "with_names"]

_OF_THE_MACHINES = ("hosts", "link", "positions", "kills")


@dataclass(frozen=True, eq=False)
class JobSpec:
    """A job beside the first one. ``sets`` are overrides of its model only; the platform is configured by the first job.

    ``start_s`` is in simulated seconds. A ``background`` job is restarted whenever it ends while the first job runs.
    ``memory_share`` is that of `timed_section.Program`. ``name`` is the suffix of its process names (``rank 0 of NAME``), by default
    ``job 2``, ``job 3`` ... ``label`` is the origin of the trace, ``source`` as of `retrompi.spec.question.Replay`. Raises UsageError for
    a negative start or a share outside 0..1.
    """

    model: str
    trace: Trace
    mode: str | Sequence[int] = "distributed"
    sets: Mapping[str, str] | Sequence[str] = ()
    start_s: float = 0.0
    background: bool = False
    memory_share: float = 0.0
    name: str = ""
    label: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Mapping[str, Any], trace: Trace) -> JobSpec:
        """The job with these `facts`, ``label`` and ``source``, of a ``trace`` that has been read."""
        given = {k: v for k, v in row.items() if k != "sha256"}
        where = given["mode"].split(",")
        return cls(trace=trace, **{**given, "mode": [int(at) for at in where] if all(map(str.isdecimal, where)) else given["mode"]})

    def __post_init__(self) -> None:
        if not self.start_s >= 0:
            raise UsageError(f"a job starts at {self.start_s:g} s; it cannot be before the first one", code="out-of-range")
        if not 0 <= self.memory_share <= 1:
            raise UsageError(f"the memory share is {self.memory_share:g}; it must be in 0..1", code="out-of-range")

    @property
    def where(self) -> str:
        """The mode as text."""
        return self.mode if isinstance(self.mode, str) else ",".join(map(str, self.mode))

    def alone(self) -> dict[str, str]:
        """``sets`` as a mapping."""
        return parse_sets(self.sets)

    def facts(self) -> dict[str, Any]:
        """The fields that determine a run, beside the code of its model."""
        return {
            "name": self.name, "model": self.model, "trace": self.trace.sha256, "mode": self.where, "sets": self.alone(),
            "start_s": self.start_s, "background": self.background, "memory_share": self.memory_share,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobSpec) and self.facts() == other.facts()

    def __hash__(self) -> int:
        return hash((self.name, self.model, self.trace.sha256, self.where, self.start_s))


@dataclass(frozen=True)
class CompiledJob:
    """A job compiled to channel specifications, with the values they were compiled from."""

    spec: JobSpec
    model: type[RuntimeModel]
    found: runtime.Compiled
    values: Values
    apart: str
    """Why the runtime cannot run one job across its hosts; empty if it can."""

    @property
    def rows(self) -> dict[str, Any]:
        """The channel specifications of the job's runtime."""
        return self.found.rows

    @property
    def placement(self) -> Sequence[int]:
        """The host of every rank."""
        return self.found.layout.placement


def with_names(jobs: Sequence[JobSpec]) -> list[JobSpec]:
    """``jobs`` with a name each. Raises UsageError for a duplicate name or an override of the platform."""
    found = [replace(j, name=j.name.strip() or f"job {i}") for i, j in enumerate(jobs, 2)]
    for i, j in enumerate(found):
        if j.name in [k.name for k in found[:i]]:
            raise UsageError(f"two jobs are called '{j.name}'", code="duplicate-name")
        for key in j.alone():
            if key.startswith("platform."):
                raise UsageError(
                    f"{j.name}: '{key}' belongs to the platform, which all jobs share; set it for the whole run", code="bad-jobs"
                )
    return found


def merge_hosts(jobs: Sequence[CompiledJob], first: str, own: Mapping[str, Any]) -> tuple[list[int], dict[str, Any]]:
    """(positions, hosts) used by the first job (its model ``first`` and compiled configuration ``own``), followed by those of the others.

    Raises UsageError if two models state different values for a host that they share.
    """
    positions, hosts = list(own["positions"]), one_by_one(own["hosts"])
    stated = dict.fromkeys(positions, first)
    for j in jobs:
        for at, host in zip(j.rows["positions"], one_by_one(j.rows["hosts"]), strict=True):
            if at not in stated:
                positions.append(at)
                hosts.append(host)
                stated[at] = j.spec.model
            elif hosts[positions.index(at)] != host:
                raise UsageError(
                    f"{j.spec.model} and {stated[at]} state different values of host '{host['name']}': they cannot share it",
                    code="bad-jobs",
                )
    return positions, rows_of(hosts)


def rows(jobs: Sequence[CompiledJob], positions: Sequence[int], platform: Platform, wildcards: str) -> list[dict[str, Any]]:
    """The engine's configuration of the further jobs, on hosts at ``positions`` of the platform ``platform``."""
    out = []
    for j in jobs:
        at = [positions.index(p) for p in j.rows["positions"]]
        row = {k: v for k, v in j.rows.items() if k not in _OF_THE_MACHINES}
        row |= {
            "name": j.spec.name,
            "start": j.spec.start_s,
            "background": j.spec.background,
            "placement": [at[h] for h in j.rows["placement"]],
            "wildcards": wildcards,
            "compute_scale": 1.0,
            "memory_share": j.spec.memory_share,
        }
        loops = j.spec.trace.kernels()
        if loops:
            from retrompi.spec.machine import kernels

            row["kernels"] = [
                # The engine never reads the entry of a host that runs no rank of this job.
                (name, n, [seconds[at.index(i)] if i in at else seconds[0] for i in range(len(positions))])
                for name, n, seconds in kernels.rows(loops, platform, j.placement)
            ]
        out.append(row)
    return out
