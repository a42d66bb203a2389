"""Evidence crates: what is in them, that the official validator finds nothing, and that one changed byte anywhere is found."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import agrees, refused
from rocrate_offline import TERMS

from retrompi.base.errors import InputError, UsageError
from retrompi.crate import container, derive, record
from retrompi.crate.container import MANIFEST, METADATA
from retrompi.crate.verify import Rebuild, digest_of, verify
from retrompi.papers import run_papers
from retrompi.papers.reproduce.agreement import with_agreement
from retrompi.papers.statements.paper import working_with
from retrompi.papers.statements.scaffold import create
from retrompi.store import open_store
from retrompi.studies.draws.uncertainty import Spec
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study
from retrompi.studies.read import stored_study

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ABOUT = record.Circumstances("A. Tester", "https://spdx.org/licenses/LGPL-2.1-or-later", "https://orcid.org/0000-0002-1825-0097",
                             "A House", "https://example.org/")
STUDY = """name = "packets"
scenario = "bf-wmpi-shared"
metric = "bandwidth@1MiB"
[vary]
"wmpi.packet" = ["64KiB", "256KiB"]
[set]
"sizes" = "0,1MiB"
"reps" = 1
"""
"""The second point aborts: a packet is larger than the pool."""

Files = dict[str, bytes]


SPEC = Spec(draws=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Files, record.CrateRecord]]:
    """The crates of a paper and of a study, with the records that they were made of."""
    folder = tmp_path_factory.mktemp("crates")
    store = open_store(folder / "store.db")
    create(folder / "mypaper")
    with working_with(str(folder / "mypaper")) as plans:
        done = run_papers([plans[0].key], store)[0]
        paper = record.of_paper(done, store)
    sure = with_agreement(run_papers(["mpptest-1994"], store), store, SPEC)[0]
    (folder / "packets.toml").write_text(STUDY, encoding="utf-8")
    ran = run_study(store, design.study(str(folder / "packets.toml")))
    found = stored_study.read(store, ran.study_id, together=True)
    study = record.of_study(found)
    out = {}
    crates = {"paper": (paper, done.runs), "sure": (record.of_paper(sure, store), sure.runs),
              "study": (study, [r["run_id"] for r in found.rows])}
    for name, (each, ids) in crates.items():
        about = record.circumstances(ABOUT, [store.run(i) for i in ids], NOW)
        out[name] = derive.complete(each.record, about, each.inputs), each
    return out


def anew(files: Files, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Files:
    """The crate that somebody makes who changes a fact and then everything that follows from it."""
    told, about = json.loads(files[derive.RECORD]), json.loads(files[derive.CIRCUMSTANCES])
    change(told, about)
    inputs = {n: d for n, d in files.items() if n.partition("/")[0] in ("paper", "study", "inputs")}
    return derive.complete(told, about, inputs)


def findings(files: Files, folder: Path, *, rebuild: bool = False, **more: Any) -> list[tuple[str, str]]:
    container.place(files, folder)
    return [(f.file, f.what) for f in verify(folder, rebuild=Rebuild(workers=1) if rebuild else None, **more).findings]


def wrong(crate: Path) -> list[str]:
    """What is said of a crate, which is one line for each finding, or that it is none."""
    try:
        return [f"{f.file}: {f.what}" for f in verify(crate).findings]
    except InputError as error:
        return [str(error)]


@pytest.mark.parametrize("kind", ["paper", "sure", "study"])
def test_a_crate_is_made_again_from_itself(made: Any, kind: str, tmp_path: Path) -> None:
    """Every run is simulated again, into a new store; folder and zip are the same crate."""
    files, _ = made[kind]
    container.write(files, tmp_path / "crate.zip")
    container.write(files, tmp_path / "crate")
    told = verify(tmp_path / "crate.zip", digest=digest_of(files), rebuild=Rebuild(workers=1))
    assert (told.findings, told.remarks) == ([], [])
    assert told.runs == len(json.loads(files[derive.RECORD])["runs"]) > 0
    assert told.numbers > 100
    assert verify(tmp_path / "crate").digest == told.digest
    assert (tmp_path / "crate.zip").read_bytes() == container.zip_files(files)


def test_from_sentence_to_verdict(made: Any) -> None:
    """The metadata lead from a statement to its verdict, to the runs and the function that judged, to the parameters and their sources."""
    files, _ = made["paper"]
    graph = {e["@id"]: e for e in json.loads(files[METADATA])["@graph"]}

    def to(entity: Any, key: str) -> list[dict[str, Any]]:
        found = entity.get(key, [])
        return [graph[e["@id"]] for e in (found if isinstance(found, list) else [found])]

    review = next(e for e in graph.values() if e["@type"] == "ClaimReview" and len(to(e, "isBasedOn")) > 1)
    (claim,) = to(review, "itemReviewed")
    assert claim["@type"] == "Claim"
    assert to(claim, "appearance")[0]["@type"] == "ScholarlyArticle"
    (rating,) = to(review, "reviewRating")
    assert rating["alternateName"] in ("pass", "fail")
    based = to(review, "isBasedOn")
    run = next(e for e in based if e["@type"] == "CreateAction")
    function = next(e for e in based if e["@type"] == "SoftwareSourceCode")
    assert function["name"].startswith("retrompi.papers.")
    assert re.fullmatch("[0-9a-f]{64}", function["sha256"])
    parameters = next(e for e in to(run, "object") if e["@id"].startswith("parameters/"))
    values = to(parameters, "mentions")
    ranged = [v for v in values if "minValue" in v]
    assert ranged
    assert all(v["measurementTechnique"] and v["minValue"] <= v["maxValue"] for v in ranged)
    assert review["reviewAspect"].startswith(("held out", "fitted"))
    assert run["startTime"] < run["endTime"]
    page = files["ro-crate-preview.html"].decode()
    assert f'id="{claim["@id"].removeprefix("#")}"' in page
    for mark in re.findall(r'href="#([^"%]+)"', page):
        assert f'id="{mark}"' in page


def test_a_paper_s_draws_are_in_its_crate(made: Any) -> None:
    """The share of draws that pass and the interval of what is simulated, for programs and for people; intervals of the curves."""
    files, _ = made["sure"]
    told = json.loads(files[derive.RECORD])
    assert told["uncertainty"] == {"level": SPEC.level, "draws": 3, "seed": SPEC.seed, "discrepancy": True, "population": False}
    graph = {e["@id"]: e for e in json.loads(files[METADATA])["@graph"]}
    drawn = [s for s in told["statements"] if "agreement" in s]
    assert {s["verdict"]["word"] for s in told["statements"] if s not in drawn} <= {"unjudged"}
    spread = 0
    for s in drawn:
        seen, share = s["agreement"], graph[f"#verdict-{s['id']}-share"]
        assert share["value"] == seen["share"]
        assert round(seen["share"] * 3, 9) in (0, 1, 2, 3)
        about = graph[f"#verdict-{s['id']}"]["about"]
        assert {"@id": share["@id"]} in (about if isinstance(about, list) else [about])
        if seen["observed_low"] is not None:
            interval = graph[f"#verdict-{s['id']}-interval"]
            assert interval["minValue"] <= interval["value"] <= interval["maxValue"]
            assert interval["measurementTechnique"] == "90% interval over 3 draws of the parameters"
            spread += interval["minValue"] < interval["maxValue"]
    assert spread > 5
    bands = list(csv.DictReader(io.StringIO(files["results/intervals.csv"].decode())))
    assert bands
    assert all(float(b["low_us"]) <= float(b["median_us"]) <= float(b["high_us"]) for b in bands)
    assert "of the draws pass" in files["ro-crate-preview.html"].decode()


def test_draws_that_a_record_asks_for_are_no_trap(made: Any, tmp_path: Path) -> None:
    files, _ = made["sure"]
    for i, wrong_one in enumerate(({"draws": 10**9}, {"level": 2.0}, {"draws": True}, {"of": "all"})):
        there = anew(files, lambda told, _, changed=wrong_one: told["uncertainty"].update(changed))
        assert [w for _, w in findings(there, tmp_path / str(i), rebuild=True)] == [
            "cannot be rebuilt: its record asks for draws that cannot be made"
        ]


def test_facts_that_are_others_whenever_they_are_made_are_left_out() -> None:
    assert record.lasting({"nas": {"ISA": {"timed_s": 2.0, "replay_s": 0.1, "run_id": 26}}}) == {"nas": {"ISA": {"timed_s": 2.0}}}


def test_prov_and_rocrate_read_by_their_own_libraries(made: Any, tmp_path: Path) -> None:
    prov = pytest.importorskip("prov.model")
    library = pytest.importorskip("rocrate.rocrate")
    for kind, (files, _) in made.items():
        document = prov.ProvDocument.deserialize(io.StringIO(files["prov.json"].decode()), format="json")
        activities = list(document.get_records(prov.ProvActivity))
        told = json.loads(files[derive.RECORD])
        assert len(activities) == len(told["runs"]) + (kind != "study")
        container.place(files, tmp_path / kind)
        crate = library.ROCrate(str(tmp_path / kind))
        assert crate.mainEntity.id == told["workflow"]
        assert {e.id for e in crate.data_entities} >= set(files) - {METADATA, MANIFEST, "ro-crate-preview.html"}


@pytest.mark.parametrize("kind", ["paper", "sure", "study"])
def test_the_official_validator_finds_nothing(made: Any, kind: str, tmp_path: Path) -> None:
    """All that the Provenance Run Crate and the profiles below it require, offline; of what they recommend, all but one thing that no
    file in a crate can fulfil: that the address of a workflow is absolute."""
    pytest.importorskip("rocrate_validator")
    files, _ = made[kind]
    graph = json.loads(files[METADATA])
    used = {k for e in graph["@graph"] for k in e if not k.startswith("@")}
    used |= {t for e in graph["@graph"] for t in ([e["@type"]] if isinstance(e["@type"], str) else e["@type"])}
    assert used <= {*TERMS, *graph["@context"][1]}
    container.place(files, tmp_path / "crate")
    report = tmp_path / "report.json"
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("rocrate_offline.py")), str(tmp_path / "crate"), str(report)],
                          capture_output=True, text=True, timeout=600, check=False)
    assert report.is_file(), done.stdout + done.stderr
    issues = json.loads(report.read_text(encoding="utf-8"))["issues"]
    assert {(i["severity"], i["message"]) for i in issues} <= {("RECOMMENDED", "The SoftwareApplication id SHOULD be an absolute URI")}


# --- one byte changed -------------------------------------------------------------------------------------------------------------


def test_every_byte_of_every_small_file(made: Any) -> None:
    """Each position of each small file, and the ends and every thousandth byte of the others: the file is named."""
    for files, _ in made.values():
        for name, data in files.items():
            step = 1 if len(data) < 600 else max(len(data) // 40, 1)
            for at in {*range(0, len(data), step), len(data) - 1}:
                changed = bytearray(data)
                changed[at] ^= 1 << (at % 8)
                found = container.check_manifest({**files, name: bytes(changed)})
                assert found, (name, at)
                assert name == MANIFEST or {f.file for f in found} == {name}


@settings(max_examples=40)
@given(st.data())
def test_a_changed_byte_in_a_folder_or_a_zip(made: Any, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    files, _ = made[data.draw(st.sampled_from(["paper", "study"]))]
    place = tmp_path_factory.mktemp("flip")
    if data.draw(st.booleans()):
        container.write(files, place / "crate")
        file = place / "crate" / data.draw(st.sampled_from(sorted(files)))
        crate = place / "crate"
    else:
        container.write(files, place / "crate.zip")
        file = crate = place / "crate.zip"
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(content)
    assert wrong(crate)
    shutil.rmtree(place)


def test_every_byte_of_what_the_zip_says_of_its_files(made: Any, tmp_path: Path) -> None:
    """The headers and the directory of a zip hold times, modes and sizes, which no hash of a file covers."""
    files = {n: made["study"][0][n] for n in (METADATA, MANIFEST, "README.md")}
    whole = container.zip_files(files)
    with zipfile.ZipFile(io.BytesIO(whole)) as opened:
        start = opened.start_dir
        heads = {i.header_offset + k for i in opened.infolist() for k in range(30 + len(i.filename))}
    crate = tmp_path / "crate.zip"
    for at in sorted(heads | set(range(start, len(whole)))):
        changed = bytearray(whole)
        changed[at] ^= 0x10
        crate.write_bytes(changed)
        assert wrong(crate), at


def test_a_file_more_or_less(made: Any, tmp_path: Path) -> None:
    files, _ = made["study"]
    assert findings({**files, "more.txt": b""}, tmp_path / "a") == [("more.txt", "is not in the manifest")]
    assert findings({n: d for n, d in files.items() if n != "README.md"}, tmp_path / "b") == [("README.md", "is missing")]
    (tmp_path / "c").mkdir()
    container.write(files, tmp_path / "c" / "crate.zip")
    with (tmp_path / "c" / "crate.zip").open("ab") as out:
        out.write(b"\0")
    assert verify(tmp_path / "c" / "crate.zip").findings


def test_the_command_line_names_the_file(made: Any, retrompi: Any, tmp_path: Path) -> None:
    files, _ = made["paper"]
    container.write(files, tmp_path / "crate")
    file = tmp_path / "crate" / "results" / "points.csv"
    file.write_bytes(file.read_bytes().replace(b"1", b"2", 1))
    done = retrompi("crate", "verify", str(tmp_path / "crate"))
    assert done.code == 1
    assert done.out.splitlines() == ["results/points.csv: is not what was written: another SHA-256 than in the manifest"]
    told = json.loads(retrompi("crate", "verify", str(tmp_path / "crate"), "--files-only", "--json").out)
    assert [f["file"] for f in told["findings"]] == ["results/points.csv"]
    agrees(retrompi("crate", "show", str(tmp_path / "crate")), "damaged-file | results/points.csv")


# --- changed, and everything that follows from it ---------------------------------------------------------------------------------


def test_a_page_that_says_something_else(made: Any, tmp_path: Path) -> None:
    """With a new manifest the hashes agree; the page does not follow from the record."""
    files, _ = made["paper"]
    changed = {**files, "ro-crate-preview.html": files["ro-crate-preview.html"].replace(b"<h1>", b"<h1>All passes: ")}
    changed[MANIFEST] = container.manifest_of(changed)
    assert [f for f, _ in findings(changed, tmp_path / "crate")] == ["ro-crate-preview.html"]


@pytest.mark.parametrize("kind", ["paper", "study"])
def test_a_number_and_all_that_follows_from_it(made: Any, kind: str, tmp_path: Path) -> None:
    """Only simulating it again tells."""
    files, _ = made[kind]

    def slower(told: dict[str, Any], about: dict[str, Any]) -> None:
        told["runs"][0]["points"][0]["time_us"] *= 1.0000001

    changed = anew(files, slower)
    assert findings(changed, tmp_path / "crate") == []
    ((file, what),) = findings(changed, tmp_path / "crate", rebuild=True)
    assert (file, what.split()[0]) == (derive.RECORD, "/runs/0/points/0/time_us")


def test_a_verdict_and_all_that_follows_from_it(made: Any, tmp_path: Path) -> None:
    files, _ = made["paper"]

    def better(told: dict[str, Any], about: dict[str, Any]) -> None:
        told["statements"][0]["verdict"]["word"] = "pass" if told["statements"][0]["verdict"]["word"] != "pass" else "fail"
        told["parameters"][0]["rows"][0]["source"] = "paper: somewhere else"

    found = findings(anew(files, better), tmp_path / "crate", rebuild=True)
    assert [what.split()[0] for _, what in found] == ["/parameters/0/rows/0/source", "/statements/0/verdict/word"]


def test_another_crate_is_told_by_its_digest_alone(made: Any, tmp_path: Path) -> None:
    """Who, when and where cannot be made again: nothing in the crate tells that they were changed."""
    files, _ = made["study"]

    def somebody(told: dict[str, Any], about: dict[str, Any]) -> None:
        about["agent"] = "Somebody Else"

    changed = anew(files, somebody)
    assert findings(changed, tmp_path / "crate", rebuild=True) == []
    ((_, what),) = findings(changed, tmp_path / "crate", digest=digest_of(files))
    assert what == f"the digest is {digest_of(changed)}, not {digest_of(files)}"


def test_another_version_of_retrompi(made: Any, tmp_path: Path) -> None:
    """Its numbers are compared, the hashes of its code are not."""
    files, _ = made["study"]

    def older(told: dict[str, Any], about: dict[str, Any]) -> None:
        told["software"]["code_version"] = "0.1.0+00000000"
        told["runs"][0]["identity"] = "0" * 64

    container.place(anew(files, older), tmp_path / "crate")
    found = verify(tmp_path / "crate", rebuild=Rebuild(workers=1))
    assert found.findings == []
    assert "0.1.0+00000000" in found.remarks[0]


# --- crates of others -------------------------------------------------------------------------------------------------------------


def _zip(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED, mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, compression
            out.writestr(info, data)
    return path


def test_hostile_archives_are_refused(made: Any, tmp_path: Path) -> None:
    files, _ = made["study"]
    bad = tmp_path / "bad.zip"
    for name in ("../out", "/etc/passwd", "a/../../b", "a\\b", "x/./y", "CON:"):
        with refused(InputError, "bad-crate | holds"):
            container.read(_zip(bad, {**files, name: b""}))
    with refused(InputError, "bad-crate | compressed"):
        container.read(_zip(bad, {**files, "bomb": bytes(10 << 20)}, zipfile.ZIP_DEFLATED))
    with refused(InputError, "bad-crate | link"):
        container.read(_zip(bad, {"link": b"/etc/passwd"}, mode=0o120777))
    with refused(InputError, "duplicate-name | readme.md"):
        container.read(_zip(bad, {**files, "readme.md": b""}))
    with refused(InputError, "bad-crate | ro-crate-metadata.json"):
        container.read(_zip(bad, {MANIFEST: b""}))
    bad.write_bytes(b"PK\3\4 nothing")
    with refused(InputError, "bad-crate | no zip"):
        container.read(bad)
    with refused(InputError, "unreadable-file"):
        container.read(tmp_path / "nowhere")
    container.place(files, tmp_path / "crate")
    (tmp_path / "crate" / "link").symlink_to("/etc/passwd")
    with refused(InputError, "bad-crate | link"):
        container.read(tmp_path / "crate")


@for_each("text", [b"[]", b"{}", b"{", b"[" * 100_000, b'{"format": 1}', b'{"format": 1, "kind": "paper", "runs": 3}'])
def test_a_record_that_is_none(made: Any, text: bytes, tmp_path: Path, retrompi: Any) -> None:
    files = {**made["study"][0], derive.RECORD: text}
    files[MANIFEST] = container.manifest_of(files)
    container.place(files, tmp_path / "crate")
    done = retrompi("crate", "verify", str(tmp_path / "crate"))
    assert done.code in (1, 2)
    assert len((done.out + done.err).splitlines()) == 1


def test_nothing_of_a_crate_is_run_before_it_is_trusted(made: Any, tmp_path: Path) -> None:
    files, _ = made["paper"]
    code = {**files, "paper/mypaper/models/mine/__init__.py": b"raise SystemExit('run')\n"}
    inputs = {n: d for n, d in code.items() if n.partition("/")[0] in ("paper", "inputs")}
    whole = derive.complete(json.loads(files[derive.RECORD]), json.loads(files[derive.CIRCUMSTANCES]), inputs)
    container.place(whole, tmp_path / "crate")
    assert verify(tmp_path / "crate").findings == []
    with refused(UsageError, "untrusted-code | models/mine/__init__.py | --trust"):
        verify(tmp_path / "crate", rebuild=Rebuild(workers=1))


def test_a_paper_of_somebody_else_reads_no_file_of_this_machine(made: Any, tmp_path: Path) -> None:
    files, _ = made["paper"]
    text = files["paper/mypaper/paper.toml"].replace(b"curves/example.csv", b"/etc/passwd")
    assert text != files["paper/mypaper/paper.toml"]
    inputs = {n: d for n, d in files.items() if n.partition("/")[0] in ("paper", "inputs")} | {"paper/mypaper/paper.toml": text}
    whole = derive.complete(json.loads(files[derive.RECORD]), json.loads(files[derive.CIRCUMSTANCES]), inputs)
    ((_, what),) = findings(whole, tmp_path / "crate", rebuild=True)
    assert "'/etc/passwd', which is outside of the crate" in what


def test_write_show_and_verify_from_the_command_line(retrompi: Any, tmp_path: Path) -> None:
    (tmp_path / "packets.toml").write_text(STUDY, encoding="utf-8")
    assert retrompi("study", "run", str(tmp_path / "packets.toml"), "-j", "1").code == 0
    crate = tmp_path / "packets.zip"
    (row,) = json.loads(retrompi("crate", "write", "packets", "-o", str(crate), "--agent", "J. Doe", "--json").out)
    done = retrompi("crate", "verify", str(crate), "--digest", row["digest"], "-j", "1")
    assert (done.code, done.out.splitlines()[1]) == (0, f"digest {row['digest']}")
    told = json.loads(retrompi("crate", "show", str(crate), "--json").out)
    assert [r["outcome"] for r in told["rows"]] == ["completed", "aborted"]
    assert told["about"]["by"] == "J. Doe"
    agrees(retrompi("crate", "write", "packets", "-o", str(crate)), "exists-already")
    agrees(retrompi("crate", "write", "packetz", "-o", str(tmp_path / "x.zip")), "unknown-study | packetz")
    agrees(retrompi("crate", "write", "packets", "-o", str(tmp_path / "x.zip"), "--orcid", "1234"), "bad-syntax | 1234")
    agrees(retrompi("crate", "verify", str(crate), "--digest", "12"), "bad-syntax | 64")
    agrees(retrompi("crate", "show", str(crate), "BF-1"), "unknown-claim | BF-1")




def test_a_model_of_ones_own_is_run_when_it_is_trusted(toy: Path, retrompi: Any, tmp_path: Path) -> None:
    """It is in the crate, and what it is called does not depend on where it was."""
    (tmp_path / "own.toml").write_text(STUDY.replace('"wmpi.packet" = ["64KiB", "256KiB"]', f'"model" = ["{toy}"]'), encoding="utf-8")
    assert retrompi("study", "run", str(tmp_path / "own.toml"), "-j", "1").code == 0
    crate = tmp_path / "own.zip"
    assert retrompi("crate", "write", "packets", "-o", str(crate)).code == 0
    agrees(retrompi("crate", "verify", str(crate), "-j", "1"), f"untrusted-code | models/{toy.name}/__init__.py")
    assert retrompi("crate", "verify", str(crate), "--files-only").code == 0
    done = retrompi("crate", "verify", str(crate), "--trust", "-j", "1")
    assert (done.code, done.out.partition(":")[0]) == (0, "nothing found"), done.out
    with zipfile.ZipFile(crate) as opened:
        assert not [n for n in opened.namelist() if str(toy).encode() in opened.read(n)]
