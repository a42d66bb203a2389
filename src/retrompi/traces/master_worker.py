"""Recognising a recorded master/worker program: a rank that gives work to whichever rank asks first.

A replay makes the recorded calls, so each worker gets the work it got when the program was recorded, whatever the simulated machine. That
also holds with ``--wildcards free``: the receive may match another worker's request, but the answer goes where the trace says.

What is looked for, on the rank that decides: a receive or probe from any source with a recorded match, whose next communication is a send
to the matched rank; which in turn waits for that answer. Exchanges with wildcards look alike in part, so that such pairs count only if

* at least three of them go to at least two ranks, of which none decides itself,
* one of these asks again after another was answered, and
* either the order of the asking ranks is not a fixed round, or the last answer to each differs from its first (the message that ends it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from retrompi._engine import Trace
from retrompi.spec.declare.calls import Family, names

__all__ = ["MasterWorker", "find", "note"]

_ANY = -555
_SENDS = names(Family.SEND)
_COMPLETE = frozenset(name for name in names(Family.REQUEST) if name.startswith(("wait", "test")))
_QUIET = names(Family.LOCAL) - {"finalize"} | {"iprobe"} | {name for name in _COMPLETE if name.startswith("test")}
_LEAST = 3
_PIECE = 20_000
_MOST = 200_000
"""Actions of a rank that are looked at, and ranks with wildcards (`_MOST_RANKS`): a master shows itself at the start of a program."""
_MOST_RANKS = 64


@dataclass(frozen=True)
class MasterWorker:
    """``master`` answers ``answers`` requests of ``workers`` ranks, the first at ``file``:``line``."""

    master: int
    workers: int
    answers: int
    file: str
    line: int


def note(trace: Trace) -> str:
    """One sentence on a master/worker program; empty for any other."""
    found = find(trace)
    if found is None:
        return ""
    asked = f"{found.file}:{found.line} and {found.answers - 1} more"
    return (
        f"rank {found.master} gives work to whichever of {found.workers} ranks asks first ({asked}): a replay keeps the recorded "
        "distribution of work, with --wildcards free too; 'retrompi run --backend smpi PROGRAM' decides it on the simulated machine"
    )


@lru_cache(maxsize=8)
def find(trace: Trace) -> MasterWorker | None:
    """The first rank that distributes work as its wildcard receives match; None if there is none."""
    if not trace.traffic()["wildcards"] and not {"probe", "iprobe"} & trace.info()["calls"].keys():
        return None
    pairs: dict[int, list[_Answer]] = {}
    looked = 0
    for rank in range(trace.ranks):
        if looked >= _MOST_RANKS:
            break
        answers, wildcards = _answers(trace, rank)
        looked += wildcards
        if len(answers) >= _LEAST and len({a.to for a in answers}) >= 2:
            pairs[rank] = answers
    for rank, answers in pairs.items():
        asking = {a.to for a in answers}
        if asking & pairs.keys() or not _returns(answers) or not (_no_round(answers) or _ends(answers)):
            continue
        if all(_waits(trace, worker, rank) for worker in sorted(asking)[:4]):
            return MasterWorker(rank, len(asking), len(answers), trace.files[rank], answers[0].line)
    return None


@dataclass(frozen=True)
class _Answer:
    to: int
    line: int
    tag: int
    bytes: int


def _rows(trace: Trace, rank: int) -> Iterator[tuple[int, str, int, int, int, dict[str, Any]]]:
    """(line, action, peer, tag, bytes, attributes) of a rank's first actions."""
    for first in range(0, _MOST, _PIECE):
        piece = trace.rank_actions(rank, first, _PIECE, extension=True)
        for line, action, peer, tag, _, size, _, _, more in piece:
            yield line, action, peer, tag, size, more
        if len(piece) < _PIECE:
            return


def _answers(trace: Trace, rank: int) -> tuple[list[_Answer], bool]:
    """The sends of a rank that answer a wildcard receive: its next communication, to the matched rank. Also whether it has wildcards."""
    found: list[_Answer] = []
    matched: int | None = None  # the rank whose request was received last, until something else is communicated
    open_: dict[int, int] = {}  # request of a posted wildcard receive -> the rank that it matches
    some = False
    for line, action, peer, tag, size, more in _rows(trace, rank):
        source = more.get("from")
        if action in ("recv", "probe") or (action == "iprobe" and isinstance(source, int)):
            if peer == _ANY and isinstance(source, int):
                some, matched = True, source
            elif peer != matched:  # the rest of a request comes from the matched rank by name
                matched = None
        elif action == "irecv":
            if peer == _ANY and isinstance(source, int) and "req" in more:
                some = True
                open_[int(more["req"])] = source
        elif action in _COMPLETE:
            if more.get("flag") is False or not ("req" in more or "reqs" in more):
                continue
            done = [more["req"]] if "req" in more else more["done"] if "done" in more else more["reqs"]
            sources = [open_.pop(r) for r in done if r in open_] if isinstance(done, list | tuple) else []
            if len(sources) == 1:
                matched = sources[0]
            elif sources:
                matched = None
        elif action in _SENDS:
            if matched is not None and peer == matched:
                found.append(_Answer(peer, line, tag, size))
            matched = None
        elif action not in _QUIET and not action.startswith("mark "):
            matched = None
    return found, some


def _returns(answers: list[_Answer]) -> bool:
    """Whether a rank asks again after another one has asked: ranks served one after the other were not chosen by their requests."""
    turns = [a.to for a, before in zip(answers, [None, *answers], strict=False) if before is None or before.to != a.to]
    return len(turns) > len(set(turns))


def _no_round(answers: list[_Answer]) -> bool:
    """Whether the order of the asking ranks is not that of rounds in which each asks once."""
    order = [a.to for a in answers]
    n = len(set(order))
    rounds = [order[i : i + n] for i in range(0, len(order), n)]
    return any(len(set(r)) < len(r) for r in rounds)


def _ends(answers: list[_Answer]) -> bool:
    """Whether the last answer to every rank that got several differs from the first in tag or size."""
    first: dict[int, _Answer] = {}
    last: dict[int, _Answer] = {}
    for a in answers:
        first.setdefault(a.to, a)
        last[a.to] = a
    several = [r for r in first if last[r] is not first[r]]
    return bool(several) and all((first[r].tag, first[r].bytes) != (last[r].tag, last[r].bytes) for r in several)


def _waits(trace: Trace, worker: int, master: int) -> bool:
    """Whether a rank mostly waits for the master's answer after it has sent a request: its next communication is a receive from it."""
    asked = waited = 0
    pending = False
    for _, action, peer, _, _, more in _rows(trace, worker):
        if action in _SENDS and peer == master:
            asked += not pending
            pending = True
        elif action in ("recv", "irecv", "probe"):
            source = more.get("from", peer) if peer == _ANY else peer
            waited += pending and source == master
            pending = False
        elif action not in _QUIET and action not in _COMPLETE and not action.startswith("mark "):
            pending = False
    return asked > 0 and 2 * waited >= asked
