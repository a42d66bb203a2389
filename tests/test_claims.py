"""The reference as shipped, and the rule that a fit never sees a held-out row."""

from __future__ import annotations

import ast
import csv
from dataclasses import replace
from pathlib import Path

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.papers.fit import calibrate
from retrompi.papers.statements import claims
from retrompi.papers.statements.claims import SizeRange, parse_size_range

MODELS = ("wmpi", "winmpich", "hpvm")
HEADER = "id,system,platform,configuration,observable,value,unit,low,high,kind,paper,section,also_in,note,use\n"


STUDIES = ("baker-fox", "lefevre-westrelin", "hudson-wang", "krishna-2010")


def test_shipped_reference_is_whole() -> None:
    rows = [c for c in claims.load() if claims.paper_key(c.paper) in STUDIES]
    assert len(rows) == 239
    counts = {use: sum(c.use == use for c in rows) for use in claims.USES}
    assert counts == {"calibrate": 55, "validate": 150, "context": 32, "exclude": 2}


def test_find_and_papers() -> None:
    assert claims.find("BF-SM-01").low == 165
    assert "baker-fox" in claims.papers()
    assert "baker-fox-long" not in claims.papers()
    assert claims.by_paper("baker-fox-long") == claims.by_paper("baker-fox")
    with refused(UsageError, "unknown-claim"):
        claims.find("BF-SM-1")
    with refused(UsageError, "unknown-paper | baker-fox"):
        claims.by_paper("bakerfox")


@for_each(
    "text, expected",
    [
        ("up to 32K", SizeRange(0, 32768)),
        ("<= 4K", SizeRange(0, 4096)),
        ("> 64K", SizeRange(65536, None, above=True)),
        ("64K-256K", SizeRange(65536, 262144)),
        ("time for 512K -> 4M DEcreases", SizeRange(524288, 4194304)),
        ("0-64K", SizeRange(0, 65536)),
        ("4M", SizeRange(4194304, 4194304)),
        ("MPI_Send/MPI_Recv", None),
        ("2-process PingPong", None),
    ],
)
def test_size_ranges_in_words(text: str, expected: SizeRange | None) -> None:
    assert parse_size_range(text) == expected


def test_size_range_membership() -> None:
    above = SizeRange(65536, None, above=True)
    assert 65536 not in above
    assert 131072 in above
    assert str(above) == "> 64K"
    assert 0 in SizeRange(0, 4096)
    assert 4096 in SizeRange(0, 4096)
    assert 8192 not in SizeRange(0, 4096)


