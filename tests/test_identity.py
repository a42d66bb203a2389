"""The code that a stored run depends on is what the simulation imports: no more, and wherever it lies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cases import for_each

import retrompi
from retrompi.store import closure
from retrompi.store.identity import digest

ROOT = Path(retrompi.__file__).parent


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's sources, to be changed."""
    root = tmp_path_factory.mktemp("package") / "retrompi"
    shutil.copytree(ROOT, root, ignore=lambda folder, names: [n for n in names if not (n.endswith(".py") or Path(folder, n).is_dir())])
    return root


def code(root: Path) -> str:
    return digest(closure.modules(root))


def test_what_is_simulated_with_is_in_it_and_what_only_shows_is_not() -> None:
    found = set(closure.modules(ROOT))
    parts = {name.split(".")[1] for name in found if "." in name}
    assert parts == {"base", "spec", "traces", "sim"}
    assert {"retrompi.sim.worker", "retrompi.spec.compiled.compile", "retrompi.spec.collectives", "retrompi.traces.generate"} <= found
    assert not found & {"retrompi.base.csv_safe", "retrompi.spec.calibrated_range", "retrompi.sim.diagnosis", "retrompi.sim.preflight"}


@for_each("name", ["base/csv_safe.py", "studio/requests/page.py", "sim/diagnosis.py", "studies/define/scenario.py", "store/lookup.py"])
def test_an_edit_of_what_cannot_change_a_result_makes_no_run_stale(copy: Path, name: str) -> None:
    before = code(copy)
    with (copy / name).open("a") as file:
        file.write("# a remark\n")
    assert code(copy) == before


@for_each("name", ["base/units.py", "spec/machine/topology.py", "traces/generate.py", "sim/sampling.py", "sim/worker.py"])
def test_an_edit_of_what_a_run_imports_makes_runs_stale(copy: Path, name: str) -> None:
    before = code(copy)
    with (copy / name).open("a") as file:
        file.write("# a remark\n")
    assert code(copy) != before


def test_a_module_is_followed_to_where_it_moves(copy: Path) -> None:
    moved = copy / "traces" / "elsewhere" / "sampled.py"
    moved.parent.mkdir()
    (moved.parent / "__init__.py").write_text("")
    (copy / "sim" / "sampling.py").rename(moved)
    for file in (copy / "sim").glob("*.py"):
        text = file.read_text().replace("from retrompi.sim.sampling import", "from retrompi.traces.elsewhere.sampled import")
        file.write_text(text.replace("from retrompi.sim import sampling", "from retrompi.traces.elsewhere import sampled as sampling"))
    before = code(copy)
    assert "retrompi.traces.elsewhere.sampled" in closure.modules(copy)
    with moved.open("a") as file:
        file.write("# a remark\n")
    assert code(copy) != before


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not(tmp_path: Path) -> None:
    root = tmp_path / "retrompi"
    (root / "sim").mkdir(parents=True)
    for name in ("", "sim/"):
        (root / name / "__init__.py").write_text("")
    for name in ("lazy", "typed", "near", "tried"):
        (root / "sim" / f"{name}.py").write_text("")
    (root / "sim" / "begin.py").write_text(
        "from typing import TYPE_CHECKING\nfrom .near import x\nif TYPE_CHECKING:\n    from retrompi.sim import typed\n"
        "def f():\n    try:\n        import retrompi.sim.tried\n    except ImportError:\n        pass\n    from retrompi.sim import lazy\n"
    )
    found = closure.modules(root, ["retrompi.sim.begin"])
    assert set(found) == {"retrompi", "retrompi.sim", *(f"retrompi.sim.{n}" for n in ("begin", "lazy", "near", "tried"))}
    with pytest.raises(LookupError):
        closure.modules(root, ["retrompi.sim.gone"])
