"""Pieces of pages: labelled controls, notices, tables, and the bar of a job. Texts from outside are text nodes, never HTML or Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update, set_props
from flask import g

from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import ENGLISH, _, lazy
from retrompi.base.units import format_bytes
from retrompi.render.document.html import config as plotly_config
from retrompi.studio.jobs.job import JobState, Then
from retrompi.studio.requests import wrong_entries

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

__all__ = ["bench", "cautions", "client", "controls", "copyable", "csv_text", "enlarge_letters", "entry", "field", "graph", "group",
           "job_bar", "job_line", "menu", "notices", "outputs", "overrides_field", "register_graph", "register_job", "session", "table",
           "text", "texts", "upload_row", "uploaded_line"]

_MENU_PX = 480
"""The height of an open menu: a dozen entries."""
Begun = tuple[str, Callable[..., Any], tuple[Any, ...]] | tuple[str, Callable[..., Any], tuple[Any, ...], Then]
"""A job that a page begins: title, function, arguments, and what is done with its result wherever the page is (`Jobs.submit`)."""
TICK_MS = 250
PATIENCE_S = 0.5
"""How long a response waits for a short job: then one request returns its result."""


def session() -> str:
    """The session of the current request, which owns its jobs and uploads. Only within a callback or a request."""
    return str(g.session)


def client() -> str:
    """Whose request the current one is, as the guard knows: the address of a browser, or a member of a class. All of one client's sessions
    share their turns."""
    return str(g.get("client", ""))


def text(value: Any, most: int = 500) -> str:
    """A control's value as a text, "" for None. Raises UsageError for anything else: a hand-made post may contain any value."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most:
        raise UsageError(f"a text of at most {most} characters is wanted here", code="out-of-range")
    return value


def texts(value: Any, most: int = 100) -> list[str]:
    """A control's values as a list of texts, [] for None. Raises UsageError for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most:
        raise UsageError(f"a list of at most {most} texts is wanted here", code="out-of-range")
    return [text(v) for v in value]


def notices(lines: Sequence[str | list[Component | str]]) -> Component:
    """Lines that describe problems, visible and announced by screen readers; nothing for an empty list."""
    return html.Div([html.P(line, className="notice") for line in lines if line], role="status")


def cautions(told: Iterable[tuple[str, Sequence[str]]]) -> Component:
    """Cautions of runs, (name, sentences) each: a sentence is shown once, with the names of its runs if there are several runs."""
    some = list(told)
    names: dict[str, list[str]] = {}
    for name, lines in some:
        for line in lines:
            names.setdefault(line, []).append(name)
    return notices([[f"{', '.join(whose)}: " if len(some) > 1 else "", english(line)] for line, whose in names.items()])


def field(label: str, control: Component, help: str = "", *, wide: bool = False) -> Component:
    """A control under its label, with a line of help below."""
    control_id = getattr(control, "id", None)
    target = control_id if isinstance(control_id, str) else None
    below = [html.Small(help, className="soft")] if help else []
    return html.Div([html.Label(label, htmlFor=target), control, *below], className="field wide" if wide else "field")


def menu(label: str, control_id: str, options: Sequence[Any], value: Any, help: str = "", *, wide: bool = False, **more: Any) -> Component:
    """A menu under its label, always with a value unless ``more`` allows clearing it; ``more`` goes to Dash's Dropdown."""
    shown = dcc.Dropdown(options, value, id=control_id, labels=dropdown_words(), **{"clearable": False, "maxHeight": _MENU_PX, **more})
    return field(label, shown, help, wide=wide)


def dropdown_words() -> dict[str, str]:
    """What Dash's menus say themselves."""
    return {
        "select_all": _("Select all"), "deselect_all": _("Deselect all"), "selected_count": _("{num_selected} selected"),
        "search": _("Search"), "clear_search": _("Clear search"), "clear_selection": _("Clear selection"),
        "no_options_found": _("No options found"),
    }


def english(text: str) -> Component | str:
    """A text that stays as it is in every language, for whoever reads it aloud (WCAG 3.1.2)."""
    return html.Span(text, lang=ENGLISH) if text else ""


