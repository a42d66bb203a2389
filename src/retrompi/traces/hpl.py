"""HPL, the Linpack benchmark for distributed memory: the calls of its solve, generated for a grid of processes.

The solve is that of HPL 1.0 and 2.x (pdgesv and pdtrsv; doc: netlib's hpl, src/pgesv, src/pfact, src/comm): a recursive, right-looking
factorisation of a panel by the processes of one column, with a binary exchange for each pivot; the panel along a row by one of six ways;
the row swaps "spread and roll" among the processes of a column; the update; and the backward substitution. Messages are those of a
recording, call by call (tests/test_hpl.py), but for the polls with which a process waits for the panel: it receives.

With look-ahead a process that has the next panel's columns updates and factors them first, and the others poll for that panel while they
update, a block of columns at a time. When a poll finds it is the machine's doing, which a list of calls cannot hold: it is stated
(``found``), and a caller that simulates moves it to where the panel's sender has called. Marks of each rank say when: ``update K``,
``swapped K``, ``updated K`` around its update before panel K, ``panel K`` and ``passed K`` around its part of the panel's broadcast, and
``give K RANK`` before it sends the panel on.

Computation is stated as kernels (docs/computation.md). Which rows are swapped follows from the pivots: of a matrix of random numbers each
is one of the rows that are left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces.generate import GENERATORS, Generator
from retrompi.traces.making import trace_of_lines

__all__ = ["BROADCASTS", "HplForm", "hpl", "local", "neighbours", "solve"]

PIVOT_TAG, PANEL_TAG, LAST_PANEL_TAG = 1001, 2001, 3000
SOLVE_TAG, LAST_SOLVE_TAG, COLLECTIVE_TAG = 3001, 4000, 9001
MOST_ROWS = 1 << 20
WORD = 8
BROADCASTS = ("1rg", "1rM", "2rg", "2rM", "Lng", "LnM")
"""The ways of a panel along its row, by their numbers and names in HPL.dat: increasing ring, two rings, spread and roll ("long"), each also
modified so that the process which factors the next panel has it first and passes nothing on."""


class HplForm(NamedTuple):
    """How a solve is done, of HPL.dat's choices. ``nbmin``: columns at which the recursion of the panel ends. ``bcast``: of `BROADCASTS`.

    ``depth``: panels of look-ahead, 0 or 1. ``found``: (panel, rank, blocks of the update) -> blocks done when the panel is found.
    ``half``: the length of a product's or triangular solve's shortest side at which it runs at half of its rate; ``startup``: operations at
    the processor's peak that each call takes longer, whatever its length. Both where they were measured; they are in no roofline.
    """

    nbmin: int = 4
    bcast: int = 0
    depth: int = 0
    found: Callable[[int, int, int], int] = lambda panel, rank, blocks: blocks // 2
    half: float = 0.0
    startup: float = 0.0


def local(count: int, start: int, block: int, me: int, processes: int) -> int:
    """How many of the ``count`` indices from ``start`` on are a process's in a block-cyclic distribution."""

    def below(end: int) -> int:
        rounds, rest = divmod(end, block * processes)
        return rounds * block + min(max(rest - me * block, 0), block)

    return below(start + count) - below(start)


def _round_length(length: float) -> int:
    """``length`` with two digits, at least 1."""
    digits = int(10 ** max(0, len(str(int(length))) - 2))
    return max(1, int(length / digits + 0.5) * digits)


def neighbours(bcast: int, columns: int, distance: int) -> tuple[int | None, list[int]]:
    """In one or two rings: from which distance the process ``distance`` columns behind the panel's has it, and to which it gives it."""
    modified, second = bcast % 2 == 1, (columns + 1) // 2 if bcast >= 2 else columns
    if distance == 0:
        after = [1]
        if modified and columns > 2 and second != 2:
            after.append(2)
        if second < columns and columns > 2:
            after.append(second)
        return None, after
    if bcast >= 2 and columns == 2:
        return 0, []
    source = 0 if distance in (1, second) or (modified and distance == 2) else distance - 1
    last = distance + 1 in (second, columns) or (modified and distance == 1)
    return source, [] if last else [distance + 1]


