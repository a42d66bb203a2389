"""OTF2 import: an archive of Score-P or another tracer as a time-independent trace."""

from __future__ import annotations

from collections import defaultdict, deque
from pathlib import Path
from typing import Any, Literal

from retrompi.convert.losses import Losses
from retrompi.convert.otf2.collectives import PER_PEER, Instance, action
from retrompi.convert.otf2.events import NOBODY, Archive, Collective, MpiCall, Otf2Communicator
from retrompi.convert.script import BYTE, Requests, Script, group_text
from retrompi.spec.declare.calls import CALLS, MPI3, Family, function_of, names
from retrompi.traces.errors import TraceError

__all__ = ["read_otf2"]

SENDS = {f"MPI_{call.mpi}": call.name for call in CALLS if call.family is Family.SEND}
# Calls that communicate or test, but leave no record of the request or message.
SILENT = {
    "MPI_Probe": "OTF2 has no record of what it looked for", "MPI_Iprobe": "OTF2 has no record of what it looked for",
    "MPI_Mprobe": "OTF2 has no record of what it looked for", "MPI_Improbe": "OTF2 has no record of what it looked for",
    "MPI_Comm_spawn": "process management is not replayed", "MPI_Comm_connect": "process management is not replayed",
    "MPI_Comm_accept": "process management is not replayed",
}
RECEIVES = ("", "MPI_Recv", "MPI_Mrecv", "MPI_Sendrecv", "MPI_Sendrecv_replace")
"""Regions in which a received message belongs to the call itself; ``""``: the archive has no regions."""
MESSAGES = {*SENDS, *RECEIVES, "MPI_Irecv", "MPI_Imrecv", "MPI_Start", "MPI_Startall"} - {""}
DATA = {function_of(name) for name in names(Family.COLLECTIVE, Family.NEIGHBOUR)}
ATOMICS = {f"MPI_{call.mpi}": call.name for call in CALLS if call.family is Family.TRANSFER and call.year >= MPI3}
GROUP_CALLS = {"MPI_Win_post": "Win_post", "MPI_Win_start": "Win_start", "MPI_Win_complete": "Win_complete", "MPI_Win_wait": "Win_wait"}
ROOTED = {call.mpi.upper() for call in CALLS if call.root}
HANDLES = ("CREATE_HANDLE", "CREATE_HANDLE_AND_ALLOCATE")


def read_otf2(
    archive: Archive, path: Path, losses: Losses, *, rate: float = 1e9, shortest: float = 0.0, approximate: bool = False
) -> list[str]:
    """The texts of a trace, one per rank, made of the events of the archive whose anchor file is ``path``.

    ``rate`` in flop/s converts the time between MPI calls into computation; bursts shorter than ``shortest`` seconds are dropped.
    ``approximate`` writes MPI_Alltoallv and Alltoallw, for which OTF2 has no per-peer counts, with a table in proportion to what the ranks
    sent and received; without it they are left out on all ranks and reported. Raises ``TraceError``.
    """
    for kind, count in archive.strays.items():
        losses.add(kind, "of a thread that is no rank of MPI", path.name, count=count)
    if archive.missing:
        losses.add("records", "missing in the archive, or of a kind that the library does not know", path.name, count=archive.missing)
    job = _Job(archive, path)
    return [_Rank(job, rank, path, losses, rate, shortest, approximate).text() for rank in range(len(archive.calls))]


