"""The store: one contract for every backend, its migrations, and one line for everything that can be wrong with it.

Run as a program, this file writes the script that makes a new SQLite store, after a new migration.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from cases import for_each
from postgres import Server
from refusals import refused

from retrompi.base.errors import StoreError, UsageError
from retrompi.spec.question import Message, Question, Replay, pingpong
from retrompi.store import RunSpec, Store, closure, code_version, database, default_path, identity, open_store, specification
from retrompi.store.database import sqlite_engine
from retrompi.store.lookup import answer
from retrompi.store.migrate import config, upgrade
from retrompi.store.schema import METADATA, REVISION, VERSION_TABLE
from retrompi.traces import generate

NEW_STORE = Path(database.__file__).parent / "new_store.sql"
SPEC = RunSpec(
    kind="pingpong",
    model="wmpi",
    model_hash="m" * 64,
    platform="nt-pair",
    platform_hash="p" * 64,
    mode="shared",
    parameters={"packet": 131072.0, "wait": "spin"},
    overrides={"wmpi.pool": "10MiB"},
    seed=7,
    fidelity="mechanism",
    trace="pingpong",
    trace_hash="t" * 64,
    scenario="",
    scenario_hash="",
    code_version="0.1.0+abc",
)
POINTS = [
    {"size_B": s, "time_us": 175.1 + s / 3, "bandwidth_MBps": s / (175.1 + s / 3), "repetitions": 1000}
    for s in (0, 1024, 4 << 20)
]
RESULT: dict[str, Any] = {
    "outcome": "deadlock",
    "detail": "two ranks wait for each other",
    "time_s": 0.1,
    "wall_s": 0.02,
    "ranks": 2,
    "actions": 2**40,
    "messages": 3,
    "bytes": 2**41,
    "packets": 4,
    "per_rank": [
        {"rank": r, "host": "server", "time_s": 0.1, "mpi_s": 0.1, "compute_s": 0.0, "sent": 1, "received": 0,
         "bytes_sent": 8, "bytes_received": 0}
        for r in range(2)
    ],
    "marks": [{"rank": 0, "label": "a", "time_s": 0.5}],
    "anatomy": [{"size_B": 1024, "stage": "copy", "process": "rank 0", "seconds": 1 / 3, "ps": 333_333_333_333}],
    "waits": [{"rank": 0, "line": 3, "file": "a.ti", "action": "recv", "on": "rank 1"}],
    "startup": [],
}


BACKENDS = ["sqlite-path", "sqlite-url", "postgresql"]


@pytest.fixture(params=BACKENDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store can be made."""
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgres")
        return server.database()
    return str(tmp_path / "a folder" / "runs.db") if request.param == "sqlite-path" else f"sqlite:///{tmp_path}/url.db"


@pytest.fixture
def store(location: str) -> Store:
    return open_store(location)


def test_a_run_comes_back_as_it_was_stored(store: Store, location: str) -> None:
    run_id = store.add_run(SPEC, RESULT, points=POINTS)
    again = open_store(location)
    row = again.run(run_id)
    for name in ("kind", "model", "model_hash", "platform", "mode", "seed", "fidelity", "trace", "code_version", "identity"):
        assert row[name] == getattr(SPEC, name)
    assert row["parameters"] == SPEC.parameters
    assert row["overrides"] == SPEC.overrides
    for name in ("outcome", "detail", "time_s", "wall_s", "ranks", "actions", "messages", "bytes", "packets"):
        assert row[name] == RESULT[name]
    assert row["facts"] == {"marks": RESULT["marks"], "waits": RESULT["waits"]}
    assert row["created"].endswith("+00:00")
    assert row["host"]
    assert again.points(run_id) == POINTS  # to the last bit
    assert again.ranks(run_id) == [{**r, "cpu_s": None} for r in RESULT["per_rank"]]
    assert again.anatomy(run_id) == [{**RESULT["anatomy"][0], "position": 0, "size_B": 1024}]


