"""Scenarios by name or by path: found by scanning their folders, never by a list."""

from __future__ import annotations

from retrompi.base import paths
from retrompi.spec.registry import toml_file, toml_files
from retrompi.studies import scenario as scenario_file
from retrompi.studies.scenario import Scenario

__all__ = ["scenario", "scenario_names", "scenarios"]


def scenario_names() -> list[str]:
    """The names of `scenarios`, without reading the files."""
    return list(toml_files(paths.scenarios_dir()))


def scenarios() -> dict[str, Scenario]:
    """Every scenario by name."""
    return {name: scenario_file.load(file) for name, file in toml_files(paths.scenarios_dir()).items()}


def scenario(name_or_path: str) -> Scenario:
    """A scenario by name or by the path of a TOML file."""
    return scenario_file.load(toml_file("scenario", toml_files(paths.scenarios_dir()), name_or_path))
