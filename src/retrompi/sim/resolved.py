"""A question with its names resolved: model class, values, platform with overrides, trace, placement. Names are looked up once
per run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from retrompi.base.errors import UsageError
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.conditions.cojobs import JobSpec, with_names
from retrompi.spec.conditions.network_model import NATIVE
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.machine import kernels
from retrompi.spec.machine.placements import NATURAL, Placement, place_ranks, placement_text
from retrompi.spec.model import absolute_sets, model_values, resolve
from retrompi.spec.needs import as_needed, foreign
from retrompi.spec.question import (
    FIELDS,
    NO_RESULT,
    Benchmark,
    Beside,
    Experiment,
    Message,
    Question,
    Replay,
    ScenarioRef,
    Starts,
    canonical_hash,
)
from retrompi.spec.runtime import possible
from retrompi.spec.runtime.users_code import users_code

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.spec.model import RuntimeModel
    from retrompi.spec.platform import Platform
    from retrompi.spec.values import Values

__all__ = ["MODES", "Resolved", "place"]

T = TypeVar("T")

MODES = ("shared", "distributed")
"""Placements that papers compare: on one host, and one rank on each."""


def place(platform: Platform, mode: str | Sequence[int], ranks: int) -> Placement:
    """Host index of every rank; ``mode`` is what `Platform.placement` takes, or a host index for every rank.

    A named placement is used from its first rank on, a list as given. Raises UsageError for an unknown one, a wrong length or a host
    that does not exist.
    """
    found = platform.placement(mode) if isinstance(mode, str) else mode
    return place_ranks(found, ranks, platform.name, platform.hosts, platform.placements)


@dataclass(frozen=True, eq=False)
class Resolved:
    """A resolved question. The trace is generated or read, and the ranks placed, on first access: a run found in the store needs
    neither. ``values`` record the parts that read them."""

    question: Question
    model: type[RuntimeModel]
    values: Values
    base_platform: Platform
    """As its file has it."""
    platform: Platform
    """With the question's overrides."""
    alike: dict[str, Any] = field(default_factory=dict, repr=False)
    """What does not depend on the seed, kept by `once`; questions made by `with_seed` share it."""

    @classmethod
    def of(cls, question: Question | Resolved) -> Resolved:
        """Resolves a question, unless it already is. Raises UsageError for an unknown name, key, unit or placement."""
        if isinstance(question, Resolved):
            return question
        model, base = registry.model(question.model), registry.platform(question.platform)
        if question.compute_kernel:
            _, platform = resolve(model, base, question.sets)  # the rate of a kernel follows from the clock in force
            sets = {**kernels.compute_sets(platform, question.compute_kernel), **question.sets}
            question = replace(question, overrides=sets, compute_kernel="")
        for runtime in (model, *(registry.model(job.model) for job in question.beside.jobs)):
            if not question.what_if_hardware:
                possible.check(runtime, base)
        values, platform = resolve(model, base, question.sets)
        if (sets := absolute_sets(question.sets, values, platform)) != question.sets:
            question = replace(question, overrides=sets)
        if isinstance(question.placement, str):
            platform.placement(question.placement)
        workload = question.workload
        if isinstance(workload, Benchmark):
            from retrompi.traces import generate

            generate.generator(workload.generator).check(workload.arguments)
        return cls(question, model, values, base, platform)

    def with_fields(self, **fields: Any) -> Resolved:
        """The same model on the same platform with other fields of the question (no names, no overrides), with fresh `Values`."""
        return Resolved(replace(self.question, **fields), self.model, self.values.fresh(), self.base_platform, self.platform)

    def with_seed(self, seed: int, asked: ScenarioRef, bounds: Bounds) -> Resolved:
        """This question with another seed, from a scenario that differs in nothing else. What is known of this one is not found again."""
        question = replace(self.question, seed=seed, asked=asked, bounds=bounds)
        found = Resolved(question, self.model, self.values, self.base_platform, self.platform, self.alike)
        known = self.__dict__
        found.__dict__.update({k: known[k] for k in ("trace", "ranks", "placement", "apart") if k in known})
        return found

    def once(self, what: str, make: Callable[[], T]) -> T:
        """The value of ``make``, which must not depend on the seed: made once for all questions that `with_seed` made of one."""
        if what not in self.alike:
            self.alike[what] = make()
        found: T = self.alike[what]
        return found

    def compile_as(self, other: Resolved) -> None:
        """Takes over the compiled runtime of a run that differs in its program alone, which has as many ranks and makes the same calls."""
        self.alike["compiled"] = other.alike["compiled"]

    @cached_property
    def trace(self) -> Trace:
        """The program as a trace; raises UsageError for a workload without one."""
        workload = self.question.workload
        if isinstance(workload, Replay):
            return workload.trace
        if isinstance(workload, Benchmark):
            from retrompi.traces import generate, making

            with making.within_bounds(self.question.bounds):
                return generate.make_trace(workload.generator, workload.arguments)
        raise UsageError(f"{workload.label} is no single trace", code="bad-usage")

    @cached_property
    def ranks(self) -> int:
        """Number of ranks of the job."""
        known = self.question.workload.ranks
        return self.trace.ranks if known is None else known

    @cached_property
    def placement(self) -> Placement:
        """Host index of every rank."""
        return place(self.platform, self.where, self.ranks)

    @cached_property
    def where(self) -> str | Placement:
        """The placement that was asked for. The natural one of messages between two ranks is between hosts, where there are several and
        the runtime joins them: on one host the network, which such a benchmark measures, would not be used."""
        if self.question.placement != NATURAL or len(self.platform.hosts) == 1 or not self._between_two:
            return self.question.place
        return "shared" if self._refusal(place(self.platform, "distributed", 2)) else "distributed"

    @property
    def _between_two(self) -> bool:
        workload = self.question.workload
        if isinstance(workload, Benchmark):
            from retrompi.traces import generate

            return generate.generator(workload.generator).between_two
        return isinstance(workload, Message)

    @property
    def network(self) -> str:
        """The network model in force: the question's, but ``native`` for a job on one host, which crosses none."""
        q = self.question
        if q.network == NATIVE:  # the placement may need the trace
            return NATIVE
        alone = isinstance(q.workload, Starts) or (not isinstance(q.workload, Experiment) and len(set(self.placement)) == 1)
        return NATIVE if alone and not q.beside.traffic and not q.beside.jobs else q.network

    @property
    def program(self) -> Program:
        """The facts about the program that are not in its trace."""
        return self.question.workload.program

    @property
    def mode(self) -> str:
        """The placement in normal form (`Platform.placement`), host indices with commas."""
        found = self._normal
        return found if isinstance(found, str) else ",".join(map(str, found))

    @property
    def mode_text(self) -> str:
        """`mode` for people: a list has the names of its hosts."""
        found = self._normal
        return found if isinstance(found, str) else placement_text(found, self.platform.hosts)

    @property
    def _normal(self) -> str | Sequence[int]:
        return self.platform.placement(self.where) if isinstance(self.where, str) else self.where

    @cached_property
    def apart(self) -> str:
        """Why the runtime cannot run the job across its hosts; empty if it can."""
        return self._refusal(self.placement)

    def _refusal(self, placement: Placement) -> str:
        needed, fiction = self.model.needs, bool(self.fiction)
        seen = as_needed(needed, self.platform, fiction=fiction)
        odd = foreign(needed, (seen.hosts[i] for i in dict.fromkeys(placement)))
        if odd is not None and needed is not None:  # the platform mixes systems, and the placement has none of the runtime's hosts
            return f"{odd.name} runs {odd.os}; no rank is on a host with {needed.system_words}, which {self.model.title} needs"
        with users_code(self.model.folder()):
            return self.model().joins(seen, placement)

    @property
    def fiction(self) -> str:
        """That the model never ran on such a platform (`possible.fiction`); empty if it can have."""
        return possible.fiction(self.model, self.base_platform)

    def cautions(self) -> list[str]:
        """`RuntimeModel.cautions` of the model."""
        with users_code(self.model.folder()):
            return [str(line) for line in self.model().cautions(self.values, self.platform, self.placement)]

    @cached_property
    def jobs(self) -> list[tuple[JobSpec, Resolved]]:
        """The further jobs, each with a name, on the same platform. Raises UsageError, beginning with the job's name."""
        found = []
        for spec in with_names(self.question.beside.jobs):
            model = registry.model(spec.model)
            asked = replace(
                self.question, model=spec.model, workload=Replay(spec.trace, spec.label, Program(memory_share=spec.memory_share)),
                placement=spec.mode, cores=(), overrides=spec.alone(), beside=Beside(),
            )
            try:
                job = Resolved(asked, model, model_values(model, spec.alone()), self.base_platform, self.platform)
                job.placement  # noqa: B018 evaluated so that its error names the job
            except UsageError as error:
                raise UsageError(f"{spec.name}: {error}", code=error.code) from None
            found.append((spec, job))
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that determines the run but the code of retrompi, as plain JSON: what `key`, and in a store `RunSpec.identity`, are
        hashes of."""
        return {**self.once("facts", self._facts), "seed": self.question.seed}

    def _facts(self) -> dict[str, Any]:
        q = self.question
        return {
            "model": self.model.name,
            "model_hash": self.model.hash(),
            "platform_hash": self.platform.hash,
            "mode": self.mode,
            "parameters": self.values.as_dict(),
            "overrides": q.sets,
            "fidelity": q.fidelity,
            "network": self.network,
            "trace_hash": self._program_hash(),
        }

    def _program_hash(self) -> str:
        """One hash over the program and all fields of the question that are not as by default and not facts of their own; the trace's own
        hash for an unmodified trace."""
        q = self.question
        workload, facts = q.workload, q.workload.facts()
        loops = None
        if isinstance(workload, Benchmark):
            from retrompi.traces import generate

            facts["args"] = generate.generator(workload.generator).with_defaults(workload.arguments)
            loops = kernels.model_hash(self.platform) if workload.generator == "rinf1" else None
        elif isinstance(workload, Replay):
            from retrompi.traces.calls import calls_of

            loops = kernels.model_hash(self.platform) if calls_of(workload.trace).loops else None
        hashed = {key: f for key, f in FIELDS.items() if key not in _NOT_HASHED}
        given = {_HASHED_AS.get(key, key): q.value(key) for key, f in hashed.items() if q.value(key) != f.default}
        if self.jobs:
            given["jobs"] = [{**spec.facts(), "model_hash": job.model.hash()} for spec, job in self.jobs]
        if loops:
            given["kernels"] = loops
        if not given and facts.keys() == {"trace"}:
            return str(facts["trace"])
        return canonical_hash({**facts, **given})

    @cached_property
    def key(self) -> str:
        """A hash of `facts`; the key of results cached in a process."""
        return canonical_hash(self.facts)


_NOT_HASHED = NO_RESULT.union(("model", "platform", "mode", "set", "seed", "fidelity", "network",  # facts of their own
                               "compute_kernel",  # overrides by then
                               "idle_overrides", "asked"))  # nor do these change one, though questions differ by them
_HASHED_AS = {"time_limit": "limit_s"}
"""Key of a field -> its name in the hash of a program, as stored runs have it."""
