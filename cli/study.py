"""``retrompi study``: built-in studies and those in the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from retrompi.base.errors import UsageError
from retrompi.cli import study_files, study_merge, study_show
from retrompi.cli.bundle import debug_option, options
from retrompi.cli.options import RunOutput, StoreOutput
from retrompi.cli.output import Column, say
from retrompi.cli.study_files import Packed
from retrompi.cli.sweep import Running, go

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.execute.design import Study

LIST = (
    Column("id", "id", right=True),
    Column("name", "name"),
    Column("points", "points", right=True),
    Column("done", "done", right=True),
    Column("errors", "errors", right=True),
    Column("created", "created"),
    Column("title", "title"),
)
KEYS = ("id", "name", "hash", "points", "done", "errors", "created", "code_version", "title", "question", "axes")


@click.group()
@debug_option
def command() -> None:
    """Run, list, show, export, merge and delete studies.

    \b
    Examples:
      retrompi study list
      retrompi study run proxy-cost
      retrompi study show proxy-cost
    """


@command.command("run")
@click.argument("study", metavar="STUDY")
@options(packed=Packed, running=Running, output=RunOutput)
@click.pass_context
def run_study(ctx: click.Context, study: str, packed: Packed, running: Running, output: RunOutput) -> None:
    """Run STUDY, or the part of it that has not been run.

    STUDY is a built-in study, a TOML file, a zip, or a study of the store (its number, name or hash). A zip ('retrompi study pack')
    is first unpacked into your data folder. Exit code 1 means that a point could not be run; its row gives the reason.

    \b
    Examples:
      retrompi study run proxy-cost
      retrompi study run proxy-cost --dry-run
      retrompi study run packed.zip --check
    """
    from retrompi.studies.execute import design

    if study.lower().endswith(".zip"):
        study_files.run_zip(ctx, Path(study), packed, running, output)
        return
    if packed.check:
        raise UsageError(f"--check applies only to a zip, not to '{study}'", code="unused-option")
    if packed.trust:
        study_files.trust_folder(Path(study).parent)
    go(ctx, design.study(study) if _is_file(study) else study_in_store(output.open(), study), running, output)


for _one in (study_show.show, study_show.figure, study_files.export, study_files.pack, study_files.unpack, study_merge.merge):
    command.add_command(_one)


def _is_file(which: str) -> bool:
    from retrompi.studies.execute import design

    return which.endswith(".toml") or "/" in which or which in design.study_names()


def study_in_store(store: Store, which: str) -> Study:
    """A study of the store, rebuilt from its definition."""
    from retrompi.studies.execute.design import from_definition

    return from_definition(store.study(which)["definition"])


@command.command("list")
@options(output=StoreOutput)
def list_studies(output: StoreOutput) -> None:
    """List the studies in the store, newest last, and the built-in ones not yet run.

    \b
    Examples:
      retrompi study list
      retrompi study list --json
    """
    from retrompi.base.errors import RetrompiError
    from retrompi.studies.execute import design
    from retrompi.studies.execute.design import count, from_definition

    rows = output.open(write=False).studies()
    for row in rows:
        definition = row["definition"]
        row |= {"title": definition["title"], "question": definition["question"]}
        try:
            made = from_definition(definition)
            row |= {"points": count(made), "axes": [a.key for a in made.axes]}
        except RetrompiError:  # from a version with other key names: its results can still be shown
            row |= {"points": None, "axes": []}
    have = {row["hash"] for row in rows}
    for name, study in design.studies().items():
        if study.hash not in have:
            about = {k: getattr(study, k) for k in ("hash", "title", "question")}
            rows.append({"name": name, **about, "points": count(study), "done": 0, "axes": [a.key for a in study.axes]})
    output.emit(rows, LIST, keys=KEYS, empty="no studies", cut=True)


@command.command("delete")
@click.argument("study", metavar="STUDY")
@options(output=StoreOutput)
def delete_study(study: str, output: StoreOutput) -> None:
    """Delete STUDY from the store.

    STUDY is a number, a name or a hash. The runs stay in the store and are reused when the study runs again.

    \b
    Examples:
      retrompi study delete proxy-cost
    """
    store_ = output.open()
    row = store_.study(study)
    gone = {"id": row["id"], "name": row["name"], "points": store_.delete_study(row["id"])}
    if not output.text:
        output.emit([gone], (), keys=list(gone))
    else:
        say(f"study {gone['id']} ({gone['name']}) and its {gone['points']} points deleted")
