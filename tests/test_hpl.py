"""HPL's solve, generated, beside recordings of the real one: every call of every rank, with its peer, tag and bytes.

`tests/data/hpl.csv.gz`: `retrompi trace record` of xhpl (netlib's HPL, MPICH 4.0.2; NBMIN 4, right-looking, increasing ring, no look-ahead,
long swaps, both forms transposed, equilibration), from the first call of the solve to four calls behind the last with a tag of its own;
without the polls for the panel. `hpl-forms.csv.gz`: the same with every broadcast of a panel and with look-ahead of one panel (HPL 2.3), to
the last call with a tag of the solve.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
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
from retrompi.traces.hpl import BROADCASTS, LAST_PANEL_TAG, PANEL_TAG, HplForm, hpl, local, solve

Grid = tuple[int, int, int, int]
Call = tuple[str, int, int, int]
Variant = tuple[int, int, int, int, int, int]
GRIDS = [(150, 8, 1, 4), (150, 8, 4, 1), (150, 8, 2, 2), (97, 12, 4, 2)]


@cache
def recorded() -> dict[Grid, dict[int, list[Call]]]:
    found: dict[Grid, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(Path(__file__).parent / "data/hpl.csv.gz", "rt", newline="") as file:
        for r in csv.DictReader(file):
            grid = (int(r["n"]), int(r["nb"]), int(r["p"]), int(r["q"]))
            found[grid][int(r["rank"])].append((r["call"], int(r["peer"]), int(r["tag"]), int(r["bytes"] or 0)))
    return found


@cache
def recorded_forms() -> dict[Variant, dict[int, list[Call]]]:
    found: dict[Variant, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(Path(__file__).parent / "data/hpl-forms.csv.gz", "rt", newline="") as file:
        for r in csv.DictReader(file):
            n, nb, p, q, bcast, depth = (int(r[k]) for k in ("n", "nb", "p", "q", "bcast", "depth"))
            found[n, nb, p, q, bcast, depth][int(r["rank"])].append((r["call"], int(r["peer"]), int(r["tag"]), int(r["bytes"])))
    return found


@cache
def pivots(n: int) -> list[int]:
    """The pivots of HPL's matrix: a linear congruential generator, column by column (doc: testing/matgen)."""
    factor, state = 1481765933 << 32 | 1284865837, 100
    columns = []
    for _ in range(n):
        column = []
        for _ in range(n):
            state = (state * factor + 1) % 2**64
            column.append(0.5 - state / 2**64)
        columns.append(column)
    found = []
    for j in range(n):
        at = max(range(j, n), key=lambda i: abs(columns[j][i]))
        found.append(at)
        for column in columns:
            column[j], column[at] = column[at], column[j]
        factors = [columns[j][i] / columns[j][j] for i in range(j + 1, n)]
        for column in columns[j + 1 :]:
            top = column[j]
            for i, f in enumerate(factors, j + 1):
                column[i] -= f * top
    return found


def calls(trace: Trace, folder: Path) -> dict[int, list[Call]]:
    traces.write(trace, folder)
    found: dict[int, list[Call]] = {}
    for me in range(trace.ranks):
        found[me] = []
        for line in (folder / f"rank-{me}.txt").read_text().splitlines():
            words = line.split()
            if words[1] in ("send", "recv", "irecv", "Ssend", "ISsend"):
                found[me].append((words[1], int(words[2]), int(words[3]), int(words[4]) * (1 if words[5] == "6" else 8)))
            elif words[1] == "wait":
                found[me].append(("wait", int(words[3] if int(words[2]) == me else words[2]), int(words[4]), 0))
    return found


@for_each("grid", GRIDS)
def test_every_call_is_that_of_a_recording(grid: Grid, tmp_path: Path) -> None:
    n, nb, p, q = grid
    made, real = calls(solve(nb, p, q, pivots(n)), tmp_path / "made"), recorded()[grid]
    assert made.keys() == real.keys()
    for rank, mine in made.items():
        assert mine == real[rank][: len(mine)], rank
        assert all(tag > 9000 for _, _, tag, _ in real[rank][len(mine) :])  # what follows is not the solve's


