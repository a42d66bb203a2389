"""The labs' glossary: every term has an entry and a source, is used by a lab, and is linked at its first use."""

from __future__ import annotations

import re
from pathlib import Path

from cases import for_each

from retrompi.labs import glossary, work
from retrompi.labs import lab as _lab
from retrompi.labs import text as _text
from retrompi.labs.student import draw
from retrompi.studio.labs.lab_page import Mine, step_view
from retrompi.studio.labs.lab_text import steps

TRANSLATED = ("01", "02", "03")


def _used(lab: _lab.Lab) -> list[glossary.Term]:
    return glossary.link_terms(lab.text, glossary.terms(lab.language), set())[1]


def test_every_term_is_used_and_every_lab_uses_some() -> None:
    used = {lab.key: [t.name for t in _used(lab)] for lab in _lab.labs()}
    assert all(used.values())
    assert {t.name for t in glossary.terms()} == {n for names in used.values() for n in names}


@for_each("language", ["de", "fr"])
@for_each("key", TRANSLATED)
def test_the_terms_of_a_translated_lab_are_in_its_language(key: str, language: str) -> None:
    lab = _lab.load(_lab.lab(key).folder, language)
    found = _used(lab)
    assert len(found) >= 4
    assert [t.name for t in found if t.language != language] == []
    if language == "fr":
        assert not any(re.search(r"[^\W\d_] ?[;?!]|[^\W\d_] ?:", t.text.replace("\u00a0", "0").replace("\u202f", "0")) for t in found)


def test_only_the_first_use_is_linked_and_none_in_code_or_headings() -> None:
    given = "## A PingPong\n\n    retrompi pingpong\n\n`PingPong` and [PingPong](x.md): PingPongs and a PingPong.\n"
    (term,) = [t for t in glossary.terms() if t.name == "pingpong"]
    seen: set[str] = set()
    text, used = glossary.link_terms(given, [term], seen)
    assert used == [term]
    assert text == given.replace("PingPongs", "[PingPongs](#term-pingpong)")
    assert glossary.link_terms(given, [term], seen) == (given, [])


@for_each("name", _lab.lab_names())
def test_a_step_has_an_entry_for_every_link_of_its_text(name: str) -> None:
    lab = _lab.lab(name)
    begun = work.begin(lab, "ann")
    found = steps(lab, begun)
    links = [n for s in found for p in s.pieces for n in re.findall(r"\]\(#term-([a-z-]+)\)", p.text)]
    assert len(links) == len(set(links)), "linked more than once"
    for number, step in enumerate(found):
        here = [n for p in step.pieces for n in re.findall(r"\]\(#term-([a-z-]+)\)", p.text)]
        assert here == [t.name for t in sorted(step.terms, key=lambda t: here.index(t.name))]
        shown = str(step_view(lab, begun, found, number, Mine()))
        assert all(f"id='term-{n}'" in shown for n in here)


def test_a_students_folder_has_the_terms_of_its_lab() -> None:
    lab = _lab.lab("03")
    readme = _text.render_readme(lab, draw(lab, "ann"), "ann")
    assert "## Terms" in readme
    assert "- **proxy process**: " in readme.split("## Terms")[1]


def test_the_page_of_the_glossary_has_a_place_for_them() -> None:
    page = Path(__file__).resolve().parents[1] / "docs" / "glossary.md"
    assert "<!-- terms of the labs -->" in page.read_text(encoding="utf-8")
