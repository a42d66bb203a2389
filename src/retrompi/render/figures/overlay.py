"""Published statements as marks on a figure, computed from the claims alone.

The papers' plotted figures are not available: a mark is drawn only where the text states a number (with its reading
tolerance) or a message size. Nothing is interpolated between statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from retrompi.base import units
from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.statements.claims import Claim, checks
from retrompi.papers.statements.exhibits import CurveFigure

__all__ = ["StatementMark", "marks", "place_marks"]

# Factor from a published unit to the figure's: microseconds and MB/s.
_TIME = {"ns": 1e-3, "microseconds": 1.0, "ms": 1e3, "s": 1e6}
_RATE = {"MByte/s": 1.0, "MB/s": 1.0, "KByte/s": 1e-3, "GByte/s": 1e3}
_SERIES = {"startup": "time", "peak": "bandwidth", "lowest": "bandwidth", "bandwidth_at": "bandwidth"}
_KNEE_OF = {"peak": "bandwidth", "plateau": "bandwidth", "step": "time", "bend": "time", "drop": "bandwidth", "recovery": "bandwidth"}


@dataclass(frozen=True)
class StatementMark:
    """One published statement on one figure.

    ``shape`` is ``point`` (a value at ``x0``), ``band`` (a range of values over sizes ``x0``..``x1``) or ``knee`` (a size
    ``x0``..``x1`` where the curve changes). ``y`` is the published number or None where only ``low``..``high`` is known;
    microseconds in the time figure, MB/s in the bandwidth figure, sizes in bytes.
    """

    claim: str
    models: tuple[str, ...]
    mode: str
    series: str
    shape: str
    x0: float
    x1: float
    low: float | None
    high: float | None
    y: float | None
    text: str
    use: str
    verdict: str

    def row(self) -> dict[str, Any]:
        """A flat object for the CSV export."""
        return {**asdict(self), "models": " ".join(self.models)}


def stated_number(claim: Claim) -> float | None:
    """The only number in the claim's text; None if there is no single number."""
    found = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", claim.value)
    return float(found[0]) if len(found) == 1 else None


def stated_pairs(claim: Claim) -> list[tuple[int, float]]:
    """(size in bytes, number) where the text gives both: ``from 124 (0 B) to 121 (64K)``."""
    factor = {"B": 1, "K": 1 << 10, "M": 1 << 20}
    found = re.findall(r"(\d+(?:\.\d+)?) \((\d+) ?([BKM])\)", claim.value)
    return [(int(size) * factor[unit], float(number)) for number, size, unit in found]


def _peak_sizes(claims: Iterable[Claim]) -> dict[tuple[str, str], int]:
    """(model, mode) -> the size of the largest bandwidth, where the text states it."""
    out: dict[tuple[str, str], int] = {}
    known = checks()  # looks each time whether a file has changed
    for claim in claims:
        for check in known.get(claim.id, ()):
            if check["kind"] == "knee" and check["feature"] in ("peak", "plateau") and claim.low is not None:
                out |= {(m, check["mode"]): int(claim.low) for m in check["models"]}
    return out


Place = tuple[str, str, float, float, "float | None", "float | None", "float | None"]
"""(series, shape, x0, x1, low, high, y)."""


def _of_check(claim: Claim, check: Mapping[str, Any], peaks: Mapping[tuple[str, str], int], last: int) -> list[Place]:
    """The positions of one check's published numbers on the curves; empty when the text gives none."""
    if claim.low is None or claim.high is None:
        return []
    kind = check["kind"]
    if kind == "knee":
        return [(_KNEE_OF[check["feature"]], "knee", claim.low, claim.high, None, None, None)]
    ends = kind == "trend" and check["shape"] == "ends"
    metric = check["metric"] if kind == "range" else ""
    # "falls to about 3" contains the number, but the size is in another claim.
    if not (kind in ("range", "plateau") or ends) or metric == "lowest":
        return []
    series = _SERIES[metric] if metric else check["metric"]
    scale = (_TIME if series == "time" else _RATE).get(claim.unit)
    if scale is None:
        return []
    low, high = claim.low * scale, claim.high * scale
    number = stated_number(claim)
    y = number * scale if number is not None else None
    if ends:
        return [(series, "point", size, size, low, high, value * scale) for size, value in stated_pairs(claim)]
    if metric == "startup":
        return [(series, "point", 0, 0, low, high, y)]
    if metric == "peak":
        at = {peaks.get((m, check["mode"])) for m in check["models"]}
        size = at.pop() if len(at) == 1 else None
        return [(series, "band", 0, last, low, high, y) if size is None else (series, "point", size, size, low, high, y)]
    sizes = claim.sizes(check["sizes"]) if "sizes" in check else None
    x0, x1 = (0, last) if sizes is None else (sizes.low, last if sizes.high is None else sizes.high)
    return [(series, "point" if x0 == x1 else "band", x0, x1, low, high, y)]


def place_marks(claims: Iterable[Claim], figure: CurveFigure, verdicts: Iterable[Verdict] = ()) -> list[StatementMark]:
    """The marks placed by a figure itself: a claim's number on a curve at a size; a claim without a number gives no mark."""
    known = {c.id: c for c in claims}
    words = {v.id: v.verdict for v in verdicts}
    out = []
    for claim_id, model, mode, text in figure.at:
        claim = known[claim_id]
        scale = (_TIME if figure.what == "time" else _RATE).get(claim.unit)
        if scale is None or claim.low is None or claim.high is None:
            continue
        size = units.parse(text, "B")
        number = stated_number(claim)
        out.append(
            StatementMark(
                claim=claim_id,
                models=(model,),
                mode=mode,
                series=figure.what,
                shape="point",
                x0=size,
                x1=size,
                low=claim.low * scale,
                high=claim.high * scale,
                y=None if number is None else number * scale,
                text=f"{claim_id}: {claim.observable}: {claim.value} {claim.unit}",
                use=claim.use,
                verdict=words.get(claim_id, "unjudged"),
            )
        )
    return out


def marks(claims: Sequence[Claim], verdicts: Iterable[Verdict] = (), last: int = 4 << 20) -> list[StatementMark]:
    """All marks of these claims, in file order; ``last`` is the largest size of the sweep, where open ranges end."""
    words = {v.id: v.verdict for v in verdicts}
    peaks = _peak_sizes(claims)
    out: list[StatementMark] = []
    known = checks()
    for claim in claims:
        unit = "" if claim.kind == "knee" or claim.unit in ("-", "trend") else f" {claim.unit}"
        for check in known.get(claim.id, ()):
            for series, shape, x0, x1, low, high, y in _of_check(claim, check, peaks, last):
                out.append(
                    StatementMark(
                        claim=claim.id,
                        models=tuple(check["models"]),
                        mode=check["mode"],
                        series=series,
                        shape=shape,
                        x0=x0,
                        x1=x1,
                        low=low,
                        high=high,
                        y=y,
                        text=f"{claim.id}: {claim.observable}: {claim.value}{unit}",
                        use=claim.use,
                        verdict=words.get(claim.id, "unjudged"),
                    )
                )
    return out
