"""Generators are listed, ask for everything that they lack at once, and become scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from retrompi.base.errors import InputError, UsageError
from retrompi.cli.main import cli
from retrompi.manual.experiments import scenario_pages
from retrompi.studies.compare import compare_runtimes
from retrompi.studies.define import catalogue
from retrompi.traces import generate


def test_everything_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(UsageError, match=r"needs 'reps' and 'size', e.g. reps=10 size=1KiB; see 'retrompi scenarios generators'"):
        generate.generator("halo").check({"ranks": 4})


def test_each_generator_accepts_what_its_usage_shows() -> None:
    for name, made in generate.GENERATORS.items():
        arguments = [item.strip("[]") for item in made.usage.split() if not item.startswith("[") and not item.endswith("...]")]
        scenario = compare_runtimes.program(name, arguments, "wmpi", "nt-pair", None, None)
        assert set(scenario.args) >= set(made.required), name
        assert made.summary
        assert "``" not in made.summary
    assert len({made.summary for made in generate.GENERATORS.values()}) == len(generate.GENERATORS)


def test_the_list_and_the_reference_have_every_generator() -> None:
    shown = CliRunner().invoke(cli, ["scenarios", "generators", "--csv"], obj={"debug": False})
    assert shown.exit_code == 0
    page = scenario_pages()[0].text
    for name, made in generate.GENERATORS.items():
        assert f"\n{name}," in shown.output
        assert f"`{made.usage}`" in page


def test_a_generator_becomes_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    for _ in range(2):
        told = CliRunner().invoke(cli, ["scenarios", "new", str(file), "halo", "-m", "lam"], obj={"debug": False})
    assert isinstance(told.exception, InputError), "a file that exists is not overwritten"
    found = catalogue.scenario(str(file))
    assert (found.model, found.generator, found.args) == ("lam", "halo", {"ranks": 4, "reps": 10, "size": 1024})
    with pytest.raises(UsageError, match=r"'halo' is a generator and no scenario; .*: retrompi scenarios new halo.toml halo"):
        catalogue.scenario("halo")


def test_every_missing_key_of_a_scenario_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nmodel = "wmpi"\nplatform = "nt-pair"\n')
    with pytest.raises(InputError, match=r"'title', 'summary', 'reproduces' and 'mode' are missing or not texts"):
        catalogue.scenario(str(file))
