"""Text that others gave: no control character of it reaches a terminal, no formula a CSV cell, no password a message."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from retrompi.base import csv_safe
from retrompi.cli import terminal
from retrompi.store import open_store
from retrompi.studies.archive import export
from retrompi.studies.read import stored_study

ROOT = Path(__file__).parents[1]
OBEYED = [
    *range(0x09), *range(0x0B, 0x20), 0x7F, *range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A),
]
"""C0, DEL, C1, and what turns the direction of writing."""
GIVEN = "evil" + "".join(map(chr, OBEYED[1:])) + "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp"
"""What a word of a command line can hold."""
HOSTILE = "\0evil" + "".join(map(chr, OBEYED)) + "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp"


class Seen(io.StringIO):
    """A stream that keeps what was written and may claim to be a terminal."""

    def __init__(self, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty


def _printed(work: Callable[[], object], *, tty: bool = True) -> str:
    from contextlib import redirect_stderr, redirect_stdout

    seen = Seen(tty)
    with redirect_stdout(seen), redirect_stderr(seen), terminal.no_raw_control_characters():
        work()
    return seen.getvalue()


def _harmless(text: str) -> bool:
    """Whether nothing is left in ``text`` that a terminal obeys, but for our own colours."""
    plain = re.sub(r"\x1b\[\d*m", "", text)
    return not any(ord(c) in OBEYED or 0xD800 <= ord(c) <= 0xDFFF for c in plain)


@pytest.mark.parametrize("tty", [True, False])
def test_no_way_of_printing_lets_a_control_character_through(tty: bool) -> None:
    import click

    from retrompi.cli.output import Column, note, print_csv, print_json, print_table

    rows = [{"a": HOSTILE, "b": [HOSTILE], "c": {"k": HOSTILE}, HOSTILE: "pass"}]
    ways: list[Callable[[], object]] = [
        lambda: click.echo(HOSTILE), lambda: click.echo(HOSTILE, err=True, color=True), lambda: note(HOSTILE), lambda: print(HOSTILE),
        lambda: sys.stdout.write(HOSTILE), lambda: sys.stderr.writelines([HOSTILE]), lambda: print_csv(rows, ["a", "b", "c", HOSTILE]),
        lambda: print_table(rows, [Column("a", HOSTILE), Column("b", "b"), Column(HOSTILE, "c")]), lambda: print_json(rows),
        lambda: click.echo(terminal.paint(HOSTILE, fg="red"), color=True),
    ]
    for work in ways:
        said = _printed(work, tty=tty)
        assert _harmless(said), repr(said)
    said = _printed(lambda: print_json(rows), tty=tty)
    assert json.loads(said)[0]["a"] == HOSTILE  # escaped, and the same text


@given(st.text(max_size=60))
def test_any_text_is_printed_harmless_and_ordinary_text_as_it_is(text: str) -> None:
    said = _printed(lambda: sys.stdout.write(text))
    assert _harmless(said.replace("\x1b", "?") if "\x1b" not in text else said)
    if text.isprintable():
        assert said == text


@for_each("words", [
    ("study", "run", "{zip}"), ("study", "unpack", "{zip}"), ("replay", "{trace}", "-m", "wmpi", "-p", "nt-pair"),
    ("trace", "info", "{trace}"),
    ("models", "list"), ("models", "show", "{model}"), ("platforms", "show", "{platform}"), ("pingpong", "--model", GIVEN),
    ("--store", "/tmp/no\x1b[2J/x\x9b.db", "runs", "list"), (GIVEN,), ("study", "show", GIVEN),
    ("pingpong", "--model", "wmpi", "--set", GIVEN + "=1"), ("scenarios", "show", "{scenario}"),
])
def test_no_command_prints_a_control_character_of_a_file(
    words: tuple[str, ...], retrompi: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_study_files import MODEL

    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "s.db"))
    bad = "a\x1b[2Jb\x9bc\u202ed"
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as out:
        out.writestr(f"models/{bad}", b"x")
    (tmp_path / "x.ti").write_text(f"0 init\n0 send{bad} 1 2\n0 finalize\n1 init\n1 {bad}\n", encoding="utf-8")
    (tmp_path / "mine").mkdir()
    source = MODEL.replace("Mine\"", f"{bad!a}[:9]\"").replace('title = "Mine"', f"title = {bad!a}").replace('"one ring"', f"{bad!a}")
    (tmp_path / "mine" / "__init__.py").write_text(source, encoding="utf-8")
    text = (ROOT / "platforms" / "nt-pair.toml").read_text(encoding="utf-8")
    titled = re.sub(r'^title = ".*"', 'title = "a\\\\u001b[2Jb\\\\u009b\\\\u202e"', text, flags=re.MULTILINE)
    (tmp_path / "room.toml").write_text(titled, encoding="utf-8")
    (tmp_path / "s.toml").write_text('name = "a\\u001b[2J\\u202e"\n', encoding="utf-8")
    places = {"zip": "x.zip", "trace": "x.ti", "model": "mine", "platform": "room.toml", "scenario": "s.toml"}
    done = retrompi(*(w.format(**{k: str(tmp_path / v) for k, v in places.items()}) if w.startswith("{") else w for w in words))
    assert done.code in (0, 2)
    assert _harmless(done.out), repr(done.out)
    assert _harmless(done.err), repr(done.err)


def test_a_terminal_gets_colours_and_nothing_else(tmp_path: Path) -> None:
    """A real one: the columns of a table are painted, what is in them is escaped."""
    code = (
        "from retrompi.cli.terminal import no_raw_control_characters\nfrom retrompi.cli.output import Column, print_table\n"
        f"with no_raw_control_characters(): print_table([{{'a': {HOSTILE!a}, 'b': 'pass'}}], [Column('a', 'a'), Column('b', 'b')])"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}):
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    text = said.decode().replace("\r\n", "\n")
    assert "\x1b[32m" in text
    assert _harmless(text), repr(text)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stream_that_lacks_a_character_gets_its_escape(encoding: str) -> None:
    done = subprocess.run([sys.executable, "-m", "retrompi.cli.main", "pingpong", "--model", "caf\u00e9\u2026\udcff"], capture_output=True,
                          check=False, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 2, done.stderr
    assert b"error: no model 'caf" in done.stderr
    assert b"\\udcff" in done.stderr


# -- formulas ------------------------------------------------------------------------------------------------------------------

FORMULAS = ["=cmd|'/c calc'!A1", "+1+cmd|x", "-1+cmd|x", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", "|calc", "%0A=1", " =1", "\x00=1"]


def test_every_csv_goes_through_the_one_writer() -> None:
    for folder in ("src/retrompi", "cli"):
        for file in (ROOT / folder).rglob("*.py"):
            if file.name == "csv_safe.py":
                continue
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
                assert name not in ("DictWriter", "to_csv"), file
                assert not (name == "writer" and isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "csv"), file


@for_each("text", FORMULAS)
def test_no_formula_reaches_a_cell(text: str) -> None:
    out = io.StringIO()
    csv_safe.write_rows(out, [text, "b"], [{text: text, "b": [text]}, {text: {"k": text}, "b": -1.5}])
    for row in csv.reader(io.StringIO(out.getvalue())):
        for cell in row:
            assert cell == "-1.5" or not re.match(r"\s*[=+\-@＝＋－＠|%]", cell), cell


@for_each("text", ["-", "%", "-5us", "+3", "-1.5e-3 s", "1e9", "wmpi", "a=b", "-333"])
def test_numbers_and_names_are_written_as_they_are(text: str) -> None:
    assert csv_safe.safe_cell(text) == text


def test_a_study_s_export_holds_no_formula(tmp_path: Path) -> None:
    from test_study_files import CURVES, ran

    text = CURVES.replace('"wmpi.network_packet" = ["32KiB", "48KiB"]\n', "").replace('"10Mbps,100Mbps"', '"10Mbps"')
    found = ran(text, tmp_path, open_store(tmp_path / "x.db"))
    rows = [dict(r) for r in found.rows]
    rows[0] |= {"outcome": "error", "reason": FORMULAS[0], "model": FORMULAS[1]}
    hostile = stored_study.StoredStudy({**found.study, "name": FORMULAS[0]}, rows, found.runs, found.curves, found.ranks)
    written = io.StringIO()
    export.print_to(written, hostile, "csv")
    for cell in (c for row in csv.reader(io.StringIO(written.getvalue())) for c in row):
        assert not re.match(r"[=+@|]", cell), cell


# -- passwords -----------------------------------------------------------------------------------------------------------------

SECRET = "s3cr3t!pw"


@for_each("url", [
    "postgresql+psycopg://me:{}@localhost:1/db", "postgresql+psycopg://me:{}@localhost:port/db", "postgresql+psycopg://me:{}@[::1/db",
    "postgresql://me:{}@nowhere.invalid/db", "mysql://me:{}@h/db", "nothing://me:{}@h", "postgresql+psycopg://me:a@{}@localhost:1/db",
    "postgresql+psycopg://me:{}@localhost:x:y/db", "postgresql+psycopg://localhost:1/db?user=me&password={}", "sqlite://me:{}@/",
    "postgresql+none://me:{}@h/db", "post gresql://me:{}@h/db", "://me:{}@h", "postgresql+psycopg://me:{}@localhost:99999/db",
    "postgresql+psycopg://me:x/{}@localhost:1/db", "postgresql+psycopg://me:{}@localhost:1/db?nonsense=1",
])
@for_each("words", [("runs", "list"), ("--debug", "runs", "list", "--json")])
def test_no_message_holds_a_password(url: str, words: tuple[str, ...], retrompi: Callable[..., Any]) -> None:
    done = retrompi("--store", url.format(SECRET), *words)
    assert done.code == 2
    assert SECRET not in done.out + done.err


@pytest.mark.parametrize("words", [("runs", "list", "--json"), ("study", "list", "--json"), ("validate", "--json"), ("runs", "show", "1")])
def test_a_server_s_password_is_nowhere_in_what_is_stored_or_shown(
    words: tuple[str, ...], retrompi: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    import sqlalchemy as sa

    url = request.getfixturevalue("postgres").database().replace("retrompi@", f"retrompi:{SECRET}@")
    assert retrompi("--store", url, "pingpong", "-m", "wmpi", "--sizes", "0B", "--reps", "1", "--json").code == 0
    done = retrompi("--store", url, *words)
    assert SECRET not in done.out + done.err
    assert SECRET not in open_store(url).label
    with open_store(url)._connect() as connection:
        for table in sa.inspect(connection).get_table_names():
            for row in connection.execute(sa.text(f'SELECT * FROM "{table}"')).all():
                assert SECRET not in repr(row)
