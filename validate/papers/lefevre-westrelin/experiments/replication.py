"""Copying a disk to many machines over the networks of the paper, in a chain and in a tree."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from retrompi.papers.experiments import Done, Job

from . import _replication_task as task
from ._disk_replication import LIMIT_CELLS, replicate

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

SLOW = True


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``networks``, ``scaling`` (numbers of machines), ``tree`` (fan-out, and how many machines it is compared for), ``platform``.

    The facts are ``replication.NETWORK`` (time_s, relay, one_way), ``replication.scaling.N`` (simulated and by the closed
    form, relative to a local copy), ``replication.chain`` and ``replication.tree``, ``disk``, ``chunk`` and ``ideal_s``.
    """
    o = plan.options("replication")
    platform = str(o.get("platform", plan.platform))

    def measured(network: str) -> Done:
        run_id, facts, found = task.rates(store, network, platform, fresh=fresh, draw=plan.draw)
        told = replicate(task.copy(task.fitted_disk(), facts["relay"]), task.task().machines)
        return Done("replication", {network: {**told, "relay": facts["relay"], "one_way": facts["one_way"]}}, (run_id,), int(not found))

    def scaling() -> Done:
        run_id, facts, found = task.rates(store, task.MEASURED, platform, fresh=False, draw=plan.draw)
        disk = task.fitted_disk()
        one = task.without_extra(task.copy(disk, facts["relay"]))
        rows = {str(n): replicate(one, n) for n in o["scaling"]}
        fan_out, many = int(o["tree"]["fan_out"]), int(o["tree"]["machines"])
        told: dict[str, Any] = {
            "scaling": rows,
            "disk": disk,
            "chunk": one.chunk,
            "ideal_s": replicate(one, task.task().machines)["time_s"],
            "chain": replicate(one, many),
            "tree": replicate(one, many, fan_out),
        }
        return Done("replication", told, (run_id,), int(not found))

    cost = sum(min(n * task.task().chunks, LIMIT_CELLS) for n in o["scaling"]) / 1e8
    many_machines = Job("replication to many machines", scaling, cost)
    return [*(Job(f"replication over {n}", partial(measured, n), 3.0) for n in o["networks"]), many_machines]