def of_panels(calls: list[Call], panels: bool) -> list[Call]:
    return [c for c in calls if (PANEL_TAG <= c[2] <= LAST_PANEL_TAG) is panels]


def test_every_call_of_every_broadcast_and_of_look_ahead_is_that_of_a_recording(tmp_path: Path) -> None:
    """Look-ahead on several rows: a poll finds the panel between two messages of the swaps, where timing has it; each order is compared."""
    forms = recorded_forms()
    assert {(bcast, depth) for *_, bcast, depth in forms} == {(b, d) for b in range(len(BROADCASTS)) for d in (0, 1)} - {(0, 0)}
    for (n, nb, p, q, bcast, depth), real in forms.items():
        folder = tmp_path / f"{n}-{p}-{q}-{bcast}-{depth}"
        made = calls(solve(nb, p, q, pivots(n), HplForm(bcast=bcast, depth=depth)), folder)
        assert made.keys() == real.keys()
        for rank, mine in made.items():
            for panels in (False, True) if depth and p > 1 else (None,):
                some, those = (mine, real[rank]) if panels is None else (of_panels(mine, panels), of_panels(real[rank], panels))
                end = len(those)
                assert some[:end] == those, (folder.name, rank, panels)
                assert all(tag > 9000 for _, _, tag, _ in some[end:])  # the last reduction of the solution


def operations(trace: Trace, folder: Path) -> float:
    """Of all its kernels but the searches for pivots, which compare."""
    traces.write(trace, folder)
    words = [line.split() for file in folder.glob("rank-*.txt") for line in file.read_text().splitlines() if " kernel " in line]
    return sum(roofline.kernel(w[2]).work(float(w[3])).operations * float(w[4]) for w in words if w[2] != "norm")


@for_each("p, q", [(1, 1), (1, 3), (2, 1), (2, 3), (4, 4), (8, 1)])
def test_a_generated_solve_does_the_operations_of_a_factorisation(p: int, q: int, tmp_path: Path) -> None:
    n, nb = 400, 20
    least = 2 / 3 * n**3
    # Each process of a column solves for all rows that its column swaps: p - 1 times more of the triangular solves, n^2 nb / 2 each.
    assert 0.97 * least < operations(hpl(n, nb, p, q), tmp_path / "made") - (p - 1) * n * n * nb / 2 < 1.05 * least


@for_each("p, q", [(1, 3), (2, 2), (4, 2)])
def test_a_generated_solve_completes(p: int, q: int) -> None:
    asked = Question("mpich", f"linux-p6-200*{p * q}@switch-100", Replay(hpl(120, 16, p, q)), "distributed")
    assert simulate.run(asked).outcome == "completed"


@for_each("found", [0.0, 0.4, 1.0])
def test_look_ahead_completes_wherever_the_panel_is_found_and_does_the_same_work(found: float, tmp_path: Path) -> None:
    for bcast in range(len(BROADCASTS)):
        trace = hpl(200, 16, 2, 4, bcast=bcast, depth=1, found=found)
        asked = Question("mpich", "linux-p6-200*8@switch-100", Replay(trace), "distributed")
        assert simulate.run(asked).outcome == "completed"
    without = operations(hpl(200, 16, 2, 4, bcast=bcast), tmp_path / "without")
    assert abs(operations(trace, tmp_path / "with") / without - 1) < 0.02  # trsm and gemm of blocks instead of all columns at once


