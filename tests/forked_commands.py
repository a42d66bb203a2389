"""``retrompi COMMAND`` at the price of a fork: one process has imported the commands, and forks for each that is asked for.

A command of the documentation simulates for tenths of a second; to start Python and to import what it uses takes longer. The fork is in the
state of a process that has just imported, with its own folder, environment and files, and ends as a program ends.

Run as a program, this file is that process: it reads a line of JSON for each command and answers with a line, the exit code.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import IO, NoReturn

__all__ = ["Forked", "plain_words"]

PACKAGES = ("cli", "convert", "papers", "render", "sim", "store", "store.migrations.versions", "studies", "traces")
"""Whose modules are imported beforehand: what most commands use. The studio's, SciPy and the like are imported by those that use them."""
TOO_LONG = 124
"""The exit code of a command that was killed after its time, as of timeout(1)."""


class Forked:
    """The process that forks, started with the first command."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, words: list[str], folder: Path, environment: dict[str, str], printed: Path, seconds: float = 600.0) -> int:
        """The exit code of ``retrompi WORDS`` in ``folder``; what it prints, on both streams, is in the file ``printed``."""
        if self._process is None:
            self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"words": words, "folder": str(folder), "environment": environment, "printed": str(printed), "seconds": seconds}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


def plain_words(text: str) -> list[str] | None:
    """The words after ``retrompi`` of a command line that means the same without a shell; None if it needs one."""
    unquoted = re.sub(r"'[^']*'|\"[^\"$`\\]*\"", "", text)
    if re.search(r"[|&;<>()$`\\*?\[\]{}~#!\n]", unquoted) or not text.startswith("retrompi "):
        return None
    return shlex.split(text)[1:]


def _import_commands() -> None:
    from importlib import import_module
    from pkgutil import iter_modules

    for name in PACKAGES:
        package = import_module(f"retrompi.{name}")
        for module in iter_modules(package.__path__):
            if f"{name}.{module.name}" not in ("cli.studio", "cli.course", "cli.course_lti", "cli.course_export"):
                import_module(f"retrompi.{name}.{module.name}")


def _command(asked: dict[str, object], printed: IO[bytes]) -> NoReturn:
    """In the fork: become the command, and end as it ends, but for the interpreter's memory: to give it back would cost half a second."""
    os.setpgid(0, 0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number in (1, 2):
        os.dup2(printed.fileno(), number)
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[call-overload]
    os.chdir(str(asked["folder"]))
    sys.argv = ["retrompi", *asked["words"]]  # type: ignore[misc]
    from retrompi.cli.main import main

    code: object = 3
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _serve() -> int:
    _import_commands()
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        with open(asked["printed"], "wb") as printed:
            child = os.fork()
            if child == 0:
                _command(asked, printed)
        ended = os.pidfd_open(child)
        in_time, _, _ = select.select([ended], [], [], asked["seconds"])
        os.close(ended)
        if not in_time:
            os.killpg(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(TOO_LONG if not in_time else status if status >= 0 else 128 - status, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(_serve())
