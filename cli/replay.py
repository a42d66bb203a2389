"""``retrompi replay``: a time-independent trace on a runtime and a platform."""

from __future__ import annotations

from typing import Any, Literal

import click

from retrompi.base.units import format_bytes, format_time, parse
from retrompi.cli.options import (
    csv_option,
    debug_option,
    failures_option,
    fidelity_option,
    fresh_option,
    json_option,
    mode_option,
    model_option,
    open_for,
    platform_option,
    seed_option,
    set_option,
    some_time,
    store_option,
    traffic_option,
    warn,
)
from retrompi.cli.output import Column, emit, note, print_json, time_column
from retrompi.cli.timeline import Wanted, timeline_options, write_timeline

KEYS = ("outcome", "time_s", "ranks", "actions", "messages", "bytes", "wall_s")
SECTION = {"section_begin_s": "begin_s", "section_end_s": "end_s", "section_s": "seconds"}
COLUMNS = (
    Column("rank", "rank", right=True),
    Column("host", "host"),
    time_column("time_s", "time"),
    time_column("mpi_s", "in MPI"),
    time_column("compute_s", "computing"),
    time_column("cpu_s", "on CPU"),
    Column("sent", "sent", right=True),
    Column("received", "received", right=True),
    Column("bytes_sent", "bytes sent", right=True),
    Column("bytes_received", "bytes received", right=True),
)


