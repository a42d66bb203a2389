"""The fork server: what it refuses, what it survives, and many conversations at once."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import MODELS, job, run
from refusals import agrees, refused

from retrompi import _engine, traces
from retrompi.base.errors import EngineError, InputError
from retrompi.sim import simulate, worker
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay, pingpong
from retrompi.traces import generate

DATA = Path(__file__).parent / "data" / "traces"


@pytest.fixture
def server() -> Any:
    server = worker.ForkServer()
    yield server
    server.close()


def config(trace: Any, model: str = "wmpi", mode: str = "shared") -> dict[str, Any]:
    rows = simulate.compile_question(Resolved.of(Question(model, "nt-pair", Replay(trace), mode))).rows
    rows |= {"compute_scale": 1.0, "memory_share": 0.0}
    return rows | {"seed": 1, "limit_s": 0.0, "anatomy": False, "anatomy_rank": 0, "anatomy_from": "a", "anatomy_to": "b"}


PING = job("send 1 0 10 6", "recv 0 0 10 6")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"nonsense": 1}, "bad-input"),
        ({"seed": None}, "bad-input"),
        ({"placement": [0]}, "bad-input"),
        ({"placement": [0, 5]}, "bad-input"),
        ({"protocol_same": []}, "bad-input | 10 B"),
    ],
)
def test_a_bad_configuration_is_refused_in_one_line(server: worker.ForkServer, change: dict[str, Any], says: str) -> None:
    rows = config(PING) | {k: v for k, v in change.items() if v is not None}
    for key in (k for k, v in change.items() if v is None):
        del rows[key]
    with pytest.raises(InputError) as error:
        server.simulate(rows, PING, PING.sha256)
    agrees(error.value, says)
    assert "\n" not in str(error.value)
    assert server.simulate(config(PING), PING, PING.sha256)["outcome"] == "completed"


def test_a_missing_key_is_refused_by_name(server: worker.ForkServer) -> None:
    for key in ("hosts", "link", "same", "send_cpu", "recv_wait"):
        rows = config(PING)
        del rows[key]
        with pytest.raises(InputError, match=key):
            server.simulate(rows, PING, PING.sha256)


def test_a_simulation_that_dies_tells_its_last_words(server: worker.ForkServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The engine is replaced in the server's process by one that ends as SimGrid ends on its errors."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "from retrompi import _engine\n"
        "def dies(config, trace, further=()):\n"
        "    sys.stderr.write('first line\\nxbt_abort: the roof is on fire\\n'); sys.stderr.flush()\n"
        "    os.abort() if config['seed'] == 1 else os._exit(7)\n"
        "_engine.simulate = dies\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with refused(EngineError, "engine-died | xbt_abort") as error:
        server.simulate(config(PING), PING, PING.sha256)
    assert error.value.exit_code == 3
    with refused(EngineError, "engine-died"):
        server.simulate(config(PING) | {"seed": 2}, PING, PING.sha256)


def test_a_configuration_of_the_wrong_kind_is_no_crash(server: worker.ForkServer) -> None:
    for wrong in ({"hosts": 3}, {"same": [{}]}, {"send_cpu": "fast"}, {"placement": "ab"}):
        with pytest.raises((InputError, EngineError, TypeError)):
            server.simulate(config(PING) | wrong, PING, PING.sha256)
    assert server.simulate(config(PING), PING, PING.sha256)["outcome"] == "completed"


def test_a_server_that_was_killed_is_replaced(server: worker.ForkServer) -> None:
    first = server.simulate(config(PING), PING, PING.sha256)
    assert server._process is not None
    server._process.kill()
    server._process.wait()
    assert server.simulate(config(PING), PING, PING.sha256) | {"wall": 0} == first | {"wall": 0}


def test_a_server_forgets_old_traces_and_is_told_again(server: worker.ForkServer) -> None:
    many = [generate.pingpong([n], 2) for n in range(worker._KEPT_TRACES + 3)]
    for _ in range(2):
        for trace in many:
            assert server.simulate(config(trace), trace, trace.sha256)["outcome"] == "completed"


def test_two_servers_in_threads() -> None:
    def curve(model: str) -> list[dict[str, Any]]:
        rows = []
        for _ in range(3):
            rows = simulate.benchmark(Question(model, "nt-pair", pingpong([0, 5000, 100_000], reps=3), "distributed"))
        return rows

    with ThreadPoolExecutor(max_workers=3) as pool:
        together = list(pool.map(curve, MODELS))
    assert together == [curve(m) for m in MODELS]


def test_a_server_ends_with_its_conversation() -> None:
    server = worker.ForkServer()
    server.simulate(config(PING), PING, PING.sha256)
    process = server._process
    assert process is not None
    server.close()
    assert process.poll() is not None
    server.close()


def test_nothing_is_left_running_after_the_program() -> None:
    code = (
        "from retrompi.sim import simulate, worker\n"
        "from retrompi.spec.question import Question, pingpong\n"
        "simulate.benchmark(Question('wmpi', 'nt-pair', pingpong([0], 1), 'shared'))\n"
        "print(worker.shared_server()._process.pid)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
    assert done.stderr == ""


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int) -> bool:
    """Whether a process lives; one that ended and that nobody has asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def _until(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 300
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("who", ["the asker", "the server"])
def test_a_simulation_ends_with_whoever_wants_it(who: str) -> None:
    code = (
        "from retrompi.sim import simulate\nfrom retrompi.spec.question import Question, pingpong\n"
        "simulate.run(Question('winmpich', 'nt-pair', pingpong([1 << 20], 1_000_000)))\n"
    )
    asker = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        (server,) = _until(lambda: _children(asker.pid))
        (child,) = _until(lambda: _children(server))
        os.kill(asker.pid if who == "the asker" else server, signal.SIGKILL)
        _until(lambda: not _runs(child) and not _runs(server))
    finally:
        asker.kill()
        asker.wait()


def test_the_engine_reports_its_simgrid() -> None:
    major, minor, *_ = (int(part) for part in _engine.simgrid_version().split("."))
    assert (major, minor) >= (3, 32)


@for_each("model", MODELS)
@for_each("mode", ["shared", "distributed"])
def test_a_captured_pingpong_gives_the_curve_of_the_generator(model: str, mode: str) -> None:
    captured = traces.mark_pingpong(traces.read(DATA / "pingpong-c.tar.zst"))
    reps = {s.size: s.reps for s in traces.pingpong_sections(captured)}
    generated = generate.pingpong(reps=reps)
    curves = [simulate.rows_from_marks(run(t, model, mode)) for t in (captured, generated)]
    assert curves[0] == curves[1]
    assert [r["size_B"] for r in curves[0]] == list(generate.DEFAULT_SIZES)
    if mode == "shared":  # and in full, where it is quick
        full = traces.mark_pingpong(traces.read(DATA / "pingpong-c-full.tar.zst"))
        assert simulate.rows_from_marks(run(full, model, mode)) == simulate.benchmark(Question(model, "nt-pair", pingpong(), mode))


def test_messages_between_the_processes_survive_any_size() -> None:
    pipe = io.BytesIO()
    worker._write(pipe, ("x", list(range(100_000))))
    pipe.seek(0)
    assert worker._read(pipe) == ("x", list(range(100_000)))
    with pytest.raises(EOFError):
        worker._read(io.BytesIO(b"\x01\x02"))
    with pytest.raises(EOFError):
        worker._read(io.BytesIO(worker._HEAD.pack(99) + pickle.dumps(1)))


def test_the_simulations_of_a_group_end_and_others_go_on() -> None:
    ended: list[str] = []
    group = worker.Group()

    def long() -> None:
        with group:
            try:
                simulate.run(Question("winmpich", "nt-cluster*16", Replay(generate.halo(16, 10_000, 8192))))
            except EngineError as error:
                ended.append(str(error))
            with refused(EngineError, "stopped"):
                simulate.benchmark(Question("wmpi", "nt-pair", pingpong([0]), "shared"))
        ended.append(str(len(simulate.benchmark(Question("wmpi", "nt-pair", pingpong([0]), "shared")))))

    thread = threading.Thread(target=long)
    thread.start()
    time.sleep(1.0)
    group.end()
    assert len(simulate.benchmark(Question("wmpi", "nt-pair", pingpong([0]), "shared"))) == 1  # of another thread
    thread.join(300)
    assert ended[1:] == ["1"]
    assert not thread.is_alive()
