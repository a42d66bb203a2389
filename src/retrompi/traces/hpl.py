"""HPL, the Linpack benchmark for distributed memory: the calls of its solve, generated for a grid of processes.

The solve is that of HPL 1.0 and 2.x (pdgesv without look-ahead and pdtrsv; doc: netlib's hpl, src/pgesv, src/pfact, src/comm): a recursive,
right-looking factorisation of a panel by the processes of one column, with a binary exchange for each pivot; the panel along an
increasing ring; the row swaps "spread and roll" among the processes of a column; the update; and the backward substitution. Messages
are those of a recording, call by call (tests/test_hpl.py), but for the polls with which a process waits for the panel: it receives.

Computation is stated as kernels (docs/computation.md). Which rows are swapped follows from the pivots: of a matrix of random numbers each
is one of the rows that are left.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces.generate import GENERATORS, Generator
from retrompi.traces.making import trace_of_lines

__all__ = ["hpl", "local", "solve"]

PIVOT_TAG, PANEL_TAG, LAST_PANEL_TAG = 1001, 2001, 3000
SOLVE_TAG, LAST_SOLVE_TAG, COLLECTIVE_TAG = 3001, 4000, 9001
MOST_ROWS = 1 << 20
WORD = 8


def local(count: int, start: int, block: int, me: int, processes: int) -> int:
    """How many of the ``count`` indices from ``start`` on are a process's in a block-cyclic distribution."""

    def below(end: int) -> int:
        rounds, rest = divmod(end, block * processes)
        return rounds * block + min(max(rest - me * block, 0), block)

    return below(start + count) - below(start)


def _rounded(length: float) -> int:
    """``length`` with two digits, at least 1."""
    digits = int(10 ** max(0, len(str(int(length))) - 2))
    return max(1, int(length / digits + 0.5) * digits)


