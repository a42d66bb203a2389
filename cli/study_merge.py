"""``retrompi study merge``: the shards of a study, run by themselves, in one store."""

from __future__ import annotations

from pathlib import Path

import click

from retrompi.cli.bundle import options
from retrompi.cli.options import StoreOutput, progress
from retrompi.cli.output import Column, say

__all__ = ["merge"]

COLUMNS = (
    Column("id", "id", right=True),
    Column("name", "name"),
    Column("points", "points", right=True),
    Column("stored", "stored", right=True),
    Column("added", "new here", right=True),
    Column("errors", "errors", right=True),
    Column("missing", "missing", right=True),
)
KEYS = ("id", "name", "points", "stored", "added", "errors", "missing", "gaps", "code_versions")
_SHOWN = 20


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="STORE...", type=click.Path(dir_okay=False, path_type=Path))
@options(output=StoreOutput)
@click.pass_context
def merge(ctx: click.Context, files: tuple[Path, ...], output: StoreOutput) -> None:
    """Merge the runs and studies of other stores into this one, and tell what is missing.

    STORE is a file that 'retrompi sweep --shard' or any other command has written; --store names the one merged into. Merging again
    changes nothing. Exit code 1 means that points of a study are still missing: the command that simulates them is printed.

    \b
    Examples:
      retrompi study merge shard-1.db shard-2.db
      retrompi study merge shards/*.db --store all.db
    """
    from retrompi.studies.archive.merge import merge as merged

    store = output.open()
    with progress("merging") as report:
        found, new, known = merged(store, files, report)
    rows = [
        {"id": m.study_id, "name": m.name, "points": m.points, "stored": m.stored, "added": m.added, "errors": m.errors,
         "missing": m.missing,
         "gaps": [{"shard": g.shard, "shards": g.shards, "points": g.points, "command": g.command} for g in m.gaps],
         "code_versions": m.versions}
        for m in found
    ]
    output.emit(rows, COLUMNS, keys=KEYS, empty="no studies in these stores")
    if output.text:
        say(f"\n{new} runs copied, {known} known already")
    for m in found:
        if len(m.versions) > 1:
            click.echo(f"note: runs of {m.name} come from different versions of the code: {', '.join(m.versions)}", err=True)
        for gap in m.gaps[:_SHOWN]:
            which = f"shard {gap.shard}/{gap.shards} of {m.name}" if gap.shards > 1 else m.name
            click.echo(f"missing: {gap.points} points of {which}: {gap.command}", err=True)
        if len(m.gaps) > _SHOWN:
            click.echo(f"missing: and {len(m.gaps) - _SHOWN} more shards of {m.name}; --json has them all", err=True)
    if any(m.missing for m in found):
        ctx.exit(1)