def graph(graph_id: str, label: str, *, numbers: str = "", config: Mapping[str, Any] | None = None, css: str = "plot") -> Component:
    """A figure with its name for screen readers; sketched until Plotly has come (`register_graph`). ``numbers``: its table's id."""
    from retrompi.studio.requests.first_answer import pending

    more = {"aria-describedby": numbers} if numbers else {}
    drawn = dcc.Graph(id=graph_id, figure=pending(), config=dict(config or plotly_config()), className=css)
    sketch = html.Div(id=f"{graph_id}-sketch", className="sketch")
    return html.Div([drawn, sketch], className=f"drawn {css}", role="figure", **{"aria-label": label, **more})


def register_graph(app: Dash, *graph_ids: str) -> None:
    """Sketches each new state of these figures while Plotly is not there."""
    for graph_id in graph_ids:
        app.clientside_callback(
            ClientsideFunction("retrompi", "sketch"), Output(f"{graph_id}-sketch", "title"), Input(graph_id, "figure"),
            State(graph_id, "id"),
        )


def bench(asked: Sequence[Component], shown: Sequence[Component], *, stays: bool = False) -> Component:
    """A page's controls beside what they change; on a phone the figure comes first. Of the two the figure (class ``held``) stays in view,
    or the controls (``stays``), where what they change is longer than a screen."""
    css = f"asked{' stays' * stays}"
    return html.Div([html.Div(list(asked), className=css), html.Div(list(shown), className="shown")], className="bench")


def entry(label: str, control_id: str, value: Any, help: str = "", *, wide: bool = False, **more: Any) -> Component:
    """A text entry under its label; ``more`` goes to Dash's Input."""
    return field(label, dcc.Input(id=control_id, value=value, **{"type": "text", "debounce": True, **more}), help, wide=wide)


def series() -> dict[str, str]:
    """What a curve shows, for a choice."""
    return {"time": _("time"), "bandwidth": _("bandwidth")}


def scales() -> dict[str, str]:
    """The scales of an axis, for a choice."""
    return {"log": _("logarithmic"), "linear": _("linear")}


def overrides_field(control_id: str, value: str, more: str = "") -> Component:
    """A text entry for overrides; ``more`` is appended to its line of help."""
    help = _("overrides KEY=VALUE, separated by commas{more}").format(more=more)
    return entry(_("What if"), control_id, value, help, wide=True, maxLength=500, placeholder="packet=16KiB, platform.host.quantum=20ms",
                 style={"width": "100%"})


def upload_row(page: str, label: str, most_B: int, words: str, advice: str = "") -> list[Component]:
    """A button that uploads a file (PAGE-upload), a description of accepted files, and a place for the result (PAGE-upload-said)."""
    told_at = {"aria-describedby": f"{page}-upload-said"}
    button = dcc.Upload(html.Button(label, type="button", className="quiet", **told_at), id=f"{page}-upload", multiple=False,
                        max_size=most_B)
    told = _("{words}; at most {most_b}. It stays on the machine of this studio and is removed with your session.").format(
        words=words, most_b=format_bytes(most_B)
    )
    data = {"data-most": str(most_B), **({"data-advice": advice} if advice else {})}
    return [html.Div([button, html.Span(told, className="soft")], className="upload-row", **data),
            html.Div(id=f"{page}-upload-said", role="status", **{"aria-live": "polite"})]


def uploaded_line(label: str, size_B: int) -> Component:
    """The line about a completed upload."""
    return html.P(_("{label}, {size_b}, is uploaded.").format(label=label, size_b=format_bytes(size_B)), className="soft")


def outputs(*names: str) -> list[Output]:
    """``"page-figure.figure"`` as Dash's Output("page-figure", "figure"), for each of the names."""
    return [Output(*name.rsplit(".", 1)) for name in names]


