"""Time-independent traces: the MPI calls of the ranks of a program, without times.

The format is SimGrid/SMPI's (``docs/trace-format.md``); parsing is native, this package finds and unpacks the files::

    trace = traces.read("npb3.3.1-is-A-4.tar.zst")
    for file, line, action, reason in traces.unsupported(trace):
        ...
"""

from __future__ import annotations

from retrompi._engine import Trace

from . import generate, hpl, lap2d, rates, sweep3d
from .computation import Rate, at_rate, rate_of, with_rate
from .errors import TraceError
from .files import folders, parse, read, read_folders, read_once, write
from .outcomes import Outcomes, read_outcomes
from .sections import Section, mark_lines, mark_pingpong, pingpong_sections

__all__ = [
    "Outcomes",
    "Rate",
    "Section",
    "Trace",
    "TraceError",
    "at_rate",
    "folders",
    "generate",
    "hpl",
    "lap2d",
    "mark_lines",
    "mark_pingpong",
    "parse",
    "pingpong_sections",
    "rate_of",
    "rates",
    "read",
    "read_folders",
    "read_once",
    "read_outcomes",
    "smpi_losses",
    "sweep3d",
    "unsupported_lines",
    "with_rate",
    "write",
]


def unsupported_lines(trace: Trace) -> list[tuple[str, int, str, str]]:
    """Lines that are well formed but cannot be simulated: ``(file, line, action, reason)``, at most the first 1000.

    A trace with such lines must not be run. ``trace.warnings`` lists questionable lines in the same form.
    """
    return trace.unsupported()


def smpi_losses(trace: Trace) -> list[tuple[str, int, str, str]]:
    """Lines that ``write(..., smpi=True)`` leaves out or changes, as ``(file, line, action, reason)``, at most the first 1000.

    SMPI's replay (SimGrid 3.32 and 4.1) supports neither communicators nor non-blocking collectives, one-sided communication, probes or
    persistent requests. ``trace.smpi_losses()`` also counts all such lines, by action and reason.
    """
    return trace.smpi_losses()[0]
