"""The scale of a trace's computation: the rate at which the seconds of the recording machine were counted as operations.

Amounts of `compute` are operations. A recorder measures seconds, so a recorded trace states its rate: the facts ``rate`` and
``rate-source`` (docs/trace-format.md). A trace without them states operations, or nanoseconds of an unknown machine: nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.base.units import format_quantity, parse

from .errors import TraceError

__all__ = ["NOMINAL", "RATE", "SOURCE", "Rate", "at_rate", "common_facts", "rate_of", "stated"]

RATE, SOURCE = "rate", "rate-source"
NOMINAL = 1e9
"""The rate (flop/s) that counts a second where none is known: an amount is then a nanosecond."""
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

    def facts(self) -> dict[str, str]:
        """As facts of a trace."""
        return {RATE: f"{self.flops:.12g} flop/s", SOURCE: self.source}

    def __str__(self) -> str:
        return format_quantity(self.flops, "flop/s")


def rate_of(trace: Trace) -> Rate | None:
    """The rate that a trace states; None for one that states none. Raises TraceError for one that is no rate."""
    text = trace.about.get(RATE)
    if text is None:
        return None
    try:
        flops = parse(text, "flop/s")
    except UsageError as error:
        raise TraceError(f"its '{RATE}': {error}", trace.files[0], code=error.code) from None
    if not flops > 0:
        raise TraceError(f"its '{RATE}' is {text}; it must be above zero", trace.files[0], code="out-of-range")
    return Rate(flops, trace.about.get(SOURCE, "stated by the trace"))


def stated(trace: Trace, rate: Rate) -> Trace:
    """``trace`` with that rate as its fact; its amounts are unchanged."""
    return trace.with_about({**trace.about, **rate.facts()})


def at_rate(trace: Trace, rate: Rate) -> Trace:
    """``trace`` with its recorded seconds counted at another rate: amounts are scaled by the ratio of the two.

    The seconds of a trace without a rate count as `NOMINAL`, as in recordings of SMPI with a host speed of 1 Gflop/s.
    Raises TraceError for a trace merged from recordings at different rates.
    """
    own = rate_of(trace)
    if own is None and SOURCE in trace.about:
        raise TraceError(f"its computation has no single rate ({trace.about[SOURCE]})", trace.files[0], code="conflicting-options")
    factor = rate.flops / (own.flops if own else NOMINAL)
    return stated(trace if factor == 1 else trace.scaled(factor), rate)


def common_facts(traces: Sequence[Trace]) -> dict[str, str]:
    """The facts of a trace made from several: those in which they agree; if their rates differ, a source that names each."""
    first, *others = (t.about for t in traces)
    out = {k: v for k, v in first.items() if all(o.get(k) == v for o in others)}
    rates = list(dict.fromkeys(str(r) if (r := rate_of(t)) else "no stated rate" for t in traces))
    if RATE in out:
        out.setdefault(SOURCE, "several recordings at this rate")
    elif any(RATE in t.about or SOURCE in t.about for t in traces):
        out[SOURCE] = "merged from traces of " + " and ".join(rates)
    return out
