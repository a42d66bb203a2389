"""``retrompi paper``: papers as folders, and what belongs to one paper alone."""

from __future__ import annotations

import os
from pathlib import Path

import click

from retrompi.base import paths
from retrompi.cli import reproduce
from retrompi.cli.bundle import debug_option, options
from retrompi.cli.output import Column, Output, as_text, say
from retrompi.papers.statements import own_code

LIST = (
    Column("key", "paper"),
    Column("year", "year"),
    Column("calibrate", "fit", right=True),
    Column("validate", "held out", right=True),
    Column("curves", "curves", right=True),
    Column("title", "title"),
)
LIST_KEYS = ("key", "title", "authors", "year", "address", "calibrate", "validate", "context", "exclude", "curves", "models", "platforms",
             "folder")
PROBLEMS = ("file", "line", "code", "message")
COUNTS = (Column("what", "what"), Column("number", "number", as_text, right=True))


@click.group()
@debug_option
def command() -> None:
    """Make, check and reproduce papers as folders; run what belongs to one paper alone.

    A paper is a folder, yours or one of retrompi's: paper.toml, claims.csv, checks.toml, measured curves, models and platforms of its
    own, and experiments and commands as code. 'retrompi validate --paper FOLDER' judges it with an exit code. The NAS benchmarks, Rinf1
    loops and copying disks are commands of one paper each; 'retrompi paper run' runs those of yours.

    \b
    Examples:
      retrompi paper new mypaper
      retrompi paper check ./mypaper
      retrompi paper reproduce ./mypaper
    """


@command.command("new")
@click.argument("folder", type=click.Path(path_type=Path))
@options(output=Output)
def new(folder: Path, output: Output) -> None:
    """Make the folder of a new paper: small, complete, with examples to be replaced.

    \b
    Examples:
      retrompi paper new mypaper
    """
    from retrompi.papers.statements.scaffold import create

    made = create(folder)
    output.emit([{"file": str(f)} for f in made], (Column("file", "file"),))
    if output.text:
        say(f"\nnext: edit them, then 'retrompi paper check {folder}'")


@command.command("check")
@click.argument("paper", metavar="FOLDER|KEY")
@options(output=Output)
def check(paper: str, output: Output) -> None:
    """List everything that is wrong in the folder of a paper, with file and line; nothing is simulated.

    Looked at are the columns and values of every row, units, message sizes, sources, the checks, the names of models, platforms and
    experiments, measured curves, and the folder's own models and platforms. Exit code 2 if anything is wrong.

    \b
    Examples:
      retrompi paper check ./mypaper
      retrompi paper check baker-fox
    """
    from retrompi.base.errors import InputError
    from retrompi.papers.reproduce.inspection import inspect

    found = inspect(paper)
    rows = [{"file": _near_path(p.path), "line": p.line, "code": p.code, "message": p.message} for p in found.problems]
    if found.problems:
        if output.text:
            for row in rows:
                click.echo(f"{row['file']}{'' if row['line'] is None else ':' + str(row['line'])}: {row['message']}")
        else:
            output.emit(rows, (), keys=PROBLEMS)
        several = f"{len(rows)} problems" if len(rows) > 1 else "1 problem"
        raise InputError(f"{several} in this paper", found.folder, code="bad-paper")
    if not output.text:
        output.emit([], (), keys=PROBLEMS)
        return
    output.emit([{"what": what, "number": n} for what, n in found.counts().items() if n], COUNTS, empty="nothing to judge yet")
    if unjudged := found.claims_without_check():
        say(f"\nwithout a check, so not judged: {' '.join(unjudged)}")
    say("\nnothing wrong")


def _near_path(path: str | None) -> str:
    """A path as the user sees it: relative to the working folder where it is in it."""
    if path is None:
        return ""
    near = os.path.relpath(path)
    return path if near.startswith("..") else near


@command.command("list")
@options(output=Output)
def list_papers(output: Output) -> None:
    """List the papers of retrompi, with their numbers of claims and curves.

    \b
    Examples:
      retrompi paper list
    """
    from retrompi.papers import all_papers

    rows = []
    for plan in all_papers().values():
        uses = {use: sum(c.use == use for c in plan.claims) for use in ("calibrate", "validate", "context", "exclude")}
        rows.append({"key": plan.key, "title": plan.title, "authors": plan.authors, "year": plan.year, "address": plan.address, **uses,
                     "curves": len(plan.curves), "models": list(plan.models), "platforms": list(plan.platforms),
                     "folder": str(plan.folder)})
    output.emit(rows, LIST, keys=LIST_KEYS, cut=True)


command.add_command(reproduce.command, "reproduce")

for _folder in paths.paper_dirs():
    for _name in own_code.names(_folder, "commands"):
        command.add_command(own_code.module(_folder, "commands", _name).command, _name)


@command.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("paper", metavar="FOLDER|KEY")
@click.argument("name", metavar="COMMAND")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(ctx: click.Context, paper: str, name: str, arguments: tuple[str, ...]) -> object:
    """Run a command that a paper has of its own: 'command' in its folder's commands/COMMAND.py.

    What follows COMMAND is its arguments and options; its --help lists them.

    \b
    Examples:
      retrompi paper run lefevre-westrelin nas --csv
      retrompi paper run ./mypaper table --help
    """
    from retrompi.papers.statements.paper import working_with

    with working_with(paper) as (plan,):
        found: click.Command = own_code.module(plan.folder, "commands", name).command
        with own_code.running(plan.folder, f"the command {name}"), found.make_context(name, list(arguments), parent=ctx) as inner:
            return found.invoke(inner)
