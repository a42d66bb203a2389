"""An experiment in one TOML file: trace, model, platform and overrides, and the published experiment it reproduces.

name = "bf-wmpi-shared"
title = "..."
summary = "..."
reproduces = "baker-fox-long 5.4, Figure ..."     # or "what-if: ..."
claims = ["BF-SM-01"]                              # the statements it bears on
model = "wmpi"
platform = "nt-pair"
mode = "shared"                                    # or distributed, or hosts: "workstation,workstation"
expect = "what should come out, written before it was run"
outcome = "deadlock"                               # how it ends, if not "completed"
kills = ["proxy on server@0.5s"]                   # and every other key of `SETTINGS`, as `retrompi.spec.question` declares it
seed = 1
time_limit = "10s"

[start]                                            # in place of [trace]: only start the job
ranks = 6
starts = 500

[trace]
generator = "pingpong"                             # or file = "path beside this file"
sizes = "0,1B..4MiB:x2"                            # the generator's arguments

[set]
"platform.host.cores" = "2"

[[job]]                                            # another job on the same machines; as many as wanted (docs/sharing.md)
model = "winmpich"
mode = "shared"
name = "neighbour"                                 # its processes are "rank 0 of neighbour"; "job 2" if left out
start = "0.5s"
background = true                                  # begun again whenever it ends, as long as the first job runs
[job.trace]                                        # as [trace], without a section
generator = "pingpong"
[job.set]                                          # its model's parameters
packet = "64KiB"
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import names, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.base.files import exists
from retrompi.spec import needs, registry
from retrompi.spec.conditions import network_model
from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.spec.conditions.network_model import NATIVE
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.declare.fields import Field
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.hosts import kinds
from retrompi.spec.machine.placements import NATURAL
from retrompi.spec.question import NO_RESULT, OPTIONS, Benchmark, Question, Replay, ScenarioRef, Starts, Workload

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["FILE_KEYS", "JOB_KEYS", "KEYS", "SETTINGS", "Neighbour", "Scenario", "from_data", "line_of", "load", "trace_of"]

_TEXTS = ("name", "title", "summary", "reproduces", "model", "platform", "mode")
SETTINGS: Mapping[str, Field] = {key: f for key, f in OPTIONS.items() if key not in ("model", "platform", "mode", "set")}
"""Key -> what else users give a question, and so a scenario and the points of a study: one line of its declaration is a key of both."""
_TAKEN = {"network": NATIVE, "what_if_hardware": False}
"""Settings that a question takes from the command where nobody gives them; a scenario's defaults are these."""
KEYS = (*_TEXTS, "claims", "expect", "outcome", *SETTINGS, "start", "trace", "set", "job")
"""Every key of a scenario's file."""
OUTCOMES = tuple(o for o in Outcome if o.repeatable)
JOB_KEYS = ("name", "model", "mode", "start", "background", "trace", "set")
"""Keys of a ``[[job]]``."""
FILE_KEYS = ("file", "np", "section", "compute", "memory_share")
"""Keys of a ``[trace]`` that names a file."""


@dataclass(frozen=True)
class Neighbour:
    """A ``[[job]]`` of a scenario, from which a `retrompi.spec.conditions.cojobs.JobSpec` is made when it runs."""

    model: str
    mode: str
    name: str = ""
    start_s: float = 0.0
    background: bool = False
    sets: Mapping[str, str] = field(default_factory=dict)
    generator: str | None = None
    trace: Path | None = None
    np: int | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    program: Program = field(default_factory=Program)

    def row(self) -> dict[str, Any]:
        """Everything that determines the job's part of a run."""
        return {
            "name": self.name,
            "model": self.model,
            "mode": self.mode,
            "start_s": self.start_s,
            "background": self.background,
            "sets": dict(self.sets),
            "generator": self.generator,
            "trace": self.trace.name if self.trace else None,
            "np": self.np,
            "args": dict(self.args),
            **self.program.row(),
        }

    def spec(self) -> JobSpec:
        """The job with its trace read or generated."""
        return JobSpec(
            self.model, trace_of(self), self.mode, self.sets, self.start_s, self.background, self.program.memory_share, self.name,
            self.generator or str(self.trace and self.trace.name), source_of(self),
        )


def trace_of(job: Scenario | Neighbour) -> Trace:
    """The trace that a job replays, read from its file or generated."""
    from retrompi import traces
    from retrompi.traces import generate

    if job.trace is not None:
        return traces.read_once(job.trace, job.np)
    return generate.make_trace(str(job.generator), job.args)


