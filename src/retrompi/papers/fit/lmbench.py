"""lmbench's programs on simulated hosts, counted as lmbench counts them, beside the numbers that it published in 1996.

A word goes to and fro over a pipe or a TCP connection between two processes; many pieces go one way for a bandwidth. The runs are
simulated messages between two processes of one host, or of two. A context switch is what a word over a pipe takes beyond the same
without switching, as lmbench subtracts the cost of the pipe.

    rows = measure("linux-i686")               # observable, value, unit
    rows = table()                             # every system with published rows: simulated, published, error, input or predicted
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError
from retrompi.base.files import read_text
from retrompi.papers.fit.free_values import add_to_fit
from retrompi.spec import registry
from retrompi.spec.machine.roofline import lost_l2
from retrompi.spec.platform import Platform

__all__ = ["LISTED", "NEAR", "OBSERVABLES", "System", "fit", "measure", "summary", "systems", "table"]

PIPE, STREAM = "sockets:pipe", "sockets:netpipe"
"""The runtimes that do what lmbench's programs do: a pipe or a socket between two processes, and a stream of bytes."""
NEAR = 0.15
"""A prediction is near if it is at most this share off."""
OBSERVABLES: Mapping[str, str] = {
    "null_system_call": "null system call, us",
    "context_switch_2proc_0K": "context switch, 2 processes, 0K, us",
    "context_switch_2proc_32K": "context switch, 2 processes, 32K, us",
    "latency_pipe_roundtrip": "pipe latency, us",
    "latency_TCP_loopback_roundtrip": "TCP latency on the host, us",
    "latency_UDP_loopback_roundtrip": "UDP latency on the host, us",
    "bcopy": "bcopy, MB/s",
    "bandwidth_pipe": "pipe bandwidth, MB/s",
    "bandwidth_TCP_loopback": "TCP bandwidth on the host, MB/s",
    "latency_TCP_roundtrip": "TCP latency between hosts, us",
    "latency_UDP_roundtrip": "UDP latency between hosts, us",
    "bandwidth_TCP": "TCP bandwidth between hosts, MB/s",
}
"""The rows of evidence.csv -> their names."""
MB = float(1 << 20)
"""A megabyte of these tables (B): lmbench's lib_timing.c counted so until November 1996, 10^6 B since."""
LISTED = frozenset(OBSERVABLES) - {"context_switch_2proc_32K", "latency_UDP_loopback_roundtrip", "latency_UDP_roundtrip"}
"""Those that the list of what is to be shown names: null call, context switch, pipe, TCP on the host and between hosts, copy rates."""
_INPUTS = {"null_system_call", "context_switch_2proc_0K", "bcopy", "bandwidth_pipe", "latency_TCP_loopback_roundtrip"}
_ARRAY = 32 * 1024
_BUFFERS = 1 << 20
PIECES = 16
"""Pieces of a simulated bandwidth, after as many that are not timed; lmbench sends more, which does not change the mean."""


@dataclass(frozen=True)
class System:
    """A system of lmbench's tables and the simulated platform. ``inputs``: rows from which a value of the host is taken."""

    name: str
    platform: str
    of: str
    role: str
    inputs: frozenset[str]
    published: Mapping[str, float]
    ids: Mapping[str, str]

    @property
    def remote(self) -> bool:
        """Between two machines."""
        return "@" in self.platform


def _file() -> Path:
    return paths.validate_dir() / "lmbench.toml"


@cache
def _tables() -> dict[str, Any]:
    return toml_text.read(_file(), "lmbench")[1]


@cache
def systems() -> tuple[System, ...]:
    """The systems of ``validate/lmbench.toml`` with their published rows. Raises InputError for a broken file."""
    rows = [r for r in csv.DictReader(read_text(paths.reference_dir() / "period/evidence.csv").splitlines())
            if r["id"].startswith("LM96-") and r["use"] == "calibrate"]
    found = []
    for s in _tables()["system"]:
        network, of = s.get("network", ""), s.get("of", "loopback")
        mine = [r for r in rows if r["network"] == of and s["name"] in (r["machine"], r["version"])]
        if not mine:
            raise InputError(f"no rows of '{s['name']}', {of}", _file(), code="missing-key")
        inputs = frozenset(s.get("inputs", () if network else _INPUTS))
        found.append(System(s["name"], f"{s['host']}*2@{network}" if network else s["host"], of, s["role"], inputs,
                            {r["observable"]: float(r["value"]) for r in mine}, {r["observable"]: r["id"] for r in mine}))
    return tuple(found)


