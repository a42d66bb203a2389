"""The kinds of links, each declared once: which links lie between two hosts, how frames get them, its shape, and what of it can fail.

The names that users may set, the checks of shapes and numbers, cross traffic and failures, SimGrid's platform files, the engine's table
of kinds (`retrompi.spec.compiled.cpp`) and the pages are made of these classes; docs/add-a-link-kind.md adds one.

A shape is a tuple of whole numbers: for a torus the places in each dimension; for a fat tree the children of a switch at each level,
from the hosts upwards, then the parents of each node below a level, then the parallel links to each of them (SimGrid's parameters of a
fat tree); for a wan the site of every host. As text: ``4x4x2``; ``4x8;1x2;1x1``; ``3+3``, or the number of sites of equal size.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import ClassVar

from retrompi.base.errors import UsageError, nearest

__all__ = ["ACCESS", "DEFAULT_WORDS", "KINDS", "PLATFORM_FILE", "POLICIES", "WORDS", "LinkKind", "LinkLayout", "Part", "check_sharing",
           "check_word", "cubic", "of", "parse_kind", "parse_sites", "parse_word", "words"]

POLICIES = ("pair", "stripe")
ACCESS = ("fifo", "csma-cd")
WORDS = {"rail_policy": POLICIES, "access": ACCESS}
"""Choices of a link that any kind may state; the first value is the default."""
DEFAULT_WORDS = {word: values[0] for word, values in WORDS.items()}


class LinkLayout(StrEnum):
    """Which links lie between two cards (``engine/network/routes.cpp``)."""

    MEDIUM = "medium"
    """One for all."""
    LINE = "line"
    """One each way between two hosts."""
    PORTS = "ports"
    """One up from every card, one down to every card."""
    TORUS = "torus"
    TREE = "tree"
    SITES = "sites"
    """Ports at each site, and a line each way between every two sites."""
    FILE = "file"
    """Those of a SimGrid platform file."""


Part = IntEnum("Part", ["HOST", "PAIR", "WHOLE", "SWITCH", "SITE", "WAN", "RAIL"], start=0)
"""What can fail (``engine/network/routes.hpp``: ``Failure::What``)."""

Failed = tuple[Part, int, int]
Shape = tuple[int, ...]


class LinkKind:
    """A kind of link without a shape."""

    name: ClassVar[str]
    layout: ClassVar[LinkLayout]
    wire: ClassVar[str] = "queue"
    """The engine's function ``NAME_wire`` makes the wire on which frames get the links one by one."""
    takes: ClassVar[Collection[str]] = ("buffer",)
    """Which of `check_sharing`'s values it can have."""
    needs: ClassVar[Mapping[str, str]] = {}
    """Optional keys of a link that it must have -> an example of each."""
    example: ClassVar[str] = ""
    """Of a shape that users state; empty: none."""

    @property
    def shared(self) -> bool:
        """Whether one frame at a time crosses it, whoever sends."""
        return self.layout is LinkLayout.MEDIUM

    @property
    def joins_two(self) -> bool:
        """Whether it is between two hosts and no more."""
        return self.layout is LinkLayout.LINE

    @property
    def sited(self) -> bool:
        """Whether its hosts are at sites."""
        return self.layout is LinkLayout.SITES

    @property
    def has_lines(self) -> bool:
        """Whether two hosts can have a link of their own."""
        return self.layout in (LinkLayout.LINE, LinkLayout.TORUS)

    def parse(self, text: str) -> Shape:
        """The shape that a user states, such as ``4x4x2``. Raises UsageError for a malformed one, and if there is none to state."""
        if not self.example:
            raise UsageError(f"a {self.name} has no shape; a torus and a fat-tree have one", code="bad-topology")
        given = [[whole_number(n) or 0 for n in part.split("x")] for part in text.split(";")]
        fit = all(0 < n <= 1 << 16 for part in given for n in part)
        numbers = self.complete(given) if fit else []
        if len(numbers) != self.example.count(";") + 1 or len({len(part) for part in numbers}) != 1:
            raise UsageError(f"'{text}' is not the shape of a {self.name}; example: {self.example}", code="bad-topology")
        return tuple(n for part in numbers for n in part)

    def complete(self, parts: list[list[int]]) -> list[list[int]]:
        """The parts of a shape with those that a user may leave out."""
        return parts

    def parts(self, shape: Sequence[int]) -> list[Sequence[int]]:
        """A shape in its parts."""
        n = len(shape) // (self.example.count(";") + 1)
        return [shape[i : i + n] for i in range(0, len(shape), n)] if n else []

    def text(self, shape: Sequence[int]) -> str:
        """A shape as text; empty for a kind without one."""
        return ";".join("x".join(map(str, part)) for part in self.parts(shape))

    def places(self, shape: Sequence[int]) -> int:
        """The number of hosts that a shape can hold."""
        return math.prod(self.parts(shape)[0])

    def default(self, hosts: int) -> Shape:
        """The shape for so many hosts if none is stated; () for a kind without one."""
        return ()

    def grow(self, shape: Sequence[int], hosts: int) -> Shape:
        """The shape resized for ``hosts`` hosts."""
        return self.default(hosts)

    def check(self, shape: Sequence[int], hosts: int, stated: Collection[str]) -> None:
        """Raises UsageError for a shape too small for ``hosts`` hosts, and if one of `needs` is not among ``stated``."""
        if self.example and self.places(shape) < hosts:
            raise UsageError(f"{self.places(shape)} places are not enough for {hosts} hosts", code="bad-topology")
        if not all(key in stated for key in self.needs):
            listed = ", and ".join(f"{key}, e.g. {like}" for key, like in self.needs.items())
            raise UsageError(f"a {self.name} needs {listed}", code="missing-key")

    def failures(self, word: str, numbers: Sequence[int], shape: Sequence[int]) -> list[Failed]:
        """What the words of a failure mean, such as ``switch`` and the numbers of ``1.0``; nothing if there is no such component.

        Raises UsageError for numbers that do not exist.
        """
        return [(Part.WHOLE, 0, 0)] if (word, *numbers) == (self.name,) and self.layout in (LinkLayout.MEDIUM, LinkLayout.PORTS) else []

    def can_fail(self, shape: Sequence[int]) -> list[str]:
        """The words that `failures` knows, for a message."""
        return [f"'{self.name}'"] if self.failures(self.name, (), shape) else []


