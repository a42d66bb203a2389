"""Writing DUMPI files for tests, from the description of the format and not from the reader's tables.

Only the calls that tests need; every method is one record. Numbers are big-endian; handles are those of the format: MPI_COMM_WORLD 2, the
first communicator of the program's own 4, MPI_REQUEST_NULL 1, MPI_INT 9, MPI_DOUBLE 14.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

MAGIC = b"\xff\xaa\xddDUMPI"
WORLD, SELF, INT, DOUBLE, BYTE, SUM = 2, 3, 9, 14, 5, 3
NUMBERS = {
    "Send": 0, "Recv": 1, "Isend": 8, "Irecv": 12, "Wait": 13, "Test": 14, "Waitany": 16, "Testany": 17, "Waitall": 18, "Waitsome": 20,
    "Iprobe": 22,
    "Send_init": 26, "Recv_init": 30, "Start": 31, "Startall": 32, "Sendrecv": 33, "Type_vector": 36, "Type_commit": 46, "Barrier": 52,
    "Bcast": 53, "Gather": 54, "Gatherv": 55, "Scatterv": 57, "Allgatherv": 59, "Alltoallv": 61, "Reduce": 62, "Allreduce": 65,
    "Comm_group": 72, "Group_incl": 76, "Comm_rank": 82, "Comm_dup": 84, "Comm_create": 85, "Comm_split": 86, "Comm_free": 87,
    "Intercomm_create": 91, "Intercomm_merge": 92, "Cart_create": 99, "Cart_sub": 111, "Init": 124, "Finalize": 125, "Put": 143,
    "Win_create": 145, "Win_fence": 146, "Win_free": 147, "Win_lock": 149, "Win_unlock": 153, "File_write": 250,
    "Cancel": 24, "Request_free": 15,
}
END = 293
FUNCTIONS = 290

Status = tuple[int, int, int]
"""bytes, source, tag"""


def i(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


def h(*values: int) -> bytes:
    return struct.pack(f">{len(values)}h", *values)


def b(*values: int) -> bytes:
    return struct.pack(f">{len(values)}b", *values)


def array(values: Sequence[int]) -> bytes:
    return i(len(values), *values)


class Rank:
    """The calls of a rank; each takes `took` ns after `gap` ns of computation."""

    def __init__(self, statuses: bool = True, version: tuple[int, int, int] = (1, 1, 0), clocks: str = "both") -> None:
        self.statuses_on = statuses
        self.version = version
        self.clocks = clocks
        self.cpu = 0
        self.wall = 5_000_000_000
        self.body = b""
        self.counts = [0] * (FUNCTIONS + 1)
        self.offsets: list[int] = []

    def call(self, name: str, arguments: bytes = b"", gap: int = 1000, took: int = 500) -> Rank:
        self.offsets.append(16 + len(self.body))
        number = NUMBERS[name]
        self.counts[number] += 1
        mask = (
            64
            | (3 if self.statuses_on else 0)
            | (4 if self.clocks in ("both", "cpu") else 0)
            | (8 if self.clocks in ("both", "wall") else 0)
        )
        self.body += struct.pack(">HBH", number, mask, 0)
        for clock in ("cpu", "wall"):
            begin = getattr(self, clock) + gap * (1 if clock == "cpu" else 3)
            end = begin + took
            setattr(self, clock, end)
            if mask & (4 if clock == "cpu" else 8):
                self.body += struct.pack(">HIHI", *divmod(begin, 10**9), *divmod(end, 10**9))
        self.body += arguments
        return self

    def status(self, *some: Status) -> bytes:
        if not self.statuses_on:
            return b""
        out = i(len(some))
        for size, source, tag in some:
            out += i(size, source) + b(0, 0) + (i(tag) if self.version >= (0, 6, 3) else b"")
        return out

    def init(self) -> Rank:
        arguments = [b"./a.out", b"-x"]
        return self.call("Init", i(len(arguments)) + b"".join(i(len(a)) + a for a in arguments))

    def finalize(self) -> Rank:
        return self.call("Finalize")

    def send(self, name: str, count: int, datatype: int, peer: int, tag: int, comm: int = WORLD, request: int | None = None) -> Rank:
        return self.call(name, i(count) + h(datatype) + i(peer, tag) + h(comm) + (b"" if request is None else i(request)))

    def recv(self, count: int, datatype: int, source: int, tag: int, status: Sequence[Status] = (), comm: int = WORLD) -> Rank:
        return self.call("Recv", i(count) + h(datatype) + i(source, tag) + h(comm) + self.status(*status))

    def wait(self, request: int, *status: Status) -> Rank:
        return self.call("Wait", i(request) + self.status(*status))

    def waitall(self, requests: Sequence[int], *statuses: Status) -> Rank:
        return self.call("Waitall", i(len(requests)) + array(requests) + self.status(*statuses))

    def write(self, path: Path, sizes: Sequence[int] | None = None) -> None:
        """The file: lead-in, calls, header, footer, type sizes, index."""
        out = MAGIC
        body = len(out)
        out += i(0, 0) + self.body + struct.pack(">H", END)
        header = len(out)
        out += bytes(self.version) + struct.pack(">Q", 1_300_000_000)
        for text in (b"node", b"user"):
            out += struct.pack(">H", len(text)) + text
        out += i(0) + i(0)
        footer = len(out)
        out += struct.pack(">Q", 0xF007FEE7) + struct.pack(f">{FUNCTIONS + 1}I", *self.counts) + bytes(4 * (FUNCTIONS + 1))
        table = 0
        if sizes is not None:
            table = len(out)
            out += array(sizes)
        out += MAGIC + struct.pack(">7Q", table, 0, 0, header, body, footer, 0)
        path.write_bytes(out)


def write(folder: Path, ranks: Sequence[Rank], sizes: Sequence[int] | None = None) -> Path:
    """The files of a job, and its meta file, whose path is returned."""
    for number, rank in enumerate(ranks):
        rank.write(folder / f"job-{number:04d}.bin", sizes)
    meta = folder / "job.meta"
    meta.write_text(
        f"hostname=node\nnumprocs={len(ranks)}\nusername=user\nstartime=1\nfileprefix=job\nversion=1\nsubversion=1\nsubsubversion=0\n"
    )
    return meta
