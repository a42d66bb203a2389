"""The Python interface: its names, their help, their promise, and that it asks what the commands ask."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import refused

import retrompi
from retrompi.cli import functions
from retrompi.cli.main import COMMANDS
from retrompi.spec import model

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "retrompi" / "__init__.py"
SIGNATURES = Path(__file__).parent / "data" / "api.json"
OURS = [n for n in retrompi.__all__ if getattr(getattr(retrompi, n), "__module__", "").startswith("retrompi.api")]
FUNCTIONS = [n for n in OURS if inspect.isfunction(getattr(retrompi, n))]
CLASSES = [n for n in OURS if inspect.isclass(getattr(retrompi, n))]
UNITS = (" s", "(s)", "(s,", "µs", "B/s", "bytes", "time_s", "unit", "hosts", "seconds")


def _members(cls: type) -> list[str]:
    return sorted(n for n, _ in inspect.getmembers(cls) if not n.startswith("_"))


def _promised() -> dict[str, Any]:
    """Name -> parameters of a function, members of a class."""
    told: dict[str, Any] = {n: [str(p) for p in inspect.signature(getattr(retrompi, n)).parameters.values()] for n in FUNCTIONS}
    told |= {n: _members(getattr(retrompi, n)) for n in CLASSES if n != "Options"}
    told["Options"] = sorted(retrompi.Options.__annotations__)
    return told


def test_the_names_are_those_that_type_checkers_see() -> None:
    stub = ast.parse((ROOT / "src" / "retrompi" / "__init__.pyi").read_text(encoding="utf-8"))
    told = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(retrompi.__all__) == {"__version__", *told} <= set(dir(retrompi))
    assert {*FUNCTIONS, *CLASSES} == set(OURS)
    with pytest.raises(AttributeError, match="no attribute 'pingpongs'"):
        _ = retrompi.pingpongs  # type: ignore[attr-defined]


def test_its_page_has_every_name() -> None:
    """docs/python.md; the built site is looked at by tests/test_docs_site.py (`make exhaustive`)."""
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: (\S+)$", page, re.M))
    places = (getattr(retrompi, name) for name in retrompi.__all__ if name != "__version__")
    assert named == {f"{it.__module__}.{it.__qualname__}" for it in places}


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import retrompi, sys; print([m for m in ('numpy', 'sqlalchemy', 'plotly', 'pandas', 'retrompi.api.runs') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@for_each("name", OURS)
def test_its_help_has_an_example_which_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "store.db"))
    monkeypatch.chdir(ROOT)
    it = getattr(retrompi, name)
    examples = doctest.DocTestFinder(recurse=False).find(it, name, globs={"retrompi": retrompi})[0]
    assert examples.examples
    assert "retrompi." in "".join(e.source for e in examples.examples)
    waits = any("await " in e.source for e in examples.examples)
    if not waits:  # test_it_is_asked_without_blocking_a_loop does
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0


@for_each("name", [n for n in OURS if not n.startswith("list_")])  # names have no unit
def test_its_help_has_units(name: str) -> None:
    it = getattr(retrompi, name)
    told = [inspect.getdoc(it) or ""] + [inspect.getdoc(getattr(it, m)) or "" for m in _members(it) if inspect.isclass(it)]
    if name == "Options":
        told.append(inspect.getsource(it))
    assert any(unit in text for text in told for unit in UNITS)


@for_each("name", CLASSES)
def test_every_member_has_help(name: str) -> None:
    cls = getattr(retrompi, name)
    assert inspect.getdoc(cls)
    for member in () if name == "Options" else _members(cls):
        found = inspect.getattr_static(cls, member)
        if isinstance(found, property) or callable(found):
            assert inspect.getdoc(getattr(cls, member)), f"{name}.{member}"


def test_what_was_promised_is_there() -> None:
    """Rewrite the file for a release: python tests/test_api.py."""
    now = _promised()
    for name, before in json.loads(SIGNATURES.read_text(encoding="utf-8")).items():
        assert name in now, f"{name} is gone"
        missing = [p for p in before if p not in now[name]]
        assert not missing, f"{name} lacks {missing}"


def test_it_asks_what_the_command_asks(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    import retrompi as package

    store = tmp_path / "store.db"
    curve = package.pingpong("wmpi", mode="shared", sizes="1KiB,2KiB", reps=3, set={"wmpi.pool": "2 MiB"}, store=store)
    told = retrompi("pingpong", "-m", "wmpi", "--mode", "shared", "--sizes", "1KiB,2KiB", "--reps", "3", "--set", "wmpi.pool=2MiB",
                            "--store", str(store), "--json")
    assert [r["time_us"] for r in json.loads(told.out)] == [r["time_us"] for r in curve.rows]
    assert curve.question.model == "wmpi"
    assert curve.row["id"] == curve.run_id


def test_a_curve(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    curve = retrompi.pingpong("wmpi", mode="shared", sizes=[1024, "2 KiB"], reps=3, store=tmp_path / "s.db")
    assert isinstance(curve.frame, pandas.DataFrame)
    assert list(curve.frame["size_B"]) == [1024, 2048]
    assert curve.time(1024) == curve.rows[0]["time_us"] * 1e-6
    assert curve.bandwidth("1 KiB") == pytest.approx(1024 / curve.time(1024))
    assert len(curve.plot("time").data) >= 1
    assert "<table>" in curve._repr_html_()
    assert "wmpi on nt-pair, shared" in repr(curve)
    with refused(retrompi.UsageError, "bad-size | 4 KiB was not simulated; sizes: 1 KiB, 2 KiB"):
        curve.time("4 KiB")
    with refused(retrompi.UsageError, "not-run-yet | no draws"):
        curve.interval(1024)
    with refused(retrompi.UsageError, "unknown-name | no option 'mood'; did you mean 'mode'?"):
        retrompi.pingpong("wmpi", mood="shared")  # type: ignore[call-arg]


def test_the_values_of_a_model_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(cls: Any, sets: Any) -> Any:
        made.append(cls.name)
        return make(cls, sets)

    make = model.model_values
    monkeypatch.setattr(model, "model_values", counted)
    curve = retrompi.pingpong("wmpi", "nt-pair*4", mode="distributed", sizes="64KiB", reps=2, store=tmp_path / "s.db")
    assert curve.warnings[0].mark == "platform nt-pair*4"
    assert len(curve.rows) == 1
    assert made == ["wmpi"]


def test_the_command_makes_the_values_once_too_and_nothing_reads_back_the_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retrompi: Callable[..., Any]
) -> None:
    import retrompi as package
    from retrompi.sim import simulate
    from retrompi.store.database import Store

    counted: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def call(*args: Any, **given: Any) -> Any:
            counted[name] += 1
            return function(*args, **given)

        monkeypatch.setattr(owner, name, call)

    for owner, name in ((model, "model_values"), (simulate, "compile_runtime"), (Store, "find_run"), (Store, "points")):
        count(owner, name)
    store = str(tmp_path / "s.db")
    told = retrompi("pingpong", "-m", "wmpi", "--mode", "shared", "--sizes", "64KiB", "--reps", "2", "--store", store, "--json")
    assert dict(counted) == {"model_values": 1, "compile_runtime": 1, "find_run": 1}
    curve = package.pingpong("wmpi", mode="shared", sizes="64KiB", reps=2, store=store)
    assert [row["time_us"] for row in curve.rows] == [row["time_us"] for row in json.loads(told.out)]
    assert dict(counted) == {"model_values": 2, "compile_runtime": 1, "find_run": 2, "points": 1}  # found: read once, not simulated


def test_a_message_sums_exactly(tmp_path: Path) -> None:
    told = retrompi.message("wmpi", size="64 KiB", mode="shared", store=tmp_path / "s.db")
    assert sum(r["ps"] for r in told.rows) == round(told.total * 1e12)
    assert told.size == 65536
    assert len(told.plot().data) >= 1


def test_a_job_that_does_not_complete_is_a_result(tmp_path: Path) -> None:
    run = retrompi.replay("examples/traces/jacobi-4.tar.zst", "winmpich", "nt-cluster", kills=["proxy on n2@0.1s"], store=tmp_path / "s.db")
    assert run.outcome == "deadlock"
    assert run.diagnosis()


def test_it_is_asked_without_blocking_a_loop(tmp_path: Path) -> None:
    async def both() -> list[float]:
        what = {"mode": "shared", "sizes": "1KiB", "reps": 2}
        asked = (retrompi.in_background(retrompi.pingpong, m, **what, store=tmp_path / f"{m}.db") for m in ("wmpi", "hpvm"))
        return [c.time("1KiB") for c in await asyncio.gather(*asked)]

    assert len(set(asyncio.run(both()))) == 2


def test_what_is_cancelled_ends(tmp_path: Path) -> None:
    """A simulation of minutes is killed, draws end after the run under way, and the next question is answered."""
    ticks = 0
    calls: list[int] = []

    async def one() -> float:
        nonlocal ticks
        # What happens at a given time is not simulated by repetition: this run takes minutes.
        down = {"failures": ["link server@9999s..10000s"], "store": tmp_path / "a.db"}
        asked = retrompi.in_background(retrompi.pingpong, "wmpi", mode="distributed", sizes="1MiB", reps=100_000, **down)
        task = asyncio.create_task(asked)
        while ticks < 5:
            await asyncio.sleep(0.05)
            ticks += 1
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        curve = await retrompi.in_background(retrompi.pingpong, "wmpi", mode="shared", sizes="1KiB", reps=2, store=tmp_path / "b.db")
        drawing = asyncio.create_task(retrompi.in_background(curve.uncertainty, 0.9, 40, lambda done, *_: calls.append(done)))
        while not calls:
            await asyncio.sleep(0.01)
        drawing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await drawing
        again = await retrompi.in_background(retrompi.pingpong, "wmpi", mode="shared", sizes="2KiB", reps=2, store=tmp_path / "b.db")
        return again.time("2 KiB")

    assert asyncio.run(one()) > 0
    seen = len(calls)
    time.sleep(0.2)
    assert len(calls) == seen < 40


def test_progress_is_a_bar_or_a_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    told: list[tuple[int, int]] = []
    axes = {"wmpi.pool": ["1 MiB", "2 MiB"]}
    given = {"set": {"trace.sizes": "1KiB", "trace.reps": 2}, "store": tmp_path / "s.db", "jobs": 1, "fresh": True}
    study = retrompi.sweep("bf-wmpi-shared", axes, **given, progress=lambda done, total, what: told.append((done, total)))
    assert told[-1] == (2, 2)
    assert len(study) == 2
    retrompi.sweep("bf-wmpi-shared", axes, **given, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_what_is_drawn_has_intervals(tmp_path: Path) -> None:
    stages = retrompi.message("wmpi", size="1 KiB", mode="shared", store=tmp_path / "s.db").uncertainty(draws=4)
    assert stages.whole["seconds_low"] <= stages.interval().median <= stages.whole["seconds_high"]
    assert {"seconds_low", "seconds_high"} <= set(stages.columns)
    run = retrompi.replay("examples/traces/jacobi-4.tar.zst", "wmpi", "nt-cluster", store=tmp_path / "s.db").uncertainty(draws=3)
    assert all(r["time_s_low"] <= r["time_s_high"] for r in run.rows)
    assert run.interval("time").completed == 1


BESIDE = "Each command beside its function (tests/test_api.py writes this table):\n\n"


def _with_table(text: str) -> str:
    """The package's docstring with the table of commands and functions of today."""
    return re.sub(re.escape(BESIDE) + r".*?(?=\"\"\")", lambda _: BESIDE + functions.table() + "\n", text, count=1, flags=re.DOTALL)


