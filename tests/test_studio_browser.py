"""The studio in a real browser: what a teacher and a student do with it, on a phone and on a projector, by hand and by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser import SIZES, WAIT_MS, Seen, Server, browser, session, settled, studio, until, walk

from retrompi.studio.components.parameters import slots
from retrompi.studio.requests.page import pages

__all__ = ["browser", "studio"]  # fixtures

PATHS = [p.path for p in pages()]


@pytest.fixture(scope="module")
def reader(browser: Any, studio: Server) -> Iterator[tuple[Any, Seen]]:
    """One visitor who reads every page: what a browser keeps of the first it need not ask for again."""
    with session(browser, studio, "phone") as (page, seen):
        yield page, seen


@pytest.fixture(scope="module", params=PATHS)
def drawn(request: pytest.FixtureRequest, reader: tuple[Any, Seen]) -> Any:
    """A page that has been drawn at a phone's width, once for all tests that ask for it."""
    page, seen = reader
    seen.errors.clear()
    page.set_viewport_size(dict(zip(("width", "height"), SIZES["phone"], strict=True)))
    page.goto(request.param)
    settled(page)
    return page


@pytest.fixture
def opened(drawn: Any, reader: tuple[Any, Seen]) -> Iterator[Any]:
    """That page at a phone's width, without an error on the console."""
    drawn.set_viewport_size(dict(zip(("width", "height"), SIZES["phone"], strict=True)))
    drawn.emulate_media(color_scheme="light")
    yield drawn
    assert reader[1].errors == [], "the page complains on the console"
    assert reader[1].foreign == [], "the page asks another host for something"


class TestEveryPage:
    """A new page is tested without a line of code here."""

    def test_fits_every_screen_and_is_told_from_what_is_behind_it(self, opened: Any) -> None:
        for size, (width, height) in SIZES.items():
            opened.set_viewport_size({"width": width, "height": height})
            assert opened.evaluate("looked.overflow()") == [], f"it is wider than a {size}"
        for scheme in ("light", "dark"):
            opened.emulate_media(color_scheme=scheme)
            assert opened.evaluate("looked.contrast()") == [], f"too little contrast in the {scheme}"

    def test_is_reached_and_used_by_keyboard(self, opened: Any) -> None:
        wanted = opened.evaluate("looked.controls()")
        seen = walk(opened)
        assert len(seen) > 5
        assert seen[0]["name"] == "Skip to the page"
        assert [e["what"] for e in seen if not e["name"]] == [], "controls without a name"
        unseen = [e["what"] for e in seen if not e["ring"] and not e["what"].startswith("iframe")]  # a frame's own document shows it
        assert unseen == [], "controls on which one does not see the focus"
        assert [w for w in wanted if w not in {e["what"] for e in seen}] == [], "controls that TAB does not reach"

    def test_has_one_heading_a_title_and_landmarks(self, opened: Any) -> None:
        assert opened.locator("h1").count() == 1
        assert "retrompi" in opened.title()
        assert opened.locator("h1").inner_text() in opened.title() or urlsplit(opened.url).path == "/"
        for landmark in ("header", "main"):
            assert opened.locator(f"#studio {landmark}").count() == 1
        names = opened.evaluate("[...document.querySelectorAll('#studio nav')].map((n) => n.ariaLabel)")
        assert all(names)
        assert len(set(names)) == len(names) > 0
        levels = opened.evaluate("[...document.querySelectorAll('main :is(h1,h2,h3,h4)')].map((h) => +h.tagName[1])")
        assert all(b <= a + 1 for a, b in pairwise(levels)), f"a level of headings is left out: {levels}"
        unlabelled = opened.evaluate(
            "[...document.querySelectorAll('main :is(input, select, textarea, [role=combobox], [role=slider])')].filter((e) =>"
            " e.type !== 'hidden' && e.ariaHidden !== 'true' && e.checkVisibility() && !e.labels?.length && !e.ariaLabel"
            " && !e.getAttribute('aria-labelledby')).map((e) => e.outerHTML.slice(0, 200))"
        )
        assert unlabelled == []
        for label in opened.locator(".field > label[for]").all():
            words, target = label.inner_text(), label.get_attribute("for")
            assert opened.get_by_label(words, exact=False).count(), f"nothing is called '{words}' ({target})"


