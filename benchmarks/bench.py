"""Engine rates beside SMPI's replay of the same trace: ``make bench``.

Each round replays the PingPong of the papers with every NT runtime, at every rung of the fidelity ladder, on one machine and between two, and with
``smpirun -replay`` where SimGrid's tools are installed, in turn, so that a busy machine slows all of them alike. Medians
of the rounds are printed. Simulating processes only: reading the trace and starting them is left out on our side (the
fork server is warm) and subtracted on SMPI's (an empty replay is timed in the same round).  A captured
benchmark on MPI-BIP follows, without a rival.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from retrompi import simulate, traces
from retrompi.traces import Trace, generate

MODELS = ("winmpich", "wmpi", "hpvm")
MODES = ("shared", "distributed")
RUNGS = ("mechanism", "curve", "loggp")
NAS = "npb3.3.1-lu-A-4"
"""The captured benchmark that is replayed on MPI-BIP beside the PingPong."""
EMPTY = ["0 init\n0 finalize\n", "1 init\n1 finalize\n"]

# One machine and two, with the rates of the study's computers; SMPI's default protocol parameters.
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="room" routing="Full">
    <host id="server" speed="22Mf" core="2"/>
    <host id="workstation" speed="10Mf"/>
    <link id="memory" bandwidth="80MBps" latency="100us"/>
    <link id="cable" bandwidth="12.5MBps" latency="500us"/>
    <route src="server" dst="server"><link_ctn id="memory"/></route>
    <route src="server" dst="workstation"><link_ctn id="cable"/></route>
  </zone>
</platform>
"""


class Smpi:
    """SMPI's replay of a trace, in a folder of its own."""

    def __init__(self, folder: Path, trace: Trace) -> None:
        (folder / "platform.xml").write_text(PLATFORM)
        (folder / "shared.txt").write_text("server\nserver\n")
        (folder / "distributed.txt").write_text("server\nworkstation\n")
        traces.write(trace, folder / "trace")
        traces.write(traces.parse(EMPTY), folder / "empty")
        self.folder = folder

    @staticmethod
    def there() -> bool:
        return shutil.which("smpirun") is not None

    def seconds(self, mode: str, trace: str) -> float:
        """Wall seconds of one replay, start and end included; raises RuntimeError with its last words when it fails."""
        files = ["-platform", "../platform.xml", "-hostfile", f"../{mode}.txt", "-replay", "index.txt"]  # it looks beside where it runs
        command = ["smpirun", "-np", "2", *files, "--log=root.thres:error"]
        begin = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder / trace, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
        seconds = time.perf_counter() - begin
        if done.returncode != 0:
            raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
        return seconds


def measure(rounds: int, scale: float) -> dict[str, Any]:
    """Runs ``rounds`` rounds with ``scale`` of the papers' repetitions; a dict with ``rows`` and ``smpi`` (see ``main``)."""
    trace = generate.pingpong(reps=lambda size: max(1, round(generate.default_reps(size) * scale)))
    walls: dict[tuple[str, str, str], list[float]] = {(m, k, f): [] for m in MODELS for k in MODES for f in RUNGS}
    smpi: dict[str, list[float]] = {k: [] for k in MODES}
    results: dict[tuple[str, str, str], simulate.Result] = {}
    trouble = "" if Smpi.there() else "smpirun is not installed (Debian: libsimgrid-dev)"
    for model, mode, rung in walls:  # the server is told the trace, the models are imported, the curves are sampled
        simulate.run(model, "nt-pair", trace, mode=mode, fidelity=rung)
    with tempfile.TemporaryDirectory() as folder:
        rival = None if trouble else Smpi(Path(folder), trace)
        for _ in range(rounds):
            for mode in MODES:
                if rival and not trouble:
                    try:
                        smpi[mode].append(max(rival.seconds(mode, "trace") - rival.seconds(mode, "empty"), 1e-3))
                    except RuntimeError as error:
                        trouble = str(error)
                for key in walls:
                    model, where, rung = key
                    if where != mode:
                        continue
                    result = simulate.run(model, "nt-pair", trace, mode=mode, fidelity=rung)
                    simulate.require_completed(result, ", ".join(key))
                    walls[key].append(result.wall_s)
                    results[key] = result
    rows = []
    for (model, mode, rung), times in walls.items():
        wall = statistics.median(times)
        result = results[model, mode, rung]
        reference = statistics.median(smpi[mode]) if smpi[mode] else None
        rows.append(
            {
                "model": model,
                "mode": mode,
                "fidelity": rung,
                "wall_s": wall,
                "messages": result.messages,
                "packets": result.packets,
                "events": result.events,
                "messages_per_s": result.messages / wall,
                "packets_per_s": result.packets / wall,
                "smpi_wall_s": reference,
                "smpi_messages_per_s": result.messages / reference if reference else None,
                "ratio": wall / reference if reference else None,
            }
        )
    return {"rounds": rounds, "scale": scale, "simgrid": simgrid_version(), "smpi": trouble or "replayed", "rows": rows, "nas": captured()}


def captured() -> list[dict[str, Any]]:
    """A captured benchmark on MPI-BIP at every rung, once: trace, fidelity, wall_s, messages, messages_per_s."""
    from retrompi.validate import nas

    trace = nas.read(NAS)
    rows = []
    for rung in RUNGS:
        simulate.run("mpibip", "myrinet-piii", trace, mode="distributed", fidelity=rung)
        result = simulate.run("mpibip", "myrinet-piii", trace, mode="distributed", fidelity=rung)
        simulate.require_completed(result, f"{NAS}, {rung}")
        told = {"trace": NAS, "fidelity": rung, "wall_s": result.wall_s, "messages": result.messages}
        rows.append({**told, "messages_per_s": result.messages / result.wall_s})
    return rows


def simgrid_version() -> str:
    from retrompi import _engine

    return _engine.simgrid_version()


def show(figures: dict[str, Any]) -> None:
    """A table: wall seconds, rates, and our wall time over SMPI's."""
    print(f"PingPong of the papers x {figures['scale']:g}, median of {figures['rounds']} rounds, SimGrid {figures['simgrid']}")
    print(f"{'runtime':10}{'mode':13}{'fidelity':11}{'wall s':>9}{'messages/s':>13}{'packets/s':>13}{'SMPI s':>9}{'ours/SMPI':>11}")
    for r in figures["rows"]:
        rival = f"{r['smpi_wall_s']:9.3f}{r['ratio']:11.2f}" if r["ratio"] is not None else f"{'-':>9}{'-':>11}"
        print(f"{r['model']:10}{r['mode']:13}{r['fidelity']:11}{r['wall_s']:9.3f}{r['messages_per_s']:13,.0f}{r['packets_per_s']:13,.0f}{rival}")
    for r in figures["nas"]:
        print(f"{r['trace']} on mpibip, {r['fidelity']}: {r['wall_s']:.3f} s, {r['messages_per_s']:,.0f} messages/s")
    if figures["smpi"] != "replayed":
        print(f"SMPI was not measured: {figures['smpi']}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="engine rates beside SMPI's replay of the same trace")
    parser.add_argument("--rounds", type=int, default=5, help="alternated repetitions (5)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the papers' repetitions (1)")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1 or chosen.scale <= 0:
        parser.error("--rounds is at least 1, --scale above 0")
    figures = measure(chosen.rounds, chosen.scale)
    print(json.dumps(figures, indent=2)) if chosen.json else show(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
