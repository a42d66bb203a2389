"""Signals of the process that asks: what ends it lets it first put in order what it began."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["terminated_is_interrupted"]


@contextmanager
def terminated_is_interrupted(*signals: int) -> Iterator[None]:
    """What ``signals`` (SIGTERM when none is named) end becomes KeyboardInterrupt, so that what was started is ended first."""
    if threading.current_thread() is not threading.main_thread():  # signals are somebody else's
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in signals or (signal.SIGTERM,)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
