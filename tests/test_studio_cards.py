"""What the scorecard, the cards, the platforms, the studies and the labs of the studio show, without a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import refused
from studio_app import app, draw, resources, words

from retrompi.studies.execute import design

pytest.importorskip("dash", reason="the studio needs dash: pip install dash")

from retrompi.base.errors import UsageError
from retrompi.papers import run_paper
from retrompi.papers.statements.claims import load
from retrompi.render.cards.dossier import model_dossier, platform_dossier
from retrompi.spec import registry
from retrompi.spec.declare.sources import SOURCE_KINDS
from retrompi.store import open_store
from retrompi.studio.cards import card_numbers, memory_levels, study_jobs
from retrompi.studio.cards.statements import StatementFilter, counts, matrix, read, select_statements, statements

__all__ = ["app", "draw", "resources"]  # fixtures

ROWS = [
    {
        "id": "BF-SM-01",
        "verdict": "pass",
        "observed": 173.4,
        "low": 165.0,
        "high": 185.0,
        "unit": "microseconds",
        "note": "",
        "batch_id": 1,
    },
    {
        "id": "BF-SM-02",
        "verdict": "fail",
        "observed": 400.0,
        "low": 290.0,
        "high": 310.0,
        "unit": "microseconds",
        "note": "far",
        "batch_id": 1,
    },
]
BATCHES = {1: {"created": "2026-11-21T18:21:55+00:00", "code_version": "0.1.0+abc"}}


class TestStatements:
    def test_every_row_of_the_reference_is_there_judged_or_not(self) -> None:
        found = statements(ROWS, BATCHES)
        assert [s.claim.id for s in found] == [c.id for c in load()]
        by = {s.claim.id: s for s in found}
        assert (by["BF-SM-01"].verdict.verdict, by["BF-SM-01"].verdict.residual) == ("pass", 0)
        assert by["BF-SM-02"].verdict.residual == 90
        assert (by["BF-SM-01"].when, by["BF-SM-01"].code) == ("2026-11-21 18:21", "0.1.0+abc")
        assert by["BF-SM-04"].verdict.verdict == "unjudged"
        assert "not judged in this store" in by["BF-SM-04"].verdict.note

    def test_fitted_and_held_out_are_never_counted_together(self) -> None:
        told = {s.use: (s.passed, s.failed) for s in counts(statements(ROWS))}
        uses = {c.id: c.use for c in load()}
        assert told[uses["BF-SM-01"]][0] >= 1
        assert sum(p + f for p, f in told.values()) == 2
        cells = matrix(statements(ROWS))
        assert sum(n for uses in cells.values() for c in uses.values() for w, n in c.items() if w != "unjudged") == 2

    @pytest.mark.parametrize(
        ("want", "some"),
        [
            (StatementFilter(text="BF-SM-04"), {"BF-SM-04"}),
            (StatementFilter(text="bf-sm-04 "), {"BF-SM-04"}),
            (StatementFilter(verdict="fail"), {"BF-SM-02"}),
            (StatementFilter(paper="krishna-2010", group="exclude"), set()),
        ],
    )
    def test_filters(self, want: StatementFilter, some: set[str]) -> None:
        assert {s.claim.id for s in select_statements(statements(ROWS), want)} == some

    def test_words_are_looked_for_in_all_that_is_said(self) -> None:
        found = select_statements(statements(ROWS), StatementFilter(text="console windows"))
        assert found
        assert all("window" in f"{s.claim.observable} {s.claim.value} {s.claim.note}".lower() for s in found)

    def test_a_filter_that_does_not_exist_names_the_nearest(self) -> None:
        with refused(UsageError, "unknown-name | WMPI"):
            select_statements(statements([]), StatementFilter(system="WMPY"))

    def test_what_is_stored_is_what_the_command_line_judges(self, tmp_path: Path) -> None:
        store = open_store(tmp_path / "runs.db")
        study = run_paper("krishna-2010", store, workers=1)
        shown = {s.claim.id: s for s in read(store)}
        for v in study.verdicts:
            mine = shown[v.id].verdict
            assert replace(mine, note="") == replace(v, note=""), v.id
            assert mine.note.split("; ")[0] == v.note.split("; ")[0]
            assert shown[v.id].when

    def test_places_are_of_curves_that_the_studio_can_draw(self) -> None:
        for s in statements([]):
            if s.place is not None:
                where = registry.platform(s.place.platform)
                assert set(s.place.models) <= set(registry.model_names())
                where.placement(s.place.mode)
            for model, platform, mode, size in s.messages:
                assert model in registry.model_names()
                registry.platform(platform).placement(mode)
                assert mode in ("shared", "distributed"), "what the anatomy page offers"
                assert size >= 0


class TestNumbers:
    @for_each("model", registry.model_names())
    def test_every_parameter_has_a_kind_of_source(self, model: str) -> None:
        card = model_dossier(model)
        found = card_numbers.model_numbers(card)
        assert len(found) == len(card["parameters"])
        assert sum(card_numbers.by_kind(found).values()) == len(found)
        for n, row in zip(found, card["parameters"], strict=True):
            assert f"{n.kind}:" in SOURCE_KINDS
            assert row["source"].startswith(n.kind)
            assert " us" not in n.value, "the field writes µs"

    @for_each("platform", registry.platform_names())
    def test_every_number_of_a_platform_is_in_a_table(self, platform: str) -> None:
        loaded = registry.platform(platform)
        card = platform_dossier(loaded)
        found = card_numbers.platform_numbers(card)
        groups = card_numbers.groups(loaded, found)
        assert sum(len(g.names) for g in groups) == len(loaded.hosts)
        shown = {c.name for s in card_numbers.sides(loaded, found) for c in s.stated}
        shown |= {n.name for n in found if n.area in ("wire", "loops")}
        firsts = {g.names[0] for g in groups}
        assert {n.name for n in found if n.name.partition(".")[0] in firsts and n.area != "loops"} <= shown
        for g in groups:  # those that are said to be alike are
            for name in g.names[1:]:
                same = [(a.value, a.source) for a in found if a.name.startswith(f"{g.names[0]}.") and a.area != "loops"]
                assert [(a.value, a.source) for a in found if a.name.startswith(f"{name}.") and a.area != "loops"] == same

    def test_filters_of_numbers(self) -> None:
        every = card_numbers.model_numbers(model_dossier("wmpi"))
        assert {n.kind for n in card_numbers.fitting(every, "code")} == {"code"}
        assert [n.name for n in card_numbers.fitting(every, "", "udp window")] == ["udp_window"]
        with refused(UsageError, "unknown-name"):
            card_numbers.fitting(every, "papre")

    def test_a_variant_is_told_by_what_differs(self) -> None:
        found = {d.name: d for d in card_numbers.differences(registry.model("wmpi"))}
        assert "wmpi:absorbed" in found
        changed = {name: (there, here) for name, there, here, _ in found["wmpi:absorbed"].changed}
        assert changed["receive_wait"] == ("block", "spin_yield")
        assert "packet" not in changed
        assert found["wmpi:additive-stall"].changed[0][:3] == ("stall", "", "130 ms")
        assert "the path of a message" in found["wmpi:additive-stall"].code

    def test_a_start_that_cannot_be_says_why(self) -> None:
        assert card_numbers.starts("winmpich", "nt-pair")["failures"] > 0
        assert card_numbers.starts("winmpich", "nt-unix")["refused"]

    def test_the_levels_are_where_the_caches_are(self) -> None:
        host = registry.platform("nt-pair").hosts[0]
        assert memory_levels.copy_rate(host, host.l1) == host.copy_l1
        assert memory_levels.copy_rate(host, host.l1 + 1) == pytest.approx(host.copy_l2, rel=0.01)
        assert memory_levels.copy_rate(host, 64 * host.l2) == pytest.approx(host.copy_mem, rel=0.01)


class TestStudies:
    @for_each(
        "scenario, vary, told",
        [
            ("../private", [("seed", "1,2")], "unknown-scenario"),
            ("bf-wmpi-shared", [("model", "./evil")], "unknown-name | './evil'"),
            ("bf-wmpi-shared", [("model", "wmpi,/tmp/x")], "unknown-name | '/tmp/x'"),
            ("bf-wmpi-shared", [("platform", "/etc/passwd")], "unknown-name"),
            ("lw-nas-is-a-8", [("trace.file", "/etc/passwd")], "bad-usage"),
            ("bf-wmpi-shared", [("seed", "1..1000")], "too-many"),
            ("bf-wmpi-shared", [("", "")], "nothing-varies"),
            ("bf-wmpi-shared", [("seed", "")], "missing-option"),
            ("bf-wmpi-shared", [("wmpi.pakcet", "1KiB,2KiB")], "unknown-parameter | wmpi.packet"),
        ],
    )
    def test_a_form_opens_no_file_and_is_refused_in_a_line(self, scenario: str, vary: list[tuple[str, str]], told: str) -> None:
        with refused(UsageError, told) as error:
            study_jobs.study_of_form(scenario, vary)
        assert "\n" not in str(error.value)

    def test_a_study_is_run_and_shown_as_the_command_line_does(self, tmp_path: Path) -> None:
        store = tmp_path / "runs.db"
        said: list[tuple[int, int, str]] = []
        study = study_jobs.study_of_form("bf-wmpi-shared", [("wmpi.packet", "64KiB,128KiB")])
        assert {s.name for s in study_jobs.list_studies(None)} == set(design.study_names())
        told = study_jobs.run(lambda *a: said.append(a), str(store), study.definition())
        assert (told["points"], told["simulated"]) == (2, 2)
        assert said[-1][:2] == (2, 2)
        found = study_jobs.show_study(open_store(store), str(told["study"]))
        assert (found.points, found.completed) == (2, 1)
        assert [f.outcome for f in found.failures] == ["aborted"]
        assert found.figures
        assert any(s.id == told["study"] for s in study_jobs.list_studies(open_store(store)))


class TestLabs:
    def test_commands_of_a_text_are_views_of_the_studio(self) -> None:
        from retrompi.studio.labs.lab_commands import form_of, view_of

        lines = (
            "retrompi pingpong --model wmpi --mode shared --set wmpi.packet=64KiB --sizes 0,1KiB",
            "retrompi explain -m wmpi --mode shared --size 512KiB",
            "retrompi pingpong --model ./evil --mode shared",
            "retrompi replay mine.ti --model wmpi",
        )
        assert [view_of(form) for form in map(form_of, lines) if form is not None] == [
            "/whatif?model=wmpi&platform=nt-pair&mode=shared&set=wmpi.packet%3D64KiB",
            "/anatomy?model=wmpi&platform=nt-pair&mode=shared&size=512KiB", "", "",
        ]
        assert form_of("retrompi runs delete 1") is None
        assert form_of("rm -rf /") is None

    def test_every_lab_has_a_page_and_a_path_is_no_lab(self, tmp_path: Path, draw: Any) -> None:
        from retrompi.labs.lab import lab_names

        for name in lab_names():
            assert name[:2] in words(draw("/labs", f"?lab={int(name[:2])}")[0])
        evil = tmp_path / "evil"
        evil.mkdir()
        (evil / "reference.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        assert "labs-list" in str(draw("/labs", f"?lab={evil}")[0])
        assert not (tmp_path / "ran").exists()
