"""Comparison of one program on the machine, on SMPI and on a runtime model.

    from retrompi.measure import compare
    from retrompi import store
    c = compare.compare(store.open_store(), "pingpong.c", (), 2, model="mpich", platform="this-machine")
    c.distribution("model", "native", "held out")      # median, 95th, worst, bias of the relative error

``docs/compare.md`` explains how the numbers are computed.
"""

from retrompi.measure.compare.comparison import CallRow, Comparison, ComparisonRow, Split, build, cautions
from retrompi.measure.compare.errors import Band, Distribution, band, distribution, relative
from retrompi.measure.compare.run import choose_backends, compare, from_store, hashes_of
from retrompi.measure.compare.seen import Seen, seen_by
from retrompi.measure.compare.verdict import ComparisonVerdict, judge, parse_within
from retrompi.measure.launch.execution import BACKENDS

__all__ = ["BACKENDS", "Band", "CallRow", "Comparison", "ComparisonRow", "ComparisonVerdict", "Distribution", "Seen", "Split", "band",
           "build", "cautions", "choose_backends", "compare", "distribution", "from_store", "hashes_of", "judge", "parse_within",
           "relative", "seen_by"]
