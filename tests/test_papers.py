"""Papers as folders anywhere: what is wrong in one is told with file and line, its own models and machines are found by name."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import refused

from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.papers.reproduce import inspection
from retrompi.papers.statements import claims, scaffold
from retrompi.papers.statements.paper import all_papers, find_paper, working_with
from retrompi.spec import registry
from retrompi.spec.machine import machines
from retrompi.studies.define import catalogue


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A new paper's folder."""
    scaffold.create(tmp_path / "mine")
    return tmp_path / "mine"


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def told(folder: Path) -> list[str]:
    """What is wrong, each as FILE:LINE: code."""
    found = []
    for p in inspection.inspect(str(folder)).problems:
        assert p.path is not None
        assert len(str(p).splitlines()) == 1
        found.append(f"{Path(p.path).relative_to(folder)}:{p.line}: {p.code}")
    return found


# --- the package's papers ---


@for_each("key", claims.papers())
def test_nothing_is_wrong_in_a_paper_of_the_package(key: str) -> None:
    assert list(map(str, inspection.inspect(key).problems)) == []


def test_every_paper_has_its_folder_and_its_claims_one_paper() -> None:
    assert claims.papers() == list(all_papers())
    assert claims.papers()[:4] == ["baker-fox", "krishna-2010", "lefevre-westrelin", "hudson-wang"]
    ids = [c.id for key in claims.papers() for c in find_paper(key).claims]
    assert ids == [c.id for c in claims.load()]
    assert len(ids) == len(set(ids))


def test_a_papers_name_in_the_package_is_no_privilege(tmp_path: Path, retrompi: Any) -> None:
    """A copy of a paper of the package under another name, elsewhere, gives the same verdicts."""
    shutil.copytree(paths.papers_dir() / "hudson-wang", tmp_path / "copied")
    store = str(tmp_path / "runs.db")
    file = tmp_path / "copied" / "paper.toml"
    change(file, '"multitask", "fidelity"', '"multitask"')
    got = {}
    for name in (str(tmp_path / "copied"), "hudson-wang"):
        done = retrompi("validate", "--paper", name, "--json", "--store", store)
        got[name] = {r["id"]: (r["verdict"], r["observed"]) for r in json.loads(done.out)}
    first, second = got.values()
    assert first == second
    assert {v for v, _ in first.values()} >= {"pass", "unjudged"}


# --- a new one ---


def test_a_new_paper_is_whole(mine: Path, retrompi: Any, tmp_path: Path) -> None:
    assert told(mine) == []
    store = str(tmp_path / "runs.db")
    done = retrompi("paper", "reproduce", str(mine), "-o", str(tmp_path / "report"), "--store", store)
    assert (done.code, done.err.count("error")) == (0, 0)
    page = (tmp_path / "report" / "mine.html").read_text(encoding="utf-8")
    for text in ("Title of the paper", "A. Author, B. Author (1996)", "EX-1", "EX-2", "Platform linux-p6-200*2@switch-100", "an example"):
        assert text in page, text
    judged = retrompi("validate", "--paper", str(mine), "--store", store)
    assert judged.code == int("fail" in judged.out)
    assert retrompi("paper", "check", str(mine)).code == 0
    rows = json.loads(retrompi("claims", "list", "--paper", str(mine), "--json").out)
    assert [r["id"] for r in rows] == ["EX-1", "EX-2"]
    assert "mine" not in claims.papers()


def test_a_new_papers_folder_is_empty_before(mine: Path, tmp_path: Path) -> None:
    with refused(UsageError, "exists-already"):
        scaffold.create(mine)
    with refused(UsageError, "duplicate-name | baker-fox"):
        scaffold.create(tmp_path / "baker-fox")
    with refused(UsageError, "bad-name"):
        scaffold.create(tmp_path / "a paper")
    (tmp_path / "file").write_text("")
    with refused(UsageError, "unwritable-file"):
        scaffold.create(tmp_path / "file" / "x")


# --- what is wrong, with its line ---


