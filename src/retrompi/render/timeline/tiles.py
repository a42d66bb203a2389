"""Multi-resolution tiles of a timeline: what a page needs to show any stretch of any length without reading the rest.

A lane is a sequence of intervals, each with a value (a state, or the operation of a call). Its tree divides the run: a node of depth d
covers the d-th power of 1/`FAN` of it and holds, for each of `BINS` bins, the exact time in each value; where few enough intervals are
left, a leaf holds these themselves. Every node is a block, packed (columns of varints, deflate) and written one after the other, so that
memory is bounded by the lane and not by the file. render/timeline/timeline.js reads them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO

import numpy as np
from numpy.typing import NDArray

__all__ = ["BINS", "FAN", "GAP", "LEAF", "MERGED", "Blocks", "Lane", "Shares", "depths", "grow", "pack_columns", "varints"]

BINS, FAN = 1024, 4
LEAF = 4096
"""The most intervals in a leaf: more are summed up in bins, below which there are further nodes."""
GAP = 127
"""The value of a time in which a lane has nothing."""
MERGED = 128
"""Added to a value in a leaf: the interval is exact in length but not in place (`retrompi.sim.timeline`)."""
_DEEPEST = 16

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Lane:
    """Interval i lasts from ``begin[i]`` (ps, ascending) to the next one's begin, the last one to ``end``; ``value[i]`` is below `GAP`, or
    `GAP`, with `MERGED` added where it applies. ``detail``: further columns, which the leaves hold."""

    begin: Ints
    value: NDArray[np.uint8]
    end: int
    detail: Mapping[str, Ints] = field(default_factory=dict)


@dataclass(frozen=True)
class Shares:
    """Exact times by bin and value, sparse: entry i says that ``time[i]`` ps of bin ``at[i]`` are in ``value[i]``; ascending."""

    at: Ints
    value: Ints
    time: Ints

    def coarser(self, by: int) -> Shares:
        """Of bins ``by`` times as wide."""
        return _sum_shares(self.at // by, self.value, self.time)


def _sum_shares(at: Ints, value: Ints, time: Ints) -> Shares:
    key = at * 256 + value
    order = np.argsort(key, kind="stable")
    key, time = key[order], time[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    if not len(first):
        return Shares(key, key, time)
    return Shares(key[first] // 256, key[first] % 256, np.add.reduceat(time, first))


def depths(span: int) -> tuple[int, int]:
    """(the greatest depth, the width in ps of a bin at depth 0) for a run of ``span`` ps: a bin of any depth is whole picoseconds."""
    deepest = 0
    while deepest < _DEEPEST and BINS * FAN ** (deepest + 1) <= span:
        deepest += 1
    return deepest, max(1, -(-span // (BINS * FAN**deepest))) * FAN**deepest


def shares(lane: Lane, part: slice, begin: int, end: int, width: int) -> Shares:
    """The intervals ``part`` of a lane, clipped to ``begin`` .. ``end``, in bins of ``width`` ps from ``begin`` on."""
    at = np.append(lane.begin[part], lane.begin[part.stop] if part.stop < len(lane.begin) else lane.end)
    start, stop = np.maximum(at[:-1], begin), np.minimum(at[1:], end)
    value = (lane.value[part] & (MERGED - 1)).astype(np.int64)
    some = (stop > start) & (value != GAP)
    start, stop, value = start[some] - begin, stop[some] - begin, value[some]
    first = start // width
    pieces = (stop - 1) // width - first + 1
    of = np.repeat(np.arange(len(start)), pieces)
    bins = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    time = np.minimum(stop[of], (bins + 1) * width) - np.maximum(start[of], bins * width)
    return _sum_shares(bins, value[of], time)


def varints(values: Ints) -> bytes:
    """Numbers from 0 on as groups of seven bits, the lowest first, all but the last of a number with the highest bit set."""
    v = np.asarray(values, dtype=np.uint64)
    size = np.ones(len(v), dtype=np.int64)
    for k in range(1, 10):
        size += v >= np.uint64(1 << (7 * k))
    place = np.cumsum(size) - size
    out = np.zeros(int(size.sum()), dtype=np.uint8)
    for k in range(int(size.max(initial=0))):
        some = size > k
        low = (v[some] >> np.uint64(7 * k)) & np.uint64(127)
        out[place[some] + k] = low.astype(np.uint8) | np.where(size[some] > k + 1, 128, 0).astype(np.uint8)
    return out.tobytes()


def pack_columns(*columns: Ints) -> bytes:
    """Columns of one length as a block: their length, then each one's numbers, of which negative ones are folded in between."""
    n = len(columns[0]) if columns else 0
    data = varints(np.array([n])) + b"".join(varints((c << 1) ^ (c >> 63)) for c in columns)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    return deflate.compress(data) + deflate.flush()


