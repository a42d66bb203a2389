"""Resources of a box: counted from outside while it runs, and bounded by a cgroup where one can be made.

A box has one writable file system, in memory. So what its processes hold, what its files hold and what the kernel keeps for it are one
sum, and one bound is on disk and memory together.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

__all__ = ["Cgroup", "Taken", "delegated_folder", "objects", "usage_of"]

_SOCKET_B = 416 << 10
"""What a socket may hold, as the kernel counts it: twice net.core.wmem_default, where no larger one can be asked for (`box_calls`)."""
_FILE_B = 1 << 10
"""The kernel's record of a file, rounded up."""
_HELD = re.compile(r"^(?:RssAnon|VmPTE|VmSwap):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Taken:
    """Bytes of memory of a box, all together, and the number of its files."""

    memory_B: int
    files: int


def objects() -> int:
    """Bytes of the kernel's own objects that it cannot give up, of the whole machine: of mappings, locks, watches and the like, which no
    process and no file shows."""
    told = re.search(r"^SUnreclaim:\s+(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    return int(told[1]) << 10 if told else 0


def usage_of(first: int, place: str, space_B: int, objects_B: int) -> Taken:
    """What the box whose first process is ``first`` takes now: its processes' own pages, page tables and swapped pages, the files in
    ``place``, sockets by their number and connections by what they may hold, and by how much the kernel's `objects` are more than the
    ``objects_B`` that there were before it.

    Its processes are those that its own /proc lists: one that renounces its parent, its environment or its rights is there too. Where it
    cannot be looked into (it is being made), ``space_B`` is taken for its files.
    """
    root = f"/proc/{first}/root"
    try:
        if os.path.samestat(os.stat(root), os.stat("/")):
            return Taken(space_B, 0)
        files = os.statvfs(root + place)
        processes = [name for name in os.listdir(f"{root}/proc") if name.isdecimal()]
    except OSError:
        return Taken(space_B, 0)
    used = files.f_files - files.f_ffree
    held = sum(_private_bytes(f"{root}/proc/{name}/status") for name in processes)
    held += (files.f_blocks - files.f_bfree) * files.f_frsize + used * _FILE_B
    held += _sockets(f"{root}/proc/1/net") + max(0, objects() - objects_B)
    return Taken(held, used)


def _private_bytes(status: str) -> int:
    """Bytes that only this process holds; 0 when it has gone."""
    try:
        with open(status, encoding="utf-8", errors="replace") as file:
            return sum(int(kB) << 10 for kB in _HELD.findall(file.read()))
    except OSError:
        return 0


def _sockets(net: str) -> int:
    """Bytes that the sockets of a network may hold; a connection in which something is under way holds what its kind may grow to."""
    held = 0
    with suppress(OSError):
        if told := re.match(r"sockets: used (\d+)", Path(f"{net}/sockstat").read_text(encoding="ascii")):
            held += int(told[1]) * _SOCKET_B
        for kind in ("tcp", "tcp6"):
            with open(f"{net}/{kind}", encoding="ascii") as file:
                held += sum(" 00000000:00000000 " not in line for line in file) * _connection_B()
    return held


@cache
def _connection_B() -> int:
    """Bytes that one end of a TCP connection may hold at most, to be read and to be sent."""
    return sum(int(Path(f"/proc/sys/net/ipv4/tcp_{way}mem").read_text(encoding="ascii").split()[2]) for way in "rw")


# --- the kernel's own bound ------------------------------------------------------------------------------------------------


class Cgroup:
    """A control group (version 2) of one box, a new folder in ``parent``, with bounds on memory (swap included) and on processes."""

    _numbers = count()

    def __init__(self, parent: Path, memory_B: int, processes: int) -> None:
        self.folder = parent / f"retrompi-box-{os.getpid()}-{next(self._numbers)}"
        self.folder.mkdir()
        try:
            self._write_bound("memory.max", memory_B)
            self._write_bound("pids.max", processes)
            with suppress(OSError):  # a kernel without swap has no such file
                self._write_bound("memory.swap.max", 0)
        except OSError:
            self.remove()
            raise

    def _write_bound(self, name: str, value: int) -> None:
        (self.folder / name).write_text(f"{value}\n", encoding="ascii")

    def words(self) -> list[str]:
        """Words to put before a command line, so that it runs in this group from its first instruction on."""
        return ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.folder / "cgroup.procs")]

    def ran_out(self) -> bool:
        """Whether the kernel ended it for its memory."""
        with suppress(OSError):
            told = re.search(r"^oom_kill (\d+)$", (self.folder / "memory.events").read_text(encoding="ascii"), re.MULTILINE)
            return told is not None and int(told[1]) > 0
        return False

    def remove(self) -> None:
        """Ends what is left in it, and the group."""
        with suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1\n", encoding="ascii")
        with suppress(OSError):
            self.folder.rmdir()


@cache
def delegated_folder() -> Path | None:
    """The folder in which groups for boxes can be made; None where none is ours to use.

    This process's own group cannot have others below it while it has processes, so that it is the one above, if that was delegated to us
    (systemd: ``Delegate=memory pids`` with ``DelegateSubgroup=server``) with its controllers of memory and processes.
    """
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        own = re.search(r"^0::(/.*)$", Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    mounted = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup2 ", mounts, re.MULTILINE)
    if own is None or mounted is None or own[1] == "/":
        return None
    parent = Path(mounted[1] + own[1]).parent
    return parent if _works(parent) else None


def _works(parent: Path) -> bool:
    """Whether a process can be run in a new group there; tried, since it depends on who owns what above both."""
    try:
        if "memory" not in (parent / "cgroup.subtree_control").read_text(encoding="ascii"):
            (parent / "cgroup.subtree_control").write_text("+memory +pids\n", encoding="ascii")
        group = Cgroup(parent, 64 << 20, 8)
    except OSError:
        return False
    try:
        return subprocess.run([*group.words(), "true"], capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        group.remove()