@pytest.mark.parametrize(
    ("file", "old", "new", "wanted"),
    [
        ("claims.csv", "microseconds", "microsecs", "claims.csv:2: bad-unit"),
        ("claims.csv", ",210,250", ",2l0,250", "claims.csv:2: bad-number"),
        ("claims.csv", ",210,250", ",inf,250", "claims.csv:2: bad-number"),
        ("claims.csv", ",210,250", ",260,250", "claims.csv:2: bad-input"),
        ("claims.csv", ",210,250", ",,", "claims.csv:2: bad-value"),
        ("claims.csv", ",quant,validate", ",quant,held out", "claims.csv:2: unknown-name"),
        ("claims.csv", ",quant,validate", ",number,validate", "claims.csv:2: unknown-name"),
        ("claims.csv", "EX-2", "EX-1", "claims.csv:3: duplicate-name"),
        ("claims.csv", "EX-2", "EX 2", "claims.csv:3: bad-name"),
        ("claims.csv", "8.5,MB/s", "8,5,MB/s", "claims.csv:3: missing-key"),
        ("claims.csv", ",unit,", ",units,", "claims.csv:1: missing-key"),
        ("claims.csv", "section,note", "sektion,note", "claims.csv:1: unknown-key"),
        ("claims.csv", "section,note", "section,section", "claims.csv:1: duplicate-name"),
        ("checks.toml", "[[EX-2]]", "[[EX-3]]", "checks.toml:9: unknown-claim"),
        ("checks.toml", 'kind = "range"\nmetric = "peak"', 'kind = "rnge"\nmetric = "peak"', "checks.toml:9: unknown-name"),
        ("checks.toml", 'metric = "peak"\n', "", "checks.toml:9: missing-key"),
        ("checks.toml", '"peak"', '"speed"', "checks.toml:9: bad-value"),
        ("checks.toml", '"peak"\nmodels = ["sockets"]', '"peak"\nmodels = ["socket"]', "checks.toml:9: unknown-model"),
        ("checks.toml", '"distributed"\n\n[[EX-2]]', '"shared"\n\n[[EX-2]]', "checks.toml:3: unknown-name"),
        ("checks.toml", '"peak"', '"bandwidth_at"\nsizes = "configuration"', "claims.csv:3: bad-value"),
        ("checks.toml", "[[EX-2]]", "[EX-2]", "checks.toml:9: bad-value"),
        ("checks.toml", 'metric = "peak"', "metric = peak", "checks.toml:11: unreadable-file"),
        ("paper.toml", 'models = ["sockets"]', 'models = ["sokets"]', "paper.toml:11: unknown-model"),
        ("paper.toml", 'platforms = ["linux-p6-200*2', 'platforms = ["linux-p6-20*2', "paper.toml:12: unknown-host"),
        ("paper.toml", 'experiments = ["pingpong"]', 'experiments = ["pingpnog"]', "paper.toml:15: unknown-name"),
        ("paper.toml", 'modes = ["distributed"]', 'modes = ["spread out"]', "paper.toml:18: unknown-host"),
        ("paper.toml", "1MiB:x2", "1MiB:x0", "paper.toml:19: bad-size"),
        ("paper.toml", "title = ", "titel = ", "paper.toml:4: unknown-key"),
        ("paper.toml", 'title = "Title of the paper"', "title = 5", "paper.toml:4: bad-value"),
        ("paper.toml", 'what = "bandwidth"', 'what = "speed"', "paper.toml:31: bad-input"),
        ("paper.toml", 'file = "curves/example.csv"', 'file = "curves/none.csv"', "paper.toml:25: not-found"),
        ("curves/example.csv", "bytes,time_us", "bytes,time", "curves/example.csv:1: missing-key"),
        ("curves/example.csv", "64,240", "64,fast", "curves/example.csv:3: bad-number"),
    ],
)
def test_what_is_wrong_has_file_and_line(mine: Path, file: str, old: str, new: str, wanted: str) -> None:
    change(mine / file, old, new)
    assert wanted in told(mine)


def test_all_that_is_wrong_is_listed_at_once(mine: Path, retrompi: Any) -> None:
    change(mine / "claims.csv", "microseconds", "microsecs")
    change(mine / "claims.csv", "8.5,MB/s", "8,5,MB/s")
    change(mine / "paper.toml", 'models = ["sockets"]', 'models = ["sokets"]')
    done = retrompi("paper", "check", str(mine))
    assert (done.code, done.error) == (2, "bad-paper")
    lines = done.out.splitlines()
    assert len(lines) >= 3
    assert any("sokets" in line and "did you mean 'sockets'" in line and "paper.toml:11: " in line for line in lines)
    assert any("did you mean 'microseconds'" in line and "claims.csv:2: " in line for line in lines) or "claims.csv:2" in done.out
    rows = json.loads(retrompi("paper", "check", str(mine), "--json").out)
    assert [set(r) for r in rows] == [{"file", "line", "code", "message"}] * len(lines)
    for command in (("reproduce", str(mine)), ("validate", "--paper", str(mine))):
        one = retrompi(*command)
        assert one.code == 2
        assert len(one.err.splitlines()) == 1
        assert "more: 'retrompi paper check" in one.err


