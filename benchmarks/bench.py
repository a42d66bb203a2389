"""Engine rates compared with SMPI's replay of the same trace: ``make bench``.

Each case is a trace: LU of class A on 16 ranks with its computation smoothed, a halo exchange of 64 ranks, an alltoall of 64, an
allreduce of 256, and the PingPong of the papers; and five programs as they were recorded (``NAME-recorded``) and without their computation
(``NAME-bare``). Every runtime replays it at every rung of the fidelity ladder on a platform of the era with one host
per rank (``PLATFORM*N``), and SMPI's replay on a platform of the same shape, in alternating rounds, so that a busy machine slows all of
them alike; medians are printed. The figure of merit is processor time, user and system, of the simulating process. SMPI reads the
trace while it replays it, so our reading of it is counted too; start-up is excluded on both sides (our fork server is warm and its
child does nothing else; from SMPI's time an empty replay with as many ranks is
subtracted). Peak memory is the largest process's resident memory.

With ``--loggopsim FOLDER`` LogGOPSim simulates the same messages of the PingPong and the halo in the same rounds.

Then the growth: halos of 16 to 65,536 ranks (``--most-ranks``: to 1,048,576) and traces of 1 to 10 million actions.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from retrompi.spec.question import Question, Replay

sys.path.insert(0, str(Path(__file__).parent))
import rival

from retrompi import traces
from retrompi.base import paths
from retrompi.sim import simulate
from retrompi.sim.worker import ForkServer
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.platform import Platform
from retrompi.traces import Trace, generate

MODELS = {
    "winmpich": "nt-cluster",
    "wmpi": "nt-cluster",
    "hpvm": "nt-cluster",
    "nemesis": "abe",
    "craympt": "cray-t3e",
    "mpibip": "myrinet-piii",
}
"""Runtime -> the platform it is measured on, enlarged to one host per rank."""
RUNGS = ("mechanism", "curve", "loggp")
WANTED = {"mechanism": 1.0, "curve": 8.0, "loggp": 12.0}
"""Required speed as a multiple of SMPI's."""
LONG_S = 20.0
"""A run that takes longer, in seconds, is not repeated."""
RECORDED = {
    "lu-A-16": "npb3.3.1-lu-A-16",
    "cg-A-8": "npb3.3.1-cg-A-8",
    "mg-A-8": "npb3.3.1-mg-A-8",
    "sp-A-9": "npb3.3.1-sp-A-9",
    "sweep3d-16": "sweep3d2.2b-50-16",
}
"""Recorded programs and their traces, in the reference data or beside this file."""
HALO_B, ALLTOALL_B, ALLREDUCE_B = 8192, 1024, 8


@dataclass(frozen=True)
class Case:
    """A trace to replay: its name, its generator, and the number of messages that SMPI sends for it (None: one per send)."""

    name: str
    make: Callable[[], Trace]
    smpi_messages: int | None = None


def cases(scale: float) -> list[Case]:
    """The traces, with ``scale`` of their repetitions (LU as it is)."""

    def times(n: int) -> int:
        return max(1, round(n * scale))

    def pingpong() -> Trace:
        return generate.pingpong(reps=lambda size: times(generate.default_reps(size)))

    def recorded(name: str) -> Trace:
        file = f"{RECORDED[name]}.tar.zst"
        beside = Path(__file__).parent / "traces" / file
        return traces.read(beside if beside.exists() else paths.reference_dir() / "traces" / file)

    def bare(name: str) -> Trace:
        whole = recorded(name)
        texts = (whole.to_ti(r).splitlines(keepends=True) for r in range(whole.ranks))
        return traces.parse(["".join(line for line in lines if line.split(maxsplit=2)[1] != "compute") for lines in texts])

    return [
        Case("pingpong", pingpong),
        Case("halo-64", lambda: generate.halo(64, times(200), HALO_B)),
        Case("alltoall-64", lambda: generate.alltoall(64, ALLTOALL_B, times(10)), times(10) * 64 * 63),
        Case("allreduce-256", lambda: generate.allreduce(256, ALLREDUCE_B, times(50)), times(50) * 256 * 8),
        Case("lu-A-16", lambda: recorded("lu-A-16").smoothed()),
        *(Case(f"{name}-{kind}", partial(make, name)) for name in RECORDED for kind, make in (("recorded", recorded), ("bare", bare))),
    ]


