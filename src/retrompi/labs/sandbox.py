"""A box for programs of students: files go in, one bounded stream of bytes comes out, and nothing else passes.

In the box (bubblewrap) are /usr and the little of /etc that compilers and MPIs read, all read-only, copies of the files that it is given,
and nothing else: no home, no other user's files, no folder of this machine to write to, no network, no processes but its own. What can be
written is one file system in memory (`PLACE`), of a bounded size; /tmp and /dev/shm are folders of it. System calls that programs do not
need are refused (`box_calls`), what the box takes is bounded as a whole (`box_bounds`), and what comes out is read as what an enemy wrote
(`box_stream`). A box ends as a whole: with its first process all others are ended by the kernel.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from retrompi.base.errors import InputError
from retrompi.base.files import open_regular
from retrompi.base.translate import _
from retrompi.labs.box_bounds import Cgroup, delegated_folder, objects, usage_of
from retrompi.labs.box_calls import filter_program
from retrompi.labs.box_stream import read_files
from retrompi.measure.launch.execution import BackendError
from retrompi.measure.launch.mpi_job import MOST_OUTPUT, Ended

__all__ = ["FILES", "MEMORY_B", "PLACE", "SECONDS", "missing", "run"]

SECONDS, MEMORY_B, FILES = 20, 1 << 30, 20_000
"""Limits of a box: seconds of wall time and of a process' processor time; bytes of memory of its processes and files together; files."""
SPACE_B, LEAVING_B = 256 << 20, 48 << 20
"""Bytes of its files, which are part of its memory; bytes that come out of it."""
PLACE = "/box"
"""The folder in the box that can be written; it begins with copies of the files given."""
_GIVEN = "/given"
_ADDRESSES, _LARGEST_FILE, _PROCESSES, _OPEN, _LOCKED = 8 << 30, 64 << 20, 96, 256, 64 << 10
"""Address space of a process (SMPI maps much), bytes of a file, processes at once, open files of a process, bytes that it may lock."""
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mpich", "openmpi", "hydra.conf")
_DEVICES = ("null", "full", "random", "urandom")
"""No /dev/zero: a shared mapping of it is memory that is counted nowhere."""
_NOBODY = 65534
_SYSTEM = ("/usr/", "/lib", "/bin", "/sbin", "/proc/", "/dev/", "/etc/")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_TRANSPORTS = {"UCX_TLS": "self,posix", "UCX_LOG_LEVEL": "fatal", "HWLOC_HIDE_ERRORS": "2", "OMPI_MCA_btl": "self,vader"}
"""MPICH (by UCX) and Open MPI use the shared memory of /dev/shm, not System V's, and do not tell of networks that are not there."""
_EVERY_S = 0.02
_ENDING_S = 10.0


@cache
def missing() -> str:
    """Why no program can be run in a box on this machine, in a sentence; empty if it can."""
    for tool in ("bwrap", "prlimit", "choom", "tar", *(["setpriv"] if os.geteuid() == 0 else [])):
        if shutil.which(tool) is None:
            return _("{tool} is not installed on this server (Debian and Ubuntu: apt-get install bubblewrap util-linux).").format(tool=tool)
    if os.geteuid() != 0 and os.access(_tool("bwrap"), os.W_OK):  # it runs in the box, where it can be opened
        return _("The server cannot make a box for programs: {reason}.").format(reason=f"this user may change {_tool('bwrap')}")
    if filter_program() is None:
        reason = f"no filter of system calls for {os.uname().machine}"
        return _("The server cannot make a box for programs: {reason}.").format(reason=reason)
    try:
        with tempfile.TemporaryDirectory(prefix="retrompi-lab-") as work:
            tried = run(["true"], Path(work))
    except (OSError, BackendError) as error:
        return _("The server cannot make a box for programs: {reason}.").format(reason=error)
    said = (tried.output.strip().splitlines() or ["it ended without a word"])[0][:160]
    return "" if tried.code == 0 else _("The server cannot make a box for programs: {reason}.").format(reason=said)


