"""A store that something else has changed: one line that names the place, exit code 2, and not a byte of it lost.

The suite tries a share of the damages; RETROMPI_DAMAGES=all tries every one with every command.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_study_files import CURVES, ran

from retrompi.sim.observe import Observe
from retrompi.sim.timeline import TimelineRequest
from retrompi.spec.question import Message, Question, Replay
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.store.schema import METADATA
from retrompi.traces import generate

VALUES = [
    "NULL", "''", "'x'", "x'ff00'", "CAST(x'fffe41' AS TEXT)", "-1", "9223372036854775807", "1e308", "'[]'", "'{}'", "'3'", "'null'",
    "'{\"a\":'", "'{\"title\": 3}'", "'[[[['", "'2026-99-99'", "'\u2603'", "'a' || char(0) || 'b'",
]
COMMANDS = [
    ("runs", "list"), ("runs", "list", "--json"), ("runs", "show", "1"), ("runs", "show", "1", "--json"), ("runs", "diff", "1", "2"),
    ("study", "list"), ("study", "show", "small"), ("study", "export", "small", "--csv"),
    ("study", "export", "small", "--json", "--points"),
    ("study", "pack", "small", "-o", "out.zip"), ("study", "figure", "small", "-o", "out.html"), ("timeline", "{timeline}"),
    ("explain", "-m", "wmpi", "--size", "0"), ("claims", "show", "BF-SM-01"), ("models", "show", "wmpi"), ("measured", "list"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A store with something in every table, and the number of the run with a timeline."""
    folder = tmp_path_factory.mktemp("whole")
    store = open_store(folder / "whole.db")
    ran(CURVES, folder, store)
    answer(store, Question("wmpi", "nt-pair", Message(0), "shared"))
    replay = Question("wmpi", "nt-pair", Replay(generate.pingpong([0], 1), "x"), "shared")
    found = answer(store, replay, observe=Observe(timeline=TimelineRequest()))
    store.add_verdicts("baker-fox", [{"id": "BF-SM-01", "system": "WMPI", "use": "validate", "verdict": "pass", "observed": 1.5}], [1])
    return folder / "whole.db", found.run_id


def _statements() -> Iterator[str]:
    for name, table in sorted(METADATA.tables.items()):
        for column in table.columns:
            if column.name != "id":
                for value in VALUES:
                    yield f'UPDATE "{name}" SET "{column.name}" = {value}'
        yield f'DELETE FROM "{name}"'
        yield f'DROP TABLE "{name}"'
        yield f'ALTER TABLE "{name}" RENAME COLUMN "{list(table.columns)[-1].name}" TO gone'


def _damage(path: Path, statement: str) -> bool:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA foreign_keys = OFF")
        try:
            connection.execute(statement)
        except sqlite3.Error:  # such a value the schema keeps out by itself
            return False
        finally:
            connection.commit()
    connection.close()
    return True


def _all_of(path: Path) -> bytes:
    with sqlite3.connect(path) as connection:
        return "\n".join(connection.iterdump()).encode(errors="surrogateescape")


def _share(cases: list[Any], size: int, seed: int) -> list[Any]:
    return cases if os.environ.get("RETROMPI_DAMAGES") == "all" else random.Random(seed).sample(cases, size)


def test_a_damaged_value_is_one_line(
    whole: tuple[Path, int], retrompi: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tried, wrong = 0, []
    for n, statement in enumerate(_share(list(_statements()), 90, 16)):
        path = tmp_path / "x.db"
        shutil.copy(whole[0], path)
        if not _damage(path, statement):
            continue
        for words in _share(COMMANDS, 3, n):
            done = retrompi("--store", str(path), *(w.format(timeline=whole[1]) for w in words))
            tried += 1
            if done.code not in (0, 1, 2) or (done.code == 2 and done.err.count("error:") != 1):
                wrong.append((statement, words, done.code, done.err[-200:]))
        Path("out.zip").unlink(missing_ok=True)
    assert not wrong, f"{len(wrong)} of {tried}: {json.dumps(wrong[:8], indent=1)}"
    assert tried >= 90 * 3 / 2  # the schema keeps out the other damages by itself


def test_a_damaged_file_is_one_line_and_nothing_of_it_is_lost(
    whole: tuple[Path, int], retrompi: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect(whole[0]) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    good = whole[0].read_bytes()
    draw = random.Random(3)
    cases: list[bytes] = [good[: draw.randrange(len(good))] for _ in range(40)]
    for _ in range(120):
        at = draw.choice([draw.randrange(200), draw.randrange(len(good))])
        cases.append(good[:at] + draw.randbytes(draw.choice([1, 4, 64, 4096])) + good[at + 1 :])
    wrong = []
    for n, data in enumerate(_share(cases, 60, 17)):
        path = tmp_path / "x.db"
        for beside in tmp_path.glob("x.db*"):
            beside.unlink()
        path.write_bytes(data)
        for words in _share(COMMANDS[:9], 2, n):
            done = retrompi("--store", str(path), *words)
            if done.code not in (0, 1, 2) or (done.code == 2 and done.err.count("error:") != 1):
                wrong.append((n, words, done.code, done.err[-200:]))
        if data:  # an empty file becomes a store
            assert len(path.read_bytes()) >= len(data) or path.read_bytes()[100:] in data, n
    assert not wrong, f"{len(wrong)}: {json.dumps(wrong[:8], indent=1)}"
