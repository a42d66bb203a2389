"""From the program named by the user to a runnable one: a source file is compiled with the chosen MPI and cached, a binary is inspected."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from retrompi.base.cache import cache_dir
from retrompi.base.errors import UsageError, nearest
from retrompi.measure.launch.execution import BackendError
from retrompi.measure.launch.mpiexec import FAMILIES, PACKAGES, TITLES, find_mpiexec
from retrompi.measure.record import RecordError
from retrompi.measure.record.compiled import making
from retrompi.measure.record.library import Compiler, family_of_program, find_compiler

__all__ = ["LANGUAGES", "Built", "build", "default_family", "is_source"]

LANGUAGES = {
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".f": "Fortran 77", ".f77": "Fortran 77", ".f90": "Fortran", ".f95": "Fortran",
    ".f03": "Fortran", ".f08": "Fortran",
}
_WRAPPERS = {
    "C": ("mpicc", "smpicc"),
    "C++": ("mpicxx", "smpicxx"),
    "Fortran 77": ("mpif77", "smpiff"),
    "Fortran": ("mpif90", "smpif90"),
}
_COMPILERS = {"C": "gcc", "C++": "g++", "Fortran 77": "gfortran", "Fortran": "gfortran"}
_FLAGS = ("-O2",)


@dataclass(frozen=True)
class Built:
    """A program that can be started: ``command`` (its path, or an interpreter and a script) and the ``family`` of its MPI (``mpich``,
    ``openmpi``, ``smpi``, ``other``). ``digest``: SHA-256 of its inputs. ``path``: as given by the user."""

    path: Path
    command: tuple[str, ...]
    family: str
    language: str
    digest: str


def is_source(program: str | Path) -> bool:
    """Whether it is a source file, by its suffix."""
    return Path(program).suffix.lower() in LANGUAGES


@functools.cache
def default_family() -> str | None:
    """The default MPI for source files: MPICH, else Open MPI, if compiler and launcher are installed; None: neither."""
    for family in FAMILIES:
        try:
            find_compiler(family)
            find_mpiexec(family)
            return family
        except (RecordError, BackendError):
            continue
    return None


def build(program: str, family: str | None = None) -> Built:
    """Make ``program`` ready for ``family`` (``mpich``, ``openmpi``, ``smpi``; None: what a binary links, else `default_family`).

    Raises UsageError for a wrong name, BackendError for a missing compiler (with the package to install), the compiler's first error in
    one line, and a binary of another MPI.
    """
    if family is not None and family not in (*FAMILIES, "smpi"):
        raise UsageError(f"--mpi {family}: no such MPI{nearest(family, FAMILIES)}", code="unknown-name")
    path = Path(program)
    if is_source(path):
        if not path.is_file():
            raise UsageError(f"{program}: no such source file", code="not-found")
        return _build_source(path, family or default_family())
    if path.suffix.lower() == ".py":
        if not path.is_file():
            raise UsageError(f"{program}: no such file", code="not-found")
        return _python(path, family)
    found = str(path.resolve()) if path.is_file() else shutil.which(program)
    if found is None:
        kinds = ", ".join([*LANGUAGES, ".py"])
        raise UsageError(f"{program}: no such program; give a source file ({kinds}) or a binary linked with an MPI", code="not-found")
    return _binary(Path(found), family)


def _binary(path: Path, family: str | None) -> Built:
    linked = family_of_program(path)
    if linked is None:
        raise BackendError(
            f"{path.name} links no MPI library that is known here (MPICH, Open MPI, SMPI): is it an MPI program, linked dynamically?",
            code="wrong-mpi",
        )
    if family is not None and family != linked:
        hint = (
            "give its source, or build it with smpicc, smpicxx or smpif90"
            if family == "smpi"
            else f"build it with the mpicc of {TITLES[family]}"
        )
        raise BackendError(f"{path.name} is linked with {TITLES[linked]}, not with {TITLES[family]}: {hint}", code="wrong-mpi")
    return Built(path, (str(path),), linked, "binary", _sha256(path))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- mpi4py ------------------------------------------------------------------------------------------------------------------


def _interpreters() -> list[str]:
    """Python interpreters that may have mpi4py: the user's is the first on the PATH, ours may be in a separate environment."""
    names = [shutil.which("python3"), shutil.which("python"), "/usr/bin/python3", sys.executable]
    return list(dict.fromkeys(n for n in names if n is not None and Path(n).is_file()))


_ASK = "import importlib.util as u; s = u.find_spec('mpi4py'); print(s.submodule_search_locations[0] if s else '')"


@functools.cache
def _mpi4py(interpreter: str) -> dict[str, str]:
    """MPI family -> extension module of mpi4py in this interpreter; empty when mpi4py is missing."""
    done = subprocess.run([interpreter, "-c", _ASK], capture_output=True, text=True)
    folder = done.stdout.strip()
    if done.returncode != 0 or not folder:
        return {}
    found: dict[str, str] = {}
    for module in sorted(Path(folder).glob("MPI*.so")):
        linked = family_of_program(module)
        if linked is not None:
            found.setdefault(linked, str(module))
    return found


