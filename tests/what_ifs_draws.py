"""The draws of the ready studies, and what docs/what-ifs.md says of them: intervals, and in how many draws a statement holds.

``python tests/what_ifs_draws.py [STUDY...]`` simulates them again (minutes for the first two, half an hour for the third on two processors)
and writes tests/data/what-ifs-draws.json; what is simulated is kept in a store beside it, so that an interruption loses nothing.
``--say`` prints what the text has to say then. The rules, and what the words mean, are in docs/uncertainty.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import what_ifs
from numpy.typing import NDArray

from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Message, Question
from retrompi.store import open_store
from retrompi.studies.define import metrics
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.define.case import apply
from retrompi.studies.define.scenario import Scenario
from retrompi.studies.draws.uncertainty import Ensemble, Spec, ensemble, interval
from retrompi.studies.execute import design

DRAWS_FILE = Path(__file__).parent / "data" / "what-ifs-draws.json"
LEVEL, SURVIVES = 0.90, 0.95
DRAWS = {"proxy-cost": 100, "fast-ethernet": 100, "nt-against-t3e": 10}
QUICK = {"proxy-cost": (0, 18, 25), "fast-ethernet": (0, 19, 55), "nt-against-t3e": (-6,)}
"""Places in `questions` of what the default suite draws again."""
SMALL = {"trace.sizes": "0", "trace.reps": "40", "trace.warm_up": "5"}
MIDDLE = {"trace.sizes": "64KiB", "trace.reps": "20", "trace.warm_up": "1"}
LARGE = {"trace.sizes": "4MiB", "trace.reps": "4", "trace.warm_up": "1"}
METRICS = {
    "proxy-cost": {"latency": SMALL, "bandwidth@64KiB": MIDDLE},
    "fast-ethernet": {"latency": SMALL, "bandwidth@4MiB": LARGE},
    "nt-against-t3e": {"section": {}, "mpi": {}},
}
"""Metric -> what its run is changed by: alone and with few repetitions a size gives the curve's number to 1 %, the latency of WMPI at
10 Gbit/s (the others 0.2 %); docs/uncertainty.md."""
Array = NDArray[np.float64]
Of = Callable[..., Array]
Saved = dict[str, Any]


def drawn_points(study: str) -> list[design.StudyPoint]:
    """The points that are drawn: of LU those with the fast NT processors, on the T3E with its slow and with the NT Server's."""
    points = list(design.points(design.study(study)))
    return points if study != "nt-against-t3e" else [p for p in points if p.values["trace.compute"] in ("5337s", "1988s")]


def questions(study: str) -> list[tuple[dict[str, str], str, Scenario]]:
    """(axes, metric, scenario) of all that is drawn of a study; on one machine the proxy study is one run nine times."""
    found = []
    for p in drawn_points(study):
        axes = {k: Path(v).name if k == "trace.file" else v for k, v in p.values.items()}
        found += [(axes, m, apply(p.scenario, change)) for m, change in METRICS[study].items()]
    if study == "fast-ethernet":
        for model in what_ifs.PAIR:
            found.append(({"pair": model}, "bandwidth@4MiB", apply(what_ifs.pair_scenario(model), LARGE)))
    return found


def values_of(drawn: Ensemble, metric: str) -> list[float | None]:
    """A metric in each draw, with six digits."""
    return [None if v is None else float(f"{v:.6g}") for v in drawn.values(metrics.parse(metric))]


def anatomy_of(drawn: Ensemble) -> dict[str, list[float | None]]:
    """Stage -> its share of the one-way time inside the two proxies, in each draw."""
    told: dict[str, list[float | None]] = {}
    for stage in ("tick", "switch", "copy"):
        told[stage] = []
        for outcome, stages in zip(drawn.outcomes, drawn.stages, strict=True):
            whole = sum(s["seconds"] for s in stages)
            inside = sum(s["seconds"] for s in stages if s["process"].startswith("proxy") and s["stage"] == stage)
            told[stage].append(float(f"{inside / whole:.5g}") if outcome == "completed" else None)
    return told


