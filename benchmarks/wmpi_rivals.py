"""Rivals for the 80 MB/s of WMPI at 256 KiB on one machine (BF-SM-06), within the physics of a copy; docs/validation.md has the outcome.

    python benchmarks/wmpi_rivals.py

All were written down before any was run. Nothing is fitted or stored, except where a rival says so: the fit in force is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from unittest.mock import patch

from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.media import BLOCK, Ring
from retrompi.spec.question import Question, pingpong

SIZES = [1024, 4096, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 4194304]
SHOWN = (65536, 262144, 524288, 4194304)


@dataclass(frozen=True)
class Rival:
    """``text`` states the mechanism, ``sets`` its overrides; ``ring``: packets of this size (B) in eight slots in place of the pool."""

    text: str
    sets: tuple[str, ...] = ()
    ring: int = 0


RIVALS = (
    Rival("in force: two copies; their working set is source, destination and pool"),
    Rival("one copy, out of the sender's memory (against E-P4-08)", ("wmpi.copies=1",)),
    Rival("string copies that do not fetch what they overwrite: 2 transfers, not 3 (not E-LM-01)", ("platform.host.copy_mem=85.5MB/s",)),
    Rival("the fastest memory in the platform's range", ("platform.host.copy_mem=90MB/s",)),
    Rival("one copy that does not fetch", ("wmpi.copies=1", "platform.host.copy_mem=85.5MB/s")),
    Rival("packets of 4 KiB through eight slots that stay in the cache", ring=4096),
    Rival("packets of 16 KiB through eight slots", ring=16384),
    Rival("packets of 4 KiB in slots, copies that do not fetch", ("platform.host.copy_mem=85.5MB/s",), ring=4096),
    Rival("a second-level cache of 512 KiB (against BF-CFG-02)", ("platform.host.l2=512KiB",)),
    Rival("a second-level cache of 1 MiB (against BF-CFG-02)", ("platform.host.l2=1MiB",)),
    Rival("the fastest second-level cache in the platform's range", ("platform.host.copy_l2=300MB/s",)),
)


def curve(rival: Rival) -> dict[int, float]:
    """Size (B) -> bandwidth (MB/s), one way, two processes on the Server."""
    cls = registry.model("wmpi")
    inner = cls.within_host

    def slots(self, p, layout):  # type: ignore[no-untyped-def]
        path = inner(self, p, layout)
        ring = Ring(("rank", "rank"), packet=rival.ring, header=p.header, slots=8, event=p.event, space_wait=BLOCK)
        return replace(path, hops=[ring])

    with patch.object(cls, "within_host", slots if rival.ring else inner):
        rows = simulate.benchmark(Question("wmpi", "nt-pair", pingpong(SIZES, reps=10), "shared", rival.sets))
    return {int(r["size_B"]): float(r["bandwidth_MBps"]) for r in rows}


def main() -> None:
    """Print a row a rival."""
    print(f"{'64 KiB':>7} {'256 KiB':>7} {'512 KiB':>7} {'4 MiB':>7}   peak")
    for rival in RIVALS:
        found = curve(rival)
        peak = max(found, key=found.__getitem__)
        print(" ".join(f"{found[s]:7.1f}" for s in SHOWN), f"{found[peak]:6.1f} at {peak // 1024:4d} KiB  {rival.text}")


if __name__ == "__main__":
    main()
