"""One direction of a TCP connection, by its RFCs. Names are those of RFC 793 and, where it has none, of 4.4BSD.

The sender: a segment is sent when the window allows all of it, or when nothing else is in flight and some of it fits (RFC 1122 4.2.3.4);
with Nagle's algorithm a short one waits until everything before it is acknowledged (RFC 896). The receiver: every second segment is
acknowledged at once, a single one when the delayed-acknowledgement timer expires (RFC 1122 4.2.3.2), one that is out of order at once
(4.2.2.21); data of the other direction carry the acknowledgement; a read advertises its space when two segments or half of the buffer have
become free (4.2.3.3). Loss: the
retransmission timer with Jacobson's estimate and Karn's rule (RFC 793 3.7, RFC 1122 4.2.3.1), go back N, slow start and congestion
avoidance, fast retransmit without the inflation of the window (RFC 2001), probes of a closed window (RFC 1122 4.2.2.17).

The retransmission timer is an event only after a loss: before the first one it would expire without effect.
"""

from __future__ import annotations

from typing import Any

from retrompi.reference.channel import Channel, Process
from retrompi.reference.loop import Abort

__all__ = ["Tcp"]

HEADER = 20
"""Bytes; the IP header is in the frame's overhead."""
SEND_OVERHEAD = 400
"""Memory of headers and the kernel's descriptor of a segment (code: Linux 2.4, MAX_TCP_HEADER)."""
UNLIMITED = 1 << 60


