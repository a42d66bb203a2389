"""Several jobs on one set of machines: what they have in common, what each keeps, and how each of them ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import ask
from cases import for_each
from engine_runs import job, run
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi.base.errors import InputError, UsageError
from retrompi.cli.main import run as cli
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.studies.compare import sharing
from retrompi.studies.define import catalogue
from retrompi.traces import generate

SWITCH = {"platform.link.kind": "switch"}
SHORT = generate.pingpong([0, 1024, 20000], 5)
LONG = generate.pingpong([1024], 500)


def on(mode: Any, model: str = "wmpi", trace: Any = SHORT, jobs: Any = (), **more: Any) -> simulate.Result:
    """A run on the six machines."""
    return ask(model, "nt-cluster", trace, mode, jobs=jobs, **more)


def seen(result: Any) -> Any:
    """All that a run tells but what of it a machine's clock says."""
    return (result.outcome, result.detail, result.time_ps, result.per_rank, result.marks, result.messages, result.frames, result.packets)


@pytest.mark.parametrize("model", ["winmpich", "wmpi", "hpvm"])
def test_jobs_with_nothing_in_common_do_not_meet(model: str) -> None:
    alone = on("n1,n2", model, sets=SWITCH)
    other = on("n3,n4", model, sets=SWITCH)
    both = on("n1,n2", model, sets=SWITCH, jobs=[JobSpec(model, SHORT, "n3,n4")])
    swapped = on("n3,n4", model, sets=SWITCH, jobs=[JobSpec(model, SHORT, "n1,n2")])
    assert seen(both) == seen(alone)
    assert seen(swapped) == seen(other)
    assert [j["outcome"] for j in both.jobs] == ["completed"]


@pytest.mark.parametrize("background", [False, True])
def test_whatever_the_other_does_on_its_own_machines_changes_nothing(background: bool) -> None:
    """It loses datagrams, dies, is begun again: the first job draws and counts for itself."""
    sets = [*(f"{k}={v}" for k, v in SWITCH.items()), "loss=0.1"]
    alone = on("n1,n2", sets=sets)
    other = JobSpec("wmpi", SHORT, "n3,n4", {"loss": "0.2"}, background=background, start_s=0.01)
    both = on("n1,n2", sets=sets, jobs=[other], kills=[] if background else ["rank 1 of job 2@0.05s"])
    assert alone.retransmissions > 0
    assert seen(both) == seen(alone)
    assert both.jobs[0]["outcome"] == ("ended" if background else both.jobs[0]["outcome"])
    assert both.jobs[0]["outcome"] in ("ended", "deadlock", "aborted")


@for_each("model", ["winmpich", "wmpi", "hpvm"])
@for_each("mode", ["n1,n1", "n1,n2"])
def test_one_job_beside_another_is_slower_and_loses_nothing(model: str, mode: str) -> None:
    alone = on(mode, model)
    both = on(mode, model, jobs=[JobSpec(model, SHORT, mode)])
    for j in [both.__dict__, *both.jobs]:
        assert j["outcome"] == "completed"
        assert j["time_ps"] >= alone.time_ps
        assert (j["messages"], j["bytes"]) == (alone.messages, alone.bytes) == (j["delivered"], j["delivered_bytes"])
        for row, before in zip(j["per_rank"], alone.per_rank, strict=True):
            assert {k: row[k] for k in ("sent", "received", "bytes_sent", "bytes_received")} == {
                k: before[k] for k in ("sent", "received", "bytes_sent", "bytes_received")
            }


def test_a_processor_is_divided_and_its_time_conserved() -> None:
    work = job("compute 220e6")
    alone = on("n1", trace=work)
    both = on("n1", trace=work, jobs=[JobSpec("wmpi", work, "n1"), JobSpec("hpvm", work, "n1")])
    used = [both.per_rank[0]["cpu_s"], *(j["per_rank"][0]["cpu_s"] for j in both.jobs)]
    ends = [both.time_s, *(j["time_s"] for j in both.jobs)]
    assert used == pytest.approx([alone.time_s] * 3, rel=1e-3)
    assert max(ends) == pytest.approx(3 * alone.time_s, rel=1e-2)
    quantum = registry.platform("nt-cluster").hosts[0].quantum
    assert max(ends) - min(ends) <= 3 * quantum


