"""The record of a crate: every fact of it that can be made again from its inputs, as JSON: runs, results, parameters, code, verdicts.

What cannot be made again (who, when, on which machine) is in the circumstances; everything else in a crate is derived from the two.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import platform as _machine
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrompi.base import paths
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.release import codemeta, version
from retrompi.crate import drawn
from retrompi.crate.container import sha256, wrong_name
from retrompi.crate.drawn import round_quantile
from retrompi.papers.judging import curve_verdicts
from retrompi.papers.judging.evaluators import EVALUATORS, evaluate
from retrompi.papers.judging.findings import Data, Unavailable
from retrompi.papers.statements.claims import Claim
from retrompi.papers.statements.metrics import curves
from retrompi.sim.resolved import Resolved
from retrompi.sim.result import NUMBERS
from retrompi.spec import registry
from retrompi.spec.conditions.network_model import NATIVE
from retrompi.spec.declare.curve import TimeCurve
from retrompi.spec.machine import composition, machines, platform_file
from retrompi.spec.model import RuntimeModel
from retrompi.spec.question import Question, Starts
from retrompi.store.closure import ENTRIES, modules
from retrompi.store.identity import code_version
from retrompi.studies.archive.pack import content, named_alike, names_in
from retrompi.studies.draws import posteriors
from retrompi.studies.draws.priors import priors_of
from retrompi.studies.draws.uncertainty import LEVEL

if TYPE_CHECKING:
    from retrompi.papers.reproduce.reproduction import Reproduction
    from retrompi.store.database import Details, Store
    from retrompi.studies.read.stored_study import StoredStudy

__all__ = ["FORMAT", "Circumstances", "CrateRecord", "as_json", "circumstances", "of_paper", "of_study", "study_intervals", "writer"]

FORMAT = 1
JUDGING = ("retrompi.papers.judging.verdicts", "retrompi.papers.judging.curve_verdicts", "retrompi.papers.reproduce.reproduction",
           "retrompi.crate.record")
_UNTOLD = ("timeline", "waits", "marks", "wall_s", "replay_s", "run_id", "run_ids")
"""Facts of a run that are left out: a picture made on request, wall times, ids of a store, and what repeats the points or names
files of a machine."""
_SKIPPED = ("__pycache__", ".git", ".mypy_cache", ".ruff_cache")

Row = dict[str, Any]


@dataclass(frozen=True)
class CrateRecord:
    """A record, and the input files by their paths in the crate; ``notes`` are remarks on what was left out."""

    record: Row
    inputs: Mapping[str, bytes]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Circumstances:
    """The author and the licence of a crate, as given by whoever writes it. ``license``, ``orcid`` and ``organization_url`` are
    addresses."""

    agent: str
    license: str
    orcid: str = ""
    organization: str = ""
    organization_url: str = ""


def as_json(value: Any) -> bytes:
    """``value`` as the JSON text of a file in a crate."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


# --- what cannot be made again ----------------------------------------------------------------------------------------------------


def circumstances(given: Circumstances, runs: Sequence[Mapping[str, Any]], now: datetime) -> Row:
    """When each of the stored ``runs`` was simulated, and by whom, when and on what kind of machine the crate was made.

    A run's end is when it was stored, its start the wall time of its simulation before that.
    """
    times = []
    for run in runs:
        end = datetime.fromisoformat(str(run["created"]))
        times.append({"start": _moment(end - timedelta(seconds=float(run["wall_s"]))), "end": _moment(end), "wall_s": run["wall_s"]})
    return {
        "created": _moment(now),
        "agent": given.agent,
        "orcid": given.orcid,
        "organization": given.organization,
        "organization_url": given.organization_url,
        "license": given.license,
        "environment": {"Python": _machine.python_version(), "system": _machine.system(), "release": _machine.release(),
                        "processor": _machine.machine()},
        "runs": times,
    }


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}+00:00"


# --- a paper ----------------------------------------------------------------------------------------------------------------------