class Cable(LinkKind):
    """A cable between two hosts, which carries both directions at once."""

    name, layout, takes = "cable", LinkLayout.LINE, ()


class Hub(LinkKind):
    """One half-duplex medium for all stations, with the rule by which they get it (`ACCESS`)."""

    name, layout, wire, takes = "hub", LinkLayout.MEDIUM, "hub", ("access",)


class Switch(LinkKind):
    """A switch, with a full-duplex port for every card."""

    name, layout = "switch", LinkLayout.PORTS


class PausingSwitch(LinkKind):
    """A switch with flow control (IEEE 802.3x): a card whose frames fill their ``buffer`` in it is asked to pause; none is dropped."""

    name, layout, wire = "pausing-switch", LinkLayout.PORTS, "pause"
    needs: ClassVar[Mapping[str, str]] = {"buffer": "16KiB"}


class Torus(LinkKind):
    """Links between the neighbours in each dimension."""

    name, layout, example = "torus", LinkLayout.TORUS, "4x4x2"

    def default(self, hosts: int) -> Shape:
        """The most cubic three-dimensional one."""
        return cubic(hosts, 3)

    def grow(self, shape: Sequence[int], hosts: int) -> Shape:
        """The most cubic one of as many dimensions."""
        return cubic(hosts, len(shape))