def make(study: str, store: Any, draws: int) -> list[Saved]:
    """The rows of a study: axes, metric, values. A draw of several points is one batch."""
    asked = questions(study)
    spec = Spec(LEVEL, draws)

    def report(done: int, total: int, what: str) -> None:
        if done % 50 == 0 or done == total:
            print(f"{study}: {done} of {total}", file=sys.stderr, flush=True)

    told = ensemble(store, [Resolved.of(s.question()) for _, _, s in asked], spec, report)
    rows = [{"axes": axes, "metric": m, "values": values_of(one, m)} for (axes, m, _), one in zip(asked, told, strict=True)]
    if study == "proxy-cost":
        messages = [Question("winmpich", "nt-pair", Message(size), "distributed") for size in what_ifs.ANATOMY_SIZES]
        for size, one in zip(what_ifs.ANATOMY_SIZES, ensemble(store, messages, spec, report), strict=True):
            rows += [{"axes": {"design": "polling", "size_B": str(size)}, "metric": k, "values": v} for k, v in anatomy_of(one).items()]
    return rows


def groups() -> dict[str, str]:
    """The joint posteriors that the models of the studies draw from: name -> when it was made."""
    from retrompi.spec import registry
    from retrompi.studies.draws import posteriors

    found = [p for m in what_ifs.NAMES for p in posteriors.at_hand(registry.model(m)) if set(what_ifs.NAMES) & p.models]
    return {p.group: str(p.about.get("date", "")) for p in sorted(found, key=lambda p: p.group)}


def load() -> Saved:
    """The saved draws: study -> {draws, posteriors, rows}."""
    found: Saved = json.loads(DRAWS_FILE.read_text(encoding="utf-8")) if DRAWS_FILE.is_file() else {}
    return found


def save(saved: Mapping[str, Any]) -> None:
    """Write the file, a row a line."""
    parts = []
    for study in what_ifs.METRICS:
        if study in saved:
            head = {k: v for k, v in saved[study].items() if k != "rows"}
            rows = ",\n".join(json.dumps(r) for r in saved[study]["rows"])
            parts.append(f"{json.dumps(study)}: {json.dumps(head)[:-1]}, \"rows\": [\n{rows}\n]}}")
    DRAWS_FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


# --- what is said --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """``words``; the ``number`` they give (None: none), shown with ``form``; in which draws they hold (None: a number alone)."""

    study: str
    words: str
    number: Callable[[Of], Array] | None = None
    holds: Callable[[Of], NDArray[np.bool_]] | None = None
    form: Callable[[float], str] = lambda v: f"{v:.3g}"


def percent(v: float) -> str:
    return f"{100 * v:.3g} %"


def factor(v: float) -> str:
    return f"{v:.2g}" if v < 10 else f"{v:.3g}"


POLL, WOKEN, NONE = what_ifs.PROXIES.values()


def _proxy(of: Of, metric: str, proxy: tuple[str, str], bandwidth: str = "100Mbps", mode: str = "distributed") -> Array:
    return of("proxy-cost", metric, mode=mode, bandwidth=bandwidth, proxy=proxy[0], proxy_wait=proxy[1])


def _late(of: Of, proxy: tuple[str, str]) -> Array:
    return _proxy(of, "latency", proxy)


def _rate(of: Of, proxy: tuple[str, str], bandwidth: str = "100Mbps") -> Array:
    return _proxy(of, "bandwidth@64KiB", proxy, bandwidth)


def _waiting_small(of: Of) -> Array:
    return (_late(of, POLL) - _late(of, WOKEN)) / (_late(of, POLL) - _late(of, NONE))


def _waiting_large(of: Of) -> Array:
    poll, woken, none = (1 / _rate(of, p) for p in (POLL, WOKEN, NONE))
    return (poll - woken) / (poll - none)


def _shared(of: Of) -> list[Array]:
    networks = ("10Mbps", "100Mbps", "1Gbps")
    return [_proxy(of, "bandwidth@64KiB", p, b, "shared") for p in what_ifs.PROXIES.values() for b in networks]


def _inside(of: Of, stage: str, size: int) -> Array:
    return of("proxy-cost", stage, design="polling", size_B=str(size))


