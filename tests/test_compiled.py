"""What is compiled on the user's machine is announced, and a build that was killed does not begin from nothing."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from retrompi.measure.record import compiled
from retrompi.measure.record.errors import RecordError
from retrompi.measure.record.library import Compiler

plugin = importlib.import_module("retrompi.measure.smpi.plugin")  # the package has a function of that name


def test_a_first_build_is_announced_and_clears_what_a_killed_one_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "cache"
    (folder / "making-killed").mkdir(parents=True)
    for _ in range(2):
        made = compiled.build_once(folder / "thing", lambda path: path.write_text("x") and None, what="the thing")
    assert made.read_text() == "x"
    assert capsys.readouterr().err == f"note: building the thing, once; it is kept in {folder}\n"
    assert [p.name for p in folder.iterdir()] == ["thing"]


def test_a_killed_build_of_the_plug_in_keeps_its_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_now: list[str] = []
    enough = 2

    def compile_to(command: Sequence[str], what: str, *_: Any) -> None:
        if "-c" in command and len(compiled_now) == enough:
            raise RecordError("killed")
        compiled_now.append(what)
        Path(command[command.index("-o") + 1]).write_text("object")

    monkeypatch.setattr(plugin, "compile_to", compile_to)
    monkeypatch.setattr(plugin.os, "cpu_count", lambda: 1)
    c = Compiler("smpicc", "smpi", (), "header")
    reported: list[tuple[int, int]] = []

    def build() -> Path:
        library = tmp_path / "so" / "lib.so"
        return compiled.build_once(library, lambda p: plugin._make(p, c, "smpicxx", lambda i, n, _: reported.append((i, n))))

    with pytest.raises(RecordError, match="killed"):
        build()
    assert len(list((tmp_path / "so" / "objects").iterdir())) == enough
    first, enough = len(compiled_now), 10**6
    assert build().is_file()
    batches = len(plugin._batches())
    assert sorted(s for batch in plugin._batches() for s in batch) == sorted(plugin._sources())
    assert len(compiled_now) - first == batches - 2 + 1  # what was missing, and the link
    assert reported[-1] == (batches + 1, batches + 1)
    assert not (tmp_path / "so" / "objects").exists()


def test_a_fortran_program_that_was_killed_is_told_of_the_known_defect(tmp_path: Path) -> None:
    from retrompi.measure.launch.backend_smpi import why_killed

    binary = tmp_path / "a.out"
    binary.write_bytes(b"\x7fELF...libgfortran.so.5...")
    for program, fortran in ((tmp_path / "split.F90", True), (binary, True), (tmp_path / "split.c", False)):
        line = why_killed(program)
        assert ("MPI_COMM_NULL" in line) is fortran
        assert "a rank's stack has" in line
