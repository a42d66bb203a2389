"""What the ready studies come to, and every number that docs/what-ifs.md says of them.

``python tests/what_ifs.py`` runs all three studies (two minutes on two processors) and writes tests/data/what-ifs.json, which begins with
the parameters that made it. ``python tests/what_ifs.py --say`` prints what the text has to say then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from retrompi.sim import simulate
from retrompi.spec.question import Message, Question
from retrompi.studies.define import catalogue, metrics
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.define.case import PointJob, apply, evaluate
from retrompi.studies.define.scenario import Scenario
from retrompi.studies.execute import design

GOLDEN = Path(__file__).parent / "data" / "what-ifs.json"
METRICS = {
    "proxy-cost": ("latency", "bandwidth@64KiB", "peak"),
    "fast-ethernet": ("latency", "bandwidth@64KiB", "bandwidth@4MiB", "peak"),
    "nt-against-t3e": ("section", "mpi", "compute"),
}
QUICK = {"proxy-cost": (9, 12, 15), "fast-ethernet": (2, 10, 21), "nt-against-t3e": (0, 37)}
"""Points that the default suite runs again."""
DESIGNS = {"polling": (), "woken": ("winmpich.proxy_wait=event",), "none": ("winmpich.proxy=no",)}
ANATOMY_SIZES = (0, 65536)
IN_PROXIES = ("tick", "switch", "copy", "event", "library", "syscall")
Golden = dict[str, Any]


def parameters(name: str) -> dict[str, Any]:
    """What determines a study, without where it lies."""
    told = design.study(name).definition()
    base = {k: v for k, v in told["base"].items() if k in ("model", "platform", "mode", "set", "trace")}
    if "file" in base["trace"]:
        base["trace"] = {**base["trace"], "file": Path(base["trace"]["file"]).name}
    zipped = [{k: [Path(v).name if k == "trace.file" else v for v in values] for k, values in table.items()} for table in told["zip"]]
    return {"base": base, "vary": told["vary"], "zip": zipped, "set": told["set"], "metrics": list(METRICS[name])}


def row_of(name: str, point: design.StudyPoint) -> dict[str, Any]:
    """A point simulated now: its place, how it ended, and its metrics."""
    done = evaluate(PointJob(point.position, point.scenario))
    assert done.runs, done.reason
    run = done.runs[-1]
    facts = dict(run.row)
    return {
        "position": point.position,
        "axes": {k: Path(v).name if k == "trace.file" else v for k, v in point.values.items()},
        "outcome": done.outcome,
        "values": {m: metrics.parse(m).of(facts, run.points, run.ranks) for m in METRICS[name]},
    }


def anatomy(design_name: str, size: int) -> dict[str, Any]:
    """Where a WinMPICH message's time goes between machines: seconds in all, and by stage inside the proxies."""
    told = simulate.explain(Question("winmpich", "nt-pair", Message(size), "distributed", list(DESIGNS[design_name])))
    proxies = dict.fromkeys(IN_PROXIES, 0.0)
    for stage in told["stages"]:
        if stage["process"].startswith("proxy"):
            proxies[stage["stage"]] = proxies.get(stage["stage"], 0.0) + stage["seconds"]
    return {"design": design_name, "size_B": size, "seconds": told["total_s"], "in_proxies": {k: v for k, v in proxies.items() if v}}


PAIR = ("wmpi", "hpvm")


def pair_scenario(model: str) -> Scenario:
    """A long message on the pair of the paper with the cluster's network cards and Fast Ethernet."""
    changed = {"model": model, "platform": "nt-pair", "platform.host.nic_rate": "30MB/s", "platform.link.bandwidth": "100Mbps"}
    return apply(catalogue.scenario("wmpi-10base-t"), {**changed, "sizes": "4MiB"})


def pair(model: str) -> dict[str, Any]:
    """The rate of `pair_scenario`."""
    done = evaluate(PointJob(0, pair_scenario(model)))
    run = done.runs[-1]
    return {"model": model, "bandwidth@4MiB": metrics.parse("bandwidth@4MiB").of(dict(run.row), run.points, run.ranks)}


