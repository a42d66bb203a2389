"""Collectives as point-to-point messages, for formats without collectives: the steps of the engine's algorithms.

The algorithms are the basic ones of the first MPI libraries, independent of any runtime model: those of MPICH 1, with the blocks of an
alltoall exchanged pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from retrompi import _engine
from retrompi.spec.collectives import MPICH1
from retrompi.spec.declare.calls import Call

__all__ = ["Step", "expand"]

Step = list[tuple[str, int, int]]
"""Operations started together and waited for together: ("send" | "recv", rank of the communicator, bytes)."""


@cache
def _algorithm(operation: str) -> str:
    (own,) = (choice.algorithm for choice in MPICH1 if choice.operation == operation)
    return "pairwise" if own == "posted" else own


def expand(call: Call, a: Sequence[str], me: int, n: int) -> list[Step]:
    """The steps of rank ``me`` of ``n`` for a collective's line, whose arguments ``a`` are in bytes."""
    if n == 1:
        return []
    numbers = iter(a)
    said: dict[str, list[int]] = {}
    for argument in call.form.arguments:
        said[argument.means] = [int(float(next(numbers, "0"))) for _ in range(n if argument.many else 1)]
    sent = said.get("sent", [0])
    received = said.get("received", sent)
    each = {argument.means for argument in call.form.arguments if argument.many}
    out, in_ = sent if "sent" in each else [], received if "received" in each else []
    (root,) = said.get("root", [0])
    steps: list[Step] = [[]]
    for step in _engine.collective_steps(call.name, _algorithm(call.name), n, me, root, sent[0], received[0], out, in_):
        if step["kind"] in ("isend", "irecv"):
            steps[-1].append(("send" if step["kind"] == "isend" else "recv", step["peer"], step["bytes"]))
        elif step["kind"] in ("wait", "waitall") and steps[-1]:
            steps.append([])
    return [step for step in steps if step]
