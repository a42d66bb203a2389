"""What students hand in, whatever it is: one clear line for a broken sheet, and a class's grade table that a teacher can open."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import agrees

from retrompi.base.csv_safe import safe_cell
from retrompi.labs import alike, answers, collect, grade, start, student, submissions
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.store import open_store

Run = Callable[..., Any]
LAB = "1"


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The store of all tests here."""
    return str(tmp_path_factory.mktemp("handed-in") / "labs.db")


def hand_in(who: str, folder: Path, where: str, *, spoiled: bool = False, lab: str = LAB) -> Path:
    """A finished folder: predictions sealed by a check before the answers were filled in."""
    found = _lab.lab(lab)
    start.start(found, who, folder)
    p, bench = student.draw(found, who), Bench(open_store(where), folder)
    (start.spoil if spoiled else start.solve)(found, folder, p, bench, who)
    whole = (folder / "answers.toml").read_text()
    given = answers.read(folder, found)
    blank = {t.id: answers.Given("", "") if t.kind != "prediction" else given[t.id] for t in found.tasks if t.kind != "file"}
    student.write_state(folder, grade.seal(found, student.read_state(folder), blank))
    (folder / "answers.toml").write_text(whole)
    return folder


# -- a student's folder ------------------------------------------------------------------------------------------------


def test_a_lab_from_start_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retrompi: Run, where: str) -> None:
    monkeypatch.chdir(tmp_path)
    began = retrompi("lab", "start", LAB, "--student", "Ann Bee")
    assert began.code == 0
    folder = next(tmp_path.glob("lab01-ann-bee-*"))
    empty = retrompi("lab", "check", LAB, "--store", where)
    assert empty.code == 1
    assert "no prediction yet" in empty.out

    sheet = folder / "answers.toml"
    text = sheet.read_text()
    sheet.write_text(text.replace('p-startup = ""', 'p-startup = "1 ms"').replace('startup = ""', 'startup = "3 s"', 1))
    sheet.write_text(sheet.read_text().replace('p-startup = "1 ms"', 'p-startup = "1 ms"'))
    first = json.loads(retrompi("lab", "check", "--store", where, "--json").out)
    tasks = {t["task"]: t for t in first["tasks"]}
    assert tasks["p-startup"]["status"] == "sealed"
    assert tasks["p-startup"]["points"] > 0

    sheet.write_text(sheet.read_text().replace('p-startup = "1 ms"', 'p-startup = "2 ms"'))
    later = json.loads(retrompi("lab", "check", "--store", where, "--json").out)
    changed = next(t for t in later["tasks"] if t["task"] == "p-startup")
    assert changed["status"] == "changed"
    assert changed["given"] == "1 ms", "the sealed one counts"
    assert any("changed after sealing" in f for f in later["flags"])

    hint = retrompi("lab", "hint", LAB, "half")
    assert hint.out.startswith("1 of ")
    assert student.read_state(folder).hints == {"half": 1}
    found = retrompi("lab", "report", LAB, "--store", where)
    assert found.code == 0
    page = (folder / "report.html").read_text()
    assert "Ann Bee" in page
    assert "changed after sealing" in page
    assert "https://" not in page.split("</style>")[0]


def test_a_hint_costs_what_the_lab_says(tmp_path: Path, where: str) -> None:
    from dataclasses import replace

    folder = hand_in("Ann", tmp_path / "ann", where)
    lab = _lab.lab(LAB)
    state = student.write_state(folder, replace(student.read_state(folder), hints={"half": 2}))
    graded = grade.grade(lab, folder, state, Bench(open_store(where), folder))
    half = next(r for r in graded.results if r.task == "half")
    assert half.status == "right"
    assert half.points == half.of - 2 * lab.hint_cost
    assert graded.hints == 2


def test_what_is_right_by_its_own_tolerance_fits_nobody_else() -> None:
    def facts(who: str, given: float, right: float, absolute: float) -> alike.Facts:
        told = dict.fromkeys(("a", "b"), given), dict.fromkeys(("a", "b"), right), dict.fromkeys(("a", "b"), (0.0, absolute))
        return alike.Facts(who, who, LAB, f"token of {who}", given=told[0], expected=told[1], tolerances=told[2])

    assert alike.pairs([facts("ann", 612.3, 512.3, 100), facts("bob", 612.3, 612.3, 100)]) == [], "612.3 is within 100 of 512.3"
    assert [p.why for p in alike.pairs([facts("ann", 612.3, 512.3, 0), facts("bob", 612.3, 612.3, 0)])] == [
        ("numbers of ann are the right ones of bob: a, b",)
    ]
    assert alike.pairs([facts("ann", 600, 500, 0), facts("bob", 600, 600, 0)]) == [], "round numbers are guessed by many"


