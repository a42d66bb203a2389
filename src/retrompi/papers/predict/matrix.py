"""The matrix of the atlas: what is known of every runtime on every machine and network, and how well the simulator says it.

A cell counts the statements, numbers and curves that a fit saw (`fitted`), those that judge it (`judged`), each with how many hold, and
the curves that are predicted before their publication is looked at (`blind`). A pair that no source speaks of has no cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.base.units import format_quantity
from retrompi.papers.judging.curve_verdicts import curve_id
from retrompi.papers.predict import predictions
from retrompi.papers.predict.transfer import PREDICTION, STATEMENTS
from retrompi.papers.statements.claims import judging, paper_key
from retrompi.papers.statements.curves import of
from retrompi.papers.statements.metrics import FITTED, PREDICTED
from retrompi.papers.statements.paper import all_papers
from retrompi.spec import registry
from retrompi.spec.machine import composition, machines

__all__ = ["STATES", "MatrixCell", "Tally", "cells", "place_of"]

STATES = ("judged", "fitted", "blind", "not known")
"""What a cell is, the strongest first: judged by numbers that no fit saw, fitted only, predicted only, named without a number."""
_KIND = {"calibrate": "fitted", "fitted": "fitted", "input": "fitted", "validate": "judged", "held out": "judged"}


@dataclass(frozen=True)
class Tally:
    """How many of ``all`` hold."""

    passed: int = 0
    all: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.passed + other.passed, self.all + other.all)

    def __str__(self) -> str:
        return f"{self.passed} of {self.all}"


@dataclass(frozen=True)
class MatrixCell:
    """A runtime on a machine and a network. ``paper`` and ``anchor``: where the atlas shows it."""

    model: str
    machine: str
    network: str
    fitted: Tally = Tally()
    judged: Tally = Tally()
    blind: int = 0
    paper: str = ""
    anchor: str = ""

    @property
    def state(self) -> str:
        """One of `STATES`."""
        return "judged" if self.judged.all else "fitted" if self.fitted.all else "blind" if self.blind else "not known"

    def row(self) -> dict[str, Any]:
        """Flat values for tables and CSV."""
        counts = {f"{k}_{part}": getattr(getattr(self, k), part) for k in ("fitted", "judged") for part in ("passed", "all")}
        return {"runtime": self.model, "machine": self.machine, "network": self.network, "state": self.state, **counts, "blind": self.blind}


@cache
def place_of(platform: str, machine: str = "") -> tuple[str, str]:
    """(machine, network) of a platform as its files call them; the ``machine`` itself where no platform describes it."""
    if not platform:
        return machine, ""
    try:
        made = composition.parse(platform)
        hosts = " and ".join(machines.host(name).title for name, _ in made.terms)
        return hosts, machines.network(made.network).title if made.network else ""
    except UsageError:
        found = registry.platform(platform)
        return found.title, f"{found.link.kind}, {format_quantity(found.link.bandwidth, 'B/s')}"


def _holds(row: Mapping[str, Any]) -> bool:
    """Whether a number of the table of transfer is within the tolerance of a number of its use."""
    slack = FITTED if _KIND[row["use"]] == "fitted" else PREDICTED
    return bool(row["low"] * (1 - slack) <= row["simulated"] <= row["high"] * (1 + slack))


def _of_transfer(row: Mapping[str, Any]) -> MatrixCell | None:
    """The part of a cell that a row of the table of transfer is; None for a prediction, which has its own."""
    place = place_of(row["platform"] or "", row["machine"])
    if row["use"] == "blind" or str(row["ref"] or "").startswith(PREDICTION):
        return None
    if row["use"] is None or row["simulated"] is None:
        return MatrixCell(row["model"], *place)
    if row["unit"] == STATEMENTS:
        found = {paper_key(c.paper) for c in judging(row["model"]) if re.match(row["ref"], c.id)}
        page = next(iter(found)) if len(found) == 1 else ""
        return _with_count(MatrixCell(row["model"], *place, paper=page), row["use"], Tally(int(row["simulated"]), int(row["published"])))
    return _with_count(MatrixCell(row["model"], *place, anchor="transfer"), row["use"], Tally(int(_holds(row)), 1))


def _with_count(cell: MatrixCell, use: str, count: Tally) -> MatrixCell:
    return replace(cell, judged=count) if _KIND[use] == "judged" else replace(cell, fitted=count)


def _predicted_cells() -> Iterable[MatrixCell]:
    for name, told in predictions.shipped_predictions().items():
        if told["use"] == "blind":
            anchor = f"blind-{name.partition('/')[2]}" if told["paper"] else "transfer"
            yield MatrixCell(told["model"], *place_of(told["platform"]), blind=1, paper=told["paper"], anchor=anchor)


def _of_papers(verdicts: Mapping[str, str]) -> Iterable[MatrixCell]:
    """The parts of cells that the curves of the papers' folders are, and the claims about them."""
    for paper in all_papers().values():
        curves = {c.name: c for c in of(paper)}
        for c in curves.values():
            yield MatrixCell(c.model, *place_of(c.platform), paper=paper.key, anchor=curve_id(paper.key, c))
            for name, use in ((curve_id(paper.key, c), c.use), (f"{curve_id(paper.key, c)}:held-out", "validate")):
                if verdicts.get(name) in ("pass", "fail"):
                    yield _with_count(MatrixCell(c.model, *place_of(c.platform)), use, Tally(int(verdicts[name] == "pass"), 1))
        for claim in paper.claims:
            if verdicts.get(claim.id) in ("pass", "fail") and claim.use in _KIND:
                mine = [curves[str(k["curve"])] for k in paper.checks.get(claim.id, ()) if str(k.get("curve")) in curves]
                for model, machine, network in dict.fromkeys((c.model, *place_of(c.platform)) for c in mine):
                    yield _with_count(MatrixCell(model, machine, network), claim.use, Tally(int(verdicts[claim.id] == "pass"), 1))


def cells(transfer: Iterable[Mapping[str, Any]], verdicts: Mapping[str, str]) -> list[MatrixCell]:
    """Every cell that a source speaks of, in the order of the sources.

    ``transfer``: rows as of `retrompi.papers.predict.transfer.with_verdicts`; ``verdicts``: of claims and curves by their identifiers. A
    number of the table of transfer is left out where a whole curve is judged.
    """
    papers = list(_of_papers(verdicts))
    whole = {(p.model, p.machine, p.network) for p in papers if p.fitted.all or p.judged.all}
    parts = [part for row in transfer if (part := _of_transfer(row)) is not None]
    numbers = [p for p in parts if p.anchor != "transfer" or (p.model, p.machine, p.network) not in whole]
    placed = {p.model for p in papers}
    # A pair that only says which paper speaks of the runtime has no platform: the paper's curves are its cells.
    numbers = [p for p in numbers if p.state != "not known" or p.network or p.model not in placed]
    return merge_cells([*numbers, *papers, *_predicted_cells()])


def merge_cells(parts: Iterable[MatrixCell]) -> list[MatrixCell]:
    """One cell for each runtime, machine and network; the first page that shows a part is the cell's."""
    out: dict[tuple[str, str, str], MatrixCell] = {}
    for p in parts:
        key = p.model, p.machine, p.network
        old = out.get(key, MatrixCell(*key))
        page = (old.paper, old.anchor) if old.paper or old.anchor else (p.paper, p.anchor)
        out[key] = MatrixCell(*key, old.fitted + p.fitted, old.judged + p.judged, old.blind + p.blind, *page)
    return list(out.values())
