"""Finding models by name and path, and the contract that every model in the repository keeps."""

from __future__ import annotations

import itertools
import json
import random
from itertools import product
from pathlib import Path

import pytest
from cases import for_each
from conftest import cited_ids, reference_ids
from refusals import agrees, refused

from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.spec import registry
from retrompi.spec.compiled.compile import compile_runtime
from retrompi.spec.declare.sources import SOURCE_KINDS
from retrompi.spec.layout import Layout
from retrompi.spec.model import RuntimeModel
from retrompi.spec.registry import resolve

MODELS = registry.models()
PLACEMENTS = ([0, 0], [0, 1], [1, 1])


def test_shipped() -> None:
    assert {"winmpich", "wmpi", "hpvm"} <= set(MODELS)
    for base in ("winmpich", "wmpi", "hpvm"):  # each has at least one rival hypothesis to compare with
        assert any(cls.variant_of == base for cls in MODELS.values())


@for_each("model", MODELS.values)
def test_contract(model: type[RuntimeModel]) -> None:
    assert registry.model(model.name) is model
    assert model.folder().name == model.name.partition(":")[0]
    assert model.params()
    if ":" in model.name:
        assert model.variant_of in MODELS
        assert model.variant_note
    for row in resolve(model, "nt-pair")[0].describe():
        assert row["help"]
        assert row["source"].startswith(SOURCE_KINDS)
        if isinstance(row["value"], float):
            assert row["low"] is None or row["low"] <= row["value"] * (1 + 1e-9)
            assert row["high"] is None or row["value"] <= row["high"] * (1 + 1e-9)


@for_each("model", MODELS.values)
def test_every_number_a_fit_may_move_has_a_range(model: type[RuntimeModel]) -> None:
    for name, param in model.params().items():
        if param.fitted:
            assert None not in (param.low, param.high), name


@for_each("model", MODELS.values)
def test_compile_gives_plain_rows_and_reads_every_parameter(model: type[RuntimeModel]) -> None:
    # A variant need not read what it inherits: overriding that is then an error (`compile.unused_overrides`).
    unread = {k for k, v in model.params().items() if ":" not in model.name or vars(model).get(k) is v}
    # What only one choice of a parameter needs is read when that choice is made.
    choices = [{k: c} for k, v in model.params().items() for c in v.choices or () if c != v.default]
    for platform in registry.platforms():
        for placement, sets in itertools.product(PLACEMENTS, [{}, *choices]):
            if max(placement) >= len(registry.platform(platform).hosts):
                continue
            values, room = resolve(model, platform, sets)
            rows = compile_runtime(model, values, Layout(room, placement)).rows
            json.dumps(rows)  # plain: it crosses a process boundary
            again, _ = resolve(model, platform, sets)
            assert compile_runtime(model, again, Layout(room, placement)).rows == rows
            unread &= set(values.unread())
            # Libraries of one toolkit share their numbers: what a variant reads is no idle parameter of the base.
            for other in registry.models().values():
                if ":" not in model.name and other.variant_of == model.name:
                    theirs, _ = resolve(other, platform)
                    compile_runtime(other, theirs, Layout(room, placement))
                    unread &= set(theirs.unread()) | (set(model.params()) - set(theirs))
    # Some are read only when words say so: the kind of a lock matters with threads.
    words = {k: param.choices for k, param in model.params().items() if param.choices}
    for chosen in product(*words.values()):
        values, room = resolve(model, "nt-pair", dict(zip(words, chosen, strict=True)))
        compile_runtime(model, values, Layout(room, [0, 1]))
        # The delay of a datagram that is overtaken matters only where some are.
        likely, _ = resolve(model, "nt-pair", {k: "0.5" for k, v in model.params().items() if v.unit == "probability"})
        compile_runtime(model, likely, Layout(room, [0, 1]))
        unread &= set(likely.unread())
        unread &= set(values.unread())
    values, room = resolve(model, "nt-pair")
    model().startup(values, room, [0, 1], random.Random(1))  # some say only how a job is started
    unread &= set(values.unread())
    assert not unread, f"{model.name}: never read: {sorted(unread)}"


@for_each("model", MODELS.values)
def test_every_cited_source_exists(model: type[RuntimeModel]) -> None:
    known = reference_ids()
    for file in [*model.folder().glob("*.py"), *model.folder().glob("*.toml")]:
        cited = cited_ids(file.read_text(encoding="utf-8"))
        assert cited <= known, f"{file}: {sorted(cited - known)}"
    for name, param in model.params().items():
        # Some reference rows are named by paper and section instead; the words after the colon must then say where.
        assert len(param.source.partition(":")[2].strip()) >= 3, name


def test_names_with_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        registry.model("wmpy")
    assert str(caught.value).startswith("no model 'wmpy'; did you mean 'wmpi'? valid: ")
    with refused(UsageError, "unknown-platform | 'nt-pair'"):
        registry.platform("ntpair")
    with refused(UsageError, "unknown-model | 'wmpi:nothing'"):
        registry.model("wmpi:nothing")
    for wrong in ("", "../models/wmpi/none", "./none"):
        with pytest.raises(RetrompiError):
            registry.model(wrong)
    with refused(UsageError, "unknown-platform | none/x.toml"):
        registry.platform("none/x.toml")


def test_a_folder_of_ones_own(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.model(str(toy)).name == "toy"
    assert registry.model(f"{toy}:spinning").name == "toy:spinning"
    assert registry.model(f"{toy}/__init__.py").name == "toy"
    monkeypatch.chdir(toy.parent)
    assert registry.model("./toy") is registry.model(str(toy))
    with refused(UsageError, "unknown-model"):
        registry.model(f"{toy}:spining")
    assert "toy" not in registry.models()


@for_each(
    "text, line, says",
    [
        ("x = 1", None, "broken-model | 'bad'"),
        ("\n\nx = 1 +", 3, "broken-model"),
        ("import nothing_like_this", 1, "broken-model | 'nothing_like_this'"),
        (
            "from retrompi.spec.model import Param, RuntimeModel\n"
            "class M(RuntimeModel):\n"
            "    name, title, version, years, summary = 'bad', 't', '1', '1997', 's'\n"
            "    packet = Param('16 KB', 'B', 'packet', source='assumed: x')\n",
            4,
            "broken-model | 'KB'",
        ),
        (
            "from retrompi.spec.model import RuntimeModel\n"
            "class M(RuntimeModel):\n"
            "    name, title, version, years, summary = 'good', 't', '1', '1997', 's'\n",
            None,
            "broken-model | 'good' | 'bad' | 'bad:VARIANT'",
        ),
    ],
)
def test_a_broken_model_is_told_by_file_and_line(tmp_path: Path, text: str, line: int | None, says: str) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "__init__.py").write_text(text)
    with pytest.raises(InputError) as caught:
        registry.model(str(folder))
    assert str(folder / "__init__.py") in str(caught.value)
    agrees(caught.value, says)
    assert caught.value.line == line


def test_nearest() -> None:
    assert nearest("wmpi", []) == "; none exist"
    assert nearest("Hpvm", ["hpvm", "wmpi"]) == "; did you mean 'hpvm'? valid: hpvm, wmpi"
    assert nearest("zzz", [f"n{i}" for i in range(20)], 3) == "; valid: n0, n1, n10, … (17 more)"
