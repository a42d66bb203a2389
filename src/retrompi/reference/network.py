"""The network between the hosts: cards, links that are queues, and a hub.

A frame crosses the sender's card, the links of its way, and the receiver's card. Nothing is planned for a link before a frame has come to
it: there it waits until those that came before it have passed. Sources: docs/networks.md; the order at a switch's port is first come,
first served; a hub is one medium that carries one frame at a time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from retrompi.reference.loop import EventLoop
from retrompi.reference.values import NEVER, PS, NotCovered, Values, nearest, picoseconds

__all__ = ["EVEN", "Cards", "CollidingHub", "Hub", "Nothing", "PausingSwitch", "Queues", "Wire"]


EVEN = ("cable", "switch", "pausing-switch")
"""Kinds whose ways all have one latency."""


@dataclass(eq=False)
class Frame:
    """One frame on the wire: ``asked`` is when it was to set out, ``order`` counts the frames sent before it. What is planned for it is
    void once another ``turn`` has begun. ``of_others``: it belongs to no job."""

    order: int
    source: int
    target: int
    size: int
    asked: int
    delivered: Callable[[], None]
    lost: Callable[[], None]
    of_others: bool = False
    way: list[Any] = field(default_factory=list)
    alone: int = 0
    rounding: int = 0
    waited: bool = False
    turn: int = 0


@dataclass
class LinkFailure:
    """An outage from a time on (ps), until another time or for good: links, by their names, and cards. ``frames``: how many it took."""

    name: str
    begin: int
    end: int
    links: set[Any]
    cards: set[int]
    now: bool = False
    frames: int = 0


class Wire:
    """Common to all wires: a list of what happens on links, apart from the events of hosts (`loop`).

    At one instant, what happens on links comes first, in the order in which the frames were sent; then decisions of media; then arrivals,
    again in the order of sending.

    When a link or a card fails, all frames are lost whose way leads over it, wherever they are between the two cards, and so is what is
    sent while it is down. The sender's system is not told; it hears of it by what does not come. A link, also one that works, that was
    carrying a lost frame is free at once, and the frames that wait for it go on in the order in which they came.
    """

    MOVES, DECIDES, ARRIVES = range(3)
    overtakes = False
    """Whether a short frame may overtake a long one of the same path."""

    def __init__(self, loop: EventLoop, link: Values, places: list[int]) -> None:
        self.loop, self.spec, self.places = loop, link, places
        self._items: list[tuple[int, int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._planned = 0
        self._on_the_way: dict[int, Frame] = {}
        self._sent = 0
        self.failures: list[LinkFailure] = []
        self.contended = 0
        self.dropped = 0

    def next_time(self) -> int:
        """When the next thing happens on a link."""
        return self._items[0][0] if self._items else NEVER

    def under_way(self) -> bool:
        """Whether a frame of a job has not arrived yet."""
        return any(not frame.of_others for frame in self._on_the_way.values())

    def advance(self) -> None:
        """Everything that happens on links at one instant."""
        t = self.next_time()
        while self.next_time() == t:
            *_, call, arguments = heapq.heappop(self._items)
            call(t, *arguments)

    def send(self, at: int, source: int, target: int, size: int, delivered: Callable[[], None], lost: Callable[[], None],
             of_others: bool = False) -> None:
        """A frame sets out from a card at a time, now or later."""
        frame = Frame(self._sent, source, target, size, at, delivered, lost, of_others)
        self._on_the_way[self._sent] = frame
        self._sent += 1
        if self._is_down(frame):
            self._lose(self.loop.now, frame)
        else:
            self._enter(frame)

    def _at(self, t: int, kind: int, order: int, call: Callable[..., None], *arguments: Any) -> None:
        self._planned += 1
        heapq.heappush(self._items, (t, kind, order, self._planned, call, arguments))

    def _for(self, frame: Frame, t: int, kind: int, call: Callable[..., None], *arguments: Any) -> None:
        """Plans something for a frame, unless another turn of it begins."""
        self._at(t, kind, frame.order, self._in_turn, frame, frame.turn, call, arguments)

    def _in_turn(self, t: int, frame: Frame, turn: int, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if turn == frame.turn:
            call(t, frame, *arguments)

    def _enter(self, frame: Frame) -> None:
        raise NotCovered("nothing joins these hosts")

    def _arrives(self, t: int, frame: Frame) -> None:
        self.loop.now = t
        self.contended += frame.waited
        del self._on_the_way[frame.order]
        frame.delivered()

    def _lose(self, t: int, frame: Frame) -> None:
        """The sender's system hears of it by an event of its own."""
        frame.turn += 1
        del self._on_the_way[frame.order]
        self.loop.schedule(t, frame.lost, passive=frame.of_others)

    def _drop(self, t: int, frame: Frame) -> None:
        """There is no space for it, or it has collided too often."""
        self.loop.now = t
        self.dropped += 1
        self._lose(t, frame)

    # -- failures

    def _way(self, source: int, target: int) -> list[Any]:
        """The links from a card to another one."""
        raise NotCovered("nothing joins these hosts")

    def fail(self, failures: list[tuple[int, int, int, float, float, str]]) -> None:
        """(what, which, which more, from when, until when in s or -1, name)"""
        for what, a, b, begin, end, name in failures:
            links, cards = failing(self, what, a, b)
            failure = LinkFailure(name, picoseconds(begin), picoseconds(end) if end >= 0 else NEVER, links, cards)
            self.failures.append(failure)
            self.loop.schedule(failure.begin, self._goes_down, failure, passive=True)
            if failure.end < NEVER:
                self.loop.schedule(failure.end, self._comes_up, failure, passive=True)

    def _is_down(self, frame: Frame) -> bool:
        """Whether something on its way is down; the first failure that explains it is charged with the frame."""
        for failure in self.failures:
            on_cards = frame.source in failure.cards or frame.target in failure.cards
            if failure.now and (on_cards or not failure.links.isdisjoint(self._way(frame.source, frame.target))):
                failure.frames += 1
                return True
        return False

    def _goes_down(self, failure: LinkFailure) -> None:
        failure.now = True
        self._cut_off([frame for frame in self._on_the_way.values() if self._is_down(frame)])

    def _comes_up(self, failure: LinkFailure) -> None:
        failure.now = False

    def _cut_off(self, lost: list[Frame]) -> None:
        """Loses frames, in the order in which they were sent, and gives what they had or waited for to others."""
        raise NotImplementedError


