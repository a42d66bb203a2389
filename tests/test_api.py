"""The Python interface: its names, their help, their promise, and that it asks what the commands ask."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import retrompi
from retrompi import api

SIGNATURES = Path(__file__).parent / "data" / "api.json"
FUNCTIONS = [n for n in api.__all__ if inspect.isfunction(getattr(api, n)) and getattr(api, n).__module__.startswith("retrompi.api")]
CLASSES = [n for n in api.__all__ if inspect.isclass(getattr(api, n)) and getattr(api, n).__module__.startswith("retrompi.api")]


def _members(cls: type) -> list[str]:
    return sorted(n for n, _ in inspect.getmembers(cls) if not n.startswith("_"))


def _promised() -> dict[str, Any]:
    """Name -> parameters of a function, members of a class."""
    told: dict[str, Any] = {n: [str(p) for p in inspect.signature(getattr(api, n)).parameters.values()] for n in FUNCTIONS}
    told |= {n: _members(getattr(api, n)) for n in CLASSES if n != "Options"}
    told["Options"] = sorted(api.Options.__annotations__)
    return told


def test_the_package_has_the_names_of_the_interface() -> None:
    assert set(retrompi.__all__) == {"__version__", *api.__all__}
    assert all(getattr(retrompi, n) is getattr(api, n) for n in api.__all__)
    assert set(api.__all__) <= set(dir(retrompi))
    with pytest.raises(AttributeError, match="no attribute 'pingpongs'"):
        _ = retrompi.pingpongs  # type: ignore[attr-defined]


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import retrompi, sys; print([m for m in ('numpy', 'sqlalchemy', 'plotly', 'pandas', 'retrompi.api') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_help_with_an_example(name: str) -> None:
    help_ = inspect.getdoc(getattr(api, name)) or ""
    assert f">>> retrompi.{name}(" in help_ or f"retrompi.{name}(" in help_.partition(">>>")[2]


@pytest.mark.parametrize("name", CLASSES)
def test_every_member_has_help(name: str) -> None:
    cls = getattr(api, name)
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
    store = tmp_path / "store.db"
    curve = api.pingpong("wmpi", mode="shared", sizes="1KiB,2KiB", reps=3, set={"wmpi.pool": "2 MiB"}, store=store)
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
        asked = (asyncio.to_thread(retrompi.pingpong, m, **what, store=tmp_path / f"{m}.db") for m in ("wmpi", "hpvm"))
        return [c.time("1KiB") for c in await asyncio.gather(*asked)]

    assert len(set(asyncio.run(both()))) == 2


if __name__ == "__main__":
    SIGNATURES.write_text(json.dumps(_promised(), indent=1) + "\n", encoding="utf-8")
