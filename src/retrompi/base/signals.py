"""Termination signals as KeyboardInterrupt, so that a process can clean up before it exits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["terminated_is_interrupted", "termination_handled"]


def terminated_is_interrupted() -> AbstractContextManager[None]:
    """While active, SIGTERM and SIGHUP raise KeyboardInterrupt, so that child processes are stopped first."""
    def interrupt(_number: int) -> None:
        raise KeyboardInterrupt

    return termination_handled(interrupt)


@contextmanager
def termination_handled(handler: Callable[[int], object]) -> Iterator[None]:
    """While active, SIGTERM and SIGHUP call ``handler`` with their number. What is ignored remains so, as SIGHUP under ``nohup``."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may install handlers
        yield
        return

    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    previous = {number: signal.signal(number, lambda number, _frame: handler(number)) for number in heard}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