def failing(wire: Wire, what: int, a: int, b: int) -> tuple[set[Any], set[int]]:
    """The links and the cards that fail with a host's connection (0), the link of a pair (1), the hub or switch (2), a switch of a fat tree
    by level and number (3), the switch of a site (4), the line between two sites (5), a rail (6)."""
    spec, places, rails = wire.spec, wire.places, wire.spec.rails
    cards = range(len(places))
    match what:
        case 0:
            return set(), {card for card in cards if places[card] == a}
        case 1 if spec.kind == "torus":
            return {name for rail in range(rails) for x, y in ((a, b), (b, a)) for name in wire._torus(x, y, rail)}, set()  # type: ignore[attr-defined]
        case 1 | 2:
            return {name for x in cards for y in cards if x != y and x % rails == y % rails for name in wire._way(x, y)}, set()
        case 3:
            return _of_a_switch(spec, a, b), set()
        case 4:
            return set(), {card for card in cards if spec.shape[places[card]] == a}
        case 5:
            return {("line", a, b), ("line", b, a)}, set()
        case _:
            return set(), {card for card in cards if card % rails == a}


def _of_a_switch(spec: Values, level: int, number: int) -> set[Any]:
    """The links of a switch of a fat tree to its children and to its parents, named as `Queues._tree` does."""
    levels = len(spec.shape) // 3
    children, parents, ports = (spec.shape[i * levels : (i + 1) * levels] for i in range(3))
    label = []
    for j in range(levels):
        radix = parents[j] if j < level else children[j]
        label.append(number % radix)
        number //= radix
    found = set()
    for rail in range(spec.rails):
        for child in range(children[level - 1]):
            below = (*label[: level - 1], child, *label[level:])
            for k in range(ports[level - 1]):
                found |= {("tree", rail, level - 1, below, label[level - 1] + k * parents[level - 1], way) for way in ("up", "down")}
        if level < levels:
            for port in range(parents[level] * ports[level]):
                found |= {("tree", rail, level, tuple(label), port, way) for way in ("up", "down")}
    return found