def test_what_is_alike_is_told_in_the_order_of_the_tasks() -> None:
    texts = {task: f"{task} " + "the same eight words are in both of these" for task in ("zeta", "explain", "advice", "beta", "alpha")}
    found = alike.pairs([alike.Facts(who, who, LAB, f"token of {who}", texts=texts) for who in ("ann", "bob")])
    assert [w.split("'")[1] for p in found for w in p.why] == list(texts)


def test_a_hint_costs_of_a_file_too(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    lab = next(x for x in _lab.labs() if any(t.kind == "file" and t.hints for t in x.tasks))
    task = next(t for t in lab.tasks if t.kind == "file" and t.hints)
    monkeypatch.setattr(lab.reference, "inspect", lambda *_: "")
    (tmp_path / task.file).write_text("a file that is right")
    state = replace(student.new_state(lab, "Ann"), hints={task.id: 1})
    found = grade._grade_task(task, lab, tmp_path, state, {}, student.draw(lab, "Ann"), Bench(open_store(where), tmp_path), {})
    assert (found.status, found.points) == ("right", task.points - lab.hint_cost)


@for_each(
    "sheet, line, says",
    [
        (b"startup = 12 ms\n", 1, "unreadable-file | TOML"),
        (b'\n\nstartup = "12 ms\n', 3, "unreadable-file | TOML"),
        (b'startup = "1 ms"\nstartup = "2 ms"\n', 2, "unreadable-file | TOML"),
        (b'statrup = "1 ms"\n', 1, "unknown-task | 'startup'"),
        (b"[startup]\na = 1\n", None, "bad-input"),
        (b"\xff\xfe\x00", 1, "unreadable-file | UTF-8"),
        (b"startup = " + b"[" * 5000 + b"]" * 5000, None, "unreadable-file"),
        (b"startup = " + b"9" * 6000, None, "unreadable-file"),
        (b'explain = "' + b"x" * 30_000 + b'"\n', 1, "out-of-range"),
        (b"x" * (2 << 20), None, "out-of-range"),
    ],
)
def test_a_hostile_sheet_is_one_line_with_its_place(
    sheet: bytes, line: int | None, says: str, tmp_path: Path, retrompi: Run, where: str
) -> None:
    folder = start.start(_lab.lab(LAB), "Ann", tmp_path / "mine")
    (folder / "answers.toml").write_bytes(sheet)
    result = retrompi("lab", "check", str(folder), "--store", where)
    assert result.code == 2
    assert result.err.count("\n") == 1
    agrees(result, says)
    assert f"answers.toml{f':{line}:' if line else ''}" in result.err
    assert len(result.err) < 1000


@for_each(
    "given, says",
    [
        ("fast", "not a number"),
        ("", ""),
        ("nan ms", "not a number"),
        ("12", "no unit"),
        ("1,5 ms", "decimal comma"),
        ("12 kB", "is a size"),
        ("12 MB/s", "is a rate"),
        ("12 parsec", "wrong unit"),
        ("-3 ms", "negative"),
        ("1e999 s", "finite"),
        ("12 ms or so", "not a number"),
        ("<script>alert(1)</script>", "not a number"),
    ],
)
def test_an_answer_that_is_none_says_why(given: str, says: str) -> None:
    task = _lab.lab(LAB).task("startup")
    if not says:
        return
    with pytest.raises(answers.UnreadableAnswer, match=says):
        answers.value(task, answers.Given(given, given))


@pytest.mark.parametrize("kind", ["missing", "link", "folder", "pipe"])
def test_a_sheet_that_is_no_file(kind: str, tmp_path: Path, retrompi: Run, where: str) -> None:
    folder = start.start(_lab.lab(LAB), "Ann", tmp_path / "mine")
    sheet = folder / "answers.toml"
    sheet.unlink()
    if kind == "link":
        (tmp_path / "secret.toml").write_text('startup = "1 ms"\n')
        sheet.symlink_to(tmp_path / "secret.toml")
    elif kind == "folder":
        sheet.mkdir()
    elif kind == "pipe":
        os.mkfifo(sheet)
    result = retrompi("lab", "check", str(folder), "--store", where)
    assert result.code == 2
    agrees(result, "not-found | answers.toml")
    assert result.err.count("\n") == 1


@for_each("state", [b"", b"student = 3\n", b"\xff", b'student = "a"\nlab = "01-latency-bandwidth"\n', b"[" * 9000])
def test_a_folder_whose_own_file_was_spoilt(state: bytes, tmp_path: Path, retrompi: Run) -> None:
    folder = start.start(_lab.lab(LAB), "Ann", tmp_path / "mine")
    (folder / ".lab.toml").write_bytes(state)
    result = retrompi("lab", "check", str(folder))
    assert result.code == 2
    agrees(result, "unreadable-file | .lab.toml")
    assert result.err.count("\n") == 1


@for_each(
    "who",
    ["Ann Bee", 'O\'Neil "Ann"', "../../etc/passwd", "=cmd|' /C calc'!A0", "Zoë Ünïcode", "学生", "a\\b:c*?<>|", "x" * 200, "-rf",
     "\u202egnp.exe", "  Ann  ", "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "An\u00adn  \u200b Bee", "e\u200d\u0301"],
)
def test_an_odd_id_is_safe_in_names_and_tables(who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retrompi: Run) -> None:
    monkeypatch.chdir(tmp_path)
    result = retrompi("lab", "start", LAB, f"--student={who}")
    assert result.code == 0, result.err
    folder = next(tmp_path.iterdir())
    assert [p.parent for p in tmp_path.iterdir()] == [tmp_path]
    assert folder.name.isascii()
    assert len(folder.name) < 60
    assert all(c.isalnum() or c in "-_." for c in folder.name)
    assert student.read_state(folder).student == student.shown_id(who)
    assert student.read_state(folder).intact
    lab, kept = _lab.lab(LAB), student.read_state(folder)
    assert kept.seed == student.seed_of(lab, kept.student), "what is graded later is drawn from the id that the folder keeps"
    assert student.draw(lab, who).texts == student.draw(lab, kept.student).texts
    cell = safe_cell(student.shown_id(who))
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert cell.isprintable()


@pytest.mark.parametrize("who", ["", "   ", "\u200b", "x" * 201])
def test_an_id_that_is_none_is_refused(who: str, retrompi: Run, here: None) -> None:
    result = retrompi("lab", "start", LAB, f"--student={who}")
    assert result.code == 2
    agrees(result, "bad-name")


def test_a_folder_is_not_overwritten(tmp_path: Path, retrompi: Run) -> None:
    assert retrompi("lab", "start", LAB, "--student", "a", "--folder", str(tmp_path / "x")).code == 0
    assert retrompi("lab", "start", LAB, "--student", "a", "--folder", str(tmp_path / "x")).code == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    assert retrompi("lab", "start", LAB, "--student", "a", "--folder", str(tmp_path / "mine")).code == 2


@for_each("name", ["{evil}", "./evil", "../evil", "99-evil", "01", "latency-bandwidth", "."])
def test_a_submission_names_no_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retrompi: Run, where: str) -> None:
    """A lab is code: a folder handed in can say which installed lab it is of by that lab's whole name, and nothing else."""
    from dataclasses import replace

    evil = tmp_path / "evil"
    shutil.copytree(_lab.lab(LAB).folder, evil)
    (evil / "reference.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'executed')!r}).touch()\n")
    shutil.copytree(evil, tmp_path / "99-evil")
    folder = start.start(_lab.lab(LAB), "Ann", tmp_path / "mine")
    student.write_state(folder, replace(student.read_state(folder), lab=name.replace("{evil}", str(evil))))
    shutil.copytree(evil, folder / "evil")
    monkeypatch.chdir(folder)
    for command in (("check",), ("report",), ("collect", str(folder)), ("hint", "half")):
        result = retrompi("lab", *command, *(() if command[0] == "hint" else ("--store", where)))
        assert result.code in (1, 2)
        assert "which this retrompi does not have" in " ".join((result.err + result.out).split())
    assert not (tmp_path / "executed").exists()


def test_a_lab_of_ones_own_is_found_by_name(tmp_path: Path, retrompi: Run, here: None) -> None:
    from retrompi.base import paths

    shutil.copytree(_lab.lab(LAB).folder, paths.user_labs_dir() / "77-mine")
    assert "77" in retrompi("lab", "list").out
    assert retrompi("lab", "start", "77", "--student", "Ann", "--folder", "x").code == 0
    assert retrompi("lab", "hint", "x", "half").code == 0


# -- a class's ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory, where: str) -> Path:
    """A class: two honest ones, a copied folder, copied answers, broken things, and zips of several kinds."""
    root = tmp_path_factory.mktemp("class")
    hand_in("Ann", root / "ann", where)
    hand_in("=HYPERLINK(\"http://a\")", root / "bob", where, spoiled=True)
    shutil.copytree(root / "ann", root / "carl")
    state = student.read_state(root / "carl")
    from dataclasses import replace

    student.write_state(root / "carl", replace(state, student="Carl"))
    hand_in("Dora", root / "dora", where)
    shutil.copy(root / "ann" / "answers.toml", root / "dora" / "answers.toml")
    (root / "empty").mkdir()
    broken = hand_in("Eve", root / "eve", where)
    (broken / "answers.toml").write_text("half = 3 KiB\n")
    own = hand_in("Fay", root.parent / "fay-folder", where)
    with zipfile.ZipFile(root / "fay.zip", "w") as archive:
        for file in own.iterdir():
            archive.write(file, f"fay/{file.name}")
    with zipfile.ZipFile(root / "out.zip", "w") as archive:
        archive.writestr("../../out-of-it.txt", "x")
    with zipfile.ZipFile(root / "link.zip", "w") as archive:
        link = zipfile.ZipInfo("fay/answers.toml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with zipfile.ZipFile(root / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/answers.toml", b"0" * (30 << 20))
    (root / "no.zip").write_bytes(b"PK\x03\x04 is no zip")
    return root


def test_a_class_is_graded_whatever_it_handed_in(handed_in: Path, retrompi: Run, where: str, tmp_path: Path) -> None:
    result = retrompi("lab", "collect", str(handed_in), "--store", where, "--csv", "-o", str(tmp_path / "class.html"))
    assert result.code == 1, "some cannot be graded"
    assert result.err == ""
    rows = {Path(r["source"].lstrip("'")).name: r for r in csv.DictReader(io.StringIO(result.out))}
    assert float(rows["ann"]["points"]) + float(rows["ann"]["open"]) == float(rows["ann"]["of"])
    assert rows["ann"]["passed"] == "True"
    assert float(rows["fay"]["points"]) + float(rows["fay"]["open"]) == float(rows["fay"]["of"])
    assert rows["bob"]["student"].startswith("'=HYPERLINK")
    assert float(rows["bob"]["percent"]) < 50
    for name, reason in {"empty": ".lab.toml is missing", "eve": "answers.toml:1", "out.zip": "leads out", "link.zip": "leads out",
                         "bomb.zip": "too large"}.items():
        assert reason in rows[name]["problem"], name
        assert rows[name]["points"] == ""
    assert (rows["eve"]["student"], rows["eve"]["lab"]) == ("Eve", _lab.lab(LAB).name)
    assert "seed is not this student's" in rows["carl"]["problem"]
    assert all(c and c[0] not in "=+-@\t\r" for r in rows.values() for c in (r["student"] or "x", r["source"], r["problem"] or "x"))
    assert not list(handed_in.parent.rglob("out-of-it.txt"))
    page = (tmp_path / "class.html").read_text()
    assert "HYPERLINK(&quot;" in page
    assert "Alike" in page


def test_who_is_alike_is_named_with_what(handed_in: Path, retrompi: Run, where: str) -> None:
    folders = [str(handed_in / n) for n in ("ann", "bob", "carl", "dora")]
    told = json.loads(retrompi("lab", "collect", *folders, "--store", where, "--json").out)
    found = {frozenset((Path(a["one"]).name, Path(a["other"]).name)): "; ".join(a["why"]) for a in told["alike"]}
    assert "copied folder" in found[frozenset(("ann", "carl"))]
    assert "numbers of Dora are the right ones of Ann" in found[frozenset(("ann", "dora"))]
    assert re.search(r"the same \d+ words in", found[frozenset(("ann", "dora"))])
    assert [(k, v) for k, v in found.items() if "bob" in k] == []


# -- downloads of learning platforms -----------------------------------------------------------------------------------


def zipped(folder: Path, file: Path, inside: str = "") -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in sorted(folder.iterdir()):
            archive.write(one, f"{inside}{one.name}")
    return file


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, where: str) -> dict[str, Path]:
    """Ann's and Bob's finished folders."""
    root = tmp_path_factory.mktemp("two")
    return {who: hand_in(who, root / who.lower(), where) for who in ("Ann", "Bob")}


