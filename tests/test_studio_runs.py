"""What the studio's pages of curves show: parameters, runs, uploaded curves, figures."""

from __future__ import annotations

import base64
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import refused
from studio_app import PATIENCE_S, UPDATE, app, client, draw, every, resources, words

from retrompi.base import units
from retrompi.base.errors import UsageError
from retrompi.spec import registry
from retrompi.studio.components import parameters, parts
from retrompi.studio.curves import runs
from retrompi.studio.jobs.resources import Resources

__all__ = ["app", "client", "draw", "resources"]  # fixtures


@for_each("model", registry.model_names())
def test_every_parameter_can_be_slid_and_says_what_it_rests_on(model: str) -> None:
    known = registry.model(model).calibrated
    platform = known.platforms[0] if known else "nt-pair"
    for mode in parameters.modes(platform)[:2]:
        for slot in parameters.slots(model, platform, mode):
            assert slot.help
            assert slot.source.startswith(("paper:", "doc:", "code:", "fit:", "assumed:"))
            if slot.choices:
                assert slot.base in slot.choices
                continue
            numbers = slot.numbers()
            assert numbers == sorted(set(numbers))
            assert not slot.texts or slot.texts[slot.position] == slot.base
            assert slot.range, slot
            for i, text in enumerate(slot.texts):
                assert slot.nearest(text) == i
                units.parse(text.replace(" ", ""), slot.unit)


def test_only_what_differs_is_an_override() -> None:
    known = parameters.slots("wmpi", "nt-pair", "shared")
    assert parameters.overrides(known, {"wmpi.packet": "128 KiB", "wmpi.pool": "16 MiB", "wmpi.event": ""}) == ["wmpi.pool=16MiB"]
    line = parameters.command_line("wmpi", "nt-pair", "server,server", ["wmpi.pool=16MiB"])
    assert line == "retrompi pingpong --model wmpi --platform nt-pair --mode server,server --set wmpi.pool=16MiB"


@for_each("name", ["../models/wmpi", "/tmp", "./x", "nope", ""])
def test_a_path_is_no_name(name: str, resources: Resources) -> None:
    for code, use in (
        ("unknown-model", lambda: parameters.slots(name, "nt-pair", "shared")),
        ("unknown-platform", lambda: parameters.slots("wmpi", name, "shared")),
        ("unknown-model", lambda: runs.curve(resources.places, name, "nt-pair", "shared", [0])),
    ):
        with refused(UsageError, code):
            use()


@pytest.fixture
def places(tmp_path: Path) -> runs.Places:
    return str(tmp_path / "theirs.db"), str(tmp_path / "ours.db")


SIZES = [0, *(1 << k for k in range(10, 23))]


def quiet(*_: Any) -> None:
    """Report nothing."""


