"""Reading a platform file; every error names file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from retrompi.base import paths
from retrompi.base import toml as toml_text
from retrompi.base.errors import UsageError, nearest
from retrompi.base.paths import platforms_dir, stamp
from retrompi.spec.declare.fields import fields_of, quantities
from retrompi.spec.host import Host
from retrompi.spec.machine import composition, machines, simgrid_platform, topology
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.placements import DECLARABLE, WORDS
from retrompi.spec.machine.quantity_file import LINK, Reader, fits_at_hand
from retrompi.spec.platform import LINK_WORDS, Placement, Platform, Quantity

__all__ = ["load", "sources"]

_HOST_WORDS = ("os", "byte_order")


class _Reader(Reader):
    """Reads one TOML file as a Platform; every error names file and line."""

    def __init__(self, path: Path, loading: tuple[Path, ...], read: dict[Path, tuple[int, int] | None]) -> None:
        super().__init__(path, "platform")
        self.loading = loading
        self.read = read
        self.settled: set[int] = set()
        """Identities of the quantities taken over from other files, whose fits they have."""

    def inherit(self, like: str, index: int, known: Mapping[str, tuple[dict[str, str], dict[str, Quantity]]]) -> Any:
        """``like = "server"`` (above in this file) or ``"nt-pair:server"`` -> (words, quantities) to start from."""
        file, colon, name = like.rpartition(":")
        if not colon:
            return known[name] if name in known else self.of_library(name, index, known)
        if not re.fullmatch(r"[^/\\\0]+", file) or file in (".", ".."):
            raise self.fail(f"like = '{like}': '{file}' is not a platform's name, which is that of a file in this folder or of retrompi",
                            "like", index, code="unknown-platform")
        other = self.path.parent / f"{file}.toml"
        if not other.is_file():
            other = platforms_dir() / f"{file}.toml"
        if not other.is_file() or other.resolve() in self.loading:
            raise self.fail(f"like = '{like}': no platform '{file}' to take a host from", "like", index, code="unknown-platform")
        platform = _load(other, (*self.loading, other.resolve()), self.read)
        try:
            source = platform.host(name)
        except UsageError as error:
            raise self.fail(f"like = '{like}': {error}", "like", index, code=error.code) from None
        numbers = {k: q for k in quantities(Host) if (q := platform.quantities.get(f"{name}.{k}"))}
        self.settled |= set(map(id, numbers.values()))
        return {k: getattr(source, k) for k in _HOST_WORDS}, numbers

    def of_library(self, name: str, index: int, above: Iterable[str]) -> tuple[dict[str, str], dict[str, Quantity]]:
        """A host of the library, which has no network card."""
        folder = self.path.parent
        if name not in (valid := machines.files("host", folder)):
            tail = nearest(name, [*above, *valid], 40)
            raise self.fail(f"like = '{name}': no such host above, nor in the library{tail}", "like", index, code="unknown-host")
        machine = machines.host(name, folder, self.read)
        self.settled |= set(map(id, machine.quantities.values()))
        return {"os": machine.os, "byte_order": machine.byte_order}, dict(machine.quantities)

    def host_tables(self) -> list[tuple[str, dict[str, str], dict[str, Quantity]]]:
        tables = self.data.get("host")
        if not isinstance(tables, list) or not tables:
            raise self.fail("a platform needs at least one [[host]]", code="out-of-range")
        known: dict[str, tuple[dict[str, str], dict[str, Quantity]]] = {}
        for index, given in enumerate(tables):
            name = self.string(given, "name", index)
            if name in known or name in ("host", "link") or "." in name:
                problem = "is used twice" if name in known else "is a keyword or contains a dot"
                raise self.fail(f"the host name '{name}' {problem}", "name", index, code="bad-name")
            words: dict[str, str] = {}
            numbers: dict[str, Quantity] = {}
            if "like" in given:
                words, numbers = self.inherit(self.string(given, "like", index), index, known)
            words = {k: self.string(given, k, index) if k in given or k not in words else words[k] for k in _HOST_WORDS}
            try:
                fields_of(Host)["byte_order"].check(words["byte_order"], "byte_order")
            except UsageError as error:
                raise self.fail(str(error), "byte_order", index, code=error.code) from None
            numbers = {**numbers, **self.table(given, quantities(Host), ("name", *_HOST_WORDS, "like"), index)}
            missing = [k for k, f in quantities(Host).items() if not f.optional and k not in numbers]
            if missing:
                raise self.fail(f"host '{name}' lacks {', '.join(missing)}", "name", index, code="missing-key")
            known[name] = (words, {k: numbers[k] for k in quantities(Host) if k in numbers})
        return [(name, words, numbers) for name, (words, numbers) in known.items()]

    def placements(self, hosts: Sequence[Host]) -> dict[str, Placement]:
        """The tables ``[placement.NAME]``: ``hosts``, a name for every rank, and ``cores``, a core of it for each."""
        given = self.data.get("placement", {})
        names = [host.name for host in hosts]
        found: dict[str, Placement] = {}
        for name, entry in given.items() if isinstance(given, dict) else ():
            listed, cores = (entry.get(k, []) if isinstance(entry, dict) else None for k in ("hosts", "cores"))
            if not isinstance(listed, list) or not listed or not isinstance(cores, list) or entry.keys() - {"hosts", "cores", "help"}:
                raise self.fail(
                    f'placement \'{name}\' needs hosts = ["{names[0]}", ...] and may have cores = [0, ...]', name, code="missing-key"
                )
            if name in (*WORDS, *names) or any(c in name for c in ",*:"):
                raise self.fail(f"the placement name '{name}' means something else already", name, code="duplicate-name")
            for host in listed:
                if host not in names:
                    raise self.fail(f"placement '{name}': no host '{host}'{nearest(str(host), names)}", name, code="unknown-host")
            if cores and len(cores) != len(listed):
                raise self.fail(f"placement '{name}' names {len(listed)} hosts and {len(cores)} cores", name, code="bad-placement")
            for host, core in zip(listed, cores, strict=False):
                have = int(hosts[names.index(host)].cores)
                if isinstance(core, bool) or not isinstance(core, int) or not 0 <= core < have:
                    raise self.fail(f"placement '{name}': core {core} is not in 0..{have - 1} of host '{host}'", name, code="out-of-range")
            found[name] = Placement((names.index(h) for h in listed), cores)
        return found

    def natural(self) -> str:
        """``natural``: the placement of a job whose user names none; empty if the file declares none."""
        given = self.data.get("natural", "")
        if given != "" and given not in DECLARABLE:
            raise self.fail(f"'natural' is one of {', '.join(DECLARABLE)}, not {given!r}", "natural", code="bad-value")
        return str(given)

    def shape(self, given: Mapping[str, Any], kind: str, names: Sequence[str]) -> tuple[int, ...]:
        """``shape`` of a torus (``[2, 2, 2]``) or a fat tree (``"4x8;1x2;1x1"``), ``sites`` of a wan (a list of hosts for each)."""
        shape, sites, of_kind = given.get("shape"), given.get("sites"), topology.of(kind)
        if (sites is None) == of_kind.sited:
            raise self.fail('a wan, and nothing else, has sites; example: sites = [["n1", "n2"], ["n3"]]', "sites", -1, code="bad-topology")
        if isinstance(sites, list):
            listed = [host for site in sites if isinstance(site, list) for host in site]
            if sorted(map(str, listed)) != sorted(names) or not all(sites):
                raise self.fail("'sites' names every host once, in a list for each site", "sites", -1, code="bad-topology")
            return tuple(next(i for i, site in enumerate(sites) if name in site) for name in names)
        if (shape is None) == bool(of_kind.example) or not isinstance(shape, str | list | None):
            raise self.fail("a torus and a fat-tree, and nothing else, have a shape; examples: shape = [2, 2, 2], "
                            f'shape = "{topology.FatTree.example}"', "shape", -1, code="bad-topology")
        try:
            if shape is None:
                return of_kind.default(len(names))
            return of_kind.parse(shape if isinstance(shape, str) else "x".join(map(str, shape)))
        except UsageError as error:
            raise self.fail(str(error), "shape", -1, code=error.code) from None

    def compose(self) -> Platform:
        """``hosts = "nt4-p6-200*8"``, ``network = "switch-100"``: of the library, and of the folders hosts and networks beside the file."""
        top = ("name", "title", "years", "summary", "natural", "placement", "hosts", "network")
        for key in self.data:
            if key in ("host", "link"):
                raise self.fail("'hosts' names hosts of the library; [[host]] and [link] are for a file without it", code="unknown-key")
            if key not in top:
                raise self.fail(f"unknown key '{key}'{nearest(key, top)}", key, code="unknown-key")
        hosts = self.string(self.data, "hosts")
        try:
            if "@" in hosts:
                raise UsageError(f"the network of '{hosts[:80]}' is a key of its own; example: network = \"switch-100\"", code="bad-syntax")
            what = composition.parse(f"{hosts}@{self.string(self.data, 'network')}" if "network" in self.data else hosts)
            made = machines.compose(what, self.path.parent, self.read)
        except UsageError as error:
            raise self.fail(str(error), "network" if error.code == "unknown-network" else "hosts", code=error.code) from None
        self.settled |= set(map(id, made.quantities.values()))
        title, years, summary = (self.string(self.data, k) if k in self.data else getattr(made, k) for k in ("title", "years", "summary"))
        return replace(made, name=self.string(self.data, "name"), title=title, years=years, summary=summary, path=self.path,
                       placements=self.placements(made.hosts), natural=self.natural())

    def of_simgrid(self) -> Platform:
        """``simgrid = "cluster.xml"``: hosts and links of a SimGrid platform file beside this one
        (`retrompi.spec.machine.simgrid_platform`)."""
        top = ("name", "title", "years", "summary", "natural", "placement", "simgrid", "hosts", "network", "like")
        for key in self.data:
            if key not in top:
                raise self.fail(f"unknown key '{key}'{nearest(key, top)}", key, code="unknown-key")
        folder, like = self.path.parent, self.data.get("like", {})
        file = folder / self.string(self.data, "simgrid")
        if not isinstance(like, dict) or not all(isinstance(v, str) for v in like.values()):
            raise self.fail('[like] has a host of the library by the name of a host; example: "node-1*" = "linux-p6-200"', "like",
                            code="bad-value")
        self.read |= {file: stamp(file)}
        try:
            host, *others = (machines.host(n, folder, self.read) for n in (self.string(self.data, "hosts"), *like.values()))
            net = machines.network(self.string(self.data, "network"), folder, self.read) if "network" in self.data else None
            found = simgrid_platform.read(file).hosts
            for pattern in like:
                if not any(fnmatchcase(h.name, pattern) for h in found):
                    near = nearest(pattern, [h.name for h in found])
                    raise UsageError(f"'{pattern}' is no host of {file.name}{near}", code="unknown-host")
            filled = simgrid_platform.Filled(host, net, dict(zip(like, others, strict=True)))
            made = simgrid_platform.compose_platform(file, filled)
        except UsageError as error:
            where = {"unknown-network": "network", "unknown-platform": "simgrid"}.get(error.code, "hosts")
            raise self.fail(str(error), where, code=error.code) from None
        self.settled |= set(map(id, made.quantities.values()))
        title, years, summary = (self.string(self.data, k) if k in self.data else getattr(made, k) for k in ("title", "years", "summary"))
        return replace(made, name=self.string(self.data, "name"), title=title, years=years, summary=summary, path=self.path,
                       placements=self.placements(made.hosts), natural=self.natural())

    def platform(self) -> Platform:
        if "simgrid" in self.data:
            return self.of_simgrid()
        if "hosts" in self.data:
            return self.compose()
        top = ("name", "title", "years", "summary", "natural", "host", "link", "placement")
        for key in self.data:
            if key not in top:
                raise self.fail(f"unknown key '{key}'{nearest(key, top)}", key, code="unknown-key")
        tables = self.host_tables()
        given = self.data.get("link")
        if not isinstance(given, dict):
            raise self.fail("a platform needs a [link]", code="missing-key")
        link = self.table(given, quantities(Link), (*LINK_WORDS, "technology"), LINK)
        missing = [k for k, f in quantities(Link).items() if not f.optional and k not in link]
        if missing:
            raise self.fail(f"the link lacks {', '.join(missing)}", "", -1, code="missing-key")
        try:
            kind = topology.parse_kind(self.string(given, "kind", -1))
        except UsageError as error:
            raise self.fail(str(error), "kind", -1, code=error.code) from None
        shape = self.shape(given, kind, [name for name, _, _ in tables])
        try:
            stated = topology.words(given, topology.DEFAULT_WORDS)
            topology.of(kind).check(shape, len(tables), link)
            topology.check_sharing(kind, stated["access"], link["buffer"].value if "buffer" in link else 0.0)
        except UsageError as error:
            raise self.fail(str(error), "shape", -1, code=error.code) from None
        found = {f"{name}.{k}": q for name, _, qs in tables for k, q in qs.items()}
        found |= {f"link.{k}": q for k, q in link.items()}
        hosts = tuple(Host(name, words["os"], words["byte_order"], **{k: q.value for k, q in qs.items()}) for name, words, qs in tables)
        return Platform(
            name=self.string(self.data, "name"),
            title=self.string(self.data, "title"),
            years=self.string(self.data, "years"),
            summary=self.string(self.data, "summary"),
            hosts=hosts,
            link=Link(kind, shape, **{k: q.value for k, q in link.items()}).with_words(stated),  # type: ignore[arg-type]
            quantities=found,
            path=self.path,
            placements=self.placements(hosts),
            natural=self.natural(),
            technology=self.technology(given, LINK),
        )


_State = tuple[tuple[Path, tuple[int, int] | None], ...]
_KNOWN: dict[tuple[str, str, tuple[Path, ...]], tuple[_State, Platform]] = {}
"""(path as given, absolute path, papers at hand) -> (the files that it was read from with their stamps, the platform)."""


def _load(file: Path, loading: tuple[Path, ...], read: dict[Path, tuple[int, int] | None]) -> Platform:
    """The platform of ``file`` with its fit; the source of an unfitted quantity says so. Adds the files read to ``read``."""
    fit = file.with_name(f"{file.stem}.fit.toml")
    read |= {f: stamp(f) for f in (file, fit)}
    reader = _Reader(file, loading, read)
    platform = reader.platform()
    fitted = platform.with_fit(fit) if fit.is_file() else platform
    for theirs, values in fits_at_hand(file.stem, file):
        read[theirs] = stamp(theirs)
        fitted = fitted.with_fit(theirs, values, theirs.parent.name)
    unfitted = {
        path: replace(q, source="assumed: not fitted yet")
        for path, q in fitted.quantities.items()
        if q.source.startswith("fit:") and q is platform.quantities[path] and id(q) not in reader.settled
    }
    return replace(fitted, quantities={**fitted.quantities, **unfitted})


def _key(file: Path) -> tuple[str, str, tuple[Path, ...]]:
    return str(file), os.path.abspath(file), paths.at_hand()


def sources(path: str | Path) -> list[Path]:
    """The files that the platform in ``path`` is read from: its own, those of hosts that it names, and the fits beside them."""
    load(path)
    return [f for f, then in _KNOWN[_key(Path(path))][0] if then is not None]


def load(path: str | Path) -> Platform:
    """Read the platform in ``path`` and its fit, ``<stem>.fit.toml`` beside it, where there is one.

    Raises InputError with file and line if one of them is invalid. The platform is cached until one of its files changes.
    """
    file = Path(path)
    key = _key(file)
    known = _KNOWN.get(key)
    if known is not None and all(stamp(f) == then for f, then in known[0]):
        return known[1]
    read: dict[Path, tuple[int, int] | None] = {}
    with toml_text.taken_apart("platform", file):  # such as [host] for [[host]]
        platform = _load(file, (file.resolve(),), read)
    _KNOWN[key] = tuple(read.items()), platform
    return platform
