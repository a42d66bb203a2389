"""Collective algorithms: what one member does, step by step.

A step begins a send or a receive, waits for one of them or for all that are open, or works in the member's own memory; the rank takes the
steps by the same rules as its program's own messages (`collectives`). Peers are ranks of the communicator. An algorithm with a root counts
from it: member 0 of its tree is the root. docs/collectives.md has the papers, and the libraries that used each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["ALGORITHMS", "CollectiveMember", "CollectiveStep", "Steps", "exchange", "give", "largest_power", "shares_hosts", "take"]


@dataclass(eq=False)
class CollectiveStep:
    """``send`` and ``receive`` of ``size`` bytes; ``wait`` for the step ``of``, or without one for all that are open, in the order in which
    they were begun; ``copy`` within its own memory, so many ``copies``, of its ``own`` block where that is all; ``combine`` operands of
    ``size``; ``work``: the library's own, ``size`` picoseconds on the reference host; ``put`` into the peer's memory, until the data are
    there; ``taken``: tells the peer that its buffer has been read; ``all taken``: waits until ``size`` have told so. A ``sync`` send is
    complete when its receiver has matched it."""

    kind: str
    peer: int = 0
    size: int = 0
    of: CollectiveStep | None = None
    copies: float = 1.0
    own: bool = False
    sync: bool = False


Steps = Iterator[CollectiveStep]


@dataclass(frozen=True)
class CollectiveMember:
    """One member of a communicator of ``n`` and the arguments of its call.

    ``size``: the vector, or what it gives to each; ``size_in``: what it gets from each; ``out`` and ``into``: the same where they differ by
    member. ``hosts``: where each member runs, empty where an algorithm is not told; ``sources`` and ``targets``: its neighbours. Of an
    intercommunicator ``remote`` members are the other group, ranks from ``n`` on, and ``low`` is the group that begins. ``buffers``:
    temporary ones of the vector's size that the caller holds meanwhile.
    """

    n: int
    me: int
    choices: Any
    root: int = 0
    size: int = 0
    size_in: int = 0
    out: Sequence[int] = ()
    into: Sequence[int] = ()
    hosts: Sequence[int] = ()
    sources: Sequence[int] = ()
    targets: Sequence[int] = ()
    remote: int = 0
    low: bool = True
    nonblocking: bool = False
    buffers: int = 0

    def gives(self, r: int) -> int:
        """What it sends to member ``r``."""
        return self.out[r] if self.out else self.size

    def gets(self, r: int) -> int:
        """What it receives from member ``r``; of a reduce-scatter, what ``r`` gets of the result."""
        return self.into[r] if self.into else self.size_in

    def total(self, first: int = 0, count: int | None = None) -> int:
        """All that ``count`` members from ``first`` on give it, in the circle of the ranks."""
        return sum(self.gets((first + k) % self.n) for k in range(self.n if count is None else count))

    @property
    def relative(self) -> int:
        """Its rank counted from the root."""
        return (self.me - self.root) % self.n

    def absolute(self, relative: int) -> int:
        """The rank of a member that is counted from the root."""
        return (relative + self.root) % self.n


# ------------------------------------------------------------------------------------------------------------- what all are made of


def give(peer: int, size: int, sync: bool = False) -> Steps:
    """Sends, and waits until the data have left."""
    send = CollectiveStep("send", peer, size, sync=sync)
    yield send
    yield CollectiveStep("wait", of=send)


def take(peer: int, size: int) -> Steps:
    """Receives, and waits until the data are there."""
    receive = CollectiveStep("receive", peer, size)
    yield receive
    yield CollectiveStep("wait", of=receive)


def exchange(source: int, size_in: int, target: int, size: int, empty: bool = True, sync: bool = False) -> Steps:
    """Receives and sends at once, as MPI_Sendrecv does; without ``empty`` nothing is sent for no bytes."""
    receive, send = CollectiveStep("receive", source, size_in), CollectiveStep("send", target, size, sync=sync)
    if empty or size_in > 0:
        yield receive
    if empty or size > 0:
        yield send
        yield CollectiveStep("wait", of=send)
    if empty or size_in > 0:
        yield CollectiveStep("wait", of=receive)


def combine(size: int) -> Steps:
    """Combines operands. It takes time only where that was measured (`collectives.LibraryWork`); what the trace says of it is computed
    after the call."""
    yield CollectiveStep("combine", size=size)


def temporary(m: CollectiveMember, buffers: int, filled: int) -> Steps:
    """Takes so many buffers of the vector's size, which ``filled`` bytes will come into: memory that is new costs more."""
    if (ps := m.choices.work.temporary(m.buffers + buffers, m.size, filled)) > 0:
        yield CollectiveStep("work", size=ps)


def powers(below: int) -> list[int]:
    """1, 2, 4.. below a number."""
    return [1 << k for k in range(below.bit_length()) if 1 << k < below]


def largest_power(n: int) -> int:
    """The largest power of two that is not above ``n``."""
    return 1 << n.bit_length() - 1


def span(relative: int, n: int) -> int:
    """How many ranks a subtree of the binomial tree over ``n`` takes, its last ones perhaps beyond ``n``. The parent of a member is that
    much before it, its children are 1, 2, 4.. after it."""
    return relative & -relative if relative else 2 * powers(n)[-1] if n > 1 else 1


def cut(size: int, count: int) -> Callable[[int, int], int]:
    """Bytes of the pieces from..to-1 of a vector in ``count`` pieces; the last one takes the rest (code: MPICH2, reduce.c)."""

    def at(i: int) -> int:
        return size if i >= count else size // count * i

    return lambda first, to: at(to) - at(first)


