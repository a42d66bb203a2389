"""The connections of the studio's server: a limit on their number that never keeps a new one waiting, and time limits for slow requests.

waitress reads requests without occupying a thread, but stops accepting connections at its limit, until idle ones have timed out after a
minute; and a client that sends a byte now and then is never idle. Here the oldest connection without a running request gives way to a
new one, of the address with the most connections, and a request must arrive as a whole within a given time.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from waitress.channel import HTTPChannel

__all__ = ["HttpConnection", "tend"]

MOST = 512
"""Connections at a time; each takes a descriptor, of which a process usually has 1,024."""
HEADER_S = 15.0
"""Time from the first byte of a request to the end of its header."""
BODY_S = 120.0
"""Time from the first byte of a request to its end: an upload of 8 MiB at 100 KB/s."""


class HttpConnection(HTTPChannel):
    """One connection."""

    def __init__(self, server: Any, *args: Any, **options: Any) -> None:
        self.began = 0.0
        """When the first byte of the request that has not arrived as a whole was read; 0 without one."""
        self.served = time.monotonic()
        """When it was accepted, or the last request arrived or was answered."""
        super().__init__(server, *args, **options)
        if len(server.active_channels) > MOST:
            self._close_oldest(server)

    def received(self, data: bytes) -> bool:
        """As of waitress; notes the beginning of a request."""
        if self.request is None:
            self.began = time.monotonic()
        got = bool(super().received(data))
        if self.request is None:
            self.began = 0.0
            self.served = time.monotonic()  # its answer may be read, and new connections come, before `service` has noted its end
        return got

    def service(self) -> None:
        """As of waitress; notes the end of a request."""
        super().service()
        self.served = time.monotonic()

    def late(self, now: float) -> bool:
        """Whether its request takes too long to arrive."""
        if self.request is None or not self.began:
            return False
        return now - self.began > (BODY_S if self.request.headers_finished else HEADER_S)

    def _close_oldest(self, server: Any) -> None:
        others = [c for c in server.active_channels.values() if c is not self and not c.requests]
        if others:
            most, _ = Counter(c.addr[0] for c in others).most_common(1)[0]
            min((c for c in others if c.addr[0] == most), key=lambda c: c.served).handle_close()


def tend(server: Any) -> None:
    """Makes ``server``, of waitress, tend its connections like this. Its own limits on connections must be above `MOST`."""
    maintain = server.maintenance

    def maintenance(now: float) -> None:
        maintain(now)
        moment = time.monotonic()
        for channel in list(server.active_channels.values()):
            # One that waits to be closed may never become writable, because its client reads nothing; shut down, it does. It must not be
            # closed here: the loop has its descriptor on its list for this round, which a new connection may get.
            if not channel.requests and (channel.will_close or channel.late(moment)):
                channel.will_close = True
                with suppress(OSError):
                    channel.socket.shutdown(socket.SHUT_RDWR)

    server.channel_class, server.maintenance = HttpConnection, maintenance