def _python(path: Path, family: str | None) -> Built:
    """An mpi4py script runs with the MPI that mpi4py was built for."""
    if family == "smpi":
        raise BackendError(
            f"{path.name}: a Python program cannot run on SMPI, which loads the program once a rank into one process; use native or model"
        )
    tried = []
    for interpreter in _interpreters():
        having = _mpi4py(interpreter)
        for linked in [family] if family is not None else list(having):
            if linked in having:
                return Built(path, (interpreter, str(path.resolve())), linked, "Python", _sha256(path))
        tried += [f"{interpreter} has it for {TITLES.get(k, k)}" for k in having]
    if tried:
        raise BackendError(f"{path.name}: no mpi4py for {TITLES.get(family or '', family)} ({'; '.join(tried)})", code="missing-tool")
    raise BackendError(
        f"{path.name}: no Python with mpi4py was found (Debian and Ubuntu: apt-get install python3-mpi4py, or pip install mpi4py)",
        code="missing-tool",
    )


# -- compiling ---------------------------------------------------------------------------------------------------------------


def _wrapper(language: str, family: str | None) -> tuple[str, Compiler]:
    """The compiler's path for a language, and the ``mpicc`` beside it, which identifies its MPI."""
    native, smpi = _WRAPPERS[language]
    try:
        compiler = find_compiler(family)
    except RecordError as error:
        raise BackendError(str(error).replace(", or name the mpicc with --mpicc", ""), code=error.code) from error
    if family == "smpi":
        wrapper = shutil.which(smpi)
    else:
        # Debian's mpicc.mpich belongs to mpif90.mpich; elsewhere they are in the same folder.
        folder, name = Path(compiler.path).parent, Path(compiler.path).name
        wrapper = shutil.which(name.replace("mpicc", native, 1), path=str(folder))
        if wrapper is not None and native == "mpicc":
            wrapper = compiler.path
    if wrapper is None:
        package = PACKAGES.get(compiler.family, ("", "libmpich-dev"))[1]
        raise BackendError(
            f"no {smpi if family == 'smpi' else native} beside {compiler.path}: install {package} "
            f"(Debian and Ubuntu: apt-get install {package})",
            code="missing-tool",
        )
    return wrapper, compiler


def _cache(source: Path, wrapper: str, compiler: Compiler) -> Path:
    text = "\0".join([wrapper, compiler.family, compiler.header, *_FLAGS, source.name])
    digest = hashlib.sha256(text.encode() + source.read_bytes() + str(source.resolve().parent).encode())
    return cache_dir("programs") / digest.hexdigest()[:24]


def _fresh(folder: Path, target: Path) -> bool:
    """Whether the compiled program is up to date with its headers."""
    try:
        known = json.loads((folder / "headers.json").read_text(encoding="utf-8"))
        return target.is_file() and all(_sha256(Path(path)) == digest for path, digest in known.items())
    except (OSError, ValueError):
        return False


def _build_source(source: Path, family: str | None) -> Built:
    language = LANGUAGES[source.suffix.lower()]
    wrapper, compiler = _wrapper(language, family)
    folder = _cache(source, wrapper, compiler)
    target = folder / source.stem
    if not _fresh(folder, target):
        _compile(source, language, wrapper, folder, target)
    return Built(source, (str(target),), compiler.family, language, _sha256(target))


def _compile(source: Path, language: str, wrapper: str, folder: Path, target: Path) -> None:
    with making(folder, BackendError) as work:
        made, needs = work / source.stem, work / "needs.d"
        depend = ["-MMD", "-MF", str(needs)] if language in ("C", "C++") else []
        # Fortran modules are written to the compiler's working directory; only gfortran has -J.
        command = [wrapper, *_FLAGS, *depend, "-o", str(made), str(source.resolve()), f"-I{source.resolve().parent}", "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=work, stdin=subprocess.DEVNULL)
        except OSError as e:
            raise BackendError(f"{wrapper} cannot be run: {e.strerror or e}") from e
        if done.returncode != 0 or not made.is_file():
            raise BackendError(first_error(done.stderr + done.stdout, source, _COMPILERS[language]) + f" ({Path(wrapper).name})")
        headers = {path: _sha256(Path(path)) for path in _needs(needs, source, work)}
        made.rename(target)
        (work / "headers.json").write_text(json.dumps(headers), encoding="utf-8")
        (work / "headers.json").rename(folder / "headers.json")


def _needs(file: Path, source: Path, work: Path) -> list[str]:
    """The program's own headers, from the dependency rule that the compiler prints for make."""
    try:
        words = file.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ").partition(":")[2].split()
    except OSError:
        return []
    return [str(path) for word in words if (path := (work / word).resolve()) != source.resolve() and path.is_file()]


_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)?\s*(?:fatal )?error:\s*(?P<what>.*)$")
_PLACE = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+:\s*$")


def first_error(text: str, source: Path, compiler: str) -> str:
    """The first error in a compiler's output: ``file:line: what``. Understands gcc, clang and gfortran; else the first line with an error.

    ``compiler``: the compiler behind the MPI's wrapper, named with its package when it is missing.
    """
    place = ""
    lines = text.splitlines()
    for line in lines:
        if found := _ERROR.match(line):
            return f"{_name(found['file'], source)}:{found['line']}: {found['what']}"
        if found := _PLACE.match(line):  # gfortran prints the location some lines before the error
            place = f"{_name(found['file'], source)}:{found['line']}: "
        elif line.startswith(("Error:", "Fatal Error:")):
            return place + line.partition("rror: ")[2]
    if any("not found" in line and compiler in line for line in lines):
        return f"{source}: {compiler} is not installed (Debian and Ubuntu: apt-get install {compiler})"
    said = [line for line in lines if "rror" in line or "undefined reference" in line or "not found" in line]
    return f"{source} does not compile: " + (said or lines or ["no message"])[0].strip()


def _name(file: str, source: Path) -> str:
    # smpif90 compiles a copy, NAME.f90_RANDOM.f90
    return str(source) if Path(file).name.startswith(source.name) else file
