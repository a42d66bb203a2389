"""Making a program is bounded like its simulation."""

from __future__ import annotations

import pytest

from retrompi.sim.resolved import Resolved
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.question import Benchmark, Question
from retrompi.traces import generate
from retrompi.traces.making import MakingStopped, within_bounds

ENDLESS = 10**12


def test_an_endless_program_ends_at_the_bound_of_its_simulation() -> None:
    programs = {
        "pingpong": {"sizes": [8], "reps": ENDLESS}, "pingping": {"sizes": [8], "reps": ENDLESS}, "halo": {"ranks": 4, "size": 8},
        "osu_latency": {"sizes": [8]}, "osu_bandwidth": {"sizes": [8]}, "overlap": {"size": 8, "tests": 2}, "ring": {"ranks": 3, "size": 8},
        "late_receive": {"ranks": 2, "size": 8, "count": ENDLESS}, "alltoall": {"ranks": 2, "size": 8},
    }
    for name, given in programs.items():
        args = given if "count" in given else given | {"reps": ENDLESS}
        asked = Resolved.of(Question("wmpi", "nt-pair", Benchmark(name, args), bounds=Bounds(wall_s=0.05)))
        with pytest.raises(MakingStopped, match=r"^limit: making the program '.*' was stopped by --wall-limit after 50 ms; fewer"):
            asked.trace  # noqa: B018
        assert MakingStopped("").exit_code == 1


def test_memory_bounds_it_too_and_the_tighter_of_two_holds() -> None:
    stopped = pytest.raises(MakingStopped, match="--memory-limit at 1 MiB")
    with within_bounds(Bounds(memory_B=1 << 20)), within_bounds(Bounds(memory_B=1 << 40)), stopped:
        generate.pingpong([8], ENDLESS)


def test_a_bound_changes_no_program() -> None:
    plain = generate.pingpong([8, 16], 5000)
    with within_bounds(Bounds(wall_s=60.0)):
        assert generate.pingpong([8, 16], 5000).sha256 == plain.sha256
