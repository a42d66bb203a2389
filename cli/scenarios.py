"""``retrompi scenarios``: the experiments there are."""

from __future__ import annotations

from dataclasses import replace

import click

from retrompi.base.units import format_time
from retrompi.cli.options import (
    complete_scenario,
    csv_option,
    debug_option,
    failures_option,
    fresh_option,
    json_option,
    open_for,
    store_option,
    traffic_option,
    warn,
)
from retrompi.cli.output import Column, emit, note

LIST = (
    Column("name", "name"),
    Column("model", "model"),
    Column("platform", "platform"),
    Column("mode", "mode"),
    Column("overrides", "overrides"),
    Column("reproduces", "reproduces"),
)
KEYS = ("name", "title", "reproduces", "model", "platform", "mode", "trace", "overrides", "claims", "kills", "traffic", "failures", "jobs",
        "outcome", "expect", "seed",
        "fidelity")  # fmt: skip


@click.group()
@debug_option
def command() -> None:
    """List the experiments, show one or run it."""


@command.command("list")
@json_option
@csv_option
@debug_option
def list_scenarios(as_json: bool, as_csv: bool) -> None:
    """List every scenario."""
    from retrompi.spec import registry

    rows = [s.row() for s in registry.scenarios().values()]
    emit(rows, LIST, as_json=as_json, as_csv=as_csv, keys=KEYS, empty="no scenarios")


@command.command("show")
@click.argument("scenario", shell_complete=complete_scenario)
@json_option
@csv_option
@debug_option
def show_scenario(scenario: str, as_json: bool, as_csv: bool) -> None:
    """Show SCENARIO (a name or a TOML file)."""
    from retrompi.spec import registry

    s = registry.scenario(scenario)
    if as_json or as_csv:
        emit([s.row()], LIST, as_json=as_json, as_csv=as_csv, keys=KEYS)
        return
    click.echo(f"{s.name}: {s.title}\n{s.summary}\n")
    rows = [{"what": k, "value": v} for k, v in s.row().items() if k not in ("name", "title") and v not in ("", None)]
    emit(rows, (Column("what", "what"), Column("value", "value")), as_json=False, as_csv=False)


@command.command("run")
@click.argument("scenario", shell_complete=complete_scenario)
@traffic_option
@failures_option
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def run_scenario(
    ctx: click.Context, scenario: str, traffic: tuple[str, ...], failures: tuple[str, ...], fresh: bool, as_json: bool, as_csv: bool,
    store: str | None,
) -> None:  # fmt: skip
    """Run SCENARIO (a name or a TOML file) and print its curve, or its ranks for a trace."""
    from retrompi.cli import pingpong, replay, rinf1, startup
    from retrompi.spec import registry
    from retrompi.spec.calibrated_range import outside
    from retrompi.store.lookup import answer
    from retrompi.studies.scenario import trace_of

    s = registry.scenario(scenario)
    s = replace(s, traffic=(*s.traffic, *traffic), failures=(*s.failures, *failures))
    store_ = open_for(ctx, store)
    found = answer(store_, s.question(), fresh=fresh)
    if not (as_json or as_csv):
        click.echo(f"{s.name}: {s.title}")
        if s.expect:
            click.echo(f"expected: {s.expect}")
        if s.program.section:
            click.echo(replay.timed(store_.run(found.run_id)["facts"].get("section")))
    run = store_.run(found.run_id)
    if s.start:
        emit(found.rows, startup.COLUMNS, as_json=as_json, as_csv=as_csv)
        if not (as_json or as_csv):
            click.echo("\n" + startup.summary(run["facts"]["startup"]))
    elif s.generator == "rinf1":
        rows = rinf1.published(found.rows, registry.platform(s.platform).name, s.mode)
        emit(rows, rinf1.COLUMNS, as_json=as_json, as_csv=as_csv, keys=rinf1.KEYS)
    elif found.rows and "size_B" in found.rows[0]:
        sizes = [row["size_B"] for row in found.rows]
        warnings = warn(outside(s.model, s.platform, sizes=sizes, ranks=run["ranks"], sets=s.sets), s.model)
        pingpong.emit_curve(found.rows, warnings, as_json, as_csv)
    else:
        largest = [trace_of(s).info()["largest_B"]] if s.trace else []
        warnings = warn(outside(s.model, s.platform, sizes=largest, ranks=run["ranks"], sets=s.sets), s.model)
        keys = [c.key for c in replay.COLUMNS]
        rows = [{**row, "warnings": warnings} for row in found.rows]
        emit(rows, replay.COLUMNS, as_json=as_json, as_csv=as_csv, keys=[*keys, "warnings"] if as_json else keys, empty="no rank ran")
    for job in run["facts"].get("jobs", []):
        runs = f", {job['runs']} runs in {format_time(job['time_s'])}" if job["background"] else f" in {format_time(job['time_s'])}"
        note(f"beside it: {job['name']} ({job['model']}, {job['mode']}): {job['outcome']}{runs}")
    note(f"run {found.run_id}" + (" (found in the store; --fresh simulates again)" if found.found else ""))
    if run["outcome"] != "completed":
        for line in replay.why(run):
            click.echo(line, err=True)
        ctx.exit(1)
