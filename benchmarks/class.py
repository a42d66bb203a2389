"""A class of students does lab 1 at once: `python benchmarks/class.py [--students 60] [--minutes 10] [--browsers 3]`.

A server process (`retrompi course serve`, SQLite) is asked by as many clients as there are students. Each client is a thread that keeps
the page's components as a browser does, and posts what the page posts: it opens the studio, turns the steps, types predictions, seals
them, runs the commands' forms, answers, is wrong once, checks, and moves a what-if's slider between. Some are real Chromiums instead
(``--browsers``), which do the same by clicking. Students think between two actions: the class takes ``--minutes`` in all; 0 is a
stress test without pauses. Printed: percentiles of every kind of answer, from request to answer; what was graded; the server's processor
seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from retrompi.studio.components.parts import TICK_MS

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 180.0
TICK_S = TICK_MS / 1000
WORDS = "My own explanation of what the numbers show, in many different words: " + " ".join(f"reason{i}" for i in range(60))


class Times:
    """Seconds of every kind of answer, of all clients."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.of: dict[str, list[float]] = defaultdict(list)
        self.failed: list[str] = []

    def add(self, kind: str, seconds: float) -> None:
        with self._lock:
            self.of[kind].append(seconds)

    def fail(self, what: str) -> None:
        with self._lock:
            self.failed.append(what)

    def rows(self) -> list[tuple[str, int, float, float, float]]:
        def row(kind: str, values: list[float]) -> tuple[str, int, float, float, float]:
            values = sorted(values)
            return kind, len(values), statistics.median(values), values[math.ceil(0.95 * len(values)) - 1], values[-1]

        return [row(kind, values) for kind, values in sorted(self.of.items())]


def _text(given: Any) -> str:
    """An id as Dash writes it in names: an object as JSON with sorted keys."""
    return given if isinstance(given, str) else json.dumps(given, sort_keys=True, separators=(",", ":"))


