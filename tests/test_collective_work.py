"""What collectives do beside their messages: measured without a partner, written into a fitted model, charged where it is due."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cases import for_each
from refusals import refused

from retrompi._engine import Trace
from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.measure.fit import Parts, fit, sample_of
from retrompi.measure.fit.write import IdealPlatform, ModelFiles, default_folder
from retrompi.measure.smpi.export import export
from retrompi.measure.this_machine import estimate, plan, recording
from retrompi.measure.this_machine.bench import BenchRow
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.channels import work
from retrompi.spec.collectives import Choice
from retrompi.spec.question import Question, Replay, Starts

SIZES = [0, 1024, 65536, 1 << 20]
NS = 1000
CALLS = {
    "call barrier": {0: 50e-9},
    "call gather": {0: 10e-9, 8: 60e-9, 80008: 200_060e-9},
    "call allgather": {0: 10e-9, 8: 70e-9, 1 << 20: 70e-9},
    "call alltoall": {8: 100e-9},
    "call reduce": {8: 20e-9},
    "call allreduce": {8: 30e-9},
}
MORE = {"combine": {8: 10e-9, 1008: 210e-9}, "buffers 1": {8: 0.0, 1008: 400e-9}, "buffers 2": {8: 0.0, 1008: 4000e-9}}
TABLE = (
    Choice("barrier", "dissemination", source="assumed: test"),
    Choice("gather", "binomial", source="assumed: test"),
    Choice("allgather", "doubling", source="assumed: test"),
    Choice("reduce", "binomial", source="assumed: test"),
    Choice("allreduce", "doubling", source="assumed: test"),
)


def written(name: str, work: dict[str, dict[int, float]], alltoall: str = "pairwise") -> Path:
    """A model of a straight line with ``work``, found by name, and its room."""
    line = fit(SIZES, [1e-6 + s * 1e-9 for s in SIZES])
    folder = ModelFiles(
        name=name, samples={"same": sample_of(line, Parts())}, title="A test's", version="1", years="2026",
        summary="a line", platform="work-room", source="fit: made for a test",
        collectives=(*TABLE, Choice("alltoall", alltoall, source="assumed: x")),
        work={what: (sizes, "fit: made for a test") for what, sizes in work.items()},
    ).write(default_folder(name))
    IdealPlatform(name="work-room", title="A room", summary="for a test", years="2026",
               known={"cores": ("2", "assumed: for tests"), "clock": ("150 MHz", "assumed: the reference's")},
               ).write(paths.user_platforms_dir() / "work-room.toml")
    return folder


def time_ps(model: str, *ranks: str) -> int:
    texts = ["\n".join(f"{r} {a.strip()}" for a in ["init", *said.split(";"), "finalize"]) + "\n" for r, said in enumerate(ranks)]
    trace = Trace.parse([(t.encode(), f"rank {r}", r) for r, t in enumerate(texts)])
    result = simulate.run(Question(model, "work-room", Replay(trace), "shared"))
    assert result.outcome == "completed", result.detail
    return result.time_ps


@for_each(
    "action, more_ns",
    [
        ("barrier", 50),
        ("allgather 1024 1024 6 6", 70),
        ("allreduce 1008 0 6", 30 + 210 + 400),  # one buffer, filled by what comes
        ("allreduce 508 0 6", 30 + 110 + 200),
        ("bcast 4096 0 6", 0),  # nothing is known of it
    ],
)
def test_both_members_pay_what_a_call_does_beside_its_messages(action: str, more_ns: int) -> None:
    written("bare", {})
    written("works", CALLS | MORE)
    assert time_ps("works", action, action) - time_ps("bare", action, action) == more_ns * NS


def test_who_passes_its_block_on_does_not_copy_it() -> None:
    written("works", CALLS)
    written("bare", {})
    # 160 us at the root, during which the leaf's message of 65 us comes: if the leaf paid as well, it would come after them.
    small, large = ((time_ps("works", a, a) - time_ps("bare", a, a)) / NS for a in ("gather 8 8 0 6 6", "gather 64008 64008 0 6 6"))
    assert small == 60
    assert 60 < large < 130_000


def test_a_leaf_of_a_reduction_holds_two_buffers_one_of_them_filled() -> None:
    written("works", {"buffers 2": MORE["buffers 2"]})
    written("bare", {})
    assert time_ps("works", *["reduce 1008 0 0 6"] * 2) - time_ps("bare", *["reduce 1008 0 0 6"] * 2) == 2000 * NS


@pytest.mark.parametrize("algorithm", ["pairwise", "throttled_32"])
def test_the_own_block_is_part_of_the_call_and_not_paid_twice(algorithm: str) -> None:
    written("works", {"call alltoall": {8: 0.0}}, algorithm)
    written("bare", {}, algorithm)
    alone, bare = (time_ps(m, "alltoall 65536 65536 6 6") for m in ("works", "bare"))
    assert alone < bare
    together, without = (time_ps(m, *["alltoall 65536 65536 6 6"] * 2) for m in ("works", "bare"))
    assert together < without


def test_a_model_without_it_has_none_of_it() -> None:
    folder = written("works", CALLS)
    before = registry.model("works").hash()
    (folder / "work.csv").unlink()
    assert registry.model("works").hash() != before
    written("bare", {})
    for action in ("barrier", "gather 8 8 0 6 6", "allreduce 4096 0 6"):
        assert time_ps("works", action, action) == time_ps("bare", action, action)
    assert "\nwork " not in export(Question("bare", "work-room", Starts(2), "shared"), 2).text()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("call barrier,0,", "call barrier,x,", "bad-fit"),
        ("call barrier,0,", "call barier,0,", "unknown-name | 'call barier' | 'call barrier'"),
        ("call gather,8,", "call gather,0,", "bad-fit"),
    ],
)
def test_a_damaged_file_is_told_by_line(old: str, new: str, says: str) -> None:
    folder = written("works", CALLS)
    text = (folder / "work.csv").read_text()
    (folder / "work.csv").write_text(text.replace(old, new, 1))
    with refused(InputError, says):
        time_ps("works", "barrier", "barrier")


def test_an_unknown_work_is_refused_when_it_is_written() -> None:
    with refused(UsageError, "unknown-name | 'call bcst'"):
        written("works", {"call bcst": {0: 1e-9}})


def test_the_export_says_all_of_it() -> None:
    written("works", CALLS | MORE)
    text = export(Question("works", "work-room", Starts(2), "shared"), 2).text()
    assert "work call gather\ncost 0 10000\ncost 8 60000\ncost 80008 200060000\n" in text
    assert "work buffers 2\ncost 8 0\ncost 1008 4000000\n" in text
    assert work(call={}) == {"call": {}, "combine": [], "buffers": [[], []]}


# -- measured ------------------------------------------------------------------------------------------------------------


def test_what_is_measured_alone_becomes_a_cost() -> None:
    def said(what: str, size: int, *values: float) -> list[BenchRow]:
        return [BenchRow(what, size, r, tuple(v * (1 + r / 100) for v in values)) for r in range(3)]

    found = recording.MachineRecording({}, {"same": [
        *said("self_gather", 8, 50, 50, 50, 50, 900), *said("combine", 8, 10), *said("plain", 8, 100), *said("two_buffers", 8, 500),
    ]})
    work = estimate.work(found)
    assert work["call gather"][8] == pytest.approx(50.5e-9)
    assert work["combine"] == {8: pytest.approx(10.1e-9)}
    assert work["buffers 2"] == {8: pytest.approx(303e-9)}
    assert set(work) == {"call gather", "combine", "buffers 2"}


def test_a_recording_without_it_still_gives_a_model() -> None:
    assert estimate.work(recording.MachineRecording({}, {"same": [BenchRow("echo", 0, 0, (1.0,))]})) == {}


def test_nothing_of_it_is_measured_between_ranks() -> None:
    source = (Path(plan.__file__).parent / "native" / "alone.c").read_text()
    for name in ("Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall"):
        assert f"MPI_{name}(" in source
        assert all("MPI_COMM_SELF" in line for line in source.splitlines() if f"MPI_{name}(" in line), name


@pytest.mark.skipif(shutil.which("mpicc.mpich") is None, reason="MPICH is not installed")
def test_it_is_measured_here() -> None:
    from retrompi.measure.this_machine.bench import two_ranks

    bench = two_ranks("mpich")
    said = [r for what in ("alone", "temporary") for r in bench.run(what, [8, 4096], rounds=1, quick=True)]
    found = recording.MachineRecording({}, {"same": said})
    work = estimate.work(found)
    assert {f"call {name}" for name in estimate.OPERATIONS} <= set(work)
    assert all(t > 0 for t in work["combine"].values())
    assert set(work["buffers 2"]) == {8, 4096}
