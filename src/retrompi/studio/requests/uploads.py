"""Uploads of studio users: traces and measured curves.

An upload is untrusted data. It is refused before decoding when it is too large, stored under a generated name in a folder of one
session, and read only by a job's process with limits on memory, processor and files (`confine_process`). It is never executed, imported or
unpickled; its file name is a label and never a path; it cannot refer to other files. It is removed with its session.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import resource
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.base.units import format_bytes
from retrompi.studio.jobs.child_process import taken_B

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.measure.curves import Measured
    from retrompi.studio.jobs.resources import Resources

__all__ = ["MOST_UNPACKED", "Upload", "Uploads", "confine_process", "curves", "label_of", "trace", "uploads_of"]

MOST_UNPACKED = 128 << 20
"""Bytes of an uploaded trace, unpacked: read in a few seconds."""
MOST_ACTIONS = 20_000_000
A_SESSION = 8
"""Uploads kept per session; a newer one replaces the oldest."""
SESSIONS = 64
"""Sessions with uploads; the least recently active ones lose theirs first."""
IDLE_S = 4 * 3600.0
"""Idle time after which a session's uploads are removed."""
CPU_S = 60
MEMORY_B = 1 << 30


@dataclass(frozen=True)
class Upload:
    """``id`` is generated, ``label`` the user's name for it, as far as printable; ``kind``: "trace" or "curve", as declared by the user."""

    id: str
    label: str
    bytes: int
    kind: str = "trace"


def label_of(name: Any) -> str:
    """A file's name for messages: the last part of its path, printable, at most 60 characters."""
    text = name if isinstance(name, str) else ""
    last = text.replace("\\", "/").rstrip("/").rpartition("/")[2]
    shown = "".join(c if c.isprintable() else "?" for c in last).strip()
    return (shown[:57] + "…" if len(shown) > 58 else shown) or "upload"


def uploads_of(resources: Resources) -> Uploads:
    """The uploads of a studio, shared by its pages; created on first use, while the pages are registered."""
    if resources.uploads is None:
        resources.uploads = Uploads(resources.folder, resources.limits.upload_B)
    found: Uploads = resources.uploads
    return found


