"""Studies: predefined and stored ones, their tables and figures, and running a small one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import _, lazy
from retrompi.studies.define import catalogue
from retrompi.studio.cards import study_jobs, study_parts
from retrompi.studio.cards.card_pieces import Part
from retrompi.studio.components import parts
from retrompi.studio.components.callbacks import callback, register_methods
from retrompi.studio.requests import inputs, wrong_entries
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, choice, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studies.execute.design import Study
    from retrompi.studio.jobs.resources import Resources

_FORM = ("scenario", "key", "values", "key2", "values2")
CHOSEN = Control("studies-study", "value", "study", "", text(120))
SHOWN = (
    Control("studies-metric", "value", "metric", "", text(60)),
    Control("studies-x", "value", "x", "", text(120)),
    Control("studies-by", "value", "by", (), text(120)),
    Control("studies-panel", "value", "panel", (), text(120)),
)
FORM = (
    Control("studies-scenario", "value", "scenario", "bf-wmpi-shared", choice(catalogue.scenario_names, "scenario")),
    Control("studies-key", "value", "key", "", text(120)),
    Control("studies-values", "value", "values", "", text(200)),
    Control("studies-key2", "value", "key2", "", text(120)),
    Control("studies-values2", "value", "values2", "", text(200)),
)
PAGE = Page(
    path="/studies",
    title=lazy("Studies"),
    order=70,
    help=lazy("Parameter studies: one scenario, many points. Predefined studies, stored ones, and small ones of your own."),
    controls=(CHOSEN, *SHOWN, *FORM),
    inputs={"studies-ran.data": inputs.mapping()},
)


def _list_studies(resources: Resources) -> list[study_jobs.Listed]:
    try:
        return study_jobs.list_studies(resources.open_store())
    except RetrompiError:  # no store exists yet; a run creates it
        return study_jobs.list_studies(None)


def _options(some: Sequence[study_jobs.Listed]) -> list[dict[str, str]]:
    return [
        {"label": _("choose a study"), "value": ""},
        *({"label": f"{s.name}{f' ({s.id})' if s.id is not None else ''}: {s.title or s.state}", "value": s.key} for s in some),
    ]


@cache
def _scenarios() -> list[dict[str, str]]:
    """The predefined scenarios by title."""
    return [{"value": name, "label": f"{scenario.title or name} ({name})"} for name, scenario in catalogue.scenarios().items()]


def _view(
    resources: Resources, which: str, metric: str, x: str, by: Sequence[str], panel: Sequence[str]
) -> tuple[list[Part], tuple[str, ...]]:
    """(the display of a study, its axes)."""
    if not which:
        return [], ()
    known = next((s for s in _list_studies(resources) if which in (s.key, s.name)), None)
    if known is not None and not known.done:
        return study_parts.unrun(known), ()
    try:
        found = study_jobs.show_study(resources.open_store(), which, metric, x, by, panel)
    except RetrompiError as error:
        return [parts.notices([str(error)])], () if known is None else known.axes
    return study_parts.result_parts(found), found.axes


def _axes(axes: Sequence[str], any_size: bool = True) -> list[dict[str, str]]:
    return [*({"label": a, "value": a} for a in axes), *([{"label": _("size (message)"), "value": "size"}] if any_size else [])]


_OF_KEY = ("unknown-parameter", "unknown-key", "bad-usage", "nothing-varies")
"""Codes of errors that are the key's; all others are those of its values."""


def _study_of(values: Sequence[Any]) -> Study:
    """The study that the form describes. Raises WrongEntries."""
    scenario, *told = (str(v or "") for v in values)
    pairs = [(told[0], told[1]), (told[2], told[3])]
    wrong: dict[str, str] = {}
    for (key, given), number in zip(pairs, ("", "2"), strict=True):
        if key.strip() or given.strip() or not number:
            try:
                study_jobs.study_of_form(scenario, [(key, given)])
            except RetrompiError as error:
                at = "key" if not key.strip() or error.code in _OF_KEY else "values"
                wrong |= wrong_entries.WrongEntries.of(f"studies-{at}{number}", error).lines
    if wrong:
        raise wrong_entries.WrongEntries(wrong)
    with wrong_entries.beside_control("studies-values2"):  # both together
        return study_jobs.study_of_form(scenario, pairs)


