"""The profile that recorder or timer left for each rank: time of the MPI part, sections, calls (``measure/record/native/profile.c``)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrompi.base.units import PS
from retrompi.measure.launch.execution import CallProfile
from retrompi.spec.declare.calls import function_of

__all__ = ["RankProfile", "calls", "elapsed_seconds", "library_name", "of_replay", "read", "sections"]


@dataclass
class RankProfile:
    """One rank's profile; times in picoseconds.

    ``how``: finalized or aborted. ``sections``: (label, parts, time) in order. ``calls``: (function, bytes, section or -1, count, time).
    ``usage``: user and system processor time in microseconds, voluntary and involuntary context switches; ``cores``: those it was allowed
    to run on. Both are empty under SMPI.
    """

    rank: int
    ranks: int
    how: str = ""
    library: str = ""
    time: int = 0
    sections: list[tuple[int, int, int]] = field(default_factory=list)
    calls: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    usage: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()


def _one(path: Path) -> RankProfile | None:
    """A rank's file; None when it is incomplete."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or lines[0] != "retrompi profile 1":
        return None
    out = RankProfile(-1, 0)
    for line in lines[1:]:
        word, _, rest = line.partition(" ")
        values = rest.split()
        if word == "section":
            out.sections.append((int(values[0]), int(values[1]), int(values[2])))
        elif word == "call":
            out.calls.append((values[0], int(values[1]), int(values[2]), int(values[3]), int(values[4])))
        elif word == "rank":
            out.rank, out.ranks = int(values[0]), int(values[1])
        elif word == "time":
            out.time = int(values[0])
        elif word == "how":
            out.how = rest
        elif word == "library":
            out.library = rest
        elif word == "usage":
            out.usage = tuple(map(int, values))
        elif word == "cores":
            out.cores = tuple(map(int, values))
    return out if out.rank >= 0 else None


def read(folder: Path) -> list[RankProfile]:
    """The profiles in ``folder``, by rank."""
    found = [p for p in map(_one, folder.glob("rank-*.profile")) if p is not None]
    return sorted(found, key=lambda p: p.rank)


def elapsed_seconds(profiles: Sequence[RankProfile]) -> float:
    """Seconds of the MPI part, the maximum over ranks; 0 without profiles."""
    return max((p.time for p in profiles), default=0) * PS


def sections(profiles: Iterable[RankProfile]) -> tuple[dict[str, list[float]], dict[str, int]]:
    """(label -> seconds of a part, one per occurrence, the maximum over ranks; label -> parts of the last occurrence)."""
    longest: dict[tuple[int, int], tuple[float, int]] = {}
    order: list[tuple[int, int]] = []
    for profile in profiles:
        seen: dict[int, int] = defaultdict(int)
        for label, parts, time in profile.sections:
            key = (label, seen[label])
            seen[label] += 1
            if key not in longest:
                order.append(key)
            longest[key] = max(longest.get(key, (0.0, parts)), (time / parts * PS, parts))
    out: dict[str, list[float]] = {}
    parts_of: dict[str, int] = {}
    for key in sorted(order, key=lambda k: k[1]):
        seconds, parts = longest[key]
        out.setdefault(str(key[0]), []).append(seconds)
        parts_of[str(key[0])] = parts
    first = {str(label): at for at, (label, _) in reversed(list(enumerate(order)))}
    return {label: out[label] for label in sorted(out, key=first.__getitem__)}, parts_of


def calls(profiles: Iterable[RankProfile]) -> list[CallProfile]:
    """The calls of all ranks together, those that took longest first."""
    total: dict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for profile in profiles:
        for name, size, section, count, time in profile.calls:
            row = total[name, size, section]
            row[0] += count
            row[1] += time
    rows = [
        CallProfile(name, size, str(section) if section >= 0 else "", count, time * PS, size * count)
        for (name, size, section), (count, time) in total.items()
    ]
    return sorted(rows, key=lambda c: (-c.seconds, c.call, c.size_B, c.section))


def library_name(version: str) -> str:
    """``MPICH 4.0.2`` or ``Open MPI 4.1.4`` from the text of MPI_Get_library_version; its first words for any other library."""
    text = " ".join(version.split())
    if found := re.match(r"MPICH Version:\s*(\S+)", text):
        return f"MPICH {found[1]}"
    if found := re.match(r"Open MPI v(\S+?),", text):
        return f"Open MPI {found[1]}"
    if found := re.match(r"SMPI Version (\S+?)\.? ", text + " "):
        return f"SMPI {found[1]}"
    return text[:60]


_PCONTROL = re.compile(r"pcontrol (-?\d+)")


def of_replay(marks: Iterable[Mapping[str, Any]], told: Mapping[str, Any], ranks: int) -> list[RankProfile]:
    """The profiles of a replay's ranks, from its marks (rank, label, time_ps) and the engine's totals (`simulate.Result.profile`).

    The calls, which are summed over all ranks, are in the first profile.
    """
    out = [RankProfile(rank, ranks, "finalized" if end >= 0 else "", "", max(end, 0)) for rank, end in enumerate(told["finalized_ps"])]
    begun: dict[int, tuple[int, int]] = {}
    for mark in marks:
        found = _PCONTROL.fullmatch(str(mark["label"]))
        if found is None:
            continue
        rank, level, now = int(mark["rank"]), int(found[1]), int(mark["time_ps"])
        if rank in begun:
            label, began = begun.pop(rank)
            out[rank].sections.append((label, -level if level < 0 else 1, now - began))
        if level >= 0:
            begun[rank] = (level, now)
    for rank, (label, began) in begun.items():
        if out[rank].how:  # a section that a rank never left ends with its MPI part
            out[rank].sections.append((label, 1, out[rank].time - began))
    if out:
        out[0].calls = [(function_of(action), size, section, count, ps) for action, size, section, count, ps in told["calls"]]
    return out
