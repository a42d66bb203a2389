"""The interface of a runtime model: parameters with units and sources, and `compile`, which makes the engine's channel specifications.

A model is a folder whose ``__init__.py`` defines one subclass of `RuntimeModel` named like the folder, and any
number of alternative variants named ``folder:variant``, which inherit from it and redeclare only what differs.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from retrompi.base import paths
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.names import check_name
from retrompi.base.paths import stamp
from retrompi.base.units import parse_factor
from retrompi.spec.channels import NO_PATH, Cost, Library, Row
from retrompi.spec.channels import Path as MessagePath
from retrompi.spec.collectives import MPICH1, MPICH1_MAKING, PREFIX, Choice, Making, doors
from retrompi.spec.compiled import compiled_values
from retrompi.spec.declare.fields import to_engine
from retrompi.spec.declare.param import Param
from retrompi.spec.hosts import Hosts, engine_rows
from retrompi.spec.layout import Layout
from retrompi.spec.machine import named_host
from retrompi.spec.machine.quantity_file import fits_at_hand
from retrompi.spec.media import OneSided
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.runtime.overrides import absolute, parse_sets, tell
from retrompi.spec.values import Setting, Values

if TYPE_CHECKING:
    from retrompi.spec.calibrated_range import Range

__all__ = ["Param", "RuntimeModel", "StartStep", "absolute_sets", "fit_name", "fit_place", "fit_tables", "model_values",
           "parse_sets", "resolve"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StartStep:
    """One step of starting a job: number of manual actions, windows and daemons that it leaves open, and its duration in seconds."""

    step: str
    manual: int = 0
    windows: int = 0
    daemons: int = 0
    seconds: float = 0.0
    note: str = ""


@lru_cache(maxsize=256)
def _params(cls: Any) -> dict[str, Param]:
    found: dict[str, Param] = {}
    for klass in reversed(cls.__mro__):
        found |= {k: v for k, v in vars(klass).items() if isinstance(v, Param)}
    return found


@lru_cache(maxsize=256)
def _folder(file: str) -> Path:
    return Path(file).resolve().parent


def _files(folder: Path, inside: str = "") -> Iterator[tuple[str, int, int]]:
    """(relative path, modification time in ns, size in bytes) of every file that a model's hash covers, in order."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda e: e.name)
    for entry in entries:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(Path(entry.path), f"{inside}{entry.name}/")
        elif entry.name.endswith((".py", ".toml", ".csv")) and entry.is_file():
            stat = entry.stat()
            yield f"{inside}{entry.name}", stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=64)
