"""A machine room: hosts with an operating system, and the link that joins them, read from one TOML file.

Every number is an inline table ``{value = "120 ms", source = "doc:E-NT-01", help = "..."}``; after loading,
``platform.hosts[0].quantum`` is a float in base units. The keys of a host and of the link are the fields of
`Host` and `Link`: a missing or unknown one is an error, so that no number has a hidden default.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec import topology

__all__ = ["BYTE_ORDERS", "HOST_KEYS", "LINK_KEYS", "LINK_KINDS", "LINK_MORE_KEYS", "LINK_WORDS", "SOURCE_KINDS", "WAN_KEYS",
           "WHOLE_FROM_ONE", "Host", "Link", "Placement", "Platform", "Quantity", "checked"]  # fmt: skip

SOURCE_KINDS = ("paper:", "doc:", "code:", "fit:", "assumed:")
"""How the source of any number begins; what follows says where exactly."""

LINK_KINDS = topology.KINDS
LINK_WORDS = ("kind", "shape", "sites", "rail_policy")
"""What `Platform.with_overrides` takes as ``link.`` beside quantities."""
BYTE_ORDERS = ("little", "big")
HOST_WORDS = ("os", "byte_order")


def _q(unit: str, help: str, default: Any = MISSING) -> Any:
    return field(metadata={"unit": unit, "help": help}, default=default)


@dataclass(frozen=True, slots=True)
class Host:
    """One machine. Floats are in base units: bytes, seconds, bytes/s, seconds/byte, Hz, flop/s."""

    name: str
    os: str
    byte_order: str
    cores: float = _q("count", "number of CPUs")
    speed: float = _q("count", "CPU speed relative to the NT Server of nt-pair")
    flops: float = _q("flop/s", "rate at which a trace's compute amounts run")
    clock: float = _q("Hz", "CPU clock")
    quantum: float = _q("s", "time a thread may run before the scheduler takes the next one")
    tick: float = _q("s", "clock interrupt period to which timed waits are rounded")
    dispatch: float = _q("s", "context switch to a woken thread")
    syscall: float = _q("s", "null system call")
    l1: float = _q("B", "first-level data cache")
    l2: float = _q("B", "second-level cache")
    l2_ways: float = _q("count", "associativity of the second-level cache")
    copy_l1: float = _q("B/s", "copy rate while the working set is in the first-level cache")
    copy_l2: float = _q("B/s", "copy rate while the working set is in the second-level cache")
    copy_mem: float = _q("B/s", "copy rate from main memory")
    boost: float = _q("count", "1 when an event wake-up raises the woken thread above its peers")
    quantum_carry: float = _q("count", "1 when what is left of a quantum outlives a wait")
    wait_charge: float = _q("s", "taken off the quantum for each wait")
    quantum_at_tick: float = _q("count", "1 when a quantum ends only at a clock tick")
    tcp_segment: float = _q("s", "protocol stack CPU time per segment")
    tcp_byte: float = _q("s/B", "protocol stack CPU time per byte")
    interrupt: float = _q("s", "CPU time of one frame's interrupt")
    loopback_segment: float = _q("s", "protocol stack CPU time per segment that stays on the host")
    loopback_mss: float = _q("B", "largest segment that stays on the host")
    window: float = _q("B", "TCP receive window")
    mss: float = _q("B", "largest TCP segment on the wire")
    sndbuf: float = _q("B", "socket send buffer")
    delayed_ack: float = _q("s", "longest time an acknowledgement is held back")
    rto_first: float = _q("s", "TCP's retransmission timer before a round trip has been timed")
    rto_min: float = _q("s", "shortest TCP retransmission timer")
    rto_max: float = _q("s", "longest TCP retransmission timer; it doubles up to this")
    tcp_retries: float = _q("count", "how often TCP sends a segment again before it gives the connection up")
    dup_acks: float = _q("count", "acknowledgements without news that make TCP send a segment again at once")
    nic_rate: float = _q("B/s", "rate of the bus between memory and network card")
    nic_latency: float = _q("s", "fixed time of the network card per frame")
    bus_rate: float = _q("B/s", "rate of memory and bus that both directions of the card share")
    l2_shared_by: float = _q("count", "cores that share a second-level cache")
    package_cores: float = _q("count", "cores that share a bus to the memory")
    line_shared: float = _q("s", "a cache line from a core with which the second-level cache is shared")
    line_bus: float = _q("s", "a cache line from a core's cache across the bus")
    lines_in_flight: float = _q("count", "lines changed by another core that a copy fetches at a time")
    fsb_rate: float = _q("B/s", "rate of a package's front-side bus")

    @property
    def family(self) -> str:
        """``win32`` or ``unix``, by the operating system's name."""
        return "win32" if self.os.startswith("Windows") else "unix"


