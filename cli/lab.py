"""``retrompi lab``: teaching labs with tasks, predictions first, and checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from retrompi.base import translate
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.scratch import folder as temporary
from retrompi.cli.bundle import Option, debug_option, option, options
from retrompi.cli.options import StoreOutput, Workers, ends_in, output_option, progress
from retrompi.cli.output import Column, Output, print_csv, print_json, print_table, say, uses_colour
from retrompi.cli.terminal import paint

if TYPE_CHECKING:
    from retrompi.labs.grade import Grading
    from retrompi.labs.lab import Lab, Task
    from retrompi.labs.shelf import FolderShelf

LIST = (
    Column("lab", "lab"),
    Column("title", "title"),
    Column("minutes", "minutes", right=True),
    Column("tasks", "tasks", right=True),
    Column("points", "points", lambda v: f"{v:g}", right=True),
    Column("needs", "needs"),
    Column("summary", "summary"),
)
GOALS = (Column("text", "goal"), Column("topic", "curriculum's topic"), Column("bloom", "level"), Column("area", "area"))
GRADES = ("student", "account", "account_id", "late", "lab", "points", "of", "open", "percent", "passed", "checks", "hints", "source",
          "alike", "problem")
SIGN = {"right": ("✓", "green"), "sealed": ("✓", "green"), "open": ("○", "green"), "changed": ("!", "yellow"), "wrong": ("✗", "red"),
        "unreadable": ("✗", "red"), "missing": ("·", "yellow"), "waiting": ("·", "yellow")}


def complete_lab(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a lab's number."""
    from retrompi.labs.lab import lab_names

    try:
        return [CompletionItem(n[:2], help=n[3:]) for n in lab_names() if n.startswith(incomplete)]
    except (RetrompiError, OSError):
        return []


lab_argument = click.argument("lab", shell_complete=complete_lab)
folder_argument = click.argument("folder", required=False, metavar="[FOLDER|LAB]")


@click.group()
@click.option("--language", metavar="LANG", help="Language of the labs' texts: en, de, fr (default: the terminal's, by LANG).")
@debug_option
@click.pass_context
def command(ctx: click.Context, language: str | None) -> None:
    """Work through the teaching labs: start, check, hint, report, collect.

    Every student gets numbers of their own; predictions are sealed before results are checked.

    \b
    Examples:
      retrompi lab list
      retrompi lab start 01 --student ann
      retrompi lab check 01
      retrompi lab --language de start 01 --student ann
    """
    ctx.with_resource(translate.speaking(translate.of_environment() if language is None else language))


@command.command("list")
@options(output=Output)
def list_labs(output: Output) -> None:
    """List the labs.

    \b
    Examples:
      retrompi lab list
      retrompi lab list --json
    """
    from retrompi.labs.lab import labs

    rows = [
        {"lab": x.key, "name": x.name, "title": x.title, "minutes": x.minutes, "tasks": len(x.tasks), "points": x.points,
         "needs": ", ".join(x.needs), "summary": x.summary, "version": x.version}
        for x in labs()
    ]
    keys = ("lab", "name", "title", "minutes", "tasks", "points", "needs", "summary", "version")
    output.emit(rows, LIST, keys=keys, empty="no labs")


@command.command("show")
@lab_argument
@options(output=Output)
def show_lab(lab: str, output: Output) -> None:
    """Show the goals of LAB, the curriculum topics they belong to, and its duration.

    \b
    Examples:
      retrompi lab show 01
    """
    from retrompi.labs import lab as _lab

    found = _lab.lab(lab)
    rows = [{"text": g.text, "topic": g.topic, "bloom": g.bloom, "area": g.area} for g in found.goals]
    if output.text:
        say(f"lab {found.key}: {found.title}\n{found.summary}\n")
        needs = f"; needs {', '.join(found.needs)}" if found.needs else ""
        say(f"{found.minutes} minutes, {len(found.tasks)} tasks, {found.points:g} points{needs}")
        say(f"topics and levels (K know, C comprehend, A apply): {_lab.CURRICULUM}\n")
    output.emit(rows, GOALS, keys=("text", "topic", "bloom", "area"))


@command.command("slides")
@lab_argument
@click.option("-o", "--output", "out", cls=Option, aliases=("--out",), type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              callback=ends_in("html"), help="Where to write: the slides, .html (default: slides-01.html and so on, here).")
@options(output=StoreOutput)
def slides_of_lab(lab: str, out: Path | None, output: StoreOutput) -> None:
    """Write the lecturer's slides of LAB: one page, whose figures are simulated now.

    Space and the arrow keys turn the slides, S opens the notes, O shows all. It opens without a network; '?print-pdf' after its address
    has it printed.

    \b
    Examples:
      retrompi lab slides 01
      retrompi lab slides 01 -o monday.html
    """
    from retrompi.labs import lab as _lab
    from retrompi.render.document.html import save
    from retrompi.studio.labs import slides

    found = _lab.lab(lab)
    place = out if out is not None else Path(f"slides-{found.key}.html")
    made = slides.deck(found, output.where)
    save(place, made)
    row = {"lab": found.name, "page": str(place), "slides": slides.count(found)}
    if not output.text:
        output.emit([row], (), keys=("lab", "page", "slides"))
    else:
        say(f"{place}  {row['slides']} slides")


