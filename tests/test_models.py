"""Every model and rival: compiles on every platform, carries messages, explains where its numbers are from."""

from __future__ import annotations

from cases import for_each
from engine_runs import MODES, completed, job, run

from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay, Starts

ALL = sorted(registry.models())
PLATFORMS = sorted(registry.platforms())


@for_each("name", ALL)
def test_every_model_and_rival_carries_messages(name: str) -> None:
    sizes = (0, 1, 5000, 70_000, 400_000)
    trace = job(
        "; ".join(f"send 1 0 {n} 6; recv 1 0 {n} 6" for n in sizes) + "; barrier",
        "; ".join(f"recv 0 0 {n} 6; send 0 0 {n} 6" for n in sizes) + "; barrier",
    )
    for mode in MODES:
        for platform in PLATFORMS:
            asked = Question(name, platform, Replay(trace), mode, what_if_hardware=True)
            if Resolved.of(asked).apart:
                assert run(trace, name, mode, platform=platform).outcome == "failed-start"
                continue
            assert completed(trace, name, mode, platform=platform).time_ps > 0


@for_each("name", ALL)
def test_every_model_says_who_it_is_and_where_its_numbers_are_from(name: str) -> None:
    cls = registry.model(name)
    assert all((cls.title, cls.version, cls.years, cls.summary))
    assert (":" in name) == bool(cls.variant_note)
    for param in cls.params().values():
        assert param.source.split(":")[0] in {"paper", "doc", "code", "fit", "assumed"}
        assert param.help


def test_starts_as_the_papers_tell_them() -> None:
    told = {name: simulate.startup(Question(name, "nt-pair", Starts(2, 400), seed=0)) for name in ("winmpich", "wmpi", "hpvm")}
    assert 0.2 < told["winmpich"]["failure_rate"] < 0.45  # about one in three
    assert told["wmpi"]["failures"] == told["hpvm"]["failures"] == 0
    assert told["hpvm"]["manual_steps_per_job"] > told["winmpich"]["manual_steps_per_job"]
    assert all(t["steps"] and t["hosts"] == 2 for t in told.values())
