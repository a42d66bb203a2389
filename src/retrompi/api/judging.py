"""Published statements, the verdicts on them, and the reports that show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from retrompi.api.answering import spec_of
from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Report, Row, Table, as_store, reporting
from retrompi.papers.statements.claims import Claim
from retrompi.sim.cautions import Caution
from retrompi.spec.conditions.network_model import FLUID, NATIVE, using

if TYPE_CHECKING:
    from retrompi.measure.stored_curves import StoredCurve
    from retrompi.papers import Reproduction, Verdict
    from retrompi.papers.reproduce.network_agreement import NetworkAgreement
    from retrompi.render import Atlas, WrittenPage
    from retrompi.store import Store
    from retrompi.studies.draws.uncertainty import Spec

__all__ = ["ALL", "Claim", "Judging", "Reproduced", "Verdicts", "claim", "claims", "reproduce", "reproduce_of", "validate_of", "verdicts"]

ALL = "all"
"""Every paper of the package."""


class _Claims(Table):
    def __init__(self, found: Sequence[Claim]) -> None:
        self.found = found

    @property
    def title(self) -> str:
        return "published statements"

    @property
    def rows(self) -> Sequence[Row]:
        return [c.row() for c in self.found]


class Verdicts(Table):
    """The verdicts on published statements: a row each, with what was simulated, what is published, and the words of the check.

    >>> retrompi.verdicts("baker-fox").frame[["id", "verdict", "observed", "unit"]]    # doctest: +SKIP
    """

    def __init__(self, found: Sequence[Verdict], papers: Sequence[Reproduction], of: str = "") -> None:
        from retrompi.sim.cautions import merge_cautions, of_points

        self.found, self.papers, self.of = found, papers, of
        # now: a paper's own models are at hand only while it is worked with
        self._warnings = tuple(merge_cautions((m, some) for p in papers for m, some in of_points(p.points).items()))

    @property
    def title(self) -> str:
        """The papers, or the model, that were judged."""
        return f"verdicts on {self.of or ', '.join(p.paper.key for p in self.papers)}"

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about the runs of the papers; ``about`` names the models that a caution concerns, unless it concerns all."""
        return self._warnings

    @property
    def rows(self) -> Sequence[Row]:
        """id, use, verdict, observed, low, high, unit, note and more, of every statement; with draws also agreement, share (of the draws
        that pass), observed_low, observed_high."""
        from retrompi.papers.judging.verdicts import NOT_DRAWN

        if not self.drawn:
            return [v.row() for v in self.found]
        return [{**v.row(), **(NOT_DRAWN if v.agreement is None else v.agreement.row())} for v in self.found]

    @property
    def drawn(self) -> bool:
        """Whether there were draws of the parameters, and thus a third verdict."""
        return any(v.agreement is not None for v in self.found)

    @property
    def failed(self) -> list[str]:
        """The identifiers of the statements that fail."""
        return [v.id for v in self.found if v.verdict == "fail"]

    def counts(self, held_out: bool) -> tuple[int, int]:
        """(passed, judged) of the statements that are held out, or of those that a fit has seen."""
        mine = [v for v in self.found if (v.use == "validate") is held_out and v.verdict in ("pass", "fail")]
        return sum(v.verdict == "pass" for v in mine), len(mine)


class Reproduced(Verdicts):
    """A report: the verdicts that it shows, and its files.

    >>> retrompi.reproduce("krishna", "report").page    # simulates the paper's curves (s against B)    # doctest: +SKIP
    """

    def __init__(
        self, found: Sequence[Verdict], papers: Sequence[Reproduction], written: WrittenPage | Atlas, beside: NetworkAgreement | None
    ) -> None:
        super().__init__(found, papers)
        self.written, self.beside = written, beside
        """The files; the verdicts under another network beside those under the engine's own."""

    @property
    def page(self) -> Path:
        """The page to open first."""
        return self.written.page

    @property
    def runs(self) -> tuple[int, int]:
        """(runs, of which simulated now)."""
        return len({i for p in self.papers for i in p.runs}), sum(p.simulated for p in self.papers)


