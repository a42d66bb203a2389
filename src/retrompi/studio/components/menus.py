"""Menu options: runtimes and platforms by title, with the names used on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from retrompi.base.translate import _
from retrompi.spec import registry
from retrompi.spec.machine import machines
from retrompi.studio.requests.state import Control, OneOf, Query

__all__ = ["PLATFORM", "Options", "following", "is_platform", "models", "modes", "own_platforms", "platforms", "with_platforms"]

Options = list[dict[str, str]]
MOST_HOSTS = 64
"""Of a platform composed in a browser."""
_PAIR = "{}*2@switch-100"


def is_platform(name: object) -> bool:
    """Whether a browser may name this platform: one with a name, or hosts and a network of the library; never a path."""
    return isinstance(name, str) and registry.is_platform_name(name, MOST_HOSTS)


PLATFORM = OneOf(registry.platform_names, "platform", is_platform)


def own_platforms(model: str) -> list[str]:
    """The platforms that a runtime was calibrated on, the first of them its own; [] where none is known."""
    cls = registry.models().get(model)
    return [] if cls is None else [p for p in registry.own_platforms(cls) if is_platform(p)]


def following(model: str, platform: str, before: str = "") -> str:
    """The platform that goes with another runtime than the one ``before``: the same where it is one of its own, or where both runtimes come
    from the same machines, else its first own one."""
    own = own_platforms(model)
    stays = not own or platform in own or bool(set(own) & set(own_platforms(before)))
    return platform if stays else own[0]


def with_platforms(query: Query, controls: Sequence[Control], *prefixes: str) -> Query:
    """A link that names one runtime and no platform means what choosing it on the page does: see `following`.

    ``controls``: of the page, for its defaults. ``prefixes``: of the keys, of further runtimes.
    """
    default = {c.key: c.default for c in controls}
    for prefix in ("", *prefixes):
        model, platform = f"{prefix}model", f"{prefix}platform"
        if len(query.all(model)) == 1 and platform not in query:
            before = default[model] if isinstance(default[model], str) else default[model][0]
            there = following(query[model], default[platform], before)
            query = query.also(platform, there) if there != default[platform] else query
    return query


def models() -> Options:
    """Every runtime."""
    return [{"value": name, "label": f"{cls.title} ({name})"} for name, cls in registry.models().items()]


def platforms(current: str = "") -> Options:
    """Every platform, two of every host of the library on Fast Ethernet, and the ``current`` composition, which an address may name."""
    found = {name: platform.title for name, platform in registry.platforms().items()}
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