class Nothing(Wire):
    """No wire: all ranks are on one host, or their messages follow a curve."""


@dataclass
class Place:
    """A frame's place in the line of the ``hop``-th link of its way: its first byte came at ``came``, its last one comes at ``last_byte``;
    it has the link from ``start`` to ``end``."""

    frame: Frame
    hop: int
    came: int
    last_byte: int
    start: int
    end: int


@dataclass
class Link:
    """``free``: when the last frame that has come to it has passed. ``line``: those that have not passed."""

    ps_per_byte: float
    latency: int
    free: int = 0
    line: list[Place] = field(default_factory=list)


class Queues(Wire):
    """Cable, switch, torus, fat tree, and sites: every link is a queue with a rate and a latency.

    The first byte of a frame is let through as soon as the link is free, and the last one follows when the link has passed all bytes and
    the last byte has come (cut through). Each link counts in whole picoseconds; at the end ``rounding`` makes good what that adds up to, so
    that a frame that never waits takes exactly its bytes at the slowest link's rate and the sum of the latencies.

    A link behind the first has a buffer: a frame that has to wait there and does not fit beside those that wait already is dropped.
    """

    def __init__(self, loop: EventLoop, link: Values, places: list[int]) -> None:
        super().__init__(loop, link, places)
        self.buffer = float(link.buffer) if link.buffer > 0 else float("inf")
        self.links: dict[Any, Link] = {}

    def _rate(self, name: Any) -> float:
        return float(self.spec.wan_bandwidth if name[0] == "line" else self.spec.bandwidth)

    def _latency(self, way: list[Any]) -> float:
        """Picoseconds, not rounded."""
        lines = float(sum(name[0] == "line" for name in way))
        return float(self.spec.latency * PS * (len(way) - lines) + self.spec.wan_latency * PS * lines)

    def _link(self, name: Any) -> Link:
        if name not in self.links:
            # In a torus frames in transit come to a card's first link too, so its own queue up behind the card.
            latency = 0 if name[0] == "card" else nearest(self._latency([name]))
            self.links[name] = Link(PS / self._rate(name), latency)
        return self.links[name]

    def _way(self, source: int, target: int) -> list[Any]:
        """The links from a card to another one."""
        spec, rail = self.spec, source % self.spec.rails
        a, b = self.places[source], self.places[target]
        match spec.kind:
            case "cable":
                return [("cable", source)]
            case "switch" | "pausing-switch":
                return [("up", source), ("down", target)]
            case "wan":
                line = [("line", spec.shape[a], spec.shape[b])] if spec.shape[a] != spec.shape[b] else []
                return [("up", source), *line, ("down", target)]
            case "torus":
                return self._torus(a, b, rail)
            case "fat-tree":
                return self._tree(a, b, rail)
        raise NotCovered(f"links of kind '{spec.kind}'")

    def _torus(self, source: int, target: int, rail: int) -> list[Any]:
        """Dimension by dimension, the shorter way round; of two equal ones the one that SimGrid takes."""
        way: list[Any] = []
        at, before = source, 1
        for dimension, n in enumerate(self.spec.shape):
            mine, wanted = source // before % n, target // before % n
            right = mine < wanted <= mine + n // 2 or (mine > n // 2 and (mine + n // 2) % n >= wanted)
            while mine != wanted:
                following = (mine + 1) % n if right else (mine + n - 1) % n
                neighbour = at - mine * before + following * before
                # A place owns the pair of links to its right neighbour.
                way.append(("torus", rail, at if right else neighbour, dimension, right))
                at, mine = neighbour, following
            before *= n
        return way

    def _tree(self, source: int, target: int, rail: int) -> list[Any]:
        """Up until the target is below, by its number modulo the uplinks (Zahavi 2010); then down, of parallel links the one that SimGrid
        takes: by the source, searched on from where the level above was left."""
        levels = len(self.spec.shape) // 3
        children, parents, ports = (self.spec.shape[i * levels : (i + 1) * levels] for i in range(3))
        label, wanted, a, b = [], [], source, target
        for n in children:
            label.append(a % n)
            wanted.append(b % n)
            a, b = a // n, b // n
        way: list[Any] = []
        level, spread = 0, target
        while level == 0 or label[level:] != wanted[level:]:
            port = spread % (parents[level] * ports[level])
            way.append(("tree", rail, level, tuple(label), port, "up"))
            label[level] = port % parents[level]
            spread //= parents[level]
            level += 1
        while level > 0:
            i = source % ports[level - 1] * children[level - 1]
            while level > 0 and i < children[level - 1] * ports[level - 1]:
                if i % children[level - 1] == wanted[level - 1]:
                    level -= 1
                    port = label[level] + i // children[level] * parents[level]
                    label[level] = wanted[level]
                    way.append(("tree", rail, level, tuple(label), port, "down"))
                i += 1
        return way

    def _enter(self, frame: Frame) -> None:
        way = self._way(frame.source, frame.target)
        slowest = max(PS / self._rate(name) for name in way)
        rate = min(self._rate(name) / PS for name in way)
        latencies = sum(self._link(name).latency for name in way)
        passing, latency = frame.size / rate, self._latency(way)
        frame.alone = frame.asked + latencies + max(1, int(frame.size * slowest + 0.5))
        together = self.spec.kind in EVEN
        whole = nearest(passing + latency) if together else nearest(latency) + nearest(passing)
        frame.rounding = frame.asked + whole - frame.alone
        frame.way = [("card", frame.source), *way] if self.spec.kind == "torus" else way
        self._for(frame, frame.asked, self.MOVES, self._comes, 0, frame.asked)

    def _comes(self, t: int, frame: Frame, hop: int, last_byte: int) -> None:
        """The first byte of a frame comes to a link; its last one follows at ``last_byte``."""
        link = self._link(frame.way[hop])
        link.line = [place for place in link.line if place.end > t]
        waiting = sum(place.frame.size for place in link.line if place.start > t)
        if max(t, link.free) > t and hop > 0 and frame.size + waiting > self.buffer:
            self._drop(t, frame)
        else:
            self._takes(t, frame, hop, t, last_byte)

    def _takes(self, t: int, frame: Frame, hop: int, came: int, last_byte: int) -> None:
        """A frame takes the last place in the line of a link."""
        link = self._link(frame.way[hop])
        start = max(t, link.free)
        link.free = max(start + max(1, int(frame.size * link.ps_per_byte + 0.5)), last_byte)
        link.line.append(Place(frame, hop, came, last_byte, start, link.free))
        first_byte, last_byte = start + link.latency, link.free + link.latency
        if hop + 1 < len(frame.way):
            self._for(frame, first_byte, self.MOVES, self._comes, hop + 1, last_byte)
        else:
            frame.waited = last_byte > frame.alone
            self._for(frame, last_byte + frame.rounding, self.ARRIVES, self._arrives)

    def _cut_off(self, lost: list[Frame]) -> None:
        now = self.loop.now
        again: list[Place] = []
        for frame in lost:
            self._lose(now, frame)
        for link in self.links.values():
            again += [place for place in link.line if place.start > now and place.frame not in lost]
            link.line = [place for place in link.line if place.start <= now < place.end and place.frame not in lost]
            link.free = link.line[-1].end if link.line else now
        for place in sorted(again, key=lambda place: (place.came, place.frame.order)):
            place.frame.turn += 1
            self._takes(now, place.frame, place.hop, place.came, place.last_byte)