class ReceiveSpace:
    """What a receive buffer can take. It counts data; or, on Linux, the memory of the frames that hold them (code: Linux 2.4, tcp_input.c
    and tcp_output.c): a quarter of it is kept back, one segment is reserved, windows are whole segments."""

    def __init__(self, buffer: int, mss: int, frame: int) -> None:
        self.buffer, self.frame = buffer, frame
        self.mss = max(1, min(mss, _usable(buffer))) if frame > 0 else mss
        self.widest = self._whole(self._limit()) if frame > 0 else buffer

    def window(self, unread: int, last: int) -> int:
        """The window to advertise with so many unread bytes; ``last``: the one before."""
        if self.frame == 0:
            return self.buffer - unread
        space = _usable(self.buffer - (unread + self.mss - 1) // self.mss * self.frame)
        if space < self.mss:
            return 0
        most = min(space, self._limit())
        return self._whole(most) if last <= most - self.mss or last > most else last

    def _whole(self, size: int) -> int:
        return max(self.mss, size // self.mss * self.mss)

    def _limit(self) -> int:
        """Where the window stops growing (tcp_select_initial_window and tcp_grow_window)."""
        space = _usable(self.buffer)
        clamp = max(2 * self.mss, space - self.mss) if space > 2 * self.mss else space
        if _usable(self.frame) <= self.mss:
            return clamp
        share, memory = space // 2, _usable(self.frame) // 2
        while memory > self.mss:
            memory //= 2
            share //= 2
        reached = min((2 if self.mss > 3 * 1460 else 3 if self.mss > 1460 else 4) * self.mss, clamp)
        while reached <= share and reached < clamp:
            reached = min(reached + 2 * self.mss, clamp)
        return reached


def _usable(memory: int) -> int:
    """Three quarters; C rounds the quarter towards zero."""
    return memory - (memory // 4 if memory >= 0 else -(-memory // 4))


class Tcp:
    """The direction from ``channel.source`` to ``channel.target``. ``user`` is told by ``on_readable()`` and
    ``on_acknowledged(was_full)``."""

    def __init__(self, channel: Channel, sndbuf: int, rcvbuf: int, nagle: bool, stack: bool) -> None:
        self.channel, self.job, self.loop = channel, channel.job, channel.loop
        self.source, self.target = channel.source, channel.target
        ours, theirs = self.source.host.spec, self.target.host.spec
        self.local, self.nagle, self.stack = self.source.host is self.target.host, nagle, stack
        self.reverse: Tcp | None = None
        buffer = sndbuf or ours.sndbuf
        self.mss: int = max(1, buffer) if not stack else ours.loopback_mss if self.local else ours.mss
        counts = not self.local and ours.rx_buffer > 0
        segment = self.mss + SEND_OVERHEAD
        self.sndbuf: int = (buffer + segment - 1) // segment * self.mss if counts else buffer
        self.space = ReceiveSpace(rcvbuf or theirs.window, self.mss, 0 if self.local else theirs.rx_buffer)
        self.rcvbuf = self.space.widest
        # the sender
        self.una = self.nxt = self.max = self.written = 0
        self.edge = self.rcvbuf
        self.cwnd = self.ssthresh = UNLIMITED
        self.duplicates = 0
        # the receiver
        self.rcv_nxt = self.read_bytes = 0
        self.advertised = self.window = self.rcvbuf
        self.unacked = 0
        self.ack_due_at = -1
        self.ack_turn = 0
        self.beyond: dict[int, int] = {}
        # round trips and recovery
        self.timed, self.timed_since = -1, 0
        self.srtt, self.rttvar = -1, 0
        self.timer_start = 0
        self.recovering = False
        self.retransmits = 0
        self.probe = ""

    # ---- the sender's socket

    @property
    def send_space(self) -> int:
        """Free bytes of the send buffer; an asynchronous write may leave it below 0."""
        return self.sndbuf - (self.written - self.una)

    @property
    def counts_memory(self) -> bool:
        """Whether buffers count the memory of frames."""
        return self.space.frame > 0

    @property
    def writable(self) -> bool:
        """Whether a writer that has filled the buffer goes on: with any space, or with a third of it where it counts memory
        (tcp_min_write_space)."""
        return self.send_space > 0 and (not self.counts_memory or 2 * self.send_space >= self.written - self.una)

    def write(self, size: int) -> None:
        """Appends to the send buffer."""
        self.written += size
        self._output()

    def _output(self) -> None:
        while self.nxt < self.written:
            n = min(self.written - self.nxt, self.mss)
            usable = min(self.edge, self.una + self.cwnd) - self.nxt
            if usable < n and not (self.nxt == self.una and usable > 0):
                break
            if self.nagle and n < self.mss and self.nxt > self.una:
                break
            size = min(n, usable)
            if self.nxt == self.una:
                self.timer_start = self.loop.now
            if self.timed < 0 and self.nxt == self.max:
                self.timed, self.timed_since = self.nxt + size, self.loop.now
            self.job.count.retransmissions += self.nxt < self.max
            self._send_segment(self.nxt, size)
            self.nxt += size
            self.max = max(self.max, self.nxt)

    def _send_segment(self, seq: int, size: int) -> None:
        host = self.source.host
        segment = seq, size, self.reverse._piggyback() if self.reverse else None
        if not self.stack:
            self.loop.schedule(self.loop.now, self._segment_comes, segment)
        elif self.local:
            host.kernel(host.spec.loopback_segment, self._segment_comes, segment)
        else:
            host.kernel(host.spec.tcp_segment + int(host.spec.tcp_byte * size), self._segment_leaves, segment)

    def _segment_leaves(self, segment: Any) -> None:
        self._frame(self.source, segment[1], lambda: self._segment_frame(segment), lambda: self._segment_lost(segment))

    def _frame(self, sender: Process, payload: int, delivered: Any, lost: Any) -> None:
        other = self.target if sender is self.source else self.source
        hosts = self.job.hosts
        self.job.net.frame(hosts.index(sender.host), hosts.index(other.host), payload + HEADER, delivered, lost)

    def _ack_frame(self, ack: tuple[int, int]) -> None:
        host = self.source.host
        host.kernel(host.frame_interrupt() + host.spec.tcp_segment, self._ack_comes, ack)

    def _ack_comes(self, ack: tuple[int, int]) -> None:
        if self.probe == "sent":
            self.probe = "answered"
        if self.recovering and ack == (self.una, self.edge) and self.max > self.una:
            self.duplicates += 1
            if self.duplicates == self.source.host.spec.dup_acks:
                self._fast_retransmit()
            return
        self._on_acknowledge(ack)

    def _on_acknowledge(self, ack: tuple[int, int]) -> None:
        number, edge = ack
        was_full = self.send_space <= 0
        if number > self.una or edge > self.edge:
            self.timer_start = self.loop.now
            self.retransmits = 0
            self.duplicates = 0
            self._time_round_trip(number)
            if number > self.una:
                self._grow(number - self.una)
        self.una = max(self.una, number)
        self.nxt = max(self.nxt, self.una)
        self.edge = max(self.edge, edge)
        self._output()
        self.channel.on_acknowledged(was_full)  # type: ignore[attr-defined]

    def _grow(self, size: int) -> None:
        """Slow start below `ssthresh`, a segment a round trip above; it limits nothing before a loss, and nothing once it is the wider
        one again."""
        if self.cwnd >= UNLIMITED:
            return
        self.cwnd += min(size, self.mss) if self.cwnd < self.ssthresh else max(1, self.mss * self.mss // self.cwnd)
        if self.cwnd >= self.rcvbuf and self.cwnd >= self.ssthresh:
            self.cwnd = UNLIMITED

    def _halve(self) -> None:
        self.ssthresh = max(2 * self.mss, min(self.max - self.una, self.cwnd) // 2)
        self.duplicates = 0

    def _time_round_trip(self, ack: int) -> None:
        """Jacobson 1988; one segment is timed at a time."""
        if self.timed < 0 or ack < self.timed:
            return
        self.timed = -1
        took = self.loop.now - self.timed_since
        if self.srtt < 0:
            self.srtt, self.rttvar = took, took // 2
            return
        error = took - self.srtt
        self.srtt += _divide(error, 8)
        self.rttvar += _divide(abs(error) - self.rttvar, 4)

    # ---- the receiver's socket

    @property
    def readable(self) -> int:
        """Bytes that can be read."""
        return self.rcv_nxt - self.read_bytes

    def read(self, size: int) -> None:
        """Takes bytes out of the receive buffer; enough space is advertised at once."""
        self.read_bytes += size
        if self._window_opened():
            self._send_ack()

    def _segment_frame(self, segment: Any) -> None:
        host = self.target.host
        cost = host.frame_interrupt() + host.spec.tcp_segment + int(host.spec.tcp_byte * segment[1])
        host.kernel(cost, self._segment_comes, segment)

    def _segment_comes(self, segment: tuple[int, int, tuple[int, int] | None]) -> None:
        seq, size, ack = segment
        gap = bool(self.beyond)
        if seq > self.rcv_nxt or seq + size <= self.rcv_nxt:
            if seq > self.rcv_nxt:
                self.beyond[seq] = max(self.beyond.get(seq, 0), seq + size)
            self._send_ack()
            if ack and self.reverse:
                self.reverse._on_acknowledge(ack)
            return
        self.rcv_nxt = seq + size
        while self.beyond and (first := min(self.beyond)) <= self.rcv_nxt:
            self.rcv_nxt = max(self.rcv_nxt, self.beyond.pop(first))
        if self.target.thread.dead:  # the system has closed its socket, and throws away what comes
            self.read_bytes = self.rcv_nxt
        else:
            self.channel.on_readable()  # type: ignore[attr-defined]
        if ack and self.reverse:
            self.reverse._on_acknowledge(ack)
        self.unacked += 1
        if self._ack_due() or gap or not self.stack:
            self._send_ack()
        else:
            self.ack_due_at = self.loop.now + self.target.host.spec.delayed_ack
            self.ack_turn += 1
            self.loop.schedule(self.ack_due_at, self._delayed_ack, self.ack_turn)

    def _ack_due(self) -> bool:
        """Every second segment. Linux holds it back while the window would be smaller than before."""
        return self.unacked >= 2 and (not self.counts_memory or self.space.window(self.readable, self.window) >= self.window)

    def _window_opened(self) -> bool:
        """Silly-window avoidance. Linux acknowledges what is due anyway, and else advertises a window that has doubled."""
        if not self.counts_memory:
            return self.read_bytes + self.rcvbuf - self.advertised >= min(2 * self.mss, self.rcvbuf // 2)
        if self.unacked >= 2:
            return True
        left, now = self.advertised - self.rcv_nxt, self.space.window(self.readable, self.window)
        return 2 * left <= self.rcvbuf and now > 0 and now >= 2 * left

    def _delayed_ack(self, turn: int) -> None:
        if turn == self.ack_turn and self.ack_due_at >= 0:
            self._send_ack()

    def _edge(self) -> int:
        """The right edge of the window that may be advertised; it does not move back (RFC 793 3.7)."""
        return max(self.advertised, self.rcv_nxt + self.space.window(self.readable, self.window))

    def _acknowledge(self) -> tuple[int, int]:
        self.unacked, self.ack_due_at = 0, -1
        self.advertised = self._edge()
        self.window = self.advertised - self.rcv_nxt
        return self.rcv_nxt, self.advertised

    def _piggyback(self) -> tuple[int, int] | None:
        """What data of the other direction say of this one, if there is anything new."""
        return None if self.unacked == 0 and self.advertised == self._edge() else self._acknowledge()

    def _send_ack(self) -> None:
        ack = self._acknowledge()
        host = self.target.host
        if self.local:
            self.loop.schedule(self.loop.now, self._ack_comes, ack)
        else:
            host.kernel(host.spec.tcp_segment, self._ack_leaves, ack)

    def _ack_leaves(self, ack: tuple[int, int]) -> None:
        self._frame(self.target, 0, lambda: self._ack_frame(ack), self._recover)

    # ---- loss

    def _segment_lost(self, segment: Any) -> None:
        self._recover()
        if segment[2] and self.reverse:
            self.reverse._recover()  # it carried an acknowledgement

    def _recover(self) -> None:
        if self.recovering or self.source.thread.dead:
            return
        self.recovering = True
        self._plan_retransmission()

    def rto(self) -> int:
        """The timeout before any back-off."""
        host = self.source.host.spec
        return int(host.rto_first if self.srtt < 0 else min(max(self.srtt + 4 * self.rttvar, host.rto_min), host.rto_max))

    def _due(self) -> int:
        return self.timer_start + backed_off(self.rto(), self.retransmits, self.source.host.spec.rto_max)

    def _plan_retransmission(self) -> None:
        self.loop.schedule(max(self.loop.now, self._due()), self._timer)

    @property
    def closed(self) -> bool:
        """Whether one of the two processes was killed: what it has written nobody will read, and its system has dropped the connection."""
        return self.source.thread.dead or self.target.thread.dead

    def _timer(self) -> None:
        if self.closed:
            return
        shut = self.una == self.max and self.written > self.nxt  # the segment that opened the window may have been lost
        if self.una == self.max and (not shut or self.probe == "answered"):
            self.recovering, self.probe = False, ""
            self.retransmits = self.duplicates = 0
            return
        if self.loop.now < self._due():
            self._plan_retransmission()
            return
        if self.retransmits >= self.source.host.spec.tcp_retries:
            give_up(self.source, self.target, self.retransmits)
        self.retransmits += 1
        self.timer_start = self.loop.now
        if shut:
            self.probe = "sent"
            self._send_segment(self.nxt, 0)
        else:
            self.timed = -1  # Karn
            self._halve()
            self.cwnd = self.mss
            self.nxt = self.una
            self._output()
        self._plan_retransmission()

    def _fast_retransmit(self) -> None:
        self.timed = -1
        self._halve()
        self.cwnd = self.ssthresh
        self.timer_start = self.loop.now
        self.job.count.retransmissions += 1
        self._send_segment(self.una, min(self.mss, self.max - self.una))


def backed_off(rto: int, shift: int, most: int) -> int:
    """Doubled with each retransmission, up to the longest."""
    return min(rto * (1 << min(shift, 12)), max(rto, most))


def give_up(source: Process, target: Process, tries: int) -> None:
    """A connection that is given up ends the job."""
    raise Abort(f"the connection from {source.thread.name} to {target.thread.name} was given up: a segment was sent "
                f"again {tries} times and not "
                "acknowledged")


def _divide(a: int, b: int) -> int:
    """Towards zero."""
    return a // b if a >= 0 else -(-a // b)
