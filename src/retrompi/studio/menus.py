"""Menu options: runtimes and platforms by title, with the names used on the command line."""

from __future__ import annotations

from retrompi.spec import registry

__all__ = ["models", "modes", "platforms"]

Options = list[dict[str, str]]


def models() -> Options:
    """Every runtime."""
    return [{"value": name, "label": f"{cls.title} ({name})"} for name, cls in registry.models().items()]


def platforms() -> Options:
    """Every platform."""
    return [{"value": name, "label": f"{room.title} ({name})"} for name, room in registry.platforms().items()]


def modes(shared: str, distributed: str) -> Options:
    """The two placements of every platform, with their descriptions."""
    return [{"value": "shared", "label": f"shared: {shared}"}, {"value": "distributed", "label": f"distributed: {distributed}"}]
