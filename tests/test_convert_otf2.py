"""OTF2 in: archives written with the otf2 library, as Score-P writes them, read as traces."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from conftest import Outcome
from refusals import refused

from retrompi import convert
from retrompi.base.errors import UsageError
from retrompi.traces import TraceError

pytest.importorskip("otf2", reason="the otf2 library reads and writes OTF2 (retrompi[otf2])")
from otf2_writer import NOBODY, OPS, Writer

Run = Callable[..., Outcome]


def load(w: Writer, **options: Any) -> convert.Converted:
    return convert.load(w.close(), options=convert.FormatOptions(**options))


def lines(made: convert.Converted, rank: int = 0) -> list[str]:
    """The rank's lines without its number, init, finalize and computation."""
    found = [line.split(" ", 1)[1] for line in made.trace.to_ti(rank).splitlines()]
    return [line for line in found if line.split()[0] not in ("init", "finalize", "compute")]


def test_messages_and_computation(tmp_path: Path) -> None:
    w = Writer(tmp_path, 2).everywhere("MPI_Init").everywhere("MPI_Comm_rank")
    w.call(0, "MPI_Send", w.send(1, 3, 100)).call(0, "MPI_Ssend", w.send(1, 4, 5)).call(0, "MPI_Sendrecv", w.send(1, 1, 8), w.recv(1, 2, 9))
    w.call(1, "MPI_Recv", w.recv(0, 3, 100)).call(1, "MPI_Recv", w.recv(0, 4, 5)).call(1, "MPI_Sendrecv", w.send(0, 2, 9), w.recv(0, 1, 8))
    w.everywhere("MPI_Finalize")
    made = load(w, rate=2e9)
    assert lines(made, 0) == ["send 1 3 100 6", "Ssend 1 4 5 6", "sendRecv 8 1 9 1 6 6 stag=1 rtag=2"]
    assert lines(made, 1) == ["recv 0 3 100 6", "recv 0 4 5 6", "sendRecv 9 0 8 0 6 6 stag=2 rtag=1"]
    # 1 us before each call but the first, at 2 flop/ns; what lies on both sides of a call without effect is one piece.
    assert [a[7] for a in made.trace.rank_actions(0) if a[1] == "compute"] == [4000.0, 2000.0, 2000.0, 2000.0]
    assert (made.losses.total, made.losses.without_effect) == (0, {"MPI_Comm_rank": 2})


def test_requests(tmp_path: Path) -> None:
    w = Writer(tmp_path, 2).everywhere("MPI_Init")
    w.call(0, "MPI_Irecv", w.irecv(70)).call(0, "MPI_Isend", w.isend(1, 1, 64, 71)).call(0, "MPI_Issend", w.isend(1, 2, 65, 72))
    w.call(0, "MPI_Test", w.tested(70)).call(0, "MPI_Waitall", w.sent(71), w.sent(72)).call(0, "MPI_Wait", w.received(1, 5, 10, 70))
    w.call(1, "MPI_Send", w.send(0, 5, 10)).call(1, "MPI_Irecv", w.irecv(1)).call(1, "MPI_Irecv", w.irecv(2))
    w.call(1, "MPI_Waitany", w.received(0, 2, 65, 2)).call(1, "MPI_Test", w.received(0, 1, 64, 1))
    made = load(w)
    assert lines(made, 0) == [
        "irecv 1 5 10 6 req=1", "isend 1 1 64 6 req=2", "ISsend 1 2 65 6 req=3", "test 1 0 5 req=1 flag=0",
        "waitall 2 reqs=2,3", "wait 1 0 5 req=1",
    ]
    assert lines(made, 1)[1:] == ["irecv 0 1 64 6 req=1", "irecv 0 2 65 6 req=2", "wait 0 1 2 req=2", "test 0 1 1 req=1 flag=1"]
    assert made.trace.to_ti(0).splitlines()[-1] == "0 finalize"  # the archive ends before MPI_Finalize


def test_a_request_is_open_at_the_end_and_one_never_completes(tmp_path: Path) -> None:
    w = Writer(tmp_path, 2)
    w.call(0, "MPI_Isend", w.isend(1, 1, 64, 71)).call(1, "MPI_Irecv", w.irecv(1)).call(1, "MPI_Recv", w.recv(0, 1, 64))
    made = load(w)
    assert lines(made, 0) == ["isend 1 1 64 6 req=1", "waitall 1 reqs=1"]
    assert [(x.call, x.effect, x.count) for x in made.losses] == [("MPI_Irecv", "lost", 1), ("requests", "approximated", 1)]


