"""Reading a platform file; every error names file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrompi.base import names, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.paths import stamp
from retrompi.spec import topology
from retrompi.spec.fields import Field, declared, quantities
from retrompi.spec.host import Host
from retrompi.spec.link import WAN_KEYS, Link
from retrompi.spec.placements import DECLARABLE, WORDS
from retrompi.spec.platform import LINK_WORDS, Placement, Platform, Quantity
from retrompi.spec.sources import wrong_source

__all__ = ["load"]

_HOST_WORDS = ("os", "byte_order")
LONGEST_HOST = 40
"""Characters of a host's name, at most: a process is named after its role, its host and its job, in `names.LONGEST` characters."""


class _Reader:
    """Reads one TOML file as a Platform; every error names file and line."""

    def __init__(self, path: Path, loading: tuple[Path, ...], read: dict[Path, tuple[int, int] | None]) -> None:
        self.path = path
        self.loading = loading
        self.read = read
        self.text, self.data = toml_text.read(path, "platform")

    def fail(self, message: str, key: str = "", host: int | None = None, code: str | None = None) -> InputError:
        return InputError(message, self.path, self.line(key, host), code=code)

    def line(self, key: str, host: int | None) -> int | None:
        """The line of ``key`` before the first table (``host`` None), in host number ``host``, or in the link (-1)."""
        section = "" if host is None else "[link]" if host < 0 else "[[host]]"
        wanted, seen, inside, start = (host or 0), -1, section == "", None
        for number, raw in enumerate(self.text.splitlines(), 1):
            line = raw.strip()
            if line.startswith("["):
                head = line.split("#")[0].replace(" ", "").strip()
                seen += head == "[[host]]"
                inside = head == section and (section != "[[host]]" or seen == wanted)
                start = number if inside else start
            elif inside and key and re.match(rf"[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
                return number
        return start

    def string(self, table: Mapping[str, Any], key: str, host: int | None = None) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(f"'{key}' is missing or not a text", key, host, code="missing-key")
        if key == "name":
            try:
                names.check_name("a platform" if host is None else "a host", value, names.LONGEST if host is None else LONGEST_HOST)
            except UsageError as error:
                raise self.fail(str(error), key, host, code=error.code) from None
        return value

    def quantity(self, field: Field, entry: Any, host: int) -> Quantity:
        key = field.name
        example = f'{key} = {{value = "...", source = "doc:..."}}'
        if not isinstance(entry, dict) or not isinstance(entry.get("value"), str | int | float):
            raise self.fail(f"'{key}' is not a table with value and source; write {example}", key, host, code="bad-value")
        unknown = [k for k in entry if k not in ("value", "source", "help", "low", "high")]
        if unknown:
            tail = nearest(unknown[0], ("value", "source", "help", "low", "high"))
            raise self.fail(f"'{key}' has an unknown entry '{unknown[0]}'{tail}", key, host, code="unknown-key")
        source = str(entry.get("source", ""))
        if problem := wrong_source(source):
            raise self.fail(f"the source of '{key}' {problem}", key, host, code="bad-source")
        numbers: dict[str, float | None] = {}
        try:
            for name in ("value", "low", "high"):
                given = entry.get(name)
                numbers[name] = None if given is None else field.parse(str(given), name)
        except UsageError as error:
            raise self.fail(f"'{key}': {error}", key, host, code=error.code) from None
        value, low, high = numbers["value"] or 0.0, numbers["low"], numbers["high"]
        if (low is not None and value < low) or (high is not None and value > high):
            raise self.fail(f"the value of '{key}' lies outside its own low..high", key, host, code="out-of-range")
        text = str(entry["value"])
        return Quantity(value, units.canonical(field.unit), text, source, str(entry.get("help", field.help)), low, high)

    def table(self, given: Mapping[str, Any], keys: Mapping[str, Field], plain: tuple[str, ...], host: int) -> dict[str, Quantity]:
        for key in given:
            if key not in keys and key not in plain:
                raise self.fail(f"unknown key '{key}'{nearest(key, [*keys, *plain], 40)}", key, host, code="unknown-key")
        return {k: self.quantity(f, given[k], host) for k, f in keys.items() if k in given}

    def inherited(self, like: str, index: int, known: Mapping[str, tuple[dict[str, str], dict[str, Quantity]]]) -> Any:
        """``like = "server"`` (above in this file) or ``"nt-pair:server"`` -> (words, quantities) to start from."""
        file, colon, name = like.rpartition(":")
        if not colon:
            if name not in known:
                raise self.fail(f"like = '{like}': no such host above{nearest(name, known)}", "like", index, code="unknown-host")
            return known[name]
        if not re.fullmatch(r"[^/\\\0]+", file) or file in (".", ".."):
            raise self.fail(f"like = '{like}': '{file}' is not a platform's name, which is that of a file in this folder or of retrompi",
                            "like", index, code="unknown-platform")  # fmt: skip
        other = self.path.parent / f"{file}.toml"
        if not other.is_file():
            from retrompi.base.paths import platforms_dir

            other = platforms_dir() / f"{file}.toml"
        if not other.is_file() or other.resolve() in self.loading:
            raise self.fail(f"like = '{like}': no platform '{file}' to take a host from", "like", index, code="unknown-platform")
        platform = _loaded(other, (*self.loading, other.resolve()), self.read)
        try:
            source = platform.host(name)
        except UsageError as error:
            raise self.fail(f"like = '{like}': {error}", "like", index, code=error.code) from None
        return {k: getattr(source, k) for k in _HOST_WORDS}, {k: platform.quantities[f"{name}.{k}"] for k in quantities(Host)}

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
                words, numbers = self.inherited(self.string(given, "like", index), index, known)
            words = {k: self.string(given, k, index) if k in given or k not in words else words[k] for k in _HOST_WORDS}
            try:
                declared(Host)["byte_order"].check(words["byte_order"], "byte_order")
            except UsageError as error:
                raise self.fail(str(error), "byte_order", index, code=error.code) from None
            numbers = {**numbers, **self.table(given, quantities(Host), ("name", *_HOST_WORDS, "like"), index)}
            missing = [k for k in quantities(Host) if k not in numbers]
            if missing:
                raise self.fail(f"host '{name}' lacks {', '.join(missing)}", "name", index, code="missing-key")
            known[name] = (words, {k: numbers[k] for k in quantities(Host)})
        return [(name, words, numbers) for name, (words, numbers) in known.items()]

    def placements(self, tables: list[tuple[str, dict[str, str], dict[str, Quantity]]]) -> dict[str, Placement]:
        """The tables ``[placement.NAME]``: ``hosts``, a name for every rank, and ``cores``, a core of it for each."""
        given = self.data.get("placement", {})
        names = [name for name, _, _ in tables]
        found: dict[str, Placement] = {}
        for name, entry in given.items() if isinstance(given, dict) else ():
            hosts, cores = (entry.get(k, []) if isinstance(entry, dict) else None for k in ("hosts", "cores"))
            if not isinstance(hosts, list) or not hosts or not isinstance(cores, list) or entry.keys() - {"hosts", "cores", "help"}:
                raise self.fail(
                    f'placement \'{name}\' needs hosts = ["{names[0]}", ...] and may have cores = [0, ...]', name, code="missing-key"
                )
            if name in (*WORDS, *names) or any(c in name for c in ",*:"):
                raise self.fail(f"the placement name '{name}' means something else already", name, code="duplicate-name")
            for host in hosts:
                if host not in names:
                    raise self.fail(f"placement '{name}': no host '{host}'{nearest(str(host), names)}", name, code="unknown-host")
            if cores and len(cores) != len(hosts):
                raise self.fail(f"placement '{name}' names {len(hosts)} hosts and {len(cores)} cores", name, code="bad-placement")
            for host, core in zip(hosts, cores, strict=False):
                have = int(tables[names.index(host)][2]["cores"].value)
                if isinstance(core, bool) or not isinstance(core, int) or not 0 <= core < have:
                    raise self.fail(f"placement '{name}': core {core} is not in 0..{have - 1} of host '{host}'", name, code="out-of-range")
            found[name] = Placement((names.index(h) for h in hosts), cores)
        return found

    def natural(self) -> str:
        """``natural``: the placement of a job whose user names none; empty if the file declares none."""
        given = self.data.get("natural", "")
        if given != "" and given not in DECLARABLE:
            raise self.fail(f"'natural' is one of {', '.join(DECLARABLE)}, not {given!r}", "natural", code="bad-value")
        return str(given)

    def shape(self, given: Mapping[str, Any], kind: str, names: Sequence[str]) -> tuple[int, ...]:
        """``shape`` of a torus (``[2, 2, 2]``) or a fat tree (``"4x8;1x2;1x1"``), ``sites`` of a wan (a list of hosts for each)."""
        shape, sites = given.get("shape"), given.get("sites")
        if (sites is None) != (kind != "wan"):
            raise self.fail('a wan, and nothing else, has sites; example: sites = [["n1", "n2"], ["n3"]]', "sites", -1, code="bad-topology")
        if isinstance(sites, list):
            listed = [host for site in sites if isinstance(site, list) for host in site]
            if sorted(map(str, listed)) != sorted(names) or not all(sites):
                raise self.fail("'sites' names every host once, in a list for each site", "sites", -1, code="bad-topology")
            return tuple(next(i for i, site in enumerate(sites) if name in site) for name in names)
        if isinstance(shape, list) and kind == "torus" and shape and all(isinstance(n, int) and n > 0 for n in shape):
            return tuple(shape)
        if (shape is None) == (kind in topology.SHAPED) or not isinstance(shape, str | None):
            raise self.fail("a torus and a fat-tree, and nothing else, have a shape; examples: shape = [2, 2, 2], "
                            f'shape = "{topology.SHAPED["fat-tree"]}"', "shape", -1, code="bad-topology")  # fmt: skip
        try:
            return topology.parse_shape(kind, shape) if shape else ()
        except UsageError as error:
            raise self.fail(str(error), "shape", -1, code=error.code) from None

    def platform(self) -> Platform:
        top = ("name", "title", "years", "summary", "natural", "host", "link", "placement")
        for key in self.data:
            if key not in top:
                raise self.fail(f"unknown key '{key}'{nearest(key, top)}", key, code="unknown-key")
        tables = self.host_tables()
        given = self.data.get("link")
        if not isinstance(given, dict):
            raise self.fail("a platform needs a [link]", code="missing-key")
        link = self.table(given, quantities(Link), LINK_WORDS, -1)
        missing = [k for k, f in quantities(Link).items() if not f.optional and k not in link]
        if missing:
            raise self.fail(f"the link lacks {', '.join(missing)}", "", -1, code="missing-key")
        try:
            kind = topology.parse_kind(self.string(given, "kind", -1))
        except UsageError as error:
            raise self.fail(str(error), "kind", -1, code=error.code) from None
        shape = self.shape(given, kind, [name for name, _, _ in tables])
        try:
            policy = topology.parse_policy(str(given.get("rail_policy", "pair")))
            topology.check(kind, shape, len(tables), line=all(k in link for k in WAN_KEYS))
        except UsageError as error:
            raise self.fail(str(error), "shape", -1, code=error.code) from None
        found = {f"{name}.{k}": q for name, _, qs in tables for k, q in qs.items()}
        found |= {f"link.{k}": q for k, q in link.items()}
        return Platform(
            name=self.string(self.data, "name"),
            title=self.string(self.data, "title"),
            years=self.string(self.data, "years"),
            summary=self.string(self.data, "summary"),
            hosts=tuple(Host(name, words["os"], words["byte_order"], **{k: q.value for k, q in qs.items()}) for name, words, qs in tables),
            link=Link(kind, shape, **{k: q.value for k, q in link.items()}, rail_policy=policy),
            quantities=found,
            path=self.path,
            placements=self.placements(tables),
            natural=self.natural(),
        )


_State = tuple[tuple[Path, tuple[int, int] | None], ...]
_KNOWN: dict[tuple[str, str], tuple[_State, Platform]] = {}
"""(path as given, absolute path) -> (the files that it was read from with their stamps, the platform)."""


def _loaded(file: Path, loading: tuple[Path, ...], read: dict[Path, tuple[int, int] | None]) -> Platform:
    """The platform of ``file`` with its fit; the source of an unfitted quantity says so. Adds the files read to ``read``."""
    fit = file.with_name(f"{file.stem}.fit.toml")
    read |= {f: stamp(f) for f in (file, fit)}
    room = _Reader(file, loading, read).platform()
    fitted = room.with_fit(fit) if fit.is_file() else room
    unfitted = {
        path: replace(q, source="assumed: not fitted yet")
        for path, q in fitted.quantities.items()
        if q.source.startswith("fit:") and q is room.quantities[path]
    }
    return replace(fitted, quantities={**fitted.quantities, **unfitted})


def load(path: str | Path) -> Platform:
    """Read the platform in ``path`` and its fit, ``<stem>.fit.toml`` beside it, where there is one.

    Raises InputError with file and line if one of them is invalid. The platform is cached until one of its files changes.
    """
    file = Path(path)
    key = str(file), os.path.abspath(file)
    known = _KNOWN.get(key)
    if known is not None and all(stamp(f) == then for f, then in known[0]):
        return known[1]
    read: dict[Path, tuple[int, int] | None] = {}
    with toml_text.taken_apart("platform", file):  # such as [host] for [[host]]
        room = _loaded(file, (file.resolve(),), read)
    _KNOWN[key] = tuple(read.items()), room
    return room
