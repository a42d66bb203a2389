"""One simulation per process: a fork server.

SimGrid allows one simulation in the life of a process and ends the process on its errors. A small server process loads
the engine once, is told the trace once (by an unlinked file, from which a child reads what it comes to), and forks a child
for every simulation (a few milliseconds); what the child says comes back over a pipe, and a child that dies becomes an
`EngineError` with its last words.
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
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

from retrompi.base.errors import EngineError, InputError
from retrompi.sim.processes import end_with_parent, kill_group, last_words

__all__ = ["ForkServer", "adopt", "answer", "begun", "halt", "resume", "shared_server"]

_HEAD = struct.Struct("<Q")
_KEPT_TRACES = 8
_KEPT_BYTES = 400 << 20  # of their files; the newest is kept whatever its size


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


def _saved(trace: Any) -> str:
    """The path of a new file with a trace in it."""
    handle, path = tempfile.mkstemp(prefix="retrompi-trace-")
    os.close(handle)
    try:
        trace.save(path)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
    return path


class ForkServer:
    """A server process and the conversation with it. Not shared between threads without its lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._known: set[str] = set()
        self.spent: dict[str, float] = {}
        """Of the last simulation: ``cpu_s`` (user and system) and ``peak_B`` (resident memory) of its process."""

    def simulate(self, config: dict[str, Any], trace: Any, key: str, further: Sequence[Any] = ()) -> dict[str, Any]:
        """The engine's answer for one configuration. ``key`` names the trace: it is sent once, then remembered.

        ``further`` are the traces of the jobs beside the first one.

        Raises InputError for what the engine refuses and EngineError when the simulation died.
        """
        with self._lock:
            process = self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            sent: list[str] = []
            wanted = {key: trace, **{t.sha256: t for t in further}}
            try:
                kind: str = "forgotten"
                answer: Any = None
                while kind == "forgotten":  # the server keeps the newest traces only
                    for name in wanted.keys() - self._known:
                        sent.append(_saved(wanted[name]))
                        _write(process.stdin, ("trace", name, sent[-1], len(wanted)))
                        self._known.add(name)
                    _write(process.stdin, ("run", [key, *(t.sha256 for t in further)], config))
                    kind, answer = _read(process.stdout)
                    if kind == "forgotten":
                        self._known -= set(answer)
            except (EOFError, BrokenPipeError):
                self.close()
                raise EngineError("the simulation server ended; run the command again") from None
            except BaseException:
                self.close()  # or the answer that nobody waits for any more would be taken for the next one's
                raise
            finally:
                for path in sent:  # the server has opened it, or never will
                    Path(path).unlink(missing_ok=True)
        if kind == "ok":
            self.spent = answer.pop("spent")
            return dict(answer)
        if kind == "refused":
            raise InputError(answer)
        raise EngineError(f"the simulation died: {answer}")

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._known.clear()
            # A group of its own: Ctrl-C at a terminal is for the one who asked, who then stops the server and its child.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "retrompi.sim.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
            )
        if _halted.is_set():
            self.close()
            raise EngineError("simulations were stopped", code="stopped")
        return self._process

    def kill(self) -> None:
        """Ends the server and what it simulates; whoever waits for it is told that it ended."""
        if self._process is not None and self._process.poll() is None:
            kill_group(self._process.pid)

    def close(self) -> None:
        """Ends the server; the next simulation starts another."""
        if self._process is not None:
            self.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
            self._process.wait()
            self._process = None


_local = threading.local()
_servers: WeakSet[ForkServer] = WeakSet()
_halted = threading.Event()


def halt() -> None:
    """Ends every simulation of this process, in whichever thread, and refuses new ones until `resume`."""
    _halted.set()
    for server in list(_servers):
        server.kill()


def resume() -> None:
    """Allows simulations again."""
    _halted.clear()


def shared_server() -> ForkServer:
    """The calling thread's server, started with its first simulation and ended with the process."""
    server: ForkServer | None = getattr(_local, "server", None)
    if server is None:
        server = _local.server = ForkServer()
        _servers.add(server)
        atexit.register(server.close)
    return server


def adopt(server: Any) -> None:
    """Has the calling thread's simulations done by ``server``, which has `ForkServer.simulate`."""
    _local.server = server


def answer(config: dict[str, Any], traces: Sequence[Any], out: int) -> None:
    """The forked child: simulate, answer, leave without any clean-up of what it shares with its parent."""
    from retrompi import _engine

    try:
        told = _engine.simulate(config, traces[0], traces[1:])
        used = resource.getrusage(resource.RUSAGE_SELF)
        told["spent"] = {"cpu_s": used.ru_utime + used.ru_stime, "peak_B": used.ru_maxrss << 10}
        said: tuple[str, Any] = ("ok", told)
    except _engine.ConfigError as error:
        said = ("refused", str(error))
    with os.fdopen(out, "wb") as pipe:
        pickle.dump(said, pipe, protocol=pickle.HIGHEST_PROTOCOL)


def begun(config: dict[str, Any], traces: Sequence[Any], errors: int, foreign: int | None = None) -> tuple[int, int]:
    """(process, descriptor of its answer) of a forked child that simulates and ends, at the latest with this process.

    What it says on stderr goes to ``errors``. It does not keep the descriptor ``foreign``, whose other end listens for this process's end.
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
        except BaseException as error:  # the parent must hear of anything
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    os.close(outgoing)
    return pid, incoming


def _told_before_hanging_up(answer: IO[bytes], asker: IO[bytes]) -> bool:
    """Wait until ``answer`` can be read; False when the other end of ``asker`` is closed first: nobody waits any more."""
    both = select.poll()
    both.register(answer, select.POLLIN)
    both.register(asker, 0)  # no events but its being closed
    return any(descriptor == answer.fileno() for descriptor, _ in both.poll())


def _serve() -> None:
    from retrompi import _engine

    inbox, outbox = sys.stdin.buffer, sys.stdout.buffer
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
            Path(file).unlink()  # it stays open: what is read from it during a run need not fit into memory
            while len(traces) > max(_KEPT_TRACES, together) or (len(traces) > together and sum(sizes[k] for k in traces) > _KEPT_BYTES):
                traces.popitem(last=False)
            continue
        _, keys, config = message
        for key in traces.keys() & set(keys):
            traces.move_to_end(key)
        if gone := [key for key in keys if key not in traces]:
            _write(outbox, ("forgotten", gone))
            continue
        with tempfile.TemporaryFile() as errors:
            pid, incoming = begun(config, [traces[key] for key in keys], errors.fileno())
            with os.fdopen(incoming, "rb") as pipe:
                if not _told_before_hanging_up(pipe, inbox):
                    os.kill(pid, signal.SIGKILL)
                    return
                data = pipe.read()
            _, status = os.waitpid(pid, 0)
            if status == 0 and data:
                outbox.write(_HEAD.pack(len(data)))
                outbox.write(data)
                outbox.flush()
            else:
                errors.seek(0)
                _write(outbox, ("died", last_words(os.waitstatus_to_exitcode(status), errors.read())))


if __name__ == "__main__":
    _serve()
