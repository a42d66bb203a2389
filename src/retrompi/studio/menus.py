"""Menu options: runtimes and platforms by title, with the names used on the command line."""

from __future__ import annotations

from retrompi.base.translate import _
from retrompi.spec import machines, registry
from retrompi.studio.state import Choice, Query

__all__ = ["PLATFORM", "followed", "following", "is_platform", "models", "modes", "own_platforms", "platforms"]

Options = list[dict[str, str]]
MOST_HOSTS = 64
"""Of a platform composed in a browser."""
_PAIR = "{}*2@switch-100"


def is_platform(name: object) -> bool:
    """Whether a browser may name this platform: one with a name, or hosts and a network of the library; never a path."""
    return isinstance(name, str) and registry.known(name, MOST_HOSTS)


PLATFORM = Choice(registry.platform_names, "platform", is_platform)


def own_platforms(model: str) -> list[str]:
    """The platforms that a runtime was calibrated on, the first of them its own; [] where none is known."""
    known = registry.models()[model].calibrated if model in registry.model_names() else None
    return [p for p in known.platforms if is_platform(p)] if known is not None else []


def following(model: str, platform: str, before: str = "") -> str:
    """The platform that goes with another runtime than the one ``before``: the same where it is one of its own, or where both runtimes come
    from the same machines, else its first own one."""
    own = own_platforms(model)
    stays = not own or platform in own or bool(set(own) & set(own_platforms(before)))
    return platform if stays else own[0]


def followed(query: Query, *prefixes: str) -> Query:
    """A link that names a runtime and no platform means the runtime's own platform. ``prefixes``: of the keys, of further runtimes."""
    for prefix in ("", *prefixes):
        own = own_platforms(query[f"{prefix}model"]) if f"{prefix}model" in query and f"{prefix}platform" not in query else []
        query = query.also(f"{prefix}platform", own[0]) if own else query
    return query


def models() -> Options:
    """Every runtime."""
    return [{"value": name, "label": f"{cls.title} ({name})"} for name, cls in registry.models().items()]


def platforms(current: str = "") -> Options:
    """Every platform, two of every host of the library on Fast Ethernet, and the ``current`` composition, which an address may name."""
    found = {name: room.title for name, room in registry.platforms().items()}
    found |= {_PAIR.format(name): _("Library: two of {title}").format(title=machine.title) for name, machine in machines.hosts().items()}
    if current and current not in found and is_platform(current):
        found[current] = registry.platform(current).title
    return [{"value": name, "label": f"{title} ({name})"} for name, title in found.items()]


def modes(shared: str, distributed: str) -> Options:
    """The two placements of every platform, with their descriptions."""
    return [
        {"value": "shared", "label": _("shared: {shared}").format(shared=shared)},
        {"value": "distributed", "label": _("distributed: {distributed}").format(distributed=distributed)},
    ]
