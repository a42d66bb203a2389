"""The documentation site: it builds without a warning, no link of it is dead, nothing comes from another host, everything has its page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click
import pytest
from axe import violations, watched
from browser import SIZES, WAIT_MS, chromium, missing
from cases import for_each

import retrompi
from retrompi import manual
from retrompi.base import paths
from retrompi.cli import main as command_line
from retrompi.labs.lab import lab_names
from retrompi.manual.commands import commands
from retrompi.manual.markdown import escape, slug, table
from retrompi.spec import registry
from retrompi.spec.machine import machines
from retrompi.studies.define import catalogue
from retrompi.studies.execute import design

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r'<a\b[^>]*?\bhref="([^"]*)"')
NAME = re.compile(r'\b(?:id|name)="([^"]+)"')
ASSET = re.compile(r'<(?:script|img|iframe|source|audio|video|embed)\b[^>]*?\bsrc(?:set)?="([^"]*)"|<link\b[^>]*?\bhref="([^"]*)"')
SCRIPT = re.compile(r"(<script\b[^>]*>).*?(</script>)", re.DOTALL)
STYLE = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` does; a warning ends the build."""
    for name in ("material", "mkdocstrings", "nbclient", "ipykernel"):
        pytest.importorskip(name, reason="the extra 'docs' is not installed")
    if missing():
        pytest.skip(missing())  # it draws the figures of the notebooks
    place = tmp_path_factory.mktemp("site")
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(place)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    assert "WARNING" not in build.stderr
    return place


@pytest.fixture(scope="module")
def html(site: Path) -> dict[str, str]:
    """Path below the site -> text of every page."""
    found = {p.relative_to(site).as_posix(): p.read_text(encoding="utf-8") for p in site.rglob("*.html")}
    # Slides carry their scripts, whose strings look like links; what they fetch is watched in test_lab_slides.py.
    return {n: SCRIPT.sub(r"\1\2", text) if n.startswith("slides/") else text for n, text in found.items()}


def test_a_warning_ends_the_build() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.search(r"^strict: true$", settings, re.M)
    checked = settings.split("validation:")[1].split("nav:")[0]
    # With --quiet MkDocs counts no warnings and ends well whatever it found.
    assert re.search(r"mkdocs build --clean$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert all(f"  {what}: warn" in checked for what in ("omitted_files", "not_found", "absolute_links", "unrecognized_links", "anchors"))


def test_no_link_is_dead(site: Path, html: dict[str, str]) -> None:
    names = {page: {unescape(n) for n in NAME.findall(text)} for page, text in html.items()}
    dead, seen = [], 0
    for page, text in html.items():
        if page == "404.html":
            continue  # its links are from the root of wherever the site lies
        for target in {unescape(t) for t in LINK.findall(text)}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            there = (site / page).parent / unquote(parts.path) if parts.path else site / page
            there = there.resolve()
            if there.is_dir():
                there = there / "index.html"
            if not there.is_file():
                dead.append(f"{page}: {target}")
            elif parts.fragment and there.suffix == ".html":
                key = there.relative_to(site.resolve()).as_posix()
                if unquote(parts.fragment) not in names[key] and not parts.fragment.startswith("__"):
                    dead.append(f"{page}: {target} (no such place)")
    assert not dead, dead[:20]
    assert seen > 1000


def test_nothing_is_fetched_from_another_host(site: Path, html: dict[str, str]) -> None:
    foreign = [f"{page}: {a or b}" for page, text in html.items() for a, b in ASSET.findall(text) if re.match(r"(https?:)?//", a or b)
               if "rel=\"canonical\"" not in text[: text.find(a or b)][-60:]]
    assert foreign == []
    for sheet in site.rglob("*.css"):
        assert STYLE.findall(sheet.read_text(encoding="utf-8")) == [], sheet.name
    for page, text in html.items():
        assert 'class="mermaid"' not in text, f"{page}: the theme would fetch what draws it"


def test_no_page_tells_where_it_was_built(html: dict[str, str]) -> None:
    for page, text in html.items():
        assert str(ROOT) not in text, page
        assert str(Path.home()) + "/" not in text, page


# -- the contract: whatever there is has its page -------------------------------------------------------------------------


def _titles(section: str) -> set[str]:
    return {p.title for p in manual.pages() if p.section == section} - {"Overview"}


def test_everything_has_a_page(html: dict[str, str]) -> None:
    own = {n for n, c in registry.models().items() if registry.origin(c.folder()) == "retrompi"}
    assert _titles("Models") == own
    assert all(v in own for v in ("wmpi", "wmpi:absorbed", "nemesis:windows"))
    ours = {n for n, p in registry.platforms().items() if registry.origin(p.path) == "retrompi"}
    assert _titles("Platforms") == {"Hosts of the library", "Networks of the library", *ours}
    (shown,) = (p.text for p in manual.pages() if p.title == "Hosts of the library")
    assert all(f"`{name}`" in shown for name in machines.host_names())
    assert _titles("Scenarios") == set(catalogue.scenario_names())
    assert _titles("Studies") == set(design.study_names())
    assert _titles("Labs") == set(lab_names())
    assert _titles("Commands") == {*command_line.COMMANDS, "All options"}
    for page in manual.pages():
        assert page.path.replace(".md", ".html") in html, page.path


def test_every_name_of_the_python_interface_is_in_its_reference(html: dict[str, str]) -> None:
    text = html["python.html"]
    for name in set(retrompi.__all__) - {"__version__"}:
        it = getattr(retrompi, name)
        assert f'id="{it.__module__}.{it.__qualname__}"' in text, name


def test_the_notebooks_are_shown_with_their_outputs(site: Path, html: dict[str, str]) -> None:
    books = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    assert len(books) == 5
    for book in books:
        text = html[f"notebooks/{book.stem}.html"]
        assert 'class="output"' in text
        assert "Traceback" not in text
    assert len(list((site / "notebooks").glob("*.svg"))) >= 4


@for_each("name", sorted(registry.models()))
def test_a_models_page_has_every_number_with_its_source(name: str, html: dict[str, str]) -> None:
    text = html[f"reference/models/{slug(name)}.html"]
    for key, param in registry.model(name).params().items():
        assert f"{name.partition(':')[0]}.{key}" in text
        assert param.source.partition(":")[0] + ":" in text
    assert "Statements that judge it" in text


@for_each("words", sorted(commands()))
def test_a_commands_page_has_every_option(words: str, html: dict[str, str]) -> None:
    command = commands()[words]
    text = unescape(html[f"reference/commands/{slug(words.split()[0])}.html"])
    assert f"retrompi {words}" in text
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert all(f"<code>{o}</code>" in text for o in option.opts), option.opts


def test_a_new_command_scenario_and_model_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @click.option("--loud", is_flag=True, help="Say it <b>loudly</b>.")
    def command(loud: bool) -> None:
        """Say | something."""

    module = types.ModuleType("retrompi.cli.say_something")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "retrompi.cli.say_something", module)
    monkeypatch.setitem(command_line.COMMANDS, "say-something", "Say | something.")
    folder = tmp_path / "scenarios"
    shutil.copytree(paths.scenarios_dir(), folder)
    (tmp_path / "validate").symlink_to(ROOT / "validate")
    one = (folder / "bf-wmpi-shared.toml").read_text(encoding="utf-8")
    (folder / "brand-new.toml").write_text(one.replace('"bf-wmpi-shared"', '"brand-new"'), encoding="utf-8")
    monkeypatch.setattr(paths, "scenarios_dir", lambda: folder)
    written = {p.path: p.text for p in manual.pages()}
    page = written["reference/commands/say-something.md"]
    assert "`--loud`" in page
    assert "Say it &lt;b&gt;loudly&lt;/b&gt;." in page
    assert "Say \\| something." in written["reference/commands/index.md"]
    assert "[brand-new](brand-new.md)" in written["reference/scenarios/index.md"]
    assert "reference/scenarios/brand-new.md" in written


