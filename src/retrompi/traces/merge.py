"""Merging traces: files of one rank each, concurrent jobs, consecutive jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retrompi._engine import Trace
from retrompi.base.unpack import Budget

from .computation import mark_mixed
from .errors import TraceError
from .files import MAX_UNPACKED, UndefinedSource, _File, _load, parse
from .lines import COLLECTIVES, COMM_MAKERS, Renumber, rank_lines, show_group, split, whole
from .tracker import Tracker

__all__ = ["rank_files", "side_by_side", "then"]


def rank_files(paths: Sequence[str | Path], undefined_source: UndefinedSource = "refuse") -> Trace | None:
    """The trace in files of one rank each, in any order; None unless each file holds the lines of one rank, and together those of
    ranks 0, 1, 2, …

    Raises ``TraceError`` for files that cannot be read.
    """
    found: dict[int, _File] = {}
    budget = Budget(MAX_UNPACKED)
    for path in map(Path, paths):
        if not path.is_file():
            return None
        file = _load(path, budget)
        rank = _only_rank(file)
        if rank is None or rank in found:
            return None
        found[rank] = file
    if len(found) < 2 or sorted(found) != list(range(len(found))):
        return None
    return Trace.parse([(found[r], found[r].name, r) for r in range(len(found))], undefined_source=undefined_source)


def _only_rank(file: _File) -> int | None:
    """The rank whose lines a file holds; None if it holds those of several, or none."""
    rank: bytes | None = None
    rest = b""
    for piece in file:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            first = line.split(None, 1)[:1]
            if not first or first[0].startswith(b"#") or first[0] == rank:
                continue
            if rank is not None or not first[0].isdigit() or len(first[0]) > 7:
                return None
            rank = first[0]
    last = rest.split(None, 1)[:1]
    if last and not last[0].startswith(b"#") and last[0] != rank:
        return None
    return None if rank is None else int(rank)


def _numbers(trace: Trace) -> tuple[int, int]:
    """The highest numbers of communicators and windows in a trace."""
    comms = windows = 0
    for rank in range(trace.ranks):
        for line in rank_lines(trace, rank)[0]:
            action, a, attributes = split(line)
            comms = max(comms, int(attributes.get("comm", 0)))
            windows = max(windows, int(attributes.get("win", 0)))
            if action in COMM_MAKERS and a:
                comms = max(comms, int(a[0]))
            elif action in ("win_create", "win_free") and a:
                windows = max(windows, int(a[0]))
    return comms, windows


def side_by_side(traces: Sequence[Trace]) -> Trace:
    """Concurrent jobs as one trace: the ranks of the second follow those of the first, and so on.

    The MPI_COMM_WORLD of each job becomes a communicator over its ranks, created after MPI_Init, on which its collectives run; messages
    keep their tags, since none leaves its job. Communicators and windows are renumbered. Raises ``TraceError`` for unsupported lines.
    """
    texts: list[str] = []
    first = 0
    next_comm = next_win = 1
    for trace in map(whole, traces):
        comms, windows = _numbers(trace)
        world, comm_base, win_base, rank_base = next_comm, next_comm, next_win - 1, first
        needed = _runs_over_world(trace)
        numbers = Renumber(lambda r, b=rank_base: r + b, lambda c, b=comm_base: b + c, lambda w, b=win_base: b + w, world)  # type: ignore[misc]
        make = f"comm_create_group {world} {show_group(range(first, first + trace.ranks))}"
        for rank in range(trace.ranks):
            out: list[str] = []
            lines = [numbers.line(line) for line in rank_lines(trace, rank)[0]]
            at = next((i + 1 for i, line in enumerate(lines) if split(line)[0] == "init"), 0)
            out += lines[:at]
            if needed:
                out.append(f"{first + rank} {make}")
            out += lines[at:]
            texts.append("".join(line + "\n" for line in out))
        first += trace.ranks
        next_comm += comms + 1
        next_win += windows
    return mark_mixed(traces, parse(texts, name="merged"))


def _runs_over_world(trace: Trace) -> bool:
    """Whether the trace has a collective call over MPI_COMM_WORLD."""
    for rank in range(trace.ranks):
        for line in rank_lines(trace, rank)[0]:
            action, a, attributes = split(line)
            if "comm" not in attributes and (action in COLLECTIVES or action == "win_create" or (action in COMM_MAKERS and a)):
                return True
    return False


def then(traces: Sequence[Trace]) -> Trace:
    """Consecutive jobs on the same ranks as one program, without MPI_Finalize and MPI_Init between them.

    Requests that a job leaves open are waited for at its end. Raises ``TraceError`` if the numbers of ranks differ.
    """
    ranks = traces[0].ranks
    for trace in map(whole, traces):
        if trace.ranks != ranks:
            raise TraceError(
                f"has {trace.ranks} ranks and {traces[0].files[0]} has {ranks}; one after the other needs equal numbers",
                trace.files[0],
                code="wrong-ranks",
            )
    texts = [""] * ranks
    next_comm = next_win = 0
    for number, trace in enumerate(traces):
        comm_base, win_base = next_comm, next_win
        numbers = Renumber(lambda r: r, lambda c, b=comm_base: c + b if c else 0, lambda w, b=win_base: b + w)  # type: ignore[misc]
        last = number == len(traces) - 1
        for rank in range(ranks):
            out: list[str] = []
            tracker = Tracker(rank)
            for line in rank_lines(trace, rank)[0]:
                action = split(line)[0]
                if (action == "init" and number) or (action == "finalize" and not last):
                    continue
                tracker.line(len(out), line)
                out.append(numbers.line(line))
            if not last and tracker.open:
                out.append(tracker.waitall())
            texts[rank] += "".join(line + "\n" for line in out)
        comms, windows = _numbers(trace)
        next_comm += comms
        next_win += windows
    return mark_mixed(traces, parse(texts, name="merged"))
