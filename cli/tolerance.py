"""``retrompi tolerance``: how far one key can move until a metric is worse by a given share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.units import canonical, format_quantity
from retrompi.cli.answers import AnswerOptions, asking_of, count_line, scenario_argument, the_scenario
from retrompi.cli.bundle import option, options
from retrompi.cli.draws import percent
from retrompi.cli.options import RunOutput, Uncertain, share
from retrompi.cli.output import Column, note_warnings, print_csv, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.api.tolerance import Tolerance
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.search.certainty import Distance
    from retrompi.studies.search.sensitivity import Tolerated
    from retrompi.studies.search.tolerance import SearchRange, ToleranceAnswer, TriedValue
    from retrompi.studies.search.tolerance import Tolerance as Found

KEYS = ("slower", "status", "within", "within_text", "beyond", "beyond_text", "estimate", "by_slope", "metric_within", "metric_beyond",
        "unit", "run_within", "run_beyond", "outcome_beyond", "back", "one_run", "one_run_in_order")


@dataclass(frozen=True)
class ToleranceOptions(Uncertain, AnswerOptions):
    """Options of ``retrompi tolerance``."""

    add: str | None = option("Add to the value of this key, e.g. platform.link.latency.", metavar="KEY")
    change: str | None = option("Multiply the value of this key; a rate is divided unless --up-to is given.", metavar="KEY")
    up_to: str | None = option("Largest value to try (default: 65536 times the value).", metavar="VALUE")
    down_to: str | None = option("Decrease the key, down to this value at most (default: the value over 65536).", metavar="VALUE")
    slower: str = option("Acceptable slow-downs, e.g. 1%,2%,5%.", default="5%", metavar="SHARE[,SHARE]")
    one_run: bool = option("Show beside the search what the critical path of the base run alone says (docs/why.md); for the metric time.")
    tolerance: str = option("Relative width of a narrow interval: when that of the answer is narrow enough.", default="1%", metavar="SHARE")


@click.command()
@scenario_argument
@options(given=ToleranceOptions, output=RunOutput)
def command(scenario: str, given: ToleranceOptions, output: RunOutput) -> None:
    """Find how far a latency, or any other number, can change before a scenario slows down.

    The key moves away from its value by doublings until the metric is worse by --slower, and somewhat further to see whether it
    recovers; then the interval is bisected. Both of its ends were simulated. The slope near the value is a finite difference: for a
    latency it is the number of latencies on the critical path.

    \b
    Examples:
      retrompi tolerance bf-wmpi-distributed --add platform.link.latency --slower 1%,5%
      retrompi tolerance bf-wmpi-distributed --change platform.link.bandwidth --metric time@64KiB
    """
    from retrompi.api.answering import metric_of
    from retrompi.api.tolerance import tolerance_of
    from retrompi.sim.cautions import mark

    spec = given.spec()
    base = the_scenario(scenario, given.sets)
    shares = [share("--slower", part) for part in given.slower.split(",")]
    told = tolerance_of(
        base, metric_of(given.metric, "time", base), (given.add, given.change, given.up_to, given.down_to),
        asking_of("tolerance", given, output), shares=shares, width=share("--tolerance", given.tolerance), one_run=given.one_run, spec=spec,
    )
    warnings = note_warnings(told.warnings)
    if output.as_json:
        certain = {} if spec is None else {"level": spec.level, "draws": spec.draws, "certain": [d.row() for d in told.drawn]}
        print_json({**as_object(told, warnings), **certain})
    elif output.as_csv:
        print_csv(told.rows, KEYS)
    else:
        _print(told.found, told.metric, told.scenario, told.alone, mark(told.warnings))
        for d in told.drawn:
            say(_certain(d, told.found.way))


def _certain(d: Distance, way: SearchRange) -> str:
    """An answer over the draws, in words."""
    odd = [(d.never, "never"), (d.ends, "it stops completing before"), (d.none, "the base has no number")]
    rest = "".join(f"; in {n} {what}" for n, what in odd if n)
    share_text = f"{100 * d.slower:g} %: in"
    if d.value is None:
        return f"{share_text} 0 of {d.draws} draws{rest}"
    low, middle, high = (_short(way, x) for x in (d.value.low, d.value.median, d.value.high))
    return f"{share_text} {d.reached} of {d.draws} draws at {middle}, {low} to {high} ({percent(d.value.level)} of these draws){rest}"


def as_object(told: Tolerance, warnings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The result as JSON values."""
    found = told.found
    runs, simulated = found.counts
    return {
        "scenario": told.scenario.name, "metric": told.metric.name, "unit": told.unit, "key": found.way.scale.key, "base": found.way.base,
        "at_base": found.base.value, "run": found.base.run_id, "answers": told.rows, "slope": found.slope, "elasticity": found.elasticity,
        "monotonic": found.monotonic, "points": told.points, "runs": runs, "simulated": simulated, "warnings": list(warnings),
    }