def group(label: str, control: Component, help: str = "") -> Component:
    """Several choices under one label: radio buttons or checkboxes."""
    below = [html.Small(help, className="soft")] if help else []
    return html.Div(html.Fieldset([html.Legend(label), control, *below]), className="field")


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV. Texts that a spreadsheet would interpret as formulas are neutralised."""
    import io

    out = io.StringIO()
    write_rows(out, columns, rows)
    return out.getvalue()


def controls(*fields: Component) -> Component:
    """The fields of a page side by side; on a phone one below the other."""
    return html.Div(list(fields), className="controls")


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[tuple[str, str] | tuple[str, str, Callable[[Any], str]]], *, id: str = "",
          caption: str = "", stack: bool = True) -> Component:
    """A table of rows: columns (key, head) or (key, head, formatter of a value). Numbers are right-aligned.

    On a phone a row becomes a card, or with ``stack`` False the table scrolls sideways.
    """
    first = rows[0] if rows else {}
    numbers = {c[0] for c in columns if isinstance(first.get(c[0]), (int, float))}
    head = html.Thead(html.Tr([html.Th(c[1], scope="col", className="n" if c[0] in numbers else None) for c in columns]))
    body = []
    for row in rows:
        cells = []
        for column in columns:
            value = row.get(column[0])
            written = "" if value is None else column[2](value) if len(column) > 2 else value
            shown = written if _is_component(written) else str(written)
            cells.append(html.Td(shown, className="n" if isinstance(value, (int, float)) else None, **{"data-label": column[1]}))
        body.append(html.Tr(cells))
    told = [html.Caption(caption)] if caption else []
    named = {"id": id} if id else {}
    made = html.Table([*told, head, html.Tbody(body)], className="stack" if stack else "wide", **named)
    return html.Div(made, className="scroll", tabIndex=0, role="region", **{"aria-label": caption or _("table")})


def _is_component(value: Any) -> bool:
    return hasattr(value, "to_plotly_json") or isinstance(value, list)


def copyable(text: str, *, id: str) -> Component:
    """A text in a monospaced font with a button that copies it."""
    button = html.Button(_("Copy"), className="copy-text quiet", type="button", title=_("copy"), **{"data-copies": id})
    return html.Div([html.Code(text, id=id), button], className="copyable")


# -- jobs --------------------------------------------------------------------------------------------------------------


_ENDED = {"failed": lazy("failed"), "cancelled": lazy("cancelled")}


def job_line(state: JobState) -> str:
    """A job's state in one line."""
    if state.status == "queued":
        if state.own:
            return _("{title}: waits for your other jobs; cancel one of them").format(title=state.title)
        if state.ahead or state.running:
            return _("{title}: waiting, number {ahead} in the queue; {running} jobs have begun").format(
                title=state.title, ahead=state.ahead + 1, running=state.running
            )
        return _("{title}: about to start").format(title=state.title)
    if state.paused:
        return _("{title}: paused after {seconds:.0f} s, continues in its turn; {running} jobs share the processors").format(
            title=state.title, seconds=state.seconds, running=state.running
        )
    if state.status == "running":
        part = _("{n} of {of}").format(n=state.done, of=state.total) if state.total else _("running")
        return f"{state.title}: {part}{', ' + state.what if state.what else ''} ({state.seconds:.0f} s)"
    if state.status == "keeping":
        return _("{title}: being recorded").format(title=state.title)
    if state.status == "done":
        return _("{title}: done in {seconds:.2g} s").format(title=state.title, seconds=state.seconds)
    return f"{state.title}: {_(_ENDED.get(state.status, state.status))}" + (f": {state.error}" if state.error else "")


def job_bar(page: str) -> Component:
    """Progress, status line and cancel button of a page's job; ids PAGE-progress, PAGE-job-line, PAGE-cancel. See `register_job`."""
    return html.Div(
        [
            html.Progress(id=f"{page}-progress", max="1", value="0", hidden=True, **{"aria-label": _("progress")}),
            html.Span("", id=f"{page}-job-line", role="status", **{"aria-live": "polite"}),
            html.Button(_("Cancel"), id=f"{page}-cancel", className="cancel quiet", type="button", hidden=True),
            dcc.Store(id=f"{page}-job"),
            dcc.Interval(id=f"{page}-tick", interval=TICK_MS, n_intervals=0, max_intervals=0),
            wrong_entries.store(page),
        ],
        className="job",
    )