@for_each("workload", [pingpong([0, 1024], 3), Message(3000), Replay(generate.pingpong([8], 2))])
def test_what_has_just_been_simulated_has_the_rows_that_are_stored(workload: Any, tmp_path: Path) -> None:
    """They are not read back."""
    store = open_store(str(tmp_path / "runs.db"))
    question = Question("wmpi", "nt-pair", workload, "shared")
    first, again = answer(store, question), answer(store, question)
    assert (first.found, again.found, first.run_id) == (False, True, again.run_id)
    assert first.rows
    assert repr(first.rows) == repr(again.rows)


def test_identical_runs_are_found(store: Store) -> None:
    assert store.find_run(SPEC.identity) is None
    first = store.add_run(SPEC)
    assert store.find_run(SPEC.identity) == first
    assert store.add_run(SPEC, {"outcome": "deadlock"}, points=POINTS) == first  # another process was faster: its row is used
    assert (store.run(first)["outcome"], store.points(first)) == ("completed", [])
    assert store.add_run(SPEC, {"outcome": "deadlock"}, points=POINTS, fresh=True) == first
    assert (store.run(first)["outcome"], store.points(first), len(store.runs())) == ("deadlock", POINTS, 1)
    store.add_run(SPEC, {"outcome": "completed"}, points=POINTS[:1], fresh=True)
    assert (store.run(first)["outcome"], store.points(first)) == ("completed", POINTS[:1])
    measured = replace(SPEC, kind="native")
    assert len({store.add_run(measured) for _ in range(3)}) == 3  # every measurement is one
    assert store.find_run(replace(SPEC, seed=8).identity) is None


def test_runs_are_filtered(store: Store) -> None:
    ids = [store.add_run(replace(SPEC, model=m, mode=mode)) for m in ("wmpi", "hpvm") for mode in ("shared", "distributed")]
    assert [r["id"] for r in store.runs()] == ids
    assert [r["id"] for r in store.runs(limit=2)] == ids[2:]
    assert [r["id"] for r in store.runs(model="wmpi")] == ids[:2]
    assert [r["id"] for r in store.runs(model="hpvm", mode="shared", kind="pingpong", platform="nt-pair")] == [ids[2]]
    assert store.runs(outcome="deadlock") == []
    with refused(UsageError, f"unknown-run | 99 | {ids[0]} | {ids[-1]}"):
        store.run(99)


def test_a_failed_insert_leaves_nothing(store: Store) -> None:
    with pytest.raises(StoreError):
        store.add_run(SPEC, points=[{"size_B": 1}])  # no time: the run must not appear without its points
    assert store.runs() == []


def _verdict(claim: str, word: str, observed: Any = 1.5) -> dict[str, Any]:
    return {"id": claim, "system": "WMPI", "use": "validate", "verdict": word, "observed": observed, "low": 1.0,
            "high": None, "unit": "us", "note": "why"}


def test_verdicts_newest_of_each_claim(store: Store) -> None:
    run_id = store.add_run(SPEC)
    first = store.add_verdicts("baker-fox", [_verdict("BF-1", "fail"), _verdict("BF-2", "pass", "falls")], [run_id])
    second = store.add_verdicts("baker-fox", [_verdict("BF-1", "pass")], [run_id])
    assert [(v["id"], v["verdict"], v["observed"]) for v in store.verdicts()] == [("BF-2", "pass", "falls"), ("BF-1", "pass", 1.5)]
    assert [v["verdict"] for v in store.verdicts(batch=first)] == ["fail", "pass"]
    assert [v["verdict"] for v in store.verdicts("baker-fox", batch=second)] == ["pass"]
    assert store.verdicts("krishna-2010") == []
    assert set(_verdict("", "")) <= set(store.verdicts()[0])
    store.add_verdicts("baker-fox", [])


