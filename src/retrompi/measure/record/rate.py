"""The rate of this machine's processor: the mean of the maxima of the 17 Rinf1 loops, which is what `flops` of a platform means."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from retrompi.base.cache import cache_dir
from retrompi.measure.record.compiled import build_once, compile_to, digest
from retrompi.measure.record.errors import RecordError
from retrompi.traces.computation import Rate

__all__ = ["LOOPS", "MachineRate", "machine_rate", "processor"]

LOOPS = 17
_SOURCE = Path(__file__).with_name("native") / "rate" / "rinf1.c"
_FLAGS = ("-std=gnu11", "-O2")
_VALID_S = 24 * 3600.0
_DIGITS = 4


@dataclass(frozen=True)
class MachineRate:
    """``flops``: flop/s; ``loops``: the largest rate of each loop; ``processor`` as /proc/cpuinfo names it; ``at``: seconds since 1970."""

    flops: float
    loops: dict[str, float]
    processor: str
    at: float

    @property
    def rate(self) -> Rate:
        """As a fact of a trace."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self.at))
        return Rate(self.flops, f"measured: mean of the maxima of the {LOOPS} Rinf1 loops on {self.processor}, {day}")


def processor() -> str:
    """The processor's name as the recorder writes it into a trace."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown"


def machine_rate(compiler: str | None = None, *, fresh: bool = False) -> MachineRate:
    """The rate of this machine, measured now (about a second) or within the last day on the same processor.

    The loops are compiled once with ``cc -O2``, else with ``compiler``. Raises RecordError when they cannot be compiled or run.
    """
    cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or compiler
    if cc is None:
        raise RecordError("no C compiler to measure the rate of this machine; state it with --rate", code="missing-tool")
    command = [cc, *_FLAGS]
    name = digest(command, [_SOURCE])
    folder = cache_dir("record") / f"rate-{name}"
    memory = folder / f"{digest([processor()], [])}.json"
    known = None if fresh else _read_memory(memory)
    if known is not None:
        return known

    def make(made: Path) -> None:
        compile_to([*command, "-o", str(made), str(_SOURCE)], "the loops that measure this machine's rate")

    program = build_once(folder / "rinf1", make, what="the loops that measure this machine's rate")
    try:
        done = subprocess.run([program], capture_output=True, text=True, timeout=120, check=True, stdin=subprocess.DEVNULL)
        loops = {key: float(value) for key, value in (line.split() for line in done.stdout.splitlines())}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise RecordError(f"the rate of this machine could not be measured ({error}); state it with --rate") from None
    if len(loops) != LOOPS or not all(0 < v < float("inf") for v in loops.values()):
        raise RecordError("the rate of this machine could not be measured: a loop took no time; state it with --rate")
    # Rounded: what the trace states is then exactly what its amounts were counted at.
    found = MachineRate(float(f"{sum(loops.values()) / LOOPS:.{_DIGITS}g}"), loops, processor(), time.time())
    with suppress(OSError):  # measured again next time
        fresh_file = memory.with_name(f"{memory.name}.{os.getpid()}")
        fresh_file.write_text(json.dumps(asdict(found)), encoding="utf-8")
        fresh_file.replace(memory)
    return found


def _read_memory(memory: Path) -> MachineRate | None:
    """The measurement in a file, unless it is too old, of another processor or from the future (a clock was set)."""
    try:
        found = MachineRate(**json.loads(memory.read_text(encoding="utf-8")))
        valid = found.processor == processor() and 0 <= time.time() - found.at < _VALID_S and 0 < found.flops < float("inf")
    except (OSError, ValueError, TypeError):
        return None
    return found if valid else None
