"""Studies as files: exports read back as what they were, a packed study repeats itself elsewhere, and a hostile zip gets one line."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from pyarrow import parquet
from refusals import agrees, refused

from retrompi import traces
from retrompi.base import untrusted
from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.store import open_store
from retrompi.store.database import Store
from retrompi.studies.archive import export, unpack
from retrompi.studies.archive.pack import MANIFEST, ROWS, pack, reference_rows
from retrompi.studies.archive.unpack import compare, default_folder
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study
from retrompi.studies.read import stored_study
from retrompi.studies.read.stored_study import StoredStudy
from retrompi.traces import generate

MODEL = """
from retrompi.spec.channels import Library, Path
from retrompi.spec.media import BLOCK, Ring, Stream
from retrompi.spec.model import Param, RuntimeModel

(__import__("pathlib").Path(__file__).parents[1] / "ran").write_text("this model was imported")


class Mine(RuntimeModel):
    name = "mine"
    title = "Mine"
    version = "1"
    years = "1997"
    summary = "one ring"
    library = Param("40 us", "s", "library work", source="assumed: of a test", on="nt-pair:server", cost="work")

    def calls(self, p, layout):
        return Library(p.library, p.library, BLOCK, BLOCK)

    def within_host(self, p, layout):
        return Path([Ring(("rank", "rank"), packet=8192, header=32, slots=4)])

    def between_hosts(self, p, layout):
        return Path([Stream(("rank", "rank"), packet=8192, header=32, call=1e-4)])
"""
CURVES = """
name = "small"
title = "A small study"
metric = "bandwidth@1KiB"
[vary]
"model" = ["wmpi", "hpvm"]
"wmpi.network_packet" = ["32KiB", "48KiB"]
"platform.link.bandwidth" = "10Mbps,100Mbps"
[base]
model = "wmpi"
platform = "nt-pair"
mode = "distributed"
[base.trace]
generator = "pingpong"
sizes = "0,1KiB"
reps = 2
"""


def ran(text: str, folder: Path, store: Store, name: str = "study.toml") -> StoredStudy:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return stored_study.read(store, run_study(store, design.load(folder / name)).study_id)


@pytest.fixture(scope="module")
def here_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("small") / "here.db"


@pytest.fixture(scope="module")
def small(here_db: Path) -> StoredStudy:
    return ran(CURVES, here_db.parent, open_store(here_db))


# -- exports -------------------------------------------------------------------------------------------------------------


def test_an_export_has_a_row_a_run_or_a_row_a_point_with_units_in_its_columns(small: StoredStudy) -> None:
    rows, points = list(export.table(small)), list(export.table(small, points=True))
    assert len(rows) == 6  # WMPI's packet concerns no point of HPVM
    assert len(points) == 12
    assert [r["wmpi.network_packet_B"] for r in rows if r["model"] == "hpvm"] == [None, None]
    assert {r["platform.link.bandwidth_Bps"] for r in rows} == {1.25e6, 1.25e7}
    assert {p["size_B"] for p in points} == {0, 1024}
    for row in (*rows, *points):
        assert all(v is None or type(v).__name__ == export.columns(small, True)[k][0] for k, v in row.items())
    for row in points:
        curve = small.curves[row["run_id"]]
        assert (row["time_us"], row["repetitions"]) in [(p["time_us"], p["repetitions"]) for p in curve]


@pytest.mark.parametrize("points", [False, True])
def test_every_format_reads_back_as_the_same_rows(small: StoredStudy, tmp_path: Path, points: bool) -> None:
    expected, known = list(export.table(small, points)), export.columns(small, points)
    written, beside = export.write(small, tmp_path / "out.csv", points=points)
    with written.open(encoding="utf-8", newline="") as handle:
        kinds: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}
        assert [{k: None if v == "" else kinds[known[k][0]](v) for k, v in row.items()} for row in csv.DictReader(handle)] == expected
    whole = json.loads(export.write(small, tmp_path / "out.json", points=points)[0].read_text(encoding="utf-8"))
    assert whole["rows"] == expected
    about = json.loads(beside.read_text(encoding="utf-8"))
    assert about == {k: v for k, v in whole.items() if k != "rows"} == export.metadata(small, points)
    assert about["study"]["definition"]["title"] == "A small study"
    assert set(about["columns"]) == set(expected[0])
    read = parquet.read_table(export.write(small, tmp_path / "out.parquet", points=points)[0])
    assert read.to_pylist() == expected
    assert json.loads(read.schema.metadata[b"retrompi"]) == about
    assert {f.name: str(f.type) for f in read.schema} == {
        k: {"str": "string", "int": "int64", "float": "double"}[kind] for k, (kind, _) in known.items()
    }


def test_parquet_without_its_package_names_the_extra(small: StoredStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(UsageError, "missing-tool | retrompi[parquet]"):
        export.write(small, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_an_unknown_format_is_one_line(small: StoredStudy, tmp_path: Path) -> None:
    with refused(UsageError, "unknown-format | 'xlsx'"):
        export.write(small, tmp_path / "out.xlsx")


# -- packing -------------------------------------------------------------------------------------------------------------


def whole_study(folder: Path) -> str:
    """A study with everything that may have to go along: models and a platform of one's own, a trace of one file and one of several."""
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "__init__.py").write_text(MODEL, encoding="utf-8")
    room = Path(__file__).resolve().parents[1] / "platforms" / "nt-pair.toml"
    text = room.read_text(encoding="utf-8").replace('name = "nt-pair"', 'name = "room"', 1)
    (folder / "room.toml").write_text(text, encoding="utf-8")
    made = generate.pingpong([0, 2048], 3)
    traces.write(made, folder / "one.ti", shared=True)
    traces.write(made, folder / "several")
    return f"""
name = "whole"
[vary]
"model" = ["wmpi", "{folder}/mine"]
"mine.library" = ["10us", "40us"]
"platform" = ["nt-pair", "{folder}/room.toml"]
"trace.file" = ["one.ti", "several"]
[base]
model = "wmpi"
platform = "nt-pair"
mode = "distributed"
[base.trace]
file = "one.ti"
"""


