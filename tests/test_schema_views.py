"""The views for people who open the store with SQL: as documented, on both databases, and what they tell is what the store holds."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from postgres import Server

from retrompi.cli.main import run as cli
from retrompi.manual import pages
from retrompi.spec.question import Message, Question
from retrompi.store import Store, open_store
from retrompi.store.lookup import answer
from retrompi.store.migrate import config
from retrompi.store.schema import VERSION_TABLE
from retrompi.store.views import EXAMPLES, VIEWS
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study

EXPECTED = {view.name: list(view.columns) for view in VIEWS}


def filled(location: str) -> Store:
    """A store with a study of three points, one of which aborts, one that cannot be run, stages of a message, tags and verdicts."""
    store = open_store(location)
    fixed = {"sizes": "0,1KiB", "reps": "2"}
    run_study(store, design.from_command("bf-wmpi-shared", ["wmpi.packet=64KiB,128KiB"], set_=fixed).with_name("packets"))
    run_study(store, design.from_command("bf-wmpi-shared", ["mode=shared,server"], set_=fixed).with_name("places"))
    run_study(store, design.from_command("bf-wmpi-shared", ["wmpi.packet=256KiB"], set_={"sizes": "1MiB", "reps": "1"}).with_name("aborts"))
    answer(store, Question("wmpi", "nt-pair", Message(1024), "shared", ["wmpi.packet=64KiB"]))
    store.tag_runs([1], "zeta")
    store.tag_runs([1], "alpha")
    store.add_verdicts("baker-fox", [{"id": "BF-SM-12a", "system": "wmpi", "use": "fit", "verdict": "pass", "observed": 3.1, "low": 2.5,
                                      "high": 4.5, "unit": "MB/s"}])
    return store


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        yield filled(str(tmp_path / "runs.db"))
    else:
        server: Server = request.getfixturevalue("postgres")
        yield filled(server.database())


def asked(store: Store, query: str) -> list[dict[str, Any]]:
    with store._connect() as connection:
        return [dict(row) for row in connection.exec_driver_sql(query).mappings()]


def test_the_views_are_those_documented(store: Store) -> None:
    with store._connect() as connection:
        looked = sa.inspect(connection)
        found = {name: [c["name"] for c in looked.get_columns(name)] for name in looked.get_view_names()}
    assert found == EXPECTED


def test_the_examples_run_and_answer(store: Store) -> None:
    told = {e.question: asked(store, e.query) for e in EXAMPLES}
    assert all(told.values()), {q for q, rows in told.items() if not rows}
    by_outcome = {(r["model"], r["outcome"]): r["runs"] for r in told[EXAMPLES[0].question]}
    with store._connect() as connection:
        assert sum(by_outcome.values()) == connection.exec_driver_sql("SELECT count(*) FROM runs").scalar()
    assert by_outcome["wmpi", "aborted"] == 1
    curve = [(r["packet"], r["size_B"]) for r in told[EXAMPLES[2].question]]
    assert curve == [("64KiB", 0), ("64KiB", 1024), ("128KiB", 0), ("128KiB", 1024)]
    (last,) = [r for r in told[EXAMPLES[5].question] if r["parameter"] == "wmpi.packet" and r["set_to"] == "256KiB"]
    assert float(last["in_base_units"]) == 256 * 1024


def test_the_numbers_are_the_stores_own(store: Store) -> None:
    for run in store.runs():
        (row,) = asked(store, f"SELECT * FROM runs_v WHERE run_id = {run['id']}")
        same = {"run_id": "id", "model": "model", "placement": "mode", "time_s": "time_s", "payload_B": "bytes", "identity": "identity"}
        assert {k: row[k] for k in same} == {k: run[v] for k, v in same.items()}
        assert row["stored_utc"].replace(" ", "T") + "+00:00" == run["created"]
        points = asked(store, f"SELECT * FROM points_v WHERE run_id = {run['id']} ORDER BY \"size_B\"")
        assert [(p["size_B"], p["one_way_us"], p["bandwidth_MBps"]) for p in points] == [
            (p["size_B"], p["time_us"], p["bandwidth_MBps"]) for p in store.points(run["id"])
        ]
        ranks = asked(store, f"SELECT * FROM ranks_v WHERE run_id = {run['id']} ORDER BY rank")
        assert [(r["mpi_s"], r["sent_B"]) for r in ranks] == [(r["mpi_s"], r["bytes_sent"]) for r in store.ranks(run["id"])]
    assert asked(store, "SELECT tags FROM runs_v WHERE run_id = 1") == [{"tags": "alpha zeta"}]
    stages = asked(store, "SELECT sum(time_us) AS us, min(run_id) AS run_id FROM stages_v")[0]
    assert stages["us"] == pytest.approx(1e6 * store.run(stages["run_id"])["time_s"])
    studies = {r["name"]: r for r in asked(store, "SELECT * FROM studies_v")}
    assert {n: (r["points"], r["completed"], r["errors"]) for n, r in studies.items()} == {
        "packets": (2, 2, 0), "places": (2, 1, 1), "aborts": (1, 0, 0)}
    assert asked(store, "SELECT claim, verdict FROM verdicts_v") == [{"claim": "BF-SM-12a", "verdict": "pass"}]


def test_a_store_of_the_revision_before_gets_them_and_loses_them_on_the_way_back(tmp_path: Path) -> None:
    from alembic import command

    path = tmp_path / "old.db"
    store = filled(str(path))
    with store._connect(write=True) as connection:
        command.downgrade(config(connection), "0005")
        assert sa.inspect(connection).get_view_names() == []
    with sqlite3.connect(path) as raw:
        assert raw.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() == ("0005",)
        before = raw.execute("SELECT count(*) FROM runs").fetchone()
    again = open_store(path)
    assert len(asked(again, "SELECT * FROM runs_v")) == before[0]


def test_the_page_names_every_view_column_and_table() -> None:
    (page,) = [p for p in pages() if p.path == "schema.md"]
    for view in VIEWS:
        assert f"### {view.name}\n" in page.text
        assert all(f"| `{column}` |" in page.text for column in view.columns)
    for example in EXAMPLES:
        assert example.query.strip() in page.text
    assert "### study_points\n" in page.text


def test_the_program_sqlite3_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As on the page: another process, read only, without retrompi."""
    import subprocess

    path = tmp_path / "runs.db"
    filled(str(path))
    assert cli(["--store", str(path), "study", "list", "--json"]) == 0
    code = "import sqlite3, sys; print(sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True).execute(sys.argv[2]).fetchall())"
    said = subprocess.run([sys.executable, "-I", "-c", code, str(path), "SELECT name, points FROM studies_v ORDER BY study_id"],
                          capture_output=True, text=True, check=True).stdout
    assert said == "[('packets', 2), ('places', 2), ('aborts', 1)]\n"
