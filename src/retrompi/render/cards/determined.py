"""The posterior of each parameter: its prior range, its interval, and whether the data determine it.

The rows are computed from the posterior's file and are the same on the card of a model, in the manual, in the studio and in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from retrompi.base.translate import lazy
from retrompi.base.units import format_span
from retrompi.render.document.html import Content, table
from retrompi.spec.declare.number import Number
from retrompi.spec.model import RuntimeModel
from retrompi.studies.draws import posteriors
from retrompi.studies.draws.posteriors import PosteriorFile, word

__all__ = ["HEAD", "LEVEL", "card", "facts", "narrowing_text", "of_folder", "of_model", "section", "texts"]

LEVEL = 0.9
_ENDS = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
HEAD = (lazy("parameter"), lazy("prior range"), lazy("90 % interval"), lazy("median"), lazy("variance left"), lazy("by the data"))


def _parameter(of: PosteriorFile, path: str) -> dict[str, Any]:
    low, high, log, unit = of.priors[path]
    ends = of.quantiles(path, _ENDS)
    left = float(of.seen.get(path, 1.0))
    return {
        "path": path, "unit": unit, "prior": [low, high], "scale": "log" if log else "linear", "low": ends[0], "median": ends[1],
        "high": ends[2], "left": left, "data": word(left), "fitted": path in of.fitted,
        "places": [Number(path, unit, low, high, log).share(v) for v in ends] if high > low else [0.0, 0.5, 1.0],
    }


def card(of: PosteriorFile) -> dict[str, Any]:
    """A posterior as one JSON object: of, group, members, date, seed, claims, curves, r_hat, ess, converged, discrepancy (low, median,
    high), level, draws, file, and ``parameters``, those that the data determine best first.

    A parameter: path, unit, prior (low, high), scale, low, median, high (the `LEVEL` interval, base units), left (share of the prior's
    variance), data (`posteriors.word`), fitted, places (low, median, high as shares of the prior range). Raises InputError for an
    unreadable file.
    """
    about = of.about
    rows = sorted((_parameter(of, path) for path in of.priors), key=lambda r: (r["left"], r["path"]))
    diagnostics = about.get("diagnostics", {})
    return {
        "of": about.get("member", of.of), "group": of.group, "level": LEVEL, "draws": len(of.column(posteriors.DISCREPANCY)),
        "file": str(of.file),
        **{k: about.get(k) for k in ("members", "date", "seed", "claims", "curves", "converged")},
        "r_hat": diagnostics.get("r_hat"), "ess": diagnostics.get("ess"),
        "discrepancy": of.quantiles(posteriors.DISCREPANCY, _ENDS), "parameters": rows,
    }


def of_model(cls: type[RuntimeModel]) -> dict[str, Any] | None:
    """The `card` of a model's own posterior, a variant's or that of the model it varies; None without one."""
    own = next((p for p in posteriors.at_hand(cls) if p.file.parent == cls.folder()), None)
    return None if own is None else card(own)


def of_folder(folder: Path) -> list[dict[str, Any]]:
    """The `card` of every posterior in a folder, by the names of the files: those of the fits of a paper."""
    return [card(posteriors.read(f)) for f in sorted(folder.glob("posterior*.npz"))]


# --- as texts ------------------------------------------------------------------------------------------------------------------


def facts(told: Mapping[str, Any]) -> str:
    """One sentence on a posterior: its subject, the evidence it used, whether its sampling converged, and the discrepancy."""
    joint = [m for m in told["members"] or () if m != told["of"]]
    seen = [f"{len(told[k])} {what}{'' if len(told[k]) == 1 else 's'}" for k, what in (("claims", "statement"), ("curves", "curve"))
            if told[k]]
    out = [f"{told['of']}{' jointly with ' + ', '.join(joint) if joint else ''}, {told['draws']:,} draws"]
    out += [f"from {' and '.join(seen)}"] if seen else []
    out += [str(told["date"])] if told["date"] else []
    if told["r_hat"] is not None and told["ess"] is not None:
        bad = ", not converged" if told["converged"] is False else ""
        out.append(f"R-hat {told['r_hat']:.3f}, effective sample size {told['ess']:.0f}{bad}")
    low, middle, high = (f"{100 * math.expm1(v):.3g}" for v in told["discrepancy"])
    return f"{'; '.join(out)}; {narrowing_text(told['parameters'])}; discrepancy {middle} % ({low} .. {high} %)"


def narrowing_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many parameters the data determine, and how many they narrow."""
    yes, partly = (sum(r["data"] == w for r in rows) for w in (word(0.0), word(0.5)))
    return f"the data determine {yes} of {len(rows)} parameters and narrow {partly}"


def texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A parameter as texts for `HEAD`."""
    return (row["path"], format_span(row["prior"][0], row["prior"][1], row["unit"]), format_span(row["low"], row["high"], row["unit"]),
            format_span(row["median"], row["median"], row["unit"]), f"{100 * min(row['left'], 1.0):.0f} %", row["data"])


def strip(row: Mapping[str, Any]) -> str:
    """The interval within the prior range as a bar of HTML; its words are in the cells beside it."""
    low, middle, high = (100 * p for p in row["places"])
    return (f'<span class="prior" aria-hidden="true"><i style="left:{low:.1f}%;width:{max(high - low, 1):.1f}%"></i>'
            f'<b style="left:{middle:.1f}%"></b></span>')


def section(told: Mapping[str, Any] | None) -> str:
    """The posterior on a page of HTML; "" without one."""
    if told is None:
        return ""
    rows: list[list[Content]] = []
    for r in told["parameters"]:
        path, prior, inside, middle, left, data = map(escape, texts(r))
        rows.append([f"<b>{path}</b>", (prior, "n"), f"{inside}<br>{strip(r)}", (middle, "n"), (left, "n"), data])
    return f"<p>Posterior of {escape(facts(told))}.</p>{table(HEAD, rows)}"
