"""``retrompi trace``: operations on traces before a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.options import (
    Overrides,
    Placing,
    UndefinedSource,
    complete_model,
    complete_platform,
    new_path,
    ranks_option,
    some_rate,
)
from retrompi.cli.output import Column, Output, print_json, print_table, say
from retrompi.cli.trace_convert import command as convert_command
from retrompi.cli.trace_cut import command as cut_command
from retrompi.cli.trace_extrapolate import command as extrapolate_command
from retrompi.cli.trace_merge import command as merge_command
from retrompi.cli.trace_record import record

if TYPE_CHECKING:
    from retrompi.traces import Rate

SIZES = (Column("up_to_B", "messages up to", lambda v: format_bytes(int(v)), right=True), Column("messages", "messages", right=True))
SCALED = (Column("trace", "written"), Column("ranks", "ranks", right=True), Column("factor", "computation times", right=True))
SECTION_HELP = "Section of the program: the part that --compute is about; lines of rank 0, or from one of its marks to another."
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
SUPPORT = (Column("model", "model"), Column("support", "will be"), Column("lines", "lines", right=True), Column("why", "the first of them"))
MOST_PAIRS = 20
MOST_COMMS = 12


@click.group()
@debug_option
def command() -> None:
    """Record, inspect, convert, cut, merge, scale or extrapolate traces.

    \b
    Examples:
      retrompi trace info examples/traces/jacobi-4.tar.zst
      retrompi trace record -o my-trace -- mpiexec -n 4 ./app
    """


@dataclass(frozen=True)
class TraceInfoOptions(UndefinedSource, Placing, Overrides):
    """Options of ``retrompi trace info``."""

    ranks: int | None = ranks_option(" (default: as in the trace)")
    model: str | None = option(
        "Runtime model: estimate memory and time of a replay on it.", "-m", "--model", metavar="NAME|FOLDER", shell_complete=complete_model)
    platform: str = option(
        "Platform: of that replay.", "-p", "--platform", default="nt-cluster", metavar="NAME|FILE", shell_complete=complete_platform)


@command.command("info")
@click.argument("trace")
@options(given=TraceInfoOptions, output=Output)
def info(trace: str, given: TraceInfoOptions, output: Output) -> None:
    """Show what TRACE contains and whether each runtime model can replay it.

    Lists ranks, actions, communicators, message sizes, which rank sends to which, and whether a runtime simulates, approximates or
    refuses the operations. --csv prints the communication matrix. With --model, a short run estimates the time and memory of a
    replay.

    \b
    Examples:
      retrompi trace info examples/traces/jacobi-4.tar.zst
      retrompi trace info examples/traces/sort-4.tar.zst --model wmpi
      retrompi trace info examples/traces/jacobi-4.tar.zst --csv
    """
    from retrompi import traces
    from retrompi.sim import preflight
    from retrompi.spec import registry
    from retrompi.spec.question import Question, Replay

    read = traces.read(trace, np=given.ranks, undefined_source=given.undefined_source)
    told = preflight.summary(read)
    pairs = [{"from": a, "to": b, "messages": n, "bytes": size} for a, b, n, size in told.pop("pairs")]
    sizes = [{"up_to_B": top, "messages": n} for top, n in told.pop("sizes")]
    if output.as_csv:
        output.emit(pairs, PAIRS)
        return
    models = [given.model] if given.model else registry.shipped_models()
    levels: list[dict[str, Any]] = [preflight.support(Question(m, given.platform, Replay(read), what_if_hardware=True)) for m in models]
    cost = None
    if given.model and levels[0]["support"] != "refused":
        about = {**told, "sizes": [(s["up_to_B"], s["messages"]) for s in sizes]}
        cost = preflight.estimate(about, Question(given.model, given.platform, Replay(read), given.placement(given.platform), given.sets))
    rate = traces.rate_of(read)
    if output.as_json:
        told["rate"] = None if rate is None else {"flops": rate.flops, "source": rate.source}
        print_json({**told, "pairs": pairs, "sizes": sizes, "models": levels, "estimate": cost})
        return
    _print_counts(told, rate)
    _print_messages(told["communicators"], sizes, pairs)
    say("")
    print_table(levels, SUPPORT)
    if cost:
        pace = f"{cost['messages_per_s']:.3g} messages a second in a short run"
        memory = format_bytes(int(cost["memory_B"]))
        say(f"\na replay on {given.model}: about {format_time(cost['seconds'])} ({pace}), {memory} for the trace")


def _print_counts(told: Mapping[str, Any], rate: Rate | None) -> None:
    """The numbers of a trace's ranks, actions and messages."""
    calls = ", ".join(f"{name} {n}" for name, n in sorted(told["calls"].items(), key=lambda kv: -kv[1]))
    say(f"{told['ranks']} ranks, {told['actions']} actions: {calls}")
    if rate is not None:
        say(f"computation counted at {rate} ({rate.source})")
    sent = f"{told['sends']} messages sent, {format_bytes(told['bytes_sent'])}"
    longest = f", the longest {format_bytes(told['largest_B'])}"  # of a collective too, if it has any
    say(f"{sent}; with collectives about {told['messages']} messages{longest}" if told["collectives"] else sent + longest)
    matched = f", {told['matched_share']:.1%} of these with what they matched" if told["wildcards"] else ""
    say(f"{told['receives']} receives, {told['wildcards']} of them from any source ({told['wildcard_share']:.1%}){matched}")
    say(f"{told['collectives']} collective calls, {told['nonblocking_collectives']} of them non-blocking; "
               f"{told['one_sided']} one-sided transfers\n")


