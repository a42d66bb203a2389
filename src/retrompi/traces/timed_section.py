"""The timed section of a replay: finding it in a trace, scaling its computation, and computing its time from the marks of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrompi.base.errors import UsageError
from retrompi.base.units import PS
from retrompi.traces.errors import TraceError
from retrompi.traces.sections import mark_lines

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.spec.declare.result import MarkRow, SectionRow

__all__ = ["compute_scale", "prepare", "section_of"]

BEGIN = "timed section"
_LINES = re.compile(r"(\d+)-(\d+)")


def _labels(section: str) -> tuple[str, str]:
    first, dots, last = section.partition("..")
    if not dots or not first or not last:
        raise UsageError(f"no section '{section}'; write FIRST-LAST (lines of rank 0) or LABEL..LABEL (its marks)", code="no-section")
    return first, last


def _lines(trace: Trace, section: str) -> tuple[int, int]:
    """First and last line of rank 0 in the section."""
    found = _LINES.fullmatch(section)
    if found:
        first, last = int(found[1]), int(found[2])
        if not 1 <= first <= last:
            raise TraceError(f"the section {section} is empty", trace.files[0], code="no-section")
        bottom = max((line for line, *_ in trace.rank_actions(0)), default=0)
        if last > bottom:
            raise TraceError(f"the section {section} goes past line {bottom}, the last one of rank 0", trace.files[0], code="no-section")
        return first, last
    begin, end = _labels(section)
    start = 0
    for line, action, *_ in trace.rank_actions(0):
        if not start and action == f"mark {begin}":
            start = line
        elif start and action == f"mark {end}":
            return start, line
    raise TraceError(f"rank 0 has no mark '{end if start else begin}'{' after it' if start else ''}", trace.files[0], code="no-section")


def compute_scale(trace: Trace, section: str, seconds: float, flops: Sequence[float]) -> float:
    """The factor on all compute amounts with which those of the section take ``seconds``, summed over the ranks.

    ``flops``: rate (flop/s) of the host of each rank. Bias of the capture, such as the overhead of the tracer in every burst,
    is removed on average, not per burst. Raises TraceError if the section has no computation.
    """
    recorded = trace.section_compute(*_lines(trace, section))
    now = sum(amount / rate for amount, rate in zip(recorded, flops, strict=True))
    if now <= 0:
        raise TraceError(f"no computation in the section {section}", trace.files[0], code="no-section")
    return seconds / now


def prepare(trace: Trace, section: str) -> Trace:
    """``trace`` with marks around a section given by lines; unchanged if the section is given by marks."""
    first, last = _lines(trace, section)
    return mark_lines(trace, [(BEGIN, first, last)]) if _LINES.fullmatch(section) else trace


def section_of(marks: Sequence[MarkRow], section: str) -> SectionRow | None:
    """Begin, end and length of the section in seconds from the marks of rank 0; None if the run ended before."""
    begin, end = (BEGIN, "end") if _LINES.fullmatch(section) else _labels(section)
    start: int | None = None
    for mark in marks:
        if mark["rank"] != 0:
            continue
        if start is None and mark["label"] == begin:
            start = mark["time_ps"]
        elif start is not None and mark["label"] == end:
            stop = mark["time_ps"]
            return {"section": section, "begin_s": start * PS, "end_s": stop * PS, "seconds": (stop - start) * PS}
    return None