def make(jobs: int = 2) -> Golden:
    """All of it, simulated now."""
    from retrompi.studies.execute.worker_pool import WorkerPool

    out: Golden = {"made_by": "python tests/what_ifs.py", "parameters": {name: parameters(name) for name in METRICS}, "rows": {}}
    for name in METRICS:
        points = {p.position: p for p in design.points(design.study(name))}
        rows = []
        with WorkerPool(jobs) as pool:
            for position, done in pool.evaluate(PointJob(p.position, p.scenario) for p in points.values()):
                run, point = done.runs[-1], points[position]
                axes = {k: Path(v).name if k == "trace.file" else v for k, v in point.values.items()}
                values = {m: metrics.parse(m).of(dict(run.row), run.points, run.ranks) for m in METRICS[name]}
                rows.append({"position": position, "axes": axes, "outcome": done.outcome, "values": values})
        out["rows"][name] = sorted(rows, key=lambda r: r["position"])
    out["pair"] = [pair(model) for model in PAIR]
    out["anatomy"] = [anatomy(name, size) for name in DESIGNS for size in ANATOMY_SIZES]
    return out


def _lines(rows: Iterable[Any]) -> str:
    return "[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]"


def save(golden: Golden) -> None:
    """Write the golden file, a row a line."""
    parts = ['{\n"made_by": ' + json.dumps(golden["made_by"])]
    parts += ['"parameters": ' + json.dumps(golden["parameters"], indent=1)]
    for name in ("rows", "pair", "anatomy"):
        value = golden[name]
        told = _lines(value) if name != "rows" else "{\n" + ",\n".join(f"{json.dumps(k)}: {_lines(v)}" for k, v in value.items()) + "\n}"
        parts.append(f"{json.dumps(name)}: {told}")
    GOLDEN.write_text(",\n".join(parts) + "\n}\n", encoding="utf-8")


def load() -> Golden:
    """The golden file."""
    found: Golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


# -- what the text says --------------------------------------------------------------------------------------------------


def value(golden: Golden, study: str, metric: str, **axes: str) -> float:
    """The one value of a metric where the axes (the last part of their keys) are so."""
    values = set()
    for r in golden["rows"][study]:
        here = {k.rpartition(".")[2]: v for k, v in r["axes"].items()}
        if all(here[k] in (v, ABSENT) for k, v in axes.items()):  # an axis that a point does not use has no value there
            values.add(r["values"][metric])
    assert len(values) == 1, (study, metric, axes, values)
    return float(values.pop())


def rate(v: float) -> str:
    """A rate as the text writes it."""
    return f"{v / 1e6:.2f} MB/s" if v >= 1e6 else f"{v / 1e3:.0f} kB/s"


def ms(v: float) -> str:
    """A time as the text writes it."""
    return f"{v * 1e3:.1f} ms"


NAMES = {"wmpi": "WMPI", "winmpich": "WinMPICH", "hpvm": "HPVM", "craympt": "Cray MPT"}
PROXIES = {"as published, polling": ("yes", "poll"), "woken by an event": ("yes", "event"), "no proxy": ("no", "poll")}
MACHINES = (
    ("wmpi", "hub"), ("winmpich", "hub"), ("hpvm", "hub"), ("wmpi", "switch"), ("winmpich", "switch"), ("hpvm", "switch"),
)
NT = ("wmpi", "winmpich", "hpvm")
WIRES = {"hub": "10BASE-T hub", "switch": "Fast Ethernet switch"}
FILES = {4: "npb3.3.1-lu-A-4.tar.zst", 8: "npb3.3.1-lu-A-8.tar.zst", 16: "npb3.3.1-lu-A-16.tar.zst"}


def lu(golden: Golden, model: str, kind: str, compute: str, ranks: int, metric: str = "section") -> float:
    return value(golden, "nt-against-t3e", metric, model=model, kind=kind, compute=compute, file=FILES[ranks])


def said(golden: Golden) -> list[str]:
    """Every line or part of a line that docs/what-ifs.md must have."""
    return [*_proxy(golden), *_ethernet(golden), *_cray(golden)]


def _proxy(golden: Golden) -> Iterable[str]:
    def of(metric: str, proxy: tuple[str, str], bandwidth: str, mode: str = "distributed") -> float:
        return value(golden, "proxy-cost", metric, mode=mode, bandwidth=bandwidth, proxy=proxy[0], proxy_wait=proxy[1])

    for name, proxy in PROXIES.items():
        cells = [ms(of("latency", proxy, "100Mbps")), *(rate(of("bandwidth@64KiB", proxy, b)) for b in ("10Mbps", "100Mbps", "1Gbps"))]
        yield f"| {name} | " + " | ".join(cells) + " |"
    shared = {of(m, p, b, "shared") for m in ("bandwidth@64KiB",) for p in PROXIES.values() for b in ("10Mbps", "100Mbps", "1Gbps")}
    assert len(shared) == 1
    yield f"{rate(shared.pop())} at 64 KiB in all nine"
    stages: Mapping[tuple[str, int], Any] = {(a["design"], a["size_B"]): a for a in golden["anatomy"]}
    for size, label in ((0, "0 B"), (65536, "64 KiB")):
        for name, key in zip(PROXIES, DESIGNS, strict=True):
            a = stages[key, size]
            shares = [100 * a["in_proxies"].get(s, 0.0) / a["seconds"] for s in IN_PROXIES]
            yield f"| {label}, {name} | {ms(a['seconds'])} | " + " | ".join(f"{s:.1f}" for s in shares) + " |"
    polling, woken, none = PROXIES.values()
    start, big, small = (of(m, p, "100Mbps") / of(m, q, "100Mbps") for m, p, q in (
        ("latency", polling, none), ("bandwidth@64KiB", none, polling), ("bandwidth@64KiB", woken, polling)))
    yield f"{start:.1f} times the start-up"
    yield f"one {big:.0f}th of the rate"
    yield f"{small:.1f} times the rate, which is {100 * small / big:.0f} % of the rate without a proxy"
    ticks = [100 * stages["polling", size]["in_proxies"]["tick"] / stages["polling", size]["seconds"] for size in ANATOMY_SIZES]
    yield f"The tick is {ticks[0]:.0f} % of an empty message and {ticks[1]:.0f} % of a long one"