# --- the programs ------------------------------------------------------------------------------------------------------------------


def pipe_buffer(os: str) -> str:
    """Capacity of a pipe of the operating system; Linux's for one that is not known."""
    known: Mapping[str, Mapping[str, str]] = _tables()["pipe"]
    return next((v["buffer"] for name, v in known.items() if os.startswith(name)), known["Linux"]["buffer"])


def _size(name: str) -> int:
    return int(units.parse(_tables()["programs"][name], "B"))


def _to_and_fro(model: str, platform: str, sets: Sequence[str], apart: bool = False) -> float:
    """Round trip (s) of a word between two processes on one processor, or ``apart`` on two hosts."""
    from retrompi.sim import simulate
    from retrompi.spec.question import Question, pingpong

    where, cores = ([0, 1], ()) if apart else ([0, 0], (0, 0))
    asked = Question(model, platform, pingpong([_size("word")], 20, 3), where, sets, cores=cores, idle_overrides=True)
    return 2e-6 * float(simulate.benchmark(asked)[0]["time_us"])


def _one_way(model: str, platform: str, size: int, sets: Sequence[str], apart: bool = False) -> float:
    """Bandwidth (`MB`/s) of `PIECES` in one direction; the processes of one host have a processor each where there are two."""
    from retrompi.sim import simulate
    from retrompi.spec.question import Benchmark, Question

    cores: tuple[int, ...] = ()
    if not apart:
        cores = (0, 1) if registry.platform(platform).hosts[0].cores > 1 else (0, 0)
    work = Benchmark("osu_bandwidth", {"sizes": [size], "window": PIECES, "reps": 1, "warm_up": 1})
    asked = Question(model, platform, work, [0, 1] if apart else [0, 0], sets, cores=cores, idle_overrides=True)
    return size / float(simulate.benchmark(asked)[0]["time_us"]) * 1e6 / MB


def _of_pipe(platform: Platform) -> list[str]:
    return [f"sockets.buffer={pipe_buffer(platform.hosts[0].os)}"]


def _displacement_time(platform: Platform) -> float:
    """Time (s) to read again what another process with an array of the same size has displaced from the second-level cache."""
    host = platform.hosts[0]

    def misses(working_set: float) -> float:
        return lost_l2(working_set * host.l2_ways / host.l2, int(host.l2_ways))

    return _ARRAY * (misses(2 * _ARRAY) - misses(_ARRAY)) / host.read_mem


def _null_call(platform: str, loaded: Platform, sets: Sequence[str]) -> float:
    """A write to /dev/null does nothing else, so this is the host's value."""
    return loaded.hosts[0].syscall * 1e6


def _switch(platform: str, loaded: Platform, sets: Sequence[str]) -> float:
    pipe = [*_of_pipe(loaded), *sets]
    once = _to_and_fro(PIPE, platform, pipe) - _to_and_fro(PIPE, platform, [*pipe, "platform.host.dispatch=0 us"])
    return once / 2 * 1e6


def _switch_32(platform: str, loaded: Platform, sets: Sequence[str]) -> float:
    return _switch(platform, loaded, sets) + _displacement_time(loaded) * 1e6


def _pipe_latency(platform: str, loaded: Platform, sets: Sequence[str]) -> float:
    return _to_and_fro(PIPE, platform, [*_of_pipe(loaded), *sets]) * 1e6


def _tcp_latency(platform: str, loaded: Platform, sets: Sequence[str], apart: bool = False) -> float:
    return _to_and_fro(STREAM, platform, sets, apart) * 1e6


def _bcopy(platform: str, loaded: Platform, sets: Sequence[str]) -> float:
    """A process that sends a message to itself copies it once."""
    from retrompi._engine import Trace
    from retrompi.sim import simulate
    from retrompi.spec.question import Question, Replay

    size = _size("copied")
    lines = f"0 init\n0 irecv 0 0 {size} 6\n0 send 0 0 {size} 6\n0 wait 0 0 0\n0 finalize\n"
    trace = Trace.parse([([lines.encode()], "bcopy/rank-0.txt", 0)])
    return size / simulate.run(Question(PIPE, platform, Replay(trace), [0], sets, idle_overrides=True)).time_s / MB


