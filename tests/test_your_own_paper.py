"""docs/your-own-paper.md from an empty folder: its files and commands alone give a paper's page, and nothing of the package is edited."""

from __future__ import annotations

import csv
import hashlib
import json
import tomllib
from pathlib import Path

import pytest
from doc_pages import ROOT, blocks
from test_docs_commands import Reader, _environment

PAGE = "docs/your-own-paper.md"
PACKAGE = ("models", "platforms", "scenarios", "validate", "labs", "cli", "src/retrompi")


def _state() -> dict[str, str]:
    """File -> hash of everything that a user could edit in the package."""
    found = {}
    for folder in PACKAGE:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                found[str(file.relative_to(ROOT))] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of somebody who has done what the page says."""
    folder = tmp_path_factory.mktemp("empty")
    before = _state()
    reader = Reader(PAGE, folder, _environment(folder, tmp_path_factory.mktemp("cache")))
    try:
        reader.read()
    finally:
        reader.end()
    for seconds, text in reader.seconds:
        print(f"{seconds:6.1f} s  {text[:120]}")
    assert not reader.wrong, "\n\n".join(reader.wrong)
    assert _state() == before
    return folder


def test_the_walk_gives_a_page(walked: Path) -> None:
    page = (walked / "report" / "sparc-pvm.html").read_text(encoding="utf-8")
    for text in ("A notebook of PVM on SPARCstations", "NB-01", "NB-02", "NB-03", "sparc-pvm:table1", "PVM on SunOS", "Platform sparc-pair",
                 "unix_buffer", "sparcstation-20"):
        assert text in page, text


def test_the_table_has_ten_sizes_and_the_fit_saw_half(walked: Path) -> None:
    with (walked / "sparc-pvm" / "curves" / "table1.csv").open(encoding="utf-8") as handle:
        assert len(list(csv.DictReader(handle))) == 10


def test_the_fit_is_beside_what_was_fitted(walked: Path) -> None:
    host = tomllib.loads((walked / "sparc-pvm/platforms/hosts/sparcstation-20.fit.toml").read_text(encoding="utf-8"))
    model = tomllib.loads((walked / "sparc-pvm/models/pvmsun/fit.toml").read_text(encoding="utf-8"))
    assert "tcp_segment" in json.dumps(host)
    assert "length" in json.dumps(model)


def test_its_numbers_are_said_to_be_made_up() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert "made up for this page" in text
    claims = next(b.text for b in blocks(PAGE) if b.title.endswith("claims.csv"))
    assert all(line.endswith("made up") for line in claims.splitlines()[1:])
