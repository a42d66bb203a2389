"""The command group, and the conversion of every error to one line and an exit code.

Exit codes: 0 done, 1 a negative verdict or outcome, 2 wrong usage or input, 3 an internal error.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from retrompi.base.errors import RetrompiError, nearest
from retrompi.base.signals import terminated_is_interrupted
from retrompi.cli.terminal import no_raw_control_characters, paint
from retrompi.spec.runtime import overrides

# section -> name -> one line of help, so that `retrompi --help` loads no command (a test compares it with the command's own)
SECTIONS = {
    "Simulate": {
        "pingpong": "Simulate a PingPong curve: one-way time and bandwidth against message size.",
        "replay": "Replay a time-independent trace on a runtime model and a platform.",
        "run": "Run a program on a runtime model, on SimGrid's SMPI or natively, and show its times and MPI calls.",
        "compare": "Compare native, SMPI and model runs of a program, or several runtimes on one program.",
        "startup": "Show how a job is started: manual steps, windows, daemons, and how often it fails.",
    },
    "Explain a result": {
        "explain": "Show where the time of one message goes, stage by stage.",
        "why": "Show what the time of a run consists of, or why B takes longer than A: the critical path.",
        "timeline": "Draw the timeline stored with a run, or show how long each process spent in each state.",
        "fidelity": "Show a PingPong or a trace at every level of detail, and the spread between levels.",
        "diff": "Compare two stored runs: parameters and results that differ.",
    },
    "Vary and search": {
        "sweep": "Vary a scenario: run every combination of the axes and store the results as a study.",
        "study": "Run, list, show, export, merge and delete studies.",
        "tornado": "Find which parameters matter: one at a time over its range, or by Sobol indices.",
        "break-even": "Find where along a bandwidth, a latency, a size or a number of ranks A overtakes B.",
        "tolerance": "Find how far a latency, or any other number, can change before a scenario slows down.",
        "optimise": "Find the best value of a metric over several keys: the least time, the largest bandwidth.",
        "share": "Run a scenario's jobs together and each alone, and show their slow-down.",
    },
    "Judge by what was published": {
        "reproduce": "Replay the experiments of a paper, judge its claims and write a report.",
        "validate": "Judge the published claims against simulated results.",
        "claims": "List the published claims, or show one.",
        "transfer": "Show every model on every machine it is known to have run on, simulated and published.",
        "predict": "Show the predictions for machines whose published values are not known, or make them again.",
        "lmbench": "Run lmbench's programs on a simulated host: calls, context switches, pipes, TCP, copies.",
        "paper": "Make, check and reproduce papers as folders; run what belongs to one paper alone.",
        "crate": "Pack a paper or a study with its evidence, or verify such a crate.",
    },
    "Traces and measurements": {
        "explore": "Visit every order in which the messages of a program can match.",
        "trace": "Record, inspect, convert, cut, merge, scale or extrapolate traces.",
        "smpi": "Export a model's costs for SimGrid's SMPI, or build the plug-in that reads them.",
        "measured": "Import, list and show curves measured on real machines.",
        "fit": "Fit a runnable model to a measured curve: segments, thresholds, residuals.",
        "calibrate": "Fit a model's free parameters, or a paper's machines and models, to what is marked for calibration.",
        "posterior": "Find what fits leave undetermined, or check the intervals of posteriors.",
    },
    "What there is": {
        "models": "List the runtime models, or show one with its parameters and sources.",
        "platforms": "List the platforms and the library of hosts and networks, or show one with its values and sources.",
        "scenarios": "List the scenarios, show one, or run it.",
        "runs": "List, show, compare, tag, export and delete the stored runs.",
    },
    "Work and teach": {
        "studio": "Start the web interface in a browser; Ctrl-C stops it.",
        "lab": "Work through the teaching labs: start, check, hint, report, collect.",
        "course": "Run a course in the browser: a class of students, their labs, marks and grades.",
        "completion": "Print the shell completion script.",
    },
}
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}


class LazyGroup(click.Group):
    """A group whose commands are imported on use: ``retrompi.cli.<name>`` has one named ``command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"retrompi.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"no command '{args[0]}'{nearest(args[0], COMMANDS, 20)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))  # one width, so that the sections line up
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(widest), text) for name, text in commands.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--store", metavar="PATH|URL", help="Store of runs (default: $RETROMPI_STORE, then your data folder).")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="retrompi", prog_name="retrompi", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, store: str | None, debug: bool) -> None:
    """Simulate historical MPI environments and judge the results by what was published about them.

    --set KEY=VALUE overrides any parameter, e.g. --set wmpi.pool=10MiB or --set platform.host.cores=2. Exit codes: 0 done,
    1 a negative verdict or outcome, 2 wrong usage or input, 3 a defect of retrompi.

    \b
    Examples:
      retrompi reproduce baker-fox                           reproduce a paper, with its claims judged and drawn
      retrompi pingpong -m wmpi --mode shared                simulate one curve
      retrompi explain -m wmpi --mode shared --size 512KiB   show why it looks like that
    """
    ctx.ensure_object(dict)
    ctx.obj["store"] = store
    ctx.obj["debug"] = ctx.obj.get("debug", False) or debug


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk or a file size limit: caused by the user's machine, not internal errors."""


