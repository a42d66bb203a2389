"""``retrompi trace``: what is done with a trace before it is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse
from retrompi.cli.options import csv_option, debug_option, json_option, mode_option, set_option
from retrompi.cli.output import Column, emit, print_json
from retrompi.cli.trace_convert import command as convert_command
from retrompi.cli.trace_cut import command as cut_command
from retrompi.cli.trace_merge import command as merge_command
from retrompi.cli.trace_record import record

SIZES = (Column("up_to_B", "messages up to", lambda v: format_bytes(int(v)), right=True), Column("messages", "messages", right=True))
SCALED = (Column("trace", "written"), Column("ranks", "ranks", right=True), Column("factor", "computation times", right=True))
SECTION_HELP = "Only what lies between these lines of rank 0 (FIRST-LAST) or marks (LABEL..LABEL) is made to add up to --compute."
PAIRS = (
    Column("from", "from", right=True),
    Column("to", "to", right=True),
    Column("messages", "messages", right=True),
    Column("bytes", "bytes", lambda v: format_bytes(int(v)), right=True),
)
COMMS = (
    Column("id", "communicator", right=True),
    Column("kind", "kind"),
    Column("size", "ranks", right=True),
    Column("messages", "messages", right=True),
    Column("collectives", "collective calls", right=True),
    Column("made", "made by"),
)
FATES = (Column("model", "model"), Column("fate", "will be"), Column("lines", "lines", right=True), Column("why", "the first of them"))
MOST_PAIRS = 20
MOST_COMMS = 12


@click.group()
@debug_option
def command() -> None:
    """Record a program's trace, look at one, and convert, cut, merge or scale it."""


@command.command("info")
@click.argument("trace")
@click.option("--np", "ranks", type=click.IntRange(1), help="Number of ranks (default: what the trace has).")
@click.option("--undefined-source", type=click.Choice(["refuse", "any", "null"]), default="refuse", help="What a receive from -333 is.")
@click.option("-m", "--model", help="Estimate memory and time of a replay on this runtime.")
@click.option("-p", "--platform", default="nt-cluster", show_default=True, help="The machine room of that replay.")
@mode_option("distributed")
@set_option
@json_option
@csv_option
@debug_option
def info(
    trace: str,
    ranks: int | None,
    undefined_source: Literal["refuse", "any", "null"],
    model: str | None,
    platform: str,
    mode: str,
    sets: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
) -> None:
    """List ranks, actions, communicators, message sizes, who sends to whom, and whether a runtime simulates, approximates or refuses TRACE.

    --csv prints the communication matrix. With --model a short run tells about how long a replay will take.
    """
    from retrompi import traces
    from retrompi.sim import preflight
    from retrompi.spec import registry
    from retrompi.spec.question import Question, Replay

    read = traces.read(trace, np=ranks, undefined_source=undefined_source)
    told = preflight.summary(read)
    pairs = [{"from": a, "to": b, "messages": n, "bytes": size} for a, b, n, size in told.pop("pairs")]
    sizes = [{"up_to_B": top, "messages": n} for top, n in told.pop("sizes")]
    if as_csv:
        emit(pairs, PAIRS, as_json=False, as_csv=True)
        return
    models = [model] if model else [name for name in registry.models() if ":" not in name]
    fates: list[dict[str, Any]] = [preflight.fate(Question(m, platform, Replay(read))) for m in models]
    cost = None
    if model and fates[0]["fate"] != "refused":
        given = {**told, "sizes": [(s["up_to_B"], s["messages"]) for s in sizes]}
        cost = preflight.estimate(given, Question(model, platform, Replay(read), mode, sets))
    if as_json:
        print_json({**told, "pairs": pairs, "sizes": sizes, "models": fates, "estimate": cost})
        return
    calls = ", ".join(f"{name} {n}" for name, n in sorted(told["calls"].items(), key=lambda kv: -kv[1]))
    click.echo(f"{told['ranks']} ranks, {told['actions']} actions: {calls}")
    click.echo(f"{told['sends']} messages sent, {format_bytes(told['bytes_sent'])}, the longest {format_bytes(told['largest_B'])}; "
               f"with collectives about {told['messages']} messages")  # fmt: skip
    matched = f", {told['matched_share']:.1%} of these with what they matched" if told["wildcards"] else ""
    click.echo(f"{told['receives']} receives, {told['wildcards']} of them from any source ({told['wildcard_share']:.1%}){matched}")
    click.echo(f"{told['collectives']} collective calls, {told['nonblocking_collectives']} of them non-blocking; "
               f"{told['one_sided']} one-sided transfers\n")  # fmt: skip
    if len(told["communicators"]) > 1:
        comms = sorted(told["communicators"], key=lambda c: -c["collectives"] - c["messages"])
        rows = [{**c, "size": _size(c), "made": f"{c['made_by']} {c['file']}:{c['line']}" if c["line"] else ""} for c in comms]
        emit(rows[:MOST_COMMS], COMMS, as_json=False, as_csv=False)
        if len(rows) > MOST_COMMS:
            click.echo(f"… and {len(rows) - MOST_COMMS} more communicators (--json has all)")
        click.echo("")
    emit(sizes, SIZES, as_json=False, as_csv=False, empty="no point-to-point message")
    if pairs:
        click.echo("")
        emit(sorted(pairs, key=lambda p: -p["bytes"])[:MOST_PAIRS], PAIRS, as_json=False, as_csv=False)
        if len(pairs) > MOST_PAIRS:
            click.echo(f"… and {len(pairs) - MOST_PAIRS} more pairs (--csv has all)")
    click.echo("")
    emit(fates, FATES, as_json=False, as_csv=False)
    if cost:
        rate = f"{cost['messages_per_s']:.3g} messages a second in a short run"
        memory = format_bytes(int(cost["memory_B"]))
        click.echo(f"\na replay on {model}: about {format_time(cost['seconds'])} ({rate}), {memory} for the trace")


