"""Writing a fitted model's folder and, if no platform is named, a platform for it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.release import version
from retrompi.sim.fitted import COLUMNS, KINDS, NEVER, WORK_COLUMNS, work_names
from retrompi.spec import registry
from retrompi.spec.declare.fields import quantities
from retrompi.spec.declare.sources import wrong_source
from retrompi.spec.host import Host
from retrompi.spec.machine.link import Link

if TYPE_CHECKING:
    from retrompi.measure.fit.segments import SegmentFit
    from retrompi.sim.sampling import Sample
    from retrompi.spec.collectives import Choice, Making
    from retrompi.spec.model import RuntimeModel

__all__ = ["IdealPlatform", "ModelFiles", "check_name", "default_folder"]

Limit = tuple[float | None, str] | tuple[float, str, float, float]
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def check_name(name: str, kind: str = "model") -> str:
    """``name`` if it is valid for a user's model or platform (``kind``). Raises UsageError otherwise."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be the name of a {kind}; use small letters, digits, - and _, a letter first", code="bad-name")
    taken = registry.models() if kind == "model" else registry.platforms()
    there = taken.get(name)
    path = None if there is None else (there.folder() if isinstance(there, type) else there.path)
    if path is not None and registry.origin(path) == "retrompi":
        raise UsageError(f"the package has a {kind} '{name}', and its names win; choose another --name", code="bad-name")
    return name


def _source(text: str) -> str:
    if problem := wrong_source(text):
        raise ValueError(f"the source '{text}' {problem}")
    return text


def _choice(c: Choice) -> str:
    parts = [repr(c.operation), repr(c.algorithm), f"source={c.source!r}"]
    if c.low:
        parts.append(f'low="{c.low} B"')
    if c.high is not None:
        parts.append(f'high="{c.high} B"')
    if c.ranks != (1, None):
        parts.append(f"ranks={c.ranks!r}")
    if c.count != "any":
        parts.append(f"count={c.count!r}")
    if c.nodes:
        parts.append("nodes=True")
    return f"Choice({', '.join(parts)})"


def _limit(bytes_: float | None) -> str:
    return NEVER if bytes_ is None else f"{int(bytes_)} B"


@dataclass(frozen=True)
class _Param:
    """A parameter of the generated class; one with a source ``fit:`` has its value and bounds in ``fit.toml`` as well."""

    name: str
    text: str
    unit: str
    help: str
    source: str
    low: str
    high: str
    on: str = ""
    """The host on which it is that much work."""

    def line(self) -> str:
        stated = f', on={self.on!r}, cost="work"' if self.on else ""
        return (f'{self.name} = Param("{self.text}", "{self.unit}", "{self.help}", source={_source(self.source)!r}{stated}, '
                f'low="{self.low}", high="{self.high}")')


def _params(eager: Mapping[str, Limit], test: tuple[float, str], on: str) -> list[_Param]:
    found = []
    for where, text in (("same", "of one host"), ("remote", "between hosts")):
        limit, source, *bounds = eager.get(where, (None, "assumed: nothing was measured there"))
        known = _limit(limit)
        low, high = (f"{int(b)} B" for b in bounds) if len(bounds) == 2 else (known, known) if source.startswith("fit:") else ("0 B", NEVER)
        found.append(_Param(f"eager_{where}", known, "B", f"messages {text} from this size on ask the receiver first", source, low, high))
    cost = f"{test[0] * 1e9:.6g} ns"
    low, high = (cost, cost) if test[1].startswith("fit:") else ("0 s", "1 ms")
    return [*found, _Param("test_cost", cost, "s", "a call that looks for a message and finds none", test[1], low, high, on)]


