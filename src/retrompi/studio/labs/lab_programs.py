"""A student's own program in a job: compiled, run and recorded in a box (`retrompi.labs.sandbox`), never outside of one."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError, UsageError
from retrompi.base.translate import _

__all__ = ["execute", "record_program"]

MOST_RANKS = 32
MOST_SHOWN = 4000
"""Characters of a program's output that are shown."""


def _source(asked: Mapping[str, str], place: Path) -> tuple[Path, int]:
    """(the source file, the number of ranks). UsageError where no program can be run."""
    from retrompi.labs import sandbox

    if why := sandbox.missing():
        raise UsageError(_("This server cannot run programs. {why}").format(why=why), code="missing-tool")
    found = asked.get("ranks", "")
    if not re.fullmatch(r"\d{1,3}", found) or not 1 <= int(found) <= MOST_RANKS:
        raise UsageError(f"'{found[:20]}': from 1 to {MOST_RANKS} ranks are run here", code="out-of-range")
    file = place / "exchange.c"
    if not file.is_file():
        raise UsageError("there is no program exchange.c among your files", code="not-found")
    return file, int(found)


def _compile(file: Path, compiler: str, work: Path) -> Path:
    """The program; InputError with the compiler's messages if it cannot be compiled."""
    from retrompi.labs import sandbox

    if shutil.which(compiler) is None:
        raise UsageError(_("{tool} is not installed on this server.").format(tool=compiler), code="missing-tool")
    mine = work / file.name
    shutil.copyfile(file, mine)
    program = work / "exchange"
    made = sandbox.run([compiler, "-O1", "-Wall", "-o", str(program), str(mine), "-lm"], work, wanted=[program])
    if made.code != 0 or not program.is_file():
        lines = [x for x in made.output.replace(f"{sandbox.PLACE}/", "").splitlines() if x.strip()]
        raise InputError(f"{compiler} cannot compile it: {' · '.join(lines[:6])[:600] or 'no message'}", file.name)
    program.chmod(0o755)
    return program


def _end_text(done: Any) -> str:
    from retrompi.labs import sandbox

    if done.timed_out:
        return _("It did not end within {seconds} s and was ended.").format(seconds=sandbox.SECONDS)
    if done.too_large:
        told = _("It took more than {size} MiB of memory, its files included, or made more than {files} files, and was ended.")
        return told.format(size=sandbox.MEMORY_B >> 20, files=sandbox.FILES)
    return _("It ended with exit code {code} after {seconds} s.").format(code=done.code, seconds=f"{done.wall_s:.2f}")


def execute(asked: Mapping[str, str], place: Path) -> dict[str, Any]:
    """Compiles and runs the program, natively or under SMPI (``backend``)."""
    file, ranks = _source(asked, place)
    with tempfile.TemporaryDirectory(prefix="retrompi-lab-") as name:
        return _execute(asked, file, ranks, Path(name))


def _execute(asked: Mapping[str, str], file: Path, ranks: int, work: Path) -> dict[str, Any]:
    from retrompi.labs import sandbox
    from retrompi.measure.launch.mpiexec import command_line, find_mpiexec
    from retrompi.measure.record.library import find_compiler

    work = work.resolve()
    if asked.get("backend") == "smpi":
        program = _compile(file, "smpicc", work)
        (work / "hosts").write_text("\n".join(f"h{i}" for i in range(ranks)) + "\n", encoding="utf-8")
        hosts = "".join(f'<host id="h{i}" speed="1Gf"/><link id="l{i}" bandwidth="12.5MBps" latency="100us"/>' for i in range(ranks))
        routes = "".join(
            f'<route src="h{a}" dst="h{b}"><link_ctn id="l{a}"/><link_ctn id="l{b}"/></route>' for a in range(ranks) for b in range(a)
        )
        (work / "room.xml").write_text(
            '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
            f'<zone id="room" routing="Full">{hosts}{routes}</zone></platform>', encoding="utf-8")
        words = ["smpirun", "-np", str(ranks), "-platform", str(work / "room.xml"), "-hostfile", str(work / "hosts"),
                 "--cfg=smpi/host-speed:1e9", "--log=root.thresh:error", str(program)]
    else:
        program = _compile(file, "mpicc", work)
        # Of the MPI that it was compiled for: another one's starts as many jobs of one rank.
        launcher = find_mpiexec(find_compiler(None, given="mpicc").family)
        words = command_line(launcher, ranks, [str(program)], cores=0)
    done = sandbox.run(words, work)
    plain = _("A plain network of {rate} and {latency} is simulated here; in a terminal 'retrompi run' also has the costs of a runtime.")
    note = [plain.format(rate="100 Mbit/s", latency="200 us")] if asked.get("backend") == "smpi" else []
    said = done.output.replace(f"{sandbox.PLACE}/", "")
    shown = [line for line in said[:MOST_SHOWN].splitlines() if line.strip()][:60]
    if len(said) > MOST_SHOWN:
        shown.append(_("… {count} characters more").format(count=len(said) - MOST_SHOWN))
    return {"lines": [_end_text(done), *note, *shown], "cautions": [], "tables": [], "figures": {}}


def record_program(asked: Mapping[str, str], place: Path) -> dict[str, Any]:
    """Records the program's trace under SMPI, or natively where only an MPI is; the trace becomes one of the student's files."""
    from retrompi.labs import lab

    file, ranks = _source(asked, place)
    with tempfile.TemporaryDirectory(prefix="retrompi-lab-") as name:
        trace = lab.lab("09").reference.recorded(file, ranks, Path(name), True)
        packed = Path(name) / "trace.tar.zst"
        if packed.stat().st_size > lab.lab("09").reference.LARGEST_FILE:
            raise InputError(f"its trace has {trace.actions} actions, far more than the pattern", file.name, code="too-large")
        files = {"trace.tar.zst": packed.read_bytes().hex()}
    line = _("{ranks} ranks, {actions} actions recorded; the trace is among your files as trace.tar.zst").format(
        ranks=trace.ranks, actions=trace.actions)
    return {"lines": [line], "cautions": [], "tables": [], "figures": {}, "files": files}
