"""Studies that tests run as a user would, in processes of their own, and what must be true of a store afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from retrompi.base.errors import RetrompiError
from retrompi.store import Store, open_store
from retrompi.store.schema import ANATOMY, POINT, RANK_TIME, RUN, STUDY_POINT
from retrompi.studies.execute.design import Study, from_command
from retrompi.studies.read.results import rows

__all__ = ["Sweep", "check_store", "children", "descendants", "done", "ended", "lives", "small", "sweep", "told", "until"]

VARY = ("model=wmpi,winmpich", "wmpi.header=16B..120B:+8B", "platform.link.bandwidth=10Mbps,100Mbps")
QUICK = ("trace.sizes=0,1KiB..64KiB", "trace.reps=20")
POINTS = 30
"""14 packets and the one point of the other model, at two bandwidths; some 20 ms each."""


def small(name: str = "small") -> Study:
    """The study that is interrupted in the tests, as of the command line."""
    return from_command("bf-wmpi-distributed", VARY, [], list(QUICK)).with_name(name)


def words(store: str | Path, *more: str, name: str = "small") -> list[str]:
    """The command that runs it."""
    axes = [word for axis in VARY for word in ("--vary", axis)] + [word for one in QUICK for word in ("--set", one)]
    return [sys.executable, "-m", "retrompi.cli.main", "sweep", "bf-wmpi-distributed", *axes, "--name", name, "--store", str(store), *more]


class Sweep:
    """A running `retrompi sweep`; a context manager that leaves nothing behind."""

    def __init__(self, store: str | Path, *more: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            words(store, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
            process_group=0,
        )

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *_error: object) -> None:
        for pid in [*descendants(self.process.pid), self.process.pid]:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()

    def end(self, seconds: float = 300) -> tuple[int, str, str]:
        """Wait for it: (exit code, stdout, stderr)."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err


def sweep(store: str | Path, *more: str, **environment: str) -> tuple[int, str, str]:
    """Run it to its end: (exit code, stdout, stderr)."""
    with Sweep(store, *more, **environment) as running:
        return running.end()


def until(what: Callable[[], Any], seconds: float = 300) -> Any:
    """Wait for something to become true; what it was."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, what
        time.sleep(0.005)
    return found


def done(store: str | Path) -> int:
    """Points that have a row; 0 while there is no store."""
    try:
        kept = open_store(store, write=False)
        with kept._connect() as connection:
            return int(connection.scalar(sa.select(sa.func.count()).select_from(STUDY_POINT)) or 0)
    except RetrompiError:
        return 0


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """The processes that ``pid`` has begun."""
    try:
        return [int(p) for task in Path(f"/proc/{pid}/task").iterdir() for p in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid: int) -> list[int]:
    """They, and theirs."""
    return [p for child in children(pid) for p in (child, *descendants(child))]


def ended(pids: list[int]) -> None:
    """Wait until none of them runs."""
    until(lambda: not [p for p in pids if lives(p)], 20)


def told(store: Store, study_id: int) -> list[dict[str, Any]]:
    """A study's rows with all that hangs on their runs: what must not depend on who ran it, when and how often; no ids, no wall times."""
    out = []
    for row in rows(store, study_id):
        run_id = row.pop("run_id")
        row.pop("wall_s")
        if run_id is not None:
            run = store.run(run_id)
            row |= {k: run[k] for k in ("identity", "model", "mode", "parameters", "outcome", "detail", "time_s", "messages", "facts")}
            row |= {"points": store.points(run_id), "per_rank": store.ranks(run_id)}
        out.append(row)
    return out


def check_store(store: Store, study: Study, points: int = POINTS) -> list[dict[str, Any]]:
    """Every position once, every identity one run, every run a point's, nothing of a run that is not there. Returns `told`."""
    study_id = store.find_study(study.hash)
    assert study_id is not None
    found = told(store, study_id)
    assert [row["position"] for row in found] == list(range(points))
    assert {row["outcome"] for row in found} == {"completed"}
    with store._connect() as connection:
        runs = connection.execute(sa.select(RUN.c.id, RUN.c.identity)).all()
        used = connection.execute(sa.select(STUDY_POINT.c.run_id)).scalars().all()
        assert len({identity for _, identity in runs}) == len(runs)
        assert {run_id for run_id, _ in runs} == set(used)
        for table in (POINT, RANK_TIME, ANATOMY):
            hung = set(connection.execute(sa.select(table.c.run_id).distinct()).scalars())
            assert hung <= set(used), table
    return found
