"""The parameters of a model with the values in force, recording which of them a run reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from retrompi.base.errors import nearest
from retrompi.spec.declare.param import Param

__all__ = ["Setting", "Values"]


@dataclass(frozen=True, slots=True)
class Setting:
    """The value in force of a parameter (base unit or word), its text and its source."""

    value: float | str
    text: str
    source: str
    overridden: bool = False


class Values(Mapping[str, "float | str"]):
    """Resolved parameters: ``p.packet`` or ``p["packet"]`` is a float in its base unit, or a word.

    Costs of a host (`Param.on`) are handed out in seconds of the reference host, as the engine takes them: ``factors`` gives what each is
    multiplied by. Everything else (`settings`, `as_dict`, `describe`) is in the form in which the parameter is declared.

    Every read is recorded with the part of the runtime being compiled (`reading`), so that an override that a run does not use can be
    refused with the reason. Iterating over names, `settings` and `as_dict` are not recorded as reads.
    """

    __slots__ = ("_factors", "_params", "_part", "_read", "_settings", "model")

    def __init__(
        self, model: str, params: Mapping[str, Param], settings: Mapping[str, Setting], factors: Mapping[str, float] | None = None
    ) -> None:
        self.model = model
        self._params = dict(params)
        self._settings = dict(settings)
        self._factors = factors or {}
        self._read: dict[str, set[str]] = {}
        self._part = ""

    def __getitem__(self, name: str) -> float | str:
        setting = self._settings[name]
        self._read.setdefault(name, set()).add(self._part)
        factor = self._factors.get(name)
        return setting.value if factor is None else float(setting.value) * factor

    @contextmanager
    def reading(self, part: str) -> Iterator[None]:
        """Records reads within the context as those of a ``part`` of the runtime."""
        before, self._part = self._part, part
        try:
            yield
        finally:
            self._part = before

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            tail = nearest(name, self._settings)
            raise AttributeError(f"model '{self.model}' has no parameter '{name}'{tail}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Name -> value, text, source, overridden."""
        return self._settings

    def as_dict(self) -> dict[str, float | str]:
        """Name -> value, without recording reads."""
        return {k: s.value for k, s in self._settings.items()}

    def read(self) -> set[str]:
        """The names that have been read."""
        return set(self._read)

    def readers(self, name: str) -> set[str]:
        """The parts of the runtime that have read a parameter."""
        return set(self._read.get(name, ()))

    def unread(self) -> list[str]:
        """The names not read yet, in declaration order."""
        return [k for k in self._settings if k not in self._read]

    def overridden(self) -> list[str]:
        """The names that the user has set, in declaration order."""
        return [k for k, s in self._settings.items() if s.overridden]

    def fresh(self, choices: Mapping[str, str] | None = None) -> Values:
        """The same values without recorded reads, with ``choices`` replacing parameters that are words."""
        other = {k: Setting(v, v, "assumed: tried", True) for k, v in (choices or {}).items()}
        return Values(self.model, self._params, {**self._settings, **other}, self._factors)

    def without(self, name: str, defaults: Values) -> Values:
        """The same values without recorded reads, that of ``name`` from ``defaults``. An algorithm that has none there is the
        model's again."""
        before = defaults._settings.get(name)
        settings = {k: s for k, s in self._settings.items() if k != name} if before is None else {**self._settings, name: before}
        return Values(self.model, self._params, settings, self._factors)

    def describe(self) -> list[dict[str, Any]]:
        """Rows name, value, text, unit, source, help, low, high, choices, cost, overridden for cards and tables."""
        return [
            {
                "name": name,
                "value": setting.value,
                "text": setting.text,
                "unit": self._params[name].unit,
                "source": setting.source,
                "help": self._params[name].help,
                "low": self._params[name].low,
                "high": self._params[name].high,
                "choices": self._params[name].choices,
                "cost": self._params[name].cost_text,
                "overridden": setting.overridden,
            }
            for name, setting in self._settings.items()
        ]
