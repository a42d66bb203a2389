"""The traces that the studio offers for replay: those shipped with retrompi, generated ones, and a session's uploads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.paths import reference_dir, source_root
from retrompi.base.translate import _, lazy

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["MADE", "GeneratedProgram", "check_choice", "load", "shipped_traces"]

_UPLOAD = re.compile(r"upload:[A-Za-z0-9_-]{12,24}")
_REFERENCE = re.compile(r"(npb3\.3\.1-[a-z]+-[A-Z]-\d+|imb-mpi1-pingpong-2|osu5\.3-latency-2|netpipe3\.7\.2-2)")


@dataclass(frozen=True)
class GeneratedProgram:
    """A generated program of any number of ranks that send messages of one size."""

    label: str
    trace: Callable[[int, int], Trace]


def _generator_of(name: str) -> Callable[[int, int], Trace]:
    def make(ranks: int, size: int) -> Trace:
        from retrompi.traces import generate

        return generate.make_trace(name, {"ranks": ranks, "size": size, **({"reps": 3} if name in ("halo", "ring") else {})})

    return make


def _send_first(ranks: int, size: int) -> Trace:
    """Every rank sends to the next one before it receives: correct only as long as unexpected messages are buffered."""
    from retrompi.traces import files

    texts = []
    for r in range(ranks):
        after, before = (r + 1) % ranks, (r - 1) % ranks
        texts.append(f"{r} init\n{r} send {after} 0 {size} 6\n{r} recv {before} 0 {size} 6\n{r} finalize\n")
    return files.parse(texts, name="everybody-sends-first")


MADE = {
    "made:broadcast": GeneratedProgram(lazy("broadcast (MPI_Bcast)"), _generator_of("broadcast")),
    "made:allreduce": GeneratedProgram(lazy("reduction to all (MPI_Allreduce)"), _generator_of("allreduce")),
    "made:alltoall": GeneratedProgram(lazy("everybody to everybody (MPI_Alltoall)"), _generator_of("alltoall")),
    "made:halo": GeneratedProgram(lazy("halo exchange, 3 steps"), _generator_of("halo")),
    "made:ring": GeneratedProgram(lazy("a token round a ring, 3 times"), _generator_of("ring")),
    "made:half_to_half": GeneratedProgram(lazy("half to half: lower half sends to upper half"), _generator_of("half_to_half")),
    "made:all_at_once": GeneratedProgram(lazy("everybody sends to everybody before anybody receives"), _generator_of("all_at_once")),
    "made:send_first": GeneratedProgram(lazy("everybody sends to the next one first, then receives"), _send_first),
}


@cache
def shipped_traces() -> dict[str, Path]:
    """Name -> file of the traces in this installation: of the examples, and of the benchmarks used to judge claims."""
    found: dict[str, Path] = {}
    root = source_root()
    if root is not None:
        found |= {f.name.removesuffix(".tar.zst"): f for f in sorted((root / "examples" / "traces").glob("*.tar.zst"))}
    try:
        reference = reference_dir() / "traces"
    except RetrompiError:
        return found
    for file in sorted(reference.glob("*.tar.zst")):
        name = file.name.removesuffix(".tar.zst")
        if _REFERENCE.fullmatch(name):
            found[name] = file
    return found


def check_choice(value: str) -> str:
    """``value`` if it names an existing trace, or has the form of an upload's name. Raises UsageError."""
    if value in MADE or value in shipped_traces() or _UPLOAD.fullmatch(value):
        return value
    raise UsageError(f"no trace '{value[:60]}'{nearest(value[:60], [*MADE, *shipped_traces()])}", code="unknown-trace")


def load(name: str, ranks: int, size: int, path: str = "", label: str = "") -> tuple[Trace, str]:
    """(trace, its display name). Runs in a job's process. ``path`` and ``label`` are those of an upload. Raises RetrompiError."""
    from retrompi.studio.requests import uploads
    from retrompi.traces import files

    if name in MADE:
        return MADE[name].trace(ranks, size), _("{removeprefix}, {ranks} ranks").format(removeprefix=_(MADE[name].label), ranks=ranks)
    if path:
        return uploads.trace(path, label), label
    return files.read(shipped_traces()[check_choice(name)]), name
