"""Programs online under SimGrid's SMPI at a runtime's costs: the export of a model's ``curve`` rung, and the plug-in that reads it.

docs/smpi.md describes how it works, what each entry of an export means and how well it agrees with a replay.
"""

from retrompi.measure.smpi.export import Export, export
from retrompi.measure.smpi.plugin import plugin

__all__ = ["Export", "export", "plugin"]
