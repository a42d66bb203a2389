"""``retrompi predict``: the predictions of numbers that the project does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_quantity, format_span, format_time
from retrompi.cli.bundle import option, options
from retrompi.cli.options import Workers, progress
from retrompi.cli.output import Column, Output, print_json, print_table, say, time_column

if TYPE_CHECKING:
    from retrompi.api.predicting import Predictions

KEYS = ("prediction", "model", "platform", "placement", "what", "size_B", "nominal_s", "low_s", "median_s", "high_s", "parameters_low_s",
        "parameters_high_s", "date", "commit")
COLUMNS = (
    Column("prediction", "prediction"),
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    time_column("nominal_s", "time"),
    time_column("median_s", "median"),
    Column("interval", "5 to 95 %", right=True),
    Column("parameters", "parameters alone", right=True),
)
LISTED = (
    Column("prediction", "prediction"),
    Column("sizes", "sizes", right=True),
    Column("latency", "time of the smallest", right=True),
    Column("latencies", "5 to 95 %", right=True),
    Column("rate", "rate of the largest", right=True),
    Column("rates", "5 to 95 %", right=True),
)
SUMMARY = (
    Column("paper", "published in"),
    Column("runtime", "runtime"),
    Column("predicted", "predictions", right=True),
    Column("curves", "curves compared", right=True),
    Column("median_error", "error", lambda v: _percent(v), right=True),
    Column("inside", "inside", lambda v: "" if v is None else f"{v:.0%}", right=True),
)
NO_PAPER = "(single runs)"
"""What stands for the paper of a prediction of `validate/predictions/plan.toml`."""


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _signed_percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f} %"


SCORED = (
    Column("prediction", "prediction"),
    Column("points", "points", right=True),
    Column("median_error", "error", _percent, right=True),
    Column("raw_error", "raw layer's", _percent, right=True),
    Column("bias", "bias", _signed_percent, right=True),
    Column("worst", "worst", right=True),
    Column("inside", "inside", lambda v: f"{v:.0%}", right=True),
    Column("interval_score", "score", lambda v: "" if v is None else f"{v:.2f}", right=True),
)
GROUPED = (
    Column("name", "runtime or machine"),
    Column("curves", "curves", right=True),
    Column("points", "points", right=True),
    Column("median_error", "error", _percent, right=True),
    Column("raw_error", "raw layer's", _percent, right=True),
    Column("inside", "inside", lambda v: f"{v:.0%}", right=True),
)


@dataclass(frozen=True)
class PredictOptions(Workers):
    """Options of ``retrompi predict``."""

    write: bool = option("Write the files that the package keeps: the predictions, simulated again.", "--write")
    verify: bool = option("Simulate the predictions again and compare them with their files.", "--verify")
    full: bool = option("Print all of it instead of a summary: every prediction, or with --score every curve.", "--full")
    score: bool = option("Show how the predictions compare with what has been published of them since.", "--score")
    folder: Path | None = option(
        "Folder: where the files are (default: validate/predictions).",
        "--folder",
        metavar="FOLDER",
        type=click.Path(file_okay=False, path_type=Path),
    )

    def __post_init__(self) -> None:
        if self.write + self.verify + self.score > 1:
            raise UsageError("--write, --verify and --score are mutually exclusive", code="conflicting-options")
        if self.full and (self.write or self.verify):
            raise UsageError("--full applies to what is shown", code="unused-option")
        if self.folder is not None and not (self.write or self.verify):
            raise UsageError("--folder applies to --write and --verify", code="unused-option")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME|PAPER]...")
@options(given=PredictOptions, output=Output)
@click.pass_context
def command(ctx: click.Context, names: tuple[str, ...], given: PredictOptions, output: Output) -> None:
    """Show the predictions for machines whose published values are not known, or make them again.

    Times are one-way times of a PingPong: with nominal values, and the median and the 5 to 95 % range over draws of its parameters and
    of the model's discrepancy. Date and commit tell when they were made. Prints a summary by runtime; --full has a line for each
    prediction, as has the key of a PAPER for its curves that are kept apart. A NAME shows its sizes.

    With --verify, exit code 1 means that the models or machines of today give another prediction. --score lays them over the published
    curves that are known now, by runtime and by machine, with --full also by curve (JSON: all of these, and single numbers; CSV: by
    curve).

    \b
    Examples:
      retrompi predict
      retrompi predict mpibip-lanai9
      retrompi predict turner-chen-2002
      retrompi predict --score --full
      retrompi predict --csv
    """
    from retrompi.api.predicting import predict
    from retrompi.papers.predict import predictions

    told = predict(*names)
    wanted = list(told.names)
    if given.score:
        _scores(told, bool(names), given.full, output)
        return
    if given.write:
        _write(wanted, given)
        return
    if given.verify:
        with progress("predictions") as report:
            differ = told.differing(given.folder, given.jobs, report)
        say(f"differ: {', '.join(differ)}" if differ else f"{len(wanted)} predictions are as written")
        ctx.exit(1 if differ else 0)
    rows = told.rows
    if not output.text:
        output.emit(rows, keys=KEYS)
        return
    if not names and not given.full:
        _print_summary(told)
    elif names and set(names) == set(wanted):
        print_table([_value(r) for r in rows], COLUMNS, empty="no prediction has been made yet")
    else:
        by_name = {name: [r for r in rows if r["prediction"] == name] for name in wanted}
        print_table([_summary_row(mine) for mine in by_name.values() if mine], LISTED, empty="no prediction has been made yet")
    made = sorted({(r["date"].partition(" ")[0], r["commit"]) for r in rows})
    if names or given.full:
        for day, commit in made:
            say(f"made on {day} at commit {commit}")
    elif made:
        say(f"\n{len(wanted)} predictions, made from {made[0][0]} to {made[-1][0]}; a line for each: "
            "--full, those of a paper: retrompi predict PAPER, one of them: retrompi predict NAME, what came of them: --score")
    say(f"nine of ten held-out times and rates of the papers' machines are within a factor of {predictions.held_out_error():.2f} "
        "(validate/predictions/README.md)")


def _print_summary(told: Predictions) -> None:
    """How many predictions there are of each paper and runtime, and how those are met that could be compared since."""
    from retrompi.papers.predict import predictions, scores

    files = predictions.shipped_predictions()
    of: dict[tuple[str, str], list[str]] = {}
    for name in told.names:
        if name in files:
            of.setdefault((files[name]["paper"], files[name]["model"].partition(":")[0]), []).append(name)
    lines, compared = [], told.scored
    for (paper, runtime), names in of.items():
        mine = [s for s in compared if s.prediction in names]
        scored = asdict(scores.sum_scores(runtime, mine)) if mine else {"curves": "", "median_error": None, "inside": None}
        lines.append({**scored, "paper": paper or NO_PAPER, "runtime": runtime, "predicted": len(names)})
    print_table(lines, SUMMARY, empty="no prediction has been made yet")


def _write(wanted: Sequence[str], given: PredictOptions) -> None:
    """Simulates the predictions again and writes their files."""
    from retrompi.api.predicting import made_again
    from retrompi.papers.predict import predictions

    with progress("predictions") as report:
        for name, text in made_again(wanted, given.jobs, report):
            file = predictions.file_of(name, given.folder)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"cannot write {file}: {error.strerror}", code="unwritable-file") from None
    click.echo(f"written: {len(wanted)} predictions to {given.folder or predictions.folder()}", err=True)


def _worst(error: float | None, size: int | None) -> str:
    return "closed" if error is None or size is None else f"{100 * error:+.0f} % at {format_bytes(size)}"


def _scores(told: Predictions, named: bool, full: bool, output: Output) -> None:
    """Shows the scores of the predictions; ``named``: of some of them; ``full``: of each. Raises UsageError if none of them has one."""
    from retrompi.papers.predict import scores

    flat, found, compared = told.scores.rows, told.scored, told.numbers
    by = {name: [asdict(g) for g in scores.groups(found, name)] for name in ("runtime", "machine")}
    if output.as_json:
        print_json({"curves": flat, **by, "numbers": [n.row() for n in compared]})
        return
    if not output.text:
        output.emit(flat, keys=scores.KEYS)
        return
    if named or full:
        rows = [{**s.row(), "worst": _worst(s.worst, s.worst_size)} for s in found]
        print_table(rows, SCORED, empty="no curve of these has been published since")
    if not named:
        if full:
            click.echo()
        print_table(by["runtime"] + by["machine"], GROUPED)
    judged = [n for n in compared if n.inside is not None]
    outside = [n for n in judged if not n.inside]
    names = "; ".join(f"{n.id} {n.prediction.rpartition('/')[2]} {n.published:g} {n.unit} ({n.low:.4g} .. {n.high:.4g})" for n in outside)
    say(f"single numbers: {len(judged) - len(outside)} of {len(judged)} inside; outside: {names or 'none'}")
    if not named and not full:
        say("by curve: --full")
    if any(not s.opened for s in found):
        say("closed: the published points are kept apart; these scores came with the opened curves (scores.csv) and are not computed here")


def _value(row: Mapping[str, Any]) -> dict[str, Any]:
    parameters = format_span(row["parameters_low_s"], row["parameters_high_s"], "s")
    return {**row, "interval": format_span(row["low_s"], row["high_s"], "s"), "parameters": parameters}


def _summary_row(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One line for a prediction."""
    first, last = rows[0], rows[-1]
    size = last["size_B"]
    return {
        "prediction": first["prediction"], "sizes": f"{format_bytes(first['size_B'])} .. {format_bytes(size)}",
        "latency": format_time(first["nominal_s"]), "latencies": format_span(first["low_s"], first["high_s"], "s"),
        "rate": format_quantity(size / last["nominal_s"], "B/s"), "rates": format_span(size / last["high_s"], size / last["low_s"], "B/s"),
    }
