"""Pictures of every page of the studio and of a course, for whoever changes them to look at:

    python tests/look.py FOLDER [PATH ...] [--sizes phone,desk,wide] [--schemes light,dark] [--projector] [--course | --only-course]

writes FOLDER/PAGE-SIZE-SCHEME.png, the whole of each page, and FOLDER/sheet-SIZE-SCHEME-N.png with six of them each. With PATHs
("/anatomy?view=two") only those. It also prints what is wider than the window, which no page may be. Not a test: nothing here judges
what only eyes can.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from browser import LOOK, WAIT_MS, Server, chromium, missing, settled, until

SIZES = {"phone": (390, 844), "desk": (1280, 800), "wide": (1920, 1080)}
STUDIO = (
    "/", "/curves", "/curves?model=wmpi&model=nemesis&platform=own&mode=shared&mode=distributed", "/whatif",
    "/whatif?model=nemesis&platform=nt-pair", "/anatomy", "/anatomy?view=two", "/anatomy?model=nemesis&view=two&b-model=wmpi", "/replay",
    "/replay?trace=made:send_first", "/scorecard", "/models", "/models?model=wmpi", "/platforms", "/platforms?platform=abe", "/studies",
    "/studies?study=fast-ethernet", "/labs", *(f"/labs?lab={lab}&student=Ann&step={step}" for lab, step in
    ((1, 1), (1, 2), (3, 2), (6, 2), (9, 2), (11, 2), (12, 2))), "/nowhere",
)
PROJECTED = ("/curves", "/whatif", "/anatomy", "/anatomy?view=two", "/replay", "/scorecard")


def name_of(path: str) -> str:
    """A file's name from an address."""
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "start"


