"""The layers below MPI: raw TCP, GM, EUIH. Hosts and networks of the library are fitted to their published curves, and to nothing else.

``validate/layers/NAME.toml`` states a group of curves measured on the same machines: which rows of which file, the model and platform that
simulate them, and the values that are free, each inside the range that its own file gives. A fit writes them to ``NAME.fit.toml`` beside
the host or the network, or to the model's ``fit.toml``.

    found = fit("turner2002-pc")        # nothing is written
    found.write()
    rows = judge("turner2002-pc")       # a row a curve: median and largest error, where the drawing is fine enough to tell
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.files import read_text
from retrompi.papers.calibrate import Free, add_to_fit

__all__ = ["FINE", "Curve", "Fit", "Group", "Owner", "Point", "curve_rows", "evidence", "fit", "fit_file", "group", "judge", "limited",
           "names", "owner", "points", "span", "times"]  # fmt: skip

FINE = 0.05
"""A point judges if the grid of the drawing is at most this share of its value: the error that is to be shown."""
SIZES = 26
"""Sizes of a curve that a fit sees."""
STARTS = 4
STEPS = 25
LINEAR = 0.05
"""Residuals beyond this count linearly: the median is to be small, not the largest error of a curve whose shape a mechanism misses."""
REPETITIONS = 1
Progress = Callable[[int, int, str], None]
_TABLE = "period/evidence.csv"


@dataclass(frozen=True, slots=True)
class Point:
    """One way of ``size`` bytes takes ``time`` s; ``grid`` is the resolution of the drawing as a share of the value."""

    size: int
    time: float
    grid: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One published curve and what simulates it. ``latency``: the row of evidence.csv that has its latency, or ""."""

    name: str
    title: str
    model: str
    platform: str
    sets: tuple[str, ...]
    points: tuple[Point, ...]
    latency: tuple[float, float] | None
    missing: str

    @property
    def judged(self) -> tuple[Point, ...]:
        """The points whose drawing is fine enough."""
        return tuple(p for p in self.points if p.grid <= FINE)


@dataclass(frozen=True, slots=True)
class Group:
    """Curves that share hosts, and what is free in them: ``OWNER.KEY``, a host's, a network's or a model's."""

    name: str
    title: str
    free: tuple[str, ...]
    curves: tuple[Curve, ...]


def _folder() -> Path:
    return paths.validate_dir() / "layers"


def names() -> list[str]:
    """The groups of curves."""
    return sorted(f.stem for f in _folder().glob("*.toml"))


def group(name: str) -> Group:
    """The group called ``name``. Raises UsageError for an unknown one, InputError for a broken file."""
    if name not in names():
        raise UsageError(f"no layers '{name}'{nearest(name, names())}", code="unknown-name")
    file = _folder() / f"{name}.toml"
    _, given = toml_text.read(file, "layers")
    try:
        curves = tuple(_curve(c) for c in given["curve"])
        return Group(name, given["title"], tuple(given["free"]), curves)
    except KeyError as error:
        raise InputError(f"{error} is missing", file, code="missing-key") from None


def _curve(c: Mapping[str, Any]) -> Curve:
    row = evidence()[c["latency"]] if "latency" in c else None
    latency = None
    if row is not None:
        scale = units.parse(f"1 {row['unit']}", "s")
        value, low, high = (float(row[k]) * scale for k in ("value", "low", "high"))
        latency = value, (high - low) / 2 / value
    return Curve(c["name"], c["title"], c["model"], c["platform"], tuple(c.get("set", ())), points(c["file"], c["where"]), latency,
                 c.get("missing", ""))  # fmt: skip


@cache
def evidence() -> dict[str, dict[str, str]]:
    """The rows that a fit may read, by id."""
    rows = csv.DictReader(read_text(paths.reference_dir() / _TABLE).splitlines())
    return {r["id"]: r for r in rows if r["use"] == "calibrate"}


def points(file: str, where: Mapping[str, str]) -> tuple[Point, ...]:
    """The points of ``validate/reference/period/FILE`` in the rows that ``where`` selects, by size, without those at zero.

    Columns: ``bytes`` (or ``bytes_approx``); ``mbps`` (10^6 b/s) or ``value`` with ``unit`` (time_us, MB/s); ``plus_minus`` likewise.
    """
    found = []
    for row in csv.DictReader(read_text(next(paths.papers_dir().glob(f"*/curves/{file}"))).splitlines()):
        if any(row[k] != v for k, v in where.items()):
            continue
        size = int(row.get("bytes") or row["bytes_approx"])
        value, grid = float(row.get("mbps") or row["value"]), float(row["plus_minus"])
        if value <= 0:
            continue
        unit = row.get("unit", "mbps")
        time = value * 1e-6 if unit == "time_us" else size / (value * (1e6 if unit == "MB/s" else 125e3))
        if time > 0:
            found.append(Point(size, time, grid / value))
    if not found:
        raise UsageError(f"no rows {dict(where)} in {file}", code="no-claims")
    return tuple(sorted(found, key=lambda p: p.size))


