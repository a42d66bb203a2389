"""Effects of changing one value of a platform on others: a line for each base that was set, on what followed it and what did not."""

from __future__ import annotations

from collections.abc import Collection

from retrompi.spec.hosts import EVERY_HOST
from retrompi.spec.platform import Platform, following

__all__ = ["lines"]


def lines(before: Platform, after: Platform, used: Collection[str]) -> list[str]:
    """One line for each value that was set and from which others derive: those that followed, and those that did not.

    ``before`` and ``after`` are the platform without and with the overrides; ``used`` are the paths of the values (``platform.link.mtu``,
    ``platform.host.flops``) that the run uses. What the run does not use is not mentioned, nor a value that was set to what it is.
    """
    by_base: dict[str, list[str]] = {}
    for path in sorted(after.overridden):
        owner, _, key = path.rpartition(".")
        base = path if owner == "link" else key
        if following(base) and _differs(before, after, path):
            by_base.setdefault(base, []).append(owner)
    return [line for base, owners in by_base.items() if (line := _line(base, owners, before, after, used))]


def _differs(before: Platform, after: Platform, path: str) -> bool:
    return before.quantity(path).value != after.quantity(path).value


def _line(base: str, owners: list[str], before: Platform, after: Platform, used: Collection[str]) -> str:
    hosts = [h.name for h in after.hosts[:1]] if EVERY_HOST in owners else owners if "link" not in owners else [h.name for h in after.hosts]
    found: dict[bool, list[str]] = {True: [], False: []}
    for name, _ in following(base):
        mine = [h for h in hosts if f"platform.{h}.{name}" in used or f"platform.{EVERY_HOST}.{name}" in used]
        mine = [h for h in mine if f"{h}.{name}" in after.quantities and not {f"{h}.{name}", f"{EVERY_HOST}.{name}"} & after.overridden]
        if mine:
            found[any(_differs(before, after, f"{h}.{name}") for h in mine)].append(name)
    named = f"platform.{base}" if "link" in owners else f"platform.{owners[0] if len(owners) == 1 else EVERY_HOST}.{base}"
    told = [f"{', '.join(found[True])} followed it"] if found[True] else []
    told += [f"did not follow: {', '.join(found[False])} (values of their own; set them too if they change)"] if found[False] else []
    return f"{named} was set; {'; '.join(told)}" if told else ""
