"""A study's definition: a scenario and its axes, read from a file or a command line, and the points they produce."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from retrompi.base import names, paths
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.base.files import is_file
from retrompi.spec.registry import toml_file, toml_files
from retrompi.spec.runtime.overrides import parse_sets
from retrompi.studies.define import case, catalogue
from retrompi.studies.define.axes import ABSENT, Axis, Steps, Text, parse
from retrompi.studies.define.scenario import Scenario, from_data, line_of
from retrompi.studies.define.used_overrides import Applies

__all__ = ["DRAW", "KEYS", "LIMIT", "SAMPLINGS", "Study", "StudyPoint", "check", "check_name", "count", "each", "from_command",
           "from_definition", "load", "points", "positions"]

LIMIT = 100_000
"""Default limit on the number of points of a study."""
MOST_DRAWN = 1_000_000
"""Maximum number of points of a Latin hypercube, which is held in memory as a whole, and of points with draws."""
DRAW = "draw"
"""The axis of a study with draws: ``-`` for the run with nominal values, then 1, 2, ..."""
SAMPLINGS = ("grid", "lhs")
_TEXTS = ("name", "title", "question", "summary", "metric")
KEYS = (*_TEXTS, "scenario", "base", "folder", "sampling", "samples", "seed", "draws", "what_if_hardware", "vary", "zip", "set")
"""Every key of a study's file."""


@dataclass(frozen=True)
class Study:
    """A loaded study. Axes of one group vary together; ``fixed`` are overrides of every point to which they apply.

    With ``draws`` every point is followed by as many draws of its uncertain parameters, the axis ``draw``.
    """

    name: str
    base: Scenario
    groups: tuple[tuple[Axis, ...], ...]
    fixed: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    question: str = ""
    summary: str = ""
    metric: str = ""
    sampling: str = "grid"
    samples: int = 0
    seed: int = 1
    draws: int = 0
    shard: tuple[int, int] = (1, 1)
    """Which part of the points this is: (number from 1 on, how many parts)."""
    path: Path | None = None
    text: str = field(default="", repr=False, compare=False)

    def with_name(self, name: str) -> Study:
        """The same study under another name, unless ``name`` is empty."""
        return replace(self, name=check_name(name)) if name else self

    def part(self, shard: int, shards: int) -> Study:
        """A part of the same study: every ``shards``-th point, with its draws."""
        return replace(self, shard=(shard, shards))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every axis, in the order given."""
        return tuple(axis for group in self.groups for axis in group)

    def definition(self) -> dict[str, Any]:
        """Everything needed to rebuild this study (`from_definition`), as JSON, including the complete scenario."""
        base = dict(self.base.given)
        if self.base.trace is not None:
            base["trace"] = {**base["trace"], "file": str(self.base.trace)}
        return {
            "name": self.name,
            **{k: getattr(self, k) for k in _TEXTS[1:]},
            "base": base,
            "folder": str(self.base.path.parent.resolve()) if self.base.path is not None else "",
            "vary": {g[0].key: _json(g[0].given) for g in self.groups if len(g) == 1},
            "zip": [{a.key: _json(a.given) for a in g} for g in self.groups if len(g) > 1],
            "set": dict(self.fixed),
            "sampling": self.sampling,
            "samples": self.samples,
            "seed": self.seed,
            **({"draws": self.draws} if self.draws else {}),
        }

    @property
    def hash(self) -> str:
        """SHA-256 of all that determines the points (names and descriptions are excluded)."""
        given = self.definition()
        facts = {k: v for k, v in given.items() if k not in (*_TEXTS, "base", "folder")}
        if self.sampling == "grid":
            facts |= {"samples": 0, "seed": 1}
        facts |= {"scenario": self.base.hash, "outcome": self.base.outcome, "order": [[a.key for a in g] for g in self.groups]}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def fixed_base(self, model: str) -> Scenario:
        """The scenario with the overrides that every point of ``model`` has: made once, its parts are the points' as well."""
        if model not in self._fixed:
            self._fixed[model] = case.apply(self.base, _concerning(self.fixed, model))
        return self._fixed[model]

    @cached_property
    def _fixed(self) -> dict[str, Scenario]:
        return {}

    @cached_property
    def applies(self) -> Applies:
        """The overrides of the study that the runs of its points use."""
        found = Applies()
        # What a run uses does not depend on its seed: one of many stands for all.
        seeds = [g for g in self.groups if all(a.key == "seed" for a in g)] if self.sampling == "grid" else []
        times = math.prod(len(g[0]) for g in seeds)
        once = replace(self, groups=tuple(tuple(replace(a, values=(a.values[0],)) for a in g) if g in seeds else g for g in self.groups))
        for values in _values(once):
            found.count(_scenario(self, values), times)
        return found

    def fail(self, message: str, key: str = "", code: str | None = None) -> RetrompiError:
        """The error that names the study's file and the line of ``key``, where there is one."""
        if self.path is None:
            return UsageError(message, code=code)
        return InputError(message, self.path, line_of(self.text, key) if key else None, code=code)


