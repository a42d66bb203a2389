"""Lab 01: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

from typing import Any

from retrompi.labs.bench import Bench, Curve, Line, hockney, options
from retrompi.labs.student import Parameters

KIB = 1024

TEXTS = {
    "explain": (
        "N-half is the product of start-up and rate. Between two machines the start-up is many times longer, but the rate is many times "
        "smaller as well, so that the product stays of the same order. N-half alone says nothing about speed; I would ask for the start-up "
        "latency, because messages of {each} are far below N-half and nearly all of their time is start-up."
    ),
    "advice": (
        "Messages of {each} are far shorter than N-half, so nearly all of the time is start-up in the library, the daemons and the system "
        "calls, and a faster wire does not change that. She should send fewer and longer messages, which my factor for one message instead "
        "of many shows."
    ),
}


def own(p: Parameters) -> dict[str, str]:
    """The student's machine, as overrides."""
    return {"wmpi.library": p.text("library"), "platform.host.copy_l2": p.text("copy")}


def derive(p: Parameters) -> dict[str, str]:
    """The overrides as options of a command."""
    return {"sets": options(own(p))}


def _sizes(p: Parameters) -> list[int]:
    return sorted({0, *(KIB << k for k in range(9)), p["probe"], p["large"], p["improved"]})


def _machine(p: Parameters, bench: Bench) -> Curve:
    return bench.curve("wmpi", "shared", _sizes(p), sets=own(p))


def _network(p: Parameters, bench: Bench, **sets: str) -> Curve:
    return bench.curve("wmpi", "distributed", [0, p["small"], p["large"]], sets=own(p) | sets)


def _line(curve: Curve, p: Parameters) -> tuple[float, float, float]:
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
        "loop": {"one-way": p["reps"] * curve[probe], "one-trip": 2 * curve[probe], "four": 4 * p["reps"] * curve[probe]},
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
            "no-daemon": _line(_network(p, bench), p)[2],
            "measured-startup": network[0] * _line(network, p)[1],
        },
    }


def curves(p: Parameters, bench: Bench) -> list[Line]:
    """What the report draws."""
    return [
        Line("your machine, shared", "wmpi", "shared", [*_sizes(p), 512 * KIB, 1024 * KIB], own(p)),
        Line("your two machines", "wmpi", "distributed", [0, p["small"], 16 * KIB, p["large"]], own(p) | {"wmpi.daemon": p.text("daemon")}),
    ]