class Uploads:
    """The uploads of all sessions of one studio, in a new folder below ``folder``. Thread-safe; `close` removes everything."""

    def __init__(self, folder: Path, most_B: int) -> None:
        self.most_B = most_B
        self.folder = Path(tempfile.mkdtemp(prefix="uploads-", dir=folder))  # accessible only to its owner
        self.account: Callable[[str, int], None] | None = None
        """Set where sessions have quotas: (session, bytes) -> UsageError if it may upload no more."""
        self._lock = threading.Lock()
        self._of: OrderedDict[str, OrderedDict[str, Upload]] = OrderedDict()
        self._folders: dict[str, Path] = {}
        self._asked: dict[str, float] = {}

    def add(self, session: str, name: Any, contents: Any, kind: str = "trace") -> Upload:
        """Stores an upload as sent by ``dcc.Upload`` (``data:TYPE;base64,DATA``). Raises UsageError, in one line, for an invalid one."""
        label = label_of(name)
        if not isinstance(contents, str):
            raise UsageError(f"{label}: nothing was uploaded")
        head, comma, data = contents.partition(",")
        if not comma or not head.endswith(";base64") or len(head) > 200:
            raise UsageError(f"{label}: the upload is not as a browser sends it", code="damaged-file")
        if len(data) > (self.most_B + 2) // 3 * 4:
            advice = "; pack it with zstd or gzip" if kind == "trace" else ""
            raise UsageError(f"{label} is longer than {format_bytes(self.most_B)}, the most that can be uploaded{advice}", code="too-large")
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f"{label}: the upload is damaged: not base64", code="damaged-file") from None
        if not raw:
            raise UsageError(f"{label} is empty", code="empty-file")
        if len(raw) > self.most_B:
            raise UsageError(f"{label} is longer than {format_bytes(self.most_B)}, the most that can be uploaded", code="too-large")
        if self.account is not None:
            self.account(session, len(raw))
        upload = Upload(secrets.token_urlsafe(12), label, len(raw), kind)
        with self._lock:
            self._expire()
            folder = self._folders.get(session)
            if folder is None:
                folder = self._folders[session] = Path(tempfile.mkdtemp(dir=self.folder))
            mine = self._of.setdefault(session, OrderedDict())
            handle = os.open(folder / upload.id, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
            with os.fdopen(handle, "wb") as out:
                out.write(raw)
            mine[upload.id] = upload
            self._touch(session)
            while len(mine) > A_SESSION:
                (folder / mine.popitem(last=False)[0]).unlink(missing_ok=True)
            while len(self._of) > SESSIONS:
                self._remove(next(iter(self._of)))
        return upload

    def of(self, session: str, kind: str = "") -> list[Upload]:
        """A session's uploads, all or those of one kind, newest first."""
        with self._lock:
            self._expire()
            self._touch(session)
            return [u for u in reversed(self._of.get(session, OrderedDict()).values()) if kind in ("", u.kind)]

    def find(self, session: str, upload_id: str) -> tuple[Path, Upload]:
        """The file of an upload. Raises UsageError if it does not exist or belongs to another session."""
        with self._lock:
            self._expire()
            upload = self._of.get(session, OrderedDict()).get(upload_id)
            if upload is None:
                raise UsageError(
                    "no such upload: it was removed, or is not yours; uploads belong to the browser that made them", code="gone"
                )
            self._touch(session)
            return self._folders[session] / upload.id, upload

    def close(self) -> None:
        """Removes everything."""
        with self._lock:
            self._of.clear()
            self._folders.clear()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _touch(self, session: str) -> None:
        if session in self._of:
            self._asked[session] = time.monotonic()
            self._of.move_to_end(session)

    def _expire(self) -> None:
        now = time.monotonic()
        for session in [s for s, at in self._asked.items() if now - at > IDLE_S]:
            self._remove(session)

    def _remove(self, session: str) -> None:
        self._of.pop(session, None)
        self._asked.pop(session, None)
        folder = self._folders.pop(session, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


# -- in a job's process ------------------------------------------------------------------------------------------------


@contextmanager
def confine_process(cpu_s: int = CPU_S, memory_B: int = MEMORY_B) -> Iterator[None]:
    """Limits processor time, memory and file size of this process, a job's, while it reads untrusted data.

    Exceeding the processor time ends the process (SIGXCPU); exceeding another limit raises an error.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = [
        (resource.RLIMIT_AS, _lower_limit(resource.RLIMIT_AS, taken_B() + memory_B)),
        (resource.RLIMIT_FSIZE, _lower_limit(resource.RLIMIT_FSIZE, 2 * MOST_UNPACKED)),
        (resource.RLIMIT_CPU, _lower_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + cpu_s)),
    ]
    try:
        yield
    finally:
        for kind, limits in before:
            resource.setrlimit(kind, limits)


def _lower_limit(kind: int, most: int) -> tuple[int, int]:
    """Lowers a soft limit of this process, never raises it; returns the limits as they were."""
    soft, hard = resource.getrlimit(kind)
    known = [v for v in (soft, hard) if v != resource.RLIM_INFINITY]
    resource.setrlimit(kind, (min([most, *known]), hard))
    return soft, hard


def trace(path: str, label: str) -> Trace:
    """The trace in an uploaded file. Raises InputError with the user's name of the file and the line, UsageError for one too long."""
    from retrompi.traces import files

    try:
        with confine_process():
            found = files.read_alone(Path(path), label, most=MOST_UNPACKED)
    except MemoryError:
        raise InputError(f"{label}: needs more memory than an uploaded trace may ({format_bytes(MEMORY_B)})", code="damaged-file") from None
    except RetrompiError:
        raise
    except (ValueError, OverflowError) as error:
        raise InputError(f"{label}: cannot be read: {' '.join(str(error).split())[:200]}", code="unreadable-file") from None
    if found.actions > MOST_ACTIONS:
        raise InputError(
            f"{label}: {found.actions} actions; the studio replays up to {MOST_ACTIONS}, 'retrompi replay' any number", code="too-large"
        )
    return found


def curves(path: str, label: str) -> list[Measured]:
    """The measured curves in an uploaded file of OSU, IMB, NetPIPE, mpptest or mpi4py, or a table. Raises InputError with file and line."""
    from retrompi.measure import curves

    # Messages name the file by its label; the reader never sees its path on our disk.
    try:
        with confine_process():
            return curves.read_all(path)
    except RetrompiError as error:
        # The reader's last advice is a command-line option, which a page lacks; advice about the file itself precedes it.
        told = re.sub(r",? or (?:give|say which with) --.*$", "", " ".join(str(error).split()))
        raise InputError(told.replace(str(path), label)) from None
    except (MemoryError, ValueError, OverflowError) as error:
        raise InputError(f"{label}: cannot be read: {' '.join(str(error).split())[:200]}", code="unreadable-file") from None
