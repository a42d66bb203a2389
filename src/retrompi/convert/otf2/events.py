"""MPI records of an OTF2 archive, read by the ``otf2`` library and independent of its types.

`Archive` holds for each rank the MPI calls in order, each with the records inside it. The Python binding reads about ten thousand records
a second.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.convert.otf2 import program
from retrompi.traces.errors import TraceError

__all__ = ["Archive", "Collective", "MpiCall", "Otf2Communicator", "is_anchor", "read_archive"]

MISSING = "reading OTF2 needs the library otf2: pip install 'retrompi[otf2]', or Debian's python3-otf2"
NOBODY = 2**32 - 1
"""OTF2's undefined 32-bit number, e.g. for a collective without a root."""


@dataclass(frozen=True)
class Otf2Communicator:
    """A communicator: its number in the archive, its world ranks in order, those of the remote group (of an intercommunicator), and
    whether it is MPI_COMM_SELF."""

    ref: int
    group: tuple[int, ...]
    remote: tuple[int, ...] | None = None
    self_only: bool = False


@dataclass(slots=True)
class Collective:
    """A rank's record of a collective: operation (OTF2's name), communicator, root in it, bytes sent and received as recorded, and the
    request of a non-blocking one."""

    op: str
    comm: int
    root: int
    sent: int
    received: int
    request: int | None = None
    turn: int = -1  # index among the collectives of the communicator on this rank


@dataclass(slots=True)
class MpiCall:
    """An MPI region: its name, entry and exit (s), and its records ``(kind, values)`` in order."""

    name: str
    enter: float
    leave: float
    records: list[tuple[str, tuple[Any, ...]]]


@dataclass
class Archive:
    """The MPI calls by rank, communicators and windows (their communicator) by number, the rank of every MPI location, the count of
    records outside every rank, and how many of the records declared by the definitions were not read. ``program``: the lines of every
    rank, of an archive that retrompi wrote; its calls are then not read."""

    calls: list[list[MpiCall]]
    comms: dict[int, Otf2Communicator]
    world: int | None
    windows: dict[int, int]
    rank_of: dict[int, int]
    strays: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    program: list[str] | None = None


def is_anchor(path: Path, data: bytes) -> bool:
    """Whether a file is the anchor of an OTF2 archive: its magic follows two bytes; a damaged anchor is recognised by its name."""
    return data[2:6] == b"OTF2" or path.suffix == ".otf2"


def read_archive(path: Path, progress: Callable[[int, int], None] | None = None) -> Archive:
    """Read the archive whose anchor file is ``path``. Raises ``UsageError`` when the library is missing, ``TraceError`` when it cannot
    read the archive."""
    try:
        otf2 = importlib.import_module("otf2")
        reading = importlib.import_module("otf2.reader")
    except ImportError:
        raise UsageError(MISSING, code="missing-tool") from None
    if not path.is_file():
        raise TraceError("no such OTF2 anchor file", str(path), code="not-found")
    # The library prints its errors over several lines, tracebacks of its callbacks among them; we report one line.
    with _mute_stderr() as said:
        try:
            with reading.open(str(path)) as trace:
                return _read(trace, otf2, path, progress)
        except TraceError:
            raise
        except Exception as e:  # the library raises its own errors, and Python's for inconsistent content
            why = _reason(said(), e)
    raise TraceError(f"the otf2 library cannot read it: {why}", str(path), code="unreadable-file")


def _reason(said: str, error: Exception) -> str:
    """The error in one line: the library's own message, without its file names and the tracebacks of its callbacks."""
    lines = [line.strip() for line in said.partition("Traceback (most recent call last)")[0].splitlines() if line.strip()]
    told = next((line for line in lines if "error" in line.lower()), "")
    # [OTF2] src/File.c:123: error: Memory fault: Cannot read chunk.
    words = told.partition("rror: ")[2] or str(error) or type(error).__name__
    if "unhandled python exception" in words:
        last = [line.strip() for line in said.splitlines() if re.match(r"\w*(Error|Exception)\b", line)]
        words = "its definitions or events contradict each other" + (f" ({last[0]})" if last else "")
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())[:200]


