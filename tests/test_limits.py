"""Where counting ends: times beyond the clock, broadcasts that overlap, vector lengths, and what a dry run leaves alone."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from retrompi import simulate, traces
from retrompi.errors import InputError, RetrompiError
from retrompi.validate import replication


@pytest.mark.parametrize("action", ["compute 1e300", "sleep 1e30", "kernel daxpy 1000 1e300", "compute 1e16"])
def test_a_time_that_cannot_be_counted_is_refused(action: str) -> None:
    read = traces.parse([f"0 init\n0 {action}\n0 finalize\n"])
    with pytest.raises(RetrompiError, match="simulated time would pass"):
        simulate.run("wmpi", "nt-pair", read, mode="shared")


def test_a_death_beyond_the_clock_never_happens() -> None:
    read = traces.parse(["0 init\n0 compute 1e3\n0 finalize\n"])
    assert simulate.run("wmpi", "nt-pair", read, mode="shared", kills=["rank 0@1e30s"]).outcome == "completed"


def test_broadcasts_by_reference_from_several_roots_do_not_mix_their_receivers() -> None:
    # Rank 1 begins its own broadcast while rank 2 has not yet copied out of rank 0's buffer.
    each = "bcast 5000 0 6;bcast 9000 1 6;bcast 70000 2 6".split(";")
    late = {2: ["compute 1e9"]}
    text = ["".join(f"{r} {a}\n" for a in ("init", *late.get(r, ()), *each, "finalize")) for r in range(3)]
    assert simulate.run("craympt:shmem", "cray-j90", traces.parse(text), mode="shared").outcome == "completed"


def test_the_length_of_a_kernel_is_no_message() -> None:
    assert traces.parse(["0 init\n0 kernel daxpy 1000 5\n0 finalize\n"]).info()["largest_B"] == 0


def test_a_dry_run_of_the_disk_fit_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(replication, "FIT_FILE", tmp_path / "fit.toml")
    monkeypatch.setattr(replication, "rates", lambda *_, **__: (1, {"relay": 40e6}, True))
    told = replication.calibrate(None, "myrinet-piii", write=False)  # type: ignore[arg-type]
    assert math.isfinite(told["disk"])
    assert not (tmp_path / "fit.toml").exists()


def test_the_disk_fit_is_refused_a_held_out_row() -> None:
    held_out = next(c.id for c in replication_claims() if c.use == "validate")
    with pytest.raises(InputError, match="no fit may see it"):
        replication._for_fit(held_out)


def replication_claims() -> list[replication.Claim]:
    from retrompi.validate.claims import by_paper

    return [c for c in by_paper("lefevre-westrelin") if c.id.startswith("LW-R-")]
