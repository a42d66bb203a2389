"""A host: processors, scheduler, memory, protocol stack and network card, one declaration per value."""

from __future__ import annotations

from dataclasses import dataclass

from retrompi.spec.declare.fields import (
    ITSELF,
    Use,
    beside,
    choice,
    flag,
    quantity,
    rate_of,
    rest_of,
    stating_what_follows,
    time_of,
    whole,
    word,
)

__all__ = ["BYTE_ORDERS", "REFERENCE_CALL", "REFERENCE_CLOCK", "Host"]

BYTE_ORDERS = ("little", "big")
REFERENCE_CLOCK = 150e6
"""Clock (Hz) of the host on which costs of libraries are stated to the engine: nt-pair's Server, a Pentium Pro (paper:BF-CFG-02)."""
REFERENCE_CALL = 4e-6
"""Null system call (s) of that host (doc:E-LM-10)."""
_LOOPS = (Use.COPIES, Use.KERNELS, Use.ROOFLINE)
_COPIED = (Use.COPIES, Use.ROOFLINE)
_LINES = (Use.CORES, Use.CACHES)


@stating_what_follows
@dataclass(frozen=True, slots=True)
class Host:
    """One machine. Floats are in base units: bytes, seconds, bytes/s, seconds/byte, Hz, flop/s."""

    name: str = word("what the platform calls it")
    os: str = word("operating system", cpp="")
    byte_order: str = choice("byte order of its numbers", BYTE_ORDERS, enum="ByteOrder", used_by=Use.BYTE_ORDER)
    cores: float = whole("number of CPUs", low=1, high=65536, area="processor", plain="1", follows=ITSELF)
    clock: float = quantity("Hz", "CPU clock", above=0, low=1e6, high=1e12, area="processor", plain="1 GHz", follows=ITSELF)
    work: float = quantity(
        "count",
        "work a cycle does in library code, relative to a Pentium Pro's",
        above=0,
        low=0.01,
        high=100,
        area="processor",
        plain="1",
        follows=ITSELF,
    )
    flops: float = quantity(
        "flop/s", "rate at which a trace's compute amounts run", above=0, area="processor", plain="1000 Mflop/s",
        used_by=(Use.COMPUTE, Use.ROOFLINE),
        follows=rate_of("clock"),
    )
    flops_per_cycle: float = quantity(
        "count",
        "floating-point operations a cycle at most, the ceiling of kernels stated by operations and bytes; 0: `flops` is",
        default=0.0,
        kw_only=True,
        high=1024,
        area="processor",
        used_by=Use.ROOFLINE,
        cpp="",
        follows=ITSELF,
    )
    gemm_rate: float = quantity(
        "flop/s",
        "rate of the library's matrix product in cache, where one is published; 0: as the caches allow",
        default=0.0,
        kw_only=True,
        area="processor",
        used_by=Use.ROOFLINE,
        cpp="",
        follows=rate_of("clock"),
    )
    quantum: float = quantity(
        "s", "time a thread may run before the scheduler takes the next one", above=0, low=1e-6, area="scheduler", plain="50 ms",
        follows=ITSELF,
    )
    tick: float = quantity(
        "s", "clock interrupt period to which timed waits are rounded", above=0, low=1e-12, area="scheduler", plain="10 ms",
        follows=ITSELF,
    )
    dispatch: float = quantity("s", "context switch to a woken thread", area="scheduler", plain="1 us", follows=time_of("clock"))
    syscall: float = quantity("s", "null system call", area="scheduler", plain="0.1 us", used_by=Use.CALLS, follows=time_of("clock"))
    l1: float = quantity(
        "B", "first-level data cache", above=0, area="memory", plain="32 KiB", used_by=_LOOPS, cpp="double",
        follows=ITSELF,
    )
    l2: float = quantity("B", "second-level cache", above=0, area="memory", plain="1 MiB", used_by=_LOOPS, cpp="double", follows=ITSELF)
    l2_ways: float = whole(
        "associativity of the second-level cache", low=1, high=1024, area="memory", plain="8", used_by=_LOOPS,
        follows=ITSELF,
    )
    copy_l1: float = quantity(
        "B/s", "copy rate while the working set is in the first-level cache", above=0, area="memory", plain="10 GB/s", used_by=_COPIED,
        follows=rate_of("clock"),
    )
    copy_l2: float = quantity(
        "B/s", "copy rate while the working set is in the second-level cache", above=0, area="memory", plain="10 GB/s", used_by=_COPIED,
        follows=beside("clock"),
    )
    copy_mem: float = quantity(
        "B/s", "copy rate from main memory", above=0, area="memory", plain="5 GB/s", used_by=_LOOPS,
        follows=beside("clock"),
    )
    read_mem: float = quantity(
        "B/s", "rate at which one processor reads main memory", above=0, area="memory", plain="10 GB/s", cpp="",
        used_by=(Use.KERNELS, Use.ROOFLINE),
        follows=beside("clock", "copy_mem"),
    )
    mem_streams: float = quantity(
        "count",
        "processors whose copies the main memory serves at their full rate at once",
        low=1,
        high=65536,
        area="memory",
        plain="1",
        used_by=Use.SHARED_MEMORY,
        follows=ITSELF,
    )
    boost: float = flag(
        "1 when an event wake-up raises the woken thread above its peers", area="scheduler", plain="0", cpp="int",
        follows=ITSELF,
    )
    quantum_carry: float = flag("1 when what is left of a quantum outlives a wait", area="scheduler", plain="0", follows=ITSELF)
    wait_charge: float = quantity(
        "s", "taken off the quantum for each wait", area="scheduler", plain="0 us", used_by=Use.CARRY,
        follows=ITSELF,
    )
    quantum_at_tick: float = flag("1 when a quantum ends only at a clock tick", area="scheduler", plain="1", follows=ITSELF)
    tcp_segment: float = quantity(
        "s", "protocol stack CPU time per segment", area="protocol stack", plain="1 us", used_by=Use.IP,
        follows=time_of("clock"),
    )
    tcp_byte: float = quantity(
        "s/B", "protocol stack CPU time per byte", area="protocol stack", plain="0 s/B", used_by=Use.IP,
        follows=time_of("clock"),
    )
    interrupt: float = quantity(
        "s", "CPU time of one frame's interrupt", area="protocol stack", plain="1 us", used_by=(Use.IP, Use.INTERRUPTS),
        follows=time_of("clock"),
    )
    napi: float = flag(
        "1 when a frame that comes while the kernel is at work needs no interrupt of its own (drivers of Linux 2.6 poll the card then)",
        area="protocol stack", plain="0", used_by=(Use.IP, Use.INTERRUPTS), follows=ITSELF, default=0.0, kw_only=True,
    )
    loopback_segment: float = quantity(
        "s", "protocol stack CPU time per segment that stays on the host", area="protocol stack", plain="1 us", used_by=Use.TCP_LOCAL,
        follows=time_of("clock"),
    )
    loopback_mss: float = quantity(
        "B", "largest segment that stays on the host", above=0, high=2**30, area="protocol stack", plain="16 KiB", used_by=Use.TCP_LOCAL,
        follows=ITSELF,
    )
    window: float = quantity(
        "B", "TCP receive window", above=0, area="protocol stack", plain="64 KiB", used_by=Use.TCP_RECEIVE_BUFFER,
        follows=ITSELF,
    )
    mss: float = quantity(
        "B", "largest TCP segment on the wire", above=0, high=2**30, area="protocol stack", plain="1460 B", used_by=Use.TCP_REMOTE,
        follows=rest_of("link.mtu", 40),
    )
    sndbuf: float = quantity(
        "B", "socket send buffer", above=0, area="protocol stack", plain="64 KiB", used_by=Use.TCP_SEND_BUFFER,
        follows=ITSELF,
    )
    delayed_ack: float = quantity(
        "s", "longest time an acknowledgement is held back", area="protocol stack", plain="40 ms", used_by=Use.TCP, follows=ITSELF
    )
    rto_first: float = quantity(
        "s",
        "TCP's retransmission timer before a round trip has been timed",
        above=0,
        area="protocol stack",
        plain="3 s",
        used_by=Use.TCP_LOSS,
        follows=ITSELF,
    )
    rto_min: float = quantity(
        "s", "shortest TCP retransmission timer", above=0, area="protocol stack", plain="200 ms", used_by=Use.TCP_LOSS, follows=ITSELF
    )
    rto_max: float = quantity(
        "s", "longest TCP retransmission timer; it doubles up to this", above=0, area="protocol stack", plain="120 s", used_by=Use.TCP_LOSS,
        follows=ITSELF,
    )
    tcp_retries: float = whole(
        "how often TCP sends a segment again before it gives the connection up",
        low=1,
        area="protocol stack",
        plain="15",
        used_by=Use.TCP_LOSS,
        follows=ITSELF,
    )
    dup_acks: float = whole(
        "acknowledgements without news that make TCP send a segment again at once",
        low=1,
        area="protocol stack",
        plain="3",
        used_by=Use.TCP_LOSS,
        follows=ITSELF,
    )
    nic_rate: float = quantity(
        "B/s",
        "rate at which the network card reads memory, and writes to it unless nic_rate_in says otherwise",
        above=0,
        area="network card",
        plain="1 GB/s",
        used_by=Use.WIRE,
        follows=beside("bus_rate"),
    )
    nic_rate_in: float = quantity(
        "B/s",
        "rate at which the network card writes to memory; 0: as nic_rate",
        default=0.0,
        kw_only=True,
        area="network card",
        used_by=Use.WIRE,
        follows=beside("nic_rate", "bus_rate"),
    )
    rx_buffer: float = quantity(
        "B",
        "memory that the card's driver takes for a received frame, which counts against a socket's receive buffer (Linux); "
        "0: a receive buffer counts data",
        default=0.0,
        kw_only=True,
        area="network card",
        used_by=Use.TCP_REMOTE,
        follows=ITSELF,
    )
    nic_latency: float = quantity(
        "s", "fixed time of the network card per frame", area="network card", plain="0 us", used_by=Use.WIRE,
        follows=ITSELF,
    )
    bus_rate: float = quantity(
        "B/s",
        "rate of memory and bus that both directions of the card share",
        above=0,
        area="network card",
        plain="1 GB/s",
        used_by=Use.BURSTS,
        follows=ITSELF,
    )
    l2_shared_by: float = whole(
        "cores that share a second-level cache", low=1, area="memory", plain="1", used_by=(Use.CORES, Use.SHARED_MEMORY), follows=ITSELF
    )
    package_cores: float = whole(
        "cores that share a bus to the memory", low=1, area="processor", plain="1", used_by=Use.CORES,
        follows=ITSELF,
    )
    line_shared: float = quantity(
        "s", "a cache line from a core with which the second-level cache is shared", area="memory", plain="0 ns", used_by=_LINES,
        follows=beside("clock"),
    )
    line_bus: float = quantity(
        "s", "a cache line from a core's cache across the bus", area="memory", plain="0 ns", used_by=_LINES,
        follows=beside("clock"),
    )
    lines_in_flight: float = quantity(
        "count", "lines changed by another core that a copy fetches at a time", above=0, area="memory", plain="1", used_by=_LINES,
        follows=ITSELF,
    )
    fsb_rate: float = quantity(
        "B/s", "rate of a package's front-side bus", above=0, area="memory", plain="10 GB/s", used_by=Use.CORES,
        follows=beside("clock"),
    )

    @property
    def speed(self) -> float:
        """Speed of a processor in library code, relative to the reference host's: clock and work per cycle."""
        return self.clock * self.work / REFERENCE_CLOCK

    @property
    def family(self) -> str:
        """``win32`` or ``unix``, by the operating system's name."""
        return "win32" if self.os.startswith("Windows") else "unix"