@pytest.mark.parametrize("file", ["paper.toml", "claims.csv", "checks.toml", "curves/example.csv"])
@pytest.mark.parametrize("what", ["latin-1", "huge", "pipe", "endless", "loop", "folder", "empty", "nul", "quotes"])
def test_a_hostile_file_is_one_line(mine: Path, file: str, what: str, retrompi: Any, tmp_path: Path) -> None:
    path = mine / file
    path.unlink()
    if what == "latin-1":
        path.write_bytes(b"title = \"x\"\nauthors = \"Lef\xe8vre\"\n")
    elif what == "huge":
        with path.open("wb") as handle:
            handle.truncate(1 << 33)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "endless":
        path.symlink_to("/dev/zero")
    elif what == "loop":
        path.symlink_to(path)
    elif what == "folder":
        path.mkdir()
    elif what == "empty":
        path.write_text("")
    elif what == "nul":
        path.write_bytes(b"id\0,system\n\0\0,\n")
    else:
        path.write_text('"a,b\n' * 1000)
    done = retrompi("paper", "check", str(mine))
    if file == "checks.toml" and what in ("loop", "folder", "pipe", "endless", "empty"):
        assert done.code in (0, 2)
    else:
        assert done.code == 2, done
    assert "internal error" not in done.err
    assert done.error in ("", "bad-paper") or (file, done.error) == ("paper.toml", "unknown-paper")
    assert len(done.err.splitlines()) <= 1
    assert all(":" in line for line in done.out.splitlines()) or done.code == 0
    again = retrompi("reproduce", str(mine), "-o", str(tmp_path / "report"), "--store", str(tmp_path / "runs.db"))
    assert again.code in (0, 2)
    assert "internal error" not in again.err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 < 2 << 30  # whichever part reads the file


def test_a_folder_that_is_no_paper(tmp_path: Path, retrompi: Any) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "two words").mkdir()
    (tmp_path / "two words" / "paper.toml").write_text("")
    (tmp_path / "baker-fox").mkdir()
    (tmp_path / "baker-fox" / "paper.toml").write_text("")
    for given, wanted in ((tmp_path / "empty", "unknown-paper | paper new"), (tmp_path / "none", "unknown-paper | folder"),
                          (tmp_path / "two words", "bad-name | rename"), (tmp_path / "baker-fox", "duplicate-name | rename"),
                          ("bakerfox", "unknown-paper | baker-fox"), ("x" * 5000, "unknown-paper"), ("a\0b", "unknown-paper")):
        with refused(UsageError, wanted), working_with(str(given)):
            pass
    assert retrompi("paper", "check", str(tmp_path / "none")).code == 2


# --- its own models, hosts, networks, platforms, scenarios ---

MODEL = '''
from retrompi.models.sockets import Sockets
from retrompi.spec.model import Param

class Notebook(Sockets):
    name = "notebook"
    title = "the notebook's program"
    call = Param("50 us", "s", "a call", source="paper:NB-1", on="lab:n1", cost="work")
'''
HOST = """
title = "a slow one"
years = "1990"
summary = "made up"
like = "sun-sc1000"
services = "scaled"
clock = { value = "25 MHz", source = "assumed: half" }
"""
ROOM = """
name = "lab"
title = "two of them"
years = "1990"
summary = "made up"
hosts = "old-sparc*2"
network = "thin-wire"
"""
WIRE = """
title = "thin wire"
years = "1990"
summary = "10BASE2"
like = "hub-10"
"""


@pytest.fixture
def own(mine: Path) -> Path:
    """A paper that brings everything itself."""
    for name, text in (("models/notebook/__init__.py", MODEL), ("platforms/hosts/old-sparc.toml", HOST), ("platforms/lab.toml", ROOM),
                       ("platforms/networks/thin-wire.toml", WIRE)):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(text, encoding="utf-8")
    for file in ("claims.csv", "checks.toml"):
        text = (mine / file).read_text(encoding="utf-8")
        (mine / file).write_text(text.replace("EX-", "NB-").replace('"sockets"', '"notebook"'), encoding="utf-8")
    change(mine / "paper.toml", 'models = ["sockets"]', 'models = ["notebook"]')
    change(mine / "paper.toml", 'platforms = ["linux-p6-200*2@switch-100"]', 'platforms = ["lab"]')
    change(mine / "paper.toml", 'model = "sockets"\nplatform = "linux-p6-200*2@', 'model = "notebook"\nplatform = "old-sparc*2@')
    change(mine / "paper.toml", "switch-100", "thin-wire")
    return mine


