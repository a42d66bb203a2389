"""The rivals of `bench`, with the resources that their processes used: SMPI's replay of the same trace on a platform of the same shape, and
LogGOPSim's of the same trace as a GOAL schedule."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from retrompi import traces
from retrompi.spec.platform import Platform
from retrompi.traces import Trace

__all__ = ["LogGOPSim", "Smpi", "Spent", "there"]

# Run by a small Python: a process's peak memory includes what its parent held when it forked.
LAUNCH = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
said = done.stderr.decode(errors="replace").strip().splitlines()
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss << 10, said[-1] if said else ""]))
"""


@dataclass(frozen=True)
class Spent:
    """User and system time (s) and the largest resident memory (B) of the processes of a replay."""

    cpu_s: float
    peak_B: int


def there() -> str:
    """Why SMPI cannot be measured here; empty when it can."""
    return "" if shutil.which("smpirun") else "smpirun is not installed (Debian: libsimgrid-dev and simgrid)"


def _xml(room: Platform) -> str:
    """Hosts of 1 Gflop/s joined as in ``room``: a hub by one shared link, cable and switch by a link for each host and direction."""
    link, n = room.link, len(room.hosts)
    speeds = f'speed="1Gf" bw="{link.bandwidth:.0f}Bps" lat="{link.latency * 1e6:g}us"'
    if link.kind == "torus":
        n = math.prod(link.shape)  # SimGrid requires a host in each place
        shape = f'topology="TORUS" topo_parameters="{",".join(map(str, link.shape))}"'
    elif link.kind == "hub":
        shape = f'bb_bw="{link.bandwidth:.0f}Bps" bb_lat="0us" bb_sharing_policy="SHARED"'
    elif link.kind not in ("cable", "switch"):
        raise ValueError(f"no rival's room is written for a {link.kind}")
    else:
        shape = ""
    return (
        '<?xml version=\'1.0\'?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
        f'  <cluster id="room" prefix="h" suffix="" radical="0-{n - 1}" {speeds} sharing_policy="SPLITDUPLEX" {shape}/>\n</platform>\n'
    )


class Smpi:
    """SMPI's replay of one trace, in a separate folder. Its messages cross the platform's links; copies and processors cost nothing."""

    # Algorithms by name, so that their messages can be counted.
    OPTIONS = ("--cfg=smpi/allreduce:rdb", "--cfg=smpi/alltoall:basic_linear", "--log=root.thres:error")

    def __init__(self, folder: Path, trace: Trace) -> None:
        self.folder = folder
        self.ranks = trace.ranks
        traces.write(trace, folder / "trace")
        empty = [f"{r} init\n{r} finalize\n" for r in range(trace.ranks)]
        traces.write(traces.parse(empty), folder / "empty")

    def replay(self, room: Platform, trace: str = "trace") -> Spent:
        """One replay, ``trace`` or ``empty``. Raises RuntimeError with the last error output of one that fails."""
        (self.folder / "platform.xml").write_text(_xml(room))
        (self.folder / "hosts.txt").write_text("".join(f"h{r % len(room.hosts)}\n" for r in range(self.ranks)))
        files = ["-platform", "../platform.xml", "-hostfile", "../hosts.txt", "-replay", "index.txt"]  # relative to its working directory
        command = ["smpirun", "-np", str(self.ranks), *files, *self.OPTIONS]
        return _launched(command, self.folder / trace)


class LogGOPSim:
    """LogGOPSim on one trace: a GOAL schedule in its binary form, which it maps into memory; the conversion is not measured.

    ``tools``: the folder of its programs LogGOPSim and txt2bin (Hoefler, Schneider, Lumsdaine 2010; github.com/spcl/LogGOPSim).
    """

    def __init__(self, tools: Path, folder: Path, trace: Trace) -> None:
        from retrompi.convert.goal.writer import write_goal
        from retrompi.convert.losses import Losses

        self.tools, self.folder = tools, folder
        if missing := [name for name in ("LogGOPSim", "txt2bin") if not os.access(tools / name, os.X_OK)]:
            raise RuntimeError(f"no program {missing[0]} in {tools}")
        write_goal(trace, folder / "trace.goal", Losses())
        _launched([str(tools / "txt2bin"), "-i", "trace.goal", "-o", "trace.bin"], folder)

    def replay(self) -> Spent:
        """One run with its default parameters, without its list of hosts. Raises RuntimeError if it fails."""
        return _launched([str(self.tools / "LogGOPSim"), "-f", "trace.bin", "-b"], self.folder)


def _launched(command: list[str], folder: Path) -> Spent:
    plain = os.environ | {"LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-S", "-c", LAUNCH, *command], cwd=folder, capture_output=True, text=True, env=plain, check=True)
    code, cpu, peak, said = json.loads(done.stdout)
    if code != 0:
        raise RuntimeError(said or f"{Path(command[0]).name} ended with code {code}")
    return Spent(cpu, peak)