def choose(page: Any, label: str, option: str) -> None:
    """Choose from a dropdown by its label, as a hand does."""
    for _ in range(30):  # a list that opens while the page is still being put together closes again
        page.get_by_label(label, exact=False).first.click()
        page.wait_for_timeout(400)
        if page.locator(".dash-dropdown-content").count():
            break
    page.locator(".dash-dropdown-content").get_by_text(option, exact=False).first.click()


def drop(trace: dict[str, Any]) -> float:
    """The message size (B) at which a curve's bandwidth falls most against the size before it."""
    falls = [(b / a, x) for a, b, x in zip(trace["y"], trace["y"][1:], trace["x"][1:], strict=False)]
    return float(min(falls)[1])


def curve(page: Any, name: str) -> dict[str, Any]:
    """The line of the what-if figure whose name begins so, once it is drawn and nothing is under way."""
    until(page, f"(looked.traces('whatif-figure') || []).some((t) => t.name.startsWith('{name}')) && looked.settled()")
    found: list[dict[str, Any]] = page.evaluate("looked.traces('whatif-figure')")
    return next(t for t in found if t["name"].startswith(name))


def slide(page: Any, parameter: str, wanted: str, key: str) -> None:
    """Move a parameter's slider by the keyboard until its text is ``wanted``; what a step comes to is waited for."""
    slot = page.locator(f"[data-name='{parameter}']")
    slot.locator("input[type=range]").focus()
    for _ in range(40):
        before = slot.locator(".typed input").input_value()
        if before == wanted:
            return
        page.keyboard.press(key)
        until(page, f"document.querySelector(\"[data-name='{parameter}'] .typed input\").value !== '{before}'")
    raise AssertionError(f"the slider of {parameter} never came to {wanted}")