# --- simulation --------------------------------------------------------------------------------------------------------------------


def times(curve: Curve, sizes: Iterable[int], sets: Sequence[str] = ()) -> dict[int, float]:
    """Size -> one-way time (s), simulated: half a round trip in the steady state, as NetPIPE and mpptest report it."""
    from retrompi.sim import simulate
    from retrompi.spec.question import Question, pingpong

    work = pingpong(sorted(set(sizes)), REPETITIONS, 1)
    asked = Question(curve.model, curve.platform, work, "distributed", [*curve.sets, *sets], idle_overrides=True)
    return {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in simulate.benchmark(asked)}


def judge(name: str) -> list[dict[str, Any]]:
    """A row a curve: points that judge, median and largest error (simulated / published - 1, absolute), where the largest is, latency."""
    rows = []
    for c in group(name).curves:
        got = times(c, [*(p.size for p in c.judged), 8])
        errors = [(abs(got[p.size] / p.time - 1), p) for p in c.judged]
        worst, at = max(errors, key=lambda e: e[0])
        rows.append({
            "group": name, "curve": c.name, "title": c.title, "model": c.model, "platform": c.platform, "points": len(errors),
            "median": median(e for e, _ in errors), "largest": worst, "largest_at_B": at.size,
            "latency_us": got[8] * 1e6, "published_latency_us": c.latency[0] * 1e6 if c.latency else None, "missing": c.missing,
        })  # fmt: skip
    return rows


def curve_rows(name: str) -> list[dict[str, Any]]:
    """Every point of every curve: group, curve, size_B, simulated_us, published_us, grid (a share), judges."""
    rows = []
    for c in group(name).curves:
        got = times(c, (p.size for p in c.points))
        rows += [{"group": name, "curve": c.name, "size_B": p.size, "simulated_us": got[p.size] * 1e6, "published_us": p.time * 1e6,
                  "grid": p.grid, "judges": p.grid <= FINE} for p in c.points]  # fmt: skip
    return rows


# --- fits --------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owner:
    """Where a free value lives: ``kind`` host, network or model, and the key of ``--set``."""

    kind: str
    name: str
    key: str
    option: str


def owner(path: str) -> Owner:
    """Whose value ``path`` is: ``p4-1800.interrupt``, ``ge-ga620.card.nic_rate``, ``euih.rate``. Raises UsageError for no one's."""
    from retrompi.spec import machines, registry

    name, _, key = path.partition(".")
    if name in machines.host_names():
        return Owner("host", name, key, f"platform.host.{key}")
    if name in machines.network_names():
        table, _, of = key.partition(".")
        return Owner("network", name, key, f"platform.{'link' if table == 'link' else 'host'}.{of}")
    registry.model(name)
    return Owner("model", name, key, path)


def span(path: str, o: Owner) -> Free:
    """The free value with the range of its own file. Raises UsageError if it states none, or does not say that it is fitted."""
    from retrompi.spec import machines, registry

    q: Any
    if o.kind == "model":
        q = registry.model(o.name).params()[o.key]
        text, fitted = q.default, q.fitted
    else:
        q = (machines.host(o.name) if o.kind == "host" else machines.network(o.name)).quantities[o.key]
        text, fitted = q.text, True
    if q.low is None or q.high is None or not fitted:
        raise UsageError(f"'{path}' is to be fitted but states no range, or another source")
    return Free(path, q.unit, q.low, q.high, text)


@dataclass
class Fit:
    """The outcome of a fit of one group: ``values`` rows parameter, value, low, high, note."""

    group: str
    seed: int
    evaluations: int = 0
    values: list[dict[str, Any]] = field(default_factory=list)

    def write(self) -> list[Path]:
        """Writes the values beside their hosts, networks and models; values there that this fit does not have stay. Returns the files."""
        files: dict[Path, dict[str, str]] = {}
        models: dict[Path, str] = {}
        for row in self.values:
            o = owner(row["parameter"])
            file = fit_file(o)
            files.setdefault(file, {})[o.key] = row["value"]
            if o.kind == "model":
                models[file] = o.name
        for file, values in files.items():
            meta = {"seed": self.seed, "evaluations": self.evaluations, "layers": [self.group]}
            add_to_fit(file, models.get(file, "fit"), values, meta, "retrompi layers --fit")
        return sorted(files)


def fit_file(o: Owner) -> Path:
    """Where a fit of the value is written."""
    from retrompi.spec import machines, registry

    if o.kind == "model":
        return registry.model(o.name).folder() / "fit.toml"
    path = (machines.host(o.name) if o.kind == "host" else machines.network(o.name)).path
    return path.with_name(f"{path.stem}.fit.toml")


