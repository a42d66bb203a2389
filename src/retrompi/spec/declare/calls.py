"""The calls of a trace, each declared once: its names, its form, what its arguments mean, its family, and what it needs of a runtime.

The engine's operations, the words of its parser and its writers, and the layout of their arguments are generated from this table
(`retrompi.spec.compiled.cpp_calls`); everything in Python that treats calls by name takes the names from it (`names`, `call_of`).
docs/add-a-call.md walks through adding one. Imports nothing but the standard library, since the build of the engine runs it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

__all__ = ["ANYTHING", "BY_NAME", "CALLS", "KEYS", "MPI3", "OTHER_WORDS", "Argument", "Call", "Calls", "Family", "Form", "call_of",
           "function_of", "is_nonblocking", "is_of_mpi3", "names"]

MPI3 = 2012
"""The year of MPI-3 (doc: MPI: A Message-Passing Interface Standard, Version 3.0)."""

KEYS = ("comm", "req", "reqs", "done", "flag", "from", "mtag", "stag", "rtag", "win", "dims", "periods", "in", "out")
"""The attributes ``KEY=VALUE`` that may stand at the end of a line (docs/trace-format.md)."""

_MEANS = {
    "COUNT": "sent", "SCOUNT": "sent", "SBYTES": "sent", "RCOUNT": "received", "RBYTES": "received", "SBUF": "buffer", "RBUF": "buffer",
    "BYTES": "sent", "DST": "peer", "SRC": "peer", "TARGET": "peer", "TAG": "tag", "FLOPS": "flops", "ROOT": "root", "TYPE": "type",
    "STYPE": "type", "RTYPE": "type", "DISP": "displacement", "NEW": "comm", "GROUP": "group", "LOCALGROUP": "group",
    "REMOTEGROUP": "group", "WIN": "window", "REQUESTS": "requests",
}
"""What the words that stand for arguments mean. Peers and groups are ranks of MPI_COMM_WORLD, a root is one of the communicator."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a line: the word for it, what it means (`_MEANS`; "" for anything else), and how many there are of it: one (""), one
    for each member (``n``), or one for each neighbour that sends (``in``) or receives (``out``)."""

    word: str
    means: str
    many: str
    optional: bool


class Form(Enum):
    """Lines of one form have the same arguments; brackets enclose those that may be left out. The order is that of the engine's table."""

    BARE = ""
    IGNORED = "..."
    """Anything; accepted for compatibility with old traces."""
    LOCATION = "FILE LINE"
    INIT = "[OLD]"
    COMPUTE = "FLOPS"
    SLEEP = "SECONDS"
    KERNEL = "NAME N [REPS]"
    SEND = "DST TAG COUNT [TYPE]"
    RECV = "SRC TAG COUNT [TYPE]"
    SENDRECV = "SCOUNT DST RCOUNT SRC STYPE RTYPE"
    REQUEST = "SRC DST TAG"
    ALL = "[REQUESTS]"
    PROBE = "SRC TAG"
    BCAST = "COUNT [ROOT [TYPE]]"
    REDUCE = "COUNT FLOPS [ROOT [TYPE]]"
    ALLREDUCE = "COUNT FLOPS [TYPE]"
    REDUCE_SCATTER = "RCOUNT*n FLOPS [TYPE]"
    ALLTOALL = "SCOUNT RCOUNT [STYPE [RTYPE]]"
    ALLTOALLV = "SBUF SCOUNT*n RBUF RCOUNT*n [STYPE [RTYPE]]"
    ROOTED = "SCOUNT RCOUNT [ROOT [STYPE [RTYPE]]]"
    GATHERV = "SCOUNT RCOUNT*n [ROOT [STYPE [RTYPE]]]"
    ALLGATHERV = "SCOUNT RCOUNT*n [STYPE [RTYPE [DISP*n]]]"
    SCATTERV = "SCOUNT*n RCOUNT [ROOT [STYPE [RTYPE]]]"
    ALLTOALLW = "SBYTES*n RBYTES*n"
    NEIGHBOR_ALLGATHERV = "SCOUNT RCOUNT*in [STYPE [RTYPE]]"
    NEIGHBOR_ALLTOALLV = "SCOUNT*out RCOUNT*in [STYPE [RTYPE]]"
    NEIGHBOR_ALLTOALLW = "SBYTES*out RBYTES*in"
    COMM_NEW = "NEW GROUP"
    """Or -1: this rank gets none."""
    INTERCOMM_CREATE = "NEW LOCALGROUP REMOTEGROUP"
    WIN_NEW = "WIN BYTES"
    WIN_FREE = "WIN"
    ONE_SIDED = "TARGET TAG COUNT [TYPE]"
    WIN_ALL = "[ANY]"
    WIN_TARGET = "TARGET"
    WIN_LOCK = "TARGET 0|1"
    WIN_GROUP = "GROUP"
    REFUSED = "a reason"
    """Understood by name only."""

    @property
    def text(self) -> str:
        """The arguments as messages and the reference name them."""
        return str(self.value)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments in their order."""
        found = re.findall(r"(\[?)([^\s\[\]*]+)(?:\*(\w+))?", self.text)
        first = next((i for i, (bracket, _, _) in enumerate(found) if bracket), len(found))
        return tuple(Argument(word, _MEANS.get(word, ""), many, i >= first) for i, (_, word, many) in enumerate(found))

    def positions(self, means: str) -> tuple[int, ...]:
        """The positions of the arguments with a meaning, in a form without vectors of counts."""
        return tuple(i for i, a in enumerate(self.arguments) if a.means == means)

    @property
    def vectors(self) -> bool:
        """Whether there is a number for each member or neighbour."""
        return any(a.many for a in self.arguments)


class Family(StrEnum):
    """The kind of a call."""

    LOCAL = "local"
    SEND = "send"
    RECEIVE = "receive"
    EXCHANGE = "exchange"
    REQUEST = "request"
    """On one request or several: waits, tests, starts."""
    PROBE = "probe"
    PERSISTENT = "persistent"
    """Makes a persistent request."""
    COLLECTIVE = "collective"
    NEIGHBOUR = "neighbour"
    """A collective of neighbours."""
    MAKES_COMM = "makes a communicator"
    FREES_COMM = "frees a communicator"
    WINDOW = "window"
    TRANSFER = "transfer"
    """One-sided, moves data."""
    EPOCH = "epoch"
    """One-sided, completes or synchronises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call.

    ``name``: as the engine writes it, SMPI's own name where SMPI has one; ``mpi``: MPI's, without ``MPI_``, "" for none; ``aliases``: other
    spellings that are read; ``nonblocking``: the name of its form that returns a request. ``op``: the engine's operation, by default MPI's
    name; calls that make communicators, told apart by ``how``, and those on one target or all share one. ``keys``: the attributes beside
    those of its family; ``mode``: how it sends; ``posts``: it returns a request. ``root``: whether data go ``to`` or ``from`` it;
    ``computes``: it combines data. ``volume``: the size by which libraries choose an algorithm, empty where members cannot agree on one
    without communication, None where no table of a model chooses. ``year``: of its standard, if later than MPI-2; ``reason``: why a line
    without ``win=`` is refused.
    """

    name: str
    form: Form
    family: Family
    mpi: str = ""
    op: str = ""
    how: str = ""
    aliases: tuple[str, ...] = ()
    nonblocking: str = ""
    keys: str = ""
    mode: str = ""
    posts: bool = False
    root: str = ""
    computes: bool = False
    volume: str | None = None
    year: int = 0
    reason: str = ""

    @property
    def operation(self) -> str:
        """The engine's name of its operation."""
        words = self.op or self.mpi or self.name
        return "".join(part[:1].upper() + part[1:] for part in words.split("_"))

    @property
    def names(self) -> tuple[str, ...]:
        """All of its names in a trace."""
        return (self.name, *self.aliases, *([self.nonblocking] if self.nonblocking else []))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that its lines may have."""
        own = {*_KEYS.get(self.family, "").split(), *self.keys.split()}
        return tuple(key for key in KEYS if key in own)


_KEYS = {
    Family.SEND: "comm", Family.RECEIVE: "comm from mtag", Family.EXCHANGE: "comm stag rtag from mtag", Family.PROBE: "comm from mtag",
    Family.PERSISTENT: "comm req", Family.COLLECTIVE: "comm", Family.NEIGHBOUR: "comm", Family.MAKES_COMM: "comm",
    Family.FREES_COMM: "comm", Family.TRANSFER: "comm win", Family.EPOCH: "comm win",
}
_ONE = "req from mtag"
_SEVERAL = "reqs from mtag"
_PARTS = "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses"


def _send(name: str, mpi: str, mode: str, *aliases: str) -> Call:
    posts = mpi[:1] == "I"
    return Call(
        name=name, form=Form.SEND, family=Family.SEND, mpi=mpi, aliases=aliases, mode=mode, posts=posts, keys="req" if posts else ""
    )


def _persistent(name: str, mpi: str, mode: str) -> Call:
    return Call(name=name, form=Form.SEND if mode else Form.RECV, family=Family.PERSISTENT, mpi=mpi, mode=mode, posts=True)


def _request(name: str, mpi: str, form: Form, keys: str, *aliases: str) -> Call:
    return Call(name=name, form=form, family=Family.REQUEST, mpi=mpi, keys=keys, aliases=aliases)


def _collective(name: str, mpi: str, form: Form, volume: str, root: str = "", computes: bool = False) -> Call:
    return Call(
        name=name, form=form, family=Family.COLLECTIVE, mpi=mpi, nonblocking=f"i{name}", root=root, computes=computes, volume=volume
    )


def _of_neighbours(name: str, mpi: str, form: Form) -> Call:
    return Call(name=name, form=form, family=Family.NEIGHBOUR, mpi=mpi, nonblocking=f"i{name}", year=MPI3)


def _comm(name: str, how: str, form: Form = Form.COMM_NEW, keys: str = "", year: int = 0) -> Call:
    mpi = name.capitalize()
    return Call(name=name, form=form, family=Family.MAKES_COMM, mpi=mpi, op="CommNew", how=how, keys=keys, year=year)


def _transfer(name: str, op: str = "", nonblocking: str = "", year: int = 0) -> Call:
    return Call(name=name, form=Form.ONE_SIDED, family=Family.TRANSFER, mpi=name, op=op, nonblocking=nonblocking, year=year)


def _epoch(name: str, op: str, form: Form, reason: str = "", year: int = 0) -> Call:
    return Call(name=name, form=form, family=Family.EPOCH, mpi=name, op=op, reason=reason, year=year)


CALLS = (
    Call(name="init", form=Form.INIT, family=Family.LOCAL, mpi="Init"),
    Call(name="finalize", form=Form.BARE, family=Family.LOCAL, mpi="Finalize"),
    Call(name="compute", form=Form.COMPUTE, family=Family.LOCAL),
    Call(name="sleep", form=Form.SLEEP, family=Family.LOCAL),
    Call(name="kernel", form=Form.KERNEL, family=Family.LOCAL),
    _send("send", "Send", "standard"),
    _send("Ssend", "Ssend", "synchronous", "ssend"),
    _send("bsend", "Bsend", "buffered"),
    _send("rsend", "Rsend", "ready"),
    _send("isend", "Isend", "standard"),
    _send("ISsend", "Issend", "synchronous", "issend"),
    _send("ibsend", "Ibsend", "buffered"),
    _send("irsend", "Irsend", "ready"),
    Call(name="recv", form=Form.RECV, family=Family.RECEIVE, mpi="Recv"),
    Call(name="irecv", form=Form.RECV, family=Family.RECEIVE, mpi="Irecv", posts=True, keys="req"),
    Call(name="sendRecv", form=Form.SENDRECV, family=Family.EXCHANGE, mpi="Sendrecv"),
    _request("wait", "Wait", Form.REQUEST, _ONE),
    _request("waitall", "Waitall", Form.ALL, _SEVERAL),
    _request("waitAny", "Waitany", Form.ALL, f"{_SEVERAL} done", "waitany"),
    _request("waitsome", "Waitsome", Form.ALL, f"{_SEVERAL} done"),
    _request("test", "Test", Form.REQUEST, f"{_ONE} flag"),
    _request("testall", "Testall", Form.ALL, f"{_SEVERAL} done flag"),
    _request("testany", "Testany", Form.ALL, f"{_SEVERAL} done"),
    _request("testsome", "Testsome", Form.ALL, f"{_SEVERAL} done"),
    Call(name="probe", form=Form.PROBE, family=Family.PROBE, mpi="Probe"),
    Call(name="iprobe", form=Form.PROBE, family=Family.PROBE, mpi="Iprobe", keys="flag"),
    _persistent("sendInit", "Send_init", "standard"),
    _persistent("ssendInit", "Ssend_init", "synchronous"),
    _persistent("bsendInit", "Bsend_init", "buffered"),
    _persistent("rsendInit", "Rsend_init", "ready"),
    _persistent("recvInit", "Recv_init", ""),
    _request("start", "Start", Form.REQUEST, _ONE),
    _request("startall", "Startall", Form.ALL, _SEVERAL),
    _request("requestFree", "Request_free", Form.REQUEST, "req"),
    _collective("barrier", "Barrier", Form.BARE, "0 B"),
    _collective("bcast", "Bcast", Form.BCAST, "the vector", root="from"),
    _collective("reduce", "Reduce", Form.REDUCE, "the vector", root="to", computes=True),
    _collective("allreduce", "Allreduce", Form.ALLREDUCE, "the vector", computes=True),
    _collective("scan", "Scan", Form.ALLREDUCE, "the vector", computes=True),
    _collective("exscan", "Exscan", Form.ALLREDUCE, "the vector", computes=True),
    _collective("reducescatter", "Reduce_scatter", Form.REDUCE_SCATTER, "all parts together", computes=True),
    _collective("alltoall", "Alltoall", Form.ALLTOALL, "one block"),
    _collective("alltoallv", "Alltoallv", Form.ALLTOALLV, ""),
    _collective("gather", "Gather", Form.ROOTED, "all blocks together", root="to"),
    _collective("gatherv", "Gatherv", Form.GATHERV, "", root="to"),
    _collective("allgather", "Allgather", Form.ALLTOALL, "all blocks together"),
    _collective("allgatherv", "Allgatherv", Form.ALLGATHERV, "all blocks together"),
    _collective("scatter", "Scatter", Form.ROOTED, "all blocks together", root="from"),
    _collective("scatterv", "Scatterv", Form.SCATTERV, "", root="from"),
    _collective("alltoallw", "Alltoallw", Form.ALLTOALLW, ""),
    _collective("reducescatterblock", "Reduce_scatter_block", Form.ALLREDUCE, "all parts together", computes=True),
    _of_neighbours("neighbor_allgather", "Neighbor_allgather", Form.ALLTOALL),
    _of_neighbours("neighbor_allgatherv", "Neighbor_allgatherv", Form.NEIGHBOR_ALLGATHERV),
    _of_neighbours("neighbor_alltoall", "Neighbor_alltoall", Form.ALLTOALL),
    _of_neighbours("neighbor_alltoallv", "Neighbor_alltoallv", Form.NEIGHBOR_ALLTOALLV),
    _of_neighbours("neighbor_alltoallw", "Neighbor_alltoallw", Form.NEIGHBOR_ALLTOALLW),
    _comm("comm_split", "Split"),
    _comm("comm_dup", "Dup"),
    _comm("comm_create", "Create"),
    _comm("comm_create_group", "CreateGroup", year=MPI3),
    _comm("intercomm_create", "IntercommCreate", Form.INTERCOMM_CREATE),
    _comm("intercomm_merge", "IntercommMerge"),
    _comm("cart_create", "Cart", keys="dims periods"),
    _comm("graph_create", "Graph", keys="in out"),
    Call(name="comm_free", form=Form.BARE, family=Family.FREES_COMM, mpi="Comm_free"),
    Call(name="win_create", form=Form.WIN_NEW, family=Family.WINDOW, mpi="Win_create", op="WinNew", keys="comm"),
    Call(name="win_free", form=Form.WIN_FREE, family=Family.WINDOW, mpi="Win_free"),
    _transfer("Put", nonblocking="Rput"),
    _transfer("Get", nonblocking="Rget"),
    _transfer("Accumulate", nonblocking="Raccumulate"),
    _transfer("Get_accumulate", nonblocking="Rget_accumulate", year=MPI3),
    _transfer("Fetch_and_op", op="FetchOp", year=MPI3),
    _transfer("Compare_and_swap", op="CompareSwap", year=MPI3),
    _epoch("Win_fence", "Fence", Form.WIN_ALL),
    _epoch("Win_flush_all", "Flush", Form.WIN_ALL, year=MPI3),
    _epoch("Win_flush", "Flush", Form.WIN_TARGET, year=MPI3),
    _epoch("Win_flush_local_all", "FlushLocal", Form.WIN_ALL, year=MPI3),
    _epoch("Win_flush_local", "FlushLocal", Form.WIN_TARGET, year=MPI3),
    _epoch("Win_lock", "Lock", Form.WIN_LOCK, _PARTS),
    _epoch("Win_lock_all", "LockAll", Form.WIN_ALL, year=MPI3),
    _epoch("Win_unlock", "Unlock", Form.WIN_TARGET, _PARTS),
    _epoch("Win_unlock_all", "UnlockAll", Form.WIN_ALL, year=MPI3),
    _epoch("Win_post", "WinPost", Form.WIN_GROUP, _PARTS),
    _epoch("Win_start", "WinStart", Form.WIN_GROUP, _PARTS),
    _epoch("Win_complete", "WinComplete", Form.BARE, _PARTS),
    _epoch("Win_wait", "WinWait", Form.BARE, _PARTS),
)
"""The calls. Those of one family stand together, those that share an operation too; a new one stands after its family's others."""

