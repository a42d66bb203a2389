"""Recorded master/worker programs: a replay keeps who got which work, and says so; exchanges that look alike are not taken for them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from asking import ask
from cases import for_each
from conftest import Outcome, need

from retrompi import traces
from retrompi.measure import record
from retrompi.traces import master_worker

pytestmark = pytest.mark.usefixtures("here")
Run = Callable[..., Outcome]
DATA = Path(__file__).parent / "data"
WORK, STOP = 1, 2


def asked(workers: int, order: Sequence[int], style: str = "recv", stop_tag: int = STOP) -> traces.Trace:
    """A master that answers requests in the given order of ranks, then ends each worker; work has tag `WORK`."""
    master, served = ["0 init"], {r: [f"{r} init"] for r in range(1, workers + 1)}
    for at, (r, tag) in enumerate([(r, WORK) for r in order] + [(r, stop_tag) for r in range(1, workers + 1)], 1):
        if style == "probe":
            master += [f"0 probe -555 -444 from={r} mtag=0", f"0 recv {r} 0 8 6"]
        elif style == "irecv":
            master += [f"0 irecv -555 0 8 6 req={at}", f"0 waitany 1 reqs={at} done={at} from={at}:{r}"]
        else:
            master.append(f"0 recv -555 0 8 6 from={r}")
        master += ["0 compute 1000", f"0 send {r} {tag} 64 6"]
        served[r] += [f"{r} send 0 0 8 6", f"{r} recv 0 {tag} 64 6", f"{r} compute 1e6"]
    return traces.parse(["\n".join([*lines, f"{r} finalize", ""]) for r, lines in enumerate([master, *served.values()])])


@for_each("style", ["recv", "probe", "irecv"])
@for_each("order", [(1, 2, 3, 1, 1, 2, 1, 3), (1, 2, 3) * 4])
def test_a_rank_that_gives_work_to_whoever_asks_is_recognised(style: str, order: tuple[int, ...]) -> None:
    found = master_worker.find(asked(3, order, style))
    assert found is not None
    assert (found.master, found.workers, found.answers) == (0, 3, len(order) + 3)
    assert "rank-0.txt" in found.file
    told = ask("wmpi", "nt-cluster", asked(3, order, style))
    (caution,) = [c.text for c in told.cautions if c.code == "work-handed-out"]
    assert "--backend smpi" in caution
    assert "--wildcards free" in caution


def test_the_distribution_of_work_is_the_recorded_one_whatever_wildcards_match() -> None:
    """Why the caution is needed: rank 1 is twenty times slower than the others, and still does its recorded share."""
    trace = asked(3, (1, 2, 3) * 5)
    slow = {"platform.n2.flops": "1 Mflop/s"}
    for wildcards in ("recorded", "free"):
        rows = ask("wmpi", "nt-cluster", trace, sets=slow, wildcards=wildcards).per_rank
        assert [r["received"] for r in rows[1:]] == [6, 6, 6]


def exchange(ranks: int, rounds: int, order: Callable[[int], Sequence[int]]) -> traces.Trace:
    """Every rank sends to its two neighbours, then receives from any source; ``order(round)``: which neighbour's message comes first."""
    texts = []
    for me in range(ranks):
        sides = [(me - 1) % ranks, (me + 1) % ranks]
        lines = [f"{me} init"]
        for turn in range(rounds):
            lines += [f"{me} send {p} 0 8 6" for p in sides] + [f"{me} recv -555 0 8 6 from={sides[i]}" for i in order(turn)]
        texts.append("\n".join([*lines, f"{me} finalize", ""]))
    return traces.parse(texts)


def rounds_of_requests(workers: int, rounds: int) -> traces.Trace:
    """A server that answers each client once a round: the program fixes who is answered how often."""
    served = "".join(f"0 recv -555 0 8 6 from={r}\n0 send {r} 0 8 6\n" for r in range(1, workers + 1)) * rounds
    asking = [f"{r} init\n" + f"{r} send 0 0 8 6\n{r} recv 0 0 8 6\n" * rounds + f"{r} finalize\n" for r in range(1, workers + 1)]
    return traces.parse([f"0 init\n{served}0 finalize\n", *asking])


def gathered(workers: int, rounds: int) -> traces.Trace:
    """Results collected from any source in uneven order, and a go-ahead to all when they are complete."""
    order = [*range(workers, 0, -1)]
    collect = [f"0 recv -555 0 8 6 from={r}" for r in order] + [f"0 send {r} 0 8 6" for r in order]
    texts = ["\n".join(["0 init", *collect * rounds, "0 finalize", ""])]
    return traces.parse(texts + [
        "\n".join([f"{r} init", *[f"{r} send 0 0 8 6", f"{r} recv 0 0 8 6"] * rounds, f"{r} finalize", ""]) for r in range(1, workers + 1)
    ])


@for_each(
    "trace",
    [
        exchange(4, 6, lambda turn: (0, 1)), exchange(5, 7, lambda turn: (turn % 2, 1 - turn % 2)), rounds_of_requests(3, 5),
        gathered(3, 5), gathered(2, 6),
    ],
)
def test_an_exchange_with_wildcards_is_no_master_worker(trace: traces.Trace) -> None:
    assert master_worker.note(trace) == ""


def test_none_of_the_traces_is_taken_for_one() -> None:
    files = [*(DATA / "traces").glob("*.tar.zst"), *(DATA.parents[1] / "examples" / "traces").glob("*.tar.zst")]
    told = {f"{file.name}:{name}": master_worker.note(trace) for file in files for name, trace in traces.read_folders(file)}
    assert told
    assert not [name for name, text in told.items() if text]


# Work ends when every worker has had two pieces, so that the requests of the workers alternate however late one of them starts.
MASTER_WORKER = r"""
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int me, n, work = 0, result = 0, pieces[8] = {0}, waiting, busy;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  waiting = busy = n - 1;
  if (me == 0)
    while (busy > 0) {
      MPI_Status s;
      MPI_Recv(&result, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &s);
      if (waiting > 0) {
        MPI_Send(&work, 1, MPI_INT, s.MPI_SOURCE, 1, MPI_COMM_WORLD);
        waiting -= ++pieces[s.MPI_SOURCE] == 2;
      } else { MPI_Send(&work, 0, MPI_INT, s.MPI_SOURCE, 2, MPI_COMM_WORLD); busy--; }
    }
  else
    for (;;) {
      MPI_Status s;
      MPI_Send(&result, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
      MPI_Recv(&work, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
      if (s.MPI_TAG == 2) break;
      usleep(200);
    }
  MPI_Finalize();
  return 0;
}
"""


def test_recording_a_master_worker_program_says_so_and_recording_others_does_not(tmp_path: Path) -> None:
    need("mpiexec.mpich", "mpicc.mpich")
    (tmp_path / "mw.c").write_text(MASTER_WORKER)
    for source, expected in ((tmp_path / "mw.c", True), (DATA / "programs" / "wildcard.c", False)):
        program = tmp_path / source.stem
        subprocess.run(["mpicc.mpich", "-w", "-O1", "-o", str(program), str(source)], check=True, capture_output=True)
        done = record.record(["mpiexec.mpich", "-n", "4", str(program)], tmp_path / f"{source.stem}-trace")
        assert [("gives work" in note) for note in done.notes].count(True) == expected
