"""The components of a lab's page: steps, tasks with their fields, forms with their results. Texts of students are text nodes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dash import MATCH, ClientsideFunction, Dash, Input, Output, State, dcc, html

from retrompi.base.translate import _, ngettext
from retrompi.labs import answers as _answers
from retrompi.labs import text as _words
from retrompi.labs import work as _work
from retrompi.labs.student import draw
from retrompi.render.document.html import config
from retrompi.studio.components.parts import dropdown_words
from retrompi.studio.labs.lab_commands import EDITED, LONGEST, view_of
from retrompi.studio.requests import wrong_entries

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.labs.lab import Lab, Task
    from retrompi.labs.work import Ran, Work
    from retrompi.studio.labs.lab_commands import FormField, LabForm
    from retrompi.studio.labs.lab_text import LabStep

__all__ = ["FILE_WRONG", "WRONG", "Mine", "Saved", "at", "changed_fields", "comparison_text", "form_result", "hint_parts", "register",
           "result_parts", "saved_message", "step_view"]

WRONG, FILE_WRONG = "labs-wrong", "labs-file-wrong"
"""Types of the stores of what is wrong with an entry (`retrompi.studio.requests.wrong_entries`): of a task's answer, of a file."""
_GRAPH = "labs-figure"

GOOD = ("right", "sealed", "open", "changed", "marked")


@dataclass(frozen=True)
class Saved:
    """What is said of an entry: ``line`` beside it once it is kept, and what is ``wrong`` with it, kept or not."""

    line: str = ""
    wrong: str = ""


@dataclass(frozen=True)
class Mine:
    """What a student has found so far: ``graded`` is the row of the last check's grading, ``ran`` the last result of each form by its key,
    ``show`` makes the components of one."""

    graded: Mapping[str, Any] | None = None
    ran: Mapping[str, Ran] = field(default_factory=dict)
    show: Callable[[Mapping[str, Any]], list[Component]] = lambda told: form_result(told)

    @property
    def results(self) -> dict[str, Mapping[str, Any]]:
        """Task -> what the last check said of it."""
        return {r["task"]: r for r in (self.graded or {}).get("tasks", [])}

    def of(self, form: LabForm, key: str) -> Ran | None:
        """The form's last result; None after a change of the text that put another form in its place."""
        found = self.ran.get(key)
        return found if found is not None and found.line == form.line else None


def saved_message(lab: Lab, work: Work, name: str) -> Saved:
    """What is said of a task's answer as it is kept: its form, whether a unit is missing, the count of words."""
    task, given = lab.task(name), work.given_answers(lab)[name]
    if given.empty:
        return Saved(_("saved: empty"))
    if task.kind == "text":
        count = len(_answers.words_of(given.text))
        return Saved(_("saved: {count} of at least {words} words").format(count=count, words=task.words))
    try:
        _answers.value(task, given)
    except _answers.UnreadableAnswer as error:
        return Saved(_("saved"), str(error))
    return Saved(_("saved"))


def at(task: Task, value: Any, wrong: str) -> dict[str, str]:
    """What is wrong with the answer ``value`` to a task, by the element that it is told at; {} for nothing. Of an order that is the first
    place without an entry, else the last."""
    here: dict[str, Any] = {"type": "labs-answer", "task": task.id}
    if task.kind == "order":
        empty = min(len(value) if isinstance(value, list) else 0, len(task.choices) - 1)
        here = {"type": "labs-place", "task": task.id, "place": f"{empty:02d}"}
    return {wrong_entries.element(here): wrong} if wrong else {}


def _status_text(status: str) -> str:
    return {
        "right": _("✓ right"), "sealed": _("✓ sealed"), "open": _("○ open, marked by your teacher"), "wrong": _("✗ wrong"),
        "unreadable": _("✗ cannot be read"), "missing": _("· to do"), "waiting": _("· waits for a prediction"),
        "changed": _("! changed after it was sealed"), "marked": _("✓ marked by your teacher"),
    }[status]


def _markdown(text: str) -> Component:
    return dcc.Markdown(text, className="lab-text", link_target=None)


