"""From the recorder's files to a trace: truncated lines are dropped, information known only at the end is added, the rest is reported."""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from retrompi import traces
from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.rank_state import FINALIZED, State, read_states
from retrompi.traces import master_worker

__all__ = ["Recording", "assemble"]


@dataclass
class Recording:
    """A finished recording: the trace's path, how the program ended, and problems of the trace."""

    path: Path
    exit_code: int | None
    """Exit code of the program or its launcher; below 0: the signal that killed it; None: unknown."""
    states: list[State]
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
    not one whose ranks disagree. Raises RecordError when there is no recording.
    """
    states = read_states(part)
    if not states:
        shutil.rmtree(part, ignore_errors=True)
        how = f"; it ended with {_ending(exit_code)}" if exit_code else ""
        raise RecordError(
            "nothing was recorded: no rank came through MPI_Init with the recorder" + how + ". Is it an MPI program, linked dynamically?",
            code="wrong-mpi",
        )
    ranks = max(s.ranks for s in states.values())
    recording = Recording(out, exit_code, [states[r] for r in sorted(states)], [r for r in range(ranks) if r not in states])
    folder = part / "trace"
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        source = part / f"rank-{rank}.txt"
        if rank in states:
            _finish(source, states[rank], recording.partial)
        else:
            source.write_text(f"# retrompi record 1: rank {rank} of {ranks} left nothing\n{rank} init\n")
        source.rename(folder / source.name)
    (folder / "index.txt").write_text("".join(f"rank-{r}.txt\n" for r in range(ranks)))
    recording.notes = _notes(recording, folder)
    if out.name.endswith(".tar.zst"):
        _pack(folder, out)
    else:
        folder.rename(out)
    shutil.rmtree(part, ignore_errors=True)
    if check:
        recording.trace = traces.read(out, partial=recording.partial)
        told = master_worker.note(recording.trace)
        recording.notes += [told] if told else []
        lost = traces.unsupported(recording.trace)
        if lost:
            file, line, action, reason = lost[0]
            more = f" (and {len(lost) - 1} more lines)" if len(lost) > 1 else ""
            recording.notes.append(f"a replay will refuse this trace: {Path(file).name}:{line}: {action}: {reason}{more}")
    return recording


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _finish(path: Path, state: State, partial: bool) -> None:
    """Truncate a rank's file after its last complete line and, in a partial trace, state how the rank ended."""
    with path.open("r+b") as file:
        file.truncate(state.written)
        if state.phase == FINALIZED and partial:
            tail = f"{state.rank} finalize\n".encode()
            file.seek(max(0, state.written - len(tail)))
            if file.read() == tail:
                file.truncate(state.written - len(tail))
        file.seek(0, 2)
        if partial:
            file.write(f"# partial: rank {state.rank} {state.ended()}\n".encode())
    if state.cancels:
        text = path.read_text(encoding="utf-8", errors="replace")
        path.write_text("".join(without_cancelled(text.splitlines(keepends=True))), encoding="utf-8")


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


def _notes(recording: Recording, folder: Path) -> list[str]:
    """Events that the recorder counted but could not write down."""
    notes = []
    states = recording.states
    notes += _other_processors(folder)
    if recording.missing:
        first = recording.missing[0]
        notes.append(f"{len(recording.missing)} ranks left nothing (the first: {first}): they ended before MPI_Init was done")
    for state in [s for s in states if s.phase != FINALIZED][:4]:
        notes.append(f"rank {state.rank} {state.ended()} after {state.calls} calls: its trace ends there")
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


def _other_processors(folder: Path) -> list[str]:
    """A note on ranks that ran on another processor than the one whose rate was measured, by the headers of their files."""
    measured, others = None, []
    for rank, path in enumerate(sorted(folder.glob("rank-*.txt"), key=lambda p: int(p.stem.partition("-")[2]))):
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.read(_HEAD_B)
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


def _pack(folder: Path, out: Path) -> None:
    """Pack the folder as NAME.tar.zst, with its files under NAME/."""
    name = out.name.removesuffix(".tar.zst")
    packer = zstandard.ZstdCompressor(level=9, write_checksum=True)
    with out.open("wb") as raw, packer.stream_writer(raw) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for path in sorted(folder.iterdir()):
            info = tar.gettarinfo(path, arcname=f"{name}/{path.name}")
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            with path.open("rb") as file:
                tar.addfile(info, file)
