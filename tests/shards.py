"""Killing the shards of a study: ``python tests/shards.py [KILLS]``; `test_shards.py` does it with a few."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from study_runs import POINTS, check_store, descendants, done, ended, lives, small, until, words

from retrompi.store import open_store
from retrompi.studies.archive.merge import merge
from retrompi.studies.execute.run import run_study
from retrompi.studies.execute.worker_pool import WorkerPool

SHARDS = 3


def undisturbed(folder: Path) -> list[dict[str, Any]]:
    """The rows of the study when nothing happens to it, not sharded."""
    store = open_store(folder / "undisturbed.db")
    run_study(store, small(), executor=WorkerPool(2))
    return check_store(store, small())


def killed(folder: Path, kills: int, seed: int = 1999) -> dict[str, int]:
    """Runs all shards at the same time and kills main processes and workers; a killed shard is begun again by the same command.

    Returns how many of each were killed. The shards' stores are ``shard-I.db``.
    """
    draw = random.Random(seed)
    count = {"main": 0, "worker": 0}
    stores = {i: folder / f"shard-{i}.db" for i in range(1, SHARDS + 1)}
    running = {i: _begun(i, stores[i]) for i in stores}
    try:
        while running:
            for i, process in list(running.items()):
                if process.poll() == 0:
                    del running[i]
                elif process.poll() is not None:
                    assert process.returncode == -signal.SIGKILL, process.returncode
                    running[i] = _begun(i, stores[i])
            if not running or sum(count.values()) >= kills:
                time.sleep(0.02)
                continue
            i, process = draw.choice(sorted(running.items()))
            wanted = done(stores[i]) + draw.choice((0, 1, 2))
            until(lambda p=process, s=stores[i], w=wanted: p.poll() is not None or done(s) >= w, 300)  # type: ignore[misc]
            time.sleep(draw.uniform(0, 0.05))
            left = [p for p in descendants(process.pid) if lives(p)]
            who = draw.choice(("main", "worker"))
            if process.poll() is not None or (who == "worker" and not left):
                continue
            count[who] += 1
            os.kill(process.pid if who == "main" else draw.choice(left), signal.SIGKILL)
            if who == "main":
                process.wait()
                ended(left)
    finally:
        for process in running.values():
            for pid in [*descendants(process.pid), process.pid]:
                if lives(pid):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
    return count


def _begun(shard: int, store: Path) -> subprocess.Popen[bytes]:
    command = words(store, "--jobs", "1", "--shard", f"{shard}/{SHARDS}")
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0)


def merged(folder: Path) -> list[dict[str, Any]]:
    """The rows of the shards' stores, merged into a new one; merging again must change nothing."""
    store = open_store(folder / "merged.db")
    files = sorted(folder.glob("shard-*.db"))
    (first,), new, known = merge(store, files)
    assert (first.stored, first.missing, new, known) == (POINTS, 0, POINTS, 0)
    (again,), new, known = merge(store, files)
    assert (again.added, new, known) == (0, 0, POINTS)
    return check_store(store, small())


def rounds(folder: Path, kills: int, most: int = 40) -> tuple[dict[str, int], int]:
    """Kills, merges and compares until there were so many: how many of each were killed, and in how many rounds.

    One round is too fast for that on some machines: a shard is mostly done when its turn to be killed comes.
    """
    rows = undisturbed(folder)
    total = {"main": 0, "worker": 0}
    for n in range(1, most + 1):
        place = folder / str(n)
        place.mkdir()
        for who, hit in killed(place, kills - sum(total.values()), seed=1998 + n).items():
            total[who] += hit
        assert merged(place) == rows
        if sum(total.values()) >= kills:
            return total, n
    raise AssertionError(f"only {total} of {kills} were hit in {most} rounds")


def main(kills: int) -> None:
    """Does it and says so."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        total, n = rounds(Path(place), kills)
    print(f"{total['main']} main processes and {total['worker']} workers of {SHARDS} shards killed in {n} rounds, "
          f"{time.monotonic() - began:.0f} s: the merged rows are those of the undisturbed study")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
