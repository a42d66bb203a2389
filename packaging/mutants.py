"""The engine changed in small ways, and which of the changes nobody notices: ``packaging/mutants.py [N]``.

A mutant is one file of the engine with one change: a comparison, an operator, a number, two statements the other way round, a statement
left out. Its batch alone is compiled, and linked with everything else in build/mutants; sources and build of the checkout stay as they are.
Then a quick set of tests runs: programs of the executable specification, whose answers are the specification's own, the engine's unit
tests, and runs of packaging/picoseconds.py. A mutant that all of them pass is printed with its change: it does the same as the engine, or a
test is missing.

The changes are drawn by a seed, which is printed. Exit code 1: some survive.
"""

from __future__ import annotations

import argparse
import importlib.util
import pickle
import random
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from other_engine import environment

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "src/retrompi/engine"
CHECKOUT = ROOT / "build" / str(sys.implementation.cache_tag)
BUILD = ROOT / "build/mutants"
PARTS = ("channel", "coll", "event", "host", "mpi", "network", "sim")
"""What simulates; the trace's parser and what is recorded or told of a run have tests of their own kind."""

SWAPS = (
    (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "), (" + ", " - "), (" - ", " + "),
    (" * ", " + "), (" / ", " * "), (" && ", " || "), (" || ", " && "), ("true", "false"), ("false", "true"), ("std::min", "std::max"),
    ("std::max", "std::min"), (".front()", ".back()"), (".back()", ".front()"), ("++", "--"), ("push_back", "push_front"), (" += ", " -= "),
    (" -= ", " += "), (" % ", " / "), (" ? ", " ? !"), ("if (", "if (!"),
)
STATEMENT = re.compile(r"^ +(?! |(?:return|co_return|break|continue|using|case|throw|const|auto|static|else|if|for|while)\b)[^{}]*;$")
DECLARATION = re.compile(r"^ +(?! |co_await|co_yield|delete)[\w:<>,]+[&*]? [&*]?\w+(?: =|;|\{|\[|\()")
"""A statement on one line that leaves nothing can be left out, unless it declares something."""
NOWHERE = re.compile(
    r"^(?:#|//|namespace|using|}  // )|static_assert|Algorithm k[A-Z]|\bassert\(|anatomy|critical|timeline|path\.on|profile"
)
"""Lines in which a change is none of what a run's times are: the preprocessor's, what is recorded beside a run and what tells of it."""
OUTSIDE = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|RETROMPI_ASSERT\(.*|throw .*|ConfigError\(.*')
"""The same of a part of a line: words, comments, assertions, messages."""
NUMBER = re.compile(r":\d+:")
SURVIVES = "SURVIVES  "
SKIPPED = ("network/simgrid_wire.cpp", "network/platform_file.cpp", "sim/plan.cpp")


@dataclass(frozen=True)
class Change:
    """One change of one file: ``line`` (from 1) and the next ``lines`` - 1 become ``text``."""

    file: str
    line: int
    lines: int
    text: str
    before: str

    def applied(self, source: str) -> str:
        """The file's text with the change."""
        all_lines = source.split("\n")
        all_lines[self.line - 1 : self.line - 1 + self.lines] = self.text.split("\n") if self.text else []
        return "\n".join(all_lines)

    def __str__(self) -> str:
        def shown(text: str) -> str:
            return "; ".join(line.strip().rstrip(";") for line in text.split("\n")) or "nothing"

        return f"{self.file}:{self.line}: {shown(self.before)}  ->  {shown(self.text)}"


def _can_go(line: str) -> bool:
    return bool(STATEMENT.match(line)) and not DECLARATION.match(line) and not NOWHERE.search(line)


def changes_of(file: str, source: str) -> Iterator[Change]:
    """Every change that is known of a file's text, without the preprocessor's lines and declarations of a line."""
    lines = source.split("\n")
    for at, line in enumerate(lines):
        if NOWHERE.search(line):
            continue
        outside = [m.span() for m in OUTSIDE.finditer(line)]

        def counts(begin: int, spans: list[tuple[int, int]] = outside) -> bool:
            return not any(a <= begin < b for a, b in spans)

        for old, new in SWAPS:
            for m in re.finditer(re.escape(old), line):
                if counts(m.start()) and not (old.isalpha() and re.search(r"\w", line[m.end() : m.end() + 1])):
                    changed = line[: m.start()] + new + line[m.end() :]
                    if old == "if (":  # all of the condition, where it ends on this line
                        if not line.rstrip().endswith(") {") and not line.rstrip().endswith(")"):
                            continue
                        end = line.rindex(")")
                        changed = f"{line[: m.start()]}if (!({line[m.end() : end]}){line[end:]}"
                    yield Change(file, at + 1, 1, changed, line)
        for m in re.finditer(r"(?<![\w.\"'{<])(\d+)(?![\w.\"'])", line):
            if counts(m.start()) and "case " not in line:
                yield Change(file, at + 1, 1, f"{line[: m.start()]}{int(m[1]) + 1}{line[m.end() :]}", line)
        if _can_go(line) and not outside and (at == 0 or lines[at - 1].rstrip().endswith((";", "{", "}"))):
            yield Change(file, at + 1, 1, "", line)
            following = lines[at + 1] if at + 1 < len(lines) else ""
            if _can_go(following) and len(following) - len(following.lstrip()) == len(line) - len(line.lstrip()) and line != following:
                yield Change(file, at + 1, 2, f"{following}\n{line}", f"{line}\n{following}")


def again(log: Path, files: list[Path]) -> list[Change]:
    """The changes that survived, by what an earlier run printed, in the engine as it is now; those that it does not have any more are left
    out."""
    known: dict[str, list[Change]] = {}
    for path in files:
        for change in changes_of(str(path.relative_to(ENGINE)), path.read_text()):
            known.setdefault(NUMBER.sub(":", str(change)), []).append(change)
    found = []
    for line in log.read_text().splitlines():
        if SURVIVES not in line:
            continue
        told = line.partition(SURVIVES)[2].strip()
        at = int(NUMBER.search(told)[0].strip(":"))  # type: ignore[index]
        found += sorted(known.get(NUMBER.sub(":", told), []), key=lambda change: abs(change.line - at))[:1]
    return found


def drawn(rng: random.Random, files: list[Path], wanted: int) -> list[Change]:
    """As many different changes, each of a file that is drawn first, by its length, then of a place in it."""
    known = {path: list(changes_of(str(path.relative_to(ENGINE)), path.read_text())) for path in files}
    known = {path: changes for path, changes in known.items() if changes}
    chosen: dict[Change, None] = {}
    while len(chosen) < min(wanted, sum(map(len, known.values()))):
        path = rng.choices(list(known), [len(changes) for changes in known.values()])[0]
        chosen[rng.choice(known[path])] = None
    return list(chosen)


# ------------------------------------------------------------------------------------------------------------------------- the build


def _ran(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)


class Build:
    """The checkout's build. A mutant is one of its compilations once more, of a changed file, and the two programs linked with that."""

    def __init__(self) -> None:
        done = _ran("cmake", "--build", CHECKOUT, "--target", "_engine", "engine_unit")
        if done.returncode:
            raise SystemExit(f"make setup unit first:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        lines = _ran("ninja", "-C", CHECKOUT, "-t", "commands", "_engine", "engine_unit").stdout.splitlines()
        commands = [shlex.split(line.removeprefix(": && ").partition(" && :")[0]) for line in lines]
        commands = [command for command in commands if "-o" in command]
        self.compilations = [command for command in commands if "-c" in command]
        self.links = [
            command for command in commands if "-c" not in command and _after(command, "-o").startswith(("_engine.", "engine_unit"))
        ]
        self.module, self.unit = sorted((CHECKOUT / _after(link, "-o") for link in self.links), key=lambda path: path.name == "engine_unit")

    def mutant(self, change: Change, folder: Path) -> str:
        """Compiles and links a changed engine into a folder; "" or why that is impossible."""
        path = ENGINE / change.file
        folder.mkdir(parents=True, exist_ok=True)
        source, batch, made = folder / path.name, folder / "batch.cxx", folder / "mutant.o"
        source.write_text(change.applied(path.read_text()))
        # Files are compiled in batches that include them; one alone is a batch of its own.
        include = f'#include "{path}"'
        command = next(c for c in self.compilations if _after(c, "-c") == str(path) or include in Path(_after(c, "-c")).read_text())
        text = Path(_after(command, "-c")).read_text() if _after(command, "-c") != str(path) else include
        batch.write_text(text.replace(include, f'#include "{source}"'))
        replaced = {_after(command, "-c"): str(batch), _after(command, "-o"): str(made)}
        commands = [[*(replaced.get(part, part) for part in command), "-w"]]
        for link in self.links:
            output = {_after(link, "-o"): str(folder / Path(_after(link, "-o")).name)}
            commands.append([(replaced | output).get(part, part) for part in link])
        for each in commands:
            done = _ran(*each, cwd=CHECKOUT)
            if done.returncode:
                return done.stderr[-300:] or "no"
        return ""


def _after(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


# --------------------------------------------------------------------------------------------------------------------- the quick set


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    from retrompi.reference.compare import COUNTERS

    names = ("outcome", "detail", "time_ps", "per_rank", "marks", "calls", "messages_of", "waits", "traffic", *COUNTERS)
    return {name: result[name] for name in names}


def questions(programs: int, runs: int, first: int) -> list[dict[str, Any]]:
    """Compiled questions with their answers: generated programs by the specification, runs of picoseconds.py by the engine as it is."""
    from picoseconds import TRACES

    from retrompi.base.errors import RetrompiError
    from retrompi.reference import NotCovered
    from retrompi.reference.compare import by_engine, compare_rows
    from retrompi.reference.programs import draw_program
    from retrompi.sim.resolved import Resolved
    from retrompi.sim.simulate import engine_rows
    from retrompi.spec import registry
    from retrompi.spec.question import Question, Replay

    found: list[dict[str, Any]] = []
    seed = first
    while len(found) < programs:
        program = draw_program(seed)
        seed += 1
        try:
            rows, trace = program.rows()
            _, rule, what = compare_rows(rows, trace)
        except (RetrompiError, NotCovered):
            continue
        if what:
            raise SystemExit(f"program {seed - 1} differs before anything is changed: {what}")
        found.append({"name": f"program {seed - 1}", "rows": rows, "trace": trace.dump(), "answer": rule})
    pairs = [(m, p, t) for m in registry.model_names() for p in registry.platform_names() for t in TRACES]
    for model, platform, trace in pairs[:: max(1, len(pairs) // (2 * runs))]:  # a half of the pairs does not fit
        try:
            asked = Resolved.of(Question(model, platform, Replay(TRACES[trace]), idle_overrides=True))
            rows = engine_rows(asked)
            answer = _kept(by_engine(rows, asked.trace))
        except RetrompiError:
            continue
        found.append({"name": f"{model} {platform} {trace}", "rows": rows, "trace": asked.trace.dump(), "answer": answer})
    return found


def _load(module: Path) -> None:
    """Puts a module in the place of the installed engine."""
    spec = importlib.util.spec_from_file_location("retrompi._engine", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["retrompi._engine"] = loaded
    spec.loader.exec_module(loaded)


def first_wrong(asked: list[dict[str, Any]]) -> str:
    """The first question that the loaded engine answers otherwise, and how; "" for none."""
    from retrompi.reference.compare import by_engine, difference
    from retrompi.traces import Trace

    for question in asked:
        try:
            what = difference(by_engine(question["rows"], Trace.load(question["trace"])), question["answer"])
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
        if what:
            return f"{question['name']}: {what}"
    return ""


def noticed(module: Path, unit: Path, asked: Path, suite: list[str], seconds: float) -> str:
    """Who notices that an engine is not the one that it should be; "" for nobody."""
    here = environment(module, BUILD / "startup")
    ask = [
        ("questions", [sys.executable, __file__, "--answer", module, "--questions", asked], None),
        ("unit tests", [unit, "--gtest_brief=1"], None),
        ("suite", [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no", *suite], here),
    ]
    for name, command, variables in ask if suite else ask[:2]:
        try:
            done = _ran(*command, timeout=seconds, env=variables, cwd=ROOT)
        except subprocess.TimeoutExpired:
            return f"{name}: no end"
        if done.returncode:
            said = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()
            failed = [line for line in said if "FAILED" in line or "difference" in line] or said
            return f"{name}: {failed[-1][:200] if failed else f'ended by signal {-done.returncode}'}"
    return ""


def main(arguments: list[str]) -> int:
    """Draw mutants, build and ask each, and print what became of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("mutants", nargs="?", type=int, default=300, metavar="N")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--under", default="", metavar="PATH", help="only files whose path in engine/ begins so")
    parser.add_argument("--programs", type=int, default=200, help="of the specification")
    parser.add_argument("--runs", type=int, default=60, help="of picoseconds.py")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mutant after so many")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--questions", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--suite", nargs="+", default=[], metavar="ARG", help="and pytest with these arguments")
    parser.add_argument("--again", type=Path, metavar="FILE", help="those that survived an earlier run, whose output this is")
    given = parser.parse_args(arguments)
    if given.answer:
        _load(given.answer)
        wrong = first_wrong(pickle.loads(given.questions.read_bytes()))
        print(wrong)
        return 1 if wrong else 0
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    print(f"mutants of seed {seed}", flush=True)
    build = Build()
    BUILD.mkdir(parents=True, exist_ok=True)
    asked = BUILD / "questions.pickle"
    asked.write_bytes(pickle.dumps(questions(given.programs, given.runs, seed)))
    begin = time.monotonic()
    if told := noticed(build.module, build.unit, asked, given.suite, 3600):
        raise SystemExit(f"the engine as it is does not pass: {told}")
    most = 20 + 10 * (time.monotonic() - begin)
    every = {str(path.relative_to(ENGINE)): path for part in PARTS for path in sorted((ENGINE / part).glob("*.cpp"))}
    files = [path for name, path in every.items() if name.startswith(given.under) and name not in SKIPPED]
    tally: Counter[str] = Counter()
    changes = again(given.again, files) if given.again else drawn(random.Random(seed), files, given.mutants)
    for number, change in enumerate(changes):
        if time.monotonic() - begin > given.seconds:
            break
        folder = BUILD / "mutant"
        if build.mutant(change, folder):
            tally["does not compile"] += 1
            continue
        told = noticed(folder / build.module.name, folder / build.unit.name, asked, given.suite, most)
        tally[told.partition(":")[0] or "survives"] += 1
        print(f"{number}: {SURVIVES if not told else ''}{change}{f'  [{told}]' if told else ''}", flush=True)
    print(", ".join(f"{what} {n}" for what, n in sorted(tally.items())))
    return 1 if tally["survives"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
