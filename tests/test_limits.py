"""Where counting ends: times beyond the clock, broadcasts that overlap, vector lengths, and what a dry run leaves alone."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from paper_code import experiment
from refusals import refused

from retrompi import traces
from retrompi.base.errors import InputError, RetrompiError
from retrompi.papers.statements.claims import Claim, by_paper
from retrompi.sim import simulate
from retrompi.spec.question import Beside, Question, Replay

replication_task = experiment("lefevre-westrelin", "_replication_task")


@pytest.mark.parametrize("action", ["compute 1e300", "sleep 1e30", "kernel daxpy 1000 1e300", "compute 1e16"])
def test_a_time_that_cannot_be_counted_is_refused(action: str) -> None:
    read = traces.parse([f"0 init\n0 {action}\n0 finalize\n"])
    with pytest.raises(RetrompiError, match="simulated time would pass"):
        simulate.run(Question("wmpi", "nt-pair", Replay(read), "shared"))


def test_a_death_beyond_the_clock_never_happens() -> None:
    read = traces.parse(["0 init\n0 compute 1e3\n0 finalize\n"])
    assert simulate.run(Question("wmpi", "nt-pair", Replay(read), "shared", beside=Beside(kills=["rank 0@1e30s"]))).outcome == "completed"


def test_a_broadcast_by_reference_waits_for_its_own_receivers_only() -> None:
    # Rank 2 begins its own broadcast while rank 1 has not yet copied out of rank 0's buffer; rank 0 is free once it has.
    pause, first, second = "compute 1e9", "bcast 5000 0 6", "bcast 9000 2 6"
    ranks = [[first, "# mark free", second], [pause, first, pause, second], [first, second]]
    text = ["".join(a + "\n" if a.startswith("#") else f"{r} {a}\n" for a in ("init", *acts, "finalize")) for r, acts in enumerate(ranks)]
    result = simulate.run(Question("craympt:pvm", "cray-j90", Replay(traces.parse(text)), "shared"))
    free = next(m["time_s"] for m in result.marks)
    assert free < 0.6 * result.time_s


def test_the_length_of_a_kernel_is_no_message() -> None:
    assert traces.parse(["0 init\n0 kernel daxpy 1000 5\n0 finalize\n"]).info()["largest_B"] == 0


def test_a_dry_run_of_the_disk_fit_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(replication_task, "FIT_FILE", tmp_path / "fit.toml")
    monkeypatch.setattr(replication_task, "rates", lambda *_, **__: (1, {"relay": 40e6}, True))
    told = replication_task.calibrate(None, "myrinet-piii", write=False)  # type: ignore[arg-type]
    assert math.isfinite(told["disk"])
    assert not (tmp_path / "fit.toml").exists()


def test_the_disk_fit_is_refused_a_held_out_row() -> None:
    held_out = next(c.id for c in replication_claims() if c.use == "validate")
    with refused(InputError, "held-out"):
        replication_task._for_fit(held_out)


def replication_claims() -> list[Claim]:
    return [c for c in by_paper("lefevre-westrelin") if c.id.startswith("LW-R-")]
