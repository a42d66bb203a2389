"""``retrompi platforms``: the available platforms and their parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_time
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.models import in_columns, print_rows_cited, range_of, warn_of_broken
from retrompi.cli.options import Overrides, complete_platform, output_option
from retrompi.cli.output import Column, Output, as_text, note, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.spec.platform import Platform

LIST = (
    Column("name", "name"),
    Column("years", "years"),
    Column("hosts", "hosts", right=True),
    Column("link", "link"),
    Column("origin", "from"),
    Column("title", "title"),
)
LIST_KEYS = ("name", "title", "years", "summary", "hosts", "link", "path", "origin")
HOSTS = (
    Column("name", "name"),
    Column("years", "years"),
    Column("cores", "processors", right=True),
    Column("clock", "clock", right=True),
    Column("os", "operating system"),
    Column("origin", "from"),
    Column("title", "title"),
)
HOST_KEYS = ("name", "title", "years", "summary", "os", "cores", "clock", "path", "origin")
NETWORKS = (
    Column("name", "name"),
    Column("years", "years"),
    Column("link", "link"),
    Column("bandwidth", "bandwidth", right=True),
    Column("origin", "from"),
    Column("title", "title"),
)
NETWORK_KEYS = ("name", "title", "years", "summary", "link", "bandwidth", "path", "origin")
CARD = (
    Column("path", "quantity"),
    Column("text", "value", right=True),
    Column("range", "range"),
    Column("source", "source"),
    Column("help", "meaning"),
)
CARD_KEYS = ("path", "value", "text", "unit", "low", "high", "source", "help")


@click.group()
@debug_option
def command() -> None:
    """List the platforms and the library of hosts and networks, or show one with its values and sources.

    \b
    Examples:
      retrompi platforms list
      retrompi platforms show nt-pair
      retrompi platforms show 'nt4-p6-200*8@switch-100'
    """


@command.command("list")
@options(output=Output)
def list_platforms(output: Output) -> None:
    """List the platforms, and the library's hosts and networks.

    HOST*COUNT@NETWORK is a platform, too. JSON and CSV have the platforms alone; 'hosts' and 'networks' print the others.

    \b
    Examples:
      retrompi platforms list
      retrompi platforms list --csv
    """
    from retrompi.spec import registry

    rows = [
        {
            "name": p.name,
            "title": p.title,
            "years": p.years,
            "summary": p.summary,
            "hosts": len(p.hosts),
            "link": p.link.kind,
            "path": str(p.path),
            "origin": registry.origin(p.path),
        }
        for p in registry.platforms().values()
    ]
    warn_of_broken(models=False)
    output.emit(rows, LIST, keys=LIST_KEYS, empty="no platforms", cut=True)
    if output.text:
        for what, names in (("hosts", [h["name"] for h in _hosts()]), ("networks", [n["name"] for n in _networks()])):
            say(f"\n{len(names)} {what} of the library (retrompi platforms {what})\n    {', '.join(names)}")


def _hosts() -> list[dict[str, Any]]:
    from retrompi.spec import registry
    from retrompi.spec.machine import machines

    return [
        {"name": m.name, "title": m.title, "years": m.years, "summary": m.summary, "os": m.os, "path": str(m.path),
         "cores": int(m.quantities["cores"].value), "clock": m.quantities["clock"].text, "origin": registry.origin(m.path)}
        for m in machines.hosts().values()
    ]


def _networks() -> list[dict[str, Any]]:
    from retrompi.spec import registry
    from retrompi.spec.machine import machines

    return [
        {"name": n.name, "title": n.title, "years": n.years, "summary": n.summary, "link": n.kind, "path": str(n.path),
         "bandwidth": n.quantities["link.bandwidth"].text, "origin": registry.origin(n.path)}
        for n in machines.networks().values()
    ]


@command.command("hosts")
@options(output=Output)
def list_hosts(output: Output) -> None:
    """List the hosts of the library.

    \b
    Examples:
      retrompi platforms hosts
      retrompi platforms hosts --json
    """
    warn_of_broken(models=False)
    output.emit(_hosts(), HOSTS, keys=HOST_KEYS, empty="no hosts", cut=True)


@command.command("networks")
@options(output=Output)
def list_networks(output: Output) -> None:
    """List the networks of the library.

    \b
    Examples:
      retrompi platforms networks
      retrompi platforms networks --json
    """
    warn_of_broken(models=False)
    output.emit(_networks(), NETWORKS, keys=NETWORK_KEYS, empty="no networks", cut=True)


def equal_hosts(hosts: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The first host of each kind -> the names of those like it: with the same texts, values and sources."""
    kinds: dict[Any, list[str]] = {}
    for host in hosts:
        own = [(r["path"].partition(".")[2], r["text"], r["source"]) for r in rows if r["path"].partition(".")[0] == host["name"]]
        kinds.setdefault((host["os"], host["byte_order"], tuple(own)), []).append(host["name"])
    return {names[0]: names[1:] for names in kinds.values()}


