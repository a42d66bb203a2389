"""LTI 1.3 against a reference platform (the library lti1p3platform): launch, choice of a lab, scores; and messages that are refused."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from cases import for_each

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed (pip install 'retrompi[lti]')")
pytest.importorskip("lti1p3platform", reason="the reference platform is not installed (pip install lti1p3platform)")

from lti_platform import CLIENT, DEPLOYMENT, TEACHER, Browser, Platform, keys, query  # noqa: E402

from retrompi.base.errors import UsageError  # noqa: E402
from retrompi.classroom.course import members, settings  # noqa: E402
from retrompi.classroom.course.class_list import Entry  # noqa: E402
from retrompi.classroom.course.database import Database  # noqa: E402
from retrompi.classroom.lti import lti_launch, lti_platforms, lti_scores, lti_tokens  # noqa: E402
from retrompi.classroom.serve import ClassServer  # noqa: E402

LAB = "01-latency-bandwidth"
CLAIM = lti_launch.CLAIM


class Tool:
    """A course that is served, and the platform that is registered with it."""

    def __init__(self, folder: Path) -> None:
        self.db = Database.open(folder / "course.db", new=True)
        settings.new(self.db, "MPI", ["1", "2"], [Entry("teacher", role="teacher")])
        self.server = ClassServer(self.db, host="127.0.0.1", port=0, store=str(folder / "runs.db"))
        self.url = self.server.links.rstrip("/")
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        self.platform = Platform(self.url)
        self.register()

    def register(self, **changed: str) -> None:
        url = self.platform.url
        given = {"issuer": url, "client_id": CLIENT, "auth_url": f"{url}/auth", "token_url": f"{url}/token", "keys_url": f"{url}/jwks"}
        lti_platforms.add(self.db.engine, "Moodle", given | changed, [DEPLOYMENT])
        lti_tokens.forget_keys()

    def close(self) -> None:
        self.platform.close()
        self.server.close()
        self._thread.join(timeout=20)
        self.db.close()


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    made = Tool(tmp_path_factory.mktemp("lti"))
    yield made
    made.close()


def member_of(tool: Tool, name: str) -> dict[str, Any]:
    return next(m for m in members.members(tool.db) if m["name"] == name)


# -- launches ----------------------------------------------------------------------------------------------------------


def test_a_student_follows_a_link_and_is_in(tool: Tool) -> None:
    browser = Browser()
    answer = browser.launch(tool.platform.begin("l1", user="ann", name="Ann Bee", custom={"lab": LAB}))
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/labs/{LAB}"), answer.text
    found = member_of(tool, "Ann Bee")
    assert (found["role"], found["email"]) == ("student", "ann@example.edu")
    assert browser.ask("GET", f"{tool.url}/course/me").status_code == 200
    assert "Ann Bee" in browser.ask("GET", f"{tool.url}/course/me").text
    again = Browser().launch(tool.platform.begin("l1b", user="ann", name="Ann Cee", custom={"lab": LAB}))
    assert again.status_code == 303
    assert member_of(tool, "Ann Cee")["id"] == found["id"], "an account is one member, whatever it is called later"


def test_the_login_asks_for_what_the_standard_says(tool: Tool) -> None:
    there = Browser().ask("GET", tool.platform.begin("l2", user="ann", custom={"lab": LAB}))
    asked = query(there.headers["Location"])
    assert {k: asked[k] for k in ("scope", "response_type", "response_mode", "prompt", "client_id")} == {
        "scope": "openid", "response_type": "id_token", "response_mode": "form_post", "prompt": "none", "client_id": CLIENT}
    assert min(len(asked["state"]), len(asked["nonce"])) >= 32
    cookie = there.headers["Set-Cookie"]
    for part in ("Secure", "HttpOnly", "SameSite=None", "Partitioned"):
        assert part in cookie


def test_a_teacher_comes_to_the_class_and_titles_name_a_lab_too(tool: Tool) -> None:
    browser = Browser()
    answer = browser.launch(tool.platform.begin("l3", user="prof", name="Prof", roles=[TEACHER], resource="whole", title="The course"))
    assert (answer.status_code, answer.headers["Location"]) == (303, "/course")
    assert member_of(tool, "Prof")["role"] == "teacher"
    titled = Browser().launch(tool.platform.begin("l4", user="ann", name="Ann Bee", resource="titled", title="Lab 2 for Tuesday"))
    assert titled.headers["Location"].startswith("/labs/02-")


def test_in_a_frame_a_link_opens_the_lab_in_a_new_window_once(tool: Tool) -> None:
    answer = Browser().launch(tool.platform.begin("l5", user="eve", name="Eve", custom={"lab": "1"}), frame=True)
    assert answer.status_code == 200
    assert f"frame-ancestors {tool.platform.url}" in answer.headers["Content-Security-Policy"]
    assert "X-Frame-Options" not in answer.headers
    way = re.search(r'target="_blank" rel="noopener" href="(/lti/enter\?ticket=[^"]+)"', answer.text)
    assert way
    fresh = Browser()
    assert fresh.ask("GET", tool.url + way[1]).headers["Location"] == f"/labs/{LAB}"
    assert fresh.ask("GET", f"{tool.url}/course/me").status_code == 200
    assert Browser().ask("GET", tool.url + way[1]).status_code == 403


def test_a_browser_without_cookies_goes_on_in_a_new_window(tool: Tool) -> None:
    answer = Browser(cookies=False).launch(tool.platform.begin("l6", user="ann", custom={"lab": LAB}), frame=True)
    way = re.search(r'href="(/lti/again\?state=[^"]+)"', answer.text)
    assert way
    browser = Browser()
    there = browser.ask("GET", tool.url + way[1])
    form = browser.ask("GET", there.headers["Location"]).json()
    assert browser.ask("POST", form.pop("launch_url"), data=form, headers={"Sec-Fetch-Dest": "document"}).status_code == 303


# -- messages that are refused -----------------------------------------------------------------------------------------


def resigned(tool: Tool, *, key: str | None = None, head: dict[str, Any] | None = None, algorithm: str = "RS256", drop: str = "", **claims: Any) -> Any:
    """A change of the platform's form: other claims, signed anew by the platform's key or another."""

    def change(form: dict[str, Any]) -> None:
        told = jwt.decode(form["id_token"], options={"verify_signature": False}) | claims
        told.pop(drop, None)
        kid = jwt.get_unverified_header(form["id_token"])["kid"]
        secret: Any = {"none": None, "HS256": "x" * 40}.get(algorithm, key or tool.platform.private)
        form["id_token"] = jwt.encode(told, secret, algorithm, headers={"kid": kid, **(head or {})})

    return change


def tampered(form: dict[str, Any]) -> None:
    head, body, signature = form["id_token"].split(".")
    form["id_token"] = f"{head}.{body[:40]}{'A' if body[40] != 'A' else 'B'}{body[41:]}.{signature}"


def hostile(tool: Tool) -> dict[str, tuple[Any, str]]:
    """What is changed in the platform's message -> (the change, what the page says)."""
    now = int(time.time())
    several = [CLIENT, "another"]
    return {
        "another key": (resigned(tool, key=keys()[0]), "signature is not the platform's"),
        "an unknown key id": (resigned(tool, head={"kid": "unknown"}), "a key that the platform"),
        "no signature": (resigned(tool, algorithm="none"), "signed by 'none'"),
        "a shared secret": (resigned(tool, algorithm="HS256"), "signed by 'HS256'"),
        "a changed body": (tampered, "signature|not a message"),
        "another tool": (resigned(tool, aud="another-client"), "for another tool"),
        "several tools": (resigned(tool, aud=several), ""),
        "several tools, another authorised": (resigned(tool, aud=several, azp="another"), "not authorised for this one"),
        "another issuer": (resigned(tool, iss="https://elsewhere.example"), "of another platform"),
        "too old": (resigned(tool, iat=now - 7200, exp=now - 3600), "too old"),
        "from the future": (resigned(tool, iat=now + 3600, exp=now + 7200), "not a message"),
        "without an end": (resigned(tool, drop="exp"), "not a message"),
        "another nonce": (resigned(tool, nonce="another"), "does not belong to this login"),
        "without a nonce": (resigned(tool, drop="nonce"), "not a message"),
        "another deployment": (resigned(tool, **{f"{CLAIM}deployment_id": "other"}), "deployment 'other'"),
        "no deployment": (resigned(tool, drop=f"{CLAIM}deployment_id"), "deployment ''"),
        "another version": (resigned(tool, **{f"{CLAIM}version": "1.1"}), "not one of LTI 1.3"),
        "another kind": (resigned(tool, **{f"{CLAIM}message_type": "LtiSubmissionReviewRequest"}), "is not understood"),
        "nobody": (resigned(tool, drop="sub"), "whose account"),
        "no resource": (resigned(tool, **{f"{CLAIM}resource_link": 3}), "no resource link"),
        "another state": (lambda form: form.update(state="x" * 32), "not begun here"),
        "no token": (lambda form: form.update(id_token="a.b.c"), "not a message"),
        "a refusal": (lambda form: form.update(error="login_required", error_description="<b>who?</b>"), "login_required <b>"),
    }