class Room:
    """Platforms by name and size, cached."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], Platform] = {}

    def __call__(self, name: str, hosts: int) -> Platform:
        if (name, hosts) not in self.known:
            self.known[name, hosts] = registry.platform(f"{name}*{hosts}")
        return self.known[name, hosts]


@contextmanager
def server() -> Iterator[ForkServer]:
    """A separate simulation server."""
    made = ForkServer()
    try:
        yield made
    finally:
        made.close()


def progress(text: str) -> None:
    """Shows progress on a terminal; prints nothing into a pipe."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def read_again(trace: Trace) -> float:
    """Processor seconds of parsing the text of ``trace``."""
    texts = [(trace.to_ti(r).encode(), f"rank-{r}.txt", r) for r in range(trace.ranks)]
    begin = time.process_time()
    Trace.parse(texts)
    return time.process_time() - begin


GOALS = ("pingpong", "halo-64")
"""The cases that LogGOPSim simulates too: point-to-point messages alone, the same ones."""


def measure(
    case: Case, models: Sequence[str], rungs: Sequence[str], rounds: int, loggopsim: Path | None = None
) -> list[dict[str, Any]]:
    """The rows of one case; keys as `show` prints them, the outcome as text if a run did not complete."""
    trace = case.make()
    room = Room()
    reading = read_again(trace)
    ours: dict[tuple[str, str], list[dict[str, float]]] = {(m, r): [] for m in models for r in rungs}
    told: dict[tuple[str, str], simulate.Result] = {}
    theirs: dict[str, list[rival.Spent]] = {MODELS[m]: [] for m in models}
    trouble = dict.fromkeys(theirs, rival.there())
    with tempfile.TemporaryDirectory() as folder, server() as at:
        smpi = None if rival.there() else rival.Smpi(Path(folder), trace)
        goal = None if loggopsim is None or case.name not in GOALS else rival.LogGOPSim(loggopsim, Path(folder), trace)
        of_goal: list[rival.Spent] = []
        warm = generate.pingpong([1], 1)
        for turn in range(rounds):
            for name in theirs:
                if smpi is None or trouble[name] or (theirs[name] and theirs[name][0].cpu_s > LONG_S):
                    continue
                progress(f"{case.name}, round {turn + 1} of {rounds}: SMPI on {name}")
                try:
                    where = room(name, trace.ranks)
                    empty = smpi.replay(where, "empty")
                    spent = smpi.replay(where)
                    theirs[name].append(rival.Spent(max(spent.cpu_s - empty.cpu_s, 1e-3), spent.peak_B))
                except RuntimeError as error:
                    trouble[name] = str(error)
            if goal is not None:
                of_goal.append(goal.replay())
            for model, rung in ours:
                known = ours[model, rung]
                if known and (known[0]["cpu_s"] > LONG_S or told[model, rung].outcome != "completed"):
                    continue
                progress(f"{case.name}, round {turn + 1} of {rounds}: {model}, {rung}")
                size = f"{MODELS[model]}*{trace.ranks}"
                if turn == 0:  # the model is imported and the curves are sampled
                    simulate.run(Question(model, f"{MODELS[model]}*2", Replay(warm), fidelity=rung), server=at)
                told[model, rung] = simulate.run(Question(model, size, Replay(trace), fidelity=rung), server=at)
                known.append(dict(at.spent))
    progress("")
    rows = []
    for (model, rung), all_spent in ours.items():
        result = told[model, rung]
        cpu = statistics.median(s["cpu_s"] for s in all_spent) + reading
        smpi_spent = theirs[MODELS[model]]
        smpi_cpu = statistics.median(s.cpu_s for s in smpi_spent) if smpi_spent else None
        smpi_messages = case.smpi_messages or result.messages
        done = result.outcome == "completed"
        rows.append(
            {
                "case": case.name,
                "ranks": trace.ranks,
                "actions": trace.actions,
                "model": model,
                "platform": f"{MODELS[model]}*{trace.ranks}",
                "fidelity": rung,
                "outcome": result.outcome if done else f"{result.outcome}: {result.detail}",
                "cpu_s": cpu,
                "reading_s": reading,
                "messages": result.messages,
                "packets": result.packets,
                "events": result.events,
                "messages_per_cpu_s": result.messages / cpu,
                "peak_B": max(s["peak_B"] for s in all_spent),
                "smpi_cpu_s": smpi_cpu,
                "smpi_messages_per_cpu_s": smpi_messages / smpi_cpu if smpi_cpu else None,
                "smpi_peak_B": max(s.peak_B for s in smpi_spent) if smpi_spent else None,
                "speed": smpi_cpu / cpu if smpi_cpu and done else None,
                "wanted": WANTED[rung],
                # It reads no text: neither does this.
                "simulated_messages_per_cpu_s": result.messages / (cpu - reading),
                "loggopsim_messages_per_cpu_s": result.messages / statistics.median(s.cpu_s for s in of_goal) if of_goal else None,
                "loggopsim_peak_B": max((s.peak_B for s in of_goal), default=None),
                "rounds": len(all_spent),
                "smpi": trouble[MODELS[model]] or "replayed",
            }
        )
    return rows


