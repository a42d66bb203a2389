"""Measurements on real machines: curves read from the output of benchmarks, and recorded traces of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from retrompi.api.checking import check_arguments
from retrompi.api.frames import Row, Table, as_store
from retrompi.api.programs import Rows
from retrompi.base.errors import UsageError
from retrompi.base.units import parse

if TYPE_CHECKING:
    from retrompi.measure.curves import Measured
    from retrompi.measure.record import Clock
    from retrompi.measure.record import Recording as Recorded
    from retrompi.store import Store
    from retrompi.traces import Trace

__all__ = ["MeasuredCurve", "Recording", "clock_of", "import_measured", "imported_into", "list_measured", "measured_curve", "measured_in",
           "record"]

ClockName = Literal["cpu", "wall", "instructions", "cycles"]


class MeasuredCurve(Table):
    """A curve that was measured on a real machine: a row for each size (B, µs, 10^6 B/s).

    >>> retrompi.measured_curve("tests/data/measured/netpipe37-np.out").rows[0]["size_B"]
    1
    """

    def __init__(self, found: Measured, label: str) -> None:
        self.found, self.label = found, label

    @property
    def title(self) -> str:
        """Label, benchmark, ranks."""
        return f"{self.label}: {self.found.what}" + (f", {self.found.ranks} ranks" if self.found.ranks else "")

    @property
    def rows(self) -> Sequence[Row]:
        """size_B, time_us, bandwidth_MBps, repetitions, low_us, high_us, spread (a share) and what else the benchmark tells."""
        return [p.row() for p in self.found.points]

    @property
    def provenance(self) -> dict[str, Any]:
        """file, sha256, tool, version, units, host, date, by, said: where the numbers are from."""
        return asdict(self.found.provenance)


class Recording(Table):
    """A recorded trace: a row for each rank (overhead in ns a call), and how the program ended.

    >>> retrompi.record(["mpiexec", "-n", "4", "./app"], "app-trace").partial    # doctest: +SKIP
    False
    """

    def __init__(self, found: Recorded) -> None:
        self.found = found

    @property
    def title(self) -> str:
        """The trace and its ranks."""
        return f"{self.path}, {self.found.ranks} ranks"

    @property
    def path(self) -> Path:
        """The file or folder of the trace; `retrompi.replay` accepts it."""
        return self.found.path

    @property
    def trace(self) -> Trace | None:
        """The trace as it was read back; None with ``check=False``."""
        found: Trace | None = self.found.trace
        return found

    @property
    def partial(self) -> bool:
        """Whether a rank did not reach MPI_Finalize."""
        return self.found.partial

    @property
    def failed(self) -> str:
        """How the program failed, in words; empty when it ended well."""
        return self.found.failed

    @property
    def notes(self) -> list[str]:
        """Sentences on everything that could not be recorded."""
        return list(self.found.notes)

    @property
    def rows(self) -> Sequence[Row]:
        """rank, ended, calls, lines, trace_B (B), overhead_ns (ns a call) of each rank."""
        return [
            {"rank": s.rank, "ended": s.end_text(), "calls": s.calls, "lines": s.lines, "trace_B": s.written, "overhead_ns": s.overhead_ns}
            for s in self.found.states
        ]


def imported_into(store: Store, file: Path, format: str | None, about: Mapping[str, Any], label: str) -> tuple[list[dict[str, Any]], int]:
    """The rows of the curves of a file, which are stored, and how many of them were there already."""
    from retrompi.measure.curves import read_all
    from retrompi.measure.curves.imported import default_label, save, stored_rows

    found = read_all(file, format, **about)
    ids: dict[int, bool] = {}
    for number, series in enumerate(found, 1):
        name = label
        if name and len(found) > 1:
            name += f", {default_label(series).partition(' (')[0]}, {series.ranks or '?'} ranks"
        run_id, known = save(store, series, label=name, number=number)
        ids[run_id] = known
    return [r for r in stored_rows(store) if r["id"] in ids], sum(ids.values())


def measured_in(store: Store | None, which: str, format: str | None, about: Mapping[str, Any]) -> list[MeasuredCurve]:
    """The curves of a file, or the one of the store that has this number or label."""
    from retrompi.measure.curves import read_all
    from retrompi.measure.curves.imported import default_label, series_of

    if Path(which).is_file():
        return [MeasuredCurve(m, default_label(m)) for m in read_all(which, format, **about)]
    kept = as_store(store)
    found = series_of(kept, which)
    return [MeasuredCurve(found, which if not which.isdigit() else str(kept.run(int(which))["facts"]["label"]))]


def clock_of(clock: ClockName, rate: str | None, merge_below: str) -> Clock:
    """The clock that measures computation. UsageError for a rate that is not positive or a negative threshold."""
    from retrompi.measure import record as recorder

    if clock in ("instructions", "cycles"):
        try:
            each = None if rate is None else float(rate)
        except ValueError:
            raise UsageError(f"--rate {rate}: with --clock {clock} this is flop per event, a plain number", code="bad-number") from None
        least = 1000
    else:
        each = None if rate is None else parse(rate, "flop/s")
        least = round(parse(merge_below, "s") * 1e9)
    if (each is not None and not 0 < each < float("inf")) or least < 0:
        raise UsageError("--rate must be positive and --merge-below not negative", code="out-of-range")
    return recorder.Clock(clock, each, least)


@check_arguments
def import_measured(
    file: str | Path, *, format: str | None = None, unit: str | None = None, way: str | None = None,
    columns: Mapping[str, str] | None = None, what: str | None = None, label: str = "", machine: str = "", date: str = "", by: str = "",
    store: Store | Path | str | None = None,
) -> Table:
    """Stores the curves of a benchmark's output (NetPIPE, OSU, IMB, mpptest, mpi4py) or of a table: a row each, with its number (id).

    Of a table: ``unit`` (us, MB/s, ...), ``way`` ("one way" or "round trip"), ``columns`` (``{"size": "1", "time": "rtt"}``). ``what`` is
    the benchmark, ``machine``, ``date`` and ``by`` say where, when and by whom it was measured, where the file does not. Raises
    InputError with file and line, UsageError for what does not apply.

    >>> kept = retrompi.import_measured("tests/data/measured/netpipe37-np.out", label="mine")
    >>> kept.rows[0]["label"], kept.rows[0]["from_B"]    # B
    ('mine', 1)
    """
    about = {"unit": unit, "way": way, "columns": columns, "what": what, "host": machine, "date": date, "by": by}
    rows, _ = imported_into(as_store(store), Path(file), format, about, label)
    return Rows(f"measured curves of {Path(file).name}", rows)


@check_arguments
def list_measured(store: Store | Path | str | None = None) -> Table:
    """The measured curves of the store.

    >>> [row["label"] for row in retrompi.list_measured().rows if row["points"] > 10_000]
    []
    """
    from retrompi.measure.curves.imported import stored_rows

    return Rows("measured curves", stored_rows(as_store(store)))


@check_arguments
def measured_curve(
    which: str | int | Path, *, format: str | None = None, unit: str | None = None, way: str | None = None,
    columns: Mapping[str, str] | None = None, what: str | None = None, store: Store | Path | str | None = None,
) -> MeasuredCurve:
    """A measured curve: that of a file, which is read and not stored, or one of the store by its number or label.

    The others as in `import_measured`; of several curves in a file ``what`` names one (default: its PingPong). Raises InputError with file
    and line, UsageError for an unknown curve.

    >>> retrompi.measured_curve("tests/data/measured/netpipe37-np.out").rows[-1]["time_us"] > 0    # µs
    True
    """
    about = {"unit": unit, "way": way, "columns": columns}
    found = measured_in(None if store is None else as_store(store), str(which), format, about)
    wanted = [c for c in found if c.found.what == (what or "pingpong")] if len(found) > 1 else found
    if len(wanted) != 1:
        names = ", ".join(c.title for c in found)
        raise UsageError(f"{which} has {len(found)} curves; name one with 'what': {names}", code="unknown-series")
    return wanted[0]


@check_arguments
def record(
    command: Sequence[str], out: str | Path, *, smpi: bool = False, ranks: int | None = None, mpicc: str | None = None,
    clock: ClockName = "cpu", rate: str | None = None, merge_below: str = "1us", whole_command: bool = False, check: bool = True,
) -> Recording:
    """Runs a command (a launcher and a program) and records its MPI calls as a trace: a folder, or NAME.tar.zst.

    ``smpi``: on SimGrid's SMPI with ``ranks`` ranks. ``clock`` measures the computation between calls, which counts as ``rate`` (flop/s;
    default: this machine's); bursts below ``merge_below`` (a time) join the next. ``check`` reads the trace back. A program that fails
    leaves its trace so far: `failed` and `partial` say so. Raises RecordError (a RetrompiError) for what cannot be run or recorded.

    >>> retrompi.record(["mpiexec", "-n", "4", "./app"], "app-trace").rows[0]["overhead_ns"]    # ns    # doctest: +SKIP
    """
    from retrompi.measure import record as recorder

    if clock not in ("cpu", "wall", "instructions", "cycles"):
        raise UsageError(f"no clock '{clock}': cpu, wall, instructions or cycles", code="unknown-name")
    return Recording(recorder.record(
        list(command), out, mpicc=mpicc, use_smpi=smpi, ranks=ranks, clock=clock_of(clock, rate, merge_below), whole_command=whole_command,
        check=check,
    ))
