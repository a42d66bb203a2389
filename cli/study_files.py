"""``retrompi study export``, ``pack`` and ``unpack``: a study's results, and complete studies, as files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base import untrusted
from retrompi.base.errors import UsageError
from retrompi.cli.bundle import Option, option, options
from retrompi.cli.options import RunOutput, StoreOutput, ends_in, progress
from retrompi.cli.output import Column, Output, note
from retrompi.cli.sweep import Running

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.studies.archive.unpack import Package

__all__ = ["Packed", "export", "pack", "report_files", "run_zip", "unpack", "unpack_trusted"]

@dataclass(frozen=True)
class Packed:
    """Options of ``retrompi study run`` for a packed study."""

    trust: bool = option("Run the Python code in it: in a zip, or a study unpacked from one, i.e. models written by whoever packed it.")
    check: bool = option("For a zip: compare with the results in it; exit code 1 if they differ.")


DIFFERENCES = (Column("position", "point"), Column("what", "what"), Column("packed", "in the zip"), Column("here", "here"))


WRITTEN = (Column("file", "file"), Column("bytes", "bytes", right=True))


def report_files(files: Iterable[Path], output: Output) -> None:
    """Report the files written: as data with ``--json`` or ``--csv``, else as a remark on a terminal."""
    found = list(files)
    if not output.text:
        output.emit([{"file": str(f), "bytes": f.stat().st_size} for f in found], WRITTEN)
    for path in found:
        note(f"written to {path}")


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", "file", cls=Option, aliases=("--out",), metavar="FILE", help="Where to write: .csv, .json or .parquet.")
@click.option("--format", "kind", type=click.Choice(["csv", "json", "parquet"]), help="File format (default: by the ending of FILE).")
@click.option("--points", is_flag=True, help="Write a row for each point of a curve instead of one for each run.")
@options(output=StoreOutput)
def export(study: str, file: str | None, kind: str | None, points: bool, output: StoreOutput) -> None:
    """Write a study's results as CSV, JSON or Parquet, with units in the column names.

    STUDY is a number, a name or the beginning of a hash. JSON and Parquet include the definition and the versions; for CSV these go
    to FILE.meta.json. --csv and --json print what would be written.

    \b
    Examples:
      retrompi study export proxy-cost -o results.csv
      retrompi study export proxy-cost --points --csv
    """
    from retrompi.studies.archive import export as out
    from retrompi.studies.read import stored_study

    if (file is None) == output.text:
        raise UsageError("give -o FILE, or --csv or --json to print", code="missing-option")
    if file is not None and kind is None and Path(file).suffix.removeprefix(".").lower() not in out.FORMATS:
        raise UsageError(f"-o {file}: the ending names no known format; say --format csv, json or parquet", code="unknown-format")
    found = stored_study.read(output.open(write=False), study, together=True)
    if file is None:
        out.print_to(sys.stdout, found, "json" if output.as_json else "csv", points)
        return
    report_files(out.write(found, Path(file), kind, points), output)


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", "file", cls=Option, aliases=("--out",), required=True, metavar="FILE",
              callback=ends_in("zip"), help="Where to write: a .zip file.")
@options(output=StoreOutput)
def pack(study: str, file: str, output: StoreOutput) -> None:
    """Pack a study into one zip, so that it can be run elsewhere.

    The zip holds the definition, the traces, the models and platforms that are not part of retrompi, and the results in this store,
    so that 'retrompi study run FILE.zip --check' can compare. STUDY is a number, a name or the beginning of a hash.

    \b
    Examples:
      retrompi study pack proxy-cost -o proxy-cost.zip
    """
    from retrompi.studies.archive import pack as packing
    from retrompi.studies.read import stored_study

    for line in packing.pack(stored_study.read(output.open(write=False), study, together=True), Path(file)):
        click.echo(f"note: {line}", err=True)
    report_files([Path(file)], output)


UNPACKED = (Column("name", "name"), Column("folder", "folder"), Column("study", "study"), Column("models", "models"))


@click.command()
@click.argument("zip_file", metavar="FILE.zip", type=click.Path(dir_okay=False))
@click.argument("folder", metavar="[DIR]", required=False)
@options(output=Output)
def unpack(zip_file: str, folder: str | None, output: Output) -> None:
    """Unpack a packed study without running anything.

    DIR is a new or empty folder (default: one in your data folder). Models in it are Python code, and a file UNTRUSTED beside them keeps
    retrompi from running it: read it, then run the study with --trust, which removes that file.

    \b
    Examples:
      retrompi study unpack proxy-cost.zip
      retrompi study unpack proxy-cost.zip work
    """
    from retrompi.studies.archive.unpack import unpack as take_out

    package = take_out(Path(zip_file), None if folder is None else Path(folder))
    for line in _remarks(package):
        click.echo(line, err=True)
    if not output.text:
        row = {"name": package.name, "folder": str(package.folder), "study": str(package.study), "models": list(package.models)}
        output.emit([row], UNPACKED)
        return
    click.echo(f"unpacked to {package.folder}")
    click.echo(f"retrompi study run {package.study}")


def _remarks(package: Package) -> list[str]:
    from retrompi.store import code_version

    out = []
    if package.code:
        out.append(f"it contains Python code: {_files_text(package)}; it is not run unless you say --trust")
    packed = str(package.manifest["code_version"])
    if packed != code_version():
        out.append(f"it was packed by retrompi {packed[:60]}; this is {code_version()}, so numbers may differ")
    return out


def _files_text(package: Package, most: int = 8) -> str:
    """The Python files of a package and what each would be run for."""
    shown = [f"{file} (for {what})" for file, what in list(package.code.items())[:most]]
    more = len(package.code) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


def unpack_trusted(path: Path, trust: bool) -> Package:
    """The study of a zip, unpacked into the user's data folder; UsageError if its models are Python code and not trusted."""
    from retrompi.studies.archive.unpack import unpack as take_out

    package = take_out(path)
    if trust:
        trust_folder(package.folder)
    elif package.models:
        raise UsageError(f"{path} contains Python code that this study would run: {_files_text(package)}; read it in {package.folder}, "
                         "then run the study with --trust", code="untrusted-code")
    return package


