"""The verdicts that the package comes with: those of the documentation, of what there is now, and the scorecard before anybody judges."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrompi.papers import markdown, run_paper
from retrompi.papers.reproduce import judged
from retrompi.papers.statements.claims import checks, load
from retrompi.spec import registry
from retrompi.store import open_store

ROOT = Path(__file__).resolve().parents[1]
AGAIN = "run: make judged"


def test_every_statement_with_a_check_is_judged_with_what_there_is_now() -> None:
    found = judged.in_advance()
    assert [c.id for c in load() if c.id not in found] == [], AGAIN
    assert {i: a.changed for i, a in found.items() if a.changed} == {}, AGAIN
    words = {i: a.row["verdict"] for i, a in found.items()}
    assert set(words.values()) == {"pass", "fail", "unjudged"}
    assert [c.id for c in load() if c.use in ("exclude", "context") and words[c.id] != "unjudged"] == []
    assert sum(word != "unjudged" for word in words.values()) > 0.7 * len([c for c in load() if c.id in checks()])


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "validation").glob("*.md")), ids=lambda p: p.stem)
def test_they_are_those_of_the_documentation(page: Path) -> None:
    """Which simulates nothing: the pages are written by `retrompi.papers.markdown` from a judging of their own."""
    found = judged.in_advance()
    rows = re.findall(r"^\| (\S+) \| [a-z]+ \| \**(pass|fail|unjudged)\** \| (.*?) \| ", page.read_text(encoding="utf-8"), re.M)
    assert len(rows) > 10
    for name, verdict, observed in rows:
        row = found[name].row
        shown = " ".join(markdown.number_text(row["observed"]).split()).replace("|", "\\|")
        assert (row["verdict"], shown) == (verdict, observed), f"{name}: {AGAIN}, or python -m retrompi.papers.markdown {page.name}"


def test_a_paper_judged_now_has_these_verdicts(tmp_path: Path) -> None:
    found = judged.in_advance()
    study = run_paper("krishna-2010", open_store(tmp_path / "runs.db"), workers=1)
    assert len(study.verdicts) > 10
    for v in study.verdicts:
        told, now = found[v.id].row, v.row()
        assert told["verdict"] == now["verdict"], f"{v.id}: {AGAIN}"
        if isinstance(now["observed"], float):
            assert told["observed"] == pytest.approx(now["observed"], rel=1e-6), f"{v.id}: {AGAIN}"
        else:
            assert told["observed"] == now["observed"], f"{v.id}: {AGAIN}"


def test_a_changed_runtime_or_platform_is_named_where_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    papers = {c.id: c.paper for c in load()}
    with monkeypatch.context() as within:
        within.setattr(registry.model("nemesis:windows"), "hash", classmethod(lambda cls: "0" * 64))
        changed = {i: a.changed for i, a in judged.in_advance().items() if "nemesis:windows" in a.changed}
        assert {papers[i] for i in changed} == {"krishna-2010"}
        there = {i for i, entries in checks().items() if any("nemesis:windows" in c.get("models", ()) for c in entries)}
        assert there
        assert there <= set(changed), "and what names no runtime rests on all of its paper"
        named = {i for i, entries in checks().items() if all(c.get("models") == ["nemesis"] for c in entries)}
        assert named
        assert not named & set(changed)
    before = registry.platform
    monkeypatch.setattr(registry, "platform", lambda name: before("abe" if name == "nt-pair" else name))
    changed = {i: a.changed for i, a in judged.in_advance().items() if a.changed}
    assert set(changed.values()) == {("nt-pair",)}
    assert {papers[i].removesuffix("-long") for i in changed} == {"baker-fox"}


def test_a_statement_that_says_something_else_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = load()
    other = [replace(c, high=1e6) if c.id == "BF-SM-01" else replace(c, line=c.line + 1) for c in claims]
    monkeypatch.setattr(judged, "load", lambda: other)
    judged._claim_hashes.cache_clear()
    try:
        assert {c.id for c in claims} - set(judged.in_advance()) == {"BF-SM-01"}
    finally:
        judged._claim_hashes.cache_clear()


def _first_data(page: str) -> str:
    found = re.search(r'<script type="application/json" id="first-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


class TestFirstFigures:
    """The numbers that the studio draws before its first job."""

    @pytest.fixture
    def resources(self, tmp_path: Path) -> Any:
        pytest.importorskip("dash", reason="the studio needs dash: pip install dash")
        from retrompi.studio.jobs.queue import Jobs
        from retrompi.studio.jobs.resources import Resources

        made = Resources(Jobs(), str(tmp_path / "store.db"))
        yield made
        made.close()

    def test_are_those_of_a_job_now(self, resources: Any) -> None:
        from retrompi.base import translate
        from retrompi.studio.requests import first_answer, shipped_figures
        from retrompi.studio.requests.page import modules
        from retrompi.studio.requests.state import Query

        now = dict(shipped_figures.simulate_answers(resources))
        assert set(now) == {"/", "/curves", "/whatif", "/anatomy", "/anatomy?view=two"} == set(shipped_figures._read()), AGAIN
        for address, answers in now.items():
            path, _, search = address.partition("?")
            _job, show, _shared = modules()[path].first(Query(search), resources)
            for language, answer in answers.items():
                with translate.speaking(language):
                    shipped = first_answer._figure_json(show(shipped_figures.answer(address)))
                    fresh = first_answer._figure_json(show(answer))
                    assert shipped == fresh, f"{address} {language}: {AGAIN}"

    @pytest.fixture
    def fresh(self, resources: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        """A browser at a server that simulates nothing."""
        from retrompi.studio.app import create_app

        def nothing(*_: Any, **__: Any) -> None:
            raise AssertionError("a job")

        monkeypatch.setattr(resources.jobs, "submit", nothing)
        return create_app(resources).server.test_client()

    @pytest.mark.parametrize(
        "address", ["/curves", "/curves?series=time", "/whatif", "/anatomy", "/anatomy?view=two", "/anatomy?mode=shared"]
    )
    def test_are_in_the_first_answer_of_a_server_that_has_simulated_nothing(self, address: str, fresh: Any) -> None:
        text = fresh.get(address).get_data(as_text=True)
        assert "WMPI" in _first_data(text)
        path = address.partition("?")[0]
        assert ('id="first-player"' in text) == (path == "/anatomy") != ('id="first-sketch"' in text)
        # It draws with the page's own script, which comes once: after the numbers, and not at the page's end as well.
        assert text.count("/assets/anatomy.js") == 1
        assert (text.index("/assets/anatomy.js") < text.index("react-entry-point")) == (path == "/anatomy")

    def test_speak_the_language_of_the_visitor(self, fresh: Any) -> None:
        told = {la: _first_data(fresh.get("/anatomy", headers={"Accept-Language": la}).get_data(as_text=True)) for la in ("en", "de", "fr")}
        assert "shared memory pool" in told["en"]
        assert len(set(told.values())) == 3

    def test_of_another_question_are_simulated(self, fresh: Any) -> None:
        assert fresh.get("/anatomy?size=1KiB").status_code == 500, "it wants a job"

    def test_are_not_shown_when_what_they_rest_on_has_changed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from retrompi.studio.requests import shipped_figures

        assert shipped_figures.answer("/curves") is not None
        assert shipped_figures.answer("/nowhere") is None
        monkeypatch.setattr(registry.model("hpvm"), "hash", classmethod(lambda cls: "0" * 64))
        assert shipped_figures.answer("/curves") is None
        assert shipped_figures.answer("/whatif") is not None
        assert shipped_figures.answer("/anatomy") is not None
        monkeypatch.setattr(registry.model("wmpi"), "hash", classmethod(lambda cls: "0" * 64))
        assert shipped_figures.answer("/anatomy") is None


class TestScorecard:
    """The page in a fresh installation."""

    @pytest.fixture
    def fresh(self, tmp_path: Path) -> Any:
        return open_store(tmp_path / "fresh.db")

    def test_is_judged_before_anybody_judges(self, fresh: Any) -> None:
        from retrompi.studio.cards.statements import counts, read

        for found in (read(fresh), read()):
            by = {s.claim.id: s for s in found}
            assert [s.claim.id for s in found] == [c.id for c in load()]
            assert by["BF-SM-01"].verdict.verdict == judged.shipped_verdicts().verdicts["BF-SM-01"]["verdict"]
            assert by["BF-SM-01"].verdict.residual is not None
            assert (by["BF-SM-01"].in_advance, by["BF-SM-01"].code) == (True, judged.shipped_verdicts().code)
            told = {c.use: c.judged for c in counts(found)}
            assert told["calibrate"] > 50
            assert told["validate"] > 150

    def test_a_verdict_of_ones_own_comes_first(self, fresh: Any) -> None:
        from retrompi.studio.cards.statements import read

        mine = dict(judged.shipped_verdicts().verdicts["BF-SM-01"])
        mine |= {"verdict": "fail", "observed": 999.0, "system": "WMPI", "use": "calibrate"}
        fresh.add_verdicts("baker-fox", [mine])
        by = {s.claim.id: s for s in read(fresh)}
        assert (by["BF-SM-01"].verdict.verdict, by["BF-SM-01"].verdict.observed, by["BF-SM-01"].in_advance) == ("fail", 999.0, False)
        assert by["BF-SM-02"].in_advance

    def test_says_by_what_and_what_has_changed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("dash", reason="the studio needs dash: pip install dash")
        from studio_app import words

        from retrompi.studio.jobs.queue import Jobs
        from retrompi.studio.jobs.resources import Resources
        from retrompi.studio.pages import scorecard
        from retrompi.studio.requests.state import Query

        resources = Resources(Jobs(), str(tmp_path / "store.db"))
        try:
            said = words(scorecard.layout(Query(), resources))
            assert f"are judged in advance ({judged.shipped_verdicts().judged}, with code {judged.shipped_verdicts().code})" in said
            assert "changed since" not in said
            monkeypatch.setattr(registry.model("wmpi"), "hash", classmethod(lambda cls: "0" * 64))
            said = words(scorecard.layout(Query(), resources))
            assert "of them rest on what has been changed since (wmpi, wmpi:whole-lines)" in said  # a variant of it
            assert "; changed since: wmpi" in said
        finally:
            resources.close()
