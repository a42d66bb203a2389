"""The chart of a timeline, or of two on one axis: tracks of tiles, messages, and the script that draws them (timeline.js)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from retrompi.base import translate
from retrompi.base.translate import _, lazy
from retrompi.render.document.engine_words import process_name, state_name
from retrompi.render.document.plotted import words_script
from retrompi.render.timeline.tiles import BINS, FAN, GAP, MERGED, Blocks, Lane, depths, grow, pack_columns
from retrompi.sim.timeline import Timeline
from retrompi.sim.timeline.kinds import KINDS

__all__ = ["CSS", "ChartRun", "Track", "order", "span_of", "tracks_of", "write_chart"]

_BLOCK = 2048
"""Messages in a block."""
_OTHER = (lazy("other"), "#999999", "", ())

CSS = """
.timeline { position: relative; margin: .6rem 0; min-width: 0; }
.timeline [data-part=rows] { position: relative; overflow-y: auto; overflow-x: hidden; border: 1px solid var(--line);
  touch-action: pan-y; }
.timeline [data-part=rows]:focus-visible { outline: 2px solid var(--link); }
.timeline canvas { position: sticky; top: 0; display: block; cursor: grab; touch-action: pan-y; }
.timeline [data-part=tip] { position: absolute; z-index: 2; max-width: min(24rem, 92vw); background: var(--paper); color: var(--ink);
  border: 1px solid var(--soft); padding: .3rem .55rem; font-size: .86rem; line-height: 1.4; pointer-events: none;
  overflow-wrap: anywhere; }
.timeline .tools { display: flex; flex-wrap: wrap; gap: .35rem 1rem; align-items: center; margin: .4rem 0; font-size: .93rem; }
.timeline button, .timeline select { font: inherit; color: var(--ink); background: var(--tint); border: 1px solid var(--soft);
  border-radius: .25rem; padding: .2rem .65rem; min-height: 2rem; }