class PausingSwitch(Queues):
    """A switch with flow control (IEEE 802.3x). It counts the bytes from each card that wait for its output ports; when they are more than
    the buffer, it asks the card to pause, and to go on when no more than half a buffer is left. That takes a frame of 84 B and a link's
    latency, and nothing of the port's time. A card that pauses ends its frame and begins no other.
    """

    PAUSE_BYTES = 84

    def __init__(self, loop: EventLoop, link: Values, places: list[int]) -> None:
        super().__init__(loop, link, places)
        self.most, self.buffer = float(link.buffer), float("inf")
        self.delay = nearest(link.latency * PS + self.PAUSE_BYTES * (PS / link.bandwidth))
        self.lines: list[list[Frame]] = [[] for _ in places]
        self.waiting: list[set[Frame]] = [set() for _ in places]
        self.asked, self.pausing = set[int](), set[int]()
        self.signals = 0

    def _comes(self, t: int, frame: Frame, hop: int, last_byte: int) -> None:
        if hop == 0:
            self.lines[frame.source].append(frame)
            self._begins(t, frame.source)
        else:
            super()._comes(t, frame, hop, last_byte)

    def _begins(self, t: int, card: int) -> None:
        """A card's next frame, when the link is free and the card does not pause."""
        line, link = self.lines[card], self._link(("up", card))
        if card in self.pausing or not line:
            return
        if link.free > t:
            self._at(link.free, self.MOVES, line[0].order, self._begins, card)
        else:
            self._takes(t, line.pop(0), 0, t, t)
            self._begins(t, card)

    def _takes(self, t: int, frame: Frame, hop: int, came: int, last_byte: int) -> None:
        super()._takes(t, frame, hop, came, last_byte)
        if hop == 1:
            start = self._link(frame.way[1]).line[-1].start
            if start > t:
                self.waiting[frame.source].add(frame)
                self._for(frame, start, self.MOVES, self._leaves_queue)
                self._asks(t, frame.source)
            else:
                self._leaves_queue(t, frame)

    def _leaves_queue(self, t: int, frame: Frame) -> None:
        self.waiting[frame.source].discard(frame)
        self._asks(t, frame.source)

    def _asks(self, t: int, card: int) -> None:
        """What the switch asks of a card, if that has changed."""
        held = sum(frame.size for frame in self.waiting[card])
        if (card in self.asked and held <= self.most / 2) or (card not in self.asked and held > self.most):
            self.asked ^= {card}
            self.signals += 1
            self._at(t + self.delay, self.DECIDES, self.signals, self._is_told, card, card in self.asked)

    def _is_told(self, t: int, card: int, pauses: bool) -> None:
        self.pausing = self.pausing | {card} if pauses else self.pausing - {card}
        self._begins(t, card)

    def _cut_off(self, lost: list[Frame]) -> None:
        now = self.loop.now
        for card, line in enumerate(self.lines):
            self.lines[card] = [frame for frame in line if frame not in lost]
            self.waiting[card] = {frame for frame in self.waiting[card] if frame not in lost}
            self._asks(now, card)
        super()._cut_off(lost)
        for card in range(len(self.lines)):
            self._begins(now, card)


