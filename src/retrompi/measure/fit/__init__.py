"""From a measured curve to a model: the curve's segments, and the runnable model generated from them.

    found = fit(sizes_B, times_s)                    # segments, thresholds, their uncertainty
    sample = sample_of(found)                        # send, transit, recv, gap, port, both for every size
    ModelFiles(name="mine", samples={"same": sample}, ...).write(folder)

The model itself (`model.FittedModel`) only needs its folder, nothing of this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrompi.measure.fit.parts import Parts, sample_of
    from retrompi.measure.fit.segments import Residual, Segment, SegmentFit, Threshold, fit
    from retrompi.measure.fit.write import IdealPlatform, ModelFiles, check_name, default_folder
    from retrompi.sim.fitted import KINDS, NEVER, FittedModel, sizes_seen

__all__ = ["KINDS", "NEVER", "FittedModel", "IdealPlatform", "ModelFiles", "Parts", "Residual", "Segment", "SegmentFit", "Threshold",
           "check_name", "default_folder", "fit", "sample_of", "sizes_seen"]

_WHERE = {
    **dict.fromkeys(("KINDS", "NEVER", "FittedModel", "sizes_seen"), "retrompi.sim.fitted"),
    **dict.fromkeys(("Parts", "sample_of"), "retrompi.measure.fit.parts"),
    **dict.fromkeys(("SegmentFit", "Residual", "Segment", "Threshold", "fit"), "retrompi.measure.fit.segments"),
    **dict.fromkeys(("ModelFiles", "IdealPlatform", "check_name", "default_folder"), "retrompi.measure.fit.write"),
}


def __getattr__(name: str) -> Any:
    # Importing a fitted model imports this package, but not scipy, which only fitting needs.
    if name not in _WHERE:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), name)
