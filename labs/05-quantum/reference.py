"""Lab 05: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

from typing import Any

from retrompi.labs.bench import Bench, Curve, Line, options
from retrompi.labs.student import Parameters

KIB = 1024
REPS = 50
TWO = {"platform.host.cores": "2"}

TEXTS = {
    "why": (
        "The receiver polls and keeps the processor until its quantum is over. Only then does the sender run: it receives, sends its "
        "own message and begins to poll as well, using up its quantum in turn. So every message waits for one whole quantum. As long "
        "as all bytes fit into the window they are sent within one turn, so the size does not matter."
    ),
    "verdict": (
        "The quantum fits both: between two machines no process competes for the processor, so the message takes milliseconds. The "
        "delayed acknowledgement would show between two machines too. In 1997 I would have run the test on NT Workstation: the quantum "
        "predicts 20 to 60 ms there, the acknowledgement no change at all."
    ),
    "today": (
        "It goes wrong when there are more processes than cores, for example in a container with few cores, in continuous integration "
        "or on a laptop. Then I tell the library to yield or block while it waits, or start fewer processes."
    ),
}


def own(p: Parameters) -> dict[str, str]:
    """The student's machine, as overrides."""
    return {"platform.host.quantum": p.text("quantum"), "hpvm.window": p.text("window")}


def derive(p: Parameters) -> dict[str, str]:
    """The overrides as options of a command."""
    return {"sets": options(own(p))}


def _curve(p: Parameters, bench: Bench, more: dict[str, str] | None = None, mode: str = "shared") -> Curve:
    return bench.curve("hpvm", mode, [0, p["small"], p["window"], p["big"]], sets=own(p) | (more or {}), reps=REPS)


def _wait(p: Parameters, bench: Bench, how: str) -> float:
    return _curve(p, bench, {"hpvm.receive": how})[p["small"]]


def _wmpi(bench: Bench, sets: dict[str, str]) -> float:
    return bench.curve("wmpi", "shared", [512 * KIB], sets=sets, reps=20)[512 * KIB]


def _rival(bench: Bench, sets: dict[str, str]) -> float:
    return bench.curve("hpvm:delayed-ack", "distributed", [0, KIB], sets=sets, reps=REPS)[KIB]


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
        "block": {"yield": gains["spin_yield"]},
        "wmpi": {"the-papers": _wmpi(bench, {}), "two-processors": _wmpi(bench, quantum | TWO)},
        "wmpi-yield": {"papers-quantum": _wmpi(bench, {}) / yields},
        "rival": {
            "quantum-model": bench.curve("hpvm", "distributed", [0, KIB], reps=REPS)[KIB],
            "nts-delay": _rival(bench, {}),
        },
    }


def curves(p: Parameters, bench: Bench | None = None) -> list[Line]:
    """What the report draws."""
    sizes = [0, p["small"], 8 * KIB, p["window"], 2 * p["window"], p["big"]]
    ways = {"polls": {}, "yields": {"hpvm.receive": "spin_yield"}, "sleeps": {"hpvm.receive": "block"}, "polls, two processors": TWO}
    return [Line(label, "hpvm", "shared", sizes, own(p) | more, reps=REPS) for label, more in ways.items()]
