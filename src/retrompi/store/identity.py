"""What makes two runs the same run: one hash over everything that can change a result."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from retrompi.spec import registry
from retrompi.spec.model import RuntimeModel, parse_sets, resolve
from retrompi.spec.platform import Platform

__all__ = ["RunSpec", "code_version", "run_spec", "sha256_json"]


def sha256_json(value: Any) -> str:
    """SHA-256 of ``value`` as canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """``<version>+<8 hex digits>`` over the code that can change a result: the engine, its callers, the traces.

    The digits matter in a checkout, where the version stays and the engine does not.
    """
    from retrompi import __version__

    here = Path(__file__).resolve().parents[1]
    files = [*sorted((here / "base").glob("*.py")), *sorted((here / "spec").glob("*.py")), *sorted((here / "sim").glob("*.py")),
             *sorted((here / "traces").glob("*.py")), here / "measure" / "fit" / "model.py"]
    try:
        spec = importlib.util.find_spec("retrompi._engine")
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin:
        files.append(Path(spec.origin))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"


@dataclass(frozen=True)
class RunSpec:
    """All that determines a run. ``parameters`` are the resolved values in base units, overrides included."""

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

    @cached_property
    def identity(self) -> str:
        """The run's name in the store: SHA-256 over every field but the human names of files."""
        # Names are labels: a platform copied under another name simulates alike and hashes alike.
        labels = ("platform", "trace", "scenario")
        return sha256_json({f.name: getattr(self, f.name) for f in fields(self) if f.name not in labels})


def run_spec(
    kind: str,
    model: str | type[RuntimeModel],
    platform: str | Platform,
    *,
    mode: str | Sequence[int],
    sets: Mapping[str, str] | Sequence[str] = (),
    seed: int = 1,
    fidelity: str = "mechanism",
    trace: str = "",
    trace_hash: str,
    scenario: str = "",
    scenario_hash: str = "",
) -> RunSpec:
    """The specification of a run, resolved. ``kind`` is pingpong, replay, explain or startup; ``trace`` a label.

    Raises what `runtime.resolve` raises: UsageError for an unknown name, key or unit.
    """
    cls = registry.model(model) if isinstance(model, str) else model
    room = registry.platform(platform) if isinstance(platform, str) else platform
    values, changed = resolve(cls, room, sets)
    return RunSpec(
        kind=kind,
        model=cls.name,
        model_hash=cls.hash(),
        platform=room.name,
        platform_hash=changed.hash,
        mode=mode if isinstance(mode, str) else ",".join(str(i) for i in mode),
        parameters=values.as_dict(),
        overrides=parse_sets(sets),
        seed=seed,
        fidelity=fidelity,
        trace=trace,
        trace_hash=trace_hash,
        scenario=scenario,
        scenario_hash=scenario_hash,
        code_version=code_version(),
    )
