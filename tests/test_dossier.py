"""Model and platform cards: nothing on them is unsourced, and what a source names is quoted in its own words."""

from __future__ import annotations

import json

import pytest
from cases import for_each
from conftest import cited_ids, reference_ids

from retrompi.papers.statements import claims, sources
from retrompi.render.cards import dossier
from retrompi.spec import registry

MODELS = sorted(registry.models())
PLATFORMS = sorted(registry.platforms())


def test_every_row_of_the_reference_can_be_quoted() -> None:
    assert set(sources.rows()) == reference_ids()
    for c in sources.rows().values():
        assert c.text
        assert c.where


@for_each("name", MODELS)
def test_a_models_card_is_complete(name: str) -> None:
    card = dossier.model_dossier(name)
    assert json.loads(json.dumps(card))["name"] == name
    assert all(card[k] for k in ("title", "version", "years", "summary", "stands_for", "parameters"))
    params = registry.model(name).params()
    assert [p["name"] for p in card["parameters"]] == list(params)
    for p in card["parameters"]:
        assert {"value", "unit", "low", "high", "source", "help"} <= set(p)
        quoted = {c["id"] for c in p["rows"]}
        assert quoted == cited_ids(p["source"] + " " + p["help"]) & reference_ids()
        if p["source"].split(":")[0] in ("paper", "doc", "code") and cited_ids(p["source"]):
            assert quoted, p
    if any(p.fitted for p in params.values()) and card["fit"]:
        assert {v["name"] for v in card["fit"]["values"]} <= set(params)
        assert card["fit"]["date"]
        for r in card["fit"]["residuals"]:
            assert claims.find(r["claim"]).use == "calibrate"
            assert r["says"]


@pytest.mark.parametrize("name", ["wmpi", "winmpich", "hpvm"])
def test_a_card_says_what_judges_the_model_and_where_it_was_calibrated(name: str) -> None:
    told = [{"id": "BF-SM-14", "verdict": "fail", "observed": 1.7, "unit": "ratio", "note": "too slow"}]
    card = dossier.model_dossier(name, verdicts=told)
    ids = [j["id"] for j in card["judged"]]
    assert len(ids) == len(set(ids)) > 5
    named = {i for i, entries in claims.checks().items() if any(name in c.get("models", ()) for c in entries)}
    assert named <= set(ids)
    for j in card["judged"]:
        assert j["says"]
        assert j["where"]
        assert j["how"].startswith("kind ")
    assert card["failures"] == (["BF-SM-14"] if "BF-SM-14" in ids else [])
    known = registry.model(name).calibrated
    assert known is not None
    assert card["calibrated"]["platforms"] == list(known.platforms)
    assert card["calibrated"]["source"] == known.source


def test_variants_are_told_beside_their_model() -> None:
    card = dossier.model_dossier("wmpi")
    assert {v["name"] for v in card["variants"]} == {n for n in MODELS if n.startswith("wmpi:")}
    assert dossier.model_dossier("wmpi:absorbed")["variant_of"] == "wmpi"


@for_each("name", PLATFORMS)
def test_a_platforms_card_quotes_its_sources(name: str) -> None:
    room = registry.platform(name)
    card = dossier.platform_dossier(room)
    assert [q["path"] for q in card["quantities"]] == list(room.quantities)
    for q in [*card["quantities"], *card["kernels"]]:
        assert {c["id"] for c in q["rows"]} == cited_ids(q["source"] + " " + q["help"]) & reference_ids()
    assert bool(card["kernels"]) == name.startswith("nt-")


def test_the_printed_card(retrompi) -> None:  # type: ignore[no-untyped-def]
    told = retrompi("models", "show", "wmpi", "--full").out
    for text in ("the claims cited above", "in: baker-fox-long", "fit of wmpi", "half ranges from the middle", "calibrated range",
                 "judged by",
                 "variant wmpi:absorbed"):
        assert text in told
    room = retrompi("platforms", "show", "nt-pair", "--full").out
    assert "E-NT-01  Windows NT Server 4: thread quantum: 120 ms" in room
    assert "what the Rinf1 loops cost" in room


def test_looking_at_a_card_makes_no_store(retrompi, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.delenv("RETROMPI_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert retrompi("models", "show", "hpvm", "--full").code == 0
    assert not (tmp_path / "data").exists()
