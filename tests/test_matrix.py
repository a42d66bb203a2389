"""The matrix of the atlas: what makes a cell judged, fitted or blind, how it is shown, and published interventions."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from refusals import refused

from retrompi.base.errors import InputError
from retrompi.papers.judging.curve_verdicts import curve_id
from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.predict import interventions, matrix, predictions, transfer
from retrompi.papers.predict.matrix import MatrixCell, Tally
from retrompi.papers.statements import curves
from retrompi.papers.statements.paper import all_papers
from retrompi.render.atlas.matrix import matrix_html
from retrompi.render.atlas.predicted import blind_figures, blind_html, blind_rows

ROWS = transfer.shipped_rows()
CURVES = [(p, c) for p in all_papers().values() for c in curves.of(p)]


def test_no_cell_of_a_paper_is_judged_without_a_verdict() -> None:
    found = matrix.cells([], {})
    assert {c.state for c in found} <= {"blind", "not known"}
    assert {(c.model, *matrix.place_of(c.platform)) for _, c in CURVES} <= {(c.model, c.machine, c.network) for c in found}


@pytest.mark.parametrize(("paper", "curve"), [pytest.param(p, c, id=curve_id(p.key, c)) for p, c in CURVES if not c.blind])
def test_a_verdict_judges_the_cell_of_its_curve(paper: object, curve: curves.PaperCurve) -> None:
    key = (curve.model, *matrix.place_of(curve.platform))
    name = curve_id(paper.key, curve)  # type: ignore[attr-defined]
    (cell,) = (c for c in matrix.cells([], {name: "fail"}) if (c.model, c.machine, c.network) == key)
    wanted = {"calibrate": (Tally(0, 1), Tally()), "validate": (Tally(), Tally(0, 1))}.get(curve.use, (Tally(), Tally()))
    assert (cell.fitted, cell.judged) == wanted
    (cell,) = (c for c in matrix.cells([], {name: "unjudged"}) if (c.model, c.machine, c.network) == key)
    assert not cell.fitted.all
    assert not cell.judged.all


def test_every_claim_on_a_curve_reaches_a_cell() -> None:
    for paper in all_papers().values():
        names = {c.name for c in curves.of(paper)}
        for claim in paper.claims:
            named = {str(k["curve"]) for k in paper.checks.get(claim.id, ()) if k.get("kind") == "curve"}
            assert named <= names, claim.id
            if named and claim.use == "validate":
                assert sum(c.judged.all for c in matrix.cells([], {claim.id: "pass"})) >= 1, claim.id


def test_the_table_of_transfer_is_counted_once() -> None:
    found = matrix.cells(ROWS, {})
    keys = [(c.model, c.machine, c.network) for c in found]
    assert len(keys) == len(set(keys))
    wmpi = next(c for c in found if c.model == "wmpi" and c.judged.all)
    counted = {r["use"]: r for r in ROWS if r["model"] == "wmpi" and r["unit"] == transfer.STATEMENTS}
    assert (wmpi.judged.all, wmpi.fitted.all) == (counted["held out"]["published"], counted["fitted"]["published"])
    assert any(c.state == "not known" for c in found)


def test_blind_curves_are_counted() -> None:
    blind = sum(told["use"] == "blind" for told in predictions.shipped_predictions().values())
    assert sum(c.blind for c in matrix.cells(ROWS, {})) == blind


class Grid(HTMLParser):
    """Counts the cells of each row of the first table, and collects the links."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.links: list[str] = []
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1
        if tag == "a":
            self.links.append(str(dict(attrs).get("href")))
            self.labels.append(str(dict(attrs).get("aria-label")))


def test_the_matrix_is_a_table_that_can_be_read_aloud() -> None:
    found = [
        MatrixCell("a", "PC", "hub", judged=Tally(1, 2), paper="p", anchor="x"), MatrixCell("a:b", "PC", "hub", blind=2, paper="p"),
        MatrixCell("c", "<Cray>", "", fitted=Tally(1, 1), paper="gone", anchor="y"), MatrixCell("c", "PC", "hub"),
    ]
    html = matrix_html(found, ["p"])
    grid = Grid()
    grid.feed(html.partition("</table>")[0])
    assert grid.rows == [3, 3, 3]  # the machine, a and c
    assert grid.links == ["p.html#x", "None", "None"]
    assert grid.labels[0] == "a on PC, hub: judged: 1 of 2 hold; blind: 2 predicted curves"
    assert "&lt;Cray&gt;" in html
    assert "<Cray>" not in html
    assert len(re.findall(r'<th scope="col"><button', html)) == 7
    assert "All 4 cells: 1 judged, 1 fitted, 1 blind, 1 not known" in html


@pytest.mark.parametrize("paper", sorted({p.paper for p in predictions.plans().values() if p.paper}))
def test_the_page_of_a_source_shows_its_blind_curves(paper: str) -> None:
    names = {name.partition("/")[2] for name, p in predictions.plans().items() if p.paper == paper}
    figures = blind_figures(paper)
    assert {r["curve"] for r in blind_rows(paper)} == names
    assert sum(t.showlegend is not False for f in figures.values() for t in f.data) == len(names) + len(figures)  # and its interval
    html = blind_html(paper, [])
    assert all(f'id="blind-{n}"' in html for n in names)


def test_a_paper_without_blind_curves_has_no_such_section() -> None:
    assert blind_html("baker-fox", []) == ""
    assert blind_figures("baker-fox") == {}


# --- interventions ---


def _verdict(name: str, observed: float) -> Verdict:
    return Verdict(id=name, system="s", use="validate", verdict="pass", observed=observed, low=0, high=0, unit="Mbps", note="")


def test_an_effect_is_a_ratio_and_unknown_without_its_rows(tmp_path: Path) -> None:
    file = tmp_path / "interventions.toml"
    file.write_text(
        '[[intervention]]\ntitle = "t"\noption = "o"\nbefore = "BF-SM-12a"\nafter = "BF-SM-12b"\n'
        '[[intervention]]\ntitle = "u"\noption = "o"\nbefore = "none"\nafter = "none"\n', encoding="utf-8")
    one, none = interventions.effects([_verdict("BF-SM-12a", 2.0), _verdict("BF-SM-12b", 3.0)], file)
    assert one.simulated == 1.5
    assert one.published is not None
    assert one.low <= one.published <= one.high
    assert (none.published, none.simulated, none.direction, none.size) == (None, None, None, None)
    file.write_text('[[intervention]]\ntitel = "t"\n', encoding="utf-8")
    with refused(InputError, "unknown-key | 'titel' | 'title'"):
        interventions.effects([], file)


@pytest.mark.parametrize(("simulated", "direction", "size"), [(5.3, True, True), (2.0, True, False), (0.9, False, False)])
def test_direction_and_size(simulated: float, direction: bool, size: bool) -> None:
    e = interventions.Effect("t", "o", "a", "b", 5.3, 4.6, 6.0, simulated)
    assert (e.direction, e.size) == (direction, size)