class Hub(Wire):
    """One medium for all stations of a rail, first come, first served. A station offers one frame at a time: its next one comes when that
    has passed."""

    def __init__(self, loop: EventLoop, link: Values, places: list[int]) -> None:
        super().__init__(loop, link, places)
        self.rate, self.latency = link.bandwidth / PS, link.latency * PS
        self.rails = link.rails
        self.lines: list[deque[Frame]] = [deque() for _ in places]
        self.offers: list[list[tuple[int, int, Frame]]] = [[] for _ in range(link.rails)]
        self.carried: list[Frame | None] = [None] * link.rails
        self.free = [0] * link.rails

    def _way(self, source: int, target: int) -> list[Any]:
        return [("hub", source % self.rails)]

    def _enter(self, frame: Frame) -> None:
        self._for(frame, frame.asked, self.MOVES, self._comes)

    def _comes(self, t: int, frame: Frame) -> None:
        line = self.lines[frame.source]
        line.append(frame)
        if line[0] is frame:
            self._offer(t, frame)

    def _offer(self, t: int, frame: Frame) -> None:
        medium = frame.source % self.rails
        heapq.heappush(self.offers[medium], (t, frame.order, frame))
        self._at(t, self.DECIDES, medium, self._decide, medium)

    def _decide(self, t: int, medium: int) -> None:
        if self.carried[medium] or not self.offers[medium]:
            return
        _, _, frame = heapq.heappop(self.offers[medium])
        self._carry(t, frame, medium, t)

    def _carry(self, t: int, frame: Frame, medium: int, start: int) -> None:
        """It has the medium from ``start`` on, as is decided at ``t``."""
        self.carried[medium] = frame
        frame.waited = start > frame.asked
        end = start + max(1, nearest(frame.size / self.rate))
        self._for(frame, max(t, end), self.MOVES, self._passes, medium, end)
        self._for(frame, start + nearest(frame.size / self.rate + self.latency), self.ARRIVES, self._arrives)

    def _passes(self, t: int, frame: Frame, medium: int, end: int) -> None:
        """It has passed at ``end``; others may begin."""
        self.carried[medium], self.free[medium] = None, end
        self._following(frame, end)
        self._look(t, medium)

    def _following(self, frame: Frame, end: int) -> None:
        """The station's next frame wants the medium."""
        line = self.lines[frame.source]
        line.popleft()
        if line:
            self._offer(max(line[0].asked, end), line[0])

    def _look(self, t: int, medium: int) -> None:
        """The medium is free, or what is offered has changed."""
        self._at(t, self.DECIDES, medium, self._decide, medium)

    def _cut_off(self, lost: list[Frame]) -> None:
        now = self.loop.now
        following: dict[int, deque[Frame]] = {}
        for frame in lost:
            self._lose(now, frame)
            medium, line = frame.source % self.rails, self.lines[frame.source]
            if self.carried[medium] is frame:
                self.carried[medium], self.free[medium] = None, now
            if frame in line:  # it has not passed
                if line[0] is frame:
                    following[frame.source] = line
                line.remove(frame)
        for medium, offers in enumerate(self.offers):
            self.offers[medium] = [offer for offer in offers if offer[2] not in lost]
            heapq.heapify(self.offers[medium])
        for line in following.values():
            if line:
                self._offer(now, line[0])
        for medium in range(self.rails):
            if not self.carried[medium]:
                self._look(now, medium)


