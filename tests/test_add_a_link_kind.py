"""docs/add-a-link-kind.md: a class declares a kind of link, a line its number, a file what it does; the changes are made to a copy.

`make exhaustive` builds the engine there and runs jobs on the new kind.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from changed_source import build, changed_copy, python
from doc_pages import blocks

PAGE = "docs/add-a-link-kind.md"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return changed_copy(tmp_path_factory.mktemp("source"), PAGE)


def test_a_kind_is_two_files_besides_what_it_does() -> None:
    in_source = {b.title for b in blocks(PAGE) if b.title.startswith("src/")}
    semantics = {b.title for b in blocks(PAGE) if b.kind == "cpp"}
    assert semantics == {"src/retrompi/engine/network/token_ring_wire.cpp"}
    assert in_source - semantics == {"src/retrompi/spec/machine/topology.py", "src/retrompi/spec/machine/link.py"}


def test_one_class_is_a_kind_everywhere(changed: Path) -> None:
    """The declaration alone: files, overrides, sizes, failures, SimGrid's XML, the levels of detail, and the engine's table and struct."""
    told = python(changed, """
import json
from retrompi.base.errors import RetrompiError
from retrompi.convert.platform_xml import xml
from retrompi.spec import registry
from retrompi.spec.compiled import cpp
from retrompi.spec.conditions import cross_traffic
from retrompi.spec.declare.fields import fields_of
from retrompi.spec.machine.link import Link
room = registry.platform("room.toml")
def refused(call, *given):
    try:
        return str(call(*given))
    except RetrompiError as error:
        return str(error)
hub = registry.platform("linux-p6-200*4@hub-10")
ring = {"link.kind": "token-ring", "link.token_hold": "10ms"}
print(json.dumps({
    "header": cpp.header(), "link": [room.link.kind, room.link.shape, room.link.token_hold],
    "grown": registry.platform("room.toml*9").link.shape, "set": hub.with_overrides(ring).link.shape,
    "choices": fields_of(Link)["kind"].choices,
    "failures": cross_traffic.failures(["token-ring@1s..2s", "link n2@1s"], room),
    "refused": [
        refused(hub.with_overrides, {"link.kind": "token-ring"}), refused(hub.with_overrides, {"link.kind": "tokenring"}),
        refused(hub.with_overrides, {**ring, "link.shape": "4"}), refused(hub.with_overrides, {**ring, "link.access": "csma-cd"}),
        refused(hub.with_overrides, {**ring, "link.buffer": "4KiB"}), refused(cross_traffic.failures, ["hub@1s"], room),
    ],
    "xml": xml(room),
}))
""")
    header = told.pop("header")
    assert "MakeWire queue_wire, hub_wire, pause_wire, token_ring_wire;" in header
    assert '{"token-ring", LinkLayout::Medium, token_ring_wire},' in header
    assert "  Ps token_hold = 0;  // how long a station of a ring may hold the token (ps)" in header
    assert told["link"] == ["token-ring", [4], 0.01]
    assert (told["grown"], told["set"]) == ([9], [4])
    assert told["choices"] == ["cable", "fat-tree", "hub", "pausing-switch", "switch", "token-ring", "torus", "wan"]
    assert told["failures"] == [[2, 0, 0, 1.0, 2.0, "token-ring"], [0, 1, 0, 1.0, -1.0, "link n2"]]
    lacks, near, shape, access, buffer, part = told["refused"]
    assert lacks == "platform.link: a token-ring needs token_hold, e.g. 10ms"
    assert "did you mean 'token-ring'?" in near
    assert "a token-ring has no shape" in shape
    assert "a token-ring has no access rule" in access
    assert "a token-ring has no output ports" in buffer
    assert "no such component on a token-ring; valid: 'link n1', 'token-ring'" in part
    assert told["xml"].count('sharing_policy="SHARED"') == 1


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler")
def test_the_token_of_the_page_goes_round(changed: Path) -> None:
    """Builds the changed engine. Four stations a microsecond apart, 2 MB/s: 1,000 B take 500 us, the token 1.5 us, a header 7.5 us."""
    build(changed)
    told = python(changed, """
