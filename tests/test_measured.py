"""Output of the usual benchmarks is read as it is printed, tables as they are declared, and both are kept with where they are from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import for_each
from conftest import Outcome
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.measure.curves import FORMATS, read, read_all
from retrompi.measure.curves.table import RATES, TIMES

DATA = Path(__file__).parent / "data" / "measured"

# file, (what, ranks, sizes) of each series, tool, version
OUTPUTS = [
    ("osu53-latency.txt", [("pingpong", 2, 24)], "OSU Micro-Benchmarks", "5.3"),
    ("osu53-bw.txt", [("bw", 2, 23)], "OSU Micro-Benchmarks", "5.3"),
    ("osu53-allreduce-f.txt", [("allreduce", None, 15)], "OSU Micro-Benchmarks", "5.3"),
    ("osu53-barrier.txt", [("barrier", None, 1)], "OSU Micro-Benchmarks", "5.3"),
    ("osu53-ibcast.txt", [("ibcast", None, 11)], "OSU Micro-Benchmarks", "5.3"),
    ("osu53-ibarrier.txt", [("ibarrier", None, 1)], "OSU Micro-Benchmarks", "5.3"),
    ("osu74-latency.txt", [("pingpong", 2, 23)], "OSU Micro-Benchmarks", "7.4"),
    ("osu74-latency-tails.txt", [("pingpong", 2, 11)], "OSU Micro-Benchmarks", "7.4"),
    ("osu74-bw.txt", [("bw", 2, 21)], "OSU Micro-Benchmarks", "7.4"),
    ("osu74-bibw.txt", [("bibw", 2, 21)], "OSU Micro-Benchmarks", "7.4"),
    ("osu74-mbw_mr.txt", [("mbw_mr", 2, 17)], "OSU Micro-Benchmarks", "7.4"),
    ("osu74-bcast-f.txt", [("bcast", None, 17)], "OSU Micro-Benchmarks", "7.4"),
    ("osu74-alltoall.txt", [("alltoall", None, 15)], "OSU Micro-Benchmarks", "7.4"),
    ("osu74-barrier-f.txt", [("barrier", None, 1)], "OSU Micro-Benchmarks", "7.4"),
    (
        "imb2021.txt",
        [
            ("pingpong", 2, 8),
            ("pingping", 2, 8),
            *((what, n, 8) for what in ("sendrecv", "exchange", "allreduce", "bcast") for n in (1, 2)),
            *(("barrier", n, 1) for n in (1, 2)),
            ("mbw_mr", 2, 8),
            ("bibw", 2, 8),
        ],
        "Intel MPI Benchmarks",
        "2021.11",
    ),
    ("mpptest.txt", [("pingpong", 2, 17)], "mpptest", ""),
    ("mpptest-halo.txt", [("exchange", None, 5)], "mpptest", ""),
    ("mpi4py-pingpong.txt", [("pingpong", 2, 17)], "mpi4py.bench", "4.1.2"),
    ("mpi4py-pingpong-nostats.txt", [("pingpong", 2, 11)], "mpi4py.bench", "4.1.2"),
    ("mpi4py-ringtest.txt", [("ring", 2, 3)], "mpi4py.bench", "4.1.2"),
    ("netpipe37.txt", [("pingpong", 2, 91)], "NetPIPE", "3.x"),
    ("netpipe37-np.out", [("pingpong", 2, 91)], "NetPIPE", "3.x"),
    ("netpipe37-bidir.txt", [("bibw", 2, 49)], "NetPIPE", "3.x"),
    ("netpipe5-np.out", [("pingpong", 2, 41)], "NetPIPE", "5.x"),
    ("netpipe5-bidir.txt", [("bibw", 2, 21)], "NetPIPE", "5.x"),
]


def last_row(name: str) -> list[float]:
    """The numbers of the last row of a table, whatever stands between them."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", (DATA / name).read_text(encoding="utf-8"))
    rows = [line for line in text.splitlines() if re.match(r"\s*\d", line)]
    return [float(n) for n in re.findall(r"(?<![\w.])\d+\.?\d*(?:e[+-]?\d+)?", rows[-1])]


