"""axe-core in a page: what breaks WCAG 2.2 at level AA, as one line a fault. It comes with axe-playwright-python; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from browser import WAIT_MS, until

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]
LOOKS = {"phone": (390, 844, "light"), "desk": (1280, 900, "dark")}
"""What a page is looked at as: width, height, scheme."""
SENDS = ("share", "cloud", "chart studio", "chart-studio", "edit in", "upload")
"""Words of a button of a figure that would send it away."""


def source() -> str:
    """axe-core's script."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Any) -> list[str]:
    """The faults of a page as ``rule: element: what is wrong``. Its context has to be made with ``bypass_csp``."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.add_script_tag(content=source())
    found = page.evaluate("(levels) => axe.run(document, { runOnly: levels, resultTypes: ['violations'] })", LEVELS)
    return [
        f"{v['id']}: {' '.join(str(t) for t in node['target'])}: {' '.join(str(node.get('failureSummary', '')).split())[:220]}"
        for v in found["violations"] for node in v["nodes"]
    ]


@contextmanager
def watched(browser: Any, **options: Any) -> Iterator[tuple[Any, list[str], list[str]]]:
    """(a page, what it asks of others, its errors), as a phone; what a page asks of its own file or server is not listed."""
    width, height, scheme = LOOKS["phone"]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True, **options)
    foreign: list[str] = []
    errors: list[str] = []
    own = ("file:", "data:", "blob:", "about:", str(options.get("base_url") or "file:"))
    try:
        context.on("request", lambda r: None if r.url.startswith(own) else foreign.append(r.url))
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda e: errors.append(str(e)))
        yield page, foreign, errors
    finally:
        context.close()


def dressed(page: Any, look: str) -> None:
    """The page as on another screen."""
    width, height, scheme = LOOKS[look]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)


def unfolded(page: Any) -> None:
    """Open what is folded and wait for the figures, as one who reads all of a page has them."""
    page.evaluate("() => document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    if page.evaluate("() => document.getElementById('figures') !== null"):
        page.evaluate("() => document.querySelector('.figure').scrollIntoView()")
        until(page, "document.documentElement.dataset.plotted === '1'")


def faults(page: Any) -> list[str]:
    """What is wrong with a page that is open: rules broken, figures without a name or without numbers behind them, offers to send."""
    dumb = page.evaluate(
        """() => [...document.querySelectorAll('figure, .figure, [role=figure]')].filter((e) => {
          const drawing = e.matches('[role]') ? e : e.querySelector('[role=img], [role=group], [role=application], [role=figure]');
          if (!drawing && e.closest('figure [role=img], figure [role=figure], .figure[role]')) return false;
          return !drawing || ((drawing.getAttribute('aria-label') || drawing.getAttribute('aria-labelledby') || '').length < 4);
        }).map((e) => `no name: ${e.outerHTML.slice(0, 120)}`)"""
    )
    bare = page.evaluate(
        """() => [...document.querySelectorAll('.figure[role]')]
          .filter((e) => !e.closest('figure')?.querySelector('table') && !document.querySelector('#numbers ~ * table'))
          .map((e) => `no numbers behind it: ${e.outerHTML.slice(0, 120)}`)"""
    )
    offered = page.evaluate(
        """() => [...document.querySelectorAll('.modebar-btn, figure button, figure a')]
          .map((e) => `${e.dataset.title || ''} ${e.textContent}`)"""
    )
    return [*violations(page), *dumb, *bare, *(f"offers {o}" for o in offered if any(word in o.lower() for word in SENDS))]


def wide(page: Any) -> list[str]:
    """What stands out of the page to the right, unless something around it scrolls."""
    return list(page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth + 1 ? [] : [...document.querySelectorAll('body *')].filter((e) => {
          const box = e.getBoundingClientRect();
          if (!box.width || box.right <= innerWidth + 1 || getComputedStyle(e).position === 'fixed') return false;
          for (let up = e.parentElement; up; up = up.parentElement)
            if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(up).overflowX)) return false;
          return true;
        }).map((e) => `too wide: ${e.outerHTML.slice(0, 120)}`)"""
    ))
