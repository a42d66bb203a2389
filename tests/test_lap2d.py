"""PETSc's lap2d, generated, beside recordings of the real one: every call of every rank, with its peers and counts.

`tests/data/lap2d.csv.gz`: recordings of a program of 40 lines (PETSc 3.18.5 for Open MPI 4.1.4; MatSetValue of the five-point Laplacian,
KSPGMRES, PCNONE, rtol 1e-12): section 1 is KSPSolve, section 2 two calls of MatMult. Requests are replaced by what they were made for;
MPI_Request_free and the *_init calls are left out, which PETSc makes when a vector's address is a new one, and so are the calls of a single
process on a communicator of its own. That PETSc 2.0 had other calls for the same messages follows from its source (traces/lap2d.py); no
recording of it exists.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from conftest import Outcome
from refusals import refused

from retrompi import traces
from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.spec.machine import roofline
from retrompi.spec.question import Question, Replay
from retrompi.traces.lap2d import first_row, lacking, lap2d

Run = tuple[int, int, int, int, bool]
Call = tuple[str, str]
RUNS = [(20, 20, 1, 35, True), (10, 10, 2, 12, True), (20, 20, 3, 35, True), (17, 13, 4, 33, False), (6, 20, 8, 8, False)]


@cache
def recorded() -> dict[Run, dict[tuple[int, int], list[Call]]]:
    found: dict[Run, dict[tuple[int, int], list[Call]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(Path(__file__).parent / "data/lap2d.csv.gz", "rt", newline="") as file:
        for r in csv.DictReader(file):
            run = (int(r["m"]), int(r["n"]), int(r["ranks"]), int(r["iterations"]), r["modified"] == "1")
            found[run][int(r["rank"]), int(r["section"])].append((r["call"], r["what"]))
    return found


def lines(trace: Trace, folder: Path) -> dict[int, list[list[str]]]:
    traces.write(trace, folder)
    return {me: [line.split() for line in (folder / f"rank-{me}.txt").read_text().splitlines()] for me in range(trace.ranks)}


def calls(trace: Trace, folder: Path) -> dict[int, list[Call]]:
    """Of each rank, with the peers and counts of the requests in place of their numbers."""
    found: dict[int, list[Call]] = {}
    for me, made in lines(trace, folder).items():
        found[me], requests = [], {}
        for words in made:
            options = dict(w.split("=", 1) for w in words[2:] if "=" in w)
            if words[1] in ("recvInit", "sendInit", "irecv", "isend"):
                requests[options["req"]] = (words[1].removeprefix("i")[:4], f"{words[2]}:{doubles(words[4:])}")
            if words[1] in ("startall", "waitall"):
                used = [requests[r] for r in options["reqs"].split(",")]
                found[me].append((words[1], " ".join([used[0][0], *(what for _, what in used)])))
            elif words[1] in ("irecv", "isend", "wait"):
                found[me].append((words[1], " ".join(requests[options["req"]])))
            elif words[1] == "allreduce":
                found[me].append((words[1], str(doubles([words[2], words[4]]))))
    return found


def doubles(counted: list[str]) -> int:
    """A count with its type: bytes (6) or numbers."""
    return int(counted[0]) // (8 if counted[1] == "6" else 1)


@for_each("run", RUNS)
def test_every_call_is_that_of_a_recording(run: Run, tmp_path: Path) -> None:
    m, n, ranks, iterations, modified = run
    real = recorded()[run]
    solve = calls(lap2d(m, n, ranks, iterations, modified=modified, persistent=True), tmp_path / "solve")
    product = calls(lap2d(m, n, ranks, 2, products=True, persistent=True), tmp_path / "products")
    for rank in range(ranks):
        assert solve[rank] == real[rank, 1], rank
        assert product[rank] == real[rank, 2], rank
    assert ranks == 1 or all(real.values())


@for_each("run", RUNS)
def test_the_release_of_1997_sends_the_same_messages(run: Run, tmp_path: Path) -> None:
    m, n, ranks, iterations, modified = run
    new = calls(lap2d(m, n, ranks, iterations, modified=modified, persistent=True), tmp_path / "new")
    old = calls(lap2d(m, n, ranks, iterations, modified=modified), tmp_path / "old")
    for rank in range(ranks):
        started = Counter(f"{what.split()[0]} {one}" for call, what in new[rank] if call == "startall" for one in what.split()[1:])
        assert started == Counter(what for call, what in old[rank] if call in ("irecv", "isend"))
        reduced = [[what for call, what in each[rank] if call == "allreduce"] for each in (old, new)]
        assert reduced[0] == reduced[1]
        first = [call for call, _ in old[rank]][1 : 2 + 3 * len(lacking(rank, m, n, ranks))]
        others = len(lacking(rank, m, n, ranks))
        assert ranks == 1 or first == ["irecv"] * others + ["isend"] * others + ["wait"] * others + ["waitall"]


def columns(row: int, m: int, n: int) -> list[int]:
    i, j = divmod(row, n)
    return [row, *(row - n for _ in range(i > 0)), *(row + n for _ in range(i < m - 1)), *(row - 1 for _ in range(j > 0)),
            *(row + 1 for _ in range(j < n - 1))]


@for_each("m, n, ranks", [(1, 9, 4), (7, 5, 3), (5, 7, 35), (4, 9, 5), (9, 4, 11), (12, 12, 1), (3, 8, 6)])
def test_entries_and_columns_are_those_of_the_matrix(m: int, n: int, ranks: int, tmp_path: Path) -> None:
    """Counted in the matrix itself, row by row."""
    owner = [rank for rank in range(ranks) for _ in range(first_row(rank, m * n, ranks), first_row(rank + 1, m * n, ranks))]
    assert len(owner) == m * n
    made = lines(lap2d(m, n, ranks, 1, products=True), tmp_path / "made")
    for rank in range(ranks):
        used = [column for row in range(m * n) if owner[row] == rank for column in columns(row, m, n)]
        outside = [column for column in used if owner[column] != rank]
        assert lacking(rank, m, n, ranks) == Counter(owner[column] for column in set(outside)), rank
        entries = [float(w[2].split("nz=")[1].split(",")[0]) * float(w[3]) for w in made[rank] if len(w) > 2 and w[2].startswith("spmv")]
        expected = [len(used) - len(outside), *([len(outside)] if outside else [])]
        assert [round(count) for count in entries] == expected, rank


@for_each("modified, per_vector", [(True, 4), (False, 4)])
def test_a_solve_does_the_operations_of_gmres(modified: bool, per_vector: int, tmp_path: Path) -> None:
    """A step: 2 an entry, 4 for each vector of the basis and 3 for the norm; a cycle: 2 for each vector, and the sum."""
    m = n = 40
    made = lines(lap2d(m, n, 3, 60, modified=modified), tmp_path / "made")
    done = sum(roofline.kernel(w[2]).work(float(w[3])).operations * float(w[4]) for r in made.values() for w in r if w[1] == "kernel")
    rows, entries = m * n, 5 * m * n - 2 * (m + n)
    steps = 61 * 2 * entries + 2 * rows * sum(per_vector * k + 3 for k in range(1, 31))
    assert abs(done / (steps + 2 * rows * (60 + 2 + 3) + 2 * rows) - 1) < 1e-3


@for_each("modified, persistent", [(True, False), (False, False), (False, True)])
def test_a_generated_solve_completes(modified: bool, persistent: bool) -> None:
    made = lap2d(30, 30, 4, 31, modified=modified, persistent=persistent)
    assert simulate.run(Question("mpich", "linux-p6-200*4@switch-100", Replay(made), "distributed")).outcome == "completed"


def test_a_factor_makes_its_kernels_longer() -> None:
    def took(**factors: float) -> float:
        asked = Question("craympt", "cray-t3e-pe*1@t3e-torus", Replay(lap2d(100, 100, 1, 3, **factors)), "distributed")
        return simulate.run(asked).time_s

    # Besides kernels there is the library's start, which is in each.
    assert abs(took(product=2) + took(vector=2) - 3 * took()) < 3e-3 * took()


def test_what_it_cannot_generate_is_refused() -> None:
    for args in ((0, 1, 1, 1), (3, 3, 10, 1), (3, 3, 1, 0)):
        with refused(UsageError, "out-of-range"):
            lap2d(*args)
    with refused(UsageError, "out-of-range"):
        lap2d(3, 3, 1, 1, product=0)


def test_a_user_reaches_it_by_name(retrompi: Callable[..., Outcome]) -> None:
    answer = retrompi("why", "lap2d", "m=100", "n=100", "ranks=4", "iterations=5", "-m", "craympt", "-p", "cray-t3e")
    assert answer.code == 0
    assert "compute" in answer.out


@for_each("name, open_rows", [
    ("plap_t3e", {"PLAP-027": 134.6, "PLAP-028": 432.3, "PLAP-037": 2.233, "PLAP-038": 9.566}),
    ("plap_sp2", {"PLAP-001": 95.54, "PLAP-002": 455.5, "PLAP-011": 1.602, "PLAP-012": 9.425}),
])
def test_the_predictions_are_those_that_the_script_makes(
    name: str, open_rows: dict[str, float], application: Callable[[str], Any], predicted: Callable[[Path], Any]
) -> None:
    """Nominal times of the smaller grid; the interval's ends need hundreds of runs."""
    script = application(name)
    told = predicted(script.FILE)
    assert len(told) == 26
    for row in script.nominal(script.CASES[1]):
        assert told[row.id]["nominal_s"] == f"{row.nominal_s:.4g}"
    for row in (row for row in told.values() if row["low_s"]):
        assert 0 < float(row["low_s"]) <= float(row["median_s"]) <= float(row["high_s"])
    for id, published in open_rows.items():
        assert float(told[id]["nominal_s"]) == pytest.approx(published, rel=2e-3)


def test_a_draw_has_the_latency_that_it_asks_for(application: Callable[[str], Any]) -> None:
    sp2, script = application("_sp2"), application("plap_sp2")
    drawn = [script.library(draw) for draw in range(40)]
    assert Counter(model for model, _ in drawn) == dict.fromkeys(sp2.MODELS, 20)
    assert all(sp2.LATENCY * script.CLOCKS <= latency <= sp2.LATENCY for _, latency in drawn)
    for model in sp2.MODELS:
        sets = dict(one.partition(".")[2].split("=") for one in sp2.user_space(model, script.HOST, 40e-6))
        assert sp2.latency_of(model, script.HOST, float(sets["overhead"].removesuffix("s"))) == pytest.approx(40e-6, rel=1e-3)
