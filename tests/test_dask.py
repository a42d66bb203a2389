"""The executor dask: a cluster of our own, real schedulers and workers, workers that are lost or refused, and who is not there."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome, Watched
from postgres import Server
from refusals import refused
from study_runs import POINTS, Sweep, check_store, children, descendants, done, ended, lives, small, sweep, until, words

from retrompi.base.errors import UsageError
from retrompi.store import open_store
from retrompi.studies.define.case import PointJob, PointResult
from retrompi.studies.execute import dask_executor
from retrompi.studies.execute.dask_executor import DaskExecutor
from retrompi.studies.execute.design import points
from retrompi.studies.execute.run import run_study
from retrompi.studies.execute.worker_pool import WorkerPool

distributed = pytest.importorskip("distributed", reason="distributed not installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Cluster:
    """A scheduler and workers, each a process of its own as on a real cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self.processes: list[subprocess.Popen[bytes]] = []

    def _start(self, *what: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + what[0], *what[1:], "--no-dashboard"]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, process_group=0, env={**os.environ, **environment}
            )
        self.processes.append(process)
        return process

    def scheduler(self) -> str:
        """Start it; its address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._start("scheduler", "--host", "127.0.0.1", "--port", str(port))
        self.address = f"tcp://127.0.0.1:{port}"

        def answers() -> bool:
            with socket.socket() as line:
                return line.connect_ex(("127.0.0.1", port)) == 0

        until(answers)
        return self.address

    def workers(self, count: int, **environment: str) -> subprocess.Popen[bytes]:
        """Start so many under one nanny."""
        return self._start(
            "worker", self.address, "--nworkers", str(count), "--nthreads", "1", "--memory-limit", "0",
            "--local-directory", str(self.folder), **environment,
        )

    def close(self) -> None:
        """End all of it."""
        for process in self.processes:
            for pid in [*descendants(process.pid), process.pid]:
                if lives(pid):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """No processes yet; none afterwards."""
    made = Cluster(tmp_path_factory.mktemp("dask"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the study on the pool."""
    store = open_store(tmp_path_factory.mktemp("undisturbed") / "runs.db")
    run_study(store, small(), executor=WorkerPool(2))
    return check_store(store, small())


def test_two_worker_processes_give_the_rows_of_the_pool(
    cluster: Cluster, tmp_path: Path, undisturbed: list[dict[str, Any]], postgres: Server
) -> None:
    """The same study on the pool and on a Dask cluster, in SQLite and on PostgreSQL: four times the same rows, and nothing on stderr."""
    cluster.scheduler()
    nanny = cluster.workers(2)
    location = tmp_path / "runs.db"
    code, out, err = sweep(location, "--executor", "dask", "--scheduler", cluster.address)
    assert (code, err) == (0, "")
    assert f"{POINTS} simulated" in out
    assert check_store(open_store(location), small()) == undisturbed
    server = postgres.database()
    code, _, err = sweep(server, "--executor", "dask", DASK_SCHEDULER_ADDRESS=cluster.address)
    assert (code, err) == (0, "")
    assert check_store(open_store(server), small()) == undisturbed
    # Both workers took part, and what they simulated in goes with them, however they end.
    simulating = [p for p in descendants(nanny.pid) if b"retrompi.sim.worker" in Path(f"/proc/{p}/cmdline").read_bytes()]
    assert len(simulating) == 2
    os.kill(nanny.pid, signal.SIGKILL)
    ended(simulating)


