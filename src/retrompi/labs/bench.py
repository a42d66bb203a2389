"""Simulations for a lab's reference.py. All go through the store, so that runs a student has made are not repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.api.paths import CriticalPath, path_of
from retrompi.sim.resolved import Resolved
from retrompi.spec.declare.curve import TimeCurve
from retrompi.spec.question import Beside, Message, Question, Replay, Workload, pingpong
from retrompi.store.lookup import answer

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.store import Store
    from retrompi.store.lookup import Found

__all__ = ["Bench", "Line", "TimeCurve", "hockney", "most", "options"]


@dataclass(frozen=True)
class Line:
    """A curve in the report: the arguments of `Bench.curve`, and its label."""

    label: str
    model: str
    mode: str = "shared"
    sizes: Sequence[int] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    platform: str = "nt-pair"
    reps: int | None = None


def most(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest integer in ``low .. high`` for which ``holds`` is true, by bisection; true for ``low`` and false for ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def options(sets: Mapping[str, str]) -> str:
    """Overrides as command-line options."""
    return " ".join(f"--set {key}={value.replace(' ', '')}" for key, value in sets.items())


def hockney(n1: float, t1: float, n2: float, t2: float) -> tuple[float, float, float]:
    """Hockney's line T(n) = t0 + n / r through two points: (t0 in s, r in B/s, N½ = t0 r in B)."""
    rate = (n2 - n1) / (t2 - t1)
    t0 = t1 - n1 / rate
    return t0, rate, t0 * rate


class Bench:
    """Simulations for one student's lab. ``folder`` is the student's, or None if there is none.

    ``may_run``: programs in that folder may be compiled and run. This is allowed in the student's own check; a teacher who collects
    submissions must enable it (``--run-programs``), since they are untrusted code. ``boxed``: they are run in a box, as on a server.
    """

    def __init__(self, store: Store, folder: Path | None = None, may_run: bool = False, boxed: bool = False) -> None:
        self.store, self.folder, self.may_run, self.boxed = store, folder, may_run, boxed
        self._known: dict[Any, Any] = {}

    def once(self, key: Any, work: Callable[[], Any]) -> Any:
        """The result of ``work``, computed once for each ``key``."""
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]

    def ask(self, workload: Workload, model: str, mode: str, given: Mapping[str, Any]) -> Found:
        """The cached answer to a question. ``given``: ``platform`` (default nt-pair), ``sets``, ``seed``, ``failures``."""
        question = self._question(workload, model, mode, given)
        found: Found = self.once(question, lambda: answer(self.store, question))
        return found

    @staticmethod
    def _question(workload: Workload, model: str, mode: str, given: Mapping[str, Any]) -> Question:
        unknown = given.keys() - {"platform", "sets", "seed", "failures"}
        if unknown:
            raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
        return Question(
            model, given.get("platform", "nt-pair"), workload, mode, given.get("sets") or {}, given.get("seed", 1),
            beside=Beside(failures=given.get("failures", ())),
            idle_overrides=True,  # a lab defines one machine for all its runs, not all of which use every override
            what_if_hardware=True,  # whether a pair may be is for the student's commands to say
        )

    def curve(
        self, model: str, mode: str = "shared", sizes: Sequence[int] | None = None, *, reps: int | None = None, **given: Any
    ) -> TimeCurve:
        """The PingPong that ``retrompi pingpong`` runs. ``given`` as for `ask`. SimulationEnded if it does not complete."""
        return TimeCurve.of(self.ask(pingpong(sizes or None, reps), model, mode, given).rows)

    def anatomy(self, model: str, mode: str, size: int, **given: Any) -> list[dict[str, Any]]:
        """The stages of one message's time, as shown by ``retrompi explain``: rows stage, process, seconds. ``given`` as for `ask`."""
        return self.ask(Message(size), model, mode, given).rows

    def replay(self, trace: Trace, label: str, model: str, mode: str = "shared", **given: Any) -> dict[str, Any]:
        """The stored run of a trace, completed or not, as made by ``retrompi replay``: outcome, time_s, detail, facts and others."""
        return self.store.run(self.ask(Replay(trace, label), model, mode, given).run_id)

    def path(self, trace: Trace, label: str, model: str, mode: str = "shared", **given: Any) -> CriticalPath:
        """The critical path of a trace's run, as ``retrompi why`` has it: rows stage, who, seconds, and slacks. It is recorded anew.

        ``given`` as for `ask`. SimulationEnded for a job that does not complete.
        """
        question = self._question(Replay(trace, label), model, mode, given)
        found: CriticalPath = self.once(("path", question), lambda: path_of(Resolved.of(question)))
        return found

    def replay_generated(self, generator: str, args: Mapping[str, Any], model: str, mode: str = "shared", **options: Any) -> dict[str, Any]:
        """`replay` of a generated trace."""
        from retrompi.traces import generate

        bare = {"warm_up": 0} if generator == "pingpong" else {}  # as in the papers
        return self.replay(generate.make_trace(generator, {**bare, **args}), generator, model, mode, **options)

    def run(self, run_id: int) -> dict[str, Any]:
        """A stored run's row, with its facts."""
        return self.store.run(run_id)