class Client:
    """A browser without a screen: the components of the page that is open, and the callbacks between them."""

    def __init__(self, host: str, times: Times) -> None:
        self.host, self.times = host, times
        self.cookie = ""
        self.props: dict[str, dict[str, Any]] = {}
        self.callbacks: list[dict[str, Any]] = []
        self._line: HTTPConnection | None = None

    def ask(self, kind: str, method: str, path: str, body: Any = None) -> tuple[int, bytes, Any]:
        """One request on the kept connection, as a browser's; its time counts as ``kind``."""
        head = {"Accept-Encoding": "gzip", "Cookie": self.cookie, "Host": self.host}
        data = None
        if body is not None:
            data, head["Content-Type"] = json.dumps(body).encode(), "application/json"
        for again in (True, False):
            if self._line is None:
                self._line = HTTPConnection(self.host, timeout=PATIENCE_S)
            begun = time.perf_counter()
            try:
                self._line.request(method, path, data, head)
                answer = self._line.getresponse()
                raw = answer.read()
                break
            except OSError:
                self._line.close()
                self._line = None
                if not again:
                    raise
        if kind:
            self.times.add(kind, time.perf_counter() - begun)
        if answer.headers.get("Content-Encoding") == "gzip":
            import gzip

            raw = gzip.decompress(raw)
        return answer.status, raw, answer.headers

    def join(self, secret: str) -> None:
        status, _, headers = self.ask("join", "POST", f"/join/{secret}")
        assert status == 303, status
        self.cookie = headers["Set-Cookie"].split(";")[0]

    def open(self, path: str, search: str = "") -> None:
        """Loads a page: the frame with all its files, then its content."""
        _, html, _ = self.ask("page: frame", "GET", path + search)
        files = re.findall(r'(?:src|href)="(/(?:_dash-component-suites|assets)/[^"]+)"', html.decode())
        begun = time.perf_counter()
        for file in dict.fromkeys(files):
            self.ask("", "GET", file.replace("&amp;", "&"))
        self.times.add("all files of a first load", time.perf_counter() - begun)
        _, layout, _ = self.ask("page: frame", "GET", "/_dash-layout")
        _, known, _ = self.ask("page: frame", "GET", "/_dash-dependencies")
        self.callbacks = [c for c in json.loads(known) if not c.get("clientside_function")]
        self._take(json.loads(layout))
        self.props["studio-address"] = {"pathname": path, "search": search}
        self.changed([("studio-address", "pathname")], "page: content")

    def _take(self, tree: Any) -> None:
        """Notes the components of a tree."""
        if isinstance(tree, list):
            for one in tree:
                self._take(one)
        elif isinstance(tree, dict):
            props = tree.get("props")
            if isinstance(props, dict):
                if "id" in props:
                    self.props[_text(props["id"])] = {k: v for k, v in props.items() if k != "children"}
                for value in props.values():
                    self._take(value)
            else:
                for value in tree.values():
                    self._take(value)

    def _match(self, declared: str, wild: dict[str, Any]) -> list[str]:
        """The ids that a declared one stands for; ``wild``: what its MATCH keys are."""
        if not declared.startswith("{"):
            return [declared] if declared in self.props else []
        pattern = json.loads(declared)
        found = []
        for name in self.props:
            if name.startswith("{"):
                given = json.loads(name)
                if given.keys() == pattern.keys() and all(
                    (v == ["MATCH"] and (k not in wild or wild[k] == given[k])) or v == ["ALL"] or v == given[k] for k, v in pattern.items()
                ):
                    found.append(name)
        return sorted(found)

    def _arg(self, declared: dict[str, Any], wild: dict[str, Any]) -> Any:
        names = self._match(declared["id"], wild)
        prop = declared["property"]
        ids = [json.loads(n) if n.startswith("{") else n for n in names]
        values = [self.props[n].get(prop) if prop != "id" else i for n, i in zip(names, ids, strict=True)]
        rows = [{"id": i, "property": prop, "value": v} for i, v in zip(ids, values, strict=True)]
        many = declared["id"].startswith("{") and '["ALL"]' in declared["id"]
        return rows if many else rows[0] if rows else None

    def changed(self, what: list[tuple[str, str]], kind: str) -> None:
        """Posts every callback that has one of these properties as an input, and those that follow from the answers; each once, after those
        whose answers it waits for, and none for what it has answered itself: as the page does."""
        pending: dict[tuple[int, str], list[str]] = {}
        self._wake(what, pending, None)
        for _ in range(60):
            if not pending:
                return
            key = next((k for k in pending if not self._waits(k, pending)), next(iter(pending)))
            by = pending.pop(key)
            news = self._post(self.callbacks[key[0]], json.loads(key[1]), by, kind)
            self._wake(news, pending, key[0])
        self.times.fail(f"callbacks without an end: {[self.callbacks[n]['output'][:60] for n, _ in pending]}")

    def _wake(self, what: list[tuple[str, str]], pending: dict[tuple[int, str], list[str]], own: int | None) -> None:
        for name, prop in what:
            for number, callback in enumerate(self.callbacks):
                hit = next((i for i in callback["inputs"] if i["property"] == prop and name in self._match(i["id"], {})), None)
                if hit is None or number == own:
                    continue
                wild = {}
                if hit["id"].startswith("{"):
                    wild = {k: json.loads(name)[k] for k, v in json.loads(hit["id"]).items() if v == ["MATCH"]}
                pending.setdefault((number, json.dumps(wild)), []).append(f"{name}.{prop}")

    def _waits(self, key: tuple[int, str], pending: dict[tuple[int, str], list[str]]) -> bool:
        needs = {f"{i['id']}.{i['property']}" for i in self.callbacks[key[0]]["inputs"]}
        return any(needs & {o.split("@")[0] for o in self.callbacks[k[0]]["output"].strip(".").split("...")} for k in pending if k != key)

    def _post(self, callback: dict[str, Any], wild: dict[str, Any], by: list[str], kind: str) -> list[tuple[str, str]]:
        inputs, state = [self._arg(i, wild) for i in callback["inputs"]], [self._arg(s, wild) for s in callback["state"]]
        if any(a is None for a in [*inputs, *state]):
            return []
        whole = callback["output"]
        outputs = []
        for one in whole.strip(".").split("..."):
            ident, _, prop = one.rpartition(".")
            prop = prop.split("@")[0]
            if ident.startswith("{"):
                names = self._match(ident, wild)
                if not names:
                    return []
                outputs.append({"id": json.loads(names[0]), "property": one.rpartition(".")[2]})
            else:
                outputs.append({"id": ident, "property": one.rpartition(".")[2]})
        given = outputs if whole.startswith("..") else outputs[0]
        body = {"output": whole, "outputs": given, "inputs": inputs, "state": state, "changedPropIds": by}
        status, raw, _ = self.ask(kind, "POST", "/_dash-update-component", body)
        if status not in (200, 204):
            self.times.fail(f"{whole[:60]}: {status} {raw[:120]!r}")
            return []
        if status == 204 or not raw:
            return []
        told = json.loads(raw)
        news = {**told.get("response", {})}
        for ident, props in (told.get("sideUpdate") or {}).items():
            news.setdefault(ident.split("@")[0], {}).update(props)
        queue = []
        for ident, props in news.items():
            for prop, value in props.items():
                prop = prop.split("@")[0]
                name = _text(json.loads(ident)) if ident.startswith("{") else ident
                self.props.setdefault(name, {})
                if prop == "children":
                    self._take(value)
                else:
                    self.props[name][prop] = value
                    queue.append((name, prop))
        return queue

    def press(self, name: str | dict[str, Any], kind: str) -> bool:
        """Clicks a button, if the page has it."""
        ident = _text(name)
        if ident not in self.props:
            return False
        self.props[ident]["n_clicks"] = int(self.props[ident].get("n_clicks") or 0) + 1
        self.changed([(ident, "n_clicks")], kind)
        return True

    def type(self, task: str, value: str) -> bool:
        """Types an answer: the page's script hands it on when the typing pauses."""
        ident = _text({"type": "labs-answer", "task": task})
        if ident not in self.props:
            return False
        self.props[ident]["value"] = value
        store = _text({"type": "labs-typed", "task": task})
        if store in self.props:
            self.props[store]["data"] = value
            self.changed([(store, "data")], "save an answer")
        return True

    def tick(self, page: str, kind: str) -> None:
        """Asks for a job until it has ended."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            timer = self.props.get(f"{page}-tick", {})
            ticks = int(timer.get("n_intervals") or 0)
            if ticks >= int(timer.get("max_intervals") or 0):
                return
            time.sleep(TICK_S)
            timer["n_intervals"] = ticks + 1
            self.changed([(f"{page}-tick", "n_intervals")], kind)
        self.times.fail(f"{page}: a job has not ended")

    def forget(self, prefix: str) -> None:
        """Components of the step before, which the browser has removed."""
        for name in [n for n in self.props if n.startswith("{") and prefix in n]:
            del self.props[name]


class Student(threading.Thread):
    """One student, from the link to the last check."""

    def __init__(self, host: str, secret: str, student: str, times: Times, pause: float, right: dict[str, str], number: int) -> None:
        super().__init__(daemon=True)
        self.client, self.secret, self.student, self.times = Client(host, times), secret, student, times
        self.pause, self.right, self.chance = pause, right, random.Random(number)
        self.done = False

    def think(self) -> None:
        if self.pause:
            time.sleep(self.chance.expovariate(1 / self.pause))

    def run(self) -> None:
        try:
            self.work()
            self.done = True
        except Exception as error:
            self.times.fail(f"{self.student}: {type(error).__name__}: {error}")

    def step(self, to: int) -> None:
        self.client.forget("labs-")
        self.client.props["labs-step"]["data"] = to
        self.client.changed([("labs-step", "data")], "turn to a step")

    def answer(self, tasks: list[str], wrong: str) -> None:
        for task in tasks:
            value = "1 kB/s" if task == wrong and "B/s" in self.right[task] else self.right[task]
            self.client.type(task, value)
            self.think()

    def forms(self) -> list[str]:
        return [n for n in self.client.props if '"labs-run"' in n]

    def work(self) -> None:
        from retrompi.labs.lab import lab

        client, one = self.client, lab("1")
        self.think()
        client.join(self.secret)
        client.open("/labs", f"?lab={one.name}")
        first, moved = True, 0
        number = 1
        while number < 40:
            self.think()
            for form in self.forms()[:2]:
                self.run_form(form)
                self.think()
            here = [json.loads(n)["task"] for n in client.props if '"labs-answer"' in n]
            self.answer(here, "rate" if first else "")
            if client.press({"type": "labs-seal", "of": "step"}, "seal predictions"):
                now = [json.loads(n)["task"] for n in client.props if '"labs-answer"' in n]  # what the sealed ones had kept shut
                self.answer([t for t in now if t not in here], "")
                here = [*here, *(t for t in now if t not in here)]
            if any(not t.startswith("p-") for t in here):
                self.check("*")
                if "rate" in here and first:  # read what it says, and mend it
                    first = False
                    self.think()
                    client.type("rate", self.right["rate"])
                    self.check("rate")
            if number % 3 == 0 and moved < 3:
                moved += 1
                self.what_if()
            turns = [json.loads(n)["to"] for n in client.props if '"labs-turn"' in n]
            further = [t for t in turns if t.isdecimal() and int(t) >= number]
            if not further:
                break
            number += 1
            self.step(number)
        self.check("*all") if _text({"type": "labs-check", "task": "*all"}) in client.props else self.check("*")

    def check(self, task: str) -> None:
        begun = time.perf_counter()
        if self.client.press({"type": "labs-check", "task": task}, "press check"):
            self.client.tick("labs", "ask for a check's result")
            self.times.add("check, press to result", time.perf_counter() - begun)

    def run_form(self, button: str) -> None:
        begun, client = time.perf_counter(), self.client
        form = json.loads(button)["form"]
        client.press(json.loads(button), "run a command")
        timer = _text({"type": "labs-run-tick", "form": form})
        until = time.monotonic() + PATIENCE_S
        while client.props.get(timer, {}).get("max_intervals") and time.monotonic() < until:
            time.sleep(0.4)
            client.props[timer]["n_intervals"] = int(client.props[timer].get("n_intervals") or 0) + 1
            client.changed([(timer, "n_intervals")], "ask for a command's result")
        self.times.add("command, press to result", time.perf_counter() - begun)

    def what_if(self) -> None:
        """Another tab: the page What if with a value of the student's own, as a moved slider asks."""
        tab = Client(self.client.host, self.times)
        tab.cookie = self.client.cookie
        _, layout, _ = tab.ask("page: frame", "GET", "/_dash-layout")
        _, known, _ = tab.ask("page: frame", "GET", "/_dash-dependencies")
        tab.callbacks = [c for c in json.loads(known) if not c.get("clientside_function")]
        tab._take(json.loads(layout))
        value = self.chance.randint(40, 400)
        search = f"?model=wmpi&mode=shared&set=wmpi.library%3D{value}us"
        tab.props["studio-address"] = {"pathname": "/whatif", "search": search}
        begun = time.perf_counter()
        tab.changed([("studio-address", "pathname")], "page: content")
        told = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "sets": tab.props["whatif-sets"]["data"]}
        tab.props["whatif-question"]["data"] = told  # a script of the page does this
        tab.changed([("whatif-question", "data")], "what-if: one answer")
        tab.tick("whatif", "what-if: one answer")
        self.times.add("what-if, asked to figure", time.perf_counter() - begun)


