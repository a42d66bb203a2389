"""What every run may be given, and the question that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from retrompi.api.frames import opened, texts
from retrompi.base.errors import UsageError
from retrompi.base.units import parse, parse_sizes
from retrompi.sim.resolved import Resolved
from retrompi.spec import needs, registry
from retrompi.spec.network_model import NATIVE
from retrompi.spec.placements import NATURAL
from retrompi.spec.question import OPTIONS, Question, Workload

if TYPE_CHECKING:
    from retrompi.store import Store

__all__ = ["Options", "Size", "Where", "as_bytes", "as_seconds", "as_sizes", "asked_of"]

Size = int | str


class Options(TypedDict, total=False):
    """What every run may be given, by name. The defaults are those of the commands.

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


@dataclass(frozen=True)
class Where:
    """A question's store, and whether stored runs are used."""

    store: Store
    fresh: bool


def as_bytes(size: Size) -> int:
    """One size in bytes."""
    if isinstance(size, int):
        return size
    found = parse_sizes(size)
    if len(found) != 1:
        raise UsageError(f"'{size}' is not one size", code="bad-size")
    return found[0]


def as_sizes(sizes: Size | Sequence[Size] | None) -> list[int] | None:
    """Sizes in bytes, from one, a list or a text such as ``"1KiB..1MiB:x2"``. UsageError for anything else."""
    if sizes is None:
        return None
    return parse_sizes(list(sizes) if isinstance(sizes, Iterable) and not isinstance(sizes, str) else sizes)


def as_seconds(value: str | float) -> float:
    """A time in seconds, from a number or a text with a unit."""
    return parse(value, "s") if isinstance(value, str) else float(value)


def asked_of(model: str | Path, platform: str | Path | None, workload: Workload, given: Options, **more: Any) -> tuple[Resolved, Where]:
    """The question with its names looked up, and its store; UsageError for what is wrong in it, before a store is made. ``platform``
    None: the model's own. ``given`` are options of every run, ``more`` those of a trace (`OPTIONS`)."""
    options: dict[str, Any] = {"mode": NATURAL, "network": NATIVE, **{k: v for k, v in given.items() if k in OPTIONS}, **more}
    options |= {"model": str(model), "platform": registry.own_platform(str(model)) if platform is None else str(platform)}
    options |= {"set": texts(options.get("set", {})), "what_if_hardware": options.get("what_if_hardware", False) or needs.asked()}
    asked = Resolved.of(Question.asking(workload, options))
    return asked, Where(opened(given.get("store")), given.get("fresh", False))
