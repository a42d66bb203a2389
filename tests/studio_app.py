"""What the tests of the studio without a browser share: the resources, the application, a client without JavaScript."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import g

from retrompi.studio.app import create_app, page_content
from retrompi.studio.jobs.job import JobState
from retrompi.studio.jobs.queue import Jobs
from retrompi.studio.jobs.resources import Resources

JSON = {"Content-Type": "application/json"}
PATIENCE_S = 300.0
UPDATE = "/_dash-update-component"


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resources]:
    made = Resources(Jobs(), str(tmp_path_factory.mktemp("studio") / "store.db"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def app(resources: Resources) -> Any:
    return create_app(resources)


@pytest.fixture
def client(app: Any) -> Any:
    """A browser without JavaScript that has opened the front page."""
    found = app.server.test_client()
    assert found.get("/").status_code == 200
    return found


def soon(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.02)
    return False


def ended(jobs: Jobs, job: str, session: str = "a") -> JobState:
    found = jobs.wait(job, session, PATIENCE_S)
    assert found.ended, found
    return found


def every(component: Any) -> Iterator[Any]:
    """A component and all within it."""
    if isinstance(component, (list, tuple)):
        for one in component:
            yield from every(one)
    elif hasattr(component, "to_plotly_json"):
        yield component
        yield from every(getattr(component, "children", None))


def words(component: Any) -> str:
    """All text of a component."""
    if isinstance(component, (list, tuple)):
        return " ".join(words(c) for c in component)
    if hasattr(component, "to_plotly_json"):
        return words(getattr(component, "children", None))
    return "" if component is None else str(component)


@pytest.fixture
def draw(app: Any, resources: Resources) -> Callable[..., Any]:
    """What a page shows to a new session."""

    def drawn(path: str, search: str = "") -> Any:
        with app.server.test_request_context(path):
            g.session = "a-session-of-the-tests"
            return page_content(path, search, resources)

    return drawn
