"""A small share of `extremes`: extreme parameters end with a right time, an outcome or one line."""

from __future__ import annotations

import os
from pathlib import Path

from cases import for_each
from extremes import MEMORY_B, platform_of, tried
from refusals import refused

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.question import Question, pingpong

TRIES = int(os.environ.get("RETROMPI_EXTREMES", "8"))
"""Tries a model; the full size is ``python tests/extremes.py 2500``."""


@for_each("model", registry.model_names, few=14)
def test_no_extreme_parameter_wraps_hangs_or_takes_all_memory(model: str) -> None:
    figures = tried(TRIES, seed=sum(map(ord, model)), models=[model])
    assert figures.faults == []
    assert figures.most_B < 2 * MEMORY_B
    assert figures.tries == TRIES


USERS = """
from dataclasses import replace
from retrompi.spec import registry

Wmpi = registry.model("wmpi")


class Mine(Wmpi):
    name = "mine"
    title, version, years, summary = "Mine", "1", "2000", "a model of a user"

    def {part}(self, p{layout}):
        return {result}
"""

BAD = {
    "calls, nan": ("calls", "replace(super().calls(p, layout), send_cpu=float('nan'))", "send_cpu | not a finite number"),
    "calls, inf": ("calls", "replace(super().calls(p, layout), recv_cpu=float('inf'))", "recv_cpu | not a finite number"),
    "calls, negative": ("calls", "replace(super().calls(p, layout), send_cpu=-1.0)", "send_cpu | negative"),
    "calls, absurd": ("calls", "replace(super().calls(p, layout), send_cpu=1e9)", "send_cpu | more than 1e+06 s"),
    "calls, a text": ("calls", "replace(super().calls(p, layout), send_cpu='5 us')", "send_cpu | '5 us' and not a number"),
    "a medium": ("between_hosts", "(w := super().between_hosts(p, layout)) and replace(w, hops=[replace(w.hops[0], header=float('nan'))])",
                 "header | not a finite number"),
    "a medium, negative": ("between_hosts", "(w := super().between_hosts(p, layout)) and replace(w, hops=[replace(w.hops[0], packet=-1)])",
                           "packet | negative"),
    "forwarding": ("between_hosts", "replace(super().between_hosts(p, layout), forward_cost={'daemon': -1.0})", "forward_cost | negative"),
    "protocol": ("between_hosts", "replace(super().between_hosts(p, layout), protocol=((float('nan'), 5, 'eager'),))",
                 "protocol | no range"),
    "protocol, a word": ("between_hosts", "replace(super().between_hosts(p, layout), protocol=((0, 5, 'eagre'),))", "eagre | rendezvous"),
    "hosts": ("hosts", "[replace(h, quantum=float('nan')) for h in layout.hosts]", "quantum | not a finite number"),
    "division": ("between_hosts", "1 / 0", "between_hosts | division by zero"),
}


@for_each("part, result, says", BAD.values())
def test_what_a_users_model_returns_is_checked(part: str, result: str, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(USERS.format(part=part, result=result, layout=", layout"))
    with refused(InputError, f"out-of-range | {folder}/__init__.py:12 | {part} | {says}"):
        simulate.run(Question(str(folder), "nt-pair", pingpong([0], 1)))


@for_each("text", ["1e7s", "1e13s", "9e300s"])
@for_each("name", ["wmpi.socket_call", "platform.link.latency", "platform.host.syscall"])
def test_a_parameter_beyond_its_unit_is_refused(name: str, text: str) -> None:
    with refused(UsageError, "out-of-range | the most that can be simulated"):
        simulate.run(Question("wmpi", "nt-pair", pingpong([0], 1), overrides={name: text}))


@for_each("name, text", [
    ("platform.host.cores", "1e9"), ("platform.host.loopback_mss", "9223372036854775807B"), ("platform.host.quantum", "1ps"),
    ("platform.link.mtu", "20B"), ("platform.link.bandwidth", "1e-12Mbps"), ("hpvm.packet", "0B"),
])
def test_what_ended_with_a_crash_is_one_line(name: str, text: str) -> None:
    with refused(RetrompiError, "out-of-range") as caught:
        simulate.run(Question("hpvm", "nt-pair", pingpong([0, 1000], 1), overrides={name: text}, idle_overrides=True))
    assert caught.value.exit_code == 2


@for_each("model", [m for m in registry.model_names() if "header" in registry.model(m).params()])
@for_each("mode", ["shared", "distributed"])
def test_a_message_without_header_and_bytes_arrives(model: str, mode: str) -> None:
    question = Question(model, platform_of(model), pingpong([0, 1000], 2), mode, idle_overrides=True)
    asked = Resolved.of(question)
    if asked.model().joins(asked.platform, asked.placement):
        return
    base = model.partition(":")[0]
    usual, bare = (simulate.run(question.with_(overrides=sets)) for sets in ((), {f"{base}.header": "0B"}))
    assert bare.outcome == usual.outcome == "completed"
    assert bare.time_ps <= usual.time_ps


def test_a_time_past_the_range_ends_the_run_and_says_where() -> None:
    # Each of the values is allowed; the ninth round trip leaves the 106 days.
    question = Question("hpvm", "nt-pair", pingpong([0], 100), overrides={"platform.link.latency": "500000s"})
    ended = simulate.run(question)
    assert ended.outcome == "overflow"
    assert "106 days" in ended.detail
    assert "s were simulated in" in ended.detail
    assert 0 < ended.time_s < 2**63 * 1e-12
    assert len(ended.marks) >= 1
