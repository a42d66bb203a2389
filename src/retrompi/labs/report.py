"""The report page of a submission: text, answers, predictions compared with results, and curves of the student's simulated machine.

The lab's text is trusted Markdown; everything a student wrote is escaped as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from retrompi.base.translate import _, lazy, ngettext
from retrompi.base.units import format_bytes, format_time
from retrompi.labs import text as _text
from retrompi.render.document import html

if TYPE_CHECKING:
    from retrompi.labs.alike import SimilarPair
    from retrompi.labs.bench import Bench, Line
    from retrompi.labs.collect import Graded
    from retrompi.labs.grade import Grading, TaskResult
    from retrompi.labs.lab import Lab
    from retrompi.labs.student import Parameters, State

__all__ = ["class_page", "page"]

CSS = """
.task { border-left: .35rem solid var(--soft); background: var(--tint); padding: .4rem .9rem .6rem; margin: 1rem 0; max-width: 82ch; }
.task.right, .task.sealed { border-color: var(--pass); } .task.wrong, .task.unreadable { border-color: var(--fail); }
.task.changed, .task.missing, .task.waiting { border-color: #E69F00; }
.task p { margin: .25rem 0; } .given { white-space: pre-wrap; overflow-wrap: anywhere; }
.text pre { background: var(--tint); padding: .5rem .8rem; overflow-x: auto; max-width: 100%; }
.text pre:focus-visible { outline: 2px solid var(--link); }
.text blockquote { margin: 1rem 0; }
"""
_SAID = {"right": lazy("✓ right"), "sealed": lazy("✓ sealed"), "open": lazy("○ open"), "wrong": lazy("✗ wrong"),
         "unreadable": lazy("✗ cannot be read"), "missing": lazy("· to do"), "waiting": lazy("· waits for a prediction"),
         "changed": lazy("! changed after it was sealed")}


def page(lab: Lab, state: State, grading: Grading, p: Parameters, bench: Bench) -> str:
    """The whole page as HTML."""
    results = {r.task: r for r in grading.results}
    body = [
        f"<style>{CSS}</style>",
        f"<h1>Lab {escape(lab.key)}: {escape(lab.title)}</h1>",
        f'<p class="soft">{escape(grading.student)}; {_summary_line(grading)}</p>',
        _flags(grading),
        _predictions(grading),
        _curves(lab, p, bench),
        f'<h2>{_("Text and answers")}</h2><div class="text">{_body(lab, p, state.student, results)}</div>',
        _numbers(lab, grading),
    ]
    return html.document(f"Lab {lab.key}: {grading.student}", "\n".join(body), language=lab.language)


def class_page(graded: Sequence[Graded], pairs: Sequence[SimilarPair]) -> str:
    """A class's page: the grade table, similarities between submissions, and the free texts side by side."""
    from retrompi.labs.collect import shortly

    head = ("student", "lab", "points", "checks", "hints", "to look at")
    body: list[str] = []
    texts: dict[tuple[str, str], list[tuple[str, str, Mapping[str, str]]]] = {}
    for g in graded:
        if g.row is None:
            who = f"{escape(g.student)}<br><small>{escape(g.source)}</small>" if g.student else escape(g.source)
            cells = [who, escape(g.lab), "", "", "", escape(g.broken)]
        else:
            points = f"{g.row['points']:g} of {g.row['of']:g}"
            who = f"{escape(g.row['student'])}<br><small>{escape(g.source)}</small>"
            flags = "<br>".join(escape(f) for f in shortly(g.row))
            cells = [who, escape(g.row["lab"]), points, str(g.row["checks"]), str(g.row["hints"]), flags]
            for t in g.row["tasks"]:
                if t["kind"] == "text":
                    texts.setdefault((g.row["lab"], t["task"]), []).append((g.row["student"], t["given"], g.row["parameters"]))
        body.append("<tr>" + "".join(html.cell(h, c) for h, c in zip(head, cells, strict=True)) + "</tr>")
    wrap = "td { overflow-wrap: anywhere; min-width: 4rem; }"
    out = [f"<style>{CSS}{wrap}</style><h1>Labs handed in: {len(graded)}</h1>", html.table(head, body)]
    if pairs:
        named = [g.row["student"] if g.row else g.source for g in graded]
        rows = [
            f"<tr>{html.cell('one', escape(named[p.one]))}{html.cell('other', escape(named[p.other]))}"
            f"{html.cell('alike', '<br>'.join(escape(w) for w in p.why))}</tr>"
            for p in pairs
        ]
        out.append("<h2>Alike</h2><p>Facts to look at, no verdict.</p>" + html.table(("one", "other", "alike"), rows))
    # By lab, and within a lab in the order of its tasks.
    for (lab, task), given in sorted(texts.items(), key=lambda item: item[0][0]):
        question = _question(lab, task)
        used = [n for n in dict.fromkeys(re.findall(r"\{([a-z][a-z0-9_]*)(?::arg)?\}", question)) if n in given[0][2]]
        rows = []
        for who, text, own in given:
            numbers = "".join(f"<br><small>{escape(n)}: {escape(own[n])}</small>" for n in used)
            rows.append(f"<tr>{html.cell('student', escape(who) + numbers)}{html.cell('answer', escape(text) or '—', 'given')}</tr>")
        asked = re.sub(r"\{([a-z][a-z0-9_]*)(?::arg)?\}", r"[\1]", question)
        out.append(f"<h2>{escape(lab)}: {escape(task)}</h2><p>{escape(asked)}</p>" + html.table(("student", "answer"), rows))
    return html.document("Labs handed in", "\n".join(out))


def _question(lab: str, task: str) -> str:
    """A task's question with parameter names in braces, since the values differ between students."""
    from retrompi.labs import lab as _lab

    return " ".join(_lab.lab(lab).task(task).question.split()) if lab in _lab.lab_names() else ""


def _summary_line(grading: Grading) -> str:
    """Points, checks and hints in a line."""
    points = _("{points:g} of {of:g} points").format(points=grading.points, of=grading.of)
    checks = ngettext("{n} check", "{n} checks", grading.checks).format(n=grading.checks)
    hints = ngettext("{n} hint taken", "{n} hints taken", grading.hints).format(n=grading.hints)
    return f"{points}{_open_points(grading)}; {checks}, {hints}"


def _open_points(grading: Grading) -> str:
    return _(", {points:g} open until marked").format(points=grading.open) if grading.open else ""


def _flags(grading: Grading) -> str:
    if not grading.flags:
        return ""
    return f'<div class="defect">{_("To look at:")} ' + "; ".join(escape(f) for f in grading.flags) + "</div>"


def _predictions(grading: Grading) -> str:
    """Predictions compared with the results."""
    rows = []
    head = (_("prediction"), _("sealed"), _("what became of it"))
    for r in grading.results:
        if r.kind == "prediction":
            cells = (html.cell(head[0], escape(r.task)), html.cell(head[1], escape(r.given) if r.status in ("sealed", "changed") else "—"),
                     html.cell(head[2], escape(r.compared or r.says or _("its task is not solved yet"))))
            rows.append("<tr>" + "".join(cells) + "</tr>")
    return f"<h2>{_('Predictions')}</h2>" + html.table(head, rows) if rows else ""


def _numbers(lab: Lab, grading: Grading) -> str:
    """The student's parameters."""
    head = (_("name"), _("value"), _("what it is"))
    rows = [
        f"<tr>{html.cell(head[0], escape(q.name), 'id')}{html.cell(head[1], escape(grading.parameters[q.name]), 'n')}"
        f"{html.cell(head[2], escape(q.about))}</tr>"
        for q in lab.parameters
    ]
    return f"<h2>{_('Your numbers')}</h2>" + html.table(head, rows)


def _body(lab: Lab, p: Parameters, who: str, results: dict[str, TaskResult]) -> str:
    """The text with the result of every task inserted."""
    from markdown_it import MarkdownIt

    known = _text.names(lab, p, who)
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    out = []
    for piece in re.split(r"(^\[task [a-z0-9_-]+\]$)", _text.text_for(lab.text, browser=False), flags=re.MULTILINE):
        found = re.fullmatch(r"\[task ([a-z0-9_-]+)\]", piece)
        if found is None:
            # The page has its own heading.
            plain = re.sub(r"^# .*\n", "", _text.fill(piece, {**known, "student": _("you")}))
            out.append(str(parser.render(plain)).replace("<h2>", "<h3>").replace("</h2>", "</h3>"))
            continue
        task, r = lab.task(found[1]), results[found[1]]
        question = parser.render(_text.fill(task.question, known))
        given = f'<p class="given"><b>{_("Answer:")}</b> {escape(r.given)}</p>' if r.given else ""
        says = f"<p>{escape(r.compared or r.says)}</p>" if r.compared or r.says else ""
        of = _("{n:g} of {of:g}").format(n=r.points, of=r.of)
        head = f"<p><b>{escape(task.id)}</b> <small>{_(_SAID[r.status])}; {of}</small></p>"
        out.append(f'<div class="task {r.status}">{head}{question}{given}{says}</div>')
    # A wide listing or table scrolls in itself, which the keyboard has to reach.
    return "".join(out).replace("<pre>", '<pre tabindex="0">').replace("<table>", html.scroller(_("table")) + "<table>").replace(
        "</table>", "</table></div>"
    )


def _reference_curves(lab: Lab, p: Parameters) -> list[Line]:
    made = getattr(lab.reference, "curves", None)
    return list(made(p, None)) if made else []


def _curves(lab: Lab, p: Parameters, bench: Bench) -> str:
    """The curves of the student's parameters: one-way time and bandwidth."""
    import plotly.graph_objects as go

    from retrompi.render.document.plotted import drawing, figure_html
    from retrompi.render.figures import figures

    lines: Sequence[Line] = _reference_curves(lab, p)
    if not lines:
        return ""
    drawn = {}
    curves = [(x, bench.curve(x.model, x.mode, sorted(set(x.sizes)), platform=x.platform, sets=x.sets, reps=x.reps)) for x in lines]
    for series, title, factor in (("time", _("One-way time"), 1e6), ("bandwidth", _("Bandwidth"), 1e-6)):
        figure = go.Figure()
        for i, (line, curve) in enumerate(curves):
            part = curve if series == "time" else curve.within(curve.keys() - {0})
            figure.add_scatter(
                x=[figures.place(size) for size in part], y=[v * factor for v in part.series(series)], name=_(line.label),
                mode="lines+markers", line={"color": figures.PALETTE[i % 7], "dash": figures.DASHES[i % 6]},
                text=[f"{format_bytes(s)}: {format_time(t)}, {part.rate(s) * 1e-6:.4g} MB/s" for s, t in part.items()],
                hovertemplate="%{text}<extra>%{fullData.name}</extra>",
            )
        figures.layout(figure, title)
        values = figures.value_axis(series, drawn=[v * factor for _line, c in curves for v in c.series(series)])
        figure.update_layout(xaxis=figures.size_axis([size for _line, c in curves for size in c], 0), yaxis=values, showlegend=True)
        drawn[series] = figure
    places = "".join(figure_html(f, name) for name, f in drawn.items())
    return f'<h2>{_("The curves of your machine")}</h2><div class="figures">{places}</div>{drawing(drawn)}'
