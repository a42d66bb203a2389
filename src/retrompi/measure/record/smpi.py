"""Running a program on SimGrid's SMPI with the recorder interposed.

``smpirun`` loads a copy of the program per rank with RTLD_DEEPBIND: the program's own list of libraries precedes anything preloaded.
Therefore a copy of the program gets the recorder in SimGrid's place in that list; the recorder in turn links SimGrid.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.library import SONAME

__all__ = ["COMPILERS", "command_line", "compile_source", "private_copies", "relink"]

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
    """Write a copy of ``program`` that needs the recorder instead of libsimgrid.so. Raises RecordError if it does not need it.

    The recorder becomes the first of the needed libraries, so that it precedes the Fortran run-time library as well.
    """
    data = bytearray(program.read_bytes())
    needed = _needed_libraries(data)
    simgrid = next((n for n in needed if n.name.startswith("libsimgrid.so")), None)
    if simgrid is None:
        raise RecordError(
            f"{program} was not built by smpicc: give its source (.c, .f90, …), or build it with smpicc, smpicxx or smpif90",
            code="wrong-mpi",
        )
    if len(simgrid.name) < len(SONAME):
        raise RecordError(f"{program} needs {simgrid.name}, a name too short to put the recorder in its place")
    data[simgrid.at : simgrid.at + len(simgrid.name)] = SONAME.encode().ljust(len(simgrid.name), b"\0")
    struct.pack_into("<Q", data, simgrid.entry, needed[0].value)
    struct.pack_into("<Q", data, needed[0].entry, simgrid.value)
    target.write_bytes(data)
    target.chmod(0o755)


def private_copies(program: Path) -> list[str]:
    """smpirun's options that give every rank its own Fortran run-time library, if ``program`` has one; the copies are in $TMPDIR.

    Otherwise all ranks share its units: a second rank cannot open the same file or another one under the same number, and a rank that
    calls MPI within an output statement blocks the output of all others.
    """
    libraries = [n.name for n in _needed_libraries(program.read_bytes()) if re.fullmatch(r"libgfortran\.so\.\d+", n.name)]
    return [f"--cfg=smpi/privatize-libs:{';'.join(libraries)}"] if libraries else []


@dataclass(frozen=True)
class _Needed:
    """A library that a program needs: its name, where the name is in the file, and the entry's ``value`` and where that is."""

    name: str
    at: int
    value: int
    entry: int


_MOST_ENTRIES, _LONGEST_NAME = 4096, 255


def _needed_libraries(data: bytes | bytearray) -> list[_Needed]:
    """The libraries that a 64-bit little-endian ELF file needs; empty for any other file, and for one that no linker makes: anybody may
    have written it."""
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    try:
        table, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        segments = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(min(count, _MOST_ENTRIES))]
        dynamic = next(s for s in segments if s[0] == 2)
        last = dynamic[2] + min(dynamic[5], 16 * _MOST_ENTRIES)
        entries = [(*struct.unpack_from("<qQ", data, at), at + 8) for at in range(dynamic[2], last, 16)]
        strings = next(value for tag, value, _ in entries if tag == 5)  # DT_STRTAB, an address in memory
        # PT_LOAD: file offset of an address
        offset = next(s[2] + strings - s[3] for s in segments if s[0] == 1 and s[3] <= strings < s[3] + s[5])
        found = [(offset + value, value, at) for tag, value, at in entries if tag == 1]  # DT_NEEDED
        return [_Needed(_name(data, at), at, value, entry) for at, value, entry in found]
    except (struct.error, StopIteration, ValueError, OverflowError):
        return []


def _name(data: bytes | bytearray, at: int) -> str:
    """The text at an offset. ValueError where none ends within the length of a file's name."""
    return bytes(data[at : data.index(0, at, at + _LONGEST_NAME + 1)]).decode("ascii", "replace")


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
    return [
        smpirun, *wrapper(library), *private_copies(program), *where, "--cfg=smpi/host-speed:1e9", "--log=root.thresh:error",
        str(program), *arguments,
    ]


def wrapper(*libraries: Path) -> list[str]:
    """smpirun's option that preloads ``libraries`` for the program but not for the shell script that smpirun is."""
    return ["-wrapper", "env LD_PRELOAD=" + ":".join(map(str, libraries))]
