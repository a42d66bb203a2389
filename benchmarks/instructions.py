"""Events and instructions a message of the recorded programs (`bench.RECORDED`): ``python benchmarks/instructions.py``.

Instructions are those of the simulation alone, counted by callgrind (Debian: valgrind): two functions in C turn counting on before the
engine is called and off after it. Long programs are simulated up to the time at which about `MESSAGES` messages were received, so that all
take some minutes. ``--recorded`` and ``--bare``: with computation and without.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import bench

from retrompi import _engine
from retrompi.sim import simulate, worker
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace

MESSAGES = 20_000
COUNTER = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""


class Counted:
    """Replaces the simulation server: the engine runs in this process, up to ``limit_s`` of simulated time."""

    def __init__(self, counter: ctypes.CDLL | None) -> None:
        self.counter, self.limit_s, self.name = counter, 0.0, ""

    def simulate(self, config: dict[str, Any], trace: Trace, key: str, further: Sequence[Trace] = ()) -> dict[str, Any]:
        limited = config | ({"limit_s": self.limit_s} if self.limit_s else {})
        if self.counter is None:
            return dict(_engine.simulate(limited, trace, list(further)))
        self.counter.begin()
        told = _engine.simulate(limited, trace, list(further))
        self.counter.end(self.name.encode())
        return dict(told)


def cells(kinds: Sequence[str], programs: Sequence[str]) -> list[tuple[str, str, Trace]]:
    """(program, runtime, trace) of each cell."""
    cases = {c.name: c for c in bench.cases(1.0)}
    traces = {f"{p}-{k}": cases[f"{p}-{k}"].make() for p in programs for k in kinds}
    return [(name, model, trace) for name, trace in traces.items() for model in bench.MODELS]


def run(counted: Counted, name: str, model: str, trace: Trace, limit_s: float) -> simulate.Result:
    counted.limit_s, counted.name = limit_s, f"{name} {model}"
    return simulate.run(Question(model, f"{bench.MODELS[model]}*{trace.ranks}", Replay(trace)))


def child(kinds: Sequence[str], programs: Sequence[str], helper: str) -> None:
    """Under callgrind: every cell once, counted."""
    counted = Counted(ctypes.CDLL(helper) if helper else None)
    worker.adopt(counted)
    limits = json.loads(os.environ.get("LIMITS", "{}"))
    for name, model, trace in cells(kinds, programs):
        result = run(counted, name, model, trace, limits.get(f"{name} {model}", 0.0))
        print(json.dumps([name, model, result.messages, result.events, result.time_s]), flush=True)


def helper_in(folder: Path) -> Path:
    """The compiled `COUNTER`."""
    source, helper = folder / "counter.c", folder / "counter.so"
    source.write_text(COUNTER)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", helper, source], check=True)
    return helper


def totals(folder: Path) -> dict[str, int]:
    """Instructions by the name of a cell, from callgrind's files."""
    found = {}
    for file in folder.glob("out.*"):
        text = file.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
        if name and total:
            found[name[1].strip()] = int(total[1])
    return found


def lines_of(command: Sequence[str], **env: str) -> list[list[Any]]:
    """What a `child` printed."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | env)
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows(kinds: Sequence[str], programs: Sequence[str], limits: dict[str, float] | None = None) -> list[dict[str, Any]]:
    """Messages, events and instructions of each cell, up to the simulated times ``limits`` (0: to the end)."""
    again = [sys.executable, str(Path(__file__).resolve()), "--child", *(f"--{k}" for k in kinds)]
    again += [x for p in programs for x in ("--program", p)]
    if limits is None:
        limits = {f"{name} {model}": t * MESSAGES / n if n > MESSAGES else 0.0 for name, model, n, _, t in lines_of(again)}
    with tempfile.TemporaryDirectory() as folder:
        helper = helper_in(Path(folder))
        counting = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        counted = lines_of([*counting, *again, "--helper", str(helper)], LIMITS=json.dumps(limits))
        instructions = totals(Path(folder))
    made = []
    for name, model, messages, events, _ in counted:
        cell = f"{name} {model}"
        numbers = {"messages": messages, "events": events, "instructions": instructions[cell], "limit_s": limits[cell]}
        made.append({"program": name, "runtime": model, **numbers})
    return made


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="events and instructions a message of recorded programs")
    parser.add_argument("--recorded", action="store_true", help="with their computation (default)")
    parser.add_argument("--bare", action="store_true", help="without")
    parser.add_argument("--program", action="append", default=[], choices=list(bench.RECORDED), help="only this one; may be repeated")
    parser.add_argument("--limits", type=Path, help="simulated times from the --json of another run, to count the same messages")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--helper", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    kinds = [k for k in ("recorded", "bare") if getattr(chosen, k)] or ["recorded"]
    programs = chosen.program or list(bench.RECORDED)
    if chosen.child:
        child(kinds, programs, chosen.helper)
        return 0
    limits = {f"{r['program']} {r['runtime']}": r["limit_s"] for r in json.loads(chosen.limits.read_text())} if chosen.limits else None
    found = rows(kinds, programs, limits)
    if chosen.json:
        print(json.dumps(found, indent=1))
        return 0
    print(f"{'program':22}{'runtime':10}{'messages':>10}{'events':>12}{'a message':>11}{'instructions a message':>24}")
    for r in found:
        print(f"{r['program']:22}{r['runtime']:10}{r['messages']:10,}{r['events']:12,}{r['events'] / r['messages']:11.1f}"
              f"{r['instructions'] / r['messages']:24,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