def of_paper(study: Reproduction, store: Store) -> CrateRecord:
    """The record of a replayed paper, which is at hand."""
    plan = study.paper
    parts = _Parts({}, {})
    inputs = {f"paper/{plan.key}/{name}": data for name, data in files_below(plan.folder).items()}
    details = store.details(study.runs)
    numbers = {run_id: i for i, run_id in enumerate(study.runs, 1)}
    runs = [parts.run(numbers[i], details[i]) for i in study.runs]
    record: Row = {
        **_head("paper", plan.key, plan.title),
        "shipped": plan.folder.resolve().parent == paths.papers_dir().resolve(),
        "citation": {"authors": plan.authors, "year": plan.year, "address": plan.address},
        "workflow": f"paper/{plan.key}/paper.toml",
        "code": _code(ENTRIES + JUDGING),
        "models": parts.models,
        "parameters": parts.parameters,
        "runs": runs,
        "statements": _statements(study, numbers),
        **plain(drawn.of_study(study)),
        "facts": lasting({k: v for k, v in study.facts.items() if k != "parameters"}),
    }
    parts.inputs(own=plan.folder, scenarios=[str(details[i].run["scenario"]) for i in study.runs],
                 traces=[str(details[i].run["trace"]) for i in study.runs])
    return CrateRecord(record, {**inputs, **parts.files}, parts.notes)


class _Watched(Data):
    """The data of verdicts, noting which curves and facts are read."""

    def __init__(self, points: Mapping[tuple[str, str], TimeCurve], facts: Mapping[str, Any]) -> None:
        super().__init__(points, facts)
        self.read: dict[str, None] = {}
        self.curves: dict[tuple[str, str], None] = {}

    def curve(self, model: str, mode: str) -> TimeCurve:
        found = super().curve(model, mode)
        self.curves[model, mode] = None
        return found

    def fact(self, path: str) -> Any:
        found = super().fact(path)
        if path == "curves":  # which of them is looked up is what was read
            return _Noted(found, self.read)
        self.read[path] = None
        return found


class _Noted(dict[str, Any]):
    """The simulated curves of a paper, noting which are looked up."""

    def __init__(self, of: Mapping[str, Any], read: dict[str, None]) -> None:
        super().__init__(of)
        self._read = read

    def __getitem__(self, name: str) -> Any:
        self._read[f"curves.{name}"] = None
        return super().__getitem__(name)


def _statements(study: Reproduction, numbers: Mapping[int, int]) -> list[Row]:
    """Every published statement with its checks, the functions that judged it, what they read, the runs that told it, and the verdict."""
    claims = {c.id: c for c in study.claims}
    by_curve: dict[tuple[str, str], dict[int, None]] = {}
    for p in study.points:
        by_curve.setdefault((str(p["model"]), str(p["mode"])), {})[int(p["run_id"])] = None
    points = curves(study.points)
    checks = study.paper.checks
    out = []
    for verdict in study.verdicts:
        claim = claims.get(verdict.id)
        data = _Watched(points, study.facts)
        entries = checks.get(verdict.id, ())
        if claim is None:  # a measured curve
            functions = [_function(curve_verdicts.judge)]
            data.read[f"curves.{verdict.id.removeprefix(f'{study.paper.key}:').removesuffix(':held-out')}"] = None
        else:
            functions = [_function(EVALUATORS[str(c["kind"])]) for c in entries]
            _watch(claim, entries, data)
        told = dict.fromkeys(r for key in data.curves for r in by_curve.get(key, ()))
        told |= dict.fromkeys(r for path in data.read for told_by, runs in _readers(study, path) for r in runs)
        out.append({
            "id": verdict.id,
            "system": verdict.system,
            "platform": claim.platform if claim else "",
            "configuration": claim.configuration if claim else "",
            "observable": verdict.observable,
            "value": claim.value if claim else verdict.published,
            "unit": claim.unit if claim else "",
            "low": claim.low if claim else None,
            "high": claim.high if claim else None,
            "kind": verdict.kind,
            "use": verdict.use,
            "where": verdict.source,
            "note": claim.note if claim else "",
            "checks": plain([dict(c) for c in entries]),
            "functions": list({f["name"]: f for f in functions}.values()),
            "reads": [*(f"curve {model} {mode}" for model, mode in data.curves), *(f"fact {path}" for path in data.read)],
            "runs": sorted(numbers[r] for r in told if r in numbers),
            "verdict": plain({"word": verdict.verdict, "observed": verdict.observed, "low": verdict.low, "high": verdict.high,
                              "unit": verdict.unit, "residual": verdict.residual, "note": verdict.note, "reading": verdict.reading}),
            **plain(drawn.agreement(verdict)),
        })
    return out