def _pipe_bandwidth(platform: str, loaded: Platform, sets: Sequence[str]) -> float:
    return _one_way(PIPE, platform, _size("pipe_piece"), [*_of_pipe(loaded), *sets])


def _tcp_bandwidth(platform: str, loaded: Platform, sets: Sequence[str], apart: bool = False) -> float:
    buffers = [f"platform.host.{k}={_BUFFERS} B" for k in ("window", "sndbuf")]
    return _one_way(STREAM, platform, _size("tcp_piece"), [*buffers, *sets], apart)


_ALONE: dict[str, Callable[[str, Platform, Sequence[str]], float]] = {
    "null_system_call": _null_call, "context_switch_2proc_0K": _switch, "context_switch_2proc_32K": _switch_32,
    "latency_pipe_roundtrip": _pipe_latency, "latency_TCP_loopback_roundtrip": _tcp_latency, "latency_UDP_loopback_roundtrip": _tcp_latency,
    "bcopy": _bcopy, "bandwidth_pipe": _pipe_bandwidth, "bandwidth_TCP_loopback": _tcp_bandwidth,
}
_BETWEEN: dict[str, Callable[[str, Platform, Sequence[str], bool], float]] = {
    "latency_TCP_roundtrip": _tcp_latency, "latency_UDP_roundtrip": _tcp_latency, "bandwidth_TCP": _tcp_bandwidth,
}


def one(platform: str, observable: str, sets: Sequence[str] = ()) -> float:
    """One number of lmbench (us or `MB`/s) of a platform with overrides."""
    loaded = registry.platform(platform)
    if sets:
        pairs = (s.split("=", 1) for s in sets)
        loaded = loaded.with_overrides({k.removeprefix("platform."): v for k, v in pairs if k.startswith("platform.")})
    if observable in _BETWEEN:
        return _BETWEEN[observable](platform, loaded, sets, True)
    return _ALONE[observable](platform, loaded, sets)