def register_job(
    app: Dash,
    resources: Resources,
    page: str,
    inputs: Sequence[Any],
    begin: Callable[..., Begun | None],
    outputs: Sequence[Any],
    show: Callable[..., Any],
    *,
    states: Sequence[Any] = (),
    views: Sequence[Any] = (),
    prevent_initial_call: bool = False,
    failed: Callable[[JobState], Any] | None = None,
    blame: Callable[..., Mapping[str, str]] | None = None,
    resumes: bool = False,
    owner: Callable[[], str] = session,
) -> None:
    """Runs a page's question in the background, shows its progress, and its result.

    When one of ``inputs`` changes, ``begin(*inputs, *states)`` returns the new job: (title, function, arguments), as for `Jobs.submit`, or
    None. The page's previous job is cancelled in both cases. ``show(result, *views)`` computes the values of ``outputs`` from the job's
    result, again when one of the inputs ``views`` changes, without a new job; ``failed(state)`` computes them when the job failed or was
    cancelled (by default they are kept, and the job's line gives the reason). The page has a `job_bar`.

    Entries that ``begin`` finds wrong (`retrompi.studio.requests.wrong_entries`) are told beside their controls, and no job begins. What
    only the job finds wrong with an entry is told there as well, if ``blame(error, *inputs, *states)`` knows with which: lines by control.

    ``resumes``: for a page whose jobs are started by a button; when reloaded, it shows the running job of its ``owner``, by default the
    session of who asks.

    A job that ``begin`` gives something to do with its result (`Jobs.submit`, ``then``) is not cancelled when another one takes its place
    on the page: what was asked for is recorded.
    """
    wrong_entries.register(app, page)
    job = _PageJob(resources, page, inputs, begin, outputs, show, states, views, failed, blame, resumes, owner)
    app.callback(
        *outputs, Output(f"{page}-job", "data"), Output(f"{page}-job-line", "children"), Output(f"{page}-progress", "value"),
        Output(f"{page}-progress", "hidden"), Output(f"{page}-cancel", "hidden"), Output(f"{page}-tick", "max_intervals"),
        *inputs, *states, *views, Input(f"{page}-tick", "n_intervals"), Input(f"{page}-cancel", "n_clicks"),
        State("studio-tab", "data"), State("studio-letters", "data"),
        prevent_initial_call=prevent_initial_call,
    )(job.look)


