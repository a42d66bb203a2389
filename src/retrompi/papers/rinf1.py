"""The Rinf1 benchmark: 17 loops at many vector lengths, timed with the system's clock, as a scenario and as a calibration.

The engine runs the loops as a one-rank trace (``kernel NAME N REPS`` between marks); `retrompi.sim.loop_rates` converts the marks to the
times measured with a clock that advances in ticks. `fit` determines the machines' free parameters from the claims marked for
calibration, with the mean effect of the same clock.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError, UsageError
from retrompi.spec import kernels, registry

if TYPE_CHECKING:
    from retrompi.papers.claims import Claim
    from retrompi.spec.platform import Platform

__all__ = ["Fit", "facts", "fit"]

FREE = ("cycle_scale", "startup", "line_copy", "read_share")
"""The free parameters of a fit; their ranges are given by the machines."""
STARTS = 12
"""Starts of the optimiser: a loop's minimum may be at the shortest or the longest vectors, so there are several local minima."""
PATH = "rinf1"


def facts(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The facts for verdicts, from a table for each host: HOST.KERNEL.min/max, HOST.total, ``peak`` and ``ratio`` of two machines."""
    out: dict[str, Any] = {}
    for host, rows in tables.items():
        out[host] = {str(r["kernel"]): {"min": r["min"], "max": r["max"]} for r in rows}
        out[host]["total"] = {end: fmean(float(r[end]) for r in rows) for end in ("min", "max")}
    if len(tables) == 2:
        fast, slow = sorted((out[h]["total"] for h in tables), key=lambda t: -t["max"])
        out["peak"] = {"min": slow["max"], "max": fast["max"]}
        out["ratio"] = {end: fast[end] / slow[end] for end in ("min", "max")}
    return out


def expected(machine: kernels.Machine) -> dict[str, dict[str, float]]:
    """KERNEL.min/max and ``total`` computed without the engine, with the mean effect of the clock.

    Of many measurements of similar duration, the clock shortens the best and lengthens the worst by half a tick on average.
    (The engine's runs include the clock itself.)
    """
    out = {}
    for key, which in kernels.loops().items():
        ends: dict[str, list[float]] = {"min": [], "max": []}
        for n in kernels.lengths(which):
            reps = kernels.repetitions(which, n)
            took, done = reps * kernels.seconds(which, n, machine), which.counted * which.turns(n) * reps
            ends["max"].append(done / (took - machine.tick / 2))
            ends["min"].append(done / (took + machine.tick / 2))
        out[key] = {"min": min(ends["min"]), "max": max(ends["max"])}
    out["total"] = {end: fmean(v[end] for v in out.values()) for end in ("min", "max")}
    return out


@dataclass
class Fit:
    """The outcome of a calibration of one machine: rows as for `retrompi.papers.calibrate.Fit`."""

    host: str
    seed: int
    evaluations: int = 0
    values: list[dict[str, Any]] = field(default_factory=list)
    residuals: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""


def _visible(platform: Platform, host: str) -> list[tuple[Claim, str]]:
    """(claim, kernel or ``total``) for every row that a fit of this host may use."""
    from retrompi.papers.claims import checks, for_fit

    found = []
    for claim in for_fit(PATH):
        for check in checks()[claim.id]:
            words = str(check.get("path", "")).split(".")
            if len(words) == 3 and words[:2] == [PATH, host]:
                found.append((claim, words[2]))
    if not found:
        raise UsageError(f"no claim to calibrate host '{host}' of platform '{platform.name}' by", code="no-claims")
    return found


def fit(platform: str, host: str, *, seed: int = 1) -> Fit:
    """Fits the `FREE` numbers of a host to its calibration claims: residuals are logarithms, a factor SAME is 1. No file is written.

    Raises UsageError when no claim is marked for calibration of this host.
    """
    import numpy as np
    from scipy.optimize import least_squares

    from retrompi.papers.calibrate import UNDETERMINED, _Free, _text
    from retrompi.papers.metrics import SAME

    room = registry.platform(platform)
    base, described = kernels.machine(room, host), kernels.quantities(room, host)
    free = [_Free(k, kernels.MACHINE_KEYS[k][0], described[k].low or 0.0, described[k].high or 0.0, described[k].text) for k in FREE]
    seen = _visible(room, host)
    out = Fit(host, seed)

    def look(x: Sequence[float]) -> list[dict[str, Any]]:
        machine = base.changed({f.key: f.value(v) for f, v in zip(free, x, strict=True)})
        got = expected(machine)
        rows = []
        for claim, name in seen:
            for end, published in (("min", claim.low), ("max", claim.high)):
                if published is None:
                    raise UsageError(f"{claim.id} has no {end} to fit to")
                value = got[name][end] * 1e-6
                away = float(np.log(value / published) / np.log(SAME))
                rows.append({"claim": f"{claim.id} {end}", "observed": value, "low": published / SAME, "high": published * SAME,
                             "unit": claim.unit, "residual": away})  # fmt: skip
        out.evaluations += 1
        return rows

    def residuals(x: Any) -> Any:
        return np.array([r["residual"] for r in look([float(v) for v in x])])

    draw = np.random.default_rng(seed)
    starts = [np.full(len(free), 0.5), *(draw.uniform(0.05, 0.95, len(free)) for _ in range(STARTS - 1))]
    found = [least_squares(residuals, s, bounds=(0, 1), diff_step=1e-3, x_scale=0.2, loss="soft_l1", max_nfev=80) for s in starts]
    best = min(found, key=lambda f: float(f.cost))
    # Sensitivity over a tenth of each range either way: minima jump between lengths, so a derivative is not meaningful.
    columns = []
    for i in range(len(free)):
        ends = [np.clip(best.x + step * np.eye(len(free))[i], 0, 1) for step in (-0.1, 0.1)]
        columns.append((residuals(ends[1]) - residuals(ends[0])) / (ends[1][i] - ends[0][i]))
    jacobian = np.array(columns).T
    for i, f in enumerate(free):
        moved = float(np.linalg.norm(jacobian[:, i]))
        others = np.delete(jacobian, i, axis=1)
        rest = jacobian[:, i] - others @ np.linalg.lstsq(others, jacobian[:, i], rcond=None)[0]
        if moved < UNDETERMINED:
            note = "not determined: no claim that may be seen depends on it"
        elif float(np.linalg.norm(rest)) < 0.05 * moved:
            note = "determined only together with others: a change of them can stand in for it"
        else:
            note = f"determined: its range moves the residuals by {moved:.3g} factors of {SAME:g}"
        edge = " (at the edge of its range)" if best.x[i] < 1e-3 or best.x[i] > 1 - 1e-3 else ""
        out.values.append({"parameter": f.key, "value": f.show(float(best.x[i])), "low": _text(f.low, f.unit),
                           "high": _text(f.high, f.unit), "note": note + edge})  # fmt: skip
    out.residuals = look([float(v) for v in best.x])
    outside = [r["claim"] for r in out.residuals if abs(r["residual"]) > 1]
    out.note = f"outside a factor {SAME:g}: {', '.join(outside)}" if outside else f"every row seen by the fit lies within a factor {SAME:g}"
    return out


def write(platform: str, fits: Sequence[Fit]) -> Path:
    """Writes ``platforms/kernels/NAME.fit.toml`` and returns its path."""
    import retrompi
    from retrompi.base import toml as toml_text

    room = registry.platform(platform)
    file = (room.path or Path("x.toml")).parent / "kernels" / f"{room.name}.fit.toml"
    tables = {
        f.host: {
            "values": {v["parameter"]: v["value"] for v in f.values},
            "residuals": {r["claim"]: [r["observed"], r["low"], r["high"], r["unit"], r["residual"]] for r in f.residuals},
            "meta": {
                "date": datetime.date.today().isoformat(),
                "version": retrompi.__version__,
                "seed": f.seed,
                "evaluations": f.evaluations,
                "claims": list(dict.fromkeys(r["claim"].partition(" ")[0] for r in f.residuals)),
                "identifiability": {v["parameter"]: v["note"] for v in f.values},
                "note": f.note,
            },
        }
        for f in fits
    }
    try:
        file.write_text(toml_text.tables("retrompi paper rinf1 --fit", tables), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the fit: {error.strerror}", file, code="unwritable-file") from None
    return file
