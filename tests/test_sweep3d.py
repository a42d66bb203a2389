"""SWEEP3D, generated, beside recordings of the real one: every call of every rank, with its peer, tag and bytes.

`tests/data/sweep3d.csv.gz`: `retrompi trace record` of SWEEP3D 2.2b (its MPI form, gfortran, MPICH 4.0.2), from MPI_Init to MPI_Finalize.
Its PVM form, whose computation and wavefront are the same, was not recorded; how it sums up is its source's (msg_stuff.cpp).
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
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.sim import simulate
from retrompi.spec.machine import roofline
from retrompi.spec.question import Question, Replay
from retrompi.traces.sweep3d import share, sweep3d

Run = tuple[int, ...]
Call = tuple[str, ...]
KEY = ("nx", "ny", "nz", "p", "q", "mk", "mmi", "angles", "scattering", "iterations")


def count_in_bytes(count: str, kind: str) -> str:
    return str(int(count) * {"0": 8, "1": 4, "6": 1}[kind])


@cache
def recorded() -> dict[Run, dict[int, list[Call]]]:
    found: dict[Run, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(Path(__file__).parent / "data/sweep3d.csv.gz", "rt", newline="") as file:
        for r in csv.DictReader(file):
            to = [r[name] for name in ("peer", "tag") if r[name]]
            size = [count_in_bytes(r["count"], r["type"])] if r["count"] else []
            found[tuple(int(r[name]) for name in KEY)][int(r["rank"])].append((r["call"], *to, *size))
    return found


def lines(trace: Trace, folder: Path) -> dict[int, list[list[str]]]:
    traces.write(trace, folder)
    return {me: [line.split()[1:] for line in (folder / f"rank-{me}.txt").read_text().splitlines()] for me in range(trace.ranks)}


def calls(trace: Trace, folder: Path) -> dict[int, list[Call]]:
    """Of each rank, without what is computed."""
    found: dict[int, list[Call]] = {}
    for me, told in lines(trace, folder).items():
        found[me] = []
        for words in told:
            if words[0] in ("send", "recv"):
                found[me].append((*words[:3], count_in_bytes(*words[3:5])))
            elif words[0] in ("bcast", "allreduce"):
                found[me].append((words[0], count_in_bytes(words[1], words[3])))
            elif words[0] == "barrier":
                found[me].append(("barrier",))
    return found


def made(run: Run, **options: bool) -> Trace:
    nx, ny, nz, p, q, mk, mmi, angles, scattering, iterations = run
    return sweep3d(nx, ny, nz, p, q, mk, mmi, iterations, angles=angles, scattering=scattering, **options)


@for_each("run", list(recorded()))
def test_every_call_is_that_of_a_recording(run: Run, tmp_path: Path) -> None:
    generated, real = calls(made(run), tmp_path / "made"), recorded()[run]
    assert len(real) == run[3] * run[4]
    for rank, told in real.items():
        assert generated[rank] == told, rank


@for_each("run", list(recorded()))
def test_pvm_s_form_has_the_same_wavefront_and_sums_by_messages(run: Run, tmp_path: Path) -> None:
    ranks, iterations = run[3] * run[4], run[9]
    both = [calls(made(run, pvm=pvm), tmp_path / str(pvm)) for pvm in (False, True)]
    for rank in range(ranks):
        waves = [[c for c in each[rank] if c[0] in ("send", "recv") and int(c[2]) >= 1000] for each in both]
        assert waves[0] == waves[1], rank
        rest = Counter(c[0] for c in both[1][rank] if not (c[0] in ("send", "recv") and int(c[2]) >= 1000))
        reductions = 2 * iterations + 8 if ranks > 1 else 0
        assert rest["send" if rank else "recv"] == (reductions if rank else reductions * (ranks - 1))
        assert rest["allreduce"] == 0
    # What it tells of itself: messages of an iteration, all processes together (code: driver.f).
    p, q = run[3:5]
    blocks = -(-run[2] // min(run[5], run[2])) * (run[7] // run[6]) if ranks > 1 else 0
    sent = sum(c[0] == "send" and int(c[2]) >= 1000 for rank in range(ranks) for c in both[0][rank])
    assert sent == iterations * 8 * blocks * ((p - 1) * q + p * (q - 1))


def operations(trace: Trace, folder: Path) -> float:
    each = (words for told in lines(trace, folder).values() for words in told if words[0] == "kernel")
    return sum(roofline.kernel(w[1]).work(float(w[2])).operations * float(w[3]) for w in each)


@for_each("p, q, fixups", [(1, 1, 7), (2, 3, 7), (2, 3, -1), (3, 2, 0)])
def test_every_cell_is_computed_for_every_angle(p: int, q: int, fixups: int, tmp_path: Path) -> None:
    """Operations of a cell and an angle: 6 of the source, 16 of the recursion (3 more where it compares), 8 of the flux, 6 of currents."""
    n, iterations = 12, 9
    done = operations(sweep3d(n, n, n, p, q, 4, 2, iterations, fixups=fixups), tmp_path / "made")
    mended = 0 if fixups < 0 else iterations - min(fixups, iterations)
    cells = n**3 * 48 * (36 * iterations + 3 * mended)
    # Beside it, once an iteration and cell the source (5) and its change (3), leaks (4 a cell of a side of a block), currents (2).
    assert cells < done < 1.1 * cells
    currents = done - operations(sweep3d(n, n, n, p, q, 4, 2, iterations, fixups=fixups, leakage=False), tmp_path / "less")
    assert n**3 * 48 * 6 * iterations < currents < 1.3 * n**3 * 48 * 6 * iterations


def test_parts_cover_the_box() -> None:
    for cells, parts in ((10, 3), (9, 3), (11, 4), (7, 7)):
        shares = [share(cells, parts, part) for part in range(parts)]
        assert sum(shares) == cells
        assert max(shares) - min(shares) <= 1
        assert shares == sorted(shares, reverse=True)


@for_each("runtime, pvm", [("mpich", False), ("pvm", True)])
def test_a_generated_solution_completes(runtime: str, pvm: bool) -> None:
    made = sweep3d(12, 12, 12, 2, 3, 4, 3, 2, pvm=pvm)
    assert simulate.run(Question(runtime, "ibm-power2*6@hub-10", Replay(made), "distributed")).outcome == "completed"


def test_shmem_s_form_puts_what_the_others_send_and_a_flag_behind_it(tmp_path: Path) -> None:
    """The same wavefront: each inflow's bytes are put, and a word follows; no message has more than that."""
    run = (12, 12, 12, 2, 3, 4, 3, 6, 1, 2)
    plain, puts = (lines(made(run, shmem=shmem), tmp_path / str(shmem)) for shmem in (False, True))
    for rank, before in plain.items():
        after = puts[rank]
        sent = [(w[1], w[2], count_in_bytes(*w[3:5])) for w in before if w[0] == "send"]
        flags = [(at, w) for at, w in enumerate(after) if w[0] == "send"]
        assert [(w[1], w[2]) for _, w in flags] == [(to, tag) for to, tag, _ in sent]
        put = [(w[0].lower(), w[1], w[3]) for w in (after[at - 1] for at, _ in flags)]
        assert put == [("put", to, size) for to, _, size in sent]
        assert {count_in_bytes(*w[3:5]) for w in after if w[0] in ("send", "recv")} == {"8"}
        assert [w for w in before if w[0] == "kernel"] == [w for w in after if w[0] == "kernel"]


