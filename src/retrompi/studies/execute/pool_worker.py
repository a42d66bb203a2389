"""A worker process of the pool, which runs jobs one after another.

``python -m retrompi.studies.execute.pool_worker FD PARENT`` speaks over a socket: a greeting first, then for each batch (ticket, begun,
jobs) its results in order, in one or more messages (ticket, results, whether these are the last). It exits with its parent, or when the
other end is closed; a simulation is killed with its worker, however that exits.

A short simulation runs in this process, since a fork costs more than a PingPong. If it crashes the process, the job is repeated in a
fork, whose last output is reported as the reason. Long simulations, and those on SimGrid's wire, which allows one simulation per
process, always run in a fork.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from retrompi.base.errors import EngineError
from retrompi.sim import worker
from retrompi.sim.processes import end_with_parent, last_words

__all__ = ["HELLO", "Forking"]

HELLO = "ready"
TRIES = 3
"""Maximum number of attempts for a simulation that is killed from outside."""
TELL_S = 0.03
"""Results are sent when a batch has ended, and after so many seconds: a job that takes long does not keep those before it."""
_CHUNK = 1 << 20


class Forking:
    """Interface of `retrompi.sim.worker.ForkServer` without a server: the calling process simulates itself, or in a fork of itself.

    Not thread-safe. ``apart`` forks for every simulation.
    """

    def __init__(self, asker: int | None = None) -> None:
        self.spent: dict[str, float] = {}
        self.apart = False
        self._asker = asker
        """The descriptor whose hang-up means that the result is no longer wanted."""
        self._errors = os.memfd_create("retrompi-stderr") if sys.platform == "linux" else _scratch()

    def simulate(self, config: dict[str, Any], trace: Any, key: str, further: Sequence[Any] = ()) -> dict[str, Any]:
        """The engine's answer, as of `retrompi.sim.worker.ForkServer.simulate`."""
        traces = [trace, *further]
        patience = worker.patience(config)
        if not self.apart and not worker.needs_fork(config, traces):
            return self._result(*worker.simulate_in_process(config, traces))
        for attempt in range(1, TRIES + 1):
            status, data = self._fork(config, traces, patience)
            if status == 0 and data:
                return self._result(*pickle.loads(data))
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGTERM)
            if not killed or attempt == TRIES:
                break
        os.lseek(self._errors, 0, os.SEEK_SET)
        said = os.read(self._errors, _CHUNK)
        raise EngineError(f"the simulation died: {last_words(os.waitstatus_to_exitcode(status), said)}")

    def _result(self, status: str, result: Any) -> dict[str, Any]:
        found = worker.result_of(status, result)
        self.spent = found.pop("spent")
        return found

    def _fork(self, config: dict[str, Any], traces: Sequence[Any], patience: float | None) -> tuple[int, bytes]:
        os.ftruncate(self._errors, 0)
        os.lseek(self._errors, 0, os.SEEK_SET)
        pid, incoming = worker.fork_simulation(config, traces, self._errors, self._asker)
        try:
            if patience is not None and worker.told_before(incoming, self._asker, patience) is None:
                raise worker.Stopped(worker.stop_message(config))
            data = self._read(incoming, pid)
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        finally:
            os.close(incoming)
        return os.waitpid(pid, 0)[1], data

    def _read(self, incoming: int, pid: int) -> bytes:
        """Reads all output of the child; exits when the parent has closed the connection."""
        poll = select.poll()
        poll.register(incoming, select.POLLIN)
        if self._asker is not None:
            poll.register(self._asker, 0)  # hang-up only: further jobs may be queued in it
        parts: list[bytes] = []
        while True:
            for descriptor, _ in poll.poll():
                if descriptor != incoming:
                    os.kill(pid, signal.SIGKILL)
                    os._exit(1)
            part = os.read(incoming, _CHUNK)
            if not part:
                return b"".join(parts)
            parts.append(part)


def _scratch() -> int:
    import tempfile

    handle, path = tempfile.mkstemp(prefix="retrompi-stderr-")
    os.unlink(path)
    return handle


def serve(descriptor: int, parent: int) -> None:
    """Runs jobs until the other end is closed."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process
    asker = Connection(descriptor)
    from retrompi.sim import simulate  # noqa: F401  load what every job needs before the first fork
    from retrompi.studies.define import case
    from retrompi.studies.define.same_but_seed import Alike
    from retrompi.traces import generate  # noqa: F401

    forking = Forking(descriptor)
    worker.adopt(forking)
    asker.send(HELLO)
    gc.collect()
    gc.freeze()
    with suppress(EOFError, OSError):
        while True:
            ticket, begun, jobs = asker.recv()
            forking.apart = begun > 0
            alike, told, due = Alike(), [], time.monotonic() + TELL_S
            for left, job in enumerate(jobs, 1 - len(jobs)):
                told.append(case.evaluate(job, alike))
                if not left or time.monotonic() > due:
                    asker.send((ticket, told, not left))
                    told, due = [], time.monotonic() + TELL_S


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
