"""A box for programs of students: bubblewrap, without a network, with nothing of this machine but its system programs, with limits.

In the box are /usr and the little of /etc that compilers and MPIs read, all read-only, one folder of its own, and nothing else: no home, no
other user's files, no list of users, no processes but its own. A box ends as a whole when its time is over.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from retrompi.base.translate import _

__all__ = ["MEMORY_B", "SECONDS", "boxed", "missing"]

SECONDS, MEMORY_B = 20, 1 << 30
"""Limits of a box: seconds of wall time and of a process' processor time; bytes of memory of all its processes."""
_ADDRESSES, _WRITTEN, _PROCESSES = 8 << 30, 64 << 20, 96
"""Address space of a process (SMPI maps much), bytes of a file, processes at once."""
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mpich", "openmpi", "hydra.conf")
_NOBODY = 65534
_SYSTEM = ("/usr/", "/lib", "/bin", "/sbin", "/proc/", "/dev/", "/etc/")


@cache
def missing() -> str:
    """Why no program can be run in a box on this machine, in a sentence; empty if it can."""
    for tool in ("bwrap", "prlimit", *(["setpriv"] if os.geteuid() == 0 else [])):
        if shutil.which(tool) is None:
            return _("{tool} is not installed on this server (Debian and Ubuntu: apt-get install bubblewrap util-linux).").format(tool=tool)
    try:
        tried = subprocess.run(boxed(["true"], None), capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _("The server cannot make a box for programs: {reason}.").format(reason=error)
    said = (tried.stderr.strip().splitlines() or ["it ended without a word"])[0][:160]
    return "" if tried.returncode == 0 else _("The server cannot make a box for programs: {reason}.").format(reason=said)


def boxed(words: Sequence[str], work: Path | None, environment: Mapping[str, str] | None = None) -> list[str]:
    """The command line that runs ``words`` in a box, in its only writable folder ``work``.

    Files elsewhere that the words or the environment name (a recorder's library, a platform's file) are in the box as copies.
    """
    root = os.geteuid() == 0
    out = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"] if root else []
    out += ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "box",
            "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--size", str(_WRITTEN),
            "--tmpfs", "/tmp"]  # fmt: skip
    for name in ("lib", "lib32", "lib64", "libx32", "bin", "sbin"):
        place = Path("/", name)
        if place.is_symlink():
            out += ["--symlink", os.readlink(place), str(place)]
        elif place.is_dir():
            out += ["--ro-bind", str(place), str(place)]
    for name in _ETC:
        out += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    if work is not None:
        for number, path in enumerate(_named([*words, *(environment or {}).values()], work)):
            out += ["--ro-bind", str(_copied(path, work / ".box", number)), str(path)]
        if root:
            _give(work)
        out += ["--bind", str(work), str(work), "--chdir", str(work)]
    out += ["--remount-ro", "/"]
    limits = [f"--cpu={SECONDS}", f"--as={_ADDRESSES}", f"--fsize={_WRITTEN}", f"--nproc={_PROCESSES}", "--core=0", "--nofile=512"]
    return [*out, "--", "prlimit", *limits, "--", *words]


def _named(texts: Sequence[str], work: Path) -> list[Path]:
    """Files that texts name, outside of the system's folders and of ``work``."""
    found: dict[Path, None] = {}
    for text in texts:
        for name in re.findall(r"/[\w.+@,/-]+", text):
            path = Path(name)
            if not name.startswith(_SYSTEM) and path.is_file() and not path.resolve().is_relative_to(work.resolve()):
                found[path] = None
    return list(found)


def _copied(path: Path, folder: Path, number: int) -> Path:
    folder.mkdir(exist_ok=True)
    made = folder / str(number)
    shutil.copy2(path, made)
    return made


def _give(work: Path) -> None:
    """As root: the folder becomes that of the user who runs in the box."""
    for place, _folders, files in os.walk(work):
        for name in (place, *(os.path.join(place, f) for f in files)):
            if not os.path.islink(name):
                os.chown(name, _NOBODY, _NOBODY)