def test_tags_find_runs_and_deleting_takes_all_of_a_run(store: Store) -> None:
    one, two, three = (store.add_run(replace(SPEC, seed=seed), RESULT, points=POINTS) for seed in (1, 2, 3))
    assert store.tag_runs([one, two], "slow") == 2
    assert store.tag_runs([two, three], "slow") == 1  # one of them had it
    assert store.tag_runs([three], "other-word.1") == 1
    assert store.tags() == {one: ["slow"], two: ["slow"], three: ["other-word.1", "slow"]}
    assert store.tag_runs([three], "slow", remove=True) == 1
    assert store.runs_tagged("slow") == [one, two]
    assert store.delete_runs(store.runs_tagged("slow")) == 2
    assert [row["id"] for row in store.runs()] == [three]
    assert store.points(one) == store.ranks(one) == store.anatomy(one) == []
    assert len(store.points(three)) == len(POINTS)
    assert store.tags() == {three: ["other-word.1"]}
    with refused(UsageError, "unknown-run | 'slow'"):
        store.runs_tagged("slow")
    with refused(UsageError, f"unknown-run | {one}"):
        store.delete_runs([three, one])
    assert store.runs()  # all or none
    for wrong in ("", "12", "a b", "-x", "x" * 81, "x\n"):
        with refused(UsageError, "bad-name"):
            store.tag_runs([three], wrong)


def test_a_run_of_a_study_is_not_deleted(store: Store) -> None:
    run_id = store.add_run(SPEC, RESULT)
    study = store.add_study("mine", "h" * 64, {})
    point = {"position": 0, "axes": {}, "identity": SPEC.identity, "run_id": run_id, "outcome": "completed", "reason": "", "wall_s": 0.1}
    store.put_study_points(study, [point])
    with refused(UsageError, f"in-use | {run_id} | 'mine' | retrompi study delete"):
        store.delete_runs([run_id])
    store.delete_study(study)
    assert store.delete_runs([run_id]) == 1


def migrated_script(folder: Path) -> str:
    """What the migrations make of an empty SQLite database, as a script."""
    engine = sqlite_engine(folder / "migrated.db", read_only=False)
    with engine.begin() as connection:
        upgrade(connection)
        made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").scalars().all()
        version = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar_one()
    return ";\n".join([*made, f"INSERT INTO {VERSION_TABLE} VALUES ('{version}')"]) + "\n"


def test_a_new_store_is_what_the_migrations_make(tmp_path: Path) -> None:
    assert NEW_STORE.read_text() == migrated_script(tmp_path), "python tests/test_store.py writes it again"
    open_store(tmp_path / "new.db")
    for made in (["SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"], [f"SELECT * FROM {VERSION_TABLE}"]):
        rows = [sqlite3.connect(tmp_path / name).execute(*made).fetchall() for name in ("new.db", "migrated.db")]
        assert rows[0] == rows[1] != []


def _declare_the_index_of_simulated_runs(dialect: str) -> None:
    condition: dict[str, Any] = {f"{dialect}_where": sa.text("kind NOT IN ('native', 'smpi')")}
    sa.Index("ux_runs_identity", METADATA.tables["runs"].c.identity, unique=True, **condition)


def test_the_migrations_make_the_schema(store: Store) -> None:
    with store._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
        _declare_the_index_of_simulated_runs(connection.dialect.name)
        assert compare_metadata(context, METADATA) == []
        assert context.get_current_revision() == REVISION


def test_the_code_works_with_the_last_migration() -> None:
    from retrompi.store.migrate import known_revisions

    assert known_revisions()[0] == REVISION


def test_two_threads_and_a_first_opening_race(tmp_path: Path) -> None:
    location, failures = str(tmp_path / "runs.db"), []

    def work(number: int) -> None:
        try:
            mine = open_store(location)
            for i in range(5):
                mine.add_run(replace(SPEC, seed=10 * number + i), points=POINTS)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(open_store(location).runs()) == 20


