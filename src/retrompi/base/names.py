"""Names that a user gives: of studies, models, platforms, hosts, scenarios, labs, tags."""

from __future__ import annotations

from retrompi.base.errors import UsageError

__all__ = ["LONGEST", "check_name"]

LONGEST = 80
"""Characters of a name, at most: what the store's columns hold (`retrompi.store.schema`)."""


def check_name(what: str, name: str, most: int = LONGEST) -> str:
    """``name``, or UsageError when it is empty, longer than ``most`` characters, or has one that cannot be printed (control characters,
    those that turn the direction of writing, NUL)."""
    if not name.strip():
        raise UsageError(f"the name of {what} is empty", code="bad-name")
    if len(name) > most:
        raise UsageError(f"the name of {what} has {len(name)} characters; {most} are the most: '{name[:40]}…'", code="bad-name")
    if not name.isprintable():
        odd = next(c for c in name if not c.isprintable())
        raise UsageError(f"the name of {what} holds the unprintable character U+{ord(odd):04X}: {name!a}", code="bad-name")
    return name
