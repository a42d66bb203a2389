"""The studio's jobs: progress, ends, limits, turns between sessions."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import studio_work
from cases import for_each
from refusals import refused
from studio_app import PATIENCE_S, UPDATE, app, client, ended, resources, soon

from retrompi.base.errors import UsageError
from retrompi.studio.components import parts
from retrompi.studio.jobs.job import JobState
from retrompi.studio.jobs.limits import Limits
from retrompi.studio.jobs.queue import Jobs
from retrompi.studio.jobs.resources import Resources

__all__ = ["app", "client", "resources"]  # fixtures


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    made = Jobs(Limits(running=4, running_a_session=2, jobs_a_session=5, kept=4, job_s=1200, result_B=1 << 20))
    yield made
    made.close()


def test_a_job_answers(jobs: Jobs) -> None:
    value = {"numbers": [1, 2.5, None, True], "text": "µ <b>", "nested": {"a": []}}
    found = ended(jobs, jobs.submit("a", "echo", studio_work.echo, value))
    assert (found.status, found.result, found.error) == ("done", value, "")
    assert (found.done, found.total, found.what) == (1, 1, "said")


def test_jobs_of_requests_at_once_have_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Jobs(Limits(jobs=10_000, jobs_a_session=10_000))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda i: made.submit(f"s{i % 16}", "echo", studio_work.echo, i), range(1600)))
        numbers = [job.share.number for job in made._jobs.values()]
        assert len(numbers) == len(set(numbers))
        assert made._arrived == 1600
    finally:
        sys.setswitchinterval(before)
        made.close()


def test_a_job_that_cannot_begin_is_told_and_the_next_one_runs(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> Any:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as m:
        m.setattr(jobs._context, "Pipe", full)
        found = ended(jobs, jobs.submit("a", "first", studio_work.echo, 1))
    assert (found.status, found.error) == ("failed", "its process cannot be started: OSError: [Errno 24] Too many open files")
    assert ended(jobs, jobs.submit("a", "second", studio_work.echo, 2)).result == 2


@for_each("said", [b"[1]", b"{}", b'{"kind": "report"}', b'{"kind": "report", "done": "x", "total": 1, "what": ""}', b"["])
def test_a_process_that_talks_nonsense_fails_alone(jobs: Jobs, said: bytes) -> None:
    found = ended(jobs, jobs.submit("a", "nonsense", studio_work.say, said.decode()))
    assert found.status == "failed"
    assert "died" in found.error or "says nothing" in found.error
    assert ended(jobs, jobs.submit("a", "next", studio_work.echo, 2)).result == 2


def test_what_is_done_with_a_result_is_done_once_whoever_asks_and_before_the_job_has_ended(jobs: Jobs) -> None:
    told: list[JobState] = []
    go = threading.Event()

    def then(state: JobState) -> None:
        go.wait(PATIENCE_S)
        told.append(state)

    job = jobs.submit("a", "echo", studio_work.echo, 7, then=then)
    assert soon(lambda: jobs.state(job, "a").status == "keeping")
    jobs.cancel(job, "a")
    assert parts.job_line(jobs.state(job, "a")) == "echo: being recorded"
    assert told == []
    go.set()
    assert ended(jobs, job).result == 7
    assert [(s.status, s.result) for s in told] == [("done", 7)]
    for work, args, status in ((studio_work.refuse, (), "failed"), (studio_work.count, (1000, 0.05), "cancelled")):
        job = jobs.submit("a", "other", work, *args, then=told.append)
        if status == "cancelled":
            jobs.cancel(job, "a")
        assert ended(jobs, job).status == status
        assert told[-1].status == status
    assert len(told) == 3


def test_what_cannot_be_done_with_a_result_is_the_job_s_failure(jobs: Jobs) -> None:
    def refused(state: JobState) -> None:
        raise UsageError("no room\nfor it")

    def broken(state: JobState) -> None:
        raise KeyError("secret")

    lines = [ended(jobs, jobs.submit("a", "echo", studio_work.echo, 1, then=then)).error for then in (refused, broken)]
    assert lines == ["no room for it", "internal error: KeyError; see the terminal of 'retrompi studio' for details"]


def test_a_studio_that_closes_takes_nothing_for_cancelled(tmp_path: Path) -> None:
    told: list[JobState] = []
    made = Jobs(Limits())
    made.submit("a", "waits", studio_work.wait_for, str(tmp_path / "never"), then=told.append)
    made.close()
    assert told == []


def test_a_job_that_stays_is_not_replaced(jobs: Jobs) -> None:
    stays, goes = (jobs.submit("stay", "count", studio_work.count, 1000, 0.05, slot="page tab", stays=s) for s in (True, False))
    jobs.submit("stay", "echo", studio_work.echo, 2, slot="page tab")
    jobs.leave("stay", "page tab")
    assert ended(jobs, goes, "stay").status == "cancelled"
    assert not jobs.state(stays, "stay").ended
    jobs.cancel(stays, "stay")


def test_a_job_says_how_far_it_is(jobs: Jobs) -> None:
    job = jobs.submit("a", "count", studio_work.count, 400, 0.05)
    assert soon(lambda: jobs.state(job, "a").done > 1)
    found = jobs.state(job, "a")
    assert found.status == "running"
    assert found.total == 400
    assert found.what.startswith("step ")
    jobs.cancel(job, "a")


@for_each("work, args, line", [
    (studio_work.refuse, (), "this is not possible"),
    (studio_work.fail, (), "internal error: KeyError"),
    (studio_work.abort, (), "died (signal 6)"),
    (studio_work.no_json, (), "internal error: TypeError"),
    (studio_work.nan, (), "internal error: ValueError"),
    (studio_work.large, (2 << 20,), "more than the studio shows"),
])
def test_a_failure_is_one_line(jobs: Jobs, work: Any, args: Any, line: str) -> None:
    found = ended(jobs, jobs.submit("a", "fails", work, *args))
    assert found.status == "failed"
    assert line in found.error
    assert "\n" not in found.error
    assert "secret" not in found.error
    assert found.result is None


def test_too_much_memory_is_a_line(jobs: Jobs) -> None:
    found = ended(jobs, jobs.submit("a", "eats", studio_work.eat, 1 << 30, memory_B=256 << 20))
    assert found.status == "failed"
    assert "256 MiB of memory" in found.error
    assert ended(jobs, jobs.submit("a", "eats", studio_work.eat, 1 << 20, memory_B=256 << 20)).status == "done"


@for_each("more, line", [
    ({"status": "queued", "ahead": 2, "running": 7}, "waiting, number 3 in the queue; 7 jobs have begun"),
    ({"status": "queued"}, "about to start"),
    ({"status": "queued", "own": True, "running": 2}, "waits for your other jobs; cancel one of them"),
    ({"status": "running", "paused": True, "running": 6, "seconds": 12.3},
     "paused after 12 s, continues in its turn; 6 jobs share the processors"),
    ({"status": "running", "done": 1, "total": 3, "what": "simulating", "seconds": 12.3}, "1 of 3, simulating (12 s)"),
])
def test_a_waiting_user_sees_the_queue(more: dict[str, Any], line: str) -> None:
    assert parts.job_line(JobState("id", "Replay", **more)) == f"Replay: {line}"


def test_too_long_is_a_line(jobs: Jobs) -> None:
    found = ended(jobs, jobs.submit("a", "long", studio_work.count, 1000, 1.0, seconds=1.0))
    assert found.status == "failed"
    assert "ended after 1 s" in found.error


def gone(pid: int) -> bool:
    """Whether a process is no more, or only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_cancelling_ends_the_process_and_what_it_started(jobs: Jobs, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    job = jobs.submit("a", "hangs", studio_work.hang, str(file))
    assert soon(lambda: file.exists() and len(file.read_text().split()) == 2)
    pids = [int(p) for p in file.read_text().split()]
    jobs.cancel(job, "a")
    assert jobs.state(job, "a").status == "cancelled"
    assert soon(lambda: all(gone(p) for p in pids))


def test_another_session_can_neither_read_nor_cancel(jobs: Jobs) -> None:
    job = jobs.submit("a", "count", studio_work.count, 1000, 0.05)
    for use in (jobs.state, jobs.cancel, lambda j, s: jobs.wait(j, s, 0)):
        with refused(UsageError, "gone"):
            use(job, "b")
    assert not jobs.state(job, "a").ended
    jobs.cancel(job, "a")


def test_a_newer_job_takes_the_place_of_the_older(jobs: Jobs) -> None:
    first = jobs.submit("a", "count", studio_work.count, 1000, 0.05, slot="page tab")
    other = jobs.submit("a", "count", studio_work.count, 1000, 0.05, slot="page other-tab")
    second = jobs.submit("a", "echo", studio_work.echo, 2, slot="page tab")
    assert jobs.state(first, "a").status == "cancelled"
    assert not jobs.state(other, "a").ended
    assert ended(jobs, second).result == 2
    jobs.cancel(other, "a")


def test_the_newest_job_of_a_slot_is_its_sessions(jobs: Jobs) -> None:
    job = jobs.submit("a", "echo", studio_work.echo, 1, slot="newest", question="q")
    ended(jobs, job)
    assert jobs.newest("a", "newest", "q", 0.0) == job
    assert jobs.newest("a", "newest", "another", 0.01) == job, "better an older answer than none"
    assert jobs.newest("b", "newest", "q", 0.0) is None
    assert jobs.newest("a", "other", "q", 0.0) is None
    later = threading.Timer(0.2, lambda: jobs.submit("a", "echo", studio_work.echo, 2, slot="newest", question="next"))
    later.start()
    assert jobs.newest("a", "newest", "next", PATIENCE_S) != job, "the job of a question that is about to be asked is waited for"
    later.join()


def test_a_page_that_is_loaded_again_takes_up_what_runs(jobs: Jobs) -> None:
    job = jobs.submit("again", "count", studio_work.count, 1000, 0.05, slot="page old", question="q")
    assert jobs.take_up("another", "page", "page new", "r") is None, "of its own session only"
    assert jobs.take_up("again", "pag", "page new", "r") is None, "of this page only"
    assert jobs.newest("again", "page new", "r", 0.0) is None
    assert jobs.take_up("again", "page", "page new", "r") == job
    assert jobs.newest("again", "page new", "r", 0.0) == job
    assert jobs.newest("again", "page old", "q", 0.0) == job, "another tab may look on"
    after = jobs.submit("again", "echo", studio_work.echo, 1, slot="page new", question="s")
    assert jobs.state(job, "again").status == "cancelled"
    ended(jobs, after, "again")
    assert jobs.take_up("again", "page", "page third", "r") is None, "what is over is no longer taken up"


def question(series: str, by: str, packet: str = "192KiB") -> dict[str, Any]:
    """What a browser posts of the what-if page when ``by`` has changed."""
    sets = {"wmpi.packet": packet}
    asked = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "sets": sets}
    outputs = [("figure", "figure"), ("outcome", "children"), ("numbers", "children"), ("command", "children"), ("job", "data"),
               ("job-line", "children"), ("progress", "value"), ("progress", "hidden"), ("cancel", "hidden"),
               ("tick", "max_intervals")]
    inputs = [("whatif-question", "data", asked), ("whatif-series", "value", series), ("whatif-y", "value", "log"),
              ("whatif-interval", "value", []), ("whatif-draws-job", "data", None), ("whatif-drawn", "data", None),
              ("whatif-tick", "n_intervals", 3), ("whatif-cancel", "n_clicks", 0)]
    states = [("studio-tab", "data", "a-tab"), ("studio-letters", "data", 16)]
    return {
        "output": f"..{'...'.join(f'whatif-{i}.{p}' for i, p in outputs)}..",
        "outputs": [{"id": f"whatif-{i}", "property": p} for i, p in outputs],
        "inputs": [{"id": i, "property": p, "value": v} for i, p, v in inputs],
        "state": [{"id": i, "property": p, "value": v} for i, p, v in states],
        "changedPropIds": [by],
    }


