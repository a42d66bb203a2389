"""``retrompi runs tag``, ``export`` and ``delete``: stored runs put in order."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import Option, options
from retrompi.cli.options import StoreOutput, ends_in
from retrompi.cli.output import json_text, print_csv, say, write_drawn

if TYPE_CHECKING:
    from retrompi.store import Store

__all__ = ["delete", "export", "flat", "ids_of", "overrides_text", "tag"]

PARTS = ("run", "points", "ranks", "anatomy")
MOST = 1_000_000
runs_argument = click.argument("runs", metavar="ID[,ID|..ID]|TAG")


def overrides_text(row: Mapping[str, Any]) -> str:
    """The overrides of a run in one text."""
    return " ".join(f"{k}={v}" for k, v in row["overrides"].items())


def flat(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run's row without nesting: ``question.<name>`` for what was asked beside the columns, ``parameter.<name>`` for parameters,
    ``fact.<name>`` for facts, lists and tables of them as JSON."""
    import json

    from retrompi.store.questions import beside_columns

    out = {k: v for k, v in run.items() if k not in ("parameters", "overrides", "facts", "question")}
    out["overrides"] = overrides_text(run)
    parts = {"question": beside_columns(run), "parameter": run["parameters"], "fact": run["facts"]}
    nested = {f"{prefix}.{k}": v for prefix, of in parts.items() for k, v in of.items()}
    return out | {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in nested.items()}


def ids_of(store: Store, text: str) -> list[int]:
    """``12``, ``12,14``, ``12..20`` or a tag: the runs that are meant, all of them stored."""
    from retrompi.store.tags import check_tag

    if not re.match(r"\s*\d", text):
        return store.runs_tagged(check_tag(text))
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})\s*(?:\.\.\s*(\d{1,18})\s*)?", part)
        if match is None:
            raise UsageError(f"'{text}' names no runs; examples: 12, 12,14, 12..20, or a tag", code="bad-syntax")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low or high - low > MOST:
            raise UsageError(f"'{part.strip()}' is no range of runs: the smaller number first, at most {MOST} of them", code="bad-range")
        found += range(low, high + 1)
    if ".." in text:  # a range means those that are there
        known = {row["id"] for row in store.runs()}
        found = [i for i in found if i in known]
        if not found:
            raise UsageError(f"no run {text} in {store.label}", code="unknown-run")
    return store.check_runs(found)


@click.command("tag")
@runs_argument
@click.argument("tag", metavar="TAG")
@click.option("--remove", is_flag=True, help="Take the tag away instead.")
@options(output=StoreOutput)
def tag(runs: str, tag: str, remove: bool, output: StoreOutput) -> None:
    """Give runs a tag, by which list, export and delete find them.

    \b
    Examples:
      retrompi runs tag 12,14..16 slow-wire
      retrompi runs tag 12 slow-wire --remove
    """
    store = output.open()
    ids = ids_of(store, runs)
    changed = store.tag_runs(ids, tag, remove=remove)
    if not output.text:
        output.emit([{"tag": tag, "runs": ids, "changed": changed}], (), keys=("tag", "runs", "changed"))
    else:
        say(f"{changed} of {len(ids)} runs {'no longer have' if remove else 'now have'} the tag {tag}")


@click.command("export")
@runs_argument
@click.option("-o", "--output", "file", cls=Option, aliases=("--out",), type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              callback=ends_in("csv", "json"), help="Where to write: .csv or .json.")
@click.option("--part", type=click.Choice(PARTS), help="Part to print (default: the run; in JSON, all parts).")
@options(output=StoreOutput)
def export(runs: str, file: Path | None, part: str | None, output: StoreOutput) -> None:
    """Write stored runs as CSV or JSON: what went in, what came out, and the points, ranks and stages.

    \b
    Examples:
      retrompi runs export 12..20 -o runs.csv
      retrompi runs export slow-wire --part points --csv
    """
    if (file is None) == output.text:
        raise UsageError("give -o FILE, or --csv or --json to print", code="missing-option")
    store = output.open(write=False)
    ids = ids_of(store, runs)
    as_json = output.as_json or (file is not None and file.suffix.lower() == ".json")
    rows = [] if as_json and part is None else _rows(store, ids, part or "run")
    value: Any = [_whole(store, i) for i in ids] if as_json and part is None else rows
    keys = list(dict.fromkeys(k for row in rows for k in row))
    rows = [{k: row.get(k) for k in keys} for row in rows]
    if file is not None:
        for path in write_drawn(file, dict, rows, value):
            click.echo(f"written: {path}", err=True)
    elif as_json:
        sys.stdout.write(json_text(value) + "\n")
    else:
        print_csv(rows, keys)


def _whole(store: Store, run_id: int) -> dict[str, Any]:
    return {**store.run(run_id), "tags": store.tags().get(run_id, []), "points": store.points(run_id), "per_rank": store.ranks(run_id),
            "anatomy": store.anatomy(run_id)}


def _rows(store: Store, ids: Sequence[int], part: str) -> list[dict[str, Any]]:
    if part == "run":
        tags = store.tags()
        return [{**flat(store.run(i)), "tags": " ".join(tags.get(i, []))} for i in ids]
    read = {"points": store.points, "ranks": store.ranks, "anatomy": store.anatomy}[part]
    return [{"run_id": i, **row} for i in ids for row in read(i)]


@click.command("delete")
@runs_argument
@options(output=StoreOutput)
def delete(runs: str, output: StoreOutput) -> None:
    """Delete runs from the store, with their points, ranks, stages and tags.

    Runs of a study are refused: 'retrompi study delete' comes first. What was deleted is simulated again when it is asked for.

    \b
    Examples:
      retrompi runs delete 12
      retrompi runs delete slow-wire
    """
    store = output.open()
    ids = ids_of(store, runs)
    count = store.delete_runs(ids)
    if not output.text:
        output.emit([{"runs": ids, "deleted": count}], (), keys=("runs", "deleted"))
    else:
        say(f"{count} run{'' if count == 1 else 's'} deleted")