EIGHT_AT_ONCE = """
import sys, time
from retrompi.cli.main import run
from pathlib import Path
Path(sys.argv[2], sys.argv[3]).touch()
while len(list(Path(sys.argv[2]).iterdir())) < 8: time.sleep(0.001)
sys.exit(run(["--store", sys.argv[1], "pingpong", "--model", "wmpi", "--mode", "shared", "--sizes", "0B,1KiB", "--reps", "2", "--json"]))
"""


def test_eight_identical_commands_at_once_store_one_row(location: str, tmp_path: Path) -> None:
    (tmp_path / "ready").mkdir()
    command = [sys.executable, "-c", EIGHT_AT_ONCE, location, str(tmp_path / "ready")]
    started = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(8)]
    told = {process.communicate(timeout=300)[0] for process in started}
    assert [process.returncode for process in started] == [0] * 8
    assert len(told) == 1  # the same answer for all
    store = open_store(location)
    (row,) = store.runs()
    assert len(store.points(row["id"])) == 2


def test_duplicates_of_an_older_store_are_merged_with_nothing_lost(location: str) -> None:
    store = open_store(location)
    other = store.add_run(replace(SPEC, seed=99), points=POINTS)
    spec = replace(SPEC, kind="native")
    ids = [store.add_run(spec, {"outcome": "completed", "timeline": {"kept": 1} if n == 0 else None}, points=POINTS) for n in range(3)]
    batch = store.add_verdicts("baker-fox", [_verdict("BF-1", "pass")], [ids[0], other, ids[1], ids[2]])
    study = store.add_study("one", "ab" * 32, {})
    point = {"axes": {}, "identity": SPEC.identity, "outcome": "completed", "reason": "", "wall_s": 0.0}
    store.put_study_points(study, [{**point, "position": n, "run_id": i} for n, i in enumerate(ids)])
    with store._connect(write=True) as connection:
        command.downgrade(config(connection), "0002")
        connection.execute(sa.text("UPDATE runs SET kind = 'pingpong', identity = :i WHERE kind = 'native'"), {"i": SPEC.identity})
    merged = open_store(location)
    assert [r["id"] for r in merged.runs()] == [other, ids[2]]
    assert merged.run(ids[2])["facts"] == {"timeline": {"kept": 1}}
    assert (merged.points(ids[2]), merged.points(other)) == (POINTS, POINTS)
    assert [p["run_id"] for p in merged.study_points(study)] == [ids[2]] * 3
    assert merged.verdict_batches()[batch]["runs"] == 2
    with merged._connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM points")) == 2 * len(POINTS)
        with pytest.raises(sa.exc.IntegrityError):
            connection.execute(sa.text("UPDATE runs SET identity = :i"), {"i": SPEC.identity})


@for_each("name", ["x" * 81, "a\0b", "a\x1b[31mb", "a\nb", "a\u202eb", " ", ""])
def test_a_name_that_the_schema_does_not_hold_is_refused_before_on_both_databases(store: Store, name: str) -> None:
    from retrompi.studies.execute.design import check_name

    with refused(UsageError, "bad-name"):
        check_name(name)
    if len(name) > 80:
        for work in (lambda: store.add_run(replace(SPEC, model=name)), lambda: store.add_study(name, "cd" * 32, {}),
                     lambda: store.add_verdicts(name, [])):
            with refused(UsageError, "bad-name | 81 | 80"):
                work()
    assert (store.runs(), store.studies()) == ([], [])


def test_text_that_a_database_cannot_hold_is_kept_escaped(store: Store) -> None:
    """A file's name in another encoding, a NUL of a program's output."""
    result = {"outcome": "completed", "detail": "a\0b", "note": {"k\0": ["\udcff", 1.5, "é"]}}
    run_id = store.add_run(replace(SPEC, trace="caf\udce9.ti"), result)
    row = store.run(run_id)
    assert (row["trace"], row["detail"], row["facts"]) == ("caf\\udce9.ti", "a\\x00b", {"note": {"k\\x00": ["\\udcff", 1.5, "é"]}})