@for_each("name, series, tool, version", OUTPUTS)
def test_real_output_is_read(name: str, series: list[tuple[str, int | None, int]], tool: str, version: str) -> None:
    found = read_all(DATA / name)
    assert [(m.what, m.ranks, len(m.points)) for m in found] == series
    for m in found:
        assert (m.provenance.tool, m.provenance.version) == (tool, version)
        assert m.provenance.sha256 == hashlib.sha256((DATA / name).read_bytes()).hexdigest()
        assert m.provenance.units
        sizes = [p.size_B for p in m.points]
        assert sizes == sorted(set(sizes))
        for p in m.points:
            assert p.time_us >= 0
            if p.size_B and p.time_us:
                assert p.bandwidth_MBps == pytest.approx(p.size_B / p.time_us)


@for_each(
    "name, what, column, scale",
    [
        ("osu53-latency.txt", "pingpong", 1, 1.0),
        ("osu53-allreduce-f.txt", "allreduce", 1, 1.0),
        ("osu53-ibcast.txt", "ibcast", 1, 1.0),
        ("osu74-latency.txt", "pingpong", 1, 1.0),
        ("osu74-bcast-f.txt", "bcast", 1, 1.0),
        ("mpptest.txt", "pingpong", 4, 1.0),
        ("mpi4py-pingpong.txt", "pingpong", 2, 1e6),
        ("netpipe37-np.out", "pingpong", 2, 1e6),
        ("netpipe37.txt", "pingpong", 4, 1.0),
        ("netpipe37-bidir.txt", "bibw", 4, 0.5),
        ("netpipe5-np.out", "pingpong", 4, 1.0),
    ],
)
def test_the_time_is_the_printed_one(name: str, what: str, column: int, scale: float) -> None:
    row = last_row(name)
    assert read(DATA / name, what=what).points[-1].time_us == pytest.approx(row[column] * scale)


def test_the_rate_of_messages_tells_more_than_that_of_bytes() -> None:
    size, rate, messages = last_row("osu74-mbw_mr.txt")
    point = read_all(DATA / "osu74-mbw_mr.txt")[0].points[-1]
    assert point.time_us == pytest.approx(1e6 / messages)
    assert point.bandwidth_MBps == pytest.approx(rate, rel=1e-3)
    assert point.size_B == size


def test_a_rate_that_is_rounded_to_nothing_says_no_time(tmp_path: Path) -> None:
    file = tmp_path / "slow.txt"
    text = (DATA / "osu74-bw.txt").read_text(encoding="utf-8")
    file.write_text(re.sub(r"\n1 +[\d.]+", "\n1   0.00", text), encoding="utf-8")
    assert [p.size_B for p in read_all(file)[0].points] == [p.size_B for p in read_all(DATA / "osu74-bw.txt")[0].points if p.size_B != 1]


@pytest.mark.parametrize("name", ["osu53-bw.txt", "osu74-bw.txt", "osu74-bibw.txt"])
def test_a_stream_is_what_a_message_adds(name: str) -> None:
    size, rate, *_ = last_row(name)
    point = read_all(DATA / name)[0].points[-1]
    assert point.bandwidth_MBps == rate
    assert point.time_us == pytest.approx(size / rate)


@for_each(
    "name, title, head, what, version",
    [
        ("osu53-latency.txt", "# OSU MPI Latency Test (Version 2.1)", "# Size\t\tLatency (us) ", "pingpong", "2.1"),
        ("osu53-latency.txt", "# OSU MPI Latency Test v3.1.1", "# Size            Latency (us)", "pingpong", "3.1.1"),
        ("osu53-bw.txt", "# OSU MPI Bandwidth Test (Version 2.1)", "# Size          Bandwidth (MB/s) ", "bw", "2.1"),
        ("osu53-bw.txt", "# OSU MPI Bidirectional Bandwidth Test (Version 2.1)", "# Size          Bi-Bandwidth (MB/s) ", "bibw", "2.1"),
        ("osu53-bw.txt", "# OSU MPI Bandwidth Test v6.2", "# Size      Bandwidth (MB/s)", "bw", "6.2"),
        ("osu53-latency.txt", "# OSU MPI-CUDA Latency Test v6.2", "# Size          Latency (us)", "pingpong", "6.2"),
    ],
)
def test_headers_of_other_versions(tmp_path: Path, name: str, title: str, head: str, what: str, version: str) -> None:
    """The rows of 5.3 under the headers that other versions print, as they stand in mailing lists and handbooks."""
    text = (DATA / name).read_text(encoding="utf-8")
    text = re.sub(r"# OSU MPI \w+ Test v5\.3", title, text)
    file = tmp_path / name
    file.write_text(re.sub(r"# Size.*", head.replace("\t", "\\t"), text), encoding="utf-8")
    found = read(file, what=what)
    assert (found.what, found.provenance.version, found.ranks) == (what, version, 2)
    assert [p.time_us for p in found.points] == [p.time_us for p in read_all(DATA / name)[0].points]