def test_equal_jobs_on_a_hub_have_equal_shares_of_it() -> None:
    """Two streams of one-way messages that each would fill the wire: each gets half, the wire carries as much as before."""
    bulk = job("; ".join(["send 1 0 200000 6"] * 5), "; ".join(["recv 0 0 200000 6"] * 5))
    slow = {"platform.link.bandwidth": "1Mbps"}  # the wire, and nothing else, holds them up
    alone = on("n1,n2", "winmpich", bulk, sets=slow)
    both = on("n1,n2", "winmpich", bulk, sets=slow, jobs=[JobSpec("winmpich", bulk, "n3,n4")])
    times = [both.time_s, both.jobs[0]["time_s"]]
    carried = 2 * 5 * 200_000 * 8 / 1e6  # seconds of the wire for the data alone
    assert 1.05 * carried < max(times) <= 2 * alone.time_s
    assert times[0] == pytest.approx(times[1], rel=0.01)


def test_a_job_that_starts_when_the_other_is_over_is_alone() -> None:
    alone = on("n1,n2")
    both = on("n1,n2", jobs=[JobSpec("wmpi", SHORT, "n1,n2", start_s=alone.time_s + 5)])
    assert seen(both) == seen(alone)
    assert both.jobs[0]["start_s"] == alone.time_s + 5
    # Clock ticks and the timers of the datagrams fall otherwise; the work is the same.
    assert both.jobs[0]["time_s"] == pytest.approx(alone.time_s, rel=0.05)


@pytest.mark.parametrize("model", ["winmpich", "wmpi", "hpvm"])
def test_a_killed_process_of_the_second_job_leaves_the_first_going(model: str) -> None:
    result = on("n1,n2", model, LONG, jobs=[JobSpec(model, LONG, "n1,n2")], kills=["rank 1 of job 2@0.05s"])
    assert (result.outcome, result.detail) == ("completed", "")
    (other,) = result.jobs
    assert other["outcome"] in ("deadlock", "aborted")
    assert "killed: rank 1 of job 2 at 0.05 s" in other["detail"]
    assert [w["rank"] for w in other["waits"]] == [0]


def test_the_first_job_may_end_badly_and_the_second_well() -> None:
    result = on("n1,n2", "winmpich", LONG, jobs=[JobSpec("winmpich", LONG, "n1,n2")], kills=["proxy on n1@1s"])
    assert result.outcome == "deadlock"
    assert result.jobs[0]["outcome"] == "completed"
    long = job("send 1 0 2000000 6", "recv 0 0 2000000 6")
    aborted = on("n1,n1", "wmpi", long, sets=["largest_class=1GiB", "packet=4MiB"], jobs=[JobSpec("wmpi", LONG, "n1,n1")])
    assert aborted.outcome == "aborted"
    assert "pool" in aborted.detail
    assert aborted.jobs[0]["outcome"] == "completed"


def test_a_deadlock_is_seen_while_a_background_job_could_go_on_for_ever() -> None:
    stuck = job("recv 1 0 100 6", "recv 0 0 100 6")
    for model in ("wmpi", "winmpich", "hpvm"):
        result = on("n1,n2", model, stuck, jobs=[JobSpec("wmpi", SHORT, "n1,n2", background=True)])
        assert result.outcome == "deadlock"
        assert result.diagnosis["closed"]
        assert result.jobs[0]["outcome"] == "ended"


def test_every_job_has_its_own_pools_and_proxies() -> None:
    """What fills the pool of one finds room in that of the other."""
    n = 3  # more than half of the buffers of 1 MiB: there would be no room for twice as many

    def filling(n: int) -> Any:
        lines = ["; ".join(f"{way} {i} 100000 6" for i in range(n)) for way in ("send 1", "recv 0")]
        return job(lines[0], f"compute 220e6; {lines[1]}")

    fill = filling(n)
    alone = on("n1,n1", trace=fill)
    both = on("n1,n1", trace=fill, jobs=[JobSpec("wmpi", fill, "n1,n1")])
    assert on("n1,n1", trace=filling(2 * n)).outcome == "aborted"
    assert {alone.outcome, both.outcome, both.jobs[0]["outcome"]} == {"completed"}


