"""Figures: ticks that can be read, lines that can be told apart, models that stay together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases import for_each

from retrompi.render.figures.figures import decades, looks, value_axis
from retrompi.spec import registry
from retrompi.store import open_store


@for_each("what", ["time", "bandwidth"])
@for_each("low, high", [(173.0, 175.0), (95.0, 99.0), (0.9, 1.1), (10.0, 20.0), (1.0, 9.0), (40.0, 300.0), (1.0, 1e6)])
def test_a_logarithmic_axis_has_three_ticks_between_its_ends(what: str, low: float, high: float) -> None:
    for axis in (value_axis(what, "log", [low, high]), decades(low, high, str)):
        inside = [t for t in axis["tickvals"] if low * 0.98 <= t <= high * 1.02]
        assert len(inside) >= 3
        assert len(inside) <= 10
        assert len(axis["ticktext"]) == len(axis["tickvals"])


@for_each("models", [("wmpi",), ("wmpi", "hpvm"), tuple(f"model-{i}" for i in range(9))])
@for_each("modes", [1, 2, 5, 9])
def test_no_two_lines_of_a_figure_look_alike(models: tuple[str, ...], modes: int) -> None:
    found = looks([(model, f"mode {i}") for model in models for i in range(modes)][:18])
    assert len({(look.colour, look.symbol) for look in found.values()}) == len(found)


def test_models_are_compared_in_one_figure_however_many(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    from retrompi.render.figures.sweep_figures import choose
    from retrompi.studies.read import stored_study

    names = [name for name in registry.models() if name.partition(":")[0] in ("wmpi", "winmpich", "hpvm")] + ["sockets"]
    assert len(names) > 9
    few = ("--set", "trace.sizes=1KiB,2KiB", "--set", "trace.reps=1", "-j", "1", "--name", "many")
    axes = ("--vary", f"model={','.join(names)}", "--vary", "platform.host.cores=1,2")
    assert retrompi("--store", str(tmp_path / "s.db"), "sweep", "bf-wmpi-distributed", *axes, *few).code == 0
    view = stored_study.read(open_store(tmp_path / "s.db"), "many").view(None)
    for plan in choose(view):
        assert "model" not in plan.panel
