"""The origin of a trace: the file it was read from or the generator that wrote it, as plain JSON, and reading it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces import generate
from retrompi.traces.computation import Rate, at_rate
from retrompi.traces.files import UndefinedSource, read
from retrompi.traces.outcomes import read_outcomes

__all__ = ["Source", "read_again"]


@dataclass(frozen=True)
class Source:
    """A trace's ``file`` (or folder) with the arguments of `retrompi.traces.read`, or its ``generator`` with ``args``.

    ``rate``: (flop/s, who says so) of the machine that it was recorded on; ``matching``: a file that `retrompi explore` has written.
    """

    file: str = ""
    np: int | None = None
    undefined_source: UndefinedSource = "refuse"
    partial: bool = False
    rate: tuple[float, str] | None = None
    matching: str = ""
    generator: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> Trace:
        """The trace, read or generated now. Raises what `retrompi.traces.read` and the generators raise."""
        if self.generator:
            return generate.make_trace(self.generator, self.args)
        found = read(self.file, np=self.np, undefined_source=self.undefined_source, partial=self.partial)
        if self.rate is not None:
            found = at_rate(found, Rate(*self.rate))
        return read_outcomes(Path(self.matching)).apply_to(found, self.matching) if self.matching else found

    def row(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as plain JSON."""
        made = type(self)()
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in given.items() if v != getattr(made, k)}


def read_again(row: Mapping[str, Any]) -> Trace:
    """The trace that `retrompi.spec.question.Replay.row` names. Raises UsageError if it is not kept anywhere, or has changed since."""
    label, given = row.get("label", ""), dict(row.get("source", {}))
    if not given:
        raise UsageError(f"the trace '{label}' was made in memory and is not kept", code="unknown-trace")
    trace = Source(**{**given, **({"rate": tuple(given["rate"])} if given.get("rate") else {})}).read()
    if trace.sha256 != row["sha256"]:
        raise UsageError(f"the trace '{label}' is not what the run had", code="not-the-same")
    return trace