class _Job:
    """Information that needs the records of all ranks: communicators, and the members of every collective."""

    def __init__(self, archive: Archive, path: Path) -> None:
        self.archive = archive
        self.name = path.name
        self.path = path
        self.instances: dict[tuple[int, int], Instance] = {}
        made: dict[int, int] = defaultdict(int)
        freed: dict[int, int] = defaultdict(int)
        used: set[int] = set()
        for rank, calls in enumerate(archive.calls):
            turns: dict[int, int] = defaultdict(int)
            ends: dict[int, deque[Collective]] = defaultdict(deque)  # of non-blocking ones, by request
            for call in calls:
                for kind, values in call.records:
                    if kind == "coll_done":
                        ends[values[0].request].append(values[0])
            for call in calls:
                for kind, values in call.records:
                    if kind == "comm":
                        made[values[0]] += 1
                        used.add(values[0])
                    elif kind == "comm_free":
                        freed[values[0]] += 1
                    elif kind in ("send", "recv", "isend", "received"):
                        used.add(values[1] if kind in ("send", "recv", "isend") else values[2])
                    record = values[0] if kind == "coll" else None
                    if kind == "icoll" and ends[values[0]]:
                        record = ends[values[0]].popleft()
                    if record is not None:
                        used.add(record.comm)
                        record.turn = turns[record.comm]
                        turns[record.comm] += 1
                        self._join(rank, record)
        used |= set(archive.windows.values())
        self.numbers: dict[int, int] = {}
        if archive.world is not None:
            self.numbers[archive.world] = 0
        for ref in sorted(used):
            if ref not in archive.comms:
                raise TraceError(f"communicator {ref} is not defined", str(path))
            if not archive.comms[ref].self_only:
                self.numbers.setdefault(ref, len(self.numbers) + (archive.world is None))
        everybody = {ref: c.group + (c.remote or ()) for ref, c in archive.comms.items()}
        self.in_place = {ref for ref in self.numbers if made[ref] == len(everybody[ref]) and archive.comms[ref].remote is None}
        # Collectives in which some member's record shows the communicator that it created.
        self.makings: set[tuple[int, int]] = set()
        for calls in archive.calls:
            for call in calls:
                if any(kind == "comm" and values[0] in self.in_place for kind, values in call.records):
                    self.makings |= {(v[0].comm, v[0].turn) for kind, v in call.records if kind == "coll" and v[0].op in HANDLES}
        self.freed = {ref for ref in self.numbers if freed[ref] == len(everybody[ref])}
        self.at_start = [ref for ref in sorted(self.numbers) if ref not in self.in_place and ref != archive.world]

    def _join(self, rank: int, record: Collective) -> None:
        comm = self.archive.comms.get(record.comm)
        if comm is None or comm.self_only or rank not in comm.group:
            return
        instance = self.instances.setdefault((record.comm, record.turn), Instance(len(comm.group)))
        instance.members[comm.group.index(rank)] = record

    def check(self, comm: int, turn: int, place: str) -> Instance:
        """The instance of a collective. Raises ``TraceError`` when its members call different ones or some are missing."""
        instance = self.instances[comm, turn]
        names = {m.op for m in instance.members.values()}
        if len(names) > 1:
            raise TraceError(
                f"{place}: on communicator {comm} the ranks call different collectives: {', '.join(sorted(names))}", str(self.path)
            )
        return instance


