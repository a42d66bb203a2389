"""``retrompi compare``: one program run natively, on SMPI and on a runtime model, or on several runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time
from retrompi.cli.bundle import options
from retrompi.cli.compare_options import CompareOptions
from retrompi.cli.compare_runtimes import run_runtimes
from retrompi.cli.compare_suite import run_suite
from retrompi.cli.options import RunOutput, progress
from retrompi.cli.output import Column, note, note_warnings, print_csv, print_json, print_table, say, write_drawn

if TYPE_CHECKING:
    from retrompi.measure.compare import Comparison, ComparisonVerdict
    from retrompi.store import Store

NAMES = {"native": "native", "smpi": "SMPI", "model": "model"}
MOST_CALLS = 12
_OF_BACKENDS = {"--model": "model", "--backends": "backends", "--mpi": "mpi", "--repetitions": "repetitions", "--trace-from": "trace_from",
                "--runs": "runs", "--suite": "suite", "--only": "only", "--within": "within"}
_OF_RUNTIMES = {"--platforms": "platforms", "--networks": "networks", "--metric": "metrics", "--jobs": "jobs",
                 "--uncertainty": "uncertainty", "--full": "full", "--event-limit": "event_limit", "--wall-limit": "wall_limit",
                 "--memory-limit": "memory_limit"}
_TOLD = ("mpi", "model", "platform", "mode", "fidelity", "outcome", "detail", "machine", "noise", "notes", "trace", "run_id", "found")


@click.command(context_settings={"allow_interspersed_args": True})
@click.argument("program", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@options(given=CompareOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, program: str | None, arguments: tuple[str, ...], given: CompareOptions, output: RunOutput) -> None:
    """Compare native, SMPI and model runs of a program, or several runtimes on one program.

    PROGRAM is a source file, a binary or an mpi4py script; its arguments follow after --. Sections are what it encloses in
    MPI_Pcontrol. The native runs are repeated and give the noise band. Differences are relative to the native time, or to SMPI's if
    there is none. Exit code 1 means that a backend did not complete or --within was not met.

    With --models, PROGRAM is a scenario, a trace or a generator (with arguments KEY=VALUE), and the table has a row for each
    runtime on each platform, the fastest first; then why the first is faster than the next, and which pairs cannot run it and why.
    Of many pairs it prints a summary; --full has every one. A pair is stopped (outcome limit) after 200 million events and 100 an
    action of the program, unless another bound is given. Exit code 1 means that a runtime did not complete it.

    \b
    Examples:
      retrompi compare examples/pingpong.c -m mpich -p this-machine -o page.html
      retrompi compare ring --models hpvm,wmpi -p nt-cluster -n 4 size=1KiB reps=3
      retrompi compare app.tar.zst --models all --platforms all,own -o matrix.html
      retrompi compare app.tar.zst --models lam,mpich --platforms linux-p6-200,sun-ultra1 --networks switch-100,gigabit
      retrompi compare --runs 12,13,14
    """
    from retrompi.measure import compare

    if given.models is not None:
        refused = [name for name, value in _OF_BACKENDS.items() if ctx.get_parameter_source(value) == ParameterSource.COMMANDLINE]
        if refused:
            raise UsageError(f"{refused[0]} applies to backends, --models to runtimes; give only one of them", code="conflicting-options")
        np = given.ranks if ctx.get_parameter_source("ranks") == ParameterSource.COMMANDLINE else None
        run_runtimes(ctx, program, arguments, np, given, output)
        return
    if unused := [name for name, value in _OF_RUNTIMES.items() if getattr(given, value)]:
        raise UsageError(f"{', '.join(unused)} applies only with --models", code="unused-option")
    if sum((program is not None, bool(given.runs), given.suite)) != 1:
        raise UsageError("give one of: a PROGRAM, --runs ID,ID, --suite", code="missing-option")
    if given.only and not given.suite:
        raise UsageError("--only applies only with --suite", code="unused-option")
    bounds = compare.parse_within(given.within) if given.within is not None else {}
    names = ("model", "platform", "mode", "mpi", "repetitions", "trace_from", "fidelity", "seed")
    how: dict[str, Any] = {**{name: getattr(given, name) for name in names}, "set": given.sets, "fresh": output.fresh}
    if given.backends is not None:
        how["backends"] = given.backends
    if given.suite:
        run_suite(ctx, given, bounds, how, output)
        return
    if given.runs:
        kept = output.open(write=False)
        found = compare.from_store(kept, given.runs)
    else:
        compare.choose_backends(given.backends or compare.BACKENDS, given.model)
        kept = output.open()
        with progress("comparing") as report:
            found = compare.compare(kept, str(program), arguments, given.ranks, report=report, **how)
    verdict = compare.judge(found, bounds) if bounds else None
    _show(found, verdict, given, output, kept)
    ids = ",".join(str(e.run_id) for e in found.executions.values())
    note(f"runs {ids}; the page again: retrompi compare --runs {ids} -o PAGE.html")
    if not found.completed or (verdict is not None and not verdict.passed):
        ctx.exit(1)


def _show(found: Comparison, verdict: ComparisonVerdict | None, given: CompareOptions, output: RunOutput, kept: Store) -> None:
    """Prints a comparison and writes the file that is asked for."""
    from retrompi.measure import compare

    warned = note_warnings(compare.cautions(found))
    rows = [r.row(found.pairs) for r in (*found.sections, found.whole)]
    if output.as_json:
        print_json(as_object(found, verdict, warned))
    elif output.as_csv:
        print_csv(rows, list(rows[0]))
    else:
        print_comparison(found, verdict)
    if given.out is None:
        return
    from retrompi.render.pages import compare_page

    made = [given.out]
    if given.out.suffix.lower() == ".html":
        compare_page.write(given.out, found, verdict, compare.hashes_of(kept, found))
    else:
        made = write_drawn(given.out, lambda: compare_page.figures(found), rows, as_object(found, verdict, warned))
    click.echo(f"written: {', '.join(map(str, made))}", err=not output.text)


def as_object(c: Comparison, verdict: ComparisonVerdict | None, warned: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A comparison as JSON values."""
    told = []
    for backend, e in c.executions.items():
        row = e.row()
        told.append({"backend": backend, **{k: row[k] for k in _TOLD}, "repetitions": len(e.samples_s)})
    return {
        "program": c.program, "arguments": list(c.arguments), "ranks": c.ranks, "executions": told, "whole": c.whole.row(c.pairs),
        "sections": [r.row(c.pairs) for r in c.sections], "calls": [r.row(c.pairs) for r in c.calls],
        "distributions": c.distributions(), "origin": [s.row() for s in c.splits], "noise": c.noise(), "warnings": list(warned),
        "verdict": None if verdict is None else {"passed": verdict.passed, "line": verdict.line},
    }