def _points(value: float) -> str:
    return ngettext("{n} point", "{n} points", int(value) if value == 1 else 2).format(n=f"{value:g}")


def step_view(lab: Lab, work: Work, all_: Sequence[LabStep], number: int, mine: Mine) -> list[Component]:
    """One step with the way to the others, and what the student has found and written on all of them."""
    step, results = all_[number], mine.results
    known = _words.names(lab, draw(lab, work.state.student), work.state.student)
    title = html.H2(step.title if number else lab.title, id="labs-step-title", tabIndex=-1)
    out: list[Component] = [_way(all_, number, work, results), title]
    if step.shut:
        out.append(html.P(_("This step opens when the predictions of the steps before it are sealed."), className="notice"))
        return [*out, _onward(all_, number)]
    edited: set[str] = set()
    for piece in step.pieces:
        if piece.task is not None:
            out.append(_task(piece.task, lab, work, known, results, edited))
        elif piece.form is not None:
            out.append(_form(piece.form, piece.key, lab, work, edited, mine))
        elif piece.own == "report":
            out += [_open_tasks(all_, work, results), _report()]
        elif piece.text:
            out.append(_markdown(piece.text))
    if step.seals:
        out.append(_seal(step))
    elif any(t.kind != "prediction" for t in step.tasks):
        out.append(_check("*", _("Check")))
    out += [*_other_results(all_, number, mine), *_files(work, edited)]
    if step.terms:
        out.append(_terms(step))
    return [*out, _onward(all_, number)]


def _other_results(all_: Sequence[LabStep], number: int, mine: Mine) -> list[Component]:
    """The results of the other steps' forms, each drawn when it is opened."""
    there = [(i, p.form, ran) for i, step in enumerate(all_) if i != number for p in step.pieces
             if p.form is not None and (ran := mine.of(p.form, p.key)) is not None]
    if not there:
        return []
    items = []
    for i, form, ran in there:
        other = changed_fields(form, ran)
        items.append(html.Li([
            html.Button([html.Span(f"{i + 1}. {all_[i].title or _('Begin')}"), html.Code(form.line, className="lab-line"),
                         html.Small(", ".join(f"{k} {v}" for k, v in other.items()), className="soft") if other else None],
                        id={"type": "labs-open", "form": ran.key}, type="button", className="quiet", **{"aria-expanded": "false"}),
            html.Div(id={"type": "labs-opened", "form": ran.key}, role="region", **{"aria-label": form.line}),
        ]))
    summary = html.Summary(_("My results: {n} of other steps").format(n=len(items)))
    return [html.Details([summary, html.Ul(items, className="lab-found")], className="lab-mine")]


def changed_fields(form: LabForm, ran: Ran) -> dict[str, str]:
    """What of a form was changed for a run: label -> value."""
    return {f.label: v for f in form.fields if (v := ran.values.get(f.name, f.value)) != f.value}


def _files(work: Work, edited: set[str]) -> list[Component]:
    """The student's files that no form of the step has shown, with their editors."""
    names = [name for name in sorted(work.files) if name not in edited and name.endswith(EDITED)]
    if not names:
        return []
    boxes = [html.Div(_content(name, work, edited), className="lab-file") for name in names]
    summary = html.Summary(_("My files: {names}").format(names=", ".join(names)))
    return [html.Details([summary, *boxes], className="lab-mine")]


def _open_tasks(all_: Sequence[LabStep], work: Work, results: Mapping[str, Mapping[str, Any]]) -> Component:
    """What is not done yet, with the way there."""
    items = []
    for i, step in enumerate(all_):
        for task in step.tasks:
            status = "sealed" if task.id in work.state.sealed else str(results.get(task.id, {}).get("status", "missing"))
            if status in GOOD:
                continue
            go = html.Button(f"{i + 1}. {step.title or _('Begin')}: {task.title}", id={"type": "labs-go", "to": f"{i} {task.id}"},
                             type="button", className="quiet")
            items.append(html.Li([go, html.Span(f" {_status_text(status)}", className="soft")]))
    if not items:
        return html.P(_("Nothing is left to do."), className="soft")
    return html.Div([html.P(_("Not done yet, as far as it was checked:")), html.Ul(items, className="lab-left")])