@for_each("case", [
    "another key", "an unknown key id", "no signature", "a shared secret", "a changed body", "another tool", "several tools",
    "several tools, another authorised", "another issuer", "too old", "from the future", "without an end", "another nonce", "without a nonce",
    "another deployment", "no deployment", "another version", "another kind", "nobody", "no resource", "another state", "no token", "a refusal",
])
def test_a_forged_message_lets_nobody_in(case: str, tool: Tool) -> None:
    change, says = hostile(tool)[case]
    browser, count = Browser(), len(members.members(tool.db))
    answer = browser.launch(tool.platform.begin("h", user="mallory", name="Mallory", custom={"lab": LAB}), change=change)
    if not says:  # the library's message is authorised for this tool: the counterpart of the next case
        assert answer.status_code == 303
        members.remove(tool.db, member_of(tool, "Mallory")["id"])
        return
    assert answer.status_code == 403
    assert re.search(says, unescape(answer.text)), answer.text
    assert case != "a refusal" or "<b>" not in answer.text
    assert "Traceback" not in answer.text
    assert len(members.members(tool.db)) == count
    assert browser.ask("GET", f"{tool.url}/course/me").status_code != 200


def test_every_hostile_case_is_tried(tool: Tool) -> None:
    marks: Any = test_a_forged_message_lets_nobody_in
    ((_, cases, _),) = marks.axes
    assert list(hostile(tool)) == cases


