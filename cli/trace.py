"""``retrompi trace``: what is in a trace, before it is replayed."""

from __future__ import annotations

from typing import Any, Literal

import click

from retrompi.cli.options import csv_option, debug_option, json_option, mode_option, set_option
from retrompi.cli.output import Column, emit, print_json
from retrompi.units import format_bytes, format_time

SIZES = (Column("up_to_B", "messages up to", lambda v: format_bytes(int(v)), right=True), Column("messages", "messages", right=True))
PAIRS = (
    Column("from", "from", right=True),
    Column("to", "to", right=True),
    Column("messages", "messages", right=True),
    Column("bytes", "bytes", lambda v: format_bytes(int(v)), right=True),
)
FATES = (Column("model", "model"), Column("fate", "will be"), Column("lines", "lines", right=True), Column("why", "the first of them"))
MOST_PAIRS = 20


@click.group()
@debug_option
def command() -> None:
    """Show what is in a trace, and what each runtime will do with it."""


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
    """List ranks, actions, message sizes, who sends to whom, and per runtime whether TRACE is simulated, approximated or refused.

    --csv prints the communication matrix. With --model a short run tells about how long a replay will take.
    """
    from retrompi import registry, traces
    from retrompi.traces import preflight

    read = traces.read(trace, np=ranks, undefined_source=undefined_source)
    told = preflight.summary(read)
    pairs = [{"from": a, "to": b, "messages": n, "bytes": size} for a, b, n, size in told.pop("pairs")]
    sizes = [{"up_to_B": top, "messages": n} for top, n in told.pop("sizes")]
    if as_csv:
        emit(pairs, PAIRS, as_json=False, as_csv=True)
        return
    models = [model] if model else [name for name in registry.models() if ":" not in name]
    fates: list[dict[str, Any]] = [preflight.fate(read, m, platform) for m in models]
    cost = None
    if model and fates[0]["fate"] != "refused":
        registry.platform(platform).placement(mode)
        given = {**told, "sizes": [(s["up_to_B"], s["messages"]) for s in sizes]}
        cost = preflight.estimate(given, model, platform, mode, list(sets))
    if as_json:
        print_json({**told, "pairs": pairs, "sizes": sizes, "models": fates, "estimate": cost})
        return
    calls = ", ".join(f"{name} {n}" for name, n in sorted(told["calls"].items(), key=lambda kv: -kv[1]))
    click.echo(f"{told['ranks']} ranks, {told['actions']} actions: {calls}")
    click.echo(f"{told['sends']} messages sent, {format_bytes(told['bytes_sent'])}, the longest {format_bytes(told['largest_B'])}; "
               f"with collectives about {told['messages']} messages")  # fmt: skip
    click.echo(f"{told['receives']} receives, {told['wildcards']} of them from any source ({told['wildcard_share']:.1%})\n")
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
