"""The studio without a browser: pages, the state in the address, jobs, what a request may be (test_studio_browser.py has one)."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import studio_work
from flask import g
from hypothesis import given, settings
from hypothesis import strategies as st

from retrompi import registry, units
from retrompi.errors import RetrompiError, UsageError
from retrompi.studio import parameters, parts, runs, state
from retrompi.studio.app import create_app, page_content
from retrompi.studio.guard import Guard
from retrompi.studio.jobs import Jobs, JobState
from retrompi.studio.page import Page, modules, pages
from retrompi.studio.room import Limits, Room
from retrompi.studio.serve import Studio
from retrompi.studio.state import Control, Query

PATHS = [p.path for p in pages()]
JSON = {"Content-Type": "application/json"}
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    made = Room(Jobs(), str(tmp_path_factory.mktemp("studio") / "store.db"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def app(room: Room) -> Any:
    return create_app(room)


@pytest.fixture
def client(app: Any) -> Any:
    """A browser without JavaScript that has opened the front page."""
    found = app.server.test_client()
    assert found.get("/").status_code == 200
    return found


def soon(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.02)
    return False


def ended(jobs: Jobs, job: str, session: str = "a") -> JobState:
    found = jobs.wait(job, session, PATIENCE_S)
    assert found.ended, found
    return found


# -- pages -------------------------------------------------------------------------------------------------------------


def every(component: Any) -> Iterator[Any]:
    """A component and all within it."""
    if isinstance(component, (list, tuple)):
        for one in component:
            yield from every(one)
    elif hasattr(component, "to_plotly_json"):
        yield component
        yield from every(getattr(component, "children", None))


def words(component: Any) -> str:
    """All text of a component."""
    if isinstance(component, (list, tuple)):
        return " ".join(words(c) for c in component)
    if hasattr(component, "to_plotly_json"):
        return words(getattr(component, "children", None))
    return "" if component is None else str(component)


@pytest.fixture
def draw(app: Any, room: Room) -> Callable[..., Any]:
    """What a page shows to a new session."""

    def drawn(path: str, search: str = "") -> Any:
        with app.server.test_request_context(path):
            g.session = "a-session-of-the-tests"
            return page_content(path, search, room)

    return drawn


@pytest.mark.parametrize("path", PATHS)
class TestPage:
    def test_says_what_it_is(self, path: str) -> None:
        page: Page = modules()[path].PAGE
        assert re.fullmatch(r"/[a-z]*", page.path)
        assert page.title
        assert page.help.endswith(".")
        assert "\n" not in page.help
        assert len({p.order for p in pages()}) == len(pages()), "two pages have the same place in the navigation"
        assert len({c.key for c in page.controls}) == len(page.controls)

    def test_is_drawn_with_its_controls_under_one_id_each(self, path: str, draw: Any) -> None:
        content, title = draw(path)
        page: Page = modules()[path].PAGE
        assert title == page.title
        ids = [json.dumps(i, sort_keys=True) for c in every(content) if (i := getattr(c, "id", None)) is not None]
        assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
        for control in page.controls:
            assert json.dumps(control.id) in ids, control.id
            assert control.id.startswith(f"{page.name}-")
        assert not any("in this link" in words(c) for c in every(content) if "notice" in (getattr(c, "className", "") or ""))

    def test_a_link_that_means_nothing_is_told_and_shown_without(self, path: str, draw: Any) -> None:
        page: Page = modules()[path].PAGE
        hostile = "../../etc/passwd<script>alert(1)</script>"
        query = "&".join(f"{c.key}={hostile}" for c in page.controls) + "&nonsense=1"
        content, _ = draw(path, f"?{query}")
        if page.controls:
            assert "'nonsense' in this link means nothing here" in words(content)

    def test_a_text_from_outside_is_a_text_and_nothing_else(self, path: str, draw: Any) -> None:
        page: Page = modules()[path].PAGE
        content, _ = draw(path, "?" + "&".join(f"{c.key}=<b>x</b>" for c in page.controls))
        kinds = {type(c).__name__ for c in every(content)}
        assert not kinds & {"Script", "Iframe", "Markdown", "ObjectEl", "Embed", "Base"}
        for c in every(content):
            for attribute in ("href", "src"):
                assert not str(getattr(c, attribute, "") or "").lower().lstrip().startswith(("http", "//", "javascript:", "data:text")), c

    def test_every_control_has_a_name(self, path: str, draw: Any) -> None:
        """By a label around it, a label for it, or a legend around the group."""
        content, _ = draw(path)
        wanted = {"Input", "Dropdown", "RadioItems", "Checklist", "Slider", "Textarea"}
        labelled = [c.htmlFor for c in every(content) if type(c).__name__ == "Label" and getattr(c, "htmlFor", None)]
        inside = {id(i) for c in every(content) if type(c).__name__ in ("Label", "Fieldset") for i in every(c.children)}
        nameless = [c.id for c in every(content) if type(c).__name__ in wanted and c.id not in labelled and id(c) not in inside]
        assert not nameless


def test_a_page_that_is_not_there_is_one_line(room: Room) -> None:
    content, _ = page_content("/no-such", "", room)
    assert "there is no page '/no-such'" in words(content)


# -- the state in the address ------------------------------------------------------------------------------------------

CONTROLS = (
    Control("t-text", "value", "text", "", state.text(50)),
    Control("t-choice", "value", "choice", "one", state.choice(["one", "two", "three & four"])),
    Control("t-number", "value", "number", 3, state.number(-1e6, 1e6)),
    Control("t-flag", "value", "flag", False, state.flag),
    Control("t-list", "value", "list", ["a"], state.text(50)),
    Control("t-named", "data", "set", {}, state.text(120)),
)
PRINTABLE = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=20).filter(str.isprintable)
NAMES = st.from_regex(r"[a-z]{1,8}(\.[a-z_]{1,8}){0,2}", fullmatch=True)


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries({
        "text": PRINTABLE,
        "choice": st.sampled_from(["one", "two", "three & four"]),
        "number": st.floats(-1e6, 1e6, allow_nan=False),
        "flag": st.booleans(),
        "list": st.lists(PRINTABLE.filter(bool), max_size=4, unique=True),
        "set": st.dictionaries(NAMES, PRINTABLE.filter(bool), max_size=4),
    })
)  # fmt: skip
def test_what_is_written_into_an_address_is_read_out_of_it(values: dict[str, Any]) -> None:
    search = state.encode(CONTROLS, values)
    assert re.fullmatch(r"(\?[A-Za-z0-9%&=._~-]+)?", search)
    got, wrong = state.read(CONTROLS, Query(search))
    assert wrong == []
    assert got == values


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_address_gives_values_and_lines(search: str) -> None:
    values, wrong = state.read(CONTROLS, Query(search))
    assert set(values) == {c.key for c in CONTROLS}
    assert all("\n" not in line and len(line) < 1000 for line in wrong)


def test_what_is_at_its_default_is_not_written() -> None:
    assert state.encode(CONTROLS, {c.key: c.default for c in CONTROLS}) == ""
    assert state.link("/p", CONTROLS, choice="two") == "/p?choice=two"
    assert state.read(CONTROLS, Query("?list="))[0]["list"] == []


def test_a_link_that_is_too_long_is_told() -> None:
    values, wrong = state.read(CONTROLS, Query("?text=" + "x" * 9000))
    assert values["text"] == ""
    assert "longer than a link" in wrong[0]


# -- jobs --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    made = Jobs(Limits(running=4, running_a_session=2, jobs_a_session=5, kept=4, job_s=120, result_B=1 << 20))
    yield made
    made.close()


def test_a_job_answers(jobs: Jobs) -> None:
    value = {"numbers": [1, 2.5, None, True], "text": "µ <b>", "nested": {"a": []}}
    found = ended(jobs, jobs.submit("a", "echo", studio_work.echo, value))
    assert (found.status, found.result, found.error) == ("done", value, "")
    assert (found.done, found.total, found.what) == (1, 1, "said")


def test_a_job_that_cannot_begin_is_told_and_the_next_one_runs(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> Any:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as m:
        m.setattr(jobs._context, "Pipe", full)
        found = ended(jobs, jobs.submit("a", "first", studio_work.echo, 1))
    assert (found.status, found.error) == ("failed", "its process cannot be started: OSError: [Errno 24] Too many open files")
    assert ended(jobs, jobs.submit("a", "second", studio_work.echo, 2)).result == 2


@pytest.mark.parametrize("said", [b"[1]", b"{}", b'{"kind": "report"}', b'{"kind": "report", "done": "x", "total": 1, "what": ""}', b"["])
def test_a_process_that_talks_nonsense_fails_alone(jobs: Jobs, said: bytes) -> None:
    found = ended(jobs, jobs.submit("a", "nonsense", studio_work.say, said.decode()))
    assert found.status == "failed"
    assert "died" in found.error or "says nothing" in found.error
    assert ended(jobs, jobs.submit("a", "next", studio_work.echo, 2)).result == 2


def test_a_job_says_how_far_it_is(jobs: Jobs) -> None:
    job = jobs.submit("a", "count", studio_work.count, 400, 0.05)
    assert soon(lambda: jobs.state(job, "a").done > 1)
    found = jobs.state(job, "a")
    assert found.status == "running"
    assert found.total == 400
    assert found.what.startswith("step ")
    jobs.cancel(job, "a")


@pytest.mark.parametrize(("work", "args", "line"), [
    (studio_work.refuse, (), "this is not possible"),
    (studio_work.fail, (), "internal error: KeyError"),
    (studio_work.abort, (), "died (signal 6)"),
    (studio_work.no_json, (), "internal error: TypeError"),
    (studio_work.nan, (), "internal error: ValueError"),
    (studio_work.large, (2 << 20,), "more than the studio shows"),
])  # fmt: skip
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
        with pytest.raises(UsageError, match="no such job"):
            use(job, "b")
    assert jobs.of_session("b") == []
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
               ("tick", "max_intervals")]  # fmt: skip
    inputs = [("whatif-question", "data", asked), ("whatif-series", "value", series), ("whatif-y", "value", "log"),
              ("whatif-tick", "n_intervals", 3), ("whatif-cancel", "n_clicks", 0)]  # fmt: skip
    states = [("studio-tab", "data", "a-tab"), ("studio-letters", "data", 16)]
    return {
        "output": f"..{'...'.join(f'whatif-{i}.{p}' for i, p in outputs)}..",
        "outputs": [{"id": f"whatif-{i}", "property": p} for i, p in outputs],
        "inputs": [{"id": i, "property": p, "value": v} for i, p, v in inputs],
        "state": [{"id": i, "property": p, "value": v} for i, p, v in states],
        "changedPropIds": [by],
    }


def test_what_overtakes_a_question_is_answered_with_its_job(client: Any, room: Room) -> None:
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
    with pytest.raises(UsageError, match="5 of your jobs"):
        jobs.submit("many", "echo", studio_work.echo, 1)
    assert sum(jobs.state(j, "many").status == "queued" for j in busy) >= 3
    assert ended(jobs, jobs.submit("b", "echo", studio_work.echo, "not kept waiting"), "b").status == "done"
    for j in busy:
        jobs.cancel(j, "many")
    done = [jobs.submit("few", "echo", studio_work.echo, i) for i in range(4)]
    assert [ended(jobs, j, "few").result for j in done] == [0, 1, 2, 3]
    done.append(jobs.submit("few", "echo", studio_work.echo, 4))
    ended(jobs, done[-1], "few")
    known = {s.id for s in jobs.of_session("few")}
    assert len(known) == 4
    assert done[-1] in known
    with pytest.raises(UsageError, match="no such job"):
        jobs.state(next(j for j in done if j not in known), "few")


def test_answers_take_so_much_memory_and_no_more() -> None:
    small = Jobs(Limits(kept_B=3000, kept=50))
    try:
        done = []
        for session in ("a", "b", "c", "d"):
            done.append((small.submit(session, "large", studio_work.large, 1000), session))
            assert ended(small, *done[-1]).status == "done"
        for job, session in done[:2]:
            with pytest.raises(UsageError, match="no such job"):
                small.state(job, session)
        assert small.state(*done[-1]).result == "x" * 1000
    finally:
        small.close()


def test_sessions_are_served_in_turns(tmp_path: Path) -> None:
    """One process, four waiting jobs of one session and one each of two others: nobody waits for all four."""
    one = Jobs(Limits(running=1, running_a_session=1))
    try:
        gate, order = tmp_path / "open", tmp_path / "order"
        first = one.submit("greedy", "waits", studio_work.wait_for, str(gate))
        assert soon(lambda: one.state(first, "greedy").status == "running")
        work = [("greedy", f"greedy {i}") for i in range(4)] + [("b", "b"), ("c", "c")]
        ids = [(one.submit(s, word, studio_work.note, str(order), word), s) for s, word in work]
        assert one.state(*ids[-1]).ahead == 6
        gate.write_text("")
        for job, session in ids:
            ended(one, job, session)
        assert order.read_text().split("\n")[:3] == ["greedy 0", "b", "c"]
        assert order.read_text().split("\n")[3:6] == ["greedy 1", "greedy 2", "greedy 3"]
    finally:
        one.close()


def test_closing_ends_every_process(tmp_path: Path) -> None:
    jobs, file = Jobs(), tmp_path / "pids"
    jobs.submit("a", "hangs", studio_work.hang, str(file))
    assert soon(lambda: file.exists() and len(file.read_text().split()) == 2)
    jobs.close()
    assert soon(lambda: all(gone(int(p)) for p in file.read_text().split()))
    with pytest.raises(UsageError, match="ending"):
        jobs.submit("a", "echo", studio_work.echo, 1)


# -- parameters and runs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", registry.model_names())
def test_every_parameter_can_be_slid_and_says_what_it_rests_on(model: str) -> None:
    known = registry.model(model).calibrated
    platform = known.platforms[0] if known else "nt-pair"
    for mode in parameters.modes(platform)[:2]:
        for slot in parameters.slots(model, platform, mode):
            assert slot.help
            assert slot.source.startswith(("paper:", "doc:", "code:", "fit:", "assumed:"))
            if slot.choices:
                assert slot.base in slot.choices
                continue
            numbers = slot.numbers()
            assert numbers == sorted(set(numbers))
            assert not slot.texts or slot.texts[slot.position] == slot.base
            assert slot.range, slot
            for i, text in enumerate(slot.texts):
                assert slot.nearest(text) == i
                units.parse(text.replace(" ", ""), slot.unit)


def test_only_what_differs_is_an_override() -> None:
    known = parameters.slots("wmpi", "nt-pair", "shared")
    assert parameters.overrides(known, {"wmpi.packet": "128 KiB", "wmpi.pool": "16 MiB", "wmpi.event": ""}) == ["wmpi.pool=16MiB"]
    line = parameters.command_line("wmpi", "nt-pair", "server,server", ["wmpi.pool=16MiB"])
    assert line == "retrompi pingpong --model wmpi --platform nt-pair --mode server,server --set wmpi.pool=16MiB"


@pytest.mark.parametrize("name", ["../models/wmpi", "/tmp", "./x", "nope", ""])
def test_a_path_is_no_name(name: str, room: Room) -> None:
    for use in (lambda: parameters.slots(name, "nt-pair", "shared"), lambda: parameters.slots("wmpi", name, "shared"),
                lambda: runs.curve(room.places, name, "nt-pair", "shared", [0])):  # fmt: skip
        with pytest.raises(UsageError, match=r"no (model|platform) '"):
            use()


@pytest.fixture
def places(tmp_path: Path) -> runs.Places:
    return str(tmp_path / "theirs.db"), str(tmp_path / "ours.db")


SIZES = [0, *(1 << k for k in range(10, 23))]


def quiet(*_: Any) -> None:
    """Report nothing."""


def test_looking_leaves_the_users_store_alone_and_keeping_does_not(places: runs.Places) -> None:
    first = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert first["base"]["run"] is None
    assert not first["changed"]["found"]
    assert not Path(places[0] or "").exists()
    again = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert again["changed"]["found"]
    assert again["changed"]["rows"] == first["changed"]["rows"]
    kept = runs.keep(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert kept == {"run": 1, "there": False}
    assert runs.keep(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)["there"]
    found = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    assert found["changed"]["run"] == 1
    assert found["changed"]["rows"] == first["changed"]["rows"]
    options = runs.overlay_choices(places[0])
    assert [o["value"] for o in options] == ["1"]
    assert "wmpi.pool=16MiB" in options[0]["label"]
    json.dumps(found, allow_nan=False)


def collapse(rows: list[dict[str, Any]]) -> int:
    """The first size at which the bandwidth is less than half of what it was before."""
    return next(int(b["size_B"]) for a, b in pairwise(rows) if b["bandwidth_MBps"] < a["bandwidth_MBps"] / 2)


def test_the_packet_moves_the_collapse(places: runs.Places) -> None:
    slot = next(s for s in parameters.slots("wmpi", "nt-pair", "shared") if s.name == "wmpi.packet")
    assert {"32 KiB", "128 KiB", "512 KiB"} <= set(slot.texts)
    places_of = {}
    for packet in ("32KiB", "128KiB", "512KiB"):
        answer = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", [f"wmpi.packet={packet}", "wmpi.pool=16MiB"], SIZES)
        places_of[packet] = collapse(answer["changed"]["rows"])
    assert places_of["32KiB"] < places_of["128KiB"] < places_of["512KiB"]


def test_a_run_that_does_not_complete_is_a_result(places: runs.Places) -> None:
    answer = runs.what_if(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.packet=1MiB"], SIZES)
    changed = answer["changed"]
    assert changed["outcome"] == "aborted"
    assert "pool" in changed["detail"]
    assert 0 < len(changed["rows"]) < len(answer["base"]["rows"]) == len(SIZES)


def test_published_statements_are_judged_on_the_very_curves_shown(places: runs.Places) -> None:
    wanted = [("wmpi", "nt-pair", "shared"), ("hpvm", "nt-pair", "nowhere")]
    answer = runs.curves(quiet, places, wanted, None, ["77"])
    assert len(answer["curves"]) == 1
    assert len(answer["problems"]) == 2
    assert {v["verdict"] for v in answer["verdicts"]} >= {"pass"}
    assert answer["marks"]
    json.dumps(answer, allow_nan=False)


def test_stored_runs_and_measured_curves_lie_over_the_others(places: runs.Places) -> None:
    from retrompi.measured.series import Measured, Point, Provenance
    from retrompi.measured.stored import save
    from retrompi.store import open_store
    from retrompi.studio import drawing

    runs.keep(quiet, places, "wmpi", "nt-pair", "shared", ["wmpi.pool=16MiB"], SIZES)
    name = "<img src=x onerror=alert(1)>"
    points = tuple(Point(size_B=s, time_us=100.0 + s, bandwidth_MBps=s / (100.0 + s), repetitions=1) for s in (1, 1024))
    source = Provenance(tool="a tool", file="curve.txt", sha256="0" * 64)
    run, _ = save(open_store(places[0]), Measured("pingpong", points, source, 2), label=name)
    answer = runs.curves(quiet, places, [("wmpi", "nt-pair", "shared")], SIZES, ["1", str(run), "99"])
    assert [o["kind"] for o in answer["overlays"]] == ["simulated", "measured"]
    assert len(answer["problems"]) == 1
    assert "no run 99" in answer["problems"][0]
    figure = drawing.curves_figure(answer, "time")
    drawn = {str(t.name) for t in figure.data}
    assert any(n.startswith("run 1: wmpi, shared") for n in drawn)
    # Plotly takes a legend's tags for formatting: a name from outside must have none.
    assert not any("<" in n for n in drawn)
    assert not any("<img" in str(getattr(t, "hovertemplate", "")) for t in figure.data)
    assert [o["value"] for o in runs.overlay_choices(places[0])] == [str(run), "1"]


TABLE = b"# way: one way\nsize_B,time_us\n0,90\n1,100\n1024,180\n1048576,30000\n"


def upload_body(contents: str, name: str, chosen: list[str]) -> dict[str, Any]:
    """What a browser posts of the curve explorer when a file was uploaded."""
    outputs = [("overlays", "options"), ("overlays", "value"), ("upload-said", "children"), ("upload", "contents")]
    return {
        "output": f"..{'...'.join(f'curves-{i}.{p}' for i, p in outputs)}..",
        "outputs": [{"id": f"curves-{i}", "property": p} for i, p in outputs],
        "inputs": [{"id": "curves-upload", "property": "contents", "value": contents}],
        "state": [{"id": "curves-upload", "property": "filename", "value": name},
                  {"id": "curves-overlays", "property": "value", "value": chosen}],
        "changedPropIds": ["curves-upload.contents"],
    }  # fmt: skip


def curves_body(overlays: list[str], by: str = "curves-overlays.value") -> dict[str, Any]:
    """What a browser posts of the curve explorer when other curves are chosen."""
    outputs = [("figure", "figure"), ("problems", "children"), ("statements", "children"), ("numbers", "children"), ("job", "data"),
               ("job-line", "children"), ("progress", "value"), ("progress", "hidden"), ("cancel", "hidden"),
               ("tick", "max_intervals")]  # fmt: skip
    inputs = [("models", "value", ["wmpi"]), ("platform", "value", "nt-pair"), ("modes", "value", ["shared"]),
              ("overlays", "value", overlays), ("sizes", "value", "0,1B,1KiB,1MiB"), ("series", "value", "bandwidth"),
              ("y", "value", "log"), ("published", "value", []), ("tick", "n_intervals", 1), ("cancel", "n_clicks", 0)]  # fmt: skip
    return {
        "output": f"..{'...'.join(f'curves-{i}.{p}' for i, p in outputs)}..",
        "outputs": [{"id": f"curves-{i}", "property": p} for i, p in outputs],
        "inputs": [{"id": f"curves-{i}", "property": p, "value": v} for i, p, v in inputs],
        "state": [{"id": "studio-tab", "property": "data", "value": "a-tab"}, {"id": "studio-letters", "property": "data", "value": 16}],
        "changedPropIds": [by],
    }


def test_an_uploaded_curve_is_drawn_counted_and_downloaded_by_its_owner_only(app: Any, client: Any, room: Room) -> None:
    def answered(overlays: list[str]) -> Any:
        until, by = time.monotonic() + PATIENCE_S, "curves-overlays.value"
        while True:
            got = client.post(UPDATE, json=curves_body(overlays, by)).json
            assert "curves-job" in got["response"], got
            if "curves-figure" in got["response"] or time.monotonic() > until:
                return got["response"]
            by = "curves-tick.n_intervals"

    raw = "data:text/csv;base64," + base64.b64encode(TABLE).decode()
    name = "=<b>%{x}</b>.csv"
    got = client.post(UPDATE, json=upload_body(raw, name, [])).json["response"]
    chosen = got["curves-overlays"]["value"]
    assert len(chosen) == 1
    assert chosen[0].startswith("upload:")
    assert {"value": chosen[0], "label": "your upload: b>.csv"} in got["curves-overlays"]["options"]
    broken = "data:text/csv;base64," + base64.b64encode(b"size_B,time_us\n1,ten\n").decode()
    both = client.post(UPDATE, json=upload_body(broken, "bad=<i>%{x}.csv", chosen)).json["response"]["curves-overlays"]["value"]
    assert both[0] == chosen[0]
    answer = answered([*both, "upload:no-such-upload"])
    problems = json.dumps(answer["curves-problems"])
    assert "no such upload" in problems
    assert "bad=<i>%{x}.csv:" in problems
    assert str(room.folder) not in problems
    traces = answer["curves-figure"]["figure"]["data"]
    mine = next(t for t in traces if t["name"].endswith(", measured"))
    assert mine["y"] == pytest.approx([0.01, 1024 / 180, 1048576 / 30000])
    assert "<" not in mine["name"]
    assert "<extra></extra>" in mine["hovertemplate"], "it is no run of a store"
    assert "upload: b>.csv, MB/s" in json.dumps(answer["curves-numbers"])
    body = {
        "output": "curves-download.data", "outputs": {"id": "curves-download", "property": "data"},
        "inputs": [{"id": "curves-csv", "property": "n_clicks", "value": 1}],
        "state": [{"id": "curves-job", "property": "data", "value": answer["curves-job"]["data"]}],
        "changedPropIds": ["curves-csv.n_clicks"],
    }  # fmt: skip
    assert "upload: b>.csv,1024,180.0," in client.post(UPDATE, json=body).json["response"]["curves-download"]["data"]["content"]
    refused = client.post(UPDATE, json=upload_body("data:,plain", "x.csv", both)).json["response"]
    assert "curves-overlays" not in refused
    assert "not as a browser sends it" in json.dumps(refused["curves-upload-said"])

    stranger = app.server.test_client()
    assert stranger.get("/").status_code == 200
    seen = stranger.post(UPDATE, json=curves_body(chosen))
    assert "b>.csv" not in seen.text


def test_a_link_to_an_upload_is_its_sessions(app: Any, room: Room, draw: Any) -> None:
    assert draw("/curves")
    data = "data:text/csv;base64," + base64.b64encode(TABLE).decode()
    mine = room.uploads.add("a-session-of-the-tests", "mine.csv", data, "curve")
    theirs = room.uploads.add("another", "theirs.csv", data, "curve")
    trace = room.uploads.add("a-session-of-the-tests", "lu.txt", data)
    content, _ = draw("/curves", f"?run=upload:{mine.id}&run=upload:{theirs.id}&run=upload:nonsense")
    menu = next(c for c in every(content) if getattr(c, "id", None) == "curves-overlays")
    assert menu.value == [f"upload:{mine.id}"]
    assert {o["label"] for o in menu.options} >= {"your upload: mine.csv"}
    told = [words(c) for c in every(content) if getattr(c, "className", "") == "notice"]
    assert len(told) == 1
    assert "another browser" in told[0]
    assert theirs.id not in str(content)
    assert trace.id not in str(menu.options)


def test_a_file_of_many_curves_fills_a_figure_and_no_more(places: runs.Places) -> None:
    file = str(Path(__file__).parent / "data" / "measured" / "imb2021.txt")
    files = {"upload:a": (file, "imb.txt"), "upload:b": (file, "imb.txt")}
    answer = runs.curves(quiet, places, [("wmpi", "nt-pair", "shared")], SIZES, ["upload:a", "upload:b"], files, ["gone"])
    assert 2 < len(answer["overlays"]) <= runs.MOST_CURVES - 1
    assert len({o["name"] for o in answer["overlays"]}) == len(answer["overlays"])
    assert answer["problems"][0] == "gone"
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize("name", ["<a href='javascript:x'>y</a>" * 3, "&" * 60, "%{customdata}" * 9, "plain.csv"])
def test_a_strangers_name_is_text_to_the_figures(name: str) -> None:
    from html import unescape

    from retrompi.studio import drawing

    shown = drawing.plain(name, 40)
    assert len(shown) <= 40
    assert "<" not in shown
    assert "%{" not in shown
    cut = unescape(shown).removesuffix("…")
    assert cut
    assert name.startswith(cut)


def test_figures_show_what_was_answered(places: runs.Places) -> None:
    from retrompi.studio import drawing

    answer = runs.curves(quiet, places, [("wmpi", "nt-pair", "shared"), ("winmpich", "nt-pair", "shared")], SIZES, [])
    for series in ("time", "bandwidth"):
        figure = drawing.curves_figure(answer, series)
        drawn = {t.name: list(t.y) for t in figure.data if t.name in ("WMPI", "WinMPICH")}
        column = {"time": "time_us", "bandwidth": "bandwidth_MBps"}[series]
        assert drawn["WMPI"] == [r[column] for r in answer["curves"][0]["rows"] if series == "time" or r["size_B"]]
    by = {size: parts.enlarged(drawing.curves_figure(answer, "time"), size).layout.font.size for size in (8, 16, 24, 100, None, "x")}
    assert by[8] < by[16] < by[24] < by[100]
    assert by[16] == by[None] == by["x"]
    rows = drawing.number_rows([("a", answer["curves"][0]["rows"])], "time")
    assert [r["size_B"] for r in rows] == SIZES


# -- what a request may be ---------------------------------------------------------------------------------------------

SHOW = {
    "output": "..main.children...studio-title.data..",
    "outputs": [{"id": "main", "property": "children"}, {"id": "studio-title", "property": "data"}],
    "inputs": [{"id": "studio-address", "property": "pathname", "value": "/"}],
    "state": [{"id": "studio-address", "property": "search", "value": ""}],
    "changedPropIds": ["studio-address.pathname"],
}
UPDATE = "/_dash-update-component"


def sealed(answer: Any) -> None:
    """Every answer carries the headers, and none says how it came about."""
    headers = answer.headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert not re.search(r"https?:|\*", policy)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Server" not in headers
    if answer.status_code >= 400:
        assert "Traceback" not in answer.text
        assert "site-packages" not in answer.text
        assert answer.text.count("\n") <= 1


@pytest.mark.parametrize(
    "path", [*PATHS, "/_dash-layout", "/_dash-dependencies", "/assets/studio.css", "/assets/studio.js", "/_favicon.ico"]
)
def test_what_there_is_is_served(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    sealed(answer)


def test_the_first_page_loads_nothing_from_elsewhere(client: Any) -> None:
    text = client.get("/").text
    links = re.findall(r"""(?:src|href)=["']([^"']+)""", text)
    assert links
    assert all(link.startswith("/") and not link.startswith("//") for link in links)
    for link in links:
        assert client.get(link).status_code == 200, link
    assert sys.version.split()[0] not in text
    assert "max-age=31536000" in client.get(next(x for x in links if "studio.js" in x)).headers["Cache-Control"]
    assert client.get("/").headers["Cache-Control"] == "no-store"


def test_tools_of_developers_are_off_whatever_the_environment_says(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UI", "DEBUG", "PROPS_CHECK", "SERVE_DEV_BUNDLES", "HOT_RELOAD", "PRUNE_ERRORS", "MCP_ENABLED", "COMPRESS"):
        monkeypatch.setenv(f"DASH_{name}", "true")
    client = create_app(room).server.test_client()
    text = client.get("/").text
    config = json.loads(re.findall(r'<script id="_dash-config"[^>]*>(.*?)</script>', text)[0])
    assert config["ui"] is False
    assert config["props_check"] is False
    assert "hot_reload" not in config
    assert ".dev." not in text
    assert client.get("/_mcp").status_code == 404


def test_answers_to_other_machines_are_compressed(client: Any) -> None:
    headers = {"Accept-Encoding": "gzip"}
    for path in ("/assets/studio.css", "/assets/studio.css", "/_dash-layout"):
        plain = client.get(path, headers=headers)
        assert "Content-Encoding" not in plain.headers
        pressed = client.get(path, headers=headers, environ_base={"REMOTE_ADDR": "192.0.2.1"})
        assert pressed.headers["Content-Encoding"] == "gzip"
        if path.startswith("/assets"):
            assert gzip.decompress(pressed.data) == plain.data
            assert len(pressed.data) < len(plain.data)
    assert "Content-Encoding" not in client.get("/assets/studio.css", environ_base={"REMOTE_ADDR": "192.0.2.1"}).headers


@pytest.mark.parametrize("path", [
    "/nope", "/curve", "/..", "/../etc/passwd", "/assets/../app.py", "/assets/..%2fapp.py", "/assets/%2e%2e/app.py", "/assets/nope.js",
    "/_dash-component-suites/dash/../../../etc/passwd", "/_dash-component-suites/os/path.py", "/_dash-component-suites/dash/dash.py",
    "/_reload-hash", "/_mcp", "/<script>", "/curves/x", "/static/x", "/_dash-component-suites/retrompi/errors.py",
])  # fmt: skip
def test_what_there_is_not_is_not_found(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 308)
    sealed(answer)
    assert "root:" not in answer.text
    assert "import " not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example", "", "[::2]:80",
             "localhost:99999", "localhost:123456", "localhost:\u0661"]
)
def test_a_strangers_name_for_this_machine_is_refused(client: Any, host: str) -> None:
    answer = client.get("/", headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8418", "[::1]:8418", "LOCALHOST:1", "localhost."])
def test_the_names_of_the_loopback_are_known(client: Any, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_a_callback_works(client: Any) -> None:
    answer = client.post(UPDATE, json=SHOW, headers={"Origin": "http://localhost"})
    assert answer.status_code == 200, answer.text
    assert answer.json["response"]["studio-title"]["data"] == "Start"
    sealed(answer)


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://localhost.evil.example"}, {"Origin": "file://"},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://localhost:81"},
])  # fmt: skip
def test_a_page_of_another_origin_may_not_post(client: Any, headers: dict[str, str]) -> None:
    answer = client.post(UPDATE, json=SHOW, headers=headers)
    assert answer.status_code == 403
    sealed(answer)


