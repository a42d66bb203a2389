"""Lab 06: what its answers are, by formula and by simulation, and where the usual mistakes lead."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrompi.base.units import format_bytes
from retrompi.labs.bench import Bench
from retrompi.labs.text import fill
from retrompi.store.lookup import answer
from retrompi.studies.define import scenario

HERE = Path(__file__).parent
MIB = 1 << 20
ROOMS = {
    "abe": ("nemesis", "abe*16", "1000Mbps", "Abe (NCSA, 2007) under Linux, Gigabit Ethernet and a switch", "MPICH2 Nemesis of 2010"),
    "abe-windows": (
        "nemesis:windows", "abe-windows*16", "1000Mbps", "Abe (NCSA, 2007) under Windows, Gigabit Ethernet and a switch",
        "MPICH2 Nemesis of 2010",
    ),
    "myrinet": ("mpibip", "myrinet-piii*16", "250MB/s", "dual Pentium III machines of 2000 on a Myrinet 2000 switch", "MPI-BIP"),
}
"""Room -> model, platform, bandwidth of the wire, the room and the runtime in words.

The NT cluster with HPVM is not among them: there the tree misses its formula as well, and with nine ranks the ring wins on the hub.
"""
ALGORITHMS = ("doubling", "rabenseifner", "ring")


def derive(p: Mapping[str, Any]) -> dict[str, str]:
    """The names that the text and the scenarios have besides the parameters."""
    model, platform, wire, title, runtime = ROOMS[p["room"]]
    options = f"--set platform.link.kind=switch --set platform.link.bandwidth={wire}"
    return {"model": model, "platform": platform, "wire": wire, "title": title, "runtime": runtime, "options": options}


def rows(name: str, p: Mapping[str, Any], bench: Bench, **sets: str) -> dict[int, float]:
    """Size in bytes -> seconds of the student's scenario ``name`` with overrides."""
    known = {**derive(p), "ranks": str(int(p["ranks"])), **{k: format_bytes(p[k]) for k in ("small", "large", "vector")}}
    data = tomllib.loads(fill((HERE / name).read_text(encoding="utf-8"), known))
    data["set"] |= {k.replace("__", "."): v for k, v in sets.items()}
    found = answer(bench.store, (scenario.from_data(data, HERE / name)).question())
    return {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in found.rows}


def room(p: Mapping[str, Any], bench: Bench) -> tuple[float, float, float]:
    """(α in s, β in s/B, one-way time of 64 KiB in s) of the student's PingPong."""
    model, platform, wire, _, _ = ROOMS[p["room"]]
    sets = {"platform.link.kind": "switch", "platform.link.bandwidth": wire}
    curve = bench.curve(model, "distributed", (0, 64 << 10, MIB), platform=platform, sets=sets)
    return curve[0], (curve[MIB] - curve[0]) / MIB, curve[64 << 10]


def tree(n: float, p: int, alpha: float, beta: float) -> float:
    """The formula of the binomial tree, s."""
    return math.ceil(math.log2(p)) * (alpha + n * beta)


def ring(n: float, p: int, alpha: float, beta: float) -> float:
    """The formula of scatter and ring, s."""
    return (math.ceil(math.log2(p)) + p - 1) * alpha + 2 * n * (p - 1) / p * beta


