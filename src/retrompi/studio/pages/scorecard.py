"""The scorecard: every published statement with its verdict, fitted and held out counted separately."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from dash import Dash, Input, Output, State, dcc, html

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.translate import _, lazy, ngettext
from retrompi.papers.predict import predictions, scores
from retrompi.papers.statements.claims import papers
from retrompi.papers.statements.paper import all_papers
from retrompi.papers.statements.systems import systems
from retrompi.studio.cards import judging, statement_cards
from retrompi.studio.cards.card_pieces import Part, count_boxes
from retrompi.studio.cards.statements import GROUPS, VERDICTS, Statement, StatementFilter, counts, matrix, select_statements
from retrompi.studio.cards.statements import read as stored
from retrompi.studio.components import parts
from retrompi.studio.requests import inputs
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, choice, number, read, text

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

A_PAGE = 40
"""Statements on one page of the list."""

FILTERS = (
    Control("scorecard-paper", "value", "paper", "", choice(papers, "paper")),
    Control("scorecard-system", "value", "system", "", choice(systems, "system")),
    Control("scorecard-group", "value", "group", "", choice(list(GROUPS), "group")),
    Control("scorecard-verdict", "value", "verdict", "", choice(list(VERDICTS), "verdict")),
    Control("scorecard-text", "value", "q", "", text(80)),
)
PAGE = Page(
    path="/scorecard",
    title=lazy("Scorecard"),
    order=40,
    help=lazy("Every published statement, compared with the simulation; calibrated and held-out statements are counted separately."),
    controls=(*FILTERS, Control("scorecard-at", "data", "page", 1, number(1, 999, whole=True))),
    inputs={"scorecard-judged.data": inputs.mapping(), "scorecard-at.data": inputs.count},
)


def _statements(resources: Resources) -> tuple[list[Statement], str]:
    """(every statement, a problem with the store or "")."""
    try:
        return stored(resources.open_store()), ""
    except RetrompiError:
        return stored(), _("There is no store yet; judging creates one.")


def _choice(values: Sequence[Any]) -> StatementFilter:
    paper, system, group, verdict, words = (str(v or "") for v in values)
    return StatementFilter(paper, system, verdict, group, words[:80])


def _weight(s: Statement) -> tuple[bool, int]:
    """Statements that can fail before those of context, and of these failures first; within, the order of the reference."""
    return s.claim.use not in ("calibrate", "validate"), ("fail", "pass", "unjudged").index(s.verdict.verdict)


def _list(found: Sequence[Statement], at: int) -> list[Part]:
    """One page of the statements, and their number."""
    pages = max(-(-len(found) // A_PAGE), 1)
    at = min(max(at, 1), pages)
    mine = sorted(found, key=_weight)[(at - 1) * A_PAGE : at * A_PAGE]
    if not mine:
        return [html.P(_("No statement matches these filters."), className="soft")]
    first = (at - 1) * A_PAGE + 1
    line = (
        _("Statements {first} to {last} of {n}").format(first=first, last=first + len(mine) - 1, n=len(found))
        if pages > 1
        else ngettext("{n} statement", "{n} statements", len(found)).format(n=len(found))
    )
    return [html.P(line, className="soft"), *(statement_cards.card(s, is_open=len(mine) == 1) for s in mine)]


def _at(found: Sequence[Statement], at: int) -> tuple[int, bool, bool]:
    """(the valid page number, whether it is the first, whether it is the last)."""
    pages = max(-(-len(found) // A_PAGE), 1)
    at = min(max(at, 1), pages)
    return at, at == 1, at == pages


def _tallies(some: Sequence[Statement]) -> Component:
    return count_boxes(statement_cards.tallies(counts(some)))


def _by(everything: Sequence[Statement]) -> list[Component]:
    """When and by which code was judged: here, and in advance; and which statements are judged no longer as things are now."""
    told: list[Component] = []
    if batches := sorted({(s.when, s.code) for s in everything if s.when and not s.in_advance}):
        first, last = batches[0], batches[-1]
        told.append(
            html.P(_("Judged {day} UTC, code {code}.").format(day=first[0] if first == last else f"{first[0]} – {last[0]}", code=last[1]))
        )
    ahead = [s for s in everything if s.in_advance]
    if ahead:
        line = ngettext(
            "{n} statement is judged in advance ({day}, with code {code}): its verdict comes with retrompi. “Judge” simulates it here.",
            "{n} statements are judged in advance ({day}, with code {code}): the verdicts come with retrompi. “Judge” simulates them here.",
            len(ahead),
        )
        told.append(html.P(line.format(n=len(ahead), day=ahead[0].when, code=ahead[0].code)))
    if old := [s for s in ahead if s.changed]:
        line = ngettext(
            "{n} of them rests on what has been changed since ({names}): judge it again.",
            "{n} of them rest on what has been changed since ({names}): judge them again.",
            len(old),
        )
        names = ", ".join(sorted({name for s in old for name in s.changed}))
        told.append(html.P(line.format(n=len(old), names=names), className="notice"))
    return [html.Div(told, className="soft")]


def _blind() -> Component:
    """How the blind predictions compare with the curves that have been published of them since."""
    found = scores.scores()
    points = sum(s.points for s in found)
    boxes = [
        (_("predicted"), f"{100 * median(s.median_error for s in found):.1f} %", _("median error of {n} curves").format(n=len(found))),
        (_("raw layer alone"), f"{100 * median(s.raw_error for s in found):.1f} %", _("if the library cost nothing")),
        (_("inside"), f"{100 * sum(s.points * s.inside for s in found) / points:.0f} %", _("of the points inside the 90 % intervals")),
    ]
    head = (_("curve"), _("error"), _("raw layer's error"), _("bias"), _("inside 90 %"))
    titles = {name: told["title"] for name, told in predictions.shipped_predictions().items()}
    rows = []
    for s in found:
        numbers = f"{100 * s.median_error:.1f} %", f"{100 * s.raw_error:.1f} %", f"{100 * s.bias:+.1f} %", f"{100 * s.inside:.0f} %"
        rows.append(html.Tr([html.Td(titles[s.prediction], lang="en"), *(html.Td(n, className="v") for n in numbers)]))
    table = html.Table([html.Thead(html.Tr([html.Th(h, scope="col") for h in head])), html.Tbody(rows)], className="matrix")
    scroller = html.Div(table, className="scroll", tabIndex=0, role="region", **{"aria-label": _("blind predictions and their errors")})
    return html.Details([html.Summary(_("The blind test: predicted first, compared afterwards")), count_boxes(boxes), scroller])


def _overview(everything: Sequence[Statement]) -> list[Part]:
    return [*_by(everything), statement_cards.matrix(matrix(everything))]


def layout(query: Query, resources: Resources) -> Component:
    """Counts, the verdict matrix, filters, and the matching statements."""
    values, lines = read(PAGE.controls, query)
    everything, trouble = _statements(resources)
    want = _choice([values[c.key] for c in FILTERS])
    found = select_statements(everything, want)
    at, first, last = _at(found, int(values["page"]))

    def options(every: str, some: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"label": every, "value": ""}, *({"label": words, "value": value} for value, words in some)]

    titles = [(k, all_papers()[k].title if k in all_papers() else k) for k in papers()]
    fields = [
        parts.menu(_("Paper"), "scorecard-paper", options(_("all papers"), [(k, f"{k}: {t}") for k, t in titles]), want.paper, wide=True),
        parts.menu(_("Runtime or system"), "scorecard-system", options(_("all systems"), [(s, s) for s in systems()]), want.system),
        parts.menu(_("Group"), "scorecard-group", options(_("all groups"), [(k, _(v)) for k, v in GROUPS.items()]), want.group),
        parts.menu(_("Verdict"), "scorecard-verdict", options(_("all verdicts"), [(k, _(v)) for k, v in VERDICTS.items()]), want.verdict),
        parts.entry(
            _("Words"), "scorecard-text", want.text, type="search", debounce=0.4, maxLength=80, placeholder=_("e.g. BF-SM-04 or startup")
        ),
    ]
    judge = html.Div(
        [
            html.Button(
                _("Judge"), id="scorecard-judge", type="button", title=_("simulate the chosen paper, or all papers, and judge again")
            ),
            html.Small(_("Judges the chosen paper (or all papers); runs missing from the store are simulated."), className="soft"),
        ],
        className="action",
    )
    return html.Div(
        [
            html.Div(parts.notices([*lines, trouble])),
            html.Div(_tallies(found), id="scorecard-counts"),
            html.Details(
                [html.Summary(_("By system")), html.Div(_overview(everything), id="scorecard-matrix")], open=want == StatementFilter()
            ),
            _blind(),
            parts.controls(*fields),
            judge,
            parts.job_bar("scorecard"),
            dcc.Store(id="scorecard-judged"),
            dcc.Store(id="scorecard-at", data=at),
            html.Div(_list(found, at), id="scorecard-list"),
            html.Div(
                [
                    html.Button(_("Previous"), id="scorecard-previous", type="button", disabled=first),
                    html.Button(_("Next"), id="scorecard-next", type="button", disabled=last),
                ],
                id="scorecard-pager",
                className="pager",
                hidden=first and last,
            ),
        ]
    )


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks for filters, the pages of the list, and judging in the background."""

    @app.callback(
        Output("scorecard-list", "children"),
        Output("scorecard-counts", "children"),
        Output("scorecard-matrix", "children"),
        Output("scorecard-at", "data"),
        Output("scorecard-previous", "disabled"),
        Output("scorecard-next", "disabled"),
        Output("scorecard-pager", "hidden"),
        *(Input(c.id, c.property) for c in FILTERS),
        Input("scorecard-previous", "n_clicks"),
        Input("scorecard-next", "n_clicks"),
        Input("scorecard-judged", "data"),
        State("scorecard-at", "data"),
        prevent_initial_call=True,
    )
    def shown(*values: Any) -> Any:
        filters, at = values[: len(FILTERS)], values[-1]
        everything, _when = _statements(resources)
        found = select_statements(everything, _choice(filters))
        step = parts.changed_by("scorecard-next") - parts.changed_by("scorecard-previous")
        wanted = (at if isinstance(at, int) else 1) + step if step else at if parts.changed_by("scorecard-judged") else 1
        number, first, last = _at(found, wanted if isinstance(wanted, int) else 1)
        return _list(found, number), _tallies(found), _overview(everything), number, first, last, first and last

    def begin(clicks: int | None, paper: str | None) -> Any:
        if not clicks:
            return None
        if paper and paper not in papers():
            raise UsageError(f"no paper '{str(paper)[:60]}'{nearest(str(paper)[:60], papers())}", code="unknown-paper")
        keys = [paper] if paper else []
        told = _("judging {paper}").format(paper=keys[0] if keys else _("all papers"))
        return told, judging.run, (resources.store, keys)

    parts.register_job(
        app,
        resources,
        "scorecard",
        [Input("scorecard-judge", "n_clicks")],
        begin,
        [Output("scorecard-judged", "data")],
        lambda result: result,
        states=[State("scorecard-paper", "value")],
        prevent_initial_call=True,
    )