Reporting = Callable[[str], AbstractContextManager[Report]]
"""Opens the progress of a step that has this name."""


@dataclass(frozen=True)
class Judging:
    """Settings for judging papers: the store, whether stored runs are used, the number of simultaneous runs (None: one a processor), and
    the progress callback."""

    store: Store
    fresh: bool
    jobs: int | None
    reporting: Reporting

    @property
    def workers(self) -> int:
        """The number of simultaneous runs."""
        from retrompi.papers.reproduce.reproduction import WORKERS

        return self.jobs or WORKERS

    def replay(self, keys: Sequence[str], fidelity: str = "mechanism") -> list[Reproduction]:
        """Replays the papers at a level of fidelity; their folders must be registered (`working_with`)."""
        from retrompi.papers import run_papers

        with self.reporting(keys[0] if len(keys) == 1 else f"{len(keys)} studies") as report:
            return run_papers(keys, self.store, self.fresh, report, workers=self.workers, fidelity=fidelity)

    def draw(self, done: Sequence[Reproduction], spec: Spec | None) -> list[Reproduction]:
        """The replayed papers, with what the draws of their parameters say; without ``spec`` as they are."""
        from retrompi.papers.reproduce.agreement import with_agreement

        if spec is None:
            return list(done)
        with self.reporting("draws") as report:
            return with_agreement(done, self.store, spec, report, fresh=self.fresh, workers=self.workers)


def validate_of(paper: str | None, judging: Judging, spec: Spec | None = None) -> Verdicts:
    """The verdicts on a paper (key or folder), or on all and the measured curves that no paper has."""
    from retrompi.papers import all_papers, judge_all, of_curves
    from retrompi.papers.statements.paper import working_with

    with working_with(*(all_papers() if paper is None else [paper])) as plans:
        done = judging.draw(judging.replay([plan.key for plan in plans]), spec)
        return Verdicts(done[0].verdicts if paper is not None else [*judge_all(done), *of_curves(done)], done)


def validate_model_of(model: str, platform: str | None, store: Store, fresh: bool) -> Verdicts:
    """The verdicts on a model's own evidence, on a platform (None: its own)."""
    from retrompi.papers.judging.evidence import judge_model
    from retrompi.spec import registry

    on = platform or registry.own_platform(model)
    return Verdicts(judge_model(model, on, store, fresh=fresh), [], f"{model} on {on}")


def reproduce_of(
    paper: str, out: Path, judging: Judging, *, fidelity: str = "mechanism", network: str = NATIVE, spec: Spec | None = None,
    overlaid: Sequence[StoredCurve] = (), images: Sequence[str] = (),
) -> Reproduced:
    """The report on a paper (key or folder), or on all of the package with a front page; ``network`` is the one in use."""
    from retrompi import render
    from retrompi.papers import all_papers, judge_all
    from retrompi.papers.statements.paper import working_with
    from retrompi.render.atlas.front import provenance_of

    every = paper == ALL
    with working_with(*(all_papers() if every else [paper])) as plans:
        keys, began = [plan.key for plan in plans], time.perf_counter()
        found = judging.replay(keys, fidelity)
        beside = _beside_native(found, keys, judging, network, fidelity)
        found = judging.draw(found, spec)
        spent = time.perf_counter() - began
        found = render.with_measured(found, overlaid)
        if not every:
            return Reproduced(found[0].verdicts, found, render.write(found[0], out, images=images), beside)
        about = provenance_of(judging.store, found, spent, judging.workers)
        return Reproduced(judge_all(found), found, render.write_atlas(found, out, about, images=images, beside=beside), beside)


def _beside_native(
    found: Sequence[Reproduction], keys: Sequence[str], judging: Judging, network: str, fidelity: str
) -> NetworkAgreement | None:
    """The verdicts under another network beside those under the engine's own; None if that is what carried the frames."""
    from retrompi.papers.reproduce.network_agreement import network_agreement

    if network == NATIVE:
        return None
    with using(NATIVE):
        own = judging.replay(keys, fidelity)
    first = network_agreement(network, own, found)
    if not first.differing or network == FLUID:
        return first
    with using(FLUID):
        fluid = judging.replay(list(dict.fromkeys(d.paper for d in first.differing)), fidelity)
    return network_agreement(network, own, found, fluid)


