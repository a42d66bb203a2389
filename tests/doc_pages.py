"""The blocks of README.md and docs/: what is shown as a command, a file, a program, an output, in the order of the page.

Fenced blocks say what they are: ``sh`` (a command a line), ``console`` (``$ `` commands and what they print), ``python``, ``toml``,
``json``; ``text`` and others are shown only. ``title="NAME"``
makes a block a file that the reader has from there on. A block indented by four blanks
is ``sh`` if it begins with a program, else ``text``. A comment ``# exit code N`` says how a command ends, 0 without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")))
PROGRAMS = (
    "retrompi",
    "make",
    "mpiexec",
    "pip",
    "dask",
    "sudo",
    "python",
    "python3",
    "smpicc",
    "mpicc",
    "printf",
    "curl",
    "sh",
    "man",
    "cd",
    "export",
)
SHOWN = ("text", "bash", "c", "cpp", "diff", "fortran", "csv", "html", "ini", "sql", "yaml")
"""Kinds that are neither run nor read, unless they have a title."""

_FENCE = re.compile(r"^(`{3,})(\w*)[ \t]*(.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_CODE = re.compile(r"\s+#.*$")
_EXIT = re.compile(r"#\s*exit code (\d+)")


@dataclass
class Block:
    """A block of a page: its first line's number, its kind, the file that it is, its lines."""

    line: int
    kind: str
    title: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text, with a newline at the end."""
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Command:
    """A command as the page has it, how it must end, and the lines that it must print, in this order."""

    page: str
    line: int
    text: str
    exit_code: int
    promised: tuple[str, ...] = ()

    @property
    def at(self) -> str:
        """``docs/fit.md:12``."""
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """Every block of a page, in order."""
    found: list[Block] = []
    open_: Block | None = None
    fence, before, within_list = "", "", False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        mark = _FENCE.match(line)
        if open_ is not None and fence:
            if line.strip() == fence:
                open_, fence = None, ""
            else:
                open_.lines.append(line)
        elif mark:
            title = _TITLE.search(mark[3])
            open_, fence = Block(number + 1, mark[2] or "?", title[1] if title else ""), mark[1]
            found.append(open_)
        elif line.startswith("    ") and (open_ is not None or not (before.strip() or within_list)):
            if open_ is None:
                words = line.split()
                open_ = Block(number, "sh" if words[0] in PROGRAMS else "text")
                found.append(open_)
            open_.lines.append(line[4:])
        elif line.strip():
            open_ = None
            within_list = bool(re.match(r"\s*([-*]|\d+\.) ", line)) or (within_list and line.startswith("  "))
        before = line
    return found


def _ended(text: str) -> tuple[str, int]:
    """A command without its comment, and its exit code. A ``#`` within quotes begins no comment."""
    code = _EXIT.search(text)
    quoted = re.sub(r"'[^']*'|\"[^\"]*\"", lambda m: "x" * len(m[0]), text)
    comment = _CODE.search(quoted)
    return (text[: comment.start()] if comment else text).strip(), int(code[1]) if code else 0


def _joined(block: Block) -> Iterator[tuple[int, str]]:
    """(line, text) with lines that end in a backslash put together."""
    number, held = block.line, ""
    for offset, line in enumerate(block.lines):
        if not held:
            number = block.line + offset
        held += line
        if held.endswith("\\"):
            held = held[:-1] + " "
        else:
            yield number, held
            held = ""


def commands(page: str, block: Block) -> list[Command]:
    """The commands of a block of kind ``sh`` or ``console``."""
    out: list[Command] = []
    promised: list[str] = []
    for number, line in _joined(block):
        if block.kind == "console" and not line.startswith("$ "):
            promised.append(line)
            continue
        if not line.strip() or line.startswith("#"):
            continue
        if out and promised:
            out[-1] = Command(page, out[-1].line, out[-1].text, out[-1].exit_code, tuple(promised))
            promised = []
        text, code = _ended(line.removeprefix("$ "))
        out.append(Command(page, number, text, code))
    if out and promised:
        out[-1] = Command(page, out[-1].line, out[-1].text, out[-1].exit_code, tuple(promised))
    return out


def every_command() -> list[Command]:
    """All commands of all pages."""
    return [c for page in PAGES for block in blocks(page) if block.kind in ("sh", "console") for c in commands(page, block)]


def squeezed(text: str) -> str:
    """With single blanks: columns may be wider elsewhere."""
    return " ".join(text.split())


def missing(promised: tuple[str, ...], said: str) -> list[str]:
    """Lines that were promised and not printed in this order; an empty line or ``...`` promises nothing."""
    rest, lost = squeezed(said), []
    for line in promised:
        wanted = squeezed(line)
        if not wanted or wanted == "...":
            continue
        at = rest.find(wanted)
        if at < 0:
            lost.append(line)
        else:
            rest = rest[at + len(wanted) :]
    return lost