def _form_line(values: Sequence[Any]) -> tuple[list[Part], dict[str, str]]:
    """(the number of points that the form describes, or what it still needs; what is wrong with it, by field)."""
    told = [str(v or "").strip() for v in values][1:]
    if not all(bool(key) == bool(given) for key, given in (told[:2], told[2:])) or not any(told):
        advice = _("Give a key and its values: a list (a,b,c), a range by a factor (8KiB..32KiB:x2) or by steps (1..9:+2).")
        return [html.Span(advice, className="soft")], {}
    try:
        study = _study_of(values)
    except wrong_entries.WrongEntries as error:
        return [], error.lines
    from retrompi.studies.execute.design import count

    return [html.Span(_("{count} points").format(count=count(study)))], {}


def _form_parts(values: Mapping[str, Any]) -> list[Part]:
    """The form of a new study."""
    fields = [
        parts.entry(label, f"studies-{k}", values[k], maxLength=most, placeholder=f"e.g. {example}")
        for k, label, most, example in (
            ("key", _("Key"), 120, "wmpi.packet"), ("values", _("Values"), 200, "8KiB..32KiB:x2"),
            ("key2", _("Second key (optional)"), 120, "platform.host.quantum"), ("values2", _("Its values"), 200, "20ms,120ms"),
        )
    ]
    line, wrong = _form_line([values[k] for k in _FORM])
    return [
        html.H2(_("Vary something"), id="vary"),
        parts.controls(
            parts.menu(_("Scenario"), "studies-scenario", _scenarios(), values["scenario"], wide=True),
            *fields,
        ),
        html.Div(
            [
                html.Button(_("Run it"), id="studies-vary", type="button"),
                html.Span(line, id="studies-form", role="status"),
                wrong_entries.store("studies-form", wrong),
            ],
            className="action",
        ),
    ]


def layout(query: Query, resources: Resources) -> Component:
    """The list, the chosen study, and the form of a new one."""
    values, lines = read(PAGE.controls, query)
    some = _list_studies(resources)
    which = values["study"]
    if which and not any(which in (s.key, s.name) for s in some):
        lines.append(_("no study '{which}' in this store").format(which=which[:60]))
        which = ""
    try:
        content, axes = _view(resources, which, values["metric"], values["x"], values["by"], values["panel"])
    except RetrompiError as error:
        content, axes = [parts.notices([str(error)])], ()
    lines += [_("this study does not vary '{v}'").format(v=v[:60]) for k in ("by", "panel") for v in values[k] if v not in axes]
    # A study is identified by its number once it has one: a link to a predefined study still works after it was run.
    which = next((s.key for s in some if which in (s.key, s.name)), "")
    pick = parts.menu(_("Study"), "studies-study", _options(some), which, wide=True)
    views = [
        parts.entry(_("Metric"), "studies-metric", values["metric"], maxLength=60, placeholder=_("its own, or e.g. time@1MiB")),
        parts.menu(_("Along"), "studies-x", _axes(axes), values["x"] or None, placeholder=_("chosen from the axes"), clearable=True),
        *(parts.menu(label, f"studies-{k}", _axes(axes, False), [v for v in values[k] if v in axes], multi=True, clearable=True)
          for k, label in (("by", _("Lines by")), ("panel", _("One figure per")))),
    ]
    return html.Div(
        [
            html.Div(parts.notices(lines)),
            parts.controls(pick),
            html.Div(
                [
                    html.Button(_("Run this study"), id="studies-run", type="button"),
                    html.Small(
                        _("Stored runs are reused, the others simulated; at most {most_points} points.").format(
                            most_points=study_jobs.MOST_POINTS
                        ),
                        className="soft",
                    ),
                ],
                className="action",
            ),
            parts.job_bar("studies"),
            dcc.Store(id="studies-ran"),
            html.Details([html.Summary(_("Display options")), parts.controls(*views)], open=any(values[c.key] for c in SHOWN)),
            html.Div(content, id="studies-shown"),
            *_form_parts(values),
            html.H2(_("All studies"), id="all"),
            html.Div(study_parts.listing(some), id="studies-list"),
        ]
    )


