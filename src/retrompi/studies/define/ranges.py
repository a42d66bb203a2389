"""The numbers of a run that have a sourced range."""

from __future__ import annotations

from retrompi.sim.resolved import Resolved
from retrompi.spec.compiled.compile import compile_runtime
from retrompi.spec.declare.calls import ANYTHING
from retrompi.spec.layout import Layout
from retrompi.spec.platform import Quantity
from retrompi.spec.question import Starts
from retrompi.traces.calls import calls_of

__all__ = ["placed_hosts", "ranged_of"]


def placed_hosts(asked: Resolved) -> list[str]:
    """The hosts that run a rank, in the platform's order."""
    return [asked.platform.hosts[i].name for i in sorted(set(asked.placement))]


def ranged_of(asked: Resolved) -> dict[str, Quantity]:
    """``MODEL.param``, ``platform.HOST.key`` or ``platform.link.key`` -> every number that the run uses and that has a sourced range:
    those of the model, of the hosts that run a rank, and of the link. The source is the declared one."""
    cls, values, platform = asked.model, asked.values, asked.platform
    calls = ANYTHING if isinstance(asked.question.workload, Starts) else calls_of(asked.trace, asked.question)
    used = compile_runtime(cls, values, Layout(platform, asked.placement), calls).used
    found = {}
    for row in values.describe():
        name = f"{cls.name.partition(':')[0]}.{row['name']}"
        if row["low"] is not None and row["high"] is not None and name in used:
            source = cls.params()[row["name"]].source
            found[name] = Quantity(row["value"], row["unit"], row["text"], source, row["help"], row["low"], row["high"])
    owners = (*placed_hosts(asked), "link")
    there = {f"platform.{p}": q for p, q in platform.quantities.items() if p.rpartition(".")[0] in owners}
    return found | {name: q for name, q in there.items() if q.low is not None and q.high is not None and name in used}
