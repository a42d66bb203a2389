"""Overrides in the form of the command line: ``--set KEY=VALUE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrompi.base.errors import UsageError

__all__ = ["parse_sets"]


def parse_sets(sets: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """``["wmpi.pool=10MiB", ...]`` -> ``{"wmpi.pool": "10MiB"}``; the last of equal keys wins.

    Raises UsageError for an item that is not KEY=VALUE.
    """
    if isinstance(sets, Mapping):
        return {str(k).strip(): str(v).strip() for k, v in sets.items()}
    pairs: dict[str, str] = {}
    for item in sets:
        key, equals, text = item.partition("=")
        if not equals or not key.strip() or not text.strip():
            raise UsageError(f"'--set {item}' is not KEY=VALUE; example: --set wmpi.pool=10MiB", code="bad-syntax")
        pairs[key.strip()] = text.strip()
    return pairs
