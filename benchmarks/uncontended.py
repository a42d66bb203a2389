"""The golden set of the wire: thousands of small runs, and the times they had when frames shared links fluidly (tests/data/golden.csv.xz).

    python benchmarks/uncontended.py check       # all again: what is uncontended under both laws takes the same picoseconds
    python benchmarks/uncontended.py write FILE  # the present engine's times

A frame that finds no link of its way taken needs the latencies and its bytes at the slowest rate, whatever the law of sharing is; so a run
in which none did (`Result.contended` is 0) takes the same time to the picosecond. Runs with contention are in the set too: `check` tells
how far they have moved. Every run is (model, platform, hosts, network, trace); `NETWORKS` are overrides that give the platform other links.
"""

from __future__ import annotations

import csv
import hashlib
import io
import lzma
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrompi.base.errors import RetrompiError
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, generate

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "golden.csv.xz"
SIZES = (0, 1, 100, 1000, 1400, 5000, 20_000, 70_000)
"""Of PingPongs, in bytes: three round trips of one size each."""
NETWORKS: dict[str, dict[str, str]] = {
    "own": {},
    "fast": {"platform.link.bandwidth": "1000Gbps"},  # a frame is gone before the next one has crossed its card
    "slow": {"platform.link.bandwidth": "2Mbps"},
    "switch": {"platform.link.kind": "switch", "platform.link.bandwidth": "100Mbps"},
    "tree": {"platform.link.kind": "fat-tree", "platform.link.shape": "2x4;1x1", "platform.link.bandwidth": "100Mbps"},
    "line": {"platform.link.kind": "wan", "platform.link.wan_bandwidth": "1544kbps", "platform.link.wan_latency": "5ms"},
}
HOSTS_OF_OTHER_LINKS = ("nt-cluster",)
CROWDS = ("halo", "alltoall")


@dataclass(frozen=True)
class Run:
    """One run of the set."""

    model: str
    platform: str
    hosts: tuple[int, ...]
    network: str
    trace: str

    def program(self) -> Trace:
        """Its trace, by name: ``pingpong:1000``, ``halo``, ``alltoall``."""
        name, _, size = self.trace.partition(":")
        if name == "pingpong":
            return generate.pingpong([int(size)], 3)
        ranks = len(self.hosts)
        return generate.halo(ranks, 2, 3000) if name == "halo" else generate.alltoall(ranks, 3000, 2)

    def ask(self, network: str = "native") -> Question:
        """The question that it answers."""
        sets = NETWORKS[self.network]
        return Question(self.model, self.platform, Replay(self.program()), self.hosts, sets, idle_overrides=True, network=network)


@dataclass(frozen=True)
class Times:
    """What a run took (ps), a hash of outcome and all marks, and how many of its frames there were and found a link taken."""

    time_ps: int
    marks: str
    frames: int
    contended: int


def runs() -> Iterator[Run]:
    """Every run of the set: models x platforms x pairs of hosts x networks x traces."""
    for platform in registry.platforms():
        room = registry.platform(platform)
        last = len(room.hosts) - 1
        pairs = [(0, 1)] + [(0, last)] * (last > 1)
        for model in registry.models():
            if ":" in model and platform not in HOSTS_OF_OTHER_LINKS:
                continue  # a variant
            for network in NETWORKS if platform in HOSTS_OF_OTHER_LINKS else ("own", "fast", "slow"):
                for hosts in pairs:
                    for size in SIZES:
                        yield Run(model, platform, hosts, network, f"pingpong:{size}")
                if last >= 3:
                    for crowd in CROWDS:
                        yield Run(model, platform, (0, 1, 2, 3), network, crowd)


def times(run: Run, network: str = "native") -> Times | None:
    """Simulates a run; None if it cannot be, as where a model cannot join these hosts or has no path between them."""
    try:
        got = simulate.run(run.ask(network))
    except RetrompiError:
        return None
    if got.outcome == "failed-start":
        return None
    marks = hashlib.sha256(repr([got.outcome, [m["time_ps"] for m in got.marks]]).encode()).hexdigest()[:8]
    return Times(got.time_ps, marks, got.frames, got.contended)


def write(path: Path, found: Sequence[tuple[Run, Times]]) -> None:
    """Stores runs and their times."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["model", "platform", "hosts", "network", "trace", "time_ps", "marks", "frames", "contended"])
    for run, t in found:
        hosts = "+".join(map(str, run.hosts))
        rows.writerow([run.model, run.platform, hosts, run.network, run.trace, t.time_ps, t.marks, t.frames, t.contended])
    path.write_bytes(lzma.compress(text.getvalue().encode(), preset=9))


def read(path: Path = DATA) -> list[tuple[Run, Times]]:
    """The stored runs and their times."""
    rows = csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode()))
    return [
        (
            Run(r["model"], r["platform"], tuple(map(int, r["hosts"].split("+"))), r["network"], r["trace"]),
            Times(int(r["time_ps"]), r["marks"], int(r["frames"]), int(r["contended"])),
        )
        for r in rows
    ]


def differences(of: Sequence[tuple[Run, Times]], network: str = "native") -> tuple[int, list[str], list[tuple[float, Run]]]:
    """How many runs are uncontended under both laws; those among them whose times differ, which none may; the factors of the others."""
    alone, wrong, moved = 0, [], []
    for run, was in of:
        now = times(run, network)
        if now is None:
            wrong.append(f"{run}: it ran before and does not now")
        elif was.contended == 0 and now.contended == 0:
            alone += 1
            if (now.time_ps, now.marks, now.frames) != (was.time_ps, was.marks, was.frames):
                wrong.append(f"{run}: {now.time_ps} ps, {was.time_ps} ps before")
        elif was.time_ps > 0:
            moved.append((now.time_ps / was.time_ps, run))
    return alone, wrong, moved


def main(arguments: Sequence[str]) -> int:
    """0 if every uncontended run is as it was, 1 if one differs."""
    if arguments[:1] == ["write"]:
        found = [(r, t) for r in runs() if (t := times(r)) is not None]
        write(Path(arguments[1]) if arguments[1:] else DATA, found)
        print(f"{len(found)} runs, {sum(t.contended == 0 for _, t in found)} without contention")
        return 0
    alone, wrong, moved = differences(read())
    print(f"{alone} runs uncontended under both laws, {len(wrong)} of them differ; {len(moved)} contended runs")
    for line in wrong:
        print("DIFFERS", line)
    moved.sort(key=lambda m: m[0])
    if moved:
        quantiles = [moved[min(len(moved) - 1, int(q * len(moved)))][0] for q in (0, 0.05, 0.5, 0.95, 1)]
        print("contended: now / before: least, 5 %, median, 95 %, most: " + ", ".join(f"{q:.4f}" for q in quantiles))
        for factor, run in [*moved[:5], *moved[-5:]]:
            print(f"  {factor:.4f} {run}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
