"""What a request to the studio may be, the token, and the server."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import studio_work
import zstandard
from cases import for_each
from refusals import refused
from studio_app import JSON, UPDATE, app, client, ended, resources, soon

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.studio.app import create_app
from retrompi.studio.jobs.resources import Resources
from retrompi.studio.requests.guard import Guard
from retrompi.studio.requests.page import pages
from retrompi.studio.serve import Studio

__all__ = ["app", "client", "resources"]  # fixtures

PATHS = [p.path for p in pages()]


SHOW = {
    "output": "..main.children...studio-title.data..",
    "outputs": [{"id": "main", "property": "children"}, {"id": "studio-title", "property": "data"}],
    "inputs": [{"id": "studio-address", "property": "pathname", "value": "/"}],
    "state": [{"id": "studio-address", "property": "search", "value": ""}],
    "changedPropIds": ["studio-address.pathname"],
}


def sealed(answer: Any) -> None:
    """Every answer carries the headers, and none says how it came about."""
    headers = answer.headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert not re.search(r"https?:|\*", policy)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Server" not in headers
    if answer.status_code >= 400:
        assert "Traceback" not in answer.text
        assert "site-packages" not in answer.text
        assert answer.text.count("\n") <= 1


@for_each(
    "path", [*PATHS, "/_dash-layout", "/_dash-dependencies", "/assets/studio.css", "/assets/studio.js", "/_favicon.ico"]
)
def test_what_there_is_is_served(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    sealed(answer)


def test_the_first_page_loads_nothing_from_elsewhere(client: Any) -> None:
    text = client.get("/").text
    links = re.findall(r"""(?:src|href)=["']([^"']+)""", text)
    assert links
    assert all(link.startswith("/") and not link.startswith("//") for link in links)
    for link in links:
        assert client.get(link).status_code == 200, link
    assert sys.version.split()[0] not in text
    assert "max-age=31536000" in client.get(next(x for x in links if "studio.js" in x)).headers["Cache-Control"]
    assert client.get("/").headers["Cache-Control"] == "no-store"


def test_tools_of_developers_are_off_whatever_the_environment_says(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UI", "DEBUG", "PROPS_CHECK", "SERVE_DEV_BUNDLES", "HOT_RELOAD", "PRUNE_ERRORS", "MCP_ENABLED", "COMPRESS"):
        monkeypatch.setenv(f"DASH_{name}", "true")
    client = create_app(resources).server.test_client()
    text = client.get("/").text
    config = json.loads(re.findall(r'<script id="_dash-config"[^>]*>(.*?)</script>', text)[0])
    assert config["ui"] is False
    assert config["props_check"] is False
    assert "hot_reload" not in config
    assert ".dev." not in text
    assert client.get("/_mcp").status_code == 404


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_answers_are_compressed(client: Any, how: str) -> None:
    unpack = {"gzip": gzip.decompress, "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)}[how]
    for path in ("/assets/studio.css", "/assets/studio.css", "/assets/sketch.js", "/_dash-layout"):
        plain = client.get(path)
        assert "Content-Encoding" not in plain.headers
        pressed = client.get(path, headers={"Accept-Encoding": how})
        assert pressed.headers["Content-Encoding"] == how
        assert "Accept-Encoding" in pressed.headers["Vary"]
        if path.startswith("/assets"):
            assert unpack(pressed.data) == plain.data
            assert len(pressed.data) < len(plain.data) / 2


def test_an_address_without_a_page_has_links(client: Any) -> None:
    answer = client.get("/curve", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "did you mean" in answer.text or "/curves" in answer.text
    assert 'href="/curves"' in answer.text


@for_each("path", [
    "/nope", "/curve", "/..", "/../etc/passwd", "/assets/../app.py", "/assets/..%2fapp.py", "/assets/%2e%2e/app.py", "/assets/nope.js",
    "/_dash-component-suites/dash/../../../etc/passwd", "/_dash-component-suites/os/path.py", "/_dash-component-suites/dash/dash.py",
    "/_reload-hash", "/_mcp", "/<script>", "/curves/x", "/static/x", "/_dash-component-suites/retrompi/errors.py",
])
def test_what_there_is_not_is_not_found(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 308)
    sealed(answer)
    assert "root:" not in answer.text
    assert "import " not in answer.text


@for_each(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example", "", "[::2]:80",
             "localhost:99999", "localhost:123456", "localhost:\u0661"]
)
def test_a_strangers_name_for_this_machine_is_refused(client: Any, host: str) -> None:
    answer = client.get("/", headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "Set-Cookie" not in answer.headers


@for_each("host", ["localhost", "127.0.0.1:8418", "[::1]:8418", "LOCALHOST:1", "localhost."])
def test_the_names_of_the_loopback_are_known(client: Any, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_a_callback_works(client: Any) -> None:
    answer = client.post(UPDATE, json=SHOW, headers={"Origin": "http://localhost"})
    assert answer.status_code == 200, answer.text
    assert answer.json["response"]["studio-title"]["data"] == "Start"
    sealed(answer)


@for_each("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://localhost.evil.example"}, {"Origin": "file://"},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://localhost:81"},
])
def test_a_page_of_another_origin_may_not_post(client: Any, headers: dict[str, str]) -> None:
    answer = client.post(UPDATE, json=SHOW, headers=headers)
    assert answer.status_code == 403
    sealed(answer)


def test_a_form_cannot_post_a_callback(client: Any) -> None:
    assert client.post(UPDATE, data=json.dumps(SHOW), content_type="text/plain").status_code == 415
    assert client.post(UPDATE, data={"x": "y"}).status_code == 415


def test_who_has_no_session_cannot_post(app: Any) -> None:
    assert app.server.test_client().post(UPDATE, json=SHOW).status_code == 403


@for_each("body, status", [
    (b"{", 400), (b"", 400), (b"[]", 400), (b"null", 400), (b"1", 400), (b'"x"', 400), (b"{}", 400), (b'{"output": 1}', 400),
    (b"[" * 100_000, 400), (b'\xff\xfe{"output"}', 400), (b'{"output": "nope.children"}', 404),
    (b'{"output": "__class__.x"}', 404), (json.dumps({**SHOW, "inputs": []}).encode(), 400),
    (json.dumps({**SHOW, "inputs": {}}).encode(), 400), (json.dumps({**SHOW, "inputs": [1]}).encode(), 400),
    (json.dumps({**SHOW, "state": "x"}).encode(), 400), (json.dumps({**SHOW, "inputs": SHOW["inputs"] * 9}).encode(), 400),
    (json.dumps({**SHOW, "changedPropIds": [1]}).encode(), 400), (json.dumps({**SHOW, "changedPropIds": "x"}).encode(), 400),
    (json.dumps({**SHOW, "outputs": 1}).encode(), 400), (json.dumps({**SHOW, "inputs": [{"id": "x", "property": "y"}]}).encode(), 400),
    (json.dumps({**SHOW, "outputs": [{"id": "whatever"}]}).encode(), 400), (json.dumps({**SHOW, "outputs": []}).encode(), 400),
])
def test_what_is_no_callback_is_told_so(client: Any, body: bytes, status: int) -> None:
    answer = client.post(UPDATE, data=body, headers=JSON)
    assert answer.status_code == status, answer.text
    sealed(answer)


@for_each("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client: Any, method: str) -> None:
    assert client.open("/", method=method).status_code == 405
    assert client.get(UPDATE).status_code == 405
    assert client.post("/curves").status_code == 405


@pytest.mark.parametrize("value", [None, 1, [], {}, "x" * 10_000, ["a"] * 5000, {"model": "../x"}, [{"a": 1}], True, {"sets": {"a": 1}}])
def test_whatever_a_callback_is_sent_is_a_line_and_never_a_defect(
    app: Any, client: Any, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Every server callback of the pages of this file, with the same odd value everywhere."""
    client.get("/_dash-dependencies")
    for output, declared in app.callback_map.items():
        if not output.strip(".").startswith(("curves-", "whatif-", "main")) or "callback" not in declared:
            continue
        outputs = [{"id": (o := one.rpartition("."))[0], "property": o[2]} for one in output.strip(".").split("...")]
        body = {
            "output": output,
            "outputs": outputs if output.startswith("..") else outputs[0],
            **{k: [{"id": i["id"], "property": i["property"], "value": value} for i in declared[k]] for k in ("inputs", "state")},
            "changedPropIds": [f"{i['id']}.{i['property']}" for i in declared["inputs"]][:1],
        }
        answer = client.post(UPDATE, data=json.dumps(body), headers=JSON)
        assert answer.status_code < 500, (output, answer.text)
        assert "internal error" not in answer.text, output
        sealed(answer)
    assert "failed" not in caplog.text


def test_jobs_of_another_session_are_not_shown_by_a_callback(app: Any, client: Any, resources: Resources) -> None:
    job = resources.jobs.submit("somebody", "secret title", studio_work.echo, "secret result")
    ended(resources.jobs, job, "somebody")
    output = next(o for o in app.callback_map if o == "curves-download.data")
    body = {
        "output": output, "outputs": {"id": "curves-download", "property": "data"},
        "inputs": [{"id": "curves-csv", "property": "n_clicks", "value": 1}],
        "state": [{"id": "curves-job", "property": "data", "value": job}], "changedPropIds": ["curves-csv.n_clicks"],
    }
    answer = client.post(UPDATE, json=body)
    assert answer.status_code == 200
    assert "no such job" in answer.text
    assert "secret" not in answer.text


# -- the token ---------------------------------------------------------------------------------------------------------

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def locked(resources: Resources) -> Any:
    return create_app(resources, Guard(TOKEN, frozenset({"lab.example"}), public=True))


def test_without_the_token_nothing_is_served(locked: Any) -> None:
    client = locked.server.test_client()
    assert client.get("/").status_code == 302
    assert client.get("/").headers["Location"] == "/login"
    for path in ("/assets/studio.js", "/_dash-layout", "/_dash-dependencies", "/nope"):
        assert client.get(path).status_code == 401
    assert client.post(UPDATE, json=SHOW).status_code in (401, 403)
    assert "token" in client.get("/login").text


def test_the_token_becomes_a_cookie_and_leaves_the_address(locked: Any, caplog: pytest.LogCaptureFixture) -> None:
    client = locked.server.test_client()
    answer = client.get(f"/curves?model=wmpi&token={TOKEN}&mode=shared")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/curves?model=wmpi&mode=shared"
    cookie = answer.headers["Set-Cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    page = client.get("/curves")
    assert page.status_code == 200
    assert TOKEN not in page.text
    again = client.get(f"/curves?token={TOKEN}")
    assert again.status_code == 303
    assert again.headers["Location"] == "/curves"
    assert client.post("/login", data={"token": TOKEN}).headers["Location"] == "/"
    assert TOKEN not in caplog.text


def test_guessing_is_refused_and_made_slow(resources: Resources) -> None:
    app = create_app(resources, Guard(TOKEN, public=True))
    client = app.server.test_client()
    statuses = [client.get("/?token=wrong").status_code for _ in range(12)]
    assert statuses[:10] == [403] * 10
    assert statuses[10:] == [429] * 2
    assert client.get(f"/?token={TOKEN}").status_code == 429
    assert client.post("/login", data={"token": "é" * 3}).status_code == 429


def test_a_made_up_cookie_opens_nothing(locked: Any) -> None:
    client = locked.server.test_client()
    for value in ("", "x", TOKEN, "é"):
        cookie = f"retrompi-token-80={value}".encode().decode("latin-1")
        assert client.get("/assets/studio.js", headers={"Cookie": cookie}).status_code == 401


def test_a_public_studio_is_known_by_its_addresses_and_names_only(locked: Any) -> None:
    client = locked.server.test_client()
    for host, status in (("192.168.1.7:8418", 302), ("lab.example", 302), ("[fe80::1]:80", 302), ("evil.example", 403)):
        assert client.get("/", headers={"Host": host}).status_code == status, host


# -- the server --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    made = Studio(port=0, store=str(tmp_path_factory.mktemp("served") / "store.db"))
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    yield made
    made.close()


def ask(studio: Studio, method: str = "GET", path: str = "/") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=300)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_it_answers_to_the_address_that_it_prints(host: str, tmp_path: Path) -> None:
    made = Studio(host=host, store=str(tmp_path / "store.db"))
    try:
        name = made.address.removeprefix("http://").rstrip("/")
        assert made.app.server.test_client().get("/", headers={"Host": name}).status_code == 200
    finally:
        made.close()


def test_it_serves(studio: Studio) -> None:
    assert studio.address == f"http://127.0.0.1:{studio.port}/"
    assert ask(studio)[0] == 200


@for_each("head", [
    b"POST /_dash-update-component HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13000000\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",
    b"GET /?" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GARBAGE\r\n\r\n",
])
def test_what_is_too_large_or_broken_is_refused_before_it_is_read(studio: Studio, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", studio.port), timeout=300) as line:
        line.sendall(head)
        answer = b""
        with suppress(ConnectionResetError):  # it hangs up on what it has not read
            while part := line.recv(65536):
                answer += part
    assert not answer or int(answer.split(b" ", 2)[1]) in (400, 413, 431), answer[:200]
    assert b"Traceback" not in answer
    assert ask(studio)[0] == 200


def test_two_hundred_at_once_leave_it_up(studio: Studio) -> None:
    paths = ["/", "/curves?model=nope", "/_dash-layout", "/nope", "/assets/studio.css", "/_dash-dependencies", "/../x", "/whatif?set=a"]
    with ThreadPoolExecutor(200) as many:
        answers = list(many.map(lambda i: ask(studio, path=paths[i % len(paths)]), range(200)))
    assert {s for s, _ in answers} <= {200, 404}
    assert not any("Traceback" in text for _, text in answers)
    assert ask(studio)[0] == 200


def test_a_port_in_use_is_a_line(studio: Studio) -> None:
    with refused(UsageError, f"bad-address | {studio.port} | --port 0"):
        Studio(port=studio.port)


@for_each("host, token, line", [
    ("0.0.0.0", None, "bad-address"), ("::", None, "bad-address"), ("192.0.2.7", None, "bad-address"),
    ("0.0.0.0", "short", "bad-address | 12"), ("0.0.0.0", "with a space in it", "bad-address"),
    ("192.0.2.7", TOKEN, "bad-address | 192.0.2.7"),
    ("no such host", TOKEN, "bad-address"),
])
def test_others_are_let_in_with_a_token_only(host: str, token: str | None, line: str) -> None:
    with refused(RetrompiError, line):
        Studio(host=host, port=0, token=token)


def command(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "retrompi.cli.main", "studio", "--no-browser", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True, **more)


def test_ctrl_c_ends_it_with_everything_it_started(tmp_path: Path) -> None:
    process = command("--port", "0", "--store", str(tmp_path / "s.db"), "--token", TOKEN, "--host", "127.0.0.1")
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(rf"studio: (http://127\.0\.0\.1:\d+/)\?token={TOKEN}\n", line)
    assert found, line
    group = os.getpgid(process.pid)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out == ""
    assert err.strip().splitlines()[-1] == "the studio has stopped"
    assert TOKEN not in err

    def alone() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    assert soon(alone)


@pytest.mark.parametrize(("arguments", "line"), [
    (("--host", "0.0.0.0"), "give a --token, or --public"), (("--public", "--host", "127.0.0.1"), "no other machine can reach"),
    (("--public", "--token", "x"), "12 characters"), (("--port", "70000"), "70000"),
])
def test_a_wrong_use_is_one_line_and_exit_code_2(arguments: tuple[str, ...], line: str) -> None:
    process = command(*arguments)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert out == ""
    assert line in err
    assert err.count("\n") == 1