_STARTED = "SMPI's tracer writes no line for MPI_Send_init and MPI_Recv_init, so which"
_MADE = "is lost; write 'sendInit'/'recvInit' and"
OTHER_WORDS: Mapping[str, tuple[Form, str]] = {
    "comm_size": (Form.IGNORED, ""),
    "location": (Form.LOCATION, ""),
    "Start": (Form.REFUSED, f"{_STARTED} request this starts {_MADE} 'start SRC DST TAG'"),
    "Startall": (Form.REFUSED, f"{_STARTED} requests this starts {_MADE} 'startall'"),
    "isendRecv": (Form.REFUSED, "MPI_Isendrecv is not simulated"),
    "IO": (Form.REFUSED, "MPI-IO is not simulated"),
    # Written by our own recorder for a call that the format cannot express (docs/recording.md).
    "spawn": (Form.REFUSED, "processes that a program starts or connects to are not simulated"),
    "partitioned": (Form.REFUSED, "partitioned communication is not simulated"),
    "persistentCollective": (Form.REFUSED, "persistent collectives are not simulated"),
    "generalizedRequest": (Form.REFUSED, "what completes a generalized request is lost"),
    "intercomm_split": (Form.REFUSED, "a part of an intercommunicator is not simulated"),
    "foreign_comm": (Form.REFUSED, "a communicator or window whose making the recorder did not see"),
    "threads": (Form.REFUSED, "several threads called MPI at once, so the order of the calls is lost"),
}
"""Words in the place of a call that are none: those that are skipped, and those that are refused with a reason."""

