"""Every page there is, in a browser whose requests are watched: all kinds of reports, the whole documentation.

By hand, since it takes the better part of an hour (`python tests/axe_everything.py FOLDER [reports] [docs]`; FOLDER takes the reports that
are written, docs are those of `make docs` in out/site). It ends with 1 if a page breaks a rule of WCAG 2.2 AA that axe-core knows, asks
another host for anything, has a figure without name or numbers, or something that stands out of it.
With --shots every page is photographed at 390, 1280 and 1920 px, by day and by night, into FOLDER/shots.
"""

from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from axe import LOOKS, dressed, faults, unfolded, watched, wide
from browser import chromium
from report_pages import LONG, ROOT, SHORT

SIZES = ((390, 844), (1280, 900), (1920, 1080))
SITE = ROOT / "out" / "site"


def looked_at(page: Any, name: str, shots: Path | None) -> list[str]:
    """The faults of an open page in all its looks; photographed if there is a place for it."""
    found: dict[str, None] = {}
    for look in LOOKS:
        dressed(page, look)
        page.reload()  # the documentation takes the scheme that it finds
        unfolded(page)
        page.wait_for_timeout(300)  # colours fade from one scheme to the other
        found |= dict.fromkeys(f"{look}: {fault}" for fault in (*faults(page), *wide(page)))
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
        for width, height in SIZES:
            for scheme in ("light", "dark"):
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme=scheme)
                page.reload()
                page.wait_for_timeout(300)
                page.screenshot(path=str(shots / f"{name.replace('/', '-')}-{width}-{scheme}.png"), full_page=True)
    return list(found)


def reports(folder: Path) -> Iterator[tuple[str, str]]:
    """(name, address) of every kind of report, and of each paper's page."""
    for kind, write in {**SHORT, **LONG}.items():
        place = folder / kind.replace(" ", "-")
        place.mkdir(parents=True, exist_ok=True)
        page = write(place)
        for one in sorted(page.parent.glob("*.html")) if kind == "all papers" else [page]:
            yield f"{kind}-{one.stem}", one.as_uri()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """The site as a server has it: a page that is not there is its 404.html, whose addresses begin at the root."""

    def send_error(self, code: int, *_args: Any, **_values: Any) -> None:
        body = (SITE / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        pass


def documentation(base: str) -> Iterator[tuple[str, str]]:
    """Every page of the built site, and the one for what is not there."""
    for path in sorted(SITE.rglob("*.html")):
        name = path.relative_to(SITE).as_posix()
        yield name, f"{base}/{name}" if name != "404.html" else f"{base}/nowhere"


def main(folder: Path, what: set[str], photographed: bool) -> int:
    from playwright.sync_api import sync_playwright

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    sources: dict[str, Callable[[], Iterator[tuple[str, str]]]]
    sources = {"reports": partial(reports, folder), "docs": partial(documentation, base)}
    bad = count = 0
    with sync_playwright() as tool:
        chrome = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        for source in sorted(what or sources):
            options = {"base_url": base} if source == "docs" else {}
            for name, address in sources[source]():
                with watched(chrome, **options) as (page, foreign, errors):
                    page.goto(address)
                    wrong = looked_at(page, f"{source}-{name}", folder / "shots" if photographed else None)
                    wrong += [f"asks {url}" for url in foreign] + [f"error: {error}" for error in errors]
                count += 1
                bad += bool(wrong)
                print(f"{name}: {len(wrong) or 'nothing'} wrong", *wrong, sep="\n    ", flush=True)
        chrome.close()
    server.shutdown()
    print(f"{count} pages, {bad} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if w != "--shots"]
    if not words or set(words[1:]) - {"reports", "docs"}:
        sys.exit(__doc__)
    sys.exit(main(Path(words[0]).resolve(), set(words[1:]), "--shots" in sys.argv))
