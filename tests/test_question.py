"""One question from command to engine: equal questions are one value, names are looked up once, and nothing is handed upwards."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrompi.base.errors import UsageError
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.platform import Placement
from retrompi.spec.question import Benchmark, Beside, Message, Question, Replay, Starts, pingpong
from retrompi.store.identity import specification
from retrompi.traces import generate

LAYERS = ("base", "spec", "traces", "sim", "store", "studies", "measure", "papers", "render", "labs", "studio", "cli")


def test_what_is_asked_alike_is_one_value() -> None:
    written = [
        Question("wmpi", "nt-pair", pingpong([0, 1024], 3), [0, 1], ["wmpi.packet=64KiB", "platform.host.cores=2"]),
        Question("wmpi", "nt-pair", Benchmark("pingpong", {"reps": 3, "sizes": (0, 1024), "warm_up": 0}), (0, 1),
                 {" wmpi.packet": "64KiB ", "platform.host.cores": "2"}),
        Question("wmpi", "nt-pair", pingpong((0, 1024), 3), Placement([0, 1]), (("wmpi.packet", "64KiB"), ("platform.host.cores", "2"))),
    ]
    assert len(set(written)) == 1
    assert {specification(q).identity for q in written} == {specification(written[0]).identity}


def test_a_trace_is_what_it_says_and_not_where_it_lies() -> None:
    here, there = (Replay(generate.pingpong([8], 2), label) for label in ("here", "there"))
    assert here == there
    assert hash(here) == hash(there)
    assert here != Replay(generate.pingpong([8], 3))
    assert here != Replay(generate.pingpong([8], 2), program=Program(memory_share=0.5))
    jobs = [JobSpec("wmpi", generate.pingpong([8], 2), [0, 1]) for _ in range(2)]
    assert Beside(jobs=[jobs[0]]) == Beside(jobs=(jobs[1],))


def test_every_field_but_those_of_the_asker_makes_another_run() -> None:
    question = Question("wmpi", "nt-cluster", pingpong([8], 2), "n1,n2")
    changes: list[dict[str, Any]] = [
        {"model": "hpvm"}, {"platform": "nt-pair", "placement": "shared"}, {"workload": pingpong([8], 3)}, {"placement": "n1,n1"},
        {"beside": Beside(traffic=["any 1Mbps 100B"])},
        {"overrides": ["platform.link.latency=1us"]}, {"seed": 2}, {"fidelity": "curve"}, {"network": "simgrid"}, {"wildcards": "free"},
        {"start_up": True}, {"limit_s": 3.0}, {"compute_kernel": "daxpy"}, {"cores": (0, 0)},
        {"beside": Beside(failures=["hub@1s"])}, {"beside": Beside(kills=["rank 0@1s"])},
        {"beside": Beside(jobs=[JobSpec("wmpi", generate.pingpong([8], 2), "n3,n4")])}, {"workload": Message(8)}, {"workload": Starts(2)},
    ]
    identities = [specification(question.with_(**change)).identity for change in changes]
    assert len({specification(question).identity, *identities}) == len(changes) + 1
    assert specification(question.with_(idle_overrides=True)).identity == specification(question).identity


def test_defaults_that_are_written_out_are_the_same_question() -> None:
    short = Question("wmpi", "nt-pair", pingpong(), "shared")
    long = short.with_(workload=pingpong(generate.DEFAULT_SIZES))
    assert specification(short).identity == specification(long).identity


@pytest.mark.parametrize("field", ["network", "wildcards"])
def test_a_wrong_word_is_refused_where_it_is_written(field: str) -> None:
    with pytest.raises(UsageError) as caught:
        Question("wmpi", "nt-pair", pingpong(), **{field: "carrier pigeons"})  # type: ignore[arg-type]
    assert caught.value.code == "unknown-name"


def test_a_command_looks_every_name_up_once(retrompi: Callable[..., Any], store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    for what in ("model", "platform"):
        real = getattr(registry, what)

        def counted(name: str, what: str = what, real: Any = real) -> Any:
            asked[what] += 1
            return real(name)

        monkeypatch.setattr(registry, what, counted)
    for extra in (["--fresh"], [], ["--fresh", "--fidelity", "curve"]):
        asked.clear()
        given = ["-m", "wmpi", "-p", "nt-pair", "--mode", "shared", "--sizes", "1KiB", "--reps", "2", "--store", str(store_path)]
        told = retrompi("pingpong", *given, *extra)
        assert told.code == 0, told.err
        assert asked == {"model": 1, "platform": 1}, extra


def _layer(frame: Any) -> int | None:
    name = str(frame.f_globals.get("__name__", ""))
    part = name.split(".")[1:2]
    return LAYERS.index(part[0]) if name.startswith("retrompi.") and part and part[0] in LAYERS else None


def test_nothing_asked_is_handed_upwards(retrompi: Callable[..., Any], store_path: Path) -> None:
    """Of each value, as itself or in a question: how often a lower layer calls a higher one with it; at most twice."""
    climbs: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    carried = {
        "model": lambda v: (type(v) is str and v == "hpvm") or isinstance(v, Question | Resolved),
        "platform": lambda v: (type(v) is str and v == "nt-cluster") or isinstance(v, Question | Resolved),
        "seed": lambda v: (type(v) is int and v == 1973) or isinstance(v, Question | Resolved),
        "size": lambda v: (type(v) in (int, list, tuple) and v in (12347, [12347], (12347,))) or isinstance(v, Question | Resolved),
    }

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event != "call" or frame.f_back is None:
            return
        to, back = _layer(frame), frame.f_back
        while back is not None and _layer(back) is None:
            back = back.f_back
        if to is None or back is None or (of := _layer(back)) is None:
            return
        values = [frame.f_locals[n] for n in frame.f_code.co_varnames[: frame.f_code.co_argcount] if n in frame.f_locals]
        for what in (w for w, carries in carried.items() if any(carries(v) for v in values)):
            (climbs if to > of else steps)[what] += 1

    sys.setprofile(watch)
    try:
        told = retrompi("pingpong", "-m", "hpvm", "-p", "nt-cluster", "--mode", "distributed", "--sizes", "12347B", "--reps", "2",
                        "--seed", "1973", "--store", str(store_path), "--fresh")
    finally:
        sys.setprofile(None)
    assert told.code == 0, told.err
    assert min(steps.get(what, 0) for what in carried) > 5  # it was watched on its way
    assert max(climbs.values(), default=0) <= 2, climbs
