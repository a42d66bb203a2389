"""The measurement plan: what is measured, in which order, at which sizes.

The fit sees powers of two and 1.5 times these; sizes drawn at random between them are held out and measured in the same rounds, so that
both are measured under the same conditions.
"""

from __future__ import annotations

import os
import platform
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.measure.launch import machine_load, stats
from retrompi.measure.launch.execution import BackendError
from retrompi.measure.record.rate import machine_rate
from retrompi.measure.this_machine import core_distance, switches
from retrompi.measure.this_machine.bench import BenchRow, PairBench, version
from retrompi.measure.this_machine.estimate import one_way
from retrompi.measure.this_machine.recording import MachineRecording

__all__ = ["FIT_SIZES", "HELD_OUT", "TOP", "caches", "limits_from", "measure", "recorded_probe"]

KIB = 1024
TOP = 4096 * KIB
FIT_SIZES = tuple(sorted({0, 1, 3, *(s for k in range(1, 23) for s in (1 << k, 3 << (k - 1)) if s <= TOP)}))
"""Sizes in bytes that the fit sees."""
STREAM_SIZES = tuple(s for s in FIT_SIZES if s == 0 or s & (s - 1) == 0)
"""Sizes of streams, exchanges and late receives."""
ALONE_SIZES = tuple(s for s in FIT_SIZES if s == 0 or s % 8 == 0)
"""Sizes in bytes for collectives' costs other than messages: multiples of a double."""
REMOTE_SIZES = (0, 1, 16, 64, 256, *(1 << k for k in range(10, 19)))
HELD_SEED = 20_05


def _held_out(count: int = 40) -> tuple[int, ...]:
    draw = random.Random(HELD_SEED)
    found: set[int] = set()
    while len(found) < count:
        size = round(2 ** draw.uniform(0, 22))
        if size not in FIT_SIZES:
            found.add(size)
    return tuple(sorted(found))


HELD_OUT = _held_out()
"""Sizes in bytes that the fit never sees; they are used for validation."""

Report = Callable[[int, int, str], None]


def _silent(done: int, total: int, what: str = "") -> None:
    """A progress callback that does nothing."""


