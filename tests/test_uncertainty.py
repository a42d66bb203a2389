"""Priors of a run, draws from posteriors and priors, discrepancy, and ensembles of stored runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import for_each
from refusals import agrees, refused

from retrompi import traces
from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.sim.resolved import Resolved
from retrompi.spec.declare.number import Number
from retrompi.spec.question import Message, Question, Replay, Starts, pingpong
from retrompi.store import Store, open_store
from retrompi.studies.define import metrics
from retrompi.studies.draws import posteriors, uncertainty
from retrompi.studies.draws.posteriors import DISCREPANCY, posteriors_for
from retrompi.studies.draws.priors import priors_of, sets_at
from retrompi.studies.draws.uncertainty import Spec, drawn_of, ensemble, interval, log_discrepancy, question_of, sets_of
from retrompi.studies.execute import design
from retrompi.studies.execute.plan import plan
from retrompi.studies.execute.run import run_study
from retrompi.studies.read import stored_study

FEW = Spec(draws=12)
SIZE = 1024


def asked(model: str = "wmpi", platform: str = "nt-pair", mode: str = "shared", **more: Any) -> Resolved:
    return Resolved.of(Question(model, platform, more.pop("workload", pingpong([SIZE], 4)), mode, **more))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "draws.db")


# --- priors ----------------------------------------------------------------------------------------------------------------------


def by_path(of: Resolved) -> dict[str, Number]:
    return {p.path: p for p in priors_of(of)}


@for_each(
    "model, platform, mode, path, keys",
    [
        ("wmpi", "nt-pair", "distributed", "wmpi.library", {"wmpi.library": 1.0}),
        ("wmpi:absorbed", "nt-pair", "distributed", "wmpi.daemon", {"wmpi.daemon": 1.0}),
        ("mpich", "p4-1800*2@ge-ga620", "distributed", "_mpich1.library", {"mpich.library": 1.0}),
        ("cheui", "ibm-sp1*2@sp1-switch", "distributed", "euih.rate", {"cheui.rate": 1.0}),
        # Stated for both hosts of the file, for one of them, and for the host of the library that the other is like.
        ("wmpi", "nt-pair", "distributed", "nt-pair.host.nic_rate", {"platform.host.nic_rate": 1.0}),
        ("wmpi", "nt-pair", "distributed", "nt-pair.workstation.copy_mem", {"platform.workstation.copy_mem": 1.0}),
        ("wmpi", "nt-pair", "distributed", "nt4-p6-150.copy_mem", {"platform.server.copy_mem": 1.0}),
        ("wmpi", "nt-pair", "distributed", "nt-pair.link.bandwidth", {"platform.link.bandwidth": 1.0}),
        ("wmpi", "nt-cluster", "distributed", "nt4-p6-150.copy_mem", {"platform.host.copy_mem": 1.0}),
        ("mpich", "p4-1800*2@ge-ga620", "distributed", "ge-ga620.card.nic_rate", {"platform.host.nic_rate": 1.0}),
        # A card behind a slower bus has the rate of the bus.
        ("mpichgm", "p4-1800*2@myrinet-pci64a", "distributed", "p4-1800.bus_rate",
         {"platform.host.nic_rate": 1.0, "platform.host.bus_rate": 1.0}),
    ],
)
def test_a_number_has_the_path_of_the_place_where_it_is_stated(
    model: str, platform: str, mode: str, path: str, keys: Mapping[str, float]
) -> None:
    assert by_path(asked(model, platform, mode))[path].keys == keys


def test_a_scaled_service_is_the_other_host_s_times_the_ratio_of_speeds() -> None:
    room = "nt4-p6-150+nt4-p2-333@switch-100"
    found = by_path(asked("wmpi", room, "distributed"))["nt4-p6-150.tcp_segment"]
    (own, other) = (found.keys[f"platform.{host}.tcp_segment"] for host in ("n1", "n2"))
    assert own == 1.0
    assert other == pytest.approx(150 / 333, rel=1e-3)
    assert (found.low, found.high) == (20e-6, 100e-6)  # as stated, for the slower one
    assert found.sets(1.0) == {"platform.n1.tcp_segment": "100us", "platform.n2.tcp_segment": f"{100 * other:.9g}us"}


def test_a_value_is_at_its_share_and_the_share_at_its_value() -> None:
    for prior in priors_of(asked(mode="distributed")):
        for u in (0.0, 0.25, 0.5, 0.999):
            value = prior.at(u)
            assert prior.low <= value <= prior.high
            assert prior.at(prior.share(value)) == pytest.approx(value, rel=1e-9)
        assert prior.log == (prior.low > 0)
        if prior.low <= prior.value <= prior.high:
            assert prior.at(prior.share(prior.value)) == pytest.approx(prior.value, rel=1e-9)


def test_constants_of_a_source_and_what_the_user_sets_are_not_drawn() -> None:
    every = by_path(asked(mode="distributed"))
    assert not [p for p in every.values() if p.source.startswith("code:")]
    sets = {"wmpi.library": "20us", "platform.host.tick": "5ms", "platform.workstation.quantum": "50ms"}
    fewer = by_path(asked(mode="distributed", overrides=sets))
    gone = every.keys() - fewer.keys()
    assert gone == {"wmpi.library", "nt4-p6-150.tick", "nt-pair.workstation.tick", "nt-pair.workstation.quantum"}
    drawn = question_of(asked(mode="distributed", overrides=sets), 3, FEW).sets
    assert {k: drawn[k] for k in sets} == sets


def test_a_card_is_drawn_no_faster_than_the_bus_of_its_host() -> None:
    run = asked("mpich", "p4-1800*2@ge-ga620", "distributed")
    sets = sets_at(run, priors_of(run), {"ge-ga620.card.nic_rate": 1.0})
    assert sets["platform.n1.nic_rate"] == run.platform.quantities["n1.bus_rate"].text


@pytest.mark.parametrize("workload", [Message(SIZE), Starts(2, 1)])
def test_what_is_no_program_of_a_trace_has_priors_too(workload: Any) -> None:
    assert "wmpi.library" in by_path(asked(workload=workload))


# --- draws -----------------------------------------------------------------------------------------------------------------------


def test_a_draw_does_not_depend_on_how_many_there_are_nor_on_the_question() -> None:
    one, other = asked(mode="distributed"), asked("hpvm", mode="distributed")
    assert sets_of(one, 3, Spec(draws=4)) == sets_of(one, 3, Spec(draws=400))
    assert sets_of(one, 3, FEW) == sets_of(asked(mode="distributed"), 3, FEW)
    mine, theirs = sets_of(one, 5, FEW), sets_of(other, 5, FEW)
    shared = set(mine.keys() & theirs.keys())
    assert len(shared) > 5
    assert all(mine[k] == theirs[k] for k in shared)
    assert sets_of(one, 3, Spec(draws=4, seed=2)) != sets_of(one, 3, Spec(draws=4))


def test_a_hundred_draws_are_a_latin_hypercube() -> None:
    drawn = drawn_of(asked("lam", "linux-p2-450*2@switch-100", "distributed"), Spec(draws=200))
    shares = {path: column for path, column in drawn.shares.items() if path not in drawn.applied.paths}
    for column in shares.values():
        for block in (column[:100], column[100:]):
            assert sorted(np.floor(block * 100)) == list(range(100))
    a, b = list(shares.values())[:2]
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.3


def write(file: Path, columns: Mapping[str, Sequence[float]], **about: Any) -> Path:
    """A posterior's file; the prior of a path is given as ``priors``."""
    rows = len(next(iter(columns.values())))
    file.parent.mkdir(parents=True, exist_ok=True)
    posteriors.write(file, {name: np.array(values) for name, values in {DISCREPANCY: [0.02] * rows, **columns}.items()},
                     {"of": file.stem, "group": "g", "models": [], "seen": {}, **about})
    return file


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    return tmp_path / "a-paper"


