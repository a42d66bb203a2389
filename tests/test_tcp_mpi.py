"""TEG, LA-MPI and MPICH2's sock channel: what their long messages do, and how they wait."""

from __future__ import annotations

import pytest
from asking import ask
from period_curves import stages, time_of, times, total

from retrompi.sim import simulate
from retrompi.spec.question import Question, Starts
from retrompi.traces import generate

WHERE = {"platform": "xeon-2000*2@ip-gm-pci64c", "mode": "distributed"}


@pytest.mark.parametrize(("model", "longest"), [("teg", 65536), ("lampi", 65536), ("mpich2sock", 262144)])
def test_a_long_message_waits_for_its_match(model: str, longest: int) -> None:
    below, last, first = times(model, [longest - 1, longest, longest + 1], **WHERE)
    assert first - last > 20 * abs(last - below) + 20


def test_what_the_request_carries_is_not_sent_again() -> None:
    """Beyond the first fragment a message costs its answer, not its first 64 KiB a second time."""
    last, first, twice = times("teg", [65536, 65537, 131072], **WHERE)
    assert first - last < 0.5 * (twice - first)


def test_la_mpi_cuts_into_fragments_of_a_megabyte_and_teg_does_not() -> None:
    def packets(model: str) -> int:
        trace = generate.generator("pingpong").make(sizes=[(3 << 20) + 65536], reps=1, warm_up=0)
        return ask(model, WHERE["platform"], trace).packets

    assert packets("lampi") == packets("teg") + 2 * 2  # two more, each way


def test_teg_and_la_mpi_poll_and_mpich2_sleeps() -> None:
    polling, asleep = stages("teg", 64, **WHERE), stages("mpich2sock", 64, **WHERE)
    assert total(polling, "poll") > 0
    assert total(asleep, "poll") == 0


def test_tegs_thread_sleeps_and_hands_over() -> None:
    threaded, more = ("teg.progress=thread", "teg.handoff=8us")
    assert total(stages("teg", 64, threaded, **WHERE), "poll") == 0
    one, slow = time_of("teg", 64, threaded, **WHERE), time_of("teg", 64, threaded, more, **WHERE)
    assert slow - one == pytest.approx(4.5 * 0.9, rel=0.3)  # of p4-1800, on a processor of 2 GHz


def test_socket_buffers_are_the_systems_unless_set() -> None:
    assert time_of("mpich2sock", 1 << 20, "mpich2sock.sockbuf=8KiB", **WHERE) > 1.5 * time_of("mpich2sock", 1 << 20, **WHERE)


@pytest.mark.parametrize(("model", "daemons"), [("teg", 0), ("lampi", 2), ("mpich2sock", 2)])
def test_starts(model: str, daemons: int) -> None:
    assert simulate.startup(Question(model, WHERE["platform"], Starts(2)))["daemons"] == daemons
