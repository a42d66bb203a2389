"""Measured curves: the output of common benchmarks, and digitised curves, with their provenance.

        read("osu_latency.txt").points[0].time_us        # one way, whatever the file reports
        for series in read_all("IMB.txt"): ...           # one per table

    A file's format is detected from its content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.files import read_bytes
from retrompi.measure.curves import imb, netpipe, osu, others, table
from retrompi.measure.curves.series import MEANINGS, Line, Measured, Point, Provenance, lines_of
from retrompi.measure.curves.table import Said

__all__ = ["FORMATS", "MEANINGS", "Measured", "Point", "Provenance", "Said", "detect", "read", "read_all"]

_MOST_BYTES = 64 << 20
Reader = Callable[[Sequence[Line], Path, Provenance], list[Measured]]
_READERS: Mapping[str, tuple[Callable[[Sequence[Line]], bool], Reader]] = {
    "osu": (osu.detect, osu.read),
    "imb": (imb.detect, imb.read),
    "mpi4py": (others.detect_mpi4py, others.read_mpi4py),
    "mpptest": (others.detect_mpptest, others.read_mpptest),
    "netpipe": (netpipe.detect, netpipe.read),
}
FORMATS = (*_READERS, "csv")
"""The names of formats; ``csv`` is any table with a size and a time or a bandwidth per row."""


def detect(lines: Sequence[Line]) -> str:
    """The format of a file's lines; ``csv`` if no benchmark is recognised."""
    return next((name for name, (knows, _) in _READERS.items() if knows(lines)), "csv")


def read_all(
    path: str | Path,
    format: str | None = None,
    *,
    unit: str | None = None,
    way: str | None = None,
    columns: Mapping[str, str] | None = None,
    what: str | None = None,
    host: str = "",
    date: str = "",
    by: str = "",
) -> list[Measured]:
    """Every series of a file; ``format`` is one of `FORMATS`, None: detected from the content.

    For tables: ``unit`` (``us``, ``MB/s``, ...), ``way`` (``one way``, ``round trip``), ``columns`` (``{"size": "1", "time": "rtt"}``)
    declare what the file does not. ``what`` names the benchmark where the output does not (`MEANINGS`). ``host``, ``date``, ``by``: where,
    when and by whom it was measured. Raises InputError with file and line, UsageError for an option that does not apply to the format.
    """
    file = Path(path)
    if format is not None and format not in FORMATS:
        raise UsageError(f"no format '{format}'{nearest(format, FORMATS)}", code="unknown-format")
    try:
        if file.is_dir():
            raise InputError("is a folder; give a file with a benchmark's output", file, code="unreadable-file")
        if file.stat().st_size > _MOST_BYTES:
            raise InputError(f"is larger than {_MOST_BYTES >> 20} MiB: no output of a benchmark", file, code="no-results")
        data = read_bytes(file)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file, code="unreadable-file") from None
    try:
        lines = lines_of(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("is not text; give a benchmark's output or a table", file, code="unreadable-file") from None
    if not any(text.strip() for _, text in lines):
        raise InputError("is empty", file, code="empty-file")
    about = Provenance(file.name, hashlib.sha256(data).hexdigest(), "", host=host, date=date, by=by)
    chosen = format or detect(lines)
    if chosen == "csv":
        return table.read(lines, file, about, Said(unit, way, columns, what))
    for option, given in (("--unit", unit), ("--one-way or --round-trip", way), ("--column", columns)):
        if given:
            raise UsageError(
                f"{option} is for tables: {file} is output of {chosen}, which states it itself (--format csv reads it as a table)"
            )
    try:
        found = _READERS[chosen][1](lines, file, about)
    except (ValueError, OverflowError) as error:  # a number of thousands of digits, or infinite
        raise InputError(f"a number in this output of {chosen} is out of range: {str(error)[:100]}", file, code="out-of-range") from None
    if not found:
        raise InputError(f"no results in this output of {chosen}", file, code="no-results")
    return [m.with_fields(what=what) for m in found] if what else found


def read(path: str | Path, format: str | None = None, *, what: str | None = None, **said: str | Mapping[str, str]) -> Measured:
    """The only series of a file; among several the one named ``what``, or its PingPong. Raises as `read_all`, and UsageError when there is
    no unique choice."""
    found = read_all(path, format, **said)  # type: ignore[arg-type]
    if what is not None and len(found) == 1 and (found[0].provenance.tool in ("table", "NetPIPE") or found[0].what == what):
        return found[0].with_fields(what=what)
    wanted = what or "pingpong"
    mine = [m for m in found if m.what == wanted] if len(found) > 1 or what is not None else found
    if len(mine) == 1:
        return mine[0]
    names = [m.what for m in found]
    if not mine:
        raise UsageError(f"{path} has no series '{wanted}'{nearest(wanted, names)}", code="unknown-series")
    raise UsageError(
        f"{path} has {len(mine)} series '{wanted}' (of {', '.join(str(m.ranks) for m in mine)} ranks); give a file with one of them",
        code="unknown-series",
    )
