"""The parts of a model's and of a platform's card: numbers by source, variants, job start, and the statements that judge it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from dash import html

from retrompi.base.translate import _, lazy
from retrompi.base.units import format_time
from retrompi.render.atlas.transfer_table import HELD, NUMBERS, numbers, statement_rows
from retrompi.render.cards import determined
from retrompi.render.document.engine_words import process_name
from retrompi.studio.cards.card_numbers import AREAS, KINDS, HostGroup, ShownNumber, SideBySide, VariantChanges, with_micro_sign
from retrompi.studio.cards.card_pieces import (
    Part,
    Value,
    citation_parts,
    facts,
    number_rows,
    number_text,
    parameter_name,
    source,
    table,
    verdict,
)
from retrompi.studio.components import parts
from retrompi.studio.components.parts import english

__all__ = ["collectives", "filters", "fit", "hosts", "kinds", "parameters", "posterior", "side_tables", "start", "transfer", "variants",
           "verdict_parts", "wire"]

_HEAD = (lazy("parameter"), lazy("value"), lazy("range"), lazy("source"))
_AREAS = {"processor": lazy("Processor"), "scheduler": lazy("Scheduler"), "memory": lazy("Memory"),
          "protocol stack": lazy("Protocol stack"), "network card": lazy("Network card")}


def filters(page: str, source: str, words: str, example: str) -> Any:
    """The filters of a card's numbers: the kind of source, and search words; ids ``PAGE-source`` and ``PAGE-text``."""
    offered = [{"label": _("all sources"), "value": ""}, *({"label": f"{k}: {_(told)}", "value": k} for k, told in KINDS.items())]
    return parts.controls(
        parts.menu(_("Source"), f"{page}-source", offered, source, wide=True),
        parts.entry(_("Words"), f"{page}-text", words, type="search", debounce=0.4, maxLength=80, placeholder=example),
    )


def kinds(found: Counter[str], chosen: str = "") -> html.Div:
    """The number of values from each kind of source, as a bar of shares with a legend below."""
    total = sum(found.values()) or 1
    bar = [html.Span(className=f"share kind-{k}", style={"flexGrow": n}, title=f"{n} {k}") for k in KINDS if (n := found[k])]
    words = [
        html.Li([html.Span(k, className=f"kind kind-{k}"), html.B(f" {found[k]} "),
                 html.Span(f"({found[k] / total:.0%}) {_(KINDS[k])}", className="soft")], className="chosen" if k == chosen else None)
        for k in KINDS if found[k]
    ]
    return html.Div([html.Div(bar, className="shares", **{"aria-hidden": "true"}), html.Ul(words, className="kinds")])


def parameters(some: Sequence[ShownNumber], what: str = lazy("parameter")) -> Part:
    """The table of numbers; a notice if no number fits the filter."""
    if not some:
        return html.P(_("Nothing matches this filter."), className="soft")
    return table((what, *_HEAD[1:]), number_rows(some))


def variants(some: Sequence[VariantChanges], base: str) -> list[Part]:
    """The changes of each variant relative to the model of its folder."""
    out: list[Part] = []
    for d in some:
        rows = [[html.Code(name), Value(before or "—"), Value(here or "—"), english(where)] for name, before, here, where in d.changed]
        told: list[Part] = [html.P(d.note, lang="en")]
        if d.code:
            told.append(html.P(_("In addition to its parameters, another mechanism: {code}.").format(code=", ".join(d.code))))
        if rows:
            told.append(table((_("parameter"), _("in {model}").format(model=base), _("here"), _("source here")), rows))
        elif not d.code:
            told.append(html.P(_("Only its name differs."), className="soft"))
        asked = urlencode({"model": d.name}, safe=":")
        told.append(html.P(html.A(_("its card"), href=f"/models?{asked}")))
        out.append(html.Details([html.Summary([html.Code(d.name), html.Span(f" {d.title}", lang="en")]), *told], className="variant"))
    return out


def _step(name: str) -> Part:
    """What is started: a process, named in the reader's language, or something of the library's own."""
    return process_name(name) if process_name(name) != name else english(name)


