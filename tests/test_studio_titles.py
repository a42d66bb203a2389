"""Pages call runtimes, platforms and modes by what people call them; the names of the command line are in menus and under the pointer."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import Server, browser, session, settled, studio, until

from retrompi.base.translate import speaking
from retrompi.spec import registry
from retrompi.studio.components import titles
from retrompi.studio.curves import runs

__all__ = ["browser", "studio"]  # fixtures

SIZES = [0, 1024, 65536]


def quiet(_n: int, _of: int, _what: str) -> None:
    """A job's report that nobody reads."""


def test_a_runtime_is_called_as_the_field_does_in_a_line() -> None:
    called = {name: titles.runtime(name) for name in registry.models()}
    assert called["wmpi"] == "WMPI"
    assert called["nemesis:windows"] == "MPICH2 Nemesis on Windows"
    assert called["hpvm:blind-send"] == "HPVM (blind send)", "its title is a sentence"
    assert len(set(called.values())) == len(called), "two are never called the same"
    assert all(len(text) <= 40 for text in called.values())
    assert not [name for name, text in called.items() if text == name]
    assert titles.runtime("gone") == "gone", "a stored run may be of a runtime that there is no more"


def test_a_mode_is_told_in_words_and_in_the_readers_language() -> None:
    told = {m: titles.mode(m) for m in ("shared", "distributed", "split-cache", "server,server", "server,workstation")}
    assert list(told.values()) == ["on one host", "on two hosts", "split cache", "both on server", "server to workstation"]
    with speaking("de"):
        assert titles.mode("shared") == "auf einem Host"
    assert titles.modes(["shared", "split-cache"]) == [
        {"value": "shared", "label": "shared: both ranks on one host"}, {"value": "split-cache", "label": "split cache (split-cache)"},
    ]


def test_a_platform_that_is_a_file_is_not_read(tmp_path: Path) -> None:
    assert titles.platform("nt-pair") == registry.platform("nt-pair").title
    assert titles.platform("linux-p2-450*2@switch-100") == registry.platform("linux-p2-450*2@switch-100").title
    assert titles.platform(str(tmp_path / "mine.toml")) == str(tmp_path / "mine.toml")


def test_a_legend_has_lines_that_fit_a_phone_and_no_markup() -> None:
    name = titles.in_a_legend('run 7: <a href="x">%{y}</a> ' + "very long " * 30)
    lines = name.split("<br>")
    assert len(lines) == 3
    assert all(len(re.sub(r"&[#\w]+;", "?", line)) <= 40 for line in lines)
    assert "<a" not in name
    assert "%{" not in name
    assert name.endswith("…")


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two runtimes in two modes, with a stored run of the same platform and one of another over them."""
    folder = tmp_path_factory.mktemp("titles")
    places = (str(folder / "mine.db"), str(folder / "ours.db"))
    runs.keep(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    runs.keep(quiet, places, "nemesis:windows", "abe-windows", "split-cache", [], SIZES)
    wanted = [(m, "nt-pair", mode) for m in ("wmpi", "hpvm") for mode in ("shared", "distributed")]
    return {**runs.curves(quiet, places, wanted, SIZES, ["1", "2"]), "places": places}


def test_curves_have_titles_in_the_legend_and_names_under_the_pointer(answer: dict[str, Any]) -> None:
    from retrompi.studio.curves.drawing import curves_figure

    drawn = {str(t.name).replace("<br>", " "): t for t in curves_figure(answer, "time", published=False).data if t.name}
    assert list(drawn) == [
        "WMPI, on one host", "WMPI, on two hosts", "HPVM, on one host", "HPVM, on two hosts", "run 1: WMPI, pool 16 MiB, on one host",
        "run 2: MPICH2 Nemesis on Windows, split cache, Abe: Clovertown nodes on Gigabit Ethernet, Windows",
    ]
    assert drawn["HPVM, on two hosts"].hovertemplate.endswith("<br>hpvm, distributed, nt-pair<extra>simulated</extra>")


def test_the_menu_of_stored_runs_calls_them_the_same(answer: dict[str, Any]) -> None:
    labels = [o["label"] for o in runs.overlay_choices(answer["places"][0])]
    assert labels == [f"run {o['run']}: {o['name']} (simulated)" for o in reversed(answer["overlays"])]
    assert runs.overlay_name(answer["places"][0], "1") == f"run 1: {answer['overlays'][0]['name']}"
    assert runs.overlay_name(answer["places"][0], "77") == "77"


def test_a_long_legend_does_not_shrink_the_figure_of_a_phone(browser: Any, studio: Server) -> None:
    with session(browser, studio, "phone") as (page, seen):
        page.goto("/curves?mode=shared&mode=distributed")
        settled(page)
        until(page, "document.querySelectorAll('#curves-figure .legendtext').length === 9")  # six curves, three kinds of marks
        until(page, "document.querySelector('#curves-figure .main-svg').getBoundingClientRect().height > 430")  # 390 without it
        page.wait_for_timeout(500)
        ticks = page.evaluate("""() => [...document.querySelectorAll('#curves-figure .ytick text')]
            .map((t) => t.getBoundingClientRect()).map((b) => [b.top, b.bottom]).sort((a, b) => a[0] - b[0])""")
        assert len(ticks) > 4
        assert all(below[0] >= above[1] - 3 for above, below in pairwise(ticks)), "labels of the axis collide"
        assert seen.errors == []