class CollidingHub(Hub):
    """One medium under CSMA/CD (IEEE 802.3, 1-persistent): a station begins when the medium is free, and those that begin before they can
    hear the first one collide.

    What happens is decided a latency after the first has begun. After a collision the medium is taken for a slot, 512 bit times, and each
    tries again after a random number of slots, from a range that doubles with each of its collisions up to 1024; after 16 it gives the
    frame up.
    """

    ATTEMPTS, DOUBLINGS, SLOT_BYTES = 16, 10, 64

    def __init__(self, loop: EventLoop, link: Values, places: list[int], random: Any) -> None:
        super().__init__(loop, link, places)
        self.random, self.delay = random, nearest(self.latency)
        self.slot = nearest(self.SLOT_BYTES / self.rate)
        self.collisions: dict[Frame, int] = {}

    def _offer(self, t: int, frame: Frame) -> None:
        medium = frame.source % self.rails
        heapq.heappush(self.offers[medium], (t, frame.order, frame))
        self._at(max(t, self.free[medium]) + self.delay, self.DECIDES, medium, self._decide, medium)

    def _look(self, t: int, medium: int) -> None:
        if offers := self.offers[medium]:
            self._at(max(offers[0][0], self.free[medium]) + self.delay, self.DECIDES, medium, self._decide, medium)

    def _decide(self, t: int, medium: int) -> None:
        offers = self.offers[medium]
        if self.carried[medium] or not offers:
            return
        start = max(offers[0][0], self.free[medium])
        if start + self.delay != t:
            return
        begun = []
        while offers and max(offers[0][0], self.free[medium]) <= t:
            begun.append(heapq.heappop(offers)[2])
        if len(begun) == 1:
            self._carry(t, begun[0], medium, start)
            return
        self.free[medium] = start + self.slot
        for frame in begun:
            self._collides(t, frame, self.free[medium])

    def _collides(self, t: int, frame: Frame, end: int) -> None:
        tries = self.collisions[frame] = self.collisions.get(frame, 0) + 1
        self.contended += tries == 1
        if tries >= self.ATTEMPTS:
            self._at(max(t, end), self.MOVES, frame.order, lambda _: self._following(frame, end))
            self._drop(t, frame)
            return
        slots = self.random.next() % (1 << min(tries, self.DOUBLINGS))
        self._for(frame, end + self.slot * slots, self.MOVES, self._offer)


