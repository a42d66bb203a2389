"""The hosts on which models state their costs, by name: ``nt-pair:server`` is the host ``server`` of the platform ``nt-pair``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.spec.host import REFERENCE_CALL, Host
from retrompi.spec.machine import composition, machines, platform_file

if TYPE_CHECKING:
    from retrompi.spec.declare.param import Param
    from retrompi.spec.platform import Platform

__all__ = ["factors", "named_host", "seconds_on"]


def named_host(on: str, folder: Path) -> Host:
    """The host that the model in ``folder`` calls ``on``.

    Its platform is one found by name (`paths.places`), a file beside the folder (or at a path from it, ``../mine.toml:h1``), or composed of
    the library's hosts and networks. Raises InputError if there is none.
    """
    name, _, host = on.rpartition(":")
    try:
        return _platform(name, folder).host(host)
    except UsageError as error:
        raise InputError(f"costs are stated on '{on}': {error}", folder / "__init__.py", code=error.code) from None


def _platform(name: str, folder: Path) -> Platform:
    plain = name.partition("*")[0]  # the hosts of nt-pair*64 are copies of nt-pair's
    places = (*paths.places("platforms"), folder.parent, folder)
    files = [folder / name] if name.endswith(".toml") else [place / f"{plain}.toml" for place in places if "@" not in name]
    file = next((f for f in files if f.is_file()), None)
    if file is not None:
        return platform_file.load(file)
    if any(c in name for c in "@+") or plain in machines.files("host"):
        return machines.platform(composition.parse(name))
    raise UsageError(f"there is no platform '{name}'", code="unknown-platform")


def factors(params: Mapping[str, Param], folder: Path) -> dict[str, float]:
    """Parameter -> what turns its value, a cost on its own host, into one on the reference host; parameters that stay are left out.

    Work takes longer there by the ratio of the processors' speeds, a service of the operating system by that of the null system calls.
    Raises InputError for a host that does not exist, or whose null call takes no time although a service is stated on it.
    """
    hosts = {on: named_host(on, folder) for on in {p.on for p in params.values() if p.on}}
    found: dict[str, float] = {}
    for name, param in params.items():
        if not param.on:
            continue
        host = hosts[param.on]
        if param.cost == "os" and host.syscall <= 0:
            problem = f"{name} is a service on '{param.on}', whose null system call takes no time"
            raise InputError(problem, folder / "__init__.py", code="out-of-range")
        factor = host.speed if param.cost == "work" else REFERENCE_CALL / host.syscall
        if factor != 1:
            found[name] = factor
    return found


def seconds_on(host: Host, value: float, factor: float, cost: str) -> float:
    """A cost on ``host`` (s or s/B), from its ``value`` on the host where it is stated and what `factors` gives for it."""
    return value * factor / host.speed if cost.startswith("work") else value * factor * host.syscall / REFERENCE_CALL