def _json(given: Text) -> str | list[str]:
    return given if isinstance(given, str) else list(given)


@dataclass(frozen=True)
class StudyPoint:
    """A point: a text for every axis (``-`` if the axis does not apply to the point), and its scenario."""

    position: int
    values: dict[str, str]
    scenario: Scenario


# -- reading --------------------------------------------------------------------------------------------------------------


def load(path: str | Path) -> Study:
    """Read the study in ``path``; raises InputError with file and line for malformed content (`check` looks up names)."""
    file = Path(path)
    text, data = toml_text.read(file, "study")
    study = from_definition(data, file, text)
    try:
        check_name(study.name)
    except UsageError as error:
        raise study.fail(str(error), "name", code=error.code) from None
    return study


def check_name(name: str) -> str:
    """The name, if commands can find a study by it; UsageError for one that would be read as a number or a file."""
    names.check_name("a study", name)
    if name.isdecimal() or "/" in name or name.lower().endswith((".toml", ".zip")):
        raise UsageError(f"a study's name is a word or a few, no number and no path, not '{name}'", code="bad-name")
    return name


def from_definition(data: Mapping[str, Any], file: Path | None = None, text: str = "") -> Study:
    """The study described by the tables ``data``, read from a file or returned by `Study.definition`.

    Raises InputError with file and line, or UsageError without a ``file``, for malformed content.
    """
    with toml_text.taken_apart("study", file):
        return _from_definition(data, file, text)


def _from_definition(data: Mapping[str, Any], file: Path | None, text: str) -> Study:
    shell = Study("", _NOWHERE, (), path=file, text=text)
    fail = shell.fail
    for key in data:
        if key not in KEYS:
            raise fail(f"unknown key '{key}'{nearest(key, KEYS, 20)}", key, code="unknown-key")
    for key in _TEXTS:
        if not isinstance(data.get(key, ""), str):
            raise fail(f"'{key}' is not a text", key, code="bad-value")
    name = data.get("name", "")
    if not name.strip():
        raise fail("'name' is missing or not a text", "name", code="missing-key")
    if ("scenario" in data) == ("base" in data):
        raise fail("a study has either a scenario, by name or path, or a table [base] with a scenario's keys", "scenario", code="bad-value")
    sampling = data.get("sampling", "grid")
    if sampling not in SAMPLINGS:
        raise fail(f"no sampling '{sampling}'{nearest(str(sampling), SAMPLINGS)}", "sampling", code="unknown-name")
    for key, low in (("samples", 0), ("seed", 0), ("draws", 0)):
        value = data.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise fail(f"'{key}' is not a whole number from {low} on", key, code="bad-value")
    if not isinstance(data.get("what_if_hardware", False), bool):
        raise fail("'what_if_hardware' is true or false", "what_if_hardware", code="bad-value")
    samples = data.get("samples", 0)
    if (sampling == "lhs") != (samples > 0):
        raise fail('a Latin hypercube, and nothing else, has samples: sampling = "lhs" with samples = N', "samples")
    tables = data.get("vary", {}), data.get("zip", []), data.get("set", {})
    for key, table, kind in zip(("vary", "zip", "set"), tables, (dict, list, dict), strict=True):
        if not isinstance(table, kind):
            raise fail(
                f"'{key}' is not a table of quoted keys" if kind is dict else "'zip' is a list of tables: [[zip]]", key, code="bad-value"
            )
    vary, zips, fixed = tables
    return Study(
        name=name,
        base=_allow_fictions(_base(data, file, text, fail), data.get("what_if_hardware", False)),
        groups=_groups([*([(k, v)] for k, v in vary.items()), *(list(z.items()) for z in zips if isinstance(z, dict))], sampling, fail),
        fixed={case.proper(k): _scalar(k, v, fail) for k, v in fixed.items()},
        **{k: data.get(k, "") for k in _TEXTS[1:]},
        sampling=sampling,
        samples=samples,
        seed=data.get("seed", 1),
        draws=data.get("draws", 0),
        path=file,
        text=text,
    )


