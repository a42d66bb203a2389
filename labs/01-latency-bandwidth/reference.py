"""Lab 01: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

from typing import Any

from retrompi.base.translate import _
from retrompi.labs.bench import Bench, Line, TimeCurve, hockney, options
from retrompi.labs.student import Parameters

KIB = 1024

def own(p: Parameters) -> dict[str, str]:
    """The student's machine, as overrides."""
    return {"wmpi.library": p.text("library"), "platform.host.copy_l2": p.text("copy")}


def derive(p: Parameters) -> dict[str, str]:
    """The overrides as options of a command."""
    return {"sets": options(own(p))}


def _sizes(p: Parameters) -> list[int]:
    return sorted({0, *(KIB << k for k in range(9)), p["probe"], p["small"], p["large"], p["improved"]})


def _machine(p: Parameters, bench: Bench) -> TimeCurve:
    return bench.curve("wmpi", "shared", _sizes(p), sets=own(p))


def _network(p: Parameters, bench: Bench, **sets: str) -> TimeCurve:
    return bench.curve("wmpi", "distributed", [0, p["small"], p["large"]], sets=own(p) | sets)


def _line(curve: TimeCurve, p: Parameters) -> tuple[float, float, float]:
    return hockney(p["small"], curve[p["small"]], p["large"], curve[p["large"]])


def _improved(p: Parameters, bench: Bench) -> dict[str, float]:
    size = p["improved"]
    less = own(p) | {"wmpi.library": f"{p['library'] / 2 * 1e6:g} us"}
    faster = own(p) | {"platform.host.copy_l2": f"{p['copy'] * 2 / 1e6:g} MB/s"}
    return {
        "half the library work": bench.curve("wmpi", "shared", [size], sets=less)[size],
        "twice the copy rate": bench.curve("wmpi", "shared", [size], sets=faster)[size],
    }


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The right answers."""
    curve = _machine(p, bench)
    t0, rate, half = _line(curve, p)
    beyond = bench.curve("wmpi", "shared", [256 * KIB, 512 * KIB, 1024 * KIB], sets=own(p))
    bytes_all = p["many"] * p["each"]
    times = _improved(p, bench)
    return {
        "startup": curve[0],
        "loop": 2 * p["reps"] * curve[p["probe"]],
        "rate": curve.rate(p["probe"]),
        "line-rate": rate,
        "half": half,
        "aggregate": (p["many"] * t0 + bytes_all / rate) / (t0 + bytes_all / rate),
        "better": min(times, key=lambda k: times[k]),
        "beyond": beyond[512 * KIB] / (t0 + 512 * KIB / rate),
        "net-half": _line(_network(p, bench, **{"wmpi.daemon": p.text("daemon")}), p)[2],
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Where the usual mistakes lead."""
    curve = _machine(p, bench)
    t0, _, half = _line(curve, p)
    beyond = bench.curve("wmpi", "shared", [256 * KIB, 512 * KIB, 1024 * KIB], sets=own(p))
    network = _network(p, bench, **{"wmpi.daemon": p.text("daemon")})
    probe = p["probe"]
    return {
        "startup": {"plain-machine": bench.curve("wmpi", "shared", [0])[0], "two-machines": network[0]},
        "loop": {
            "one-message": curve[probe],
            "one-way": p["reps"] * curve[probe],
            "one-trip": 2 * curve[probe],
            "four": 4 * p["reps"] * curve[probe],
        },
        "rate": {"round-trip": curve.rate(probe) / 2},
        "line-rate": {"one-point": curve.rate(p["large"]), "small-point": curve.rate(p["small"])},
        "half": {"half-of-large": p["large"] / 2, "from-point": t0 * curve.rate(p["large"]), "double": 2 * half},
        "aggregate": {"start-ups": float(p["many"])},
        "beyond": {
            "one-point": beyond[512 * KIB] / (512 * KIB / curve.rate(p["large"])),
            "run-over-run": beyond[512 * KIB] / beyond[256 * KIB],
        },
        "net-half": {
            "one-machine": half,
            "measured-start": network[0] * _line(network, p)[1],
            "no-daemon": _line(_network(p, bench), p)[2],
        },
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    curve = _machine(p, bench)
    t0, rate, half = _line(curve, p)
    network = _network(p, bench, **{"wmpi.daemon": p.text("daemon")})
    far, far_rate, far_half = _line(network, p)
    beyond = bench.curve("wmpi", "shared", [256 * KIB, 512 * KIB, 1024 * KIB], sets=own(p))
    times = _improved(p, bench)
    between = [s for s in curve if p["small"] <= s <= p["large"]]
    return {
        "the simulated machine reaches its peak at a smaller size and about 28 MB/s at 256 K": (
            curve.number("peak_size") < 256 * KIB and abs(curve.rate(256 * KIB) - 28e6) < 0.5e6
        ),
        "a message of 256 K cannot move at 80 MB/s": curve.rate(256 * KIB) < 40e6,
        "Between your two points the line meets every measured time within one percent.": (
            p["small"] < p["probe"] < p["large"] and all(abs(curve[s] / (t0 + s / rate) - 1) < 0.01 for s in between)
        ),
        "at 64 KiB the measured time is already at least a third longer than the line's": curve[64 * KIB] > 4 / 3 * (t0 + 64 * KIB / rate),
        "above 256 K the bandwidth falls to about 3 MB/s (BF-SM-09), on your machine to about 4.": (
            abs(beyond.rate(512 * KIB) - 4e6) < 0.2e6 and beyond.rate(512 * KIB) < beyond.rate(256 * KIB) / 5
        ),
        "each of your three messages takes more than ten times as long as on one, and yet N½ is smaller there": (
            all(network[s] > 10 * curve[s] for s in (0, p["small"], p["large"])) and far_half < 0.99 * half
        ),
        "more than ten times longer, but the rate is smaller by an even larger factor": far > 10 * t0 and rate / far_rate > far / t0,
        "Messages of {each} are far below N½ on both machines": 8 * p["each"] < min(half, far_half),
        "the second part is less than a twentieth of it": p["each"] / far_rate < 0.05 * (far + p["each"] / far_rate),
        "Run both and compare the one-way times at your size. Which is the larger part there, start-up or copying?": (
            abs(times["half the library work"] / times["twice the copy rate"] - 1) > 0.02  # told apart by what the table shows
        ),
    }


def curves(p: Parameters, bench: Bench) -> list[Line]:
    """What the report draws."""
    return [
        Line(_("your machine, shared"), "wmpi", "shared", [*_sizes(p), 512 * KIB, 1024 * KIB], own(p)),
        Line(_("your two machines"), "wmpi", "distributed", [0, p["small"], 16 * KIB, p["large"]],
             own(p) | {"wmpi.daemon": p.text("daemon")}),
    ]
