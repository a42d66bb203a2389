"""Termination signals as KeyboardInterrupt, so that a process can clean up before it exits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["terminated_is_interrupted"]


@contextmanager
def terminated_is_interrupted(*signals: int) -> Iterator[None]:
    """While active, each of ``signals`` (default SIGTERM and SIGHUP) raises KeyboardInterrupt, so that child processes are stopped first.

    What is ignored remains so, as SIGHUP under ``nohup``.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may install handlers
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    heard = [number for number in signals or (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    previous = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
