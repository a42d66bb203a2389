"""The subset of TI that SimGrid's SMPI replays."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.formats import Format, Options
from retrompi.convert.losses import PLACES, Losses
from retrompi.convert.ti import ONE_FILE
from retrompi.traces import files

__all__ = ["FORMAT"]


def _write(trace: Trace, out: Path, losses: Losses, options: Options) -> None:
    remarks, counts = trace.smpi_losses()
    places: dict[tuple[str, str], list[str]] = {}
    for file, line, action, reason in remarks:
        places.setdefault((action, reason), []).append(f"{file}:{line}")
    for action, reason, omitted, count in counts:
        losses.add(action, reason, places.get((action, reason), [])[:PLACES], "lost" if omitted else "approximated", count)
    files.write(trace, out, shared=out.suffix in ONE_FILE, smpi=True)


FORMAT = Format("smpi", write=_write)
