"""The file of one execution: which messages the open receives of a trace take, how its open tests end, in which order its calls begin.

``retrompi explore`` writes it, ``retrompi replay --matching`` follows it. Lines of text, ``#`` begins a comment::

    retrompi-matching 1
    trace SHA256
    match RANK LINE SOURCE TAG          what a receive or probe takes
    done RANK LINE yes|no REQUEST...    how a test or wait ends, and which requests it completes
    begin RANK LINE                     the calls in the order in which they begin
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retrompi._engine import Trace
from retrompi.base.errors import InputError
from retrompi.base.files import open_regular

__all__ = ["Outcomes", "read_outcomes"]

_HEAD = "retrompi-matching 1"
_LARGEST = 64 << 20


@dataclass(frozen=True)
class Outcomes:
    """One execution of a trace: ``matches`` (rank, line, source, tag), ``completions`` (rank, line, success, requests), and the ``order``
    (rank, line) in which calls begin, empty where it does not matter. ``about`` are lines of comment."""

    trace: str
    matches: Sequence[tuple[int, int, int, int]] = ()
    completions: Sequence[tuple[int, int, bool, list[int]]] = ()
    order: Sequence[tuple[int, int]] = ()
    about: Sequence[str] = field(default=(), compare=False)

    def text(self) -> str:
        """The content of the file."""
        lines = [_HEAD, *(f"# {line}" for line in self.about), f"trace {self.trace}"]
        lines += [f"match {rank} {line} {source} {tag}" for rank, line, source, tag in self.matches]
        for rank, line, success, requests in self.completions:
            lines.append(" ".join(["done", str(rank), str(line), "yes" if success else "no", *map(str, requests)]))
        lines += [f"begin {rank} {line}" for rank, line in self.order]
        return "\n".join(lines) + "\n"

    def write(self, path: Path) -> None:
        """Writes the file; raises InputError if it cannot."""
        try:
            path.write_text(self.text(), encoding="utf-8")
        except OSError as e:
            raise InputError(f"{path}: cannot be written: {e.strerror}", code="unwritable-file") from e

    def apply_to(self, trace: Trace, where: str) -> Trace:
        """The trace with these outcomes. Raises InputError, beginning with ``where``, if they are another trace's."""
        if trace.sha256 != self.trace:
            raise InputError(f"{where}: was written for another trace (SHA-256 {self.trace[:12]}..., this one has {trace.sha256[:12]}...)",
                             code="wrong-trace")
        for rank, line in self.order:
            if rank >= trace.ranks:
                raise InputError(f"{where}: begin {rank} {line}: the trace has ranks 0 to {trace.ranks - 1}", code="out-of-range")
        return trace.with_outcomes(list(self.matches), [(r, n, ok, list(reqs)) for r, n, ok, reqs in self.completions])


def read_outcomes(path: Path) -> Outcomes:
    """Reads a file; raises InputError with its line."""
    try:
        with open_regular(path) as raw:
            data = raw.read(_LARGEST + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", code="not-found") from None
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be read: {getattr(e, 'strerror', None) or e}", code="unreadable-file") from e
    if len(data) > _LARGEST:
        raise InputError(f"{path}: is larger than {_LARGEST >> 20} MiB", code="damaged-file")
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines or lines[0].strip() != _HEAD:
        raise InputError(f"{path}:1: expected '{_HEAD}', as 'retrompi explore -o' writes it", code="bad-syntax")
    sha, matches, completions, order = "", [], [], []
    for number, line in enumerate(lines[1:], start=2):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        kind, rest = words[0], words[1:]
        try:
            if kind == "trace":
                (sha,) = rest
            elif kind == "match":
                rank, at, source, tag = map(_number, rest)
                matches.append((rank, at, source, tag))
            elif kind == "begin":
                rank, at = map(_number, rest)
                order.append((rank, at))
            elif kind == "done" and rest[2] in ("yes", "no"):
                completions.append((_number(rest[0]), _number(rest[1]), rest[2] == "yes", [_number(r) for r in rest[3:]]))
            else:
                raise ValueError
        except (ValueError, IndexError):
            raise InputError(
                f"{path}:{number}: expected 'trace SHA256', 'match RANK LINE SOURCE TAG', 'done RANK LINE yes|no REQUEST...' or "
                f"'begin RANK LINE', found '{line.strip()[:60]}'", code="bad-syntax",
            ) from None
    return Outcomes(sha, matches, completions, order)


def _number(text: str) -> int:
    value = int(text)
    if not 0 <= value < 1 << 31:
        raise ValueError(text)
    return value
