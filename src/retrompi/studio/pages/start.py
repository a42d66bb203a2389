"""The front page: a story that is explored on the spot, three ways on, and the pages."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from retrompi.base.translate import _, lazy
from retrompi.base.units import format_bytes
from retrompi.studio.anatomy.anatomy_job import scenes
from retrompi.studio.components import parts
from retrompi.studio.curves import story
from retrompi.studio.requests import inputs, shipped_figures
from retrompi.studio.requests.page import Page, pages
from retrompi.studio.requests.state import Query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

PAGE = Page(
    path="/", title=lazy("Start"), order=0, help=lazy("Historical MPI runtimes as processes, channels and an operating system."),
    inputs={"start-ask.data": inputs.number,
            "start-drawn.data": inputs.mapping(packet=inputs.number, quantum=inputs.number, size=inputs.number)},
)


BEGIN = ("128 KiB", "120 ms")
"""Packet and quantum as the model has them."""


def _first(told: Mapping[str, Any]) -> tuple[int, int, int]:
    """The places of the model's packet and quantum, and of the last size before the largest fall of their curve."""
    packet, quantum = told["packets"].index(BEGIN[0]), told["quanta"].index(BEGIN[1])
    rates = told["rates"][packet][quantum]
    return packet, quantum, min(range(len(rates) - 1), key=lambda i: float(rates[i + 1] / rates[i]))


def layout(query: Query, resources: Resources) -> Component:
    """The story, three doors, and a card for every page."""
    cards = [
        html.Li([html.H2(dcc.Link(_(page.title), href=page.path)), html.P(_(page.help))], className="card")
        for page in pages() if page.path != "/"
    ]
    told = shipped_figures.answer(PAGE.path)
    return html.Div(
        [
            html.Div(_story(told) if told else [], id="start-shown"), parts.job_bar("start"),
            dcc.Store(id="start-ask", data=0 if told else 1), _doors(),
            html.H2(_("All pages")), html.Ul(cards, className="cards", id="start-cards"),
        ]
    )


def _story(told: Mapping[str, Any]) -> list[Component]:
    """The story of what was simulated."""
    packet, quantum, last = _first(told)
    guesses = (("same", _("It stays as it is")), ("half", _("It falls to a half")), ("far", _("It falls much further")))
    begin = _("Two processes on a PC of 1997: a message of {size} arrives at {rate} MB/s. Now send {next}. What happens to the rate?")
    at = told["sizes"][last]
    rate = told["rates"][packet][quantum][last]
    asked = begin.format(size=format_bytes(at), rate=f"{rate:.3g}", next=format_bytes(told["sizes"][last + 2]))
    figure = html.Div(
        html.Div(id="start-figure", className="sketch"), className="story-figure", role="figure",
        **{"aria-label": _("Bandwidth by message size, as it was and as you set it; the numbers are told below")},
    )
    sliders = html.Div([
        html.Label([html.Span(_("Packet of the library")), html.Output(id="start-packet-said", htmlFor="start-packet"),
                    dcc.Input(id="start-packet", type="range", min=0, max=len(told["packets"]) - 1, step=1, value=packet)]),
        html.Label([html.Span(_("Turn of a process on the processor")), html.Output(id="start-quantum-said", htmlFor="start-quantum"),
                    dcc.Input(id="start-quantum", type="range", min=0, max=len(told["quanta"]) - 1, step=1, value=quantum)]),
    ], className="story-sliders")
    after = [
        html.P(_("A short message is put into a buffer at once; before a long one its sender waits for an answer. One processor serves "
                 "both processes, and whoever waits keeps it until its turn is over. Drag: what moves the cliff, and what its depth?")),
        sliders,
        html.Div([
            html.Button(_("Play one message"), id="start-play", type="button"),
            dcc.Link(_("Change anything else"), href="/whatif", id="start-whatif"),
            html.Button(_("As it was"), id="start-reset", type="button", className="quiet"),
        ], className="lab-tools"),
        html.Div(id="start-player", className="player", role="group", **{"aria-label": _("One message, moving")}),
        parts.job_bar("start-message"),
        html.P(_("Every curve here was simulated before: {n} runs, none between them. Stars are what Baker and Fox published in 1998; "
                 "those that the model does not reach are counted as failed in the scorecard.")
               .format(n=len(told["packets"]) * len(told["quanta"])), className="soft"),
    ]
    return [
        html.P(asked, className="story-begin"),
        html.Div([html.Button(text, type="button", **{"data-guess": name}) for name, text in guesses],
                 id="start-guesses", className="lab-tools", role="group", **{"aria-label": _("Your guess")}),
        figure,
        html.P(id="start-said", role="status", className="story-said"),
        html.Div(after, id="start-after", hidden=True),
        dcc.Store(id="start-story", data={**told, "begin": [packet, quantum], "last": last, "layout": _axes(told)}),
        dcc.Store(id="start-drawn"), dcc.Store(id="start-scenes"), dcc.Store(id="start-played"),
    ]


