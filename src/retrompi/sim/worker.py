"""Simulations in a process of their own: a fork server.

SimGrid allows one simulation per process and terminates the process on errors. A small server process loads the engine once and receives
the trace once (as an unlinked file, which is read on demand). A short simulation runs in the server itself, since a fork costs more than
a PingPong (5 to 15 ms). For a long one, for one on SimGrid's network, for one that is bounded in time, and for one that has crashed the
server, it forks a child, which returns its result through a pipe; the death of a child raises `EngineError` with the last line that it
wrote.
"""

from __future__ import annotations

import atexit
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

from retrompi.base.errors import EngineError, InputError
from retrompi.sim import repetitions
from retrompi.sim.processes import end_with_parent, end_with_pipe, kill_group, last_words
from retrompi.spec.conditions.bounds import MEMORY_B
from retrompi.spec.conditions.network_model import by_simgrid

__all__ = ["ForkServer", "Group", "Stopped", "adopt", "answer", "fork_simulation", "needs_fork", "result_of", "shared_server",
           "simulate_in_process"]

INSIDE = 250_000
"""Maximum number of a trace's actions for a simulation without a fork, which then mostly takes less than a second."""
RANKS_INSIDE = 256
"""Maximum number of ranks for a simulation without a fork, which gives back its memory."""
GRACE_S = 5.0
"""How long after its bound on wall time a simulation is waited for: the engine looks at the clock between events."""

_HEAD = struct.Struct("<Q")
_KEPT_TRACES = 8
_KEPT_BYTES = 400 << 20  # total size of the trace files; the newest is kept regardless of its size


class _ServerEnded(EngineError):
    """The server is gone: a simulation has crashed it, or it was killed."""


class Stopped(EngineError):
    """A simulation that passed its bound on wall time within one event was killed; nothing that it computed is left."""


def patience(config: Mapping[str, Any]) -> float | None:
    """Seconds after which a simulation is killed; None: never."""
    wall = float(config.get("wall_limit", 0.0))
    return wall + GRACE_S if wall > 0 else None


def needs_fork(config: Mapping[str, Any], traces: Sequence[Any]) -> bool:
    """Whether a run must have a process of its own: it is long or of many ranks, is bounded in time or in memory (of which a process that
    has simulated before keeps some), or calls SimGrid (for its network or for the routes of a platform file), which can be done once in
    the life of a process."""
    if patience(config) is not None or config.get("memory_limit", MEMORY_B) != MEMORY_B:
        return True
    if sum(t.actions for t in traces) > INSIDE or sum(t.ranks for t in traces) > RANKS_INSIDE:
        return True
    return by_simgrid(str(config.get("wire"))) or not isinstance(link := config.get("link"), Mapping) or bool(link.get("file"))


def stop_message(config: Mapping[str, Any]) -> str:
    """The message of `Stopped`."""
    return f"the bound of {config['wall_limit']:g} s of wall time is reached within one event"


