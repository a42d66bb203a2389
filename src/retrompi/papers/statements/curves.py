"""Measured curves as evidence: the ``[[curve]]`` and ``[[fit]]`` tables of a paper's folder, or of a model's ``evidence.toml``.

    for curve in of(find_paper("gropp-lusk-1994")):
        got = simulated(curve, sizes=[8, 1024])        # size -> one-way time, s

A curve says what was measured (its points) and what simulates it. ``blind = true``: the published curve is kept apart; it is simulated for
the claims about it and not judged itself. ``validate/papers/README.md`` has the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.papers.statements.claims import USES
from retrompi.papers.statements.curve_points import FORMATS, MEGABITS, CurvePoint, PointSource, points
from retrompi.papers.statements.metrics import FITTED, PREDICTED, SAME
from retrompi.papers.statements.tables import line_of, text_of
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, pingpong

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper

__all__ = ["FINE", "GRID", "CurvePoint", "FitPlan", "PaperCurve", "by_name", "fits_of", "inspect_curves", "of", "question", "read",
           "simulate_times"]

FINE = 0.05
"""A point judges if its error is at most this share of its value, or what the curve states: the error that is to be shown."""
GRID = tuple(sorted({1, 2, *(n << k for k in range(23) for n in (2, 3) if n << k <= 8 << 20)}))
"""The sizes at which a curve without points is simulated unless it names its own: those of NetPIPE, 1 B to 8 MiB."""
REPETITIONS, WARM_UP = 1, 1
LARGEST = SAME - 1
"""The largest error of a point, "almost the same", if the curve states none."""
KEYS = ("name", "title", "file", "where", "format", "series", "megabit", "model", "platform", "placement", "set", "error", "tolerance",
        "largest", "use", "hold_out", "layer_below", "latency", "missing", "blind", "sizes", "repetitions")
FIT_KEYS = ("name", "title", "free", "curves", "claims")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class PaperCurve:
    """One measured curve and what simulates it: the half round trip of a PingPong, after ``WARM_UP`` exchanges, as benchmarks report it.

    ``layer_below``: the curve of the layer below it, or ""; ``latency``: (time of 8 B in s, its error as a share) printed beside the curve;
    ``missing``: the mechanism that the simulation lacks. ``tolerance`` is for the median error of its points, ``largest`` for the largest.
    """

    name: str
    title: str
    model: str
    platform: str
    placement: str = "distributed"
    sets: tuple[str, ...] = ()
    use: str = "validate"
    source: PointSource | None = None
    hold_out: str | tuple[int, ...] = ""
    tolerance: float = PREDICTED
    largest: float = LARGEST
    fine: float = FINE
    layer_below: str = ""
    latency: tuple[float, float] | None = None
    missing: str = ""
    sizes: tuple[int, ...] = ()
    repetitions: int = REPETITIONS
    file: Path | None = None
    """The file that describes it; ``line`` is that of its ``[[curve]]``."""
    line: int | None = None

    @property
    def blind(self) -> bool:
        """Whether its published points are kept apart."""
        return self.source is None

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """The published points by size, () of a blind curve. Raises InputError with file and line."""
        return () if self.source is None else points(self.source)

    @property
    def grid(self) -> tuple[int, ...]:
        """The sizes (B) at which it is simulated whatever the claims about it ask: those of its points, or its own, or `GRID`."""
        return tuple(sorted({p.size for p in self.points} | set(self.sizes))) or GRID

    @property
    def held_out(self) -> tuple[CurvePoint, ...]:
        """The points that a fit does not see though the curve calibrates."""
        if self.use != "calibrate" or not self.hold_out:
            return ()
        if self.hold_out == "alternate":
            sizes = sorted({p.size for p in self.points})
            held: Iterable[int] = sizes[1::2]
        else:
            held = self.hold_out  # type: ignore[assignment]
        kept = frozenset(held)
        return tuple(p for p in self.points if p.size in kept)

    @property
    def seen(self) -> tuple[CurvePoint, ...]:
        """The points that are not held out."""
        held = {p.size for p in self.held_out}
        return tuple(p for p in self.points if p.size not in held)

    def judging(self, among: Sequence[CurvePoint]) -> tuple[CurvePoint, ...]:
        """Those of ``among`` that are exact enough to judge."""
        return tuple(p for p in among if p.error <= self.fine)


@dataclass(frozen=True)
class FitPlan:
    """A fit of a paper: its free values (``MODEL.param``, ``HOST.key``, ``NETWORK.card.key``), and the curves and claims it is fitted
    to."""

    name: str
    title: str
    free: tuple[str, ...]
    curves: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    file: Path | None = None
    line: int | None = None


def by_name(name: str, among: Iterable[PaperCurve]) -> PaperCurve:
    """The curve called ``name``. Raises UsageError."""
    known = {c.name: c for c in among}
    if name not in known:
        raise UsageError(f"no curve '{name}'{nearest(name, known)}", code="unknown-name")
    return known[name]


# --- reading -----------------------------------------------------------------------------------------------------------------------


class _Table:
    """Entry ``number`` of the ``[[kind]]`` tables of ``file``; its errors name the line of the key."""

    def __init__(self, given: Any, kind: str, number: int, file: Path, valid: Sequence[str]) -> None:
        self.given, self.kind, self.number, self.file = given, kind, number, file
        if not isinstance(given, Mapping):
            raise InputError(f"'{kind}' is not a table; write [[{kind}]]", file, code="bad-value")
        for key in given:
            if key not in valid:
                raise self.fail(f"unknown key '{key}'{nearest(key, valid, 40)}", key, "unknown-key")
        name = self.text("name")
        if not _NAME.fullmatch(name) or len(name) > 60:
            raise self.fail(f"the name '{name[:60]}' is not of lower-case letters, digits and single hyphens", "name", "bad-name")

    def line(self, key: str = "") -> int | None:
        """The line of ``key`` in this entry, or of its head."""
        try:
            return line_of(text_of(self.file), key, self.kind, self.number)
        except InputError:
            return None

    def fail(self, message: str, key: str = "", code: str = "bad-value") -> InputError:
        name = self.given.get("name")
        which = f"'{name[:60]}'" if isinstance(name, str) else str(self.number + 1)
        return InputError(f"[[{self.kind}]] {which}: {message}", self.file, self.line(key), code=code)

    def text(self, key: str, default: str | None = None) -> str:
        if key not in self.given and default is not None:
            return default
        found = self.given.get(key)
        if key not in self.given:
            raise self.fail(f"'{key}' is missing", code="missing-key")
        if not isinstance(found, str) or not (found.strip() or default == ""):
            raise self.fail(f"'{key}' is not a text", key)
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.given.get(key, [])
        if not isinstance(found, list) or not all(isinstance(v, str) for v in found):
            raise self.fail(f"'{key}' is not a list of texts", key)
        return tuple(found)

    def share(self, key: str) -> float | None:
        """A share of a value, above 0 and at most 1; None without it."""
        if key not in self.given:
            return None
        found = self.given[key]
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1:
            raise self.fail(f"{key} is {found!r}; a share of the value such as 0.05 is right", key, "out-of-range")
        return float(found)

    def one_of(self, key: str, valid: Sequence[str], default: str) -> str:
        found = self.text(key, default)
        if found not in valid:
            raise self.fail(f"{key} is '{found}'{nearest(found, valid)}", key, "unknown-name")
        return found

    def flag(self, key: str) -> bool:
        found = self.given.get(key, False)
        if not isinstance(found, bool):
            raise self.fail(f"{key} is true or false", key)
        return found

    def sizes(self, key: str) -> tuple[int, ...]:
        """A list of sizes; ``A..B`` alone is NetPIPE's between them, and 0 where A is 0. () without any."""
        if key not in self.given:
            return ()
        try:
            ends = re.fullmatch(r"([^.,:]+)\.\.([^.,:]+)", str(self.given[key]))
            if ends is None:
                return tuple(sorted(units.parse_sizes(self.given[key])))
            low, high = units.parse_sizes([ends[1], ends[2]])
            if low > high:
                raise UsageError(f"'{ends[0]}' is descending; write the smaller size first", code="bad-size")
            return tuple(sorted({low, high, *(s for s in GRID if low <= s <= high)}))
        except UsageError as error:
            raise self.fail(str(error), key, error.code) from None


