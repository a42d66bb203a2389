"""Printing rows: a plain table for reading, JSON or CSV for scripts."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_time
from retrompi.cli.bundle import option

__all__ = [
    "Column",
    "Output",
    "as_text",
    "colored",
    "note",
    "note_run",
    "print_csv",
    "print_json",
    "print_table",
    "time_column",
]


@dataclass(frozen=True)
class Column:
    """A table's column: the row's ``key``, its ``title``, the formatter of values, and whether it is right-aligned."""

    key: str
    title: str
    show: Callable[[Any], str] | None = None
    right: bool = False


def as_text(value: Any) -> str:
    """A cell: empty for None, short for floats, lists joined by blanks."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return " ".join(as_text(v) for v in value)
    return str(value)


def colored(stream: Any = None) -> bool:
    """Whether to use colour: a terminal, and NO_COLOR (no-color.org) unset or empty."""
    out = stream if stream is not None else sys.stdout
    return bool(out.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def time_column(key: str, title: str) -> Column:
    """A column of seconds, shown in a readable unit; empty for None."""
    return Column(key, title, lambda v: "" if v is None else format_time(v), right=True)


_WORDS = {
    "pass": "green",
    "completed": "green",
    "fail": "red",
    "deadlock": "red",
    "aborted": "red",
    "failed-start": "red",
    "timeout": "yellow",
    "overflow": "red",
    "limit": "yellow",
    "unjudged": "yellow",
}


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN; both become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def print_json(value: Any) -> None:
    """``value`` as JSON, indented."""
    click.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def print_csv(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    """``rows`` as CSV with a header of ``keys``; floats are written in full."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(keys)
    for row in rows:
        out.writerow(["" if row.get(k) is None else _cell(row.get(k)) for k in keys])


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def print_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], empty: str = "nothing to show", *, err: bool = False) -> None:
    """``rows`` in aligned columns, on stderr with ``err``; on a terminal the last text column is cut to what fits."""
    if not rows:
        click.echo(empty, err=err)
        return
    texts = [[" ".join((c.show or as_text)(row.get(c.key)).split()) for c in columns] for row in rows]
    widths = [max(len(c.title), *(len(line[i]) for line in texts)) for i, c in enumerate(columns)]
    stream = sys.stderr if err else sys.stdout
    tty, color = stream.isatty(), colored(stream)
    if tty and not columns[-1].right:
        room = shutil.get_terminal_size((120, 40)).columns - sum(widths[:-1]) - 2 * (len(columns) - 1)
        widths[-1] = max(min(widths[-1], room), len(columns[-1].title), 20)

    def line(cells: Sequence[str], head: bool = False) -> str:
        out = []
        for cell, width, column in zip(cells, widths, columns, strict=True):
            text = cell if len(cell) <= width else cell[: width - 1] + "…"
            padded = text.rjust(width) if column.right else text.ljust(width)
            if color:
                padded = click.style(padded, bold=True) if head else _painted(padded, cell)
            out.append(padded)
        return "  ".join(out).rstrip()

    click.echo(line([c.title for c in columns], head=True), color=color, err=err)
    for cells in texts:
        click.echo(line(cells), color=color, err=err)


def _painted(padded: str, cell: str) -> str:
    return click.style(padded, fg=_WORDS[cell]) if cell in _WORDS else padded


@dataclass(frozen=True)
class Output:
    """The format of a command's output: a table for reading, JSON or CSV."""

    as_json: bool = option("Print JSON.", "--json")
    as_csv: bool = option("Print CSV.", "--csv")

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise UsageError("--json and --csv are mutually exclusive", code="conflicting-options")

    @property
    def text(self) -> bool:
        """Whether the output is a table for reading."""
        return not (self.as_json or self.as_csv)

    def emit(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Sequence[Column] = (),
        *,
        keys: Sequence[str] | None = None,
        empty: str = "nothing to show",
    ) -> None:
        """Print ``rows`` in the requested format; ``keys`` are the names in JSON and CSV (default: those of the columns)."""
        names = list(keys) if keys is not None else [c.key for c in columns]
        if self.as_json:
            print_json([{k: row.get(k) for k in names} for row in rows])
        elif self.as_csv:
            print_csv(rows, names)
        else:
            print_table(rows, columns, empty)


def note(text: str) -> None:
    """Print a remark on stderr if it is a terminal; pipes and logs get none."""
    if sys.stderr.isatty():
        click.echo(click.style(text, dim=True) if colored(sys.stderr) else text, err=True, color=colored(sys.stderr))


def note_run(run_id: int | None, found: bool) -> None:
    """Report which run was shown, and whether it was already in the store."""
    note(f"run {run_id}" + (" (found in the store; --fresh simulates again)" if found else ""))