@dataclass(frozen=True, slots=True)
class Link:
    """What joins the hosts. A cable and a switch carry both directions at once, a hub one frame at a time.

    A torus joins neighbours in each dimension of its ``shape``; hosts take their places in file order, the first dimension fastest. A
    fat tree and sites that a ``wan`` joins have a ``shape`` as well (`topology`). With ``rails`` a host has a card on each of so
    many links of the kind; ``rail_policy`` says whether a pair of hosts has one of them or stripes over all (docs/networks.md).
    """

    kind: str
    shape: tuple[int, ...]
    bandwidth: float = _q("B/s", "signalling rate")
    latency: float = _q("s", "propagation and forwarding time of one frame")
    frame_overhead: float = _q("B", "headers, preamble and gap around the payload of one frame")
    mtu: float = _q("B", "largest IP datagram in one frame")
    rails: float = _q("count", "cards of a host, and planes of the link", default=1.0)
    wan_bandwidth: float = _q("B/s", "rate of the line between two sites, each way", default=0.0)
    wan_latency: float = _q("s", "latency of the line between two sites", default=0.0)
    rail_policy: str = "pair"


def _keys(table: type) -> dict[str, tuple[str, str]]:
    return {f.name: (f.metadata["unit"], f.metadata["help"]) for f in fields(table) if "unit" in f.metadata}


HOST_KEYS: Mapping[str, tuple[str, str]] = _keys(Host)
"""Key of a host -> (unit, help)."""
LINK_MORE_KEYS: Mapping[str, tuple[str, str]] = {k: v for k, v in _keys(Link).items() if k in ("rails", "wan_bandwidth", "wan_latency")}
"""Key that a link may have -> (unit, help): without them it has one rail and joins no sites."""
LINK_KEYS: Mapping[str, tuple[str, str]] = {k: v for k, v in _keys(Link).items() if k not in LINK_MORE_KEYS}
"""Key of every link -> (unit, help)."""

