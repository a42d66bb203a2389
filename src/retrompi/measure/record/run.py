"""Running a program with the recorder preloaded."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from retrompi.base.scratch import folder as temporary
from retrompi.base.signals import termination_handled
from retrompi.measure.record import smpi
from retrompi.measure.record.assemble import Recording, assemble
from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.library import family_of_program, find_compiler, library
from retrompi.measure.record.rank_state import names_of
from retrompi.measure.record.rate import machine_rate
from retrompi.sim.processes import end_with_parent
from retrompi.traces.computation import Rate

__all__ = ["Clock", "Launcher", "files_of", "find_launcher", "record", "with_environment"]

_COUNTERS = {"instructions": 1, "cycles": 0}  # linux/perf_event.h: PERF_COUNT_HW_*
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319}  # the system call's number


@dataclass(frozen=True)
class Clock:
    """How computation between calls is measured.

    ``kind``: ``cpu`` (time of the calling thread), ``wall``, ``instructions`` or ``cycles``. ``rate``: what a second counts as in the
    trace (flop/s), or an event of a counter (flop); None: the measured rate of this machine (`machine_rate`), 1 flop an event.
    ``source``: where a given rate comes from. ``threshold``: bursts shorter than this many ns (or events) are added to the next one.
    """

    kind: str = "cpu"
    rate: float | None = None
    threshold: int = 1000
    source: str = "given by --rate"

    @property
    def counts(self) -> bool:
        """Whether it counts events, not time."""
        return self.kind in _COUNTERS


@dataclass(frozen=True)
class Launcher:
    """The program that starts the ranks: its path and ``kind`` (``hydra``, ``openmpi``, ``smpirun`` or ``other``)."""

    path: str
    kind: str

    @property
    def family(self) -> str | None:
        """The MPI family whose programs it starts; None when unknown."""
        return {"hydra": "mpich", "openmpi": "openmpi", "smpirun": "smpi"}.get(self.kind)


_LAUNCHERS = re.compile(r"(?:mpiexec|mpirun|orterun|prterun|prun|srun|aprun|jsrun|ibrun|smpirun)(?:[._-].*)?")


def find_launcher(word: str) -> Launcher | None:
    """The launcher named by the first word of the command; None when that is the program itself."""
    if not _LAUNCHERS.fullmatch(Path(word).name):
        return None
    path = shutil.which(word)
    if path is None:
        raise RecordError(
            f"{word}: no such launcher; Debian and Ubuntu: apt-get install mpich or openmpi-bin (smpirun: libsimgrid-dev)",
            code="missing-tool",
        )
    if Path(path).name.startswith("smpirun"):
        return Launcher(path, "smpirun")
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
        said = done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    if re.search(r"hydra|intel\(r\) mpi", said, re.IGNORECASE):
        return Launcher(path, "hydra")
    if re.search(r"open ?mpi|openrte|prrte", said, re.IGNORECASE):
        return Launcher(path, "openmpi")
    return Launcher(path, "other")


def _program(words: Sequence[str]) -> tuple[int, Path] | None:
    """Index and path of the first word that is an executable file: the program after a launcher's options."""
    for i, word in enumerate(words):
        path = shutil.which(word)
        if path is not None:
            return i, Path(path)
    return None


def _command_text(command: Sequence[str]) -> str:
    """The command as written to the trace: absolute paths without their folders."""
    return " ".join(Path(w).name if w.startswith("/") else w for w in command)


def _check_clock(clock: Clock) -> None:
    """Raises RecordError when this host does not count the events that ``clock`` needs."""
    if clock.kind not in _COUNTERS:
        return
    number = _PERF_EVENT_OPEN.get(os.uname().machine)
    why = f"not known how on {os.uname().machine}"
    if number is not None:
        attributes = bytearray(128)  # struct perf_event_attr: type 0 (hardware), size, config, …
        attributes[4:8] = (128).to_bytes(4, sys.byteorder)
        attributes[8:16] = _COUNTERS[clock.kind].to_bytes(8, sys.byteorder)
        attributes[40:48] = (1 << 5 | 1 << 6).to_bytes(8, sys.byteorder)  # exclude_kernel, exclude_hv
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = (ctypes.c_char * 128).from_buffer(attributes)
        fd = int(libc.syscall(number, buffer, 0, -1, -1, 0))
        if fd >= 0:
            os.close(fd)
            return
        why = os.strerror(ctypes.get_errno())
    raise RecordError(
        f"--clock {clock.kind}: this host does not count them ({why}): a virtual machine without counters, or "
        f"/proc/sys/kernel/perf_event_paranoid above 2; --clock cpu needs none"
    )


