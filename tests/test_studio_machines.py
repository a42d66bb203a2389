"""The library of machines in the studio: its menus, and platforms that an address composes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cases import for_each
from studio_app import app, draw, every, resources, words

from retrompi.spec.machine import machines
from retrompi.studio.components import menus

__all__ = ["app", "draw", "resources"]


def test_every_host_is_offered_and_compositions_of_limited_size_are_taken_but_no_paths(tmp_path: Path) -> None:
    offered = [option["value"] for option in menus.platforms("nt4-p6-200*7@hub-10")]
    assert {f"{name}*2@switch-100" for name in machines.host_names()} < set(offered)
    assert offered[-1] == "nt4-p6-200*7@hub-10"
    assert all(map(menus.is_platform, offered))
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nhosts = "nt4-p6-200*3"\nnetwork = "hub-10"\n', encoding="utf-8")
    for name in ("nt4-p6-200*65@hub-10", str(file), "nt4-p6-201*2@hub-10", "nt4-p6-200*2@hub-11", "nt-pair*9", "", None):
        assert not menus.is_platform(name)


@for_each("path", ["/platforms", "/curves", "/whatif", "/replay", "/anatomy", "/models"])
def test_a_page_takes_a_composition_from_its_address(path: str, draw: Any) -> None:
    content, _ = draw(path, "?platform=nt4-p6-200%2A7%40hub-10")
    assert not [words(c) for c in every(content) if "notice" in (getattr(c, "className", "") or "") and "in this link" in words(c)]
    menu = next(c for c in every(content) if str(getattr(c, "id", "")).endswith("-platform") and hasattr(c, "options"))
    assert menu.value == "nt4-p6-200*7@hub-10"
    assert menu.value in [option["value"] for option in menu.options]
