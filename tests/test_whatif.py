"""The questions that overrides answer: another scheduler, processor, network, packet."""

from __future__ import annotations

import pytest
from cases import for_each
from engine_runs import MODELS, PATHS, completed, job, one_way
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, pingpong

KIB, MIB = 1024, 1024 * 1024
MS = 1e-3


def test_hpvm_takes_the_quantum_of_the_server_with_nothing_fitted() -> None:
    for size in (0, 64, 1 * KIB, 4 * KIB):
        assert 118 * MS <= one_way("hpvm", "shared", size, reps=50) <= 124 * MS, size
    # Nothing of that comes from a fit: a run on one machine uses no fitted number of the model.
    fitted = {f"hpvm.{name}" for name, param in registry.model("hpvm").params().items() if param.source.startswith("fit:")}
    used = simulate.run(Question("hpvm", "nt-pair", pingpong([0], reps=2), "shared")).used
    assert fitted
    assert not fitted & set(used)


@pytest.mark.parametrize("mode", [[1, 1], "workstation,workstation"])
def test_hpvm_on_the_workstation_takes_its_shorter_quantum(mode: object) -> None:
    assert 20 * MS <= one_way("hpvm", mode, 0, reps=50) <= 60 * MS


def test_hpvm_with_two_processors_burns_nothing() -> None:
    # Many repetitions: opening the connection counts with the first message.
    assert one_way("hpvm", "shared", 0, sets=["platform.host.cores=2"], reps=500) < 1 * MS


def test_a_receive_that_yields_or_blocks_is_far_faster() -> None:
    spin = one_way("hpvm", "shared", 0)
    for policy in ("spin_yield", "block"):
        assert one_way("hpvm", "shared", 0, sets=[f"hpvm.receive={policy}"]) < spin / 10, policy


@pytest.mark.parametrize("quantum", [30, 60, 240])
def test_the_plateau_follows_the_quantum(quantum: int) -> None:
    observed = one_way("hpvm", "shared", 0, sets=[f"platform.host.quantum={quantum} ms"], reps=50)
    assert observed == pytest.approx(quantum * MS, rel=0.05)


def test_winmpich_without_its_proxy_is_faster_between_machines() -> None:
    for size in (0, 1 * KIB, 64 * KIB, MIB):
        assert one_way("winmpich", "distributed", size, sets=["winmpich.proxy=no"]) < one_way("winmpich", "distributed", size), size
    # Its proxy has no part on one machine.
    trace = job("send 1 0 9000 6", "recv 0 0 9000 6")
    assert completed(trace, "winmpich", "shared").time_ps > 0


def test_wmpi_with_larger_packets_and_pool_does_not_collapse_at_512_kib() -> None:
    large = ["wmpi.packet=1MiB", "wmpi.pool=16MiB", "wmpi.largest_class=1MiB"]
    assert one_way("wmpi", "shared", 512 * KIB, sets=large) < one_way("wmpi", "shared", 512 * KIB) / 3
    # Below the packet there was one packet before and there is one now.
    for size in (0, 1 * KIB, 64 * KIB):
        assert one_way("wmpi", "shared", size, sets=large) == pytest.approx(one_way("wmpi", "shared", size), rel=0.01)
    for size in (256 * KIB, MIB, 4 * MIB):
        completed(job(f"send 1 0 {size} 6", f"recv 0 0 {size} 6"), "wmpi", "shared", sets=["wmpi.packet=1MiB", "wmpi.pool=16MiB"])


@pytest.mark.parametrize(("packet", "last"), [("8KiB", 16), ("32KiB", 64), ("128KiB", 256), ("256KiB", 1024)])
def test_the_collapse_of_wmpi_moves_with_the_packet(packet: str, last: int) -> None:
    """A message asks first when the buffer of a largest packet does not hold it (E-P4-03's classes: 16, 64, 256 KiB, 1 MiB)."""
    sets = [f"wmpi.packet={packet}", "wmpi.pool=16MiB"]
    fast, slow = (one_way("wmpi", "shared", size, sets=sets) for size in (last * KIB, 2 * last * KIB))
    assert slow > 4 * fast
    assert slow - fast == pytest.approx(120 * MS, rel=0.1)


def test_a_second_processor_removes_the_collapse_of_wmpi() -> None:
    one, two = (one_way("wmpi", "shared", 512 * KIB, sets=s) for s in ([], ["platform.host.cores=2"]))
    assert two < one / 3
    assert one_way("wmpi", "shared", 512 * KIB, sets=["wmpi.answer_wait=block"]) < one / 3


@pytest.mark.parametrize("model", MODELS)
def test_fast_ethernet_beats_ethernet(model: str) -> None:
    slow, fast = (
        one_way(model, [0, 1], 256 * KIB, platform="nt-cluster", sets=[f"platform.link.bandwidth={rate}"]) for rate in ("10Mbps", "100Mbps")
    )
    assert fast < slow


@for_each("model, mode", PATHS)
def test_a_faster_machine_is_no_slower(model: str, mode: str) -> None:
    """Twice the speed; not where a clock decides."""
    slow = one_way(model, mode, 4 * KIB, reps=20)
    fast = one_way(model, mode, 4 * KIB, reps=20, sets=["platform.host.work=4"])
    assert fast <= slow * 1.01


@pytest.mark.parametrize("model", MODELS)
def test_what_nothing_reads_is_refused(model: str) -> None:
    with refused(UsageError, "unknown-parameter"):
        simulate.benchmark(Question(model, "nt-pair", pingpong([0], reps=1), "shared", ["platform.link.no_such_latency=1us"]))
    with refused(UsageError, "unknown-parameter"):
        simulate.benchmark(Question(model, "nt-pair", pingpong([0], reps=1), "shared", ["nonsense=1"]))
    with pytest.raises(UsageError):
        simulate.benchmark(Question(model, "nt-pair", pingpong([0], reps=1), "shared", ["platform.workstation.quantum=10ms"]))


def test_a_parameter_without_a_part_in_the_run_is_refused() -> None:
    """The proxy's time-out means nothing where ranks own the sockets."""
    with refused(UsageError, "idle-override"):
        simulate.benchmark(Question("winmpich", "nt-pair", pingpong([0], reps=1), "distributed", ["proxy_wait=event", "proxy_timeout=5ms"]))
