"""How many places state the same thing: what has to be found and changed when one more of it is added.

    python packaging/places.py [KIND] [--of CHECKOUT]

A kind is a function that finds its places in a checkout (`KINDS`); `MOST` says how many there may be, and `tests/test_places.py` that
there are no more. A place of ``result`` is a list of a run's result fields: in Python a tuple, list, set, dict, call or class body, in
C++ neighbouring lines, that names at least `SEVERAL` fields of one declaration of `retrompi.spec.declare.result`; of ``question`` likewise,
in Python, of `retrompi.spec.question`. A place of ``papers`` names in the code of the package or of its commands what should lie in a
folder: a text that is the name of a runtime, the key of a paper, a claim or an experiment of its own; or it is a module that a paper's
folder has (or had to get: the names are those of this checkout, whatever ``--of`` says). Docstrings, whose examples name some, are none,
nor are ``mpich`` and ``openmpi`` in ``measure``, ``labs`` and ``this_machine``, where they are libraries of today. A place of ``link`` is
a line that names a kind of link, or, outside of the engine's network, which is how they behave, one of their layouts. The declarations
themselves, migrations, which say how a store was once, and the executable specification, which shares nothing with the engine on purpose,
are none.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from checkout import ROOT, Place, sources

from retrompi.base.paths import papers_dir
from retrompi.papers.statements import own_code
from retrompi.papers.statements.claims import load
from retrompi.papers.statements.claims import papers as keys
from retrompi.spec import registry
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import Counters, PointRow, RankRow, Totals, TrafficRow, WaitRow, outputs
from retrompi.spec.machine.topology import KINDS as LINK_KINDS
from retrompi.spec.machine.topology import PLATFORM_FILE
from retrompi.spec.question import OPTIONS

FOLDERS = ("src/retrompi", "cli")
SEVERAL = 3
"""So many names of one declaration are no coincidence."""


def stated(root: Path, *endings: str) -> Iterator[tuple[str, str]]:
    """(path from the root, text) of the package's and the commands' files with these endings, but for those that are none of the places."""
    for file, text in sources(root, FOLDERS, *endings):
        if not {"migrations", "reference"} & set(Path(file).parts):
            yield file, text


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a literal, a call or a class body lists itself; of a pair in it, the first."""
    match node:
        case ast.Tuple(elts=all_) | ast.List(elts=all_) | ast.Set(elts=all_):
            given = [e.elts[0] if isinstance(e, ast.Tuple) and e.elts else e for e in all_]
            yield from (e.value for e in given if isinstance(e, ast.Constant) and isinstance(e.value, str))
            calls = [e.args[0] for e in given if isinstance(e, ast.Call) and e.args]
            yield from (a.value for a in calls if isinstance(a, ast.Constant) and isinstance(a.value, str))
        case ast.Dict(keys=keys):
            yield from (k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
        case ast.Call(keywords=words):
            yield from (w.arg for w in words if w.arg)
        case ast.ClassDef(body=body):
            yield from (s.target.id for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name))


def lists_in_python(root: Path, names: Collection[str], title: str) -> Iterator[Place]:
    """The Python constructs that list at least `SEVERAL` of the names."""
    for file, text in stated(root, ".py"):
        if sum(name in text for name in names) < SEVERAL:
            continue
        for node in ast.walk(ast.parse(text)):
            found = [n for n in dict.fromkeys(_names(node)) if n in names]
            if len(found) >= SEVERAL:
                yield Place(file, getattr(node, "lineno", 0), f"{title}: {', '.join(found)}")


def lists_in_cpp(root: Path, names: Collection[str], title: str) -> Iterator[Place]:
    """The neighbouring lines of C++ that name at least `SEVERAL` of the names as members or as keys."""
    named = re.compile(r'(?:(?<=\.|")|(?<=->)|(?<=::)|(?<=\bPs )|(?<=\bint64_t )|(?<=, ))(' + "|".join(names) + r')(?=["; ,)=}])')
    for file, text in stated(root, ".cpp", ".hpp"):
        begun, last, found = 0, -2, dict[str, None]()
        for number, line in enumerate([*text.splitlines(), "", "", ""], 1):
            here = named.findall(line.partition("//")[0])
            if here and number - last <= 2:
                found |= dict.fromkeys(here)
            elif here or number - last == 3:
                if len(found) >= SEVERAL:
                    yield Place(file, begun, f"{title}: {', '.join(found)}")
                begun, found = number, dict.fromkeys(here)
            last = number if here else last


