"""The commands of a lab's text as forms: what can be changed in each, and its run in a job, by the functions that the command uses.

Independent of Dash, whose import takes a process long. A student's files are untrusted: traces cannot name other files, scenarios cannot
name code, and nothing of a form is ever given to a shell.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from retrompi.api.options import Options
from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.base.scratch import folder as temporary
from retrompi.base.translate import _, lazy
from retrompi.base.units import PS, format_bytes, format_quantity, format_time
from retrompi.sim.cautions import Caution, split, stored_cautions
from retrompi.spec import registry
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.machine import composition
from retrompi.spec.needs import asking
from retrompi.spec.question import OPTIONS
from retrompi.studio.components.parameters import check_names

__all__ = ["EDITED", "LONGEST", "FormField", "LabForm", "form_of", "run", "view_of"]

LONGEST = 20_000
"""Characters of a file that is edited in the page."""
EDITED = (".c", ".csv", ".ti", ".toml", ".txt")
"""Endings of the files that are."""
MOST_POINTS = 400
MOST_HOSTS = 64
MOST_ROWS = 20
"""Rows of a table of the critical path."""
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EVERYWHERE = ("model", "platform", "mode", "set", "seed")
"""The options of a question that every form understands. Those that ask one understand all that a run may be given."""
_ASKING = ("pingpong", "explain", "replay")
_GIVEN = {key: f for key, f in OPTIONS.items() if key in Options.__annotations__ and f.kind != "flag"} | {
    key: OPTIONS[key] for key in _EVERYWHERE}
_VALUED = {"--sizes": "sizes", "--size": "size", "--reps": "reps", "--memory-share": "share", "--name": "name", "--segments": "segments",
           "-o": "out", "--timeline": "timeline", "--metric": "metric", "--vary": "vary", "-n": "ranks", "--backend": "backend",
           "-r": "runs", "--repetitions": "runs", "--ranks": "ranks", "--section": "section",
           "--sensitivity": "sensitivity"}
_FLAGS = {"--hold-out": "held", "--smpi": "smpi", "--what-if-hardware": "fiction"}
_LABELS = {
    "sizes": lazy("Sizes"), "size": lazy("Size"), "reps": lazy("Repetitions"), "seed": lazy("Seed"), "mode": lazy("Placement"),
    "set": lazy("Other parameters"), "metric": lazy("Metric"), "vary": lazy("Varied"), "model": lazy("Runtime"),
    "segments": lazy("Segments"), "share": lazy("Share of memory-bound time"), "ranks": lazy("Ranks"),
    "sensitivity": lazy("How the time depends on"),
}


@dataclass(frozen=True)
class FormField:
    """An entry of a form: ``kind`` is text or number; ``slides``: has a slider."""

    name: str
    label: str
    value: str
    kind: str = "text"
    slides: bool = False


@dataclass(frozen=True)
class LabForm:
    """A command of the text: ``kind`` says which, ``given`` what of it is fixed, ``fields`` what a student can change.

    ``file``: the file that it reads, if that is a text which the student may edit.
    """

    kind: str
    line: str
    given: Mapping[str, str]
    fields: tuple[FormField, ...]
    file: str = ""


def form_of(line: str, varied: Mapping[str, str] | None = None) -> LabForm | None:
    """The form of a command line; None for a command that has none here. ``varied``: study -> what an earlier sweep of the text varies."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    kinds = {("pingpong",): "pingpong", ("explain",): "explain", ("replay",): "replay", ("scenarios", "run"): "scenario",
             ("study", "run"): "study", ("study", "show"): "study", ("sweep",): "sweep", ("fit",): "fit", ("run",): "program",
             ("trace", "record"): "record", ("trace", "info"): "trace", ("why",): "why"}
    found = next((k for k in kinds if tuple(words[1 : 1 + len(k)]) == k), None)
    if not words or words[0] != "retrompi" or found is None:
        return None
    kind = kinds[found]
    of_question = _GIVEN if kind in _ASKING else _EVERYWHERE
    valued = _VALUED | {word: key for key in of_question for word in _GIVEN[key].option.split()}
    rest, given, sets, plain = words[1 + len(found) :], {}, [], []
    while rest:
        word = rest.pop(0)
        if word == "--":
            plain += rest
            break
        if word in _FLAGS:
            given[_FLAGS[word]] = "1"
        elif word in valued and rest:
            key, value = valued[word], rest.pop(0)
            if key == "set":
                sets.append(value)
            elif key == "sensitivity":
                given[key] = f"{given[key]}, {value}" if key in given else value
            elif key in given and key in _GIVEN and _GIVEN[key].kind == "texts":
                given[key] += f" + {value}"
            else:
                given[key] = value
        elif word.startswith("-"):
            return None
        else:
            plain.append(word)
    if kind == "record" and "smpi" not in given:
        return None  # the same in another way, which a box has not
    if plain and kind == "explain" and "model" not in given:
        given["model"] = plain.pop(0)
    if plain:
        given["file"] = plain[0]
    if kind == "study" and plain and plain[0] in (varied or {}):
        given["vary"] = (varied or {})[plain[0]]
    told = {k: v for k, v in given.items() if k not in ("out", "timeline")}
    return LabForm(kind, line, told, tuple(_fields(kind, given, sets)), _file(kind, given.get("file", "")))


