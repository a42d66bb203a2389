"""The anatomy page: the message path that the engine records, and the moving picture made of it."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest
from cases import for_each

from retrompi.sim.observe import Observe
from retrompi.spec.question import Message, Question, Replay

pytest.importorskip("dash", reason="the studio needs dash: pip install dash")

from retrompi.sim import simulate
from retrompi.sim.message_path import MessagePath
from retrompi.sim.timeline import TimelineRequest
from retrompi.spec import registry
from retrompi.studio.anatomy import anatomy_job as message
from retrompi.studio.anatomy import path_diagram, path_words, scene
from retrompi.studio.pages import anatomy
from retrompi.studio.requests.state import Query

KIB = 1024
SIZES = (0, 1000, 129 * KIB, 1024 * KIB)
MODES = ("shared", "distributed")
_KEPT: dict[tuple[str, str, int], simulate.Result] = {}


def home(model: str) -> str:
    """A platform that the model was made for."""
    known = registry.model(model).calibrated
    return known.platforms[0] if known and known.platforms else "nt-pair"


def travelled(model: str, mode: str, size: int) -> simulate.Result:
    key = (model, mode, size)
    if key not in _KEPT:
        message = Replay(simulate.explained_trace(size))
        _KEPT[key] = simulate.run(Question(model, home(model), message, mode), Observe(anatomy=True, directions=simulate.DIRECTIONS))
    return _KEPT[key]


def joined(model: str, mode: str) -> bool:
    """Whether two ranks placed so on the model's home can be one job: a shared-memory device joins one machine only."""
    room = registry.platform(home(model))
    return not registry.model(model)().joins(room, simulate.place(room, mode, 2))


@lru_cache
def placed() -> list[tuple[str, str]]:
    return [(model, mode) for model in registry.model_names() for mode in MODES if joined(model, mode)]


def every_message() -> list[tuple[str, str, int]]:
    return [(model, mode, size) for model, mode in placed() for size in SIZES]


everywhere = for_each("model, mode, size", every_message, few=80)


@everywhere
def test_the_chain_has_no_gap_and_sums_exactly_to_the_engines_total(model: str, mode: str, size: int) -> None:
    result = travelled(model, mode, size)
    told: MessagePath = result.message_path
    assert sum(direction.took for direction in told.directions) == result.anatomy_ps
    assert told.directions[0].end == told.directions[1].begin
    for i, direction in enumerate(told.directions):
        assert direction.chain[0].begin == direction.begin
        assert direction.chain[-1].end == direction.end
        assert all(a.end == b.begin for a, b in pairwise(direction.chain))
        assert all(k.took > 0 and k.stage in scene.STAGES and k.stage != "wait" for k in direction.chain)
        assert sum(ps for _, ps in scene.bars(direction.chain)) == direction.took
        rows = path_words.hops(told, i)
        assert sum(r.took for r in rows) == direction.took
        assert all(r.what and r.where for r in rows)


@everywhere
def test_both_ways_together_are_the_anatomy_that_explain_tells(model: str, mode: str, size: int) -> None:
    result = travelled(model, mode, size)
    sums: Counter[tuple[str, str]] = Counter()
    for direction in result.message_path.directions:
        for k in direction.chain:
            sums[k.stage, k.who] += k.took
    assert sum(sums.values()) == result.anatomy_ps
    # Where the answer's chain of causes begins elsewhere than with the rank that answers (on one processor what is still under way of
    # the message can hold up the answer's last packet), there is no moment at which both chains meet.
    if result.message_path.directions[1].chain[0].who == "rank 1":
        assert {(r["stage"], r["process"]): r["ps"] for r in result.anatomy if r["ps"]} == dict(sums)


def test_nearly_every_answer_begins_with_the_rank_that_answers() -> None:
    begins = Counter(travelled(*e).message_path.directions[1].chain[0].who == "rank 1" for e in every_message())
    assert begins[True] > 0.95 * begins.total()


@everywhere
def test_what_goes_into_a_channel_comes_out_of_it(model: str, mode: str, size: int) -> None:
    result = travelled(model, mode, size)
    told: MessagePath = result.message_path
    for i, direction in enumerate(told.directions):
        mine = [p for p in told.of(i) if p.kind == "data"]
        assert mine
        assert {p.message for p in mine} == {size}
        for p in mine:
            assert direction.begin <= p.queued <= p.copy_in_begin <= p.copy_out_begin <= p.copy_out_end <= direction.end
            assert p.copy_in_begin <= p.copy_in_end or p.channel >= 0  # a direct copy is not laid anywhere
        into, out = Counter[int](), Counter[int]()
        asked = [p for p in told.of(i) if p.kind == "request" and p.bytes]  # a request may carry the first part of the message
        for p in mine + asked:
            out[p.source] += p.bytes
            into[p.target] += p.bytes
        assert set(into.values()) | set(out.values()) == {size}
        ends = [f"rank {r}" for r in ((0, 1) if i == 0 else (1, 0))]
        assert [told.processes[p].name for p in (set(out) - set(into))] == ends[:1]
        assert [told.processes[p].name for p in (set(into) - set(out))] == ends[1:]


