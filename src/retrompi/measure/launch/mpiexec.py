"""The launcher of MPI programs on this machine: mpiexec of MPICH or Open MPI, and its command line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from retrompi.measure.launch.execution import BackendError
from retrompi.measure.record.run import Launcher, find_launcher

__all__ = ["FAMILIES", "PACKAGES", "TITLES", "command_line", "find_mpiexec"]

FAMILIES = ("mpich", "openmpi")
"""The values of ``--mpi``."""
PACKAGES = {"mpich": ("mpich", "libmpich-dev"), "openmpi": ("openmpi-bin", "libopenmpi-dev"), "smpi": ("libsimgrid-dev", "libsimgrid-dev")}
"""Debian's packages of an MPI: for running, for compiling."""
TITLES = {"mpich": "MPICH", "openmpi": "Open MPI", "smpi": "SimGrid's SMPI"}


def find_mpiexec(family: str) -> Launcher:
    """The launcher for programs of ``family``. Raises BackendError naming the package."""
    kinds = {"mpich": "hydra", "openmpi": "openmpi"}
    tried: Sequence[str] = (f"mpiexec.{family}", f"mpirun.{family}", "mpiexec", "mpirun")
    for name in tried:
        if shutil.which(name) is None:
            continue
        found = find_launcher(name)
        if found is not None and found.kind == kinds.get(family, found.kind):
            return found
    package = PACKAGES.get(family, ("mpich", ""))[0]
    raise BackendError(
        f"no mpiexec of {TITLES.get(family, family)} was found: install {package} (Debian and Ubuntu: apt-get install {package})",
        code="missing-tool",
    )


def command_line(launcher: Launcher, ranks: int, program: Sequence[str], cores: int, threads: int = 0) -> list[str]:
    """The launcher's command line for ``ranks`` on ``cores`` cores with ``threads`` hardware threads in total (0: one per core): each rank
    bound to a core if they fit, else to a thread, else left to the system."""
    unit = "core" if ranks <= cores else "hwthread" if ranks <= threads else ""
    words = [launcher.path]
    if launcher.kind == "openmpi":
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            words.append("--allow-run-as-root")
        # Open MPI takes its slots from a host file or counts cores; the number of ranks is the user's choice.
        words.append("--oversubscribe")
        words += ["--use-hwthread-cpus"] if unit == "hwthread" else []
        words += ["--bind-to", unit, "--map-by", unit] if unit else ["--bind-to", "none"]
    elif launcher.kind == "hydra":
        words += ["-bind-to", unit, "-map-by", unit] if unit else ["-bind-to", "none"]
    return [*words, "-n", str(ranks), *program]
