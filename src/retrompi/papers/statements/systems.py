"""The rows of the verdict matrix: what a claim is about, by its column ``group``, or else by its ``system``."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache

from retrompi.base.paths import papers_dir
from retrompi.papers.statements.claims import Claim, folders, load, paper_key, version

__all__ = ["anchor", "system_of", "systems"]


@lru_cache(maxsize=4)
def _shared_names(_: Hashable) -> frozenset[tuple[str, str]]:
    """(name, paper) of the names that claims of several papers of the package have."""
    ours = {folder.name for folder in folders() if folder.parent == papers_dir()}
    papers: dict[str, set[str]] = {}
    for claim in load():
        if paper_key(claim.paper) in ours:
            papers.setdefault(claim.group or claim.system, set()).add(paper_key(claim.paper))
    return frozenset((name, paper) for name, where in papers.items() if len(where) > 1 for paper in where)


def system_of(claim: Claim) -> str:
    """The row of the matrix that a claim is in. A row belongs to one paper: where several have a name, the paper follows in brackets."""
    name = claim.group or claim.system
    paper = paper_key(claim.paper)
    return f"{name} ({paper})" if (name, paper) in _shared_names(version()) else name


def systems() -> list[str]:
    """Every row of the matrix, in the order of the papers and of their claims."""
    return list(dict.fromkeys(map(system_of, load())))


def anchor(system: str, kind: str, use: str) -> str:
    """The HTML anchor on a study's page of the claims of one cell of the matrix."""
    return "cell-" + re.sub(r"[^a-z0-9]+", "-", f"{system} {kind} {use}".lower())
