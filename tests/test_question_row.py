"""A question as plain JSON: made again it is the same question, the store keeps it, and a store of before is read and its runs found."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from postgres import Server
from store_of_before import SQL, questions

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.spec.conditions import network_model
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.spec.conditions.network_model import NAMES
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import (
    FIDELITIES,
    FIELDS,
    WILDCARDS,
    Benchmark,
    Beside,
    Experiment,
    Message,
    Question,
    Replay,
    ScenarioRef,
    Starts,
)
from retrompi.store import Store, open_store
from retrompi.store.identity import specification
from retrompi.store.lookup import answer
from retrompi.store.migrate import config
from retrompi.store.questions import question_of
from retrompi.studies.define import case, catalogue
from retrompi.traces import generate
from retrompi.traces.source import Source, read_again

TRACES = {t.sha256: t for t in (generate.ring(2, 64, 2), generate.halo2d(2, 2, 64, 2, flops=1e5), generate.pingpong([8], 2))}

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
counts = st.integers(1, 1 << 40)
seconds = st.floats(1e-9, 1e6)
sizes = st.lists(st.integers(0, 1 << 30), min_size=1, max_size=4, unique=True)
reps = counts | st.dictionaries(st.integers(0, 1 << 30), counts, min_size=1, max_size=3)
traces = st.sampled_from(list(TRACES.values()))
shares = st.floats(0, 1)
programs = st.one_of(
    st.builds(Program, memory_share=shares),
    st.builds(Program, texts, st.none() | seconds, shares, st.none() | seconds),
)
sources = st.sampled_from([{}, Source("a.tar.zst", 4, rate=(1e9, "given")).row(), Source(generator="ring", args={"size": [1, 2]}).row()])
workloads = st.one_of(
    st.builds(Benchmark, st.sampled_from(["pingpong", "osu_latency"]), st.fixed_dictionaries({}, optional={"sizes": sizes, "reps": reps})),
    st.builds(Replay, traces, texts, programs, sources),
    st.builds(Message, st.integers(0, 1 << 30)),
    st.builds(Starts, counts, counts),
    st.builds(Experiment.of, texts, texts, st.recursive(st.none() | counts | texts, lambda x: st.lists(x) | st.dictionaries(texts, x))),
)
modes = st.sampled_from(["shared", "distributed", "n1*2,n2"]) | st.lists(st.integers(0, 9), min_size=1)
sets = st.dictionaries(st.sampled_from(["wmpi.packet", "platform.host.cores", "coll.bcast"]), st.sampled_from(["2", "64KiB", "x0.5"]))
jobs = st.builds(JobSpec, texts, traces, modes, sets, st.floats(0, 9), st.booleans(), shares, texts, texts, sources)
lists = st.lists(texts, max_size=2)
QUESTIONS = st.builds(
    Question, texts, texts, workloads, modes, sets, st.integers(0, (1 << 63) - 1), st.sampled_from(FIDELITIES),
    st.builds(Beside, lists, lists, st.lists(jobs, max_size=2), lists), st.sampled_from(NAMES), st.sampled_from(WILDCARDS),
    st.lists(st.tuples(st.integers(0, 9), counts), max_size=2), st.booleans(), st.none() | seconds, st.sampled_from(["", "daxpy:10"]),
    st.booleans(), st.lists(st.integers(-1, 3), max_size=3), st.builds(ScenarioRef, texts, texts) | st.just(ScenarioRef()),
    st.builds(Bounds, st.none() | counts, st.none() | seconds, st.none() | counts), st.booleans(),
)


def known(row: Mapping[str, Any]) -> Trace:
    return TRACES[row["sha256"]]


@given(QUESTIONS)
def test_a_question_comes_back_from_its_json(question: Question) -> None:
    text = json.dumps(question.row(), allow_nan=False)
    with network_model.using("fluid"):  # what is chosen around it is not in it
        again = Question.from_row(json.loads(text), known)
    assert again == question
    assert (again.bounds, again.what_if_hardware) == (question.bounds, question.what_if_hardware)
    assert again.row() == question.row()


def test_every_field_is_in_the_json_of_some_question() -> None:
    asked = [*questions().values(), Question("wmpi", "nt-pair", Message(1), idle_overrides=True, bounds=Bounds(7))]
    assert {key for q in asked for key in q.row()} == {*FIELDS, "workload"}


def test_what_is_by_default_is_not_written() -> None:
    row = Question("wmpi", "nt-pair", Message(8), network="native").row()
    assert row == {"workload": {"kind": "message", "size": 8}, "model": "wmpi", "platform": "nt-pair", "network": "native",
                   "what_if_hardware": False}


WRONG: list[tuple[str, Mapping[str, Any]]] = [
    ("a field that there is not", {"moedl": "wmpi"}), ("no program", {"workload": {}}), ("a word", {"fidelity": "rough"}),
    ("a program without a size", {"workload": {"kind": "message"}}), ("a number for overrides", {"set": 3}),
    ("a kind that there is not", {"workload": {"kind": "dream"}}), ("half a bound", {"bounds": {"event": 1}}),
    ("a job without a model", {"jobs": [{"mode": "shared", "sha256": next(iter(TRACES))}]}),
]


@for_each("what", WRONG)
def test_what_is_no_question_is_refused_in_a_line(what: tuple[str, Mapping[str, Any]]) -> None:
    row = {**Question("wmpi", "nt-pair", Message(8)).row(), **what[1]}
    with pytest.raises(UsageError) as caught:
        Question.from_row(row, known)
    assert "\n" not in str(caught.value)


# --- in a store ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return open_store(str(tmp_path / "runs.db"))
    server: Server = request.getfixturevalue("postgres")
    return open_store(server.database())


def test_a_stored_run_is_asked_again(empty: Store, tmp_path: Path) -> None:
    file = tmp_path / "ring.ti"
    file.write_text("0 init\n0 send 1 0 64 6\n0 finalize\n1 init\n1 recv 0 0 64 6\n1 finalize\n", encoding="utf-8")
    source = Source(str(file), 2)
    replay = Replay(source.read(), "ring", Program(memory_share=0.5), source.row())
    job = JobSpec("wmpi", source.read(), "n3,n4", name="other", source=source.row())
    asked = [
        Question("wmpi", "nt-cluster", replay, "n1,n2", wildcards="free",
                 beside=Beside(["any 1Mbps 100B"], ["hub@9s"], [job], ["rank 1@8s"])),
        Question("wmpi", "nt-pair", Benchmark("pingpong", {"sizes": [8], "reps": 2}), "shared", ["platform.host.quantum=x0.5"], 5,
                 compute_kernel="daxpy", bounds=Bounds(10**9), idle_overrides=True),
        case.apply(catalogue.scenario("bf-wmpi-shared"), {"sizes": "0,1KiB", "reps": "2"}).question(),
    ]
    for question in asked:
        run = answer(empty, question).run_id
        again = question_of(empty, run)
        assert specification(again).identity == specification(question).identity
        assert answer(empty, again).run_id == run
        assert again.asked == question.asked
        assert again.bounds == Bounds()  # it did not end the run


def test_a_trace_that_is_not_kept_says_so() -> None:
    with pytest.raises(UsageError, match="made in memory"):
        read_again({"sha256": "0" * 64, "label": "a trace"})


def revived(path: Path) -> Store:
    """The store of before, migrated."""
    with sqlite3.connect(path) as connection:
        connection.executescript(SQL.read_text(encoding="utf-8"))
    connection.close()
    return open_store(str(path))


def test_runs_of_a_store_of_before_are_found_by_todays_question(tmp_path: Path) -> None:
    """What depends on the question must be as then; the versions of code, models and platforms are those of then."""
    store = revived(tmp_path / "before.db")
    asked = questions()
    assert {tag for tags in store.tags().values() for tag in tags} == set(asked)
    for run_id, (tag,) in store.tags().items():
        row = store.run(run_id)
        then = {k: row[k] for k in ("code_version", "model_hash", "platform_hash", "parameters")}
        if tag in ("sharing", "beside"):  # the model of the other job is in the hash of the program
            then["trace_hash"] = row["trace_hash"]
        assert store.find_run(replace(specification(asked[tag]), **then)) == run_id, tag


def test_a_store_of_before_is_read_and_says_what_it_does_not_know(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    store = revived(tmp_path / "before.db")
    ids = {tag: run_id for run_id, (tag,) in store.tags().items()}
    assert [round(p["time_us"]) for p in store.points(ids["curve"])] == [173, 180]
    assert store.run(ids["killed"])["outcome"] == "deadlock"
    assert all(row["question"] is None for row in store.runs())
    with pytest.raises(UsageError, match=rf"^run {ids['curve']} cannot be asked again: .* did not keep questions"):
        question_of(store, ids["curve"])
    for words in (["runs", "show", str(ids["killed"])], ["runs", "list", "--json"], ["diff", str(ids["curve"]), str(ids["overrides"])]):
        assert retrompi(*words, "--store", str(tmp_path / "before.db")).code in (0, 1)


def test_the_migration_can_be_reverted(tmp_path: Path) -> None:
    from alembic import command

    store = revived(tmp_path / "before.db")
    with store._connect(write=True) as connection:
        command.downgrade(config(connection), "0006")
    with store._connect() as connection:
        assert "question" not in {c["name"] for c in sa.inspect(connection).get_columns("runs")}
    assert open_store(str(tmp_path / "before.db")).run(1)["question"] is None
