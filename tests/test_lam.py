"""LAM/MPI: its protocols, its daemons, its shared memory and -O, as far as they are mechanisms."""

from __future__ import annotations

import pytest
from asking import ask
from period_curves import GIGABIT, mbps, stages, time_of, times, total

from retrompi.sim import simulate
from retrompi.spec.question import Question, Starts
from retrompi.traces import generate

XEON = "xeon-2000"  # two processors


@pytest.mark.parametrize(("model", "longest", "where"), [
    ("lam", 65536, {"platform": GIGABIT, "mode": "distributed"}),
    ("lam:sysv", 8192, {"platform": XEON, "mode": "shared"}),
    ("lam:usysv", 8192, {"platform": XEON, "mode": "shared"}),
])
def test_a_long_message_asks_first(model: str, longest: int, where: dict[str, str]) -> None:
    below, last, first = times(model, [longest - 1, longest, longest + 1], **where)
    assert first - last > 5 * abs(last - below)


def test_the_daemons_cut_into_packets_of_8_kib_and_ask_after_the_first() -> None:
    last, first = times("lam", [8192, 8193], sets=["lam.mode=lamd"])
    assert first > last + 50


def test_client_to_client_is_faster_than_the_daemons() -> None:
    for size in (64, 4096, 1 << 16):
        assert mbps("lam", size) > 1.1 * mbps("lam", size, "lam.mode=lamd")
    assert {who for _, who, _ in stages("lam", 1024, "lam.mode=lamd") if who.startswith("lamd")} == {"lamd on n1", "lamd on n2"}


def test_without_o_a_little_endian_machine_packs_and_unpacks() -> None:
    size = 1 << 20
    plain, alike = stages("lam", size, "lam.homogeneous=no"), stages("lam", size, "lam.homogeneous=yes")
    assert total(plain, "copy", "rank") > 1.5 * total(alike, "copy", "rank")
    assert time_of("lam", size, "lam.homogeneous=no") > 1.2 * time_of("lam", size, "lam.homogeneous=yes")
    assert time_of("lam", size) == time_of("lam", size, "lam.homogeneous=yes")  # LAM 7 finds out


def test_a_big_endian_machine_never_does() -> None:
    where = {"platform": "hp-9000-735*2@fddi", "mode": "distributed"}
    assert time_of("lam", 1 << 16, "lam.homogeneous=no", **where) == time_of("lam", 1 << 16, "lam.homogeneous=yes", **where)


def test_semaphores_are_system_calls_and_spin_locks_are_not() -> None:
    sysv, usysv = (stages(model, 64, platform=XEON, mode="shared") for model in ("lam:sysv", "lam:usysv"))
    assert total(sysv, "event") + total(sysv, "syscall") > 0
    assert total(usysv, "event") + total(usysv, "syscall") == 0


def test_spin_locks_wait_for_the_processor_where_there_is_only_one() -> None:
    one = {"platform": "p4-1800", "mode": "shared"}
    assert time_of("lam:usysv", 64, **one) > 3 * time_of("lam:usysv", 64, platform=XEON, mode="shared")
    assert time_of("lam:usysv", 64, "lam.readlockpoll=100", **one) < time_of("lam:usysv", 64, **one)


@pytest.mark.parametrize("mode", ["c2c", "lamd"])
def test_neighbours_and_strangers(mode: str) -> None:
    trace = generate.generator("ring").make(ranks=4, size=20000, reps=2)
    result = ask("lam", GIGABIT, trace, [0, 0, 1, 1], sets=[f"lam.mode={mode}"])
    assert result.outcome == "completed", result.detail


def test_lamboot_and_mpirun_start_a_job() -> None:
    told = simulate.startup(Question("lam", GIGABIT, Starts(2), overrides=["lam.homogeneous=yes"]))
    assert told["daemons"] == 2
    assert [s["step"] for s in told["steps"] if s["manual"]] == ["lamboot", "mpirun -O"]