import json
from retrompi import _engine
from retrompi.spec.declare.fields import to_engine
from retrompi.spec.machine.link import Link
US = 10**6
def carry(flows, hold=10e-3, rails=1, wire="native", failures=()):
    link = Link("token-ring", (4,), 2e6, 1e-6, frame_overhead=0.0, mtu=1500.0, rails=rails, token_hold=hold)
    places = [place for place in range(4) for _ in range(rails)]
    return [t / US for t in _engine.carry(wire, to_engine(link), places, [(int(t * US), *flow) for t, *flow in flows], list(failures))]
both = [(0, 1, 0, 1000), (0, 1, 0, 1000), (0, 3, 0, 1000)]
print(json.dumps({
    "round": carry([(0, 0, 1, 1000)]), "passing": carry([(10, 2, 0, 1000)]), "missed": carry([(10.5, 2, 0, 1000)]),
    "exhaustive": carry(both), "limited": carry(both, 0.6e-3), "short": carry([(0, 0, 1, 10), (0, 1, 2, 10)]),
    "rails": carry([(0, 2, 0, 1000), (0, 3, 1, 1000)], rails=2), "fluid": carry(both, wire="fluid"),
    "cut": carry(both, failures=[("host", 3, 0, 500 * US, -1)]),
}))
""")
    assert told == {
        "round": [505.0],  # it left station 0 at 0 and comes back after 4; 500; one hop
        "passing": [512.0],  # it comes to station 2 at 2, 6, 10; 500; two hops
        "missed": [516.0],  # at 14
        # Station 1 from 1 to 501 to 1001, three hops; the token leaves at 1002.5 and comes to 3 at 1004.5, which is one hop from 0.
        "exhaustive": [504.0, 1004.0, 1505.5],
        # After 501 there is no time for another: 502.5, at station 3 at 504.5, done at 1004.5; 1006, at station 1 at 1008, 500, three hops.
        "limited": [504.0, 1511.0, 1005.5],
        # Station 1 sends for 5 us from 1 on, and its header is back at 1 + 4 + 7.5; 14; at station 0 at 17; 5; one hop.
        "short": [23.0, 7.0],
        "rails": [504.0, 504.0],  # cards 2 and 3 are those of host 1 on two rings: from 1, 500, three hops
        "fluid": [1501.0] * 3,  # shared like a hub, and one latency
        "cut": [504.0, 1004.0, -500.000002],  # lost at 500
    }
    told = python(changed, """
import json
from retrompi.sim import simulate
from retrompi.spec.question import Message, Question, pingpong
def stages(platform, **sets):
    sets = {f"platform.link.{key}": value for key, value in sets.items()}
    told = simulate.explain(Question("mpich", platform, Message(100), "n1,n3", sets))
    return {row["stage"]: row["ps"] for row in told["stages"]}
if __name__ == "__main__":
    hold = [f"platform.link.token_hold={t}" for t in ("10ms", "1ms")]
    print(json.dumps({
        "ring": [stages(room) for room in ("room.toml", "room.toml*8")], "hub": stages("room.toml", kind="hub"),
        "curve": [simulate.benchmark(Question("mpich", "room.toml", pingpong([65536], 3), "n1,n3", [h]))[0]["time_us"] for h in hold],
    }))
""")
    hub = told["hub"]
    passing = hub["wire"] - 1_000_000  # the hub's one latency
    waits = [ring["wire"] - passing - 2_000_000 for ring in told["ring"]]  # two hops
    assert all({**ring, "wire": 0} == {**hub, "wire": 0} for ring in told["ring"])  # nothing but the wire is slower
    assert 0 <= waits[0] < 4_000_000  # less than a round of four stations
    assert waits[0] < waits[1] < 8_000_000
    # A full segment takes 0.77 ms: in 1 ms one goes for each token, which then comes to the receiver, who acknowledges; in 10 ms twelve do.
    twelve, one = told["curve"]
    assert twelve > one
