"""Teaching labs: the list with one's progress, and a lab step by step: predict, seal, run, answer, check, report."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dash import ALL, MATCH, ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update, set_props

from retrompi.base.errors import RetrompiError
from retrompi.base.translate import _, lazy
from retrompi.labs.student import normal_id
from retrompi.studio.cards.card_pieces import Part, facts
from retrompi.studio.components import parts
from retrompi.studio.components.callbacks import callback, register_methods
from retrompi.studio.labs import lab_jobs, lab_page, lab_text
from retrompi.studio.labs.lab_session import Desk
from retrompi.studio.requests import inputs, wrong_entries
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, number, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.labs.lab import Lab
    from retrompi.studio.jobs.resources import Resources

MOST_ID = 120
MOST_STEPS = 60


def _lab(value: str) -> str:
    """A lab's folder, from its number (1, 01) or its name; "" for none."""
    from retrompi.labs.lab import lab

    return lab(value).name if value else ""


_ANSWER = inputs.text(20_000)
PAGE = Page(
    path="/labs",
    title=lazy("Labs"),
    order=80,
    help=lazy("Teaching labs: predict, measure, compare. The parameters differ from student to student."),
    controls=(
        Control("labs-lab", "value", "lab", "", _lab),
        Control("labs-student", "value", "student", "", text(MOST_ID)),
        Control("labs-step", "data", "step", 1, number(1, MOST_STEPS, whole=True)),
    ),
    inputs={
        "labs-answer.value": _ANSWER, "labs-typed.data": _ANSWER, "labs-file-typed.data": _ANSWER, "labs-slide.marks": lambda v: None,
        "labs-answer.id": lambda v: None, "labs-place.value": inputs.text(), "labs-place.id": lambda v: None,
        "labs-file.value": _ANSWER, "labs-file.id": lambda v: None, "labs-field.value": _ANSWER, "labs-field.id": lambda v: None,
        "labs-run-job.data": inputs.text(60), "labs-again.data": inputs.number, "labs-slide.value": inputs.number,
        "labs-question.data": inputs.mapping(lab=inputs.text(), student=inputs.text(), task=inputs.text(), step=inputs.number,
                                             count=inputs.number),
        "labs-paper-question.data": inputs.mapping(lab=inputs.text(), student=inputs.text(), count=inputs.number),
    },
)


# -- what is shown -------------------------------------------------------------------------------------------------------


def _listing(desk: Desk, student: str) -> list[Part]:
    begun = desk.progress(student)
    cards = []
    for found in desk.offered_labs():
        mine = begun.get(found.name)
        needs = ", ".join(found.needs)
        told = _("{minutes} minutes, {points} points").format(minutes=found.minutes, points=f"{found.points:g}")
        lines: list[Part] = [
            html.H2(html.A(f"{found.key} {found.title}", href=desk.address(found, student))), html.P(found.summary),
            html.P(told + (_("; needs {tools}").format(tools=needs) if needs else ""), className="soft"),
        ]
        if mine is not None:
            lines.append(html.Progress(value=str(mine.done), max=str(mine.of), **{"aria-label": _("progress")}))
            lines.append(html.P(mine.line, className="soft"))
        cards.append(html.Li(lines, className="card"))
    return [html.Ul(cards, className="cards", id="labs-list")]


def _about(found: Lab) -> Component:
    goals = [html.Li([goal.text, html.Span(f" ({goal.topic}, {goal.bloom})", className="soft")]) for goal in found.goals]
    told = _("{minutes} minutes, {points} points").format(minutes=found.minutes, points=f"{found.points:g}")
    return facts([(_("goals"), html.Ul(goals)), (_("time"), told), (_("needs"), ", ".join(found.needs))])


