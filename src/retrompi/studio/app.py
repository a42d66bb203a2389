"""The Dash application: layout, navigation, and the address that keeps a page's state."""

from __future__ import annotations

import json
import logging
import re
import secrets
from functools import wraps
from html import escape
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update, set_props
from flask import request

from retrompi.base import translate
from retrompi.base.errors import RetrompiError, nearest
from retrompi.base.translate import _, lazy
from retrompi.studio.components import parts, timeline_frames
from retrompi.studio.curves import slider_stops
from retrompi.studio.requests import first_answer, guard, language
from retrompi.studio.requests.page import Page, checks_of, modules, pages
from retrompi.studio.requests.state import MOST_CHARACTERS, Control, Query

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

__all__ = ["KEYS", "create_app", "page_content"]

log = logging.getLogger("retrompi.studio")

_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{%title%}</title>
{%favicon%}
{%css%}
</head>
<body>
<noscript>{%noscript%}</noscript>
{%app_entry%}
<footer>
{%config%}
{%scripts%}
{%renderer%}
</footer>
</body>
</html>
"""

_UNUSED = re.compile(r'<script src="[^"]*/dash_table/[^"]*"></script>\n?')
"""Scripts of Dash that no page needs: those of its tables."""

KEYS = (
    ("?", lazy("show or hide these keys")),
    ("1 … 9, 0", lazy("go to a page, in the order of the navigation")),
    ("/", lazy("go to the first control of the page")),
    ("l", lazy("copy the link of this view")),
    ("d", lazy("dark or light")),
    ("p", lazy("large letters and few controls, for a projector")),
    (lazy("Esc"), lazy("close this; cancel the page's running job")),
    (lazy("Tab, Shift Tab"), lazy("go from control to control; arrow keys move a slider")),
)


class _Studio(Dash):
    """Dash with an index page that does not reveal the Python version, and that shows a page's first figure itself; its callbacks are
    called only with values that their inputs are declared to have (`retrompi.studio.requests.inputs`)."""

    resources: Resources

    def callback(self, *args: Any, **options: Any) -> Any:
        register = super().callback(*args, **options)
        checks = checks_of((a.component_id, a.component_property) for a in args if isinstance(a, (Input, State)))

        def wrap(function: Any) -> Any:
            @wraps(function)
            def call(*values: Any) -> Any:
                for check, value in zip(checks, values, strict=True):
                    check(value)
                return function(*values)

            register(call)
            return function

        return wrap

    def interpolate_index(self, **kwargs: Any) -> str:
        kwargs["config"] = re.sub(r'"python_version":"[^"]*"', '"python_version":""', kwargs["config"])
        kwargs["scripts"] = _UNUSED.sub("", kwargs["scripts"])
        kwargs["metas"] += _words() + first_answer.head()
        search = request.query_string.decode("latin-1")
        shown, kwargs["scripts"] = first_answer.body(request.path, search, self.resources, kwargs["scripts"])
        kwargs["app_entry"] = shown + kwargs["app_entry"]
        page = str(super().interpolate_index(**kwargs))
        without = _("The studio draws its pages with JavaScript, which this browser has switched off.")
        return page.replace('<html lang="en">', f'<html lang="{translate.language()}">', 1).replace("{%noscript%}", escape(without), 1)


def _words() -> str:
    """What the scripts say, in the page's language, as data; nothing in English."""
    texts = translate.of_scripts("studio/assets/")
    if not texts:
        return ""
    data = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return f'<script type="application/json" id="studio-words">{data}</script>'


def create_app(resources: Resources, guarded: guard.Guard | None = None) -> Dash:
    """The application, ready to be served: every page of `retrompi.studio.requests.page` is registered.

    ``guarded`` defines who has access (None: only this machine, without a token). Its WSGI application is ``app.server``.
    """
    app = _Studio(
        "retrompi.studio", assets_folder=str(Path(__file__).parent / "assets"), use_pages=False, suppress_callback_exceptions=True,
        title="retrompi studio", update_title="", serve_locally=True, compress=False, eager_loading=False, index_string=_INDEX,
        include_assets_files=True, assets_external_path="", external_scripts=[], external_stylesheets=[], url_base_pathname="/",
        add_log_handler=False, on_error=_error_notice, assets_ignore=first_answer.IGNORED,
        **{name: False for name in ("enable_mcp", "websocket_callbacks") if name in signature(Dash.__init__).parameters},
    )
    app.resources = resources
    # Set explicitly, or environment variables (DASH_UI, DASH_PROPS_CHECK ...) could disable them.
    app.enable_dev_tools(
        debug=False, dev_tools_ui=False, dev_tools_props_check=False, dev_tools_serve_dev_bundles=False, dev_tools_hot_reload=False,
        dev_tools_prune_errors=False, dev_tools_disable_version_check=True,
    )
    app.layout = lambda: _frame(resources)
    known = modules()

    @app.callback(
        Output("main", "children"), Output("studio-title", "data"), Input("studio-address", "pathname"), State("studio-address", "search"),
    )
    def show(pathname: Any, search: Any) -> tuple[Component, str]:
        set_props("studio-notice", {"children": []})
        return page_content(parts.text(pathname) or "/", parts.text(search, MOST_CHARACTERS), resources)

    app.clientside_callback(ClientsideFunction("retrompi", "look"), Output("studio-letters", "data"), Input("studio-address", "pathname"))
    app.clientside_callback(ClientsideFunction("retrompi", "arrive"), Output("studio-arrived", "data"), Input("studio-title", "data"),
                            State("studio-address", "pathname"))
    for module in known.values():
        _keep_address(app, module.PAGE)
        module.register(app, resources)
    language.install(app.server, resources)
    first_answer.install(app)
    timeline_frames.install(app.server, resources)
    guarded = guarded or guard.Guard()
    guarded.ways = (*guarded.ways, timeline_frames.WAY, slider_stops.WAY)
    guard.install(app, resources, guarded)
    return app