SINGLE = {0: (100, 100), 1: (0, 100), 2: (0, 100)}  # what Score-P and others write of a broadcast differs at the root
TIMES_N = {0: (300, 100), 1: (0, 100), 2: (0, 100)}
CASES: list[tuple[str, str, int, dict[int, tuple[int, int]], list[str]]] = [
    ("MPI_Barrier", "BARRIER", NOBODY, {0: (0, 0), 1: (0, 0), 2: (0, 0)}, ["barrier"] * 3),
    ("MPI_Bcast", "BCAST", 0, SINGLE, ["bcast 100 0 6"] * 3),
    ("MPI_Bcast", "BCAST", 0, TIMES_N, ["bcast 100 0 6"] * 3),
    ("MPI_Reduce", "REDUCE", 2, {0: (40, 0), 1: (40, 0), 2: (40, 120)}, ["reduce 40 0 2 6"] * 3),
    ("MPI_Allreduce", "ALLREDUCE", NOBODY, dict.fromkeys(range(3), (16, 16)), ["allreduce 16 0 6"] * 3),
    ("MPI_Gather", "GATHER", 1, {0: (8, 0), 1: (8, 24), 2: (8, 0)}, ["gather 8 8 1 6 6"] * 3),
    ("MPI_Gatherv", "GATHERV", 1, {0: (8, 0), 1: (4, 14), 2: (2, 0)},
     ["gatherv 8 0 0 0 1 6 6", "gatherv 4 8 4 2 1 6 6", "gatherv 2 0 0 0 1 6 6"]),
    ("MPI_Scatter", "SCATTER", 0, {0: (30, 10), 1: (0, 10), 2: (0, 10)}, ["scatter 10 10 0 6 6"] * 3),
    ("MPI_Scatterv", "SCATTERV", 0, {0: (60, 10), 1: (0, 20), 2: (0, 30)},
     ["scatterv 10 20 30 10 0 6 6", "scatterv 0 0 0 20 0 6 6", "scatterv 0 0 0 30 0 6 6"]),
    ("MPI_Allgather", "ALLGATHER", NOBODY, dict.fromkeys(range(3), (5, 15)), ["allgather 5 5 6 6"] * 3),
    ("MPI_Allgather", "ALLGATHER", NOBODY, dict.fromkeys(range(3), (15, 15)), ["allgather 5 5 6 6"] * 3),
    ("MPI_Allgatherv", "ALLGATHERV", NOBODY, {0: (1, 6), 1: (2, 6), 2: (3, 6)},
     ["allgatherv 1 1 2 3 6 6", "allgatherv 2 1 2 3 6 6", "allgatherv 3 1 2 3 6 6"]),
    ("MPI_Allgatherv", "ALLGATHERV", NOBODY, {0: (3, 6), 1: (6, 6), 2: (9, 6)},
     ["allgatherv 1 1 2 3 6 6", "allgatherv 2 1 2 3 6 6", "allgatherv 3 1 2 3 6 6"]),
    ("MPI_Alltoall", "ALLTOALL", NOBODY, dict.fromkeys(range(3), (12, 12)), ["alltoall 4 4 6 6"] * 3),
    ("MPI_Reduce_scatter", "REDUCE_SCATTER", NOBODY, {0: (6, 1), 1: (6, 2), 2: (6, 3)}, ["reducescatter 1 2 3 0 6"] * 3),
    ("MPI_Reduce_scatter_block", "REDUCE_SCATTER_BLOCK", NOBODY, dict.fromkeys(range(3), (6, 2)), ["reducescatterblock 2 0 6"] * 3),
    ("MPI_Scan", "SCAN", NOBODY, dict.fromkeys(range(3), (7, 7)), ["scan 7 0 6"] * 3),
    ("MPI_Scan", "SCAN", NOBODY, {0: (21, 7), 1: (14, 14), 2: (7, 21)}, ["scan 7 0 6"] * 3),
    ("MPI_Exscan", "EXSCAN", NOBODY, {0: (14, 0), 1: (7, 7), 2: (0, 14)}, ["exscan 7 0 6"] * 3),
]


@for_each("name, op, root, sizes, wanted", CASES)
def test_collectives_by_the_sizes_of_all_members(
    tmp_path: Path, name: str, op: str, root: int, sizes: dict[int, tuple[int, int]], wanted: list[str]
) -> None:
    w = Writer(tmp_path, 3).everywhere("MPI_Init")
    for rank, (sent, received) in sizes.items():
        w.call(rank, name, w.coll(getattr(OPS, op), sent, received, root))
    made = load(w.everywhere("MPI_Finalize"))
    assert [lines(made, r) for r in range(3)] == [[line] for line in wanted]
    assert made.losses.total == 0