def _file(kind: str, name: str) -> str:
    file = f"{name}.toml" if kind in ("scenario", "study", "sweep") and name and "." not in name else name
    return file if file.endswith(EDITED) and _FILE.fullmatch(file) else ""


def view_of(form: LabForm) -> str:
    """The address of the same in the studio's What if or Anatomy; empty for what these do not show."""
    model = form.given.get("model", "")
    beyond = form.given.keys() & (_GIVEN.keys() - set(_EVERYWHERE))
    if form.kind not in ("pingpong", "explain") or beyond or model not in registry.model_names():
        return ""
    platform = _platform(form.given)
    if platform not in registry.platform_names():
        return ""
    given = {**form.given, "platform": platform}  # also at its default: a page's platform follows the runtime
    keys = [(k, given[k]) for k in ("model", "platform", "mode", "size") if k in given]
    sets = [(f.name.removeprefix("set "), f.value) for f in form.fields if f.name.startswith("set ")]
    if form.kind == "explain":
        written = ", ".join(f"{k}={v}" for k, v in sets)
        return f"/anatomy?{urlencode([*keys, *([('set', written)] if written else [])], safe=':')}"
    return f"/whatif?{urlencode([*keys, *(('set', f'{k}={v}') for k, v in sets)], safe=':')}"


def _platform(asked: Mapping[str, str]) -> str:
    """The platform that a command names, else the model's own, as on the command line."""
    check_names(asked.get("model", ""))
    return asked.get("platform") or registry.own_platform(asked["model"])


def _fields(kind: str, given: Mapping[str, str], sets: Sequence[str]) -> Iterator[FormField]:
    shown = {"pingpong": ("sizes", "reps", "seed"), "explain": ("size",), "replay": ("mode", "share"), "fit": ("segments",),
             "study": ("metric",), "sweep": ("vary",), "why": ("mode", "sensitivity")}.get(kind, ())
    for key in shown:
        if key in given or (kind, key) in (("study", "metric"), ("pingpong", "sizes")):
            yield FormField(key, _(_LABELS[key]), given.get(key, ""), "number" if key in ("reps", "seed", "segments") else "text")
    if kind in ("pingpong", "explain", "replay", "why"):
        for one in sets:
            key, _equals, value = one.partition("=")
            yield FormField(f"set {key}", key, value, slides=re.match(r"\d", value) is not None)
        yield FormField("set", _(_LABELS["set"]), "")


# -- in a job ------------------------------------------------------------------------------------------------------------

Told = dict[str, Any]
"""lines: texts; cautions: texts; tables: caption, head, rows of texts; figures: name and Plotly's JSON; chart: a timeline's document;
files: name -> bytes in hex."""


def run(report: Any, store: str | None, kind: str, given: Mapping[str, str], values: Mapping[str, str], files: Mapping[str, bytes]) -> Told:
    """Runs a form. ``values``: what the fields have; ``files``: the student's. A job that does not complete is a result."""
    report(0, 1, kind)
    asked = {**given, **{k: v.strip() for k, v in values.items() if k in _LABELS}}
    asked = {k: v for k, v in asked.items() if v or k == "set"}
    sets = _sets(values)
    with temporary("lab") as place:
        for name, content in files.items():
            if _FILE.fullmatch(name):
                (place / name).write_bytes(content)
        try:
            with asking("fiction" in given):
                return _RUNS[kind](asked, sets, place, store)
        except RetrompiError as error:
            raise UsageError(str(error).replace(f"{place}/", ""), code=error.code) from None


