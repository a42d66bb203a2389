"""The hosts on which models state their costs, by name: ``nt-pair:server`` is the host ``server`` of the platform ``nt-pair``, and
``ibm-sp1:n1`` the host of the library's machine ``ibm-sp1`` on its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.spec import composition, machines, platform_file
from retrompi.spec.host import REFERENCE_CALL, Host

if TYPE_CHECKING:
    from retrompi.spec.param import Param

__all__ = ["factors", "named_host"]


def named_host(on: str, folder: Path) -> Host:
    """The host that the model in ``folder`` calls ``on``, of a platform of the package, of the user, or in a file beside the folder.

    Raises InputError if there is none.
    """
    name, _, host = on.partition(":")
    places = (paths.platforms_dir(), paths.user_platforms_dir(), folder.parent, folder)
    file = next((f for f in (place / f"{name}.toml" for place in places) if f.is_file()), None)
    if file is None and name in machines.host_names():
        return machines.platform(composition.parse(name)).host(host)
    if file is None:
        raise InputError(f"costs are stated on '{on}', but there is no platform '{name}'", folder / "__init__.py", code="unknown-platform")
    try:
        return platform_file.load(file).host(host)
    except UsageError as error:
        raise InputError(f"costs are stated on '{on}': {error}", folder / "__init__.py", code=error.code) from None


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
