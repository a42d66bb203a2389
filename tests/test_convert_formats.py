"""Formats of other packages, by entry points: traces are recognised, read and written; timelines are written."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from retrompi import convert, traces
from retrompi.base.errors import UsageError
from retrompi.convert import formats, timelines
from retrompi.convert.formats import Format, FormatOptions
from retrompi.convert.losses import Losses
from retrompi.sim.timeline import Timeline


def _is_counted(path: Path, head: bytes) -> bool:
    return head.startswith(b"counted ")


def _read(path: Path, losses: Losses, options: FormatOptions) -> traces.Trace:
    losses.add("everything", "but the number of barriers", str(path))
    n = int(path.read_text(encoding="utf-8").split()[1])
    return traces.parse([f"{rank} init\n" + f"{rank} barrier\n" * n + f"{rank} finalize\n" for rank in (0, 1)])


def _write(trace: traces.Trace, out: Path, losses: Losses, options: FormatOptions) -> None:
    out.write_text(f"counted {sum(a[1] == 'barrier' for a in trace.rank_actions(0))}", encoding="utf-8")


FORMAT = Format("counted", _is_counted, (".counted",), _read, _write)


def names_of_states(timeline: Timeline, path: Path) -> list[str]:
    """A format of timelines that has nothing but names."""
    path.write_text(" ".join(timeline.states), encoding="utf-8")
    return ["when anything was"]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The formats above, as if a package had declared them."""

    def declared(*, group: str) -> list[EntryPoint]:
        wanted = {formats.GROUP: ("counted", __name__), timelines.GROUP: ("states", f"{__name__}:names_of_states")}
        return [EntryPoint(*wanted[group], group)]

    known = (formats._modules, formats.find, timelines._others)
    for module in (formats, timelines):
        monkeypatch.setattr(module, "entry_points", declared)
    for one in known:
        one.cache_clear()
    yield
    for one in known:
        one.cache_clear()


@pytest.mark.usefixtures("added")
def test_a_format_of_another_package_is_recognised_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("counted 3", encoding="utf-8")
    made = convert.load(tmp_path / "x")
    assert (made.format, made.losses.total, made.trace.ranks) == ("counted", 1, 2)
    convert.save(made, tmp_path / "one.counted", "counted")
    assert convert.detect(tmp_path) == ("counted", tmp_path / "one.counted")  # it stands for its folder
    assert convert.load(tmp_path).trace.actions == made.trace.actions
    assert convert.names() == [*formats.BUILT_IN, "counted"]


@pytest.mark.usefixtures("added")
def test_a_timeline_format_of_another_package_has_its_ending(tmp_path: Path) -> None:
    assert timelines.check(tmp_path / "a.states") == tmp_path / "a.states"
    with pytest.raises(UsageError) as refused:
        timelines.check(tmp_path / "a.status")
    assert refused.value.code == "unknown-format"


def test_what_cannot_be_read_or_written_is_refused(tmp_path: Path) -> None:
    made = convert.Converted(traces.parse(["0 init\n0 finalize\n"]), "ti")
    for target in ("otf2", "dumpi", "nothing"):
        with pytest.raises(UsageError) as refused:
            convert.save(made, tmp_path / "out", target)
        assert refused.value.code == "unknown-format"
    (tmp_path / "x").write_text("0 init\n0 finalize\n", encoding="utf-8")
    with pytest.raises(UsageError):
        convert.load(tmp_path / "x", "smpi")