def measure(platform: str, sets: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The output of lmbench on the first host of ``platform``, and between its first two: rows observable, title, value, unit.

    Raises UsageError for an unknown platform or override.
    """
    loaded = registry.platform(platform)
    rows = [_row(o, one(platform, o, sets)) for o in _ALONE]
    if len(loaded.hosts) > 1:
        rows += [_row(o, one(platform, o, sets)) for o in _BETWEEN]
    return rows


def _row(observable: str, value: float) -> dict[str, Any]:
    title, _, unit = OBSERVABLES[observable].rpartition(", ")
    return {"observable": observable, "title": title, "value": value, "unit": unit}


# --- beside what was published -------------------------------------------------------------------------------------------------------


def table() -> list[dict[str, Any]]:
    """A row for every published number: system, platform, role, observable, id, simulated, published, error (a share), use, near.

    ``use``: input (a value of the host is taken from it), fitted (a global constant was fitted to it, among others), predicted.
    """
    rows = []
    for s in systems():
        for o, published in s.published.items():
            simulated = one(s.platform, o)
            use = "input" if o in s.inputs else "fitted" if s.role == "fitted" and o == "latency_pipe_roundtrip" else "predicted"
            error = simulated / published - 1
            rows.append({**_row(o, simulated), "system": s.name, "network": s.of, "platform": s.platform, "role": s.role, "id": s.ids[o],
                         "simulated": simulated, "published": published, "error": error, "use": use, "near": abs(error) <= NEAR,
                         "listed": o in LISTED})
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a `table`: near and all predictions by observable, and the systems with every row, or every listed row, near."""
    by: dict[str, list[int]] = {}
    for r in rows:
        if r["use"] != "input":
            n = by.setdefault(r["observable"], [0, 0])
            n[0] += r["near"]
            n[1] += 1
    names = list(dict.fromkeys(r["system"] for r in rows))
    unused = {r["system"] for r in rows if r["role"] == "nothing"}

    def whole(listed: bool) -> list[str]:
        return [n for n in names if all(r["near"] for r in rows if r["system"] == n and (r["listed"] or not listed))]

    return {
        "observables": {o: {"near": a, "of": b} for o, (a, b) in by.items()}, "systems": len(names), "all_near": whole(False),
        "listed_near": whole(True), "listed_near_unused": [n for n in whole(True) if n in unused],
    }


# --- the hosts' values from their inputs ---------------------------------------------------------------------------------------------

_SOLVED = {
    "latency_TCP_loopback_roundtrip": (("loopback_segment",), "s"), "bandwidth_pipe": (("copy_l2", "copy_l1"), "B/s"),
    "latency_TCP_roundtrip": (("tcp_segment",), "s"),
}
"""Input -> the host's values that get the number at which the simulated row is the published one."""


def fit() -> list[dict[str, Any]]:
    """Takes the hosts' values from their input rows and fits `sockets.operation` to the pipe latencies of the systems with role "fitted".

    Returns rows file, key, value, at (what it gives) and published, in the order in which `write` puts them into files.
    """
    from math import log, sqrt

    from retrompi.spec.machine import machines

    rows: list[dict[str, Any]] = []
    model = registry.model(PIPE)
    param = model.params()["operation"]
    known = [s for s in systems() if s.role == "fitted"]

    def cost(value: float) -> float:
        sets = [f"sockets.operation={value * 1e6:.6g} us"]
        return sum(log(one(s.platform, "latency_pipe_roundtrip", sets) / s.published["latency_pipe_roundtrip"]) ** 2 for s in known)

    low, high = float(param.low), float(param.high)
    for _ in range(24):  # golden section
        a, b = high - (high - low) * (sqrt(5) - 1) / 2, low + (high - low) * (sqrt(5) - 1) / 2
        low, high = (low, b) if cost(a) < cost(b) else (a, high)
    operation = f"{(low + high) / 2 * 1e6:.6g} us"
    rows.append({"file": model.folder() / "fit.toml", "table": model.name, "key": "operation", "value": operation,
                 "from": [s.ids["latency_pipe_roundtrip"] for s in known]})
    pipe = [f"sockets.operation={operation}"]
    for s in systems():
        host = machines.host(s.platform.partition("*")[0])
        for o, (keys, unit) in _SOLVED.items():
            if o not in s.inputs or o not in s.published:
                continue
            q = host.quantities[keys[0]]
            if q.low is None or q.high is None:
                raise InputError(f"'{keys[0]}' is taken from {s.ids[o]} but states no range", host.path, code="missing-key")
            value = _solve(s, o, keys, unit, (q.low, q.high), pipe if o == "bandwidth_pipe" else [])
            values = dict.fromkeys(keys, value)
            if "loopback_segment" in keys:  # half of it at either end
                number, _, u = value.partition(" ")
                values["tcp_segment"] = f"{float(number) / 2:.6g} {u}"
            file = host.path.with_name(f"{host.path.stem}.fit.toml")
            rows += [{"file": file, "table": "fit", "key": k, "value": v, "from": [s.ids[o]]} for k, v in values.items()]
    return rows


def _solve(s: System, observable: str, keys: Sequence[str], unit: str, ends: tuple[float, float], more: Sequence[str]) -> str:
    """The value of ``keys`` at which the simulated number is the published one, by bisection of its logarithm."""
    from math import sqrt

    low, high = ends
    want = s.published[observable]

    def text(v: float) -> str:
        return f"{v * 1e6:.6g} us" if unit == "s" else f"{v / 1e6:.6g} MB/s"

    for _ in range(30):
        middle = sqrt(low * high)
        got = one(s.platform, observable, [*(f"platform.host.{key}={text(middle)}" for key in keys), *more])
        low, high = (low, middle) if got > want else (middle, high)
    return text(sqrt(low * high))


def write(rows: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Writes the rows of `fit`; values of other fits in the same files stay. Returns the files."""
    values: dict[tuple[Path, str], dict[str, str]] = {}
    sources: dict[tuple[Path, str], set[str]] = {}
    for r in rows:
        at = r["file"], r["table"]
        values.setdefault(at, {})[r["key"]] = r["value"]
        sources.setdefault(at, set()).update(r["from"])
    for (file, table), mine in values.items():
        add_to_fit(file, table, mine, {"rows": sorted(sources[file, table])}, "retrompi lmbench --fit")
    return sorted({file for file, _ in values})
