"""Recipes for conda-forge, Spack and Guix say what pyproject.toml says, and have the hash of the file that they are for."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from scripts import script

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "packaging" / "recipes.py"
URL = "https://example.org/retrompi/retrompi-1.2.3.tar.gz"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    """A distribution with nothing but what a recipe reads."""
    path = tmp_path / "retrompi-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(ROOT / "pyproject.toml", "retrompi-1.2.3/pyproject.toml")
    return path


@pytest.fixture
def made(sdist: Path, tmp_path: Path) -> dict[str, str]:
    """Name of the recipe -> text, as the script writes it."""
    done = subprocess.run([sys.executable, str(SCRIPT), str(sdist), "--url", URL, "-o", str(tmp_path / "out")],
                          capture_output=True, text=True, check=True)
    return {Path(line).name: Path(line).read_text(encoding="utf-8") for line in done.stdout.splitlines()}


def test_they_have_the_hash_of_the_file(sdist: Path, made: dict[str, str]) -> None:
    found = hashlib.sha256(sdist.read_bytes()).hexdigest()
    assert len(made) == 3
    for text in made.values():
        assert found in text
        assert URL in text
        assert PROJECT["project"]["version"] in text
        assert "@SHA" not in text


def test_they_need_what_the_project_needs(made: dict[str, str]) -> None:
    for line in [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]:
        name, _, low = line.partition(">=")
        dashed = name.lower().replace("_", "-")
        assert f"- {name} >={low}\n" in made["recipe.yaml"]
        assert f'"py-{dashed}@{low}:"' in made["package.py"]
        assert f'"python-{dashed}"' in made["retrompi.scm"]


def test_they_are_well_formed(made: dict[str, str]) -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(made["recipe.yaml"])
    assert recipe["schema_version"] == 1
    assert len(recipe["source"]) == 2
    ast.parse(made["package.py"])
    plain = "".join(line.partition(";")[0] for line in made["retrompi.scm"].splitlines())
    assert plain.count("(") == plain.count(")")


def test_no_recipe_without_the_distribution(tmp_path: Path) -> None:
    other = tmp_path / "other.tar.gz"
    with tarfile.open(other, "w:gz"):
        pass
    for path, why in ((tmp_path / "none.tar.gz", "No such file"), (other, "no source distribution of retrompi")):
        done = subprocess.run([sys.executable, str(SCRIPT), str(path), "--url", URL], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert why in done.stderr


def test_a_requirement_that_cannot_be_said_is_an_error() -> None:
    with pytest.raises(ValueError, match="no recipe can say: x<2"):
        script("packaging/recipes.py").requirements({"build-system": {"requires": ["x<2"]}, "project": {"dependencies": []}})
