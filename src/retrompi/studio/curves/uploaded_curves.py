"""The curves of an uploaded file as overlays of the curve explorer. Runs in jobs, since the file is untrusted."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError
from retrompi.base.translate import _, lazy, ngettext
from retrompi.base.units import format_bytes

if TYPE_CHECKING:
    from retrompi.measure.curves import Measured

__all__ = ["LARGEST_B", "MOST_CURVES", "MOST_POINTS", "read_overlays"]

MOST_CURVES = 12
"""Curves in one figure."""
MOST_POINTS = 500
"""Sizes of one uploaded curve; NetPIPE has about 120."""
LARGEST_B = 1 << 50
"""The largest message of an uploaded curve: a larger size is taken for an error."""
_NAME = 40
"""The most characters of a curve's name: as many as a legend shows."""


def read_overlays(path: str, label: str, most: int, taken: Collection[str] = ()) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """(overlays, a description of each, problems) of the file ``label``; ``taken``: names already used by other curves.

    Overlays have the form of `retrompi.studio.curves.runs.curves`, with ``run`` 0 since they are not stored. A PingPong comes first; curves
    beyond ``most`` are left out and reported. Raises InputError in one line, with the user's name of the file and the line.
    """
    from retrompi.measure.curves import MEANINGS
    from retrompi.studio.requests import uploads

    every = [_sound(m, label) for m in uploads.curves(path, label)]
    found = sorted((m for m in every if m.points), key=lambda m: m.what != "pingpong")
    bare = [f"'{_printable(m.what)}'" for m in every if not m.points]
    nothing = _("{label}: no size of {bare} has a time or a bandwidth above 0").format(label=label, bare=", ".join(bare))
    if not found:
        raise InputError(nothing)
    shown = found[: max(most, 0)]
    out: list[dict[str, Any]] = []
    read: list[str] = []
    wrong = [nothing] if bare else []
    used = set(taken)
    several = len(found) > 1
    twins = {m.what for m in found if sum(o.what == m.what for o in found) > 1}
    for m in shown:
        what = _printable(m.what)
        ranks = ngettext(", {n} rank", ", {n} ranks", m.ranks).format(n=m.ranks) if m.what in twins and m.ranks else ""
        name = _free(f"{what}{ranks}, " if several or m.what != "pingpong" else "", label, used)
        used.add(name)
        rows = [{"size_B": p.size_B, "time_us": p.time_us, "bandwidth_MBps": p.bandwidth_MBps, "repetitions": p.repetitions or None}
                for p in m.points]
        units = re.sub(r"\bus\b", "µs", m.provenance.units)
        about = ", ".join(_printable(t, 40) for t in (f"{m.provenance.tool} {m.provenance.version}".strip(), units) if t)
        out.append({"run": 0, "name": name, "about": about, "rows": rows, "kind": "measured", "bands": {}})
        sizes = [p.size_B for p in m.points]
        span = (
            _("{n} sizes, {low} to {high}").format(n=len(sizes), low=format_bytes(min(sizes)), high=format_bytes(max(sizes)))
            if len(sizes) > 1
            else format_bytes(sizes[0])
        )
        of = _(MEANINGS.get(m.what, lazy("that of one call")))
        meaning = "" if m.what == "pingpong" else _("; a time is {meaning}, not of a PingPong").format(meaning=of)
        read.append(f"{name}: {span} ({about}){meaning}")
    if len(found) > len(shown):
        wrong.append(
            _("{label} has {n} curves; {n2} of them are drawn: {most_curves} fit into one figure").format(
                label=label, n=len(found), n2=len(shown), most_curves=MOST_CURVES
            )
        )
    return out, read, wrong


def _sound(m: Measured, label: str) -> Measured:
    """A curve that can be drawn: limited length, finite numbers, and only sizes that have a time or a bandwidth."""
    if len(m.points) > MOST_POINTS:
        raise InputError(f"{label}: a curve of {len(m.points)} sizes; at most {MOST_POINTS} can be drawn", code="out-of-range")
    points = tuple(p for p in m.points if p.time_us > 0 or p.bandwidth_MBps > 0)
    for p in points:
        if p.size_B > LARGEST_B:
            raise InputError(f"{label}: a message of {p.size_B:.3g} B; sizes up to {format_bytes(LARGEST_B)} can be drawn")
        if not (math.isfinite(p.time_us) and math.isfinite(p.bandwidth_MBps)):
            raise InputError(f"{label}: at {format_bytes(p.size_B)} the time or the bandwidth is beyond any number")
    return m.with_fields(points=points)


def _printable(text: str, most: int = 24) -> str:
    """A text from the file: shortened, without unprintable characters."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _free(before: str, label: str, used: Collection[str]) -> str:
    """A name of at most `_NAME` characters that is not in ``used``; a long label is shortened in the middle."""
    number = 1
    while True:
        after = f" ({number})" if number > 1 else ""
        left = max(_NAME - len(before) - len(after), 9)
        short = label if len(label) <= left else f"{label[: (left - 1) // 2]}…{label[-(left - 1 - (left - 1) // 2) :]}"
        if (name := before + short + after) not in used:
            return name
        number += 1
