"""From the recorder's files to a trace: truncated lines are dropped, information known only at the end is added, the rest is reported."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from retrompi import traces
from retrompi.base.files import folder_handle, open_own
from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.rank_state import FINALIZED, RankState, names_of, read_states
from retrompi.traces import master_worker

__all__ = ["Recording", "assemble"]


@dataclass
class Recording:
    """A finished recording: the trace's path, how the program ended, and problems of the trace."""

    path: Path
    exit_code: int | None
    """Exit code of the program or its launcher; below 0: the signal that killed it; None: unknown."""
    states: list[RankState]
    missing: list[int]
    """Ranks without a file: they ended before or in MPI_Init."""
    notes: list[str] = field(default_factory=list)
    """What could not be recorded, in words."""
    trace: Any = None
    """The trace as returned by ``retrompi.traces.read``; None when it was not read back."""

    @property
    def partial(self) -> bool:
        """Whether a rank did not reach MPI_Finalize."""
        return bool(self.missing) or any(s.phase != FINALIZED for s in self.states)

    @property
    def failed(self) -> str:
        """How the program failed, in words; empty when it ended well or its end is unknown."""
        return _ending(self.exit_code) if self.exit_code else ""

    @property
    def ranks(self) -> int:
        return len(self.states) + len(self.missing)


def assemble(part: Path, out: Path, exit_code: int | None, *, check: bool = True) -> Recording:
    """Assemble the trace ``out`` from the recorder's folder ``part``, which is removed.

    A rank without ``finalize`` makes the trace partial: the other ranks' is removed as well, so that a reader sees a truncated program and
    not one whose ranks disagree. The folder may hold anything: the program could write to it. Links in it are not followed, and what the
    recorder did not write is refused. Raises RecordError for that, when there is no recording, and when ``out`` exists.
    """
    states = read_states(part)
    if not states:
        shutil.rmtree(part, ignore_errors=True)
        how = f"; it ended with {_ending(exit_code)}" if exit_code else ""
        raise RecordError(
            "nothing was recorded: no rank came through MPI_Init with the recorder" + how + ". Is it an MPI program, linked dynamically?",
            code="wrong-mpi",
        )
    recording = Recording(out, exit_code, [states[r] for r in sorted(states)], _missing(states, part))
    folder = part / f"trace-{secrets.token_hex(8)}"
    try:
        folder.mkdir()
        with folder_handle(part) as source, folder_handle(folder) as made:
            _fill(source, made, recording)
            recording.notes = _notes(recording, made)
            if out.name.endswith(".tar.zst"):
                _pack(made, recording.ranks, out)
        if not out.name.endswith(".tar.zst"):
            folder.rename(out)
    except OSError as error:
        what = f"{out} exists" if isinstance(error, FileExistsError) else f"{part}: {error.filename}: {error.strerror}"
        raise RecordError(f"the trace cannot be assembled: {what}", code="unwritable-file") from None
    shutil.rmtree(part, ignore_errors=True)
    if check:
        recording.trace = traces.read(out, partial=recording.partial)
        told = master_worker.note(recording.trace)
        recording.notes += [told] if told else []
        lost = traces.unsupported_lines(recording.trace)
        if lost:
            file, line, action, reason = lost[0]
            more = f" (and {len(lost) - 1} more lines)" if len(lost) > 1 else ""
            recording.notes.append(f"a replay will refuse this trace: {Path(file).name}:{line}: {action}: {reason}{more}")
    return recording


_MOST_MISSING = 4096
"""Ranks that may have left nothing, each of which gets a file."""


def _missing(states: Mapping[int, RankState], part: Path) -> list[int]:
    """Ranks without a state. Raises RecordError when the states are not of one program, or nearly all are missing."""
    (ranks, *others) = {s.ranks for s in states.values()}
    if others:
        raise RecordError(f"{part} has ranks of {ranks} and ranks of {others[0]}: not of one program", code="damaged-file")
    if ranks - len(states) > _MOST_MISSING:
        left = f"{ranks - len(states)} of {ranks} ranks left nothing in {part}"
        raise RecordError(f"{left}: no trace of them can be made", code="damaged-file")
    return [rank for rank in range(ranks) if rank not in states]


