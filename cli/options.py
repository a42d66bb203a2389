"""Bundles of options shared by several commands, and their conversion to values."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.units import parse
from retrompi.cli.bundle import option
from retrompi.cli.output import Output
from retrompi.cli.terminal import escape_controls, raw

if TYPE_CHECKING:
    from retrompi.classroom.course.database import Database
    from retrompi.measure.stored_curves import StoredCurve
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.conditions.bounds import Bounds as Stops
    from retrompi.spec.question import Question, Workload
    from retrompi.store import Store
    from retrompi.studies.draws.uncertainty import Spec

__all__ = [
    "BoundsOptions",
    "Carried",
    "Effort",
    "Fictions",
    "Fidelity",
    "NetworkOptions",
    "OfCourse",
    "OfModel",
    "OnPlatform",
    "Overlaid",
    "Overrides",
    "Placed",
    "Placing",
    "RunInputs",
    "RunOutput",
    "SeedOption",
    "Seeded",
    "StoreOption",
    "StoreOutput",
    "Uncertain",
    "UndefinedSource",
    "Workers",
    "complete_model",
    "complete_network",
    "complete_platform",
    "complete_scenario",
    "ends_in",
    "mode_option",
    "new_path",
    "open_browser",
    "output_option",
    "placement_row",
    "placement_words",
    "progress",
    "question_option",
    "ranks_option",
    "share",
    "sizes_option",
    "some_level",
    "some_rate",
    "some_time",
    "warm_up_option",
]


def _names(kind: str, incomplete: str) -> list[CompletionItem]:
    """Completions from folder and file names only: completion must not import a model."""
    from retrompi.base import paths
    from retrompi.studies.define import catalogue

    try:
        if kind == "model":
            folders = [d for d in (paths.models_dir(), paths.user_models_dir()) if d.is_dir()]
            names = sorted({p.name for d in folders for p in d.iterdir() if (p / "__init__.py").is_file()})
        else:
            names = _platforms(incomplete) if kind == "platform" else catalogue.scenario_names()
    except (RetrompiError, OSError):
        return []
    found = [CompletionItem(n) for n in names if n.startswith(incomplete)]
    if kind != "scenario" and ("/" in incomplete or incomplete.startswith(".")):
        found.append(CompletionItem(incomplete, type="dir" if kind == "model" else "file"))
    return found


def _platforms(incomplete: str) -> list[str]:
    """Platforms and hosts of the library; after HOST*COUNT+ its hosts, after @ its networks."""
    from retrompi.spec import registry
    from retrompi.spec.machine import machines

    before, at, _ = incomplete.partition("@")
    if at:
        return [f"{before}@{name}" for name in machines.network_names()]
    head, plus, _ = incomplete.rpartition("+")
    return [f"{head}{plus}{name}" for name in machines.host_names()] + ([] if plus else registry.platform_names())


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a model's name."""
    return _names("model", incomplete)


