"""Names that do not say what they name: how many there are, by the syntax tree.

    python packaging/names.py [KIND] [--of CHECKOUT]

`MOST` says how many there may be, and `tests/test_names.py` that there are no more. The rule: a function is a verb with an object
(``read_trace``), or the noun that it returns (``placement``); who reads the call knows what it gives, and who looks for it finds it.

* ``participles``: functions and methods whose whole name is one past participle (``told``, ``_drawn``), which say neither. A property is
  an attribute, where an adjective says what is so (``ended``), and is none. Words that are also the verb's imperative (`VERBS`: ``read``,
  ``put``) are none either, nor those of `STAY`, each with its reason.
* ``room``: identifiers and files with ``room`` in their names, which once meant a platform, the studio's resources, free bytes, columns
  of a terminal, a communicator and a margin. ``classroom`` is one.
* ``classes``: public classes whose names another module gives to a class that means something else. Of one meaning are those of
  `ONE_MEANING`, each with what it is: what is declared and what simulates it, a result and the interface's table of it. A private class is
  its module's alone.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from checkout import ROOT, Place, sources

FOLDERS = ("src/retrompi", "cli", "models")
IRREGULAR = frozenset({
    "begun", "bent", "borne", "bought", "bound", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven", "dug",
    "eaten", "fallen", "fed", "felt", "fled", "flown", "forgotten", "found", "frozen", "given", "gone", "got", "grown", "heard",
    "held", "hidden", "kept", "known", "laid", "led", "left", "lent", "lit", "lost", "made", "meant", "met", "paid", "proven",
    "risen", "said", "seen", "sent", "shaken", "shown", "shrunk", "slid", "sold", "spent", "spoken", "spun", "stood", "struck",
    "stuck", "sung", "sunk", "swept", "taken", "taught", "thought", "thrown", "told", "torn", "understood", "woken", "won", "worn",
    "woven", "written",
})
VERBS = frozenset({"cast", "cut", "hit", "hurt", "let", "put", "quit", "read", "rid", "run", "set", "shed", "shut", "split", "spread"})
"""Participles that are also imperatives: ``put(key, value)`` is a verb."""
JUDGED = "a runtime's file is hashed into its verdicts, which another name would make stale"
STAY: Mapping[tuple[str, str], str] = {
    ("models/craympt/__init__.py", "shared"): JUDGED,
    ("models/winmpich/__init__.py", "shared"): JUDGED,
    ("models/wmpi/__init__.py", "moved"): JUDGED,
    ("src/retrompi/spec/hosts.py", "mapped"): f"runtimes call it: {JUDGED}",
    ("src/retrompi/studio/requests/connections.py", "received"): "waitress calls it by this name",
}
"""(file, name) of participles that stay, and why."""
_SPEC, _RULES, _API = "src/retrompi/spec", "src/retrompi/reference", "src/retrompi/api"
ONE_MEANING: Mapping[str, tuple[frozenset[str], str]] = {
    name: (frozenset(files), what)
    for what, rows in {
        "declared, and simulated by the specification": {
            "Datagram": (f"{_SPEC}/media.py", f"{_RULES}/datagram.py"),
            "Dma": (f"{_SPEC}/media.py", f"{_RULES}/dma.py"),
            "Host": (f"{_SPEC}/host.py", f"{_RULES}/host.py"),
            "Hub": (f"{_SPEC}/machine/topology.py", f"{_RULES}/network.py"),
            "Link": (f"{_SPEC}/machine/link.py", f"{_RULES}/network.py"),
            "OneSided": (f"{_SPEC}/media.py", f"{_RULES}/one_sided.py"),
            "PausingSwitch": (f"{_SPEC}/machine/topology.py", f"{_RULES}/network.py"),
            "Pool": (f"{_SPEC}/media.py", f"{_RULES}/shared_memory.py"),
            "Ring": (f"{_SPEC}/media.py", f"{_RULES}/shared_memory.py"),
            "SampledCurve": (f"{_SPEC}/media.py", f"{_RULES}/curve.py"),
            "Stream": (f"{_SPEC}/media.py", f"{_RULES}/stream.py"),
        },
        "of a simulation, and as it is recorded": {
            "Channel": (f"{_RULES}/channel.py", "src/retrompi/sim/message_path.py"),
            "Process": (f"{_RULES}/channel.py", "src/retrompi/sim/message_path.py", "src/retrompi/sim/timeline/__init__.py"),
        },
        "a result, and the interface's table of it": {
            "BreakEven": ("src/retrompi/studies/search/breakeven.py", f"{_API}/break_even.py"),
            "Comparison": ("src/retrompi/measure/compare/comparison.py", f"{_API}/programs.py"),
            "CriticalPath": ("src/retrompi/sim/critical_path.py", f"{_API}/paths.py"),
            "Execution": ("src/retrompi/measure/launch/execution.py", f"{_API}/programs.py"),
            "Platform": (f"{_SPEC}/platform.py", f"{_API}/parts.py"),
            "Recording": ("src/retrompi/measure/record/assemble.py", f"{_API}/measuring.py"),
            "Tolerance": ("src/retrompi/studies/search/tolerance.py", f"{_API}/tolerance.py"),
        },
        "a request of MPI, of a rank and in a trace": {"Request": (f"{_RULES}/mpi.py", "src/retrompi/traces/tracker.py")},
        "a student's work on a lab, and its row": {"Work": ("src/retrompi/labs/work.py", "src/retrompi/classroom/course/schema.py")},
    }.items()
    for name, files in rows.items()
}
"""Class -> the files that have it, and what it is in all of them."""
NO_PARTICIPLES = frozenset({"bed", "embed", "exceed", "feed", "indeed", "need", "proceed", "red", "seed", "speed", "succeed"})
ROOM = re.compile(r"(?i)(?<!class)room")
C_FILES = (".c", ".h", ".cpp", ".hpp", ".js")
NO_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
"""Texts and comments of C, C++ and JavaScript."""


def _nodes(root: Path) -> Iterator[tuple[str, ast.AST]]:
    for file, text in sources(root, FOLDERS, ".py"):
        for node in ast.walk(ast.parse(text)):
            yield file, node


def is_participle(name: str) -> bool:
    """Whether a function's whole name is a past participle."""
    word = name.strip("_").lower()
    return word not in VERBS | NO_PARTICIPLES and (word in IRREGULAR or re.fullmatch("[a-z]+ed", word) is not None)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(d) for d in node.decorator_list)