def _net(of: Of, metric: str, model: str, bandwidth: str, kind: str = "switch") -> Array:
    return of("fast-ethernet", metric, model=model, kind=kind, bandwidth=bandwidth)


def _gain(of: Of, model: str, slow: str = "10Mbps", fast: str = "100Mbps") -> Array:
    return _net(of, "bandwidth@4MiB", model, fast) / _net(of, "bandwidth@4MiB", model, slow)


def _hub(of: Of, model: str, bandwidth: str) -> Array:
    return np.abs(_net(of, "bandwidth@4MiB", model, bandwidth, "hub") / _net(of, "bandwidth@4MiB", model, bandwidth) - 1)


def _lu(of: Of, model: str, kind: str, compute: str, ranks: int) -> Array:
    return of("nt-against-t3e", "section", model=model, kind=kind, compute=compute, file=what_ifs.FILES[ranks])


def _best(of: Of, kind: str, ranks: int) -> Array:
    return np.asarray(np.fmin.reduce([_lu(of, m, kind, "5337s", ranks) for m in what_ifs.NT]))


def _whole(of: Of, kind: str, ranks: int) -> Array:
    return _best(of, kind, ranks) / _lu(of, "craympt", "torus", "1988s", ranks)


def _equal(of: Of, kind: str, ranks: int) -> Array:
    return _best(of, kind, ranks) / _lu(of, "craympt", "torus", "5337s", ranks)


def _mflops(of: Of) -> Array:
    a, b = (_lu(of, "craympt", "torus", c, 8) for c in ("1988s", "5337s"))
    return np.asarray(119.3e3 / (1988 + (_best(of, "switch", 8) - a) * (5337 - 1988) / (b - a)))