@contextlib.contextmanager
def _mute_stderr() -> Iterator[Callable[[], str]]:
    with tempfile.TemporaryFile() as sink:
        kept, hook = os.dup(2), sys.unraisablehook
        try:
            os.dup2(sink.fileno(), 2)

            def output_text() -> str:
                sink.seek(0)
                return sink.read(20_000).decode("utf-8", "replace")

            yield output_text
        finally:
            # A reader that could not be opened or closed complains once more when it is deleted.
            sys.unraisablehook = lambda _: None
            gc.collect()
            sys.unraisablehook = hook
            os.dup2(kept, 2)
            os.close(kept)


def _read(trace: Any, otf2: Any, path: Path, progress: Callable[[int, int], None] | None) -> Archive:
    definitions = trace.definitions
    rank_of = _ranks(definitions, otf2, path)
    comms = {c._ref: _communicator(c, rank_of, otf2, path) for c in definitions.comms}
    everybody = tuple(range(len(rank_of)))
    world = next((ref for ref, c in sorted(comms.items()) if c.group == everybody and c.remote is None and not c.self_only), None)
    windows = {w._ref: w.comm._ref for w in definitions.rma_wins}
    archive = Archive([[] for _ in rank_of], comms, world, windows, rank_of)
    of_rank = {rank: location for location in definitions.locations if (rank := rank_of.get(location._ref)) is not None}
    archive.program = program.program_lines([of_rank[rank] for rank in range(len(rank_of))], str(path))
    if archive.program is not None:
        return archive
    tick = 1 / trace.timer_resolution
    kinds = _kinds(otf2)
    ops = {value.value: name for name, value in vars(otf2.CollectiveOp).items() if name.isupper()}
    state = [_Open() for _ in rank_of]
    enter, leave = otf2.events.Enter, otf2.events.Leave
    total = max(sum(location.number_of_events for location in definitions.locations), 1)
    seen: dict[int, int] = dict.fromkeys(rank_of, 0)
    for count, (location, event) in enumerate(trace.events):
        if progress is not None and count % 20000 == 0:
            progress(min(count, total), total)
        kind = type(event)
        rank = rank_of.get(location._ref)
        if rank is None:
            if kind in kinds:
                archive.strays[kind.__name__] = archive.strays.get(kind.__name__, 0) + 1
            continue
        seen[location._ref] += 1
        at = state[rank]
        if kind is enter:
            if at.depth or _is_mpi(event.region):
                if at.depth == 0:
                    at.call = MpiCall(event.region.name or "MPI", event.time * tick, 0.0, [])
                at.depth += 1
        elif kind is leave:
            if at.depth:
                at.depth -= 1
                if at.depth == 0:
                    at.call.leave = event.time * tick
                    archive.calls[rank].append(at.call)
        elif kind in kinds:
            record = kinds[kind](event, ops)
            if at.depth:
                at.call.records.append(record)
            else:  # archives without regions: a call of zero duration
                archive.calls[rank].append(MpiCall("", event.time * tick, event.time * tick, [record]))
    promised = {location._ref: location.number_of_events for location in definitions.locations}
    archive.missing = sum(max(promised[ref] - n, 0) for ref, n in seen.items())
    for rank, at in enumerate(state):
        if at.depth:  # the program ended within a call
            at.call.leave = at.call.enter
            archive.calls[rank].append(at.call)
    return archive


class _Open:
    """State of a location: the MPI call it is in, and its region nesting depth."""

    def __init__(self) -> None:
        self.call = MpiCall("", 0.0, 0.0, [])
        self.depth = 0


def _is_mpi(region: Any) -> bool:
    name = region.name or ""
    return name.startswith(("MPI_", "PMPI_"))


def _ranks(definitions: Any, otf2: Any, path: Path) -> dict[int, int]:
    """Location -> rank of MPI_COMM_WORLD: the locations in MPI's communicators, in their order."""
    for group in definitions.groups:
        if group.group_type == otf2.GroupType.COMM_LOCATIONS and group.paradigm == otf2.Paradigm.MPI:
            return {location._ref: rank for rank, location in enumerate(group.members)}
    raise TraceError("has no group of MPI locations: not a trace of an MPI program", str(path))


