"""The studio as a process of its own, a browser to look at it with, and what tests ask of a page that is drawn.

The browser is Debian's Chromium, driven by Playwright; without either the tests skip and say which is missing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import pytest

BEGIN_S = 300.0
"""A start that takes longer has failed; how long it usually takes is measured in benchmarks/studio.py, not here."""
WAIT_MS = 300_000
"""How long a test waits for what a page will show; a busy machine is no failure."""
LOOK = Path(__file__).with_name("browser.js").read_text(encoding="utf-8")
SIZES = {"phone": (390, 844), "tablet": (1024, 768), "projector": (1920, 1080)}


def missing() -> str:
    """Why there is no browser here, in a line; empty when there is one."""
    if chromium() is None:
        return "no chromium (make apt-chromium)"
    return "" if importlib.util.find_spec("playwright") else "no playwright (pip install playwright)"


def chromium() -> str | None:
    """The path of a Chromium that is installed."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


class Server:
    """``retrompi studio`` on a free port of the loopback, with a store and folders of its own. ``words`` is what it has printed."""

    program: tuple[str, ...] = ("-m", "retrompi.cli.main")
    command: tuple[str, ...] = ("studio", "--no-browser")

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log = folder / "studio.log"
        self.store = Path(environment.get("RETROMPI_STORE", folder / "runs.db"))
        clean = {k: v for k, v in os.environ.items() if k not in ("RETROMPI_STORE", "FORCE_COLOR", "COLUMNS")}
        homes = {f"XDG_{what}_HOME": str(folder / what.lower()) for what in ("DATA", "CACHE", "CONFIG")}
        env = {**clean, **homes, "RETROMPI_STORE": str(self.store), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1", **environment}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, *self.program, *self.command, "--port", "0", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
                cwd=folder,
            )
        try:
            self.url = self._address()
        except BaseException:
            self.close()
            raise

    @property
    def words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def host(self) -> str:
        """``127.0.0.1:PORT``."""
        return urlsplit(self.url).netloc

    def _address(self) -> str:
        until = time.monotonic() + BEGIN_S
        while time.monotonic() < until:
            found = re.search(r"http://[\w.:\[\]]+(?=/\s)", self.words)
            if found and _answers(urlsplit(found[0])):
                self.answered = time.perf_counter()
                return found[0]
            if self.process.poll() is not None:
                raise AssertionError(f"the studio ended with {self.process.returncode}: {self.words}")
            time.sleep(0.02)
        raise AssertionError(f"the studio said no address within {BEGIN_S:g} s: {self.words}")

    @property
    def up(self) -> bool:
        """Whether the process lives."""
        return self.process.poll() is None

    def close(self) -> None:
        """End it and everything it has started."""
        self.process.send_signal(signal.SIGTERM)  # whoever runs in the background hears no SIGINT
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *what: object) -> None:
        self.close()


def _answers(address: SplitResult) -> bool:
    """Whether somebody listens there and says something."""
    with contextlib.suppress(OSError), contextlib.closing(HTTPConnection(str(address.hostname), address.port, timeout=BEGIN_S)) as line:
        line.request("GET", "/")
        return line.getresponse().status < 400
    return False


@dataclass
class Seen:
    """What a browser context has asked for and complained about."""

    server: Server
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, page: Any) -> Any:
        """Note everything that happens on ``page``."""
        page.on("console", lambda m: self.errors.append(f"{m.type}: {m.text}") if m.type == "error" else None)
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        return page

    @property
    def foreign(self) -> list[str]:
        """What was asked of any other host."""
        ours = (f"http://{self.server.host}/", f"ws://{self.server.host}/", "data:", f"blob:http://{self.server.host}/", "about:")
        return [u for u in self.asked if not u.startswith(ours)]


@contextlib.contextmanager
def session(browser: Any, server: Server, size: str = "tablet", **options: Any) -> Iterator[tuple[Any, Seen]]:
    """(page, what it does) of a new session: cookies and storage of its own. Nothing foreign may be asked for while it is open."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, base_url=server.url, **options)
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(LOOK)
    seen = Seen(server)
    context.on("request", lambda r: seen.asked.append(r.url))
    try:
        yield seen.watch(context.new_page()), seen
        assert seen.foreign == [], "a page asked another host for something"
    finally:
        context.close()


def settled(page: Any) -> None:
    """Wait until the page has been drawn and no callback is under way."""
    page.wait_for_selector("main h1", state="visible")
    # Not Playwright's "networkidle": it counts every request, and one that a browser begins and never ends, as it may for a page's icon
    # when the address changes, keeps it waiting for good.
    until(page, "looked.rested && looked.settled()")
    # What the page's scripts put right before a frame is drawn (assets/labels.js) is right in the second from now.
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def until(page: Any, expression: str, within: float = WAIT_MS / 1000) -> Any:
    """The value of a JavaScript expression once it is true. Playwright's own waiting evaluates texts, which the studio's pages forbid."""
    end = time.monotonic() + within
    while not (value := _now(page, expression)):
        assert time.monotonic() < end, f"within {within:g} s it never was so: {expression}"
        page.wait_for_timeout(40)
    return value


def _now(page: Any, expression: str) -> Any:
    """Its value; None while the page is being replaced by another."""
    from playwright.sync_api import Error

    try:
        return page.evaluate(expression)
    except Error as error:
        if "Execution context was destroyed" in str(error):
            return None
        raise


def walk(page: Any, most: int = 400) -> list[dict[str, Any]]:
    """What TAB reaches on a page, in its order, until the focus leaves it or comes round."""
    out: list[dict[str, Any]] = []
    page.evaluate("() => { document.activeElement?.blur?.(); window.getSelection()?.removeAllRanges(); }")
    for number in range(most):
        page.keyboard.press("Tab")
        here = page.evaluate("looked.focused()")
        if here is not None and here["walked"] and out and here["what"] == out[-1]["what"] and here["what"].startswith("iframe"):
            continue  # the focus goes on within the frame
        if here is None or here["walked"]:
            break
        page.evaluate(f"() => {{ document.activeElement.dataset.walked = '{number + 1}'; }}")
        out.append(here)
    page.evaluate("() => document.querySelectorAll('[data-walked]').forEach((e) => delete e.dataset.walked)")
    return out


# Of a module, not of the session: while Playwright runs, an event loop runs in this thread, which others that begin one do not bear.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium of the module's own."""
    why = missing()
    if why:
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        # As root, and in a container, Chromium has no sandbox to go into.
        made = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A studio that a module's tests share; what one session stores the others see, as in a lab room."""
    with Server(tmp_path_factory.mktemp("studio")) as server:
        yield server