def _lab_parts(desk: Desk, name: str, student: str, step: int) -> list[Part]:
    """The list, or a step of a lab; what is wrong with the name is told above the list."""
    from retrompi.labs.lab import lab

    try:
        found = lab(name) if name else None
    except RetrompiError as error:
        return [parts.notices([str(error)]), *_listing(desk, student)]
    if found is None:
        return _listing(desk, student)
    if not desk.who(student):
        begin = _("Enter the id that your teacher knows, above: it draws your own numbers, and your work is kept under it.")
        title = html.H2(f"{found.key} {found.title}")
        return [title, html.P(found.summary), html.P(begin, className="notice", id="labs-who"), _about(found)]
    try:
        work = desk.work(found, student)
        all_ = lab_text.steps(found, work)
        number_ = min(max(step, 1), len(all_)) - 1
        last = desk.last(found, student)
        view = lab_page.step_view(found, work, all_, number_, desk.mine(found, student, last))
    except RetrompiError as error:
        return [parts.notices([str(error)])]
    desk.ahead(found, student)
    own = _("The numbers of {student}. Everything is saved as you type.").format(student=work.state.student[:MOST_ID])
    return [
        html.Div([
            html.P([html.B(f"{found.key} {found.title}"), " · ", own], className="soft", id="labs-who"),
            html.P(desk.summary(last), id="labs-summary", role="status"),
        ], className="lab-head"),
        html.Details([html.Summary(_("About this lab")), _about(found), html.P(_(
            "The same work goes on in a terminal: take your folder as a zip."))]),
        html.Div(view, id="labs-view"),
    ]


def layout(query: Query, resources: Resources) -> Component:
    """The labs, or a step of one."""
    values, lines = read(PAGE.controls, query)
    desk = Desk(resources)
    offered = [{"label": f"{found.key} {found.title}", "value": found.name} for found in desk.offered_labs()]
    known = [{"label": _("all labs"), "value": ""}, *offered]
    member = resources.member(parts.session())
    hidden = {"style": {"display": "none"}} if member is not None else {}
    return html.Div(
        [
            parts.notices(lines),
            parts.controls(
                parts.menu(_("Lab"), "labs-lab", known, values["lab"]),
                html.Div(parts.entry(_("Student's id"), "labs-student", values["student"], debounce=0.6, maxLength=MOST_ID,
                                     placeholder=_("the id you use for your teacher"), autoComplete="off"), **hidden),
            ),
            dcc.Store(id="labs-step", data=values["step"]), dcc.Store(id="labs-again", data=0), dcc.Store(id="labs-question"),
            dcc.Store(id="labs-paper-question"), dcc.Download(id="labs-download"), dcc.Store(id="labs-checked"),
            html.Div(_lab_parts(desk, values["lab"], values["student"], int(values["step"])), id="labs-shown"),
            parts.job_bar("labs"), parts.job_bar("labs-paper"), wrong_entries.store("labs-run"),
        ]
    )


# -- what happens --------------------------------------------------------------------------------------------------------

_WHERE = (State("labs-lab", "value"), State("labs-student", "value"))
_FIELDS = (
    State({"type": "labs-answer", "task": ALL}, "value"), State({"type": "labs-answer", "task": ALL}, "id"),
    State({"type": "labs-place", "task": ALL, "place": ALL}, "value"), State({"type": "labs-place", "task": ALL, "place": ALL}, "id"),
    State({"type": "labs-file", "name": ALL}, "value"), State({"type": "labs-file", "name": ALL}, "id"),
)


def _answers_of(values: Any, ids: Any, places: Any, place_ids: Any) -> dict[str, Any]:
    """Task -> answer, from the fields of a page."""
    out: dict[str, Any] = {i["task"]: v or "" for i, v in zip(ids, values, strict=True)}
    for i, v in sorted(zip(place_ids, places, strict=True), key=lambda x: (x[0]["task"], x[0]["place"])):
        out.setdefault(i["task"], [])
        if v:
            out[i["task"]].append(v)
    return out


