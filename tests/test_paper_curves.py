"""Measured curves as evidence: how ``[[curve]]`` and ``[[fit]]`` are read, judged and fitted to."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import refused

from retrompi.base.errors import InputError
from retrompi.papers.reproduce import inspection
from retrompi.papers.statements import curves, scaffold
from retrompi.papers.statements.curves import PaperCurve

HEAD = 'name = "one"\ntitle = "One"\nmodel = "sockets"\nplatform = "p4-1800*2@ge-ga620"\n'
TABLE = "card,bytes,time_us,plus_minus\na,0,100,5\na,1024,150,15\na,65536,1500,15\nb,8,90,1\n"


def paper(folder: Path, text: str, **files: str) -> tuple[tuple[PaperCurve, ...], tuple[curves.FitPlan, ...]]:
    """What is read of a ``paper.toml`` of ``text``, with ``files`` (dots for slashes are not needed) beside it."""
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content)
    file = folder / "paper.toml"
    file.write_text(text)
    found, fits, problems = curves.read(tomllib.loads(text), file)
    for problem in problems:
        raise problem
    return found, fits


def one(folder: Path, text: str, table: str = TABLE) -> PaperCurve:
    """The only curve of a paper whose ``[[curve]]`` has `HEAD` and ``text``."""
    return paper(folder, f'[[curve]]\n{HEAD}file = "points.csv"\n{text}\n', points=table)[0][0]


def test_points_are_those_of_the_selected_rows(tmp_path: Path) -> None:
    found = one(tmp_path, 'where = { card = "a" }').points
    assert [(p.size, p.time, p.error) for p in found] == [
        (0, pytest.approx(100e-6), 0.05), (1024, pytest.approx(150e-6), 0.1), (65536, pytest.approx(1500e-6), 0.01)]


@for_each(
    "table, more, time",
    [
        ("bytes,mbps\n1000,80\n", "megabit = 1000000", 1e-4),
        ("bytes,mbps\n131072,8\n", "megabit = 1048576", 0.125),
        ("bytes,MBps\n1000,10\n", "", 1e-4),
        ("bytes,value,unit\n1000,100,time_us\n", "", 1e-4),
        ("bytes,value,unit\n1000,0.1,ms\n", "", 1e-4),
        ("bytes,value,unit\n1024,10,MiB/s\n", "", 1024 / (10 * 2**20)),
        ("bytes_approx,value,unit\n1000,80,Mbps\n", "megabit = 1000000", 1e-4),
        ("# unit: us\n# way: round trip\nsize time\n1000 200\n", "", 1e-4),
        ("# OSU MPI Latency Test v5.3\n# Size          Latency (us)\n1000   100.00\n", "", 1e-4),
        ("1000 7.62939 0.001\n2000 7.62939 0.002\n4000 7.62939 0.004\n", 'format = "netpipe"', 1e-3),
        ("1000 8.0 0.001\n2000 8.0 0.002\n4000 8.0 0.004\n", "", 1e-3),
        ("#p0\tp1\tdist\tlen\tave time (us)\trate\n0 1 1 1000 100.0 1e7\n", "", 1e-4),
    ],
)
def test_every_form_gives_one_way_seconds(tmp_path: Path, table: str, more: str, time: float) -> None:
    first = one(tmp_path, f"error = 0.1\n{more}", table).points[0]
    assert first.time == pytest.approx(time, rel=1e-4)
    assert first.error == 0.1


@for_each(
    "table, more, wanted",
    [
        ("bytes,time_us,plus_minus\n8,1,1\nx,1,1\n", "", "bad-number | points.csv:3 | bytes is 'x'"),
        ("bytes,time_us,plus_minus\n8.5,1,1\n", "", "bad-size | points.csv:2 | '8.5'"),
        ("bytes,time_us,plus_minus\n8,-1,1\n", "", "out-of-range | points.csv:2"),
        ("bytes,time_us,plus_minus\n8,nan,1\n", "", "bad-number | points.csv:2"),
        ("bytes,time_us,plus_minus\n8,1\n", "", "missing-key | points.csv:2 | 3 columns"),
        ("bytes,time_us,plus_minus\n8,1,1,1\n", "", "missing-key | points.csv:2"),
        ("bytes,time_us\n8,1\n", "", "missing-key | points.csv:2 | plus_minus | error"),
        ("bytes,mbps\n8,1\n", "error = 0.1", "missing-key | points.csv:2 | megabit = 1000000 or 1048576"),
        ("bytes,seconds\n8,1\n", "error = 0.1", "missing-key | points.csv:1 | time_us, mbps"),
        ("bytes,value\n8,1\n", "error = 0.1", "missing-key | points.csv:1 | unit"),
        ("bytes,value,unit\n8,1,fortnight\n", "error = 0.1", "bad-unit | points.csv:2 | fortnight"),
        (TABLE, 'where = { card = "c" }', "no-results | card = c | a, b"),
        (TABLE, 'where = { cart = "a" }', "missing-key | points.csv:1 | 'cart' | 'card'"),
        ("bytes,time_us,plus_minus\n", "", "no-results | points.csv"),
        ("# OSU MPI Bandwidth Test v5.3\n# Size      Bandwidth (MB/s)\n1000   100.00\n", "error = 0.1", "wrong-kind | 'bw'"),
    ],
)
def test_a_bad_table_is_named_with_its_line(tmp_path: Path, table: str, more: str, wanted: str) -> None:
    curve = one(tmp_path, more, table)
    with refused(InputError, wanted):
        _ = curve.points


CURVE = f'[[curve]]\n{HEAD}file = "points.csv"\nerror = 0.1\nuse = "calibrate"\n'


@for_each(
    "text, wanted",
    [
        (f'[[curve]]\n{HEAD}file = "points.csv"\nfyle = "x"', "unknown-key | paper.toml:7 | 'fyle' | 'file'"),
        (f'[[curve]]\n{HEAD}file = "../points.csv"', "bad-value | paper.toml:6 | folder"),
        (f'[[curve]]\n{HEAD}file = "pints.csv"', "not-found | paper.toml:6 | pints.csv"),
        (f"{CURVE}\n[[curve]]\n{HEAD}blind = true", "duplicate-name | paper.toml:11 | 'one'"),
        (f'[[curve]]\n{HEAD}file = "points.csv"\nuse = "calibrated"', "unknown-name | paper.toml:7 | calibrate"),
        (f'[[curve]]\n{HEAD}file = "points.csv"\nhold_out = "alternate"', "unused-option | paper.toml:7 | hold_out"),
        (f'[[curve]]\n{HEAD}file = "points.csv"\nerror = 5', "out-of-range | paper.toml:7 | 0.05"),
        (f'[[curve]]\n{HEAD}blind = true\nuse = "validate"', "unused-option | paper.toml:7 | blind"),
        (f'[[curve]]\n{HEAD}blind = true\nlayer_below = "two"', "unknown-name | paper.toml:7 | 'two'"),
        (f'[[curve]]\n{HEAD}blind = true\nlatency = "120"', "bad-unit | paper.toml:7"),
        (f'[[curve]]\n{HEAD}blind = true\nsizes = "8..1"', "bad-size | paper.toml:7"),
        ('[[curve]]\nname = "one"\ntitle = "t"\nplatform = "p"\nblind = true', "missing-key | paper.toml:1 | 'model'"),
        (f'{CURVE}\n[[fit]]\nname = "f"\nfree = ["sockets.x"]\ncurves = ["two"]', "unknown-name | paper.toml:13 | 'two' | one"),
        (f'{CURVE}\n[[fit]]\nname = "f"\nfree = []\ncurves = ["one"]', "missing-key | paper.toml:12 | free"),
        (f'{CURVE}\n[[fit]]\nname = "f"\nfree = ["sockets.x"]', "missing-key | paper.toml:10 | claims"),
        (f'{CURVE.replace("calibrate", "validate")}\n[[fit]]\nname = "f"\nfree = ["a.b"]\ncurves = ["one"]', "wrong-kind | paper.toml:13"),
        ("curve = 3", "bad-value | [[curve]]"),
    ],
)
def test_a_bad_curve_or_fit_is_named_with_its_line(tmp_path: Path, text: str, wanted: str) -> None:
    with refused(InputError, wanted):
        paper(tmp_path, text, points=TABLE)


def test_a_held_out_size_is_not_seen(tmp_path: Path) -> None:
    every_other = one(tmp_path, 'where = { card = "a" }\nuse = "calibrate"\nhold_out = "alternate"')
    assert [p.size for p in every_other.held_out] == [1024]
    assert [p.size for p in every_other.seen] == [0, 65536]
    named = one(tmp_path, 'use = "calibrate"\nhold_out = ["64 KiB", 0]')
    assert [p.size for p in named.held_out] == [0, 65536]


def test_a_blind_curve_has_a_question_and_no_points(tmp_path: Path) -> None:
    blind: Any = paper(tmp_path, f"[[curve]]\n{HEAD}blind = true")[0][0]
    assert blind.points == ()
    assert (blind.use, blind.blind) == ("context", True)
    got = curves.simulate_times(blind, [8, 1024])
    assert 0 < got[8] < got[1024]


def test_comments_cost_a_table_nothing(tmp_path: Path) -> None:
    table = "# source: Figure 3\n\n# way: {way}\nbytes,time_us,plus_minus\n8,200,10\n# a gap\n16,{second},10\n"
    for way, time in (("one way", 200e-6), ("round trip", 100e-6)):
        points = one(tmp_path, "", table.format(way=way, second="400")).points
        assert [(p.size, p.error) for p in points] == [(8, 0.05), (16, 0.025)]
        assert points[0].time == pytest.approx(time)
    for way, second, line in (("one way", "x", r"points.csv:7: time_us is 'x'"), ("both ways", "1", r"points.csv:3: .* not 'both ways'")):
        with pytest.raises(InputError, match=line):
            one(tmp_path, "", table.format(way=way, second=second)).points  # noqa: B018


def test_what_is_wrong_in_a_models_file_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    scaffold.create(folder)
    model = folder / "models" / "broken" / "__init__.py"
    model.parent.mkdir(parents=True)
    model.write_text("x = 1 / 0\n")
    file = folder / "paper.toml"
    file.write_text(file.read_text().replace('model = "sockets"', 'model = "broken"'))
    told = [str(p) for p in inspection.inspect(str(folder)).problems if "ZeroDivisionError" in str(p)]
    assert told == [f"{model}:1: this model cannot be loaded: ZeroDivisionError: division by zero"]
