"""Lab 11: messages that share a hub, a switch's port and its buffer: by hand and by simulation."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

from retrompi import traces
from retrompi.base.units import format_bytes
from retrompi.labs.bench import Bench
from retrompi.labs.student import Parameters
from retrompi.labs.text import fill
from retrompi.store.lookup import answer
from retrompi.studies.define import scenario

HERE = Path(__file__).parent
PAYLOAD, ADDED, RATE = 1460, 78, 10e6
"""Data of a full frame, bytes that every frame adds on the wire, bits per second."""
MODEL, PLATFORM = "mpich", "nt-cluster*8"
SWITCH = {"platform.link.kind": "switch"}


def derive(p: Parameters) -> dict[str, str]:
    """Ranks of the pairs, and the options of a replay."""
    run = f"-m {MODEL} -p '{PLATFORM}' --what-if-hardware --mode distributed --set platform.link.kind=switch"
    return {"ranks": str(2 * int(p["pairs"])), "options": run}


def incast(p: Parameters) -> str:
    """The trace: all ranks but 0 send to rank 0, which has posted every receive."""
    count, size = int(p["senders"]), int(p["each"])
    receives = "".join(f"0 irecv {r} 5 {size} 6\n" for r in range(1, count + 1))
    senders = "".join(f"{r} init\n{r} send 0 5 {size} 6\n{r} finalize\n" for r in range(1, count + 1))
    return f"0 init\n{receives}0 waitall {count}\n0 finalize\n{senders}"


def prepare(folder: Path, p: Parameters) -> None:
    """The student's trace."""
    (folder / "incast.ti").write_text(incast(p), encoding="utf-8")


def frames(size: float) -> int:
    """Frames of a message."""
    return math.ceil(size / PAYLOAD)


def wire(size: float) -> float:
    """Seconds for which a message occupies the wire."""
    return (size + ADDED * frames(size)) * 8 / RATE


def _pairs(p: Parameters, bench: Bench, **sets: str) -> float:
    known = derive(p) | {"size": format_bytes(p["size"])}
    data = tomllib.loads(fill((HERE / "pairs.toml").read_text(encoding="utf-8"), known))
    data["set"] |= {k.replace("__", "."): v for k, v in sets.items()}
    found = answer(bench.store, scenario.from_data(data, HERE / "pairs.toml").question())
    return float(found.rows[0]["time_us"]) * 1e-6


def _incast(p: Parameters, bench: Bench, **sets: str) -> dict[str, Any]:
    given = SWITCH | {k.replace("__", "."): v for k, v in sets.items()}
    return bench.replay(traces.parse(incast(p)), "incast.ti", MODEL, "distributed", platform=PLATFORM, sets=given)


def measured(p: Parameters, bench: Bench) -> dict[str, float]:
    """Every simulated time, s."""

    def work() -> dict[str, float]:
        return {
            "hub": _pairs(p, bench),
            "switch": _pairs(p, bench, platform__link__kind="switch"),
            "collisions": _pairs(p, bench, platform__link__access="csma-cd"),
            "incast": float(_incast(p, bench)["time_s"]),
            "incast-drop": float(_incast(p, bench, platform__link__buffer=p.text("buffer"))["time_s"]),
        }

    found: dict[str, float] = bench.once(("lab 11", tuple(sorted(p.texts.items()))), work)
    return found


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The right answers."""
    m = measured(p, bench)
    ratio = m["collisions"] / m["hub"]
    return {
        "frames": frames(p["size"]),
        "wire": wire(p["size"]),
        "share": p["pairs"] * wire(p["size"]),
        "hub": m["hub"],
        "switch": m["switch"],
        "hub-factor": m["hub"] / m["switch"],
        "collisions": m["collisions"],
        "collide": "slower" if ratio > 1.03 else "faster" if ratio < 0.97 else "about the same",
        "incast-wire": p["senders"] * wire(p["each"]),
        "incast": m["incast"],
        "incast-drop": m["incast-drop"],
        "incast-factor": m["incast-drop"] / m["incast"],
        "cause": "a sender waits for its time-out",
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Where the usual mistakes lead."""
    m, size, each = measured(p, bench), p["size"], p["each"]
    return {
        "frames": {"floor": size // PAYLOAD, "kilo": frames(size / 1024 * 1000), "mtu": math.ceil(size / 1500)},
        "wire": {"no-headers": size * 8 / RATE, "bytes": wire(size) / 8},
        "share": {"one": wire(size), "machines": 2 * p["pairs"] * wire(size)},
        "hub": {"switch": m["switch"]},
        "switch": {"hub": m["hub"]},
        "hub-factor": {"wire": m["hub"] / wire(size)},
        "collisions": {"turns": m["hub"]},
        "incast-wire": {"one": wire(each), "no-headers": p["senders"] * each * 8 / RATE},
        "incast": {"dropped": m["incast-drop"]},
        "incast-drop": {"free": m["incast"]},
        "incast-factor": {"by-formula": m["incast-drop"] / (p["senders"] * wire(each))},
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    m, right = measured(p, bench), expected(p, bench)
    run = _incast(p, bench, platform__link__buffer=p.text("buffer"))
    return {
        "On the switch a message takes hardly longer than its frames occupy the wire.": 1 <= m["switch"] / right["wire"] < 1.1,
        "On the hub the time is near your fair share for all pairs.": 1 <= m["hub"] / right["share"] < 1.1,
        "a switch makes your {pairs} pairs so much faster": m["hub"] > 1.8 * m["switch"],
        "Even if every frame were sent twice, that would only double the time on the wire.": m["incast-drop"] > 2.5 * m["incast"],
        "By fair shares of the receiver's port: how long does it take at least?": 1 <= m["incast"] / right["incast-wire"] < 1.2,
        "So a short overload becomes a long silence.": (
            run["outcome"] == "completed" and m["incast-drop"] - m["incast"] > 1 and m["incast"] > 0.1
        ),
        "by its time-out, which lasts far longer than the whole transfer": m["incast-drop"] - m["incast"] > 2 * m["incast"],
        "Your two times differ by more than 3 %.": right["collide"] == "about the same" or abs(m["collisions"] / m["hub"] - 1) > 0.03,
    }