@for_each(
    "row, line, message",
    [
        ("X-1,s,p,c,o,v,u,abc,2,quant,k,1,,,validate\n", 2, "bad-number | 'abc'"),
        ("X-1,s,p,c,o,v,u,3,2,quant,k,1,,,validate\n", 2, "bad-input"),
        ("X-1,s,p,c,o,v,u,1,2,quant,k,1,,,held\n", 2, "unknown-name | 'held'"),
        ("X-1,s,p,c,o,v,u,1,2,number,k,1,,,validate\n", 2, "unknown-name | 'number'"),
        ("X-1,s,p\n", 2, "missing-key"),
        ("X-1,s,p,c,o,v,u,1,2,quant,k,1,,,validate\n" * 2, 3, "duplicate-name"),
    ],
)
def test_malformed_rows_name_file_and_line(tmp_path: Path, row: str, line: int, message: str) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(HEADER + row)
    with refused(InputError, message) as caught:
        claims.load(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_missing_column_and_file(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text("id,system\n")
    with refused(InputError, "missing-key"):
        claims.load(path)
    with refused(InputError, "unreadable-file"):
        claims.load(tmp_path / "none.csv")


# --- the fit's door ---


@pytest.mark.parametrize("model", MODELS)
def test_for_fit_returns_only_calibrate_rows(model: str) -> None:
    rows = claims.for_fit(model)
    assert rows
    assert {c.use for c in rows} == {"calibrate"}
    assert claims.for_fit(f"{model}:some-variant") == rows


def test_every_numeric_nt_calibrate_claim_is_someones() -> None:
    mine = {c.id for m in MODELS for c in claims.for_fit(m)}
    wanted = {
        c.id for c in claims.load() if c.use == "calibrate" and c.low is not None and c.id.startswith(("BF-SM-", "BF-DM-", "BF-FUN-"))
    }
    assert wanted == mine


def test_for_fit_unknown_model() -> None:
    with refused(UsageError, "no-claims"):
        claims.for_fit("wmpj")


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(max_examples=25, deadline=None)
@given(low=numbers, high=numbers, text=st.text(max_size=20), model=st.sampled_from(MODELS))
def test_no_held_out_row_is_readable_through_the_door(low: float, high: float, text: str, model: str) -> None:
    """Whatever the held-out rows say, and even if they are not there at all, the fit is handed the same thing."""
    real = claims.load()
    before = claims.for_fit(model)
    poisoned = [
        replace(c, low=low, high=high, value=text, observable=text, configuration=text) if c.use != "calibrate" else c for c in real
    ]
    removed = [c for c in real if c.use == "calibrate"]
    with pytest.MonkeyPatch.context() as patch:
        for rows in (poisoned, removed):
            patch.setattr(claims, "load", lambda path=None, rows=rows: list(rows))
            assert claims.for_fit(model) == before


def test_calibration_uses_no_other_door() -> None:
    """calibrate.py may import for_fit and the measuring of a claim it was given; it never opens the reference."""
    path = Path(calibrate.__file__)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = {
        "retrompi.papers.statements.claims": {"for_fit", "Checks", "Claim"},
        "retrompi.papers.judging.verdicts": {"measure", "residual", "Finding"},
        "retrompi.papers.statements.metrics": {"curves"},
        "retrompi.papers.judging.evidence": {"facts_of_curves", "own_curves", "own_for_fit"},
        "retrompi.papers.statements.curves": {"PaperCurve"},
        "retrompi.papers.experiments": {"Look", "look", "looks"},
        "retrompi.papers.fit": {"curve_fits"},
        "retrompi.papers.judging": {"curve_checks"},
        "retrompi.papers.statements": {"curves"},
        "retrompi.papers.fit.free_values": {"free_number", "number_text", "value_text"},
        "retrompi.papers.fit.optimise": {"OptimiserSettings", "identifiability", "minimise"},
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "retrompi.papers":
                assert {a.name for a in node.names} <= {"for_fit", "measure"}
            elif node.module.startswith("retrompi.papers."):
                assert {a.name for a in node.names} <= allowed.get(node.module, set()), node.lineno
            elif node.module == "retrompi.base.paths":
                assert "reference_dir" not in {a.name for a in node.names}
        if isinstance(node, ast.Import):
            assert not any(a.name.startswith("retrompi.papers") for a in node.names), node.lineno
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not any(word in node.value for word in ("claims.csv", "import_module")), node.lineno
        if isinstance(node, ast.Name):
            assert node.id not in {"import_module", "__import__", "reference_dir"}, node.lineno


# --- the table of checks ---


def test_every_nt_claim_has_a_check() -> None:
    table = claims.checks()
    for c in claims.load():
        if c.id.startswith(("BF-SM-", "BF-DM-", "BF-FUN-")) and c.use != "context":
            assert c.id in table, c.id


def test_checks_repeat_no_published_number() -> None:
    """No value in checks.toml is a number: sizes and bounds come from the claim's own row."""

    def numbers_in(value: object) -> list[object]:
        if isinstance(value, (bool, str)):
            return []
        if isinstance(value, (int, float)):
            return [value]
        if isinstance(value, dict):
            return [n for v in value.values() for n in numbers_in(v)]
        assert isinstance(value, (list, tuple))
        return [n for v in value for n in numbers_in(v)]

    for claim_id, entries in claims.checks().items():
        assert numbers_in(list(entries)) == [], claim_id


def test_hardware_reference_is_shipped() -> None:
    path = paths.reference_dir() / "hardware.csv"
    with path.open(newline="", encoding="utf-8") as handle:
        ids = [row["id"] for row in csv.DictReader(handle)]
    assert len(ids) == len(set(ids)) == 130
