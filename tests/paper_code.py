"""The code of the package's papers, which lies in their folders, for the tests of it."""

from __future__ import annotations

from typing import Any

from retrompi.base import paths
from retrompi.papers.statements import own_code


def experiment(paper: str, name: str) -> Any:
    """A module of a paper's ``experiments``, such as ``experiment("lefevre-westrelin", "_nas")``."""
    return own_code.module(paths.papers_dir() / paper, "experiments", name)