.timeline ul { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; padding: 0; margin: .5rem 0; font-size: .9rem; }
.timeline li { display: inline-flex; align-items: center; gap: .4rem; }
.timeline li i { width: 1.1rem; height: .9rem; border: 1px solid var(--line); display: inline-block; }
@media (prefers-color-scheme: dark) { .timeline li i.black { background: #f4f4f4 !important; }
  .timeline li i.none { background: #3d444f !important; } }
"""


@dataclass(frozen=True)
class Track:
    """A row of the chart.

    ``lane``: its states, times from the run's beginning (`span_of`), values as indices of ``names``; ``kinds``: of each, its name in the
    legend, colour and hatching ("", "/" or "x"). ``process``: its index in `Timeline.processes` (-1: none, then no message ends here).
    ``calls``: thin intervals below, values as indices of `Timeline.ops`, with the columns line, peer, tag, bytes, communicator, open.
    """

    name: str
    host: str
    lane: Lane
    names: Sequence[str]
    kinds: Sequence[tuple[str, str, str]]
    process: int = -1
    calls: Lane | None = None
    file: str = ""


@dataclass(frozen=True)
class ChartRun:
    """A run of the chart: its timeline, a letter where there are two, and tracks to show below those of the processes."""

    timeline: Timeline
    letter: str = ""
    more: Sequence[Track] = field(default_factory=tuple)


def span_of(t: Timeline) -> tuple[int, int]:
    """First and last time (ps) that the timeline has anything at."""
    begins = [int(p.begin[0]) for p in t.processes if len(p.begin)]  # from an array, whose numbers JSON does not know
    return min(begins, default=0), int(max((p.end for p in t.processes if len(p.begin)), default=t.end))


def order(t: Timeline) -> list[int]:
    """Processes from top to bottom: by host in order of its first rank, on each the ranks, then proxies and daemons."""
    places = t.process_of()
    hosts = {h: i for i, h in enumerate(dict.fromkeys([t.processes[i].host for i in places] + [p.host for p in t.processes]))}
    ranks = {i: r for r, i in enumerate(places)}
    return sorted(range(len(t.processes)), key=lambda i: (hosts[t.processes[i].host], i not in ranks, ranks.get(i, 0), i))


def _kinds(names: Sequence[str]) -> list[tuple[str, str, str]]:
    known = {state: (name, colour, hatch) for name, colour, hatch, states in KINDS for state in states}
    return [known.get(name, _OTHER[:3]) for name in names]


def tracks_of(t: Timeline) -> list[Track]:
    """A track for every process, in the chart's order."""
    origin, kinds = span_of(t)[0], _kinds(t.states)
    calls, ranks = _call_lanes(t, origin), {place: rank for rank, place in enumerate(t.process_of())}
    out = []
    for i in order(t):
        p, rank = t.processes[i], ranks.get(i)
        value = np.asarray(p.state, dtype=np.uint8) + np.asarray(p.merged, dtype=np.uint8) * np.uint8(MERGED)
        lane = Lane(np.asarray(p.begin, dtype=np.int64) - origin, value, p.end - origin)
        strip, file = (None, "") if rank is None else (calls.get(rank), t.files[rank])
        out.append(Track(p.name, p.host, lane, t.states, kinds, i, strip, file))
    return out


def _call_lanes(t: Timeline, origin: int) -> dict[int, Lane]:
    """The calls of each rank, with gaps between them."""
    c = t.calls
    rank = np.asarray(c.rank, dtype=np.int64)
    begin, end = np.asarray(c.begin, dtype=np.int64) - origin, np.asarray(c.end, dtype=np.int64) - origin
    names = ("line", "peer", "tag", "bytes", "comm", "open")
    told = {name: np.asarray(getattr(c, name), dtype=np.int64) for name in names}
    numbers = np.array([identity for identity, *_ in t.comms] or [0], dtype=np.int64)
    told["comm"] = numbers[np.clip(told["comm"], 0, len(numbers) - 1)]
    op, out = np.asarray(c.op, dtype=np.uint8), {}
    cuts = np.flatnonzero(np.diff(rank, prepend=-1, append=-1))
    for low, high in itertools.pairwise(cuts):
        some = low + np.flatnonzero(end[low:high] > np.maximum(begin[low:high], 0))  # a call that takes no time cannot be drawn
        if not len(some):
            continue
        b, e = np.maximum(begin[some], 0), end[some]
        gap = np.flatnonzero(np.append(b[1:] > e[:-1], False))  # after these comes nothing for a while
        at = np.insert(b, gap + 1, e[gap])
        value = np.insert(op[some], gap + 1, GAP)
        columns = {name: np.insert(v[some], gap + 1, 0) for name, v in told.items()}
        out[int(rank[low])] = Lane(at, value, int(e[-1]), columns)
    return out


def _messages(t: Timeline, blocks: Blocks) -> list[list[int]]:
    """Writes the messages; returns [block, its hops' block or -1, first sent, last received, messages] for each block."""
    m, origin, end = t.messages, *span_of(t)
    place = np.asarray(t.process_of(), dtype=np.int64)
    whole = {k: np.asarray(v, dtype=np.int64) for k, v in vars(m).items()}
    first_hop = np.concatenate([[0], np.cumsum(whole["hops"])]).astype(np.int64)
    out = []
    for low in range(0, len(m), _BLOCK):
        some = {k: v[low : low + _BLOCK] for k, v in whole.items() if not k.startswith("hop_")}
        sent, came = some["sent"] - origin, some["received"]
        took = np.where(came < 0, -1, came - some["sent"])
        number = blocks.add(pack_columns(
            np.diff(sent, prepend=0), took, place[some["source"]], place[some["destination"]], some["tag"], some["context"], some["bytes"],
            some["line"], some["rendezvous"], some["hops"],
        ))
        a, b = int(first_hop[low]), int(first_hop[low + len(sent)])
        of = np.repeat(np.arange(len(sent)), some["hops"])
        hops = blocks.add(pack_columns(whole["hop_process"][a:b], whole["hop_in"][a:b] - some["sent"][of])) if b > a else -1
        last = end - origin if (came < 0).any() else int(came.max()) - origin
        out.append([number, hops, int(sent[0]), last, len(sent)])
    return out


def _head(runs: Sequence[ChartRun], blocks: Blocks, aligned: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Writes all blocks; returns what the script has to know beforehand."""
    kinds: dict[tuple[str, str, str], int] = {}
    palettes: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
    rows: list[dict[str, Any]] = []
    told = []
    for number, run in enumerate(runs):
        first, last = span_of(run.timeline)
        span = max(1, last - first)
        for track in (*tracks_of(run.timeline), *run.more):
            used = set(np.unique(track.lane.value & (MERGED - 1)).tolist())
            for i, k in enumerate(track.kinds):
                if i in used:
                    kinds.setdefault(k, 0)
            row: dict[str, Any] = {"run": number, "name": process_name(track.name), "host": track.host, "process": track.process,
                   "file": track.file, "palette": (track.names, track.kinds), "tree": grow(track.lane, span, blocks)}
            if track.calls is not None:
                row["calls"] = grow(track.calls, span, blocks)
            rows.append(row)
        told.append({"letter": run.letter, "span": span, "width": depths(span)[1], "messages": _messages(run.timeline, blocks)})
    blocks.close()
    usual = [k[:3] for k in (*KINDS, _OTHER)]
    shown = [k for k in usual if k in kinds] + [k for k in kinds if k not in usual]
    at = {k: i for i, k in enumerate(shown)}
    for row in rows:
        names, of = row["palette"]
        key = (tuple(names), tuple(at.get(k, 0) for k in of))
        row["palette"] = palettes.setdefault(key, len(palettes))
    return {
        "tiles": {"bins": BINS, "fan": FAN, "gap": GAP, "merged": MERGED}, "origin": span_of(runs[0].timeline)[0] if len(runs) == 1 else 0,
        "runs": told, "tracks": rows, "kinds": [(_(name), *look) for name, *look in shown],
        "ops": max((run.timeline.ops for run in runs), key=len),
        "palettes": [{"names": [state_name(n) for n in names], "kinds": of} for names, of in palettes], "aligned": aligned,
        "words": translate.of_scripts("render/timeline"),
        "lengths": blocks.lengths, "firsts": blocks.firsts,
    }


@cache
def _script() -> str:
    return Path(__file__).with_name("timeline.js").read_text(encoding="utf-8")


@contextmanager
def _temporary() -> Iterator[tuple[IO[str], IO[str]]]:
    with TemporaryFile("w+", encoding="ascii") as front, TemporaryFile("w+", encoding="ascii") as rest:
        yield front, rest


def write_chart(out: IO[str], runs: Sequence[ChartRun], aligned: Mapping[str, Sequence[int]] | None = None) -> None:
    """Write the chart: its elements, the script, the blocks.

    ``aligned``: by name, the time of each run, in ps from its beginning, that is put at the common zero; the first is chosen.
    """
    aligned = aligned or {"the start": [0] * len(runs)}
    with _temporary() as (front, rest):
        head = _head(runs, Blocks(front, rest), aligned)
        out.write(_elements(runs, head, list(aligned)))
        data = json.dumps(head, separators=(",", ":")).replace("</", "<\\/")
        out.write(f"<script>{words_script()}{_script()}\nretrompiTimeline(document.getElementById('timeline'), {data});</script>\n")
        for file in (front, rest):
            file.seek(0)
            copyfileobj(file, out, 1 << 20)


def _elements(runs: Sequence[ChartRun], head: Mapping[str, Any], aligned: Sequence[str]) -> str:
    dark = {"#000000": "black", "#DDDDDD": "none"}
    hatches = {"": "", "/": ";background-image:repeating-linear-gradient(135deg,#1a1a1a 0 1px,transparent 1px 5px)",
               "x": ";background-image:repeating-linear-gradient(135deg,#1a1a1a 0 1px,transparent 1px 5px),"
                    "repeating-linear-gradient(45deg,#1a1a1a 0 1px,transparent 1px 5px)"}
    legend = "".join(
        f'<li><i class="{dark.get(colour, "")}" style="background-color:{colour}{hatches[hatch]}"></i>{escape(name)}</li>'
        for name, colour, hatch in head["kinds"]
    )
    choices = ""
    if len(runs) > 1:
        options = "".join(f"<option>{escape(name)}</option>" for name in aligned)
        choices = (
            f'<label>aligned at <select data-part="align">{options}</select></label>'
            '<label>rows <select data-part="arrange"><option value="pairs">in pairs</option><option value="runs">by run</option>'
            "</select></label>"
        )
    nearer, farther, everything = escape(_("zoom in")), escape(_("zoom out")), escape(_("all"))
    messages, legend_name = escape(_("messages")), escape(_("Legend"))
    states = escape(_("States of {n} processes over time; the table below has the sums").format(n=len(head["tracks"])))
    keys = escape(_("Timeline: arrow keys move, + and - zoom, Home shows all"))
    return f"""<div class="timeline" id="timeline">
<div class="tools"><button type="button" data-part="in" aria-label="{nearer}">+</button>
<button type="button" data-part="out" aria-label="{farther}">−</button>
<button type="button" data-part="all">{everything}</button>
<label><input type="checkbox" data-part="lines"{"" if choices else " checked"}> {messages}</label>{choices}
<span class="soft" data-part="told" role="status"></span></div>
<div data-part="rows" tabindex="0" role="group" aria-label="{keys}">
<canvas data-part="canvas" role="img" aria-label="{states}"></canvas>
<div data-part="spacer"></div></div>
<div data-part="tip" role="tooltip" hidden></div>
<ul aria-label="{legend_name}">{legend}</ul></div>
"""
