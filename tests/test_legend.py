"""How runtimes are called and drawn: legend.json in a model's folder, the package's and anybody's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cases import for_each
from refusals import refused

from retrompi.base import paths
from retrompi.base.errors import InputError
from retrompi.render.figures.figures import PALETTE, name_of, style
from retrompi.spec import registry
from retrompi.spec.runtime.legend import COLOURS, Legend, legend


@pytest.fixture
def mine() -> Path:
    """A user's model that nothing of the package knows."""
    folder = paths.user_models_dir() / "mine"
    shutil.copytree(paths.models_dir() / "sockets", folder)
    file = folder / "__init__.py"
    file.write_text(file.read_text(encoding="utf-8").replace('name = "sockets', 'name = "mine'), encoding="utf-8")
    return folder


def test_a_user_s_runtime_has_a_name_and_a_colour_as_the_package_s_have(mine: Path) -> None:
    assert (name_of("mine"), legend("mine")) == ("mine", Legend())
    (mine / "legend.json").write_text('{"short": "My MPI", "colour": 1}', encoding="utf-8")
    assert (name_of("mine"), name_of("mine:other")) == ("My MPI", "My MPI (other)")
    assert style("mine", ["gm", "mine"])[0] == PALETTE[1]
    assert style("gm", ["gm", "mine"])[0] not in PALETTE[:COLOURS]


def test_a_legend_is_in_no_hash(mine: Path) -> None:
    before = registry.model("mine").hash(), registry.model("mine").code_hash()
    (mine / "legend.json").write_text('{"short": "My MPI"}', encoding="utf-8")
    assert before == (registry.model("mine").hash(), registry.model("mine").code_hash())


@for_each("text", ["{", "[1]", '{"shortt": "x"}', '{"short": 3}', '{"colour": 3}', '{"colour": "red"}'])
def test_a_wrong_legend_is_one_line_with_its_file(text: str, mine: Path) -> None:
    (mine / "legend.json").write_text(text, encoding="utf-8")
    with refused(InputError, "bad-value | legend.json"):
        legend("mine")


@for_each("name", ["", "native", "../models/wmpi", "wmpi/../gm", "x\0y", "n" * 5000])
def test_what_is_no_model_has_an_empty_legend(name: str) -> None:
    assert legend(name) == Legend()
