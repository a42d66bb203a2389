"""The engine's states by kind, with the hatching and colour used in every timeline chart."""

from __future__ import annotations

from retrompi.base.translate import lazy

__all__ = ["KINDS", "colour_of"]

KINDS = (
    (lazy("computing"), "#009E73", "", ("compute",)),
    (lazy("MPI library"), "#0072B2", "", ("library", "poll")),
    (lazy("memory copy"), "#E69F00", "", ("copy",)),
    (lazy("system: calls, kernel, card"), "#CC79A7", "",
     ("syscall", "event", "switch", "stack", "interrupt", "nic", "wire", "ack", "line")),
    (lazy("waiting for a message"), "#56B4E9", "", ("wait: a message",)),
    (lazy("waiting for a send to be taken"), "#56B4E9", "/", ("wait: a send",)),
    (lazy("waiting for room in a buffer"), "#D55E00", "", ("wait: room",)),
    (lazy("waiting for a lock"), "#D55E00", "x", ("wait: a lock", "lock")),
    (lazy("waiting for a clock tick"), "#F0E442", "", ("tick",)),
    (lazy("off the processor: another one spins"), "#000000", "", ("quantum",)),
    (lazy("ready, the processor is busy"), "#777777", "", ("queueing",)),
    (lazy("nothing to do"), "#DDDDDD", "", ("wait: nothing to do",)),
)
"""Name in the legend, colour (Okabe and Ito), hatching, the engine's states; hatching so that colour is not the only cue."""


def colour_of(state: str) -> str:
    """The colour of one of the engine's states."""
    return next((colour for _, colour, _, states in KINDS if state in states), "#999999")
