"""MPICH 4.0's choice of algorithms for collective operations: facts from its tuning files, written as a table.

MPICH 4 selects at two levels: the device (``ch4``) composes an operation from parts within and between hosts, and below it the library's
general selection applies. Debian builds ``ch4:ucx``, in which UCX carries all messages, including those within a host.
"""

from __future__ import annotations

from retrompi.spec.collectives import Choice, Making

__all__ = ["MAKING", "TABLE"]

_MPIR = "code:MPICH 4.0.2, maint/tuning/coll/mpir/generic.json"
_CH4 = "code:MPICH 4.0.2, maint/tuning/coll/ch4/generic.json"
_NO_DATA = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter")
_EMPTY = "code:MPICH 4.0.2, src/mpi/coll: a call without data returns at once"

TABLE = (
    *(Choice(operation, "nothing", high="1 B", source=_EMPTY) for operation in _NO_DATA),
    Choice("barrier", "nodes", nodes=True, source=f"{_CH4}, composition alpha: within hosts, between them, one byte within"),
    Choice("barrier", "dissemination", source=_MPIR),
    Choice("bcast", "nodes", ranks=(1, 7), nodes=True, source=f"{_CH4}, alpha: the root gives it to its host's first rank"),
    Choice("bcast", "nodes", high="12288 B", nodes=True, source=f"{_CH4}, composition alpha"),
    Choice("bcast", "binomial", ranks=(1, 7), source=_MPIR),
    Choice("bcast", "binomial", high="12289 B", source=_MPIR),
    Choice("bcast", "scatter_doubling", high="524289 B", count="power", source=_MPIR),
    Choice("bcast", "scatter_ring", source=_MPIR),
    Choice("reduce", "nodes", high="2049 B", nodes=True, source=f"{_CH4}, composition beta"),
    Choice("reduce", "binomial", high="2049 B", source=_MPIR),
    Choice("reduce", "nodes_forward", nodes=True, source=f"{_CH4}, alpha: to rank 0, which passes it on to another root"),
    Choice("reduce", "rabenseifner", source=f"{_MPIR}, of as many elements as ranks at least, which sizes alone do not tell"),
    Choice("allreduce", "doubling", high="9 B", source=_MPIR),
    Choice("allreduce", "rabenseifner", source=f"{_MPIR}, of as many elements as ranks at least, which sizes alone do not tell"),
    Choice("scan", "doubling", source=f"{_MPIR} (without its form for nodes of consecutive ranks)"),
    Choice("exscan", "doubling", source=_MPIR),
    Choice("reducescatter", "halving", high="512 KiB", source=_MPIR),
    Choice("reducescatter", "pairwise", source=_MPIR),
    Choice("reducescatterblock", "halving", high="512 KiB", source=_MPIR),
    Choice("reducescatterblock", "pairwise", source=_MPIR),
    Choice("gather", "binomial", source=_MPIR),
    Choice("gatherv", "posted", source=f"{_MPIR}: linear, the root posts all its receives"),
    Choice("scatter", "binomial", source=_MPIR),
    Choice("scatterv", "posted", source=f"{_MPIR}: linear, the root starts all its sends"),
    Choice("allgather", "doubling", high="512 KiB", count="power", source=_MPIR),
    Choice("allgather", "bruck", high="80 KiB", source=_MPIR),
    Choice("allgather", "ring", source=_MPIR),
    Choice("allgatherv", "doubling", high="512 KiB", count="power", source=_MPIR),
    Choice("allgatherv", "bruck", high="80 KiB", source=_MPIR),
    Choice("allgatherv", "ring", source=_MPIR),
    Choice("alltoall", "bruck", high="257 B", ranks=(8, None), source=_MPIR),
    Choice("alltoall", "throttled_32", high="32769 B", source=f"{_MPIR}: scattered, MPIR_CVAR_ALLTOALL_THROTTLE = 32"),
    Choice("alltoall", "pairwise", source=_MPIR),
    Choice("alltoallv", "throttled_32", source=f"{_MPIR}: scattered"),
    Choice("alltoallw", "throttled_32", source=f"{_MPIR}: scattered"),
)

MAKING = Making(256, True, "assumed: as MPICH2, whose mask of contexts MPICH 4 keeps (src/mpi/comm/contextid.c)")
