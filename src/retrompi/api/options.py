"""Options common to every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from retrompi.store import Store

__all__ = ["Options"]


class Options(TypedDict, total=False):
    """Options common to every run, as keyword arguments. The defaults are those of the commands.

    >>> slow: retrompi.Options = {"set": {"platform.link.bandwidth": "1 Mbps"}}
    >>> curve = retrompi.pingpong("wmpi", sizes="64 KiB", reps=2, **slow)
    >>> round(curve.time("64 KiB"), 1)    # s
    0.6
    """

    mode: str
    """Placement of the ranks: ``natural`` (default), ``shared``, ``distributed``, ``block``, ``cyclic``, or hosts."""
    set: Mapping[str, str | float]
    """Overrides of parameters: ``{"wmpi.packet": "1 MiB", "platform.host.quantum": "20 ms"}``."""
    seed: int
    """Seed of the random numbers (default: 1)."""
    fidelity: Literal["mechanism", "curve", "loggp"]
    """Level of detail (default: mechanism)."""
    network: str
    """The network's law: ``native`` (default), ``fluid``, ``simgrid`` or ``simgrid:MODEL``."""
    traffic: Sequence[str]
    """Cross traffic: ``["any 2Mbps 1500B poisson"]``."""
    failures: Sequence[str]
    """Components that are down: ``["link server@1s..2s"]``."""
    time_limit: str | float
    """Simulated time after which the job ends, as text with a unit or in seconds."""
    what_if_hardware: bool
    """Whether to accept a platform on which the runtime cannot have run (default: no)."""
    store: Store | Path | str | None
    """Store of runs (default: as for the commands)."""
    fresh: bool
    """Whether to simulate even if an identical run is stored."""
