"""Measured curves for the figures of published and simulated ones: native runs, imported measurements, programs on SMPI or a model.

They are drawn in black and grey with signs of their own, so that nobody takes one for a simulation of the study, nor for a number of
its paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from retrompi.base.errors import UsageError, nearest
from retrompi.base.units import format_bytes
from retrompi.render.figures import AXES, place

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["Measured", "add", "from_store", "row_of", "rows_of", "wanted"]

KINDS = {"native": "measured here", "measured": "measured", "smpi": "on SMPI", "program": "replayed"}
"""Kinds of runs whose points can be laid over a figure, and what they are called in its legend."""
_SIGNS = (("circle-open", "solid"), ("x-thin-open", "dash"), ("diamond-open", "dot"), ("triangle-down-open", "dashdot"))
_COLOURS = ("#000000", "#5a5a5a", "#8a8a8a")
_MOST = 40
"""Characters of a name in a legend."""


@dataclass(frozen=True)
class Measured:
    """A curve: rows size_B, time_us, bandwidth_MBps; ``run_id`` 0 when no store has it; ``figure``: the only one it goes to, "" for all."""

    run_id: int
    kind: str
    name: str
    points: tuple[Mapping[str, Any], ...]
    figure: str = ""
    about: str = ""
    """Where it comes from, in a line."""
    bands: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """Size -> the noise band of the time in microseconds, where repetitions are known."""

    @property
    def legend(self) -> str:
        """Its name in a figure."""
        short = self.name if len(self.name) <= _MOST else self.name[: _MOST - 1] + "…"
        return f"{short}, {KINDS[self.kind]}"


def _bands(facts: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    from retrompi.measure.compare.errors import band

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
    """What an import is called, or a program with its arguments."""
    facts = run["facts"]
    if facts.get("label"):
        label, source = str(facts["label"]), facts.get("provenance") or {}
        # A label nobody chose ends with the file's name, which is what tells curves apart: it must not be what a legend cuts off.
        chosen = len(label) <= _MOST or not label.endswith(f", {source.get('file')})")
        return label if chosen else f"{facts.get('what')}, {source['file']}"
    return " ".join([str(run["trace"]).rpartition("/")[2], *facts.get("arguments", [])])


def from_store(store: Store, name: str) -> Measured:
    """The curve that ``ID`` or ``NAME``, or either with ``@FIGURE``, names: a run with points, or the newest import with that label.

    Raises UsageError when there is none, or when it has no points.
    """
    text, _, figure = name.partition("@")
    if text.isdecimal():
        run = store.run(int(text))
    else:
        stored = store.runs(kind="measured")
        # A file of several tables is known by its PingPong; each of them has a label of its own.
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
    return Measured(run["id"], run["kind"], _label(run), points, figure, _about(run), _bands(run["facts"]))


def wanted(found: Iterable[Measured], figure: str) -> list[Measured]:
    """Those that go to a figure."""
    return [m for m in found if m.figure in ("", figure)]


def rows_of(measured: Measured) -> list[dict[str, Any]]:
    """Flat rows for the CSV export."""
    keys = ("size_B", "time_us", "bandwidth_MBps")
    return [{"name": measured.name, "kind": measured.kind, "run_id": measured.run_id, **{k: p[k] for k in keys}} for p in measured.points]


def row_of(measured: Measured) -> dict[str, Any]:
    """What a table says of it."""
    sizes = [p["size_B"] for p in measured.points]
    return {"run": measured.run_id, "curve": measured.legend, "points": len(sizes),
            "sizes": f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))}", "from": measured.about}  # fmt: skip


def add(figure: go.Figure, found: Sequence[Measured], what: str) -> None:
    """Draw the curves into a figure of the series ``what`` ("time", "bandwidth"); a bandwidth needs sizes above 0."""
    column, _, unit = AXES[what]
    for i, m in enumerate(found):
        colour, (symbol, dash) = _COLOURS[i % len(_COLOURS)], _SIGNS[i % len(_SIGNS)]
        points = sorted((p for p in m.points if p[column] > 0), key=lambda p: p["size_B"])
        noise: dict[str, Any] = {}
        if what == "time" and all(p["size_B"] in m.bands for p in points):
            ends = [(p[column], *m.bands[p["size_B"]]) for p in points]
            noise = {"error_y": {"type": "data", "symmetric": False, "color": colour, "thickness": 1, "width": 3,
                                 "array": [max(high - y, 0.0) for y, _, high in ends],
                                 "arrayminus": [max(y - low, 0.0) for y, low, _ in ends]}}  # fmt: skip
        figure.add_trace(go.Scatter(
            x=[place(p["size_B"]) for p in points], y=[p[column] for p in points], name=m.legend, mode="lines+markers",
            line={"color": colour, "width": 1.5, "dash": dash},
            marker={"symbol": symbol, "size": 8, "color": colour, "line": {"width": 1.5}},
            customdata=[format_bytes(p["size_B"]) for p in points],
            hovertemplate=f"{m.legend} %{{customdata}}: %{{y:.4g}} {unit}<extra>{f'run {m.run_id}' if m.run_id else ''}</extra>", **noise,
        ))  # fmt: skip
