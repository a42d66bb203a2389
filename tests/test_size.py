"""Studies of many trivial runs: what is shared and batched gives the runs that one question at a time gives, and a crash takes only
its own."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import for_each

from retrompi.sim import worker
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import SimulationEnded
from retrompi.spec.question import canonical_hash, canonical_parts, hash_of_parts
from retrompi.store import Store, open_store
from retrompi.store.identity import RunSpec, specification
from retrompi.store.kept import PART_OF
from retrompi.store.lookup import answer
from retrompi.studies.define import case, catalogue
from retrompi.studies.define.case import PointJob
from retrompi.studies.define.same_but_seed import Alike
from retrompi.studies.execute import design, worker_pool
from retrompi.studies.execute.pool_worker import Forking
from retrompi.studies.execute.run import run_study
from retrompi.studies.execute.worker_pool import WorkerPool

TINY = {"trace.sizes": "1B", "trace.reps": "1"}


def study(*vary: str, scenario: str = "bf-wmpi-shared", **fixed: str) -> design.Study:
    return design.from_command(scenario, list(vary), set_={**TINY, **fixed})


STUDIES = (
    study("seed=1..12"),
    study("seed=0,7,9223372036854775807", "platform.host.quantum=10ms,20ms"),
    study("platform.link.latency=1us..5us:+1us", scenario="bf-wmpi-distributed"),
    study("wmpi.packet=64KiB,256KiB", "seed=1,2", **{"trace.sizes": "1MiB"}),  # some abort
    study("fidelity=mechanism,loggp", "seed=1,2"),
    study("model=wmpi,winmpich,hpvm", "seed=1..2", "mode=shared,distributed"),
)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulations in this process, as in a worker."""
    monkeypatch.setattr(worker._local, "server", Forking(), raising=False)


def stored(store: Store) -> dict[str, Any]:
    """Every run by its identity, with all that hangs on it and nothing that differs from one execution to the next, nor who asked."""
    found = {}
    for d in store.details([row["id"] for row in store.runs()]).values():
        run = {k: v for k, v in d.run.items() if k not in ("id", "created", "wall_s")}
        run["facts"] = {k: v for k, v in run["facts"].items() if k != PART_OF}
        found[run["identity"]] = [run, d.points, d.ranks, d.anatomy]
    return found


@pytest.mark.parametrize("number", range(len(STUDIES)))
def test_a_batched_study_stores_what_single_questions_store(number: int, inside: None, tmp_path: Path) -> None:
    """The question of each point by itself, resolved anew, looked up and stored alone."""
    given = STUDIES[number]
    alone, batched = open_store(tmp_path / "alone.db"), open_store(tmp_path / "batched.db")
    for point in design.each(given):
        with suppress(SimulationEnded):  # stored before it is raised: the outcome is data
            answer(alone, point.scenario.question())
    told = run_study(batched, given, executor=WorkerPool(2))
    assert (told.errors, told.points) == (0, design.count(given))
    assert stored(batched) == stored(alone)
    assert run_study(batched, given).kept == design.count(given)


@for_each("number", range(len(STUDIES)))
def test_shared_specifications_are_those_of_each_scenario(number: int) -> None:
    alike = Alike()
    for point in design.each(STUDIES[number]):
        assert alike.specification(point.scenario) == case.specification(point.scenario)
        assert alike.specification(point.scenario).identity == _plain_identity(case.specification(point.scenario))


def _plain_identity(spec: RunSpec) -> str:
    """As it was before parts of it were shared: one hash over one JSON text."""
    from dataclasses import fields

    labels = ("platform", "trace", "scenario", "question", "stopped")
    return canonical_hash({f.name: getattr(spec, f.name) for f in fields(spec) if f.name not in labels})


def test_arguments_that_are_equal_but_not_the_same_are_not_taken_for_each_other() -> None:
    """1 == 1.0 == True, and their JSON differs."""
    base = catalogue.scenario("bf-wmpi-shared")
    alike = Alike()
    found = [alike.specification(replace(base, args={"sizes": (1,), "reps": reps}).with_settings({"seed": 3})) for reps in (1, 1.0, True)]
    assert len({spec.identity for spec in found}) == 3


def test_hashes_of_parts_are_hashes_of_the_whole() -> None:
    value = {"b": [1, {"z": 1.5, "a": None}], "a": "ä\"\\\n", "c": {}, "d": 10**19}
    assert hash_of_parts(canonical_parts(value)) == canonical_hash(value)


