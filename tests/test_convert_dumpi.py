"""DUMPI in: files written from the format's description (`dumpi_writer`) read as traces, with what is lost, and corrupt ones refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import for_each
from conftest import Outcome
from dumpi_writer import BYTE, DOUBLE, INT, SELF, SUM, WORLD, Rank, array, b, h, i, write
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi import convert
from retrompi.traces import TraceError

Run = Callable[..., Outcome]
Build = Callable[[Rank, int], object]


def job(folder: Path, ranks: int, build: Build, **options: object) -> convert.Converted:
    made = []
    for number in range(ranks):
        rank = Rank(**options).init()  # type: ignore[arg-type]
        build(rank, number)
        made.append(rank.finalize())
    return convert.load(write(folder, made))


def lines(made: convert.Converted, rank: int = 0) -> list[str]:
    """The rank's lines without its number, init, finalize and computation."""
    found = [line.split(" ", 1)[1] for line in made.trace.to_ti(rank).splitlines()]
    return [line for line in found if line.split()[0] not in ("init", "finalize", "compute")]


def test_messages_requests_and_collectives(tmp_path: Path) -> None:
    def build(r: Rank, me: int) -> None:
        r.call("Comm_rank", h(WORLD) + i(me))
        if me == 0:
            r.send("Send", 10, INT, 1, 7)
            r.send("Isend", 3, DOUBLE, 1, 8, request=5).wait(5)
        else:
            r.recv(16, INT, 0, 7, [(40, 0, 7)])
            r.send("Irecv", 3, DOUBLE, 0, 8, request=9).waitall([9, 1], (24, 0, 8), (0, -1, -1))
        r.call("Bcast", i(2) + h(DOUBLE) + i(1) + h(WORLD))
        r.call("Allreduce", i(4) + h(INT) + b(SUM) + h(WORLD))

    made = job(tmp_path, 2, build)
    assert lines(made, 0) == ["send 1 7 40 6", "isend 1 8 24 6 req=1", "wait 0 1 8 req=1", "bcast 16 1 6", "allreduce 16 0 6"]
    assert lines(made, 1) == ["recv 0 7 64 6", "irecv 0 8 24 6 req=1", "waitall 1 reqs=1", "bcast 16 1 6", "allreduce 16 0 6"]
    assert (made.losses.total, made.losses.without_effect) == (0, {"MPI_Comm_rank": 2})
    assert made.trace.unsupported() == []


@pytest.mark.parametrize(("clock", "each"), [(None, 1000), ("cpu", 1000), ("wall", 3000)])
def test_computation_is_the_time_between_calls_by_the_chosen_clock(tmp_path: Path, clock: convert.Clock | None, each: int) -> None:
    meta = write(tmp_path, [Rank().init().call("Comm_rank", h(WORLD) + i(0)).call("Barrier", h(WORLD)).finalize()])
    trace = convert.load(meta, options=convert.FormatOptions(clock=clock, rate=2e9)).trace
    # Two pieces before the barrier, one behind it: what a call without effect takes is neither computation nor communication.
    assert trace.to_ti(0).splitlines() == ["0 init", f"0 compute {2 * 2 * each}", "0 barrier", f"0 compute {2 * each}", "0 finalize"]


def test_without_the_cpu_clock_the_wall_clock_counts_and_without_any_that_is_a_loss(tmp_path: Path) -> None:
    meta = write(tmp_path, [Rank(clocks="wall").init().call("Barrier", h(WORLD)).finalize()])
    assert convert.load(meta).trace.info()["compute_flops"] == 2 * 3000
    (tmp_path / "none").mkdir()
    meta = write(tmp_path / "none", [Rank(clocks="none").init().call("Barrier", h(WORLD)).finalize()])
    made = convert.load(meta)
    assert made.trace.info()["compute_flops"] == 0
    assert [(x.call, x.count) for x in made.losses] == [("computation", 3)]


