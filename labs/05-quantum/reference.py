"""Lab 05: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

import math
from typing import Any

from retrompi.labs.bench import Bench, Line, TimeCurve, options
from retrompi.labs.student import Parameters

KIB = 1024
REPS = 50
TWO = {"platform.host.cores": "2"}

def own(p: Parameters) -> dict[str, str]:
    """The student's machine, as overrides."""
    return {"platform.host.quantum": p.text("quantum"), "hpvm.window": p.text("window")}


def derive(p: Parameters) -> dict[str, str]:
    """The overrides as options of a command."""
    return {"sets": options(own(p))}


def _curve(p: Parameters, bench: Bench, more: dict[str, str] | None = None, mode: str = "shared") -> TimeCurve:
    return bench.curve("hpvm", mode, [0, p["small"], p["window"], p["big"]], sets=own(p) | (more or {}), reps=REPS)


def _wait(p: Parameters, bench: Bench, how: str) -> float:
    return _curve(p, bench, {"hpvm.receive": how})[p["small"]]


def _wmpi(bench: Bench, sets: dict[str, str]) -> float:
    return bench.curve("wmpi", "shared", [512 * KIB], sets=sets, reps=20)[512 * KIB]


def _rival(bench: Bench, sets: dict[str, str], mode: str = "distributed") -> float:
    return bench.curve("hpvm:delayed-ack", mode, [0, KIB], sets=sets, reps=REPS)[KIB]


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The right answers."""
    curve, small = _curve(p, bench), p["small"]
    quantum = {"platform.host.quantum": p.text("quantum")}
    return {
        "startup": curve[0],
        "windows": curve[p["big"]] / curve[0],
        "plateau": curve.rate(p["big"]),
        "formula": p["window"] / p["quantum"],
        "two": _curve(p, bench, TWO)[small],
        "yield": curve[small] / _wait(p, bench, "spin_yield"),
        "block": curve[small] / _wait(p, bench, "block"),
        "wmpi": _wmpi(bench, quantum),
        "wmpi-yield": _wmpi(bench, quantum) / _wmpi(bench, quantum | {"wmpi.answer_wait": "spin_yield"}),
        "rival": _rival(bench, {"platform.host.delayed_ack": p.text("ack")}),
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Where the usual mistakes lead."""
    curve, small, big = _curve(p, bench), p["small"], p["big"]
    two = _curve(p, bench, TWO)
    sizes = [0, small, p["window"], big]
    wide = bench.curve("hpvm", "shared", sizes, sets={"platform.host.quantum": p.text("quantum")}, reps=REPS)
    slow = bench.curve("hpvm", "shared", sizes, sets={"hpvm.window": p.text("window")}, reps=REPS)
    quantum = {"platform.host.quantum": p.text("quantum")}
    yields = _wmpi(bench, quantum | {"wmpi.answer_wait": "spin_yield"})
    gains = {how: curve[small] / _wait(p, bench, how) for how in ("spin_yield", "block")}
    return {
        "startup": {"the-papers": slow[0], "two-machines": _curve(p, bench, mode="distributed")[0]},
        "windows": {"papers-window": wide[big] / wide[0], "bytes": big / KIB},
        "plateau": {"papers-quantum": slow.rate(big), "papers-window": wide.rate(big)},
        "formula": {"two-windows": 2 * p["window"] / p["quantum"], "papers-window": 64 * KIB / p["quantum"]},
        "two": {"one": curve[small], "empty": two[0]},
        "yield": {"block": gains["block"], "two-processors": curve[small] / two[small]},
        "block": {"yield": gains["spin_yield"], "empty": curve[0] / _curve(p, bench, {"hpvm.receive": "block"})[0]},
        "wmpi": {"the-papers": _wmpi(bench, {}), "two-processors": _wmpi(bench, quantum | TWO)},
        "wmpi-yield": {"papers-quantum": _wmpi(bench, {}) / yields},
        "rival": {
            "quantum-model": bench.curve("hpvm", "distributed", [0, KIB], reps=REPS)[KIB],
            "nts-delay": _rival(bench, {}),
            "one-machine": _rival(bench, {"platform.host.delayed_ack": p.text("ack")}, "shared"),
        },
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    right, curve, small, big = expected(p, bench), _curve(p, bench), p["small"], p["big"]
    boosted = _curve(p, bench, {"platform.host.boost": "1"})
    plain, apart = (bench.curve("hpvm", mode, [0, KIB], reps=REPS) for mode in ("shared", "distributed"))
    nts, papers = _rival(bench, {}), _wmpi(bench, {})
    delay = {"platform.host.delayed_ack": p.text("ack")}
    rival = {m: bench.curve("hpvm:delayed-ack", m, [0, KIB], sets=delay, reps=REPS) for m in ("shared", "distributed")}
    return {
        "Why is the time the same for 0 B and for your window?": abs(curve[p["window"]] / curve[0] - 1) < 0.01,
        "So every message costs one quantum, however short it is": abs(curve[small] / p["quantum"] - 1) < 0.01,
        "A longer message needs several turns, one quantum for each further window.": (
            abs(curve[big] / curve[0] - math.ceil(big / p["window"])) < 0.05
        ),
        "Compute the same from two parameters only": abs(right["plateau"] / right["formula"] - 1) < 0.12,
        "With the boost your long messages would take less than half as long": boosted[big] < 0.5 * curve[big],
        "while short ones would not change": abs(boosted[0] / curve[0] - 1) < 0.01 and abs(boosted[small] / curve[small] - 1) < 0.01,
        "On one processor it gives 120 ms without any fitted number": abs(plain[0] - 0.120) < 0.002,
        "the message takes about 6 ms": 0.005 < apart[0] < 0.007,
        "where the model loses one": 0.120 < papers < 0.140,
        "waits for one such delay, so the whole delay is in its one-way time": (
            all(abs(c[KIB] - p["ack"]) < 0.010 for c in rival.values())
        ),
        "an empty message is a single write and does not wait": all(c[0] < 0.01 for c in rival.values()),
        "The delayed acknowledgement gives about 200 ms on one machine and about 207 ms between two": (
            abs(bench.curve("hpvm:delayed-ack", "shared", [0, KIB], reps=REPS)[KIB] - 0.200) < 0.002 and abs(nts - 0.207) < 0.001
        ),
        "A second processor would decide as well: it removes the quantum's wait": right["two"] < 0.001,
        "WMPI receives without polling, but still collapses above 256 K.": right["wmpi"] > p["quantum"],
        "That is the empty message, whose time includes opening the connection": _curve(p, bench, TWO)[0] > 1.02 * right["two"],
    }


def curves(p: Parameters, bench: Bench | None = None) -> list[Line]:
    """What the report draws."""
    sizes = [0, p["small"], 8 * KIB, p["window"], 2 * p["window"], p["big"]]
    ways = {"polls": {}, "yields": {"hpvm.receive": "spin_yield"}, "sleeps": {"hpvm.receive": "block"}, "polls, two processors": TWO}
    return [Line(label, "hpvm", "shared", sizes, own(p) | more, reps=REPS) for label, more in ways.items()]
