"""A comparison as a page: curves with the noise band and errors below them, their distribution, calls, provenance.

Points are computed by pure functions (`places`, `steps`, `bars_of`) before they are drawn. Sizes that a fit saw are drawn filled,
held-out ones open, in every figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from retrompi.base.units import format_bytes, format_time
from retrompi.measure.compare import Comparison, ComparisonRow, ComparisonVerdict, Split
from retrompi.measure.compare.comparison import FIT
from retrompi.render.document.html import Content, boxes, document, percent, save, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.bands import area
from retrompi.render.figures.figures import AXIS, hatch_pattern, layout, name_of, place, size_axis, value_axis

__all__ = ["LOOKS", "NAMES", "figures", "pair_name", "places", "share", "steps", "write"]

NAMES = {"native": "native", "smpi": "SMPI", "model": "model"}
LOOKS = {
    "native": ("#000000", "circle", "solid"),
    "smpi": ("#D55E00", "diamond", "dash"),
    "model": ("#0072B2", "square", "dot"),
}
"""Colour (Okabe and Ito), symbol and dash of a backend: three visual cues, so that no reader depends on colour alone."""
_PAIRS = {("model", "native"): LOOKS["model"], ("smpi", "native"): LOOKS["smpi"], ("model", "smpi"): ("#009E73", "triangle-up", "dashdot")}
_HATCH = {("model", "native"): "", ("smpi", "native"): "/", ("model", "smpi"): "x"}
_OWN_LOOK = (("model", "native"), ("smpi", "native"))
"""Errors drawn with the look of their curve."""
_ZERO = {"zeroline": True, "zerolinecolor": "#444", "zerolinewidth": 1.5}
LEAST_CURVE = 4
"""Least number of sizes of a curve; fewer sections are drawn side by side under their names."""
_MOST_BARS = 8


def pair_name(backend: str, reference: str) -> str:
    """``model against native``."""
    return f"{NAMES[backend]} against {NAMES[reference]}"


def is_curve(rows: Sequence[ComparisonRow]) -> bool:
    """Whether enough rows are sizes for an axis of sizes."""
    return len(rows) >= LEAST_CURVE and all(r.size_B is not None for r in rows)


def places(rows: Sequence[ComparisonRow]) -> list[float | str]:
    """The position of each row on the axis: its size, or its name."""
    if is_curve(rows):
        return [place(float(r.size_B or 0)) for r in rows]
    return [f"section {r.label}" if r.label.isdecimal() else r.label for r in rows]


def steps(errors: Sequence[float]) -> tuple[list[float], list[float]]:
    """The cumulative distribution: (magnitude of the error in percent, percent of the rows with at most this error), ascending."""
    ordered = sorted(abs(e) for e in errors)
    return [100 * e for e in ordered], [100 * (i + 1) / len(ordered) for i in range(len(ordered))]


def bars_of(split: Split) -> list[tuple[str, float]]:
    """(what, share of the reference's time in percent) of a difference: computation, then the calls that contribute most."""
    whole = split.reference_total or 1.0
    return [("computation", 100 * split.computation / whole), *((c, 100 * d / whole) for c, d in split.calls[: _MOST_BARS - 1])]


def _symbols(rows: Sequence[ComparisonRow], symbol: str) -> list[str]:
    return [symbol if r.use in (FIT, "") else f"{symbol}-open" for r in rows]


def _row_label(r: ComparisonRow) -> str:
    size = r.label if r.size_B is None else format_bytes(r.size_B)
    return escape(size) + (f" ({r.use})" if r.use else "")


def _curves(figure: go.Figure, c: Comparison) -> None:
    at = places(c.rows)
    held = [(x, r.bands["native"]) for x, r in zip(at, c.rows, strict=True) if "native" in r.bands]
    colour = LOOKS["native"][0]
    if held and is_curve(c.rows):
        figure.add_trace(area(
            [x for x, _ in held], [b.low * 1e6 for _, b in held], [b.high * 1e6 for _, b in held], colour, log=True, showlegend=True,
            name="native: 5 % to 95 % of the repetitions", legendgroup="native",
        ), row=1, col=1)
    for backend in c.executions:
        colour, symbol, dash = LOOKS[backend]
        mine = [(x, r) for x, r in zip(at, c.rows, strict=True) if backend in r.times]
        unit = 1e6 if is_curve(c.rows) else 1.0
        error_y: dict[str, Any] = {}
        if backend == "native" and not is_curve(c.rows):
            bands = [r.bands.get("native") for _, r in mine]
            error_y = {"type": "data", "symmetric": False, "color": colour, "thickness": 2, "width": 8,
                       "array": [b.high - b.median if b else 0 for b in bands],
                       "arrayminus": [b.median - b.low if b else 0 for b in bands]}
        figure.add_trace(go.Scatter(
            x=[x for x, _ in mine], y=[r.times[backend] * unit for _, r in mine], name=_title(c, backend), legendgroup=backend,
            mode="lines+markers" if is_curve(c.rows) else "markers", line={"color": colour, "width": 2.3, "dash": dash}, error_y=error_y,
            marker={"symbol": _symbols([r for _, r in mine], symbol), "size": 8 if is_curve(c.rows) else 13},
            customdata=[[_row_label(r), format_time(r.times[backend])] for _, r in mine],
            hovertemplate=f"{NAMES[backend]} %{{customdata[0]}}: %{{customdata[1]}}<extra></extra>",
        ), row=1, col=1)


def _errors(figure: go.Figure, c: Comparison) -> None:
    at = places(c.rows)
    held = [(x, r.bands["native"]) for x, r in zip(at, c.rows, strict=True) if "native" in r.bands and r.bands["native"].median > 0]
    if held and is_curve(c.rows) and any(ref == "native" for _, ref in c.pairs):
        colour = LOOKS["native"][0]
        ends = [[100 * (end / b.median - 1) for end in (b.low, b.high)] for _, b in held]
        band = area([x for x, _ in held], [a for a, _ in ends], [b for _, b in ends], colour, legendgroup="native")
        figure.add_trace(band, row=2, col=1)
    for pair in c.pairs:
        colour, symbol, dash = _PAIRS[pair]
        mine = [(x, r, e) for x, r in zip(at, c.rows, strict=True) if (e := r.error(*pair)) is not None]
        figure.add_trace(go.Scatter(
            x=[x for x, _, _ in mine], y=[100 * e for _, _, e in mine], name=f"error of {pair_name(*pair)}",
            mode="lines+markers" if is_curve(c.rows) else "markers", line={"color": colour, "width": 1.6, "dash": dash},
            showlegend=pair not in _OWN_LOOK, legendgroup=pair[0] if pair in _OWN_LOOK else None,
            marker={"symbol": _symbols([r for _, r, _ in mine], symbol), "size": 8 if is_curve(c.rows) else 13},
            customdata=[[_row_label(r), _band_said(r, pair)] for _, r, _ in mine],
            hovertemplate=f"{pair_name(*pair)} %{{customdata[0]}}: %{{y:+.2f}} %%{{customdata[1]}}<extra></extra>",
        ), row=2, col=1)


def _band_said(r: ComparisonRow, pair: tuple[str, str]) -> str:
    inside = r.inside(*pair)
    return "" if inside is None else ", inside the noise band" if inside else ", outside the noise band"


def _title(c: Comparison, backend: str) -> str:
    e = c.executions[backend]
    what = e.mpi if backend != "model" else name_of(e.model)
    extra = f", {name_of(e.model)}" if backend == "smpi" and e.model else ""
    return f"{NAMES[backend]} ({what}{extra})" if what else NAMES[backend]


def _curve_figure(c: Comparison) -> go.Figure:
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.62, 0.38])
    _curves(figure, c)
    _errors(figure, c)
    if any(r.use for r in c.rows):
        for name, symbol in (("used by the fit", "circle"), ("held out", "circle-open")):
            figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=name,
                                        marker={"symbol": symbol, "size": 9, "color": "#444444"}), row=1, col=1)
    layout(figure, "Time of one part, and its error" if is_curve(c.rows) else "Time and its error")
    if is_curve(c.rows):
        sizes = [float(r.size_B or 0) for r in c.rows]
        figure.update_xaxes(**size_axis(sizes, 0))
        figure.update_xaxes(title={"text": ""}, row=1, col=1)
        figure.update_yaxes(**{**value_axis("time"), "title": {"text": "time", "standoff": 12}}, row=1, col=1)
    else:
        figure.update_yaxes(**AXIS, title={"text": "time"}, exponentformat="SI", ticksuffix="s", row=1, col=1)
        figure.update_xaxes(type="category", row=2, col=1)
    figure.update_yaxes(**{**AXIS, **_ZERO}, title={"text": "error, %"}, row=2, col=1)
    figure.update_layout(legend={"y": -0.13})
    return figure