@command.command("start")
@lab_argument
@click.option("--student", required=True, metavar="ID", help="Your name or student number; it determines the numbers you are given.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Folder: to be created (default: a new folder here).")
@options(output=Output)
def start_lab(lab: str, student: str, folder: Path | None, output: Output) -> None:
    """Start LAB in a folder of your own, with your own numbers.

    \b
    Examples:
      retrompi lab start 01 --student ann
      retrompi lab start 01 --student ann --folder lab01
    """
    from retrompi.labs import lab as _lab
    from retrompi.labs import start

    found = _lab.lab(lab)
    place = start.start(found, student, folder)
    if not output.text:
        row = {"lab": found.name, "folder": str(place), "files": sorted(f.name for f in place.iterdir())}
        output.emit([row], (), keys=("lab", "folder", "files"))
        return
    say(f"lab {found.key}: {found.title}")
    say(f"{place}/README.md     what to do, {found.minutes} minutes")
    say(f"{place}/answers.toml  your sheet: fill in the predictions, then 'retrompi lab check' in this folder seals them")


@command.command("check")
@folder_argument
@options(output=StoreOutput)
def check_lab(folder: str | None, output: StoreOutput) -> int:
    """Seal the predictions and check the answers.

    Says what is right, and what is wrong and why, but never the answer itself. Looks in the current folder, in FOLDER, or for LAB
    in the folders below. Exit code 0: everything is right; 1: something is wrong or missing; 2: the answer sheet cannot be read.

    \b
    Examples:
      retrompi lab check
      retrompi lab check 01
    """
    grading, where = _check_folder(folder, output)
    if output.as_json:
        print_json(grading.row())
    elif output.as_csv:
        keys = ("task", "kind", "status", "points", "of", "given", "says", "compared")
        output.emit(grading.row()["tasks"], keys=keys)
    else:
        _print(grading, where)
    return 0 if grading.passed else 1


def _check_folder(folder: str | None, output: StoreOutput) -> tuple[Grading, Path]:
    """Seal and grade a folder."""
    from retrompi.labs import bench, work

    shelf, where, found = _started_lab(folder)
    after, grading = work.check(shelf.open(found), found, bench.Bench(output.open(), where, may_run=True))
    shelf.keep_check(shelf.ask(shelf.save(after)), grading)
    return grading, where


def _started_lab(folder: str | None) -> tuple[FolderShelf, Path, Lab]:
    """The started lab that ``folder`` means: (shelf, folder, lab)."""
    from retrompi.labs import grade, shelf, student

    where = student.find(folder)
    return shelf.FolderShelf.of(where), where, grade.lab_of(student.read_state(where), where)


def _print(grading: Grading, where: Path) -> None:
    """Prints a grading as text."""
    color = uses_colour()
    width = max(len(r.task) for r in grading.results)
    say(f"{grading.lab}, {grading.student}, check {grading.checks}")
    for r in grading.results:
        sign, colour = SIGN[r.status]
        place = f" (answers.toml:{r.line})" if r.line and r.status in ("wrong", "unreadable") else ""
        says = r.compared or r.says or ("sealed" if r.status == "sealed" else "right")
        line = f"{paint(sign, fg=colour) if color else sign} {r.task.ljust(width)}  {r.points:>4g} of {r.of:<4g} {says}{place}"
        click.echo(line, color=color)
    for flag in grading.flags:
        say(f"! {flag}")
    missing = sum(r.status in ("missing", "waiting") for r in grading.results)
    wrong = sum(r.status in ("wrong", "unreadable") for r in grading.results)
    tail = "all done" if grading.passed else ", ".join(f"{n} {w}" for n, w in ((wrong, "wrong"), (missing, "to do")) if n)
    say(f"{grading.points:g} of {grading.of:g} points{_open_points(grading.open)}; {tail}")


def _open_points(points: float) -> str:
    return f", {points:g} open" if points else ""


@command.command("report")
@folder_argument
@click.option("-o", "--output", "out", cls=Option, aliases=("--out",), type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              callback=ends_in("html"), help="Where to write: the page, .html (default: report.html in the lab's folder).")
@options(output=StoreOutput)
def report_lab(folder: str | None, out: Path | None, output: StoreOutput) -> None:
    """Write the report page of a started lab.

    The page has the text, the answers, the predictions beside the results, and the curves of your machine. Nothing is sealed;
    'retrompi lab check' does that.

    \b
    Examples:
      retrompi lab report
      retrompi lab report 01 -o lab01.html
    """
    from retrompi.labs import bench, report, student, work
    from retrompi.render.document.html import save

    shelf, where, found = _started_lab(folder)
    place = out if out is not None else where / "report.html"
    own, done = bench.Bench(output.open(), where), shelf.open(found)
    grading = work.grade_work(done, found, own)
    save(place, report.page(found, done.state, grading, student.draw(found, done.state.student), own))
    if not output.text:
        row = {"page": str(place), "points": grading.points, "of": grading.of, "open": grading.open}
        output.emit([row], (), keys=("page", "points", "of", "open"))
    else:
        say(f"{place}  {grading.points:g} of {grading.of:g} points{_open_points(grading.open)}")