def _terms(step: LabStep) -> Component:
    """What the links in the step's text lead to: plain links, which a keyboard and a finger follow alike."""
    rows: list[Component] = []
    for term in sorted(step.terms, key=lambda t: t.term.casefold()):
        source = html.Small(f" ({term.source})", className="soft", lang="en")
        said = html.Dd([html.Span(term.text, lang=term.language), source])
        rows += [html.Dt(term.term, id=term.place, tabIndex=-1, lang=term.language), said]
    return html.Section([html.H3(_("Terms"), id="labs-terms"), html.Dl(rows)], className="lab-terms", **{"aria-labelledby": "labs-terms"})


def _way(all_: Sequence[LabStep], number: int, work: Work, results: Mapping[str, Any]) -> Component:
    items = []
    for i, step in enumerate(all_):
        done = [t for t in step.tasks if results.get(t.id, {}).get("status") in GOOD or t.id in work.state.sealed]
        state = "✓" if step.tasks and len(done) == len(step.tasks) else f"{len(done)}/{len(step.tasks)}" if step.tasks else ""
        label = step.title or _("Begin")
        shut = _("opens after the predictions before it") if step.shut else ""
        items.append(html.Li(html.Button(
            [html.Span(f"{i + 1}. {label}"), html.Small(" 🔒" if step.shut else f" {state}" if state else "")],
            id={"type": "labs-go", "to": str(i)}, type="button", className="quiet here" if i == number else "quiet", title=shut,
            **{"aria-current": "step"} if i == number else {},
        )))
    summary = html.Summary(_("Step {n} of {all}").format(n=number + 1, all=len(all_)))
    return html.Details([summary, html.Ol(items, className="lab-steps")], className="lab-way", open=number == len(all_) - 1)


def _onward(all_: Sequence[LabStep], number: int) -> Component:
    buttons = []
    if number:
        buttons.append(html.Button(_("Back"), id={"type": "labs-turn", "to": str(number - 1)}, type="button", className="quiet"))
    if number + 1 < len(all_):
        buttons.append(html.Button(_("Next step"), id={"type": "labs-turn", "to": str(number + 1)}, type="button"))
    return html.Div(buttons, className="lab-onward")


def _seal(step: LabStep) -> Component:
    return html.Div(
        [
            html.P(_("Seal your predictions to go on: they cannot be changed afterwards, and what follows is shown then.")),
            html.Button(_("Seal my predictions"), id={"type": "labs-seal", "of": "step"}, type="button"),
            html.Div(id="labs-seal-said", role="status", **{"aria-live": "polite"}),
        ],
        className="lab-seal",
    )


def _check(task: str, label: str) -> Component:
    return html.Div(html.Button(label, id={"type": "labs-check", "task": task}, type="button"), className="lab-check")


def _report() -> Component:
    return html.Div(
        [html.Button(_("Check everything"), id={"type": "labs-check", "task": "*all"}, type="button"),
         html.Button(_("Report"), id={"type": "labs-report", "of": "lab"}, type="button", className="quiet"),
         html.Button(_("My folder as a zip"), id={"type": "labs-pack", "of": "lab"}, type="button", className="quiet")],
        className="lab-check",
    )


# -- a task --------------------------------------------------------------------------------------------------------------


