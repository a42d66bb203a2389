"""Declarations of hosts, links and media: complete, and the only place that says what a value may be."""

from __future__ import annotations

import re
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any

import pytest
from cases import for_each
from refusals import refused

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError
from retrompi.spec import registry
from retrompi.spec.compiled import cpp
from retrompi.spec.declare.fields import Use, fields_of, quantities, used_by
from retrompi.spec.host import Host
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.platform_file import load
from retrompi.spec.media import MEDIA, Broadcast, Medium, OneSided, Ring, Stream, WaitPolicy

DECLARATIONS = (Host, Link, WaitPolicy, OneSided, Broadcast, *MEDIA.values())
FIELDS = [(cls, f) for cls in DECLARATIONS for f in fields_of(cls).values()]
QUANTITIES = [(cls, f) for cls, f in FIELDS if f.is_quantity]


def _wrong(f: Any) -> list[str]:
    """Texts that a field's declaration refuses."""
    if f.kind == "flag":
        return ["2", "0.5", "yes"]
    unit = "" if units.canonical(f.unit) in ("1", "probability") else f" {f.unit}"
    out = ["much", f"1 {'s' if f.unit != 's' else 'B'}"]
    if f.kind == "whole":
        out += ["1.5", f"{(f.low or 0) - 1:g}"]
    if f.above is not None:
        out.append(f"{f.above:g}{unit}")
    if f.low:
        out.append(f"{f.low / 2:g}{unit}")
    if f.high is not None:
        out.append(f"{2 * f.high:.17g}{unit}")
    if f.kind == "quantity":
        out.append(f"{10 * units.WIDEST[units.canonical(f.unit)][1]:g}{unit}")
    return out


def _right(f: Any) -> str:
    unit = "" if units.canonical(f.unit) in ("1", "probability") else f" {f.unit}"
    return f"{max(1.0, f.low or 0):g}{unit}"


@for_each("cls, f", FIELDS)
def test_says_what_it_is(cls: type, f: Any) -> None:
    assert f.help
    assert f.kind in ("quantity", "whole", "flag", "choice", "word", "other")
    assert not f.is_quantity or units.check_unit(f.unit)
    assert f.kind != "choice" or (f.choices and f.bounds)
    assert f.kind not in ("whole", "flag") or f.bounds
    assert all(isinstance(use, Use) for use in f.used_by)
    assert "declared" in {x.name: x for x in dataclass_fields(cls)}[f.name].metadata
    assert cls is not Host or not f.is_quantity or f.area
    if cls is Host and f.is_quantity and not f.optional:
        assert f.check(f.parse(f.plain, f.name), f.name) is not None


@for_each("cls, f", QUANTITIES)
def test_bounds_hold(cls: type, f: Any) -> None:
    assert f.parse(_right(f), f.name) == max(1.0, f.low or 0)
    for text in _wrong(f):
        with pytest.raises(UsageError) as caught:
            f.parse(text, f"{cls.__name__}.{f.name}")
        assert str(caught.value).startswith(f"{cls.__name__}.{f.name}: "), text


@for_each("name", MEDIA)
def test_a_key_of_another_medium_is_an_error(name: str) -> None:
    cls = MEDIA[name]
    needed: dict[str, Any] = {n: 1.0 for n, f in quantities(cls).items() if not f.optional}
    needed |= {n: () for n, f in fields_of(cls).items() if f.kind == "other" and not f.optional and n != "between"}
    medium = cls(("rank", "rank"), **needed)
    assert medium.to_engine()["medium"] == name
    for other in MEDIA.values():
        for foreign in fields_of(other).keys() - fields_of(cls).keys():
            with pytest.raises(TypeError, match=foreign):
                cls(("rank", "rank"), **needed, **{foreign: 1})
    with pytest.raises(TypeError):
        cls(("rank", "rank"), **{k: v for k, v in needed.items() if k != "packet"})


def test_values_of_media_are_checked() -> None:
    for wrong in ({"slots": 0}, {"slots": 2.5}, {"cores": 2}, {"header": -1.0}, {"packet": 0}, {"lines_in": -1}):
        code = "bad-value" if "cores" in wrong else "out-of-range"
        with refused(UsageError, f"{code} | ring | {next(iter(wrong))}"):
            Ring(("rank", "rank"), **({"packet": 64, "header": 8, "slots": 1} | wrong))
    with refused(UsageError, "unknown-name | kind | 'sleep' | spin_yield"):
        WaitPolicy(kind="sleep")
    with refused(UsageError, "out-of-range"):
        WaitPolicy(kind="spin", look_every=2)
    with refused(UsageError, "out-of-range | first_read"):
        Stream(("rank", "rank"), packet=64, header=8, call=0.0, io="async")


WRONG = [("dup_acks", "0", "out-of-range"), ("quantum_carry", "2", "bad-value"), ("rto_min", "0 ms", "out-of-range"),
         ("cores", "1.5", "out-of-range"), ("tick", "5", "bad-unit")]


@for_each("key, text, code", WRONG)
def test_refused_alike_in_a_file_by_set_and_in_a_fit(key: str, text: str, code: str, tmp_path: Any) -> None:
    room = registry.platform("nt-pair")
    with refused(UsageError, f"{code} | {key}"):
        room.with_overrides({f"host.{key}": text})
    assert room.path is not None
    lines = room.path.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if re.match(rf"{key}\s*=", line))
    changed = [*lines[:at], f'{key} = {{ value = "{text}", source = "assumed: a test" }}', *lines[at + 1 :]]
    (tmp_path / "own.toml").write_text("\n".join(changed), encoding="utf-8")
    with refused(InputError, f"{code} | {key}") as caught:
        load(tmp_path / "own.toml")
    assert caught.value.line == at + 1
    fitted = f"{room.hosts[0].name}.{key}"
    waiting = replace(room, quantities={**room.quantities, fitted: replace(room.quantities[fitted], source="fit:own.fit.toml")})
    (tmp_path / "own.fit.toml").write_text(f'[fit.values]\n"{fitted}" = "{text}"\n', encoding="utf-8")
    with refused(InputError, f"{code} | {key}"):
        waiting.with_fit(tmp_path / "own.fit.toml")


def test_used_by() -> None:
    assert "loopback_mss" in used_by(Host, {Use.TCP_LOCAL})
    assert "loopback_mss" not in used_by(Host, {Use.TCP_REMOTE})
    assert {"quantum", "tick", "cores"} <= set(used_by(Host, ()))
    named = {use for cls in (Host, Link) for f in fields_of(cls).values() for use in f.used_by}
    assert named == set(Use), "every kind of work is what some number is for"


def test_the_engine_has_every_field() -> None:
    text = cpp.header()
    for cls in DECLARATIONS:
        for f in fields_of(cls).values():
            if f.cpp:
                assert re.search(rf"^  \S.*\b{f.name}\b.*;  // {re.escape(f.help)}", text, re.MULTILINE), f"{cls.__name__}.{f.name}"
    assert set(MEDIA) == {cls.name for cls in MEDIA.values()}
    assert all(issubclass(cls, Medium) for cls in MEDIA.values())