@click.command()
@click.argument("trace")
@model_option
@platform_option
@mode_option("distributed")
@click.option("--np", "ranks", type=click.IntRange(1), help="Number of ranks (default: what the trace has).")
@click.option(
    "--undefined-source",
    type=click.Choice(["refuse", "any", "null"]),
    default="refuse",
    show_default=True,
    help="What a receive from -333 is: SMPI writes it for a wildcard and for MPI_PROC_NULL.",
)
@click.option("--partial", is_flag=True, help="Accept ranks that are cut before finalize.")
@click.option("--section", metavar="FIRST-LAST|A..B", help="Time this part: lines of rank 0, or between two of its marks.")
@click.option("--compute", metavar="TIME", help="Scale the computation so that the section's, all ranks together, takes so long.")
@click.option("--memory-share", type=click.FloatRange(0, 1), default=0.0, help="Share of the computation spent on the memory bus.")
@click.option("--limit", metavar="TIME", help="End the job after so much simulated time, e.g. 10s (outcome timeout).")
@click.option(
    "--compute-kernel", metavar="KERNEL[:N]", help="Let compute amounts run at the rate of a Rinf1 loop, e.g. daxpy or daxpy:1000."
)
@click.option("--startup", is_flag=True, help="Start the job first as the runtime did; that may fail.")
@click.option(
    "--kill",
    "kills",
    multiple=True,
    metavar="PROCESS@TIME",
    help="End a process at a simulated time, e.g. 'proxy on server@0.5s', 'daemon on n1@1s', 'rank 3@2s'.",
)
@click.option(
    "--wildcards",
    type=click.Choice(["recorded", "free"]),
    default="recorded",
    show_default=True,
    help="A receive from any source matches what it matched when the trace was taken, or whatever comes first.",
)
@traffic_option
@failures_option
@timeline_options
@set_option
@fidelity_option
@seed_option
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    trace: str,
    model: str,
    platform: str,
    mode: str,
    ranks: int | None,
    undefined_source: Literal["refuse", "any", "null"],
    partial: bool,
    section: str | None,
    compute: str | None,
    memory_share: float,
    limit: str | None,
    compute_kernel: str | None,
    startup: bool,
    kills: tuple[str, ...],
    traffic: tuple[str, ...],
    failures: tuple[str, ...],
    wildcards: str,
    timeline: Wanted | None,
    sets: tuple[str, ...],
    fidelity: str,
    seed: int,
    fresh: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Replay a time-independent trace on a runtime and a platform.

    TRACE is a file, an index of files or a folder, plain or compressed. Ends with exit code 1 when the job did
    not complete; a deadlock names who waits for whom on which line. Published times are often those of a benchmark's
    timed part: --section measures it, and --compute sets how long it computes on the machine that is simulated.
    """
    from retrompi import traces
    from retrompi.sim.observe import Observe
    from retrompi.sim.resolved import Resolved
    from retrompi.spec import cross_traffic as network
    from retrompi.spec.calibrated_range import outside_of_trace
    from retrompi.spec.question import Beside, Question, Replay
    from retrompi.spec.timed_section import Program
    from retrompi.store.lookup import answer

    program = Program(section, None if compute is None else parse(compute, "s"), memory_share)
    read = traces.read(trace, np=ranks, undefined_source=undefined_source, partial=partial)
    asked = Resolved.of(Question(
        model, platform, Replay(read, trace, program), mode, sets, seed, fidelity, Beside(traffic, failures, kills=kills),
        wildcards=wildcards, start_up=startup, limit_s=None if limit is None else some_time("--limit", limit),
        compute_kernel=compute_kernel or "",
    ))  # fmt: skip
    store_ = open_for(ctx, store)
    warnings = warn(outside_of_trace(asked.model, asked.platform, read, sets=sets), model)
    found = answer(store_, asked, fresh=fresh, observe=Observe(timeline=timeline.request if timeline else None))
    run = store_.run(found.run_id)
    if timeline:
        write_timeline(found.timeline, timeline, [] if run["outcome"] == "completed" else why(run))
    keys = [c.key for c in COLUMNS]
    if as_json and not as_csv:
        part = {"section": run["facts"].get("section")} if section else {}
        rows = [{k: row.get(k) for k in keys} for row in found.rows]
        ended = {}
        if run["outcome"] != "completed":
            ended = {"detail": run["detail"], **{k: run["facts"].get(k) for k in ("waits", "diagnosis")}}
        beside = {k: run["facts"].get(k) for k in ("traffic", "failed", "lost") if traffic or failures}
        print_json({**{k: run[k] for k in KEYS}, **part, **ended, **beside, "warnings": warnings, "per_rank": rows})
    else:
        if not as_csv:
            click.echo(_headline(run))
            click.echo(timed(run["facts"].get("section"))) if section else None
            for line in network.lines(run["facts"]):
                click.echo(line)
        rows = found.rows
        if as_csv and section:  # a column of the same value for every rank: the form in which a table stays flat
            keys += list(SECTION)
            told = run["facts"].get("section") or {}
            rows = [{**row, **{k: told.get(v) for k, v in SECTION.items()}} for row in rows]
        emit(rows, COLUMNS, as_json=as_json, as_csv=as_csv, keys=keys, empty="no rank ran")
    if run["outcome"] != "completed":
        for line in why(run):
            click.echo(line, err=True)
        ctx.exit(1)
    note(f"run {found.run_id}" + (" (found in the store; --fresh simulates again)" if found.found else ""))


def _headline(run: dict[str, Any]) -> str:
    took = "" if run["time_s"] is None else f" in {format_time(run['time_s'])}"
    counts = f"{run['ranks']} ranks, {run['actions']} actions, {run['messages']} messages"
    moved = format_bytes(run["bytes"]) if run["bytes"] is not None else "?"
    return f"{run['outcome']}{took}: {counts}, {moved} (simulated in {format_time(run['wall_s'])})"


def timed(section: dict[str, Any] | None) -> str:
    """A line on the section that was timed."""
    if section is None:
        return "the section was not reached"
    begin, end, took = (format_time(section[k]) for k in ("begin_s", "end_s", "seconds"))
    return f"section {section['section']}: {took} ({begin} to {end})"


def why(run: dict[str, Any]) -> list[str]:
    """How a run ended and why: see `retrompi.sim.diagnosis.lines`."""
    from retrompi.sim import diagnosis

    facts = run["facts"]
    return diagnosis.lines(run["outcome"], run["detail"], facts.get("waits", []), facts.get("diagnosis", {}))
