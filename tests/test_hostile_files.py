"""Files that others made and named: bombs are bounded while they are unpacked, and only regular files are opened."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from cases import for_each
from conftest import Outcome
from refusals import refused

import retrompi.measure.launch  # noqa: F401  what measures imports it, and it what measures: it comes first
from retrompi import convert, traces
from retrompi.base.errors import InputError, RetrompiError
from retrompi.base.unpack import Budget, Damaged, pieces, whole
from retrompi.measure import curves
from retrompi.measure.this_machine import recording
from retrompi.spec import registry
from retrompi.studies.define import catalogue
from retrompi.studies.execute import design
from retrompi.traces import files

Run = Callable[..., Outcome]
MIB = 1 << 20


def bomb(kind: str, mib: int, content: bytes = b"\n") -> bytes:
    """That many MiB of one byte, packed."""
    if kind == "gzip":
        return gzip.compress(content * (mib * MIB), 9)
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join([*(packer.compress(content * MIB) for _ in range(mib)), packer.flush()])


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_pieces_are_small_however_much_they_stand_for(kind: str) -> None:
    packed = bomb(kind, 256)
    assert len(packed) < MIB
    longest = total = 0
    for piece in pieces(io.BytesIO(packed)):
        longest, total = max(longest, len(piece)), total + len(piece)
    assert total == 256 * MIB
    assert longest <= 17 * MIB
    with pytest.raises(Damaged):
        whole(io.BytesIO(packed), 100 * MIB)


def test_files_of_one_trace_share_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_UNPACKED", 8 * MIB)
    folder = tmp_path / "trace"
    folder.mkdir()
    for rank in range(5):
        (folder / f"rank-{rank}.txt.zst").write_bytes(bomb("zstd", 2) + zstandard.compress(f"{rank} init\n{rank} finalize\n".encode()))
    with refused(traces.TraceError, "damaged-file | unpacks to more than 8 MiB"):
        traces.read(folder)
    (folder / "rank-4.txt.zst").unlink()
    (folder / "rank-3.txt.zst").unlink()
    assert traces.read(folder).ranks == 3
    budget = Budget(10)
    for extent in (4, 8, 3, 8):  # the same file, read twice
        budget.use("a", extent)
    with pytest.raises(Damaged):
        budget.use("b", 3)


PEAK = """
import sys
from pathlib import Path
from retrompi import traces
try:
    traces.read(sys.argv[1])
except traces.TraceError as error:
    print(error.code, error)
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))  # since exec
"""


@pytest.mark.parametrize("what", ["newlines", "one line", "a tar of them"])
def test_a_bomb_takes_little_memory(tmp_path: Path, what: str) -> None:
    """48 MiB of text in a few KB; without a bound, one piece of it was all of it."""
    data = bomb("zstd", 480, b"x" if what == "one line" else b"\n")
    if what == "a tar of them":
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for rank in range(3):
                member = tarfile.TarInfo(f"t/rank-{rank}.txt.zst")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        data = zstandard.compress(buffer.getvalue())
    (tmp_path / "x.zst").write_bytes(data)
    told = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path / "x.zst")], capture_output=True, text=True, check=True)
    error, peak = told.stdout.splitlines()
    assert error.split()[0] in ("empty-file", "bad-trace", "not-found"), error
    assert int(peak) < 400 * 1024  # KiB


def test_a_sparse_member_is_no_trace(tmp_path: Path) -> None:
    """A header that says 8 EiB of zeros."""
    header = tarfile.TarInfo("t/rank-0.txt")
    header.type = tarfile.GNUTYPE_SPARSE
    raw = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    raw[483:495] = tarfile.itn(1 << 62, 12, tarfile.GNU_FORMAT)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    (tmp_path / "x.tar").write_bytes(bytes(raw) + bytes(1024))
    with refused(traces.TraceError, "damaged-file | sparse"):
        traces.read(tmp_path / "x.tar")


def test_a_measurement_that_is_a_bomb(tmp_path: Path) -> None:
    (tmp_path / "m.json.zst").write_bytes(bomb("zstd", 300, b" "))
    with refused(InputError, "bad-input | no measurement"):
        recording.load(tmp_path / "m.json.zst")


READERS: dict[str, Callable[[Path], object]] = {
    "TI": traces.read,
    "TI, untrusted": lambda p: files.read_alone(p, "x", most=MIB),
    **{name: (lambda p, name=name: convert.find(name).read(p, convert.Losses(), convert.FormatOptions()))  # type: ignore[misc]
       for name in convert.names() if convert.find(name).read is not None},
    "detection": convert.load,
    "measured": curves.read,
    "this machine": recording.load,
}


@for_each("reader", READERS)
@for_each("what", ["a named pipe", "a device", "a folder"])
def test_only_regular_files_are_opened(tmp_path: Path, reader: str, what: str) -> None:
    """Opening a named pipe without a writer waits for ever, and a device may never end."""
    path = tmp_path / "x.zst"
    if what == "a named pipe":
        os.mkfifo(path)
    elif what == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(RetrompiError) as caught:
        READERS[reader](path)
    assert "\n" not in str(caught.value)


def test_a_pipe_beside_the_files_of_ranks(tmp_path: Path) -> None:
    (tmp_path / "index.txt").write_text("rank-0.txt\nrank-1.txt\n")
    (tmp_path / "rank-0.txt").write_text("0 init\n")
    os.mkfifo(tmp_path / "rank-1.txt")
    with refused(traces.TraceError, "not-found | rank-1.txt"):
        traces.read(tmp_path)


def test_a_dumpi_prefix_of_any_length(tmp_path: Path, retrompi: Run) -> None:
    for prefix in ("x" * 300, "x" * 100_000, "a\0b"):
        (tmp_path / "x.meta").write_text(f"numprocs=4000000\nfileprefix={prefix}\n")
        told = retrompi("trace", "convert", str(tmp_path / "x.meta"), str(tmp_path / "out"))
        assert (told.code, told.err.count("\n")) == (2, 1), told.err[:300]
        assert len(told.err) < 1000


@for_each("text", ["a/" * 3000, "a" * 5000, "a" * 5000 + ".toml", "/" + "b" * 300, "./x\0y", "x\0.toml"])
@for_each("look", [registry.model, registry.platform, catalogue.scenario, design.study])
def test_a_text_that_names_no_file_is_an_unknown_name(look: Callable[[str], object], text: str) -> None:
    with pytest.raises(RetrompiError) as caught:
        look(text)
    assert caught.value.exit_code == 2
