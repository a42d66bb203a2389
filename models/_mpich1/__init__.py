"""What all of MPICH 1.x shares: the costs of its library above the device. Not a model: its name is no runtime's.

The same code (queues and matching, the abstract device interface) runs above every device, so its cost is one number, fitted once
(fit.toml beside this file) and taken by each MPICH 1.x model by the speed of its processor. A model states its device.
"""

from __future__ import annotations

from retrompi.spec.channels import Library
from retrompi.spec.media import WaitPolicy
from retrompi.spec.model import Param, RuntimeModel
from retrompi.spec.values import Values


class Mpich1(RuntimeModel):
    """Base of the models of MPICH 1.0.5 to 1.2.7. A model takes `library` from here and passes `both_ends` its ways to wait."""

    library = Param("7 us", "s", "MPICH's own work on a message above its device: checks, matching, queues; a send and its receive together", source="fit:fit.toml", on="ibm-sp1:n1", cost="work", low="1 us", high="12.5 us")

    @staticmethod
    def both_ends(p: Values, recv_wait: WaitPolicy, send_wait: WaitPolicy, unexpected_limit: float = 0.0) -> Library:
        """The library's calls: half of `library` at each end."""
        return Library(p.library / 2, p.library / 2, recv_wait, send_wait, unexpected_limit)
