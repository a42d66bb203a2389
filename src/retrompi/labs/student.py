"""A student's lab: parameters drawn from the id, the folder, and the state in its ``.lab.toml``.

The seed is a hash of lab, version and id, so that it is the same on every machine and in every release, and a teacher's
`lab collect` can draw the same parameters again, trusting nothing in the folder but the id.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import toml as toml_text
from retrompi.base.bidi import plain_direction
from retrompi.base.errors import InputError, UsageError

if TYPE_CHECKING:
    from retrompi.labs.lab import Lab

__all__ = ["ANSWERS", "LARGEST_ID", "STATE", "Parameters", "Sealed", "State", "draw", "find", "folder_name", "normal_id", "read_state",
           "read_text", "seed_of", "shown_id", "state_text", "write_state"]

STATE = ".lab.toml"
ANSWERS = "answers.toml"
LARGEST_ID = 200
LARGEST_FILE = 1 << 20
"""Maximum size of a file read from a student's folder, bytes."""


def normal_id(student: str) -> str:
    """An id as hashed: Unicode compatibility form, lower case, no blanks. UsageError if the result is empty."""
    # From the displayed form, which .lab.toml keeps: invisible characters in an id must not change the parameters.
    text = shown_id(unicodedata.normalize("NFKC", shown_id(student)).casefold()).replace(" ", "")
    if not text:
        raise UsageError(
            "the student's id is empty; give the one that your teacher knows, e.g. --student ann.bee@example.edu", code="bad-name"
        )
    if len(student) > LARGEST_ID:
        raise UsageError(f"the student's id has {len(student)} characters; at most {LARGEST_ID} are taken", code="bad-name")
    return text


def shown_id(student: str) -> str:
    """An id for display: one line, single blanks, no control or other invisible characters."""
    return " ".join("".join(c for c in student if c.isspace() or unicodedata.category(c)[0] != "C").split())


def seed_of(lab: Lab, student: str) -> int:
    """The seed of a student's parameters, 63 bits."""
    told = "\0".join(("retrompi lab", lab.name, str(lab.version), normal_id(student)))
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big") >> 1


class Parameters(dict[str, Any]):
    """A student's parameters: ``p["size"]`` in the base unit (a word as text), ``p.text("size")`` as written."""

    def __init__(self, values: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        super().__init__(values)
        self.texts = dict(texts)

    def text(self, name: str) -> str:
        """A value with its unit, for display and for ``--set``."""
        return self.texts[name]


def draw(lab: Lab, student: str) -> Parameters:
    """The student's parameters: each from a hash of seed and name, so that a new parameter does not change the others."""
    seed = seed_of(lab, student)
    texts = {}
    for parameter in lab.parameters:
        digest = hashlib.sha256(f"{seed}\0{parameter.name}".encode()).digest()
        texts[parameter.name] = parameter.values[int.from_bytes(digest[:8], "big") % len(parameter.values)]
    values: dict[str, Any] = {p.name: p.base(texts[p.name]) for p in lab.parameters}
    for parameter in lab.parameters:
        if parameter.unit in ("B", "count"):
            values[parameter.name] = int(values[parameter.name])
    return Parameters(values, texts)


def folder_name(lab: Lab, student: str) -> str:
    """A folder name for a student's lab: letters, digits, ``.-_`` and a hash, for any id."""
    shown = unicodedata.normalize("NFKC", shown_id(student)).casefold()  # with its blanks, to be read; the hash is of what counts
    plain = unicodedata.normalize("NFKD", shown).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:32].strip("-")
    return f"lab{lab.key}-{slug or 'student'}-{hashlib.sha256(normal_id(student).encode()).hexdigest()[:6]}"


@dataclass(frozen=True)
class Sealed:
    """A prediction when first seen: ``check`` is the number of that check, ``late`` whether the answer was already present."""

    text: str
    check: int
    late: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", plain_direction(self.text))