def _hash(name: str, folders: tuple[tuple[Path, tuple[tuple[str, int, int], ...]], ...], machines: tuple[tuple[str, float], ...]) -> str:
    digest = hashlib.sha256(name.encode())
    if machines:
        digest.update(repr(machines).encode())
    for folder, files in folders:
        for path in sorted((folder / within for within, _, _ in files)):
            digest.update(b"\0" + path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class RuntimeModel:
    """A historical MPI implementation. Subclasses declare the texts below, `Param` attributes and the parts that `compile` calls.

    Raises ValueError when a subclass with a missing text is defined.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str]
    years: ClassVar[str]
    summary: ClassVar[str]
    variant_of: ClassVar[str | None] = None
    variant_note: ClassVar[str] = ""
    calibrated: ClassVar[Range | None] = None
    """The range covered by the published data behind the model; the user is warned outside of it."""
    needs: ClassVar[Needs | None] = None
    """The network and the operating system without which there is no such runtime; None restricts nothing."""
    fits_platform: ClassVar[tuple[str, ...]] = ()
    """Host keys (``nic_rate``) that a calibration of this model fits as well, for every host."""

    collectives: ClassVar[tuple[Choice, ...]] = MPICH1
    """The algorithm of each collective operation; the first row that matches is used."""

    communicators: ClassVar[Making] = MPICH1_MAKING
    """The communication that creates a communicator."""

    measured_by: ClassVar[str] = "pingpong"
    """The experiment (of ``retrompi.papers.experiments`` or of a paper's folder) whose ``looks`` a calibration of this model evaluates."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name") is None:
            return  # a shared base of several models, never run itself
        for key in ("name", "title", "version", "years", "summary"):
            value = getattr(cls, key, None)
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"model class {cls.__name__}: '{key}' is missing or not a text")
        try:
            check_name("a model", cls.name)
        except UsageError as error:
            raise ValueError(str(error)) from None
        cls._check_declared()
        if ":" in cls.name:
            if cls.variant_of is None:
                cls.variant_of = cls.name.partition(":")[0]
            if not cls.variant_note.strip():
                raise ValueError(f"variant '{cls.name}': 'variant_note' must say which hypothesis it stands for")

    @classmethod
    def _check_declared(cls) -> None:
        """Raises ValueError for a class attribute of another type than `RuntimeModel` gives it."""
        right = {
            "variant_of": cls.variant_of is None or isinstance(cls.variant_of, str),
            "variant_note": isinstance(cls.variant_note, str),
            "calibrated": cls.calibrated is None or hasattr(cls.calibrated, "platforms"),  # a Range
            "needs": cls.needs is None or isinstance(cls.needs, Needs),
            "fits_platform": isinstance(cls.fits_platform, tuple) and all(isinstance(k, str) for k in cls.fits_platform),
            "collectives": isinstance(cls.collectives, tuple) and all(isinstance(c, Choice) for c in cls.collectives),
            "communicators": isinstance(cls.communicators, Making),
            "measured_by": isinstance(cls.measured_by, str),
            "puts_in_collectives": isinstance(cls.puts_in_collectives, bool),
        }
        for key, fits in right.items():
            if not fits:
                wanted = RuntimeModel.__annotations__[key].removeprefix("ClassVar[").removesuffix("]")
                raise ValueError(f"model class {cls.__name__}: '{key}' is not of the type {wanted}")

    @classmethod
    def params(cls) -> dict[str, Param]:
        """Every parameter by name, the base classes' first; a redeclared one replaces the inherited one."""
        known: Any = cls  # a class is hashable, which mypy does not see
        return dict(_params(known))

    @classmethod
    def folder(cls) -> Path:
        """The folder of the model."""
        return _folder(getattr(sys.modules.get(cls.__module__), "__file__", None) or inspect.getfile(cls))

    @classmethod
    def folders(cls) -> list[Path]:
        """The folder of the model, and those of the package's models from whose classes it inherits."""
        ours = (k.folder() for k in cls.__mro__ if issubclass(k, RuntimeModel) and k.__module__.startswith("retrompi.models."))
        return list(dict.fromkeys([cls.folder(), *ours]))

    @classmethod
    def hash(cls) -> str:
        """SHA-256 of the model's name, the files in its folders, including fits, and the machines on which its costs are stated."""
        machines = tuple(sorted(named_host.factors(cls.params(), cls.folder()).items()))
        return _hash(cls.name, tuple((folder, tuple(_files(folder))) for folder in cls.folders()), machines)

    @classmethod
    def code_hash(cls) -> str:
        """SHA-256 of the model's Python files: a posterior found with other code is out of date, one found before a fit is not."""
        digest = hashlib.sha256(cls.name.encode())
        for folder in cls.folders():
            for name, _, _ in _files(folder):
                if name.endswith(".py"):
                    digest.update(b"\0" + name.encode() + b"\0" + (folder / name).read_bytes())
        return digest.hexdigest()[:16]

    puts_in_collectives: ClassVar[bool] = False
    """Whether collectives may put data into the memory of other ranks and so depend on `one_sided`."""

    def calls(self, p: Values, layout: Layout) -> Library:
        """The cost of calls and how they wait, independent of the path."""
        raise NotImplementedError(f"model class {type(self).__name__} does not define calls")

    def within_host(self, p: Values, layout: Layout) -> MessagePath:
        """The path between two ranks of one host."""
        raise NotImplementedError(f"model class {type(self).__name__} does not define within_host")

    def between_hosts(self, p: Values, layout: Layout) -> MessagePath:
        """The path between ranks of two hosts."""
        raise NotImplementedError(f"model class {type(self).__name__} does not define between_hosts")

    def probing(self, p: Values, layout: Layout) -> Cost | float:
        """The cost (s) of a test or probe that finds no message or completion; a plain number is work."""
        return 0.0

    def one_sided(self, p: Values, layout: Layout) -> tuple[OneSided | None, OneSided | None]:
        """One-sided operations (within a host, between hosts); None where the runtime has none."""
        return None, None

    def conversion(self, p: Values) -> tuple[float, float, float]:
        """Byte-order conversion at either end: (seconds per byte, size in bytes of its buffer or 0 for none, seconds per buffer), all
        work of the processor."""
        return 0.0, 0.0, 0.0

    def hosts(self, p: Values, layout: Layout) -> Hosts:
        """The hosts as used by this runtime. A model that replaces values of a host adds their keys to ``layout.fixed``; it does so by
        `retrompi.spec.hosts.mapped`, once for hosts that are alike."""
        return layout.hosts

    def compile(self, p: Values, layout: Layout, parts: Collection[str]) -> Row:
        """The engine's configuration of this runtime, with the ``parts`` (`retrompi.spec.compiled.compile.PARTS`) that a run needs."""

        def part(name: str, compiled: Callable[[], T], without: T) -> T:
            if name not in parts:
                return without
            try:
                with p.reading(name):
                    return compiled()
            except UsageError as error:  # a medium refuses one of its values
                raise InputError(f"{name}: {error}", *compiled_values.place(type(self), name), code=error.code) from None
            except ArithmeticError as error:  # a size or a rate of nothing
                said = f"{name} cannot be computed with these values: {error}"
                raise InputError(said, *compiled_values.place(type(self), name), code="out-of-range") from None

        calls = part("calls", lambda: self.calls(p, layout), None)
        assert calls is not None, "every run calls the library"
        within = part("within_host", lambda: self.within_host(p, layout), NO_PATH)
        between = part("between_hosts", lambda: self.between_hosts(p, layout), NO_PATH)
        nowhere: tuple[OneSided | None, OneSided | None] = (None, None)
        one_sided = part("one_sided", lambda: self.one_sided(p, layout), nowhere)
        convert = part("conversion", lambda: self.conversion(p), (0.0, 0.0, 0.0))
        test = part("probing", lambda: Cost.of(self.probing(p, layout)), Cost())
        lock = Cost.of(calls.call_lock)
        with p.reading("calls"):
            hosts = self.hosts(p, layout)
        return {
            "hosts": engine_rows(hosts),
            "link": to_engine(layout.platform.link),
            "positions": list(layout.used),
            "placement": layout.places,
            "cores": list(layout.placement.cores),
            "same": [h.to_engine() for h in within.hops],
            "same_bulk": [h.to_engine() for h in within.bulk],
            "remote": [h.to_engine() for h in between.hops],
            "protocol_same": list(within.protocol),
            "protocol_remote": list(between.protocol),
            "staging_same": within.staging,
            "staging_remote": between.staging,
            "send_cpu": calls.send_cpu,
            "recv_cpu": calls.recv_cpu,
            "test_cpu": test.work,
            "test_system": test.os,
            "call_lock": lock.work,
            "lock_system": lock.os,
            "direct_call": within.direct_call,
            "recv_wait": to_engine(calls.recv_wait),
            "send_wait": to_engine(calls.send_wait),
            "idle": {role: to_engine(w) for role, w in {**within.idle, **between.idle}.items()},
            "forward_cost": {**within.forward_cost, **between.forward_cost},
            "unexpected_limit": calls.unexpected_limit,
            "convert_byte": convert[0],
            "convert_buffer": convert[1],
            "convert_call": convert[2],
            "kills": [],
            "one_sided_same": one_sided[0] and to_engine(one_sided[0]),
            "one_sided_remote": one_sided[1] and to_engine(one_sided[1]),
            "bcast": to_engine(calls.broadcast),
        }

    def joins(self, platform: Platform, placement: list[int]) -> str:
        """Why this runtime cannot run one job across the hosts of ``placement``; empty if it can."""
        return ""

    def cautions(self, p: Values, platform: Platform, placement: list[int]) -> list[str]:
        """Effects that may change the outcome of a run but are not simulated, because no rate was published."""
        return []

    def startup(
        self, p: Values, platform: Platform, placement: list[int], draw: Random
    ) -> tuple[list[StartStep], str]:
        """The steps of starting a job, and why this start failed (empty if it succeeded); ``draw`` decides random failures."""
        return [], ""


def fit_tables(folder: Path) -> dict[str, dict[str, Any]]:
    """``fit.toml`` of a model folder: model name -> its tables values, bounds, residuals, meta; {} if there is no file.

    Raises InputError for an invalid file.
    """
    file = folder / "fit.toml"
    try:
        stat = file.stat()
    except OSError:
        return {}
    return _fit_tables(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)  # a calibration resolves thousands of times between two writes
def _fit_tables(file: Path, mtime_ns: int, size: int) -> dict[str, dict[str, Any]]:
    _, tables = toml_text.read(file, "fit")
    for name, table in tables.items():
        if not isinstance(table, dict) or not isinstance(table.get("values", {}), dict):
            raise InputError(f"'{name}' must be a table with a table 'values'", file, code="bad-fit")
    return tables


def _fitted_values(model: type[RuntimeModel]) -> dict[str, tuple[float | str, str, str]]:
    """Parameter -> (value, text, source) for every fitted parameter that has a fit.

    A variant uses its own fit and, for parameters that it does not redeclare, that of its parent; a model that inherits from a class of
    another folder uses the fit there.
    """
    params = model.params()
    found = _fitted_at_hand(model)
    for klass in (k for k in model.__mro__ if issubclass(k, RuntimeModel) and k is not RuntimeModel):
        name = fit_name(klass)
        # What is inherited from a model of the package may have been fitted again with the model itself.
        file = next((f / "fit.toml" for f in (model.folder(), klass.folder()) if name in fit_tables(f)), None)
        if file is None:
            continue
        where = "fit.toml" if file.parent == model.folder() else f"{file.parent.name}/fit.toml"
        for key, text in fit_tables(file.parent)[name].get("values", {}).items():
            param = klass.params().get(key)
            stale = "; the fit is older than the model: delete it and run 'retrompi calibrate'"
            if param is None:
                raise InputError(
                    f"[{name}.values] {key} does not exist{nearest(key, klass.params())}{stale}", file, code="unknown-parameter"
                )
            if not param.fitted:
                raise InputError(f"[{name}.values] {key} is not a fitted parameter{stale}", file, code="unknown-parameter")
            try:
                value = param.parse(str(text))
            except UsageError as error:
                raise InputError(f"[{name}.values] {key}: {error}", file, code=error.code) from None
            if not param.inside(value):
                raise InputError(f"[{name}.values] {key} = {text} lies outside its {param.range_text}{stale}", file, code="out-of-range")
            if key not in found and params[key] is param:
                found[key] = (value, str(text), f"fit:{where} [{name}]")
    return found


def _fitted_at_hand(model: type[RuntimeModel]) -> dict[str, tuple[float | str, str, str]]:
    """As `_fitted_values`, of the papers at hand, which may also fit what is assumed."""
    params = model.params()
    found: dict[str, tuple[float | str, str, str]] = {}
    for name in dict.fromkeys((model.name, model.name.partition(":")[0])):
        for fit, values in fits_at_hand(name, model.folder() / "__init__.py"):
            for key, text in values.items():
                param = params.get(key)
                if param is None or not param.source.startswith(("fit:", "assumed:")):
                    wrong = "is no parameter" if param is None else f"has the source '{param.source}'"
                    raise InputError(f"{name}.{key} {wrong}; run 'retrompi calibrate' again", fit, code="unknown-parameter")
                try:
                    value = param.parse(str(text))
                except UsageError as error:
                    raise InputError(f"{name}.{key}: {error}", fit, code=error.code) from None
                if not param.inside(value):
                    raise InputError(f"{name}.{key} = {text} lies outside its {param.range_text}", fit, code="out-of-range")
                found.setdefault(key, (value, str(text), f"fit:{fit.parent.name}/fit.toml"))
    return found


def fit_name(cls: type[RuntimeModel]) -> str:
    """The table of a class in a ``fit.toml``: its model's name; for a shared base without one, its folder's."""
    return cls.__dict__.get("name") or cls.folder().name


def fit_place(cls: type[RuntimeModel], key: str) -> tuple[Path, str]:
    """(``fit.toml``, its table) where a fit of the parameter ``key`` belongs: beside the model, and for a model of the package that has
    it from a shared base (``models/_mpich1``), beside that base, so that every other model of it has the value too.
    """
    declares = next(k for k in cls.__mro__ if isinstance(k.__dict__.get(key), Param))
    shared = "name" not in declares.__dict__ and declares.__module__.startswith("retrompi.models.")
    owner: type[RuntimeModel] = declares if shared and cls.__module__.startswith("retrompi.models.") else cls
    return owner.folder() / "fit.toml", fit_name(owner)


def resolve(cls: type[RuntimeModel], platform: Platform, sets: Mapping[str, str] | Sequence[str] = ()) -> tuple[Values, Platform]:
    """The values in force of a model (defaults, then fit, then overrides) and the platform with its overrides.

    Keys of ``sets``: ``<param>`` or ``<model>.<param>``, ``coll.<operation>`` or ``<model>.coll.<operation>`` for the algorithm of a
    collective, ``platform.host.<key>`` for every host, ``platform.<host>.<key>`` for one, ``platform.link.<key>``. Raises UsageError on
    an unknown key or a wrong unit.
    An override may lie outside the sourced range (for what-if studies), but must have the right unit; ``x2`` and ``50%`` are parts of the
    value in force.
    """
    for_model: dict[str, str] = {}
    for_platform: dict[str, str] = {}
    for key, text in parse_sets(sets).items():
        if key.startswith("platform."):
            for_platform[key.removeprefix("platform.")] = text
        else:
            for_model[key] = text
    return model_values(cls, for_model), platform.with_overrides(for_platform) if for_platform else platform


def absolute_sets(sets: Mapping[str, str], values: Values, platform: Platform) -> dict[str, str]:
    """``sets`` with each factor (``x2``, ``50%``) replaced by what `resolve` made of it: what identifies the run.

    A factor for every host is a value for each where they differ. Each is told (`retrompi.spec.runtime.overrides.telling`).
    """
    found: dict[str, str] = {}
    for key, text in sets.items():
        if parse_factor(text, "1") is None:
            found[key] = text
            continue
        path = key.removeprefix("platform.")
        if path == key:
            made = {key: values.settings[key.rpartition(".")[2]].text}
        else:
            made = {f"platform.{p}" if p != path else key: text for p, text in platform.texts(path).items()}
        made = {k: v.replace(" ", "") for k, v in made.items()}  # as one writes it on a command line
        found |= made
        if text not in made.values():  # 50% of a probability is a value
            tell(f"{key}={text} is {', '.join(made.values()) if len(made) == 1 else ', '.join(f'{k}={v}' for k, v in made.items())}")
    return found


@lru_cache(maxsize=64)
def _defaults(cls: Any, fits_now: tuple[tuple[Path, tuple[int, int] | None], ...]) -> dict[str, Setting]:
    """The values of a model with its fits and without overrides; ``fits_now``, the stamps of their files, is the cache key."""
    settings: dict[str, Setting] = {}
    fits = _fitted_values(cls)
    for name, param in cls.params().items():
        if name in fits:
            value, text, source = fits[name]
        else:
            value, text, source = param.parse(param.default), param.default, param.source
            if param.fitted:
                where = f" ({param.range_text})" if param.range_text else ""
                source = f"assumed: not fitted yet{where}"
        settings[name] = Setting(value, text, source)
    return settings


def model_values(cls: type[RuntimeModel], sets: Mapping[str, str] | Sequence[str] = ()) -> Values:
    """The values in force of a model; like `resolve`, without ``platform.`` keys. Raises UsageError for an unknown key or a wrong unit."""
    params = cls.params()
    known: Any = cls
    files = [folder / "fit.toml" for folder in (*cls.folders(), *paths.at_hand())]
    settings = dict(_defaults(known, tuple((file, stamp(file)) for file in files)))
    own_prefixes = {cls.name, cls.name.partition(":")[0], cls.name.partition(":")[2]} - {""}
    for key, text in parse_sets(sets).items():
        prefix, dot, name = key.rpartition(".")
        collective = f"{prefix}.".endswith(f".{PREFIX}") or prefix + dot == PREFIX
        if collective:
            prefix, name = prefix[: -len(PREFIX)] if len(prefix) > len(PREFIX) else "", PREFIX + name
            dot = "." if prefix else ""
        if (dot and prefix not in own_prefixes) or name not in (doors() if collective else params):
            base = cls.name.partition(":")[0]
            valid = [f"{base}.{k}" if dot else k for k in (doors() if collective else params)]
            if key == "platform":
                valid = ["platform.host.quantum", "platform.link.bandwidth"]
            raise UsageError(f"model '{cls.name}' has no parameter '{key}'{nearest(key, valid, 40)}", code="unknown-parameter")
        if collective:
            params[name] = doors()[name]
        if name in settings and not params[name].choices:
            text = absolute(text, params[name].unit, settings[name].text, key)
        try:
            value = params[name].parse(text)
        except UsageError as error:
            raise UsageError(f"{key}: {error}", code=error.code) from None
        before = f"{settings[name].text}, {settings[name].source}" if name in settings else "the model's table"
        settings[name] = Setting(value, text, f"assumed: set by the user (was {before})", True)
    return Values(cls.name, params, settings, named_host.factors(params, cls.folder()))
