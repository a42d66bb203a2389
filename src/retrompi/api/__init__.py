"""The Python interface: the same questions and answers as the commands, as functions and objects.

    import retrompi

    curve = retrompi.pingpong("wmpi", mode="shared", set={"wmpi.packet": "1 MiB"})
    curve.frame                      # pandas: size_B, time_us, bandwidth_MBps, repetitions
    curve.plot()                     # a Plotly figure
    curve.anatomy("512 KiB").frame   # where the time of one message goes
    curve.uncertainty(0.9)           # the same curve with its intervals

The names here are also those of `retrompi` itself, where they are loaded on first use. They are stable: a change of one that would break
a program is announced by a DeprecationWarning for a minor version, and tests compare the signatures with those of the last release
(docs/api.md).
"""

from __future__ import annotations

from retrompi.api.judging import Claim, Verdicts, claim, claims, verdicts
from retrompi.api.parts import Model, Platform, list_models, list_platforms, model, platform
from retrompi.api.runs import Anatomy, Curve, Options, Run, message, pingpong, replay
from retrompi.api.studies import StudyResult, study, sweep
from retrompi.base.errors import EngineError, InputError, RetrompiError, StoreError, UsageError
from retrompi.sim.simulate import SimulationEnded
from retrompi.store.database import open_store

__all__ = [
    "Anatomy",
    "Claim",
    "Curve",
    "EngineError",
    "InputError",
    "Model",
    "Options",
    "Platform",
    "RetrompiError",
    "Run",
    "SimulationEnded",
    "StoreError",
    "StudyResult",
    "UsageError",
    "Verdicts",
    "claim",
    "claims",
    "list_models",
    "list_platforms",
    "message",
    "model",
    "open_store",
    "pingpong",
    "platform",
    "replay",
    "study",
    "sweep",
    "verdicts",
]
