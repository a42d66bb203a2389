"""Collectives and communicators of a rank: which algorithm its library uses, and how the rank takes the algorithm's steps.

A blocking call takes the steps to the end. A non-blocking one takes them until one has to wait, and goes on whenever the rank waits or
looks for something in a call of the library: nothing goes on while a rank computes (MPI 3.0, 5.12 leaves that to the library). The messages
of a collective are apart from the program's, and those of one call from those of the next: each has a tag that all members count alike.

A collective of two groups is a phase within each, an exchange of the first members, and a phase within each again (code: MPICH2 1.0 to 1.3,
src/mpi/coll, MPIR_*_inter). A new communicator is agreed on by collectives over its parent: on an unused context, and for a split on
everybody's color and key (code: MPICH 1.0 to 1.2, src/context; MPICH2, src/mpi/comm).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from retrompi.reference.algorithms import (
    ALGORITHMS,
    CollectiveMember,
    CollectiveStep,
    Steps,
    exchange,
    give,
    largest_power,
    shares_hosts,
    take,
)
from retrompi.reference.values import PROC_NULL, NotCovered
from retrompi.spec.declare.calls import Family, call_of

__all__ = ["Choices", "Collectives", "Communicator", "is_collective", "volume"]

ROOT = -777
"""The root of an intercommunicator's rooted call in its own group; the others of that group have PROC_NULL."""
BY_HOSTS = ("nodes", "nodes_scatter", "nodes_forward")
BLOCKING = ("put_tree", "by_reference")
"""Algorithms that need to know the members' hosts, and those that a non-blocking call cannot use."""


def is_collective(name: str) -> bool:
    """Whether a call of a trace is a collective, also one of neighbours, or makes a communicator."""
    call = call_of(name)
    return call is not None and call.family in (Family.COLLECTIVE, Family.NEIGHBOUR, Family.MAKES_COMM)


def volume(operation: str, m: CollectiveMember) -> int:
    """The bytes by which a library chooses an algorithm: the vector; one block of an alltoall; otherwise all blocks together."""

    def all_of(each: Sequence[int], one: int) -> int:
        return sum(each) if each else one * m.n

    match operation:
        case "gather" | "gatherv":
            return all_of(m.into, m.size_in) if m.me == m.root else m.size * m.n
        case "scatter" | "scatterv":
            return all_of(m.out, m.size) if m.me == m.root else m.size_in * m.n
        case "allgather":
            return m.size * m.n
        case "allgatherv" | "reducescatter" | "reducescatterblock":
            return all_of(m.into, m.size_in)
        case "alltoallv" | "alltoallw":
            return all_of(m.out, m.size)
    return m.size


Points = Sequence[tuple[int, int]]


def cost_at(points: Points, size: int) -> int:
    """The cost of a size from points (bytes, ps): linear between two, beyond the last at the last rate, before the first as there."""
    if not points:
        return 0
    if len(points) == 1 or size <= points[0][0]:
        return points[0][1]
    upper = next((k for k, (x, _) in enumerate(points) if x >= size), len(points) - 1)
    (x0, y0), (x1, y1) = points[upper - 1], points[upper]
    return max(0, int(y0 + (y1 - y0) * ((size - x0) / (x1 - x0)) + 0.5))


class LibraryWork:
    """A library's work in collectives besides sending, in picoseconds on the reference host; none where it was not measured.

    Three things: a call on a single rank, which checks its arguments, chooses the algorithm and copies the own block; combining operands;
    and using temporary buffers, whose pages are new, one at a time or two.
    """

    def __init__(self, given: Mapping[str, Any] | None) -> None:
        self.of_call: Mapping[str, Points] = given["call"] if given else {}
        self.combining: Points = given["combine"] if given else ()
        self.buffers: Sequence[Points] = given["buffers"] if given else ((), ())

    def temporary(self, buffers: int, size: int, filled: int) -> int:
        """So many buffers of ``size`` at once, into which ``filled`` bytes come. What was measured filled all of them."""
        held = min(buffers, 2)
        return int(filled / (held * size) * cost_at(self.buffers[held - 1], size)) if size > 0 else 0

    def call(self, operation: str, m: CollectiveMember, steps: Steps) -> Steps:
        """A call of the program: where its own work is known, the steps without those that a single rank takes."""
        points = self.of_call.get(operation)
        if points is None:
            yield from steps
            return
        if (ps := cost_at(points, self._own_block(operation, m, points))) > 0:
            yield CollectiveStep("work", size=ps)
        for step in steps:
            if not step.own and not (step.kind in ("send", "receive") and step.peer == m.me):
                yield step

    @staticmethod
    def _own_block(operation: str, m: CollectiveMember, points: Points) -> int:
        """The own block that is copied; of a gather or scatter only at the root: of the others the cost of the least block counts."""
        if operation == "alltoall":
            return m.gives(m.me)
        size = m.size_in if operation == "scatter" else m.size
        if operation in ("gather", "scatter") and m.me != m.root:
            return min([size, *[x for x, _ in points if x > 0][:1]])
        return size


