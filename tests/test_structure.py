"""The tree's layers hold: who may import or include whom, and that nobody does so in a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from scripts import script

pytest.importorskip("importlinter")

ALONE = """
import importlib, os, sys
names = sys.argv[1:]
for name in names:
    importlib.import_module(name)
for name in [n for n in sys.modules if n.partition(".")[0] == "retrompi" and n != "retrompi._engine"]:
    del sys.modules[name]
for name in names:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(name, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, Path]:
    checker = script("packaging/imports.py")
    return checker, checker.assemble(tmp_path_factory.mktemp("package"))


def test_a_layer_imports_only_those_below_it(package: tuple[ModuleType, Path]) -> None:
    """By every kind of import: at the top, in a function, for type checkers. The contracts are in pyproject.toml."""
    checker, folder = package
    assert checker.broken_contracts(folder) == ""


def test_the_page_of_the_architecture_has_the_contracts_layers() -> None:
    """Its tables are what ``python packaging/layers.py`` writes, and its list of the engine's folders is the one that is checked."""
    layers = script("packaging/layers.py")
    page = layers.PAGE.read_text(encoding="utf-8")
    assert layers.written(page) == page
    assert layers.written(page.replace("| `cli` | ", "| `cli` | not ")) == page
    assert ", ".join(f"`{name}`" for name in script("packaging/includes.py").LAYERS) in page
    for package, names in layers.layers().items():
        folders = {f.parent.name for f in (layers.ROOT / "src" / package.replace(".", "/")).glob("*/__init__.py")}
        assert package == "retrompi" or folders - {"lti", "assets", "words"} == set(names), package


def test_what_people_edit_may_import_the_specification_alone() -> None:
    layers = script("packaging/layers.py")
    (contract,) = (c for c in layers.contracts() if c["name"] == "What people edit imports the specification alone")
    assert {m.partition(".")[2] for m in contract["forbidden_modules"]} == set(layers.layers()["retrompi"]) - {"spec", "base"}


def test_no_modules_import_each_other_in_a_circle(package: tuple[ModuleType, Path]) -> None:
    checker, folder = package
    assert checker.circles(folder) == []


def test_every_module_can_be_imported_alone(package: tuple[ModuleType, Path]) -> None:
    checker, folder = package
    assert checker.loading_circle(folder) == []


@pytest.mark.exhaustive
def test_every_module_is_imported_alone(package: tuple[ModuleType, Path]) -> None:
    """Each by a process that has loaded what others have written, and nothing of this package."""
    _, folder = package
    names = [".".join(f.relative_to(folder).with_suffix("").parts).removesuffix(".__init__") for f in sorted(folder.rglob("*.py"))]
    apart = ("retrompi._engine", "retrompi.store.migrations.env")  # compiled; run by Alembic alone
    alone = [n for n in names if n not in apart and "-" not in n]
    done = subprocess.run([sys.executable, "-c", ALONE, *alone], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_name_that_a_package_loads_on_first_use_is_no_module_of_it(package: tuple[ModuleType, Path]) -> None:
    """Once such a module is imported, the package's name is the module, and nobody is handed the function."""
    _, folder = package
    lazy = 0
    for file in folder.rglob("__init__.py"):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        if any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in body):
            (promised,) = (n.value for n in body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")
            modules = {f.stem for f in file.parent.iterdir() if f.suffix == ".py" or (f / "__init__.py").exists()}
            assert not {c.value for c in ast.walk(promised) if isinstance(c, ast.Constant)} & modules, file
            lazy += 1
    assert lazy >= 1


def test_a_circle_through_a_package_is_found(tmp_path: Path) -> None:
    """A package's file loads a module that needs, by way of another package, a module of the first."""
    for name, text in {
        "a/__init__.py": "from p.a import one\n",
        "a/one.py": "from p.b import two\n",
        "a/three.py": "",
        "b/__init__.py": "",
        "b/two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a\ndef use():\n    import p.a\n",
    }.items():
        file = tmp_path / "p" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    checker = script("packaging/imports.py")
    assert checker.loading_circle(tmp_path) == []
    (tmp_path / "p" / "b" / "two.py").write_text("try:\n    from ..a import three\nexcept OSError:\n    pass\n", encoding="utf-8")
    assert set(checker.loading_circle(tmp_path)) == {"p.a", "p.a.one", "p.b.two"}


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