def _distribution_figure(c: Comparison) -> go.Figure | None:
    figure = go.Figure()
    for pair in c.pairs:
        colour, symbol, dash = _PAIRS[pair]
        for use in dict.fromkeys(r.use for r in c.rows):
            errors = [e for r in c.rows if r.use == use and (e := r.error(*pair)) is not None]
            if len(errors) < LEAST_CURVE:
                continue
            x, y = steps(errors)
            figure.add_trace(go.Scatter(
                x=x, y=y, mode="lines+markers", name=f"{pair_name(*pair)}{', ' + use if use else ''}",
                line={"shape": "hv", "color": colour, "width": 2, "dash": dash if use != FIT else "solid"},
                marker={"symbol": symbol if use in (FIT, "") else f"{symbol}-open", "size": 7},
                hovertemplate="%{y:.0f} % of the rows have an error of at most %{x:.2f} %<extra></extra>",
            ))
    if not figure.data:
        return None
    layout(figure, "Distribution of the errors")
    for level in (50, 95):
        figure.add_hline(y=level, line={"color": "#777", "width": 1, "dash": "dash"})
    figure.update_xaxes(**AXIS, title={"text": "absolute error, %"}, rangemode="tozero")
    figure.update_yaxes(**AXIS, title={"text": "rows that are no worse, %"}, range=[0, 103], tickvals=[0, 25, 50, 75, 95])
    return figure


