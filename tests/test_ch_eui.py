"""MPICH's ch_eui and IBM's MPI-F on the SP1: envelopes, the 1 KiB packet, the layer below, the eager limit; their published rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import pytest

from retrompi.base import paths
from retrompi.papers.statements import claims
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.model import model_values
from retrompi.spec.question import Question, Starts, pingpong

SP1 = "ibm-sp1*2@sp1-switch"


def times(model: str, sizes: Sequence[int], *sets: str) -> dict[int, float]:
    """Size -> one-way time, us."""
    rows = simulate.benchmark(Question(model, SP1, pingpong(list(sizes), 3, 1), overrides=list(sets)))
    return {r["size_B"]: r["time_us"] for r in rows}


def test_both_stand_on_the_fitted_layer_below() -> None:
    below = model_values(registry.model("euih"))
    for name in ("cheui", "mpif"):
        values = model_values(registry.model(name)).settings
        for key in ("overhead", "packet_work", "rate"):
            assert values[key].value == below.settings[key].value
            assert values[key].source == "fit:euih/fit.toml [euih]"


def test_a_message_carries_its_envelope() -> None:
    free = ["cheui.library=1 us", "cheui.check=0"]
    got, bare, below = times("cheui", [0], *free), times("cheui", [0], *free, "cheui.envelope=0 B"), times("euih", [0, 20])
    assert got[0] - bare[0] == pytest.approx(below[20] - below[0], rel=0.02)
    assert bare[0] - below[0] == pytest.approx(1, abs=0.01)  # nothing but the library is left


def test_packets_of_the_switch_are_filled_by_envelope_and_data() -> None:
    got = times("cheui", [207, 208, 209, 228, 229])
    assert got[209] - got[208] > 8 > got[208] - got[207]  # 228 B of EUIH less 20 B of MPICH
    assert got[229] - got[228] < 1


def test_a_long_message_sends_its_envelope_alone_and_copies_nothing() -> None:
    got = times("cheui", [1024, 1025, 4096], "platform.host.copy_l1=500 MB/s", "platform.host.copy_l2=500 MB/s")
    slow = times("cheui", [1024, 1025, 4096], "platform.host.copy_l1=62.5 MB/s", "platform.host.copy_l2=62.5 MB/s")
    assert got[1025] - got[1024] > 10
    assert slow[1024] - got[1024] == pytest.approx(2 * 1024 * (1 / 62.5 - 1 / 500), rel=0.05)
    assert slow[1025] == got[1025]
    assert slow[4096] == got[4096]
    assert times("cheui", [4096], "cheui.short=8 KiB")[4096] > got[4096]  # now copied, in one


def test_mpi_f_asks_above_its_eager_limit_and_copies_nothing() -> None:
    got = times("mpif", [4096, 4097])
    assert got[4097] > got[4096] + 40  # a question and its answer
    assert times("mpif", [4097], "mpif.eager=64 KiB")[4097] < got[4096] + 10
    assert times("mpif", [1024], "platform.host.copy_l1=62.5 MB/s")[1024] == times("mpif", [1024])[1024]


@pytest.mark.parametrize("model", ["cheui", "mpif"])
def test_poe_gives_a_node_to_one_process(model: str) -> None:
    apart = simulate.startup(Question(model, SP1, Starts(2, 3), "distributed"))
    together = simulate.startup(Question(model, SP1, Starts(2, 3), "shared"))
    assert (apart["failure_rate"], together["failure_rate"]) == (0, 1)


@pytest.mark.parametrize("key", ["gropp-lusk-1994", "mpptest-1994"])
def test_rows_are_those_of_the_evidence(key: str) -> None:
    with (paths.reference_dir() / "period" / "evidence.csv").open(encoding="utf-8", newline="") as file:
        rows = {r["id"]: r for r in csv.DictReader(file)}
    prefix = {"gropp-lusk-1994": "GL94-", "mpptest-1994": "MT94-"}[key]
    ours = {c.id: c for c in claims.by_paper(key)}
    assert set(ours) == {i for i, r in rows.items() if i.startswith(prefix) and r["use"] == "validate"}
    for i, c in ours.items():
        row = rows[i]
        assert (c.value, c.unit, c.low, c.high) == (row["value"], row["unit"], float(row["low"]), float(row["high"]))
