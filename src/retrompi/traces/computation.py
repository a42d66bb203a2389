"""The scale of a trace's computation: the rate at which the seconds of the recording machine were counted as operations.

Amounts of `compute` are operations. A recorder measures seconds, so a recorded trace states its rate, in marks of rank 0 that stand for
the whole trace (docs/trace-format.md)::

    # mark about rate 4439000000 flop/s
    # mark about rate-source measured: mean of the maxima of the 17 Rinf1 loops on ...

Being marks, they are kept by everything that keeps a trace. A trace without them states operations, or nanoseconds of an unknown machine:
nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.base.units import format_quantity, parse

from .errors import TraceError

__all__ = ["NOMINAL", "Rate", "at_rate", "keep_marks", "mark_mixed", "mixed_rates", "rate_of", "with_rate"]

NOMINAL = 1e9
"""The rate (flop/s) that counts a second where none is known: an amount is then a nanosecond."""
_ABOUT = "about "
_RATE, _SOURCE, _MIXED = "about rate ", "about rate-source ", "about rates "
_UNKNOWN = "nominal"


@dataclass(frozen=True)
class Rate:
    """``flops``: what a second of the recording machine counts as (flop/s); ``source``: where that number comes from."""

    flops: float
    source: str

    @property
    def known(self) -> bool:
        """Whether it is the rate of the recording machine, and not only the unit in which its seconds are written."""
        return not self.source.startswith(_UNKNOWN)

    def labels(self) -> list[str]:
        """As labels of marks."""
        return [f"{_RATE}{self.flops:.12g} flop/s", _SOURCE + " ".join(self.source.split())]

    def __str__(self) -> str:
        return format_quantity(self.flops, "flop/s")


def rate_of(trace: Trace) -> Rate | None:
    """The rate that a trace states; None for one that states none, or several. Raises TraceError for one that is no rate."""
    stated = [x for x in trace.labels if x.startswith(_RATE)]
    if not stated or mixed_rates(trace):
        return None
    text = stated[0].removeprefix(_RATE)
    try:
        flops = parse(text, "flop/s")
    except UsageError as error:
        raise TraceError(f"its mark '{stated[0]}': {error}", trace.files[0], code=error.code) from None
    if not flops > 0:
        raise TraceError(f"its mark '{stated[0]}': a rate must be above zero", trace.files[0], code="out-of-range")
    sources = [x.removeprefix(_SOURCE) for x in trace.labels if x.startswith(_SOURCE)]
    return Rate(flops, " and ".join(sources) or "stated by the trace")


def mixed_rates(trace: Trace) -> str:
    """The rates of a trace that was merged from recordings at different ones; empty for any other."""
    told = [x.removeprefix(_MIXED) for x in trace.labels if x.startswith(_MIXED)]
    rates = [x.removeprefix(_RATE) for x in trace.labels if x.startswith(_RATE)]
    return told[0] if told else " and ".join(rates) if len(rates) > 1 else ""


def with_rate(trace: Trace, rate: Rate) -> Trace:
    """``trace``, which states no rate, with that one; its amounts are unchanged."""
    return trace.with_marks([(0, 0, label) for label in rate.labels()])


def at_rate(trace: Trace, rate: Rate) -> Trace:
    """``trace`` with its recorded seconds counted at another rate: amounts are scaled by the ratio of the two.

    The seconds of a trace without a rate count as `NOMINAL`, as in recordings of SMPI with a host speed of 1 Gflop/s. The marks stay those
    of the recording. Raises TraceError for a trace merged from recordings at different rates.
    """
    if mixed_rates(trace):
        raise TraceError(f"its computation has no single rate ({mixed_rates(trace)})", trace.files[0], code="conflicting-options")
    own = rate_of(trace)
    factor = rate.flops / (own.flops if own else NOMINAL)
    return trace if factor == 1 else trace.scaled(factor)


def keep_marks(trace: Trace, piece: Trace) -> Trace:
    """``piece``, a part of ``trace``, with the marks about the whole trace that it lost."""
    lost = [label for label in trace.labels if label.startswith(_ABOUT) and label not in piece.labels]
    return piece.with_marks([(0, 0, label) for label in lost]) if lost else piece


def mark_mixed(traces: Sequence[Trace], whole: Trace) -> Trace:
    """``whole``, merged from ``traces``, with a mark that names their rates if these differ."""
    rates = [mixed_rates(t) or (str(r) if (r := rate_of(t)) else "no stated rate") for t in traces]
    if len(set(rates)) < 2:
        return whole
    return whole.with_marks([(0, 0, _MIXED + " and ".join(dict.fromkeys(rates)))])
