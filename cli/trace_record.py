"""``retrompi trace record``: records a trace of a real program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes
from retrompi.cli.bundle import option, options
from retrompi.cli.options import new_path, output_option, ranks_option
from retrompi.cli.output import Column, Output, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.api.measuring import Recording

COLUMNS = (
    Column("rank", "rank", right=True),
    Column("ended", "ended"),
    Column("calls", "calls", right=True),
    Column("lines", "lines", right=True),
    Column("trace_B", "trace", lambda v: format_bytes(int(v)), right=True),
    Column("overhead_ns", "ns a call", right=True),
)
MOST_ROWS = 32


@dataclass(frozen=True)
class RecordOptions:
    """Options of ``retrompi trace_record record``."""

    out: Path | None = output_option("a folder or NAME.tar.zst (default: PROGRAM-trace)", type=click.Path(path_type=Path))
    use_smpi: bool = option("Run the program (source file, or binary of smpicc) on SimGrid's SMPI.", "--smpi")
    ranks: int | None = ranks_option(", with --smpi")
    mpicc: str | None = option("C compiler of the MPI in use (default: the one beside mpiexec).", metavar="COMPILER")
    clock: Literal["cpu", "wall", "instructions", "cycles"] = option(
        "Clock of computation: what measures it between calls, a clock or a counter.", default="cpu")
    rate: str | None = option(
        "Rate of computation: what a second counts as (default: this machine's, by the Rinf1 loops); for counters, flop per event.",
        metavar="RATE")
    threshold: str = option(
        "Merge bursts of computation shorter than this into the next one.", "--merge-below", metavar="TIME", default="1us")
    whole_command: bool = option("Keep absolute paths of COMMAND in the header of the trace.")
    no_check: bool = option("Do not verify the trace by reading it back.")
    finish: Path | None = option(
        "Assemble the trace of an interrupted recording in this folder.", type=click.Path(path_type=Path, exists=True, file_okay=False))


@click.command("record")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@options(given=RecordOptions, output=Output)
def record(command: tuple[str, ...], given: RecordOptions, output: Output) -> None:
    """Record the MPI calls of COMMAND as a trace.

    Works with MPICH and Open MPI, for C, C++, Fortran and mpi4py programs, without recompiling them. A program that is killed
    leaves the trace up to that moment. Exit code 1 means that the program failed or a rank did not reach MPI_Finalize; the trace is
    kept.

    \b
    Examples:
      retrompi trace record -- mpiexec -n 4 ./app
      retrompi trace record -o app.tar.zst -- mpiexec -n 4 python app.py
      retrompi trace record --smpi -n 4 -- examples/jacobi.c
    """
    from retrompi.api import measuring
    from retrompi.measure import record as recorder

    if given.finish is not None:
        if command:
            raise UsageError("--finish takes no command", code="unused-option")
        out = new_path(given.out or given.finish.with_name(given.finish.name.removesuffix(".part")))
        result = measuring.Recording(recorder.assemble(given.finish, out, None, check=not given.no_check))
    else:
        if not command:
            raise UsageError(
                "nothing to record: give a command after --, e.g. retrompi trace record -- mpiexec -n 4 ./app", code="missing-option"
            )
        result = measuring.record(
            command, given.out or Path(f"{_name(command)}-trace"), smpi=given.use_smpi, ranks=given.ranks, mpicc=given.mpicc,
            clock=given.clock, rate=given.rate, merge_below=given.threshold, whole_command=given.whole_command, check=not given.no_check,
        )
    _tell(result, output)
    if result.failed or result.partial:
        click.get_current_context().exit(1)


def _name(command: tuple[str, ...]) -> str:
    """The name of the trace: the last word that is an existing file, without the suffix of a source file."""
    files = [Path(w) for w in command if Path(w).is_file()]
    path = files[-1] if files else Path(command[0])
    return path.stem if path.suffix in (".c", ".f", ".f90", ".py", ".cpp", ".cc") else path.name


def _tell(result: Recording, output: Output) -> None:
    """Print a summary of the recording: a row for each rank, the totals, and what is missing."""
    from retrompi.traces.computation import rate_of

    rows = result.rows
    ranks = result.found.ranks
    told: dict[str, Any] = {"out": str(result.path), "ranks": ranks, "exit_code": result.found.exit_code, "partial": result.partial}
    if result.trace is not None:
        from retrompi.sim import preflight

        full = preflight.summary(result.trace)
        told |= {k: full[k] for k in ("actions", "sends", "bytes_sent", "messages", "wildcards")}
        rate = rate_of(result.trace)
        told["rate"] = None if rate is None else {"flops": rate.flops, "source": rate.source}
    if output.as_json:
        print_json({**told, "notes": result.notes, "per_rank": rows})
    elif output.as_csv:
        output.emit(rows, COLUMNS)
    else:
        print_table(rows[:MOST_ROWS], COLUMNS)
        if len(rows) > MOST_ROWS:
            say(f"… and {len(rows) - MOST_ROWS} more ranks (--csv has all)")
        calls = sum(s.calls for s in result.found.states)
        what = f"{result.path}: {ranks} ranks, {calls} calls"
        if result.trace is not None:
            what += f", {told['sends']} messages sent ({format_bytes(told['bytes_sent'])}), with collectives about {told['messages']}"
        say(what + (", PARTIAL" if result.partial else ""))
        rate = None if result.trace is None else rate_of(result.trace)
        if rate is not None:
            say(f"its computation is counted at {rate} ({rate.source})")
    notes = list(result.notes)
    if result.failed:
        notes.append(f"the program failed with {result.failed}; its trace is kept")
    for text in notes:
        click.echo(f"retrompi: {text}", err=True)
