"""Reading files of quantities, each an inline table with value and source: platforms, and the hosts and networks of the library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrompi.base import names, paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec.declare.fields import Field
from retrompi.spec.declare.sources import wrong_source
from retrompi.spec.technology import TECHNOLOGIES

__all__ = ["CARD", "LINK", "LONGEST_HOST", "Quantity", "Reader", "fit_values", "fits_at_hand", "with_fitted"]

LONGEST_HOST = 40
"""Characters of a host's name, at most: a process is named after its role, its host and its job, in `names.LONGEST` characters."""
LINK, CARD = -1, -2
"""The tables ``[link]`` and ``[card]``, where a number of 0 or more is that of a ``[[host]]``."""
_HEADS = {LINK: "[link]", CARD: "[card]"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One value with its provenance: ``text`` as written, ``low``..``high`` its sourced range (base units)."""

    value: float
    unit: str
    text: str
    source: str
    help: str
    low: float | None = None
    high: float | None = None


class Reader:
    """Reads one TOML file; every error names file and line."""

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self.text, self.data = toml_text.read(path, what)

    def fail(self, message: str, key: str = "", table: int | None = None, code: str | None = None) -> InputError:
        return InputError(message, self.path, self.line(key, table), code=code)

    def line(self, key: str, table: int | None) -> int | None:
        """The line of ``key`` before the first table (``table`` None), in host number ``table``, or in `LINK` or `CARD`."""
        section = "" if table is None else _HEADS.get(table, "[[host]]")
        wanted, seen, inside, start = (table or 0), -1, section == "", None
        for number, raw in enumerate(self.text.splitlines(), 1):
            line = raw.strip()
            if line.startswith("["):
                head = line.split("#")[0].replace(" ", "").strip()
                seen += head == "[[host]]"
                inside = head == section and (section != "[[host]]" or seen == wanted)
                start = number if inside else start
            elif inside and key and re.match(rf"[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
                return number
        return start

    def string(self, given: Mapping[str, Any], key: str, table: int | None = None) -> str:
        value = given.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(f"'{key}' is missing or not a text", key, table, code="missing-key")
        if key == "name":
            try:
                names.check_name("a platform" if table is None else "a host", value, names.LONGEST if table is None else LONGEST_HOST)
            except UsageError as error:
                raise self.fail(str(error), key, table, code=error.code) from None
        return value

    def quantity(self, field: Field, entry: Any, table: int | None) -> Quantity:
        key = field.name
        example = f'{key} = {{value = "...", source = "doc:..."}}'
        if not isinstance(entry, dict) or not isinstance(entry.get("value"), str | int | float):
            raise self.fail(f"'{key}' is not a table with value and source; write {example}", key, table, code="bad-value")
        unknown = [k for k in entry if k not in ("value", "source", "help", "low", "high")]
        if unknown:
            tail = nearest(unknown[0], ("value", "source", "help", "low", "high"))
            raise self.fail(f"'{key}' has an unknown entry '{unknown[0]}'{tail}", key, table, code="unknown-key")
        source = str(entry.get("source", ""))
        if problem := wrong_source(source):
            raise self.fail(f"the source of '{key}' {problem}", key, table, code="bad-source")
        numbers: dict[str, float | None] = {}
        try:
            for name in ("value", "low", "high"):
                given = entry.get(name)
                numbers[name] = None if given is None else field.parse(str(given), name)
        except UsageError as error:
            raise self.fail(f"'{key}': {error}", key, table, code=error.code) from None
        value, low, high = numbers["value"] or 0.0, numbers["low"], numbers["high"]
        if (low is not None and value < low) or (high is not None and value > high):
            raise self.fail(f"the value of '{key}' lies outside its own low..high", key, table, code="out-of-range")
        text = str(entry["value"])
        return Quantity(value, units.canonical(field.unit), text, source, str(entry.get("help", field.help)), low, high)

    def table(self, given: Mapping[str, Any], keys: Mapping[str, Field], plain: tuple[str, ...], table: int | None) -> dict[str, Quantity]:
        for key in given:
            if key not in keys and key not in plain:
                raise self.fail(f"unknown key '{key}'{nearest(key, [*keys, *plain], 40)}", key, table, code="unknown-key")
        return {k: self.quantity(f, given[k], table) for k, f in keys.items() if k in given}


    def technology(self, link: Mapping[str, Any], table: int | None, default: str = "") -> str:
        """``technology`` of a [link]; ``default`` where it is not declared. InputError for one that does not exist."""
        if "technology" not in link:
            return default
        found = self.string(link, "technology", table)
        if found not in TECHNOLOGIES:
            raise self.fail(f"no technology '{found}'{nearest(found, TECHNOLOGIES)}", "technology", table, code="bad-value")
        return found


def fit_values(file: Path) -> dict[str, str]:
    """The results of calibrations, the tables ``[BY.values]`` of ``file`` together. Raises InputError if it cannot be read."""
    try:
        return {str(k): str(v) for told in toml_text.read(file, "fit")[1].values() for k, v in told["values"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"cannot read this fit: {error}; make it again with 'retrompi calibrate'", file, code="unreadable-file"
        ) from None


def fits_at_hand(owner: str, file: Path) -> list[tuple[Path, dict[str, str]]]:
    """(``fit.toml``, key -> value) of each paper at hand with a fit of ``owner``, which is in ``file`` and so not in the paper's folder.

    Such a fit has ``OWNER.KEY``; what it says is in force while the paper is worked with. A file that is not there has no values.
    """
    found = []
    for folder in paths.at_hand():
        if not file.resolve().is_relative_to(folder.resolve()):
            fit = folder / "fit.toml"
            values = fit_values(fit) if fit.is_file() else {}
            found.append((fit, {k.removeprefix(f"{owner}."): v for k, v in values.items() if k.startswith(f"{owner}.")}))
    return found


def with_fitted(old: Quantity, field: Field, key: str, text: str, owner: str, by: str = "") -> Quantity:
    """A quantity of ``owner`` with its fitted value; ``by``: the paper at hand whose fit it is, which may also fit what is assumed.

    Raises UsageError if it is not fitted, or the value is outside its sourced range.
    """
    if not old.source.startswith(("fit:", "assumed:") if by else "fit:"):
        raise UsageError(f"'{key}' is not a fitted quantity of {owner}", code="unknown-parameter")
    value = field.parse(text, key)
    slack = 1e-6 * value  # the text is rounded
    if (old.low is not None and value < old.low - slack) or (old.high is not None and value > old.high + slack):
        raise UsageError(f"{key} = {text} lies outside its sourced range", code="out-of-range")
    return replace(old, value=value, text=text, source=f"fit:{by}/fit.toml" if by else old.source)
