"""Printing rows: a plain table for reading, JSON or CSV for scripts."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import UsageError
from retrompi.base.units import format_time
from retrompi.cli.bundle import option
from retrompi.cli.terminal import escape_controls, paint
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    from retrompi.sim.cautions import Caution

__all__ = [
    "Column",
    "Output",
    "as_text",
    "note",
    "note_run",
    "note_warnings",
    "print_csv",
    "print_json",
    "print_table",
    "say",
    "time_column",
    "uses_colour",
    "width",
    "write_drawn",
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


def uses_colour(stream: Any = None) -> bool:
    """Whether to use colour: a terminal, and NO_COLOR (no-color.org) unset or empty."""
    out = stream if stream is not None else sys.stdout
    return bool(out.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def time_column(key: str, title: str) -> Column:
    """A column of seconds, shown in a readable unit; empty for None."""
    return Column(key, title, lambda v: "" if v is None else format_time(v), right=True)


_WORDS: Mapping[str, str] = {
    "pass": "green", "fail": "red", "unjudged": "yellow",
    **{o: "red" if o.exit_code else "green" for o in Outcome}, Outcome.TIMEOUT: "yellow", Outcome.LIMIT: "yellow",
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
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """``value`` as JSON text, indented; what is not finite is null."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def write_drawn(path: Path, figures: Callable[[], Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], value: Any) -> list[Path]:
    """Write what ``-o PATH`` asks for, by its ending: ``figures`` as SVG or PNG, ``rows`` as CSV, ``value`` as JSON; returns the files.

    The first figure has the name given, further ones their own name after it. Raises UsageError when a file cannot be written.
    """
    ending = path.suffix.removeprefix(".").lower()
    try:
        if ending in ("svg", "png"):
            from retrompi.render.document.export import images

            drawn = figures()
            names = {path.stem if i == 0 else f"{path.stem}-{name}": figure for i, (name, figure) in enumerate(drawn.items())}
            made, missing = images(names, path.parent, (ending,))
            if missing:
                raise UsageError(missing, code="no-image")
            return made
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as to:
            if ending == "csv":
                print_csv(rows, list(rows[0]) if rows else [], to)
            else:
                to.write(json_text(value) + "\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", code="unwritable-file") from error
    return [path]


def print_csv(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], to: TextIO | None = None) -> None:
    """``rows`` as CSV with a header of ``keys``, on stdout or ``to`` a file; floats are written in full."""
    write_rows(to or sys.stdout, keys, rows)


PIPE_WIDTH = 100
"""Columns of text where there is no terminal and COLUMNS is not set."""
_WORD, _NARROW = 24, 8
"""A column of text is not made narrower than its words up to the first, or, where that is too wide, than the second."""


def in_a_pipe() -> bool:
    """Whether a program reads what is printed: no terminal, and no COLUMNS."""
    return not sys.stdout.isatty() and not os.environ.get("COLUMNS")


def width() -> int:
    """The columns that text may take: the terminal's (or COLUMNS), `PIPE_WIDTH` in a pipe."""
    if in_a_pipe():
        return PIPE_WIDTH
    return max(shutil.get_terminal_size((PIPE_WIDTH, 40)).columns, 40)


def say(text: str = "", *, err: bool = False) -> None:
    """Print ``text``; lines longer than `width` are wrapped at blanks, the rest indented. A word is never broken."""
    most = width()
    for line in text.split("\n"):
        if len(line) <= most:
            click.echo(line, err=err)
            continue
        indent = line[: len(line) - len(line.lstrip())] + "  "
        click.echo(textwrap.fill(line, most, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False), err=err)


def print_table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], empty: str = "nothing to show", *, err: bool = False, cut: bool = False
) -> None:
    """``rows`` in aligned columns that fit `width`, on stderr with ``err``.

    Where they do not fit a terminal, columns of text are wrapped, or ``cut`` (in lists, where a row is a line; JSON and CSV have it all).
    In a pipe a row is a line, however wide.
    Numbers never are: if these alone are too many, the table is printed in parts, each with the leading columns of text.
    """
    if not rows:
        say(empty, err=err)
        return
    # Escaped before widths are measured: what is escaped when it is printed is longer.
    texts = [[escape_controls(" ".join((c.show or as_text)(row.get(c.key)).split())) for c in columns] for row in rows]
    for n, (part, widths) in enumerate(_parts(columns, texts, sys.maxsize if in_a_pipe() else width())):
        if n:
            click.echo(err=err)
        _print_part([columns[i] for i in part], [[line[i] for i in part] for line in texts], (widths, cut), err)