class Cards:
    """The hosts' cards. A card moves one frame at a time each way, at its rate, and adds its latency. A host has a card on every rail; a
    pair of hosts uses one rail, or its frames use all in turn and are put in order again (RFC 1990)."""

    def __init__(self, job: Any, wire: Wire, link: Values, places: list[int]) -> None:
        self.job, self.wire, self.loop = job, wire, job.loop
        self.overhead, self.mtu, self.rails = link.frame_overhead, link.mtu, link.rails
        self.stripe = link.rail_policy == "stripe" and link.rails > 1
        self.places = places
        self.ordered = self.stripe or wire.overtakes
        self.memory_free: dict[int, int] = {}
        self.free: dict[tuple[bool, int, int], int] = {}
        self.numbers: dict[tuple[int, int], int] = {}
        self.expected: dict[tuple[int, int], int] = {}
        self.early: dict[tuple[int, int], dict[int, Callable[[], None] | None]] = {}

    def frame(self, source: int, target: int, payload: int, delivered: Callable[[], None], lost: Callable[[], None]) -> None:
        """Carries one frame from a host to another one; calls what has become of it."""
        self.job.count.frames += 1
        pair = source, target
        rail = self._rail(source, target)
        number = self.numbers.get(pair, 0)
        if self.ordered:
            self.numbers[pair] = number + 1
        if self.stripe:
            rail = number % self.rails
        size = payload + self.overhead

        def cross_target() -> None:
            self.loop.schedule(self.cross(False, target, rail, size), over, delivered, False)

        def lose_frame() -> None:
            self.job.count.lost += 1
            over(lost, True)

        def over(told: Callable[[], None], is_lost: bool) -> None:
            if self.ordered:
                self._in_order(pair, number, told, is_lost)
            else:
                told()

        out = self.cross(True, source, rail, size)
        ends = source * self.rails + rail, target * self.rails + rail
        if self.wire.failures:  # what will be down by then is not known yet
            self.loop.schedule(out, self.wire.send, out, *ends, size, cross_target, lose_frame)
        else:
            self.wire.send(out, *ends, size, cross_target, lose_frame)

    def _rate(self, outwards: bool, host: int) -> float:
        spec = self.job.hosts[host].spec
        return float(spec.nic_rate if outwards or spec.nic_rate_in == 0 else spec.nic_rate_in)

    def cross(self, outwards: bool, host: int, rail: int, size: int) -> int:
        """When so many bytes have crossed a card."""
        card = outwards, host, rail
        self.free[card] = max(self.loop.now, self.free.get(card, 0)) + picoseconds(size / self._rate(outwards, host))
        return int(self.free[card] + self.job.hosts[host].spec.nic_latency)

    def burst(self, source: int, target: int, size: int, rate: float, piece: int, behind: int, delivered: Callable[[], None],
              lost: Callable[[], None], fetch: int = 0, interleaved: bool = False) -> int:
        """Moves a message from memory to memory, with ``behind`` bytes more in a packet of its own; returns when it has left the sender's.

        A stage begins when a piece has crossed the one before. ``rate``: that of the sender's memory, 0 for the card's; memory and bus are
        shared by both directions of all of a host's cards. It takes ``fetch`` until the first byte is there;
        ``interleaved``: what fits into a packet goes between those of longer messages. Over several rails it goes in equal parts,
        each at a part of that rate.
        """
        size += behind
        parts = self.rails if self.stripe and size > self.mtu else 1
        under_way, any_lost = parts, False

        def over(is_lost: bool) -> None:
            nonlocal under_way, any_lost
            under_way, any_lost = under_way - 1, any_lost or is_lost
            if under_way == 0:
                (lost if any_lost else delivered)()

        if parts == 1:
            return self._leaves((source, target, self._rail(source, target)), size, rate, piece, behind, over, fetch, interleaved)
        sizes = [size // parts + (k < size % parts) for k in range(parts)]
        return max(self._leaves((source, target, k), sizes[k], rate / parts, piece, 0, over, fetch, interleaved) for k in range(parts))

    def _leaves(self, way: tuple[int, int, int], size: int, rate: float, piece: int, behind: int, over: Callable[[bool], None],
                fetch: int, interleaved: bool) -> int:
        source, target, rail = way
        spec, card, now = self.job.hosts[source].spec, (True, source, rail), self.loop.now
        self.job.count.frames += 1
        piece, rate = min(piece, size), rate or self._rate(True, source)
        through, share = picoseconds(size / rate), picoseconds(size / spec.bus_rate)
        between = interleaved and size <= self.mtu
        start = now if between else max(now, self.free.get(card, 0), self.memory_free.get(source, 0))
        self.memory_free[source] = max(start, self.memory_free.get(source, 0)) + share
        if between:
            self.free[card] = max(now, self.free.get(card, 0)) + through
        else:
            self.free[card] = max(start + through, self.memory_free[source])
        left = (start + max(through, share) if between else self.free[card]) + fetch  # the card does something else until then
        packets = max(1, -(-(size - behind) // self.mtu)) + (behind > 0)

        def lose_frame() -> None:
            self.job.count.lost += 1
            over(True)

        def sets_out() -> None:
            ends = source * self.rails + rail, target * self.rails + rail
            carried = partial(self._comes_in, target, rail, size, piece, left, over)
            self.wire.send(self.loop.now, *ends, size + packets * self.overhead, carried, lose_frame)

        self.loop.schedule(start + fetch + picoseconds(piece / rate) + spec.nic_latency, sets_out)
        return int(left)

    def _comes_in(self, target: int, rail: int, size: int, piece: int, left: int, over: Callable[[bool], None]) -> None:
        """The last byte has come to the receiver's card: the pieces before the last one have gone into memory already, unless the card or
        the bus was taken."""
        spec, card, now, rate = self.job.hosts[target].spec, (False, target, rail), self.loop.now, self._rate(False, target)
        through, share = picoseconds(size / rate), picoseconds(size / spec.bus_rate)
        self.free[card] = max(now, max(self.free.get(card, 0), now - through) + through)
        self.memory_free[target] = max(self.memory_free.get(target, 0), now - share) + share
        end = max(self.free[card], self.memory_free[target], left) + picoseconds(piece / rate) + spec.nic_latency
        self.loop.schedule(end, over, False)

    def _rail(self, source: int, target: int) -> int:
        return int((self.places[source] ^ self.places[target]) % self.rails)

    def _in_order(self, pair: tuple[int, int], number: int, told: Callable[[], None], is_lost: bool) -> None:
        early = self.early.setdefault(pair, {})
        early[number] = None if is_lost else told
        if is_lost:
            told()
        while (at := self.expected.get(pair, 0)) in early:
            following = early.pop(at)
            self.expected[pair] = at + 1
            if following:
                following()