@dataclass(frozen=True)
class ShowPlatformOptions:
    """Options of ``retrompi platforms show``."""

    full: bool = option("Print all of it instead of a summary: every value with its range, source and meaning.", "--full")


@command.command("show")
@click.argument("platform", shell_complete=complete_platform)
@options(given=ShowPlatformOptions, output=Output)
def show_platform(platform: str, given: ShowPlatformOptions, output: Output) -> None:
    """Show PLATFORM: hosts, network and values; with --full the range, source and meaning of each too.

    PLATFORM is a name, a TOML file, hosts and network of the library (HOST*COUNT@NETWORK), or one host or network of it.

    \b
    Examples:
      retrompi platforms show nt-pair
      retrompi platforms show nt-pair --full
      retrompi platforms show nt4-p6-200
      retrompi platforms show nt-pair --json
    """
    from retrompi.render.cards.dossier import part_dossier, platform_dossier, references
    from retrompi.spec import registry

    if part := registry.part(platform):
        _show_part(part_dossier(part), output)
        return
    card = platform_dossier(registry.platform(platform))
    rows = card["quantities"]
    if output.as_json:
        print_json(card)
        return
    if output.as_csv:
        output.emit(rows, CARD, keys=CARD_KEYS)
        return
    where = f", in {card['path']}" if card["path"] else ", of hosts and networks of the library"
    say(f"{card['name']}: {card['title']}\n{card['summary']}\n{card['years']}{where}")
    alike = equal_hosts(card["hosts"], [*rows, *card["kernels"]])
    for first, others in alike.items():
        host = next(h for h in card["hosts"] if h["name"] == first)
        names = f"host {first}" if not others else f"hosts {first} to {others[-1]} ({len(others) + 1}, with the values of {first})"
        say(f"{names}: {host['os']}, {host['byte_order']} endian")
    for place in card["placements"]:
        say(f"placement {place['name']}: {', '.join(place['ranks'])}")
    say(f"link: {card['link']}\n")
    hidden = tuple(f"{name}." for others in alike.values() for name in others)
    rows, loops = ([row for row in some if not row["path"].startswith(hidden)] for some in (rows, card["kernels"]))
    if not given.full:
        _print_values(rows)
        _say_fits(card)
        more = ", what its Rinf1 loops cost" if loops else ""
        say(f"\nranges, sources{more}, and the claims cited: retrompi platforms show {platform} --full")
        return
    print_table([{**row, "range": range_of(row)} for row in rows], CARD)
    if loops:
        say("\nwhat the Rinf1 loops cost (docs/rinf1.md)")
        print_table([{**row, "range": range_of(row)} for row in loops], CARD)
    print_rows_cited(references([*rows, *loops]))
    _say_fits(card)


def _print_values(rows: Sequence[Mapping[str, Any]]) -> None:
    """The values of each host and of the network in columns, and how many come from which kind of source."""
    kinds = Counter(str(row["source"]).partition(":")[0].partition(" ")[0] for row in rows)
    say(f"{len(rows)} values; their sources: {', '.join(f'{kind} {n}' for kind, n in kinds.most_common())}")
    of: dict[str, list[str]] = {}
    for row in rows:
        place, _, key = str(row["path"]).rpartition(".")
        of.setdefault(place, []).append(f"{key}={as_text(row['text'])}")
    for place, words in of.items():
        say(f"{place}:")
        for line in in_columns(words):
            say(line)


