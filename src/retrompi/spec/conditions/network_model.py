"""The networks that can carry a run's frames: the engine's own laws, and those of SimGrid.

=================== =====================================================================================================================
``native``          the engine's own: frames queue at each link at fidelity ``mechanism``, flows share links at the levels below
``fluid``           the engine's own flows with max-min fair shares everywhere: the law that SimGrid's plain flows have too
``simgrid``         SimGrid's links and routes under plain flows, without its corrections for TCP, which the engine simulates itself
``simgrid:MODEL``   one of SimGrid's network models with SimGrid's own parameters
=================== =====================================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from retrompi.base.errors import UsageError, nearest

__all__ = ["FLUID", "MODELS", "NAMES", "NATIVE", "by_simgrid", "network_in_use", "parse", "using"]

NATIVE, FLUID, _SIMGRID = "native", "fluid", "simgrid"
MODELS = ("CM02", "IB", "LV08", "SMPI", "raw")
"""SimGrid's network models, of 3.32 and 4.1 together (``--help-models`` of its programs); the engine refuses what the installed one lacks.

Two of its list are missing, as neither can carry a platform's links: Constant, which refuses them, and ns-3, which most builds lack.
"""
NAMES = (NATIVE, FLUID, _SIMGRID, *(f"{_SIMGRID}:{m}" for m in MODELS))


def parse(text: str) -> str:
    """``text`` if it names a network; else raises UsageError, suggesting the nearest name."""
    if text not in NAMES:
        raise UsageError(f"no network '{text}'{nearest(text, NAMES, len(NAMES))}", code="unknown-name")
    return text


def by_simgrid(network: str) -> bool:
    """Whether SimGrid carries the frames of a run over this network."""
    return network.partition(":")[0] == _SIMGRID


_used: list[str] = []


def network_in_use(named: str = NATIVE) -> str:
    """The network of a question that names none, or of a scenario whose file names one: that of the innermost `using`, else ``named``."""
    return _used[-1] if _used else parse(named)


@contextmanager
def using(network: str) -> Iterator[None]:
    """In the body, questions that name no network, and scenarios, are about this one, in every thread of this process.

    Papers, labs and commands ask many questions each; what carries the frames is decided once, for all of them.
    """
    _used.append(parse(network))
    try:
        yield
    finally:
        _used.pop()
