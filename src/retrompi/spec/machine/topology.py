"""The shapes of links (torus, fat tree, wide-area sites), as text and as the tuples used by the engine.

A shape is a tuple of whole numbers: for a torus the places in each dimension; for a fat tree the children of a switch at each level,
from the hosts upwards, then the parents of each node below a level, then the parallel links to each of them (SimGrid's parameters of a
fat tree); for a wan the site of every host. As text: ``4x4x2``; ``4x8;1x2;1x1``; ``3+3``, or the number of sites of equal size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from retrompi.base.errors import UsageError, nearest

__all__ = ["ACCESS", "DEFAULT_WORDS", "KINDS", "POLICIES", "WORDS", "check", "check_sharing", "check_word", "cubic", "default",
           "grow_shape", "parse_kind", "parse_shape", "parse_sites", "parse_word", "places", "text", "words"]  # fmt: skip

KINDS = ("cable", "fat-tree", "hub", "switch", "torus", "wan")
PLATFORM_FILE = "platform-file"
"""The kind of a link that a SimGrid platform file describes (`retrompi.spec.machine.simgrid_platform`), which no user may set."""
POLICIES = ("pair", "stripe")
ACCESS = ("fifo", "csma-cd")
WORDS = {"rail_policy": POLICIES, "access": ACCESS}
"""Choices of a link that any kind may state; the first value is the default."""
DEFAULT_WORDS = {word: values[0] for word, values in WORDS.items()}
SHAPED = {"torus": "4x4x2", "fat-tree": "4x8;1x2;1x1"}
"""Kind -> an example of its shape."""


def parse_kind(text: str) -> str:
    """``text`` if it is a kind of link; else raises UsageError, suggesting the nearest."""
    if text not in KINDS:
        raise UsageError(f"no link kind '{text}'{nearest(text, KINDS)}", code="unknown-name")
    return text


def parse_word(word: str, text: str) -> str:
    """``text`` if it is a value of ``word`` (`WORDS`); else raises UsageError, suggesting the nearest."""
    valid = WORDS[word]
    if text not in valid:
        raise UsageError(f"{word} cannot be '{text}'{nearest(text, valid)}; valid: {', '.join(valid)}", code="unknown-name")
    return text


def words(given: Mapping[str, object], otherwise: Mapping[str, str]) -> dict[str, str]:
    """The value of every word of `WORDS` in ``given``, or that of ``otherwise``. Raises UsageError for a wrong value."""
    return {word: parse_word(word, str(given.get(word, otherwise[word]))) for word in WORDS}


def parse_shape(kind: str, text: str) -> tuple[int, ...]:
    """The shape of a torus or a fat tree from ``4x4x2`` or ``4x8;1x2;1x1`` (the parallel links default to one each).

    Raises UsageError for another kind or a malformed shape.
    """
    if kind not in SHAPED:
        raise UsageError(f"a {kind} has no shape; a torus and a fat-tree have one", code="bad-topology")
    wrong = UsageError(f"'{text}' is not the shape of a {kind}; example: {SHAPED[kind]}", code="bad-topology")
    parts = [part.strip().split("x") for part in text.split(";")]
    if not all(n.strip().isdecimal() and 0 < int(n) <= 1 << 16 for part in parts for n in part):
        raise wrong
    numbers = [[int(n) for n in part] for part in parts]
    if kind == "fat-tree" and len(numbers) == 2:
        numbers.append([1] * len(numbers[0]))
    if len(numbers) != (1 if kind == "torus" else 3) or len({len(part) for part in numbers}) != 1:
        raise wrong
    return tuple(n for part in numbers for n in part)


def parse_sites(text: str, hosts: int) -> tuple[int, ...]:
    """The site of each of ``hosts`` hosts in file order: ``4+2`` has four at the first, ``3`` means three sites of equal size.

    Raises UsageError for malformed sites or another number of hosts.
    """
    sizes = [part.strip() for part in text.split("+")]
    if not all(s.isdecimal() and int(s) > 0 for s in sizes):
        raise UsageError(f"'{text}' is not a list of sites; example: 3+3 (hosts at each), or 2 (sites of like size)", code="bad-topology")
    if len(sizes) == 1:
        n = int(sizes[0])
        if not 2 <= n <= hosts:
            raise UsageError(f"{hosts} hosts cannot be at {n} sites; 2 at least, and one host at each", code="bad-topology")
        return tuple(i * n // hosts for i in range(hosts))
    found = tuple(site for site, size in enumerate(sizes) for _ in range(int(size)))
    if len(found) != hosts:
        raise UsageError(f"sites {text} cover {len(found)} hosts, but there are {hosts}", code="bad-topology")
    return found


def check_word(word: str, text: str) -> None:
    """Raises UsageError if ``text`` is never valid as a ``kind``, ``shape``, ``sites`` or word (`WORDS`) of a link."""
    if word == "shape":
        parse_shape("fat-tree" if ";" in text else "torus", text)
    elif word == "sites":
        parse_sites(text, sum(map(int, found)) if len(found := re.findall(r"\d+", text)) > 1 else 1 << 16)
    else:
        parse_kind(text) if word == "kind" else parse_word(word, text)


def check_sharing(kind: str, access: str, buffer: float) -> None:
    """Raises UsageError for an access rule of what is no hub, or a ``buffer`` (B) of what has no output ports."""
    if access != DEFAULT_WORDS["access"] and kind != "hub":
        raise UsageError(f"a {kind} has no access rule; a hub has", code="bad-topology")
    if buffer > 0 and kind in ("hub", "cable"):
        raise UsageError(f"a {kind} has no output ports whose buffer could be {buffer:g} B; a switch has", code="bad-topology")


def places(kind: str, shape: Sequence[int]) -> int:
    """The number of hosts that a shape of this kind can hold."""
    return math.prod(shape[: len(shape) // 3] if kind == "fat-tree" else shape)


def default(kind: str, hosts: int) -> tuple[int, ...]:
    """The default shape of a kind: the most cubic three-dimensional torus, the smallest two-level fat tree with full bisection bandwidth,
    two sites of equal size; () for a kind without a shape."""
    if kind == "torus":
        return cubic(hosts, 3)
    if kind == "fat-tree":
        below = max(1, math.isqrt(hosts - 1) + 1)
        return (below, -(-hosts // below), 1, below, 1, 1)
    if kind == "wan":
        return tuple(i * 2 // hosts for i in range(hosts))
    return ()


def grow_shape(kind: str, shape: Sequence[int], hosts: int) -> tuple[int, ...]:
    """The shape resized for ``hosts`` hosts: a fat tree gets as many switches under its top level as needed, a torus becomes the most
    cubic one, and a copy of a host is at the site of its original."""
    if kind == "torus":
        return cubic(hosts, len(shape))
    if kind == "fat-tree":
        levels = len(shape) // 3
        below = math.prod(shape[: levels - 1])
        return (*shape[: levels - 1], -(-hosts // below), *shape[levels:])
    if kind == "wan":
        return tuple(shape[i % len(shape)] for i in range(hosts))
    return ()


def text(kind: str, shape: Sequence[int]) -> str:
    """A shape as text; empty for a kind without one."""
    if kind == "fat-tree":
        n = len(shape) // 3
        return ";".join("x".join(map(str, shape[i * n : (i + 1) * n])) for i in range(3))
    if kind == "wan":
        return "+".join(str(list(shape).count(site)) for site in range(max(shape, default=-1) + 1))
    return "x".join(map(str, shape))


def check(kind: str, shape: Sequence[int], hosts: int, *, line: bool) -> None:
    """Raises UsageError for a shape too small for ``hosts`` hosts, and for a wan with one site or without a ``line`` between sites."""
    if kind in SHAPED and places(kind, shape) < hosts:
        raise UsageError(f"{places(kind, shape)} places are not enough for {hosts} hosts", code="bad-topology")
    if kind == "wan" and len(set(shape)) < 2:
        raise UsageError("a wan connects two sites or more", code="bad-topology")
    if kind == "wan" and not line:
        raise UsageError("a wan needs wan_bandwidth, e.g. 1544kbps, and wan_latency, e.g. 20ms", code="missing-key")


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