def _say(text: str) -> None:
    color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    one_line = " ".join(text.split())
    click.echo(f"{paint('error', fg='red', bold=True) if color else 'error'}: {one_line}", err=True, color=color)


def run(args: list[str] | None = None, on_error: Callable[[Exception], object] = lambda error: None) -> int:
    """Run the command line and return its exit code; every error is reported in one line on stderr.

    ``on_error`` is called with the error itself, whose ``code`` its line does not show.
    """
    with no_raw_control_characters():
        return _run(args, on_error)


def _note_once() -> Callable[[str], None]:
    """Prints each line on stderr the first time it comes."""
    seen: set[str] = set()

    def note(line: str) -> None:
        if line not in seen:
            seen.add(line)
            click.echo(f"note: {line}", err=True)

    return note


def _run(args: list[str] | None, on_error: Callable[[Exception], object]) -> int:
    state: dict[str, object] = {"debug": False}
    try:
        with overrides.telling(_note_once()), terminated_is_interrupted():
            result = cli.main(args, prog_name="retrompi", standalone_mode=False, obj=state)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and later; the message is the help
            click.echo(error.format_message(), err=True)
            return 2
        on_error(error)
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context is not None else ""
        _say(error.format_message() + hint)
        return 2
    except (click.Abort, KeyboardInterrupt):
        # CPython remembers a Ctrl-C that came out of exec() of a text, as a dataclass that is being imported is one, and then ends with
        # signal 2 whatever the exit code is (Py_RunMain, `python -m`); a further exec() makes it forget (run_eval_code_obj).
        exec("")
        with suppress(OSError):  # after a hang-up there may be no terminal any more
            _say("interrupted")
        return 130
    except RetrompiError as error:
        on_error(error)
        if state["debug"]:
            _traceback()
        _say(str(error))
        return error.exit_code
    except BrokenPipeError:
        # The reader closed the pipe; nothing more may be flushed to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        on_error(error)
        if state["debug"]:
            _traceback()
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            _say(f"cannot write: {error.strerror}")
            return 2
        if (damaged := _damaged_store()) is not None:
            on_error(damaged)
            _say(str(damaged))
            return damaged.exit_code
        said = str(error).strip() or "no message"
        _say(f"internal error: {type(error).__name__}: {said}; run again with --debug and report what it prints")
        return 3


def _damaged_store() -> RetrompiError | None:
    """The damage of a store that this process has opened: it, and no defect of retrompi, may then be the cause of any error."""
    database = sys.modules.get("retrompi.store.database")
    try:
        return next((found for store in list(database.OPENED) if (found := store.find_damage())), None) if database else None
    except Exception:  # the error that led here is to be told in any case
        return None


def _traceback() -> None:
    import traceback

    traceback.print_exc()


def main() -> NoReturn:
    """Entry point of the ``retrompi`` command."""
    code = run()
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _say(f"cannot write: {error.strerror}")
            code = 2
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


if __name__ == "__main__":
    main()
