"""The table of loops timed on a machine, beside what a paper measured of them: of ``scenarios run`` and of a paper's own command."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from retrompi.cli.output import Column


def _mega(value: Any) -> str:
    return "" if value is None else f"{value * 1e-6:.3f}"


COLUMNS = (
    Column("title", "loop"),
    Column("min", "min", _mega, right=True),
    Column("max", "max", _mega, right=True),
    Column("published_min", "published min", _mega, right=True),
    Column("published_max", "max", _mega, right=True),
    Column("rinf", "Rinf", _mega, right=True),
    Column("n_half", "n1/2", lambda v: "" if v is None else f"{v:.2f}", right=True),
    Column("statement", "statement"),
)
KEYS = ("kernel", "title", "statement", "claim", "min", "at_min", "max", "at_max", "published_min", "published_max", "rinf", "n_half")


def with_published(rows: list[dict[str, Any]], platform: str, host: str) -> list[dict[str, Any]]:
    """``rows`` with the published minimum and maximum (flop/s) if the paper measured this host, and the total below."""
    from retrompi.papers.statements.claims import checks, load

    told = {str(c.get("path")): claim for claim in load() for c in checks().get(claim.id, ()) if claim.low and claim.high}
    out = [dict(r) for r in rows]
    if len(out) > 1:
        mean = {end: fmean(float(r[end]) for r in rows) for end in ("min", "max")}
        out.append({"kernel": "total", "title": "Total (mean)", "statement": "", "min": mean["min"], "max": mean["max"]})
    for r in out:
        claim = told.get(f"rinf1.{host}.{r['kernel']}") if platform == "nt-pair" else None
        r["claim"] = claim.id if claim else ""
        r["published_min"], r["published_max"] = (claim.low * 1e6, claim.high * 1e6) if claim and claim.low and claim.high else (None, None)
    return out
