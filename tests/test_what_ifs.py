"""The three ready what-ifs: their golden numbers repeat, and docs/what-ifs.md says what they say."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import what_ifs

from retrompi.papers import claims
from retrompi.studies import design

TEXT = Path(__file__).resolve().parents[1] / "docs" / "what-ifs.md"
GOLDEN = what_ifs.load()
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


@pytest.mark.parametrize("known", GOLDEN["anatomy"], ids=lambda a: f"{a['design']}-{a['size_B']}")
def test_a_fresh_anatomy_gives_the_golden_stages(known: dict[str, object]) -> None:
    fresh = what_ifs.anatomy(str(known["design"]), int(str(known["size_B"])))
    assert fresh["in_proxies"] == pytest.approx(known["in_proxies"], rel=1e-12)
    assert fresh["seconds"] == pytest.approx(known["seconds"], rel=1e-12)


@pytest.mark.parametrize("known", GOLDEN["pair"], ids=lambda p: str(p["model"]))
def test_the_pair_with_other_cards_gives_the_golden_rate(known: dict[str, object]) -> None:
    assert what_ifs.pair(str(known["model"])) == {**known, "bandwidth@4MiB": pytest.approx(known["bandwidth@4MiB"], rel=1e-12)}


def test_the_text_says_what_the_runs_say() -> None:
    text = " ".join(TEXT.read_text(encoding="utf-8").split())
    missing = [said for said in what_ifs.said(GOLDEN) if " ".join(said.split()) not in text]
    assert missing == []


def test_every_number_in_a_table_of_the_text_is_said_by_a_run() -> None:
    said = {" ".join(s.split()) for s in what_ifs.said(GOLDEN)}
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