class Album:
    """Takes the pictures and puts them together."""

    def __init__(self, folder: Path, sizes: list[str], schemes: list[str]) -> None:
        self.folder, self.sizes, self.schemes = folder, sizes, schemes
        self.taken: dict[str, list[Path]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def page_of(self, browser: Any, server: Any, size: str, projector: bool = False) -> Any:
        width, height = SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height}, base_url=server.url)
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(LOOK)
        if projector:
            context.add_init_script("localStorage.setItem('retrompi-projector', '1')")
        return context.new_page()

    def take(self, page: Any, path: str, size: str, tag: str = "") -> None:
        """One page in every scheme."""
        answer = page.goto(path)
        if page.locator("body.course").count() == 0 and answer.status < 400:
            until(page, "document.querySelector('#main > [id^=page-]')")
            settled(page)
            page.wait_for_timeout(600)  # drawings move
        for scheme in self.schemes:
            page.emulate_media(color_scheme=scheme)
            file = self.folder / f"{name_of(path)}{tag}-{size}-{scheme}.png"
            page.screenshot(path=str(file), full_page=True)
            self.taken.setdefault(f"{size}{tag}-{scheme}", []).append(file)
        wide = page.evaluate("() => document.documentElement.scrollWidth > innerWidth ? (window.looked?.overflow() ?? ['?']) : []")
        print(f"{path} {size}{tag}", *(["is too wide:", *map(str, wide[:3])] if wide else []), flush=True)

    def sheets(self) -> None:
        """Six pictures on each sheet, cut at two and a half screens."""
        try:
            from PIL import Image
        except ImportError:
            print("no contact sheets: pip install pillow")
            return
        for what, files in self.taken.items():
            width, height = SIZES[what.split("-")[0]]
            scale = 620 / width
            for number, some in enumerate(_by(files, 6)):
                sheet = Image.new("RGB", (3 * 630, 2 * (round(height * scale * 2.5) + 10)), "#888")
                for i, file in enumerate(some):
                    with Image.open(file) as found:
                        cut = found.convert("RGB").crop((0, 0, width, min(found.height, round(height * 2.5))))
                        sheet.paste(cut.resize((620, round(cut.height * scale))), (i % 3 * 630, i // 3 * (sheet.height // 2)))
                sheet.save(self.folder / f"sheet-{what}-{number + 1}.png")


def _studio(browser: Any, album: Album, folder: Path, paths: list[str], projector: bool) -> None:
    with Server(folder) as server:
        for size in album.sizes:
            page = album.page_of(browser, server, size)
            for path in paths or STUDIO:
                album.take(page, path, size)
            page.context.close()
        if projector:
            page = album.page_of(browser, server, "wide", projector=True)
            for path in paths or PROJECTED:
                album.take(page, path, "wide", "-projector")


def _course(browser: Any, album: Album, folder: Path) -> None:
    """A course with three students at lab 1: two have the same words; answers are right, wrong, without a unit, missing."""
    from test_course_browser import CourseServer, come

    from retrompi.classroom.course import members
    from retrompi.classroom.course.class_list import Entry
    from retrompi.classroom.works.shelf import DatabaseShelf
    from retrompi.labs import answers, start
    from retrompi.labs.bench import Bench
    from retrompi.labs.lab import lab
    from retrompi.labs.student import draw
    from retrompi.labs.work import answer, change, seal
    from retrompi.store import open_store

    one = lab("1")
    guesses = {t.id: t.choices[0] if t.choices else f"3 {t.unit}".removesuffix(" 1") for t in one.predictions}
    texts = {t.id: f"A message between machines passes two daemons, which the {t.id} of my line shows in every row. " * 3
             for t in one.tasks if t.kind == "text"}
    with CourseServer(folder, Entry("bo", "Bo Cole"), Entry("cy", "Cy Dunn-Winterbottom of Hamburg-Harburg")) as server:
        for who, wrong in (("ann", {"startup": "225"}), ("bo", {"startup": "1 s", "loop": ""}), ("cy", {"rate": "2 MB/s"})):
            place = start.start(one, who, folder / who)
            start.solve(one, place, draw(one, who), Bench(open_store(folder / "own.db"), place), who)
            right = {t: given.raw for t, given in answers.read(place, one).items() if t not in guesses}
            own = {**right, **(texts if who != "cy" else {}), **wrong}
            shelf = DatabaseShelf(server.db, members.person(members.find(server.db, who)))
            change(shelf, one, lambda w: seal(answer(w, one, guesses), one))
            for given in (own, {**own, "startup": "2 ms"}):
                change(shelf, one, lambda w, given=given: answer(w, one, given))  # type: ignore[misc]
                page = come(browser, server, who)
                page.goto("/labs?lab=1&step=8")
                before = page.locator("#labs-summary").inner_text()
                page.get_by_role("button", name="Check everything").click()
                until(page, f"document.querySelector('#labs-summary')?.textContent !== {json.dumps(before)}")
                page.context.close()
        ann = members.find(server.db, "ann")["id"]
        teacher = ("/course/teacher", "/course/teacher/lab/1", f"/course/teacher/marks/1/{next(iter(texts))}",
                   f"/course/teacher/student/{ann}", f"/course/teacher/student/{ann}/1", "/course/teacher/alike/1")
        for who, paths in (("ann", ("/labs", "/labs?lab=1", "/course/me")), ("lecturer", teacher)):
            for size in album.sizes:
                page = album.page_of(browser, server, size)
                link = f"/join/{members.link_for(server.db, members.find(server.db, who)['id'])}"
                album.take(page, link, size, "-join")
                page.get_by_role("button", name="Start").click()
                page.wait_for_url(lambda url: "/join/" not in url)
                for path in paths:
                    album.take(page, path, size, f"-{who}")
                page.context.close()


def _by(files: list[Path], many: int) -> Iterator[list[Path]]:
    for at in range(0, len(files), many):
        yield files[at : at + many]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("paths", nargs="*")
    asked.add_argument("--sizes", default="phone,desk,wide")
    asked.add_argument("--schemes", default="light,dark")
    asked.add_argument("--projector", action="store_true", help="the main pages as a projector shows them, too")
    asked.add_argument("--course", action="store_true", help="a course's pages, too")
    asked.add_argument("--only-course", action="store_true", help="a course's pages alone")
    given = asked.parse_args()
    if why := missing():
        sys.exit(why)
    from playwright.sync_api import sync_playwright

    album = Album(given.folder, given.sizes.split(","), given.schemes.split(","))
    with sync_playwright() as tool, tempfile.TemporaryDirectory() as scratch:
        browser = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        if not given.only_course:
            _studio(browser, album, Path(scratch) / "studio", given.paths, given.projector)
        if given.course or given.only_course:
            _course(browser, album, Path(scratch) / "course")
        browser.close()
    album.sheets()


if __name__ == "__main__":
    main()
