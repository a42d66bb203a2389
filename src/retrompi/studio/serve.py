"""The studio's server: waitress in front of the Dash application, with a socket that is bound before anything else starts."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.studio.jobs.limits import Limits
from retrompi.studio.jobs.resources import Resources
from retrompi.studio.requests.guard import Guard

__all__ = ["LEAST_TOKEN", "Studio", "is_loopback", "reachable"]

LEAST_TOKEN = 12
"""Least characters of a token."""
_HEADER_B = 16 << 10


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def reachable(host: str) -> str:
    """The address by which other machines reach a server that listens at ``host``: for "every address" the one that this machine has on
    its way out, else its name. Nothing is sent."""
    if host not in ("0.0.0.0", "::", "[::]"):
        return "127.0.0.1" if host == "localhost" else host
    for family, outside in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):  # addresses of documentation
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))
            found = str(probe.getsockname()[0])
            if not ipaddress.ip_address(found).is_loopback:
                return found
    return socket.getfqdn() or "127.0.0.1"


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises UsageError with one line when it cannot be bound."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise UsageError(f"--host {host}: this machine has no such address", code="bad-address") from None
    family, kind, protocol, _, address = sorted(found, key=lambda f: f[0] != socket.AF_INET)[0]
    ours = socket.socket(family, kind, protocol)
    try:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ours.bind(address)
        ours.listen(512)
    except (OSError, OverflowError) as error:
        ours.close()
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} of {host} is in use (another studio?); give another, or --port 0 for any that is free", code="bad-address"
            ) from None
        if number == errno.EACCES:
            raise UsageError(
                f"port {port} needs more rights; give one above 1023, or --port 0 for any that is free", code="bad-address"
            ) from None
        raise UsageError(f"--host {host} --port {port}: {getattr(error, 'strerror', None) or error}", code="bad-address") from None
    return ours


def _remember(resources: Resources) -> None:
    """Preloads the data of the first page with sliders, and the pages' first figures, while the server is idle."""
    from retrompi.spec import registry
    from retrompi.studio.components.parameters import slots
    from retrompi.studio.requests import first_answer

    with suppress(RetrompiError):  # reported by the page
        registry.models(), registry.platforms(), slots(registry.FIRST_MODEL, registry.FIRST_PLATFORM, "shared")
        first_answer.prepare(resources)


class Studio:
    """A listening studio server. Raises UsageError when it is not permitted to listen, or cannot.

    ``port`` 0 selects any free one; ``names`` are further host names of this machine (a Host header with any other is refused).
    """

    threads = 12
    """Requests answered at once."""
    proxy: ClassVar[Mapping[str, Any]] = {}
    """Settings of waitress for a proxy in front of it."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        store: str | None = None,
        names: Iterable[str] = (),
        limits: Limits | None = None,
    ) -> None:
        if not is_loopback(host) and token is None:
            raise UsageError(f"--host {host} lets others in: give a --token, or --public, which makes one", code="bad-address")
        if token is not None and (len(token) < LEAST_TOKEN or not token.isprintable() or " " in token):
            raise UsageError(f"a token has {LEAST_TOKEN} characters at least and no spaces; --public makes one", code="bad-address")
        self._socket = _listen(host, port)
        self.host, self.port, self.token = host, int(self._socket.getsockname()[1]), token
        self._server: Any = None
        try:
            from retrompi.studio.app import create_app
            from retrompi.studio.jobs.queue import Jobs

            limits = limits or Limits()
            self.resources = Resources(Jobs(limits), store, limits)
            self.furnish()
            own = {socket.gethostname().lower(), socket.getfqdn().lower()} if not is_loopback(host) else set()
            own.add(str(urlsplit(self.address).netloc.rpartition(":")[0]).lower())  # 127.0.0.2, or the name given by --host
            guarded = self.guard(frozenset({n.lower() for n in names} | own))
            self.app = create_app(self.resources, guarded)
            self.add_routes(guarded)
            self._server = self._waitress()
        except BaseException:
            self.close()
            raise

    def furnish(self) -> None:
        """For a studio with resources beyond those of one user."""

    def guard(self, names: frozenset[str]) -> Guard:
        """Who has access, at a machine of these names."""
        return Guard(self.token, names, public=not is_loopback(self.host))

    def add_routes(self, guarded: Guard) -> None:
        """For addresses beside the pages; ``guarded.ways`` names them."""

    @property
    def address(self) -> str:
        """The URL as browsers reach it, from other machines too where they are let in; without the token."""
        shown = reachable(self.host)
        return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{self.port}/"

    @property
    def entrance(self) -> str:
        """The URL with the token, for the user who started it."""
        return self.address + (f"?token={self.token}" if self.token else "")

    def _waitress(self) -> Any:
        from waitress import create_server

        from retrompi.studio.requests.connections import MOST, tend

        logging.getLogger("waitress").setLevel(logging.ERROR)  # clients that hang up and full queues are not worth a message
        made = create_server(
            self.app.server, sockets=[self._socket], threads=self.threads, connection_limit=2 * MOST, backlog=512, channel_timeout=60,
            cleanup_interval=5, max_request_body_size=self.resources.limits.body_B, max_request_header_size=_HEADER_B,
            expose_tracebacks=False, ident=None, clear_untrusted_proxy_headers=True, asyncore_use_poll=True, **self.proxy,
        )
        tend(made)
        return made

    def run(self, ready: Callable[[], None] | None = None) -> None:
        """Serves until it is interrupted or `close`d by another thread."""
        self.resources.jobs.warm()
        later = threading.Timer(1.5, _remember, [self.resources])
        later.daemon = True
        later.start()
        if ready is not None:
            threading.Thread(target=ready, daemon=True).start()
        with suppress(OSError):  # from select on a socket that `close` has closed
            self._server.run()

    def close(self) -> None:
        """Ends the jobs and the server."""
        resources = getattr(self, "resources", None)
        if resources is not None:
            resources.close()
        if self._server is not None:
            with suppress(OSError):
                self._server.close()
        self._socket.close()
