"""What several tests share: a store of one's own, the command line in-process, and an engine that need not be built.

No test touches the user's store or depends on the user's environment.
"""

from __future__ import annotations

import csv
import functools
import importlib
import os
import random
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from postgres import Server

from retrompi.base import paths

# Tests are collected before a fixture is set up, and the registry finds a user's own models: not here.
os.environ["XDG_DATA_HOME"] = os.fspath(Path(__file__).resolve().parent / "no-such-folder")
# Labs speak the language of the terminal: here English, whatever that is.
os.environ["LANGUAGE"] = "en"

# A busy machine is no failure, and several tests run at once.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# Who starts the tests in the background without job control has SIGINT ignored in all that they start; then no Ctrl-C could be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _tell_what_was_skipped(terminalreporter: Any) -> None:
    """One line a reason."""
    reports = [r for kind in ("skipped", "") for r in terminalreporter.stats.get(kind, []) if getattr(r, "skipped", False)]
    reasons = Counter(r.longrepr[2].removeprefix("Skipped: ") for r in reports if isinstance(r.longrepr, tuple))
    if reasons:
        terminalreporter.section("skipped, and why")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:5d}  {reason}")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    _tell_what_was_skipped(terminalreporter)
    seed = os.environ["RETROMPI_SEED"]
    terminalreporter.write_line(f"seed of the generated programs: {seed} (RETROMPI_SEED={seed} makes the same)")


# -- who runs what under pytest-xdist (tests/README.md) ------------------------------------------------------------------------

APART = {"test_docs_commands", "test_every_trace", "test_collective_flow", "test_resume"}
"""Files whose long tests have no expensive fixture in common: their tests are shared out one by one, those of other files stay together."""
TOGETHER = {
    **dict.fromkeys(("test_compare", "test_examples", "test_lab_program", "test_record", "test_run", "test_this_machine"), "mpi"),
    **dict.fromkeys(("test_studio_browser", "test_study_show", "test_studio_hostile"), "browser"),
}
"""Files that share a group: programs that want the cores for themselves must not run beside each other, nor two browsers."""
DURATIONS = Path(__file__).with_name("durations.csv")


def _unit(nodeid: str) -> str:
    """What is run by one worker: a group of files, a file, or a test."""
    name = nodeid.partition("/")[2]
    file = name.partition(".")[0]
    return name if file in APART else TOGETHER.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``--dist loadfile`` deals out units instead of files."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    return Units(config, log)


LONG = Path(__file__).with_name("long.csv")


def long_tests() -> list[dict[str, str]]:
    """Rows of `LONG`: ``tests``, a file, ``file::function`` or one with its ``[case]``; ``kind`` (tests/README.md)."""
    with LONG.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _wanted(config: pytest.Config) -> set[str]:
    """The levels that are asked for."""
    if config.option.exhaustive or config.option.long:
        return {"exhaustive" if config.option.exhaustive else "long"}
    return {"short", "long"} if _named(config) else {"short"}


def _named(config: pytest.Config) -> bool:
    """Whether files or tests were named: who does wants them whole. A worker of pytest-xdist is told by the process that started it."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["named"])
    return config.args_source == pytest.Config.ArgsSource.ARGS or bool(config.option.keyword)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist."""
    node.workerinput["named"] = _named(node.config)


