"""The studio without a browser: its pages and the state in the address (test_studio_browser.py has a browser)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from studio_app import app, draw, every, resources, words

from retrompi.studio.app import page_content
from retrompi.studio.jobs.resources import Resources
from retrompi.studio.requests import state
from retrompi.studio.requests.page import Page, modules, pages
from retrompi.studio.requests.state import Control, Query

__all__ = ["app", "draw", "resources"]  # fixtures

PATHS = [p.path for p in pages()]


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
class TestPage:
    def test_says_what_it_is(self, path: str) -> None:
        page: Page = modules()[path].PAGE
        assert re.fullmatch(r"/[a-z]*", page.path)
        assert page.title
        assert page.help.endswith(".")
        assert "\n" not in page.help
        assert len({p.order for p in pages()}) == len(pages()), "two pages have the same place in the navigation"
        assert len({c.key for c in page.controls}) == len(page.controls)

    def test_is_drawn_with_its_controls_under_one_id_each(self, path: str, draw: Any) -> None:
        content, title = draw(path)
        page: Page = modules()[path].PAGE
        assert title == page.title
        ids = [json.dumps(i, sort_keys=True) for c in every(content) if (i := getattr(c, "id", None)) is not None]
        assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
        for control in page.controls:
            assert json.dumps(control.id) in ids, control.id
            assert control.id.startswith(f"{page.name}-")
        assert not any("in this link" in words(c) for c in every(content) if "notice" in (getattr(c, "className", "") or ""))

    def test_a_link_that_means_nothing_is_told_and_shown_without(self, path: str, draw: Any) -> None:
        page: Page = modules()[path].PAGE
        hostile = "../../etc/passwd<script>alert(1)</script>"
        query = "&".join(f"{c.key}={hostile}" for c in page.controls) + "&nonsense=1"
        content, _ = draw(path, f"?{query}")
        if page.controls:
            assert "'nonsense' in this link means nothing here" in words(content)

    def test_a_text_from_outside_is_a_text_and_nothing_else(self, path: str, draw: Any) -> None:
        page: Page = modules()[path].PAGE
        content, _ = draw(path, "?" + "&".join(f"{c.key}=<b>x</b>" for c in page.controls))
        kinds = {type(c).__name__ for c in every(content)}
        assert not kinds & {"Script", "Markdown", "ObjectEl", "Embed", "Base"}
        frames = [c for c in every(content) if type(c).__name__ == "Iframe"]  # a timeline, which the server keeps and fills in
        assert all(f.sandbox == "allow-scripts" and not getattr(f, "src", "") and not getattr(f, "srcDoc", "") for f in frames)
        for c in every(content):
            for attribute in ("href", "src"):
                assert not str(getattr(c, attribute, "") or "").lower().lstrip().startswith(("http", "//", "javascript:", "data:text")), c

    def test_every_control_has_a_name(self, path: str, draw: Any) -> None:
        """By a label around it, a label for it, or a legend around the group."""
        content, _ = draw(path)
        wanted = {"Input", "Dropdown", "RadioItems", "Checklist", "Slider", "Textarea"}
        labelled = [c.htmlFor for c in every(content) if type(c).__name__ == "Label" and getattr(c, "htmlFor", None)]
        inside = {id(i) for c in every(content) if type(c).__name__ in ("Label", "Fieldset") for i in every(c.children)}
        shown = [c for c in every(content) if type(c).__name__ in wanted and getattr(c, "type", None) != "hidden"]
        nameless = [c.id for c in shown if c.id not in labelled and id(c) not in inside]
        assert not nameless


def test_a_page_that_is_not_there_is_one_line(resources: Resources) -> None:
    content, _ = page_content("/no-such", "", resources)
    assert "there is no page '/no-such'" in words(content)


# -- the state in the address ------------------------------------------------------------------------------------------

CONTROLS = (
    Control("t-text", "value", "text", "", state.text(50)),
    Control("t-choice", "value", "choice", "one", state.choice(["one", "two", "three & four"])),
    Control("t-number", "value", "number", 3, state.number(-1e6, 1e6)),
    Control("t-flag", "value", "flag", False, state.flag),
    Control("t-list", "value", "list", ["a"], state.text(50)),
    Control("t-named", "data", "set", {}, state.text(120)),
)
PRINTABLE = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=20).filter(str.isprintable)
NAMES = st.from_regex(r"[a-z]{1,8}(\.[a-z_]{1,8}){0,2}", fullmatch=True)


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries({
        "text": PRINTABLE,
        "choice": st.sampled_from(["one", "two", "three & four"]),
        "number": st.floats(-1e6, 1e6, allow_nan=False),
        "flag": st.booleans(),
        "list": st.lists(PRINTABLE.filter(bool), max_size=4, unique=True),
        "set": st.dictionaries(NAMES, PRINTABLE.filter(bool), max_size=4),
    })
)
def test_what_is_written_into_an_address_is_read_out_of_it(values: dict[str, Any]) -> None:
    search = state.encode(CONTROLS, values)
    assert re.fullmatch(r"(\?[A-Za-z0-9%&=._~-]+)?", search)
    got, wrong = state.read(CONTROLS, Query(search))
    assert wrong == []
    assert got == values


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_address_gives_values_and_lines(search: str) -> None:
    values, wrong = state.read(CONTROLS, Query(search))
    assert set(values) == {c.key for c in CONTROLS}
    assert all("\n" not in line and len(line) < 1000 for line in wrong)


def test_what_is_at_its_default_is_not_written() -> None:
    assert state.encode(CONTROLS, {c.key: c.default for c in CONTROLS}) == ""
    assert state.link("/p", CONTROLS, choice="two") == "/p?choice=two"
    assert state.read(CONTROLS, Query("?list="))[0]["list"] == []


def test_a_link_that_is_too_long_is_told() -> None:
    values, wrong = state.read(CONTROLS, Query("?text=" + "x" * 9000))
    assert values["text"] == ""
    assert "longer than a link" in wrong[0]
