"""One point of a study: how a key changes a scenario, which values are valid, and the work of a worker process."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from retrompi.base import units
from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.sim.simulate import SimulationEnded
from retrompi.spec import registry
from retrompi.spec.collectives import PREFIX, doors
from retrompi.spec.conditions import cross_traffic, network_model
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.declare.fields import quantities
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.host import Host
from retrompi.spec.machine import topology
from retrompi.spec.machine.composition import MAX_HOSTS, with_size
from retrompi.spec.machine.link import Link
from retrompi.spec.platform import LINK_WORDS, Platform, declaration
from retrompi.spec.question import NO_RESULT
from retrompi.spec.runtime.overrides import merge
from retrompi.store import lookup
from retrompi.store.identity import RunSpec
from retrompi.store.identity import specification as specify
from retrompi.store.kept import Kept, Outbox
from retrompi.studies.define.same_but_seed import Alike
from retrompi.studies.define.scenario import SETTINGS, Scenario

__all__ = [
    "ERROR",
    "LISTS",
    "WORDS",
    "PointJob",
    "PointResult",
    "ValueChecker",
    "about",
    "apply",
    "concerns",
    "evaluate",
    "identity",
    "proper",
    "specification",
    "whole",
]

WORDS = ("model", "platform", "mode", "hosts", *(k for k, f in SETTINGS.items() if f.kind != "texts" and k not in NO_RESULT))
LISTS = tuple(k for k, f in SETTINGS.items() if f.kind == "texts")
"""Keys whose value is a list of the scenario: items joined by `` + ``, or ``none``."""
PROGRAM = {"trace.section": "section", "trace.compute": "compute_s", "trace.memory_share": "memory_share"}
ALIASES = {"ranks": "trace.ranks", "size": "trace.size", "sizes": "trace.sizes", "reps": "trace.reps"}
ERROR = "error"
"""The outcome of a point without a run: input or internal error."""


# -- keys -----------------------------------------------------------------------------------------------------------------


def proper(key: str) -> str:
    """A key by its full name: ``ranks`` is short for ``trace.ranks``. Whoever reads keys that others wrote compares this, and only this."""
    return ALIASES.get(key.strip(), key.strip())


def _owner(key: str) -> str:
    """The model that a key names: ``wmpi`` in ``wmpi.packet``; empty for a key that names no model."""
    if key in WORDS or key in LISTS or key.startswith(("trace.", "platform.", PREFIX)):
        return ""
    prefix = key.rpartition(".")[0]
    return prefix.removesuffix(PREFIX.rstrip(".")).rstrip(".")


def _names(model: str) -> set[str]:
    """Valid prefixes (before the dot) of a key of this model."""
    base, _, variant = model.partition(":")
    base = Path(base).name if "/" in base else base
    return {base, variant, f"{base}:{variant}"} - {""}


def concerns(key: str, model: str) -> bool:
    """Whether a key applies to a point of this model; a parameter of another model does not."""
    owner = _owner(key)
    return not owner or owner in _names(model)


def apply(scenario: Scenario, values: Mapping[str, str]) -> Scenario:
    """The scenario with other values, ``{key: text}``. Every change of a scenario by a key is made here.

    Keys: model, platform, hosts (number of the platform's hosts), mode, the settings of a scenario (`SETTINGS`), ``trace.ARGUMENT``,
    MODEL.param, ``platform.*``. A change of model drops the overrides of the previous one. Raises UsageError for a key or value that no
    run could have; whether a model has a parameter is checked when the point is resolved.
    """
    given = {proper(k): v.strip() for k, v in values.items()}
    model = given.pop("model", scenario.model)
    sets = scenario.sets
    if model != scenario.model:
        sets = {k: v for k, v in sets.items() if concerns(k, model) and (_owner(k) or k.startswith(("platform.", PREFIX)))}
    platform = given.pop("platform", scenario.platform)
    if "hosts" in given:
        platform = with_size(platform, _whole("hosts", given.pop("hosts"), 1, MAX_HOSTS))
    changed: dict[str, Any] = {"model": model, "platform": platform, "given": {}}
    settings: dict[str, str] = {}
    args = dict(scenario.args) if any(key.startswith("trace.") for key in given) else scenario.args
    program: dict[str, Any] = {}
    for key, text in given.items():
        if key == "mode":
            changed["mode"] = text
        elif key in SETTINGS:
            settings[key] = text
        elif key.startswith("trace."):
            _of_trace(scenario, key, text, changed, args, program)
        else:
            sets = merge(sets, {key: text})
    if program:
        changed["program"] = replace(scenario.program, **program)
        if "compute_s" in program:
            changed["stated"] = None  # for the platform in question
    made = replace(scenario, sets=sets, args=args, **changed)
    return made.with_settings(settings) if settings else made


def _whole(key: str, text: str, low: int, high: int | None = None) -> int:
    if not text.isdecimal() or int(text) < low or (high is not None and int(text) > high):
        span = f"from {low} on" if high is None else f"from {low} to {high}"
        raise UsageError(f"{key}: '{text}' is not a whole number {span}", code="out-of-range")
    return int(text)


def _of_trace(scenario: Scenario, key: str, text: str, changed: dict[str, Any], args: Any, program: dict[str, Any]) -> None:
    """Applies a key ``trace.NAME`` to a scenario's generator, trace file or start-up."""
    name = key.removeprefix("trace.")
    if scenario.start:
        if name not in scenario.start:
            raise UsageError(f"unknown key '{key}'{nearest(key, trace_keys(scenario))}", code="unknown-key")
        changed["start"] = {**changed.get("start", scenario.start), name: _whole(key, text, 1)}
    elif scenario.trace is not None:
        if name == "file":
            path = Path(text)
            base = scenario.path.parent if scenario.path is not None else Path()
            changed["trace"] = (path if path.is_absolute() else base / path).resolve()
        elif name == "np":
            changed["np"] = _whole(key, text, 1)
        elif key in PROGRAM:
            program[PROGRAM[key]] = _program_value(key, text)
        else:
            raise UsageError(f"unknown key '{key}'{nearest(key, trace_keys(scenario))}", code="unknown-key")
    else:
        from retrompi.traces import generate

        made = generate.generator(str(scenario.generator))
        if name not in made.arguments:
            raise UsageError(f"unknown key '{key}'{nearest(key, trace_keys(scenario))}", code="unknown-key")
        args[name] = _argument(key, _relative(text, args.get(name, made.arguments[name].default)), made.arguments[name])


def _relative(text: str, before: Any) -> str:
    """``text``, or what the factor ``x2`` or ``50%`` makes of the number ``before``."""
    factor = units.parse_factor(text, "1")
    if factor is None or isinstance(before, bool) or not isinstance(before, int | float):
        return text
    return f"{float(Fraction(before) * factor):.12g}"


def _program_value(key: str, text: str) -> Any:
    if key == "trace.section":
        return text
    value = units.parse(text, "s" if key == "trace.compute" else "1")
    if key == "trace.memory_share":
        Program(memory_share=value)
    return value


def trace_keys(scenario: Scenario) -> list[str]:
    """The keys ``trace.*`` that a scenario has."""
    if scenario.start:
        return [f"trace.{k}" for k in scenario.start]
    if scenario.trace is not None:
        return ["trace.file", "trace.np", *PROGRAM]
    from retrompi.traces import generate

    return [f"trace.{k}" for k in generate.generator(str(scenario.generator)).arguments]


def _argument(key: str, text: str, parameter: inspect.Parameter) -> Any:
    """A generator's argument, converted from text to the type of the parameter."""
    name, kind = parameter.name, str(parameter.annotation)
    if name == "sizes":
        return tuple(units.parse_sizes(text))
    if name == "size":
        return int(units.parse_sizes(text)[0]) if "," not in text and ".." not in text else _refuse(key, text, "one size")
    if kind == "bool":
        return text == "true" if text in ("true", "false") else _refuse(key, text, "true or false")
    if kind == "str":
        return text
    if kind == "float":
        return units.parse(text, "1")
    if kind.startswith("Sequence[int]"):
        return [_whole(key, part.strip(), 1) for part in text.split("x")]
    return _whole(key, text, 0 if name == "root" else 1)


def _refuse(key: str, text: str, wanted: str) -> NoReturn:
    raise UsageError(f"{key}: '{text}' is not {wanted}", code="bad-value")


@dataclass(frozen=True)
class KeyInfo:
    """Description of a scenario's key: its base unit (``""`` for words), its choices, and its current value as text and number."""

    unit: str
    choices: tuple[str, ...]
    text: str
    value: float | str | None


def about(scenario: Scenario, key: str) -> KeyInfo:
    """The description of a key, for callers that generate values. UsageError for an unknown key."""
    key = proper(key)
    if key.startswith("platform."):
        platform = registry.platform(scenario.platform).with_overrides(
            {k.removeprefix("platform."): v for k, v in scenario.sets.items() if k.startswith("platform.")}
        )
        path = key.removeprefix("platform.")
        path = path if not path.startswith("host.") else f"{platform.hosts[0].name}.{path.removeprefix('host.')}"
        words = {f"link.{word}" for word in LINK_WORDS}
        if path not in words:
            quantity = platform.quantity(platform.paths(path)[0])
            return KeyInfo(quantity.unit, (), quantity.text, quantity.value)
        return KeyInfo("", (), str(getattr(platform.link, path.rpartition(".")[2], "")), None)
    if key.startswith("trace."):
        name = key.removeprefix("trace.")
        if key not in (known := trace_keys(scenario)):
            raise UsageError(f"unknown key '{key}'{nearest(key, known)}", code="unknown-key")
        value = scenario.start.get(name, scenario.args.get(name)) if scenario.start or scenario.generator else getattr(scenario, name, None)
        unit = "B" if name in ("size", "sizes") else "s" if name == "compute" else "1" if isinstance(value, int | float) else ""
        return KeyInfo(unit, (), "" if value is None else str(value), value if isinstance(value, int | float) else None)
    if (operation := PREFIX + key.rpartition(PREFIX)[2]) in doors():
        return KeyInfo("", tuple(doors()[operation].choices or ()), "", None)
    if _owner(key) and concerns(key, scenario.model):
        from retrompi.spec.registry import resolve

        values, _ = resolve(scenario.model, scenario.platform, scenario.sets)
        row = next((r for r in values.describe() if r["name"] == key.rpartition(".")[2]), None)
        if row is not None:
            return KeyInfo("" if row["choices"] else units.canonical(row["unit"]), tuple(row["choices"] or ()), row["text"], row["value"])
    if key not in (*WORDS, *LISTS):
        valid = ValueChecker(scenario, [scenario.model], [scenario.platform]).keys()
        raise UsageError(f"unknown key '{key}'{nearest(key, valid, 16)}", code="unknown-key")
    if key == "hosts":
        number = len(registry.platform(scenario.platform).hosts)
        return KeyInfo("1", (), str(number), float(number))
    if key not in SETTINGS:
        return KeyInfo("", (), str(getattr(scenario, key)), None)
    value, f = scenario.setting(key), SETTINGS[key]
    text = " + ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
    if f.kind in ("whole", "quantity"):
        return KeyInfo("1" if f.kind == "whole" else f.unit, (), text, None if value is None else float(value))
    return KeyInfo("", ("false", "true") if f.kind == "flag" else f.choices, text.lower() if f.kind == "flag" else text, None)


def whole(key: str, model: str) -> bool:
    """Whether only whole numbers make sense for a key that is drawn from a range."""
    if key.startswith("platform."):
        return declaration(key.removeprefix("platform.")).kind == "whole"
    if key.startswith("trace."):
        return key not in PROGRAM and key != "trace.flops"
    if not _owner(key):
        return key not in SETTINGS or SETTINGS[key].kind != "quantity"
    param = registry.model(model).params().get(key.rpartition(".")[2])
    return param is not None and param.unit in ("count", "B")


# -- values, before anything runs ----------------------------------------------------------------------------------------


@dataclass
class ValueChecker:
    """The models and platforms of a study's points; platforms have up to ``hosts`` hosts (0: unchanged).

    ``check`` rejects values that no point could have. ``changed``: some platform parameter is set or varies.
    """

    scenario: Scenario
    models: Sequence[str]
    platforms: Sequence[str]
    hosts: int = 0
    changed: bool = False
    _loaded: list[Platform] = field(default_factory=list)

    def loaded_platforms(self) -> list[Platform]:
        """The study's platforms, read once."""
        if not self._loaded:
            self._loaded = [registry.platform(p) for p in self.platforms]
            if self.hosts:
                self._loaded = [registry.platform(with_size(p, self.hosts)) for p in self.platforms] + self._loaded
        return self._loaded

    def keys(self) -> list[str]:
        """Every valid key."""
        params = [f"{cls.name.partition(':')[0]}.{k}" for cls in map(registry.model, self.models) for k in cls.params()]
        of_link = [f"platform.link.{k}" for k in (*LINK_WORDS, *quantities(Link))]
        return [*WORDS, *LISTS, *trace_keys(self.scenario), *params, *of_link, *(f"platform.host.{k}" for k in quantities(Host))]

    def check(self, key: str, texts: Iterable[str]) -> None:
        """Raises UsageError unless ``key`` exists and every one of ``texts`` is a valid value for at least one point."""
        check = self._check_of(key)
        for text in texts:
            check(text)

    def _check_of(self, key: str) -> Callable[[str], object]:
        if key == "model":
            return registry.model
        if key == "platform":
            return registry.platform
        if key == "mode":
            return lambda text: self._any(lambda platform: platform.placement(text))
        if key == "network":
            return network_model.parse
        if key == "kills":
            return lambda text: self._any(lambda platform: _check_kills(text, platform))
        if key == "traffic" and not self.changed:  # else checked for each point
            return lambda text: self._any(lambda platform: cross_traffic.traffic(SETTINGS[key].take(text, key), platform, ()))
        if key == "failures" and not self.changed:
            return lambda text: self._any(lambda platform: cross_traffic.failures(SETTINGS[key].take(text, key), platform))
        if key == "hosts" or key in SETTINGS or key.startswith("trace."):
            return lambda text: apply(self.scenario, {key: text})
        if key.startswith("platform."):
            path = key.removeprefix("platform.")
            if path in (f"link.{word}" for word in LINK_WORDS):  # depends on the kind and number of hosts: checked per point
                return lambda text: topology.check_word(path.removeprefix("link."), text)
            return lambda text: self._any(lambda platform: platform.with_overrides({path: text}))
        owner = _owner(key)
        mine = [m for m in self.models if owner and owner in _names(m)]
        if not mine and not key.startswith(PREFIX):
            raise UsageError(f"unknown key '{key}'{nearest(key, self.keys(), 16)}", code="unknown-key")
        return lambda text: _with(mine or self.models, key, text)

    def _any(self, work: Callable[[Platform], object]) -> None:
        """Runs ``work`` on the platforms until it succeeds on one; otherwise raises the error of the first."""
        first: RetrompiError | None = None
        for platform in self.loaded_platforms():
            try:
                work(platform)
            except RetrompiError as error:
                first = first or error
            else:
                return
        if first is not None:
            raise first


def _with(models: Iterable[str], key: str, text: str) -> None:
    from retrompi.spec.model import model_values

    for model in models:
        model_values(registry.model(model), {key: text})


def _check_kills(text: str, platform: Platform) -> None:
    hosts = [h.name for h in platform.hosts]
    for item in SETTINGS["kills"].take(text, "kills"):
        name, at, when = (part.strip() for part in item.rpartition("@"))
        if not at or not name:
            raise UsageError(f"kills: '{item}' is not PROCESS@TIME; example: rank 1@0.5s", code="bad-syntax")
        host = name.partition(" of job ")[0].partition(" on ")[2]
        if host and host not in hosts:  # whether the process exists depends on the runtime: checked per point
            raise UsageError(f"platform '{platform.name}' has no host '{host}'{nearest(host, hosts)}", code="unknown-host")
        units.parse(when, "s")


# -- the work -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointJob:
    """A point to be simulated."""

    position: int
    scenario: Scenario
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True)
class PointResult:
    """The result of a job: its runs as they are to be stored, the point's own run last; plain data.

    ``outcome`` is that of the run or ``error``, with the ``reason``. ``wall_s`` is the job's wall time in seconds.
    """

    outcome: str
    reason: str = ""
    runs: tuple[Kept, ...] = ()
    wall_s: float = 0.0


