"""Programs without a message-passing library, which drive the layer below one: sockets, GM, EUIH. Not a model."""

from __future__ import annotations

from random import Random

from retrompi.spec.channels import Library
from retrompi.spec.layout import Layout
from retrompi.spec.media import WaitPolicy
from retrompi.spec.model import RuntimeModel, StartStep
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values


class Bare(RuntimeModel):
    """Base of their models: calls cost nothing beside the channel, and nobody starts the processes but the user."""

    def waits(self, p: Values) -> WaitPolicy:
        """How a process waits for a message, and for room."""
        raise NotImplementedError(f"model class {type(self).__name__} does not define waits")

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(0, 0, self.waits(p), self.waits(p))

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """The user starts such a program manually."""
        return [StartStep(f"process {r}", manual=1, note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""
