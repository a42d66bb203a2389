"""The measuring programs: compiled with the MPI they measure, kept in the user's cache, run on two pinned ranks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retrompi.base.cache import cache_dir
from retrompi.measure.launch import mpi_job
from retrompi.measure.launch.execution import BackendError
from retrompi.measure.launch.mpiexec import command_line, find_mpiexec
from retrompi.measure.launch.profile import library_name
from retrompi.measure.record.compiled import build_once, compile_to, digest
from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.library import Compiler, find_compiler

__all__ = ["BenchRow", "PairBench", "parse", "two_ranks", "version"]

_NATIVE = Path(__file__).with_name("native")
_FLAGS = ("-std=gnu11", "-O2")
_TIMEOUT_S = 240.0
_END = "done 0 0"


@dataclass(frozen=True)
class BenchRow:
    """One output line of a measuring program: what, the size in bytes, the round (continued over launches), and its values (usually ns)."""

    what: str
    size: int
    round: int
    values: tuple[float, ...]


def parse(text: str, launch: int = 0, rounds: int = 1) -> list[BenchRow]:
    """The rows a program printed; round numbers continue over launches. Raises BackendError for an invalid line."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        try:
            rows.append(BenchRow(words[0], int(words[1]), int(words[2]) + launch * rounds, tuple(float(w) for w in words[3:])))
        except (IndexError, ValueError):
            raise BackendError(f"the measuring program wrote '{line[:60]}', which is not a measurement") from None
    return rows


def program(compiler: Compiler) -> Path:
    """The compiled program for ``compiler``, from the cache or made now. Raises BackendError with the compiler's first error."""
    sources = sorted(_NATIVE.glob("*.[ch]"))
    name = digest([*compiler.command(), *_FLAGS, compiler.header], sources)

    def make(made: Path) -> None:
        files = [str(p) for p in sources if p.suffix == ".c"]
        compile_to([*compiler.command(), *_FLAGS, "-o", str(made), *files], "the measuring programs", compiler.environment(), BackendError)

    return build_once(cache_dir("machine") / f"{compiler.family}-{name}" / "measure", make, error=BackendError)


@dataclass
class PairBench:
    """Two ranks of one MPI on two cores of this machine. ``words``: the launcher's command line without the program."""

    family: str
    program: Path
    words: tuple[str, ...]
    cores: str
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    launches: int = 0
    timeout_s: float = _TIMEOUT_S

    def run(self, what: str, sizes: Sequence[int] = (), *, rounds: int, quick: bool, launches: int = 1) -> list[BenchRow]:
        """Rows of one measurement, started ``launches`` times. Raises BackendError when it fails or does not end."""
        rows: list[BenchRow] = []
        for launch in range(launches):
            command = [*self.words, str(self.program), what, str(rounds), str(int(quick)), self.cores, *(str(s) for s in sizes)]
            ended = mpi_job.run(command, self.environment, self.timeout_s)
            self.launches += 1
            said_all = ended.output.rstrip().endswith(_END)  # errors in MPI_Finalize do not affect the measurement
            if not said_all:
                why = f"did not end within {self.timeout_s:.0f} s" if ended.timed_out else f"ended with code {ended.code}"
                said = next((line for line in ended.errors.splitlines() if line.strip()), "")
                raise BackendError(f"measuring '{what}' {why}{f': {said[:200]}' if said else ''}")
            rows += [r for r in parse(ended.output, launch, rounds) if r.what != "done"]
        return rows


def two_ranks(family: str) -> PairBench:
    """Two ranks of ``family`` (mpich, openmpi) on this machine's first two cores. Raises BackendError when something is missing."""
    if not hasattr(os, "sched_getaffinity"):
        raise BackendError("measuring needs Linux: ranks are pinned to cores by sched_setaffinity")
    launcher = find_mpiexec(family)
    try:
        compiler = find_compiler(family, launcher.path)
    except RecordError as error:
        raise BackendError(str(error).replace(", or name the mpicc with --mpicc", ""), code=error.code) from error
    cores = mpi_job.cores()
    if len(cores) < 2:
        raise BackendError("measuring two ranks needs two cores; this process may use one")
    return PairBench(family, program(compiler), tuple(command_line(launcher, 2, [], len(cores))), f"{cores[0]},{cores[1]}")


def version(one: PairBench) -> tuple[str, str]:
    """(``MPICH 4.0.2``, the library's own version text). Raises BackendError when it does not run."""
    rows = mpi_job.run([*one.words, str(one.program), "version", "1", "1", one.cores], one.environment, _TIMEOUT_S)
    if rows.code != 0:
        raise BackendError(f"{one.words[0]} cannot start two ranks: {rows.errors.strip()[:200] or f'code {rows.code}'}")
    return library_name(rows.output), rows.output.strip()
