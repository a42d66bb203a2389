"""DUMPI import: the binary traces of SST/macro's tracer (sst-dumpi) as a time-independent trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from retrompi.base.files import open_regular
from retrompi.convert import comms
from retrompi.convert.comms import Comm, Join
from retrompi.convert.dumpi.calls import COLLECTIVES, SENDS, SEVERAL, Bytes, collective_line
from retrompi.convert.dumpi.file import DumpiCall, DumpiFile, Status, bin_files, is_meta, read_meta
from retrompi.convert.dumpi.types import Groups, Types
from retrompi.convert.formats import Clock
from retrompi.convert.losses import Losses
from retrompi.convert.script import ANY_SOURCE, ANY_TAG, BYTE, PROC_NULL, ROOT, Requests, Script, group_text
from retrompi.traces.errors import TraceError

__all__ = ["Clock", "read_dumpi"]

COMM_NULL, COMM_WORLD, COMM_SELF = 1, 2, 3
REQUEST_NULL = 1
DUMPI_ANY, DUMPI_ROOT = -1, -2
LOCK_EXCLUSIVE = 2
# Calls that need no replay. Calls that are in no table here or below are reported as lost.
NO_USE = frozenset(
    re.findall(
        r"\w+",
        """
        Get_count Buffer_attach Buffer_detach Test_cancelled Address Get_address Get_elements Pack Unpack Pack_size Pack_external
        Pack_external_size Unpack_external Op_create Op_free Comm_size Comm_rank Comm_compare Comm_test_inter Comm_remote_size
        Keyval_create Keyval_free Attr_put Attr_get Attr_delete Topo_test Dims_create Graphdims_get Graph_get Cartdim_get Cart_get
        Cart_rank Cart_coords Graph_neighbors_count Graph_neighbors Cart_shift Cart_map Graph_map Get_processor_name Get_version
        Errhandler_create Errhandler_set Errhandler_get Errhandler_free Error_string Error_class Wtime Wtick Initialized Finalized
        Pcontrol Is_thread_main Query_thread Alloc_mem Free_mem Comm_get_parent Comm_create_keyval Comm_delete_attr Comm_free_keyval
        Comm_get_attr Comm_get_name Comm_set_attr Comm_set_name Comm_create_errhandler Comm_get_errhandler Comm_set_errhandler
        Comm_call_errhandler Win_create_keyval Win_delete_attr Win_free_keyval Win_get_attr Win_get_name Win_set_attr Win_set_name
        Win_create_errhandler Win_get_errhandler Win_set_errhandler Win_call_errhandler Win_get_group Add_error_class Add_error_code
        Add_error_string Info_create Info_delete Info_dup Info_free Info_get Info_get_nkeys Info_get_nthkey Info_get_valuelen Info_set
        Status_set_cancelled Status_set_elements Lookup_name Request_get_status
        """,
    )
)


def read_dumpi(
    path: Path,
    losses: Losses,
    *,
    rate: float = 1e9,
    clock: Clock | None = None,
    shortest: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """The texts of a trace, one per rank, of a DUMPI meta file or one of its ``.bin`` files.

    ``rate`` in flop/s converts the time between calls into computation; ``clock`` is the CPU's or the wall clock (default: the CPU's if
    recorded); bursts shorter than ``shortest`` seconds are dropped. Losses are added to ``losses``. Raises ``TraceError``.
    """
    try:
        with open_regular(path) as handle:
            first = handle.read(4096)
    except OSError as e:
        raise TraceError(f"cannot be read: {e.strerror or e}", str(path), code="unreadable-file") from e
    names = read_meta(path) if is_meta(first) else bin_files(path)
    world = Comm(0, tuple(range(len(names))))
    ranks = [_Rank(r, name, world, losses, rate, clock, shortest) for r, name in enumerate(names)]
    try:
        comms.run([r.run() for r in ranks], progress)
    except comms.StuckRanks as e:
        raise TraceError(str(e), str(path)) from None
    return [r.out.text() for r in ranks]


class _Rank:
    """Converts one rank's file."""

    def __init__(self, rank: int, path: Path, world: Comm, losses: Losses, rate: float, clock: Clock | None, shortest: float) -> None:
        self.rank = rank
        self.path = path
        self.losses = losses
        self.out = Script(rank, rate, shortest)
        self.clock = clock
        self.comms: dict[int, Comm] = {COMM_WORLD: world}
        self.world = world
        self.requests = Requests()
        # handle -> identifier, persistent?, the key of its wait (None: a send or receive that needs none), its communicator
        self.open: dict[int, tuple[int, bool, tuple[int, int, int], Comm, bool]] = {}
        self.windows: dict[int, tuple[int, Comm]] = {}
        self.own_windows: set[int] = set()  # on MPI_COMM_SELF
        self.groups = Groups()

    # -- helpers

    def place(self, call: DumpiCall) -> str:
        return f"{self.path.name}, byte {call.offset}"

    def lose(self, call: DumpiCall, what: str, effect: Literal["lost", "approximated"] = "lost") -> None:
        self.losses.add(f"MPI_{call.name}", what, self.place(call), effect)

    def fail(self, call: DumpiCall, what: str, code: str | None = None) -> TraceError:
        return TraceError(f"byte {call.offset}: MPI_{call.name}: {what}", str(self.path), code=code)

    def comm(self, call: DumpiCall, field: str = "comm") -> Comm:
        handle = call.args[field]
        if handle == COMM_SELF:
            return Comm(-1, (self.rank,))
        if handle not in self.comms:
            raise self.fail(call, f"communicator {handle} was never made, or freed before")
        return self.comms[handle]

    @staticmethod
    def attr(comm: Comm) -> int | None:
        return comm.id if comm.id > 0 else None

    def world_rank(self, call: DumpiCall, comm: Comm, rank: int) -> int:
        if not 0 <= rank < len(comm.peers):
            raise self.fail(call, f"rank {rank} is not in the communicator of {len(comm.peers)} ranks", code="unknown-rank")
        return comm.peers[rank]

    def destination(self, call: DumpiCall, comm: Comm, rank: int) -> int:
        return PROC_NULL if rank < 0 else self.world_rank(call, comm, rank)

    def source(self, call: DumpiCall, comm: Comm, rank: int) -> int:
        if rank == DUMPI_ANY:
            return ANY_SOURCE
        return PROC_NULL if rank < 0 else self.world_rank(call, comm, rank)

    @staticmethod
    def tag(tag: int) -> int:
        return ANY_TAG if tag == DUMPI_ANY else tag

    def bytes_of(self, call: DumpiCall, count: int, handle: int) -> int:
        size = self.types.size(handle)
        if size is None:
            if count:
                self.lose(call, f"the size of datatype {handle} is not recorded: written as bytes")
            return count
        return count * size

    def match_of(self, comm: Comm, status: Status | None, wild_source: bool, wild_tag: bool) -> tuple[int | None, int | None]:
        """from= and mtag= of a wildcard receive; None where they are not wildcards or unknown."""
        if status is None or not (wild_source or wild_tag) or not 0 <= status.source < len(comm.peers):
            return None, None
        return comm.peers[status.source], (status.tag if status.tag >= 0 else None)

    # -- the call stream

    def run(self) -> comms.Reader:
        file = DumpiFile(self.path)
        self.types = Types(file)
        last: int | None = None
        thread: int | None = None
        use_cpu = self.clock
        for call in file.calls():
            if use_cpu is None:
                use_cpu = "cpu" if call.cpu is not None else "wall"
            times = call.cpu if use_cpu == "cpu" else call.wall
            if times is None:
                self.losses.add("computation", f"no {use_cpu} clock was recorded: calls without computation between", self.place(call))
            elif last is not None:
                self.out.compute((times[0] - last) * 1e-9)
            if thread is None:
                thread = call.thread
            elif thread != call.thread:
                self.lose(call, "of another thread: its calls stand in one line with the first thread's", "approximated")
            yield from self.call(call)
            if times is not None:
                last = times[1]

    def call(self, call: DumpiCall) -> comms.Making:
        name = call.name
        handler = getattr(self, f"on_{name.lower()}", None)
        if call.args.get("win", 0) in self.own_windows and name != "Win_create":
            self.lose(call, "a window on MPI_COMM_SELF")
        elif handler is not None:
            done = handler(call)
            if done is not None:
                yield from done
        elif name in SENDS:
            self.send(call, SENDS[name])
        elif name in COLLECTIVES:
            self.collective(call)
        elif name in SEVERAL:
            self.family(call, SEVERAL[name])
        elif self.groups.learn(call) or name in NO_USE or self.types.learn(call):
            self.losses.no_use(f"MPI_{name}")
        elif name.startswith(("File_", "IO_", "Register_datarep")):
            self.lose(call, "MPI-IO is not replayed")
        elif name.startswith("Comm_") or name.endswith(("_port", "_name")):
            self.lose(call, "process management is not replayed")
        else:
            self.lose(call, "has no counterpart in a trace")

    def on_init(self, call: DumpiCall) -> None:
        self.out.add("init")

    on_init_thread = on_init

    def on_finalize(self, call: DumpiCall) -> None:
        self.out.add("finalize")

    # -- point to point

    def file_request(self, call: DumpiCall, persistent: bool, key: tuple[int, int, int], comm: Comm, wild: bool) -> int:
        req = self.requests.new()
        self.open[call.args["request"]] = (req, persistent, key, comm, wild)
        return req

    def send(self, call: DumpiCall, action: str) -> None:
        a = call.args
        comm = self.comm(call)
        if comm.id < 0 and not action.endswith(("Init",)) and "request" not in a:
            self.lose(call, "a message to itself on MPI_COMM_SELF stays on MPI_COMM_WORLD", "approximated")
        to, tag = self.destination(call, comm, a["dest"]), a["tag"]
        req = None
        if "request" in a:
            req = self.file_request(call, action.endswith("Init"), (self.rank, to, tag), comm, False)
        self.out.add(action, to, tag, self.bytes_of(call, a["count"], a["datatype"]), BYTE, comm=self.attr(comm), req=req)

    def on_recv(self, call: DumpiCall) -> None:
        a = call.args
        comm = self.comm(call)
        source, tag = self.source(call, comm, a["source"]), self.tag(a["tag"])
        status = a["status"][0] if a["status"] else None
        if source == ANY_SOURCE and status is not None and status.source < 0:
            source = PROC_NULL  # MPICH's MPI_PROC_NULL has the number of MPI_ANY_SOURCE here
        wild = source == ANY_SOURCE
        at, mtag = self.match_of(comm, status, wild, tag == ANY_TAG) if source != PROC_NULL else (None, None)
        if wild and at is None:
            self.lose(call, "the source that matched MPI_ANY_SOURCE is not recorded (no statuses): any will do", "approximated")
        self.out.add("recv", source, tag, self.bytes_of(call, a["count"], a["datatype"]), BYTE, source=at, mtag=mtag, comm=self.attr(comm))

    def on_irecv(self, call: DumpiCall) -> None:
        self.receive(call, "irecv", False)

    def on_recv_init(self, call: DumpiCall) -> None:
        self.receive(call, "recvInit", True)

    def receive(self, call: DumpiCall, action: str, persistent: bool) -> None:
        a = call.args
        comm = self.comm(call)
        source, tag = self.source(call, comm, a["source"]), self.tag(a["tag"])
        req = self.file_request(call, persistent, (source, self.rank, tag), comm, source == ANY_SOURCE or tag == ANY_TAG)
        self.out.add(action, source, tag, self.bytes_of(call, a["count"], a["datatype"]), BYTE, req=req, comm=self.attr(comm))

    def on_sendrecv(self, call: DumpiCall) -> None:
        a = call.args
        comm = self.comm(call)
        replace = "recvcount" not in a
        sent = self.bytes_of(call, a["count"] if replace else a["sendcount"], a["datatype"] if replace else a["sendtype"])
        received = sent if replace else self.bytes_of(call, a["recvcount"], a["recvtype"])
        to, source, tag = self.destination(call, comm, a["dest"]), self.source(call, comm, a["source"]), self.tag(a["recvtag"])
        at, mtag = self.match_of(comm, a["status"][0] if a["status"] else None, source == ANY_SOURCE, tag == ANY_TAG)
        self.out.add(
            "sendRecv", sent, to, received, source, BYTE, BYTE, stag=a["sendtag"], rtag=tag, source=at, mtag=mtag, comm=self.attr(comm)
        )

    on_sendrecv_replace = on_sendrecv

    def on_probe(self, call: DumpiCall) -> None:
        a = call.args
        comm = self.comm(call)
        source, tag = self.source(call, comm, a["source"]), self.tag(a["tag"])
        flag = a.get("flag")
        status = a["status"][0] if a["status"] and flag != 0 else None
        at, mtag = self.match_of(comm, status, source == ANY_SOURCE, tag == ANY_TAG)
        flag = None if flag is None else int(bool(flag))
        action = "probe" if flag is None else "iprobe"
        self.out.add(action, source, tag, flag=flag, source=at, mtag=mtag, comm=self.attr(comm))

    on_iprobe = on_probe

    # -- completion

    def complete(self, handle: int) -> None:
        """A request is complete: its handle is free again, unless it is persistent."""
        req, persistent, *_ = self.open[handle]
        if not persistent:
            del self.open[handle]
            self.requests.release(req)

    def status_match(self, call: DumpiCall, handle: int, status: Status | None) -> tuple[int | None, int | None]:
        _, _, _, comm, wild = self.open[handle]
        if not wild:
            return None, None
        found = self.match_of(comm, status, True, True)
        if found[0] is None:
            self.lose(call, "the source that matched MPI_ANY_SOURCE is not recorded (no statuses): any will do", "approximated")
        return found

    def knows(self, call: DumpiCall, handle: int) -> bool:
        if handle in self.open:
            return True
        if handle != REQUEST_NULL:
            self.lose(call, f"request {handle} was made by no call that is replayed")
        return False

    def on_wait(self, call: DumpiCall) -> None:
        a = call.args
        handle = a["request"]
        if not self.knows(call, handle):
            self.losses.no_use(f"MPI_{call.name} of MPI_REQUEST_NULL")
            return
        req, _, key, _, _ = self.open[handle]
        flag = a.get("flag")
        action = "wait" if flag is None else "test"
        at, mtag = self.status_match(call, handle, a["status"][0] if a["status"] else None) if flag != 0 else (None, None)
        flag = None if flag is None else int(bool(flag))
        self.out.add(action, *key, req=req, flag=flag, source=at, mtag=mtag)
        if flag != 0:
            self.complete(handle)

    on_test = on_wait

    def family(self, call: DumpiCall, action: str) -> None:
        """MPI_Waitall, Waitany, Waitsome, Testall, Testany, Testsome, Startall."""
        a = call.args
        handles = list(a["requests"])
        statuses: Sequence[Status] = a.get("statuses", a.get("status", ()))
        if call.name in ("Waitsome", "Testsome"):
            done = list(a["indices"][: max(a["outcount"], 0)])
        elif call.name == "Waitany" or (call.name == "Testany" and a["flag"]):
            done = [a["index"]]
        elif call.name in ("Waitall", "Startall") or (call.name == "Testall" and a["flag"]):
            done = list(range(len(handles)))
        else:
            done = []
        if any(i >= len(handles) for i in done):
            raise self.fail(call, f"index {max(done)} of {len(handles)} requests")
        done = [i for i in done if i >= 0]  # MPI_UNDEFINED: none was active
        meant = [i for i, h in enumerate(handles) if self.knows(call, h)]
        if not meant:
            self.losses.no_use(f"MPI_{call.name} of nothing")
            return
        reqs = [self.open[handles[i]][0] for i in meant]
        everything = call.name in ("Waitall", "Startall")
        finished = [i for i in done if i in set(meant)]
        told: list[tuple[int, int, int | None]] = []
        if call.name != "Startall":
            for at, i in enumerate(done):
                if i not in set(finished):
                    continue
                index = at if call.name in ("Waitsome", "Testsome", "Waitany", "Testany") else i
                source, mtag = self.status_match(call, handles[i], statuses[index] if index < len(statuses) else None)
                if source is not None:
                    told.append((self.open[handles[i]][0], source, mtag))
        self.out.add(
            action, len(reqs), reqs=reqs, done=None if everything else [self.open[handles[i]][0] for i in finished],
            source=[f"{r}:{s}" for r, s, _ in told] or None,
            mtag=[f"{r}:{t}" for r, _, t in told if t is not None] or None,
        )
        if call.name != "Startall":
            for i in finished:
                self.complete(handles[i])

    def on_start(self, call: DumpiCall) -> None:
        handle = call.args["request"]
        if self.knows(call, handle):
            req, _, key, _, _ = self.open[handle]
            self.out.add("start", *key, req=req)

    def on_request_free(self, call: DumpiCall) -> None:
        handle = call.args["request"]
        if not self.knows(call, handle):
            return
        req, persistent, key, _, _ = self.open.pop(handle)
        if persistent:
            self.out.add("requestFree", *key, req=req)
            self.requests.release(req)
        else:
            self.lose(call, "of an active request: nothing waits for it any more", "approximated")

    def on_cancel(self, call: DumpiCall) -> None:
        self.lose(call, "cancelling is not replayed: the call it cancels stays")

    # -- collectives

    def collective(self, call: DumpiCall) -> None:
        comm = self.comm(call)
        if comm.id < 0:
            self.losses.no_use(f"MPI_{call.name} on MPI_COMM_SELF")
            return
        sizes: Bytes = lambda count, handle: self.bytes_of(call, count, handle)  # noqa: E731
        a = dict(call.args)
        if "root" in a and comm.remote is not None:
            a["root"] = ROOT if a["root"] == DUMPI_ROOT else PROC_NULL if a["root"] < 0 else a["root"]
        elif "root" in a and not 0 <= a["root"] < len(comm.group):
            raise self.fail(call, f"root {a['root']} is not in the communicator of {len(comm.group)} ranks", code="unknown-rank")
        action, arguments = collective_line(call.name, a, sizes, len(comm.peers))
        self.out.add(action, *arguments, comm=self.attr(comm))

    # -- communicators

    def add_communicator(self, call: DumpiCall, comm: Comm | None, action: str, old: Comm, **attributes: object) -> None:
        handle = call.args["newcomm"]
        if old.id < 0:
            if comm is not None:
                self.comms[handle] = Comm(-1, (self.rank,))
            return
        over = self.attr(old)
        if comm is None:
            self.out.add(action, -1, comm=over)
            return
        self.comms[handle] = comm
        groups = [group_text(comm.group)] + ([group_text(comm.remote)] if comm.remote is not None and action == "intercomm_create" else [])
        self.out.add(action, comm.id, *groups, **attributes, comm=over)

    def joint(self, call: DumpiCall, how: str, comm: Comm, value: Any) -> comms.Joining:
        if comm.id < 0:  # on MPI_COMM_SELF there is no other rank to wait for
            return comm
        answer = yield Join(how, comm, value, self.place(call))
        return answer

    def on_comm_dup(self, call: DumpiCall) -> comms.Making:
        old = self.comm(call, "oldcomm")
        new = yield from self.joint(call, "dup", old, None)
        self.add_communicator(call, new, "comm_dup", old)

    def on_comm_split(self, call: DumpiCall) -> comms.Making:
        old = self.comm(call, "oldcomm")
        # A rank that gets no communicator passed MPI_UNDEFINED, whatever its value in that library.
        colour = None if call.args["newcomm"] <= COMM_NULL else call.args["color"]
        new = yield from self.joint(call, "split", old, (colour, call.args["key"]))
        self.add_communicator(call, new if colour is not None else None, "comm_split", old)

    def on_comm_create(self, call: DumpiCall) -> comms.Making:
        old = self.comm(call, "oldcomm")
        group = self.groups.get(call.args["group"])
        if group is None:
            raise self.fail(call, f"group {call.args['group']} was made by no call that is recorded")
        new = yield from self.joint(call, "create", old, (group, ()))
        self.add_communicator(call, new, "comm_create", old)

    def on_cart_create(self, call: DumpiCall) -> comms.Making:
        a = call.args
        old = self.comm(call, "oldcomm")
        size = 1
        for d in a["dims"]:
            size *= d
        if a["reorder"]:
            self.lose(call, "with reorder the new order of ranks is not recorded: taken as the old one", "approximated")
        new = yield from self.joint(call, "create", old, (old.group[:size], tuple(a["dims"])))
        dims, periods = "x".join(map(str, a["dims"])), "x".join(str(int(bool(p))) for p in a["periods"])
        self.add_communicator(call, new, "cart_create", old, **({"dims": dims, "periods": periods} if new is not None else {}))

    def on_cart_sub(self, call: DumpiCall) -> comms.Making:
        old = self.comm(call, "oldcomm")
        keep = call.args["remain_dims"]
        if len(keep) != len(old.dims):
            raise self.fail(call, f"keeps {len(keep)} dimensions of a communicator that has {len(old.dims)}")
        coordinates, rest = [], old.group.index(self.rank)
        for d in reversed(old.dims):
            coordinates.append(rest % d)
            rest //= d
        coordinates.reverse()
        colour = key = 0
        for at, d in enumerate(old.dims):
            if keep[at]:
                key = key * d + coordinates[at]
            else:
                colour = colour * d + coordinates[at]
        new = yield from self.joint(call, "split", old, (colour, key))
        if isinstance(new, Comm):
            new = Comm(new.id, new.group, dims=tuple(d for d, k in zip(old.dims, keep, strict=True) if k))
        self.add_communicator(call, new, "comm_split", old)

    def on_graph_create(self, call: DumpiCall) -> comms.Making:
        a = call.args
        old = self.comm(call, "oldcomm")
        group = old.group[: a["nodes"]]
        new = yield from self.joint(call, "create", old, (group, ()))
        attributes: dict[str, object] = {}
        if new is not None:
            me = group.index(self.rank)
            edges = list(a["edges"][a["index"][me - 1] if me else 0 : a["index"][me]])
            attributes = {"in": edges, "out": edges}
        self.add_communicator(call, new, "graph_create", old, **attributes)

    def on_intercomm_create(self, call: DumpiCall) -> comms.Making:
        a = call.args
        local = self.comm(call, "localcomm")
        remote = self.comms.get(a["remotecomm"])
        leader = remote.peers[a["remoteleader"]] if remote is not None and 0 <= a["remoteleader"] < len(remote.peers) else -1
        new = yield Join("inter", local, (a["localleader"], leader, a["tag"]), self.place(call))
        self.add_communicator(call, new, "intercomm_create", local)

    def on_intercomm_merge(self, call: DumpiCall) -> comms.Making:
        old = self.comm(call)
        new = yield Join("merge", old, bool(call.args["high"]), self.place(call))
        self.add_communicator(call, new, "intercomm_merge", old)

    def on_comm_free(self, call: DumpiCall) -> None:
        comm = self.comm(call)
        if comm.id > 0:
            self.out.add("comm_free", comm=comm.id)
        self.comms.pop(call.args["comm"], None)

    on_comm_disconnect = on_comm_free

    def on_comm_group(self, call: DumpiCall) -> None:
        self.groups.set(call.args["group"], self.comm(call).group)
        self.losses.no_use(f"MPI_{call.name}")

    def on_comm_remote_group(self, call: DumpiCall) -> None:
        self.groups.set(call.args["group"], self.comm(call).peers)
        self.losses.no_use(f"MPI_{call.name}")

    # -- one-sided

    def window(self, call: DumpiCall) -> tuple[int, Comm]:
        found = self.windows.get(call.args["win"])
        if found is None:
            raise self.fail(call, f"window {call.args['win']} was never made, or freed before")
        return found

    def on_win_create(self, call: DumpiCall) -> comms.Making:
        a = call.args
        comm = self.comm(call)
        number = yield from self.joint(call, "win", comm, None)
        if isinstance(number, Comm):
            self.lose(call, "a window on MPI_COMM_SELF")
            self.own_windows.add(a["win"])
            return
        self.own_windows.discard(a["win"])
        self.windows[a["win"]] = (number, comm)
        self.out.add("win_create", number, max(a["size"], 0), comm=self.attr(comm))

    def on_win_free(self, call: DumpiCall) -> None:
        number, _ = self.window(call)
        self.out.add("win_free", number)
        del self.windows[call.args["win"]]

    def on_put(self, call: DumpiCall) -> None:
        a = call.args
        number, comm = self.window(call)
        target = self.destination(call, comm, a["targetrank"])
        self.out.add(call.name, target, 0, self.bytes_of(call, a["origincount"], a["origintype"]), BYTE, win=number)

    on_get = on_accumulate = on_put

    def on_win_fence(self, call: DumpiCall) -> None:
        self.out.add(call.name, win=self.window(call)[0])

    on_win_complete = on_win_wait = on_win_fence

    def on_win_test(self, call: DumpiCall) -> None:
        if call.args["flag"]:
            self.out.add("Win_wait", win=self.window(call)[0])
        else:
            self.lose(call, "one that finds the epoch open is not replayed")

    def on_win_lock(self, call: DumpiCall) -> None:
        a = call.args
        number, comm = self.window(call)
        target = self.world_rank(call, comm, a["winrank"])
        if call.name == "Win_lock":
            self.out.add("Win_lock", target, int(a["locktype"] == LOCK_EXCLUSIVE), win=number)
        else:
            self.out.add("Win_unlock", target, win=number)

    on_win_unlock = on_win_lock

    def on_win_post(self, call: DumpiCall) -> None:
        group = self.groups.get(call.args["group"])
        if group is None:
            raise self.fail(call, f"group {call.args['group']} was made by no call that is recorded")
        self.out.add(call.name, group_text(group), win=self.window(call)[0])

    on_win_start = on_win_post

    def on_win_get_group(self, call: DumpiCall) -> None:
        self.groups.set(call.args["group"], self.window(call)[1].group)
        self.losses.no_use(f"MPI_{call.name}")