def start(told: Mapping[str, Any], where: str) -> list[Part]:
    """The steps of a job's start, the windows and daemons it leaves, and its failure rate."""
    steps = told.get("steps", ())
    refused = [html.P([html.B(_("Cannot run there: ")), told["refused"]], className="notice")] if told.get("refused") else []
    if not steps:
        return [*refused, html.P(_("No steps are needed.") if not refused else "", className="soft")]
    rows = [
        [_step(str(s["step"])), _("by hand") if s["manual"] else "",
         Value(number_text(s["windows"] or None)), Value(number_text(s["daemons"] or None)),
         Value(format_time(s["seconds"]) if s["seconds"] else ""), english(str(s["note"]))]
        for s in steps
    ]
    line = _(
        "{ranks} ranks on the {hosts} machines of {where}: {manual_steps_per_job} steps by hand, "
        "{windows} windows, {daemons} daemons; {failures} of {attempts} drawn starts fail."
    ).format(
        ranks=told["ranks"],
        hosts=told["hosts"],
        where=where,
        manual_steps_per_job=told["manual_steps_per_job"],
        windows=told["windows"],
        daemons=told["daemons"],
        failures=told["failures"],
        attempts=told["attempts"],
    )
    return [*refused, html.P(line), table((_("step"), _("by hand"), _("windows"), _("daemons"), _("takes"), _("note")), rows)]


def collectives(rows: Sequence[Mapping[str, Any]]) -> html.Div:
    """The algorithm of each collective operation, when it is used, and its source."""
    keys = ("operation", "algorithm", "when", "source")
    return table((_("collective"), _("algorithm"), _("when"), _("source")), [[english(str(r[k])) for k in keys] for r in rows])


def fit(told: Mapping[str, Any] | None) -> list[Part]:
    """The fit in force: its values with their identifiability, and the residuals against the statements it saw."""
    if told is None:
        return [html.P(_("None: every value above is as given by its source."), className="soft")]
    seed = _(", seed {seed}").format(seed=told["seed"]) if "seed" in told else ""
    out: list[Part] = [
        html.P(
            _("Fit of {of}: {date}, code {version}{seed}. {note}").format(
                of=told["of"], date=told.get("date", "?"), version=told.get("version", "?"), seed=seed, note=told.get("note", "")
            )
        )
    ]
    if told["values"]:
        rows: list[list[Part]] = [
            [html.Code(v["name"]), Value(str(v["value"])), Value(" – ".join(map(str, v["range"])) if v["range"] else ""),
             html.Span(str(v["identifiability"]), lang="en")]
            for v in told["values"]
        ]
        out.append(table((_("parameter"), _("value"), _("range"), _("identifiability")), rows))
    if told["residuals"]:
        rows = [
            [[html.A(r["claim"], href=f"/scorecard?{urlencode({'q': r['claim']})}"), html.Br(), html.Small(r["says"], lang="en")],
             Value(html.Span(f"{number_text(r['observed'])} {r['unit']}", lang="en")),
             Value(f"{number_text(r['low'])} – {number_text(r['high'])}"),
             Value(_("{half_ranges:+.2f} half ranges").format(half_ranges=r['half_ranges']))]
            for r in told["residuals"]
        ]
        out.append(table((_("statement"), _("simulated"), _("read as"), _("from the midpoint")), rows))
    return out


def posterior(told: Mapping[str, Any] | None) -> list[Part]:
    """What the data say of each parameter: its interval in its prior range; nothing without a posterior."""
    if told is None:
        return []
    rows: list[list[Part]] = []
    for r in told["parameters"]:
        path, prior, inside, middle, left, data = map(with_micro_sign, determined.texts(r))
        rows.append([html.Code(path), Value(prior), [inside, html.Br(), _strip(r["places"])], Value(middle), Value(left), english(data)])
    return [
        html.H2(_("Posterior"), id="posterior"),
        html.P(_("Posterior of {facts}.").format(facts=determined.facts(told))),
        table(determined.HEAD, rows),
    ]


def _strip(places: Sequence[float]) -> html.Span:
    """An interval and its median within the prior range, as a bar."""
    low, middle, high = (100 * p for p in places)
    return html.Span(
        [html.I(style={"left": f"{low:.1f}%", "width": f"{max(high - low, 1):.1f}%"}), html.B(style={"left": f"{middle:.1f}%"})],
        className="prior", **{"aria-hidden": "true"},
    )


