"""The Nemesis study: OSU latency and bandwidth by placement of the ranks, thread support, and the overlap test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.papers.experiments import MESSAGES, Done, Job, Look, Seen
from retrompi.papers.statements.claims import SizeRange
from retrompi.papers.statements.draw import Draw, answer_drawn, apply_draw, factor
from retrompi.papers.statements.metrics import curves, median_ratio
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.model import model_values
from retrompi.spec.question import Benchmark, Question
from retrompi.store.identity import specification
from retrompi.store.lookup import facts_of

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store
    from retrompi.store.lookup import Found

FACTS = dict.fromkeys(("zero_byte", "compared", "threads", "overlap"), MESSAGES)
LARGE = 1 << 20


@dataclass(frozen=True)
class _Study:
    """What every part needs: the store, whether to simulate again, and the draw of the parameters, if any."""

    store: Store
    fresh: bool
    draw: Draw | None

    def answer(self, question: Question) -> Found:
        return answer_drawn(self.draw, self.store, question, self.fresh)


def _curve(s: _Study, c: Mapping[str, Any]) -> Done:
    args = {"sizes": units.parse_sizes(c["sizes"]), **({"reps": c["reps"]} if "reps" in c else {})}
    got = s.answer(Question(c["model"], c["platform"], Benchmark(c["benchmark"], args), c["placement"], c.get("set", ())))
    tag = {"model": c["model"], "platform": c["platform"], "mode": c["mode"]}
    return Done("points", [{**tag, **row, "run_id": got.run_id} for row in got.rows], (got.run_id,), int(not got.found))


def _zero(s: _Study, model: str, platform: str, placement: str, sets: Sequence[str]) -> tuple[float, int, int]:
    """(one-way time at 0 B in s, run id, simulated now) of OSU latency."""
    got = s.answer(Question(model, platform, Benchmark("osu_latency", {"sizes": [0]}), placement, sets))
    return float(got.rows[0]["time_us"]) * 1e-6, got.run_id, int(not got.found)


def _zero_byte(s: _Study, o: Mapping[str, Any]) -> Done:
    seconds, run_id, new = _zero(s, o["model"], o["platform"], o["placement"], ())
    return Done(f"zero_byte.{o['model']}", seconds, (run_id,), new)


def _compared(s: _Study, name: str, o: Mapping[str, Any], by_label: Mapping[tuple[str, str], Mapping[str, Any]]) -> Done:
    """The time saved by ``better`` over ``worse`` from its own threshold on, and the large-message rate of both."""
    done = [_curve(s, by_label[o[k], o["mode"]]) for k in ("worse", "better")]
    found = curves(row for d in done for row in d.result)
    worse, better = (found[o[k], o["mode"]] for k in ("worse", "better"))
    first = float(model_values(registry.model(o["better"])).as_dict()[o["from"]])
    at = SizeRange(int(first), None)
    facts = {
        "percent": (median_ratio(worse, better, at) - 1) * 100,
        "large": {k: median(c.within(SizeRange(LARGE, None)).rates) for k, c in (("worse", worse), ("better", better))},
    }
    return Done(f"compared.{name}", facts, tuple(i for d in done for i in d.run_ids), sum(d.simulated for d in done))


def _threads(s: _Study, name: str, o: Mapping[str, Any], placement: str) -> Done:
    """The latency added by thread support with one thread: seconds and percent."""
    plain = _zero(s, o["model"], o["platform"], placement, ())
    lock = [f"lock_kind={o['lock']}"] if "lock" in o else []
    safe = _zero(s, o["model"], o["platform"], placement, ["thread_level=multiple", *lock])
    added = safe[0] - plain[0]
    return Done(f"threads.{name}", {"added_s": added, "percent": added / plain[0] * 100}, (plain[1], safe[1]), plain[2] + safe[2])


def _overlap(s: _Study, name: str, o: Mapping[str, Any], args: Mapping[str, Any], placement: str) -> Done:
    """Time inside MPI and the user's share of the time, between the marks of rank 0."""
    args = {**args, "ranks": o.get("ranks", 2)}
    question = Question(o["model"], o["platform"], Benchmark("overlap", args), placement, tuple(o.get("set", ())))
    asked = Resolved.of(apply_draw(s.draw, question))

    def work() -> dict[str, Any]:
        result = simulate.run(asked)
        simulate.require_completed(result, f"overlap test of {o['model']}")
        (row,) = simulate.rows_from_marks(result, 1)
        total = float(row["time_us"]) * 1e-6
        user = args["tests"] * args["compute_ns"] * 1e-9
        return {"overlap": {"total_s": total, "inside_s": total - user, "user_share": user / total}}

    run_id, facts, found = facts_of(s.store, specification(asked, "overlap"), work, fresh=s.fresh)
    told = dict(facts["overlap"])
    if s.draw is not None:  # the user's computation is known; what is inside MPI has the discrepancy
        user = told["total_s"] - told["inside_s"]
        told["inside_s"] *= factor(s.draw, question)
        told |= {"total_s": user + told["inside_s"], "user_share": user / (user + told["inside_s"])}
    return Done(f"overlap.{name}", told, (run_id,), int(not found))


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``curves`` (benchmark, model, platform, placement, mode as the curve is called, sizes, reps, set), ``zero_byte``,
    ``compared``, ``threads`` and ``overlap``, as ``validate/papers/krishna-2010/paper.toml`` shows.
    """
    o, s = plan.options("nemesis"), _Study(store, fresh, plan.draw)
    by_label = {(c["model"], c["mode"]): c for c in o["curves"]}
    # Runs between nodes have the most events.
    weights = {"two-nodes": 3.0}
    found = [Job(f"{c['model']} {c['mode']}", partial(_curve, s, c), weights.get(c["placement"], 0.3)) for c in o["curves"]]
    found += [Job(f"{z['model']} 0 B", partial(_zero_byte, s, z), 0.1) for z in o["zero_byte"]]
    found += [Job(f"compared, {k}", partial(_compared, s, k, c, by_label), 0.1) for k, c in o["compared"].items()]
    threads = {k: v for k, v in o["threads"].items() if isinstance(v, Mapping)}
    found += [Job(f"threads, {k}", partial(_threads, s, k, t, o["threads"]["placement"]), 0.1) for k, t in threads.items()]
    overlap = {k: v for k, v in o["overlap"].items() if isinstance(v, Mapping) and k != "test"}
    test = dict(o["overlap"]["test"])
    test["size"] = int(units.parse(test["size"], "B"))
    found += [Job(f"overlap, {k}", partial(_overlap, s, k, v, test, o["overlap"]["placement"]), 0.5) for k, v in overlap.items()]
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