@dataclass(frozen=True)
class _PageJob:
    """What a page runs in the background, as `register_job` describes it."""

    resources: Resources
    page: str
    inputs: Sequence[Any]
    begin: Callable[..., Begun | None]
    outputs: Sequence[Any]
    show: Callable[..., Any]
    states: Sequence[Any]
    views: Sequence[Any]
    failed: Callable[[JobState], Any] | None
    blame: Callable[..., Mapping[str, str]] | None
    resumes: bool
    owner: Callable[[], str]

    def look(self, *values: Any) -> Any:
        """The outputs and the bar, after a change of the question or the view, a tick of the page's clock, or a click on Cancel."""
        page, jobs, unchanged = self.page, self.resources.jobs, [no_update] * len(self.outputs)
        asked = values[: len(self.inputs) + len(self.states)]
        patience = 0.0
        slot, question = f"{page} {text(values[-2], 60)}", json.dumps(asked, sort_keys=True, default=str)
        by = {str(prop_id) for prop_id in ctx.triggered_prop_ids}
        changed = not by or bool(by & {f"{i.component_id_str()}.{i.component_property}" for i in self.inputs})
        # Dash drops the response to a request when another request was sent after it, including those of ticks and views: so every response
        # reports on the newest job. Its job may be about to start in another thread: then it waits for it.
        job = None if changed else jobs.newest(self.owner(), slot, question, PATIENCE_S)
        if job is None:
            set_props("studio-notice", {"children": []})
            if by and by <= {f"{page}-tick.n_intervals", f"{page}-cancel.n_clicks"}:  # neither starts a job
                raise UsageError("no such job: it ended long ago, or belongs to another session", code="gone")
            try:
                wanted = self.begin(*asked)
            except wrong_entries.WrongEntries as error:
                jobs.leave(self.owner(), slot)
                wrong_entries.tell(page, error.lines)
                line = _("Please correct what is marked; until then you see the last result.")
                return *unchanged, no_update, line, "0", True, True, 0
            wrong_entries.tell(page, {})
            job, patience = self._start(wanted, slot, question), 0.0 if wanted is None else PATIENCE_S
            if job is None:
                return *unchanged, None, "", "0", True, True, 0
        elif changed_by(f"{page}-cancel"):
            jobs.cancel(job, self.owner())
        elif not changed_by(f"{page}-tick"):
            patience = PATIENCE_S
        return self._report(job, patience, values)

    def _start(self, wanted: Begun | None, slot: str, question: str) -> str | None:
        """The job that is begun, or that runs already; None if there is none."""
        jobs = self.resources.jobs
        if wanted is None:
            if self.resumes:
                return jobs.take_up(self.owner(), self.page, slot, question)
            jobs.leave(self.owner(), slot)
            return None
        title, function, args, *then = wanted
        after = then[0] if then else None
        try:
            return jobs.submit(self.owner(), title, function, *args, slot=slot, question=question, client=client(), payer=session(),
                               then=after, stays=after is not None)
        except RetrompiError:
            if after is not None:
                after(JobState("", title, "cancelled"))
            raise

    def _report(self, job: str, patience: float, values: Sequence[Any]) -> Any:
        """The outputs and the bar, as far as the job is after so many seconds."""
        asked, ticks, shown = len(self.inputs) + len(self.states), values[-4], [no_update] * len(self.outputs)
        state = self.resources.jobs.wait(job, self.owner(), patience)
        if not state.ended:
            part = f"{state.done / state.total:.3f}" if state.total else "0"
            # One tick after each response: if ticks overtook slow responses, Dash would drop all of them.
            return *shown, job, job_line(state), part, False, False, (ticks if isinstance(ticks, int) else 0) + 1
        if state.status == "done":
            told = self.show(state.result, *values[asked : asked + len(self.views)])
            shown = [enlarge_letters(v, values[-1]) for v in _values(told, len(self.outputs))]
        else:
            if self.blame is not None and state.error:
                wrong_entries.tell(self.page, self.blame(state.error, *values[:asked]))
            if self.failed is not None:
                shown = _values(self.failed(state), len(self.outputs))
        return *shown, job, job_line(state), "0", True, True, 0


def changed_by(component: str) -> bool:
    """Whether the running callback was called for this component (an id, or the ``type`` of one), perhaps among others.

    Dash merges what happens to a page while it is busy into one request, and ``ctx.triggered_id`` is the first thing in it: a click that
    meets a tick of the page's clock is the second.
    """
    return any((c.get("type") if isinstance(c, dict) else c) == component for c in ctx.triggered_prop_ids.values())


def enlarge_letters(value: Any, letters_px: Any) -> Any:
    """A figure with its letters scaled for a page whose letters have ``letters_px`` pixels instead of 16: larger ones on a projector.

    Any other value is returned unchanged.
    """
    import plotly.graph_objects as go

    if not isinstance(value, go.Figure) or not isinstance(letters_px, (int, float)):
        return value
    by = min(max(letters_px / 16, 0.85), 1.6)
    layout = value.layout
    fonts = [layout.font, layout.legend.font, *(a.font for a in layout.annotations)]
    for axis in [*value.select_xaxes(), *value.select_yaxes()]:
        fonts += [axis.tickfont, axis.title.font]
    for font in fonts:
        if font.size:
            font.size = round(font.size * by, 1)
    for note in layout.annotations:
        note.yshift = round(note.yshift * by) if note.yshift else note.yshift
    for side in ("l", "t", "b"):
        if layout.margin[side]:
            layout.margin[side] = round(layout.margin[side] * by)
    return value


def _values(made: Any, many: int) -> list[Any]:
    return list(made) if many > 1 else [made]