def of(run: Resolved, *names: str) -> dict[str, list[Any]]:
    known = by_path(run)
    return {n: [known[n].low, known[n].high, known[n].log, known[n].unit] for n in names}


def test_rows_of_a_joint_posterior_belong_together(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "paper_dirs", lambda: (paper,))
    run = asked("lam", "linux-p2-450*2@switch-100", "distributed")
    call, copy = "lam.socket_call", "linux-p2-450.copy_mem"
    first, second = by_path(run)[call], by_path(run)[copy]
    us = np.linspace(0.1, 0.2, 50)
    write(paper / "posterior-a.npz", {call: [first.at(u) for u in us]}, priors=of(run, call), fitted=[call], models=["lam"],
          seen={call: 0.01})
    write(paper / "posterior-b.npz", {copy: [second.at(u) for u in us]}, priors=of(run, copy), fitted=[copy])
    drawn = drawn_of(asked("lam", "linux-p2-450*2@switch-100", "distributed"), Spec(draws=40))
    assert drawn.shares[call] == pytest.approx(drawn.shares[copy], abs=1e-4)
    assert 0.099 < drawn.shares[call].min() < drawn.shares[call].max() < 0.201
    assert drawn.applied.seen.items() >= {call: 0.01, copy: 1.0}.items()
    assert drawn.sigma == pytest.approx([0.02] * 40)
    again = drawn_of(asked("lam", "linux-p2-450*2@switch-100", "distributed"), Spec(draws=40)).shares
    assert (again[call] == drawn.shares[call]).all()


