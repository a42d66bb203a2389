"""Running a program on SimGrid's SMPI with the recorder interposed.

``smpirun`` loads a copy of the program per rank with RTLD_DEEPBIND: the program's own list of libraries precedes anything preloaded.
Therefore a copy of the program gets the recorder in SimGrid's place in that list; the recorder in turn links SimGrid.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.library import SONAME

__all__ = ["COMPILERS", "command_line", "compile_source", "relink"]

COMPILERS = {".c": "smpicc", ".cc": "smpicxx", ".cpp": "smpicxx", ".cxx": "smpicxx", ".f": "smpiff", ".f77": "smpiff", ".f90": "smpif90"}
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="capture" prefix="node" suffix="" radical="0-{last}" speed="1Gf" bw="12.5MBps" lat="50us"/>
</platform>
"""


def compile_source(source: Path, folder: Path) -> Path:
    """Compile a source file with SMPI's compiler for its language. Raises RecordError with the compiler's first error."""
    name = COMPILERS[source.suffix.lower()]
    compiler = shutil.which(name)
    if compiler is None:
        raise RecordError(
            f"{name} was not found: install SimGrid's SMPI (Debian and Ubuntu: apt-get install libsimgrid-dev)", code="missing-tool"
        )
    target = folder / source.stem
    done = subprocess.run([compiler, "-O2", "-o", str(target.resolve()), str(source), "-lm"], capture_output=True, text=True)
    if done.returncode != 0 or not target.is_file():
        errors = [line for line in (done.stderr + done.stdout).splitlines() if "rror" in line]
        raise RecordError(f"{name} cannot compile {source}: {errors[0] if errors else 'no message'}")
    return target


def relink(program: Path, target: Path) -> None:
    """Write a copy of ``program`` that needs the recorder instead of libsimgrid.so. Raises RecordError if it does not need it."""
    data = bytearray(program.read_bytes())
    at = _needed_simgrid(data)
    if at is None:
        raise RecordError(
            f"{program} was not built by smpicc: give its source (.c, .f90, …), or build it with smpicc, smpicxx or smpif90",
            code="wrong-mpi",
        )
    end = data.index(0, at)
    if end - at < len(SONAME):
        raise RecordError(f"{program} needs {bytes(data[at:end]).decode()}, a name too short to put the recorder in its place")
    data[at:end] = SONAME.encode().ljust(end - at, b"\0")
    target.write_bytes(data)
    target.chmod(0o755)


def _needed_simgrid(data: bytearray) -> int | None:
    """Offset of the name of the needed SimGrid library in a 64-bit little-endian ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        table, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        segments = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
        dynamic = next((s for s in segments if s[0] == 2), None)
        if dynamic is None:
            return None
        entries = [struct.unpack_from("<qQ", data, dynamic[2] + i) for i in range(0, dynamic[5], 16)]
        strings = next(value for tag, value in entries if tag == 5)  # DT_STRTAB, an address in memory
        # PT_LOAD: file offset of an address
        offset = next(s[2] + strings - s[3] for s in segments if s[0] == 1 and s[3] <= strings < s[3] + s[5])
        names = [offset + value for tag, value in entries if tag == 1]  # DT_NEEDED
    except (struct.error, StopIteration):
        return None
    return next((at for at in names if data[at : at + 13] == b"libsimgrid.so"), None)


def command_line(program: Path, arguments: list[str], ranks: int, library: Path, folder: Path) -> list[str]:
    """The command that runs ``program`` on ``ranks`` one-core hosts. The recorded MPI calls do not depend on these."""
    smpirun = shutil.which("smpirun")
    if smpirun is None:
        raise RecordError(
            "smpirun was not found: install SimGrid's SMPI (Debian and Ubuntu: apt-get install libsimgrid-dev)", code="missing-tool"
        )
    platform, hosts = folder / "platform.xml", folder / "hosts"
    platform.write_text(_PLATFORM.format(last=ranks - 1))
    hosts.write_text("".join(f"node{k}\n" for k in range(ranks)))
    # The computation that SMPI itself simulates does not matter: the recorder measures it separately.
    where = ["-np", str(ranks), "-platform", str(platform), "-hostfile", str(hosts)]
    return [smpirun, *wrapper(library), *where, "--cfg=smpi/host-speed:1e9", "--log=root.thresh:error", str(program), *arguments]


def wrapper(*libraries: Path) -> list[str]:
    """smpirun's option that preloads ``libraries`` for the program but not for the shell script that smpirun is."""
    return ["-wrapper", "env LD_PRELOAD=" + ":".join(map(str, libraries))]