def _split_figure(c: Comparison) -> go.Figure | None:
    figure = go.Figure()
    for split in c.splits:
        pair = (split.backend, split.reference)
        bars = bars_of(split)
        figure.add_trace(go.Bar(
            orientation="h", y=[w for w, _ in bars], x=[v for _, v in bars], name=pair_name(*pair),
            marker={"color": _PAIRS[pair][0],
                    "pattern": hatch_pattern(_HATCH[pair], 0.3)},
            hovertemplate="%{y}: %{x:+.2f} % of the reference's time<extra></extra>",
        ))
    if not figure.data:
        return None
    layout(figure, "Origin of the difference")
    figure.update_layout(barmode="group", margin={"l": 10})
    figure.update_xaxes(**{**AXIS, **_ZERO}, title={"text": "difference, % of the time of all ranks"})
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def figures(c: Comparison) -> dict[str, go.Figure]:
    """Name -> figure: curves with their errors; the distribution and the origin of the difference if there is data for them."""
    out = {"curves": _curve_figure(c), "distribution": _distribution_figure(c), "origin": _split_figure(c)}
    return {k: v for k, v in out.items() if v is not None}


def _counts(c: Comparison) -> str:
    shown = []
    for backend, reference in c.pairs:
        judged = c.judged_rows()
        use = judged[0].use if judged else None
        found = c.distribution(backend, reference, use)
        if found is None:
            continue
        what = {"held out": "held-out sections", "": "sections"}.get(use or "", "sections") if c.sections else "the whole program"
        told = f"median of {found.n} {what}; 95th percentile {100 * found.p95:.1f} %, worst {share(found.worst)} at {escape(found.where)}"
        if not c.sections:
            told = what
        inside = [i for r in judged if (i := r.inside(backend, reference)) is not None]
        band = f"; {sum(inside)} of {len(inside)} inside the noise band" if inside else ""
        shown.append((escape(pair_name(backend, reference)), f"{100 * found.median:.1f} % off", f"{told}{band}"))
    return boxes(shown)


