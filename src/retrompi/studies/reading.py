"""What is known of one point of an answer: its number, or why it has none, and the run it is from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """``value`` in base units of the metric, None where the run did not complete; ``reason`` says why. ``found``: not simulated now."""

    value: float | None
    run_id: int | None = None
    outcome: str = "completed"
    reason: str = ""
    found: bool = False

    def told(self) -> str:
        """How it ended, in a few words."""
        return self.outcome if not self.reason else f"{self.outcome}: {self.reason}"
