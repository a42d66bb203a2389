"""Lines of a generated program: repeated without storing the copies, and bounded in time and memory like the simulation of it."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from retrompi._engine import Trace
from retrompi.base.errors import RetrompiError
from retrompi.base.units import format_bytes, format_time
from retrompi.spec.conditions.bounds import MEMORY_B, Bounds

__all__ = ["Again", "Lines", "MakingStopped", "trace_of_lines", "watch_over", "within_bounds"]

_PIECE = 1 << 16  # bytes
_bounds: ContextVar[Bounds] = ContextVar("bounds", default=Bounds())  # noqa: B039  a frozen value


class MakingStopped(RetrompiError):
    """A program took longer to make, or more memory, than its simulation may: outcome ``limit``, exit code 1."""

    exit_code = 1
    code = "not-completed"


@contextmanager
def within_bounds(bounds: Bounds) -> Iterator[None]:
    """Programs generated within the context may take as much time, and as much memory, as ``bounds`` allow their simulation."""
    token = _bounds.set(bounds.within(_bounds.get()))
    try:
        yield
    finally:
        _bounds.reset(token)


class Again(NamedTuple):
    """A text to be repeated ``times`` times, without storing the copies."""

    text: str
    times: int


class Watch:
    """Looks from time to time whether a program that is being made has reached a bound."""

    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name, self.wall_s = name, bounds.wall_s
        self.memory = MEMORY_B if bounds.memory_B is None else bounds.memory_B
        self.began, self.before = time.monotonic(), _resident()

    def look(self) -> None:
        """Raises MakingStopped at a bound."""
        if self.wall_s is not None and time.monotonic() - self.began > self.wall_s:
            self._stop(f"wall-limit after {format_time(self.wall_s)}")
        if _resident() - self.before > self.memory:
            self._stop(f"memory-limit at {format_bytes(self.memory)}")

    def _stop(self, why: str) -> None:
        line = f"limit: making the program '{self.name}' was stopped by --{why}; fewer repetitions or sizes make it shorter"
        raise MakingStopped(line)


def _resident() -> int:
    """Resident memory of this process, B; where the system does not tell it, the most it has had."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class Lines:
    """The lines of a rank, generated in chunks on iteration."""

    def __init__(self, parts: Iterable[str | Again], watch: Watch) -> None:
        self.parts = [p if isinstance(p, Again) else Again(p, 1) for p in parts]
        self.watch = watch

    def __iter__(self) -> Iterator[bytes]:
        for text, times in self.parts:
            step = text.encode()
            if not step:
                continue
            some = max(1, min(times, _PIECE // len(step)))
            piece = step * some
            for number in range(times // some):
                if number % 16 == 15:  # a MiB of text
                    self.watch.look()
                yield piece
            yield step * (times % some)


def watch_over(name: str) -> Watch:
    """The watch over making the program called ``name``, which all its `Lines` share."""
    return Watch(name, _bounds.get())


def trace_of_lines(name: str, ranks: Iterable[Iterable[str | Again]]) -> Trace:
    """The trace of ``ranks``, each its lines. Raises MakingStopped at a bound of `within_bounds`."""
    watch = watch_over(name)
    return Trace.parse([(Lines(parts, watch), f"{name}/rank-{r}.txt", r) for r, parts in enumerate(ranks)])
