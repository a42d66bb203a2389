"""Selection of the algorithm for a collective operation: a model's table with a source for each row, and the user's overrides.

The engine implements the algorithms, one per file in ``engine/coll/``, each citing its paper and library; docs/collectives.md
lists them. A table is a tuple of `Choice`; the first row that matches is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from retrompi import _engine
from retrompi.base import units
from retrompi.base.errors import UsageError, nearest
from retrompi.spec.declare.calls import BY_NAME, call_of
from retrompi.spec.declare.param import Param
from retrompi.spec.declare.sources import wrong_source

if TYPE_CHECKING:
    from retrompi.spec.values import Values

__all__ = ["COUNTS", "MPICH1", "MPICH1_MAKING", "OPERATIONS", "PREFIX", "VOLUMES", "Choice", "Making", "algorithms", "card_rows", "doors",
           "engine_rows"]

PREFIX = "coll."
"""Prefix of parameters that replace a model's table by one algorithm: ``coll.bcast=binomial``."""

COUNTS = ("any", "power", "other")
"""Conditions on the number of members: any, a power of two, any other."""


@cache
def algorithms(operation: str) -> tuple[str, ...]:
    """The names of an operation's algorithms, sorted. Raises UsageError for an operation that does not exist."""
    call = call_of(operation)
    if call is None or call.volume is None or call.name != operation:
        raise UsageError(f"no collective operation '{operation}'{nearest(operation, OPERATIONS, len(OPERATIONS))}", code="unknown-name")
    return tuple(_engine.collective_algorithms().get(operation, ()))


@dataclass(eq=False, slots=True)
class Choice:
    """One row of a table: ``algorithm`` for ``low`` <= bytes < ``high`` (size as of `VOLUMES`) and ``ranks`` (min, max; None: no limit).

    ``count`` is one of `COUNTS`; ``nodes`` limits the row to communicators in which members share a host. ``source`` begins
    ``paper: doc: code: fit: assumed:``. Raises ValueError for an invalid row, so that a bad model fails on import.
    """

    operation: str
    algorithm: str
    source: str
    low: Any = "0 B"
    """Declared as text, converted to whole bytes; likewise ``high``, which is None for no limit."""
    high: Any = None
    ranks: tuple[int, int | None] = (1, None)
    count: str = "any"
    nodes: bool = False

    def __post_init__(self) -> None:
        where = f"Choice({self.operation!r}, {self.algorithm!r})"
        try:
            if self.algorithm not in algorithms(self.operation):
                raise ValueError(f"{where}: no such algorithm{nearest(self.algorithm, algorithms(self.operation))}")
            self.low = int(units.parse(self.low, "B"))
            self.high = None if self.high is None else int(units.parse(self.high, "B"))
        except UsageError as error:
            raise ValueError(f"{where}: {error}") from None
        if problem := wrong_source(self.source):
            raise ValueError(f"{where}: the source '{self.source}' {problem}")
        if self.count not in COUNTS:
            raise ValueError(f"{where}: count '{self.count}'{nearest(self.count, COUNTS)}")
        if (self.low > 0 or self.high is not None) and not BY_NAME[self.operation].volume:
            raise ValueError(f"{where}: the members of a {self.operation} do not know each other's sizes, so none can decide")
        least, most = self.ranks
        if least < 1 or (most is not None and most < least) or (self.high is not None and self.high <= self.low):
            raise ValueError(f"{where}: an empty range")

    def engine(self) -> tuple[Any, ...]:
        """The row as the engine reads it."""
        return (self.operation, self.algorithm, float(self.low), None if self.high is None else float(self.high),
                self.ranks[0], self.ranks[1], self.count, "both", self.nodes)

    def condition(self) -> str:
        """When the row applies, in words; empty: always."""
        parts = []
        if self.high is not None or self.low > 0:
            low = units.format_quantity(self.low, "B")
            high = "" if self.high is None else f" and < {units.format_quantity(self.high, 'B')}"
            parts.append((f"≥ {low}{high}" if self.low else high.removeprefix(" and ")) + f" ({BY_NAME[self.operation].volume})")
        low_ranks, high_ranks = self.ranks
        if high_ranks is not None:
            parts.append(f"{low_ranks} to {high_ranks} ranks" if low_ranks > 1 else f"up to {high_ranks} ranks")
        elif low_ranks > 1:
            parts.append(f"{low_ranks} ranks or more")
        if self.count != "any":
            parts.append("a power of two of ranks" if self.count == "power" else "no power of two of ranks")
        if self.nodes:
            parts.append("ranks share a host")
        return ", ".join(parts)


