"""Matching within a trace: sends with receives, requests with the lines that complete them, collectives across their members."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .lines import COLLECTIVES, COMM_MAKERS, FAMILIES, ONE_SIDED, PERSISTENT, RECVS, SENDS, parse_group, split

__all__ = ["End", "Job", "Message", "Request", "Tracker"]

ANY_SOURCE, ANY_TAG = -555, -444


@dataclass(slots=True, eq=False)
class End:
    """One end of a message: its rank, line (index in the rank's lines), partner and tag as written, communicator, bytes, and the line
    that completes it (None: never)."""

    rank: int
    post: int
    peer: int
    tag: int
    comm: int
    bytes: int
    done: int | None
    match: End | None = None


@dataclass(slots=True, eq=False)
class Message:
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
        self._any_calls = 0  # waitAny lines without a recorded completion since no request was open

    def line(self, at: int, line: str) -> list[Request]:
        """Process the line with index ``at``; returns the requests that it completes."""
        action, a, attributes = split(line)
        req = int(attributes.get("req", 0))
        comm = int(attributes.get("comm", 0))
        if action in SENDS or action in RECVS:
            blocking = not action.lower().startswith("i")
            end = End(self.rank, at, int(a[0]), int(a[1]), comm, _bytes(a[2]), at if blocking else None)
            receive = action in RECVS
            self._matched(end, attributes)
            (self.recvs if receive else self.sends).append(end)
            if not blocking:
                self._file(Request(at, self._key(receive, int(a[0]), int(a[1])), req, end, receive=receive))
        elif action == "sendRecv":
            stag, rtag = int(attributes.get("stag", 0)), int(attributes.get("rtag", 0))
            self.sends.append(End(self.rank, at, int(a[1]), stag, comm, _bytes(a[0]), at))
            end = End(self.rank, at, int(a[3]), rtag, comm, _bytes(a[2]), at)
            self._matched(end, attributes)
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
            self._start([r for r in self.persistent if not r.active and (wanted is None or r.req in wanted)], at, attributes)
        elif action == "requestFree":
            self.persistent = [r for r in self.persistent if not (r.req == req if req else r.key == _key(a))]
        elif action in ("wait", "test"):
            if action == "test" and attributes.get("flag") != "1":
                return []
            found = self.target(line)
            return self._complete([found] if found is not None else [], at, attributes)
        elif action in FAMILIES:
            return self._complete(self._meant(action, attributes), at, attributes)
        elif ((action in COLLECTIVES and action.startswith("i")) or action in ONE_SIDED) and req:
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
    def _matched(end: End, attributes: dict[str, str]) -> None:
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
            r.post, r.active, r.end = at, True, End(self.rank, at, peer, tag, comm, size, None)
            (self.recvs if r.receive else self.sends).append(r.end)
            self._file(r)
        self._tell(requests, attributes)

    @staticmethod
    def _tell(requests: Sequence[Request], attributes: dict[str, str]) -> None:
        """Sets the source and tag of wildcard receives from the line that starts or completes them, if recorded."""
        for name in ("from", "mtag"):
            told = _told(attributes.get(name), requests)
            for r in requests:
                if r.end is None or r.req not in told:
                    continue
                if name == "from" and r.end.peer == ANY_SOURCE:
                    r.end.peer = told[r.req]
                elif name == "mtag" and r.end.tag == ANY_TAG:
                    r.end.tag = told[r.req]

    def _meant(self, action: str, attributes: dict[str, str]) -> list[Request]:
        done, reqs = _list(attributes.get("done")), _list(attributes.get("reqs"))
        if action == "waitall" or (action == "testall" and attributes.get("flag") == "1"):
            done = reqs if done is None else done
            if done is None:
                return list(self.open)
        if done is not None:
            return [self.by_req[r] for r in done if r in self.by_req]
        if action in ("waitAny", "waitany", "waitsome"):
            self._any_calls += 1
            if self._any_calls >= len(self.open):
                return list(self.open)
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
        if not self.open:
            self._any_calls = 0
        return requests


def _bytes(text: str) -> int:
    return int(float(text))


def _key(a: Sequence[str]) -> tuple[int, int, int]:
    return int(a[0]), int(a[1]), int(a[2])


def _list(text: str | None) -> list[int] | None:
    if text is None:
        return None
    return [] if text == "none" else [int(x) for x in text.split(",")]


def _told(text: str | None, requests: Sequence[Request]) -> dict[int, int]:
    """Request -> value, from ``R`` for a single request or ``A:R,B:R``."""
    if text is None or not requests:
        return {}
    if ":" not in text:
        return {requests[0].req: int(text)}
    return {int(req): int(value) for req, _, value in (part.partition(":") for part in text.split(","))}


@dataclass
class Job:
    """All ranks of a trace: their lines, messages, and collectives: ``(key, turn) -> {rank: line}``."""

    lines: list[list[str]]
    messages: list[Message] = field(default_factory=list)
    lonely: list[End] = field(default_factory=list)  # unmatched ends
    guessed: int = 0  # wildcard receives whose source is not recorded
    collectives: dict[tuple[object, int], dict[int, int]] = field(default_factory=dict)
    completes: list[dict[int, list[Request]]] = field(default_factory=list)  # by rank: line -> requests
    trackers: list[Tracker] = field(default_factory=list)
    worlds: list[list[int]] = field(default_factory=list)  # by rank: lines of the collectives of MPI_COMM_WORLD
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        for rank, lines in enumerate(self.lines):
            if self.progress is not None:
                self.progress(rank, len(self.lines))
            tracker, done, worlds = Tracker(rank), dict[int, list[Request]](), list[int]()
            turns: dict[object, int] = defaultdict(int)
            for at, line in enumerate(lines):
                if " compute " in line:
                    continue
                completed = tracker.line(at, line)
                if completed:
                    done[at] = completed
                key = _collective(line)
                if key is not None:
                    self.collectives.setdefault((key, turns[key]), {})[rank] = at
                    turns[key] += 1
                    if key == ("comm", 0):
                        worlds.append(at)
            self.completes.append(done)
            self.trackers.append(tracker)
            self.worlds.append(worlds)
        self._match()

    def _match(self) -> None:
        waiting: dict[tuple[int, int, int, int], deque[End]] = defaultdict(deque)  # from, to, comm, tag
        for tracker in self.trackers:
            for s in tracker.sends:
                if s.peer >= 0:
                    waiting[s.rank, s.peer, s.comm, s.tag].append(s)
        wild: list[End] = []
        for tracker in self.trackers:
            for r in tracker.recvs:
                if r.peer == ANY_SOURCE or (r.tag == ANY_TAG and r.peer >= 0):
                    wild.append(r)
                elif r.peer >= 0:
                    queue = waiting.get((r.peer, r.rank, r.comm, r.tag))
                    if queue:
                        self._pair(queue.popleft(), r)
                    else:
                        self.lonely.append(r)
        self._wild(wild, waiting)
        self.lonely += [s for queue in waiting.values() for s in queue]

    def _wild(self, wild: list[End], waiting: dict[tuple[int, int, int, int], deque[End]]) -> None:
        """Matches the remaining sends to wildcard receives, ordered by the collectives before them, then by line."""
        left: dict[tuple[int, int], list[tuple[int, int, tuple[int, int, int, int]]]] = defaultdict(list)
        for key, queue in waiting.items():
            for s in queue:
                left[key[1], key[2]].append((self._epoch(s), s.post, key))
        for sends in left.values():
            sends.sort()
        for r in sorted(wild, key=lambda e: (e.rank, e.post)):
            self.guessed += r.peer == ANY_SOURCE
            options = left.get((r.rank, r.comm), [])
            for at, (_, _, key) in enumerate(options):
                if r.peer in (ANY_SOURCE, key[0]) and r.tag in (ANY_TAG, key[3]) and waiting[key]:
                    self._pair(waiting[key].popleft(), r)
                    del options[at]
                    break
            else:
                self.lonely.append(r)

    def _epoch(self, end: End) -> int:
        return bisect_left(self.worlds[end.rank], end.post)

    def _pair(self, send: End, recv: End) -> None:
        send.match, recv.match = recv, send
        self.messages.append(Message(send, recv))


def _collective(line: str) -> object:
    """The key of a collective: its communicator, its window, or the communicator created over a group; None for other lines."""
    words = line.split(None, 3)
    if len(words) < 2 or words[0].startswith("#"):
        return None
    action = words[1]
    if action in COLLECTIVES or action == "win_create" or action in COMM_MAKERS or action in ("Win_fence", "win_free", "comm_free"):
        _, a, attributes = split(line)
        if action in ("comm_create_group", "intercomm_create"):
            return ("group", a[0]) if a else None
        if action in COMM_MAKERS and not a:
            return None  # SMPI's comm_split and comm_dup have no arguments
        if action in ("Win_fence", "win_free"):
            return ("win", a[0] if a and action == "win_free" else attributes.get("win", ""))
        return ("comm", int(attributes.get("comm", 0)))
    return None


def members(line: str) -> list[int]:
    """The world ranks named in a line that creates a communicator."""
    _, a, _ = split(line)
    return [r for group in a[1:] for r in parse_group(group)]