def _seen(curve: Curve) -> list[Point]:
    """The points that a fit sees: `SIZES` of them, spread over the sizes by their logarithms, and the published latency at 8 B.

    NetPIPE measures every size and three bytes less and more; only the middle of such three is seen, whose data are aligned.
    """
    import numpy as np

    sizes = [p.size for p in curve.points]
    beside = {s for s in sizes if (s - 3 in sizes) != (s + 3 in sizes)} if len(sizes) > 100 else set()
    usable = [p for p in curve.points if p.grid < 0.5 and p.size > 0 and p.size not in beside]
    wanted = np.geomspace(usable[0].size, usable[-1].size, SIZES)
    chosen = {min(usable, key=lambda p, w=w: abs(np.log(p.size / w))).size for w in wanted}  # type: ignore[misc]
    found = list({p.size: p for p in usable if p.size in chosen}.values())
    if curve.latency is not None:
        found.append(Point(8, curve.latency[0], curve.latency[1]))
    return found


def fit(name: str, *, seed: int = 1, progress: Progress | None = None) -> Fit:
    """Fits the free values of a group to its curves: least squares of the logarithms of simulated / published, in units of `FINE` and the
    drawing's grid, from the middle of the ranges and from seeded starts. Writes nothing. Raises UsageError for an unknown group.
    """
    import numpy as np
    from scipy.optimize import least_squares

    what = group(name)
    owners = {path: owner(path) for path in what.free}
    free = [span(path, owners[path]) for path in what.free]
    seen = {c.name: _seen(c) for c in what.curves}
    mine = {c.name: [f for f in free if _belongs(owners[f.key], c)] for c in what.curves}
    known: dict[tuple[str, tuple[str, ...]], dict[int, float]] = {}
    done = Fit(name, seed)

    def shown(x: Any) -> dict[str, str]:
        return limited(what, owners, {f.key: f.show(float(at)) for f, at in zip(free, x, strict=True)})

    def residuals(x: Any) -> Any:
        at = shown(x)
        out: list[float] = []
        for c in what.curves:
            sets = tuple(f"{owners[f.key].option}={at[f.key]}" for f in mine[c.name])
            if (c.name, sets) not in known:
                known[c.name, sets] = times(c, (p.size for p in seen[c.name]), sets)
                done.evaluations += 1
            got = known[c.name, sets]
            scale = 1 / np.sqrt(len(seen[c.name]))  # a curve is one measurement, however many points it has
            out += [scale * float(np.log(got[p.size] / p.time) / np.hypot(FINE, p.grid)) for p in seen[c.name]]
        if progress is not None:
            progress(min(done.evaluations, 10**6), 10**6, name)
        return np.array(out)

    draw = np.random.default_rng(seed)
    starts = [np.full(len(free), 0.5), *(draw.uniform(0.1, 0.9, len(free)) for _ in range(STARTS - 1))]
    law: dict[str, Any] = {"bounds": (0, 1), "loss": "soft_l1", "f_scale": LINEAR, "max_nfev": STEPS}
    found = [least_squares(residuals, s, diff_step=0.02, x_scale=0.3, **law) for s in starts]
    best = min(found, key=lambda f: float(f.cost))
    near = np.clip(best.x, 1e-6, 1 - 1e-6)
    finer = least_squares(residuals, near, diff_step=0.005, x_scale=0.1, **law)
    if finer.cost < best.cost:
        best = finer
    for f, x in zip(free, best.x, strict=True):
        value, own = shown(best.x)[f.key], f.show(float(x))
        edge = "as fast as the host's bus" if value != own else "at the edge of its range" if x < 1e-3 or x > 1 - 1e-3 else ""
        done.values.append({"parameter": f.key, "value": value, "low": f.show(0), "high": f.show(1), "note": edge})
    return done


def limited(what: Group, owners: Mapping[str, Owner], values: Mapping[str, str]) -> dict[str, str]:
    """The free values, a card's rates at most those of the buses of its hosts, as `machines.compose` has them."""
    from retrompi.spec import composition, machines

    found = dict(values)
    for path, o in owners.items():
        if o.kind == "network" and o.key in ("card.nic_rate", "card.nic_rate_in"):
            made = (composition.parse(c.platform) for c in what.curves)
            hosts = {name for m in made if m.network == o.name for name, _ in m.terms}
            buses = [values.get(f"{h}.bus_rate") or machines.host(h).quantities["bus_rate"].text for h in sorted(hosts)]
            found[path] = min(values[path], *buses, key=lambda text: units.parse(text, "B/s"))
    return found


def _belongs(o: Owner, c: Curve) -> bool:
    from retrompi.spec import composition

    if o.kind == "model":
        return o.name == c.model.partition(":")[0]
    made = composition.parse(c.platform)
    return o.name == made.network if o.kind == "network" else o.name in {n for n, _ in made.terms}