def test_a_background_job_is_begun_again_until_the_first_is_over() -> None:
    result = on("n1,n2", trace=LONG, jobs=[JobSpec("wmpi", SHORT, "n3,n4", background=True)], sets=SWITCH)
    once = on("n3,n4", sets=SWITCH)
    (other,) = result.jobs
    assert other["outcome"] == "ended"
    assert other["runs"] > 2
    assert other["time_s"] / other["runs"] == pytest.approx(once.time_s, rel=0.1)
    assert other["time_s"] <= result.time_s
    with refused(InputError, "bad-input | 10000"):
        on("n1,n2", trace=LONG, jobs=[JobSpec("wmpi", job("init", "init"), "n3,n4", background=True)])


def test_the_same_seed_gives_the_same_and_the_engine_twice_the_same() -> None:
    jobs = [JobSpec("wmpi", SHORT, "n1,n3", {"loss": "0.1"}), JobSpec("winmpich", SHORT, "n1,n1", background=True, start_s=0.02)]
    one, two, other = (on("n1,n2", sets=["loss=0.1"], seed=s, jobs=jobs) for s in (3, 3, 4))
    assert (seen(one), one.jobs, one.events) == (seen(two), two.jobs, two.events)
    assert seen(one) != seen(other)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["wmpi", "winmpich", "hpvm"]), st.sampled_from(["n1,n2", "n2,n1", "n1,n1", "n3,n1"]),
                       st.sampled_from([0.0, 0.013, 0.4]), st.booleans()), min_size=1, max_size=3),
    st.sampled_from(["wmpi", "winmpich", "hpvm"]),
)
def test_any_mixture_ends_and_keeps_its_bytes(others: list[Any], first: str) -> None:
    result = on("n1,n2", first, jobs=[JobSpec(m, SHORT, where, start_s=at, background=again) for m, where, at, again in others])
    assert result.outcome == "completed"
    assert (result.delivered, result.delivered_bytes) == (result.messages, result.bytes)
    for j in result.jobs:
        assert j["outcome"] == ("ended" if j["background"] else "completed")
        if not j["background"]:
            assert (j["delivered"], j["delivered_bytes"]) == (j["messages"], j["bytes"])


def test_a_timeline_and_an_anatomy_are_of_the_first_job() -> None:
    from retrompi.sim.timeline import TimelineRequest

    both = on("n1,n2", jobs=[JobSpec("wmpi", SHORT, "n1,n2")], timeline=TimelineRequest(), profile=True)
    assert both.time_ps == on("n1,n2", jobs=[JobSpec("wmpi", SHORT, "n1,n2")]).time_ps
    assert not any("job 2" in p.name for p in both.timeline.processes)
    assert sum(count for _, _, _, count, _ in both.profile["calls"]) == 2 * both.messages


@for_each(
    "jobs, more, says",
    [
        ([JobSpec("wmpi", SHORT, "n1,n2")], {"fidelity": "curve"}, "needs-mechanism | 'curve'"),
        ([JobSpec("wmpi", SHORT, "n1,n2")], {"network": "simgrid"}, "needs-mechanism"),
        ([JobSpec("wmpi", SHORT, "n1,n9")], {}, "unknown-host | 'n9'"),
        ([JobSpec("wmpj", SHORT, "n1,n2")], {}, "unknown-model | 'wmpj'"),
        ([JobSpec("wmpi", SHORT, "n1,n2", {"platform.link.latency": "1us"})], {}, "bad-jobs"),
        ([JobSpec("wmpi", SHORT, "n1,n2", {"pol": "1MiB"})], {}, "unknown-parameter | 'wmpi' | 'pol'"),
        ([JobSpec("wmpi", SHORT, "n1,n1", {"coll.bcast": "linear"})], {}, "idle-override | --set | coll.bcast"),
        ([JobSpec("wmpi", SHORT, "n1,n2", name="a"), JobSpec("wmpi", SHORT, "n1,n2", name="a")], {}, "duplicate-name | 'a'"),
        ([JobSpec("wmpi:absorbed", SHORT, "n1,n2")], {}, "bad-jobs | 'n1'"),
        ([JobSpec("wmpi", SHORT, "n1,n2")], {"kills": ["rank 0 of job 3@1s"]}, "unknown-process | 'rank 0 of job 3'"),
        ([JobSpec("wmpi", SHORT, "n1,n2", start_s=2)], {"kills": ["rank 0 of job 2@1s"]}, "unknown-process | 2 s"),
    ],
)
def test_what_cannot_be_shared_is_one_line(jobs: Any, more: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        on("n1,n2", jobs=jobs, **more)
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)


