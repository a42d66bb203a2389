"""``retrompi calibrate this-machine``: measures two ranks on this machine, shows fit and held-out sizes, writes model and platform."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from retrompi.cli.bundle import option
from retrompi.cli.options import progress
from retrompi.cli.output import Column, Output, as_text, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.measure.this_machine.recording import MachineRecording

__all__ = ["ThisMachine", "calibrate"]


@dataclass(frozen=True)
class ThisMachine:
    """Options of ``retrompi calibrate this-machine``."""

    mpi: Literal["mpich", "openmpi"] | None = option(
        "MPI library: the one to measure for this-machine (default: MPICH if installed, else Open MPI).", metavar="mpich|openmpi")
    quick: bool = option("this-machine: measure for a few seconds instead of a minute; the noise is wider.")
    internode: bool = option("this-machine: also measure between two network namespaces on a virtual link; needs root.")
    rate: str | None = option("Rate of the link, for this-machine --internode (default: 100 Mbps).", "--link-rate", metavar="RATE")
    delay: str | None = option("One-way delay of the link, for this-machine --internode (default: 100 us).", "--link-delay", metavar="TIME")
    name: str | None = option("Name: of the model of this-machine (default: this-mpich or this-openmpi).", metavar="NAME")
    record: str | None = option("this-machine: save every measured number to FILE (.json or .json.zst).", metavar="FILE")
    recorded: str | None = option("this-machine: fit a recording made with --record; measure nothing.", "--recording", metavar="FILE")

    def given_values(self) -> dict[str, Any]:
        """The values given, by option."""
        names = {"recorded": "--recording", "rate": "--link-rate", "delay": "--link-delay"}
        return {names.get(f.name, f"--{f.name}"): getattr(self, f.name) for f in fields(self)}


def _percent(value: Any) -> str:
    return "" if value is None else f"{100 * value:+.1f} %"


POINTS = (
    Column("pair", "pair"),
    Column("size_B", "size, B", right=True),
    Column("measured_us", "measured, us", lambda v: f"{v:.3f}", right=True),
    Column("low_us", "10 %", lambda v: f"{v:.3f}", right=True),
    Column("high_us", "90 %", lambda v: f"{v:.3f}", right=True),
    Column("fitted_us", "fit, us", lambda v: f"{v:.3f}", right=True),
    Column("error", "error", _percent, right=True),
    Column("use", ""),
)
SWITCHES = (
    Column("pair", "pair"),
    Column("what", "change"),
    Column("size", "from, B", as_text, right=True),
    Column("low", "least", as_text, right=True),
    Column("high", "most", as_text, right=True),
    Column("step", "jump", _percent, right=True),
    Column("chance", "by chance", lambda v: "" if v is None else f"{v:.1g}", right=True),
    Column("trials", "trials", as_text, right=True),
    Column("agree", "agree", as_text, right=True),
)
LEVELS = (
    Column("low_B", "working set, B", right=True),
    Column("high_B", "to, B", right=True),
    Column("rate_Bps", "copies, GB/s", lambda v: f"{v / 1e9:.1f}", right=True),
    Column("sysfs", "the system says"),
)


def _recording(wanted: ThisMachine) -> MachineRecording:
    """The data to fit, from a file or measured now."""
    from retrompi.base.errors import UsageError
    from retrompi.measure.this_machine import recording

    if wanted.recorded is not None:
        clash = [name for name in ("--record", "--mpi", "--internode", "--quick") if wanted.given_values()[name]]
        if clash:
            raise UsageError(f"{clash[0]} applies to measuring; --recording fits an existing recording", code="unused-option")
        return recording.load(Path(wanted.recorded))
    from retrompi.measure.launch import BackendError
    from retrompi.measure.this_machine import internode, plan
    from retrompi.measure.this_machine.bench import two_ranks

    if not wanted.internode and (wanted.rate or wanted.delay):
        given = "--link-rate" if wanted.rate else "--link-delay"
        raise UsageError(f"{given} describes the link between two hosts: add --internode", code="unused-option")
    link = internode.LinkEstimate.parse(wanted.rate, wanted.delay) if wanted.internode else None
    if link is not None:
        internode.check()
    try:
        bench = two_ranks(wanted.mpi or "mpich")
    except BackendError:
        if wanted.mpi is not None:
            raise
        bench = two_ranks("openmpi")
    with progress("measure") as report:
        found = plan.measure(bench, quick=wanted.quick, report=report)
        if link is not None:
            with internode.two_hosts(bench, link) as (remote, facts):
                found.facts["internode"] = facts
                plan.measure_remote(remote, found, quick=wanted.quick, report=report)
    if wanted.record is not None:
        recording.save(found, Path(wanted.record))
    return found


def calibrate(wanted: ThisMachine, output: Output, *, dry_run: bool) -> None:
    """Runs the command; see ``retrompi calibrate --help``."""
    from retrompi.base import paths
    from retrompi.measure import fit
    from retrompi.measure.this_machine import fit_recording

    if wanted.name is not None:
        fit.check_name(wanted.name)
    found = fit_recording.fit(_recording(wanted))
    name = wanted.name or fit.check_name(f"this-{found.recording.facts['family']}")
    told = fit_recording.summary(found)
    rows = [{"pair": kind, **row, "use": "" if row["seen"] else "held out"} for kind, k in told["kinds"].items() for row in k["points"]]
    folder = fit.default_folder(name)
    platform_file = paths.user_platforms_dir() / "this-machine.toml"
    if not dry_run:
        fit_recording.write(found, folder, platform_file)
    if output.as_json:
        print_json(told | ({} if dry_run else {"model": str(folder), "platform": str(platform_file)}))
        return
    output.emit(rows, POINTS)
    if output.as_csv:
        return
    _tell(told)
    if not dry_run:
        say(f"\nwritten: {folder}\nwritten: {platform_file}\ntry: retrompi pingpong -m {name} -p {platform_file.stem} --mode shared")


def _tell(told: dict[str, Any]) -> None:
    """Prints the results besides the points: protocol changes, levels, costs, noise, errors."""
    say("")
    changes = [
        {"pair": kind, **row}
        for kind, k in told["kinds"].items()
        for row in ([k["eager_limit"]] if k["eager_limit"]["size"] else []) + k["steps"]
    ]
    print_table(changes, SWITCHES, "no change of protocol was found")
    say("")
    print_table([dict(x) for x in told["levels"]], LEVELS, "no copies were measured")
    facts, costs = told["machine"], told["costs_s"]
    say("\n" + "  ".join(f"{k} {v * 1e9:.0f} ns" for k, v in costs.items()))
    for kind, seconds in told["first_use_s"].items():
        if seconds:
            say(f"{kind}: the first messages of two ranks take {seconds * 1e6:.0f} us more than later ones, all together")
    rates = told["rates_flops"]
    if rates:
        say(
            "arithmetic: "
            + ", ".join(f"{v / 1e9:.1f} Gflop/s {'beside a busy core' if k == 'flops_both' else 'alone'}" for k, v in rates.items())
        )
    state = facts.get("state")
    if state:
        out = "" if facts["quick"] else " and were left out"
        say(
            f"a cache line between the cores: {state['line_ns']:.0f} ns (seen: {state['least_ns']:.0f} to {state['most_ns']:.0f}); "
            f"{state['moved']} of {state['moved'] + state['kept']} launches ran in another state{out}"
        )
    for kind, k in told["kinds"].items():
        for which, words in (("seen", "the fit saw"), ("held_out", "held out")):
            e = k[f"errors_{which}"]
            if e:
                say(
                    f"{kind}: {e['sizes']} sizes {words}: median error {100 * e['median']:.1f} %, "
                    f"95th percentile {100 * e['p95']:.1f} %, worst {100 * e['worst']:.1f} %"
                )
    if facts["noise"]["loaded"]:
        click.echo(
            f"warning: the machine was busy while it was measured: {facts['noise']['why']}; measure again when it is at rest", err=True
        )
