"""Another compiled engine, and how it takes the place of the installed one for every Python that a command starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

STARTUP = '''\
import importlib.util, sys

class Engine:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, MODULE) if name == "retrompi._engine" else None

sys.meta_path.insert(0, Engine())
'''


def compile_engine(folder: Path, flags: str = "") -> Path:
    """The module of an engine with its assertions, compiled in ``folder`` where anything changed.

    Raises SystemExit with the compiler's messages.
    """
    import pybind11

    commands = (
        ["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Debug", "-DRETROMPI_WERROR=OFF",
         f"-DCMAKE_CXX_FLAGS=-O1 {flags}", f"-Dpybind11_DIR={pybind11.get_cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", folder, "--target", "_engine"],
    )
    for command in commands:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout[-4000:] + done.stderr[-4000:])
    return next(folder.glob("_engine.*.so"))


def environment(module: Path, folder: Path, more: str = "") -> dict[str, str]:
    """Environment variables with which a Python takes ``module`` for the engine; ``more`` is what each of them does at its start as well.

    ``folder`` gets the file that does it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(STARTUP.replace("MODULE", repr(str(module))) + more)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))}