def right_answers(student: str, store: Any) -> dict[str, str]:
    """What the student will answer in lab 1: predictions, right numbers, texts."""
    from retrompi.labs.bench import Bench
    from retrompi.labs.grade import right_values
    from retrompi.labs.lab import lab
    from retrompi.labs.student import draw

    one = lab("1")
    units = {"s": "s", "B/s": "B/s", "B": "B"}
    found = right_values(one, draw(one, student), Bench(store))
    told = {t.id: t.choices[0] if t.choices else {"s": "1 ms", "B": "4 KiB"}.get(t.unit, "3") for t in one.predictions}
    told |= {t.id: WORDS for t in one.tasks if t.kind == "text"}
    known = {t.id: units.get(t.unit, "") for t in one.tasks}
    return told | {k: v if isinstance(v, str) else f"{v:.9g} {known[k]}".strip() for k, v in found.items()}


class Phone:
    """The same by clicking, in Chromium on a phone's screen."""

    def __init__(self, page: Any, right: dict[str, str], times: Times) -> None:
        self.page, self.right, self.times = page, right, times

    def until(self, kind: str, expression: str) -> None:
        """Waits until an expression is true; the time since now counts as ``kind``. The page forbids the library's own way, which evaluates
        texts."""
        begun = time.perf_counter()
        while not self.page.evaluate(expression):
            if time.perf_counter() - begun > PATIENCE_S:
                raise TimeoutError(f"{kind}: {expression}")
            self.page.wait_for_timeout(20)
        self.times.add(f"Chromium: {kind}", time.perf_counter() - begun)

    def fill(self) -> None:
        """Answers what is open on this step."""
        for field in self.page.query_selector_all("section.lab-task"):
            value = self.right.get(str(field.get_attribute("id")).removeprefix("labs-task-"))
            box = field.query_selector("input[type=text], textarea")
            choices = field.query_selector_all("label:has(input[type=radio])")
            if value is not None and box is not None:
                box.fill(value)
            elif value is not None and choices:
                next(c for c in choices if c.inner_text().strip() == value).click()
        self.page.wait_for_timeout(900)  # the page's own pause after typing

    def step(self) -> bool:
        """Seals, answers and checks a step and goes on to the next; False on the last one."""
        page = self.page
        self.fill()
        if page.locator(".lab-seal button").count():
            page.locator(".lab-seal button").click()
            self.until("seal", "!document.querySelector('.lab-seal')")
            self.fill()
        onward = page.get_by_role("button", name="Next step")
        check = page.get_by_role("button", name="Check" if onward.count() else "Check everything", exact=True)
        if check.count():
            before = page.locator("#labs-summary").inner_text()
            check.last.click()
            self.until("check", f"document.querySelector('#labs-summary').textContent !== {json.dumps(before)}")
        if not onward.count():
            return False
        before = page.locator("#labs-step-title").inner_text()
        onward.click()
        self.until("next step", f"document.querySelector('#labs-step-title')?.innerText !== {json.dumps(before)}")
        return True


