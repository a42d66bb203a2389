"""``retrompi course``: a class in the browser."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli import course_export, course_lti
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.options import OfCourse, StoreOption, ends_in, open_browser
from retrompi.cli.output import Column, Output, note, say
from retrompi.cli.studio import PORT

if TYPE_CHECKING:
    from retrompi.classroom.course.database import Database

LINKS = (Column("role", "role"), Column("student", "id"), Column("name", "name"), Column("link", "link"))
MEMBERS = (
    Column("role", "role"),
    Column("student", "id"),
    Column("name", "name"),
    Column("email", "e-mail"),
    Column("seen", "seen (UTC)"),
    Column("labs", "labs begun", right=True),
    Column("points", "points", lambda v: f"{v:g}", right=True),
    Column("open", "not marked", lambda v: f"{v:g}" if v else "", right=True),
)
LABS = (Column("lab", "lab"), Column("opens", "opens (UTC)"), Column("closes", "closes (UTC)"), Column("released", "marks shown"),
        Column("begun", "begun", right=True), Column("passed", "finished", right=True))


@dataclass(frozen=True)
class NewOptions(OfCourse):
    """Options of ``retrompi course new``."""

    labs: str = option("Labs of the course, by number or name, separated by commas; all: every lab.", required=True, metavar="LABS")
    students: Path | None = option(
        "Class list: CSV with a column 'student' (or 'username', 'email'), and 'name', 'email', 'role', 'language' if there are.",
        type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
    teacher: str = option("Id of the teacher.", default="teacher", metavar="ID")
    class_code: str | None = option("Code with which students enrol themselves (default: none, only links let in).", metavar="TEXT")
    address: str | None = option("Address of the course as students reach it (default: that of this machine).", metavar="URL")


@click.group()
@debug_option
def command() -> None:
    """Run a course in the browser: a class of students, their labs, marks and grades.

    A course is a database; students come in by links that work once.

    \b
    Examples:
      retrompi course start
      retrompi course new "Parallel computing" --students students.csv --labs 1,2,3
      retrompi course serve
    """


def _rows(db: Database, secrets: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows role, student, name, email, link for new links."""
    from retrompi.classroom.course.members import members
    from retrompi.classroom.course.settings import about
    from retrompi.classroom.serve import base_of

    base = base_of(about(db).settings, "0.0.0.0", PORT)
    return [
        {"role": m["role"], "student": m["student"], "name": m["name"], "email": m["email"], "link": f"{base}join/{secrets[m['student']]}"}
        for m in members(db) if m["student"] in secrets
    ]


def _emit(rows: list[dict[str, Any]], output: Output) -> None:
    output.emit(rows, LINKS, keys=("role", "student", "name", "email", "link"), empty="no links")


@command.command("new")
@click.argument("name")
@options(given=NewOptions, output=Output)
def new(name: str, given: NewOptions, output: Output) -> None:
    """Make a course called NAME and print the links of its teacher and students.

    Each link works once and makes a browser its owner's; with --csv the list is ready for a mail merge.

    \b
    Examples:
      retrompi course new "Parallel computing" --students students.csv --labs 1,2,3
      retrompi course new MPI --labs all --class-code falcon-7 --database postgresql+psycopg://teacher@/mpi
    """
    from retrompi.classroom.course.class_list import Entry, read
    from retrompi.classroom.course.database import Database
    from retrompi.classroom.course.settings import Settings
    from retrompi.classroom.course.settings import new as make
    from retrompi.classroom.serve import checked_address
    from retrompi.labs.lab import lab_names

    people = read(given.students) if given.students is not None else []
    if not any(p.role == "teacher" for p in people):
        people = [Entry(given.teacher, role="teacher"), *people]
    names = lab_names() if given.labs.strip() == "all" else [n.strip() for n in given.labs.split(",") if n.strip()]
    settings = Settings(address=checked_address(given.address) if given.address else "")
    db = Database.open(given.database, new=True)
    try:
        secrets = make(db, name, names, people, code=given.class_code, settings=settings)
    except BaseException:
        db.discard()
        raise
    _emit(_rows(db, secrets), output)
    note(f"the course is in {db.label}; 'retrompi course serve' starts it")