class _Studies:
    """The callbacks of the page, and the job that runs a study."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    @callback(
        *parts.outputs("studies-study.options", "studies-study.value", "studies-list.children"),
        Input("studies-ran", "data"), Input({"type": "studies-pick", "name": ALL}, "n_clicks"), State("studies-study", "value"),
        prevent_initial_call=True,
    )
    def choose_study(self, ran: Any, clicks: list[int | None], now: str | None) -> Any:
        some = _list_studies(self.resources)
        if parts.changed_by("studies-ran"):
            number = str(ran.get("study", "")) if isinstance(ran, dict) else ""
            # A predefined study has a number once it was run.
            kept = next((s.key for s in some if number and str(s.id) == number), None) or next(
                (s.key for s in some if now in (s.key, s.name)), ""
            )
            return _options(some), kept, study_parts.listing(some)
        if not any(clicks) or not isinstance(ctx.triggered_id, dict):
            return no_update, no_update, no_update
        return no_update, str(ctx.triggered_id["name"]), no_update

    @callback(
        *parts.outputs("studies-shown.children", "studies-x.options", "studies-by.options", "studies-panel.options", "studies-metric.value",
                       "studies-x.value", "studies-by.value", "studies-panel.value"),
        Input("studies-study", "value"), Input("studies-ran", "data"), *(Input(c.id, c.property) for c in SHOWN), prevent_initial_call=True,
    )
    def view(self, which: str | None, _ran: Any, metric: Any, x: Any, by: Any, panel: Any) -> Any:
        if parts.changed_by("studies-study"):
            metric, x, by, panel = "", "", [], []
        content, axes = _view(self.resources, str(which or ""), str(metric or "")[:60], str(x or ""), _texts(by), _texts(panel))
        return content, _axes(axes), _axes(axes, False), _axes(axes, False), metric, x or None, by, panel

    @callback(Output("studies-form", "children"), *(Input(c.id, c.property) for c in FORM), prevent_initial_call=True)
    def form(self, *values: Any) -> Any:
        line, wrong = _form_line(values)
        wrong_entries.tell("studies", {})  # what a click found
        wrong_entries.tell("studies-form", wrong)
        return line

    def begin(self, run: int | None, vary: int | None, which: str | None, *form: Any) -> Any:
        from retrompi.studies.execute import design

        if parts.changed_by("studies-vary") and vary:
            study = _study_of(form)
        elif parts.changed_by("studies-run") and run:
            if not which:
                with wrong_entries.beside_control("studies-study"):
                    raise UsageError(_("choose a study first"), code="missing-option")
            study = study_jobs.find_study(self.resources.open_store(), which)
            design.check(study, study_jobs.MOST_POINTS)
        else:
            return None
        return _("study {name}").format(name=study.name), study_jobs.run, (self.resources.store, study.definition())


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks for choosing, showing and running studies."""
    wrong_entries.register(app, "studies-form")
    studies = _Studies(resources)
    register_methods(app, studies)
    parts.register_job(
        app, resources, "studies", [Input("studies-run", "n_clicks"), Input("studies-vary", "n_clicks")], studies.begin,
        parts.outputs("studies-ran.data"), lambda result: result,
        states=[State("studies-study", "value"), *(State(c.id, c.property) for c in FORM)], resumes=True,
        failed=lambda state: {"failed": state.id},
    )


def _texts(value: Any) -> list[str]:
    return [str(v)[:120] for v in value if v][:8] if isinstance(value, list | tuple) else []