def _communicator(c: Any, rank_of: dict[int, int], otf2: Any, path: Path) -> Otf2Communicator:
    def ranks(group: Any) -> tuple[int, ...]:
        try:
            return tuple(rank_of[location._ref] for location in group.members)
        except KeyError:
            raise TraceError(f"communicator {c.name!r} has a member that is not an MPI location", str(path)) from None

    if hasattr(c, "groupA"):
        return Otf2Communicator(c._ref, ranks(c.groupA), ranks(c.groupB))
    if c.group.group_type == otf2.GroupType.COMM_SELF:
        return Otf2Communicator(c._ref, (), None, True)
    return Otf2Communicator(c._ref, ranks(c.group))


Record = tuple[str, tuple[Any, ...]]


def _kinds(otf2: Any) -> dict[Any, Callable[[Any, dict[int, str]], Record]]:
    """Relevant record types -> (kind, plain values)."""
    e = otf2.events

    def op(value: Any, ops: dict[int, str]) -> str:
        return ops.get(getattr(value, "value", value), str(value))

    def coll(event: Any, ops: dict[int, str], request: int | None) -> Collective:
        return Collective(op(event.collective_op, ops), event.communicator._ref, event.root, event.size_sent, event.size_received, request)

    table: dict[Any, Callable[[Any, dict[int, str]], Record]] = {
        e.MpiSend: lambda v, o: ("send", (v.receiver, v.communicator._ref, v.msg_tag, v.msg_length)),
        e.MpiIsend: lambda v, o: ("isend", (v.receiver, v.communicator._ref, v.msg_tag, v.msg_length, v.request_id)),
        e.MpiIsendComplete: lambda v, o: ("sent", (v.request_id,)),
        e.MpiIrecvRequest: lambda v, o: ("irecv", (v.request_id,)),
        e.MpiIrecv: lambda v, o: ("received", (v.request_id, v.sender, v.communicator._ref, v.msg_tag, v.msg_length)),
        e.MpiRecv: lambda v, o: ("recv", (v.sender, v.communicator._ref, v.msg_tag, v.msg_length)),
        e.MpiRequestTest: lambda v, o: ("tested", (v.request_id,)),
        e.MpiRequestCancelled: lambda v, o: ("cancelled", (v.request_id,)),
        e.MpiCollectiveEnd: lambda v, o: ("coll", (coll(v, o, None),)),
        e.RmaWinCreate: lambda v, o: ("win_create", (v.win._ref,)),
        e.RmaWinDestroy: lambda v, o: ("win_free", (v.win._ref,)),
        e.RmaCollectiveEnd: lambda v, o: ("win_coll", (v.win._ref, op(v.collective_op, o))),
        e.RmaGroupSync: lambda v, o: ("win_group", (v.win._ref, tuple(m._ref for m in v.group.members))),
        e.RmaRequestLock: lambda v, o: ("win_lock", (v.win._ref, v.remote, v.lock_type == otf2.LockType.EXCLUSIVE)),
        e.RmaReleaseLock: lambda v, o: ("win_unlock", (v.win._ref, v.remote)),
        e.RmaPut: lambda v, o: ("put", (v.win._ref, v.remote, v.bytes)),
        e.RmaGet: lambda v, o: ("get", (v.win._ref, v.remote, v.bytes)),
        e.RmaAtomic: lambda v, o: ("atomic", (v.win._ref, v.remote, v.bytes_sent, v.bytes_received)),
        e.RmaOpCompleteBlocking: lambda v, o: ("win_done", (v.win._ref,)),
        e.RmaOpCompleteRemote: lambda v, o: ("win_done", (v.win._ref,)),
    }
    if hasattr(e, "NonBlockingCollectiveRequest"):  # OTF2 3
        table[e.NonBlockingCollectiveRequest] = lambda v, o: ("icoll", (v.request_id,))
        table[e.NonBlockingCollectiveComplete] = lambda v, o: ("coll_done", (coll(v, o, v.request_id),))
        table[e.CommCreate] = lambda v, o: ("comm", (v.communicator._ref,))
        table[e.CommDestroy] = lambda v, o: ("comm_free", (v.communicator._ref,))
    return table
