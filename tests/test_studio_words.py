"""What the studio's pages show in a browser, in a language in which every translated text stands in brackets: nothing else is left of
English but names, and what the evidence says itself, which tells screen readers so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Seen, Server, browser, session, settled, until
from cases import for_each

from retrompi.base.translate import PSEUDO
from retrompi.papers import all_papers
from retrompi.render.figures.figures import name_of
from retrompi.spec import registry
from retrompi.studies.define import catalogue
from retrompi.studies.execute import design
from retrompi.studio.requests.page import pages

__all__ = ["browser"]  # a fixture

LEFT = Path(__file__).with_name("left.js").read_text(encoding="utf-8")
SPEAKING = f"""
import runpy
from retrompi.base import translate
translate.languages = lambda: ["en", "de", "{PSEUDO}"]
runpy.run_module("retrompi.cli.main", run_name="__main__", alter_sys=True)
"""


class Pseudo(Server):
    """A studio that may be asked for the language of brackets."""

    program = ("-c", SPEAKING)


@pytest.fixture(scope="module")
def reader(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Seen]]:
    with Pseudo(tmp_path_factory.mktemp("pseudo")) as server, session(browser, server, "projector") as (page, seen):
        page.goto(f"/?lang={PSEUDO}")
        settled(page)
        yield page, seen


IDS = re.compile(r"\b[0-9a-f]{12}\b|\bTable \d\b|\b[A-Z]{1,3}(?:-[A-Za-z0-9]+)+\b|\b[\w-]+/[\w./-]+|\b[\w:-]+\.[\w.:-]+")
"""Hashes, ids of statements and of other evidence, files, parameters with their runtime."""
AMOUNTS = re.compile(r"\d(?:[\d.,\u202f]| \.\. )* ?(?:[KMG](?:i?B)?|[KMG]Hz|M[Bb](?:yte)?/s|Mflop/s|[KMG]?bit/s)\b")


def _names() -> re.Pattern[str]:
    """Names, which are the same in every language."""
    scenarios = catalogue.scenarios()
    some = ["retrompi studio", "baker-fox-long", "TCP", "UDP", "DMA", *registry.model_names(), *scenarios, *design.studies(), *all_papers()]
    some += [t for cls in registry.models().values() for t in (cls.title, name_of(cls.name))]
    some += [s.title for s in scenarios.values() if s.title]
    for name, room in registry.platforms().items():
        some += [name, room.title, room.link.kind, *(n for h in room.hosts for n in (h.name, h.os))]
    return re.compile(r"(?<![\w/])(?:" + "|".join(map(re.escape, sorted(set(some), key=len, reverse=True))) + r")(?![\w.-])")


ADDRESSES = [
    *(p.path for p in pages()), "/anatomy?view=two&way=back&mode=distributed", "/whatif?set=wmpi.packet%3D16KiB",
    "/replay?trace=made:send_first&size=1MiB&mode=shared", "/curves?series=time&y=linear",
]


@for_each("address", ADDRESSES)
def test_nothing_but_names_is_left_in_english(reader: tuple[Any, Seen], address: str) -> None:
    page, seen = reader
    seen.errors.clear()
    page.goto(address)
    page.wait_for_selector("main h1", state="visible")
    for _ in range(2):  # a job may begin when another has ended
        page.wait_for_timeout(400)
        until(page, "looked.settled()")
    said, left = 0, []
    for frame in page.frames:
        found = frame.evaluate(LEFT)
        said += found["said"]
        for where, text in found["left"]:
            plain = IDS.sub(" ", AMOUNTS.sub(" ", NAMES.sub(" ", text)))
            if re.search(r"[A-Za-z]{3,}", plain):
                left.append((where, plain.strip()))
    assert said > 30, "what is translated is seen"
    assert "\n".join(map(str, left)) == ""
    assert seen.errors == []


NAMES = _names()