def specification(scenario: Scenario) -> RunSpec:
    """The specification of a scenario's run. Raises the errors of `Resolved.of`."""
    return specify(scenario.question())


def identity(scenario: Scenario) -> str:
    """The identity of a scenario's run."""
    return specification(scenario).identity


def evaluate(job: PointJob, alike: Alike | None = None) -> PointResult:
    """Runs a job without a store. Errors of the simulation or its input are not raised but returned as outcome and reason.

    Jobs that are run one after another share ``alike``.
    """
    outbox: Any = Outbox()
    began = time.perf_counter()
    reason = ""
    try:
        lookup.answer(outbox, (alike or Alike()).resolve(job.scenario, job.bounds))
    except SimulationEnded as ended:
        reason = str(ended)
    except RetrompiError as error:
        return PointResult(ERROR, str(error), wall_s=time.perf_counter() - began)
    except Exception as error:
        said = f"internal error: {type(error).__name__}: {error}".splitlines()[0]
        return PointResult(ERROR, said, wall_s=time.perf_counter() - began)
    runs: tuple[Kept, ...] = tuple(outbox.kept)
    took = time.perf_counter() - began
    if not runs or runs[-1].spec.kind == "sample":
        return PointResult(ERROR, reason or "nothing was simulated", wall_s=took)
    row = runs[-1].row
    return PointResult(row["outcome"], "" if row["outcome"] == Outcome.COMPLETED else str(row["detail"]), runs, took)
