"""``retrompi measured``: what was measured on real machines, read from the output of the usual benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from retrompi.base.units import format_bytes, format_time
from retrompi.cli.options import csv_option, debug_option, json_option, open_for, store_option
from retrompi.cli.output import Column, emit, note

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
"by", "said", "created")  # fmt: skip
POINTS = (
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    Column("time_us", "time", lambda v: format_time(v * 1e-6), right=True),
    Column("bandwidth_MBps", "MB/s", lambda v: f"{v:.4g}", right=True),
    Column("repetitions", "repetitions", right=True),
    Column("low_us", "least", lambda v: "" if v is None else format_time(v * 1e-6), right=True),
    Column("high_us", "largest", lambda v: "" if v is None else format_time(v * 1e-6), right=True),
    Column("spread", "spread", lambda v: "" if v is None else f"{100 * v:.2g} %", right=True),
)


def reading_options(command: Any) -> Any:
    """What a user says of a file: its format, and of a table its unit, one way or round trip, columns."""
    from retrompi.measure.curves import FORMATS

    options = (
        click.option("--format", "format_", type=click.Choice(FORMATS), help="What the file is (default: told by its content)."),
        click.option("--unit", "--time-unit", "unit", metavar="UNIT", help="Of a table: us, ms, s, ns, MB/s, MiB/s, Mbit/s, ..."),
        click.option("--one-way", "way", flag_value="one way", help="Times of a table are of one way."),
        click.option("--round-trip", "way", flag_value="round trip", help="Times of a table are of a round trip."),
        click.option(
            "--column",
            "columns",
            multiple=True,
            metavar="KIND=NAME|NUMBER",
            help="Which column of a table is size, time, rate, spread, ...",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


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
    """Import, list and show curves measured on real machines."""


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@reading_options
@click.option("--what", metavar="NAME", help="Which benchmark it was, where its output does not say: pingpong, bw, bibw, bcast, ...")
@click.option("--label", default="", help="A name to call it by (default: made of tool and file).")
@click.option("--host", default="", help="On which machine it was measured, where the output does not say.")
@click.option("--date", default="", help="When it was measured, where the output does not say.")
@click.option("--by", default="", help="Who measured it or read it from a figure, and where it is published.")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def import_file(
    ctx: click.Context,
    file: Path,
    format_: str | None,
    unit: str | None,
    way: str | None,
    columns: tuple[str, ...],
    what: str | None,
    label: str,
    host: str,
    date: str,
    by: str,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Import FILE: output of NetPIPE, OSU or Intel MPI Benchmarks, mpptest, mpi4py.bench, or a table.

    Each table of the file becomes a run of kind "measured", with the file's name and SHA-256, tool and version, units, host and date.
    Drawn beside simulated curves by 'retrompi pingpong --measured' and 'retrompi reproduce --measured'.
    """
    from retrompi.measure.curves import read_all
    from retrompi.measure.curves.imported import default_label, save, stored

    found = read_all(file, format_, unit=unit, way=way, columns=columns_of(columns), what=what, host=host, date=date, by=by)
    kept = open_for(ctx, store)
    ids = {}
    for number, series in enumerate(found, 1):
        name = (
            label if len(found) == 1 or not label else f"{label}, {default_label(series).partition(' (')[0]}, {series.ranks or '?'} ranks"
        )
        run_id, known = save(kept, series, label=name, number=number)
        ids[run_id] = known
    emit([r for r in stored(kept) if r["id"] in ids], LIST, as_json=as_json, as_csv=as_csv, keys=LIST_KEYS)
    if any(ids.values()):
        note(f"{sum(ids.values())} of {len(ids)} were in the store already")


@command.command("list")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def list_measured(ctx: click.Context, as_json: bool, as_csv: bool, store: str | None) -> None:
    """List the measured curves in the store."""
    from retrompi.measure.curves.imported import stored

    rows = stored(open_for(ctx, store, write=False))
    emit(
        rows,
        LIST,
        as_json=as_json,
        as_csv=as_csv,
        keys=LIST_KEYS,
        empty="nothing measured is stored; 'retrompi measured import FILE' stores it",
    )


@command.command("show")
@click.argument("which", metavar="RUN|LABEL|FILE")
@reading_options
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def show_measured(
    ctx: click.Context,
    which: str,
    format_: str | None,
    unit: str | None,
    way: str | None,
    columns: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Show a measured curve: its points and where they are from. A FILE is read without storing anything."""
    from dataclasses import asdict

    from retrompi.cli.output import print_json
    from retrompi.measure.curves import read_all
    from retrompi.measure.curves.imported import default_label, series_of

    if Path(which).is_file():
        found = read_all(which, format_, unit=unit, way=way, columns=columns_of(columns))
        labels = [default_label(m) for m in found]
    else:
        kept = open_for(ctx, store, write=False)
        found = [series_of(kept, which)]
        labels = [which if not which.isdigit() else str(kept.run(int(which))["facts"]["label"])]
    series: list[dict[str, Any]] = [
        {"label": label, "what": m.what, "ranks": m.ranks, "provenance": asdict(m.provenance), "points": [p.row() for p in m.points]}
        for label, m in zip(labels, found, strict=True)
    ]
    if as_json and not as_csv:
        print_json(series)
        return
    keys = list(dict.fromkeys(k for s in series for p in s["points"] for k in p))
    if as_csv:
        rows = [{"label": s["label"], "what": s["what"], **p} for s in series for p in s["points"]]
        emit(rows, (), as_json=False, as_csv=True, keys=["label", "what", *keys])
        return
    for i, s in enumerate(series):
        _print_one(s, i > 0)


def _print_one(series: dict[str, Any], again: bool) -> None:
    from retrompi.measure.curves import MEANINGS

    click.echo(("\n" if again else "") + f"{series['label']}: {MEANINGS.get(series['what'], 'the time of one call')}"
               + (f", {series['ranks']} ranks" if series["ranks"] else ""))  # fmt: skip
    told = {k: v for k, v in series["provenance"].items() if v}
    click.echo("\n".join(f"  {k}: {'; '.join(v) if isinstance(v, list | tuple) else v}" for k, v in told.items()))
    known = {k for p in series["points"] for k, v in p.items() if v not in (None, 0)}
    extra = [Column(k, k, right=True) for k in dict.fromkeys(k for p in series["points"] for k in p) if k not in {c.key for c in POINTS}]
    emit(series["points"], [c for c in POINTS if c.key in known or c.key == "size_B"] + extra, as_json=False, as_csv=False)
