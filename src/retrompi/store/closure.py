"""The modules that determine a result: the transitive imports of the simulation, found by static analysis.

A change of any of them may change a result; a change of anything else cannot. The code version of
stored runs therefore covers these files only: a changed page of the studio or table of the command line invalidates no run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["ENTRIES", "imports_of", "modules"]

PACKAGE = "retrompi"
ENTRIES = ("retrompi.sim.simulate", "retrompi.sim.worker", "retrompi.sim.loop_rates", "retrompi.sim.fitted", "retrompi.spec.media")
"""Entry modules of a run: the simulation and its process, the conversion of results to rows, and the base of models."""


def _file(name: str, root: Path) -> Path | None:
    """The source file of a module of the package in ``root``; None for a name that is not a module."""
    place = root.joinpath(*name.split(".")[1:])
    for file in (place / "__init__.py", place.with_suffix(".py")):
        if file.is_file():
            return file
    return None


def _statements(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import in the code, including those in functions, except under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _statements(node)


def imports_of(name: str, file: Path, root: Path) -> set[str]:
    """The modules of the package that the module ``name`` in ``file`` imports."""
    found: set[str] = set()
    for node in _statements(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        else:
            base = node.module or ""
            if node.level:
                package = name if file.name == "__init__.py" else name.rpartition(".")[0]
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            wanted = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        found |= {w for w in wanted if w.partition(".")[0] == PACKAGE and _file(w, root) is not None}
    return found


def modules(root: Path, entries: Iterable[str] = ENTRIES) -> dict[str, Path]:
    """Name -> file of the entries and of all that they import, and the packages that contain them; sorted by name.

    ``root`` is the folder of the package. Raises LookupError for an entry that is not a module (it has moved).
    """
    found: dict[str, Path] = {}
    left = list(entries)
    while left:
        name = left.pop()
        if name in found:
            continue
        file = _file(name, root)
        if file is None:
            raise LookupError(f"no module {name} in {root}")
        found[name] = file
        left += imports_of(name, file, root)
        if "." in name:
            left.append(name.rpartition(".")[0])
    return dict(sorted(found.items()))