P, E, L = what_ifs.METRICS
STATEMENTS = (
    Statement(P, "The proxy multiplies the start-up by", lambda of: _late(of, POLL) / _late(of, NONE),
              lambda of: _late(of, POLL) / _late(of, NONE) > 1.1, factor),
    Statement(P, "It divides the rate at 64 KiB by", lambda of: _rate(of, NONE) / _rate(of, POLL),
              lambda of: _rate(of, NONE) / _rate(of, POLL) > 1.1, factor),
    Statement(P, "Nearly all of what it adds to the start-up is waiting", _waiting_small, lambda of: _waiting_small(of) > 0.8, percent),
    Statement(P, "Nearly all of what it adds at 64 KiB is waiting", _waiting_large, lambda of: _waiting_large(of) > 0.8, percent),
    Statement(P, "The tick's share of an empty message", lambda of: _inside(of, "tick", 0), None, percent),
    Statement(P, "The tick's share of 64 KiB", lambda of: _inside(of, "tick", 65536), None, percent),
    Statement(P, "Copies and switches are hardly anything of 64 KiB", lambda of: _inside(of, "copy", 65536) + _inside(of, "switch", 65536),
              lambda of: _inside(of, "copy", 65536) + _inside(of, "switch", 65536) < 0.1, percent),
    Statement(P, "Woken by events it multiplies the polling proxy's rate by", lambda of: _rate(of, WOKEN) / _rate(of, POLL), None, factor),
    Statement(P, "The concept of a proxy costs less than a factor of two", lambda of: _rate(of, NONE) / _rate(of, WOKEN),
              lambda of: _rate(of, NONE) / _rate(of, WOKEN) < 2, factor),
    Statement(P, "As long as it polls, a faster network does not help", lambda of: _rate(of, POLL, "1Gbps") / _rate(of, POLL, "10Mbps"),
              lambda of: _rate(of, POLL, "1Gbps") / _rate(of, POLL, "10Mbps") < 1.1),
    Statement(P, "Without a proxy 10 Mbit/s is a bottleneck", lambda of: _rate(of, NONE) / _rate(of, NONE, "10Mbps"),
              lambda of: _rate(of, NONE) / _rate(of, NONE, "10Mbps") > 1.1),
    Statement(P, "and 1 Gbit/s gains nothing over 100 Mbit/s", lambda of: _rate(of, NONE, "1Gbps") / _rate(of, NONE),
              lambda of: _rate(of, NONE, "1Gbps") / _rate(of, NONE) < 1.1),
    Statement(P, "On one machine all nine are the same", None, lambda of: np.asarray(np.ptp(_shared(of), axis=0) == 0)),
    *(Statement(E, f"Fast Ethernet multiplies {what_ifs.NAMES[m]}'s rate at 4 MiB by", lambda of, m=m: _gain(of, m),
                lambda of, m=m: _gain(of, m) > 1.1, factor) for m in what_ifs.PAIR),
    Statement(E, "WinMPICH gains nothing", lambda of: _gain(of, "winmpich"), lambda of: _gain(of, "winmpich") < 1.1),
    *(Statement(E, f"{what_ifs.NAMES[m]}'s start-up falls by less than a tenth",
                lambda of, m=m: 1 - _net(of, "latency", m, "100Mbps") / _net(of, "latency", m, "10Mbps"),
                lambda of, m=m: 1 - _net(of, "latency", m, "100Mbps") / _net(of, "latency", m, "10Mbps") < 0.1, percent)
      for m in what_ifs.PAIR),
    *(Statement(E, f"With {what_ifs.NAMES[m]} the processors become the bottleneck: 10 Gbit/s over 100 Mbit/s",
                lambda of, m=m: _gain(of, m, "100Mbps", "10Gbps"), lambda of, m=m: _gain(of, m, "100Mbps", "10Gbps") < 1.1)
      for m in what_ifs.PAIR),
    *(Statement(E, f"{what_ifs.NAMES[m]} fills of the wire", lambda of, m=m: _net(of, "bandwidth@4MiB", m, "100Mbps") / 12.5e6, None,
                percent) for m in what_ifs.PAIR),
    Statement(E, "At 10 Mbit/s WMPI is ahead of HPVM",
              lambda of: _net(of, "bandwidth@4MiB", "wmpi", "10Mbps") / _net(of, "bandwidth@4MiB", "hpvm", "10Mbps"),
              lambda of: _net(of, "bandwidth@4MiB", "wmpi", "10Mbps") > _net(of, "bandwidth@4MiB", "hpvm", "10Mbps")),
    Statement(E, "At 100 Mbit/s HPVM is ahead of WMPI",
              lambda of: _net(of, "bandwidth@4MiB", "hpvm", "100Mbps") / _net(of, "bandwidth@4MiB", "wmpi", "100Mbps"),
              lambda of: _net(of, "bandwidth@4MiB", "hpvm", "100Mbps") > _net(of, "bandwidth@4MiB", "wmpi", "100Mbps")),
    *(Statement(E, f"A switch hardly differs from a hub for two machines, {what_ifs.NAMES[m]}",
                lambda of, m=m: np.maximum(_hub(of, m, "10Mbps"), _hub(of, m, "100Mbps")),
                lambda of, m=m: np.maximum(_hub(of, m, "10Mbps"), _hub(of, m, "100Mbps")) < 0.1, percent) for m in what_ifs.PAIR),
    *(Statement(E, f"The pair's slower processors lower {what_ifs.NAMES[m]}'s limit", lambda of, m=m: of(E, "bandwidth@4MiB", pair=m),
                lambda of, m=m: of(E, "bandwidth@4MiB", pair=m) < _net(of, "bandwidth@4MiB", m, "100Mbps", "cable") / 1.1, what_ifs.rate)
      for m in what_ifs.PAIR),
    *(Statement(L, f"Best NT runtime over T3E, {what_ifs.WIRES[kind]}, {n} ranks", lambda of, kind=kind, n=n: _whole(of, kind, n),
                lambda of, kind=kind, n=n: _whole(of, kind, n) > 1, factor) for kind in ("hub", "switch") for n in what_ifs.FILES),
    *(Statement(L, f"With equal processors, {what_ifs.WIRES[kind]}, {n} ranks", lambda of, kind=kind, n=n: _equal(of, kind, n), None,
                factor) for kind in ("hub", "switch") for n in what_ifs.FILES),
    Statement(L, "On a switch at 8 ranks the processors are the larger factor", None,
              lambda of: _equal(of, "switch", 8) ** 2 < _whole(of, "switch", 8)),
    Statement(L, "On the hub at 16 ranks runtime and network are the larger factor", None,
              lambda of: _equal(of, "hub", 16) ** 2 > _whole(of, "hub", 16)),
    Statement(L, "On the hub HPVM gains nothing from 8 to 16 ranks",
              lambda of: _lu(of, "hpvm", "hub", "5337s", 8) / _lu(of, "hpvm", "hub", "5337s", 16),
              lambda of: _lu(of, "hpvm", "hub", "5337s", 8) / _lu(of, "hpvm", "hub", "5337s", 16) < 1.1),
    Statement(L, "On a switch the best runtime does gain", lambda of: _best(of, "switch", 8) / _best(of, "switch", 16),
              lambda of: _best(of, "switch", 8) / _best(of, "switch", 16) > 1.1),
    Statement(L, "8 PCs with Fast Ethernet take 2 to 4 times as long as the T3E", lambda of: _whole(of, "switch", 8),
              lambda of: (_whole(of, "switch", 8) >= 2) & (_whole(of, "switch", 8) <= 4), factor),
    Statement(L, "Break-even: the T3E would have to compute LU at Mflop/s a processor", _mflops),
)


