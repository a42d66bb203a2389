"""One number of a run: its name, its value, and what is said where a run has not got it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import agrees, refused

from retrompi.base.errors import UsageError
from retrompi.sim.result import COLUMNS, Result
from retrompi.spec.declare import result
from retrompi.spec.declare.result import Totals, outputs
from retrompi.store import open_store, schema
from retrompi.store.lookup import answer
from retrompi.studies.archive import export
from retrompi.studies.compare import run_differences
from retrompi.studies.define import case, catalogue, metrics
from retrompi.studies.define.scenario import Scenario, load
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study
from retrompi.studies.read import interval_reasons, stored_study

POINTS = [
    {"size_B": 0, "time_us": 10.0, "bandwidth_MBps": 0.0, "repetitions": 1},
    {"size_B": 1024, "time_us": 20.0, "bandwidth_MBps": 51.2, "repetitions": 1},
    {"size_B": 1 << 20, "time_us": 10485.76, "bandwidth_MBps": 100.0, "repetitions": 1},
]
RANKS = [{"mpi_s": 1.0, "compute_s": 3.0}, {"mpi_s": 2.0, "compute_s": 2.0}]
RUN: dict[str, Any] = {
    "kind": "pingpong", "outcome": "completed", "detail": "", "time_s": 4.0, "messages": 6, "packets": 8, "bytes": 4096,
    "facts": {"section": {"seconds": 1.5}, "retransmissions": 3},
}


@for_each(
    "name, value, unit",
    [
        ("time", 4.0, "s"),
        ("time@1KiB", 20e-6, "s"),
        ("time@0B", 10e-6, "s"),
        ("bandwidth@1024B", 51.2e6, "B/s"),
        ("latency", 10e-6, "s"),
        ("peak", 100e6, "B/s"),
        ("n_half", 1000.0, "B"),  # on the straight line from (0 B, 0) to (1 KiB, 51.2): 50 is half of the peak
        ("section", 1.5, "s"),
        ("mpi", 2.0, "s"),
        ("compute", 3.0, "s"),
        ("messages", 6.0, "count"),
        ("packets", 8.0, "count"),
        ("bytes", 4096.0, "B"),
        ("retransmissions", 3.0, "count"),
        ("outcome", 1.0, "1"),
    ],
)
def test_a_metric_reads_its_number_out_of_a_run(name: str, value: float, unit: str) -> None:
    metric = metrics.parse(name)
    assert metric.of(RUN, POINTS, RANKS) == pytest.approx(value, rel=1e-12)
    assert metric.require(RUN, POINTS, RANKS) == metric.of(RUN, POINTS, RANKS)
    assert metric.unit == unit
    assert metrics.parse(metric.name) == metric
    assert metric.show(value)
    assert metric.label


def test_a_run_that_did_not_complete_has_an_outcome_and_nothing_else() -> None:
    ended = {**RUN, "outcome": "deadlock", "detail": "rank 0 waits"}
    for name in ("time", "time@1KiB", "mpi", "messages"):
        assert metrics.parse(name).of(ended, POINTS, RANKS) is None
    assert metrics.parse("outcome").of(ended) == 0.0
    with refused(UsageError, "no-metric | 'time'"):
        metrics.parse("time").require(ended, what="run 3")


def test_a_speedup_is_defined_over_rows() -> None:
    speedup = metrics.parse("speedup@1MiB")
    assert speedup.base == metrics.parse("time@1MiB")
    assert speedup.of(RUN, POINTS) is None
    assert speedup.over([4.0, 2.0, None, 1.0], 4.0) == [1.0, 2.0, None, 4.0]
    assert speedup.more_is_better
    assert not speedup.base.more_is_better


@for_each(
    "text, says",
    [
        ("tim", "unknown-metric | 'tim' | 'time'"),
        ("time@1KB", "bad-unit"),
        ("time@1s", "bad-unit | '1s'"),
        ("time@1.5B", "bad-metric"),
        ("peak@1KiB", "bad-metric | SIZE"),
        ("bandwidth", "bad-metric | 1MiB"),
    ],
)
def test_a_wrong_metric_is_one_line(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        metrics.parse(text)
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)


def _trace_scenario() -> Scenario:
    return catalogue.scenario("lw-nas-lu-a-4")


@for_each(
    "scenario, metric, says",
    [
        ("bf-wmpi-shared", "time@3KiB", "no-metric | 3 KiB | 2 KiB"),
        ("bf-wmpi-shared", "section", "no-metric"),
        ("bf-wmpi-shared", "speedup", "no-metric | 'time'"),
        ("bf-wmpi-shared", "start", "no-metric"),
        ("lw-nas-lu-a-4", "time@1MiB", "no-metric"),
        ("lw-nas-lu-a-4", "peak", "no-metric"),
        ("pool-exhausted-wmpi", "peak", "no-metric"),
        ("start-wmpi-six", "time", "no-metric"),
        ("bf-rinf1-server", "mpi", "no-metric"),
    ],
)
def test_a_metric_that_a_scenario_cannot_have_is_one_line_before_it_runs(scenario: str, metric: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        metrics.parse(metric).check(catalogue.scenario(scenario))
    agrees(caught.value, says)


def test_what_check_lets_through_a_run_then_has(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(
        'name = "small"\ntitle = "t"\nsummary = "s"\nreproduces = "what-if: a test"\nmodel = "wmpi"\nplatform = "nt-pair"\n'
        'mode = "shared"\n[trace]\ngenerator = "pingpong"\nsizes = "0,1KiB,64KiB"\nreps = 2\n'
    )
    scenario, store = load(file), open_store(tmp_path / "runs.db")
    run = answer(store, scenario.question()).run_id
    rows = store.run(run), store.points(run), store.ranks(run)
    checked = 0
    for written in metrics.NAMES:
        metric = metrics.parse(written.replace("[@SIZE]", "").replace("@SIZE", "@1KiB"))
        try:
            metric.check(scenario)
        except UsageError:
            assert metric.of(*rows) is None, metric
            continue
        assert metric.require(*rows) == metric.of(*rows)
        checked += 1
    assert checked >= 10
    with refused(UsageError, "no-metric | 2 KiB | 1 KiB | 0 B | 64 KiB"):
        metrics.parse("time@2KiB").require(*rows)
    with refused(UsageError, "no-metric"):
        metrics.parse("section").require(*rows)


# -- the same number of every run, however many there are -----------------------------------------------------------------------

_CURVE = 'mode = "shared"\n[trace]\ngenerator = "pingpong"\nsizes = "0,1KiB,64KiB"\nreps = 2\n'
_SECTION = 'mode = "distributed"\n[trace]\nfile = "loop.ti"\nsection = "2-3"\n'
_LOOP = "0 init\n0 compute 1000000\n0 send 1 0 65536\n0 finalize\n1 init\n1 recv 0 0 65536\n1 finalize\n"
_HEAD = 'name = "small"\ntitle = "t"\nsummary = "s"\nreproduces = "what-if: a test"\nmodel = "wmpi"\nplatform = "nt-pair"\n'


def _numbers(found: stored_study.StoredStudy, ids: Iterable[int]) -> dict[tuple[int, str], float | None]:
    """(run, metric) -> its value, of every metric there is; the runs are points of the study or of its draws."""
    names = [written.replace("[@SIZE]", "").replace("@SIZE", "@1KiB") for written in metrics.NAMES] + ["events"]
    out = {}
    for i in sorted(ids):
        drawn = found.drawn.get(i)
        rows = (drawn.run, drawn.points, drawn.ranks) if drawn else (found.runs[i], found.curves.get(i, ()), found.ranks.get(i, ()))
        out |= {(i, name): metrics.parse(name).of(*rows) for name in names}
    return out


def test_every_metric_is_the_same_in_a_small_study_in_a_large_one_and_in_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is added, too: what is held of a large study's runs and of draws follows from what metrics declare to read."""
    monkeypatch.setitem(metrics._KINDS, "events", metrics._one(outputs(Totals)["events"]))
    (tmp_path / "loop.ti").write_text(_LOOP)
    for name, text in (("curve", _CURVE), ("section", _SECTION)):
        (tmp_path / f"{name}.toml").write_text(_HEAD + text)
    header = {"wmpi.header": "16B,64B"}
    asked = [(str(tmp_path / "curve.toml"), header, 2), (str(tmp_path / "section.toml"), header, 2), ("start-wmpi-six", {"seed": "1,2"}, 0)]
    store, seen = open_store(tmp_path / "runs.db"), set()
    for name, vary, draws in asked:
        which = run_study(store, replace(design.from_command(name, vary, [], {}), draws=draws)).study_id
        whole = stored_study.read(store, which, together=True)
        right = _numbers(whole, whole.runs)
        small = stored_study.read(store, which)
        with monkeypatch.context() as lower:
            lower.setattr(stored_study, "_WHOLE", 0)
            large = stored_study.read(store, which)
        for found in (small, large):
            assert len(found.drawn) == 2 * draws
            assert _numbers(found, [*found.runs, *found.drawn]) == right
        assert "parameters" in small.runs[min(small.runs)]
        assert "parameters" not in large.runs[min(large.runs)], "the threshold made no large study of it"
        assert [r["facts"].get("cautions") for r in large.runs.values()] == [r["facts"].get("cautions") for r in small.runs.values()]
        seen |= {metric.partition("@")[0] for (_, metric), value in right.items() if value is not None}
    assert seen == metrics._KINDS.keys() - {"speedup"}, "a metric that no run here has"