_NOWHERE = Scenario("", "", "", "", "", "", "")


def _base(data: Mapping[str, Any], file: Path | None, text: str, fail: Any) -> Scenario:
    if "base" in data:
        given = data["base"]
        if not isinstance(given, dict):
            raise fail("[base] is a table with a scenario's keys", "base", code="bad-value")
        words = {k: data.get(k) or data["name"] for k in ("name", "title", "summary")} | {"reproduces": f"what-if: {data['name']}"}
        place = Path(data["folder"]) / "study" if data.get("folder") else Path("study")
        return from_data({**words, **given}, file or place, text)
    which = data["scenario"]
    if not isinstance(which, str):
        raise fail("'scenario' is a name or a path", "scenario", code="bad-value")
    beside = file.parent / which if file is not None else None
    try:
        base = catalogue.scenario(str(beside) if beside is not None and which.endswith(".toml") and is_file(beside) else which)
    except UsageError as error:
        raise fail(str(error), "scenario", code=error.code) from None
    return base if file is None else replace(base, path=file)  # trace.file is relative to the study


def _allow_fictions(base: Scenario, fictions: bool) -> Scenario:
    return replace(base.with_settings({"what_if_hardware": True}), given={**base.given, "what_if_hardware": True}) if fictions else base


def _scalar(key: str, value: Any, fail: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise fail(f"'{key}' in [set] is not a text", key, code="bad-value")
    return str(value)


def _groups(given: Sequence[Sequence[tuple[str, Any]]], sampling: str, fail: Any) -> tuple[tuple[Axis, ...], ...]:
    """The axes of ``[vary]`` and ``[[zip]]``."""
    seen: set[str] = set()
    groups = []
    for together in given:
        group = []
        for written, value in together:
            key = case.proper(written)
            if key in seen:
                raise fail(f"'{written}' varies twice", written, code="duplicate-name")
            seen.add(key)
            if isinstance(value, list | tuple):
                if not all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in value):
                    raise fail(f"'{written}' is not a text or a list of texts", written, code="bad-value")
                value = tuple(str(v) for v in value)
            elif isinstance(value, bool) or not isinstance(value, str | int | float):
                raise fail(f"'{written}' is not a text or a list of texts", written, code="bad-value")
            else:
                value = str(value)
            try:
                group.append(parse(key, value, continuous=sampling == "lhs" and len(together) == 1, repeats=len(together) > 1))
            except UsageError as error:
                raise fail(str(error), written, code=error.code) from None
        if not group:
            raise fail("a table [[zip]] names the keys that go together", "zip")
        lengths = {len(axis) for axis in group if axis.span is None}
        if len(lengths) > 1:
            told = ", ".join(f"{axis.key} has {len(axis)}" for axis in group)
            raise fail(f"values that go together must be as many: {told}", group[0].key)
        groups.append(tuple(group))
    return tuple(groups)


