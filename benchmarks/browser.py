"""How long people wait in the browser: ``python benchmarks/browser.py [drag] [visitor] [teacher] [--json]``. Needs Chromium and playwright.

    drag     a slider is dragged by 40 moves of the mouse, 50 ms apart, on the first page and on What if: how many figures were drawn, when
             the first, from a move to its figure, the longest time without one, and how long after the last move the last one came (on
             What if Plotly's)
    visitor  from a link to having changed a mechanism and seen its effect: the first page, a guess, a slider, a message that is played,
             the same change on What if
    teacher  from nothing to a class with five students who have answered: ``retrompi course start``, its page filled in, five phones
             that come in by their links, seal the predictions of lab 1, answer and check, and the teacher's page with them

``drag`` and ``visitor`` are measured as this machine is and with its processor slowed four-fold (``Emulation.setCPUThrottlingRate``; the
server is not slowed). Nobody reads or thinks here: the times are those for which the page lets one wait. 60 students at once are
benchmarks/class.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from browser import WAIT_MS, Server, chromium, missing, session, settled, until

MOVES, APART_MS = 40, 50
SLOWED = (1, 4)
STUDENTS = ("ann.bee", "bo.cole", "cy.dunn", "dee.els", "eve.fox")
Row = dict[str, Any]

_COUNT = """(css) => {
  const box = document.querySelector(css), drawn = window.__drawn = [], waits = window.__waits = [];
  let due = false, moved = null;
  window.addEventListener('input', () => { moved = performance.now(); }, true);
  new MutationObserver(() => {
    if (!due) requestAnimationFrame(() => {
      due = false;
      drawn.push(performance.now());
      if (moved !== null) waits.push(performance.now() - moved);
      moved = null;
    });
    due = true;
  }).observe(box, { childList: true, subtree: true, attributes: true, attributeFilter: ['d'] });
}"""
"""Notes when the curves in a figure have changed, once a frame, and how long after the last move of the slider."""


def slowed(page: Any, by: int) -> None:
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": by})


def dragged(page: Any, slider: Any, figure: str, what: str, by: int) -> Row:
    """Drags a slider from one end to the other."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    y, left, right = box["y"] + box["height"] / 2, box["x"] + 8, box["x"] + box["width"] - 8
    page.mouse.move(left, y)
    page.mouse.down()
    page.evaluate(_COUNT, figure)
    began = page.evaluate("performance.now()")
    for i in range(1, MOVES + 1):
        page.mouse.move(left + (right - left) * i / MOVES, y)
        page.wait_for_timeout(APART_MS)
    ended = page.evaluate("performance.now()")
    page.mouse.up()
    settled(page)
    page.wait_for_timeout(500)
    drawn = [t for t in page.evaluate("window.__drawn") if t >= began]
    during = [t for t in drawn if t <= ended]
    waits = page.evaluate("window.__waits")[: len(during)]
    gaps = [b - a for a, b in zip([began, *during], [*during, ended], strict=True)]
    return {"what": f"drag, {what}", "slowed": by, "figures": len(during), "first_s": (during[0] - began) / 1e3 if during else None,
            "move_to_figure_ms": statistics.median(waits) if waits else None, "longest_gap_s": max(gaps) / 1e3,
            "drag_s": (ended - began) / 1e3, "last_after_s": max(drawn[-1] - ended, 0) / 1e3 if drawn else None}


def drag(browser: Any, server: Server) -> list[Row]:
    rows = []
    for by in SLOWED:
        with session(browser, server, "tablet") as (page, _seen):
            page.goto("/")
            settled(page)
            page.locator("[data-guess]").last.click()
            slowed(page, by)
            rows.append(dragged(page, page.locator("input#start-quantum, #start-quantum input"), "#start-figure", "first page", by))
        with session(browser, server, "tablet") as (page, _seen):
            page.goto("/whatif")
            settled(page)
            until(page, "(looked.traces('whatif-figure') || []).length > 0")
            slowed(page, by)
            rows.append(dragged(page, page.locator("[data-name='wmpi.library'] input[type=range]"), ".held .drawn", "What if", by))
    return rows


def visitor(browser: Any, server: Server) -> list[Row]:
    rows = []
    for by in SLOWED:
        with session(browser, server, "phone", is_mobile=True, has_touch=True) as (page, _seen):
            slowed(page, by)
            began = time.perf_counter()
            at: dict[str, float] = {}

            def reached(name: str, expression: str, page: Any = page, at: dict[str, float] = at, began: float = began) -> None:
                until(page, expression)
                at[name] = time.perf_counter() - began

            page.goto("/", wait_until="commit")
            reached("the first curve and its question", "document.querySelectorAll('#start-figure svg .mark').length > 0")
            before = page.evaluate("document.querySelectorAll('#start-figure svg .mark').length")
            # Before Dash has come a guess does nothing.
            until(page, "document.querySelector('[data-guess]') !== null && looked.settled()")
            while not page.evaluate("document.querySelector('[data-guess][aria-pressed=true]') !== null"):
                page.locator("[data-guess]").last.tap()
            reached("guessed, the collapse seen", f"document.querySelectorAll('#start-figure svg .mark').length > {before}")
            slider = page.locator("input#start-quantum, #start-quantum input")
            slider.scroll_into_view_if_needed()
            box = slider.bounding_box()
            said = page.locator("#start-said").inner_text()
            page.touchscreen.tap(box["x"] + 12, box["y"] + box["height"] / 2)
            reached("mechanism changed, effect seen", f"document.querySelector('#start-said').innerText !== {json.dumps(said)}")
            page.locator("#start-play").tap()
            reached("a message plays", "document.querySelector('#start-player svg.scene') !== null")
            page.locator("#start-whatif").tap()
            reached("the same on What if", "(looked.traces('whatif-figure') || []).some((t) => t.name.startsWith('changed'))")
            rows += [{"what": f"visitor: {name}", "slowed": by, "after_s": seconds} for name, seconds in at.items()]
    return rows


