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