def test_a_message_counts_once_and_in_the_browser_that_asked_for_it(tool: Tool) -> None:
    browser, kept = Browser(), {}
    login = tool.platform.begin("r1", user="ann", name="Ann Bee", custom={"lab": LAB})
    assert browser.launch(login, change=lambda form: kept.update(form)).status_code == 303
    told = {k: v for k, v in kept.items() if k != "launch_url"}
    replayed = browser.ask("POST", f"{tool.url}/lti/launch", data=told)
    assert replayed.status_code == 403
    assert "used already" in replayed.text
    stolen: dict[str, Any] = {}
    victim = Browser()
    form = victim.ask("GET", victim.ask("GET", login).headers["Location"]).json()
    stolen.update({k: v for k, v in form.items() if k != "launch_url"})
    thief = Browser()
    thief.ask("GET", login)
    answer = thief.ask("POST", f"{tool.url}/lti/launch", data=stolen)
    assert answer.status_code == 403
    assert "another browser" in answer.text
    # A new login does not take over the nonce of another.
    form = thief.ask("GET", thief.ask("GET", login).headers["Location"]).json()
    answer = thief.ask("POST", f"{tool.url}/lti/launch", data={"state": form["state"], "id_token": stolen["id_token"]})
    assert answer.status_code == 403
    assert "does not belong" in answer.text


@for_each(
    "given, says",
    [
        ({}, "iss and login_hint"),
        ({"iss": "https://unknown.example", "login_hint": "x"}, "is not registered"),
        ({"iss": "ISS", "login_hint": "x", "client_id": "other"}, "is not registered"),
        ({"iss": "ISS", "login_hint": "x", "lti_deployment_id": "other"}, "deployment 'other'"),
        ({"iss": "<script>alert(1)</script>", "login_hint": "x"}, "<script>alert(1)</script> (client"),
    ],
)
def test_a_login_of_nobody_is_refused(given: dict[str, str], says: str, tool: Tool) -> None:
    asked = {k: v.replace("ISS", tool.platform.url) for k, v in given.items()}
    answer = Browser().ask("POST", f"{tool.url}/lti/login", data=asked)
    assert answer.status_code == 403
    assert says in unescape(answer.text)
    assert "<script" not in answer.text
    assert "form-action 'none'" in answer.headers["Content-Security-Policy"]


