"""Lab 03: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

import math
from typing import Any

from retrompi.labs.bench import Bench, Curve, Line, options
from retrompi.labs.student import Parameters
from retrompi.spec import registry
from retrompi.spec.model import resolve

REPS = 20
PATH = [
    "the sending process", "shared memory of the sender's machine", "the proxy of the sender's machine", "TCP over the cable",
    "the proxy of the other machine", "shared memory of the other machine", "the receiving process",
]  # fmt: skip
STAGES = {
    "copying": ("copy",), "switching between processes": ("switch",), "the wire and the cards": ("wire", "nic"),
    "waiting for the clock": ("tick",),
}  # fmt: skip

TEXTS = {
    "repair": (
        "I would change how the proxy waits: waking it by an event makes my message several times faster, while the wire gains nothing and "
        "copies are a thousandth of the time. Larger packets come second, because each packet costs one tick. Only after that do the "
        "proxy's own copies and finally a faster wire begin to matter."
    ),
    "rival": (
        "At 0 B the polling model gives about ten milliseconds as the paper does, but the model with delayed acknowledgements gives only "
        "about two, so the start-up speaks for the clock. The rate of long messages alone fits both less clearly. In 1997 I would have "
        "changed the clock's tick, or watched the packets on the cable with a sniffer."
    ),
}


def own(p: Parameters) -> dict[str, str]:
    """The student's machines, as overrides."""
    return {"platform.host.tick": p.text("tick"), "winmpich.proxy_packet": p.text("packet")}


def derive(p: Parameters) -> dict[str, str]:
    """The overrides as options of a command, and twice the size."""
    return {"sets": options(own(p)), "double": f"{2 * p['size'] // 1024} KiB"}


def _curve(p: Parameters, bench: Bench, mode: str = "distributed", **more: str) -> Curve:
    sizes = [0, p["size"]] if more or mode == "shared" else [0, 1024, p["size"], 2 * p["size"]]
    return bench.curve("winmpich", mode, sizes, sets=own(p) | {k.replace("__", "."): v for k, v in more.items()}, reps=REPS)


def _payload(p: Parameters) -> int:
    """Data in a full packet: the model's own header taken off."""
    values, _ = resolve(registry.model("winmpich"), registry.platform("nt-pair"), own(p))
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


def curves(p: Parameters, bench: Bench | None = None) -> list[Line]:
    """What the report draws."""
    sizes = [0, 1024, 4096, p["size"], 2 * p["size"]]
    kinds = {"looks now and then": {}, "woken by an event": {"winmpich.proxy_wait": "event"}, "no proxy": {"winmpich.proxy": "no"}}
    return [Line(label, "winmpich", "distributed", sizes, own(p) | more, reps=REPS) for label, more in kinds.items()]