def _was_clicked() -> bool:
    """Whether a button was really pressed: new ones come with no clicks."""
    return any(t["value"] for t in ctx.triggered)


class _Labs:
    """The callbacks of the page, at one desk."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.desk = Desk(resources)

    # The fields are saved as they are typed, and once more when a button is pressed.

    def _keep_files(self, name: Any, student: Any, files: Any, file_ids: Any) -> None:
        for i, content in zip(file_ids, files, strict=True):
            if content:
                self.desk.put(name, student, str(i["name"]), str(content).encode())

    def _keep(self, name: Any, student: Any, fields: Sequence[Any]) -> list[str]:
        """Saves what stands in the fields, typed a moment ago; returns what is wrong."""
        values, ids, places, place_ids, files, file_ids = fields
        said = [self.desk.save(name, student, task, value) for task, value in _answers_of(values, ids, places, place_ids).items()]
        self._keep_files(name, student, files, file_ids)
        return [one.wrong for one in said if not one.line]

    def _keep_answer(self, name: Any, student: Any, value: Any) -> tuple[str, dict[str, str]]:
        """Keeps the answer of the task that has changed: (the line beside it, what is wrong at its field)."""
        task = str(ctx.triggered_id["task"])
        said = self.desk.save(name, student, task, value)
        return said.line, lab_page.at(self.desk.lab(name).task(task), value, said.wrong)

    @callback(
        Output({"type": "labs-saved", "task": MATCH}, "children"), Output({"type": lab_page.WRONG, "task": MATCH}, "data"),
        Input({"type": "labs-typed", "task": MATCH}, "data"), *_WHERE, prevent_initial_call=True,
    )
    def save_answer(self, value: Any, name: Any, student: Any) -> Any:
        return self._keep_answer(name, student, value or "") if ctx.triggered_id else (no_update, no_update)

    @callback(
        Output({"type": "labs-saved", "task": MATCH}, "children", allow_duplicate=True),
        Output({"type": lab_page.WRONG, "task": MATCH}, "data", allow_duplicate=True),
        Input({"type": "labs-place", "task": MATCH, "place": ALL}, "value"), *_WHERE, prevent_initial_call=True,
    )
    def save_order(self, values: Any, name: Any, student: Any) -> Any:
        return self._keep_answer(name, student, [v for v in values if v]) if ctx.triggered_id else (no_update, no_update)

    @callback(
        Output({"type": "labs-file-said", "name": MATCH}, "children"), Output({"type": lab_page.FILE_WRONG, "name": MATCH}, "data"),
        Input({"type": "labs-file-typed", "name": MATCH}, "data"), *_WHERE, prevent_initial_call=True,
    )
    def save_file(self, value: Any, name: Any, student: Any) -> Any:
        if not ctx.triggered_id:
            return no_update, no_update
        file = str(ctx.triggered_id["name"])
        said = self.desk.put(name, student, file, str(value or "").encode())
        return said.line, {wrong_entries.element({"type": "labs-file", "name": file}): said.wrong} if said.wrong else {}

    @callback(
        Output({"type": "labs-file-said", "name": MATCH}, "children", allow_duplicate=True),
        Output({"type": lab_page.FILE_WRONG, "name": MATCH}, "data", allow_duplicate=True),
        Output({"type": "labs-upload", "name": MATCH}, "contents"), Input({"type": "labs-upload", "name": MATCH}, "contents"), *_WHERE,
        State("labs-again", "data"), prevent_initial_call=True,
    )
    def save_upload(self, contents: Any, name: Any, student: Any, again: Any) -> Any:
        if not contents or not ctx.triggered_id:
            return no_update, no_update, no_update
        file = str(ctx.triggered_id["name"])
        try:
            said = self.desk.put(name, student, file, base64.b64decode(str(contents).partition(",")[2], validate=True))
        except (binascii.Error, ValueError):
            said = lab_page.Saved(wrong=_("The upload is damaged."))
        if said.wrong:
            return "", {wrong_entries.element({"type": "labs-upload", "name": file}): said.wrong}, None
        set_props("labs-again", {"data": int(again or 0) + 1})
        return said.line, {}, None

    # From step to step.

    @callback(
        Output("labs-shown", "children"), Input("labs-lab", "value"), Input("labs-student", "value"), Input("labs-step", "data"),
        Input("labs-again", "data"), prevent_initial_call=True,
    )
    def show_step(self, name: Any, student: Any, step: Any, _again: Any) -> Any:
        if parts.changed_by("labs-lab") and step != 1:
            set_props("labs-step", {"data": 1})
            step = 1
        return _lab_parts(self.desk, parts.text(name), parts.text(student), int(step or 1))

    @callback(
        Output("labs-step", "data"), Input({"type": "labs-go", "to": ALL}, "n_clicks"), Input({"type": "labs-turn", "to": ALL}, "n_clicks"),
        *_WHERE, *_FIELDS, prevent_initial_call=True,
    )
    def turn(self, _steps: Any, _turns: Any, name: Any, student: Any, *fields: Any) -> Any:
        if not _was_clicked():
            return no_update
        self._keep(name, student, fields)
        to = str(ctx.triggered_id["to"]).partition(" ")[0]
        return int(to) + 1 if to.isdecimal() and int(to) < MOST_STEPS else no_update

    @callback(
        Output("labs-again", "data"), Output("labs-seal-said", "children"), Input({"type": "labs-seal", "of": ALL}, "n_clicks"), *_WHERE,
        *_FIELDS, State("labs-again", "data"), State("labs-step", "data"), prevent_initial_call=True,
    )
    def seal(self, _clicks: Any, name: Any, student: Any, *rest: Any) -> Any:
        if not _was_clicked():
            return no_update, no_update
        *fields, again, step = rest
        refused = self._keep(name, student, fields)
        if refused:
            return no_update, parts.notices(refused)
        wrong, lab, given = self.desk.seal(name, student, int(step or 1)), self.desk.lab(name), _answers_of(*fields[:4])
        for task, line in wrong.items():
            wrong_entries.tell({"type": lab_page.WRONG, "task": task}, lab_page.at(lab.task(task), given.get(task), line))
        return (no_update, parts.notices([f"{task}: {line}" for task, line in wrong.items()])) if wrong else (int(again or 0) + 1, [])

    # Two callbacks: the second button is there only after the first was pressed, and Dash runs none of whose inputs one is missing.

    @callback(
        Output({"type": "labs-hints", "task": MATCH}, "children"), Input({"type": "labs-hint", "task": MATCH}, "n_clicks"), *_WHERE,
        prevent_initial_call=True,
    )
    def offer_hint(self, _clicks: Any, name: Any, student: Any) -> Any:
        return self.desk.hint(name, student, str(ctx.triggered_id["task"]), take=False) if _was_clicked() else no_update

    @callback(
        Output({"type": "labs-hints", "task": MATCH}, "children", allow_duplicate=True),
        Input({"type": "labs-take", "task": MATCH}, "n_clicks"), *_WHERE, prevent_initial_call=True,
    )
    def take_hint(self, _clicks: Any, name: Any, student: Any) -> Any:
        return self.desk.hint(name, student, str(ctx.triggered_id["task"]), take=True) if _was_clicked() else no_update

    # A run: from a step's form, as a job that the form's own clock looks after.

    @callback(
        Output({"type": "labs-run-shown", "form": MATCH}, "children"), Output({"type": "labs-run-line", "form": MATCH}, "children"),
        Output({"type": "labs-run-job", "form": MATCH}, "data"), Output({"type": "labs-run-tick", "form": MATCH}, "max_intervals"),
        Input({"type": "labs-run", "form": MATCH}, "n_clicks"), Input({"type": "labs-run-tick", "form": MATCH}, "n_intervals"),
        State({"type": "labs-field", "form": MATCH, "name": ALL}, "value"), State({"type": "labs-field", "form": MATCH, "name": ALL}, "id"),
        State({"type": "labs-run-job", "form": MATCH}, "data"), *_WHERE, State({"type": "labs-file", "name": ALL}, "value"),
        State({"type": "labs-file", "name": ALL}, "id"), prevent_initial_call=True,
    )
    def run(self, _clicks: Any, ticks: Any, values: Any, ids: Any, job: Any, name: Any, student: Any, files: Any, file_ids: Any) -> Any:
        if not _was_clicked():
            return no_update, no_update, no_update, no_update
        wrong_entries.tell("labs-run", {})
        try:
            if parts.changed_by("labs-run"):
                self._keep_files(name, student, files, file_ids)
                given = {str(i["name"]): str(v or "") for i, v in zip(ids, values, strict=True)}
                job = self.desk.run(name, student, str(ctx.triggered_id["form"]), given)
            state = self.resources.jobs.wait(parts.text(job), parts.session(), parts.PATIENCE_S)
            if not state.ended:
                return no_update, parts.job_line(state), job, (ticks if isinstance(ticks, int) else 0) + 1
            if state.status == "done":
                return self.desk.ran(state.result), _("done in {seconds} s").format(seconds=f"{state.seconds:.2g}"), None, 0
            refused = state.error or state.status
        except RetrompiError as error:
            refused = str(error)
        # Beside the field that the line quotes, else below the button.
        at = wrong_entries.blame_values(
            refused, {wrong_entries.element(i): v for i, v in zip((*ids, *file_ids), (*values, *files), strict=True)})
        wrong_entries.tell("labs-run", at)
        return [] if at else [parts.notices([refused])], "", None, 0

    @callback(
        Output({"type": "labs-opened", "form": MATCH}, "children"), Output({"type": "labs-open", "form": MATCH}, "aria-expanded"),
        Input({"type": "labs-open", "form": MATCH}, "n_clicks"), *_WHERE, prevent_initial_call=True,
    )
    def open_result(self, clicks: Any, name: Any, student: Any) -> Any:
        if not _was_clicked() or not isinstance(clicks, int) or clicks % 2 == 0:
            return [], "false"
        return self.desk.open_result(name, student, str(ctx.triggered_id["form"])), "true"

    # A check: the fields are saved and sealed at once; then the grading is a job, unless all right values are known.

    @callback(
        Output("labs-question", "data"), Input({"type": "labs-check", "task": ALL}, "n_clicks"), *_WHERE, *_FIELDS,
        State("labs-question", "data"), State("labs-step", "data"), prevent_initial_call=True,
    )
    def check(self, _clicks: Any, name: Any, student: Any, *rest: Any) -> Any:
        if not _was_clicked():
            return no_update
        *fields, before, step = rest
        wrong = self._keep(name, student, fields)
        if wrong:
            set_props("studio-notice", {"children": parts.notices(wrong).children})
        count = int((before or {}).get("count") or 0) + 1
        return {"lab": name, "student": student, "task": str(ctx.triggered_id["task"]), "step": step, "count": count}

    def begin_check(self, question: Any) -> Any:
        return self.desk.check(question.get("lab"), question.get("student")) if question else None

    def show_grading(self, result: Mapping[str, Any], question: Any, name: Any, student: Any, step: Any) -> Any:
        """Shows a check where it belongs. The page may have been opened after it was asked for, and may show another lab by now."""
        desk, told = self.desk, result["grading"]
        if not name or (desk.lab(name).name, normal_id(desk.who(student))) != (told["lab"], normal_id(told["student"])):
            return told["checks"]
        found = desk.lab(name)
        all_ = lab_text.steps(found, desk.work(found, student))
        here = {t.id for t in all_[min(int(step or 1), len(all_)) - 1].tasks}
        one = str((question or {}).get("task") or "*")
        last = desk.last(found, student)  # with what a teacher gave
        rows = {row["task"]: row for row in last.row.get("tasks", told["tasks"])}
        for task, row in rows.items():
            if task in here and (one.startswith("*") or task == one):
                parts_ = lab_page.result_parts(row, lab_page.comparison_text(found, found.task(task), rows))
                set_props({"type": "labs-result", "task": task}, {"children": parts_})
        set_props("labs-summary", {"children": desk.summary(last)})
        return told["checks"]

    # What is taken away: the report, and the folder as a zip.

    @callback(
        Output("labs-paper-question", "data"), Input({"type": "labs-report", "of": ALL}, "n_clicks"), *_WHERE,
        State("labs-paper-question", "data"), prevent_initial_call=True,
    )
    def report(self, _clicks: Any, name: Any, student: Any, before: Any) -> Any:
        if not _was_clicked():
            return no_update
        return {"lab": name, "student": student, "count": int((before or {}).get("count") or 0) + 1}

    def begin_report(self, question: Any) -> Any:
        if not question:
            return None
        found = self.desk.lab(question["lab"])
        done = self.desk.work(found, question["student"])
        known = self.desk.known.get(lab_jobs.key_of(found, done.state.student))
        return _("report"), lab_jobs.report_page, (done, self.resources.places[1], known)

    @callback(
        Output("labs-download", "data", allow_duplicate=True), Input({"type": "labs-pack", "of": ALL}, "n_clicks"), *_WHERE,
        prevent_initial_call=True,
    )
    def download_work(self, _clicks: Any, name: Any, student: Any) -> Any:
        from retrompi.labs.shelf import pack

        if not _was_clicked():
            return no_update
        found = self.desk.lab(name)
        content = base64.b64encode(pack(self.desk.work(found, student), found)).decode()
        return {"content": content, "filename": f"lab{found.key}.zip", "base64": True, "type": "application/zip"}


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks."""
    wrong_entries.register(app, "labs-run")
    wrong_entries.register(app, {"type": lab_page.WRONG, "task": MATCH})
    wrong_entries.register(app, {"type": lab_page.FILE_WRONG, "name": MATCH})
    lab_page.register(app)
    for typed, store, key in (("labs-answer", "labs-typed", "task"), ("labs-file", "labs-file-typed", "name")):
        app.clientside_callback(
            ClientsideFunction("retrompi_labs", "typed"), Output({"type": store, key: MATCH}, "data"),
            Input({"type": typed, key: MATCH}, "value"), prevent_initial_call=True,
        )
    app.clientside_callback(ClientsideFunction("retrompi_labs", "top"), Output("labs-step", "clear_data"), Input("labs-step", "data"),
                            Input("labs-shown", "children"), prevent_initial_call=True)
    app.clientside_callback(
        ClientsideFunction("retrompi_labs", "slide"), Output({"type": "labs-field", "form": MATCH, "name": MATCH}, "value"),
        Input({"type": "labs-slide", "form": MATCH, "name": MATCH}, "value"),
        State({"type": "labs-slide", "form": MATCH, "name": MATCH}, "marks"), prevent_initial_call=True,
    )
    labs = _Labs(resources)
    register_methods(app, labs)
    parts.register_job(  # its output is always there: a page that is opened finds the check that runs
        app, resources, "labs", [Input("labs-question", "data")], labs.begin_check, parts.outputs("labs-checked.data"), labs.show_grading,
        views=[Input("labs-question", "data"), *_WHERE, State("labs-step", "data")], resumes=True, owner=labs.desk.owner,
    )
    parts.register_job(
        app, resources, "labs-paper", [Input("labs-paper-question", "data")], labs.begin_report, parts.outputs("labs-download.data"),
        lambda result: {"content": result["page"], "filename": "report.html", "type": "text/html"}, prevent_initial_call=True,
    )
