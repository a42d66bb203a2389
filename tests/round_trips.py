"""Traces through every format that can be written and read, and back: what is told to be lost is what differs, and what loses nothing
replays to the same picosecond.

    python tests/round_trips.py [--store FILE] [ARCHIVE]...      the table of every trace in the reference folder, or of these archives

The suite runs a share of it (test_convert_round_trips.py).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from retrompi import convert, traces
from retrompi.base.errors import RetrompiError
from retrompi.base.paths import reference_dir
from retrompi.convert import timelines
from retrompi.convert.goal.writer import COLLECTIVE_TAGS
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.timeline import TimelineRequest as Recorded
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace
from retrompi.traces.lines import COLLECTIVES, FAMILIES, split
from retrompi.traces.tracker import Request, Tracker

FORMATS = ("otf2", "goal", "smpi")
MODELS = (("winmpich", "nt-cluster"), ("nemesis", "abe"))
DETAILED = 12_000
"""Actions up to which every packet is simulated; longer traces run at the rung of the sampled curves."""


@dataclass
class Trip:
    """A trace through a format: ``told`` of the losses and ``differing`` lines by call, whether the replays agree (None: not replayed), and
    the seconds that writing and reading took.

    ``assumed``: reading made assumptions that it tells (GOAL: a send that is complete before its receive is posted); what they change on
    other lines is not counted line by line.
    """

    name: str
    format: str
    told: Counter[str]
    differing: Counter[str]
    same: bool | None
    seconds: float
    assumed: bool = False

    @property
    def right(self) -> bool:
        """What is told to be lost is what differs, and what loses nothing replays to the same picosecond."""
        return (self.assumed or self.told == self.differing) and (bool(self.told) or self.same is not False)


def canonical(trace: Trace) -> list[list[str]]:
    """Every rank's lines without the numbers of requests: what completes one names the line that posted it.

    A wildcard receive whose match is recorded is the receive of that message: a replay takes no other.
    """
    return [_canonical(trace, rank) for rank in range(trace.ranks)]


def _canonical(trace: Trace, rank: int) -> list[str]:
    tracker = Tracker(rank)
    posted: dict[Request, str] = {}
    turns: Counter[str] = Counter()
    out: list[str] = []
    for at, line in enumerate(trace.to_ti(rank).splitlines()):
        action, a, attributes = split(line)
        target = tracker.target(line) if action in ("wait", "test") else None
        done = tracker.line(at, line)
        # A request is known by its turn among the messages of the same kind and peer, so that what else is lost of it does not count
        # twice; messages of collectives, which only GOAL has, do not count.
        for kind, ends in (("send", tracker.sends), ("recv", tracker.recvs)):
            for end in takewhile(lambda e: e.post == at, reversed(ends)):  # noqa: B023
                if end.tag < COLLECTIVE_TAGS:
                    turns[f"{kind} {end.peer}"] += 1
                    posted |= {r: f"<{kind} {end.peer} #{turns[f'{kind} {end.peer}']}>" for r in tracker.open if r.end is end}
        if action in ("wait", "test") or (action in FAMILIES and action != "startall"):
            meant = sorted(posted.get(r, f"<{r.post}>") for r in ([target] if target is not None and not done else done))
            out.append(" ".join([action, *meant, *(f"{k}={v}" for k, v in attributes.items() if k == "flag")]))
            continue
        if action == "compute" and float(a[0]) == 0:
            continue
        attributes.pop("req", None)
        if "from" in attributes and action in ("recv", "irecv"):
            a[0], a[1] = attributes.pop("from"), attributes.pop("mtag")
        out.append(" ".join([action, *a, *(f"{k}={v}" for k, v in sorted(attributes.items()))]))
    return out + [f"{'irecv' if r.receive else 'isend'} never completed" for r in tracker.open if r.end is not None]


def differing(before: Trace, after: Trace) -> Counter[str]:
    """The lines of ``before`` that are not in ``after``, by call; their order is for the replays to compare."""
    out: Counter[str] = Counter()
    for old, new in zip(canonical(before), canonical(after), strict=True):
        for text, n in (Counter(old) - Counter(new)).items():
            out[_kind(text.split(" ", 1)[0])] += n
    return out


def _kind(call: str) -> str:
    """GOAL knows three operations only; its reader tells losses of them."""
    if call == "#":
        return "mark"
    lower = call.lower()
    if lower in ("compute", "calc"):
        return "compute"
    if call in COLLECTIVES:
        return "collective"
    return "send" if lower in ("send", "isend") else "recv" if lower in ("recv", "irecv") else call


def through(trace: Trace, target: str, folder: Path) -> tuple[Trace, convert.Losses, convert.Losses]:
    """Writes and reads; the losses of writing and of reading."""
    out = folder / {"goal": "x.goal", "otf2": "x.otf2"}.get(target, "x")
    losses = convert.Losses()
    if target == "otf2":
        model, platform = MODELS[0]
        asked = Question(model, platform, Replay(trace), "distributed", fidelity="curve")
        result = simulate.run(asked, Observe(timeline=Recorded(limit=1000)))
        timelines.write(result.timeline, out)
    else:
        convert.save(convert.Converted(trace, "ti", losses), out, target)
    again = convert.load(out)
    return again.trace, losses, again.losses


def time_ps(trace: Trace, model: str, platform: str) -> tuple[str, int]:
    """How a replay ends, and when."""
    fidelity = "mechanism" if trace.actions <= DETAILED else "curve"
    result = simulate.run(Question(model, platform, Replay(trace), "distributed", fidelity=fidelity))
    return result.outcome, result.time_ps


def trip(name: str, trace: Trace, target: str, *, replay: bool = True) -> Trip:
    """One trace through one format; it is replayed if nothing is told to be lost."""
    folder = Path(tempfile.mkdtemp(prefix="round-trip-"))
    try:
        begin = time.perf_counter()
        after, losses, assumed = through(trace, target, folder)
        seconds = time.perf_counter() - begin
    finally:
        shutil.rmtree(folder)
    told: Counter[str] = Counter()
    for loss in (*losses, *assumed):
        told[_kind(loss.call)] += loss.count
    same = None
    if not told and replay:
        same = after == trace or all(time_ps(trace, *where) == time_ps(after, *where) for where in MODELS)
    return Trip(name, target, told, differing(trace, after), same, seconds, bool(assumed))


def archive(path: Path) -> Iterator[tuple[str, Trace]]:
    """The traces of an archive that can be replayed."""
    short = path.name.removesuffix(".tar.zst")
    try:
        yield short, traces.read(path)
    except traces.TraceError:
        for folder, trace in traces.read_folders(path):
            yield f"{short}:{folder}", trace


def main() -> int:
    """Prints a row a trace and format; exit code 1 if any is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("archives", nargs="*", type=Path)
    parser.add_argument("--formats", default=",".join(FORMATS))
    given = parser.parse_args()
    wrong = 0
    counts: Counter[str] = Counter()
    print(f"{'trace':52} {'ranks':>5} {'actions':>8} {'format':6} {'seconds':>8}  result", flush=True)
    for path in given.archives or sorted((reference_dir() / "traces").glob("*.tar.zst")):
        for name, trace in archive(path):
            for target in given.formats.split(","):
                if trace.unsupported():
                    counts["refused by every replay"] += 1
                    continue
                try:
                    made = trip(name, trace, target)
                except RetrompiError as error:
                    result, seconds = f"refused: {error}", 0.0
                    counts[f"{target}: refused"] += 1
                else:
                    seconds = made.seconds
                    if not made.right:
                        wrong += 1
                        result = f"WRONG: told {dict(made.told)}, differing {dict(made.differing)}, same {made.same}"
                    else:
                        result = f"loss: {sum(made.told.values())} ({', '.join(made.told)})" if made.told else "same"
                    counts[f"{target}: {'wrong' if not made.right else 'loss told' if made.told else 'same'}"] += 1
                print(f"{name[:52]:52} {trace.ranks:5} {trace.actions:8} {target:6} {seconds:8.2f}  {result}", flush=True)
    print(", ".join(f"{k}: {n}" for k, n in sorted(counts.items())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