def moodle(two: dict[str, Path], root: Path) -> Path:
    """Moodle's download, unpacked: a folder an account, with a zip, with loose files, and what else is handed in."""
    ann = root / "Ann Bee_12345_assignsubmission_file_"
    bob = root / "Bob Cee_12346_assignsubmission_file"
    text = root / "Ann Bee_12345_assignsubmission_onlinetext"
    cyd = root / "Cyd Dee_12347_assignsubmission_file_"
    for folder in (ann, bob, text, cyd):
        folder.mkdir(parents=True)
    zipped(two["Ann"], ann / "ann.zip", "lab01-ann/")
    shutil.copytree(two["Bob"], bob, dirs_exist_ok=True)
    (text / "onlinetext.html").write_text("<p>See the file.</p>")
    (cyd / "lab.rar").write_bytes(b"Rar!")
    return root


@pytest.mark.parametrize("packed", [False, True], ids=["unpacked", "as the zip that was downloaded"])
def test_a_moodle_download_collects(packed: bool, two: dict[str, Path], tmp_path: Path, retrompi: Run, where: str) -> None:
    root = moodle(two, tmp_path / "Lab 1-777")
    if packed:
        shutil.make_archive(str(tmp_path / "Lab 1-777"), "zip", root)
    result = retrompi("lab", "collect", f"{root}{'.zip' if packed else ''}", "--store", where, "--csv")
    rows = {r["account"]: r for r in csv.DictReader(io.StringIO(result.out))}
    assert set(rows) == {"Ann Bee", "Bob Cee", "Cyd Dee"}
    assert [(rows[n]["student"], rows[n]["account_id"], rows[n]["percent"]) for n in ("Ann Bee", "Bob Cee")] == [
        ("Ann", "12345", rows["Ann Bee"]["percent"]), ("Bob", "12346", rows["Bob Cee"]["percent"])]
    assert float(rows["Ann Bee"]["points"]) > 0 < float(rows["Bob Cee"]["points"])
    assert "no lab in it" in rows["Cyd Dee"]["problem"]
    assert result.code == 1