def test_a_runtime_that_cannot_join_its_hosts_is_no_end_for_the_others() -> None:
    result = ask("wmpi", "nt-unix", SHORT, jobs=[JobSpec("winmpich", SHORT, "distributed")])
    assert result.outcome == "completed"
    assert result.jobs[0]["outcome"] == "failed-start"
    assert result.jobs[0]["detail"]
    assert result.time_ps == run(SHORT, "wmpi", "distributed", platform="nt-unix").time_ps


SCENARIO = """
name = "beside"
title = "A PingPong beside another"
summary = "two PingPongs"
reproduces = "what-if: a shared hub"
model = "wmpi"
platform = "nt-cluster"
mode = "n1,n2"
[trace]
generator = "pingpong"
sizes = "1KiB"
reps = 5
"""
NEIGHBOUR = """
[[job]]
model = "winmpich"
mode = "n3,n4"
{more}
[job.trace]
generator = "pingpong"
sizes = "1KiB"
reps = 5
"""


def test_a_scenario_has_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, beside = tmp_path / "plain.toml", tmp_path / "beside.toml"
    plain.write_text(SCENARIO)
    beside.write_text(SCENARIO + NEIGHBOUR.format(more='start = "1 ms"\nname = "b"') + '[job.set]\n"proxy_packet" = "2KiB"\n')
    s = catalogue.scenario(str(beside))
    assert s.hash != catalogue.scenario(str(plain)).hash
    assert (s.jobs[0].start_s, s.jobs[0].name, s.jobs[0].sets) == (0.001, "b", {"proxy_packet": "2KiB"})
    store = open_store(f"{tmp_path}/runs.db")
    found = answer(store, s.question())
    assert store.run(found.run_id)["facts"]["jobs"][0]["outcome"] == "completed"
    assert answer(store, s.question()).found
    assert not answer(store, (catalogue.scenario(str(plain))).question()).found
    rows = sharing.compare(store, s)
    assert [r["name"] for r in rows] == ["beside", "b"]
    assert all(r["slowdown"] > 0.99 for r in rows)  # a tick may fall a little earlier
    assert cli(["share", str(beside), "--store", f"{tmp_path}/runs.db"]) == 0
    assert "slow-down" in capsys.readouterr().out
    assert cli(["share", str(plain), "--store", f"{tmp_path}/runs.db"]) == 2
    assert "has no [[job]]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("begin = 1", "unknown-key | 'begin'"),
        ('start = "5 MB"', "bad-unit | 'start'"),
        ('background = "yes"', "bad-value | 'background'"),
        ('set = "x"', "bad-value | 'set'"),
    ],
)
def test_a_wrong_job_is_told_with_its_line(tmp_path: Path, more: str, says: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO + NEIGHBOUR.format(more=more))
    with pytest.raises(InputError) as caught:
        catalogue.scenario(str(file))
    agrees(caught.value, says)
    assert f"{file}:{SCENARIO.count(chr(10)) + 2}:" in str(caught.value)


def test_the_document_names_every_scenario() -> None:
    text = (Path(__file__).resolve().parents[1] / "docs" / "sharing.md").read_text(encoding="utf-8")
    for name, s in catalogue.scenarios().items():
        if s.jobs or s.setting("failures"):
            assert f"`{name}`" in text or "docs/networks.md" in str(s.summary), name