def _percent(value: Any) -> str:
    return "" if value is None else f"{100 * value:+.2f} %"


def _seconds(value: Any) -> str:
    return "" if value is None else format_time(value)


def _pair_columns(c: Comparison) -> list[Column]:
    return [Column(f"{b}_to_{r}", f"{NAMES[b]} / {NAMES[r]}", _percent, right=True) for b, r in c.pairs]


def print_comparison(c: Comparison, verdict: ComparisonVerdict | None) -> None:
    """Prints the sections, the distribution, the causes of the difference, and the calls with most time."""
    rows = []
    for r in (*c.sections, c.whole):
        row = r.row(c.pairs)
        row["section"] = r.label if r.size_B is None else format_bytes(r.size_B)
        held = r.bands.get("native")
        ends = [_percent(v / held.median - 1) for v in (held.low, held.high)] if held and held.median > 0 else []
        row["band"] = " … ".join(ends)
        rows.append(row)
    columns = [Column("section", "section", right=True)]
    columns += [Column(f"{b}_s", NAMES[b], _seconds, right=True) for b in c.executions]
    columns += [Column("band", "noise", right=True)] if any(r["band"] for r in rows) else []
    columns += _pair_columns(c)
    columns += [Column("use", "use")] if any(r["use"] for r in rows) else []
    print_table(rows, columns)
    say()
    shown = [{**d, "pair": f"{NAMES[d['backend']]} / {NAMES[d['reference']]}"} for d in c.distributions()]
    size = Column("median", "median |error|", lambda v: f"{100 * v:.2f} %", right=True)
    spread = [size, Column("p95", "95th", size.show, right=True), Column("worst", "worst", _percent, right=True),
              Column("where", "at", right=True), Column("bias", "bias", _percent, right=True),
              Column("inside", "in the noise", lambda v: "" if v is None else f"{v:.0%}", right=True)]
    print_table(shown, [Column("pair", "pair"), Column("use", "rows"), Column("n", "n", right=True), *spread])
    for s in c.splits:
        if s.reference_total:
            top = ", ".join(f"{name} {_percent(d / s.reference_total)}" for name, d in s.calls[:3])
            whole, computed, inside = (_percent(v / s.reference_total) for v in (s.total, s.computation, s.communication))
            pair = f"{NAMES[s.backend]} / {NAMES[s.reference]}"
            say(f"{pair}: {whole} of the time of all ranks: computation {computed}, in MPI {inside} ({top})")
    if c.calls:
        say()
        _print_calls(c)
    if verdict is not None:
        say(verdict.line)


def _print_calls(c: Comparison) -> None:
    rows = [{**r.row(c.pairs), "size": format_bytes(r.size_B)} for r in c.calls[:MOST_CALLS]]
    columns = [Column("call", "call"), Column("size", "size", right=True)]
    for b in c.executions:
        columns += [Column(f"{b}_count", f"{NAMES[b]}: calls", right=True), Column(f"{b}_s", "time", _seconds, right=True)]
    print_table(rows, [*columns, *_pair_columns(c)])
    if len(c.calls) > MOST_CALLS:
        say(f"… and {len(c.calls) - MOST_CALLS} more rows of calls (--json has all)")