@dataclass(frozen=True)
class CourseAddOptions(OfCourse):
    """Options of ``retrompi course add``."""

    students: Path | None = option(
        "Class list: CSV with a column 'student' (or 'username', 'email'), and 'name', 'email', 'role', 'language' if there are.",
        type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
    role: str = option("Role of the new members.", type=click.Choice(("student", "assistant", "teacher")), default="student")


@command.command("add")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@options(given=CourseAddOptions, output=Output)
def add(ids: tuple[str, ...], given: CourseAddOptions, output: Output) -> None:
    """Add members by ID or from a class list, and print their links.

    Who is a member already is left as is.

    \b
    Examples:
      retrompi course add cora.dale
      retrompi course add --students late.csv
      retrompi course add t.meyer --role assistant
    """
    from retrompi.classroom.course import members
    from retrompi.classroom.course.class_list import Entry, read
    from retrompi.labs.student import normal_id

    people = [*(Entry(one, role=given.role) for one in ids), *(read(given.students) if given.students is not None else [])]
    if not people:
        raise UsageError("give ids, or a class list by --students", code="missing-option")
    db = given.open()
    known = {m["key"] for m in members.members(db)}
    secrets = {}
    for one in people:
        if normal_id(one.student) not in known:
            made = members.add(db, one.student, name=one.name, role=one.role, email=one.email, language=one.language)
            known.add(normal_id(one.student))
            secrets[members.find(db, one.student)["student"]] = members.link_for(db, made)
    _emit(_rows(db, secrets), output)


@command.command("links")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@options(given=OfCourse, output=Output)
def links(ids: tuple[str, ...], given: OfCourse, output: Output) -> None:
    """Print new links: of the members with these IDs, else of all who have not come in yet.

    A new link replaces the one before it. Links cannot be printed twice, since only a hash of each is kept.

    \b
    Examples:
      retrompi course links
      retrompi course links ann.bee
      retrompi course links --csv
    """
    from retrompi.classroom.course import members

    db = given.open()
    wanted = [members.find(db, one) for one in ids] if ids else [m for m in members.members(db) if m["seen"] is None]
    _emit(_rows(db, {m["student"]: members.link_for(db, m["id"]) for m in wanted}), output)


@command.command("list")
@options(given=OfCourse, output=Output)
def list_members(given: OfCourse, output: Output) -> None:
    """List the members, with the labs they have begun and their points.

    \b
    Examples:
      retrompi course list
    """
    from retrompi.classroom.course import members
    from retrompi.classroom.grades.records import standings
    from retrompi.classroom.page import utc

    db = given.open()
    found = standings(db)
    rows = []
    for m in members.members(db):
        mine = [s for (member, _), s in found.items() if member == m["id"]]
        rows.append({**m, "seen": utc(m["seen"]) if m["seen"] else None, "labs": len(mine), "points": sum(s.points for s in mine),
                     "open": sum(s.open for s in mine)})
    output.emit(rows, MEMBERS, empty="no members")


@dataclass(frozen=True)
class LabsOptions(OfCourse):
    """Options of ``retrompi course labs``."""

    opens: str | None = option("Time from which LAB can be begun, as 2026-12-01T08:00 (this machine's zone unless it names one), or none.",
                               metavar="TIME")
    closes: str | None = option("Time after which a check of LAB counts as late, or none.", metavar="TIME")


@command.command("labs")
@click.argument("lab", required=False)
@options(given=LabsOptions, output=Output)
def labs(lab: str | None, given: LabsOptions, output: Output) -> None:
    """List the course's labs with their dates, or set those of LAB.

    \b
    Examples:
      retrompi course labs
      retrompi course labs 1 --opens 2026-12-01T08:00 --closes 2026-12-08T23:59
    """
    from retrompi.classroom.course import settings as course
    from retrompi.classroom.grades.records import standings
    from retrompi.classroom.page import utc

    written = {k: v for k, v in (("opens", given.opens), ("closes", given.closes)) if v is not None}
    if written and lab is None:
        raise UsageError("--opens and --closes belong to a lab: give its number", code="missing-option")
    db = given.open()
    zone = course.about(db).settings.tz
    times = {k: course.time_of(v, zone) for k, v in written.items()}
    rows = course.labs(db) if lab is None else [course.dates(db, lab, **times)]
    found = standings(db)
    told = []
    for row in rows:
        mine = [s for (_, name), s in found.items() if name == row["lab"]]
        shown = {k: utc(row[k]) if row[k] else None for k in ("opens", "closes", "released")}
        told.append({"lab": row["lab"], **shown, "begun": len(mine), "passed": sum(s.passed for s in mine)})
    output.emit(told, LABS, empty="no labs")


@dataclass(frozen=True)
class ServeOptions(StoreOption):
    """Options of ``retrompi course serve``."""

    database: str | None = option("Database of the course: a file, or the URL of a PostgreSQL database (default: $RETROMPI_COURSE, then "
                                  "course.db here).", metavar="FILE|URL")
    port: int = option("Port to listen on; 0 takes any free one.", type=click.IntRange(0, 65535), default=PORT)
    host: str = option("Address to listen on (default: every address of this machine).", metavar="ADDRESS", default="0.0.0.0")
    names: tuple[str, ...] = option(
        "Another host name that browsers may use for this machine (repeatable).", "--allow-host", metavar="NAME")
    address: str | None = option("Address of the course as students reach it (default: that of this machine).", metavar="URL")
    proxy: str | None = option("Address of the reverse proxy in front of the server, whose headers X-Forwarded-* are believed.",
                               metavar="ADDRESS")
    as_root: bool = option("Serve as root, which is refused otherwise: a fault of the server would then be one of the whole machine.")


@dataclass(frozen=True)
class StartOptions(ServeOptions):
    """Options of ``retrompi course start``."""

    no_browser: bool = option("Do not open a browser.")


@command.command("start")
@options(given=StartOptions)
def start(given: StartOptions) -> None:
    """Start a course from a page in the browser: its name, labs, dates and students; then serve it.

    The page is for this machine alone, at an address that only this command prints. A course that is there already is served with
    'retrompi course serve'.

    \b
    Examples:
      retrompi course start
      retrompi course start --database /srv/mpi/course.db --address https://lab.example.org/
    """
    from retrompi.base.signals import terminated_is_interrupted
    from retrompi.classroom.course.database import location
    from retrompi.classroom.course.settings import about, change
    from retrompi.classroom.pages.start_page import StartPage
    from retrompi.classroom.serve import base_of, checked_address

    _not_as_root(given)
    where = location(given.database)
    if "://" not in where and Path(where).expanduser().exists():
        raise UsageError(f"{where} exists already: 'retrompi course serve' serves it, --database names another file", code="exists-already")
    address = checked_address(given.address) if given.address else ""

    def base(db: Database) -> str:
        return base_of(change(db, address=address).settings if address else about(db).settings, given.host, given.port)

    with terminated_is_interrupted():
        page = StartPage(where, base)
        page.serve()
        try:
            click.echo(f"start the class at: {page.address}")
            click.echo("press Ctrl-C to stop", err=True)
            if not given.no_browser:
                open_browser(page.address)
            with suppress(KeyboardInterrupt):
                while not page.made.wait(0.5):
                    pass
                assert page.db is not None
                _serve(page.db, given)
        finally:
            page.close()


@command.command("serve")
@options(given=ServeOptions)
def serve(given: ServeOptions) -> None:
    """Serve the course to the browsers of its members; Ctrl-C stops it.

    \b
    Examples:
      retrompi course serve
      retrompi course serve --host 127.0.0.1 --proxy 127.0.0.1 --address https://lab.example.org/
    """
    from retrompi.classroom.course.database import Database
    from retrompi.classroom.course.settings import change
    from retrompi.classroom.serve import checked_address

    _not_as_root(given)
    db = Database.open(given.database)
    if given.address is not None:
        change(db, address=checked_address(given.address))
    _serve(db, given)


def _not_as_root(given: ServeOptions) -> None:
    if os.geteuid() == 0 and not given.as_root:
        raise UsageError("a class is not served as root: use a user who owns the course's database alone, or --as-root", code="bad-usage")


def _serve(db: Database, given: ServeOptions) -> None:
    """Serves the course until it is interrupted."""
    from retrompi.base.signals import terminated_is_interrupted
    from retrompi.classroom.serve import ClassServer

    with terminated_is_interrupted():
        server = ClassServer(db, host=given.host, port=given.port, store=given.where, names=given.names, proxy=given.proxy)
        try:
            with suppress(KeyboardInterrupt):
                click.echo(f"course: {server.links}")
                if server.links.startswith("http://") and given.host != "127.0.0.1":
                    say("the connection is not encrypted: put it behind HTTPS on any network that others share", err=True)
                click.echo("press Ctrl-C to stop", err=True)
                server.run()
            click.echo("the course has stopped; all that was done is kept", err=True)
        finally:
            server.close()


@command.command("grades")
@options(given=OfCourse, output=Output)
def grades(given: OfCourse, output: Output) -> None:
    """Print the points of every student in every lab.

    The points of a lab are those of the last check in time, with the marks of open answers; "open" are points not marked yet.

    \b
    Examples:
      retrompi course grades
      retrompi course grades --csv
    """
    from retrompi.classroom.grades.records import grades as found

    rows = found(given.open())
    names = list(rows[0]) if rows else ["student"]
    columns = [Column(n, n, _short, right=n not in ("student", "name", "email")) for n in names
               if not n.endswith(("with late", "email"))]
    output.emit(rows, columns, keys=names, empty="no students")


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "late" if value else ""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@command.command("data")
@click.argument("student", metavar="ID")
@options(given=OfCourse, output=Output)
@click.option("-o", "--output", "out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", required=True,
              callback=ends_in("zip"), help="Where to write: .zip.")
def data(student: str, given: OfCourse, output: Output, out: Path) -> None:
    """Write all that the course keeps of the member with this ID.

    \b
    Examples:
      retrompi course data ann.bee -o ann.zip
    """
    from retrompi.classroom.course import members
    from retrompi.classroom.pages.own_data import archive

    db = given.open()
    content = archive(db, members.find(db, student)["id"])
    _write(out, content)
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        rows = [{"file": one.filename, "bytes": one.file_size} for one in packed.infolist()]
    output.emit(rows, (Column("file", "file"), Column("bytes", "bytes", right=True)))


@command.command("remove")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@options(given=OfCourse, output=Output)
def remove(ids: Iterable[str], given: OfCourse, output: Output) -> None:
    """Delete the members with these IDs, and all that the course keeps of them.

    \b
    Examples:
      retrompi course remove ann.bee
    """
    from retrompi.classroom.course import members

    db = given.open()
    found = [members.find(db, one) for one in ids]
    if not any(m["role"] == "teacher" and m not in found for m in members.members(db)):
        raise UsageError("the course would have no teacher left", code="bad-value")
    for member in found:
        members.remove(db, member["id"])
    output.emit([{"deleted": m["student"]} for m in found], (Column("deleted", "deleted"),))


@command.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@options(given=OfCourse, output=Output)
def backup(file: Path, given: OfCourse, output: Output) -> None:
    """Write all of the course to FILE (.zip), also while it is served.

    \b
    Examples:
      retrompi course backup monday.zip
    """
    from retrompi.classroom.course.backup import backup as write

    if file.suffix.lower() != ".zip":
        raise UsageError(f"{file}: a backup is written as .zip", code="unknown-format")
    _emit_counts(write(given.open(), file), output)


@command.command("restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@options(given=OfCourse, output=Output)
def restore(file: Path, given: OfCourse, output: Output) -> None:
    """Make a course from the backup FILE, in a database that holds none.

    All that is restored is compared with the backup.

    \b
    Examples:
      retrompi course restore monday.zip --database again.db
    """
    from retrompi.classroom.course.backup import restore as read

    _emit_counts(read(file, given.database), output)


def _emit_counts(counts: Mapping[str, int], output: Output) -> None:
    rows = [{"table": name, "rows": n} for name, n in counts.items()]
    output.emit(rows, (Column("table", "table"), Column("rows", "rows", right=True)))


def _write(file: Path, content: bytes) -> None:
    from retrompi.base.errors import InputError

    try:
        file.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", file, code="unwritable-file") from None



command.add_command(course_lti.command, "lti")
command.add_command(course_export.command, "export")