def complete_platform(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a platform's name."""
    return _names("platform", incomplete)


def complete_scenario(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a scenario's name."""
    return _names("scenario", incomplete)


def complete_network(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a network."""
    from retrompi.spec.conditions.network_model import NAMES

    return [CompletionItem(n) for n in NAMES if n.startswith(incomplete)]


_COMPLETED = {"model": complete_model, "platform": complete_platform, "network": complete_network}
"""Key of a question's field -> the shell completion of its values."""


def question_option(key: str, help: str = "", **about: Any) -> Any:
    """The option of a field of a question, as `retrompi.spec.question.OPTIONS` declares it. ``help`` is what this command does with it,
    in place of what follows the first colon; ``about`` are further arguments of `click.option`."""
    from retrompi.spec.question import OPTIONS

    f = OPTIONS[key]
    made: dict[str, Any] = {"metavar": f.metavar} if f.metavar else {}
    if f.kind == "whole":
        made["type"] = click.IntRange(int(f.low or 0), None if f.high is None else int(f.high))
    if f.kind in ("whole", "choice") and f.default is not None:
        made["default"] = f.default
    if key in _COMPLETED:
        made["shell_complete"] = _COMPLETED[key]
    text = f"{f.help.partition(':')[0]}: {help}" if help else f.help
    return option(text, *f.option.split(), question=key, **{**made, **about})


def mode_option(default: str = "natural") -> Any:
    """The field ``mode`` with its default: the platform's natural placement, unless a command has a reason for another."""
    return question_option("mode", "" if default == "natural" else f"as for 'retrompi replay' (default: {default}).", default=default)


@dataclass(frozen=True)
class Placing:
    """The placement of the ranks, by a word, a list of hosts, or a hostfile."""

    mode: str = mode_option()
    hostfile: Path | None = option(
        "Hostfile of mpirun: its hosts are filled in order; lines HOST, HOST:N or HOST slots=N.",
        type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
    per_host: int | None = option("Ranks a host: at most so many, for block, cyclic and hostfiles.", type=click.IntRange(1), metavar="N")

    def placement(self, platform: str) -> str:
        """The placement as a question takes it. UsageError for contradicting options, InputError for a wrong hostfile."""
        from retrompi.spec import registry
        from retrompi.spec.machine import placements

        mode = self.mode
        if self.hostfile is None and self.per_host is None:
            return mode
        if not platform:
            raise UsageError("--hostfile and --per-host are of one platform: give it with -p", code="missing-option")
        loaded = registry.platform(platform)
        if self.hostfile is not None:
            if mode != placements.NATURAL:
                raise UsageError("--mode and --hostfile are mutually exclusive", code="conflicting-options")
            mode = placements.read_hostfile(self.hostfile, loaded.name, loaded.hosts)
        if self.per_host is None:
            return mode
        found = loaded.placement(mode)
        return placements.limit_per_host(found if isinstance(found, str) else mode, self.per_host)


def ranks_option(text: str = "", **about: Any) -> Any:
    """The field ``ranks``; ``text`` says more, e.g. the default."""
    return option(f"Number of ranks{text}.", "-n", "--np", type=click.IntRange(1), **about)


MOST_WARM_UP = 1_000_000


def warm_up_option() -> Any:
    """The field ``warm_up`` of a PingPong."""
    return option(
        "Warm-up repetitions: exchanges before each size that are not timed (default: 1; 0: none, as in the papers, so that the first size "
        "includes what the first call sets up).",
        "--warm-up", type=click.IntRange(0, MOST_WARM_UP), metavar="N", default=1, aliases=("--warmup",))


def sizes_option(text: str, **about: Any) -> Any:
    """The field ``sizes``."""
    return option(f"Message sizes{text}", "--sizes", metavar="LIST", aliases=("--size",), **about)


FORMATS = ("html", "htm", "svg", "png", "pdf", "csv", "json", "parquet", "zip", "xml", "txt")
"""Endings of files by which a reader would know the format: what is none of these is not written under such a name."""


def ends_in(*endings: str, or_folder: bool = False) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of an output option: UsageError unless the name ends in one of ``endings``.

    Without ``endings``, and with ``or_folder``, a folder or a format of our own is written, so the name must not promise another format.
    PNG and SVG are refused here too where no browser can draw them, before anything is simulated.
    """

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        if value is None:
            return None
        given = Path(value).suffix.removeprefix(".").lower()
        if given in endings:
            pass
        elif endings and not or_folder:
            raise UsageError(f"-o {value}: this is written as {_ending_list(endings)}", code="unknown-format")
        elif given in FORMATS:
            better = f"give a name that ends in {_ending_list(endings)}, or a folder" if endings else "give a name without that ending"
            raise UsageError(f"-o {value}: no .{given} file is written here; {better}", code="unknown-format")
        if given in ("svg", "png"):
            from retrompi.render.document.export import MISSING, browser

            if browser() is None:
                raise UsageError(f"-o {value}: {MISSING}", code="no-image")
        return value

    return check


def _ending_list(endings: Sequence[str]) -> str:
    named = [f".{e}" for e in endings if e != "htm"]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"


def output_option(text: str, *endings: str, folder: bool = False, metavar: str = "FILE", **about: Any) -> Any:
    """The field ``out``: a file that ends in one of ``endings``, or a ``folder``."""
    kind = click.Path(path_type=Path, dir_okay=folder, file_okay=not folder)
    told = f"{text} ({_ending_list(endings)})" if endings else text
    return option(f"Where to write: {told}.", "-o", "--output", aliases=("--out",), metavar=metavar, callback=ends_in(*endings),
                  **{"type": kind, **about})


@dataclass(frozen=True)
class OfModel:
    """The runtime model, and the question that is asked about it."""

    model: str = question_option("model", required=True)

    def question(self, workload: Workload, **more: Any) -> Question:
        """The question about ``workload`` with what was given to the bundle's `question_option`s; ``more`` are fields without an option."""
        from retrompi.spec.question import OPTIONS, Question

        given = {f.metadata["question"]: getattr(self, f.name) for f in fields(self) if f.metadata.get("question")}
        given |= {key: _quantity(key, value) for key, value in given.items() if OPTIONS[key].kind == "quantity"}
        # What is not given is the question's default: of a network and of fictions that of the whole command.
        given = {key: value for key, value in given.items() if value is not None and value is not False}
        if isinstance(self, Effort):
            more["bounds"] = self.bounds()
        return Question.asking(workload, given, **more)


@dataclass(frozen=True)
class Overrides:
    """Parameter overrides."""

    sets: tuple[str, ...] = question_option("set")


@dataclass(frozen=True)
class OnPlatform:
    """The platform."""

    platform: str = question_option("platform", default="")


@dataclass(frozen=True)
class SeedOption:
    """The seed of random numbers."""

    seed: int = question_option("seed")


@dataclass(frozen=True)
class Fidelity:
    """The level of detail."""

    fidelity: Literal["mechanism", "curve", "loggp"] = question_option("fidelity")


@dataclass(frozen=True)
class NetworkOptions:
    """Cross traffic and failures of the network."""

    traffic: tuple[str, ...] = question_option("traffic")
    failures: tuple[str, ...] = question_option("failures")


def _carry(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Until the command ends, its questions are about this network."""
    from retrompi.spec.conditions.network_model import using

    if value is not None:
        ctx.with_resource(using(value))
    return value


@dataclass(frozen=True)
class Carried:
    """The option --network: the network model of every run of the command."""

    network: str | None = question_option("network", callback=_carry)


def _allow(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Until the command ends, its questions may be about pairs that never were."""
    from retrompi.spec.needs import asking

    if value:
        ctx.with_resource(asking())
    return value


@dataclass(frozen=True)
class Fictions:
    """Whether a model may be asked about on a platform on which it cannot have run."""

    what_if_hardware: bool = question_option("what_if_hardware", callback=_allow)


@dataclass(frozen=True)
class Workers:
    """The number of simulating processes."""

    jobs: int | None = option(
        "Number of simulations run in parallel (default: the number of processors).", "-j", "--jobs", type=click.IntRange(1), metavar="N")


@dataclass(frozen=True)
class Placed(Placing, Overrides, OnPlatform):
    """A platform with overrides, and the placement of the ranks; without ``-p`` the platform is the model's own."""

    def __post_init__(self) -> None:
        model: str | None = getattr(self, "model", None)
        if not self.platform and model is not None:
            from retrompi.spec import registry

            object.__setattr__(self, "platform", registry.own_platform(model))
        object.__setattr__(self, "mode", self.placement(self.platform))

    def check(self, model: str) -> None:
        """Rejects an unknown name before a store is created or anything runs."""
        from retrompi.spec import registry

        registry.model(model)
        registry.platform(self.platform).placement(self.mode)


@dataclass(frozen=True)
class Seeded(SeedOption, Placed):
    """A placement and a seed."""


@dataclass(frozen=True)
class Effort:
    """Limits of the simulation itself: events, wall time, memory."""

    event_limit: int | None = option(
        "Stop a simulation after this many events (outcome limit).", type=click.IntRange(1), metavar="N")
    wall_limit: str | None = option(
        "Stop a simulation after this wall time, e.g. 60s (outcome limit).", metavar="TIME", aliases=("--timeout",))
    memory_limit: str | None = option(
        "Stop a simulation that needs more memory than this (outcome limit; default: 2GiB).", metavar="SIZE")

    def bounds(self) -> Stops:
        """The bounds as a question takes them; UsageError for one that is not above zero."""
        from retrompi.spec.conditions.bounds import Bounds as Stops

        wall = None if self.wall_limit is None else some_time("--wall-limit", self.wall_limit)
        memory = None if self.memory_limit is None else int(parse(self.memory_limit, "B"))
        if memory == 0:
            raise UsageError(f"--memory-limit '{self.memory_limit}' must be greater than zero", code="out-of-range")
        return Stops(self.event_limit, wall, memory)


@dataclass(frozen=True)
class BoundsOptions(Effort):
    """Limits of a run: those of the simulation, and the simulated time of the job."""

    time_limit: str | None = question_option("time_limit")

    @property
    def limit_s(self) -> float | None:
        """``--time-limit`` in seconds."""
        return _quantity("time_limit", self.time_limit)


def _quantity(key: str, text: str | None) -> float | None:
    """The value of an option with a unit, converted to that unit."""
    from retrompi.spec.question import OPTIONS

    value: float | None = None if text is None else OPTIONS[key].parse(text, OPTIONS[key].option)
    return value


@dataclass(frozen=True)
class RunInputs(BoundsOptions, Fidelity, Seeded, OfModel):
    """Inputs of a run: model, platform, mode, overrides, seed, level of detail, bounds."""


MOST_DRAWS = 10_000


@dataclass(frozen=True)
class Uncertain:
    """How sure a result is."""

    uncertainty: str | None = option(
        "Uncertainty: central intervals at this level, e.g. 90%, over draws of the uncertain parameters.", metavar="LEVEL")
    draws: int | None = option("Number of draws of the parameters, for --uncertainty (default: 100).", type=click.IntRange(2, MOST_DRAWS),
                               metavar="N")

    def spec(self) -> Spec | None:
        """The level and number of draws as a `Spec`; None without ``--uncertainty``. UsageError for a level outside 0..1."""
        if self.uncertainty is None:
            if self.draws is not None:
                raise UsageError("--draws is for --uncertainty; example: --uncertainty 90%", code="unused-option")
            return None
        from retrompi.studies.draws.uncertainty import DRAWS, Spec

        return Spec(some_level(self.uncertainty), self.draws or DRAWS)


@dataclass(frozen=True)
class Overlaid:
    """Measured curves to overlay on simulated ones."""

    measured: tuple[str, ...] = option(
        "Draw a measured curve from the store over the figures (or over one): a native run, an import, a program's run.",
        "--measured", "--overlay", metavar="ID|NAME[@FIGURE]")

    def curves(self, output: StoreOutput) -> list[StoredCurve]:
        """The curves named by ``--measured``; UsageError for one that is not in the store."""
        if not self.measured:
            return []
        from retrompi.measure.stored_curves import from_store

        kept = output.open(write=False)
        return [from_store(kept, name) for name in self.measured]


@dataclass(frozen=True)
class UndefinedSource:
    """Treatment of receives without a source in a trace."""

    undefined_source: Literal["refuse", "any", "null"] = option(
        "Meaning of source -333 in a receive: SMPI writes it both for MPI_ANY_SOURCE and for MPI_PROC_NULL.", default="refuse")


def open_browser(address: str) -> None:
    """Opens a page, where there is a screen to show it on."""
    if sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        import webbrowser

        webbrowser.open(address)


def new_path(path: Path) -> Path:
    """``path``, checked not to exist yet."""
    if path.exists():
        raise UsageError(f"{path} exists; choose another name", code="exists-already")
    return path


@dataclass(frozen=True)
class OfCourse:
    """The course's database."""

    database: str | None = option("Database of the course: a file, or the URL of a PostgreSQL database (default: $RETROMPI_COURSE, then "
                                  "course.db here).", metavar="FILE|URL")

    def open(self) -> Database:
        """The opened database."""
        from retrompi.classroom.course.database import Database

        return Database.open(self.database)


@dataclass(frozen=True)
class StoreOption:
    """The store."""

    store: str | None = option("Store of runs (default: $RETROMPI_STORE, then your data folder).", metavar="PATH|URL")

    @property
    def where(self) -> str | None:
        """The store by the command's ``--store`` or the group's; None: by the environment."""
        return self.store if self.store is not None else (click.get_current_context().find_root().obj or {}).get("store")

    def open(self, *, write: bool = True) -> Store:
        """The opened store selected by the user."""
        from retrompi.store import open_store

        return open_store(self.where, write=write)


@dataclass(frozen=True)
class StoreOutput(StoreOption, Output):
    """The output's format, and the store."""


@dataclass(frozen=True)
class RunOutput(Fictions, Carried, StoreOutput):
    """The output's format, the store, what carries the frames, and whether stored runs are used."""

    fresh: bool = option("Simulate even when an identical run is stored.")


def some_level(text: str) -> float:
    """The value of ``--uncertainty``, above 0 and below 1; UsageError for one that is not."""
    level = share("--uncertainty", text)
    if not 0 < level < 1:
        raise UsageError(f"--uncertainty '{text}' is not above 0 and below 100%; example: 90%", code="out-of-range")
    return level


def some_time(name: str, text: str) -> float:
    """The value of option ``name`` in seconds; UsageError unless it is a positive time."""
    seconds = parse(text, "s")
    if seconds <= 0:
        raise UsageError(f"{name} '{text}' must be greater than zero", code="out-of-range")
    return seconds


def share(option: str, text: str) -> float:
    """``5%`` or ``0.05`` as 0.05; UsageError for what is neither."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if found is None:
        raise UsageError(f"{option} '{text}' is not a share; example: {option} 5%", code="bad-syntax")
    return float(found[1]) / (100 if found[2] else 1)


def some_rate(name: str, text: str) -> float:
    """The value of option ``name`` in flop/s; UsageError unless it is a positive rate of computation."""
    flops = parse(text, "flop/s")
    if flops <= 0:
        raise UsageError(f"{name} '{text}' must be greater than zero", code="out-of-range")
    return flops


def placement_words(asked: Resolved) -> str:
    """The placement of a question in normal form, and whether it is the platform's natural one."""
    from retrompi.spec.machine.placements import NATURAL

    return asked.mode_text + (" (natural)" if asked.question.placement == NATURAL else "")


def placement_row(asked: Resolved) -> dict[str, Any]:
    """The placement of the ranks, for JSON: ``mode`` in normal form, whether it is the ``natural`` one, ``hosts``; all of it in one
    ``line``."""
    from retrompi.spec.machine.placements import NATURAL, placement_text

    hosts = placement_text(asked.placement, asked.platform.hosts)
    by_default = asked.question.placement == NATURAL
    mode = "a list of hosts" if asked.mode.replace(",", "").isdecimal() else asked.mode[:60]
    line = f"placement: {mode}{f', the natural one of {asked.base_platform.name}' if by_default else ''}: {hosts}"
    return {"mode": asked.mode, "natural": by_default, "hosts": hosts, "line": line}


def _silent(done: int, total: int, what: str = "") -> None:
    """Report nothing."""


def _time_left(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


LOG_S = 20.0
"""Seconds after which a log has a first line of progress; each further one comes after twice the time."""


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar with rate and time left on a terminal's stderr, a line now and then in a log; yields ``report(done, total, what)``.

    Each call reports one job, but for those with ``done`` 0; ``done`` of ``total`` may be in any unit that grows evenly with time.
    """
    began = time.monotonic()
    state: dict[str, Any] = {"at": 0, "told": "the longest runs come first", "jobs": 0, "due": LOG_S}

    def line(done: int, total: int, what: str) -> str:
        state["jobs"] += bool(done)
        spent = time.monotonic() - began
        speed = state["jobs"] / max(spent, 1e-9)
        rate = f"{speed:.1f} jobs/s" if speed >= 1 else f"{60 * speed:.0f} jobs/min"
        left = f"{_time_left(spent * (total - done) / done)} left" if 0 < done < total else f"{_time_left(spent)}"
        return escape_controls(f"{rate}  {left}  {what}" if done else what)

    if not sys.stderr.isatty():

        def log(done: int, total: int, what: str = "") -> None:
            told, spent = line(done, total, what), time.monotonic() - began
            if spent >= state["due"]:
                state["due"] = 2 * spent
                click.echo(f"{escape_controls(label)}: {done} of {total}, {told}", err=True)

        yield log
        return
    bar: Any = click.progressbar(
        length=1000, label=escape_controls(label), file=raw(sys.stderr), item_show_func=lambda item: state["told"],
        show_pos=False, show_eta=False, width=24,
    )
    with bar:

        def report(done: int, total: int, what: str = "") -> None:
            at = 1000 * done // max(total, 1)
            columns = max(shutil.get_terminal_size().columns - len(label) - 36, 10)
            state["told"] = line(done, total, what)[:columns]
            bar.update(at - state["at"])
            state["at"] = at

        yield report
