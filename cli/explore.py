"""``retrompi explore``: every order in which the messages of a program can match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import InputError, UsageError
from retrompi.base.units import format_time
from retrompi.cli.bundle import option, options
from retrompi.cli.compare_options import split
from retrompi.cli.options import Fictions, Placed, UndefinedSource, complete_model, output_option, progress, ranks_option, some_time
from retrompi.cli.output import Column, Output, note, note_warnings, print_json, say
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    from retrompi.explore import ExecutionEnd, Explored

KEYS = ("model", "verdict", "classes", "orders", "unreduced_log10", "calls", "detail")
COLUMNS = (
    Column("model", "runtime"),
    Column("verdict", "verdict"),
    Column("classes", "outcomes", right=True),
    Column("orders", "orders", right=True),
    Column("detail", "shortest failure"),
)
_SHOWN = 5


@dataclass(frozen=True)
class ExploreOptions(Fictions, UndefinedSource, Placed):
    """Options of ``retrompi explore``."""

    model: str | None = option(
        "Runtime model: a name (see 'retrompi models list') or the folder of a model of your own.",
        "-m", "--model", metavar="NAME|FOLDER", shell_complete=complete_model)
    models: tuple[str, ...] | None = option(
        "Runtimes: ask these in turn, e.g. wmpi,winmpich,hpvm, or all.", metavar="LIST", callback=split)
    ranks: int | None = ranks_option(" (default: as in the trace)")
    partial: bool = option("Accept ranks whose trace ends before MPI_Finalize.")
    orders: int = option("Orders: stop the search after so many.", type=click.IntRange(1), default=100_000, metavar="N")
    search_time: str = option("Search time: stop the search after it.", metavar="TIME", default="60s")
    out: Path | None = output_option("the shortest counterexample, for 'retrompi replay --matching'")


@click.command()
@click.argument("trace")
@options(given=ExploreOptions, output=Output)
@click.pass_context
def command(ctx: click.Context, trace: str, given: ExploreOptions, output: Output) -> None:
    """Visit every order in which the messages of a program can match.

    TRACE is one execution of a program. Where it receives from any source, probes or tests, other orders of its messages give other
    executions; and how far a sender runs ahead of its receiver depends on the runtime's buffers. Every execution that the program can
    tell apart is visited once: how many complete, which end in a deadlock or an abort, and the shortest of these, which
    'retrompi replay --matching' follows. Exit code 1 means that some order fails.

    \b
    Examples:
      retrompi explore examples/explore/first-come.ti -m lam -p 'linux-p6-200*6@hub-10'
      retrompi explore examples/explore/head-to-head.ti --models all -p nt-cluster
      retrompi explore examples/explore/first-come.ti -m lam -p 'linux-p6-200*6@hub-10' -o hang.matching
    """
    from retrompi import traces
    from retrompi.explore import SearchLimits
    from retrompi.sim.cautions import Caution, mark, merge_cautions
    from retrompi.spec import registry
    from retrompi.spec.question import Question, Replay
    from retrompi.spec.runtime import possible

    names = _names(given)
    read = traces.read(trace, np=given.ranks, undefined_source=given.undefined_source, partial=given.partial)
    limits = SearchLimits(given.orders, some_time("--search-time", given.search_time))
    for name in names:
        registry.model(name)
    found: list[Explored] = []
    fictions: list[tuple[str, list[Caution]]] = []
    with progress("exploring") as report:
        for at, name in enumerate(names):
            platform = _platform(given, name)
            question = Question(name, platform, Replay(read, trace), given.mode, given.sets, idle_overrides=len(names) > 1)
            found.append(_one(question, limits, report, (at, len(names)), alone=len(names) == 1))
            what_if = possible.fiction(name, platform) if given.what_if_hardware else ""
            fictions.append((name, [Caution("never-ran-there", what_if)] if what_if else []))
    warnings = merge_cautions(fictions)
    warned = note_warnings(warnings)
    failing = [(r, e) for r in found for e in r.failing[:1]]
    if given.out is not None:
        _write(given.out, failing, read, trace)
    if output.as_json:
        print_json({"trace": trace, "ranks": read.ranks, "open": found[0].open_ended if found else 0, "runtimes": [r.row() for r in found],
                    "warnings": warned})
    elif output.as_csv or len(found) > 1:
        output.emit([_row(r) for r in found], COLUMNS, keys=list(KEYS), empty="no runtime was asked")
    else:
        _show(found[0], mark(warnings))
    if output.text:
        for r in found:
            if r.limited:
                note(f"{r.model}: the search ended {r.limited}; orders that it has not reached may end otherwise")
        if given.out is not None and failing:
            first = failing[0][0].model
            note(f"{given.out}: 'retrompi replay {trace} -m {first} -p {_platform(given, first)} --matching {given.out}' follows it")
    doubts = [f"{r.model}: {line}" for r in found for line in r.doubts]
    for line in doubts:
        say(f"caution: {line}", err=True)
    if failing or doubts or (found[0].refused and len(found) == 1):
        ctx.exit(1)


def _platform(given: ExploreOptions, model: str) -> str:
    from retrompi.spec import registry

    return given.platform or registry.own_platform(model)


def _names(given: ExploreOptions) -> Sequence[str]:
    from retrompi.spec import registry

    if (given.model is None) == (given.models is None):
        what = "one of -m and --models" if given.model is None else "-m or --models, not both"
        raise UsageError(f"give {what}: -m wmpi, --models wmpi,winmpich or --models all",
                         code="missing-option" if given.model is None else "conflicting-options")
    if given.model is not None:
        return [given.model]
    return registry.model_names() if given.models == ("all",) else given.models or ()


def _one(question: Any, limits: Any, report: Any, at: tuple[int, int], *, alone: bool) -> Explored:
    """One runtime; among several, one that cannot run the program at all is told of in its row."""
    from retrompi.explore import Explored, explore

    def report_orders(orders: int) -> None:
        report(at[0] * limits.orders + min(orders, limits.orders), at[1] * limits.orders, f"{question.model}, {orders} orders")

    try:
        return explore(question, limits, report_orders)
    except (InputError, UsageError) as error:
        if alone:
            raise
        return Explored(question.model, refused=str(error))


def _row(r: Explored) -> dict[str, Any]:
    shortest = r.failing[0] if r.failing else None
    return {
        "model": r.model, "verdict": r.verdict, "classes": r.classes, "orders": r.orders + r.abandoned,
        "unreduced_log10": None if r.unreduced is None else r.unreduced.log10, "calls": None if shortest is None else shortest.calls,
        "detail": r.refused or ("" if shortest is None else shortest.detail),
    }


def _show(r: Explored, marked: str) -> None:
    if r.refused:
        say(f"{r.verdict}: {r.refused}{marked}")
        return
    say(f"{r.verdict}: {r.classes} {'outcomes' if r.classes != 1 else 'outcome'} that the program can tell apart, from {r.open_ended} open "
        f"{'calls' if r.open_ended != 1 else 'call'}{marked}")
    whole = "an unknown number" if r.unreduced is None else r.unreduced.text
    say(f"{r.orders + r.abandoned} orders followed ({r.abandoned} of them in vain) of {whole}, in {format_time(r.seconds)}")
    for end in [e for e in r.ends if not e.failed] + list(r.failing[:_SHOWN]):
        _show_end(end)
    if len(r.failing) > _SHOWN:
        say(f"and {len(r.failing) - _SHOWN} more ways to fail")


def _show_end(end: ExecutionEnd) -> None:
    say(f"\n{end.outcome}: {end.classes} of them" + (f"; the shortest has {end.calls} calls" if end.failed else ""))
    if end.outcome == Outcome.ABORTED:
        say(f"  {end.detail}")
    for s in end.stuck:
        say(f"  rank {s.rank} at {s.file}:{s.line} waits in {s.call} for {s.waits_for}")
    if end.failed:
        for rank, line, source, tag in end.matches:
            say(f"  where rank {rank} at line {line} takes the message of rank {source}, tag {tag}")
        for rank, line, success, requests in end.completions:
            which = f" with request {', '.join(map(str, requests))}" if requests else ""
            say(f"  where rank {rank} at line {line} {'ends' + which if success else 'finds nothing'}")
        if end.replayed:
            say(f"  the engine, made to follow it: {end.replayed}")


def _write(path: Path, failing: Sequence[tuple[Explored, ExecutionEnd]], read: Any, trace: str) -> None:
    from retrompi.traces.outcomes import Outcomes

    if not failing:
        note(f"{path} is not written: no order was found that fails")
        return
    result, end = min(failing, key=lambda f: f[1].calls)
    about = [f"{trace} on {result.model}: {end.outcome}", *([end.detail] if end.detail else [])]
    Outcomes(read.sha256, end.matches, end.completions, end.order, about).write(path)
