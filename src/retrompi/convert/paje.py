"""A timeline in the Paje trace format (as ViTE and pj_dump read it): hosts and processes, states, calls, messages and their hops.

The format: "Paje trace file", INRIA; the header defines the events by number. Times are seconds with twelve decimals: picoseconds.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from retrompi.sim.timeline import Timeline, call_name
from retrompi.sim.timeline.kinds import colour_of

__all__ = ["LOSS", "write"]

LOSS = (
    "the communicator of a call or message",
    "which states stand for several shorter ones",
    "whether a message was sent by rendezvous",
    "the traffic between ranks and the sums by state, which count the whole run",
    "messages that had not been received when the run ended: they are left out",
)
_HEADER = """\
%EventDef PajeDefineContainerType 0
%       Alias string
%       Type string
%       Name string
%EndEventDef
%EventDef PajeDefineStateType 1
%       Alias string
%       Type string
%       Name string
%EndEventDef
%EventDef PajeDefineLinkType 2
%       Alias string
%       Type string
%       StartContainerType string
%       EndContainerType string
%       Name string
%EndEventDef
%EventDef PajeDefineEntityValue 3
%       Alias string
%       Type string
%       Name string
%       Color color
%EndEventDef
%EventDef PajeCreateContainer 4
%       Time date
%       Alias string
%       Type string
%       Container string
%       Name string
%EndEventDef
%EventDef PajeDestroyContainer 5
%       Time date
%       Type string
%       Name string
%EndEventDef
%EventDef PajeSetState 6
%       Time date
%       Type string
%       Container string
%       Value string
%EndEventDef
%EventDef PajePushState 7
%       Time date
%       Type string
%       Container string
%       Value string
%       Call string
%       Line string
%EndEventDef
%EventDef PajePopState 8
%       Time date
%       Type string
%       Container string
%EndEventDef
%EventDef PajeStartLink 9
%       Time date
%       Type string
%       Container string
%       StartContainer string
%       Value string
%       Key string
%       Bytes int
%       Tag int
%       Line string
%EndEventDef
%EventDef PajeEndLink 10
%       Time date
%       Type string
%       Container string
%       EndContainer string
%       Value string
%       Key string
%EndEventDef
"""


def _rgb(colour: str) -> str:
    return '"' + " ".join(f"{int(colour[i : i + 2], 16) / 255:.3f}" for i in (1, 3, 5)) + '"'


def _quote(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'


def write(timeline: Timeline, path: Path) -> list[str]:
    """Write it to ``path``; returns what the format cannot express."""
    t = timeline
    start, ending = _window(t)
    out = [_HEADER, "".join(f"# {note}\n" for note in t.notes())]
    define = [
        "0 Run 0 Run", "0 Host Run Host", "0 Process Host Process", "1 State Process State", "1 Call Process Call",
        "2 Message Run Process Process Message", "2 Hop Run Process Process Hop",
        '3 program Message program "0.000 0.000 0.000"', '3 collective Message collective "0.500 0.500 0.500"',
        '3 leg Hop leg "0.600 0.600 0.600"',
    ]
    for i, name in enumerate(t.states):
        define.append(f"3 s{i} State {_quote(name)} {_rgb(colour_of(name))}")
    for i in sorted(set(t.calls.op)):
        define.append(f"3 c{i} Call {_quote(t.ops[i])} {_rgb(colour_of('compute' if t.ops[i] == 'compute' else 'library'))}")
    hosts = list(dict.fromkeys(p.host for p in t.processes))
    define.append(f"4 {_time(start)} run Run 0 run")
    define += [f"4 {_time(start)} h{i} Host run {_quote(h)}" for i, h in enumerate(hosts)]
    define += [f"4 {_time(start)} p{i} Process h{hosts.index(p.host)} {_quote(p.name)}" for i, p in enumerate(t.processes)]
    out.append("\n".join(define) + "\n")
    # At equal times, ends come before beginnings.
    events: list[tuple[int, int, str]] = []
    for i, p in enumerate(t.processes):
        events += [(begin, 1, f"6 {_time(begin)} State p{i} s{state}") for begin, _, state, _ in p.states()]
    place, c = t.process_of(), t.calls
    for i in range(len(c)):
        op = t.ops[c.op[i]]
        name = _quote(call_name(op, c.peer[i], c.tag[i], c.bytes[i]))
        where = _quote(f"{t.files[c.rank[i]]}:{c.line[i]}")
        begin, end = max(c.begin[i], start), min(c.end[i], ending)
        if end <= begin:  # a pop before its push would break the nesting
            continue
        events.append((begin, 2, f"7 {_time(begin)} Call p{place[c.rank[i]]} c{c.op[i]} {name} {where}"))
        events.append((end, 0, f"8 {_time(end)} Call p{place[c.rank[i]]}"))
    m = t.messages
    for i, hops in enumerate(m.paths()):
        if not m.sent[i] <= m.received[i] <= ending:
            continue
        kind = "collective" if m.context[i] % 2 else "program"
        told = f'{m.bytes[i]} {m.tag[i]} {_quote(f"{t.files[m.source[i]]}:{m.line[i]}")}'
        stops = [(place[m.source[i]], m.sent[i]), *((p, at) for p, at, _ in hops), (place[m.destination[i]], m.received[i])]
        legs = [("Message", kind, stops[0], stops[-1])]
        if hops:
            legs += [("Hop", "leg", a, b) for a, b in itertools.pairwise(stops)]
        for k, (link, value, (a, left), (b, came)) in enumerate(legs):
            key = f"m{i}_{k}"
            events.append((left, 3, f"9 {_time(left)} {link} run p{a} {value} {key} {told}"))
            events.append((came, 4, f"10 {_time(came)} {link} run p{b} {value} {key}"))
    events.sort(key=lambda e: e[:2])
    out.append("\n".join(text for _, _, text in events) + "\n")
    out.append("\n".join(f"5 {_time(ending)} Process p{i}" for i in range(len(t.processes))) + "\n")
    out.append("\n".join(f"5 {_time(ending)} Host h{i}" for i in range(len(hosts))) + f"\n5 {_time(ending)} Run run\n")
    path.write_text("".join(out), encoding="utf-8")
    short = sum(1 for i in range(len(c)) if c.end[i] <= c.begin[i])
    return [*LOSS, *([f"{short} calls that took no time"] if short else []), *t.notes()]


def _window(t: Timeline) -> tuple[int, int]:
    begins = [p.begin[0] for p in t.processes if p.begin]
    ends = [p.end for p in t.processes if p.begin]
    return min(begins, default=0), max([*ends, *t.messages.received], default=t.end)


def _time(ps: int) -> str:
    return f"{ps // 10**12}.{ps % 10**12:012d}"
