"""docs/add-a-runtime.md beyond its commands, which tests/test_docs_commands.py runs: its model's size and place, errors in its evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import blocks
from refusals import refused


def _files() -> dict[str, str]:
    return {b.title: b.text for b in blocks("docs/add-a-runtime.md") if b.title}


def test_the_model_fits_on_a_page() -> None:
    assert len(_files()["postbox/__init__.py"].splitlines()) < 100


def test_its_files_are_four() -> None:
    assert sorted(_files()) == ["exchange.txt", "postbox/__init__.py", "postbox/evidence.toml", "test_postbox.py"]


def test_a_folder_among_the_models_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page says about models/: a folder there needs no path and no registration."""
    from retrompi.base import paths
    from retrompi.spec import registry

    (tmp_path / "postbox").mkdir()
    (tmp_path / "postbox" / "__init__.py").write_text(_files()["postbox/__init__.py"], encoding="utf-8")
    import retrompi.models

    monkeypatch.setattr(retrompi.models, "__path__", [*retrompi.models.__path__, str(tmp_path)])
    monkeypatch.setattr(paths, "models_dir", lambda: tmp_path)
    assert registry.model_names() == ["postbox"]
    assert registry.model("postbox").title == "Postbox"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('id = "POST-02"', 'id = "POST-01"'), "duplicate-name"),
        (('use = "validate"', 'use = "guess"'), "unknown-name | 'guess'"),
        (('kind = "range", mode = "shared", metric = "peak"', 'kind = "rnge"'), "unknown-name | 'rnge'"),
        (("low = 47\n", ""), "unknown-key | 'low'"),
        (('metric = "peak"', 'metric = "speed"'), "bad-value | POST-02 | 'speed' | startup, time_at, bandwidth_at"),
        (('metric = "peak"', 'metric = "time_at"'), "bad-value | POST-02 | 'time_at' | size"),
        (('metric = "peak"', 'metric = "time_at", size = "1 furlong"'), "bad-value | POST-02 | 1 furlong"),
        (('metric = "peak"', 'metric = "peak", sizes = "1024"'), "bad-value | POST-02 | 1024"),
        (('metric = "peak"', 'metric = ["peak"]'), "bad-value | POST-02"),
        (('kind = "range", mode = "shared", metric = "peak"', 'kind = "knee", mode = "shared", feature = "hill"'), "bad-value | 'hill'"),
        (('kind = "range", mode = "shared", metric = "peak"', 'kind = "trend", mode = "shared"'), "missing-key | 'shape'"),
        (("low = 47\n", 'low = "sixty"\n'), "bad-value"),
        (('id = "POST-02"', 'id = "' + 41 * "P" + '"'), "bad-name | 41 | 40"),
        (('id = "POST-02"', 'id = "POST\\u001b"'), "bad-name | U+001B"),
    ],
)
def test_wrong_evidence_is_told_in_one_line(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    from retrompi.base.errors import InputError
    from retrompi.papers.evidence import evidence
    from retrompi.spec import registry

    files = _files()
    (tmp_path / "postbox").mkdir()
    (tmp_path / "postbox" / "__init__.py").write_text(files["postbox/__init__.py"], encoding="utf-8")
    text = files["postbox/evidence.toml"]
    assert change[0] in text
    (tmp_path / "postbox" / "evidence.toml").write_text(text.replace(*change), encoding="utf-8")
    with refused(InputError, message):
        evidence(registry.model(str(tmp_path / "postbox")))
