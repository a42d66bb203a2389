"""The Python interface: its names, their help, their promise, and that it asks what the commands ask."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import refused

import retrompi

ROOT = Path(__file__).resolve().parents[1]
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
                            "--store", str(store), "--json")  # fmt: skip
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


if __name__ == "__main__":
    SIGNATURES.write_text(json.dumps(_promised(), indent=1) + "\n", encoding="utf-8")
