"""Placements: which host runs each rank, by a word, a list of hosts, the slots of a hostfile, or a name of the platform's file.

``natural`` is what a job gets when its user says nothing: the word that the platform's file declares (``natural = "block"``), otherwise
``shared`` on the only host, ``block`` where a host has several processors, as mpirun fills the slots of SMP nodes, and ``distributed``, one
rank on each host in turn, where every host has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec.host import Host
from retrompi.spec.machine.composition import with_size

__all__ = ["DECLARABLE", "NATURAL", "WORDS", "Placement", "limit_per_host", "natural", "normal", "place_ranks", "placement_text",
           "read_hostfile", "spreads"]

NATURAL = "natural"
DECLARABLE = ("shared", "distributed", "block", "cyclic")
"""Words that every platform has, and that it may declare as natural."""
WORDS = (NATURAL, *DECLARABLE)
MOST_RANKS = 1 << 24
_FILL = "fill:"
_LIMITED = re.compile(r"(block|cyclic):([0-9]{1,8})")
_COUNTED = re.compile(r"(.+)\*([0-9]{1,8})")


class Placement(list[int]):
    """The host index of every rank; ``cores``: the core to which each is pinned, () if the scheduler chooses."""

    def __init__(self, hosts: Iterable[int], cores: Iterable[int] = ()) -> None:
        super().__init__(hosts)
        self.cores = tuple(cores)


def natural(hosts: Sequence[Host], declared: str) -> str:
    """The natural placement of a platform: ``declared``, or by the processors of its hosts."""
    if declared or len(hosts) == 1:
        return declared or "shared"
    return "block" if any(h.cores > 1 for h in hosts) else "distributed"


def normal(text: str, platform: str, hosts: Sequence[Host], named: Mapping[str, Placement], declared: str) -> str | list[int]:
    """A placement in normal form: a word, ``block:N`` or ``cyclic:N`` (at most N ranks a host), ``fill:HOST*N,...`` (these slots in order),
    a name of ``named``, or the host index of every rank, written as hosts by name or index, ``n1*8,n2`` for nine ranks.

    Raises UsageError for an unknown name, a count of 0, or more ranks than any trace may have.
    """
    text = text.strip()
    if text == NATURAL:
        return natural(hosts, declared)
    if text in DECLARABLE or text in named:
        return text
    limit = _LIMITED.fullmatch(text)
    if limit is not None:
        if int(limit[2]) < 1:
            raise UsageError(f"placement '{text}': a host takes at least 1 rank", code="out-of-range")
        return f"{limit[1]}:{int(limit[2])}"
    slots = text.startswith(_FILL)
    listed = _parse_list(text.removeprefix(_FILL), platform, hosts, named)
    if sum(n for _, n in listed) > MOST_RANKS:
        raise UsageError(f"placement '{text[:60]}' names more than {MOST_RANKS} ranks", code="out-of-range")
    if slots:
        return _FILL + ",".join(f"{hosts[i].name}*{n}" for i, n in listed)
    return [i for i, n in listed for _ in range(n)]


def _parse_list(text: str, platform: str, hosts: Sequence[Host], named: Mapping[str, Placement]) -> list[tuple[int, int]]:
    """(host index, count) of each item of a list."""
    index = {h.name: i for i, h in enumerate(hosts)}
    found = []
    for item in (part.strip() for part in text.split(",")):
        counted = None if item in index else _COUNTED.fullmatch(item)
        name, n = (counted[1].strip(), int(counted[2])) if counted else (item, 1)
        if n < 1:
            raise UsageError(f"placement: '{item}' puts no rank on {name}", code="out-of-range")
        if name in index:
            found.append((index[name], n))
        elif name.isdecimal() and len(name) < 9 and int(name) < len(hosts):
            found.append((int(name), n))
        else:
            valid = [*WORDS, *named, *index]
            raise UsageError(
                f"no placement or host '{name}' on platform '{platform}'{nearest(name, valid)} "
                "(or a host for every rank: n1,n2 or n1*8,n2*8; block:N, cyclic:N: at most N a host)", code="unknown-host",
            )
    return found


def spreads(mode: str) -> bool:
    """Whether a placement says only how ranks are spread over the hosts, or the slots of some, and not the host of each rank."""
    return mode in (NATURAL, "distributed", "block", "cyclic") or mode.startswith(_FILL) or _LIMITED.fullmatch(mode) is not None


def place_ranks(mode: str | Sequence[int], ranks: int, platform: str, hosts: Sequence[Host], named: Mapping[str, Placement]) -> Placement:
    """The host index of every rank for a placement in normal form. Raises UsageError if it has no place for as many ranks."""
    if mode == "shared":
        return Placement([0] * ranks)
    if mode == "distributed":
        return Placement(r % len(hosts) for r in range(ranks))
    if isinstance(mode, str) and mode in named:
        return _first(named[mode], ranks, f"placement '{mode}' of platform '{platform}'")
    if isinstance(mode, str) and mode.startswith(_FILL):
        listed = [(i, n) for i, n in _parse_list(mode.removeprefix(_FILL), platform, hosts, {})]
        return _first(Placement(i for i, n in listed for _ in range(n)), ranks, f"placement '{mode[:60]}'")
    if isinstance(mode, str):
        word, _, limit = mode.partition(":")
        slots = [int(limit)] * len(hosts) if limit else [max(1, int(h.cores)) for h in hosts]
        if limit and ranks > sum(slots):
            wanted = -(-ranks // int(limit))
            raise UsageError(
                f"'{mode}' puts at most {limit} ranks on each of the {len(hosts)} hosts of '{platform}': {sum(slots)}, not {ranks}; "
                f"{with_size(platform, wanted)} has enough hosts", code="bad-placement",
            )
        order = _block(slots) if word == "block" else _cyclic(slots)
        # More ranks than processors: another round, as if each processor ran several ranks.
        return Placement(order[r % len(order)] for r in range(ranks))
    found = Placement((int(i) for i in mode), getattr(mode, "cores", ()))
    if len(found) != ranks:
        raise UsageError(f"{len(found)} hosts are named for {ranks} ranks", code="bad-placement")
    for i in found:
        if not 0 <= i < len(hosts):
            raise UsageError(f"host index {i} is not in 0..{len(hosts) - 1} of platform '{platform}'", code="unknown-host")
    return found


def _first(of: Placement, ranks: int, what: str) -> Placement:
    if len(of) < ranks:
        raise UsageError(f"{what} is for {len(of)} ranks, not {ranks}", code="bad-placement")
    return Placement(of[:ranks], of.cores[:ranks])


def _block(slots: Sequence[int]) -> list[int]:
    return [i for i, n in enumerate(slots) for _ in range(n)]


def _cyclic(slots: Sequence[int]) -> list[int]:
    """One on each host in turn, full hosts left out."""
    return [i for turn in range(max(slots)) for i, n in enumerate(slots) if n > turn]


def limit_per_host(mode: str, most: int) -> str:
    """A placement by a word (in normal form) with at most ``most`` ranks a host. Raises UsageError for one that names its hosts."""
    word = {"distributed": "cyclic"}.get(mode, mode)
    if most < 1:
        raise UsageError(f"--per-host {most}: a host takes at least 1 rank", code="out-of-range")
    if word in ("block", "cyclic"):
        return f"{word}:{most}"
    if mode.startswith(_FILL):
        return _FILL + ",".join(
            f"{name}*{min(int(n), most)}" for name, _, n in (x.rpartition("*") for x in mode.removeprefix(_FILL).split(","))
        )
    raise UsageError(
        f"--per-host limits block, cyclic and hostfiles; '{mode}' says itself which host runs each rank", code="conflicting-options"
    )


def read_hostfile(file: Path, platform: str, hosts: Sequence[Host]) -> str:
    """A hostfile of mpirun as a placement ``fill:...``: a line per host, ``HOST``, ``HOST:N`` or ``HOST slots=N`` (``max_slots=`` is
    ignored); ``#`` begins a comment. Without a number a host has as many slots as processors; one named again gets more.

    Raises InputError with file and line for an unknown host or a wrong line.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"this hostfile cannot be read: {reason}", file, code="unreadable-file") from None
    names = {h.name: h for h in hosts}
    slots: dict[str, int] = {}
    for number, raw in enumerate(lines, 1):
        words = raw.partition("#")[0].replace(":", " slots=", 1).split()
        if not words:
            continue
        name, *rest = words
        if name not in names:
            raise InputError(f"no host '{name}' on platform '{platform}'{nearest(name, names)}", file, number, code="unknown-host")
        given = int(names[name].cores)
        for word in rest:
            key, _, value = word.partition("=")
            if (
                key not in ("slots", "max_slots", "max-slots")
                or not value.isdecimal()
                or not 1 <= int(value[:9]) <= MOST_RANKS
                or len(value) > 9
            ):
                raise InputError(
                    f"'{word}' is not slots=N from 1 on; examples: {name}, {name}:4, {name} slots=4", file, number, code="bad-syntax"
                )
            given = int(value) if key == "slots" else given
        slots[name] = slots.get(name, 0) + given
    if not slots:
        raise InputError("no host in this hostfile", file, code="empty-file")
    if sum(slots.values()) > MOST_RANKS:
        raise InputError(f"more than {MOST_RANKS} slots", file, code="out-of-range")
    return _FILL + ",".join(f"{name}*{n}" for name, n in slots.items())


def placement_text(placement: Sequence[int], hosts: Sequence[Host], most: int = 6) -> str:
    """A placement in words: ``n1*8,n2*8``, cut after ``most`` items."""
    runs: list[list[int]] = []
    for i in placement:
        if runs and runs[-1][0] == i:
            runs[-1][1] += 1
        else:
            runs.append([i, 1])
    text = ",".join(f"{hosts[i].name}*{n}" if n > 1 else hosts[i].name for i, n in runs[:most])
    return text + (f",... ({len(placement)} ranks on {len(set(placement))} hosts)" if len(runs) > most else "")
