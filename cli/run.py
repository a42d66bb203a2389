"""``retrompi run``: a program on one of the three backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from retrompi.api.programs import RUN_LIMIT
from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse
from retrompi.cli.bundle import option, options
from retrompi.cli.options import (
    BoundsOptions,
    Fidelity,
    OnPlatform,
    Overrides,
    Placing,
    RunOutput,
    SeedOption,
    complete_model,
    progress,
    ranks_option,
    some_time,
)
from retrompi.cli.output import Column, note_run, note_warnings, print_csv, print_json, print_table, say, time_column
from retrompi.sim import diagnosis

if TYPE_CHECKING:
    from retrompi.api.programs import Execution
    from retrompi.store import Store

MOST_CALLS = 12
MOST_SECTIONS = 40
SECTIONS = (
    Column("section", "section"),
    Column("parts", "parts", right=True),
    Column("n", "times", right=True),
    time_column("min_s", "min"),
    time_column("q25_s", "quarter"),
    time_column("median_s", "median"),
    time_column("q75_s", "three q."),
    time_column("p95_s", "95 %"),
    time_column("max_s", "max"),
)
CSV = (
    "backend", "program", "ranks", "mpi", "model", "platform", "mode", "fidelity", "outcome", "section", "parts", "n", "min_s", "q25_s",
    "median_s", "q75_s", "p95_s", "max_s",
)
CALLS = (
    Column("call", "call"),
    Column("size_B", "size", lambda v: format_bytes(int(v)), right=True),
    Column("section", "section"),
    Column("count", "calls", right=True),
    time_column("seconds", "time, all ranks"),
    time_column("mean_s", "mean"),
    Column("share", "share", lambda v: f"{v:.0%}", right=True),
)


@dataclass(frozen=True)
class RunOptions(BoundsOptions, Placing, OnPlatform, Overrides, SeedOption, Fidelity):
    """Options of ``retrompi run``."""

    backend: Literal["model", "smpi", "native"] | None = option(
        "Backend that runs the program (default: model if --model is given, else native).", "-b", "--backend")
    ranks: int = ranks_option(default=2)
    model: str | None = option(
        "Runtime model: of the backends model and smpi (see 'retrompi models list').",
        "-m", "--model", metavar="NAME|FOLDER", shell_complete=complete_model)
    mpi: str | None = option("MPI library: of native runs (default: MPICH if installed, else Open MPI).", metavar="mpich|openmpi")
    repetitions: int = option("Number of native runs to measure.", "-r", "--repetitions", type=click.IntRange(1), default=10)
    warmup: int = option("Warm-up repetitions: native runs that are not counted.", "--warm-up", type=click.IntRange(0), metavar="N",
                         default=1, aliases=("--warmup",))
    no_profile: bool = option("Skip the per-call profile (saves one native run).")
    wall_limit: str | None = option(
        f"Stop a simulation after this wall time: also a program (default for one: {RUN_LIMIT}).", metavar="TIME", aliases=("--timeout",))
    wait_quiet: str | None = option("Maximum time to wait for a busy machine to become idle, e.g. 60s.", metavar="TIME")
    trace: Path | None = option(
        "Trace to replay: with --backend model, instead of recording the program.", type=click.Path(exists=True, path_type=Path),
        metavar="TRACE")
    most_calls: int = option("Maximum number of profile rows printed (JSON has all).", type=click.IntRange(0), default=MOST_CALLS)


@click.command()
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@options(given=RunOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, program: str, arguments: tuple[str, ...], given: RunOptions, output: RunOutput) -> None:
    """Run a program on a runtime model, on SimGrid's SMPI or natively, and show its times and MPI calls.

    PROGRAM is a source file (.c, .cpp, .f90, ...; compiled with the MPI's own compiler and cached), a binary, or an mpi4py script;
    its ARGUMENTS follow after --. Sections are what the program marks with MPI_Pcontrol(N) ... MPI_Pcontrol(-PARTS). Exit code 1
    means that the program failed, hung or deadlocked.

    \b
    Examples:
      retrompi run examples/pingpong.c
      retrompi run -m wmpi -p nt-cluster -n 4 examples/jacobi.c
      retrompi run --backend smpi -m wmpi -p nt-cluster -n 4 examples/jacobi.c
      retrompi run --backend native -n 4 ./app -- --size 100
    """
    from retrompi.api.programs import Execution
    from retrompi.measure import launch
    from retrompi.spec import registry

    backend = given.backend or ("model" if given.model is not None else "native")
    _check(ctx, backend)
    wall = None if backend == "model" else parse(RUN_LIMIT, "s")
    quiet = some_time("--wait-quiet", given.wait_quiet) if given.wait_quiet is not None else 0.0
    platform = given.platform or (registry.own_platform(given.model) if given.model is not None else "")
    store_ = output.open()
    with progress(f"{Path(program).name} on {backend}") as report:
        done = launch.run(
            store_, backend, program, arguments, given.ranks, set=given.sets, model=given.model,
            platform=platform or None, mode=given.placement(platform) if backend != "native" else None,
            seed=given.seed, fidelity=given.fidelity, mpi=given.mpi, repetitions=given.repetitions, warmup=given.warmup,
            profile=not given.no_profile, bounds=given.bounds(),
            timeout_s=wall, time_limit=given.limit_s, wait_quiet_s=quiet, trace=None if given.trace is None else str(given.trace),
            fresh=output.fresh, report=report,
        )
    told = Execution(done)
    times = told.rows
    if output.as_json:
        row = {**{k: v for k, v in done.row().items() if k != "cautions"}, "warnings": [c.row() for c in done.cautions]}
        print_json({**row, "summary": times[0] if times else None, "section_summaries": times[1:]})
    elif output.as_csv:
        about = {k: getattr(done, k) for k in CSV[:9]}
        print_csv([{**about, **row} for row in times], CSV)
    else:
        _tell(told, given.most_calls)
    if done.errors.strip():
        click.echo(done.errors.rstrip("\n"), err=True)
    for text in done.notes:
        click.echo(f"{'warning' if text.startswith(('this machine', 'oversubscribed')) else 'note'}: {text}", err=True)
    note_warnings(done.cautions)
    if not done.completed:
        for line in _why(store_, done):
            click.echo(line, err=True)
        ctx.exit(1)
    note_run(done.run_id, done.found)


# option of the command -> the backends to which it applies
_SIMULATED = ("model", "smpi")
_ONLY = {
    **dict.fromkeys(("model", "platform", "mode", "hostfile", "per_host", "sets", "seed", "fidelity"), _SIMULATED),
    **dict.fromkeys(("repetitions", "warmup", "wait_quiet"), ("native",)),
    "mpi": ("native", "model"),
    "time_limit": _SIMULATED,
    "event_limit": ("model",),
    "trace": ("model",),
}


def _check(ctx: click.Context, backend: str) -> None:
    """Rejects an option that the backend would ignore."""
    for name, read in _ONLY.items():
        if backend not in read and ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            option = next(p.opts[-1] for p in ctx.command.params if p.name == name)
            raise UsageError(f"{option} does not apply to --backend {backend}, only to {' and '.join(read)}", code="unused-option")


def _why(store: Store, done: Any) -> list[str]:
    """Prints the outcome; for a deadlocked replay also which rank waits for which, with lines of the trace."""
    row = store.run(done.run_id)
    if "diagnosis" not in row["facts"]:
        return [f"{done.outcome}: {done.detail}"]
    return [line.replace(f"{done.trace}/", "") for line in diagnosis.of_run(row)]


def _tell(told: Execution, most_calls: int) -> None:
    from retrompi.sim.cautions import mark

    done = told.done
    if done.output.strip():
        click.echo(done.output.rstrip("\n") + "\n")
    rows = told.rows
    say(_headline(done, rows[0] if rows else None) + mark(done.cautions))
    if len(rows) > 1:
        say()
        once = all(row["n"] == 1 for row in rows)
        print_table(rows[1 : MOST_SECTIONS + 1], (*SECTIONS[:2], time_column("median_s", "time")) if once else SECTIONS)
        if len(rows) > MOST_SECTIONS + 1:
            say(f"… and {len(rows) - MOST_SECTIONS - 1} more sections (--csv has all)")
    if done.calls and most_calls:
        say()
        total = sum(c.seconds for c in done.calls)
        shown = told.calls.rows[:most_calls]
        columns = CALLS if any(c.section for c in done.calls) else [c for c in CALLS if c.key != "section"]
        print_table(shown, columns)
        if len(done.calls) > most_calls:
            rest = sum(c.seconds for c in done.calls[most_calls:])
            say(
                f"… and {len(done.calls) - most_calls} more rows, {rest / total if total else 0:.0%} of the time in MPI (--json has all)"
            )


def _headline(done: Any, whole: Mapping[str, Any] | None) -> str:
    words = [done.mpi, f"{done.model} on {done.platform}" if done.model else "", done.mode, done.fidelity]
    if done.machine is not None:
        words.append(f"{done.machine.cpu}, {done.machine.cores} cores")
    place = ", ".join(w for w in words if w)
    text = f"{done.program}, {done.ranks} ranks, {done.backend} ({place}): {done.outcome}"
    if whole is None:
        return text
    if whole["n"] == 1:
        return f"{text} in {format_time(whole['median_s'])}"
    band = f"{format_time(whole['q25_s'])} to {format_time(whole['q75_s'])}"
    return f"{text} in {format_time(whole['median_s'])} (min {format_time(whole['min_s'])}, middle half {band}, {whole['n']} repetitions)"
