"""``retrompi tolerance``: how far one key can move until a metric is worse by a given share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import canonical, format_quantity
from retrompi.cli.answers import AnswerOptions, asking, count_line, metric_for, note_search, scenario_argument, the_scenario
from retrompi.cli.bundle import option, options
from retrompi.cli.draws import percent
from retrompi.cli.options import RunOutput, Uncertain, share
from retrompi.cli.output import Column, print_csv, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.studies.certainty import Distance
    from retrompi.studies.metrics import Metric
    from retrompi.studies.reading import Asker
    from retrompi.studies.scenario import Scenario
    from retrompi.studies.sensitivity import Tolerated
    from retrompi.studies.tolerance import Answer, Place, Tolerance, Way
    from retrompi.studies.uncertainty import Spec

KEYS = ("slower", "status", "within", "within_text", "beyond", "beyond_text", "estimate", "by_slope", "metric_within", "metric_beyond",
        "unit", "run_within", "run_beyond", "outcome_beyond", "back", "one_run", "one_run_in_order")  # fmt: skip
FARTHEST = 2.0**16
"""Default limit, as a factor of the base."""
NOTHING: Mapping[float, Tolerated] = {}
_FALLING = ("B/s", "Hz", "flop/s")


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
    from retrompi.studies import case
    from retrompi.studies.applies import refuse_idle
    from retrompi.studies.tolerance import tolerance as search

    spec = given.spec()
    base = the_scenario(scenario, given.sets)
    way = _way(base, given.add, given.change, given.up_to, given.down_to)
    shares = [share("--slower", part) for part in given.slower.split(",")]
    wanted = metric_for(given.metric, "time", base)
    if given.one_run and wanted.name != "time":
        raise UsageError(f"--one-run is about the time of the run, not about {wanted.name}", code="conflicting-options")
    far = case.apply(base, {way.scale.key: way.scale.text(way.value(way.limit))})
    case.identity(far)
    refuse_idle(far)
    with asking("tolerance", base, wanted, given, output, expected=40) as ask:
        (start,) = ask([{}])

        def evaluate(values: Sequence[float]) -> Sequence[Any]:
            return ask([{way.scale.key: way.scale.text(x)} for x in values])

        width = share("--tolerance", given.tolerance)
        found = search(evaluate, way, start, slower=shares, more_is_better=wanted.more_is_better, width=width)
        drawn = [] if spec is None else _drawn(ask, spec, way, shares, width)
        warnings, mark = note_search(ask, [base, far], spec)
    alone = _alone(base, way, shares) if given.one_run else {}
    if output.as_json:
        certain = {} if spec is None else {"level": spec.level, "draws": spec.draws, "certain": [d.row() for d in drawn]}
        print_json({**as_object(found, wanted, base, warnings, alone), **certain})
    elif output.as_csv:
        print_csv([_row(a, wanted, alone.get(a.slower)) for a in found.answers], KEYS)
    else:
        _print(found, wanted, base, alone, mark)
        for d in drawn:
            say(_certain(d, way))


def _alone(base: Scenario, way: Way, shares: Sequence[float]) -> dict[float, Tolerated]:
    """What the record of the base run says, by share."""
    from retrompi.sim import simulate
    from retrompi.sim.observe import Observe
    from retrompi.studies.sensitivity import tolerated

    result = simulate.run(base.question(), Observe(critical_path=True))
    simulate.require_completed(result, base.name)
    return {t.slower: t for t in tolerated(base, result.recorded_path, way.scale.key, tuple(shares), down=way.down)}


def _drawn(ask: Asker, spec: Spec, way: Way, shares: Sequence[float], width: float) -> list[Distance]:
    """The search in each draw; the key's own value is the given one in all of them."""
    from retrompi.studies.certainty import WIDTH, DrawnAsker, distances, together
    from retrompi.studies.tolerance import tolerance as search

    asker = DrawnAsker.like(ask, spec)

    def one(at: Callable[[Sequence[Any]], Sequence[Any]]) -> Tolerance:
        def evaluate(values: Sequence[float]) -> Sequence[Any]:
            return at([{way.scale.key: way.scale.text(x)} for x in values])

        (start,) = evaluate([way.base])
        return search(evaluate, way, start, slower=shares, more_is_better=ask.metric.more_is_better, width=max(width, WIDTH))

    return distances(together([one] * spec.draws, asker), shares, spec.level)


