"""Languages: which one is spoken, the catalogues, what of the studio is not translated, and the labs' translations."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from flask import g
from studio_app import app, resources
from unwrapped import unwrapped

from retrompi import studio
from retrompi.base import translate
from retrompi.base.errors import InputError, UsageError
from retrompi.labs import answers, lab, translated
from retrompi.spec import registry
from retrompi.spec.declare.fields import fields_of
from retrompi.studies.define import catalogue
from retrompi.studies.execute import design
from retrompi.studio.app import page_content
from retrompi.studio.requests.page import pages

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "packaging"))
import messages

__all__ = ["app", "resources"]  # fixtures


@for_each(
    "given, found",
    [
        ({}, "en"), ({"LANG": "de_DE.UTF-8"}, "de"), ({"LANG": "pt_BR.UTF-8", "LANGUAGE": "pt:fr:de"}, "fr"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "de"}, "en"), ({"LC_ALL": "fr_CH", "LANG": "de_DE"}, "fr"),
        ({"LANG": "de_AT@euro", "LC_ALL": ""}, "de"),
        ({"LANG": "en_GB.UTF-8", "LANGUAGE": "de"}, "de"), ({"LANG": "xx_YY", "LANGUAGE": "::"}, "en"),
    ],
)
def test_the_terminals_language_is_gettexts(given: dict[str, str], found: str) -> None:
    assert translate.of_environment(given) == found


def test_a_language_belongs_to_its_context() -> None:
    with translate.speaking("de"):
        assert (translate.language(), translate._("Copy link")) == ("de", "Link kopieren")
        with translate.speaking("fr"):
            assert translate._("Copy link") == "Copier le lien"
        assert [translate._(""), translate._("no such text")] == ["", "no such text"]
    assert (translate.language(), translate._("Copy link")) == ("en", "Copy link")
    with pytest.raises(UsageError, match="no language 'dee'; did you mean 'de'"):
        translate.use("dee")


@for_each(
    "address, accept, cookie, spoken",
    [
        ("/", "", None, "en"), ("/", "de-CH,de;q=0.9,en;q=0.8", None, "de"), ("/", "it,fr;q=0.5,de;q=0.4", None, "fr"),
        ("/", "de;q=0,en", None, "en"),
        ("/", "de", "fr", "fr"), ("/?lang=de", "fr", "fr", "de"), ("/?lang=xx", "fr", None, "fr"), ("/", "fr", "<b>", "fr"),
    ],
)
def test_address_cookie_and_browser_choose_the_language(
    app: Any,
    address: str,
    accept: str,
    cookie: str | None,
    spoken: str,
) -> None:
    browser = app.server.test_client()
    if cookie:
        browser.set_cookie("retrompi-language-80", cookie)
    answer = browser.get(address, headers={"Accept-Language": accept})
    assert f'<html lang="{spoken}">' in answer.text
    assert answer.headers["Content-Language"] == spoken
    if "?" in address and spoken == "de":  # kept across pages
        assert '<html lang="de">' in browser.get("/curves", headers={"Accept-Language": "fr"}).text


# -- what is translated --------------------------------------------------------------------------------------------------------

STUDIO = Path(studio.__file__).parent
UNTRANSLATED = {
    "guard.py": "refusals of requests, which are no pages",
    "slider_stops.py": "refusals of what no page posts",
    "timeline_frames.py": "a frame's policy, and a refusal",
    "queue.py": "why a job ended: error lines",
    "inputs.py": "errors about requests that no page of ours makes",
    "uploads.py": "errors about files",
    "slides.py": "slides are in English, and say so in their lang attribute",
}
"""Files of the studio whose words stay English, and why."""
WORDS_OF_MACHINES = {"Swap:", "protocol stack", "network card", "Gbps", "Mbps", "datagram ack", "ratio ends", "in advance …",
                     "labs in advance", "memory … … … …",
                     "… init\n… send … 0 … 6\n… recv … 0 … 6\n… finalize\n", "    retrompi pingpong ",
                     "    retrompi explain "}
"""Texts of the studio that nobody reads as words: keys, units, the lines of a trace."""


@for_each("file", sorted(f for f in STUDIO.rglob("*.py") if f.name not in UNTRANSLATED))
def test_no_text_of_the_studio_is_left_unmarked(file: Path) -> None:
    left = [(line, text) for line, text in unwrapped(file) if text not in WORDS_OF_MACHINES]
    assert left == [], "texts for people go through _() or lazy() (docs/translating.md)"


def test_unmarked_texts_are_found(tmp_path: Path) -> None:
    made = tmp_path / "page.py"
    shown = 'html.P("No such page"), f"run {n} of the store", _("a b"), html.A("in yards", href="a b")'
    made.write_text(f'def f(n):\n    """Doc of it."""\n    return [{shown}]\n')
    assert [text for _line, text in unwrapped(made)] == ["No such page", "run … of the store", "in yards"]


TEMPLATES = sorted((STUDIO.parent / "classroom" / "templates").glob("*.html"))
_MARKED = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|<!doctype html>", re.DOTALL)


def left_in(template: str) -> list[str]:
    """The words of a template that do not go through ``_()``: between tags, and in the attributes that people read."""
    plain = _MARKED.sub("", template)
    read = re.findall(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"', plain)
    return [w for text in [*read, re.sub(r"<[^>]*>", "\n", plain)] for w in re.findall(r"[^\W\d_]{3,}", text)]


@for_each("file", TEMPLATES)
def test_no_text_of_the_courses_pages_is_left_unmarked(file: Path) -> None:
    names = {"retrompi", "studio"} | set(re.findall(r"\w+", "abcd-efgh Europe/Berlin teacher ann.bee bo.cole"))
    assert set(left_in(file.read_text(encoding="utf-8"))) <= names


def test_unmarked_texts_of_templates_are_found() -> None:
    assert left_in('<p title="see below">{{ _("Marks") }} of <b>{{ n }}</b> tasks</p>') == ["see", "below", "tasks"]


@pytest.mark.parametrize("language", [which for which in translate.languages() if which != translate.ENGLISH])
def test_a_catalogue_has_every_text_of_the_code_and_each_is_translated(language: str) -> None:
    known = {messages.key(e): e for e in messages.read(language)}
    assert set(known) == set(messages.extracted()), "out of step with the code: make messages"
    for entry in known.values():
        assert entry.translated(), f"not translated, or fuzzy: {entry.msgid}"
        said = [entry.msgstr] if not entry.msgid_plural else list(entry.msgstr_plural.values())
        for text in said:
            assert _fields(text) == _fields(entry.msgid_plural or entry.msgid), entry.msgid
            ends = [(t[:1] in " \u202f", t[-1:] == " ") for t in (text, entry.msgid)]
            assert ends[0] == ends[1] or text[0] == "\u202f", entry.msgid
            if language == "fr":
                assert not re.search(r"[^\W\d_][;?!]|« | »|[^\W\d_] [;:?!]", re.sub(r"\{[^}]*\}|'[^']*'|\?\)", "0", text)), entry.msgid
            if language == "de":
                assert not re.search(r"[“”]\w|\w„|«|»", text), entry.msgid


def _fields(text: str) -> list[str]:
    return sorted(re.findall(r"(?<!\{)\{[^{}]*\}(?!\})", text))


HEADS = ("H1", "H2", "H3", "Button", "Label", "Legend", "Caption", "Title")
"""Components whose words are the studio's own."""