def _watch(claim: Claim, entries: Iterable[Mapping[str, Any]], data: _Watched) -> None:
    """Judge again, for what is read: a verdict itself does not say."""
    for check in entries:
        try:
            evaluate(claim, check, data)
        except Unavailable:
            continue


def _readers(study: Reproduction, path: str) -> list[tuple[str, tuple[int, ...]]]:
    """The jobs that told the fact at ``path``, what is below it, or what it is below."""
    return [(at, runs) for at, runs in study.told_by if at == path or at.startswith(f"{path}.") or path.startswith(f"{at}.")]


def _function(function: Callable[..., Any]) -> Row:
    """The place of a function: its module, file, first line, and the SHA-256 of its source text."""
    real = inspect.unwrap(getattr(function, "func", function))
    lines, first = inspect.getsourcelines(real)
    file = Path(inspect.getfile(real)).resolve()
    roots = {"retrompi": Path(__file__).resolve().parents[1], "retrompi/models": paths.models_dir().resolve()}
    inside = next((f"{name}/{file.relative_to(root).as_posix()}" for name, root in roots.items() if file.is_relative_to(root)),
                  f"models/{file.parent.name}/{file.name}")
    # The module of somebody's own model is named after the place where it is.
    module = real.__module__ if inside.startswith("retrompi/") else f"models.{file.parent.name}"
    return {"name": f"{module}.{real.__qualname__}", "file": inside, "line": first,
            "sha256": sha256("".join(lines).encode())}


# --- a study ----------------------------------------------------------------------------------------------------------------------


def of_study(found: StoredStudy, intervals: Sequence[Mapping[str, Any]] = ()) -> CrateRecord:
    """The record of a stored study read with its draws as points; ``intervals``: of one with draws, the rows of its view."""
    others = sorted({str(r["code_version"]) for r in found.versions} - {code_version()})
    if others:
        name = found.study["name"]
        said = f"study {name} was run by retrompi {others[0]}, and this is {code_version()}: run it again, 'retrompi study run {name}'"
        raise UsageError(said, code="not-run-yet")
    packed, notes = content(found)
    if notes:
        raise UsageError(f"{notes[0].split(';')[0]}: a crate holds every trace that it is rebuilt from", code="too-large")
    named_there = names_in(found.definition)
    platforms = {registry.platform(text).name: text for text in named_there["platform"]}
    parts = _Parts({registry.model(text).name: text for text in named_there["model"]}, platforms)
    ids = list(dict.fromkeys(r["run_id"] for r in found.rows if r["run_id"] is not None))
    numbers = {run_id: i for i, run_id in enumerate(ids, 1)}
    runs = [parts.run(numbers[i], found.runs[i], found.curves.get(i, ()), found.ranks.get(i, ())) for i in ids]
    beside = ("position", "outcome", "reason", "run_id", "time_s", "wall_s", "identity")
    rows = [{"position": r["position"], "axes": {k: named_alike(k, v) for k, v in r.items() if k not in beside}, "outcome": r["outcome"],
             "run": numbers.get(r["run_id"])} for r in found.rows]
    told = [{"position": r["position"], "value": r["value"], **{k: r[k] for k in ("low", "median", "high", "draws") if k in r}}
            for r in intervals]
    name, about = str(found.study["name"]), found.definition
    record: Row = {
        **_head("study", name, str(about.get("title") or name)),
        "question": str(about.get("question", "")),
        "workflow": "study/retrompi-study.json",
        "code": _code((*ENTRIES, "retrompi.studies.execute.run", "retrompi.crate.record")),
        "models": parts.models,
        "parameters": parts.parameters,
        "runs": runs,
        "rows": plain(rows),
        "intervals": {"metric": str(about.get("metric", "")), "level": LEVEL, "rows": plain(told)} if told else {},
        "statements": [],
    }
    shipped = [t for t in named_there["trace"] if _shipped_trace(t)]
    parts.inputs(own=None, scenarios=(), traces=shipped)
    return CrateRecord(record, {**{f"study/{k}": v for k, v in packed.items()}, **parts.files}, parts.notes)


