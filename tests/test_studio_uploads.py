"""What strangers upload: bytes that are refused, or read apart and told about in one line."""

from __future__ import annotations

import base64
import gzip
import io
import os
import pickle
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard
from cases import for_each
from refusals import refused

pytest.importorskip("dash", reason="the studio needs dash: pip install dash")

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.studio.anatomy import replay_job
from retrompi.studio.curves import uploaded_curves
from retrompi.studio.jobs.limits import Limits
from retrompi.studio.jobs.queue import Jobs
from retrompi.studio.requests import uploads
from retrompi.studio.requests.uploads import Uploads, label_of

MIB = 1 << 20
GOOD = b"0 init\n1 init\n0 send 1 0 100 6\n1 recv 0 0 100 6\n0 finalize\n1 finalize\n"
RANKS = (b"0 init\n0 send 1 0 100 6\n0 finalize\n", b"1 init\n1 recv 0 0 100 6\n1 finalize\n")
ASKED = {"trace": "upload:x", "model": "wmpi", "platform": "nt-pair", "mode": "shared", "ranks": 2, "size": 100, "set": ""}


def sent(raw: bytes) -> str:
    """As a browser sends it."""
    return "data:application/octet-stream;base64," + base64.b64encode(raw).decode()


def tarred(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def linked() -> bytes:
    """An archive whose rank 0 is a link to a file of ours."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("rank-0.txt")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
        second = tarfile.TarInfo("rank-1.txt")
        second.size = len(RANKS[1])
        tar.addfile(second, io.BytesIO(RANKS[1]))
    return out.getvalue()


def zipped(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


class Bang:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Uploads]:
    found = Uploads(tmp_path, MIB)
    yield found
    found.close()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    found = Jobs(Limits())
    yield found
    found.close()


def one_line(error: BaseException | str) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < 600
    return text


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd",
        "..\\..\\boot.ini",
        "/etc/shadow",
        "a/../../b",
        "<script>alert(1)</script>",
        "x" * 5000,
        "a\0b",
        "\x1b[31mred",
        "",
        "..",
        None,
        7,
        "=cmd|' /C calc'!A0",
        "con",
        "C:\\aux",
    ],
)
def test_a_name_is_a_label_and_never_a_path(name: Any, kept: Uploads, tmp_path: Path) -> None:
    upload = kept.add("s", name, sent(GOOD))
    assert upload.label.isprintable()
    assert 0 < len(upload.label) <= 60
    assert "/" not in upload.label
    assert "\\" not in upload.label
    path, found = kept.find("s", upload.id)
    assert found == upload
    assert path.read_bytes() == GOOD
    inside = path.resolve().relative_to(kept.folder.resolve())
    assert len(inside.parts) == 2
    assert inside.parts[1] == upload.id
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700
    assert sum(1 for f in tmp_path.rglob("*") if f.is_file()) == 1


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (sent(b"x" * (MIB + 1)), "longer than 1 MiB"),
        ("data:text/plain;base64," + "A" * (2 * MIB), "longer than 1 MiB"),
        ("data:text/plain;base64,@@@@", "not base64"),
        ("data:text/plain;base64,AAA", "not base64"),
        ("data:text/plain,plain", "not as a browser sends it"),
        ("no comma", "not as a browser sends it"),
        ("x" * 300 + ";base64,AAAA", "not as a browser sends it"),
        ("data:;base64,", "empty"),
        (None, "nothing was uploaded"),
        (17, "nothing was uploaded"),
        ([sent(GOOD)], "nothing was uploaded"),
        ({"a": 1}, "nothing was uploaded"),
        ("data:;base64,\u00e4\u00f6", "not base64"),
    ],
)
def test_what_is_no_upload_is_refused_in_a_line(contents: Any, expected: str, kept: Uploads) -> None:
    with pytest.raises(UsageError) as error:
        kept.add("s", "trace.txt", contents)
    assert expected in one_line(error.value)
    assert kept.of("s") == []


def test_another_sessions_upload_is_not_there(kept: Uploads) -> None:
    mine = kept.add("mine", "a", sent(GOOD))
    theirs = kept.add("theirs", "b", sent(GOOD))
    assert [u.id for u in kept.of("mine")] == [mine.id]
    for session, upload_id in (("mine", theirs.id), ("theirs", mine.id), ("mine", "../" + mine.id), ("mine", ""), ("mine", "/etc/passwd")):
        with refused(UsageError, "gone"):
            kept.find(session, upload_id)


def test_a_session_keeps_its_newest_and_loses_all_when_it_sleeps(kept: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [kept.add("s", f"t{i}", sent(GOOD)) for i in range(uploads.A_SESSION + 3)]
    assert [u.label for u in kept.of("s")] == [u.label for u in reversed(made[3:])]
    assert sum(1 for f in kept.folder.rglob("*") if f.is_file()) == uploads.A_SESSION
    now = time.monotonic()
    monkeypatch.setattr(uploads.time, "monotonic", lambda: now + uploads.IDLE_S + 1)
    assert kept.of("other") == []
    assert [f for f in kept.folder.rglob("*") if f.is_file()] == []
    with refused(UsageError, "gone"):
        kept.find("s", made[-1].id)


def test_no_crowd_of_sessions_fills_the_disk(kept: Uploads) -> None:
    for i in range(uploads.SESSIONS + 10):
        kept.add(f"session {i}", "t", sent(GOOD))
    assert sum(1 for f in kept.folder.rglob("*") if f.is_file()) == uploads.SESSIONS
    assert kept.of("session 0") == []
    assert len(kept.of(f"session {uploads.SESSIONS + 9}")) == 1


# -- what is read ------------------------------------------------------------------------------------------------------

READ: dict[str, bytes] = {
    "plain": GOOD,
    "gzip": gzip.compress(GOOD),
    "zstd": zstandard.compress(GOOD),
    "tar": tarred(("rank-0.txt", RANKS[0]), ("rank-1.txt", RANKS[1])),
    "tar.zst": zstandard.compress(tarred(("t/rank-0.txt", RANKS[0]), ("t/rank-1.txt", RANKS[1]))),
    "zip": zipped(("rank-0.txt", RANKS[0]), ("rank-1.txt", RANKS[1])),
    "zip of an index": zipped(("x/index.txt", b"a\nb\n"), ("x/a", RANKS[0]), ("x/b", gzip.compress(RANKS[1]))),
}


def done(jobs: Jobs, path: Path, label: str) -> tuple[str, Any]:
    """(status, outcome or error) of a replay of an uploaded file in a job of its own."""
    job = jobs.submit("s", "replay", replay_job.perform, ASKED, str(path), label)
    state = jobs.wait(job, "s", 60)
    return state.status, state.result if state.status == "done" else state.error


@pytest.mark.parametrize("form", READ)
def test_every_form_of_a_trace_is_replayed(form: str, kept: Uploads, jobs: Jobs) -> None:
    upload = kept.add("s", f"my {form}", sent(READ[form]))
    status, result = done(jobs, kept.find("s", upload.id)[0], upload.label)
    assert status == "done", result
    assert (result["outcome"], result["ranks"], result["messages"], result["bytes"], result["name"]) == (
        "completed",
        2,
        1,
        100,
        upload.label,
    )
    assert {"bytes", "messages"} <= set(result["figures"])
    assert "retrompiTimeline(" in result["chart"]


@cache
def bombs() -> dict[str, bytes]:
    zeros = b"0" * MIB
    packer = zstandard.ZstdCompressor().compressobj()
    zst = b"".join(packer.compress(zeros) for _ in range(140)) + packer.flush()
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as z:
        for _ in range(140):
            z.write(zeros)
    lie = bytearray(zipped(("rank-0.txt", b"0" * (2 * MIB)), ("rank-1.txt", RANKS[1])))
    return {
        "zstd": zst,
        "gzip": out.getvalue(),
        "zstd in zstd": zstandard.compress(zst),
        "zip": zipped(*((f"rank-{i}.txt", zeros * 16) for i in range(9))),
        "zip that lies": bytes(lie).replace((2 * MIB).to_bytes(4, "little"), (100).to_bytes(4, "little")),
        "zstd member": tarred(("rank-0.txt", zst), ("rank-1.txt", RANKS[1])),
    }


HOSTILE: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "an unknown action": (lambda p: GOOD.replace(b"0 send", b"0 sned", 1), "BROKEN.txt:3"),
    "a word for a number": (lambda p: GOOD.replace(b"100", b"lots", 1), "BROKEN.txt:3"),
    "nothing but NULs": (lambda p: b"\0" * 4096, "BROKEN.txt"),
    "NULs within": (lambda p: GOOD.replace(b"1 recv", b"1 re\0v", 1), "BROKEN.txt:4"),
    "an enormous rank": (lambda p: GOOD + b"4000000000 init\n", "BROKEN.txt:7"),
    "a rank beyond 64 bits": (lambda p: GOOD + b"99999999999999999999999 init\n", "BROKEN.txt:7"),
    "a rank that makes millions": (lambda p: GOOD + b"9999999 init\n", "BROKEN.txt"),
    "an enormous count": (lambda p: GOOD.replace(b"100", b"9" * 400, 1), "BROKEN.txt:3"),
    "a negative size": (lambda p: GOOD.replace(b"0 100", b"0 -100", 1), "BROKEN.txt:3"),
    "a peer that is not there": (lambda p: GOOD.replace(b"send 1", b"send 77", 1), "BROKEN.txt:3"),
    "a line without an end": (lambda p: b"0 " + b"x" * (4 * MIB // 8), "BROKEN.txt:1"),
    "no trace at all": (lambda p: b"%PDF-1.4 nothing of interest\n", "BROKEN.txt:1"),
    "an index of our files": (lambda p: b"/etc/passwd\n/etc/hostname\n", "BROKEN.txt:1"),
    "an index of a neighbour": (lambda p: str(p / "secret").encode() + b"\n", "BROKEN.txt:1"),
    "an index that climbs": (lambda p: b"../../../../../../etc/passwd\n", "BROKEN.txt:1"),
    "a pickle": (lambda p: pickle.dumps(Bang(p / "ran")), "BROKEN.txt"),
    "Python": (lambda p: f"import os; os.mkdir({str(p / 'ran')!r})\n".encode(), "BROKEN.txt:1"),
    "a link in an archive": (lambda p: linked(), "BROKEN.txt"),
    "an archive that climbs": (lambda p: tarred(("../../rank-0.txt", RANKS[0]), ("/rank-1.txt", RANKS[1])), "BROKEN.txt"),
    "a zip that climbs": (lambda p: zipped(("../rank-0.txt", RANKS[0]), ("rank-1.txt", RANKS[1])), "BROKEN.txt"),
    "half an archive": (lambda p: tarred(("rank-0.txt", RANKS[0]), ("rank-1.txt", RANKS[1]))[:700], "BROKEN.txt"),
    "half a zip": (lambda p: READ["zip"][:-40], "BROKEN.txt"),
    "half a gzip": (lambda p: gzip.compress(GOOD)[:-12], "BROKEN.txt"),
    "half a zstd": (lambda p: zstandard.compress(GOOD)[:-6], "BROKEN.txt"),
    "an encrypted zip": (
        lambda p: (
            READ["zip"]
            .replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01")
            .replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
        ),
        "BROKEN.txt",
    ),
    **{
        f"a bomb: {k}": (lambda p, k=k: bombs()[k], "BROKEN.txt")
        for k in ("zstd", "gzip", "zstd in zstd", "zip", "zip that lies", "zstd member")
    },
}


@for_each("case", HOSTILE)
def test_a_hostile_trace_is_one_line_with_the_users_own_name(case: str, tmp_path: Path, jobs: Jobs) -> None:
    make, where = HOSTILE[case]
    (tmp_path / "secret").write_bytes(b"the secret\n")
    kept = Uploads(tmp_path, 8 * MIB)
    try:
        upload = kept.add("s", "BROKEN.txt", sent(make(tmp_path)))
        path = kept.find("s", upload.id)[0]
        status, error = done(jobs, path, upload.label)
        assert status == "failed", error
        line = one_line(error)
        assert line.startswith(where), line
        assert str(tmp_path) not in line.replace(str(tmp_path / "secret"), "")
        assert upload.id not in line
        assert "root:" not in line
        assert "the secret" not in line
        assert not (tmp_path / "ran").exists()
        assert {f for f in tmp_path.rglob("*") if f.is_file()} == {tmp_path / "secret", path}
    finally:
        kept.close()


def test_a_trace_that_hangs_is_a_result_with_who_waits_for_whom(kept: Uploads, jobs: Jobs) -> None:
    text = b"0 init\n1 init\n0 recv 1 0 100 6\n1 recv 0 0 100 6\n0 finalize\n1 finalize\n"
    upload = kept.add("s", "hang <b>.txt", sent(text))
    status, result = done(jobs, kept.find("s", upload.id)[0], upload.label)
    assert status == "done"
    assert result["outcome"] == "deadlock"
    assert result["closed"]
    assert {(r["process"], r["file"], r["line"]) for r in result["cycle"]} == {("rank 0", "hang <b>.txt", 3), ("rank 1", "hang <b>.txt", 4)}
    assert len(result["waits"]) == 2


def test_who_takes_too_much_processor_time_is_ended_with_a_line(jobs: Jobs) -> None:
    job = jobs.submit("s", "reading", spin)
    state = jobs.wait(job, "s", 60)
    assert state.status == "failed"
    assert "more processor time" in one_line(state.error)


def spin(report: Any) -> None:
    with uploads.confine_process(cpu_s=1):
        while True:
            pass


def test_who_takes_too_much_memory_or_disk_gets_an_error(jobs: Jobs) -> None:
    job = jobs.submit("s", "reading", greedy)
    state = jobs.wait(job, "s", 60)
    assert state.status == "done"
    assert state.result == ["MemoryError", "OSError", "as before"]


def greedy(report: Any) -> list[str]:
    import resource
    import tempfile

    found = []
    before = [resource.getrlimit(k) for k in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)]
    with uploads.confine_process(memory_B=64 << 20):
        try:
            bytearray(1 << 30)
        except MemoryError:
            found.append("MemoryError")
        try:
            with tempfile.TemporaryFile() as f:
                f.truncate(2 * uploads.MOST_UNPACKED + 1)
        except OSError:
            found.append("OSError")
    after = [resource.getrlimit(k) for k in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)]
    return [*found, "as before" if before == after else "otherwise"]


# -- measured curves ---------------------------------------------------------------------------------------------------


def test_a_measured_table_is_read(tmp_path: Path) -> None:
    file = tmp_path / "id"
    file.write_text("# way: one way\nsize_B,time_us\n1,10\n1024,20\n")
    (found,) = uploads.curves(str(file), "mine.csv")
    assert [p.size_B for p in found.points] == [1, 1024]


@for_each(
    "text",
    [
        "size_B,time_us\n1,ten\n",
        "size_B,time_us\n1\n",
        "",
        "\0\0\0\n",
        "size_B,time_us\n1,-5\n",
        "<script>alert(1)</script>\n",
        "=1+1,2\n",
        "size_B,time_us\n" + "9" * 5000 + ",1\n",
    ],
)
def test_a_broken_table_is_one_line_with_the_users_own_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "id-of-ours"
    file.write_text(text)
    with pytest.raises(RetrompiError) as error:
        uploads.curves(str(file), "mine.csv")
    line = one_line(error.value)
    assert "mine.csv" in line
    assert "id-of-ours" not in line
    assert "--" not in line, "a page has no options of a command"


MEASURED = Path(__file__).parent / "data" / "measured"


@for_each(
    "text, line, way_out",
    [
        ("size_B,time_us\n1,10\n", 1, "# way: one way"),
        ("# way: one way\nsize_B,time\n1,10\n", 2, "# unit: us"),
        ("a,time_us\n1,10\n", 1, "size_B"),
        ("size_B,b\n1,10\n", 1, "time_us"),
        ("1,10,5\n", 1, "size_B,time_us"),
        ("# way: one way\nsize_B,time_us\n1,10\n2,fast\n", 4, "fast"),
    ],
)
def test_what_a_table_does_not_say_it_can_say_itself(text: str, line: int, way_out: str, tmp_path: Path) -> None:
    file = tmp_path / "id"
    file.write_text(text)
    with pytest.raises(RetrompiError) as error:
        uploads.curves(str(file), "mine.csv")
    told = one_line(error.value)
    assert told.startswith(f"mine.csv:{line}: ")
    assert way_out in told
    assert "--" not in told


@for_each(
    "file", ["netpipe37.txt", "netpipe5-np.out", "osu74-latency.txt", "imb2021.txt", "mpptest.txt", "mpi4py-pingpong.txt"]
)
def test_what_benchmarks_print_is_laid_over_a_figure(file: str) -> None:
    over, read, wrong = uploaded_curves.read_overlays(str(MEASURED / file), file, uploaded_curves.MOST_CURVES)
    every = [tuple((p.size_B, p.time_us) for p in m.points if p.time_us > 0) for m in uploads.curves(str(MEASURED / file), file)]
    points = [one for one in every if one]
    assert len(over) == len(read) == min(len(points), uploaded_curves.MOST_CURVES)
    assert {tuple((r["size_B"], r["time_us"]) for r in o["rows"]) for o in over} <= set(points)
    assert len({o["name"] for o in over}) == len(over)
    assert all(len(o["name"]) <= 40 and o["run"] == 0 for o in over)
    assert len(wrong) == (len(points) < len(every)) + (len(points) > uploaded_curves.MOST_CURVES)
    for line in read:
        one_line(line)


def test_of_many_curves_the_pingpong_is_drawn_first_and_the_rest_told() -> None:
    source = str(MEASURED / "imb2021.txt")
    every = [m for m in uploads.curves(source, "imb.txt") if any(p.time_us > 0 for p in m.points)]
    assert len(every) > 2
    over, read, wrong = uploaded_curves.read_overlays(source, "imb.txt", 2)
    assert len(over) == 2
    assert over[0]["name"].startswith("pingpong")
    assert "not of a PingPong" in read[1]
    assert f"has {len(every)} curves; 2 of them are drawn" in one_line(wrong[-1])


def test_names_differ_whatever_files_are_called(tmp_path: Path) -> None:
    file = tmp_path / "id"
    file.write_text("# way: one way\nsize_B,time_us\n1,10\n")
    names: list[str] = []
    for label in ("a.csv", "a.csv", "a.csv", "long" * 14 + "1.csv", "long" * 14 + "2.csv", "long" * 14 + "2.csv"):
        over, _, _ = uploaded_curves.read_overlays(str(file), label, 1, names)
        names.append(over[0]["name"])
    assert names[:3] == ["a.csv", "a.csv (2)", "a.csv (3)"]
    assert len(set(names)) == 6
    assert max(map(len, names)) <= 40


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ("1,1e-320\n", "beyond any number"),
        ("1e300,1\n", "sizes up to"),
        ("".join(f"{i},1\n" for i in range(1, uploaded_curves.MOST_POINTS + 2)), "501 sizes"),
        ("0,0\n", "a message takes more than nothing"),
    ],
)
def test_what_no_figure_can_show_is_a_line(rows: str, word: str, tmp_path: Path) -> None:
    file = tmp_path / "id"
    file.write_text("# way: one way\nsize_B,time_us\n" + rows)
    with pytest.raises(RetrompiError) as error:
        uploaded_curves.read_overlays(str(file), "mine.csv", 12)
    assert word in one_line(error.value)
    assert str(error.value).startswith("mine.csv:")


def test_a_page_is_offered_uploads_of_its_own_kind(kept: Uploads) -> None:
    trace, table = kept.add("s", "lu.txt", sent(GOOD)), kept.add("s", "mine.csv", sent(b"1,2\n"), "curve")
    assert [u.id for u in kept.of("s", "trace")] == [trace.id]
    assert [u.id for u in kept.of("s", "curve")] == [table.id]
    with pytest.raises(UsageError) as error:
        kept.add("s", "mine.csv", sent(b"x" * (MIB + 9)), "curve")
    assert "zstd" not in one_line(error.value), "a measured curve is read as it is"


def test_labels_are_told_apart_from_paths() -> None:
    assert label_of("C:\\Users\\me\\lu.txt") == "lu.txt"
    assert label_of("/home/me/lu.txt") == "lu.txt"
    assert label_of("a\nb\tc") == "a?b?c"
