"""The first answer to a browser, shown before the studio's scripts arrive: title, navigation, and a sketch of the page's first figure.

On a slow line the scripts take seconds and Plotly more: the first answer already has the figure's numbers, drawn by
render/document/sketch.js. When the page is there its figure takes the sketch over, until Plotly draws it anew. A page whose figure is not
Plotly's names the script of the assets that draws it (``FIRST_DRAWN_BY``): that one is then loaded first, and the page goes on with what it
has drawn.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Response, g, request

from retrompi.base import translate
from retrompi.base.errors import RetrompiError
from retrompi.base.translate import _
from retrompi.studio.requests import shipped_figures
from retrompi.studio.requests.page import modules
from retrompi.studio.requests.state import MOST_CHARACTERS, Query

if TYPE_CHECKING:
    from dash import Dash

    from retrompi.studio.jobs.resources import Resources

__all__ = ["IGNORED", "body", "head", "install", "nowhere", "pending", "prepare"]

IGNORED = r"^early\.js$"
"""Files of the assets that Dash does not put at the page's end: they come before it."""
PATIENCE_S = 1.5
"""How long the first answer waits for its figure; without one the page comes without."""
_PREPARING_S = 60.0
MOST_KEPT = 64
_EARLY, _SKETCH = "/assets/early.js", "/assets/sketch.js"


@cache
def _scripts() -> dict[str, bytes]:
    from retrompi.render.document.plotted import sketch_script, words_script

    begun = (Path(__file__).parents[1] / "assets" / "early.js").read_text(encoding="utf-8")
    return {_EARLY: (words_script() + begun).encode(), _SKETCH: sketch_script().encode()}


def _source(path: str) -> str:
    """The address of a script with its version, so that browsers keep it."""
    return f"{path}?m={hashlib.sha256(_scripts()[path]).hexdigest()[:12]}"


def install(app: Dash) -> None:
    """Serves the scripts."""

    def serve(path: str) -> Callable[[], Response]:
        return lambda: Response(_scripts()[path], mimetype="text/javascript")

    for path in (_EARLY, _SKETCH):
        app.server.add_url_rule(path, path.rpartition("/")[2], serve(path))


def head() -> str:
    """What decides about light and dark, before anything is painted."""
    return f'<script src="{_source(_EARLY)}"></script>'


def body(path: str, search: str, resources: Resources, scripts: str = "") -> tuple[str, str]:
    """(navigation, title and first figure of the page at ``path`` as HTML, the ``scripts`` of the page's end that it leaves there).

    The HTML is hidden by assets/studio.css once the page itself is there.
    """
    module = modules().get(path.rstrip("/") or "/")
    if module is None:
        return "", scripts
    page = module.PAGE
    links = "".join(
        f'<li><a class="nav-link" href="{escape(p)}"{" aria-current=page" if p == page.path else ""}>{escape(_(m.PAGE.title))}</a></li>'
        for p, m in modules().items()
    )
    drawn, data, sketch = "", _figure(module, path, search, resources), f'<script src="{_source(_SKETCH)}"></script>'
    if data:
        name = escape(_("{page}: its first figure, being completed").format(page=_(page.title)))
        script = getattr(module, "FIRST_DRAWN_BY", None)
        own = re.search(rf'<script src="[^"]*/assets/{re.escape(script)}[^"]*"></script>\n?', scripts) if script else None
        if own:
            scripts = scripts.replace(own[0], "")
            drawn = f'<div class="player" id="first-player" role="group" aria-label="{name}"></div>'
        else:
            drawn = f'<div class="drawn plot" role="figure" aria-label="{name}"><div class="sketch" id="first-sketch"></div></div>'
        drawn += f"""
<script type="application/json" id="first-data">{data}</script>{own[0] if own else ""}{sketch}"""
    else:
        drawn = f'<p class="soft">…</p>{sketch}'
    return f"""<div id="first"><header><a class="brand" href="/">retrompi studio</a>
<nav aria-label="{escape(_("pages"))}"><ul>{links}</ul></nav></header>
<main><div class="page-head"><h1>{escape(_(page.title))}</h1></div><p class="soft help">{escape(_(page.help))}</p>{drawn}</main></div>
""", scripts


