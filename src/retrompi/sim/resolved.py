"""A question with its names looked up: model class, values, platform with overrides, trace, placement. This is done once for a run; from
here on nobody asks the registry again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.spec import kernels, registry
from retrompi.spec.cojobs import JobSpec, named
from retrompi.spec.model import model_values, resolve
from retrompi.spec.platform import Placement
from retrompi.spec.question import Benchmark, Beside, Question, Replay, Starts, canonical_hash
from retrompi.spec.timed_section import Program

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.spec.model import RuntimeModel
    from retrompi.spec.platform import Platform
    from retrompi.spec.values import Values

__all__ = ["MODES", "Resolved", "place"]

MODES = ("shared", "distributed")
"""Placements that every platform has."""


def place(platform: Platform, mode: str | Sequence[int], ranks: int) -> Placement:
    """Host index of every rank: ``shared`` puts all on the first host, ``distributed`` one on each in turn.

    A named placement of the platform is used from its first rank on, a list is taken as it is. Raises UsageError for an unknown
    mode, a wrong length or a host that is not there.
    """
    if isinstance(mode, str):
        mode = platform.placement(mode)
    if mode == "shared":
        return Placement([0] * ranks)
    if mode == "distributed":
        return Placement(r % len(platform.hosts) for r in range(ranks))
    if isinstance(mode, str):
        placement = platform.placements[mode]
        if len(placement) < ranks:
            raise UsageError(
                f"placement '{mode}' of platform '{platform.name}' is for {len(placement)} ranks, not {ranks}", code="bad-placement"
            )
        return Placement(placement[:ranks], placement.cores[:ranks])
    placement = Placement((int(i) for i in mode), getattr(mode, "cores", ()))
    if len(placement) != ranks:
        raise UsageError(f"{len(placement)} hosts are named for {ranks} ranks", code="bad-placement")
    for i in placement:
        if not 0 <= i < len(platform.hosts):
            raise UsageError(f"host index {i} is not in 0..{len(platform.hosts) - 1} of platform '{platform.name}'", code="unknown-host")
    return placement


def _of_model(sets: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in sets.items() if not k.startswith("platform.")}


@dataclass(frozen=True, eq=False)
class Resolved:
    """What a question comes to. The trace is made or read, and the ranks placed, when somebody asks for them: a run that is found in
    the store needs neither. ``values`` note who reads them."""

    question: Question
    model: type[RuntimeModel]
    values: Values
    platform: Platform
    room: Platform
    """The platform with its overrides."""

    @classmethod
    def of(cls, question: Question | Resolved) -> Resolved:
        """Looks the names up; what is resolved already stays as it is. Raises UsageError for an unknown name, key, unit or placement."""
        if isinstance(question, Resolved):
            return question
        model, platform = registry.model(question.model), registry.platform(question.platform)
        if question.compute_kernel:
            sets = {**kernels.compute_sets(platform, question.compute_kernel), **question.sets}
            question = replace(question, overrides=sets, compute_kernel="")
        values, room = resolve(model, platform, question.sets)
        if isinstance(question.placement, str):
            room.placement(question.placement)
        workload = question.workload
        if isinstance(workload, Benchmark):
            from retrompi.traces import generate

            generate.generator(workload.generator).check(workload.arguments)
        return cls(question, model, values, platform, room)

    def changed(self, **fields: Any) -> Resolved:
        """The same model on the same platform with other fields of the question (no names, no overrides), its values unread."""
        values = model_values(self.model, _of_model(self.question.sets))
        return Resolved(replace(self.question, **fields), self.model, values, self.platform, self.room)

    @cached_property
    def trace(self) -> Trace:
        """The program as a trace."""
        workload = self.question.workload
        if isinstance(workload, Replay):
            return workload.trace
        if isinstance(workload, Benchmark):
            from retrompi.traces import generate

            return generate.made(workload.generator, workload.arguments)
        raise UsageError(f"{workload.label} is no single trace", code="bad-usage")

    @cached_property
    def ranks(self) -> int:
        """How many ranks the job has."""
        workload = self.question.workload
        return workload.ranks if isinstance(workload, Starts) else self.trace.ranks

    @cached_property
    def placement(self) -> Placement:
        """Host index of every rank."""
        return place(self.room, self.question.place, self.ranks)

    @property
    def program(self) -> Program:
        """What the trace does not say."""
        workload = self.question.workload
        return workload.program if isinstance(workload, Replay) else Program()

    @property
    def mode(self) -> str:
        """The placement in one spelling: ``shared``, ``distributed``, a placement's name, or host indices with commas."""
        given = self.question.placement
        found = self.room.placement(given) if isinstance(given, str) else given
        return found if isinstance(found, str) else ",".join(map(str, found))

    @cached_property
    def apart(self) -> str:
        """Why the runtime cannot join the job's hosts; empty when it can."""
        return self.model().joins(self.room, self.placement)

    @cached_property
    def jobs(self) -> list[tuple[JobSpec, Resolved]]:
        """The further jobs, each with a name, on the same platform. Raises UsageError with the job's name in front."""
        found = []
        for spec in named(self.question.beside.jobs):
            model = registry.model(spec.model)
            asked = replace(
                self.question, model=spec.model, workload=Replay(spec.trace, spec.label, Program(memory_share=spec.memory_share)),
                placement=spec.mode, cores=(), overrides=spec.alone(), beside=Beside(),
            )  # fmt: skip
            try:
                job = Resolved(asked, model, model_values(model, spec.alone()), self.platform, self.room)
                job.placement  # noqa: B018 what is wrong with it is told with the name of the job
            except UsageError as error:
                raise UsageError(f"{spec.name}: {error}", code=error.code) from None
            found.append((spec, job))
        return found

    @cached_property
    def key(self) -> str:
        """A hash of all that determines the run beside the code: what a process keeps answers under."""
        q = self.question
        return canonical_hash(
            [self.model.hash(), self.room.hash, self.values.as_dict(), q.workload.facts(), self.mode, q.cores, q.seed, q.fidelity]
        )