def test_what_overtakes_a_question_is_answered_with_its_job(client: Any, resources: Resources) -> None:
    """A view or a tick that comes while the answer is on its way asks no other job, nor for an older one."""
    answers = []
    for series, by in (("bandwidth", "whatif-question.data"), ("time", "whatif-series.value"), ("time", "whatif-tick.n_intervals")):
        until = time.monotonic() + PATIENCE_S
        while True:
            got = client.post(UPDATE, json=question(series, by)).json["response"]
            if "whatif-figure" in got or time.monotonic() > until:
                break
            by = "whatif-tick.n_intervals"
        answers.append(got)
    assert len({a["whatif-job"]["data"] for a in answers}) == 1
    axes = [a["whatif-figure"]["figure"]["layout"]["yaxis"]["title"]["text"] for a in answers]
    assert axes == ["bandwidth", "one-way time", "one-way time"]
    other = client.post(UPDATE, json=question("time", "whatif-question.data", "32KiB")).json["response"]
    assert other["whatif-job"]["data"] != answers[0]["whatif-job"]["data"]
    view = client.post(UPDATE, json=question("bandwidth", "whatif-series.value", "32KiB")).json["response"]
    assert view["whatif-job"]["data"] == other["whatif-job"]["data"]


def test_a_session_has_so_many_jobs_and_its_oldest_answers_are_forgotten(jobs: Jobs) -> None:
    busy = [jobs.submit("many", "count", studio_work.count, 1000, 0.05) for _ in range(5)]
    with refused(UsageError, "jobs-refused"):
        jobs.submit("many", "echo", studio_work.echo, 1)
    assert sum(jobs.state(j, "many").status == "queued" for j in busy) >= 3
    assert ended(jobs, jobs.submit("b", "echo", studio_work.echo, "not kept waiting"), "b").status == "done"
    for j in busy:
        jobs.cancel(j, "many")
    done: list[str] = []
    for i in range(5):  # one after another: what ended first is forgotten first
        done.append(jobs.submit("few", "echo", studio_work.echo, i))
        assert ended(jobs, done[-1], "few").result == i
    with refused(UsageError, "gone"):
        jobs.state(done[0], "few")
    assert [jobs.state(j, "few").result for j in done[1:]] == [1, 2, 3, 4]


