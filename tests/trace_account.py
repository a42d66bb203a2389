"""An account of a trace by its text alone, made without the project's reader: what a replay must have carried out."""

from __future__ import annotations

import io
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

# docs/trace-format.md, "Types"; -1 and the codes that SMPI has no size for count nothing.
SIZES = [8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4]
SIZES += [8, 16, 8, 16, 16, 4, 2, 4, 8, 16, 32, 0, 0, 0, 0, 0, 0, 1, 8, 8]
SENDS = {"send", "Ssend", "ssend", "bsend", "rsend", "isend", "ISsend", "issend", "ibsend", "irsend"}
SAME = {"ssend": "Ssend", "issend": "ISsend", "waitany": "waitAny", "Win_flush": "Win_flush_all"}
"""Second names of one call, as the reader's list gives them."""
NOWHERE = {"-333", "-666"}
"""A destination that is nobody: MPI_PROC_NULL, and what SMPI's tracer writes for it."""
NOT_CARRIED_OUT = {"comm_size", "comm_split", "comm_dup", "location"}
"""Accepted and ignored, as in SMPI: listed among the warnings where a communicator is lost by it."""


@dataclass
class Account:
    """Lines by call, messages and bytes of the sends that go somewhere, receives that are of somebody; of all ranks."""

    calls: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    sent_bytes: int = 0
    received: int = 0


def texts(archive: Path) -> Iterator[tuple[str, list[str]]]:
    """(folder, the texts of its ranks in order) of every trace in a .tar.zst archive."""
    with archive.open("rb") as packed:
        data = zstandard.ZstdDecompressor().stream_reader(packed).read()
    folders: dict[str, dict[int, str]] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            folder, _, name = member.name.rpartition("/")
            if name.startswith("rank-"):
                file = tar.extractfile(member)
                assert file is not None
                folders.setdefault(folder, {})[int(name[5:-4])] = file.read().decode()
    for folder, ranks in folders.items():
        assert sorted(ranks) == list(range(len(ranks)))
        yield folder, [ranks[r] for r in range(len(ranks))]


def account(ranks: list[str]) -> Account:
    """Counts the lines of all ranks' texts."""
    told = Account()
    for text in ranks:
        default = 6
        for line in text.splitlines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            call, rest = words[1], words[2:]
            if call == "init" and rest:
                default = 0
            if call not in NOT_CARRIED_OUT:
                told.calls[SAME.get(call, call)] += 1
            size_of = None
            if call in SENDS and rest[0] not in NOWHERE:
                size_of = (rest[2], rest[3] if len(rest) > 3 else str(default))
            elif call == "sendRecv" and rest[1] not in NOWHERE:
                size_of = (rest[0], rest[4])
            source = rest[0] if call in ("recv", "irecv") else rest[3] if call == "sendRecv" else "-666"
            told.received += source != "-666"
            if size_of:
                told.sent += 1
                told.sent_bytes += int(float(size_of[0])) * (SIZES[int(size_of[1])] if size_of[1] != "-1" else 0)
    return told
