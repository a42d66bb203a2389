"""A student's desk without a browser: what stays on the server until it is sealed, whose shelf it is, what a form refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from flask import g
from refusals import refused
from studio_app import app, draw, resources, words

from retrompi.base.errors import RetrompiError
from retrompi.labs import lab as _lab
from retrompi.labs import work
from retrompi.labs.shelf import FolderShelf
from retrompi.studio.jobs.resources import SessionMember
from retrompi.studio.labs import lab_commands, lab_text
from retrompi.studio.labs.lab_page import Saved
from retrompi.studio.labs.lab_session import Desk

__all__ = ["app", "draw", "resources"]  # fixtures

ONE = _lab.lab("1")
NAMES = _lab.lab_names()


@for_each("name", NAMES)
def test_nothing_behind_a_prediction_shows_before_it_is_sealed(name: str) -> None:
    lab = _lab.lab(name)
    begun = work.begin(lab, "Ann")
    before = lab_text.steps(lab, begun)
    first = next(i for i, s in enumerate(before) if s.seals)
    shut = list(before[first + 1 :])
    assert shut
    assert all(s.shut and not s.pieces for s in shut)
    assert before[first].pieces[-1].task is before[first].seals[-1], "the step ends with its last prediction"
    asked = {p.task.id for s in before for p in s.pieces if p.task is not None}
    assert all(not lab.task(i).after for i in asked if lab.task(i).kind != "prediction")
    choices = {t.id: t.choices[0] if t.choices else "3" + {"1": "", "count": "", "probability": " %"}.get(t.unit, f" {t.unit}")
               for t in lab.predictions}
    sealed = work.seal(work.answer(begun, lab, choices), lab)
    after = lab_text.steps(lab, sealed)
    assert not any(s.shut or s.seals for s in after)
    shown = [p.task.id for s in after for p in s.pieces if p.task is not None]
    assert sorted(shown) == sorted(t.id for t in lab.tasks), "every task once"
    assert len({p.key for s in after for p in s.pieces if p.form is not None}) == sum(p.form is not None for s in after for p in s.pieces)


def test_a_form_behind_a_prediction_does_not_run(app: Any, resources: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with app.server.test_request_context("/labs"):
        g.session = "a-session"
        with refused(RetrompiError, "sealed"):
            Desk(resources).run("1", "Ann", "1", {})


def test_in_a_class_the_shelf_is_the_member_s_whatever_id_is_typed(
    app: Any, resources: Any, draw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = FolderShelf(tmp_path / "mine", "bob@example.edu")
    monkeypatch.setattr(resources, "member", lambda session: SessionMember(7, "Bob", "bob@example.edu", "student"))
    monkeypatch.setattr(resources, "shelf_of", lambda session: mine)
    with app.server.test_request_context("/labs"):
        g.session = "a-session"
        assert Desk(resources).save("1", "Ann", "p-startup", "1 ms") == Saved("saved")
    assert mine.open(ONE).answers == {"p-startup": "1 ms"}
    shown = words(draw("/labs", "?lab=1&student=Ann")[0])
    assert "bob@example.edu" in shown
    assert "Ann" not in shown


def test_what_a_field_lacks_is_said_beside_it(app: Any, resources: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with app.server.test_request_context("/labs"):
        g.session = "a-session"
        desk = Desk(resources)
        kept = desk.save("1", "Ann", "p-startup", "5")
        assert kept.line == "saved"
        assert "unit" in kept.wrong
        assert desk.save("1", "Ann", "p-startup", "5 ms") == Saved("saved")
        refused_ = desk.save("1", "Ann", "startup", "5 ms")
        assert not refused_.line
        assert "predict" in refused_.wrong
        assert "no file" in desk.put("1", "Ann", "evil.c", b"").wrong
        assert desk.seal("1", "Ann", 2)["p-half"].startswith("no prediction")


@for_each(
    "kind, given, values, files, wanted",
    [
        ("pingpong", {"model": "../evil", "sizes": "1KiB"}, {}, {}, "unknown-model"),
        ("pingpong", {"model": "wmpi", "platform": "/etc/passwd", "sizes": "1KiB"}, {}, {}, "unknown-platform"),
        ("pingpong", {"model": "wmpi", "platform": "nt-cluster*9999"}, {}, {}, "out-of-range"),
        ("pingpong", {"model": "wmpi"}, {"sizes": "1B..9000B:+1B"}, {}, "too-many"),
        ("pingpong", {"model": "wmpi"}, {"sizes": "1KiB", "set": "nonsense"}, {}, "bad-syntax"),
        ("replay", {"model": "wmpi", "file": "../../etc/passwd"}, {}, {}, "not-found"),
        ("scenario", {"file": "x.toml"}, {}, {"x.toml": b'model = "./evil"\n'}, "unknown-model"),
        ("scenario", {"file": "x.toml"}, {}, {"x.toml": b'model = "wmpi"\n[trace]\nfile = "/etc/passwd"\n'}, "bad-value"),
        ("study", {"file": "x.toml"}, {}, {"x.toml": b"[vary]\nmodel = ['wmpi', './evil']\n"}, "unknown-model"),
        ("sweep", {"file": "late.toml"}, {"vary": "model=wmpi,./evil"}, {"late.toml": b"[trace]\n"}, "bad-value"),
        ("fit", {"file": "../curve.csv"}, {}, {}, "not-found"),
    ],
)
def test_a_form_names_no_code_and_no_file_but_the_student_s(
    kind: str, given: dict[str, str], values: dict[str, str], files: dict[str, bytes], wanted: str, tmp_path: Path
) -> None:
    with refused(RetrompiError, wanted):
        lab_commands.run(lambda *_: None, str(tmp_path / "runs.db"), kind, given, values, files)
