"""Names that learning platforms give to the files of a download: whose account handed a file in.

Moodle names a folder (or, without folders, every file) ``NAME_NUMBER_assignsubmission_file_``; Canvas names every file
``name_USER_FILE_original.zip``, with ``LATE_`` before the user's number after the due date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Account", "of_file", "of_folder"]

# Moodle replaces underscores in the name by blanks, so that the first one ends it. Its releases differ in the last underscore.
_MOODLE = r"(?P<name>[^_]{1,200})_(?P<id>\d{1,20})_assignsubmission_(?P<plugin>[a-z0-9]+)"
_FOLDER = re.compile(rf"{_MOODLE}_?")
_FILE = re.compile(rf"{_MOODLE}_(?P<rest>.+)", re.DOTALL)
# Canvas lowers the case of the name and removes what is no letter, digit or underscore; anonymous ones have a word of five characters.
_CANVAS = re.compile(
    r"(?P<name>(?:(?!_\d)[^\W])*?)_?(?P<late>LATE_)?(?P<id>\d{1,20}|anon_\w{5})_(?P<file>\d{1,20})_(?P<rest>.+)", re.DOTALL
)
_AGAIN = re.compile(r"-\d{1,3}(?=\.[^.]*$)")
"""The number that Canvas puts into the name of a file that was handed in again."""


@dataclass(frozen=True)
class Account:
    """The account that handed something in: the platform's ``name`` for the person (or group), and ``id``, the number it gave there.

    In Moodle the number is the participant's of the assignment, as in the grading worksheet, in Canvas the user's. ``late``: Canvas says
    so; Moodle's names do not.
    """

    platform: str
    name: str
    id: str
    late: bool = False


def of_folder(name: str) -> tuple[Account, str] | None:
    """(account, kind of submission) of a folder in Moodle's download; None for any other name."""
    found = _FOLDER.fullmatch(name)
    return (Account("moodle", _clean_name(found["name"]), found["id"]), found["plugin"]) if found else None


def of_file(name: str) -> tuple[Account, str] | None:
    """(account, the name that the file had) of a file in a download without folders; None for any other name."""
    if found := _FILE.fullmatch(name):
        return Account("moodle", _clean_name(found["name"]), found["id"]), found["rest"]
    if found := _CANVAS.fullmatch(name):
        account = Account("canvas", _clean_name(found["name"]), found["id"].removeprefix("anon_"), found["late"] is not None)
        return account, _AGAIN.sub("", found["rest"])
    return None


def _clean_name(name: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())