def test_short_pieces_of_computation_are_dropped_when_asked(tmp_path: Path) -> None:
    meta = write(tmp_path, [Rank().init().call("Barrier", h(WORLD), gap=100).call("Barrier", h(WORLD), gap=5000).finalize()])
    trace = convert.load(meta, options=convert.FormatOptions(shortest=1e-6)).trace
    assert [a[7] for a in trace.rank_actions(0) if a[1] == "compute"] == [5000.0, 1000.0]


def test_wildcards_keep_the_source_that_matched(tmp_path: Path) -> None:
    def build(r: Rank, me: int) -> None:
        if me:
            r.send("Send", 4, BYTE, 0, me).send("Send", 4, BYTE, 0, 10)
        else:
            r.recv(8, BYTE, -1, -1, [(4, 2, 2)]).recv(8, BYTE, -1, 10, [(4, 2, 10)])
            r.send("Irecv", 8, BYTE, -1, -1, request=3).send("Irecv", 8, BYTE, -1, 10, request=4)
            r.call("Waitany", i(2) + array([3, 4]) + i(1) + r.status((4, 1, 10)))
            r.call("Waitsome", i(2) + array([3, 1]) + i(1) + array([0]) + r.status((4, 1, 1)))

    made = job(tmp_path, 3, build)
    assert lines(made) == [
        "recv -555 -444 8 6 from=2 mtag=2",
        "recv -555 10 8 6 from=2 mtag=10",
        "irecv -555 -444 8 6 req=1 from=1 mtag=1",
        "irecv -555 10 8 6 req=2 from=1 mtag=10",
        "waitAny 2 reqs=1,2 done=2",
        "waitsome 1 reqs=1 done=1",
    ]
    assert made.losses.total == 0


def test_without_statuses_what_a_wildcard_matched_is_a_loss(tmp_path: Path) -> None:
    made = job(tmp_path, 2, lambda r, me: r.send("Send", 4, BYTE, 0, 1) if me else r.recv(8, BYTE, -1, 1), statuses=False)
    assert lines(made) == ["recv -555 1 8 6"]
    (loss,) = made.losses
    assert (loss.call, loss.effect, loss.count, loss.places) == ("MPI_Recv", "approximated", 1, ["job-0000.bin, byte 66"])


def test_nobody_is_told_from_anybody_by_the_status(tmp_path: Path) -> None:
    made = job(tmp_path, 1, lambda r, me: r.send("Send", 1, INT, -1, 0).recv(1, INT, -1, 0, [(0, -1, -1)]).recv(1, INT, -2, 0))
    assert lines(made) == ["send -666 0 4 6", "recv -666 0 4 6", "recv -666 0 4 6"]


def test_persistent_requests_tests_and_probes(tmp_path: Path) -> None:
    def build(r: Rank, me: int) -> None:
        if me == 0:
            r.send("Send_init", 2, INT, 1, 4, request=6)
            for _ in range(2):
                r.call("Start", i(6)).wait(6)
            r.call("Request_free", i(6))
        else:
            r.call("Iprobe", i(0, 4) + h(WORLD) + i(1) + r.status((8, 0, 4)))
            r.send("Recv_init", 2, INT, 0, 4, request=2)
            for flag in (0, 1):
                r.call("Startall", i(1) + array([2])) if flag == 0 else None
                r.call("Test", i(2) + i(flag) + r.status((8, 0, 4)))
            r.call("Start", i(2)).call("Testany", i(1) + array([2]) + i(0) + i(1) + r.status((8, 0, 4)))

    made = job(tmp_path, 2, build)
    start = ["start 0 1 4 req=1", "wait 0 1 4 req=1"]
    assert lines(made, 0) == ["sendInit 1 4 8 6 req=1", *start, *start, "requestFree 0 1 4 req=1"]
    assert lines(made, 1) == [
        "iprobe 0 4 flag=1",
        "recvInit 0 4 8 6 req=1",
        "startall 1 reqs=1",
        "test 0 1 4 req=1 flag=0",
        "test 0 1 4 req=1 flag=1",
        "start 0 1 4 req=1",
        "testany 1 reqs=1 done=1",
    ]
    assert made.losses.total == 0


