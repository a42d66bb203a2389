"""What if: every parameter of a runtime and its hosts on a slider; the base curve and the changed one drawn together."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dash import ALL, MATCH, ClientsideFunction, Dash, Input, Output, State, dcc, html

from retrompi.base import units
from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.translate import _, lazy
from retrompi.base.units import format_bytes
from retrompi.render.document.engine_words import outcome_name
from retrompi.spec import registry
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.registry import resolve
from retrompi.studio.anatomy.path_words import OUTCOME_WORDS
from retrompi.studio.components import home_platform, menus, parts, titles
from retrompi.studio.components.callbacks import callback, register_methods
from retrompi.studio.components.parameters import Slot, command_line, modes, overrides, readable, slots_for
from retrompi.studio.curves import intervals, runs, slider_stops
from retrompi.studio.requests import inputs, wrong_entries
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, choice, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

MOST_SETS = 40
_WAIT_TO_KEEP = 8.0
LEVEL_TEXT = f"{100 * intervals.LEVEL:g}%"


def _set(value: str) -> str:
    return str(text(160)(value))


PAGE = Page(
    path="/whatif",
    title=lazy("What if"),
    order=15,
    help=lazy("Change a parameter of the runtime or its platform, and compare the original curve with the changed one."),
    controls=(
        Control("whatif-model", "value", "model", registry.FIRST_MODEL, choice(registry.model_names, "model")),
        Control("whatif-platform", "value", "platform", "nt-pair", menus.PLATFORM, "model"),
        Control("whatif-mode", "value", "mode", "shared", text(60)),
        Control("whatif-series", "value", "series", "bandwidth", choice(["time", "bandwidth"], "series")),
        Control("whatif-y", "value", "y", "log", choice(["log", "linear"], "scale")),
        Control("whatif-interval", "value", "interval", [], choice([LEVEL_TEXT], "level")),
        Control("whatif-sets", "data", "set", {}, _set),
    ),
    inputs={
        "whatif-question.data": inputs.mapping(
            model=inputs.text(), platform=inputs.text(), mode=inputs.text(60), sets=inputs.texts_by_name
        ),
        "whatif-draws-job.data": inputs.text(60),
        "whatif-drawn.data": inputs.text(60),
        "whatif-before.data": inputs.text(),
    },
)


def _controls(values: Mapping[str, Any], mode: str) -> Component:
    model, platform = values["model"], values["platform"]
    drawn = _("{level} % interval").format(level=LEVEL_TEXT[:-1])
    return parts.controls(
        parts.menu(_("Runtime"), "whatif-model", menus.models(), model),
        parts.menu(_("Platform"), "whatif-platform", menus.platforms(platform), platform),
        parts.menu(_("Mode"), "whatif-mode", titles.modes(_modes(platform, mode)), mode),
        home_platform.apart("whatif", model, platform),
        parts.group(_("Series"), dcc.RadioItems(parts.series(), values["series"], id="whatif-series", inline=True)),
        parts.group(_("Vertical axis"), dcc.RadioItems(parts.scales(), values["y"], id="whatif-y", inline=True)),
        parts.group(_("Uncertainty"), dcc.Checklist([{"value": LEVEL_TEXT, "label": drawn}],
                    values["interval"], id="whatif-interval", inline=True),
                    _("{draws} draws of each curve, kept in the studio's store").format(draws=intervals.DRAWS)),
    )


def layout(query: Query, resources: Resources) -> Component:
    """The sliders as given by the query beside the figure, which stays in view; on a phone the figure comes first."""
    values, wrong = read(PAGE.controls, menus.with_platforms(query, PAGE.controls))
    model, platform, mode = values["model"], values["platform"], values["mode"]
    try:
        known = slots_for(model, platform, mode, values["set"])
    except RetrompiError as error:
        wrong.append(_("mode={mode} in this link: {error}").format(mode=mode, error=error))
        mode = "shared"
        known = slots_for(model, platform, mode, values["set"])
    sets, refused = _known_overrides(model, platform, known, values["set"])
    held = html.Div(
        [
            html.Div([parts.job_bar("whatif"), parts.job_bar("whatif-draws")], className="bars"),
            parts.graph("whatif-figure", _("The curve as it was and the changed one; the numbers are in the tables below"),
                        numbers="whatif-numbers"),
            html.Div(id="whatif-outcome", role="status", **{"aria-live": "polite"}),
        ],
        className="held",
    )
    asked = [
        _controls(values, mode),
        html.Div(
            [
                html.Div([html.H2(_("Parameters")), html.Button(_("As it was"), id="whatif-reset", className="quiet", type="button",
                          title=_("reset every parameter to the model's value"))], className="page-head"),
                parts.field(_("Find"), dcc.Input(id="whatif-find", type="search", placeholder=_("name or text"), value="")),
                html.Div(_groups(known, sets), id="whatif-parameters"),
            ],
            className="whatif-parameters",
        ),
    ]
    shown = [
        held,
        html.H2(_("Numbers")),
        html.Div(id="whatif-numbers"),
        html.H2(_("Equivalent command")),
        parts.copyable(_command(model, platform, mode, known, sets), id="whatif-command"),
        html.Div([html.Button(_("Keep in store"), id="whatif-keep", className="quiet", type="button"),
                  html.Span("", id="whatif-keep-line", role="status")], className="job"),
    ]
    return html.Div(
        [
            html.Div(parts.notices([*wrong, *refused]), id="whatif-wrong"),
            parts.bench(asked, shown),
            dcc.Store(id="whatif-slots", data=_slider_data(model, platform, mode, known)),
            dcc.Store(id="whatif-sets", data=sets),
            dcc.Store(id="whatif-question"),
            dcc.Store(id="whatif-drawn"),
        ]
    )


def first(query: Query, resources: Resources) -> Any:
    """(the question as a job, its figure, whether it is the same for everybody) of a link, for `retrompi.studio.requests.first_answer`."""
    from retrompi.studio.curves import drawing

    values, _lines = read(PAGE.controls, menus.with_platforms(query, PAGE.controls))
    if values["interval"]:
        return None
    model, platform, mode = values["model"], values["platform"], values["mode"]
    sets, _notes = _known_overrides(model, platform, slots_for(model, platform, mode, values["set"]), values["set"])
    asked = _question_parts({"model": model, "platform": platform, "mode": mode, "sets": sets})
    wanted = (_title(asked), runs.what_if, (resources.places, *asked))
    return wanted, lambda answer: drawing.what_if_figure(answer, values["series"], values["y"]), True


def _modes(platform: str, mode: str) -> list[str]:
    known = modes(platform)
    return known if mode in known else [*known, mode]


def _known_overrides(model: str, platform: str, known: tuple[Slot, ...], given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """(a link's overrides that exist here, by slot; a line for each of the others)."""
    names, out, wrong = [s.name for s in known], {}, []
    for name, value in given.items():
        full = name if name in names else f"{model}.{name}" if f"{model}.{name}" in names else ""
        if not full:
            wrong.append(
                _("no parameter '{name}' in this configuration{nearest}. {left_out}").format(
                    name=name, nearest=nearest(name, names, 4), left_out=_left_out(name, value)
                )
            )
            continue
        try:
            resolve(model, platform, [f"{full}={value}"])
            out[full] = readable(value)
        except RetrompiError as error:
            wrong.append(f"{error}. {_left_out(name, value)}")
    return out, wrong


def _left_out(name: str, value: str) -> str:
    return _("set={name}={value} in this link was left out: the curves below are without it").format(name=name, value=value)


def _slider_data(model: str, platform: str, mode: str, known: tuple[Slot, ...]) -> dict[str, Any]:
    """Data for assets/whatif.js: the positions of every slider, and the units."""
    return {
        "model": model, "platform": platform, "mode": mode, "units": {u: dict(units.UNITS[u]) for u in {units.canonical(s.unit) for s in
        known if not s.choices}},
        "slots": {s.name: {"base": s.base, "texts": s.texts, "numbers": s.numbers(), "unit": units.canonical(s.unit)} for s in known if not
        s.choices},
        "choices": {s.name: s.base for s in known if s.choices},
    }


def _groups(known: tuple[Slot, ...], sets: Mapping[str, str]) -> list[Component]:
    """The parameters grouped by subject; the runtime's own group and groups with changes are open."""
    out = []
    for i, group in enumerate(dict.fromkeys(s.group for s in known)):
        mine = [s for s in known if s.group == group]
        opened = i == 0 or any(s.name in sets for s in mine)
        out.append(html.Details([html.Summary(f"{group} ({len(mine)})"), *(_slot(s, sets.get(s.name, s.base)) for s in mine)], open=opened))
    return out


def _slot(slot: Slot, value: str) -> Component:
    """One parameter: a slider with a text entry beside it, or a menu; below them its description and source."""
    entry: list[Component] = []
    if slot.choices:
        entry.append(html.Label([
            html.Span(slot.label, className="name"),
            dcc.RadioItems(list(slot.choices), value, id={"type": "whatif-choice", "name": slot.name}, inline=True),
        ]))
    else:
        typed = dcc.Input(id={"type": "whatif-text", "name": slot.name}, type="text", value=value, debounce=True, autoComplete="off")
        if slot.texts:
            slider = dcc.Input(
                id={"type": "whatif-slide", "name": slot.name}, type="range", min=0, max=len(slot.texts) - 1, step=1,
                value=slot.texts.index(value) if value in slot.texts else slot.nearest(value), className="slide",
            )
            entry.append(html.Label([html.Span(slot.label, className="name"), slider], className="sliding"))
            entry.append(
                html.Label([html.Span(_("{label}, as a text").format(label=slot.label), className="unseen"), typed], className="typed")
            )
        else:
            # Dash runs no callback of which one input is missing, and an entry shares its callback with the slider.
            none = dcc.Input(id={"type": "whatif-slide", "name": slot.name}, type="hidden", value=0)
            entry.append(html.Label([html.Span(slot.label, className="name"), typed], className="typed"))
            entry.append(none)
    scale = _(" (log scale)") if slot.texts and slot.scale == "log" else ""
    # A parameter's description and source are in English in every language of the page.
    source = html.Span(f"{slot.base}; {slot.source}. ", className="source", lang="en")
    about = [html.Span(f"{slot.help}. ", lang="en"), source, html.Span(slot.range + scale)]
    return html.Div([html.Div(entry, className="entry"), html.Small(about, className="soft")], className="slot",
                    **{"data-name": slot.name, "data-words": f"{slot.name} {slot.help} {slot.source}".lower()})


def _command(model: str, platform: str, mode: str, known: tuple[Slot, ...], sets: Mapping[str, str]) -> str:
    return command_line(model, platform, mode, overrides(known, sets))


class _WhatIf:
    """The callbacks of the page, and the jobs that it begins."""

    def __init__(self, resources: Resources) -> None:
        from retrompi.studio.curves import drawing

        self.resources = resources
        self.drawing = drawing  # loaded before the first question

    @callback(
        *parts.outputs("whatif-parameters.children", "whatif-slots.data", "whatif-mode.options", "whatif-mode.value",
                       "whatif-platform.options", "whatif-platform.value", "whatif-apart.children", "whatif-wrong.children"),
        Output("whatif-sets", "data", allow_duplicate=True), Output("whatif-question", "data", allow_duplicate=True),
        Input("whatif-model", "value"), Input("whatif-platform", "value"), Input("whatif-mode", "value"), Input("whatif-reset", "n_clicks"),
        Input("whatif-own", "n_clicks"), State("whatif-sets", "data"), State("whatif-before", "data"), prevent_initial_call=True,
    )
    def other(self, model: Any, platform: Any, mode: Any, _clicks: int | None, own: int | None, sets: Any, was: Any) -> Any:
        model, mode = parts.text(model), parts.text(mode)
        platform = home_platform.platform_after("whatif", model, parts.text(platform), own, parts.text(was))
        offered = modes(platform)
        before = {} if parts.changed_by("whatif-reset") else _texts_by_name(sets)
        wrong = []
        try:
            known = slots_for(model, platform, mode, before)
        except UsageError as error:
            if mode in offered:
                wrong.append(_("{error}: shown in shared mode").format(error=error))
            mode = "shared"
            known = slots_for(model, platform, mode, before)
        names = {s.name for s in known}
        kept = {k: v for k, v in before.items() if k in names}
        told = parts.notices(wrong) if wrong else None
        question = {"model": model, "platform": platform, "mode": mode, "sets": kept}
        return (_groups(known, kept), _slider_data(model, platform, mode, known), titles.modes(offered), mode,
                menus.platforms(platform), platform, home_platform.apart("whatif", model, platform).children,
                told, kept, question)

    def begin(self, question: Any) -> Any:
        if not question:
            return None
        asked = _question_parts(question)
        return _title(asked), runs.what_if, (self.resources.places, *asked)

    def show(self, answer: dict[str, Any], series: str, y: str, switch: Any, job: Any, _drawn: Any) -> Any:
        answer = intervals.beside(answer, self._draws_result(job) if switch and job else None)
        base = answer["base"]
        command = command_line(base["model"], base["platform"], base["mode"], (answer["changed"] or base)["sets"])
        return self.drawing.what_if_figure(answer, series, y), _outcome(answer), _numbers(answer, series), command

    def _draws_result(self, job: Any) -> dict[str, Any] | None:
        """The result of a job of draws; None before it ends, or when it is gone."""
        with suppress(UsageError):
            found: dict[str, Any] | None = self.resources.jobs.state(parts.text(job), parts.session()).result
            return found
        return None

    def begin_stops(self, touched: Any) -> Any:
        asked = _question_parts(touched)
        model, platform, mode, _sets = asked
        return _title(asked), slider_stops.simulate, (self.resources.places, model, platform, mode, _stops(model, platform, mode, touched))

    def begin_draws(self, question: Any, switch: Any) -> Any:
        if not question or not switch:
            return None
        try:
            asked = _question_parts(question)
        except wrong_entries.WrongEntries:  # the job of the curve tells it
            return None
        title = _("draws of {model}, {mode}").format(model=registry.models()[asked[0]].title, mode=asked[2])
        return title, intervals.what_if, (self.resources.places, *asked)

    @callback(
        Output("whatif-keep-line", "children", allow_duplicate=True), Input("whatif-keep", "n_clicks"), State("whatif-question", "data"),
        prevent_initial_call=True,
    )
    def keep(self, _clicks: int | None, question: Any) -> str:
        if not question:
            return ""
        jobs = self.resources.jobs
        job = jobs.submit(parts.session(), _("keeping a run"), runs.keep, self.resources.places, *_question_parts(question),
                          client=parts.client())
        state = jobs.wait(job, parts.session(), _WAIT_TO_KEEP)
        if state.status != "done":
            return state.error or _("it is being simulated for the store; 'retrompi runs list' will show it")
        return _("run {run} of the store").format(run=state.result["run"]) + (_(" (it was there already)") if state.result["there"] else "")


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks: sliders and entries update each other in the browser; their values are simulated in the background."""
    app.clientside_callback(
        ClientsideFunction("retrompi_whatif", "together"),
        Output({"type": "whatif-slide", "name": MATCH}, "value"), Output({"type": "whatif-text", "name": MATCH}, "value"),
        Input({"type": "whatif-slide", "name": MATCH}, "value"), Input({"type": "whatif-text", "name": MATCH}, "value"),
        State("whatif-slots", "data"), prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("retrompi_whatif", "gather"), Output("whatif-sets", "data"), Output("whatif-question", "data"),
        Output("whatif-keep-line", "children"),
        Input({"type": "whatif-text", "name": ALL}, "value"), Input({"type": "whatif-choice", "name": ALL}, "value"),
        State("whatif-slots", "data"),
    )
    app.clientside_callback(ClientsideFunction("retrompi_whatif", "find"), Output("whatif-find", "placeholder"),
                            Input("whatif-find", "value"), Input("whatif-parameters", "children"))
    parts.register_graph(app, "whatif-figure")
    whatif = _WhatIf(resources)
    register_methods(app, whatif)
    parts.register_job(
        app, resources, "whatif", [Input("whatif-question", "data")], whatif.begin,
        parts.outputs("whatif-figure.figure", "whatif-outcome.children", "whatif-numbers.children", "whatif-command.children"),
        whatif.show, views=[Input("whatif-series", "value"), Input("whatif-y", "value"), Input("whatif-interval", "value"),
                            Input("whatif-draws-job", "data"), Input("whatif-drawn", "data")],
    )
    slider_stops.install(app.server, resources, whatif.begin_stops)
    app.clientside_callback(ClientsideFunction("retrompi_whatif", "shown"), Input("whatif-figure", "figure"),
                            Input("whatif-cancel", "hidden"), State("whatif-series", "value"))
    parts.register_job(
        app, resources, "whatif-draws", [Input("whatif-question", "data"), Input("whatif-interval", "value")], whatif.begin_draws,
        parts.outputs("whatif-drawn.data"), lambda told: secrets.token_urlsafe(6),
    )


def _title(asked: tuple[str, str, str, list[str]]) -> str:
    """The title of a job of curves."""
    return _("PingPong of {model}, {mode}").format(model=registry.models()[asked[0]].title, mode=asked[2])


def _texts_by_name(sets: Any) -> dict[str, str]:
    """Untrusted data from the browser as texts by name."""
    if sets is None:
        return {}
    if not isinstance(sets, dict) or not all(isinstance(k, str) and isinstance(v, str) and len(k) + len(v) < 200 for k, v in sets.items()):
        raise UsageError("overrides are short texts by name", code="missing-option")
    return sets


def _question_parts(question: Any) -> tuple[str, str, str, list[str]]:
    """(model, platform, mode, overrides) of untrusted data from the browser."""
    if not isinstance(question, dict):
        raise UsageError("a what-if has a model, a platform, a mode and overrides", code="missing-option")
    model, platform, mode = (parts.text(question.get(key)) for key in ("model", "platform", "mode"))
    sets = _texts_by_name(question.get("sets"))
    if len(sets) > MOST_SETS:
        raise UsageError(f"{len(sets)} parameters are changed; change {MOST_SETS} at most together", code="out-of-range")
    known = slots_for(model, platform, mode, sets)
    wrong: dict[str, str] = {}
    for name in {s.name for s in known if not s.choices} & set(sets):
        try:
            with wrong_entries.beside_control({"type": "whatif-text", "name": name}):
                resolve(model, platform, overrides(known, {name: sets[name]}))
        except wrong_entries.WrongEntries as error:
            wrong |= error.lines
    if wrong:
        raise wrong_entries.WrongEntries(wrong)
    wanted = overrides(known, sets)
    resolve(model, platform, wanted)
    return model, platform, mode, wanted


def _stops(model: str, platform: str, mode: str, touched: Mapping[str, Any]) -> dict[str, list[str]]:
    """Text -> overrides of the stops that are wanted of a slider, by untrusted data from the browser."""
    sets = _texts_by_name(touched.get("sets"))
    known = slots_for(model, platform, mode, sets)
    slot = next((s for s in known if s.name == touched.get("name")), None)
    wanted = touched.get("texts") or []
    if slot is None or not set(wanted) <= set(slot.texts):
        raise UsageError("stops are of a slider of this page", code="unknown-name")
    return {text: overrides(known, {**sets, slot.name: text}) for text in wanted}


def _outcome(answer: Mapping[str, Any]) -> list[Component]:
    """The outcome of the runs in words: a run that did not complete is a result."""
    base, changed = answer["base"], answer["changed"]
    out: list[Component] = []
    for name, run in ((_("as it was"), base), (_("changed"), changed)):
        if run is not None and run["outcome"] != Outcome.COMPLETED:
            told = " ".join([run["detail"], _(OUTCOME_WORDS.get(run["outcome"], ""))])
            out.append(html.P([html.Strong(f"{name}: {outcome_name(run['outcome'])}. "), told], className="notice ended"))
    both = ((_("as it was"), base), (_("changed"), changed))
    out.append(parts.cautions((name, run["cautions"]) for name, run in both if run is not None))
    if changed is None:
        out.append(html.P(_("Nothing has been changed yet."), className="soft", id="whatif-unchanged"))
    elif changed["rows"] == base["rows"] and changed["outcome"] == base["outcome"]:
        out.append(html.P(_("The two curves are identical: the changes have no effect in this configuration."), className="notice"))
    if changed is not None and answer["outside"]:
        out.append(
            html.P(_("Outside the model's calibrated range: {outside}.").format(outside="; ".join(answer["outside"])), className="soft")
        )
    if (drawn := answer.get("intervals")) and (line := intervals.ended_line(drawn)):
        out.append(html.P(line, className="notice"))
    stored = [
        _("{name}: run {run} of the store").format(name=name, run=run["run"])
        for name, run in ((_("as it was"), base), (_("changed"), changed))
        if run and run["run"]
    ]
    return [*out, html.P("; ".join(stored), className="soft")] if stored else out


def _numbers(answer: Mapping[str, Any], series: str) -> Component:
    from retrompi.studio.curves.drawing import metric_rows, number_rows

    was, now = _("as it was"), _("changed")
    named = [(was, answer["base"]), *([(now, answer["changed"])] if answer["changed"] else [])]
    unit = "µs" if series == "time" else "MB/s"
    rows = number_rows([(name, c["rows"]) for name, c in named], series)
    told = answer.get("intervals")
    level = f"{100 * intervals.LEVEL:g} %"
    columns: list[Any] = [("size_B", _("size"), format_bytes)]
    for name, curve in named:
        columns.append((name, f"{name}, {unit}", lambda v: f"{v:.4g}"))
        if told:
            ends = {r["size_B"]: _ends(r, series) for r in curve["rows"]}
            rows = [{**r, f"{name} ends": ends.get(r["size_B"], "")} for r in rows]
            columns.append((f"{name} ends", level))
    if answer["changed"]:
        for r in rows:
            r["ratio"] = r[now] / r[was] if r.get(was) and now in r else None
        columns.append(("ratio", _("changed / as it was"), lambda v: f"{v:.3g}"))
        if told:
            rows = [{**r, **_ratio(told, r["size_B"], series)} for r in rows]
            columns += [("ratio ends", level), ("ahead", _("changed is faster in"))]
    curves = zip((was, now), ("base", "changed"), strict=True)
    of_metrics = {name: told[key]["metrics"] for name, key in curves if told[key]} if told else {}
    heads = [("what", ""), *((name, name) for name, _curve in named)]
    caption = _("in parentheses: {level} interval of {draws} draws").format(level=level, draws=told["draws"]) if told else ""
    summary = parts.table(metric_rows(named, of_metrics), heads, id="whatif-summary", caption=caption, stack=False)
    return html.Div([summary, html.Details([html.Summary(_("Every size")), parts.table(rows, columns, id="whatif-table", stack=False)])])


def _ends(row: Mapping[str, Any], series: str) -> str:
    """The interval of a point, in the unit of its column."""
    column = {"time": "time_us", "bandwidth": "bandwidth_MBps"}[series]
    low, high = row.get(f"{column}_low"), row.get(f"{column}_high")
    return "" if low is None or high is None else f"{low:.3g} .. {high:.3g}"


def _ratio(told: Mapping[str, Any], size: int, series: str) -> dict[str, str]:
    """The interval of changed / as it was at a size, of the series, and in how many draws the changed one is faster."""
    found = told["ratio"].get(str(size))
    if found is None or found["ends"] is None or (series == "bandwidth" and size == 0):
        return {"ratio ends": "", "ahead": ""}
    low, _middle, high = found["ends"]
    if series == "bandwidth":  # the time's ratio turned over
        low, high = 1 / high, 1 / low
    return {
        "ratio ends": f"{low:.3g} .. {high:.3g}",
        "ahead": _("{ahead} of {draws} draws").format(ahead=round(found["ahead"] * told["draws"]), draws=told["draws"]),
    }
