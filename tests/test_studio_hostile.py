"""The studio against whoever means it ill: it stays up, says a line at most, leaks nothing and executes nothing.

A real server process is asked over sockets, so that no client library makes a request more polite than it is.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser import Server, browser, session, settled, until

import retrompi
from retrompi.base import paths
from retrompi.studio.requests.page import Page, pages

__all__ = ["browser"]  # a fixture

SECRET = "s3cret-of-the-environment-7261"
INSIDE = "inside-of-a-strangers-file-5522"
PATIENCE_S = 300
UPDATE = "/_dash-update-component"
JSON = {"Content-Type": "application/json"}
SCRIPT = "<img src=x onerror=\"window.hacked='yes'\"><script>window.hacked='yes'</script>"


class Attacked(Server):
    """A studio with something to steal: a secret in its environment, files beside it, and a model that tells when it is imported."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.marker = folder / "executed"
        self.evil = folder / "evil"
        self.evil.mkdir()
        (self.evil / "__init__.py").write_text(f"open({str(self.marker)!r}, 'w').write('executed')\n")
        (folder / "evil.py").write_text(f"open({str(self.marker)!r}, 'w').write('executed')\n")
        self.file = folder / "private.toml"
        self.file.write_text(f'name = "{INSIDE}"\n')
        super().__init__(folder, RETROMPI_SECRET=SECRET)

    def leaked(self, text: str) -> list[str]:
        """What of ``text`` nobody should have been told."""
        homes = {str(paths.models_dir().parent.resolve()), str(Path(retrompi.__file__).resolve().parent), sys.prefix, str(self.folder)}
        signs = ("Traceback (most recent", 'File "/', "root:x:0", SECRET, INSIDE, "site-packages", *homes)
        return [s for s in signs if s in text]

    def raw(self, data: bytes, within: float = PATIENCE_S) -> tuple[int, str]:
        """(status, everything else) of what is answered to these bytes; status 0 where the connection is just closed."""
        with socket.create_connection(self.host.split(":"), timeout=within) as line:  # type: ignore[arg-type]
            parts = []
            try:
                line.sendall(data)
                while part := line.recv(1 << 16):
                    parts.append(part)
            except (ConnectionResetError, BrokenPipeError):
                pass  # it may hang up on what it does not want to hear
        text = b"".join(parts).decode("utf-8", "replace")
        status = re.match(r"HTTP/1\.[01] (\d{3})", text)
        return int(status[1]) if status else 0, text

    def ask(self, path: str, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None) -> tuple[int, str]:
        """A well-formed request, its path as it is given."""
        given = {"Host": self.host, "Connection": "close", **(headers or {})}
        if body or method == "POST":
            given.setdefault("Content-Length", str(len(body)))
        head = "".join(f"{k}: {v}\r\n" for k, v in given.items())
        return self.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body)

    def cookie(self) -> str:
        """The cookie of a new session."""
        found = re.search(r"Set-Cookie: ([^;\r]+)", self.ask("/")[1])
        assert found is not None
        return found[1]

    @cached_property
    def visitor(self) -> str:
        """The cookie of the one who asks."""
        return self.cookie()

    def post(self, body: Any, **headers: str) -> tuple[int, str]:
        """A callback of a session."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(UPDATE, "POST", data, {**JSON, "Cookie": self.visitor, **headers})

    def page(self, path: str, search: str = "") -> dict[str, Any]:
        """The callback that asks for a page."""
        asked = next(c for c in self.callbacks() if "main.children" in c["output"])
        return {
            "output": asked["output"],
            "outputs": [{"id": i, "property": p} for i, p in (o.split(".") for o in asked["output"].strip(".").split("..."))],
            "inputs": [{"id": "studio-address", "property": "pathname", "value": path}],
            "state": [{"id": "studio-address", "property": "search", "value": search}],
            "changedPropIds": ["studio-address.pathname"],
        }

    def works(self) -> bool:
        """Whether it shows its scorecard."""
        status, text = self.post(self.page("/scorecard"))
        return self.up and status == 200 and "scorecard-list" in text

    def callbacks(self) -> list[dict[str, Any]]:
        """What pages may ask of the server."""
        status, text = self.ask("/_dash-dependencies")
        assert status == 200
        found: list[dict[str, Any]] = json.loads(text.partition("\r\n\r\n")[2])
        return [c for c in found if not c.get("clientside_function")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    made = Attacked(tmp_path_factory.mktemp("hostile") / "home")
    with made:
        yield made
        assert made.up, "the studio is down"
        assert made.works(), "the studio does not show its pages any more"
        assert not made.marker.exists(), "a stranger's file was executed"
        assert SECRET not in made.words
        assert INSIDE not in made.words


@pytest.fixture(autouse=True)
def _unharmed(server: Attacked) -> Iterator[None]:
    yield
    assert server.up
    assert not server.marker.exists(), "a stranger's file was executed"


CLIMBS = (
    "../../../../../../../../etc/passwd",
    "..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%252f..%252f..%252fetc%252fpasswd",
    "....//....//....//etc/passwd",
    "..\\..\\..\\etc\\passwd",
    "..%5c..%5cetc%5cpasswd",
    "%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    "file:///etc/passwd",
    "studio.css%00.js",
    "../app.py",
    "..%2fguard.py",
    "../pages/scorecard.py",
    "../../store/database.py",
    ".%2e/.%2e/evil.py",
    "%00",
    "con",
    ".",
    "..",
)


class TestPaths:
    @pytest.mark.parametrize(
        "start",
        [
            "/assets/",
            "/_dash-component-suites/dash/",
            "/_dash-component-suites/retrompi/",
            "/",
            "/login/",
            "/_favicon.ico/",
            "/_dash-layout/",
            "/scorecard/",
        ],
    )
    def test_no_path_leads_out_of_the_assets(self, server: Attacked, start: str) -> None:
        for climb in CLIMBS:
            status, text = server.ask(start + climb)
            page = status == 200 and start + climb in ("/.", "/..", "/scorecard/.", "/scorecard/..")
            assert page or 300 <= status < 500 or (status == 200 and "<!DOCTYPE html>" in text), (start + climb, status)
            assert not server.leaked(text), (start + climb, text[-300:])
            assert "import annotations" not in text, f"{start + climb} serves a source"

    def test_only_what_pages_need_is_served(self, server: Attacked) -> None:
        for path in (
            "/_reload-hash",
            "/_dash-config",
            "/console",
            "/static/x",
            "/.env",
            "/.git/config",
            "/runs.db",
            "/admin",
            "/__debugger__",
            "/?__debugger__=yes&cmd=resource&f=debugger.js",
            "/_dash-upload",
            "/api/jobs",
            "/uploads/x",
            "/mcp",
            "/_mcp",
        ):
            status, text = server.ask(path)
            assert status in (404, 405) or (path.startswith("/?") and status == 200), (path, status)
            assert not server.leaked(text)
            assert "EVALEX" not in text


class TestHosts:
    @pytest.mark.parametrize(
        "name",
        [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example:8418",
            "[::ffff:8.8.8.8]",
            "192.168.1.7",
            "127.0.0.1@evil.example",
            "",
            "a" * 3000,
            "localhost, evil.example",
            "127.0.0.1/../x",
        ],
    )
    def test_a_foreign_name_is_refused(self, server: Attacked, name: str) -> None:
        for path in ("/", "/scorecard", "/_dash-layout", "/assets/studio.css"):
            status, text = server.ask(path, headers={"Host": name})
            assert status in (400, 403), (name, path, status)
            assert "retrompi studio</title>" not in text

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example", "file://", "chrome-extension://x"])
    def test_a_page_of_another_origin_may_not_post(self, server: Attacked, origin: str) -> None:
        status, text = server.post({"output": "x"}, Origin=origin)
        assert status == 403
        assert "origin" in text

    def test_whoever_has_opened_no_page_may_not_post(self, server: Attacked) -> None:
        for cookie in ("", "a=b", "retrompi-session-1=x", server.visitor[:-30]):
            status, text = server.post(server.page("/scorecard"), Cookie=cookie)
            assert status == 403
            assert "scorecard-list" not in text

    def test_another_site_may_not_post_nor_frame(self, server: Attacked) -> None:
        assert server.post({"output": "x"}, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
        head = server.ask("/scorecard")[1].partition("\r\n\r\n")[0]
        for wanted in ("frame-ancestors 'none'", "default-src 'none'", "X-Content-Type-Options: nosniff", "Referrer-Policy: same-origin"):
            assert wanted in head
        assert "unsafe-eval" not in head
        assert "Access-Control-Allow" not in head
        assert re.search(r"Set-Cookie: [^\r]*HttpOnly[^\r]*SameSite=(Lax|Strict)", head)

    def test_it_is_heard_on_the_loopback_alone(self, server: Attacked) -> None:
        port = int(server.host.rpartition(":")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # nothing is sent: which address of ours would go there?
            except OSError:
                pytest.skip("this machine has no address but the loopback's")
            own = probe.getsockname()[0]
        with socket.socket() as line:
            line.settimeout(5)
            assert line.connect_ex((own, port)) != 0


class TestRequests:
    @pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "PROPFIND", "GARBAGE"])
    def test_only_what_is_understood_is_answered(self, server: Attacked, method: str) -> None:
        for path in ("/", UPDATE, "/assets/studio.css"):
            status, text = server.ask(path, method)
            assert status in (400, 405, 501), (method, path, status)
            assert not server.leaked(text)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.0\r\n\r\n",
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 300_000 + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(20_000)) + b"\r\n",
            b"GET /%00%ff%fe HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
            b"\x00" * 5000 + b"\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            b"0\r\n\r\nGET /x",
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\nConnection: close\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1e9\r\nConnection: close\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\nx\r\n",
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n"
            b"Sec-WebSocket-Version: 13\r\n\r\n",
        ],
        ids=lambda d: repr(d[:24]),
    )
    def test_what_is_no_request_harms_nobody(self, server: Attacked, data: bytes) -> None:
        with socket.create_connection(server.host.split(":"), timeout=300) as line:  # type: ignore[arg-type]
            answer = b""
            try:
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
                while part := line.recv(1 << 16):
                    answer += part
            except (OSError, TimeoutError):
                pass  # it has hung up
        text = answer.decode("utf-8", "replace")
        assert not server.leaked(text)
        assert "101 Switching" not in text
        assert server.ask("/")[0] == 200

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"[",
            b"null",
            b"[]",
            b"1",
            b'"x"',
            b"NaN",
            b"{}",
            b'{"output":1}',
            b'{"output":"x.y"}',
            b'{"output":"x.y","inputs":7}',
            b"[" * 200_000,
            b'{"a":' * 100_000,
            b'{"output":"' + b"x" * 1_000_000 + b'"}',
            b"\xff\xfe\x00",
            b'{"output":"\\ud800"}',
            b'{"output":"main.children","inputs":[{"id":{"$ne":1},"property":"x"}]}',
            b'{"output":"__class__.__init__","inputs":[],"state":[]}',
            b"9" * 100_000,
            b'{"output":"' + b"..." * 1000 + b'","outputs":[],"inputs":[],"changedPropIds":[]}',
            b"<xml/>",
            b"output=x",
        ],
        ids=lambda d: repr(d[:24]),
    )
    def test_bad_json_is_told_in_a_line(self, server: Attacked, body: bytes) -> None:
        status, text = server.post(body)
        assert 400 <= status < 500, (body[:40], status)
        assert len(text.partition("\r\n\r\n")[2].strip().splitlines()) <= 1
        assert not server.leaked(text)

    @pytest.mark.parametrize(
        "kind",
        [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/html",
            "",
            "application/x-python-pickle",
            "application/json\r\nX-Injected: yes",
        ],
    )
    def test_another_content_type_is_refused(self, server: Attacked, kind: str) -> None:
        status, text = server.ask(UPDATE, "POST", b'{"output":"main.children"}', {"Content-Type": kind})
        assert status in (400, 404, 415)
        assert "X-Injected" not in text

    def test_what_is_too_large_is_refused_before_it_is_read(self, server: Attacked) -> None:
        status, _ = server.ask(UPDATE, "POST", b"x", {**JSON, "Content-Length": str(1 << 40)})
        assert status == 413
        status, _ = server.post(b'{"output":"' + b"x" * (40 << 20) + b'"}')
        assert status in (0, 413), "answered, or hung up on"
        assert server.works()

    @pytest.mark.parametrize("cookie", ["../../etc/passwd", "x" * 5000, "%00", "a;b=c", "\"'<>", "é"])
    def test_a_made_up_session_is_nobodys(self, server: Attacked, cookie: str) -> None:
        port = server.host.rpartition(":")[2]
        status, text = server.ask("/", headers={"Cookie": f"retrompi-session-{port}={cookie}"})
        assert status in (200, 400)
        assert not server.leaked(text)
        assert status == 400 or "Set-Cookie" in text


GARBAGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    1e308,
    "",
    " ",
    "\x00",
    "../../../etc/passwd",
    "/etc/passwd",
    SCRIPT,
    "x" * 20_000,
    "é𝄞‮",
    "__import__('os').system('id')",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "'; DROP TABLE runs; --",
    [],
    {},
    ["wmpi"],
    {"a": {"b": []}},
    [[[[]]]],
    {"study": 1},
    "file:///etc/passwd",
    "1" * 400,
    "0,1B..4MiB:x0",
    "1..999999999999",
    "nan",
)


def _ids(written: str) -> Any:
    return json.loads(written) if written.startswith("{") else written


def _given(declared: list[dict[str, Any]], value: Any) -> list[Any]:
    """Inputs as a browser would send them, with this value in all of them; what a pattern stands for is a list."""
    out: list[Any] = []
    for d in declared:
        found = _ids(d["id"])
        if isinstance(found, dict):
            one = {
                "id": {k: v if isinstance(v, str) else "wmpi.packet" for k, v in found.items()},
                "property": d["property"],
                "value": value,
            }
            out.append([one] if ["ALL"] in found.values() else one)
        else:
            out.append({"id": found, "property": d["property"], "value": value})
    return out


class TestCallbacks:
    def test_no_callback_leaks_or_executes_whatever_it_is_given(self, server: Attacked) -> None:
        """Every callback of every page, with garbage of every kind, and with paths of files that tell when they are opened."""
        evil = (str(server.evil), f"{server.evil}:x", str(server.folder / "evil.py"), str(server.file), "./evil", "../home/evil", "evil")
        wanted = []
        for callback in server.callbacks():
            shape = callback["output"].strip(".").split("...") if callback["output"].startswith("..") else [callback["output"]]
            outputs = [{"id": _ids(o.rpartition(".")[0]), "property": o.rpartition(".")[2].partition("@")[0]} for o in shape]
            changed = [f"{d['id']}.{d['property']}" for d in callback["inputs"][:1]]
            for value in (*GARBAGE, *evil):
                wanted.append(
                    {
                        "output": callback["output"],
                        "outputs": outputs if len(shape) > 1 else outputs[0],
                        "inputs": _given(callback["inputs"], value),
                        "state": _given(callback["state"], value),
                        "changedPropIds": changed,
                    }
                )
        assert len(wanted) > 300
        # Garbage that begins a job is the end of nobody's patience: a session may have a few of them only.
        visitors = [server.cookie() for _ in range(24)]
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(lambda i: server.post(wanted[i], Cookie=visitors[i % len(visitors)]), range(len(wanted)))
            for body, (status, text) in zip(wanted, answers, strict=True):
                given = json.dumps(body, ensure_ascii=False)
                found = [w for w in server.leaked(text) if w not in given]
                assert not found, (given[:300], text[-600:])
                assert status in (200, 204, 400, 404, 500), (given[:300], status)
                assert status != 500 or "internal error" in text, (given[:300], text[-300:])
        assert not server.marker.exists()

    @pytest.mark.parametrize("page", [p for p in pages() if p.controls], ids=lambda p: p.name)
    def test_a_path_is_no_name_in_any_link(self, server: Attacked, page: Page) -> None:
        for value in (str(server.evil), str(server.file), "../../etc/passwd", SCRIPT, "x" * 400):
            search = "?" + "&".join(f"{c.key}={quote(value, safe='')}" for c in page.controls)
            status, text = server.post(server.page(page.path, search))
            assert status == 200, text[-300:]
            assert "internal error" not in text, value[:40]
            assert f"page-{page.name}" in text, "the page is shown all the same"
            assert [w for w in server.leaked(text) if w not in value and w != str(server.folder)] == []

    def test_a_guessed_job_is_nobodys(self, server: Attacked) -> None:
        """It is answered like one that is not there."""
        polls = [c for c in server.callbacks() if any(i["id"].endswith("-tick") for i in c["inputs"])]
        assert polls
        for callback in polls:
            tick = next(i for i in callback["inputs"] if i["id"].endswith("-tick"))
            shape = callback["output"].strip(".").split("...")
            state = _given(callback["state"], None)
            for one in state:
                if isinstance(one, dict) and str(one["id"]).endswith("-job"):
                    one["value"] = "AAAAAAAAAAAAAAAA"
            body = {
                "output": callback["output"],
                "outputs": [{"id": _ids(o.rpartition(".")[0]), "property": o.rpartition(".")[2].partition("@")[0]} for o in shape],
                "inputs": _given(callback["inputs"], None),
                "state": state,
                "changedPropIds": [f"{tick['id']}.{tick['property']}"],
            }
            _, text = server.post(body)
            assert "AAAAAAAAAAAAAAAA" not in text, (callback["output"], text[-400:])


class TestLoad:
    @pytest.mark.exhaustive
    def test_two_hundred_at_once_are_all_answered(self, server: Attacked) -> None:
        routes = ["/", "/scorecard", "/assets/studio.css", "/_dash-layout", "/_dash-dependencies"]
        with ThreadPoolExecutor(200) as pool:
            found = list(pool.map(lambda i: server.ask(routes[i % len(routes)])[0], range(200)))
        assert set(found) == {200}
        with ThreadPoolExecutor(60) as pool:
            assert all(pool.map(lambda _: server.works(), range(60)))

    def test_connections_that_never_finish_keep_nobody_waiting(self, server: Attacked) -> None:
        host, port = server.host.split(":")
        with ExitStack() as held:
            for i in range(250):
                line = held.enter_context(socket.create_connection((host, int(port)), timeout=300))
                line.sendall(b"POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999\r\n"[: 20 + i % 60])
            assert server.works()
        assert server.works()


class TestInTheBrowser:
    """Texts from outside stay texts."""

    @pytest.mark.parametrize("path", [p.path for p in pages() if p.controls])
    def test_script_in_a_link_is_shown_and_not_run(self, browser: Any, server: Attacked, path: str) -> None:
        controls = next(p.controls for p in pages() if p.path == path)
        with session(browser, server) as (page, seen):
            page.goto(f"{path}?{'&'.join(f'{quote(c.key)}={quote(SCRIPT)}' for c in controls)}&{quote(SCRIPT)}=1")
            settled(page)
            assert page.evaluate("window.hacked") is None
            assert page.locator("main img, main script").count() == 0
            assert [e for e in seen.errors if "Content Security Policy" in e] == [], "a script was tried"
            assert page.locator("h1").count() == 1

    def test_a_stored_name_is_a_text(self, browser: Any, server: Attacked) -> None:
        """What others have stored is shown to all: a study with a script for a name."""
        from retrompi.store import open_store
        from retrompi.studies.execute.design import from_command

        study = from_command("bf-wmpi-shared", ["seed=1,2"]).with_name("plain")
        definition = {**study.definition(), "name": SCRIPT, "title": SCRIPT, "question": SCRIPT}
        number = open_store(server.store).add_study(SCRIPT, "ab" * 32, definition)
        with session(browser, server) as (page, seen):
            page.goto(f"/studies?study={number}")
            settled(page)
            until(page, "document.getElementById('studies-list').innerText.includes('onerror')")
            assert page.evaluate("window.hacked") is None
            assert page.locator("main img, main script").count() == 0
            assert [e for e in seen.errors if "Content Security Policy" in e] == []


def test_the_studio_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """And takes everything with it that it has started."""
    server = Server(tmp_path / "studio")
    group = server.process.pid
    server.close()
    assert server.process.returncode in (0, 130, -2)
    end = time.monotonic() + PATIENCE_S
    while left := [p for p in os.listdir("/proc") if p.isdecimal() and _group_of(p) == group]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


def _group_of(pid: str) -> int:
    try:
        state, group = re.sub(r"^.*\) ", "", Path(f"/proc/{pid}/stat").read_text()).split()[0:3:2]
    except (OSError, ValueError):
        return -1
    return -1 if state == "Z" else int(group)
