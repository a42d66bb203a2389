"""The scale of recorded computation: the rate that a trace states, what keeps it, and what a replay makes of it."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import ask
from conftest import Outcome, need
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi import traces
from retrompi.measure import record
from retrompi.measure.record import rate as measuring
from retrompi.sim.computation import scale_of
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.machine import kernels
from retrompi.spec.question import Question, Replay
from retrompi.traces import Rate, computation, cut, merge, subset

pytestmark = pytest.mark.usefixtures("here")
Run = Callable[..., Outcome]
HEAD = "# mark about rate 2.5 Gflop/s\n# mark about rate-source measured: on a test\n"
RANKS = ["0 init\n0 compute 5e6\n0 send 1 0 8 6\n0 barrier\n0 finalize\n", "1 init\n1 recv 0 0 8 6\n1 barrier\n1 finalize\n"]
PROGRAMS = Path(__file__).parent / "data" / "programs"


def notes(err: str, word: str) -> list[str]:
    """The notes with a word in them; a note is one line, wrapped to the width of the terminal."""
    return [x for x in " ".join(err.split()).replace(" note: ", "\nnote: ").replace(" warning: ", "\nwarning: ").splitlines() if word in x]


def recording(*, at: float = 2.5e9, source: str = "measured: on a test") -> traces.Trace:
    """A program whose rank 0 computed for 2 ms on a machine with the rate ``at``."""
    return traces.with_rate(job(f"compute {2e-3 * at!r}; send 1 0 8 6; barrier", "recv 0 0 8 6; barrier"), Rate(at, source))


def test_the_rate_is_read_from_the_marks_of_any_file_and_changes_the_identity_only_where_it_stands() -> None:
    plain, told = traces.parse(RANKS), traces.parse([HEAD + RANKS[0], RANKS[1]])
    assert traces.rate_of(plain) is None
    assert traces.rate_of(told) == traces.rate_of(traces.parse([RANKS[0], HEAD + RANKS[1]])) == Rate(2.5e9, "measured: on a test")
    assert traces.rate_of(traces.parse(HEAD + "".join(RANKS))) == Rate(2.5e9, "measured: on a test")
    assert (told != plain, told.sha256 != plain.sha256, told.actions) == (True, True, plain.actions)
    assert traces.rate_of(pickle.loads(pickle.dumps(told))) == traces.rate_of(told)
    for model in ("wmpi", "hpvm"):
        assert ask(model, "nt-pair", told).time_ps == ask(model, "nt-pair", plain).time_ps


def test_a_rate_that_is_none_is_refused() -> None:
    for text in ("fast", "0 flop/s", "5 MB/s", "1e999 flop/s"):
        with pytest.raises(traces.TraceError, match="mark 'about rate"):
            traces.rate_of(traces.parse([f"# mark about rate {text}\n{RANKS[0]}", RANKS[1]]))


@pytest.mark.parametrize("shared", [False, True])
def test_the_rate_survives_writing_cutting_scaling_marking_and_taking_ranks(shared: bool, tmp_path: Path) -> None:
    told = recording()
    traces.write(told, tmp_path / "t.ti.zst" if shared else tmp_path / "t", shared=shared)
    assert traces.read(tmp_path / "t.ti.zst" if shared else tmp_path / "t") == told
    made = (
        told.scaled(3), told.smoothed(), told.with_marks([(0, 2, "here")]), cut.cut(told, "3", "4").trace, subset.keep_ranks(told, [0, 1]),
        merge.then([told, told]), merge.side_by_side([told, recording()]),
    )
    for trace in made:
        assert traces.rate_of(trace) == Rate(2.5e9, "measured: on a test")


def test_the_rate_survives_the_commands(retrompi: Run, tmp_path: Path) -> None:
    traces.write(recording(), tmp_path / "t")
    for words in ("cut t cut --begin 3", "merge t t two", "merge t t after --then", "scale t scaled --factor 2", "convert t plain"):
        done = retrompi("trace", *words.split())
        assert done.code == 0, done.err
        out = next(w for w in reversed(words.split()) if (tmp_path / w).is_dir())
        assert traces.rate_of(traces.read(tmp_path / out)) == Rate(2.5e9, "measured: on a test"), words


def test_traces_of_different_rates_make_one_without_a_single_rate_that_says_so() -> None:
    fast, slow, unknown = recording(), recording(at=1e9), job("compute 5; barrier", "barrier")
    both = merge.side_by_side([fast, slow])
    assert (traces.rate_of(both), computation.mixed_rates(both)) == (None, "2.5 Gflop/s and 1 Gflop/s")
    assert both.info()["compute_flops"] == fast.info()["compute_flops"] + slow.info()["compute_flops"]
    assert "no stated rate" in computation.mixed_rates(merge.then([fast, unknown]))
    assert computation.mixed_rates(merge.side_by_side([both, fast])) == "2.5 Gflop/s and 1 Gflop/s"
    assert merge.then([unknown, unknown]).labels == []
    with refused(traces.TraceError, "conflicting-options | 2.5 Gflop/s and 1 Gflop/s"):
        traces.at_rate(both, Rate(1e9, "given"))


@settings(max_examples=20, deadline=None)
@given(st.floats(1e6, 1e12), st.floats(1e6, 1e12))
def test_a_recorded_second_takes_the_ratio_of_the_two_rates(machine: float, host: float) -> None:
    told = recording(at=machine)
    room = {"platform.host.flops": f"{host!r} flop/s"}
    computed = ask("wmpi", "nt-pair", told, sets=room, fidelity="curve").per_rank[0]["compute_s"]
    assert computed == pytest.approx(2e-3 * machine / host, rel=1e-9, abs=2e-12)


def test_recordings_of_two_machines_keep_their_seconds_and_a_given_rate_replaces_the_claimed_one() -> None:
    seconds = {at: ask("wmpi", "nt-pair", recording(at=at)).per_rank[0]["compute_s"] for at in (1e9, 4e9)}
    assert seconds[4e9] == pytest.approx(4 * seconds[1e9], rel=1e-9)
    same = [traces.at_rate(recording(at=at), Rate(2e9, "given by --rate")) for at in (1e9, 4e9)]
    assert same[0].info()["compute_flops"] == same[1].info()["compute_flops"] == 4e6
    assert traces.at_rate(job("compute 1e9"), Rate(2e9, "given")).info()["compute_flops"] == 2e9  # a second without a rate is 1 Gflop


def test_a_replay_says_the_scale_in_one_line(retrompi: Run, tmp_path: Path) -> None:
    known, nominal = recording(), recording(at=1e9, source="nominal: the file states no rate")
    none = job("compute 5e6; send 1 0 8 6; barrier", "recv 0 0 8 6; barrier")
    for name, trace in (("known", known), ("nominal", nominal), ("none", none), ("idle", job("barrier", "barrier"))):
        traces.write(trace, tmp_path / name)
    words = ["replay", "-m", "wmpi", "-p", "abe"]
    host = "n1 computes at 2.33 Gflop/s (assumed: one operation a cycle)"
    said = {name: notes(retrompi(*words, name).err, "comput") for name in ("known", "nominal", "none", "idle")}
    assert said["known"] == [f"note: a recorded second takes 1.073 s here: it was recorded at 2.5 Gflop/s (measured: on a test), {host}; "
                             "the trace names no kernels, so that all computation goes at that one rate, "
                             "whatever it does to caches and memory"]
    assert len(said["nominal"]) == 1
    assert "scale of computation is unknown" in said["nominal"][0]
    assert "--rate" in said["nominal"][0]
    assert len(said["none"]) == 1
    assert "operations that the trace states" in said["none"][0]
    assert host in said["none"][0]
    assert said["idle"] == []
    told = json.loads(retrompi(*words, "known", "--rate", "5 Gflop/s", "--json").out)
    assert told["computation"]["hosts"][0]["recorded_second_s"] == pytest.approx(5 / 2.33)
    assert told["per_rank"][0]["compute_s"] == pytest.approx(2e-3 * 5 / 2.33, rel=1e-6)
    assert json.loads(retrompi(*words, "idle", "--json").out)["computation"] is None
    agrees(retrompi(*words, "known", "--rate", "0 flop/s"), "out-of-range | --rate")


def test_computation_scaled_to_a_published_time_says_only_that() -> None:
    from retrompi.spec.conditions.timed_section import Program

    asked = Resolved.of(Question("wmpi", "nt-pair", Replay(recording(), program=Program("2-3", 4.0))))
    scale = scale_of(asked)
    assert scale is not None
    assert scale.line == "computation is scaled so that section 2-3 computes for 4 s"


def test_the_measured_loops_are_those_that_platforms_are_described_by() -> None:
    need("cc")
    assert list(measuring.machine_rate().loops) == list(kernels.loops())
    source = registry.platform("nt-pair").quantity("server.flops")
    assert (source.source, "mean of the maxima of the 17 Rinf1 loops" in source.help) == ("paper:BF-R-18S", True)


def test_the_rate_is_measured_once_a_day_and_again_on_another_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("cc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = measuring.machine_rate()
    assert 1e7 < first.flops < 1e12
    assert first.flops == float(f"{first.flops:.4g}")
    assert measuring.machine_rate() == first
    (memory,) = (tmp_path / "retrompi" / "record").glob("rate-*/*.json")
    ran: list[object] = []
    real = measuring.subprocess.run
    monkeypatch.setattr(measuring.subprocess, "run", lambda *a, **k: ran.append(a) or real(*a, **k))
    for change in ({"at": time.time() - 25 * 3600}, {"at": time.time() + 3600}, {"processor": "another"}, {"flops": "x"}, {"more": 1}):
        memory.write_text(json.dumps({**json.loads(memory.read_text()), **change}))
        again = measuring.machine_rate()
        assert again.processor == first.processor
        assert isinstance(again.flops, float)
    assert len(ran) == 5


def test_a_recorded_program_keeps_its_seconds_on_a_platform_with_the_rate_of_its_machine(tmp_path: Path) -> None:
    need("mpiexec.mpich", "mpicc.mpich")
    import subprocess

    program = tmp_path / "halo"
    subprocess.run(["mpicc.mpich", "-w", "-O1", "-o", str(program), str(PROGRAMS / "halo.c")], check=True, capture_output=True)
    command = ["mpiexec.mpich", "-n", "2", str(program)]
    measured = record.record(command, tmp_path / "measured").trace
    rate = traces.rate_of(measured)
    assert rate is not None
    assert rate.known
    assert rate.flops == measuring.machine_rate().flops
    assert "17 Rinf1 loops" in rate.source
    assert measuring.processor() in rate.source
    claimed = record.record(command, tmp_path / "claimed", clock=record.Clock(rate=97e6)).trace
    assert traces.rate_of(claimed) == Rate(97e6, "given by --rate")
    for trace, own in ((measured, rate.flops), (claimed, 97e6)):
        seconds = float(trace.info()["compute_flops"]) / own
        done = ask("wmpi", "nt-pair", trace, "shared", sets={"platform.host.flops": f"{own!r} flop/s"}, fidelity="curve")
        assert sum(r["compute_s"] for r in done.per_rank) == pytest.approx(seconds, rel=1e-6)
    plain = "".join(x for x in (tmp_path / "measured" / "rank-1.txt").read_text().splitlines(keepends=True) if "about" in x)
    assert plain == ""  # rank 0 states it for all


def test_ranks_on_another_processor_than_the_measured_one_are_told(tmp_path: Path) -> None:
    from retrompi.base.files import folder_handle
    from retrompi.measure.record.assemble import _other_processors

    (tmp_path / "rank-0.txt").write_text(
        "# processor: A\n# mark about rate 1 flop/s\n"
        "# mark about rate-source measured: mean of the maxima of the 17 Rinf1 loops on A, 2026-01-02\n"
    )
    (tmp_path / "rank-1.txt").write_text("# processor: B\n")
    with folder_handle(tmp_path) as folder:
        (note,) = _other_processors(folder, 2)
    assert "rank 1 ran on B" in note
    assert "measured on A" in note
    (tmp_path / "rank-1.txt").write_text("# processor: A\n")
    with folder_handle(tmp_path) as folder:
        assert _other_processors(folder, 2) == []
