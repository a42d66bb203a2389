"""Datatype sizes and groups of one rank of a DUMPI trace, as built up by its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrompi.convert.dumpi.file import DumpiCall, DumpiFile

__all__ = ["Groups", "Types"]

# Sizes assumed when the file has no table of them (before version 0.6.6): those of a 64-bit machine.
NATIVE = (0, 0, 1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8, 20)


class Types:
    """Bytes per element by type handle. A handle may be reused with another size, so constructors take precedence over the file's table."""

    def __init__(self, file: DumpiFile) -> None:
        self._made: dict[int, int] = {}
        self._table = file.type_sizes

    def size(self, handle: int) -> int | None:
        """Bytes per element; None when unknown."""
        if handle in self._made:
            return self._made[handle]
        size = self._table[handle] if 0 <= handle < len(self._table) else 0
        # The tables list MPI_LONG_LONG_INT twice, the first time without a size; a derived type of size 0 has an unknown size.
        if size <= 0 and 0 <= handle < len(NATIVE):
            return NATIVE[handle]
        return size if size > 0 else None

    def learn(self, call: DumpiCall) -> bool:
        """Process a call about datatypes; returns whether it was one."""
        a = call.args
        if call.name == "Type_size":
            self._made[a["datatype"]] = a["size"]
            return True
        count = _COUNTS.get(call.name)
        if count is None:
            return call.name.startswith("Type_")
        if call.name in ("Type_struct", "Type_create_struct"):
            lengths = a.get("lengths") or a.get("blocklengths") or ()
            sizes = [self.size(t) for t in a["oldtypes"]]
            known = [s for s in sizes if s is not None]
            size = sum(n * s for n, s in zip(lengths, known, strict=False)) if len(known) == len(sizes) else None
        else:
            old = self.size(a["oldtype"])
            size = None if old is None else old * count(a)
        if size is None:
            self._made.pop(a["newtype"], None)
        else:
            self._made[a["newtype"]] = size
        return True


def _product(values: Any) -> int:
    out = 1
    for v in values:
        out *= v
    return out


_COUNTS: dict[str, Callable[[dict[str, Any]], int]] = {
    "Type_contiguous": lambda a: int(a["count"]),
    "Type_vector": lambda a: int(a["count"] * a["blocklength"]),
    "Type_hvector": lambda a: int(a["count"] * a["blocklength"]),
    "Type_create_hvector": lambda a: int(a["count"] * a["blocklength"]),
    "Type_indexed": lambda a: sum(a["lengths"]),
    "Type_hindexed": lambda a: sum(a["lengths"]),
    "Type_create_hindexed": lambda a: sum(a["blocklengths"]),
    "Type_create_indexed_block": lambda a: int(a["count"] * a["blocklength"]),
    "Type_struct": lambda a: 0,
    "Type_create_struct": lambda a: 0,
    "Type_create_resized": lambda a: 1,
    "Type_dup": lambda a: 1,
    "Type_create_subarray": lambda a: _product(a["subsizes"]),
    # Every process holds approximately its share of the array; the exact piece depends on its position in the grid.
    "Type_create_darray": lambda a: _product(a["gsizes"]) // max(int(a["size"]), 1),
}


class Groups:
    """MPI groups of one rank, as world ranks, by handle."""

    NULL, EMPTY = 1, 2

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, ...]] = {self.NULL: (), self.EMPTY: ()}

    def get(self, handle: int) -> tuple[int, ...] | None:
        """World ranks in order; None for a handle that no recorded call created."""
        return self._known.get(handle)

    def set(self, handle: int, ranks: tuple[int, ...]) -> None:
        """Record a group returned by a call such as MPI_Comm_group."""
        self._known[handle] = ranks

    def learn(self, call: DumpiCall) -> bool:
        """Process a call about groups; returns whether it was one. Groups derived from unknown groups stay unknown."""
        a = call.args
        if not call.name.startswith("Group_"):
            return False
        if "newgroup" not in a:
            return True
        if "group1" in a:
            one, two = self.get(a["group1"]), self.get(a["group2"])
            if one is None or two is None:
                return True
            made = {
                "Group_union": lambda: one + tuple(r for r in two if r not in set(one)),
                "Group_intersection": lambda: tuple(r for r in one if r in set(two)),
                "Group_difference": lambda: tuple(r for r in one if r not in set(two)),
            }[call.name]()
        else:
            base = self.get(a["group"])
            if base is None:
                return True
            ranges = [_range(*r) for r in a["ranges"]] if "ranges" in a else [a["ranks"]]
            named = [i for some in ranges for i in some]
            if any(not 0 <= i < len(base) for i in named):
                return True
            left_out = set(named)
            made = (
                tuple(base[i] for i in named) if call.name.endswith("incl") else tuple(r for i, r in enumerate(base) if i not in left_out)
            )
        self._known[a["newgroup"]] = made
        return True


def _range(first: int, last: int, step: int) -> range:
    return range(first, last + (1 if step > 0 else -1), step) if step else range(first, first + 1)