def _fill(source: int, made: int, recording: Recording) -> None:
    """The ranks' files, finished, and the index in the folder ``made``."""
    states = {s.rank: s for s in recording.states}
    for rank in range(recording.ranks):
        name = names_of(rank)[0]
        if rank in states:
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=made)
            with open_own(name, made, write=True) as file:
                _finish(file, states[rank], recording.partial)
        else:
            _write_new(name, made, f"# retrompi record 1: rank {rank} of {recording.ranks} left nothing\n{rank} init\n")
    _write_new("index.txt", made, "".join(f"{names_of(rank)[0]}\n" for rank in range(recording.ranks)))


def _write_new(name: str, folder: int, text: str) -> None:
    with os.fdopen(os.open(name, _NEW, 0o666, dir_fd=folder), "wb") as file:
        file.write(text.encode())


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


_FIRST = b"# retrompi record 1: "
_IN_TEXT = bytes([10, *range(32, 127), *range(128, 256)])
_PIECE = 1 << 20


def _finish(file: BinaryIO, state: RankState, partial: bool) -> None:
    """Truncate a rank's file after its last complete line and, in a partial trace, state how the rank ended.

    Raises RecordError for a file that the recorder did not write: shorter than its state says, or with other bytes than text has.
    """
    length = file.seek(0, os.SEEK_END)
    if state.written > length:
        raise _damage_error(state.rank, f"has {length} bytes and not the {state.written} that its state tells")
    file.truncate(state.written)
    file.seek(0)
    if state.written and file.read(len(_FIRST)) != _FIRST:
        raise _damage_error(state.rank, "does not begin as the recorder does")
    while piece := file.read(_PIECE):
        if piece.translate(None, _IN_TEXT):
            raise _damage_error(state.rank, "is not text")
    if state.phase == FINALIZED and partial:
        tail = f"{state.rank} finalize\n".encode()
        file.seek(max(0, state.written - len(tail)))
        if file.read() == tail:
            file.truncate(state.written - len(tail))
    file.seek(0, os.SEEK_END)
    if partial:
        file.write(f"# partial: rank {state.rank} {state.end_text()}\n".encode())
    if state.cancels:
        file.seek(0)
        text = file.read().decode("utf-8", "replace")
        file.seek(0)
        file.write("".join(without_cancelled(text.splitlines(keepends=True))).encode())
        file.truncate()


def _damage_error(rank: int, what: str) -> RecordError:
    return RecordError(f"the recording is damaged: the file of rank {rank} {what}", code="damaged-file")


_REQ = re.compile(r" req=(\d+)")
_REQS = re.compile(r" reqs=([\d,]+)")
_CANCELLED = re.compile(r"# cancelled req=(\d+)")


def without_cancelled(lines: list[str]) -> Iterable[str]:
    """A rank's lines without the requests that were cancelled successfully: they never communicated.

    Such a request is identified by the comment that the recorder writes where the program learnt of the cancellation. Posts, starts and
    tests of its identifier since it was last posted are removed, as is its place in lists; a persistent request is kept without its start.
    """
    gone: set[int] = set()
    open_since: dict[int, list[int]] = {}
    in_lists: dict[int, list[int]] = {}
    for i, line in enumerate(lines):
        if cancelled := _CANCELLED.match(line):
            gone.add(i)
            gone.update(open_since.pop(int(cancelled[1]), []))
            for place in in_lists.pop(int(cancelled[1]), []):
                lines[place] = _without(lines[place], cancelled[1])
        elif single := _REQ.search(line):
            action = line.split(" ", 2)[1]
            if action.endswith("Init"):
                continue
            number = int(single[1])
            if action not in ("test", "wait"):
                open_since[number] = []
                in_lists[number] = []
            if action in ("wait", "requestFree"):
                open_since.pop(number, None)
            elif number in open_since:
                open_since[number].append(i)
        elif several := _REQS.search(line):
            starts = line.split(" ", 2)[1] == "startall"
            for number in map(int, several[1].split(",")):
                if starts:
                    open_since[number] = []
                    in_lists[number] = []
                if number in in_lists:
                    in_lists[number].append(i)
    return (line for i, line in enumerate(lines) if i not in gone and " reqs= " not in line and not line.endswith(" reqs=\n"))