def test_a_form_cannot_post_a_callback(client: Any) -> None:
    assert client.post(UPDATE, data=json.dumps(SHOW), content_type="text/plain").status_code == 415
    assert client.post(UPDATE, data={"x": "y"}).status_code == 415


def test_who_has_no_session_cannot_post(app: Any) -> None:
    assert app.server.test_client().post(UPDATE, json=SHOW).status_code == 403


@pytest.mark.parametrize(("body", "status"), [
    (b"{", 400), (b"", 400), (b"[]", 400), (b"null", 400), (b"1", 400), (b'"x"', 400), (b"{}", 400), (b'{"output": 1}', 400),
    (b"[" * 100_000, 400), (b'\xff\xfe{"output"}', 400), (b'{"output": "nope.children"}', 404),
    (b'{"output": "__class__.x"}', 404), (json.dumps({**SHOW, "inputs": []}).encode(), 400),
    (json.dumps({**SHOW, "inputs": {}}).encode(), 400), (json.dumps({**SHOW, "inputs": [1]}).encode(), 400),
    (json.dumps({**SHOW, "state": "x"}).encode(), 400), (json.dumps({**SHOW, "inputs": SHOW["inputs"] * 9}).encode(), 400),
    (json.dumps({**SHOW, "changedPropIds": [1]}).encode(), 400), (json.dumps({**SHOW, "changedPropIds": "x"}).encode(), 400),
    (json.dumps({**SHOW, "outputs": 1}).encode(), 400), (json.dumps({**SHOW, "inputs": [{"id": "x", "property": "y"}]}).encode(), 400),
    (json.dumps({**SHOW, "outputs": [{"id": "whatever"}]}).encode(), 400), (json.dumps({**SHOW, "outputs": []}).encode(), 400),
])  # fmt: skip
def test_what_is_no_callback_is_told_so(client: Any, body: bytes, status: int) -> None:
    answer = client.post(UPDATE, data=body, headers=JSON)
    assert answer.status_code == status, answer.text
    sealed(answer)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client: Any, method: str) -> None:
    assert client.open("/", method=method).status_code == 405
    assert client.get(UPDATE).status_code == 405
    assert client.post("/curves").status_code == 405


