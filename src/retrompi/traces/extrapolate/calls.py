"""The calls of a rank, with their peers and numbers separated from what does not depend on the number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from retrompi._engine import Trace
from retrompi.spec.declare.calls import Family, Form, call_of, names
from retrompi.traces.errors import TraceError
from retrompi.traces.lines import join, rank_lines, split

__all__ = ["RecordedCalls", "Shape", "ShapedCall", "read_calls", "write_call"]

_KEYED = names(Form.REQUEST)
_LAWS = (Family.LOCAL, Family.SEND, Family.RECEIVE, Family.EXCHANGE, Family.REQUEST, Family.PROBE, Family.PERSISTENT, Family.COLLECTIVE)
"""The families whose calls are extrapolated where they have no vectors of counts."""
_NUMBERS = {"sent": "bytes", "received": "bytes", "flops": "bytes", "tag": "tag", "requests": "requests"}
"""What an argument means -> the name of its number."""


@dataclass(frozen=True)
class Shape:
    """A call without its peers and numbers: ``action``, and ``form``, its text with ``{}`` for each peer and number.

    ``peers`` and ``names`` give the number of peers and the meaning of the numbers (``tag``, ``bytes``), in the order of ``form``.
    """

    action: str
    form: str
    peers: int
    names: tuple[str, ...]


class ShapedCall(NamedTuple):
    """A call of a rank: its shape, peers, numbers, the computation before it (operations) and its line in the rank's file."""

    shape: Shape
    peers: tuple[int, ...]
    numbers: tuple[int, ...]
    compute: float
    line: int


@dataclass(frozen=True)
class RecordedCalls:
    """The calls of a trace: of each rank, and the name of its file for messages; ``rest[r]`` is computation after the last call."""

    ranks: int
    calls: list[list[ShapedCall]]
    rest: list[float]
    files: list[str]

    def place(self, rank: int, index: int) -> tuple[str, int]:
        """File and line of a call; of the last one if there are fewer."""
        of = self.calls[rank]
        return self.files[rank], of[min(index, len(of) - 1)].line if of else 0


def read_calls(trace: Trace) -> RecordedCalls:
    """The calls of all ranks. Raises TraceError at the first line that no extrapolation is known for."""
    shapes: dict[tuple[str, str, int, tuple[str, ...]], Shape] = {}
    files = list(trace.files)
    if len(files) != trace.ranks:  # a shared file
        files = [files[0]] * trace.ranks
    calls: list[list[ShapedCall]] = []
    rest: list[float] = []
    for rank in range(trace.ranks):
        texts, numbers = rank_lines(trace, rank)
        mine: list[ShapedCall] = []
        known: dict[str, tuple[Shape, tuple[int, ...], tuple[int, ...]]] = {}  # most lines of a rank occur many times
        compute = 0.0
        for text, line in zip(texts, numbers, strict=True):
            found = known.get(text)
            if found is None:
                action, a, attributes = split(text)
                if action == "compute":
                    compute += float(a[0])
                    continue
                try:
                    found = known[text] = _parts(text, rank, action, a, attributes, shapes)
                except _Unknown as e:
                    raise TraceError(f"{action}: {e}", files[rank], line, code="not-recognised") from None
            mine.append(ShapedCall(*found, compute, line))
            compute = 0.0
        calls.append(mine)
        rest.append(compute)
    return RecordedCalls(trace.ranks, calls, rest, files)


def write_call(rank: int, shape: Shape, peers: Sequence[int], numbers: Sequence[int]) -> str:
    """The line of a call of ``rank``."""
    text = shape.form.format(*peers, *numbers, me=rank)
    return text if shape.action == "#" else f"{rank} {text}"


class _Unknown(Exception):
    """The reason why a line cannot be extrapolated."""


def _parts(
    text: str, rank: int, action: str, a: list[str], attributes: dict[str, str],
    shapes: dict[tuple[str, str, int, tuple[str, ...]], Shape],
) -> tuple[Shape, tuple[int, ...], tuple[int, ...]]:
    peers: list[int] = []
    numbers: list[int] = []
    names: list[str] = []

    def peer(value: str) -> str:
        n = int(value)
        if n < 0:  # a wildcard or MPI_PROC_NULL
            return value
        peers.append(n)
        return f"<p{len(peers) - 1}>"

    def number(value: str, name: str) -> str:
        n = float(value)
        if n != int(n):
            raise _Unknown(f"{value} is not a whole number")
        numbers.append(int(n))
        names.append(name)
        return f"<n{len(numbers) - 1}>"

    if action == "#":  # a mark: the sizes and numbers of repetitions in it may follow from the number of ranks
        about = " about " in text
        words = [number(w, "label") if w.isdecimal() and not about else w for w in text.split(" ")]
        return _shape(shapes, "#", _form(" ".join(words), 0, len(numbers)), 0, names), (), tuple(numbers)
    if attributes.get("comm", "0") != "0":
        raise _Unknown(f"on communicator {attributes['comm']}; only calls on MPI_COMM_WORLD are extrapolated")
    call = call_of(action)
    if action in _KEYED:
        words = _key_arguments(a, rank, peer, number)
    elif call is not None and call.family in _LAWS and not call.form.vectors:
        words = list(a)
        for i, argument in enumerate(call.form.arguments[: len(a)]):
            if argument.means in ("peer", "root"):
                words[i] = peer(a[i])
            elif argument.means in _NUMBERS and not a[i].startswith("-"):  # negative: any tag, or a length that is not known
                words[i] = number(a[i], _NUMBERS[argument.means])
    else:
        raise _Unknown("no law is known for its arguments; extrapolated are point-to-point calls and collectives without vectors of counts")
    if "from" in attributes:
        if not attributes["from"].lstrip("-").isdigit():
            raise _Unknown(f"from={attributes['from']}: what several wildcard receives matched")
        attributes = {**attributes, "from": peer(attributes["from"])}
    form = _form(join(0, action, words, attributes).split(" ", 1)[1], len(peers), len(numbers))
    return _shape(shapes, action, form, len(peers), tuple(names)), tuple(peers), tuple(numbers)


def _form(text: str, peers: int, numbers: int) -> str:
    """``text`` as a format string: ``<p0>`` and ``<n0>`` become places for the peers and numbers, ``<me>`` one for the rank."""
    form = text.replace("{", "{{").replace("}", "}}").replace("<me>", "{me}")
    for i in range(peers):
        form = form.replace(f"<p{i}>", "{" + str(i) + "}")
    for i in range(numbers):
        form = form.replace(f"<n{i}>", "{" + str(peers + i) + "}")
    return form


def _key_arguments(a: list[str], rank: int, peer: Callable[[str], str], number: Callable[[str, str], str]) -> list[str]:
    """The arguments of a call that names its request by source, destination and tag, one of which is the rank itself."""
    if not a:
        return a
    tag = a[2] if int(a[2]) < 0 else number(a[2], "tag")
    if int(a[1]) == rank:
        return [peer(a[0]), "<me>", tag, *a[3:]]
    if int(a[0]) == rank:
        return ["<me>", peer(a[1]), tag, *a[3:]]
    return a


def _shape(
    shapes: dict[tuple[str, str, int, tuple[str, ...]], Shape], action: str, form: str, peers: int, names: Iterable[str]
) -> Shape:
    key = action, form, peers, tuple(names)
    found = shapes.get(key)
    if found is None:
        found = shapes[key] = Shape(*key)
    return found