def test_odd_posts_are_answered(tool: Tool) -> None:
    browser = Browser()
    assert browser.ask("POST", f"{tool.url}/lti/launch", data={"x": "y" * 200_000}).status_code in (403, 413)
    assert browser.ask("GET", f"{tool.url}/lti/launch").status_code == 403
    for path in ("enter", "enter?ticket=x", "again?state=x"):
        assert browser.ask("GET", f"{tool.url}/lti/{path}").status_code == 403
    assert browser.ask("POST", f"{tool.url}/lti/choose", data={"ticket": "x", "lab": LAB}).status_code == 403


# -- the choice of a lab -----------------------------------------------------------------------------------------------


def test_a_teacher_chooses_a_lab_and_the_platform_takes_the_answer(tool: Tool) -> None:
    browser = Browser()
    page = browser.launch(tool.platform.begin("d1", user="prof", name="Prof", roles=[TEACHER], kind="deep"), frame=True)
    assert page.status_code == 200, page.text
    assert page.text.count('type="radio"') >= 10
    answer = browser.submit(page, tool.url, lab=LAB)
    assert answer.status_code == 200
    assert f"form-action {tool.platform.url}" in answer.headers["Content-Security-Policy"]
    assert browser.submit(answer, tool.url).text == "thanks"
    ((item,),) = tool.platform.chosen[-1:]
    assert item["custom"] == {"lab": LAB}
    assert item["lineItem"]["scoreMaximum"] > 10
    assert browser.submit(page, tool.url, lab=LAB).status_code == 403, "a choice is made once"


def test_students_choose_no_lab_and_there_is_no_other_lab(tool: Tool) -> None:
    assert Browser().launch(tool.platform.begin("d2", user="ann", name="Ann Bee", kind="deep")).status_code == 403
    browser = Browser()
    page = browser.launch(tool.platform.begin("d3", user="prof", name="Prof", roles=[TEACHER], kind="deep"))
    answer = browser.submit(page, tool.url, lab="../../etc")
    assert answer.status_code == 403


# -- scores ------------------------------------------------------------------------------------------------------------


def scored(tool: Tool, user: str, points: float, *, of: float = 22.0, pending: bool = False, at: datetime | None = None) -> None:
    with tool.db.transaction() as connection:
        lti_scores.record(connection, member_of(tool, user)["id"], LAB, points, of, pending, at or datetime.now(UTC))


def test_scores_come_back_once_and_the_newest_wins(tool: Tool) -> None:
    assert Browser().launch(tool.platform.begin("s1", user="sam", name="Sam", resource="s", item="42", custom={"lab": LAB})).status_code == 303
    start = datetime.now(UTC)
    scored(tool, "Sam", 10, pending=True, at=start)
    assert lti_scores.send_due(tool.db.engine)[0] <= 1  # the course's own thread may have been faster
    _wait(lambda: not lti_scores.outbox(tool.db.engine))
    kept = tool.platform.scores["42", "sam"]
    assert [(s["scoreGiven"], s["scoreMaximum"], s["activityProgress"], s["gradingProgress"]) for s in kept] == [
        (10, 22, "Submitted", "PendingManual")]
    scored(tool, "Sam", 10, pending=True)
    assert lti_scores.outbox(tool.db.engine) == [], "the same score again is no news"
    scored(tool, "Sam", 12, pending=True, at=start - timedelta(hours=1))
    scored(tool, "Sam", 15.5, at=start - timedelta(hours=1))
    lti_scores.send_due(tool.db.engine)
    _wait(lambda: not lti_scores.outbox(tool.db.engine))
    assert (kept[-1]["scoreGiven"], kept[-1]["gradingProgress"]) == (15.5, "FullyGraded")
    assert [s["timestamp"] for s in kept] == sorted(s["timestamp"] for s in kept), "a clock that was set back loses no score"
    assert 1 <= tool.platform.asked_for_tokens <= 2