class Blocks:
    """Blocks on their way into a page: in base64, several to a script element that is no program; the page reads them by number.

    There are two files of such elements: the first is what a page draws first, so that it is drawn before the rest has been read.
    """

    CHUNK = 1 << 20

    def __init__(self, front: IO[str], rest: IO[str]) -> None:
        self._files = (front, rest)
        self._filled = [-1, -1]
        self.lengths: tuple[list[int], list[int]] = ([], [])
        """Characters of each block, of either file."""
        self.firsts: tuple[list[int], list[int]] = ([], [])
        """The first block of each element, of either file."""

    def add(self, block: bytes, front: bool = False) -> int:
        """Write it; returns its number: twice its place in its file, plus one in the second file."""
        which = 0 if front else 1
        text, out = base64.b64encode(block).decode("ascii"), self._files[which]
        if not 0 <= self._filled[which] < self.CHUNK:
            self._close(which)
            out.write(f'<script type="application/octet-stream" id="blocks-{which}-{len(self.firsts[which])}">')
            self.firsts[which].append(len(self.lengths[which]))
            self._filled[which] = 0
        out.write(text)
        self._filled[which] += len(text)
        self.lengths[which].append(len(text))
        return 2 * (len(self.lengths[which]) - 1) + which

    def _close(self, which: int) -> None:
        if self._filled[which] >= 0:
            self._files[which].write("</script>\n")
        self._filled[which] = -1

    def close(self) -> None:
        """End the elements that are open."""
        self._close(0)
        self._close(1)


def grow(lane: Lane, span: int, blocks: Blocks) -> list[int]:
    """Write the tree of a lane of a run of ``span`` ps, whose begins count from the run's.

    Returns its nodes in preorder: twice the number of the block, plus one for a node with `FAN` children; an empty tree for an empty lane.
    """
    if not len(lane.begin):
        return []
    deepest, width = depths(span)
    nodes: list[int] = []

    def node(depth: int, number: int) -> Shares:
        """Writes a node; returns its times in bins of the node above."""
        w = width // FAN**depth
        begin, end = number * BINS * w, (number + 1) * BINS * w
        low = max(0, int(np.searchsorted(lane.begin, begin, "right")) - 1)
        part = slice(low, max(low, int(np.searchsorted(lane.begin, end, "left"))))
        place = len(nodes)
        nodes.append(0)
        if part.stop - part.start <= LEAF or depth == deepest:
            nodes[place] = 2 * blocks.add(_leaf(lane, part, begin), depth <= 1)
            return shares(lane, part, begin, end, w * FAN)
        below = [node(depth + 1, number * FAN + k) for k in range(FAN)]
        step = BINS // FAN
        mine = Shares(np.concatenate([s.at + k * step for k, s in enumerate(below)]), np.concatenate([s.value for s in below]),
                      np.concatenate([s.time for s in below]))
        nodes[place] = 2 * blocks.add(pack_columns(np.diff(mine.at, prepend=0), mine.value, mine.time), depth <= 1) + 1
        return mine.coarser(FAN)

    node(0, 0)
    return nodes


def _leaf(lane: Lane, part: slice, begin: int) -> bytes:
    at = np.append(lane.begin[part], lane.begin[part.stop] if part.stop < len(lane.begin) else lane.end)
    if len(at) < 2:
        return pack_columns(np.zeros(0, dtype=np.int64))
    # The first begin is counted from the node's, every other one from the one before: a column of lengths with the first begin ahead.
    first = np.full(len(at) - 1, 0, dtype=np.int64)
    first[0] = at[0] - begin
    return pack_columns(first, np.diff(at), lane.value[part].astype(np.int64), *(c[part] for c in lane.detail.values()))

