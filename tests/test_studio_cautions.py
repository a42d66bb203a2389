"""Cautions and outcomes of runs are shown on every page that shows runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from studio_app import words

from retrompi.store import open_store
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study
from retrompi.studio.anatomy import replay_job
from retrompi.studio.anatomy.anatomy_job import travel
from retrompi.studio.cards import study_jobs, study_parts
from retrompi.studio.components import parts
from retrompi.studio.curves.runs import curves, what_if
from retrompi.studio.pages import anatomy, replay, whatif

CAUTION = "no rate is published, so none is simulated"
WHERE = ("craympt", "cray-j90", "shared")


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "theirs.db"), str(tmp_path / "ours.db")


def _quiet(*_: Any) -> None:
    """Hears what a job reports."""


def test_a_replays_cautions(places: tuple[str, str]) -> None:
    asked = {"trace": "made:ring", "model": WHERE[0], "platform": WHERE[1], "mode": WHERE[2], "ranks": 2, "size": 1024, "set": ""}
    assert CAUTION in words(replay._facts(replay_job.perform(_quiet, asked, "", "")))


def test_a_what_ifs_cautions(places: tuple[str, str]) -> None:
    for _ in ("simulated", "found"):
        answer = what_if(_quiet, places, *WHERE, [], [1024])
        assert words(whatif._outcome(answer)).count(CAUTION) == 1


def test_cautions_of_curves(places: tuple[str, str]) -> None:
    answer = curves(_quiet, places, [WHERE, ("wmpi", "nt-pair", "shared")], [1024], [])
    one, none = (c["cautions"] for c in answer["curves"])
    assert [CAUTION in line for line in one] == [True, False]
    assert one[1].startswith("far outside the calibrated range of craympt: messages of 1 KiB")
    assert not none


def test_a_messages_cautions() -> None:
    shown = travel(_quiet, [{"model": WHERE[0], "platform": WHERE[1], "mode": WHERE[2], "size": "1 KiB", "set": ""}], "there")
    assert CAUTION in words(anatomy._sentences(shown))


def test_a_studys_cautions(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    study = design.from_command("bf-wmpi-shared", {"platform": "cray-j90"}, set_={"model": "craympt"})
    run_study(store, study)
    found = study_jobs.show_study(store, str(store.studies()[0]["id"]))
    assert CAUTION in words(study_parts.result_parts(found))


def test_one_sentence_of_several_runs_is_shown_once() -> None:
    assert words(parts.cautions([("A", ["one", "two"]), ("B", ["one"])])).split() == ["A,", "B:", "one", "A:", "two"]
    assert words(parts.cautions([("A", ["one"])])).split() == ["one"]
    assert words(parts.cautions([("A", []), ("B", [])])) == ""


@pytest.mark.parametrize("outcome", ["limit", "timeout", "overflow"])
def test_the_words_of_an_outcome(outcome: str) -> None:
    run = {"outcome": outcome, "detail": "why", "rows": [], "cautions": [], "run": None, "sets": []}
    shown = words(whatif._outcome({"base": run, "changed": None, "outside": []}))
    assert f"as it was: {outcome}." in shown
    assert "64 bits" in shown or "until then" in shown


@for_each("mode", list(replay._MODES))
def test_every_placement_of_the_menu_is_replayed(mode: str) -> None:
    asked = {"trace": "made:ring", "model": "wmpi", "platform": "nt-cluster", "mode": mode, "ranks": 4, "size": 1024, "set": ""}
    assert replay_job.perform(_quiet, asked, "", "")["outcome"] == "completed"
