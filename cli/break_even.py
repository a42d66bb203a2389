"""``retrompi break-even``: the values of one key at which A overtakes B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.answers import AnswerOptions, asking_of, count_line, scenario_argument, the_scenario
from retrompi.cli.bundle import option, options
from retrompi.cli.draws import percent
from retrompi.cli.options import RunOutput, Uncertain, share
from retrompi.cli.output import Column, note_warnings, print_csv, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.api.break_even import BreakEven
    from retrompi.spec.declare.number import Number
    from retrompi.studies.search.breakeven import BreakEven as Found
    from retrompi.studies.search.breakeven import Crossing
    from retrompi.studies.search.certainty import Crossed

POINT_KEYS = ("key", "value", "text", "a", "b", "unit", "ahead", "outcome_a", "outcome_b", "run_a", "run_b")


@dataclass(frozen=True)
class BreakEvenOptions(Uncertain, AnswerOptions):
    """Options of ``retrompi break_even``."""

    along: str = option("Key to vary and its range, e.g. ranks=2..64.", required=True, metavar="KEY=LOW..HIGH[:log|:linear]")
    a: tuple[str, ...] = option("Change to the scenario for A, e.g. model=wmpi (repeatable).", metavar="KEY=VALUE")
    b: tuple[str, ...] = option("Change to the scenario for B (repeatable).", metavar="KEY=VALUE")
    scan: int = option("Number of points in the first scan for crossings.", type=click.IntRange(2, 10_000), default=9)
    tolerance: str = option("Relative width of a narrow interval: when that of a crossing is narrow enough.", default="1%", metavar="SHARE")
    tie: str = option("Relative difference below which A and B are tied.", default="0%", metavar="SHARE")


@click.command()
@scenario_argument
@options(given=BreakEvenOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, scenario: str, given: BreakEvenOptions, output: RunOutput) -> None:
    """Find where along a bandwidth, a latency, a size or a number of ranks A overtakes B.

    A scan over the range finds every change of the leader, and bisection narrows each one down; both ends of every reported
    interval were simulated. For whole numbers the ends are neighbours. CSV lists every point that was simulated. Exit code 1 means
    that neither side completes anywhere.

    \b
    Examples:
      retrompi break-even bf-wmpi-shared --along trace.sizes=1KiB..1MiB --a model=wmpi --b model=winmpich
      retrompi break-even bf-wmpi-distributed --along platform.link.bandwidth=10Mbps..1Gbps --a model=wmpi --b model=hpvm
    """
    from retrompi.api.break_even import break_even_of
    from retrompi.sim.cautions import mark
    from retrompi.spec.model import parse_sets

    spec = given.spec()
    base = the_scenario(scenario, given.sets)
    key, ends = _along(given.along)
    told = break_even_of(
        base, key, ends, (parse_sets(list(given.a)), parse_sets(list(given.b))), asking_of("break-even", given, output),
        metric=given.metric, scan=given.scan, tolerance=share("--tolerance", given.tolerance), tie=share("--tie", given.tie), spec=spec,
    )
    warnings = note_warnings(told.warnings)
    names = (_name("a", given.a), _name("b", given.b))
    if output.as_json:
        print_json({**as_object(told, names, warnings), **({} if told.drawn is None else told.drawn.row())})
    elif output.as_csv:
        print_csv(told.rows, POINT_KEYS)
    else:
        _print(told, names, mark(told.warnings))
        for line in [] if told.drawn is None else _certain(told.drawn, told.found.scale):
            say(line)
    if set(told.found.states) == {"neither"}:
        ctx.exit(1)


def _certain(drawn: Crossed, scale: Number) -> list[str]:
    """Sentences on where the leader changes, over the draws."""
    lines, of = [], f"of {drawn.spec.draws} draws"
    for c in drawn.changes:
        what = f"{c.after.upper()} overtakes {c.before.upper()}" if {c.before, c.after} == {"a", "b"} else (
            f"{_state(c.before)}, then {_state(c.after)}")
        low, middle, high = (scale.text(float(f"{x:.3g}")) for x in (c.value.low, c.value.median, c.value.high))
        where = middle if low == high else f"{low} to {high} in {percent(c.value.level)} of them, median {middle}"
        lines.append(f"in {c.draws} {of} {what}: {where}")
    if drawn.several:
        lines.append(f"in {drawn.several} {of} more than one crossing; the first of each kind counts")
    none = sum(drawn.without.values())
    states = ", ".join(f"{_state(s)} in {n}" for s, n in drawn.without.items())
    return [*lines, f"in {none} {of} no crossing{f': {states}' if none else ''}"]


def _name(letter: str, given: Sequence[str]) -> str:
    return " ".join(given) if given else f"{letter}: the scenario"


def _along(text: str) -> tuple[str, tuple[str, str, str]]:
    """The key of ``KEY=LOW..HIGH[:log|:linear]``, and its range with its shape."""
    name, equals, given = text.partition("=")
    low, dots, high = given.partition("..")
    high, _, shape = high.partition(":")
    if not equals or not dots or not low.strip() or not high.strip() or shape not in ("", "log", "linear"):
        raise UsageError(
            f"'--along {text}' is not KEY=LOW..HIGH[:log|:linear]; example: --along platform.link.bandwidth=1Mbps..1Gbps",
            code="bad-syntax",
        )
    return name, (low, high, shape)


def as_object(told: BreakEven, names: Sequence[str], warnings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The result as JSON values."""
    runs, simulated = told.found.counts
    return {
        "scenario": told.scenario.name, "metric": told.metric.name, "unit": told.unit, "key": told.found.scale.key,
        "a": names[0], "b": names[1], "crossings": told.crossings, "ends": [told.rows[0], told.rows[-1]], "points": told.rows,
        "runs": runs, "simulated": simulated, "warnings": list(warnings),
    }


