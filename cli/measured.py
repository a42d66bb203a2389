"""``retrompi measured``: measurements on real machines, read from the output of common benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from retrompi.base.units import format_bytes, format_time
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.options import StoreOutput
from retrompi.cli.output import Column, note, print_csv, print_json, print_table, say
from retrompi.measure.curves import FORMATS

LIST = (
    Column("id", "run", right=True),
    Column("what", "what"),
    Column("ranks", "ranks", right=True),
    Column("points", "sizes", right=True),
    Column("tool", "tool"),
    Column("version", "version"),
    Column("host", "host"),
    Column("date", "date"),
    Column("file", "file"),
    Column("label", "label"),
)
LIST_KEYS = ("id", "label", "what", "ranks", "points", "from_B", "to_B", "tool", "version", "units", "host", "date", "file", "sha256",
"by", "said", "created")
POINTS = (
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    Column("time_us", "time", lambda v: format_time(v * 1e-6), right=True),
    Column("bandwidth_MBps", "MB/s", lambda v: f"{v:.4g}", right=True),
    Column("repetitions", "repetitions", right=True),
    Column("low_us", "least", lambda v: "" if v is None else format_time(v * 1e-6), right=True),
    Column("high_us", "largest", lambda v: "" if v is None else format_time(v * 1e-6), right=True),
    Column("spread", "spread", lambda v: "" if v is None else f"{100 * v:.2g} %", right=True),
)


@dataclass(frozen=True)
class MeasuredOptions:
    """Options describing a file of measurements: its format and, for a table, its unit, one way or round trip, and columns."""

    format_: str | None = option("File format (default: detected from the content).", "--format", type=click.Choice(FORMATS))
    unit: str | None = option(
        "Unit of a table: us, ms, s, ns, MB/s, MiB/s, Mbit/s, ...", "--unit", metavar="UNIT", aliases=("--time-unit",))
    one_way: bool = option("The times of a table are one-way times.")
    round_trip: bool = option("The times of a table are round-trip times.")
    columns: tuple[str, ...] = option("Which column of a table is size, time, rate, spread, ...", "--column", metavar="KIND=NAME|NUMBER")

    def about(self) -> dict[str, Any]:
        """The arguments of `retrompi.measure.curves.read`, without the format."""
        way = "round trip" if self.round_trip else "one way" if self.one_way else None
        return {"unit": self.unit, "way": way, "columns": columns_of(self.columns)}


def columns_of(given: Sequence[str]) -> dict[str, str] | None:
    """``("size=1", "time=rtt")`` -> a mapping; None without any."""
    from retrompi.base.errors import UsageError

    found = {}
    for text in given:
        kind, equals, which = text.partition("=")
        if not equals or not kind.strip() or not which.strip():
            raise UsageError(
                f"'--column {text}' is not KIND=NAME or KIND=NUMBER; example: --column size=1 --column time=3", code="bad-syntax"
            )
        found[kind.strip()] = which.strip()
    return found or None


@click.group()
@debug_option
def command() -> None:
    """Import, list and show curves measured on real machines.

    \b
    Examples:
      retrompi measured import latency.txt --label mine
      retrompi measured list
    """


@dataclass(frozen=True)
class ImportOptions:
    """Options for provenance that a file does not contain."""

    what: str | None = option("Benchmark, if the output does not name it: pingpong, bw, bibw, bcast, ...", metavar="NAME")
    label: str = option("Label of the curve in the store (default: made from tool and file).", default="")
    host: str = option("Machine on which it was measured, if the output does not name it.", "--machine", default="")
    date: str = option("Date of the measurement, if the output does not give it.", default="")
    by: str = option("Who measured it or digitised it from a figure, and where it was published.", "--measured-by", default="")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@options(reading=MeasuredOptions, given=ImportOptions, output=StoreOutput)
def import_file(file: Path, reading: MeasuredOptions, given: ImportOptions, output: StoreOutput) -> None:
    """Import FILE, the output of a benchmark or a table of measurements.

    Reads the output of NetPIPE, OSU or Intel MPI Benchmarks, mpptest and mpi4py.bench, and tables. Each table of the file becomes a
    run of kind "measured" with the file's name and SHA-256, the tool and its version, units, host and date. 'retrompi pingpong
    --measured' and 'retrompi reproduce --measured' draw it over simulated curves.

    \b
    Examples:
      retrompi measured import latency.txt --label mine
      retrompi measured import table.csv --unit us --round-trip --column size=1 --column time=3
    """
    from retrompi.api.measuring import imported_into

    about = {**reading.about(), "what": given.what, "host": given.host, "date": given.date, "by": given.by}
    rows, known = imported_into(output.open(), file, reading.format_, about, given.label)
    output.emit(rows, LIST, keys=LIST_KEYS)
    if known:
        note(f"{known} of {len(rows)} were in the store already")


@command.command("list")
@options(output=StoreOutput)
def list_measured(output: StoreOutput) -> None:
    """List the measured curves in the store.

    \b
    Examples:
      retrompi measured list
      retrompi measured list --csv
    """
    from retrompi.api.measuring import list_measured as listed

    rows = listed(output.open(write=False)).rows
    output.emit(rows, LIST, keys=LIST_KEYS, empty="no measured curve is stored; 'retrompi measured import FILE' stores one", cut=True)


@command.command("show")
@click.argument("which", metavar="RUN|LABEL|FILE")
@options(reading=MeasuredOptions, output=StoreOutput)
def show_measured(which: str, reading: MeasuredOptions, output: StoreOutput) -> None:
    """Show a measured curve: its points and their provenance.

    A FILE is read without storing anything.

    \b
    Examples:
      retrompi measured show mine
      retrompi measured show latency.txt --csv
    """
    from retrompi.api.measuring import measured_in

    found = measured_in(None if Path(which).is_file() else output.open(write=False), which, reading.format_, reading.about())
    series: list[dict[str, Any]] = [
        {"label": m.label, "what": m.found.what, "ranks": m.found.ranks, "provenance": m.provenance, "points": m.rows} for m in found
    ]
    if output.as_json:
        print_json(series)
        return
    keys = list(dict.fromkeys(k for s in series for p in s["points"] for k in p))
    if output.as_csv:
        rows = [{"label": s["label"], "what": s["what"], **p} for s in series for p in s["points"]]
        print_csv(rows, ["label", "what", *keys])
        return
    for i, s in enumerate(series):
        _print_one(s, i > 0)


def _print_one(series: dict[str, Any], again: bool) -> None:
    from retrompi.measure.curves import MEANINGS

    say(("\n" if again else "") + f"{series['label']}: {MEANINGS.get(series['what'], 'the time of one call')}"
               + (f", {series['ranks']} ranks" if series["ranks"] else ""))
    told = {k: v for k, v in series["provenance"].items() if v}
    say("\n".join(f"  {k}: {'; '.join(v) if isinstance(v, list | tuple) else v}" for k, v in told.items()))
    known = {k for p in series["points"] for k, v in p.items() if v not in (None, 0)}
    extra = [Column(k, k, right=True) for k in dict.fromkeys(k for p in series["points"] for k in p) if k not in {c.key for c in POINTS}]
    print_table(series["points"], [c for c in POINTS if c.key in known or c.key == "size_B"] + extra)