def caches() -> list[dict[str, Any]]:
    """Data caches of the first core this process may use, from sysfs: level, size_B, ways, shared_by, line_B; [] without sysfs."""
    core = min(os.sched_getaffinity(0))
    found = []
    for index in sorted(Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
        with suppress(OSError, ValueError):
            text = {k: (index / k).read_text().strip() for k in ("level", "type", "size", "shared_cpu_list", "ways_of_associativity")}
            if text["type"] != "Instruction":
                scale = {"K": 1024, "M": 1 << 20}.get(text["size"][-1], 1)
                size = int(text["size"].rstrip("KM")) * scale
                shared = len(_cpu_list(text["shared_cpu_list"]))
                found.append({"level": int(text["level"]), "size_B": size, "ways": int(text["ways_of_associativity"]), "shared_by": shared})
    return sorted(found, key=lambda c: int(c["level"]))


def _cpu_list(text: str) -> list[int]:
    out: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out


def _clock_hz() -> float:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("cpu MHz"):
                return float(line.partition(":")[2]) * 1e6
    return 0.0


def _facts(bench: PairBench, quick: bool) -> dict[str, Any]:
    here = machine_load.machine()
    name, said = version(bench)
    rate = machine_rate(fresh=True)
    return {
        "flops": rate.flops,
        "loops": rate.loops,
        "cpu": here.cpu,
        "cores": here.cores,
        "clock_Hz": _clock_hz(),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "tick_Hz": os.sysconf("SC_CLK_TCK"),
        "caches": caches(),
        "mpi": name,
        "mpi_says": said.splitlines()[0][:200] if said else "",
        "device": next((m[1] for m in [re.search(r"MPICH Device:\s*(\S+)", said)] if m), ""),
        "family": bench.family,
        "quick": quick,
    }


def limits_from(rows: Iterable[BenchRow]) -> switches.Behaviour:
    """The eager limit from the probes of ``eager``."""
    return switches.by_behaviour([(r.round, r.size, r.values[0] > 0) for r in rows if r.what == "eager"])


def recorded_probe(recording: MachineRecording) -> switches.Measure:
    """A measurement that returns the values recorded during the search for steps."""
    known: dict[int, dict[int, list[float]]] = {}
    for row in recording.rows.get("same", ()):
        if row.what == "probe":
            known.setdefault(row.round, {}).setdefault(row.size, []).append(one_way(row.values))
    turns = iter(sorted(known))

    def probe(sizes: Sequence[int]) -> switches.Samples:
        turn = next(turns, None)
        if turn is None or not set(sizes) <= set(known[turn]):
            raise UsageError("the recorded search for steps is of another version of retrompi: measure again", code="wrong-version")
        return known[turn]

    return probe


def _probing(steady: _Steady, recording: MachineRecording) -> switches.Measure:
    turn = 0

    def probe(sizes: Sequence[int]) -> switches.Samples:
        nonlocal turn
        rows = steady.run("pingpong", sizes, rounds=8 if steady.quick else 16)
        recording.add("same", (BenchRow("probe", r.size, turn, r.values) for r in rows))
        turn += 1
        found: dict[int, list[float]] = {}
        for r in rows:
            found.setdefault(r.size, []).append(one_way(r.values))
        return found

    return probe


class _MovedError(Exception):
    """The machine changed its state permanently."""


class _Steady:
    """Launches that all ran in one state of the machine; the others are counted and repeated.

    After `_STAYS` consecutive launches in another state it raises `_MovedError`; a quick measurement accepts every launch.
    """

    def __init__(self, bench: PairBench, quick: bool) -> None:
        self.bench, self.quick = bench, quick
        self.kept = self.moved = 0
        self.states = [core_distance.line_ns(bench=bench) for _ in range(2 if quick else 12)]
        self.reference = median(self.states[-3:])

    def run(self, what: str, sizes: Sequence[int] = (), *, rounds: int, launches: int = 1) -> list[BenchRow]:
        """Rows of ``launches`` launches, as returned by `PairBench.run`, without those of the state."""
        rows: list[BenchRow] = []
        done = in_a_row = 0
        while done < launches:
            found = self.bench.run(what, sizes, rounds=rounds, quick=self.quick)
            here = core_distance.of(found)
            self.states += here
            if not core_distance.alike(here, self.reference):
                self.moved += 1
                in_a_row += 1
                if not self.quick:
                    if in_a_row == _STAYS:
                        raise _MovedError
                    time.sleep(0.3)
                    continue
            in_a_row = 0
            self.kept += 1
            rows += (replace(r, round=r.round + done * rounds) for r in found if r.what != "state")
            done += 1
        return rows

    def facts(self) -> dict[str, Any]:
        """For the recording: the reference, launches kept and repeated, smallest and largest cache-line time."""
        return {
            "line_ns": self.reference,
            "kept": self.kept,
            "moved": self.moved,
            "least_ns": min(self.states),
            "most_ns": max(self.states),
        }


_STAYS = 12
_ATTEMPTS = 4


def measure(bench: PairBench, *, quick: bool = False, report: Report = _silent) -> MachineRecording:
    """Measures two ranks of one host: about a minute, with ``quick`` a few seconds.

    All of it is measured in one state of the machine (`state`); if that changes permanently, the measurement restarts. Raises BackendError
    when a program cannot be run, or the state keeps changing.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _measure(bench, quick, report)
        except _MovedError:
            continue
    raise BackendError(
        f"the hypervisor moved the cores apart or together {_ATTEMPTS} times while they were measured: "
        "measure again later, or with --quick, which takes whatever state there is"
    )


def _measure(bench: PairBench, quick: bool, report: Report) -> MachineRecording:
    recording = MachineRecording(_facts(bench, quick))
    steady = _Steady(bench, quick)
    before, probes, waited = machine_load.CpuTimes.now(), machine_load.probe(), [machine_load.waiting()]
    launches, rounds = (1, 3) if quick else (6, 8)
    jobs: list[tuple[str, Sequence[int], int, int]] = [
        ("eager", (0, TOP), 1, 3 if quick else 5),
        ("room", (0, KIB, 4 * KIB, 16 * KIB, 64 * KIB), 1, 1 if quick else 3),
        ("first", (), 3 * launches, 1),
        ("costs", (), launches, rounds),
        ("copies", _copy_sizes(quick), 1, rounds),
        ("compute", (), launches, rounds),
        *local_jobs(quick),
        ("pingpong", sorted({*FIT_SIZES, *HELD_OUT}), launches, rounds),
        ("echo", sorted({*FIT_SIZES, *HELD_OUT}), launches, rounds),
        ("marked", FIT_SIZES, launches, max(2, rounds // 2)),
        ("stream", STREAM_SIZES, launches, max(2, rounds // 2)),
        ("both", STREAM_SIZES, launches, max(2, rounds // 2)),
        ("exchange", STREAM_SIZES, launches, rounds),
        ("requests", STREAM_SIZES, launches, rounds),
        ("rotating", [s for s in STREAM_SIZES if s >= KIB], 1, rounds),
    ]
    total = len(jobs) + 2
    for i, (what, sizes, n, r) in enumerate(jobs):
        report(i, total, what)
        recording.add("same", steady.run(what, sizes, rounds=r, launches=n))
        waited.append(machine_load.waiting())
    report(len(jobs), total, "late receives")
    _late(steady, recording, launches, rounds)
    report(len(jobs) + 1, total, "steps of the curve")
    _steps(steady, recording)
    probes += machine_load.probe()
    noise = stats.judge_noise([], probes, machine_load.elsewhere(before, machine_load.CpuTimes.now()), sum(waited) / len(waited), 0.0)
    recording.facts["noise"] = {
        "probe": noise.probe,
        "stolen": noise.stolen,
        "waiting": noise.waiting,
        "loaded": noise.loaded,
        "why": noise.why,
    }
    recording.facts["launches"] = bench.launches
    recording.facts["state"] = steady.facts()
    report(total, total, "")
    return recording


def local_jobs(quick: bool) -> list[tuple[str, Sequence[int], int, int]]:
    """Measurements of rank 0 without a partner, as (what, sizes, launches, rounds): none contains a collective between ranks."""
    sizes = [s for s in ALONE_SIZES if s <= (256 * KIB if quick else TOP)]
    launches = 2 if quick else 6
    # An allocator keeps state from earlier buffers, so temporary buffers have one round per launch.
    return [("alone", sizes, launches, 1 if quick else 2), ("temporary", sizes[1:], launches, 1)]


def _copy_sizes(quick: bool) -> list[int]:
    half_steps = range(24, 54, 2 if quick else 1)
    return [round(2 ** (k / 2)) // 128 * 128 for k in half_steps]


def _late(steady: _Steady, recording: MachineRecording, launches: int, rounds: int) -> None:
    """Late receives of eager messages; around the limit both sides are measured as well."""
    limit = limits_from(recording.rows["same"]).size
    recording.facts["eager_limit"] = limit
    near = [] if limit is None else [limit - 1]
    sizes = [s for s in (*STREAM_SIZES, *near) if limit is None or s < limit]
    if sizes:
        recording.add("same", steady.run("late", sorted(set(sizes)), rounds=max(2, rounds // 2), launches=launches))
    if limit is not None:
        around = [s for s in (limit - 1, limit) if 0 < s <= TOP]
        for what in ("pingpong", "echo"):
            recording.add("same", steady.run(what, around, rounds=rounds, launches=launches))
        recording.add("same", steady.run("marked", around, rounds=max(2, rounds // 2), launches=launches))
        for what in ("stream", "both"):
            recording.add("same", steady.run(what, around, rounds=max(2, rounds // 2), launches=launches))
        recording.add("same", steady.run("exchange", around, rounds=rounds, launches=launches))


def _steps(steady: _Steady, recording: MachineRecording) -> None:
    """Other steps of the curve; the result depends on the fit's sizes alone, and every probe is kept."""
    samples = {s: [one_way(v) for v in rounds] for s, rounds in recording.of("pingpong").items() if s not in HELD_OUT}
    switches.find(_probing(steady, recording), sorted(samples), samples)


def measure_remote(bench: PairBench, recording: MachineRecording, *, quick: bool, report: Report = _silent, kind: str = "remote") -> None:
    """Two ranks of two hosts, at fewer sizes: echo, marks, a stream, exchange, late receives, the eager limit."""
    rounds = 2 if quick else 3
    held = [s for s in HELD_OUT[::4] if s <= REMOTE_SIZES[-1]]
    jobs: list[tuple[str, Sequence[int], int]] = [
        ("eager", (0, REMOTE_SIZES[-1]), 1 if quick else 3),
        ("echo", sorted({*REMOTE_SIZES, *held}), rounds),
        ("marked", REMOTE_SIZES, rounds),
        ("stream", REMOTE_SIZES, 1),
        ("exchange", REMOTE_SIZES, rounds),
    ]
    for i, (what, sizes, r) in enumerate(jobs):
        report(i, len(jobs), f"two hosts: {what}")
        recording.add(kind, [x for x in bench.run(what, sizes, rounds=r, quick=True) if x.what != "state"])
    limit = limits_from(recording.rows[kind]).size
    eager = [s for s in REMOTE_SIZES if limit is None or s < limit]
    recording.add(kind, bench.run("late", eager, rounds=1 if quick else 2, quick=True))