def test_an_old_posterior_and_one_that_has_not_converged_are_told(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "paper_dirs", lambda: (paper,))
    run, call = asked("lam", "linux-p2-450*2@switch-100", "distributed"), "lam.socket_call"
    low = by_path(run)[call].low
    about = {"priors": of(run, call), "fitted": [call], "of": "a-fit"}
    write(paper / "posterior-a.npz", {call: [low]}, **about, model_hash={"lam": run.model.code_hash()}, converged=True)
    assert posteriors_for(run.model, priors_of(run)).warnings() == []
    write(paper / "posterior-a.npz", {call: [low]}, **about, model_hash={"lam": "of before"}, converged=False)
    old, unsure = posteriors_for(run.model, priors_of(run)).warnings()
    assert "a-fit is older" in old
    assert "a-fit has not converged" in unsure


def test_a_posterior_of_another_prior_and_one_that_nothing_was_fitted_to_are_not_used(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "paper_dirs", lambda: (paper,))
    run = asked("lam", "linux-p2-450*2@switch-100", "distributed")
    call, copy = "lam.socket_call", "linux-p2-450.copy_mem"
    low, high, *rest = of(run, call)[call]
    write(paper / "posterior-a.npz", {call: [low], copy: [2e8]}, priors={call: [low, 2 * high, *rest], **of(run, copy)}, fitted=[call])
    found = posteriors_for(run.model, priors_of(run)).paths
    assert call not in found
    assert copy in found
    write(paper / "posterior-a.npz", {copy: [2e8]}, priors=of(run, copy), fitted=["other.number"], group="h")
    assert copy not in posteriors_for(run.model, priors_of(run)).paths


def test_a_posterior_that_cannot_be_read_is_refused(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "paper_dirs", lambda: (paper,))
    paper.mkdir()
    (paper / "posterior-a.npz").write_bytes(b"no archive")
    run = asked("lam", "linux-p2-450*2@switch-100", "distributed")
    with refused(InputError, "unreadable-file | posterior-a.npz | retrompi posterior find"):
        posteriors_for(run.model, priors_of(run))
    call = "lam.socket_call"
    write(paper / "posterior-a.npz", {"other.number": [1.0]}, priors=of(run, call), fitted=[call])
    with refused(InputError, "unreadable-file | posterior-a.npz | 'lam.socket_call'"):
        sets_of(asked("lam", "linux-p2-450*2@switch-100", "distributed"), 0, FEW)


