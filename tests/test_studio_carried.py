"""The runtime that a student chose on one page of the studio is that of the next; back leads to what was there."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from browser import Server, browser, session, settled, studio, until

from retrompi.spec import registry
from retrompi.studio.components import menus
from retrompi.studio.requests.page import modules
from retrompi.studio.requests.state import Query, encode, read

__all__ = ["browser", "studio"]  # fixtures


def test_every_page_is_linked_with_what_it_takes() -> None:
    from retrompi.studio.app import _carried_keys

    found = {a["path"]: a["takes"] for a in _carried_keys().values()}
    assert set(found) == set(modules())
    assert found["/anatomy"] == found["/whatif"] == found["/curves"] == ["model", "platform"]
    assert (found["/replay"], found["/models"], found["/platforms"]) == (["model"], ["model"], ["platform"])
    assert found["/"] == found["/scorecard"] == found["/labs"] == []


@pytest.mark.parametrize(("path", "prefixes"), [("/whatif", [""]), ("/replay", [""]), ("/curves", [""]), ("/anatomy", ["", "b-"])])
def test_a_link_names_the_platform_where_the_runtime_alone_means_another(path: str, prefixes: list[str]) -> None:
    controls = modules()[path].PAGE.controls
    for prefix, model, platform in product(prefixes, registry.model_names(), ("nt-pair", "nt-cluster", "abe")):
        chosen = {f"{prefix}model": [model] if path == "/curves" else model, f"{prefix}platform": platform}
        query = Query(encode(controls, chosen))
        values, wrong = read(controls, menus.with_platforms(query, controls, *filter(None, prefixes)))
        assert {k: values[k] for k in chosen} == chosen
        assert not wrong
    assert encode(controls, {}) == ""


def go(page: Any, title: str) -> str:
    """Follow a link of the navigation; the query of where it leads."""
    page.locator("#studio header nav").get_by_role("link", name=title, exact=True).click()
    settled(page)
    return page.evaluate("location.pathname + location.search")  # type: ignore[no-any-return]


def test_the_runtime_goes_from_page_to_page(browser: Any, studio: Server) -> None:
    with session(browser, studio) as (page, seen):
        page.goto("/whatif?model=nemesis")
        settled(page)
        until(page, "location.search.includes('platform=abe')")
        assert go(page, "Anatomy").startswith("/anatomy?model=nemesis&platform=abe")
        assert page.locator("main .notice:visible").count() == 0
        assert go(page, "Scorecard") == "/scorecard"
        assert go(page, "Curves") == "/curves?model=nemesis&platform=abe"
        until(page, "(looked.traces('curves-figure') || []).length && looked.settled()")
        assert [t["name"] for t in page.evaluate("looked.traces('curves-figure')") if "Nemesis" in t["name"]]
        assert go(page, "Models") == "/models?model=nemesis"
        assert go(page, "Platforms") == "/platforms?platform=abe"
        assert go(page, "Replay").startswith("/replay?model=nemesis")

        for path in ("/platforms", "/models", "/curves", "/scorecard", "/anatomy", "/whatif"):
            page.go_back()
            settled(page)
            assert page.evaluate("location.pathname") == path
            assert page.locator("#main h1").inner_text() == page.evaluate(
                "document.querySelector('.nav-link[aria-current=page]').textContent"
            )
        assert "nemesis" in page.locator("#whatif-model").inner_text()
        assert seen.errors == []


def test_the_address_of_a_runtime_away_from_its_home_leads_back_there(browser: Any, studio: Server) -> None:
    with session(browser, studio) as (page, seen):
        for path, prefix in (("/whatif", "whatif"), ("/anatomy", "anatomy"), ("/curves", "curves")):
            page.goto(f"{path}?model=nemesis&platform=nt-pair")
            settled(page)
            until(page, "new URLSearchParams(location.search).get('platform') === 'nt-pair'")
            page.goto(page.url)
            settled(page)
            assert "nt-pair" in page.locator(f"#{prefix}-platform").inner_text()
        assert seen.errors == []


def test_pages_at_their_defaults_hand_nothing_on(browser: Any, studio: Server) -> None:
    with session(browser, studio) as (page, seen):
        page.goto("/whatif")
        settled(page)
        assert go(page, "Curves") == "/curves"
        assert go(page, "Anatomy") == "/anatomy"
        assert seen.errors == []


def test_a_link_means_what_choosing_the_runtime_does() -> None:
    pages = {name: modules()[f"/{name}"].PAGE.controls for name in ("whatif", "replay", "curves", "anatomy")}
    assert menus.with_platforms(Query("?model=hpvm"), pages["replay"]).get("platform") is None, "as the others of its machines"
    assert menus.with_platforms(Query("?model=nemesis"), pages["replay"])["platform"] == "abe"
    assert menus.with_platforms(Query("?model=nemesis&platform=nt-pair"), pages["whatif"])["platform"] == "nt-pair"
    assert menus.with_platforms(Query("?model=nemesis"), pages["curves"])["platform"] == "abe"
    assert "platform" not in menus.with_platforms(Query("?model=nemesis&model=wmpi"), pages["curves"])
    both = menus.with_platforms(Query("?b-model=nemesis"), pages["anatomy"], "b-")
    assert "platform" not in both
    assert both["b-platform"] == "abe"
    assert "platform" not in menus.with_platforms(Query("?model=no-such"), pages["whatif"])