def test_answers_take_so_much_memory_and_no_more() -> None:
    small = Jobs(Limits(kept_B=3000, kept=50))
    try:
        done = []
        for session in ("a", "b", "c", "d"):
            done.append((small.submit(session, "large", studio_work.large, 1000), session))
            assert ended(small, *done[-1]).status == "done"
        for job, session in done[:2]:
            with refused(UsageError, "gone"):
                small.state(job, session)
        assert small.state(*done[-1]).result == "x" * 1000
    finally:
        small.close()


def test_sessions_are_served_in_turns(tmp_path: Path) -> None:
    """One job runs, four of its session and one each of two others wait: those of the others go first."""
    one = Jobs(Limits(running=1, running_a_session=1))
    try:
        gate, order = tmp_path / "open", tmp_path / "order"
        first = one.submit("greedy", "waits", studio_work.wait_for, str(gate))
        assert soon(lambda: one.state(first, "greedy").status == "running")
        work = [("greedy", f"greedy {i}") for i in range(4)] + [("b", "b"), ("c", "c")]
        ids = [(one.submit(s, word, studio_work.note, str(order), word), s) for s, word in work]
        assert one.state(*ids[-1]).ahead <= 1
        assert one.state(*ids[0]).own
        assert ended(one, *ids[-1]).status == "done"
        gate.write_text("")
        for job, session in ids:
            ended(one, job, session)
        assert order.read_text().split("\n")[:-1] == ["b", "c", "greedy 0", "greedy 1", "greedy 2", "greedy 3"]
    finally:
        one.close()


def test_closing_ends_every_process(tmp_path: Path) -> None:
    jobs, file = Jobs(), tmp_path / "pids"
    jobs.submit("a", "hangs", studio_work.hang, str(file))
    assert soon(lambda: file.exists() and len(file.read_text().split()) == 2)
    jobs.close()
    assert soon(lambda: all(gone(int(p)) for p in file.read_text().split()))
    with refused(UsageError, "jobs-refused"):
        jobs.submit("a", "echo", studio_work.echo, 1)


def test_a_job_makes_a_box_where_its_studio_does(jobs: Jobs) -> None:
    """What is taken from a job, such as its core, must leave what lab 9's box takes from a program."""
    from retrompi.labs import sandbox

    if why := sandbox.missing():
        pytest.skip(why)
    assert ended(jobs, jobs.submit("a", "a box", studio_work.no_box)).result == ""
