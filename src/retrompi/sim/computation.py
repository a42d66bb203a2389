"""The scale of a replay's computation: what a recorded second takes on the simulated hosts, and from which two rates that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retrompi.base.units import format_quantity, format_time
from retrompi.sim.resolved import Resolved
from retrompi.spec.machine import roofline
from retrompi.spec.question import Replay
from retrompi.traces.calls import calls_of
from retrompi.traces.computation import Rate, mixed_rates, rate_of

__all__ = ["ComputeScale", "by_kernels", "scale_of"]

_MOST_HOSTS = 2


@dataclass(frozen=True)
class ComputeScale:
    """``recorded``: the rate that the trace states, if any; ``hosts``: (name, flop/s, source) of the hosts that run ranks, equal rates
    once; ``line``: the scale in one sentence."""

    recorded: Rate | None
    hosts: tuple[tuple[str, float, str], ...]
    line: str
    assumed: bool = False
    """Whether nobody knows how fast the machine was on which the trace's seconds were measured."""
    carried: bool = False
    """Whether seconds that are stated for one machine were scaled to another one."""

    def row(self) -> dict[str, Any]:
        """For JSON. ``recorded_second_s``: what a second of the recording takes on each host; None where no rate is stated."""
        own = self.recorded
        return {
            "line": self.line,
            "recorded_flops": own.flops if own else None,
            "source": own.source if own else None,
            "known": bool(own and own.known),
            "hosts": [
                {"host": name, "flops": flops, "source": source, "recorded_second_s": own.flops / flops if own else None}
                for name, flops, source in self.hosts
            ],
        }


def scale_of(asked: Resolved, given: Rate | None = None) -> ComputeScale | None:
    """The scale of the computation of a trace; None for another workload and for a trace that computes nothing. ``given``: the rate to
    which its amounts were scaled (`retrompi.traces.at_rate`), in place of the one that it states."""
    workload = asked.question.workload
    if not isinstance(workload, Replay):
        return None
    stated = _kernels(asked, workload)
    if not float(workload.trace.info()["compute_flops"]) > 0:
        return ComputeScale(None, (), stated) if stated else None
    hosts = _hosts(asked)
    own = given or rate_of(workload.trace)
    unknown = own is not None and not own.known and workload.program.compute_s is None
    assumed = "" if workload.program.compute_s is not None else _NO_KERNELS
    line = "; ".join(filter(None, (_line(workload, own, hosts), stated or assumed)))
    return ComputeScale(own, hosts, line, unknown, workload.program.compute_flops is not None)


_NO_KERNELS = "the trace names no kernels, so that all computation goes at that one rate, whatever it does to caches and memory"


def by_kernels(asked: Resolved) -> bool:
    """Whether a replay's trace names kernels that are stated by operations and bytes."""
    workload = asked.question.workload
    return isinstance(workload, Replay) and calls_of(workload.trace).kernels


def _kernels(asked: Resolved, workload: Replay) -> str:
    """One sentence on the rates of a trace's kernels that are stated by operations and bytes; empty if it names none."""
    if not by_kernels(asked):
        return ""
    named = {name.partition(":")[0] for name, *_ in workload.trace.kernels()} & roofline.KINDS.keys()
    host = asked.platform.hosts[asked.placement[0]]
    ceiling = "flops_per_cycle" if host.flops_per_cycle > 0 else "flops"
    values = [f"at most {format_quantity(roofline.peak(host), 'flop/s')} ({_source(asked, host.name, ceiling)})"]
    values += [f"{key} {format_quantity(getattr(host, key), 'B/s')} ({_source(asked, host.name, key)})" for key in ("read_mem", "copy_mem")]
    return f"kernels ({', '.join(sorted(named))}) take what caches and memory of {host.name} allow: {', '.join(values)}"


def _source(asked: Resolved, host: str, key: str) -> str:
    return asked.platform.quantity(f"{host}.{key}").source.partition(" (was ")[0]


def _hosts(asked: Resolved) -> tuple[tuple[str, float, str], ...]:
    found: dict[float, tuple[str, float, str]] = {}
    for index in sorted(set(asked.placement)):
        host = asked.platform.hosts[index]
        found.setdefault(host.flops, (host.name, host.flops, _source(asked, host.name, "flops")))
    return tuple(found.values())


def _line(workload: Replay, own: Rate | None, hosts: Sequence[tuple[str, float, str]]) -> str:
    program = workload.program
    if program.compute_s is not None and program.compute_flops is None:
        return f"computation is scaled so that section {program.section} computes for {format_time(program.compute_s)}"
    rates = ", ".join(f"{name} computes at {format_quantity(flops, 'flop/s')} ({source})" for name, flops, source in hosts[:_MOST_HOSTS])
    rates += f" and {len(hosts) - _MOST_HOSTS} more rates" if len(hosts) > _MOST_HOSTS else ""
    if program.compute_s is not None and program.compute_flops is not None:
        takes = ", ".join(format_time(program.compute_s * program.compute_flops / flops) for _, flops, _ in hosts[:_MOST_HOSTS])
        return (f"section {program.section} computes for {format_time(program.compute_s)} on hosts of "
                f"{format_quantity(program.compute_flops, 'flop/s')}, for which that is stated, and for {takes} here: {rates}")
    if own is None and not mixed_rates(workload.trace):
        return f"computation is taken as the operations that the trace states, at no stated rate of a recording machine; {rates}"
    if own is None:
        return f"computation is taken as operations (merged from traces of {mixed_rates(workload.trace)}); {rates}"
    takes = ", ".join(format_time(own.flops / flops) for _, flops, _ in hosts[:_MOST_HOSTS])
    if not own.known:
        unit = format_quantity(own.flops, "flop/s")
        return (f"the scale of computation is unknown: a recorded second counts at {unit} ({own.source}), and takes {takes} here: {rates}; "
                "--rate states the rate of the recording machine")
    return f"a recorded second takes {takes} here: it was recorded at {own} ({own.source}), {rates}"
