"""``retrompi fit``: measured curves to a model folder, with held-out sizes, residuals, and the assumptions made."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from retrompi.base import paths, units
from retrompi.base.errors import UsageError, nearest
from retrompi.measure.curves.series import Measured
from retrompi.measure.fit.parts import OVERHEAD, Parts, sample_of
from retrompi.measure.fit.segments import LEVEL, Residual, SegmentFit, fit
from retrompi.measure.fit.write import IdealPlatform, Limit, ModelFiles, check_name, default_folder
from retrompi.measure.launch.stats import rank_quantile
from retrompi.sim.fitted import NEVER
from retrompi.spec import registry

if TYPE_CHECKING:
    from retrompi.spec.model import RuntimeModel

__all__ = ["FittedFiles", "PairFit", "far_off", "fitted_curve", "held_out", "make", "name_from", "summary"]

POOR = 0.10
"""Noise above which a curve is not well described by its segments."""
STEP = 0.10
"""The relative step of a curve that is taken for the eager limit when none is stated."""
_STREAMS = {"bw": "gap", "bibw": "both", "mbw_mr": "port"}
_SHARED = ("send", "recv", "gap", "port", "both")


@dataclass(frozen=True)
class PairFit:
    """One pair kind, fitted: the measurement, its fit, the held-out sizes, and the parts of a time with their sources."""

    kind: str
    measured: Measured
    fit: SegmentFit
    held: tuple[Residual, ...]
    parts: Parts
    eager: Limit

    @property
    def seen(self) -> tuple[int, ...]:
        """Sizes that the fit saw."""
        return tuple(r.size for r in self.fit.residuals)


@dataclass(frozen=True)
class FittedFiles:
    """The files written: the model's name and folder, its platform (and its file, if one was written)."""

    name: str
    folder: Path
    platform: str
    platform_file: Path | None
    curves: Mapping[str, PairFit] = field(default_factory=dict)


def name_from(file: str) -> str:
    """A model's name from a file's: ``OSU latency.txt`` -> ``osu-latency``."""
    slug = re.sub(r"[^a-z0-9_]+", "-", Path(file).stem.lower()).strip("-_")
    return slug if slug[:1].isalpha() else f"curve-{slug}".rstrip("-")


