"""Every cost belongs to its machine: with another processor, memory or operating system exactly its stages of a message change.

What the anatomy books is summed over all processes, kernels and cards, from before the first message until all is quiet, so that overlap
and waiting do not matter. The stages that are consequences of others (waiting, polling, queueing) are not looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from cases import for_each
from engine_runs import job

from retrompi.base import paths
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.declare.fields import fields_of
from retrompi.spec.declare.param import COSTS
from retrompi.spec.host import REFERENCE_CALL, REFERENCE_CLOCK
from retrompi.spec.machine.named_host import named_host, seconds_on
from retrompi.spec.media import MEDIA, OneSided, WaitPolicy
from retrompi.spec.model import Param, model_values
from retrompi.spec.question import Question, Replay

STAGES = {
    "clock": ("library", "lock", "compute"),
    "memory": ("copy", "line"),
    "system": ("syscall", "event", "stack"),
    "": ("wire", "nic"),
}
"""What is changed -> the stages that it changes, by 2; the last row is changed by none."""
CHANGES = {
    "clock": {"clock": 2.0},
    "memory": {**dict.fromkeys(("copy_l1", "copy_l2", "copy_mem", "read_mem", "fsb_rate"), 0.5), "line_shared": 2.0, "line_bus": 2.0},
    "system": dict.fromkeys(("syscall", "dispatch", "interrupt", "tcp_segment", "tcp_byte", "loopback_segment"), 2.0),
}
FACTOR = {"clock": 0.5, "memory": 2.0, "system": 2.0}
SHORT, LONG = (100, 1000), (100, 5000, 300000)
"""B. How many calls and acknowledgements long messages need on a socket depends on the moment at which each segment arrives."""
MODES = ("shared", "distributed")


def _runs() -> list[tuple[str, str, str]]:
    """(model, platform, mode) of two ranks, wherever the model runs."""
    found = []
    for model, cls in registry.models().items():
        for name, room in registry.platforms().items():
            for mode in MODES:
                if mode == "distributed" and len(room.hosts) < 2:
                    continue
                if not cls().joins(room, [0, 0] if mode == "shared" else [0, 1]):
                    found.append((model, name, mode))
    return found


@lru_cache(maxsize=2)
def _pings(sizes: tuple[int, ...]) -> Replay:
    pings = ";".join(f"send 1 0 {s} 6; recv 1 0 {s} 6" for s in sizes)
    pongs = ";".join(f"recv 0 0 {s} 6; send 0 0 {s} 6" for s in sizes)
    return Replay(job(f"# mark begin; iprobe 1 9; {pings}; sleep 2; # mark end", f"{pongs}; sleep 2"))


@lru_cache(maxsize=1)
def _puts() -> Replay:
    operations = "Put 1 0 100 6; Win_flush_all; Put 1 0 30000 6; Win_flush_all; Get 1 0 3000 6"
    return Replay(job(f"# mark begin; {operations}; sleep 2; # mark end", "sleep 2"))


def booked(asked: Resolved, change: str = "") -> tuple[Counter[str], Counter[str]]:
    """Stage -> picoseconds, and in how many parts they were booked."""
    factors = CHANGES.get(change, {})
    # Copies of two processors slow each other down by how they overlap: a consequence, as queueing is. Here memory sustains them all.
    hosts = tuple(replace(h, mem_streams=64.0, **{k: getattr(h, k) * f for k, f in factors.items()}) for h in asked.platform.hosts)
    asked = Resolved(asked.question, asked.model, asked.values, asked.base_platform, replace(asked.platform, hosts=hosts))
    result = simulate.run(asked, Observe(anatomy=True, directions=((0, "begin", 0, "end"),), between=("begin", "end")))
    assert result.outcome == "completed", result.detail
    time: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    path = result.message_path
    for stage, begin, end in (
        *((s.stage, s.begin, s.end) for p in path.processes for s in p.stretches),
        *((w.stage, w.start, w.end) for w in path.work),
    ):
        time[stage] += end - begin
        parts[stage] += 1
    return time, parts


def _wrong(asked: Resolved) -> list[str]:
    rows = simulate.compile_question(asked).rows
    capped = any(row["bus_rate"] < host.bus_rate for row, host in zip(rows["hosts"]["kinds"], asked.platform.hosts, strict=False))
    # Packets of one message that follow each other share the card and the wire by how they overlap: a consequence as well.
    # So do a header that goes alone and the data behind it, unless the processor moves both.
    crowded = any(
        hop["medium"] == "dma" and (hop["packet"] < max(LONG) or (0 < hop["alone"] < max(LONG) and not hop["cpu_driven"]))
        for hop in rows["remote"]
    )
    # So do the two segments of a message whose header is written by itself, and how many reads they take.
    two = any(hop["medium"] == "stream" and hop["header_write"] and hop["header_write_above"] < max(SHORT) for hop in rows["remote"])
    before, parts = booked(asked)
    wrong = []
    for change, factor in FACTOR.items():
        after, parts_after = booked(asked, change)
        for what, stages in STAGES.items():
            for stage in stages:
                if (change, stage) == ("memory", "nic") and capped:
                    continue  # the model lets the memory limit the card (craympt on a torus)
                if ((crowded or two) and not what) or (two and parts_after[stage] != parts[stage]):
                    continue
                wanted = before[stage] * (factor if what == change else 1)
                if abs(after[stage] - wanted) > 2 * max(parts[stage], 1):  # a picosecond a part, before and after
                    wrong.append(f"{change}: {stage} {before[stage]} -> {after[stage]} in {parts[stage]} parts")
    return wrong


@for_each("model, platform, mode", _runs, few=150)
def test_exactly_its_stages_change(model: str, platform: str, mode: str) -> None:
    """The clock x 2 halves work, memory that is half as fast doubles copies and lines, and services that take twice as long double them."""
    asked = Resolved.of(Question(model, platform, _pings(SHORT), mode))
    rows = simulate.compile_question(asked).rows
    if not any(hop["medium"] in ("stream", "datagram") for hop in (*rows["same"], *rows["remote"])):
        asked = asked.with_fields(workload=_pings(LONG))
    assert _wrong(asked) == []


@for_each("mode", MODES)
@for_each("model", ["craympt", "craympt:pvm", "craympt:shmem"])
def test_exactly_its_stages_change_of_one_sided_operations(model: str, mode: str) -> None:
    assert _wrong(Resolved.of(Question(model, "cray-j90" if mode == "shared" else "cray-t3e", _puts(), mode))) == []


@for_each("mode", MODES)
@for_each("lock", ["pthread", "critical_section", "mutex"])
def test_exactly_its_stages_change_of_locks(lock: str, mode: str) -> None:
    sets = ("thread_level=multiple", f"lock_kind={lock}")
    assert _wrong(Resolved.of(Question("nemesis:windows", "abe-windows", _pings(SHORT), mode, sets))) == []


def test_the_reference_host_is_the_server_of_the_pair() -> None:
    server = registry.platform("nt-pair").host("server")
    assert (server.clock, server.work, server.syscall, server.speed) == (REFERENCE_CLOCK, 1, REFERENCE_CALL, 1)


def test_wmpis_daemons_on_a_xeon_cost_what_a_xeon_needs() -> None:
    """Work is divided by the ratio of clock x work per cycle, services by that of null calls; a timer is the same."""
    xeon, server = registry.platform("abe").host("n1"), registry.platform("nt-pair").host("server")
    daemon = model_values(registry.model("wmpi")).daemon
    slow, fast = (_forwarding(platform) for platform in ("nt-pair", "abe"))
    assert slow == pytest.approx(daemon, rel=1e-6)
    assert fast == pytest.approx(daemon * server.speed / xeon.speed, rel=1e-6)
    assert pytest.approx(xeon.speed / server.speed) == 2 * 2330 / 150


def _forwarding(platform: str) -> float:
    """The longest stretch of library work (s) of the daemon on the first host: routing a packet."""
    result = simulate.run(Question("wmpi", platform, _pings((100,)), "distributed"),
                          Observe(anatomy=True, directions=((0, "begin", 0, "end"),), between=("begin", "end")))
    first = registry.platform(platform).hosts[0].name
    (daemon,) = (p for p in result.message_path.processes if p.name == f"daemon on {first}")
    return max(s.end - s.begin for s in daemon.stretches if s.stage == "library") * 1e-12


def test_a_null_call_and_a_step_of_work_give_back_what_was_stated() -> None:
    """On the host on which it is stated a cost is what the declaration says, whatever host that is."""
    for cls in registry.models().values():
        values = model_values(cls)
        for name, param in cls.params().items():
            if param.on:
                host = named_host(param.on, cls.folder())
                stated = values.settings[name].value
                assert seconds_on(host, values[name], 1.0, param.cost) == pytest.approx(stated, rel=1e-12), (cls.name, name)


def test_every_time_and_rate_of_a_medium_says_what_it_is() -> None:
    for cls in (WaitPolicy, OneSided, *MEDIA.values()):
        for name, field in fields_of(cls).items():
            assert (field.scale in COSTS) == (field.unit in ("s", "s/B", "B/s")), (cls.__name__, name)


def test_the_identity_of_a_run_has_the_machine_on_which_costs_are_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's platform that changes changes what a model costs that is stated on one of its hosts."""
    ours = registry.platform("nt-pair").path
    assert ours is not None
    text = ours.read_text(encoding="utf-8")
    (tmp_path / "platforms").mkdir()
    monkeypatch.setattr(paths, "user_platforms_dir", lambda: tmp_path / "platforms")
    mine = tmp_path / "platforms" / "mine.toml"
    model = type("Mine", (registry.model("wmpi"),), {"name": "wmpi:mine", "variant_note": "a test's", "library": Param(
        "50 us", "s", "library work", source="assumed: test", on="mine:workstation", cost="work")})
    found = []
    for work in ("1", "2"):
        # The Workstation's; the Server is one of the library.
        other = re.sub(r"^work = .*$", f'work = {{ value = {work}, source = "assumed: test" }}', text, flags=re.MULTILINE)
        mine.write_text(other.replace('name = "nt-pair"', 'name = "mine"'), encoding="utf-8")
        found.append((model.hash(), model_values(model).library))
    assert found[1][1] == 2 * found[0][1]
    assert found[1][0] != found[0][0]