class TestWhatIf:
    def test_the_collapse_moves_with_the_packet_slider(self, browser: Any, studio: Server) -> None:
        """The handshake begins above the pool's buffer class of a largest packet: a quarter of it, a quarter of the size."""
        with session(browser, studio) as (page, seen):
            page.goto("/whatif?model=hpvm")
            settled(page)
            choose(page, "Runtime", "WMPI")
            assert drop(curve(page, "WMPI as it was")) == 512 << 10
            slide(page, "wmpi.packet", "32 KiB", "ArrowLeft")
            until(page, "location.search.includes('wmpi.packet%3D32')")
            moved = curve(page, "changed")
            assert drop(moved) == 128 << 10
            assert drop(curve(page, "WMPI as it was")) == 512 << 10, "the curve as it was stays beside it"
            assert "wmpi.packet=32" in page.locator("#whatif-command").inner_text(), "the same on the command line"
            assert seen.errors == []

    def test_a_slider_is_moved_by_the_mouse(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/whatif")
            settled(page)
            first = curve(page, "WMPI as it was")
            slider = page.locator("[data-name='wmpi.library'] input[type=range]")
            slider.scroll_into_view_if_needed()
            bar = slider.bounding_box()
            page.mouse.move(bar["x"] + bar["width"] * 0.9, bar["y"] + bar["height"] / 2)
            page.mouse.down()
            page.mouse.move(bar["x"] + bar["width"] * 0.2, bar["y"] + bar["height"] / 2, steps=4)
            page.mouse.up()
            changed = curve(page, "changed")
            assert changed["y"][3] > first["y"][3], "less library work, more bandwidth of small messages"
            assert seen.errors == []

    @pytest.mark.parametrize("size", ["tablet", "phone"])
    def test_the_figure_follows_the_finger_and_says_what_it_shows(self, browser: Any, studio: Server, size: str) -> None:
        """Every curve drawn is one that was simulated, and says at which value; nothing is asked of Dash before the finger rests."""
        with session(browser, studio, size) as (page, seen):
            page.goto("/whatif")
            settled(page)
            curve(page, "WMPI as it was")
            slider = page.locator("[data-name='wmpi.packet'] input[type=range]")
            slider.scroll_into_view_if_needed()
            bar = slider.bounding_box()
            y, entry = bar["y"] + bar["height"] / 2, "document.querySelector(\"[data-name='wmpi.packet'] .typed input\").value"
            texts = next(s.texts for s in slots("wmpi", "nt-pair", "shared") if s.name == "wmpi.packet")
            legend = "[...document.querySelectorAll('#whatif-figure-sketch .sketch-legend li')].map((e) => e.textContent).at(-1)"
            shapes = set()
            page.mouse.move(bar["x"] + bar["width"] * 0.55, y)
            page.mouse.down()
            for i in range(6):
                page.mouse.move(bar["x"] + bar["width"] * (0.55 - 0.08 * i), y)
                wanted = page.evaluate(entry)
                assert wanted in texts
                until(page, f"({legend} || '').startsWith('packet ' + {entry} + ', simulated')")
                shapes.add(page.evaluate("[...document.querySelectorAll('#whatif-figure-sketch path.curve')].at(-1).getAttribute('d')"))
                seen_at = page.locator("#whatif-figure-sketch svg").first.bounding_box()
                assert seen_at["y"] >= 0, "the figure is out of view"
                assert seen_at["y"] + seen_at["height"] <= page.viewport_size["height"], "the figure is out of view"
                assert not seen_at["y"] < y < seen_at["y"] + seen_at["height"] or size != "phone", "the figure lies over the finger"
            assert len(shapes) > 3
            assert urlsplit(page.url).query == "", "nothing is asked before the finger rests"
            rests = page.evaluate(entry)
            page.mouse.up()
            changed = curve(page, "changed")
            assert f"wmpi.packet={rests.replace(' ', '')}" in page.locator("#whatif-command").inner_text()
            assert max(changed["x"]) == 4 << 20
            until(page, "document.querySelector('#whatif-figure-sketch').children.length === 0")
            assert seen.errors == []

    def test_an_abort_is_a_result_and_told(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/whatif?set=wmpi.packet%3D64KiB")
            settled(page)
            until(page, "document.getElementById('whatif-outcome').innerText.includes('aborted')")
            assert "pool" in page.locator("#whatif-outcome").inner_text()
            assert max(curve(page, "changed")["x"]) < 4 << 20, "the curve ends where the job did"
            assert seen.errors == []


class TestShared:
    def test_a_link_gives_another_visitor_the_same_view(self, browser: Any, studio: Server) -> None:
        with session(browser, studio, permissions=["clipboard-read", "clipboard-write"]) as (page, _):
            page.goto("/whatif")
            settled(page)
            slide(page, "wmpi.packet", "96 KiB", "ArrowLeft")
            curve(page, "changed")
            page.get_by_label("time", exact=True).check()
            mine = curve(page, "changed")
            until(page, "location.search.includes('series=time')")
            page.locator("#whatif-copy-link").click()
            link = page.evaluate("navigator.clipboard.readText()")
            assert link == page.url
            controls = [page.locator("#whatif-model").inner_text(), page.locator("[data-name='wmpi.packet'] .typed input").input_value()]
        with session(browser, studio) as (page, seen):
            page.goto(link)
            settled(page)
            theirs = curve(page, "changed")
            assert (theirs["x"], theirs["y"]) == (mine["x"], mine["y"])
            assert page.locator("#whatif-model").inner_text() == controls[0]
            assert page.locator("[data-name='wmpi.packet'] .typed input").input_value() == controls[1]
            assert page.get_by_label("time", exact=True).is_checked()
            assert seen.errors == []

    def test_a_link_that_is_wrong_says_so_and_shows_the_page(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/models?model=wmpy&colour=red")
            settled(page)
            told = page.locator("main .notice").all_inner_texts()
            assert any("wmpy" in line and "wmpi" in line for line in told), "the nearest name is offered"
            assert any("colour" in line for line in told)
            assert page.locator("#models-head h2").inner_text().startswith("WMPI")
            assert seen.errors == []


def with_a_tick(route: Any) -> None:
    """A click as Dash sends it from a busy page: merged with the tick of the page's clock that happened before it."""
    body = json.loads(route.request.post_data)
    if body["changedPropIds"] == ["scorecard-cancel.n_clicks"]:
        body["changedPropIds"] = ["scorecard-tick.n_intervals", "scorecard-cancel.n_clicks"]
    route.continue_(post_data=json.dumps(body))


class TestSessions:
    def test_a_long_job_blocks_nobody_else_and_only_its_owner_sees_and_cancels_it(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (mine, seen), session(browser, studio) as (theirs, others):
            polls: list[str] = []
            mine.on(
                "request", lambda r: polls.append(r.post_data) if r.method == "POST" and "scorecard-tick" in (r.post_data or "") else None
            )
            mine.goto("/scorecard")  # all papers: longer than anything below takes
            settled(mine)
            mine.get_by_role("button", name="Judge").click()
            until(mine, "document.getElementById('scorecard-job-line').innerText.includes('judging')")
            theirs.goto("/whatif?model=hpvm&mode=distributed")
            settled(theirs)
            assert len(curve(theirs, "HPVM as it was")["x"]) > 20
            assert mine.locator("#scorecard-cancel").is_visible(), "the long job is still under way"
            for _ in range(WAIT_MS // 100):
                if asked := [b for b in polls if json.loads(b)["changedPropIds"] == ["scorecard-tick.n_intervals"]]:
                    break
                mine.wait_for_timeout(100)
            body = asked[-1]
            header = {"Content-Type": "application/json"}
            told = [who.request.post("/_dash-update-component", data=body, headers=header).json() for who in (mine, theirs)]
            job = told[0]["response"]["scorecard-job"]["data"]
            assert job not in json.dumps(told[1]), "another session's same words read this one"
            assert "no such job" in json.dumps(told[1])
            cancel = body.replace('"scorecard-tick.n_intervals"', '"scorecard-cancel.n_clicks"')
            theirs.request.post("/_dash-update-component", data=cancel, headers={"Content-Type": "application/json"})
            mine.wait_for_timeout(700)
            assert mine.locator("#scorecard-cancel").is_visible(), "another session has cancelled the job"
            mine.route("**/_dash-update-component", with_a_tick)
            mine.locator("#scorecard-cancel").click()
            until(mine, "document.getElementById('scorecard-job-line').innerText.includes('cancelled')")
            assert not mine.locator("#scorecard-cancel").is_visible()
            assert seen.errors == []
            assert others.errors == []


class TestScorecard:
    def test_judges_in_the_background_and_shows_every_statement(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/scorecard?paper=hudson-wang")
            settled(page)
            assert "statements are judged in advance" in page.locator("#scorecard-matrix").text_content()
            page.get_by_role("button", name="Judge").click()
            until(page, "/done/.test(document.getElementById('scorecard-job-line').innerText)")
            until(page, "/of \\d+ pass/.test(document.getElementById('scorecard-counts').innerText)")
            counts = page.locator("#scorecard-counts").inner_text()
            assert re.search(r"fitted\s+8 of 8 pass", counts), "fitted and held out are counted apart"
            assert re.search(r"held out\s+16 of 18 pass", counts)
            choose(page, "Verdict", "fail")
            until(page, "document.querySelectorAll('.statement').length === 2")
            first = page.locator(".statement").first
            first.locator("summary").click()
            assert "printed in" in first.inner_text()
            assert "UTC, code" in first.inner_text(), "judged here"
            assert "verdict=fail" in page.url
            assert seen.errors == []

    def test_a_statement_leads_to_its_curve_and_its_message(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/scorecard?q=BF-SM-04")
            settled(page)
            assert page.locator(".statement").count() == 1
            assert "Contradicts BF-SM-08/09" in page.locator(".statement .contradiction").inner_text()
            page.locator(".statement .links a").first.click()
            settled(page)
            assert page.url.startswith(f"{studio.url}/curves?model=wmpi")
            assert page.locator("main .notice").count() == 0
            until(page, "(looked.traces('curves-figure') || []).length > 0")
            assert page.evaluate("looked.traces('curves-figure')")[0]["name"].startswith("WMPI")
            assert seen.errors == []


class TestStudies:
    def test_a_small_study_runs_and_is_shown_with_what_failed(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/studies?scenario=bf-wmpi-shared&key=wmpi.packet&values=64KiB,96KiB,128KiB")
            settled(page)
            assert page.locator("#studies-form").inner_text() == "3 points"
            page.locator("#studies-vary").click()
            until(page, "/done/.test(document.getElementById('studies-job-line').innerText)")
            until(page, "document.querySelectorAll('#studies-shown table.grid tbody tr').length === 3")
            assert "aborted" in page.locator("#studies-shown").inner_text(), "64 KiB packets exhaust the pool: a row with its reason"
            assert "pool" in page.locator("#studies-shown").inner_text()
            until(page, "document.querySelectorAll('#studies-shown .js-plotly-plot').length > 0")
            assert re.search(r"study=\d+", page.url)
            assert seen.errors == []

    def test_what_is_no_study_is_told_before_it_runs(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/studies?scenario=bf-wmpi-shared")
            settled(page)
            page.locator("#studies-key").fill("wmpi.pakcet")
            page.locator("#studies-values").fill("1KiB,2KiB")
            page.keyboard.press("Tab")
            until(page, "[...document.querySelectorAll('.wrong')].some((e) => e.innerText.includes(\"did you mean 'wmpi.packet'\"))")
            assert page.locator(".field:has(#studies-key) .wrong, .field:has(label[for=studies-key]) .wrong").count() == 1
            page.locator("#studies-vary").click()
            until(page, "document.getElementById('studies-job-line').innerText.includes('correct')")
            assert page.locator(".wrong").count() == 1
            page.locator("#studies-key").fill("wmpi.packet")
            page.keyboard.press("Tab")
            until(page, "document.getElementById('studies-form').innerText.includes('2 points')")
            assert page.locator(".wrong").count() == 0
            assert seen.errors == []


class TestCards:
    def test_a_models_numbers_are_filtered_by_source_and_words(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/models")
            settled(page)
            every = page.locator("#models-numbers tbody tr").count()
            choose(page, "Source", "code:")
            until(page, f"document.querySelectorAll('#models-numbers tbody tr').length < {every}")
            assert {k.strip() for k in page.locator("#models-numbers td .kind").all_inner_texts()} == {"code"}
            page.locator("#models-text").fill("E-P4-07")
            until(page, "document.querySelectorAll('#models-numbers tbody tr').length === 2")
            assert "source=code" in page.url
            assert "q=E-P4-07" in page.url
            assert seen.errors == []

    def test_another_machine_room_is_drawn(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/platforms")
            settled(page)
            choose(page, "Platform", "cray-t3e")
            until(page, "document.getElementById('platforms-head').innerText.includes('pe0 and 7 more')")
            assert page.url.endswith("/platforms?platform=cray-t3e")
            assert len(page.evaluate("looked.traces('platforms-memory')")) == 1
            assert seen.errors == []


class TestAnatomy:
    def test_a_message_is_followed_hop_by_hop(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/anatomy?model=wmpi&mode=shared&size=512KiB")
            settled(page)
            until(page, "document.querySelectorAll('#anatomy-player svg.scene .place').length >= 2")
            assert page.locator("#anatomy-hops-a tbody tr").count() > 3, "every hop has a row"
            until(page, "(looked.traces('anatomy-stages') || []).length")
            stages = page.evaluate("looked.traces('anatomy-stages')")
            assert any("quantum" in t["name"] for t in stages), "where the time of this message goes"
            clock = page.locator("#anatomy-clock").inner_text()
            page.locator("#anatomy-next").click()
            until(page, f"document.getElementById('anatomy-clock').innerText !== {clock!r}")
            page.locator("#anatomy-play").click()
            now = page.locator("#anatomy-clock").inner_text()
            until(page, f"document.getElementById('anatomy-clock').innerText !== {now!r}")
            page.locator("#anatomy-play").click()
            assert seen.errors == []

    def test_another_size_is_another_anatomy(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/anatomy?model=wmpi&mode=shared&size=1KiB")
            settled(page)
            until(page, "document.querySelectorAll('#anatomy-hops-a tbody tr').length > 0")
            before = page.locator("#anatomy-hops-a").inner_text()
            page.locator("#anatomy-size").fill("512 KiB")
            page.keyboard.press("Enter")
            until(page, f"looked.settled() && document.getElementById('anatomy-hops-a')?.innerText.length > {len(before)}")
            assert "size=512" in page.url
            assert seen.errors == []


BROKEN = {
    "a call that is none": (b"0 init\n1 init\n0 sned 1 0 100 6\n", "sned"),
    "no text at all": (bytes(range(256)) * 40, "trace"),
    "an archive cut off": (b"PK\x03\x04" + b"\0" * 30, "zip"),
    "nothing": (b"", "empty"),
}


class TestUpload:
    @pytest.mark.parametrize("what", BROKEN)
    def test_a_broken_trace_is_told_in_a_clear_line(self, browser: Any, studio: Server, what: str) -> None:
        raw, word = BROKEN[what]
        with session(browser, studio) as (page, seen):
            page.goto("/replay?trace=made:ring")
            settled(page)
            page.locator("#replay-upload input[type=file]").set_input_files({"name": "mine.ti", "mimeType": "text/plain", "buffer": raw})
            until(page, "/mine.ti/.test(document.getElementById('replay-job-line').innerText + [...document.querySelectorAll('.notice')]"
                  ".map((n) => n.innerText).join())")
            until(page, "looked.settled()")
            told = " ".join(page.locator(".notice, #replay-job-line").all_inner_texts())
            assert word in told, told
            assert "Traceback" not in told
            assert "/tmp" not in told, "a path of the server"
            assert page.locator("#main .notice").count() >= 1
            assert seen.errors == []

    def test_a_trace_with_script_for_a_name_is_replayed_and_shown_as_text(self, browser: Any, studio: Server) -> None:
        raw = b"0 init\n1 init\n0 send 1 0 100 6\n1 recv 0 0 100 6\n0 finalize\n1 finalize\n"
        name = "<img src=x onerror=window.hacked=1>.ti"
        with session(browser, studio) as (page, seen), session(browser, studio) as (other, _):
            page.goto("/replay")
            settled(page)
            page.locator("#replay-upload input[type=file]").set_input_files({"name": name, "mimeType": "text/plain", "buffer": raw})
            until(page, "document.getElementById('replay-outcome')?.innerText === 'completed' && location.search.includes('upload')")
            settled(page)
            until(page, "document.getElementById('replay-timeline').src.includes('/replay/chart/')")
            chart = page.frame_locator("#replay-timeline")
            chart.locator("canvas").wait_for()
            assert chart.locator("img").count() == 0
            assert (page.evaluate("window.hacked"), page.locator("main img").count()) == (None, 0)
            other.goto(page.url)
            settled(other)
            assert "another browser" in other.locator("main .notice").first.inner_text(), "uploads of others cannot be read"
            assert "onerror" not in other.locator("main").inner_text()
            assert seen.errors == []

    def test_measured_curves_are_laid_over_the_figure_or_told_in_a_line(self, browser: Any, studio: Server) -> None:
        good = b"# way: one way\nsize_B,time_us\n1,100\n1024,180\n1048576,30000\n"
        bad = b"# way: one way\nsize_B,time_us\n1,100\n1024,<script>window.hacked=1</script>\n"
        name = "<img src=x onerror=window.hacked=1>.csv"
        with session(browser, studio) as (page, seen), session(browser, studio) as (other, _):
            page.goto("/curves?model=wmpi&sizes=1B..1MiB:x4")
            settled(page)
            upload = page.locator("#curves-upload input[type=file]")
            upload.set_input_files({"name": name, "mimeType": "text/csv", "buffer": good})
            until(page, "(looked.traces('curves-figure') || []).some((t) => t.name.endsWith(', measured')) && looked.settled()")
            mine = next(t for t in page.evaluate("looked.traces('curves-figure')") if t["name"].endswith(", measured"))
            assert mine["x"] == [1, 1024, 1048576]
            assert mine["y"] == pytest.approx([0.01, 1024 / 180, 1048576 / 30000])
            assert "is uploaded" in page.locator("#curves-upload-said").inner_text()
            assert "onerror" in page.locator("#curves-table thead").inner_text(), "its numbers stand in the table, its name as text"
            assert (page.evaluate("window.hacked"), page.locator("main img").count()) == (None, 0)
            until(page, "location.search.includes('upload')")
            other.goto(page.url)
            settled(other)
            assert "another browser" in other.locator("main .notice").first.inner_text(), "uploads of others cannot be read"
            assert "onerror" not in other.locator("main").inner_text()
            page.goto(page.url)
            settled(page)
            until(page, "(looked.traces('curves-figure') || []).some((t) => t.name.endsWith(', measured'))")
            page.locator("#curves-upload input[type=file]").set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": bad})
            until(page, "/bad.csv:4: /.test(document.getElementById('curves-problems').innerText) && looked.settled()")
            told = [line for line in page.locator("#curves-problems .notice").all_inner_texts() if "bad.csv" in line]
            assert len(told) == 1
            assert "is no number" in told[0]
            assert "\n" not in told[0]
            assert "/tmp" not in told[0], "a path of the server"
            assert any(t["name"].endswith(", measured") for t in page.evaluate("looked.traces('curves-figure')")), "the good one stays"
            assert page.evaluate("window.hacked") is None
            assert seen.errors == []

    def test_a_deadlock_is_a_result(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/replay?trace=made:send_first&ranks=4&size=4MiB&mode=shared")
            settled(page)
            until(page, "document.getElementById('replay-outcome') !== null")
            assert page.locator("#replay-outcome").inner_text() != "completed"
            assert page.locator("#replay-cycle tbody tr").count() >= 2, "who waits for whom"
            assert seen.errors == []


class TestByKeyboard:
    def test_from_the_front_page_to_a_changed_curve(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/")
            settled(page)
            page.keyboard.press("Tab")
            assert page.evaluate("looked.focused().name") == "Skip to the page"
            for _ in range(20):
                page.keyboard.press("Tab")
                if page.evaluate("looked.focused().name") == "What if":
                    break
            page.keyboard.press("Enter")
            until(page, "document.querySelector('main h1')?.innerText === 'What if'")
            settled(page)
            for _ in range(60):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement.closest('[data-name=\"wmpi.library\"]') !== null"):
                    break
            page.keyboard.press("ArrowLeft")
            assert len(curve(page, "changed")["x"]) > 20
            page.keyboard.press("?")
            assert page.locator("#studio-keys").is_visible()
            page.keyboard.press("Escape")
            assert not page.locator("#studio-keys").is_visible()
            assert seen.errors == []


class TestAgain:
    def test_a_study_that_runs_is_found_by_a_page_that_is_loaded_again(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, seen):
            page.goto("/studies?scenario=bf-wmpi-shared&key=wmpi.event&values=1us..240us:%2B1us")
            settled(page)
            page.locator("#studies-vary").click()
            until(page, "/\\d+ of 240/.test(document.getElementById('studies-job-line').innerText)")
            page.reload()
            page.wait_for_selector("#studies-cancel:not([hidden])")
            until(page, "/of 240/.test(document.getElementById('studies-job-line').innerText)")
            page.locator("#studies-cancel").click()
            until(page, "/cancelled/.test(document.getElementById('studies-job-line').innerText)")
            assert page.locator("#studies-cancel").is_hidden()
            page.locator("#studies-vary").click()  # what was cancelled holds nothing up
            until(page, "/: done/.test(document.getElementById('studies-job-line').innerText)")
            assert seen.errors == []

    @pytest.mark.parametrize("width", [360, 390, 768])
    def test_the_legend_of_two_messages_leaves_the_axis_alone(self, browser: Any, studio: Server, width: int) -> None:
        with session(browser, studio, "phone") as (page, _):
            page.set_viewport_size({"width": width, "height": 844})
            page.goto("/anatomy?view=two&model=winmpich&mode=distributed")
            settled(page)
            until(page, "document.querySelector('#anatomy-stages .xtitle') !== null")
            box = "((e) => { const r = e.getBoundingClientRect(); return [r.top, r.bottom, r.height]; })"
            legend, title = (f"{box}(document.querySelector('#anatomy-stages {which}'))" for which in (".legend .bg", ".xtitle"))
            until(page, f"{legend}[2] > 0")
            # both boxes in one look: a page that is still being laid out moves between two
            until(page, f"{title}[1] <= {legend}[0]")
            plot = page.evaluate(f"{box}(document.querySelector('#anatomy-stages .nsewdrag'))")
            assert plot[2] > 60, "nothing is left for the bars"

    def test_nought_goes_to_the_tenth_page(self, browser: Any, studio: Server) -> None:
        with session(browser, studio) as (page, _):
            page.goto("/")
            settled(page)
            page.keyboard.press("0")
            until(page, f"location.pathname === '{PATHS[9]}'")