def run(
    words: Sequence[str],
    work: Path,
    environment: Mapping[str, str] | None = None,
    *,
    wanted: Sequence[Path] = (),
    seconds: float = SECONDS,
    memory_B: int = MEMORY_B,
) -> Ended:
    """Runs a command in a new box with copies of the folders and files of ``work``; of those there afterwards, ``wanted`` are copied back.

    ``work`` is a folder that nobody else writes to. It is called `PLACE` in the box, in the words and in the values of the environment too;
    files elsewhere that these name (a recorder's library) are in the box as copies. The two outputs of the command are one, in their order.
    Raises BackendError where no box can be made, InputError when what it left is no stream of regular files, or too long.
    """
    names = {str(path.relative_to(work)): path for path in wanted}
    with ExitStack() as opened:
        inside = _Inside(work, opened)
        texts = [*words, *(environment or {}).values()]
        given = inside.file_options(texts)
        variables = {"PATH": _PATH, "LANG": "C.UTF-8", **{k: inside.rename_paths(v) for k, v in (environment or {}).items()}}
        variables |= {"HOME": PLACE, "TMPDIR": f"{PLACE}/tmp", **_TRANSPORTS}
        command = [*_limit_command(), "/bin/sh", "-c", _script(list(names)), "sh", *map(inside.rename_paths, words)]
        told, telling = os.pipe()
        opened.callback(os.close, told)
        calls = inside.pipe_of(filter_program() or b"")
        rights = [_tool("setpriv"), f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        # The first to be ended where the machine's memory runs out. A core of 1 byte also keeps the kernel from starting the machine's own
        # handler of crashes, which would look at a box's process from outside, often as root.
        outside = [_tool("choom"), "--adjust=1000", "--", _tool("prlimit"), "--core=1", "--"]
        line = [*outside, *rights, _tool("bwrap"), *_system(), *given, *_variables(variables), "--remount-ro", "/", "--chdir", PLACE,
                "--info-fd", str(telling), "--seccomp", str(calls), "--", *command]
        group = None if (parent := delegated_folder()) is None else Cgroup(parent, memory_B, _PROCESSES + 8)
        try:
            began, objects_B = time.perf_counter(), objects()
            try:
                process = subprocess.Popen(
                    [*(group.words() if group is not None else []), *line], env={"PATH": _PATH},
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                    pass_fds=(*inside.handles, telling),
                )
            except OSError as error:
                raise BackendError(f"{line[0]} cannot be run: {error.strerror or error}") from error
            finally:
                os.close(telling)
            watched = _Watched(process, told, began + seconds, memory_B, objects_B)
            try:
                watched.follow()
            finally:
                watched.end("")
            ran_out = group is not None and group.ran_out()
        finally:
            if group is not None:
                group.remove()
    ended = watched.ended or ("memory" if ran_out else "")
    if ended == "files":
        raise InputError(f"the program left more than {LEAVING_B >> 20} MiB", code="too-large")
    if names and not ended:
        for name, content in read_files(bytes(watched.streams["files"]), names).items():
            names[name].write_bytes(content)
    output = bytes(watched.streams["output"]).decode("utf-8", "replace")
    output = output[:MOST_OUTPUT] + "\n… (more was written)\n" if len(output) > MOST_OUTPUT else output
    return Ended(process.returncode, output, "", time.perf_counter() - began, ended == "time", ended == "memory")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BackendError(f"{name} is not installed")
    return found


def _limit_command() -> list[str]:
    limits = {"cpu": SECONDS, "as": _ADDRESSES, "fsize": _LARGEST_FILE, "nproc": _PROCESSES, "nofile": _OPEN, "memlock": _LOCKED}
    return ["prlimit", *(f"--{name}={value}" for name, value in limits.items()), "--"]


def _script(wanted: Sequence[str]) -> str:
    """A script that runs the command and then writes the files that are to leave the box to a pipe of their own.

    Its reader takes what comes for what the program itself wrote: they run as one user, side by side.
    """
    if not wanted:
        return 'exec "$@" >&2'
    names = " ".join(shlex.quote(name) for name in wanted)
    tar = f"tar --create --format=ustar --no-recursion --file=- --directory={PLACE} -- {names}"
    return f'"$@" >&2; code=$?; env -i PATH={_PATH} {tar} 2>/dev/null; exit $code'


def _system() -> list[str]:
    """bubblewrap's options for what every box has."""
    out = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "box",
           "--ro-bind", "/usr", "/usr", "--proc", "/proc"]
    for name in ("lib", "lib32", "lib64", "libx32", "bin", "sbin"):
        place = Path("/", name)
        if place.is_symlink():
            out += ["--symlink", os.readlink(place), str(place)]
        elif place.is_dir():
            out += ["--ro-bind", str(place), str(place)]
    for name in _ETC:
        out += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    # bubblewrap's own /dev is a file system in memory that can be written without a bound.
    for name in _DEVICES:
        out += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for link, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        out += ["--symlink", f"/proc/self/{target}", f"/dev/{link}"]
    return [*out, "--size", str(SPACE_B), "--tmpfs", PLACE, "--dir", f"{PLACE}/tmp", "--dir", f"{PLACE}/shm",
            "--symlink", f"{PLACE}/tmp", "/tmp", "--symlink", f"{PLACE}/shm", "/dev/shm"]


def _variables(values: Mapping[str, str]) -> list[str]:
    return ["--clearenv", *(word for name, value in values.items() for word in ("--setenv", name, value))]