def _print_messages(communicators: Sequence[Mapping[str, Any]], sizes: Sequence[Any], pairs: Sequence[Mapping[str, Any]]) -> None:
    """Where messages go: the tables of communicators, of sizes and of pairs of ranks."""
    if len(communicators) > 1:
        comms = sorted(communicators, key=lambda c: -c["collectives"] - c["messages"])
        rows = [{**c, "size": _size(c), "made": f"{c['made_by']} {c['file']}:{c['line']}" if c["line"] else ""} for c in comms]
        print_table(rows[:MOST_COMMS], COMMS)
        if len(rows) > MOST_COMMS:
            say(f"… and {len(rows) - MOST_COMMS} more communicators (--json has all)")
        say("")
    print_table(sizes, SIZES, empty="no point-to-point message")
    if pairs:
        say("")
        print_table(sorted(pairs, key=lambda p: -p["bytes"])[:MOST_PAIRS], PAIRS)
        if len(pairs) > MOST_PAIRS:
            say(f"… and {len(pairs) - MOST_PAIRS} more pairs (--csv has all)")


def _size(comm: Mapping[str, Any]) -> str:
    return f"{comm['size']}+{comm['remote_size']}" if comm["remote_size"] else str(comm["size"])


@dataclass(frozen=True)
class TraceScaleOptions(UndefinedSource):
    """Options of ``retrompi trace scale``."""

    factor: float | None = option("Multiply all computation by this factor.")
    compute: str | None = option("Computing time: scale to it, summed over all ranks, at --rate, e.g. 9.46s.", metavar="TIME")
    rate: str | None = option(
        "Rate of computation: of the machine for --compute, e.g. 97Mflop/s (default: as the trace states, else 1 Gflop/s).", metavar="RATE")
    section: str | None = option(SECTION_HELP, metavar="FIRST-LAST|A..B")


@command.command("scale")
@click.argument("trace")
@click.argument("out", type=click.Path(path_type=Path))
@options(given=TraceScaleOptions, output=Output)
def scale(trace: str, out: Path, given: TraceScaleOptions, output: Output) -> None:
    """Scale the computation of TRACE, as if it ran on another machine, and write the result to OUT.

    OUT is a folder, or one file if it ends in .ti, .gz or .zst. Communication and sleeps are unchanged. The result is plain TI,
    which SMPI replays too.

    \b
    Examples:
      retrompi trace scale examples/traces/jacobi-4.tar.zst slower.ti.zst --factor 3
      retrompi trace scale my-trace scaled --compute 9.46s --rate 97Mflop/s
    """
    from retrompi import traces
    from retrompi.traces.computation import NOMINAL
    from retrompi.traces.timed_section import compute_scale

    factor = given.factor
    if (factor is None) == (given.compute is None):
        raise UsageError("give either --factor or --compute", code="conflicting-options")
    if factor is not None and not 0 < factor < float("inf"):
        raise UsageError(f"--factor {factor} must be a finite number above zero", code="out-of-range")
    if given.section is not None and given.compute is None:
        raise UsageError("--section limits --compute; give --compute as well", code="missing-option")
    new_path(out)
    read = traces.read(trace, undefined_source=given.undefined_source)
    if given.compute is not None:
        own = traces.rate_of(read)
        rate = own or traces.Rate(NOMINAL, "nominal: 'trace scale' without --rate")
        if given.rate is not None:
            rate = traces.Rate(some_rate("--rate", given.rate), "given by 'trace scale --rate'")
        flops = [rate.flops] * read.ranks
        seconds = parse(given.compute, "s")
        if given.section is not None:
            factor = compute_scale(read, given.section, seconds, flops)
        else:
            now = float(read.info()["compute_flops"])
            if now <= 0:
                raise UsageError(f"{trace} contains no computation")
            factor = seconds * flops[0] / now
    assert factor is not None
    traces.write(read.scaled(factor), out, shared=out.suffix in (".ti", ".gz", ".zst"))
    output.emit([{"trace": str(out), "ranks": read.ranks, "factor": factor}], SCALED)


command.add_command(convert_command)
command.add_command(cut_command)
command.add_command(merge_command)
command.add_command(extrapolate_command)
command.add_command(record)