def read(
    data: Mapping[str, Any], file: Path, *, model: str = "", platform: str = ""
) -> tuple[tuple[PaperCurve, ...], tuple[FitPlan, ...], list[InputError]]:
    """The ``curve`` and ``fit`` tables of ``data``, which was read from ``file``, and what is wrong with the others, with file and line.

    Files of points are beside ``file`` and not opened yet. ``model`` and ``platform`` stand in where a curve names none.
    """
    given = {kind: data.get(kind, []) for kind in ("curve", "fit")}
    problems: list[InputError] = []
    for kind, entries in given.items():
        if not isinstance(entries, list | tuple):
            problems.append(InputError(f"'{kind}' is not a list of tables; write [[{kind}]]", file, code="bad-value"))
            given[kind] = []
    curves: dict[str, PaperCurve] = {}
    fits: dict[str, FitPlan] = {}
    for i, entry in enumerate(given["curve"]):
        try:
            t = _Table(entry, "curve", i, file, KEYS)
            c = _curve(t, model, platform)
            if c.name in curves:
                raise t.fail("another curve has this name", "name", "duplicate-name")
            curves[c.name] = c
            if c.source is not None and not c.source.file.is_file():
                problems.append(t.fail(f"there is no file '{t.text('file')}' in the folder of {file.name}", "file", "not-found"))
        except InputError as error:
            problems.append(error)
    for i, entry in enumerate(given["curve"]):
        below = entry.get("layer_below") if isinstance(entry, Mapping) else None
        if isinstance(below, str) and below not in curves and isinstance(entry.get("name"), str):
            problems.append(_Table(entry, "curve", i, file, (*KEYS, *entry)).fail(f"layer_below is '{below}'{nearest(below, curves)}",
                                                                                 "layer_below", "unknown-name"))
    for i, entry in enumerate(given["fit"]):
        try:
            t = _Table(entry, "fit", i, file, FIT_KEYS)
            plan = _fit(t, curves)
            if plan.name in fits:
                raise t.fail("another fit has this name", "name", "duplicate-name")
            fits[plan.name] = plan
        except InputError as error:
            problems.append(error)
    return tuple(curves.values()), tuple(fits.values()), problems


