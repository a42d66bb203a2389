"""The atlas's page of the sources that speak of machines only: lmbench's tables, and raw TCP of NetPIPE 1996 and RWCP 1998."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from retrompi.papers.fit.lmbench import PIPE
from retrompi.papers.predict.matrix import MatrixCell, Tally, place_of
from retrompi.papers.predict.transfer import STATEMENTS
from retrompi.render.atlas.matrix import SORT, sortable
from retrompi.render.atlas.transfer_table import transfer_html
from retrompi.render.document.html import Content, boxes, document, number, row

__all__ = ["PAGE", "SOURCES", "machine_cells", "machines_page"]

PAGE = "machines"
"""The name of the page's file, without its ending."""
SOURCES: Mapping[str, str] = {
    "LM96": "McVoy & Staelin, lmbench: Portable Tools for Performance Analysis, USENIX 1996",
    "NP96": "Snell, Mikler & Gustafson, NetPIPE: A Network Protocol Independent Performance Evaluator, IASTED 1996",
    "GE98": "Sumimoto, Tezuka, Hori et al., High Performance Communication using a Gigabit Ethernet, RWCP TR-98-003",
}
"""The sources, by the beginning of the identifiers of their rows in ``evidence.csv``."""
_HEAD = ("system", "network", "lmbench", "simulated", "published", "unit", "error", "use", "row")


def machine_cells(rows: Sequence[Mapping[str, Any]]) -> list[MatrixCell]:
    """The cells of the matrix that lmbench's numbers are; ``rows``: as of `retrompi.papers.fit.lmbench.table`."""
    out = []
    for r in rows:
        count = Tally(int(r["near"]), 1)
        machine, network = place_of(r["platform"])
        fitted, judged = (Tally(), count) if r["use"] == "predicted" else (count, Tally())
        out.append(MatrixCell(PIPE, machine, network, fitted, judged, paper=PAGE, anchor="lmbench"))
    return out


def machines_page(rows: Sequence[Mapping[str, Any]], transfer: Sequence[Mapping[str, Any]], home: str = "index.html") -> str:
    """The page as HTML text. ``rows``: of lmbench's table, ``transfer``: of the table of transfer."""
    cells: list[str] = []
    near: Counter[str] = Counter()
    for r in rows:
        near[r["use"]] += r["near"]
        mark = "pass" if r["near"] else "fail"
        line: list[Content] = [
            (escape(r["system"]), "id"), escape(r["network"]), escape(r["title"]), (number(r["simulated"]), "n"),
            (number(r["published"]), "n"), escape(r["unit"]), (f'<span class="{mark}">{r["error"]:+.0%}</span>', "n"),
            escape(r["use"]), escape(r["id"]),
        ]
        cells.append(row(_HEAD, line))
    of = Counter(r["use"] for r in rows)
    remark = "within 15 % of the published number"
    counts = boxes((f"lmbench: {use}", f"{near[use]} of {of[use]} near", remark) for use in ("predicted", "fitted", "input"))
    tcp = [r for r in transfer if str(r["ref"])[:4] in SOURCES and r["unit"] != STATEMENTS]
    told = "".join(f"<li>{escape(s)}</li>" for s in SOURCES.values())
    return document(
        "Machines only",
        f"""<header><h1>Sources that speak of machines only</h1>
<p>No message-passing library ran in these measurements. They are what the models of processors, operating systems and networks come from
(<b>input</b>, <b>fitted</b>) and are judged by (<b>predicted</b>).</p><ul>{told}</ul>
<nav><a href="{escape(home)}">All papers</a><a href="#lmbench">lmbench</a><a href="#tcp">Raw TCP</a></nav></header>
{counts}
<h2 id="lmbench">lmbench's tables of 1996</h2>{sortable(_HEAD, cells)}
<h2 id="tcp">Raw TCP: NetPIPE 1996 and RWCP 1998</h2>{transfer_html(tcp) if tcp else ""}<script>{SORT}</script>""",
    )