def result(root: Path) -> list[Place]:
    """The lists of a run's result fields."""
    rows = (Counters, RankRow, TrafficRow, WaitRow, PointRow)
    declared = {cls.__name__: {n: o for n, o in outputs(cls).items() if o.is_number} for cls in rows}
    declared["Counters"] |= outputs(Totals)
    found: list[Place] = []
    for title, fields in declared.items():
        found += lists_in_python(root, fields, title)
        members = {name for o in fields.values() for name in (o.member, o.key)}
        if title == "RankRow":
            members |= {"sends", "receives"}  # as the engine called them before its struct was made of the declaration
        found += lists_in_cpp(root, members, title)
    return sorted(p for p in set(found) if p.file != "src/retrompi/spec/declare/result.py")


def outcome(root: Path) -> list[Place]:
    """The words for how a run ends, written as text where `Outcome` has them: compared, assigned to an ``outcome`` or listed."""
    words = "|".join(Outcome)
    said = re.compile(rf'(?:[=!]= |outcome"?(?:: str)?(?:: | = |=)|outcome", |return |close\(p, |stop\(|abort_run\()"({words})"')
    listed = re.compile(rf'"({words})"[^"\n]*"({words})"')
    found = []
    for file, text in stated(root, ".py", ".cpp", ".hpp"):
        code = (line.split("  # ")[0] for line in text.splitlines())
        found += [Place(file, i, m[0]) for i, line in enumerate(code, 1) for m in [said.search(line) or listed.search(line)] if m]
    return [p for p in found if p.file != "src/retrompi/spec/declare/outcome.py"]


def question(root: Path) -> list[Place]:
    """The lists of what users may say of a run besides runtime, machine, placement and overrides, by keys or by the names of fields."""
    own = {key: f.name for key, f in OPTIONS.items() if key not in ("model", "platform", "mode", "set")}
    found = lists_in_python(root, {*own, *own.values()}, "Question")
    return sorted(p for p in set(found) if p.file != "src/retrompi/spec/question.py")


def _texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module, its docstrings left out."""
    told = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in told)


def papers(root: Path) -> list[Place]:
    """What is said in the code of one paper, one of its experiments or one runtime; and the modules that belong to one paper's code."""
    own = {name for key in keys() for name in own_code.names(papers_dir() / key, "experiments")} - _OTHER_THINGS
    names = dict.fromkeys(own, "experiment") | dict.fromkeys(registry.shipped_models(), "runtime") | dict.fromkeys(keys(), "paper")
    names |= dict.fromkeys((c.id for c in load()), "claim")
    found = []
    for file, text in stated(root, ".py"):
        today = file.startswith(("src/retrompi/measure/", "src/retrompi/labs/", "cli/this_machine"))
        for node in _texts(ast.parse(text)):
            name = re.sub(r"^([\w-]+):[\w-]+$", r"\1", str(node.value))  # a variant is its runtime's
            if name in names and not (today and name in ("mpich", "openmpi")):
                found.append(Place(file, node.lineno, f"{names[name]}: {node.value}"))
    code = {file.stem.strip("_") for file in papers_dir().glob("*/*/*.py")}
    places = (root / folder for folder in ("src/retrompi/papers", "cli"))
    found += [Place(f.relative_to(root).as_posix(), 1, "module") for place in places for f in place.rglob("*.py") if f.stem in code]
    return sorted(found)


_OTHER_THINGS = {"function", "replication", "rinf1"}
"""Experiments whose name is that of something else as well: a word, and the program that the package's generator writes."""


def link(root: Path) -> list[Place]:
    """The lines that know a kind of link; ``switch`` is another word too, and is meant where the line says so."""
    named = re.compile(rf"""["']({"|".join({*LINK_KINDS, PLATFORM_FILE} - {"switch"})})["']|kind.*["']switch["']|["']switch["'].*kind""")
    found = []
    for file, text in stated(root, ".py", ".cpp", ".hpp"):
        layouts = not file.startswith("src/retrompi/engine/network/")
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("  # ")[0].partition("//")[0]
            if named.search(code) or (layouts and re.search(r"\bLinkLayout(\.|::)\w", code)):
                found.append(Place(file, number, line.strip()))
    return [p for p in found if p.file != "src/retrompi/spec/machine/topology.py"]


KINDS: Mapping[str, Callable[[Path], list[Place]]] = {
    "question": question, "result": result, "outcome": outcome, "papers": papers, "link": link,
}
MOST: Mapping[str, int] = {"question": 22, "result": 30, "outcome": 9, "papers": 4, "link": 6}
"""How many places there may be; a change that removes some lowers it."""


def main() -> None:
    """Prints the places, and how many there are."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("kind", nargs="?", choices=KINDS)
    asked.add_argument("--of", type=Path, default=ROOT, metavar="CHECKOUT")
    given = asked.parse_args()
    for kind in [given.kind] if given.kind else KINDS:
        found = KINDS[kind](given.of)
        print(*found, f"{kind}: {len(found)} places in {len({p.file for p in found})} files", sep="\n")


if __name__ == "__main__":
    main()
