"""The plug-in: compiled with the user's SimGrid on first use, kept in the user's cache.

It is not built with the wheel: it is loaded into SimGrid's own process and must be compiled with the headers of the SimGrid that
``smpirun`` belongs to, which the build machine of a wheel may lack or have in another version. The algorithms of the collectives are
compiled from the engine's sources, so that each exists once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from retrompi.base.cache import cache_dir
from retrompi.measure.record.compiled import build_once, compile_to, digest
from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.library import Compiler, find_compiler
from retrompi.spec.compiled import cpp
from retrompi.spec.compiled.cpp_calls import calls_header

__all__ = ["SONAME", "plugin", "source_files"]

SONAME = "libretrompismp.so"  # no longer than "libsimgrid.so.3.32": it may replace that name in a program (record.smpi.relink)
_WHAT = "the SMPI plug-in"
_HERE = Path(__file__).resolve().parent
_ENGINE = _HERE.parents[1] / "engine"
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", f"-I{_ENGINE}")


def _sources() -> list[Path]:
    own = sorted((_HERE / "native").glob("*.cpp"))
    return [*own, *sorted((_ENGINE / "coll").glob("*.cpp")), _ENGINE / "mpi" / "coll_inter.cpp", _ENGINE / "trace" / "words.cpp"]


def _batches() -> list[list[Path]]:
    """The sources as they are compiled, several at once: nine tenths of the compiler's time are headers."""
    own = [s for s in _sources() if s.parent.name == "native"]
    return [[s for s in _sources() if s not in own], own[::2], own[1::2]]


def source_files() -> list[Path]:
    """All sources of the plug-in, headers included: a wheel has to contain them."""
    return [*_sources(), *sorted([*(_HERE / "native").glob("*.hpp"), *_ENGINE.glob("*/*.hpp")])]


def _compiler(given: str | None) -> tuple[Compiler, str]:
    """SMPI's C compiler, which identifies its header, and its C++ compiler."""
    c = find_compiler("smpi", None, given)
    beside = Path(c.path).with_name(Path(c.path).name.replace("smpicc", "smpicxx"))
    cxx = shutil.which(str(beside)) or shutil.which("smpicxx")
    if cxx is None:
        raise RecordError(
            "smpicxx was not found: install SimGrid's SMPI (Debian and Ubuntu: apt-get install libsimgrid-dev)", code="missing-tool"
        )
    return c, cxx


def _quiet(done: int, total: int, what: str) -> None:
    """A progress callback that does nothing."""


def plugin(given: str | None = None, report: Callable[[int, int, str], None] = _quiet) -> Path:
    """The compiled plug-in for the SimGrid in use, from the cache or made now (about 20 s). ``given``: an smpicc.

    ``report(done, total, what)`` is called to report progress. Raises RecordError naming the package, or with the compiler's first error.
    """
    c, cxx = _compiler(given)
    name = digest([cxx, *_FLAGS, c.header, cpp.header(), calls_header()], source_files())
    # Not executable: smpirun would take it for the program.
    return build_once(cache_dir("smpi") / name / SONAME, lambda made: _make(made, c, cxx, report), what=_WHAT, mode=0o644)


def _make(made: Path, c: Compiler, cxx: str, report: Callable[[int, int, str], None]) -> None:
    """Compiles the batches that no earlier try has compiled, and links all."""
    batches = _batches()
    ready = made.parent.parent / "objects"  # of this digest; a build that was killed does not begin from nothing
    ready.mkdir(exist_ok=True)
    objects = [ready / f"{i}.o" for i in range(len(batches))]
    cpp.write(made.parent / "generated" / "specs.hpp")
    flags = [*_FLAGS, f"-I{made.parent}"]
    done = 0

    def one(sources: list[Path], target: Path) -> None:
        nonlocal done
        if not target.is_file():
            partly = made.parent / target.name
            whole = partly.with_suffix(".cpp")
            whole.write_text("".join(f'#include "{source}"\n' for source in sources), encoding="utf-8")
            compile_to([cxx, *flags, "-c", str(whole), "-o", str(partly)], _WHAT, c.environment())
            partly.rename(target)
        done += 1
        report(done, len(batches) + 1, f"compiling {_WHAT}")

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for task in [pool.submit(one, s, o) for s, o in zip(batches, objects, strict=True)]:
            task.result()
    compile_to([cxx, "-shared", f"-Wl,-soname,{SONAME}", "-o", str(made), *map(str, objects), "-ldl"], _WHAT, c.environment())
    report(len(batches) + 1, len(batches) + 1, f"compiling {_WHAT}")
    shutil.rmtree(ready, ignore_errors=True)
