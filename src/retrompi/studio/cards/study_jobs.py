"""Studies in the studio: the list, the study described by a form, running one as a job, and the tables and figures of a stored one.

The user of a form is not the one who started the server: names are looked up, never opened as paths, and keys that name files are
refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.translate import _
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi.store import Store
    from retrompi.studies.archive.provenance import About
    from retrompi.studies.execute.design import Study
    from retrompi.studies.read.table import StudyTable
    from retrompi.studies.read.view import Failure

__all__ = ["MOST_POINTS", "Listed", "ShownStudy", "find_study", "list_studies", "run", "show_study", "study_of_form"]

MOST_POINTS = 240
"""The most points of a study run by the studio; larger ones are run on the command line and shown here when they are done."""
MOST_FIGURES = 12
_NO_PATHS = ("model", "platform")
Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Listed:
    """An entry of the list: ``id`` is None for a predefined study of which nothing was run; ``points`` None if their number is unknown."""

    name: str
    id: int | None
    title: str
    question: str
    points: int | None
    done: int
    errors: int
    axes: tuple[str, ...]
    created: str = ""
    ready: bool = False

    @property
    def key(self) -> str:
        """Its identifier in the address bar."""
        return self.name if self.id is None else str(self.id)

    @property
    def state(self) -> str:
        """A few words on how much of it was run."""
        if not self.done:
            return _("not run yet")
        every = "" if self.points is None else f" of {self.points}"
        bad = _(", {errors} no runs").format(errors=self.errors) if self.errors else ""
        return _("{done}{every} points{bad}").format(done=self.done, every=every, bad=bad)


def list_studies(store: Store | None) -> list[Listed]:
    """The stored studies, newest first, then the predefined ones that were not run; without a store only those."""
    from retrompi.studies.execute import design
    from retrompi.studies.execute.design import count, from_definition

    ready = design.studies()
    hashes = {s.hash for s in ready.values()}
    out: list[Listed] = []
    seen = set()
    for row in reversed(store.studies() if store is not None else []):
        definition = row["definition"]
        points, axes = None, tuple(definition.get("vary", {}))
        try:
            made = from_definition(definition)
            points, axes = count(made), tuple(a.key for a in made.axes)
        except RetrompiError:  # from a version with other keys: its results still exist
            pass
        seen.add(row["hash"])
        out.append(
            Listed(
                str(row["name"]),
                int(row["id"]),
                str(definition.get("title", "")),
                str(definition.get("question", "")),
                points,
                int(row["done"]),
                int(row["errors"]),
                axes,
                str(row["created"]),
                row["hash"] in hashes,
            )
        )
    out += [
        Listed(name, None, s.title, s.question, count(s), 0, 0, tuple(a.key for a in s.axes), ready=True)
        for name, s in ready.items()
        if s.hash not in seen
    ]
    return out


def find_study(store: Store, which: str) -> Study:
    """A predefined study by name or a stored one by number, rebuilt from its definition. Raises UsageError when there is none."""
    from retrompi.studies.execute import design
    from retrompi.studies.execute.design import from_definition

    if which in design.study_names():
        return design.study(which)
    return from_definition(store.study(which)["definition"])


def study_of_form(scenario: str, vary: Sequence[tuple[str, str]], metric: str = "") -> Study:
    """The study described by a form: a predefined scenario and (key, values) to vary, checked before anything runs.

    Raises UsageError in one line for an invalid study, one with more than `MOST_POINTS` points, or one that would open a file.
    """
    from retrompi.spec import registry
    from retrompi.studies.define import case, catalogue
    from retrompi.studies.execute import design
    from retrompi.studio.components import menus

    if scenario not in catalogue.scenario_names():
        raise UsageError(f"no scenario '{scenario}'{nearest(scenario, catalogue.scenario_names())}", code="unknown-scenario")
    given = [(key.strip(), values.strip()) for key, values in vary if key.strip() or values.strip()]
    if not given:
        raise UsageError("nothing varies: give a key and its values, e.g. wmpi.packet and 8KiB..32KiB:x2", code="nothing-varies")
    for key, values in given:
        if not key or not values:
            raise UsageError(
                f"'{key or values}' has no {'values' if key else 'key'}: give both, e.g. wmpi.packet and 8KiB..32KiB:x2",
                code="missing-option",
            )
        if case.proper(key) == "trace.file":
            raise UsageError("trace.file is a file of the server: vary it with 'retrompi sweep'")
    study = replace(design.from_command(scenario, dict(given)), metric=metric.strip())
    for axis in study.axes:
        if axis.key in _NO_PATHS:
            valid = registry.model_names() if axis.key == "model" else registry.platform_names()
            for value in axis.values:
                if value not in valid and not (axis.key == "platform" and menus.is_platform(value)):
                    raise UsageError(f"no {axis.key} '{value}'{nearest(value, valid)}", code="unknown-name")
    design.check(study, MOST_POINTS)
    return study


def run(report: Report, store: str | None, definition: Mapping[str, Any], fresh: bool = False) -> dict[str, Any]:
    """The job: runs a study, or its missing points, into the store at ``store``.

    Returns study, points, simulated, found, errors, outcomes, reasons, outside, seconds.
    """
    from retrompi.store import open_store
    from retrompi.studies.execute.design import from_definition
    from retrompi.studies.execute.run import run_study

    told = run_study(open_store(store), from_definition(definition), fresh=fresh, limit=MOST_POINTS, report=report)
    return {
        "study": told.study_id,
        "points": told.points,
        "simulated": told.simulated,
        "found": told.kept + told.found,
        "errors": told.errors,
        "outcomes": dict(told.outcomes),
        "reasons": list(told.reasons),
        "outside": told.outside,
        "seconds": told.seconds,
    }


@dataclass(frozen=True)
class ShownStudy:
    """A stored study for display: what `retrompi study show` prints and draws."""

    study: Mapping[str, Any]
    metric: str
    label: str
    axes: tuple[str, ...]
    tables: tuple[StudyTable, ...]
    figures: Mapping[str, go.Figure]
    more_figures: int
    failures: tuple[Failure, ...]
    idle: tuple[str, ...]
    about: About
    points: int
    completed: int
    span: str = ""
    cautions: Mapping[str, int] = field(default_factory=dict)
    """Sentence -> number of runs that have it."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Figure -> its kind of `retrompi.render.figures.sweep_figures.KINDS`."""


