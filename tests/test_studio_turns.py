"""Turns of the studio's jobs: endless runs of many sessions do not hold up a short one, and long ones get even shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import pytest
import studio_work
from cases import for_each
from studio_app import ended, soon

from retrompi.spec.conditions.bounds import Bounds
from retrompi.studio.curves.runs import what_if
from retrompi.studio.jobs.fair_turns import FIRST_S, JobShare, Turns
from retrompi.studio.jobs.limits import Limits
from retrompi.studio.jobs.queue import Jobs

STEP_S = 0.05


@dataclass
class Studio:
    """The turns of jobs with known needs, on a clock of its own; every running job gets the whole time."""

    turns: Turns = field(default_factory=lambda: Turns(4, 2, 24, 2))
    now: float = 100.0
    jobs: list[tuple[JobShare, float]] = field(default_factory=list)
    ended: dict[int, float] = field(default_factory=dict)
    most_begun: int = 0
    restarts: int = 0

    def submit(self, session: str, needs_s: float = inf, client: str = "") -> int:
        share = JobShare(session, client, len(self.jobs) + len(self.ended) + 1)
        self.jobs.append((share, needs_s))
        return share.number

    def run(self, seconds: float = inf, until: int = 0) -> float:
        """Goes on for so long, or until a job has ended; returns the seconds."""
        began = self.now
        while self.now < began + min(seconds, 1000) and until not in self.ended:
            plan = self.turns.plan([s for s, _ in self.jobs], self.now)
            for s in plan.displace:
                self.restarts += 1
                s.alive, s.paused, s.again, s.before_s = False, False, True, 0.0
            for s in plan.pause:
                s.before_s, s.since, s.paused = s.running_time(self.now), self.now, True
            for s in plan.resume:
                s.since, s.paused = self.now, False
            for s in plan.begin:
                self.turns.began(s)
                s.alive, s.since = True, self.now
            self.most_begun = max(self.most_begun, sum(s.alive for s, _ in self.jobs))
            self.now += STEP_S
            for s, needs in list(self.jobs):
                if s.alive and s.running_time(self.now) >= needs:
                    self.jobs.remove((s, needs))
                    self.ended[s.number] = self.now
        return self.now - began


@for_each("sessions", [1, 2, 5, 12, 40])
def test_endless_runs_of_any_number_of_sessions_do_not_hold_up_a_short_one(sessions: int) -> None:
    studio = Studio()
    for i in range(sessions):
        studio.submit(f"endless {i}")
        studio.submit(f"endless {i}")
    studio.run(60)
    for i in range(20):
        assert studio.run(until=studio.submit(f"short {i}", 0.2)) <= FIRST_S
        studio.run(3)
    assert studio.most_begun <= 24


@pytest.mark.parametrize("needs_s", [1.0, 4.0])
def test_a_short_one_on_a_busy_machine_is_not_displaced(needs_s: float) -> None:
    """It takes longer than its first half second, while all places for begun jobs are taken by endless ones."""
    studio = Studio()
    for i in range(40):
        studio.submit(f"endless {i}")
    studio.run(60)
    for i in range(5):
        assert studio.run(until=studio.submit(f"short {i}", needs_s)) <= 2 * needs_s + 3
        studio.run(3)


def test_a_short_one_passes_those_of_its_own_moment_by_its_session() -> None:
    """Forty sessions that come together: a place for each in turn, so the last waits for their first halves of a second, not for more."""
    studio = Studio()
    for i in range(40):
        studio.submit(f"endless {i}")
        studio.submit(f"endless {i}")
    assert studio.run(until=studio.submit("short", 0.2)) <= 40 / 4 * FIRST_S + 1


def test_one_address_with_many_sessions_has_the_turns_of_one() -> None:
    studio = Studio()
    for i in range(40):
        studio.submit(f"endless {i}", client="10.0.0.1")
    assert studio.run(until=studio.submit("short", 0.2, client="10.0.0.2")) <= 2 * FIRST_S


@pytest.mark.parametrize("sessions", [2, 5, 9])
def test_a_job_of_some_seconds_gets_its_time_before_endless_ones(sessions: int) -> None:
    studio = Studio()
    for i in range(sessions):
        studio.submit(f"endless {i}")
        studio.submit(f"endless {i}")
    studio.run(200)
    assert studio.run(until=studio.submit("some seconds", 10)) <= 16, "what has had least goes first; the others end their turns of 2 s"


def test_long_ones_share_evenly_and_none_starts_again() -> None:
    studio = Studio()
    numbers = [studio.submit(f"a student {i}", 60) for i in range(12)]
    studio.run(600)
    times = [studio.ended[n] - 100 for n in numbers]
    assert max(times) == pytest.approx(12 * 60 / 2, rel=0.05)
    assert min(times) > 0.8 * max(times)
    assert studio.restarts == 0


def test_a_stream_of_short_ones_does_not_hold_up_a_long_one() -> None:
    studio = Studio()
    long = studio.submit("long", 20)
    for i in range(400):
        if i % 2 == 0:
            studio.submit(f"stream {i}", 1.9)
        studio.run(0.5)
    assert long in studio.ended, "though the stream brings all the work that two processors can do"


def test_an_address_with_most_places_gives_one_up() -> None:
    studio = Studio()
    for i in range(30):
        studio.submit(f"endless {i}", client="10.0.0.1")
    studio.run(100)
    assert studio.run(until=studio.submit("some seconds", 10, client="10.0.0.2")) <= 30


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs(Limits(running=2, long=1, begun=6, job_s=1200))
    yield made
    made.close()


@pytest.mark.parametrize("sessions", [2, 5])
def test_endless_replays_and_a_what_if(jobs: Jobs, tmp_path: Path, sessions: int) -> None:
    """Real processes: two endless replays in each of the sessions, then a what-if of another one, which ends while none of them has."""
    trace = tmp_path / "endless"
    trace.write_text(studio_work.ENDLESS)
    places = (str(tmp_path / "theirs.db"), str(tmp_path / "ours.db"))
    endless = [(jobs.submit(f"s{i}", "endless", studio_work.endless, str(trace)), f"s{i}") for i in range(sessions) for _ in range(2)]
    assert soon(lambda: sum(jobs.state(*j).paused for j in endless) >= min(len(endless), 4) - 1), "one long job runs at a time"
    for packet in ("16KiB", "32KiB"):
        asked = ("wmpi", "nt-pair", "shared", [f"wmpi.packet={packet}"])
        found = ended(jobs, jobs.submit("another", "what if", what_if, places, *asked), "another")
        assert found.status == "done"
        assert not any(jobs.state(*j).ended for j in endless)
    for j in endless:
        jobs.cancel(*j)
        assert jobs.state(*j).status == "cancelled"


def test_a_job_that_is_not_simulating_is_never_paused(jobs: Jobs, tmp_path: Path) -> None:
    """It could hold a lock of a store."""
    waits = [(jobs.submit(s, "waits", studio_work.wait_for, str(tmp_path / "open")), s) for s in ("a", "b", "c")]
    assert soon(lambda: all(jobs.state(*j).seconds > 2 * FIRST_S for j in waits))
    assert not any(jobs.state(*j).paused for j in waits)
    (tmp_path / "open").write_text("")
    assert [ended(jobs, *j).result for j in waits] == ["there"] * 3


def test_memory_of_all_jobs_is_bounded(tmp_path: Path) -> None:
    """The session with most of it loses its largest job."""
    small = Jobs(Limits(memory_B=200 << 20))
    try:
        large, less = (small.submit(s, "holds", studio_work.hold, size << 20) for s, size in (("large", 300), ("less", 50)))
        found = ended(small, large, "large")
        assert found.status == "failed"
        assert "200 MiB" in found.error
        assert not small.state(less, "less").ended
    finally:
        small.close()


def test_too_many_jobs_are_those_of_the_session_with_most(tmp_path: Path) -> None:
    few = Jobs(Limits(running=1, long=1, begun=2, jobs=6))
    try:
        gate: Any = str(tmp_path / "open")
        greedy = [few.submit("greedy", "waits", studio_work.wait_for, gate) for _ in range(6)]
        other = few.submit("other", "echo", studio_work.echo, 1)
        assert few.state(greedy[-1], "greedy").status == "failed"
        assert "most of them were yours" in few.state(greedy[-1], "greedy").error
        assert ended(few, other, "other").result == 1
    finally:
        few.close()


@pytest.mark.parametrize(("bounds", "told"), [
    (Bounds(events=20_000), "the bound of 20000 events is reached"),
    (Bounds(wall_s=0.2), "the bound of 0.2 s of wall time is reached"),
    (Bounds(memory_B=1 << 20), "the bound of 1 MiB of memory is reached"),
])
def test_every_simulation_of_a_job_has_the_studios_bounds(tmp_path: Path, bounds: Bounds, told: str) -> None:
    """A replay and a curve that reach one are results with the outcome and what was computed so far."""
    trace = tmp_path / "endless"
    trace.write_text(studio_work.ENDLESS)
    places = (str(tmp_path / "theirs.db"), str(tmp_path / "ours.db"))
    bounded = Jobs(Limits(bounds=bounds))
    try:
        found = ended(bounded, bounded.submit("a", "endless", studio_work.endless, str(trace)))
        assert (found.status, found.result["outcome"]) == ("done", "limit")
        assert told in found.result["told"][0]
        if bounds.memory_B:
            return  # a PingPong takes none
        sizes = [1024, 1 << 40]
        found = ended(bounded, bounded.submit("a", "curve", what_if, places, "wmpi", "nt-pair", "shared", [], sizes))
        assert (found.status, found.result["base"]["outcome"]) == ("done", "limit")
        assert told in found.result["base"]["detail"]
    finally:
        bounded.close()


def test_pauses_are_not_charged(tmp_path: Path) -> None:
    """Of two endless replays one is paused at a time; each has its three seconds, however long it paused."""
    trace = tmp_path / "endless"
    trace.write_text(studio_work.ENDLESS)
    bounded = Jobs(Limits(running=2, long=1, bounds=Bounds(wall_s=3.0)))
    try:
        both = [bounded.submit("a", "endless", studio_work.endless, str(trace)) for _ in range(2)]
        found = [ended(bounded, j) for j in both]
        assert [f.result["outcome"] for f in found] == ["limit", "limit"]
        assert all("the bound of 3 s of wall time is reached;" in f.result["told"][0] for f in found)
    finally:
        bounded.close()
