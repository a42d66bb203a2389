"""The lecturer's slides: every lab has some, their commands run, what is wrong in them is told by its line, nothing is fetched."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe
import pytest
from browser import WAIT_MS, browser
from cases import for_each

from retrompi.base.errors import InputError, UsageError
from retrompi.labs import lab as _lab
from retrompi.studio.labs import slides

__all__ = ["browser"]


@for_each("name", _lab.lab_names())
def test_every_lab_has_slides_that_say_what_is_not_settled(name: str) -> None:
    lab = _lab.lab(name)
    assert slides.count(lab) >= 7
    text = (lab.folder / slides.FILE).read_text(encoding="utf-8")
    for part in ("## Settled, and not settled", "## Discuss", "[predictions]"):
        assert part in text
    # What is to be predicted must not be seen before.
    assert text.index("[predictions]") < text.find("    retrompi ") or "    retrompi " not in text
    assert slides.FILE not in {f.name for f in lab.files}, "students do not get them"


@pytest.fixture(scope="module")
def decks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Lab -> its deck, written; those that take a second."""
    folder = tmp_path_factory.mktemp("decks")
    out = {}
    for key in ("03", "09", "11"):
        out[key] = folder / f"{key}.html"
        out[key].write_text(slides.deck(_lab.lab(key), str(folder / "runs.db")), encoding="utf-8")
    return out


def test_figures_are_made_of_the_commands_of_the_slides(decks: dict[str, Path]) -> None:
    page = decks["03"].read_text(encoding="utf-8")
    assert page.count("<section>") == slides.count(_lab.lab("03"))
    assert "retrompi pingpong --model winmpich" in page
    assert page.count('class="figure"') == 3
    assert "{sets}" not in page
    assert "Note:" not in page


OVER = """[...document.querySelectorAll(".slides > section")].filter((s) => {
  const was = s.style.display;
  s.style.display = "block";
  const over = s.scrollHeight > s.clientHeight + 1;
  s.style.display = was;
  return over;
}).length"""
"""How many slides are longer than the screen."""


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_they_are_shown_without_a_request(decks: dict[str, Path], browser: Any, size: tuple[int, int]) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    asked, failed = [], []  # type: tuple[list[str], list[str]]
    page.on("request", lambda r: asked.append(r.url))
    page.on("pageerror", lambda e: failed.append(str(e)))
    page.goto(f"{decks['03'].as_uri()}#/4")
    page.wait_for_function("document.querySelectorAll('.figure svg').length === 3", timeout=WAIT_MS)
    assert page.locator(".figure svg path, .figure svg polyline").count() > 0
    assert not failed
    assert [u for u in asked if not u.startswith(("file:", "data:", "blob:"))] == []
    if size[0] >= 1280:
        assert page.evaluate(OVER) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.close()


def test_they_keep_to_wcag(decks: dict[str, Path], browser: Any) -> None:
    context = browser.new_context(bypass_csp=True, viewport={"width": 1280, "height": 720})
    page = context.new_page()
    for key, number in (("03", 4), ("09", 1), ("11", 6)):
        page.goto(f"{decks[key].as_uri()}#/{number}")
        page.wait_for_selector("section.present h2")
        assert axe.violations(page) == []
    context.close()


def _with(tmp_path: Path, text: str) -> _lab.Lab:
    folder = tmp_path / "03-proxy"
    shutil.copytree(_lab.lab("03").folder, folder)
    (folder / slides.FILE).write_text(text, encoding="utf-8")
    return _lab.load(folder)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A\n\n[table]\n", "no command stands before this"),
        ("# A\n\n    retrompi studio\n", "is no command that slides can run"),
        ("# A\n\n    retrompi explain -m winmpich --mode distributed --size 1KiB\n\n[figure stage: x]\n", "did you mean 'stages'"),
        ("# A\n\n    retrompi pingpong -m winmpch --mode shared --sizes 1KiB\n", "winmpch"),
    ],
)
def test_what_is_wrong_in_slides_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(said)) as error:
        slides.deck(_with(tmp_path, text), str(tmp_path / "runs.db"))
    assert error.value.line in (3, 5)


def test_a_lab_without_slides_says_so(tmp_path: Path) -> None:
    lab = _with(tmp_path, "")
    (lab.folder / slides.FILE).unlink()
    assert slides.count(lab) == 0
    with pytest.raises(UsageError, match="has no slides"):
        slides.deck(lab)


def test_the_command_writes_them(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    place = tmp_path / "monday.html"
    done = retrompi("lab", "slides", "9", "-o", str(place), "--json")
    assert done.code == 0
    assert place.is_file()
    assert f'"slides": {slides.count(_lab.lab("09"))}' in done.out


def test_without_pyreveal_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slides.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=re.escape("pip install 'retrompi[slides]'")):
        slides.deck(_lab.lab("03"))