def test_counts_a_peer_are_lost_and_spread_only_when_asked(tmp_path: Path) -> None:
    def archive(folder: Path) -> Writer:
        w = Writer(folder, 2).everywhere("MPI_Init")
        w.call(0, "MPI_Alltoallv", w.coll(OPS.ALLTOALLV, 300, 200)).call(1, "MPI_Alltoallv", w.coll(OPS.ALLTOALLV, 100, 200))
        return w.everywhere("MPI_Barrier", w.coll(OPS.BARRIER, 0, 0)).everywhere("MPI_Finalize")

    made = load(archive(tmp_path / "a"))
    assert lines(made, 0) == lines(made, 1) == ["barrier"]
    assert [(x.call, x.effect, x.count) for x in made.losses] == [("MPI_Alltoallv", "lost", 2)]
    made = load(archive(tmp_path / "b"), approximate=True)
    assert lines(made, 0)[0] == "alltoallv 300 150 150 200 150 50 6 6"
    assert lines(made, 1)[0] == "alltoallv 100 50 50 200 150 50 6 6"
    assert [(x.call, x.effect, x.count) for x in made.losses] == [("MPI_Alltoallv", "approximated", 2)]


def test_communicators_made_at_their_place(tmp_path: Path) -> None:
    w = Writer(tmp_path, 4, {"even": [0, 2], "odd": [3, 1], "copy": [0, 1, 2, 3], "pair": [0, 2]}).everywhere("MPI_Init")
    for rank in range(4):
        made = "odd" if rank % 2 else "even"
        w.call(rank, "MPI_Comm_split", w.coll(OPS.CREATE_HANDLE, 0, 0), w.make(made))
        w.call(rank, "MPI_Comm_dup", w.coll(OPS.CREATE_HANDLE, 0, 0), w.make("copy"))
        w.call(rank, "MPI_Comm_create", w.coll(OPS.CREATE_HANDLE, 0, 0), *([] if rank % 2 else [w.make("pair")]))
        w.call(rank, "MPI_Bcast", w.coll(OPS.BCAST, 0, 8, 1, made))
        w.call(rank, "MPI_Send" if rank < 2 else "MPI_Recv", w.send(1 - rank % 2, 0, 4, made) if rank < 2 else w.recv(rank % 2, 0, 4, made))
        w.call(rank, "MPI_Comm_free", w.free(made))
        w.call(rank, "MPI_Barrier", w.coll(OPS.BARRIER, 0, 0, comm="self"))
    told = load(w.everywhere("MPI_Finalize"))
    assert lines(told, 0) == [
        "comm_split 1 0,2", "comm_dup 3 0-3", "comm_split 4 0,2", "bcast 8 1 6 comm=1", "send 2 0 4 6 comm=1", "comm_free comm=1",
    ]
    assert lines(told, 1) == [
        "comm_split 2 3,1",
        "comm_dup 3 0-3",
        "comm_split -1",
        "bcast 8 1 6 comm=2",
        "send 3 0 4 6 comm=2",
        "comm_free comm=2",
    ]
    assert told.losses.total == 0


def test_communicators_whose_making_is_not_recorded_are_made_at_the_start(tmp_path: Path) -> None:
    w = Writer(tmp_path, 3, {"two": [2, 0]}).everywhere("MPI_Init").everywhere("MPI_Comm_split", lambda *_: None)
    for rank in (0, 2):
        w.call(rank, "MPI_Allreduce", w.coll(OPS.ALLREDUCE, 8, 8, comm="two"))
    made = load(w.everywhere("MPI_Finalize"))
    assert [lines(made, r) for r in range(3)] == [
        ["comm_create_group 1 2,0", "allreduce 8 0 6 comm=1"],
        [],
        ["comm_create_group 1 2,0", "allreduce 8 0 6 comm=1"],
    ]
    assert [(x.call, x.effect, x.count) for x in made.losses] == [("communicator", "approximated", 2)]


def test_non_blocking_collectives(tmp_path: Path) -> None:
    w = Writer(tmp_path, 2).everywhere("MPI_Init")
    w.everywhere("MPI_Iallreduce", w.icoll(5)).everywhere("MPI_Wait", w.icoll_done(OPS.ALLREDUCE, 8, 8, 5)).everywhere("MPI_Finalize")
    assert lines(load(w)) == ["iallreduce 8 0 6 req=1", "wait req=1"]