def _shipped_trace(text: str) -> bool:
    """Whether a trace is one of retrompi itself."""
    return Path(text).resolve().is_relative_to(paths.validate_dir().resolve())


# --- the parts of both ------------------------------------------------------------------------------------------------------------


def _head(kind: str, name: str, title: str) -> Row:
    return {"format": FORMAT, "kind": kind, "name": name, "title": title,
            "software": {"name": "retrompi", "version": version(), "code_version": code_version(), "writer": writer(),
                         "codemeta": codemeta()}}


def writer() -> str:
    """SHA-256 over the modules that decide what the derived files of a crate look like."""
    root = Path(__file__).resolve().parents[1]
    return sha256(b"".join(f.read_bytes() for f in [*sorted((root / "crate").glob("*.py")), root / "render" / "document" / "html.py"]))


def _code(entries: Iterable[str]) -> list[Row]:
    """The modules that the numbers and verdicts come from, and the engine: file and SHA-256."""
    root = Path(__file__).resolve().parents[1]
    out = []
    for name, file in modules(root, entries).items():
        out.append({"module": name, "file": f"retrompi/{file.relative_to(root).as_posix()}", "sha256": sha256(file.read_bytes())})
    engine = importlib.util.find_spec("retrompi._engine")
    assert engine is not None
    assert engine.origin is not None
    file = Path(engine.origin)
    return [*out, {"module": "retrompi._engine", "file": f"retrompi/{file.name}", "sha256": sha256(file.read_bytes())}]


def lasting(facts: Any) -> Any:
    """Facts as JSON, without those that are others whenever they are made."""
    if isinstance(facts, Mapping):
        return {str(k): lasting(v) for k, v in facts.items() if k not in _UNTOLD}
    return plain(facts)


def plain(value: Any) -> Any:
    """``value`` as JSON has it: NumPy's numbers as Python's, tuples as lists, what is no finite number as a text."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [plain(v) for v in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def files_below(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their relative paths, caches left out. UsageError for one that no crate holds."""
    out = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if not file.is_file() or set(Path(name).parts) & set(_SKIPPED):
            continue
        if file.is_symlink() or (wrong := wrong_name(name)):
            raise UsageError(f"{file} cannot be put in a crate: {'it is a link' if file.is_symlink() else wrong}", code="bad-name")
        out[name] = file.read_bytes()
    return out