def test_sqlite_is_in_wal_mode_and_keeps_references(tmp_path: Path) -> None:
    open_store(tmp_path / "runs.db")
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_killed_process_loses_at_most_the_run_in_flight(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from test_store import SPEC, POINTS; from retrompi.store import open_store\n"
        "s = open_store(sys.argv[1]); s.add_run(SPEC, points=POINTS)\n"
        "with s._connect(write=True) as c:\n"
        "    import sqlalchemy as sa\n"
        "    c.execute(sa.text('DELETE FROM points')); os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "runs.db"
    done = subprocess.run([sys.executable, "-c", code, str(path), str(Path(__file__).parent)], check=False)
    assert done.returncode == -9
    store = open_store(path)
    assert store.points(store.runs()[0]["id"]) == POINTS


def test_default_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_path() == tmp_path / "data" / "retrompi" / "retrompi.db"
    assert open_store().label == str(default_path())
    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "env.db"))
    assert open_store().label == str(tmp_path / "env.db")
    assert open_store(tmp_path / "given.db").label == str(tmp_path / "given.db")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local/share/retrompi/retrompi.db"


def _fails(location: Any, **options: Any) -> str:
    with pytest.raises(StoreError) as caught:
        open_store(location, **options)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_read_only_store(store_path: Path) -> None:
    open_store(store_path).add_run(SPEC)
    store_path.chmod(0o444)
    assert "is read-only; choose another with --store or RETROMPI_STORE" in _fails(store_path)
    reading = open_store(store_path, write=False)
    assert len(reading.runs()) == 1
    with refused(StoreError, "store-read-only | read-only"):
        reading.add_run(SPEC)
    store_path.chmod(0o644)
    store_path.parent.chmod(0o555)
    assert "is read-only" in _fails(store_path)
    assert "is read-only" in _fails(store_path.parent / "new.db")
    assert len(open_store(store_path, write=False).runs()) == 1


