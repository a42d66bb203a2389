"""The same cautions in every command, in the Python interface and in the studio (`retrompi.sim.cautions`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import retrompi as api
from retrompi.sim.cautions import CODES, Caution, calibration, mark, merge_cautions, stored_cautions
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, pingpong
from retrompi.store import open_store
from retrompi.studies.draws.uncertainty import Spec, ensemble
from retrompi.studies.read.interval_reasons import DrawnReading, fewest, reasons, unresolved_level
from retrompi.studio.anatomy import replay_job
from retrompi.studio.curves.runs import curves
from retrompi.studio.labs import lab_commands, lab_page
from retrompi.traces import generate

Run = Callable[..., Any]
CROWDED = "more-ranks-than-processors"


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    """A recorded program of four ranks whose master hands out work, in seconds of an unknown machine."""
    lines = {r: [f"{r} init"] for r in range(4)}
    lines[0] += ["# mark about rate 1000000000 flop/s", "# mark about rate-source nominal: a second is 1 Gflop"]
    for n, worker in enumerate((1, 2, 3, 3, 1, 2, 3, 1, 2)):
        tag = 2 if n >= 6 else 1
        lines[0] += [f"0 recv -555 0 8 6 from={worker}", f"0 send {worker} {tag} 8 6"]
        lines[worker] += [f"{worker} send 0 0 8 6", f"{worker} recv 0 {tag} 8 6", f"{worker} compute 1e6"]
    folder = tmp_path / "farm"
    folder.mkdir()
    for r, some in lines.items():
        (folder / f"rank-{r}.txt").write_text("\n".join([*some, f"{r} finalize", ""]))
    (folder / "index.txt").write_text("".join(f"rank-{r}.txt\n" for r in range(4)))
    return folder


def test_no_remedy_is_told_that_is_none(farm: Path) -> None:
    (crowded,) = (w for w in api.replay(farm, "wmpi", "nt-pair").warnings if w.code == CROWDED)
    assert "nt-pair*" not in crowded.text  # a cable joins two hosts


def _codes(warnings: Any) -> set[str]:
    return {w["code"] for w in warnings if not w["minor"]}


def test_three_cautions_of_a_replay_are_everywhere_the_same(farm: Path, retrompi: Run, store_path: Path) -> None:
    all_three = {CROWDED, "computation-assumed", "work-handed-out"}
    at = ("--store", str(store_path))
    run = api.replay(farm, "wmpi", "nt-pair", store=store_path)
    assert {w.code for w in run.warnings if not w.minor} == all_three
    assert all(code in repr(run) for code in all_three)
    assert all(f"caution: {w.text[:40]}" in run._repr_html_() for w in run.warnings if not w.minor and "'" not in w.text[:40])
    told = retrompi("replay", str(farm), "-m", "wmpi", "-p", "nt-pair", *at, "--json")
    assert _codes(json.loads(told.out)["warnings"]) == all_three
    assert told.err.count("caution: ") == 3
    for command in (
        ("compare", "--models", "wmpi,hpvm", "-p", "nt-pair", "-j", "1", *at, "--json", str(farm)),
        ("why", str(farm), "-m", "wmpi", "-p", "nt-pair", *at, "--json"),
        ("fidelity", "wmpi", "-p", "nt-pair", "--trace", str(farm), *at, "--json"),
    ):
        told = retrompi(*command)
        answer = json.loads(told.out)
        assert _codes((answer[0] if isinstance(answer, list) else answer)["warnings"]) >= all_three, command
        assert told.err.count("caution: ") >= 3
    assert {w.code for w in api.compare_runtimes(farm, ["wmpi", "hpvm"], platforms=["nt-pair"], store=store_path).warnings} >= all_three
    assert not {w.code for w in api.replay(farm, "wmpi", "nt-cluster", store=store_path).warnings} & {CROWDED}


def test_a_generator_with_too_many_ranks_is_cautioned(retrompi: Run) -> None:
    asked = ("alltoall", "--models", "craympt,craympt:pvm", "-p", "cray-t3e", "-n", "32", "-j", "1")
    compared = retrompi("compare", *asked, "--", "size=1KiB")
    assert compared.code == 0
    assert compared.err.count("8 hosts have more ranks than processors") == 1  # of both, so without names
    assert "-p 'cray-t3e*32'" in " ".join(compared.err.split())
    why = retrompi("why", "alltoall", "ranks=32", "size=1KiB", "-m", "craympt", "-p", "cray-t3e", "--json")
    assert CROWDED in _codes(json.loads(why.out)["warnings"])


def test_a_studys_and_a_searchs_cautions_say_how_many_runs_have_them(tmp_path: Path, retrompi: Run) -> None:
    scenario = tmp_path / "mine.toml"
    scenario.write_text("""