def test_looking_leaves_the_users_store_alone_and_keeping_does_not(places: runs.Places) -> None:
    first = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert first["base"]["run"] is None
    assert not first["changed"]["found"]
    assert not Path(places[0] or "").exists()
    again = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert again["changed"]["found"]
    assert again["changed"]["rows"] == first["changed"]["rows"]
    kept = runs.keep(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert kept == {"run": 1, "there": False}
    assert runs.keep(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)["there"]
    found = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert found["changed"]["run"] == 1
    assert found["changed"]["rows"] == first["changed"]["rows"]
    options = runs.overlay_choices(places[0])
    assert [o["value"] for o in options] == ["1"]
    assert "pool 16 MiB" in options[0]["label"]
    json.dumps(found, allow_nan=False)


def collapse(rows: list[dict[str, Any]]) -> int:
    """The first size at which the bandwidth is less than half of what it was before."""
    return next(int(b["size_B"]) for a, b in pairwise(rows) if b["bandwidth_MBps"] < a["bandwidth_MBps"] / 2)


def test_the_packet_moves_the_collapse(places: runs.Places) -> None:
    slot = next(s for s in parameters.slots("wmpi", "nt-pair", "shared") if s.name == "wmpi.packet")
    assert {"32 KiB", "128 KiB", "512 KiB"} <= set(slot.texts)
    places_of = {}
    for packet in ("32KiB", "128KiB", "512KiB"):
        answer = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", [f"wmpi.packet={packet}", "wmpi.pool=16MiB"], SIZES)
        places_of[packet] = collapse(answer["changed"]["rows"])
    assert places_of["32KiB"] < places_of["128KiB"] < places_of["512KiB"]


def test_a_run_that_does_not_complete_is_a_result(places: runs.Places) -> None:
    answer = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.packet=1MiB"], SIZES)
    changed = answer["changed"]
    assert changed["outcome"] == "aborted"
    assert "pool" in changed["detail"]
    assert 0 < len(changed["rows"]) < len(answer["base"]["rows"]) == len(SIZES)


def test_published_statements_are_judged_on_the_very_curves_shown(places: runs.Places) -> None:
    wanted = [("wmpi", "nt-pair", "shared"), ("hpvm", "nt-pair", "nowhere")]
    answer = runs.curves(quiet, places, wanted, None, ["77"])
    assert len(answer["curves"]) == 1
    assert len(answer["problems"]) == 2
    assert {v["verdict"] for v in answer["verdicts"]} >= {"pass"}
    assert answer["marks"]
    json.dumps(answer, allow_nan=False)


def test_stored_runs_and_measured_curves_lie_over_the_others(places: runs.Places) -> None:
    from retrompi.measure.curves.imported import save
    from retrompi.measure.curves.series import Measured, Point, Provenance
    from retrompi.store import open_store
    from retrompi.studio.curves import drawing

    runs.keep(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    name = "<img src=x onerror=alert(1)>"
    points = tuple(Point(size_B=s, time_us=100.0 + s, bandwidth_MBps=s / (100.0 + s), repetitions=1) for s in (1, 1024))
    source = Provenance(tool="a tool", file="curve.txt", sha256="0" * 64)
    run, _ = save(open_store(places[0]), Measured("pingpong", points, source, 2), label=name)
    answer = runs.curves(quiet, places, [("wmpi", "nt-pair", "shared")], SIZES, ["1", str(run), "99"])
    assert [o["kind"] for o in answer["overlays"]] == ["simulated", "measured"]
    assert len(answer["problems"]) == 1
    assert "no run 99" in answer["problems"][0]
    figure = drawing.curves_figure(answer, "time")
    drawn = {str(t.name) for t in figure.data}
    assert any(n == "run 1: WMPI, pool 16 MiB, on one host" for n in drawn)
    # Plotly takes a legend's tags for formatting: a name from outside must have none.
    assert not any("<" in n.replace("<br>", "") for n in drawn)
    assert not any("<img" in str(getattr(t, "hovertemplate", "")) for t in figure.data)
    assert [o["value"] for o in runs.overlay_choices(places[0])] == [str(run), "1"]


TABLE = b"# way: one way\nsize_B,time_us\n0,90\n1,100\n1024,180\n1048576,30000\n"


def upload_body(contents: str, name: str, chosen: list[str]) -> dict[str, Any]:
    """What a browser posts of the curve explorer when a file was uploaded."""
    outputs = [("overlays", "options"), ("overlays", "value"), ("upload-said", "children"), ("upload", "contents")]
    return {
        "output": f"..{'...'.join(f'curves-{i}.{p}' for i, p in outputs)}..",
        "outputs": [{"id": f"curves-{i}", "property": p} for i, p in outputs],
        "inputs": [{"id": "curves-upload", "property": "contents", "value": contents}],
        "state": [{"id": "curves-upload", "property": "filename", "value": name},
                  {"id": "curves-overlays", "property": "value", "value": chosen}],
        "changedPropIds": ["curves-upload.contents"],
    }


def curves_body(overlays: list[str], by: str = "curves-overlays.value") -> dict[str, Any]:
    """What a browser posts of the curve explorer when other curves are chosen."""
    outputs = [("figure", "figure"), ("problems", "children"), ("statements", "children"), ("numbers", "children"), ("job", "data"),
               ("job-line", "children"), ("progress", "value"), ("progress", "hidden"), ("cancel", "hidden"),
               ("tick", "max_intervals")]
    inputs = [("models", "value", ["wmpi"]), ("platform", "value", "nt-pair"), ("modes", "value", ["shared"]),
              ("overlays", "value", overlays), ("sizes", "value", "0,1B,1KiB,1MiB"), ("series", "value", "bandwidth"),
              ("y", "value", "log"), ("published", "value", []), ("tick", "n_intervals", 1), ("cancel", "n_clicks", 0)]
    return {
        "output": f"..{'...'.join(f'curves-{i}.{p}' for i, p in outputs)}..",
        "outputs": [{"id": f"curves-{i}", "property": p} for i, p in outputs],
        "inputs": [{"id": f"curves-{i}", "property": p, "value": v} for i, p, v in inputs],
        "state": [{"id": "studio-tab", "property": "data", "value": "a-tab"}, {"id": "studio-letters", "property": "data", "value": 16}],
        "changedPropIds": [by],
    }


def test_an_uploaded_curve_is_drawn_counted_and_downloaded_by_its_owner_only(app: Any, client: Any, resources: Resources) -> None:
    def answered(overlays: list[str]) -> Any:
        until, by = time.monotonic() + PATIENCE_S, "curves-overlays.value"
        while True:
            got = client.post(UPDATE, json=curves_body(overlays, by)).json
            assert "curves-job" in got["response"], got
            if "curves-figure" in got["response"] or time.monotonic() > until:
                return got["response"]
            by = "curves-tick.n_intervals"

    raw = "data:text/csv;base64," + base64.b64encode(TABLE).decode()
    name = "=<b>%{x}</b>.csv"
    got = client.post(UPDATE, json=upload_body(raw, name, [])).json["response"]
    chosen = got["curves-overlays"]["value"]
    assert len(chosen) == 1
    assert chosen[0].startswith("upload:")
    assert {"value": chosen[0], "label": "your upload: b>.csv"} in got["curves-overlays"]["options"]
    broken = "data:text/csv;base64," + base64.b64encode(b"size_B,time_us\n1,ten\n").decode()
    both = client.post(UPDATE, json=upload_body(broken, "bad=<i>%{x}.csv", chosen)).json["response"]["curves-overlays"]["value"]
    assert both[0] == chosen[0]
    answer = answered([*both, "upload:no-such-upload"])
    problems = json.dumps(answer["curves-problems"])
    assert "no such upload" in problems
    assert "bad=<i>%{x}.csv:" in problems
    assert str(resources.folder) not in problems
    traces = answer["curves-figure"]["figure"]["data"]
    mine = next(t for t in traces if t["name"].endswith(", measured"))
    assert mine["y"] == pytest.approx([0.01, 1024 / 180, 1048576 / 30000])
    assert "<" not in mine["name"]
    assert "<extra></extra>" in mine["hovertemplate"], "it is no run of a store"
    assert "upload: b>.csv, MB/s" in json.dumps(answer["curves-numbers"])
    body = {
        "output": "curves-download.data", "outputs": {"id": "curves-download", "property": "data"},
        "inputs": [{"id": "curves-csv", "property": "n_clicks", "value": 1}],
        "state": [{"id": "curves-job", "property": "data", "value": answer["curves-job"]["data"]}],
        "changedPropIds": ["curves-csv.n_clicks"],
    }
    assert "upload: b>.csv,1024,180.0," in client.post(UPDATE, json=body).json["response"]["curves-download"]["data"]["content"]
    refused = client.post(UPDATE, json=upload_body("data:,plain", "x.csv", both)).json["response"]
    assert "curves-overlays" not in refused
    assert "not as a browser sends it" in json.dumps(refused["curves-upload-said"])

    stranger = app.server.test_client()
    assert stranger.get("/").status_code == 200
    seen = stranger.post(UPDATE, json=curves_body(chosen))
    assert "b>.csv" not in seen.text


def test_a_link_to_an_upload_is_its_sessions(app: Any, resources: Resources, draw: Any) -> None:
    assert draw("/curves")
    data = "data:text/csv;base64," + base64.b64encode(TABLE).decode()
    mine = resources.uploads.add("a-session-of-the-tests", "mine.csv", data, "curve")
    theirs = resources.uploads.add("another", "theirs.csv", data, "curve")
    trace = resources.uploads.add("a-session-of-the-tests", "lu.txt", data)
    content, _ = draw("/curves", f"?run=upload:{mine.id}&run=upload:{theirs.id}&run=upload:nonsense")
    menu = next(c for c in every(content) if getattr(c, "id", None) == "curves-overlays")
    assert menu.value == [f"upload:{mine.id}"]
    assert {o["label"] for o in menu.options} >= {"your upload: mine.csv"}
    told = [words(c) for c in every(content) if getattr(c, "className", "") == "notice"]
    assert len(told) == 1
    assert "another browser" in told[0]
    assert theirs.id not in str(content)
    assert trace.id not in str(menu.options)


def test_a_file_of_many_curves_fills_a_figure_and_no_more(places: runs.Places) -> None:
    file = str(Path(__file__).parent / "data" / "measured" / "imb2021.txt")
    files = {"upload:a": (file, "imb.txt"), "upload:b": (file, "imb.txt")}
    answer = runs.curves(quiet, places, [("wmpi", "nt-pair", "shared")], SIZES, ["upload:a", "upload:b"], files, ["gone"])
    assert 2 < len(answer["overlays"]) <= runs.MOST_CURVES - 1
    assert len({o["name"] for o in answer["overlays"]}) == len(answer["overlays"])
    assert answer["problems"][0] == "gone"
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize("name", ["<a href='javascript:x'>y</a>" * 3, "&" * 60, "%{customdata}" * 9, "plain.csv"])
def test_a_strangers_name_is_text_to_the_figures(name: str) -> None:
    from html import unescape

    from retrompi.studio.curves import drawing

    shown = drawing.plain(name, 40)
    assert len(shown) <= 40
    assert "<" not in shown
    assert "%{" not in shown
    cut = unescape(shown).removesuffix("…")
    assert cut
    assert name.startswith(cut)


def test_figures_show_what_was_answered(places: runs.Places) -> None:
    from retrompi.studio.curves import drawing

    answer = runs.curves(quiet, places, [("wmpi", "nt-pair", "shared"), ("winmpich", "nt-pair", "shared")], SIZES, [])
    for series in ("time", "bandwidth"):
        figure = drawing.curves_figure(answer, series)
        drawn = {t.name: list(t.y) for t in figure.data if t.name in ("WMPI", "WinMPICH")}
        column = {"time": "time_us", "bandwidth": "bandwidth_MBps"}[series]
        assert drawn["WMPI"] == [r[column] for r in answer["curves"][0]["rows"] if series == "time" or r["size_B"]]
    by = {size: parts.enlarge_letters(drawing.curves_figure(answer, "time"), size).layout.font.size for size in (8, 16, 24, 100, None, "x")}
    assert by[8] < by[16] < by[24] < by[100]
    assert by[16] == by[None] == by["x"]
    rows = drawing.number_rows([("a", answer["curves"][0]["rows"])], "time")
    assert [r["size_B"] for r in rows] == SIZES


def test_what_is_published_of_a_runtime_stands_on_its_what_if_as_on_its_curve(places: runs.Places) -> None:
    from retrompi.studio.curves.drawing import curves_figure, what_if_figure

    for sets in ([], ["wmpi.packet=32KiB"]):
        answer = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", sets)
        drawn = what_if_figure(answer, "bandwidth")
        stars = [list(t.y) for t in drawn.data if t.marker.symbol == "star" and t.y[0] is not None]
        assert stars == [[80.0], [3.0], [30.0]]
        curves = curves_figure(runs.curves(quiet, places, [("wmpi", "nt-pair", "shared")], None, []), "bandwidth")
        assert stars == [list(t.y) for t in curves.data if t.marker.symbol == "star" and t.y[0] is not None]
        assert "published, with reading tolerance" in [t.name for t in drawn.data]
    elsewhere = runs.what_if(quiet, places, "wmpi", "abe", "shared", [], SIZES)
    assert elsewhere["marks"] == [], "no paper measured it there"