def _sets(values: Mapping[str, str]) -> dict[str, str]:
    """The overrides of the fields, and those of "other parameters": KEY=VALUE, separated by commas."""
    out = {k.removeprefix("set "): v.strip() for k, v in values.items() if k.startswith("set ") and v.strip()}
    for part in re.split(r"[,;]", values.get("set", "")):
        key, equals, value = part.strip().removeprefix("--set").strip().partition("=")
        if part.strip() and (not equals or not key.strip() or not value.strip()):
            raise UsageError(f"'{part.strip()[:60]}' is not KEY=VALUE, as platform.host.cores=2", code="bad-syntax")
        if part.strip():
            out[key.strip()] = value.strip()
    return out


def _names(model: str, platform: str) -> None:
    """Refuses names that are no model's or platform's of this installation; ``abe*16`` is sixteen hosts of one."""
    name, star, count = platform.partition("*")
    composed = "@" in platform
    hosts = composition.parse(platform).hosts if composed else int(count[:4]) if count.isdecimal() else 0 if star else 1
    if not 1 <= hosts <= MOST_HOSTS:
        raise UsageError(f"'{platform[:60]}': from 1 to {MOST_HOSTS} hosts are simulated here", code="out-of-range")
    check_names(model, name if not composed and name in registry.platform_names() else platform)


def _whole(asked: Mapping[str, str], key: str, low: int, high: int) -> int | None:
    if key not in asked:
        return None
    if not re.fullmatch(r"\d{1,9}", asked[key]) or not low <= int(asked[key]) <= high:
        raise UsageError(f"'{asked[key][:40]}': a whole number from {low} to {high} is wanted", code="out-of-range")
    return int(asked[key])


def _options(asked: Mapping[str, str], sets: Mapping[str, str], store: str | None) -> dict[str, Any]:
    """What `retrompi.Options` are given, as the question declares them."""
    given = {key: f.take(asked[key], f.option) for key, f in _GIVEN.items() if key in asked and key not in ("model", "platform", "set")}
    return {**given, "set": dict(sets), "store": store}


def _answer(
    lines: Sequence[str] = (), tables: Sequence[Told] = (), figures: Mapping[str, Any] | None = None, warnings: Iterable[Caution] = (),
) -> Told:
    """``warnings``: what the command would say beside the answer (`retrompi.sim.cautions`)."""
    drawn = {name: json.loads(f.to_json()) for name, f in (figures or {}).items()}
    said = split(warnings)
    beyond = [_("Outside the model's calibrated range: {what}.").format(what="; ".join(said["outside"]))] if said["outside"] else []
    return {"lines": [x for x in (*lines, *beyond) if x], "cautions": said["cautions"], "tables": list(tables), "figures": drawn}


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Told:
    return {"caption": caption, "head": list(head), "rows": [list(r) for r in rows]}


def _time(us: float) -> str:
    return f"{us:.6g} µs" if us < 1000 else f"{us / 1000:.6g} ms" if us < 1e6 else f"{us / 1e6:.6g} s"