def test_a_cluster_of_our_own(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """It listens to this machine only, says nothing, and leaves nothing."""
    pytest.importorskip("cryptography", reason="cryptography not installed")
    location = tmp_path / "runs.db"
    (tmp_path / "scratch").mkdir()
    with Sweep(location, "--executor", "dask", "--jobs", "2", TMPDIR=str(tmp_path / "scratch")) as running:
        until(lambda: done(location) > 0 or running.process.poll() is not None)
        left = descendants(running.process.pid)
        listening = {address for pid in [running.process.pid, *left] for address in _listens(pid)}
        code, _, err = running.end()
    assert (code, err) == (0, "")
    assert listening
    assert listening <= {"0100007F"}  # 127.0.0.1 as /proc writes it
    ended(left)
    assert not list((tmp_path / "scratch").iterdir())
    assert check_store(open_store(location), small()) == undisturbed


def test_a_cluster_of_our_own_answers_nobody_without_its_key() -> None:
    """Neither its scheduler nor its workers: in the clear, with TLS and no key, with a key of another, by HTTP."""
    pytest.importorskip("cryptography", reason="cryptography not installed")
    from distributed import Client
    from distributed.comm import connect
    from distributed.security import Security


    ran: list[str] = []
    with DaskExecutor(1) as executor:
        addresses = [executor._client.scheduler.address, *executor._client.scheduler_info()["workers"]]
        addresses += [w["nanny"] for w in executor._client.scheduler_info()["workers"].values()]
        assert len(addresses) == 3
        assert all(a.startswith("tls://127.0.0.1:") for a in addresses)

        async def knock(address: str, security: Security) -> None:
            comm = await connect(address, timeout=2, **security.get_connection_args("client"))
            try:  # a server of another kind of connection may only close it
                await comm.write({"op": "identity", "reply": True})
                await asyncio.wait_for(comm.read(), 2)
                ran.append(address)
            finally:
                comm.abort()

        for address in addresses:
            for shown, security in ((address.replace("tls", "tcp"), Security()), (address, Security.temporary())):
                with pytest.raises((OSError, TypeError, RuntimeError, ValueError)):
                    asyncio.run(knock(shown, security))
            with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 5) as line:
                line.sendall(b"GET /info/main/workers.html HTTP/1.0\r\n\r\n")
                with suppress(OSError):
                    assert b"200 OK" not in line.recv(4096)
            with pytest.raises(OSError):  # noqa: PT011  an SSLError or a reset
                _read_without_a_key(int(address.rpartition(":")[2]))
        assert ran == []
        with Client(addresses[0], timeout=10, set_as_default=False, security=executor._client.security) as ours:
            assert ours.submit(sum, [1, 2]).result(30) == 3
        keys = executor._client.security.tls_client_key
        files = [Path(f"/proc/{pid}/{name}") for pid in descendants(os.getpid()) for name in ("cmdline", "environ")]
        commands = [file.read_bytes() for file in files]
        assert keys
        assert not any(keys.split()[6].encode() in text for text in commands)


def _read_without_a_key(port: int) -> None:
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        line.settimeout(2)
        with anybody.wrap_socket(line) as through:  # in TLS 1.3 a refused client learns of it at its first reading
            if not through.recv(1):
                raise ConnectionResetError


