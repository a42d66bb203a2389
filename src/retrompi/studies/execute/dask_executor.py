"""The executor ``dask``: jobs on the workers of a Dask cluster, an existing one or a local one started here.

The workers need retrompi, the same code as here, and no store. A worker that is lost takes no job with it: the scheduler gives its jobs
to others, and a job that ends worker after worker becomes a row with its reason.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.resource_tracker import ensure_running
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.scratch import folder as temporary
from retrompi.sim import worker
from retrompi.store.identity import code_version
from retrompi.studies.define.case import ERROR, PointJob, PointResult, evaluate
from retrompi.studies.execute.worker_pool import processors

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.security import Security

__all__ = ["ATTEMPTS", "DaskExecutor"]

ATTEMPTS = 3
"""Number of times a job is repeated when its worker is lost."""
CONNECT_SECONDS = 5.0
"""Time limit for a scheduler's answer, seconds."""
WORKERS_SECONDS = 10.0
"""Time limit for the first worker, seconds."""
ALONE_SECONDS = 60.0
"""How long a study waits for a worker after the last one is lost, seconds."""
LOOK_SECONDS = 2.0
"""Interval of checking the workers, seconds."""
RESULT_SECONDS = 60.0
"""Time limit for receiving the result of a finished task, seconds."""
TASK_SECONDS = 0.25
"""Target duration of a task, seconds: small jobs are sent in batches of about this length."""
MOST_JOBS = 64
"""Maximum number of jobs of one task."""
AHEAD = 2
"""Tasks assigned to a worker's thread at a time: one running and one queued."""


class ClusterError(RetrompiError):
    """The cluster is not there any more (exit 2); what ended before is in the store."""

    code = "cluster-lost"


# -- on a worker ----------------------------------------------------------------------------------------------------------

_dropped: set[str] = set()
_busy: dict[str, set[worker.ForkServer]] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class _Refusal:
    """The answer of a worker with another version of the code."""

    address: str
    version: str


def _work(study: str, version: str, jobs: list[PointJob]) -> list[PointResult] | _Refusal:
    """A task: a batch of jobs run one after another, unless the study has been dropped meanwhile."""
    if version != code_version():
        from distributed import get_worker

        return _Refusal(get_worker().address, code_version())
    server = worker.shared_server()
    with _lock:
        _busy.setdefault(study, set()).add(server)
    try:
        return [evaluate(job) for job in jobs if study not in _dropped]
    finally:
        with _lock:
            _busy[study].discard(server)


def _drop(study: str) -> None:
    """Stops a study's work on this worker, whose results are no longer needed."""
    with _lock:
        _dropped.add(study)
        for server in _busy.get(study, ()):
            server.kill()


# -- where the study runs -------------------------------------------------------------------------------------------------


@dataclass
class _Task:
    jobs: list[PointJob]
    losses: int = 0
    """Number of workers that were lost or failed while running it."""


class DaskExecutor:
    """Jobs on a Dask cluster: the one at ``scheduler`` or $DASK_SCHEDULER_ADDRESS, else a local cluster of ``workers`` processes.

    ``say`` is called with a line for every rejected worker. Entering raises UsageError with one line when distributed is not installed, the
    scheduler does not answer, it has no workers, or none of them has this code.
    """

    name = "dask"

    def __init__(self, workers: int | None = None, scheduler: str | None = None, say: Callable[[str], object] = lambda line: None) -> None:
        self._address = scheduler or os.environ.get("DASK_SCHEDULER_ADDRESS") or None
        self._workers = workers or processors()
        self._say = say
        self._study = uuid.uuid4().hex
        self._open = ExitStack()
        self._refused: set[str] = set()
        self._client: Client
        self._flow: _Flow | None = None

    def describe(self) -> str:
        """The cluster in a few words."""
        return f"Dask scheduler {self._address}" if self._address else f"{self._workers} Dask workers on this machine"

    def __enter__(self) -> DaskExecutor:
        _quiet()
        try:
            import distributed  # noqa: F401
        except ModuleNotFoundError as error:
            raise UsageError(
                f"the executor dask needs the package {error.name}: pip install 'retrompi[cluster]'", code="missing-tool"
            ) from None
        try:
            self._client = self._open.enter_context(self._connect())
            self._open.callback(self._leave)
            self._admit()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    @contextmanager
    def _connect(self) -> Iterator[Client]:
        from distributed import Client

        address, security = self._address, None  # None: by Dask's own settings
        if address is None:
            address, security = self._open.enter_context(_own_cluster(self._workers))
        try:
            asyncio.run(asyncio.wait_for(_greet(address, security), CONNECT_SECONDS))
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
        except Exception as error:  # the listener may be anything
            why = f" ({error})" if isinstance(error, ValueError) else ""
            raise UsageError(
                f"no Dask scheduler answers at {address}{why}; start one with 'dask scheduler' and give its address, tcp://HOST:8786",
                code="cluster-lost",
            ) from None
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=2)

    def _leave(self) -> None:
        """A running simulation cannot be stopped otherwise than by ending its process."""
        with suppress(Exception):
            if self._client.status == "running":
                self._client.sync(self._client.run, _drop, self._study, on_error="ignore", callback_timeout=2)

    # -- workers --------------------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Wait for the first worker and check the code version of all; UsageError when none is usable."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TimeoutError:
            where = self._client.scheduler.address
            raise UsageError(
                f"the Dask scheduler {where} has no workers; start some with 'dask worker {where} --nthreads 1'", code="cluster-lost"
            ) from None
        self._look()
        if not self._threads():
            raise UsageError(
                f"no worker of the Dask scheduler {self._client.scheduler.address} has retrompi {code_version()}, as here",
                code="cluster-lost",
            )

    def _look(self) -> None:
        """Reject the workers with another version of the code."""
        for address, said in self._client.run(code_version, on_error="return").items():
            if said != code_version():
                self._refuse(address, said)

    def _refuse(self, address: str, said: object) -> None:
        if address in self._refused:
            return
        self._refused.add(address)
        has = f"has retrompi {said}" if isinstance(said, str) else f"cannot load retrompi ({' '.join(str(said).split())[:120]})"
        self._say(f"the worker {address} {has}, here it is {code_version()}: refused; install the same there")

    def _threads(self) -> dict[str, int]:
        """Accepted worker -> its number of threads."""
        threads: dict[str, int] = self._client.nthreads()
        return {address: n for address, n in threads.items() if address not in self._refused}

    # -- jobs -----------------------------------------------------------------------------------------------------------

    def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        """(position, Done) of every job, in the order of completion; at most ``window`` jobs (0: its own choice) are in flight."""
        self._flow = _Flow(self, self._client, iter(jobs), window)
        return self._flow.run()

    def ready(self, within: float = 0.0) -> bool:
        """Whether the next result is available, waiting at most ``within`` seconds for it."""
        return self._flow is not None and self._flow.ready(within)


