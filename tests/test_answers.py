"""Answers by simulations: they agree with brute force, come out of the store the second time, and say in one line what cannot be."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from conftest import Outcome, Watched

from retrompi.spec import registry
from retrompi.store import lookup, open_store
from retrompi.studies.define import case, keys, metrics
from retrompi.studies.define.scenario import Scenario, load

Run = Callable[..., Outcome]

HEAD = 'title = "t"\nsummary = "s"\nreproduces = "what-if: a test"\n'
PINGPONG = 'name = "pp"\nmodel = "wmpi"\nplatform = "nt-pair"\nmode = "distributed"\n[trace]\ngenerator = "pingpong"\nwarm_up = 0\n'


@pytest.fixture(autouse=True)
def _own_store(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROMPI_STORE", str(store_path))


def written(folder: Path, text: str, name: str = "s.toml") -> str:
    file = folder / name
    file.write_text(HEAD + text)
    return str(file)


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A PingPong of three sizes, five repetitions each."""
    return written(tmp_path, PINGPONG + 'sizes = "0,1KiB,64KiB"\nreps = 5\n')


def value(store_path: Path, scenario: Scenario, metric: str, **values: str) -> float | None:
    """What one point comes to, on the plain road to a run."""
    from retrompi.sim.simulate import SimulationEnded

    store = open_store(store_path.with_name("grid.db"))
    try:
        run = lookup.answer(store, case.apply(scenario, {k.replace("__", "."): v for k, v in values.items()}).question()).run_id
    except SimulationEnded:
        return None
    return metrics.parse(metric).of(store.run(run), store.points(run), store.ranks(run))


# -- break-even ------------------------------------------------------------------------------------------------------


def test_a_break_even_agrees_with_a_grid(retrompi: Run, small: str, store_path: Path) -> None:
    """WMPI's daemons and HPVM's packets on one wire: the curves cross more than once."""
    told = retrompi(
        "break-even", small, "--along", "platform.link.bandwidth=1Mbps..100Mbps", "--a", "model=wmpi", "--b", "model=hpvm",
        "--metric", "time@64KiB", "--tolerance", "3%", "--jobs", "1", "--json",
    )
    assert told.code == 0, told.err
    found = json.loads(told.out)
    scenario = load(small)
    rates = [100 ** (i / 14) for i in range(15)]
    ahead = []
    for rate in rates:
        pair = [value(store_path, scenario, "time@64KiB", model=m, platform__link__bandwidth=f"{rate:.6g}Mbps") for m in ("wmpi", "hpvm")]
        assert None not in pair
        ahead.append("a" if pair[0] < pair[1] else "b")
    changes = [(x * 125e3, y * 125e3, s, t) for (x, s), (y, t) in pairwise(zip(rates, ahead, strict=True)) if s != t]
    assert changes
    assert [(c["before"], c["after"]) for c in found["crossings"]] == [(s, t) for _, _, s, t in changes]
    store = open_store(store_path)
    for crossing, (x, y, _, _) in zip(found["crossings"], changes, strict=True):
        low, high = crossing["low"], crossing["high"]
        assert 0 < high["value"] - low["value"] <= 0.03 * high["value"]
        assert low["value"] <= crossing["estimate"] <= high["value"]
        assert x <= high["value"]
        assert y >= low["value"]
        for end in (low, high):
            assert end["ahead"] == ("a" if end["a"] < end["b"] else "b")
            for side in ("a", "b"):  # the numbers at the ends are those of the runs that are named
                run = end[f"run_{side}"]
                assert metrics.parse("time@64KiB").of(store.run(run), store.points(run)) == end[side]


def test_a_break_even_asked_again_simulates_nothing(retrompi: Run, small: str, engine: Watched) -> None:
    asked = ["break-even", small, "--along", "platform.link.latency=1us..10us", "--a", "model=wmpi", "--b", "model=hpvm", "--scan", "3",
             "--jobs", "1"]
    first = json.loads(retrompi(*asked, "--json").out)
    assert first["simulated"] == first["runs"] == len(engine.calls)
    engine.calls.clear()
    again = json.loads(retrompi(*asked, "--json").out)
    assert engine.calls == []
    assert again["simulated"] == 0
    assert again["points"] == first["points"]
    text = retrompi(*asked).out
    assert "no crossing" in text
    assert f"{first['runs']} runs, all found in the store" in text
    assert max(len(line) for line in text.splitlines() if "no crossing" not in line) <= 80


