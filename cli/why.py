"""``retrompi why``: the critical path of a run, and why one run takes longer than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import PS, format_quantity, format_time
from retrompi.cli.bundle import option, options
from retrompi.cli.options import Fictions, StoreOutput, complete_model, complete_platform, output_option, ranks_option, share
from retrompi.cli.output import Column, note_warnings, print_csv, print_json, print_table, say, write_drawn

if TYPE_CHECKING:
    from retrompi.sim.cautions import Caution
    from retrompi.sim.critical_path import CriticalPath, Slack, StageDifference
    from retrompi.sim.result import Result
    from retrompi.spec.question import Question
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.search.sensitivity import Sensitivity

KEYS = ("stage", "who", "ps", "seconds", "share", "pieces")
KEYS_OF_TWO = ("stage", "a_ps", "b_ps", "ps", "seconds", "a_pieces", "b_pieces")
MOST = 20
"""Rows of the table of who; --json and --csv have all."""
NEAREST = 12
"""Rows of the table of what is beside the path."""


@dataclass(frozen=True)
class WhyOptions(Fictions, StoreOutput):
    """Options of ``retrompi why``."""

    model: str | None = option(
        "Runtime model: of a generator or a trace (default: wmpi), or another than the scenario's.",
        "-m",
        "--model",
        metavar="NAME|FOLDER",
        shell_complete=complete_model,
    )
    platform: str | None = option(
        "Platform: of a generator or a trace (default: the model's own), or another than the scenario's.",
        "-p",
        "--platform",
        metavar="NAME|FILE",
        shell_complete=complete_platform,
    )
    mode: str | None = option("Placement of the ranks: as for 'retrompi replay'.", metavar="MODE")
    ranks: int | None = ranks_option(" (default: as in the trace)")
    sets: tuple[str, ...] = option(
        "Override a parameter: of the model or platform, or a key of the scenario (model, mode, trace.reps, ...).",
        "--set",
        metavar="KEY=VALUE",
    )
    a: tuple[str, ...] = option("Change to the scenario for A, e.g. model=wmpi (repeatable).", metavar="KEY=VALUE")
    b: tuple[str, ...] = option("Change to the scenario for B (repeatable).", metavar="KEY=VALUE")
    keys: tuple[str, ...] = option(
        "Sensitivity: how the time depends on this key, from the one run, e.g. platform.link.latency (repeatable).",
        "--sensitivity",
        metavar="KEY",
    )
    verify: bool = option("Check of --sensitivity: simulate further runs to find where it holds.", "--range")
    slower: str = option("Acceptable slow-downs, e.g. 1%,2%,5%.", default="5%", metavar="SHARE[,SHARE]")
    out: Path | None = output_option("the path, as a page, figures or numbers", "html", "svg", "png", "csv", "json")


@click.command()
@click.argument("program")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@options(given=WhyOptions)
@click.pass_context
def command(ctx: click.Context, program: str, arguments: tuple[str, ...], given: WhyOptions) -> None:
    """Show what the time of a run consists of, or why B takes longer than A: the critical path.

    PROGRAM is a scenario, a trace, a generator with its arguments, or the number of a stored run, which is run again; two numbers are
    A and B. The path is the chain of delays from the start to the end of the
    last rank: each begins when the last thing that it waited for ended. Its length is the run's time, to the picosecond. What is
    beside it has a slack: how much later it could be without delaying the end. With --a or --b
    the difference of two runs is split over the stages of their paths; the parts sum to it exactly. --sensitivity states how the time
    depends on a number while the path stays the same. Exit code 1 means that a run did not complete.

    \b
    Examples:
      retrompi why halo ranks=4 reps=3 size=10000 -m wmpi
      retrompi why halo ranks=4 reps=3 size=10000 --a model=wmpi --b model=winmpich
      retrompi why halo ranks=4 reps=3 size=1000 -m mpich -p 'linux-p6-200*4@hub-10' --sensitivity platform.link.latency --range
      retrompi why 12 13
      retrompi why examples/traces/jacobi-4.tar.zst -m wmpi -p nt-cluster --b platform.link.bandwidth=100Mbps
    """
    from retrompi.sim.cautions import merge_cautions
    from retrompi.spec import registry
    from retrompi.spec.model import parse_sets
    from retrompi.studies.compare import compare_runtimes
    from retrompi.studies.define import case
    from retrompi.studies.define.used_overrides import refuse_idle
    from retrompi.studies.read.cautions import of_scenario

    if program.isdigit():
        return _explain_stored(ctx, [program, *arguments], given)
    base = compare_runtimes.program(program, arguments, given.model or registry.FIRST_MODEL, given.platform, given.mode, given.ranks)
    base = case.apply(base, {**({"model": given.model} if given.model else {}), **parse_sets(list(given.sets))})
    two = bool(given.a or given.b)
    if two and given.keys:
        raise UsageError("--sensitivity is about one run; leave out --a and --b", code="conflicting-options")
    if given.verify and not given.keys:
        raise UsageError("--range needs --sensitivity KEY, e.g. --sensitivity platform.link.latency", code="missing-option")
    shares = [share("--slower", part) for part in given.slower.split(",")]
    sides = [case.apply(base, parse_sets(list(of))) for of in (given.a, given.b)] if two else [base]
    known = [case.identity(side) for side in sides]
    refuse_idle(*sides)
    if two and known[0] == known[1]:
        raise UsageError("A and B are identical; state a difference, e.g. --a model=wmpi --b model=winmpich", code="conflicting-options")
    ran = _runs(ctx, [side.question() for side in sides])
    found = merge_cautions((name, of_scenario(side, run.cautions)) for name, side, run in zip("AB", sides, ran, strict=False))
    paths = [run.recorded_path for run in ran]
    if two:
        _two(base.name, [" ".join(of) or "unchanged" for of in (given.a, given.b)], paths, given, found)
    else:
        run = ShownRun(base.name, base.model, base.platform, tuple(found))
        _one(run, paths[0], given, _sensitivities(base, paths[0], given), shares)


@dataclass(frozen=True)
class ShownRun:
    """Facts about a run that are shown beside its path."""

    name: str
    model: str
    platform: str
    warnings: tuple[Caution, ...] = ()


def _explain_stored(ctx: click.Context, numbers: Sequence[str], given: WhyOptions) -> None:
    """One stored run, or the difference of two, run again."""
    from retrompi.sim.cautions import merge_cautions, of_run
    from retrompi.sim.resolved import Resolved
    from retrompi.store.questions import question_of

    others = {"--model": given.model, "--platform": given.platform, "--mode": given.mode, "--ranks": given.ranks, "--set": given.sets,
              "--a": given.a, "--b": given.b, "--sensitivity": given.keys}
    if used := [name for name, value in others.items() if value]:
        raise UsageError(f"stored runs are run again as they were; leave out {used[0]}, or name the program", code="conflicting-options")
    if len(numbers) > 2 or not all(n.isdigit() for n in numbers):
        raise UsageError("give the number of one stored run, or of two; example: retrompi why 12 13", code="bad-usage")
    store = given.open(write=False)
    ids = [int(n) for n in numbers]
    asked = [question_of(store, i) for i in ids]
    ran = _runs(ctx, asked)
    paths = [run.recorded_path for run in ran]
    found = merge_cautions((f"run {i}", of_run(Resolved.of(q), run.cautions)) for i, q, run in zip(ids, asked, ran, strict=True))
    for i, path in zip(ids, paths, strict=True):
        stored = (store.run(i)["facts"] or {}).get("time_ps")
        if stored is not None and stored != path.took:
            raise UsageError(
                f"run {i} took {_ps(stored)} when it was stored and takes {_ps(path.took)} with this version of retrompi; "
                f"simulate it again (--fresh)", code="not-the-same",
            )
    if len(ids) == 1:
        _one(ShownRun(f"run {ids[0]}", asked[0].model, asked[0].platform, tuple(found)), paths[0], given, [], [])
    elif ids[0] == ids[1]:
        raise UsageError("A and B are the same run", code="conflicting-options")
    else:
        _two(f"runs {ids[0]} and {ids[1]}", [f"run {i}: {q.title}" for i, q in zip(ids, asked, strict=True)], paths, given, found)


def _runs(ctx: click.Context, asked: Sequence[Question]) -> list[Result]:
    """The runs, with their paths; ends the command if one of them did not complete."""
    from retrompi.sim import simulate
    from retrompi.sim.observe import Observe

    told = [simulate.run(question, Observe(critical_path=True)) for question in asked]
    if any(result.critical_path is None for result in told):
        for result, name in zip(told, ("A", "B"), strict=False):
            if result.critical_path is None:
                say(f"{name + ': ' if len(told) > 1 else ''}{result.outcome}: {result.detail}")
        ctx.exit(1)
    return told


def rows_of(path: CriticalPath) -> list[dict[str, Any]]:
    """The path summed by stage and who, the largest first."""
    whole = path.took or 1
    return [
        {"stage": s.stage, "who": s.who, "ps": s.ps, "seconds": s.ps * PS, "share": s.ps / whole, "pieces": s.pieces} for s in path.shares()
    ]


def slack_rows(slacks: Sequence[Slack]) -> list[dict[str, Any]]:
    """Rows of the activities on the path and beside it with their slack, the least first."""
    return [
        {"stage": s.stage, "who": s.who, "on_path_ps": s.on_path, "beside_ps": s.beside, "parts_beside": s.parts, "least_slack_ps": s.least}
        for s in slacks
    ]


def rows_of_two(parts: Sequence[StageDifference]) -> list[dict[str, Any]]:
    """The parts of a difference, the largest first."""
    return [
        {"stage": d.stage, "a_ps": d.a, "b_ps": d.b, "ps": d.ps, "seconds": d.ps * PS, "a_pieces": d.pieces_a, "b_pieces": d.pieces_b}
        for d in parts
    ]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _sensitivities(base: Scenario, path: CriticalPath, given: WhyOptions) -> list[Sensitivity]:
    from retrompi.studies.search import sensitivity

    found = [sensitivity.sensitivity(base, path, key) for key in given.keys]
    return [sensitivity.verify_range(base, s) for s in found] if given.verify else found


def row_of(s: Sensitivity, shares: Sequence[float]) -> dict[str, Any]:
    """A sensitivity as JSON values."""
    return {
        "key": s.key.path, "value": s.key.value, "unit": s.key.unit, "slope_s": s.slope, "elasticity": s.share, "linear_in": s.linear_in,
        "holds_from": s.low, "holds_to": s.high, "simulated": s.simulated or None, "checked": list(s.checked) if s.checked else None,
        "slower": [{"share": x, "at": s.slower_at(x)} for x in shares],
    }


def _print_sensitivities(found: Sequence[Sensitivity], shares: Sequence[float]) -> None:
    columns = [Column("key", "key"), Column("value", "value", right=True), Column("slope", "seconds a unit", right=True),
               Column("share", "1 % more is", right=True),
               *(Column(f"at{x}", f"{100 * x:g} % slower at", right=True) for x in shares)]
    columns.append(Column("holds", "holds", right=True))
    if any(s.checked for s in found):
        columns.append(Column("checked", "simulated to hold", right=True))
    rows = []
    for s in found:
        text = {f"at{x}": "never" if (at := s.slower_at(x)) is None or at <= 0 else format_quantity(at, s.key.unit) for x in shares}
        holds = "simulated" if s.low is None or s.high is None else _range(s, s.low, s.high)
        text["checked"] = _range(s, *s.checked) if s.checked else ""
        told = {"key": s.key.path, "value": s.key.value_text, "slope": f"{s.slope:.6g}", "share": f"{s.share:+.3g} %"}
        rows.append({**told, "holds": holds, **text})
    say()
    print_table(rows, columns)
    for s in found:
        if s.simulated:
            say(f"{s.key.path}: the difference of two simulations, because {s.simulated}")


def _range(s: Sensitivity, low: float, high: float) -> str:
    at = s.key.value
    return " to ".join(s.key.value_text if x == at else format_quantity(float(f"{x:.5g}"), s.key.unit) for x in (low, high))


def _print_slacks(slacks: Sequence[Slack]) -> None:
    """Prints the activities beside the path, those with the least slack first."""
    beside = [s for s in slacks if s.least is not None]
    say("\nbeside the path, and how much later it could be:\n")
    print_table(
        [
            {"stage": s.stage, "who": s.who, "on": _time(s.on_path) if s.on_path else "", "beside": _time(s.beside), "parts": s.parts,
             "least": _time(s.least or 0)} for s in beside[:NEAREST]
        ],
        [Column("stage", "what"), Column("who", "who"), Column("on", "on the path", right=True), Column("beside", "beside it", right=True),
         Column("parts", "parts", right=True), Column("least", "least slack", right=True)],
        empty="nothing",
    )
    if len(beside) > NEAREST:
        say(f"… and {len(beside) - NEAREST} more (--json has all)")


def _one(run: ShownRun, path: CriticalPath, given: WhyOptions, slopes: Sequence[Sensitivity], shares: Sequence[float]) -> None:
    from retrompi.sim.cautions import mark

    rows, slacks = rows_of(path), path.slacks()
    whole = {"program": run.name, "model": run.model, "platform": run.platform, "time_ps": path.took, "time_s": path.took * PS,
             "pieces": len(path), "parts": rows, "slacks": slack_rows(slacks), "sensitivities": [row_of(s, shares) for s in slopes],
             "warnings": note_warnings(run.warnings)}
    if given.as_json:
        print_json(whole)
    elif given.as_csv:
        print_csv(rows, KEYS)
    else:
        took = f"{format_time(path.took * PS)}, {len(path)} delays one after another"
        say(f"{run.name} with {run.model} on {run.platform}: {took}{mark(run.warnings)}\n")
        for what, title in (("stage", "what"), ("who", "who")):
            sums = path.by("stage" if what == "stage" else "who")
            shown = [{"name": n, "time": format_time(ps * PS), "share": _share(ps / (path.took or 1))} for n, ps in sums.items()]
            print_table(shown[:MOST], [Column("name", title), Column("time", "time", right=True), Column("share", "share", right=True)])
            say(f"… and {len(shown) - MOST} more (--json has all)\n" if len(shown) > MOST else "")
        say(f"the sum is the run's time, {_ps(path.took)}")
        _print_slacks(slacks)
        if slopes:
            _print_sensitivities(slopes, shares)
    _write(given, [path], ["the run"], rows, whole)


def _two(name: str, names: Sequence[str], paths: Sequence[CriticalPath], given: WhyOptions, warnings: Sequence[Caution]) -> None:
    from retrompi.sim.cautions import mark
    from retrompi.sim.critical_path import difference

    a, b = paths
    parts = difference(a, b)
    rows = rows_of_two(parts)
    whole: dict[str, Any] = {
        "program": name, "a": {"changes": list(given.a), "time_ps": a.took, "time_s": a.took * PS, "parts": rows_of(a)},
        "b": {"changes": list(given.b), "time_ps": b.took, "time_s": b.took * PS, "parts": rows_of(b)},
        "difference_ps": b.took - a.took, "difference_s": (b.took - a.took) * PS, "parts": rows, "warnings": note_warnings(warnings),
    }
    if given.as_json:
        print_json(whole)
    elif given.as_csv:
        print_csv(rows, KEYS_OF_TWO)
    else:
        say(f"{name}: A ({names[0]}) {format_time(a.took * PS)}, B ({names[1]}) {format_time(b.took * PS)}{mark(warnings)}\n")
        total = {"stage": "total", "a_ps": a.took, "b_ps": b.took, "ps": b.took - a.took, "share": 1.0}
        shown = [{**r, "share": r["ps"] / total["ps"] if total["ps"] else None} for r in rows]
        print_table([*shown, total], [
            Column("stage", "stage"), Column("a_ps", "A", _time, right=True), Column("b_ps", "B", _time, right=True),
            Column("ps", "B - A", _signed_time, right=True), Column("share", "share", lambda v: "" if v is None else _share(v), right=True),
        ])
        say(f"\nthe parts sum to the difference, {_ps(b.took - a.took)}")
    _write(given, paths, ["A", "B"], rows, whole)


def _ps(ps: int) -> str:
    return f"{ps:,} ps".replace(",", " ")


def _time(ps: int) -> str:
    return format_time(ps * PS)


def _signed_time(ps: int) -> str:
    return f"{'-' if ps < 0 else '+'}{format_time(abs(ps) * PS)}"


def _write(given: WhyOptions, paths: Sequence[CriticalPath], names: Sequence[str], rows: Sequence[dict[str, Any]], whole: Any) -> None:
    if given.out is None:
        return
    from retrompi.render.pages import path_page

    made = [given.out]
    if given.out.suffix.lower() == ".html":
        path_page.write(given.out, whole["program"], list(zip(names, paths, strict=True)))
    else:
        made = write_drawn(given.out, lambda: path_page.figures(list(zip(names, paths, strict=True))), rows, whole)
    click.echo(f"written: {', '.join(map(str, made))}", err=True)
