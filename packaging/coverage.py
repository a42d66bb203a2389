"""Which lines and branches of the engine ran: ``packaging/coverage.py [--programs N] [-- PYTEST ARGUMENTS]``.

The engine is compiled once more with gcov's counters and its assertions (build/coverage; the checkout's build stays as it is). Then either
generated programs of the executable specification run on it, or pytest with the arguments after ``--``, with all processes that it starts.
Counts of earlier runs are dropped first. A table by folder is printed, with ``--details`` one by file and the lines that never ran.

Branches are those that gcov sees without the ones of exceptions. Needs gcovr (``pip install gcovr``).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from other_engine import compile_engine, environment

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/coverage"
ENGINE = ROOT / "src/retrompi/engine"

AT_END = """\
# gcov writes when a process ends by exit(), which _exit() is not: a forked process would lose its counts.
import ctypes, os
os._exit = ctypes.CDLL(None).exit
"""


def counts() -> list[dict[str, Any]]:
    """What gcovr makes of the counts: a row for each file of the engine."""
    report = BUILD / "report.json"
    command = [sys.executable, "-m", "gcovr", "--root", str(ROOT), "--filter", f"{ENGINE}/", "--exclude-throw-branches",
               "--exclude-unreachable-branches", "--gcov-ignore-parse-errors", "--merge-mode-functions=merge-use-line-min",
               "--json", str(report), str(BUILD)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:] + "\n(pip install gcovr)")
    files: list[dict[str, Any]] = json.loads(report.read_text())["files"]
    return files


def row(file: dict[str, Any]) -> tuple[int, int, int, int, list[int]]:
    """Of a file: lines, those that ran, branches, those taken, and the lines that never ran."""
    lines: dict[int, int] = defaultdict(int)
    branches: dict[tuple[int, int], int] = defaultdict(int)
    for line in file["lines"]:
        number = line["line_number"]
        if line.get("gcovr/noncode") or line.get("gcovr/excluded"):
            continue
        lines[number] = max(lines[number], line["count"])
        for at, branch in enumerate(line["branches"]):
            if not branch.get("throw"):
                branches[number, at] = max(branches[number, at], branch["count"])
    never = sorted(number for number, n in lines.items() if not n)
    return len(lines), len(lines) - len(never), len(branches), sum(n > 0 for n in branches.values()), never


def spans(numbers: list[int]) -> str:
    """Numbers in ascending order as spans: 3-5, 9."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number <= found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in found)


def main(arguments: list[str]) -> int:
    """Compile, run, and print the table."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options, tests = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--programs", type=int, default=2000, metavar="N", help="generated programs (default 2000)")
    parser.add_argument("--seed", type=int, help="of the first one (default: a new one)")
    parser.add_argument("--details", action="store_true", help="a row for each file, with the lines that never ran")
    given = parser.parse_args(options)
    module = compile_engine(BUILD, "--coverage -fprofile-update=prefer-atomic")
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    seed = random.SystemRandom().getrandbits(31) if given.seed is None else given.seed
    programs = ["retrompi.reference", "--programs", str(given.programs), "--seed", str(seed)]
    command = ["pytest", "-p", "no:cacheprovider", *tests] if tests else programs
    done = subprocess.run([sys.executable, "-m", *command], env=environment(module, BUILD / "startup", AT_END), cwd=ROOT, check=False)
    tables: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for file in counts():
        path = Path(file["file"]).relative_to(ENGINE.relative_to(ROOT))
        *numbers, never = row(file)
        for name in (path.parts[0], "engine"):
            tables[name] = [a + b for a, b in zip(tables[name], numbers, strict=True)]
        if given.details:
            lines, ran, branches, taken = numbers
            print(f"{path}: {ran} of {lines} lines, {taken} of {branches} branches" + (f"; never: {spans(never)}" if never else ""))
    print("| folder | lines | ran | branches | taken |\n|---|---|---|---|---|")
    for name in sorted(tables, key=lambda name: (name == "engine", name)):
        lines, ran, branches, taken = tables[name]
        print(f"| {name} | {lines} | {ran / max(1, lines):.1%} | {branches} | {taken / max(1, branches):.1%} |")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
