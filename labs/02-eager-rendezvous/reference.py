"""Lab 02: the answers by simulation, and where the usual mistakes lead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrompi import traces
from retrompi.base.errors import InputError
from retrompi.base.translate import _
from retrompi.labs.bench import Bench, Line, TimeCurve, most
from retrompi.labs.student import Parameters, read_text
from retrompi.models.wmpi import CLASSES
from retrompi.spec import registry
from retrompi.spec.model import resolve

KIB = 1024
ROOM = {"wmpi.pool": "15 MiB"}
TWO = {"platform.host.cores": "2"}
STEPS = ["the sender asks", "the receiver finds the matching receive", "the receiver answers", "the data travel", "MPI_Send returns"]

def derive(p: Parameters) -> dict[str, str]:
    """Bytes for the traces."""
    return {"below_bytes": str(p["below"]), "above_bytes": str(p["above"])}


def _asks(p: Parameters, bench: Bench, more: dict[str, str]) -> tuple[float, float]:
    """(time with asking, time without) of the message below the machine's own boundary."""
    size = p["below"]
    return (
        bench.curve("wmpi", "shared", [size], sets=ROOM | {"wmpi.largest_class": "64 KiB"} | more)[size],
        bench.curve("wmpi", "shared", [size], sets=ROOM | more)[size],
    )


def _steps(bench: Bench, sets: dict[str, str]) -> TimeCurve:
    """Sizes from 8 KiB to 300 KiB by 2 KiB, few repetitions: the boundary stands out by a factor of ten and more."""
    return bench.curve("wmpi", "shared", [k * KIB for k in range(8, 301, 2)], sets=ROOM | sets, reps=1)


def _boundary(bench: Bench, sets: dict[str, str]) -> int:
    curve = _steps(bench, sets)
    return next(s for s in curve if curve[s + 2 * KIB] > 0.05)


def _jump(bench: Bench, at: int, sets: dict[str, str]) -> float:
    curve = bench.curve("wmpi", "shared", [at, at + 2 * KIB], sets=ROOM | sets)
    return curve[at + 2 * KIB] / curve[at]


def _exchange(size: int, bench: Bench) -> str:
    lines = [f"{me} {call} {1 - me} 0 {size} 6" for me in (0, 1) for call in ("send", "recv")]
    text = "\n".join(["0 init", *lines[:2], "0 finalize", "1 init", *lines[2:], "1 finalize", ""])
    return _ends(text, bench)


def _ends(text: str, bench: Bench) -> str:
    return str(bench.replay(traces.parse(text), "exchange", "wmpi", sets=ROOM)["outcome"])


def _late(size: int, count: int, pool: str, bench: Bench) -> str:
    args = {"ranks": 2, "size": size, "count": count}
    return str(bench.replay_generated("late_receive", args, "wmpi", sets={"wmpi.pool": pool})["outcome"])


