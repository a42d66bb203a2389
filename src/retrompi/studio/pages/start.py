"""The front page: an overview of the pages, and this session's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dash import Dash, dcc, html

from retrompi.base.translate import _, lazy
from retrompi.studio.page import Page, pages
from retrompi.studio.state import Query

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.room import Room

PAGE = Page(path="/", title=lazy("Start"), order=0, help=lazy("Historical MPI runtimes as processes, channels and an operating system."))


def layout(query: Query, room: Room) -> Component:
    """A card for every page."""
    cards = [
        html.Li([html.H2(dcc.Link(_(page.title), href=page.path)), html.P(_(page.help))], className="card")
        for page in pages() if page.path != "/"
    ]  # fmt: skip
    return html.Div(
        [html.P(_("Change one parameter, predict what happens, and check.")), html.Ul(cards, className="cards", id="start-cards")]
    )


def register(app: Dash, room: Room) -> None:
    """Registers nothing: this page does not change."""
