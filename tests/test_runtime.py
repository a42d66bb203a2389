"""A model's contract: parameters, fits, overrides, and what was read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi.base.errors import InputError, UsageError
from retrompi.spec import registry
from retrompi.spec.compiled.compile import compile_runtime, refuse, unused_overrides
from retrompi.spec.layout import Layout
from retrompi.spec.model import Param, RuntimeModel, model_values, parse_sets
from retrompi.spec.registry import resolve
from retrompi.spec.values import Values
from retrompi.traces.calls import PINGPONG


@pytest.fixture
def model(toy: Path) -> type[RuntimeModel]:
    return registry.model(str(toy))


@pytest.fixture
def variant(toy: Path) -> type[RuntimeModel]:
    return registry.model(f"{toy}:spinning")


@for_each(
    "arguments, says",
    [
        ({"source": "somewhere"}, "must begin paper: doc: code: fit: assumed:"),
        ({"source": "paper:"}, "must begin"),
        ({"default": "16 s"}, "wrong unit"),
        ({"default": "16 KB"}, "ambiguous"),
        ({"unit": "furlong"}, "the unit 'furlong' valid: B, s,"),
        ({"unit": "choice"}, "needs choices"),
        ({"help": " "}, "the help is empty"),
        ({"low": "32 KiB"}, "outside range 32 KiB..?"),
        ({"high": "8 KiB"}, "outside range ?..8 KiB"),
        ({"high": "8 s"}, "wrong unit 's'"),
        ({"choices": ("a", "b")}, "is no choice; valid: a, b"),
    ],
)
def test_a_wrong_param_fails_where_it_is_declared(arguments: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"default": "16 KiB", "unit": "B", "help": "packet", "source": "assumed: test"} | arguments
    with pytest.raises(ValueError, match=re.escape(says)):
        Param(given.pop("default"), given.pop("unit"), given.pop("help"), **given)


def test_plain_numbers_and_choices() -> None:
    assert Param(2, "count", "copies", source="assumed: test").parse("2") == 2
    assert Param(0.25, "probability", "loss", source="assumed: test").parse("5%") == 0.05
    assert Param("spin", "choice", "wait", source="assumed: test", choices=("spin", "block")).unit == "choice"


def test_a_model_needs_its_texts() -> None:
    with pytest.raises(ValueError, match="'years' is missing"):
        type("M", (RuntimeModel,), {"name": "m", "title": "t", "version": "1", "summary": "s"})
    with pytest.raises(ValueError, match="variant_note"):
        type("M", (RuntimeModel,), {"name": "m:x", "title": "t", "version": "1", "years": "1997", "summary": "s"})


def test_defaults(model: type[RuntimeModel]) -> None:
    values = model_values(model)
    assert values.as_dict() == {"packet": 16384, "call": 1e-5, "wait": "block"}
    assert values.settings["call"].source == "assumed: not fitted yet (range 5 us..50 us)"
    assert [row["name"] for row in values.describe()] == ["packet", "call", "wait"]


def test_values_note_what_was_read(model: type[RuntimeModel]) -> None:
    values = model_values(model, ["packet=1MiB"])
    assert values.unread() == ["packet", "call", "wait"]
    assert values.overridden() == ["packet"]
    assert values.packet == 2**20
    assert values["call"] == 1e-5
    assert values.unread() == ["wait"]
    with values.reading("calls"):
        assert values["call"] == 1e-5
    assert values.readers("call") == {"", "calls"}
    assert values.fresh().read() == set()
    assert dict(model_values(model)) == model_values(model).as_dict()
    with pytest.raises(AttributeError, match="no parameter 'packt'; did you mean 'packet'"):
        _ = values.packt
    with pytest.raises(KeyError):
        _ = values["packt"]


def test_a_variant_overrides_only_what_differs(model: type[RuntimeModel], variant: type[RuntimeModel]) -> None:
    assert variant.variant_of == "toy"
    assert list(variant.params()) == list(model.params())
    assert variant.params()["packet"] is model.params()["packet"]
    assert model_values(variant).as_dict() == {**model_values(model).as_dict(), "wait": "spin"}
    assert variant.hash() != model.hash()


def test_overrides_reach_model_and_platform(model: type[RuntimeModel], variant: type[RuntimeModel]) -> None:
    values, room = resolve(
        model, "nt-pair", ["toy.packet=1MiB", "wait=spin", "platform.host.cores=2", "platform.server.quantum=20ms"]
    )
    assert (values.packet, values.wait) == (2**20, "spin")  # outside the sourced range: that is what a what-if is for
    assert values.settings["packet"].overridden
    assert values.settings["packet"].source == "assumed: set by the user (was 16 KiB, assumed: for tests)"
    assert [h.cores for h in room.hosts] == [2, 2]
    assert [h.quantum for h in room.hosts] == [0.02, 0.04]
    for key in ("toy.packet", "toy:spinning.packet", "spinning.packet", "packet"):
        assert resolve(variant, "nt-pair", {key: "2 KiB"})[0].packet == 2048
    assert resolve(model, "nt-pair", ["packet=1KiB", "toy.packet=2KiB"])[0].packet == 2048


@for_each(
    "item, says",
    [
        ("packt=1KiB", "unknown-parameter | 'toy' | 'packt' | 'packet'"),
        ("toy.packt=1KiB", "unknown-parameter | 'toy.packet'"),
        ("other.packet=1KiB", "unknown-parameter | 'other.packet' | 'toy.packet'"),
        ("packet=1 s", "bad-unit | '1 s'"),
        ("packet=1MB", "bad-unit | '1MB' | 'MB'"),
        ("toy.packet=5ms", "bad-unit | toy.packet | '5ms' | 'ms'"),
        ("wait=spinn", "unknown-name | 'spinn' | 'spin'"),
        ("platform.host.qantum=1ms", "unknown-parameter | 'platform.host.quantum'"),
        ("platform=1", "unknown-parameter | 'platform'"),
        ("packet", "bad-syntax | KEY | VALUE"),
        ("=1", "bad-syntax | KEY | VALUE"),
        ("packet=", "bad-syntax | KEY | VALUE"),
    ],
)
def test_wrong_overrides(model: type[RuntimeModel], item: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(model, "nt-pair", [item])
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)


def test_parse_sets() -> None:
    assert parse_sets([" a = 1 ", "b=c=d", "a=2"]) == {"a": "2", "b": "c=d"}
    assert parse_sets({"a": " 1 "}) == {"a": "1"}


@given(st.text(max_size=40))
def test_any_override_is_accepted_or_one_line(text: str) -> None:
    class Plain(RuntimeModel):
        name, title, version, years, summary = "plain", "t", "1", "1997", "s"
        packet = Param("16 KiB", "B", "packet", source="assumed: test")

    try:
        values, _ = resolve(Plain, "nt-pair", [text])
    except UsageError as error:
        line = str(error)
    else:
        line = "accepted"
        assert text.partition("=")[0].strip().removeprefix("plain.") == "packet"
        assert values.packet >= 0
    assert len(line.splitlines()) == 1


def test_an_override_without_effect_is_an_error(model: type[RuntimeModel]) -> None:
    def check(placement: list[int], *sets: str) -> None:
        values, room = resolve(model, "nt-pair", sets)
        found = compile_runtime(model, values, Layout(room, placement), PINGPONG)
        refuse(unused_overrides(model, values, found, PINGPONG))

    check([0, 0], "call=20us")
    check([0, 1], "platform.workstation.quantum=20ms", "platform.link.bandwidth=10Mbps")
    check([0, 0], "platform.host.quantum=20ms")
    for item in ("platform.workstation.quantum=20ms", "platform.link.bandwidth=10Mbps", "platform.host.nic_rate=10MB/s"):
        with refused(UsageError, f"idle-override | {item.partition('=')[0]}"):
            check([0, 0], item)


FIT = """
[toy.values]
call = "12.5 us"
[toy.residuals]
"BF-SM-01" = 0.0
["toy:spinning".values]
call = "30 us"
"""


def test_a_fit_gives_the_value(toy: Path, model: type[RuntimeModel], variant: type[RuntimeModel]) -> None:
    (toy / "fit.toml").write_text(FIT)
    assert model_values(model).call == 12.5e-6
    assert model_values(model).settings["call"].source == "fit:fit.toml [toy]"
    assert model_values(variant).call == 30e-6
    assert resolve(model, "nt-pair", ["call=20us"])[0].call == 20e-6
    before = model.hash()
    (toy / "fit.toml").write_text('[toy.values]\ncall = "13.5 us"\n')  # another length is another file even within a tick
    assert model_values(model).call == 13.5e-6
    assert model_values(variant).call == 13.5e-6  # the variant has no fit of its own: its parent's
    assert model.hash() != before


@for_each(
    "text, says",
    [
        ('[toy.values]\ncall = "60 us"', "out-of-range | 5 us | 50 us"),
        ('[toy.values]\ncall = "60"', "bad-unit"),
        ('[toy.values]\ncal = "6 us"', "unknown-parameter | 'call'"),
        ('[toy.values]\npacket = "6 KiB"', "unknown-parameter"),
        ("[toy", "unreadable-file"),
        ("toy = 1", "bad-fit"),
    ],
)
def test_a_wrong_fit_is_told_by_file(toy: Path, model: type[RuntimeModel], text: str, says: str) -> None:
    (toy / "fit.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        model_values(model)
    assert str(caught.value).startswith(str(toy / "fit.toml"))
    agrees(caught.value, says)


def test_compile_must_be_defined() -> None:
    with pytest.raises(NotImplementedError):
        RuntimeModel().compile(Values("m", {}, {}), Layout(registry.platform("nt-pair"), [0]), {"calls"})