def measured(p: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """Everything that is simulated: curves of tree and ring, on the switch and the hub."""
    hub = {"platform__link__kind": "hub"}
    return {
        "tree": rows("tree.toml", p, bench), "ring": rows("ring.toml", p, bench), "hub-tree": rows("tree.toml", p, bench, **hub),
        "hub-ring": rows("ring.toml", p, bench, **hub), "both": rows("both.toml", p, bench),
        "allreduce": {a: max(rows("allreduce.toml", p, bench, coll__allreduce=a).values()) for a in ALGORITHMS},
    }


def first_win(t: Mapping[int, float], r: Mapping[int, float]) -> int:
    """The smallest power of two from 1 KiB on at which the ring is quicker, B."""
    return next(s for s in sorted(t) if s >= 1024 and s & (s - 1) == 0 and r[s] < t[s])


def expected(p: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """Task -> answer."""
    alpha, beta, alone = room(p, bench)
    m = measured(p, bench)
    ranks, large, small = int(p["ranks"]), int(p["large"]), int(p["small"])
    rounds = math.ceil(math.log2(ranks))
    return {
        "alpha": alpha,
        "beta": beta,
        "rounds": rounds,
        "formula-tree": tree(large, ranks, alpha, beta),
        "formula-ring": ring(large, ranks, alpha, beta),
        "formula-crossover": (ranks - 1) * alpha / (beta * (rounds - 2 * (ranks - 1) / ranks)),
        "small-ratio": m["ring"][small] / m["tree"][small],
        "tree-large": m["tree"][large],
        "ring-large": m["ring"][large],
        "gain": m["tree"][large] / m["ring"][large],
        "crossover": first_win(m["tree"], m["ring"]),
        "messages": ranks - 1 + ranks * (ranks - 1),
        "both-ways": m["both"][64 << 10] / alone,
        "why": "duplex",
        "hub-ratio": m["hub-ring"][large] / m["hub-tree"][large],
        "order": sorted(ALGORITHMS, key=m["allreduce"].__getitem__),
    }


def mistakes(p: Mapping[str, Any], bench: Bench) -> dict[str, dict[str, Any]]:
    """Task -> mistake -> the value that it leads to."""
    alpha, beta, alone = room(p, bench)
    m = measured(p, bench)
    right = expected(p, bench)
    ranks, large = int(p["ranks"]), int(p["large"])
    rounds, steps = math.ceil(math.log2(ranks)), ranks - 1
    return {
        "beta": {"million": beta * MIB / 1e6},
        "rounds": {"floor": math.floor(math.log2(ranks)), "linear": steps},
        "formula-tree": {"linear": steps * (alpha + large * beta), "one": alpha + large * beta},
        "formula-ring": {"ring-only": steps * alpha + large * steps / ranks * beta, "whole": (rounds + steps) * (alpha + large * beta)},
        "formula-crossover": {
            "log": steps * alpha / (beta * (math.log2(ranks) - 2 * steps / ranks)),
            "forgot-tree": steps * alpha / (beta * rounds),
        },
        "tree-large": {"swapped": right["ring-large"]},
        "ring-large": {"swapped": right["tree-large"]},
        "gain": {"formula": right["formula-tree"] / right["formula-ring"]},
        "crossover": {"before": right["crossover"] // 2},
        "messages": {"tree": steps, "ring-only": ranks * steps},
        "both-ways": {"round": m["both"][64 << 10] / (2 * alone)},
        "hub-ratio": {"switch": 1 / right["gain"]},
    }


def statements(p: Mapping[str, Any], bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    alpha, beta, alone = room(p, bench)
    m, right = measured(p, bench), expected(p, bench)
    ranks, small, large = int(p["ranks"]), int(p["small"]), int(p["large"])
    t, r = m["tree"], m["ring"]
    powers = [s for s in t if s >= 1024 and s & (s - 1) == 0]
    faster = [r[s] < t[s] for s in powers]
    formula = {s: (tree(s, ranks, alpha, beta), ring(s, ranks, alpha, beta)) for s in (small, large)}
    misses = {"tree": t[large] / formula[large][0], "ring": r[large] / formula[large][1]}
    return {
        "They predict the faster algorithm correctly, for {small} and for {large}.": (
            formula[small][0] < formula[small][1] and t[small] < r[small] and formula[large][0] > formula[large][1] and t[large] > r[large]
        ),
        "But the ring takes longer than its formula says, and misses it by more than the tree misses its own": (
            misses["ring"] > 1.05 and misses["ring"] > 1.05 * misses["tree"]
        ),
        "so the gain is smaller than predicted, and the crossover lies at a larger size": (
            1 < right["gain"] < 0.97 * right["formula-tree"] / right["formula-ring"] and right["crossover"] > right["formula-crossover"]
        ),
        "the smallest of the sizes 1 KiB, 2 KiB, 4 KiB, ... at which the ring is faster.": (
            faster == sorted(faster) and any(faster) and min(abs(r[s] / t[s] - 1) for s in powers) > 0.01  # and the table shows it
        ),
        "In the ring every machine sends *and* receives at the same time. What does that cost?": m["both"][64 << 10] > 1.1 * alone,
        "On the hub the tree is the faster one, even for your long vector.": right["hub-ratio"] > 1.05,
        "On your platform the crossover is at a larger size.": right["crossover"] > 12 << 10,
        "The tree has few start-ups and many bytes, the ring many start-ups and few bytes.": (
            right["rounds"] < right["rounds"] + ranks - 1 and right["rounds"] > 2 * (ranks - 1) / ranks
        ),
    }
