"""Response times of the studio as seen by a user: ``python benchmarks/studio.py [--json]``. Needs Chromium and playwright.

Each round starts a new server with an empty store and a browser without a cache. Measured, from outside the processes:

    start        from the command line to an answer at the address that it prints
    interactive  from the browser's request for the first page to its drawn cards with the navigation usable (a frame after them)
    curves       the same of the curve explorer, until the figure of its three curves is drawn
    whatif       from the key that moves the packet slider to the changed curve in the figure, every size simulated (nothing stored)
    again        the same back and forth, answered from the store
    page_NAME    from one page to another by the navigation until it is drawn

Medians over the rounds (and over the steps of the slider), with the slowest. A round takes about ten seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from browser import LOOK, Server, chromium, missing, until

WANTED = {"interactive": 2.0, "whatif": 1.0}
"""Limits in seconds set by issue 7."""
DRAWN = "document.querySelector('#start-cards .card') !== null && document.querySelector('.nav-link[aria-current=page]') !== null"


def _since(began: float) -> float:
    return time.perf_counter() - began


def _step(page: Any, parameter: str, key: str) -> float:
    """Seconds from a key press on a slider to a figure with a changed curve."""
    told = "JSON.stringify((looked.traces('whatif-figure') || []).filter((t) => t.name.startsWith('changed')).map((t) => t.y))"
    before = page.evaluate(told)
    page.locator(f"[data-name='{parameter}'] input[type=range]").focus()
    began = time.perf_counter()
    page.keyboard.press(key)
    # An aborted job has fewer points, never the same ones.
    until(page, f"{told} !== {json.dumps(before)} && {told} !== '[]'")
    return _since(began)


def one(folder: Path, tool: Any) -> dict[str, list[float]]:
    """The times of one round."""
    found: dict[str, list[float]] = {}
    began = time.perf_counter()
    with Server(folder) as server:
        browser = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        found["start"] = [server.answered - began]
        context = browser.new_context(viewport={"width": 1366, "height": 768}, base_url=server.url)
        context.add_init_script(LOOK)
        page = context.new_page()
        began = time.perf_counter()
        page.goto("/", wait_until="commit")
        until(page, DRAWN)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        found["interactive"] = [_since(began)]
        for name in [a.split("/")[-1] for a in page.evaluate("[...document.querySelectorAll('.nav-link')].map((a) => a.pathname)")]:
            if name and name not in ("curves", "whatif"):
                began = time.perf_counter()
                page.locator(f".nav-link[href='/{name}']").click()
                until(page, f"document.getElementById('page-{name}') !== null && looked.settled()")
                found[f"page_{name}"] = [_since(began)]
        began = time.perf_counter()
        page.locator(".nav-link[href='/curves']").click()
        until(page, "(looked.traces('curves-figure') || []).length >= 3")
        found["curves"] = [_since(began)]
        page.goto("/whatif")
        until(page, "(looked.traces('whatif-figure') || []).length > 0 && looked.settled()")
        found["whatif"] = [_step(page, "wmpi.library", "ArrowLeft") for _ in range(5)]
        found["again"] = [_step(page, "wmpi.library", key) for key in ("ArrowRight", "ArrowLeft", "ArrowRight")]
        browser.close()
    return found


def main() -> int:
    """Measures, prints, and exits with 1 if the issue's limits are exceeded."""
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ask.add_argument("--rounds", type=int, default=5)
    ask.add_argument("--json", action="store_true", help="print JSON")
    given = ask.parse_args()
    why = missing()
    if why:
        print(f"cannot measure: {why}", file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    every: dict[str, list[float]] = {}
    with sync_playwright() as tool, tempfile.TemporaryDirectory() as place:
        for i in range(given.rounds):
            for name, times in one(Path(place) / str(i), tool).items():
                every.setdefault(name, []).extend(times)
    rows = [{"what": n, "median_s": statistics.median(t), "slowest_s": max(t), "times": len(t), "wanted_s": WANTED.get(n)}
            for n, t in every.items()]
    if given.json:
        print(json.dumps(rows, indent=1))
    else:
        for r in rows:
            wanted = f"  (wanted: under {r['wanted_s']:g} s)" if r["wanted_s"] else ""
            print(f"{r['what']:<18} {r['median_s']:6.2f} s, slowest {r['slowest_s']:.2f} s of {r['times']}{wanted}")
    return int(any(r["wanted_s"] and r["median_s"] > r["wanted_s"] for r in rows))


if __name__ == "__main__":
    sys.exit(main())