def test_tables_of_older_intel_and_pallas_benchmarks(tmp_path: Path) -> None:
    text = (DATA / "imb2021.txt").read_text(encoding="utf-8")
    old = re.sub(r"# #processes = (\d) ", r"# ( #processes = \1 ) ", text)
    for title, version in (("Intel (R) MPI Benchmark Suite V3.2.3", "3.2.3"), ("PALLAS MPI Benchmark Suite V2.2", "2.2")):
        file = tmp_path / "old.txt"
        file.write_text(re.sub(r"Intel\(R\) MPI Benchmarks 2021\.11", title, old), encoding="utf-8")
        found = read_all(file)
        assert {m.provenance.version for m in found} == {version}
        assert [(m.what, m.ranks) for m in found] == [(m.what, m.ranks) for m in read_all(DATA / "imb2021.txt")]


def test_what_stands_beside_a_time_is_kept() -> None:
    bcast = read(DATA / "osu74-bcast-f.txt", what="bcast").points[-1]
    assert bcast.low_us is not None
    assert bcast.high_us is not None
    assert bcast.low_us <= bcast.time_us <= bcast.high_us
    assert bcast.repetitions == 50
    streams = read_all(DATA / "osu74-mbw_mr.txt")[0]
    assert (streams.pairs, streams.window) == (1, 64)
    both = read(DATA / "mpi4py-pingpong.txt").points[-1]
    assert both.repetitions == 300
    assert both.spread is not None
    latency = read(DATA / "osu74-latency.txt").points
    assert latency[-1].spread == pytest.approx(0.01 / 12**0.5 / latency[-1].time_us)
    told = read(DATA / "imb2021.txt").provenance
    assert told.date.endswith("2026")
    assert any(s.startswith("Machine: ") for s in told.said)


def test_np_out_and_what_is_printed_agree() -> None:
    file, printed = read(DATA / "netpipe37-np.out"), read(DATA / "netpipe37.txt")
    assert [(p.size_B, round(p.time_us, 2)) for p in file.points] == [(p.size_B, round(p.time_us, 2)) for p in printed.points]


def test_netpipe_5_rounds_what_it_prints() -> None:
    with refused(InputError, "no-results | netpipe5.txt | 1 MB | np.out"):
        read(DATA / "netpipe5.txt")


def test_of_several_series_one_is_chosen() -> None:
    assert read(DATA / "imb2021.txt").what == "pingpong"
    assert read(DATA / "imb2021.txt", what="pingping").what == "pingping"
    with refused(UsageError, "unknown-series | 'bcast'"):
        read(DATA / "imb2021.txt", what="bcast")
    with refused(UsageError, "unknown-series | 'alltoal'"):
        read(DATA / "imb2021.txt", what="alltoal")
    assert read(DATA / "netpipe37-np.out", what="bw").what == "bw"  # np.out does not say


def read_or_refused(file: Path) -> int:
    """The number of points read, 0 when the file is refused in one line that names it."""
    try:
        return sum(len(m.points) for m in read_all(file))
    except RetrompiError as error:
        return 0 if file.name in str(error) and "\n" not in str(error) else 10**9


@for_each("name", [o[0] for o in OUTPUTS])
def test_a_damaged_file_is_an_error_of_its_own_or_fewer_points(name: str, tmp_path: Path) -> None:
    """Cut anywhere, it is read as far as it goes or refused in one line that names the file."""
    text = (DATA / name).read_text(encoding="utf-8")
    whole = sum(len(m.points) for m in read_all(DATA / name))
    for share in (0.2, 0.5, 0.9, 0.97):
        file = tmp_path / f"cut-{share}.txt"
        file.write_text(text[: int(share * len(text))], encoding="utf-8")
        assert read_or_refused(file) <= whole