@dataclass(frozen=True)
class Making:
    """How members agree on a new communicator: an allreduce of ``context_bytes`` for its context and, for a split, an exchange of all
    colors and keys by an allgather (``gathers``) or a reduction."""

    context_bytes: int
    gathers: bool
    source: str


_FNS = "code:MPICH 1.0.12 to 1.1.2, src/coll/intra_fns.c"
_NEAR = "assumed: as its nearest relative; MPICH 1 has no such operation"
MPICH1 = (
    Choice("barrier", "dissemination", source="assumed: for MPICH 1.1's power_of_two, the same for two ranks; results rest on it"),
    Choice("bcast", "binomial", source="code:MPICH 1.1.1 and 1.1.2, src/coll/intra_fns.c; before them folded, the same for a power of two"),
    Choice("reduce", "binomial", source=_FNS),
    Choice("allreduce", "reduce_bcast", source=_FNS),
    Choice("scan", "linear", source=_FNS),
    Choice("exscan", "linear", source=_NEAR),
    Choice("reducescatter", "reduce_scatterv", source=_FNS),
    Choice("reducescatterblock", "reduce_scatterv", source=_NEAR),
    Choice("gather", "linear", source=_FNS),
    Choice("gatherv", "linear", source=_FNS),
    Choice("scatter", "linear", source=_FNS),
    Choice("scatterv", "linear", source=_FNS),
    Choice("allgather", "ring", source=_FNS),
    Choice("allgatherv", "ring", source=_FNS),
    Choice("alltoall", "posted", source="assumed: for MPICH 1.1's in_order, from which it differs in the order; results rest on it"),
    Choice("alltoallv", "posted", source="assumed: as alltoall"),
    Choice("alltoallw", "posted", source=_NEAR),
)
"""MPICH 1.0 and 1.1 as simulated: for the NT runtimes and MPI-BIP, and the default of every other model: a row for each operation."""
OPERATIONS = tuple(choice.operation for choice in MPICH1)
VOLUMES = {operation: BY_NAME[operation].volume or "" for operation in OPERATIONS}
"""Operation, named as in a trace -> the size by which libraries choose; empty where members cannot agree on one without communication."""


MPICH1_MAKING = Making(4, False, "code:MPICH 1.0.12 to 1.1.2, src/context/context_util.c and comm_split.c")


@cache
def doors() -> Mapping[str, Param]:
    """The parameters of every model that replace its table by one algorithm: ``coll.bcast`` and so on."""
    found = {}
    for operation in OPERATIONS:
        names = algorithms(operation)
        door = Param(names[0], "choice", f"algorithm of every {operation}", source="doc: docs/collectives.md", choices=names)
        door.name = PREFIX + operation
        found[door.name] = door
    return found


def engine_rows(table: Sequence[Choice], values: Values, broadcast: str) -> list[tuple[Any, ...]]:
    """The engine's rows of a model's table. The algorithms set by the user precede them and are used wherever they can be; a hierarchical
    algorithm consists of operations within and between hosts, which follow the table.

    ``broadcast`` is the compiled model's broadcast: any other than ``binomial`` (a put tree, a shared buffer) replaces the table's rows.
    """
    rows: list[tuple[Any, ...]] = []
    for operation in OPERATIONS:
        name = PREFIX + operation
        if name in values.settings:
            rows.append(Choice(operation, str(values[name]), source="assumed: set by the user").engine())
        if operation != "bcast" or broadcast == "binomial":
            rows += [c.engine() for c in table if c.operation == operation]
    return rows


def card_rows(table: Sequence[Choice], values: Values) -> list[dict[str, Any]]:
    """Rows operation, algorithm, when, low, high, ranks, count, nodes, source, overridden, for cards, as `engine_rows` has it."""
    out: list[dict[str, Any]] = []
    for operation in OPERATIONS:
        setting = values.settings.get(PREFIX + operation)
        chosen = [c for c in table if c.operation == operation]
        if setting is not None:
            chosen = [Choice(operation, str(setting.value), source=setting.source)]
        out += [
            {"operation": operation, "algorithm": c.algorithm, "when": c.condition(), "low": c.low, "high": c.high, "ranks": list(c.ranks),
             "count": c.count, "nodes": c.nodes, "source": c.source, "overridden": setting is not None}
            for c in chosen
        ]
    return out
