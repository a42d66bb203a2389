"""``retrompi fidelity``: a model at every rung of the fidelity ladder."""

from __future__ import annotations

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.options import (
    complete_model,
    csv_option,
    debug_option,
    fresh_option,
    json_option,
    mode_option,
    open_for,
    platform_option,
    seed_option,
    set_option,
    store_option,
    warn,
)
from retrompi.cli.output import Column, emit, time_column
from retrompi.spec.channels import NO_LIMIT

CURVE = (
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    *(Column(f"{rung}_us", rung, lambda v: format_time(v * 1e-6), right=True) for rung in ("mechanism", "curve", "loggp")),
    Column("spread", "spread", lambda v: f"{v:.3f}", right=True),
)
TRACE = (
    Column("trace", "trace"),
    *(time_column(f"{rung}_s", rung) for rung in ("mechanism", "curve", "loggp")),
    Column("spread", "spread", lambda v: f"{v:.3f}", right=True),
    Column("outcomes", "outcomes"),
)


@click.command()
@click.argument("model", shell_complete=complete_model)
@platform_option
@mode_option("distributed")
@click.option("--trace", metavar="TRACE", help="Replay this trace instead of the PingPong.")
@click.option("--sizes", metavar="LIST", help="Sizes of the PingPong (default: powers of two to 4 MiB).")
@click.option("--reps", type=click.IntRange(1), default=20, show_default=True, help="Repetitions at every size.")
@set_option
@seed_option
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    platform: str,
    mode: str,
    trace: str | None,
    sizes: str | None,
    reps: int,
    sets: tuple[str, ...],
    seed: int,
    fresh: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Show a PingPong or a trace at every rung of the fidelity ladder, and their spread.

    MODEL is a name or a folder. The rungs are the mechanism, the curve sampled from it, and LogGP fitted to that curve; the spread
    is the largest time over the smallest. Ends with exit code 1 when a rung does not complete.
    """
    from retrompi import traces
    from retrompi.sim import fidelity
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.calibrated_range import outside, outside_of_trace
    from retrompi.spec.question import Question, Replay, pingpong
    from retrompi.store.lookup import samples_in
    from retrompi.store.rungs import spread, spread_of_trace

    asked = Resolved.of(Question(model, platform, pingpong(reps=reps), mode, sets, seed))
    if trace is not None:
        if sizes is not None:
            raise UsageError("--sizes is of the PingPong; a trace has its own")
        read = traces.read(trace)
        warnings = warn(outside_of_trace(asked.model, asked.platform, read, sets=sets), model)
        row = spread_of_trace(open_for(ctx, store), asked.changed(workload=Replay(read, trace)), fresh=fresh)
        outcomes = list(dict.fromkeys(row[f"outcome_{rung}"] for rung in fidelity.RUNGS))
        row |= {"trace": trace, "outcomes": ", ".join(outcomes), "warnings": warnings}
        keys = [c.key for c in TRACE]
        emit([row], TRACE, as_json=as_json, as_csv=as_csv, keys=[*keys, "warnings", "run_ids"] if as_json else keys)
        if outcomes != ["completed"]:
            ctx.exit(1)
        return
    wanted = None if sizes is None else parse_sizes(sizes)
    store_ = open_for(ctx, store)
    rows = spread(store_, asked.changed(workload=pingpong(wanted, reps)), fresh=fresh)
    warnings = warn(outside(asked.model, asked.platform, sizes=[r["size_B"] for r in rows], ranks=2, sets=sets), model)
    keys = [c.key for c in CURVE]
    told = [{**r, "warnings": warnings} for r in rows]
    emit(told, CURVE, as_json=as_json, as_csv=as_csv, keys=[*keys, "warnings", "run_ids"] if as_json else keys)
    if not (as_json or as_csv):
        click.echo("")
        for p in samples_in(store_).loggp(asked):
            below = "all messages" if p.high >= NO_LIMIT else f"below {format_bytes(int(p.high))}"
            part = f"from {format_bytes(int(p.low))} on" if p.low else below
            rate = f"{1e-6 / p.G:.4g} MB/s" if p.G > 0 else "no limit"
            click.echo(f"LogGP, {part}: L {format_time(p.L)}, o {format_time(p.o)}, g {format_time(p.g)}, 1/G {rate}")
