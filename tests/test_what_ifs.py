"""The three ready what-ifs: their golden numbers repeat, and docs/what-ifs.md says what they say."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import what_ifs
import what_ifs_draws
from cases import for_each

from retrompi.papers.statements import claims
from retrompi.store import open_store
from retrompi.studies.draws.uncertainty import Spec, ensemble
from retrompi.studies.execute import design

TEXT = Path(__file__).resolve().parents[1] / "docs" / "what-ifs.md"
GOLDEN = what_ifs.load()
DRAWS = what_ifs_draws.load()
EVERY = os.environ.get("RETROMPI_WHAT_IFS") == "all"


@pytest.mark.parametrize("name", what_ifs.METRICS)
def test_the_golden_file_is_of_the_studies_as_they_are(name: str) -> None:
    assert GOLDEN["parameters"][name] == what_ifs.parameters(name)
    assert [r["position"] for r in GOLDEN["rows"][name]] == list(range(design.count(design.study(name))))
    assert {r["outcome"] for r in GOLDEN["rows"][name]} == {"completed"}


@pytest.mark.parametrize("name", what_ifs.METRICS)
def test_a_fresh_run_gives_the_golden_numbers(name: str) -> None:
    """A few points of each; all of them with RETROMPI_WHAT_IFS=all in the environment (two minutes)."""
    golden = {r["position"]: r for r in GOLDEN["rows"][name]}
    for point in design.points(design.study(name)):
        if EVERY or point.position in what_ifs.QUICK[name]:
            fresh, known = what_ifs.row_of(name, point), golden[point.position]
            assert {**fresh, "values": {}} == {**known, "values": {}}
            assert fresh["values"] == {k: pytest.approx(v, rel=1e-12) for k, v in known["values"].items()}


@for_each("known", GOLDEN["anatomy"])
def test_a_fresh_anatomy_gives_the_golden_stages(known: dict[str, object]) -> None:
    fresh = what_ifs.anatomy(str(known["design"]), int(str(known["size_B"])))
    assert fresh["in_proxies"] == pytest.approx(known["in_proxies"], rel=1e-12)
    assert fresh["seconds"] == pytest.approx(known["seconds"], rel=1e-12)


@pytest.mark.parametrize("known", GOLDEN["pair"], ids=lambda p: str(p["model"]))
def test_the_pair_with_other_cards_gives_the_golden_rate(known: dict[str, object]) -> None:
    assert what_ifs.pair(str(known["model"])) == {**known, "bandwidth@4MiB": pytest.approx(known["bandwidth@4MiB"], rel=1e-12)}


def test_the_text_says_what_the_runs_say() -> None:
    text = " ".join(TEXT.read_text(encoding="utf-8").split())
    every = [*what_ifs.said(GOLDEN), *what_ifs_draws.said(GOLDEN, DRAWS)]
    missing = [said for said in every if " ".join(said.split()) not in text]
    assert missing == []


# -- the draws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DRAWS)
def test_the_draws_are_of_the_studies_as_they_are(name: str) -> None:
    asked = [(axes, m) for axes, m, _ in what_ifs_draws.questions(name)]
    assert [(r["axes"], r["metric"]) for r in DRAWS[name]["rows"]][: len(asked)] == asked
    assert DRAWS[name]["draws"] == what_ifs_draws.DRAWS[name]
    assert {len(r["values"]) for r in DRAWS[name]["rows"]} == {DRAWS[name]["draws"]}
    ended = {(r["axes"].get("model"), r["axes"].get("platform.link.bandwidth")) for r in DRAWS[name]["rows"] if None in r["values"]}
    assert ended <= {("wmpi", "10Mbps")}  # its daemons give up where their time-out is shorter than the window takes on the wire


@pytest.mark.parametrize("name", DRAWS)
def test_a_fresh_draw_gives_the_saved_numbers(name: str, store_path: Path) -> None:
    """The first draw of a few runs; `python tests/what_ifs_draws.py` makes all of them again, e.g. after a new posterior."""
    asked = what_ifs_draws.questions(name)
    some = [asked[i] for i in what_ifs_draws.QUICK[name]]
    told = ensemble(open_store(store_path), [s.question() for _, _, s in some], Spec(draws=1))
    for (axes, metric, _), one in zip(some, told, strict=True):
        saved = next(r["values"][0] for r in DRAWS[name]["rows"] if (r["axes"], r["metric"]) == (axes, metric))
        assert what_ifs_draws.values_of(one, metric) == [pytest.approx(saved, rel=1e-5)], (axes, metric)


def test_a_statement_stands_in_nineteen_of_twenty_draws_and_not_in_eighteen() -> None:
    of_rows = {"proxy-cost": {"rows": [{"axes": {"x": "1"}, "metric": "m", "values": [1.0] * 18 + [0.0, None]}]}}
    said = what_ifs_draws.Statement("proxy-cost", "w", None, lambda of: of("proxy-cost", "m", x="1") > 0.5)
    assert what_ifs_draws.verdict(said, of_rows) == (18, 20)
    assert not what_ifs_draws.survives(said, of_rows)
    of_rows["proxy-cost"]["rows"][0]["values"][18] = 1.0
    assert what_ifs_draws.survives(said, of_rows)


def test_every_number_in_a_table_of_the_text_is_said_by_a_run() -> None:
    said = {" ".join(s.split()) for s in (*what_ifs.said(GOLDEN), *what_ifs_draws.said(GOLDEN, DRAWS))}
    rows = [line for line in TEXT.read_text(encoding="utf-8").splitlines() if line.startswith("|") and re.search(r"\d", line)]
    # The table of processors states what was assumed; heads name sizes and wires.
    stated = [r for r in rows if " ".join(r.split()) not in said and not re.search(r"paper:|E-NPB|assumed", r)]
    heads = [r for r, after in zip(rows, [*rows[1:], ""], strict=True) if r in stated and TEXT.read_text().split(r)[1].startswith("\n|---")]
    assert set(stated) == set(heads)


def test_every_statement_that_the_text_takes_up_exists() -> None:
    known = {c.id for c in claims.load()}
    hardware = (Path(__file__).resolve().parents[1] / "validate" / "reference" / "hardware.csv").read_text(encoding="utf-8")
    known |= set(re.findall(r"^([A-Z]+-[A-Z0-9]+-\d+)", hardware, flags=re.M))
    named = set(re.findall(r"\b(?:BF|HW|E)-(?:[A-Z0-9]+-)?\d+[A-Z]?\b", TEXT.read_text(encoding="utf-8")))
    assert len(named) > 15
    assert named - known == set()
