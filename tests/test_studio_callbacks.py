"""Every callback of the studio finds its inputs: Dash does not run one of whose inputs or states one is missing, and says so only in the
browser's console. Looked for in the components of every page and of every step of every lab, without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from flask import g
from studio_app import app, draw, every, resources

from retrompi.labs import lab as _lab
from retrompi.labs import work
from retrompi.studio.app import page_content
from retrompi.studio.labs import lab_page, lab_text
from retrompi.studio.labs.lab_session import Desk
from retrompi.studio.requests.page import pages

__all__ = ["app", "draw", "resources"]  # fixtures

SESSION = "a-session-of-the-tests"
WHO = "Ann"
Id = str | dict[str, Any]


@dataclass(frozen=True)
class Callback:
    """What Dash tells the browser of a callback: its inputs, and the states that it reads besides. An id that is a pattern is a dict."""

    output: str
    inputs: tuple[Id, ...]
    states: tuple[Id, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Callback:
        def ids(deps: list[dict[str, Any]]) -> tuple[Id, ...]:
            wanted = (d["id"] for d in deps if not d.get("allow_optional"))
            return tuple(json.loads(i) if i.startswith("{") else i for i in wanted)

        return cls(row["output"], ids(row["inputs"]), ids(row["state"]))


def bound(pattern: Id, component: Id) -> dict[str, Any] | None:
    """The values of the pattern's MATCH keys in a component's id; None if it is no component of the pattern."""
    if isinstance(pattern, str) or isinstance(component, str):
        return {} if pattern == component else None
    if pattern.keys() != component.keys() or any(v != component[k] for k, v in pattern.items() if not isinstance(v, list)):
        return None
    return {k: component[k] for k, v in pattern.items() if v == ["MATCH"]}


def lacking(callback: Callback, there: list[Id]) -> Iterator[str]:
    """The inputs and states that the callback lacks among components of which one would make it run."""
    triggers = [found for i in callback.inputs for c in there if (found := bound(i, c)) is not None]
    for at in {json.dumps(t, sort_keys=True): t for t in triggers}.values():
        for wanted in (*callback.inputs, *callback.states):
            if isinstance(wanted, dict) and any(v in (["ALL"], ["ALLSMALLER"]) for v in wanted.values()):
                continue  # of these there may be none
            others = [found for c in there if (found := bound(wanted, c)) is not None]
            if not any(all(at.get(k, v) == v for k, v in found.items()) for found in others):
                yield f"{callback.output}: no {wanted} for {at}"


def ids(component: Any) -> list[Id]:
    return [c.id for c in every(component) if getattr(c, "id", None) is not None]


def sealed(lab: _lab.Lab) -> work.Work:
    """A student's work whose predictions are sealed: every step is open."""
    units = {"1": "", "count": "", "probability": " %"}
    guess = {t.id: t.choices[0] if t.choices else f"3{units.get(t.unit, ' ' + t.unit)}" for t in lab.predictions}
    return work.seal(work.answer(work.begin(lab, WHO), lab, guess), lab)


@pytest.fixture(scope="module")
def shown(app: Any, resources: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Id]]:
    """Address -> the ids of the components that stand there: every page, every step of every lab before and after its seals."""
    out: dict[str, list[Id]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setattr(Desk, "ahead", lambda *_: None)

        def see(path: str, search: str = "") -> None:
            with app.server.test_request_context(path):
                g.session = SESSION
                out[path + search] = [*ids(app.layout()), *ids(page_content(path, search, resources)[0])]

        for page in pages():
            see(page.path)
        for name in _lab.lab_names():
            lab = _lab.lab(name)
            for made in (work.begin(lab, WHO), sealed(lab)):
                patch.setattr(Desk, "work", lambda self, lab, student, made=made: made)
                for step in range(1, len(lab_text.steps(lab, made)) + 1):
                    see("/labs", f"?lab={name}&student={WHO}&step={step}{'&sealed' if made.state.sealed else ''}")
    return out


@pytest.fixture(scope="module")
def callbacks(app: Any) -> list[Callback]:
    found = app.server.test_client()
    assert found.get("/").status_code == 200
    return [Callback.of(row) for row in found.get("/_dash-dependencies").json]


def test_no_callback_lacks_an_input_on_any_page(shown: dict[str, list[Id]], callbacks: list[Callback]) -> None:
    assert len(shown) > 150, "the steps of the labs are not among them"
    wrong = {line: where for where, there in shown.items() for callback in callbacks for line in lacking(callback, there)}
    assert wrong == {}


def test_every_input_has_a_maker(app: Any, shown: dict[str, list[Id]], callbacks: list[Callback]) -> None:
    """What appears only after something was pressed is made here by the function that makes it then."""
    lab = _lab.lab("1")
    told = {"lines": [], "cautions": [], "tables": [], "figures": {"time": {"data": [], "layout": {}}}}
    begun = sealed(lab)
    steps = lab_text.steps(lab, begun)
    ran = {p.key: work.Ran(p.key, p.form.line, {}, told) for s in steps for p in s.pieces if p.form is not None}
    with app.server.test_request_context("/labs"):
        later: Iterable[Any] = [*lab_page.hint_parts(lab, sealed(lab), lab.task("startup"), ask=True), *lab_page.form_result(told),
                                *lab_page.step_view(lab, begun, steps, 0, lab_page.Mine(None, ran))]
        made = [*{json.dumps(i, sort_keys=True): i for there in shown.values() for i in there}.values(), *ids(list(later))]
    unmade = {str(i) for c in callbacks for i in (*c.inputs, *c.states) if not any(bound(i, m) is not None for m in made)}
    assert unmade == set()


def test_every_text_file_of_a_lab_has_one_editor_on_each_step_that_reads_it(shown: dict[str, list[Id]]) -> None:
    """Two would overwrite each other."""
    for name in _lab.lab_names():
        lab = _lab.lab(name)
        own = {f for f in work.begin(lab, WHO).files if not f.endswith(".zst")} | {t.file for t in lab.tasks if t.file.endswith(".txt")}
        steps = [there for where, there in shown.items() if where.startswith(f"/labs?lab={name}&") and where.endswith("&sealed")]
        edited = [[i["name"] for i in there if isinstance(i, dict) and i["type"] == "labs-file"] for there in steps]
        assert {f for step in edited for f in step} == own, name
        assert all(len(set(step)) == len(step) for step in edited), name