def ends_of(step: scene.TokenStep) -> tuple[str, str]:
    return (step.start, step.stop) if step.start else (step.at, step.at)


@everywhere
def test_whatever_moves_is_on_the_diagram_and_time_never_runs_back(model: str, mode: str, size: int) -> None:
    result = travelled(model, mode, size)
    told: MessagePath = result.message_path
    for i, direction in enumerate(told.directions):
        picture = path_diagram.diagram(told, told.of(i))
        assert not path_diagram.crossings(picture)
        for line in picture.lines.values():
            assert line.a in picture.boxes
            assert line.b in picture.boxes
        found = scene.tokens(told, i, picture)
        assert found
        assert not scene.gaps(found)
        for token in found:
            for step in token.steps:
                assert 0 <= step.begin < step.end <= direction.took
                if step.start:
                    line = picture.lines[step.at]
                    assert {step.start, step.stop} == {line.a, line.b}
                else:
                    assert step.at in picture.boxes
            for a, b in pairwise(token.steps):
                # A crossing that takes no time at all is no step.
                assert path_diagram.neighbours(picture, [ends_of(a)[1], ends_of(b)[0]]), f"{token.label} jumps from {a} to {b}"


@everywhere
def test_the_picture_is_plain_json_and_its_strip_covers_the_leg(model: str, mode: str, size: int) -> None:
    result = travelled(model, mode, size)
    told = scene.scene(result.message_path)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    strip = told["strip"]
    assert strip[0][0] == 0
    assert strip[-1][1] == told["total"]
    assert all(a[1] == b[0] for a, b in pairwise(strip))
    places = {b["name"] for b in told["boxes"]} | {line["name"] for line in told["lines"]} | {""}
    assert {p[3] for p in strip} <= places
    assert len(strip) <= scene.MOST_PIECES
    assert all(len(lane["pieces"]) <= scene.MOST_PIECES for lane in told["lanes"])
    assert len(told["tokens"]) <= 2 * scene.MOST_TOKENS
    for token in told["tokens"]:
        assert all(step[2] in places for step in token["steps"])


@for_each("model, mode, size", lambda: [e for e in every_message() if ":" not in e[0] and e[2] in (1000, 1024 * KIB)], few=30)
def test_recording_a_path_changes_no_time(model: str, mode: str, size: int) -> None:
    bare = simulate.run(Question(model, home(model), Replay(simulate.explained_trace(size)), mode))
    told = travelled(model, mode, size)
    assert [(m["rank"], m["label"], m["time_ps"]) for m in bare.marks] == [(m["rank"], m["label"], m["time_ps"]) for m in told.marks]
    assert bare.time_ps == told.time_ps
    assert bare.message_path is None
    half = simulate.explain(Question(model, home(model), Message(size), mode))
    assert abs(2 * half["total_ps"] - told.anatomy_ps) <= 2


@for_each("model, mode", placed, few=30)
def test_recording_observes_and_changes_no_event(model: str, mode: str) -> None:
    """Whatever is recorded, the same events happen: anatomy, message path, timeline, calls."""
    size = 129 * KIB
    asked = Question(model, home(model), Replay(simulate.explained_trace(size)), mode)
    bare = simulate.run(asked)
    assert bare.events > 0
    observed = [simulate.run(asked, o) for o in (Observe(anatomy=True), Observe(timeline=TimelineRequest()), Observe(profile=True))]
    for told in (travelled(model, mode, size), *observed):
        assert (told.time_ps, told.frames, told.packets) == (bare.time_ps, bare.frames, bare.packets)
        # A run that is not recorded does not simulate again what only repeats.
        assert told.events == observed[0].events >= bare.events


# -- the mechanisms are seen -------------------------------------------------------------------------------------------


def kinds(model: str, mode: str, size: int) -> set[str]:
    return {p.kind for p in travelled(model, mode, size).message_path.of(0)}


def test_a_rendezvous_asks_first() -> None:
    assert kinds("wmpi", "shared", 1000) == {"data"}
    assert kinds("wmpi", "shared", 1024 * KIB) == {"request", "ready", "data"}


def test_a_proxys_message_passes_two_proxies_and_a_daemons_two_daemons() -> None:
    for model, name in (("winmpich", "proxy"), ("wmpi", "daemon")):
        told = travelled(model, "distributed", 1000).message_path
        labels = [b.label for b in path_diagram.diagram(told, told.of(0)).boxes.values() if b.kind == "process"]
        assert sorted(labels) == sorted(["rank 0", name, name, "rank 1"])


def test_a_burnt_quantum_is_seen_where_it_is_burnt() -> None:
    rows = path_words.hops(travelled("wmpi", "shared", 1024 * KIB).message_path)
    longest = max(rows, key=lambda r: r.took)
    assert longest.stage == "quantum"
    assert longest.where == "rank 1"
    assert "spins" in longest.what