def held_out(sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """(seen, held out): every second size is held out, except the smallest and largest, so that no prediction extrapolates."""
    ordered = sorted(set(sizes))
    out = [s for i, s in enumerate(ordered) if i % 2 == 1 and s != ordered[-1]]
    return [s for s in ordered if s not in out], out


def summary(residuals: Sequence[Residual]) -> dict[str, float]:
    """Median, 95th percentile and maximum of the relative errors' magnitudes, and their signed mean; {} without residuals."""
    errors = [abs(r.error) for r in residuals]
    if not errors:
        return {}
    return {
        "sizes": len(errors),
        "median": median(errors),
        "p95": rank_quantile(errors, 0.95),
        "worst": max(errors),
        "mean": sum(r.error for r in residuals) / len(errors),
    }


def _streams(kind: str, streams: Sequence[Measured], parts: dict[str, dict[int, float]], sources: dict[str, str]) -> None:
    """Adds the columns measured by streams: the time a message adds to a channel, to a port, to both directions."""
    for series in streams:
        column = _STREAMS.get(series.what)
        if column is None:
            raise UsageError(f"a stream is bw, bibw or mbw_mr: {series.provenance.file} holds {series.what}", code="cannot-fit")
        if column == "port" and (series.pairs or 1) < 2:
            column = "gap"  # one pair only
        parts[column] = {p.size_B: p.time_us * 1e-6 for p in series.points if p.time_us > 0}
        sources[column] = f"fit: {series.what} of {series.provenance.tool} {series.provenance.version}, {series.provenance.file}".replace(
            "  ", " "
        )


def fitted_curve(
    kind: str,
    measured: Measured,
    *,
    thresholds: Sequence[int] = (),
    segments: int | None = None,
    max_segments: int = 12,
    level: float = LEVEL,
    hold_out: bool = False,
    leave_out: Sequence[int] = (),
    eager_below: int | None = None,
    overhead: float = OVERHEAD,
    streams: Sequence[Measured] = (),
) -> PairFit:
    """Fits one measured curve of a pair kind (``same`` or ``remote``).

    ``thresholds``, ``leave_out`` (sizes hidden from the fit) and ``eager_below`` are in bytes; other arguments as in `segments.fit` and
    `Parts`. Raises UsageError for a curve that is not a PingPong, or is too short.
    """
    if measured.what not in ("pingpong", "ring"):
        raise UsageError(f"{measured.provenance.file} holds {measured.what}: a model needs one-way times, of a PingPong", code="cannot-fit")
    points = {p.size_B: p for p in measured.points if p.time_us > 0}
    for size in leave_out:
        if size not in points:
            raise UsageError(
                f"{measured.provenance.file} has no size of {size} B to leave out{nearest(str(size), map(str, points))}",
                code="unknown-name",
            )
    used = [s for s in points if s not in leave_out]
    seen, out = held_out(used) if hold_out else (sorted(used), [])
    out = sorted({*out, *leave_out})
    if len(seen) < 2:
        raise UsageError(
            f"{measured.provenance.file} has {len(points)} {'size' if len(points) == 1 else 'sizes'}; a fit needs more", code="cannot-fit"
        )
    spread = [points[s].spread for s in seen]
    known = [s for s in spread if s is not None]
    found = fit(
        seen,
        [points[s].time_us * 1e-6 for s in seen],
        spread=[s if s is not None else median(known) for s in spread] if known else None,
        thresholds=thresholds,
        segments=segments,
        max_segments=max_segments,
        level=level,
    )
    held = found.residuals_of(out, [points[s].time_us * 1e-6 for s in out], seen=False)
    columns: dict[str, dict[int, float]] = {}
    sources: dict[str, str] = {}
    for name in _SHARED:
        told = {s: points[s].more[f"{name}_us"] * 1e-6 for s in seen if f"{name}_us" in points[s].more}
        if told:
            columns[name], sources[name] = told, f"fit: column {name} of {measured.provenance.file}"
    _streams(kind, streams, columns, sources)
    parts = Parts(columns, sources, overhead, remote=kind == "remote")
    return PairFit(kind, measured, found, held, parts, _eager(found, eager_below))


def _eager(found: SegmentFit, stated: int | None) -> Limit:
    """The size from which messages use rendezvous, and its source."""
    if stated is not None:
        return float(stated), "assumed: stated by the user, --eager-below"
    steps = [t for t in found.thresholds if t.step >= STEP]
    if not steps:
        return None, f"assumed: the curve has no step up of {STEP:.0%} or more, so all are sent at once"
    best = max(steps, key=lambda t: t.step)
    return float(best.size), f"assumed: the largest step up of the curve, {best.step:+.0%}; --eager-below states another"


def make(
    curves: Sequence[PairFit],
    *,
    name: str,
    folder: Path | None = None,
    platform: str | None = None,
    collectives: type[RuntimeModel] | None = None,
    by: str = "retrompi fit",
) -> FittedFiles:
    """Writes the model (and a platform if no ``platform`` is named). Raises UsageError for a folder that holds something else."""
    target = (folder / name if folder is not None else default_folder(name)).resolve()
    if folder is None:
        check_name(name)
    if target.exists() and not ((target / "curve.csv").is_file() and (target / "fit.toml").is_file()):
        raise UsageError(
            f"{target} holds something that 'retrompi fit' has not written; choose another --name or folder", code="exists-already"
        )
    platform_file: Path | None = None
    if platform is None:
        where, platform_file = _write_platform(curves, name, folder, by)
        on = f"{where}:h1"
    else:
        loaded = registry.platform(platform)
        where = loaded.name
        named = loaded.path is None or registry.origin(loaded.path) in ("retrompi", "user")
        on = f"{where if named else os.path.relpath(str(loaded.path), target)}:{loaded.hosts[0].name}"
    first = curves[0].measured.provenance
    tool = f"{first.tool} {first.version}".strip()
    ModelFiles(
        name=name,
        samples={c.kind: sample_of(c.fit, c.parts) for c in curves},
        title=f"Curve of {first.file}",
        version=f"as measured with {tool}",
        years=_years(curves),
        summary=f"segments of {' and '.join(_words(c) for c in curves)}",
        platform=where,
        on=on,
        source=f"fit: {tool}, {first.file}",
        eager={c.kind: c.eager for c in curves},
        seen={c.kind: c.seen for c in curves},
        held_out={c.kind: [r.size for r in c.held] for c in curves},
        fits={c.kind: c.fit for c in curves},
        sources={f"{c.kind}.{k}": v for c in curves for k, v in c.parts.column_sources().items()},
        collectives=collectives,
        meta={
            "measured": {c.kind: _facts(c.measured) for c in curves},
            "errors_seen": {c.kind: summary(c.fit.residuals) for c in curves},
            "errors_held_out": {c.kind: summary(c.held) for c in curves if c.held},
        },
        extra={f"{c.kind}-held-out": {f"{r.size} B": r.row() for r in c.held} for c in curves if c.held},
        by=by,
        note=_note(curves),
    ).write(target)
    return FittedFiles(name, target, where, platform_file, {c.kind: c for c in curves})


def _write_platform(curves: Sequence[PairFit], name: str, folder: Path | None, by: str) -> tuple[str, Path]:
    """(name, file) of the platform for a model that is fitted on no known one, which is written beside it."""
    where = f"{name}-platform"
    if folder is None:
        file = paths.user_platforms_dir() / f"{where}.toml"
        check_name(where, "platform")
    else:
        file = (folder / name).resolve().parent / f"{where}.toml"
    shared = any(c.kind != "remote" for c in curves)
    cores = (("2", "assumed: a processor for each of two ranks") if shared
             else ("1", "assumed: a rank each; nothing of one host was measured"))
    IdealPlatform(
        name=where,
        title=f"Two hosts for the fitted curve {name}",
        summary="a placeholder: all measured behaviour is in the model's curve",
        years=_years(curves),
        known={"cores": cores},
        by=by,
    ).write(file)
    return where, file


def _words(c: PairFit) -> str:
    where = "between hosts" if c.kind == "remote" else "within a host"
    return f"the curve {where} ({len(c.fit.segments)} segments of {len(c.seen)} sizes)"


def _years(curves: Sequence[PairFit]) -> str:
    found = (re.search(r"\b(19|20)\d\d\b", c.measured.provenance.date) for c in curves)
    return next((m[0] for m in found if m), "not told")


def _facts(m: Measured) -> dict[str, Any]:
    p = m.provenance
    told = {
        "file": p.file,
        "sha256": p.sha256,
        "tool": p.tool,
        "version": p.version,
        "units": p.units,
        "host": p.host,
        "date": p.date,
        "by": p.by,
    }
    return {"what": m.what, **{k: v for k, v in told.items() if v}, **({"said": list(p.said)} if p.said else {})}


def _note(curves: Sequence[PairFit]) -> str:
    parts = []
    for c in curves:
        for what, told in (("seen", summary(c.fit.residuals)), ("held out", summary(c.held))):
            if told:
                errors = ", ".join(f"{k} {told[v]:.1%}" for k, v in (("median", "median"), ("95th percentile", "p95"), ("worst", "worst")))
                parts.append(f"{c.kind}, errors at sizes {what}: {errors}")
    return "; ".join(parts)


def far_off(curve: PairFit) -> list[Residual]:
    """Sizes that took more than twice as long as both neighbours: wrong measurements, or a stall."""
    rows = sorted(curve.fit.residuals, key=lambda r: r.size)
    found = []
    for i, r in enumerate(rows[:-1]):
        before = rows[i - 1].measured_s if i else 0.0
        if r.measured_s > 2 * max(before, rows[i + 1].measured_s):
            found.append(r)
    return found


def limit_text(limit: Limit) -> str:
    """An eager limit for people."""
    return "no size" if limit[0] is None else units.format_bytes(limit[0]) if limit[0] < units.parse(NEVER, "B") else "no size"
