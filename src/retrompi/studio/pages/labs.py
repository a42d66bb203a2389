"""Teaching labs: the list, and a lab's text with a student's own numbers; checking is done on the command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from dash import Dash, Input, Output, dcc, html

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.spec import registry
from retrompi.studio import menus, parts
from retrompi.studio.page import Page
from retrompi.studio.pieces import Part, facts
from retrompi.studio.state import Control, Query, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.labs.lab import Lab
    from retrompi.studio.room import Room

MOST_ID = 120


def _lab(value: str) -> str:
    from retrompi.labs.lab import lab_names

    if value and value not in lab_names():
        raise UsageError(f"no lab '{value[:60]}'{nearest(value[:60], lab_names())}", code="unknown-lab")
    return value


PAGE = Page(
    path="/labs",
    title="Labs",
    order=80,
    help="Teaching labs: predict, measure, compare. The parameters differ from student to student.",
    controls=(Control("labs-lab", "value", "lab", "", _lab), Control("labs-student", "value", "student", "", text(MOST_ID))),
)


def commands(written: str) -> list[tuple[str, str]]:
    """(what, address) of the studio's views of the commands in a lab's text: curves as what-ifs, messages as anatomies, each once."""
    out: dict[str, str] = {}
    for line in written.splitlines():
        if not line.startswith(("    retrompi pingpong ", "    retrompi explain ")):
            continue
        try:
            words = shlex.split(line)[1:]
        except ValueError:
            continue
        told = _told(words)
        if told is not None:
            out.setdefault(told[1], told[0])
    return [(what, address) for address, what in out.items()]


def _told(words: list[str]) -> tuple[str, str] | None:
    """The view of one command; None for a command without a corresponding page."""
    kind, rest = words[0], words[1:]
    given: dict[str, str] = {}
    sets: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--set" and rest:
            sets.append(rest.pop(0))
        elif word in ("--model", "-m", "--mode", "--platform", "-p", "--size", "--sizes", "--reps", "--seed") and rest:
            given[{"-m": "model", "-p": "platform"}.get(word, word.lstrip("-"))] = rest.pop(0)
        elif not word.startswith("-") and kind == "explain" and "model" not in given:
            given["model"] = word
        else:
            return None
    model = given.get("model", "")
    if model not in registry.model_names() or not menus.is_platform(given.get("platform", "nt-pair")):
        return None
    place = [(k, given[k]) for k in ("mode", "platform") if k in given]
    if kind == "explain":
        asked = [("model", model), *place, ("size", given.get("size", "")), *([("set", ", ".join(sets))] if sets else [])]
        return f"anatomy: {model}, {given.get('mode', '')}, {given.get('size', '')}", f"/anatomy?{urlencode(asked, safe=':')}"
    if sets:
        changed = ", ".join(s for s in sets)
        return (
            f"what if: {model}, {given.get('mode', '')}, {changed}",
            f"/whatif?{urlencode([('model', model), *place, *(('set', s) for s in sets)], safe=':')}",
        )
    return f"curves: {model}, {given.get('mode', '')}", f"/curves?{urlencode([('model', model), *place], safe=':')}"


def _listing() -> list[Part]:
    from retrompi.labs.lab import labs

    cards = [
        html.Li(
            [
                html.H2(html.A(f"{found.key} {found.title}", href=f"/labs?{urlencode({'lab': found.name})}")),
                html.P(found.summary),
                html.P(f"{found.minutes} minutes, {found.points:g} points" + (f"; needs {', '.join(found.needs)}" if found.needs else ""),
                       className="soft"),
            ],
            className="card",
        )
        for found in labs()
    ]  # fmt: skip
    return [html.Ul(cards, className="cards", id="labs-list")]


def _text(found: Lab, student: str) -> list[Part]:
    """The text with the student's numbers; the id itself, an arbitrary text, is not inserted into the Markdown."""
    from retrompi.labs import student as _student
    from retrompi.labs import text as _words

    if student.strip():
        values = _student.draw(found, student)
        who = f"The numbers of {_student.shown_id(student)[:MOST_ID]}."
    else:
        values = _student.draw(found, "nobody")
        who = "Enter your id above to see your own parameters; those shown are an example."
    written = _words.rendered(found, values, "you")
    views = commands(written)
    look = [html.H2("The same in the studio"), html.Ul([html.Li(html.A(what, href=address)) for what, address in views], id="labs-views")]
    goals = [html.Li([goal.text, html.Span(f" ({goal.topic}, {goal.bloom})", className="soft")]) for goal in found.goals]
    begin = f"retrompi lab start {found.name} --student {shlex.quote(student.strip() or 'YOUR-ID')}"
    return [
        html.P(who, className="lead", id="labs-who"),
        facts(
            [("goals", html.Ul(goals)), ("time", f"{found.minutes} minutes, {found.points:g} points"), ("needs", ", ".join(found.needs))]
        ),
        html.P("Start it in a new folder; checking, hints and the report are commands to run there:"),
        parts.copyable(begin, id="labs-start"),
        dcc.Markdown(_under(written), className="lab-text", link_target=None),
        *(look if views else []),
    ]


def _under(written: str) -> str:
    """The text with its headings one level lower, below the page's own title."""
    code, out = False, []
    for line in written.splitlines():
        code = code != line.startswith("```")
        out.append(f"#{line}" if line.startswith("#") and not code else line)
    return "\n".join(out)


def _shown(name: str, student: str) -> list[Part]:
    from retrompi.labs.lab import lab, lab_names

    if name not in lab_names():  # a path would be imported
        return _listing()
    try:
        return _text(lab(name), student)
    except RetrompiError as error:
        return [parts.notices([" ".join(str(error).split())])]


def layout(query: Query, room: Room) -> Component:
    """The labs, or the text of one."""
    from retrompi.labs.lab import labs

    values, lines = read(PAGE.controls, query)
    known = [{"label": "all labs", "value": ""}, *({"label": f"{found.key} {found.title}", "value": found.name} for found in labs())]
    return html.Div(
        [
            parts.notices(lines),
            parts.controls(
                parts.menu("Lab", "labs-lab", known, values["lab"]),
                parts.entry("Student's id", "labs-student", values["student"], debounce=0.6, maxLength=MOST_ID,
                            placeholder="the id you use for your teacher", autoComplete="off"),
            ),
            html.Div(_shown(values["lab"], values["student"]), id="labs-shown"),
        ]
    )  # fmt: skip


def register(app: Dash, room: Room) -> None:
    """Registers the callbacks for the lab and the student."""

    @app.callback(Output("labs-shown", "children"), Input("labs-lab", "value"), Input("labs-student", "value"), prevent_initial_call=True)
    def shown(name: Any, student: Any) -> Any:
        return _shown(str(name or ""), str(student or "")[:MOST_ID])
