"""``retrompi course export``: grades for a learning platform."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from retrompi.base.errors import InputError, UsageError
from retrompi.cli.bundle import option, options
from retrompi.cli.options import output_option
from retrompi.cli.output import note

if TYPE_CHECKING:
    from retrompi.classroom.grades.exports import Person

__all__ = ["command"]


@dataclass(frozen=True)
class CourseExportOptions:
    """Options of ``retrompi course export``."""

    database: str | None = option("Database of the course: a file, or the URL of a PostgreSQL database (default: $RETROMPI_COURSE, then "
                                  "course.db here).", metavar="FILE|URL")
    to: Literal["moodle", "canvas", "csv"] = option("Format of OUT: for the import of Moodle's or Canvas' gradebook, or plain CSV.",
                                                    default="csv")
    collected: Path | None = option("Grades from this file instead of a course: what 'retrompi lab collect --json' printed.",
                                    type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
    fill: Path | None = option("File of the platform to fill in: a grading worksheet of Moodle, or the gradebook that Canvas exported.",
                               type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
    labs: str | None = option("Labs of the course, by number or name, separated by commas (default: all with a grade).", metavar="LABS")
    identifier: Literal["email", "username", "idnumber"] = option(
        "Column by which Moodle finds a student: the address, or the student's id as user name or ID number.", default="email")
    out: Path | None = output_option("the grades; default: standard output", "csv")


@click.command("export")
@options(given=CourseExportOptions)
def command(given: CourseExportOptions) -> None:
    """Write the grades of a course for a learning platform.

    \b
    Examples:
      retrompi course export --to moodle -o grades.csv
      retrompi course export --to moodle --fill worksheet.csv --labs 1 -o filled.csv
      retrompi course export --to canvas --collected collected.json -o grades.csv
    """
    from retrompi.classroom.grades import canvas, exports, moodle
    from retrompi.labs.lab import lab as find

    wanted = [find(name.strip()).name for name in given.labs.split(",") if name.strip()] if given.labs else []
    people = _people(given, wanted)
    labs = wanted or exports.labs_of(people)
    text = io.StringIO()
    left: list[str] = []
    if given.fill is not None:
        if given.to == "csv":
            raise UsageError("--fill goes with --to moodle or --to canvas")
        if given.to == "moodle" and len(labs) != 1:
            raise UsageError("a grading worksheet is of one assignment; say by --labs which lab it is")
        if given.to == "moodle":
            filled, left = moodle.worksheet_filled(given.fill, people, labs[0])
        else:
            filled, left = canvas.gradebook_filled(given.fill, people, labs)
        text.write(filled)
        said = "not in the file to fill in"
    elif given.to == "moodle" and given.collected is not None and len(labs) == 1 and all(p.account_id for p in people):
        left, said = moodle.worksheet(text, people, labs[0]), "without a participant's number"
    elif given.to == "moodle":
        left, said = moodle.gradebook(text, people, labs, given.identifier), "left out, since Moodle would not find them: no address"
    elif given.to == "canvas":
        canvas.gradebook(text, people, labs)
        said = ""
    else:
        exports.plain(text, people, labs)
        said = ""
    if left:
        note(f"{len(left)} student{'' if len(left) == 1 else 's'} {said}: {', '.join(left[:5])}{' …' if len(left) > 5 else ''}")
    if given.out is None:
        click.echo(text.getvalue(), nl=False)
        return
    try:
        given.out.write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", given.out, code="unwritable-file") from None


def _people(given: CourseExportOptions, labs: list[str]) -> list[Person]:
    from retrompi.classroom.grades import exports

    if given.collected is None:
        from retrompi.classroom.course.database import Database

        db = Database.open(given.database)
        try:
            return exports.of_course(db, labs)
        finally:
            db.close()
    try:
        data = json.loads(given.collected.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", given.collected, code="unreadable-file") from None
    except (ValueError, RecursionError):
        said = "not JSON; it has to be what 'retrompi lab collect --json' prints"
        raise InputError(said, given.collected, code="unreadable-file") from None
    return exports.of_collected(data, given.collected)
