"""Runs one stage of the set-up and says how far it is: ``stage.py NAME COMMAND [ARGUMENT ...]``.

On a terminal one line shows the stage, for how long it has run, and what the command said last (of a compilation: ``7 of 20``). In a log a
stage has a line with what it took, and before it a line every 20 s with how far it is. A stage of less than a second is not mentioned.
What the command said is shown if it fails, and its exit code is passed on.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import subprocess
import sys
import time

_STEP = re.compile(r"^\s*\[(\d+)/(\d+)\]")
_NOT_TOLD_S = 1.0
"""A stage that takes less is not mentioned."""
_TOLD_EVERY_S = 20.0
"""In a log."""


def main() -> int:
    """Run the command and tell how far it is; its exit code."""
    name, *command = sys.argv[1:]
    terminal = sys.stdout.isatty()
    begin = time.monotonic()
    said, last, told, next_line = bytearray(), "", False, _TOLD_EVERY_S
    unended = False  # whether the last line of a log has no end yet
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    waiting = selectors.DefaultSelector()
    waiting.register(process.stdout, selectors.EVENT_READ)
    while True:
        if waiting.select(timeout=_NOT_TOLD_S / 2):
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                break
            said += piece
            lines = [line.strip() for line in piece.decode(errors="replace").splitlines() if line.strip()]
            last = next((f"{m[1]} of {m[2]}" for line in reversed(lines) if (m := _STEP.match(line))), lines[-1] if lines else last)
        seconds = time.monotonic() - begin
        if seconds < _NOT_TOLD_S:
            continue
        if terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{f'{name}: {seconds:.0f} s, {last}'[:width]}", end="", flush=True)
        elif not told:
            unended = True
            print(name, end="", flush=True)
        elif seconds >= next_line:
            print(" ...\n" if unended else "", f"  {seconds:.0f} s, {last}"[:150], sep="", flush=True)
            unended, next_line = False, seconds + _TOLD_EVERY_S
        told = True
    code = process.wait()
    if told or code:
        start = "" if unended else "\r\033[K" * terminal + name
        print(f"{start}: {'failed after ' if code else ''}{time.monotonic() - begin:.0f} s", flush=True)
    if code:
        sys.stderr.write(said.decode(errors="replace"))
    return code


if __name__ == "__main__":
    sys.exit(main())
