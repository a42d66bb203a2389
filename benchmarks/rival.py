"""SMPI's replay as the rival of `bench`: the same trace on a platform of the same shape, with the resources that its processes used."""

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

__all__ = ["Smpi", "Spent", "there"]

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
        done = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCH, *command],
            cwd=self.folder / trace,
            capture_output=True,
            text=True,
            env=os.environ | {"LC_ALL": "C"},
            check=True,
        )
        code, cpu, peak, said = json.loads(done.stdout)
        if code != 0:
            raise RuntimeError(said)
        return Spent(cpu, peak)