MAX_HOSTS = 1 << 16
_CHANGED, _SIZED = 64, 4
"""Rooms made of a room that are kept with it."""
WAN_KEYS = ("wan_bandwidth", "wan_latency")
WHOLE_FROM_ONE = ("tcp_retries", "dup_acks", "cores", "l2_ways", "l2_shared_by", "package_cores", "rails")
_FLAGS = ("quantum_carry", "quantum_at_tick")
_POSITIVE = ("rto_first", "rto_min", "rto_max",
             "speed", "flops", "quantum", "tick", "l1", "l2", "copy_l1", "copy_l2", "copy_mem", "loopback_mss",
             "window", "mss", "sndbuf", "nic_rate", "bus_rate", "bandwidth", "wan_bandwidth", "mtu", "lines_in_flight",
             "fsb_rate")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number with its provenance: ``text`` as written, ``low``..``high`` its sourced range (base units)."""

    value: float
    unit: str
    text: str
    source: str
    help: str
    low: float | None = None
    high: float | None = None


class Placement(list[int]):
    """The host index of every rank; ``cores`` says to which core of it each is pinned, () where the scheduler chooses."""

    def __init__(self, hosts: Iterable[int], cores: Iterable[int] = ()) -> None:
        super().__init__(hosts)
        self.cores = tuple(cores)


@dataclass(frozen=True)
class Platform:
    """A loaded machine room. ``quantities`` maps ``server.quantum`` or ``link.bandwidth`` to its provenance."""

    name: str
    title: str
    years: str
    summary: str
    hosts: tuple[Host, ...]
    link: Link
    quantities: Mapping[str, Quantity]
    path: Path | None = None
    overridden: frozenset[str] = frozenset()
    placements: Mapping[str, Placement] = field(default_factory=dict)

    def host(self, name: str) -> Host:
        """The host called ``name``; raises UsageError naming the hosts there are."""
        for h in self.hosts:
            if h.name == name:
                return h
        names = [h.name for h in self.hosts]
        raise UsageError(f"platform '{self.name}' has no host '{name}'{nearest(name, names)}", code="unknown-host")

    @cached_property
    def hash(self) -> str:
        """SHA-256 of every name and value: equal for two platforms that simulate alike, overrides included."""
        facts = {
            "hosts": [[h.name, h.os, h.byte_order] for h in self.hosts],
            "kind": self.link.kind,
            "shape": self.link.shape,
            "values": {path: q.value for path, q in self.quantities.items()},
        }
        if self.placements:
            facts["placements"] = {name: [list(p), list(p.cores)] for name, p in self.placements.items()}
        if self.link.rail_policy != "pair":
            facts["rail_policy"] = self.link.rail_policy
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def describe(self) -> list[dict[str, Any]]:
        """Rows path, value, unit, source, help, low, high (values in base units) for cards and tables."""
        return [
            {
                "path": path,
                "value": q.value,
                "text": q.text,
                "unit": q.unit,
                "source": q.source,
                "help": q.help,
                "low": q.low,
                "high": q.high,
            }
            for path, q in self.quantities.items()
        ]

    def placement(self, text: str) -> str | list[int]:
        """A mode as the simulation takes it: ``shared``, ``distributed``, a placement's name, or the host index of every rank.

        ``text`` may also list a host per rank, by name or index: ``workstation,workstation`` or ``0,1,1``.
        """
        if text in ("shared", "distributed", *self.placements):
            return text
        names = [h.name for h in self.hosts]
        indices = []
        for item in (part.strip() for part in text.split(",")):
            if item in names:
                indices.append(names.index(item))
            elif item.isdigit() and int(item) < len(names):
                indices.append(int(item))
            else:
                valid = ["shared", "distributed", *self.placements, *names]
                raise UsageError(
                    f"no mode or host '{item}' on platform '{self.name}'{nearest(item, valid)} "
                    "(or a host for every rank, separated by commas)", code="unknown-host"
                )
        return indices

    def with_overrides(self, sets: Mapping[str, str]) -> Platform:
        """A copy with ``{"host.quantum": "20 ms", "server.cores": "2", "link.bandwidth": "100 Mbps"}`` applied.

        Keys have no ``platform.`` prefix; ``host`` means every host. Raises UsageError on an unknown key, a
        wrong unit or a value that no machine can have.
        """
        key = tuple(sets.items())
        if key not in self._changed_before:
            if len(self._changed_before) >= _CHANGED:
                self._changed_before.clear()
            self._changed_before[key] = self._with(sets)
        return self._changed_before[key]

    @cached_property
    def _changed_before(self) -> dict[tuple[tuple[str, str], ...], Platform]:
        """The newest results of `with_overrides`: the points of a study have few rooms."""
        return {}

    def _with(self, sets: Mapping[str, str]) -> Platform:
        changed: dict[str, Quantity] = {}
        words: dict[str, str] = {}
        # Every host first, one host after: the narrower statement wins whatever the order on the command line.
        for key in sorted(sets, key=lambda k: not k.startswith("host.")):
            text = sets[key]
            if key.removeprefix("link.") in LINK_WORDS and key.startswith("link."):
                words[key.removeprefix("link.")] = text
                continue
            for path in self.paths(key):
                old = self.quantity(path)
                value = checked(path.rpartition(".")[2], text, old.unit, f"platform.{key}")
                changed[path] = replace(
                    old, value=value, text=text, source=f"assumed: set by the user (was {old.text}, {old.source})"
                )
        try:
            room = self._changed(changed, self._linked(words))
            topology.check(room.link.kind, room.link.shape, len(room.hosts), line=all(f"link.{k}" in room.quantities for k in WAN_KEYS))
        except UsageError as error:
            raise UsageError(f"platform.link: {error}", code=error.code) from None
        return replace(room, overridden=self.overridden | set(changed))

    def _linked(self, words: Mapping[str, str]) -> Link:
        """The link with another kind, shape, sites or rail policy. A new kind without a shape gets its default one."""
        kind = topology.parse_kind(words["kind"]) if "kind" in words else self.link.kind
        shape = self.link.shape if kind == self.link.kind else topology.default(kind, len(self.hosts))
        if "shape" in words:
            shape = topology.parse_shape(kind, words["shape"])
        if "sites" in words:
            if kind != "wan":
                raise UsageError(f"a {kind} has no sites; a wan has", code="bad-topology")
            shape = topology.parse_sites(words["sites"], len(self.hosts))
        policy = topology.parse_policy(words["rail_policy"]) if "rail_policy" in words else self.link.rail_policy
        return replace(self.link, kind=kind, shape=shape, rail_policy=policy)

    def with_fit(self, file: Path) -> Platform:
        """A copy with what a calibration found (``[fit.values]``, keys as in `with_overrides`) for ``fit:`` quantities.

        Raises InputError when a value is not of a fitted quantity or lies outside its sourced range.
        """
        try:
            given = tomllib.loads(file.read_text(encoding="utf-8"))["fit"]["values"].items()
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"cannot read this fit: {error}; make it again with 'retrompi calibrate'", file, code="unreadable-file"
            ) from None
        changed: dict[str, Quantity] = {}
        for key, text in given:
            try:
                for path in self.paths(key):
                    old = self.quantities[path]
                    if not old.source.startswith("fit:"):
                        raise UsageError(f"'{key}' is not a fitted quantity of platform '{self.name}'", code="unknown-parameter")
                    value = checked(path.rpartition(".")[2], str(text), old.unit, key)
                    slack = 1e-6 * value  # the text is rounded
                    if (old.low is not None and value < old.low - slack) or (old.high is not None and value > old.high + slack):
                        raise UsageError(f"{key} = {text} lies outside its sourced range", code="out-of-range")
                    changed[path] = replace(old, value=value, text=str(text))
            except UsageError as error:
                raise InputError(str(error), file, code=error.code) from None
        return self._changed(changed, self.link)

    def of_size(self, n: int) -> Platform:
        """The same room with ``n`` hosts, called ``NAME*n``: its own in turn, the later ones as copies ``HOST-2``, ``HOST-3``, ...

        A torus becomes the most cubic one of ``n`` places, or a few more, a fat tree gets the next fitting number of switches, a copy is
        at the site of its original (`topology.grown`). A placement that names a host which is gone goes too.
        For questions of scale; what a switch or hub of that size would have done to its latency is nobody's claim.
        Raises UsageError unless 1 <= n <= 65536.
        """
        if not 1 <= n <= MAX_HOSTS:
            raise UsageError(f"platform '{self.name}' can have 1 to {MAX_HOSTS} hosts, not {n}", code="out-of-range")
        if n not in self._sized_before:
            if len(self._sized_before) >= _SIZED:
                self._sized_before.clear()
            self._sized_before[n] = self._of_size(n)
        return self._sized_before[n]

    @cached_property
    def _sized_before(self) -> dict[int, Platform]:
        """The newest results of `of_size`."""
        return {}

    def _of_size(self, n: int) -> Platform:
        quantities = {path: q for path, q in self.quantities.items() if path.startswith("link.")}
        hosts = []
        for k in range(n):
            original = self.hosts[k % len(self.hosts)]
            copy = k // len(self.hosts)
            name = original.name if copy == 0 else f"{original.name}-{copy + 1}"
            hosts.append(replace(original, name=name))
            quantities |= {f"{name}.{key}": self.quantities[f"{original.name}.{key}"] for key in HOST_KEYS}
        kept = {name: p for name, p in self.placements.items() if max(p, default=0) < n}
        link = replace(self.link, shape=topology.grown(self.link.kind, self.link.shape, n) if self.link.shape else ())
        return replace(self, name=f"{self.name}*{n}", hosts=tuple(hosts), link=link, quantities=quantities, placements=kept)

    def _changed(self, changed: Mapping[str, Quantity], link: Link) -> Platform:
        values: dict[str, dict[str, Any]] = {}
        for path, quantity in changed.items():
            owner, _, name = path.partition(".")
            values.setdefault(owner, {})[name] = quantity.value
        hosts = tuple(replace(h, **values.get(h.name, {})) for h in self.hosts)
        return replace(
            self,
            hosts=hosts,
            link=replace(link, **values.get("link", {})),
            quantities={**self.quantities, **changed},
        )

    def quantity(self, path: str) -> Quantity:
        """The quantity of a path as of `paths`; for what a link need not have, what stands for its absence: one rail, no rate."""
        return self.quantities.get(path) or _absent(path)

    def paths(self, key: str) -> list[str]:
        """The paths of quantities (`quantity`) that a key of `with_overrides` means; raises UsageError for an unknown one."""
        head, _, name = key.rpartition(".")
        if head == "host" and name in HOST_KEYS:
            return [f"{h.name}.{name}" for h in self.hosts]
        if key in self.quantities or (head == "link" and name in LINK_MORE_KEYS):
            return [key]
        valid = [f"platform.host.{k}" for k in HOST_KEYS] + [f"platform.link.{k}" for k in (*LINK_KEYS, *LINK_MORE_KEYS)]
        valid += [f"platform.{path}" for path in self.quantities if not path.startswith("link.")]
        if head == "link":
            valid = [v for v in valid if v.startswith("platform.link.")] + [f"platform.link.{w}" for w in LINK_WORDS]
        elif head == "host":
            valid = [v for v in valid if v.startswith("platform.host.")]
        elif head in {h.name for h in self.hosts}:
            valid = [v for v in valid if v.startswith(f"platform.{head}.")]
        raise UsageError(f"platform '{self.name}' has no 'platform.{key}'{nearest(f'platform.{key}', valid, 30)}", code="unknown-parameter")


def _absent(path: str) -> Quantity:
    """What stands for a quantity that a link need not have."""
    unit, help = LINK_MORE_KEYS[path.removeprefix("link.")]
    return Quantity(1.0 if unit == "count" else 0.0, units.canonical(unit), "none", "assumed: a link without it", help)


def checked(key: str, text: str, unit: str, where: str) -> float:
    """``text`` as a float in ``unit``, refused when no machine can have it."""
    try:
        value = units.parse(text, unit)
    except UsageError as error:
        raise UsageError(f"{where}: {error}", code=error.code) from None
    if key in WHOLE_FROM_ONE and (value < 1 or value != int(value)):
        raise UsageError(f"{where}: '{text}' is not a whole number from 1 on", code="out-of-range")
    if key in _FLAGS and value not in (0, 1):
        raise UsageError(f"{where}: '{text}' is neither 0 nor 1", code="bad-value")
    if key in _POSITIVE and value <= 0:
        raise UsageError(f"{where}: '{text}' must be more than zero", code="out-of-range")
    return value
