"""Recording the MPI calls of a real program as a trace that can be replayed.

An interposition library (``native/``, C) is compiled with the MPI in use, preloaded with ``LD_PRELOAD`` and writes one file per rank;
afterwards the files are assembled into a trace::

    from retrompi.measure import record
    result = record.record(["mpiexec", "-n", "4", "./app"], "app-trace")
    result.trace.ranks, result.exit_code, result.partial

``docs/recording.md`` states what is recorded and what is lost.
"""

from __future__ import annotations

from retrompi.measure.record.assemble import Recording, assemble
from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.run import Clock, record

__all__ = ["Clock", "RecordError", "Recording", "assemble", "record"]
