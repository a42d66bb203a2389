"""docs/add-a-platform.md: its files are read as the page says; tests/test_docs_commands.py runs its commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from doc_pages import blocks

from retrompi.base import paths
from retrompi.spec import registry
from retrompi.spec.machine import machines

FILES = {b.title: b.text for b in blocks("docs/add-a-platform.md") if b.title}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The page's files in a folder."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_its_files_are_a_host_a_network_and_a_platform_of_five_lines() -> None:
    assert sorted(FILES) == ["hosts/nt4-p6-180.toml", "lab.toml", "networks/isa-10.toml"]
    assert len(FILES["lab.toml"].splitlines()) == 5
    assert not {Path(name).stem for name in FILES} & {*machines.host_names(), *machines.network_names(), *registry.platform_names()}


def test_they_are_the_platform_that_the_page_describes(written: Path) -> None:
    room = registry.platform(str(written / "lab.toml"))
    assert [h.clock for h in room.hosts] == [180e6] * 4 + [133e6] * 2
    assert room.hosts[0].speed == pytest.approx(180 / 150)
    assert room.hosts[0].nic_rate == 2e6
    assert room.link.kind == "hub"
    assert room.quantities["n1.syscall"].source == "assumed: nt4-p6-150's 4 us (doc:E-LM-10) by the ratio of speeds"
    assert room.quantities["n1.quantum"] == machines.host("nt4-p6-150").quantities["quantum"]


def test_in_the_users_folder_they_work_from_everywhere(written: Path) -> None:
    shutil.copytree(written, paths.user_platforms_dir())
    assert "lab" in registry.platform_names()
    assert registry.platform("nt4-p6-180*4+nt4-p54-133*2@isa-10").hash == registry.platform("lab").hash
