"""``retrompi tornado``: sensitivity of a metric to parameters, and what would make it more certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from retrompi.base.errors import UsageError
from retrompi.base.units import LARGEST_SEED
from retrompi.cli.answers import AnswerOptions, asking_of, count_line, scenario_argument, the_scenario
from retrompi.cli.bundle import option, options
from retrompi.cli.draws import draw, note_draws, percent
from retrompi.cli.options import RunOutput, Uncertain
from retrompi.cli.output import Column, note_warnings, print_csv, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.api.tornado import Tornado
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.draws.uncertainty import Ensemble
    from retrompi.studies.search.information import KnownQuantity
    from retrompi.studies.search.tornado import Bar, OneAtATime, Sobol
    from retrompi.studies.search.worth import Worth

OAT_KEYS = ("key", "base", "value", "metric", "change", "unit", "outcome", "reason", "run", "swing", "source")
INFORMATION_KEYS = ("kind", "name", "share", "error", "resolved", "rank_low", "rank_high", "with_those_before", "left", "measurement",
                    "measurement_share")
SOBOL_KEYS = ("key", "with", "index", "value", "conf", "range", "source")


@dataclass(frozen=True)
class TornadoOptions(Uncertain, AnswerOptions):
    """Options of ``retrompi tornado``."""

    vary: tuple[str, ...] = option(
        "Axis: a parameter and its values, LOW..HIGH, LOW..HIGH:log or a list (default: all with a sourced range).", metavar="KEY=VALUES")
    method: Literal["oat", "sobol"] = option("Vary one parameter at a time, or compute Sobol indices.", default="oat")
    samples: int = option("Number of blocks in the Sobol sample, a power of two.", type=click.IntRange(2), default=64)
    seed: int = option("Seed of the sample: of --method sobol.", "--sample-seed", type=click.IntRange(0, LARGEST_SEED), default=1)
    second: bool = option("Also compute second-order Sobol indices; doubles the number of runs.")
    incomplete: Literal["refuse", "drop"] = option("With sobol: treatment of runs that do not complete.", default="refuse")
    measure: tuple[str, ...] = option(
        "With --uncertainty: a measurement that could be made, as a metric of this scenario or of another one (repeatable; default: a "
        "PingPong on the same machine).", metavar="[SCENARIO:]METRIC")


@click.command()
@scenario_argument
@options(given=TornadoOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, scenario: str, given: TornadoOptions, output: RunOutput) -> None:
    """Find which parameters matter: one at a time over its range, or by Sobol indices.

    Without --vary, every parameter of the model and the platform that the run uses and that has a sourced range is moved to both
    ends of it. One at a time shows no interactions. Sobol indices draw all keys independently (from a list with equal probability)
    and need 'retrompi[sensitivity]'. Runs that do not complete are reported; --sample-seed seeds the Sobol sample.

    With --uncertainty, all of them are drawn together, from what the calibrations left of their ranges, and the answer is what would
    make the metric more certain: by how much its variance would fall if a parameter, or a measurement, were known. What the draws
    do not resolve is not ranked.

    \b
    Examples:
      retrompi tornado bf-wmpi-shared --vary wmpi.packet=64KiB..256KiB --metric time@1MiB
      retrompi tornado bf-wmpi-shared --method sobol --samples 64 --vary wmpi.packet=64KiB..256KiB --vary wmpi.library=5us..90us
      retrompi tornado bf-wmpi-shared --metric time@1MiB --uncertainty 90%
    """
    from retrompi.api.answering import metric_of
    from retrompi.api.tornado import factors_of, information_of, one_at_a_time_of, sobol_of

    spec = given.spec()
    refused = [o for o in ("vary", "method", "samples", "seed", "second", "incomplete") if _is_given(ctx, o)] if spec is not None else []
    if refused:
        shown = "--sample-seed" if refused[0] == "seed" else f"--{refused[0]}"
        raise UsageError(f"--uncertainty draws all that is uncertain; {shown} does not apply then", code="conflicting-options")
    if spec is None and given.measure:
        raise UsageError("--measure applies only with --uncertainty", code="unused-option")
    base = the_scenario(scenario, given.sets)
    wanted = metric_of(given.metric, "time", base)
    if spec is not None:
        _tell_information(information_of(base, wanted, given.measure, lambda asked: draw(output.open(), asked, spec, output.fresh)), output)
        return
    factors, asking = factors_of(base, _parse_vary(given.vary)), asking_of("tornado", given, output)
    if given.method == "sobol":
        _tell_sobol(sobol_of(base, wanted, factors, asking, samples=given.samples, seed=given.seed, second=given.second,
                             incomplete=given.incomplete), given, output)
    else:
        _tell_oat(one_at_a_time_of(base, wanted, factors, asking), output)


def _parse_vary(vary: Sequence[str]) -> dict[str, str]:
    """Key -> values of the options ``--vary``. UsageError for one that is not KEY=VALUES, or a key that is given twice."""
    found: dict[str, str] = {}
    for item in vary:
        key, equals, text = item.partition("=")
        if not equals or not key.strip() or not text.strip():
            raise UsageError(f"'--vary {item}' is not KEY=VALUES; example: --vary wmpi.packet=64KiB..256KiB", code="bad-syntax")
        if key.strip() in found:
            raise UsageError(f"'{key.strip()}' varies twice", code="duplicate-name")
        found[key.strip()] = text
    return found


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def _tell_information(told: Tornado, output: RunOutput) -> None:
    """Prints which knowledge would make the metric more certain."""
    from retrompi.sim.cautions import mark
    from retrompi.studies.search.worth import Worth

    found, drawn, wanted = told.found, told.drawn, told.metric
    assert isinstance(found, Worth)
    assert drawn is not None
    warnings = note_warnings(told.warnings)
    if output.as_json:
        n = found.number
        print_json(
            {"scenario": told.scenario.name, "metric": wanted.name, "unit": wanted.unit, "method": told.method, "level": drawn.spec.level,
             "draws": drawn.spec.draws, "completed": n.completed, "low": n.low, "median": n.median, "high": n.high,
             "below": found.parameters.below, "rows": told.rows, "warnings": warnings}
        )
    elif output.as_csv:
        print_csv(told.rows, INFORMATION_KEYS)
    else:
        _print_information(found, wanted, told.scenario, drawn, mark(told.warnings))
    note_draws([drawn])


def _print_information(found: Worth, metric: Metric, base: Scenario, drawn: Ensemble, mark: str) -> None:
    n, p = found.number, found.parameters
    say(f"{metric.label} of {base.name}: {metric.show(n.low)} to {metric.show(n.high)} in {percent(n.level)} of "
        f"{round(n.completed * drawn.spec.draws)} draws, median {metric.show(n.median)}{mark}\n")
    then = {s.name: s.share for s in p.steps}
    items = {i.name: i for i in p.items}
    rows = []
    for name in found.matter:
        i, by = items[name], found.by.get(name)
        rows.append({
            "name": name, "alone": _share_of(i), "rank": _rank(i), "then": f"{then[name]:.0%}" if name in then else "",
            "left": f"{found.left[name]:.0%}" if name in found.left else "",
            "by": f"{by.name} ({by.share:.0%})" if by is not None else "",
        })
    say("by how much its variance would fall, if known")
    columns = [Column("name", "parameter"), Column("rank", "rank", right=True), Column("alone", "alone", right=True),
               Column("then", "with those above", right=True), Column("left", "of its range is left", right=True),
               Column("by", "what tells most about it")]
    print_table(rows, columns, empty="nothing that these draws resolve")
    rest = [i.name for i in p.items if i.name not in found.matter]
    if rest:
        say(f"not resolved by {p.draws} draws, each below {p.below:.0%}: {len(rest)} more (--json has all)")
    m = found.measurements
    if m is not None:
        say("\nby how much it would fall, if measured on this system")
        shown = [{"name": i.name, "alone": _share_of(i), "rank": _rank(i)} for i in m.resolved]
        print_table(shown, [Column("name", "measurement"), Column("rank", "rank", right=True), Column("alone", "alone", right=True)],
                    empty="nothing that these draws resolve")
        if len(m.resolved) < len(m.items):
            say(f"not resolved, each below {m.below:.0%}: {', '.join(i.name for i in m.items if not i.resolved)}")
    runs = sum(r is not None for r in drawn.run_ids)
    say(f"\n{count_line((runs, runs - drawn.found))}")


def _share_of(i: KnownQuantity) -> str:
    return f"{i.share:.0%} ± {i.error:.0%}"


def _rank(i: KnownQuantity) -> str:
    low, high = i.ranks
    return "" if not low else str(low) if low == high else f"{low}-{high}"


def _tell_oat(told: Tornado, output: RunOutput) -> None:
    """One key at a time."""
    from retrompi.sim.cautions import mark
    from retrompi.studies.search.tornado import OneAtATime

    found, metric = told.found, told.metric
    assert isinstance(found, OneAtATime)
    warnings = note_warnings(told.warnings)
    if output.as_json:
        runs, simulated = found.counts
        print_json(
            {"scenario": told.scenario.name, "metric": metric.name, "unit": metric.unit, "method": told.method, "base": told.base,
             "run": found.base.run_id, "rows": told.rows, "runs": runs, "simulated": simulated, "warnings": warnings}
        )
    elif output.as_csv:
        print_csv(told.rows, OAT_KEYS)
    else:
        _print_oat(found, metric, told.scenario, mark(told.warnings))


def _percent(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 1:
        return f"x{1 + value:.3g}"
    return "0 %" if round(100 * value, 9) == 0 else f"{100 * value:+.3g} %"


def _print_oat(found: OneAtATime, metric: Metric, base: Scenario, mark: str) -> None:
    from retrompi.api.tornado import range_of

    say(f"{metric.label} of {base.name}: {metric.show(found.base.value)} (run {found.base.run_id}), one key at a time{mark}\n")
    moved = [b for b in found.bars if b.swing]
    rows = [row for b in moved for row in _bar_rows(found, b, metric)]
    ranges = any(b.factor.span is not None for b in moved)
    low = [Column("low", "at low", right=True)] if ranges else []
    high = Column("high", "at high" if ranges else "change", right=True)
    columns = [Column("key", "key"), *low, high, Column("swing", "swing", right=True)]
    print_table(rows, columns, empty="nothing that varies changes it")
    still = [b.factor.key for b in found.bars if b.swing == 0]
    if still:
        say("\n" + click.wrap_text(f"without effect: {', '.join(still)}", 80, "", "  "))
    for bar in found.bars:
        for text, r in bar.ended:
            say(f"no number at {bar.factor.key}={text}: {r.outcome_text()}")
    if moved:
        say("\nranges, values now, and where the ranges are from")
        for b in moved:
            told = [f"{range_of(b.factor)}, now {b.factor.base or 'not set'}", b.factor.source]
            say(f"  {b.factor.key}: {'; '.join(t for t in told if t)}")
    say(f"\n{count_line(found.counts)}")


def _bar_rows(found: OneAtATime, bar: Bar, metric: Metric) -> list[dict[str, Any]]:
    """One row for a range; one for each value of a list."""
    from retrompi.api.tornado import change_of

    changes = [_percent(change_of(found, r.value)) or r.outcome for r in bar.readings]
    swing = metric.show(bar.swing)
    if bar.factor.span is not None:
        return [{"key": bar.factor.key, "low": changes[0], "high": changes[1], "swing": swing}]
    return [
        {"key": f"{bar.factor.key}={text}", "low": "", "high": change, "swing": swing if i == 0 else ""}
        for i, (text, change) in enumerate(zip(bar.factor.ends, changes, strict=True))
    ]


def _tell_sobol(told: Tornado, given: TornadoOptions, output: RunOutput) -> None:
    """Sobol indices."""
    from retrompi.sim.cautions import mark
    from retrompi.studies.search.tornado import CONFIDENCE, Sobol

    found, metric = told.found, told.metric
    assert isinstance(found, Sobol)
    warnings = note_warnings(told.warnings)
    if output.as_json:
        runs, simulated = found.counts
        ended = [{**p, "outcome": r.outcome, "reason": r.reason, "run": r.run_id} for p, r in found.ended]
        print_json(
            {"scenario": told.scenario.name, "metric": metric.name, "unit": metric.unit, "method": told.method, "samples": found.samples,
             "seed": given.seed, "confidence": CONFIDENCE, "values": dict(found.values), "rows": told.rows, "dropped": found.dropped,
             "ended": ended, "runs": runs, "simulated": simulated, "warnings": warnings}
        )
    elif output.as_csv:
        print_csv(told.rows, SOBOL_KEYS)
    else:
        _print_sobol(found, metric, told.scenario, CONFIDENCE, mark(told.warnings))


def _three(value: float) -> str:
    """Three digits, without a sign for zero."""
    return f"{round(value, 3) + 0.0:.3f}"


def _print_sobol(found: Sobol, metric: Metric, base: Scenario, confidence: float, mark: str) -> None:
    from retrompi.api.tornado import range_of

    shown: Mapping[str, str] = {k: metric.show(v) for k, v in found.values.items()}
    say(f"{metric.label} of {base.name}{mark}\nmean {shown['mean']}, deviation {shown['deviation']}, "
               f"{shown['least']} to {shown['most']}\n")
    rows = [
        {"key": i.factor.key, "range": range_of(i.factor), "first": f"{_three(i.first)} ± {i.first_conf:.3f}",
         "total": f"{_three(i.total)} ± {i.total_conf:.3f}"}
        for i in found.indices
    ]
    columns = [Column("key", "key"), Column("range", "drawn from"), Column("first", f"alone ± {confidence:.0%}", right=True),
               Column("total", "with interactions", right=True)]
    print_table(rows, columns)
    known = sum(i.first for i in found.indices)
    rest = "the rest is interactions, or the\nsample's own error"
    if known > 1.05:  # impossible for a share of the variance
        rest = "more than the whole is the\nsample's own error: take more --samples"
    say(f"\nalone they sum to {known:.2f} of the variance; {rest}")
    if found.seconds:
        say("\ninteractions of two keys")
        pairs = [{"a": s.a, "b": s.b, "index": f"{_three(s.index)} ± {s.conf:.3f}"} for s in found.seconds[:12]]
        print_table(pairs, [Column("a", "key"), Column("b", "and"), Column("index", "together", right=True)])
    if found.dropped:
        first = found.ended[0]
        where = ", ".join(f"{k}={v}" for k, v in first[0].items())
        say(f"\n{found.dropped} of {found.samples} blocks left out: {len(found.ended)} runs have no number, the first at {where}: "
                   f"{first[1].outcome_text()}; the indices are those of the rest")
    say(count_line(found.counts))
