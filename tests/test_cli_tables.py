"""What commands print fits the terminal, and a pipe; nothing of it is lost in JSON and CSV."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from cases import for_each

from retrompi.cli import output
from retrompi.cli.output import PIPE_WIDTH, Column, print_table
from retrompi.manual.commands import commands

ROOT = Path(__file__).resolve().parent.parent
TRACE = str(ROOT / "examples" / "traces" / "jacobi-4.tar.zst")
FEW = ("--set", "trace.sizes=1KiB", "--set", "trace.reps=2", "-j", "1")

PRINTED = {
    "pingpong": ("-m", "wmpi", "--sizes", "1,64KiB", "--reps", "2"),
    "replay": (TRACE, "-m", "wmpi", "-p", "nt-cluster"),
    "timeline": ("{run}",),
    "trace info": (TRACE,),
    "compare": ("ring", "--models", "wmpi,hpvm", "-p", "nt-cluster", "-n", "2", "-j", "1", "--", "size=1KiB", "reps=2"),
    "tornado": ("bf-wmpi-shared", "--vary", "wmpi.packet=64KiB..256KiB", *FEW),
    "break-even": ("bf-wmpi-shared", "--along", "platform.host.quantum=10ms..20ms", "--b", "model=hpvm", "--scan", "2", *FEW),
    "tolerance": ("bf-wmpi-distributed", "--add", "platform.link.latency", *FEW),
    "optimise": ("bf-wmpi-shared", "--over", "platform.host.quantum=10ms..20ms", "--trials", "2", *FEW),
    "diff": ("{run}", "{other}"),
    "runs diff": ("{run}", "{other}"),
    "sweep": ("bf-wmpi-shared", "--vary", "wmpi.packet=64KiB,128KiB", "--name", "packets", *FEW),
    "study list": (),
    "study show": ("{study}",),
    "explain": ("-m", "wmpi", "--mode", "distributed", "--size", "1KiB"),
    "fidelity": ("-m", "wmpi", "--sizes", "1KiB", "--reps", "2"),
    "startup": ("-m", "wmpi", "-p", "nt-cluster", "--starts", "2"),
    "validate": ("--paper", "krishna-2010", "-j", "1", "--all"),
    "models list": (),
    "models show": ("wmpi",),
    "platforms list": (),
    "platforms hosts": (),
    "platforms networks": (),
    "platforms show": ("myrinet-clos", "--full"),
    "scenarios generators": (),
    "scenarios list": ("--full",),
    "scenarios show": ("bf-wmpi-shared",),
    "claims list": ("--full",),
    "claims show": ("BF-SM-12a",),
    "measured import": (str(ROOT / "tests" / "data" / "measured" / "netpipe37-np.out"), "--label", "netpipe"),
    "measured list": (),
    "measured show": (str(ROOT / "tests" / "data" / "measured" / "netpipe37-np.out"),),
    "fit": (str(ROOT / "tests" / "data" / "measured" / "netpipe37-np.out"), "--name", "made", "-o", "{folder}/{width}"),
    "lab list": (),
    "lab show": ("1",),
    "course list": ("--database", "{course}"),
    "course labs": ("--database", "{course}"),
    "course grades": ("--database", "{course}"),
    "course lti list": ("--database", "{course}"),
    "course lti outbox": ("--database", "{course}"),
    "runs list": (),
    "runs show": ("{run}",),
    "paper rinf1": ("--kernels", "dyads"),
    "platforms kernels": ("ibm-sp1", "--kernel", "axpy"),
    "paper list": (),
    "paper check": ("baker-fox",),
    "lmbench": ("-p", "linux-i686"),
    "paper replicate": ("--machines", "7"),
    "why": ("halo", "ranks=4", "reps=2", "size=10000", "-m", "wmpi", "-p", "nt-cluster"),
    "explore": (TRACE, "-m", "wmpi", "-p", "nt-cluster"),
}
"""Command -> arguments with which it prints its tables."""

ELSEWHERE = {
    "reproduce": "the tables of validate", "paper reproduce": "the same command", "paper new": "a list of files",
    "run": "an MPI library", "smpi export": "a file for SimGrid, not a table", "smpi plugin": "SimGrid", "trace record": "an MPI library",
    "trace convert": "a table of losses on stderr", "trace cut": "one row", "trace merge": "one row", "trace scale": "one row",
    "study run": "as sweep", "study export": "a file", "study figure": "a file", "study pack": "a file", "study unpack": "one row",
    "study delete": "one line", "study merge": "tests/test_shards.py", "calibrate": "minutes",
    "posterior find": "minutes", "posterior check": "minutes",
    "scenarios run": "the tables of replay, pingpong and startup", "share": "seconds",
    "lab check": "needs a started lab", "lab hint": "a text", "lab start": "one row", "lab report": "a page",
    "lab slides": "a page",
    "course new": "links, each of its own", "course add": "links", "course links": "links", "course backup": "rows of tables",
    "course data": "names of files", "course remove": "ids", "course lti add": "as course lti list", "course lti remove": "one row",
    "course lti show": "needs an address",
    "course restore": "as backup", "runs tag": "one line", "runs export": "files for programs", "runs delete": "one line",
    "lab collect": "needs handed-in labs", "platforms export": "a file for SimGrid, not a table",
    "trace extrapolate": "needs recordings on several numbers of ranks",
    "crate write": "as the next two, in test_crate.py", "crate verify": "needs a crate", "crate show": "needs a crate",
    "paper nas": "half a minute", "transfer": "every model on every machine", "predict": "hundreds of runs, and one row a prediction",
}
"""Commands with --json that are not run here, and why; all of them print by the same writer."""


def test_every_command_that_prints_is_known() -> None:
    having = {w for w, c in commands().items() if any("--json" in p.opts for p in c.params if isinstance(p, click.Option))}
    assert having == {*PRINTED, *ELSEWHERE}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A store with two runs, one of which has a timeline of some size, and a study."""
    from retrompi.cli.main import run

    folder = tmp_path_factory.mktemp("tables")
    store = str(folder / "runs.db")
    assert run(["--store", store, "replay", TRACE, "-m", "wmpi", "-p", "nt-cluster", "--timeline", str(folder / "t.json")]) == 0
    assert run(["--store", store, "replay", TRACE, "-m", "hpvm", "-p", "nt-cluster"]) == 0
    assert run(["--store", store, "sweep", "bf-wmpi-shared", "--vary", "wmpi.packet=64KiB,128KiB", "--name", "packets", *FEW]) == 0
    course = str(folder / "course.db")
    people = "".join(f"u{i:03},A Student of Some Name,u{i}@example.edu\n" for i in range(5))
    (folder / "students.csv").write_text(f"student,name,email\n{people}")
    assert run(["course", "new", "MPI", "--labs", "1,2,3,4,5", "--students", str(folder / "students.csv"), "--database", course]) == 0
    return {"course": course, "store": store, "run": "1", "other": "2", "study": "packets", "folder": str(folder)}