def from_command(
    scenario: str,
    vary: Mapping[str, Text] | Iterable[str] = (),
    zip_: Iterable[str] = (),
    set_: Mapping[str, str] | Iterable[str] = (),
    *,
    sample: str = "",
    seed: int = 1,
) -> Study:
    """A study from a command line, named after its scenario (but see `Study.with_name`):
    ``vary`` items KEY=VALUES, ``zip_`` items "KEY=VALUES;KEY=VALUES", ``sample`` "lhs:N"."""
    base = replace(catalogue.scenario(scenario), path=Path.cwd() / "study")
    pairs = list(vary.items()) if isinstance(vary, Mapping) else [_pair("--vary", item) for item in vary]
    together = [[_pair("--zip", part) for part in item.split(";")] for item in zip_]
    sampling, samples = _sampling(sample)

    def fail(message: str, key: str = "", code: str | None = None) -> RetrompiError:
        return UsageError(message, code=code)

    groups = _groups([*([p] for p in pairs), *together], sampling, fail)
    fixed = {case.proper(k): v for k, v in parse_sets(set_ if isinstance(set_, Mapping) else list(set_)).items()}
    return Study(base.name, base, groups, fixed, base.title, sampling=sampling, samples=samples, seed=seed)


def _pair(option: str, item: str) -> tuple[str, Text]:
    key, equals, text = item.partition("=")
    if not equals or not key.strip() or not text.strip():
        raise UsageError(f"'{option} {item}' is not KEY=VALUES; example: {option} wmpi.packet=64KiB..2MiB:x2", code="bad-syntax")
    return key.strip(), text.strip()


def _sampling(text: str) -> tuple[str, int]:
    if not text or text == "grid":
        return "grid", 0
    kind, _, number = text.partition(":")
    if kind != "lhs" or not number.isdecimal() or int(number) < 1:
        raise UsageError(f"'--sample {text}' is neither grid nor lhs:N; example: --sample lhs:200", code="bad-syntax")
    return "lhs", int(number)


# -- the points -----------------------------------------------------------------------------------------------------------


def count(study: Study) -> int:
    """Number of points, without building them; each of its draws is one. Of a shard, its own."""
    return _own(study) * (1 + study.draws)


def _own(study: Study) -> int:
    shard, shards = study.shard
    return (_nominal(study) - shard) // shards + 1


def positions(study: Study) -> Iterator[int]:
    """The positions of `each`, without building the points."""
    shard, shards = study.shard
    for first in range(shard - 1, _nominal(study), shards):
        yield from range(first * (1 + study.draws), (first + 1) * (1 + study.draws))


def _nominal(study: Study) -> int:
    if study.sampling == "lhs":
        return study.samples
    holder, total = _model_group(study), 0
    for index in range(len(study.groups[holder][0]) if holder is not None else 1):
        model = _model_at(study, holder, index)
        total += math.prod(_length(g, model) for i, g in enumerate(study.groups) if i != holder)
    return total


def _model_group(study: Study) -> int | None:
    return next((i for i, g in enumerate(study.groups) if any(a.key == "model" for a in g)), None)


def _model_at(study: Study, holder: int | None, index: int) -> str:
    if holder is None:
        return study.fixed.get("model", study.base.model)
    return next(a for a in study.groups[holder] if a.key == "model").values[index]


def _length(group: Sequence[Axis], model: str) -> int:
    """Number of values of a group for the points of a model: one if none of its axes applies to them."""
    return len(group[0]) if any(case.concerns(a.key, model) for a in group) else 1


