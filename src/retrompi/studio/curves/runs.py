"""PingPongs for the pages: looked up in the user's or the studio's store, else simulated. The functions here run in jobs.

Exploratory runs are kept in the studio's temporary store; ``keep`` copies one into the user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import RetrompiError, StoreError
from retrompi.base.translate import _, lazy
from retrompi.spec.declare.outcome import Outcome
from retrompi.studio.components import titles
from retrompi.studio.components.parameters import check_names
from retrompi.studio.curves.uploaded_curves import MOST_CURVES, read_overlays

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.studio.jobs.job import Report

__all__ = ["DRAWN", "UPLOAD", "Places", "Stores", "curve", "curve_of", "curves", "keep", "open_stores", "overlay_choices", "overlay_name",
           "run_name", "users", "what_if"]

Places = tuple[str | None, str]
"""(the user's store as for `retrompi.store.open_store`, the studio's own)."""

Stores = tuple["Store | None", "Store"]
"""The same stores, opened."""

DRAWN = {"pingpong": lazy("simulated"), "benchmark": lazy("simulated"), "native": lazy("measured here"), "measured": lazy("measured"),
         "smpi": lazy("on SMPI"), "program": lazy("replayed")}
"""Kinds of stored runs that have a curve, and their names."""
NEWEST = 300
UPLOAD = "upload:"
"""Prefix of the name of an uploaded curve in menus; its id follows."""


def users(location: str | None) -> Store | None:
    """The user's store for reading; None if it does not exist or cannot be read."""
    import os
    from pathlib import Path

    from retrompi.store import default_path, open_store

    chosen = location or os.environ.get("RETROMPI_STORE") or str(default_path())
    if "://" not in chosen and not Path(chosen).expanduser().exists():
        return None  # reading must not create a store
    with suppress(StoreError):
        return open_store(chosen, write=False)
    return None


@contextmanager
def open_stores(places: Places) -> Iterator[Stores]:
    """Both stores, opened once for a whole job."""
    from retrompi.store import open_store

    theirs, ours = users(places[0]), open_store(places[1])
    with ours.hold_connection(), theirs.hold_connection() if theirs is not None else nullcontext():
        yield theirs, ours


def curve(
    places: Places, model: str, platform: str, mode: str, sizes: Sequence[int] | None = None, sets: Sequence[str] = ()
) -> dict[str, Any]:
    """`curve_of` with stores opened for this one curve."""
    with open_stores(places) as stores:
        return curve_of(stores, model, platform, mode, sizes, sets)


def curve_of(
    stores: Stores, model: str, platform: str, mode: str, sizes: Sequence[int] | None = None, sets: Sequence[str] = ()
) -> dict[str, Any]:
    """One PingPong: rows (size_B, time_us, bandwidth_MBps, repetitions), run (its number, None if it is not in the user's store), found,
    outcome, detail, cautions, outside. A run that did not complete is a result, with the rows it reached; an invalid name or value raises
    UsageError.
    """
    from retrompi.sim.cautions import IN_THE_PAPERS, calibration, first_call, of_run, split, stored_cautions
    from retrompi.sim.resolved import Resolved
    from retrompi.sim.simulate import SimulationEnded
    from retrompi.spec.question import Question, pingpong
    from retrompi.store.identity import specification
    from retrompi.store.lookup import answer
    from retrompi.traces.generate import DEFAULT_SIZES

    theirs, ours = stores
    check_names(model, platform)
    wanted = list(DEFAULT_SIZES if sizes is None else sizes)
    asked = Resolved.of(Question(model, platform, pingpong(wanted), mode, sets))
    spec = specification(asked)
    known = theirs.find_run(spec) if theirs is not None else None
    store = theirs if theirs is not None and known is not None else ours
    found = known is not None or store.find_run(spec) is not None
    detail = ""
    try:
        got = answer(store, asked)
        run_id, rows = got.run_id, got.rows
    except SimulationEnded as ended:
        detail = str(ended)
        run_id = ended.run_id or store.find_run(spec) or 0
        rows = store.points(run_id)
    kept = store.run(run_id)
    beyond = calibration(model, platform, sizes=[r["size_B"] for r in rows], ranks=2, sets=sets)
    first = first_call(rows, IN_THE_PAPERS)
    return {
        "model": model, "platform": platform, "mode": mode, "sets": list(sets), "rows": rows, "run": known, "found": found,
        "outcome": kept["outcome"], "detail": detail, **split([*of_run(asked, stored_cautions(kept["facts"])), *beyond, *first]),
    }


