"""The store of a trace's actions: whatever goes in comes out, in memory, in the file and as bytes, in a few bytes an action."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrompi import _engine, traces
from retrompi._engine import ActionList
from retrompi.traces import TraceError, generate

BLOCK = 512  # ActionList::kBlock
OPS = 70
INT8, INT32, INT64 = (st.integers(0, 255), st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
AMOUNT = st.floats(allow_nan=False) | st.integers(-(1 << 53), 1 << 53).map(float)
ACTION = st.tuples(
    st.integers(0, OPS - 1), INT8, INT32, INT32, INT32, INT32, st.integers(0, (1 << 32) - 1), INT64, INT64, AMOUNT, INT32, INT32
).map(ActionList.kept)  # what its operation has of all this
SEND = (5, 0, 1, 7, 0, -1, 1, 8192, 0, 0.0, 0, 0)
COMPUTE = (2, 0, 0, 0, 0, -1, 1, 0, 0, 0.0, 0, 0)


@pytest.fixture(params=["in memory", "in the file"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where blocks go, for one test."""
    before = _engine.trace_memory()["limit_B"]
    _engine.trace_memory(1 << 30 if request.param == "in memory" else 0)
    yield request.param
    _engine.trace_memory(before)


def filled(actions: list[_engine.ActionFields]) -> ActionList:
    stored = ActionList()
    for action in actions:
        stored.append(action)
    return stored


@pytest.mark.parametrize("limit", [0, 1 << 30])
@settings(max_examples=150, deadline=None)
@given(
    few=st.lists(ACTION, min_size=1, max_size=6),
    loop=st.lists(st.integers(0, 5), max_size=3 * BLOCK),
    others=st.lists(ACTION, max_size=40),
    sealed=st.integers(0, 3 * BLOCK),
    changed=st.tuples(st.integers(0, 1 << 20), ACTION),
)
def test_a_list_is_its_actions(
    limit: int,
    few: list[_engine.ActionFields],
    loop: list[int],
    others: list[_engine.ActionFields],
    sealed: int,
    changed: tuple[int, _engine.ActionFields],
) -> None:
    actions = [few[k % len(few)] for k in loop]
    actions[len(actions) // 2 : len(actions) // 2] = others
    before = _engine.trace_memory()["limit_B"]
    _engine.trace_memory(limit)
    try:
        stored = filled(actions[:sealed])
        stored.seal()
        for action in actions[sealed:]:
            stored.append(action)
        assert len(stored) == len(actions)
        assert stored.rows() == actions
        copy = ActionList(stored)
        if actions:
            at = changed[0] % len(actions)
            assert stored.rows(at) == actions[at:]
            stored[at] = changed[1]
            wanted = [*actions[:at], changed[1], *actions[at + 1 :]]
            assert stored.rows() == wanted
            assert [stored[i] for i in range(0, len(wanted), 97)] == wanted[::97]
            assert stored[at] == changed[1]
        assert copy.rows() == actions  # a copy shares blocks, not changes
        assert ActionList.unpack(copy.pack()).rows() == actions
    finally:
        _engine.trace_memory(before)


def test_the_sign_of_nothing_and_the_ends_of_numbers_survive(place: str) -> None:
    amounts = [0.0, -0.0, 1.5, -(2.0**53), 2.0**53, 2.0**53 + 2, 1e308, 5e-324, float("inf"), -1.0, 0.1, 0.1, 0.2, 7.0, 7.0]
    stored = filled([(*COMPUTE[:9], a, 0, 0) for a in amounts] * 100)
    assert [repr(r[9]) for r in stored.rows()] == [repr(a) for a in amounts] * 100


def test_what_repeats_takes_little(place: str) -> None:
    actions = [(*SEND[:2], k % 4, k % 4, 0, -1, 1 + k, 8192, 0, 0.0, 0, 1 + k % 8) for k in range(200 * BLOCK)]
    stored = filled(actions)
    assert stored.memory_B < (3 if place == "in memory" else 0.5) * len(actions)
    assert stored.rows() == actions


def test_every_action_different_still_fits(place: str) -> None:
    every = [(k % OPS, k % 251, k * 7919, -k, k << 7, k, k * 3, k << 40, -k << 33, k / 7, k, -k) for k in range(3 * BLOCK + 5)]
    actions = [ActionList.kept(action) for action in every]
    assert filled(actions).rows() == actions


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_broken_bytes_are_told(data: st.DataObject) -> None:
    image = bytearray(filled([SEND, (*COMPUTE[:9], 3.5, 0, 4)] * 40).pack())
    for _ in range(data.draw(st.integers(1, 4))):
        image[data.draw(st.integers(0, len(image) - 1))] = data.draw(st.integers(0, 255))
    broken = bytes(image[: data.draw(st.integers(0, len(image)))])
    try:
        stored = ActionList.unpack(broken)
    except TraceError:
        return
    assert len(stored.rows()) == len(stored)


def test_a_trace_is_the_same_in_memory_and_in_the_file() -> None:
    trace = generate.halo2d(4, 4, 8192, 300, flops=1e5)
    before = _engine.trace_memory()
    try:
        _engine.trace_memory(0)
        spilled = generate.halo2d(4, 4, 8192, 300, flops=1e5)
        assert _engine.trace_memory()["spilled_B"] > before["spilled_B"]
        assert spilled == trace
        assert spilled.sha256 == trace.sha256
        assert traces.Trace.load(spilled.dump()) == trace
        assert spilled.with_marks([(0, 0, "begin")]) == trace.with_marks([(0, 0, "begin")])
    finally:
        _engine.trace_memory(before["limit_B"])
    del spilled
    assert _engine.trace_memory()["spilled_B"] == before["spilled_B"]


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from retrompi.traces import TraceError, generate
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    generate.halo2d(4, 4, 8192, 3000)
except TraceError as error:
    print(error)
"""


def test_a_full_disk_is_one_error(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        capture_output=True,
        text=True,
        env={"RETROMPI_TRACE_MEMORY": "1000", "TMPDIR": str(tmp_path), "PATH": ""},
    )
    assert done.stderr == ""
    assert f"no more of the trace can be written to the temporary file in {tmp_path}" in done.stdout
    assert "RETROMPI_TRACE_MEMORY" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096  # ours is as it was


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (SEND[:-1], "is no row of 12 fields"),
        ("abcdefghijkl", "action: 'abcdefghijkl' of type str is no row of 12 fields"),
        (5, "action: 5 of type int is no row of 12 fields"),
        ((300, *SEND[1:]), "action: 300 of type int does not fit"),
        ((*SEND[:-1], None), "action: None of type NoneType does not fit"),
        ((*SEND[:-1], 0.5), "action: 0.5 of type float does not fit"),
    ],
)
def test_a_row_that_does_not_fit_is_told(row: object, told: str) -> None:
    stored = ActionList()
    with pytest.raises(TypeError, match=told):
        stored.append(row)  # type: ignore[arg-type]
    assert len(stored) == 0
