"""Socket buffer sizes: the size an operating system grants for the size a library requests."""

from __future__ import annotations

from retrompi.spec.layout import Layout

__all__ = ["kernel_buffer"]


def kernel_buffer(layout: Layout, asked: float) -> float:
    """The size (B) of a socket buffer after ``setsockopt(..., asked)``, on the hosts of ``layout``.

    Linux doubles the value, because it counts memory and not data (code: Linux 2.4, net/core/sock.c); the engine then gives a window of
    what that memory can hold in frames of the card (`Host.rx_buffer`). Where a card does not say what its frames take, a buffer counts
    data and is as asked. The limits that an administrator sets (``net.core.rmem_max``) are assumed to allow it, as on the machines of
    Turner & Chen.
    """
    return 2 * asked if layout.number("rx_buffer") > 0 else asked
