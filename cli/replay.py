"""``retrompi replay``: a time-independent trace on a runtime and a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_span, format_time, parse
from retrompi.cli.bundle import option, options
from retrompi.cli.draws import drawing, interval_column, note_draws, note_worth, percent
from retrompi.cli.options import (
    NetworkOptions,
    RunInputs,
    RunOutput,
    Uncertain,
    UndefinedSource,
    placement_row,
    question_option,
    ranks_option,
    some_rate,
)
from retrompi.cli.output import Column, note_run, note_warnings, print_json, say, time_column
from retrompi.cli.timeline import TimelineOptions, write_timeline
from retrompi.sim import diagnosis
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import RankRow, outputs

if TYPE_CHECKING:
    from retrompi.api.runs import Run
    from retrompi.sim.resolved import Resolved
    from retrompi.studies.draws.uncertainty import Ensemble, Spec
    from retrompi.traces import Rate

KEYS = ("outcome", "time_s", "ranks", "actions", "messages", "bytes", "wall_s")
SECTION = {"section_begin_s": "begin_s", "section_end_s": "end_s", "section_s": "seconds"}
COLUMNS = (
    Column("rank", "rank", right=True),
    *(time_column(k, o.title) if o.kind == "time" else Column(k, o.title, right=o.is_number) for k, o in outputs(RankRow).items()),
)


@dataclass(frozen=True)
class ReplayOptions(Uncertain, TimelineOptions, UndefinedSource, NetworkOptions, RunInputs):
    """Options of ``retrompi replay``."""

    ranks: int | None = ranks_option(" (default: as in the trace)")
    partial: bool = option("Accept ranks whose trace ends before MPI_Finalize.")
    section: str | None = option(
        "Section of the program: time it; lines of rank 0, or from one of its marks to another.", metavar="FIRST-LAST|A..B")
    compute: str | None = option("Computing time: scale the section to it, summed over all ranks.", metavar="TIME")
    memory_share: float = option("Share of the computation that occupies the memory bus.", type=click.FloatRange(0, 1), default=0.0)
    rate: str | None = option(
        "Rate of computation: of the machine that the trace was recorded on (default: as it states; without one a second is 1 Gflop).",
        metavar="RATE")
    compute_kernel: str | None = question_option("compute_kernel")
    startup: bool = question_option("startup")
    kills: tuple[str, ...] = question_option("kills")
    wildcards: Literal["recorded", "free"] = question_option("wildcards")
    matching: Path | None = option(
        "Matching: follow the execution that 'retrompi explore -o' has written.", type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE")
    trace_events: Path | None = option(
        "Debugging: write each event of the engine to a file, with its time in ps, its process and what it calls.",
        type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
    full: bool = option("Print all of it instead of a summary: a line for every rank of many.", "--full")


MOST_RANKS = 32
"""Ranks of which each is a line; of more some are shown (the rows of a terminal)."""


@click.command()
@click.argument("trace")
@options(given=ReplayOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, trace: str, given: ReplayOptions, output: RunOutput) -> None:
    """Replay a time-independent trace on a runtime model and a platform.

    TRACE is a file, an index of files or a folder, plain or compressed. Exit code 1 means that the job did not complete; for a
    deadlock the output names which rank waits for which, and on which line of the trace.

    Published times are often those of a benchmark's timed section: --section measures a section, and --compute sets how much time
    it spends computing on the simulated machine.

    \b
    Examples:
      retrompi replay examples/traces/jacobi-4.tar.zst -m wmpi -p nt-cluster
      retrompi replay examples/traces/jacobi-4.tar.zst -m winmpich -p nt-cluster --timeline run.html
      retrompi replay examples/traces/sort-4.tar.zst -m hpvm -p nt-cluster --kill 'rank 3@1ms'
      retrompi replay examples/traces/jacobi-4.tar.zst -m wmpi -p nt-cluster --uncertainty 90% --draws 20
    """
    timeline, spec = given.request(), given.spec()
    from retrompi.api.asking import Where
    from retrompi.api.runs import run_of
    from retrompi.sim.cautions import mark
    from retrompi.sim.observe import Observe

    asked, rate = _question(trace, given)
    store_ = output.open()
    events = str(given.trace_events.resolve()) if given.trace_events else ""
    told = run_of(asked, Where(store_, output.fresh), Observe(timeline=timeline.request if timeline else None, trace_events=events), rate)
    found, run = told.found, told.row
    if timeline:
        write_timeline(found.timeline, timeline, [] if run["outcome"] == Outcome.COMPLETED else diagnosis.of_run(run))
    if spec is not None:
        with drawing() as report:
            told = told.uncertainty(spec.level, spec.draws, report)
    warnings = told.warnings
    warned = note_warnings(warnings)
    if output.as_json:
        print_json(_as_object(told, given, warned))
    else:
        _print(told, given, output, mark(warnings))
    if told.drawn is not None:
        note_draws([told.drawn])
        note_worth(told.drawn, ["section" if given.section else "time"])
    if run["outcome"] != Outcome.COMPLETED:
        for line in diagnosis.of_run(run):
            click.echo(line, err=True)
        ctx.exit(1)
    note_run(found.run_id, found.found)


def _question(trace: str, given: ReplayOptions) -> tuple[Resolved, Rate | None]:
    """(what is asked for, the rate that is given for the trace)."""
    from retrompi import traces
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.conditions.timed_section import Program
    from retrompi.spec.question import Replay
    from retrompi.traces.source import Source

    program = Program(given.section, None if given.compute is None else parse(given.compute, "s"), given.memory_share)
    rate = None if given.rate is None else traces.Rate(some_rate("--rate", given.rate), "given by --rate")
    if given.matching is not None and given.wildcards == "free":
        raise UsageError("--matching says what every wildcard takes; --wildcards free does not go with it", code="conflicting-options")
    source = Source(trace, given.ranks, given.undefined_source, given.partial,
                    None if rate is None else (rate.flops, rate.source), str(given.matching or ""))
    order = traces.read_outcomes(given.matching).order if given.matching is not None else ()
    return Resolved.of(given.question(Replay(source.read(), trace, program, source.row()), order=order)), rate


def _keys(told: Run) -> list[str]:
    """The columns of a rank, with the ends of intervals if there are draws."""
    from retrompi.api.runs import RANK_DRAWN

    keys = [c.key for c in COLUMNS]
    if told.drawn is not None:
        keys[5:5] = [f"{k}{end}" for k in RANK_DRAWN for end in ("_low", "_high")]
    return keys


def _as_object(told: Run, given: ReplayOptions, warned: Sequence[Any]) -> dict[str, Any]:
    from retrompi.sim.computation import scale_of

    run, keys, scale = told.row, _keys(told), scale_of(told.asked, told.rate)
    part = {"section": run["facts"].get("section")} if given.section else {}
    ended: dict[str, Any] = {}
    if run["outcome"] != Outcome.COMPLETED:
        ended = {"detail": run["detail"], **{k: run["facts"].get(k) for k in ("waits", "diagnosis")}}
    beside = {k: run["facts"].get(k) for k in ("traffic", "failed", "lost") if given.traffic or given.failures}
    beside |= {k: run["facts"][k] for k in ("rank_summary",) if k in run["facts"]}
    beside |= {"run_id": told.found.run_id, "warnings": warned, "computation": scale.row() if scale else None}
    more = _of_the_job(told.drawn, given.section) if told.drawn is not None else {}
    ranks = [{k: row.get(k) for k in keys} for row in told.rows]
    return {**{k: run[k] for k in KEYS}, **more, **part, **ended, **beside, "placement": placement_row(told.asked), "per_rank": ranks}


def _print(told: Run, given: ReplayOptions, output: RunOutput, marked: str) -> None:
    """The run in lines and a table of its ranks, or with --csv the table alone."""
    from retrompi.sim.computation import scale_of
    from retrompi.sim.result import network_lines

    run, spec = told.row, given.spec()
    keys, columns, rows = _keys(told), list(COLUMNS), told.rows
    if spec is not None:
        rows = [{**row, "time_s_interval": (row["time_s_low"], row["time_s_high"])} for row in rows]
        columns[3:3] = [interval_column("time_s", spec.level, "s")]
    if output.as_csv:
        if given.section:  # repeated in a column for every rank, to keep the table flat
            keys += list(SECTION)
            part = told.section or {}
            rows = [{**row, **{k: part.get(v) for k, v in SECTION.items()}} for row in rows]
        output.emit(rows, columns, keys=keys, empty="no rank ran")
        return
    more = _of_the_job(told.drawn, given.section) if told.drawn is not None else {}
    say(_headline(run) + _between(more, "time_s", spec) + marked)
    say(section_line(run["facts"].get("section")) + _between(more, "section_s", spec)) if given.section else None
    brief = rows if given.full or len(rows) <= MOST_RANKS else _spread(rows)
    many = run["facts"].get("rank_summary") or (None if len(brief) == len(rows) else _ends_of(rows))
    for line in (*network_lines(run["facts"]), *_of_many(many, len(brief))):
        say(line)
    output.emit(brief, columns, keys=keys, empty="no rank ran")
    if output.text:
        say(f"note: {placement_row(told.asked)['line']}", err=True)
        scale = scale_of(told.asked, told.rate)
        say(f"note: {scale.line}", err=True) if scale and not scale.assumed else None


def _of_the_job(drawn: Ensemble, section: str | None) -> dict[str, Any]:
    """``time_s_low``, ``time_s_high``, those of the section, and the share of the draws that ``completed``."""
    from retrompi.studies.define import metrics
    from retrompi.studies.draws.uncertainty import ends

    told: dict[str, Any] = ends("time_s", drawn.interval(metrics.parse("time")))
    if section:
        told |= ends("section_s", drawn.interval(metrics.parse("section")))
    return {**told, "completed": drawn.completed}


def _between(told: Mapping[str, Any], key: str, spec: Spec | None) -> str:
    if spec is None or told.get(f"{key}_low") is None:
        return ""
    return f"; {percent(spec.level)} interval {format_span(told[f'{key}_low'], told[f'{key}_high'], 's')}"


def _spread(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """`MOST_RANKS` of the rows, evenly spaced, with those of the first and the last to finish."""
    n = len(rows)
    ends = {pick(range(n), key=lambda i: rows[i]["time_s"]) for pick in (min, max)}
    spaced = [i * n // (MOST_RANKS - len(ends)) for i in range(MOST_RANKS - len(ends))]
    return [rows[i] for i in sorted({*spaced, *ends})]


def _ends_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """As of `retrompi.sim.rank_table.RankTable.summary`, of the times of rows that are all there."""
    told: dict[str, Any] = {"ranks": len(rows)}
    for key in (k for k, o in outputs(RankRow).items() if o.kind == "time"):
        low, high = (pick(rows, key=lambda r: r[key]) for pick in (min, max))
        told[key] = {"low": low[key], "low_rank": low["rank"], "high": high[key], "high_rank": high["rank"],
                     "mean": sum(r[key] for r in rows) / len(rows)}
    return told


def _of_many(told: Mapping[str, Any] | None, shown: int) -> list[str]:
    """Lines below a table that shows only some of a job's ranks: the range and the mean of all of them."""
    if not told:
        return []
    ends = [f"{key.removesuffix('_s')} {format_time(x['low'])} (rank {x['low_rank']}) to {format_time(x['high'])} (rank {x['high_rank']}), "
            f"{format_time(x['mean'])} on average" for key, x in told.items() if key.endswith("_s")]
    return [*ends, f"{shown} of {told['ranks']} ranks, evenly spaced, with the first and the last to finish:"]


def _headline(run: dict[str, Any]) -> str:
    took = "" if run["time_s"] is None else f" in {format_time(run['time_s'])}"
    counts = f"{run['ranks']} ranks, {run['actions']} actions, {run['messages']} messages"
    moved = format_bytes(run["bytes"]) if run["bytes"] is not None else "?"
    return f"{run['outcome']}{took}: {counts}, {moved} (run {run['id']}, simulated in {format_time(run['wall_s'])})"


def section_line(section: dict[str, Any] | None) -> str:
    """One line on the timed section."""
    if section is None:
        return "the section was not reached"
    begin, end, took = (format_time(section[k]) for k in ("begin_s", "end_s", "seconds"))
    return f"section {section['section']}: {took} ({begin} to {end})"
