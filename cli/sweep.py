"""``retrompi sweep``: a study from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_time
from retrompi.cli.options import (
    complete_scenario,
    csv_option,
    debug_option,
    fresh_option,
    jobs_option,
    json_option,
    open_for,
    progress,
    set_option,
    store_option,
)
from retrompi.cli.output import emit, note, one_format

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.design import Study
    from retrompi.studies.run import Executor, StudyRun

F = TypeVar("F", bound=Callable[..., Any])
LIMIT = 100_000


def running_options(command: F) -> F:
    """What every command has that runs studies."""
    for option in reversed((
        jobs_option,
        click.option("--executor", type=click.Choice(["pool", "dask"]), help="Processes here (default) or a Dask cluster."),
        click.option("--scheduler", metavar="URL", help="A Dask scheduler, e.g. tcp://host:8786 (default: a cluster of this machine)."),
        click.option("--dry-run", is_flag=True, help="Say how many runs there are, how many are stored and how long the rest will take."),
        click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True, help="Refuse a study of more points."),
        fresh_option,
        json_option,
        csv_option,
        store_option,
        debug_option,
    )):  # fmt: skip
        command = option(command)
    return command


@click.command()
@click.argument("scenario", metavar="SCENARIO|STUDY", shell_complete=complete_scenario)
@click.option("--vary", multiple=True, metavar="KEY=VALUES", help="An axis: a,b,c or A..B:xF or A..B:+S, e.g. wmpi.packet=64KiB..2MiB:x2.")
@click.option("--zip", "zips", multiple=True, metavar="'KEY=VALUES;KEY=VALUES'", help="Axes that go together, value by value.")
@set_option
@click.option("--sample", default="", metavar="lhs:N", help="Draw N points (a Latin hypercube) instead of taking all combinations.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of --sample (of the runs: --set seed=N).")
@click.option("--name", default="", metavar="NAME", help="Name of the study (default: the scenario's).")
@click.option("--metric", default="", metavar="METRIC", help="What its figures show first, e.g. time@1MiB.")
@running_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    scenario: str,
    vary: tuple[str, ...],
    zips: tuple[str, ...],
    sets: tuple[str, ...],
    sample: str,
    seed: int,
    name: str,
    metric: str,
    **running: Any,
) -> None:
    """Vary a scenario: run every combination of the axes, find what is stored, and keep the rest.

    Keys: model, platform, mode, hosts (so many of the platform's), ranks, seed, fidelity, kills, any argument of the trace
    (trace.size), any parameter of a model (wmpi.packet) and of a platform (platform.link.bandwidth). A model's parameter varies
    only the points of that model. STUDY is a study's TOML file or a ready study ('retrompi study list').

    Exit code 1: a point is no run (its row says why); a run that deadlocks is a result.
    """
    given = _study(scenario)
    if given is None:
        from retrompi.studies.design import from_command

        study = from_command(scenario, vary, zips, list(sets), sample=sample, seed=seed, name=name, metric=metric)
    else:
        study = _changed(given, vary, zips, sets, sample, name, metric)
    go(ctx, study, **running)


def _study(which: str) -> Study | None:
    """The study of that name or path; None for a scenario."""
    from retrompi.spec import registry

    path = Path(which)
    if path.suffix == ".toml" and path.is_file():
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            return None  # the reader of scenarios says what is wrong with it
        return registry.study(which) if "model" not in data else None
    return registry.study(which) if which in registry.study_names() and which not in registry.scenario_names() else None


def _changed(study: Study, vary: Sequence[str], zips: Sequence[str], sets: Sequence[str], sample: str, name: str, metric: str) -> Study:
    """A study of a file with other overrides."""
    for option, value in (("--vary", vary), ("--zip", zips), ("--sample", sample)):
        if value:
            raise UsageError(f"{option} is for a scenario; what varies in the study '{study.name}' is in its file", code="unused-option")
    from retrompi.spec.model import parse_sets
    from retrompi.studies.case import proper
    from retrompi.studies.design import check_name

    fixed = {**study.fixed, **{proper(k): v for k, v in parse_sets(list(sets)).items()}}
    return replace(study, fixed=fixed, name=check_name(name) if name else study.name, metric=metric or study.metric)


def go(
    ctx: click.Context,
    study: Study,
    *,
    jobs: int | None,
    executor: str | None,
    scheduler: str | None,
    dry_run: bool,
    limit: int,
    fresh: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> StudyRun | None:
    """Runs ``study`` (None where it only says what that would take) and prints what became of it."""
    from retrompi.studies import design
    from retrompi.studies.pool import processors

    one_format(as_json, as_csv)
    design.check(study, limit)
    store_ = open_for(ctx, store)
    workers = executor_of(executor, jobs, scheduler)
    if dry_run:
        _tell_plan(store_, study, jobs or processors(), limit, fresh, as_json, as_csv)
        return None
    from retrompi.studies.run import run_study

    try:
        with progress(study.name) as report:
            told = run_study(store_, study, executor=workers, fresh=fresh, limit=limit, report=report)
    except KeyboardInterrupt:
        study_id = store_.find_study(study.hash)
        done = len(store_.study_done(study_id)) if study_id is not None else 0
        click.echo(f"{done} of {design.count(study)} points are stored; the same command goes on from there", err=True)
        raise
    if as_json or as_csv:
        from retrompi.studies.results import rows

        found = rows(store_, told.study_id)
        emit(found, (), as_json=as_json, as_csv=as_csv, keys=list(found[0]) if found else [])
    else:
        click.echo(summary(told))
    for line in told.reasons:
        click.echo(f"warning: no run: {line}", err=True)
    if told.outside:
        click.echo(f"warning: {told.outside}", err=True)
    note(f"study {told.study_id}: retrompi study show {told.study_id}")
    if told.errors:
        ctx.exit(1)
    return told


def executor_of(executor: str | None, jobs: int | None, scheduler: str | None) -> Executor:
    """Who simulates, as the options say."""
    if executor == "dask" or (executor is None and scheduler is not None):
        from retrompi.studies.dask_executor import DaskExecutor

        return DaskExecutor(workers=jobs, scheduler=scheduler, say=lambda line: click.echo(line, err=True))
    if scheduler is not None:
        raise UsageError("--scheduler is for --executor dask", code="unused-option")
    from retrompi.studies.pool import Pool

    return Pool(jobs)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def summary(told: StudyRun) -> str:
    """One line: what was done, how it ended, how fast."""
    done = told.kept + told.found
    how = ", ".join(f"{n} {outcome}" for outcome, n in sorted(told.outcomes.items(), key=lambda item: -item[1]))
    rate = f", {told.simulated / told.seconds:.1f} runs/s" if told.simulated and told.seconds else ""
    parts = [_counted(told.points, "point"), f"{told.simulated} simulated", f"{done} found", how]
    return f"{', '.join(p for p in parts if p)} in {format_time(told.seconds)}{rate}"


def _tell_plan(store: Store, study: Study, jobs: int, limit: int, fresh: bool, as_json: bool, as_csv: bool) -> None:
    from retrompi.studies.plan import plan

    with progress(f"{study.name}, counting") as report:
        p = plan(store, study, jobs=jobs, limit=limit, fresh=fresh, report=report)
    row = {"points": p.points, "runs": p.runs, "found": p.found, "to_simulate": p.left, "refused": p.refused, "jobs": p.jobs,
           "seconds": p.seconds, "seconds_at_least": p.at_least, "seconds_from": p.how,
           "outside_calibrated_range": p.outside.points}  # fmt: skip
    if as_json or as_csv:
        emit([row], (), as_json=as_json, as_csv=as_csv, keys=list(row))
    else:
        line = f"{_counted(p.points, 'point')}, {_counted(p.runs, 'different run')}, {p.found} in the store, {p.left} to simulate"
        if p.refused:
            line += f", {_counted(p.refused, 'point')} no run"
        click.echo(line)
        if p.seconds is not None:
            about = "at least" if p.at_least else "about"
            click.echo(f"{about} {format_time(p.seconds)} on {p.jobs} process{'es' if p.jobs > 1 else ''} ({p.how})")
    for line in p.reasons:
        click.echo(f"warning: no run: {line}", err=True)
    if p.outside.points:
        click.echo(f"warning: {p.outside.line(p.points)}", err=True)