def _short(way: SearchRange, x: float | None) -> str:
    """A value of the key with four digits."""
    if x is None or not math.isfinite(x) or x < 0:
        return ""
    if way.scale.whole:
        return way.scale.text(x)
    four = replace(way.scale, digits=4, larger="").text(x)
    # A time gets a readable unit; a rate keeps the unit given by the user.
    return format_quantity(x, way.scale.unit) if canonical(way.scale.unit) == "s" or "e" in four else four


def _print(found: Found, metric: Metric, base: Scenario, alone: Mapping[float, Tolerated], mark: str) -> None:
    way = found.way
    key = way.scale.key
    at = f"{key} is {_short(way, way.base)}"
    say(f"{metric.label} of {base.name}: {metric.show(found.base.value)}\nwhere {at} (run {found.base.run_id}){mark}\n")
    rows = []
    for a in found.answers:
        row = {"slower": f"{100 * a.slower:g} %", "low": _short(way, a.low.x), "m_low": metric.show(a.low.reading.value), "high": "never"}
        if a.high is not None:
            row |= {"high": _short(way, a.high.x), "m_high": metric.show(a.high.reading.value) or a.high.reading.outcome}
        if (one := alone.get(a.slower)) is not None:
            row["one"] = "never" if one.value is None else f"{_short(way, one.value)}{'' if one.in_range else ' or before'}"
        rows.append({**row, "slope": _short(way, a.by_slope), "runs": _runs(a)})
    columns = [
        Column("slower", "worse by", right=True), Column("low", "not yet at", right=True), Column("m_low", metric.name, right=True),
        Column("high", "but at", right=True), Column("m_high", metric.name, right=True), Column("slope", "by slope", right=True),
        *([Column("one", "by one run", right=True)] if alone else []), Column("runs", "runs", right=True),
    ]
    print_table(rows, columns)
    say()
    for a in found.answers:
        for line in _sentences(a, found):
            say(line)
    for line in _slope(found, metric):
        say(line)
    for near, far in found.falls:
        say(f"not monotonic: from {_short(way, near.x)} to {_short(way, far.x)} it gets better, "
                   f"{metric.show(near.reading.value)} to {metric.show(far.reading.value)}")
    say(count_line(found.counts))


def _runs(a: ToleranceAnswer) -> str:
    return ", ".join(str(p.reading.run_id) for p in (a.low, a.high) if p is not None and p.reading.run_id is not None)


def _sentences(a: ToleranceAnswer, found: Found) -> list[str]:
    way, share_text = found.way, f"{100 * a.slower:g} %"
    if a.status == "never":
        worse = f"{100 * (a.low.worse or 0):.3g} % worse there"
        return [f"{share_text}: never within {_short(way, a.low.x)}, the farthest that was tried ({worse})"]
    assert a.high is not None
    if a.status == "ends":
        return [f"{share_text}: not reached; between {_short(way, a.low.x)} and {_short(way, a.high.x)} it stops completing: "
                f"{a.high.reading.outcome_text()}"]
    lines = [f"{share_text}: at {_short(way, a.estimate)}{_distance_text(way, a.estimate, a.high)}"]
    if a.back:
        lines.append(f"{share_text}: within again at {', '.join(_short(way, p.x) for p in a.back)}")
    return lines


def _distance_text(way: SearchRange, estimate: float | None, high: TriedValue) -> str:
    """The distance of the key from its base value at an answer."""
    x = estimate if estimate is not None else high.x
    if way.by_factor:
        return f", {way.base / x:.3g} times less" if way.down else f", {x / way.base:.3g} times more"
    return f", {format_quantity(float(f'{x - way.base:.4g}'), way.scale.unit)} more"


def _slope(found: Found, metric: Metric) -> list[str]:
    if found.slope is None:
        return ["no slope: the run next to the base has no number"]
    key, way = found.way.scale.key, found.way
    if canonical(way.scale.unit) == "s" and metric.unit == "s":
        many = f"{found.slope:.0f}" if abs(found.slope) >= 100 else f"{found.slope:.4g}"
        lines = [f"slope: {many}, so many times is {key} on the critical path"]
        return [*lines, f"share: {100 * (found.elasticity or 0):.3g} % of {metric.name} is {key}"]
    if way.scale.whole:
        shown = ("-" if found.slope < 0 else "+") + metric.show(abs(found.slope))
        return [f"slope: {shown} for one more of {key}"]
    return [f"slope: 1 % more of {key} is {found.elasticity or 0:+.3g} % of {metric.name}"]
