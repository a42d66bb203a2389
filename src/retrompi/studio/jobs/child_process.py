"""The code that runs in a job's process. Few imports: the server that starts jobs imports it too."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from retrompi.base import translate
from retrompi.base.errors import RetrompiError
from retrompi.base.translate import _
from retrompi.spec.conditions.bounds import Bounds

__all__ = ["Allowed", "Simulating", "run", "taken_B"]

_APART = 0.05
"""Least interval of progress reports in seconds; others are left out."""


def taken_B() -> int:
    """The size of this process's address space in bytes; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return 0


def _limit(memory_B: int) -> None:
    """Limits this process to ``memory_B`` more memory than it has."""
    most = taken_B() + memory_B
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))  # no core, nor the machine's handler; a lab's box sets the same, and may not set more


@dataclass(frozen=True)
class Allowed:
    """Limits of a job: bytes of memory and of its result, and the bounds of each of its simulations."""

    memory_B: int
    result_B: int
    bounds: Bounds
    language: str = translate.ENGLISH
    """Of the words in its result."""


class Simulating:
    """A server of simulations (`retrompi.sim.worker.adopt`), all of them within ``bounds``, the engine's settings.

    It notes in ``now`` whether this process is within a simulation: only there can it be paused, since it holds no lock of a store.
    """

    def __init__(self, server: Any, now: Any, bounds: Mapping[str, float]) -> None:
        self._server, self._now, self._bounds = server, now, bounds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def simulate(self, config: Mapping[str, Any], *args: Any, **options: Any) -> dict[str, Any]:
        """As of the server."""
        tighter = {k: min(v for v in (bound, config.get(k)) if v) for k, bound in self._bounds.items() if bound}
        self._now.value = 1
        try:
            return dict(self._server.simulate({**config, **tighter}, *args, **options))
        finally:
            self._now.value = 0


def run(line: Connection, now: Any, allowed: Allowed, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Runs one job and sends progress and result over ``line``. ``now`` is a shared number, see `Simulating`."""
    from retrompi.sim import worker
    from retrompi.sim.processes import end_with_parent
    from retrompi.studies.execute.pool_worker import Forking

    # Its parent, the server process, ends when the last copy of this descriptor is closed: that of the studio, however it ends.
    if (held := getattr(forkserver._forkserver, "_forkserver_alive_fd", None)) is not None:
        os.close(held)
    end_with_parent(os.getppid())
    os.setpgid(0, 0)  # its child processes are ended with it; Ctrl-C at the terminal goes to the studio
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _limit(allowed.memory_B)
    worker.adopt(Simulating(Forking(), now, allowed.bounds.rows()))
    translate.use(allowed.language)
    last = 0.0

    def report(done: int, total: int, what: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _APART or done >= total:
            last = now
            _say(line, {"kind": "report", "done": int(done), "total": int(total), "what": str(what)[:200]})

    try:
        said = json.dumps({"kind": "done", "result": function(report, *args)}, allow_nan=False).encode()
        if len(said) > allowed.result_B:
            said = _failure_row(_("what came out is {size} MiB, more than the studio shows").format(size=len(said) >> 20))
    except RetrompiError as error:
        said = _failure_row(" ".join(str(error).split()))
    except MemoryError:
        said = _failure_row(_("needs more than {size} MiB of memory, the most a job may take here").format(size=allowed.memory_B >> 20))
    except Exception as error:
        import traceback

        traceback.print_exc()
        told = _("internal error: {name}; see the terminal of 'retrompi studio' for details")
        said = _failure_row(told.format(name=type(error).__name__))
    line.send_bytes(said)
    os._exit(0)


def _say(line: Connection, what: dict[str, Any]) -> None:
    try:
        line.send_bytes(json.dumps(what).encode())
    except OSError:
        os._exit(1)  # the receiver is gone


def _failure_row(error: str) -> bytes:
    return json.dumps({"kind": "failed", "error": error[:2000]}).encode()
