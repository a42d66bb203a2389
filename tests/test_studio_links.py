"""The links of the labs' pages into the what-if page, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cases import for_each

pytest.importorskip("dash", reason="the studio needs dash: pip install dash")

from retrompi.labs import text
from retrompi.labs.lab import lab, lab_names
from retrompi.labs.student import draw
from retrompi.studio.components.parameters import slots_for
from retrompi.studio.jobs.queue import Jobs
from retrompi.studio.jobs.resources import Resources
from retrompi.studio.labs.lab_commands import form_of, view_of
from retrompi.studio.pages import whatif
from retrompi.studio.requests.state import Query, read


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resources]:
    made = Resources(Jobs(), str(tmp_path_factory.mktemp("studio") / "store.db"))
    yield made
    made.close()


@for_each("student", ["ann", "bob", "nobody", "Zoë 17"])
@for_each("name", lab_names())
def test_every_what_if_of_a_lab_is_taken_as_it_is(name: str, student: str, resources: Resources) -> None:
    """Nothing of a link is left out, and the command that the page shows sets what the link does."""
    found = lab(name)
    written = text.render_readme(found, draw(found, student), student)
    for form in filter(None, (form_of(line) for line in re.findall(r"^    (retrompi [^\n]+)$", written, re.MULTILINE))):
        for address in re.findall(r"^/whatif\?.*", view_of(form)):
            query = Query(address.partition("?")[2])
            values, wrong = read(whatif.PAGE.controls, query)
            assert not wrong, address
            place = values["model"], values["platform"], values["mode"]
            known = slots_for(*place, values["set"])
            sets, refused = whatif._known_overrides(*place[:2], known, values["set"])
            assert not refused, address
            assert len(sets) == len(values["set"])
            wanted = whatif._question_parts({"model": place[0], "platform": place[1], "mode": place[2], "sets": sets})[3]
            asked = [f"{n}={v}".replace(" ", "") for n, v in values["set"].items()]
            own = ("platform.", f"{place[0]}.")
            assert set(wanted) <= {a if a.startswith(own) else f"{place[0]}.{a}" for a in asked}
            assert "left out" not in str(whatif.layout(query, resources))


def test_a_setting_that_there_is_not_is_said_to_be_left_out(resources: Resources) -> None:
    shown = str(whatif.layout(Query("model=wmpi&set=platform.host.cores=2&set=platform.host.nonsense=2"), resources))
    assert "set=platform.host.nonsense=2 in this link was left out: the curves below are without it" in shown
    assert "set=platform.host.cores=2 in this link" not in shown
    assert "--set platform.host.cores=2" in shown
    assert "Every machine (1)" in shown
