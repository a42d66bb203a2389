"""Every parameter of every runtime, and every number of every platform, is used by a run or its override is refused with the reason.

What a run uses is what the engine is given for it. A used parameter changes the channel specifications that it runs from, an unused one
changes nothing of them; an unused number of a platform changes no picosecond.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from cases import for_each

from retrompi import traces
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.compiled.compile import PARTS, Compiled, compile_runtime, refuse, unused_overrides
from retrompi.spec.declare.calls import Calls
from retrompi.spec.declare.fields import Field, Use, fields_of, quantities
from retrompi.spec.host import Host
from retrompi.spec.layout import Layout
from retrompi.spec.machine.link import Link
from retrompi.spec.model import Param, RuntimeModel
from retrompi.spec.question import Question, Replay
from retrompi.spec.registry import resolve
from retrompi.spec.values import Values
from retrompi.traces import generate
from retrompi.traces.calls import PINGPONG, calls_of

MODES = {"shared": [0, 0], "distributed": [0, 1], "both": [0, 0, 1]}
MANY = Calls(frozenset({"init", "send", "recv", "compute", "iprobe", "put", "get", "win_fence", "bcast", "finalize"}), to_self=False)
"""A program that needs every part of a runtime, which is started in the run and has links that fail."""
PLATFORMS = [p for p in registry.platform_names() if len(registry.platform(p).hosts) >= 2]
ONE_VALUE = {
    "hpvm:delayed-ack.pieces": "header and data are written apart for any number above one",
    "nemesis.progress": "poll and select cost the same call; the third choice is a completion port",
    "ompitcp.sockets": "1 is what two processes on two machines have",
}
"""Used parameters of which not every other value changes what the engine is given, and why."""


def others(param: Param, value: float | str) -> list[str]:
    """Other values of a parameter: all its choices, or the ends of its range and some far away."""
    if isinstance(value, str):
        return [c for c in param.choices or () if c != value]
    tried = [param.low, param.high, value * 2 if value else 1.0, value / 16]
    if param.unit == "probability":
        tried = [0.5]
    if param.unit in ("count", "B"):
        tried = [None if v is None else float(int(v)) for v in tried]
    plain = "" if param.unit in ("1", "count", "probability") else f" {param.unit}"
    return [f"{v!r}{plain}" for v in dict.fromkeys(tried) if v is not None and v != value]


def compiled(cls: type[RuntimeModel], platform: str, placement: list[int], calls: Calls, **sets: str) -> tuple[Compiled, Values]:
    values, room = resolve(cls, platform, sets)
    return compile_runtime(cls, values, Layout(room, placement), calls), values


@for_each("mode", MODES)
@for_each("name", registry.models())
def test_a_parameter_is_used_or_refused_with_the_reason(name: str, mode: str) -> None:
    cls = registry.models()[name]
    short = name.partition(":")[0]
    never: dict[str, bool] = {}
    for platform, calls in itertools.product(PLATFORMS, (PINGPONG, MANY)):
        base, values = compiled(cls, platform, MODES[mode], calls)
        for key, param in cls.params().items():
            for text in others(param, values.settings[key].value):
                try:
                    found, changed = compiled(cls, platform, MODES[mode], calls, **{key: text})
                except RetrompiError:
                    continue  # no value of it
                refused = unused_overrides(cls, changed, found, calls)
                if f"{short}.{key}" in found.used:
                    assert not refused
                    starts = changed.readers(key) == {"start_up"}
                    never[key] = never.get(key, True) and found.rows == base.rows and not starts
                    continue
                assert found.rows == base.rows, (platform, key, text)
                assert list(refused) == [f"{short}.{key}"]
                assert refused[f"{short}.{key}"].startswith(f"{short}.{key} ")
                assert "\n" not in refused[f"{short}.{key}"]
                break  # it is the key that is refused, whatever its value
    idle = {k for k, same in never.items() if same and f"{name}.{k}" not in ONE_VALUE and f"{short}.{k}" not in ONE_VALUE}
    assert not idle, f"said to be used, and no value of it changes anything: {sorted(idle)}"


@for_each(
    "model, mode, item, line",
    [
        ("wmpi", "shared", "wmpi.udp_timeout=2s", "wmpi.udp_timeout belongs to the path between machines; this run is on one machine"),
        ("wmpi", "shared", "wmpi.daemon=700us", "wmpi.daemon belongs to the path between machines; this run is on one machine"),
        ("wmpi", "shared", "platform.link.bandwidth=1Gbps",
         "platform.link.bandwidth belongs to the link between machines; this run is on one machine"),
        ("wmpi", "shared", "platform.link.kind=hub", "platform.link.kind belongs to the link between machines; this run is on one machine"),
        ("wmpi", "distributed", "wmpi.pool=16MiB",
         "wmpi.pool belongs to the path between ranks of one machine; every rank of this run has a machine of its own"),
        ("wmpi", "shared", "platform.host.nic_rate=1MB/s",
         "platform.host.nic_rate belongs to messages between hosts; no message of this run leaves its machine"),
        ("wmpi", "distributed", "platform.host.rto_min=1s",
         "platform.host.rto_min belongs to TCP connections between hosts when something fails on the way; "
         "nothing fails in this run (--fail)"),
        ("wmpi", "distributed", "platform.host.flops=1Mflop/s",
         "platform.host.flops belongs to amounts of computation in a trace and kernels stated by operations and bytes in a trace; "
         "the trace has none"),
        ("winmpich", "distributed", "winmpich.region_gap=1ms",
         "winmpich.region_gap belongs to starting a job; this run does not simulate it (replay --startup and the command startup do)"),
        ("wmpi", "shared", "wmpi.polls=3", "wmpi.polls is not used with wmpi.answer_wait=spin; it is with wmpi.answer_wait=spin_yield"),
        ("wmpi:absorbed", "shared", "platform.host.boost=1", "platform.host.boost is not used; the model states a value of its own"),
        ("wmpi", "0,0", "platform.workstation.quantum=20ms",
         "platform.workstation.quantum is not used; no rank of this run is on 'workstation'"),
    ],
)
def test_what_a_run_does_not_use_is_refused_in_one_line(retrompi: Any, model: str, mode: str, item: str, line: str) -> None:
    told = retrompi("pingpong", "--model", model, "--platform", "nt-pair", "--mode", mode, "--sizes", "0", "--set", item)
    assert told.code == 2
    assert told.err.strip() == f"error: {line}"


def test_what_a_run_uses_is_in_its_result() -> None:
    trace = generate.pingpong([0], 1)
    used = {mode: set(simulate.run(Question("wmpi", "nt-pair", Replay(trace), mode)).used) for mode in ("shared", "distributed")}
    assert {"wmpi.pool", "wmpi.answer_wait", "platform.server.copy_l2"} <= used["shared"]
    assert {"wmpi.daemon", "wmpi.udp_timeout", "platform.link.bandwidth", "platform.workstation.nic_rate"} <= used["distributed"]
    assert not used["shared"] & {"wmpi.daemon", "wmpi.udp_timeout", "platform.link.bandwidth", "platform.server.nic_rate"}
    assert "wmpi.pool" not in used["distributed"]


def test_what_a_trace_calls_decides_which_parts_it_needs(tmp_path: Path) -> None:
    def calls(*lines: str) -> Calls:
        text = "".join(f"{rank} {line}\n" for rank in (0, 1) for line in ("init", *lines, "finalize"))
        return calls_of(traces.Trace.parse([(text.encode(), "a.ti", -1)]))

    assert calls("compute 5").computing
    assert calls("allreduce 8 8").collective
    assert calls("barrier").collective
    assert not calls("barrier").computing
    assert calls("win_create 1 8", "Win_fence win=1", "win_free 1").one_sided
    for nothing in (PINGPONG, calls("sleep 1")):
        assert [nothing.probing, nothing.one_sided, nothing.computing, nothing.kernels, nothing.collective, nothing.to_self] == [False] * 6
    assert {part for part in PARTS if not PARTS[part].not_needed} == {"calls"}


HOMES = {"winmpich": "nt-pair", "wmpi": "nt-cluster", "hpvm": "nt-pair", "nemesis": "abe", "nemesis:windows": "abe-windows",
         "craympt": "cray-t3e", "mpibip": "myrinet-piii", "sockets": "nt-pair"}


def _other(field: Field, value: float) -> str:
    new = 1 - value if field.kind == "flag" else value * 3 if value else 3.0 if field.kind == "whole" else 1e-3
    return f"{new!r}{'' if field.unit in ('count', '1') else f' {field.unit}'}"


@for_each("mode", ["shared", "distributed"])
@for_each("model", HOMES)
def test_a_number_of_a_platform_that_is_not_used_changes_no_picosecond(model: str, mode: str) -> None:
    platform = HOMES[model]
    room = registry.platform(platform)
    trace = generate.pingpong([0, 100, 70_000], 2)

    def times(*sets: str) -> Any:
        result = simulate.run(Question(model, platform, Replay(trace), mode, sets, idle_overrides=True))
        return result.used, [m["time_ps"] for m in result.marks]

    used, before = times()
    for owner, cls, thing in (("host", Host, room.hosts[0]), ("link", Link, room.link)):
        for key, field in quantities(cls).items():
            if any(u.startswith(("platform.link.",) if owner == "link" else ("platform.",)) and u.endswith(f".{key}") for u in used):
                continue
            item = f"platform.{owner}.{key}={_other(field, getattr(thing, key))}"
            try:
                simulate.run(Question(model, platform, Replay(trace), mode, (item,)))
            except UsageError as error:
                refused = error
            else:  # it is what a used value follows: mss the link's mtu
                _, changed = resolve(registry.model(model), platform, [item])
                assert {f"platform.{mine}" for mine in changed.followed} & set(used), f"{item} is accepted, and nothing uses it"
                continue
            if refused.code == "bad-topology":  # refused on such a network, whatever is run
                assert (room.link.kind, item.split("=")[0]) in (("cable", "platform.link.buffer"), ("hub", "platform.link.buffer"))
                continue
            assert refused.code == "idle-override"
            assert times(item)[1] == before, item


def test_every_number_of_a_platform_says_what_uses_it() -> None:
    for cls in (Host, Link):
        for name, field in fields_of(cls).items():
            assert field.used_by, name
            assert all(isinstance(use, Use) for use in field.used_by)


def test_refuse_raises_the_first_line() -> None:
    refuse({})
    with pytest.raises(UsageError) as caught:
        refuse({"a.b": "a.b is not used", "a.c": "a.c is not used"})
    assert (str(caught.value), caught.value.code) == ("a.b is not used", "idle-override")
