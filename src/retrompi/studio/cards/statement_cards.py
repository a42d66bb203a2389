"""A published statement as shown by the scorecard: the verdict in a line and, expanded, its full derivation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from dash import html

from retrompi.base.translate import _, lazy
from retrompi.base.units import format_bytes
from retrompi.papers.judging.verdicts import Summary, Verdict
from retrompi.render.cards.dossier import how_of
from retrompi.render.figures.figures import name_of
from retrompi.studio.cards.card_pieces import Part, facts, number_text, verdict
from retrompi.studio.cards.statements import GROUPS, KINDS, VERDICTS, Statement, StatementCurves

__all__ = ["card", "links", "matrix", "read_as", "tallies"]

_MEANING = {
    "calibrate": lazy("may be used by calibration"),
    "validate": lazy("held out, never used by a fit"),
    "exclude": lazy("contradicted within the paper; shown, never judged"),
    "context": lazy("configuration and definitions"),
}


def read_as(s: Statement) -> str:
    """The reading range of the published statement: ``low – high unit``; a place on a curve is a message size."""
    v = s.verdict
    if v.low is None and v.high is None:
        return ""
    knee = any(c.get("kind") == "knee" for c in s.how)

    def amount_text(value: float) -> str:
        return _amount(value, "B" if knee else v.unit)

    if v.high is None or v.low is None:
        if v.low is not None:
            return _("at least {low}").format(low=amount_text(v.low))
        return _("at most {x}").format(x=amount_text(v.high or 0))
    return amount_text(v.low) if v.low == v.high else f"{amount_text(v.low)} – {amount_text(v.high)}"


def _amount(value: float | str, unit: str) -> str:
    if unit == "B" and isinstance(value, float | int):
        return format_bytes(value)
    return number_text(value) + (f" {unit}" if unit and not isinstance(value, str) else "")


def _observed_text(v: Verdict) -> str:
    return "" if v.observed is None else _amount(v.observed, v.unit)


def _distance(v: Verdict) -> str:
    if v.residual is None:
        return ""
    unit = f" {v.unit}" if v.unit else ""
    return (
        _("within the accepted range")
        if v.residual == 0
        else _("{residual:+.3g}{unit} outside the accepted range").format(residual=v.residual, unit=unit)
    )


def curve_query(place: StatementCurves) -> str:
    """The address of the curve page for a place."""
    pairs = [(_("model"), m) for m in place.models]
    return "/curves?" + urlencode([*pairs, ("platform", place.platform), ("mode", place.mode)], safe=",:")


def links(s: Statement) -> list[Part]:
    """Links to related pages: the statement's curves, the anatomy of its messages, the cards of its runtimes."""
    out: list[Part] = []
    if s.place is not None:
        where = f"{', '.join(name_of(m) for m in s.place.models)}, {s.place.mode}"
        out.append(html.A(_("curves: {where}").format(where=where), href=curve_query(s.place)))
    for model, platform, mode, size in s.messages:
        asked = urlencode({"model": model, "platform": platform, "mode": mode, "size": format_bytes(size).replace(" ", "")}, safe=":")
        out.append(
            html.A(
                _("anatomy: {name_of}, {mode}, {size}").format(name_of=name_of(model), mode=mode, size=format_bytes(size)),
                href=f"/anatomy?{asked}",
            )
        )
    for model in s.verdict.models:
        out.append(html.A(_("card: {name_of}").format(name_of=name_of(model)), href=f"/models?{urlencode({'model': model}, safe=':')}"))
    return out


