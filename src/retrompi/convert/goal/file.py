"""GOAL schedules (LogGOPSim's text form): a graph of sends, receives and calculations for each rank."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from retrompi.base.files import read_bytes
from retrompi.traces.errors import TraceError

__all__ = ["ANY", "Op", "is_goal", "operations_of", "parse_goal"]

ANY = -1
MAX_RANKS = 1 << 22
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_TOKEN = re.compile(r"[ \t\r;]+|(?P<nl>\n)|(?P<int>-?\d+)|(?P<word>[A-Za-z_]\w*)|(?P<sign>[:{}])|(?P<bad>.)", re.S)


@dataclass(slots=True)
class Op:
    """A send, recv (``size`` in bytes, ``peer`` and ``tag`` -1: any) or calc (``size`` in ns), and the numbers of the rank's operations
    that must be complete (``after``) or started (``after_start``) before it."""

    kind: str
    size: int
    line: int
    peer: int = 0
    tag: int = 0
    cpu: int = 0
    after: list[int] = field(default_factory=list)
    after_start: list[int] = field(default_factory=list)


def operations_of(ns: int, rate: float) -> float:
    """A calculation of ``ns`` nanoseconds in operations, at ``rate`` flop/s."""
    return ns * rate / 1e9


def is_goal(data: bytes) -> bool:
    """Whether a text begins like a GOAL schedule: ``num_ranks N`` after comments."""
    text = _COMMENT.sub(" ", data[:65536].decode("utf-8", "replace"))
    return re.match(r"\s*num_ranks\s+\d", text) is not None


class _Tokens:
    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.items: list[tuple[str, str, int]] = []
        line = 1
        # Comments keep their line ends so that later line numbers stay correct.
        for m in _TOKEN.finditer(_COMMENT.sub(lambda c: "\n" * c[0].count("\n") or " ", text)):
            kind = m.lastgroup
            if kind == "nl":
                line += 1
            elif kind == "bad":
                raise TraceError(f"unexpected {m[0]!r}", name, line)
            elif kind is not None:
                self.items.append((kind, m[0], line))
        self.items.append(("end", "the end of the file", line))
        self.at = 0

    def fail(self, wanted: str) -> TraceError:
        kind, text, line = self.items[self.at]
        return TraceError(f"expected {wanted}, found {text if kind == 'end' else repr(text[:40])}", self.name, line)

    def peek(self) -> str:
        kind, text, _ = self.items[self.at]
        return text if kind in ("word", "sign") else kind

    def line(self) -> int:
        return self.items[self.at][2]

    def word(self, wanted: str) -> None:
        if self.items[self.at][0] == "end" or self.items[self.at][1] != wanted:
            raise self.fail(repr(wanted))
        self.at += 1

    def number(self, what: str, *, any_too: bool = False) -> int:
        kind, text, line = self.items[self.at]
        if kind != "int" or len(text) > 19:
            raise self.fail(what)
        value = int(text)
        if value < 0 and not (any_too and value == ANY):
            raise TraceError(f"{what} of {value}", self.name, line)
        self.at += 1
        return value

    def ident(self, what: str) -> str:
        kind, text, _ = self.items[self.at]
        if kind != "word":
            raise self.fail(what)
        self.at += 1
        return text


def parse_goal(path: Path) -> list[list[Op]]:
    """The operations of all ranks. Raises ``TraceError`` with the line of the error."""
    try:
        text = read_bytes(path).decode("utf-8", "replace")
    except OSError as e:
        raise TraceError(f"cannot be read: {e.strerror or e}", str(path), code="unreadable-file") from e
    t = _Tokens(text, str(path))
    t.word("num_ranks")
    line = t.line()
    count = t.number("a number of ranks")
    if not 1 <= count <= MAX_RANKS:
        raise TraceError(f"num_ranks {count} is not a valid number of ranks", t.name, line, code="bad-syntax")
    ranks: list[list[Op]] = [[] for _ in range(count)]
    seen: dict[int, int] = {}
    while t.peek() != "end":
        t.word("rank")
        line = t.line()
        rank = t.number("a rank")
        if rank >= count:
            raise TraceError(f"rank {rank} of {count} ranks; ranks are 0..{count - 1}", t.name, line, code="unknown-rank")
        if rank in seen:
            raise TraceError(f"rank {rank} has a schedule already, at line {seen[rank]}", t.name, line, code="duplicate-name")
        seen[rank] = line
        t.word("{")
        ranks[rank] = _schedule(t, rank, count)
        t.word("}")
    return ranks


def _schedule(t: _Tokens, rank: int, count: int) -> list[Op]:
    ops: list[Op] = []
    labels: dict[str, int] = {}
    while t.peek() not in ("}", "end"):
        label = None
        if t.peek() not in ("send", "recv", "calc"):
            line = t.line()
            label = t.ident("a label, send, recv, calc or '}'")
            if t.peek() in ("requires", "irequires"):
                _dependency(t, ops, labels, label, line)
                continue
            t.word(":")
            if label in labels:
                raise TraceError(f"label {label} stands before line {ops[labels[label]].line} already", t.name, line, code="duplicate-name")
            labels[label] = len(ops)
        ops.append(_operation(t, rank, count))
    return ops


def _dependency(t: _Tokens, ops: list[Op], labels: dict[str, int], label: str, line: int) -> None:
    kind = t.ident("requires or irequires")
    other = t.ident("a label")
    for name in (label, other):
        if name not in labels:
            raise TraceError(f"there is no label {name} before this line", t.name, line)
    if label == other:
        raise TraceError(f"{label} {kind} itself", t.name, line, code="unknown-rank")
    op = ops[labels[label]]
    (op.after if kind == "requires" else op.after_start).append(labels[other])


def _operation(t: _Tokens, rank: int, count: int) -> Op:
    line = t.line()
    kind = t.ident("send, recv or calc")
    if kind == "calc":
        op = Op(kind, t.number("a time in ns"), line)
    elif kind in ("send", "recv"):
        op = Op(kind, t.number("a size, as in 1024b,"), line)
        t.word("b")
        t.word("to" if kind == "send" else "from")
        op.peer = t.number("a rank", any_too=kind == "recv")
        if op.peer >= count:
            raise TraceError(
                f"{kind} {'to' if kind == 'send' else 'from'} rank {op.peer} of {count} ranks", t.name, line, code="unknown-rank"
            )
        if t.peek() == "tag":
            t.at += 1
            op.tag = t.number("a tag", any_too=kind == "recv")
    else:
        t.at -= 1
        raise t.fail("send, recv or calc")
    for word in ("cpu", "nic"):
        if t.peek() == word:
            t.at += 1
            value = t.number(f"a number of a {word}")
            op.cpu = value if word == "cpu" else op.cpu
    return op