def test_windows(tmp_path: Path) -> None:
    import otf2

    w = Writer(tmp_path, 2, windows=["world"]).everywhere("MPI_Init")
    win = w.windows[0]
    w.everywhere("MPI_Win_create", lambda e, t: e.rma_win_create(t, win))
    fence = (
        lambda e, t: e.rma_collective_begin(t),
        lambda e, t: e.rma_collective_end(t, OPS.BARRIER, otf2.RmaSyncLevel.MEMORY, win, NOBODY, 0, 0),
    )
    w.everywhere("MPI_Win_fence", *fence)
    w.call(0, "MPI_Put", lambda e, t: e.rma_put(t, win, 1, 100, 1)).everywhere("MPI_Win_fence", *fence)
    w.call(1, "MPI_Win_lock", lambda e, t: e.rma_request_lock(t, win, 0, 0, otf2.LockType.EXCLUSIVE))
    w.call(1, "MPI_Get", lambda e, t: e.rma_get(t, win, 0, 50, 2)).call(1, "MPI_Win_unlock", lambda e, t: e.rma_release_lock(t, win, 0, 0))
    w.everywhere("MPI_Win_free", lambda e, t: e.rma_win_destroy(t, win)).everywhere("MPI_Finalize")
    made = load(w)
    assert lines(made, 0) == ["win_create 1 0", "Win_fence win=1", "Put 1 0 100 6 win=1", "Win_fence win=1", "win_free 1"]
    assert lines(made, 1)[3:] == ["Win_lock 0 1 win=1", "Get 0 0 50 6 win=1", "Win_unlock 0 win=1", "win_free 1"]


def test_calls_without_records_are_told_from_calls_without_effect(tmp_path: Path, retrompi: Run) -> None:
    w = Writer(tmp_path / "in", 2).everywhere("MPI_Init").everywhere("MPI_Probe").everywhere("MPI_File_open").everywhere("MPI_Type_commit")
    w.everywhere("MPI_Finalize").close()
    told = retrompi("trace", "convert", str(tmp_path / "in"), str(tmp_path / "out"), "--json", "--strict")
    assert told.code == 1
    report = json.loads(told.out)
    assert [(x["call"], x["count"], x["places"][0]) for x in report["losses"]] == [
        ("MPI_File_open", 2, "rank 0, MPI call 3"),
        ("MPI_Probe", 2, "rank 0, MPI call 2"),
    ]
    assert report["without_effect"] == {"MPI_Type_commit": 2}


# -- what cannot be read


def test_the_missing_library_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retrompi: Run) -> None:
    anchor = Writer(tmp_path, 1).everywhere("MPI_Init").close()
    real = importlib.import_module

    def none(name: str, package: str | None = None) -> Any:
        if name.split(".")[0] == "otf2":
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", none)
    with refused(UsageError, "missing-tool | 'retrompi[otf2]'"):
        convert.load(anchor)


def test_damaged_archives_end_in_one_line(tmp_path: Path, retrompi: Run) -> None:
    w = Writer(tmp_path, 2).everywhere("MPI_Init").everywhere("MPI_Barrier", lambda *_: None).everywhere("MPI_Finalize")
    anchor = w.close()
    (tmp_path / "traces" / "0.evt").unlink()
    whole = anchor.read_bytes()
    for what in ("no events", "cut", "empty"):
        if what == "cut":
            anchor.write_bytes(whole[:40])
        elif what == "empty":
            anchor.write_bytes(b"")
        told = retrompi("trace", "convert", str(anchor), str(tmp_path / "out"))
        assert told.code == 2
        assert told.err.startswith(f"error: {anchor}: ")
        assert told.err.count("\n") == 1
    anchor.unlink()
    assert "no such OTF2 anchor file" in retrompi("trace", "convert", "--from", "otf2", str(anchor), str(tmp_path / "out")).err


def test_members_of_one_collective_that_call_different_ones(tmp_path: Path) -> None:
    w = Writer(tmp_path, 2).everywhere("MPI_Init")
    w.call(0, "MPI_Barrier", w.coll(OPS.BARRIER, 0, 0)).call(1, "MPI_Bcast", w.coll(OPS.BCAST, 0, 8, 0))
    with refused(TraceError, "bad-trace | MPI | BARRIER | BCAST"):
        load(w)


def test_a_peer_or_root_out_of_range(tmp_path: Path) -> None:
    w = Writer(tmp_path / "a", 2)
    with refused(TraceError, "unknown-rank | MPI"):
        load(w.call(0, "MPI_Send", w.send(7, 0, 8)))
    w = Writer(tmp_path / "b", 1)
    with refused(TraceError, "unknown-rank"):
        load(w.call(0, "MPI_Bcast", w.coll(OPS.BCAST, 8, 8, 4)))
