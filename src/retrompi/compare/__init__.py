"""One program on the machine, on SMPI and on a runtime model, compared.

    from retrompi import compare, store
    c = compare.compare(store.open_store(), "pingpong.c", (), 2, model="mpich", platform="this-machine")
    c.distribution("model", "native", "held out")      # median, 95th, worst, bias of the relative error

``docs/compare.md`` says how the numbers are made.
"""

from retrompi.backends import BACKENDS
from retrompi.compare.comparison import CallRow, Comparison, Row, Split, build
from retrompi.compare.errors import Band, Distribution, band, distribution, relative
from retrompi.compare.run import chosen, compare, from_store, hashes_of
from retrompi.compare.seen import Seen, seen_by
from retrompi.compare.verdict import Verdict, judge, parse_within

__all__ = [
    "BACKENDS", "Band", "CallRow", "Comparison", "Distribution", "Row", "Seen", "Split", "Verdict", "band", "build", "chosen", "compare",
    "distribution", "from_store", "hashes_of", "judge", "parse_within", "relative", "seen_by",
]  # fmt: skip