# --- discrepancy -----------------------------------------------------------------------------------------------------------------


def test_discrepancy_is_a_smooth_function_of_the_size_with_the_standard_deviation_of_its_draw() -> None:
    run, sizes = asked("lam", "linux-p2-450*2@switch-100", "distributed"), [0, 1000, 1100, 10**7]
    spec = Spec(draws=2000)
    logs = log_discrepancy(run, sizes, spec)
    normal = logs / drawn_of(run, spec).sigma[:, None]
    assert normal.std(axis=0) == pytest.approx([1.0] * 4, abs=0.06)
    assert np.corrcoef(normal[:, 1], normal[:, 2])[0, 1] > 0.99
    assert abs(np.corrcoef(normal[:, 0], normal[:, 3])[0, 1]) < 0.1  # seven decades apart
    assert np.allclose(log_discrepancy(run, [1000], spec)[:, 0], logs[:, 1], atol=1e-9)  # whatever other sizes there are
    assert (log_discrepancy(run, sizes, Spec(draws=2000, discrepancy=False)) == 0).all()


def test_discrepancy_is_that_of_a_model_in_a_placement() -> None:
    logs = {
        name: log_discrepancy(run, [SIZE], FEW)
        for name, run in {
            "a": asked("lam", "linux-p2-450*2@switch-100", "distributed"),
            "what-if": asked("lam", "linux-p2-450*2@switch-100", "distributed", overrides={"lam.short": "1KiB"}),
            "one host": asked("lam", "linux-p2-450*2@switch-100", "shared"),
            "other": asked("mpich", "linux-p2-450*2@switch-100", "distributed"),
        }.items()
    }
    assert (logs["a"] == logs["what-if"]).all()
    assert (logs["a"] != logs["one host"]).all()
    assert (logs["a"] != logs["other"]).all()


def test_computation_has_a_discrepancy_if_its_trace_names_kernels() -> None:
    def logs(line: str, platform: str = "nt-pair", spec: Spec = Spec(draws=2000), **more: Any) -> Any:  # noqa: B008
        trace = traces.parse([f"0 init\n0 {line}\n0 finalize\n"])
        return uncertainty.log_computation(asked("wmpi", platform, workload=Replay(trace), **more), spec)

    one = logs("kernel spmv:nz=5 10000")
    assert one.mean() == pytest.approx(0, abs=0.05)
    assert one.std() == pytest.approx(uncertainty.COMPUTATION_SCALE, rel=0.05)
    assert (one == logs("kernel axpy 1000", overrides={"platform.host.clock": "x2"})).all()  # of one machine
    assert abs(np.corrcoef(one, logs("kernel axpy 1000", "nt4-p54-133"))[0, 1]) < 0.1
    assert not logs("compute 1e6").any()
    assert not logs("kernel axpy 1000", spec=Spec(draws=10, discrepancy=False)).any()


def test_what_computes_and_what_communicates_have_their_own_factors() -> None:
    run = {"kind": "replay", "outcome": "completed", "time_s": 3.0, "facts": {}}
    ranks = [{"rank": 0, "time_s": 3.0, "compute_s": 1.0, "mpi_s": 2.0}]
    told, _, theirs = uncertainty.with_discrepancy(run, (), ranks, at=lambda size: 0.0, job=np.log(2), computation=np.log(3))
    assert theirs[0] == pytest.approx({"rank": 0, "time_s": 7.0, "compute_s": 3.0, "mpi_s": 4.0})
    assert told["time_s"] == pytest.approx(7.0)


