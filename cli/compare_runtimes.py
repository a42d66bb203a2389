"""``retrompi compare --models``: one program on several runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_time
from retrompi.cli.answers import Executors, count_line
from retrompi.cli.draws import drawing, interval_column, note_draws
from retrompi.cli.options import progress
from retrompi.cli.output import Column, note_warnings, print_csv, print_json, print_table, say, time_column, write_drawn
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    from retrompi.api.programs import Runtimes
    from retrompi.cli.compare_options import CompareOptions
    from retrompi.cli.options import RunOutput
    from retrompi.spec.conditions.bounds import Bounds
    from retrompi.studies.compare.compare_runtimes import Candidates, RuntimeRow
    from retrompi.studies.compare.matrix_summary import Side
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario


MOST_SIDES = {"runtime": 16, "platform": 12}
MOST_REASONS, MOST_STATEMENTS = 8, 8


def run_runtimes(
    ctx: click.Context, text: str | None, arguments: Sequence[str], np: int | None, given: CompareOptions, output: RunOutput
) -> None:
    """Run, print and, where a runtime did not complete, end with exit code 1."""
    from click.core import ParameterSource

    from retrompi.api.programs import runtimes_of
    from retrompi.sim.cautions import mark
    from retrompi.studies.compare.matrix_summary import SCREEN

    seeded = ctx.get_parameter_source("seed") == ParameterSource.COMMANDLINE
    candidates = _candidates(text, arguments, np, given, seeded)
    spec = given.spec()
    kept = output.open()
    try:
        with progress("comparing") as report, Executors(given.jobs, None, None, None, None, None).working() as executor:
            told = runtimes_of(kept, candidates, executor, output.fresh, report)
        if spec is not None:
            with drawing() as report:
                told = told.uncertainty(spec.level, spec.draws, report, output.fresh)
    except KeyboardInterrupt:
        say("\nwhat was simulated is in the store: the same command goes on from there", err=True)
        raise
    found, drawn, warnings = told.found, told.drawn, told.warnings
    brief = output.text and not given.full and len(found) > SCREEN
    warned = [w.row() for w in warnings] if brief else note_warnings(warnings)
    because = [] if output.as_csv and given.out is None else told.causes  # two more simulations
    units = {m.name: m.unit for m in candidates.wanted}
    certain = {} if drawn is None else drawn.row()
    value = {"program": candidates.base.name, "rows": [r.row() for r in found], "units": units, "warnings": warned, "causes": because,
             **certain}
    if output.as_json:
        print_json(value)
    elif output.as_csv:
        print_csv([r.row() for r in found], list(found[0].row()))
    else:
        _print_text(told, candidates, brief, mark(warnings), because)
    if given.out is not None:
        _write(given.out, told, value, output)
    if drawn is not None:
        note_draws(list(drawn.ensembles.values()))
    if any(r.outcome != Outcome.COMPLETED for r in found):
        ctx.exit(1)


def _candidates(text: str | None, arguments: Sequence[str], np: int | None, given: CompareOptions, seeded: bool) -> Candidates:
    """What is asked for: the program, its runtimes, platforms and metrics. Raises UsageError."""
    from retrompi.spec.model import parse_sets
    from retrompi.studies.compare import compare_runtimes
    from retrompi.studies.define import case, metrics
    from retrompi.studies.define.keys import ranks_of

    models, platforms = given.models or (), given.platforms or ()
    if given.platform is not None and platforms:
        platforms = tuple(dict.fromkeys((given.platform, *platforms)))
    if text is None:
        raise UsageError("give the program: a scenario, a trace or a generator", code="missing-option")
    several = any(name in compare_runtimes.SEVERAL for name in (*models, *platforms)) or len(given.networks or ()) > 1
    if len(models) < 2 and len(platforms) < 2 and not several:
        raise UsageError("a comparison needs at least two runtimes: --models wmpi,winmpich", code="missing-option")
    models = compare_runtimes.runtimes(models)
    named = [p for p in platforms if p not in compare_runtimes.SEVERAL]
    first = None if given.networks else named[0] if named else given.platform
    base = compare_runtimes.program(text, arguments, models[0], first, given.mode, np)
    words = {"fidelity": given.fidelity, "seed": str(given.seed) if seeded else None}
    base = case.apply(base, {**{k: v for k, v in words.items() if v is not None}, **parse_sets(list(given.sets))})
    wanted = [metrics.parse(n) for n in given.metrics]
    if base.program.section is not None and not any(m.name == "section" for m in wanted):
        wanted = [metrics.parse("section"), *wanted]
    for metric in wanted:
        metric.check(base)
    if platforms or given.networks:
        platforms = compare_runtimes.platforms_of(platforms, given.networks or (), ranks_of(base), models)
    return compare_runtimes.Candidates(base, models, platforms, wanted, given.bounds())


def _print_text(told: Runtimes, candidates: Candidates, brief: bool, marked: str, because: Sequence[str]) -> None:
    """The table, or with ``brief`` its summary, and what is to be said of it."""
    from retrompi.studies.compare.matrix_summary import first_beyond_range
    from retrompi.studies.search.reading import Reading, count_runs

    found = told.found
    if brief:
        _print_summary(told)
    else:
        _print(found, candidates.base, candidates.wanted, marked)
    say(count_line(count_runs(Reading(r.time_s, r.run_id, r.outcome, r.reason, r.found) for r in found)))
    if any(r.outcome == Outcome.LIMIT for r in found):
        say(f"stopped at {_stop(candidates.bounds_of_each)} (--event-limit): {', '.join(_pair_names(found, Outcome.LIMIT))}")
    if candidates.time.name == "timed" and any(r.outcome == Outcome.COMPLETED for r in found):
        say("time: of the timed repetitions, after a warm-up; warm_up=0 includes what the first call sets up")
    lines = [] if told.drawn is None else told.drawn.lines()
    for line in lines[:MOST_STATEMENTS] if brief else lines:
        say(line)
    if brief and len(lines) > MOST_STATEMENTS:
        say(f"… and {len(lines) - MOST_STATEMENTS} more lines about which is ahead (--full)")
    for i, line in enumerate(because):
        say(f"  {line}" if i else f"\n{line}")
    if because and (beyond := first_beyond_range(found, told.warnings)):
        say(beyond)


def _write(out: Path, told: Runtimes, value: Any, output: RunOutput) -> None:
    from retrompi.render.document.html import save
    from retrompi.render.pages import runtimes_page
    from retrompi.store import code_version

    made = [out]
    if out.suffix.lower() == ".html":
        save(out, runtimes_page.page(
            told.found, told.title, told.causes, told.warnings, f"retrompi {code_version()}", told.statements))
    else:
        made = write_drawn(out, lambda: runtimes_page.figures(told.found, told.title), told.rows, value)
    click.echo(f"written: {', '.join(map(str, made))}", err=not output.text)


def _share(value: Any) -> str:
    return "" if value is None else f"{100 * value:.3g} %"


def _within(found: Sequence[RuntimeRow], name: str, unit: str) -> list[Column]:
    """The column of an interval; none without draws."""
    level = next((r.intervals[name].level for r in found if name in r.intervals), None)
    return [] if level is None else [interval_column(name, level, unit)]


def _print(found: Sequence[RuntimeRow], base: Scenario, wanted: Sequence[Metric], marked: str) -> None:
    from retrompi.studies.compare.matrix_summary import ratio_text

    platforms = list(dict.fromkeys(r.platform for r in found))
    say(f"{base.name}, {base.mode}{f', on {platforms[0]}' if len(platforms) == 1 else ''}{marked}\n")
    columns = [Column("model", "runtime"), *([Column("platform", "platform")] if len(platforms) > 1 else []),
               Column("time", "time", right=True), *_within(found, "time_s", "s"),
               Column("relative", "ratio", ratio_text, right=True),
               Column("in_mpi", "in MPI", _share, right=True), Column("computing", "compute", _share, right=True)]
    for m in wanted:
        columns += [Column(m.name, m.name, m.show, right=True), *_within(found, m.name, m.unit)]
    columns += [Column("run_id", "run", right=True)]
    if any(r.fiction for r in found):
        columns += [Column("fiction", "", lambda v: "fiction" if v else "")]
    rows = [{**r.row(), **{f"{name}_interval": (i.low, i.high) if i.completed else None for name, i in r.intervals.items()}} for r in found]
    print_table([{**r, "time": r["outcome"] if r["time_s"] is None else format_time(r["time_s"])} for r in rows], columns)
    for r in found:
        if r.reason:
            say(f"{r.model}{f' on {r.platform}' if len(platforms) > 1 else ''}: {r.outcome}: {r.reason}")


def _stop(bounds: Bounds) -> str:
    """A bound on each pair, in words."""
    parts = [f"{bounds.events:,} events".replace(",", " ")] if bounds.events is not None else []
    return " or ".join([*parts, *([f"{format_time(bounds.wall_s)} of wall time"] if bounds.wall_s is not None else [])])


def _print_summary(told: Runtimes) -> None:
    """The counts, the best of each runtime and of each platform, and what has no time by reason."""
    from retrompi.studies.compare.compare_runtimes import OWN_PLATFORMS
    from retrompi.studies.compare.matrix_summary import caution_lines, count_outcomes, sides, without_platform, without_time
    from retrompi.studies.define.case import ERROR

    found, base = told.found, told.candidates.base
    models, platforms = sides(found, "model"), sides(found, "platform")
    fictions = sum(bool(r.fiction) for r in found)
    counts = ", ".join(f"{n} {what}" for what, n in [*count_outcomes(found).items(), *([("fictions", fictions)] if fictions else [])])
    on = f"{len(platforms)} platforms" if len(platforms) > 1 else platforms[0].name
    say(f"{base.name}, {base.mode}, {len(models)} runtimes on {on}: {len(found)} pairs, {counts}\n")
    if len(models) > 1:
        _print_sides(models, "runtime", "platform", told)
    if len(platforms) > 1:
        _print_sides(platforms, "platform", "runtime", told)
    reasons = without_time(found)
    for some in ([g for g in reasons if g.outcome != ERROR], [g for g in reasons if g.outcome == ERROR]):
        for group in some[:MOST_REASONS]:
            say(group.line)
        if left := some[MOST_REASONS:]:
            count = sum(len(g.rows) for g in left)
            say(f"… and {_count(count, 'pair')} for {_count(len(left), 'more reason')} (--full)")
    if nowhere := without_platform(found):
        say(f"on none of these platforms: {', '.join(nowhere)}; --platforms all,{OWN_PLATFORMS} has theirs too")
    for line in caution_lines(told.warnings, len(found)):
        say(f"caution: {line}", err=True)
    say("every pair, reason and caution: --full, or -o PAGE.html")


def _pair_names(found: Sequence[RuntimeRow], outcome: str) -> list[str]:
    return [f"{r.model} on {r.platform}" for r in found if r.outcome == outcome]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"


def _print_sides(some: Sequence[Side], what: str, other: str, told: Runtimes) -> None:
    """A line for each of the first runtimes or platforms: how many of its pairs have a time, and the fastest and slowest of them."""
    from retrompi.studies.compare.matrix_summary import ratio_text

    rows = []
    single = all(side.pairs == 1 for side in some)
    wanted = [m for m in told.candidates.wanted if m.name not in ("time", told.candidates.time.name)]
    for side in [s for s in some if s.fastest is not None][: MOST_SIDES[what]]:
        best = side.fastest
        if best is None or side.slowest is None:
            continue
        rows.append({
            what: side.name, "timed": f"{side.timed} of {side.pairs}",
            other: (best.platform if what == "runtime" else best.model) + (" (a fiction)" if best.fiction else ""),
            "time": best.time_s, "ratio": best.relative, "slowest": side.slowest.time_s,
            **{m.name: best.values.get(m.name) for m in wanted},
        })
    of_pairs = [] if single else [Column("timed", "pairs", right=True), Column(other, f"fastest {other}")]
    print_table(rows, [Column(what, what), *of_pairs, time_column("time", "time"),
                       Column("ratio", "ratio", ratio_text, right=True),
                       *([] if single else [time_column("slowest", "slowest")]),
                       *(Column(m.name, m.name, m.show, right=True) for m in wanted)],
                empty=f"no {what} completed it")
    timed = sum(s.fastest is not None for s in some)
    more = [f"{_count(timed - len(rows), f'more {what}')}"] if timed > len(rows) else []
    more += [f"{_count(len(some) - timed, what)} without a time"] if timed < len(some) else []
    say(f"… and {' and '.join(more)} (--full)\n" if more else "")
