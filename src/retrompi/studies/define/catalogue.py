"""Scenarios by name or by path: found by scanning their folders, never by a list."""

from __future__ import annotations

from pathlib import Path

from retrompi.base import paths
from retrompi.base.errors import UsageError
from retrompi.spec.registry import toml_file, toml_files
from retrompi.studies.define import scenario as scenario_file
from retrompi.studies.define.scenario import Scenario

__all__ = ["scenario", "scenario_names", "scenarios"]


def _files() -> dict[str, Path]:
    """Name -> file of the package's scenarios and those of the papers at hand."""
    return {name: file for place in reversed(paths.places("scenarios")) for name, file in toml_files(place).items()}


def scenario_names() -> list[str]:
    """The names of `scenarios`, without reading the files."""
    return list(_files())


def scenarios() -> dict[str, Scenario]:
    """Every scenario by name."""
    return {name: scenario_file.load(file) for name, file in _files().items()}


def scenario(name_or_path: str) -> Scenario:
    """A scenario by name or by the path of a TOML file. A generator's name is refused with the way to make a scenario of it."""
    from retrompi.traces import generate

    if name_or_path in generate.GENERATORS and name_or_path not in scenario_names():
        raise UsageError(f"'{name_or_path}' is a generator and no scenario; make one of it: retrompi scenarios new {name_or_path}.toml "
                         f"{name_or_path} (arguments: {generate.generator(name_or_path).usage})", code="unknown-scenario")
    return scenario_file.load(toml_file("scenario", _files(), name_or_path))
