"""``retrompi trace record``: a trace of a real program's run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, parse
from retrompi.cli.options import csv_option, debug_option, json_option
from retrompi.cli.output import Column, emit, print_json

COLUMNS = (
    Column("rank", "rank", right=True),
    Column("ended", "ended"),
    Column("calls", "calls", right=True),
    Column("lines", "lines", right=True),
    Column("trace_B", "trace", lambda v: format_bytes(int(v)), right=True),
    Column("overhead_ns", "ns a call", right=True),
)
MOST_ROWS = 32


@click.command("record")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder, or NAME.tar.zst (default: PROGRAM-trace).")
@click.option("--smpi", "use_smpi", is_flag=True, help="Run the program (source or binary of smpicc) on SimGrid's SMPI.")
@click.option("-n", "--np", "ranks", type=click.IntRange(1), help="With --smpi: number of ranks.")
@click.option("--mpicc", metavar="COMPILER", help="The C compiler of the MPI in use (default: found beside mpiexec).")
@click.option("--clock", type=click.Choice(["cpu", "wall", "instructions", "cycles"]), default="cpu", show_default=True,
              help="What measures computation between calls.")  # fmt: skip
@click.option("--rate", metavar="RATE", help="What a second counts as (default: 1 Gflop/s); of counters, flop an event (default: 1).")
@click.option("--threshold", metavar="TIME", default="1us", show_default=True, help="Shorter bursts are added to the next one.")
@click.option("--whole-command", is_flag=True, help="Keep absolute paths of the command in the trace's header.")
@click.option("--no-check", is_flag=True, help="Do not read the trace back afterwards.")
@click.option("--finish", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Make the trace of an interrupted recording.")
@json_option
@csv_option
@debug_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record(
    out: Path | None,
    use_smpi: bool,
    ranks: int | None,
    mpicc: str | None,
    clock: str,
    rate: str | None,
    threshold: str,
    whole_command: bool,
    no_check: bool,
    finish: Path | None,
    as_json: bool,
    as_csv: bool,
    command: tuple[str, ...],
) -> None:
    """Record the trace of what COMMAND asks of MPI: -- mpiexec -n 4 ./app, for instance.

    MPICH and Open MPI, C, C++, Fortran and mpi4py; nothing is compiled again. A program that is killed leaves the trace up to then.
    Exit code 1: the program failed, or a rank did not reach MPI_Finalize; the trace is kept.
    """
    from retrompi.measure import record as recorder

    if finish is not None:
        if command:
            raise UsageError("--finish takes no command")
        if out is None:
            out = finish.with_name(finish.name.removesuffix(".part"))
        if out.exists():
            raise UsageError(f"{out} exists; choose another name with --out")
        result = recorder.assemble(finish, out, None, check=not no_check)
    else:
        if not command:
            raise UsageError("nothing to record: give a command after --, e.g. retrompi trace record -- mpiexec -n 4 ./app")
        measured = recorder.Clock(clock, *_scale(clock, rate, threshold))
        out = out or Path(f"{_name(command)}-trace")
        result = recorder.record(
            command, out, mpicc=mpicc, use_smpi=use_smpi, ranks=ranks, clock=measured, whole_command=whole_command, check=not no_check
        )
    _tell(result, as_json, as_csv)
    if result.failed or result.partial:
        click.get_current_context().exit(1)


def _name(command: tuple[str, ...]) -> str:
    """What to call the trace: the last word that is an existing file, without a suffix of a source."""
    files = [Path(w) for w in command if Path(w).is_file()]
    path = files[-1] if files else Path(command[0])
    return path.stem if path.suffix in (".c", ".f", ".f90", ".py", ".cpp", ".cc") else path.name


def _scale(clock: str, rate: str | None, threshold: str) -> tuple[float, int]:
    """(rate, threshold) as ``Clock`` wants them."""
    if clock in ("instructions", "cycles"):
        try:
            each = 1.0 if rate is None else float(rate)
        except ValueError:
            raise UsageError(f"--rate {rate}: with --clock {clock} this is flop an event, a plain number") from None
        least = 1000
    else:
        each = parse(rate or "1 Gflop/s", "flop/s")
        least = round(parse(threshold, "s") * 1e9)
    if not 0 < each < float("inf") or least < 0:
        raise UsageError("--rate must be above zero and --threshold not below it")
    return each, least


def _tell(result: Any, as_json: bool, as_csv: bool) -> None:
    """Print what was recorded: a row a rank, then the sums and what is missing."""
    rows = [
        {"rank": s.rank, "ended": s.ended(), "calls": s.calls, "lines": s.lines, "trace_B": s.written, "overhead_ns": s.overhead_ns}
        for s in result.states
    ]
    told: dict[str, Any] = {"out": str(result.path), "ranks": result.ranks, "exit_code": result.exit_code, "partial": result.partial}
    if result.trace is not None:
        from retrompi.sim import preflight

        full = preflight.summary(result.trace)
        told |= {k: full[k] for k in ("actions", "sends", "bytes_sent", "messages", "wildcards")}
    if as_json:
        print_json({**told, "notes": result.notes, "per_rank": rows})
    elif as_csv:
        emit(rows, COLUMNS, as_json=False, as_csv=True)
    else:
        emit(rows[:MOST_ROWS], COLUMNS, as_json=False, as_csv=False)
        if len(rows) > MOST_ROWS:
            click.echo(f"… and {len(rows) - MOST_ROWS} more ranks (--csv has all)")
        calls = sum(s.calls for s in result.states)
        what = f"{result.path}: {result.ranks} ranks, {calls} calls"
        if result.trace is not None:
            what += f", {told['sends']} messages sent ({format_bytes(told['bytes_sent'])}), with collectives about {told['messages']}"
        click.echo(what + (", PARTIAL" if result.partial else ""))
    notes = list(result.notes)
    if result.failed:
        notes.append(f"the program failed with {result.failed}; its trace is kept")
    for text in notes:
        click.echo(f"retrompi: {text}", err=True)
