"""Lab 04: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

import math
from typing import Any

from retrompi.labs.bench import Bench, Line
from retrompi.labs.student import Parameters
from retrompi.spec import registry
from retrompi.spec.model import resolve

SMALL = 4096
REPS = 200
OUT_REPS = 500
MESSAGES = 2 * OUT_REPS
WHERE = ("wmpi", "distributed")

def derive(p: Parameters) -> dict[str, str]:
    """When the cable is back."""
    return {"outage_end": f"{1 + p['outage']:g}s"}


def _time(bench: Bench, size: int, reps: int, seed: int = 1, **sets: str) -> float:
    given = {k.replace("__", "."): v for k, v in sets.items()}
    return bench.curve(*WHERE, [size], sets=given, reps=reps, seed=seed)[size]


def _clean(bench: Bench) -> float:
    return _time(bench, SMALL, REPS)


def _lossy(p: Parameters, bench: Bench) -> float:
    return _time(bench, SMALL, REPS, p["seed"], wmpi__loss=p.text("loss"), wmpi__udp_timeout=p.text("timeout"))


def _job(p: Parameters, bench: Bench, *failures: str) -> dict[str, Any]:
    sets = {"wmpi.udp_timeout": p.text("timeout"), "wmpi.udp_retries": p.text("retries")}
    args = {"sizes": [1024], "reps": OUT_REPS}
    return bench.replay_generated("pingpong", args, *WHERE, sets=sets, failures=list(failures))


def _line(p: Parameters, bench: Bench, window: str, latency: bool = True) -> float:
    sets = {"wmpi.udp_window": window} | ({"platform.link.latency": p.text("latency")} if latency else {})
    return bench.curve(*WHERE, [p["big"]], sets=sets, reps=20)[p["big"]]


def _gone(p: Parameters, bench: Bench) -> float:
    return float(_job(p, bench, "link server@1s")["time_s"])


def expected_datagrams(size: int) -> int:
    """Datagrams that a message takes between the daemons."""
    values, _ = resolve(registry.model("wmpi"), registry.platform("nt-pair"), {})
    return math.ceil(size / float(values.network_packet))


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The right answers."""
    one = bench.replay_generated("pingpong", {"sizes": [p["big"]], "reps": 1}, *WHERE)
    clean, lossy = _clean(bench), _lossy(p, bench)
    rival = bench.replay_generated("pingpong", {"sizes": [1024], "reps": OUT_REPS}, "winmpich", "distributed", failures=["link server@1s"])
    gone = _gone(p, bench)
    out = _job(p, bench, f"link server@1s..{1 + p['outage']:g}s")
    return {
        "datagrams": one["packets"] / one["messages"] / 3,
        "window": _line(p, bench, "1") / _line(p, bench, "8"),
        "slow": lossy / clean,
        "waits": (lossy - clean) * 2 * REPS / p["timeout"],
        "lost": p["loss"] * 2 * REPS,
        "short": _time(bench, p["big"], 20, wmpi__udp_timeout=p.text("short")) / _time(bench, p["big"], 20),
        "outage": float(out["time_s"]) - float(_job(p, bench)["time_s"]),
        "giveup": gone - 1,
        "first": "WMPI's daemons" if gone < float(rival["time_s"]) else "WinMPICH's TCP",
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Where the usual mistakes lead."""
    clean, lossy = _clean(bench), _lossy(p, bench)
    out = _job(p, bench, f"link server@1s..{1 + p['outage']:g}s")
    later = float(out["time_s"]) - float(_job(p, bench)["time_s"])
    short, big = p.text("short"), p["big"]
    return {
        "datagrams": {"segments": math.ceil(big / 1460), "packets": math.ceil(big / (128 * 1024))},
        "window": {"cable": _line(p, bench, "1", False) / _line(p, bench, "8", False), "four": _line(p, bench, "1") / _line(p, bench, "4")},
        "slow": {
            "seed": _time(bench, SMALL, REPS, 1, wmpi__loss=p.text("loss"), wmpi__udp_timeout=p.text("timeout")) / clean,
            "half-second": _time(bench, SMALL, REPS, p["seed"], wmpi__loss=p.text("loss")) / clean,
        },
        "waits": {"half": (lossy - clean) * REPS / p["timeout"], "whole-time": lossy * 2 * REPS / p["timeout"]},
        "lost": {"round-trips": p["loss"] * REPS},
        "short": {"small": _time(bench, SMALL, 20, wmpi__udp_timeout=short) / _time(bench, SMALL, 20)},
        "outage": {"mean": later / MESSAGES, "the-outage": p["outage"]},
        "giveup": {
            "no-doubling": p["timeout"] * (p["retries"] + 1),
            "last-wait": p["timeout"] * (2 ** p["retries"] - 1),
            "from-start": _gone(p, bench),
        },
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    right = expected(p, bench)
    plain = _time(bench, p["big"], 20)
    gone = _gone(p, bench)
    rival = bench.replay_generated("pingpong", {"sizes": [1024], "reps": OUT_REPS}, "winmpich", "distributed", failures=["link server@1s"])
    sent, kept = (bench.replay_generated("pingpong", {"sizes": [p["big"]], "reps": 20}, *WHERE, sets=s)
                  for s in ({"wmpi.udp_timeout": p.text("short")}, {}))
    return {
        "On a short cable this hardly matters.": _line(p, bench, "1", False) < 1.03 * _line(p, bench, "8", False),
        "On a long line it does": right["window"] > 3,
        "With a smaller window the line is idle most of the time.": _line(p, bench, "8", False) < 0.5 * _line(p, bench, "1"),
        "Your messages waited for more time-outs than data datagrams are lost on average.": right["waits"] > 1.1 * right["lost"],
        "That is at 4 KiB, where the acknowledgement arrives in time": (
            abs(_time(bench, SMALL, 20, wmpi__udp_timeout=p.text("short")) / _time(bench, SMALL, 20) - 1) < 1e-3
        ),
        "The wire and both processors handle these datagrams twice.": right["short"] > 1.3 and sent["packets"] >= kept["packets"],
        "about a tenth of a second: without loss it repeats hardly anything even in a message of {big}": (
            _time(bench, p["big"], 20, wmpi__udp_timeout="100 ms") < 1.01 * plain
        ),
        "The daemon does not know when it is up again: when does it retry?": abs(right["outage"] / p["outage"] - 1) > 0.05,
        "Each wait is twice as long as the one before, and there is a wait after the last retry as well.": (
            abs(right["giveup"] / (p["timeout"] * (2 ** (p["retries"] + 1) - 1)) - 1) < 0.02
        ),
        "Compare the two times at which the jobs were aborted.": abs(gone / float(rival["time_s"]) - 1) > 0.02,
        "Each of these messages is one data datagram.": expected_datagrams(SMALL) == 1,
    }


def curves(p: Parameters, bench: Bench | None = None) -> list[Line]:
    """What the report draws."""
    sizes = [1024, 4096, 16 * 1024, 64 * 1024, p["big"]]
    loss = {"wmpi.loss": p.text("loss"), "wmpi.udp_timeout": p.text("timeout")}
    return [
        Line("no loss", "wmpi", "distributed", sizes, reps=20),
        Line(f"{p.text('loss')} lost", "wmpi", "distributed", sizes, loss, reps=20),
        Line(f"no loss, time-out of {p.text('short')}", "wmpi", "distributed", sizes, {"wmpi.udp_timeout": p.text("short")}, reps=20),
    ]