GROWN_MESSAGES = 4_000_000
"""Messages of a halo that grows with its ranks, at most; each step has four a rank, and there are at least two steps."""


def growth(model: str, rung: str, ranks: Sequence[int], iterations: int, actions: Sequence[int]) -> list[dict[str, Any]]:
    """Halos of ``ranks`` ranks, then 16-rank halos of about ``actions`` actions, at ``rung``: rows grows, ranks, actions, ..."""
    rows = []
    jobs = [("ranks", n, max(2, min(iterations, GROWN_MESSAGES // 4 // n))) for n in ranks]
    jobs += [("actions", 16, max(1, round(n / 16 / 9))) for n in actions]
    for grows, n, steps in jobs:
        progress(f"growth with {grows}: {n} ranks, {steps} steps")
        begin = time.process_time()
        trace = generate.halo(n, steps, HALO_B)
        reading = time.process_time() - begin
        with server() as at:
            tiny = Replay(generate.pingpong([1], 1))
            # Bounded in time it runs in a process of its own, as the large one does.
            simulate.run(Question(model, f"{MODELS[model]}*2", tiny, fidelity=rung, bounds=Bounds(wall_s=60)), server=at)
            empty_B = at.spent["peak_B"]
            begin = time.process_time()
            asked = Question(model, f"{MODELS[model]}*{n}", Replay(trace), fidelity=rung, bounds=Bounds(memory_B=16 << 30))
            result = simulate.run(asked, server=at)
            preparing = time.process_time() - begin
            simulate.require_completed(result, f"halo of {n} ranks")
            spent = at.spent
        rows.append(
            {
                "grows": grows,
                "model": model,
                "fidelity": rung,
                "steps": steps,
                "ranks": n,
                "actions": trace.actions,
                "messages": result.messages,
                "events": result.events,
                "reading_s": reading,
                "preparing_s": preparing,
                "wall_s": result.wall_s,
                "events_per_cpu_s": result.events / spent["cpu_s"],
                "rank_B": (spent["peak_B"] - empty_B) / n,
                "asker_peak_B": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
                "cpu_s": spent["cpu_s"],
                "us_per_message": spent["cpu_s"] / result.messages * 1e6,
                "messages_per_cpu_s": result.messages / spent["cpu_s"],
                "peak_B": spent["peak_B"],
                "trace_B": trace.info()["memory_B"],
            }
        )
    progress("")
    return rows


def simgrid_version() -> str:
    from retrompi import _engine

    return _engine.simgrid_version()


MB = 1e6


PANEL_W, PANEL_H, LEFT, TOP = 330, 190, 60, 30
"""Of a panel of the figure, without axes' labels; px."""


def _panel(x: float, rows: Sequence[dict[str, Any]], key: str, unit: float, title: str) -> Iterator[str]:
    """``key`` of the rows in ``unit`` over the number of ranks (logarithmic), as the lines of an SVG at ``x``."""
    values = [r[key] / unit for r in rows]
    step = 10 ** math.floor(math.log10(max(values)))
    step = next(s for s in (step / 2, step, 2 * step) if max(values) / s <= 6)
    top = math.ceil(max(values) / step) * step
    first, last = math.log2(rows[0]["ranks"]), math.log2(rows[-1]["ranks"])
    places = [
        (x + LEFT + PANEL_W * (math.log2(r["ranks"]) - first) / (last - first or 1), TOP + PANEL_H * (1 - v / top))
        for r, v in zip(rows, values, strict=True)
    ]
    yield f'<text x="{x + LEFT}" y="{TOP - 12}" fill="#222">{title}</text>'
    for k in range(round(top / step) + 1):
        y = TOP + PANEL_H * (1 - k * step / top)
        yield f'<line x1="{x + LEFT}" y1="{y:.1f}" x2="{x + LEFT + PANEL_W}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{x + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{k * step:g}</text>'
    for r, (px, _) in zip(rows, places, strict=True):
        yield f'<text x="{px:.1f}" y="{TOP + PANEL_H + 16}" text-anchor="middle" fill="#444">{_short(r["ranks"])}</text>'
    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
    yield f'<polyline points="{line}" fill="none" stroke="#2f6c9f" stroke-width="2"/>'
    yield from (f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="#2f6c9f"/>' for px, py in places)
    yield f'<text x="{x + LEFT + PANEL_W / 2}" y="{TOP + PANEL_H + 34}" text-anchor="middle" fill="#222">ranks</text>'


def _short(n: int) -> str:
    return f"{n >> 20}M" if n >= 1 << 20 else f"{n >> 10}K" if n >= 1 << 10 else str(n)


def growth_figure(rows: Sequence[dict[str, Any]]) -> str:
    """Memory a rank and the rate of events over the number of ranks, as an SVG."""
    grown = [r for r in rows if r["grows"] == "ranks"]
    width, height = 2 * (LEFT + PANEL_W) + 40, TOP + PANEL_H + 44
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_panel(0, [r for r in grown if r["ranks"] >= 1024] or grown, "rank_B", 1e3, "memory a rank, kB"),
        *_panel(LEFT + PANEL_W + 20, grown, "events_per_cpu_s", 1e6, "events a processor second, millions"),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def show_rows(rows: Sequence[dict[str, Any]]) -> None:
    """One case as a table."""
    first = rows[0]
    print(f"\n{first['case']}: {first['ranks']} ranks, {first['actions']:,} actions; reading takes {first['reading_s']:.3f} s")
    print(f"{'runtime':10}{'platform':18}{'fidelity':11}{'CPU s':>9}{'messages/s':>12}{'MB':>7}{'SMPI s':>9}{'messages/s':>12}{'MB':>7}"
          f"{'x SMPI':>8}{'wanted':>8}")
    for r in rows:
        them = f"{'-':>9}{'-':>12}{'-':>7}"
        if r["smpi_cpu_s"] is not None:
            them = f"{r['smpi_cpu_s']:9.3f}{r['smpi_messages_per_cpu_s']:12,.0f}{r['smpi_peak_B'] / MB:7.0f}"
        speed = f"{r['speed']:8.2f}" if r["speed"] is not None else f"{'-':>8}"
        print(f"{r['model']:10}{r['platform']:18}{r['fidelity']:11}{r['cpu_s']:9.3f}{r['messages_per_cpu_s']:12,.0f}{r['peak_B'] / MB:7.0f}"
              f"{them}{speed}{r['wanted']:8g}{'' if r['outcome'] == 'completed' else '  ' + r['outcome']}", flush=True)
    if first["loggopsim_messages_per_cpu_s"] is not None:
        best = {f: [r["simulated_messages_per_cpu_s"] for r in rows if r["fidelity"] == f] for f in ("curve", "loggp")}
        spans = "; ".join(f"at {f} {min(v):,.0f} to {max(v):,.0f}" for f, v in best.items() if v)
        print(f"without reading text, messages/s: LogGOPSim {first['loggopsim_messages_per_cpu_s']:,.0f}; {spans}")
    for told in dict.fromkeys(f"{r['smpi']} ({r['platform']})" for r in rows if r["smpi"] != "replayed"):
        print(f"SMPI was not measured: {told}")


def show_growth(rows: Sequence[dict[str, Any]]) -> None:
    """Prints the two growth curves as tables."""
    for grows in ("ranks", "actions"):
        print(f"\nhalo at {rows[0]['fidelity']}, growing {grows}")
        print(f"{'ranks':>9}{'steps':>8}{'messages':>12}{'events':>12}{'reading s':>11}{'CPU s':>9}{'wall s':>9}{'us/message':>12}"
              f"{'events/s':>12}{'peak MB':>9}{'B/rank':>9}{'trace MB':>10}")
        for r in rows:
            if r["grows"] == grows:
                print(f"{r['ranks']:9,}{r['steps']:8,}{r['messages']:12,}{r['events']:12,}{r['reading_s']:11.2f}{r['cpu_s']:9.2f}{r['wall_s']:9.2f}"
                      f"{r['us_per_message']:12.2f}{r['events_per_cpu_s']:12,.0f}{r['peak_B'] / MB:9.0f}{r['rank_B']:9,.0f}"
                      f"{r['trace_B'] / MB:10.1f}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="engine rates beside SMPI's replay of the same trace")
    parser.add_argument("--rounds", type=int, default=3, help="alternated repetitions (3); a run of more than 20 s is not repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the repetitions in generated traces (1)")
    parser.add_argument("--quick", action="store_true", help="one round, a tenth of the repetitions, no LU, growth to 256 ranks")
    parser.add_argument("--case", action="append", default=[], help="only this case (pingpong, halo-64, ..., growth); may be repeated")
    parser.add_argument("--model", action="append", default=[], choices=list(MODELS), help="only this runtime; may be repeated")
    parser.add_argument("--rung", action="append", default=[], choices=RUNGS, help="only this fidelity; may be repeated")
    parser.add_argument("--loggopsim", type=Path, metavar="FOLDER", help="also measure LogGOPSim, whose programs are in FOLDER")
    parser.add_argument("--most-ranks", type=int, default=65_536, help="the largest halo of the growth (65536; at most 1048576)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the growth with ranks, an SVG")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1 or chosen.scale <= 0:
        parser.error("--rounds is at least 1, --scale above 0")
    rounds, scale = (1, chosen.scale / 10) if chosen.quick else (chosen.rounds, chosen.scale)
    wanted = [c for c in cases(scale) if (c.name in chosen.case if chosen.case else not (chosen.quick and c.name.startswith("lu-")))]
    names = [c.name for c in cases(scale)] + ["growth"]
    if unknown := [c for c in chosen.case if c not in names]:
        parser.error(f"no case '{unknown[0]}'; there are {', '.join(names)}")
    if not chosen.json:
        print(f"Beside SMPI's replay, SimGrid {simgrid_version()}; median of {rounds} round{'s' if rounds > 1 else ''}, processor seconds")
    rows: list[dict[str, Any]] = []
    for case in wanted:
        rows += (found := measure(case, chosen.model or list(MODELS), chosen.rung or RUNGS, rounds, chosen.loggopsim))
        if not chosen.json:
            show_rows(found)
    grown: list[dict[str, Any]] = []
    if not chosen.case or "growth" in chosen.case:
        ranks = [16 << k for k in range(0, 17, 2) if 16 << k <= (256 if chosen.quick else chosen.most_ranks)]
        actions = [round(m * 1e6 * scale) for m in (1, 3, 10)]
        rung = next((r for r in chosen.rung if r != "mechanism"), "curve")
        grown = growth(next(iter(chosen.model), "mpibip"), rung, ranks, max(1, round(100 * scale)), actions)
        if chosen.figure:
            chosen.figure.write_text(growth_figure(grown), encoding="utf-8")
        if not chosen.json:
            show_growth(grown)
    if chosen.json:
        print(json.dumps({"rounds": rounds, "scale": scale, "simgrid": simgrid_version(), "rows": rows, "growth": grown}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
