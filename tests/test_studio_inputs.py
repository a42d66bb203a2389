"""What callbacks take from a browser: any JSON is answered by one line, never by an internal error.

RETROMPI_STUDIO_POSTS sets the number of posts of the property test (default 160).
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import pytest
from cases import for_each
from dash import Input, Output
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused
from studio_app import JSON, UPDATE, app, client, resources

from retrompi.base.errors import UsageError
from retrompi.studio.requests import inputs

__all__ = ["app", "client", "resources"]  # fixtures

POSTS = int(os.environ.get("RETROMPI_STUDIO_POSTS", "160"))
TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["wmpi", "nt-pair", "shared", "made:broadcast", "64 KiB", "1..4", "wmpi.packet", "packet=1", "upload:x", "\ud800",
                     "\x00", "x" * 9000, "9" * 5000, "1e400", "-1", "nan", "=1+1", "../../etc/passwd"]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from([10**400, -(10**400)]), st.floats(), TEXTS)
ANYTHING = st.recursive(SCALARS, lambda one: st.one_of(st.lists(one, max_size=4), st.dictionaries(TEXTS, one, max_size=4)), max_leaves=8)
QUESTION = st.fixed_dictionaries({}, optional={k: st.one_of(TEXTS, ANYTHING) for k in ("model", "platform", "mode", "sets", "study")})
VALUES = st.one_of(ANYTHING, TEXTS, st.lists(TEXTS, max_size=3), QUESTION, st.integers(0, 3))


def _id(written: str) -> Any:
    return json.loads(written) if written.startswith("{") else written


def _post(data: st.DataObject, callback: dict[str, Any]) -> dict[str, Any]:
    """A post of a callback with drawn values; now and then with another part of it drawn, too."""

    def given_values(declared: list[dict[str, Any]]) -> list[Any]:
        out: list[Any] = []
        for d in declared:
            one = {"id": _id(d["id"]), "property": d["property"], "value": data.draw(VALUES)}
            out.append([{**one, "id": {**one["id"], "name": data.draw(TEXTS)}}] if isinstance(one["id"], dict) else one)
        return out

    shape = callback["output"].strip(".").split("...")
    outputs = [{"id": _id(o.rpartition(".")[0]), "property": o.rpartition(".")[2].partition("@")[0]} for o in shape]
    post = {
        "output": callback["output"],
        "outputs": outputs if callback["output"].startswith("..") else outputs[0],
        "inputs": given_values(callback["inputs"]),
        "state": given_values(callback["state"]),
        "changedPropIds": [f"{d['id']}.{d['property']}" for d in data.draw(st.lists(st.sampled_from(callback["inputs"]), max_size=2))],
    }
    if data.draw(st.integers(0, 9)) == 0:
        post[data.draw(st.sampled_from([*post, "parsedChangedPropsIds", "cookies"]))] = data.draw(ANYTHING)
    return post


def test_any_json_is_answered_by_one_line(app: Any, client: Any, caplog: pytest.LogCaptureFixture) -> None:
    callbacks = [c for c in client.get("/_dash-dependencies").json if not c.get("clientside_function")]
    assert len(callbacks) > 20
    seen: set[str] = set()

    # As many for each, so that none is left to chance.
    @settings(max_examples=max(1, POSTS // len(callbacks)), deadline=None, database=None, derandomize=True,
              suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def property_of(callback: dict[str, Any], data: st.DataObject) -> None:
        body = json.dumps(_post(data, callback))
        got = client.post(UPDATE, data=body, headers=JSON)
        text = got.get_data(as_text=True)
        assert got.status_code in (200, 204, 400, 404), (body[:600], text[:300])
        assert "internal error" not in text, body[:900]
        assert got.status_code in (200, 204) or text.count("\n") == 1
        seen.add(callback["output"])

    with caplog.at_level(logging.ERROR, logger="retrompi.studio"):
        for callback in callbacks:
            property_of(callback=callback)
    assert not [r for r in caplog.records if r.name == "retrompi.studio"]
    assert len(seen) == len({c["output"] for c in callbacks})


def test_every_callback_of_every_page_takes_a_list_for_a_text(client: Any) -> None:
    """A list, an object, a number and a truth value in all inputs of every callback: once each, so that none is left to chance."""
    for callback in client.get("/_dash-dependencies").json:
        if callback.get("clientside_function"):
            continue
        shape = callback["output"].strip(".").split("...")
        outputs = [{"id": _id(o.rpartition(".")[0]), "property": o.rpartition(".")[2].partition("@")[0]} for o in shape]
        for value in ([], ["a"], [[1]], {}, {"a": []}, 1.5, -1, True, "\ud800", None):
            post: dict[str, Any] = {"output": callback["output"], "outputs": outputs if callback["output"].startswith("..") else outputs[0]}
            for part in ("inputs", "state"):
                post[part] = []
                for d in callback[part]:
                    one = {"id": _id(d["id"]), "property": d["property"], "value": value}
                    post[part].append([{**one, "id": {**one["id"], "name": "x"}}] if isinstance(one["id"], dict) else one)
            post["changedPropIds"] = [f"{d['id']}.{d['property']}" for d in callback["inputs"][:1]]
            got = client.post(UPDATE, data=json.dumps(post), headers=JSON)
            assert "internal error" not in got.get_data(as_text=True), (callback["output"], value)
            assert got.status_code < 500


def test_a_callback_with_an_undeclared_input_cannot_be_registered(app: Any) -> None:
    with pytest.raises(LookupError, match=r"made-up\.value is not declared"):
        app.callback(Output("made-up-too", "children"), Input("made-up", "value"))(lambda value: value)


@for_each("check, good, bad", [
    (inputs.text(5), (None, "", "12345", "é𝄞"), (1, [], "123456", "\x00", "\ud800")),
    (inputs.texts(2), (None, [], ["a", "b"]), ("a", ["a", "b", "c"], [1], [None], {"a": 1})),
    (inputs.count, (None, 0, 7), (-1, 1.0, True, "1", 10**400)),
    (inputs.number, (None, 0, -1.5), (True, "1", float("nan"), float("inf"), 10**400)),
    (inputs.texts_by_name, (None, {}, {"a": "b"}), ([], {"a": 1}, {"a": "x" * 999}, {"a": None})),
    (inputs.mapping(a=inputs.count), (None, {}, {"a": 1, "b": []}), ([], "a", {"a": "1"})),
])
def test_checks(check: Any, good: Any, bad: Any) -> None:
    for value in good:
        check(value)
    for value in bad:
        with refused(UsageError, "out-of-range"):
            check(value)
