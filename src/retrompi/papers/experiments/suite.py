"""The recorded functional suite: which of its programs complete on a runtime, and the outcomes of the others.

A trace records what a program communicates, not whether it checks the data, so a run passes when it completes, and a program
when all its recorded runs (numbers of ranks) do. No program is treated by name: only the runtime's behaviour decides.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import EngineError, InputError
from retrompi.base.paths import reference_dir
from retrompi.papers.experiments import Done, Job
from retrompi.papers.statements.draw import overrides
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Experiment, Question, Replay, Starts
from retrompi.store.identity import specification
from retrompi.store.lookup import facts_of

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.papers.statements.paper import Paper
    from retrompi.spec.declare.calls import Calls
    from retrompi.store.database import Store

SLOW = True
LOST = "the size is lost"
"""Prefix of a reader's error that is caused by an incomplete recording rather than by the program."""

_reading = threading.Lock()


def runs_of(archive: str) -> Mapping[str, Trace]:
    """``ibm-CATEGORY-PROGRAM-RANKS`` -> its trace, for every folder of an archive of reference/traces, in order of names."""
    with _reading:  # of two concurrent jobs, one reads and the other uses the cached result
        return _runs_of(archive)


@lru_cache(maxsize=2)
def _runs_of(archive: str) -> Mapping[str, Trace]:
    from retrompi import traces

    return {PurePosixPath(folder).name: trace for folder, trace in traces.read_folders(reference_dir() / "traces" / archive)}


def archive_hash(archive: str) -> str:
    """SHA-256 of an archive of reference/traces."""
    return hashlib.sha256((reference_dir() / "traces" / archive).read_bytes()).hexdigest()


def program_of(run: str) -> str:
    """The program of a run: its name without the number of ranks."""
    return run.rpartition("-")[0]


def outcome_of(model: str, platform: str, mode: str, trace: Trace, sets: Sequence[str]) -> tuple[str, str]:
    """(outcome, detail) of one run; beside the engine's outcomes ``lost`` (a recording that lacks something), ``missing``
    (a call that is not implemented) and ``died`` (the simulation crashed its worker process).

    ``sets`` apply only to the programs of a suite that use them: a single rank has no message path."""
    return outcomes_of(model, platform, mode, {"": trace}, sets)[""]


def outcomes_of(model: str, platform: str, mode: str, runs: Mapping[str, Trace], sets: Sequence[str]) -> dict[str, tuple[str, str]]:
    """`outcome_of` of each run. The names are looked up once, and programs of as many ranks that make the same calls share the compiled
    runtime: a suite is many short runs, of which that would be the most part."""
    from retrompi.sim import simulate
    from retrompi.sim.resolved import Resolved
    from retrompi.traces.calls import calls_of

    alike = Resolved.of(Question(model, platform, Starts(2), mode, sets, idle_overrides=True))
    ran: dict[tuple[int, Calls], Resolved] = {}

    def one(trace: Trace) -> tuple[str, str]:
        refused = trace.unsupported()
        if refused:
            _, line, action, reason = refused[0]
            return ("lost" if reason.startswith(LOST) else "missing"), f"line {line}: {action}: {reason}"
        try:
            asked = alike.with_fields(workload=Replay(trace))
            needs = asked.ranks, calls_of(trace, asked.question)
            if needs in ran:
                asked.compile_as(ran[needs])
            result = simulate.run(asked)
            ran.setdefault(needs, asked)
        except InputError as error:
            return "missing", str(error)
        except EngineError as error:
            return "died", str(error)
        return result.outcome, result.detail

    return {run: one(trace) for run, trace in runs.items()}


def summary(outcomes: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """The facts of a suite's outcomes (run -> outcome, detail): counts of programs and of runs, and the failures with their outcomes.

    ``programs`` counts those with a run that could be judged; ``failed`` those with one that did not complete.
    """
    judged = {run: o for run, o in outcomes.items() if o[0] != "lost"}
    programs = sorted({program_of(run) for run in judged})
    bad = {run: o for run, o in judged.items() if o[0] != Outcome.COMPLETED}
    failing = sorted({program_of(run) for run in bad})
    ends = [o for o, _ in bad.values()]
    return {
        "programs": len(programs),
        "runs": len(judged),
        "completed_runs": len(judged) - len(bad),
        "failed": len(failing),
        "passed": len(programs) - len(failing),
        "failed_percent": 100 * len(failing) / len(programs),
        "failing": failing,
        "failing_runs": len(bad),
        "hangs": ends.count(Outcome.DEADLOCK) + ends.count(Outcome.TIMEOUT),
        "asserts": ends.count(Outcome.ABORTED),
        "hangs_or_asserts": sum(e in (Outcome.DEADLOCK, Outcome.TIMEOUT, Outcome.ABORTED) for e in ends),
        "missing_calls": len({program_of(run) for run, (o, _) in bad.items() if o == "missing"}),
        "died": ends.count("died"),
        "lost": sorted(run for run, o in outcomes.items() if o[0] == "lost"),
        "ends": {run: f"{o}: {detail}" for run, (o, detail) in sorted(bad.items())},
    }


def _causes(model: str, platform: str, mode: str, failed: Mapping[str, Trace], relieved: Sequence[str]) -> dict[str, Any]:
    """Number of failures caused by memory: ``failed`` runs that complete with the overrides ``relieved``, which provide more of it."""
    helped = sum(end == Outcome.COMPLETED for end, _ in outcomes_of(model, platform, mode, failed, relieved).values())
    return {"memory_related": helped, "other_causes": len(failed) - helped}


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``archive``, ``platform``, ``modes``, ``settings`` (each ``name``, ``model``, ``sets``), and ``relief``: overrides by
    model that give it more memory than it had. The facts are ``suite.MODEL.NAME.MODE``, see `summary`.
    """
    o = plan.options("suite")

    def one(setting: Mapping[str, Any], mode: str) -> Done:
        model, name = setting["model"], setting["name"]
        question = Question(model, o["platform"], Starts(2), mode, setting.get("sets", []))
        sets = overrides(plan.draw, question)
        relief = o.get("relief", {}).get(model, [])
        made = {"archive": archive_hash(o["archive"]), "relief": relief, "read": "suite 1"}

        def work() -> dict[str, Any]:
            runs = runs_of(o["archive"])
            outcomes = outcomes_of(model, o["platform"], mode, runs, sets)
            failed = {run: runs[run] for run, (end, _) in outcomes.items() if end not in (Outcome.COMPLETED, "lost")}
            return {"suite": summary(outcomes) | _causes(model, o["platform"], mode, failed, [*sets, *relief])}

        asked = replace(question, workload=Experiment.of("suite", o["archive"], made), overrides=sets, idle_overrides=plan.draw is not None)
        spec = specification(asked)
        run_id, facts, found = facts_of(store, spec, work, fresh=fresh)
        return Done(f"suite.{model}.{name}.{mode}", facts["suite"], (run_id,), int(not found))

    return [
        Job(f"suite on {s['model']} {s['name']} {mode}", partial(one, s, mode), 2.0 if mode == "shared" else 4.0)
        for s in o.get("settings", ())
        for mode in o["modes"]
    ]
