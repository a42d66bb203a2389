"""Every parameter of every runtime on every platform is used by a run, or its override is refused with the reason.

What a run uses is what the engine is given: a used parameter changes the channel specifications or hosts that it runs from, an unused one
changes nothing of them. Numbers of a platform are held against simulations: one that a run does not use changes no picosecond.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.spec import registry
from retrompi.spec.compile import Calls, Compiled, compile_runtime, refuse_unused
from retrompi.spec.layout import Layout
from retrompi.spec.model import Param, RuntimeModel, Values, resolve
from retrompi.spec.platform import Platform
from retrompi.traces.calls import PINGPONG

MODES = {"shared": [0, 0], "distributed": [0, 1], "both": [0, 0, 1]}
MORE = Calls(
    frozenset({"init", "send", "recv", "compute", "iprobe", "put", "get", "win_fence", "bcast", "finalize"}), False, start_up=True, failures=True
)
"""A program that needs every part of a runtime."""
PLATFORMS = [p for p in registry.platform_names() if len(registry.platform(p).hosts) >= 2]


def other_value(param: Param, value: float | str) -> str:
    """Another value of a parameter, inside its range where it has one."""
    if param.choices:
        return next(c for c in param.choices if c != value)
    low, high = param.low, param.high
    assert not isinstance(value, str)
    tried = [v for v in (low, high, value * 2 + (value == 0), value / 2) if v is not None and v != value and (v > 0 or low == 0)]
    plain = "" if param.unit in ("1", "count", "probability") else f" {param.unit}"
    return f"{min(tried[0], 1) if param.unit == 'probability' else int(tried[0]) if param.unit in ('count', 'B') else tried[0]!r}{plain}"


def compiled(cls: type[RuntimeModel], platform: str, placement: list[int], calls: Calls, **sets: str) -> tuple[Compiled, Values]:
    values, room = resolve(cls, platform, sets)
    return compile_runtime(cls, values, Layout(room, placement), calls), values


def what_the_engine_gets(found: Compiled) -> dict[str, Any]:
    """Without the identities that no number of a model decides."""
    return found.rows


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", registry.models())
def test_a_parameter_is_used_or_refused_with_the_reason(name: str, mode: str) -> None:
    cls = registry.models()[name]
    for platform, calls in itertools.product(PLATFORMS, (PINGPONG, MORE)):
        base, values = compiled(cls, platform, MODES[mode], calls)
        short = cls.name.partition(":")[0]
        for key, param in cls.params().items():
            text = other_value(param, values.settings[key].value)
            try:
                found, changed = compiled(cls, platform, MODES[mode], calls, **{key: text})
            except RetrompiError as error:  # refused as a value, before anybody asks what uses it
                assert "\n" not in str(error)
                continue
            if f"{short}.{key}" in found.used:
                refuse_unused(cls, changed, found, calls)
                continue
            assert found.rows == base.rows, (platform, key, text)
            with pytest.raises(UsageError) as caught:
                refuse_unused(cls, changed, found, calls)
            assert caught.value.code == "idle-override"
            said = str(caught.value)
            assert said.startswith(f"{short}.{key} "), said
            assert "\n" not in said


@cache
def _starts(cls: Any, platform: str, mode: str) -> set[str]:
    values, room = resolve(cls, platform)
    layout = Layout(room, MODES[mode])
    with values.reading("start_up"):
        import random

        cls().startup(values, room, layout.placement, random.Random(0))
    return values.read()