def _task(
    task: Task, lab: Lab, work: Work, known: Mapping[str, str], results: Mapping[str, Mapping[str, Any]], edited: set[str]
) -> Component:
    sealed, result = work.state.sealed.get(task.id), results.get(task.id)
    kind = {"prediction": _("prediction"), "text": _("in your own words"), "file": _("file")}.get(task.kind, "")
    head = [html.B(task.title), html.Small(" " + ", ".join(x for x in (kind, _points(task.points)) if x), className="soft")]
    lacking = _work.lacking(task, work)
    body: list[Component] = [html.P(head, className="lab-task-head"), _markdown(_words.fill(task.question, known))]
    if sealed is not None:
        body.append(html.P([html.Span(_("Sealed:") + " ", className="soft"), html.B(sealed.text)], className="lab-sealed"))
    elif lacking:
        body.append(html.P(_("Predict first: {tasks}.").format(tasks=", ".join(lab.task(t).title for t in lacking)), className="soft"))
    elif task.kind == "file":
        body.append(_file(task, work, edited))
    else:
        wrong = saved_message(lab, work, task.id).wrong if task.id in work.answers else ""
        small = html.Small(_hint_of(task), className="soft", id=f"labs-form-{task.id}")
        value = work.answers.get(task.id)
        body += [html.Div(_field(task, value), className="lab-entry"), small,
                 wrong_entries.store({"type": WRONG, "task": task.id}, at(task, value, wrong))]
    said = html.Span([html.Span(id={"type": "labs-saved", "task": task.id}, role="status", className="soft"),
                      dcc.Store(id={"type": "labs-typed", "task": task.id})])
    if sealed is None and not lacking:
        tools: list[Component] = []
        if task.kind != "prediction":
            tools.append(html.Button(_("Check this"), id={"type": "labs-check", "task": task.id}, type="button", className="quiet"))
        if task.hints:
            tools.append(html.Button(_("Hint …"), id={"type": "labs-hint", "task": task.id}, type="button", className="quiet"))
        body.append(html.Div([*tools, said], className="lab-tools"))
        if task.hints:
            hints = {"id": {"type": "labs-hints", "task": task.id}, "role": "status", "aria-live": "polite"}
            body.append(html.Div(hint_parts(lab, work, task), **hints))
    stale = sealed is not None and result is not None and result["status"] == "missing"  # sealed since it was checked
    shown_ = result_parts(result, comparison_text(lab, task, results)) if result is not None and not stale else []
    body.append(html.Div(shown_, id={"type": "labs-result", "task": task.id}, role="status", **{"aria-live": "polite"}))
    return html.Section(body, className="lab-task", id=f"labs-task-{task.id}", **{"aria-label": task.title})


def _hint_of(task: Task) -> str:
    return task.asked


def _field(task: Task, value: Any) -> Component:
    name = {"type": "labs-answer", "task": task.id}
    label = {"aria-label": _("Answer to {task}").format(task=task.title)}
    text = _answers.as_text(value if value is not None else "")
    if task.kind == "order":
        given = value if isinstance(value, list) else []
        options = [{"label": task.choice_text(c), "value": c} for c in task.choices]
        return html.Ol([
            html.Li(dcc.Dropdown(options, given[i] if i < len(given) else None,
                                 id={"type": "labs-place", "task": task.id, "place": f"{i:02d}"},
                                 placeholder=_("place {n}").format(n=i + 1), searchable=False, labels=dropdown_words()),
                    className="lab-entry")
            for i in range(len(task.choices))
        ], className="lab-order", **{"aria-label": _("Order for {task}").format(task=task.title)})
    if task.choices:
        chosen = next((c for c in task.choices if _answers.normal(c) == _answers.normal(text)), None)
        radio = dcc.RadioItems([{"label": task.choice_text(c), "value": c} for c in task.choices], chosen, id=name, className="lab-choices")
        return html.Fieldset([html.Legend(label["aria-label"], className="hidden-label"), radio])
    if task.kind == "text":
        area = dcc.Textarea(id=name, value=text, rows=6, maxLength=LONGEST, className="lab-area", spellCheck=True)
        return html.Label([html.Span(label["aria-label"], className="hidden-label"), area])
    entry = dcc.Input(id=name, value=text, type="text", maxLength=200, autoComplete="off", inputMode="text")
    return html.Label([html.Span(label["aria-label"], className="hidden-label"), entry])


def _file(task: Task, work: Work, edited: set[str]) -> Component:
    upload = dcc.Upload(
        html.Button(_("Upload {file}").format(file=task.file), type="button", className="quiet"),
        id={"type": "labs-upload", "name": task.file}, multiple=False, max_size=_work.LARGEST_FILE,
    )
    return html.Div([*_content(task.file, work, edited), upload], className="lab-file lab-entry")


