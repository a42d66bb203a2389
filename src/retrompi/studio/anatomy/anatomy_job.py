"""The job of the anatomy page, independent of Dash, whose import takes a process long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import _
from retrompi.base.units import format_bytes, parse_sizes
from retrompi.sim import simulate
from retrompi.sim.cautions import calibration, of_question, split
from retrompi.sim.resolved import Resolved, place
from retrompi.spec import registry
from retrompi.spec.compiled.compile import compile_runtime
from retrompi.spec.layout import Layout
from retrompi.spec.model import resolve
from retrompi.spec.question import Message, Question
from retrompi.studio.anatomy import path_words, scene
from retrompi.traces.calls import PINGPONG

__all__ = ["LARGEST", "parameters", "scenes", "sets_of", "size_of", "travel"]

LARGEST = 16 << 20
"""Bytes of the longest message that is drawn."""


def size_of(written: str) -> int:
    """A single size with its unit in bytes. Raises UsageError for several sizes or one above `LARGEST`."""
    found = parse_sizes(written)
    if len(found) != 1:
        raise UsageError(f"'{written[:60]}': give one size", code="bad-size")
    if found[0] > LARGEST:
        raise UsageError(
            f"{format_bytes(found[0])} is longer than the longest message drawn here, {format_bytes(LARGEST)}", code="out-of-range"
        )
    return found[0]


def sets_of(written: str) -> list[str]:
    """``a=1, b=2`` as a list of overrides."""
    return [part.strip() for part in written.replace(";", ",").split(",") if part.strip()]


def travel(report: Any, wanted: list[dict[str, str]], way: str) -> list[dict[str, Any]]:
    """The display of each message: its scene, hops, sums and parameters; or how its PingPong ended, if it did not complete."""
    out = []
    for i, one in enumerate(wanted):
        report(i, len(wanted), registry.model(one["model"]).title)
        out.append(_one(one, 0 if way == "there" else 1))
    return out


def scenes(report: Any, wanted: list[dict[str, str]], way: str) -> list[dict[str, Any]]:
    """The scenes alone, each with the runtime and the platform that it rests on; of a message that does not arrive there is none."""
    shown = zip(wanted, travel(report, wanted, way), strict=True)
    return [{"model": one["model"], "platform": one["platform"], "scene": m["scene"]} for one, m in shown if "scene" in m]


def _one(one: Mapping[str, str], direction: int) -> dict[str, Any]:
    sets, size = sets_of(one["set"]), size_of(one["size"])
    title = (_("{runtime}, {mode}, {size}, what if") if sets else _("{runtime}, {mode}, {size}")).format(
        runtime=registry.model(one["model"]).title, mode=one["mode"], size=format_bytes(size)
    )
    beyond = calibration(one["model"], one["platform"], sizes=[size], ranks=2, sets=sets)
    asked = Resolved.of(Question(one["model"], one["platform"], Message(size), one["mode"], sets))
    platform = registry.platform(one["platform"])
    shown: dict[str, Any] = {"title": title, "platform": platform.title, "parameters": parameters(one, sets)}
    shown |= split([*of_question(asked), *beyond])
    try:
        told = simulate.message_path(asked)
    except simulate.SimulationEnded as ended:
        return {**shown, "ended": str(ended)}
    chain = told.directions[direction].chain
    return {
        **shown,
        "way": direction,
        "legs": [way.took for way in told.directions],
        "scene": scene.scene(told, direction, title=title, wire=_("the wire ({kind})").format(kind=platform.link.kind)),
        "bars": scene.bars(chain),
        "hops": [
            {"begin": h.begin, "took": h.took, "where": h.where, "stage": h.stage, "what": h.what, "times": h.times}
            for h in path_words.hops(told, direction)
        ],
    }


def parameters(one: Mapping[str, str], sets: list[str]) -> list[dict[str, Any]]:
    """The parameters that affect this path, with their sources, overridden ones first: another value changes the channel specifications."""
    cls = registry.model(one["model"])
    base = registry.platform(one["platform"])
    values, platform = resolve(cls, base, sets)
    placement = place(platform, one["mode"], 2)

    def rows_of(changed: list[str]) -> dict[str, Any] | None:
        try:
            return compile_runtime(cls, resolve(cls, base, [*sets, *changed])[0], Layout(platform, placement), PINGPONG).rows
        except RetrompiError:
            return None

    plain = rows_of([])
    out = []
    for r in values.describe():
        others = [c for c in r["choices"] or () if c != r["value"]] or [_other(r["value"], r["unit"])]
        if r["overridden"] or any(rows_of([f"{r['name']}={o}"]) != plain for o in others):
            name = f"{cls.name.partition(':')[0]}.{r['name']}"
            written = re.sub(r" us\b", " µs", str(r["text"]))
            out.append({"name": name, "text": written, "help": r["help"], "source": r["source"], "set": r["overridden"]})
    return sorted(out, key=lambda r: not r["set"])


def _other(value: Any, unit: str) -> str:
    """A different value of a quantity, as a text with its unit."""
    if not isinstance(value, (int, float)):
        return str(value)
    if unit == "probability":
        return "0.5" if value != 0.5 else "0.25"
    plain = "" if unit in ("1", "count") else " " + unit
    return f"{2 * value + 1:.0f}{plain}" if unit in ("1", "count", "B") else f"{2 * value or 1:.12g}{plain}"