def test_a_moodle_download_without_folders_collects(two: dict[str, Path], tmp_path: Path, where: str) -> None:
    zipped(two["Ann"], tmp_path / "Ann Bee_12345_assignsubmission_file_ann.zip")
    for file in two["Bob"].iterdir():
        shutil.copy(file, tmp_path / f"Bob Cee_12346_assignsubmission_file_{file.name}")
    found = submissions.find([str(tmp_path)], tmp_path / "place")
    assert [(s.account.name, s.account.id, s.broken) for s in found if s.account] == [("Ann Bee", "12345", ""), ("Bob Cee", "12346", "")]
    assert [student.read_state(s.folder).student for s in found if s.folder] == ["Ann", "Bob"]


def test_a_canvas_download_collects(two: dict[str, Path], tmp_path: Path, retrompi: Run, where: str) -> None:
    """Flat names: the sortable name in small letters, LATE after the due date, numbers of user and file, the file's own name."""
    flat = tmp_path / "flat"
    flat.mkdir()
    zipped(two["Ann"], flat / "beeann_LATE_501_9001_lab01-ann-1.zip", "lab01-ann/")
    for number, file in enumerate(two["Bob"].iterdir()):
        shutil.copy(
            file,
            flat / f"cebob_502_{9100 + number}_{file.stem}-2{file.suffix}"
            if file.suffix
            else flat / f"cebob_502_{9100 + number}_{file.name}",
        )
    shutil.make_archive(str(tmp_path / "submissions"), "zip", flat)
    told = json.loads(retrompi("lab", "collect", str(tmp_path / "submissions.zip"), "--store", where, "--json").out)["submissions"]
    assert [(r["student"], r["account"], r["account_id"], r["late"]) for r in told] == [
        ("Ann", "beeann", "501", True), ("Bob", "cebob", "502", False)]
    assert all(r["problem"] == "" or "not marked" in r["problem"] for r in told)