def _content(name: str, work: Work, edited: set[str]) -> list[Component]:
    """A file of the student's with its editor, once in a step: the second form that reads it reads what stands in the first's.

    ``edited``: the files that the step has shown so far, to which this is added.
    """
    if name in edited:
        return [html.P(_("{file} stands above.").format(file=name), className="soft")]
    edited.add(name)
    said = html.Div([html.Span(id={"type": "labs-file-said", "name": name}, role="status", className="soft"),
                     dcc.Store(id={"type": "labs-file-typed", "name": name}),
                     wrong_entries.store({"type": FILE_WRONG, "name": name})])
    content = work.files.get(name)
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError:
        text = None
    if name.endswith(EDITED) and text is not None and len(text) <= LONGEST:
        return [_editor(name, text), said]
    return [*([html.P(_("{file} is there, {size} B.").format(file=name, size=len(content)))] if content is not None else []), said]


def _editor(name: str, text: str) -> Component:
    rows = min(24, text.count("\n") + 2) if text else 8
    area = dcc.Textarea(id={"type": "labs-file", "name": name}, value=text, rows=rows, maxLength=LONGEST, spellCheck=False,
                        className="lab-area code")
    return html.Label([html.Span(name, className="lab-file-name"), area], className="lab-file-editor")


def hint_parts(lab: Lab, work: Work, task: Task, ask: bool = False) -> list[Component]:
    """The hints taken; with ``ask`` the question whether the next one is worth its cost."""
    taken = _work.hints(work, lab, task.id)
    out: list[Component] = [html.P(f"{i}. {h}", className="lab-hint") for i, h in enumerate(taken, 1)]
    if ask and len(taken) < len(task.hints):
        cost = min(lab.hint_cost, max(task.points - lab.hint_cost * len(taken), 0))
        told = _("The next hint costs {cost} of this task's {points}.").format(cost=f"{cost:g}", points=_points(task.points))
        out.append(html.P([told, " ", html.Button(_("Take the hint"), id={"type": "labs-take", "task": task.id}, type="button")]))
    elif ask:
        out.append(html.P(_("There is no further hint."), className="soft"))
    return out


def comparison_text(lab: Lab, task: Task, results: Mapping[str, Mapping[str, Any]]) -> str:
    """What was predicted for a task that is solved, and what was found; "" while it is not."""
    mine = (results.get(p.id, {}).get("compared") for p in lab.predictions if p.of == task.id)
    return next((str(line) for line in mine if line), "")


def result_parts(result: Mapping[str, Any], foretold: str = "") -> list[Component]:
    """The outcome of a task's check, beside its field; ``foretold``: how far the task's prediction was off."""
    says = result.get("compared") or result.get("says") or ""
    head = f"{_status_text(result['status'])}; " + _("{points} of {of}").format(points=f"{result['points']:g}", of=f"{result['of']:g}")
    line = html.P([html.B(head), html.Span(f" {says}") if says else None], className=f"lab-result {result['status']}")
    return [line, html.P(foretold, className="lab-foretold")] if foretold else [line]


def register(app: Dash) -> None:
    """The figures of the forms are sketched until Plotly has come, as those of the other pages."""
    app.clientside_callback(
        ClientsideFunction("retrompi", "sketch"), Output({"type": f"{_GRAPH}-sketch", "own": MATCH}, "title"),
        Input({"type": _GRAPH, "own": MATCH}, "figure"), State({"type": _GRAPH, "own": MATCH}, "id"),
    )


# -- a form --------------------------------------------------------------------------------------------------------------


def _form(form: LabForm, key: str, lab: Lab, work: Work, edited: set[str], mine: Mine) -> Component:
    ran = mine.of(form, key)
    fields = [_entry(form, key, f, ran.values.get(f.name, f.value) if ran is not None else f.value) for f in form.fields]
    own = form.file in work.files or any(form.file == t.file for t in lab.tasks if t.kind == "file")
    file = [html.Div(_content(form.file, work, edited), className="lab-file")] if form.file and own else []
    run = html.Button(_("Run"), id={"type": "labs-run", "form": key}, type="button")
    address = view_of(form)
    what = _("all parameters as sliders") if form.kind == "pingpong" else _("the way of the message")
    said = html.Span(id={"type": "labs-run-line", "form": key}, role="status", className="soft")
    view = [html.A(what, href=address, target="_blank")] if address else []
    return html.Section(
        [
            html.P(html.Code(form.line), className="lab-command"),
            *file,
            html.Div(fields, className="controls"),
            html.Div([run, *view, said], className="lab-tools"),
            dcc.Store(id={"type": "labs-run-job", "form": key}),
            dcc.Interval(id={"type": "labs-run-tick", "form": key}, interval=400, n_intervals=0, max_intervals=0),
            html.Div(mine.show(ran.told) if ran is not None else [], id={"type": "labs-run-shown", "form": key}),
        ],
        className="lab-form", **{"aria-label": form.line},
    )


