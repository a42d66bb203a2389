"""Connections of the studio's server: slow ones keep nobody waiting."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from studio_app import soon

from retrompi.studio.requests import connections
from retrompi.studio.serve import Studio

PART = b"POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    made = Studio(store=str(tmp_path_factory.mktemp("connections") / "store.db"))
    serving = threading.Thread(target=made.run, daemon=True)
    serving.start()
    yield made
    made.close()
    serving.join(10)


def _opened(studio: Studio, sent: bytes = PART) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", studio.port), timeout=300)
    line.sendall(sent)
    return line


def _accepted(studio: Studio, line: socket.socket) -> bool:
    channels = studio._server.active_channels
    return any(channel.addr[1] == line.getsockname()[1] for channel in list(channels.values()))


def _answers(studio: Studio) -> bool:
    """Whether a new browser has an answer in a third of the time for which waitress keeps idle connections."""
    visitor = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=300)
    try:
        visitor.request("GET", "/")
        return visitor.getresponse().status == 200
    finally:
        visitor.close()


def _closed(line: socket.socket) -> bool:
    with suppress(ConnectionError):
        line.settimeout(0.05)
        try:
            return line.recv(1 << 16) == b""
        except TimeoutError:
            return False
    return True


def test_more_connections_than_there_are_places_keep_nobody_waiting(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 40)
    with ExitStack() as held:
        lines = [held.enter_context(_opened(studio, PART[: 20 + i % 50])) for i in range(120)]
        assert _answers(studio)
        assert soon(lambda: _closed(lines[0]) and _closed(lines[70])), "the oldest made room"
        assert not _closed(lines[-1]), "a new one is kept"


def test_six_hundred_and_forty_slow_connections(studio: Studio) -> None:
    with ExitStack() as held:
        for i in range(640):
            held.enter_context(_opened(studio, PART[: 20 + i % 50]))
        assert _answers(studio)


def test_what_is_answered_is_not_closed_for_a_new_one(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser in use keeps its connection while slow ones come."""
    monkeypatch.setattr(connections, "MOST", 20)
    visitor = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=300)
    with ExitStack() as held:
        held.callback(visitor.close)
        for _ in range(10):
            visitor.request("GET", "/_dash-layout")
            answer = visitor.getresponse()
            assert answer.status == 200
            answer.read()
            line = visitor.sock
            lines = [held.enter_context(_opened(studio)) for _ in range(10)]
            # Else a busy machine accepts these after the visitor's next request, and with those of the next round they are 20 newer ones.
            assert soon(lambda lines=lines: _accepted(studio, lines[-1]))
            assert visitor.sock is line


@pytest.mark.parametrize(("limit", "sent"), [("HEADER_S", PART), ("BODY_S", PART + b"\r\n{")])
def test_a_request_that_comes_byte_by_byte_is_ended(studio: Studio, monkeypatch: pytest.MonkeyPatch, limit: str, sent: bytes) -> None:
    monkeypatch.setattr(connections, limit, 0.5)
    with _opened(studio, sent) as line:

        def drips() -> bool:
            with suppress(OSError):
                line.sendall(b"x")
            return _closed(line)

        assert soon(drips)
    assert _answers(studio)