class Starting(Server):
    """``retrompi course start``: first the page that starts a class, then the class."""

    command = ("course", "start", "--as-root", "--host", "127.0.0.1", "--no-browser")

    def _address(self) -> str:
        end = time.monotonic() + WAIT_MS / 1000
        while time.monotonic() < end:
            if found := re.search(r"http://127\.0\.0\.1:\d+/start/\S+", self.words):
                self.answered = time.perf_counter()
                return found[0]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no page that starts a class: {self.words}")


def _phone() -> Any:
    """`Phone` of benchmarks/class.py, and the right answers for a student."""
    spec = importlib.util.spec_from_file_location("class_at_once", Path(__file__).with_name("class.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def teacher(browser: Any, folder: Path) -> list[Row]:
    from retrompi.store import open_store

    known = _phone()
    rights = {who: known.right_answers(who, open_store(str(folder / "own.db"))) for who in STUDENTS}  # a student knows what to write
    began = time.perf_counter()
    at: dict[str, float] = {}
    with socket.socket() as free:  # the links are made before the class is served: they need its port
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with Starting(folder / "class", "--port", port) as server:
        at["the page that starts a class"] = server.answered - began
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(WAIT_MS)
        page.goto(server.url)
        page.fill("#name", "Parallel computing")
        page.fill("#students", "\n".join(STUDENTS))
        for box in page.locator("input[name=lab]").all():
            box.set_checked(box.get_attribute("value") == "01-latency-bandwidth")
        page.get_by_role("button", name="Start the class").click()
        page.wait_for_selector("tbody code")
        at["the class made, its links shown"] = time.perf_counter() - began
        links = [text for text in page.locator("tbody code").all_inner_texts() if "/join/" in text]
        lecturer = page.locator("tbody a").first.get_attribute("href")
        waits = known.Times()
        for n, (who, link) in enumerate(zip(STUDENTS, links, strict=True), 1):
            context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
            phone = context.new_page()
            phone.set_default_timeout(WAIT_MS)
            for _ in range(200):  # the class's own server begins when the class is made
                if (answer := _open(phone, link)) and answer.status < 400:
                    break
                time.sleep(0.1)
            phone.get_by_role("button").click()
            phone.wait_for_url(lambda url: "/join/" not in url)
            if n == 1:
                at["the first student is in"] = time.perf_counter() - began
            phone.goto(f"{link.partition('/join/')[0]}/labs?lab=01-latency-bandwidth")
            phone.wait_for_selector("#labs-step-title")
            student = known.Phone(phone, rights[who], waits)
            while student.step() and "check" not in phone.locator("#labs-summary").inner_text():
                pass
            context.close()
            if n in (1, len(STUDENTS)):
                at[f"{n} of {len(STUDENTS)} students answered and checked"] = time.perf_counter() - began
        page.goto(str(lecturer))
        page.get_by_role("button").click()
        page.wait_for_url(lambda url: "/join/" not in url)
        page.goto(f"{str(lecturer).partition('/join/')[0]}/course/teacher")
        rows = page.locator("#who tbody tr").all_inner_texts()
        at["the teacher sees all five"] = time.perf_counter() - began
        answered = sum(bool(re.search(r"\d+/22", row)) for row in rows)
        page.close()
    asked = [value for values in waits.of.values() for value in values]
    rows: list[Row] = [{"what": f"teacher: {name}", "after_s": seconds} for name, seconds in at.items()]
    rows.append({"what": "teacher: students with points", "of": len(STUDENTS), "points": answered})
    rows.append({"what": "teacher: a student's waits", "times": len(asked), "median_s": statistics.median(asked), "longest_s": max(asked)})
    return rows


def _open(page: Any, link: str) -> Any:
    from playwright.sync_api import Error

    try:
        return page.goto(link)
    except Error:
        return None


def main() -> int:
    """Measures and prints; 2 without a browser."""
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ask.add_argument("what", nargs="*", choices=["drag", "visitor", "teacher"], default=["drag", "visitor", "teacher"])
    ask.add_argument("--json", action="store_true", help="print JSON")
    given = ask.parse_args()
    if why := missing():
        print(f"cannot measure: {why}", file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    rows: list[Row] = []
    load = os.getloadavg()[0]
    with sync_playwright() as tool, tempfile.TemporaryDirectory() as place:
        browser = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        if {"drag", "visitor"} & set(given.what):
            with Server(Path(place) / "studio") as server:
                with session(browser, server) as (page, _seen):  # the server has begun
                    page.goto("/whatif")
                    settled(page)
                rows += drag(browser, server) if "drag" in given.what else []
                rows += visitor(browser, server) if "visitor" in given.what else []
        if "teacher" in given.what:
            rows += teacher(browser, Path(place))
        browser.close()
    if given.json:
        print(json.dumps({"load": load, "rows": rows}, indent=1))
        return 0
    for row in rows:
        numbers = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items() if k != "what")
        print(f"{row['what']:<50} {numbers}")
    print(f"load before: {load:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
