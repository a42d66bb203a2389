"""Writing OTF2 archives for tests with the otf2 library, as Score-P writes them: regions around records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import otf2
from otf2.enums import CollectiveOp, GroupType, Paradigm

NOBODY = 2**32 - 1
OPS = CollectiveOp
Record = Callable[[Any, int], None]


class Writer:
    """An archive of ``ranks`` ranks; ``comms`` maps names to world ranks and MPI_COMM_WORLD is always there. Times are in ns."""

    def __init__(self, folder: Path, ranks: int, comms: dict[str, Sequence[int]] | None = None, windows: Sequence[str] = ()) -> None:
        self.path = folder / "traces.otf2"
        self.trace = otf2.writer.Writer(str(folder), timer_resolution=1_000_000_000)
        d = self.definitions = self.trace.definitions
        node = d.system_tree_node("node")
        self.locations = [d.location("main", group=d.location_group(f"rank {r}", system_tree_parent=node)) for r in range(ranks)]
        mpi = Paradigm.MPI
        d.groups.create("all", group_type=GroupType.COMM_LOCATIONS, paradigm=mpi, members=self.locations)
        self.comms: dict[str, Any] = {}
        for name, members in {"world": range(ranks), **(comms or {})}.items():
            group = d.groups.create(name, group_type=GroupType.COMM_GROUP, paradigm=mpi, members=list(members))
            self.comms[name] = d.comm(name, group=group, parent=self.comms.get("world"))
        own = d.groups.create("self", group_type=GroupType.COMM_SELF, paradigm=mpi, members=[])
        self.comms["self"] = d.comm("self", group=own, parent=None)
        self.windows = [d.rma_win(f"win {i}", comm=self.comms[name]) for i, name in enumerate(windows)]
        self.clock = [0] * ranks

    def call(self, rank: int, name: str, *records: Record, gap: int = 1000, took: int = 500) -> Writer:
        """An MPI region of ``took`` ns, ``gap`` ns after the one before, with records in it."""
        write = self.trace.event_writer_from_location(self.locations[rank])
        region = self.definitions.region(name, paradigm=Paradigm.MPI)
        at = self.clock[rank] + gap
        write.enter(at, region)
        for record in records:
            record(write, at + took // 2)
        write.leave(at + took, region)
        self.clock[rank] = at + took
        return self

    def everywhere(self, name: str, *records: Record) -> Writer:
        """The same call on all ranks."""
        for rank in range(len(self.clock)):
            self.call(rank, name, *records)
        return self

    def close(self) -> Path:
        """Finish the archive; the path of its anchor file."""
        self.trace.close()
        return self.path

    # -- records

    def send(self, to: int, tag: int, size: int, comm: str = "world") -> Record:
        return lambda w, t: w.mpi_send(t, to, self.comms[comm], tag, size)

    def recv(self, source: int, tag: int, size: int, comm: str = "world") -> Record:
        return lambda w, t: w.mpi_recv(t, source, self.comms[comm], tag, size)

    def isend(self, to: int, tag: int, size: int, request: int, comm: str = "world") -> Record:
        return lambda w, t: w.mpi_isend(t, to, self.comms[comm], tag, size, request)

    def sent(self, request: int) -> Record:
        return lambda w, t: w.mpi_isend_complete(t, request)

    def irecv(self, request: int) -> Record:
        return lambda w, t: w.mpi_irecv_request(t, request)

    def received(self, source: int, tag: int, size: int, request: int, comm: str = "world") -> Record:
        return lambda w, t: w.mpi_irecv(t, source, self.comms[comm], tag, size, request)

    def tested(self, request: int) -> Record:
        return lambda w, t: w.mpi_request_test(t, request)

    def coll(self, op: Any, sent: int, received: int, root: int = NOBODY, comm: str = "world") -> Record:
        def record(w: Any, t: int) -> None:
            w.mpi_collective_begin(t)
            w.mpi_collective_end(t, op, self.comms[comm], root, sent, received)

        return record

    def icoll(self, request: int) -> Record:
        return lambda w, t: w.non_blocking_collective_request(t, request)

    def icoll_done(self, op: Any, sent: int, received: int, request: int, root: int = NOBODY, comm: str = "world") -> Record:
        return lambda w, t: w.non_blocking_collective_complete(t, op, self.comms[comm], root, sent, received, request)

    def make(self, comm: str) -> Record:
        return lambda w, t: w.comm_create(t, self.comms[comm])

    def free(self, comm: str) -> Record:
        return lambda w, t: w.comm_destroy(t, self.comms[comm])
