"""How many runs a second a study simulates and stores when the runs are trivial: ``python benchmarks/store_rate.py [--runs N]``.

The runs are PingPongs of one byte and one repetition, each with a seed of its own (or, with ``--vary KEY=VALUES``, whatever is
given), all different, each stored with its point and its two ranks. Wall time and processor time (user and system, of this process
and its workers) per run are for the whole: reading the definition, resolving, compiling, simulating, storing. ``--read`` then reads
the study back: the commands that people use on it, each in a process of its own. ``--keep FILE`` keeps the store.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from retrompi.store import open_store
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study
from retrompi.studies.execute.worker_pool import WorkerPool

ONE_BYTE = {"trace.sizes": "1B", "trace.reps": "1"}
READ = (
    ("runs list --last 30", ["runs", "list"]),
    ("runs show", ["runs", "show", "1"]),
    ("study list", ["study", "list"]),
    ("study show --metric time", ["study", "show", "trivial", "--metric", "time"]),
    ("study export -o x.csv", ["study", "export", "trivial", "-o", "x.csv"]),
    ("study export -o x.parquet", ["study", "export", "trivial", "-o", "x.parquet"]),
)


def _spent() -> float:
    """Processor seconds of this process and of its terminated children."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def measure(store: Path, runs: int, jobs: int, vary: str) -> dict[str, Any]:
    """One row: the rate and the costs of a run."""
    study = design.from_command("bf-wmpi-shared", [vary or f"seed=1..{runs}"], set_=ONE_BYTE).with_name("trivial")
    began, before = time.perf_counter(), _spent()

    def report(done: int, total: int, _: str) -> None:
        if done % 50_000 == 0:
            print(f"{done:>9} of {total}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    told = run_study(open_store(store), study, executor=WorkerPool(jobs), limit=max(runs, design.LIMIT), report=report)
    took = time.perf_counter() - began
    return {
        "runs": told.points, "simulated": told.simulated, "errors": told.errors, "jobs": jobs, "seconds": took,
        "runs_per_s": told.simulated / took, "cpu_ms_a_run": 1e3 * (_spent() - before) / told.points,
        "bytes_a_run": store.stat().st_size / told.points, "peak_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "load_average": os.getloadavg()[0],
    }


def read_back(store: Path, folder: Path) -> list[dict[str, Any]]:
    """Seconds and peak memory of commands on the store."""
    rows = []
    for name, words in READ:
        began = time.perf_counter()
        done = subprocess.Popen([sys.executable, "-m", "retrompi.cli.main", "--store", str(store), *words], cwd=folder,
                                stdout=subprocess.PIPE)
        assert done.stdout is not None
        said = done.stdout.read()
        _, status, used = os.wait4(done.pid, 0)
        rows.append({"command": name, "code": os.waitstatus_to_exitcode(status), "seconds": time.perf_counter() - began,
                     "peak_MB": used.ru_maxrss / 1024, "bytes": len(said)})
    return rows


def main() -> None:
    """Measures and prints; with ``--json`` as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--vary", default="", metavar="KEY=VALUES")
    parser.add_argument("--read", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store = options.keep or Path(place) / "rate.db"
        out: dict[str, Any] = measure(store, options.runs, options.jobs, options.vary)
        if options.read:
            out["reading"] = read_back(store, Path(place))
    if options.json:
        print(json.dumps(out, indent=2))
        return
    for key, value in out.items():
        if key != "reading":
            print(f"{key:14} {value:12.3f}" if isinstance(value, float) else f"{key:14} {value:12}")
    for row in out.get("reading", ()):
        print(f"{row['command']:28} {row['seconds']:8.2f} s {row['peak_MB']:8.0f} MB, exit code {row['code']}")


if __name__ == "__main__":
    main()