def participles(root: Path) -> list[Place]:
    """The functions and methods named by one past participle."""
    return [n for n in all_participles(root) if (n.file, n.what) not in STAY]


def all_participles(root: Path) -> list[Place]:
    """`participles` and those that stay."""
    return [Place(file, n.lineno, n.name) for file, n in _nodes(root)
            if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(n.name) and not _is_property(n)]


def _identifiers(node: ast.AST) -> Iterator[str]:
    """The names that a node itself writes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.keyword(arg=str(name)):
            yield name
        case ast.alias(name=name, asname=other):
            yield from (name, other or "")


def room(root: Path) -> list[Place]:
    """The identifiers and files with ``room`` in their names."""
    found = [Place(file, getattr(n, "lineno", 0), name) for file, n in _nodes(root) for name in _identifiers(n) if ROOM.search(name)]
    for file, text in sources(root, FOLDERS, *C_FILES):
        code = NO_CODE.sub(lambda m: "\n" * m[0].count("\n"), text)
        words = ((i, word) for i, line in enumerate(code.splitlines(), 1) for word in re.findall(r"\w+", line))
        found += [Place(file, i, word) for i, word in words if ROOM.search(word)]
    return found + [Place(file, 0, Path(file).name) for file, _ in sources(root, FOLDERS, ".py", *C_FILES) if ROOM.search(Path(file).stem)]


def classes(root: Path) -> list[Place]:
    """The public classes with a name that several modules give, unless they are all of one meaning."""
    return [one for name, some in same_names(root).items() for one in some
            if not {n.file for n in some} <= ONE_MEANING.get(name, (frozenset(), ""))[0]]


def same_names(root: Path) -> dict[str, list[Place]]:
    """The public classes of each name that several modules give."""
    given: dict[str, list[Place]] = {}
    for file, text in sources(root, FOLDERS, ".py"):
        for n in ast.parse(text).body:
            if isinstance(n, ast.ClassDef) and not n.name.startswith("_"):
                given.setdefault(n.name, []).append(Place(file, n.lineno, n.name))
    return {name: some for name, some in given.items() if len(some) > 1}


KINDS: Mapping[str, Callable[[Path], list[Place]]] = {"participles": participles, "room": room, "classes": classes}
MOST: Mapping[str, int] = {"participles": 0, "room": 0, "classes": 0}
"""How many there may be; a change that renames some lowers it."""


def main() -> None:
    """Prints the names, and how many there are."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("kind", nargs="?", choices=KINDS)
    asked.add_argument("--of", type=Path, default=ROOT, metavar="CHECKOUT")
    given = asked.parse_args()
    for kind in [given.kind] if given.kind else KINDS:
        found = KINDS[kind](given.of)
        print(*sorted(found), f"{kind}: {len(found)} ({len({n.what for n in found})} different)", sep="\n")


if __name__ == "__main__":
    main()