@for_each(
    "name, old, new, says",
    [
        ("osu74-latency.txt", r"\n64 +[\d.]+", "\n64   nothing", r":\d+: 'nothing' is no number; a time in us is expected"),
        ("osu74-bcast-f.txt", r"(\n64 .*) \d+\n", r"\1\n", r":\d+: a row of 4 columns where the table has 5"),
        ("osu74-bw.txt", r"\n64 +[\d.]+", "\n64   -0.01", r":\d+: -0\.01 cannot be a rate in MB/s"),
        ("imb2021.txt", r"(\n +64 +100 +\S+)", r"\1 x y", r":\d+: a row of 6 columns where the table has 4"),
        ("mpptest.txt", r"0\t1\t1\t128\t\S+", "0\t1\t1\t128\t-3", r":\d+: -3 cannot be a time in us"),
        ("mpptest.txt", r"0\t1\t1\t128\t\S+", "0\t1\t1\t128", r":\d+: a row of 5 columns where mpptest has 6"),
        ("mpi4py-pingpong.txt", "(e-0\\d) \u00b1", r"\1 and", r":\d+: a row of mpi4py's pingpong is"),
        ("netpipe37.txt", r"in +[\d.]+ usec", "in 0.00 usec", r":\d+: a time of 0: fewer repetitions"),
    ],
)
def test_an_error_names_file_and_line_and_what_would_be_right(tmp_path: Path, name: str, old: str, new: str, says: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    file = tmp_path / name
    file.write_text(changed, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(str(file)) + says):
        read_all(file)


# -- tables -----------------------------------------------------------------------------------------------------------------


def table(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "curve.csv"
    file.write_text(text, encoding="utf-8")
    return file


@for_each(
    "text, said, points",
    [
        ("size_B,time_us\n# way: one way\n0,1\n8,2\n", {}, [(0, 1.0), (8, 2.0)]),
        ("size_B,rtt_us\n8,4\n", {}, [(8, 2.0)]),
        ("size_B;round trip [ms]\n8;4\n", {}, [(8, 2000.0)]),
        ("# unit: ms\n# way: round trip\nsize time\n8 4\n64KiB 8\n", {}, [(8, 2000.0), (65536, 4000.0)]),
        ("bytes,t\n8,4\n", {"unit": "us", "way": "one way"}, [(8, 4.0)]),
        ("8 4\n16 8\n", {"unit": "us", "way": "round trip"}, [(8, 2.0), (16, 4.0)]),
        ("0 0\n1000 10\n", {"unit": "MB/s"}, [(1000, 100.0)]),
        ("size_B,bandwidth [MiB/s]\n1048576,2\n", {}, [(1048576, 5e5)]),
        ("size_B,bandwidth_Mbps\n1000,8\n", {}, [(1000, 1000.0)]),
        ("a,b,c\n8,x,3\n", {"columns": {"size": "1", "time": "3"}, "unit": "ms", "way": "one way"}, [(8, 3000.0)]),
        ("when,len,latency (us)\nnow,8,3\n", {"way": "one way"}, [(8, 3.0)]),
        ("size_B,time_us,bandwidth_MBps,repetitions\n8,2,4,1000\n", {"way": "one way"}, [(8, 2.0)]),
        ("size_B repetitions time_us bandwidth_MBps\n8 10 2 4\n", {"way": "one way"}, [(8, 2.0)]),
        ("size_B,time_us,bandwidth_MBps\n8,2,16\n", {"columns": {"rate": "3"}}, [(8, 0.5)]),
        ("size_B,time_us,bandwidth_MBps\n0,2,0\n8,4,2\n", {}, [(0, 2.0), (8, 4.0)]),
        ("size_B,time_us,bandwidth_MBps\n0,2,0\n8,4,4\n", {}, [(0, 1.0), (8, 2.0)]),
        ("# way: Round-Trip\nsize_B,time_us\n8,4\n", {}, [(8, 2.0)]),
        ("\ufeffsize_B,time_us\r\n8,2\r\n", {"way": "one way"}, [(8, 2.0)]),
    ],
)
def test_a_table_is_read_as_it_is_declared(tmp_path: Path, text: str, said: dict[str, str], points: list[tuple[int, float]]) -> None:
    found = read(table(tmp_path, text), **said)
    assert [(p.size_B, pytest.approx(p.time_us)) for p in found.points] == points
    assert found.what == "pingpong"


@for_each(
    "text, said, says",
    [
        ("size_B,time\n8,2\n", {"way": "one way"}, "no-results | 'time' | --unit"),
        ("size_B,rate\n8,2\n", {}, "no-results | 'rate' | --unit"),
        ("size_B,time_us\n8,2\n", {}, "no-results"),
        ("size_B,time_us,bandwidth_MBps\n8,4,3\n", {}, "no-results"),
        ("size_B,rtt_us\n8,2\n", {"way": "one way"}, "bad-usage"),
        ("size_B,time_us\n8,2\n", {"unit": "ms", "way": "one way"}, "bad-usage"),
        ("size_B,time_us\n8,2\n", {"unit": "fortnight"}, "unknown-name | 'fortnight'"),
        ("# unit: mbps\nsize_B,rate\n8,2\n", {}, "unknown-name | 'mbps'"),
        ("size_B,time_us\n8,two\n", {"way": "one way"}, "bad-syntax | 'two'"),
        ("size_B,time_us\n8,2\n\n16\n", {"way": "one way"}, "no-results"),
        ("size_B,time_us\n8,0\n", {"way": "one way"}, "no-results"),
        ("size_B,time_us\n64K,1\n", {"way": "one way"}, "bad-unit | '64K' | 'K'"),
        (
            "colour,time_us\nred,1\n",
            {"way": "one way"},
            "no-results",
        ),
        ("size_B,colour\n1,red\n", {"way": "one way"}, "no-results"),
        ("1,2,3\n", {"unit": "us", "way": "one way"}, "no-results"),
        ("size_B,t\n1,2\n", {"columns": {"tme": "2"}}, "unknown-name | 'tme'"),
        ("size_B,t\n1,2\n", {"columns": {"time": "3"}}, "unknown-name | '3'"),
        ("size_B,time_us\n", {"way": "one way"}, "no-results"),
        ("\n\n", {}, "empty-file"),
    ],
)
def test_what_a_table_does_not_say_is_asked_for(tmp_path: Path, text: str, said: dict[str, str], says: str) -> None:
    with refused(RetrompiError, says):
        read(table(tmp_path, text), **said)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 1 << 30), st.floats(1e-3, 1e6)), min_size=1, max_size=8, unique_by=lambda p: p[0]),
    st.sampled_from([*TIMES, *RATES]),
    st.sampled_from(["one way", "round trip"]),
    st.sampled_from([",", ";", "\t", " "]),
)
def test_the_same_curve_in_any_unit(
    tmp_path_factory: pytest.TempPathFactory, points: list[tuple[int, float]], unit: str, way: str, delimiter: str
) -> None:
    """Microseconds one way written in any unit are the same microseconds again."""
    ways = 2 if way == "round trip" else 1
    rows = [(s, us * ways / TIMES[unit] if unit in TIMES else s / us / RATES[unit]) for s, us in points]
    file = tmp_path_factory.mktemp("units") / "curve.csv"
    file.write_text(f"# unit: {unit}\n# way: {way}\nsize{delimiter}{'time' if unit in TIMES else 'rate'}\n"
                    + "".join(f"{s}{delimiter}{v!r}\n" for s, v in rows))
    found = {p.size_B: p.time_us for p in read(file).points}
    assert found == {s: pytest.approx(us, rel=1e-9) for s, us in points}


