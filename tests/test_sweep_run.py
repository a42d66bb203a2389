"""Running studies: every point is a row, nothing is done twice, and what the store, the pool and the executors promise."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from retrompi.base.errors import EngineError, StoreError
from retrompi.sim import worker
from retrompi.store import Store, lookup, open_store
from retrompi.store.kept import Kept, Outbox
from retrompi.store.migrate import config
from retrompi.store.schema import REVISION, VERSION_TABLE
from retrompi.studies.define import case, catalogue
from retrompi.studies.define.case import PointJob, PointResult
from retrompi.studies.execute import design, pool_worker, worker_pool
from retrompi.studies.execute.plan import plan
from retrompi.studies.execute.run import Here, run_study, runs_of
from retrompi.studies.execute.worker_pool import WorkerPool
from retrompi.studies.read.results import rows

EXAMPLE = Path(__file__).parent / "data" / "study-example.toml"
QUICK = {"trace.sizes": "0,1KiB", "trace.reps": "3"}


class Inside:
    """Simulates in this process, without any other: what a worker does."""

    def __enter__(self) -> Inside:
        self.before = getattr(worker._local, "server", None)
        worker.adopt(pool_worker.Forking())
        return self

    def __exit__(self, *what: object) -> None:
        worker._local.server = self.before

    def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        for job in jobs:
            yield job.position, case.evaluate(job)

    def ready(self, within: float = 0.0) -> bool:
        return False

    def describe(self) -> str:
        return "inside"


EXECUTORS: dict[str, Callable[[], Any]] = {"here": Here, "inside": Inside, "pool-1": lambda: WorkerPool(1), "pool-2": lambda: WorkerPool(2)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "runs.db")


def _small(**vary: str) -> design.Study:
    return design.from_command("bf-wmpi-shared", {k.replace("__", "."): v for k, v in vary.items()}, set_=QUICK)


def _told(store: Store, study_id: int) -> list[dict[str, Any]]:
    """What must not depend on who simulated: no ids, no wall times."""
    out = []
    for row in rows(store, study_id):
        run_id = row.pop("run_id")
        row.pop("wall_s")
        out.append({**row, "points": store.points(run_id) if run_id else [], "ranks": store.ranks(run_id) if run_id else []})
    return out


@pytest.mark.parametrize("name", list(EXECUTORS))
def test_every_executor_gives_the_same_rows(name: str, store: Store) -> None:
    study = design.load(EXAMPLE)
    told = run_study(store, study, executor=EXECUTORS[name]())
    assert (told.points, told.simulated, told.found, told.errors) == (12, 12, 0, 0)
    assert [row["position"] for row in rows(store, told.study_id)] == list(range(12))
    assert len(store.runs()) == 12
    reference = open_store(Path(store.label).with_name("reference.db"))
    first = run_study(reference, study)
    assert _told(store, told.study_id) == _told(reference, first.study_id)
    # The curve of a point is that of the same command.
    row = rows(store, told.study_id)[0]
    again = lookup.answer(store, design.points(study)[0].scenario.question())
    assert (again.found, again.run_id, again.rows) == (True, row["run_id"], store.points(row["run_id"]))


def test_what_is_stored_is_not_repeated(store: Store, engine: Any) -> None:
    one = run_study(store, _small(seed="1..3"))
    assert (one.simulated, one.kept, one.found) == (3, 0, 0)
    again = run_study(store, _small(seed="1..3"))
    assert (again.simulated, again.kept, again.study_id) == (0, 3, one.study_id)
    more = run_study(store, _small(seed="2..5"))
    assert (more.simulated, more.found) == (2, 2)
    assert len(engine.calls) == 5 == len(store.runs())
    fresh = run_study(store, _small(seed="1..3"), fresh=True)
    assert (fresh.simulated, fresh.study_id) == (3, one.study_id)
    assert len(store.runs()) == 5  # replaced under their ids
    assert len(engine.calls) == 8
    assert [r["run_id"] for r in rows(store, one.study_id)] == [1, 2, 3]


def test_equal_points_are_one_run(store: Store, engine: Any) -> None:
    study = design.from_command("bf-wmpi-shared", zip_=["seed=1,1,2;mode=shared,shared,shared"], set_=QUICK)
    told = run_study(store, study)
    assert (told.points, told.simulated, len(engine.calls)) == (3, 2, 2)
    ids = [r["run_id"] for r in rows(store, told.study_id)]
    assert ids[0] == ids[1] != ids[2]


def test_negative_outcomes_and_errors_are_rows(store: Store) -> None:
    study = design.from_command(
        "bf-wmpi-shared",
        {"model": "wmpi,winmpich"},
        zip_=["mode=distributed,shared;kills=rank 1@1us,none"],
        set_={**QUICK, "wmpi.pool": "8KiB", "wmpi.packet": "4KiB"},
    )
    told = run_study(store, study)
    outcomes = [r["outcome"] for r in rows(store, told.study_id)]
    assert len(outcomes) == 4
    assert "deadlock" in outcomes
    for row in rows(store, told.study_id):
        assert (row["outcome"] == "completed") == (row["reason"] == "")
        assert (row["run_id"] is None) == (row["outcome"] == "error")
    # A run does not use the number of a host that has no rank: the point is run without it.
    study = design.from_command("bf-wmpi-shared", {"mode": ("0,0", "0,1"), "platform.workstation.cores": "2"}, set_=QUICK)
    told = run_study(store, study)
    assert [(r["outcome"], r["platform.workstation.cores"]) for r in rows(store, told.study_id)] == [("completed", "-"), ("completed", "2")]
    assert [line.partition(":")[0] for line in told.applies] == ["platform.workstation.cores applies to 1 of 2 points"]


def test_an_error_is_tried_again(store: Store, engine: Any) -> None:
    engine.fails = EngineError("the simulation died: signal 9")
    told = run_study(store, _small(seed="1..2"))
    assert (told.errors, store.runs()) == (2, [])
    engine.fails = None
    told = run_study(store, _small(seed="1..2"))
    assert (told.errors, told.simulated) == (0, 2)
    assert [r["outcome"] for r in rows(store, told.study_id)] == ["completed", "completed"]
    engine.fails = RuntimeError("a defect\nof ours")
    told = run_study(store, _small(seed="3"))
    assert told.reasons == ["internal error: RuntimeError: a defect"]


def test_lower_rungs_bring_their_samples(store: Store) -> None:
    told = run_study(store, _small(fidelity="mechanism,curve,loggp", mode="shared,distributed"), executor=WorkerPool(2))
    assert told.errors == 0
    assert sorted(r["kind"] for r in store.runs()) == ["pingpong"] * 6 + ["sample"] * 2
    reference = open_store(Path(store.label).with_name("reference.db"))
    for row in rows(store, told.study_id):
        point = design.points(_small(fidelity="mechanism,curve,loggp", mode="shared,distributed"))[row["position"]]
        assert lookup.answer(reference, point.scenario.question()).rows == store.points(row["run_id"])


def test_an_interrupted_study_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Here):
        def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
            for count, answer in enumerate(super().evaluate(jobs)):
                if count == 2:
                    raise KeyboardInterrupt
                yield answer

        def ready(self, within: float = 0.0) -> bool:  # so that nothing is written before it ends
            return True

    with pytest.raises(KeyboardInterrupt):
        run_study(store, _small(seed="1..5"), executor=Interrupted())
    assert len(store.runs()) == 2 == store.studies()[0]["done"]
    told = run_study(store, _small(seed="1..5"))
    assert (told.kept, told.simulated) == (2, 3)
    assert len({r["identity"] for r in store.runs()}) == 5 == len(store.runs())


def test_a_signal_from_outside_ends_it_in_order(store: Store) -> None:
    def answers(jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        for job in jobs:
            yield job.position, case.evaluate(job)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    executor = Here()
    executor.evaluate = answers  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run_study(store, _small(seed="1..3"), executor=executor)
    assert len(store.runs()) == 1 == store.studies()[0]["done"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_one_process_runs_a_study(store: Store) -> None:
    study = _small(seed="1..2")
    with store.study_lock(study.hash):
        with refused(StoreError, "store-busy"):
            run_study(store, study)
        run_study(store, _small(seed="1..3"))
    run_study(store, study)
    assert not list(Path(store.label).parent.glob("*.lock"))


def test_a_study_is_found_by_number_name_and_hash(store: Store) -> None:
    first = run_study(store, design.from_command("bf-wmpi-shared", {"seed": "1"}, set_=QUICK).with_name("a"))
    second = run_study(store, design.from_command("bf-wmpi-shared", {"seed": "2"}, set_=QUICK).with_name("a"))
    digest = store.study(first.study_id)["hash"]
    assert store.study("a")["id"] == second.study_id
    assert store.study(digest[:6])["id"] == first.study_id == store.study(str(first.study_id))["id"]
    assert store.delete_study(first.study_id) == 1
    assert [s["id"] for s in store.studies()] == [second.study_id]
    assert len(store.runs()) == 2
    assert rows(store, second.study_id)[0]["run_id"] == 2


def test_runs_of_single_scenarios(store: Store, engine: Any) -> None:
    base = catalogue.scenario("bf-wmpi-shared")
    made = [case.apply(base, {**QUICK, **v}) for v in ({"seed": "1"}, {"seed": "2"}, {"seed": "1"}, {"wmpi.foo": "1"})]
    told = runs_of(store, made)
    assert [(a.run_id, a.outcome, a.found) for a in told] == [(1, "completed", False), (2, "completed", False), (1, "completed", False),
                                                              (None, "error", False)]
    assert "did you mean" in told[3].reason or "valid:" in told[3].reason
    assert [asdict(a)["found"] for a in runs_of(store, made[:2])] == [True, True]
    assert len(engine.calls) == 2


def test_the_dry_run_counts_and_estimates(store: Store) -> None:
    study = _small(model="wmpi,hpvm", seed="1..4")
    p = plan(store, study, jobs=2)
    assert (p.points, p.runs, p.found, p.left, p.refused) == (8, 8, 0, 8, 0)
    assert p.seconds is not None
    assert p.seconds > 0
    assert "timing" in p.how
    assert store.runs() == []
    run_study(store, _small(seed="1..3"))
    p = plan(store, study, jobs=2)
    assert (p.runs, p.found, p.left) == (8, 3, 5)
    assert "wall times of 3 runs alike in the store and timing" in p.how
    run_study(store, study)
    p = plan(store, study, jobs=2)
    assert (p.left, p.seconds) == (0, None)


def test_a_dry_run_waits_for_no_endless_point_and_names_those_that_are_no_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrompi.studies.execute.plan.LONGEST_S", 0.3)
    endless = design.from_command("bf-wmpi-shared", {"trace.reps": "1000000000000"}, set_={"trace.sizes": "1B"})
    p = plan(store, endless, jobs=1)
    assert p.at_least
    assert p.seconds is not None
    assert p.seconds >= 0.3
    assert not plan(store, _small(seed="1,2"), jobs=1).at_least
    p = plan(store, _small(**{"wmpi.packet": "0B"}), jobs=1)
    assert p.seconds is None
    assert "must be 1 or more" in p.reasons[0]


def test_what_lies_outside_the_calibrated_range_is_one_line(store: Store) -> None:
    told = run_study(store, _small(model="wmpi,hpvm", hosts="2,3"))
    assert told.outside.startswith("2 of 4 points lie outside") or told.outside.startswith("4 of 4 points lie outside")
    assert "\n" not in told.outside
    assert run_study(store, design.from_command("bf-wmpi-shared", {"seed": "1"}, set_=QUICK)).outside == ""


# -- the store ------------------------------------------------------------------------------------------------------------


def test_an_older_store_is_upgraded_with_nothing_lost(tmp_path: Path) -> None:
    from alembic import command

    new = open_store(tmp_path / "new.db")
    run_study(new, _small(seed="1..2"))
    old = open_store(tmp_path / "old.db")
    with old._connect(write=True) as connection:
        command.downgrade(config(connection), "0001")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute(f"ATTACH DATABASE '{tmp_path / 'new.db'}' AS new")
        for table in ("runs", "points", "rank_times"):
            known = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))  # those of before
            connection.execute(f"INSERT INTO main.{table} ({known}) SELECT {known} FROM new.{table}")
        connection.commit()
        assert connection.execute(f"SELECT version_num FROM main.{VERSION_TABLE}").fetchone() == ("0001",)
    upgraded = open_store(tmp_path / "old.db")
    assert upgraded.runs() == [run | {"question": None} for run in new.runs()]  # of which the old store knew nothing
    assert [upgraded.points(r["id"]) for r in upgraded.runs()] == [new.points(r["id"]) for r in new.runs()]
    assert upgraded.studies() == []
    with upgraded._connect() as connection:
        assert upgraded._revision(connection) == REVISION
    told = run_study(upgraded, _small(seed="1..2"))
    assert (told.found, told.simulated) == (2, 0)


def test_an_identical_run_is_stored_once(store: Store) -> None:
    outbox: Any = Outbox()
    lookup.answer(outbox, case.apply(catalogue.scenario("bf-wmpi-shared"), QUICK).question())
    kept = outbox.kept[0]
    first = store.keep(kept)
    assert store.keep(kept) == first
    assert store.keep(Kept.of(kept.spec, {"outcome": "completed"})) == first
    assert store.keep(kept, fresh=True) == first
    other = replace(kept.spec, seed=9)
    assert store.keep(Kept.of(other, {"outcome": "completed"})) not in (first, None)
    row, told = store.run(first), outbox.run(1)
    assert {k: row[k] for k in told if k != "id"} == {k: v for k, v in told.items() if k != "id"}


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    outbox: Any = Outbox()
    lookup.answer(outbox, case.apply(catalogue.scenario("bf-wmpi-shared"), QUICK).question())

    def fail() -> None:
        with store.transaction():
            store.keep(outbox.kept[0])
            assert len(store.runs()) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.runs() == []
    with store.hold_connection(), store.transaction():
        store.keep(outbox.kept[0])
    assert len(store.runs()) == 1


# -- the pool -------------------------------------------------------------------------------------------------------------


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_lost_worker_is_replaced_and_its_job_done_again(store: Store) -> None:
    study = _small(seed="1..16")
    killed: list[int] = []

    class Hit(WorkerPool):
        def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
            for position, done in super().evaluate(jobs, window):
                alive = [w.process.pid for w in self._workers if w.process.pid not in killed]
                if len(killed) < 3 and alive:
                    killed.append(alive[0])
                    os.kill(alive[0], signal.SIGKILL)
                yield position, done

    executor = Hit(2)
    told = run_study(store, study, executor=executor)
    assert len(set(killed)) == len(killed) == 3
    assert (told.simulated, told.errors) == (16, 0)
    assert len({r["identity"] for r in store.runs()}) == 16 == len(store.runs())
    assert not any(_alive(pid) for pid in killed)


def test_a_job_that_kills_its_workers_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # The seed 2 ends whichever process works at it; the next ones must not suffer.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'retrompi.studies.execute.pool_worker' in sys.orig_argv:\n"
        "    from retrompi.studies.define import case\n"
        "    real = case.evaluate\n"
        "    def evaluate(job, *more):\n"
        "        if job.scenario.setting('seed') == 2:\n"
        "            os.write(2, b'out of luck\\n'); os._exit(7)\n"
        "        return real(job, *more)\n"
        "    case.evaluate = evaluate\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    jobs = [PointJob(p.position, p.scenario) for p in design.each(_small(seed="1..4"))]
    with WorkerPool(2) as executor:
        told = dict(executor.evaluate(jobs))
    assert {p: d.outcome for p, d in told.items()} == {0: "completed", 1: "error", 2: "completed", 3: "completed"}
    assert told[1].reason == f"its worker was lost {worker_pool.TRIES} times: exit code 7; last words: out of luck"


def test_workers_that_cannot_start_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "MODULE", "retrompi.no_such_module")
    jobs = [PointJob(p.position, p.scenario) for p in design.each(_small(seed="1..4"))]
    with WorkerPool(2) as executor, refused(EngineError, "engine-died | no_such_module"):
        list(executor.evaluate(jobs))


def test_a_pool_leaves_no_process_and_serves_many_calls() -> None:
    jobs = [PointJob(p.position, p.scenario) for p in design.each(_small(seed="1..6"))]
    with WorkerPool(2) as executor:
        first = executor.evaluate(jobs)
        next(first)  # nobody wants the others
        assert sorted(p for p, _ in executor.evaluate(jobs[3:])) == [3, 4, 5]
        assert sorted(p for p, _ in executor.evaluate(jobs[:1], 1)) == [0]
        assert list(executor.evaluate([])) == []
        pids = [w.process.pid for w in executor._workers]
    assert pids
    assert not any(_alive(pid) for pid in pids)


def test_the_window_bounds_what_is_taken_from_the_source() -> None:
    taken = 0

    def source() -> Iterator[PointJob]:
        nonlocal taken
        for point in design.each(_small(seed="1..40")):
            taken += 1
            yield PointJob(point.position, point.scenario)

    with WorkerPool(2) as executor:
        for count, _ in enumerate(executor.evaluate(source(), 3), 1):
            assert taken <= count + 3


def test_inside_and_forked_simulations_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = [catalogue.scenario(n) for n in ("bf-hpvm-distributed", "buffer-overflow-hpvm", "killed-daemon-wmpi", "mixed-winmpich")]
    told = []
    for apart in (False, True):
        server = pool_worker.Forking()
        server.apart = apart
        monkeypatch.setattr(worker._local, "server", server, raising=False)
        done = [case.evaluate(PointJob(0, s)) for s in scenarios]
        told.append([(d.outcome, d.reason, [(k.points, k.ranks, {**k.row, "wall_s": 0}) for k in d.runs]) for d in done])
    assert told[0] == told[1]
    assert {outcome for outcome, *_ in told[0]} > {"completed"}