def browsers(host: str, people: list[tuple[str, str]], rights: dict[str, dict[str, str]], times: Times) -> list[str]:
    """Students in Chromium, one after the other beside the class; the ids of those who finished."""
    from playwright.sync_api import sync_playwright

    finished = []
    with sync_playwright() as drive:
        chromium = drive.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for student, secret in people:
            context = chromium.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.goto(f"http://{host}/join/{secret}")
            page.get_by_role("button").click()
            phone = Phone(page, rights[student], times)
            begun = time.perf_counter()
            page.goto(f"http://{host}/labs?lab=01-latency-bandwidth")
            page.wait_for_selector("#labs-step-title")
            times.add("Chromium: lab page, to its text", time.perf_counter() - begun)
            try:
                while phone.step():
                    pass
                finished.append(student)
            except Exception as error:
                times.fail(f"{student} in Chromium: {type(error).__name__}: {error}")
            context.close()
        chromium.close()
    return finished


def main() -> int:
    """Runs the class and prints the table; 1 when not all were graded."""
    given = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    given.add_argument("--students", type=int, default=60)
    given.add_argument("--minutes", type=float, default=10.0)
    given.add_argument("--browsers", type=int, default=0)
    asked = given.parse_args()
    from retrompi.classroom.course import settings
    from retrompi.classroom.course.class_list import Entry
    from retrompi.classroom.course.database import Database
    from retrompi.classroom.grades import records
    from retrompi.store import open_store

    times = Times()
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(Path(folder) / "course.db", new=True)
        names = [f"student{i:03}" for i in range(asked.students + asked.browsers)]
        secrets = settings.new(db, "A class at once", ["1"], [Entry("teacher", role="teacher"), *(Entry(n) for n in names)])
        store = open_store(str(Path(folder) / "own.db"))
        rights = {n: right_answers(n, store) for n in names}
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "RETROMPI_COURSE": str(Path(folder) / "course.db")}
        log = (Path(folder) / "log").open("w+")
        command = [sys.executable, "-m", "retrompi.cli.main", "course", "serve", "--as-root", "--host", "127.0.0.1", "--port", "0"]
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env, start_new_session=True)
        try:
            host, until = "", time.monotonic() + 60
            while not host and time.monotonic() < until:
                found = re.search(r"http://\S+", Path(log.name).read_text())
                host = urlsplit(found[0]).netloc if found else ""
                time.sleep(0.2)
            time.sleep(3)
            begun, load = time.monotonic(), os.getloadavg()[0]
            pause = asked.minutes * 60 / 75  # a student makes some 75 moves
            class_ = [Student(host, secrets[n], n, times, pause, rights[n], i) for i, n in enumerate(names[: asked.students])]
            for student in class_:
                student.start()
            clicked = browsers(host, [(n, secrets[n]) for n in names[asked.students :]], rights, times) if asked.browsers else []
            for student in class_:
                student.join(max(asked.minutes, 1) * 60 * 4 + PATIENCE_S)
            took = time.monotonic() - begun
            ticks = sum(int(v) for v in Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        standing = records.standings(db)
        graded = [s for s in standing.values() if s.checked is not None]
        full = [s for s in graded if s.passed]
        left = Counter(f"{t}: {r}" for s in graded for t, r in s.results.items() if r not in records.DONE)
        print("left to do:", dict(left.most_common(8)))
        for kind, count, middle, late, most in times.rows():
            print(f"{kind:32} {count:6}  median {middle:7.3f} s   95 % {late:7.3f} s   longest {most:7.3f} s")
        print(f"{sum(s.done for s in class_)} of {asked.students} clients and {len(clicked)} of {asked.browsers} browsers finished")
        print(f"in {took:.0f} s: {len(graded)} graded, {len(full)} with nothing left to do")
        print(f"processor seconds of the server: {ticks / os.sysconf('SC_CLK_TCK'):.0f}; load before: {load:.1f}")
        for line in times.failed[:12]:
            print("failed:", line)
        if os.environ.get("CLASS_LOG"):
            Path(os.environ["CLASS_LOG"]).write_text(Path(log.name).read_text())
        said = [line for line in Path(log.name).read_text().splitlines() if "Error" in line or "failed" in line]
        print(*said[:8], sep="\n")
        return 0 if len(full) == asked.students + asked.browsers and not times.failed else 1


if __name__ == "__main__":
    sys.exit(main())