def page_content(pathname: str, search: str, resources: Resources) -> tuple[Component, str]:
    """(content of a page, its title): the page's layout in the state given by the address; an error line for invalid addresses."""
    module = modules().get(pathname.rstrip("/") or "/")
    if module is None:
        return _nowhere(pathname), _("no such page")
    page: Page = module.PAGE
    try:
        content = module.layout(Query(search), resources)
    except RetrompiError as error:
        content = parts.notices([str(error)])
    head = html.Div(
        [
            html.H1(_(page.title)),
            html.Button(_("Copy link"), id=f"{page.name}-copy-link", className="copy-link quiet", type="button",
                        title=_("the address of this view, to share it (l)")),
        ],
        className="page-head",
    )
    keep = [dcc.Store(id=f"{page.name}-controls", data=[_told_control(c) for c in page.controls]), dcc.Store(id=f"{page.name}-kept")]
    return html.Div([head, html.P(_(page.help), className="soft help"), content, *keep], id=f"page-{page.name}"), _(page.title)


def _nowhere(pathname: str) -> Component:
    """The page of an address that has none: the nearest one, and all there are."""
    shown = "".join(c if c.isprintable() else "?" for c in pathname[:80])
    links = [html.Li([dcc.Link(_(p.title), href=p.path), f": {_(p.help)}"]) for p in pages()]
    told = _("there is no page '{path}'").format(path=shown) + nearest(pathname[:60], modules())
    return html.Div([html.H1(_("No such page")), parts.notices([told]), html.H2(_("The pages of this studio")), html.Ul(links)],
                    id="page-none")


def _told_control(control: Control) -> dict[str, Any]:
    """The description of a control for assets/studio.js."""
    default = list(control.default) if control.listed else control.default
    return {"key": control.key, "default": default, "named": control.named, "follows": control.follows}


def _keep_address(app: Dash, page: Page) -> None:
    """Updates the address bar from the page's controls, without a request."""
    if page.controls:
        app.clientside_callback(
            ClientsideFunction("retrompi", "keep"), Output(f"{page.name}-kept", "data"),
            [Input(c.id, c.property) for c in page.controls], State(f"{page.name}-controls", "data"),
        )


def _error_notice(error: Exception) -> Any:
    """An error in a callback is shown as one line on the page; internal errors are also logged to the terminal."""
    if isinstance(error, RetrompiError):
        line = " ".join(str(error).split())
    else:
        log.error("a callback of the studio failed", exc_info=error)
        line = _("internal error: {name}; see the terminal of 'retrompi studio' for details").format(name=type(error).__name__)
    set_props("studio-notice", {"children": parts.notices([line]).children})
    return no_update


def _carried_keys() -> dict[str, dict[str, Any]]:
    """Link of the navigation -> its path, and what of the runtime at hand and its platform the page takes, for assets/studio.js.

    The replay's own platform has a host for every rank, so it goes along with the runtime alone.
    """
    found = {}
    for page in pages():
        keys = [c.key for c in page.controls]
        takes = [k for k in ("model", "platform") if k in keys and not (k == "platform" and page.path in ("/replay", "/models"))]
        found[f"studio-to-{page.name}"] = {"path": page.path, "takes": takes}
    return found


def _frame(resources: Resources) -> Component:
    """The frame around every page. Created for each load, so that each tab has its own name."""
    nav = [
        html.Li(dcc.Link(_(page.title), href=page.path, title=_(page.help) + (f" ({i % 10})" if i <= 10 else ""),
                         id=f"studio-to-{page.name}", className="nav-link"))
        for i, page in enumerate(pages(), 1)
    ]
    nav += [html.Li(html.A(title, href=path, className="nav-link")) for title, path in resources.more(parts.session())]
    keys = [html.Div([html.Dt(html.Kbd(_(key))), html.Dd(_(text))]) for key, text in KEYS]
    return html.Div(
        [
            html.A(_("Skip to the page"), href="#main", className="skip"),
            html.Header(
                [
                    dcc.Link("retrompi studio", href="/", className="brand"),
                    html.Nav(html.Ul(nav), **{"aria-label": _("pages")}),
                    html.Div(
                        [
                            html.Button(_("Dark"), id="studio-theme", className="quiet", type="button", title=_("dark or light (d)"),
                                        **{"aria-pressed": "false"}),
                            html.Button(_("Projector"), id="studio-projector", className="quiet", type="button",
                                        title=_("large letters and few controls (p)"), **{"aria-pressed": "false"}),
                            html.Button("?", id="studio-help", className="quiet", type="button", title=_("keys (?)"),
                                        **{"aria-label": "? " + _("keys")}),
                            language.switch(),
                        ],
                        className="tools",
                    ),
                ]
            ),
            html.Div(id="studio-notice", role="status", **{"aria-live": "polite"}),
            html.Main(html.P("…", className="soft"), id="main", tabIndex=-1),
            html.Dialog([html.H2(_("Keys")), html.Dl(keys), html.Button(_("Close"), id="studio-help-close", type="button")],
                        id="studio-keys"),
            dcc.Location(id="studio-address", refresh=False),
            dcc.Store(id="studio-tab", data=secrets.token_urlsafe(9)),
            dcc.Store(id="studio-title"),
            dcc.Store(id="studio-arrived"),
            dcc.Store(id="studio-letters"),
        ],
        id="studio", **{"data-carried": json.dumps(_carried_keys())},
    )
