"""Communicators and windows of a job whose ranks are read one by one: which ranks create one together.

A rank's file knows a communicator only by a local handle and by how it was created (``MPI_Comm_split``: colour and key), not by its other
members. Every rank is read by a generator that stops at such a call and yields a `Join`; when all participating ranks have arrived, the
result is computed and the generators continue.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Comm", "Join", "Joining", "Making", "Reader", "StuckRanks", "run"]


@dataclass(frozen=True)
class Comm:
    """A communicator: its number in the trace (0: MPI_COMM_WORLD), its world ranks in rank order, and those of the remote group."""

    id: int
    group: tuple[int, ...]
    remote: tuple[int, ...] | None = None
    dims: tuple[int, ...] = ()

    @property
    def peers(self) -> tuple[int, ...]:
        """World ranks that point-to-point calls address: the remote group of an intercommunicator."""
        return self.group if self.remote is None else self.remote


@dataclass
class Join:
    """A call that several ranks make together: ``how`` (split, dup, create, inter, merge, win, ...), over ``comm``, with this rank's
    ``value``; ``place`` is its position in the file."""

    how: str
    comm: Comm
    value: Any
    place: str


Reader = Generator[Join, Any, None]
Making = Generator[Join, Any, None]
Joining = Generator[Join, Any, Any]


class StuckRanks(Exception):
    """Ranks wait for one that never makes the call; the message names the first."""


@dataclass
class _State:
    next_id: int = 1
    sides: list[tuple[int, int, int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)


def run(readers: Sequence[Reader], progress: Callable[[int, int], None] | None = None) -> None:
    """Run the readers of all ranks to completion. Raises `StuckRanks` when a joint call stays incomplete."""
    waiting: dict[int, Join] = {}
    state = _State()
    ready: list[tuple[int, Any]] = [(rank, None) for rank in range(len(readers))]
    ended = 0
    while ready:
        for rank, answer in ready:
            try:
                waiting[rank] = readers[rank].send(answer)
            except StopIteration:
                ended += 1
                if progress is not None:
                    progress(ended, len(readers))
        ready = []
        for rank in list(waiting):
            if rank in waiting:
                ready += _complete(rank, waiting, state)
    if waiting:
        rank, join = min(waiting.items())
        absent = [r for r in _members(join) if r not in waiting or not _same(waiting[r], join)]
        raise StuckRanks(f"{join.place}: rank {rank} makes {join.how} with rank {absent[0] if absent else '?'}, which never does")


def _members(join: Join) -> tuple[int, ...]:
    return join.comm.group + (join.comm.remote or ()) if join.how in ("merge", "dup", "split", "create") else join.comm.group


def _same(a: Join, b: Join) -> bool:
    return a.how == b.how and a.comm.id == b.comm.id


def _complete(rank: int, waiting: dict[int, Join], state: _State) -> list[tuple[int, Any]]:
    """Results for the ranks of the call in which ``rank`` waits, once all have arrived; [] otherwise."""
    join = waiting[rank]
    members = _members(join)
    if any(r not in waiting or not _same(waiting[r], join) for r in members):
        return []
    calls = {r: waiting[r] for r in members}
    if join.how == "inter":
        return _intercomm(join, calls, waiting, state)
    answers = _WORK[join.how](join, calls, state)
    for r in members:
        del waiting[r]
    return list(answers.items())


def _new(state: _State, group: Sequence[int], remote: Sequence[int] | None = None, dims: Sequence[int] = ()) -> Comm:
    made = Comm(state.next_id, tuple(group), None if remote is None else tuple(remote), tuple(dims))
    state.next_id += 1
    return made


def _split(join: Join, calls: dict[int, Join], state: _State) -> dict[int, Any]:
    """value: (colour, key), colour None for a rank that gets no communicator."""
    answers: dict[int, Any] = dict.fromkeys(calls)
    sides = [join.comm.group] if join.comm.remote is None else sorted([join.comm.group, join.comm.remote])
    colours = sorted({c.value[0] for c in calls.values() if c.value[0] is not None})
    for colour in colours:
        groups = []
        for side in sides:
            found = [(calls[r].value[1], at, r) for at, r in enumerate(side) if calls[r].value[0] == colour]
            groups.append(tuple(r for _, _, r in sorted(found)))
        if len(groups) == 1:
            made = _new(state, groups[0])
            answers |= dict.fromkeys(groups[0], made)
        elif all(groups):
            made = _new(state, *groups)
            answers |= dict.fromkeys(groups[0], made)
            answers |= dict.fromkeys(groups[1], Comm(made.id, groups[1], groups[0]))
    return answers


def _dup(join: Join, calls: dict[int, Join], state: _State) -> dict[int, Any]:
    made = _new(state, join.comm.group, join.comm.remote, join.comm.dims)
    if join.comm.remote is None:
        return dict.fromkeys(calls, made)
    other = Comm(made.id, join.comm.remote, join.comm.group)
    return {r: made if r in join.comm.group else other for r in calls}


def _create(join: Join, calls: dict[int, Join], state: _State) -> dict[int, Any]:
    """value: the group as world ranks; several disjoint groups make several communicators (MPI-2.2)."""
    answers: dict[int, Any] = dict.fromkeys(calls)
    for group in sorted({tuple(c.value[0]) for r, c in calls.items() if r in c.value[0]}):
        made = _new(state, group, dims=calls[group[0]].value[1])
        answers |= {r: made for r in group if r in answers}
    return answers


def _merge(join: Join, calls: dict[int, Join], state: _State) -> dict[int, Any]:
    """value: high."""
    assert join.comm.remote is not None
    low, high = sorted([join.comm.group, join.comm.remote])
    if calls[low[0]].value and not calls[high[0]].value:
        low, high = high, low
    return dict.fromkeys(calls, _new(state, low + high))


def _window(join: Join, calls: dict[int, Join], state: _State) -> dict[int, Any]:
    number = state.next_id
    state.next_id += 1
    return dict.fromkeys(calls, number)


def _intercomm(join: Join, calls: dict[int, Join], waiting: dict[int, Join], state: _State) -> list[tuple[int, Any]]:
    """value: (leader's rank in the local communicator, the remote leader's world rank as known by the leader, tag)."""
    group = join.comm.group
    leader = group[join.value[0]]
    _, remote_leader, tag = calls[leader].value
    other = waiting.get(remote_leader)
    if other is None or other.how != "inter":
        return []
    there = other.comm.group
    if any(r not in waiting or not _same(waiting[r], other) for r in there):
        return []
    _, back, tag2 = waiting[there[other.value[0]]].value
    if back != leader or tag != tag2:
        return []
    made = _new(state, group, there)
    mirrored = Comm(made.id, there, group)
    for r in group + there:
        del waiting[r]
    return [(r, made) for r in group] + [(r, mirrored) for r in there]


_WORK: dict[str, Callable[[Join, dict[int, Join], _State], dict[int, Any]]] = {
    "split": _split,
    "dup": _dup,
    "create": _create,
    "merge": _merge,
    "win": _window,
}
