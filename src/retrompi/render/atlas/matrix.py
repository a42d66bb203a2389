"""The matrix of the atlas as HTML: a grid of machines and runtimes, and under it a list of its cells that can be sorted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape

from retrompi.papers.predict.matrix import STATES, MatrixCell, Tally
from retrompi.render.document.html import Content, row, scroller
from retrompi.render.figures.figures import name_of

__all__ = ["SORT", "matrix_html", "sortable"]

_SIGN = {"judged": "", "fitted": "F ", "blind": "B ", "not known": "?"}
_HEAD = ("runtime", "machine", "network", "state", "judged", "fitted", "blind curves")

SORT = """
document.querySelectorAll('table.sortable').forEach(table => table.querySelectorAll('th button').forEach((button, column) => {
  button.onclick = () => {
    const head = button.parentElement, up = head.getAttribute('aria-sort') !== 'ascending', body = table.tBodies[0];
    table.querySelectorAll('th').forEach(th => th.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const key = tr => tr.cells[column].textContent.trim();
    const sorted = [...body.rows].sort((a, b) => key(a).localeCompare(key(b), 'en', {numeric: true}));
    body.append(...(up ? sorted : sorted.reverse()));
  };
}));
"""
"""Sorting by a column of a table of class "sortable"; without it the table stays in its order."""


def _link(cell: MatrixCell, pages: Sequence[str]) -> str:
    """The address at which the atlas shows the cell; "" if no page does."""
    page = f"{cell.paper}.html" if cell.paper in pages else ""
    return f"{page}#{cell.anchor}" if cell.anchor and (page or not cell.paper) else page


def _look(cell: MatrixCell) -> str:
    if cell.state == "judged":
        return "good" if cell.judged.passed == cell.judged.all else "bad"
    return {"fitted": "fitted", "blind": "blind"}.get(cell.state, "open")


def _short(cell: MatrixCell) -> str:
    count = {"judged": cell.judged, "fitted": cell.fitted}.get(cell.state)
    number = f"{count.passed}/{count.all}" if count else str(cell.blind) if cell.blind else ""
    return f"{_SIGN[cell.state]}{number}"


def _cell_text(cell: MatrixCell) -> str:
    parts = [f"judged: {cell.judged} hold"] if cell.judged.all else []
    parts += [f"fitted: {cell.fitted} hold"] if cell.fitted.all else []
    parts += [f"blind: {cell.blind} predicted curve{'s' if cell.blind > 1 else ''}"] if cell.blind else []
    return "; ".join(parts) or "no number is known"


def _grid(found: Sequence[MatrixCell], pages: Sequence[str]) -> str:
    """Rows of machines and networks, columns of runtimes with all their variants together."""
    runtimes = list(dict.fromkeys(c.model.partition(":")[0] for c in found))
    together: dict[tuple[str, str], dict[str, list[MatrixCell]]] = defaultdict(lambda: defaultdict(list))
    for c in found:
        together[c.machine, c.network][c.model.partition(":")[0]].append(c)
    rows = []
    for (machine, network), mine in together.items():
        cells = []
        for runtime in runtimes:
            if runtime not in mine:
                cells.append("<td></td>")
                continue
            c = _sum(mine[runtime])
            told = f"{name_of(runtime)} on {machine}{', ' + network if network else ''}: {_cell_text(c)}"
            href = _link(c, pages)
            link = f' href="{escape(href)}"' if href else ""
            cells.append(f'<td><a class="{_look(c)}"{link} title="{escape(told)}" aria-label="{escape(told)}">{_short(c)}</a></td>')
        small = f"<small>{escape(network)}</small>" if network else ""
        rows.append(f'<tr><th scope="row">{escape(machine)}{small}</th>{"".join(cells)}</tr>')
    names = "".join(f'<th scope="col"><span>{escape(name_of(r))}</span></th>' for r in runtimes)
    return (
        f'{scroller("verdicts by machine and runtime")}<table class="grid matrix upright">'
        f'<thead><tr><th scope="col">machine, network</th>{names}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _sum(cells: Sequence[MatrixCell]) -> MatrixCell:
    """The cells of a runtime's variants on one machine as one."""
    first = next((c for state in STATES for c in cells if c.state == state), cells[0])
    judged, fitted = (sum((getattr(c, k) for c in cells), Tally()) for k in ("judged", "fitted"))
    return MatrixCell(first.model, first.machine, first.network, fitted, judged, sum(c.blind for c in cells), first.paper, first.anchor)


def _list(found: Iterable[MatrixCell], pages: Sequence[str]) -> str:
    rows: list[str] = []
    for c in found:
        href = _link(c, pages)
        state = f'<a href="{escape(href)}">{c.state}</a>' if href else c.state
        cells: list[Content] = [(escape(name_of(c.model)), "id"), escape(c.machine), escape(c.network), state]
        cells += [(str(t) if t.all else "", "n") for t in (c.judged, c.fitted)] + [(str(c.blind or ""), "n")]
        rows.append(row(_HEAD, cells))
    return sortable(_HEAD, rows)


def sortable(head: Sequence[str], rows: Iterable[str]) -> str:
    """A table of ready rows that `SORT` sorts by the column whose head is clicked."""
    names = "".join(f'<th scope="col"><button type="button">{escape(h)}</button></th>' for h in head)
    opened = f'{scroller(", ".join(head))}<table class="stack sortable">'
    return f"{opened}<thead><tr>{names}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def matrix_html(found: Sequence[MatrixCell], pages: Sequence[str]) -> str:
    """Grid, legend and list; ``pages``: the keys of the papers that have a page."""
    counts = {state: sum(c.state == state for c in found) for state in STATES}
    told = ", ".join(f"{n} {state}" for state, n in counts.items())
    return (
        _grid(found, pages)
        + '<p class="soft"><small><b>7/8</b>: judged by numbers that no fit saw, 7 of 8 hold · <b>F 5/5</b>: fitted, nothing else is '
        "known there · <b>B 3</b>: three curves predicted blind, before anyone looks at the published ones · <b>?</b>: the runtime "
        "is known to have run there, no number is · empty: no source speaks of it. A cell links to what it counts; a runtime's variants "
        "are counted together, and one by one in the list.</small></p>"
        f"<details><summary>All {len(found)} cells: {told}</summary>{_list(found, pages)}</details>"
    )
