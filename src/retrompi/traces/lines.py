"""The lines of a trace as text, for rewriting traces: splitting, joining, renumbering ranks, communicators and windows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from retrompi._engine import Trace
from retrompi.spec.declare.calls import BY_NAME, Family, Form, names

from .errors import TraceError

__all__ = [
    "COLLECTIVES",
    "COMM_MAKERS",
    "FAMILIES",
    "PERSISTENT",
    "RECVS",
    "SENDS",
    "Renumber",
    "join",
    "not_held",
    "parse_group",
    "rank_lines",
    "show_group",
    "split",
    "whole",
]

_RENUMBERED = ("peer", "group", "comm", "window")
SENDS = names(Family.SEND)
RECVS = names(Family.RECEIVE)
PERSISTENT = names(Family.PERSISTENT)
FAMILIES = names(Form.ALL)
COMM_MAKERS = names(Family.MAKES_COMM)
COLLECTIVES = names(Family.COLLECTIVE, Family.NEIGHBOUR)
ONE_SIDED = names(Family.TRANSFER)
_NAMED = {
    name: named
    for name, call in BY_NAME.items()
    if not call.form.vectors and (named := [(i, a.means) for i, a in enumerate(call.form.arguments) if a.means in _RENUMBERED])
}
"""The calls whose lines name ranks of MPI_COMM_WORLD, communicators or windows: where."""

_ATTRIBUTE = re.compile(r"[a-z]+=")


def rank_lines(trace: Trace, rank: int) -> tuple[list[str], list[int]]:
    """A rank's lines (sizes in bytes; marks as comments) and the line number of each in its file."""
    texts = trace.to_ti(rank).splitlines()
    numbers = [int(action[0]) for action in trace.rank_actions(rank)]
    if len(texts) != len(numbers):  # to_ti writes one line per action
        raise AssertionError(f"{len(texts)} lines of {len(numbers)} actions")
    return texts, numbers


def not_held(trace: Trace) -> list[tuple[str, int, str, str]]:
    """Lines of the files of a trace that no replay supports and that are not among its actions, as ``(file, line, action, reason)``, at
    most 1000. Rewriting the trace would lose them.
    """
    refused = trace.unsupported()
    if not refused:
        return []
    held: dict[str, set[int]] = {}
    for rank, file in enumerate(trace.files):
        held.setdefault(file, set()).update(int(action[0]) for action in trace.rank_actions(rank))
    return [row for row in refused if row[1] not in held.get(row[0], ())]


def whole(trace: Trace) -> Trace:
    """``trace`` if all lines of its files are among its actions; else raises ``TraceError`` for the first that is not."""
    lost = not_held(trace)
    if lost:
        file, line, action, reason = lost[0]
        more = f" ({len(lost)} such lines)" if len(lost) > 1 else ""
        raise TraceError(f"{action} would be lost: {reason}{more}", file, line, code="lossy-conversion")
    return trace


def split(line: str) -> tuple[str, list[str], dict[str, str]]:
    """Action, arguments and attributes of a line; a comment has the action ``#``."""
    words = line.split()
    if not words or words[0].startswith("#"):
        return "#", words[1:], {}
    attributes: dict[str, str] = {}
    while len(words) > 2 and _ATTRIBUTE.match(words[-1]):
        key, _, value = words.pop().partition("=")
        attributes[key] = value
    return words[1], words[2:], attributes


def join(rank: int, action: str, arguments: Sequence[str], attributes: Mapping[str, str]) -> str:
    """The line with this action, arguments and attributes; the inverse of `split`."""
    return " ".join([str(rank), action, *arguments, *(f"{k}={v}" for k, v in reversed(list(attributes.items())))])


def parse_group(text: str) -> list[int]:
    """World ranks of a group from its text: ``0,4-6,10-30:10,9-7``."""
    out: list[int] = []
    for part in text.split(","):
        span, _, step = part.partition(":")
        ends = [int(x) for x in span.split("-")]
        first, last = ends[0], ends[-1]
        way = 1 if first <= last else -1
        out += range(first, last + way, way * int(step or 1))
    return out


def show_group(ranks: Sequence[int]) -> str:
    """The text of a group; the inverse of `parse_group`, keeping the order."""
    out: list[str] = []
    i = 0
    while i < len(ranks):
        step = ranks[i + 1] - ranks[i] if i + 1 < len(ranks) else 0
        j = i + 1
        while step > 0 and j + 1 < len(ranks) and ranks[j + 1] - ranks[j] == step:
            j += 1
        if step > 0 and j - i >= 2:
            out.append(f"{ranks[i]}-{ranks[j]}" + (f":{step}" if step > 1 else ""))
            i = j + 1
        else:
            out.append(str(ranks[i]))
            i += 1
    return ",".join(out)


class Renumber:
    """Rewrites the numbers in lines: ``rank`` of the world, ``comm`` (0: MPI_COMM_WORLD, which may be replaced) and ``win``.

    ``world`` is written as ``comm=`` on collectives and other calls over MPI_COMM_WORLD that have none; None adds nothing.
    """

    def __init__(self, rank: Callable[[int], int], comm: Callable[[int], int], win: Callable[[int], int], world: int | None = None) -> None:
        self.rank = rank
        self.comm = comm
        self.win = win
        self.world = world
        self._renumbered: dict[str, Callable[[str], str]] = {
            "peer": self._r,
            "group": self._group,
            "comm": lambda text: str(comm(int(text))) if int(text) > 0 else text,
            "window": lambda text: str(win(int(text))),
        }

    def _r(self, text: str) -> str:
        value = int(text)
        return str(self.rank(value)) if value >= 0 else text

    def _group(self, text: str) -> str:
        return show_group([self.rank(r) for r in parse_group(text)])

    def line(self, line: str) -> str:
        """The line renumbered; comments are unchanged."""
        words = line.split(None, 2)
        if words[0].startswith("#"):
            return line
        rank = self.rank(int(words[0]))
        if words[1] in ("compute", "sleep", "kernel", "init", "finalize"):
            return " ".join([str(rank), *words[1:]])
        action, a, attributes = split(line)
        self._arguments(action, a)
        if "comm" in attributes:
            attributes["comm"] = str(self.comm(int(attributes["comm"])))
        elif self.world is not None and (
            action in COLLECTIVES or (action in COMM_MAKERS and a and action != "comm_create_group") or action == "win_create"
        ):
            attributes = {"comm": str(self.world), **attributes}
        if "win" in attributes:
            attributes["win"] = str(self.win(int(attributes["win"])))
        if "from" in attributes:
            parts = [p.rpartition(":") for p in attributes["from"].split(",")]
            attributes["from"] = ",".join(f"{req}{colon}{self._r(r)}" for req, colon, r in parts)
        return join(rank, action, a, attributes)

    def _arguments(self, action: str, a: list[str]) -> None:
        for i, means in _NAMED.get(action, ()):
            if i < len(a):  # a request that is named needs no source and destination
                a[i] = self._renumbered[means](a[i])