def _certain(d: Distance, way: Way) -> str:
    """An answer over the draws, in words."""
    odd = [(d.never, "never"), (d.ends, "it stops completing before"), (d.none, "the base has no number")]
    rest = "".join(f"; in {n} {what}" for n, what in odd if n)
    share_text = f"{100 * d.slower:g} %: in"
    if d.value is None:
        return f"{share_text} 0 of {d.draws} draws{rest}"
    low, middle, high = (_short(way, x) for x in (d.value.low, d.value.median, d.value.high))
    return f"{share_text} {d.reached} of {d.draws} draws at {middle}, {low} to {high} ({percent(d.value.level)} of these draws){rest}"


def _way(base: Scenario, add: str | None, change: str | None, up_to: str | None, down_to: str | None) -> Way:
    """The search range given by the options; UsageError in one line if they are inconsistent."""
    from retrompi.studies.keys import number
    from retrompi.studies.scale import scale_of
    from retrompi.studies.tolerance import Way

    if (add is None) == (change is None):
        raise UsageError(
            "give the key to change: --add KEY adds to its value, --change KEY multiplies or divides it", code="missing-option"
        )
    if up_to is not None and down_to is not None:
        raise UsageError("--up-to and --down-to are mutually exclusive", code="conflicting-options")
    if add is not None and down_to is not None:
        raise UsageError("--add increases the key; to decrease it use --change KEY --down-to VALUE", code="bad-range")
    key = number(base, str(add or change))
    if key.value is None:
        raise UsageError(f"'{key.name}' has no initial value in '{base.name}'; give one with --set {key.name}=VALUE", code="bad-range")
    limit_text = up_to if up_to is not None else down_to
    down = down_to is not None or (change is not None and up_to is None and canonical(key.unit) in _FALLING)
    texts = [key.text] if limit_text is None else [limit_text]
    scale, values = scale_of(key.name, key.unit, texts, whole=key.whole, log=False)
    scale = type(scale)(scale.key, scale.unit, scale.spelling, scale.whole, False, 9)
    limit = values[0] if limit_text is not None else None
    if key.value <= 0 and (change is not None or limit is None):
        raise UsageError(f"'{key.name}' is 0: use --add {key.name} with a largest value in --up-to", code="bad-range")
    if limit is None:
        limit = key.value / FARTHEST if down else key.value * FARTHEST
        if key.whole:
            limit = max(1.0, key.value / 64) if down else key.value * 64
    if limit == key.value or (limit > key.value) == down:
        word = "below" if down else "above"
        raise UsageError(f"'{key.name}' is {key.text}; give a value {word} it", code="bad-range")
    if change is not None:
        return Way(scale, key.value, 2.0, key.value / limit if down else limit / key.value, by_factor=True, down=down)
    first = 1.0 if key.whole else key.value / 8 if key.value > 0 else limit / 1024
    return Way(scale, key.value, first, limit - key.value)


def _row(a: Answer, metric: Metric, alone: Tolerated | None = None) -> dict[str, Any]:
    high = a.high
    more = {} if alone is None else {"one_run": alone.value, "one_run_in_order": alone.in_range}
    return {
        "slower": a.slower, "status": a.status, "within": a.low.x, "within_text": a.low.text, "beyond": high.x if high else None,
        "beyond_text": high.text if high else None, "estimate": a.estimate, "by_slope": a.by_slope, "metric_within": a.low.reading.value,
        "metric_beyond": high.reading.value if high else None, "unit": metric.unit, "run_within": a.low.reading.run_id,
        "run_beyond": high.reading.run_id if high else None, "outcome_beyond": high.reading.outcome if high else None,
        "back": [p.text for p in a.back], **more,
    }  # fmt: skip


