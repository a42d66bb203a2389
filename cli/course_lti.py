"""``retrompi course lti``: the learning platforms whose students come into a course."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import InputError, UsageError
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.options import OfCourse
from retrompi.cli.output import Column, Output, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Engine

__all__ = ["command"]

PLATFORMS = (Column("name", "name"), Column("issuer", "issuer"), Column("client_id", "client id"), Column("deployments", "deployments"))
ADDRESSES = (Column("what", "what"), Column("address", "address"))
OUTBOX = (Column("student", "student"), Column("lab", "lab"), Column("points", "points", right=True), Column("of", "of", right=True),
          Column("tries", "tries", right=True), Column("due", "next try (UTC)"), Column("error", "last error"))


@dataclass(frozen=True)
class LtiAddOptions(OfCourse):
    """Options of ``retrompi course lti add``."""

    moodle: str | None = option("Address of a Moodle: its issuer and services follow from it.", metavar="URL")
    canvas: bool = option("It is Canvas as its maker runs it (instructure.com): issuer and services are known.")
    client_id: str | None = option("Client id that the platform gave this tool.", metavar="TEXT")
    deployment: tuple[str, ...] = option("Deployment id that the platform gave; may be repeated.", metavar="TEXT")
    registration: Path | None = option(
        "JSON file with issuer, client_id, auth_url, token_url, keys_url and deployments: for any other platform.",
        type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")


@click.group()
@debug_option
def command() -> None:
    """Let students in from a learning platform by LTI 1.3, and send their scores back.

    \b
    Examples:
      retrompi course lti show
      retrompi course lti add moodle --moodle https://moodle.example.edu --client-id aBcD --deployment 3
      retrompi course lti list
    """


@command.command("add")
@click.argument("name")
@options(given=LtiAddOptions, output=Output)
def add_platform(name: str, given: LtiAddOptions, output: Output) -> None:
    """Register a learning platform under NAME, or change one.

    \b
    Examples:
      retrompi course lti add moodle --moodle https://moodle.example.edu --client-id aBcD --deployment 3
      retrompi course lti add canvas --canvas --client-id 10000000000001 --deployment 1:abc
      retrompi course lti add other --registration platform.json
    """
    from retrompi.classroom.lti import lti_platforms

    ways = [w for w in (given.moodle, given.canvas, given.registration) if w]
    if len(ways) != 1:
        raise UsageError("give one of --moodle, --canvas and --registration", code="missing-option")
    if not name.strip() or len(name) > 80 or not name.isprintable():
        raise UsageError("a platform's name has 1 to 80 characters on one line", code="bad-name")
    told: Mapping[str, Any] = {"client_id": given.client_id or ""}
    deployments = list(given.deployment)
    if given.moodle:
        told = {**told, **lti_platforms.of_moodle(given.moodle)}
    elif given.canvas:
        told = {**told, **lti_platforms.CANVAS}
    else:
        assert given.registration is not None
        told, listed = _registration(given.registration)
        told = {**told, **({"client_id": given.client_id} if given.client_id else {})}
        deployments += listed
    db = given.open()
    try:
        lti_platforms.add(db.engine, name, told, deployments)
        rows = [row for row in _platforms(db.engine) if row["name"] == name]
    finally:
        db.close()
    if output.text:
        say(f"the platform '{name}' may send students; 'retrompi course lti show' says what to enter there")
        return
    output.emit(rows, PLATFORMS)


def _registration(file: Path) -> tuple[dict[str, str], list[str]]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", file, code="unreadable-file") from None
    except (ValueError, RecursionError):
        raise InputError("not JSON", file, code="unreadable-file") from None
    listed = data.get("deployments", []) if isinstance(data, dict) else None
    if not isinstance(listed, list) or not all(isinstance(v, str) for k, v in data.items() if k != "deployments"):
        raise InputError("a registration is an object of texts, with a list of deployments", file)
    return {k: v for k, v in data.items() if k != "deployments"}, [str(d) for d in listed]


def _platforms(engine: Engine) -> list[dict[str, str]]:
    from retrompi.classroom.lti import lti_platforms

    return [{"name": p.name, "issuer": p.issuer, "client_id": p.client_id, "deployments": ", ".join(p.deployments)}
            for p in lti_platforms.platforms(engine)]


@command.command("list")
@options(given=OfCourse, output=Output)
def list_platforms(given: OfCourse, output: Output) -> None:
    """List the registered platforms.

    \b
    Examples:
      retrompi course lti list
    """
    db = given.open()
    try:
        rows = _platforms(db.engine)
    finally:
        db.close()
    output.emit(rows, PLATFORMS, keys=("name", "issuer", "client_id", "deployments"), empty="no platform is registered")


@command.command("show")
@options(given=OfCourse, output=Output)
def show_addresses(given: OfCourse, output: Output) -> None:
    """Show the addresses that a platform's administrator enters.

    \b
    Examples:
      retrompi course lti show
    """
    from retrompi.classroom.course.settings import about

    db = given.open()
    try:
        base = about(db).settings.address
    finally:
        db.close()
    if not base:
        raise UsageError("the course has no address: give 'retrompi course serve' an https address by --address first", code="bad-address")
    base = base.rstrip("/")
    rows = [
        {"what": "Tool URL, redirection URI, deep linking URL", "address": f"{base}/lti/launch"},
        {"what": "Initiate login URL", "address": f"{base}/lti/login"},
        {"what": "Public keyset URL", "address": f"{base}/lti/keys"},
        {"what": "Configuration for a Canvas developer key", "address": f"{base}/lti/canvas.json"},
    ]
    output.emit(rows, ADDRESSES, keys=("what", "address"))


@command.command("remove")
@click.argument("name")
@options(given=OfCourse, output=Output)
def remove_platform(name: str, given: OfCourse, output: Output) -> None:
    """Forget the platform NAME, with its links and scores not sent; the members stay.

    \b
    Examples:
      retrompi course lti remove moodle
    """
    from retrompi.classroom.lti import lti_platforms

    db = given.open()
    try:
        lti_platforms.remove(db.engine, name)
    finally:
        db.close()
    output.emit([{"removed": name}], (Column("removed", "removed"),))


@command.command("outbox")
@options(given=OfCourse, output=Output)
def show_outbox(given: OfCourse, output: Output) -> None:
    """List the scores that a platform has not taken yet, and why.

    \b
    Examples:
      retrompi course lti outbox
    """
    from retrompi.classroom.lti import lti_scores

    db = given.open()
    try:
        rows = lti_scores.waiting(db.engine)
    finally:
        db.close()
    output.emit(rows, OUTBOX, keys=("student", "lab", "points", "of", "tries", "due", "error"), empty="every score is sent")
