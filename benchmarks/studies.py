"""The overhead of a study besides its simulations, and its scaling: ``python benchmarks/studies.py``.

*PingPong variants*: 1,000 runs of the papers' PingPong in full (0 B to 4 MiB, 1000 repetitions up to 64 KiB) in shared memory: two
models x 20 quanta x 25 copy rates; all runs are different and each is stored. Run with one worker and with two.

*Next to nothing*: 1,000 runs of a PingPong of one byte and one repetition, whose simulations take less than a tenth of a millisecond:
the rest is scheduling, resolving models and platforms, identities, processes and the store. Processor time per run of all processes
(started ones included), and its distribution. Then the same study again: all runs are found in the store.

*Cold*: the same runs in the command line's fork server show the cost of a run before workers simulated in-process.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from retrompi.store import open_store
from retrompi.studies.execute import design
from retrompi.studies.execute.run import Executor, Here, run_study
from retrompi.studies.execute.worker_pool import WorkerPool

VARIANTS = {
    "model": "wmpi,winmpich",
    "platform.host.quantum": "10ms..200ms:+10ms",
    "platform.host.copy_mem": "10MB/s..250MB/s:+10MB/s",
}
NOTHING = {"platform.host.quantum": "10ms..1009ms:+1ms"}
ONE_BYTE = {"trace.sizes": "1B", "trace.reps": "1"}


def _spent() -> tuple[float, float]:
    """Processor seconds of this process and of its terminated children, in that order."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime


def _run(folder: Path, study: design.Study, executor: Executor, name: str) -> dict[str, Any]:
    store = open_store(folder / f"{name}.db")
    began, before = time.perf_counter(), _spent()
    told = run_study(store, study, executor=executor)
    took, after = time.perf_counter() - began, _spent()
    simulating = sum(run["wall_s"] for run in store.runs()) if told.simulated else 0.0
    return {
        "runs": told.points,
        "simulated": told.simulated,
        "errors": told.errors,
        "seconds": took,
        "ms_a_run": 1e3 * took / told.points,
        "main_cpu_ms": 1e3 * (after[0] - before[0]) / told.points,
        "worker_cpu_ms": 1e3 * (after[1] - before[1]) / told.points,
        "simulate_ms": 1e3 * simulating / told.points,
    }


def _show(title: str, row: dict[str, Any]) -> None:
    here, workers = row["main_cpu_ms"], row["worker_cpu_ms"]
    print(f"{title:38} {row['runs']} runs in {row['seconds']:6.2f} s: {row['ms_a_run']:6.2f} ms a run, processor {here:.2f} ms here"
          f" + {workers:.2f} ms in workers; {row['simulate_ms']:.2f} ms of wall time in simulate()", flush=True)


def main() -> None:
    """Measures and prints; with ``--json`` everything as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=["variants", "nothing", "cold"])
    options = parser.parse_args()
    variants = design.from_command("bf-wmpi-shared", VARIANTS).with_name("pingpong-variants")
    nothing = design.from_command("bf-wmpi-shared", NOTHING, set_=ONE_BYTE).with_name("next-to-nothing")
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if options.only in (None, "nothing"):
            out["nothing, 2 workers"] = _run(folder, nothing, WorkerPool(2), "nothing-2")
            out["nothing, 1 worker"] = _run(folder, nothing, WorkerPool(1), "nothing-1")
            out["nothing, again: all found"] = _run(folder, nothing, WorkerPool(2), "nothing-2")
        if options.only in (None, "cold"):
            out["nothing, fork server"] = _run(folder, nothing, Here(), "nothing-0")
        if options.only in (None, "variants"):
            out["variants, 2 workers"] = _run(folder, variants, WorkerPool(2), "variants-2")
            out["variants, 1 worker"] = _run(folder, variants, WorkerPool(1), "variants-1")
            out["speed-up"] = out["variants, 1 worker"]["seconds"] / out["variants, 2 workers"]["seconds"]
    if options.json:
        print(json.dumps(out, indent=2))
        return
    for title, row in out.items():
        if isinstance(row, dict):
            _show(title, row)
        else:
            print(f"{title:38} {row:.2f}")


if __name__ == "__main__":
    main()