class FatTree(LinkKind):
    """Switches in levels."""

    name, layout, example = "fat-tree", LinkLayout.TREE, "4x8;1x2;1x1"

    def complete(self, parts: list[list[int]]) -> list[list[int]]:
        """The parallel links default to one each."""
        return [*parts, [1] * len(parts[0])] if len(parts) == 2 else parts

    def default(self, hosts: int) -> Shape:
        """The smallest of two levels with full bisection bandwidth."""
        below = max(1, math.isqrt(hosts - 1) + 1)
        return (below, -(-hosts // below), 1, below, 1, 1)

    def grow(self, shape: Sequence[int], hosts: int) -> Shape:
        """As many switches under its top level as needed."""
        levels = len(shape) // 3
        below = math.prod(shape[: levels - 1])
        return (*shape[: levels - 1], -(-hosts // below), *shape[levels:])

    def failures(self, word: str, numbers: Sequence[int], shape: Sequence[int]) -> list[Failed]:
        """``switch 1.0``: level, number."""
        if word != "switch" or len(numbers) != 2:
            return []
        children, parents, _ = self.parts(shape)
        level, number = numbers
        if not 1 <= level <= len(children):
            raise UsageError(f"the tree has levels 1 to {len(children)}", code="out-of-range")
        nodes = math.prod((*parents[:level], *children[level:]))
        if number >= nodes:
            raise UsageError(f"level {level} has switches 0 to {nodes - 1}", code="out-of-range")
        return [(Part.SWITCH, level, number)]

    def can_fail(self, shape: Sequence[int]) -> list[str]:
        """A switch of a level."""
        return ["'switch 1.0' (level, number)"]


class Wan(LinkKind):
    """A switch at every site, and lines between the sites."""

    name, layout = "wan", LinkLayout.SITES
    needs: ClassVar[Mapping[str, str]] = {"wan_bandwidth": "1544kbps", "wan_latency": "20ms"}

    def text(self, shape: Sequence[int]) -> str:
        """``3+3``: the hosts at each site."""
        return "+".join(str(list(shape).count(site)) for site in range(max(shape, default=-1) + 1))

    def default(self, hosts: int) -> Shape:
        """Two sites of equal size."""
        return tuple(i * 2 // hosts for i in range(hosts))

    def grow(self, shape: Sequence[int], hosts: int) -> Shape:
        """A copy of a host is at the site of its original."""
        return tuple(shape[i % len(shape)] for i in range(hosts))

    def check(self, shape: Sequence[int], hosts: int, stated: Collection[str]) -> None:
        """Raises UsageError for one site, or without the line between sites."""
        if len(set(shape)) < 2:
            raise UsageError("a wan connects two sites or more", code="bad-topology")
        super().check(shape, hosts, stated)

    def failures(self, word: str, numbers: Sequence[int], shape: Sequence[int]) -> list[Failed]:
        """``switch 1``: of a site; ``wan 0-2``: a line; ``wan``: all lines."""
        sites = max(shape) + 1
        match word, numbers:
            case "switch", [site] if site < sites:
                return [(Part.SITE, site, 0)]
            case "wan", [a, b] if a != b and max(a, b) < sites:
                return [(Part.WAN, a, b)]
            case "wan", []:
                return [(Part.WAN, a, b) for a in range(sites) for b in range(a + 1, sites)]
        return []

    def can_fail(self, shape: Sequence[int]) -> list[str]:
        """The switches of the sites, and the lines."""
        return [f"'switch 0' to 'switch {max(shape)}'", "'wan'"]


class FromFile(LinkKind):
    """The links of a SimGrid platform file (`retrompi.spec.machine.simgrid_platform`), which no user may set."""

    name, layout = "platform-file", LinkLayout.FILE


KINDS: Mapping[str, LinkKind] = {cls.name: cls() for cls in (Cable, FatTree, Hub, PausingSwitch, Switch, Torus, Wan)}
PLATFORM_FILE = FromFile.name


def of(kind: str) -> LinkKind:
    """The kind of a link by its name."""
    return FromFile() if kind == PLATFORM_FILE else KINDS[kind]


def parse_kind(text: str) -> str:
    """``text`` if it is a kind of link; else raises UsageError, suggesting the nearest."""
    if text not in KINDS:
        raise UsageError(f"no link kind '{text}'{nearest(text, KINDS)}", code="unknown-name")
    return text


def parse_word(word: str, text: str) -> str:
    """``text`` if it is a value of ``word`` (`WORDS`); else raises UsageError, suggesting the nearest."""
    valid = WORDS[word]
    if text not in valid:
        raise UsageError(f"{word} cannot be '{text}'{nearest(text, valid)}", code="unknown-name")
    return text


def words(given: Mapping[str, object], otherwise: Mapping[str, str]) -> dict[str, str]:
    """The value of every word of `WORDS` in ``given``, or that of ``otherwise``. Raises UsageError for a wrong value."""
    return {word: parse_word(word, str(given.get(word, otherwise[word]))) for word in WORDS}


def whole_number(text: str) -> int | None:
    """The whole number that ``text`` is; None if it is none, or one of more than nine digits."""
    return int(text) if text.strip().isdecimal() and len(text.strip()) <= 9 else None


def _sizes(text: str) -> list[int]:
    """The numbers of ``4+2``; 0 for what is none."""
    return [whole_number(part) or 0 for part in text.split("+")]


def parse_sites(text: str, hosts: int) -> tuple[int, ...]:
    """The site of each of ``hosts`` hosts in file order: ``4+2`` has four at the first, ``3`` means three sites of equal size.

    Raises UsageError for malformed sites or another number of hosts.
    """
    sizes = _sizes(text)
    if not all(sizes):
        raise UsageError(f"'{text}' is not a list of sites; example: 3+3 (hosts at each), or 2 (sites of like size)", code="bad-topology")
    if len(sizes) == 1:
        n = sizes[0]
        if not 2 <= n <= hosts:
            raise UsageError(f"{hosts} hosts cannot be at {n} sites; 2 at least, and one host at each", code="bad-topology")
        return tuple(i * n // hosts for i in range(hosts))
    if sum(sizes) != hosts:
        raise UsageError(f"sites {text} cover {sum(sizes)} hosts, but there are {hosts}", code="bad-topology")
    return tuple(site for site, size in enumerate(sizes) for _ in range(size))


def check_word(word: str, text: str) -> None:
    """Raises UsageError if ``text`` is never valid as a ``kind``, ``shape``, ``sites`` or word (`WORDS`) of a link."""
    if word == "shape":
        next(kind for kind in KINDS.values() if kind.example and (";" in kind.example) == (";" in text)).parse(text)
    elif word == "sites":
        sizes = _sizes(text)
        parse_sites(text, min(sum(sizes), 1 << 20) if len(sizes) > 1 else 1 << 16)
    else:
        parse_kind(text) if word == "kind" else parse_word(word, text)


def check_sharing(kind: str, access: str, buffer: float) -> None:
    """Raises UsageError for an access rule of what is no hub, a ``buffer`` (B) of what has no output ports, or none where one is needed."""
    if access != DEFAULT_WORDS["access"] and "access" not in of(kind).takes:
        raise UsageError(f"a {kind} has no access rule; a hub has", code="bad-topology")
    if buffer > 0 and "buffer" not in of(kind).takes:
        raise UsageError(f"a {kind} has no output ports whose buffer could be {buffer:g} B; a switch has", code="bad-topology")
    if buffer <= 0 and "buffer" in of(kind).needs:
        raise UsageError(f"a {kind} needs a buffer above 0 B, e.g. buffer={of(kind).needs['buffer']}", code="missing-key")


def cubic(n: int, dimensions: int) -> tuple[int, ...]:
    """Similar dimensions of at least two with ``n`` places in all, or more if ``n`` has no such factors."""
    left, shape = n, []
    for k in range(dimensions, 1, -1):
        side = round(left ** (1 / k))
        shape.append(next((d for d in range(side, 1, -1) if left % d == 0 and left // d >= 2 ** (k - 1)), 1))
        left //= shape[-1]
    if left < 2 or 1 in shape:
        side = next(d for d in range(2, n + 2) if d**dimensions >= n)
        return (side,) * (dimensions - 1) + (max(2, -(-n // side ** (dimensions - 1))),)
    return (left, *shape)
