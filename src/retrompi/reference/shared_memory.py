"""Memory that the processes of one host share: p4's pool of buffers, and a ring of packet slots.

The sender takes a place, copies the packet into it, links it and signals the receiver; the receiver copies it out and frees the place. A
sender without a place waits, and takes in packets meanwhile where its library does. Sources: E-P4-* (the pool and its size classes),
E-WM-*, E-NM-* on the page *Sources*; a library's own numbers are in its model.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Any

from retrompi.reference.channel import Channel, MpiMessage, Packet, Process
from retrompi.reference.host import Host, Lock, Steps
from retrompi.reference.loop import Abort

__all__ = ["Pool", "Ring", "SharedChannel"]


class Places:
    """Something that can be full; who waits for it is signalled when any of it becomes free."""

    def __init__(self) -> None:
        self.waiting: list[Process] = []

    def wake_waiting(self) -> None:
        """Tells those who wait."""
        waiting, self.waiting = self.waiting, []
        for process in waiting:
            process.thread.signal()


class Pool(Places):
    """An allocator of size classes (E-P4-03): a request takes a buffer of the next class. A buffer given back stays in its class, so that
    memory once cut into small ones is not there for large ones; what is larger than the largest class is cut out as it is, and returned."""

    def __init__(self, total: int, prefix: int, classes: list[int]) -> None:
        super().__init__()
        self.total = self.rest = total
        self.prefix, self.classes = prefix, classes
        self.free = [0] * len(classes)

    def possible(self, size: int) -> bool:
        """Whether an empty pool could serve it."""
        k = bisect_left(self.classes, size)
        return (self.classes[k] if k < len(self.classes) else size) + self.prefix <= self.total

    def take(self, size: int) -> tuple[int, int] | None:
        """A buffer: (class, size); None if there is none now."""
        k = bisect_left(self.classes, size)
        if k < len(self.classes) and self.free[k]:
            self.free[k] -= 1
            return k, self.classes[k]
        cut = self.classes[k] if k < len(self.classes) else size
        if cut + self.prefix > self.rest:
            return None
        self.rest -= cut + self.prefix
        return k, cut

    def give(self, buffer: tuple[int, int]) -> None:
        """Gives a buffer back."""
        k, size = buffer
        if k < len(self.classes):
            self.free[k] += 1
        else:
            self.rest += size + self.prefix
        self.wake_waiting()


class Ring(Places):
    """So many slots of a packet."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = self.free = slots

    def give(self) -> None:
        """Gives a slot back."""
        self.free += 1
        self.wake_waiting()