def test_vector_collectives_and_derived_types(tmp_path: Path) -> None:
    def build(r: Rank, me: int) -> None:
        r.call("Type_vector", i(3, 2, 10) + h(INT) + h(40)).call("Type_commit", h(40))
        r.send("Send" if me == 0 else "Recv", 2, 40, 1 - me, 1) if me == 0 else r.recv(2, 40, 0, 1)
        root = array([1, 2]) + array([0, 1]) if me == 1 else b""
        r.call("Gatherv", i(me, 2, me + 1) + h(INT) + i(1) + h(WORLD) + root + h(INT))
        root = array([1, 3]) + array([0, 1]) if me == 0 else b""
        r.call("Scatterv", i(me, 2) + h(INT) + i(1 + 2 * me) + h(INT) + i(0) + h(WORLD) + root)
        r.call("Gather", i(me, 5) + h(BYTE) + i(0) + h(WORLD) + (i(5) + h(BYTE) if me == 0 else b""))
        r.call("Allgatherv", i(2, me + 1) + h(BYTE) + array([1, 2]) + array([0, 1]) + h(BYTE) + h(WORLD))
        counts = array([1, 2]) if me == 0 else array([3, 4])
        back = array([1, 3]) if me == 0 else array([2, 4])
        r.call("Alltoallv", i(2) + counts + array([0, 0]) + h(INT) + back + array([0, 0]) + h(INT) + h(WORLD))

    made = job(tmp_path, 2, build)
    assert lines(made, 0)[1:] == [
        "gatherv 4 0 0 1 6 6", "scatterv 4 12 4 0 6 6", "gather 5 5 0 6 6", "allgatherv 1 1 2 6 6", "alltoallv 12 4 8 16 4 12 6 6",
    ]
    assert lines(made, 0)[0] == f"send 1 1 {2 * 3 * 2 * 4} 6"
    assert lines(made, 1)[1] == "gatherv 8 4 8 1 6 6"
    assert made.losses.total == 0


def test_sizes_of_types_come_from_the_files_table_where_no_call_makes_them(tmp_path: Path) -> None:
    meta = write(tmp_path, [Rank().init().call("Bcast", i(3) + h(28) + i(0) + h(WORLD)).finalize()], sizes=[0] * 28 + [12])
    assert lines(convert.load(meta)) == ["bcast 36 0 6"]
    (tmp_path / "b").mkdir()
    made = convert.load(write(tmp_path / "b", [Rank().init().call("Bcast", i(3) + h(28) + i(0) + h(WORLD)).finalize()]))
    assert lines(made) == ["bcast 3 0 6"]
    assert [x.what for x in made.losses] == ["the size of datatype 28 is not recorded: written as bytes"]


