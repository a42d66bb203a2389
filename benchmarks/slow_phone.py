"""How long a slow phone waits for the first figure of each page: ``python benchmarks/slow_phone.py [PAGE...]``.

A phone of 390 × 844 pixels with 1.6 Mbit/s, 150 ms of round trip and a processor four times slower than this one (as Chromium's own
profiles of "slow 4G"), with nothing kept from an earlier visit. ``figure`` is when the page's figure can be seen, ``alive`` when it answers
to the pointer (Plotly has drawn it, or the page's own script), ``controls`` when there are controls to use. A lab's step shows its figure
on request: ``asked`` is when its button was there and was clicked. The replay's ``timeline`` is a document of its own within the page. The
median of several loads.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

PAGES = {
    "/": "text",
    "/curves": "alive",
    "/whatif": "alive",
    "/anatomy": "alive",
    "/anatomy?view=two": "alive",
    "/replay": "timeline",
    "/scorecard": "controls",
    "/models": "controls",
    "/platforms": "controls",
    "/studies": "controls",
    "/labs": "controls",
    "/labs?lab=1&student=ann&step=3": "alive",
}
"""Page -> until when a load is looked at: those with a figure until it answers."""
_SEEN = """() => {
  const seen = window.__seen = window.__seen || {}, now = performance.now();
  const note = (what, there) => { if (there && seen[what] === undefined) seen[what] = now; };
  const box = (e) => { const b = e && e.getBoundingClientRect(); return Boolean(b && b.width > 40 && b.height > 40); };
  const some = (css) => [...document.querySelectorAll(css)].some(box);
  note('text', document.querySelector('main h1, h1'));
  note('controls', document.querySelector('#main .field :is(input, button)'));
  note('figure', some('.sketch svg, .js-plotly-plot .trace, .player svg.scene'));
  note('alive', some('.js-plotly-plot :is(.trace, .hm), .player svg.scene'));
  const run = document.querySelector('.lab-form .lab-tools button');
  if (run && seen.asked === undefined) { note('asked', run); run.click(); }
  return seen;
}"""
_FRAME = "() => [...document.querySelectorAll('canvas')].some((c) => c.getBoundingClientRect().height > 40)"
"""Of a timeline's document: whether it is drawn."""


# A frame without an origin would be a process of its own, on which a slow processor and a slow line would have to be imposed as well.
_CHROMIUM = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-features=IsolateSandboxedIframes"]


def _seal(browser: Any, url: str) -> None:
    """The predictions of lab 1, before which its step 3 is shut, with a browser that does not wait."""
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.goto("/labs?lab=1&student=ann&step=2")
    for task, answer in (("p-startup", "1 ms"), ("p-half", "4 KiB")):
        page.fill(f"#labs-task-{task} input[type=text]", answer)
    page.locator("#labs-task-p-better input[type=radio]").first.check()
    page.get_by_role("button", name="Seal my predictions").click()
    page.wait_for_selector(".lab-seal", state="detached")
    context.close()


def _drawn(frame: Any) -> bool:
    from playwright.sync_api import Error

    try:
        return bool(frame.evaluate(_FRAME))
    except Error:  # on its way to another document
        return False


def look(browser: Any, url: str, path: str, until: str, most_s: float) -> dict[str, float]:
    """Milliseconds until each thing is there, and the kilobytes that came over the line until ``until``."""
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 3}
    context = browser.new_context(base_url=url, **phone)
    try:
        page = context.new_page()
        line = context.new_cdp_session(page)
        line.send("Network.enable")
        line.send("Network.emulateNetworkConditions",
                  {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8})
        line.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        came = [0.0]
        line.on("Network.loadingFinished", lambda e: came.__setitem__(0, came[0] + e["encodedDataLength"]))
        page.goto(path, wait_until="commit", timeout=most_s * 1000)
        end, seen, at = time.monotonic() + most_s, {}, None
        while time.monotonic() < end and until not in seen:
            page.wait_for_timeout(50)
            seen = page.evaluate(_SEEN)
            if "timeline" not in seen and any(map(_drawn, page.frames[1:])):
                page.evaluate("() => { const seen = window.__seen; seen.timeline = performance.now(); seen.figure ??= seen.timeline; }")
                seen = page.evaluate(_SEEN)
            if at is None and "figure" in seen:
                at = came[0]
        return {**seen, "kB": came[0] / 1e3, **({"figure_kB": at / 1e3} if at is not None else {})}
    finally:
        context.close()


def main() -> None:
    from browser import Server, chromium
    from playwright.sync_api import sync_playwright

    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("page", nargs="*", help="pages to load; all by default")
    wanted.add_argument("--loads", type=int, default=3)
    wanted.add_argument("--most", type=float, default=90.0, help="seconds to wait")
    wanted.add_argument("--until", choices=["figure", "alive", "controls", "text", "timeline"], help="by default what the page comes to")
    wanted.add_argument("--fresh", action="store_true", help="a load is the first that a server, just started, is asked for")
    wanted.add_argument("--json", action="store_true")
    given = wanted.parse_args()
    pages = given.page or list(PAGES)
    rows = []
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server, sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium(), args=_CHROMIUM)
        look(browser, server.url, "/", "text", given.most)  # the server has begun
        if any("step=3" in page for page in pages) and not given.fresh:
            _seal(browser, server.url)

        def once(path: str) -> dict[str, float]:
            until = given.until or PAGES.get(path, "alive")
            if not given.fresh:
                return look(browser, server.url, path, until, given.most)
            with tempfile.TemporaryDirectory() as own, Server(Path(own)) as begun:
                return look(browser, begun.url, path, until, given.most)

        for path in pages:
            found = [once(path) for _ in range(given.loads)]
            keys = dict.fromkeys(k for f in found for k in f)
            rows.append({"page": path, **{k: round(statistics.median([f[k] for f in found if k in f]), 1) for k in keys}})
            if not given.json:
                shown = ", ".join(f"{k} {v / 1e3:.2f} s" if "kB" not in k else f"{k} {v:.0f}" for k, v in rows[-1].items() if k != "page")
                print(f"{path}: {shown} (load {os.getloadavg()[0]:.1f})", flush=True)
        browser.close()
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