def test_a_metric_sees_nothing_that_it_does_not_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a small study either, where everything would be at hand."""
    monkeypatch.setitem(metrics._KINDS, "frames", metrics._Kind("frames", "count", "run", lambda run, p, k, size: run["facts.frames"]))
    with pytest.raises(KeyError):
        metrics.parse("frames").of({**RUN, "facts": {"frames": 7}})


def test_what_a_run_has_not_is_none_and_never_zero() -> None:
    bare: dict[str, Any] = {"outcome": "completed"}
    for written in metrics.NAMES:
        metric = metrics.parse(written.replace("[@SIZE]", "").replace("@SIZE", "@1KiB"))
        assert metric.of(bare) == (1.0 if metric.kind == "outcome" else None), metric.name
        assert metric.of({**bare, "facts": {}}) == metric.of(bare)


def test_every_declared_counter_is_a_metric_a_column_and_a_difference() -> None:
    """Nothing is listed beside the declaration: metrics, exports, differences, reasons of intervals, columns of the store."""
    declared = result.metrics()
    assert declared.keys() <= metrics._KINDS.keys()
    assert {f"{name}_B" if o.unit == "B" else name for name, o in declared.items()} <= export._RUN.keys()
    assert {o.path for o in declared.values()} <= run_differences.RESULTS.keys()
    assert {name for name, o in declared.items() if o.trouble} == interval_reasons._COUNTERS.keys()
    assert set(COLUMNS) <= set(schema.RUN.columns.keys())
    assert {"rank", *result.outputs(result.RankRow)} == set(schema.RANK_TIME.columns.keys()) - {"id", "run_id"}
    assert set(result.outputs(result.PointRow)) == set(schema.POINT.columns.keys()) - {"id", "run_id"}
    assert all(name in Result.__dataclass_fields__ for name in result.outputs(Result))
    assert len(result.outputs(Result)) == len(Result.__dataclass_fields__), "a field of a result without a declaration"


# -- a search simulates what its number needs -----------------------------------------------------------------------------------


PINGPONGS = [s.name for s in map(catalogue.scenario, catalogue.scenario_names()) if s.generator == "pingpong" and not s.setting("kills")]


@for_each("name", PINGPONGS)
def test_the_sizes_left_out_do_not_change_the_number(name: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    whole = case.apply(catalogue.scenario(name), {"trace.sizes": "1,1KiB,20KiB,70KiB,300KiB", "trace.reps": "2"})
    for text, sizes in (("time@1KiB", (1, 1024, 20480)), ("bandwidth@20KiB", (1, 1024, 20480, 71680)), ("latency", (1, 1024))):
        metric = metrics.parse(text)
        short = metric.shorten(whole)
        assert short.args["sizes"] == sizes
        full, part = (answer(store, s.question()).run_id for s in (whole, short))
        assert metric.of(store.run(part), store.points(part)) == metric.of(store.run(full), store.points(full))


@for_each("text", ["time", "peak", "n_half", "mpi", "messages", "outcome", "time@70KiB", "time@20KiB"])
def test_a_number_of_the_whole_curve_leaves_no_size_out(text: str) -> None:
    whole = case.apply(catalogue.scenario("bf-wmpi-shared"), {"trace.sizes": "1,1KiB,20KiB,70KiB"})
    assert metrics.parse(text).shorten(whole) is whole


SEARCHES = {
    "break-even": ("--along", "platform.host.quantum=10ms..20ms", "--b", "model=hpvm", "--scan", "2"),
    "tolerance": ("--add", "platform.host.quantum"),
    "tornado": ("--vary", "wmpi.packet=64KiB..256KiB"),
}


@pytest.mark.parametrize("words", list(SEARCHES))
def test_a_search_simulates_no_size_beyond_the_one_after_its_own(words: str, retrompi: Callable[..., Any], tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    given = ("bf-wmpi-shared", "--set", "trace.sizes=1KiB..64KiB:x2", "--set", "trace.reps=2", "--metric", "time@4KiB", "-j", "1")
    assert retrompi("--store", str(store), words, *given, *SEARCHES[words]).code == 0
    kept = open_store(store)
    runs = kept.runs(limit=1000)
    assert runs
    assert {max(p["size_B"] for p in kept.points(run["id"])) for run in runs} == {8192}


def test_a_search_takes_the_whole_curve_where_it_is_stored(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    few = ("bf-wmpi-shared", "--set", "trace.sizes=1KiB,4KiB,8KiB", "--set", "trace.reps=2", "-j", "1")
    few += ("--vary", "wmpi.packet=64KiB,128KiB")
    assert retrompi("--store", str(store), "sweep", *few).code == 0
    before = len(open_store(store).runs(limit=1000))
    found = json.loads(retrompi("--store", str(store), "tornado", *few, "--metric", "time@1KiB", "--json").out)
    assert found
    assert len(open_store(store).runs(limit=1000)) <= before + 1  # the scenario's own value of the parameter
