"""A runtime model defined by a measured curve: its folder holds the points (``curve.csv``) and facts about the fit (``fit.toml``).

Hops are curves at every level of fidelity: ``mechanism`` and ``curve`` agree to the picosecond, ``loggp`` is fitted to them.
Matching, order, rendezvous, progress and collectives are the engine's, as for any model.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.sim.fidelity import apply_curves, classes_of, pairs_of
from retrompi.sim.sampling import Sample, SamplePoint
from retrompi.spec.channels import Library, Row, eager, rendezvous, work
from retrompi.spec.channels import Path as MessagePath
from retrompi.spec.layout import Layout
from retrompi.spec.machine.named_host import named_host
from retrompi.spec.media import BLOCK
from retrompi.spec.model import Param, RuntimeModel, fit_tables
from retrompi.spec.platform import Placement, Platform
from retrompi.spec.values import Values

if TYPE_CHECKING:
    from random import Random

    from retrompi.spec.model import StartStep

__all__ = ["COLUMNS", "KINDS", "NEVER", "WORK_COLUMNS", "FittedModel", "fit_meta", "sizes_seen", "work_names"]

KINDS = ("same", "same-cache", "same-bus", "same-apart", "remote")
"""Pair kinds of a curve: two ranks of one host (for pinned ranks: sharing a cache, a bus, neither), or of two."""
COLUMNS = ("pair", "way", "size_B", "send_ps", "transit_ps", "recv_ps", "gap_ps", "port_ps", "both_ps")
WORK_COLUMNS = ("what", "size_B", "ps")
NEVER = "1024 GiB"
"""An eager limit that is never reached."""


class FittedModel(RuntimeModel):
    """Base of the models written by ``retrompi fit`` and ``retrompi calibrate this-machine``; reads ``curve.csv`` and ``fit.toml``."""

    eager_same = Param(NEVER, "B", "messages of one host from this size on ask the receiver first", source="assumed: all are sent at once")
    eager_remote = Param(
        NEVER, "B", "messages between hosts from this size on ask the receiver first", source="assumed: all are sent at once"
    )
    test_cost = Param(
        "0.1 us",
        "s",
        "a call that looks for a message and finds none",
        source="assumed: a hundred instructions or two",
        on="nt-pair:server",
        cost="work",
        low="0 s",
        high="10 us",
    )

    kinds_without_curve: ClassVar[Mapping[bool, str]] = {
        True: "the curve was measured between hosts, nothing is known of two ranks of one: place them apart or fit one of one host",
        False: "the curve was measured on one host, nothing is known of ranks on two: --mode shared, or give 'retrompi fit' --remote FILE",
    }

    @classmethod
    def samples(cls) -> Mapping[str, Sample]:
        """Pair kind (one of `KINDS`) -> its sample."""
        found = read_curves(cls.folder() / "curve.csv")
        connect = fit_meta(cls).get("connect_ps", {})
        return {kind: replace(s, connect=int(connect.get(kind, 0))) for kind, s in found.items()}

    @classmethod
    def _kind(cls, platform: Platform, pair: Placement) -> str | None:
        """The pair kind of the curve for two ranks; None if none was measured."""
        have = read_curves(cls.folder() / "curve.csv")
        if pair[0] != pair[1]:
            return "remote" if "remote" in have else None
        if pair.cores:
            host = platform.hosts[pair[0]]
            cache, bus = (pair.cores[0] // int(n) == pair.cores[1] // int(n) for n in (host.l2_shared_by, host.package_cores))
            special = "same-cache" if cache else "same-bus" if bus else "same-apart"
            if special in have:
                return special
        return "same" if "same" in have else next((k for k in have if k != "remote"), None)

    @classmethod
    def sample(cls, platform: Platform, pair: Placement) -> Sample:
        """The curve of two ranks on the hosts (and cores) of ``pair``. Raises UsageError if none was measured (see `joins`)."""
        kind = cls._kind(platform, pair)
        if kind is None:
            raise UsageError(f"model '{cls.name}': {cls.kinds_without_curve[pair[0] == pair[1]]}", code="wrong-placement")
        return cls.samples()[kind]

    def joins(self, platform: Platform, placement: list[int]) -> str:
        place = placement if isinstance(placement, Placement) else Placement(placement)
        for pair in pairs_of(classes_of(place, platform), place, platform):
            if self._kind(platform, pair.hosts) is None:
                return self.kinds_without_curve[pair.same]
        return ""

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(0, 0, BLOCK, BLOCK)

    def within_host(self, p: Values, layout: Layout) -> MessagePath:
        return MessagePath((), _protocol(p.eager_same))

    def between_hosts(self, p: Values, layout: Layout) -> MessagePath:
        return MessagePath((), _protocol(p.eager_remote))

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.test_cost)

    def compile(self, p: Values, layout: Layout, parts: Collection[str]) -> Row:
        base = super().compile(p, layout, parts)
        if measured := read_work(self.folder() / "work.csv"):
            speed = named_host(self.params()["test_cost"].on, self.folder()).speed  # that of the machine it was measured on
            found = {what: [(size, round(ps * speed)) for size, ps in points] for what, points in measured.items()}
            calls = {what.partition(" ")[2]: points for what, points in found.items() if what.startswith("call ")}
            buffers = (found.get("buffers 1", []), found.get("buffers 2", []))
            base["work"] = work(call=calls, combine=found.get("combine", []), buffers=buffers)
        if self.joins(layout.platform, layout.placement):
            return base  # not run: `simulate.run` reports the reason given by `joins`
        return apply_curves(base, "curve", layout.platform, layout.placement, lambda pair: self.sample(layout.platform, pair.hosts))[0]

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """No steps: starting a job was not measured."""
        return [], ""


def _protocol(eager_below: float) -> list[tuple[float, float, str]]:
    if eager_below <= 0:
        return [rendezvous(0)]
    return [eager(0, eager_below), rendezvous(eager_below)]


def fit_meta(cls: type[RuntimeModel]) -> dict[str, Any]:
    """The table ``meta`` of ``fit.toml`` for a model and its variants; {} if there is none."""
    meta: dict[str, Any] = fit_tables(cls.folder()).get(cls.name.partition(":")[0], {}).get("meta", {})
    return meta


def sizes_seen(cls: type[RuntimeModel]) -> dict[str, tuple[int, ...]]:
    """Pair kind -> the message sizes (bytes) that a model was fitted to; {} for other models."""
    seen = fit_meta(cls).get("sizes_seen", {})
    return {str(kind): tuple(int(s) for s in sizes) for kind, sizes in seen.items()}


def work_names() -> list[str]:
    """The names allowed in ``work.csv``: ``call OPERATION`` (as in a trace), ``combine``, ``buffers 1``, ``buffers 2``."""
    from retrompi._engine import collective_algorithms

    return [*(f"call {operation}" for operation in collective_algorithms()), "combine", "buffers 1", "buffers 2"]


def read_work(file: Path) -> dict[str, list[tuple[int, int]]]:
    """Name (one of `work_names`) -> points (bytes, picoseconds) of a ``work.csv``; {} if there is no such file.

    Raises InputError with file and line for an invalid file.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read what collectives do: {error}; make it again with 'retrompi calibrate this-machine'", file, code="unreadable-file"
        ) from None
    found: dict[str, list[tuple[int, int]]] = {}
    names = work_names()
    for number, line in enumerate(lines, 1):
        cells = line.strip().split(",")
        if not line.strip() or line.startswith("#") or tuple(cells) == WORK_COLUMNS:
            continue
        if len(cells) != len(WORK_COLUMNS) or not all(c.isdigit() for c in cells[1:]):
            raise InputError(
                f"a row is {','.join(WORK_COLUMNS)}; sizes and times are whole numbers from 0 on", file, number, code="bad-fit"
            )
        what, size, ps = cells[0], int(cells[1]), int(cells[2])
        if what not in names:
            raise InputError(f"no work '{what}'{nearest(what, names)}", file, number, code="unknown-name")
        points = found.setdefault(what, [])
        if points and size <= points[-1][0]:
            raise InputError(f"sizes must rise, and {size} follows {points[-1][0]}", file, number, code="bad-fit")
        points.append((size, ps))
    return found


