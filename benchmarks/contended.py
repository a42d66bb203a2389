"""Runs in which much goes on at once: whether a change of the engine has left every time and counter as it was.

    python benchmarks/contended.py write FILE   # the present engine's results, as hashes
    python benchmarks/contended.py check FILE   # the same runs again: exit code 1 and the differing ones if any is not the same

Halos, all-to-alls and exchanges with neighbours of every runtime of `bench.py`, of TCP and UDP daemons and of shared memory, long
enough that what repeats is left out (engine/mpi/recurrence.hpp). A result is the run's outcome, the times of all ranks and marks to
the picosecond, and the counters.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from retrompi.base.errors import RetrompiError
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, generate

PLACES = (
    ("winmpich", "nt-cluster"),
    ("wmpi", "nt-cluster"),
    ("hpvm", "nt-cluster"),
    ("nemesis", "abe"),
    ("craympt", "cray-t3e"),
    ("mpibip", "myrinet-piii"),
    ("lam", "nt-unix"),
    ("pvm", "nt-cluster"),
    ("mpich", "abe"),
)


def exchange(ranks: int, reps: int, size: int) -> Trace:
    """Blocking exchanges on a ring, with computation that differs between ranks."""
    lines = [["init"] for _ in range(ranks)]
    for rank, mine in enumerate(lines):
        step = [f"sendRecv {size} {(rank + 1) % ranks} {size} {(rank - 1) % ranks} 6 6", f"compute {1000 * (rank % 3)}"]
        mine += step * reps + ["finalize"]
    texts = [("".join(f"{rank} {line}\n" for line in mine).encode(), f"rank-{rank}.txt", rank) for rank, mine in enumerate(lines)]
    return Trace.parse(texts)


def runs() -> Iterator[tuple[str, Question]]:
    """Name and question of each run."""
    for model, platform in PLACES:
        for name, ranks, trace in (
            ("halo-16-100-8K", 16, generate.halo(16, 100, 8192)),
            ("halo-9-60-1K", 9, generate.halo(9, 60, 1000)),
            ("halo-12-40-70K", 12, generate.halo(12, 40, 70_000)),
            ("alltoall-16-1K", 16, generate.alltoall(16, 1024, 2)),
            ("exchange-8-50-3K", 8, exchange(8, 50, 3000)),
        ):
            yield f"{model} {name}", Question(model, f"{platform}*{ranks}", Replay(trace))
        yield f"{model} halo-16-8K on 8", Question(model, f"{platform}*8", Replay(generate.halo(16, 40, 8192)))


def result(question: Question) -> str:
    """A hash of what a run has come to."""
    try:
        r = simulate.run(question)
    except RetrompiError as error:
        return f"refused: {error}"
    counted = (r.messages, r.packets, r.frames, r.retransmissions, r.contended)
    told = (r.outcome, r.time_ps, r.marks, [str(row) for row in r.per_rank], *counted)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in ("write", "check"):
        print(__doc__)
        return 2
    path = Path(arguments[1])
    found = {name: result(question) for name, question in runs()}
    if arguments[0] == "write":
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{len(found)} runs, {sum(v.startswith('refused') for v in found.values())} refused")
        return 0
    before = json.loads(path.read_text(encoding="utf-8"))
    differing = [name for name in before if found.get(name) != before[name]]
    print("\n".join(differing) if differing else f"{len(found)} runs are as they were")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
