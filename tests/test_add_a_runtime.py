"""docs/add-a-runtime.md beyond its commands, which tests/test_docs_commands.py runs: its model's size and place, errors in its evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from doc_pages import blocks
from refusals import refused

from retrompi.base import units
from retrompi.papers.fit import calibrate
from retrompi.sim import simulate
from retrompi.spec.question import Question, pingpong


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


@for_each(
    "change, message",
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
    from retrompi.papers.judging.evidence import evidence
    from retrompi.spec import registry

    files = _files()
    (tmp_path / "postbox").mkdir()
    (tmp_path / "postbox" / "__init__.py").write_text(files["postbox/__init__.py"], encoding="utf-8")
    text = files["postbox/evidence.toml"]
    assert change[0] in text
    (tmp_path / "postbox" / "evidence.toml").write_text(text.replace(*change), encoding="utf-8")
    with refused(InputError, message):
        evidence(registry.model(str(tmp_path / "postbox")))


EVIDENCE = """
[[claim]]
id = "POST-01"
observable = "time of 1000 B"
value = "{time}"
unit = "us"
low = {low}
high = {high}
use = "{use}"
source = "laboratory notebook, page 12"
check = {check}

[[curve]]
name = "shared"
title = "two ranks on one machine"
file = "points.csv"
placement = "shared"
error = 0.01
use = "calibrate"
hold_out = "alternate"
"""


@pytest.mark.parametrize("check", ['{ kind = "range", mode = "shared", metric = "time_at", size = "1000 B" }',
                                   '{ kind = "curve", curve = "shared", metric = "time_at", size = "1000 B" }'])
def test_a_curve_and_a_time_at_a_size_are_evidence_of_a_model(tmp_path: Path, check: str, retrompi: Callable[..., Any]) -> None:
    folder = tmp_path / "postbox"
    folder.mkdir()
    (folder / "__init__.py").write_text(_files()["postbox/__init__.py"], encoding="utf-8")
    sizes = (0, 1, 64, 512, 1000, 4096, 16384, 65536)
    question = Question(str(folder), "nt-pair", pingpong(sizes, 1, 1), "shared", ["postbox.library=83us"])
    true = {int(r["size_B"]): float(r["time_us"]) for r in simulate.benchmark(question)}
    (folder / "points.csv").write_text("bytes,time_us\n" + "".join(f"{s},{t}\n" for s, t in true.items()))
    limits = {"time": true[1000], "low": true[1000] * 0.97, "high": true[1000] * 1.03, "check": check}
    (folder / "evidence.toml").write_text(EVIDENCE.format(**limits, use="calibrate"))
    fit = calibrate.fit(str(folder), "nt-pair", evaluations=30)
    assert units.parse(fit.values[0]["value"], "s") == pytest.approx(83e-6, rel=0.02)
    assert [(r["claim"], abs(r["residual"]) <= 1) for r in fit.residuals] == [
        ("POST-01", True), ("curve shared", True), ("curve shared, held-out sizes", True)]
    fit.write()
    (folder / "evidence.toml").write_text(EVIDENCE.format(**limits, use="validate"))
    judged = json.loads(retrompi("validate", "--model", str(folder), "--json").out)
    assert [(v["id"], v["verdict"]) for v in judged] == [
        ("POST-01", "pass"), ("postbox:shared", "pass"), ("postbox:shared:held-out", "pass")]


def test_calibrating_a_paper_fits_its_own_models_to_its_claims(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    folder = tmp_path / "mine"
    (folder / "models" / "postbox").mkdir(parents=True)
    (folder / "models" / "postbox" / "__init__.py").write_text(_files()["postbox/__init__.py"], encoding="utf-8")
    (folder / "paper.toml").write_text('title = "Mine"\nauthors = "I"\nmodels = ["postbox"]\nplatforms = ["nt-pair"]\n'
                                       'experiments = ["pingpong"]\n[pingpong]\nmodes = ["shared"]\nsizes = "0,1KiB"\n')
    (folder / "claims.csv").write_text("id,system,platform,configuration,observable,value,unit,low,high,kind,use\n"
                                       "MY-01,Postbox,pc,shared,latency,200,microseconds,190,210,quant,calibrate\n"
                                       "MY-02,Postbox,pc,shared,latency,900,microseconds,890,910,quant,calibrate\n")
    (folder / "checks.toml").write_text('[[MY-01]]\nkind = "range"\nmodels = ["postbox"]\nmode = "shared"\nmetric = "startup"\n')
    ended = retrompi("calibrate", str(folder))
    assert ended.code == 0, ended.err
    assert "every curve and claim that a fit saw is met" in ended.out
    assert "marked for calibration, seen by no fit: MY-02" in ended.out
    assert (folder / "models" / "postbox" / "fit.toml").is_file()