def test_a_direct_copy_needs_no_channel() -> None:
    told = travelled("nemesis:windows", "shared", 1024 * KIB).message_path
    assert [p.channel for p in told.of(0) if p.kind == "data"] == [-1]
    assert [line.kind for line in path_diagram.diagram(told, told.of(0)).lines.values()].count("direct") == 1


def test_acknowledgements_go_against_the_message() -> None:
    told = travelled("wmpi", "distributed", 1000).message_path
    back = [t for t in scene.tokens(told, 0, path_diagram.diagram(told, told.of(0))) if t.kind == "datagram ack"]
    assert back
    assert all(t.back for t in back)
    wires = [s for t in back for s in t.steps if s.start.startswith("card") and s.stop.startswith("card")]
    assert wires
    assert all(s.start == "card workstation" for s in wires)


# -- the page ----------------------------------------------------------------------------------------------------------


def asked(**given: str) -> dict[str, str]:
    return {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "size": "128 KiB", "set": "", **given}


def silent(done: int, total: int, what: str = "") -> None:
    pass


def texts(component: Any) -> str:
    """All texts of a component."""
    if isinstance(component, str):
        return component
    if isinstance(component, (list, tuple)):
        return " ".join(texts(c) for c in component)
    return texts(component.children) if getattr(component, "children", None) is not None else ""


def test_two_messages_beside_each_other() -> None:
    shown = message.travel(silent, [asked(size="256 KiB"), asked(size="257 KiB")], "there")
    assert json.loads(json.dumps(shown, allow_nan=False)) is not None
    a, b = (m["scene"]["total"] for m in shown)
    assert b > 10 * a  # the answer is waited for by spinning, which burns a quantum
    figure = anatomy.figure(shown)
    sums = [sum(t.x[i] for t in figure.data) for i in (0, 1)]
    assert sums == pytest.approx([a / 1e9, b / 1e9])
    said = texts(anatomy._sentences(shown))
    assert "A:" in said
    assert "B:" in said
    assert texts(anatomy._tables(shown)).count("exactly") == 2


def test_the_parameters_shown_are_those_the_path_depends_on() -> None:
    names = {mode: {r["name"] for r in message.parameters(asked(mode=mode), [])} for mode in MODES}
    assert "wmpi.pool" in names["shared"] - names["distributed"]
    assert "wmpi.daemon" in names["distributed"] - names["shared"]
    rows = message.parameters(asked(), ["packet=16KiB"])
    assert rows[0]["name"] == "wmpi.packet"
    assert rows[0]["set"]
    assert rows[0]["text"] == "16KiB"
    assert all(r["source"].startswith(("paper:", "doc:", "code:", "fit:", "assumed:")) for r in rows)


def test_a_what_if_is_another_message() -> None:
    plain, block = message.travel(silent, [asked(size="512 KiB"), asked(size="512 KiB", set="answer_wait=block")], "there")
    assert dict(plain["bars"])["quantum"] > 0
    assert "quantum" not in dict(block["bars"])


def test_what_lies_outside_of_the_calibration_is_told() -> None:
    inside, outside = message.travel(silent, [asked(), asked(platform="abe", size="8 MiB")], "there")
    assert inside["outside"] == []
    assert len(outside["outside"]) == 2
    assert "calibrated on nt-pair" in texts(anatomy._sentences([outside]))


def test_a_message_that_never_arrives_is_told() -> None:
    (shown,) = message.travel(silent, [asked(size="64 KiB", set="wmpi.pool=16KiB")], "there")
    assert "aborted" in shown["ended"]
    assert "scene" not in shown
    assert "aborted" in texts(anatomy._sentences([shown]))
    assert len(anatomy.figure([shown]).data) == 0


@for_each(
    "search, expected",
    [
        ("?model=wmpj", "no model 'wmpj'"),
        ("?size=twelve", "size=twelve"),
        ("?size=1GiB", "longer than the longest"),
        ("?size=1KiB,2KiB", "give one size"),
        ("?mode=apart", "mode=apart"),
        ("?b-platform=nowhere", "b-platform=nowhere"),
        ("?view=%3Cscript%3E", "view="),
    ],
)
def test_a_link_that_is_wrong_is_told_and_shown_at_its_default(search: str, expected: str) -> None:
    page = anatomy.layout(Query(search), None)  # type: ignore[arg-type]  # the layout asks nothing of the resources
    assert expected in texts(page)


def test_a_link_of_a_lab_is_understood() -> None:
    page = anatomy.layout(Query("?model=wmpi&mode=shared&size=512KiB"), None)  # type: ignore[arg-type]
    found = {c.id: getattr(c, "value", None) for c in page._traverse() if getattr(c, "id", None)}
    assert (found["anatomy-model"], found["anatomy-mode"], found["anatomy-size"], found["anatomy-slider"]) == (
        "wmpi",
        "shared",
        "512KiB",
        20,
    )
