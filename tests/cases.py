"""A test of many small cases is one item for pytest, and its report names every case that fails.

An item costs milliseconds in each process of pytest-xdist, before it does anything: thousands of cases that take less are looped over.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

__all__ = ["for_each", "sampled", "spread"]

Rows = Iterable[Any] | Callable[[], Iterable[Any]]
Axis = tuple[tuple[str, ...], Rows, int]
"""Names, rows, and how many of them are taken where not all are (0: all)."""


def for_each(names: str, rows: Rows, *, few: int = 0) -> Callable[[Any], Any]:
    """Call the test for each of ``rows``, as ``pytest.mark.parametrize(names, rows)`` does, in one item.

    ``rows`` may be a function: it is called when the test runs, so that to collect the tests reads no model and simulates nothing. A case
    that fails does not end the test: each is reported with its values, as a subtest of pytest. Several ``for_each`` on one test are
    combined. A case has folders (``tmp_path``, ``here``) and changes of the environment (``monkeypatch``) of its own; whatever else a
    fixture makes is shared. ``--case TEXT`` leaves out the cases whose values do not contain the text.

    ``few``: so many of the rows, from the first to the last at equal distances, stand for all; ``make exhaustive`` takes all.
    """
    axis: Axis = (tuple(n.strip() for n in names.split(",")), rows, few)

    def decorate(test: Any) -> Any:
        axes: list[Axis] = [axis, *getattr(test, "axes", [])]
        function = getattr(test, "one_case", test)
        signature = inspect.signature(function)
        told = {name for own, _, _ in axes for name in own}
        left = [p for p in signature.parameters.values() if p.name not in told]
        extra = [n for n in ("request", "subtests") if n not in signature.parameters]

        @wraps(function)
        def run(*instance: Any, request: pytest.FixtureRequest, subtests: pytest.Subtests, **fixtures: Any) -> None:
            __tracebackhide__ = True
            wanted = request.config.getoption("--case")
            fixtures |= {n: v for n, v in (("request", request), ("subtests", subtests)) if n in signature.parameters}
            count = 0
            for case in _product(axes, every=request.config.getoption("--exhaustive")):
                if wanted and wanted not in str(case):
                    continue
                count += 1
                with _of_its_own(fixtures, count) as own:
                    try:
                        function(*instance, **case, **own)
                    except (Exception, pytest.fail.Exception, pytest.skip.Exception):
                        with subtests.test(**case):
                            raise
            if wanted and not count:
                pytest.skip(f"no case has '{wanted}'")
            assert count, "there is no case"

        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*left, *(inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in extra)]
        )
        run.axes, run.one_case = axes, function  # type: ignore[attr-defined]
        return pytest.mark.sampled(run) if few else run

    return decorate


def spread(rows: Iterable[Any], few: int) -> list[Any]:
    """``few`` of the rows, the first and the last among them, at equal distances; all of them if there are no more."""
    every = list(rows)
    if few == 0 or len(every) <= few:
        return every
    return [every[i * (len(every) - 1) // max(few - 1, 1)] for i in range(few)]


def sampled(rows: Iterable[Any], few: int) -> list[Any]:
    """The rows for ``parametrize``, where a case is worth an item: all but ``few`` (`spread`) are marked `exhaustive`."""
    every = list(rows)
    kept = spread(every, few)
    marks = pytest.mark.exhaustive
    return [r if r in kept else pytest.param(*(r if isinstance(r, tuple) else (r,)), marks=marks) for r in every]


def _product(axes: list[Axis], *, every: bool) -> Iterator[dict[str, Any]]:
    """Every combination, by name."""
    taken = [[(names, row) for row in spread(rows() if callable(rows) else rows, 0 if every else few)] for names, rows, few in axes]
    for combination in itertools.product(*taken):
        case: dict[str, Any] = {}
        for names, row in combination:
            case |= dict(zip(names, row, strict=True)) if len(names) > 1 else {names[0]: row}
        yield case


@contextmanager
def _of_its_own(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures of one case: a folder and a ``monkeypatch`` that are no other case's."""
    own = dict(fixtures)
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in own:
            own["monkeypatch"] = patch
        if "tmp_path" in own or "here" in own:
            folder = Path(own.get("tmp_path") or Path.cwd()) / f"case-{number}"
            folder.mkdir()
            patch.setenv("XDG_DATA_HOME", str(folder / "data"))
            if "tmp_path" in own:
                own["tmp_path"] = folder
            if "here" in own:
                patch.chdir(folder)
        yield own
