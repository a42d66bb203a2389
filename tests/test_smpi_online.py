"""Collectives of sub-communicators take the time that SimGrid's SMPI gives the running program, on the same ideal network.

A C program (tests/data/programs/groups.c) calls one operation on the world, on the rows and the columns of a 4 x 4 grid and on two halves.
It runs under ``smpirun`` with one algorithm after the other; the same calls are written as a trace whose ranks begin each call when the
program's began it. Every rank must then be through at the same moment, within 10 ps: SMPI adds up seconds in floating point, compares
events to 1e-12 s and the program prints 12 decimals. A message takes 10 us or more.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from ideal import run

RANKS, COLUMNS = 16, 4
ROOT = {"world": 0, "rows": 0, "columns": 1, "halves": 0}
TOLERANCE = 1e-11
ENVELOPE = 16
"""Bytes that SMPI adds to every message on the wire (smpi_request.cpp: tag, destination, communicator)."""
Times = dict[str, list[tuple[float, float]]]
PROGRAM = Path(__file__).parent / "data" / "programs" / "groups.c"
IDEAL = {
    "network/model": "CM02", "network/TCP-gamma": "0", "network/bandwidth-factor": "1", "network/latency-factor": "1",
    "network/weight-S": "0", "network/crosstraffic": "0", "smpi/simulate-computation": "no", "smpi/wtime": "0", "surf/precision": "1e-12",
    "smpi/async-small-thresh": "1000000000", "smpi/send-is-detached-thresh": "1000000000",
}
"""No factors on rates and latencies, no acknowledgements' traffic, every message eager and its sender free at once."""

PAIRS = [
    ("barrier", "dissemination", "ompi_bruck"),
    ("bcast", "binomial", "binomial_tree"),
    ("bcast", "linear", "flattree"),
    ("bcast", "scatter_doubling", "scatter_rdb_allgather"),
    ("bcast", "scatter_ring", "scatter_LR_allgather"),
    ("reduce", "binomial", "binomial"),
    ("reduce", "linear", "flat_tree"),
    ("reduce", "rabenseifner", "scatter_gather"),
    ("allreduce", "doubling", "rdb"),
    ("allreduce", "ring", "lr"),
    ("allgather", "ring", "NTSLR"),
    ("allgather", "doubling", "rdb"),
    ("allgather", "bruck", "bruck"),
    ("alltoall", "pairwise", "pair"),
    ("alltoall", "bruck", "bruck"),
    ("alltoall", "posted", "basic_linear"),
    ("gather", "binomial", "ompi_binomial"),
    ("gather", "linear", "ompi_basic_linear"),
    ("scatter", "binomial", "ompi_binomial"),
    ("scatter", "linear", "ompi_basic_linear"),
]
"""Operation, our algorithm, SMPI's name of the same one."""

pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("smpicc", "smpirun", "gcc"))), reason="SMPI or a C compiler is not installed")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled program and an ideal platform: 10 us, 100 MB/s, a link that nobody shares."""
    folder = tmp_path_factory.mktemp("smpi")
    hosts = "".join(f'<host id="h{i}" speed="1Gf"/>' for i in range(RANKS))
    routes = "".join(f'<route src="h{i}" dst="h{j}"><link_ctn id="l"/></route>' for i in range(RANKS) for j in range(i + 1, RANKS))
    (folder / "platform.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<zone id="room" routing="Full">{hosts}<link id="l" bandwidth="100MBps" latency="10us" sharing_policy="FATPIPE"/>{routes}</zone>'
        "</platform>\n"
    )
    (folder / "hosts").write_text("".join(f"h{i}\n" for i in range(RANKS)))
    subprocess.run(["smpicc", "-O1", "-o", folder / "groups", PROGRAM], check=True, capture_output=True, text=True)
    return folder


def online(room: Path, operation: str, algorithm: str, size: int) -> Times:
    """Group -> begin and end of the call on every rank, seconds."""
    config = [f"--cfg={k}:{v}" for k, v in {**IDEAL, f"smpi/{operation}": algorithm}.items()]
    command = ["smpirun", "-np", str(RANKS), "-platform", room / "platform.xml", "-hostfile", room / "hosts", *config,
               "--log=root.thresh:warning", room / "groups", operation, str(size), str(COLUMNS)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=room).stdout
    times: Times = {group: [(0.0, 0.0)] * RANKS for group in ROOT}
    for line in said.splitlines():
        rank, group, begin, end = line.split()
        times[group][int(rank)] = (float(begin), float(end))
    return times


def line_of(operation: str, size: int, root: int) -> str:
    match operation:
        case "barrier":
            return "barrier"
        case "bcast":
            return f"bcast {size} {root} 6"
        case "reduce":
            return f"reduce {size} 0 {root} 6"
        case "allreduce":
            return f"allreduce {size} 0 6"
        case "gather" | "scatter":
            return f"{operation} {size} {size} {root} 6 6"
        case _:
            return f"{operation} {size} {size} 6 6"


GROUPS = {
    "rows": lambda r: (1 + r // COLUMNS, f"{r // COLUMNS * COLUMNS}-{r // COLUMNS * COLUMNS + COLUMNS - 1}"),
    "columns": lambda r: (5 + r % COLUMNS, ",".join(str(r % COLUMNS + COLUMNS * k) for k in range(RANKS // COLUMNS))),
    "halves": lambda r: (9 + (r >= RANKS // 2), "0-7" if r < RANKS // 2 else "8-15"),
}
"""Group -> number and members of a rank's communicator."""


def replayed(operation: str, algorithm: str, size: int, times: Times) -> Times:
    """The same on our ideal network: every rank begins each call when SMPI's did."""
    made = ["; ".join(f"comm_split {GROUPS[g](r)[0]} {GROUPS[g](r)[1]}" for g in GROUPS) for r in range(RANKS)]
    network: dict[str, Any] = {"open_network": True, "envelope": ENVELOPE, "algorithms": {operation: algorithm}}
    marks = run([f"{m}; # mark ready" for m in made], **network)["marks"]
    ready = {rank: time * 1e-12 for rank, _, time in marks}
    texts = []
    for r in range(RANKS):
        now, text = ready[r], [made[r]]
        for group in ROOT:
            begin, end = times[group][r]
            where = "" if group == "world" else f" comm={GROUPS[group](r)[0]}"
            call = line_of(operation, size, ROOT[group]) + where
            text += [f"sleep {begin - now:.12f}", f"# mark {group} begins", call, f"# mark {group} ends"]
            now = end
        texts.append("; ".join(text))
    got = run(texts, **network)
    at = {(rank, label): time * 1e-12 for rank, label, time in got["marks"]}
    return {group: [(at[r, f"{group} begins"], at[r, f"{group} ends"]) for r in range(RANKS)] for group in ROOT}


def apart(a: Sequence[tuple[float, float]], b: Sequence[tuple[float, float]]) -> float:
    return max(abs(x - y) for p, q in zip(a, b, strict=True) for x, y in zip(p, q, strict=True))


@for_each("operation, ours, theirs", PAIRS)
def test_every_rank_is_through_when_smpi_says(room: Path, operation: str, ours: str, theirs: str) -> None:
    for size in (0,) if operation == "barrier" else (16, 20_000):
        want = online(room, operation, theirs, size)
        got = replayed(operation, ours, size, want)
        for group in ROOT:
            assert apart(want[group], got[group]) < TOLERANCE, (group, size, want[group], got[group])


def test_another_algorithm_would_be_seen(room: Path) -> None:
    want = online(room, "bcast", "flattree", 20_000)
    got = replayed("bcast", "binomial", 20_000, want)
    assert apart(want["rows"], got["rows"]) > 1e-5