def test_two_processes_give_what_one_gives(retrompi: Run, small: str, store_path: Path) -> None:
    asked = ["break-even", small, "--along", "platform.link.bandwidth=1Mbps..100Mbps", "--a", "model=wmpi", "--b", "model=hpvm",
             "--metric", "time@64KiB", "--scan", "3", "--tolerance", "20%", "--csv"]
    told = [retrompi(*asked, "--jobs", n, "--store", str(store_path.with_name(f"jobs{n}.db"))) for n in ("1", "2")]
    assert [t.code for t in told] == [0, 0], told
    one, two = ([{k: v for k, v in r.items() if not k.startswith("run_")} for r in csv.DictReader(io.StringIO(t.out))] for t in told)
    assert one == two
    assert len(one) >= 3


def test_the_executor_that_is_asked_for_simulates(retrompi: Run, small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrompi.cli.answers import Executors
    from retrompi.studies.execute.run import Here

    asked: list[Executors] = []

    def chosen(options: Executors) -> Here:
        asked.append(options)
        return Here()

    monkeypatch.setattr(Executors, "make", chosen)
    told = retrompi("tornado", small, "--vary", "wmpi.library=5us,90us", "--executor", "dask", "--scheduler", "tcp://here:1", "--jobs", "3")
    assert told.code == 0, told.err
    assert [(o.executor, o.jobs, o.scheduler) for o in asked] == [("dask", 3, "tcp://here:1")]


def test_a_rung_of_the_ladder_answers_too(retrompi: Run, small: str) -> None:
    told = retrompi("tolerance", small, "--set", "fidelity=loggp", "--change", "platform.link.bandwidth", "--down-to", "1Mbps", "--slower",
                    "50%", "--tolerance", "30%", "--metric", "time@64KiB", "--jobs", "1", "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["answers"][0]["status"] in ("reached", "never")


def test_a_break_even_over_ranks_is_between_whole_numbers(retrompi: Run, tmp_path: Path, store_path: Path) -> None:
    text = ('name = "bc"\nmodel = "wmpi"\nplatform = "nt-cluster*8"\nmode = "distributed"\n[trace]\ngenerator = "broadcast"\n'
            'ranks = 2\nsize = "1KiB"\nreps = 2\n')
    file = written(tmp_path, text)
    told = retrompi("break-even", file, "--along", "ranks=2..8", "--a", "coll.bcast=linear", "--b", "coll.bcast=binomial", "--scan", "3",
                    "--jobs", "1", "--json")
    found = json.loads(told.out)
    states = []
    for n in range(2, 9):
        pair = [value(store_path, load(file), "time", trace__ranks=str(n), coll__bcast=a) for a in ("linear", "binomial")]
        assert None not in pair
        states.append("tie" if pair[0] == pair[1] else "a" if pair[0] < pair[1] else "b")
    brute = [(n, n + 1, x, y) for n, (x, y) in enumerate(pairwise(states), 2) if x != y]
    assert [(c["low"]["value"], c["high"]["value"], c["before"], c["after"]) for c in found["crossings"]] == brute
    assert brute


def test_along_a_size_each_point_is_a_run_of_its_own(retrompi: Run, small: str) -> None:
    told = retrompi("break-even", small, "--along", "sizes=1KiB..64KiB", "--a", "model=hpvm", "--b", "model=wmpi", "--scan", "3", "--csv",
                    "--jobs", "1")
    rows = list(csv.DictReader(io.StringIO(told.out)))
    assert [r["text"] for r in rows] == ["1KiB", "8KiB", "64KiB"]
    assert {r["ahead"] for r in rows} == {"a"}
    assert {r["unit"] for r in rows} == {"s"}


def test_an_end_that_does_not_complete_is_said(retrompi: Run, tmp_path: Path) -> None:
    # One message that the pool of WMPI has to hold: published as an abort.
    file = written(tmp_path, PINGPONG.replace("distributed", "shared") + 'sizes = "64KiB"\nreps = 2\n')
    told = retrompi("break-even", file, "--along", "wmpi.pool=8KiB..1MiB", "--a", "model=wmpi", "--b", "model=hpvm", "--scan", "3",
                    "--tolerance", "50%", "--jobs", "1")
    assert told.code == 0, told.err
    assert "only B completes" in told.out
    assert "A at " in told.out
    assert "aborted" in told.out


@for_each(
    "arguments, says",
    [
        (["--along", "platform.link.bandwith=1Mbps..1Gbps", "--a", "model=wmpi"], "did you mean 'platform.link.bandwidth'?"),
        (["--along", "platform.link.bandwidth=1ms..1s", "--a", "model=hpvm"], "wrong unit 'ms'"),
        (["--along", "platform.link.bandwidth=1Gbps..1Mbps", "--a", "model=hpvm"], "the range is empty"),
        (["--along", "platform.link.bandwidth", "--a", "model=hpvm"], "is not KEY=LOW..HIGH"),
        (["--along", "model=a..b", "--a", "model=hpvm"], "is no number"),
        (["--along", "platform.link.latency=1us..1ms"], "A and B are identical"),
        (["--along", "platform.link.latency=1us..1ms", "--a", "model=wmpi", "--b", "seed=1"], "A and B are identical"),
        (["--along", "platform.link.latency=1us..1ms", "--a", "model=hpvm", "--scan", "1000000000"], "not in the range"),
        (["--along", "platform.link.latency=1us..1ms", "--a", "model=hpvmm"], "did you mean 'hpvm'?"),
        (["--along", "platform.link.latency=1us..1ms", "--a", "model=hpvm", "--metric", "tim"], "no metric 'tim'; did you mean 'time'?"),
        (["--along", "platform.link.latency=1us..1ms", "--a", "model=hpvm", "--metric", "time@2KiB"], "no point at 2 KiB"),
        (["--along", "platform.link.latency=1us..1ms", "--a", "model=hpvm", "--tolerance", "x"], "is not a share"),
        (["--along", "wmpi.pool=1MiB..2MiB", "--a", "model=hpvm", "--b", "model=mpibip"], "is a parameter of another model"),
        (["--along", "platform.link.latency=1us..1ms", "--a", "model=hpvm", "--json", "--csv"], "mutually exclusive"),
    ],
)
def test_a_wrong_break_even_is_one_line_before_anything_runs(
    retrompi: Run, engine: Watched, small: str, arguments: list[str], says: str
) -> None:
    _one_line(retrompi("break-even", small, *arguments), says, engine)


def _one_line(told: Outcome, says: str, engine: Watched) -> None:
    assert (told.code, told.out) == (2, ""), told
    errors = [line for line in told.err.splitlines() if not line.startswith("warning: ")]
    assert len(errors) == 1, told.err
    assert errors[0].startswith("error: ")
    assert says in errors[0]
    assert engine.calls == []


# -- tolerance -------------------------------------------------------------------------------------------------------


def test_a_latency_tolerance_agrees_with_a_grid_and_with_its_slope(retrompi: Run, small: str, store_path: Path) -> None:
    told = retrompi("tolerance", small, "--add", "platform.link.latency", "--slower", "1%,5%", "--up-to", "10ms", "--jobs", "1", "--json")
    found = json.loads(told.out)
    assert told.code == 0, told.err
    # Three sizes, five round trips of two messages each: a latency is on the critical path thirty times.
    assert found["slope"] == pytest.approx(30, rel=1e-6)
    assert found["elasticity"] == pytest.approx(30 * found["base"] / found["at_base"], rel=1e-9)
    assert found["monotonic"]
    scenario = load(small)
    start = value(store_path, scenario, "time")
    assert start == found["at_base"]
    for answer in found["answers"]:
        assert answer["status"] == "reached"
        low, high = answer["within"], answer["beyond"]
        assert high - low <= 0.0101 * (high - found["base"])
        grid = [low * 0.8, low, high, high * 1.25]
        times = [value(store_path, scenario, "time", platform__link__latency=f"{x * 1e6:.9g}us") for x in grid]
        assert [t > start * (1 + answer["slower"]) for t in times] == [False, False, True, True]


def test_a_bandwidth_tolerance_goes_down(retrompi: Run, small: str, store_path: Path) -> None:
    told = retrompi("tolerance", small, "--change", "platform.link.bandwidth", "--down-to", "1Mbps", "--slower", "50%", "--metric",
                    "time@64KiB", "--jobs", "1", "--csv")
    (row,) = csv.DictReader(io.StringIO(told.out))
    assert row["status"] == "reached"
    assert row["beyond_text"].endswith("Mbps")
    start = value(store_path, load(small), "time@64KiB")
    rates = [100 * 10 ** (-i / 10) for i in range(21)]
    times = [value(store_path, load(small), "time@64KiB", platform__link__bandwidth=f"{r:.6g}Mbps") for r in rates]
    first = next(i for i, t in enumerate(times) if t > 1.5 * start)
    assert rates[first] * 125e3 <= float(row["within"])
    assert rates[first - 1] * 125e3 >= float(row["beyond"])


def test_never_is_an_answer(retrompi: Run, small: str) -> None:
    told = retrompi("tolerance", small, "--add", "platform.link.latency", "--up-to", "2us", "--jobs", "1")
    assert told.code == 0, told.err
    assert "5 %: never within 2 us" in told.out
    assert "slope: 30, so many times is platform.link.latency on the critical path" in told.out
    assert max(len(line) for line in told.out.splitlines()) <= 90


def test_a_tolerance_in_ranks_is_whole(retrompi: Run, tmp_path: Path, store_path: Path) -> None:
    text = ('name = "ring"\nmodel = "hpvm"\nplatform = "nt-cluster*16"\nmode = "distributed"\n[trace]\ngenerator = "ring"\n'
            'ranks = 3\nsize = "1KiB"\nreps = 2\n')
    file = written(tmp_path, text)
    told = retrompi("tolerance", file, "--add", "ranks", "--up-to", "12", "--slower", "60%", "--jobs", "1", "--json")
    (answer,) = json.loads(told.out)["answers"]
    times = {n: value(store_path, load(file), "time", trace__ranks=str(n)) for n in range(3, 13)}
    first = next(n for n in times if times[n] > 1.6 * times[3])
    assert (answer["within"], answer["beyond"]) == (first - 1, first)


@for_each(
    "arguments, says",
    [
        ([], "give the key to change"),
        (["--add", "platform.link.latency", "--change", "platform.link.latency"], "give the key to change"),
        (["--add", "platform.link.latenc"], "did you mean 'platform.link.latency'?"),
        (["--add", "platform.link.latency", "--up-to", "1ns"], "give a value above it"),
        (["--add", "platform.link.latency", "--up-to", "1MB/s"], "wrong unit"),
        (["--add", "platform.link.latency", "--slower", "five"], "is not a share"),
        (["--add", "platform.link.latency", "--slower", "0%"], "a share above zero"),
        (["--change", "platform.link.bandwidth", "--up-to", "1Gbps", "--down-to", "1Mbps"], "mutually exclusive"),
        (["--add", "platform.link.kind"], "is no number"),
        (["--add", "platform.host.dispatch"], "differs among the hosts; take one of them"),
    ],
)
def test_a_wrong_tolerance_is_one_line(retrompi: Run, engine: Watched, small: str, arguments: list[str], says: str) -> None:
    told = retrompi("tolerance", small, *arguments, "--jobs", "1")
    engine.calls[:] = [] if "0%" in arguments else engine.calls  # a share is looked at by the search, after its base
    _one_line(told, says, engine)


# -- tornado ---------------------------------------------------------------------------------------------------------


def test_without_keys_a_tornado_takes_every_sourced_range_that_is_read(small: str) -> None:
    found = keys.sourced_factors(load(small))
    names = [f.key for f in found]
    assert {"wmpi.library", "wmpi.socket_call", "platform.link.bandwidth", "platform.host.nic_rate"} <= set(names)
    assert len(names) == len(set(names))
    assert all(f.source.startswith(("paper:", "doc:", "code:", "fit:", "assumed:")) for f in found)
    assert not any(f.ends in (("0", "1"), ("0", "1.0")) for f in found)
    shared = [f.key for f in keys.sourced_factors(case.apply(load(small), {"mode": "shared"}))]
    assert not any(k.startswith(("platform.link.", "platform.workstation.")) for k in shared)
    assert "platform.host.copy_l2" in shared
    checker = case.ValueChecker(load(small), ["wmpi"], ["nt-pair"])
    for f in found:
        checker.check(f.key, f.ends)


def test_a_tornado_of_a_case_with_a_known_structure(retrompi: Run, small: str) -> None:
    # On one machine a message of 0 B is so many library calls, events and dispatches: its time moves with them, and with no wire.
    told = retrompi(
        "tornado", small, "--set", "mode=shared", "--metric", "time@0B", "--vary", "wmpi.library=5us..90us", "--vary",
        "platform.host.copy_mem=40MB/s..90MB/s", "--vary", "wmpi.event=10us..30us", "--jobs", "1", "--json",
    )
    assert told.code == 0, told.err
    found = json.loads(told.out)
    by = {}
    for r in found["rows"]:
        by.setdefault(r["key"], []).append(r)
    # One call of the library at each end of a message.
    low, high = (r["metric"] for r in by["wmpi.library"])
    assert high - low == pytest.approx(2 * 85e-6, rel=1e-9)
    assert by["wmpi.library"][0]["swing"] == pytest.approx(2 * 85e-6, rel=1e-9)
    assert by["platform.host.copy_mem"][0]["swing"] == 0
    assert next(iter(by)) == "wmpi.library"
    assert [r["change"] for r in by["platform.host.copy_mem"]] == [0, 0]


def test_a_tornado_says_what_did_not_complete_and_fits_a_terminal(retrompi: Run, small: str) -> None:
    told = retrompi("tornado", small, "--set", "mode=shared", "--metric", "time@64KiB", "--vary", "wmpi.pool=8KiB,64MiB", "--vary",
                    "wmpi.library=5us..90us", "--vary", "wmpi.prefix=8B..64B", "--jobs", "1")
    assert told.code == 0, told.err
    assert "no number at wmpi.pool=8KiB: aborted" in told.out
    assert "without effect: wmpi.pool, wmpi.prefix" in told.out.replace("\n  ", " ")
    table = told.out.split("\n\n")[1].splitlines()
    assert table[0].split() == ["key", "at", "low", "at", "high", "swing"]
    assert max(map(len, table)) <= 80


def test_sobol_indices_of_simulated_runs(retrompi: Run, small: str) -> None:
    pytest.importorskip("SALib", reason="SALib (the extra 'sensitivity') is not installed")
    asked = [
        "tornado", small, "--method", "sobol", "--samples", "8", "--set", "mode=shared", "--metric", "time@0B", "--jobs", "1",
        "--vary", "wmpi.library=5us..90us", "--vary", "wmpi.event=10us..30us", "--vary", "wmpi.prefix=8B..64B",
    ]
    told = retrompi(*asked, "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    index = {(r["key"], r["index"]): (r["value"], r["conf"]) for r in found["rows"]}
    # The time is a sum of both costs: what each does alone is all it does, and the allocator's header takes no time.
    for key in ("wmpi.library", "wmpi.event"):
        (first, c1), (total, c2) = index[key, "first"], index[key, "total"]
        assert abs(first - total) <= 2 * (c1 + c2)
    assert index["wmpi.prefix", "total"] == (0.0, 0.0)
    assert index["wmpi.library", "total"][0] > index["wmpi.event", "total"][0]
    assert found["runs"] <= 8 * 5
    again = json.loads(retrompi(*asked, "--json").out)
    assert again["simulated"] == 0
    assert again["rows"] == found["rows"]


def test_sobol_without_salib_names_what_installs_it(
    retrompi: Run, small: str, engine: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "SALib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "SALib", None)
    told = retrompi("tornado", small, "--method", "sobol", "--vary", "wmpi.library=5us..90us", "--vary", "wmpi.header=16B..32B")
    _one_line(told, "pip install 'retrompi[sensitivity]'", engine)


@for_each(
    "arguments, says",
    [
        (["--vary", "wmpi.librar=1us..2us"], "did you mean 'wmpi.library'?"),
        (["--vary", "wmpi.library=1B..2B"], "wrong unit"),
        (["--vary", "wmpi.library=2us..1us"], "it falls"),
        (["--vary", "wmpi.library"], "is not KEY=VALUES"),
        (["--vary", "wmpi.library=1us..2us", "--vary", "wmpi.library=1us..3us"], "varies twice"),
        (["--vary", "wmpi.library=1us..2us", "--method", "sobol"], "two keys at least"),
        (["--vary", "wmpi.library=1us..2us", "--vary", "wmpi.header=9B..12B", "--method", "sobol", "--samples", "100"], "nearest is 128"),
        (
            ["--vary", "wmpi.library=1us..2us", "--vary", "wmpi.header=9B..12B", "--method", "sobol", "--samples", "1073741824"],
            "are 4294967296 runs, more than 100000",
        ),
        (["--vary", "wmpi.library=1us..2us", "--metric", "section"], "times no section"),
    ],
)
def test_a_wrong_tornado_is_one_line(retrompi: Run, engine: Watched, small: str, arguments: list[str], says: str) -> None:
    _one_line(retrompi("tornado", small, *arguments), says, engine)


# -- runtimes --------------------------------------------------------------------------------------------------------

TI = Path(__file__).parent / "data"


def _rows(told: Outcome) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(told.out)["rows"]
    return rows


def test_runtimes_on_one_scenario(retrompi: Run, small: str, store_path: Path) -> None:
    told = retrompi("compare", small, "--models", "wmpi,winmpich,hpvm", "--metric", "time@1KiB", "--jobs", "1", "--json")
    rows = _rows(told)
    assert told.code == 0, told.err
    assert [r["relative"] for r in rows] == sorted(r["relative"] for r in rows)
    assert rows[0]["relative"] == 1.0
    for r in rows:
        assert r["time_s"] == value(store_path, load(small), "time", model=r["model"])
        assert r["time@1KiB"] == value(store_path, load(small), "time@1KiB", model=r["model"])
        assert 0 <= r["in_mpi"] + r["computing"] <= 1 + 1e-9
    text = retrompi("compare", small, "--models", "wmpi,winmpich,hpvm", "--jobs", "1").out
    assert "3 runs, all found in the store" in text
    assert max(map(len, text.partition("3 runs")[0].splitlines()[1:])) <= 80


def test_a_runtime_that_fails_is_a_row_with_its_reason(retrompi: Run, tmp_path: Path) -> None:
    file = written(tmp_path, PINGPONG.replace("distributed", "shared") + 'sizes = "64KiB"\nreps = 2\n[set]\n"wmpi.pool" = "8KiB"\n')
    told = retrompi("compare", file, "--models", "wmpi,hpvm", "--jobs", "1", "--json")
    rows = {r["model"]: r for r in _rows(told)}
    assert told.code == 1
    assert (rows["wmpi"]["outcome"], rows["wmpi"]["time_s"], rows["wmpi"]["relative"]) == ("aborted", None, None)
    assert rows["wmpi"]["reason"]
    assert rows["wmpi"]["run_id"] is not None
    assert rows["hpvm"]["relative"] == 1.0
    text = retrompi("compare", file, "--models", "wmpi,hpvm", "--jobs", "1").out
    assert f"wmpi: aborted: {rows['wmpi']['reason']}" in " ".join(text.split())
    assert any(line.split()[:2] == ["wmpi", "aborted"] for line in text.splitlines())


def test_runtimes_on_a_generator_and_on_a_trace(retrompi: Run, tmp_path: Path, store_path: Path) -> None:
    told = retrompi("compare", "ring", "--models", "hpvm,wmpi", "-p", "nt-cluster", "-n", "3", "--jobs", "1", "--json", "--",
                    "size=1KiB", "reps=2")
    assert told.code == 0, told.err
    assert {r["messages"] for r in _rows(told)} == {9}  # one round before the two that are timed
    trace = tmp_path / "two.ti"
    trace.write_text("0 init\n1 init\n0 compute 1e6\n0 send 1 0 1000 6\n1 recv 0 0 1000 6\n0 finalize\n1 finalize\n")
    told = retrompi("compare", str(trace), "--models", "hpvm,wmpi", "--platforms", "nt-pair,nt-cluster", "--jobs", "1", "--json")
    assert told.code == 0, told.err
    rows = _rows(told)
    assert {(r["model"], r["platform"]) for r in rows} == {(m, p) for m in ("hpvm", "wmpi") for p in ("nt-pair", "nt-cluster")}
    assert all(r["computing"] > 0 for r in rows)
    about = {w["about"] for w in json.loads(told.out)["warnings"] if "platform nt-cluster" in w["text"]}
    assert about == {"hpvm on nt-cluster, wmpi on nt-cluster"}
    table = retrompi("compare", str(trace), "--models", "hpvm,wmpi", "--platforms", "nt-pair,nt-cluster", "--jobs", "1").out
    assert "platform" in table
    assert max(map(len, table.splitlines()[1:])) <= 80


@for_each(
    "arguments, says",
    [
        (["nowhere", "--models", "wmpi,hpvm"], "no scenario, generator or trace 'nowhere'"),
        (["pingpongg", "--models", "wmpi,hpvm"], "did you mean 'pingpong'?"),
        (["pingpong", "--models", "wmpi,hpvmm"], "did you mean 'hpvm'?"),
        (["pingpong", "--models", "wmpi"], "at least two runtimes"),
        (["pingpong", "--models", "wmpi,wmpi"], "is named twice"),
        (["pingpong", "--models", "wmpi,hpvm", "--platforms", "nt-pear"], "did you mean 'nt-pair'?"),
        (["pingpong", "--models", "wmpi,hpvm", "--metric", "section"], "times no section"),
        (["ring", "--models", "wmpi,hpvm"], "needs 'size'"),
        (["ring", "--models", "wmpi,hpvm", "--", "sise=1KiB"], "did you mean 'trace.size'?"),
        (["pingpong", "--models", "wmpi,hpvm", "--backends", "native,model"], "--backends applies to backends"),
        (["bf-wmpi-shared", "--models", "wmpi,hpvm", "--", "reps=1"], "change it with --set"),
        (["pingpong", "--platforms", "nt-pair"], "applies only with --models"),
    ],
)
def test_a_wrong_comparison_of_runtimes_is_one_line(retrompi: Run, engine: Watched, arguments: list[str], says: str) -> None:
    _one_line(retrompi("compare", *arguments), says, engine)


def test_where_no_runtime_can_run_every_row_says_why(retrompi: Run) -> None:
    told = retrompi("compare", "ring", "--models", "craympt,mpibip", "-p", "nt-cluster", "-n", "2", "--", "size=1KiB")
    assert told.code == 1
    assert told.out.count("--what-if-hardware") == 2
    assert told.out.endswith("no run was possible\n")


def test_a_program_is_recorded_first(retrompi: Run, engine: Watched, tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    _one_line(retrompi("compare", str(tmp_path / "app.c"), "--models", "wmpi,hpvm"), "record it first: retrompi trace record", engine)


# -- diff ------------------------------------------------------------------------------------------------------------


def test_a_diff_goes_down_to_the_parameters(retrompi: Run) -> None:
    base = ["pingpong", "-m", "wmpi", "--mode", "shared", "--sizes", "0,1KiB", "--reps", "3"]
    retrompi(*base)
    retrompi(*base, "--set", "wmpi.library=60us", "--set", "platform.host.cores=2")
    told = retrompi("diff", "1", "2", "--json")
    assert told.code == 1
    rows = {r["what"]: r for r in json.loads(told.out)}
    library = rows["library"]
    assert (library["part"], library["b"], library["unit"]) == ("parameter", 60e-6, "s")
    assert library["source_a"].startswith("fit:")
    assert library["source_b"].startswith("assumed: set by the user")
    cores = rows["host.cores"]
    assert (cores["part"], cores["a"], cores["b"], cores["source_a"]) == ("platform", 1.0, 2.0, "paper:BF-CFG-05")
    assert rows["wmpi.library"]["b"] == "60us"
    assert rows["time at 0 B"]["difference"] == pytest.approx(rows["time at 0 B"]["b"] - rows["time at 0 B"]["a"])
    assert "model_hash" not in rows
    assert "code_version" not in rows
    text = retrompi("diff", "1", "2").out
    assert "the curves differ from 0 B" in text
    assert "library: run 1: fit:" in text
    assert retrompi("runs", "diff", "1", "2").out == text
    assert next(csv.DictReader(io.StringIO(retrompi("diff", "1", "2", "--csv").out)))["part"] == "input"
    same = retrompi("diff", "1", "1")
    assert (same.code, same.out) == (0, "no difference\n")


def test_a_diff_of_two_models_and_of_two_anatomies(retrompi: Run) -> None:
    retrompi("explain", "wmpi", "--size", "64KiB")
    retrompi("explain", "hpvm", "--size", "64KiB")
    told = retrompi("diff", "1", "2")
    assert "parameters belong to wmpi only" in told.out
    assert "parameters belong to hpvm only" in told.out
    rows = json.loads(retrompi("diff", "1", "2", "--json").out)
    stages = [r for r in rows if r["part"] == "stage"]
    assert stages
    total = next(r for r in rows if r["what"] == "time_s")
    assert sum(r["difference"] for r in stages) == pytest.approx(total["difference"], abs=1e-11)
    assert {r["part"] for r in rows} >= {"input", "parameter", "result", "stage"}


def test_a_diff_says_when_a_platform_is_not_what_it_was(retrompi: Run, tmp_path: Path) -> None:
    file = tmp_path / "room.toml"
    file.write_text((registry.platform("nt-pair").path or Path()).read_text())  # without its fit: another platform of the same name
    base = ["pingpong", "-m", "wmpi", "--mode", "distributed", "--sizes", "0", "--reps", "2", "-p"]
    retrompi(*base, str(file))
    retrompi(*base, "nt-pair")
    told = retrompi("diff", "1", "2")
    assert told.code == 1
    assert "platform_hash" in told.out
    assert told.err == (
        "warning: the platform nt-pair here is not that of run 1 (changed since, or another file): it cannot be compared\n"
    )


def test_a_run_that_is_not_there_is_one_line(retrompi: Run, engine: Watched, store_path: Path) -> None:
    open_store(store_path)
    _one_line(retrompi("diff", "1", "2"), "no run 1 in", engine)


# -- the page --------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "docs" / "answers.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is not part of a wheel")
def test_the_page_names_every_metric() -> None:
    page = PAGE.read_text()
    for name in metrics.NAMES:
        if name != "speedup[@SIZE]":  # of rows, not of a run
            assert f"`{name.partition('[')[0].partition('@')[0]}" in page


# -- the terminal ----------------------------------------------------------------------------------------------------


def test_on_a_terminal_there_is_progress_and_no_colour_if_unwanted(small: str, store_path: Path) -> None:
    main, child = pty.openpty()
    asked = ["tolerance", small, "--add", "platform.link.latency", "--jobs", "1"]
    command = [sys.executable, "-c", "from retrompi.cli.main import main; main()", *asked]
    environment = {**os.environ, "RETROMPI_STORE": str(store_path), "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=child, env=environment, text=True) as process:
        os.close(child)
        said = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            said += part
        out = process.stdout.read() if process.stdout else ""
    os.close(main)
    assert process.returncode == 0
    assert b"tolerance" in said
    assert b"jobs/" in said
    assert "\x1b[3" not in out
    assert "on the critical path" in out