@check_arguments
def claim(name: str) -> Claim:
    """A published statement by its identifier. UsageError for an unknown one.

    >>> found = retrompi.claim("BF-SM-12a")
    >>> found.observable, found.unit
    ('bandwidth at 512K', 'MByte/s')
    """
    from retrompi.papers.statements.claims import find

    return find(name)


@check_arguments
def claims(paper: str | None = None) -> Table:
    """The published statements of a paper, or all.

    >>> len(retrompi.claims("baker-fox")) > 50
    True
    """
    from retrompi.papers.statements.claims import by_paper, load

    return _Claims(load() if paper is None else by_paper(paper))


@check_arguments
def verdicts(
    paper: str | Path | None = None, *, model: str | Path | None = None, platform: str | Path | None = None, level: float = 0.9,
    draws: int = 0, store: Store | Path | str | None = None, fresh: bool = False, jobs: int | None = None, progress: Progress | None = None,
) -> Verdicts:
    """Simulates what a paper (key or folder; None: all) measured, unless it is stored, and judges its statements.

    ``model``: judges instead the model's own evidence, on ``platform`` (default: its own). ``draws`` adds a third verdict: which share of
    the draws of the uncertain parameters passes, with the interval at ``level`` of what they give. ``jobs`` runs are made at a time
    (default: one a processor); ``progress`` is called with (done, all, what); True shows a bar. Raises UsageError for an unknown paper or
    model, InputError for a faulty folder.

    >>> retrompi.verdicts("krishna").counts(held_out=True)    # doctest: +SKIP
    (14, 14)
    """
    from retrompi.base.errors import UsageError

    at, spec = as_store(store), spec_of(level, draws)
    if model is None:
        if platform is not None:
            raise UsageError("'platform' is for 'model'; a paper names its own", code="unused-option")
        return validate_of(None if paper is None else str(paper), Judging(at, fresh, jobs, partial(reporting, progress)), spec)
    if paper is not None or spec is not None:
        raise UsageError("a model is judged by its own evidence: give no paper and no draws", code="conflicting-options")
    return validate_model_of(str(model), None if platform is None else str(platform), at, fresh)


@check_arguments
def reproduce(
    paper: str | Path, out: str | Path = "report", *, fidelity: Literal["mechanism", "curve", "loggp"] = "mechanism",
    network: str | None = None, level: float = 0.9, draws: int = 0, measured: Sequence[str] = (), images: Sequence[str] = (),
    store: Store | Path | str | None = None, fresh: bool = False, jobs: int | None = None, progress: Progress | None = None,
) -> Reproduced:
    """Replays a paper (key, folder, or ``"all"``), judges its statements and writes the report into the folder ``out``.

    ``network`` carries the frames (``fluid``, ``simgrid``); ``beside`` then compares its verdicts with those of the engine's own. ``draws``
    adds intervals at ``level`` to the curves, and the third verdict of `validate`. ``measured`` draws curves of the store over the figures
    (``"12@pingpong"``), ``images`` writes every figure (``png``, ``svg``) as well. Raises UsageError for an unknown paper, InputError for a
    faulty folder and for one that cannot be written.

    >>> retrompi.reproduce("krishna", "report").counts(held_out=True)    # curves in s against B    # doctest: +SKIP
    (14, 14)
    """
    from retrompi.base.errors import UsageError, nearest
    from retrompi.measure.stored_curves import from_store

    if unknown := [i for i in images if i not in ("png", "svg")]:
        raise UsageError(f"no image format '{unknown[0]}'{nearest(unknown[0], ('png', 'svg'))}", code="unknown-format")
    at = as_store(store)
    overlaid = [from_store(at, name) for name in measured]
    with nullcontext() if network is None else using(network):
        return reproduce_of(
            str(paper), Path(out), Judging(at, fresh, jobs, partial(reporting, progress)), fidelity=fidelity, network=network or NATIVE,
            spec=spec_of(level, draws), overlaid=overlaid, images=images,
        )