def _level(item: pytest.Item, long: list[str]) -> str:
    """Who runs it: ``short`` `make test`, ``long`` `make test-long`, ``exhaustive`` `make exhaustive`."""
    # A whole site is built for them; the other MPI is installed by `make exhaustive`.
    other = "site" in getattr(item, "fixturenames", ()) or "openmpi" in getattr(getattr(item, "callspec", None), "params", {}).values()
    if other or item.get_closest_marker("exhaustive"):
        return "exhaustive"
    name = item.nodeid.removeprefix("tests/").replace(".py::", "::", 1)
    return "long" if any(name == part or name.startswith((f"{part}::", f"{part}[")) for part in long) else "short"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of one level. Under pytest-xdist the longest units begin, by the durations of a run before."""
    long = [row["tests"] for row in long_tests()]
    levels = {item: _level(item, long) for item in items}
    chosen = {item for item, level in levels.items() if level in _wanted(config)}
    if config.option.exhaustive:
        chosen |= {item for item in items if item.get_closest_marker("sampled")}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    with DURATIONS.open(newline="", encoding="utf-8") as handle:
        seconds = {row["unit"]: float(row["seconds"]) for row in csv.DictReader(handle)}
    items.sort(key=lambda item: -seconds.get(_unit(item.nodeid), 0.0))


class _Durations:
    """Writes `DURATIONS` anew (``--durations-file``, with pytest-xdist): seconds of every unit that took half a second or more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[_unit(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        with self.path.open("w", newline="", encoding="utf-8") as out:
            rows = csv.writer(out, lineterminator="\n")
            rows.writerow(["unit", "seconds"])
            rows.writerows((unit, f"{seconds:.1f}") for unit, seconds in self.seconds.most_common() if seconds >= 0.5)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-file", type=Path, help="write how long each group took, for the order of the next run")
    parser.addoption("--exhaustive", action="store_true", help="run what takes minutes, and all cases of what is sampled; nothing else")
    parser.addoption("--long", action="store_true", help="run what long.csv names; nothing else")
    parser.addoption("--case", default="", help="of tests that loop over cases (cases.py): only those whose values contain this text")


def _choose_seed(config: pytest.Config) -> None:
    """Of the generated programs: a new one, or with ``--last-failed`` that of the run before. A worker of pytest-xdist inherits it."""
    cache = getattr(config, "cache", None)
    before = cache.get("retrompi/seed", None) if cache is not None and config.option.lf else None
    seed = os.environ.setdefault("RETROMPI_SEED", before or str(random.SystemRandom().getrandbits(32)))
    if cache is not None and not hasattr(config, "workerinput"):
        cache.set("retrompi/seed", seed)


def pytest_configure(config: pytest.Config) -> None:
    _choose_seed(config)
    path = config.getoption("--durations-file")
    if path is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(_Durations(path))


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RETROMPI_STORE", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A script of validate/predictions/applications, by its name."""
    monkeypatch.syspath_prepend(paths.validate_dir() / "predictions/applications")
    return importlib.import_module


@pytest.fixture
def predicted(application: Callable[[str], Any]) -> Callable[[Path], dict[str, dict[str, str]]]:
    """The rows of a table of such a script, by their ids."""
    return lambda file: {row["id"]: row for row in application("_common").read(file)}


def need(*tools: str) -> None:
    """Skip, with the reason, where one of the tools is missing."""
    missing = [t for t in tools if shutil.which(t) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of one's own to be in."""
    monkeypatch.chdir(tmp_path)


COMPILED = ("code", "machine", "online", "programs", "record", "smpi")
"""Folders of the cache with what compilers make: recorder, timer, plug-in, programs."""


@pytest.fixture(scope="session")
def cache_folder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache, one for all processes of a run. What is compiled is kept for the next run, since the name of each file is a digest of
    all that it is made of; what is recorded is not: whether it is recorded anew is what tests look at."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "cache"
    if pytestconfig.pluginmanager.has_plugin("cacheprovider"):
        (folder / "retrompi").mkdir(parents=True, exist_ok=True)
        for name in COMPILED:
            kept = pytestconfig.cache.mkdir(f"compiled-{name}")  # type: ignore[union-attr]
            with suppress(FileExistsError):  # another process of the run was first
                (folder / "retrompi" / name).symlink_to(kept, target_is_directory=True)
    return folder


@pytest.fixture
def open_mpi_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI may run as root and on few cores."""
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(name, "1")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of the session's own; skips, with the reason, where one cannot be had."""
    server = Server()
    yield server
    server.close()


@dataclass(frozen=True)
class Outcome:
    """What a command line ended with. ``error``: the code of the error that ended it (docs/errors.md), "" where none did."""

    code: int
    out: str
    err: str
    error: str = ""


STRICT = {"test_needs", "test_own_platform", "test_docs_commands", "test_scenario", "test_papers", "test_predictions", "test_transfer",
          "test_matrix_of_runtimes", "test_judged", "test_notebooks", "test_labs", "test_nas", "test_recipes", "test_lmbench",
          "test_what_ifs"}
"""Files whose questions must be about pairs of model and platform that can have been, as those of users."""


@pytest.fixture(autouse=True)
def _fictions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of the engine run every model on small platforms that it never ran on; processes of their own refuse these as ever."""
    from retrompi.spec.runtime import possible

    if request.module.__name__ not in STRICT:
        monkeypatch.setattr(possible, "check", lambda model, platform: None)


@pytest.fixture
def retrompi(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command line in this process: ``retrompi("models", "list").code``."""
    from retrompi.cli.main import run

    def call(*args: str) -> Outcome:
        errors: list[Exception] = []
        code = run(list(args), errors.append)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Outcome(code, out, err, getattr(errors[0], "code", type(errors[0]).__name__) if errors else "")

    return call


@dataclass
class Watched:
    """The engine, with every simulation counted, and failing on demand."""

    calls: list[str] = field(default_factory=list)
    fails: Exception | None = None


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Watch `retrompi.sim.simulate.run`, through which everything that simulates goes."""
    from retrompi.sim import simulate

    watched, real = Watched(), simulate.run

    def run(question: Any, *arguments: Any, **options: Any) -> Any:
        watched.calls.append(getattr(question, "question", question).model)
        if watched.fails is not None:
            raise watched.fails
        return real(question, *arguments, **options)

    monkeypatch.setattr(simulate, "run", run)
    return watched


TOY_MODEL = '''
"""A model small enough to read in a test."""

from retrompi.spec.channels import Library, Path
from retrompi.spec.media import BLOCK, Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, RuntimeModel


class Toy(RuntimeModel):
    name = "toy"
    title = "Toy MPI"
    version = "1.0"
    years = "1997"
    summary = "a runtime that tests use"
    packet = Param("16 KiB", "B", "largest packet", source="assumed: for tests", low="1 KiB", high="64 KiB")
    call = Param("10 us", "s", "cost of a call", source="fit:fit.toml", on="nt-pair:server", cost="work", low="5 us", high="50 us")
    wait = Param("block", "choice", "how a receiver waits", source="assumed: for tests", choices=("block", "spin"))

    def calls(self, p, layout):
        wait = WaitPolicy("spin", poll_cost=1e-6) if p.wait == "spin" else BLOCK
        return Library(p.call, p.call, wait, wait)

    def within_host(self, p, layout):
        return Path([Ring(("rank", "rank"), packet=p.packet, header=32, slots=4)])

    def between_hosts(self, p, layout):
        return Path([Stream(("rank", "rank"), packet=p.packet, header=32, call=1e-4)])


class Spinning(Toy):
    name = "toy:spinning"
    variant_note = "the receiver spins"
    wait = Param("spin", "choice", "how a receiver waits", source="assumed: the rival", choices=("block", "spin"))
'''


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The folder of a model of the user's own."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "__init__.py").write_text(TOY_MODEL)
    return folder


@pytest.fixture
def store_path(tmp_path: Path) -> Iterator[Path]:
    """Where a test may make a store."""
    path = tmp_path / "store" / "runs.db"
    yield path
    for folder in (path.parent, path.parent.parent):  # a test may have taken the write bits away
        if folder.exists():
            os.chmod(folder, 0o755)


REFERENCE_ID = re.compile(
    r"\b(?:BF-[A-Z]+-\d+[a-zA-Z]?|E-[A-Z0-9]+-\d+|KB-\d+|HW-T\d-[A-Za-z_]*[A-Za-z]|HW-\d+|LW-R-\d+|LW-NAS-\w+-\w+-[TS]|LW-\d+|(?:LM96|TC02F?|NP96|TG04F?|GL94F?|GE98|MT94|SRC)-\d+)\b"
)


@functools.cache
def reference_ids() -> frozenset[str]:
    """Every identifier of the papers' claims, hardware.csv and period/evidence.csv."""
    ids: set[str] = set()
    tables = [paths.reference_dir() / name for name in ("hardware.csv", "period/evidence.csv")]
    for path in [*tables, *paths.papers_dir().glob("*/claims.csv")]:
        with path.open(newline="", encoding="utf-8") as handle:
            ids |= {row["id"] for row in csv.DictReader(handle)}
    return frozenset(ids)


def cited_ids(text: str) -> set[str]:
    """Every reference identifier that ``text`` mentions."""
    return set(REFERENCE_ID.findall(text))