def test_local_counts_are_those_of_the_distribution() -> None:
    for count, start, block, processes in ((17, 0, 4, 3), (30, 8, 4, 2), (5, 12, 4, 4)):
        owners = [i // block % processes for i in range(start, start + count)]
        assert [local(count, start, block, me, processes) for me in range(processes)] == [owners.count(me) for me in range(processes)]


def test_parts_of_a_solve_are_those_of_the_whole(tmp_path: Path) -> None:
    """Its first panels are the beginning of every process's calls, the substitution their end."""
    nb, p, q = 20, 2, 2
    pivots = [min(i + 30, 199) for i in range(200)]
    whole, first, last = (calls(solve(nb, p, q, pivots, panels=panels), tmp_path / str(panels)) for panels in (None, 4, 0))
    for rank, told in whole.items():
        assert told[: len(first[rank])] == first[rank]
        assert told[-len(last[rank]) :] == last[rank]
        assert len(first[rank]) > 20
    asked = Question("mpich", f"linux-k7-500*{p * q}@switch-100-bonded", Replay(solve(nb, p, q, pivots, panels=4)), "distributed")
    done = [(row["label"], row["rank"]) for row in simulate.run(asked).marks if str(row["label"]).startswith("done")]
    assert sorted(done) == [(f"done {panel}", rank) for panel in range(4) for rank in range(p * q)]
    for panels in (-1, 11):
        with refused(UsageError, "out-of-range"):
            solve(nb, p, q, pivots, panels=panels)
    with refused(UsageError, "out-of-range"):
        solve(nb, p, q, pivots, HplForm(depth=1), panels=1)


def test_short_sides_and_calls_take_longer_where_they_were_measured() -> None:
    """Half of the rate at that side; a call's start is the same whatever it computes. Neither changes a call of MPI."""
    def took(**more: float) -> float:
        made = solve(10, 1, 1, list(range(200)), HplForm(**more))  # type: ignore[arg-type]
        asked = Question("mpich", "linux-k7-500*1@switch-100-bonded", Replay(made), "distributed")
        at = {row["label"]: row["time_s"] for row in simulate.run(asked).marks}
        return float(at["end"] - at["begin"])

    plain, half, startup = took(), took(half=10), took(startup=500)
    assert 1.6 * plain < half < 2.6 * plain
    assert took(startup=1000) - plain == pytest.approx(2 * (startup - plain), rel=1e-6)
    assert 200 * 4 * 500 / 1e9 < startup - plain < 200 * 12 * 500 / 1e9


def test_what_it_cannot_generate_is_refused() -> None:
    for args in ((0, 1, 1, 1), (10, 11, 1, 1), (10, 2, 3, 1), (10, 2, 1, 0)):
        with refused(UsageError, "out-of-range"):
            hpl(*args)
    for choice in ({"bcast": 6}, {"bcast": -1}, {"depth": 2}, {"found": 1.5}):
        with refused(UsageError, "out-of-range"):
            hpl(10, 2, 1, 2, **choice)  # type: ignore[arg-type]
    with refused(UsageError, "out-of-range"):
        solve(2, 1, 1, [0, 0])


def test_a_user_reaches_it_by_name(retrompi: Callable[..., Outcome]) -> None:
    answer = retrompi("why", "hpl", "n=200", "nb=20", "p=1", "q=4", "-m", "mpich", "-p", "linux-p6-200*4@switch-100")
    assert answer.code == 0
    assert "compute" in answer.out


@pytest.fixture
def runs(application: Callable[[str], Any]) -> Any:
    return application("hpl_runs")


@for_each("p, q, bcast", [(1, 4, 1), (1, 3, 0), (2, 2, 1)])
def test_where_polls_find_panels_follows_from_one_simulation(p: int, q: int, bcast: int, runs: Any) -> None:
    """The next, with its durations, gives the same places. Panels found at once, in the middle or at the end everywhere are hardly faster:
    a poll that finds a panel before it is sent waits, and one that finds it late lets its sender wait."""
    n, nb = 900, 30

    def run(form: HplForm) -> simulate.Result:
        trace = solve(nb, p, q, runs.pivots(n), form)
        return simulate.run(Question("mpich", f"linux-k7-500*{p * q}@switch-100-bonded", Replay(trace), "distributed"))

    shares = [run(HplForm(bcast=bcast, depth=1, found=lambda k, r, blocks, s=share: round(s * blocks))) for share in (0, 0.5, 1)]  # type: ignore[misc]
    places = runs.found_by_polls(runs.pace(shares[1], (p, q), n, nb, bcast), (p, q), n, nb, bcast)
    settled = run(HplForm(bcast=bcast, depth=1, found=lambda panel, rank, blocks: places.get((panel, rank), 0)))
    again = runs.found_by_polls(runs.pace(settled, (p, q), n, nb, bcast), (p, q), n, nb, bcast)
    assert runs._common.seconds(settled) < min(runs._common.seconds(result) for result in shares) * 1.02
    assert runs._common.seconds(settled) < max(runs._common.seconds(result) for result in shares) * 0.95
    assert sum(abs(again[key] - places[key]) <= 1 for key in places) > 0.8 * len(places)


def test_an_open_row_fixes_the_rate_of_the_product(runs: Any) -> None:
    """Of a small machine whose rate is known: what it was asked with is found again, from the time alone."""
    small = ((1, 2), 400)

    def question(trace: Trace, ranks: int) -> Question:
        return Question("mpich", f"linux-k7-500*{ranks}@switch-100-bonded", Replay(trace), "distributed")

    def machine(rate: float) -> object:
        return runs.Machine(file=Path("unused"), ids={small: "X-1"}, draws=1, open=(*small, rate), question=question)

    published = runs.Runs(machine(1.0)).best(*small, runs.Draw(), 480e6)[0]
    assert runs.Runs(machine(published)).gemm_rate(runs.Draw()) == pytest.approx(480e6, rel=0.01)


@for_each("name, open_row, published", [("hpla", "HPLA-004", 1.95), ("hplt", "HPLT-006", 2.73)])
def test_the_predictions_have_every_row_and_the_open_one_as_published(
    name: str, open_row: str, published: float, application: Callable[[str], Any], predicted: Callable[[Path], Any]
) -> None:
    machine = application(name).MACHINE
    told = predicted(machine.file)
    assert list(told) == list(machine.ids.values())
    assert float(told[open_row]["nominal_gflops"]) == pytest.approx(published, rel=4e-3)
    for row in told.values():
        low, median, high = (float(row[f"{end}_gflops"]) for end in ("low", "median", "high"))
        assert 0 < low <= median <= high
        assert (low, high) == (published, published) if row["id"] == open_row else low < high


@pytest.fixture
def falcon(application: Callable[[str], Any]) -> Any:
    return application("hplf")


def test_a_long_solve_is_the_sum_of_its_panels(falcon: Any) -> None:
    """The open rows fix what short sides and calls cost; sums of panels then take as long as whole solves do."""
    runs = falcon.Runs()
    form = runs.form()
    assert falcon.gflops(6625, runs.whole((1, 1), 6625, form)) == pytest.approx(falcon.OPEN_RATE, rel=2e-3)
    assert falcon.gflops(150, runs.whole((1, 1), 150, form)) == pytest.approx(falcon.OPEN_RATE / 2, rel=2e-3)
    pace = runs.pace((2, 2), form)
    for n in (600, 2000):
        assert pace.seconds(n, form.nb) == pytest.approx(runs.whole((2, 2), n, form), rel=0.02)
    assert falcon._at(falcon.parabola([(x, 3 + 2 * x + x * x) for x in (1, 2, 5, 9)]), 4) == pytest.approx(27)


def test_look_ahead_gains_what_it_hides(falcon: Any) -> None:
    for columns, points in falcon.AHEAD.items():
        assert [falcon.gain(columns, x) for x, _ in points] == [y for _, y in points]
        assert falcon.gain(columns, 1.0) == 1
    assert falcon.gain(32, 0.5) == falcon.gain(max(falcon.AHEAD), 0.5)


def test_the_predictions_of_the_alphaserver_have_every_row(falcon: Any, predicted: Callable[[Path], Any]) -> None:
    """The order at half of the rate grows with the grid, and the rate a processor falls."""
    told = predicted(falcon.FILE)
    assert list(told) == [f"HPLF-{k:03}" for k in range(1, 11)]
    values = {name: tuple(float(row[end]) for end in ("nominal", "low", "median", "high")) for name, row in told.items()}
    assert values["HPLF-001"] == (1.136,) * 4
    assert values["HPLF-002"] == (150,) * 4
    for name, (nominal, low, median, high) in list(values.items())[2:]:
        assert 0 < low < median < high, name
        assert low * 0.9 < nominal < high * 1.1, name
    rates, orders = ([values[f"HPLF-{k:03}"][0] for k in range(first, 11, 2)] for first in (1, 2))
    assert orders == sorted(orders)
    each = [rate / 4**k for k, rate in enumerate(rates)]
    assert each == sorted(each, reverse=True)