def _doors() -> Component:
    doors = (
        ("/scorecard", _("The papers"), _("What was published, statement by statement, beside what the simulation gives.")),
        ("/scorecard#blind", _("The blind test"), _("Predictions that were written down before their curves were looked at.")),
        ("/labs?lab=5", _("A lab"), _("Predict, measure, explain: the quantum, in an hour.")),
    )
    items = [html.Li([html.H3(dcc.Link(title, href=href)), html.P(text)], className="card") for href, title, text in doors]
    return html.Nav([html.H2(_("Three ways on")), html.Ul(items, className="cards")], **{"aria-label": _("Three ways on")})


def first(query: Query, resources: Resources) -> Any:
    """(the story as a job, its figure, whether it is the same for everybody) for `retrompi.studio.requests.first_answer`."""
    return (_("the story"), story.simulate_story, (resources.places,)), _partial_figure, True


def _partial_figure(told: Mapping[str, Any]) -> dict[str, Any]:
    """The curve as far as the question goes."""
    from retrompi.render.figures.figures import PALETTE

    packet, quantum, last = _first(told)
    curve = {"x": told["sizes"][: last + 1], "y": told["rates"][packet][quantum][: last + 1], "mode": "lines+markers",
             "line": {"color": PALETTE[0]}}
    return {"data": [curve], "layout": _axes(told)}


def _axes(told: Mapping[str, Any]) -> dict[str, Any]:
    """Axes that stay where they are while curves change: of all sizes, and of every rate that a curve or the paper has."""
    import plotly.graph_objects as go

    from retrompi.render.figures import figures

    sizes = told["sizes"]
    rates = [r for row in told["rates"] for curve in row for r in curve if r is not None] + [star[1] for star in told["stars"]]
    ticks = [s for s in sizes if math.log2(s).is_integer() and math.log2(s) % 2 == 0]
    axis = figures.size_axis(sizes) | {"range": [math.log10(sizes[0] / 1.3), math.log10(sizes[-1] * 1.3)], "tickvals": ticks,
                                       "ticktext": [figures.size_label(s) for s in ticks]}
    values = figures.value_axis("bandwidth", drawn=rates) | {"range": [math.log10(min(rates) / 1.3), math.log10(max(rates) * 1.3)]}
    made = go.Figure(layout={"xaxis": axis, "yaxis": values, "showlegend": False})
    return dict(json.loads(made.to_json())["layout"])


def register(app: Dash, resources: Resources) -> None:
    """What is dragged is drawn by assets/story.js; a message that is played is simulated."""
    app.clientside_callback(
        ClientsideFunction("retrompi_story", "begin"), Output("start-drawn", "data"), Output("start-whatif", "href"),
        Input("start-story", "data"), Input("start-packet", "value"), Input("start-quantum", "value"),
    )
    app.clientside_callback(ClientsideFunction("retrompi_anatomy", "play"), Output("start-played", "data"), Input("start-scenes", "data"),
                            prevent_initial_call=True)

    def message(clicks: Any, drawn: Any) -> Any:
        """One message of the size that the page has found: the first below the cliff."""
        if not clicks or not drawn or drawn.get("size") not in story.SIZES:
            return None
        packet, quantum = (known[int(drawn.get(key) or 0) % len(known)]
                           for key, known in (("packet", story.PACKETS), ("quantum", story.QUANTA)))
        size = format_bytes(drawn["size"])
        asked = {"model": story.MODEL, "platform": story.PLATFORM, "mode": story.MODE, "size": size,
                 "set": ", ".join(story.sets(packet, quantum))}
        return _("one message of {size}").format(size=size), scenes, ([asked], "there")

    parts.register_job(
        app, resources, "start-message", [Input("start-play", "n_clicks")], message, parts.outputs("start-scenes.data"),
        lambda found: [m["scene"] for m in found if "scene" in m], states=[State("start-drawn", "data")], prevent_initial_call=True,
    )
    parts.register_job(
        app, resources, "start", [Input("start-ask", "data")],
        lambda ask: (_("the story"), story.simulate_story, (resources.places,)) if ask else None,
        parts.outputs("start-shown.children"), _story,
    )
