"""User-space message passing over the SP2's switch, for the models of the SP1's (`mpif`, `cheui`).

Their packet layer is fitted to EUIH, where the processor moved every packet. The SP2's adapter has a processor and DMA. Two numbers are
documented of the libraries over it (E-SP2-05): about 35 MB/s, about 50 us. Of the layer, the adapter takes data at the rate of the switch
and the processor does no work a packet, which gives 32 MB/s on wide nodes and 28 on thin ones; its work a message is what makes the
latency. Nothing is fitted to a program.
"""

from __future__ import annotations

from functools import cache

from retrompi.sim import simulate
from retrompi.spec.question import Question, pingpong

LATENCY = 50e-6
"""Seconds, of an empty message (doc:E-SP2-05)."""
MODELS = ("mpif", "cheui")
"""IBM's MPI over its packet layer, and MPICH over it."""


def fixed(model: str) -> tuple[str, ...]:
    """The rate of the switch (E-SP2-02); MPICH was built with short messages of 64 B for MPL (code: MPICH 1.0.12, mpid/ch_eui/Makefile;
    SRC-006)."""
    short = ("cheui.short=64B",) if model == "cheui" else ()
    return (f"{model}.rate=40MB/s", f"{model}.packet_work=1ns", *short)


def latency_of(model: str, host: str, message_s: float) -> float:
    sets = [*fixed(model), f"{model}.overhead={message_s:.9g}s"]
    (row,) = simulate.benchmark(Question(model, f"{host}*2@sp2-switch", pingpong([0], 1), "distributed", overrides=sets))
    return row["time_us"] * 1e-6


@cache
def user_space(model: str, host: str, latency: float = LATENCY) -> tuple[str, ...]:
    """Overrides with which an empty message takes ``latency`` between two of ``host``."""
    one, two = (latency_of(model, host, work) for work in (10e-6, 20e-6))
    work = 10e-6 + (latency - one) * 10e-6 / (two - one)
    return (*fixed(model), f"{model}.overhead={max(1e-9, work):.6g}s")