def _entry(form: LabForm, key: str, field: FormField, value: str) -> Component:
    """A field with ``value``: that of the last run, else the text's, which its slider starts from."""
    name = {"type": "labs-field", "form": key, "name": field.name}
    placeholder = "platform.host.cores=2, …" if field.name == "set" else ""
    entry = dcc.Input(id=name, value=value, type="text", maxLength=500, placeholder=placeholder, autoComplete="off",
                      inputMode="numeric" if field.kind == "number" else "text", style={"width": "100%"})
    parts: list[Component] = [html.Label([html.Span(field.label), entry])]
    if field.slides:
        parts.append(html.Div(dcc.Slider(
            -2, 2, 0.25, value=0, marks={-2: "÷4", 0: field.value, 2: "×4"}, included=False, updatemode="mouseup", allow_direct_input=False,
            id={"type": "labs-slide", "form": key, "name": field.name},
        ), title=_("a quarter to four times of {value}").format(value=field.value), className="lab-slider"))
    wide = field.name in ("sizes", "set", "vary", "sensitivity")
    return html.Div(parts, className="field wide" if wide else "field")


def form_result(told: Mapping[str, Any], chart: str = "") -> list[Component]:
    """The result of a form: lines, cautions, figures and tables in place; ``chart`` is the address of its timeline's document."""
    import plotly.graph_objects as go

    out: list[Component] = [html.P(line) for line in told["lines"]]
    out += [html.P(line, className="caution", lang="en") for line in told["cautions"]]
    names = {"time": _("One-way time"), "bandwidth": _("Bandwidth"), "stages": _("Stages"), "study": _("The study"),
             "path": _("Critical path")}
    if chart:
        frame = html.Iframe(src=chart, title=_("Timeline: what every process did; the table below has the sums"), sandbox="allow-scripts",
                            className="timeline-frame")
        out.append(html.Figure([html.Figcaption(_("What every process did")), frame], className="lab-figure"))
    for name, figure in told["figures"].items():
        drawn = go.Figure(figure)
        drawn.update_layout(dragmode=False, paper_bgcolor="rgba(0,0,0,0)", title_text="", margin={"t": 20, "r": 8})
        drawn.update_xaxes(title_font_size=14, tickfont_size=13)  # a longer title is cut on a phone
        if drawn.layout.showlegend is not False:  # at the figure's edge, or it lies on the axis where the screen is narrow, or turned
            below = max(96, drawn.layout.margin.b or 0)
            drawn.update_layout(legend={"yref": "container", "y": 0.0, "yanchor": "bottom"}, margin={"b": below})
        own = secrets.token_hex(8)  # a form can be run twice, and then has other figures
        graph = dcc.Graph(id={"type": _GRAPH, "own": own}, figure=drawn, config=config())
        sketch = html.Div(id={"type": f"{_GRAPH}-sketch", "own": own}, className="sketch")
        box = html.Div([graph, sketch], className="drawn", style={"height": f"{int(drawn.layout.height or 340)}px"})
        out.append(html.Figure([html.Figcaption(names.get(name, name)), box], className="lab-figure"))
    for table in told["tables"]:
        head = html.Thead(html.Tr([html.Th(h, scope="col") for h in table["head"]]))
        rows = html.Tbody([html.Tr([html.Td(c) for c in row]) for row in table["rows"]])
        caption = [html.Caption(html.Span(table["caption"]))] if table["caption"] else []
        out.append(html.Div(html.Table([*caption, head, rows], className="wide"), className="scroll", tabIndex=0, role="region",
                            **{"aria-label": table["caption"] or _("table")}))
    return out
