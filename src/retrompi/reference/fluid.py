"""Links whose bandwidth is divided among all that cross them: the network of cards that move whole messages, whose packets interleave.

Every flow waits for the latency of its way and then gets a max-min fair share of its links: the link on which a flow would get least is
divided first, and what its flows leave of the others is divided among the rest. Where all ways have one latency it is added at the end.
Law: SimGrid's CM02 flows (Casanova, Marchal 2002), without its corrections for TCP; in a torus shares are in inverse proportion to the
latency of the way, as TCP's are.

Shares are found anew once for all changes of one instant. Time is whole and bytes are not, so it is a rule how they are counted: flows
of one way have equal shares, and a way counts the bytes that each of them has had (``got``); a flow that has all its links to itself is
counted in time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from retrompi.reference.loop import EventLoop
from retrompi.reference.network import EVEN, Frame, Queues
from retrompi.reference.values import PS, Values, nearest

__all__ = ["Fluid"]


@dataclass(eq=False)
class FlowRoute:
    """Flows between two cards. ``top``: the rate of its slowest link (B/ps); ``waits``, ``adds``: latency before and after (ps).

    ``flows``: (``got`` at which it has all its bytes, order, flow), sorted. ``last`` and ``beside``: the whole picosecond at which ``got``
    was counted, and what is beside it. ``alone``: the flow that has its links to itself, when it has passed, and what is beside that.
    """

    number: int
    links: list[Any]
    top: float
    waits: float
    adds: float
    weight: float
    flows: list[tuple[float, int, Frame]] = field(default_factory=list)
    last: int = 0
    beside: float = 0.0
    got: float = 0.0
    rate: float = 0.0
    share: float = 0.0
    alone: tuple[Frame, int, float] | None = None
    planned: int = -1
    fresh: bool = False

    def first_end(self) -> float:
        """Picoseconds from ``last`` until the first of its flows has passed."""
        return self.beside + max(0.0, self.flows[0][0] - self.got) / self.rate


class Fluid(Queues):
    """Fluid sharing over the same links."""

    ENDS, SHARES = -1, 1
    overtakes = True

    def __init__(self, loop: EventLoop, link: Values, places: list[int]) -> None:
        super().__init__(loop, link, places)
        self.ways: dict[tuple[Any, ...], FlowRoute] = {}
        self.on: dict[Any, list[FlowRoute]] = {}
        self.changed: list[Any] = []

    def _way(self, source: int, target: int) -> list[Any]:
        return [("hub", source % self.spec.rails)] if self.spec.kind == "hub" else super()._way(source, target)

    def _between(self, source: int, target: int) -> FlowRoute:
        links = self._way(source, target)
        if tuple(links) not in self.ways:
            latency, even = self._latency(links), self.spec.kind in (*EVEN, "hub")
            weight = 1 / latency if self.spec.kind == "torus" and latency > 0 else 1.0
            top = min(self._rate(name) / PS for name in links)
            self.ways[tuple(links)] = FlowRoute(len(self.ways), links, top, 0.0 if even else latency, latency if even else 0.0, weight)
        return self.ways[tuple(links)]

    def _enter(self, frame: Frame) -> None:
        way = self._between(frame.source, frame.target)
        start = frame.asked + nearest(way.waits)
        if start > self.loop.now:
            self._for(frame, start, self.MOVES, self._comes_at, way)
        else:
            self._begin(frame, way)

    def _comes_at(self, t: int, frame: Frame, way: FlowRoute) -> None:
        self.loop.now = t
        self._begin(frame, way)

    def _begin(self, frame: Frame, way: FlowRoute) -> None:
        """A flow gets its share; the flows beside it, which had their links to themselves, do no longer."""
        now = self.loop.now
        for other in [way, *(other for name in way.links for other in reversed(self.on.get(name, [])))]:
            self._not_alone(other)
        self._list(way)
        by_itself = self._by_itself(way)
        self.contended += not by_itself or bool(way.flows)
        if way.flows:
            self._count(way)
        else:
            way.last, way.beside, way.got, way.rate = now, 0.0, 0.0, 0.0
        way.flows.append((way.got + float(frame.size), frame.order, frame))
        way.flows.sort(key=lambda flow: flow[:2])
        if by_itself:
            way.rate = way.top / len(way.flows)
            self._plan(way, True)
        else:
            self._change(way)

    def _not_alone(self, way: FlowRoute) -> None:
        """The flow that was alone has passed, or goes on as any other."""
        if way.alone is None:
            return
        (frame, end, beside), way.alone = way.alone, None
        now = self.loop.now
        if end <= now:
            self._unlist(way)
            return
        way.last, way.beside, way.got, way.rate = now, 0.0, 0.0, way.top
        frame.turn += 1
        way.flows.append(((float(end - now) + beside) * way.top, frame.order, frame))
        self._change(way)

    def _list(self, way: FlowRoute) -> None:
        for name in way.links:
            if way not in self.on.setdefault(name, []):
                self.on[name].append(way)

    def _unlist(self, way: FlowRoute) -> None:
        for name in way.links:
            if way in self.on.get(name, []):
                self.on[name].remove(way)

    def _by_itself(self, way: FlowRoute) -> bool:
        return all(len(self.on[name]) == 1 for name in way.links)

    def _count(self, way: FlowRoute) -> None:
        """The bytes that its flows have had until now."""
        way.got += (float(self.loop.now - way.last) - way.beside) * way.rate
        way.last, way.beside = self.loop.now, 0.0

    def _plan(self, way: FlowRoute, by_itself: bool) -> None:
        """When the next of its flows has passed."""
        ps = way.first_end()
        end = way.last + nearest(ps)
        if by_itself and len(way.flows) == 1:
            way.planned = -1
            _, _, frame = way.flows.pop()
            way.alone = frame, end, ps - float(end - way.last)
            self._tell(frame, way.last + nearest(ps + way.adds))
        else:
            way.planned = end
            self._at(end, self.ENDS, way.number, self._passes_at, way)

    def _tell(self, frame: Frame, t: int) -> None:
        self._for(frame, t, self.ARRIVES, self._arrives)

    def _passes_at(self, t: int, way: FlowRoute) -> None:
        """The first flow of a way has had its bytes, and others that end in the same picosecond."""
        if way.planned != t:
            return
        way.planned, self.loop.now = -1, t
        ps = way.first_end()
        way.got = max(way.got, way.flows[0][0])
        way.beside, way.last = ps - float(t - way.last), t
        while way.flows and way.last + nearest(way.first_end()) <= t:
            _, _, frame = way.flows.pop(0)
            self._tell(frame, way.last + nearest(way.beside + way.adds))
        if way.flows and self._by_itself(way):
            way.rate = way.top / len(way.flows)
            self._plan(way, True)
            return
        if not way.flows:
            self._unlist(way)
        self._change(way)

    def _change(self, way: FlowRoute) -> None:
        """Shares are to be found anew before the clock moves."""
        way.fresh = bool(way.flows)
        if not self.changed:
            self._at(self.loop.now, self.SHARES, 0, self._share_all)
        self.changed += [name for name in way.links if name not in self.changed]

    def _share_all(self, t: int) -> None:
        changed, self.changed = self.changed, []
        done: set[Any] = set()
        for name in changed:
            if name not in done and self.on.get(name):
                self._share(name, done)

    def _share(self, first: Any, done: set[Any]) -> None:
        """Divides the links of all ways that are connected to a link."""
        names, ways = [first], list(self.on[first])
        for way in ways:
            for name in way.links:
                if name not in names:
                    names.append(name)
                    ways += [other for other in self.on[name] if other not in ways]
        done.update(names)
        spare = {name: self._rate(name) / PS for name in names}
        open_ = [way for way in ways if way.flows]

        def level_of(name: Any) -> float:
            weight = sum(way.weight * float(len(way.flows)) for way in self.on[name] if way in open_)
            return spare[name] / weight if weight > 0 else 0.0

        # What a flow could get of a link only grows as others are divided: a link is looked at again when its turn comes. Of links that
        # are as scarce but for the rounding of numbers this decides which is the first.
        levels = [(level, at) for at, name in enumerate(names) if (level := level_of(name)) > 0]
        while levels:
            scarcest = min(levels)
            levels.remove(scarcest)
            at = scarcest[1]
            level = level_of(names[at])
            if levels and (level, at) > min(levels):
                levels.append((level, at))
                continue
            for way in [way for way in self.on[names[at]] if way in open_]:
                open_.remove(way)
                way.share = level * way.weight
                for name in way.links:
                    spare[name] = max(0.0, spare[name] - float(len(way.flows)) * way.share)
        for way in ways:
            fresh, way.fresh = way.fresh, False
            by_itself = self._by_itself(way)
            if way.flows and (fresh or way.share != way.rate or (by_itself and len(way.flows) == 1)):
                self._count(way)
                way.rate = way.share
                self._plan(way, by_itself)

    def _cut_off(self, lost: list[Frame]) -> None:
        for frame in lost:
            way = self._between(frame.source, frame.target)
            self._not_alone(way)
            if any(flow is frame for _, _, flow in way.flows):
                way.flows = [flow for flow in way.flows if flow[2] is not frame]
                way.planned = -1
                if not way.flows:
                    self._unlist(way)
                self._change(way)
            self._lose(self.loop.now, frame)