class Choices:
    """A library's choice: the first row that fits a call."""

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self.work = LibraryWork(rows.get("work"))
        self.copies_root, self.copies_leaf = rows["bcast"]["copies_root"], rows["bcast"]["copies_leaf"]
        self.context_bytes, self.gathers = int(rows["context_bytes"]), bool(rows["split_gathers"])
        everything: tuple[Any, ...] = (0.0, None, 1, None, "any", "both", False)
        self.rows: list[tuple[Any, ...]] = [*rows["collectives"], ("bcast", rows["bcast"]["algorithm"], *everything),
                                            ("bcast", "binomial", *everything)]
        self.rows += [(operation, "posted", *everything) for operation in ALGORITHMS if operation.startswith("neighbor")]

    def algorithm(self, operation: str, m: CollectiveMember) -> str:
        """The name of the algorithm of a call."""
        size = volume(operation, m)
        for name, algorithm, low, high, least, most, count, forms, nodes in self.rows:
            power = "power" if largest_power(m.n) == m.n else "other"
            if (
                name == operation
                and low <= size < (2**63 if high is None else high)
                and least <= m.n <= (m.n if most is None else most)
                and forms in ("both", "nonblocking" if m.nonblocking else "blocking")
                and not (m.nonblocking and algorithm in BLOCKING)
                and not (algorithm in BY_HOSTS and not m.hosts)
                and not (nodes and not shares_hosts(m))
                and count in ("any", power)
            ):
                return str(algorithm)
        raise NotCovered(f"{operation} of {size} B on {m.n} ranks, for which the model states no algorithm")

    def steps(self, operation: str, m: CollectiveMember) -> Steps:
        """The steps of a call, by the algorithm that the table has for it."""
        return ALGORITHMS[operation][self.algorithm(operation, m)](m)


# ----------------------------------------------------------------------------------------------------------------- two groups


def _within(m: CollectiveMember, size: int, size_in: int = 0) -> CollectiveMember:
    """The same member of its own group alone."""
    return replace(m, remote=0, root=0, size=size, size_in=size_in, out=(), into=())


def _first_of(m: CollectiveMember, low: bool) -> int:
    """The root of a call whose root is the first member of the low group, or of the other one, as this member has it."""
    return (ROOT if m.me == 0 else PROC_NULL) if m.low == low else 0


def inter_bcast(m: CollectiveMember) -> Steps:
    """The root to the other group's first member, who broadcasts there."""
    if m.root == ROOT:
        yield from give(m.n, m.size)
    elif m.root != PROC_NULL:
        if m.me == 0:
            yield from take(m.n + m.root, m.size)
        yield from m.choices.steps("bcast", _within(m, m.size))


def inter_reduce(m: CollectiveMember) -> Steps:
    """Within the other group, whose first member gives the result to the root."""
    if m.root == ROOT:
        yield from take(m.n, m.size)
    elif m.root != PROC_NULL:
        yield from m.choices.steps("reduce", _within(m, m.size))
        if m.me == 0:
            yield from give(m.n + m.root, m.size)


def told_each_other(m: CollectiveMember, size: int, size_back: int) -> Steps:
    """A broadcast to the other group in both directions, from the low group first."""
    for low in (True, False):
        yield from inter_bcast(replace(m, root=_first_of(m, low), size=size if m.low == low else size_back))


def inter_barrier(m: CollectiveMember) -> Steps:
    """Within each group, then a byte each way."""
    yield from m.choices.steps("barrier", _within(m, 0))
    yield from told_each_other(m, 1, 1)


def inter_allreduce(m: CollectiveMember) -> Steps:
    """Within each, the first members exchange, and broadcast."""
    yield from m.choices.steps("reduce", _within(m, m.size))
    if m.me == 0:
        yield from exchange(m.n, m.size, m.n, m.size)
    yield from m.choices.steps("bcast", _within(m, m.size))


def inter_reduce_scatter(m: CollectiveMember) -> Steps:
    """A reduction to each group's first member, who scatters there."""
    for low in (True, False):
        yield from inter_reduce(replace(m, size=volume("reducescatter", m), root=_first_of(m, low)))
    yield from m.choices.steps("scatterv", replace(_within(m, m.size_in, m.gets(m.me)), out=m.into))


