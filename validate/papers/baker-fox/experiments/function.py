"""Start-up, administration and functional tests outside the suite: killed processes, exhausted memory, mixed clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.papers.experiments import Done, Job, suite
from retrompi.papers.statements.claims import for_fit
from retrompi.papers.statements.draw import apply_draw, overrides
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Beside, Experiment, Question, Replay, Starts, pingpong
from retrompi.store.identity import specification
from retrompi.store.lookup import facts_of
from retrompi.traces import generate

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.papers.statements.paper import Paper
    from retrompi.sim.result import Result
    from retrompi.store.database import Store

SLOW = True
POOL_STEP = 256 << 10
"""Step of the pool sizes tried, bytes: the largest class used by p4 (E-P4-03)."""


@dataclass(frozen=True)
class _Study:
    plan: Paper
    store: Store
    fresh: bool

    def kept(self, what: str, where: str, model: str, platform: str, given: Mapping[str, Any], work: Callable[[], dict[str, Any]]) -> Done:
        """The facts returned by ``work``, stored under everything that determines them: ``given``, and the archive or models it names."""
        options = dict(given)
        if "archive" in options:
            options["archive"] = suite.archive_hash(options["archive"])
        options["models"] = {m: _model(m).hash() for m in options.get("sets", ())}
        if self.plan.draw is not None:
            options["drawn"] = {m: overrides(self.plan.draw, Question(m, platform, Starts(2))) for m in options["models"]}
        spec = specification(apply_draw(self.plan.draw, Question(model, platform, Experiment.of("function", what, options))))
        run_id, facts, found = facts_of(self.store, spec, lambda: {"function": work()}, fresh=self.fresh)
        return Done(where, facts["function"], (run_id,), int(not found))

    def run(self, question: Question) -> Result:
        """One run, with the parameters of the study's draw."""
        return simulate.run(apply_draw(self.plan.draw, question))

    # ---- a process dies

    def killed(self, k: Mapping[str, Any]) -> Done:
        """A PingPong during which a process is killed: the job's outcome, and whether the runtime reports it to the user."""

        def work() -> dict[str, Any]:
            program = pingpong([int(units.parse(k["size"], "B"))], int(k["reps"]))
            r = self.run(Question(k["model"], self.plan.platform, program, beside=Beside(kills=[k["kill"]])))
            # The user sees what the library prints when it aborts; a hang prints nothing.
            return {"killed": k["kill"], "outcome": r.outcome, "detail": r.detail, "waits": r.waits, "seconds": r.time_s,
                    "messages_to_owner": int(r.outcome == Outcome.ABORTED)}

        return self.kept("killed", f"killed.{k['model']}", k["model"], self.plan.platform, dict(k), work)

    # ---- memory

    def pool(self, o: Mapping[str, Any]) -> Done:
        """The smallest pool with which the suite, and the stress trace, complete in shared mode.

        The stress trace's block is fitted: the one of ``blocks`` whose required pool is nearest to the middle of
        the calibrate row ``fitted_to``.
        """
        room, archive = o["platform"], o["archive"]

        def work() -> dict[str, Any]:
            runs: dict[str, Trace] = {r: t for r, t in suite.runs_of(archive).items() if not t.unsupported()}
            stress = {text: generate.all_at_once(int(o["ranks"]), int(units.parse(text, "B"))) for text in o["blocks"]}
            default = self._completes(room, runs | stress, [])
            by_block = {text: self._needed(room, {text: trace}, default) for text, trace in stress.items()}
            (goal,) = (c for c in for_fit("wmpi") if c.id == o["fitted_to"])
            middle = ((goal.low or 0) + (goal.high or 0)) / 2 * 1e6  # the row is in MByte
            block = min(by_block, key=lambda text: abs(by_block[text] - middle))
            told = {"suite_B": self._needed(room, runs, default), "stress_B": by_block[block]}
            failing = sorted(r for r in runs if not default[r])
            return {**told, "needed_B": max(told.values()), "block": block, "by_block": by_block, "default_failing": failing}

        return self.kept("pool", "pool.wmpi", "wmpi", room, dict(o), work)

    def _completes(self, room: str, runs: Mapping[str, Trace], sets: Sequence[str]) -> dict[str, bool]:
        given = overrides(self.plan.draw, Question("wmpi", room, Starts(2), "shared", sets))
        return {r: end == Outcome.COMPLETED for r, (end, _) in suite.outcomes_of("wmpi", room, "shared", runs, given).items()}

    def _needed(self, room: str, runs: Mapping[str, Trace], default: Mapping[str, bool]) -> int:
        """The smallest sufficient pool, bytes; the default pool if everything completes with it."""
        from retrompi.spec.model import model_values

        pool = int(model_values(_model("wmpi"))["pool"])
        # Runs that fail with the default pool are searched first; the others are checked once, at the end.
        hard = {r: t for r, t in runs.items() if not default[r]}
        while hard or not all(default[r] for r in runs):
            pool += POOL_STEP
            if pool > 64 << 20:
                raise RuntimeError("no pool up to 64 MiB is enough")
            if all(self._completes(room, hard, [f"pool={pool}B"]).values()):
                rest = self._completes(room, {r: t for r, t in runs.items() if r not in hard}, [f"pool={pool}B"])
                if all(rest.values()):
                    break
                hard |= {r: runs[r] for r, ok in rest.items() if not ok}
        return pool

    def buffers(self, o: Mapping[str, Any]) -> Done:
        """A receiver that is late for a growing number of messages: the volume at which each runtime fails."""

        def work() -> dict[str, Any]:
            size = int(units.parse(o["message"], "B"))
            told: dict[str, Any] = {}
            for model, sets in o["sets"].items():
                rows: list[dict[str, Any]] = []
                for volume in o["volumes"]:
                    count = int(units.parse(volume, "B")) // size
                    late = Replay(generate.late_receive(2, size, count))
                    r = self.run(Question(model, self.plan.platform, late, "shared", sets))
                    rows.append({"bytes": count * size, "outcome": r.outcome, "detail": r.detail})
                held = [row["bytes"] for row in rows if row["outcome"] == Outcome.COMPLETED]
                told[model] = {"rows": rows, "largest_B": max(held, default=0), **{k: rows[-1][k] for k in ("outcome", "detail")}}
            return told

        return self.kept("buffers", "buffers", "hpvm", self.plan.platform, dict(o), work)

    # ---- clusters of several systems, and administration

    def joins(self, model: str, o: Mapping[str, Any]) -> Done:
        """A short PingPong on each mixed cluster: whether the runtime runs there, and its cost."""

        def work() -> dict[str, Any]:
            size = int(units.parse(o["size"], "B"))
            told: dict[str, Any] = {}
            for name, platform in o["platforms"].items():
                r = self.run(Question(model, platform, pingpong([size], 10)))
                told[name] = {"outcome": r.outcome, "detail": r.detail, "seconds": r.time_s}
            return told

        hashes = {p: registry.platform(p).hash for p in o["platforms"].values()}
        return self.kept("joins", f"joins.{model}", model, self.plan.platform, {**o, "hashes": hashes}, work)

    def administration(self, model: str, o: Mapping[str, Any]) -> Done:
        """Starting a job on every machine of the cluster and on a single machine: manual steps and failure rate."""
        starts = int(o["starts"])
        asked = apply_draw(self.plan.draw, Question(model, o["platform"], Starts(int(o["machines"]), starts)))

        def work() -> dict[str, Any]:
            return {
                "distributed": simulate.startup(asked),
                "shared": simulate.startup(asked.with_(workload=Starts(int(o["processes"]), starts), placement="shared")),
            }

        return self.kept("administration", f"administration.{model}", model, o["platform"], dict(o), work)


def _model(name: str) -> Any:
    return registry.model(name)


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: tables ``kills`` (model, kill, size, reps), ``pool``, ``buffers``, ``joins``, ``administration``.

    The facts are ``killed.MODEL``, ``pool.wmpi``, ``buffers.MODEL``, ``joins.MODEL.CLUSTER`` and ``administration.MODEL.MODE``.
    """
    o, s = plan.options("function"), _Study(plan, store, fresh)
    told = [Job(f"{k['model']}: {k['kill']}", partial(s.killed, k)) for k in o["kills"]]
    told += [Job("smallest pool", partial(s.pool, o["pool"]), 5.0), Job("fixed buffers", partial(s.buffers, o["buffers"]))]
    for model in plan.models:
        told.append(Job(f"{model} on mixed clusters", partial(s.joins, model, o["joins"])))
        told.append(Job(f"{model} administration", partial(s.administration, model, o["administration"])))
    return told
