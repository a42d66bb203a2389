"""``retrompi sweep``: a study from the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from retrompi.base import toml as toml_text
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.units import format_time
from retrompi.cli.answers import Executors
from retrompi.cli.bundle import option, options
from retrompi.cli.options import Overrides, RunOutput, Uncertain, complete_scenario, progress
from retrompi.cli.output import note_warnings, say
from retrompi.cli.study_tables import intervals, print_tables

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.draws.uncertainty import Spec
    from retrompi.studies.execute.design import Study
    from retrompi.studies.execute.run import StudyRun
    from retrompi.studies.read.stored_study import StoredStudy
    from retrompi.studies.read.view import View

LIMIT = 100_000
MOST_SHARDS = 1_000_000
MOST_SHOWN = 100
"""Points of a study whose tables are printed when it has run."""


@dataclass(frozen=True)
class Running(Uncertain, Executors):
    """Options of every command that runs a study."""

    dry_run: bool = option("Do nothing: show how many runs there are, how many are stored and how long the rest will take.")
    max_points: int = option("Refuse a study with more points than this.", type=click.IntRange(1), metavar="N", default=LIMIT)
    shard: str | None = option("Run only part I of N of the points, e.g. 3/8, to be merged with 'retrompi study merge'.", metavar="I/N")

    def part(self, study: Study) -> Study:
        """The study, or the shard of it that is to be run; UsageError for a shard that there is not."""
        if self.shard is None:
            return study
        shard, _, shards = self.shard.partition("/")
        if not (shard.isdecimal() and shards.isdecimal() and 1 <= int(shard) <= int(shards) <= MOST_SHARDS):
            raise UsageError(f"--shard '{self.shard}' is not I/N with I from 1 to N, N up to {MOST_SHARDS}; example: --shard 3/8",
                             code="bad-syntax")
        return study.part(int(shard), int(shards))


@dataclass(frozen=True)
class SweepOptions(Overrides):
    """Options of ``retrompi sweep``."""

    vary: tuple[str, ...] = option("Axis: a,b,c or A..B:xF or A..B:+S, e.g. wmpi.packet=64KiB..2MiB:x2 (repeatable).", metavar="KEY=VALUES")
    zips: tuple[str, ...] = option("Axes that vary together, value by value.", "--zip", metavar="'KEY=VALUES;KEY=VALUES'")
    sample: str = option("Draw N points (Latin hypercube) instead of all combinations.", default="", metavar="lhs:N")
    seed: int = option(
        "Seed of the sample: of --sample (the runs' own: --set seed=N).", "--sample-seed", type=click.IntRange(0), default=1)
    name: str = option("Name: of the study (default: the scenario's).", default="", metavar="NAME")
    metric: str = option("Quantity: what the study's figures show first, e.g. time@1MiB.", default="", metavar="METRIC")


@click.command()
@click.argument("scenario", metavar="SCENARIO|STUDY", shell_complete=complete_scenario)
@options(given=SweepOptions, running=Running, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, scenario: str, given: SweepOptions, running: Running, output: RunOutput) -> None:
    """Vary a scenario: run every combination of the axes and store the results as a study.

    Keys are model, platform, mode, hosts (how many of the platform's), ranks, seed, fidelity, kills, any argument of the trace
    (trace.size), and any parameter of a model (wmpi.packet) or of a platform (platform.link.bandwidth). A model's parameter varies
    only the points of that model. STUDY is a study's TOML file or a built-in study ('retrompi study list'). Runs that are already
    stored are reused.

    Exit code 1 means that a point could not be run; its row gives the reason. A run that deadlocks is a result.

    \b
    Examples:
      retrompi sweep bf-wmpi-shared --vary wmpi.packet=64KiB..1MiB:x2
      retrompi sweep bf-wmpi-shared --vary model=wmpi,hpvm --vary trace.reps=1,10 --dry-run
      retrompi sweep proxy-cost
      retrompi sweep proxy-cost --shard 2/4 --store shard-2.db
      retrompi sweep bf-wmpi-shared --vary wmpi.packet=64KiB,256KiB --uncertainty 90% --dry-run
    """
    found = _study(scenario)
    if found is None:
        from retrompi.studies.execute.design import from_command

        study = from_command(scenario, given.vary, given.zips, list(given.sets), sample=given.sample, seed=given.seed)
        study = replace(study.with_name(given.name), metric=given.metric)
    else:
        study = _apply_overrides(found, given)
    go(ctx, study, running, output)


def _study(which: str) -> Study | None:
    """The study of that name or path; None for a scenario."""
    from retrompi.studies.define import catalogue
    from retrompi.studies.execute import design

    path = Path(which)
    if path.suffix == ".toml" and path.is_file():
        try:
            _, data = toml_text.read(path, "scenario")
        except RetrompiError:
            return None  # the reader of scenarios reports the error
        return design.study(which) if "model" not in data else None
    return design.study(which) if which in design.study_names() and which not in catalogue.scenario_names() else None


def _apply_overrides(study: Study, given: SweepOptions) -> Study:
    """A study from a file with further overrides."""
    for name, value in (("--vary", given.vary), ("--zip", given.zips), ("--sample", given.sample)):
        if value:
            raise UsageError(f"{name} applies to a scenario; the axes of the study '{study.name}' are in its file", code="unused-option")
    from retrompi.spec.runtime.overrides import merge, parse_sets
    from retrompi.studies.define.case import proper
    from retrompi.studies.execute.design import check_name

    fixed = merge(study.fixed, {proper(k): v for k, v in parse_sets(list(given.sets)).items()})
    return replace(study, fixed=fixed, name=check_name(given.name) if given.name else study.name, metric=given.metric or study.metric)


def go(ctx: click.Context, study: Study, running: Running, output: RunOutput) -> StudyRun | None:
    """Runs ``study``, with draws if asked for, and prints the result; returns None if only the cost was estimated."""
    from retrompi.studies.execute import design

    spec = running.spec()
    if spec is not None:
        study = replace(study, draws=spec.draws)
    study = running.part(study)
    design.check(study, running.max_points)
    for line in study.applies.lines():
        click.echo(f"note: {line}", err=True)
    store_ = output.open()
    workers = running.make()
    if running.dry_run:
        _tell_plan(store_, study, running, output)
        return None
    from retrompi.api.studies import StudyResult
    from retrompi.sim.cautions import mark
    from retrompi.studies.draws.uncertainty import LEVEL
    from retrompi.studies.execute.run import run_study

    try:
        with progress(study.name) as report:
            told = run_study(store_, study, executor=workers, fresh=output.fresh, limit=running.max_points, report=report)
    except KeyboardInterrupt:
        study_id = store_.find_study(study.hash)
        done = len(store_.study_done(study_id)) if study_id is not None else 0
        click.echo(f"{done} of {design.count(study)} points are stored; run the same command again to continue", err=True)
        raise
    result = StudyResult(store_, told, LEVEL if spec is None else spec.level)
    warnings = result.warnings
    rows = note_warnings(warnings)
    if not output.text:
        found = result.rows
        keys = list(found[0]) if found else []
        output.emit([{**row, "warnings": rows} for row in found], (), keys=[*keys, "warnings"] if output.as_json else keys)
    else:
        say(summary(told) + mark(warnings))
        _tell_results(store_, told, spec)
    for line in told.reasons:
        click.echo(f"warning: cannot be run: {line}", err=True)
    if told.errors:
        ctx.exit(1)
    return told


def _view(found: StoredStudy, spec: Spec | None, metric: str | None = None) -> View:
    from retrompi.studies.draws.uncertainty import LEVEL

    return found.view(metric, LEVEL if spec is None else spec.level)


def _tell_results(store: Store, told: StudyRun, spec: Spec | None) -> None:
    """The tables of `retrompi study show`, unless they are too long to be read, the study's name, and what can be done next."""
    from retrompi.studies.read import stored_study

    if told.points // (1 + told.draws) <= MOST_SHOWN:
        found = _view(stored_study.read(store, str(told.study_id)), spec)
        if any(row["value"] is not None for row in found.rows):
            say(f"\n{found.metric.name}: {found.metric.label}{intervals(found)}")
            print_tables(found)
    name = store.study(str(told.study_id))["name"]
    say(f"\nstudy {name}; next: retrompi study show {name} --metric time\n"
        f"{' ' * len(name)}             retrompi study figure {name} -o figure.html")


def _count_text(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def summary(told: StudyRun) -> str:
    """One line: the points run, their outcomes, and the speed."""
    done = told.kept + told.found
    how = ", ".join(f"{n} {outcome}" for outcome, n in sorted(told.outcomes.items(), key=lambda item: -item[1]))
    rate = f", {told.simulated / told.seconds:.1f} runs/s" if told.simulated and told.seconds else ""
    points = _count_text(told.points // (1 + told.draws), "point") + (f" with {told.draws} draws each" if told.draws else "")
    parts = [points, f"{told.simulated} simulated", f"{done} found", how]
    return f"{', '.join(p for p in parts if p)} in {format_time(told.seconds)}{rate}"


def _tell_plan(store: Store, study: Study, running: Running, output: RunOutput) -> None:
    from retrompi.sim.cautions import mark
    from retrompi.studies.execute.plan import plan
    from retrompi.studies.execute.worker_pool import processors

    with progress(f"{study.name}, counting") as report:
        p = plan(store, study, jobs=running.jobs or processors(), limit=running.max_points, fresh=output.fresh, report=report)
    row = {"points": p.points, "draws": study.draws, "runs": p.runs, "found": p.found, "to_simulate": p.left, "refused": p.refused,
           "jobs": p.jobs, "seconds": p.seconds, "seconds_at_least": p.at_least, "seconds_from": p.how,
           "outside_calibrated_range": p.outside.points}
    outside = p.outside.cautions(p.points // (1 + study.draws))
    if not output.text:
        output.emit([row], (), keys=list(row))
    else:
        of = f" with {study.draws} draws each" if study.draws else ""
        line = f"{_count_text(p.points // (1 + study.draws), 'point')}{of}, {_count_text(p.runs, 'different run')}"
        line += f", {p.found} in the store, {p.left} to simulate"
        if p.refused:
            line += f", {_count_text(p.refused, 'draw' if study.draws else 'point')} no run"
        say(line + mark(outside))
        if p.seconds is not None:
            about = "at least" if p.at_least else "about"
            say(f"{about} {format_time(p.seconds)} on {p.jobs} process{'es' if p.jobs > 1 else ''} ({p.how})")
    for line in p.reasons:
        click.echo(f"warning: cannot be run: {line}", err=True)
    note_warnings(outside)
