"""Three ways to run a program: ``native`` on this machine, ``smpi`` online in SimGrid, ``model`` as a trace on a runtime model.

    from retrompi import store
    from retrompi.measure import launch
    done = launch.run(store.open_store(), "native", "pingpong.c", [], 2, repetitions=10)
    done.samples_s, done.sections["1024"], done.calls, done.noise

Sections. ``MPI_Pcontrol(N)``, N >= 0, begins section N (in benchmarks N is the message size in bytes) and ends the open one;
``MPI_Pcontrol(-P)``, P >= 1, ends it and declares that it consists of P equal parts: ``MPI_Pcontrol(-1)`` ends a section whose time is
taken whole, ``MPI_Pcontrol(-2 * repetitions)`` reduces a PingPong's section to its one-way time. All three backends time sections alike,
so that no program output is parsed. See ``docs/run.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError, nearest
from retrompi.measure.launch.execution import BACKENDS, KINDS, BackendError, CallProfile, Execution, NativeMachine, Noise, RunRequest
from retrompi.spec.question import OPTIONS

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["BACKENDS", "KINDS", "BackendError", "CallProfile", "Execution", "NativeMachine", "Noise", "RunRequest", "load", "run"]


def run(
    store: Store,
    backend: str,
    program: str,
    arguments: Sequence[str] = (),
    ranks: int = 2,
    **options: Any,
) -> Execution:
    """Run ``program`` (a source file, a binary or an mpi4py script) with ``arguments`` on ``ranks`` ranks of ``backend`` and store it.

    ``options`` are the fields of `RunRequest`, and of a simulation the options of a question by key (``model``, ``set``, ...; None: not
    given). The backends ``model`` and ``smpi`` need ``model``; ``platform`` defaults to the model's own.
    Raises UsageError for an invalid request, BackendError for a program that cannot be built or started. How the program ended is part of
    the result: see `Execution.outcome`.
    """
    # here: what a backend measures with is itself launched by this package
    from retrompi.measure.launch import backend_model, backend_native, backend_smpi

    execute = {"native": backend_native.execute, "smpi": backend_smpi.execute, "model": backend_model.execute}
    if backend not in BACKENDS:
        raise UsageError(f"no backend '{backend}'{nearest(backend, BACKENDS)}", code="unknown-name")
    if ranks < 1:
        raise UsageError(f"{ranks} ranks cannot run a program; at least 1", code="wrong-ranks")
    given = {key: value for key in OPTIONS if (value := options.pop(key, None)) is not None}
    request = RunRequest(program, tuple(arguments), ranks, given, **options)
    return execute[backend](store, request)


def load(store: Store, run_id: int) -> Execution:
    """An execution from the store. Raises UsageError for a run of another kind."""
    from retrompi.measure.launch import executions

    return executions.load(store, run_id)