def trust_folder(folder: Path) -> None:
    """Takes a folder, and what is in it, for the user's own; UsageError if it did not come out of a packed study."""
    if untrusted.root_of(folder) is None:
        raise UsageError(f"--trust applies only to a zip, or to a study unpacked from one, not to '{folder}'", code="unused-option")
    try:
        untrusted.trust(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be trusted: {error.strerror}", code="unwritable-file") from None


def run_zip(ctx: click.Context, path: Path, packed: Packed, running: Running, output: RunOutput) -> None:
    """Run a packed study; with ``--check`` print how it differs from the numbers in the zip, and end with exit code 1 when it does."""
    from retrompi.cli.sweep import go
    from retrompi.studies.execute import design

    package = unpack_trusted(path, packed.trust)
    study = design.study(str(package.study))
    if not packed.check or running.dry_run:
        go(ctx, study, running, output)
        return
    from retrompi.studies.execute.run import run_study

    store = output.open()
    with progress(study.name) as report:
        told = run_study(store, study, executor=running.make(), fresh=output.fresh, limit=running.max_points, report=report)
    _compare_rows(ctx, package, store, told.study_id, output)


def _compare_rows(ctx: click.Context, package: Package, store: Store, study_id: int, output: Output) -> None:
    from retrompi.studies.archive.pack import reference_rows
    from retrompi.studies.archive.unpack import compare
    from retrompi.studies.read import stored_study

    found = compare(package.rows, reference_rows(stored_study.read(store, study_id, together=True)))
    rows: list[dict[str, Any]] = [{"position": d.position, "what": d.what, "packed": d.packed, "here": d.here} for d in found]
    if not found and output.text:
        click.echo(f"all {len(package.rows)} points are unchanged")
        return
    output.emit(rows, DIFFERENCES, empty="no differences")
    if found:
        ctx.exit(1)