def card(s: Statement, is_open: bool = False) -> html.Details:
    """One statement; its id is the claim's."""
    c, v = s.claim, s.verdict
    line = [
        verdict(v.verdict),
        html.Span(c.id, className="id"),
        html.Span(_(GROUPS[c.use]), className=f"group {c.use}"),
        html.Span([html.Span(f"{c.system}, {c.observable}: ", className="soft"), html.B(v.published)], className="said", lang="en"),
        html.Span(_observed_text(v) if isinstance(v.observed, float | int) else "", className="seen", lang="en"),
    ]
    mechanisms = [html.P([html.B(title), f" — {text}"], lang="en") for title, text in s.mechanisms]
    made = _("in advance ({when}, with code {code})") if s.in_advance else _("{when} UTC, code {code}")
    if s.changed:
        made = _("in advance ({when}, with code {code}); changed since: {changed}")
    pairs: list[tuple[str, Part]] = [
        (
            _("in the paper"),
            html.Span(
                [f"{c.observable}: ", html.B(v.published), html.Span(f" ({c.configuration}; {c.platform})", className="soft")], lang="en"
            ),
        ),
        (_("printed in"), c.source + (_(", also in {also_in}").format(also_in=c.also_in) if c.also_in else "")),
        (_("kind"), f"{_(KINDS[c.kind])}, {_(GROUPS[c.use])}: {_(_MEANING[c.use])}"),
        (_("read as"), html.Span(read_as(s), lang="en") if read_as(s) else ""),
        (_("simulated"), html.Span(_observed_text(v), lang="en") if _observed_text(v) else ""),
        (_("distance"), _distance(v)),
        (_("how judged"), html.Span(how_of(s.how), lang="en")),
        (_("reading"), html.Span(v.reading, lang="en") if v.reading else ""),
        (_("finding"), html.Span(v.note, lang="en") if v.note else ""),
        (_("the paper's own"), html.Span(v.contradiction, className="contradiction", lang="en") if v.contradiction else ""),
        (_("why"), mechanisms),
        (_("judged"), made.format(when=s.when, code=s.code, changed=", ".join(s.changed)) if s.when else ""),
        (_("look"), html.Span([p for a in links(s) for p in (a, " ")], className="links") if links(s) else ""),
    ]
    return html.Details([html.Summary(line), facts(pairs)], id=f"claim-{c.id}", className=f"statement {v.verdict}", open=is_open)


def tallies(found: Sequence[Summary]) -> list[tuple[str, str, str]]:
    """(group, number of passes, a few words) of fitted, held-out and other statements, each separately."""
    out = []
    for t in found:
        rest = _("; {unjudged} not judged").format(unjudged=t.unjudged) if t.unjudged and t.judged else ""
        share = (
            _("{passed} of {judged} pass").format(passed=t.passed, judged=t.judged)
            if t.judged
            else _("{unjudged} not judged").format(unjudged=t.unjudged)
        )
        out.append((_(GROUPS[t.use]), share, _(_MEANING[t.use]) + rest))
    return out


def matrix(cells: Mapping[str, Mapping[str, Mapping[str, int]]]) -> html.Div:
    """The verdict matrix: one row per system, fitted and held out separated, each count a link to its statements."""

    def link(system: str, use: str, word: str, n: int) -> Part:
        sign = {"pass": "✓", "fail": "✗", "unjudged": "·"}[word]
        asked = urlencode({"system": system, "group": use, "verdict": word})
        label = _("{system}, {group}: {n} {verdict}").format(system=system, group=_(GROUPS[use]), n=n, verdict=_(VERDICTS[word]))
        return html.A(f"{sign} {n}", href=f"/scorecard?{asked}", className=f"chip {word}", **{"aria-label": label})

    rows = []
    for system, uses in cells.items():
        row: list[Part] = [html.Th(system, scope="row")]
        for use in ("calibrate", "validate"):
            row.append(html.Td([link(system, use, w, n) for w, n in uses[use].items() if n]))
        rows.append(html.Tr(row))
    head = html.Tr([html.Th(t, scope="col") for t in (_("system"), _(GROUPS["calibrate"]), _(GROUPS["validate"]))])
    return html.Div(html.Table([html.Thead(head), html.Tbody(rows)], className="matrix"), className="scroll", tabIndex=0, role="region",
                    **{"aria-label": _("systems and how they were judged")})
