"""Reading, writing and generating traces."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard
from cases import for_each
from refusals import refused

from retrompi import traces
from retrompi.base.errors import UsageError
from retrompi.traces import generate

DATA = Path(__file__).parent / "data" / "traces"
EXAMPLES = Path(__file__).parents[1] / "examples"

PAIR = """\
0 init
1 init
# a comment
0 send 1 7 3 1
1   recv\t0 7 1e1 0\r

0 finalize
1 finalize
"""

# One line of every action that is simulated, on three ranks as rank 1 may write it, and what it means:
# (peer, tag, peer2, bytes, bytes2, amount)
EVERY_ACTION = [
    ("compute 2.5e6", (0, 0, 0, 0, 0, 2.5e6)),
    ("sleep 0.25", (0, 0, 0, 0, 0, 0.25)),
    *[
        (f"{name} 2 5 10 1", (2, 5, 0, 40, 0, 0.0))
        for name in (
            *("send", "Ssend", "bsend", "rsend", "isend", "ISsend", "ibsend", "irsend"),
            *("sendInit", "ssendInit", "bsendInit", "rsendInit"),
        )
    ],
    *[(f"{name} 2 5 10 1", (2, 5, 0, 40, 0, 0.0)) for name in ("recv", "irecv", "recvInit")],
    ("recv -555 -444 10", (-555, -444, 0, 10, 0, 0.0)),
    ("recv 2 5 -1", (2, 5, 0, -1, 0, 0.0)),
    ("send -333 5 10", (-666, 5, 0, 10, 0, 0.0)),
    ("sendRecv 10 2 20 0 1 0", (2, 0, 0, 40, 160, 0.0)),
    ("sendRecv 10 -333 20 -555 1 0", (-666, 0, -555, 40, 160, 0.0)),
    *[(f"{name} 2 1 5", (2, 5, 1, 0, 0, 0.0)) for name in ("wait", "test", "start", "requestFree")],
    ("wait 1 -666 5", (1, 5, -666, 0, 0, 0.0)),
    ("wait -555 1 5", (-555, 5, 1, 0, 0, 0.0)),
    *[(f"{name} 4", (0, 0, 0, 4, 0, 0.0)) for name in ("waitall", "waitAny", "waitsome", "testall", "testany", "testsome", "startall")],
    ("waitall", (0, 0, 0, -1, 0, 0.0)),
    *[(f"{name} 2 -444", (2, -444, 0, 0, 0, 0.0)) for name in ("probe", "iprobe")],
]

EVERY_COLLECTIVE = [
    ("barrier", (0, 0, 0, 0, 0, 0.0)),
    ("bcast 10", (0, 0, 0, 10, 0, 0.0)),
    ("bcast 10 2 1", (0, 0, 2, 40, 0, 0.0)),
    ("reduce 10 5 2 1", (0, 0, 2, 40, 0, 5.0)),
    ("allreduce 10 5 1", (0, 0, 0, 40, 0, 5.0)),
    ("scan 10 5 1", (0, 0, 0, 40, 0, 5.0)),
    ("exscan 10 5", (0, 0, 0, 10, 0, 5.0)),
    ("reducescatter 1 2 3 5 1", (0, 0, 0, 24, 0, 5.0)),
    ("alltoall 10 10 1 1", (0, 0, 0, 40, 40, 0.0)),
    ("alltoallv 6 1 2 3 9 2 1 4 1 0", (0, 0, 0, 24, 56, 0.0)),
    ("gather 10 10 2 1 1", (0, 0, 2, 40, 40, 0.0)),
    ("scatter 10 10 2 1 1", (0, 0, 2, 40, 40, 0.0)),
    ("allgather 10 5 1 0", (0, 0, 0, 40, 40, 0.0)),
    ("gatherv 10 1 2 3 2 1 1", (0, 0, 2, 40, 24, 0.0)),
    ("allgatherv 10 1 10 3 1 1", (0, 0, 0, 40, 56, 0.0)),
    ("allgatherv 10 1 10 3 1 1 0 1 3", (0, 0, 0, 40, 56, 0.0)),
    ("scatterv 1 2 3 10 2 1 1", (0, 0, 2, 24, 40, 0.0)),
]


def fields(trace: traces.Trace, rank: int) -> list[tuple[str, tuple[int | float, ...]]]:
    return [(row[1], tuple(row[2:])) for row in trace.rank_actions(rank)]


def test_one_file_of_all_ranks() -> None:
    trace = traces.parse(PAIR)
    assert (trace.ranks, trace.actions, trace.bytes_sent) == (2, 6, 12)
    assert fields(trace, 1)[1] == ("recv", (0, 7, 0, 80, 0, 0.0))
    assert [row[0] for row in trace.rank_actions(1)] == [2, 5, 8]
    assert trace.unsupported() == []
    assert trace.warnings == []


@for_each("line, meaning", EVERY_ACTION)
def test_every_action(line: str, meaning: tuple[float, ...]) -> None:
    trace = traces.parse(["0 init", f"1 init\n1 {line}\n", "2 init"], partial=True)
    assert fields(trace, 1)[1:] == [(line.split()[0], meaning)]
    assert trace.unsupported() == []
    again = traces.parse([trace.to_ti(r) for r in range(3)], partial=True)
    assert again == trace


@for_each("line, meaning", EVERY_COLLECTIVE)
def test_every_collective(line: str, meaning: tuple[float, ...]) -> None:
    trace = traces.parse(["0 compute 1\n", f"1 {line}\n", "2 compute 1\n"])  # the line of one rank: others would need others
    assert fields(trace, 1) == [(line.split()[0], meaning)]
    assert trace.unsupported() == []
    assert traces.parse([trace.to_ti(r) for r in range(3)]) == trace


def test_aliases_of_names() -> None:
    for alias, name in (("ssend", "Ssend"), ("issend", "ISsend"), ("waitany", "waitAny")):
        arguments = "1" if name == "waitAny" else "0 0 8"
        assert fields(traces.parse(f"0 {alias} {arguments}\n"), 0)[0][0] == name


def test_sizes_of_types() -> None:
    # The table of SimGrid 3.32 and 4.1; the codes of C++ types and of derived ones are tested as refusals.
    sizes = [8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4]  # 0..19
    sizes += [8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4]  # 20..39
    sizes += [8, 16, 8, 16, 16, 4, 2, 4, 8, 16, 32]  # 40..50
    codes = [*enumerate(sizes), (55, 0), (56, 0), (57, 1), (58, 8), (59, 8)]
    for code, size in codes:
        assert traces.parse(f"0 send 0 0 3 {code}\n").bytes_sent == 3 * size, code


def test_default_type() -> None:
    assert traces.parse("0 init\n0 send 0 0 3\n").bytes_sent == 3
    assert traces.parse("0 init 1\n0 send 0 0 3\n").bytes_sent == 24


def test_counts_are_doubles_cut_to_integers() -> None:
    assert traces.parse("0 send 0 0 1e6\n0 send 0 0 2.9\n0 recv 0 0 -0.5\n").bytes_sent == 1_000_002


def test_undefined_source_is_refused_or_chosen() -> None:
    text = "0 recv -333 0 8\n0 irecv -333 0 8\n0 wait -333 0 0\n"
    refused = traces.unsupported_lines(traces.parse(text, name="t.txt"))
    assert [row[:3] for row in refused] == [("t.txt", 1, "recv"), ("t.txt", 2, "irecv"), ("t.txt", 3, "wait")]
    assert "-333" in refused[0][3]
    assert [meaning[0] for _, meaning in fields(traces.parse(text, undefined_source="any"), 0)] == [-555] * 3
    assert [meaning[0] for _, meaning in fields(traces.parse(text, undefined_source="null"), 0)] == [-666] * 3


def test_marks() -> None:
    text = "0 init\n# mark loop one \n0 barrier\n#mark  end\n# marked\n# 0 sub Bcast comm 1 size 2\n# mark\n"
    private = traces.parse([text, "1 barrier\n"], partial=True)
    assert [row[:2] for row in private.rank_actions(0)] == [(1, "init"), (2, "mark loop one"), (3, "barrier"), (4, "mark end")]
    assert private.actions == 3
    shared = traces.parse("# mark a\n0 barrier\n# 1 mark b\n1 barrier\n")
    assert [row[1] for row in shared.rank_actions(0)] == ["mark a", "barrier"]
    assert [row[1] for row in shared.rank_actions(1)] == ["mark b", "barrier"]
    assert traces.parse([shared.to_ti(0), shared.to_ti(1)]) == shared
    assert traces.parse(shared.to_ti(0, shared=True) + shared.to_ti(1, shared=True)) == shared


def test_equality_hash_and_copies() -> None:
    one, other = traces.parse(PAIR), traces.parse("# another layout\n" + PAIR, name="elsewhere")
    assert one == other
    assert one.sha256 == other.sha256
    assert hash(one) == hash(other)
    different = traces.parse(PAIR.replace("send 1 7 3", "send 1 7 4"))
    assert one != different
    assert one.sha256 != different.sha256
    expected = hashlib.sha256(b"".join(f"rank {r}\n{one.to_ti(r)}".encode() for r in range(2)))
    assert one.sha256 == expected.hexdigest()
    for copy in (pickle.loads(pickle.dumps(other)), traces.Trace.load(other.dump())):
        assert copy == other
        assert copy.files == other.files
        assert copy.rank_actions(0) == other.rank_actions(0)
    refused = traces.parse("0 ibarrier\n")
    assert traces.Trace.load(refused.dump()).unsupported() == refused.unsupported()


def test_info() -> None:
    info = traces.read(DATA / "npb3.3.1-is-A-4.tar.zst").info()
    # Of INDEX.md of the traces: 161 actions but compute, 3 sends, 144 collectives.
    assert info["actions"] - info["calls"]["compute"] == 161
    assert (info["ranks"], info["sends"], info["collectives"]) == (4, 3, 144)
    assert info["compute_flops"] == pytest.approx(1.53e9, rel=0.01)
    assert info["refused"] == info["warnings"] == 0


# --- files -----------------------------------------------------------------------------------------------------------------


def make_folder(folder: Path, names: tuple[str, str] = ("rank-0.txt", "rank-1.txt")) -> Path:
    folder.mkdir(parents=True)
    for rank, name in enumerate(names):
        lines = [line for line in PAIR.splitlines() if line.startswith(str(rank))]
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "index.txt").write_text("# ranks\n" + "".join(f"{n}\n" for n in names) + "\n")
    return folder


def test_plain_gzip_zstd(tmp_path: Path) -> None:
    expected = traces.parse(PAIR)
    raw = PAIR.encode()
    half = len(raw) // 2
    contents = {
        "t.txt": raw,
        "t.txt.gz": gzip.compress(raw),
        "two-members.gz": gzip.compress(raw[:half]) + gzip.compress(raw[half:]),
        "t.txt.zst": zstandard.compress(raw),
        "two-frames.zst": zstandard.compress(raw[:half]) + zstandard.compress(raw[half:]),
        "skippable.zst": b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc" + zstandard.compress(raw),
        "streamed.zst": zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(raw),
        "no-suffix": zstandard.compress(raw),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        assert traces.read(tmp_path / name) == expected, name
        assert traces.read(tmp_path / name, np=2) == expected, name


def test_index_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = traces.parse(PAIR)
    folder = make_folder(tmp_path / "t")
    for path in (folder, folder / "index.txt", str(folder)):
        trace = traces.read(path)
        assert trace == expected
        assert trace.files == [str(folder / "rank-0.txt"), str(folder / "rank-1.txt")]
    (folder / "index.txt").unlink()
    assert traces.read(folder, np=2) == expected
    # SMPI reads the names in an index relative to the current directory
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "list").write_text("t/rank-0.txt\nt/rank-1.txt\n")
    monkeypatch.chdir(tmp_path)
    assert traces.read("elsewhere/list") == expected
    (tmp_path / "shared.txt").write_text(PAIR)
    (tmp_path / "one-line").write_text("shared.txt\n")
    assert traces.read("one-line", np=2) == expected


def test_index_of_compressed_files(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "t")
    (folder / "rank-0.txt.gz").write_bytes(gzip.compress((folder / "rank-0.txt").read_bytes()))
    (folder / "rank-1.txt.zst").write_bytes(zstandard.compress((folder / "rank-1.txt").read_bytes()))
    for rank in range(2):
        (folder / f"rank-{rank}.txt").unlink()
    (folder / "index.txt").write_text("rank-0.txt.gz\nrank-1.txt.zst\n")
    assert traces.read(folder) == traces.parse(PAIR)
    (folder / "index.txt").unlink()
    assert traces.read(folder) == traces.parse(PAIR)


@for_each("suffix", ["tar", "tar.gz", "tgz", "tar.zst"])
@for_each("inner", [".", "name"])
def test_archives(tmp_path: Path, suffix: str, inner: str) -> None:
    folder = make_folder(tmp_path / "t")
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(folder, arcname=inner)
    data = stream.getvalue()
    if suffix == "tar.zst":
        data = zstandard.compress(data)
    elif suffix != "tar":
        data = gzip.compress(data)
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(data)
    assert traces.read(path) == traces.parse(PAIR)
    assert traces.folders(path) == [inner]
    assert traces.read(f"{path}:{inner}") == traces.parse(PAIR)


def test_an_archive_of_several_traces() -> None:
    path = DATA / "ibm-suite-raw.tar.zst"
    inside = traces.folders(path)
    assert len(inside) == 170
    trace = traces.read(f"{path}:ibm-ccl-bcast-4")
    assert trace.ranks == 4
    assert trace == traces.read(f"{path}:{next(f for f in inside if f.endswith('ibm-ccl-bcast-4'))}")


@pytest.mark.parametrize("name", ["shared.txt", "shared.gz", "shared.zst", "folder"])
def test_write(tmp_path: Path, name: str) -> None:
    trace = traces.read(DATA / "npb3.3.1-is-A-4.tar.zst")
    traces.write(trace, tmp_path / name, shared=name != "folder")
    again = traces.read(tmp_path / name)
    assert again == trace
    assert again.sha256 == trace.sha256


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid's smpirun is not installed")
@pytest.mark.parametrize("name", ["npb3.3.1-is-A-4", "npb3.3.1-cg-A-4"])
def test_smpi_replays_what_is_written(tmp_path: Path, name: str) -> None:
    traces.write(traces.read(DATA / f"{name}.tar.zst"), tmp_path / "t")
    (tmp_path / "platform.xml").write_text(
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><cluster id="c" prefix="node" suffix="" radical="0-3" speed="1Gf" bw="12.5MBps" lat="50us"/></platform>\n'
    )
    (tmp_path / "hosts").write_text("".join(f"node{k}\n" for k in range(4)))
    command = ["smpirun", "-np", "4", "-platform", "../platform.xml", "-hostfile", "../hosts", "-replay", "index.txt"]
    command.append("--cfg=smpi/host-speed:1e9")
    done = subprocess.run(command, cwd=tmp_path / "t", capture_output=True, text=True, timeout=300, check=True)
    found = re.search(r"Simulation time ([0-9.]+)", done.stdout + done.stderr)
    readme = (DATA / "README.md").read_text()
    assert found is not None
    assert f"{found[1]} s" in readme


# --- real traces -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["npb3.3.1-is-A-4", "npb3.3.1-cg-A-4", "pingpong-c", "pingpong-c-full"])
def test_real_traces_are_clean_and_survive_a_round_trip(name: str) -> None:
    trace = traces.read(DATA / f"{name}.tar.zst")
    assert trace.unsupported() == []
    assert trace.warnings == []
    assert traces.parse([trace.to_ti(r) for r in range(trace.ranks)]) == trace


def test_captured_pingpong_is_the_generated_one() -> None:
    full = traces.mark_pingpong(traces.read(DATA / "pingpong-c-full.tar.zst"))
    assert full == generate.pingpong()
    tenth = traces.read(DATA / "pingpong-c.tar.zst")
    sections = traces.pingpong_sections(tenth)
    assert [s.size for s in sections] == list(generate.DEFAULT_SIZES)
    assert [s.reps for s in sections] == [generate.default_reps(s) // 10 for s in generate.DEFAULT_SIZES]
    assert traces.mark_pingpong(tenth) == generate.pingpong(reps={s.size: s.reps for s in sections})


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid's smpirun is not installed")
def test_capture_script(tmp_path: Path) -> None:
    command = ["bash", EXAMPLES / "capture.sh", "-k", EXAMPLES / "pingpong.c", tmp_path / "t", "--max", "4", "--scale", "0.003"]
    subprocess.run(command, capture_output=True, timeout=300, check=True, cwd=tmp_path)
    trace = traces.read(tmp_path / "t")
    # With -k the computation between the calls is there; the sections are found all the same.
    assert "compute" in trace.info()["calls"]
    assert [(s.size, s.reps) for s in traces.pingpong_sections(trace)] == [(0, 3), (1, 3), (2, 3), (4, 3)]
    refused = subprocess.run(["bash", EXAMPLES / "capture.sh", EXAMPLES / "pingpong.c", tmp_path / "t"], capture_output=True, timeout=300)
    assert refused.returncode == 2
    assert b"not empty" in refused.stderr


# --- sections and generators -----------------------------------------------------------------------------------------------


def test_sections_end_where_something_else_happens() -> None:
    loop = "0 send 1 0 {0} 6\n0 recv 1 -444 99 6\n0 compute 5\n"
    text = "0 init\n" + loop.format(8) * 2 + "0 barrier\n" + loop.format(8) * 3 + loop.format(16) + "0 finalize\n"
    trace = traces.parse([text, "1 init\n1 barrier\n1 finalize\n"])
    sections = traces.pingpong_sections(trace)
    assert [(s.size, s.reps) for s in sections] == [(8, 2), (8, 3), (16, 1)]
    assert [(s.first_line, s.last_line) for s in sections] == [(2, 6), (9, 16), (18, 19)]
    assert [(s.size, s.reps) for s in traces.pingpong_sections(trace, min_reps=3)] == [(8, 3)]
    labels = [row[1] for row in traces.mark_pingpong(trace).rank_actions(0) if row[1].startswith("mark ")]
    # The barrier after the first section is not timed; the computation between the others is.
    assert labels == ["mark size 8 reps 2", "mark end", "mark size 8 reps 3", "mark size 16 reps 1", "mark end"]


def test_no_sections() -> None:
    with refused(traces.TraceError, "no-section"):
        traces.pingpong_sections(generate.broadcast(2, 8))
    with refused(traces.TraceError, "unknown-rank | 0..1"):
        traces.pingpong_sections(generate.broadcast(2, 8), rank=5)


def test_mark_lines() -> None:
    trace = traces.mark_lines(traces.read(DATA / "npb3.3.1-is-A-4.tar.zst"), [("timed", 11, 72)])
    rows = trace.rank_actions(0)
    start = next(i for i, row in enumerate(rows) if row[1] == "mark timed")
    end = next(i for i, row in enumerate(rows) if row[1] == "mark end")
    assert rows[start + 1][0] == 11
    assert rows[end - 1][0] == 72
    assert [row[0] for row in rows[start + 1 : end]] == list(range(11, 73))
    with refused(traces.TraceError, "no-section | 'x'"):
        traces.mark_lines(trace, [("x", 5, 4)])


def test_generated_pingpong() -> None:
    assert generate.DEFAULT_SIZES[:3] == (0, 1, 2)
    assert generate.DEFAULT_SIZES[-1] == 4 * 1024 * 1024
    assert len(generate.DEFAULT_SIZES) == 24
    assert [generate.default_reps(1024 * k) for k in (0, 64, 128, 512, 1024, 4096)] == [1000, 1000, 100, 100, 20, 20]
    trace = generate.pingpong([0, 8], 2)
    assert trace.to_ti(0).splitlines() == [
        *("0 init", "# mark size 0 reps 2", "0 send 1 0 0 6", "0 recv 1 0 0 6", "0 send 1 0 0 6", "0 recv 1 0 0 6"),
        *("# mark size 8 reps 2", "0 send 1 0 8 6", "0 recv 1 0 8 6", "0 send 1 0 8 6", "0 recv 1 0 8 6", "# mark end", "0 finalize"),
    ]
    assert trace.to_ti(1).splitlines()[:3] == ["1 init", "1 recv 0 0 0 6", "1 send 0 0 0 6"]
    assert generate.pingpong([8], lambda size: size) == generate.pingpong([8], {8: 8}) == generate.pingpong([8], 8)


@for_each(
    "trace",
    [
        generate.pingping([0, 64], 3),
        generate.ring(5, 100, 2),
        generate.halo2d(3, 4, 100, 2, flops=1e6),
        generate.halo2d(2, 2, 100, periodic=True),
        generate.halo2d(1, 1, 100),
        generate.half_to_half(6, 100, 2),
        generate.half_to_half(6, 100, 2, both=True),
        generate.broadcast(3, 100, 2, root=1),
        generate.broadcast(1, 100),
    ],
)
def test_generators_match_sends_with_receives(trace: traces.Trace) -> None:
    assert trace.unsupported() == []
    assert trace.warnings == []
    sent: dict[tuple[int, int, int, int], int] = {}
    received: dict[tuple[int, int, int, int], int] = {}
    for rank in range(trace.ranks):
        posted = 0
        for _, action, peer, tag, peer2, size, size2, _ in trace.rank_actions(rank):
            if action in ("send", "isend", "sendRecv"):
                key = (rank, peer, tag, size)
                sent[key] = sent.get(key, 0) + 1
            if action in ("recv", "irecv", "sendRecv"):
                key = (peer2, rank, 0, size2) if action == "sendRecv" else (peer, rank, tag, size)
                received[key] = received.get(key, 0) + 1
            posted += action in ("isend", "irecv")
            if action == "waitall":
                assert size == posted
            if action in ("wait", "waitall"):
                posted = 0
        assert posted == 0
    assert sent == received


def test_generated_volumes() -> None:
    assert generate.halo2d(3, 4, 10).info()["sends"] == 2 * (3 * 3 + 2 * 4)
    assert generate.halo2d(3, 4, 10, periodic=True).info()["sends"] == 4 * 12
    assert generate.half_to_half(8, 10).bytes_sent == 40
    assert generate.half_to_half(8, 10, both=True).bytes_sent == 80
    assert generate.ring(4, 10, 3).info()["sends"] == 12


@for_each(
    "call",
    [
        lambda: generate.pingpong([]),
        lambda: generate.pingpong([-1]),
        lambda: generate.pingpong([1], 0),
        lambda: generate.pingpong([1], {2: 1}),
        lambda: generate.ring(1, 8),
        lambda: generate.ring(10**9, 8),
        lambda: generate.halo2d(10**6, 10**6, 8),
        lambda: generate.half_to_half(3, 8),
        lambda: generate.broadcast(2, 8, root=2),
        lambda: generate.halo2d(0, 2, 8),
        lambda: generate.halo2d(2, 2, 8, flops=float("nan")),
    ],
)
def test_generators_refuse_nonsense(call: object) -> None:
    assert callable(call)
    with pytest.raises(UsageError):
        call()