def source_of(job: Scenario | Neighbour) -> dict[str, Any]:
    """The source of that trace, for a question."""
    from retrompi.traces.source import Source

    made = Source(str(job.trace), job.np) if job.trace is not None else Source(generator=str(job.generator), args=job.args)
    return made.row()


@dataclass(frozen=True)
class Stated:
    """A platform with overrides (``platform.host.flops``), for which an amount of computation is stated."""

    platform: str
    sets: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, platform: str, sets: Mapping[str, str]) -> Stated:
        """The platform with those of a scenario's overrides that are its own."""
        return cls(platform, tuple(sorted((k, v) for k, v in sets.items() if k.startswith("platform."))))

    def rates(self) -> set[float]:
        """The rates (flop/s) of its hosts."""
        platform = registry.platform(self.platform).with_overrides({k.removeprefix("platform."): v for k, v in self.sets})
        return {h.flops for h in kinds(platform.hosts)[0]}


def _what_if() -> dict[str, Any]:
    return {"what_if_hardware": True} if needs.allows_fiction() else {}


def default(key: str) -> Any:
    """A setting's value where it is not given."""
    return _TAKEN.get(key, SETTINGS[key].default)


def _not_default(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None and value != default(key)}


@dataclass(frozen=True)
class Scenario:
    """A question with a title and what is expected of its answer. ``args`` are its generator's arguments, by default the papers' sizes and
    repetitions; ``settings`` are those that are not as by default, by their keys in `SETTINGS` (`setting`, `with_settings`)."""

    name: str
    title: str
    summary: str
    reproduces: str
    model: str
    platform: str
    mode: str
    claims: tuple[str, ...] = ()
    expect: str = ""
    outcome: Outcome = Outcome.COMPLETED
    settings: Mapping[str, Any] = field(default_factory=_what_if)
    sets: Mapping[str, str] = field(default_factory=dict)
    generator: str | None = None
    trace: Path | None = None
    np: int | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    program: Program = field(default_factory=Program)
    start: Mapping[str, int] = field(default_factory=dict)
    jobs: tuple[Neighbour, ...] = ()
    path: Path | None = None
    given: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The file's tables as read; `from_data` rebuilds this scenario from them."""
    stated: Stated | None = field(default=None, compare=False)
    """The machine for which the program's ``compute`` is stated; None: for the platform in question."""
    drawn: Mapping[str, str] = field(default_factory=dict)
    """The overrides of a draw of the uncertain parameters, which give way to ``sets``."""

    def setting(self, key: str) -> Any:
        """The value of a setting."""
        return self.settings.get(key, default(key))

    def with_settings(self, given: Mapping[str, Any]) -> Scenario:
        """A copy with some settings changed, given as text or as they are (None: as by default). Raises UsageError for a value that is not
        allowed."""
        taken = {key: value if value is None else SETTINGS[key].take(value, key) for key, value in given.items()}
        return replace(self, settings=_not_default({**self.settings, **taken}))

    @property
    def stated_on(self) -> str:
        """The platform for which ``compute`` is stated."""
        return self.platform if self.stated is None else self.stated.platform

    @property
    def what_if(self) -> bool:
        """Whether this differs from every published experiment."""
        return self.reproduces.startswith("what-if")

    @property
    def hash(self) -> str:
        """SHA-256 of all that determines the run (titles and descriptions are excluded)."""
        return hashlib.sha256(json.dumps(self.facts(), sort_keys=True).encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """The values that `hash` is computed from."""
        return {
            "model": self.model,
            "platform": self.platform,
            "mode": self.mode,
            "sets": dict(self.sets),
            "generator": self.generator,
            "trace": self.trace.name if self.trace else None,
            "np": self.np,
            "args": dict(self.args),
            "start": dict(self.start),
            **self.program.row(),
            **{key: default(key) for key in ("seed", "fidelity", "kills")},
            **{key: value for key, value in self.settings.items() if key not in NO_RESULT},
            **({"jobs": [j.row() for j in self.jobs]} if self.jobs else {}),
        }

    def question(self) -> Question:
        """The scenario's question: a start-up, a benchmark's curve, or the ranks of a trace."""
        given = {"model": self.model, "platform": self.platform, "mode": self.mode, "set": {**self.drawn, **self.sets}}
        asked = Question.asking(
            self._workload(), {**given, **_TAKEN, **self.settings}, asked=ScenarioRef(self.name, self.hash), idle_overrides=bool(self.drawn)
        )
        return asked.with_(beside=replace(asked.beside, jobs=[j.spec() for j in self.jobs])) if self.jobs else asked

    def _workload(self) -> Workload:
        if self.start:
            return Starts(self.start["ranks"], self.start["starts"])
        if self.trace is not None:
            return Replay(trace_of(self), self.trace.name, self._program(), source_of(self))
        if self.generator != "rinf1" and (self.setting("kills") or self.outcome != Outcome.COMPLETED):
            # A benchmark expected to fail has no curve: the outcome of its ranks is the result.
            return Replay(trace_of(self), str(self.generator), source=source_of(self))
        return Benchmark(str(self.generator), self.args)

    def _program(self) -> Program:
        """The program's settings on the platform in question: where its hosts compute at another rate than those that ``compute`` is
        stated for, it takes longer or shorter by the ratio, as a recorded second does. UsageError where no one rate states it."""
        if self.stated is None or self.program.compute_s is None:
            return self.program
        here = Stated.of(self.platform, self.sets)
        if here == self.stated or here.rates() == self.stated.rates():
            return self.program
        if len(rates := self.stated.rates()) > 1:
            raise UsageError(f"'{self.name}' states its computation for {self.stated.platform}, whose hosts compute at several rates; "
                             "--set trace.compute=TIME states it for this one", code="no-rate")
        return replace(self.program, compute_flops=rates.pop())

    def row(self) -> dict[str, Any]:
        """One flat row for lists and tables."""
        return {
            "name": self.name,
            "title": self.title,
            "reproduces": self.reproduces,
            "model": self.model,
            "platform": self.platform,
            "mode": self.mode,
            "trace": "start-up" if self.start else self.generator or str(self.trace),
            "section": self.program.section or "",
            "compute": "" if self.program.compute_s is None else f"{units.format_time(self.program.compute_s)} on {self.stated_on}",
            "memory_share": f"{self.program.memory_share:g}" if self.program.memory_share else "",
            "overrides": " ".join(f"{k}={v}" for k, v in self.sets.items()),
            "claims": " ".join(self.claims),
            "jobs": ", ".join(f"{j.generator or j.trace} on {j.model}" for j in self.jobs),
            "outcome": self.outcome,
            "expect": self.expect,
            **{key: _setting_text(self.setting(key)) for key in SETTINGS},
        }


def _setting_text(value: Any) -> Any:
    if isinstance(value, tuple):
        return ", ".join(value)
    return "yes" if value is True else "" if value is None or value is False else value


def line_of(text: str, key: str) -> int | None:
    """The first line of a TOML text that sets ``key`` or opens a table of that name."""
    for number, raw in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*\[{{0,2}}[\"']?{re.escape(key)}[\"']?\s*[]=.]", raw):
            return number
    return None


def load(path: str | Path) -> Scenario:
    """Read the scenario in ``path``; raises InputError with file and line when it is wrong.

    Names of models and platforms are looked up when the scenario runs.
    """
    file = Path(path)
    text, data = toml_text.read(file, "scenario")
    return from_data(data, file, text)


def template(name: str, generator: str, model: str) -> str:
    """A scenario file of a generator on the model's own platform, to be edited. Raises UsageError for an unknown name."""
    from retrompi.spec import registry
    from retrompi.traces import generate

    names.check_name("a scenario", name)
    made = generate.generator(generator)
    platform = registry.own_platform(registry.model(model).name)
    given = [f"{key} = {value}" if value.isdigit() else f'{key} = "{value}"'
             for key, _, value in (item.partition("=") for item in made.usage.split() if not item.startswith("["))]
    lines = [
        f'name = "{name}"', f'title = "{generator} on {platform}"', f'summary = "{made.summary.rstrip(".")}"',
        'reproduces = "what-if: nothing published"', f'model = "{model}"', f'platform = "{platform}"', f'mode = "{NATURAL}"', "",
        "[trace]", f'generator = "{generator}"', *given, f"# arguments: {made.usage}", "", "[set]", '# "platform.link.latency" = "x0.5"',
    ]
    return "\n".join(lines) + "\n"


def from_data(data: Mapping[str, Any], file: Path, text: str = "") -> Scenario:
    """The scenario described by the tables ``data`` of ``file``; ``text`` is the file's text, for line numbers in errors.

    Raises InputError with file and line for malformed content.
    """
    with toml_text.taken_apart("scenario", file):
        return _from_data(data, file, text)


def _from_data(data: Mapping[str, Any], file: Path, text: str) -> Scenario:
    def fail(message: str, key: str, code: str | None = None) -> InputError:
        return InputError(message, file, line_of(text, key), code=code)

    for key in data:
        if key not in KEYS:
            raise fail(f"unknown key '{key}'{nearest(key, KEYS, 20)}", key, code="unknown-key")
    absent = [key for key in _TEXTS if not isinstance(data.get(key), str) or not data[key].strip()]
    if absent:
        named = f"{', '.join(map(repr, absent[:-1]))} and '{absent[-1]}' are" if len(absent) > 1 else f"'{absent[0]}' is"
        raise fail(f"{named} missing or not {'texts' if len(absent) > 1 else 'a text'}", absent[0], code="missing-key")
    try:
        names.check_name("a scenario", data["name"])
    except UsageError as error:
        raise fail(str(error), "name", code=error.code) from None
    claims = data.get("claims", [])
    if not isinstance(claims, list) or not all(isinstance(c, str) for c in claims):
        raise fail("'claims' is not a list of claim ids; example: [\"BF-SM-01\"]", "claims", code="bad-value")
    settings = {key: _read_setting(key, data[key], fail) for key in SETTINGS if key in data}
    for key in ("traffic", "failures"):
        if data.get(key) and ("start" in data or data.get("fidelity", "mechanism") != "mechanism"):
            raise fail(f"'{key}' cross the wire of a trace that runs at fidelity mechanism", key, code="needs-mechanism")
    outcome = data.get("outcome", Outcome.COMPLETED)
    if outcome not in OUTCOMES:
        raise fail(f"no outcome '{outcome}'{nearest(str(outcome), OUTCOMES)}", "outcome", code="unknown-name")
    outcome = Outcome(outcome)
    # What the command says of the network, and that it accepts fictions, goes before the file.
    settings |= {"network": network_model.network_in_use(settings.get("network", NATIVE)), **_what_if()}
    sets = data.get("set", {})
    if not isinstance(sets, dict) or not all(isinstance(v, str | int | float) for v in sets.values()):
        raise fail('\'set\' is a table of quoted keys; example: "platform.host.cores" = "2"', "set", code="bad-value")
    made = Scenario(
        **{key: data[key] for key in _TEXTS},
        claims=tuple(claims),
        expect=str(data.get("expect", "")),
        outcome=outcome,
        settings=_not_default(settings),
        sets={k: str(v) for k, v in sets.items()},
        path=file,
        jobs=_jobs(data, file, fail),
        given={**data, **({"network": settings["network"]} if settings["network"] != data.get("network", NATIVE) else {}), **_what_if()},
        **(_start(data, fail) if "start" in data else _trace(data.get("trace"), file, fail)),
    )
    return made if made.program.compute_s is None else replace(made, stated=Stated.of(made.platform, made.sets))


def _read_setting(key: str, value: Any, fail: Any) -> Any:
    """A setting of a file."""
    f = SETTINGS[key]
    plain = f.kind == "quantity" and f.unit == "1"
    kinds: tuple[type, ...] = {"texts": (list,), "flag": (bool,), "whole": (int,)}.get(f.kind, (str, int, float) if plain else (str,))
    try:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = {"texts": f"a list of {f.metavar}", "flag": "true or false", "whole": "a whole number",
                      "quantity": f'a text with a unit, such as "1 {f.unit}"'}.get(f.kind, "a text")
            raise UsageError(f"'{key}' is not {wanted}", code="bad-value")
        taken = f.take(value, f"'{key}'")
        if key == "network":
            network_model.parse(taken)
    except UsageError as error:
        raise fail(str(error), key, code=error.code) from None
    return taken


def _jobs(data: Mapping[str, Any], file: Path, fail: Any) -> tuple[Neighbour, ...]:
    """The jobs beside the first one: ``[[job]]``."""
    given = data.get("job", [])
    if not isinstance(given, list) or not all(isinstance(j, dict) for j in given):
        raise fail("a further job is a table [[job]]", "job", code="bad-value")
    if given and ("start" in data or data.get("fidelity", "mechanism") != "mechanism" or data.get("trace", {}).get("generator") == "rinf1"):
        raise fail("jobs share machines with a trace that runs at fidelity mechanism", "job", code="needs-mechanism")
    found = []
    for i, job in enumerate(given, 2):

        def wrong(message: str, key: str, code: str | None = None, i: int = i) -> InputError:
            error: InputError = fail(f"job {i}: {message}", "job", code)
            return error

        for key in job:
            if key not in JOB_KEYS:
                raise wrong(f"unknown key '{key}'{nearest(key, JOB_KEYS)}", key, code="unknown-key")
        for key in ("model", "mode"):
            if not isinstance(job.get(key), str) or not job[key].strip():
                raise wrong(f"'{key}' is missing or not a text", key, code="missing-key")
        sets = job.get("set", {})
        if not isinstance(sets, dict) or not all(isinstance(v, str | int | float) for v in sets.values()):
            raise wrong("'set' is a table of its model's parameters", "set", code="bad-value")
        if not isinstance(job.get("background", False), bool) or not isinstance(job.get("name", ""), str):
            raise wrong("'background' is true or false, 'name' a text", "background", code="bad-value")
        try:
            start = units.parse(str(job.get("start", "0 s")), "s")
        except UsageError as error:
            raise wrong(f"'start': {error}", "start", code=error.code) from None
        trace = _trace(job.get("trace"), file, wrong)
        if trace.get("generator") == "rinf1" or trace.get("program", Program()).section is not None:
            raise wrong("its trace is a generator of messages or a file without a section", "trace")
        found.append(
            Neighbour(job["model"], job["mode"], job.get("name", ""), start, job.get("background", False),
                      {k: str(v) for k, v in sets.items()}, **trace)
        )
    return tuple(found)


def _start(data: Mapping[str, Any], fail: Any) -> dict[str, Any]:
    """The fields of a start-up scenario: ``[start]`` with ``ranks`` and ``starts``, in place of a trace."""
    given = data["start"]
    if not isinstance(given, dict) or given.keys() != {"ranks", "starts"} or "trace" in data:
        raise fail("[start] stands in place of [trace] and has 'ranks' and 'starts'", "start", code="conflicting-options")
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise fail(f"'{key}' is not a whole number from 1 on", key, code="out-of-range")
    return {"start": given}


def _program(given: Mapping[str, Any], fail: Any) -> Program:
    """The program's settings in ``[trace]``: ``section``, ``compute`` (seconds in it) and ``memory_share``."""
    key = "section"
    try:
        section = given.get("section")
        if section is not None and not isinstance(section, str):
            raise UsageError("'section' is a text: lines of rank 0 such as \"34-40\", or LABEL..LABEL")
        key = "compute"
        compute = None if "compute" not in given else units.parse(str(given["compute"]), "s")
        key = "memory_share"
        share = given.get("memory_share", 0.0)
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise UsageError("'memory_share' is not a number in 0..1", code="bad-value")
        return Program(section, compute, float(share))
    except UsageError as error:
        raise fail(str(error), key, code=error.code) from None


def _trace(given: Any, file: Path, fail: Any) -> dict[str, Any]:
    """The fields of a scenario that are set by its [trace] table."""
    if not isinstance(given, dict) or ("generator" in given) == ("file" in given):
        raise fail("[trace] needs either a generator or a file", "trace", code="missing-key")
    if "file" in given:
        for key in given:
            if key not in FILE_KEYS:
                raise fail(f"unknown key '{key}' in [trace]{nearest(key, FILE_KEYS)}", key, code="unknown-key")
        np = given.get("np")
        if np is not None and (isinstance(np, bool) or not isinstance(np, int) or np < 1):
            raise fail("'np' is not a whole number from 1 on", "np", code="out-of-range")
        trace = file.parent / str(given["file"])
        if not exists(trace):
            raise fail(f"no trace {str(given['file'])[:200]} beside this scenario", "file", code="unknown-trace")
        return {"np": np, "trace": trace.resolve(), "program": _program(given, fail)}
    from retrompi.traces import generate  # loads the engine only if a trace is generated

    args: dict[str, Any] = {}
    key = "generator"
    try:
        made = generate.generator(str(given["generator"]))
        key = next((k for k in given if k != "generator" and k not in made.arguments), "generator")
        made.check({k: v for k, v in given.items() if k != "generator"})
        for key, value in given.items():
            if key == "generator":
                continue
            args[key] = tuple(units.parse_sizes(value)) if key == "sizes" else value
            if key == "size":
                args[key] = int(units.parse(str(value), "B"))
            if key == "reps" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise fail("'reps' is not a whole number from 1 on", "reps", code="out-of-range")
    except InputError:
        raise
    except RetrompiError as error:
        raise fail(str(error), key, code=error.code) from None
    return {"generator": given["generator"], "args": args}
