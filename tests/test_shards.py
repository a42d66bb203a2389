"""Studies in shards: each is run by itself into a store of its own, and merged they are the study; what is missing is told."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shards
from doc_pages import blocks
from postgres import Server
from refusals import refused
from study_runs import small

from retrompi.base.errors import StoreError
from retrompi.cli.main import run as cli
from retrompi.store import open_store
from retrompi.store.schema import RUN
from retrompi.studies.archive.merge import command_of, merge
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study

FIXED = {"sizes": "0,1KiB", "reps": "2"}


def seeds(vary: str = "seed=1..7", name: str = "seeds", **fixed: str) -> design.Study:
    return design.from_command("bf-wmpi-shared", [vary], set_={**FIXED, **fixed}).with_name(name)


def in_shards(folder: Path, study: design.Study, shards: int, left_out: tuple[int, ...] = ()) -> list[Path]:
    files = []
    for i in range(1, shards + 1):
        if i not in left_out:
            files.append(folder / f"shard-{i}.db")
            run_study(open_store(files[-1]), study.part(i, shards))
    return files


def test_shards_are_a_partition_of_the_points() -> None:
    for study in (seeds(), small(), seeds("wmpi.packet=64KiB,128KiB")):
        for n in (1, 2, 3, 5, 40):
            found = [p for i in range(1, n + 1) for p in design.each(study.part(i, n))]
            whole = {p.position: (p.values, p.scenario) for p in design.each(study)}
            assert {p.position: (p.values, p.scenario) for p in found} == whole
            assert len(found) == len(whole) == sum(design.count(study.part(i, n)) for i in range(1, n + 1))
            assert sorted(p for i in range(1, n + 1) for p in design.positions(study.part(i, n))) == sorted(whole)
            assert study.part(1, n).hash == study.hash


def test_draws_stay_with_their_point() -> None:
    from dataclasses import replace

    study = replace(small(), draws=3)
    positions = [p.position for p in design.each(study.part(2, 7))]
    assert positions == list(design.positions(study.part(2, 7)))
    assert [p % 4 for p in positions] == [0, 1, 2, 3] * (len(positions) // 4)


def test_gaps_are_told_with_the_command_that_fills_them(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = in_shards(tmp_path, seeds(), 3, left_out=(2,))
    command = ["--store", "all.db", "study", "merge", *map(str, files)]
    assert cli([*command, "--json"]) == 1
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert (row["points"], row["stored"], row["missing"]) == (7, 5, 2)
    assert [(g["shard"], g["shards"], g["points"]) for g in row["gaps"]] == [(2, 3, 2)]
    assert f"missing: 2 points of shard 2/3 of seeds: {row['gaps'][0]['command']}\n" in said.err
    words = shlex.split(row["gaps"][0]["command"])
    assert words[0] == "retrompi"
    assert cli(words[1:]) == 0
    capsys.readouterr()
    assert cli([*command, "shard-2.db", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["stored"], row["missing"], row["added"], row["gaps"]) == (1, 7, 0, 2, [])


def test_a_study_from_a_file_is_completed_from_the_merged_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its scenario has no name in the package: the command reads the definition in the store."""
    definition = {**seeds().definition(), "base": {**seeds().base.given, "title": "mine", "seed": 5}, "name": "mine"}
    study = design.from_definition(definition)
    (file,) = in_shards(tmp_path, study, 2, left_out=(1,))
    store = open_store(tmp_path / "all.db")
    ((one,), _, _) = merge(store, [file])
    words = shlex.split(one.gaps[0].command)
    assert words[:4] == ["retrompi", "study", "run", "mine"]
    assert cli(words[1:]) == 0
    ((one,), _, _) = merge(store, [file])
    assert (one.missing, one.stored) == (0, 7)


def test_commands_of_other_studies_make_the_same_study(tmp_path: Path) -> None:
    """With zipped axes, a sample, values with commas, and a metric."""
    from retrompi.cli.sweep import command

    store = open_store(tmp_path / "all.db")
    for study in (
        design.from_command("bf-wmpi-shared", ['trace.sizes="0,1KiB","1MiB"'], ["seed=1,2;wmpi.packet=64KiB,128KiB"]).with_name("zipped"),
        design.from_command("bf-wmpi-shared", ["wmpi.packet=64KiB..256KiB"], set_=FIXED, sample="lhs:5", seed=3),
    ):
        words = shlex.split(command_of(study.part(2, 3), store))
        context = command.make_context("sweep", words[2:])
        g = context.params
        again = design.from_command(g["scenario"], g["vary"], g["zips"], list(g["sets"]), sample=g["sample"], seed=g["seed"])
        assert again.hash == study.hash


