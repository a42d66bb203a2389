"""Function and administration of the NT environments: the recorded suite, memory that runs out, mixed clusters, start-up."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from cases import for_each
from conftest import reference_ids
from engine_runs import job, one_way, run
from refusals import agrees, refused

from retrompi import traces
from retrompi.base.errors import EngineError, InputError, UsageError
from retrompi.base.paths import reference_dir
from retrompi.cli.main import run as cli
from retrompi.papers.experiments import jobs, merge, suite
from retrompi.papers.judging import verdicts
from retrompi.papers.statements import claims
from retrompi.papers.statements.paper import find_paper
from retrompi.sim import simulate
from retrompi.spec.question import Question, Starts, pingpong
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.studies.define import catalogue
from retrompi.studies.define.scenario import load
from retrompi.traces import generate

ARCHIVE = "ibm-suite.tar.zst"
BAD = [n for n in catalogue.scenario_names() if catalogue.scenario(n).outcome != "completed"]
MINE = [n for n in catalogue.scenario_names() if n.startswith(("mixed-", "late-", "pool-", "start-")) and n not in BAD]
NT = ("winmpich", "wmpi", "hpvm")

# ---- the recorded suite


def test_the_archive_is_the_one_that_its_page_describes() -> None:
    runs = suite.runs_of(ARCHIVE)
    text = (reference_dir() / "traces" / "ibm-suite.md").read_text(encoding="utf-8")
    programs = {suite.program_of(r) for r in runs}
    assert f"{len(runs)} folders for {len(programs)} of the 87 programs" in text
    lost = [r for r, t in runs.items() if t.unsupported()]
    assert lost == ["ibm-ccl-bcast_struct-4", "ibm-ccl-bcast_struct-8"]
    assert all(r.rpartition("-")[2] == str(t.ranks) for r, t in runs.items())


def test_an_archive_is_read_at_once_as_folder_by_folder() -> None:
    path = reference_dir() / "traces" / ARCHIVE
    both = dict(traces.read_folders(path))
    assert list(both) == traces.folders(path)
    for folder in list(both)[::40]:
        assert both[folder].sha256 == traces.read(f"{path}:{folder}").sha256


def test_outcomes_are_summed_by_program() -> None:
    told = suite.summary(
        {
            "a-b-2": ("completed", ""), "a-b-4": ("aborted", "no room"), "a-c-2": ("deadlock", "stuck"), "a-c-4": ("deadlock", "stuck"),
            "a-d-2": ("completed", ""), "a-d-4": ("lost", "line 3"), "a-e-2": ("missing", "line 4"), "a-f-2": ("died", "signal 6"),
            "a-g-2": ("lost", "line 1"),
        }
    )
    assert (told["programs"], told["runs"], told["completed_runs"]) == (5, 7, 2)
    assert told["failing"] == ["a-b", "a-c", "a-e", "a-f"]
    assert (told["failed"], told["passed"], told["failed_percent"]) == (4, 1, 80)
    assert (told["failing_runs"], told["hangs"], told["asserts"], told["hangs_or_asserts"]) == (5, 2, 1, 3)
    assert (told["missing_calls"], told["died"]) == (1, 1)
    assert told["lost"] == ["a-d-4", "a-g-2"]
    assert told["ends"]["a-b-4"] == "aborted: no room"


def test_every_end_of_a_run_has_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    good, lost, missing = job("send 1 0 8 6", "recv 0 0 8 6"), job("bcast 1 0 -1", "bcast 1 0 -1"), job("start 0 1 0", "recv 0 0 8 6")
    said = [suite.outcome_of("wmpi", "nt-pair", "shared", t, [])[0] for t in (good, lost, missing, job("recv 1 0 8 6", ""))]
    assert said == ["completed", "lost", "missing", "deadlock"]

    def raising(error: Exception) -> Any:
        def simulated(*args: Any, **kwargs: Any) -> Any:
            raise error

        return simulated

    for error, word in ((InputError("rank-0.txt:2: not simulated"), "missing"), (EngineError("signal 6"), "died")):
        monkeypatch.setattr(simulate, "run", raising(error))
        assert suite.outcome_of("wmpi", "nt-pair", "shared", good, [])[0] == word


@for_each("model", NT)
@for_each("mode", ["shared", "distributed"])
def test_programs_that_share_a_compiled_runtime_end_as_each_does_alone(model: str, mode: str) -> None:
    """Of other numbers of ranks and other calls, among them programs with errors."""
    runs = dict(list(suite.runs_of(ARCHIVE).items())[1::17])
    runs |= {"starves": job("recv 1 0 8 6", ""), "to itself": job("isend 0 0 8 6; recv 0 0 8 6; wait 0 0 0")}
    together = suite.outcomes_of(model, "nt-cluster", mode, runs, [])
    assert together == {run: suite.outcome_of(model, "nt-cluster", mode, trace, []) for run, trace in runs.items()}
    assert len({end for end, _ in together.values()}) > 1


@for_each("model", NT)
@for_each("mode", ["shared", "distributed"])
def test_small_programs_of_the_suite_complete(model: str, mode: str) -> None:
    for name, trace in list(suite.runs_of(ARCHIVE).items())[2::19]:
        assert suite.outcome_of(model, "nt-cluster", mode, trace, [])[0] == "completed", name


def test_the_facts_of_a_suite_come_from_the_store_the_second_time(tmp_path: Any) -> None:
    plan, store = find_paper("baker-fox"), open_store(str(tmp_path / "runs.db"))

    def first() -> Any:
        return next(j for j in jobs("suite", plan, store, False) if j.label == "suite on wmpi default shared")

    one, two = first().work(), first().work()
    assert (one.simulated, two.simulated) == (1, 0)
    assert (one.where, one.result) == ("suite.wmpi.default.shared", two.result)
    assert one.result["failing"] == ["ibm-ccl-alltoall"]
    assert "is exhausted" in one.result["ends"]["ibm-ccl-alltoall-8"]
    assert (one.result["memory_related"], one.result["other_causes"]) == (1, 0)


def test_rivals_that_make_no_progress_while_they_wait_hang_the_collectives() -> None:
    runs = suite.runs_of(ARCHIVE)
    for rival, sure in (("hpvm:blind-send", "ibm-ccl-alltoall-8"), ("winmpich:deaf-send", "ibm-pt2pt-isend-8")):
        assert suite.outcome_of(rival, "nt-cluster", "distributed", runs[sure], [])[0] == "deadlock"
        assert suite.outcome_of(rival.partition(":")[0], "nt-cluster", "distributed", runs[sure], [])[0] == "completed"


# ---- memory


def test_p4_without_a_buffer_ends_the_job_and_waits_for_a_message_that_was_agreed_upon() -> None:
    flood = generate.all_at_once(8, 40_000)
    ended = run(flood, "wmpi", "shared")
    assert ended.outcome == "aborted"
    assert "pool of 1048576 B on host server is exhausted" in ended.detail
    assert re.search(r"no buffer for a packet of 40040 B from rank \d to rank \d", ended.detail)
    # A sender that waits instead waits for ever, since nobody receives before all have sent; with receives posted it does not.
    assert run(flood, "wmpi", "shared", sets=["exhausted=wait"]).outcome == "deadlock"
    posted = suite.runs_of(ARCHIVE)["ibm-ccl-alltoall-8"]
    assert [run(posted, "wmpi", "shared", sets=s).outcome for s in ([], ["exhausted=wait"])] == ["aborted", "completed"]
    assert run(flood, "wmpi", "shared", sets=["pool=4MiB"]).outcome == "completed"
    # 4 MiB go through a pool of 1 MiB in packets once the receiver has agreed.
    assert run(job("send 1 0 4194304 6", "recv 0 0 4194304 6"), "wmpi", "shared").outcome == "completed"


@pytest.mark.parametrize(("size", "buffer"), [(10_000, 16 << 10), (40_000, 64 << 10), (80_000, 256 << 10)])
def test_a_pool_must_hold_a_buffer_of_the_next_class_for_every_waiting_message(size: int, buffer: int) -> None:
    need = 4 * 3 * (buffer + 32)
    flood = generate.all_at_once(4, size)
    assert run(flood, "wmpi", "shared", sets=[f"pool={need}B"]).outcome == "completed"
    assert run(flood, "wmpi", "shared", sets=[f"pool={need - 1}B"]).outcome == "aborted"


def test_hpvm_gives_up_where_wmpi_with_a_raised_pool_goes_on() -> None:
    def late(count: int, model: str, *sets: str) -> str:
        return run(generate.late_receive(2, 60 << 10, count), model, "shared", sets=sets).outcome

    assert late(30, "hpvm") == "completed"
    assert late(40, "hpvm") == "aborted"
    assert late(40, "wmpi") == "aborted"
    assert late(40, "wmpi", "pool=15000 kB") == "completed"


def test_a_receivers_region_is_shared_by_its_senders() -> None:
    blind = {n: run(generate.all_at_once(n, 30_000), "hpvm:blind-send", "shared").outcome for n in (2, 8)}
    assert blind == {2: "completed", 8: "deadlock"}


@pytest.mark.parametrize(
    ("name", "args"), [("late_receive", {"ranks": 3, "size": 100, "count": 4}), ("all_at_once", {"ranks": 4, "size": 100})]
)
def test_the_generators_of_unexpected_messages(name: str, args: dict[str, int]) -> None:
    trace = generate.generator(name).make(**args)
    result = run(trace, "wmpi", "shared")
    assert result.outcome == "completed"
    ranks = args["ranks"]
    assert result.messages == ((ranks - 1) * (args["count"] + 1) if name == "late_receive" else ranks * (ranks - 1))
    with pytest.raises(UsageError):
        generate.generator(name).make(**{**args, "ranks": 1})


# ---- clusters of several systems


@for_each(
    "model, platform, why",
    [
        ("wmpi", "nt-unix", ""),
        ("wmpi", "nt-unix-little", ""),
        ("hpvm", "nt-unix", "unix is big endian and server little endian"),
        ("hpvm", "nt-unix-little", ""),
        ("winmpich", "nt-unix", "unix runs HP-UX 9"),
        ("winmpich", "nt-unix-little", "unix runs Linux 2.0"),
    ],
)
def test_who_can_join_whom(model: str, platform: str, why: str) -> None:
    trace = job("send 1 0 100 6", "recv 0 0 100 6")
    result = run(trace, model, "distributed", platform=platform)
    assert result.outcome == ("failed-start" if why else "completed")
    assert why in result.detail
    if why:
        assert result.messages == 0
        # On one of the machines alone there is nothing to join.
        assert run(trace, model, [0, 0], platform=platform).outcome == "completed"
        with refused(simulate.SimulationEnded, "not-completed | failed-start"):
            simulate.benchmark(Question(model, platform, pingpong([100], reps=1), "distributed"))


def test_data_are_converted_between_byte_orders_only() -> None:
    size, small = 60_000, 0
    with_xdr, without = (one_way("wmpi", "distributed", size, platform="nt-unix", sets=s) for s in ([], ["xdr_byte=0ns/B", "xdr_call=0us"]))
    assert with_xdr > without + 2 * size * 40e-9  # at both ends, on processors of about the reference speed
    with refused(UsageError, "idle-override | wmpi.xdr_byte"):  # nothing is converted between machines of one byte order
        one_way("wmpi", "distributed", size, platform="nt-unix-little", sets=["xdr_byte=0ns/B"])
    empty = [one_way("wmpi", "distributed", small, platform="nt-unix", sets=s) for s in ([], ["xdr_byte=200ns/B", "xdr_call=100us"])]
    assert empty[0] == empty[1]


# ---- start-up


def test_starting_a_job_on_six_machines() -> None:
    told = {m: simulate.startup(Question(m, "nt-cluster", Starts(6, 50), seed=0)) for m in NT}
    assert {m: t["daemons"] for m, t in told.items()} == {"winmpich": 6, "wmpi": 6, "hpvm": 7}
    assert told["winmpich"]["windows"] == 6 + 6
    assert told["hpvm"]["manual_steps_per_job"] == 1 + 2 * 6
    assert told["wmpi"]["manual_steps_per_job"] < told["hpvm"]["manual_steps_per_job"]
    assert told["winmpich"]["failure_rate"] > simulate.startup(Question("winmpich", "nt-pair", Starts(2, 50), seed=0))["failure_rate"]


def test_on_one_machine_winmpich_needs_no_proxy_and_starts_always() -> None:
    told = simulate.startup(Question("winmpich", "nt-cluster", Starts(8, 100), "shared", seed=0))
    assert (told["failures"], told["daemons"], told["windows"], told["hosts"]) == (0, 0, 8, 1)


def test_the_startup_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["startup", "-m", "winmpich", "-p", "nt-cluster", "--starts", "20"]) == 0
    assert re.search(r"6 ranks on 6 hosts: 1 steps by hand, 12 windows, 6 daemons; \d+ of 20 starts fail", capsys.readouterr().out)
    assert cli(["startup", "-m", "hpvm", "-p", "nt-unix", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["manual_steps_per_job"] == 5
    assert "big endian" in told["refused"]
    assert cli(["startup", "-m", "wmpi", "--csv"]) == 0
    assert capsys.readouterr().out.startswith("step,")
    assert cli(["startup", "-m", "wmp"]) == 2


def test_a_start_is_a_scenario(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["scenarios", "run", "start-hpvm-six", "--store", str(tmp_path / "runs.db")]) == 0
    assert "13 steps by hand" in capsys.readouterr().out
    file = tmp_path / "mine.toml"
    path = catalogue.scenario("start-hpvm-six").path
    assert path is not None
    file.write_text(path.read_text(encoding="utf-8").replace('"nt-cluster"', '"nt-unix"').replace("starts = 500", "starts = 0"))
    with refused(InputError, "out-of-range | 'starts'"):
        load(file)
    file.write_text(path.read_text(encoding="utf-8").replace('"nt-cluster"', '"nt-unix"').replace("ranks = 6", "ranks = 2"))
    assert cli(["scenarios", "run", str(file), "--store", str(tmp_path / "runs.db")]) == 1
    assert "FM converts no data" in capsys.readouterr().err


# ---- scenarios


@for_each("name", BAD + MINE)
def test_a_scenario_ends_as_its_file_says(name: str, tmp_path: Any) -> None:
    one = catalogue.scenario(name)
    store = open_store(str(tmp_path / "runs.db"))
    found = answer(store, one.question())
    assert store.run(found.run_id)["outcome"] == one.outcome
    assert answer(store, one.question()).found


def test_there_are_scenarios_that_end_badly() -> None:
    assert len(BAD) >= 7
    assert {catalogue.scenario(n).outcome for n in BAD} == {"deadlock", "aborted", "failed-start"}


def test_the_command_says_how_a_scenario_ended(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["scenarios", "run", "killed-proxy-winmpich", "--store", str(tmp_path / "runs.db")]) == 1
    told = capsys.readouterr()
    assert "killed: proxy on workstation" in told.err
    assert "rank 0" in told.err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('outcome = "deadlok"', "unknown-name | 'deadlok' | 'deadlock'"),
        ('kills = "rank 1@1s"', "bad-value | 'kills'"),
        ("kills = [1]", "bad-value | 'kills'"),
        ("[start]\nranks = 6\nstarts = 0\n[trace]", "conflicting-options"),
    ],
)
def test_a_wrong_scenario_is_told(tmp_path: Any, line: str, says: str) -> None:
    path = catalogue.scenario("killed-rank-hpvm").path
    assert path is not None
    text = path.read_text(encoding="utf-8")
    text = text.replace("[trace]", line) if line.startswith("[") else re.sub(rf"(?m)^{line.split()[0]} = .*$", line, text)
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load(file)
    agrees(caught.value, says)


# ---- checks

SUITE = {"failed": 0, "programs": 79, "missing_calls": 0, "died": 0, "failed_percent": 10.1, "failing_runs": 5, "hangs_or_asserts": 5,
         "memory_related": 4, "other_causes": 1}


def good_facts() -> dict[str, Any]:
    facts: dict[str, Any] = {"machines": 2, "processes": 2}
    for model in NT:
        for name in ("default", "raised_10", "raised_15"):
            for mode in ("shared", "distributed"):
                merge(facts, f"suite.{model}.{name}.{mode}", SUITE)
        merge(facts, f"administration.{model}.shared", {"failures": 0})
    merge(facts, "suite.winmpich.default.distributed.failed", 1)
    for mode in ("shared", "distributed"):
        merge(facts, f"suite.hpvm.default.{mode}.failed", 9)
    merge(facts, "buffers", {"hpvm": {"outcome": "aborted"}, "wmpi": {"outcome": "completed"}})
    joined = {"wmpi": "ccc", "hpvm": "ccf", "winmpich": "cff"}
    for model, ends in joined.items():
        for cluster, end in zip(("win32", "equal_order", "mixed_order"), ends, strict=True):
            merge(facts, f"joins.{model}.{cluster}.outcome", "completed" if end == "c" else "failed-start")
    return facts


WRONGS: dict[str, list[tuple[str, Any]]] = {
    "BF-FUN-02": [("suite.hpvm.default.shared.missing_calls", 1), ("suite.wmpi.default.shared.missing_calls", 3)],
    "BF-FUN-03": [("suite.winmpich.default.shared.failed", 1)],
    "BF-FUN-04": [("suite.winmpich.default.distributed.failed", 0), ("suite.winmpich.default.distributed.failed", 2)],
    "BF-FUN-05": [("suite.wmpi.raised_10.shared.failed", 1), ("suite.wmpi.raised_15.distributed.failed", 1)],
    "BF-FUN-07": [("suite.hpvm.default.shared.failed", 8), ("suite.hpvm.default.distributed.failed", 10)],
    "BF-FUN-08": [("suite.hpvm.default.distributed.failed_percent", 7.9), ("suite.hpvm.default.distributed.failed_percent", 12.1)],
    "BF-FUN-09": [("buffers.hpvm.outcome", "completed"), ("buffers.wmpi.outcome", "aborted")],
    "BF-FUN-10": [("suite.wmpi.default.shared.other_causes", 4), ("suite.hpvm.default.shared.hangs_or_asserts", 4)],
    "BF-FUN-14": [("suite.hpvm.default.distributed.died", 1)],
    "BF-FUN-15": [("joins.wmpi.mixed_order.outcome", "failed-start"), ("joins.hpvm.mixed_order.outcome", "completed")],
}


@for_each("claim_id", WRONGS)
def test_a_check_of_function_passes_and_fails(claim_id: str) -> None:
    claim = claims.find(claim_id)
    assert verdicts.judge([claim], [], good_facts())[0].verdict == "pass", verdicts.judge([claim], [], good_facts())
    for path, value in WRONGS[claim_id]:
        facts = good_facts()
        merge(facts, path, value)
        assert verdicts.judge([claim], [], facts)[0].verdict == "fail", path
    assert verdicts.judge([claim], [], {})[0].verdict == "unjudged"


def test_fully_functional_fast_and_reliable_passes_and_fails() -> None:
    claim = claims.find("BF-FUN-18")
    speeds = {"wmpi": 1, "winmpich": 2, "hpvm": 100}
    points = [{"model": m, "mode": "shared", "size_B": n, "time_us": t * (1 + n)} for m, t in speeds.items() for n in (0, 1, 2)]
    assert verdicts.judge([claim], points, good_facts())[0].verdict == "pass"
    for path in ("administration.wmpi.shared.failures", "suite.winmpich.default.shared.failed", "suite.wmpi.raised_10.shared.failed"):
        facts = good_facts()
        merge(facts, path, 1)
        assert verdicts.judge([claim], points, facts)[0].verdict == "fail"
    slow = [p | {"time_us": 50.0} if p["model"] == "wmpi" else p for p in points]
    assert verdicts.judge([claim], slow, good_facts())[0].verdict == "fail"


def test_no_row_about_function_is_left_unjudged() -> None:
    wanted = {c.id for c in claims.load() if c.id.startswith("BF-FUN-") and c.use in ("calibrate", "validate")}
    assert wanted <= claims.checks().keys()
    assert not [c for c in wanted if any(e["kind"] == "none" for e in claims.checks()[c])]
    assert wanted <= reference_ids()


def test_the_experiments_name_what_the_study_says(tmp_path: Any) -> None:
    plan, store = find_paper("baker-fox"), open_store(str(tmp_path / "runs.db"))
    facts: dict[str, Any] = {}
    for one in jobs("function", plan, store, False):
        if one.label != "smallest pool":
            done = one.work()
            merge(facts, done.where, done.result)
    assert facts["killed"]["winmpich"] | {"outcome": "deadlock", "messages_to_owner": 0} == facts["killed"]["winmpich"]
    assert facts["killed"]["wmpi"]["messages_to_owner"] == 1
    assert facts["buffers"]["hpvm"]["largest_B"] < facts["buffers"]["wmpi"]["largest_B"]
    assert facts["joins"]["hpvm"]["mixed_order"]["outcome"] == "failed-start"
    assert facts["administration"]["hpvm"]["distributed"]["daemons"] == 7