def _write(pipe: IO[bytes], message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_HEAD.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    (size,) = _HEAD.unpack(head)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def _save_trace(trace: Any) -> str:
    """The path of a new temporary file with the trace."""
    handle, path = tempfile.mkstemp(prefix="retrompi-trace-")
    os.close(handle)
    try:
        trace.save(path)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
    return path


class ForkServer:
    """A server process and the communication with it; `simulate` is serialized by a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._known: set[str] = set()
        self._killed = False
        self.spent: dict[str, float] = {}
        """Resources of the last simulation: ``cpu_s`` (user and system) and ``peak_B`` (resident memory) of its process."""

    def simulate(self, config: dict[str, Any], trace: Any, key: str, further: Sequence[Any] = ()) -> dict[str, Any]:
        """The engine's answer for one configuration. ``key`` identifies the trace, which is sent once and then cached.

        ``further`` are the traces of the jobs beside the first one.

        Raises InputError if the engine rejects its input, TypeError if a value has a type that it does not take, EngineError if the
        simulation died, Stopped if it had to be killed.
        """
        try:
            return self._simulate(config, trace, key, further, apart=False)
        except _ServerEnded:
            if self._killed:
                raise
            return self._simulate(config, trace, key, further, apart=True)  # the child's last words say why

    def _simulate(self, config: dict[str, Any], trace: Any, key: str, further: Sequence[Any], apart: bool) -> dict[str, Any]:
        with self._lock:
            process = self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            sent: list[str] = []
            wanted = {key: trace, **{t.sha256: t for t in further}}
            try:
                kind: str = "forgotten"
                answer: Any = None
                while kind == "forgotten":  # the server has dropped a trace from its cache
                    for name in wanted.keys() - self._known:
                        sent.append(_save_trace(wanted[name]))
                        _write(process.stdin, ("trace", name, sent[-1], len(wanted)))
                        self._known.add(name)
                    _write(process.stdin, ("run", [key, *(t.sha256 for t in further)], config, apart))
                    kind, answer = _read(process.stdout)
                    if kind == "forgotten":
                        self._known -= set(answer)
            except (EOFError, BrokenPipeError):
                self.close()
                raise _ServerEnded("the simulation server ended; run the command again") from None
            except BaseException:
                self.close()  # otherwise the pending answer would be read as that of the next simulation
                raise
            finally:
                for path in sent:  # the server has opened it, or has failed
                    Path(path).unlink(missing_ok=True)
        found = result_of(kind, answer)
        self.spent = found.pop("spent")
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._known.clear()
            self._killed = False
            # Its own process group: Ctrl-C at a terminal reaches only this process, which then stops the server and its child.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "retrompi.sim.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
            )
        group: Group | None = getattr(_local, "group", None)
        if group is not None and group.ended:
            self.close()
            raise EngineError("simulations were stopped", code="stopped")
        return self._process

    def kill(self) -> None:
        """Kills the server and its simulation; a waiting `simulate` raises EngineError."""
        self._killed = True
        self._end_process()

    def _end_process(self) -> None:
        if self._process is not None and self._process.poll() is None:
            kill_group(self._process.pid)

    def close(self) -> None:
        """Ends the server; the next simulation starts another."""
        if self._process is not None:
            self._end_process()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
            self._process.wait()
            self._process = None


_local = threading.local()


class Group:
    """Threads whose simulations can be ended together. A thread belongs to it within ``with group:``, or from `join` on."""

    def __init__(self) -> None:
        self._servers: WeakSet[ForkServer] = WeakSet()
        self._ended = threading.Event()

    @property
    def ended(self) -> bool:
        """Whether its simulations were ended; it refuses new ones."""
        return self._ended.is_set()

    def join(self) -> None:
        """The calling thread belongs to it, to its end: for the ``initializer`` of a pool."""
        _local.group = self
        if (server := getattr(_local, "server", None)) is not None:
            self._servers.add(server)

    def end(self) -> None:
        """Ends the simulations of its threads, from any thread; their callers get an EngineError."""
        self._ended.set()
        for server in list(self._servers):
            server.kill()

    def __enter__(self) -> Group:
        self._before = getattr(_local, "group", None)
        self.join()
        return self

    def __exit__(self, *what: object) -> None:
        _local.group = self._before
        if self.ended and (server := getattr(_local, "server", None)) is not None:
            server.close()  # waits for its end: the thread's next simulation starts another


def shared_server() -> ForkServer:
    """The server of the calling thread, started by its first simulation and ended with the process."""
    server: ForkServer | None = getattr(_local, "server", None)
    if server is None:
        server = _local.server = ForkServer()
        if (group := getattr(_local, "group", None)) is not None:
            group._servers.add(server)
        atexit.register(server.close)
    return server


def adopt(server: Any) -> None:
    """Use ``server``, an object with `ForkServer.simulate`, for the simulations of the calling thread."""
    _local.server = server


def result_of(status: str, result: Any) -> dict[str, Any]:
    """The result of `simulate_in_process`, with what it ``spent``. Raises what the status says, as `ForkServer.simulate`."""
    if status == "ok":
        return dict(result)
    if status == "refused":
        raise InputError(result)
    if status == "defect":
        raise repetitions.RepetitionDefect(result)
    if status == "unfit":
        raise TypeError(f"a value of the configuration has a wrong type: {result}")
    if status == "stopped":
        raise Stopped(result)
    raise EngineError(f"the simulation died: {result}")


def simulate_in_process(config: dict[str, Any], traces: Sequence[Any]) -> tuple[str, Any]:
    """(status, result) of a simulation in this process. The result has what it ``spent``: seconds of processor time and the process'
    peak of resident memory."""
    from retrompi import _engine

    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        result = repetitions.simulate(config, traces)
    except _engine.ConfigError as error:
        return "refused", str(error)
    except repetitions.RepetitionDefect as error:
        return "defect", str(error)
    except (TypeError, ValueError, KeyError, OverflowError) as error:  # of the conversion to C++: a value of a wrong type or size
        return "unfit", f"{type(error).__name__}: {error}"
    except RuntimeError as error:
        if not str(error).startswith("Unable to cast"):
            raise
        return "unfit", str(error).partition(" to C++")[0]
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return "ok", result | {"spent": {"cpu_s": cpu_s, "peak_B": _peak_B()}}


def _peak_B() -> int:
    """The most resident memory that this process has had. ``ru_maxrss`` has that of the process that started it as well."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def answer(config: dict[str, Any], traces: Sequence[Any], out: int) -> None:
    """In the forked child: simulate and write the pickled (status, result) to the descriptor ``out``."""
    reply = simulate_in_process(config, traces)
    with os.fdopen(out, "wb") as pipe:
        pickle.dump(reply, pipe, protocol=pickle.HIGHEST_PROTOCOL)


def fork_simulation(config: dict[str, Any], traces: Sequence[Any], errors: int, foreign: int | None = None) -> tuple[int, int]:
    """(pid, descriptor of its answer) of a forked child that simulates and exits, at the latest with this process.

    Its stderr goes to the descriptor ``errors``. It closes ``foreign``, a descriptor whose other end detects the end of this process.
    """
    me = os.getpid()
    incoming, outgoing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            end_with_parent(me)
            os.close(incoming)
            if foreign is not None:
                os.close(foreign)
            os.dup2(errors, 2)
            answer(config, traces, outgoing)
            code = 0
        except BaseException as error:  # every error must reach the parent
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    os.close(outgoing)
    return pid, incoming


def told_before(answer: int, asker: int | None, seconds: float | None) -> bool | None:
    """Wait until the descriptor ``answer`` is readable; False if the other end of ``asker`` is closed first: the client is gone; None
    after ``seconds``, without time in which this process was stopped."""
    both = select.poll()
    both.register(answer, select.POLLIN)
    if asker is not None:
        both.register(asker, 0)  # only hang-up
    left = seconds
    ready: list[tuple[int, int]] = []
    while not ready:
        if left is not None and left <= 0:
            return None
        began = time.monotonic()
        ready = both.poll(None if left is None else min(left, 1.0) * 1e3)
        if left is not None:
            left -= min(time.monotonic() - began, 2.0)
    return any(descriptor == answer for descriptor, _ in ready)


def _serve() -> None:
    from retrompi import _engine

    inbox, outbox = sys.stdin.buffer, sys.stdout.buffer
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    traces: OrderedDict[str, Any] = OrderedDict()
    sizes: dict[str, int] = {}
    while True:
        try:
            message = _read(inbox)
        except EOFError:
            return
        if message[0] == "trace":
            _, key, file, together = message
            traces[key] = _engine.Trace.open(file)
            sizes[key] = Path(file).stat().st_size
            Path(file).unlink()  # still open: a run reads from it on demand, so it need not fit into memory
            while len(traces) > max(_KEPT_TRACES, together) or (len(traces) > together and sum(sizes[k] for k in traces) > _KEPT_BYTES):
                traces.popitem(last=False)
            continue
        _, keys, config, apart = message
        for key in traces.keys() & set(keys):
            traces.move_to_end(key)
        if gone := [key for key in keys if key not in traces]:
            _write(outbox, ("forgotten", gone))
            continue
        wanted = [traces[key] for key in keys]
        if not apart and not needs_fork(config, wanted):
            os.dup2(nowhere, 2)  # if it crashes, it is repeated in a child, whose last words are passed on
            with end_with_pipe(inbox.fileno()):  # the client waits for the answer: it closes the pipe or is gone, however it ended
                reply = simulate_in_process(config, wanted)
            os.dup2(stderr, 2)
            _write(outbox, reply)
            continue
        with tempfile.TemporaryFile() as errors:
            pid, incoming = fork_simulation(config, wanted, errors.fileno())
            with os.fdopen(incoming, "rb") as pipe:
                told = told_before(pipe.fileno(), inbox.fileno(), patience(config))
                if not told:
                    os.kill(pid, signal.SIGKILL)
                    if told is not None:
                        return
                data = pipe.read()
            _, status = os.waitpid(pid, 0)
            if told is None:
                _write(outbox, ("stopped", stop_message(config)))
            elif status == 0 and data:
                outbox.write(_HEAD.pack(len(data)))
                outbox.write(data)
                outbox.flush()
            else:
                errors.seek(0)
                _write(outbox, ("died", last_words(os.waitstatus_to_exitcode(status), errors.read())))


if __name__ == "__main__":
    try:
        _serve()
    except BrokenPipeError:  # the client is gone, and with it whoever wants the answer
        os._exit(1)
