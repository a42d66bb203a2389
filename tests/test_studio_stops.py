"""Curves at the stops of a slider of What if: those of the runs themselves, asked for by a page of the studio and by nobody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from studio_app import JSON, app, client, resources

from retrompi.studio.components.parameters import slots
from retrompi.studio.curves import runs, slider_stops

__all__ = ["app", "client", "resources"]  # fixtures

HERE = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "sets": {}, "name": "wmpi.packet"}


def quiet(*_: Any) -> None:
    """Report nothing."""


def test_a_stop_is_the_run_of_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = (str(tmp_path / "theirs.db"), str(tmp_path / "ours.db"))
    wanted = {"128 KiB": [], "32 KiB": ["wmpi.packet=32KiB"], "1 MiB": ["wmpi.packet=1MiB"], "none": ["wmpi.packet=-1"]}
    monkeypatch.setattr(slider_stops, "MOMENT_S", 60.0)
    found = slider_stops.simulate(quiet, places, "wmpi", "nt-pair", "shared", wanted)
    assert list(found) == list(wanted)
    for text in ("128 KiB", "32 KiB", "1 MiB"):
        rows = runs.curve(places, "wmpi", "nt-pair", "shared", None, wanted[text])["rows"]
        assert [row[1:] for row in found[text]["rows"]] == [[r["time_us"], r["bandwidth_MBps"]] for r in rows]
    assert [found[text]["ended"] for text in wanted] == ["", "", "aborted", ""]
    assert found["none"]["rows"] == [], "it is refused, and told when the finger rests there"
    monkeypatch.setattr(slider_stops, "MOMENT_S", 0.0)
    assert list(slider_stops.simulate(quiet, places, "wmpi", "nt-pair", "shared", wanted)) == ["128 KiB"], "one at least"


def test_stops_are_asked_for_in_the_order_in_which_they_are_wanted(client: Any) -> None:
    texts = [*reversed(next(s.texts for s in slots("wmpi", "nt-pair", "shared") if s.name == "wmpi.packet"))]
    assert client.get("/whatif").status_code == 200
    found = client.post(slider_stops.WAY.prefix, data=json.dumps({**HERE, "texts": texts}), headers=JSON)
    assert found.status_code == 200
    assert list(found.json) == texts[: len(found.json)]
    wrong = client.post(slider_stops.WAY.prefix, data=json.dumps({**HERE, "sets": {"wmpi.library": "soon"}, "texts": texts}), headers=JSON)
    assert (wrong.status_code, wrong.json) == (200, {}), "told beside the entry"


def test_what_no_page_asks_is_refused_in_one_line(app: Any, client: Any) -> None:
    def post(body: Any, **headers: str) -> tuple[int, str]:
        got = client.post(slider_stops.WAY.prefix, data=body if isinstance(body, str) else json.dumps(body), headers={**JSON, **headers})
        return got.status_code, got.get_data(as_text=True)

    assert client.get("/whatif").status_code == 200
    wrong = [{"texts": ["33 KiB"]}, {"name": "wmpi.nope", "texts": []}, {"name": "wmpi.answer_wait", "texts": ["spin"]},
             {"texts": "128 KiB"}, {"texts": [1]}, {"model": ["wmpi"]}, {"model": "../wmpi"}, {"mode": "\x00"}]
    for body in ("", "{", "[" * 100_000, [], "x" * (slider_stops._MOST_B + 1), {}, *({**HERE, **one} for one in wrong)):
        status, said = post(body)
        assert (status, said.count("\n")) == (400, 1), (str(body)[:80], status, said[:200])
    assert post({**HERE, "texts": ["128 KiB"]}, Origin="http://elsewhere.example")[0] == 403
    assert client.get(slider_stops.WAY.prefix).status_code in (404, 405)
    stranger = app.server.test_client()
    assert stranger.post(slider_stops.WAY.prefix, data=json.dumps({**HERE, "texts": ["128 KiB"]}), headers=JSON).status_code == 403