def test_an_ensemble_of_kernels_is_as_wide_as_their_rule_misses(store: Store) -> None:
    trace = traces.parse(["0 init\n0 kernel axpy 100000 10\n0 finalize\n"])
    run = asked(workload=Replay(trace))
    found = ensemble(store, [run], Spec(draws=20))[0]
    plain = ensemble(store, [run], Spec(draws=20, discrepancy=False))[0]
    times, without = (e.values(metrics.parse("time")) for e in (found, plain))
    logs = [np.log(a / b) for a, b in zip(times, without, strict=True) if a is not None and b is not None]
    assert logs == pytest.approx(list(found.log_computation), abs=0.05)  # all but starting and ending is computation


def test_other_computation_has_no_discrepancy() -> None:
    run = {"kind": "replay", "outcome": "completed", "time_s": 3.0, "facts": {"section": {"seconds": 1.5}}}
    ranks = [{"rank": 0, "time_s": 3.0, "compute_s": 1.0, "mpi_s": 2.0}, {"rank": 1, "time_s": 2.9, "compute_s": 2.9, "mpi_s": 0.0}]
    told, _, theirs = uncertainty.with_discrepancy(run, (), ranks, at=lambda size: 0.0, job=np.log(2))
    assert [r["time_s"] for r in theirs] == pytest.approx([5.0, 2.9])
    assert told["time_s"] == pytest.approx(5.0)
    assert told["facts"]["section"]["seconds"] == pytest.approx(2.5)


# --- intervals -------------------------------------------------------------------------------------------------------------------


def test_an_interval_is_central_and_counts_what_did_not_complete() -> None:
    found = interval([*map(float, range(101)), None, float("nan")], 0.9)
    assert (found.low, found.median, found.high) == pytest.approx((5.0, 50.0, 95.0))
    assert found.completed == pytest.approx(101 / 103)
    nothing = interval([None, None])
    assert np.isnan(nothing.low)
    assert nothing.completed == 0


# --- ensembles -------------------------------------------------------------------------------------------------------------------


def width(logs: Any) -> float:
    found = interval(np.ravel(logs))
    return found.high - found.low


def test_a_difference_is_surer_than_its_parts(store: Store) -> None:
    what_if = asked(overrides={"wmpi.event": "20us"}, workload=pingpong([65536], 4))
    one, other = ensemble(store, [asked(workload=pingpong([65536], 4)), what_if], FEW)
    a, b = (np.log(e.times([65536])) for e in (one, other))
    assert width(b - a) < 0.8 * min(width(a), width(b))
    shuffled = np.roll(b, 5, axis=0)  # as if nothing were shared
    assert width(b - a) < width(shuffled - a)
    assert one.values(metrics.parse("time@64KiB")) == pytest.approx(list(np.exp(a[:, 0])))


def test_draws_are_ordinary_runs_that_are_found_again(store: Store) -> None:
    (first,) = ensemble(store, [asked()], FEW)
    assert first.found == 0
    assert set(first.outcomes) == {"completed"}
    assert None not in first.run_ids
    (again,) = ensemble(store, [asked()], FEW)
    assert again.found == FEW.draws
    assert again.run_ids == first.run_ids
    (more,) = ensemble(store, [asked()], Spec(draws=FEW.draws + 2))
    assert more.found == FEW.draws
    assert (first.times([SIZE]) == more.times([SIZE])[: FEW.draws]).all()
    run = store.run(first.run_ids[0] or 0)
    assert run["overrides"] == sets_of(asked(), 0, FEW)
    (alone,) = ensemble(store, [asked()], FEW, fresh=True, workers=1)
    assert alone.found == 0
    assert (alone.times([SIZE]) == first.times([SIZE])).all()