def test_columns_of_parts_and_spread(tmp_path: Path) -> None:
    text = "size_B,time_us,send_us,recv_us,gap_ns,stdev_us,samples\n# way: one way\n8,10,2,3,500,0.5,7\n"
    point = read(table(tmp_path, text)).points[0]
    assert point.more == {"send_us": 2.0, "recv_us": 3.0, "gap_us": 0.5}
    assert (point.spread, point.repetitions) == (0.05, 7)


def test_comments_are_provenance(tmp_path: Path) -> None:
    text = (
        "# tool: ruler and figure 3\n# host: a Pentium\n# date: 1998\n# source: a paper\n# what: bcast\n# ranks: 4\nsize_B,time_us\n8,1\n"
    )
    found = read(table(tmp_path, text), what="bcast", way="one way")
    p = found.provenance
    assert (p.tool, p.host, p.date, p.said, found.what, found.ranks) == (
        "ruler and figure 3",
        "a Pentium",
        "1998",
        ("source: a paper",),
        "bcast",
        4,
    )


def test_options_of_tables_are_refused_for_output_that_states_them() -> None:
    for said in ({"unit": "us"}, {"way": "one way"}, {"columns": {"size": "1"}}):
        with pytest.raises(UsageError, match="is for tables"):
            read_all(DATA / "osu74-latency.txt", **said)  # type: ignore[arg-type]
    with refused(UsageError, "unknown-format | 'ozu' | 'osu'"):
        read_all(DATA / "osu74-latency.txt", "ozu")
    with refused(InputError, "unreadable-file"):
        read_all(DATA)
    with refused(InputError, "unreadable-file"):
        read_all(DATA / "none")
    assert "csv" in FORMATS


