"""The front page's story: its numbers are those of the models as they are, and its curve follows a finger and a keyboard."""

from __future__ import annotations

from typing import Any

from browser import Server, browser, session, settled, studio, until

from retrompi.studio.curves import story
from retrompi.studio.requests import shipped_figures

__all__ = ["browser", "studio"]  # fixtures


def test_the_table_has_every_stop_of_the_sliders() -> None:
    told = shipped_figures.answer("/")
    assert told is not None, "what it rests on has changed: packaging/judged.py figures"
    assert (told["packets"], told["quanta"], told["sizes"]) == (list(story.PACKETS), list(story.QUANTA), list(story.SIZES))
    assert [len(row) for row in told["rates"]] == [len(story.QUANTA)] * len(story.PACKETS)
    assert {len(curve) for row in told["rates"] for curve in row} == {len(story.SIZES)}
    assert len(told["stars"]) == 3


def test_a_visitor_guesses_drags_and_plays(browser: Any, studio: Server) -> None:
    with session(browser, studio, "phone") as (page, seen):
        page.goto("/")
        settled(page)
        points = "document.querySelectorAll('#start-figure svg .mark').length"
        asked = page.evaluate(points)
        assert page.locator("#start-after").is_hidden()
        page.get_by_role("button", name="It falls much further").click()
        until(page, f"{points} > {asked}")
        assert page.locator("#start-said").inner_text().startswith("Right:")
        assert page.evaluate("looked.overflow()") == []
        box = page.locator("#start-figure").bounding_box()
        assert page.locator("#start-figure svg").bounding_box()["width"] <= box["width"] + 1, "the figure is cut"
        slider = page.locator("input#start-quantum, #start-quantum input")
        slider.focus()
        for _ in story.QUANTA:
            page.keyboard.press("ArrowLeft")
        until(page, "document.querySelector('#start-said').textContent.includes('a turn of 15 ms')")
        assert "quantum%3D15" in page.locator("#start-whatif").get_attribute("href")
        page.get_by_role("button", name="Play one message").click()
        until(page, "document.querySelector('#start-player svg.scene') !== null")
        assert seen.errors == []