def _time(value: float | None) -> str:
    return "" if value is None else format_time(value)


def share(value: float | None) -> str:
    """A share as a percentage with its sign; "" for None."""
    return "" if value is None else percent(100 * value)


def _rows_table(c: Comparison) -> str:
    head = ["section", *(NAMES[b] for b in c.executions)]
    native = "native" in c.executions
    head += ["noise band"] if native else []
    head += [pair_name(*p) for p in c.pairs]
    head += ["use"] if any(r.use for r in c.rows) else []
    lines = []
    for r in (*c.sections, c.whole):
        cells: list[Content] = [f'<span class="id">{escape(r.label if r.size_B is None else format_bytes(r.size_B))}</span>']
        cells += [(_time(r.times.get(b)), "n") for b in c.executions]
        if native:
            held = r.bands.get("native")
            cells.append((f"{_time(held.low)} – {_time(held.high)}" if held else "", "n"))
        for p in c.pairs:
            inside = r.inside(*p)
            sign = "" if inside is None else " <small>(in the band)</small>" if inside else ""
            cells.append((share(r.error(*p)) + sign, "n"))
        if any(x.use for x in c.rows):
            cells.append(escape(r.use))
        lines.append(cells)
    return table(head, lines)


def _calls_table(c: Comparison, most: int = 40) -> str:
    head = ["call", "size", *(f"{NAMES[b]}: calls" for b in c.executions), *(f"{NAMES[b]}: in them" for b in c.executions),
            *(pair_name(*p) for p in c.pairs)]
    lines: list[list[Content]] = []
    for r in c.calls[:most]:
        flat = r.row(c.pairs)
        numbers = [escape(format_bytes(r.size_B)), *(str(r.counts.get(b, "")) for b in c.executions),
                   *(_time(r.seconds.get(b)) for b in c.executions), *(share(flat[f"{p[0]}_to_{p[1]}"]) for p in c.pairs)]
        lines.append([f'<span class="id">{escape(r.call)}</span>', *((n, "n") for n in numbers)])
    more = f"<p class='soft'>{len(c.calls) - most} more rows are in the CSV and JSON.</p>" if len(c.calls) > most else ""
    return table(head, lines) + more if lines else ""


def _distribution_table(c: Comparison) -> str:
    head = ("pair", "rows", "n", "median", "95th", "worst", "bias", "in the noise band")
    lines: list[list[Content]] = []
    for d in c.distributions():
        inside = "" if d["inside"] is None else f"{d['inside']:.0%}"
        words = (escape(pair_name(d["backend"], d["reference"])), escape(d["use"]))
        numbers = (str(d["n"]), f"{100 * d['median']:.2f} %", f"{100 * d['p95']:.2f} %",
                   f"{share(d['worst'])} at {escape(d['where'])}", share(d["bias"]), inside)
        lines.append([*words, *((n, "n") for n in numbers)])
    return table(head, lines)


def _provenance(c: Comparison, hashes: Mapping[str, str]) -> str:
    head = ("backend", "MPI or model", "where", "times", "noise", "notes", "run")
    lines = []
    for b, e in c.executions.items():
        model = f"{escape(e.model)} at {escape(e.fidelity)}" if e.model else ""
        digest = f"<br><small>model {escape(hashes[b][:12])}</small>" if hashes.get(b) and e.model else ""
        machine = f"{escape(e.machine.host)}: {escape(e.machine.cpu)}, {e.machine.cores} cores" if e.machine else ""
        where = f"{escape(e.platform)}, {escape(e.mode)}" if e.platform and b != "native" else machine
        n = len(e.samples_s)
        noise = ""
        if e.noise is not None:
            noise = f"spread {e.noise.spread:.1%}, probe {e.noise.probe:.1%}, stolen {e.noise.stolen:.1%}" + (
                f"<br><b>loaded: {escape(e.noise.why)}</b>" if e.noise.loaded else "")
        values = (NAMES[b], "<br>".join(t for t in (escape(e.mpi), model) if t) + digest, where,
                  f"{n} repetition{'s' if n != 1 else ''}" if b == "native" else "simulated", noise, "<br>".join(map(escape, e.notes)),
                  "" if e.run_id is None else str(e.run_id))
        lines.append(values)
    return table(head, lines)


