"""All measurements of one machine as a file: the fit is made from it and gives the same result on any machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from retrompi.base.errors import InputError
from retrompi.base.files import open_regular
from retrompi.base.unpack import whole
from retrompi.measure.this_machine.bench import BenchRow

__all__ = ["MachineRecording", "load", "save"]

_FORMAT = 1
_LARGEST = 1 << 28
"""Bytes of a recording, unpacked."""


@dataclass
class MachineRecording:
    """``rows``: the lines of the measuring programs, by pair kind (``same``, ``remote``); ``facts``: machine, mpi, caches, noise, plan."""

    facts: dict[str, Any]
    rows: dict[str, list[BenchRow]] = field(default_factory=dict)

    def add(self, kind: str, rows: Iterable[BenchRow]) -> None:
        """More rows of a pair kind."""
        self.rows.setdefault(kind, []).extend(rows)

    def of(self, what: str, kind: str = "same") -> dict[int, list[tuple[float, ...]]]:
        """Size -> values of every round of the measurement ``what``, in the order they were made."""
        found: dict[int, list[tuple[float, ...]]] = {}
        for row in self.rows.get(kind, ()):
            if row.what == what:
                found.setdefault(row.size, []).append(row.values)
        return dict(sorted(found.items()))


def save(recording: MachineRecording, file: Path) -> None:
    """Writes ``file``, compressed where its name ends with .zst."""
    rows = {k: [[r.what, r.size, r.round, *r.values] for r in v] for k, v in recording.rows.items()}
    text = json.dumps({"retrompi-machine": _FORMAT, "facts": recording.facts, "rows": rows}, separators=(",", ":")).encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(zstandard.ZstdCompressor(level=19).compress(text) if file.suffix == ".zst" else text)
    except OSError as error:
        raise InputError(f"cannot write the measurement: {error.strerror}", file, code="unwritable-file") from None


def load(file: Path) -> MachineRecording:
    """Reads a file written by `save`. Raises InputError for any other file."""
    try:
        with open_regular(file) as raw:
            text = whole(raw, _LARGEST)
        data: Mapping[str, Any] = json.loads(text)
        if data["retrompi-machine"] != _FORMAT:
            raise InputError(
                f"a measurement of format {data['retrompi-machine']}, not {_FORMAT}: measure again", file, code="wrong-version"
            )
        rows = {
            str(k): [BenchRow(str(r[0]), int(r[1]), int(r[2]), tuple(float(v) for v in r[3:])) for r in v] for k, v in data["rows"].items()
        }
        return MachineRecording(dict(data["facts"]), rows)
    except OSError as error:
        raise InputError(f"cannot read this measurement: {error.strerror}", file, code="unreadable-file") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"no measurement of 'retrompi calibrate this-machine' ({error})", file) from None