@dataclass
class _Parts:
    """Parts shared by runs, each stored once: models, sets of parameters, and the files of retrompi that they were read from.

    ``classes`` and ``platforms``: the name of a model or platform -> the text by which the registry finds it.
    """

    classes: Mapping[str, str]
    platforms: Mapping[str, str]
    models: list[Row] = field(default_factory=list)
    parameters: list[Row] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _sources: dict[Path, None] = field(default_factory=dict)
    _sets: dict[str, int] = field(default_factory=dict)

    def run(
        self,
        number: int,
        of: Details | Mapping[str, Any],
        points: Sequence[Mapping[str, Any]] = (),
        ranks: Sequence[Mapping[str, Any]] = (),
    ) -> Row:
        """One run: what determined it, and its results."""
        stages: Sequence[Mapping[str, Any]] = ()
        if not isinstance(of, Mapping):
            points, ranks, stages, of = of.points, of.ranks, of.anatomy, of.run
        if of["network"] != NATIVE:
            raise UsageError(f"a run was carried by the network '{of['network']}'; a crate is rebuilt with the engine's own alone")
        facts = {k: v for k, v in (of["facts"] or {}).items() if k != "used"}
        told = ("kind", "model", "model_hash", "platform", "platform_hash", "mode", "overrides", "seed", "fidelity", "network")
        results = ("outcome", *NUMBERS)
        trace = str(of["trace"])
        determining = {**{k: of[k] for k in told}, "workload_hash": of["trace_hash"], "code_version": of["code_version"]}
        return {
            "run": number,
            # Not the store's identity, which covers the text of a scenario, and so the place of somebody's own files.
            "identity": sha256(as_json(plain({k: v for k, v in determining.items() if k != "platform"}))),
            **determining,
            "workload": Path(trace).name,
            "scenario": Path(str(of["scenario"])).name,
            "parameters": self._set(of),
            **{k: of[k] for k in results},
            "detail": str(of["detail"]).replace(trace, Path(trace).name) if "/" in trace else of["detail"],
            "facts": lasting(facts),
            "points": [{k: v for k, v in p.items() if k != "run_id"} for p in points],
            "rank_times": [{k: v for k, v in r.items() if k != "run_id"} for r in ranks],
            "stages": [{k: v for k, v in s.items() if k != "run_id"} for s in stages],
        }

    def _set(self, run: Mapping[str, Any]) -> int:
        """The number of the set of parameters with which a run ran; the set is described once."""
        used = (run["facts"] or {}).get("used") or []
        key = json.dumps([run["model"], run["platform"], run["mode"], run["overrides"], sorted(used)], sort_keys=True)
        if key not in self._sets:
            number = self._sets[key] = len(self._sets) + 1
            rows = self._describe_run(run, frozenset(used))
            self.parameters.append({"set": number, "model": run["model"], "platform": run["platform"], "rows": rows})
        return self._sets[key]

    def _describe_run(self, run: Mapping[str, Any], used: frozenset[str]) -> list[Row]:
        model = self.classes.get(run["model"], run["model"])
        platform = self.platforms.get(run["platform"], run["platform"])
        sets = dict(run["overrides"] or {})
        try:
            cls = registry.model(model)
        except RetrompiError:
            return []
        self._model(cls)
        try:
            loaded = registry.platform(platform)
            self._platform(platform)
            values, loaded = registry.resolve(cls, loaded, sets)
        except RetrompiError:  # such as an override of another job's parameter: the stored values are shown without ranges
            return [{"name": f"{cls.name.partition(':')[0]}.{k}", "value": v} for k, v in (run["parameters"] or {}).items()]
        base = cls.name.partition(":")[0]
        rows = []
        for r in values.describe():
            name = f"{base}.{r['name']}"
            if not used or name in used:
                rows.append({"name": name, **{k: r[k] for k in ("value", "text", "unit", "low", "high", "source", "help", "overridden")}})
        for path in sorted(p for p in used if p.startswith("platform.")):
            q = loaded.quantities.get(path.removeprefix("platform."))
            if q is not None:
                overridden = path.removeprefix("platform.") in loaded.overridden
                rows.append({"name": path, "value": q.value, "text": q.text, "unit": q.unit, "low": q.low, "high": q.high,
                             "source": q.source, "help": q.help, "overridden": overridden})
        found, files = _posterior(cls, Question(model, platform, Starts(2), str(run["mode"]), tuple(f"{k}={v}" for k, v in sets.items())))
        self._sources |= dict.fromkeys(files)
        return [{**plain(r), **({"posterior": found[r["name"]]} if r["name"] in found else {})} for r in rows]

    def _model(self, cls: type[RuntimeModel]) -> None:
        if any(m["name"] == cls.name for m in self.models):
            return
        functions = [_function(getattr(cls, name)) for name in ("calls", "within_host", "between_hosts", "startup")]
        mine = [f for f in functions if not f["name"].startswith("retrompi.spec.")]
        files = [f for folder in cls.folders() for f in sorted(folder.rglob("*"))]
        self._sources |= dict.fromkeys(f for f in files if f.suffix in (".py", ".toml") and not set(f.parts) & set(_SKIPPED))
        self.models.append({"name": cls.name, "hash": cls.hash(), "functions": mine})

    def _platform(self, text: str) -> None:
        files: list[Path] = []
        plain_file = paths.platforms_dir() / f"{composition.without_size(text)}.toml"
        if plain_file.is_file():
            files = platform_file.sources(plain_file)
        else:
            try:
                made = composition.parse(text)
            except UsageError:  # a file of the user's, which is in the crate already
                return
            hosts, networks = machines.files("host"), machines.files("network")
            files = [*(hosts[h] for h, _ in made.terms if h in hosts), *([networks[made.network]] if made.network in networks else [])]
            files += [fit for f in files if (fit := f.with_suffix(".fit.toml")).is_file()]
        self._sources |= dict.fromkeys(files)

    def inputs(self, own: Path | None, scenarios: Iterable[str], traces: Iterable[str]) -> None:
        """Copies of the files of retrompi that were read; those of a paper's folder ``own`` are in the crate already."""
        known = {"scenarios": paths.scenarios_dir(), "models": paths.models_dir(), "platforms": paths.platforms_dir(),
                 "validate": paths.validate_dir()}
        files = [*self._sources, *(paths.scenarios_dir() / f"{name}.toml" for name in scenarios if name), *(Path(t) for t in traces)]
        for file in dict.fromkeys(f.resolve() for f in files if f.is_file()):
            if own is not None and file.is_relative_to(own.resolve()):
                continue
            place = next((name for name, root in known.items() if file.is_relative_to(root.resolve())), None)
            if place is not None:
                inside = f"inputs/{place}/{file.relative_to(known[place].resolve()).as_posix()}"
                if not wrong_name(inside):
                    self.files[inside] = file.read_bytes()
            elif own is not None:
                raise UsageError(f"{file} is neither retrompi's nor in the paper's folder: a crate is rebuilt from itself; put it there",
                                 code="not-found")