def _parts(columns: Sequence[Column], texts: Sequence[Sequence[str]], total: int) -> list[tuple[list[int], list[int]]]:
    """The columns of each part of a table, and their widths: one part if all columns fit into ``total``."""
    wide = [max(len(c.title), *(len(line[i]) for line in texts)) for i, c in enumerate(columns)]
    every = list(range(len(columns)))
    if sum(wide) + 2 * (len(every) - 1) <= total:
        return [(every, wide)]
    least: list[int] = []
    for longest in (_WORD, _NARROW):  # words are broken only where this makes the table fit
        least = [_least(c, [line[i] for line in texts], longest) for i, c in enumerate(columns)]
        if not columns[0].right:
            least[0] = max(least[0], min(wide[0], total // 3))  # a row's name stays whole
        if sum(least) + 2 * (len(every) - 1) <= total:
            return [(every, _fit_widths(wide, least, total - 2 * (len(every) - 1)))]
    lead = 0
    while lead < len(columns) - 1 and not columns[lead].right and sum(least[: lead + 1]) + 2 * lead < total // 2:
        lead += 1
    lead = lead or 1
    parts: list[list[int]] = []
    for i in every[lead:]:
        now = parts[-1] if parts else None
        if now is None or sum(least[j] for j in [*now, i]) + 2 * len(now) > total:
            parts.append(now := every[:lead])
        now.append(i)
    return [(p, _fit_widths([wide[i] for i in p], [least[i] for i in p], total - 2 * (len(p) - 1))) for p in parts]


def _least(column: Column, cells: Sequence[str], longest: int) -> int:
    """The narrowest that a column may be: a number's or a title's width, words of text up to ``longest``."""
    words = max((len(word) for cell in cells for word in cell.split()), default=0)
    inside = min(max(map(len, cells)), _WORD) if column.right else min(words, longest)
    return max([inside, *map(len, column.title.split())])


def _fit_widths(wide: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Widths of at least ``least`` and at most ``wide`` that sum to ``total``: the widest columns are cut to one width."""
    cap = max(wide)
    while sum(max(min(w, cap), low) for w, low in zip(wide, least, strict=True)) > total and cap > 1:
        cap -= 1
    found = [max(min(w, cap), low) for w, low in zip(wide, least, strict=True)]
    for i, w in enumerate(wide):
        more = min(w - found[i], total - sum(found))
        found[i] += max(more, 0)
    return found


def _print_part(columns: Sequence[Column], texts: Sequence[Sequence[str]], how: tuple[Sequence[int], bool], err: bool) -> None:
    widths, cut = how
    color = uses_colour(sys.stderr if err else sys.stdout)

    def lines(cells: Sequence[str], head: bool = False) -> None:
        split = [_wrap_cell(cell, span, cut and not head) for cell, span in zip(cells, widths, strict=True)]
        for n in range(max(map(len, split))):
            out = []
            for cell, part, span, column in zip(cells, split, widths, columns, strict=True):
                text = part[n] if n < len(part) else ""
                padded = text.rjust(span) if column.right else text.ljust(span)
                if color:
                    padded = paint(padded, bold=True) if head else _paint_cell(padded, cell)
                out.append(padded)
            click.echo("  ".join(out).rstrip(), color=color, err=err)

    lines([c.title for c in columns], head=True)
    for cells in texts:
        lines(cells)


def _wrap_cell(cell: str, span: int, cut: bool) -> list[str]:
    if cut and len(cell) > span:
        return [f"{cell[: span - 1].rstrip()}…"]
    return [cell] if len(cell) <= span else textwrap.wrap(cell, max(span, 1), break_on_hyphens=False)


def _paint_cell(padded: str, cell: str) -> str:
    return paint(padded, fg=_WORDS[cell]) if cell in _WORDS else padded


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
        cut: bool = False,
    ) -> None:
        """Print ``rows`` in the requested format; ``keys`` are the names in JSON and CSV (default: those of the columns)."""
        names = list(keys) if keys is not None else [c.key for c in columns]
        if self.as_json:
            print_json([{k: row.get(k) for k in names} for row in rows])
        elif self.as_csv:
            print_csv(rows, names)
        else:
            print_table(rows, columns, empty, cut=cut)


def note(text: str) -> None:
    """Print a remark on stderr if it is a terminal; pipes and logs get none."""
    if sys.stderr.isatty():
        click.echo(paint(text, dim=True) if uses_colour(sys.stderr) else text, err=True, color=uses_colour(sys.stderr))


def note_warnings(warnings: Iterable[Caution]) -> list[dict[str, Any]]:
    """One line on stderr for each caution that is not minor (of those the title line has a mark); all of them as rows, for JSON."""
    told = list(warnings)
    for one in told:
        if not one.minor:
            say(f"caution: {one}", err=True)
    return [one.row() for one in told]


def note_run(run_id: int | None, found: bool) -> None:
    """Report which run was shown, and whether it was already in the store."""
    note(f"run {run_id}" + (" (found in the store; --fresh simulates again)" if found else ""))
