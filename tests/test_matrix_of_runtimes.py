"""One program on runtimes, machines and networks: which pairs there are, the page, why the first is first, what cannot run and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import STRICT, Outcome
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.render import runtimes_page
from retrompi.spec import registry
from retrompi.studies.compare_runtimes import RuntimeRow, platforms_of, runtimes

PROGRAM = ("compare", "ring", "-n", "2", "size=1KiB", "reps=2")
THREE = ("--models", "wmpi,pvm,craympt", "--platforms", "nt-pair,linux-p6-200,cray-t3e", "--networks", "switch-100,switch-10")


def test_names_and_networks_make_platforms() -> None:
    assert runtimes(["wmpi", "pvm"]) == ("wmpi", "pvm")
    assert set(runtimes(["all"])) == set(registry.models())
    assert platforms_of(["nt-pair", "linux-p6-200", "nt4-p6-200-dual"], ["switch-100"], 5) == (
        "nt-pair", "linux-p6-200*5@switch-100", "nt4-p6-200-dual*3@switch-100")  # fmt: skip
    assert set(platforms_of(["all"], [], 2)) == set(registry.platforms())
    with refused(UsageError, "unused-option | --networks"):
        platforms_of(["nt-pair"], ["switch-100"], 2)
    with refused(UsageError, "unknown-network"):
        platforms_of(["linux-p6-200"], ["switch-99"], 2)
    assert __name__ in STRICT  # the pairs that cannot have been are refused here


@pytest.fixture
def answer(retrompi: Callable[..., Outcome], tmp_path: Path) -> tuple[Outcome, dict[str, object]]:
    page = tmp_path / "matrix.html"
    done = retrompi(*PROGRAM, *THREE, "--json", "-o", str(page))
    return done, {**json.loads(done.out), "page": page.read_text()}


def test_every_pair_has_a_time_or_a_reason_and_the_page_has_both(answer: tuple[Outcome, dict[str, object]]) -> None:
    done, told = answer
    rows = told["rows"]
    assert done.code == 1
    assert isinstance(rows, list)
    assert len(rows) == 3 * 4
    timed = {(r["model"], r["platform"]) for r in rows if r["time_s"] is not None}
    assert timed == {("wmpi", "nt-pair"), ("craympt", "cray-t3e"), *(("pvm", f"linux-p6-200*2@switch-{n}") for n in (10, 100))}
    assert all(r["reason"] for r in rows if r["time_s"] is None)
    page = str(told["page"])
    for r in rows:
        assert r["platform"] in page
    assert "What has no time, and why" in page
    assert "needs the torus of a Cray T3E" in page
    assert "Why the first is first" in page


def test_the_causes_are_of_the_first_and_another_runtime(answer: tuple[Outcome, dict[str, object]]) -> None:
    causes = answer[1]["causes"]
    assert isinstance(causes, list)
    assert 2 <= len(causes) <= 5
    assert causes[0].startswith("craympt on cray-t3e is the fastest; ")
    assert all(" against " in c for c in causes[1:])


def test_a_figure_and_numbers_are_written_by_their_endings(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    words = (*PROGRAM, "--models", "wmpi,hpvm", "--platforms", "nt-cluster")
    assert retrompi(*words, "-o", str(tmp_path / "m.csv")).code == 0
    assert (tmp_path / "m.csv").read_text().startswith("model,platform,outcome")


def test_a_matrix_without_any_time_is_a_page_too() -> None:
    page = runtimes_page.page([RuntimeRow("wmpi", "nt-pair", "error", "a <reason>", None, False)], "nothing", [], [], "")
    assert "No pair completed." in page
    assert "a &lt;reason&gt;" in page
    assert runtimes_page.grid([RuntimeRow("wmpi", "nt-pair", "error", "", None, False)]) == (["wmpi"], ["nt-pair"], [[None]])


def test_networks_and_platforms_need_models(retrompi: Callable[..., Outcome]) -> None:
    assert retrompi("compare", "ring", "--networks", "switch-100").code == 2