name = "mine"
title = "ring"
summary = "a ring"
reproduces = "nothing"
model = "wmpi"
platform = "nt-pair"
mode = "natural"
[trace]
generator = "ring"
ranks = 4
size = 100
reps = 1
""")
    told = retrompi("sweep", str(scenario), "--vary", "ranks=2,4", "-j", "1", "--json")
    assert told.code == 0, told.err
    (crowded,) = (w for w in json.loads(told.out)[0]["warnings"] if w["code"] == CROWDED)
    assert crowded["about"] == "1 of 2 points"
    swept = api.sweep(str(scenario), {"ranks": [2, 4]})
    assert [w.about for w in swept.warnings if w.code == CROWDED] == ["1 of 2 points"]
    for command in (
        ("tolerance", str(scenario), "--add", "platform.link.latency"),
        ("tornado", str(scenario), "--vary", "platform.link.latency=1us..2us"),
        ("break-even", str(scenario), "--along", "trace.size=100B..200B", "--scan", "3", "--a", "model=wmpi", "--b", "model=hpvm"),
        ("optimise", str(scenario), "--over", "platform.link.latency=1us..2us", "--trials", "2"),
    ):
        told = retrompi(*command, "-j", "1", "--json")
        assert CROWDED in _codes(json.loads(told.out)["warnings"]), command
        assert "more ranks than processors" in told.err


def test_the_studio_says_the_same(tmp_path: Path) -> None:
    quiet: Callable[..., None] = lambda *_: None  # noqa: E731
    asked = {"trace": "made:ring", "model": "wmpi", "platform": "nt-pair", "mode": "natural", "ranks": 4, "size": 1024, "set": ""}
    told = replay_job.perform(quiet, asked, "", "")
    assert any("more ranks than processors" in line for line in told["cautions"])
    assert told["outside"] == ["4 ranks (calibrated for 2)"]
    places = (str(tmp_path / "theirs.db"), str(tmp_path / "ours.db"))
    (curve,) = curves(quiet, places, [("wmpi", "nt-pair", "shared")], [64 << 20], [])["curves"]
    assert any("far outside the calibrated range of wmpi: messages of 64 MiB" in line for line in curve["cautions"])


def test_the_forms_of_labs_say_the_same(tmp_path: Path) -> None:
    quiet: Callable[..., None] = lambda *_: None  # noqa: E731
    ring = "".join(f"{r} init\n{r} send {(r + 1) % 4} 0 8 6\n{r} recv {(r - 1) % 4} 0 8 6\n{r} finalize\n" for r in range(4))
    base = 'title = "t"\nsummary = "s"\nreproduces = "what-if: none"\nmodel = "wmpi"\nplatform = "nt-pair"\nmode = "natural"\n'
    trace = '[trace]\ngenerator = "ring"\nranks = 4\nsize = "1KiB"\nreps = 1\n'
    files = {"ring.ti": ring.encode(), "mine.toml": f'name = "mine"\n{base}{trace}'.encode()}
    at = {"model": "wmpi", "platform": "nt-pair"}
    asked = [("replay", {**at, "file": "ring.ti"}), ("why", {**at, "file": "ring.ti"}), ("scenario", {"file": "mine.toml"}),
             ("sweep", {"file": "mine.toml", "vary": "trace.reps=1,2"})]
    for kind, given in asked:
        told = lab_commands.run(quiet, str(tmp_path / "lab.db"), kind, given, {}, files)
        assert any("more ranks than processors" in line for line in told["cautions"]), kind
    fiction = {"model": "gm", "platform": "nt-pair", "size": "8B", "sizes": "8B", "reps": "1", "fiction": "1"}
    for kind in ("pingpong", "explain"):
        told = lab_commands.run(quiet, str(tmp_path / "lab.db"), kind, fiction, {}, {})
        assert any("a what-if: GM" in line for line in told["cautions"]), kind
        assert "a what-if: GM" in str(lab_page.form_result(told))
    own = lab_commands.run(quiet, None, "why", {"model": "lam", "file": "ring.ti"}, {}, files)  # without -p the model's own machine
    assert own["cautions"]  # two hosts for four ranks


def test_what_the_first_call_sets_up_is_in_no_command_unless_asked_for(retrompi: Run) -> None:
    at = ("-m", "mpich", "-p", "linux-p6-200*2@switch-100")
    pinged = json.loads(retrompi("pingpong", *at, "--sizes", "8B", "--json").out)[0]["time_us"]
    explained = json.loads(retrompi("explain", *at, "--size", "8B", "--json").out)["total_s"] * 1e6
    (rungs,) = json.loads(retrompi("fidelity", *at, "--sizes", "8B", "--json").out)
    assert pinged == pytest.approx(explained, rel=1e-9) == pytest.approx(rungs["mechanism_us"], rel=1e-9)
    assert api.pingpong("mpich", at[3], sizes=8, reps=20).rows[0]["time_us"] == pytest.approx(pinged, rel=1e-9)
    cold = json.loads(retrompi("pingpong", *at, "--sizes", "8B", "--reps", "20", "--warm-up", "0", "--json").out)[0]["time_us"]
    assert cold > 3 * pinged


def test_repetitions_do_not_change_which_runtime_is_ahead(retrompi: Run) -> None:
    ratios = []
    for reps in (5, 20):
        asked = ("halo", "--models", "lam,mpich", "-p", "linux-p6-200*4@switch-100", "-n", "4", "-j", "1", "--json")
        first, second = json.loads(retrompi("compare", *asked, "--", "size=8KiB", f"reps={reps}").out)["rows"]
        ratios.append((first["model"], second["relative"]))
    assert ratios[0][0] == ratios[1][0]
    assert ratios[0][1] == pytest.approx(ratios[1][1], rel=0.02)


def test_a_generator_by_name_has_a_warm_up_and_a_scenario_says_so() -> None:
    for name in ("pingpong", "pingping", "ring", "halo", "halo2d", "allreduce", "alltoall", "broadcast", "half_to_half"):
        assert generate.generator(name).arguments["warm_up"].default == generate.WARM_UP
    root = Path(__file__).parents[1]
    for file in [*root.glob("scenarios/*.toml"), *root.glob("labs/*/*.toml")]:  # what is published states its own
        text = file.read_text()
        asked = [part for part in text.split("generator = ")[1:] if part.partition('"')[2].partition('"')[0] in generate.REPEATING]
        assert all("warm_up" in part.partition("\n[")[0] for part in asked), file
    one, bare = (generate.make_trace("ring", {"ranks": 3, "size": 8, "reps": 2, **more}) for more in ({}, {"warm_up": 0}))
    assert one.actions == bare.actions + 3 * 2
    assert bare.sha256 == generate.ring(3, 8, 2).sha256


def test_what_is_far_outside_is_a_caution_and_the_rest_a_mark() -> None:
    near = calibration("wmpi", "nt-cluster", sizes=[8 << 20], ranks=16)
    assert [c.minor for c in near] == [True] * 3
    assert mark(near) == " [outside calibration: platform nt-cluster, messages of 8 MiB, 16 ranks]"
    far = calibration("wmpi", "nt-pair", sizes=[41 << 20], ranks=21)
    assert [c.minor for c in far] == [False] * 2
    assert mark(far) == ""
    (fast,) = calibration("wmpi", "myrinet-piii", ranks=2)
    assert not fast.minor  # 2 Gb/s, and it was calibrated at 100 Mb/s
    assert not any(c.mark for c in calibration("wmpi", "nt-pair", ranks=2, sets=["wmpi.library=60us"]))  # the user knows


def test_gathered_names_runs_unless_it_is_all() -> None:
    one, two = Caution("left-open", "one"), Caution("left-open", "two")
    assert merge_cautions([("a", [one, two]), ("b", [one])]) == [one, Caution("left-open", "two", "a")]
    assert stored_cautions({"cautions": ["of an older version", {"code": "left-open", "text": "one"}]})[1] == one
    assert stored_cautions(None) == []


def test_every_code_is_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
    assert [code for code in CODES if f"`{code}`" not in page] == []


def test_an_interval_without_its_nominal_value_says_by_which_parameters(retrompi: Run, store_path: Path) -> None:
    asked = ("pingpong", "-m", "winmpich:delayed-ack", "-p", "nt-pair", "--mode", "distributed", "--sizes", "64KiB", "--reps", "3")
    told = retrompi(*asked, "--uncertainty", "90%", "--draws", "20", "--store", str(store_path), "--json")
    (row,) = json.loads(told.out)
    assert not row["time_us_low"] <= row["time_us"] <= row["time_us_high"]
    (outside,) = (w for w in row["warnings"] if w["code"] == "nominal-outside")
    # Its own calibration, as a rival, leaves another range of this parameter than the value that it shares with the model.
    assert "winmpich.socket_call (200 us; 20 of 20 draws above it)" in outside["text"]
    assert "draws are above it" in outside["text"]
    assert "nominal 33" in " ".join(told.err.split())


def test_draws_that_do_not_resolve_a_level_are_said(retrompi: Run) -> None:
    assert [fewest(level) for level in (0.5, 0.9, 0.95, 0.999999999)] == [4, 20, 40, 2_000_000_000]
    told = retrompi("explain", "-m", "wmpi", "--size", "1KiB", "--mode", "shared", "--uncertainty", "99.9999999%", "--draws", "3")
    assert "3 draws do not resolve an interval at 99.9999999 %" in " ".join(told.err.split())
    assert "100 % interval" not in told.out + told.err
    assert unresolved_level(Spec(0.9, 20)) == []


def test_intervals_of_studies_and_searches_say_it_too(retrompi: Run, store_path: Path) -> None:
    one = ("--set", "trace.sizes=64KiB", "--set", "trace.reps=2", "--set", "trace.warm_up=1", "--uncertainty", "90%", "-j", "1")
    swept = retrompi("sweep", "bf-winmpich-distributed", "--set", "model=winmpich:delayed-ack", "--vary", "seed=1,2", "--name", "odd", *one,
                     "--draws", "10", "--json")
    codes = [w["code"] for w in json.loads(swept.out)[0]["warnings"]]
    assert {"unresolved-level", "nominal-outside"} <= set(codes), swept
    assert "time: the nominal value lies outside its interval at 2 of 2 points, the first at seed=1;" in " ".join(swept.err.split())
    shown = json.loads(retrompi("study", "show", "odd", "--json").out)[0]["warnings"]
    assert [w["code"] for w in shown if w["code"] in ("unresolved-level", "nominal-outside")] == ["unresolved-level", "nominal-outside"]
    asked = ("tolerance", "bf-wmpi-shared", "--change", "platform.host.quantum", "--up-to", "240ms")
    slower = retrompi(*asked, *one, "--draws", "3", "--json")
    assert "unresolved-level" in [w["code"] for w in json.loads(slower.out)["warnings"]], slower


def test_a_far_end_says_what_its_draws_have_that_the_others_have_not(store_path: Path) -> None:
    asked = Resolved.of(Question("wmpi", "nt-pair", pingpong([1024], 3), "distributed"))
    (drawn,) = ensemble(open_store(store_path), [asked], Spec(0.9, 20))
    values = [1.0] * 17 + [9.0, 10.0, 11.0]
    runs = [{**run, "facts": {**run["facts"], "retransmissions": 12 if v > 5 else 0}} for run, v in zip(drawn.runs, values, strict=True)]
    (odd,) = reasons(replace(drawn, runs=runs), [DrawnReading("time", 1.0, values)])
    assert odd.code == "far-end"
    assert "10.1 times the median, by 3 of 20 draws: 12 packets sent again on average, in the others 0" in odd.text
    (odd,) = reasons(drawn, [DrawnReading("time", 1.0, values)])
    assert "neither a counter nor a single parameter" in odd.text or "with " in odd.text
    assert reasons(drawn, [DrawnReading("time", 1.0, [0.5, 1.5] * 10)]) == []