@dataclass(frozen=True)
class State:
    """The contents of ``.lab.toml``. ``token`` is drawn at the start: folders with the same token come from the same start."""

    student: str
    lab: str
    version: int
    seed: int
    token: str
    checks: int = 0
    sealed: Mapping[str, Sealed] = field(default_factory=dict)
    hints: Mapping[str, int] = field(default_factory=dict)
    seal: str = ""

    def computed_seal(self) -> str:
        """A hash over everything that must not be edited. It is unkeyed: it detects accidental changes, not forgery."""
        told = [self.student, self.lab, str(self.version), str(self.seed), self.token]
        told += [f"{k}={s.text!r}@{s.check}{'late' if s.late else ''}" for k, s in sorted(self.sealed.items())]
        told += [f"{k}:{n}" for k, n in sorted(self.hints.items())]
        return hashlib.sha256("\0".join(told).encode()).hexdigest()[:32]

    @property
    def intact(self) -> bool:
        """Whether the file is unedited."""
        return self.seal == self.computed_seal()


def new_state(lab: Lab, student: str) -> State:
    """The state of a student who begins, sealed."""
    state = State(shown_id(student), lab.name, lab.version, seed_of(lab, student), secrets.token_hex(8))
    return replace(state, seal=state.computed_seal())


def read_text(file: Path, what: str) -> str:
    """The text of a file in a student's folder: a plain file of bounded size in UTF-8, no link. InputError otherwise."""
    try:
        if file.is_symlink() or not file.is_file():
            raise InputError(f"{what} is missing" if not os.path.lexists(file) else f"{what} is no plain file", file, code="not-found")
        size = file.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(f"{what} has {size} B; at most {LARGEST_FILE} B are read", file, code="out-of-range")
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {what}: {error.strerror}", file, code="unreadable-file") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{what} is not UTF-8 text; save it as UTF-8", file, line, code="unreadable-file") from None


def read_toml(file: Path, what: str) -> tuple[str, dict[str, Any]]:
    """(text, tables) of a TOML file in a student's folder; InputError with file and line for any invalid content."""
    text = read_text(file, what).replace("\r\n", "\n")
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        found = re.search(r"\(at line (\d+)[^)]*\)", said)
        line = int(found[1]) if found else text.count("\n") + 1
        plain = said.replace(found[0], "").strip() if found else said
        advice, line = _advice(text, line)
        raise InputError(f"not valid TOML: {plain}{advice}", file, line, code="unreadable-file") from None
    except (RecursionError, ValueError, OverflowError):
        raise InputError("not valid TOML: nested too deep, or a number too long", file, code="unreadable-file") from None


_CURLY = "“”„‟‘’‚‛«»"


def _advice(text: str, line: int) -> tuple[str, int]:
    """(the likely mistake behind a syntax error at ``line``, the line where it was made)."""
    lines = text.split("\n")
    begun = _unclosed_text(lines[:line], line >= len(lines))
    if begun:
        return f'; the closing """ of the text that begins in line {begun} is missing', begun
    if line > len(lines) or not lines[line - 1].strip():
        line = next((i for i, one in enumerate(lines, 1) if _open_quote(_value(one))), line)
    value = _value(lines[line - 1]) if 0 < line <= len(lines) else ""
    if value[:1] and value[0] in _CURLY:
        return '; these are curly quotes: write straight ones, as in latency = "1.5 ms"', line
    if value and not value.startswith(('"', "'", "[")):
        return '; an answer stands between quotes, as in latency = "1.5 ms"', line
    if _open_quote(value):
        curly = " (a curly one does not count)" if value[-1] in _CURLY else ""
        return f"; the closing quote {value[0]} is missing{curly}", line
    return "", line


def _value(line: str) -> str:
    return "" if line.lstrip().startswith("#") else line.partition("=")[2].strip()


def _open_quote(value: str) -> bool:
    """Whether a value begins with a quote that is not closed on its line."""
    return value.startswith(('"', "'")) and value[:3] != value[:1] * 3 and value.count(value[0]) % 2 == 1