def test_one_accounts_bad_zip_is_that_accounts_row(two: dict[str, Path], tmp_path: Path) -> None:
    root = tmp_path / "download"
    bad = {}
    for number, kind in enumerate(("bomb", "large", "out", "link", "password", "broken", "deep", "no")):
        bad[kind] = root / f"{kind.title()} X_{number}_assignsubmission_file_"
        bad[kind].mkdir(parents=True)
    with zipfile.ZipFile(bad["bomb"] / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/answers.toml", b"0" * (submissions.LARGEST_MEMBER + 1))
    (bad["large"] / "film.mp4").write_bytes(b"\0" * (submissions.LARGEST_MEMBER + 1))
    with zipfile.ZipFile(bad["out"] / "x.zip", "w") as archive:
        archive.writestr("../../../out.txt", "x")
    with zipfile.ZipFile(bad["link"] / "x.zip", "w") as archive:
        link = zipfile.ZipInfo("a/answers.toml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    good = zipped(two["Ann"], tmp_path / "good.zip")
    data = bytearray(good.read_bytes())
    for at in range(len(data) - 4):
        if data[at : at + 4] in (b"PK\x03\x04", b"PK\x01\x02"):
            data[at + (6 if data[at + 2] == 3 else 8)] |= 1
    (bad["password"] / "x.zip").write_bytes(data)
    damaged = bytearray(good.read_bytes())
    damaged[60:140] = bytes(80)
    (bad["broken"] / "x.zip").write_bytes(damaged)
    inner = zipped(two["Ann"], tmp_path / "inner.zip")
    for level in range(2):
        with zipfile.ZipFile(tmp_path / f"level{level}.zip", "w") as archive:
            archive.write(inner, "inner.zip")
        inner = tmp_path / f"level{level}.zip"
    shutil.copy(inner, bad["deep"] / "x.zip")
    (bad["no"] / "x.zip").write_text("no zip")
    moodle(two, root)
    shutil.make_archive(str(tmp_path / "class"), "zip", root)
    found = {s.account.name: s for s in submissions.find([str(tmp_path / "class.zip")], tmp_path / "place") if s.account}
    says = {"Bomb X": "too large", "Large X": "too large", "Out X": "leads out", "Link X": "leads out", "Password X": "password",
            "Broken X": "cannot be read", "Deep X": "in a zip", "No X": "is none"}
    for who, reason in says.items():
        assert found[who].folder is None
        assert reason in found[who].broken, who
        assert "\n" not in found[who].broken
    assert found["Ann Bee"].folder is not None is not found["Bob Cee"].folder
    assert not list(tmp_path.rglob("out.txt"))


def test_all_zips_together_are_bounded(two: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(f.stat().st_size for f in two["Ann"].iterdir())
    monkeypatch.setattr(submissions, "LARGEST_ALL", int(size * 2.5))
    for i in range(4):
        zipped(two["Ann"], tmp_path / f"s{i}.zip")
    found = submissions.find([str(tmp_path)], tmp_path.parent / f"{tmp_path.name}-place")
    assert [s.folder is not None for s in found] == [True, True, False, False]
    assert "too large" in found[-1].broken


def test_names_in_a_zip_change_no_direction_of_writing(tmp_path: Path) -> None:
    file = tmp_path / "class.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Ann\u202eeeB_1_assignsubmission_file_/x\u202e.txt", "x")
        archive.writestr("\x1b[2Jother/x.txt", "x")
    for one in submissions.find([str(file)], tmp_path / "place"):
        assert one.source.isprintable()
        assert one.account is None or one.account.name == "Ann eeB"


def test_a_grading_that_hangs_or_dies_is_a_row(handed_in: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = collect._grade

    def graded(submission: submissions.Submission, store: str | None, may_run: bool) -> Any:
        if submission.source == "hangs":
            import time

            time.sleep(60)
        if submission.source == "dies":
            os._exit(7)
        return real(submission, store, may_run)

    monkeypatch.setattr(collect, "_grade", graded)
    given = [submissions.Submission(s, handed_in / "ann") for s in ("dies", "works")]
    out, _ = collect.collect(given, where, jobs=2)
    assert "without a word" in out[0].broken
    assert out[1].row is not None
    out, _ = collect.collect([submissions.Submission("hangs", handed_in / "ann")], where, jobs=1, seconds=1)
    assert "more than" in out[0].broken


@pytest.mark.parametrize("what", ["nothing-here", "a-file.txt"])
def test_what_is_no_submission_is_said(what: str, tmp_path: Path, retrompi: Run, where: str) -> None:
    (tmp_path / "a-file.txt").write_text("x")
    result = retrompi("lab", "collect", str(tmp_path / what), "--store", where)
    assert result.code == 1
    said = " ".join(result.out.split())
    assert "neither a folder nor a zip" in said or "no such file" in said


def test_texts_and_sources_are_compared_without_their_layout() -> None:
    assert alike.normal_text("The  proxy,\nwaits!") == alike.normal_text("the proxy waits")
    assert alike.normal_source("int  a; // one\n/* two */ int b;\n#include <mpi.h>") == "inta;intb;#include<mpi.h>"
    assert alike.normal_source("0 init # x\n") == "0init"


def test_names_that_are_there_twice_do_not_write_through(tmp_path: Path) -> None:
    file = tmp_path / "twice.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", "2")
    assert "cannot be unpacked" in submissions.unpack(file, tmp_path / "place")


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "many.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(submissions.MOST_MEMBERS + 1):
            archive.writestr(f"f{i}", "")
    assert "at most" in submissions.unpack(file, tmp_path / "place")


# -- what a wrong value is told ----------------------------------------------------------------------------------------


@for_each(
    "task, factor, says",
    [
        ("startup", 1000, "thousand"),
        ("startup", 0.001, "thousand"),
        ("startup", 2, "round trip"),
        ("startup", 0.5, "one way"),
        ("rate", 8, "bits and bytes"),
        ("rate", 1e-3, "thousand"),
        ("half", 1024, "2^10"),
        ("beyond", 100, "percentage"),
        ("startup", 1.27, "none of the usual mistakes"),
    ],
)
def test_a_wrong_value_is_told_by_its_factor(task: str, factor: float, says: str, where: str) -> None:
    lab = _lab.lab(LAB)
    p, bench = student.draw(lab, "Gil"), Bench(open_store(where))
    right, asked = grade.right_values(lab, p, bench)[task], lab.task(task)
    assert grade.is_right(asked, right, right)
    assert says in grade.diagnose(asked, right * factor, right, grade.usual(lab, p, bench).get(task, {}))


@for_each(
    "task, factor, right_unit, unit, mixed",
    [
        ("rate", 1, "MiB/s", "MB/s", True),
        ("rate", 1, "MB/s", "MiB/s", True),
        ("rate", 1, "KiB/s", "kB/s", True),
        ("half", 1, "KiB", "kB", True),
        ("net-half", 1, "KiB", "kB", True),
        ("net-half", 1, "kB", "KiB", True),
        ("net-half", 10.24 / 10.74, "KiB", "KiB", False),
        ("rate", 39.3 / 37.46, "MB/s", "MB/s", False),
        ("rate", 36.6 / 37.46, "MB/s", "MB/s", False),
        ("rate", 1.048576, "MB/s", "MB/s", False),
        ("rate", 1.02, "MiB/s", "MB/s", False),
    ],
)
def test_a_mixed_up_unit_is_told_only_of_the_unit_that_was_written(
    task: str, factor: float, right_unit: str, unit: str, mixed: bool, where: str
) -> None:
    """The number fits ``right_unit`` times ``factor``, and ``unit`` is what stands there."""
    from retrompi.base import units

    lab = _lab.lab(LAB)
    p, bench = student.draw(lab, "Gil"), Bench(open_store(where))
    right, asked = grade.right_values(lab, p, bench)[task], lab.task(task)
    factors = units.UNITS[asked.unit]
    text = f"{right * factor / factors[right_unit]:.4g} {unit}"
    value = answers.value(asked, answers.Given(text, text))
    assert not grade.is_right(asked, value, right), "a mix-up is wrong, not within the tolerance"
    says = grade.diagnose(asked, value, right, grade.usual(lab, p, bench).get(task, {}), text)
    assert ("powers of two" in says) == mixed, says
    assert not any(c.isdigit() for c in says) or not mixed
    assert not mixed or unit in says


def test_three_digits_of_a_careful_student_pass(where: str) -> None:
    """N½ from a table of four digits, its rate and start-up rounded to three on the way."""
    from retrompi.labs.bench import hockney

    lab = _lab.lab(LAB)
    for who in ("Ann", "Bob", "Gil", "you"):
        p, bench = student.draw(lab, who), Bench(open_store(where))
        right = grade.right_values(lab, p, bench)
        shared = lab.reference._machine(p, bench)
        network = lab.reference._network(p, bench, **{"wmpi.daemon": p.text("daemon")})
        for task, curve in (("half", shared), ("net-half", network)):
            one, other = (float(f"{curve[p[k]]:.4g}") for k in ("small", "large"))
            t0, rate, _ = hockney(p["small"], one, p["large"], other)
            assert grade.is_right(lab.task(task), float(f"{float(f'{t0:.3g}') * float(f'{rate:.3g}'):.3g}"), right[task])


@pytest.mark.parametrize("text", ["37.46 MB", "37.46MB", "300 KiB", "3e7 B"])
def test_a_rate_without_its_time_says_what_is_missing(text: str) -> None:
    with pytest.raises(answers.UnreadableAnswer, match="a rate needs one such as MB/s"):
        answers.value(_lab.lab(LAB).task("rate"), answers.Given(text, text))


@for_each(
    "task, sealed, now, same",
    [
        ("p-startup", "2 ms", "2.0 ms", True),
        ("p-startup", "2 ms", "2000 us", True),
        ("p-startup", "2 ms", "2.1 ms", False),
        ("p-startup", "2 ms", "", False),
        ("p-half", "4 KiB", "4KiB", True),
        ("p-half", "4 KiB", "4 kB", False),
        ("p-better", "twice the copy rate", "Twice the copy  rate.", True),
        ("p-better", "twice the copy rate", "half the library work", False),
    ],
)
def test_another_spelling_of_a_prediction_is_no_change(task: str, sealed: str, now: str, same: bool, tmp_path: Path, where: str) -> None:
    lab = _lab.lab(LAB)
    folder = start.start(lab, "Ann", tmp_path / "mine")
    blank = answers.read(folder, lab)
    state = grade.seal(lab, student.read_state(folder), {**blank, task: answers.Given(sealed, sealed)})
    graded = grade.grade(lab, folder, state, Bench(open_store(where), folder), {**blank, task: answers.Given(now, now)})
    assert next(r.status for r in graded.results if r.task == task) == ("sealed" if same else "changed")


@for_each(
    "sheet, line, says",
    [
        ('half = "1 KiB"\nstartup = "12 ms\n', 2, "unreadable-file"),
        ("startup = '12 ms\n", 1, "unreadable-file"),
        ('startup = "12 ms”\n', 1, "unreadable-file"),
        ("startup = “12 ms”\n", 1, "unreadable-file"),
        ("startup = ‘12 ms’\n", 1, "unreadable-file"),
        ('half = "1 KiB"\nexplain = """\nfoo\n\nadvice = """\nbar\n"""\n', 2, "unreadable-file"),
        ('half = "1 KiB"\n\nadvice = """\nbar\n', 3, "unreadable-file"),
    ],
)
def test_a_missing_or_curly_quote_is_named(sheet: str, line: int, says: str, tmp_path: Path) -> None:
    from retrompi.base.errors import InputError

    lab = _lab.lab(LAB)
    folder = start.start(lab, "Ann", tmp_path / "mine")
    (folder / "answers.toml").write_text(sheet)
    with pytest.raises(InputError) as caught:
        answers.read(folder, lab)
    agrees(caught.value, says)
    assert f"answers.toml:{line}:" in str(caught.value)


def test_hints_are_read_again_for_nothing_and_their_cost_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retrompi: Run, where: str
) -> None:
    folder = hand_in("Ann", tmp_path / "mine", where)
    monkeypatch.chdir(folder)
    before = retrompi("lab", "hint", "half", "--again")
    assert before.out == "0 of 2 hints taken, for 0 of this task's 2 points; 2 left, the next costs 0.25\n"
    taken = retrompi("lab", "hint", "half")
    assert "1 left, the next costs 0.25" in taken.out
    assert retrompi("lab", "hint", "half", "--again").out == taken.out
    assert student.read_state(folder).hints == {"half": 1}
    assert "2 of 2: " in retrompi("lab", "hint", "half").out
    assert "none is left" in retrompi("lab", "hint", "half").out
    assert "2 hints cost 0.5" in retrompi("lab", "check", "--store", where).out


def test_a_classs_page_has_the_questions_in_the_order_of_the_tasks(where: str, tmp_path: Path, retrompi: Run) -> None:
    hand_in("Ann", tmp_path / "class" / "ann", where)
    retrompi("lab", "collect", str(tmp_path / "class"), "--store", where, "-o", str(tmp_path / "class.html"))
    page = (tmp_path / "class.html").read_text()
    assert 0 < page.index(": explain</h2><p>Between two machines each of your") < page.index(": advice</h2>")
    each = student.draw(_lab.lab(LAB), "Ann").text("each")
    assert f"each: {each}" in page


def test_nothing_is_graded_before_its_prediction(tmp_path: Path, where: str, retrompi: Run) -> None:
    folder = start.start(_lab.lab(LAB), "Ann", tmp_path / "mine")
    sheet = folder / "answers.toml"
    text = "\ufeff" + sheet.read_text().replace('\nstartup = ""', '\nstartup = "9 ms"')
    sheet.write_bytes(text.replace("\n", "\r\n").encode())
    waiting = json.loads(retrompi("lab", "check", str(folder), "--store", where, "--json").out)
    told = next(t for t in waiting["tasks"] if t["task"] == "startup")
    assert told["status"] == "waiting"
    assert "empty this answer" in told["says"], "the way out without a mark is said before there is one"
    sheet.write_text(text.lstrip("\ufeff").replace('p-startup = ""', 'p-startup = "1 ms"'))
    graded = json.loads(retrompi("lab", "check", str(folder), "--store", where, "--json").out)
    tasks = {t["task"]: t for t in graded["tasks"]}
    assert tasks["startup"]["status"] == "wrong"
    assert tasks["p-startup"]["notes"] == ["sealed when the answer was there already"]
    assert "after an answer that depends on it (startup)" in tasks["p-startup"]["says"]