@command.command("hint")
@click.argument("words", nargs=-1, required=True, metavar="[FOLDER|LAB] TASK")
@click.option("--again", is_flag=True, help="Show the hints already taken, without taking another.")
@options(output=Output)
def hint_lab(words: tuple[str, ...], again: bool, output: Output) -> None:
    """Show the next hint for TASK; it is recorded and costs points.

    The lab is the one in the current folder, in FOLDER, or LAB in the folders below.

    \b
    Examples:
      retrompi lab hint latency
      retrompi lab hint 01 latency --again
    """
    from retrompi.labs import work

    if len(words) > 2:
        raise UsageError(f"{len(words)} words; give TASK, or LAB and TASK")
    task = words[-1]
    shelf, _, found = _started_lab(words[0] if len(words) == 2 and words[0] != "." else None)
    asked, done = found.task(task), shelf.open(found)
    taken = done.state.hints.get(task, 0)
    if taken < len(asked.hints) and not again:
        done = shelf.save(work.hint(done, found, task)[0])
        taken += 1
    told = work.hints(done, found, task)
    rows = [{"task": task, "number": i, "of": len(asked.hints), "hint": h} for i, h in enumerate(told, 1)]
    if not output.text:
        output.emit(rows, (), keys=("task", "number", "of", "hint"))
        return
    for row in rows:
        say(f"{row['number']} of {row['of']}: {row['hint']}")
    say(_cost(asked, taken, found.hint_cost) if asked.hints else f"there is no hint for '{task}'")


def _cost(task: Task, taken: int, cost: float) -> str:
    """The cost of a task's hints so far and of the next one."""
    left = len(task.hints) - taken
    lost = min(taken * cost, task.points)
    told = f"{taken} of {len(task.hints)} hints taken, for {lost:g} of this task's {task.points:g} point{'' if task.points == 1 else 's'}"
    more = f"; {left} left, the next costs {min(cost, task.points - lost):g}" if left else "; none is left"
    return told + more + (f"; read again for nothing: 'retrompi lab hint . {task.id} --again'" if taken else "")


@dataclass(frozen=True)
class CollectLabsOptions(Workers):
    """Options of ``retrompi lab collect_labs``."""

    out: Path | None = output_option("a page with the students' texts as well", "html")
    run_programs: bool = option("Compile and run the students' programs (lab 09); they are untrusted code.")


@command.command("collect")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER|ZIP...")
@options(given=CollectLabsOptions, output=StoreOutput)
def collect_labs(folders: tuple[str, ...], given: CollectLabsOptions, output: StoreOutput) -> int:
    """Grade a class's submissions and report which are alike.

    FOLDER is a student's folder, a folder of many, or a zip of either. Every submission is graded anew. Exit code 1 means that some
    could not be graded.

    \b
    Examples:
      retrompi lab collect submissions -o class.html
      retrompi lab collect submissions.zip --csv
    """

    from retrompi.labs import collect, submissions
    from retrompi.render.document.html import save
    from retrompi.studies.execute.worker_pool import processors

    output.open()  # reports an unusable store once, not for every submission
    where = output.where
    with temporary("labs") as place, progress("grading") as report:
        found = submissions.find(folders, Path(place))
        graded, pairs = collect.collect(found, where, jobs=given.jobs or processors(), may_run=given.run_programs, report=report)
    table, tasks = collect.rows(graded, pairs)
    if given.out is not None:
        from retrompi.labs.report import class_page

        save(given.out, class_page(graded, pairs))
    if output.as_json:
        alike = [{"one": graded[p.one].source, "other": graded[p.other].source, "why": list(p.why)} for p in pairs]
        print_json({"submissions": [{**r, "grading": g.row} for r, g in zip(table, graded, strict=True)], "alike": alike})
    elif output.as_csv:
        print_csv(table, (*GRADES, *tasks))
    else:
        # What no submission has is no column of a terminal; reasons follow below.
        shown = [k for k in GRADES if k not in ("problem", "alike") and any(r[k] not in (None, "") for r in table)]
        columns = [Column(k, k, _cut if k in ("student", "account", "source") else None) for k in shown]
        print_table(table, columns, empty="nothing was handed in")
        for r in table:
            if r["problem"]:
                say(f"problem: {r['source']}: {r['problem']}")
        for p in pairs:
            say(f"alike: {_who(graded[p.one])} and {_who(graded[p.other])}: {'; '.join(p.why)}")
    return 1 if any(g.broken for g in graded) else 0


def _cut(text: str) -> str:
    """A long name, shortened for a table in a terminal."""
    return text if len(text) <= 40 else f"{text[:18]} … {text[-18:]}"


def _who(graded: Any) -> str:
    return f"{graded.row['student']} ({graded.source})" if graded.row else str(graded.source)


__all__: list[Any] = ["command"]