def verdict_parts(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The statements whose checks concern this model, fitted and held out counted separately, with their newest verdicts."""
    if not rows:
        return [html.P(_("No published statement names it."), className="soft")]
    known = [r for r in rows if r["verdict"] in ("pass", "fail")]
    told = []
    for use, words in (("calibrate", _("fitted")), ("validate", _("held out"))):
        mine = [r for r in known if r["use"] == use]
        every = sum(r["use"] == use for r in rows)
        passed = sum(r["verdict"] == "pass" for r in mine)
        told.append(
            _("{words}: {passed} of {n} pass").format(words=words, passed=passed, n=len(mine))
            if mine
            else _("{words}: {every} not judged in this store yet").format(words=words, every=every)
            if every
            else ""
        )
    items = [
        [html.A(r["id"], href=f"/scorecard?{urlencode({'q': r['id']})}"),
         verdict(r["verdict"] if r["verdict"] in ("pass", "fail") else "unjudged"),
         {"calibrate": _("fitted"), "validate": _("held out")}.get(r["use"], str(r["use"])), html.Span(str(r["says"]), lang="en")]
        for r in rows
    ]
    line = "; ".join(t for t in told if t)
    return [
        html.P(f"{line}." if line else ""),
        html.Details(
            [
                html.Summary(_("{n} statements").format(n=len(rows))),
                table((_("statement"), _("verdict"), _("group"), _("what it says")), items),
            ]
        ),
    ]


def transfer(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The machines that the model's library is known to have run on, simulated and published; nothing where none is known."""
    if not rows:
        return []
    out: list[Part] = [html.H2(_("Machines it is known to have run on"), id="transfer")]
    for head, told in ((NUMBERS, numbers(rows)), (HELD, statement_rows(rows))):
        cells: list[list[Part]] = [
            [*(Value(english(str(r[k]))) if k in ("published", "simulated", "ratio") else english(str(r[k])) for k in head[1:]),
             english(str(r["ref"] or ""))] for r in told
        ]
        out += [table((*head[1:], _("source")), cells)] if cells else []
    return out


def hosts(groups: Sequence[HostGroup], placements: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The hosts, identical ones once, and the named placements."""
    rows: list[list[Part]] = [
        [[g.title, html.Br(), html.Small(", ".join(g.names), className="soft")] if len(g.names) > 1 else g.title, g.os,
         _("{byte_order} endian").format(byte_order=g.byte_order)]
        for g in groups
    ]
    out: list[Part] = [table((_("machine"), _("operating system"), _("byte order")), rows)]
    if placements:
        out.append(facts([(_("placement {name}").format(name=p["name"]), ", ".join(p["ranks"])) for p in placements]))
    return out


def side_tables(sides: Sequence[SideBySide], groups: Sequence[HostGroup], keep: Sequence[ShownNumber]) -> list[Part]:
    """The hosts' numbers by area, groups of hosts side by side, restricted to ``keep``."""
    names = {n.name for n in keep}
    out: list[Part] = []
    for area in (*AREAS, "other"):
        mine = [s for s in sides if s.area == area and any(c.name in names for c in s.stated)]
        if not mine:
            continue
        out.append(html.H3(_(_AREAS.get(area, lazy("Other")))))
        single = len(groups) == 1
        head = (_("quantity"), *((g.title for g in groups) if not single else (_("value"),)), _("range"), _("source"))
        rows = []
        for s in mine:
            spans = [html.Div(span) for span in dict.fromkeys(c.span for c in s.stated if c.span)]
            rows.append([parameter_name(s.key, s.help), *(Value(c.value if c else "") for c in s.cells), Value(spans), _sources(s, groups)])
        out.append(table(head, rows))
    return out


def _sources(s: SideBySide, groups: Sequence[HostGroup]) -> list[Part]:
    """The sources of a quantity, each once; with the hosts it applies to if they differ."""
    by: dict[tuple[str, str], list[str]] = {}
    for c, g in zip(s.cells, groups, strict=True):
        if c is not None:
            by.setdefault((c.kind, c.source), []).append(g.names[0])
    out = []
    for told, names in by.items():
        first = next(c for c in s.stated if (c.kind, c.source) == told)
        whose = [html.Small(f"{', '.join(names)}: ", className="soft")] if len(by) > 1 else []
        out.append(html.Div([*whose, *source(first)]))
    return out


def wire(some: Sequence[ShownNumber], link: str, loops: Sequence[ShownNumber]) -> list[Part]:
    """The numbers of the wire, and the costs of measured loops on the hosts, if they are described."""
    out: list[Part] = []
    if some:
        out += [html.H3(_("Wire: {link}").format(link=link)), parameters(some, _("quantity"))]
    if loops:
        out += [
            html.H3(_("Rinf1 loops")),
            html.P(_("Cost of the arithmetic loops of the paper's Rinf1 benchmark."), className="soft"),
            html.Details([html.Summary(_("{n} numbers").format(n=len(loops))), parameters(loops, _("quantity"))]),
        ]
    return out


def stands_for(card: Mapping[str, Any]) -> list[Part]:
    """What the model represents, with the rows its text cites, and where it was calibrated."""
    out: list[Part] = []
    if card["stands_for"]:
        out += [html.P(card["stands_for"], lang="en"), *citation_parts(card["stands_for_rows"])]
    needs, told = card["needs"], card["calibrated"]
    if needs is not None:
        out.append(html.P(_("Needs {text} ({source}); on other hardware it is refused.").format(**needs)))
    if told is None:
        out.append(html.P(_("No calibrated range is specified; every use is outside one."), className="soft"))
    else:
        out.append(
            html.P(_("Calibrated for {text} ({source}); a use outside it is noted.").format(text=told["text"], source=told["source"]))
        )
    return out
