"""The subset of TI that SimGrid's SMPI replays."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.formats import Format, Options
from retrompi.convert.losses import Losses
from retrompi.convert.ti import ONE_FILE
from retrompi.traces import files

__all__ = ["FORMAT"]


def _write(trace: Trace, out: Path, losses: Losses, options: Options) -> None:
    remarks, total = trace.smpi_losses()
    for file, line, action, reason in remarks:
        losses.add(action, reason, f"{file}:{line}")
    if total > len(remarks):
        losses.add("other calls", "beyond the first thousand", str(out), count=total - len(remarks))
    files.write(trace, out, shared=out.suffix in ONE_FILE, smpi=True)


FORMAT = Format("smpi", write=_write)