def check(study: Study, limit: int = LIMIT) -> None:
    """Rejects an invalid study before anything runs: too many points, an unknown key, a value that no point could have.

    Raises InputError for a study from a file, UsageError for one from a command line.
    """
    total = _own(study)
    if count(study) > MOST_DRAWN and study.draws:
        raise study.fail(f"this study has {total} points of {study.draws} draws each, more than {MOST_DRAWN} runs; "
                         "fewer draws or points", "draws", code="too-many")
    if total > limit:
        raise study.fail(f"this study has {total} points, more than {limit}; --max-points {total} allows them, "
                         "a larger step or --sample lhs:N makes fewer", "vary", code="too-many")
    if study.samples > MOST_DRAWN:
        raise study.fail(f"a Latin hypercube has at most {MOST_DRAWN} points, not {study.samples}", "samples", code="out-of-range")
    models = _values_of(study, "model") or [study.base.model]
    platforms = _values_of(study, "platform") or [study.base.platform]
    hosts = [int(n) for n in _telling(_values_of(study, "hosts")) if n.isdecimal()]
    varied = {*(a.key for a in study.axes), *study.fixed, *study.base.sets}
    changed = any(key.startswith("platform.") for key in varied)
    checker = case.ValueChecker(study.base, models, platforms, max(hosts, default=0), changed)
    if study.metric:
        from retrompi.studies.define import metrics

        try:
            metrics.parse(study.metric)
        except UsageError as error:
            raise study.fail(str(error), "metric", code=error.code) from None
    # Names first: the valid values of a parameter depend on the models and platforms.
    first = ("model", "platform", "hosts")
    for axis in sorted(study.axes, key=lambda a: a.key not in first):
        try:
            checker.check(axis.key, axis.span.ends if axis.span is not None else _telling(axis.values))
        except RetrompiError as error:
            raise study.fail(_about(axis.key, str(error)), axis.key, code=error.code) from None
        if axis.key in study.fixed:
            raise study.fail(f"'{axis.key}' is set and varies; leave out one of them", axis.key, code="duplicate-name")
    for key, text in sorted(study.fixed.items(), key=lambda item: item[0] not in first):
        try:
            checker.check(key, [text])
        except RetrompiError as error:
            raise study.fail(_about(key, str(error)), key, code=error.code) from None
    for key, line in study.applies.nowhere().items():
        raise study.fail(line, key, code="idle-override")


def _telling(values: Sequence[str]) -> Sequence[str]:
    """The values that have to be checked to validate all of them: for even steps, the first two and the last."""
    return [values[i] for i in (0, min(1, len(values) - 1), len(values) - 1)] if isinstance(values, Steps) else values


def _about(key: str, message: str) -> str:
    return message if key in message else f"{key}: {message}"


def _values_of(study: Study, key: str) -> Sequence[str]:
    axis = next((a for a in study.axes if a.key == key), None)
    if axis is None:
        return [study.fixed[key]] if key in study.fixed else []
    return axis.span.ends if axis.span is not None else axis.values


def each(study: Study) -> Iterator[StudyPoint]:
    """Every point in turn; the last axis varies fastest. Points that differ only in a key of another model are merged.

    Overrides that a point's run does not use (`Study.applies`) are left out.
    """
    nowhere = study.applies.nowhere().keys()
    shard, shards = study.shard
    for position, values in islice(enumerate(_values(study)), shard - 1, None, shards):
        scenario = _scenario(study, values)
        # Overrides that no point uses are kept: `check` rejects them.
        idle = study.applies.of(scenario).keys() - nowhere
        if idle:
            scenario = replace(scenario, sets={k: v for k, v in scenario.sets.items() if k not in idle})
            values = {k: ABSENT if k in idle else v for k, v in values.items()}
        if not study.draws:
            yield StudyPoint(position, values, scenario)
            continue
        first = position * (1 + study.draws)
        yield StudyPoint(first, {**values, DRAW: ABSENT}, scenario)
        for number, drawn in enumerate(_draws(scenario, study.draws), 1):
            yield StudyPoint(first + number, {**values, DRAW: str(number)}, drawn)


def _draws(scenario: Scenario, draws: int) -> Iterator[Scenario]:
    """The scenario with the drawn values of each draw; as it is where it has no run."""
    from retrompi.sim.resolved import Resolved
    from retrompi.studies.draws.uncertainty import Spec, drawn_of

    try:
        drawn = drawn_of(Resolved.of(scenario.question()), Spec(draws=draws))
    except RetrompiError:
        yield from (scenario for _ in range(draws))
        return
    yield from (replace(scenario, drawn=drawn.sets(i)) for i in range(draws))