def test_each_command_stands_beside_its_function_or_says_why_there_is_none() -> None:
    """Rewrite the table: python tests/test_api.py."""
    assert {*functions.FUNCTIONS, *functions.ALONE} == set(COMMANDS)
    assert not {*functions.FUNCTIONS} & {*functions.ALONE}
    for name in (n for names in functions.FUNCTIONS.values() for n in names):
        found: Any = retrompi
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found), name
    text = PACKAGE.read_text(encoding="utf-8")
    assert BESIDE in text
    assert _with_table(text) == text
    assert functions.table() in (retrompi.__doc__ or "")


@for_each("name", FUNCTIONS)
def test_no_argument_escapes_as_a_type_error(name: str) -> None:
    """Whatever stands in the place of an argument, and one that is missing or unknown, is a UsageError that names it."""
    function = getattr(retrompi, name)
    if name == "in_background":
        with refused(retrompi.UsageError, "wrong-type"):
            asyncio.run(function(3))
        return
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    fitting = {p.name: _fitting(str(p.annotation)) for p in needed}
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            with refused(retrompi.UsageError, "wrong-type"):
                function(3)
        elif p.kind is p.VAR_KEYWORD:
            for key in retrompi.Options.__annotations__:
                with refused(retrompi.UsageError, f"wrong-type | '{key}'"):
                    function(**fitting, **{key: object()})
        else:
            for wrong in (object(), {1: object()}, [object()], b"bytes", 1j):
                with refused(retrompi.UsageError, f"wrong-type | '{p.name}'"):
                    function(**{**fitting, p.name: wrong})
    with refused(retrompi.UsageError, "unknown-name | nonsense"):
        function(**fitting, nonsense=1)
    if fitting:
        with refused(retrompi.UsageError, f"missing-argument | {next(iter(fitting))}"):
            function()


