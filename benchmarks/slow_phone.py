"""How long a slow phone waits for the first figure of each page: ``python benchmarks/slow_phone.py [PAGE...]``.

A phone of 390 × 844 pixels with 1.6 Mbit/s, 150 ms of round trip and a processor four times slower than this one (as Chromium's own
profiles of "slow 4G"), with nothing kept from an earlier visit. ``figure`` is when the page's figure can be seen, ``alive`` when it answers
to the pointer (Plotly has drawn it), ``controls`` when there are controls to use. The median of several loads.
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
    "/": "",
    "/curves": "curves-figure",
    "/whatif": "whatif-figure",
    "/anatomy": "anatomy-scene",
    "/replay": "replay-timeline",
    "/scorecard": "",
    "/models": "",
    "/platforms": "",
    "/studies": "",
    "/labs": "",
}
"""Page -> the id of its first figure; without one the first text of the page counts."""
_SEEN = """() => {
  const seen = window.__seen = window.__seen || {}, now = performance.now();
  const note = (what, there) => { if (there && seen[what] === undefined) seen[what] = now; };
  const box = (e) => { const b = e && e.getBoundingClientRect(); return Boolean(b && b.width > 40 && b.height > 40); };
  note('text', document.querySelector('main h1, h1'));
  note('controls', document.querySelector('#main .field :is(input, button)'));
  note('figure', box(document.querySelector('.sketch svg, .js-plotly-plot .trace, .timeline canvas, #anatomy-scene svg')));
  note('alive', document.querySelector('.js-plotly-plot .trace, .timeline canvas, #anatomy-scene svg'));
  return seen;
}"""


def look(browser: Any, url: str, path: str, until: str, most_s: float) -> dict[str, float]:
    """Milliseconds until each thing is there, and the kilobytes that came over the line until ``until``."""
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 3}
    context = browser.new_context(base_url=url, **phone)
    try:
        page = context.new_page()
        line = context.new_cdp_session(page)
        line.send("Network.enable")
        line.send("Network.emulateNetworkConditions",
                  {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8})  # fmt: skip
        line.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        came = [0.0]
        line.on("Network.loadingFinished", lambda e: came.__setitem__(0, came[0] + e["encodedDataLength"]))
        page.goto(path, wait_until="commit", timeout=most_s * 1000)
        end, seen, at = time.monotonic() + most_s, {}, None
        while time.monotonic() < end and until not in seen:
            page.wait_for_timeout(50)
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
    wanted.add_argument("page", nargs="*", help="pages to load; all that have a figure by default")
    wanted.add_argument("--loads", type=int, default=3)
    wanted.add_argument("--most", type=float, default=90.0, help="seconds to wait")
    wanted.add_argument("--until", default="alive", choices=["figure", "alive", "controls", "text"])
    wanted.add_argument("--fresh", action="store_true", help="a load is the first that a server, just started, is asked for")
    wanted.add_argument("--json", action="store_true")
    given = wanted.parse_args()
    pages = given.page or [p for p, figure in PAGES.items() if figure]
    rows = []
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server, sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        look(browser, server.url, "/", "text", given.most)  # the server has begun

        def once(path: str) -> dict[str, float]:
            if not given.fresh:
                return look(browser, server.url, path, given.until, given.most)
            with tempfile.TemporaryDirectory() as own, Server(Path(own)) as begun:
                return look(browser, begun.url, path, given.until, given.most)

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
