"""docs/studies.md works: its file is written, its commands run, and they print what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "studies.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def _commands() -> list[tuple[str, list[str]]]:
    out: list[tuple[str, list[str]]] = []
    for kind, body in BLOCKS:
        for line in body.splitlines() if kind == "console" else []:
            if line.startswith("$ "):
                out.append((line[2:], []))
            else:
                out[-1][1].append(line)
    return out


def _squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.usefixtures("here")
def test_the_page_does_what_it_says(retrompi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROMPI_STORE", "runs.db")
    (toml,) = (body for kind, body in BLOCKS if kind == "toml")
    Path("wires.toml").write_text(toml, encoding="utf-8")
    commands = _commands()
    assert len(commands) >= 15
    for command, promised in commands:
        program, *words = shlex.split(command)
        assert program == "retrompi"
        done = retrompi(*words)
        assert done.code == 0, (command, done.err)
        for line in promised:
            assert _squeezed(line) in _squeezed(done.out), (command, done.out)
    pages, numbers = ("wires.html", "curves.html", "heat.html"), ("wires.csv", "wires.csv.meta.json", "wires.json")
    for name in (*pages, *numbers, "wires.zip", "unpacked/study.toml"):
        assert Path(name).stat().st_size > 100, name
