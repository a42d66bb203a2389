"""The curve explorer: PingPong curves of several runtimes, with what was published and what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import Dash, Input, Output, dcc, html

from retrompi import registry
from retrompi.studio import parts
from retrompi.studio.page import Page
from retrompi.studio.state import Control, Query, choice, read

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.room import Room

PAGE = Page(
    path="/curves",
    title="Curves",
    order=10,
    help="One-way time and bandwidth against message size, with what the papers state.",
    controls=(
        Control("curves-models", "value", "model", ["wmpi"], choice(registry.model_names, "model")),
        Control("curves-platform", "value", "platform", "nt-pair", choice(registry.platform_names, "platform")),
        Control("curves-mode", "value", "mode", "shared", choice(["shared", "distributed"], "mode")),
        Control("curves-series", "value", "series", "bandwidth", choice(["time", "bandwidth"], "series")),
    ),
)


def layout(query: Query, room: Room) -> Component:
    """The controls as the query says, the figure below."""
    values, wrong = read(PAGE.controls, query)
    return html.Div(
        [
            parts.notices(wrong),
            parts.controls(
                parts.field("Runtimes", dcc.Dropdown(registry.model_names(), values["model"], multi=True, id="curves-models")),
                parts.field("Platform", dcc.Dropdown(registry.platform_names(), values["platform"], clearable=False, id="curves-platform")),
                parts.field("Mode", dcc.Dropdown(["shared", "distributed"], values["mode"], clearable=False, id="curves-mode")),
                parts.field("Series", dcc.RadioItems(["time", "bandwidth"], values["series"], id="curves-series", inline=True)),
            ),
            parts.job_bar("curves"),
            dcc.Graph(id="curves-figure", config=parts.GRAPH, className="plot"),
        ]
    )


def simulate(report: Any, models: list[str], platform: str, mode: str) -> list[dict[str, Any]]:
    """The points of every model."""
    from retrompi.simulate import pingpong

    out = []
    for i, model in enumerate(models):
        report(i, len(models), model)
        out += [{**row, "model": model, "mode": mode} for row in pingpong(model, platform, mode)]
    return out


def register(app: Dash, room: Room) -> None:
    """The figure follows the controls."""

    def begin(models: list[str], platform: str, mode: str, series: str) -> Any:
        return f"PingPong of {', '.join(models)}", simulate, (models, platform, mode)

    def show(rows: Any) -> Any:
        import plotly.graph_objects as go

        return go.Figure(go.Scatter(x=[r["size_B"] for r in rows], y=[r["time_us"] for r in rows]))

    parts.register_job(
        app, room, "curves",
        [Input("curves-models", "value"), Input("curves-platform", "value"), Input("curves-mode", "value"), Input("curves-series", "value")],
        begin, [Output("curves-figure", "figure")], show,
    )  # fmt: skip