BY_NAME: Mapping[str, Call] = {name: call for call in CALLS for name in call.names}
"""Every name of a call -> the call."""


def call_of(name: str) -> Call | None:
    """The call of this name in a trace; None if there is none."""
    return BY_NAME.get(name)


def names(*kinds: Family | Form) -> frozenset[str]:
    """All names of the calls of some families or forms."""
    return frozenset(name for call in CALLS if call.family in kinds or call.form in kinds for name in call.names)


def is_nonblocking(name: str) -> bool:
    """Whether it is the name of the form of a collective or transfer that returns a request."""
    call = BY_NAME.get(name)
    return call is not None and name == call.nonblocking


def is_of_mpi3(name: str) -> bool:
    """Whether a call came with MPI-3."""
    call = BY_NAME.get(name)
    return call is not None and (call.year >= MPI3 or name == call.nonblocking)


def function_of(name: str) -> str:
    """The MPI function of a call's name: ``MPI_Ireduce_scatter`` for ``ireducescatter``; a word that is no call keeps its own."""
    call = BY_NAME.get(name)
    if call is None or not call.mpi:
        return "MPI_" + name[:1].upper() + name[1:]
    return f"MPI_{call.nonblocking[0].upper()}{call.mpi[0].lower()}{call.mpi[1:]}" if name == call.nonblocking else f"MPI_{call.mpi}"