def curves(
    report: Report, places: Places, wanted: Sequence[tuple[str, str, str]], sizes: Sequence[int] | None, overlays: Sequence[str],
    uploads: Mapping[str, tuple[str, str]] | None = None, gone: Sequence[str] = (),
) -> dict[str, Any]:
    """The curves of (model, platform, mode), the published statements about them, and stored runs and uploads as overlays.

    ``uploads``: overlay -> (file, the user's name for it); ``gone``: lines about missing ones. Returns curves: as from `curve`, with
    outside (properties outside the calibrated range); marks and verdicts: published statements and whether the curves satisfy them;
    overlays: run (0 for an upload), name, about, rows; read: a description of each uploaded curve; problems: lines.
    """
    made: list[dict[str, Any]] = []
    over: list[dict[str, Any]] = []
    read: list[str] = []
    problems, total = list(gone), len(wanted) + len(overlays)
    with open_stores(places) as stores:
        for i, (model, platform, mode) in enumerate(wanted):
            told = titles.of_run(model, "", mode, platform)
            report(i, total, told)
            try:
                one = curve_of(stores, model, platform, mode, sizes)
            except RetrompiError as error:
                problems.append(f"{told}: {error}")
                continue
            made.append(one)
        for i, name in enumerate(overlays, len(wanted)):
            path, label = (uploads or {}).get(name, ("", ""))
            report(i, total, label or f"run {name}")
            try:
                if path:
                    left = MOST_CURVES - len(over) - len(wanted) - (total - i - 1)
                    some, about, wrong = read_overlays(path, label, left, [o["name"] for o in over if not o["run"]])
                    over += some
                    read += about
                    problems += wrong
                else:
                    over.append(_overlay(stores[0], name))
            except RetrompiError as error:
                problems.append(str(error))
    marks, verdicts = _published_marks(made)
    return {"curves": made, "marks": marks, "verdicts": verdicts, "overlays": over, "read": read, "problems": problems}