def test_a_draw_that_does_not_complete_counts(store: Store) -> None:
    (every,) = ensemble(store, [asked()], FEW)
    whole = sorted(float(r["time_s"]) for r in every.runs)
    limit = (whole[5] + whole[6]) / 2
    (some,) = ensemble(store, [asked(limit_s=limit)], FEW)
    assert some.failure_counts() == {"timeout": FEW.draws - 6}
    assert some.completed == 0.5
    found = some.curve([SIZE])[0]
    assert found.completed == 0.5
    assert found.high <= every.curve([SIZE])[0].high
    assert None in some.values(metrics.parse("time"))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interruption_keeps_what_is_done(store: Store, workers: int) -> None:
    def stop(done: int, total: int, what: str) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensemble(store, [asked()], FEW, stop, workers=workers)
    (found,) = ensemble(store, [asked()], FEW)
    assert found.found >= 5
    assert found.completed == 1.0


def test_stages_of_a_message_add_up(store: Store) -> None:
    (found,) = ensemble(store, [asked(workload=Message(SIZE))], Spec(draws=4))
    whole = found.values(metrics.parse("time"))
    assert sum(found.stage_seconds().values()) == pytest.approx(whole, rel=1e-6)


# --- studies ---------------------------------------------------------------------------------------------------------------------

VARY = {"wmpi.packet": "64KiB,256KiB"}
QUICK = {"trace.sizes": "0,64KiB", "trace.reps": "4"}


def small(draws: int) -> design.Study:
    from dataclasses import replace

    return replace(design.from_command("bf-wmpi-shared", VARY, [], QUICK), draws=draws, metric="time@64KiB")


def test_draw_is_an_axis_of_a_study() -> None:
    study = small(3)
    every = design.points(study)
    assert design.count(study) == len(every) == 8
    assert [p.values["draw"] for p in every] == ["-", "1", "2", "3"] * 2
    assert every[1].scenario.question().sets.items() >= sets_of(Resolved.of(every[0].scenario.question()), 0, Spec(draws=3)).items()
    again = design.from_definition(study.definition())
    assert again.draws == 3
    assert again.hash == study.hash != small(2).hash != small(0).hash