def with_environment(launcher: Launcher | None, command: list[str], variables: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command and its environment such that the ranks have ``variables`` and, if possible, the launcher has not."""
    if launcher is not None and launcher.kind == "hydra":
        return [launcher.path, *(w for name, value in variables.items() for w in ("-genv", name, value)), *command[1:]], dict(os.environ)
    if launcher is not None and launcher.kind == "openmpi":
        plain = {name: value for name, value in variables.items() if name != "LD_PRELOAD"}
        export = [*(w for name in plain for w in ("-x", name)), "-x", f"LD_PRELOAD={variables['LD_PRELOAD']}"]
        # In an MPMD launch each program has its own environment.
        rest = [w for word in command[1:] for w in ([word, *export] if word == ":" else [word])]
        return [launcher.path, *export, *rest], {**os.environ, **plain}
    return command, {**os.environ, **variables}


def record(
    command: Sequence[str],
    out: str | Path,
    *,
    mpicc: str | None = None,
    use_smpi: bool = False,
    ranks: int | None = None,
    clock: Clock | None = None,
    whole_command: bool = False,
    check: bool = True,
    runner: Callable[[list[str], dict[str, str]], int] | None = None,
    beside: Sequence[Path] = (),
    family: str | None = None,
) -> Recording:
    """Run ``command`` (a launcher and a program, or a program) and write its trace to ``out``: a folder, or NAME.tar.zst.

    With ``use_smpi`` the program (a source file, a binary of smpicc, or a whole smpirun command) runs on ``ranks`` simulated hosts.
    ``whole_command``: the trace's header has full absolute paths. ``check``: read the trace back. ``runner``: runs the command line with
    the environment and returns the exit code; by default in the foreground. ``beside``: libraries to load after the recorder (SMPI only).
    ``family``: the MPI that the program was built with; None: the program is asked (by ldd: not for a program of somebody else's).
    Raises RecordError.
    """
    clock = clock or Clock()
    words = list(command)
    target = Path(out)
    if not words:
        raise RecordError("nothing to record: give a command after --, e.g. -- mpiexec -n 4 ./app", code="bad-usage")
    part = _new_part(target, out, clock)
    rate = _rate(clock)
    launcher = find_launcher(words[0])
    use_smpi = use_smpi or (launcher is not None and launcher.kind == "smpirun")
    shown = " ".join(words) if whole_command else _command_text(words)
    with temporary("record") as name:
        work = Path(name)
        if use_smpi:
            words, recorder = _prepare_smpi(words, launcher, ranks, mpicc, work, beside)
        else:
            if ranks is not None:
                raise RecordError("-n is for --smpi; a launcher takes its own: -- mpiexec -n 4 ./app", code="bad-usage")
            recorder = _prepare(words, launcher, mpicc, family)
        variables = {
            "RETROMPI_RECORD_DIR": str(part.resolve()),
            "RETROMPI_RECORD_CLOCK": clock.kind,
            "RETROMPI_RECORD_RATE": repr(rate.flops),
            "RETROMPI_RECORD_SOURCE": "" if clock.counts else rate.source,
            "RETROMPI_RECORD_THRESHOLD": str(clock.threshold),
            "RETROMPI_RECORD_COMMAND": shown,
        }
        if use_smpi:
            # smpirun puts its copies of program and libraries into $TMPDIR, which another run must not overwrite (its -tmpdir is broken)
            environment = {**os.environ, **variables, "TMPDIR": str(name)}
        else:
            before = os.environ.get("LD_PRELOAD")
            variables["LD_PRELOAD"] = str(recorder) + (f":{before}" if before else "")
            words, environment = with_environment(launcher, words, variables)
        code = _carry_out(words, environment, part, runner or _run)
    return assemble(part, target, code, check=check)


def _new_part(target: Path, out: str | Path, clock: Clock) -> Path:
    """The folder in which the recorder writes. Raises RecordError where it or the trace exists, and for a clock that is not here."""
    if target.exists():
        raise RecordError(f"{out} exists; choose another name with --out", code="exists-already")
    _check_clock(clock)
    part = _part(target)
    if part.exists():
        raise RecordError(
            f"{part} exists: another recording, or what an interrupted one left (--finish {part} makes a trace of it)",
            code="exists-already",
        )
    return part


def _carry_out(words: list[str], environment: dict[str, str], part: Path, runner: Callable[[list[str], dict[str, str]], int]) -> int:
    """The exit code of the command line, which writes into ``part``. Raises RecordError."""
    try:
        part.mkdir(parents=True)
    except OSError as e:
        raise RecordError(f"{part} cannot be made: {e.strerror or e}", code="unwritable-file") from e
    try:
        return runner(words, environment)
    except OSError as e:
        part.rmdir()
        raise RecordError(f"{words[0]} cannot be run: {e.strerror or e}", code="not-found") from e


def _part(out: Path) -> Path:
    """The folder of a recording that is not assembled yet."""
    return out.with_name(out.name + ".part")


def files_of(out: Path, ranks: int) -> Iterator[Path]:
    """The files that the recorder writes for the trace ``out`` of a program of that many ranks: for a ``runner`` that has to fetch them."""
    return (_part(out) / name for rank in range(ranks) for name in names_of(rank))


def _rate(clock: Clock) -> Rate:
    if clock.rate is not None:
        return Rate(clock.rate, clock.source)
    return Rate(1.0, "") if clock.counts else machine_rate().rate


def _prepare(words: list[str], launcher: Launcher | None, mpicc: str | None, family: str | None) -> Path:
    """The library for a native run."""
    found = _program(words[1:] if launcher is not None else words)
    if found is None:
        raise RecordError(f"no program was found in '{' '.join(words)}'" + ("" if launcher else "; is it executable?"), code="not-found")
    linked = family or family_of_program(found[1])
    if linked == "smpi":
        raise RecordError(f"{found[1].name} was built by smpicc: record it with --smpi -n RANKS -- {found[1].name}", code="wrong-mpi")
    wanted = linked or (launcher.family if launcher is not None else None)
    started = launcher.family if launcher is not None else None
    if linked is not None and started is not None and linked != started:
        raise RecordError(
            f"{found[1].name} is linked with {linked}, but {launcher.path if launcher else ''} starts {started} programs", code="wrong-mpi"
        )
    return library(find_compiler(wanted, launcher.path if launcher is not None else None, mpicc))


def _prepare_smpi(
    words: list[str], launcher: Launcher | None, ranks: int | None, mpicc: str | None, work: Path, beside: Sequence[Path]
) -> tuple[list[str], Path]:
    """The command and the library for a run on SMPI."""
    if launcher is not None and launcher.kind != "smpirun":
        raise RecordError("--smpi runs the program itself: --smpi -n 4 -- ./app, without mpiexec", code="bad-usage")
    recorder = library(find_compiler("smpi", None, mpicc))
    if re.search(r"\s", str(recorder)):  # smpirun splits its wrapper option at blanks
        recorder = Path(shutil.copy(recorder, work))
    if launcher is not None:
        found = _program(words[1:])
        if found is None:
            raise RecordError(f"no program was found in '{' '.join(words)}'", code="not-found")
        place, program = found
        smpi.relink(program, work / program.name)
        before = [launcher.path, *smpi.wrapper(recorder, *beside), *smpi.private_copies(program), *words[1 : place + 1]]
        return [*before, str(work / program.name), *words[place + 2 :]], recorder
    if ranks is None:
        raise RecordError("--smpi needs the number of ranks: --smpi -n 4 -- ./app", code="bad-usage")
    given = Path(words[0])
    if given.suffix.lower() in smpi.COMPILERS:
        if not given.is_file():
            raise RecordError(f"{words[0]}: no such source file", code="not-found")
        program = smpi.compile_source(given, work)
    else:
        path = shutil.which(words[0])
        if path is None:
            kinds = ", ".join(smpi.COMPILERS)
            raise RecordError(f"{words[0]}: no such program; --smpi takes a binary of smpicc or a source file ({kinds})", code="not-found")
        program = Path(path)
    linked = work / (program.name + ".recorded")
    smpi.relink(program, linked)
    return smpi.command_line(linked, words[1:], ranks, recorder, work), recorder


def _run(words: list[str], environment: dict[str, str]) -> int:
    """The command's exit code; an interrupt reaches the command (same terminal), whose end is then awaited."""
    process = subprocess.Popen(words, env=environment, preexec_fn=partial(end_with_parent, os.getpid(), signal.SIGTERM))
    with termination_handled(process.send_signal):
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
