"""``retrompi fit``: fits a model to a measured curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from retrompi.base.units import format_bytes, format_rate, format_time
from retrompi.cli.bundle import option, options
from retrompi.cli.measured import MeasuredOptions
from retrompi.cli.options import StoreOutput, complete_model, complete_platform, output_option
from retrompi.cli.output import Column, Output, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.measure.curves import Measured
    from retrompi.measure.fit.make import FittedFiles, PairFit
    from retrompi.measure.fit.segments import SegmentFit


def _unknown(interval: Sequence[float]) -> bool:
    """Whether too few sizes were left to say how uncertain a value is: any latency, or any rate at all."""
    return math.isinf(interval[1]) and (math.isinf(interval[0]) or interval[0] <= 0)


def number_chosen(fit: SegmentFit) -> str:
    """Why a fit has its number of segments, and the noise that it left, as far as both can be known."""
    count = f"{len(fit.segments)} segment{'s' if len(fit.segments) > 1 else ''}"
    finite = {k: v for k, v in fit.criterion.items() if math.isfinite(v)}
    if not finite:
        return f"{count} as asked: too few sizes for a criterion, and for an estimate of the noise"
    others = ", ".join(f"{k}: {v:.1f}" for k, v in sorted(finite.items(), key=lambda kv: kv[1])[:3])
    verb = "minimise" if len(fit.segments) > 1 else "minimises"
    how = f"{verb} the criterion" if len(fit.criterion) > 1 else "as asked; criterion"
    return f"{count} {how} ({others}); noise of a time {fit.noise:.2%}"


def _interval(show: Callable[[float], str]) -> Callable[[Sequence[float]], str]:
    return lambda v: "unknown" if _unknown(v) else f"{show(v[0])} .. {'no limit' if math.isinf(v[1]) else show(v[1])}"


SEGMENTS = (
    Column("pair", "pair"),
    Column("low_B", "from", lambda v: format_bytes(v), right=True),
    Column("high_B", "below", lambda v: "" if v is None else format_bytes(v), right=True),
    Column("latency_s", "latency", lambda v: format_time(v), right=True),
    Column("latency_interval_s", "interval", _interval(format_time)),
    Column("rate_Bps", "rate", lambda v: "any" if math.isinf(v) else format_rate(v), right=True),
    Column("rate_interval_Bps", "interval", _interval(format_rate)),
    Column("points", "sizes", right=True),
)
THRESHOLDS = (
    Column("pair", "pair"),
    Column("size_B", "threshold", lambda v: format_bytes(v), right=True),
    Column("low_B", "lies in", lambda v: format_bytes(v), right=True),
    Column("high_B", "..", lambda v: format_bytes(v), right=True),
    Column("step", "step", lambda v: f"{v:+.1%}", right=True),
    Column("how", "how"),
)
RESIDUALS = (
    Column("pair", "pair"),
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    Column("measured_s", "measured", lambda v: format_time(v), right=True),
    Column("fitted_s", "fitted", lambda v: format_time(v), right=True),
    Column("error", "error", lambda v: f"{v:+.2%}", right=True),
    Column("seen", "seen by the fit", lambda v: "yes" if v else "held out"),
    Column("inside_threshold", "", lambda v: "in a threshold's interval" if v else ""),
)


@dataclass(frozen=True)
class FitOptions:
    """Options of ``retrompi fit``."""

    name: str | None = option("Name: of the model (default: made from the file's name).", metavar="NAME")
    pair: Literal["same", "remote"] = option("Whether the two ranks shared one host or ran on two.", default="same")
    remote: str | None = option("Curve between two hosts, to be fitted as well.", metavar="FILE|RUN|LABEL")
    thresholds: tuple[str, ...] = option(
        "Start a segment at this size, e.g. 64KiB; other thresholds are still searched for (repeatable).", "--threshold", metavar="SIZE")
    segments: int | None = option("Number of segments (default: chosen by the information criterion).", type=click.IntRange(1))
    max_segments: int = option("Maximum number of segments.", type=click.IntRange(1), default=12)
    eager_below: str | None = option("Smallest message sent by rendezvous (default: assumed at the largest step up).", metavar="SIZE")
    streams: tuple[str, ...] = option(
        "Bandwidth streams of the same pair: osu_bw, osu_bibw, osu_mbw_mr, Uniband, ... (repeatable).", "--stream", metavar="FILE")
    remote_streams: tuple[str, ...] = option("Bandwidth streams between two hosts (repeatable).", "--remote-stream", metavar="FILE")
    overhead: float = option(
        "Share of the time attributed to each end where it was not measured.", type=click.FloatRange(0, 0.5), default=0.25)
    hold_out: bool = option("Fit every second size only and judge the fit by the others.")
    without: tuple[str, ...] = option(
        "Exclude this size from the fit because its time is known to be wrong (repeatable).", "--leave-out", metavar="SIZE")
    level: float = option("Confidence level of the intervals.", type=click.FloatRange(0.5, 0.999), default=0.95)
    like: str | None = option(
        "Use this model's table of collective algorithms.", "--collectives-of", metavar="MODEL", shell_complete=complete_model)
    platform: str | None = option(
        "Platform: the one that the model belongs to (default: one is created).",
        "-p", "--platform", shell_complete=complete_platform, metavar="NAME|FILE")
    out: Path | None = output_option(
        "the folder in which the model's folder is made (default: your own models)", folder=True, metavar="FOLDER")


@click.command()
@click.argument("curve", metavar="FILE|RUN|LABEL")
@options(reading=MeasuredOptions, given=FitOptions, output=StoreOutput)
def command(curve: str, reading: MeasuredOptions, given: FitOptions, output: StoreOutput) -> None:
    """Fit a runnable model to a measured curve: segments, thresholds, residuals.

    The curve is a benchmark's output, a table (see 'retrompi measured import') or a stored curve. T = latency + size / rate holds
    piecewise; the number and positions of the thresholds are found, and can be fixed. The model is then available under its name.

    \b
    Examples:
      retrompi fit latency.txt --name mine
      retrompi fit latency.txt --name mine --remote remote.txt --threshold 64KiB
      retrompi fit np.out --name other --hold-out
    """
    from retrompi.base import units
    from retrompi.base.errors import UsageError
    from retrompi.measure.fit.make import fitted_curve, make, name_from
    from retrompi.spec import registry

    if given.remote is not None and given.pair == "remote":
        raise UsageError("--remote requires --pair same; with --pair remote the curve is the remote one", code="unused-option")
    if given.remote_streams and given.remote is None:
        raise UsageError("--remote-stream requires --remote; for streams of the curve itself use --stream", code="missing-option")
    pinned = [int(units.parse(t, "B")) for t in given.thresholds]
    left_out = [int(units.parse(t, "B")) for t in given.without]
    limit = None if given.eager_below is None else int(units.parse(given.eager_below, "B"))
    collectives = None if given.like is None else registry.model(given.like)
    whole = [(given.pair, curve, given.streams), *([("remote", given.remote, given.remote_streams)] if given.remote is not None else [])]
    found = []
    for kind, which, beside in whole:
        series = _curve(which, reading, output)
        found.append(
            fitted_curve(
                kind, series, thresholds=pinned, segments=given.segments, max_segments=given.max_segments, level=given.level,
                hold_out=given.hold_out, leave_out=left_out, eager_below=limit, overhead=given.overhead,
                streams=[s for f in beside for s in _streams(f)],
            )
        )
    chosen = given.name or name_from(curve if Path(curve).is_file() else found[0].measured.provenance.file)
    made = make(found, name=chosen, folder=given.out, platform=given.platform, collectives=collectives)
    _show(made, found, given, output)


def _curve(which: str, reading: MeasuredOptions, output: StoreOutput) -> Measured:
    from retrompi.measure.curves import read
    from retrompi.measure.curves.imported import series_of

    if Path(which).is_file() or "/" in which or "." in which:
        return read(which, reading.format_, **reading.about())
    return series_of(output.open(write=False), which)


def _streams(file: str) -> list[Measured]:
    from retrompi.base.errors import UsageError
    from retrompi.measure.curves import read_all

    found = [s for s in read_all(file) if s.what in ("bw", "bibw", "mbw_mr")]
    if not found:
        raise UsageError(f"{file} contains no bandwidth stream (bw, bibw, mbw_mr)")
    return found


def rows_of(curves: Sequence[PairFit]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the segments, the thresholds and the residuals of all curves."""
    segments = [{"pair": c.kind, **s.row(), "high_B": s.high} for c in curves for s in c.fit.segments]
    thresholds = [{"pair": c.kind, **t.row()} for c in curves for t in c.fit.thresholds]
    residuals = [{"pair": c.kind, **r.row()} for c in curves for r in sorted((*c.fit.residuals, *c.held), key=lambda r: r.size)]
    return segments, thresholds, residuals