def _curve_rows(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [[format_bytes(r["size_B"]), _time(float(r["time_us"])), f"{float(r['bandwidth_MBps']):.5g} MB/s" if r["size_B"] else "",
             f"{r['repetitions']}"] for r in rows]


def _head() -> list[str]:
    return [_("size"), _("one-way time"), _("bandwidth"), _("repetitions")]


def _pingpong(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.api.runs import pingpong
    from retrompi.base.units import parse_sizes

    model = asked.get("model", "")
    if model.startswith("models/"):
        model, platform = _fitted_here(model, place)
    else:
        platform = _platform(asked)
        _names(model, platform)
    sizes = parse_sizes(asked["sizes"]) if "sizes" in asked else None
    if sizes is not None and len(sizes) > MOST_POINTS:
        raise UsageError(f"{len(sizes)} sizes; at most {MOST_POINTS} are simulated at once here", code="too-many")
    curve = pingpong(model, platform, sizes=sizes, reps=_whole(asked, "reps", 1, 10_000), **_options(asked, sets, store))
    ended = [f"{curve.outcome}: {curve.detail}", *curve.diagnosis()] if curve.outcome != Outcome.COMPLETED else []
    figures = {}
    if len(curve.rows) > 2 and not model.startswith("/"):
        figures = {what: _curve_figure(curve.rows, what) for what in ("time", "bandwidth")}
    mine = model.startswith("/")  # fitted by the student, to a curve and not to machines
    warnings = [c for c in curve.warnings if not (mine and c.code == "outside-calibration")]
    return _answer(ended, [_table("", _head(), _curve_rows(curve.rows))], figures, warnings)


def _curve_figure(rows: Sequence[Mapping[str, Any]], series: str) -> Any:
    """A student's curve alone: what the papers found would answer predictions that come later."""
    import plotly.graph_objects as go

    from retrompi.render.figures import figures

    column = figures.AXES[series][0]
    shown = sorted((r for r in rows if series == "time" or r["size_B"]), key=lambda r: r["size_B"])
    figure = go.Figure()
    figure.add_scatter(
        x=[figures.place(r["size_B"]) for r in shown], y=[r[column] for r in shown], mode="lines+markers",
        line={"color": figures.PALETTE[0]}, text=[format_bytes(r["size_B"]) for r in shown],
        hovertemplate="%{text}: %{y:.5g}<extra></extra>",
    )
    figures.layout(figure, "")
    axis = figures.value_axis(series, drawn=[r[column] for r in shown])
    figure.update_layout(xaxis=figures.size_axis([r["size_B"] for r in shown], 0), yaxis=axis, showlegend=False)
    return figure


def _explain(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.api.runs import message

    platform = _platform(asked)
    _names(asked["model"], platform)
    found = message(asked["model"], platform, size=asked.get("size", ""), **_options(asked, sets, store))
    total = found.total
    rows = [[str(r["stage"]), str(r["process"]), format_time(r["seconds"]), f"{100 * r['seconds'] / total:.1f} %" if total else ""]
            for r in found.rows]
    line = _("{size}: {time} one way").format(size=format_bytes(found.size), time=_time(total * 1e6))
    return _answer([line], [_table("", [_("stage"), _("process"), _("time"), _("share")], rows)], {"stages": found.plot()},
                 found.warnings)


def _read_trace(place: Path, name: str) -> Any:
    from retrompi import traces
    from retrompi.studio.requests import uploads

    if not _FILE.fullmatch(name) or not (place / name).is_file():
        raise UsageError(f"there is no file '{name[:60]}' among yours yet", code="not-found")
    if name.endswith(".zst"):
        return uploads.trace(str(place / name), name)
    return traces.parse((place / name).read_text(encoding="utf-8", errors="replace"), name=name)


def _replay(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.api.asking import asked_of
    from retrompi.api.runs import run_of
    from retrompi.render.timeline import timeline_page
    from retrompi.sim.observe import Observe
    from retrompi.sim.timeline import TimelineRequest
    from retrompi.spec.conditions.timed_section import Program
    from retrompi.spec.question import Replay

    model, platform = asked.get("model", ""), _platform(asked)
    _names(model, platform)
    trace = _read_trace(place, asked.get("file", ""))
    try:
        share = float(asked.get("share", "0").rstrip(" %")) / (100 if asked.get("share", "").endswith("%") else 1)
    except ValueError:
        raise UsageError(f"'{asked['share'][:40]}' is no share, as 0.3 or 30 %", code="bad-number") from None
    workload = Replay(trace, asked["file"], Program(asked.get("section"), None, share))
    resolved, where = asked_of(model, platform, workload, _options(asked, sets, store))  # type: ignore[arg-type]
    small = trace.ranks <= 16 and trace.actions <= 2000
    done = run_of(resolved, where, Observe(timeline=TimelineRequest(limit=4000)) if small else Observe())
    row = done.row
    took = "" if row["time_s"] is None else " " + _("after {time}").format(time=format_time(row["time_s"]))
    counts = _("{ranks} ranks, {messages} messages, {bytes}").format(
        ranks=row["ranks"], messages=row["messages"], bytes=format_bytes(row["bytes"] or 0))
    lines = [f"{row['outcome']}{took}: {counts}", *(done.diagnosis() if row["outcome"] != Outcome.COMPLETED else [])]
    rows = [[str(r["rank"]), str(r["host"]), *(format_time(r[k]) if r[k] is not None else "" for k in ("time_s", "compute_s", "mpi_s"))]
            for r in done.rows[:64]]
    table = _table("", [_("rank"), _("host"), _("finished"), _("computing"), _("in MPI")], rows)
    told = _answer(lines, [table], warnings=done.warnings)
    return told if done.found.timeline is None else {**told, "chart": timeline_page.alone(done.found.timeline)}


def _why(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.api.paths import path_of
    from retrompi.render.pages import path_page
    from retrompi.sim.resolved import Resolved
    from retrompi.studies.compare import compare_runtimes
    from retrompi.studies.define import case
    from retrompi.studies.define.used_overrides import refuse_idle
    from retrompi.studies.search import sensitivity

    model, platform, file = asked.get("model", ""), _platform(asked), asked.get("file", "")
    _names(model, platform)
    _read_trace(place, file)
    keys = [key.strip() for key in re.split(r"[,;]", asked.get("sensitivity", "")) if key.strip()]
    for key in (*sets, *keys):  # a scenario has other keys, which name files
        if key.partition(".")[0] not in ("platform", model.partition(":")[0]):
            raise UsageError(f"'{key[:60]}' is no parameter of the runtime or the platform", code="unknown-parameter")
    base = case.apply(compare_runtimes.program(str(place / file), [], model, platform, asked.get("mode"), None), sets)
    refuse_idle(base)
    traced = path_of(Resolved.of(base.question()))
    path = traced.recorded
    found = [sensitivity.sensitivity(base, path, key) for key in keys]
    whole = path.took or 1

    def time(ps: int | None) -> str:
        return "" if ps is None else format_time(ps * PS)

    def sums(parts: Mapping[str, int], column: str, title: str) -> Told:
        rows = [[name, time(ps), f"{100 * ps / whole:.1f} %"] for name, ps in parts.items()]
        return _table(title, [column, _("time"), _("share")], rows[:MOST_ROWS])

    slacks = [s for s in path.slacks() if s.least is not None][:MOST_ROWS]
    beside = [[s.stage, s.who, time(s.on_path) if s.on_path else "", time(s.beside), time(s.least)] for s in slacks]
    head = [_("what"), _("who"), _("on the path"), _("beside it"), _("least slack")]
    tables = [sums(path.by("stage"), _("what"), _("What the time consists of")), sums(path.by("who"), _("who"), _("Whose it is")),
              _table(_("Beside the path, and how much later it could be"), head, beside)]
    if found:
        tables.append(_table(_("How the time depends on"), [_("parameter"), _("value"), _("1 % more is"), _("5 % slower at")],
                             [_dependence(s) for s in found]))
    line = _("{time}: {count} delays one after another").format(time=format_time(path.took * PS), count=len(path))
    return _answer([line], tables, {"path": path_page.figures([(file, path)])["course"]}, traced.warnings)


def _dependence(found: Any) -> list[str]:
    """A sensitivity's row: key, value, per cent of the time for one per cent of the key, the key's value at which the run is 5 % slower."""
    at = found.slower_at(0.05)
    slower = _("never") if at is None or at <= 0 else format_quantity(at, found.key.unit)
    return [found.key.path, found.key.value_text, f"{found.share:+.3g} %", slower]


def _checked_toml(place: Path, name: str) -> Path:
    """A student's scenario or study, which names no code and no other file. Raises RetrompiError."""
    file = place / (name if "." in name else f"{name}.toml")
    if not _FILE.fullmatch(file.name) or not file.is_file():
        raise UsageError(f"there is no file '{file.name[:60]}' among yours", code="not-found")
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"not valid TOML: {error}", file.name, code="unreadable-file") from None

    def walk(value: Any, key: str) -> None:
        if isinstance(value, Mapping):
            for k, v in value.items():
                if k in ("file", "include", "base") and isinstance(v, str):
                    raise InputError(f"'{k}' names another file, which a form here does not read", file.name, code="bad-value")
                walk(v, k)
        elif isinstance(value, list):
            if len(value) > MOST_POINTS:
                raise InputError(f"'{key}' has {len(value)} values; at most {MOST_POINTS} here", file.name, code="too-many")
            for v in value:
                walk(v, key)
        elif isinstance(value, str) and key == "model":
            check_names(model=value)
        elif isinstance(value, str) and key == "platform":
            _names(registry.FIRST_MODEL, value)
        elif isinstance(value, str) and re.match(r"[./~]", value.strip()):
            raise InputError(f"'{key}': a path is no value here", file.name, code="bad-value")

    walk(data, "")
    return file


def _scenario(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.api.asking import Where
    from retrompi.api.runs import run_of
    from retrompi.sim.resolved import Resolved
    from retrompi.store import open_store
    from retrompi.studies.define import catalogue
    from retrompi.studies.read.cautions import of_scenario

    scenario = catalogue.scenario(str(_checked_toml(place, asked.get("file", ""))))
    question = scenario.question()
    found = run_of(Resolved.of(question), Where(open_store(store), False))
    row, warnings = found.row, of_scenario(scenario, stored_cautions(found.row["facts"]))
    took = "" if row["time_s"] is None else " " + _("after {time}").format(time=format_time(row["time_s"]))
    lines = [f"{row['outcome']}{took}", *(found.diagnosis() if row["outcome"] != Outcome.COMPLETED else [])]
    rows = found.found.rows
    if rows and "size_B" in rows[0]:
        figures = {what: _curve_figure(rows, what) for what in ("time", "bandwidth")} if len(rows) > 2 else {}
        head = _head()
        if getattr(question.workload, "generator", "") != "pingpong":
            # Of a broadcast it is the time until the last rank has the vector, which is nobody's way.
            head[1] = _("time")
            if figures:
                figures["time"].update_layout(yaxis_title_text=_("time"))
        return _answer(lines, [_table("", head, _curve_rows(rows))], figures, warnings)
    ranks = [[str(r["rank"]), str(r["host"]), *(format_time(r[k]) if r[k] is not None else "" for k in ("time_s", "compute_s", "mpi_s"))]
             for r in rows[:64]]
    return _answer(lines, [_table("", [_("rank"), _("host"), _("finished"), _("computing"), _("in MPI")], ranks)], warnings=warnings)


def _study(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.api.studies import StudyResult
    from retrompi.store import open_store
    from retrompi.studies.execute import design
    from retrompi.studies.execute.run import run_study
    from retrompi.studies.execute.worker_pool import WorkerPool

    file = _checked_toml(place, asked.get("file", ""))
    if "vary" in asked or "[trace]" in file.read_text(encoding="utf-8", errors="replace").replace("[base.trace]", ""):
        key, equals, values = asked.get("vary", "").partition("=")
        if not equals:
            raise UsageError("'Varied' is KEY=VALUES, as trace.ranks=2,14", code="bad-syntax")
        if key.strip() in ("model", "platform"):
            raise UsageError("vary a parameter, not the model or the platform", code="bad-value")
        made = design.from_command(str(file), {key.strip(): values.strip()})
    else:
        made = design.study(str(file))
    at = open_store(store)
    result = StudyResult(at, run_study(at, made, executor=WorkerPool(1)))
    metric = asked.get("metric") or None
    view = result.view(metric)
    axes = list(view.rows[0]["values"]) if view.rows else []
    rows = [[*(str(r["values"].get(k, "")) for k in axes), _value_text(r["value"], view.metric.unit)] for r in view.rows]
    figures = {"study": result.plot(metric)} if len(view.rows) > 2 else {}
    return _answer([result.title], [_table("", [*axes, str(view.metric.name)], rows)], figures, result.warnings)


def _value_text(value: Any, unit: str) -> str:
    if not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    return f"{value:.6g} {unit}" if unit not in ("s", "") else _time(value * 1e6) if unit == "s" else f"{value:.6g}"


def _fitted_here(model: str, place: Path) -> tuple[str, str]:
    """(model's folder, platform's file) of a fit that the text names: it is made anew, as the student's folder has none."""
    name = model.removeprefix("models/")
    made = _made_fit({"name": name, "file": "curve.csv"}, place)[0]
    return str(made.folder), str(made.platform_file or made.platform)


def _made_fit(asked: Mapping[str, str], place: Path) -> tuple[Any, Any]:
    from retrompi.measure.fit.make import fitted_curve, make
    from retrompi.studio.requests.uploads import curves

    name, file = asked.get("name", "mine"), asked.get("file", "curve.csv")
    if not _FILE.fullmatch(name) or not _FILE.fullmatch(file) or not (place / file).is_file():
        raise UsageError(f"there is no file '{file[:60]}' among yours", code="not-found")
    (series, *_others) = curves(str(place / file), file)
    fitted = fitted_curve("same", series, segments=_whole(asked, "segments", 1, 40), hold_out="held" in asked)
    return make([fitted], name=name, folder=place / "models"), fitted


def _fit(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.base.units import format_rate
    from retrompi.measure.fit.make import summary

    _made, curve = _made_fit(asked, place)
    fit = curve.fit

    def rate(value: float) -> str:
        return "" if value == float("inf") else format_rate(value)

    segments = [[format_bytes(s.low), "" if s.high is None else format_bytes(s.high), _time(s.latency_s * 1e6), rate(s.rate_Bps),
                 str(s.row()["points"])] for s in fit.segments]
    steps = [[format_bytes(t["size_B"]), format_bytes(t["low_B"]), format_bytes(t["high_B"]), f"{t['step']:+.1%}"]
             for t in (x.row() for x in fit.thresholds)]
    rest = [[format_bytes(r["size_B"]), _time(r["measured_s"] * 1e6), _time(r["fitted_s"] * 1e6), f"{r['error']:+.2%}",
             _("yes") if r["seen"] else _("held out")]
            for r in (x.row() for x in sorted((*fit.residuals, *curve.held), key=lambda x: x.size))]
    lines = [_("{segments} segments; noise of a time {noise}").format(segments=len(fit.segments), noise=f"{fit.noise:.2%}")]
    for what, errors in ((_("seen"), summary(fit.residuals)), (_("held out"), summary(curve.held))):
        if errors:
            numbers = {k: f"{errors[v]:.2%}" for k, v in (("median", "median"), ("p95", "p95"), ("worst", "worst"))}
            lines.append(_("errors at sizes {what}: median {median}, 95th percentile {p95}, worst {worst}").format(what=what, **numbers))
    tables = [_table(_("Segments"), [_("from"), _("below"), _("latency"), _("rate"), _("sizes")], segments)]
    if steps:
        tables.append(_table(_("Thresholds"), [_("threshold"), _("lies in"), "..", _("step")], steps))
    tables.append(_table(_("Residuals"), [_("size"), _("measured"), _("fitted"), _("error"), _("seen by the fit")], rest))
    return _answer(lines, tables)


def _trace(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    trace = _read_trace(place, asked.get("file", ""))
    info, pairs = trace.info(), trace.traffic()["pairs"]
    calls = [[name, str(count)] for name, count in sorted(info["calls"].items())]
    sent = [[str(a), str(b), str(count), format_bytes(total)] for a, b, count, total in pairs[:400]]
    lines = [_("{ranks} ranks, {actions} actions").format(ranks=trace.ranks, actions=trace.actions)]
    return _answer(lines, [_table(_("Calls"), [_("call"), _("times")], calls),
                         _table(_("Messages"), [_("from"), _("to"), _("messages"), _("bytes")], sent)])


def _program(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.studio.labs.lab_programs import execute

    return execute(asked, place)


def _record(asked: Mapping[str, str], sets: Mapping[str, str], place: Path, store: str | None) -> Told:
    from retrompi.studio.labs.lab_programs import record_program

    return record_program(asked, place)


_RUNS: dict[str, Callable[[Mapping[str, str], Mapping[str, str], Path, str | None], Told]] = {
    "pingpong": _pingpong, "explain": _explain, "replay": _replay, "scenario": _scenario, "study": _study, "sweep": _study, "fit": _fit,
    "trace": _trace, "program": _program, "record": _record, "why": _why,
}