class SharedChannel(Channel):
    """A channel through a pool or a ring."""

    shared = True

    def __init__(self, job: Any, spec: Any, source: Process, target: Process, places: Any) -> None:
        super().__init__(job, spec, source, target)
        self.places = places
        self.ring = spec.medium == "ring"
        self.queue: deque[tuple[Packet, Any]] = deque()
        self.filled = self.emptied = 0

    def packet_of(self, message: MpiMessage) -> int:
        if self.ring and self.spec.short_packet > 0 and message.size <= self.spec.short_until:
            return int(self.spec.short_packet)
        return int(self.spec.packet)

    def first_of(self, message: MpiMessage, packet: int) -> int:
        alone = self.ring and self.spec.alone > 0 and not message.rendezvous and message.size > self.spec.alone
        return 0 if alone else packet

    def memory(self, host: Host, message: float, packet: float, inwards: bool) -> float:
        if self.ring:
            return float((self.spec.ws_packet if self.spec.ws_packet > 0 else self.spec.slots) * packet)
        return min(message, float(self.spec.pool))

    def in_caches(self) -> bool:
        return bool(self.ring and self.spec.cores)

    def push(self, packet: Packet) -> Steps:
        spec, sender = self.spec, self.source
        place = self._acquire(packet)
        if place is None:
            self._refuse(packet)

            def there() -> bool:
                nonlocal place
                place = self._acquire(packet)
                if place is None:
                    self.places.waiting.append(sender)
                return place is not None

            yield from sender.until(there, spec.space_wait, spec.progress)
        yield from self._private_copies(sender, packet, spec.pack)
        yield from self._lock(sender)
        yield from sender.thread.run(sender.host.work(spec.send_cpu))
        if self.in_caches():
            yield from sender.thread.run(spec.lines_in * sender.host.line(sender.host.kinship(sender.core, self.target.core)))
            yield from sender.copy(self.copy_cost(packet, packet.size, True), self.target.core)
        else:
            yield from sender.thread.copy(self.copy_cost(packet, packet.size, True).times(spec.copies_in))
            yield from sender.thread.run(sender.host.service(spec.event))
        self._unlock()
        self.job.count.packets += 1
        self.queue.append((packet, place))
        self.target.arrive(self, immediate=spec.by_event)
        if spec.until_taken:
            self.filled += 1
            mine = self.filled
            yield from sender.until(lambda: self.emptied >= mine, spec.space_wait, spec.progress)

    def pull(self, what: Any) -> Steps:
        packet, place = self.queue.popleft()
        receiver = self.target
        if not self.ring and self.spec.hold_unexpected and receiver.leave_in_pool(packet):
            packet.message.in_pool.append((self, place, packet.size))
            packet.held = True
            yield from receiver.thread.run(receiver.host.work(self.spec.recv_cpu))
        else:
            yield from self._copy_out(packet, place)
        if not receiver.take(packet):
            yield from receiver.handle(packet)

    def fetch(self, message: MpiMessage, place: Any, size: int) -> Steps:
        """A packet that was left in the pool is copied out."""
        yield from self._copy_out(Packet(message, size, message.src, message.dst), place)

    def _acquire(self, packet: Packet) -> Any:
        """A place for a packet, or None. To take one or to give it back takes no time here, so that the lock is not held for it."""
        if self.ring:
            if self.spec.one_message and packet.first and self.places.free < self.places.slots:
                return None
            if self.places.free == 0:
                return None
            self.places.free -= 1
            return True
        size = packet.size + self.spec.header
        if not self.places.possible(size):
            raise Abort(f"the shared memory pool of {self.places.total} B on host {self.source.host.name} can never "
                        f"hold a packet of {size} B "
                        f"(process {self.source.thread.name})")
        return self.places.take(size)

    def _refuse(self, packet: Packet) -> None:
        """A library that ends the job when the pool is full, unless the receiver has agreed to the message."""
        if not self.ring and self.spec.exhausted_aborts and not (packet.kind == "data" and packet.message.rendezvous):
            raise Abort(f"the shared memory pool of {self.places.total} B on host {self.source.host.name} is exhausted: "
                        f"no buffer for a packet of "
                        f"{packet.size + self.spec.header} B from rank {packet.source} to rank {packet.target}")

    def _copy_out(self, packet: Packet, place: Any) -> Steps:
        spec, receiver = self.spec, self.target
        yield from receiver.thread.run(receiver.host.service(spec.take_call))
        yield from self._lock(receiver)
        if self.in_caches():
            yield from receiver.thread.run(spec.lines_out * receiver.host.line(receiver.host.kinship(self.source.core, receiver.core)))
            yield from receiver.thread.run(receiver.host.work(spec.recv_cpu))
            yield from receiver.copy(self.copy_cost(packet, packet.size, False), self.source.core)
        else:
            yield from receiver.thread.run(receiver.host.work(spec.recv_cpu))
            yield from receiver.thread.copy(self.copy_cost(packet, packet.size, False).times(spec.copies_out))
        self._unlock()
        if self.ring:
            self.places.give()
        else:
            self.places.give(place)
        if spec.until_taken:
            self.emptied += 1
            self.source.thread.signal()
        yield from self._private_copies(receiver, packet, spec.unpack)

    def _private_copies(self, process: Process, packet: Packet, copies: float) -> Steps:
        """Copies between two places of the process's own memory, outside the lock: each is as one into the channel, at either end."""
        if copies > 0 and packet.size > 0:
            yield from process.thread.copy(self.copy_cost(packet, packet.size, True).times(copies))

    def _lock(self, process: Process) -> Steps:
        """Some runtimes guard the shared memory of a host by one lock."""
        if self.spec.lock:
            lock = self.job.pool_locks.setdefault(self.source.host, Lock())
            yield from process.until(lambda: lock.take(process.thread), self.spec.space_wait, False)

    def _unlock(self) -> None:
        if self.spec.lock:
            self.job.pool_locks[self.source.host].give()