def _origin(c: Comparison) -> str:
    lines = []
    for s in c.splits:
        top = ", ".join(f"{escape(n)} {percent(100 * d / s.reference_total)}" for n, d in s.calls[:3]) if s.reference_total else ""
        if s.reference_total:
            whole, computed, inside = (share(v / s.reference_total) for v in (s.total, s.computation, s.communication))
            pair = escape(f"{NAMES[s.backend]} against {NAMES[s.reference]}")
            told = f"{whole} of the time of all ranks, of which {computed} is computation and {inside} inside MPI ({top})"
            lines.append(f"<p>{pair}: {told}.</p>")
    return "".join(lines)


def page(c: Comparison, verdict: ComparisonVerdict | None = None, hashes: Mapping[str, str] | None = None, footer: str = "") -> str:
    """The page as HTML text; ``hashes``: backend -> hash of its model."""
    drawn = figures(c)
    command = " ".join([c.program, *c.arguments])
    ranks = f"{c.ranks} rank{'s' if c.ranks != 1 else ''}"
    shown = " ".join(f'<p class="defect">{escape(w[0].upper() + w[1:])}.</p>' for w in c.warnings)
    judged = ""
    if verdict is not None:
        sign, css = ("✓", "pass") if verdict.passed else ("✗", "fail")
        judged = f'<p><span class="{css}">{sign}</span> {escape(verdict.line)}</p>'
    title = f"{Path(c.program).name}: {', '.join(NAMES[b] for b in c.executions)}"
    links = " ".join(f'<a href="#{n}">{n.capitalize()}</a>' for n in ("curves", "sections", "calls", "provenance"))
    noise = c.noise()
    floor = (
        "" if noise is None else f" Half of the native band is {100 * noise:.1f} % of its median: smaller differences are not significant."
    )
    fitted = ""
    if c.seen.fitted:
        fitted = f" The fit of {escape(c.seen.model)} used {len(c.seen.sizes)} sizes of single messages; they are marked."
    other = "".join(f"<div>{figure_html(f, n)}</div>" for n, f in drawn.items() if n != "curves")
    told = " · ".join(t for t in (footer, "drawn from runs " + ", ".join(str(e.run_id) for e in c.executions.values())
                                  if all(e.run_id is not None for e in c.executions.values()) else "") if t)
    return document(
        title,
        f"""<header><p class="soft">retrompi compares</p><h1>{escape(title)}</h1>
<p>{escape(command)} on {ranks}.{floor}{fitted}</p>
<nav>{links}</nav></header>
{shown}{judged}{_counts(c)}
<h2 id="curves">Curves and errors</h2>{figure_html(drawn["curves"], "curves", tall=True)}
<div class="figures">{other}</div>{_origin(c)}
<h2 id="sections">Sections</h2>{_distribution_table(c)}{_rows_table(c)}
{f'<h2 id="calls">Calls</h2><p class="soft">All ranks together.</p>{_calls_table(c)}' if c.calls else ""}
<h2 id="provenance">Provenance</h2>{_provenance(c, hashes or {})}
<footer class="soft"><p><small>{escape(told)}</small></p></footer>
{drawing(drawn)}""",
    )


def write(path: Path, c: Comparison, verdict: ComparisonVerdict | None = None, hashes: Mapping[str, str] | None = None) -> None:
    """Write the page. Raises InputError when it cannot be written."""
    from retrompi.store import code_version

    save(path, page(c, verdict, hashes, f"retrompi {code_version()}"))
