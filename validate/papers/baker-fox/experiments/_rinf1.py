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

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError
from retrompi.base.release import version
from retrompi.spec import registry
from retrompi.spec.machine import kernels

if TYPE_CHECKING:
    from retrompi.papers.statements.claims import Claim
    from retrompi.spec.platform import Platform, Quantity

__all__ = ["Fit", "facts", "fit", "found_values", "free_values", "write"]

MEMORY = ("copy_mem", "read_mem")
"""The values of the host, beside those of its kernels, that the loops depend on; a fit finds those whose source is ``fit:``."""
UNFITTED = "assumed: not fitted yet"
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


def expected(machine: kernels.KernelMachine) -> dict[str, dict[str, float]]:
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
    """The outcome of a calibration of one machine: rows as for `retrompi.papers.fit.calibrate.ModelFit`."""

    host: str
    seed: int
    evaluations: int = 0
    values: list[dict[str, Any]] = field(default_factory=list)
    residuals: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""


def _visible(platform: Platform, host: str) -> list[tuple[Claim, str]]:
    """(claim, kernel or ``total``) for every row that a fit of this host may use."""
    from retrompi.papers.statements.claims import checks, for_fit

    found = []
    for claim in for_fit(PATH):
        for check in checks()[claim.id]:
            words = str(check.get("path", "")).split(".")
            if len(words) == 3 and words[:2] == [PATH, host]:
                found.append((claim, words[2]))
    if not found:
        raise UsageError(f"no claim to calibrate host '{host}' of platform '{platform.name}' by", code="no-claims")
    return found


def free_values(room: Platform, host: str) -> dict[str, Quantity]:
    """What a fit of this host determines: the values with a source ``fit:`` among those of its kernels and its `MEMORY`."""
    given = {**kernels.quantities(room, host), **{k: room.quantities[f"{host}.{k}"] for k in MEMORY}}
    return {k: q for k, q in given.items() if q.source.startswith(("fit:", UNFITTED))}


def found_values(found: Fit, room: Platform) -> dict[str, float]:
    """The values of a fit by their key, in base units."""
    units_of = {k: q.unit for k, q in free_values(room, found.host).items()}
    told = {str(v["parameter"]).rpartition(".")[2]: str(v["value"]) for v in found.values}
    return {k: units.parse(text, units_of[k]) for k, text in told.items()}


def fit(platform: str, host: str, *, seed: int = 1) -> Fit:
    """Fits the `free_values` of a host to its calibration claims: residuals are logarithms, a factor SAME is 1. No file is written.

    Raises UsageError when no claim is marked for calibration of this host.
    """
    import numpy as np

    from retrompi.papers.fit.free_values import free_number, number_text, value_text
    from retrompi.papers.fit.optimise import OptimiserSettings, identifiability, minimise, sensitivity
    from retrompi.papers.statements.metrics import SAME

    room = registry.platform(platform)
    base = kernels.machine(room, host)
    free = [free_number(k, q.unit, q.low or 0.0, q.high or 0.0) for k, q in free_values(room, host).items()]
    seen = _visible(room, host)
    out = Fit(host, seed)

    def look(x: Sequence[float]) -> list[dict[str, Any]]:
        machine = base.with_values({f.path: f.at(v) for f, v in zip(free, x, strict=True)})
        got = expected(machine)
        rows = []
        for claim, name in seen:
            for end, published in (("min", claim.low), ("max", claim.high)):
                if published is None:
                    raise UsageError(f"{claim.id} has no {end} to fit to")
                value = got[name][end] * 1e-6
                away = float(np.log(value / published) / np.log(SAME))
                rows.append({"claim": f"{claim.id} {end}", "observed": value, "low": published / SAME, "high": published * SAME,
                             "unit": claim.unit, "residual": away})
        out.evaluations += 1
        return rows

    def residuals(x: Any) -> Any:
        return np.array([r["residual"] for r in look([float(v) for v in x])])

    best = minimise(residuals, len(free), OptimiserSettings(starts=STARTS, steps=80, step=1e-3, scale=0.2, margin=0.05), seed)
    jacobian = sensitivity(residuals, best.x)
    for i, f in enumerate(free):
        note = identifiability(jacobian, best.x, i, f"factors of {SAME:g}")
        name = f"platform.{host}.{f.path}" if f.path in MEMORY else f.path
        out.values.append({"parameter": name, "value": number_text(f, float(best.x[i])), "low": value_text(f.low, f.unit),
                           "high": value_text(f.high, f.unit), "note": note})
    out.residuals = look([float(v) for v in best.x])
    outside = [r["claim"] for r in out.residuals if abs(r["residual"]) > 1]
    out.note = f"outside a factor {SAME:g}: {', '.join(outside)}" if outside else f"every row seen by the fit lies within a factor {SAME:g}"
    return out


def write(platform: str, fits: Sequence[Fit]) -> Path:
    """Writes ``platforms/kernels/NAME.fit.toml`` and, for what copies use as well, ``platforms/NAME.fit.toml``; returns the first path."""
    from retrompi.base import toml as toml_text
    from retrompi.papers.fit.calibrate import write_platform

    room = registry.platform(platform)
    beside = (room.path or Path("x.toml")).with_name(f"{room.name}.fit.toml")
    file = beside.parent / "kernels" / beside.name
    tables = toml_text.read(file, "fit")[1] if file.exists() else {}
    tables |= {
        f.host: {
            "values": {v["parameter"]: v["value"] for v in f.values if not v["parameter"].startswith("platform.")},
            "residuals": {r["claim"]: [r["observed"], r["low"], r["high"], r["unit"], r["residual"]] for r in f.residuals},
            "meta": {
                "date": datetime.date.today().isoformat(),
                "version": version(),
                "seed": f.seed,
                "evaluations": f.evaluations,
                "claims": list(dict.fromkeys(r["claim"].partition(" ")[0] for r in f.residuals)),
                "identifiability": {v["parameter"]: v["note"] for v in f.values},
                "note": f.note,
            },
        }
        for f in fits
    }
    found = {str(v["parameter"]): v["value"] for f in fits for v in f.values}
    memory = {key.removeprefix("platform."): text for key, text in found.items() if key.startswith("platform.")}
    try:
        file.write_text(toml_text.tables("retrompi paper rinf1 --fit", tables), encoding="utf-8")
        if memory:
            meta = {k: tables[fits[0].host]["meta"][k] for k in ("date", "version", "seed")}
            owners = {key.partition(".")[0] for key in memory}
            write_platform(beside, PATH, memory, {**meta, "claims": [c for h in sorted(owners) for c in tables[h]["meta"]["claims"]]})
    except OSError as error:
        raise InputError(f"cannot write the fit: {error.strerror}", file, code="unwritable-file") from None
    return file
