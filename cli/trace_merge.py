"""``retrompi trace merge``: merges files of ranks to a trace, or jobs side by side or in sequence."""

from __future__ import annotations

from pathlib import Path

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import options
from retrompi.cli.options import UndefinedSource, new_path
from retrompi.cli.output import Column, Output

__all__ = ["command"]

MERGED = (
    Column("trace", "written"),
    Column("how", "as"),
    Column("ranks", "ranks", right=True),
    Column("actions", "actions", right=True),
    Column("jobs", "ranks of each"),
)


@click.command("merge")
@click.argument("traces_in", metavar="A B ... OUT", nargs=-1, required=True)
@click.option("--then", "in_time", is_flag=True, help="Run the jobs one after the other on the same ranks, not concurrently.")
@options(given=UndefinedSource, output=Output)
def command(traces_in: tuple[str, ...], in_time: bool, given: UndefinedSource, output: Output) -> None:
    """Merge traces A, B, ... into OUT.

    OUT is a folder, or one file if it ends in .ti, .gz or .zst. Files that each hold one rank, and together ranks 0, 1, 2, ...,
    become one trace. Other traces become concurrent jobs: the ranks of B follow those of A, and each job's MPI_COMM_WORLD is a
    communicator of its own. With --then the jobs run one after the other on the same ranks.

    \b
    Examples:
      retrompi trace merge examples/traces/jacobi-4.tar.zst examples/traces/sort-4.tar.zst both.ti.zst
      retrompi trace merge first second after.ti.zst --then
    """
    from retrompi import traces
    from retrompi.traces import merge

    *names, last = traces_in
    if len(names) < 2:
        raise UsageError("give at least two traces and the name of the result", code="out-of-range")
    out = new_path(Path(last))
    whole = None if in_time else merge.rank_files(names, given.undefined_source)
    if whole is not None:
        how, made, jobs = "ranks of one job", whole, [whole.ranks]
    else:
        read = [traces.read(name, undefined_source=given.undefined_source) for name in names]
        how, made = ("one after the other", merge.then(read)) if in_time else ("jobs side by side", merge.side_by_side(read))
        jobs = [t.ranks for t in read]
    traces.write(made, out, shared=out.suffix in (".ti", ".gz", ".zst"))
    row = {"trace": str(out), "how": how, "ranks": made.ranks, "actions": made.actions, "jobs": jobs}
    output.emit([row], MERGED)