class _Flow:
    """The jobs of one `evaluate` call on a cluster."""

    def __init__(self, executor: DaskExecutor, client: Client, jobs: Iterator[PointJob], window: int) -> None:
        self._executor = executor
        self._client = client
        self._jobs = jobs
        self._ended: SimpleQueue[Future] = SimpleQueue()
        self._seen_ended: deque[Future] = deque()
        self._under_way: dict[str, tuple[Future, _Task, frozenset[str]]] = {}
        self._again: deque[_Task] = deque()
        self._suspects: deque[_Task] = deque()
        self._seconds = 0.0  # total time of the finished jobs, and their number
        self._count = 0
        self._threads = executor._threads()
        self._window = window or AHEAD * sum(self._threads.values()) * MOST_JOBS
        self._results: deque[tuple[int, PointResult]] = deque()
        self._seen = self._looked = time.monotonic()

    def ready(self, within: float) -> bool:
        """Whether there is a result or a finished task, now or ``within`` seconds."""
        if not self._results and not self._seen_ended:
            with suppress(Empty):
                self._seen_ended.append(self._ended.get(timeout=max(within, 1e-6)))
        return bool(self._results or self._seen_ended)

    def run(self) -> Iterator[tuple[int, PointResult]]:
        """As of `DaskExecutor.evaluate`."""
        try:
            while self._fill():
                try:
                    self._take_results(self._seen_ended.popleft() if self._seen_ended else self._ended.get(timeout=1.0))
                except Empty:
                    self._watch()
                if time.monotonic() - self._looked > LOOK_SECONDS:
                    self._count_threads()
                while self._results:
                    yield self._results.popleft()
        finally:
            left = [future for future, _, _ in self._under_way.values()]
            if left:
                with suppress(Exception):
                    self._client.cancel(left, force=True)

    def _fill(self) -> bool:
        """Submit as many tasks as fit; False when nothing is left to wait for."""
        if self._executor._refused and not self._threads:
            return True  # the workers present are all rejected
        while self._again:
            self._send(self._again.popleft())
        # One at a time: jobs queued beside one that crashes its worker are lost with it, and must not be blamed repeatedly.
        if self._suspects and not any(task.losses for _, task, _ in self._under_way.values()):
            self._send(self._suspects.popleft())
        while len(self._under_way) < max(AHEAD * sum(self._threads.values()), 1):
            free = max(self._window - sum(len(task.jobs) for _, task, _ in self._under_way.values()), 0)
            batch = list(islice(self._jobs, min(self._batch(), free)))
            if not batch:
                break
            self._send(_Task(batch))
        return bool(self._under_way or self._suspects)

    def _batch(self) -> int:
        """Number of jobs of the next task: few at first, then from the mean duration, limited so that no thread is idle."""
        fair = self._window // max(AHEAD * sum(self._threads.values()), 1)
        fit = TASK_SECONDS * self._count / self._seconds if self._seconds else 1
        return int(max(1, min(fit, fair, MOST_JOBS)))

    def _send(self, task: _Task) -> None:
        # Workers are named only if one was rejected, since a task that names its workers can run on no other.
        where = frozenset(self._threads if self._executor._refused else ())
        future = self._client.submit(
            _work, self._executor._study, code_version(), task.jobs, pure=False, workers=sorted(where) or None, retries=0
        )
        self._under_way[future.key] = future, task, where
        future.add_done_callback(self._ended.put)

    def _take_results(self, future: Future) -> None:
        """Takes the results of a finished task; unfinished jobs are queued again."""
        from distributed import KilledWorker

        if future.key not in self._under_way:
            return  # given up by `_watch`
        _, task, _ = self._under_way.pop(future.key)
        self._seen = time.monotonic()
        if future.status == "cancelled":
            self._raise_gone()
        try:
            answer = future.result(timeout=RESULT_SECONDS)
        except KilledWorker as error:
            losses = error.allowed_failures + 1  # the scheduler itself retries
            self._repeat_lost(task, losses, "its worker was lost")
        except Exception as error:
            # The task's code does not raise: its worker could not load it, or its result was lost.
            with suppress(Exception):
                self._executor._look()
            self._repeat_lost(task, 1, f"its worker failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
        else:
            if isinstance(answer, _Refusal):
                self._executor._refuse(answer.address, answer.version)
                self._again.append(task)
                self._count_threads()
                return
            self._count += len(answer)
            self._seconds += sum(done.wall_s for done in answer)
            self._results.extend((job.position, done) for job, done in zip(task.jobs, answer, strict=True))

    def _repeat_lost(self, task: _Task, losses: int, reason: str) -> None:
        """A lost batch is repeated job by job, so that a crash is attributed to the job that caused it."""
        if len(task.jobs) > 1:
            self._suspects.extend(_Task([job], 1) for job in task.jobs)
        elif task.losses + losses <= ATTEMPTS:
            self._suspects.append(_Task(task.jobs, task.losses + losses))
        else:
            self._results.append((task.jobs[0].position, PointResult(ERROR, f"{reason} ({task.losses + losses} times)")))

    def _watch(self) -> None:
        """After a while without results: checks that workers are left for every task, including those restricted to some workers."""
        self._count_threads()
        if self._threads:
            self._seen = time.monotonic()
        else:
            self._require_workers()
        for key, (future, task, where) in list(self._under_way.items()):
            if where and not where & set(self._threads) and self._threads:
                del self._under_way[key]
                future.release()
                self._again.append(task)

    def _count_threads(self) -> None:
        self._looked = time.monotonic()
        if self._client.status != "running":
            self._raise_gone()
        try:
            self._threads = self._executor._threads()
        except OSError:
            self._raise_gone()

    def _require_workers(self) -> None:
        if time.monotonic() - self._seen > ALONE_SECONDS:
            raise ClusterError(
                f"the Dask scheduler {self._client.scheduler.address} has had no worker of this code for {ALONE_SECONDS:.0f} s; "
                "what ended is stored: start workers, then the study again"
            )

    def _raise_gone(self) -> None:
        where = self._executor._address or "of this machine"
        raise ClusterError(f"the Dask scheduler {where} went away; what ended is stored: start the study again to go on")


# -- connecting -----------------------------------------------------------------------------------------------------------


async def _greet(address: str, security: Security | None) -> None:
    """Handshake with a scheduler; a Client would wait forever for a listener that never answers."""
    from distributed.comm import connect, resolve_address
    from distributed.security import Security

    how = (security or Security()).get_connection_args("client")
    comm = await connect(resolve_address(address), timeout=CONNECT_SECONDS, **how)
    await comm.close()


# -- a local cluster ------------------------------------------------------------------------------------------------------


def _quiet() -> None:
    """Silences Dask's logging of lost workers and versions, which our rows report; an application's own Dask settings are kept."""
    if "distributed" not in sys.modules:
        with suppress(ModuleNotFoundError):
            import dask

            dask.config.set({"logging": {"distributed": "critical", "distributed.client": "critical"}})
        warnings.filterwarnings("ignore", module="distributed")


@contextmanager
def _own_cluster(workers: int) -> Iterator[tuple[str, Security]]:
    """The address of a cluster of local processes that leaves no files, and the keys to it.

    Whoever can talk to a scheduler runs code as its owner, and on loopback every account of the machine could. Each side therefore
    shows a certificate by a key pair made for this cluster, which only its processes have, in memory.
    """
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    try:
        security = Security.temporary()
    except ImportError:
        raise UsageError(
            "a Dask cluster of its own needs the package cryptography: pip install 'retrompi[cluster]'", code="missing-tool"
        ) from None
    # Its web pages would not ask for a key.
    closed: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    inside = {"dashboard": False, "dashboard_address": "127.0.0.1:0", "allowed_failures": 0}  # losses are counted here
    with temporary("dask") as scratch:
        with _without_interrupts(), dask.config.set({"temporary-directory": str(scratch), **closed}):
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", protocol="tls://", memory_limit=0,
                dashboard_address=None, scheduler_kwargs=inside, silence_logs=logging.CRITICAL, local_directory=str(scratch),
                security=security,
            )
        try:
            yield str(cluster.scheduler_address), security
        finally:
            with suppress(TimeoutError):  # a worker that a busy machine is just starting again ends with this process
                cluster.close(timeout=5)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Threads and processes started in the body never receive Ctrl-C; one that arrives meanwhile is delivered afterwards."""
    ensure_running()  # started later, it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
