"""A timeline as an OTF2 archive, by the `otf2` package of PyPI (``pip install retrompi[otf2]``).

Every rank, proxy and daemon is a location in its own location group; hosts are nodes of the system tree. Calls of ranks and the states
inside them are regions; messages of the program are MpiSend and MpiRecv, collectives MpiCollectiveBegin and -End with their
communicator. The clock ticks in picoseconds. The program that was replayed is kept in properties of the ranks' locations
(`retrompi.convert.otf2.program`), so that the archive is also a trace that loses nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.convert.otf2 import program
from retrompi.sim.timeline import Timeline
from retrompi.spec.declare.calls import CALLS, Family, function_of

__all__ = ["LOSS", "MISSING", "available", "write"]

MISSING = "OTF2 needs the package otf2: pip install 'retrompi[otf2]'"
LOSS = (
    "messages' hops through proxies and daemons",
    "messages that the library sent for its collectives",
    "which states stand for several shorter ones",
    "what a wait waited for beyond the state's name, and the requests of non-blocking calls as events",
    "the traffic between ranks and the sums by state, which count the whole run",
)
_COLLECTIVES = {call.name: call.mpi.upper() for call in CALLS if call.family is Family.COLLECTIVE}
_ROOTED = {call.mpi.upper() for call in CALLS if call.root}
_NO_ROOT = 2**32 - 1


def available() -> bool:
    """Whether the package is installed."""
    try:
        import otf2  # noqa: F401
    except ImportError:
        return False
    return True


def write(timeline: Timeline, folder: Path) -> list[str]:
    """Write the archive ``folder``/traces.otf2; returns what the format cannot express.

    Raises UsageError when the package is missing or the archive exists.
    """
    try:
        import otf2
        from otf2 import enums
    except ImportError:
        raise UsageError(MISSING, code="missing-tool") from None
    if folder.exists():
        raise UsageError(f"{folder} exists; OTF2 writes into a new folder", code="exists-already")
    t = timeline
    loss = list(LOSS)
    with otf2.writer.open(str(folder), timer_resolution=10**12) as archive:
        make = archive.definitions
        root = make.system_tree_node("simulated", class_name="machine")
        nodes = {h: make.system_tree_node(h, class_name="host", parent=root) for h in dict.fromkeys(p.host for p in t.processes)}
        locations = []
        for p in t.processes:
            group = make.location_group(p.name, location_group_type=enums.LocationGroupType.PROCESS, system_tree_parent=nodes[p.host])
            locations.append(make.location(p.name, group=group))
        place = t.process_of()
        if t.program is not None:
            program.keep(make, [locations[i] for i in place], t.program)
        else:
            loss.append("the program: of a timeline in the store only the events are left; replay --timeline keeps it")
        states = [make.region(s, region_role=enums.RegionRole.CODE, paradigm=enums.Paradigm.SAMPLING) for s in t.states]
        ops = {i: make.region(_mpi_name(t.ops[i]), source_file="trace", **_role(enums, t.ops[i])) for i in sorted(set(t.calls.op))}
        comms = _communicators(make, enums, t, [locations[i] for i in place])
        events: list[list[tuple[int, int, Any]]] = [[] for _ in t.processes]
        whole = t.every_call == 1 and t.from_s == 0 and t.until_s is None
        if not whole:
            loss.append("collectives: only a part of the calls is here, so that those of two ranks cannot be matched")
        _calls(t, events, place, ops, states, comms if whole else {}, enums)
        _messages(t, events, place, comms, loss)
        for location, mine in zip(locations, events, strict=True):
            writer = archive.event_writer_from_location(location)
            for at, _, say in sorted(mine, key=lambda e: e[:2]):
                say(writer, at)
    return [*loss, *t.notes()]


def _role(enums: Any, op: str) -> dict[str, Any]:
    if op in ("compute", "sleep", "kernel"):
        return {"region_role": enums.RegionRole.FUNCTION, "paradigm": enums.Paradigm.USER}
    kind = enums.RegionRole.COLL_ALL2ALL if op in _COLLECTIVES else enums.RegionRole.POINT2POINT
    return {"region_role": kind, "paradigm": enums.Paradigm.MPI}


def _mpi_name(op: str) -> str:
    return op if op in ("compute", "sleep", "kernel") else function_of(op)


def _communicators(make: Any, enums: Any, t: Timeline, locations: list[Any]) -> dict[int, tuple[Any, dict[int, int]]]:
    """Index in `Timeline.comms` -> (definition, world rank -> rank there); intercommunicators are written as the world."""
    make.group("ranks", group_type=enums.GroupType.COMM_LOCATIONS, paradigm=enums.Paradigm.MPI, members=locations)
    out: dict[int, tuple[Any, dict[int, int]]] = {}
    world = {r: r for r in range(t.ranks)}
    for i, (identity, group, remote) in enumerate(t.comms or [(0, [], [])]):
        if remote:
            continue
        ranks = dict(zip(group, range(len(group)), strict=True)) if i and group else world
        name = "MPI_COMM_WORLD" if i == 0 else f"communicator {identity}"
        mine = [locations[r] for r in ranks]
        members = make.group(name, group_type=enums.GroupType.COMM_GROUP, paradigm=enums.Paradigm.MPI, members=mine)
        out[i] = (make.comm(name, members, parent=out[0][0] if i else None), ranks)
    return out


def _calls(t: Timeline, events: list[list[tuple[int, int, Any]]], place: list[int], ops: Any, states: Any, comms: Any, enums: Any) -> None:
    """Regions: order at equal times is receive (-1), leave (0..2), zero duration (3), enter (5..7), send (8), so that they nest."""
    cuts: dict[int, list[int]] = {}
    c = t.calls
    for i in range(len(c)):
        begin, end, region = c.begin[i], c.end[i], ops[c.op[i]]
        mine = events[place[c.rank[i]]]
        if end > begin:
            cuts.setdefault(place[c.rank[i]], []).extend((begin, end))
        instant = end == begin
        # Zero-duration regions come between the leaves and the enters of the same time.
        mine.append((begin, 3 if instant else 5, _enter(region)))
        name = _COLLECTIVES.get(t.ops[c.op[i]].lower())
        known = comms.get(c.comm[i])
        if name and known is not None and not c.open[i]:
            root = c.peer[i] if name in _ROOTED and c.peer[i] >= 0 else _NO_ROOT
            told = {"collective_op": getattr(enums.CollectiveOp, name), "communicator": known[0], "root": root,
                    "size_sent": max(0, c.bytes[i]), "size_received": max(0, c.bytes[i])}
            mine.append((begin, 3 if instant else 6, lambda w, at: w.mpi_collective_begin(at)))
            mine.append((end, 3 if instant else 1, lambda w, at, told=told: w.mpi_collective_end(at, **told)))
        mine.append((end, 3 if instant else 2, _leave(region)))
    for i, p in enumerate(t.processes):
        borders = sorted(set(cuts.get(i, ())))
        k = 0
        for begin, end, state, _ in p.states():
            while k < len(borders) and borders[k] <= begin:
                k += 1
            inside = k
            at = begin
            while at < end:
                stop = min(end, borders[inside]) if inside < len(borders) else end
                inside += 1
                events[i].append((at, 7, _enter(states[state])))
                events[i].append((stop, 0, _leave(states[state])))
                at = stop


def _enter(region: Any) -> Any:
    return lambda w, at: w.enter(at, region)


def _leave(region: Any) -> Any:
    return lambda w, at: w.leave(at, region)


def _messages(t: Timeline, events: list[list[tuple[int, int, Any]]], place: list[int], comms: Any, loss: list[str]) -> None:
    m = t.messages
    lost = inter = 0
    for i in range(len(m)):
        if m.context[i] % 2:
            continue
        known = comms.get(m.context[i] // 2)
        if known is None:
            known = comms[0]
            inter += 1
        comm, ranks = known
        src, dst = m.source[i], m.destination[i]
        told = {"communicator": comm, "msg_tag": max(0, m.tag[i]), "msg_length": m.bytes[i]}
        if m.received[i] < 0:
            lost += 1
        events[place[src]].append((m.sent[i], 8, lambda w, at, told=told, peer=ranks[dst]: w.mpi_send(at, receiver=peer, **told)))
        if m.received[i] >= 0:
            events[place[dst]].append((m.received[i], -1, lambda w, at, told=told, peer=ranks[src]: w.mpi_recv(at, sender=peer, **told)))
    if inter:
        loss.append(f"{inter} messages between the groups of intercommunicators are told as of MPI_COMM_WORLD")
    if lost:
        loss.append(f"{lost} messages had not been received when the run ended: their sends have no receive")