def _ethernet(golden: Golden) -> Iterable[str]:
    def of(metric: str, model: str, kind: str, bandwidth: str) -> float:
        return value(golden, "fast-ethernet", metric, model=model, kind=kind, bandwidth=bandwidth)

    for model in ("wmpi", "hpvm", "winmpich"):
        for kind in ("hub", "switch", "cable"):
            rates = [rate(of("bandwidth@4MiB", model, kind, b)) for b in ("10Mbps", "100Mbps", "10Gbps")]
            times = [ms(of("latency", model, kind, b)) for b in ("10Mbps", "100Mbps")]
            yield f"| {NAMES[model]}, {kind} | " + " | ".join([*times, *rates]) + " |"
    for row in golden["pair"]:
        yield f"{rate(row['bandwidth@4MiB'])} with {NAMES[row['model']]}"
    for model in PAIR:
        gain = of("bandwidth@4MiB", model, "switch", "100Mbps") / of("bandwidth@4MiB", model, "switch", "10Mbps")
        yield f"{NAMES[model]} {gain:.1f} times"
        share = of("bandwidth@4MiB", model, "switch", "100Mbps") / 12.5e6
        yield f"{NAMES[model]} fills {100 * share:.0f} % of the wire"


def _machine(golden: Golden, name: str, model: str, kind: str, computes: tuple[str, ...], of: str) -> str:
    """A row of the table of machines: times for each computation, then the time in MPI for the computation ``of``."""
    cells = [" – ".join(f"{lu(golden, model, kind, c, n):.0f}" for c in computes) + " s" for n in FILES]
    return f"| {name} | " + " | ".join([*cells, *(f"{lu(golden, model, kind, of, n, 'mpi'):.0f} s" for n in FILES)]) + " |"


def _cray(golden: Golden) -> Iterable[str]:
    for model, kind in MACHINES:
        yield _machine(golden, f"{NAMES[model]}, {WIRES[kind]}", model, kind, ("5337s", "9933s"), "5337s")
    yield _machine(golden, "T3E, Cray MPT", "craympt", "torus", ("199s", "1988s"), "1988s")
    yield _machine(golden, "T3E with the NT Server's processors", "craympt", "torus", ("5337s",), "5337s")
    for kind in ("hub", "switch"):
        best, slow = ({n: min(lu(golden, m, kind, c, n) for m in NT) for n in FILES} for c in ("5337s", "9933s"))
        lows = [f"{best[n] / lu(golden, 'craympt', 'torus', '1988s', n):.1f}" for n in FILES]
        highs = [f"{slow[n] / lu(golden, 'craympt', 'torus', '199s', n):.0f}" for n in FILES]
        equal = [f"{best[n] / lu(golden, 'craympt', 'torus', '5337s', n):.1f}" for n in FILES]
        yield f"| {WIRES[kind]} | " + " | ".join(f"{a} – {b}" for a, b in zip(lows, highs, strict=True)) + " | " + " | ".join(equal) + " |"
    # T(8) of the T3E is a straight line in its computation: where does it meet the best NT cluster?
    a, b = (lu(golden, "craympt", "torus", c, 8) for c in ("1988s", "5337s"))
    meets = 1988 + (min(lu(golden, m, "switch", "5337s", 8) for m in NT) - a) * (5337 - 1988) / (b - a)
    yield f"{119.3e3 / meets:.0f} Mflop/s a processor, {100 * 119.3e3 / meets / 600:.1f} % of its peak"


if __name__ == "__main__":
    if "--say" not in sys.argv:
        save(make())
    print("\n".join(said(load())))
