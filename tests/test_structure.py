"""The tree's layers hold: who may import whom, and that no modules import each other in a circle."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytest.importorskip("importlinter")


def _checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("imports", ROOT / "packaging" / "imports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, Path]:
    checker = _checker()
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
    checker = _checker()
    folder = checker.assemble(tmp_path)
    low = folder / "retrompi" / "base" / "units.py"
    low.write_text(low.read_text(encoding="utf-8") + "\n\ndef climb():\n    from retrompi.spec import platform\n", encoding="utf-8")
    assert "retrompi.base.units -> retrompi.spec.platform" in checker.broken_contracts(folder)
    (circle,) = checker.circles(folder)
    assert {"retrompi.base.units", "retrompi.spec.platform"} <= set(circle)
