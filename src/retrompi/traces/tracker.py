"""Bookkeeping of one rank's lines: what they send and receive, and which line completes which request."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from retrompi.spec.declare.calls import is_nonblocking

from .lines import FAMILIES, ONE_SIDED, PERSISTENT, RECVS, SENDS, split

__all__ = ["ANY_SOURCE", "ANY_TAG", "End", "MatchedMessage", "Request", "Tracker"]

ANY_SOURCE, ANY_TAG = -555, -444


@dataclass(slots=True, eq=False)
class End:
    """One end of a message: its rank, line (index in the rank's lines), partner and tag as written (of a wildcard receive those that it
    is recorded to have matched), communicator, bytes, and the line that completes it (None: never)."""

    rank: int
    post: int
    peer: int
    tag: int
    comm: int
    bytes: int
    done: int | None
    match: End | None = None
    turn: int = 0  # among the sends of its rank
    init: int = -1  # of a started persistent request: the line that made it
    sure: bool = True  # of a receive: what it takes does not depend on which message is faster

    @property
    def made(self) -> int:
        """The line that says what kind of send or receive it is."""
        return self.post if self.init < 0 else self.init

    @property
    def real(self) -> bool:
        """Whether there is a message: not with MPI_PROC_NULL."""
        return self.peer >= 0 or self.peer == ANY_SOURCE

    def fits(self, source: int, tag: int) -> bool:
        """Whether a receive may take messages of this source and tag."""
        return self.peer in (ANY_SOURCE, source) and self.tag in (ANY_TAG, tag)


@dataclass(slots=True, eq=False)
class MatchedMessage:
    """A send and its receive."""

    send: End
    recv: End


@dataclass(slots=True, eq=False)
class Request:
    """An open request: where it was posted, the key of its wait, its identity (0: none) and its end of a message."""

    post: int
    key: tuple[int, int, int]
    req: int
    end: End | None
    persistent: bool = False
    active: bool = True
    receive: bool = False
    arguments: tuple[int, int, int, int] = (0, 0, 0, 0)  # peer, tag, bytes, comm of a persistent one
    made: int = -1  # line of the persistent one's *Init


class Tracker:
    """The requests of a rank, line by line: which are open, and which a line completes."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.open: list[Request] = []
        self.by_req: dict[int, Request] = {}
        self.by_key: dict[tuple[int, int, int], deque[Request]] = defaultdict(deque)
        self.persistent: list[Request] = []
        self.sends: list[End] = []
        self.recvs: list[End] = []
        self.probes: dict[int, End] = {}
        # The requests of the waitany lines that came last and do not say which they completed, and how many lines they are.
        self._any: tuple[frozenset[Request], int] = frozenset(), 0

    def line(self, at: int, line: str) -> list[Request]:
        """Process the line with index ``at``; returns the requests that it completes."""
        action, a, attributes = split(line)
        req = int(attributes.get("req", 0))
        comm = int(attributes.get("comm", 0))
        if action in SENDS or action in RECVS:
            blocking = not action.lower().startswith("i")
            end = End(self.rank, at, int(a[0]), int(a[1]), comm, _bytes(a[2]), at if blocking else None)
            receive = action in RECVS
            self._set_match(end, attributes)
            (self.recvs if receive else self.sends).append(end)
            if not blocking:
                self._file(Request(at, self._key(receive, int(a[0]), int(a[1])), req, end, receive=receive))
        elif action == "probe" or (action == "iprobe" and attributes.get("flag") == "1"):
            probe = End(self.rank, at, int(a[0]), int(a[1]), comm, 0, at)
            self._set_match(probe, attributes)
            if probe.real:
                self.probes[at] = probe
        elif action == "sendRecv":
            stag, rtag = int(attributes.get("stag", 0)), int(attributes.get("rtag", 0))
            self.sends.append(End(self.rank, at, int(a[1]), stag, comm, _bytes(a[0]), at))
            end = End(self.rank, at, int(a[3]), rtag, comm, _bytes(a[2]), at)
            self._set_match(end, attributes)
            self.recvs.append(end)
        elif action in PERSISTENT:
            receive = action == "recvInit"
            key = self._key(receive, int(a[0]), int(a[1]))
            request = Request(at, key, req, None, True, False, receive, (int(a[0]), int(a[1]), _bytes(a[2]), comm), at)
            self.persistent.append(request)
        elif action == "start":
            self._start([r for r in self.persistent if not r.active and (r.req == req if req else r.key == _key(a))][:1], at, attributes)
        elif action == "startall":
            wanted = _list(attributes.get("reqs"))
            some = [r for r in self.persistent if not r.active and (wanted is None or r.req in wanted)]
            self._start(sorted(some, key=lambda r: wanted.index(r.req) if wanted is not None else 0), at, attributes)
        elif action == "requestFree":
            self.persistent = [r for r in self.persistent if not (r.req == req if req else r.key == _key(a))]
        elif action in ("wait", "test"):
            if action == "test" and attributes.get("flag") != "1":
                return []
            found = self.target(line)
            return self._complete([found] if found is not None else [], at, attributes)
        elif action in FAMILIES:
            return self._complete(self._requests_of(action, attributes), at, attributes)
        elif (is_nonblocking(action) or action in ONE_SIDED) and req:
            self._file(Request(at, (self.rank, self.rank, 0), req, None))
        return []

    def target(self, line: str) -> Request | None:
        """The open request that a wait or test refers to; None if there is none."""
        _, a, attributes = split(line)
        if "req" in attributes:
            return self.by_req.get(int(attributes["req"]))
        return next(iter(self.by_key.get(_key(a), ())), None)

    def waitall(self) -> str:
        """A line that waits for all open requests."""
        reqs = [r.req for r in self.open if r.req]
        named = f" reqs={','.join(map(str, reqs))}" if reqs and len(reqs) == len(self.open) else ""
        return f"{self.rank} waitall {len(self.open)}{named}"

    # -- inside

    def _key(self, receive: bool, peer: int, tag: int) -> tuple[int, int, int]:
        return (peer, self.rank, tag) if receive else (self.rank, peer, tag)

    @staticmethod
    def _set_match(end: End, attributes: dict[str, str]) -> None:
        if end.peer == ANY_SOURCE and "from" in attributes:
            end.peer = int(attributes["from"])
        if end.tag == ANY_TAG and "mtag" in attributes:
            end.tag = int(attributes["mtag"])

    def _file(self, request: Request) -> None:
        self.open.append(request)
        self.by_key[request.key].append(request)
        if request.req:
            self.by_req[request.req] = request

    def _start(self, requests: Sequence[Request], at: int, attributes: dict[str, str]) -> None:
        for r in requests:
            peer, tag, size, comm = r.arguments
            r.post, r.active, r.end = at, True, End(self.rank, at, peer, tag, comm, size, None, init=r.made)
            (self.recvs if r.receive else self.sends).append(r.end)
            self._file(r)
        self._tell(requests, attributes)

    @staticmethod
    def _tell(requests: Sequence[Request], attributes: dict[str, str]) -> None:
        """Sets the source and tag of wildcard receives from the line that starts or completes them, if recorded."""
        for name in ("from", "mtag"):
            told = _values_of_requests(attributes.get(name), requests)
            for r in requests:
                if r.end is None or r.req not in told:
                    continue
                if name == "from" and r.end.peer == ANY_SOURCE:
                    r.end.peer = told[r.req]
                elif name == "mtag" and r.end.tag == ANY_TAG:
                    r.end.tag = told[r.req]

    def _requests_of(self, action: str, attributes: dict[str, str]) -> list[Request]:
        done, reqs = _list(attributes.get("done")), _list(attributes.get("reqs"))
        if action == "waitall" or (action == "testall" and attributes.get("flag") == "1"):
            done = reqs if done is None else done
            if done is None:
                return list(self.open)
        if done is not None:
            return [self.by_req[r] for r in done if r in self.by_req]
        if action in ("waitAny", "waitany", "waitsome"):
            among = list(self.open) if reqs is None else [self.by_req[r] for r in reqs if r in self.by_req]
            self._any = frozenset(among), (self._any[1] + 1 if frozenset(among) == self._any[0] else 1)
            if self._any[1] >= len(among):  # each call completes one: as many as there are requests complete all
                return among
        return []

    def _complete(self, requests: list[Request], at: int, attributes: dict[str, str]) -> list[Request]:
        if not requests:
            return []
        self._tell(requests, attributes)
        gone = set(map(id, requests))
        for r in requests:
            if r.end is not None:
                r.end.done = at
            self.by_key[r.key].remove(r)
            if r.req:
                self.by_req.pop(r.req, None)
            r.active = not r.persistent
        self.open = [r for r in self.open if id(r) not in gone]
        return requests


def _bytes(text: str) -> int:
    return int(float(text))


def _key(a: Sequence[str]) -> tuple[int, int, int]:
    return int(a[0]), int(a[1]), int(a[2])


def _list(text: str | None) -> list[int] | None:
    if text is None:
        return None
    return [] if text == "none" else [int(x) for x in text.split(",")]


def _values_of_requests(text: str | None, requests: Sequence[Request]) -> dict[int, int]:
    """Request -> value, from ``R`` for a single request or ``A:R,B:R``."""
    if text is None or not requests:
        return {}
    if ":" not in text:
        return {requests[0].req: int(text)}
    return {int(req): int(value) for req, _, value in (part.partition(":") for part in text.split(","))}