def test_a_platform_that_is_down_gets_the_score_later(tool: Tool) -> None:
    assert Browser().launch(tool.platform.begin("s2", user="tim", name="Tim", resource="t", item="43", custom={"lab": LAB})).status_code == 303
    tool.platform.broken += [503, 500]
    now = datetime.now(UTC) + timedelta(hours=1)  # not due for the course's own thread
    scored(tool, "Tim", 7, at=now)
    engine = tool.db.engine
    assert lti_scores.send_due(engine, now) == (0, 1)
    (row,) = lti_scores.outbox(engine)
    assert (row["tries"], row["error"]) == (1, "the platform answers 503: down for maintenance")
    assert lti_scores.send_due(engine, now + timedelta(seconds=5)) == (0, 0), "not due yet"
    assert lti_scores.send_due(engine, now + timedelta(seconds=60)) == (0, 1)
    assert lti_scores.send_due(engine, now + timedelta(seconds=90)) == (0, 0), "waits longer each time"
    assert lti_scores.send_due(engine, now + timedelta(seconds=300)) == (1, 0)
    assert lti_scores.outbox(engine) == []
    assert [s["scoreGiven"] for s in tool.platform.scores["43", "tim"]] == [7]


def test_a_withdrawn_token_is_asked_for_anew_and_an_outage_is_said(tool: Tool) -> None:
    assert Browser().launch(tool.platform.begin("s3", user="uma", name="Uma", resource="u", item="44", custom={"lab": LAB})).status_code == 303
    now = datetime.now(UTC) + timedelta(hours=2)
    scored(tool, "Uma", 8, at=now)
    tool.platform.broken += [401]
    before = tool.platform.asked_for_tokens
    assert lti_scores.send_due(tool.db.engine, now) == (1, 0)
    assert tool.platform.asked_for_tokens == before + 1 + (before == 0)
    tool.register(token_url="http://127.0.0.1:9/none")
    scored(tool, "Uma", 9, at=now + timedelta(hours=1))
    assert lti_scores.send_due(tool.db.engine, now + timedelta(hours=1)) == (0, 1)
    assert "does not answer" in lti_scores.outbox(tool.db.engine)[0]["error"]
    tool.register()
    assert lti_scores.send_due(tool.db.engine, now + timedelta(hours=2)) == (1, 0)


def test_members_who_came_by_a_link_of_the_course_have_no_score_to_send(tool: Tool) -> None:
    scored(tool, "teacher", 3)
    assert not any(row["points"] == 3 for row in lti_scores.outbox(tool.db.engine))


def _wait(holds: Any) -> None:
    for _ in range(200):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("did not come true")


# -- registration ------------------------------------------------------------------------------------------------------


def test_the_tools_keys_and_its_configuration(tool: Tool) -> None:
    told = Browser().ask("GET", f"{tool.url}/lti/keys").json()
    assert [set(k) for k in told["keys"]] == [{"kty", "n", "e", "kid", "alg", "use"}], "no private part"
    config = Browser().ask("GET", f"{tool.url}/lti/canvas.json").json()
    assert config["oidc_initiation_url"] == f"{tool.url}/lti/login"
    assert json.dumps(config)


@pytest.mark.parametrize(
    ("changed", "deployments", "says"),
    [
        ({"issuer": ""}, ["1"], "needs issuer"),
        ({}, [], "needs a deployment id"),
        ({"token_url": "http://lms.example/token"}, ["1"], "is no https address"),
        ({"keys_url": "javascript:alert(1)"}, ["1"], "is no https address"),
    ],
)
def test_a_wrong_registration_is_one_line(changed: dict[str, str], deployments: list[str], says: str, tool: Tool) -> None:
    given = {"issuer": "https://lms.example", "client_id": "x", "auth_url": "https://lms.example/a", "token_url": "https://lms.example/t",
             "keys_url": "https://lms.example/k"}
    with pytest.raises(UsageError, match=says):
        lti_platforms.add(tool.db.engine, "other", given | changed, deployments)