def inter_gatherv(m: CollectiveMember) -> Steps:
    """The root takes from one after the other."""
    if m.root == ROOT:
        for r in range(m.remote):
            yield from take(m.n + r, m.gets(r))
    elif m.root != PROC_NULL:
        yield from give(m.n + m.root, m.size)


def inter_gather(m: CollectiveMember) -> Steps:
    """Below 2 KiB in all within the other group first (code: MPICH2, MPIR_GATHER_SHORT_MSG)."""
    total = m.size_in * m.remote if m.root == ROOT else m.size * m.n
    if total >= 2048:
        yield from inter_gatherv(m)
    elif m.root == ROOT:
        yield from take(m.n, total)
    elif m.root != PROC_NULL:
        yield from m.choices.steps("gather", _within(m, m.size, m.size))
        if m.me == 0:
            yield from give(m.n + m.root, total)


def inter_scatterv(m: CollectiveMember) -> Steps:
    """The root gives to one after the other."""
    if m.root == ROOT:
        for r in range(m.remote):
            yield from give(m.n + r, m.gives(r))
    elif m.root != PROC_NULL:
        yield from take(m.n + m.root, m.size_in)


def inter_scatter(m: CollectiveMember) -> Steps:
    """Below 2 KiB in all by the other group's first member (code: MPICH2, MPIR_SCATTER_SHORT_MSG)."""
    total = m.size * m.remote if m.root == ROOT else m.size_in * m.n
    if total >= 2048:
        yield from inter_scatterv(m)
    elif m.root == ROOT:
        yield from give(m.n, total)
    elif m.root != PROC_NULL:
        if m.me == 0:
            yield from take(m.n + m.root, total)
        yield from m.choices.steps("scatter", _within(m, m.size_in, m.size_in))


def inter_allgather(m: CollectiveMember) -> Steps:
    """A gather within each, and all of it to the other."""
    yield from m.choices.steps("gather", _within(m, m.size, m.size))
    yield from told_each_other(m, m.size * m.n, m.size_in * m.remote)


def inter_allgatherv(m: CollectiveMember) -> Steps:
    """Everybody to the other group's first member, who broadcasts in its own."""
    for low in (True, False):
        yield from inter_gatherv(replace(m, root=_first_of(m, low)))
    yield from m.choices.steps("bcast", _within(m, volume("allgatherv", m)))


def inter_alltoall(m: CollectiveMember) -> Steps:
    """As many rounds as the larger group has members: to the one that far ahead, from the one that far behind, if there is such a one."""
    rounds = max(m.n, m.remote)
    for k in range(rounds):
        source, target = (m.me - k) % rounds, (m.me + k) % rounds
        receive, send = CollectiveStep("receive", m.n + source), CollectiveStep("send", m.n + target)
        if source < m.remote:
            receive.size = m.gets(source)
            yield receive
        if target < m.remote:
            send.size = m.gives(target)
            yield send
            yield CollectiveStep("wait", of=send)
        if source < m.remote:
            yield CollectiveStep("wait", of=receive)


BETWEEN: Mapping[str, Callable[[CollectiveMember], Steps]] = {
    "barrier": inter_barrier, "bcast": inter_bcast, "reduce": inter_reduce, "allreduce": inter_allreduce, "gather": inter_gather,
    "gatherv": inter_gatherv, "scatter": inter_scatter, "scatterv": inter_scatterv, "allgather": inter_allgather,
    "allgatherv": inter_allgatherv, "alltoall": inter_alltoall, "alltoallv": inter_alltoall, "alltoallw": inter_alltoall,
    "reducescatter": inter_reduce_scatter, "reducescatterblock": inter_reduce_scatter,
}


# ----------------------------------------------------------------------------------------------------- making a communicator


def context_agreed(m: CollectiveMember) -> Steps:
    """All reduce the contexts that are free; of two groups each does, the first members exchange theirs, and tell their groups."""
    size = m.choices.context_bytes
    yield from m.choices.steps("allreduce", _within(m, size) if m.remote else replace(m, size=size))
    if m.remote:
        if m.me == 0:
            yield from exchange(m.n, 4, m.n, 4)
        yield from m.choices.steps("bcast", _within(m, 4))


def colors_agreed(m: CollectiveMember) -> Steps:
    """Everybody's color and key, 8 B: gathered, or as a vector of all that is reduced."""
    size = 8 if m.choices.gathers else 8 * m.n
    yield from m.choices.steps("allgather" if m.choices.gathers else "allreduce", replace(m, size=size, size_in=size))


