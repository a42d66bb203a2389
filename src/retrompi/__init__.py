"""retrompi: a simulator of historical MPI environments.

    import retrompi

    curve = retrompi.pingpong("wmpi", mode="shared", set={"wmpi.packet": "1 MiB"})
    curve.frame                      # pandas: size_B, time_us, bandwidth_MBps, repetitions
    curve.plot()                     # a Plotly figure
    curve.anatomy("512 KiB").frame   # where the time of one message goes
    curve.uncertainty(0.9)           # the same curve with its intervals

The public names are those of ``__init__.pyi``. Each is loaded when it is first used: importing the package loads nothing heavy. They are
stable: a change that would break a program is announced by a DeprecationWarning for a minor version, and tests compare the signatures
with those of the last release (docs/api.md). Modules below are the inside.

Each command beside its function (tests/test_api.py writes this table):

    pingpong    pingpong
    replay      replay
    run         run
    compare     compare, compare_runtimes
    startup     - (a table of the models' own words; --json has it)
    explain     message, Curve.anatomy
    why         Curve.path, Run.path, CriticalPath.difference
    timeline    - (writes a file from a stored run)
    fidelity    - (the option fidelity= of pingpong, message and replay)
    diff        - (two results' rows, side by side in pandas)
    sweep       sweep
    study       study
    tornado     tornado
    break-even  break_even
    tolerance   tolerance
    optimise    optimise
    share       - (a table of several jobs at once; --json has it)
    reproduce   reproduce
    validate    verdicts
    claims      claims, claim
    transfer    transfer
    predict     predict
    lmbench     - (a table of a simulated host; --json has it)
    paper       - (makes and checks files; validate and reproduce take its folder)
    crate       - (packs files, and verifies them)
    explore     - (a search of its own without a store; --json has its result)
    trace       record
    smpi        - (writes files for SimGrid)
    measured    import_measured, list_measured, measured_curve
    fit         - (writes a model's folder, whose name pingpong and the others take)
    calibrate   calibrate
    posterior   - (writes the draws beside a fit, which uncertainty() reads)
    models      list_models, model
    platforms   list_platforms, platform
    scenarios   - (lists the names that sweep, tornado and the others take)
    runs        open_store
    studio      - (serves pages)
    lab         - (works in a folder)
    course      - (serves pages, and keeps a class)
    completion  - (of the shell)
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

# Not by lazy_loader: the build imports the package before anything else is installed.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_FROM = {name: module for module, name in re.findall(r"^from (\.[\w.]+) import (\w+) as \2$", _STUB, re.M)}
__all__ = [*_FROM, "__version__"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from retrompi.base.release import version

        return version()
    if name not in _FROM:
        raise AttributeError(f"module 'retrompi' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(_FROM[name], __name__), name)
    return found
