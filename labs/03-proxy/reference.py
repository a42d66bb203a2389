"""Lab 03: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

import math
from typing import Any

from retrompi.base.translate import _
from retrompi.labs.bench import Bench, Line, TimeCurve, options
from retrompi.labs.student import Parameters
from retrompi.spec import registry
from retrompi.spec.model import resolve

REPS = 20
PATH = [
    "the sending process", "shared memory of the sender's machine", "the proxy of the sender's machine", "TCP over the cable",
    "the proxy of the other machine", "shared memory of the other machine", "the receiving process",
]
STAGES = {
    "copying": ("copy",), "switching between processes": ("switch",), "the wire and the cards": ("wire", "nic"),
    "waiting for the clock": ("tick",),
}

def own(p: Parameters) -> dict[str, str]:
    """The student's machines, as overrides."""
    return {"platform.host.tick": p.text("tick"), "winmpich.proxy_packet": p.text("packet")}


def derive(p: Parameters) -> dict[str, str]:
    """The overrides as options of a command, twice the size, and the bytes of a packet's header."""
    return {"sets": options(own(p)), "double": f"{2 * p['size'] // 1024} KiB", "header": f"{int(p['packet']) - _payload(p)} B"}


def _curve(p: Parameters, bench: Bench, mode: str = "distributed", **more: str) -> TimeCurve:
    sizes = [0, p["size"]] if more or mode == "shared" else [0, 1024, p["size"], 2 * p["size"]]
    return bench.curve("winmpich", mode, sizes, sets=own(p) | {k.replace("__", "."): v for k, v in more.items()}, reps=REPS)


def _payload(p: Parameters) -> int:
    """Data in a full packet: the model's own header taken off."""
    values, _room = resolve(registry.model("winmpich"), registry.platform("nt-pair"), own(p))
    return int(values.proxy_packet - values.header)


def _packets(p: Parameters, size: int) -> int:
    return math.ceil(size / _payload(p))


def _stages(p: Parameters, bench: Bench) -> tuple[dict[str, float], float, list[float]]:
    """(seconds by kind of stage, all seconds, the ticks of the two proxies)."""
    rows = bench.anatomy("winmpich", "distributed", p["size"], sets=own(p))
    total = sum(r["seconds"] for r in rows)
    kinds = {name: sum(r["seconds"] for r in rows if r["stage"] in stages) for name, stages in STAGES.items()}
    return kinds, total, [r["seconds"] for r in rows if r["stage"] == "tick"]


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The right answers."""
    size, curve = p["size"], _curve(p, bench)
    step = (curve[2 * size] - curve[size]) / (_packets(p, 2 * size) - _packets(p, size))
    kinds, total, ticks = _stages(p, bench)
    woken, none = _curve(p, bench, winmpich__proxy_wait="event"), _curve(p, bench, winmpich__proxy="no")
    return {
        "path": PATH,
        "startup": curve[0],
        "packets": _packets(p, size),
        "per-packet": step,
        "limit": _payload(p) / step,
        "largest": max(kinds, key=lambda k: kinds[k]),
        "share": sum(ticks) / total,
        "wire": _curve(p, bench, platform__link__bandwidth="10 Mbps")[size] / curve[size],
        "event": curve[size] / woken[size],
        "idea": woken[size] / none[size],
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Where the usual mistakes lead."""
    size, curve = p["size"], _curve(p, bench)
    packets = _packets(p, size)
    step = (curve[2 * size] - curve[size]) / (_packets(p, 2 * size) - packets)
    _, total, ticks = _stages(p, bench)
    woken, none = _curve(p, bench, winmpich__proxy_wait="event"), _curve(p, bench, winmpich__proxy="no")
    slow = _curve(p, bench, winmpich__proxy="no", platform__link__bandwidth="10 Mbps")
    return {
        "path": {
            "proxy-first": [PATH[0], PATH[2], PATH[1], *PATH[3:]],
            "one-side": [*PATH[:4], PATH[5], PATH[4], PATH[6]],
        },
        "startup": {"one-machine": _curve(p, bench, "shared")[0], "woken": woken[0]},
        "packets": {"no-header": math.ceil(size / p["packet"]), "hops": 3 * packets},
        "per-packet": {"per-kib": (curve[2 * size] - curve[size]) / (size / 1024), "round": 2 * step},
        "limit": {"header": p["packet"] / step, "sum": _payload(p) / (step + none[0])},
        "share": {"one-proxy": ticks[0] / total, "other-proxy": ticks[1] / total},
        "wire": {"no-proxy": slow[size] / none[size], "ten": 10.0},
        "event": {"no-proxy": curve[size] / none[size], "empty": curve[0] / woken[0]},
        "idea": {"polling": curve[size] / none[size], "other-gain": curve[size] / woken[size]},
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    size, curve = p["size"], _curve(p, bench)
    right = expected(p, bench)
    kinds, total, _ = _stages(p, bench)
    larger = bench.curve("winmpich", "distributed", [0, size], sets=own(p) | {"winmpich.proxy_packet": f"{2 * p['packet']} B"}, reps=REPS)
    sizes = [0, 1024, 16 * 1024, 64 * 1024]
    papers = bench.curve("winmpich", "distributed", sizes, reps=REPS)
    rival = bench.curve("winmpich:delayed-ack", "distributed", sizes, reps=REPS)
    return {
        "Look at this value. Which parameter of your machines does it resemble?": abs(right["per-packet"] / p["tick"] - 1) < 0.03,
        "spend more than three quarters of my message's time waiting for the clock": right["share"] > 0.75,
        "with a proxy that an event wakes the message becomes several times faster": right["event"] > 2.5,
        "a packet with twice the data nearly halves the time as long as the proxy polls": 1.7 < curve[size] / larger[size] < 2.2,
        "Copies are less than a hundredth of the time": kinds["copying"] < 0.01 * total,
        "the faster network gains hardly anything (my factor is near 1)": right["wire"] < 1.05,
        "the wire is idle most of the time": kinds["the wire and the cards"] < 0.05 * total,
        "The polling proxy gives about 10 ms for an empty message and about 98 kB/s at 64 KiB": (
            abs(papers[0] - 0.010) < 0.0005 and abs(papers.rate(64 * 1024) - 98e3) < 2e3
        ),
        "The delayed acknowledgement gives about 2 ms and about 2 MB/s": (
            abs(rival[0] - 0.002) < 0.0001 and abs(rival.rate(64 * 1024) - 2e6) < 0.1e6
        ),
    }


def curves(p: Parameters, bench: Bench | None = None) -> list[Line]:
    """What the report draws."""
    sizes = [0, 1024, 4096, p["size"], 2 * p["size"]]
    woken, none = {"winmpich.proxy_wait": "event"}, {"winmpich.proxy": "no"}
    kinds = {_("looks now and then"): {}, _("woken by an event"): woken, _("no proxy"): none}
    return [Line(label, "winmpich", "distributed", sizes, own(p) | more, reps=REPS) for label, more in kinds.items()]
