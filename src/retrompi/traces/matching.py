"""Matching within a trace: sends with receives, requests with the lines that complete them, collectives across their members."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from retrompi.spec.declare.calls import Family, names

from .execution import JobExecution
from .lines import COMM_MAKERS, parse_group, split
from .tracker import ANY_SOURCE, ANY_TAG, End, MatchedMessage, Request, Tracker

__all__ = ["MatchedJob", "members"]


@dataclass
class MatchedJob:
    """All ranks of a trace: their lines, messages, and collectives: ``(key, turn) -> {rank: line}``."""

    lines: list[list[str]]
    messages: list[MatchedMessage] = field(default_factory=list)
    lonely: list[End] = field(default_factory=list)  # unmatched ends
    guessed: int = 0  # receives from any of several sources whose match is not recorded
    sent_to: dict[tuple[int, int], dict[tuple[int, int], list[End]]] = field(default_factory=dict)
    """By receiver and communicator, then by sender and tag: the sends, in their order."""
    collectives: dict[tuple[object, int], dict[int, int]] = field(default_factory=dict)
    completes: list[dict[int, list[Request]]] = field(default_factory=list)  # by rank: line -> requests
    trackers: list[Tracker] = field(default_factory=list)
    worlds: list[list[int]] = field(default_factory=list)  # by rank: lines of the collectives of MPI_COMM_WORLD
    probes: list[dict[int, End]] = field(default_factory=list)  # by rank: line -> what a probe waits for
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
            self.probes.append(tracker.probes)
            self.trackers.append(tracker)
            self.worlds.append(worlds)
        self._match()

    def _match(self) -> None:
        for tracker in self.trackers:
            for turn, s in enumerate(tracker.sends):
                if s.real:
                    s.turn = turn
                    self.sent_to.setdefault((s.peer, s.comm), {}).setdefault((s.rank, s.tag), []).append(s)
        receives: dict[tuple[int, int], list[End]] = {}
        for tracker in self.trackers:
            for r in tracker.recvs:
                if r.real:
                    receives.setdefault((r.rank, r.comm), []).append(r)
        several = [r for some in receives.values() for r in some if r.peer == ANY_SOURCE and len(self._sources(r)) > 1]
        self.guessed = len(several)
        taken = JobExecution(self).taken if several else {}
        for key, some in receives.items():
            self._match_receiver(some, self.sent_to.get(key, {}), taken)
        self.lonely += [s for sent in self.sent_to.values() for queue in sent.values() for s in queue if s.match is None]

    def _sources(self, r: End) -> set[int]:
        """The ranks that send what a receive may take."""
        return {source for source, tag in self.sent_to.get((r.rank, r.comm), {}) if r.fits(source, tag)}

    def _match_receiver(self, receives: list[End], sent: dict[tuple[int, int], list[End]], taken: Mapping[int, End]) -> None:
        """Pairs the receives of one rank and communicator with what is sent there.

        Messages of one sender do not overtake each other, so with known sources what each receive takes is determined: each in turn the
        first message that fits. From which of several possible sources it is, is a guess: what is ``taken`` in one order of the ranks.
        """
        source_of: dict[int, int] = {}
        rivals: dict[int, set[int]] = defaultdict(set)  # by source: the tags that receives from several sources may take
        for r in receives:
            sources = self._sources(r) if r.peer == ANY_SOURCE else {r.peer}
            if len(sources) == 1:
                (source_of[id(r)],) = sources
                continue
            r.sure = False
            if id(r) in taken:
                source_of[id(r)] = taken[id(r)].rank
            for source in sources:
                rivals[source].add(r.tag)
        any_tag = {source_of[id(r)] for r in receives if r.tag == ANY_TAG and id(r) in source_of}
        in_order = {
            source: deque(sorted((s for (sender, _), queue in sent.items() if sender == source for s in queue), key=lambda s: s.turn))
            for source in any_tag
        }
        queues = {key: deque(queue) for key, queue in sent.items()}
        for r in receives:
            source = source_of.get(id(r), ANY_SOURCE)
            options = in_order.get(source, deque()) if r.tag == ANY_TAG else queues.get((source, r.tag), deque())
            while options and options[0].match is not None:
                options.popleft()
            if source in rivals and (source in any_tag or rivals[source] & {ANY_TAG, r.tag}):
                r.sure = False
            if options:
                self._pair(options.popleft(), r)
            else:
                self.lonely.append(r)

    def probe_match(self, probe: End) -> End | None:
        """The send that a probe finds: that of the next receive that takes what it looks for, or one that nobody receives."""
        later = (r.match for r in self.trackers[probe.rank].recvs if r.post > probe.post and r.comm == probe.comm)
        found = (s for s in later if s is not None and probe.fits(s.rank, s.tag))
        sent = (s for some in self.sent_to.get((probe.rank, probe.comm), {}).values() for s in some)
        return next(found, None) or next((s for s in sent if s.match is None and probe.fits(s.rank, s.tag)), None)

    def _pair(self, send: End, recv: End) -> None:
        send.match, recv.match = recv, send
        self.messages.append(MatchedMessage(send, recv))


_JOINT = names(Family.COLLECTIVE, Family.NEIGHBOUR, Family.MAKES_COMM, Family.FREES_COMM, Family.WINDOW)


def _collective(line: str) -> object:
    """The key of a collective: its communicator, its window, or the communicator created over a group; None for other lines."""
    words = line.split(None, 3)
    if len(words) < 2 or words[0].startswith("#"):
        return None
    action = words[1]
    if action in _JOINT or action == "Win_fence":
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