# -- the store and the figures ----------------------------------------------------------------------------------------------------


def test_import_list_show(retrompi: Callable[..., Outcome], store_path: Path) -> None:
    def call(*words: str) -> Outcome:
        told = retrompi("--store", str(store_path), "measured", *words)
        assert told.code == 0, told.err
        return told

    first = json.loads(call("import", str(DATA / "imb2021.txt"), "--machine", "a machine", "--measured-by", "me", "--json").out)
    assert len(first) == 14
    assert len({r["label"] for r in first}) == 14
    again = json.loads(call("import", str(DATA / "imb2021.txt"), "--machine", "a machine", "--measured-by", "me", "--json").out)
    assert [r["id"] for r in again] == [r["id"] for r in first]
    one = json.loads(call("import", str(DATA / "osu74-latency.txt"), "--label", "here", "--json").out)[0]
    assert (one["label"], one["tool"], one["points"], one["units"]) == ("here", "OSU Micro-Benchmarks", 23, "us, MB/s of 10^6 B")
    assert len(json.loads(call("list", "--json").out)) == 15
    shown = json.loads(call("show", "here", "--json").out)[0]
    direct = json.loads(call("show", str(DATA / "osu74-latency.txt"), "--json").out)[0]
    assert shown["points"] == direct["points"]
    assert shown["provenance"] == direct["provenance"]
    assert "sha256" in call("show", str(one["id"])).out
    assert call("show", "here", "--csv").out.startswith("label,what,size_B,time_us")
    run = json.loads(retrompi("--store", str(store_path), "runs", "list", "--kind", "measured", "--json").out)
    assert len(run) == 15


def test_nothing_measured_yet(retrompi: Callable[..., Outcome], store_path: Path) -> None:
    retrompi("--store", str(store_path), "measured", "import", str(DATA / "osu74-latency.txt"), "--label", "here")
    told = retrompi("--store", str(store_path), "measured", "show", "hear")
    agrees(told, "unknown-name | 'here'")
    told = retrompi("measured", "import", str(DATA / "netpipe5.txt"))
    assert (told.code, told.err.count("\n")) == (2, 1)
    told = retrompi("measured", "import", str(DATA / "osu74-latency.txt"), "--column", "size")
    agrees(told, "bad-syntax | size")


def test_a_measured_curve_stands_beside_a_simulated_one(retrompi: Callable[..., Outcome], store_path: Path, tmp_path: Path) -> None:
    file = table(tmp_path, "# way: one way\nsize_B,time_us\n0,400\n4096,3000\n")
    assert retrompi("--store", str(store_path), "measured", "import", str(file), "--label", "somewhere else").code == 0
    told = retrompi(
        "--store", str(store_path), "pingpong", "-m", "wmpi", "--mode", "distributed", "--reps", "2", "--measured", "somewhere else"
    )
    assert told.code == 0, told.err
    assert "simulated / measured - 1" in told.out
    assert len([line for line in told.out.splitlines() if line.endswith("%")]) == 2
    page = tmp_path / "page.html"
    told = retrompi(
        "--store", str(store_path), "pingpong", "-m", "wmpi", "--mode", "distributed", "--reps", "2", "--sizes", "0,4KiB", "--overlay",
        "curve.csv", "-o", str(page),
    )
    assert told.code == 0, told.err
    assert "somewhere else, measured" in page.read_text()
    told = retrompi("--store", str(store_path), "pingpong", "-m", "wmpi", "--measured", "somewhere")
    agrees(told, "unknown-name | 'somewhere else'")