def _posterior(cls: type[RuntimeModel], question: Question) -> tuple[dict[str, Row], list[Path]]:
    """Key of a parameter -> the interval that the posterior at hand leaves of it; and the files of the posteriors."""
    try:
        priors = priors_of(Resolved.of(question))
        found = posteriors.posteriors_for(cls, priors)
    except (RetrompiError, ValueError):  # a run that no draws can be made of
        return {}, []
    out: dict[str, Row] = {}
    files: dict[Path, None] = {}
    for prior in priors:
        posterior = found.paths.get(prior.path)
        if posterior is None:
            continue
        files[posterior.file] = None
        low, high = (float(v) for v in np.quantile(posterior.column(prior.path), [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
        for key, factor in prior.keys.items():
            out[key] = {"level": LEVEL, "low": round_quantile(low * factor), "high": round_quantile(high * factor),
                        "file": posterior.file.name, "of": posterior.of,
                        "told": posteriors.word(float(posterior.seen.get(prior.path, 1.0)))}
    return out, list(files)


def study_intervals(store: Store, study: int) -> Sequence[Mapping[str, Any]]:
    """Of a study with draws, the rows of its view, with intervals; () of any other, and where no run has the metric."""
    from retrompi.studies.read import stored_study

    found = stored_study.read(store, study)
    if not found.draws:
        return ()
    try:
        return [dict(r) for r in found.view().rows]
    except UsageError:
        return ()