def _show(made: FittedFiles, curves: Sequence[PairFit], given: FitOptions, output: Output) -> None:
    from retrompi.measure.fit.make import POOR, far_off, limit_text, summary

    for c in curves:
        if c.fit.noise > POOR:
            click.echo(
                f"warning: {c.kind}: the residual noise is {c.fit.noise:.0%} of a time: measuring more sizes would resolve more segments, "
                "or state what is known with --segments, --threshold or --leave-out",
                err=True,
            )
        for r in far_off(c):
            click.echo(
                f"warning: {c.kind}: {format_bytes(r.size)} took {format_time(r.measured_s)}, more than twice its neighbours: "
                f"a stall or a measurement error (--leave-out {r.size}B excludes it)",
                err=True,
            )

    segments, thresholds, residuals = rows_of(curves)
    told = {c.kind: {"seen": summary(c.fit.residuals), "held_out": summary(c.held)} for c in curves}
    eager = {c.kind: {"below_B": c.eager[0], "source": c.eager[1]} for c in curves}
    if output.as_csv:
        output.emit(residuals, RESIDUALS)
        return
    if output.as_json:
        choice = {c.kind: c.fit.choice() for c in curves}
        sources = {c.kind: c.parts.column_sources() for c in curves}
        print_json({
            "name": made.name, "folder": str(made.folder), "platform": made.platform,
            "platform_file": None if made.platform_file is None else str(made.platform_file),
            "segments": segments, "thresholds": thresholds,
            "residuals": residuals, "errors": told, "eager": eager, "choice": choice, "sources": sources,
        })
        return
    level = curves[0].fit.level
    say(f"T = latency + size / rate; intervals at {level:.0%}")
    print_table(segments, SEGMENTS)
    if thresholds:
        say("")
        print_table(thresholds, THRESHOLDS)
    say("")
    print_table(residuals, RESIDUALS)
    say("")
    for c in curves:
        say(f"{c.kind}: {number_chosen(c.fit)}")
        for what, errors in told[c.kind].items():
            if errors:
                shown = ", ".join(f"{k} {errors[v]:.2%}" for k, v in (("median", "median"), ("95th percentile", "p95"), ("worst", "worst")))
                say(f"{c.kind}: errors at sizes {what.replace('_', ' ')}: {shown}, mean {errors['mean']:+.2%}")
        say(f"{c.kind}: rendezvous from {limit_text(c.eager)} on ({c.eager[1]})")
        for part, source in c.parts.column_sources().items():
            say(f"{c.kind}: {part}: {source}")
    model = made.name if given.out is None else str(made.folder)
    platform = given.platform or (made.platform if given.out is None or made.platform_file is None else str(made.platform_file))
    mode = "distributed" if curves[0].kind == "remote" else "shared"
    say(f"\nmodel {made.name} in {made.folder}\nretrompi pingpong --model {model} --platform {platform} --mode {mode}")
