"""``retrompi runs``: what the store holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

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
from retrompi.units import format_bytes

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


@command.command("diff")
@click.argument("first", type=click.IntRange(1), metavar="A")
@click.argument("second", type=click.IntRange(1), metavar="B")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def diff_runs(ctx: click.Context, first: int, second: int, as_json: bool, as_csv: bool, store: str | None) -> None:
    """Compare runs A and B: what was different about them, and what came out differently.

    Ends with exit code 1 when their results differ.
    """
    store_ = open_for(ctx, store, write=False)
    a, b = store_.run(first), store_.run(second)
    # These differ between any two runs and say nothing about them.
    skip = ("id", "created", "identity", "wall_s", "host", "time_s", "outcome", "detail")
    inputs = _changes(flat(a), flat(b), skip, part="input")
    results = _changes({k: a[k] for k in ("outcome", "time_s")}, {k: b[k] for k in ("outcome", "time_s")}, (), "result")
    results += _curves(store_.points(first), store_.points(second))
    results += _ranks(store_.ranks(first), store_.ranks(second))
    results += _stages(store_.anatomy(first), store_.anatomy(second))
    columns = (
        Column("part", "part"),
        Column("what", "what"),
        Column("a", f"run {first}", right=True),
        Column("b", f"run {second}", right=True),
        Column("ratio", "ratio", lambda v: "" if v is None else f"{v:.4g}", right=True),
    )
    emit([*inputs, *results], columns, as_json=as_json, as_csv=as_csv, empty="no difference")
    if results:
        ctx.exit(1)


def _row(part: str, what: str, a: Any, b: Any) -> dict[str, Any]:
    both = isinstance(a, int | float) and isinstance(b, int | float) and not isinstance(a, bool)
    return {"part": part, "what": what, "a": a, "b": b, "ratio": b / a if both and a else None}


def _changes(a: Mapping[str, Any], b: Mapping[str, Any], skip: tuple[str, ...], part: str) -> list[dict[str, Any]]:
    # Facts are what a run said about itself, not what went into it.
    keys = [k for k in {**a, **b} if k not in skip and not k.startswith("fact.")]
    return [_row(part, k, a.get(k), b.get(k)) for k in keys if a.get(k) != b.get(k)]


def _curves(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[dict[str, Any]]:
    left, right = ({p["size_B"]: p["time_us"] for p in side} for side in (a, b))
    sizes = sorted({**left, **right})
    return [
        _row("result", f"time_us at {format_bytes(s)}", left.get(s), right.get(s))
        for s in sizes
        if left.get(s) != right.get(s)
    ]


def _ranks(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[dict[str, Any]]:
    left, right = ({(r["rank"], k): v for r in side for k, v in r.items() if k != "rank"} for side in (a, b))
    return [
        _row("result", f"{name} of rank {rank}", left.get((rank, name)), right.get((rank, name)))
        for rank, name in {**left, **right}
        if left.get((rank, name)) != right.get((rank, name))
    ]


def _stages(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[dict[str, Any]]:
    left, right = ({(r["stage"], r["process"]): r["seconds"] for r in side} for side in (a, b))
    keys = list({**left, **right})
    return [
        _row("result", f"{stage} ({process})", left.get((stage, process)), right.get((stage, process)))
        for stage, process in keys
        if left.get((stage, process)) != right.get((stage, process))
    ]
