"""``retrompi study export``, ``pack`` and ``unpack``: a study's numbers, and all of a study, as files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.options import csv_option, debug_option, json_option, open_for, progress, store_option
from retrompi.cli.output import Column, emit, note, one_format

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.studies.unpack import Package

__all__ = ["export", "opened", "pack", "run_zip", "unpack", "written"]

DIFFERENCES = (Column("position", "point"), Column("what", "what"), Column("packed", "in the zip"), Column("here", "here"))


WRITTEN = (Column("file", "file"), Column("bytes", "bytes", right=True))


def written(files: Iterable[Path], as_json: bool, as_csv: bool) -> None:
    """Say which files were written: as data where that was asked for, else to a person at a terminal."""
    found = list(files)
    if as_json or as_csv:
        emit([{"file": str(f), "bytes": f.stat().st_size} for f in found], WRITTEN, as_json=as_json, as_csv=as_csv)
    for path in found:
        note(f"written to {path}")


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", metavar="FILE", help="Where to: .csv, .json or .parquet.")
@click.option("--format", "kind", type=click.Choice(["csv", "json", "parquet"]), help="Default: what FILE ends in.")
@click.option("--points", is_flag=True, help="A row for each point of a curve, not one for each run.")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def export(
    ctx: click.Context, study: str, output: str | None, kind: str | None, points: bool, as_json: bool, as_csv: bool, store: str | None
) -> None:
    """Write a study's numbers as CSV, JSON or Parquet, units in the column names.

    STUDY is a number, a name or the beginning of a hash. JSON and Parquet carry the definition and the versions; beside a CSV they
    stand in FILE.meta.json. --csv and --json print what would be in the file.
    """
    from retrompi.studies import export as out
    from retrompi.studies import stored

    one_format(as_json, as_csv)
    if (output is None) != (as_json or as_csv):
        raise UsageError("say where to: -o FILE, or --csv or --json to print", code="missing-option")
    if output is not None and kind is None and Path(output).suffix.removeprefix(".").lower() not in out.FORMATS:
        raise UsageError(f"-o {output}: what it ends in is no format; say --format csv, json or parquet", code="unknown-format")
    found = stored.read(open_for(ctx, store, write=False), study)
    if output is None:
        sys.stdout.write(out.text(found, "json" if as_json else "csv", points))
        return
    written(out.write(found, Path(output), kind, points), False, False)


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", required=True, metavar="FILE.zip", help="The zip to write.")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def pack(ctx: click.Context, study: str, output: str, as_json: bool, as_csv: bool, store: str | None) -> None:
    """Put a study into one zip, to be run again elsewhere.

    In it are the definition, the traces, models and platforms that are not retrompi's own, and the numbers of this store, so that
    'retrompi study run FILE.zip --check' there can compare. STUDY is a number, a name or the beginning of a hash.
    """
    from retrompi.studies import pack as packing
    from retrompi.studies import stored

    one_format(as_json, as_csv)
    if not output.lower().endswith(".zip"):
        raise UsageError(f"-o {output}: a packed study ends in .zip", code="unknown-format")
    for line in packing.pack(stored.read(open_for(ctx, store, write=False), study), Path(output)):
        click.echo(f"note: {line}", err=True)
    written([Path(output)], as_json, as_csv)


UNPACKED = (Column("name", "name"), Column("folder", "folder"), Column("study", "study"), Column("models", "models"))


@click.command()
@click.argument("zip_file", metavar="FILE.zip", type=click.Path(dir_okay=False))
@click.argument("folder", metavar="[DIR]", required=False)
@json_option
@csv_option
@debug_option
def unpack(zip_file: str, folder: str | None, as_json: bool, as_csv: bool) -> None:
    """Unpack a packed study, without running anything of it.

    DIR is a new or empty folder (default: one in your data folder). Models in it are Python: look at them before you run the study.
    """
    from retrompi.studies.unpack import unpack as take_out

    one_format(as_json, as_csv)
    package = take_out(Path(zip_file), None if folder is None else Path(folder))
    for line in _remarks(package):
        click.echo(line, err=True)
    if as_json or as_csv:
        row = {"name": package.name, "folder": str(package.folder), "study": str(package.study), "models": list(package.models)}
        emit([row], UNPACKED, as_json=as_json, as_csv=as_csv)
        return
    click.echo(f"unpacked to {package.folder}")
    click.echo(f"retrompi study run {package.study}")


def _remarks(package: Package) -> list[str]:
    from retrompi.store import code_version

    out = []
    if package.models:
        out.append(f"it has Python of its own: {', '.join(str(package.folder / 'models' / m) for m in package.models)}; "
                   "running the study runs it")  # fmt: skip
    packed = str(package.manifest["code_version"])
    if packed != code_version():
        out.append(f"it was packed by retrompi {packed[:60]}; this is {code_version()}, so numbers may differ")
    return out


def opened(path: Path, trust: bool) -> Package:
    """The study of a zip, unpacked into the user's data folder; UsageError when it has Python of its own and nobody trusts it."""
    from retrompi.studies.unpack import unpack as take_out

    package = take_out(path)
    if package.models and not trust:
        folder = package.folder / "models"
        raise UsageError(f"{path} has Python of its own, the model{'s' if len(package.models) > 1 else ''} {', '.join(package.models)} "
                         f"in {folder}: look at it, then say --trust to run it", code="untrusted-code")  # fmt: skip
    return package


def run_zip(ctx: click.Context, path: Path, trust: bool, check: bool, **running: Any) -> None:
    """Run a packed study; with ``check`` print where it parts from the numbers in the zip, and end with exit code 1 when it does."""
    from retrompi.cli.sweep import executor_of, go
    from retrompi.spec import registry

    package = opened(path, trust)
    study = registry.study(str(package.study))
    if not check or running["dry_run"]:
        go(ctx, study, **running)
        return
    from retrompi.studies.run import run_study

    one_format(running["as_json"], running["as_csv"])
    store = open_for(ctx, running["store"])
    workers = executor_of(running["executor"], running["jobs"], running["scheduler"])
    with progress(study.name) as report:
        told = run_study(store, study, executor=workers, fresh=running["fresh"], limit=running["limit"], report=report)
    _compared(ctx, package, store, told.study_id, running["as_json"], running["as_csv"])


def _compared(ctx: click.Context, package: Package, store: Store, study_id: int, as_json: bool, as_csv: bool) -> None:
    from retrompi.studies import stored
    from retrompi.studies.pack import reference_rows
    from retrompi.studies.unpack import compare

    found = compare(package.rows, reference_rows(stored.read(store, study_id)))
    rows: list[dict[str, Any]] = [{"position": d.position, "what": d.what, "packed": d.packed, "here": d.here} for d in found]
    if not found and not (as_json or as_csv):
        click.echo(f"all {len(package.rows)} points are what they were")
        return
    emit(rows, DIFFERENCES, as_json=as_json, as_csv=as_csv, empty="no differences")
    if found:
        ctx.exit(1)