def test_locked_store(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(store_path)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    other = sqlite3.connect(store_path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with refused(StoreError, "store-failed | 0.1 s"):
        store.add_run(SPEC)
    assert store.runs() == []  # readers do not wait for a writer
    other.execute("ROLLBACK")
    store.add_run(SPEC)
    other.close()


def test_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, but it is long enough to be looked at" * 20)
    assert "is not a retrompi store" in _fails(tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    assert "is a database of something else (it has a table 'customers')" in _fails(tmp_path / "other.db")
    assert "is a folder" in _fails(tmp_path)
    assert "no store at" in _fails(tmp_path / "none.db", write=False)
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file" / "runs.db") in _fails(tmp_path / "file" / "runs.db")


def test_a_damaged_store_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = open_store(path)
    for _ in range(40):
        store.add_run(SPEC, points=POINTS)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError) as caught:
        open_store(path).runs()
    assert "\n" not in str(caught.value)


def test_a_store_of_a_newer_version(tmp_path: Path) -> None:
    open_store(tmp_path / "runs.db")
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.close()
    assert "was made by a newer retrompi (revision 9999); update" in _fails(tmp_path / "runs.db")


def test_an_empty_file_becomes_a_store_unless_it_is_read_only(store_path: Path) -> None:
    store_path.parent.mkdir()
    store_path.touch()
    store_path.chmod(0o444)
    assert "is empty and read-only" in _fails(store_path, write=False)
    store_path.chmod(0o644)
    assert open_store(store_path).runs() == []


@for_each(
    "url, says",
    [
        ("oracle9://host/db", "no database kind"),
        ("mysql://host/db", "no database kind 'mysql'; valid: sqlite, postgresql+psycopg"),
        ("postgresql+psycopg://nobody@127.0.0.1:1/none", "needs the package psycopg"),
        ("sqlite://", "has no file"),
        ("://", "neither a path nor a database URL"),
        ("postgresql://a:b:c@host:port/x", "neither a path nor a database URL"),
    ],
)
def test_wrong_urls(url: str, says: str) -> None:
    said = _fails(url)
    if "psycopg" in url and "cannot be used" in said:
        return  # the driver is installed and the server is not there: also one line
    assert says in said


def _with(name: str, value: Any) -> RunSpec:
    changed: dict[str, Any] = {name: value}
    return replace(SPEC, **changed)


def test_identity_covers_all_that_changes_a_result() -> None:
    labels = {"platform": "other", "trace": "other", "scenario": "other"}
    for name, value in labels.items():
        assert _with(name, value).identity == SPEC.identity
    for name in ("kind", "model", "model_hash", "platform_hash", "mode", "fidelity", "trace_hash", "scenario_hash", "code_version"):
        assert _with(name, "other").identity != SPEC.identity
    assert replace(SPEC, seed=8).identity != SPEC.identity
    assert replace(SPEC, parameters={**SPEC.parameters, "packet": 131073.0}).identity != SPEC.identity
    assert replace(SPEC, overrides={}).identity != SPEC.identity


def test_a_specification_resolves(toy: Path) -> None:
    question = Question(str(toy), "nt-pair", pingpong(), "shared")
    plain = specification(question)
    assert plain.parameters == {"packet": 16384, "call": 1e-5, "wait": "block"}
    assert (plain.model, plain.platform, plain.mode) == ("toy", "nt-pair", "shared")
    other = specification(question.with_(placement=[0, 1], overrides=["platform.host.cores=2"]))
    assert other.mode == "0,1"
    assert other.platform_hash != plain.platform_hash
    assert other.overrides == {"platform.host.cores": "2"}
    with pytest.raises(UsageError):
        specification(question.with_(overrides=["packt=1"]))


def test_code_version_names_version_and_code() -> None:
    version, _, digest = code_version().partition("+")
    assert version
    assert len(digest.rpartition("+")[2]) == 8


def test_a_kept_digest_of_the_code_is_that_of_the_files(tmp_path: Path) -> None:
    """A file that is changed, even with its old size and time of modification, added or removed changes what is kept."""
    root, cache = tmp_path / "retrompi", tmp_path / "cache"
    shutil.copytree(Path(closure.__file__).parents[1], root, ignore=shutil.ignore_patterns("__pycache__", "engine"))
    source = root / "sim" / "simulate.py"

    def told() -> str:
        with pytest.MonkeyPatch.context() as settled:
            settled.setattr(identity, "_SETTLED", -1e18)
            found = identity.code_digest(root, None, cache)
        assert found == identity.digest(closure.modules(root))
        assert identity.code_digest(root, None, cache) == found
        return found

    first = told()
    assert len(list(cache.iterdir())) == 1
    times = source.stat()
    source.write_bytes(source.read_bytes().swapcase().swapcase().replace(b"Running a model", b"running a model", 1))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = told()
    (root / "sim" / "simulate").mkdir()
    (root / "sim" / "simulate" / "__init__.py").write_text("")
    third = told()
    assert len({first, second, third}) == 3
    next(iter(cache.iterdir())).write_text("torn")
    assert told() == third


def test_what_has_just_changed_is_not_kept(tmp_path: Path) -> None:
    for folder in ("sim", "spec"):
        (tmp_path / folder).mkdir()
    entries = [entry.removeprefix("retrompi.").replace(".", "/") for entry in closure.ENTRIES]
    for name in ("__init__", "sim/__init__", "spec/__init__", *entries):
        (tmp_path / f"{name}.py").write_text("")
    identity.code_digest(tmp_path, None, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        NEW_STORE.write_text(migrated_script(Path(made)))