_NOWHERE = """<!doctype html><html lang="{language}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title} · retrompi studio</title>
{head}<link rel="stylesheet" href="/assets/studio.css"></head><body>
<div id="first"><header><a class="brand" href="/">retrompi studio</a></header><main><h1>{title}</h1>
<p class="notice">{told}</p><h2>{pages}</h2><ul>{links}</ul></main></div></body></html>
"""


def nowhere(told: str) -> Response:
    """The page of an address that has none, with links to those there are."""
    links = "".join(f'<li><a href="{escape(p)}">{escape(_(m.PAGE.title))}</a>: {escape(_(m.PAGE.help))}</li>' for p, m in modules().items())
    words = {"language": translate.language(), "title": escape(_("No such page")), "pages": escape(_("The pages of this studio"))}
    return Response(_NOWHERE.format(head=head(), told=escape(told), links=links, **words), status=404, mimetype="text/html")


def _figure(module: Any, path: str, search: str, resources: Resources) -> str:
    """The page's first figure as JSON; "" for a page without one, or where it takes longer than `PATIENCE_S`."""
    begin = getattr(module, "first", None)
    # Another site's picture or frame would begin jobs here.
    if begin is None or len(search) > MOST_CHARACTERS or request.headers.get("Sec-Fetch-Dest", "document") != "document":
        return ""
    kept: dict[tuple[str, str, str], str] = resources.extra.setdefault("first", {})
    key = (path, search, translate.language())
    if key in kept:
        return kept[key]
    with suppress(RetrompiError):  # the page itself says what is wrong
        found = begin(Query(search), resources)
        if found is None:
            return ""
        (title, function, arguments), show, shared = found
        shipped = shipped_figures.questions(module, resources)
        known = next((shipped_figures.answer(a) for a, (_t, *job) in shipped if job == [function, arguments]), None)
        if known is not None:
            data = _figure_json(show(known))
            if len(kept) < MOST_KEPT:
                kept[key] = data
            return data
        job = resources.jobs.submit(g.session, title, function, *arguments, slot=f"first {path}", question=search,
                               client=str(g.get("client", "")))
        state = resources.jobs.wait(job, g.session, PATIENCE_S)
        if state.status != "done":
            resources.jobs.cancel(job, g.session)
            return ""
        data = _figure_json(show(state.result))
        if shared and len(kept) < MOST_KEPT:
            kept[key] = data
        return data
    return ""


def prepare(resources: Resources, session: str = "first") -> None:
    """Makes the figures of the pages as they open without a query, for the first visitor."""
    for path, module in modules().items():
        if hasattr(module, "first"):
            with suppress(RetrompiError):  # reported by the page
                (title, function, arguments), show, _ = module.first(Query(), resources)
                job = resources.jobs.submit(session, title, function, *arguments, slot=f"first {path}", question="", client=session)
                state = resources.jobs.wait(job, session, _PREPARING_S)
                if state.status == "done":
                    kept = resources.extra.setdefault("first", {})
                    for key in [k for k in kept if k[:2] == (path, "")]:
                        del kept[key]  # drawn from what is shipped
                    kept[path, "", translate.language()] = _figure_json(show(state.result))


def _figure_json(figure: Any) -> str:
    """A figure, or what the page's own script draws, as JSON that is safe within a script element; "" for nothing to draw."""
    if hasattr(figure, "to_json"):
        spec = json.loads(figure.to_json())
        spec["layout"].pop("template", None)
        figure = {"data": spec["data"], "layout": spec["layout"]}
    return json.dumps(figure, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/") if figure else ""


def pending() -> dict[str, Any]:
    """The figure of a graph that has none yet: no axes, which would tell of values that nobody has computed."""
    return {"data": [], "layout": {"xaxis": {"visible": False}, "yaxis": {"visible": False}, "paper_bgcolor": "rgba(0,0,0,0)",
                                   "plot_bgcolor": "rgba(0,0,0,0)"}}
