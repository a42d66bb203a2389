"""A PostgreSQL server of the tests' own: made in a scratch folder, reached over a socket there, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

__all__ = ["Server", "binaries", "database_place", "server"]

_NO_CARE = ("fsync=off", "full_page_writes=off", "listen_addresses=", "log_min_messages=fatal")
"""The server need not survive the machine (but itself), and nobody but us reaches it."""

_WATCHED = '"$@" </dev/null & read -r _; kill -QUIT $!; wait $!'
"""The server ends when our end of the pipe is closed, also because we were killed."""


def binaries() -> Path:
    """The folder with initdb and postgres: of PATH, or the newest that Debian has. Skips, with the reason, where there is none."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip("PostgreSQL (initdb, postgres) not installed")


def _unprivileged() -> tuple[list[str], dict[str, Any]]:
    """PostgreSQL refuses to be run by root: as whom root runs it (words before the command, arguments of Popen)."""
    if os.geteuid() != 0:
        return [], {}
    # initdb writes to /dev/null, which on some machines only root may.
    if Path(os.devnull).stat().st_mode & 0o002:
        for name in ("postgres", "nobody"):
            try:
                user = pwd.getpwnam(name)
            except KeyError:
                continue
            return [], {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    apart = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]  # root outside, somebody else inside
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no unprivileged user to run PostgreSQL as")
    return apart, {}


class Server:
    """A running server; `database` makes an empty database in it."""

    def __init__(self) -> None:
        pytest.importorskip("psycopg", reason="psycopg not installed")
        self._bin = binaries()
        self._before, self._as = _unprivileged()
        # Not in pytest's own folder, which nobody else may enter; short, since a socket's path has 107 bytes.
        self._home = Path(tempfile.mkdtemp(prefix="retrompi-pg-"))
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        if self._as:
            os.chown(self._home, self._as["user"], self._as["group"])
        data = str(self._home / "data")
        options = ["-U", "retrompi", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        command = [*self._before, str(self._bin / "initdb"), "-D", data, *options]
        made = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **self._as)
        if made.returncode:
            shutil.rmtree(self._home)
            raise RuntimeError(f"initdb failed: {made.stderr.strip()}")
        self.start()

    def url(self, database: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql+psycopg://retrompi@/{database}?host={self._home}"

    def _execute(self, statement: str) -> None:
        engine = sa.create_engine(self.url(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.execute(sa.text(statement))

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [word for setting in (*_NO_CARE, f"unix_socket_directories={self._home}") for word in ("-c", setting)]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _WATCHED, "sh", *self._before, str(self._bin / "postgres"), "-D", str(self._home / "data"), *options],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/", process_group=0, **self._as,
            )
        deadline = time.monotonic() + 300
        while True:
            try:
                return self._execute("SELECT 1")
            except sa.exc.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.close()
                    raise
                time.sleep(0.05)

    def stop(self) -> None:
        """End it as an accident would: every connection is cut."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        """End it and remove what it kept."""
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for the tests of a file, started when the first one needs it."""
    found = Server()
    yield found
    found.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_place(request: Any, tmp_path: Path) -> str:
    """Where a database may be made: a test that takes it runs with either kind."""
    return str(tmp_path / "c.db") if request.param == "sqlite" else request.getfixturevalue("server").database()