def show_study(store: Store, which: str, metric: str = "", x: str = "", by: Sequence[str] = (), panel: Sequence[str] = ()) -> ShownStudy:
    """A stored study by number or name, by the code of ``retrompi study show``. Raises UsageError in one line when it cannot be shown."""
    from retrompi.render.figures.sweep_figures import choose
    from retrompi.render.pages.study_page import figures
    from retrompi.sim.cautions import stored_cautions
    from retrompi.studies.archive.provenance import about
    from retrompi.studies.read import stored_study
    from retrompi.studies.read.table import tables
    from retrompi.studies.read.view import failures, without_effect

    kept = stored_study.read(store, which)
    v = kept.view(metric or None)
    for k in (*by, *panel, *([x] if x not in ("", "size") else [])):
        v.axis(k)
    drawn = figures(v, choose(v, x or None, by, panel))
    every = [(kind, name, f) for kind, some in drawn.items() for name, f in some.items()]
    values = [r["value"] for r in v.rows if r["value"] is not None]
    return ShownStudy(
        study=kept.study,
        metric=v.metric.name,
        label=v.metric.label,
        axes=tuple(a.key for a in v.axes),
        tables=tuple(tables(v, panel, x if x not in ("", "size") else None)),
        figures={name: f for _, name, f in every[:MOST_FIGURES]},
        more_figures=max(len(every) - MOST_FIGURES, 0),
        failures=tuple(failures(v)),
        idle=tuple(without_effect(v)),
        about=about(kept.definition, kept.runs, kept.curves),
        points=len(v.rows),
        completed=sum(r["outcome"] == Outcome.COMPLETED for r in v.rows),
        span=f"{v.metric.show(min(values))} – {v.metric.show(max(values))}" if values else "",
        cautions=Counter(c.text for run in kept.runs.values() for c in stored_cautions(run["facts"])),
        kinds={name: kind for kind, name, _ in every},
    )