_AHEAD: Mapping[str, str] = {
    "a": "A", "b": "B", "tie": "tie", "only a": "A, B ends", "only b": "B, A ends", "neither": "both end"
}


def _print(told: BreakEven, names: Sequence[str], mark: str) -> None:
    found, metric, points = told.found, told.metric, told.rows
    low, high = found.ends
    say(f"{metric.label} of {told.scenario.name}{mark}\nalong {found.scale.key}, {low.text} to {high.text}")
    say(f"A: {names[0]}\nB: {names[1]}\n")
    narrowed = {p.x for c in found.crossings for p in (c.low, c.high)}
    shown = [0, *(i for i, p in enumerate(found.points) if p.x in narrowed), len(found.points) - 1]
    rows = [{**points[i], "lead": _lead(found, i)} for i in dict.fromkeys(shown)]
    columns = [
        Column("text", found.scale.key.rpartition(".")[2], right=True),
        Column("a", "A", metric.show, right=True),
        Column("b", "B", metric.show, right=True),
        Column("ahead", "ahead", lambda s: _AHEAD[s]),
        Column("lead", "by", right=True),
        Column("runs", "runs", right=True),
    ]
    print_table([{**r, "runs": _runs(r)} for r in rows], columns)
    say()
    for c in found.crossings:
        say(_sentence(c, found.scale))
    for p in (p for c in found.crossings for p in (c.low, c.high)):
        for letter, r in (("A", p.a), ("B", p.b)):
            if r.value is None:
                say(f"{letter} at {p.text}: {r.outcome_text()}")
    if not found.crossings:
        say(_all_the_way(found))
    step = _step(found.scale, low.x, high.x, found.scanned)
    say(f"crossings closer than {step} may have been missed (--scan)")
    say(count_line(found.counts))


def _runs(row: Mapping[str, Any]) -> str:
    return ", ".join("-" if row[k] is None else str(row[k]) for k in ("run_a", "run_b"))


def _lead(found: Found, i: int) -> str:
    """The ratio of the larger number to the smaller: as a percentage above it, or as a factor."""
    a, b = found.points[i].a.value, found.points[i].b.value
    if a is None or b is None or found.states[i] == "tie" or not min(a, b) > 0:
        return ""
    quotient = max(a, b) / min(a, b)
    return f"{100 * (quotient - 1):.3g} %" if quotient < 2 else f"x{quotient:.3g}"


def _sentence(c: Crossing, scale: Number) -> str:
    where = f"between {c.low.text} and {c.high.text}"
    if not c.overtakes:
        return f"{where}: {_state(c.before)}, then {_state(c.after)}"
    about = "" if c.estimate is None or scale.whole else f" (about {scale.text(float(f'{c.estimate:.4g}'))})"
    if c.after == "tie" or c.before == "tie":
        return f"{where}: {_state(c.before)}, then {_state(c.after)}"
    return f"{where}{about}: {c.after.upper()} overtakes {c.before.upper()}"


def _state(state: str) -> str:
    return {"a": "A is ahead", "b": "B is ahead", "tie": "a tie", "only a": "only A completes", "only b": "only B completes",
            "neither": "neither completes"}[state]


def _all_the_way(found: Found) -> str:
    state = found.states[0]
    low, high = found.ends
    line = f"no crossing: {_state(state)} from {low.text} to {high.text}"
    leads = [_lead(found, i) for i in (0, len(found.points) - 1)]
    if all(leads):
        line += f", by {leads[0]} at {low.text} and by {leads[1]} at {high.text}"
    elif state not in ("a", "b", "tie"):
        line += "".join(f"; {x}: {r.outcome_text()}" for x, r in (("A", low.a), ("B", low.b)) if r.value is None)
    return line


def _step(scale: Number, low: float, high: float, n: int) -> str:
    if scale.log and low > 0:
        return f"a factor {(high / low) ** (1 / max(n - 1, 1)):.3g}"
    return scale.text(float(f"{(high - low) / max(n - 1, 1):.3g}"))