def _unclosed_text(lines: list[str], to_end: bool) -> int:
    """The line of an unclosed multi-line text, which extends to the next one or the end of the sheet; 0 if there is none."""
    begun = 0
    for number, line in enumerate(lines, 1):
        if begun and re.match(r'\s*[\w"-]+\s*=\s*"""', line):
            return begun
        if line.count('"""') % 2 and (begun or not line.lstrip().startswith("#")):
            begun = 0 if begun else number
    return begun if to_end else 0


def read_state(folder: Path) -> State:
    """The folder's ``.lab.toml``. Raises InputError in one line when it is missing or invalid."""
    file = folder / STATE
    if not os.path.lexists(file):
        raise InputError("no lab was started in this folder: its .lab.toml is missing; see 'retrompi lab start'", folder, code="not-found")
    _, data = read_toml(file, "the lab's own file")
    try:
        state = State(
            student=_text(data["student"]), lab=_text(data["lab"]), version=_whole(data["version"]), seed=_whole(data["seed"]),
            token=_text(data["token"]), checks=_whole(data["checks"]),
            sealed={_text(k): Sealed(_text(v["text"]), _whole(v["check"]), bool(v["late"])) for k, v in data.get("sealed", {}).items()},
            hints={_text(k): _whole(v) for k, v in data.get("hints", {}).items()}, seal=_text(data["seal"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        said = "not the file that 'retrompi lab start' wrote: a key is missing or of another kind; start the lab again"
        raise InputError(said, file, code="unreadable-file") from None
    normal_id(state.student)
    return state


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def state_text(state: State) -> str:
    """The contents of ``.lab.toml``, with the seal that the state has."""
    lines = ["# Kept by 'retrompi lab'; a change by hand is seen and reported."]
    lines += [f"{k} = {toml_text.value(getattr(state, k))}" for k in ("student", "lab", "version", "seed", "token", "checks", "seal")]
    if state.hints:
        lines += ["", "[hints]", *(f"{toml_text.quote(k)} = {n}" for k, n in sorted(state.hints.items()))]
    for name, one in sorted(state.sealed.items()):
        lines += ["", f"[sealed.{toml_text.quote(name)}]"]
        lines += [f"text = {toml_text.quote(one.text)}", f"check = {one.check}", f"late = {toml_text.value(one.late)}"]
    return "\n".join(lines) + "\n"


def write_state(folder: Path, state: State) -> State:
    """Seal a state and write it as ``.lab.toml``, atomically; returns it as written. InputError if it cannot be written."""
    sealed = replace(state, seal=state.computed_seal())
    beside = folder / f"{STATE}.new"
    try:
        beside.write_text(state_text(sealed), encoding="utf-8")
        os.replace(beside, folder / STATE)
    except OSError as error:
        raise InputError(f"cannot write the lab's own file: {error.strerror}", folder / STATE, code="unwritable-file") from None
    return sealed


def find(where: str | None) -> Path:
    """The student's folder given by ``where``: a folder, or a lab's number or name in or below the current folder; None: current folder."""
    from retrompi.labs import lab as _lab

    if where is not None and (Path(where) / STATE).is_file():
        return Path(where)
    here = Path.cwd()
    places = [here] if (here / STATE).is_file() else sorted(f.parent for f in here.glob(f"*/{STATE}"))
    if where is None:
        if len(places) == 1:
            return places[0]
        if not places:
            raise UsageError(
                "no lab was started here or in a folder below; see 'retrompi lab list' and 'retrompi lab start'", code="not-found"
            )
        raise UsageError(f"{len(places)} labs were started below; say which: {', '.join(p.name for p in places[:8])}", code="not-found")
    if Path(where).is_dir():
        raise UsageError(f"no lab was started in {where}: its .lab.toml is missing; see 'retrompi lab start'", code="not-found")
    wanted = _lab.lab(where).name
    found = [p for p in places if read_state(p).lab == wanted]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"lab {wanted} was not started here or in a folder below; see 'retrompi lab start'", code="not-found")
    raise UsageError(
        f"lab {wanted} was started in several folders below; say which: {', '.join(p.name for p in found[:8])}", code="not-found"
    )
