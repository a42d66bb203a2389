"""Overrides that are relative to the value in force, and what follows a value that is set."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from retrompi import traces
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.units import parse_factor, scale_text
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.declare.fields import ITSELF, quantities, quantity, stating_what_follows
from retrompi.spec.host import Host
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.machines import SERVICES
from retrompi.spec.question import Question, Replay, pingpong
from retrompi.spec.runtime.overrides import merge, parse_sets, telling
from retrompi.store.identity import specification
from retrompi.studies.define import case
from retrompi.studies.define.catalogue import scenario
from retrompi.traces import generate


def test_a_factor_is_read_where_it_is_one() -> None:
    for text, unit, factor in (
        ("x2", "s", 2), ("x0.5", "B", Fraction(1, 2)), ("50%", "B/s", Fraction(1, 2)), ("x.25", "1", Fraction(1, 4)), ("×3", "Hz", 3),
        ("x0.5", "probability", Fraction(1, 2)), ("50%", "probability", None), ("2", "1", None), ("2x", "1", None), ("x-2", "1", None),
        ("hexagon", "1", None), ("x", "1", None),
    ):
        assert parse_factor(text, unit) == factor, text


def test_a_quantity_is_scaled_in_its_own_unit() -> None:
    for text, factor, unit, wanted in (
        ("120 ms", "x0.5", "s", "60 ms"), ("22.353 Mflop/s", "x2", "flop/s", "44.706 Mflop/s"), ("16 KiB", "x0.3", "B", "4915 B"),
        ("0.1 us", "x3", "s", "0.3 us"), ("4", "x1.5", "count", "6"),
    ):
        made = parse_factor(factor, unit)
        assert made is not None
        assert scale_text(text, made, unit) == wanted


def test_later_overrides_are_relative_to_earlier_ones() -> None:
    for before, text, wanted in (
        ("10MiB", "x2", "20MiB"), ("x2", "x3", "x6"), ("120 ms", "50%", "60 ms"), ("3", "x2", "6"), ("x2", "5", "5"), ("10%", "x2", "20%"),
        ("eager", "x2", "x2"),
    ):
        assert merge({"key": before}, {"key": text}) == {"key": wanted}, (before, text)
    assert parse_sets(["a=4 us", "a=x2"]) == {"a": "8 us"}
    with pytest.raises(UsageError, match="a part of it or a probability"):
        merge({"key": "0.2"}, {"key": "50%"})


def _asked(platform: str, **sets: str) -> Resolved:
    named = {k.replace("__", "."): v for k, v in sets.items()}
    return Resolved.of(Question("wmpi", platform, pingpong([8], 1), "shared", named))


def test_what_identifies_a_run_is_the_absolute_value() -> None:
    told: list[str] = []
    with telling(told.append):
        half = _asked("nt-pair", **{"wmpi.packet": "50%", "platform.host.quantum": "x2"})
    assert half.question.sets == {
        "wmpi.packet": "64KiB", "platform.server.quantum": "240ms", "platform.workstation.quantum": "80ms",
    }
    assert told == [
        "wmpi.packet=50% is 64KiB",
        "platform.host.quantum=x2 is platform.server.quantum=240ms, platform.workstation.quantum=80ms",
    ]
    written = _asked("nt-pair", **{"wmpi.packet": "64KiB", "platform.server.quantum": "240ms", "platform.workstation.quantum": "80ms"})
    assert specification(half).identity == specification(written).identity
    assert _asked("nt-pair*4", **{"platform.host.clock": "x2"}).question.sets == {
        f"platform.{h}.clock": f"{mhz}MHz" for h, mhz in (("server", 300), ("workstation", 150), ("server-2", 300), ("workstation-2", 150))
    }
    assert _asked("linux-piii-933*3@gigabit", **{"platform.host.clock": "x2"}).question.sets == {"platform.host.clock": "1866MHz"}


def test_a_factor_changes_a_scenario_that_sets_the_value_itself() -> None:
    base = case.apply(scenario("bf-wmpi-shared"), {"wmpi.packet": "64KiB", "trace.reps": "6"})
    twice = case.apply(base, {"wmpi.packet": "x2", "trace.reps": "x0.5"})
    assert twice.sets["wmpi.packet"] == "128KiB"
    assert twice.args["reps"] == 3


def test_where_no_factor_helps_a_value_is_asked_for() -> None:
    for key, text, line in (
        ("platform.link.buffer", "x2", "which no factor changes; give a value"),
        ("platform.host.cores", "x1.5", "'1.5' is not a whole number"),
        ("platform.link.bandwidth", "x0", "must be more than zero"),
    ):
        with pytest.raises(UsageError, match=line):
            _asked("nt-pair", **{key: text})


# -- what follows -------------------------------------------------------------------------------------------------------------


def test_a_new_field_says_what_it_follows() -> None:
    @dataclass(frozen=True, slots=True)
    class Silent:
        rate: float = quantity("B/s", "a rate")

    with pytest.raises(TypeError, match=r"Silent.rate does not say what it follows"):
        stating_what_follows(Silent)
    for cls in (Host, Link):
        bases = {rule.base for f in quantities(cls).values() for rule in f.follows or ITSELF}
        assert bases <= {*quantities(Host), *(f"link.{k}" for k in quantities(Link))}


def test_a_service_is_work_wherever_it_is_scaled() -> None:
    """What `services = "scaled"` takes as work of the processor follows the clock as such."""
    for key in SERVICES:
        assert [(rule.base, rule.how) for rule in quantities(Host)[key].follows or ()] == [("clock", "time")], key


def test_the_work_of_a_processor_follows_its_clock_and_memory_does_not() -> None:
    composed = "linux-p54-150*2@switch-100"
    for name, keys in (("nt-pair", ("host", "server")), ("nt-pair*4", ("host", "server-2")), (composed, ("host", "n1"))):
        before = registry.platform(name)
        for key in keys:
            after = before.with_overrides({f"{key}.clock": "x2"})
            for old, new in zip(before.hosts, after.hosts, strict=True):
                factor = 2 if key in ("host", old.name) else 1
                assert new.clock == factor * old.clock
                assert new.flops == pytest.approx(factor * old.flops, rel=1e-11)
                assert new.tcp_segment == pytest.approx(old.tcp_segment / factor, rel=1e-11)
                assert (new.copy_mem, new.copy_l2, new.quantum) == (old.copy_mem, old.copy_l2, old.quantum)
                if factor == 2:
                    assert after.quantity(f"{old.name}.flops").source.startswith("assumed: follows platform.")


def test_what_is_set_itself_does_not_follow() -> None:
    after = registry.platform("nt-pair").with_overrides({"host.clock": "300MHz", "host.flops": "1 Mflop/s", "server.syscall": "9 us"})
    assert [h.flops for h in after.hosts] == [1e6, 1e6]
    assert after.host("server").syscall == 9e-6
    assert after.host("workstation").syscall == pytest.approx(2e-6)  # 8 us at 75 MHz


def test_the_segment_follows_the_frame_where_it_was_the_rest_of_it() -> None:
    assert registry.platform("nt-pair").with_overrides({"link.mtu": "9000B"}).host("server").mss == 8960
    raw = "linux-piii-933*2@myrinet-lanai9"  # 4096 B frames, but the segments of Ethernet
    assert registry.platform(raw).with_overrides({"link.mtu": "8192B"}).hosts[0].mss == 1460


def test_an_answer_says_what_followed_and_what_did_not() -> None:
    trace = generate.pingpong([4096], 2)
    sets = {"platform.host.clock": "x2", "platform.link.mtu": "9000B"}
    run = simulate.run(Question("mpich", "nt-pair", Replay(trace), "distributed", sets))
    clock, mtu = (next(c.text for c in run.cautions if c.text.startswith(f"platform.{key} was set")) for key in ("host.clock", "link.mtu"))
    followed, _, stayed = clock.partition("did not follow")
    assert "tcp_segment" in followed
    assert "copy_mem" in stayed
    assert "flops" not in clock  # the trace computes nothing
    assert mtu == "platform.link.mtu was set; mss followed it"
    same = simulate.run(Question("mpich", "nt-pair", Replay(trace), "distributed", {"platform.server.clock": "150MHz"}))
    assert not [c for c in same.cautions if "was set" in c.text]


def test_the_rate_of_a_kernel_is_that_of_the_clock_in_force() -> None:
    question = Question("wmpi", "nt-pair", pingpong([8], 1), "shared", compute_kernel="daxpy")
    faster = question.with_(overrides={"platform.host.clock": "x2"})
    slow, quick = (Resolved.of(q).platform.host("server").flops for q in (question, faster))
    assert quick == pytest.approx(2 * slow, rel=1e-6)


# -- what cannot be -------------------------------------------------------------------------------------------------------------


def test_the_override_is_named_that_no_medium_can_have() -> None:
    for model, platform, sets, line in (
        ("hpvm", "nt-pair", {"hpvm.packet": "0B"}, "hpvm.packet=0B cannot be: .*division by zero; it must be more than zero"),
        ("euih", "ibm-sp1*2@sp1-switch", {"packet": "0B"}, "euih.packet=0B cannot be: .*packet: '0' must be 1 or more"),
        ("nemesis", "abe", {"coll.barrier": "dissemination", "nemesis.cell": "0B"}, "nemesis.cell=0B cannot be: .*'-80' is negative"),
        ("nemesis", "abe", {"nemesis.tcp_skip": "20", "nemesis.cell": "0B"}, "nemesis.cell=0B cannot be: .*'-80' is negative"),
    ):
        with pytest.raises(UsageError, match=line) as raised:
            simulate.compile_question(Resolved.of(Question(model, platform, pingpong([8], 1), "shared", sets, idle_overrides=True)))
        assert ".py" not in str(raised.value), "the model is not to blame"


def test_what_a_call_is_made_of_is_named_where_it_cannot_be(tmp_path: Path) -> None:
    """A new communicator gathers and broadcasts, and SHMEM's broadcast is a tree of puts."""
    file = tmp_path / "split.ti"
    file.write_text("".join(f"{r} init\n{r} comm_split 1 0-1\n{r} finalize\n" for r in range(2)))
    with pytest.raises(RetrompiError, match=r"comm_split: this runtime has no one-sided .* two hosts; craympt:shmem broad.* by puts"):
        simulate.run(Question("craympt:shmem", "cray-j90*2", Replay(traces.read(file)), "distributed"))


@pytest.mark.parametrize(("sets", "without", "told"), [
    (["platform.host.quantum=15us"], ["platform.host.quantum=16us"], "quantum of 'server' .* is not longer than its context switch"),
    (["platform.host.dispatch=1s"], [], "quantum of 'server' .* is not longer than its context switch"),
    (["hpvm.receive=spin_yield", "hpvm.poll_cost=0us", "platform.host.dispatch=0us"], ["hpvm.receive=spin_yield", "hpvm.poll_cost=0us"],
     "polls that take no time"),
])
def test_processes_do_not_take_turns_for_ever(sets: list[str], without: list[str], told: str) -> None:
    """Each of these runs would last until it is killed."""
    halo = Replay(generate.halo2d(1, 3, 100, 1))
    with pytest.raises(UsageError, match=told) as error:
        simulate.engine_rows(Resolved.of(Question("hpvm", "nt-pair", halo, "shared", sets)))
    assert error.value.code == "out-of-range"
    assert simulate.run(Question("hpvm", "nt-pair", halo, "shared", without)).outcome == "completed"