@for_each("words", list(PRINTED))
def test_what_is_printed_fits(words: str, kept: dict[str, str], retrompi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    columns = 80
    monkeypatch.setenv("COLUMNS", str(columns))
    given = [a.format(**kept, width=columns) if "{" in a else a for a in PRINTED[words]]
    told = retrompi("--store", kept["store"], *words.split(), *given)
    assert told.code in (0, 1), told.err
    lines = told.out.splitlines()
    assert lines
    too_long = [line for line in lines if len(line) > columns and " " in line.strip()]
    assert too_long == []


def test_a_run_with_a_timeline_is_shown_in_lines_that_can_be_read(
    kept: dict[str, str], retrompi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shown = retrompi("--store", kept["store"], "runs", "show", "1").out
    assert max(map(len, shown.splitlines())) <= 100
    assert "retrompi timeline 1" in shown
    assert len(json.loads(retrompi("--store", kept["store"], "runs", "show", "1", "--json").out)[0]["fact.timeline"]) > 1000


def test_equal_hosts_are_told_once(retrompi: Callable[..., Any]) -> None:
    shown = retrompi("platforms", "show", "myrinet-clos").out
    assert "hosts n1 to n16 (16" in shown
    assert "n2." not in shown
    assert "n2:" not in shown
    assert "  clock=933 MHz" in shown
    assert len(shown.splitlines()) < 40
    full = retrompi("platforms", "show", "myrinet-clos", "--full").out
    assert "n1.clock" in full
    assert "n2." not in full
    assert len(json.loads(retrompi("platforms", "show", "myrinet-clos", "--json").out)["hosts"]) == 16


TEXT = "a sentence of several words that says why"
COLUMNS = (Column("id", "id"), Column("n", "number of all", right=True), Column("why", "why"), Column("where", "where"))


def _printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, *, cut: bool = False) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [{"id": "first", "n": 12345, "why": TEXT, "where": TEXT}, {"id": "second", "n": 6, "why": "short", "where": ""}]
    print_table(rows, COLUMNS, cut=cut)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("cut", [False, True])
def test_in_a_pipe_a_row_is_a_line(cut: bool, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": f"row-{i}", "n": i, "why": TEXT * 3, "where": TEXT * 3} for i in range(3)]
    print_table(rows, COLUMNS, cut=cut)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["row-0", "row-1", "row-2"]
    assert all(line.count(TEXT * 3) == 2 for line in lines[1:])


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_table_loses_no_word(columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _printed(capsys, monkeypatch, columns)
    assert max(map(len, lines)) <= columns
    words = " ".join(lines).split()
    assert all(words.count(word) >= 2 for word in set(TEXT.split()))
    assert "12345" in words


def test_a_list_has_a_line_for_each_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _printed(capsys, monkeypatch, 60, cut=True)
    assert [line.split()[0] for line in lines[-2:]] == ["first", "second"]
    assert "…" in lines[-2]
    assert "12345" in lines[-2]


def test_numbers_too_many_for_a_line_are_printed_in_parts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    columns = [Column("model", "model"), *(Column(str(i), f"{i} KiB", right=True) for i in range(20))]
    print_table([{"model": "wmpi", **{str(i): 10000 + i for i in range(20)}}], columns)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 60
    assert all(str(10000 + i) in out for i in range(20))
    assert out.count("wmpi") == len([part for part in out.split("\n\n") if part])


def test_the_width_is_the_terminals_or_that_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.width() == PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "132")
    assert output.width() == 132


def test_lists_of_much_are_a_summary_first(retrompi: Any) -> None:
    papers, scenarios = (retrompi(words, "list").out.splitlines() for words in ("claims", "scenarios"))
    every = json.loads(retrompi("claims", "list", "--json").out)
    rows = {line.split()[0]: line.split()[1] for line in papers[1:] if line}
    assert sum(int(n) for name, n in rows.items() if name != str(len(every))) == len(every)
    assert papers[-1].startswith(f"{len(every)} claims")
    assert len(papers) < 24
    assert len(retrompi("claims", "list", "--full").out.splitlines()) == 1 + len(every)
    names = [r["name"] for r in json.loads(retrompi("scenarios", "list", "--json").out)]
    assert all(name in " ".join(scenarios).replace(",", " ").split() for name in names)
    assert len(scenarios) < 60
    platforms = retrompi("platforms", "list").out
    known = [r["name"] for kind in ("hosts", "networks") for r in json.loads(retrompi("platforms", kind, "--json").out)]
    assert all(name in platforms.replace(",", " ").split() for name in known)
    assert len(platforms.splitlines()) < 60


def test_of_many_ranks_some_are_shown_and_full_has_all(retrompi: Any, tmp_path: Path) -> None:
    from retrompi.cli.replay import MOST_RANKS

    ranks = 2 * MOST_RANKS
    for r in range(ranks):
        (tmp_path / f"rank-{r}.txt").write_text(f"{r} init\n{r} compute {1e6 * (1 + 37 * r % ranks)}\n{r} finalize\n")
    (tmp_path / "index.txt").write_text("".join(f"rank-{r}.txt\n" for r in range(ranks)))
    words = ("replay", str(tmp_path), "-m", "craympt", "-p", f"cray-t3e*{ranks}")
    brief, full, rows = (retrompi(*words, *more).out for more in ((), ("--full",), ("--csv",)))
    assert f" of {ranks} ranks, evenly spaced" in brief
    assert len(brief.splitlines()) < MOST_RANKS + 10
    assert len(full.splitlines()) >= ranks + 2
    assert len(rows.splitlines()) == ranks + 1
    times = {int(line.split(",")[0]): float(line.split(",")[2]) for line in rows.splitlines()[1:]}
    shown = {int(line.split()[0]) for line in brief.splitlines() if line.split() and line.split()[0].isdigit()}
    assert {min(times, key=times.__getitem__), max(times, key=times.__getitem__)} <= shown