@dataclass
class _Inside:
    """The contents of a box: files by their descriptors, so that processes inside need no access to their paths."""

    work: Path
    opened: ExitStack
    handles: list[int] = field(default_factory=list)
    elsewhere: dict[str, str] = field(default_factory=dict)

    def file_options(self, texts: Sequence[str]) -> list[str]:
        """bubblewrap's options for the content of the folder, and for the files elsewhere that texts name."""
        out: list[str] = []
        for path in sorted(self.work.rglob("*")):
            name = f"{PLACE}/{path.relative_to(self.work)}"
            if path.is_dir() and not path.is_symlink():
                out += ["--dir", name]
            elif path.is_file():
                out += ["--perms", "0755" if os.access(path, os.X_OK) else "0644", "--file", str(self._open(path)), name]
        for number, path in enumerate(_files_named(texts, self.work)):
            self.elsewhere[str(path)] = f"{_GIVEN}/{number}/{path.name}"
            out += ["--perms", "0555", "--ro-bind-data", str(self._open(path)), self.elsewhere[str(path)]]
        return out

    def rename_paths(self, text: str) -> str:
        """A text with the names that its files have in the box."""
        for path in sorted(self.elsewhere, key=len, reverse=True):
            text = text.replace(path, self.elsewhere[path])
        return text.replace(str(self.work), PLACE)

    def pipe_of(self, data: bytes) -> int:
        """A descriptor from which ``data`` are read."""
        reading, writing = os.pipe()
        self.opened.callback(os.close, reading)
        with os.fdopen(writing, "wb") as file:  # far less than a pipe holds
            file.write(data)
        self.handles.append(reading)
        return reading

    def _open(self, path: Path) -> int:
        self.handles.append(self.opened.enter_context(open_regular(path)).fileno())
        return self.handles[-1]


def _files_named(texts: Sequence[str], work: Path) -> Iterator[Path]:
    """Files that texts name, outside of the system's folders and of ``work``."""
    for name in dict.fromkeys(name for text in texts for name in re.findall(r"/[\w.+@,/-]+", text)):
        path = Path(name)
        if not name.startswith(_SYSTEM) and path.is_file() and not path.resolve().is_relative_to(work.resolve()):
            yield path


class _Watched:
    """A box that runs: its streams are read, up to a bound each, and it is ended at its limits."""

    def __init__(self, process: subprocess.Popen[bytes], told: int, until: float, memory_B: int, objects_B: int) -> None:
        self.process = process
        self.until = until
        self.memory_B = memory_B
        self.objects_B = objects_B
        self.ended = ""
        """Why it was ended: ``time``, ``memory`` or ``files`` (more came out than may); empty when it ended itself."""
        assert process.stdout is not None
        assert process.stderr is not None
        self.sources = {"files": process.stdout.fileno(), "output": process.stderr.fileno(), "info": told}
        self.streams = {name: bytearray() for name in self.sources}
        self._dropped = 0
        self._first: tuple[int, int] | None = None

    def follow(self) -> None:
        """Waits for the box's end. None of its processes is left then: with the last one its streams end."""
        looked = 0.0
        with selectors.DefaultSelector() as ready:
            for name, handle in self.sources.items():
                ready.register(handle, selectors.EVENT_READ, name)
            while ready.get_map() and not (self.ended and time.perf_counter() > self.until + _ENDING_S):
                for key, _events in ready.select(_EVERY_S):
                    if not self._read(key.fd, key.data):
                        ready.unregister(key.fileobj)
                now = time.perf_counter()
                if not self.ended and now - looked >= _EVERY_S:
                    looked = now
                    self._judge(now)

    def _read(self, handle: int, name: str) -> bool:
        """Takes what is there; whether there may be more that is wanted.

        Of a long output the beginning is kept and the next part dropped; what writes on without end waits until its time is over.
        """
        piece = os.read(handle, 1 << 16)
        kept = self.streams[name]
        most = {"files": LEAVING_B, "output": MOST_OUTPUT + 4, "info": 1 << 12}[name]
        if name == "files" and len(kept) + len(piece) > most:
            self.end("files")
        part = piece[: most - len(kept)]
        kept += part
        self._dropped += len(piece) - len(part)
        return bool(piece) and (self._dropped < _LARGEST_FILE or bool(self.ended))

    def _judge(self, now: float) -> None:
        if now > self.until:
            self.end("time")
            return
        if (first := self.first()) is not None:
            found = usage_of(first[0], PLACE, SPACE_B, self.objects_B)
            if found.memory_B > self.memory_B or found.files > FILES:
                self.end("memory")

    def first(self) -> tuple[int, int] | None:
        """The number of the box's first process and a handle of it, once it has been told."""
        if self._first is None:
            with suppress(ValueError, KeyError, TypeError, OSError):
                number = int(json.loads(self.streams["info"])["child-pid"])
                handle = os.pidfd_open(number)
                status = Path(f"/proc/{number}/status").read_text(encoding="utf-8", errors="replace")
                if f"\nPPid:\t{self.process.pid}\n" in status:  # else it has ended, and another has its number
                    self._first = number, handle
                else:
                    os.close(handle)
        return self._first

    def end(self, why: str) -> None:
        """Ends the box, if it has not ended. With its first process the kernel ends all others. That one is ended from here: it is a
        program as others in the box, which have its user and may have changed what it does when the one outside ends."""
        if self.process.poll() is None and why:
            self.ended, self.until = why, time.perf_counter()
        with suppress(ProcessLookupError):
            if (first := self.first()) is not None:
                signal.pidfd_send_signal(first[1], signal.SIGKILL)
        with suppress(ProcessLookupError):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        if not why:
            self.process.wait()
            if self._first is not None:
                os.close(self._first[1])
            for source in (self.process.stdout, self.process.stderr):
                assert source is not None
                source.close()
