"""``retrompi scenarios``: the available experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from retrompi.base.units import format_time
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.options import BoundsOptions, NetworkOptions, RunOutput, complete_scenario
from retrompi.cli.output import Column, Output, note, note_run, note_warnings, print_table, say
from retrompi.sim import diagnosis
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.registry import FIRST_MODEL

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
        "fidelity", "section", "compute", "memory_share")


@click.group()
@debug_option
def command() -> None:
    """List the scenarios, show one, or run it.

    \b
    Examples:
      retrompi scenarios list
      retrompi scenarios run bf-wmpi-shared
      retrompi scenarios generators
    """


GENERATED = (Column("name", "generator"), Column("usage", "arguments"), Column("summary", "what it generates"))


@command.command("generators")
@options(output=Output)
def generators(output: Output) -> None:
    """List the generators of programs and their arguments; those in brackets have defaults.

    \b
    Examples:
      retrompi scenarios generators
      retrompi why halo ranks=4 reps=3 size=10000 -m wmpi
    """
    from retrompi.traces import generate

    rows = [{"name": name, "usage": g.usage, "summary": g.summary} for name, g in sorted(generate.GENERATORS.items())]
    output.emit(rows, GENERATED)


@command.command("new")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("generator", default="pingpong")
@click.option("-m", "--model", default=FIRST_MODEL, help="Runtime model.", metavar="NAME|FOLDER", show_default=True)
@debug_option
def new(file: Path, generator: str, model: str) -> None:
    """Write a scenario of a GENERATOR to FILE, to be edited.

    \b
    Examples:
      retrompi scenarios new mine.toml halo -m lam
    """
    from retrompi.base.errors import InputError
    from retrompi.studies.define import scenario

    if file.exists():
        raise InputError("exists already; choose another name", file, code="exists-already")
    text = scenario.template(file.stem, generator, model)
    file.write_text(text, encoding="utf-8")
    say(f"written: {file}; next: retrompi scenarios run {file}")


@dataclass(frozen=True)
class ScenariosOptions:
    """Options of ``retrompi scenarios list``."""

    full: bool = option("Print all of it instead of a summary: every scenario with its model, platform and overrides.", "--full")


@command.command("list")
@options(given=ScenariosOptions, output=Output)
def list_scenarios(given: ScenariosOptions, output: Output) -> None:
    """List the scenarios.

    Their names, by the paper that they reproduce; --full has a line for each, JSON and CSV have all of it.

    \b
    Examples:
      retrompi scenarios list
      retrompi scenarios list --csv
    """
    from retrompi.studies.define import catalogue

    rows = [s.row() for s in catalogue.scenarios().values()]
    if output.text and not given.full:
        of: dict[str, list[str]] = {}
        for row in rows:
            of.setdefault(_source(str(row["reproduces"])), []).append(str(row["name"]))
        for source, names in of.items():
            say(f"{source}: {len(names)}\n    {', '.join(names)}")
        say(f"\n{len(rows)} scenarios; one of them: retrompi scenarios show NAME, a line for each: --full")
        return
    output.emit(rows, LIST, keys=KEYS, empty="no scenarios", cut=True)


def _source(reproduces: str) -> str:
    """The paper that a scenario reproduces, or that it is a question of one's own."""
    return reproduces.split(" ", 1)[0].rstrip(":,")


@command.command("show")
@click.argument("scenario", shell_complete=complete_scenario)
@options(output=Output)
def show_scenario(scenario: str, output: Output) -> None:
    """Show SCENARIO.

    SCENARIO is a name or a TOML file.

    \b
    Examples:
      retrompi scenarios show bf-wmpi-shared
    """
    from retrompi.studies.define import catalogue

    s = catalogue.scenario(scenario)
    if not output.text:
        output.emit([s.row()], LIST, keys=KEYS)
        return
    say(f"{s.name}: {s.title}\n{s.summary}\n")
    rows = [{"what": k, "value": v} for k, v in s.row().items() if k not in ("name", "title") and v not in ("", None)]
    print_table(rows, (Column("what", "what"), Column("value", "value")))


@dataclass(frozen=True)
class RunScenarioOptions(BoundsOptions, NetworkOptions):
    """Options of ``retrompi scenarios run_scenario``."""



@command.command("run")
@click.argument("scenario", shell_complete=complete_scenario)
@options(given=RunScenarioOptions, output=RunOutput)
@click.pass_context
def run_scenario(ctx: click.Context, scenario: str, given: RunScenarioOptions, output: RunOutput) -> None:
    """Run SCENARIO and print its curve, or the times of its ranks.

    SCENARIO is a name or a TOML file. Exit code 1 means that it did not complete.

    \b
    Examples:
      retrompi scenarios run bf-wmpi-shared
      retrompi scenarios run bf-wmpi-distributed --traffic 'any 2Mbps 1500B poisson' --csv
    """
    from retrompi.cli import loop_rates, pingpong, replay, startup
    from retrompi.sim.cautions import mark, stored_cautions
    from retrompi.spec import registry
    from retrompi.store.lookup import answer
    from retrompi.studies.define import catalogue
    from retrompi.studies.read.cautions import of_scenario
    from retrompi.traces import generate

    s = catalogue.scenario(scenario)
    s = s.with_settings({"traffic": (*s.setting("traffic"), *given.traffic), "failures": (*s.setting("failures"), *given.failures),
                         "time_limit": given.limit_s or s.setting("time_limit")})
    store_ = output.open()
    found = answer(store_, s.question().with_(bounds=given.bounds()), fresh=output.fresh)
    run = store_.run(found.run_id)
    warnings = of_scenario(s, stored_cautions(run["facts"]))
    warned = note_warnings(warnings)
    if output.text:
        say(f"{s.name}: {s.title} (run {found.run_id}){mark(warnings)}")
        if s.expect:
            say(f"expected: {s.expect}")
        if s.program.section:
            say(replay.section_line(run["facts"].get("section")))

    def emit(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], keys: Sequence[str], empty: str = "nothing to show") -> None:
        told = [{**row, "warnings": warned} for row in rows]
        output.emit(told, columns, keys=[*keys, "warnings"] if output.as_json else keys, empty=empty)

    if s.start:
        emit(found.rows, startup.COLUMNS, [c.key for c in startup.COLUMNS])
        if output.text:
            say("\n" + startup.summary(run["facts"]["startup"]))
    elif s.generator == "rinf1":
        rows = loop_rates.with_published(found.rows, registry.platform(s.platform).name, s.mode)
        emit(rows, loop_rates.COLUMNS, loop_rates.KEYS)
    elif found.rows and "size_B" in found.rows[0]:
        pingpong.emit_curve(found.rows, warned, output, made=generate.generator(s.generator) if s.generator else None)
    else:
        emit(found.rows, replay.COLUMNS, [c.key for c in replay.COLUMNS], "no rank ran")
    for job in run["facts"].get("jobs", []):
        runs = f", {job['runs']} runs in {format_time(job['time_s'])}" if job["background"] else f" in {format_time(job['time_s'])}"
        note(f"beside it: {job['name']} ({job['model']}, {job['mode']}): {job['outcome']}{runs}")
    note_run(found.run_id, found.found)
    if run["outcome"] != Outcome.COMPLETED:
        for line in diagnosis.of_run(run):
            click.echo(line, err=True)
        ctx.exit(1)
