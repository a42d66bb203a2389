"""Checks who imports whom: the contracts of pyproject.toml (import-linter), and that no modules import each other in a circle.

import-linter looks for modules below one folder, and the build maps several folders of the checkout into the package. So they are
brought together first. Imports inside functions and those for type checkers count as well.

A package's own file is loaded with every module below it, which the import graph does not say: `loading_circle` looks for a circle
there, by what is imported when a module is loaded. Without any, each module can be imported alone.
"""

from __future__ import annotations

import ast
import graphlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINT = "from importlinter.cli import lint_imports_command as c; c()"
CIRCLES = """
import grimp, numpy, scipy.sparse.csgraph as csgraph
graph = grimp.build_graph("retrompi", cache_dir=None)
names = sorted(graph.modules)
at = {name: i for i, name in enumerate(names)}
edges = numpy.zeros((len(names), len(names)), bool)
for name in names:
    for imported in graph.find_modules_directly_imported_by(name):
        edges[at[name], at[imported]] = True
count, part = csgraph.connected_components(edges, connection="strong")
for k in range(count):
    if (part == k).sum() > 1:
        print(" ".join(name for name, p in zip(names, part) if p == k))
"""


def assemble(folder: Path) -> Path:
    """The package as it is installed, in ``folder``: its Python files alone."""
    parts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["scikit-build"]["wheel"]["packages"]
    for place, source in parts.items():
        for file in (ROOT / source).rglob("*.py"):
            target = folder / place / file.relative_to(ROOT / source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    (folder / "retrompi" / "_engine.py").touch()
    return folder


def _python(folder: Path, code: str, arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    # -S: an editable installation would put the checkout's own folders before the assembled ones
    paths = f"import sys; sys.path[:0] = [{str(folder)!r}, {sysconfig.get_path('purelib')!r}]\n"
    return subprocess.run([sys.executable, "-S", "-c", paths + code, *arguments], capture_output=True, text=True)


def broken_contracts(folder: Path) -> str:
    """What import-linter says of the assembled package when a contract does not hold; "" when all do."""
    done = _python(folder, LINT, ["--config", str(ROOT / "pyproject.toml"), "--no-cache"])
    return "" if done.returncode == 0 else done.stdout + done.stderr


def circles(folder: Path) -> list[list[str]]:
    """The strongly connected components of the import graph that have more than one module, each sorted."""
    done = _python(folder, CIRCLES)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return [line.split() for line in done.stdout.splitlines()]


def _imports(body: Sequence[ast.stmt], package: str) -> Iterator[str]:
    """What a module imports as it is loaded: neither in functions nor for type checkers. Of ``from A import b``, A and A.b."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            climbed = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(part for part in (climbed, node.module) if part)
            yield from (source, *(f"{source}.{name.name}" for name in node.names))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse, package)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "handlers", "finalbody"):
                yield from _imports(getattr(node, field, ()), package)


def _with_packages(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts) + 1))


def loading_circle(folder: Path) -> list[str]:
    """Modules of the assembled package that have to be loaded before each other; [] if there is no such circle."""
    files = {".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): file for file in folder.rglob("*.py")}
    needs: dict[str, set[str]] = {}
    for name, file in files.items():
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        own = set(_with_packages(name))  # a package's file begins before its modules, which see what it has then
        asked = _imports(ast.parse(file.read_text(encoding="utf-8")).body, package)
        needs[name] = {n for target in asked if target in files for n in _with_packages(target)} - own
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def main() -> int:
    """Say what is wrong; exit code 1 when something is."""
    with tempfile.TemporaryDirectory() as name:
        folder = assemble(Path(name))
        broken, found, loading = broken_contracts(folder), circles(folder), loading_circle(folder)
    print(broken, end="")
    for circle in found:
        print(f"{len(circle)} modules import each other: {', '.join(circle)}")
    if loading:
        print(f"modules that need each other as they are loaded: {', '.join(loading)}")
    return 1 if broken or found or loading else 0


if __name__ == "__main__":
    sys.exit(main())