@for_each("path", [p.path for p in pages()])
def test_a_page_has_no_head_or_label_that_is_not_translated(app: Any, resources: Any, path: str) -> None:
    """In a language in which every translated text stands in brackets, whatever stands outside of them is the data's, or was forgotten."""
    with app.server.test_request_context(path), translate.speaking(translate.PSEUDO):
        g.session = "a" * 30
        content, title = page_content(path, "", resources)
    assert title.startswith("⟦")
    found = {text for kind, text in _heads(content) if kind in HEADS}
    left = {t for text in found for t in [re.sub(r"⟦[^⟦⟧]*⟧", "", re.sub(r"⟦[^⟦⟧]*⟧", "", text)).strip()] if re.search(r"[A-Za-z]{3,}", t)}
    assert found
    assert left - _names() == set()


def _names() -> set[str]:
    """Names, which are the same in every language."""
    titles = {cls.title for cls in registry.models().values()} | {resources.title for resources in registry.platforms().values()}
    titles |= {study.title for study in design.studies().values()}  # data, as the rest of a study
    return {*titles, *registry.model_names(), *registry.platform_names(), *catalogue.scenario_names(), *design.studies()}


def _heads(component: Any, kind: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(component, (list, tuple)):
        for one in component:
            yield from _heads(one, kind)
    elif isinstance(component, str):
        yield kind, component
    elif hasattr(component, "to_plotly_json") and type(component).__name__ not in ("Code", "Store"):
        yield from _heads(getattr(component, "children", None) or (), type(component).__name__)


@pytest.mark.parametrize("path", ["/models", "/platforms", "/whatif"])
def test_what_stays_english_says_so(app: Any, resources: Any, path: str) -> None:
    """Descriptions and sources of parameters are the evidence's own words: a screen reader is told their language (WCAG 3.1.2)."""
    with app.server.test_request_context(path), translate.speaking("de"):
        g.session = "a" * 30
        content, _title = page_content(path, "?model=wmpi" if path != "/platforms" else "?platform=nt-pair", resources)
    marked = set(_english(content))
    server = registry.platform("nt-pair").host("server")
    helps = [p.help for p in registry.model("wmpi").params().values()] if path != "/platforms" else [
        f.help for f in fields_of(type(server)).values()
    ]
    shown = {h for h in helps if any(h in text for _kind, text in _heads(content))}
    assert shown
    assert {h for h in shown if not any(h in text for text in marked)} == set()


def _english(component: Any, within: bool = False) -> Iterator[str]:
    """The texts below an element whose lang is English."""
    if isinstance(component, (list, tuple)):
        for one in component:
            yield from _english(one, within)
    elif isinstance(component, str):
        yield from [component] if within else []
    elif hasattr(component, "to_plotly_json"):
        yield from _english(getattr(component, "children", None) or (), within or getattr(component, "lang", "") == "en")


# -- labs ----------------------------------------------------------------------------------------------------------------------

LABS = sorted(f.parent for f in (Path(__file__).parent.parent / "labs").glob("*/lab.toml"))
TRANSLATED = [(folder, language) for folder in LABS for language in translated.languages_of(folder)]


def test_the_first_three_labs_are_translated() -> None:
    assert {(f.name[:2], language) for f, language in TRANSLATED} >= {(k, which) for k in ("01", "02", "03") for which in ("de", "fr")}


@for_each("folder, language", TRANSLATED)
def test_a_labs_translation_is_whole_and_follows_the_english(folder: Path, language: str) -> None:
    assert messages.stale(folder, language) == [], "translate these, then: make messages-labs"
    english, said = translated.english(folder), translated.translated_texts(folder, language)
    for name, text in english.items():
        fields = re.compile(r"\{[a-z][a-z0-9_]*(?::arg)?\}|BF-[A-Z]+-\d+[a-z]?|`[^`]*`|\[task [^]]*\]")
        assert set(fields.findall(said[name])) == set(fields.findall(text)), name
        if ".levels." in name:
            assert said[name].partition(":")[0] == text.partition(":")[0], name
    plain, other = ([line for line in translated.text_file(folder, which).read_text(encoding="utf-8").splitlines()
                     if line.startswith(("    ", "[task"))] for which in ("en", language))
    assert plain == other, "commands and places of tasks are the same in every language"


def test_a_choice_is_shown_in_the_language_and_answered_in_either() -> None:
    made = lab.load(LABS[0], "de")
    task = made.task("better")
    assert made.language == "de"
    assert [task.choice_text(c) for c in task.choices] == ["halbe Bibliotheksarbeit", "doppelte Kopierrate"]
    for written in ("Doppelte Kopierrate", "twice the copy rate"):
        assert answers.value(task, answers.Given(written, written)) == "twice the copy rate"
    assert lab.load(LABS[0], "it").title == lab.load(LABS[0], "en").title
    assert not [f for f in made.files if translated.FILE.fullmatch(f.name)], "a student gets no translations as files"


def test_a_decimal_comma_is_explained_in_the_language() -> None:
    task = lab.load(LABS[0], "de").task("startup")
    says = "„3,5 ms“ hat ein Dezimalkomma; schreiben Sie einen Punkt"
    with translate.speaking("de"), pytest.raises(answers.UnreadableAnswer, match=says):
        answers.value(task, answers.Given("3,5 ms", "3,5 ms"))


def test_a_translation_that_names_what_the_lab_has_not_is_refused(tmp_path: Path) -> None:
    for f in LABS[0].iterdir():
        if f.is_file() and f.suffix in (".toml", ".md", ".py"):
            (tmp_path / f.name).write_bytes(f.read_bytes())
    (tmp_path / "lab.de.toml").write_text('[task.startpu]\nquestion = "?"\n')
    with pytest.raises(InputError, match=r"lab\.de\.toml: \[task\]: lab\.toml has no 'startpu'; did you mean 'startup'"):
        lab.load(tmp_path, "de")


def test_the_command_line_speaks_the_terminals_language(retrompi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "fr_FR.UTF-8")
    monkeypatch.setenv("LC_ALL", "")
    monkeypatch.setenv("LANGUAGE", "")
    assert "Latence et débit d'après une courbe PingPong" in retrompi("lab", "show", "1").out
    assert "Latenz und Bandbreite aus einer PingPong-Kurve" in retrompi("lab", "--language", "de", "show", "1").out
    assert "no language 'xx'" in retrompi("lab", "--language", "xx", "list").err
    assert translate.language() == "en"
