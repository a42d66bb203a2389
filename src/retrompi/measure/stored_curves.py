"""Stored curves that can be drawn over a figure: native runs, imported measurements, programs on SMPI or a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError, nearest
from retrompi.base.units import format_bytes
from retrompi.measure.compare.errors import band

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["KINDS", "StoredCurve", "curves_for", "from_store", "row_of", "rows_of"]

KINDS = {"native": "measured here", "measured": "measured", "smpi": "on SMPI", "program": "replayed"}
"""Kinds of runs whose points can be drawn over a figure, and their names in its legend."""
_MOST = 40
"""Characters of a name in a legend."""


@dataclass(frozen=True)
class StoredCurve:
    """A curve: rows size_B, time_us, bandwidth_MBps; ``run_id`` 0 if it is not stored; ``figure``: the only one it is for, "" for all."""

    run_id: int
    kind: str
    name: str
    points: tuple[Mapping[str, Any], ...]
    figure: str = ""
    about: str = ""
    """Its provenance, in one line."""
    bands: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """Size -> the noise band of the time in microseconds, if repetitions are known."""

    @property
    def legend(self) -> str:
        """Its name in a figure."""
        short = self.name if len(self.name) <= _MOST else self.name[: _MOST - 1] + "…"
        return f"{short}, {KINDS[self.kind]}"


def _bands(facts: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    out = {}
    for label, samples in facts.get("sections", {}).items():
        held = band(samples)
        if held is not None and held.n > 1 and label.isdecimal():
            out[int(label)] = (held.low * 1e6, held.high * 1e6)
    return out


def _about(run: Mapping[str, Any]) -> str:
    facts = run["facts"]
    machine = facts.get("machine") or {}
    source = facts.get("provenance") or {}
    parts = [str(facts.get("mpi") or ""), str(machine.get("cpu") or ""), str(run["model"]) if run["kind"] in ("smpi", "program") else ""]
    parts += [" ".join(str(source[k]) for k in ("tool", "version") if source.get(k))]
    parts += [str(source.get(k) or "") for k in ("units", "host", "date", "by")]
    if source.get("file"):
        parts.append(f"{source['file']} (SHA-256 {str(source.get('sha256', ''))[:12]})")
    return ", ".join(p for p in parts if p)


def _label(run: Mapping[str, Any]) -> str:
    """The label of an import, or a program with its arguments."""
    facts = run["facts"]
    if facts.get("label"):
        label, source = str(facts["label"]), facts.get("provenance") or {}
        # A generated label ends with the file's name, which distinguishes curves: a legend must not cut it off.
        chosen = len(label) <= _MOST or not label.endswith(f", {source.get('file')})")
        return label if chosen else f"{facts.get('what')}, {source['file']}"
    return " ".join([str(run["trace"]).rpartition("/")[2], *facts.get("arguments", [])])


def from_store(store: Store, name: str) -> StoredCurve:
    """The curve named by ``ID`` or ``NAME``, either with ``@FIGURE``: a run with points, or the newest import with that label.

    Raises UsageError when there is none, or when it has no points.
    """
    text, _, figure = name.partition("@")
    if text.isdecimal():
        run = store.run(int(text))
    else:
        stored = store.runs(kind="measured")
        # A file of several tables is represented by its PingPong; each table has its own label.
        first = sorted(stored, key=lambda r: r["facts"].get("what") == "pingpong")
        known = {str(r["trace"]): r for r in first} | {str(r["facts"]["label"]): r for r in stored if r["facts"].get("label")}
        if text not in known:
            raise UsageError(
                f"no measured curve '{text}' in the store{nearest(text, known)} (a run is named by its number)", code="unknown-name"
            )
        run = known[text]
    if run["kind"] not in KINDS:
        raise UsageError(f"run {run['id']} is a {run['kind']}, not a measured curve (kinds {', '.join(KINDS)})", code="wrong-kind")
    points = tuple(p for p in store.points(run["id"]) if p["time_us"] > 0 or p["bandwidth_MBps"] > 0)
    if not points:
        raise UsageError(f"run {run['id']} ({run['trace']}) has no points to draw: no section of it was named by a message size")
    return StoredCurve(run["id"], run["kind"], _label(run), points, figure, _about(run), _bands(run["facts"]))


def curves_for(found: Iterable[StoredCurve], figure: str) -> list[StoredCurve]:
    """The curves that belong to a figure."""
    return [m for m in found if m.figure in ("", figure)]


def rows_of(measured: StoredCurve) -> list[dict[str, Any]]:
    """Flat rows for the CSV export."""
    keys = ("size_B", "time_us", "bandwidth_MBps")
    return [{"name": measured.name, "kind": measured.kind, "run_id": measured.run_id, **{k: p[k] for k in keys}} for p in measured.points]


def row_of(measured: StoredCurve) -> dict[str, Any]:
    """The curve's row in a table of curves."""
    sizes = [p["size_B"] for p in measured.points]
    return {"run": measured.run_id, "curve": measured.legend, "points": len(sizes),
            "sizes": f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))}", "from": measured.about}