@dataclass(frozen=True)
class PlatformExportOptions:
    """Options of ``retrompi platforms export``."""

    out: Path | None = output_option("the platform, for SimGrid (default: standard output)", "xml")
    hostfile: Path | None = option(
        "Hostfile of mpirun: written beside the platform, a line for each processor.", type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE")


@command.command("export")
@click.argument("platform", shell_complete=complete_platform)
@options(given=PlatformExportOptions, changed=Overrides, output=Output)
def export_platform(platform: str, given: PlatformExportOptions, changed: Overrides, output: Output) -> None:
    """Write PLATFORM as a platform file of SimGrid: its hosts, links and routes.

    smpirun and every other program of SimGrid reads it. What SimGrid's format has no words for (operating systems, cards, frames) is
    not in it; 'retrompi smpi export' has a runtime's costs as well.

    \b
    Examples:
      retrompi platforms export nt-cluster -o nt-cluster.xml
      retrompi platforms export 'nt4-p6-200*8@switch-100' -o cluster.xml --hostfile hosts
      retrompi platforms export nt-cluster --set platform.link.bandwidth=100Mbps -o fast.xml
    """
    from retrompi.convert.platform_xml import host_names, xml
    loaded = _overridden(platform, changed)
    text = xml(loaded)
    if given.hostfile is not None:
        lines = [name for name, h in zip(host_names(loaded), loaded.hosts, strict=True) for _ in range(int(h.cores))]
        given.hostfile.write_text("\n".join(lines) + "\n")
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    if not output.text:
        row = {"platform": loaded.name, "hosts": len(loaded.hosts), "file": None if given.out is None else str(given.out),
               "hostfile": None if given.hostfile is None else str(given.hostfile), "xml": text}
        output.emit([row], (), keys=list(row))
    elif given.out is None:
        say(text.rstrip())
    else:
        note(f"written: {given.out}")


def _overridden(platform: str, changed: Overrides) -> Platform:
    """The platform of that name with ``--set``; UsageError for a value that is not of a platform."""
    from retrompi.spec import registry
    from retrompi.spec.runtime.overrides import parse_sets

    sets = parse_sets(changed.sets)
    for key in sets:
        if not key.startswith("platform."):
            raise UsageError(f"--set {key}: a platform has the parameters platform.host.KEY, platform.link.KEY, platform.HOST.KEY",
                             code="idle-override")
    return registry.platform(platform).with_overrides({k.removeprefix("platform."): v for k, v in sets.items()})


def _show_part(card: Mapping[str, Any], output: Output) -> None:
    """The card of a host or a network of the library."""
    from retrompi.render.cards.dossier import references

    rows = card["quantities"]
    if output.as_json:
        print_json(dict(card))
        return
    if output.as_csv:
        output.emit(rows, CARD, keys=CARD_KEYS)
        return
    say(f"{card['name']}: {card['title']}\n{card['summary']}\n{card['years']}, in {card['path']}\n{card['about']}\n")
    print_table([{**row, "range": range_of(row)} for row in rows], CARD)
    print_rows_cited(references(rows))
    _say_fits(card)


def _say_fits(card: Mapping[str, Any]) -> None:
    for fit in card["fits"]:
        meta = fit.get("meta", {})
        found = ", ".join(f"{k} = {v}" for k, v in fit.get("values", {}).items())
        say(f"\nfit: {found}; with {fit['by']}, {meta.get('date')}, code {meta.get('version')}, seed {meta.get('seed')}")
        for r in fit["rows"]:
            say(f"  {r['id']}  {r['text']}\n      in: {r['where']}")


def _mega(value: float) -> str:
    return f"{value * 1e-6:.4g}" if value else ""


KERNELS = (
    Column("host", "host"),
    Column("kernel", "kernel"),
    Column("length", "length", right=True),
    Column("seconds", "time", format_time, right=True),
    Column("rate", "Mflop/s", _mega, right=True),
    Column("moved", "MB/s", _mega, right=True),
    Column("slowest", "slowest part"),
    Column("title", "what it computes"),
)
JUDGED = (
    Column("id", "row"),
    Column("of", "of"),
    Column("host", "host"),
    Column("kernel", "kernel"),
    Column("length", "length", right=True),
    Column("measured_s", "measured", format_time, right=True),
    Column("computed_s", "computed", format_time, right=True),
    Column("ratio", "ratio", lambda v: f"{v:.2f}", right=True),
    Column("slowest", "slowest part"),
    Column("agrees", "within 25 %", lambda v: "yes" if v else "no"),
)
EXAMPLES = ("copy", "axpy", "dot", "mdot:vectors=15", "maxpy:vectors=15", "spmv:nz=5", "spmv:nz=27,block=3", "gemv:n=60", "ger:n=60",
            "gemm:n=60,k=60", "trsm:order=60", "stencil")
"""What ``platforms kernels`` shows if no kernel is named."""


@dataclass(frozen=True)
class KernelOptions:
    """Options of ``retrompi platforms kernels``."""

    kernel: tuple[str, ...] = option(
        "Kernel as a trace names it, e.g. spmv:nz=5 (repeatable; default: examples).", "--kernel", multiple=True, metavar="KERNEL")
    lengths: str = option("Lengths, separated by commas.", "--lengths", default="1000,1000000", metavar="N,N")
    judge: bool = option("Show measured kernels beside what the hosts' caches and memory give.", "--judge")


@command.command("kernels")
@click.argument("platform", metavar="[NAME|FILE]", required=False, shell_complete=complete_platform)
@options(given=KernelOptions, overrides=Overrides, output=Output)
@click.pass_context
def show_kernels(ctx: click.Context, platform: str | None, given: KernelOptions, overrides: Overrides, output: Output) -> None:
    """Show how fast a platform's hosts compute kernels, and what limits them.

    A kernel is stated by its operations and bytes; a host computes it at the roofline of its processor, caches and memory. Traces name
    kernels in lines `RANK kernel KERNEL LENGTH [TIMES]`. With --judge: kernels that were published of real machines, with exit code 1
    if any is not within 25 %.

    \b
    Examples:
      retrompi platforms kernels ibm-sp1
      retrompi platforms kernels nt-pair --kernel spmv:nz=5 --lengths 1e4,1e6
      retrompi platforms kernels nt-pair --set platform.host.read_mem=x2
      retrompi platforms kernels --judge
    """
    from retrompi.spec.hosts import kinds
    from retrompi.spec.machine import roofline

    if given.judge:
        if platform or given.kernel or overrides.sets:
            raise UsageError("--judge has platforms and kernels of its own", code="unused-option")
        from retrompi.papers.fit import kernel_rates

        found = kernel_rates.judge_kernels()
        output.emit([r.row() for r in found], JUDGED)
        if output.text:
            say("")
            for (of, host), (good, all_) in kernel_rates.totals(found).items():
                say(f"{of}, {host}: {good} of {all_} within 25 %")
        ctx.exit(0 if all(r.agrees for r in found) else 1)
    if not platform:
        raise UsageError("give a platform; 'retrompi platforms list' and 'platforms hosts' list them", code="missing-option")
    loaded = _overridden(platform, overrides)
    try:
        lengths = [float(n) for n in given.lengths.split(",")]
    except ValueError:
        lengths = []
    if not lengths or not all(1 <= n <= 1e12 for n in lengths):
        raise UsageError(f"--lengths {given.lengths}: numbers from 1 to 1e12, separated by commas", code="out-of-range")
    rows = []
    for kind in kinds(loaded.hosts)[0]:
        for name in given.kernel or EXAMPLES:
            one = roofline.kernel(name)
            for n in lengths:
                terms, work = roofline.terms(one, n, kind), one.work(n)
                took = max(terms.values())
                rows.append({"host": kind.name, "kernel": name, "length": n, "seconds": took, "rate": work.operations / took,
                             "moved": (work.read + work.written) / took, "slowest": max(terms, key=terms.__getitem__),
                             "title": one.kind.title})
    output.emit(rows, KERNELS)
