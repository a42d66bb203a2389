"""``retrompi runs``: what the store holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from retrompi.cli import diff
from retrompi.cli.options import (
    complete_model,
    complete_platform,
    csv_option,
    debug_option,
    json_option,
    open_for,
    store_option,
)
from retrompi.cli.output import Column, emit, time_column

LIST = (
    Column("id", "id", right=True),
    Column("created", "created"),
    Column("kind", "kind"),
    Column("model", "model"),
    Column("platform", "platform"),
    Column("mode", "mode"),
    Column("outcome", "outcome"),
    time_column("time_s", "time"),
    time_column("wall_s", "wall"),
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
    "seed",
    "fidelity",
    "scenario",
    "trace",
    "outcome",
    "detail",
    "time_s",
    "wall_s",
    "ranks",
    "actions",
    "messages",
    "bytes",
    "packets",
    "identity",
    "code_version",
    "simgrid_version",
    "host",
)
KINDS = ("pingpong", "replay", "explain", "startup", "sample", "benchmark", "native", "smpi", "program", "measured")
PARTS = ("run", "points", "ranks", "anatomy")


def _overrides(row: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in row["overrides"].items())


def flat(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run's row without nesting: ``parameter.<name>`` for parameters, ``fact.<name>`` (JSON) for facts."""
    out = {k: v for k, v in run.items() if k not in ("parameters", "overrides", "facts")}
    out["overrides"] = _overrides(run)
    out |= {f"parameter.{k}": v for k, v in run["parameters"].items()}
    out |= {f"fact.{k}": json.dumps(v) if isinstance(v, list | dict) else v for k, v in run["facts"].items()}
    return out


@click.group()
@debug_option
def command() -> None:
    """List stored runs, show one or compare two."""


@command.command("list")
@click.option("-m", "--model", shell_complete=complete_model, help="Only this model.")
@click.option("-p", "--platform", shell_complete=complete_platform, help="Only this platform.")
@click.option("--mode", help="Only this mode.")
@click.option("--kind", type=click.Choice(KINDS), help="Only this kind.")
@click.option("--outcome", help="Only this outcome.")
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, help="The newest so many.")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def list_runs(
    ctx: click.Context,
    model: str | None,
    platform: str | None,
    mode: str | None,
    kind: str | None,
    outcome: str | None,
    limit: int,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """List stored runs, newest last."""
    found = open_for(ctx, store, write=False).runs(
        model=model, platform=platform, mode=mode, kind=kind, outcome=outcome, limit=limit
    )
    rows = [{**row, "overrides": _overrides(row)} for row in found]
    emit(rows, LIST, as_json=as_json, as_csv=as_csv, keys=LIST_KEYS, empty="no runs stored")


@command.command("show")
@click.argument("run_id", type=click.IntRange(1), metavar="ID")
@click.option("--part", type=click.Choice(PARTS), help="Print this part (default: the run, and on a terminal all).")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def show_run(ctx: click.Context, run_id: int, part: str | None, as_json: bool, as_csv: bool, store: str | None) -> None:
    """Show run ID: its provenance, outcome, points, ranks and anatomy."""
    store_ = open_for(ctx, store, write=False)
    run = flat(store_.run(run_id))
    tables = {"points": store_.points, "ranks": store_.ranks, "anatomy": store_.anatomy}
    if as_json or as_csv:
        rows = [run] if part in (None, "run") else tables[part](run_id)
        keys = list(rows[0]) if rows else []
        emit(rows, (), as_json=as_json, as_csv=as_csv, keys=keys)
        return
    for name in PARTS if part is None else (part,):
        if name == "run":
            facts = [{"what": k, "value": v} for k, v in run.items() if v not in ("", None)]
            emit(facts, (Column("what", "what"), Column("value", "value")), as_json=False, as_csv=False)
            continue
        rows = tables[name](run_id)
        if rows or part is not None:
            click.echo(f"\n{name}")
            columns = [Column(k, k, right=not isinstance(rows[0][k], str)) for k in rows[0]] if rows else []
            emit(rows, columns, as_json=False, as_csv=False, empty=f"no {name} stored")


command.add_command(diff.command, "diff")