def as_object(
    found: Tolerance, metric: Metric, base: Scenario, warnings: Sequence[Mapping[str, Any]], alone: Mapping[float, Tolerated] = NOTHING
) -> dict[str, Any]:
    """The result as JSON values."""
    runs, simulated = found.counts
    places = [
        {"value": p.x, "text": p.text, "metric": p.reading.value, "worse": p.worse, "outcome": p.reading.outcome, "run": p.reading.run_id}
        for p in found.places
    ]  # fmt: skip
    return {
        "scenario": base.name, "metric": metric.name, "unit": metric.unit, "key": found.way.scale.key, "base": found.way.base,
        "at_base": found.base.value, "run": found.base.run_id, "answers": [_row(a, metric, alone.get(a.slower)) for a in found.answers],
        "slope": found.slope,
        "elasticity": found.elasticity, "monotonic": found.monotonic, "points": places, "runs": runs, "simulated": simulated,
        "warnings": list(warnings),
    }  # fmt: skip


def _short(way: Way, x: float | None) -> str:
    """A value of the key with four digits."""
    if x is None or not math.isfinite(x) or x < 0:
        return ""
    if way.scale.whole:
        return way.scale.text(x)
    four = type(way.scale)(way.scale.key, way.scale.unit, way.scale.spelling, digits=4).text(x)
    # A time gets a readable unit; a rate keeps the unit given by the user.
    return format_quantity(x, way.scale.unit) if canonical(way.scale.unit) == "s" or "e" in four else four


def _print(found: Tolerance, metric: Metric, base: Scenario, alone: Mapping[float, Tolerated], mark: str) -> None:
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
    ]  # fmt: skip
    print_table(rows, columns)
    say()
    for a in found.answers:
        for line in _sentences(a, found):
            say(line)
    for line in _slope(found, metric):
        say(line)
    for near, far in found.falls:
        say(f"not monotonic: from {_short(way, near.x)} to {_short(way, far.x)} it gets better, "
                   f"{metric.show(near.reading.value)} to {metric.show(far.reading.value)}")  # fmt: skip
    say(count_line(found.counts))


def _runs(a: Answer) -> str:
    return ", ".join(str(p.reading.run_id) for p in (a.low, a.high) if p is not None and p.reading.run_id is not None)


def _sentences(a: Answer, found: Tolerance) -> list[str]:
    way, share_text = found.way, f"{100 * a.slower:g} %"
    if a.status == "never":
        worse = f"{100 * (a.low.worse or 0):.3g} % worse there"
        return [f"{share_text}: never within {_short(way, a.low.x)}, the farthest that was tried ({worse})"]
    assert a.high is not None
    if a.status == "ends":
        return [f"{share_text}: not reached; between {_short(way, a.low.x)} and {_short(way, a.high.x)} it stops completing: "
                f"{a.high.reading.told()}"]  # fmt: skip
    lines = [f"{share_text}: at {_short(way, a.estimate)}{_moved(way, a.estimate, a.high)}"]
    if a.back:
        lines.append(f"{share_text}: within again at {', '.join(_short(way, p.x) for p in a.back)}")
    return lines


def _moved(way: Way, estimate: float | None, high: Place) -> str:
    """The distance of the key from its base value at an answer."""
    x = estimate if estimate is not None else high.x
    if way.by_factor:
        return f", {way.base / x:.3g} times less" if way.down else f", {x / way.base:.3g} times more"
    return f", {format_quantity(float(f'{x - way.base:.4g}'), way.scale.unit)} more"


def _slope(found: Tolerance, metric: Metric) -> list[str]:
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
