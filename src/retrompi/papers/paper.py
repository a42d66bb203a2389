"""A paper's study, as defined in ``validate/papers/KEY.toml``: the models, the experiments, and the contents of its page."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.paths import validate_dir
from retrompi.papers.claims import paper_key, papers
from retrompi.papers.exhibits import FigurePlan, TablePlan, read_figures, read_tables

__all__ = ["Anomaly", "Paper", "all_papers", "find_paper"]


@dataclass(frozen=True)
class Anomaly:
    """An anomaly and the mechanism that causes it; ``size`` (bytes) of the message whose anatomy shows it, or None."""

    title: str
    model: str
    mode: str
    claims: tuple[str, ...]
    mechanism: str
    text: str
    size: int | None = None


@dataclass(frozen=True)
class Paper:
    """How a study is replayed, from ``papers/KEY.toml``: its experiments (`retrompi.papers.experiments`) and their options.

    ``models`` and ``platforms`` are shown as cards; the first platform is the default of the experiments.
    ``figure_plans`` and ``table_plans`` are the figures and tables of the report.
    """

    key: str
    title: str
    authors: str
    models: tuple[str, ...]
    platforms: tuple[str, ...]
    experiments: tuple[str, ...]
    why: tuple[Anomaly, ...] = ()
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fidelity: str = "mechanism"
    """Fidelity of the simulated curves, scenarios and anatomies."""
    figure_plans: tuple[FigurePlan, ...] = ()
    table_plans: tuple[TablePlan, ...] = ()

    def options(self, kind: str) -> Mapping[str, Any]:
        """The options of an experiment; {} without any."""
        return self.tables.get(kind, {})

    @property
    def platform(self) -> str:
        """The default platform of the experiments."""
        return self.platforms[0]

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes of the PingPong curves; () without any."""
        return tuple(self.options("pingpong").get("modes", ()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Message sizes of the PingPong curves, bytes; () without any."""
        text = self.options("pingpong").get("sizes")
        return () if text is None else tuple(units.parse_sizes(text))


def _size(text: str) -> int:
    return int(units.parse(text, "B"))


@cache
def all_papers() -> Mapping[str, Paper]:
    """Key of a study -> its definition, in the order of the reference; InputError for an invalid file."""
    folder = validate_dir() / "papers"
    out: dict[str, Paper] = {}
    for path in sorted(folder.glob("*.toml"), key=lambda p: papers().index(p.stem)):
        try:
            t = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(str(error), path) from None
        out[path.stem] = Paper(
            key=path.stem,
            title=t.pop("title"),
            authors=t.pop("authors"),
            models=tuple(t.pop("models")),
            platforms=tuple(t.pop("platforms")),
            experiments=tuple(t.pop("experiments")),
            why=tuple(
                Anomaly(
                    title=w["title"],
                    model=w["model"],
                    mode=w["mode"],
                    claims=tuple(w["claims"]),
                    mechanism=w["mechanism"],
                    text=" ".join(w["text"].split()),
                    size=_size(w["size"]) if "size" in w else None,
                )
                for w in t.pop("why", ())
            ),
            figure_plans=read_figures(t.pop("figure", ()), path),
            table_plans=read_tables(t.pop("table", ()), path),
            tables=t,
        )
    return out


def find_paper(paper: str) -> Paper:
    """The study of ``paper``; UsageError when it is unknown or its runtimes are not modelled yet."""
    key = paper_key(paper)
    if key not in all_papers():
        if key in papers():
            raise UsageError(f"the runtimes of '{key}' are not modelled yet; valid: {', '.join(all_papers())}", code="unknown-paper")
        raise UsageError(f"no paper '{paper}'{nearest(paper, papers())}", code="unknown-paper")
    return all_papers()[key]