def _work_text(by: str, work: Mapping[str, tuple[Mapping[int, float], str]]) -> str:
    lines = [f"# what collectives do beside their messages: written by `{by}`; picoseconds, bytes", ",".join(WORK_COLUMNS)]
    for what, (sizes, _) in work.items():
        if what not in work_names():
            raise UsageError(f"no work '{what}'{nearest(what, work_names())}", code="unknown-name")
        lines += [f"{what},{size},{round(seconds * 1e12)}" for size, seconds in sorted(sizes.items())]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """The contents of a fitted model's folder.

    ``samples``: pair kind (`retrompi.sim.fitted.KINDS`) -> sample, used exactly as it is. ``eager``: "same", "remote" -> (bytes from
    which messages use rendezvous or None, source[, least, most]); ``test``: (seconds, source); ``source`` (``fit: ...``) is the source of
    the calibrated range, ``sources`` those of the curve's columns. ``seen`` and ``held_out``: pair kind -> sizes in bytes.
    ``collectives``: a table, or the model whose table is used; None for the base's (MPICH 1). ``communicators``: with a table, how
    communicators are created. ``meta`` and ``extra`` go into ``fit.toml`` as rows of ``[NAME.meta]`` and as separate tables
    ``[NAME.TABLE]``. ``on``: the host on which the costs were measured, ``PLATFORM:HOST`` or ``FILE.toml:HOST`` with a path from the folder
    (default: the host ``h1`` of ``platform``). ``work``: costs of collectives other than messages (`retrompi.sim.fitted.work_names`) ->
    ({bytes: seconds}, source), written to ``work.csv``.
    """

    name: str
    samples: Mapping[str, Sample]
    title: str
    version: str
    years: str
    summary: str
    platform: str
    source: str
    on: str = ""
    ranks: tuple[int, int] = (2, 2)
    eager: Mapping[str, Limit] | None = None
    test: tuple[float, str] = (1e-7, "assumed: a hundred instructions or two")
    seen: Mapping[str, Sequence[int]] | None = None
    held_out: Mapping[str, Sequence[int]] | None = None
    fits: Mapping[str, SegmentFit] | None = None
    sources: Mapping[str, str] | None = None
    collectives: Sequence[Choice] | type[RuntimeModel] | None = None
    communicators: Making | None = None
    meta: Mapping[str, Any] | None = None
    extra: Mapping[str, Mapping[str, Any]] | None = None
    work: Mapping[str, tuple[Mapping[int, float], str]] | None = None
    by: str = "retrompi fit"
    note: str = ""

    def write(self, folder: Path) -> Path:
        """Writes ``__init__.py``, ``curve.csv``, ``fit.toml`` and, with ``work``, ``work.csv`` into ``folder``; returns ``folder``.

        Raises UsageError for an unknown pair kind or work, InputError when it cannot write.
        """
        for kind in self.samples:
            if kind not in KINDS:
                raise UsageError(f"no pair kind '{kind}'{nearest(kind, KINDS)}", code="unknown-name")
        if not self.samples:
            raise UsageError("a model needs the curve of one pair kind at least")
        for text in (self.sources or {}).values():
            _source(text)
        all_sizes = [s for sizes in (self.seen or {}).values() for s in sizes] or [p.size for s in self.samples.values() for p in s.there]
        known = (f"Range(sizes=({units.format_bytes(min(all_sizes))!r}, {units.format_bytes(max(all_sizes))!r}), ranks={self.ranks!r}, "
                 f"platforms=({self.platform!r},), source={_source(self.source)!r})")
        params = _params(self.eager or {}, self.test, self.on or f"{self.platform}:h1")
        fitted = [p for p in params if p.source.startswith("fit:")]
        today = datetime.date.today().isoformat()
        doc = f"{self.summary}. Written by `{self.by}` on {today}; the points are in curve.csv, what is known of them in fit.toml."
        points, tables = self._points_text(), self._tables(fitted, today)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "curve.csv").write_text(points, encoding="utf-8")
            (folder / "work.csv").unlink(missing_ok=True)
            if self.work:
                (folder / "work.csv").write_text(_work_text(self.by, self.work), encoding="utf-8")
            (folder / "fit.toml").write_text(toml_text.tables(self.by, {self.name: tables}), encoding="utf-8")
            (folder / "__init__.py").write_text(self._module(doc, params, known), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write the model: {error.strerror}", folder, code="unwritable-file") from None
        registry.forget(folder)
        return folder

    def _tables(self, fitted: Sequence[_Param], today: str) -> dict[str, Mapping[str, Any]]:
        """What is known of the fit: the tables of fit.toml."""
        tables: dict[str, Mapping[str, Any]] = {
            "values": {p.name: p.text for p in fitted},
            "bounds": {p.name: [p.low, p.high] for p in fitted},
            "meta": {
                "date": today,
                "version": version(),
                "by": self.by,
                "note": self.note,
                "platform": self.platform,
                "sizes_seen": {k: sorted(s) for k, s in (self.seen or {}).items()},
                "sizes_held_out": {k: sorted(s) for k, s in (self.held_out or {}).items()},
                "identifiability": {p.name: p.source for p in fitted},
                "connect_ps": {k: s.connect for k, s in self.samples.items()},
                "sources": dict(self.sources or {}),
                **(self.meta or {}),
            },
        }
        for kind, fit in (self.fits or {}).items():
            tables[f"{kind}-segments"] = {f"from {s.low} B": s.row() for s in fit.segments}
            tables[f"{kind}-thresholds"] = {f"{t.size} B": t.row() for t in fit.thresholds}
            tables[f"{kind}-residuals"] = {f"{r.size} B": r.row() for r in fit.residuals}
            tables[f"{kind}-choice"] = fit.choice()
        if self.work:
            tables["work"] = {what: _source(text) for what, (_, text) in self.work.items()}
        return tables | dict(self.extra or {})

    def _points_text(self) -> str:
        """The points of the curves: curve.csv."""
        lines = [f"# {self.name}: written by `{self.by}`; times in picoseconds, sizes in bytes", ",".join(COLUMNS)]
        for kind, sample in self.samples.items():
            for way, points in (("there", sample.there), ("back", () if sample.back == sample.there else sample.back)):
                lines += [",".join(str(v) for v in (kind, way, *asdict(p).values())) for p in points]
        return "\n".join(lines) + "\n"

    def _module(self, doc: str, params: Sequence[_Param], known: str) -> str:
        words = {"title": self.title, "version": self.version, "years": self.years, "summary": self.summary}
        table, also = "", ""
        if isinstance(self.collectives, type):
            also = "from retrompi.spec import registry\n"
            table = "".join(f"    {what} = registry.model({self.collectives.name!r}).{what}\n" for what in ("collectives", "communicators"))
        elif self.collectives is not None:
            also = f"from retrompi.spec.collectives import Choice{', Making' if self.communicators else ''}\n"
            table = "    collectives = (\n" + "".join(f"        {_choice(c)},\n" for c in self.collectives) + "    )\n"
            if self.communicators is not None:
                c = self.communicators
                table += f"    communicators = Making({c.context_bytes!r}, {c.gathers!r}, {_source(c.source)!r})\n"
        texts = "".join(f"    {key} = {text!r}\n" for key, text in words.items())
        return (
            f'"""{doc.replace(chr(92), "/").replace(chr(34) * 3, chr(39) * 3)}"""\n\n{also}'
            "from retrompi.spec.calibrated_range import Range\n"
            f"from retrompi.sim.fitted import FittedModel\nfrom retrompi.spec.model import Param\n\n\n"
            f"class Fitted(FittedModel):\n    name = {self.name!r}\n"
            f"{texts}    calibrated = {known}\n{table}" + "".join(f"    {p.line()}\n" for p in params)
        )


_ASSUMED = "assumed: no part of a fitted curve, which has it inside its times"


@dataclass(frozen=True, kw_only=True)
class IdealPlatform:
    """A platform of ``hosts`` equal hosts on an ideal switch: all costs are in the fitted curve.

    ``known``: key of a host (``cores``, ``flops``, ...) -> (text with its unit, source); the source of all other numbers is an assumption.
    """

    name: str
    title: str
    summary: str
    years: str
    hosts: int = 2
    known: Mapping[str, tuple[str, str]] | None = None
    os: str = "Linux"
    by: str = "retrompi fit"

    def write(self, file: Path) -> Path:
        """Writes it as TOML and returns ``file``. Raises InputError when it cannot be written."""
        of_host = quantities(Host)
        given = {k: (f.plain, _ASSUMED) for k, f in of_host.items() if f.plain} | {
            "cores": (
                of_host["cores"].plain,
                "assumed: a rank each; what shares a host was not measured unless the model has a curve of one host",
            ),
            "flops": (
                of_host["flops"].plain,
                "assumed: no loop was timed on it; --set platform.host.flops=RATE states the rate of its processor",
            ),
            "work": (of_host["work"].plain, "assumed: the model states its costs on this platform"),
            **(self.known or {}),
        }

        def line(key: str, text: str, source: str) -> str:
            number = float(text) if re.fullmatch(r"[\d.]+", text) else text
            plain = int(number) if isinstance(number, float) and number == int(number) else number
            return f"{key} = {{ value = {toml_text.value(plain)}, source = {toml_text.quote(_source(source))} }}"

        lines = [
            f"# Written by `{self.by}`.",
            *(f"{k} = {toml_text.quote(getattr(self, k))}" for k in ("name", "title", "years", "summary")),
        ]
        lines += [
            "",
            "[[host]]",
            'name = "h1"',
            f"os = {toml_text.quote(self.os)}",
            'byte_order = "little"',
            *(line(k, *v) for k, v in given.items()),
        ]
        for h in range(2, self.hosts + 1):
            lines += ["", "[[host]]", f'name = "h{h}"', 'like = "h1"']
        lines += ["", "[link]", 'kind = "switch"', *(line(k, f.plain, _ASSUMED) for k, f in quantities(Link).items() if f.plain)]
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write the platform: {error.strerror}", file, code="unwritable-file") from None
        return file


def default_folder(name: str) -> Path:
    """The folder in which a user's model of that name is found by name."""
    return paths.user_models_dir() / name
