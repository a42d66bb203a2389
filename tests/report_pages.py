"""Every kind of page that retrompi writes, each in the shortest form that has all its parts: kind -> how to write it into a folder.

The tests open those of `SHORT`; tests/axe_everything.py opens all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from retrompi.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
CURVE = ["-m", "wmpi", "--mode", "shared"]
HALO = ["halo", "ranks=4", "reps=2", "size=10000"]
JACOBI = str(ROOT / "examples/traces/jacobi-4.tar.zst")
NATIVE = ["-m", "nemesis", "-p", "abe", "--mode", "shared", "--mpi", "mpich", "--backends", "native,model", "-r", "2"]


def run(folder: Path, *words: str) -> None:
    """A command with the folder's own store; a failed claim or bound (exit code 1) is a page as well."""
    done = CliRunner().invoke(cli, [words[0], *_placed(folder, words[0]), *words[1:]], catch_exceptions=False)
    assert done.exit_code in (0, 1), done.output


def _placed(folder: Path, command: str) -> list[str]:
    return [] if command in GROUPS else ["--store", str(folder / "runs.db")]


GROUPS = ("lab", "study", "crate")
"""Commands whose option of the store is at their own commands."""


def _one(*words: str) -> Callable[[Path], Path]:
    """A page that one command writes by ``-o``."""

    def written(folder: Path) -> Path:
        page = folder / "page.html"
        run(folder, *words, "-o", str(page))
        return page

    return written


def _timeline(folder: Path) -> Path:
    run(folder, "replay", JACOBI, "-m", "wmpi", "-p", "nt-cluster", "--timeline", str(folder / "page.html"))
    return folder / "page.html"


def _two_timelines(folder: Path) -> Path:
    for model in ("wmpi", "winmpich"):
        run(folder, "replay", JACOBI, "-m", model, "-p", "nt-cluster", "--timeline", str(folder / f"{model}.html"))
    run(folder, "timeline", "1", "--versus", "2", str(folder / "both.html"))
    return folder / "both.html"


def _swept(folder: Path) -> None:
    run(folder, "sweep", "bf-wmpi-shared", "--vary", "wmpi.packet=64KiB,256KiB", "--name", "one")


def _stored(*words: str, named: str = "page.html") -> Callable[[Path], Path]:
    """A page of a stored study."""

    def written(folder: Path) -> Path:
        _swept(folder)
        out = folder / named
        run(folder, *words, "--store", str(folder / "runs.db"), "-o", str(out))
        return out if out.suffix else out / "ro-crate-preview.html"

    return written


def _paper(key: str, *words: str) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        run(folder, "reproduce", key, *words, "-o", str(folder))
        return folder / ("index.html" if key == "all" else f"{key}.html")

    return written


def _crate_of_a_paper(folder: Path) -> Path:
    run(folder, "crate", "write", "gropp-lusk-1994", "--store", str(folder / "runs.db"), "-o", str(folder / "crate"))
    return folder / "crate" / "ro-crate-preview.html"


def _handed_in(folder: Path, who: str) -> Path:
    from retrompi.labs import lab, start, student
    from retrompi.labs.bench import Bench
    from retrompi.store import open_store

    found, place = lab.lab("1"), folder / "class" / who
    start.start(found, who, place)
    bench = Bench(open_store(str(folder / "runs.db")), place)
    (start.solve if who == "ann" else start.spoil)(found, place, student.draw(found, who), bench, who)
    run(folder, "lab", "check", str(place), "--store", str(folder / "runs.db"))
    return place


def _lab(folder: Path) -> Path:
    place = _handed_in(folder, "ann")
    run(folder, "lab", "report", str(place), "--store", str(folder / "runs.db"), "-o", str(folder / "page.html"))
    return folder / "page.html"


def _class(folder: Path) -> Path:
    for who in ("ann", "bob"):
        _handed_in(folder, who)
    run(folder, "lab", "collect", str(folder / "class"), "--store", str(folder / "runs.db"), "-o", str(folder / "page.html"))
    return folder / "page.html"


SHORT: dict[str, Callable[[Path], Path]] = {
    "curve": _one("pingpong", *CURVE, "--sizes", "0,1KiB,64KiB"),
    "message": _one("explain", *CURVE, "--size", "1KiB"),
    "timeline": _timeline,
    "why": _one("why", *HALO, "--a", "model=wmpi", "--b", "model=winmpich"),
    "study": _stored("study", "show", "one"),
    "study figure": _stored("study", "figure", "one"),
    "paper": _paper("gropp-lusk-1994"),
    "crate of a paper": _crate_of_a_paper,
    "lab report": _lab,
    "class": _class,
}
"""Kinds that are written in seconds."""

LONG: dict[str, Callable[[Path], Path]] = {
    "curve with bands": _one("pingpong", *CURVE, "--sizes", "0,1KiB,64KiB", "--uncertainty", "90%", "--draws", "5"),
    "message with intervals": _one("explain", *CURVE, "--size", "1KiB", "--uncertainty", "90%", "--draws", "5"),
    "crate of a study": _stored("crate", "write", "one", named="crate"),
    "two timelines": _two_timelines,
    "comparison": _one("compare", str(ROOT / "examples/pingpong.c"), *NATIVE),
    "suite": _one("compare", "--suite", "--only", "barrier", "--only", "sort", *NATIVE, "--within", "1%"),
    "paper with draws": _paper("gropp-lusk-1994", "--uncertainty", "90%", "--draws", "3"),
    "all papers": _paper("all"),
}
"""The others: they take minutes, or an MPI of this machine. Beside "all papers" lie the pages of each."""
