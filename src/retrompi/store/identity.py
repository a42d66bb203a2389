"""Identity of a run: one hash over everything that can change its result."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from retrompi.base.cache import cache_dir
from retrompi.base.release import version
from retrompi.sim.resolved import Resolved
from retrompi.spec.conditions.network_model import NATIVE
from retrompi.spec.question import Question, canonical_parts, hash_of_parts
from retrompi.store.closure import modules

__all__ = ["RunSpec", "code_version", "how_stopped", "specification", "stopped_at"]


_ONE_AT_A_TIME = threading.Lock()
"""Python 3.11 cannot parse in two threads at once (SystemError: AST constructor recursion depth mismatch)."""


def code_version() -> str:
    """``<version>+<8 hex digits>`` over the code that can change a result: the engine, and every module that a simulation imports.

    The digits distinguish states of a checkout, where the code changes under the same version.
    """
    with _ONE_AT_A_TIME:
        return _code_version()


@lru_cache(maxsize=1)
def _code_version() -> str:
    root = Path(__file__).parents[1]
    try:
        engine = importlib.util.find_spec("retrompi._engine")
    except (ImportError, ValueError):
        engine = None
    own = Path(engine.origin) if engine is not None and engine.origin else None
    return f"{version()}+{code_digest(root, own, cache_dir('code'))[:8]}"


_SETTLED = 2e9
"""Nanoseconds after which another change of a file has another time stamp, on every file system."""


def code_digest(root: Path, engine: Path | None, cache: Path) -> str:
    """`digest` of the modules of the package in ``root`` that determine a result, and of the compiled engine.

    Parsing the modules takes longer than many a question, so the answer is kept in the folder ``cache`` under the stamps (size, inode,
    times of modification and change, in ns) of every source file of the package: a file that is changed, added or removed makes it
    anew. What has changed within the last two seconds could change again under the same stamp, and is not kept.
    """
    stamps, newest = _stamps(root, engine)
    kept = cache / hashlib.sha256(stamps.encode()).hexdigest()
    with contextlib.suppress(OSError, ValueError):
        found = kept.read_text(encoding="ascii")
        if re.fullmatch("[0-9a-f]{64}", found):
            return found
    files = modules(root)
    if engine is not None:
        files["retrompi._engine"] = engine
    found = digest(files)
    if newest + _SETTLED < time.time_ns() and _stamps(root, engine)[0] == stamps:
        with contextlib.suppress(OSError):  # a folder that cannot be written costs time, nothing else
            cache.mkdir(parents=True, exist_ok=True)
            made = kept.with_name(f"{kept.name}.{os.getpid()}")
            made.write_text(found, encoding="ascii")
            made.replace(kept)
    return found


def _stamps(root: Path, engine: Path | None) -> tuple[str, int]:
    """The stamps of all source files below ``root`` and of the engine, and the newest of their times."""
    lines, newest = [], 0
    found = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")]
    for file in sorted([*found, *([str(engine)] if engine else [])]):
        s = os.stat(file)
        lines.append(f"{file}\0{s.st_size} {s.st_ino} {s.st_mtime_ns} {s.st_ctime_ns}")
        newest = max(newest, s.st_mtime_ns, s.st_ctime_ns)
    return "\n".join(lines), newest


def digest(files: Mapping[str, Path]) -> str:
    """SHA-256 over the names and contents of modules (name -> file)."""
    found = hashlib.sha256()
    for name, file in files.items():
        found.update(name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


_EVENTS_REACHED = "the bound of {} events is reached"


def stopped_at(events: int) -> str:
    """`RunSpec.stopped` of a run that a bound on events has ended."""
    return _EVENTS_REACHED.format(events)


def how_stopped(detail: str) -> str:
    """`RunSpec.stopped` of a run that a bound has ended, from what it says of that: of a bound on events the bound alone, since it ends the
    run at the same place each time."""
    said = detail.partition("; ")[0]
    return said if said.endswith(" events is reached") else detail


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a run. ``parameters`` are the resolved values in base units, overrides included."""

    kind: str
    model: str
    model_hash: str
    platform: str
    platform_hash: str
    mode: str
    parameters: Mapping[str, float | str]
    overrides: Mapping[str, str]
    seed: int
    fidelity: str
    trace: str
    trace_hash: str
    scenario: str
    scenario_hash: str
    code_version: str
    network: str = NATIVE
    stopped: str = ""
    """How a bound ended the simulation (outcome ``limit``). Such a run is no answer to its question: it is stored under an identity
    of its own, so that it can be looked at and is never found when the question is asked again (`stopped_at`: unless within the same
    bound on events)."""
    question: Mapping[str, Any] | None = None
    """`Question.row` of what was asked; None for a measurement and an import."""

    @cached_property
    def identity(self) -> str:
        """The run's identity in the store: SHA-256 over every field except names of files and the question as it was written."""
        return hash_of_parts(self._parts)

    @cached_property
    def _parts(self) -> dict[str, str]:
        # Names are labels: a platform copied under another name gives the same results and the same hash.
        labels = ("platform", "trace", "scenario", "question", *(() if self.stopped else ("stopped",)))
        return canonical_parts({f.name: getattr(self, f.name) for f in fields(self) if f.name not in labels})

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_parts"}  # a worker sends it with its result

    def with_seed(self, q: Question) -> RunSpec:
        """The specification of the same run with another seed, and from another scenario, as of ``q``."""
        changed: dict[str, Any] = {"seed": q.seed, "scenario_hash": q.asked.hash}
        question = {**(self.question or {}), "seed": q.seed, "asked": {"scenario": q.asked.scenario, "hash": q.asked.hash}}
        found = replace(self, **changed, question=question)
        found.__dict__["_parts"] = {**self._parts, **canonical_parts(changed)}
        return found


def specification(question: Question | Resolved, kind: str = "") -> RunSpec:
    """The specification under which a run is stored. ``kind`` defaults to that of the question's workload.

    Raises what `Resolved.of` raises: UsageError for an unknown name, key or unit.
    """
    asked = Resolved.of(question)
    q = asked.question
    first = asked.once(f"specification {kind}", lambda: _specification(asked, kind))
    return first if (first.seed, first.scenario_hash) == (q.seed, q.asked.hash) else first.with_seed(q)


def _specification(asked: Resolved, kind: str) -> RunSpec:
    q = asked.question
    return RunSpec(
        **asked.facts, kind=kind or q.workload.kind, platform=asked.platform.name, trace=q.workload.label, scenario=q.asked.scenario,
        scenario_hash=q.asked.hash, code_version=code_version(), question=q.row(),
    )
