"""The data that a model was fitted to: its sizes and its machine, read from the model's ``fit.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retrompi.measure.launch.execution import Execution
from retrompi.sim.fitted import fit_meta
from retrompi.spec import registry

__all__ = ["NOTHING_SEEN", "Seen", "seen_by"]


@dataclass(frozen=True)
class Seen:
    """``sizes``: bytes of the messages that a fit of measured curves saw; ``fitted``: whether the model is such a fit.

    ``machine``: host, cpu, cores and mpi of the measurement, as far as known.
    """

    model: str = ""
    fitted: bool = False
    sizes: frozenset[int] = frozenset()
    machine: Mapping[str, Any] = field(default_factory=dict)
    date: str = ""
    line_ns: float = 0.0
    """Nanoseconds of a cache-line transfer between the cores at the time of measurement; 0 when unknown."""

    def odd_state(self) -> str:
        """How far apart the cores are now if that differs from when the model was measured, else "". Raises BackendError without an MPI."""
        from retrompi.measure.this_machine import core_distance

        if not self.line_ns:
            return ""
        now = core_distance.line_ns()
        if core_distance.alike((now,), self.line_ns):
            return ""
        return f"a cache line took {now:.0f} ns between the cores, and {self.line_ns:.0f} ns when the model was measured"

    def apart(self, native: Execution) -> list[str]:
        """Sentences on how the machine of a native run differs from the machine that the model describes."""
        if not self.fitted:
            return [f"{self.model or 'the model'} was not fitted to this machine: its distance from native times is no error of the model"]
        if not self.machine:
            return []
        here = native.machine
        told = {} if here is None else {"host": here.host, "cpu": here.cpu, "cores": here.cores}
        told["mpi"] = native.mpi
        other = [f"{k} {self.machine[k]} is not {told[k]}" for k in ("host", "cpu", "cores", "mpi")
                 if self.machine.get(k) and told.get(k) and self.machine[k] != told[k]]
        return [f"{self.model} was fitted elsewhere ({'; '.join(other)})"] if other else []


NOTHING_SEEN = Seen()


def seen_by(model: str, *, remote: bool | None = None) -> Seen:
    """The measured messages that the fit of ``model`` used: messages inside a host (``remote`` False), between hosts (True), or both
    (None).

    Raises UsageError for an unknown model.
    """
    cls = registry.model(model)
    meta = fit_meta(cls)
    sizes = meta.get("sizes_seen")
    if not isinstance(sizes, Mapping):
        return Seen(model=cls.name)
    wanted = [v for k, v in sizes.items() if remote is None or k.startswith("remote") == remote]
    machine = meta.get("machine", {})
    return Seen(
        cls.name, True, frozenset(int(s) for part in wanted for s in part), machine if isinstance(machine, Mapping) else {},
        str(meta.get("date", "")), float(meta.get("line_ns", 0.0)),
    )