def _listens(pid: int) -> set[str]:
    """The addresses of a process's listening sockets."""
    try:
        sockets = {os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return set()
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            word = line.split()
            if word[3] == "0A" and f"socket:[{word[9]}]" in sockets:
                found.add(word[1].split(":")[0])
    return found


@pytest.mark.exhaustive
def test_lost_workers(cluster: Cluster, tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """Three times a worker is killed, once the main process; the study ends as if nothing had been."""
    cluster.scheduler()
    nanny = cluster.workers(2)
    location = tmp_path / "runs.db"
    arguments = ("--executor", "dask", "--scheduler", cluster.address)
    with Sweep(location, *arguments) as running:
        for wanted in (1, 4, 8):
            until(lambda w=wanted: done(location) >= w or running.process.poll() is not None)  # type: ignore[misc]
            workers = until(lambda: [p for p in children(nanny.pid) if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()])
            os.kill(workers[wanted % len(workers)], signal.SIGKILL)
        until(lambda: done(location) > 10 or running.process.poll() is not None)
    kept = done(location)
    code, out, err = sweep(location, *arguments)
    assert (code, err) == (0, "")
    assert f"{POINTS - kept} simulated, {kept} found" in out
    assert check_store(open_store(location), small()) == undisturbed


def _ends_its_worker(job: PointJob) -> PointResult:
    """A job that no worker survives, and others."""
    if job.position == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return PointResult("completed", wall_s=0.001)


def test_a_job_that_ends_every_worker_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # the workers import this module
    scenario = points(small())[0].scenario
    monkeypatch.setattr(dask_executor, "_work", _without_a_simulation)
    monkeypatch.setattr(dask_executor, "ATTEMPTS", 1)
    with DaskExecutor(workers=2) as executor:
        answers = dict(executor.evaluate([PointJob(i, scenario) for i in range(12)], 8))
    assert sorted(answers) == list(range(12))
    assert {i for i, done in answers.items() if done.outcome != "completed"} == {2}
    assert answers[2].outcome == "error"
    assert answers[2].reason == "its worker was lost (2 times)"


def _without_a_simulation(_study: str, _version: str, jobs: list[PointJob]) -> list[PointResult]:
    return [_ends_its_worker(job) for job in jobs]


def test_a_worker_with_other_code_is_refused(cluster: Cluster, tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """Alone it is an error; beside others, a line, and these do the work; one that comes later is refused too."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text(
        "import retrompi.store.identity as identity\nidentity.code_version = lambda: '0.0.1+deadbeef'\n"
    )
    cluster.scheduler()
    cluster.workers(1, PYTHONPATH=str(other))
    location = tmp_path / "runs.db"
    arguments = ("--executor", "dask", "--scheduler", cluster.address)
    code, out, err = sweep(location, *arguments)
    assert (code, out) == (2, "")
    refusal, error = err.splitlines()
    assert refusal.startswith("the worker tcp://127.0.0.1:")
    assert "has retrompi 0.0.1+deadbeef, here it is" in refusal
    assert error.startswith(f"error: no worker of the Dask scheduler {cluster.address} has retrompi ")
    assert done(location) == 0
    cluster.workers(1)
    with distributed.Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=300)
    said: list[str] = []
    store = open_store(location)
    with DaskExecutor(scheduler=cluster.address, say=said.append) as executor:
        assert len(said) == 1
        cluster.workers(1, PYTHONPATH=str(other))
        executor._client.wait_for_workers(3, timeout=300)
        run_study(store, small(), executor=_Entered(executor))
    assert len(said) == 2
    assert all("refused; install the same there" in line for line in said)
    assert check_store(store, small()) == undisturbed


class _Entered:
    """An executor that somebody else has entered."""

    def __init__(self, executor: DaskExecutor) -> None:
        self.evaluate, self.ready, self.describe = executor.evaluate, executor.ready, executor.describe

    def __enter__(self) -> _Entered:
        return self

    def __exit__(self, *_error: object) -> None:
        return None


def test_a_study_that_is_given_up_leaves_no_simulation() -> None:
    """Ctrl-C does not wait for a long simulation, nor does it go on where nobody waits for it."""
    from retrompi.studies.define.case import apply

    long = apply(points(small())[0].scenario, {"trace.reps": "50000"})
    with pytest.raises(KeyboardInterrupt), DaskExecutor(workers=1) as executor:  # noqa: PT012
        left: list[int] = []

        def interrupt() -> None:
            left.extend(until(lambda: [p for p in descendants(os.getpid()) if _simulates(p)]))
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        list(executor.evaluate([PointJob(0, long)]))
    thread.join()
    assert left
    ended(left)


def _simulates(pid: int) -> bool:
    """Whether it is the child of a fork server."""
    try:
        words_ = [Path(f"/proc/{p}/cmdline").read_bytes() for p in (pid, int(Path(f"/proc/{pid}/stat").read_text().split()[3]))]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return all(b"retrompi.sim.worker" in w for w in words_)


def _refused(scheduler: str) -> str:
    with pytest.raises(UsageError) as caught, DaskExecutor(scheduler=scheduler):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_who_does_not_answer_is_one_line(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(dask_executor, "WORKERS_SECONDS", 0.5)
    assert "no Dask scheduler answers at tcp://127.0.0.1:1; start one with 'dask scheduler'" in _refused("tcp://127.0.0.1:1")
    assert "missing port number" in _refused("tcp://nowhere")
    assert "unknown address scheme 'http'" in _refused("http://127.0.0.1:8787")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert "no Dask scheduler answers" in _refused(f"tcp://127.0.0.1:{silent.getsockname()[1]}")
    monkeypatch.setattr(dask_executor, "CONNECT_SECONDS", 20.0)
    cluster.scheduler()
    assert f"has no workers; start some with 'dask worker {cluster.address} --nthreads 1'" in _refused(cluster.address)


def test_nothing_runs_without_a_scheduler(
    tmp_path: Path, retrompi: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, engine: Watched
) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_SECONDS", 0.3)
    told = retrompi(*words(tmp_path / "runs.db", "--executor", "dask", "--scheduler", "tcp://127.0.0.1:1")[3:])
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert told.err.startswith("error: no Dask scheduler answers at tcp://127.0.0.1:1")
    assert not engine.calls
    assert not open_store(tmp_path / "runs.db").runs()


@pytest.mark.exhaustive
def test_a_scheduler_that_goes_away(cluster: Cluster, tmp_path: Path) -> None:
    cluster.scheduler()
    cluster.workers(2)
    location = tmp_path / "runs.db"
    with Sweep(location, "--executor", "dask", "--scheduler", cluster.address) as running:
        until(lambda: done(location) > 2)
        cluster.processes[0].kill()
        code, out, err = running.end()
    assert (code, out) == (2, "")
    assert err == f"error: the Dask scheduler {cluster.address} went away; what ended is stored: start the study again to go on\n"
    assert 2 < done(location) < POINTS


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] in ("dask", "distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with refused(UsageError, "missing-tool | distributed | 'retrompi[cluster]'"):
        DaskExecutor().__enter__()
