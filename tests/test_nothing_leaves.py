"""Pages of every kind that retrompi writes, opened in a browser whose requests are watched: nothing leaves the machine and no button
offers to send a figure away; no rule of WCAG 2.2 AA that axe-core knows is broken, on a phone by day and on a desk by night; every figure
has a name and its numbers behind it; nothing stands out of the page.

The studio's pages are watched in tests/test_studio_browser.py and test_studio_axe.py, the course's in tests/test_course_axe.py, the
documentation's in tests/test_docs_site.py; tests/axe_everything.py opens all there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe import LOOKS, dressed, faults, unfolded, watched, wide
from browser import browser  # noqa: F401  (a fixture)
from report_pages import SHORT


@pytest.mark.parametrize("kind", SHORT)
def test_a_page_keeps_to_itself_and_is_usable_by_all(kind: str, tmp_path: Path, browser: Any) -> None:  # noqa: F811
    path = SHORT[kind](tmp_path)
    with watched(browser) as (page, foreign, errors):
        page.goto(path.as_uri())
        wrong: list[str] = []
        for look in LOOKS:
            dressed(page, look)
            unfolded(page)
            wrong += [f"{look}: {fault}" for fault in (*faults(page), *wide(page))]
    assert wrong == []
    assert foreign == []
    assert errors == []


def test_what_is_wrong_is_found(tmp_path: Path, browser: Any) -> None:  # noqa: F811
    """The examination itself: a page with one fault of each kind."""
    page_file = tmp_path / "bad.html"
    page_file.write_text(
        '<!doctype html><html lang="en"><title>Bad</title><body><img src="http://127.0.0.1:9/x.png">'
        '<p style="color:#bbb;background:#fff">faint words</p><figure><div class="figure"></div></figure>'
        '<figure><div class="figure" role="figure" aria-label="a curve"></div><button>Share chart</button></figure>'
        '<div style="width:3000px">long</div></body></html>',
        encoding="utf-8",
    )
    with watched(browser) as (page, foreign, _errors):
        page.goto(page_file.as_uri())
        found = " ".join(faults(page) + wide(page))
    assert foreign == ["http://127.0.0.1:9/x.png"]
    for what in ("image-alt", "color-contrast", "no name", "no numbers behind it", "offers", "too wide"):
        assert what in found, what
