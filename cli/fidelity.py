"""``retrompi fidelity``: a model at every rung of the fidelity ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.bundle import instead_of, option, options
from retrompi.cli.options import Effort, OfModel, RunOutput, Seeded, complete_model, placement_words, sizes_option, warm_up_option
from retrompi.cli.output import Column, note_warnings, say, time_column
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.media import NO_LIMIT

if TYPE_CHECKING:
    from retrompi.sim.resolved import Resolved
    from retrompi.store import Store

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


@dataclass(frozen=True)
class FidelityOptions(Effort, Seeded, OfModel):
    """Options of ``retrompi fidelity``."""

    trace: str | None = option("Trace to replay: instead of the PingPong.", metavar="TRACE")
    sizes: str | None = sizes_option(" (default: powers of two up to 4 MiB).")
    reps: int = option("Repetitions at each size.", type=click.IntRange(1), default=20)
    warm_up: int = warm_up_option()


@click.command()
@instead_of("model", shell_complete=complete_model)
@options(given=FidelityOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, given: FidelityOptions, output: RunOutput) -> None:
    """Show a PingPong or a trace at every level of detail, and the spread between levels.

    The levels are the full mechanism, the curve sampled from it, and LogGP fitted to that curve; the
    spread is the largest time over the smallest. Exit code 1 means that a level did not complete.

    \b
    Examples:
      retrompi fidelity -m wmpi --mode shared --sizes 1KiB,64KiB
      retrompi fidelity -m wmpi -p nt-cluster --trace examples/traces/jacobi-4.tar.zst
    """
    from retrompi.sim import fidelity
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.question import Replay, pingpong
    from retrompi.store.lookup import samples_in
    from retrompi.store.rungs import spread, spread_of_trace
    from retrompi.traces.source import Source

    asked = Resolved.of(given.question(pingpong(reps=given.reps)))
    if given.trace is not None:
        if given.sizes is not None:
            raise UsageError("--sizes applies to the PingPong, not to a trace", code="unused-option")
        source = Source(given.trace)
        read = source.read()
        asked = asked.with_fields(workload=Replay(read, given.trace, source=source.row()))
        store = output.open()
        row = spread_of_trace(store, asked, fresh=output.fresh)
        warned = _print_cautions(store, asked, row["run_ids"], [read.info()["largest_B"]], given, output)
        outcomes = list(dict.fromkeys(row[f"outcome_{rung}"] for rung in fidelity.RUNGS))
        row |= {"trace": given.trace, "outcomes": ", ".join(outcomes), "warnings": warned}
        keys = [c.key for c in TRACE]
        output.emit([row], TRACE, keys=[*keys, "warnings", "run_ids"] if output.as_json else keys)
        if outcomes != [Outcome.COMPLETED]:
            ctx.exit(1)
        return
    wanted = None if given.sizes is None else parse_sizes(given.sizes)
    store = output.open()
    rows = spread(store, asked.with_fields(workload=pingpong(wanted, given.reps, given.warm_up)), fresh=output.fresh)
    warned = _print_cautions(store, asked, rows[0]["run_ids"], [r["size_B"] for r in rows], given, output)
    keys = [c.key for c in CURVE]
    told = [{**r, "warnings": warned} for r in rows]
    output.emit(told, CURVE, keys=[*keys, "warnings", "run_ids"] if output.as_json else keys)
    if output.text:
        say("")
        for p in samples_in(store).loggp(asked):
            below = "all messages" if p.high >= NO_LIMIT else f"below {format_bytes(int(p.high))}"
            part = f"from {format_bytes(int(p.low))} on" if p.low else below
            rate = f"{1e-6 / p.G:.4g} MB/s" if p.G > 0 else "no limit"
            say(f"LogGP, {part}: L {format_time(p.L)}, o {format_time(p.o)}, g {format_time(p.g)}, 1/G {rate}")


def _print_cautions(
    store: Store, asked: Resolved, run_ids: Sequence[int], sizes: Sequence[int], given: FidelityOptions, output: RunOutput
) -> list[dict[str, Any]]:
    """Prints the title and the cautions of the question and of its runs; returns these as rows."""
    from retrompi.sim.cautions import calibration_of, mark, of_run
    from retrompi.studies.read.cautions import kept_by

    warnings = of_run(asked, kept_by(store, run_ids))
    warnings += calibration_of(asked, sizes)
    if output.text:
        say(f"{given.model}, {placement_words(asked)} on {given.platform} (runs {', '.join(map(str, run_ids))}){mark(warnings)}")
    return note_warnings(warnings)
