"""From the options of a run to its `Question`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.api.frames import as_store, texts
from retrompi.api.options import Options
from retrompi.base.errors import UsageError
from retrompi.base.units import parse, parse_sizes
from retrompi.sim.resolved import Resolved
from retrompi.spec import needs, registry
from retrompi.spec.conditions.network_model import NATIVE
from retrompi.spec.machine.placements import NATURAL
from retrompi.spec.question import OPTIONS, Question, Workload

if TYPE_CHECKING:
    from retrompi.store import Store

__all__ = ["Size", "Where", "as_bytes", "as_seconds", "as_sizes", "asked_of"]

Size = int | str


@dataclass(frozen=True)
class Where:
    """The store of a question, and whether runs found in it are used."""

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
    """The question, with its names looked up, and its store. Raises UsageError for a wrong option before the store is opened. ``platform``
    None: the model's own. ``given`` are options of every run, ``more`` those of a trace (`OPTIONS`)."""
    options: dict[str, Any] = {"mode": NATURAL, "network": NATIVE, **{k: v for k, v in given.items() if k in OPTIONS}, **more}
    options |= {"model": str(model), "platform": registry.own_platform(str(model)) if platform is None else str(platform)}
    options |= {"set": texts(options.get("set", {})), "what_if_hardware": options.get("what_if_hardware", False) or needs.allows_fiction()}
    asked = Resolved.of(Question.asking(workload, options))
    return asked, Where(as_store(given.get("store")), given.get("fresh", False))
