"""The Nemesis study: OSU latency and bandwidth by placement of the ranks, thread support, and the overlap test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.papers.claims import SizeRange
from retrompi.papers.experiments import Done, Job, Look, Seen
from retrompi.papers.metrics import curves, median_ratio
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.model import model_values
from retrompi.spec.question import Benchmark, Question
from retrompi.store.identity import specification
from retrompi.store.lookup import answer, facts_of

if TYPE_CHECKING:
    from retrompi.papers.paper import Paper
    from retrompi.store.database import Store

LARGE = 1 << 20


def _curve(store: Store, c: Mapping[str, Any], fresh: bool) -> Done:
    args = {"sizes": units.parse_sizes(c["sizes"]), **({"reps": c["reps"]} if "reps" in c else {})}
    got = answer(store, Question(c["model"], c["platform"], Benchmark(c["benchmark"], args), c["placement"], c.get("set", ())), fresh=fresh)
    tag = {"model": c["model"], "platform": c["platform"], "mode": c["mode"]}
    return Done("points", [{**tag, **row, "run_id": got.run_id} for row in got.rows], (got.run_id,), int(not got.found))


def _zero(store: Store, model: str, platform: str, placement: str, sets: Sequence[str], fresh: bool) -> tuple[float, int, int]:
    """(one-way time at 0 B in s, run id, simulated now) of OSU latency."""
    got = answer(store, Question(model, platform, Benchmark("osu_latency", {"sizes": [0]}), placement, sets), fresh=fresh)
    return float(got.rows[0]["time_us"]) * 1e-6, got.run_id, int(not got.found)


def _zero_byte(store: Store, o: Mapping[str, Any], fresh: bool) -> Done:
    seconds, run_id, new = _zero(store, o["model"], o["platform"], o["placement"], (), fresh)
    return Done(f"zero_byte.{o['model']}", seconds, (run_id,), new)


def _compared(store: Store, name: str, o: Mapping[str, Any], by_label: Mapping[tuple[str, str], Mapping[str, Any]], fresh: bool) -> Done:
    """The time saved by ``better`` over ``worse`` from its own threshold on, and the large-message rate of both."""
    done = [_curve(store, by_label[o[k], o["mode"]], fresh) for k in ("worse", "better")]
    found = curves(row for d in done for row in d.result)
    worse, better = (found[o[k], o["mode"]] for k in ("worse", "better"))
    first = float(model_values(registry.model(o["better"])).as_dict()[o["from"]])
    at = SizeRange(int(first), None)
    facts = {
        "percent": (median_ratio(worse, better, at) - 1) * 100,
        "large": {k: median(c.within(SizeRange(LARGE, None)).rates) for k, c in (("worse", worse), ("better", better))},
    }
    return Done(f"compared.{name}", facts, tuple(i for d in done for i in d.run_ids), sum(d.simulated for d in done))


def _threads(store: Store, name: str, o: Mapping[str, Any], placement: str, fresh: bool) -> Done:
    """The latency added by thread support with one thread: seconds and percent."""
    plain = _zero(store, o["model"], o["platform"], placement, (), fresh)
    lock = [f"lock_kind={o['lock']}"] if "lock" in o else []
    safe = _zero(store, o["model"], o["platform"], placement, ["thread_level=multiple", *lock], fresh)
    added = safe[0] - plain[0]
    return Done(f"threads.{name}", {"added_s": added, "percent": added / plain[0] * 100}, (plain[1], safe[1]), plain[2] + safe[2])


def _overlap(store: Store, name: str, o: Mapping[str, Any], args: Mapping[str, Any], placement: str, fresh: bool) -> Done:
    """Time inside MPI and the user's share of the time, between the marks of rank 0."""
    args = {**args, "ranks": o.get("ranks", 2)}
    asked = Resolved.of(Question(o["model"], o["platform"], Benchmark("overlap", args), placement, tuple(o.get("set", ()))))

    def work() -> dict[str, Any]:
        result = simulate.run(asked)
        simulate.require_completed(result, f"overlap test of {o['model']}")
        (row,) = simulate.rows_from_marks(result, 1)
        total = float(row["time_us"]) * 1e-6
        user = args["tests"] * args["compute_ns"] * 1e-9
        return {"overlap": {"total_s": total, "inside_s": total - user, "user_share": user / total}}

    run_id, facts, found = facts_of(store, specification(asked, "overlap"), work, fresh=fresh)
    return Done(f"overlap.{name}", facts["overlap"], (run_id,), int(not found))


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``curves`` (benchmark, model, platform, placement, mode as the curve is called, sizes, reps, set), ``zero_byte``,
    ``compared``, ``threads`` and ``overlap``, as ``validate/papers/krishna-2010/paper.toml`` shows.
    """
    o = plan.options("nemesis")
    by_label = {(c["model"], c["mode"]): c for c in o["curves"]}
    # Runs between nodes have the most events.
    weights = {"two-nodes": 3.0}
    found = [Job(f"{c['model']} {c['mode']}", partial(_curve, store, c, fresh), weights.get(c["placement"], 0.3)) for c in o["curves"]]
    found += [Job(f"{z['model']} 0 B", partial(_zero_byte, store, z, fresh), 0.1) for z in o["zero_byte"]]
    found += [Job(f"compared, {k}", partial(_compared, store, k, c, by_label, fresh), 0.1) for k, c in o["compared"].items()]
    threads = {k: v for k, v in o["threads"].items() if isinstance(v, Mapping)}
    found += [Job(f"threads, {k}", partial(_threads, store, k, t, o["threads"]["placement"], fresh), 0.1) for k, t in threads.items()]
    overlap = {k: v for k, v in o["overlap"].items() if isinstance(v, Mapping) and k != "test"}
    test = dict(o["overlap"]["test"])
    test["size"] = int(units.parse(test["size"], "B"))
    found += [Job(f"overlap, {k}", partial(_overlap, store, k, v, test, o["overlap"]["placement"], fresh), 0.5) for k, v in overlap.items()]
    return found


PLACEMENT = "shared-cache"


def looks(model: str, platform: str) -> list[Look]:
    """What a model is measured by for its fit: the zero-byte latency of two ranks that share a cache."""

    def zero(question: Question) -> Seen:
        result = simulate.run(question)
        simulate.require_completed(result, f"OSU latency of {model} on {platform}")
        (row,) = simulate.rows_from_marks(result, 2)
        return [], {"zero_byte": {model: float(row["time_us"]) * 1e-6}}

    question = Question(model, platform, Benchmark("osu_latency", {"sizes": [0]}), PLACEMENT, idle_overrides=True)
    return [Look("zero-byte", question, zero)]