@pytest.fixture
def packed(tmp_path: Path) -> tuple[StoredStudy, Path]:
    there = tmp_path / "there"
    found = ran(whole_study(there), there, open_store(tmp_path / "there.db"))
    assert pack(found, tmp_path / "whole.zip") == []
    return found, tmp_path / "whole.zip"


def test_a_packed_study_gives_the_same_numbers_elsewhere(
    packed: tuple[StoredStudy, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, zip_file = packed
    assert {r["outcome"] for r in before.rows} == {"completed"}
    (tmp_path / "there").rename(tmp_path / "gone")  # nothing of where it was made is there any more
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another"))
    package = unpack.unpack(zip_file)
    assert package.models == ("mine",)
    assert package.folder == default_folder(zip_file)
    assert not (package.folder / "models" / "ran").exists()
    with refused(InputError, "untrusted-code | models/mine/__init__.py"):
        run_study(open_store(tmp_path / "another.db"), design.load(package.study))
    assert not (package.folder / "models" / "ran").exists()
    untrusted.trust(package.folder)
    store = open_store(tmp_path / "another.db")
    after = stored_study.read(store, run_study(store, design.load(package.study)).study_id)
    assert len(after.rows) == len(before.rows) == 12
    assert compare(package.rows, reference_rows(after)) == []
    same = ("outcome", "time_s", "messages", "bytes", "packets", "model_hash", "platform_hash", "trace_hash", "code_version")
    assert [[r[k] for k in same] for r in reference_rows(before)] == [[r[k] for k in same] for r in reference_rows(after)]
    assert [before.ranks[r["run_id"]] for r in before.rows] == [after.ranks[r["run_id"]] for r in after.rows]


def test_packing_again_what_was_unpacked_gives_the_same_files(packed: tuple[StoredStudy, Path], tmp_path: Path) -> None:
    _, zip_file = packed
    package = unpack.unpack(zip_file, tmp_path / "out")
    untrusted.trust(package.folder)
    store = open_store(tmp_path / "again.db")
    pack(stored_study.read(store, run_study(store, design.load(package.study)).study_id), tmp_path / "again.zip")
    names = []
    for one in (zip_file, tmp_path / "again.zip"):
        with zipfile.ZipFile(one) as opened:
            names.append({n: opened.read(n) for n in opened.namelist() if n not in (MANIFEST, ROWS)})
    assert names[0] == names[1]
    assert {n.split("/")[0] for n in names[0]} == {"models", "platforms", "traces"}


def test_the_same_study_packs_to_the_same_bytes(small: StoredStudy, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        pack(small, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_a_trace_of_retrompi_itself_goes_by_name_and_hash(tmp_path: Path) -> None:
    from retrompi.base import paths

    trace = paths.reference_dir() / "traces" / "npb3.3.1-is-A-4.tar.zst"
    text = f"""
name = "ours"
[vary]
"model" = ["mpibip"]
[base]
model = "mpibip"
platform = "myrinet-piii"
mode = "distributed"
[base.trace]
file = "{trace}"
"""
    found = ran(text, tmp_path / "here", open_store(tmp_path / "here.db"))
    pack(found, tmp_path / "ours.zip")
    with zipfile.ZipFile(tmp_path / "ours.zip") as opened:
        assert opened.namelist() == [MANIFEST, ROWS]
    package = unpack.unpack(tmp_path / "ours.zip", tmp_path / "out")
    assert design.load(package.study).base.trace == trace
    name = f"retrompi:{trace.name}"
    other = _changed(tmp_path / "ours.zip", tmp_path / "other.zip", manifest=lambda m: m["traces"][name].update(sha256="0"))
    with refused(InputError, "not-found"):
        unpack.unpack(other, tmp_path / "out2")


def test_differences_are_told_with_what_may_explain_them(small: StoredStudy) -> None:
    rows = reference_rows(small)
    assert compare(rows, rows) == []
    other = json.loads(json.dumps(rows))
    assert compare(rows, other) == []
    other[2] |= {"time_s": 1.0, "code_version": "0.1.0+other"}
    other[3]["points"][1]["time_us"] = 0.5
    found = compare(rows, other[:-1])
    assert [(d.position, d.what) for d in found] == [(None, "code_version"), (2, "time_s"), (3, "point 1, time_us"), (5, "point")]
    assert (found[2].packed, found[2].here) == (str(rows[3]["points"][1]["time_us"]), "0.5")
    assert found[3].here == "missing"


# -- hostile zips --------------------------------------------------------------------------------------------------------


def _changed(
    source: Path, target: Path, *, manifest: Callable[[dict[str, Any]], Any] | None = None, add: dict[str, bytes] | None = None,
    link: str = "", twice: str = "", replaced: dict[str, bytes] | None = None,
) -> Path:
    with zipfile.ZipFile(source) as opened, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in opened.namelist():
            data = (replaced or {}).get(name, opened.read(name))
            if name == MANIFEST and manifest is not None:
                told = json.loads(data)
                manifest(told)
                data = json.dumps(told).encode()
            out.writestr(name, data)
        for name, data in (add or {}).items():
            out.writestr(name, data)
        if link:
            info = zipfile.ZipInfo("models/x/link")
            info.external_attr = 0o120777 << 16
            out.writestr(info, link)
        if twice:
            out.writestr(twice, b"again")
    return target


def _base(**changed: Any) -> Callable[[dict[str, Any]], None]:
    def change(told: dict[str, Any]) -> None:
        told["definition"]["base"].update(changed)

    return change


def _defined(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda told: told["definition"].update(changed)


DISGUISED = [
    *[_defined(set={key: "/tmp/evil"}) for key in ("model", " model", "model ", "\tmodel", "\u2003model", "platform ", " platform\n")],
    *[_defined(vary={key: value}) for key in (" model", "platform ")
      for value in ("/tmp/evil", ["wmpi", "/tmp/evil"], 'wmpi," /tmp/evil"')],
    *[_defined(zip=[{key: ["/tmp/evil", "wmpi"], "seed": ["1", "2"]}]) for key in ("model", "model ", " platform")],
    *[_defined(set={"model": value}) for value in (" /tmp/evil", "./evil", "evil", "wmpi:/tmp/evil", "wmpi/../../evil", "ｗmpi", "WMPI")],
    *[_defined(vary={"platform": value}) for value in (" /tmp/evil.toml", "evil", "nt-pair*2*3", "nt-pair/../nt-pair", "./nt-pair*2")],
    *[_defined(vary={key: ["/etc/passwd"]}) for key in ("trace.file", "trace.file ", " trace.file")],
    _defined(base={}), _defined(base={}, scenario="/tmp/evil.toml"), _defined(scenario="bf-wmpi-shared"), _defined(folder="/etc"),
    lambda m: (m["definition"].update(base={}), m["definition"].update(scenario="../evil.toml")),
    _defined(**{"vary ": {"model": "/tmp/evil"}}), _defined(Vary={"model": "/tmp/evil"}),
    _defined(set={"model": "hpvm", "model ": "/tmp/evil"}),
    _base(trace={"file": "/etc/passwd", "file ": "x"}), _base(trace={"file": ["/etc/passwd"]}), _base(**{"model ": "/tmp/evil"}),
    _base(job=[{"model": "wmpi", "mode": "shared", "trace": {"file": "/etc/passwd"}}]), _base(trace="/etc/passwd"),
    lambda m: (m["traces"].update({"/etc/passwd": {}}), m["definition"]["base"].update(trace={"file": "/etc/passwd"})),
    lambda m: (m["traces"].update({"zip:traces/1/x": {}}), m["definition"]["base"].update(trace={"file": "zip:traces/1/x"})),
    lambda m: (m["traces"].update({"zip:traces/1/../../x": {"left_out": "yes"}}),
               m["definition"]["base"].update(trace={"file": "zip:traces/1/../../x"})),
]
"""Definitions that name a file of this machine in a place, or by a spelling, where a reader may not look for one."""


@for_each(
    "how, message",
    [
        ({"add": {"../evil": b"x"}}, "damaged-file | '../evil'"),
        ({"add": {"/etc/evil": b"x"}}, "damaged-file | '/etc/evil'"),
        ({"add": {"models/../../evil": b"x"}}, "damaged-file | 'models/../../evil'"),
        ({"add": {"models/x/.. /evil": b"x"}}, "damaged-file"),
        ({"add": {"models\\..\\evil": b"x"}}, "damaged-file"),
        ({"add": {"C:/evil": b"x"}}, "damaged-file"),
        ({"add": {"models/x/__init__.py": b"x"}}, "damaged-file"),
        ({"link": "/etc/passwd"}, "damaged-file | 'models/x/link'"),
        ({"twice": "ROWS.json"}, "damaged-file"),
        ({"manifest": lambda m: m.update(format=99)}, "bad-packed-study | 99"),
        ({"manifest": lambda m: m.pop("definition")}, "bad-packed-study | 'definition'"),
        ({"manifest": lambda m: m["files"][ROWS].update(sha256="0" * 64)}, "damaged-file | 'rows.json'"),
        ({"manifest": _base(model="/tmp/evil")}, "bad-packed-study | '/tmp/evil'"),
        ({"manifest": _base(model="zip:models/../../evil")}, "bad-packed-study"),
        ({"manifest": _base(model="zip:models/none")}, "bad-packed-study"),
        ({"manifest": _base(model="..")}, "bad-packed-study"),
        ({"manifest": _base(platform="./room.toml")}, "bad-packed-study | './room.toml'"),
        ({"manifest": _base(trace={"file": "/etc/passwd"})}, "bad-packed-study | '/etc/passwd'"),
        ({"manifest": _base(job=[{"model": "/tmp/evil"}])}, "bad-packed-study | '/tmp/evil'"),
        ({"manifest": lambda m: m["definition"]["vary"].update(model=["wmpi", "/tmp/evil"])}, "bad-packed-study | '/tmp/evil'"),
        ({"manifest": lambda m: m["definition"]["vary"].update(model="wmpi,/tmp/evil")}, "bad-packed-study | '/tmp/evil'"),
        ({"manifest": lambda m: m["definition"].update(vary=3)}, "bad-packed-study"),
        *[({"manifest": change}, "bad-packed-study") for change in DISGUISED],
    ],
)
def test_a_hostile_zip_gets_one_line_and_writes_nothing(small: StoredStudy, tmp_path: Path, how: dict[str, Any], message: str) -> None:
    pack(small, tmp_path / "good.zip")
    bad = _changed(tmp_path / "good.zip", tmp_path / "bad.zip", **how)
    target = tmp_path / "deep" / "out"
    with pytest.raises(RetrompiError) as error:
        unpack.unpack(bad, target)
    agrees(error.value, message)
    assert "\n" not in str(error.value)
    assert not target.parent.exists()
    assert not any(p.name.startswith("evil") for p in tmp_path.rglob("*"))


def test_a_value_of_another_type_in_a_zip_is_one_line(small: StoredStudy, tmp_path: Path) -> None:
    """Or it is as good as the one it replaced: nothing but an error of ours to the user ends it."""
    pack(small, tmp_path / "good.zip")
    wrong = [3, -1, 1e300, True, None, "x", "\ud800", "\0", [3], [[1]], [{"model": None}], {"model": 3}, {"model": {"a": [1]}},
             {"model": []}, {"seed": [None]}, {"a": {"b": {}}}, {"": ""}]
    told = json.loads(zipfile.ZipFile(tmp_path / "good.zip").read(MANIFEST))
    places = [(), ("definition",), ("definition", "base"), ("definition", "base", "trace"), ("definition", "vary"), ("files",), ("traces",)]
    tried = accepted = 0
    for place in places:
        for key in _inside(told, place):
            for value in wrong:
                changed = json.loads(json.dumps(told))
                _inside(changed, place)[key] = value
                bad = _changed(tmp_path / "good.zip", tmp_path / "bad.zip", replaced={MANIFEST: json.dumps(changed).encode()})
                tried += 1
                with suppress(RetrompiError):
                    design.check(design.load(unpack.unpack(bad, tmp_path / "out").study))
                    accepted += 1
                shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert tried - accepted > 250


def _inside(told: dict[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    for name in place:
        told = told[name]
    return told


def test_a_trace_of_a_zip_names_no_file_outside_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by its index, nor, with the other rule of such an index, below the current directory."""
    (tmp_path / "there").mkdir()
    (tmp_path / "secret.txt").write_text("1 init\n1 finalize\n")
    traces.write(generate.pingpong([0], 1), tmp_path / "there" / "several")
    text = """
name = "one"
[base]
model = "wmpi"
platform = "nt-pair"
mode = "distributed"
[base.trace]
file = "several"
[set]
"seed" = "2"
"""
    pack(ran(text, tmp_path / "there", open_store(tmp_path / "there.db")), tmp_path / "good.zip")
    monkeypatch.chdir(tmp_path)
    inside = "traces/1/several/index.txt"
    for name in (str(tmp_path / "secret.txt"), "secret.txt", "../../../../secret.txt"):
        index = f"rank-0.txt\n{name}\n".encode()

        def change(told: dict[str, Any], index: bytes = index) -> None:
            told["files"][inside]["sha256"] = hashlib.sha256(index).hexdigest()

        bad = _changed(tmp_path / "good.zip", tmp_path / "bad.zip", manifest=change, replaced={inside: index})
        folder = tmp_path / f"out{len(name)}"
        package = unpack.unpack(bad, folder)
        with refused(InputError, "not-found | index.txt:2 | unpacked study"):
            traces.read(folder / "traces" / "1" / "several")
        store = open_store(tmp_path / "bad.db")
        found = stored_study.read(store, run_study(store, design.load(package.study)).study_id)
        assert [r["outcome"] for r in found.rows] == ["error"]
        untrusted.trust(folder)
        assert traces.read(folder / "traces" / "1" / "several").ranks == 2


def test_a_zip_that_swells_is_stopped(packed: tuple[StoredStudy, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MOST_BYTES", 1000)
    with refused(InputError, "damaged-file | 0 MiB"):
        unpack.unpack(packed[1], tmp_path / "out")
    monkeypatch.setattr(unpack, "MOST_FILES", 2)
    with refused(InputError, "damaged-file"):
        unpack.unpack(packed[1], tmp_path / "out2")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and nonsense", b"hello" * 1000])
def test_what_is_no_zip_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.zip").write_bytes(content)
    with refused(InputError, "bad-packed-study"):
        unpack.unpack(tmp_path / "bad.zip", tmp_path / "out")
    with refused(InputError, "unreadable-file"):
        unpack.unpack(tmp_path / "none.zip")


def test_a_damaged_byte_is_one_line_or_does_no_harm(small: StoredStudy, tmp_path: Path) -> None:
    pack(small, tmp_path / "good.zip")
    good = (tmp_path / "good.zip").read_bytes()
    refused = []
    for at in range(0, len(good), 11):
        (tmp_path / "bad.zip").write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        try:
            unpack.unpack(tmp_path / "bad.zip", tmp_path / f"out{at}")
        except RetrompiError as error:
            refused.append(str(error))
    assert len(refused) > len(good) / 11 / 2
    assert not any("\n" in line for line in refused)


def test_a_folder_with_something_in_it_is_left_alone(small: StoredStudy, tmp_path: Path) -> None:
    pack(small, tmp_path / "good.zip")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with refused(InputError, "exists-already"):
        unpack.unpack(tmp_path / "good.zip", tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_a_trace_that_is_gone_cannot_be_packed(tmp_path: Path) -> None:
    found = ran(whole_study(tmp_path / "there"), tmp_path / "there", open_store(tmp_path / "there.db"))
    (tmp_path / "there" / "one.ti").unlink()
    with refused(UsageError, "not-found | one.ti"):
        pack(found, tmp_path / "whole.zip")


# -- the commands --------------------------------------------------------------------------------------------------------


@pytest.fixture
def mine(packed: tuple[StoredStudy, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A packed study with a model of its own, and an empty store elsewhere."""
    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "elsewhere.db"))
    monkeypatch.chdir(tmp_path)
    return packed[1]


def test_python_in_a_zip_runs_only_when_somebody_says_so(mine: Path, retrompi: Callable[..., Any], tmp_path: Path) -> None:
    refused = retrompi("study", "run", str(mine), "--check")
    assert refused.code == 2
    agrees(refused, "untrusted-code")
    agrees(refused, "untrusted-code | --trust")
    assert list((tmp_path / "data").rglob("ran")) == []
    done = retrompi("study", "run", str(mine), "--check", "--trust", "-j", "1")
    assert (done.code, done.out) == (0, "all 12 points are unchanged\n"), done.err
    assert len(list((tmp_path / "data").rglob("ran"))) == 1


def test_what_would_run_is_shown_and_a_study_unpacked_before_needs_the_same_word(
    mine: Path, retrompi: Callable[..., Any], tmp_path: Path
) -> None:
    script = b"raise SystemExit('this ran')"
    held = {"sha256": hashlib.sha256(script).hexdigest(), "bytes": len(script)}
    more = ("traces/2/several/__init__.py", "models/mine/helper.py")
    also = dict.fromkeys(more, held)
    bad = _changed(mine, tmp_path / "more.zip", add=dict.fromkeys(more, script), manifest=lambda m: m["files"].update(also))
    done = retrompi("study", "run", str(bad))
    assert done.code == 2
    agrees(done, "untrusted-code | models/mine/__init__.py (for the model mine) | models/mine/helper.py | traces/2/several/__init__.py")
    done = retrompi("study", "unpack", str(bad), "out")
    assert done.code == 0
    assert all(name in done.err for name in (*more, "--trust"))
    done = retrompi("study", "run", "out/study.toml", "-j", "1")
    assert done.code == 2
    agrees(done, "untrusted-code | models/mine/__init__.py | --trust")
    for command in (("pingpong", "--model", "./out/models/mine"), ("pingpong", "--model", "./out/traces/2/several"),
                    ("models", "show", "./out/models/mine")):
        agrees(retrompi(*command), "untrusted-code")
    assert list((tmp_path / "out").rglob("ran")) == []
    done = retrompi("study", "run", "out/study.toml", "--trust", "-j", "1")
    assert done.code == 0, done.err
    agrees(retrompi("study", "run", "out/study.toml", "--trust"), "unused-option | --trust")


def test_check_says_where_numbers_part_and_ends_with_one(mine: Path, retrompi: Callable[..., Any], tmp_path: Path) -> None:
    with zipfile.ZipFile(mine) as opened:
        rows = json.loads(opened.read(ROWS))
    rows[1]["time_s"] = 1.5
    rows[1]["code_version"] = "0.0.9+00000000"
    data = json.dumps(rows).encode()
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(mine) as opened, zipfile.ZipFile(other, "w") as out:
        for name in opened.namelist():
            told = json.loads(opened.read(name)) if name == MANIFEST else None
            if told is not None:
                told["files"][ROWS]["sha256"] = hashlib.sha256(data).hexdigest()
            out.writestr(name, data if name == ROWS else json.dumps(told) if told is not None else opened.read(name))
    done = retrompi("study", "run", str(other), "--check", "--trust", "--json", "-j", "1")
    assert done.code == 1
    found = json.loads(done.out)
    assert [(d["position"], d["what"]) for d in found] == [(None, "code_version"), (1, "time_s")]
    assert found[1]["packed"] == "1.5"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "none"), "unknown-study | 'none'"),
        (("show", "proxy-cost"), "not-run-yet | 'proxy-cost' | proxy-cost"),
        (("show", "small", "--metric", "speed"), "unknown-metric | 'speed'"),
        (("show", "small", "--metric", "section"), "no-metric | 'section'"),
        (("show", "small", "--by", "nothing"), "unknown-name | 'nothing'"),
        (("show", "small", "-o", "x.txt"), "unknown-format"),
        (("figure", "small", "-o", "x.pdf"), "unknown-format"),
        (("figure", "small", "-o", "x.html", "--chart", "speedup"), "no-figure | speed-up"),
        (("export", "small"), "missing-option"),
        (("export", "small", "-o", "x.xlsx"), "unknown-format"),
        (("pack", "small", "-o", "x.tar"), "unknown-format"),
        (("unpack", "none.zip"), "unreadable-file"),
        (("run", "small", "--check"), "unused-option | --check"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: tuple[str, ...], message: str, small: StoredStudy, here_db: Path, retrompi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETROMPI_STORE", str(here_db))
    done = retrompi("study", *words)
    assert done.code == 2
    agrees(done, message)
    assert done.err.count("\n") == 1


def test_jobs_beside_and_a_network_with_a_past_go_along(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    made = generate.pingpong([2048], 3)
    traces.write(made, there / "one.ti", shared=True)
    traces.write(made, there / "two.ti", shared=True)
    text = """
name = "crowded"
[vary]
"seed" = ["1", "2"]
[base]
model = "wmpi"
platform = "nt-cluster"
mode = "distributed"
traffic = ["n3->n4 2Mbps 1500B"]
[base.trace]
file = "one.ti"
[[base.job]]
model = "hpvm"
mode = "n1,n2"
[base.job.trace]
file = "two.ti"
"""
    before = ran(text, there, open_store(tmp_path / "there.db"))
    assert {r["outcome"] for r in before.rows} == {"completed"}, before.rows
    pack(before, tmp_path / "crowded.zip")
    there.rename(tmp_path / "gone")
    package = unpack.unpack(tmp_path / "crowded.zip", tmp_path / "out")
    store = open_store(tmp_path / "out.db")
    after = stored_study.read(store, run_study(store, design.load(package.study)).study_id)
    assert compare(package.rows, reference_rows(after)) == []
    assert [r["time_s"] for r in reference_rows(after)] == [r["time_s"] for r in reference_rows(before)]