def _published_marks(made: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The marks of published statements, and the verdicts on these curves."""
    from dataclasses import asdict

    from retrompi.papers.judging.verdicts import judge
    from retrompi.papers.statements.claims import by_paper, checks
    from retrompi.papers.statements.paper import all_papers
    from retrompi.render.figures.overlay import marks

    told: list[dict[str, Any]] = []
    rows: dict[str, dict[str, Any]] = {}
    known = checks()  # looks each time whether a file has changed
    for plan in all_papers().values():
        mine = [c for c in made if c["platform"] == plan.platform and c["model"] in plan.models and c["outcome"] == Outcome.COMPLETED]
        if not mine:
            continue
        points = [{**r, "model": c["model"], "mode": c["mode"]} for c in mine for r in c["rows"]]
        drawn = {(c["model"], c["mode"]) for c in mine}
        claims = by_paper(plan.key)
        about = {
            c.id for c in claims for check in known.get(c.id, ())
            if check.get("mode") and any((m, check["mode"]) in drawn for m in check.get("models", ()))
        }
        judged = [v for v in judge([c for c in claims if c.id in about], points, {}) if v.use != "context"]
        rows |= {v.id: v.row() | {"published": v.published, "observable": v.observable, "reading": v.reading} for v in judged}
        last = max(int(p["size_B"]) for p in points)
        told += [asdict(m) for m in marks(claims, judged, last=last) if any((model, m.mode) in drawn for model in m.models)]
    return told, list(rows.values())


def _overlay(store: Store | None, name: str) -> dict[str, Any]:
    """A run of the user's store by number, or a measured curve by label."""
    from retrompi.base.errors import UsageError
    from retrompi.measure.stored_curves import from_store
    from retrompi.sim.cautions import stored_cautions

    if store is None:
        raise UsageError(f"no run {name}: there is no store that can be read", code="unknown-run")
    if name.isdecimal():
        run = store.run(int(name))
        if run["kind"] in ("pingpong", "benchmark"):
            rows = store.points(run["id"])
            if not rows:
                raise UsageError(f"run {name} has no points: {run['outcome']}", code="unknown-run")
            return {"run": run["id"], "name": run_name(run), "about": "", "rows": rows, "kind": "simulated", "bands": {},
                    "platform": run["platform"], "cautions": [c.text for c in stored_cautions(run["facts"])]}
    found = from_store(store, name)
    return {"run": found.run_id, "name": found.name, "about": found.about, "rows": [dict(p) for p in found.points], "kind": found.kind,
            "bands": {str(size): list(band) for size, band in found.bands.items()}}


def run_name(run: Mapping[str, Any]) -> str:
    """The name of a stored run in menus and legends: runtime, overrides, mode, platform."""
    from retrompi.render.figures.figures import setting

    if run["kind"] == "measured":
        return str(run["facts"].get("label") or run["trace"])
    changed = ", ".join(setting(key, str(value)) for key, value in (run["overrides"] or {}).items())
    program = "" if run["kind"] == "pingpong" else f"{str(run['trace']).rpartition('/')[2]}, "
    return program + titles.of_run(run["model"], changed, run["mode"], run["platform"])


def overlay_choices(location: str | None) -> list[dict[str, str]]:
    """Options of a menu of stored runs with a curve, the newest first."""
    store = users(location)
    if store is None:
        return []
    runs = [r for kind in DRAWN for r in store.runs(kind=kind, outcome=Outcome.COMPLETED, limit=NEWEST)]
    newest = sorted(runs, key=lambda r: -int(r["id"]))[:NEWEST]
    told = _("run {id}: {name} ({kind})")
    return [{"value": str(r["id"]), "label": told.format(id=r["id"], name=run_name(r), kind=_(DRAWN[r["kind"]]))} for r in newest]


def overlay_name(location: str | None, name: str) -> str:
    """What a link names that the menu has not, such as a run that did not complete: as the menu would, or its name."""
    store = users(location)
    with suppress(RetrompiError):
        if store is not None and name.isdecimal():
            return _("run {run}: {name}").format(run=name, name=run_name(store.run(int(name))))
    return name


def what_if(
    report: Report, places: Places, model: str, platform: str, mode: str, sets: Sequence[str], sizes: Sequence[int] | None = None
) -> dict[str, Any]:
    """base: the unchanged curve; changed: with overrides (None without any); outside: properties outside the calibrated range; marks: what
    is published of the unchanged one.
    """
    report(0, 1 + bool(sets), _("as it was"))
    changed = None
    with open_stores(places) as stores:
        base = curve_of(stores, model, platform, mode, sizes)
        if sets:
            report(1, 2, _("as changed"))
            changed = curve_of(stores, model, platform, mode, sizes, sets)
    return {"base": base, "changed": changed, "outside": (changed or base)["outside"], "marks": _published_marks([base])[0]}


def keep(
    report: Report, places: Places, model: str, platform: str, mode: str, sets: Sequence[str], sizes: Sequence[int] | None = None
) -> dict[str, Any]:
    """Copies the run into the user's store; returns its number and whether it was already there."""
    from retrompi.sim.resolved import Resolved
    from retrompi.sim.simulate import SimulationEnded
    from retrompi.spec.question import Question, pingpong
    from retrompi.store import open_store
    from retrompi.store.identity import specification
    from retrompi.store.lookup import answer
    from retrompi.traces.generate import DEFAULT_SIZES

    check_names(model, platform)
    wanted = list(DEFAULT_SIZES if sizes is None else sizes)
    store = open_store(places[0])
    asked = Resolved.of(Question(model, platform, pingpong(wanted), mode, sets))
    spec = specification(asked)
    there = store.find_run(spec) is not None
    try:
        run_id = answer(store, asked).run_id
    except SimulationEnded as ended:  # the outcome is stored as well
        run_id = ended.run_id or 0
    return {"run": run_id, "there": there}
