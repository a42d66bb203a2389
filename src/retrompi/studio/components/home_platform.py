"""Runtimes and the platforms they come from: the platform follows the runtime; another one is said, and one click leads back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import Dash, Input, State, dcc, html

from retrompi.base.translate import _
from retrompi.spec import registry
from retrompi.studio.components import menus, parts
from retrompi.studio.components.parameters import check_names

if TYPE_CHECKING:
    from dash.development.base_component import Component

__all__ = ["apart", "platform_after", "register"]


def apart(prefix: str, model: str, platform: str) -> Component:
    """Below a page's platform (PREFIX-apart): a line when it is none that the runtime was calibrated on, and a button (PREFIX-own) that
    changes it."""
    own = menus.own_platforms(model)
    away = bool(own) and platform not in own
    home = registry.platform(own[0]).title if own else ""
    named = {"aria-label": _("Use {own}").format(own=home)}
    button = html.Button(_("Use it"), id=f"{prefix}-own", className="link", type="button", **named)
    line = _("{title} was calibrated on another platform, {own}: what you see is a prediction. ").format(
        title=registry.models()[model].title, own=home
    )
    # The button and the name are inputs of callbacks: they are always there.
    return html.Div([html.P([line, button], className="notice", hidden=not away), dcc.Store(id=f"{prefix}-before", data=model)],
                    id=f"{prefix}-apart", className="field wide", role="status")


def platform_after(prefix: str, model: str, platform: str, clicks: int | None, before: str) -> str:
    """The platform after what has just happened on the page: another runtime than the one ``before``, the button, or another platform."""
    if parts.changed_by(f"{prefix}-own") and clicks:
        return next(iter(menus.own_platforms(model)), platform)
    return menus.following(model, platform, before) if parts.changed_by(f"{prefix}-model") else platform


def register(app: Dash, prefix: str) -> None:
    """The platform's menu (PREFIX-platform) follows the runtime's (PREFIX-model)."""

    @app.callback(
        *parts.outputs(f"{prefix}-platform.options", f"{prefix}-platform.value", f"{prefix}-apart.children"),
        Input(f"{prefix}-model", "value"), Input(f"{prefix}-platform", "value"), Input(f"{prefix}-own", "n_clicks"),
        State(f"{prefix}-before", "data"), prevent_initial_call=True,
    )
    def other(model: Any, platform: Any, clicks: int | None, before: Any) -> Any:
        model, platform = parts.text(model), parts.text(platform)
        check_names(model, platform)
        found = platform_after(prefix, model, platform, clicks, parts.text(before))
        return menus.platforms(found), found, apart(prefix, model, found).children
