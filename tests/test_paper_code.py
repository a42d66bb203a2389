"""Code in a paper's folder: what the papers of the package do with theirs, a paper anywhere does with its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import agrees, refused

from retrompi.base import paths, untrusted
from retrompi.base.errors import InputError, UsageError
from retrompi.papers import experiments
from retrompi.papers.fit import calibrate, kernel_rates
from retrompi.papers.reproduce import coverage, inspection
from retrompi.papers.reproduce.agreement import _kinds
from retrompi.papers.statements import own_code, scaffold
from retrompi.papers.statements.claims import papers
from retrompi.papers.statements.paper import find_paper, kinds_of_experiment, working_with
from retrompi.spec import registry

TRIPS = '''"""How often a message goes and comes back in a second."""

from retrompi.papers.experiments import Done, Job, Look
from retrompi.papers.fit.kernel_rates import KernelComparison
from retrompi.spec.question import Question, pingpong
from retrompi.store.lookup import answer

from . import _rate

SLOW = True
FACTS = {"trips": "round trips"}


def jobs(plan, store, fresh):
    """Option ``size``, bytes."""

    def measure():
        got = answer(store, Question(plan.models[0], plan.platform, pingpong([plan.options("trips")["size"]], 3)), fresh=fresh)
        rows = [{**row, "model": plan.models[0], "platform": plan.platform, "mode": "trip"} for row in got.rows]
        facts = {"rate": _rate.of(rows[0]["time_us"]), "least": 1.0, "rows": [{"size": 8, "rate": 1.0}, {"size": 16, "rate": 2.0}]}
        return Done("trips", facts, (got.run_id,), int(not got.found))

    return [Job("trips", measure)]


def looks(model, platform):
    def seen(question):
        return [], {"trips": {"rate": 5000.0, "least": 1.0}}

    return [Look("trips", Question(model, platform, pingpong([0], 1)), seen)]


def kernels():
    yield KernelComparison("EX-9", "mine", "host", "loop", 8, 2.0, 1.0, "memory")
'''
COMMAND = '''"""The number of the experiment alone."""
import click

from retrompi.cli.bundle import options
from retrompi.cli.output import Column, Output
from retrompi.papers.statements import own_code

from ..experiments import _rate


@click.command()
@click.argument("times", type=float)
@options(output=Output)
def command(times, output):
    """Print the rate of a time in microseconds."""
    output.emit([{"rate": _rate.of(times)}], (Column("rate", "rate"),))
    return 1 if times > 1000 else 0
'''
CLAIM = 'EX-3,sockets,two Pentium Pro,8 bytes,round trips,more than one a second,-,,,trend,validate,p. 3,"an example, made up"\n'


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A paper elsewhere with an experiment, a command, a claim on its fact, a table, a figure and an anomaly of its own."""
    folder = tmp_path / "mine"
    scaffold.create(folder)
    for name, text in {"experiments/trips.py": TRIPS, "experiments/_rate.py": "def of(us):\n    return 1e6 / (2 * us)\n",
                       "commands/rate.py": COMMAND}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    plan = (folder / "paper.toml").read_text(encoding="utf-8").replace('experiments = ["pingpong"]', 'experiments = ["pingpong", "trips"]')
    more = {
        "trips": "[trips]\nsize = 8\n",
        "table": '[[table]]\nname = "trips"\ntitle = "Trips by size"\nfacts = "trips.rows"\n'
                 'columns = [["size", "size"], ["rate", "rate"]]\n',
        "figure": '[[figure]]\nname = "trips"\ntitle = "Trips drawn"\nfacts = "trips.rows"\n'
                  'x = "size"\nx_title = "bytes"\ny_title = "1/s"\ny = [["rate", "trips"]]\n',
        "why": '[[why]]\ntitle = "A slow trip"\nmodel = "sockets"\nmode = "distributed"\nclaims = ["EX-3"]\nmechanism = "system calls"\n'
               'text = "every trip has two"\n',
    }
    (folder / "paper.toml").write_text(plan + "\n" + "\n".join(more.values()), encoding="utf-8")
    with (folder / "checks.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[EX-3]]\nkind = "compare"\nrelation = "a > b"\npaths = { a = "trips.rate", b = "trips.least" }\n')
    with (folder / "claims.csv").open("a", encoding="utf-8") as file:
        file.write(CLAIM)
    return folder


# --- what a paper of the package does, a paper elsewhere does ---


def test_an_experiment_gives_facts_verdicts_a_table_a_figure_and_a_page(mine: Path, retrompi: Any, tmp_path: Path) -> None:
    assert list(map(str, inspection.inspect(str(mine)).problems)) == []
    store = str(tmp_path / "runs.db")
    done = retrompi("paper", "reproduce", str(mine), "-o", str(tmp_path / "report"), "--store", store, "--json")
    assert (done.code, {r["id"]: r["verdict"] for r in json.loads(done.out)}["EX-3"]) == (0, "pass")
    page = (tmp_path / "report" / "mine.html").read_text(encoding="utf-8")
    for text in ("EX-3", "Trips by size", "Trips drawn", "A slow trip", "every trip has two", 'href="#EX-3"'):
        assert text in page, text
    assert (tmp_path / "report" / "mine-table-trips.csv").is_file()
    assert "0 simulated" in retrompi("paper", "reproduce", str(mine), "-o", str(tmp_path / "report"), "--store", store).out


def test_a_command_runs_with_its_options_and_its_exit_code(mine: Path, retrompi: Any) -> None:
    done = retrompi("paper", "run", str(mine), "rate", "100", "--json")
    assert (done.code, json.loads(done.out)) == (0, [{"rate": 5000.0}])
    assert retrompi("paper", "run", str(mine), "rate", "2000", "--csv").code == 1
    assert "Print the rate of a time" in retrompi("paper", "run", str(mine), "rate", "--help").out
    agrees(retrompi("paper", "run", str(mine), "rat", "1"), "unknown-name | 'rat' | 'rate'")
    assert retrompi("paper", "run", str(mine), "rate", "many").code == 2


def test_a_command_of_the_package_is_found_both_ways(retrompi: Any) -> None:
    arguments = ("--machines", "3", "--link-rate", "100MB/s", "--disk", "40MB/s", "--csv")
    by_name, by_paper = retrompi("paper", "replicate", *arguments), retrompi("paper", "run", "lefevre-westrelin", "replicate", *arguments)
    assert by_name.out == by_paper.out != ""


def test_a_model_is_measured_by_an_experiment_of_a_paper_at_hand(mine: Path) -> None:
    with refused(InputError, "broken-model | 'trips'"):
        calibrate.looks_of(type("Cls", (registry.model("sockets"),), {"name": "sockets", "measured_by": "trips"}), "sockets", "nt-pair")
    with working_with(str(mine)):
        (look,) = experiments.looks("trips", "sockets", "nt-pair")
        assert look.with_([])[1]["trips"]["rate"] == 5000


def test_draws_kernels_and_coverage_hear_of_it(mine: Path) -> None:
    with working_with(str(mine)) as (plan,):
        assert [_kinds(plan, number) for number in (0, 99)] == [["pingpong", "trips", "curves"], ["pingpong", "curves"]]
        assert "EX-9" in [row.id for row in kernel_rates.judge_kernels()]
        assert coverage._what("EX-3", coverage._subjects()) == "round trips"
    assert "EX-9" not in [row.id for row in kernel_rates.judge_kernels()]


@for_each("key", papers())
def test_slow_experiments_and_those_that_nothing_is_judged_by_say_so(key: str) -> None:
    plan = find_paper(key)
    first, later = (set(_kinds(plan, number)) for number in (0, 99))
    slow = {"suite", "function", "nas", "replication", "multitask"}
    used = {*plan.experiments, *(["curves"] if plan.curves else [])}
    assert first == used - {"anatomy", "fidelity"}
    assert later == first - slow


# --- what is wrong with it ---


@for_each(
    "old, new, wanted",
    [
        ("def jobs", "def job", "broken-code | jobs | trips.py"),
        ("    def measure():", "    def measure(:", "broken-code | trips.py:17"),
        ("from . import _rate", "from . import _rates", "broken-code | _rates | trips.py:8"),
        ('_rate.of(rows[0]["time_us"])', "1 / 0", "broken-code | ZeroDivisionError | trips.py:20"),
        ('["size"]', '["sice"]', "bad-value | 'sice'"),
    ],
)
def test_wrong_code_is_one_line_with_its_place(old: str, new: str, wanted: str, mine: Path, retrompi: Any, tmp_path: Path) -> None:
    assert old in TRIPS
    (mine / "experiments" / "trips.py").write_text(TRIPS.replace(old, new), encoding="utf-8")
    done = retrompi("paper", "reproduce", str(mine), "-o", str(tmp_path / "report"), "--store", str(tmp_path / "runs.db"))
    assert done.code == 2
    agrees(done, wanted)


def test_code_that_changed_is_read_again(mine: Path) -> None:
    assert own_code.module(mine, "experiments", "_rate").of(1) == 500_000
    (mine / "experiments" / "_rate.py").write_text("def of(us):\n    return 12.5\n", encoding="utf-8")
    assert own_code.module(mine, "experiments", "_rate").of(1) == 12.5


def test_an_experiment_of_the_package_is_not_replaced(mine: Path) -> None:
    shutil.copy(mine / "experiments" / "trips.py", mine / "experiments" / "pingpong.py")
    (problem,) = inspection.inspect(str(mine)).problems
    agrees(problem, "duplicate-name | 'pingpong'")


def test_code_of_a_packed_paper_does_not_run_before_it_is_trusted(mine: Path, retrompi: Any) -> None:
    untrusted.mark(mine, "somewhere")
    agrees(retrompi("paper", "run", str(mine), "rate", "1"), "untrusted-code | UNTRUSTED")
    untrusted.trust(mine)
    assert retrompi("paper", "run", str(mine), "rate", "1").code == 0


def test_an_unknown_one_is_refused_with_the_nearest() -> None:
    folder = paths.papers_dir() / "krishna-2010"
    with refused(UsageError, "unknown-name | 'nemesiss' | 'nemesis'"):
        experiments.module("nemesiss", folder)
    assert "nemesis" in kinds_of_experiment(folder)
    assert "nemesis" not in kinds_of_experiment()


def test_papers_in_the_package_use_no_other_way() -> None:
    """Each code file of a paper is one that `own_code` finds, or is shared by those."""
    files = [f.relative_to(paths.papers_dir()) for f in paths.papers_dir().rglob("*.py")]
    assert files
    for file in files:
        key, what, name = file.parts
        assert name.startswith("_") or name.removesuffix(".py") in own_code.names(paths.papers_dir() / key, what), file