def test_a_study_with_draws_is_planned_resumed_and_shown(store: Store) -> None:
    study = small(3)
    before = plan(store, study, jobs=2)
    assert (before.points, before.runs, before.left) == (8, 8, 8)
    run_study(store, small(0))
    assert plan(store, study, jobs=2).found == 2  # the runs with nominal values

    def stop(done: int, total: int, what: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(store, study, report=stop)
    told = run_study(store, study)
    assert told.kept + told.found >= 5
    assert told.outcomes["completed"] + told.kept == 8
    found = stored_study.read(store, told.study_id)
    assert len(found.rows) == 2
    assert len(found.draws) == 6
    v = found.view(None, 0.5)
    assert (v.level, v.draws) == (0.5, 3)
    one = v.rows[0]
    assert one["value"] is not None
    assert one["low"] < one["high"]
    assert one["completed"] == 1.0
    questions = [p.scenario.question() for p in design.points(small(0))]
    alone = ensemble(store, questions, Spec(level=0.5, draws=3))[0]
    wanted = alone.interval(metrics.parse("time@64KiB"))
    assert (one["low"], one["high"]) == pytest.approx((wanted.low, wanted.high))
    curve = v.curves[one["run_id"]]
    assert curve[1]["time_us_low"] == pytest.approx(wanted.low * 1e6)
    assert curve[1]["completed"] == 1.0
    assert len(stored_study.read(store, told.study_id, together=True).rows) == 8


def test_a_study_has_so_many_points_and_draws_at_most() -> None:
    from dataclasses import replace

    wide = replace(design.from_command("bf-wmpi-shared", {"platform.host.copy_mem": "40MB/s..89.9MB/s:+0.05MB/s"}, [], QUICK), draws=100)
    assert design.count(wide) == 101 * 999
    design.check(wide)
    with refused(UsageError, "too-many | 999 points of 2000 draws"):
        design.check(replace(wide, draws=2000))


# --- commands --------------------------------------------------------------------------------------------------------------------

POINT = ("pingpong", "-m", "wmpi", "--mode", "shared", "--sizes", "0,1KiB", "--reps", "4")


def test_pingpong_has_intervals(retrompi: Callable[..., Any]) -> None:
    plain = json.loads(retrompi(*POINT, "--json").out)
    done = retrompi(*POINT, "--uncertainty", "90%", "--draws", "6", "--json")
    rows = json.loads(done.out)
    for row, before in zip(rows, plain, strict=True):
        assert {k: row[k] for k in before if k != "warnings"} == {k: v for k, v in before.items() if k != "warnings"}
        assert [w["code"] for w in row["warnings"]] == [*(w["code"] for w in before["warnings"]), "unresolved-level"]  # six draws
        assert row["time_us_low"] < row["time_us_high"]
        assert row["completed"] == 1.0
    assert rows[1]["bandwidth_MBps_low"] < rows[1]["bandwidth_MBps_high"]
    assert "90 % intervals over 6 draws of" in " ".join(done.err.split())
    head, *_ = retrompi(*POINT, "--uncertainty", "50%", "--draws", "6", "--csv").out.splitlines()
    assert head.split(",")[1:4] == ["time_us", "time_us_low", "time_us_high"]
    assert "50 % interval" in retrompi(*POINT, "--uncertainty", "0.5", "--draws", "6").out


def test_explain_and_replay_have_intervals(retrompi: Callable[..., Any]) -> None:
    message = ("explain", "-m", "wmpi", "--mode", "shared", "--size", "1KiB", "--uncertainty", "90%", "--draws", "4")
    told = json.loads(retrompi(*message, "--json").out)
    assert told["total_s_low"] < told["total_s_high"]
    assert all("seconds_low" in s for s in told["stages"])
    jacobi = ("replay", "examples/traces/jacobi-4.tar.zst", "-m", "wmpi", "-p", "nt-cluster", "--uncertainty", "90%", "--draws", "4")
    told = json.loads(retrompi(*jacobi, "--json").out)
    assert told["time_s_low"] < told["time_s_high"]
    assert told["completed"] == 1.0
    assert all(r["mpi_s_low"] <= r["mpi_s_high"] for r in told["per_rank"])
    assert "90 % interval" in retrompi(*jacobi).out


def test_a_sweep_has_intervals(retrompi: Callable[..., Any]) -> None:
    words = ("sweep", "bf-wmpi-shared", "--vary", "wmpi.packet=64KiB,256KiB", "--set", "sizes=0,64KiB", "--set", "reps=4",
             "--uncertainty", "90%", "--draws", "4", "--metric", "time@64KiB")
    said = retrompi(*words, "--dry-run").out
    assert "2 points with 4 draws each, 10 different runs, 0 in the store" in said
    out = retrompi(*words).out
    assert "in brackets the 90 % interval over 4 draws" in " ".join(out.split())
    assert " .. " in out
    rows = json.loads(retrompi(*words, "--json").out)
    assert len(rows) == 2
    assert all(r["time_s_low"] < r["time_s_high"] for r in rows)
    shown = json.loads(retrompi("study", "show", "bf-wmpi-shared", "--uncertainty", "50%", "--json").out)
    assert [r["completed"] for r in shown] == [1.0, 1.0]
    assert shown[0]["time@64KiB_low"] < shown[0]["time@64KiB_high"]


@for_each(
    "words, wanted",
    [
        (("--uncertainty", "90"), "out-of-range | '90' | 90%"),
        (("--uncertainty", "0%"), "out-of-range | '0%'"),
        (("--uncertainty", "nearly"), "bad-syntax | 'nearly'"),
        (("--draws", "10"), "unused-option | --draws | --uncertainty"),
        (("--uncertainty", "90%", "--draws", "1"), "BadParameter | --draws | 2<=x<=10000"),
    ],
)
def test_what_is_no_level_or_number_of_draws_is_refused(retrompi: Callable[..., Any], words: Sequence[str], wanted: str) -> None:
    done = retrompi(*POINT, *words)
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
    agrees(done, wanted)