def of(paper: Paper) -> tuple[PaperCurve, ...]:
    """The curves of a paper, in the order of its ``paper.toml``. Raises InputError for a wrong one."""
    return _read_all(paper)[0]


def fits_of(paper: Paper) -> tuple[FitPlan, ...]:
    """The fits of a paper; as `of`."""
    return _read_all(paper)[1]


def _read_all(paper: Paper) -> tuple[tuple[PaperCurve, ...], tuple[FitPlan, ...]]:
    if not paper.curves and not paper.fits:
        return (), ()
    found, fits, problems = read({"curve": paper.curves, "fit": paper.fits}, paper.folder / "paper.toml")
    for problem in problems:
        raise problem
    return found, fits


def inspect_curves(paper: Paper) -> list[InputError]:
    """All that is wrong with the curves and fits of a paper at hand, their points and the names that they use, with file and line."""
    found, _, problems = read({"curve": paper.curves, "fit": paper.fits}, paper.folder / "paper.toml")
    for curve in found:
        try:
            if curve.source is None or curve.source.file.is_file():
                _ = curve.points
        except InputError as error:
            problems.append(error)
        try:
            Resolved.of(question(curve, [8]))
        except UsageError as error:
            problems.append(InputError(f"[[curve]] '{curve.name}': {error}", curve.file, curve.line, code=error.code))
        except InputError as error:
            problems.append(error)
    return problems


def _curve(t: _Table, model: str, platform: str) -> PaperCurve:
    blind = t.flag("blind")
    of_points = [
        k for k in ("file", "where", "format", "series", "megabit", "error", "hold_out", "use", "tolerance", "largest") if k in t.given
    ]
    if blind and of_points:
        raise t.fail(f"a blind curve has no '{of_points[0]}': its points are kept apart", of_points[0], "unused-option")
    use = t.one_of("use", [u for u in USES if u != "exclude"], "validate")
    error = t.share("error")
    tolerance = t.share("tolerance") or max(FITTED if use == "calibrate" else PREDICTED, error or 0)
    runs = t.given.get("repetitions", REPETITIONS)
    if isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs <= 1000:
        raise t.fail(f"repetitions is {runs!r}; a number from 1 to 1000 is right", "repetitions", "out-of-range")
    return PaperCurve(
        name=t.text("name"), title=t.text("title"), model=t.text("model", model or None), platform=t.text("platform", platform or None),
        placement=t.text("placement", "distributed"), sets=t.texts("set"), use="context" if blind else use,
        source=None if blind else _source(t, error), hold_out=_hold_out(t, use), tolerance=tolerance,
        largest=t.share("largest") or max(LARGEST, tolerance), fine=max(FINE, error or 0), layer_below=t.text("layer_below", ""),
        latency=_latency(t), missing=t.text("missing", ""), sizes=t.sizes("sizes"), repetitions=runs, file=t.file, line=t.line(),
    )


