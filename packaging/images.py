"""The two images of README.md, of the product as it is: ``make images``.

A page of the studio that this starts, and the page of the main paper, as Debian's Chromium shows them in the light scheme.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import LOOK, WAIT_MS, Server, chromium, missing, settled, until  # noqa: E402

FOLDER = ROOT / "docs" / "img"
WHAT_IF = "/whatif?model=wmpi&mode=shared&set=wmpi.packet%3D32KiB&series=bandwidth"


def open_page(browser: Any, width: int, height: int) -> Any:
    """A page of that many CSS pixels."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="light")
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(LOOK)
    return context.new_page()


def take_studio(browser: Any, folder: Path) -> None:
    """A what-if, once its curve is drawn."""
    with Server(folder) as server:
        page = open_page(browser, 1366, 840)
        page.goto(server.url + WHAT_IF)
        settled(page)
        until(page, "document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length >= 2")
        if told := page.locator("main .notice:visible").all_inner_texts():
            sys.exit(f"the studio says of {WHAT_IF}: {told[0]}")
        page.screenshot(path=FOLDER / "studio.png")


def take_report(browser: Any, folder: Path) -> None:
    """The beginning of the main paper's page."""
    command = [sys.executable, "-m", "retrompi.cli.main", "reproduce", "baker-fox", "--out", str(folder / "report")]
    environment = os.environ | {"RETROMPI_STORE": str(folder / "runs.db")}
    subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)  # 1: statements fail
    page = open_page(browser, 1500, 1700)
    page.goto((folder / "report" / "baker-fox.html").as_uri())
    until(page, "document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length >= 12")
    page.screenshot(path=FOLDER / "report.png")


def main() -> None:
    """Take both."""
    if why := missing():
        sys.exit(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool, tempfile.TemporaryDirectory() as scratch:
        browser = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        take_studio(browser, Path(scratch) / "studio")
        take_report(browser, Path(scratch))
        browser.close()
    print("docs/img/studio.png and docs/img/report.png: look at them")


if __name__ == "__main__":
    main()
