"""The code of a paper's folder: ``experiments/KIND.py`` and ``commands/NAME.py``, found by the names of the files.

An experiment is a module as those of `retrompi.papers.experiments` are; a command is a module with a click command named ``command``,
which ``retrompi paper run PAPER NAME`` runs (and ``retrompi paper NAME`` for the papers of the package). A file whose name begins with
"_" is shared by the others: the folder is a package, so ``from ..experiments import _rates`` finds it.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from retrompi.base import paths, untrusted
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec.runtime.users_code import users_code

__all__ = ["module", "names", "running"]


def names(folder: Path, what: str) -> list[str]:
    """The names of a paper's own ``what`` ("experiments" or "commands"); nothing is imported."""
    return sorted(f.stem for f in (folder / what).glob("*.py") if f.stem.isidentifier() and not f.stem.startswith("_"))


def module(folder: Path, what: str, name: str) -> ModuleType:
    """A module of a paper's folder, such as ``module(folder, "experiments", "nas")``; imported again after a file of it has changed.

    Raises UsageError for one that the folder does not have, InputError (file, line) for one that cannot be imported, and for a folder
    that was unpacked from somewhere and is not trusted.
    """
    file = folder / what / f"{name}.py"
    if not file.is_file():
        near = nearest(name, names(folder, what), 20)
        raise UsageError(f"paper '{folder.name}': no '{name[:60]}' in its {what}{near}", code="unknown-name")
    if (root := untrusted.root_of(folder)) is not None:
        raise InputError(f"this paper came packed and its code is not trusted: read it, then remove {root / untrusted.MARK}", file,
                         code="untrusted-code")
    with users_code(folder, "this code of a paper cannot be loaded", any_folder=True, code="broken-code"):
        return importlib.import_module(f"{_package(folder)}.{what}.{name}")


@contextmanager
def running(folder: Path, what: str) -> Iterator[None]:
    """In the body code of a paper's folder runs: what it raises is one line with its file and line, unless the paper is the package's."""
    if folder.parent.resolve() == paths.papers_dir().resolve():
        yield
        return
    with users_code(folder, f"{what} fails", any_folder=True, code="broken-code"):
        yield


def _package(folder: Path) -> str:
    """The name under which a folder is a package, with the state of its files in it."""
    digest = hashlib.sha256(str(folder.resolve()).encode())
    for file in sorted(folder.glob("*/*.py")):
        digest.update(f"{file}{paths.stamp(file)}".encode())
    name = f"retrompi_paper_{digest.hexdigest()[:12]}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name