def _source(t: _Table, error: float | None) -> PointSource:
    name = t.text("file")
    file = t.file.parent / name
    if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
        raise t.fail(f"file is '{name}'; a file in the folder of {t.file.name} is right, such as curves/{Path(name).name}", "file")
    where = t.given.get("where", {})
    if not isinstance(where, Mapping) or not all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in where.values()):
        raise t.fail('where is not a table of columns and values, such as { figure = "1" }', "where")
    megabit = t.given.get("megabit")
    if megabit not in (None, *MEGABITS):
        raise t.fail(f"megabit is {megabit!r}; 1000000 or 1048576 bits are right", "megabit", "out-of-range")
    form = t.one_of("format", FORMATS, "csv") if "format" in t.given else None
    return PointSource(file, tuple((str(k), str(v)) for k, v in where.items()), error, megabit, t.text("series", "") or None, form)


def _hold_out(t: _Table, use: str) -> str | tuple[int, ...]:
    given = t.given.get("hold_out", "")
    if given in ("", "alternate"):
        held: str | tuple[int, ...] = str(given)
    elif isinstance(given, list):
        held = t.sizes("hold_out")
    else:
        raise t.fail('hold_out is "alternate" or a list of sizes', "hold_out")
    if held and use != "calibrate":
        raise t.fail(f"no fit sees a curve of use {use}: hold_out is for one of use calibrate", "hold_out", "unused-option")
    return held


def _latency(t: _Table) -> tuple[float, float] | None:
    """``"120 us +- 5 us"``: the printed time of 8 B and its error as a share; without an error, `FITTED`."""
    if "latency" not in t.given:
        return None
    value, _, spread = t.text("latency").replace("\u00b1", "+-").partition("+-")
    try:
        time = units.parse(value.strip(), "s")
        error = units.parse(spread.strip(), "s") / time if spread else FITTED
    except (UsageError, ZeroDivisionError) as wrong:
        raise t.fail(f"latency: {wrong}; a time such as 120 us +- 5 us is right", "latency", "bad-unit") from None
    if time <= 0 or error <= 0:
        raise t.fail("latency: a time above 0 is right", "latency", "out-of-range")
    return time, error


def _fit(t: _Table, curves: Mapping[str, PaperCurve]) -> FitPlan:
    plan = FitPlan(t.text("name"), t.text("title", t.text("name")), t.texts("free"), t.texts("curves"), t.texts("claims"), t.file, t.line())
    if not plan.free:
        raise t.fail("nothing is free; name values as MODEL.param, HOST.key or NETWORK.card.key", "free", "missing-key")
    if not plan.curves and not plan.claims:
        raise t.fail("it has neither curves nor claims to fit to", code="missing-key")
    for key in ("free", "curves", "claims"):
        again = next((v for v in getattr(plan, key) if getattr(plan, key).count(v) > 1), None)
        if again is not None:
            raise t.fail(f"'{again}' is twice in {key}", key, "duplicate-name")
    for name in plan.curves:
        if name not in curves:
            raise t.fail(f"no curve '{name}'{nearest(name, curves)}", "curves", "unknown-name")
        if curves[name].use != "calibrate":
            what = "blind" if curves[name].blind else f"of use {curves[name].use}"
            raise t.fail(f"the curve '{name}' is {what}: a fit sees curves of use calibrate alone", "curves", "wrong-kind")
    return plan


# --- simulation --------------------------------------------------------------------------------------------------------------------


def question(curve: PaperCurve, sizes: Iterable[int], sets: Sequence[str] = ()) -> Question:
    """The run that simulates the curve at ``sizes`` (B), with further overrides."""
    work = pingpong(sorted(set(sizes)), curve.repetitions, WARM_UP)
    # A fit may free what these sizes do not use; what the author sets is used, or it is a mistake.
    return Question(curve.model, curve.platform, work, curve.placement, [*curve.sets, *sets], idle_overrides=bool(sets))


def simulate_times(curve: PaperCurve, sizes: Iterable[int], sets: Sequence[str] = ()) -> dict[int, float]:
    """Size -> one-way time (s). Raises the errors of a simulation."""
    from retrompi.sim import simulate

    return {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in simulate.benchmark(question(curve, sizes, sets))}
