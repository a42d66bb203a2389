"""The timeline's page: its tiles hold exact shares at every depth, it zooms to single events in a browser, and two runs share an axis."""

from __future__ import annotations

import base64
import io
import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import SIZES, browser
from engine_runs import run
from hypothesis import given, settings
from hypothesis import strategies as st

from retrompi.cli.main import run as cli
from retrompi.render.timeline import tiles, timeline_page
from retrompi.render.timeline.tiles import BINS, FAN, GAP, MERGED, Blocks, Lane, depths, grow, varints
from retrompi.render.timeline.timeline_view import tracks_of
from retrompi.sim.timeline import PS, Timeline, TimelineRequest
from retrompi.sim.timeline.versus import points, sections
from retrompi.traces import generate

__all__ = ["browser"]

HALO = generate.halo2d(3, 3, 8192, 3, flops=1e5)


def timed(model: str = "wmpi", trace: Any = HALO, wanted: TimelineRequest | None = None) -> Timeline:
    return run(trace, model, "distributed", timeline=wanted or TimelineRequest()).timeline


# ---------------------------------------------------------------- tiles


def numbers(data: bytes) -> list[int]:
    """The inverse of `varints`."""
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    return out


def columns(text: str) -> list[list[int]]:
    """A block, as the page reads it."""
    n, *rest = numbers(zlib.decompress(base64.b64decode(text), -15))
    flat = [-(v + 1) // 2 if v % 2 else v // 2 for v in rest]
    return [flat[i : i + n] for i in range(0, len(flat), n)] if n else []


class Tree:
    """The tree of a lane, read back: its nodes as (depth, number, inner node?, columns)."""

    def __init__(self, lane: Lane, span: int) -> None:
        files = io.StringIO(), io.StringIO()
        blocks = Blocks(*files)
        codes = grow(lane, span, blocks)
        blocks.close()
        texts = ["".join(re.findall(r">([^<]*)</script>", f.getvalue())) for f in files]
        parts: list[list[str]] = [[], []]
        for which, lengths in enumerate(blocks.lengths):
            at = 0
            for length in lengths:
                parts[which].append(texts[which][at : at + length])
                at += length
        self.width = depths(span)[1]
        self.nodes: list[tuple[int, int, bool, list[list[int]]]] = []
        walk = iter(codes)

        def node(depth: int, number: int) -> None:
            code = next(walk)
            block = code // 2
            self.nodes.append((depth, number, bool(code % 2), columns(parts[block % 2][block // 2])))
            if code % 2:
                for k in range(FAN):
                    node(depth + 1, number * FAN + k)

        if codes:
            node(0, 0)


lanes = st.lists(st.tuples(st.integers(1, 10**6), st.sampled_from([0, 1, 2, 5, GAP, MERGED + 1])), min_size=1, max_size=80)


@given(lanes, st.sampled_from([1, 4, 20, 4096]), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_shares_are_exact_at_every_depth(given_: list[tuple[int, int]], leaf: int, begin: int) -> None:
    at = np.cumsum([begin] + [length for length, _ in given_]).astype(np.int64)
    lane = Lane(at[:-1], np.array([v for _, v in given_], dtype=np.uint8), int(at[-1]), {"n": np.arange(len(given_), dtype=np.int64)})
    whole: Counter[int] = Counter()
    for length, value in given_:
        if value % MERGED != GAP:
            whole[value % MERGED] += length
    before, tiles.LEAF = tiles.LEAF, leaf
    try:
        tree = Tree(lane, lane.end)
    finally:
        tiles.LEAF = before
    assert tree.width * BINS >= lane.end
    leaves: set[tuple[int, int, int]] = set()
    covered: Counter[int] = Counter()
    deepest = Counter(d for d, *_ in tree.nodes)
    for depth in deepest:
        sums: Counter[int] = Counter()
        width = tree.width // FAN**depth
        assert width * FAN**depth == tree.width
        for d, number, inner, data in tree.nodes:
            if inner and d == depth:
                data = data or [[], [], []]
                bins = np.cumsum(data[0]).tolist()
                filled: Counter[int] = Counter()
                for b, value, time in zip(bins, data[1], data[2], strict=True):
                    sums[value] += time
                    filled[b] += time
                assert all(0 < t <= width for t in filled.values()), "no bin has more time than it lasts"
                assert not filled or max(filled) < BINS
            elif not inner and d <= depth and data:  # what this depth takes from leaves above
                node_begin = number * BINS * (tree.width // FAN**d)
                node_end = node_begin + BINS * (tree.width // FAN**d)
                place = node_begin + data[0][0]
                for length, value, n in zip(data[1], data[2], data[3], strict=True):
                    a, b = max(place, node_begin), min(place + length, node_end)
                    if value % MERGED != GAP and b > a:
                        sums[value % MERGED] += b - a
                    assert (length, value) == given_[n]
                    leaves.add((place, length, value))
                    place += length
        assert sums == whole
        covered.update(sums)
    assert leaves == {(int(a), length, v) for a, (length, v) in zip(at, given_, strict=False)}, "every interval is in a leaf, as it is"


@given(st.lists(st.integers(0, 2**63 - 1), max_size=50))
def test_varints_read_back(values: list[int]) -> None:
    assert numbers(varints(np.array(values, dtype=np.int64))) == values


def test_an_overview_has_shares_of_states_that_are_too_short_to_be_seen() -> None:
    n = 20_000
    lane = Lane(np.arange(n, dtype=np.int64) * 1000, (np.arange(n) % 2).astype(np.uint8), n * 1000)
    lane.begin[1::2] += 500  # 1500 of one, 500 of the other
    root = Tree(lane, lane.end).nodes[0]
    assert root[2]
    time = Counter[int]()
    for value, ps in zip(root[3][1], root[3][2], strict=True):
        time[value] += ps
    assert time == {0: n * 750, 1: n * 250}


def test_a_track_is_a_process_with_its_states_and_calls() -> None:
    t = timed()
    tracks = tracks_of(t)
    assert [x.name for x in tracks if x.host == tracks[0].host] == ["rank 0", "rank 6", f"daemon on {tracks[0].host}"]
    for track in tracks:
        p = t.processes[track.process]
        assert (track.lane.begin.tolist(), track.lane.end) == (list(p.begin), p.end)
        assert (track.calls is not None) == (p.kind == "rank")
    drawn = sum(int((x.calls.value != GAP).sum()) for x in tracks if x.calls is not None)
    assert drawn == sum(1 for b, e in zip(t.calls.begin, t.calls.end, strict=True) if e > b)


# ---------------------------------------------------------------- two runs


def test_sections_of_two_runs_add_up_and_are_those_between_the_marks() -> None:
    trace = generate.pingpong([1024, 8192], 4)
    one, other = timed("wmpi", trace), timed("hpvm", trace)
    found = points(one, other)
    assert [label for label, *_ in found[1:-1]] == [f"mark {label}" for label, _ in one.marks]
    assert len(one.marks) > 1
    told = sections(found)
    assert sum(round(s.one_s / PS) for s in told) == one.end
    assert sum(round(s.other_s / PS) for s in told) == other.end
    assert Timeline.from_row(json.loads(json.dumps(one.row()))).marks == one.marks
    one.marks = []
    calls = points(one, other)
    assert 5 < len(calls) < 16, "without a mark, from call to call"
    assert [a for _, a, _ in calls] == sorted(a for _, a, _ in calls)


def test_two_runs_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from retrompi import traces

    traces.write(generate.pingpong([1024], 3), f"{tmp_path}/pp")
    store = ["--store", f"{tmp_path}/runs.db"]
    for model in ("wmpi", "winmpich"):
        assert cli(["replay", f"{tmp_path}/pp", "-m", model, *store, "--timeline", f"{tmp_path}/{model}.json"]) == 0
    capsys.readouterr()
    assert cli(["timeline", "1", "--versus", "2", *store, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(r["difference_s"] == pytest.approx(r["versus_s"] - r["seconds"]) for r in rows)
    assert cli(["timeline", "1", f"{tmp_path}/both.html", "--versus", "2", *store]) == 0
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "Section by section" in page
    assert '<option value="pairs">' in page
    capsys.readouterr()
    assert cli(["timeline", "1", f"{tmp_path}/both.csv", "--versus", "2", *store]) == 2
    assert "with --versus FILE ends in .html" in capsys.readouterr().err


# ---------------------------------------------------------------- in a browser


def opened(browser: Any, path: Path, size: str, scheme: str = "light") -> tuple[Any, list[str]]:
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    seen: list[str] = []
    page.on("pageerror", lambda e: seen.append(str(e)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else seen.append(r.url))
    page.goto(path.as_uri())
    page.wait_for_function("document.getElementById('timeline').dataset.drawn")
    page.evaluate("document.getElementById('timeline').timeline.ready()")
    return page, seen


def test_a_page_shows_shares_and_zooms_to_single_events(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "LEAF", 16)  # so that a small run has several depths
    monkeypatch.setattr(Blocks, "CHUNK", 5000)
    t = timed()
    timeline_page.write(t, tmp_path / "t.html")
    page, seen = opened(browser, tmp_path / "t.html", "tablet")
    handle = "document.getElementById('timeline').timeline"
    kinds = page.evaluate("[...document.querySelectorAll('.timeline li')].map((e) => e.innerText)")
    from retrompi.sim.timeline.kinds import KINDS

    for row, track in enumerate(tracks_of(t)):
        p = t.processes[track.process]
        drawn = dict(zip(kinds, page.evaluate(f"(() => {{ {handle}.show(0, {t.end}); return {handle}.shares({row}); }})()"), strict=True))
        exact = {name: sum(p.totals.get(s, 0) for s in states) / t.end for name, _, _, states in KINDS}
        assert drawn == pytest.approx({name: exact[name] for name in kinds}, abs=2e-3), track.name
    one = next(i for i, r in enumerate(t.calls.rank) if r == 0 and t.ops[t.calls.op[i]].lower().startswith("isend"))
    begin, end = t.calls.begin[one], t.calls.end[one]
    page.evaluate(f"(() => {{ {handle}.show({begin}, {end}); return {handle}.ready(); }})()")
    assert ["rank 0", t.ops[t.calls.op[one]]] in page.evaluate(f"{handle}.calls()")
    told = page.evaluate(f"{handle}.hover(400, 40)")
    assert "rank 0" in told
    assert f":{t.calls.line[one]}" in told
    assert all(0 <= m["source"] < len(t.processes) for m in page.evaluate(f"{handle}.messages()"))
    page.keyboard.press("Tab")
    page.locator("[data-part=all]").click()
    page.evaluate(f"{handle}.ready()")
    assert page.evaluate(f"{handle}.messages().length") == len(t.messages)
    page.locator("[data-part=rows]").focus()
    page.keyboard.press("+")
    assert page.evaluate(f"{handle}.view.to - {handle}.view.from") < 0.6 * t.end
    assert seen == [], "an error, or a request of another host"
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_runs_fit_on_a_phone_and_are_aligned_at_a_mark(browser: Any, tmp_path: Path, scheme: str) -> None:
    trace = generate.pingpong([1024, 8192], 4)
    one, other = timed("wmpi", trace), timed("hpvm", trace)
    timeline_page.write_versus(one, other, tmp_path / "t.html", ("Run 1", "run 2"))
    page, seen = opened(browser, tmp_path / "t.html", "phone", scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"][0]
    name, a, b = points(one, other)[1]
    page.locator("[data-part=align]").select_option(name)
    page.evaluate("document.getElementById('timeline').timeline.ready()")
    view = page.evaluate("document.getElementById('timeline').timeline.view")
    assert view["from"] == pytest.approx(-max(a, b), rel=0.02)
    assert seen == []
    page.close()