def test_what_is_data_is_shown_as_it_is() -> None:
    assert escape("a | b <script> *c* [d](e) `f` _g_") == "a \\| b &lt;script&gt; \\*c\\* \\[d\\](e) \\`f\\` \\_g\\_"
    assert table(["a", "b"], [["1", ""], ["2", ""]]) == "| a |\n| --- |\n| 1 |\n| 2 |"


# -- in a browser ---------------------------------------------------------------------------------------------------------

LOOKED_AT = ("reference/platforms/nt-cluster.html", "index.html", "api.html", "python.html", "notebooks/published-curve.html",
             "tutorial/index.html", "faq.html", "architecture.html", "reference/models/wmpi.html",
             "reference/commands/trace.html", "reference/files.html", "trace-format.html")
KINDS_OF_PAGE = ("index.html", "cluster.html", "python.html", "notebooks/your-own-trace.html", "reference/models/wmpi.html",
                 "reference/commands/sweep.html")
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter(e => {
    const box = e.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1 || getComputedStyle(e).position === "fixed") return false;
    for (let up = e; up; up = up.parentElement) if (["auto", "scroll", "hidden"].includes(getComputedStyle(up).overflowX)) return false;
    return !e.closest(".md-sidebar, .md-search, [hidden]");
}).map(e => e.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium."""
    if missing():
        pytest.skip(missing())
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.mark.parametrize("size", ["phone", "projector"])
def test_pages_fit_and_fetch_nothing(size: str, site: Path, browser: Any, tmp_path: Path) -> None:
    width, height = SIZES[size]
    place = Path(os.environ.get("RETROMPI_SHOTS") or tmp_path)
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    asked: list[str] = []
    wrong: list[str] = []
    page = context.new_page()
    page.on("request", lambda r: asked.append(r.url))
    page.on("pageerror", lambda e: wrong.append(str(e)))
    for path in LOOKED_AT:
        page.goto((site / path).as_uri(), timeout=WAIT_MS)
        page.wait_for_selector("article h1", timeout=WAIT_MS)
        assert page.evaluate(OUTSIDE) == [], path
        page.screenshot(path=str(place / f"{path.replace('/', '-')}-{size}.png"))
    assert [a for a in asked if not a.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert wrong == []
    context.close()


def test_the_search_works_from_the_disk(site: Path, browser: Any) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.goto((site / "index.html").as_uri(), timeout=WAIT_MS)
    page.keyboard.press("s")  # the theme's key for it
    page.locator("input.md-search__input").press_sequentially("quantum")
    first = page.locator(".md-search-result__link").first
    first.wait_for(timeout=WAIT_MS)
    assert page.locator(".md-search-result__link").count() > 5
    first.click()
    page.wait_for_selector("article h1", timeout=WAIT_MS)
    assert "quantum" in page.locator("article").inner_text().lower()
    assert wrong == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_of_each_kind_keeps_to_wcag(scheme: str, site: Path, browser: Any) -> None:
    with watched(browser) as (page, foreign, errors):
        page.emulate_media(color_scheme=scheme)
        if scheme == "dark":
            page.set_viewport_size({"width": 1280, "height": 900})
        for path in KINDS_OF_PAGE:
            page.goto((site / path).as_uri(), timeout=WAIT_MS)
            page.wait_for_selector("article h1", timeout=WAIT_MS)
            assert violations(page) == [], path
    assert foreign == []
    assert errors == []