def read_curves(file: Path) -> dict[str, Sample]:
    """The samples of a ``curve.csv``: rows of `COLUMNS`, ``way`` ``there`` or ``back``; without rows ``back`` both directions are alike.

    Raises InputError with file and line for an invalid file.
    """
    try:
        stat = file.stat()
    except OSError as error:
        raise InputError(
            f"cannot read this curve: {error.strerror}; make it again with 'retrompi fit'", file, code="unreadable-file"
        ) from None
    return _read_curves(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _read_curves(file: Path, mtime_ns: int, size: int) -> dict[str, Sample]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read this curve: {error}; make it again with 'retrompi fit'", file, code="unreadable-file") from None
    found: dict[str, dict[str, list[SamplePoint]]] = {}
    head: Sequence[str] | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = next(csv.reader([line]))
        if head is None:
            head = cells
            if tuple(cells) != COLUMNS:
                raise InputError(f"the columns must be {','.join(COLUMNS)}", file, number, code="bad-fit")
            continue
        if len(cells) != len(COLUMNS) or not all(c.isdigit() for c in cells[2:]):
            raise InputError(f"a row is {','.join(COLUMNS)}; sizes and times are whole numbers from 0 on", file, number, code="bad-fit")
        kind, way = cells[:2]
        if kind not in KINDS:
            raise InputError(f"no pair kind '{kind}'{nearest(kind, KINDS)}", file, number, code="unknown-name")
        if way not in ("there", "back"):
            raise InputError(f"the way is 'there' or 'back', not '{way}'", file, number, code="bad-fit")
        point = SamplePoint(*map(int, cells[2:]))
        points = found.setdefault(kind, {"there": [], "back": []})[way]
        if points and point.size <= points[-1].size:
            raise InputError(f"sizes of a curve must rise, and {point.size} follows {points[-1].size}", file, number, code="bad-fit")
        points.append(point)
    bare = next((k for k, ways in found.items() if not ways["there"]), None)
    if not found or bare is not None:
        raise InputError(f"no points{f' of {bare}, there' if bare else ''}; make it again with 'retrompi fit'", file, code="bad-fit")
    return {k: Sample(tuple(w["there"]), tuple(w["back"] or w["there"]), 0) for k, w in found.items()}