def test_merging_keeps_tags_measurements_and_good_points(tmp_path: Path) -> None:
    from retrompi.store.identity import specification
    from retrompi.store.kept import Kept

    one, two = in_shards(tmp_path, seeds(), 2)
    store = open_store(one)
    store.tag_runs([1], "mine")
    spec = specification(seeds().base.question(), "native")
    for took in (1.0, 2.0):
        store.keep(Kept.of(spec, {"time_s": took}, points=[{"size_B": 1, "time_us": took, "bandwidth_MBps": 1.0, "repetitions": 1}]))
    target = open_store(tmp_path / "all.db")
    merge(target, [two, one])
    tagged = target.runs_tagged("mine")
    assert len(tagged) == 1
    assert target.run(tagged[0])["identity"] == store.run(1)["identity"]
    runs = [r for r in target.runs() if r["kind"] == "native"]
    assert [r["time_s"] for r in runs] == [1.0, 2.0]
    assert [target.points(r["id"])[0]["time_us"] for r in runs] == [1.0, 2.0]
    before = len(target.runs())
    merge(target, [one, two])
    assert len(target.runs()) == before
    assert target.runs_tagged("mine") == tagged
    # A point that could not be run there does not take the place of one that was here.
    study_id = target.find_study(seeds().hash)
    assert study_id is not None
    lost = {"position": 0, "axes": {"seed": "1"}, "identity": "", "run_id": None, "outcome": "error", "reason": "lost", "wall_s": 0.0}
    store.put_study_points(1, [lost])
    merge(target, [one])
    assert len(target.study_done(study_id)) == 7


def test_a_run_with_another_result_is_refused(tmp_path: Path) -> None:
    (file,) = in_shards(tmp_path, seeds(), 2, left_out=(2,))
    target = open_store(tmp_path / "all.db")
    merge(target, [file])
    other = open_store(file)
    with other._connect(write=True) as connection:
        connection.execute(RUN.update().where(RUN.c.id == 2).values(time_s=7.0))
    with refused(StoreError, "runs-differ | run 2 | completed in 7 s"):
        merge(target, [file])


def test_wrong_stores_and_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "all.db")
    open_store(target)
    for words, says in (
        (["study", "merge", str(tmp_path / "none.db")], "there is no such file"),
        (["study", "merge", target], "is the store that is merged into"),
        (["study", "merge", __file__], "is not a retrompi store"),
        (["sweep", "bf-wmpi-shared", "--vary", "seed=1,2", "--shard", "3/2"], "--shard '3/2' is not I/N"),
        (["sweep", "bf-wmpi-shared", "--vary", "seed=1,2", "--shard", "x"], "--shard 'x' is not I/N"),
    ):
        assert cli(["--store", target, *words]) == 2
        said = capsys.readouterr().err
        assert says in said
        assert said.count("\n") == 1


def test_killed_shards_have_the_rows_of_the_undisturbed_study(tmp_path: Path) -> None:
    shards.rounds(tmp_path, 3)


def test_shards_at_the_same_time_on_one_postgresql(postgres: Server, tmp_path: Path) -> None:
    """They need no merging; and files are merged into PostgreSQL."""
    from concurrent.futures import ThreadPoolExecutor

    location = postgres.database()
    open_store(location)
    with ThreadPoolExecutor(2) as threads:
        told = list(threads.map(lambda i: run_study(open_store(location), seeds().part(i, 2)), (1, 2)))
    assert [t.simulated for t in told] == [4, 3]
    files = in_shards(tmp_path, seeds("seed=5..11"), 2)
    ((one,), new, known) = merge(open_store(location), files)
    assert (one.stored, new, known) == (7, 4, 3)


def _recipe(word: str) -> str:
    """The block of the page with that word."""
    (found,) = [b.text for b in blocks("docs/cluster.md") if b.kind in ("bash", "text") and word in b.text and "seed=1..1000000" in b.text]
    few = found.replace("seed=1..1000000 --max-points 1000000", "seed=1..24")
    assert few != found
    return few


def _run(recipe: str, folder: Path, **environment: str) -> None:
    (folder / "retrompi").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m retrompi.cli.main "$@"\n')
    (folder / "retrompi").chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **environment, "PATH": path}
    done = subprocess.run(["bash", "-euc", recipe], cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("xargs") is None, reason="no xargs")
def test_the_recipe_for_xargs(tmp_path: Path) -> None:
    _run(_recipe("xargs"), tmp_path)
    assert len(open_store(tmp_path / "all.db").study_done(1)) == 24
    assert {f.name for f in tmp_path.glob("shard-*.db")} == {f"shard-{i}.db" for i in range(1, 9)}


def test_the_script_for_slurm(tmp_path: Path) -> None:
    """Every task of a small array with the variables that Slurm sets."""
    script = _recipe("SBATCH")
    for task in ("1", "2"):
        _run(script, tmp_path, SLURM_ARRAY_TASK_ID=task, SLURM_ARRAY_TASK_COUNT="2", SLURM_CPUS_PER_TASK="1")
    ((one,), new, _) = merge(open_store(tmp_path / "all.db"), [tmp_path / "shard-1.db", tmp_path / "shard-2.db"])
    assert (one.stored, one.missing, new) == (24, 0, 24)


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="no snakemake")
def test_the_recipe_for_snakemake(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(_recipe("rule"))
    _run("snakemake --cores 2 --quiet all", tmp_path)
    assert len(open_store(tmp_path / "all.db").study_done(1)) == 24