def _size(comm: dict[str, Any]) -> str:
    return f"{comm['size']}+{comm['remote_size']}" if comm["remote_size"] else str(comm["size"])


@command.command("scale")
@click.argument("trace")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--factor", type=float, help="Multiply every amount of computation by this.")
@click.option("--compute", metavar="TIME", help="Or: make the computation of all ranks add up to this, e.g. 9.46s, at --rate.")
@click.option("--rate", metavar="RATE", default="1 Gflop/s", show_default=True, help="The machine's rate for --compute, e.g. 97Mflop/s.")
@click.option("--section", metavar="FIRST-LAST|A..B", help=SECTION_HELP)
@click.option("--undefined-source", type=click.Choice(["refuse", "any", "null"]), default="refuse", help="What a receive from -333 is.")
@json_option
@csv_option
@debug_option
def scale(
    trace: str,
    out: Path,
    factor: float | None,
    compute: str | None,
    rate: str,
    section: str | None,
    undefined_source: Literal["refuse", "any", "null"],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Write TRACE with its computation scaled to another machine to OUT: a folder, or one file when OUT ends in .ti, .gz or .zst.

    Communication and sleeping stay as they are. The result is plain TI, which SMPI replays as well.
    """
    from retrompi import traces
    from retrompi.traces.timed_section import compute_scale

    if (factor is None) == (compute is None):
        raise UsageError("give either --factor or --compute")
    if factor is not None and not 0 < factor < float("inf"):
        raise UsageError(f"--factor {factor} must be a finite number above zero")
    if section is not None and compute is None:
        raise UsageError("--section says what --compute is the time of; give --compute as well")
    if out.exists():
        raise UsageError(f"{out} exists; choose another name")
    read = traces.read(trace, undefined_source=undefined_source)
    if compute is not None:
        flops = [parse(rate, "flop/s")] * read.ranks
        seconds = parse(compute, "s")
        if section is not None:
            factor = compute_scale(read, section, seconds, flops)
        else:
            now = float(read.info()["compute_flops"])
            if now <= 0:
                raise UsageError(f"{trace} computes nothing")
            factor = seconds * flops[0] / now
    assert factor is not None
    traces.write(read.scaled(factor), out, shared=out.suffix in (".ti", ".gz", ".zst"))
    emit([{"trace": str(out), "ranks": read.ranks, "factor": factor}], SCALED, as_json=as_json, as_csv=as_csv)


command.add_command(convert_command)
command.add_command(cut_command)
command.add_command(merge_command)
command.add_command(record)
