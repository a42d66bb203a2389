"""Nothing leaves the machine: pages of every kind, opened in a browser whose requests are watched, ask no other host for anything and
offer no button that would send a figure away. The studio's pages are watched in tests/test_studio_browser.py and test_studio_axe.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import WAIT_MS, browser, until  # noqa: F401  (a fixture)
from click.testing import CliRunner

from retrompi.cli.main import cli

SENDS = ("share", "cloud", "chart studio", "chart-studio", "edit in", "upload")
CURVE = ["-m", "wmpi", "--mode", "shared"]
HALO = ["halo", "ranks=4", "reps=2", "size=10000"]


def _run(folder: Path, *words: str) -> None:
    done = CliRunner().invoke(cli, ["--store", str(folder / "runs.db"), *words], catch_exceptions=False)
    assert done.exit_code in (0, 1), done.output


REPORTS: dict[str, Callable[[str], list[list[str]]]] = {
    "curve": lambda page: [["pingpong", *CURVE, "--sizes", "0,1KiB,64KiB", "-o", page]],
    "message": lambda page: [["explain", *CURVE, "--size", "1KiB", "-o", page]],
    "timeline": lambda page: [["replay", "examples/traces/jacobi-4.tar.zst", "-m", "wmpi", "-p", "nt-cluster", "--timeline", page]],
    "why": lambda page: [["why", *HALO, "--a", "model=wmpi", "--b", "model=winmpich", "-o", page]],
    "study": lambda page: [
        ["sweep", "bf-wmpi-shared", "--vary", "wmpi.packet=64KiB,256KiB", "--name", "one"],
        ["study", "show", "one", "-o", page],
    ],
}


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_fetches_nothing_and_sends_nothing(kind: str, tmp_path: Path, browser: Any) -> None:  # noqa: F811
    page = tmp_path / f"{kind}.html"
    for words in REPORTS[kind](str(page)):
        _run(tmp_path, *words)
    quiet(browser, page)


def quiet(browser: Any, path: Path) -> None:  # noqa: F811
    """Open a page, wait for its figures, and look at what it asked for and what its figures offer."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    errors: list[str] = []
    try:
        context.on("request", lambda r: asked.append(r.url))
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda e: errors.append(str(e)))
        page.goto(path.as_uri())
        if page.evaluate("() => document.getElementById('figures') !== null"):
            page.evaluate("() => document.querySelector('.figure').scrollIntoView()")
            until(page, "document.documentElement.dataset.plotted === '1'")
        offered = page.evaluate(
            "() => [...document.querySelectorAll('.modebar-btn, button, a')].map((e) => `${e.dataset.title || ''} ${e.textContent}`)"
        )
    finally:
        context.close()
    assert errors == []
    assert [u for u in asked if not u.startswith(("file:", "data:", "blob:"))] == []
    assert [o for o in offered if any(word in o.lower() for word in SENDS)] == []