def cut_up(size: int, count: int) -> Callable[[int, int], int]:
    """The same with pieces that are rounded up, so that the last ones may be short or empty (code: MPICH2, bcast.c)."""

    def at(i: int) -> int:
        return min(size, -(-size // count) * i)

    return lambda first, to: at(to) - at(first)


# -------------------------------------------------------------------------------------------------------------------- barrier


def barrier_dissemination(m: CollectiveMember) -> Steps:
    """Round k: a word to the member 2^k above, one from that 2^k below (paper: Hensgen, Finkel, Manber 1988)."""
    for k in powers(m.n):
        yield from exchange((m.me - k) % m.n, 0, (m.me + k) % m.n, 0)


def barrier_power_of_two(m: CollectiveMember) -> Steps:
    """Members beyond a power of two report to one within it, which exchange 1, 2, 4.. apart and release them (code: MPICH 1.0.5 to
    1.2)."""
    inner = largest_power(m.n)
    if m.me >= inner:
        yield from exchange(m.me - inner, 0, m.me - inner, 0)
        return
    if m.me + inner < m.n:
        yield from take(m.me + inner, 0)
    for k in powers(inner):
        yield from exchange(m.me ^ k, 0, m.me ^ k, 0)
    if m.me + inner < m.n:
        yield from give(m.me + inner, 0)


def barrier_doubling(m: CollectiveMember) -> Steps:
    """Two exchange; of more, those beyond the largest power of two below their number report first and are released last. What goes to
    another one last is a synchronous send (code: Open MPI 1.1)."""
    inner = 2 if m.n == 2 else largest_power(max(1, m.n - 1))
    if m.me >= inner:
        yield from give(m.me - inner, 0)
        yield from take(m.me - inner, 0)
        return
    if m.me + inner < m.n:
        yield from take(m.me + inner, 0)
    for k in powers(inner):
        yield from exchange(m.me ^ k, 0, m.me ^ k, 0, sync=True)
    if m.me + inner < m.n:
        yield from give(m.me + inner, 0, sync=True)


def barrier_tree(m: CollectiveMember) -> Steps:
    """Up a binomial tree, and down again (code: Open MPI 1.x)."""
    mine = span(m.me, m.n)
    children = [m.me + k for k in powers(mine) if m.me + k < m.n]
    for child in children:
        yield from take(child, 0)
    if m.me > 0:
        yield from give(m.me - mine, 0)
        yield from take(m.me - mine, 0)
    for child in reversed(children):
        yield from give(child, 0)


def barrier_nodes(m: CollectiveMember) -> Steps:
    """Within each host, among the first members of all, then a broadcast of a byte within each (code: MPICH2 1.1 to 1.3)."""
    mine, firsts = hosts_of(m)
    yield from among(m, mine, 0, "barrier")
    yield from among(m, firsts, 0, "barrier")
    yield from among(replace(m, size=1), mine, 0, "bcast")


# ------------------------------------------------------------------------------------------------------------------ broadcast


def bcast_binomial(m: CollectiveMember) -> Steps:
    """From the parent, then to the children, the largest subtree first (code: MPICH 1.1.1 to 1.2)."""
    me, mine = m.relative, span(m.relative, m.n)
    if me > 0:
        yield from take(m.absolute(me - mine), m.size)
    for k in reversed(powers(mine)):
        if me + k < m.n:
            yield from give(m.absolute(me + k), m.size)


def bcast_folded(m: CollectiveMember) -> Steps:
    """A binomial tree over a power of two of members, which at last give it to the others (code: MPICH 1.0.5 to 1.1.0)."""
    me, inner = m.relative, largest_power(m.n)
    if me >= inner:
        yield from take(m.absolute(me - inner), m.size)
        return
    mine = span(me, inner)
    if me > 0:
        yield from take(m.absolute(me - mine), m.size)
    for child in (*(me + k for k in reversed(powers(mine))), me + inner):
        if child < m.n:
            yield from give(m.absolute(child), m.size)


def bcast_linear(m: CollectiveMember) -> Steps:
    """The root sends to one after the other (code: Open MPI 1.x)."""
    if m.me != m.root:
        yield from take(m.root, m.size)
    else:
        for r in range(m.n):
            if r != m.root:
                yield from give(r, m.size)


def bcast_chain(m: CollectiveMember) -> Steps:
    """Each passes segments of 8 KiB on to the next one (paper: Patarasuk, Faraj, Yuan 2006)."""
    me, at = m.relative, 0
    while True:
        size = min(8192, m.size - at)
        if me > 0:
            yield from take(m.absolute(me - 1), size)
        if me + 1 < m.n:
            yield CollectiveStep("send", m.absolute(me + 1), size)
        at += size
        if at >= m.size:
            break
    yield CollectiveStep("wait")


def bcast_posted(m: CollectiveMember) -> Steps:
    """The root starts all its sends at once (code: Open MPI 1.1)."""
    if m.me != m.root:
        yield from take(m.root, m.size)
        return
    for r in range(m.n):
        if r != m.root:
            yield CollectiveStep("send", r, m.size)
    yield CollectiveStep("wait")


def bcast_down(degree: int, segment: int) -> Callable[[CollectiveMember], Steps]:
    """Down a tree of this degree, segment by segment. Who passes on has the next one coming meanwhile (code: Open MPI 1.1)."""

    def steps(m: CollectiveMember) -> Steps:
        level = [0] if degree == 1 else [k for k in range(32) if (1 << k) - 1 <= m.relative]
        below = [m.relative + 1] if degree == 1 else [m.relative + (i << level[-1]) for i in (1, 2)]
        children = [m.absolute(r) for r in below if r < m.n]
        parent = m.relative - 1 if degree == 1 else next(
            (r for r in range(m.relative) for i in (1, 2) if r + (i << ((r + 1).bit_length() - 1)) == m.relative), -1)
        sizes = [min(segment, m.size - at) for at in range(0, m.size, segment)] if segment and m.size else [m.size]
        receives = [CollectiveStep("receive", m.absolute(parent), size) for size in sizes] if parent >= 0 else []
        yield from receives[:1]
        for k, size in enumerate(sizes):
            following = receives[k + 1 : k + 2]
            if children:
                yield from following
            if receives:
                yield CollectiveStep("wait", of=receives[k])
            if not children:
                yield from following
            sends = [CollectiveStep("send", r, size) for r in children]
            yield from sends
            for send in sends:
                yield CollectiveStep("wait", of=send)

    return steps


def scattered_vector(m: CollectiveMember) -> Steps:
    """Down a binomial tree, to each subtree its pieces; empty ones are not sent (paper: Barnett et al. 1994)."""
    me, mine, pieces = m.relative, span(m.relative, m.n), cut_up(m.size, m.n)
    if me > 0 and (size := pieces(me, min(me + mine, m.n))) > 0:
        yield from take(m.absolute(me - mine), size)
    for k in reversed(powers(mine)):
        if me + k < m.n and (size := pieces(me + k, min(me + 2 * k, m.n))) > 0:
            yield from give(m.absolute(me + k), size)


def bcast_scatter_doubling(m: CollectiveMember) -> Steps:
    """A scatter, then an allgather by doubling (paper: Thakur, Rabenseifner, Gropp 2005, 4.2)."""
    yield from scattered_vector(m)
    yield from doubling(m, cut_up(m.size, m.n))


def bcast_scatter_ring(m: CollectiveMember) -> Steps:
    """A scatter, then an allgather around the ring (paper: Thakur, Rabenseifner, Gropp 2005, 4.2)."""
    yield from scattered_vector(m)
    me, pieces = m.relative, cut_up(m.size, m.n)
    for k in range(m.n - 1):
        mine, theirs = (me - k) % m.n, (me - k - 1) % m.n
        yield from exchange((m.me - 1) % m.n, pieces(theirs, theirs + 1), (m.me + 1) % m.n, pieces(mine, mine + 1))


def bcast_nodes(m: CollectiveMember) -> Steps:
    """The root to the first member of its host, a tree over the first members, one within each host (code: MPICH2 1.1 to 1.3)."""
    mine, firsts = hosts_of(m)
    if m.root in mine and m.root != mine[0]:
        if m.me == m.root:
            yield from give(mine[0], m.size)
        elif m.me == mine[0]:
            yield from take(m.root, m.size)
    yield from among(m, firsts, first_on(m, m.root, firsts), "bcast", "binomial")
    yield from among(m, mine, 0, "bcast", "binomial")


def bcast_nodes_scatter(m: CollectiveMember) -> Steps:
    """First within the root's host, if the root is not the first one there, then scattered over the hosts, then within the others (code:
    MPICH2 1.1 to 1.3)."""
    mine, firsts = hosts_of(m)
    before = m.root in mine and m.root != mine[0]
    if before:
        yield from among(m, mine, mine.index(m.root), "bcast", "binomial")
    between = "scatter_doubling" if largest_power(len(firsts)) == len(firsts) else "scatter_ring"
    yield from among(m, firsts, first_on(m, m.root, firsts), "bcast", between)
    if not before:
        yield from among(m, mine, 0, "bcast", "binomial")


def bcast_by_reference(m: CollectiveMember) -> Steps:
    """One copy into a shared buffer; its address goes down a tree, and everybody copies out of it (assumed: models/craympt)."""
    if m.n < 2:
        return
    if m.me == m.root:
        yield CollectiveStep("copy", size=m.size, copies=m.choices.copies_root)
    yield from bcast_binomial(replace(m, size=0))
    if m.me == m.root:
        yield CollectiveStep("all taken", size=m.n - 1)
    else:
        yield CollectiveStep("copy", size=m.size, copies=m.choices.copies_leaf)
        yield CollectiveStep("taken", m.root)


def bcast_put_tree(m: CollectiveMember) -> Steps:
    """The tree by one-sided puts into buffers that all have, each followed by a message that says so (assumed: models/craympt)."""
    if m.n < 2:
        return
    me, mine = m.relative, span(m.relative, m.n)
    if me == 0:
        yield CollectiveStep("copy", size=m.size, copies=m.choices.copies_root)
    else:
        yield from take(m.absolute(me - mine), 0)
    for k in reversed(powers(mine)):
        if me + k < m.n:
            yield CollectiveStep("put", m.absolute(me + k), m.size)
            yield from give(m.absolute(me + k), 0)
    if me != 0:
        yield CollectiveStep("copy", size=m.size, copies=m.choices.copies_leaf)


# ------------------------------------------------------------------------------------------------------- reduction and allreduce


def reduce_binomial(m: CollectiveMember) -> Steps:
    """From the children, the smallest subtree first, then to the parent (code: MPICH 1.0.5 to 1.2)."""
    me, mine = m.relative, span(m.relative, m.n)
    # One buffer for what comes in, and one for the result unless it is the root (code: MPICH 3 and 4, reduce_intra_binomial.c).
    receives = me % 2 == 0 and me + 1 < m.n
    yield from temporary(m, 1 if me == 0 else 2, (receives + (me != 0)) * m.size)
    for k in powers(mine):
        if me + k < m.n:
            yield from take(m.absolute(me + k), m.size)
            yield from combine(m.size)
    if me > 0:
        yield from give(m.absolute(me - mine), m.size)


def reduce_linear(m: CollectiveMember) -> Steps:
    """The root takes from one after the other, the last one first (code: Open MPI 1.x)."""
    if m.me != m.root:
        yield from give(m.root, m.size)
    else:
        for r in reversed(range(m.n)):
            if r != m.root:
                yield from take(r, m.size)
                yield from combine(m.size)


def reduce_linear_copy(m: CollectiveMember) -> Steps:
    """The same, where a root that is the last member copies its operands first, and messages other than the first come into a temporary
    buffer (code: Open MPI 1.1)."""
    last = m.me == m.n - 1
    if m.me == m.root and (m.n > 2 or (m.n == 2 and last)):
        yield from temporary(m, 1, m.size)
    if m.me == m.root and last and m.n > 1:
        yield CollectiveStep("copy", size=m.size)
    yield from reduce_linear(m)


class Inner:
    """The power of two of members that do the work of Rabenseifner's algorithms. Of the first pairs, as many as there are members beyond
    it, one works for both: the second (``odd`` 1) or the first."""

    def __init__(self, n: int, odd: int) -> None:
        self.count, self.odd = largest_power(n), odd
        self.pairs = n - self.count

    def rank(self, r: int) -> int:
        """The rank of the ``r``-th that works."""
        return 2 * r + self.odd if r < self.pairs else r + self.pairs

    def of(self, rank: int) -> int | None:
        """The inverse; None for one that does not work."""
        if rank >= 2 * self.pairs:
            return rank - self.pairs
        return rank // 2 if rank % 2 == self.odd else None

    def part(self, r: int, rounds: int) -> tuple[int, int]:
        """The pieces from..to-1 that the ``r``-th is in charge of after so many rounds of halving: each takes a bit of ``r``, from the
        lowest on, and bit 1 means the upper half."""
        first, to = 0, self.count
        for k in range(rounds):
            middle = (first + to) // 2
            first, to = (middle, to) if r >> k & 1 else (first, middle)
        return first, to

    @property
    def rounds(self) -> int:
        """How many rounds of halving there are."""
        return self.count.bit_length() - 1

    def folded_in(self, m: CollectiveMember) -> Steps:
        """Before: those who do not work give their vector to the other of the pair."""
        if m.me >= 2 * self.pairs:
            return
        if self.of(m.me) is None:
            yield from give(m.me ^ 1, m.size)
        else:
            yield from take(m.me ^ 1, m.size)
            yield from combine(m.size)

    def folded_out(self, m: CollectiveMember) -> Steps:
        """After: they get the result."""
        if m.me < 2 * self.pairs:
            yield from take(m.me ^ 1, m.size) if self.of(m.me) is None else give(m.me ^ 1, m.size)

    def comes(self, m: CollectiveMember) -> int:
        """The bytes to be combined that come to a member at most in one round, for which it needs a buffer."""
        if self.of(m.me) is None:
            return 0
        return m.size if m.me < 2 * self.pairs else m.size - m.size // self.count

    def halve(self, r: int, size: int) -> Steps:
        """A reduce-scatter: neighbours first, each gives half of the pieces that it is still in charge of."""
        pieces = cut(size, self.count)
        for k in range(self.rounds):
            other = r ^ 1 << k
            peer = self.rank(other)
            kept = pieces(*self.part(r, k + 1))
            yield from exchange(peer, kept, peer, pieces(*self.part(other, k + 1)))
            yield from combine(kept)

    def double(self, r: int, size: int) -> Steps:
        """The allgather: the same rounds backwards."""
        pieces = cut(size, self.count)
        for k in reversed(range(self.rounds)):
            other = r ^ 1 << k
            peer = self.rank(other)
            yield from exchange(peer, pieces(*self.part(other, k + 1)), peer, pieces(*self.part(r, k + 1)))


def reduce_rabenseifner(m: CollectiveMember) -> Steps:
    """A reduce-scatter by halving, then a binomial gather to the root. A root that does not work takes the first one's place (paper:
    Rabenseifner 1997; code: MPICH2, reduce.c)."""
    inner = Inner(m.n, 0)
    pieces = cut(m.size, inner.count)
    yield from inner.folded_in(m)
    # A buffer for what comes in, and one for the result unless it is the root (code: MPICH 3 and 4, reduce_intra_reduce_scatter_gather.c).
    yield from temporary(m, 1 if m.me == m.root else 2, inner.comes(m) + (0 if m.me == m.root else m.size))
    r, root = inner.of(m.me), inner.of(m.root)
    if r is not None:
        yield from inner.halve(r, m.size)
    stands_in = root is None
    if root is None:
        root = 0
        if m.me == inner.rank(0):
            yield from give(m.root, pieces(*inner.part(0, inner.rounds)))
            return
        if m.me == m.root:
            yield from take(inner.rank(0), pieces(*inner.part(0, inner.rounds)))
            r = 0
    if r is None:
        return
    for k in reversed(range(inner.rounds)):
        other = r ^ 1 << k
        peer = m.root if stands_in and other == 0 else inner.rank(other)
        # Of the two, the one in the root's part of the circle goes on with both parts.
        if other >> k == root >> k:
            yield from give(peer, pieces(*inner.part(r, k + 1)))
            return
        yield from take(peer, pieces(*inner.part(other, k + 1)))


def reduce_nodes(m: CollectiveMember) -> Steps:
    """Within each host to its first member, then among these, and to the root within its own host last (code: MPICH2 1.1 to 1.3)."""
    mine, firsts = hosts_of(m)
    if m.root not in mine:
        yield from among(m, mine, 0, "reduce")
    yield from among(m, firsts, first_on(m, m.root, firsts), "reduce")
    if m.root in mine:
        yield from among(m, mine, mine.index(m.root), "reduce")


def reduce_nodes_forward(m: CollectiveMember) -> Steps:
    """The same to member 0, who forwards the result to another root (code: MPICH 4.0)."""
    mine, firsts = hosts_of(m)
    if m.root != 0 and m.me == 0:
        yield from temporary(m, 2, m.size)
        m = replace(m, buffers=1)
    yield from among(m, mine, 0, "reduce")
    yield from among(m, firsts, first_on(m, 0, firsts), "reduce")
    if m.root != 0 and m.me == 0:
        yield from give(m.root, m.size)
    elif m.root != 0 and m.me == m.root:
        yield from take(0, m.size)


def allreduce_reduce_bcast(m: CollectiveMember) -> Steps:
    """A reduction to the first member, a broadcast from it (code: MPICH 1.0.5 to 1.2.0)."""
    m = replace(m, root=0)
    yield from m.choices.steps("reduce", m)
    yield from m.choices.steps("bcast", m)


def allreduce_doubling(m: CollectiveMember) -> Steps:
    """The whole vector with partners 1, 2, 4.. apart (paper: Thakur, Rabenseifner, Gropp 2005, 4.5)."""
    inner = Inner(m.n, 1)
    yield from temporary(m, 1, 0 if inner.of(m.me) is None else m.size)  # code: MPICH 3 and 4, allreduce_intra_recursive_doubling.c
    yield from inner.folded_in(m)
    if (r := inner.of(m.me)) is not None:
        for k in powers(inner.count):
            yield from exchange(inner.rank(r ^ k), m.size, inner.rank(r ^ k), m.size)
            yield from combine(m.size)
    yield from inner.folded_out(m)


def allreduce_rabenseifner(m: CollectiveMember) -> Steps:
    """A reduce-scatter by halving, an allgather by doubling (paper: Rabenseifner 1997)."""
    inner = Inner(m.n, 1)
    yield from temporary(m, 1, inner.comes(m))  # code: MPICH 3 and 4, allreduce_intra_reduce_scatter_allgather.c
    yield from inner.folded_in(m)
    if (r := inner.of(m.me)) is not None:
        yield from inner.halve(r, m.size)
        yield from inner.double(r, m.size)
    yield from inner.folded_out(m)


def allreduce_ring(m: CollectiveMember) -> Steps:
    """A reduce-scatter around the ring, an allgather around it (paper: Patarasuk, Yuan 2009)."""
    pieces = cut(m.size, m.n)

    def piece(k: int) -> int:
        return pieces((m.me - k) % m.n, (m.me - k) % m.n + 1)

    for shift in (0, -1):
        for k in range(m.n - 1):
            yield from exchange((m.me - 1) % m.n, piece(k + shift + 1), (m.me + 1) % m.n, piece(k + shift))
            if shift == 0:
                yield from combine(piece(k + 1))


def allreduce_nodes(m: CollectiveMember) -> Steps:
    """A reduction within each host, an allreduce among the first members, a broadcast within each (code: MPICH2 1.1 to 1.3)."""
    mine, firsts = hosts_of(m)
    yield from among(m, mine, 0, "reduce")
    yield from among(m, firsts, 0, "allreduce")
    yield from among(m, mine, 0, "bcast")


# --------------------------------------------------------------------------------------------------------- gather and scatter


def gather_binomial(m: CollectiveMember) -> Steps:
    """Up a binomial tree, from each child the blocks of its subtree (code: MPICH2, gather.c)."""
    me, mine, each = m.relative, span(m.relative, m.n), m.size_in if m.me == m.root else m.size
    for k in powers(mine):
        if me + k < m.n:
            yield from take(m.absolute(me + k), each * min(k, m.n - me - k))
    if me > 0:
        yield from give(m.absolute(me - mine), each * min(mine, m.n - me))


def gather_linear(m: CollectiveMember) -> Steps:
    """The root takes from one after the other (code: MPICH 1.0.5 to 1.2)."""
    if m.me != m.root:
        yield from give(m.root, m.size)
    else:
        for r in range(m.n):
            if r != m.root:
                yield from take(r, m.gets(r))


def gather_posted(m: CollectiveMember) -> Steps:
    """The root posts all receives at once; nothing is sent for an empty block (code: MPICH2, gatherv.c)."""
    if m.me == m.root:
        for r in range(m.n):
            if r != m.root and m.gets(r) > 0:
                yield CollectiveStep("receive", r, m.gets(r))
        yield CollectiveStep("wait")
    elif m.size > 0:
        yield from give(m.root, m.size)


def scatter_binomial(m: CollectiveMember) -> Steps:
    """Down a binomial tree, to each child the blocks of its subtree, the largest first (code: MPICH2, scatter.c)."""
    me, mine, each = m.relative, span(m.relative, m.n), m.size if m.me == m.root else m.size_in
    if me > 0:
        yield from take(m.absolute(me - mine), each * min(mine, m.n - me))
    for k in reversed(powers(mine)):
        if me + k < m.n:
            yield from give(m.absolute(me + k), each * min(k, m.n - me - k))


def scatter_linear(m: CollectiveMember) -> Steps:
    """The root sends to one after the other (code: MPICH 1.0.5 to 1.2)."""
    if m.me != m.root:
        yield from take(m.root, m.size_in)
    else:
        for r in range(m.n):
            if r != m.root:
                yield from give(r, m.gives(r))


def scatter_posted(m: CollectiveMember) -> Steps:
    """The root begins all sends at once; nothing is sent for an empty block (code: MPICH2, scatterv.c)."""
    if m.me == m.root:
        for r in range(m.n):
            if r != m.root and m.gives(r) > 0:
                yield CollectiveStep("send", r, m.gives(r))
        yield CollectiveStep("wait")
    elif m.size_in > 0:
        yield from take(m.root, m.size_in)


# ------------------------------------------------------------------------------------------------------------------ allgather


def doubling(m: CollectiveMember, parts: Callable[[int, int], int]) -> Steps:
    """An allgather: members 1, 2, 4.. apart exchange all that they have, which is ``parts`` of from..to-1 counted from the root. Where
    the circle ends within a group of them, those who had no partner get it from the others of theirs, down a tree (paper: Thakur,
    Rabenseifner, Gropp 2005, 4.1; code: MPICH2, allgather.c)."""
    me, n = m.relative, m.n
    for k in powers(n):
        mine, theirs = me // k * k, (me ^ k) // k * k
        if me ^ k < n:
            peer = m.absolute(me ^ k)
            yield from exchange(peer, parts(theirs, min(theirs + k, n)), peer, parts(mine, min(mine + k, n)))
        served = n - theirs
        if served >= k:
            continue
        for half in reversed(powers(k)):
            other, group = me ^ half, me // (2 * half) * 2 * half
            have = group + served
            if me < have <= other:
                yield from give(m.absolute(other), parts(theirs, n))
            elif other < have <= me:
                yield from take(m.absolute(other), parts(theirs, n))


def allgather_doubling(m: CollectiveMember) -> Steps:
    """By `doubling`."""
    m = replace(m, root=0)
    yield from doubling(m, lambda first, to: m.total(first, to - first))


def allgather_bruck(m: CollectiveMember) -> Steps:
    """Round k: the 2^k blocks from its own on to the one that far below, as many from the one above; then they are put in order (paper:
    Bruck et al. 1997)."""
    for k in powers(m.n):
        count, above = min(k, m.n - k), (m.me + k) % m.n
        yield from exchange(above, m.total(above, count), (m.me - k) % m.n, m.total(m.me, count))
    if m.n > 1:
        yield CollectiveStep("copy", size=m.total())


def allgather_ring(m: CollectiveMember) -> Steps:
    """Each forwards the block that it got last (code: MPICH 1.0.5 to 1.2.0)."""
    for k in range(m.n - 1):
        yield from exchange((m.me - 1) % m.n, m.gets((m.me - k - 1) % m.n), (m.me + 1) % m.n, m.gets((m.me - k) % m.n))


def allgather_ring_pipelined(m: CollectiveMember) -> Steps:
    """The ring with blocks in segments of the smallest block or 32 KiB, so that unequal ones do not wait for each other (paper: Traff et
    al. 2008; code: MPICH2, allgatherv.c)."""
    if m.n < 2:
        return
    left, right = (m.me - 1) % m.n, (m.me + 1) % m.n
    most = max(min(m.gets(r) for r in range(m.n)), 32768)

    def segments(first: int, never: int) -> list[int]:
        """The blocks from ``first`` on against the direction of the ring, without the last one; an empty block takes its turn as one
        that is empty."""
        found: list[int] = []
        left_over, block = m.total() - m.gets(never), first
        while left_over > 0:
            size = m.gets(block)
            found += [min(most, size - at) for at in range(0, size, most)] or [0]
            left_over, block = left_over - size, (block - 1) % m.n
        return found

    incoming, outgoing = segments(left, m.me), segments(m.me, right)
    for k in range(max(len(incoming), len(outgoing))):
        yield from exchange(left, incoming[k] if k < len(incoming) else 0, right, outgoing[k] if k < len(outgoing) else 0, empty=False)


def _gather_bcast(m: CollectiveMember, gather: str) -> Steps:
    yield from m.choices.steps(gather, replace(m, root=0, size=m.gets(m.me)))
    yield from m.choices.steps("bcast", replace(m, root=0, size=m.total()))


def allgather_gather_bcast(m: CollectiveMember) -> Steps:
    """A gather to the first member, a broadcast of everything from it (code: Open MPI 1.x)."""
    yield from _gather_bcast(m, "gather")


def allgatherv_gather_bcast(m: CollectiveMember) -> Steps:
    """The same of unequal blocks."""
    yield from _gather_bcast(m, "gatherv")


# ------------------------------------------------------------------------------------------------------------------- alltoall


def alltoall_in_order(m: CollectiveMember) -> Steps:
    """A receive and a send for each in the order of the ranks, then one wait (code: MPICH 1.0.5 to 1.2.4)."""
    for r in range(m.n):
        yield CollectiveStep("receive", r, m.gets(r))
        yield CollectiveStep("send", r, m.gives(r))
    yield CollectiveStep("wait")


def _all_at_once(m: CollectiveMember, peers: Sequence[int]) -> Steps:
    """All receives, all sends, then one wait."""
    for r in peers:
        yield CollectiveStep("receive", r, m.gets(r))
    for r in peers:
        yield CollectiveStep("send", r, m.gives(r))
    yield CollectiveStep("wait")


def alltoall_posted(m: CollectiveMember) -> Steps:
    """All at once, each from itself on (code: MPICH 1.2.5 to 1.2.7)."""
    yield from _all_at_once(m, [(m.me + k) % m.n for k in range(m.n)])


def alltoall_linear(m: CollectiveMember) -> Steps:
    """The own block is copied; then all at once, each from the next member on (code: Open MPI 1.1)."""
    yield CollectiveStep("copy", size=m.gives(m.me), own=True)
    yield from _all_at_once(m, [(m.me + k) % m.n for k in range(1, m.n)])


def alltoall_rotated(m: CollectiveMember) -> Steps:
    """To the next member while from the one before, then two apart, and so on; the own block is copied last (code: Open MPI 1.1)."""
    for k in range(1, m.n):
        before, after = (m.me - k) % m.n, (m.me + k) % m.n
        yield CollectiveStep("receive", before, m.gets(before))
        yield CollectiveStep("send", after, m.gives(after))
        yield CollectiveStep("wait")
    yield CollectiveStep("copy", size=m.gives(m.me), own=True)


def alltoall_throttled(most: int, empty: bool) -> Callable[[CollectiveMember], Steps]:
    """So many at a time, the vector form without empty blocks (code: MPICH2 1.2 to MPICH 3.0.4)."""

    def throttled_steps(m: CollectiveMember) -> Steps:
        for first in range(0, m.n, most):
            some = range(first, min(first + most, m.n))
            for k in some:
                r = (m.me + k) % m.n
                if empty or m.gets(r) > 0:
                    yield CollectiveStep("receive", r, m.gets(r))
            for k in some:
                r = (m.me - k) % m.n
                if empty or m.gives(r) > 0:
                    yield CollectiveStep("send", r, m.gives(r))
            yield CollectiveStep("wait")

    return throttled_steps


def alltoall_pairwise(m: CollectiveMember) -> Steps:
    """One partner at a time; the member's own block is copied (paper: Thakur, Rabenseifner, Gropp 2005, 4.3)."""
    yield CollectiveStep("copy", size=m.gives(m.me), own=True)
    power = largest_power(m.n) == m.n
    for k in range(1, m.n):
        target, source = (m.me ^ k, m.me ^ k) if power else ((m.me + k) % m.n, (m.me - k) % m.n)
        yield from exchange(source, m.gets(source), target, m.gives(target))


def alltoall_bruck(m: CollectiveMember) -> Steps:
    """Round k: all blocks whose distance has bit k go 2^k ahead, packed into one message. They are rotated first and put in order at the
    end (paper: Bruck et al. 1997)."""
    if m.n < 2:
        return
    yield CollectiveStep("copy", size=m.size * m.n)
    for k in powers(m.n):
        size = m.size * sum(1 for distance in range(m.n) if distance & k)
        yield CollectiveStep("copy", size=size)
        yield from exchange((m.me - k) % m.n, size, (m.me + k) % m.n, size)
    yield CollectiveStep("copy", size=m.size * m.n, copies=2)


# ---------------------------------------------------------------------------------------------------- reduce-scatter and scans


def _reduce_then(m: CollectiveMember, scatter: str) -> Steps:
    yield from m.choices.steps("reduce", replace(m, root=0, size=m.total()))
    yield from m.choices.steps(scatter, replace(m, root=0, size=m.size_in, size_in=m.gets(m.me), out=m.into, into=()))


def reduce_scatterv(m: CollectiveMember) -> Steps:
    """A reduction to the first member, which sends each its part (code: MPICH 1.0.5 to 1.2)."""
    yield from _reduce_then(m, "scatterv")


def reduce_scatter(m: CollectiveMember) -> Steps:
    """The same of equal parts (code: MPICH2 1.2 and 1.3)."""
    yield from _reduce_then(m, "scatter")


def reduce_scatter_halving(m: CollectiveMember) -> Steps:
    """Partners half of the members apart, then a quarter.. each gives the other's half. Of the first pairs the second works for both
    (paper: Thakur, Rabenseifner, Gropp 2005, 4.4)."""
    inner = Inner(m.n, 1)
    if m.total() == 0:
        return
    r = inner.of(m.me)
    if r is None:
        yield from give(m.me + 1, m.total())
        if m.gets(m.me) > 0:
            yield from take(m.me + 1, m.gets(m.me))
        return
    if m.me < 2 * inner.pairs:
        yield from take(m.me - 1, m.total())
        yield from combine(m.total())

    def first(working: int) -> int:
        return 2 * working if working < inner.pairs else working + inner.pairs

    def parts(group: int, k: int) -> int:
        return m.total(first(group), first(group + k) - first(group))

    for k in reversed(powers(inner.count)):
        mine, peer = r // k * k, inner.rank(r ^ k)
        kept = parts(mine, k)
        yield from exchange(peer, kept, peer, parts(mine ^ k, k), empty=False)
        if kept > 0:
            yield from combine(kept)
    if m.me < 2 * inner.pairs and m.gets(m.me - 1) > 0:
        yield from give(m.me - 1, m.gets(m.me - 1))


def reduce_scatter_pairwise(m: CollectiveMember) -> Steps:
    """Round k: its part to the one k above, its own from the one k below; nothing for an empty one (paper: Thakur, Rabenseifner, Gropp
    2005, 4.4)."""
    for k in range(1, m.n):
        target = (m.me + k) % m.n
        yield from exchange((m.me - k) % m.n, m.gets(m.me), target, m.gets(target), empty=False)
        if m.gets(m.me) > 0:
            yield from combine(m.gets(m.me))


def scan_linear(m: CollectiveMember) -> Steps:
    """Each waits for the one before it (code: MPICH 1.0.5 to 1.2)."""
    if m.me > 0:
        yield from take(m.me - 1, m.size)
        yield from combine(m.size)
    if m.me + 1 < m.n:
        yield from give(m.me + 1, m.size)


def scan_doubling(m: CollectiveMember) -> Steps:
    """Members 1, 2, 4.. apart exchange what their groups have together (code: MPICH2, scan.c)."""
    for k in powers(m.n):
        if m.me ^ k < m.n:
            yield from exchange(m.me ^ k, m.size, m.me ^ k, m.size)
            yield from combine(2 * m.size if m.me & k else m.size)  # from below it is also part of its own result


# ------------------------------------------------------------------------------------------------------------------ neighbours


def neighbours(gather: bool) -> Callable[[CollectiveMember], Steps]:
    """All receives in the order of the sources, all sends in that of the targets, one wait (code: MPICH 3.0)."""

    def post_all(m: CollectiveMember) -> Steps:
        for k, source in enumerate(m.sources):
            yield CollectiveStep("receive", source, m.gets(k))
        for k, target in enumerate(m.targets):
            yield CollectiveStep("send", target, m.size if gather else m.gives(k))
        yield CollectiveStep("wait")

    return post_all


def nothing(m: CollectiveMember) -> Steps:
    """A call without data returns at once (code: MPICH2, src/mpi/coll)."""
    yield from ()


# ---------------------------------------------------------------------------------------------------------- members of one host


def shares_hosts(m: CollectiveMember) -> bool:
    """Whether two members are on one host."""
    return len(set(m.hosts)) < len(m.hosts)


def hosts_of(m: CollectiveMember) -> tuple[list[int], list[int]]:
    """The members on its own host, and the first one of every host, each in the order of the ranks."""
    mine = [r for r in range(m.n) if m.hosts[r] == m.hosts[m.me]]
    return mine, [r for r in range(m.n) if m.hosts.index(m.hosts[r]) == r]


def first_on(m: CollectiveMember, rank: int, firsts: Sequence[int]) -> int:
    """The place among the first members of the one on the host of ``rank``."""
    return firsts.index(m.hosts.index(m.hosts[rank]))


def among(m: CollectiveMember, members: Sequence[int], root: int, operation: str, algorithm: str = "") -> Steps:
    """An operation among some of the members, which do not know where they run; the model chooses the algorithm."""
    if m.me not in members or len(members) < 2:
        return
    part = replace(m, n=len(members), me=members.index(m.me), root=root, hosts=())
    for step in ALGORITHMS[operation][algorithm](part) if algorithm else m.choices.steps(operation, part):
        step.peer = members[step.peer]
        yield step


ALGORITHMS: dict[str, dict[str, Callable[[CollectiveMember], Steps]]] = {
    "barrier": {"dissemination": barrier_dissemination, "power_of_two": barrier_power_of_two, "tree": barrier_tree,
                "doubling": barrier_doubling, "nodes": barrier_nodes},
    "bcast": {"binomial": bcast_binomial, "folded": bcast_folded, "linear": bcast_linear, "chain": bcast_chain,
              "posted": bcast_posted, "bintree": bcast_down(2, 0), "bintree_16k": bcast_down(2, 16384),
              "pipeline_16k": bcast_down(1, 16384),
              "scatter_doubling": bcast_scatter_doubling, "scatter_ring": bcast_scatter_ring, "nodes": bcast_nodes,
              "nodes_scatter": bcast_nodes_scatter, "by_reference": bcast_by_reference, "put_tree": bcast_put_tree, "nothing": nothing},
    "reduce": {"binomial": reduce_binomial, "linear": reduce_linear, "linear_copy": reduce_linear_copy,
               "rabenseifner": reduce_rabenseifner, "nodes": reduce_nodes,
               "nodes_forward": reduce_nodes_forward, "nothing": nothing},
    "allreduce": {"reduce_bcast": allreduce_reduce_bcast, "doubling": allreduce_doubling, "rabenseifner": allreduce_rabenseifner,
                  "ring": allreduce_ring, "nodes": allreduce_nodes, "nothing": nothing},
    "gather": {"binomial": gather_binomial, "linear": gather_linear, "posted": gather_posted, "nothing": nothing},
    "gatherv": {"linear": gather_linear, "posted": gather_posted},
    "scatter": {"binomial": scatter_binomial, "linear": scatter_linear, "posted": scatter_posted, "nothing": nothing},
    "scatterv": {"linear": scatter_linear, "posted": scatter_posted},
    "allgather": {"ring": allgather_ring, "doubling": allgather_doubling, "bruck": allgather_bruck, "gather_bcast": allgather_gather_bcast,
                  "nothing": nothing},
    "allgatherv": {"ring": allgather_ring, "doubling": allgather_doubling, "bruck": allgather_bruck, "ring_pipelined":
                   allgather_ring_pipelined, "gather_bcast": allgatherv_gather_bcast, "nothing": nothing},
    "alltoall": {"in_order": alltoall_in_order, "posted": alltoall_posted, "linear": alltoall_linear, "rotated": alltoall_rotated,
                 "pairwise": alltoall_pairwise, "bruck": alltoall_bruck,
                 "throttled_4": alltoall_throttled(4, True), "throttled_32": alltoall_throttled(32, True), "nothing": nothing},
    **{vector: {"in_order": alltoall_in_order, "posted": alltoall_posted, "linear": alltoall_linear,
                "pairwise": alltoall_pairwise, "throttled_4": alltoall_throttled(4, False), "throttled_32": alltoall_throttled(32, False)}
       for vector in ("alltoallv", "alltoallw")},
    "reducescatter": {"reduce_scatterv": reduce_scatterv, "halving": reduce_scatter_halving, "pairwise": reduce_scatter_pairwise,
                      "nothing": nothing},
    "reducescatterblock": {"reduce_scatterv": reduce_scatterv, "reduce_scatter": reduce_scatter, "halving": reduce_scatter_halving,
                           "pairwise": reduce_scatter_pairwise, "nothing": nothing},
    **{scan: {"linear": scan_linear, "doubling": scan_doubling, "nothing": nothing} for scan in ("scan", "exscan")},
    **{f"neighbor_allgather{v}": {"posted": neighbours(True)} for v in ("", "v")},
    **{f"neighbor_alltoall{v}": {"posted": neighbours(False)} for v in ("", "v", "w")},
}
"""Operation -> its algorithms by name."""
