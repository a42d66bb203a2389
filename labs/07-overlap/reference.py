"""Lab 07: what its answers are, all by simulation, and where the usual mistakes lead."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from retrompi.base.units import format_bytes, format_time
from retrompi.labs.bench import Bench
from retrompi.labs.text import fill
from retrompi.store.lookup import answer
from retrompi.studies.define import scenario

HERE = Path(__file__).parent
LOOKS = (1, 4, 16, 64, 256, 1024, 4096)


def pieces(p: Mapping[str, Any]) -> dict[int, float]:
    """Looks -> nanoseconds of computation after each."""
    return {n: round(p["work"] * 1e9) / n for n in LOOKS}


def derive(p: Mapping[str, Any]) -> dict[str, str]:
    """The names that the text and the scenarios have besides the parameters."""
    told = pieces(p)
    return {
        "pieces": ", ".join(repr(t) for t in told.values()),
        "whole": repr(told[1]),
        "sixteenth": repr(told[16]),
        "finest": repr(told[4096]),
        "double_ns": repr(2 * told[1]),
        "double": format_time(2 * p["work"]),
    }


def seconds(name: str, p: Mapping[str, Any], bench: Bench, trace: Mapping[str, Any] | None = None, **sets: str) -> float:
    """The time of the student's scenario ``name``, s, with another trace or other settings."""
    known = {**derive(p), "size": format_bytes(p["size"]), "messages": str(int(p["messages"])), "work": format_time(p["work"])}
    data = tomllib.loads(fill((HERE / name).read_text(encoding="utf-8"), known))
    data["trace"] |= trace or {}
    data["set"] = data.get("set", {}) | {f"nemesis.{k}": v for k, v in sets.items()}
    found = answer(bench.store, (scenario.from_data(data, HERE / name)).question())
    return float(found.rows[0]["time_us"]) * 1e-6


def table(p: Mapping[str, Any], bench: Bench) -> dict[tuple[str, int], float]:
    """(progress, looks) -> seconds: what the study looks.toml shows."""
    cut = pieces(p)
    return {
        (way, n): seconds("alone.toml", p, bench, {"tests": n, "compute_ns": cut[n]}, progress=way)
        for way in ("select", "iocp") for n in LOOKS
    }


def share(messages: float, work: float, both: float) -> float:
    """The share of the shorter of messages and computation that is hidden."""
    return (messages + work - both) / min(messages, work)


def simulated(p: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """Every time of the lab, s."""
    cut = pieces(p)
    return {
        "alone": seconds("alone.toml", p, bench),
        "alone-iocp": seconds("alone.toml", p, bench, progress="iocp"),
        "table": table(p, bench),
        "skip": seconds("skip.toml", p, bench),
        "skipped": seconds("skip.toml", p, bench, tcp_skip="128"),
        "big-alone": seconds("big.toml", p, bench),
        "big": seconds("big.toml", p, bench, {"compute_ns": 2 * cut[1]}),
        "few": seconds("descriptors.toml", p, bench),
        "many": seconds("descriptors.toml", p, bench, {"ranks": 14}),
    }


def best(t: Mapping[tuple[str, int], float], way: str) -> int:
    """The number of looks with the shortest time."""
    return min(LOOKS, key=lambda n: t[way, n])


def expected(p: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """Task -> answer."""
    s = simulated(p, bench)
    t, work = s["table"], float(p["work"])
    four = {"select-16": t["select", 16], "select-4096": t["select", 4096], "iocp-16": t["iocp", 16], "iocp-4096": t["iocp", 4096]}
    return {
        "alone": s["alone"],
        "alone-iocp": s["alone-iocp"],
        "hidden-once": share(s["alone"], work, t["select", 1]),
        "best-select": best(t, "select"),
        "hidden-best": share(s["alone"], work, t["select", best(t, "select")]),
        "inside": t["select", 4096] - work,
        "look": (t["select", 4096] - t["select", 1024]) / 3072,
        "inside-iocp": t["iocp", 4096] - work,
        "order": sorted(four, key=four.__getitem__),
        "skip": s["skip"],
        "why-flat": "skip",
        "hidden-big": share(s["big-alone"], 2 * work, s["big"]),
        "why-big": "handshake",
        "connections": (s["many"] - work) / (s["few"] - work),
    }


def mistakes(p: Mapping[str, Any], bench: Bench) -> dict[str, dict[str, Any]]:
    """Task -> mistake -> the value that it leads to."""
    s, right = simulated(p, bench), expected(p, bench)
    t, work = s["table"], float(p["work"])
    hidden = s["alone"] + work - t["select", 1]
    return {
        "alone": {"other": s["alone-iocp"]},
        "alone-iocp": {"other": s["alone"]},
        "hidden-once": {"whole": hidden / t["select", 1], "left": 1 - right["hidden-once"]},
        "best-select": {"iocp": best(t, "iocp")},
        "hidden-best": {"left": 1 - right["hidden-best"]},
        "inside": {"iocp": right["inside-iocp"], "whole": t["select", 4096]},
        "look": {"divided": (t["select", 4096] - t["select", 1024]) / 4096},
        "inside-iocp": {"select": right["inside"]},
        "skip": {"skipped": s["skipped"]},
        "hidden-big": {"left": 1 - right["hidden-big"], "small": right["hidden-once"]},
        "connections": {"whole": s["many"] / s["few"]},
    }


def statements(p: Mapping[str, Any], bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    s, right = simulated(p, bench), expected(p, bench)
    t, work = s["table"], float(p["work"])
    flat = [t["iocp", n] for n in (1, 4, 16, 64)]
    closest = min(LOOKS, key=lambda n: abs(work / n - 500e-9))
    quick = sorted(t["select", n] for n in LOOKS)
    four = sorted(t[way, n] for way in ("select", "iocp") for n in (16, 4096))
    return {
        "With few tests, arriving data are not read, the sender's window fills up, and the wire is idle.": t["select", 1] > 1.05 * quick[0],
        "With many tests, each one is a system call that queries every connection.": right["look"] > 0 and right["connections"] > 1.2,
        "Which of your rows is closest to that, and which method is better there?": closest == 4096 and t["iocp", 4096] < t["select", 4096],
        "Which is better with 16 tests? Both results hold for the same library": t["select", 16] < t["iocp", 16],
        "With completion ports, 1, 4, 16 and 64 tests take the same time.": max(flat) < 1.001 * min(flat),
        "with 1024 tests the same messages complete sooner, on the same wire": t["iocp", 1024] < 0.95 * t["iocp", 64],
        "here that number is never reached": s["skip"] < 0.95 * s["skipped"] and abs(s["skipped"] / t["iocp", 16] - 1) < 0.001,
        "Why is hardly anything hidden in this case?": abs(right["hidden-big"]) < 0.05,
        "With how many tests (of those in the table) is the time shortest with select?": quick[1] > 1.001 * quick[0],
        "Sort the four entries of the study's table.": all(b > 1.001 * a for a, b in pairwise(four)),
        "too few tests leave the wire idle, too many cost a system call each": (
            t["select", 1] > quick[0] and t["select", 4096] > quick[0] and 1 < right["best-select"] < 4096
        ),
    }
