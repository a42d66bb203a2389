"""The front page's story: a curve that collapses above 256 KiB, simulated for every position of two sliders. Runs in a job.

Its numbers come with the package (`retrompi.studio.requests.shipped_figures`): the page draws what the fingers ask for from the table of
these runs, and nothing between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retrompi.base.translate import _
from retrompi.studio.curves import runs

if TYPE_CHECKING:
    from retrompi.studio.jobs.job import Report

__all__ = ["MODE", "MODEL", "PACKET", "PACKETS", "PLATFORM", "QUANTA", "QUANTUM", "SIZES", "sets", "simulate_story"]

MODEL, PLATFORM, MODE = "wmpi", "nt-pair", "shared"
PACKET, QUANTUM = "wmpi.packet", "platform.host.quantum"
PACKETS = ("32 KiB", "48 KiB", "64 KiB", "96 KiB", "128 KiB", "192 KiB")
"""Above 192 KiB a packet takes a buffer as large as the pool, and the job is aborted."""
QUANTA = ("15 ms", "30 ms", "45 ms", "60 ms", "90 ms", "120 ms", "180 ms", "240 ms")
SIZES = (*(size for k in range(12, 22) for size in (1 << k, 3 << (k - 1))), 1 << 22)
"""From 4 KiB to 4 MiB, two of each octave."""


def sets(packet: str, quantum: str) -> list[str]:
    """The overrides of a position of the sliders, of `PACKETS` and `QUANTA`."""
    return [f"{PACKET}={packet.replace(' ', '')}", f"{QUANTUM}={quantum.replace(' ', '')}"]


def simulate_story(report: Report, places: runs.Places) -> dict[str, Any]:
    """model, platform, mode; sizes in bytes; packets and quanta as texts; rates: packet -> quantum -> MB/s of each size,
    None from where the job was aborted on (its pool of shared memory was full); stars: what the
    paper says of the curve as it was (size_B, MB/s, id, verdict)."""
    rates: list[list[list[float | None]]] = []
    with runs.open_stores(places) as stores:
        for i, packet in enumerate(PACKETS):
            report(i, len(PACKETS), _("packets of {size}").format(size=packet))
            row = []
            for quantum in QUANTA:
                found = runs.curve_of(stores, MODEL, PLATFORM, MODE, SIZES, sets(packet, quantum))
                reached = {r["size_B"]: float(f"{r['bandwidth_MBps']:.4g}") for r in found["rows"]}
                row.append([reached.get(size) for size in SIZES])
            rates.append(row)
    own = runs.curves(report, places, [(MODEL, PLATFORM, MODE)], None, [])
    points = [m for m in own["marks"] if m["shape"] == "point" and m["series"] == "bandwidth" and m["y"] is not None]
    stars = [[int(m["x0"]), m["y"], m["claim"], m["verdict"]] for m in points if SIZES[0] <= m["x0"] <= SIZES[-1]]
    return {"model": MODEL, "platform": PLATFORM, "mode": MODE, "sizes": list(SIZES), "packets": list(PACKETS), "quanta": list(QUANTA),
            "rates": rates, "stars": stars}
