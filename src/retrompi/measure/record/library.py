"""The interposition library: compiled with the MPI in use, cached in the user's cache folder."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from retrompi.base.cache import cache_dir
from retrompi.base.scratch import folder as temporary
from retrompi.measure.record.compiled import build_once, compile_to, digest
from retrompi.measure.record.errors import RecordError

__all__ = ["SONAME", "TIMER_SONAME", "Compiler", "family_of_program", "find_compiler", "library", "recorder_version"]

SONAME = "libretrompirec.so"  # no longer than "libsimgrid.so.3.32": smpi.relink overwrites that name with it
TIMER_SONAME = "libretrompitime.so"
_NATIVE = Path(__file__).with_name("native")
_TIMER = ("timer/timer.c", "profile.c", "profile.h")
_FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
# Functions that some mpi.h do not declare; the source has them under HAVE_<name>.
_OPTIONAL = ("Isendrecv", "Bcast_init", "Psend_init", "Send_c", "Comm_idup_with_info")
_PACKAGES = {
    "mpich": "MPICH (Debian and Ubuntu: apt-get install libmpich-dev)",
    "openmpi": "Open MPI (Debian and Ubuntu: apt-get install libopenmpi-dev)",
    "smpi": "SimGrid's SMPI (Debian and Ubuntu: apt-get install libsimgrid-dev)",
}


@dataclass(frozen=True)
class Compiler:
    """An ``mpicc``: its path, the family of its ``mpi.h`` (``mpich``, ``openmpi``, ``smpi`` or ``other``), the optional functions declared
    there, and a digest of that header."""

    path: str
    family: str
    has: tuple[str, ...]
    header: str

    def command(self) -> list[str]:
        """The compiler's command line without files."""
        return [self.path, *(["-DRECORD_SMPI"] if self.family == "smpi" else []), *(f"-DHAVE_{name}" for name in self.has)]

    def environment(self) -> dict[str, str]:
        """The environment to run it with. ``smpicc`` must not rename main, malloc and the clock here."""
        return {**os.environ, "SMPI_PRETEND_CC": "1"}


@functools.cache
def _inspect(path: str) -> Compiler | None:
    """The properties of the compiler ``path``; None when it cannot compile ``mpi.h`` at all."""
    with temporary("probe") as folder:
        probe = Path(folder) / "probe.c"
        probe.write_text(
            "#include <mpi.h>\n#if defined(OPEN_MPI)\nfamily openmpi\n#elif defined(MPICH_VERSION)\nfamily mpich\n"
            "#elif defined(SMPI_PREDEFINED_POINTER)\nfamily smpi\n#else\nfamily other\n#endif\n"
        )
        try:
            done = subprocess.run(
                [path, "-E", str(probe), "-o", "-"], capture_output=True, text=True, env={**os.environ, "SMPI_PRETEND_CC": "1"}, timeout=60
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    family = re.search(r"^family (\w+)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or family is None:
        return None
    code = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("#"))
    has = tuple(name for name in _OPTIONAL if re.search(rf"\bMPI_{name}\s*\(", code)) if family[1] != "smpi" else ()
    return Compiler(path, family[1], has, hashlib.sha256(code.encode()).hexdigest())


def find_compiler(wanted: str | None, launcher: str | None = None, given: str | None = None) -> Compiler:
    """The compiler of the MPI in use.

    ``given``: the user's choice. Otherwise searched beside ``launcher`` and on the PATH, of the family ``wanted`` (None: the first found).
    Raises RecordError naming the package when there is none.
    """
    if given is not None:
        path = shutil.which(given)
        found = None if path is None else _inspect(path)
        if path is None or found is None:
            why = "no such compiler" if path is None else "cannot compile a file with #include <mpi.h>"
            raise RecordError(f"--mpicc {given}: {why}")
        if wanted is not None and found.family not in (wanted, "other"):
            raise RecordError(f"--mpicc {given} compiles for {found.family}, but the program runs on {wanted}")
        return found
    names = ["smpicc"] if wanted == "smpi" else [*([f"mpicc.{wanted}"] if wanted else []), "mpicc", "mpicc.mpich", "mpicc.openmpi"]
    folders: list[str | None] = [None]
    if launcher is not None:
        suffix = Path(launcher).name.partition(".")[2]  # Debian's mpicc.mpich belongs to mpiexec.mpich
        if suffix and wanted != "smpi":
            names.insert(0, f"mpicc.{suffix}")
        folders = [str(Path(launcher).parent), str(Path(launcher).resolve().parent), None]
    tried: list[str] = []
    for folder in folders:
        for name in names:
            path = shutil.which(name, path=folder)
            if path is None or path in tried:
                continue
            tried.append(path)
            found = _inspect(path)
            if found is not None and (wanted is None or found.family in (wanted, "other")):
                return found
    what = _PACKAGES.get(wanted or "", "an MPI library (Debian and Ubuntu: apt-get install libmpich-dev, or libopenmpi-dev)")
    looked = f" ({', '.join(tried)}: not of it)" if tried else ""
    raise RecordError(f"no compiler for {what} was found{looked}: install it, or name the mpicc with --mpicc", code="missing-tool")


def _sources(timer: bool) -> list[Path]:
    return [_NATIVE / name for name in _TIMER] if timer else sorted(_NATIVE.glob("*.[ch]"))


def recorder_version() -> str:
    """A digest of the recorder's source, since its output may change with it."""
    return digest((), _sources(timer=False))


def library(compiler: Compiler, *, timer: bool = False) -> Path:
    """The compiled library for ``compiler``, from the cache or built now: the recorder or, with ``timer``, the library that only interposes
    MPI_Init, MPI_Finalize and the sections. Raises RecordError with the compiler's first error.
    """
    sources = _sources(timer)
    name = digest([*compiler.command(), *_FLAGS, compiler.header], sources)
    soname = TIMER_SONAME if timer else SONAME

    def make(made: Path) -> None:
        files = [str(p) for p in sources if p.suffix == ".c"]
        command = [*compiler.command(), *_FLAGS, f"-Wl,-soname,{soname}", "-o", str(made), *files, "-ldl"]
        compile_to(command, "the recorder", compiler.environment())

    return build_once(cache_dir("record") / f"{compiler.family}-{name}" / soname, make, what="the recorder of MPI calls")


_LINKED = (("libsimgrid.so", "smpi"), ("libmpich.so", "mpich"), ("libmpi.so.12", "mpich"), ("libmpi.so", "openmpi"))


def family_of_program(program: Path) -> str | None:
    """The MPI family of the library that an executable links, directly or indirectly; None for none (a script, an interpreter)."""
    try:
        with program.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return None
        done = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    except OSError:
        return None
    names = [line.split()[0] for line in done.stdout.splitlines() if line.split()]
    return next((family for start, family in _LINKED if any(n.startswith(start) for n in names)), None)
