"""Model cards: the assumptions of a runtime's model, and the source of each of its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from dash import Dash, Input, Output, html, no_update

from retrompi.base.errors import RetrompiError
from retrompi.base.translate import _, lazy
from retrompi.spec import registry
from retrompi.studio.cards import card_numbers, card_parts
from retrompi.studio.cards.card_pieces import Part, facts
from retrompi.studio.components import menus, parts
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, choice, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

PAGE = Page(
    path="/models",
    title=lazy("Models"),
    order=50,
    help=lazy("The assumptions of each runtime model: every parameter with its unit, its range and its kind of source."),
    controls=(
        Control("models-model", "value", "model", registry.FIRST_MODEL, choice(registry.model_names, "model")),
        Control("models-source", "value", "source", "", choice(list(card_numbers.KINDS), "source")),
        Control("models-text", "value", "q", "", text(80)),
        Control("models-platform", "value", "platform", "", menus.PLATFORM),
    ),
)


def _verdicts(resources: Resources) -> list[dict[str, Any]]:
    try:
        return resources.open_store().verdicts()
    except RetrompiError:
        return []


def _dossier(model: str, resources: Resources) -> dict[str, Any]:
    from retrompi.render.cards.dossier import model_dossier

    return model_dossier(model, (), _verdicts(resources))


def _head(card: dict[str, Any]) -> list[Part]:
    asked = urlencode({"model": card["name"]}, safe=":")
    base = card["variant_of"]
    origin = _("shipped with retrompi") if card["origin"] == "retrompi" else _("your own")
    to = f"/models?{urlencode({'model': base}, safe=':')}" if base else ""
    of = [html.A(base, href=to), html.Span(f": {card['variant_note']}", lang="en")] if base else ""
    look = [html.A(_("its curves"), href=f"/curves?{asked}"), " ", html.A(_("a message's anatomy"), href=f"/anatomy?{asked}")]
    return [
        html.H2([f"{card['title']} ", html.Code(card["name"])]),
        html.P(card["summary"], className="lead", lang="en"),
        facts([(_("version"), f"{card['version']} ({card['years']})"), (_("variant of"), of),
               (_("this model"), f"{origin}, {card['hash'][:12]}"),
               (_("look"), html.Span(look, className="links"))]),
        *card_parts.stands_for(card),
    ]


def _table(card: dict[str, Any], source: str, words: str) -> list[Part]:
    every = card_numbers.model_numbers(card)
    some = card_numbers.fitting(every, source, words)
    left = (
        _("{n} of {n2} parameters").format(n=len(some), n2=len(every))
        if len(some) < len(every)
        else _("{n} parameters").format(n=len(every))
    )
    return [card_parts.kinds(card_numbers.by_kind(every), source), html.P(left, className="soft"), card_parts.parameters(some)]


def _rest(card: dict[str, Any], platform: str) -> list[Part]:
    cls = registry.model(card["name"])
    start_platform = platform or registry.own_platform(card["name"])
    differ = card_numbers.differences(cls)
    return [
        html.H2(_("Variants and rival hypotheses"), id="variants"),
        *(card_parts.variants(differ, cls.name.partition(":")[0]) if differ else [html.P(_("None."), className="soft")]),
        html.H2(_("How a job is started"), id="start"),
        *card_parts.start(card_numbers.starts(card["name"], start_platform), start_platform),
        html.H2(_("Collectives"), id="collectives"),
        html.P(_("The first matching row is used."), className="soft"),
        html.Details([html.Summary(_("{n} rows").format(n=len(card["collectives"]))), card_parts.collectives(card["collectives"])]),
        html.H2(_("Fit"), id="fit"),
        *card_parts.fit(card["fit"]),
        *card_parts.posterior(card["posterior"]),
        html.H2(_("Statements that judge it"), id="judged"),
        *card_parts.verdict_parts(card["judged"]),
        *card_parts.transfer(card["transfer"]),
    ]


def layout(query: Query, resources: Resources) -> Component:
    """The card of one model, with filters on its numbers."""
    values, lines = read(PAGE.controls, query)
    lines += [
        _("'{name}' is left out: {name2}").format(name=name, name2=type(error).__name__) for name, error in registry.load_errors().items()
    ]
    card = _dossier(values["model"], resources)
    choices = [{"label": _("its own"), "value": ""}, *menus.platforms(values["platform"])]
    return html.Div(
        [
            html.Div(parts.notices(lines)),
            parts.controls(
                parts.menu(_("Model"), "models-model", menus.models(), values["model"], wide=True),
                parts.menu(_("Platform of the start"), "models-platform", choices, values["platform"]),
            ),
            html.Div(_head(card), id="models-head"),
            html.H2(_("Numbers"), id="numbers"),
            card_parts.filters("models", values["source"], values["q"], _("e.g. packet or BF-SM-05")),
            html.Div(_table(card, values["source"], values["q"]), id="models-numbers"),
            html.Div(_rest(card, values["platform"]), id="models-rest"),
        ]
    )


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks for the model and the filters."""

    @app.callback(
        *parts.outputs("models-head.children", "models-rest.children"),
        Input("models-model", "value"), Input("models-platform", "value"), prevent_initial_call=True,
    )
    def other(model: str, platform: str | None) -> Any:
        if model not in registry.model_names() or (platform and not menus.is_platform(platform)):
            return no_update, no_update
        card = _dossier(model, resources)
        return _head(card), _rest(card, platform or "")

    @app.callback(
        Output("models-numbers", "children"),
        Input("models-model", "value"), Input("models-source", "value"), Input("models-text", "value"), prevent_initial_call=True,
    )
    def filter_table(model: str, source: str | None, words: str | None) -> Any:
        if model not in registry.model_names():
            return no_update
        return _table(_dossier(model, resources), str(source or ""), str(words or "")[:80])