def _without(line: str, number: str) -> str:
    def shorter(found: re.Match[str]) -> str:
        return " reqs=" + ",".join(n for n in found[1].split(",") if n != number)

    return _REQS.sub(shorter, line)


def _notes(recording: Recording, folder: int) -> list[str]:
    """Events that the recorder counted but could not write down."""
    notes = []
    states = recording.states
    notes += _other_processors(folder, recording.ranks)
    if recording.missing:
        first = recording.missing[0]
        notes.append(f"{len(recording.missing)} ranks left nothing (the first: {first}): they ended before MPI_Init was done")
    for state in [s for s in states if s.phase != FINALIZED][:4]:
        notes.append(f"rank {state.rank} {state.end_text()} after {state.calls} calls: its trace ends there")
    total = {name: sum(getattr(s, name) for s in states) for name in ("unknown_requests", "failed_calls", "nested", "cancels")}
    if total["unknown_requests"]:
        notes.append(f"{total['unknown_requests']} waits or tests of requests whose making was not seen were left out")
    if total["failed_calls"]:
        notes.append(f"{total['failed_calls']} calls returned an error and were left out")
    if total["cancels"]:
        notes.append(f"MPI_Cancel was called {total['cancels']} times: what it did cancel was taken out")
    if any(s.threads == 3 for s in states):
        notes.append("several threads called MPI at once: their order is not known")
    elif any(s.threads for s in states):
        notes.append("several threads called MPI in turn: what a thread computed before its first call is not in the trace")
    return notes


_HEAD_B = 8192


def _other_processors(folder: int, ranks: int) -> list[str]:
    """A note on ranks that ran on another processor than the one whose rate was measured, by the headers of their files."""
    measured, others = None, []
    for rank in range(ranks):
        with open_own(names_of(rank)[0], folder) as file:
            head = file.read(_HEAD_B).decode("utf-8", "replace")
        if rank == 0:
            found = re.search(r"^# mark about rate-source measured: .* loops on (.*), [-\d]+$", head, re.MULTILINE)
            measured = found[1] if found else None
        mine = re.search(r"^# processor: (.*)$", head, re.MULTILINE)
        if measured is None:
            return []
        if mine is not None and mine[1].strip() != measured:
            others.append((rank, mine[1].strip()))
    if not others:
        return []
    rank, name = others[0]
    more = f" (and {len(others) - 1} more ranks)" if len(others) > 1 else ""
    return [f"rank {rank} ran on {name}{more}, but the rate was measured on {measured}: its computation is on the wrong scale; use --rate"]


def _pack(folder: int, ranks: int, out: Path) -> None:
    """Pack the trace in a folder as NAME.tar.zst, a new file, with its files under NAME/."""
    name = out.name.removesuffix(".tar.zst")
    packer = zstandard.ZstdCompressor(level=9, write_checksum=True)
    raw = os.fdopen(os.open(out, _NEW, 0o666), "wb")
    with raw, packer.stream_writer(raw) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for member in sorted(["index.txt", *(names_of(rank)[0] for rank in range(ranks))]):
            with open_own(member, folder) as file:
                found = os.fstat(file.fileno())
                info = tarfile.TarInfo(f"{name}/{member}")
                info.size, info.mtime, info.mode = found.st_size, int(found.st_mtime), 0o644
                tar.addfile(info, file)