@pytest.mark.parametrize("value", [None, 1, [], {}, "x" * 10_000, ["a"] * 5000, {"model": "../x"}, [{"a": 1}], True, {"sets": {"a": 1}}])
def test_whatever_a_callback_is_sent_is_a_line_and_never_a_defect(
    app: Any, client: Any, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Every server callback of the pages of this file, with the same odd value everywhere."""
    client.get("/_dash-dependencies")
    for output, declared in app.callback_map.items():
        if not output.strip(".").startswith(("curves-", "whatif-", "main")) or "callback" not in declared:
            continue
        outputs = [{"id": (o := one.rpartition("."))[0], "property": o[2]} for one in output.strip(".").split("...")]
        body = {
            "output": output,
            "outputs": outputs if output.startswith("..") else outputs[0],
            **{k: [{"id": i["id"], "property": i["property"], "value": value} for i in declared[k]] for k in ("inputs", "state")},
            "changedPropIds": [f"{i['id']}.{i['property']}" for i in declared["inputs"]][:1],
        }
        answer = client.post(UPDATE, data=json.dumps(body), headers=JSON)
        assert answer.status_code < 500, (output, answer.text)
        assert "internal error" not in answer.text, output
        sealed(answer)
    assert "failed" not in caplog.text


def test_jobs_of_another_session_are_not_shown_by_a_callback(app: Any, client: Any, room: Room) -> None:
    job = room.jobs.submit("somebody", "secret title", studio_work.echo, "secret result")
    ended(room.jobs, job, "somebody")
    output = next(o for o in app.callback_map if o == "curves-download.data")
    body = {
        "output": output, "outputs": {"id": "curves-download", "property": "data"},
        "inputs": [{"id": "curves-csv", "property": "n_clicks", "value": 1}],
        "state": [{"id": "curves-job", "property": "data", "value": job}], "changedPropIds": ["curves-csv.n_clicks"],
    }  # fmt: skip
    answer = client.post(UPDATE, json=body)
    assert answer.status_code == 200
    assert "no such job" in answer.text
    assert "secret" not in answer.text


# -- the token ---------------------------------------------------------------------------------------------------------

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def locked(room: Room) -> Any:
    return create_app(room, Guard(TOKEN, frozenset({"lab.example"}), public=True))


def test_without_the_token_nothing_is_served(locked: Any) -> None:
    client = locked.server.test_client()
    assert client.get("/").status_code == 302
    assert client.get("/").headers["Location"] == "/login"
    for path in ("/assets/studio.js", "/_dash-layout", "/_dash-dependencies", "/nope"):
        assert client.get(path).status_code == 401
    assert client.post(UPDATE, json=SHOW).status_code in (401, 403)
    assert "token" in client.get("/login").text


def test_the_token_becomes_a_cookie_and_leaves_the_address(locked: Any, caplog: pytest.LogCaptureFixture) -> None:
    client = locked.server.test_client()
    answer = client.get(f"/curves?model=wmpi&token={TOKEN}&mode=shared")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/curves?model=wmpi&mode=shared"
    cookie = answer.headers["Set-Cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    page = client.get("/curves")
    assert page.status_code == 200
    assert TOKEN not in page.text
    again = client.get(f"/curves?token={TOKEN}")
    assert again.status_code == 303
    assert again.headers["Location"] == "/curves"
    assert client.post("/login", data={"token": TOKEN}).headers["Location"] == "/"
    assert TOKEN not in caplog.text


def test_guessing_is_refused_and_made_slow(room: Room) -> None:
    app = create_app(room, Guard(TOKEN, public=True))
    client = app.server.test_client()
    statuses = [client.get("/?token=wrong").status_code for _ in range(12)]
    assert statuses[:10] == [403] * 10
    assert statuses[10:] == [429] * 2
    assert client.get(f"/?token={TOKEN}").status_code == 429
    assert client.post("/login", data={"token": "é" * 3}).status_code == 429


def test_a_made_up_cookie_opens_nothing(locked: Any) -> None:
    client = locked.server.test_client()
    for value in ("", "x", TOKEN, "é"):
        cookie = f"retrompi-token-80={value}".encode().decode("latin-1")
        assert client.get("/assets/studio.js", headers={"Cookie": cookie}).status_code == 401


def test_a_public_studio_is_known_by_its_addresses_and_names_only(locked: Any) -> None:
    client = locked.server.test_client()
    for host, status in (("192.168.1.7:8418", 302), ("lab.example", 302), ("[fe80::1]:80", 302), ("evil.example", 403)):
        assert client.get("/", headers={"Host": host}).status_code == status, host


# -- the server --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    made = Studio(port=0, store=str(tmp_path_factory.mktemp("served") / "store.db"))
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    yield made
    made.close()


def ask(studio: Studio, method: str = "GET", path: str = "/") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_it_answers_to_the_address_that_it_prints(host: str, tmp_path: Path) -> None:
    made = Studio(host=host, store=str(tmp_path / "store.db"))
    try:
        name = made.address.removeprefix("http://").rstrip("/")
        assert made.app.server.test_client().get("/", headers={"Host": name}).status_code == 200
    finally:
        made.close()


def test_it_serves(studio: Studio) -> None:
    assert studio.address == f"http://127.0.0.1:{studio.port}/"
    assert ask(studio)[0] == 200


@pytest.mark.parametrize("head", [
    b"POST /_dash-update-component HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13000000\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",
    b"GET /?" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GARBAGE\r\n\r\n",
])  # fmt: skip
def test_what_is_too_large_or_broken_is_refused_before_it_is_read(studio: Studio, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", studio.port), timeout=30) as line:
        line.sendall(head)
        answer = b""
        with suppress(ConnectionResetError):  # it hangs up on what it has not read
            while part := line.recv(65536):
                answer += part
    assert not answer or int(answer.split(b" ", 2)[1]) in (400, 413, 431), answer[:200]
    assert b"Traceback" not in answer
    assert ask(studio)[0] == 200


def test_two_hundred_at_once_leave_it_up(studio: Studio) -> None:
    paths = ["/", "/curves?model=nope", "/_dash-layout", "/nope", "/assets/studio.css", "/_dash-dependencies", "/../x", "/whatif?set=a"]
    with ThreadPoolExecutor(200) as many:
        answers = list(many.map(lambda i: ask(studio, path=paths[i % len(paths)]), range(200)))
    assert {s for s, _ in answers} <= {200, 404}
    assert not any("Traceback" in text for _, text in answers)
    assert ask(studio)[0] == 200


def test_a_port_in_use_is_a_line(studio: Studio) -> None:
    with pytest.raises(UsageError, match=rf"port {studio.port} of 127.0.0.1 is in use.*--port 0"):
        Studio(port=studio.port)


@pytest.mark.parametrize(("host", "token", "line"), [
    ("0.0.0.0", None, "lets others in"), ("::", None, "lets others in"), ("192.0.2.7", None, "lets others in"),
    ("0.0.0.0", "short", "12 characters"), ("0.0.0.0", "with a space in it", "no spaces"), ("192.0.2.7", TOKEN, "192.0.2.7"),
    ("no such host", TOKEN, "no such address"),
])  # fmt: skip
def test_others_are_let_in_with_a_token_only(host: str, token: str | None, line: str) -> None:
    with pytest.raises(RetrompiError, match=re.escape(line)):
        Studio(host=host, port=0, token=token)


def command(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "retrompi.cli.main", "studio", "--no-browser", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True, **more)  # fmt: skip


def test_ctrl_c_ends_it_with_everything_it_started(tmp_path: Path) -> None:
    process = command("--port", "0", "--store", str(tmp_path / "s.db"), "--token", TOKEN, "--host", "127.0.0.1")
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(rf"studio: (http://127\.0\.0\.1:\d+/)\?token={TOKEN}\n", line)
    assert found, line
    group = os.getpgid(process.pid)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == ""
    assert err.strip().splitlines()[-1] == "the studio has ended"
    assert TOKEN not in err

    def alone() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    assert soon(alone)


@pytest.mark.parametrize(("arguments", "line"), [
    (("--host", "0.0.0.0"), "give a --token, or --public"), (("--public", "--host", "127.0.0.1"), "nobody else can reach"),
    (("--public", "--token", "x"), "12 characters"), (("--port", "70000"), "70000"),
])  # fmt: skip
def test_a_wrong_use_is_one_line_and_exit_code_2(arguments: tuple[str, ...], line: str) -> None:
    process = command(*arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert out == ""
    assert line in err
    assert err.count("\n") == 1