def test_shmem_s_form_completes_where_there_are_one_sided_operations() -> None:
    told = sweep3d(12, 12, 12, 2, 3, 4, 3, 2, shmem=True)
    assert simulate.run(Question("craympt:shmem", "cray-t3d-pe*6@t3d-torus", Replay(told), "distributed")).outcome == "completed"
    with pytest.raises(RetrompiError, match="no one-sided operations"):
        simulate.run(Question("mpich", "ibm-power2*6@hub-10", Replay(told), "distributed"))
    assert sweep3d(32, 16, 1, 32, 16, 1, 3, 1, shmem=True).ranks == 512


def test_factors_make_computation_longer() -> None:
    def took(**factors: float) -> float:
        asked = Question("mpich", "ibm-power2*1@hub-10", Replay(sweep3d(24, 24, 24, 1, 1, iterations=1, **factors)), "distributed")
        at = {row["label"]: row["time_s"] for row in simulate.run(asked).marks}
        return float(at["end"] - at["begin"])

    assert abs(took(computation=3) / took() - 3) < 1e-3
    assert 1.45 < took(half=12) / took() <= 1.5


def test_what_it_cannot_generate_is_refused() -> None:
    for args in ((0, 1, 1, 1, 1), (3, 3, 3, 4, 1), (3, 3, 3, 1, 2, 1, 4), (512, 512, 1, 32, 32)):
        with refused(UsageError, "out-of-range"):
            sweep3d(*args)
    for options in ({"angles": 5}, {"scattering": 2}, {"fixups": -2}, {"computation": 0.0}, {"half": -1.0}, {"pvm": True, "shmem": True}):
        with refused(UsageError, "out-of-range"):
            sweep3d(4, 4, 4, 2, 2, **options)  # type: ignore[arg-type]


def test_a_user_reaches_it_by_name(retrompi: Callable[..., Outcome]) -> None:
    answer = retrompi("why", "sweep3d", "nx=50", "ny=50", "nz=50", "p=2", "q=3", "iterations=2", "-m", "mpich", "-p", "ibm-power2*6@fddi")
    assert answer.code == 0
    assert "compute" in answer.out


def test_the_predictions_are_those_that_the_script_makes(application: Callable[[str], Any], predicted: Callable[[Path], Any]) -> None:
    """Nominal times; the open rows fix computation, so that one process takes what they say."""
    script = application("swp_power2")
    told = predicted(script.FILE)
    assert [name for name in told if "/" not in name] == [f"SWP-{i:03}" for i in range(1, 9)]
    for case in script.CASES:
        for row in script.nominal(case):
            assert told[row.id]["nominal_s"] == f"{row.nominal_s:.4g}"
        alone = script.asked(case, "mpich", script.setting(None), (1, 1), **script.factors(case, None))
        assert script.times(alone, None)[1] == pytest.approx(case.processor_s, rel=1e-3)
        elapsed = {name: float(told[id]["nominal_s"]) for id, name in zip(script.named(case), script.OBSERVABLES, strict=True)}
        assert case.processor_s / 6 < elapsed["processor time of the master, MPI"] < elapsed["elapsed time, MPI"]
    for row in told.values():
        assert 0 < float(row["low_s"]) <= float(row["median_s"]) <= float(row["high_s"])


def test_a_draw_has_one_machine_for_both_libraries_and_each_network_as_often(application: Callable[[str], Any]) -> None:
    script = application("swp_power2")
    settings = [script.setting(draw) for draw in range(script.DRAWS)]
    counts = Counter(at.network for at in settings)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert set(counts) == set(script.NETWORKS)
    assert {at.host for at in settings} == set(script.HOSTS)
    assert {at.mpi for at in settings if at.network != "sp2-switch"} == {"mpich"}
    assert {at.lines for at in settings} == {True, False}
