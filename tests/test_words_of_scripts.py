"""The words of scripts: each is marked and in the catalogue, and a page brings those it needs in its language."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from browser import browser
from cases import for_each
from script_texts import MARKS, texts, unmarked
from studio_app import app, resources

from retrompi import render, studio
from retrompi.base import translate
from retrompi.render.document import engine_words
from retrompi.render.document.plotted import words_script
from retrompi.sim.stages import ORDER, STAGE_WORDS
from retrompi.studio.anatomy.scene import STAGES

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "packaging"))
import messages

__all__ = ["app", "browser", "resources"]  # fixtures

SCRIPTS = sorted([*Path(studio.__file__).parent.glob("assets/*.js"), *Path(render.__file__).parent.glob("*.js")])

@for_each("file", SCRIPTS)
def test_no_text_of_a_script_is_left_unmarked(file: Path) -> None:
    left = list(unmarked(file.read_text(encoding="utf-8")))
    assert left == [], "texts for people go through _() of retrompiWords (docs/translating.md)"


def test_unmarked_texts_of_scripts_are_found() -> None:
    made = """
        e.textContent = "No such page"; e.title = `of ${n} messages`; f("in yards", 'Zoom out of it');
        g(`${a ? `arrived after ${t}` : _("it is under way")}`, lazy("all of them"), ngettext("{n} run of it", "{n} runs of it", n));
        document.querySelector("main input"); console.error("not for people"); const way = `${x} ${y}`, css = ".place rect";
    """
    assert [t for _line, t in unmarked(made)] == ["No such page", "of", "messages", "in yards", "Zoom out of it", "arrived after"]


@for_each("file", SCRIPTS)
def test_every_marked_text_of_a_script_is_in_the_catalogue(file: Path) -> None:
    """Also where Babel loses its way, in a template within a template."""
    place = str(file.relative_to(messages.ROOT))
    known = {text for (_context, one, many), places in messages.extracted().items() if place in places for text in (one, many)}
    assert {t.text for t in texts(file.read_text(encoding="utf-8")) if t.of in MARKS} == known - {""}


def test_scripts_get_the_texts_they_say_and_english_none() -> None:
    assert translate.of_scripts("studio/assets/") == {}
    with translate.speaking("fr"):
        said = translate.of_scripts("studio/assets/")
        assert (said["Copied"], said[""]) == ("Copié", "00" + "1" * 198)
        assert said["the message"] == "le message"
        assert "{from} to {to} ({span})" not in said, "of another script"
        chart = translate.of_scripts("render/timeline")
        assert chart["{n} message, drawn when fewer are in view"] == [
            "{n} message, dessiné quand il y en a moins à l'écran", "{n} messages, dessinés quand il y en a moins à l'écran",
        ]
    with translate.speaking(translate.PSEUDO):
        assert translate.of_scripts("studio/assets/")["Copied"] == "⟦Copied⟧"


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_page_brings_the_words_of_its_scripts(app: Any, language: str) -> None:
    answer = app.server.test_client().get("/anatomy", headers={"Accept-Language": language})
    found = re.search(r'<script type="application/json" id="studio-words">(.*?)</script>', answer.text)
    assert (found is None) == (language == "en")
    if found:
        assert json.loads(found[1])["the message"] == "die Nachricht"
        assert answer.text.index("studio-words") < answer.text.index("/assets/early.js"), "it is there before who reads it"


def test_a_script_says_numbers_and_plurals_as_gettext_does(browser: Any) -> None:
    page = browser.new_page()
    page.add_script_tag(content=words_script())
    one, many = "{n} message, drawn when fewer are in view", "{n} messages, drawn when fewer are in view"
    script = """([texts, one, many, numbers]) => {
        const { ngettext, fill, count } = retrompiWordsOf(texts);
        return numbers.map((n) => fill(ngettext(one, many, n), { n: count(n) }));
    }"""
    numbers = [0, 1, 2, 21, 100, 101, 1001, 1234567]
    for language in ("en", "de", "fr"):
        with translate.speaking(language):
            said = page.evaluate(script, [translate.of_scripts("render/timeline"), one, many, numbers])
            assert said == [translate.ngettext(one, many, n).format(n=translate.count(n)) for n in numbers]
    assert said[-1].startswith("1\u202f234\u202f567 messages")
    page.close()


def test_every_stage_has_a_name_in_each_language() -> None:
    assert set(STAGE_WORDS) == set(ORDER) >= set(STAGES)
    for language in ("de", "fr"):
        with translate.speaking(language):
            names = {engine_words.stage_name(s) for s in STAGES}
            assert len(names) == len(STAGES), "two stages with one name"
            same = {s for s in STAGES if engine_words.stage_name(s) == s}
            assert same <= {"interrupt", "quantum", "signal"}


@for_each(
    "name, long, short",
    [
        ("rank 3", "Rang 3", "Rang 3"), ("daemon on n1", "Daemon auf n1", "Daemon"), ("lamd on n1", "lamd auf n1", "lamd"),
        ("rank 0 of load", "Rang 0 von load", "Rang 0 von load"), ("server", "server", "server"), ("WAN", "WAN", "WAN"),
    ],
)
def test_processes_are_named_in_the_readers_language(name: str, long: str, short: str) -> None:
    assert engine_words.process_name(name) == name
    with translate.speaking("de"):
        assert (engine_words.process_name(name), engine_words.process_name(name, short=True)) == (long, short)
        assert engine_words.state_name("wait: room") == "Warten: Platz in einem Puffer"
        assert engine_words.outcome_name("deadlock") == "Verklemmung"
        assert engine_words.outcome_name("of another version") == "of another version"