def groups_swapped(m: CollectiveMember) -> Steps:
    """The first members exchange who is in their groups, 8 B each, and tell their own."""
    if m.me == 0:
        yield from exchange(m.n, 8 * m.remote, m.n, 8 * m.n)
    yield from m.choices.steps("bcast", _within(m, 8 * m.remote))


# ----------------------------------------------------------------------------------------------------------------- of a rank


@dataclass(frozen=True)
class Communicator:
    """A communicator: its members, ranks of the world; of an intercommunicator also the ``remote`` ones, as seen from ``group``; of one
    with a topology each member's neighbours, ranks of the communicator."""

    number: int
    group: Sequence[int]
    remote: Sequence[int] = ()
    sources: Sequence[Sequence[int]] = ()
    targets: Sequence[Sequence[int]] = ()

    @property
    def program(self) -> int:
        """What tells its program's messages from all others."""
        return 2 * self.number

    @property
    def own(self) -> int:
        """What tells the messages of its collectives."""
        return 2 * self.number + 1


@dataclass(eq=False)
class CollectiveRun:
    """A collective under way: its steps, at which of them it waits, the requests that are open in the order in which they were begun."""

    steps: Steps
    context: int
    tag: int
    peers: Sequence[int]
    at: CollectiveStep | None = None
    open: list[tuple[CollectiveStep, Any]] = field(default_factory=list)
    request: Any = None
    amount: float = 0.0