def test_a_seeded_question_shares_what_its_first_has_found(inside: None) -> None:
    from retrompi.sim import simulate
    from retrompi.spec.conditions.bounds import Bounds

    scenario = case.apply(catalogue.scenario("bf-wmpi-distributed"), {**TINY, "seed": "1"})
    first = Resolved.of(scenario.question())
    specification(first)
    simulate.run(first)
    asked = case.apply(scenario, {"seed": "2"}).question().asked
    second = first.with_seed(2, asked, Bounds())
    assert second.alike is first.alike
    assert second.trace is first.trace
    one, two = (simulate.run(r) for r in (second, Resolved.of(case.apply(scenario, {"seed": "2"}).question())))
    one.wall_s = two.wall_s = 0.0
    assert one == two


def test_a_crash_within_a_batch_takes_only_its_own_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The engine aborts the process at seed 57: it is repeated alone, dies again, and is a row with the reason; the others are stored."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'retrompi.studies.execute.pool_worker' in sys.orig_argv:\n"
        "    from retrompi import _engine\n"
        "    real = _engine.simulate\n"
        "    def simulate(config, *traces):\n"
        "        if config['seed'] == 57:\n"
        "            os.write(2, b'engine: assertion failed\\n'); os.abort()\n"
        "        return real(config, *traces)\n"
        "    _engine.simulate = simulate\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    store = open_store(tmp_path / "runs.db")
    sizes: list[int] = []
    real = worker_pool._Ticket.data

    def data(ticket: worker_pool._Ticket) -> Any:
        sizes.append(len(ticket.jobs))
        return real(ticket)

    monkeypatch.setattr(worker_pool._Ticket, "data", data)
    monkeypatch.setattr(worker_pool, "BATCH_S", 10.0)  # also where a busy machine makes a run slow
    told = run_study(store, study("seed=1..120"), executor=WorkerPool(1))
    assert max(sizes) > 1  # it was a batch
    assert dict(told.outcomes) == {"completed": 119, "error": 1}
    (reason,) = told.reasons
    assert "engine: assertion failed" in reason
    rows = store.study_points(told.study_id)
    assert [r["axes"]["seed"] for r in rows if r["outcome"] == "error"] == ["57"]
    assert {r["seed"] for r in store.runs()} == {*range(1, 121)} - {57}


def test_points_that_share_a_run_share_it_within_a_batch(tmp_path: Path) -> None:
    """Two names of one scenario's value: one run, two rows, however they are looked up."""
    store = open_store(tmp_path / "runs.db")
    given = design.from_command("bf-wmpi-shared", ["wmpi.packet=64KiB,65536B"], ["seed=1,2,1,2;trace.reps=1,1,1,1"], {"trace.sizes": "1B"})
    told = run_study(store, given, executor=WorkerPool(2))
    assert told.points == 8
    assert told.simulated == len(store.runs()) < 8
    rows = store.study_points(told.study_id)
    assert len(rows) == 8
    assert {r["run_id"] for r in rows} == {r["id"] for r in store.runs()}


def test_a_large_study_is_read_as_a_small_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left out when many runs are read shows in no export and no table."""
    from retrompi.cli import study_show
    from retrompi.cli.main import run as cli
    from retrompi.studies.read import stored_study

    store = open_store(tmp_path / "runs.db")
    run_study(store, study("seed=1..3", "mode=shared,distributed").with_name("few"))
    said = []
    for whole in (20_000, 0):
        monkeypatch.setattr(stored_study, "_WHOLE", whole)
        for words in ("export few --csv", "export few --points --json", "show few --metric mpi", "show few"):
            assert cli(["--store", str(tmp_path / "runs.db"), "study", *words.split()]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    monkeypatch.setattr(study_show, "MOST_SHOWN", 5)
    assert cli(["--store", str(tmp_path / "runs.db"), "study", "show", "few"]) == 2
    assert "study few has 6 points, too many to show" in capsys.readouterr().err


def test_an_evaluation_without_a_store_is_the_same_with_and_without_company(inside: None) -> None:
    alike = Alike()
    for point in design.each(STUDIES[0]):
        job = PointJob(point.position, point.scenario)
        one, two = case.evaluate(job), case.evaluate(job, alike)
        assert (one.outcome, [{**k.row, "wall_s": 0} for k in one.runs]) == (two.outcome, [{**k.row, "wall_s": 0} for k in two.runs])
        assert [(k.points, k.ranks) for k in one.runs] == [(k.points, k.ranks) for k in two.runs]
