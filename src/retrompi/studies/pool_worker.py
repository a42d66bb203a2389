"""A worker process of the pool: it does jobs one after the other.

``python -m retrompi.studies.pool_worker FD PARENT`` speaks over a socket: a greeting first, then (ticket, Done) for each
(ticket, begun, Job). It ends with its parent, or when the other end is closed; a simulation ends with its worker, however that ends.

A simulation of no great length is done in this process: a fork of it costs more than a PingPong. Should that end the process, the job
is begun again, and then (as all long ones, and those on SimGrid's wire, which allows one simulation a process) in a fork, whose
last words are the reason.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import select
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from retrompi.base.errors import EngineError, InputError
from retrompi.sim import worker
from retrompi.sim.processes import end_with_parent, last_words

__all__ = ["HELLO", "Forking"]

HELLO = "ready"
INSIDE = 250_000
"""Actions of a trace up to which a simulation is done in the worker itself: mostly less than a second."""
TRIES = 3
"""A simulation that somebody kills is begun again, so many times in all."""
_CHUNK = 1 << 20


class Forking:
    """What `retrompi.sim.worker.ForkServer` is to others, without a server: the process that asks simulates itself, or in a fork of itself.

    For one thread. ``apart`` forks for every simulation.
    """

    def __init__(self, asker: int | None = None) -> None:
        self.spent: dict[str, float] = {}
        self.apart = False
        self._asker = asker
        """The descriptor whose hanging up means that nobody waits for the answer any more."""
        self._errors = os.memfd_create("retrompi-stderr") if sys.platform == "linux" else _scratch()

    def simulate(self, config: dict[str, Any], trace: Any, key: str, further: Sequence[Any] = ()) -> dict[str, Any]:
        """The engine's answer, as of `retrompi.sim.worker.ForkServer.simulate`."""
        traces = [trace, *further]
        if not self.apart and config["wire"] == "native" and sum(t.actions for t in traces) <= INSIDE:
            return self._inside(config, traces)
        for attempt in range(1, TRIES + 1):
            status, data = self._fork(config, traces)
            if status == 0 and data:
                kind, answer = pickle.loads(data)
                if kind == "refused":
                    raise InputError(answer)
                self.spent = answer.pop("spent")
                return dict(answer)
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGTERM)
            if not killed or attempt == TRIES:
                break
        os.lseek(self._errors, 0, os.SEEK_SET)
        said = os.read(self._errors, _CHUNK)
        raise EngineError(f"the simulation died: {last_words(os.waitstatus_to_exitcode(status), said)}")

    def _inside(self, config: dict[str, Any], traces: Sequence[Any]) -> dict[str, Any]:
        from retrompi import _engine

        before = resource.getrusage(resource.RUSAGE_SELF)
        try:
            told = dict(_engine.simulate(config, traces[0], traces[1:]))
        except _engine.ConfigError as error:
            raise InputError(str(error)) from None
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        self.spent = {"cpu_s": cpu, "peak_B": after.ru_maxrss << 10}
        return told

    def _fork(self, config: dict[str, Any], traces: Sequence[Any]) -> tuple[int, bytes]:
        os.ftruncate(self._errors, 0)
        os.lseek(self._errors, 0, os.SEEK_SET)
        pid, incoming = worker.begun(config, traces, self._errors, self._asker)
        try:
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
        """All that the child says; ends this process when nobody waits for it."""
        poll = select.poll()
        poll.register(incoming, select.POLLIN)
        if self._asker is not None:
            poll.register(self._asker, 0)  # only its hanging up: further jobs may lie in it
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
    """Does jobs until the other end is closed."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asked
    asker = Connection(descriptor)
    from retrompi.sim import simulate  # noqa: F401  what every job needs is there before the first fork
    from retrompi.studies import case
    from retrompi.traces import generate  # noqa: F401

    forking = Forking(descriptor)
    worker.adopt(forking)
    asker.send(HELLO)
    gc.collect()
    gc.freeze()
    with suppress(EOFError, OSError):
        while True:
            ticket, begun, job = asker.recv()
            forking.apart = begun > 0
            asker.send((ticket, case.evaluate(job)))


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
