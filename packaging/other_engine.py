"""Another compiled engine in the place of the installed one, for every Python that a command starts."""

from __future__ import annotations

import os
from pathlib import Path

STARTUP = '''\
import importlib.util, sys

class Engine:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, MODULE) if name == "retrompi._engine" else None

sys.meta_path.insert(0, Engine())
'''


def environment(module: Path, folder: Path, more: str = "") -> dict[str, str]:
    """Environment variables with which a Python takes ``module`` for the engine; ``more`` is what each of them does at its start as well.

    ``folder`` gets the file that does it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(STARTUP.replace("MODULE", repr(str(module))) + more)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))}
