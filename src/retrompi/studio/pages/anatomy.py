"""The anatomy of a message: its path hop by hop and animated, where its time goes, and a comparison of two messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Dash, Input, Output, dcc, html

from retrompi.base.translate import _, lazy, ngettext, pgettext
from retrompi.spec import registry
from retrompi.spec.registry import resolve
from retrompi.studio.anatomy.anatomy_job import scenes, sets_of, size_of, travel
from retrompi.studio.components import home_platform, menus, parts
from retrompi.studio.requests import inputs, wrong_entries
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Parse, Query, choice, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

_MODES = ("shared", "distributed")
_MARKS = {0: "0", 5: "16", 9: "256", 13: "4K", 17: "64K", 21: "1M", 25: "16M"}
_KEYS = ("model", "platform", "mode", "size", "set")


def _size(written: str) -> str:
    size_of(written)
    return written.strip()


def _controls(prefix: str, key: str, defaults: Mapping[str, str]) -> tuple[Control, ...]:
    checks: Mapping[str, Parse] = {
        "model": choice(registry.model_names, "model"),
        "platform": menus.PLATFORM,
        "mode": choice(_MODES, "mode"),
        "size": _size,
        "set": text(500),
    }
    follows = {"platform": f"{key}model"}
    return tuple(Control(f"{prefix}-{k}", "value", f"{key}{k}", defaults[k], checks[k], follows.get(k, "")) for k in _KEYS)


_FIRST = {"model": registry.FIRST_MODEL, "platform": registry.FIRST_PLATFORM, "mode": "shared", "size": "128 KiB", "set": ""}
_SECOND = {**_FIRST, "size": "512 KiB"}

PAGE = Page(
    path="/anatomy",
    title=lazy("Anatomy"),
    order=20,
    help=lazy("The path of one message through processes and channels, and where its time is spent."),
    controls=(
        *_controls("anatomy", "", _FIRST),
        Control("anatomy-view", "value", "view", "one", choice(("one", "two"), "view")),
        Control("anatomy-way", "value", "way", "there", choice(("there", "back"), "way")),
        *_controls("anatomy-b", "b-", _SECOND),
    ),
    inputs={"anatomy-before.data": inputs.text(), "anatomy-b-before.data": inputs.text()},
)


_VIEWS = {"one": lazy("one message"), "two": lazy("two side by side")}
_WAYS = {"there": lazy("there (rank 0 to rank 1)"), "back": lazy("back")}


def _message(prefix: str, legend: str, values: Mapping[str, Any], key: str) -> Component:
    """The controls of one message."""
    written = str(values[f"{key}size"])
    size = size_of(written)
    slider = dcc.Slider(
        0, 25, 1, value=0 if size < 1 else min(25, round(size).bit_length()), marks=_MARKS, included=False, id=f"{prefix}-slider",
        updatemode="mouseup", allow_direct_input=False,
    )
    typed = dcc.Input(id=f"{prefix}-size", type="text", value=written, debounce=True, size="10")
    model, platform = values[f"{key}model"], values[f"{key}platform"]
    fields = parts.controls(
        parts.menu(_("Runtime"), f"{prefix}-model", menus.models(), model),
        parts.menu(_("Platform"), f"{prefix}-platform", menus.platforms(platform), platform),
        home_platform.apart(prefix, model, platform),
        parts.menu(_("Placement"), f"{prefix}-mode", menus.modes(_("both ranks on one host"), _("on two hosts")), values[f"{key}mode"]),
        parts.field(_("Size"), html.Div([typed, slider]), _("a size with its unit, or use the slider for powers of two")),
        parts.overrides_field(f"{prefix}-set", values[f"{key}set"], _("; see the names in the table below")),
    )
    return html.Fieldset([html.Legend(legend), fields], className="message-controls")


def _in_language(choices: Mapping[str, str]) -> dict[str, str]:
    """Choices in the language of the reader."""
    return {value: _(label) for value, label in choices.items()}


def layout(query: Query, resources: Resources) -> Component:
    """The controls of one or two messages, the player, the bars, the tables."""
    values, wrong = read(PAGE.controls, menus.with_platforms(query, PAGE.controls, "b-"))
    two = values["view"] == "two"
    asked = [
        parts.controls(
            parts.group(_("Show"), dcc.RadioItems(_in_language(_VIEWS), values["view"], id="anatomy-view", inline=True)),
            parts.group(_("Direction"), dcc.RadioItems(_in_language(_WAYS), values["way"], id="anatomy-way", inline=True)),
        ),
        html.Div(_message("anatomy", _("Message A"), values, "")),
        html.Div(_message("anatomy-b", _("Message B"), values, "b-"), id="anatomy-second", style={} if two else {"display": "none"}),
    ]
    shown = [
        html.Div([parts.job_bar("anatomy"), html.Div(id="anatomy-said", role="status"), html.Div(id="anatomy-player", className="player")],
                 className="first"),
        html.Div([
            html.H2(_("Where the time is spent")),
            parts.graph("anatomy-stages", _("Time of each stage of the messages; the numbers are in the tables below"),
                        numbers="anatomy-tables", css="stages"),
        ]),
        html.Div(id="anatomy-tables"),
    ]
    kept = [dcc.Store(id="anatomy-scenes"), dcc.Store(id="anatomy-drawn")]
    return html.Div([parts.notices(wrong), parts.bench(asked, shown, stays=True), *kept])


# -- what is shown -----------------------------------------------------------------------------------------------------


def figure(shown: list[dict[str, Any]]) -> Any:
    """Stacked bars, one per message: microseconds by stage, in the colours of the animation."""
    import plotly.graph_objects as go

    from retrompi.render.document.engine_words import stage_name
    from retrompi.render.figures.figures import hatch_pattern
    from retrompi.render.figures.figures import layout as common
    from retrompi.sim.stages import STAGE_WORDS
    from retrompi.studio.anatomy.path_words import time_of
    from retrompi.studio.anatomy.scene import STAGES

    arrived = [m for m in shown if "bars" in m]
    names = [f"{'AB'[i]} · {time_of(sum(ps for _d, ps in m['bars']))}" for i, m in enumerate(shown) if "bars" in m]
    out = go.Figure()
    most = max((sum(ps for _d, ps in m["bars"]) for m in arrived), default=1)
    unit, scale = next(((u, s) for u, s in (("s", 1e12), ("ms", 1e9), ("µs", 1e6)) if most >= s), ("ns", 1e3))
    for stage, (colour, hatched) in STAGES.items():
        values = [dict(m["bars"]).get(stage, 0) for m in arrived]
        if any(values):
            totals = [sum(ps for _d, ps in m["bars"]) for m in arrived]
            told = [[time_of(v), f"{100 * v / t:.1f}", _(STAGE_WORDS[stage])] for v, t in zip(values, totals, strict=True)]
            out.add_trace(go.Bar(
                y=names, x=[v / scale for v in values], name=stage_name(stage), orientation="h", customdata=told,
                marker={"color": colour, "line": {"color": "white", "width": 1}, "pattern": hatch_pattern("/" if hatched else "", 0.35)},
                hovertemplate=f"<b>{stage_name(stage)}</b>: %{{customdata[0]}} (%{{customdata[1]}} %)<br>%{{customdata[2]}}<extra></extra>",
            ))
    common(out, "")
    # Measured from the bottom of the figure, with space for the legend's lines, of which there are many on a phone.
    legend = {"yref": "container", "y": 0.0, "yanchor": "bottom", "traceorder": "normal"}
    out.update_layout(
        barmode="stack", bargap=0.5 if len(arrived) == 1 else 0.25, margin={"l": 10, "r": 16, "t": 10, "b": 50}, legend=legend
    )
    title = _("time since the send call, {unit}").format(unit=unit)
    out.update_xaxes(title={"text": title, "standoff": 8}, gridcolor="#e3e3e3", zeroline=False,
                     rangemode="tozero", automargin=True)
    out.update_yaxes(autorange="reversed", automargin=True)
    return out


def _sentences(shown: list[dict[str, Any]]) -> Component:
    """A sentence for each message, and which of its properties lie outside the model's calibrated range."""
    from retrompi.studio.anatomy.path_words import time_of

    lines: list[Component] = []
    for i, m in enumerate(shown):
        name = [html.B(f"{'AB'[i]}: {m['title']}" if len(shown) > 1 else m["title"]), html.Span(f" ({m['platform']})", className="soft")]
        if "ended" in m:
            lines.append(html.P([*name, " ", html.Span(m["ended"], className="fail")]))
        else:
            there, back = m["legs"]
            told = (_("{time} there") if m["way"] == 0 else _("{time} back")).format(time=time_of(m["scene"]["total"]))
            half = _("A PingPong reports half a round trip, {there}").format(there=time_of((there + back) // 2))
            same = (
                _("both directions take the same")
                if there == back
                else _("forward {there}, back {back}").format(there=time_of(there), back=time_of(back))
            )
            lines.append(html.P([*name, f": {told}. {half} ({same})."]))
        if m["outside"]:
            lines.append(
                html.P(_("Outside the model's calibrated range: {outside}.").format(outside="; ".join(m["outside"])), className="soft")
            )
    return html.Div([*lines, parts.cautions((f"{'AB'[i]}", m["cautions"]) for i, m in enumerate(shown))])


def _tables(shown: list[dict[str, Any]]) -> Component:
    from retrompi.render.document.engine_words import process_name, stage_name
    from retrompi.studio.anatomy.path_words import time_of

    columns: list[Any] = [
        ("begin", _("at"), time_of),
        ("where", _("where"), process_name),
        ("what", _("what happens")),
        ("stage", _("stage"), stage_name),
        ("times", pgettext("how often", "times"), lambda n: f"{n}×" if n > 1 else ""),
        ("took", _("how long, in all"), time_of),
    ]
    blocks = []
    for i, m in enumerate(shown):
        told = [c for c in columns if len(shown) == 1 or c[0] != "where"]  # the text states where; two tables have less space
        block: list[Component] = [html.H2(f"{'AB'[i]}: {m['title']}" if len(shown) > 1 else _("Hop by hop"))]
        if "hops" in m:
            total = sum(h["took"] for h in m["hops"])
            end = {"where": "", "what": _("the receive call returns: sum of the above"), "stage": "", "times": None,
                   "took": total, "begin": total}
            exact = f"{total:,}".replace(",", "\u202f")
            caption = _("What the message does or waits for at each moment; the times add up to {total} exactly ({exact} ps)").format(
                total=time_of(total), exact=exact
            )
            block.append(html.Div(parts.table([*m["hops"], end], told, id=f"anatomy-hops-{'ab'[i]}", caption=caption), className="hops"))
        heads: list[Any] = [("name", _("parameter")), ("text", _("value"))]
        heads += [("help", _("what it is"), parts.english), ("source", _("source"), parts.english)]
        listed = parts.table(m["parameters"], heads, id=f"anatomy-parameters-{'ab'[i]}")
        words = html.Summary(_("The mechanism's parameters and where their values come from"))
        block.append(html.Details([words, listed], open=len(shown) == 1, className="parameters"))
        blocks.append(html.Div(block))
    return html.Div(blocks, className="pair")


def _messages(values: Mapping[str, Any]) -> tuple[str, list[dict[str, str]]]:
    """(title of the job, the messages) that the controls ask for. Raises UsageError."""
    messages = [{k: str(values[f"{key}{k}"]) for k in _KEYS} for key in ("", "b-")][: 2 if values["view"] == "two" else 1]
    for prefix, m in zip(("anatomy", "anatomy-b"), messages, strict=False):
        with wrong_entries.beside_control(f"{prefix}-set"):
            resolve(m["model"], m["platform"], sets_of(m["set"]))
    names = dict.fromkeys(registry.models()[m["model"]].title for m in messages)
    told = ngettext("One message of {names}", "Two messages of {names}", len(messages)).format(names=", ".join(names))
    return told, messages


EARLY = ("", "?view=two")
"""What comes with the package: the page as it opens, with one message and with two. Over a network a message has hundreds of frames."""
FIRST_DRAWN_BY = "anatomy.js"


def first(query: Query, resources: Resources) -> Any:
    """(the question as a job, its scenes, whether they are the same for everybody) of a link, for
    `retrompi.studio.requests.first_answer`."""
    values, _lines = read(PAGE.controls, menus.with_platforms(query, PAGE.controls, "b-"))
    told, messages = _messages(values)
    return (told, scenes, (messages, values["way"])), lambda found: [m["scene"] for m in found], True


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks: everything follows the controls."""
    ids = [f"{prefix}-{k}" for prefix in ("anatomy", "anatomy-b") for k in _KEYS]

    def begin(view: str, way: str, *given: str) -> Any:
        # A post need not come from our controls: a model's name that is a path would be imported.
        here = {"anatomy-view": view, "anatomy-way": way, **dict(zip(ids, given, strict=True))}
        if view != "two":  # what is not shown is not asked: an entry there may be wrong
            here |= {i: _SECOND[k] for i, k in zip(ids[len(_KEYS) :], _KEYS, strict=True)}
        told, messages = _messages(wrong_entries.check_controls(PAGE.controls, here))
        return told, travel, (messages, way)

    def blame(error: str, _view: str, _way: str, *given: str) -> dict[str, str]:
        return wrong_entries.blame_values(error, {i: v for i, v in zip(ids, given, strict=True) if i.endswith("-set")})

    def show(shown: Any) -> Any:
        return [m["scene"] for m in shown if "scene" in m], figure(shown), _sentences(shown), _tables(shown)

    parts.register_job(
        app, resources, "anatomy",
        [Input("anatomy-view", "value"), Input("anatomy-way", "value"), *(Input(i, "value") for i in ids)], begin,
        parts.outputs("anatomy-scenes.data", "anatomy-stages.figure", "anatomy-said.children", "anatomy-tables.children"), show,
        blame=blame,
    )

    def in_browser(function: str, *wires: Any, **more: Any) -> None:
        app.clientside_callback(ClientsideFunction("retrompi_anatomy", function), *wires, **more)

    in_browser("draw", Output("anatomy-drawn", "data"), Input("anatomy-scenes", "data"))
    in_browser("second", Output("anatomy-second", "style"), Input("anatomy-view", "value"))
    parts.register_graph(app, "anatomy-stages")
    for prefix in ("anatomy", "anatomy-b"):
        home_platform.register(app, prefix)
        ends = [f"{prefix}-slider", f"{prefix}-size"]
        in_browser("size", *(Output(i, "value") for i in ends), *(Input(i, "value") for i in ends), prevent_initial_call=True)