class _Rank:
    """Converts one rank's calls."""

    def __init__(self, job: _Job, rank: int, path: Path, losses: Losses, rate: float, shortest: float, approximate: bool) -> None:
        self.job = job
        self.rank = rank
        self.losses = losses
        self.approximate = approximate
        self.out = Script(rank, rate, shortest)
        self.requests = Requests()
        self.open: dict[int, tuple[int, tuple[int, ...]]] = {}  # OTF2's request -> identifier, key of its wait
        self.arrivals: dict[int, deque[tuple[Any, ...] | None]] = defaultdict(deque)
        self.collectives: dict[int, deque[Collective]] = defaultdict(deque)
        self.place = ""
        for call in job.archive.calls[rank]:
            for kind, values in call.records:
                if kind == "received":
                    self.arrivals[values[0]].append(values[1:])
                elif kind == "cancelled":
                    self.arrivals[values[0]].append(None)
                elif kind == "coll_done":
                    self.collectives[values[0].request].append(values[0])

    def lose(self, call: MpiCall, what: str, effect: Literal["lost", "approximated"] = "lost") -> None:
        self.losses.add(call.name or "MPI", what, self.place, effect)

    def comm(self, ref: int) -> Otf2Communicator:
        return self.job.archive.comms[ref]

    def attr(self, ref: int) -> int | None:
        return self.job.numbers.get(ref) or None

    def world(self, ref: int, rank: int) -> int:
        comm = self.comm(ref)
        if comm.self_only:
            return self.rank
        peers = comm.group if comm.remote is None else (comm.remote if self.rank in comm.group else comm.group)
        if not 0 <= rank < len(peers):
            raise TraceError(
                f"{self.place}: rank {rank} is not in communicator {ref} of {len(peers)} ranks", str(self.job.path), code="unknown-rank"
            )
        return peers[rank]

    def text(self) -> str:
        calls = self.job.archive.calls[self.rank]
        # A trace that starts inside the program, or has no regions, has no MPI_Init.
        started = any(c.name in ("MPI_Init", "MPI_Init_thread") for c in calls)
        if not started:
            self.begin()
        last: float | None = None
        over = False
        for number, call in enumerate(calls, 1):
            self.place = f"rank {self.rank}, MPI call {number}"
            if last is not None:
                self.out.compute(call.enter - last)
            if call.name in ("MPI_Init", "MPI_Init_thread"):
                self.begin()
            elif call.name == "MPI_Finalize":
                self.end()
                over = True
            else:
                self.call(call)
            last = call.leave
        if not over:
            self.end()
        return self.out.text()

    def begin(self) -> None:
        self.out.add("init")
        for ref in self.job.at_start:
            comm = self.comm(ref)
            if self.rank not in comm.group + (comm.remote or ()):
                continue
            if comm.remote is not None:
                self.lose(MpiCall("MPI_Intercomm_create", 0, 0, []), "OTF2 does not say from which communicators: left out")
                continue
            self.out.add("comm_create_group", self.job.numbers[ref], group_text(comm.group))
            self.losses.add("communicator", "when it was made is not recorded: made at the start", f"{self.job.name}, communicator {ref}",
                            "approximated")

    def end(self) -> None:
        if self.open:
            reqs = sorted(req for req, _ in self.open.values())
            self.out.add("waitall", len(reqs), reqs=reqs)
            self.losses.add("requests", "open at the end: waited for there", f"rank {self.rank}", "approximated", len(reqs))
            self.open.clear()
        self.out.add("finalize")

    # -- one call

    def call(self, call: MpiCall) -> None:
        kinds = [kind for kind, _ in call.records]
        if "send" in kinds and "recv" in kinds:
            self.sendrecv(call)
        finished: list[tuple[int, tuple[int, ...]]] = []
        tested: list[int] = []
        if "comm" in kinds or any(k == "coll" and v[0].op in HANDLES for k, v in call.records):
            self.creation(call)
        for kind, values in call.records:
            if kind in ("send", "recv"):
                if not ("send" in kinds and "recv" in kinds):
                    self.blocking(call, kind, values)
            elif kind == "isend":
                to, ref, tag, size, request = values
                peer = self.world(ref, to)
                req = self.file(request, (self.rank, peer, tag))
                self.out.add(SENDS.get(call.name, "isend"), peer, tag, size, BYTE, req=req, comm=self.attr(ref))
            elif kind == "irecv":
                self.receive(call, values[0])
            elif kind in ("sent", "received", "coll_done"):
                request = values[0].request if kind == "coll_done" else values[0]
                if request in self.open:
                    finished.append(self.open.pop(request))
                elif kind != "coll_done" or values[0].request is not None:
                    self.lose(call, "completes a request that no record makes")
            elif kind == "tested":
                tested.append(values[0])
            elif kind == "coll":
                self.collective(call, values[0], None)
            elif kind == "icoll":
                if self.collectives[values[0]]:
                    self.collective(call, self.collectives[values[0]].popleft(), values[0])
                else:
                    self.lose(call, "a collective that never completes says nothing of itself")
            elif kind == "comm_free":
                if values[0] in self.job.freed and self.attr(values[0]) is not None:
                    self.out.add("comm_free", comm=self.attr(values[0]))
            elif kind.startswith("win_") or kind in ("put", "get", "atomic"):
                self.one_sided(call, kind, values)
        self.completion(call, finished, tested)
        if call.name.startswith("MPI_Win_flush"):
            self.flush(call)
        elif not call.records:
            self.silent(call)

    def file(self, request: int, key: tuple[int, ...]) -> int:
        req = self.requests.new()
        self.open[request] = (req, key)
        return req

    def blocking(self, call: MpiCall, kind: str, values: tuple[Any, ...]) -> None:
        peer, ref, tag, size = values
        name = SENDS.get(call.name, "send") if kind == "send" else "recv"
        if kind == "send" and name.lower().startswith("i"):
            name = "send"
            self.lose(call, "no record of its request: written as a blocking send", "approximated")
        elif kind == "recv" and call.name not in RECEIVES:
            self.lose(call, "receives a message that no record posts: written as a blocking receive", "approximated")
        self.out.add(name, self.world(ref, peer), tag, size, BYTE, comm=self.attr(ref))

    def sendrecv(self, call: MpiCall) -> None:
        (to, ref, stag, sent), (source, _, rtag, received) = (next(v for k, v in call.records if k == kind) for kind in ("send", "recv"))
        self.out.add("sendRecv", sent, self.world(ref, to), received, self.world(ref, source), BYTE, BYTE, stag=stag, rtag=rtag,
                     comm=self.attr(ref))

    def receive(self, call: MpiCall, request: int) -> None:
        """A receive is posted: its source and tag are in the record of its completion."""
        if not self.arrivals[request]:
            self.lose(call, "a receive that never completes says nothing of itself")
            return
        arrival = self.arrivals[request].popleft()
        if arrival is None:
            self.lose(call, "cancelled: left out")
            return
        sender, ref, tag, size = arrival
        peer = self.world(ref, sender)
        req = self.file(request, (peer, self.rank, tag))
        self.out.add("irecv", peer, tag, size, BYTE, req=req, comm=self.attr(ref))

    def completion(self, call: MpiCall, finished: list[tuple[int, tuple[int, ...]]], tested: list[int]) -> None:
        test = call.name.startswith("MPI_Test")
        reqs = [req for req, _ in finished]
        if len(finished) == 1:
            req, key = finished[0]
            self.out.add("test" if test else "wait", *key, req=req, flag=1 if test else None)
        elif finished:
            self.out.add("testall" if test else "waitall", len(reqs), reqs=reqs, done=reqs if test else None)
        for req in reqs:
            self.requests.release(req)
        if not finished:
            for request in tested:
                if request in self.open:
                    req, key = self.open[request]
                    self.out.add("test", *key, req=req, flag=0)

    # -- collectives and communicators

    def collective(self, call: MpiCall, record: Collective, request: int | None) -> None:
        comm = self.comm(record.comm)
        if record.op in HANDLES or record.op in ("ALLOCATE", "DEALLOCATE", "DESTROY_HANDLE", "DESTROY_HANDLE_AND_DEALLOCATE"):
            return
        if comm.self_only:
            self.losses.no_use(f"{call.name} on MPI_COMM_SELF")
            return
        if comm.remote is not None or self.rank not in comm.group:
            self.lose(call, "a collective of an intercommunicator")
            return
        instance = self.job.check(record.comm, record.turn, self.place)
        if record.op in PER_PEER and not self.approximate:
            self.lose(call, "OTF2 keeps no counts a peer: left out on all ranks (--approximate spreads the bytes)")
            return
        if record.op in ROOTED and not 0 <= record.root < len(comm.group):
            raise TraceError(
                f"{self.place}: root {record.root} of a communicator of {len(comm.group)} ranks", str(self.job.path), code="unknown-rank"
            )
        line = action(instance, comm.group.index(self.rank))
        if line is None:
            self.lose(call, f"a collective {record.op} has no counterpart in a trace")
            return
        name, arguments, guessed = line
        if guessed is not None:
            self.lose(call, guessed, "approximated")
        req = None
        if request is not None:
            name, req = f"i{name}", self.file(request, ())
        self.out.add(name, *arguments, req=req, comm=self.attr(record.comm))

    def creation(self, call: MpiCall) -> None:
        """MPI_Comm_split and similar: kept in place if all members' records show it, else the communicator exists from the start."""
        made = next((v[0] for k, v in call.records if k == "comm"), None)
        over = next((v[0].comm for k, v in call.records if k == "coll" and v[0].op in HANDLES), None)
        if any(k == "win_create" for k, _ in call.records):
            return
        if made is not None and made not in self.job.in_place:
            return
        if over is None:
            if made is not None:
                self.out.add("comm_create_group", self.job.numbers[made], group_text(self.comm(made).group))
            return
        turn = next(v[0].turn for k, v in call.records if k == "coll" and v[0].op in HANDLES)
        if (over, turn) not in self.job.makings:
            return
        name = "comm_dup" if call.name == "MPI_Comm_dup" else "comm_split"
        if made is None:
            self.out.add(name, -1, comm=self.attr(over))
        else:
            self.out.add(name, self.job.numbers[made], group_text(self.comm(made).group), comm=self.attr(over))

    # -- one-sided

    def one_sided(self, call: MpiCall, kind: str, values: tuple[Any, ...]) -> None:
        ref = values[0]
        comm = self.job.archive.windows.get(ref)
        if comm is None:
            raise TraceError(f"{self.place}: window {ref} is not defined", str(self.job.path))
        window = ref + 1
        if kind == "win_create":
            self.out.add("win_create", window, 0, comm=self.attr(comm))
            self.losses.add("MPI_Win_create", "the window's length is not recorded", self.place, "approximated")
        elif kind == "win_free":
            self.out.add("win_free", window)
        elif kind == "win_coll":
            if call.name == "MPI_Win_fence":
                self.out.add("Win_fence", win=window)
            elif not any(k in ("win_create", "win_free") for k, _ in call.records):
                self.lose(call, f"a collective {values[1]} of a window")
        elif kind == "win_group":
            name = GROUP_CALLS.get(call.name)
            if name in ("Win_post", "Win_start"):
                ranks = [self.job.archive.rank_of[location] for location in values[1] if location in self.job.archive.rank_of]
                self.out.add(name, group_text(ranks), win=window)
            elif name is not None:
                self.out.add(name, win=window)
            else:
                self.lose(call, "a synchronisation of a group of the window")
        elif kind in ("win_lock", "win_unlock"):
            name = "Win_lock" if kind == "win_lock" else "Win_unlock"
            if values[1] == NOBODY or call.name.endswith("_all"):
                self.out.add(f"{name}_all", win=window)
            elif kind == "win_lock":
                self.out.add(name, self.world(comm, values[1]), int(values[2]), win=window)
            else:
                self.out.add(name, self.world(comm, values[1]), win=window)
        elif kind in ("put", "get"):
            self.out.add(kind.capitalize(), self.world(comm, values[1]), 0, values[2], BYTE, win=window)
        elif kind == "atomic":
            name = ATOMICS.get(call.name, "Accumulate")
            self.out.add(name, self.world(comm, values[1]), 0, max(values[2], values[3]), BYTE, win=window)

    def flush(self, call: MpiCall) -> None:
        window = next((v[0] + 1 for k, v in call.records if k == "win_done"), None)
        if window is None:
            self.lose(call, "OTF2 has no record of the window")
        else:
            # The target is not recorded; completing all targets takes at least as long.
            self.out.add("Win_flush_local_all" if "local" in call.name else "Win_flush_all", win=window)

    def silent(self, call: MpiCall) -> None:
        if call.name in SILENT:
            self.lose(call, SILENT[call.name])
        elif call.name.startswith("MPI_File_"):
            self.lose(call, "MPI-IO is not replayed")
        elif call.name in MESSAGES:
            self.lose(call, "no record of a message: left out as one with MPI_PROC_NULL", "approximated")
        elif call.name in DATA:
            self.lose(call, "no record of the collective: left out")
        else:
            self.losses.no_use(call.name or "MPI")