class Collectives:
    """The collectives of one rank."""

    def __init__(self, rank: Any, choices: Choices, communicators: Mapping[int, Communicator]) -> None:
        self.rank, self.choices, self.communicators = rank, choices, communicators
        self.tags: dict[int, int] = {}
        self.running: list[CollectiveRun] = []
        self.advancing = False
        self.readers = 0

    def call(self, call: Any) -> Iterator[Any]:
        """A call of the program: a collective, or one that makes a communicator."""
        declared = call_of(call.name)
        assert declared is not None
        if declared.family == Family.MAKES_COMM:
            for number, steps in self._making(call, declared.how):
                yield from self._follow(steps, number)
            return
        number, nonblocking = call.more.get("comm", 0), call.name == declared.nonblocking
        m = replace(self._arguments(call, declared), nonblocking=nonblocking)
        if m.remote and declared.name not in BETWEEN:
            raise NotCovered(f"{call.name} on an intercommunicator, which MPI does not have")
        choices = self.choices
        steps = BETWEEN[declared.name](m) if m.remote else choices.work.call(declared.name, m, choices.steps(declared.name, m))
        if not nonblocking:
            yield from self._follow(steps, number)
            yield from self.rank.compute_operations(call.amount)
            return
        run = self._run(steps, number)
        run.amount, run.request = call.amount, self.rank.new_request("collective")
        self.rank.file(call, run.request)
        self.running.append(run)
        yield from self.advance_all()

    def _member(self, number: int) -> tuple[CollectiveMember, Sequence[int]]:
        """This rank in a communicator, and the world ranks of its peers: its own group, then the other."""
        c, rank = self.communicators[number], self.rank
        low = rank.number in c.group
        mine, other = (c.group, c.remote) if low else (c.remote, c.group)
        hosts = [rank.job.hosts.index(rank.job.ranks[r].host) for r in mine]
        m = CollectiveMember(len(mine), mine.index(rank.number), self.choices, hosts=hosts, remote=len(other), low=low)
        return m, (*mine, *other)

    def _arguments(self, call: Any, declared: Any) -> CollectiveMember:
        """The arguments of a collective, as the form of its line has them."""
        number = call.more.get("comm", 0)
        m, _ = self._member(number)
        m = replace(m, size=call.size, size_in=call.size2)
        many = {a.means: a.many for a in declared.form.arguments if a.means in ("sent", "received")}
        if any(a.means == "root" for a in declared.form.arguments):
            m = replace(m, root=call.peer2)
        if declared.name == "reducescatterblock" or (declared.name == "allgather" and not m.remote):
            m = replace(m, size_in=call.size)
        c, counts = self.communicators[number], call.more.get("counts", [])
        if declared.family == Family.NEIGHBOUR:
            m = replace(m, sources=c.sources[m.me], targets=c.targets[m.me])
        sent = 0
        if many.get("sent"):
            sent = len(m.targets) if declared.family == Family.NEIGHBOUR else len(counts) // 2 if many.get("received") else len(counts)
        return replace(m, out=counts[:sent], into=counts[sent:] if many.get("received") else ())

    def _making(self, call: Any, how: str) -> Iterator[tuple[int, Steps]]:
        """What members of a parent do to make a communicator: steps, and over which communicator."""
        parent, made = call.more.get("comm", 0), call.more["new"]
        colors = how == "Split"
        if how in ("Cart", "Graph"):  # members that the topology leaves out are split off
            colors = made < 0 or len(self.communicators[made].group) < self._member(parent)[0].n
        if how == "IntercommCreate":
            yield made, groups_swapped(self._member(made)[0])
        if colors:
            yield parent, colors_agreed(self._member(parent)[0])
        if how not in ("CreateGroup", "IntercommCreate"):
            yield parent, context_agreed(self._member(parent)[0])
        if how in ("CreateGroup", "IntercommCreate", "IntercommMerge"):
            yield made, context_agreed(self._member(made)[0])

    # -- the steps

    def _run(self, steps: Steps, number: int) -> CollectiveRun:
        c = self.communicators[number]
        self.tags[number] = self.tags.get(number, 0) + 1
        return CollectiveRun(steps, c.own, self.tags[number], self._member(number)[1])

    def internal(self, number: int, operation: str, size: int) -> Iterator[Any]:
        """A collective of the library itself."""
        yield from self.agree(number, lambda m: self.choices.steps(operation, replace(m, size=size, size_in=size)))

    def agree(self, number: int, steps: Callable[[CollectiveMember], Steps]) -> Iterator[Any]:
        """Steps of the library itself over a communicator."""
        yield from self._follow(steps(self._member(number)[0]), number)

    def _follow(self, steps: Steps, number: int) -> Iterator[Any]:
        yield from self._advance(self._run(steps, number), blocking=True)

    def _can_go_on(self, run: CollectiveRun) -> bool:
        """Whether a collective can go on from the step at which it waits; of a wait for all, whether the first of them is done."""
        if run.at is None:
            return True
        if run.at.kind == "all taken":
            return self.readers >= run.at.size
        return next((bool(request.done) for step, request in run.open if run.at.of in (None, step)), True)

    def can_advance(self) -> bool:
        """Whether a non-blocking collective can go on."""
        return not self.advancing and any(map(self._can_go_on, self.running))

    def advance_all(self) -> Iterator[Any]:
        """Every non-blocking collective takes the steps that it can."""
        self.advancing = True
        for run in self.running:
            if self._can_go_on(run):
                yield from self._advance(run, blocking=False)
        self.advancing = False
        self.running = [run for run in self.running if not run.request.done]

    def _advance(self, run: CollectiveRun, blocking: bool) -> Iterator[Any]:
        """Takes steps to the end, or until one has to wait."""
        rank = self.rank
        while True:
            if run.at is None:
                run.at = next(run.steps, None)
            step = run.at
            if step is None:
                break
            match step.kind:
                case "send":
                    request = rank.new_request("send", run.context)
                    run.open.append((step, request))
                    mode = "synchronous" if step.sync else "standard"
                    yield from rank.isend(request, self._world(run, step.peer), run.tag, step.size, mode)
                case "receive":
                    request = rank.new_request("receive", run.context)
                    run.open.append((step, request))
                    yield from rank.irecv(request, self._world(run, step.peer), run.tag, step.size)
                case "wait":
                    for pair in [pair for pair in run.open if step.of in (None, pair[0])]:
                        if not blocking and not pair[1].done:
                            return
                        yield from rank.wait(pair[1])
                        run.open.remove(pair)
                case "work":
                    yield from rank.thread.run(rank.host.work(step.size))
                case "combine":
                    if (ps := cost_at(self.choices.work.combining, step.size)) > 0:
                        yield from rank.thread.run(rank.host.work(ps))
                case "copy":
                    yield from rank.thread.copy(rank.plain_copy(step.size, step.copies))
                case "put":
                    yield from rank.one_sided.put(self._world(run, step.peer), step.size)
                    yield from rank.one_sided.flush()
                case "taken":
                    owner = rank.job.ranks[self._world(run, step.peer)]
                    owner.collectives.readers += 1
                    owner.thread.signal()
                case "all taken":
                    yield from rank.drive(partial(self._can_go_on, run), rank.spec.send_wait)
                    self.readers -= step.size
            run.at = None
        yield from rank.compute_operations(run.amount)
        if run.request:
            run.request.done = True

    @staticmethod
    def _world(run: CollectiveRun, peer: int) -> int:
        return run.peers[peer] if peer >= 0 else peer
