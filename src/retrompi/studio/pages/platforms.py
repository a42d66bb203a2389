"""Platforms: hosts, operating systems, memory levels and wires, every number with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from dash import Dash, Input, Output, dcc, html, no_update

from retrompi.base.translate import _, lazy
from retrompi.render.document.html import config
from retrompi.spec import registry
from retrompi.studio.cards import card_numbers, card_parts, memory_levels
from retrompi.studio.cards.card_pieces import Part, citation_parts, facts
from retrompi.studio.components import menus, parts
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, choice, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

PAGE = Page(
    path="/platforms",
    title=lazy("Platforms"),
    order=60,
    help=lazy("The platforms: their machines, operating systems, memories and networks, with the source of every value."),
    controls=(
        Control("platforms-platform", "value", "platform", "nt-pair", menus.PLATFORM),
        Control("platforms-source", "value", "source", "", choice(list(card_numbers.KINDS), "source")),
        Control("platforms-text", "value", "q", "", text(80)),
    ),
)


def _head(card: dict[str, Any], groups: list[card_numbers.HostGroup]) -> list[Part]:
    fitted: list[Part] = []
    for fit in card["fits"]:
        meta = fit.get("meta", {})
        found = ", ".join(f"{k} = {v}" for k, v in fit.get("values", {}).items())
        fitted += [
            _("{found}; with {by}, {date}, code {version}, seed {seed}").format(
                found=found, by=fit["by"], date=meta.get("date"), version=meta.get("version"), seed=meta.get("seed")
            ),
            *citation_parts(fit["rows"]),
        ]
    return [
        html.H2([f"{card['title']} ", html.Code(card["name"])]),
        html.P(card["summary"], className="lead", lang="en"),
        facts([(_("years"), card["years"]), (_("wire"), card["link"]), (_("fit"), fitted)]),
        html.H2(_("Machines"), id="machines"),
        *card_parts.hosts(groups, card["placements"]),
    ]


def _levels(platform: str) -> list[Part]:
    figure: go.Figure = memory_levels.figure(registry.platform(platform))
    return [
        html.H2(_("Memory"), id="memory"),
        html.P(_("The rate of a copy from each memory level, by the size of the working set."), className="soft"),
        dcc.Graph(figure=figure, id="platforms-memory", config=config(), className="plot"),
    ]


def _numbers(card: dict[str, Any], source: str, words: str) -> list[Part]:
    platform = registry.platform(card["name"])
    every = card_numbers.platform_numbers(card)
    groups = card_numbers.groups(platform, every)
    # A platform of eight identical hosts shows each number once.
    told = {g.names[0] for g in groups} | {"link"}
    distinct = [n for n in every if n.name.rpartition(".")[0] in told]
    some = card_numbers.fitting(distinct, source, words)
    left = (
        _("{n} of {n2} numbers").format(n=len(some), n2=len(distinct))
        if len(some) < len(distinct)
        else _("{n} numbers").format(n=len(distinct))
    )
    if not some:
        return [card_parts.kinds(card_numbers.by_kind(distinct), source), html.P(_("No parameter matches this filter."), className="soft")]
    return [
        card_parts.kinds(card_numbers.by_kind(distinct), source),
        html.P(left, className="soft"),
        *card_parts.side_tables(card_numbers.sides(platform, every), groups, some),
        *card_parts.wire([n for n in some if n.area == "wire"], card["link"], [n for n in some if n.area == "loops"]),
    ]


def _card(platform: str) -> tuple[dict[str, Any], list[card_numbers.HostGroup]]:
    from retrompi.render.cards.dossier import platform_dossier

    loaded = registry.platform(platform)
    card = platform_dossier(loaded)
    return card, card_numbers.groups(loaded, card_numbers.platform_numbers(card))


def layout(query: Query, resources: Resources) -> Component:
    """The card of one platform, with filters on its numbers."""
    values, lines = read(PAGE.controls, query)
    chosen = values["platform"]
    card, groups = _card(chosen)
    return html.Div(
        [
            html.Div(parts.notices(lines)),
            parts.controls(parts.menu(_("Platform"), "platforms-platform", menus.platforms(chosen), chosen, wide=True)),
            html.Div(_head(card, groups), id="platforms-head"),
            html.Div(_levels(card["name"]), id="platforms-levels"),
            html.H2(_("Numbers"), id="numbers"),
            card_parts.filters("platforms", values["source"], values["q"], _("e.g. quantum or E-NT-01")),
            html.Div(_numbers(card, values["source"], values["q"]), id="platforms-numbers"),
        ]
    )


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks for the platform and the filters."""

    @app.callback(
        *parts.outputs("platforms-head.children", "platforms-levels.children"), Input("platforms-platform", "value"),
        prevent_initial_call=True,
    )
    def other(platform: str) -> Any:
        if not menus.is_platform(platform):
            return no_update, no_update
        return _head(*_card(platform)), _levels(platform)

    @app.callback(
        Output("platforms-numbers", "children"),
        Input("platforms-platform", "value"), Input("platforms-source", "value"), Input("platforms-text", "value"),
        prevent_initial_call=True,
    )
    def filter_numbers(platform: str, source: str | None, words: str | None) -> Any:
        if not menus.is_platform(platform):
            return no_update
        return _numbers(_card(platform)[0], str(source or ""), str(words or "")[:80])