class _Solve:
    """The lines of every rank of a ``p`` x ``q`` grid, numbered by rows."""

    def __init__(self, nb: int, p: int, q: int, pivots: Sequence[int], form: HplForm) -> None:
        self.n, self.nb, self.p, self.q, self.nbmin, self.pivots, self.form = len(pivots), nb, p, q, form.nbmin, pivots, form
        self.lines: list[list[str]] = [[f"{me} init\n"] for me in range(p * q)]
        self.calls = [0.0] * (p * q)

    def rank(self, row: int, column: int) -> int:
        return row * self.q + column

    def say(self, me: int, text: str) -> None:
        self.start_up(me)
        self.lines[me].append(f"{me} {text}\n")

    def start_up(self, me: int) -> None:
        """What the calls took to begin since the last message: in one line, as their order makes no difference."""
        if self.calls[me]:
            self.lines[me].append(f"{me} kernel work:operations={self.form.startup:g} 1 {self.calls[me]:g}\n")
            self.calls[me] = 0.0

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

    def compute(self, me: int, kernel: str, length: float, times: float = 1.0, sides: Sequence[float] = ()) -> None:
        """A kernel; lengths are rounded to two digits and made up for by the repetitions, so that few are different. ``sides``: of its
        matrices beside ``length``, if it is a product or a solve with many right-hand sides."""
        if length <= 0 or times <= 0:
            return
        about = _round_length(length)
        begun = self.calls[me] + max(1.0, times)
        if sides and self.form.half:
            times *= 1 + self.form.half / min(length, *sides)
        self.lines[me].append(f"{me} kernel {kernel} {about} {times * length / about:.6g}\n")
        if self.form.startup:
            self.calls[me] = begun

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
                    self.compute(self.rank(row, column), f"trsm:order={part_now}", left, sides=[part_now])
                    self.compute(self.rank(row, column), f"gemm:n={left},k={part_now}", rows[row], sides=[left, part_now])
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

    # --- the panel to its row ----------------------------------------------------------------------------------------------

    def panel_doubles(self, at: int, width: int, row: int) -> int:
        below = local(self.n - at, at, self.nb, row, self.p) - (width if row == at // self.nb % self.p else 0)
        return max(0, below) * width + width * width + width + 1

    def broadcast(self, at: int, width: int, tag: int) -> None:
        """The factored panel from its column to the others, in every row."""
        for row in range(self.p if self.q > 1 else 0):
            for distance in range(self.q):
                self.pass_on(at, width, tag, row, distance)

    def pass_on(self, at: int, width: int, tag: int, row: int, distance: int) -> None:
        """What the process ``distance`` columns behind the panel's does for its broadcast: HPL_bcast, with its receive where it polls."""
        if self.q == 1:
            return
        doubles, root = self.panel_doubles(at, width, row), at // self.nb % self.q

        def rank(d: int) -> int:
            return self.rank(row, (root + d) % self.q)

        if self.form.bcast >= 4:
            modified = self.form.bcast == 5
            if modified and distance <= 1:  # all of it to the next, which is left out of the rest
                self.whole(rank(distance), rank(1 - distance), tag, doubles, "Ssend" if distance == 0 else "recv")
            if not modified or (distance != 1 and self.q > 2):
                members = [rank(d) for d in range(self.q) if not (modified and d == 1)]
                self.spread_and_roll(members, max(0, distance - 1) if modified else distance, tag, doubles)
            return
        source, targets = neighbours(self.form.bcast, self.q, distance)
        if source is not None:
            self.whole(rank(distance), rank(source), tag, doubles, "recv")
        for d in targets:
            if self.form.depth:
                self.mark(rank(distance), f"give {at // self.nb} {rank(d)}")
            self.whole(rank(distance), rank(d), tag, doubles, "send")

    def whole(self, me: int, other: int, tag: int, doubles: int, call: str) -> None:
        self.say(me, f"{call} {other} {tag} {WORD * doubles} 6")

    def spread_and_roll(self, members: Sequence[int], place: int, tag: int, doubles: int) -> None:
        """A panel in pieces: spread along a binary tree from the first of ``members``, and rolled around their ring (HPL_bcast_blong)."""
        size, me = len(members), members[place]
        count = max(doubles // size, 1)
        mask = step = 1
        k = size - 1
        while k > 1:
            k, step, mask = k >> 1, step << 1, (mask << 1) + 1
        far, index = place, step
        while step > 0:
            mask ^= step
            if place & mask == 0:
                wanted = doubles - index * count
                if index + step < size:
                    wanted = min(wanted, step * count)
                other = place ^ step
                if place & step:
                    self.whole(me, members[other], tag, max(0, wanted), "recv")
                elif other < size:
                    self.whole(me, members[other], tag, max(0, wanted), "Ssend")
            if far < step:
                step >>= 1
                index -= step
            else:
                far -= step
                step >>= 1
                index += step

        def piece(i: int) -> int:
            begin = i * count
            return max(0, min(doubles, doubles if i == size - 1 else begin + count) - begin)

        for k in range(size - 1):
            half = k >> 1
            if (place + k) & 1:
                sent, received, other = (place + half) % size, (place - half - 1) % size, members[place - 1]
            else:
                sent, received, other = (place - half) % size, (place + half + 1) % size, members[(place + 1) % size]
            self.whole(me, other, tag, piece(sent), "ISsend")
            self.whole(me, other, tag, piece(received), "recv")
            self.say(me, f"wait {me} {other} {tag}")

    # --- row swaps and update ----------------------------------------------------------------------------------------------

    def columns_left(self, column: int, start: int) -> int:
        """Columns from ``start`` on of a process, the right-hand side among them."""
        return local(self.n + 1 - start, start, self.nb, column, self.q)

    def update(self, at: int, width: int) -> None:
        """By the panel at ``at``, of all columns behind it."""
        swaps = self.swap_ends(at, width)
        for column in range(self.q):
            n = self.columns_left(column, at) - (width if column == at // self.nb % self.q else 0)
            self.update_columns(at, width, column, n, swaps)

    def update_columns(self, at: int, width: int, column: int, n: int, swaps: tuple[list[int], list[int]]) -> None:
        if n <= 0:
            return
        if self.p > 1:
            self.swap(column, at // self.nb % self.p, n, *swaps)
        for row in range(self.p):
            self.update_one(at, width, self.rank(row, column), n)

    def update_one(self, at: int, width: int, me: int, n: float, times: float = 1.0) -> None:
        row = me // self.q
        below = local(self.n - at, at, self.nb, row, self.p) - (width if row == at // self.nb % self.p else 0)
        about = _round_length(n)
        self.compute(me, "copy", 2 * width * n / self.p, times)
        self.compute(me, f"trsm:order={width}", n, times, [width])
        self.compute(me, f"gemm:n={about},k={width}", below, n / about * times, [n, width])

    def ahead(self, at: int, width: int, tag: int) -> None:
        """A step of look-ahead: the panel at ``at`` is updated and factored, then passed on while the rest is updated (HPL_pdgesvK2)."""
        before, column = at - self.nb, at // self.nb % self.q
        swaps = self.swap_ends(before, self.nb)
        self.update_columns(before, self.nb, column, width, swaps)
        self.factor(at, width)
        for other in range(self.q):
            n = self.columns_left(other, at) - (width if other == column else 0)
            distance = (other - column) % self.q
            blocks = {row: self.blocks_before(at // self.nb, self.rank(row, other), n, distance) for row in range(self.p)}
            for row, done in blocks.items():
                me = self.rank(row, other)
                self.mark(me, f"update {at // self.nb}")
                if done == 0:
                    self.take_panel(at, width, tag, me, distance)
            if n <= 0:
                continue
            if self.p > 1:
                self.swap(other, before // self.nb % self.p, n, *swaps)
            for row, done in blocks.items():
                me = self.rank(row, other)
                self.mark(me, f"swapped {at // self.nb}")
                first = min(done * self.nb, n)
                if done:
                    self.update_one(before, self.nb, me, first / done, done)
                    self.take_panel(at, width, tag, me, distance)
                if n > first:
                    self.update_one(before, self.nb, me, n - first)
                self.mark(me, f"updated {at // self.nb}")

    def blocks_before(self, panel: int, rank: int, n: int, distance: int) -> int:
        """Blocks of ``n`` columns that a process has updated when it finds the panel; none by which the panel's column or "long" waits."""
        if n <= 0 or distance == 0 or self.form.bcast >= 4:
            return 0
        blocks = -(-n // self.nb)
        return min(max(self.form.found(panel, rank, blocks), 0), blocks)

    def take_panel(self, at: int, width: int, tag: int, me: int, distance: int) -> None:
        self.mark(me, f"panel {at // self.nb}")
        self.pass_on(at, width, tag, me // self.q, distance)
        self.mark(me, f"passed {at // self.nb}")

    def mark(self, me: int, label: str) -> None:
        self.start_up(me)
        self.lines[me].append(f"# {me} mark {label}\n")

    def swap_ends(self, at: int, width: int) -> tuple[list[int], list[int]]:
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


def hpl(
    n: int, nb: int, p: int, q: int, nbmin: int = 4, seed: int = 1, *, bcast: int = 0, depth: int = 0, found: float = 0.5
) -> Trace:
    """HPL's solve of order ``n`` in blocks of ``nb`` on a grid of ``p`` x ``q`` processes, numbered by rows.

    Rank 0 has the marks ``begin`` and ``end``, between which the benchmark takes its time. ``nbmin``: columns at which the recursion of the
    panel ends. The pivots are drawn with ``seed``. ``bcast``: way of a panel along its row, as in HPL.dat (0 increasing ring, 1 modified,
    2 two rings, 3 modified, 4 spread and roll, 5 modified). ``depth``: 1 with look-ahead; ``found`` is then the share of an update after
    which a process finds the next panel. ``p`` is a power of two. Raises UsageError.
    """
    if not 0 <= found <= 1:
        raise UsageError("hpl's found is a share, 0 to 1", code="out-of-range")
    form = HplForm(nbmin, bcast, depth, lambda panel, rank, blocks: round(found * blocks))
    _check(n, nb, p, q, form)
    rng = random.Random(seed)
    return solve(nb, p, q, [rng.randrange(i, n) for i in range(n)], form)


def solve(
    nb: int, p: int, q: int, pivots: Sequence[int], form: HplForm = HplForm(), panels: int | None = None,  # noqa: B008  a frozen value
) -> Trace:  # fmt: skip
    """As `hpl`, with the pivots of a matrix: the row that is exchanged with each row in turn.

    ``panels``: that many panels from the first and no substitution, every rank with a mark ``done K`` behind its update by panel K; 0: the
    substitution alone. A long solve is the sum of such parts (validate/predictions/applications/hplf.py). Raises UsageError.
    """
    n = len(pivots)
    _check(n, nb, p, q, form)
    if panels is not None and (form.depth or not 0 <= panels <= -(-n // nb)):
        raise UsageError("parts of hpl's solve are of one without look-ahead, and of the panels that it has", code="out-of-range")
    if any(not i <= to < n for i, to in enumerate(pivots)):
        raise UsageError("hpl exchanges each row with one at or below it", code="out-of-range")
    made = _Solve(nb, p, q, pivots, form)
    made.lines[0].append("# mark begin\n")
    ahead = form.depth > 0 and q > 1  # HPL looks ahead only where there are other columns
    tag = PANEL_TAG
    for at in range(0, n if panels is None else panels * nb, nb):
        width = min(nb, n - at)
        if ahead and at:
            made.ahead(at, width, tag)
        else:
            made.factor(at, width)
            made.broadcast(at, width, tag)
            if not ahead:
                made.update(at, width)
                for me in range(p * q if panels else 0):
                    made.mark(me, f"done {at // nb}")
            else:
                tag += 1  # of the panel that HPL makes before it begins
        tag = PANEL_TAG if tag + 1 > LAST_PANEL_TAG else tag + 1
    if ahead:
        last = (n - 1) // nb * nb
        swaps = made.swap_ends(last, n - last)
        for column in range(q):
            made.update_columns(last, n - last, column, made.columns_left(column, n), swaps)
    if not panels:
        made.substitute()
    made.start_up(0)
    made.lines[0].append("# mark end\n")
    for me in range(p * q):
        made.say(me, "finalize")
    return trace_of_lines("hpl", made.lines)


def _check(n: int, nb: int, p: int, q: int, form: HplForm) -> None:
    if min(n, nb, p, q, form.nbmin) < 1 or nb > n or n > MOST_ROWS:
        raise UsageError(f"hpl needs n from 1 to {MOST_ROWS}, nb at most n, and p, q and nbmin from 1 on", code="out-of-range")
    if p & (p - 1):
        raise UsageError(f"hpl generates grids whose rows are a power of two, not {p}", code="out-of-range")
    if not 0 <= form.bcast < len(BROADCASTS) or form.depth not in (0, 1):
        raise UsageError("hpl has the broadcasts 0 to 5 of HPL.dat and looks ahead by 0 or 1 panels", code="out-of-range")


GENERATORS["hpl"] = Generator(hpl, rule="no bytes are counted; HPL's rate is (2/3 n^3 + 3/2 n^2) operations in the time between its marks")
