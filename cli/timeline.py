"""``retrompi timeline``: the timeline stored with a run; and the timeline options of ``retrompi replay``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import parse
from retrompi.cli.bundle import option, options
from retrompi.cli.options import StoreOutput
from retrompi.cli.output import Column, time_column
from retrompi.sim import diagnosis
from retrompi.sim.timeline import LIMIT, PS, Timeline, TimelineRequest
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["TimelineOptions", "Wanted", "command", "write_timeline"]

COLUMNS = (
    Column("process", "process"),
    Column("host", "host"),
    Column("state", "state"),
    time_column("seconds", "time"),
    Column("share", "share", lambda v: f"{v:.1%}", right=True),
)
SECTIONS = (
    Column("section", "section of rank 0"),
    time_column("seconds", "time"),
    time_column("versus_s", "versus"),
    time_column("difference_s", "difference"),
    Column("ratio", "ratio", lambda v: "" if v is None else f"{v:.3f}", right=True),
)


@dataclass(frozen=True)
class Wanted:
    """The timeline requested with ``--timeline``: the files, and the part of the run."""

    files: tuple[Path, ...]
    request: TimelineRequest


@dataclass(frozen=True)
class TimelineOptions:
    """Timeline options of a replay."""

    files: tuple[str, ...] = option(
        "Write the timeline of every process; the ending of FILE selects the format: .html, .pftrace (Perfetto), "
        ".otf2 (a folder), .paje, .json or .csv.",
        "--timeline", metavar="FILE")
    timeline_window: str | None = option("Record only this interval of simulated time, e.g. 1s..1.2s or 20ms..", metavar="FROM..TO")
    timeline_limit: int = option("Maximum number of states, calls and messages recorded.", type=click.IntRange(1), default=LIMIT)

    def request(self) -> Wanted | None:
        """The validated request; None without ``--timeline``."""
        if not self.files:
            if self.timeline_window:
                raise UsageError("--timeline-window limits a timeline; give --timeline FILE as well", code="missing-option")
            return None
        from retrompi.convert.timelines import check

        return Wanted(tuple(check(f) for f in self.files), TimelineRequest(self.timeline_limit, *_window(self.timeline_window)))


def _window(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0.0, float("inf")
    first, dots, last = text.partition("..")
    if not dots:
        raise UsageError(f"--timeline-window '{text}' is not FROM..TO; example: 1s..1.2s", code="bad-syntax")
    return parse(first, "s") if first.strip() else 0.0, parse(last, "s") if last.strip() else float("inf")


def write_timeline(timeline: Timeline | None, wanted: Wanted, told: Sequence[str] = ()) -> None:
    """Write every file; information that a format cannot hold is reported on stderr. ``told``: the outcome of the run."""
    from retrompi.convert.timelines import write

    if timeline is None:
        raise UsageError("the job did not start, so there is no timeline", code="no-timeline")
    for path in wanted.files:
        lost = write(timeline, path, told)
        click.echo(f"timeline written to {path}", err=True)
        for line in lost:
            kind = "sampled" if path.suffix == ".html" or line in timeline.notes() else "not in it"
            click.echo(f"  {kind}: {line}", err=True)


def stored_timeline(store: Store, run_id: int) -> Timeline:
    """The timeline stored with a run; UsageError if there is none."""
    row = store.run(run_id)["facts"].get("timeline")
    if not row:
        raise UsageError(f"run {run_id} has no timeline; replay its trace with --timeline FILE", code="no-timeline")
    return Timeline.from_row(row)


@click.command()
@click.argument("run_id", type=click.IntRange(1), metavar="ID")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--versus", type=click.IntRange(1), metavar="ID", help="A second run of the same trace: both on one time axis.")
@options(output=StoreOutput)
def command(run_id: int, files: tuple[str, ...], versus: int | None, output: StoreOutput) -> None:
    """Draw the timeline stored with a run, or show how long each process spent in each state.

    A run replayed with --timeline keeps a sample of its timeline in the store. FILE ends in .html, .pftrace (Perfetto), .otf2, .paje,
    .json or .csv; without a FILE the states are listed. With --versus the two runs are compared section by section, from mark to mark
    of rank 0 (without marks, from one to another of its calls), and FILE is a page that draws both.

    \b
    Examples:
      retrompi timeline 12
      retrompi timeline 12 run.html run.pftrace
      retrompi timeline 12 --versus 13 both.html
    """
    from retrompi.convert.timelines import check

    paths = tuple(check(f) for f in files)
    kept = output.open(write=False)
    timeline = stored_timeline(kept, run_id)
    if versus is not None:
        _versus((run_id, timeline), (versus, stored_timeline(kept, versus)), paths, output)
        return
    if paths:
        run = kept.run(run_id)
        write_timeline(timeline, Wanted(paths, TimelineRequest()), [] if run["outcome"] == Outcome.COMPLETED else diagnosis.of_run(run))
        return
    whole = max(timeline.end, 1)
    rows = [
        {"process": p.name, "host": p.host, "state": state, "seconds": ps * PS, "share": ps / whole}
        for p in timeline.processes
        for state, ps in sorted(p.totals.items(), key=lambda kv: -kv[1])
    ]
    output.emit(rows, COLUMNS)


def _versus(one: tuple[int, Timeline], other: tuple[int, Timeline], paths: Sequence[Path], output: StoreOutput) -> None:
    """Draw two runs, or list their sections."""
    from retrompi.render.timeline.timeline_page import write_versus
    from retrompi.sim.timeline.versus import points, sections

    if wrong := next((p for p in paths if p.suffix != ".html"), None):
        raise UsageError(f"'{wrong}': only a page shows two runs; with --versus FILE ends in .html", code="unknown-format")
    for path in paths:
        for line in write_versus(one[1], other[1], path, (f"Run {one[0]}", f"run {other[0]}")):
            click.echo(f"  sampled: {line}", err=True)
        click.echo(f"timelines written to {path}", err=True)
    if paths:
        return
    rows = [
        {"section": s.name, "seconds": s.one_s, "versus_s": s.other_s, "difference_s": s.more_s, "ratio": s.ratio}
        for s in sections(points(one[1], other[1]))
    ]
    output.emit(rows, SECTIONS)
