"""The tree's layers hold: who may import or include whom, and that nobody does so in a circle."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from scripts import script

pytest.importorskip("importlinter")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, Path]:
    checker = script("packaging/imports.py")
    return checker, checker.assemble(tmp_path_factory.mktemp("package"))


def test_a_layer_imports_only_those_below_it(package: tuple[ModuleType, Path]) -> None:
    """By every kind of import: at the top, in a function, for type checkers. The contracts are in pyproject.toml."""
    checker, folder = package
    assert checker.broken_contracts(folder) == ""


def test_no_modules_import_each_other_in_a_circle(package: tuple[ModuleType, Path]) -> None:
    checker, folder = package
    assert checker.circles(folder) == []


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    """An import that climbs inside a function breaks a contract, and closes a circle."""
    checker = script("packaging/imports.py")
    folder = checker.assemble(tmp_path)
    low = folder / "retrompi" / "base" / "units.py"
    low.write_text(low.read_text(encoding="utf-8") + "\n\ndef climb():\n    from retrompi.spec import platform\n", encoding="utf-8")
    assert "retrompi.base.units -> retrompi.spec.platform" in checker.broken_contracts(folder)
    (circle,) = checker.circles(folder)
    assert {"retrompi.base.units", "retrompi.spec.platform"} <= set(circle)


def test_a_part_of_the_engine_includes_only_those_below_it() -> None:
    checker = script("packaging/includes.py")
    assert list(checker.climbing()) == []
    assert checker.circle() == []


def test_an_include_that_climbs_is_found(tmp_path: Path) -> None:
    checker = script("packaging/includes.py")
    for name, text in {
        "event/loop.hpp": '#include "event/task.hpp"\n#include "mpi/rank.hpp"\n',
        "event/task.hpp": '#include "event/loop.hpp"\n',
        "mpi/rank.hpp": '#include "event/loop.hpp"\n#include "generated/specs.hpp"\n#include <map>\n',
        "misc/other.cpp": "",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    climbs, layerless = checker.climbing(tmp_path)
    assert climbs == "event/loop.hpp:2: event includes mpi, which is above it"
    assert layerless.startswith("misc/other.cpp: 'misc' has no layer")
    assert set(checker.circle(tmp_path)) <= {"event/loop.hpp", "event/task.hpp", "mpi/rank.hpp"}
    assert len(checker.circle(tmp_path)) > 1
