"""Options that several commands share, and the values they turn into."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.units import LARGEST_SEED, parse

if TYPE_CHECKING:
    from retrompi.render.measured import Measured
    from retrompi.store import Store

__all__ = [
    "csv_option",
    "debug_option",
    "fidelity_option",
    "fresh_option",
    "jobs_option",
    "json_option",
    "measured_curves",
    "measured_option",
    "mode_option",
    "model_option",
    "open_for",
    "platform_option",
    "progress",
    "seed_option",
    "set_option",
    "some_time",
    "store_option",
    "warn",
]

F = TypeVar("F", bound=Callable[..., Any])


def _names(kind: str, incomplete: str) -> list[CompletionItem]:
    """Completions from folder and file names alone: pressing TAB must not import a model."""
    from retrompi.base import paths
    from retrompi.spec import registry

    try:
        if kind == "model":
            folders = [d for d in (paths.models_dir(), paths.user_models_dir()) if d.is_dir()]
            names = sorted({p.name for d in folders for p in d.iterdir() if (p / "__init__.py").is_file()})
        else:
            names = registry.platform_names() if kind == "platform" else registry.scenario_names()
    except (RetrompiError, OSError):
        return []
    found = [CompletionItem(n) for n in names if n.startswith(incomplete)]
    if kind != "scenario" and ("/" in incomplete or incomplete.startswith(".")):
        found.append(CompletionItem(incomplete, type="dir" if kind == "model" else "file"))
    return found


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a model's name."""
    return _names("model", incomplete)


def complete_platform(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a platform's name."""
    return _names("platform", incomplete)


def complete_scenario(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a scenario's name."""
    return _names("scenario", incomplete)


def _debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(dict)["debug"] = True


def debug_option(command: F) -> F:
    """``--debug`` after the command works as well as before it; hidden so that help shows it once."""
    return click.option("--debug", is_flag=True, hidden=True, expose_value=False, is_eager=True, callback=_debug)(command)


model_option = click.option(
    "-m",
    "--model",
    required=True,
    metavar="NAME|FOLDER",
    shell_complete=complete_model,
    help="Runtime model: a name (see 'retrompi models list') or the folder of one of your own.",
)
platform_option = click.option(
    "-p",
    "--platform",
    default="nt-pair",
    show_default=True,
    metavar="NAME|FILE",
    shell_complete=complete_platform,
    help="Machine room: a name (see 'retrompi platforms list') or a TOML file of your own.",
)
traffic_option = click.option(
    "--traffic",
    multiple=True,
    metavar="FROM->TO RATE FRAME [LAW]",
    help="Frames of others on the same wire, e.g. 'any 2Mbps 1500B poisson' or 'server->workstation 2Mbps 1500B'.",
)
failures_option = click.option(
    "--fail",
    "failures",
    multiple=True,
    metavar="WHAT@FROM..TO",
    help="Take something down for a simulated time, e.g. 'link server@1s..2s', 'switch@2s', 'wan@1s..1.5s'.",
)
set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a parameter, e.g. wmpi.pool=10MiB, platform.host.quantum=20ms, platform.link.bandwidth=100Mbps.",
)
seed_option = click.option("--seed", type=click.IntRange(0, LARGEST_SEED), default=1, show_default=True, help="Seed of every draw.")
fidelity_option = click.option(
    "--fidelity",
    type=click.Choice(["mechanism", "curve", "loggp"]),
    default="mechanism",
    show_default=True,
    help="The whole mechanism, the curve sampled from it with contention only, or LogGP fitted to that curve.",
)
fresh_option = click.option("--fresh", is_flag=True, help="Simulate even when an identical run is stored.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
measured_option = click.option(
    "--measured",
    "--overlay",
    "measured",
    multiple=True,
    metavar="ID|NAME[@FIGURE]",
    help="Lay a measured curve of the store over the figures (or one of them): a native run, an import, a program's run.",
)
csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
store_option = click.option("--store", metavar="PATH|URL", help="Where runs are kept (default: $RETROMPI_STORE, then your data folder).")


jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Simulations at a time (default: the number of processors).",
)


def mode_option(default: str) -> Callable[[F], F]:
    """``--mode`` with its default."""
    return click.option(
        "--mode",
        default=default,
        show_default=True,
        metavar="MODE",
        help="shared (all ranks on the first host), distributed (one host each), or a host for every rank: "
        "workstation,workstation; also the name of a placement of the platform.",
    )


def open_for(ctx: click.Context, store: str | None, *, write: bool = True) -> Store:
    """The store the user asked for, by the command's --store, the group's, or the environment."""
    from retrompi.store import open_store

    chosen = store if store is not None else (ctx.find_root().obj or {}).get("store")
    return open_store(chosen, write=write)


def measured_curves(ctx: click.Context, store: str | None, names: Sequence[str]) -> list[Measured]:
    """The curves that ``--measured`` names; UsageError for one that is not there."""
    if not names:
        return []
    from retrompi.render.measured import from_store

    kept = open_for(ctx, store, write=False)
    return [from_store(kept, name) for name in names]


def some_time(option: str, text: str) -> float:
    """The seconds that ``option`` gives a run; UsageError where that is none."""
    seconds = parse(text, "s")
    if seconds <= 0:
        raise UsageError(f"{option} '{text}' leaves no time; it must be more than zero", code="out-of-range")
    return seconds


def warn(lines: Sequence[str], model: str) -> list[str]:
    """One line on stderr for what lies outside the model's calibrated range; returns the lines, for JSON."""
    if lines:
        click.echo(f"warning: outside the calibrated range of {model}: {'; '.join(lines)}", err=True)
    return list(lines)


def _silent(done: int, total: int, what: str = "") -> None:
    """Report nothing."""


def _left(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar with rate and time left on a terminal's stderr, nothing elsewhere; yields ``report(done, total, what)``.

    A call is one job; ``done`` of ``total`` may count anything that grows evenly with time.
    """
    if not sys.stderr.isatty():
        yield _silent
        return
    state: dict[str, Any] = {"at": 0, "told": "the longest runs come first", "jobs": 0}
    began = time.monotonic()
    bar: Any = click.progressbar(
        length=1000, label=label, file=sys.stderr, item_show_func=lambda item: state["told"], show_pos=False, show_eta=False, width=24
    )
    with bar:

        def report(done: int, total: int, what: str = "") -> None:
            at = 1000 * done // max(total, 1)
            state["jobs"] += 1
            spent = time.monotonic() - began
            speed = state["jobs"] / max(spent, 1e-9)
            rate = f"{speed:.1f} jobs/s" if speed >= 1 else f"{60 * speed:.0f} jobs/min"
            left = f"{_left(spent * (total - done) / done)} left" if 0 < done < total else f"{_left(spent)}"
            room = max(shutil.get_terminal_size().columns - len(label) - 36, 10)
            state["told"] = f"{rate}  {left}  {what}"[:room]
            bar.update(at - state["at"])
            state["at"] = at

        yield report
