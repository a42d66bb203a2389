"""A base class in a folder of its own, which several models share: its fit, their hashes, and where a fit of it is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from retrompi.base import paths
from retrompi.base.errors import InputError
from retrompi.models._mpich1 import Mpich1
from retrompi.spec import registry
from retrompi.spec.model import RuntimeModel, fit_place, model_values

DEVICE = '''
from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Ring
from retrompi.spec.model import Param
from retrompi.spec.values import Values


class Device(Mpich1):
    name = "device"
    title = "MPICH on a device of one's own"
    version = "1"
    years = "1997"
    summary = "a ring"
    packet = Param("1 KiB", "B", "a packet", source="assumed: a page or less")

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, BLOCK, BLOCK)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([Ring(("rank", "rank"), packet=p.packet, header=0, slots=8)])
'''


def device(folder: Path) -> type[RuntimeModel]:
    """A user's model of MPICH, in ``folder``."""
    place = folder / "device"
    place.mkdir()
    (place / "__init__.py").write_text(DEVICE, encoding="utf-8")
    return registry.model(str(place))


def test_a_shared_base_is_no_model() -> None:
    assert "_mpich1" not in registry.shipped_models()
    assert issubclass(Mpich1, RuntimeModel)


def test_the_fit_of_the_base_is_every_models(tmp_path: Path) -> None:
    mine = device(tmp_path)
    found = model_values(mine).settings["library"]
    assert found.source == "fit:_mpich1/fit.toml [_mpich1]"
    low, high = Mpich1.library.low, Mpich1.library.high
    assert low <= found.value <= high
    half = mine().calls(model_values(mine), None)  # type: ignore[arg-type]
    assert half.send_cpu == half.recv_cpu == pytest.approx(model_values(mine).library / 2)


def test_a_model_may_be_fitted_on_its_own(tmp_path: Path) -> None:
    mine = device(tmp_path)
    before, shared = mine.hash(), model_values(mine).settings["library"].text
    (mine.folder() / "fit.toml").write_text('["device".values]\n"library" = "3 us"\n', encoding="utf-8")
    assert model_values(mine).settings["library"].text == "3 us"
    assert mine.hash() != before
    assert fit_place(mine, "library") == (mine.folder() / "fit.toml", "device")
    assert fit_place(mine, "packet") == (mine.folder() / "fit.toml", "device")
    (mine.folder() / "fit.toml").unlink()
    assert model_values(mine).settings["library"].text == shared


def test_the_hash_has_the_files_of_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = device(tmp_path)
    ours = paths.models_dir() / "_mpich1"
    assert mine.folders() == [mine.folder(), ours]
    other = Path(shutil.copytree(ours, tmp_path / "_mpich1", ignore=shutil.ignore_patterns("__pycache__")))
    before = mine.hash()
    monkeypatch.setattr(Mpich1, "folder", classmethod(lambda cls: other if cls is Mpich1 else tmp_path / "device"))
    (other / "fit.toml").write_text('["_mpich1".values]\n"library" = "6 us"\n', encoding="utf-8")
    assert mine.hash() != before
    assert model_values(mine).settings["library"].text == "6 us"
    (other / "fit.toml").write_text('["_mpich1".values]\n"library" = "6 ms"\n', encoding="utf-8")
    with pytest.raises(InputError, match="library"):
        model_values(mine)
