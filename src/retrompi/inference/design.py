"""Training runs of an emulator: a space-filling design over the priors, simulated by several processes, kept and found again.

    rows = Training(part, seed=1)
    y = rows.at(sobol(dims, 256, seed), progress)      # [256, k], nan where a run did not complete
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from retrompi.base import paths
from retrompi.inference.likelihood import Array
from retrompi.inference.problem import ProblemPart
from retrompi.store.identity import code_version

__all__ = ["WORKERS", "Training", "sobol"]

WORKERS = 2
"""Simulating processes; each has a server of its own."""
_OFTEN = 64
"""Runs after which what is known is written: an interruption loses no more."""
Progress = Callable[[int, int, str], None]


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: each has a simulating process, whose start takes longer than many runs."""
    return ThreadPoolExecutor(max_workers=WORKERS)


def sobol(dims: int, runs: int, seed: int) -> Array:
    """``runs`` points of the unit cube, [runs, dims], by a scrambled Sobol sequence; the same seed gives the same points."""
    from scipy.stats import qmc  # a second, which whoever reads the evidence alone need not wait for

    whole = 1 << max(0, (runs - 1).bit_length())
    found: Array = qmc.Sobol(dims, scramble=True, seed=np.random.default_rng(seed)).random(whole)[:runs]
    return found


class Training:
    """The runs of a part that were simulated before with the same code, and those still to come."""

    def __init__(self, part: ProblemPart) -> None:
        self.part = part
        name = hashlib.sha256(f"{part.key} {code_version()}".encode()).hexdigest()
        self.file = paths.data_dir() / "training" / f"{name[:32]}.npz"
        self.known: dict[bytes, Array] = {}
        with suppress(OSError, ValueError, KeyError, BadZipFile):  # a damaged file is made again
            kept = np.load(self.file)
            if kept["u"].shape[1:] == (len(part.paths),) and kept["y"].shape[1:] == (len(part.observables),):
                self.known = {u.tobytes(): y for u, y in zip(kept["u"], kept["y"], strict=True)}

    def at(self, u: Array, progress: Progress | None = None, done: int = 0, total: int = 0) -> Array:
        """The observables [n, k] at the points ``u`` [n, d], shares of the part's priors. ``progress`` is told ``done`` and more of
        ``total``."""
        points = np.ascontiguousarray(np.asarray(u, dtype=np.float64))
        missing = [row for row in points if row.tobytes() not in self.known]
        for i, (row, y) in enumerate(zip(missing, _pool().map(self.part.simulate, missing), strict=True), 1):
            self.known[row.tobytes()] = y
            if progress is not None:
                progress(done + len(points) - len(missing) + i, total or len(points), self.part.name)
            if i % _OFTEN == 0 or i == len(missing):
                self._write()
        return np.array([self.known[row.tobytes()] for row in points])

    def _write(self) -> None:
        u = np.array([np.frombuffer(k) for k in self.known])
        y = np.array(list(self.known.values()))
        own = self.file.with_name(f"{self.file.stem}.{os.getpid()}.part")
        with suppress(OSError):  # it is a cache: without it everything is simulated again
            Path(self.file.parent).mkdir(parents=True, exist_ok=True)
            with own.open("wb") as out:
                np.savez_compressed(out, u=u, y=y)
            own.replace(self.file)