def _fitting(declared: str) -> Any:
    """A value that a declared type takes."""
    return {} if declared.startswith("Mapping") else [] if declared.startswith("Sequence") else "1 KiB" if declared == "Size" else "x"


def test_a_list_of_one_text_is_not_that_text_and_a_number_of_numpy_is_a_number(tmp_path: Path) -> None:
    import numpy as np

    with refused(retrompi.UsageError, "wrong-type | write ['wmpi']"):
        retrompi.compare_runtimes("ring", "wmpi")
    with refused(retrompi.UsageError, "wrong-type | 'size' | not float 1.5"):
        retrompi.pingpong("wmpi", mode="shared", sizes=np.array([1024]), reps=np.int64(2), store=tmp_path / "s.db").time(1.5)  # type: ignore[arg-type]


def test_the_answers_of_the_interface_are_those_of_the_commands(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    """tornado, break-even and tolerance: rows, runs and cautions."""
    import retrompi as package

    short, store = {"trace.sizes": "1KiB", "trace.reps": 2}, tmp_path / "s.db"
    common = ("--set", "trace.sizes=1KiB", "--set", "trace.reps=2", "--store", str(store), "--json", "-j", "1")
    tornado = package.tornado("bf-wmpi-shared", {"wmpi.event": "1us..100us"}, metric="time@1KiB", set=short, store=store, jobs=1)
    told = json.loads(retrompi("tornado", "bf-wmpi-shared", "--vary", "wmpi.event=1us..100us", "--metric", "time@1KiB", *common).out)
    assert told["rows"] == tornado.rows
    assert (told["base"], told["simulated"]) == (tornado.base, 0)
    assert [w["code"] for w in told["warnings"]] == [w.code for w in tornado.warnings]
    sides = {"a": {"model": "wmpi"}, "b": {"model": "hpvm"}}
    given: dict[str, Any] = {"metric": "time@1KiB", "tolerance": 0.5, "set": short, "store": store, "jobs": 1}
    crossed = package.break_even("bf-wmpi-shared", "wmpi.event", "1us", "100us", **sides, scan=2, **given)
    told = json.loads(retrompi("break-even", "bf-wmpi-shared", "--along", "wmpi.event=1us..100us", "--a", "model=wmpi", "--b", "model=hpvm",
                               "--metric", "time@1KiB", "--scan", "2", "--tolerance", "50%", *common).out)
    assert (told["points"], told["crossings"]) == (crossed.rows, crossed.crossings)
    far = package.tolerance("bf-wmpi-shared", add="wmpi.event", up_to="1ms", slower=[0.05, 0.5], **given)
    told = json.loads(retrompi("tolerance", "bf-wmpi-shared", "--add", "wmpi.event", "--up-to", "1ms", "--metric", "time@1KiB", "--slower",
                               "5%,50%", "--tolerance", "50%", *common).out)
    assert (told["answers"], told["points"], told["slope"]) == (far.rows, far.points, far.slope)


def test_measured_curves_and_predictions_are_those_of_the_commands(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    import retrompi as package

    store, file = tmp_path / "s.db", str(ROOT / "tests" / "data" / "measured" / "netpipe37-np.out")
    kept = package.import_measured(file, label="mine", store=store)
    assert kept.rows == json.loads(retrompi("measured", "list", "--store", str(store), "--json").out)
    (told,) = json.loads(retrompi("measured", "show", "mine", "--store", str(store), "--json").out)
    assert told["points"] == package.measured_curve("mine", store=store).rows == package.measured_curve(file).rows
    assert package.predict("mpibip-lanai9").rows == json.loads(retrompi("predict", "mpibip-lanai9", "--json").out)
    with refused(package.UsageError, "unknown-name"):
        package.predict("mpibip-lanai8")
    with refused(package.RetrompiError, "bad-usage"):
        package.record([], tmp_path / "trace")


def test_no_name_is_that_of_a_package_inside() -> None:
    """Importing ``retrompi.NAME`` would put the package in the function's place."""
    inside = {module.name for module in pkgutil.iter_modules(retrompi.__path__)}
    assert not inside & set(retrompi.__all__)


if __name__ == "__main__":
    SIGNATURES.write_text(json.dumps(_promised(), indent=1) + "\n", encoding="utf-8")
    PACKAGE.write_text(_with_table(PACKAGE.read_text(encoding="utf-8")), encoding="utf-8")
