"""Searching for the best value over several keys: known minima are found, a seed gives the same trials, what is stored is reused."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from cases import for_each
from refusals import refused

import retrompi
from retrompi.base import units
from retrompi.base.errors import UsageError
from retrompi.cli.main import run as cli
from retrompi.studies.define import catalogue
from retrompi.studies.define.axes import Axis
from retrompi.studies.search.optimise import optimise, proposed_text, read_axis
from retrompi.studies.search.reading import Reading

SCENARIO = catalogue.scenario("bf-wmpi-shared")
SHORT = {"trace.sizes": "4KiB", "trace.reps": 2}
OVER = ("platform.host.quantum=10ms..200ms", "wmpi.event=1us..100us", "model=wmpi,winmpich")

optuna = pytest.importorskip("optuna", reason="optuna (the extra 'optimise') is not installed")


def overs(*texts: str) -> list[Axis]:
    return [read_axis(SCENARIO, text) for text in texts]


def parabola(points: Sequence[Mapping[str, str]]) -> list[Reading]:
    """1 at packet = 64 KiB, event = 10 us and fidelity curve, more elsewhere: a bowl in the logarithms; nothing above 512 KiB."""
    told = []
    for p in points:
        packet, event = (units.parse(p.get(k, d), u) for k, d, u in (("wmpi.packet", "256KiB", "B"), ("wmpi.event", "90us", "s")))
        bowl = 1 + math.log2(packet / 65536) ** 2 + math.log2(event / 1e-5) ** 2 + (3 if p.get("fidelity") == "mechanism" else 0)
        told.append(Reading(None, 7, "aborted", "too large") if packet > 512 << 10 else Reading(bowl, 7))
    return told


def test_a_known_minimum_is_found() -> None:
    space = overs("wmpi.packet=1KiB..1MiB", "wmpi.event=1us..100us", "fidelity=mechanism,curve")
    for seed in (1, 2, 3):
        found = optimise(parabola, space, trials=80, seed=seed)
        best = found.best
        assert best is not None
        assert best.reading.value is not None
        assert best.reading.value < 1.25, (seed, best)
        assert best.values["fidelity"] == "curve"
        assert 65536 / 1.5 < units.parse(best.values["wmpi.packet"], "B") < 65536 * 1.5
        assert best.reading.value == min(t.reading.value for t in found.trials if t.reading.value is not None)
        assert sum(t.reading.value is None for t in found.trials) < 8  # a tenth of the range has no number: it is not looked at again


def test_a_parameter_of_another_model_is_left_out() -> None:
    found = optimise(parabola, overs("wmpi.event=1us..100us", "model=wmpi,winmpich"), trials=12)
    assert {t.values["model"]: set(t.values) for t in found.trials} == {"wmpi": {"model", "wmpi.event"}, "winmpich": {"model"}}


def test_the_largest_is_found_where_more_is_better() -> None:
    def upside_down(points: Sequence[Mapping[str, str]]) -> list[Reading]:
        return [Reading(None if r.value is None else -r.value, r.run_id, r.outcome) for r in parabola(points)]

    space = overs("wmpi.packet=1KiB..512KiB", "wmpi.event=1us..100us")
    up, down = optimise(upside_down, space, trials=60, more_is_better=True), optimise(parabola, space, trials=60)
    assert [t.values for t in up.trials] == [t.values for t in down.trials]
    assert up.best is not None
    assert down.best is not None
    assert up.best.values == down.best.values


def test_a_longer_search_begins_with_the_shorter_one_and_a_seed_decides() -> None:
    space = overs("wmpi.packet=1KiB..1MiB", "wmpi.event=1us..100us")
    short, long, other = (optimise(parabola, space, trials=n, seed=s) for n, s in ((22, 5), (41, 5), (22, 6)))
    assert [t.values for t in long.trials[:22]] == [t.values for t in short.trials]
    assert [t.values for t in other.trials] != [t.values for t in short.trials]


def test_values_lie_within_the_ends_and_whole_numbers_are_whole() -> None:
    for over in overs("wmpi.packet=1000B..1003B", "trace.reps=1..3", "wmpi.event=1us..1.00001us", "platform.host.cores=1..2"):
        span = over.span
        assert span is not None
        for drawn in (span.low, span.high, (span.low + span.high) / 2):
            value = units.parse(proposed_text(over, drawn), span.unit)
            assert span.low <= value <= span.high
            assert not span.whole or value == int(value)


def test_nothing_completes() -> None:
    found = optimise(lambda points: [Reading(None, 1, "aborted", "no") for _ in points], overs("wmpi.packet=1KiB..1MiB"), trials=5)
    assert found.best is None
    assert len(found.trials) == 5


def test_the_command_is_the_same_with_one_and_two_processes_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["optimise", "bf-wmpi-shared", "--metric", "time@4KiB", *(w for o in OVER for w in ("--over", o)),
             *(w for k, v in SHORT.items() for w in ("--set", f"{k}={v}")), "--search-seed", "3", "--json"]

    def run(store: str, *more: str) -> list[dict[str, object]]:
        assert cli(["--store", str(tmp_path / store), *words, *more]) == 0
        told = json.loads(capsys.readouterr().out)
        rows: list[dict[str, object]] = told["trials"]
        completed = [r for r in rows if r["time@4KiB"] is not None]
        assert told["best"] == min(completed, key=lambda r: r["time@4KiB"])  # type: ignore[arg-type,return-value]
        return rows

    def same(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{k: v for k, v in r.items() if k not in ("run_id", "found")} for r in rows]

    first = run("a.db", "--trials", "10", "--jobs", "1")
    assert same(run("b.db", "--trials", "10", "--jobs", "2")) == same(first)
    again = run("a.db", "--trials", "10", "--jobs", "1")
    assert all(r["found"] for r in again)
    more = run("a.db", "--trials", "14", "--jobs", "1")
    assert same(more[:11]) == same(first)
    assert all(r["found"] for r in more[:11])
    assert not all(r["found"] for r in more[11:])


def test_the_table_and_the_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--store", str(tmp_path / "a.db"), "optimise", "bf-wmpi-shared", "--metric", "bandwidth@4KiB", "--over", "wmpi.event=1us..1ms",
             *(w for k, v in SHORT.items() for w in ("--set", f"{k}={v}")), "--trials", "3", "--jobs", "1"]
    assert cli(words) == 0
    said = capsys.readouterr().out
    assert "the largest of 3 trials" in said
    assert "as it is" in said
    assert said.endswith("4 runs, all simulated now\n")
    assert cli([*words, "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "trial,wmpi.event,bandwidth@4KiB,unit,outcome,reason,run_id,found"
    assert len(lines) == 5


def test_the_python_interface(tmp_path: Path) -> None:
    given = {"set": SHORT, "metric": "time@4KiB", "trials": 6, "store": tmp_path / "a.db", "jobs": 1}
    found = retrompi.optimise("bf-wmpi-shared", {"wmpi.event": "1us..100us", "model": ["wmpi", "winmpich"]}, **given)  # type: ignore[arg-type]
    assert len(found.rows) == 7
    assert found.best["time@4KiB"] == min(row["time@4KiB"] for row in found.rows)
    assert list(found.frame["trial"]) == list(range(7))
    assert found.plot().data
    with refused(UsageError, "bad-range | wmpi.event=5us"):
        retrompi.optimise("bf-wmpi-shared", {"wmpi.event": "5us"}, **given)  # type: ignore[arg-type]


@for_each(
    "over, says",
    [
        (("wmpi.packet",), "is not KEY=LOW..HIGH"),
        (("wmpi.packet=1KiB",), "has one value"),
        (("wmpi.packet=1MiB..1KiB",), "is empty"),
        (("wmpi.packet=1KiB..1MiB:x2",), "a range ends in nothing, :log or :linear"),
        (("wmpi.packt=1KiB..1MiB",), "packt"),
        (("wmpi.packet=1s..2s",), "wmpi.packet"),
        (("mode=shared..distributed",), "is no number"),
        (("model=wmpi,wmpj",), "wmpj"),
        (("wmpi.udp_timeout=1s..2s",), "belongs to the path between machines"),
        (("wmpi.packet=1KiB..1MiB", "wmpi.packet=1KiB..2MiB"), "is given twice"),
        (("wmpi.loss=0..1:log",), "no logarithm"),
    ],
)
def test_wrong_keys_and_ranges_are_one_line(over: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [w for o in over for w in ("--over", o)]
    assert cli(["--store", str(tmp_path / "a.db"), "optimise", "bf-wmpi-shared", *words, "--trials", "1"]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "optuna"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with refused(UsageError, "missing-tool | optuna | pip install 'retrompi[optimise]'"):
        optimise(parabola, overs("wmpi.packet=1KiB..1MiB"), trials=1)