def golden_of(golden: what_ifs.Golden) -> Of:
    """The nominal numbers, as if they were the only draw."""

    def of(study: str, metric: str, **axes: str) -> Array:
        if "design" in axes:
            (a,) = (a for a in golden["anatomy"] if (a["design"], str(a["size_B"])) == (axes["design"], axes["size_B"]))
            return np.array([a["in_proxies"].get(metric, 0.0) / a["seconds"]])
        if "pair" in axes:
            return np.array([next(p[metric] for p in golden["pair"] if p["model"] == axes["pair"])])
        return np.array([what_ifs.value(golden, study, metric, **axes)])

    return of


def drawn_of(saved: Saved) -> Of:
    """The numbers of the draws."""

    def of(study: str, metric: str, **axes: str) -> Array:
        found = set()
        for r in saved[study]["rows"]:
            here = {k.rpartition(".")[2]: v for k, v in r["axes"].items()}
            if r["metric"] == metric and all(k in here and here[k] in (v, ABSENT) for k, v in axes.items()):
                found.add(tuple(r["values"]))
        assert len(found) == 1, (study, metric, axes, len(found))
        return np.array([np.nan if v is None else v for v in found.pop()])

    return of


def verdict(s: Statement, saved: Saved) -> tuple[int, int]:
    """In how many of how many draws a statement holds; a draw without a number does not."""
    assert s.holds is not None
    with np.errstate(all="ignore"):
        held = s.holds(drawn_of(saved))
    return int(np.sum(held)), len(held)


def survives(s: Statement, saved: Saved) -> bool:
    """Whether a statement holds in enough draws."""
    held, of = verdict(s, saved)
    return held >= SURVIVES * of


def line(s: Statement, golden: what_ifs.Golden, saved: Saved) -> str:
    """A statement's row: words, nominal number, interval, draws in which it holds, and whether it stands."""
    nominal, between = "", ""
    if s.number is not None:
        nominal = s.form(float(s.number(golden_of(golden))[0]))
        i = interval(s.number(drawn_of(saved)), LEVEL)
        between = f"{s.form(i.low)} to {s.form(i.high)}"
    held, judged = "", ""
    if s.holds is not None:
        held = "{} of {}".format(*verdict(s, saved))
        judged = "stands" if survives(s, saved) else "withdrawn"
    return f"| {s.words} | {nominal} | {between} | {held} | {judged} |"


def said(golden: what_ifs.Golden, saved: Saved) -> list[str]:
    """Every row that docs/what-ifs.md must have."""
    return [line(s, golden, saved) for s in STATEMENTS if s.study in saved]


if __name__ == "__main__":
    named = [a for a in sys.argv[1:] if not a.startswith("--")] or list(DRAWS)
    if "--say" not in sys.argv:
        for name in named:
            store = open_store(DRAWS_FILE.with_name("what-ifs-draws.db"))
            rows = make(name, store, DRAWS[name])
            save({**load(), name: {"draws": DRAWS[name], "posteriors": groups(), "rows": rows}})
    print("\n".join(said(what_ifs.load(), load())))
