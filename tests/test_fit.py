"""Models made of the segments of a curve: a fitted model runs everywhere, is found by name, and says what was assumed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import for_each
from conftest import Outcome
from curves import BRACKETED, KNOWN, POWERS, time_of, times
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi.base import paths
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError
from retrompi.measure.curves import read
from retrompi.measure.fit import (
    FittedModel,
    IdealPlatform,
    ModelFiles,
    Parts,
    check_name,
    default_folder,
    fit,
    sample_of,
    sizes_seen,
)
from retrompi.measure.fit.make import fitted_curve, held_out, make, name_from
from retrompi.measure.fit.segments import SegmentFit
from retrompi.sim import simulate
from retrompi.sim.sampling import Sample, SamplePoint
from retrompi.spec import registry
from retrompi.spec.compiled.compile import compile_runtime
from retrompi.spec.declare.sources import SOURCE_KINDS
from retrompi.spec.layout import Layout
from retrompi.spec.model import fit_tables
from retrompi.spec.platform import Placement
from retrompi.spec.question import Question, Replay, pingpong
from retrompi.spec.registry import resolve

# -- models -----------------------------------------------------------------------------------------------------------------


def written(name: str = "mine", kinds: Sequence[str] = ("same", "remote"), folder: Path | None = None, **more: object) -> Path:
    """A model found by name with KNOWN within a host and three times that between hosts, and its room."""
    fits = {k: fit(BRACKETED, [t * (3 if k == "remote" else 1) for t in times(KNOWN, BRACKETED)]) for k in kinds}
    samples = {k: sample_of(f, Parts(remote=k == "remote")) for k, f in fits.items()}
    place = ModelFiles(
        name=name, samples=samples, title="A test's curve", version="1", years="2026", summary="segments",
        platform=f"{name}-platform", source="fit: made for a test", fits=fits, seen=dict.fromkeys(kinds, BRACKETED),
        eager=dict.fromkeys(kinds, (65537.0, "fit: known", 65537.0, 65537.0)), **more,  # type: ignore[arg-type]
    ).write(folder or default_folder(name))
    IdealPlatform(name=f"{name}-platform", title="A room", summary="for a test", years="2026",
               known={"cores": ("2", "assumed: for tests")}).write(paths.user_platforms_dir() / f"{name}-platform.toml")
    return place


@pytest.mark.parametrize(("mode", "factor"), [("shared", 1), ("distributed", 3)])
def test_a_fitted_model_gives_its_curve_at_every_rung_and_size(mode: str, factor: int) -> None:
    written()
    sizes = [0, 1, 777, 1024, 1025, 30_000, 65536, 65537, 500_000, 1048575, 1048576, 3 << 20, 8 << 20]
    mechanism = simulate.benchmark(Question("mine", "mine-platform", pingpong(sizes, reps=3), mode))
    assert mechanism == simulate.benchmark(Question("mine", "mine-platform", pingpong(sizes, reps=3), mode, fidelity="curve"))
    for row in mechanism:
        assert row["time_us"] * 1e-6 == pytest.approx(factor * time_of(KNOWN, row["size_B"]), rel=2e-5)
    loggp = simulate.benchmark(Question("mine", "mine-platform", pingpong(sizes, reps=3), mode, fidelity="loggp"))
    assert all(0.3 < a["time_us"] / b["time_us"] < 3 for a, b in zip(loggp, mechanism, strict=True))


def test_a_fitted_model_replays_collectives_on_two_hosts() -> None:
    written()
    trace = job(*["barrier; bcast 4096 0 6; allreduce 8192 0 6; alltoall 1000 1000 6; barrier"] * 4)
    result = simulate.run(Question("mine", "mine-platform", Replay(trace), [0, 0, 1, 1]))
    assert result.outcome == "completed"
    assert simulate.run(Question("mine", "mine-platform", Replay(trace), [0, 0, 1, 1], fidelity="curve")).time_ps == result.time_ps


def test_what_was_not_measured_is_refused_with_what_to_do(retrompi: Callable[..., Outcome]) -> None:
    written("here", ["same"])
    written("there", ["remote"])
    told = retrompi("pingpong", "-m", "here", "-p", "here-platform", "--mode", "distributed", "--sizes", "1B")
    assert (told.code, "--remote FILE" in told.err) == (1, True)
    told = retrompi("pingpong", "-m", "there", "-p", "there-platform", "--mode", "shared", "--sizes", "1B")
    assert (told.code, "nothing is known of two ranks of one" in told.err) == (1, True)
    with refused(UsageError, "wrong-placement"):
        registry.model("here").sample(registry.platform("here-platform"), Placement([0, 1]))  # type: ignore[attr-defined]


def test_a_fitted_model_keeps_the_contract_of_models() -> None:
    """What tests/test_registry.py asks of every model of the package."""
    folder = written(collectives=registry.model("nemesis").collectives)
    cls = registry.model("mine")
    assert issubclass(cls, FittedModel)
    assert cls.folder() == folder.resolve()
    values, room = resolve(cls, "mine-platform")
    for row in values.describe():
        assert row["help"]
        assert row["source"].startswith(SOURCE_KINDS)
        assert row["low"] <= row["value"] <= row["high"]
    assert all(p.low is not None and p.high is not None for p in cls.params().values() if p.fitted)
    assert values.settings["eager_same"].source == "fit:fit.toml [mine]"
    for platform in ("mine-platform", "nt-pair"):
        for placement in ([0, 0], [0, 1], [1, 1]):
            values, room = resolve(cls, platform)
            rows = compile_runtime(cls, values, Layout(room, placement)).rows
            json.dumps(rows)
            assert compile_runtime(cls, resolve(cls, platform)[0], Layout(room, placement)).rows == rows
            assert values.unread() == (["eager_remote"] if placement[0] == placement[1] else [])
    assert [c.engine() for c in cls.collectives] == [c.engine() for c in registry.model("nemesis").collectives]
    assert registry.model(str(folder)) is cls
    tables = fit_tables(folder)["mine"]
    assert tables["meta"]["sizes_seen"]["same"] == BRACKETED
    assert sizes_seen(cls)["remote"] == tuple(BRACKETED)
    assert sizes_seen(registry.model("wmpi")) == {}
    assert len(tables["same-segments"]) == len(KNOWN)


def test_an_override_of_the_eager_limit_changes_when_a_message_waits() -> None:
    written()
    trace = job("send 1 0 4096 6", "sleep 0.5; recv 0 0 4096 6")
    early = simulate.run(Question("mine", "mine-platform", Replay(trace))).per_rank[0]["mpi_s"]
    late = simulate.run(Question("mine", "mine-platform", Replay(trace), overrides={"mine.eager_remote": "1 KiB"})).per_rank[0]["mpi_s"]
    assert early < 0.01
    assert late > 0.4


def test_curves_of_pinned_ranks_are_chosen_by_what_they_share() -> None:
    point = SamplePoint(0, 1, 1, 1, 0, 0, 0)
    samples: dict[str, Sample] = {}
    for n, kind in enumerate(("same", "same-cache", "same-bus", "same-apart"), 2):
        both = (replace(point, transit=n), replace(point, size=10, transit=n))
        samples[kind] = Sample(both, both, 0)
    ModelFiles(name="pinned", samples=samples, title="t", version="1", years="2026", summary="s",
                platform="abe", source="fit: for a test").write(default_folder("pinned"))
    cls, room = registry.model("pinned"), registry.platform("abe")
    assert issubclass(cls, FittedModel)
    found = [cls.sample(room, Placement([0, 0], cores)).there[0].transit for cores in ((), (0, 1), (0, 2), (0, 4))]
    assert found == [2, 3, 4, 5]


def test_measured_parts_are_taken_and_the_rest_is_declared() -> None:
    found = fit(POWERS, times(KNOWN, POWERS))
    parts = Parts({"send": {0: 1e-6, 1 << 22: 2e-3}, "gap": {0: 2e-7, 1 << 22: 1e-3}}, {"send": "fit: column send"}, 0.1)
    sample = sample_of(found, parts, connect_s=1e-3)
    assert sample.connect == 10**9
    for p in sample.there:
        assert p.time == pytest.approx(found.time(p.size) * 1e12, abs=2)
        assert p.gap <= p.time
        assert (p.port, p.both) == (0, 0)
    assert sample.there[0].send == 10**6
    assert sample.there[0].recv == pytest.approx(0.1 * found.time(0) * 1e12, abs=1)
    told = parts.column_sources()
    assert told["send"] == "fit: column send"
    assert all(told[k].startswith("assumed:") for k in ("recv", "port", "both"))
    with refused(UsageError, "unknown-name"):
        Parts({"sned": {}})
    with refused(UsageError, "out-of-range | 0.5"):
        Parts(overhead=0.7)


def test_overheads_that_do_not_fit_into_a_time_are_cut() -> None:
    found = fit([0, 1 << 20], [1e-6, 1e-3], segments=1)
    for p in sample_of(found, Parts({"send": {0: 1.0}, "recv": {0: 3.0}})).there:
        assert p.transit in (0, 1)
        assert p.send + p.recv + p.transit == pytest.approx(found.time(p.size) * 1e12, abs=1)
        assert p.recv == pytest.approx(3 * p.send, rel=1e-3)


# -- the user's own folders ---------------------------------------------------------------------------------------------------


def test_users_models_are_found_beside_the_packages(retrompi: Callable[..., Outcome]) -> None:
    written()
    assert "mine" in registry.model_names()
    assert "mine-platform" in registry.platform_names()
    with refused(UsageError, "unknown-model | 'mine'"):
        registry.model("mien")
    rows = {r["name"]: r for r in json.loads(retrompi("models", "list", "--json").out)}
    assert (rows["mine"]["origin"], rows["wmpi"]["origin"]) == ("user", "retrompi")
    rows = {r["name"]: r for r in json.loads(retrompi("platforms", "list", "--json").out)}
    assert (rows["mine-platform"]["origin"], rows["nt-pair"]["origin"]) == ("user", "retrompi")
    assert "(your own)" in " ".join(retrompi("models", "show", "mine").out.split())  # the folder's length decides where the line wraps


def test_a_broken_model_of_the_users_breaks_no_other(retrompi: Callable[..., Outcome]) -> None:
    written()
    (paths.user_models_dir() / "bad").mkdir()
    (paths.user_models_dir() / "bad" / "__init__.py").write_text("x = 1 +")
    (paths.user_platforms_dir() / "badroom.toml").write_text("name = 3")
    assert {"mine", "wmpi"} <= set(registry.models())
    assert "mine-platform" in registry.platforms()
    assert set(registry.load_errors()) == {"bad", "badroom"}
    told = retrompi("models", "list")
    assert told.code == 0
    assert "'bad' is ignored" in told.err
    with refused(InputError, "broken-model"):
        registry.model("bad")


def test_a_wrong_name_is_not_looked_for_where_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written())
    for wrong in ("nowhere", ""):
        with refused(UsageError, f"unknown-model | '{wrong}'"):
            registry.model(wrong)


def test_the_packages_names_win(retrompi: Callable[..., Outcome]) -> None:
    place = paths.user_models_dir() / "wmpi"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("raise RuntimeError('never imported')")
    assert registry.origin(registry.model("wmpi").folder()) == "retrompi"
    assert "wmpi" not in registry.load_errors()
    with refused(UsageError, "bad-name"):
        check_name("wmpi")
    with refused(UsageError, "bad-name"):
        check_name("abe", "platform")
    with refused(UsageError, "bad-name"):
        check_name("4ever")


def test_a_curve_written_again_is_read_again_and_another_model() -> None:
    folder = written()
    before = registry.model("mine").hash()
    first = registry.model("mine").samples()  # type: ignore[attr-defined]
    text = (folder / "curve.csv").read_text()
    (folder / "curve.csv").write_text(text.replace("same,there,0,", "same,there,0,1", 1))
    assert registry.model("mine").hash() != before
    assert registry.model("mine").samples() != first  # type: ignore[attr-defined]


@for_each(
    "change, says",
    [
        (("same,there,0,", "same,there,x,"), "bad-fit"),
        (("same,there,0,", "samme,there,0,"), "unknown-name | 'samme' | 'same'"),
        (("same,there,0,", "same,thither,0,"), "bad-fit"),
        (("same,there,0,", "same,there,99999999,"), "bad-fit"),
        (("pair,way", "pear,way"), "bad-fit"),
        (("same,there,0,", "same,back,0,"), "bad-fit"),
    ],
)
def test_a_damaged_curve_is_told_by_file_and_line(change: tuple[str, str], says: str) -> None:
    folder = written()
    text = (folder / "curve.csv").read_text()
    old, new = change
    if "back" in new:
        text = text.replace("there", "back")
    (folder / "curve.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        registry.model("mine").samples()  # type: ignore[attr-defined]
    agrees(caught.value, says)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40), st.dictionaries(st.text(max_size=8), st.one_of(st.integers(), st.booleans(), st.text(max_size=8)), max_size=3))
def test_what_is_written_as_toml_is_read_back(text: str, table: dict[str, object]) -> None:
    if any("\ud800" <= c <= "\udfff" for c in text):
        return
    written_text = toml_text.tables("a test", {"name": {"part": {"text": text, "table": table, "list": [text, 1, True]}}})
    assert tomllib.loads(written_text)["name"]["part"] == {"text": text, "table": table, "list": [text, 1, True]}


# -- retrompi fit -------------------------------------------------------------------------------------------------------------


def as_table(points: Sequence[float], sizes: Sequence[int] = POWERS) -> str:
    """A table of one-way times; ``points`` in seconds."""
    return "# way: one way\nsize_B,time_us\n" + "\n".join(f"{s},{1e6 * t!r}" for s, t in zip(sizes, points, strict=True))


@pytest.fixture
def curve_file(tmp_path: Path) -> Path:
    """KNOWN as a digitised curve in milliseconds of a round trip."""
    file = tmp_path / "My Curve.csv"
    rows = [f"{s},{2e3 * t!r}" for s, t in zip(BRACKETED, times(KNOWN, BRACKETED), strict=True)]
    file.write_text("# unit: ms\n# way: round trip\nsize_B,t\n" + "\n".join(rows) + "\n")
    return file


def test_curve_in_model_out(retrompi: Callable[..., Outcome], curve_file: Path, store_path: Path) -> None:
    told = retrompi("fit", str(curve_file), "--hold-out", "--json")
    assert told.code == 0, told.err
    out = json.loads(told.out)
    assert out["name"] == "my-curve"
    # Every second size is held out, so that not every threshold has both of its sides left.
    for threshold, (low, _, _) in zip(out["thresholds"], KNOWN[1:], strict=True):
        assert threshold["low_B"] <= low <= threshold["high_B"]
    for segment, (_, _, rate) in zip(out["segments"], KNOWN, strict=True):
        assert segment["rate_Bps"] == pytest.approx(rate, rel=0.01)
    held = [r for r in out["residuals"] if not r["seen"]]
    assert len(held) == len(BRACKETED) // 2 or len(held) == (len(BRACKETED) - 1) // 2
    assert all(abs(r["error"]) < 1e-3 for r in held if not r["inside_threshold"])
    assert out["errors"]["same"]["held_out"]["sizes"] == len(held)
    told = retrompi(
        "--store", str(store_path), "pingpong", "-m", "my-curve", "-p", out["platform"], "--mode", "shared", "--sizes", "7B,100kB", "--json"
    )
    assert told.code == 0, told.err
    for row in json.loads(told.out):
        assert row["time_us"] * 1e-6 == pytest.approx(time_of(KNOWN, row["size_B"]), rel=1e-3)
    assert "errors at sizes held out" in retrompi("models", "show", "my-curve", "--full").out


def test_fit_says_its_uncertainty_and_what_is_assumed(retrompi: Callable[..., Outcome], curve_file: Path) -> None:
    told = retrompi("fit", str(curve_file), "--name", "m", "--eager-below", "64KiB", "--threshold", "65537B")
    assert told.code == 0, told.err
    for words in (
        "intervals at 95%",
        "pinned",
        "rendezvous from 64 KiB on",
        "assumed: 0.25 of the one-way time",
        "retrompi pingpong",
    ):
        assert words in told.out
    table = fit_tables(default_folder("m"))["m"]
    assert all("rate_interval_Bps" in row for row in table["same-segments"].values())
    assert all({"low_B", "high_B"} <= set(row) for row in table["same-thresholds"].values())


def test_a_step_up_is_taken_for_the_eager_limit_only_as_an_assumption(tmp_path: Path) -> None:
    file = tmp_path / "c.csv"
    file.write_text(as_table(times(KNOWN, POWERS)))
    curve = fitted_curve("same", read(file))
    assert curve.eager[0] is not None
    assert "assumed: the largest step up" in curve.eager[1]
    smooth = fitted_curve("same", read(file), segments=1)
    assert smooth.eager[0] is None


def test_streams_remote_curves_and_left_out_sizes(tmp_path: Path, retrompi: Callable[..., Outcome]) -> None:
    data = Path(__file__).parent / "data" / "measured"
    values = times(KNOWN, POWERS)
    values[8] *= 9
    near = tmp_path / "near.csv"
    near.write_text(as_table(values))
    far = tmp_path / "far.csv"
    far.write_text(as_table([3 * t for t in times(KNOWN, POWERS)]))
    told = retrompi("fit", str(near), "--remote", str(far), "--name", "two")
    assert "more than twice its neighbours" in told.err
    told = retrompi(
        "fit", str(near), "--remote", str(far), "--name", "two", "--leave-out", f"{POWERS[8]}B", "--stream", str(data / "osu74-bw.txt"),
        "--stream", str(data / "osu74-bibw.txt"), "--collectives-of", "nemesis", "--json",
    )
    assert (told.code, told.err) == (0, "")
    out = json.loads(told.out)
    assert out["sources"]["same"]["gap"].startswith("fit: bw of OSU Micro-Benchmarks 7.4")
    assert out["sources"]["same"]["both"].startswith("fit: bibw")
    assert out["sources"]["remote"]["gap"].startswith("assumed:")
    assert [r["size_B"] for r in out["residuals"] if r["pair"] == "same" and not r["seen"]] == [POWERS[8]]
    rows = {m: simulate.benchmark(Question("two", "two-platform", pingpong([1, 1 << 20], reps=2), m)) for m in ("shared", "distributed")}
    assert rows["distributed"][1]["time_us"] == pytest.approx(3 * rows["shared"][1]["time_us"], rel=1e-3)
    assert registry.model("two").collectives == registry.model("nemesis").collectives


def test_a_real_curve_is_fitted_and_runs(retrompi: Callable[..., Outcome]) -> None:
    file = Path(__file__).parent / "data" / "measured" / "netpipe37-np.out"
    told = retrompi("fit", str(file), "--name", "np", "--hold-out", "--json")
    assert told.code == 0, told.err
    out = json.loads(told.out)
    held = out["errors"]["same"]["held_out"]
    seen = out["errors"]["same"]["seen"]
    # Neighbours of NetPIPE are 3 B apart: what was held out is met about as well as what was seen.
    assert held["median"] < 2 * seen["median"] + 0.01
    assert out["choice"]["same"]["noise"] > 1e-3


@for_each(
    "arguments, says",
    [
        (["none.csv"], "unreadable-file"),
        (["12"], "not-found"),
        (["{curve}", "--name", "wmpi"], "bad-name"),
        (["{curve}", "--name", "9"], "bad-name"),
        (["{curve}", "--threshold", "64KB"], "bad-unit"),
        (["{curve}", "--threshold", "1GiB"], "cannot-fit"),
        (["{curve}", "--leave-out", "77B"], "unknown-name | 77 B"),
        (["{curve}", "--pair", "remote", "--remote", "{curve}"], "unused-option | --remote | --pair"),
        (["{curve}", "--remote-stream", "x"], "missing-option | --remote"),
        (["{curve}", "--stream", "{curve}"], "bad-usage"),
        (["{curve}", "--collectives-of", "wmpy"], "unknown-model | 'wmpi'"),
        (["{curve}", "-p", "nowhere"], "unknown-platform | 'nowhere'"),
        (["{bcast}"], "cannot-fit | one-way"),
    ],
)
def test_wrong_use_is_one_line(
    retrompi: Callable[..., Outcome], curve_file: Path, store_path: Path, arguments: list[str], says: str
) -> None:
    data = Path(__file__).parent / "data" / "measured"
    told = retrompi("fit", "--store", str(store_path), *(a.format(curve=curve_file, bcast=data / "osu74-bcast-f.txt") for a in arguments))
    assert told.code == 2
    assert told.err.count("\n") == 1
    agrees(told, says)


def test_a_folder_of_ones_own_is_not_overwritten(tmp_path: Path, curve_file: Path) -> None:
    (tmp_path / "out" / "mine").mkdir(parents=True)
    curve = fitted_curve("same", read(curve_file))
    with refused(UsageError, "exists-already"):
        make([curve], name="mine", folder=tmp_path / "out")
    made = make([curve], name="other", folder=tmp_path / "out")
    assert registry.model(str(made.folder)).name == "other"
    assert made.platform_file is not None
    assert simulate.benchmark(Question(str(made.folder), str(made.platform_file), pingpong([1], reps=1), "shared"))[0]["time_us"] > 0
    make([curve], name="other", folder=tmp_path / "out")  # its own may be written again


def test_a_curve_that_segments_do_not_describe_is_said_to_be_one(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    file = tmp_path / "wild.csv"
    file.write_text(as_table([1e-6 * float(draw.lognormal(0, 1)) for _ in POWERS]))
    told = retrompi("fit", str(file))
    assert told.code == 0
    assert "the residual noise is" in told.err


def test_small_things() -> None:
    assert held_out([1, 2, 3, 4, 5, 6]) == ([1, 3, 5, 6], [2, 4])
    assert name_from("/x/OSU latency (2).txt") == "osu-latency-2"
    assert name_from("12.csv") == "curve-12"
    found: SegmentFit = fit(POWERS, times(KNOWN[:1], POWERS))
    assert found.segment(-1) is found.segments[0]
