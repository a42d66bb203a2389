"""What is written for those who cite and review: the paper's sections and references, CITATION.cff."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from retrompi.base.release import codemeta

ROOT = Path(__file__).resolve().parents[1]
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
SECTIONS = ("Summary", "Statement of need", "State of the field", "Software design", "Research impact statement", "AI usage disclosure",
            "Acknowledgements", "References")


def test_the_paper_has_the_sections_of_joss() -> None:
    assert tuple(re.findall(r"^# (.+)$", PAPER, re.M)) == SECTIONS
    _, head, body = PAPER.split("---\n", 2)
    assert all(f"\n{key}:" in f"\n{head}" for key in ("title", "tags", "authors", "affiliations", "date", "bibliography"))
    assert 750 <= len(body.split()) <= 1750  # the journal's bounds


def test_what_the_paper_cites_is_in_its_bibliography_and_in_the_reference_files() -> None:
    bib = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", bib, re.M | re.S))
    cited = set(re.findall(r"@(\w+)", "".join(re.findall(r"\[(@[^\]]+)\]", PAPER))))
    assert cited == set(entries)
    known = "".join(f.read_text(encoding="utf-8") for f in (ROOT / "validate" / "papers").glob("*/paper.toml"))
    known += (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    for key, text in entries.items():
        title = re.search(r"title = \{(.+)\},\n", text)
        names = re.search(r"author = \{(.+?)[,}]", text)
        assert title is not None
        assert names is not None
        plain = re.sub(r"[{}]", "", title[1]).lower()
        assert plain in known.lower() or names[1] in known, key
        assert "doi" not in text, "a DOI that no reference file has"


def test_codemeta_is_that_of_the_package() -> None:
    """Rewrite the file: python tests/test_citation.py."""
    told = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    assert told == codemeta()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (told["version"], told["description"]) == (project["version"], project["description"])
    assert told["softwareRequirements"] == project["dependencies"]
    assert told["author"]["name"] == project["authors"][0]["name"]


def test_the_citation_file_is_that_of_the_project() -> None:
    yaml = pytest.importorskip("yaml")
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"cff-version", "message", "title", "type", "version", "license", "authors"} <= set(cff)
    assert cff["license"] == "LGPL-2.1-or-later"
    assert [a["name"] for a in cff["authors"]] == [a["name"] for a in project["authors"]]
    assert set(project["keywords"]) & set(cff["keywords"])


if __name__ == "__main__":
    (ROOT / "codemeta.json").write_text(json.dumps(codemeta(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
