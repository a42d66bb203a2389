"""The systems of the papers: maps the reference's free-text column ``system`` to the few rows of the verdict matrix.

A claim belongs to exactly one system; a test checks that a rule matches every claim of the reference.
"""

from __future__ import annotations

import re

from retrompi.papers.claims import Claim, paper_key

__all__ = ["SYSTEMS", "anchor", "system_of"]

SEVERAL = "several NT runtimes"
MACHINES = "NT machines"

SYSTEMS = ("WinMPICH", "WMPI", "HPVM", SEVERAL, MACHINES, "Nemesis", "Cray MPT", "MPI-BIP", "replication")
"""Rows of the verdict matrix, in the order of the papers."""

# Baker & Fox, after the runtimes' names: statements on all three runtimes, and statements on the machines.
_ABOUT_ALL = re.compile(r"all 3\b|C test suite|PingPong benchmark|MPICH ADI")
_ABOUT_MACHINES = re.compile(r"Rinf1\b|NT (Server|Workstation)\b|link\b")
_REPLICATION = re.compile(r"LW-R-\d")
_ONE = {"krishna-2010": "Nemesis", "hudson-wang": "Cray MPT"}


def system_of(claim: Claim) -> str:
    """The system of `SYSTEMS` that a claim is about; ValueError if no rule matches it."""
    paper = paper_key(claim.paper)
    if paper in _ONE:
        return _ONE[paper]
    if paper == "lefevre-westrelin":
        return "replication" if _REPLICATION.match(claim.id) else "MPI-BIP"
    if _ABOUT_MACHINES.match(claim.system):
        return MACHINES
    named = [s for s in ("WinMPICH", "WMPI", "HPVM") if re.search(rf"\b{s}\b", claim.system)]
    if len(named) > 1 or _ABOUT_ALL.match(claim.system):
        return SEVERAL
    if named:
        return named[0]
    if claim.system.startswith("FM "):
        return "HPVM"
    raise ValueError(f"{claim.id}: no rule sorts the system '{claim.system}'")


def anchor(system: str, kind: str, use: str) -> str:
    """The HTML anchor on a study's page of the claims of one cell of the matrix."""
    return "cell-" + re.sub(r"[^a-z0-9]+", "-", f"{system} {kind} {use}".lower())