def test_what_a_paper_brings_is_found_while_it_is_at_hand(own: Path) -> None:
    assert told(own) == []
    with working_with(str(own)) as (paper,):
        assert paper.key == "mine"
        assert registry.model("notebook").title == "the notebook's program"
        assert "notebook" in registry.model_names()
        assert "lab" in registry.platform_names()
        assert "old-sparc" in machines.host_names()
        assert len(registry.platform("old-sparc*2@thin-wire").hosts) == 2
        assert registry.platform("lab").host("n1").clock == 25e6
        assert claims.find("NB-1").line == 2
        assert [c.id for c in claims.judging("notebook")] == ["NB-1", "NB-2"]
    for look in (lambda: registry.model("notebook"), lambda: registry.platform("lab"), lambda: registry.platform("old-sparc*2@thin-wire"),
                 lambda: claims.find("NB-1")):
        with pytest.raises(UsageError):
            look()
    assert paths.at_hand() == ()


def test_it_is_simulated_judged_and_drawn(own: Path, retrompi: Any, tmp_path: Path) -> None:
    done = retrompi("reproduce", str(own), "-o", str(tmp_path / "report"), "--store", str(tmp_path / "runs.db"), "--csv")
    assert done.code == 0, done
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [r["id"] for r in rows][:2] == ["NB-1", "NB-2"]
    assert all(r["verdict"] in ("pass", "fail") for r in rows)
    page = (tmp_path / "report" / "mine.html").read_text(encoding="utf-8")
    assert "the notebook&#x27;s program" in page
    assert "Platform lab" in page


@pytest.mark.parametrize(
    "name", ["models/wmpi/__init__.py", "platforms/nt-pair.toml", "platforms/hosts/sun-ultra1.toml", "platforms/networks/hub-10.toml",
             "scenarios/one.toml"]
)
def test_a_name_of_the_package_is_refused(mine: Path, name: str) -> None:
    if name.startswith("scenarios"):
        name = f"scenarios/{catalogue.scenario_names()[0]}.toml"
    (mine / name).parent.mkdir(parents=True, exist_ok=True)
    (mine / name).write_text("", encoding="utf-8")
    with refused(InputError, "duplicate-name | another name") as caught, working_with(str(mine)):
        pass
    assert str(caught.value).startswith(str(mine / name))
    assert f"{name}:None: duplicate-name" in told(mine)


def test_a_broken_model_or_host_of_its_own_is_listed(own: Path) -> None:
    change(own / "platforms/hosts/old-sparc.toml", '"25 MHz"', '"25 apples"')
    (own / "models/notebook/__init__.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    found = told(own)
    assert "platforms/hosts/old-sparc.toml:7: bad-unit" in found
    assert "models/notebook/__init__.py:1: broken-model" in found


def test_options_that_an_experiment_cannot_use_are_the_files(mine: Path, retrompi: Any, tmp_path: Path) -> None:
    change(mine / "paper.toml", 'experiments = ["pingpong"]', 'experiments = ["pingpong", "anatomy"]')
    with (mine / "paper.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[anatomy.messages]]\nmode = "distributed"\nsize = "1 KiB"\n')
    done = retrompi("reproduce", str(mine), "-o", str(tmp_path / "report"), "--store", str(tmp_path / "runs.db"))
    assert (done.code, done.error) == (2, "bad-value")
    assert "'model' is missing" in done.err


SCENARIO = """
name = "nb-large"
title = "One large message"
summary = "made up"
reproduces = "what-if: a page's"
model = "notebook"
platform = "lab"
mode = "distributed"

[trace]
generator = "pingpong"
sizes = "64KiB"
"""


def test_a_scenario_of_its_own_gives_facts(own: Path, retrompi: Any, tmp_path: Path) -> None:
    (own / "scenarios").mkdir()
    (own / "scenarios" / "nb-large.toml").write_text(SCENARIO, encoding="utf-8")
    change(own / "paper.toml", 'experiments = ["pingpong"]', 'experiments = ["pingpong", "scenarios"]')
    change(own / "paper.toml", "[pingpong]", '[scenarios]\nnames = ["nb-*"]\n\n[pingpong]')
    change(own / "checks.toml", 'kind = "range"\nmetric = "peak"', 'kind = "fact"\npath = "scenarios.nb-large.peak"')
    assert told(own) == []
    done = retrompi("validate", "--paper", str(own), "--json", "--store", str(tmp_path / "runs.db"))
    row = next(r for r in json.loads(done.out) if r["id"] == "NB-2")
    assert row["verdict"] in ("pass", "fail")
    assert 0 < row["observed"] < 1.3


def test_the_papers_of_the_package_are_listed(retrompi: Any) -> None:
    rows = json.loads(retrompi("paper", "list", "--json").out)
    assert [r["key"] for r in rows] == claims.papers()
    first = rows[0]
    assert (first["calibrate"], first["validate"], first["models"]) == (24, 72, ["wmpi", "winmpich", "hpvm"])
