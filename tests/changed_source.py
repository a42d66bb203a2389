"""A copy of the package with the changes that a page of the documentation makes to its source, and the engine built there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from doc_pages import ROOT, blocks

from retrompi import _engine

__all__ = ["build", "changed_copy", "python"]

DATA = ("models", "platforms", "scenarios", "validate", "cli")


def _changed(text: str, diff: str, page: str) -> str:
    """``text`` with a block of kind diff: its lines without a + are there once, and give way to those without a -."""
    lines = diff.rstrip("\n").split("\n")
    old = "\n".join(line[1:] for line in lines if line[:1] != "+") + "\n"
    assert text.count(old) == 1, f"{page}: not in the source, or not once:\n{old}"
    return text.replace(old, "\n".join(line[1:] for line in lines if line[:1] != "-") + "\n")


def changed_copy(top: Path, *pages: str) -> Path:
    """A copy of the package, laid out as it is installed, with the pages' changes; the pages' other files beside it."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "src" / "retrompi", top / "retrompi", ignore=ignored)
    for name in DATA:
        shutil.copytree(ROOT / name, top / "retrompi" / name, ignore=ignored)
    shutil.copy(_engine.__file__, top / "retrompi")  # without the changes, until it is built with them
    # An editable installation would find its own source first.
    hooks = "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if 'Redirecting' not in type(f).__name__]\n"
    (top / "sitecustomize.py").write_text(hooks, encoding="utf-8")
    for page, block in [(name, block) for name in pages for block in blocks(name)]:
        path = top / block.title.removeprefix("src/")
        if block.kind == "diff":
            path = top / "retrompi" / block.title.removeprefix("src/retrompi/")
            path.write_text(_changed(path.read_text(encoding="utf-8"), block.text, page), encoding="utf-8")
        elif block.title:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
    return top


def python(top: Path, code: str) -> Any:
    """What ``code`` prints as JSON, run with the copy in place of the installed package; so are the workers that it starts."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=top, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(top), "XDG_DATA_HOME": str(top / "data")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def build(top: Path) -> None:
    """The extension of the copy, not optimised; one header for all files is compiled first, which halves the time."""
    pybind11 = pytest.importorskip("pybind11")
    engine, out = top / "retrompi" / "engine", top / "build"
    (out / "generated").mkdir(parents=True)
    header = str(out / "generated" / "specs.hpp")
    python(top, f"from pathlib import Path; from retrompi.spec.compiled import cpp; cpp.write(Path({header!r})); print(0)")
    root = os.environ.get("SIMGRID_ROOT")
    simgrid = [f"-I{root}/include"] if root else []
    linked = [f"-L{root}/lib", f"-Wl,-rpath,{root}/lib"] if root else []
    cxx = os.environ.get("CXX", "c++")
    flags = [cxx, "-std=c++20", "-O0", "-fPIC", "-fvisibility=hidden", f"-I{engine}", f"-I{out}", *simgrid]
    include = [f"-I{pybind11.get_include()}", f"-I{sysconfig.get_path('include')}"]

    def run(command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]

    (out / "all.hpp").write_text('#include "sim/sim.hpp"\n', encoding="utf-8")
    run([*flags, "-x", "c++-header", str(out / "all.hpp"), "-o", str(out / "all.hpp.gch")])
    sources = [f for f in sorted(engine.glob("*/*.cpp")) if not f.name.startswith("fuzz_")]
    objects = [out / f"{f.parent.name}_{f.stem}.o" for f in sources]

    def compiled(source: Path, target: Path) -> None:
        more = include if source.parent.name == "bind" else ["-include", str(out / "all.hpp")]
        run([*flags, *more, "-c", str(source), "-o", str(target)])

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for task in [pool.submit(compiled, s, o) for s, o in zip(sources, objects, strict=True)]:
            task.result()
    name = f"_engine{sysconfig.get_config_var('EXT_SUFFIX')}"
    run([cxx, "-shared", *map(str, objects), *linked, "-lsimgrid", "-o", str(top / "retrompi" / name)])
