"""Every tool that rewrites a trace, on generated programs: the result is refused in one line, or it is the same program.

A new seed in every run, which is printed. By hand, with the reasons of what is refused:

    python tests/test_convert_programs.py 1000
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import phased_programs
import program_generator
import pytest
from program_generator import seeds

from retrompi import convert, traces
from retrompi.base.errors import RetrompiError
from retrompi.convert import timelines
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.timeline import Timeline
from retrompi.sim.timeline import TimelineRequest as Recorded
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace
from retrompi.traces.cut import cut
from retrompi.traces.lines import COLLECTIVES, COMM_MAKERS, rank_lines, split
from retrompi.traces.merge import side_by_side, then
from retrompi.traces.subset import keep_ranks

PROGRAMS, EXHAUSTIVE = 60, 1000
Messages = Counter[tuple[int, int, int]]
"""Messages of the program itself, by source, destination and bytes."""


@dataclass
class Run:
    """How a replay ended, when, what it sent, and its timeline."""

    outcome: str
    time_ps: int
    messages: Messages
    timeline: Timeline | None


def run(trace: Trace) -> Run:
    try:
        result = simulate.run(Question("nemesis", "abe", Replay(trace), "distributed"), Observe(timeline=Recorded(limit=100_000)))
    except RetrompiError as error:
        return Run(f"refused: {error}", 0, Counter(), None)
    m = result.timeline.messages
    outcome = result.outcome
    if outcome == "completed" and result.messages != result.delivered:
        outcome = f"{result.messages - result.delivered} messages are never received"
    own = (i for i in range(len(m)) if m.context[i] % 2 == 0)
    return Run(outcome, result.time_ps, Counter((m.source[i], m.destination[i], m.bytes[i]) for i in own), result.timeline)


@dataclass
class Case:
    """A program on its way through the tools."""

    seed: int
    trace: Trace
    before: Run
    folder: Path

    def rng(self, what: str) -> random.Random:
        return random.Random(f"{what} {self.seed}")


def shifted(messages: Messages, by: int) -> Messages:
    return Counter({(a + by, b + by, size): n for (a, b, size), n in messages.items()})


def wrong(after: Trace, messages: Messages, time_ps: int | None = None) -> str:
    """What is wrong with a result; empty if nothing is."""
    ran = run(after)
    if ran.outcome != "completed":
        return f"ends as {ran.outcome}"
    if ran.messages != messages:
        return f"sends {dict(ran.messages - messages)} more and {dict(messages - ran.messages)} less"
    if time_ps is not None and ran.time_ps != time_ps:
        return f"takes {ran.time_ps} ps, the program {time_ps}"
    return ""


def written(case: Case, target: str) -> tuple[Trace, convert.Losses]:
    out, losses = case.folder / ("x.goal" if target == "goal" else target), convert.Losses()
    convert.save(convert.Converted(case.trace, "ti", losses), out, target)
    try:
        again = convert.load(out)
    except RetrompiError as error:
        raise AssertionError(f"what was written cannot be read: {error}") from None
    assert not again.losses or target == "goal"
    return again.trace, losses


def through_ti(case: Case) -> str:
    after, losses = written(case, "ti")
    return "" if after == case.trace and not losses else "it is another"  # one that is equal takes as long


def through_goal(case: Case) -> str:
    after, losses = written(case, "goal")
    return wrong(after, case.before.messages + collectives_as_messages(case), None if losses else case.before.time_ps)


def collectives_as_messages(case: Case) -> Messages:
    """What GOAL sends for the collectives alone."""
    only = []
    for rank in range(case.trace.ranks):
        kept, requests = [f"{rank} init"], set[str]()
        for line in rank_lines(case.trace, rank)[0]:
            action, _, attributes = split(line)
            if action in COLLECTIVES or action in COMM_MAKERS:
                kept.append(re.sub(r" req=\d+", lambda m: m[0] + "0", line))
                requests |= {attributes["req"] + "0"} if "req" in attributes else set()
                if "req" in attributes:
                    kept.append(f"{rank} wait req={attributes['req']}0")
        only.append("".join(line + "\n" for line in [*kept, f"{rank} finalize"]))
    alone = traces.parse(only, name="collectives")
    out = case.folder / "collectives.goal"
    convert.save(convert.Converted(alone, "ti"), out, "goal")
    sent: Messages = Counter()
    for rank, part in enumerate(out.read_text().split("rank ")[1:]):
        for size, to in re.findall(r"send (\d+)b to (\d+)", part):
            sent[rank, int(to), int(size)] += 1
    return sent


def through_smpi(case: Case) -> str:
    after, losses = written(case, "smpi")
    return wrong(after, case.before.messages, None if losses else case.before.time_ps)


def through_otf2(case: Case) -> str:
    assert case.before.timeline is not None
    timelines.write(case.before.timeline, case.folder / "x.otf2")
    again = convert.load(case.folder / "x.otf2")
    return "" if again.trace == case.trace and not again.losses else "it is another"


def merged(case: Case) -> str:
    """Side by side with itself."""
    both = side_by_side([case.trace, case.trace])
    return wrong(both, case.before.messages + shifted(case.before.messages, case.trace.ranks))


def merged_then(case: Case) -> str:
    twice = case.before.messages + case.before.messages
    return wrong(then([case.trace, case.trace]), twice)


def cut_by_ranks(case: Case) -> str:
    """Of two side by side one; or some ranks of the program, in any order."""
    rng, n = case.rng("ranks"), case.trace.ranks
    if rng.random() < 0.5:
        first = rng.choice((0, n))
        return wrong(keep_ranks(side_by_side([case.trace, case.trace]), range(first, first + n)), case.before.messages)
    own = {r: i for i, r in enumerate(rng.sample(range(n), rng.randint(1, n)))}
    piece = keep_ranks(case.trace, list(own))
    kept = Counter({(own[a], own[b], size): count for (a, b, size), count in case.before.messages.items() if a in own})
    return wrong(piece, kept)


def cut_by_lines(case: Case) -> str:
    """Up to a line of rank 0, from one, or between two."""
    rng, lines = case.rng("lines"), rank_lines(case.trace, 0)[1]
    a, b = sorted(rng.sample(range(len(lines)), 2))
    first, last = rng.choice(((None, str(lines[b])), (str(lines[a]), None), (str(lines[a]), str(lines[b]))))
    piece = cut(case.trace, first, last)
    ran = run(piece.trace)
    if ran.outcome != "completed":
        return f"the piece {first} to {last} ends as {ran.outcome}"
    if not ran.messages <= case.before.messages:
        return f"the piece {first} to {last} sends {ran.messages - case.before.messages} more"
    if piece.messages != ran.messages.total():
        return f"the piece {first} to {last} sends {ran.messages.total()} messages, and {piece.messages} are told"
    return ""


def scaled(case: Case) -> str:
    if case.trace.scaled(1) != case.trace:
        return "scaled by 1 it is another"
    there = case.trace.scaled(4)
    return "4 and 1/4 make another" if there.scaled(0.25) != case.trace else wrong(there, case.before.messages)


ROUTES: dict[str, Callable[[Case], str]] = {
    "TI": through_ti, "GOAL": through_goal, "SMPI": through_smpi, "OTF2": through_otf2, "merge": merged, "merge --then": merged_then,
    "cut --ranks": cut_by_ranks, "cut --begin --end": cut_by_lines, "scale": scaled,
}


GENERATORS = (program_generator, phased_programs)
"""Taken by turns, by the seed."""


def generator(seed: int) -> ModuleType:
    return GENERATORS[seed % len(GENERATORS)]


def program_run(seed: int) -> tuple[Trace, Run]:
    trace = generator(seed).program(seed)
    before = run(trace)
    assert before.outcome == "completed", f"program {seed} ends as {before.outcome} ({shown(seed)})"
    return trace, before


def shown(seed: int) -> str:
    """What prints a program."""
    return f"python tests/{generator(seed).__name__}.py {seed}"


def result(route: str, seed: int, trace: Trace, before: Run) -> tuple[str, str]:
    """``same``, ``refused`` or ``wrong``, and why."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            why = ROUTES[route](Case(seed, trace, before, Path(folder)))
        except RetrompiError as error:
            told = str(error)
            return "refused" if error.exit_code == 2 and "\n" not in told else "wrong", told
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}"
        return "wrong" if why else "same", why


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest) -> dict[int, tuple[Trace, Run]]:
    count = EXHAUSTIVE if request.config.getoption("--exhaustive") else PROGRAMS
    return {seed: program_run(seed) for seed in seeds(count)}


