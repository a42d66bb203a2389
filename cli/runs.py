"""``retrompi runs``: the stored runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from retrompi.cli import diff
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.options import StoreOutput, complete_model, complete_platform
from retrompi.cli.output import Column, print_table, say, time_column
from retrompi.cli.runs_kept import PARTS, delete, export, flat, ids_of, overrides_text, tag
from retrompi.sim.result import NUMBERS

LIST = (
    Column("id", "id", right=True),
    Column("created", "created", lambda v: str(v)[5:16].replace("T", " "), right=True),
    Column("kind", "kind"),
    Column("trace", "trace", lambda v: str(v or "").rstrip("/").rpartition("/")[2]),
    Column("model", "model"),
    Column("platform", "platform"),
    Column("mode", "mode"),
    Column("outcome", "outcome"),
    time_column("time_s", "time"),
    Column("tags", "tags"),
    Column("overrides", "overrides"),
)
LIST_KEYS = (
    "id",
    "created",
    "kind",
    "model",
    "platform",
    "mode",
    "overrides",
    "tags",
    "seed",
    "fidelity",
    "network",
    "scenario",
    "trace",
    "outcome",
    "detail",
    *NUMBERS,
    "wall_s",
    "identity",
    "code_version",
    "simgrid_version",
    "host",
)
KINDS = ("pingpong", "replay", "explain", "startup", "sample", "benchmark", "native", "smpi", "program", "measured")
LONGEST = 600
"""Characters of a fact that a table shows."""


def _short(key: str, value: Any, run_id: int) -> Any:
    """A fact for reading: what is data for programs is named, not printed."""
    if key == "fact.timeline":
        return f"kept; 'retrompi timeline {run_id}' shows it"
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{len(value):,} characters of JSON; 'retrompi runs show {run_id} --json' prints them"
    return value


@click.group()
@debug_option
def command() -> None:
    """List, show, compare, tag, export and delete the stored runs.

    \b
    Examples:
      retrompi runs list --model wmpi
      retrompi runs show 12
      retrompi runs diff 12 13
      retrompi runs tag 12,13 slow-wire
    """


@dataclass(frozen=True)
class ListRunsOptions:
    """Options of ``retrompi runs list``."""

    model: str | None = option("Runtime model: only its runs.", "-m", "--model", metavar="NAME|FOLDER", shell_complete=complete_model)
    platform: str | None = option("Platform: only runs on it.", "-p", "--platform", metavar="NAME|FILE", shell_complete=complete_platform)
    mode: str | None = option("Placement of the ranks: only runs with it.", metavar="MODE")
    kind: str | None = option("Only runs of this kind.", type=click.Choice(KINDS))
    outcome: str | None = option("Only runs with this outcome.")
    tag: str | None = option("Only runs with this tag.", metavar="TAG")
    every: bool = option("Also what is left out otherwise: the runs that studies, searches and draws have made.", "--all")
    last: int = option("Number of runs listed, the newest.", type=click.IntRange(1), metavar="N", default=30)


@command.command("list")
@options(given=ListRunsOptions, output=StoreOutput)
def list_runs(given: ListRunsOptions, output: StoreOutput) -> None:
    """List stored runs, newest last.

    Those that studies, searches and draws have made are left out, unless --all is given.

    \b
    Examples:
      retrompi runs list --model wmpi --last 10
      retrompi runs list --kind replay --csv
    """
    store = output.open(write=False)
    mine = None if given.tag is None else set(ids_of(store, given.tag))
    found = store.runs(
        model=given.model, platform=given.platform, mode=given.mode, kind=given.kind, outcome=given.outcome,
        limit=given.last if mine is None else None, parts=given.every or mine is not None or given.kind == "sample",
    )
    found = [row for row in found if mine is None or row["id"] in mine][-given.last :]
    tags = store.tags()
    rows = [{**row, "overrides": overrides_text(row), "tags": " ".join(tags.get(row["id"], []))} for row in found]
    hidden = not rows and not given.every and bool(store.runs(limit=1))
    output.emit(rows, LIST, keys=LIST_KEYS, empty="no such run was asked for itself (--all)" if hidden else "no runs stored", cut=True)


@command.command("show")
@click.argument("run_id", type=click.IntRange(1), metavar="ID")
@click.option("--part", type=click.Choice(PARTS), help="Part to print (default: the run; as a table, all parts).")
@options(output=StoreOutput)
def show_run(run_id: int, part: str | None, output: StoreOutput) -> None:
    """Show run ID: its provenance, outcome, points, ranks and stages.

    \b
    Examples:
      retrompi runs show 12
      retrompi runs show 12 --part points --csv
    """
    store_ = output.open(write=False)
    run = {**flat(store_.run(run_id)), "tags": " ".join(store_.tags().get(run_id, []))}
    tables = {"points": store_.points, "ranks": store_.ranks, "anatomy": store_.anatomy}
    if not output.text:
        rows = [run] if part in (None, "run") else tables[part](run_id)
        keys = list(rows[0]) if rows else []
        output.emit(rows, (), keys=keys)
        return
    for name in PARTS if part is None else (part,):
        if name == "run":
            facts = [{"what": k, "value": _short(k, v, run_id)} for k, v in run.items() if v not in ("", None)]
            print_table(facts, (Column("what", "what"), Column("value", "value")))
            continue
        rows = tables[name](run_id)
        if rows or part is not None:
            say(f"\n{name}")
            columns = [Column(k, k, right=not isinstance(rows[0][k], str)) for k in rows[0]] if rows else []
            print_table(rows, columns, empty=f"no {name} stored")


command.add_command(diff.command, "diff")
for _one in (tag, export, delete):
    command.add_command(_one)
