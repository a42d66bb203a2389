"""A second host on one machine: two network namespaces joined by a link of configurable rate and delay, always removed at the end.

The link is a veth pair with ``tc ... netem`` where the kernel has it; otherwise our relay carries the frames between two TAP devices (in
user space, rate and delay by timer). Ranks start in the namespaces through hydra's launcher, without ssh, and can only use TCP.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrompi.base import units
from retrompi.base.cache import cache_dir
from retrompi.base.errors import UsageError
from retrompi.base.scratch import folder as temporary
from retrompi.base.signals import terminated_is_interrupted
from retrompi.measure.launch.execution import BackendError
from retrompi.measure.record.compiled import build_once, compile_to, digest
from retrompi.measure.this_machine.bench import PairBench

__all__ = ["LinkEstimate", "check", "two_hosts"]

_RELAY = Path(__file__).with_name("native") / "link" / "relay.c"
_NET = "10.213.77"
_DEVICE = "rm0"
"""The link's name in both namespaces: UCX is restricted to it, or it would try each namespace's own loopback."""
_MOST_DELAY = 1.0


@dataclass(frozen=True)
class LinkEstimate:
    """``rate`` in bytes a second, ``delay`` one way in seconds."""

    rate: float = 100e6 / 8
    delay: float = 100e-6

    @staticmethod
    def parse(rate: str | None, delay: str | None) -> LinkEstimate:
        """A link from texts with units, ``100 Mbps`` and ``50 us``. Raises UsageError for invalid ones."""
        found = LinkEstimate()
        if rate is not None:
            found = replace(found, rate=units.parse(rate, "B/s"))
        if delay is not None:
            found = replace(found, delay=units.parse(delay, "s"))
        if found.rate < 1e4:
            raise UsageError(f"--link-rate {rate}: a link carries 10 kB/s at least; example: --link-rate '100 Mbps'", code="out-of-range")
        if not 0 <= found.delay <= _MOST_DELAY:
            raise UsageError(
                f"--link-delay {delay}: a delay lies between 0 s and {_MOST_DELAY:g} s; example: --link-delay '50 us'", code="out-of-range"
            )
        return found


def check() -> None:
    """Raises BackendError when namespaces cannot be made here: no Linux, no root, no ``ip``."""
    if sys.platform != "linux":
        raise BackendError("--internode needs Linux: network namespaces")
    if os.geteuid() != 0:
        raise BackendError("--internode makes network namespaces and needs root: run it as root, or leave it out")
    if shutil.which("ip") is None:
        raise BackendError("--internode needs ip: install iproute2 (Debian and Ubuntu: apt-get install iproute2)", code="missing-tool")
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True)
    if done.returncode != 0:
        raise BackendError(f"--internode: this kernel has no network namespaces: {done.stderr.strip()[:120]}")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise BackendError(f"ip {' '.join(words)}: {done.stderr.strip()[:160] or f'code {done.returncode}'}")


def _relay() -> Path:
    """The compiled relay, from the cache or built now."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BackendError(
            "the link between two hosts is a C program: install gcc (Debian and Ubuntu: apt-get install gcc)", code="missing-tool"
        )

    def make(made: Path) -> None:
        compile_to([compiler, "-std=gnu11", "-O2", "-o", str(made), str(_RELAY)], "the link", error=BackendError)

    return build_once(cache_dir("machine") / f"relay-{digest((), [_RELAY])}", make, error=BackendError)


def _netem(ends: tuple[str, str], spaces: tuple[str, str], link: LinkEstimate) -> bool:
    """A veth pair with rate and delay set by the kernel; False, with everything removed, if the kernel cannot."""
    if shutil.which("tc") is None:
        return False
    _ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
    for end in ends:
        words = ["tc", "qdisc", "add", "dev", end, "root", "netem", "delay", f"{link.delay * 1e6:.3f}us", "rate", f"{link.rate * 8:.0f}bit"]
        if subprocess.run(words, capture_output=True).returncode != 0:
            _ip("link", "del", ends[0])
            return False
    for end, space in zip(ends, spaces, strict=True):
        _ip("link", "set", end, "netns", space, "name", _DEVICE)
    # A qdisc does not follow its device into another namespace.
    for space in spaces:
        _ip("netns", "exec", space, "tc", "qdisc", "replace", "dev", _DEVICE, "root", "netem", "delay", f"{link.delay * 1e6:.3f}us",
            "rate", f"{link.rate * 8:.0f}bit")
    return True


