"""Validation against published results: claims, verdicts, and the replay of a paper's study.

    done = run_paper("baker-fox", open_store())
    for verdict in done.verdicts: print(verdict.id, verdict.verdict)

Names are loaded on first use, since a list of claims needs neither the store nor the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrompi.papers.judging.verdicts import Verdict, judge, measure, summary
    from retrompi.papers.reproduce.reproduction import Reproduction, judge_all, of_curves, run_paper, run_papers
    from retrompi.papers.statements.claims import Claim, for_fit, load
    from retrompi.papers.statements.paper import Paper, all_papers, find_paper

__all__ = [
    "Claim",
    "Paper",
    "Reproduction",
    "Verdict",
    "all_papers",
    "find_paper",
    "for_fit",
    "judge",
    "judge_all",
    "load",
    "measure",
    "of_curves",
    "run_paper",
    "run_papers",
    "summary",
]

_FROM = {
    "statements.claims": ("Claim", "for_fit", "load"),
    "statements.paper": ("Paper", "all_papers", "find_paper"),
    "reproduce.reproduction": ("Reproduction", "judge_all", "of_curves", "run_paper", "run_papers"),
    "judging.verdicts": ("Verdict", "judge", "measure", "summary"),
}


def __getattr__(name: str) -> Any:
    for module, names in _FROM.items():
        if name in names:
            return getattr(import_module(f"retrompi.papers.{module}"), name)
    raise AttributeError(f"module 'retrompi.papers' has no attribute '{name}'")