def test_communicators_are_resolved_over_all_ranks(tmp_path: Path) -> None:
    def build(r: Rank, me: int) -> None:
        # Rows by colour, the keys the other way round; then a duplicate, a group of two, and the same handle again for another.
        r.call("Comm_split", h(WORLD) + i(me // 2, -me) + h(4))
        r.call("Bcast", i(1) + h(INT) + i(0) + h(4))
        r.send("Send", 1, INT, 1, 3, comm=4) if me % 2 else r.recv(1, INT, 0, 3, comm=4)
        r.call("Comm_free", h(4))
        r.call("Comm_split", h(WORLD) + i(-32766 if me == 3 else 0, 0) + h(1 if me == 3 else 4))
        r.call("Comm_group", h(WORLD) + h(3)).call("Group_incl", h(3) + i(2) + array([2, 0]) + h(5))
        r.call("Comm_create", h(WORLD) + h(5) + h(6 if me in (0, 2) else 1))
        if me in (0, 2):
            r.call("Barrier", h(6))
        r.call("Bcast", i(1) + h(INT) + i(0) + h(SELF))

    made = job(tmp_path, 4, build)
    assert lines(made, 3) == [
        "comm_split 2 3,2",
        "bcast 4 0 6 comm=2",
        "send 2 3 4 6 comm=2",
        "comm_free comm=2",
        "comm_split -1",
        "comm_create -1",
    ]
    assert lines(made, 0) == [
        "comm_split 1 1,0", "bcast 4 0 6 comm=1", "recv 1 3 4 6 comm=1", "comm_free comm=1", "comm_split 3 0-2", "comm_create 4 2,0",
        "barrier comm=4",
    ]
    assert made.losses.without_effect["MPI_Bcast on MPI_COMM_SELF"] == 4


def test_cartesian_and_intercommunicators(tmp_path: Path) -> None:
    def build(r: Rank, me: int) -> None:
        r.call("Cart_create", h(WORLD) + i(2) + array([2, 2]) + array([1, 0]) + i(0) + h(4))
        r.call("Cart_sub", i(2) + h(4) + array([0, 1]) + h(5))
        leader = 2 if me < 2 else 0
        r.call("Intercomm_create", h(5) + i(0) + h(WORLD) + i(leader, 9) + h(6))
        r.send("Send", 1, INT, me % 2, 0, comm=6) if me < 2 else r.recv(1, INT, me % 2, 0, comm=6)
        r.call("Intercomm_merge", h(6) + i(int(me < 2)) + h(7))
        r.call("Barrier", h(7))

    made = job(tmp_path, 4, build)
    assert lines(made, 0) == [
        "cart_create 1 0-3 dims=2x2 periods=1x0", "comm_split 2 0,1 comm=1", "intercomm_create 4 0,1 2,3 comm=2", "send 2 0 4 6 comm=4",
        "intercomm_merge 5 2,3,0,1 comm=4", "barrier comm=5",
    ]
    assert lines(made, 3)[1:4] == ["comm_split 3 2,3 comm=1", "intercomm_create 4 2,3 0,1 comm=3", "recv 1 0 4 6 comm=4"]


def test_windows(tmp_path: Path) -> None:
    def build(r: Rank, me: int) -> None:
        r.call("Win_create", i(64, 1) + h(0) + h(WORLD) + h(2)).call("Win_fence", b(0) + h(2))
        r.call("Put", i(4) + h(INT) + i(1 - me, 0, 4) + h(INT) + h(2)).call("Win_fence", b(0) + h(2))
        r.call("Win_lock", b(2) + i(0) + b(0) + h(2)).call("Win_unlock", i(0) + h(2)).call("Win_free", h(2))

    assert lines(job(tmp_path, 2, build)) == [
        "win_create 1 64", "Win_fence win=1", "Put 1 0 16 6 win=1", "Win_fence win=1", "Win_lock 0 1 win=1",
        "Win_unlock 0 win=1", "win_free 1",
    ]


def test_what_is_lost_is_counted_by_call_with_its_places(tmp_path: Path, retrompi: Run) -> None:
    def build(r: Rank, me: int) -> None:
        for _ in range(3):
            r.call("File_write", h(1) + i(5) + h(INT) + r.status((20, 0, 0)))
        r.send("Isend", 1, INT, 1 - me, 0, request=2).call("Cancel", i(2)).recv(1, INT, 1 - me, 0).wait(2)

    job(tmp_path, 2, build)
    told = retrompi("trace", "convert", str(tmp_path), str(tmp_path / "out"))
    assert told.code == 0
    assert "MPI_File_write  lost      6  job-0000.bin, byte 66" in told.err
    strict = retrompi("trace", "convert", str(tmp_path / "job-0001.bin"), str(tmp_path / "out.ti"), "--strict", "--json")
    assert (strict.code, strict.err) == (1, "")
    report = json.loads(strict.out)
    assert (report["from"], report["ranks"], report["lost"]) == ("dumpi", 2, 8)
    assert [(x["call"], x["effect"], x["count"], len(x["places"])) for x in report["losses"]] == [
        ("MPI_File_write", "lost", 6, 5),
        ("MPI_Cancel", "lost", 2, 2),
    ]


# -- what cannot be read


def good(folder: Path) -> bytes:
    write(folder, [Rank().init().send("Isend", 1, INT, 0, 1, request=2).recv(1, INT, 0, 1).wait(2).finalize()])
    return (folder / "job-0000.bin").read_bytes()


def test_a_communicator_that_a_rank_never_makes(tmp_path: Path) -> None:
    with refused(TraceError, "bad-trace | job-0000.bin | 66"):
        job(tmp_path, 2, lambda r, me: r.call("Comm_dup", h(WORLD) + h(4)) if me == 0 else None)


@for_each(
    "change, why",
    [
        (lambda d: d[:-3], "damaged-file"),
        (lambda d: d[: len(d) // 2], "damaged-file"),
        (lambda d: d[:-64] + MAGIC_AT_WRONG_BODY, "bad-trace | 99999999"),
        (lambda d: d[:16] + b"\x01\x50" + d[18:], "damaged-file | 16 | 336"),
        (lambda d: d[:45] + struct.pack(">i", 1 << 27) + d[49:], "damaged-file | 134217728"),
        (lambda d: d[:-8], "bad-trace"),
    ],
)
def test_corrupt_files_end_in_one_line_with_the_byte(tmp_path: Path, change: Callable[[bytes], bytes], why: str) -> None:
    file = tmp_path / "job-0000.bin"
    file.write_bytes(change(good(tmp_path)))
    with refused(TraceError, why) as told:
        convert.load(file, "dumpi")
    assert "\n" not in str(told.value)


def test_a_file_without_the_magic_is_no_dumpi_file(tmp_path: Path) -> None:
    file = tmp_path / "job-0000.bin"
    file.write_bytes(b"\0" + good(tmp_path)[1:])
    with refused(TraceError, "bad-trace | DUMPI"):
        convert.load(file, "dumpi")


MAGIC_AT_WRONG_BODY = b"\xff\xaa\xddDUMPI" + struct.pack(">7Q", 0, 0, 0, 99, 99999999, 0, 0)


def test_missing_ranks(tmp_path: Path) -> None:
    good(tmp_path)
    (tmp_path / "job.meta").write_text("numprocs=2\nfileprefix=/elsewhere/job\n")
    with refused(TraceError, "not-found | job.meta | job-0001.bin"):
        convert.load(tmp_path)
    (tmp_path / "job-0002.bin").write_bytes(b"")
    with refused(TraceError, "not-found | job-0001.bin"):
        convert.load(tmp_path / "job-0000.bin")
    (tmp_path / "job.meta").write_text("numprocs=9999999999\nfileprefix=job\n")
    with refused(TraceError, "bad-syntax"):
        convert.load(tmp_path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_hostile_bytes_never_end_in_a_defect(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    raw = bytearray(good(folder))
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    file = folder / "job-0000.bin"
    file.write_bytes(bytes(raw[: data.draw(st.integers(9, len(raw)))]))
    try:
        convert.load(file)
        told = ""
    except TraceError as e:
        told = str(e)
    assert "\n" not in told


def test_real_files_agree_with_their_footers(tmp_path: Path) -> None:
    from retrompi.convert.dumpi.file import DumpiFile

    good(tmp_path)
    file = DumpiFile(tmp_path / "job-0000.bin")
    assert file.counts() == {"Init": 1, "Isend": 1, "Recv": 1, "Wait": 1, "Finalize": 1}
    assert [c.name for c in file.calls()] == ["Init", "Isend", "Recv", "Wait", "Finalize"]
