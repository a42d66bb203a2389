"""The table of transfer: its pairs, their sources, what it counts, and where it is shown."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases import for_each
from refusals import agrees, refused

from retrompi.base import paths
from retrompi.base.errors import InputError
from retrompi.cli.transfer import USES, by_model
from retrompi.papers.predict import transfer
from retrompi.papers.statements import claims
from retrompi.papers.statements.sources import rows as reference
from retrompi.render.atlas.transfer_table import HELD, NUMBERS, numbers, statement_rows, transfer_html
from retrompi.render.cards.dossier import model_dossier
from retrompi.spec import registry
from retrompi.store import open_store

SIMULATED = [(p, n) for p in transfer.pairs() for n in p.numbers if p.platform]


def test_every_model_and_every_platform_of_the_table_exist() -> None:
    for pair in transfer.pairs():
        registry.model(pair.model)
        if pair.platform:
            registry.platform(pair.platform)
        else:
            assert pair.note, f"{pair.model} on {pair.machine} is not simulated: the note says why"


def test_every_model_of_the_package_is_in_the_table() -> None:
    """Rivals stand for no other library than that which they vary."""
    real = {name for name, cls in registry.models().items() if not cls.variant_note.startswith("Rival")}
    assert {p.model for p in transfer.pairs()} >= real


def _told(ref: str) -> str:
    period = paths.reference_dir() / "period" / "evidence.csv"
    with period.open(newline="", encoding="utf-8") as handle:
        known = {r["id"]: f"{r['value']} {r['low']} {r['high']} {r['unit']}" for r in csv.DictReader(handle)}
    known |= {i: c.text for i, c in reference().items()}
    assert ref in known, f"no row {ref}"
    return known[ref]


@for_each("number", [n for p in transfer.pairs() for n in p.numbers])
def test_a_published_number_is_that_of_its_row(number: transfer.PublishedNumber) -> None:
    """The ends of its range stand in the row, in some unit."""
    told = [float(x) for x in re.findall(r"\d+(?:\.\d+)?", _told(number.ref))]
    scales = {"s": (1, 1e-3, 1e-6), "B/s": (1e6, 1e6 / 8, (1 << 20) / 8), "B": (1, 1024)}[transfer.WHAT[number.what][1]]
    assert number.low <= number.published <= number.high
    for end in (number.low, number.high):
        assert any(x * s == pytest.approx(end, rel=2e-3) for x in told for s in scales), f"{end} is not in '{_told(number.ref)}'"


def test_statements_are_counted_once_and_only_fitted_or_held_out(tmp_path: Path) -> None:
    rows = [r for r in transfer.rows(open_store(tmp_path / "x.db"), "winmpich") if r["unit"] == "statements"]
    counts = {r["use"]: r["published"] for r in rows}
    mine = claims.judging("winmpich")
    assert counts == {word: sum(c.use == use for c in mine) for use, word in (("calibrate", "fitted"), ("validate", "held out"))}
    verdicts = {c.id: "fail" for c in mine} | {mine[0].id: "pass"}
    assert sum(r["simulated"] for r in transfer.with_verdicts(rows, verdicts)) == (mine[0].use in ("calibrate", "validate"))


def test_half_of_the_bandwidth_is_interpolated() -> None:
    assert transfer._half({1024: 25.0, 4096: 50.0, 1 << 20: 100.0}) == pytest.approx(4096)
    assert 1024 < transfer._half({1024: 25.0, 4096: 60.0, 1 << 20: 100.0}) < 4096


@for_each(
    "wrong, error",
    [("what = 'speed'", "unknown-name"), ("use = 'seen'", "unknown-name"), ("size = '4 parsecs'", "bad-unit"),
     ("paper = 'x'", "unknown-key"), ("ref = 'x', models = 3", "unknown-key")],
)
def test_a_wrong_file_is_told(wrong: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"what": "'time'", "use": "'held out'", "size": "'0 B'", "published": "'1 us'", "ref": "'x'"}
    texts = {key: f"{key} = {text}" for key, text in given.items()}
    texts[wrong.partition(" ")[0]] = wrong
    (tmp_path / "transfer.toml").write_text(
        f"[[pair]]\nmodels = ['wmpi']\nmachine = 'x'\nnumbers = [{{ {', '.join(texts.values())} }}]\n", encoding="utf-8"
    )
    monkeypatch.setattr(paths, "validate_dir", lambda: tmp_path)
    transfer.pairs.cache_clear()
    try:
        with refused(InputError, f"{error} | transfer.toml"):
            transfer.pairs()
    finally:
        transfer.pairs.cache_clear()


@for_each("pair, number", SIMULATED)
def test_the_shipped_table_is_what_the_models_give(pair: transfer.TransferPair, number: transfer.PublishedNumber, tmp_path: Path) -> None:
    """If this fails, a model or machine has changed: `retrompi transfer --write` after `retrompi validate --all`."""
    rows = [r for r in transfer.shipped_rows(pair.model) if r["ref"] == number.ref and r["machine"] == pair.machine
            and (r["what"], r["size_B"]) == (transfer.WHAT[number.what][0], number.size)]
    assert len(rows) == 1
    assert rows[0]["simulated"] == pytest.approx(transfer._simulate_number(open_store(tmp_path / "x.db"), pair, number, False), rel=1e-4)


def test_the_table_is_on_cards_and_in_the_atlas() -> None:
    card = model_dossier("craympt")
    assert {r["machine"] for r in card["transfer"]} >= {p.machine for p in transfer.pairs() if p.model == "craympt"}
    assert "cray-j90" in transfer_html(transfer.shipped_rows())


def test_every_row_is_in_one_of_the_two_tables_as_one_line() -> None:
    rows = transfer.shipped_rows()
    told, counted = numbers(rows), statement_rows(rows)
    assert len(told) == sum(r["unit"] not in ("statements", None) for r in rows)
    assert {(r["model"], r["machine"]) for r in counted} == {(r["model"], r["machine"]) for r in rows if r["unit"] in ("statements", None)}
    for head, texts in ((NUMBERS, told), (HELD, counted)):
        widths = [max(len(str(t[k])) for t in texts) for k in head]
        assert sum(widths) + 2 * (len(head) - 1) <= 100


def test_the_command(retrompi: Callable[..., Any]) -> None:
    rows = json.loads(retrompi("transfer", "--model", "nemesis", "--json").out)
    assert {r["model"].partition(":")[0] for r in rows} == {"nemesis"}
    assert set(rows[0]) == set(transfer.KEYS)
    table = list(csv.DictReader(retrompi("transfer", "-m", "nemesis", "--csv").out.splitlines()))
    assert [r["machine"] for r in table] == [r["machine"] for r in rows]
    assert "not run" in retrompi("transfer", "-m", "nemesis").out
    agrees(retrompi("transfer", "-m", "nemesys"), "unknown-model | 'nemesis'")
    agrees(retrompi("transfer", "-m", "nemesis", "--write"), "conflicting-options")


def test_a_line_for_each_model_counts_every_number_once() -> None:
    rows = transfer.shipped_rows()
    lines = {line["model"]: line for line in by_model(rows)}
    assert set(lines) == {r["model"] for r in rows if r["unit"] is not None}
    for model, line in lines.items():
        mine = [r for r in rows if r["model"] == model]
        for use in USES:
            ratios = [r["ratio"] for r in mine if r["use"] == use and r["unit"] != "statements" and r["ratio"] is not None]
            several = f"{min(ratios):.2f}..{max(ratios):.2f} ({len(ratios)})" if len(ratios) > 1 else "".join(f"{r:.2f}" for r in ratios)
            assert line[use] == several, (model, use)
        held_out = [r for r in mine if r["unit"] == "statements" and r["use"] == "held out" and r["simulated"] is not None]
        judged = f"{sum(r['simulated'] for r in held_out):g} of {sum(r['published'] for r in held_out):g}" if held_out else ""
        assert line["hold, held out"] == judged, model
        assert line["predicted"] == (str(n) if (n := sum(r["use"] == "blind" for r in mine)) else "")


def test_all_models_are_summed_up_and_shown_on_request(retrompi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrompi.api.predicting.transfer_of", lambda *asked: SimpleNamespace(rows=transfer.shipped_rows()))
    short, whole = retrompi("transfer").out, retrompi("transfer", "--all").out
    assert "no number is published of" in short
    assert len(short.splitlines()) < 70 < len(whole.splitlines())
