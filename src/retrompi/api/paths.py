"""The critical path of a run: its stages, the slack beside it, and the sensitivity of the run's time to a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrompi.api.frames import Row, Table
from retrompi.base.units import PS

if TYPE_CHECKING:
    from retrompi.sim import critical_path
    from retrompi.sim.cautions import Caution
    from retrompi.sim.resolved import Resolved

__all__ = ["CriticalPath", "path_of"]


@dataclass(frozen=True, repr=False)
class CriticalPath(Table):
    """The chain of delays from the start of a run to its end: rows stage, who, ps, seconds, share (0 to 1), pieces; the picoseconds sum to
    the run's time exactly.

    >>> path = retrompi.replay("examples/traces/jacobi-4.tar.zst", "wmpi", "nt-cluster").path()
    >>> sum(row["ps"] for row in path.rows) == path.took    # ps
    True
    """

    asked: str
    recorded: critical_path.CriticalPath
    cautions: tuple[Caution, ...] = ()
    """Of its run."""

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about the run, as the command prints them."""
        return self.cautions

    @property
    def title(self) -> str:
        """The run in a few words, e.g. for a heading."""
        return f"the critical path of {self.asked}"

    @property
    def took(self) -> int:
        """The length of the path: the run's time (ps)."""
        return self.recorded.took

    @property
    def rows(self) -> Sequence[Row]:
        """stage, who (a process; a host, for its kernel and card; the wire), ps, seconds (s), share, pieces; the largest first."""
        whole = self.took or 1
        return [
            {"stage": s.stage, "who": s.who, "ps": s.ps, "seconds": s.ps * PS, "share": s.ps / whole, "pieces": s.pieces}
            for s in self.recorded.shares()
        ]

    @property
    def slacks(self) -> Sequence[Row]:
        """stage, who, on_path_ps, beside_ps, parts_beside, least_slack_ps: how much later (ps) what is beside the path could be without
        making the run longer, to first order; None where nothing waits for it. The least first."""
        return [
            {"stage": s.stage, "who": s.who, "on_path_ps": s.on_path, "beside_ps": s.beside, "parts_beside": s.parts,
             "least_slack_ps": s.least}
            for s in self.recorded.slacks()
        ]

    def difference(self, other: CriticalPath) -> list[dict[str, Any]]:
        """Why ``other`` takes longer: rows stage, a_ps (here), b_ps (there), ps; the ps sum to the difference of the times exactly."""
        from retrompi.sim.critical_path import difference

        return [{"stage": d.stage, "a_ps": d.a, "b_ps": d.b, "ps": d.ps} for d in difference(self.recorded, other.recorded)]


def path_of(asked: Resolved) -> CriticalPath:
    """The critical path of a question's run, which is run again to record it. Raises SimulationEnded if it does not complete."""
    from retrompi.sim import simulate
    from retrompi.sim.cautions import of_run
    from retrompi.sim.observe import Observe

    result = simulate.run(asked, Observe(critical_path=True))
    simulate.require_completed(result, asked.question.title)
    return CriticalPath(asked.question.title, result.recorded_path, tuple(of_run(asked, result.cautions)))