def _lower(some: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in some)


_PROBING = _lower(n for n in names(Family.PROBE, Family.REQUEST) if "test" in n or "probe" in n)
_REDUCING = _lower(call.name for call in CALLS if call.computes)
_CHOSEN = _lower(call.name for call in CALLS if call.volume is not None)
_ONE_SIDED = _lower(["Put", "Get", "Accumulate"])


@dataclass(frozen=True, slots=True)
class Calls:
    """Features of a run that decide which parts of a runtime it needs.

    ``actions``: the names of the trace's actions in lower case, None if any call is possible; ``to_self``: whether a rank sends
    to itself; ``start_up``: whether the start of the job is simulated; ``failures``: whether links or hosts fail;
    ``traffic``: whether there is cross traffic on the link; ``loops`` and ``kernels``: whether ranks run loops of Rinf1, or kernels stated
    by operations and bytes.
    """

    actions: frozenset[str] | None = None
    to_self: bool = True
    start_up: bool = True
    failures: bool = True
    traffic: bool = True
    loops: bool = True
    kernels: bool = True

    def any(self, wanted: Collection[str]) -> bool:
        """Whether one of ``wanted`` is called, in its blocking, non-blocking or request form."""
        return self.actions is None or any(a in wanted or a[1:] in wanted for a in self.actions)

    @property
    def probing(self) -> bool:
        """Whether the program tests or probes for a message or completion without blocking."""
        return self.any(_PROBING)

    @property
    def one_sided(self) -> bool:
        """Whether there are one-sided operations."""
        return self.any(_ONE_SIDED) or any(a.startswith("win_") for a in self.actions or ())

    @property
    def collective(self) -> bool:
        """Whether there are collective operations; creating communicators, windows and intercommunicators counts as one."""
        return self.any(_CHOSEN) or any(a.startswith(("comm_", "win_", "intercomm_")) for a in self.actions or ())

    @property
    def computing(self) -> bool:
        """Whether ranks compute: by themselves or in a reduction."""
        return self.any({"compute"}) or self.any(_REDUCING)


ANYTHING = Calls()
"""An unknown program, which may make any call."""
