"""The plug-in: compiled with the user's SimGrid when it is first needed, kept in the user's cache.

Not built with the wheel: it is loaded into SimGrid's own process, so that it must be made of the headers of the very SimGrid that
``smpirun`` belongs to, while the wheel may carry another one (or have none of its own). The algorithms of the collectives are compiled
from the engine's sources, so that there is one of each.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from retrompi.record.errors import RecordError
from retrompi.record.library import Compiler, cache_dir, find_compiler

__all__ = ["SONAME", "plugin"]

SONAME = "libretrompismp.so"  # no longer than "libsimgrid.so.3.32": it may take that name's place in a program (record.smpi.relink)
_HERE = Path(__file__).resolve().parent
_ENGINE = _HERE.parent / "engine"
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")


def _sources() -> list[Path]:
    own = sorted((_HERE / "native").glob("*.cpp"))
    return [*own, *sorted((_ENGINE / "coll").glob("*.cpp")), _ENGINE / "coll_inter.cpp", _ENGINE / "trace_actions.cpp"]


def _headers() -> list[Path]:
    return sorted([*(_HERE / "native").glob("*.hpp"), *(_ENGINE / "coll").glob("*.hpp"), *_ENGINE.glob("*.hpp")])


def _compiler(given: str | None) -> tuple[Compiler, str]:
    """SMPI's C compiler, which tells its header apart, and its C++ compiler."""
    c = find_compiler("smpi", None, given)
    beside = Path(c.path).with_name(Path(c.path).name.replace("smpicc", "smpicxx"))
    cxx = shutil.which(str(beside)) or shutil.which("smpicxx")
    if cxx is None:
        raise RecordError("smpicxx was not found: install SimGrid's SMPI (Debian and Ubuntu: apt-get install libsimgrid-dev)")
    return c, cxx


def _quiet(done: int, total: int, what: str) -> None:
    """Report nothing."""


def plugin(given: str | None = None, report: Callable[[int, int, str], None] = _quiet) -> Path:
    """The compiled plug-in for the SimGrid in use, from the cache or made now (about 20 s). ``given``: an smpicc.

    ``report(done, total, what)`` is told of progress. Raises RecordError naming the package, or with the compiler's first error.
    """
    c, cxx = _compiler(given)
    digest = hashlib.sha256(" ".join([cxx, *_FLAGS, c.header]).encode())
    for source in [*_sources(), *_headers()]:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = cache_dir().parent / "smpi" / digest.hexdigest()[:20]
    target = folder / SONAME
    if target.is_file():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise RecordError(f"{folder} cannot be written: {e.strerror or e}") from e
    with tempfile.TemporaryDirectory(prefix="retrompi-", dir=folder) as name:
        made = _make(Path(name), c, cxx, report)
        made.chmod(0o644)  # smpirun takes it for no program
        made.rename(target)  # two programs may begin at once
    return target


def _make(work: Path, c: Compiler, cxx: str, report: Callable[[int, int, str], None]) -> Path:
    sources = _sources()
    objects = [work / f"{i}.o" for i in range(len(sources))]
    done = 0

    def one(source: Path, target: Path) -> None:
        nonlocal done
        _run([cxx, *_FLAGS, "-c", str(source), "-o", str(target)], c)
        done += 1
        report(done, len(sources) + 1, "compiling the SMPI plug-in")

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for task in [pool.submit(one, s, o) for s, o in zip(sources, objects, strict=True)]:
            task.result()
    made = work / SONAME
    _run([cxx, "-shared", f"-Wl,-soname,{SONAME}", "-o", str(made), *map(str, objects), "-ldl"], c)
    report(len(sources) + 1, len(sources) + 1, "compiling the SMPI plug-in")
    return made


def _run(command: list[str], c: Compiler) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=c.environment())
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200] or "no message")
        raise RecordError(f"{command[0]} cannot compile the SMPI plug-in: {first}")