def _values(study: Study) -> Iterator[dict[str, str]]:
    return _samples(study) if study.sampling == "lhs" else _grid(study)


def points(study: Study) -> list[StudyPoint]:
    """All of `each`."""
    return list(each(study))


def _scenario(study: Study, values: Mapping[str, str]) -> Scenario:
    model = values.get("model", study.fixed.get("model", study.base.model))
    varied = {k: v for k, v in values.items() if v != ABSENT}
    if _STRUCTURE.isdisjoint(varied):
        return case.apply(study.fixed_base(model), varied)
    return case.apply(study.base, {**_concerning(study.fixed, model), **varied})


_STRUCTURE = frozenset({"model", "platform", "hosts"})
"""Keys that other keys depend on."""


def _concerning(fixed: Mapping[str, str], model: str) -> dict[str, str]:
    return {k: v for k, v in fixed.items() if case.concerns(k, model)}


def _grid(study: Study) -> Iterator[dict[str, str]]:
    holder = _model_group(study)
    before = holder if holder is not None else 0
    for head in _combinations([len(g[0]) for g in study.groups[:before]]):
        for index in range(len(study.groups[holder][0]) if holder is not None else 1):
            model = _model_at(study, holder, index)
            # Groups before the model's that do not apply to it contribute their first value only.
            if any(at >= _length(g, model) for at, g in zip(head, study.groups, strict=False)):
                continue
            rest = study.groups[before + (holder is not None) :]
            for tail in _combinations([_length(g, model) for g in rest]):
                yield _values_by_key(study, [*head, *([index] if holder is not None else []), *tail], model)


def _combinations(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Every combination of indices, the last one fastest, in constant memory (`itertools.product` would store the ranges)."""
    at = [0] * len(lengths)
    while True:
        yield at
        for i in reversed(range(len(lengths))):
            at[i] += 1
            if at[i] < lengths[i]:
                break
            at[i] = 0
        else:
            return


def _values_by_key(study: Study, at: Sequence[int], model: str) -> dict[str, str]:
    return {
        axis.key: axis.values[i] if case.concerns(axis.key, model) else ABSENT
        for i, group in zip(at, study.groups, strict=True)
        for axis in group
    }


def _samples(study: Study) -> Iterator[dict[str, str]]:
    """A Latin hypercube: each group is one dimension, divided into as many strata as there are samples."""
    import numpy as np
    from scipy.stats import qmc

    if not study.groups:
        yield from ({} for _ in range(study.samples))
        return
    drawn = qmc.LatinHypercube(d=len(study.groups), seed=np.random.default_rng(study.seed)).random(study.samples)
    holder = _model_group(study)
    for row in drawn:
        model = _model_at(study, holder, 0 if holder is None else _at(row[holder], study.groups[holder]))
        values = {}
        for share, group in zip(row, study.groups, strict=True):
            for axis in group:
                if not case.concerns(axis.key, model):
                    values[axis.key] = ABSENT
                elif axis.span is not None:
                    span = axis.span.in_whole_numbers() if case.whole(axis.key, model) else axis.span
                    values[axis.key] = span.text(span.at(float(share)))
                else:
                    values[axis.key] = axis.values[_at(share, group)]
        yield values


def _at(share: float, group: Sequence[Axis]) -> int:
    return min(int(share * len(group[0])), len(group[0]) - 1)


def study_names() -> list[str]:
    """The names of `studies`, without reading the files."""
    return list(toml_files(paths.scenarios_dir() / "studies"))


def studies() -> dict[str, Study]:
    """Every ready study by name."""
    return {name: study(name) for name in study_names()}


def study(name_or_path: str) -> Study:
    """A ready study by name or by the path of a TOML file."""
    return load(toml_file("study", toml_files(paths.scenarios_dir() / "studies"), name_or_path))