@contextlib.contextmanager
def two_hosts(bench: PairBench, link: LinkEstimate) -> Iterator[tuple[PairBench, dict[str, Any]]]:
    """A bench whose second rank is behind ``link``, and facts for the recording. Everything is removed at the end, even on Ctrl-C.

    Raises BackendError when it cannot be made.
    """
    check()
    if bench.family != "mpich":
        raise BackendError("--internode starts its ranks through hydra's launcher: use --mpi mpich")
    tag = f"rm{os.getpid() % 100000}"
    spaces, ends = (f"{tag}a", f"{tag}b"), (f"{tag}x", f"{tag}y")
    relay: subprocess.Popen[str] | None = None
    with terminated_is_interrupted(), temporary("network") as work:
        try:
            for space in spaces:
                _ip("netns", "add", space)
            by_kernel = _netem(ends, spaces, link)
            if not by_kernel:
                words = [str(_relay()), *ends, f"{link.rate:.0f}", f"{link.delay * 1e9:.0f}"]
                relay = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
                )
                if relay.stdout is None or relay.stdout.readline().strip() != "ready":
                    said = relay.stderr.read().strip() if relay.stderr else ""
                    raise BackendError(f"the link between two hosts cannot be made: {said[:160]}")
                for end, space in zip(ends, spaces, strict=True):
                    _ip("link", "set", end, "netns", space, "name", _DEVICE)
            for i, space in enumerate(spaces):
                _ip("-n", space, "addr", "add", f"{_NET}.{i + 1}/24", "dev", _DEVICE)
                _ip("-n", space, "link", "set", _DEVICE, "up")
                _ip("-n", space, "link", "set", "lo", "up")
            yield (
                _remote(bench, spaces, Path(work)),
                {
                    "rate_Bps": link.rate,
                    "delay_s": link.delay,
                    "link": "veth and tc netem" if by_kernel else "our relay over two TAP devices (this kernel has no netem)",
                    "transport": "TCP (UCX_TLS=tcp,self)",
                },
            )
        finally:
            if relay is not None:
                relay.kill()
                relay.wait()
            for space in spaces:
                subprocess.run(["ip", "netns", "del", space], capture_output=True)
            for end in ends:  # an end that never reached its namespace
                subprocess.run(["ip", "link", "del", end], capture_output=True)


def _remote(bench: PairBench, spaces: tuple[str, str], work: Path) -> PairBench:
    """mpiexec in the first namespace; its launcher enters the second one for the second host."""
    ip = shutil.which("ip")
    script = work / "launch"
    # hydra calls it as ssh: options, the host, the command.
    script.write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1\nshift\n'
        f'case "$host" in {_NET}.1) space={spaces[0]} ;; *) space={spaces[1]} ;; esac\n'
        f'exec {ip} netns exec "$space" /bin/sh -c "$*"\n'
    )
    script.chmod(0o755)
    mpiexec = bench.words[0]
    hosts = f"{_NET}.1,{_NET}.2"
    launcher = ("-launcher", "ssh", "-launcher-exec", str(script), "-hosts", hosts, "-iface", _DEVICE)
    words = (str(ip), "netns", "exec", spaces[0], mpiexec, *launcher, "-n", "2", "-ppn", "1")
    more = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": _DEVICE, "RETROMPI_LATE_NS": "3e6", "RETROMPI_LATE_NS_PER_B": "200"}
    environment = {**bench.environment, **more}
    return replace(bench, words=words, environment=environment, launches=0, timeout_s=60.0)
