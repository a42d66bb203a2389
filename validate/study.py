"""Replaying a paper's study: its curves and start-ups from the store or simulated now, judged and stored."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi import experiment, registry, units
from retrompi.errors import UsageError, nearest
from retrompi.runtime import resolve
from retrompi.store.identity import run_spec, sha256_json
from retrompi.validate.claims import Claim, by_paper, paper_key, papers
from retrompi.validate.verdicts import Verdict, judge

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["WORKERS", "Progress", "Setup", "Study", "run_paper", "setup", "setups"]

WORKERS = 2
"""Simulations at a time; each runs in a worker process of its own, a thread here only waits for it."""

Progress = Callable[[int, int, str], None]
"""Called with (done, total, what was just done)."""


@dataclass(frozen=True)
class Why:
    """An anomaly and the mechanism that makes it; ``size`` B names the message whose anatomy shows it, None for none."""

    title: str
    model: str
    mode: str
    claims: tuple[str, ...]
    mechanism: str
    text: str
    size: int | None = None


@dataclass(frozen=True)
class Setup:
    """How a study is replayed, from ``papers.toml``. Sizes in bytes; ``starts`` is how many starts are tried per runtime."""

    paper: str
    title: str
    authors: str
    models: tuple[str, ...]
    platform: str
    modes: tuple[str, ...]
    sizes: tuple[int, ...]
    processes: int
    machines: int
    starts: int
    anatomy: tuple[tuple[str, str, int], ...]
    why: tuple[Why, ...]


@dataclass(frozen=True)
class Study:
    """A replayed study: everything the report and the verdict table are made from.

    ``points``: rows model, platform, mode, size_B, time_us, bandwidth_MBps, repetitions, run_id. ``anatomy``: rows model,
    mode, size_B, total_s, stages, run_id. ``simulated`` of ``len(runs)`` runs were made now, the others found in the store.
    """

    setup: Setup
    claims: tuple[Claim, ...]
    points: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    anatomy: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    runs: tuple[int, ...] = ()
    simulated: int = 0


def _size(text: str) -> int:
    return int(units.parse(text, "B"))


@cache
def setups() -> Mapping[str, Setup]:
    """Key of a study -> how it is replayed, for every study that can be."""
    path = Path(__file__).with_name("papers.toml")
    out: dict[str, Setup] = {}
    for key, t in tomllib.loads(path.read_text(encoding="utf-8")).items():
        out[key] = Setup(
            paper=key,
            title=t["title"],
            authors=t["authors"],
            models=tuple(t["models"]),
            platform=t["platform"],
            modes=tuple(t["modes"]),
            sizes=tuple(units.parse_sizes(t["sizes"])),
            processes=t["processes"],
            machines=t["machines"],
            starts=t["starts"],
            anatomy=tuple((a["model"], a["mode"], _size(a["size"])) for a in t.get("anatomy", ())),
            why=tuple(
                Why(
                    title=w["title"],
                    model=w["model"],
                    mode=w["mode"],
                    claims=tuple(w["claims"]),
                    mechanism=w["mechanism"],
                    text=" ".join(w["text"].split()),
                    size=_size(w["size"]) if "size" in w else None,
                )
                for w in t.get("why", ())
            ),
        )
    return out


def setup(paper: str) -> Setup:
    """How ``paper`` is replayed; UsageError when it is unknown or its runtimes are not modelled yet."""
    key = paper_key(paper)
    if key not in setups():
        if key in papers():
            raise UsageError(f"the runtimes of '{key}' are not modelled yet; valid: {', '.join(setups())}")
        raise UsageError(f"no paper '{paper}'{nearest(paper, papers())}")
    return setups()[key]


def _startup(store: Store, model: str, plan: Setup, fresh: bool) -> tuple[int, dict[str, Any], bool]:
    """(run id, facts, found) of starting a job many times."""
    made = {"starts": plan.starts, "processes": plan.processes}
    spec = run_spec("startup", model, plan.platform, mode="distributed", trace="start-up", trace_hash=sha256_json(made))
    known = None if fresh else store.find_run(spec.identity)
    if known is not None:
        return known, dict(store.run(known)["facts"]["startup"]), True
    from retrompi import simulate

    told = simulate.startup(model, plan.platform, plan.processes, list(range(1, plan.starts + 1)))
    run_id = store.add_run(spec, {"outcome": "completed", "ranks": plan.processes, "startup": dict(told)})
    return run_id, dict(told), False


def _parameters(plan: Setup) -> dict[str, dict[str, float | str]]:
    platform = registry.platform(plan.platform)
    return {m: resolve(registry.model(m), platform)[0].as_dict() for m in plan.models}


Job = tuple[str, Callable[[], tuple[str, Any, int, bool]]]


def _jobs(store: Store, plan: Setup, fresh: bool) -> list[Job]:
    """(label, work) for every run; work returns (where the result belongs, result, run id, found)."""

    def curve(model: str, mode: str) -> tuple[str, Any, int, bool]:
        got = experiment.pingpong(store, model, plan.platform, mode, plan.sizes, fresh=fresh)
        tag = {"model": model, "platform": plan.platform, "mode": mode}
        return "points", [{**tag, **row, "run_id": got.run_id} for row in got.rows], got.run_id, got.found

    def start(model: str) -> tuple[str, Any, int, bool]:
        run_id, told, found = _startup(store, model, plan, fresh)
        return "startup", {model: told}, run_id, found

    def explain(model: str, mode: str, size: int) -> tuple[str, Any, int, bool]:
        got = experiment.explain(store, model, plan.platform, mode, size, fresh=fresh)
        keys = ("stage", "process", "seconds", "ps")
        stages = [{k: row[k] for k in keys if row.get(k) is not None} for row in got.rows]
        entry = {"model": model, "mode": mode, "size_B": size, "stages": stages, "run_id": got.run_id}
        return "anatomy", [{**entry, "total_s": sum(s["seconds"] for s in stages)}], got.run_id, got.found

    # Runs between machines have the most events: begun first, they do not keep everybody waiting at the end.
    jobs: list[Job] = [(f"{model} {mode}", partial(curve, model, mode)) for mode in reversed(plan.modes) for model in reversed(plan.models)]
    jobs += [(f"{model} start-up", partial(start, model)) for model in plan.models]
    jobs += [
        (f"{model} {mode} {units.format_bytes(size)} anatomy", partial(explain, model, mode, size)) for model, mode, size in plan.anatomy
    ]
    return jobs


def run_paper(paper: str, store: Store, fresh: bool = False, progress: Progress | None = None, *, keep: bool = True) -> Study:
    """Replay a study: what the store has is used, the rest simulated (everything, if ``fresh``).

    The verdicts are stored unless ``keep`` is False, as for a page drawn again. Raises UsageError for an unknown paper,
    and what a failing simulation raises; what was simulated before that stays stored.
    """
    plan = setup(paper)
    jobs = _jobs(store, plan, fresh)
    results: list[tuple[str, Any, int, bool] | None] = [None] * len(jobs)
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        futures = {pool.submit(work): i for i, (_, work) in enumerate(jobs)}
        try:
            for done, future in enumerate(as_completed(futures), 1):
                results[futures[future]] = future.result()
                if progress is not None:
                    progress(done, len(jobs), jobs[futures[future]][0])
        except BaseException:
            # Nothing new is begun once one has failed or the user has had enough.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    # In an order of their own, not of their ends: the same study is the same to the byte.
    done_jobs = [r for r in results if r is not None]
    points = [row for what, rows, _, _ in done_jobs if what == "points" for row in rows]
    points.sort(key=lambda p: (plan.modes.index(p["mode"]), plan.models.index(p["model"])))
    anatomy = [row for what, rows, _, _ in done_jobs if what == "anatomy" for row in rows]
    facts: dict[str, Any] = {
        "machines": plan.machines,
        "processes": plan.processes,
        "parameters": _parameters(plan),
        "startup": {m: told for what, one, _, _ in done_jobs if what == "startup" for m, told in one.items()},
    }
    claims = by_paper(paper)
    verdicts = judge(claims, points, facts)
    runs = tuple(run_id for _, _, run_id, _ in done_jobs)
    if keep:
        store.add_verdicts(plan.paper, [v.row() for v in verdicts], run_ids=runs)
    simulated = sum(not found for *_, found in done_jobs)
    return Study(plan, tuple(claims), points, facts, anatomy, verdicts, runs, simulated)


def judge_all(studies: Sequence[Study]) -> list[Verdict]:
    """A verdict for every row of the reference: those of ``studies``, and the rest unjudged, in file order."""
    from retrompi.validate.claims import load

    mine = {v.id: v for s in studies for v in s.verdicts}
    return [mine.get(v.id, v) for v in judge(load(), [], {})]
