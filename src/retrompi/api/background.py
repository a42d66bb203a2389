"""Waiting for a function of the interface in an asynchronous program."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

from retrompi.api.frames import reporting
from retrompi.base.errors import UsageError

__all__ = ["in_background"]

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _threads() -> ThreadPoolExecutor:
    """A thread for each processor: each waits for a simulation in a process of its own."""
    from retrompi.sim.processes import processors

    return ThreadPoolExecutor(processors(), thread_name_prefix="retrompi")


async def in_background(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a ``function`` of this interface without blocking the event loop; ``await`` gives what the function returns.

    As many run at a time as there are processors; others wait. Cancelling the task kills its simulation, and ends a study or draws after
    the run under way; what is stored stays. Raises what the function raises.

    >>> curve = await retrompi.in_background(retrompi.pingpong, "wmpi", mode="shared")    # curve.time(size): s
    >>> sure = await retrompi.in_background(curve.uncertainty, 0.9)
    """
    from retrompi.sim.worker import Group

    if not callable(function):
        raise UsageError(f"in_background: 'function' is a function, not {function!r}", code="wrong-type")
    group = Group()

    def work() -> R:
        with group:
            if "progress" not in inspect.signature(function).parameters:
                return function(*args, **kwargs)
            try:
                given = inspect.signature(function).bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # which says what is wrong
            with reporting(given.arguments.get("progress"), function.__name__) as told:

                def report(done: int, total: int, what: str = "") -> None:
                    if group.ended:
                        raise asyncio.CancelledError
                    told(done, total, what)

                given.arguments["progress"] = report
                return function(*given.args, **given.kwargs)

    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), work)
    except asyncio.CancelledError:
        group.end()
        raise