class _Solve:
    """The lines of every rank of a ``p`` x ``q`` grid, numbered by rows."""

    def __init__(self, n: int, nb: int, p: int, q: int, nbmin: int, pivots: Sequence[int]) -> None:
        self.n, self.nb, self.p, self.q, self.nbmin, self.pivots = n, nb, p, q, nbmin, pivots
        self.lines: list[list[str]] = [[f"{me} init\n"] for me in range(p * q)]

    def rank(self, row: int, column: int) -> int:
        return row * self.q + column

    def say(self, me: int, text: str) -> None:
        self.lines[me].append(f"{me} {text}\n")

    def send(self, me: int, to: int, tag: int, doubles: int) -> None:
        self.say(me, f"send {to} {tag} {doubles} 0")

    def receive(self, me: int, source: int, tag: int, doubles: int) -> None:
        self.say(me, f"recv {source} {tag} {doubles} 0")

    def exchange(self, me: int, other: int, tag: int, sent: int, received: int) -> None:
        """MPI_Irecv, MPI_Send, MPI_Wait, each only where there is something."""
        if received > 0:
            self.say(me, f"irecv {other} {tag} {received} 0")
        if sent > 0:
            self.send(me, other, tag, sent)
        if received > 0:
            self.say(me, f"wait {other} {me} {tag}")

    def compute(self, me: int, kernel: str, length: float, times: float = 1.0) -> None:
        """A kernel; lengths are rounded to two digits and made up for by the repetitions, so that few are different."""
        if length <= 0 or times <= 0:
            return
        about = _rounded(length)
        self.say(me, f"kernel {kernel} {about} {times * length / about:.6g}")

    # --- the panel ---------------------------------------------------------------------------------------------------------

    def factor(self, at: int, width: int) -> None:
        """The panel of ``width`` columns at ``at``, by the processes of its column."""
        column = at // self.nb % self.q
        owner = at // self.nb % self.p
        rows = [local(self.n - at, at, self.nb, row, self.p) for row in range(self.p)]
        self.recursion(column, owner, rows, width, width, 0)

    def recursion(self, column: int, owner: int, rows: list[int], width: int, jb: int, first: int) -> None:
        if width <= self.nbmin:
            self.leaf(column, owner, rows, width, jb, first)
            return
        leaves = (width + self.nbmin - 1) // self.nbmin
        part = (leaves + 1) // 2 * self.nbmin
        left, done, rows = width, 0, list(rows)
        part_now = part
        while left > 0:
            left -= part_now
            self.recursion(column, owner, rows, part_now, jb, first + done)
            rows[owner] -= part_now
            for row in range(self.p):
                if left > 0:
                    self.compute(self.rank(row, column), f"trsm:order={part_now}", left)
                    self.compute(self.rank(row, column), f"gemm:n={left},k={part_now}", rows[row])
            done += part_now
            part_now = min(left, part)

    def leaf(self, column: int, owner: int, rows: list[int], width: int, jb: int, first: int) -> None:
        rows = list(rows)
        for row in range(self.p):
            self.compute(self.rank(row, column), "norm", rows[row])
        for step in range(width):
            self.pivot(column, owner, jb)
            rows[owner] -= 1
            behind = width - step - 1
            for row in range(self.p):
                me = self.rank(row, column)
                self.compute(me, "scale", rows[row])
                if behind:
                    self.compute(me, "axpy", rows[row])
                    self.compute(me, "norm", rows[row])
                if behind > 1:
                    self.compute(me, f"ger:n={behind - 1}", rows[row])

    def pivot(self, column: int, owner: int, jb: int) -> None:
        """The largest element of a column, with its row and the current one: a binary exchange among the processes of a column."""
        one, two = jb + 4, 2 * jb + 4
        for step in range(self.p.bit_length() - 1):
            for row in range(self.p):
                distance = (row - owner) % self.p
                sent = received = one
                if distance >> (step + 1) == 0:
                    sent, received = (two, one) if distance >> step == 0 else (one, two)
                other = ((distance ^ (1 << step)) + owner) % self.p
                self.exchange(self.rank(row, column), self.rank(other, column), PIVOT_TAG, sent, received)

    def broadcast(self, at: int, width: int, tag: int) -> None:
        """The factored panel along an increasing ring from its column, in every row."""
        root, owner = at // self.nb % self.q, at // self.nb % self.p
        for row in range(self.p if self.q > 1 else 0):
            below = local(self.n - at, at, self.nb, row, self.p) - (width if row == owner else 0)
            size = WORD * (max(0, below) * width + width * width + width + 1)
            for step in range(self.q):
                column = (root + step) % self.q
                me, after, before = (self.rank(row, (column + k) % self.q) for k in (0, 1, -1))
                if step:
                    self.say(me, f"recv {before} {tag} {size} 6")
                if step < self.q - 1:
                    self.say(me, f"send {after} {tag} {size} 6")

    # --- row swaps and update ----------------------------------------------------------------------------------------------

    def update(self, at: int, width: int) -> None:
        owner = at // self.nb % self.p
        lengths, order = self.swapped(at, width)
        for column in range(self.q):
            n = local(self.n + 1 - at, at, self.nb, column, self.q) - (width if column == at // self.nb % self.q else 0)
            if n <= 0:
                continue
            if self.p > 1:
                self.swap(column, owner, n, lengths, order)
            for row in range(self.p):
                me = self.rank(row, column)
                below = local(self.n - at, at, self.nb, row, self.p) - (width if row == owner else 0)
                self.compute(me, "copy", 2 * width * n / self.p)
                self.compute(me, f"trsm:order={width}", n)
                about = _rounded(n)
                self.compute(me, f"gemm:n={about},k={width}", below, n / about)

    def swapped(self, at: int, width: int) -> tuple[list[int], list[int]]:
        """Ends of the parts of the swapped rows by place in the order of processes, and that order (HPL_plindx10, HPL_logsort)."""
        owner, p = at // self.nb % self.p, self.p
        place = {row: row for row in range(at, at + width)}  # position -> the row of before that ends up there
        for i in range(width):
            a, b = at + i, self.pivots[at + i]
            place[a], place[b] = place.get(b, b), place.get(a, a)
        ends = [0] * p
        for target, source in place.items():
            if source // self.nb % p == owner and target == source and target >= at + width:
                continue
            home = source // self.nb % p
            if home == owner:  # a row of the current processes goes to where it belongs
                goes = target // self.nb % p
                if goes != owner or target - at < width:
                    ends[goes] += 1
        return self.by_distance(ends, owner)

    def by_distance(self, counts: list[int], owner: int) -> tuple[list[int], list[int]]:
        p = self.p
        order = [(j + owner) % p for j in range(p)]
        bits = [bin(j).count("1") for j in range(p)]
        sizes = counts[owner:] + counts[:owner]
        for k in range(1, max(bits) + 1):
            for j in range(1, p):
                if bits[j] != k:
                    continue
                for i in range(1, p):
                    if k < bits[i] and sizes[j] < sizes[i]:
                        sizes[j], sizes[i] = sizes[i], sizes[j]
                        order[j], order[i] = order[i], order[j]
        ends = [0]
        for size in sizes:
            ends.append(ends[-1] + size)
        return ends, order

    def swap(self, column: int, owner: int, n: int, ends: Sequence[int], order: Sequence[int]) -> None:
        """The rows of U: spread from the current processes along a tree, made equal, and rolled around a ring (HPL_pdlaswp01T)."""
        self.spread(column, n, ends, order, 0, right=True)
        final = self.equal(column, n, ends, order)
        self.roll(column, n, final, order)

    def equal(self, column: int, n: int, ends: Sequence[int], order: Sequence[int]) -> Sequence[int]:
        p, total = self.p, ends[-1]
        if p <= 2:
            return ends
        most, least = -(-total // p), total // p
        more = total - p * least
        aims = [(i * most, most) if i < more else (i * least + more, least) for i in range(p)]
        if all(ends[i + 1] - ends[i] in (least, most) for i in range(p)):
            return ends
        for i in range(p):
            begin, size = ends[i], ends[i + 1] - ends[i]
            left, right = begin < aims[i][0], sum(aims[i]) < begin + size
            if size <= 0 or not (left or right):
                continue
            parts, now, rest = [], begin, size
            for start, wanted in aims:
                part = min(start + wanted - now, rest) if start + wanted - 1 >= now and rest > 0 else 0
                parts.append(now)
                now, rest = now + part, rest - part
            parts.append(now)
            if left:
                self.spread(column, n, parts, order, i, right=False)
            if right:
                self.spread(column, n, parts, order, i, right=True)
        return [aims[i][0] for i in range(p)] + [total]

    def spread(self, column: int, n: int, ends: Sequence[int], order: Sequence[int], source: int, *, right: bool) -> None:
        """Parts go from the process at place ``source`` to those after it, or before it, along a binary tree (HPL_spreadT)."""
        count = self.p - source if right else source + 1
        if count == 1:
            return
        total = ends[source + count] if right else ends[count]
        for at in range(count):
            mask = step = 1
            k = count - 1
            while k > 1:
                k, step, mask = k >> 1, step << 1, (mask << 1) + 1
            far, il = at, step if right else count - 1 - step
            while step > 0:
                mask ^= step
                if at & mask == 0:
                    if right:
                        begin = total if il >= count else ends[source + il]
                        size = (total if il + step >= count else ends[source + il + step]) - begin
                    else:
                        size = ends[il + 1] - ends[il - min(il, step)]
                    other = at ^ step
                    if size > 0 and (at & step or other < count):
                        places = (source + at, source + other) if right else (count - 1 - at, count - 1 - other)
                        me, to = (self.rank(order[k], column) for k in places)
                        (self.receive if at & step else self.send)(me, to, PIVOT_TAG, size * n)
                sign = 1 if right else -1
                if far < step:
                    step >>= 1
                    il -= sign * step
                else:
                    far -= step
                    step >>= 1
                    il += sign * step

    def roll(self, column: int, n: int, ends: Sequence[int], order: Sequence[int]) -> None:
        p = self.p
        for place in range(p):
            me = self.rank(order[place], column)
            for k in range(p - 1):
                half = k >> 1
                if (place + k) & 1:
                    sent, received, other = (place + half) % p, (place - half - 1) % p, order[(place - 1) % p]
                else:
                    sent, received, other = (place - half) % p, (place + half + 1) % p, order[(place + 1) % p]
                sizes = [(ends[i + 1] - ends[i]) * n for i in (sent, received)]
                self.exchange(me, self.rank(other, column), PIVOT_TAG, sizes[0], sizes[1])

    # --- backward substitution ---------------------------------------------------------------------------------------------

    def substitute(self) -> None:
        """HPL_pdtrsv: block by block from the last, the solution up the column, the sums to the left."""
        for row in range(self.p):
            for column in range(self.q):
                self.substitute_on(row, column)

    def substitute_on(self, row: int, column: int) -> None:
        n, nb, p, q = self.n, self.nb, self.p, self.q
        me = self.rank(row, column)
        rows = local(n, 0, nb, row, p)
        last = (n - 1) // nb
        at_row, at_column, width = last % p, last % q, n - last * nb
        right = n // nb % q
        tag, up_tag = SOLVE_TAG, SOLVE_TAG + 1
        if rows > 0 and at_column != right:
            if column == right:
                self.send(me, self.rank(row, at_column), tag, rows)
            elif column == at_column:
                self.receive(me, self.rank(row, right), tag, rows)
        tag = SOLVE_TAG if tag + 2 > LAST_SOLVE_TAG else tag + 2
        ahead = max((q - 1) * nb, nb)

        def strip(left: int, wide: int) -> int:
            behind = left - wide
            some = min(behind, ahead)
            return local(some, max(0, behind - some), nb, row, p) if some > 0 else 0

        before, part_before = rows, strip(n, width)
        if row == at_row:
            before = rows = rows - width
            if column == at_column:
                self.compute(me, f"gemv:n={width}", width / 2)
        was_row, was_column, was_width = at_row, at_column, width
        at_row, at_column, left = (at_row - 1) % p, (at_column - 1) % q, n - width
        width = nb
        part = strip(left, width)
        while left > 0:
            if row == at_row:
                rows -= width
            if column == was_column:
                if row == was_row:
                    if p > 1:
                        self.send(me, self.rank((row - 1) % p, column), up_tag, was_width)
                else:
                    self.receive(me, self.rank((row + 1) % p, column), up_tag, was_width)
                if part_before > 0:
                    self.compute(me, f"gemv:n={was_width}", part_before)
                    if q > 1:
                        self.send(me, self.rank(row, at_column), tag, part_before)
                if row not in (was_row, (was_row + 1) % p):
                    self.send(me, self.rank((row - 1) % p, column), up_tag, was_width)
            elif column == at_column and part_before > 0:
                self.receive(me, self.rank(row, was_column), tag, part_before)
                self.compute(me, "axpy", part_before)
            if column == at_column and row == at_row:
                self.compute(me, f"gemv:n={width}", width / 2)
            if column == was_column:
                self.compute(me, f"gemv:n={was_width}", before - part_before)
            if row == at_row:
                before -= width
            was_row, was_column, was_width, part_before = at_row, at_column, width, part
            left -= width
            at_row, at_column = (at_row - 1) % p, (at_column - 1) % q
            part = strip(left, width)
            tag = SOLVE_TAG if tag + 2 > LAST_SOLVE_TAG else tag + 2
            up_tag = SOLVE_TAG + 1 if up_tag + 2 > LAST_SOLVE_TAG else up_tag + 2
        if column == was_column and p > 1:
            self.tree(row, column, was_row, was_width)

    def tree(self, row: int, column: int, root: int, doubles: int) -> None:
        mask = step = 1
        k = self.p - 1
        while k > 1:
            k, step, mask = k >> 1, step << 1, (mask << 1) + 1
        distance = (row - root) % self.p
        while step:
            mask ^= step
            if distance & mask == 0:
                other = distance ^ step
                if distance & step or other < self.p:
                    me, to = self.rank(row, column), self.rank((root + other) % self.p, column)
                    (self.receive if distance & step else self.send)(me, to, COLLECTIVE_TAG, doubles)
            step >>= 1


def hpl(n: int, nb: int, p: int, q: int, nbmin: int = 4, seed: int = 1) -> Trace:
    """HPL's solve of order ``n`` in blocks of ``nb`` on a grid of ``p`` x ``q`` processes, numbered by rows, without look-ahead.

    Rank 0 has the marks ``begin`` and ``end``, between which the benchmark takes its time. ``nbmin``: columns at which the recursion of the
    panel ends. The pivots are drawn with ``seed``. ``p`` is a power of two. Raises UsageError.
    """
    _check(n, nb, p, q, nbmin)
    rng = random.Random(seed)
    return solve(nb, p, q, [rng.randrange(i, n) for i in range(n)], nbmin)


def solve(nb: int, p: int, q: int, pivots: Sequence[int], nbmin: int = 4) -> Trace:
    """As `hpl`, with the pivots of a matrix: the row that is exchanged with each row in turn. Raises UsageError."""
    n = len(pivots)
    _check(n, nb, p, q, nbmin)
    if any(not i <= to < n for i, to in enumerate(pivots)):
        raise UsageError("hpl exchanges each row with one at or below it", code="out-of-range")
    made = _Solve(n, nb, p, q, nbmin, pivots)
    made.lines[0].append("# mark begin\n")
    tag = PANEL_TAG
    for at in range(0, n, nb):
        width = min(nb, n - at)
        made.factor(at, width)
        made.broadcast(at, width, tag)
        made.update(at, width)
        tag = PANEL_TAG if tag + 1 > LAST_PANEL_TAG else tag + 1
    made.substitute()
    made.lines[0].append("# mark end\n")
    for me, lines in enumerate(made.lines):
        lines.append(f"{me} finalize\n")
    return trace_of_lines("hpl", made.lines)


def _check(n: int, nb: int, p: int, q: int, nbmin: int) -> None:
    if min(n, nb, p, q, nbmin) < 1 or nb > n or n > MOST_ROWS:
        raise UsageError(f"hpl needs n from 1 to {MOST_ROWS}, nb at most n, and p, q and nbmin from 1 on", code="out-of-range")
    if p & (p - 1):
        raise UsageError(f"hpl generates grids whose rows are a power of two, not {p}", code="out-of-range")


GENERATORS["hpl"] = Generator(hpl, rule="no bytes are counted; HPL's rate is (2/3 n^3 + 3/2 n^2) operations in the time between its marks")
