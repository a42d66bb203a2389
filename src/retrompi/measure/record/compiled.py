"""Files compiled on the user's machine at run time: kept in the user's cache under a digest of all their inputs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from retrompi.base.errors import RetrompiError
from retrompi.measure.record.errors import RecordError

__all__ = ["build_once", "compile_to", "digest", "making"]

_MAKING = "making-"


def digest(words: Sequence[str], sources: Iterable[Path]) -> str:
    """20 hexadecimal digits over a command's words and the names and contents of its sources."""
    made = hashlib.sha256(" ".join(words).encode())
    for source in sources:
        made.update(source.name.encode() + b"\0" + source.read_bytes())
    return made.hexdigest()[:20]


@contextmanager
def making(folder: Path, error: type[RetrompiError] = RecordError) -> Iterator[Path]:
    """A temporary folder inside ``folder``: finished files are renamed out of it, since two processes may build the same file at once.

    Raises ``error`` when it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=_MAKING, dir=folder))
    except OSError as e:
        raise error(f"{folder} cannot be written: {e.strerror or e}") from e
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Admit one process at a time; the lock belongs to the folder and ends with its holder."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def build_once(
    target: Path, make: Callable[[Path], None], *, what: str = "", mode: int = 0o755, error: type[RetrompiError] = RecordError
) -> Path:
    """Return ``target`` from the cache, or build it now: ``make(path)`` writes it, with temporary files beside it.

    Building ``what`` is said in a line on stderr, since the first use of a command then takes much longer than the others. A process
    that requests it during a build waits: compiling it twice at once would slow both down. What killed builds left is removed.
    """
    if not target.is_file():
        folder = target.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise error(f"{folder} cannot be written: {e.strerror or e}") from e
        with _turn(folder):
            if target.is_file():
                return target
            for left in folder.glob(f"{_MAKING}*"):  # of a build that was killed: only the holder of the turn makes one
                shutil.rmtree(left, ignore_errors=True)
            if what:
                print(f"note: building {what}, once; it is kept in {folder}", file=sys.stderr, flush=True)
            with making(folder, error) as work:
                made = work / target.name
                make(made)
                made.chmod(mode)
                made.rename(target)
    return target


def compile_to(
    command: Sequence[str], what: str, environment: Mapping[str, str] | None = None, error: type[RetrompiError] = RecordError
) -> None:
    """Run a compiler. Raises ``error`` with the first line that mentions an error."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200] or "no message")
        raise error(f"{command[0]} cannot compile {what}: {first}")
