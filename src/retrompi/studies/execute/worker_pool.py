"""The executor for one machine: a pool of worker processes, replaced when they are lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import IO, Any

from retrompi.base.errors import EngineError
from retrompi.sim.processes import kill_group, last_words, processors
from retrompi.studies.define.case import ERROR, PointJob, PointResult
from retrompi.studies.execute.pool_worker import HELLO

__all__ = ["TRIES", "WorkerPool", "processors"]

MODULE = "retrompi.studies.execute.pool_worker"
"""Command of a worker process."""
TRIES = 3
"""Maximum number of attempts for a job whose worker is lost."""
STARTS = 8
"""Workers in a row that end before their greeting, after which none can be started. Starting is most of a short worker's life: who kills
workers at random hits three such in a row now and then."""
DEPTH = 2
"""Batches assigned to a worker: the current and the next one, so that it never waits for the main process."""
BATCH_S = 0.05
"""Target duration of a batch, seconds: one job, unless the ones before were shorter."""
MOST_JOBS = 100
"""Maximum number of jobs of a batch."""
_RECENT = 200
"""Jobs from whose durations that of the next ones is expected."""
_LARGE = 1 << 16
"""A larger batch (bytes) is sent to idle workers only, since a busy one might be blocked on writing its result."""


@dataclass
class _Ticket:
    """A batch of jobs in flight, those not yet answered, and the number of times it was started and lost."""

    number: int
    jobs: deque[PointJob]
    begun: int = 0

    def data(self) -> Any:
        """The message for a worker."""
        return ForkingPickler.dumps((self.number, self.begun, list(self.jobs)))


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    line: Connection
    errors: IO[bytes]
    has: deque[_Ticket] = field(default_factory=deque)
    greeted: bool = False


class WorkerPool:
    """``jobs`` processes (default: one for each processor), started with the first job. Not thread-safe."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or processors()
        self._workers: list[_Worker] = []
        self._results: deque[tuple[int, PointResult]] = deque()
        self._again: deque[_Ticket] = deque()
        self._number = 0
        self._open: dict[int, _Ticket] = {}
        self._stillborn = 0
        self._count, self._seconds = 0.0, 0.0
        """Recent jobs and their wall time."""

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *what: object) -> None:
        for worker in self._workers:
            _end(worker)
        self._workers.clear()

    def describe(self) -> str:
        """A few words."""
        return f"{self.jobs} process{'es' if self.jobs > 1 else ''} here"

    def ready(self, within: float = 0.0) -> bool:
        """As of `retrompi.studies.execute.run.Executor`."""
        return bool(self._results) or (bool(self._open) and bool(wait([w.line for w in self._workers], within)))

    def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        """As of `retrompi.studies.execute.run.Executor`. Raises EngineError when no worker can be started."""
        self._forget()
        source = iter(jobs)
        more = True
        while True:
            while more and (free := self._free(window)):
                batch = deque(islice(source, free))
                more = bool(batch)
                if batch:
                    self._queue(batch)
                    self._hand_out()
                if self._results or (self._workers and self.ready()):
                    break  # return results before queueing more jobs than the workers hold
            self._hand_out()
            if self._results:
                yield self._results.popleft()
            elif self._open:
                self._listen()
            elif not more:
                return

    def _free(self, window: int) -> int:
        """Number of jobs of the next batch; 0 if as many as wanted are in flight."""
        if not window:
            return self._batch() if len(self._open) < self.jobs * DEPTH else 0
        left = window - sum(len(ticket.jobs) for ticket in self._open.values()) - len(self._results)
        return max(0, min(left, self._batch(), max(1, window // (self.jobs * DEPTH))))

    def _batch(self) -> int:
        return int(max(1, min(BATCH_S * self._count / self._seconds, MOST_JOBS))) if self._seconds else 1

    def _queue(self, batch: deque[PointJob], begun: int = 0) -> _Ticket:
        self._number += 1
        ticket = _Ticket(self._number, batch, begun)
        self._open[ticket.number] = ticket
        self._again.append(ticket)
        return ticket

    def _forget(self) -> None:
        """Cancels the jobs of an abandoned call: only running ones are left, and their results are dropped."""
        self._open.clear()
        self._again.clear()
        self._results.clear()

    def _hand_out(self) -> None:
        """Assigns queued jobs to the workers with the fewest; starts workers up to the requested number."""
        while self._again:
            ticket = self._again[0]
            if len(self._workers) < self.jobs and all(w.has for w in self._workers):
                self._workers.append(_start_worker())
            free = min(self._workers, key=lambda w: len(w.has))
            if len(free.has) >= DEPTH:
                return
            data = ticket.data()
            if free.has and len(data) > _LARGE:
                return
            self._again.popleft()
            free.has.append(ticket)
            try:
                free.line.send_bytes(data)
            except OSError:
                self._replace_worker(free)

    def _listen(self) -> None:
        """Waits for messages of the workers and handles them."""
        lines = {w.line: w for w in self._workers}
        for line in wait(list(lines)):
            worker = lines[line]  # type: ignore[index]
            try:
                said = worker.line.recv()
            except (EOFError, OSError):
                self._replace_worker(worker)
                continue
            if said == HELLO:
                worker.greeted, self._stillborn = True, 0
                continue
            number, told, ended = said
            ticket = self._open.get(number)
            if ticket is not None:
                self._results.extend((ticket.jobs.popleft().position, done) for done in told)
            self._expect(len(told), sum(done.wall_s for done in told))
            if ended:
                worker.has.popleft()
                self._open.pop(number, None)

    def _expect(self, count: int, seconds: float) -> None:
        fade = _RECENT / (_RECENT + count) if self._count > _RECENT else 1.0
        self._count, self._seconds = self._count * fade + count, self._seconds * fade + seconds

    def _replace_worker(self, worker: _Worker) -> None:
        """Replaces a lost worker and repeats its jobs; the one it was running counts as an attempt.

        Which one of a batch that was is not known: each of them is repeated alone, in a process of its own.
        """
        self._workers.remove(worker)
        how = _end(worker)
        if not worker.greeted:
            self._stillborn += 1
            if self._stillborn >= STARTS:
                raise EngineError(f"no worker process can be started: {how}", code="engine-died")
        tickets = [t for t in worker.has if t.number in self._open]
        if tickets and worker.greeted and tickets[0] is worker.has[0]:
            tickets[0].begun += 1
            if len(tickets[0].jobs) > 1:
                batch = tickets.pop(0)
                del self._open[batch.number]
                for job in batch.jobs:
                    self._queue(deque([job]), 1)
            elif tickets[0].begun >= TRIES:
                lost = tickets.pop(0)
                del self._open[lost.number]
                self._results.append((lost.jobs[0].position, PointResult(ERROR, f"its worker was lost {TRIES} times: {how}")))
        self._again.extendleft(reversed(tickets))


def _start_worker() -> _Worker:
    ours, theirs = socket.socketpair()
    errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
    with theirs:
        # A separate process group: Ctrl-C reaches only the main process, and the worker's simulation can be ended with it.
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, pass_fds=[theirs.fileno()], process_group=0,
        )
    return _Worker(process, Connection(ours.detach()), errors)


def _end(worker: _Worker) -> str:
    """Kills a worker and its simulation; returns a description of how it had ended by itself."""
    worker.line.close()
    own = worker.process.poll()
    kill_group(worker.process.pid)
    code = worker.process.wait()
    code = code if own is None else own
    with worker.errors:
        worker.errors.seek(0)
        return last_words(code, worker.errors.read())