def _cause(p: Parameters, bench: Bench) -> str:
    """The explanation that puts the boundary where it is, with the student's packets and with 128 KiB."""
    for packet in (p.text("packet"), "128 KiB"):
        at = _boundary(bench, {"wmpi.packet": packet})
        values, _ = resolve(registry.model("wmpi"), registry.platform("nt-pair"), {"wmpi.packet": packet})
        buffer = next(c for c in CLASSES if c >= values.packet + values.header)
        if at != buffer:
            raise InputError(f"with packets of {packet} the boundary is at {at} B, not at the buffer of {buffer} B", Path(__file__))
    return "it does not fit into the buffer that a largest packet takes"


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The right answers."""
    one, two = _asks(p, bench, {}), _asks(p, bench, TWO)
    at = _boundary(bench, {"wmpi.packet": p.text("packet")})
    high = p["pool"] // p["late"] + 2
    return {
        "boundary": at,
        "cause": _cause(p, bench),
        "jump": _jump(bench, at, {"wmpi.packet": p.text("packet")}),
        "price-one": one[0] - one[1],
        "price-two": two[0] - two[1],
        "steps": STEPS,
        "exchange-below": _exchange(p["below"], bench),
        "exchange-above": _exchange(p["above"], bench),
        "fits": most(1, high, lambda n: _late(p["late"], n, p.text("pool"), bench) == "completed"),
        "late-above": _late(p["above"], 3, p.text("pool"), bench),
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Where the usual mistakes lead."""
    one, two = _asks(p, bench, {}), _asks(p, bench, TWO)
    buffer = next(c for c in CLASSES if c >= p["late"])
    own = {"wmpi.packet": p.text("packet")}
    at, plain = _boundary(bench, own), _boundary(bench, {})
    return {
        "boundary": {"packet": p["packet"], "default": plain},
        "jump": {"default": _jump(bench, plain, {}), "two": _jump(bench, at, own | TWO)},
        "price-one": {"not-subtracted": one[0], "round-trip": 2 * (one[0] - one[1])},
        "price-two": {"mixed": one[1] - two[1], "not-subtracted": two[0]},
        "steps": {
            "returns-early": [STEPS[0], STEPS[4], *STEPS[1:4]],
            "answers-early": [STEPS[0], STEPS[2], STEPS[1], *STEPS[3:]],
        },
        "fits": {"no-classes": p["pool"] // p["late"], "no-header": p["pool"] // buffer},
    }


def inspect(task: str, folder: Path, p: Parameters, bench: Bench) -> str:
    """What is wrong with the repaired program; empty when it is right."""
    file = folder / "repaired.txt"
    text = read_text(file, "the repaired program")
    if len(text) > 20_000:
        raise InputError("longer than an exchange of two messages", file)
    size = str(p["above"])
    trace = traces.parse(text, name=str(file))
    if trace.ranks != 2:
        return f"the program has {trace.ranks} processes; the exchange has two"
    bench_run = bench.replay(trace, "repaired.txt", "wmpi", sets=ROOM)
    if bench_run["outcome"] != "completed":
        return f"the program ends with {bench_run['outcome']}; 'retrompi replay repaired.txt' says who waits for whom"
    ranks = bench.store.ranks(bench_run["id"])
    if any(r["bytes_sent"] != p["above"] or r["bytes_received"] != p["above"] for r in ranks):
        return f"both processes must send {size} B to the other, and receive as much"
    small = bench.replay(trace, "repaired.txt", "wmpi", sets={"wmpi.pool": "1 MiB", "wmpi.largest_class": "256 B"})
    if small["outcome"] != "completed":
        return "it still relies on a buffer: it does not end when nothing is buffered"
    return ""


def _write(folder: Path, p: Parameters, first: str, then: str) -> None:
    n = p["above"]
    zero = ["0 init", f"0 {first} 1 0 {n} 6", f"0 {then} 1 0 {n} 6", "0 finalize"]
    one = ["1 init", f"1 recv 0 0 {n} 6", f"1 send 0 0 {n} 6", "1 finalize"]
    (folder / "repaired.txt").write_text("\n".join([*zero, *one]) + "\n", encoding="utf-8")


def solve(folder: Path, p: Parameters, bench: Bench) -> None:
    """Process 1 receives first."""
    _write(folder, p, "send", "recv")


def wrong(folder: Path, p: Parameters, bench: Bench) -> None:
    """Both receive first: it hangs as well."""
    _write(folder, p, "recv", "send")


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    one, two = _asks(p, bench, {}), _asks(p, bench, TWO)
    own = ROOM | {"wmpi.packet": p.text("packet")}
    at = _boundary(bench, {"wmpi.packet": p.text("packet")})
    near = bench.curve("wmpi", "shared", [at, at + 2 * KIB], sets=own)
    plain = bench.curve("wmpi", "shared", [256 * KIB, 512 * KIB, 1024 * KIB, 4096 * KIB], sets=ROOM)
    peak = bench.curve("wmpi", "shared", [KIB << k for k in range(9)], sets=ROOM).number("peak_size")
    return {
        "less than two milliseconds, before the time jumps to more than a tenth of a second": near[at] < 0.002 < 0.1 < near[at + 2 * KIB],
        "With one processor, a rendezvous costs about a tenth of a second.": 0.09 < one[0] - one[1] < 0.13,
        "The result is below a millisecond": 0 < two[0] - two[1] < 0.001,
        "the rendezvous costs no more than its two short messages: less than a tenth of a millisecond": two[0] - two[1] < 0.0001,
        "So every message loses most of a quantum of 120 ms": one[0] - one[1] > 0.9 * 0.120,
        "where the model has 120 ms": abs(plain[512 * KIB] - 0.120) < 0.001,
        "where the model's increases by the time of the copies": plain[4096 * KIB] > plain[1024 * KIB] > plain[512 * KIB],
        "since the model's bandwidth has its peak before 256 K": peak < 256 * KIB,
        "It is the size of a buffer.": at in CLASSES and at > p["packet"],
        "The original machine sends this size eagerly": one[1] < 0.02,
        "The cache has 256 K in both of your runs. Did the jump stay where it was?": at != 256 * KIB,
        "Rendezvous messages need no memory in the pool.": (
            _late(p["above"], 3, "15 MiB", bench) == _late(p["above"], 3, p.text("pool"), bench)
        ),
    }


def curves(p: Parameters, bench: Bench | None = None) -> list[Line]:
    """What the report draws."""
    sizes = [k * KIB for k in (4, 8, 16, 20, 32, 64, 68, 128, 192, 256, 260, 320, 384, 448, 512, 1024)]
    return [
        Line(_("WMPI as it was"), "wmpi", "shared", sizes, ROOM),
        Line(_("packets of {size}").format(size=p.text("packet")), "wmpi", "shared", sizes, ROOM | {"wmpi.packet": p.text("packet")}),
        Line(_("two processors"), "wmpi", "shared", sizes, ROOM | TWO),
    ]