@pytest.mark.parametrize("route", ROUTES)
def test_a_program_is_the_same_or_refused(route: str, programs: dict[int, tuple[Trace, Run]]) -> None:
    if route == "OTF2":
        pytest.importorskip("otf2", reason="the otf2 library reads and writes OTF2 (retrompi[otf2])")
    counts: Counter[str] = Counter()
    for seed, (trace, before) in programs.items():
        verdict, why = result(route, seed, trace, before)
        counts[verdict] += 1
        assert verdict != "wrong", f"program {seed}: {why} ({shown(seed)})"
    assert counts["same"] > 0, counts


def main() -> None:
    """Prints a row a route: how many programs are the same, refused and why, and wrong."""
    os.environ["RETROMPI_PROGRAMS"] = sys.argv[1] if len(sys.argv) > 1 else "100"
    routes = sys.argv[2:] or list(ROUTES)
    found: dict[str, list[tuple[int, str, str]]] = {route: [] for route in routes}
    for seed in seeds(PROGRAMS):
        trace, before = program_run(seed)
        for route in routes:
            verdict, why = result(route, seed, trace, before)
            found[route].append((seed, verdict, why))
            if verdict == "wrong":
                print(f"program {seed}, {route}: {why}", flush=True)
    for route, rows in found.items():
        counts = Counter(verdict for _, verdict, _ in rows)
        print(f"{route:20} same {counts['same']:5}  refused {counts['refused']:5}  wrong {counts['wrong']:5}", flush=True)
        kinds = Counter(re.sub(r" \w+ of (program|phased)-\S+,| tags .*? it takes|this rank's \w+ in line \d+|\d+", " ..", why)
                        for _, verdict, why in rows if verdict == "refused")
        for kind, n in kinds.most_common(12):
            print(f"    {n:4} {kind[:200]}")


if __name__ == "__main__":
    main()
