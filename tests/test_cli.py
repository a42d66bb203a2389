"""The command line: its interfaces, its errors, and what it prints where."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from cases import for_each
from conftest import Outcome, Watched
from refusals import agrees

from retrompi.base.errors import EngineError
from retrompi.cli.main import COMMANDS, cli
from retrompi.manual.commands import commands
from retrompi.spec import registry

Run = Callable[..., Outcome]


def _leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        names = command.list_commands(context)
        return [leaf for name in names for leaf in _leaves(command.get_command(context, name), (*path, name))]  # type: ignore[arg-type]
    return [(path, command)]


LEAVES = dict(_leaves(cli))


def one_error(result: Outcome, code: int) -> str:
    """The one line of an error; nothing else may have been printed."""
    assert result.code == code, result
    assert result.out == "", result
    assert result.err.count("\n") == 1, result
    assert result.err.startswith("error: "), result
    return result.err.removeprefix("error: ").strip()


def test_an_interrupt_in_a_text_that_is_executed_ends_with_130(tmp_path: Path) -> None:
    """As one during the import of a module with dataclasses: CPython would end the process with the signal (see `run`)."""
    (tmp_path / "interrupted.py").write_text(
        "from retrompi.cli import main\nmain.cli.main = lambda *_, **__: exec('raise KeyboardInterrupt')\nmain.main()\n"
    )
    ended = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "error: interrupted\n")


# -- help ------------------------------------------------------------------------------------------------------------


@for_each("name", list(COMMANDS))
def test_the_listed_help_is_the_commands_own(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help is not None
    assert command.help.split("\n\n")[0].replace("\n", " ").strip() == COMMANDS[name]


@for_each("path", list(LEAVES))
def test_every_command_and_option_has_help(path: tuple[str, ...], retrompi: Run) -> None:
    assert LEAVES[path].help
    for parameter in LEAVES[path].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{' '.join(path)} {parameter.opts}"
    result = retrompi(*path, "--help")
    assert result.code == 0
    assert "Usage: retrompi" in result.out
    assert result.err == ""


PRINT_NO_DATA = {("completion",), ("studio",), ("course", "start"), ("course", "serve"), ("course", "export"), ("scenarios", "new"),
                 ("paper", "run")}
"""`course export` writes the CSV file that a platform imports; options of `paper run` are those of the paper's own command."""


@for_each("path", [p for p in LEAVES if p not in PRINT_NO_DATA])
def test_every_command_that_prints_data_has_json_and_csv(path: tuple[str, ...]) -> None:
    names = {p.name for p in LEAVES[path].params}
    assert {"as_json", "as_csv"} <= names


def test_help_loads_no_command() -> None:
    code = (
        "import sys; from retrompi.cli.main import run; run(['--help']);"
        "bad = [m for m in sys.modules if m.startswith(('sqlalchemy', 'alembic', 'plotly', 'numpy', 'retrompi._engine',"
        " 'retrompi.cli.pingpong', 'retrompi.models'))]; sys.exit(f'loaded {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@for_each("words, stores", [
    ("pingpong -m wmpi --mode shared --sizes 1KiB --reps 1", True),
    ("explain -m wmpi --mode shared --size 1KiB", True),
    ("platforms show nt-pair", False),
    ("predict", False),
])
def test_a_command_loads_no_library_that_it_does_not_need(words: str, stores: bool, tmp_path: Path) -> None:
    """Each takes a tenth of a second or two, which is a quarter of a short command's time."""
    unneeded = ["numpy", "scipy", "plotly", "dash", "distributed", *([] if stores else ["sqlalchemy"])]
    code = (
        f"import sys; from retrompi.cli.main import run; run({words.split()});"
        f"bad = [m for m in sys.modules if m in {unneeded}]; sys.exit(f'loaded {{bad}}' if bad else 0)"
    )
    environment = os.environ | {"RETROMPI_STORE": str(tmp_path / "runs.db")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_version(retrompi: Run) -> None:
    from retrompi import __version__

    assert retrompi("--version").out == f"retrompi {__version__}\n"


# -- errors ----------------------------------------------------------------------------------------------------------


@for_each(
    "arguments, says",
    [
        (["pingpongg"], "UsageError | 'pingpongg' | 'pingpong'"),
        (["pingpong"], "MissingParameter | --model"),
        (["pingpong", "--model", "wmpy"], "unknown-model | 'wmpy' | 'wmpi'"),
        (["pingpong", "--model", "wmpi", "--platform", "nt-pear"], "unknown-platform | 'nt-pear' | 'nt-pair'"),
        (["pingpong", "--model", "wmpi", "--mode", "shard"], "unknown-host | 'shard' | 'nt-pair' | 'shared'"),
        (["pingpong", "--model", "wmpi", "--sizes", "1KB"], "bad-unit | '1KB' | KiB"),
        (["pingpong", "--model", "wmpi", "--sizes", "1024 s"], "bad-unit | '1024 s'"),
        (["pingpong", "--model", "wmpi", "--sizes", "-1B"], "out-of-range | '-1B'"),
        (["pingpong", "--model", "wmpi", "--set", "wmpi.pol=1MiB"], "unknown-parameter | 'wmpi.pool'"),
        (["pingpong", "--model", "wmpi", "--set", "wmpi.pool=1ms"], "bad-unit | wmpi.pool | '1ms' | 'ms'"),
        (["pingpong", "--model", "wmpi", "--set", "pool"], "bad-syntax | --set pool"),
        (["pingpong", "--model", "wmpi", "--reps", "0"], "BadParameter | --reps"),
        (["pingpong", "--model", "wmpi", "--seed", "9223372036854775808"], "BadParameter | --seed"),
        (["pingpong", "--model", "wmpi", "--nonsense"], "NoSuchOption | --nonsense"),
        (["pingpong", "--model", "./nothing"], "unknown-model | ./nothing"),
        (["explain", "wmpi"], "MissingParameter | --size"),
        (["explain", "wmpi", "--size", "1KiB,2KiB"], "bad-size | 1KiB,2KiB"),
        (["replay", "nothing.ti", "--model", "wmpi"], "not-found | nothing.ti"),
        (["models", "show", "wmpy"], "unknown-model | 'wmpi'"),
        (["platforms", "show", "nt"], "unknown-platform | 'nt'"),
        (["scenarios", "show", "bf"], "unknown-scenario | 'bf'"),
        (["claims", "show", "BF-SM-1"], "unknown-claim | 'BF-SM-1'"),
        (["claims", "list", "--paper", "bake-fox"], "unknown-paper | 'baker-fox'"),
        (["validate", "--paper", "bake-fox"], "unknown-paper | 'baker-fox'"),
        (["reproduce", "bake-fox"], "unknown-paper | 'baker-fox'"),
        (["runs", "show", "1"], "unknown-run"),
        (["runs", "list", "--store", "/nowhere/runs.db"], "not-found | /nowhere/runs.db"),
        (["models", "list", "--json", "--csv"], "conflicting-options | --json | --csv"),
        (["completion", "tcsh"], "BadParameter | 'tcsh'"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(retrompi: Run, engine: Watched, arguments: list[str], says: str) -> None:
    result = retrompi(*arguments)
    one_error(result, 2)
    agrees(result, says)
    assert engine.calls == []


def test_a_defect_of_ours_is_one_line_and_exit_3(retrompi: Run, engine: Watched) -> None:
    engine.fails = ZeroDivisionError("division\nby zero")
    arguments = ["pingpong", "--model", "wmpi", "--sizes", "0"]
    said = one_error(retrompi(*arguments), 3)
    assert said.startswith("internal error: ZeroDivisionError: division by zero; run again with --debug")
    for debugging in (["--debug", *arguments], [*arguments, "--debug"]):
        result = retrompi(*debugging)
        assert result.code == 3
        assert "Traceback (most recent call last)" in result.err
    engine.fails = EngineError("the simulation worker died: its last words")
    assert one_error(retrompi(*arguments), 3) == "the simulation worker died: its last words"


def test_a_read_only_store_is_one_line_before_any_simulation(retrompi: Run, engine: Watched, store_path: Path) -> None:
    store_path.parent.mkdir()
    store_path.touch()
    store_path.chmod(0o444)
    for arguments in (
        ["pingpong", "--model", "wmpi", "--store", str(store_path)],
        ["--store", str(store_path), "pingpong", "--model", "wmpi"],
        ["explain", "wmpi", "--size", "1KiB", "--store", str(store_path)],
        ["validate", "--store", str(store_path)],
        ["reproduce", "baker-fox", "--store", str(store_path)],
    ):
        result = retrompi(*arguments)
        one_error(result, 2)
        agrees(result, "store-read-only | --store")
    assert engine.calls == []


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m retrompi.cli.main claims list --json | head -c 10", shell=True, capture_output=True, check=False
    )
    assert done.stdout
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
def test_output_that_finds_no_room_is_one_line() -> None:
    done = subprocess.run(
        f"{sys.executable} -m retrompi.cli.main claims list > /dev/full", shell=True, capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stderr) == (2, "error: cannot write: No space left on device\n")


# -- data ------------------------------------------------------------------------------------------------------------


RUNTIMES = [name for name in registry.models() if ":" not in name]
EVERY = for_each("model, mode", [(m, mode) for m in RUNTIMES for mode in ("shared", "distributed")], few=12)


@EVERY
def test_pingpong_json_is_the_interface(retrompi: Run, engine: Watched, model: str, mode: str) -> None:
    engine.calls.clear()
    arguments = ["pingpong", "--model", model, "--platform", "nt-pair", "--mode", mode, "--sizes", "0,1KiB", "--json"]
    result = retrompi(*arguments)
    assert result.code == 0
    known = registry.model(model).calibrated
    rows = json.loads(result.out)
    assert [list(row) for row in rows] == [["size_B", "time_us", "bandwidth_MBps", "repetitions", "warnings"]] * 2
    platform = [w for w in rows[0]["warnings"] if w["code"] == "outside-calibration" and "platform nt-pair" in w["text"]]
    assert bool(platform) == (known is None or "nt-pair" not in known.platforms)
    assert ("caution" in result.err) == any(not w["minor"] for row in rows for w in row["warnings"])
    assert [(row["size_B"], row["repetitions"]) for row in rows] == [(0, 1000), (1024, 1000)]
    assert rows[1]["bandwidth_MBps"] == pytest.approx(1024 / rows[1]["time_us"])
    assert retrompi(*arguments).out == result.out
    assert engine.calls == [model]  # the second was found
    assert retrompi(*arguments, "--fresh").out == result.out  # simulated again, and the same bytes
    assert engine.calls == [model] * 2
    changes = (["--seed", "2"], ["--reps", "5"], ["--set", "platform.host.quantum=50ms"], ["--platform", "nt-cluster"])
    for count, changed in enumerate(changes, 3):
        assert retrompi(*arguments, *changed).code == 0
        assert len(engine.calls) == count


def test_a_model_and_a_platform_of_ones_own(retrompi: Run, engine: Watched, tmp_path: Path) -> None:
    arguments = ["pingpong", "--sizes", "0,1KiB", "--reps", "3", "--json", "--model"]
    expected = retrompi(*arguments, "wmpi").out
    platform = registry.platform("nt-pair").path
    assert platform is not None
    copy = shutil.copy(platform, tmp_path / "mine.toml")
    shutil.copy(platform.with_name("nt-pair.fit.toml"), tmp_path / "mine.fit.toml")
    assert retrompi(*arguments, "wmpi", "--platform", str(copy)).out == expected
    assert len(engine.calls) == 1  # the same machines under another name: the same run
    shutil.copytree(registry.model("wmpi").folder(), tmp_path / "wmpi")
    assert retrompi(*arguments, str(tmp_path / "wmpi")).out == expected


def test_pingpong_table_and_csv(retrompi: Run, engine: Watched) -> None:
    arguments = ["pingpong", "--model", "wmpi", "--sizes", "0,64KiB"]
    head, *table = retrompi(*arguments).out.splitlines()
    assert head == "wmpi, distributed (natural) on nt-pair (run 1)"
    assert table[0].split("  ")[-1] == "repetitions"
    assert table[2].split()[:2] == ["64", "KiB"]
    rows = list(csv.DictReader(io.StringIO(retrompi(*arguments, "--csv").out)))
    assert [row["size_B"] for row in rows] == ["0", "65536"]
    told = json.loads(retrompi(*arguments, "--json").out)
    assert [float(row["time_us"]) for row in rows] == [row["time_us"] for row in told]  # to the last bit
    assert len(engine.calls) == 1


@EVERY
def test_explain_json_is_the_interface_and_sums(retrompi: Run, engine: Watched, model: str, mode: str) -> None:
    engine.calls.clear()
    arguments = ["explain", model, "--platform", "nt-pair", "--mode", mode, "--size", "512KiB"]
    told = json.loads(retrompi(*arguments, "--json").out)
    assert list(told) == ["total_s", "run_id", "stages", "warnings"]
    assert told["stages"]
    assert all(list(s) == ["stage", "process", "seconds"] for s in told["stages"])
    assert math.isclose(sum(stage["seconds"] for stage in told["stages"]), told["total_s"], rel_tol=1e-14)  # picoseconds below: exactly
    table = retrompi(*arguments).out.splitlines()
    head = next(n for n, line in enumerate(table) if line.startswith("stage"))
    picoseconds = [int(re.split(r"\s{2,}", line)[-2].replace(" ", "")) for line in table[head + 1 :]]
    assert sum(picoseconds[:-1]) == picoseconds[-1] == round(told["total_s"] * 1e12)
    assert len(picoseconds) == len(told["stages"]) + 1
    assert engine.calls == [model]


def test_an_override_nobody_reads_is_refused(retrompi: Run) -> None:
    said = one_error(retrompi(
        "pingpong", "--model", "wmpi", "--mode", "shared", "--sizes", "0", "--set", "platform.workstation.quantum=20ms"), 2)
    assert "platform.workstation.quantum is not used; no rank of this run is on 'workstation'" in said


def _trace(tmp_path: Path) -> str:
    path = tmp_path / "a.ti"
    path.write_text("0 init\n0 send 1 0 8 6\n0 finalize\n1 init\n1 recv 0 0 8 6\n1 finalize\n")
    return str(path)


def test_replay_json_is_the_interface(retrompi: Run, engine: Watched, tmp_path: Path) -> None:
    arguments = ["replay", _trace(tmp_path), "--model", "wmpi", "--platform", "nt-pair", "--np", "2", "--json"]
    result = retrompi(*arguments)
    told = json.loads(result.out)
    assert result.code == 0
    assert result.err == ""
    keys = ["outcome", "time_s", "ranks", "actions", "messages", "bytes", "wall_s", "run_id", "warnings", "computation", "placement"]
    assert list(told) == [*keys, "per_rank"]
    assert told["outcome"] == "completed"
    assert (told["ranks"], told["actions"], told["messages"], told["bytes"]) == (2, 6, 1, 8)
    assert [(r["rank"], r["host"]) for r in told["per_rank"]] == [(0, "server"), (1, "workstation")]
    assert retrompi(*arguments).out == result.out
    assert len(engine.calls) == 1
    retrompi(*arguments, "--time-limit", "10s")
    retrompi(*arguments, "--startup")
    assert len(engine.calls) == 3


def test_a_deadlock_is_exit_1_and_says_who_waits_for_whom(retrompi: Run, engine: Watched, tmp_path: Path) -> None:
    trace = tmp_path / "a.ti"
    trace.write_text("0 init\n1 init\n0 recv 1 0 8 6\n1 recv 0 0 8 6\n0 finalize\n1 finalize\n")
    for again in range(2):  # simulated, then found
        result = retrompi("replay", str(trace), "--model", "wmpi", "--json")
        assert result.code == 1, again
        assert json.loads(result.out)["outcome"] == "deadlock"
        lines = result.err.splitlines()
        assert lines[0].startswith("outcome deadlock: ")
        assert lines[1].startswith(f"  rank 0 at {trace}:3 waits in recv for ")
        assert "rank 1" in lines[1]
        assert lines[2].startswith(f"  rank 1 at {trace}:4 waits in recv for ")
    assert len(engine.calls) == 1


def test_a_benchmark_that_does_not_complete_is_stored_as_such(retrompi: Run, engine: Watched) -> None:
    arguments = ["pingpong", "--model", "wmpi", "--mode", "distributed", "--sizes", "0", "--reps", "2", "--set", "wmpi.loss=1"]
    first = one_error(retrompi(*arguments), 1)
    assert "aborted" in first
    assert one_error(retrompi(*arguments), 1) == first
    assert len(engine.calls) == 1
    assert json.loads(retrompi("runs", "list", "--json").out)[0]["outcome"] == "aborted"


@for_each(
    "text, line, says",
    [
        (b"0 init\n1 init\n0 send 1 0", 3, "truncated"),
        (b"0 init\n1 init\n0 frob 1\n0 finalize\n1 finalize\n", 3, "unknown action 'frob'"),
        (b"0 init\n1 init\n0 send 5 0 8 6\n0 finalize\n1 finalize\n", 3, "'5' is out of range 0..1"),
        (b"0 init\n1 init\n0 send 1 0 -8 6\n0 finalize\n1 finalize\n", 3, "'-8' is negative"),
        (b"\x28\xb5\x2f\xfd and nothing of zstd after it", None, "corrupt zstd"),
        (b"", None, ""),
    ],
)
def test_a_wrong_trace_is_one_line(
    retrompi: Run, engine: Watched, tmp_path: Path, text: bytes, line: int | None, says: str
) -> None:
    trace = tmp_path / "a.ti"
    trace.write_bytes(text)
    said = one_error(retrompi("replay", str(trace), "--model", "wmpi", "--json"), 2)
    assert said.startswith(f"{trace}:{line}: " if line else str(trace))
    assert says in said
    assert engine.calls == []


@pytest.mark.parametrize("group", ["models", "platforms", "scenarios", "claims"])
def test_list_and_show(retrompi: Run, group: str) -> None:
    rows = json.loads(retrompi(group, "list", "--json").out)
    assert rows
    assert all(not isinstance(v, dict) for row in rows for v in row.values())
    key = "id" if group == "claims" else "name"
    full = ["--full"] if group in ("scenarios", "claims") else []  # else a summary
    table = retrompi(group, "list", *full).out.partition("\n\n")[0].splitlines()  # after that of platforms come hosts and networks
    assert len(table) == len(rows) + 1
    assert table[1].split()[0] == rows[0][key]
    assert len(list(csv.DictReader(io.StringIO(retrompi(group, "list", "--csv").out)))) == len(rows)
    names = [row[key] for row in rows]
    for name in names if group != "claims" else names[:3]:
        shown = json.loads(retrompi(group, "show", name, "--json").out)
        # A card is one object, whose rows are the table that CSV has; a scenario or a claim is a row itself.
        rows = shown[{"models": "parameters", "platforms": "quantities"}[group]] if isinstance(shown, dict) else shown
        assert rows
        assert retrompi(group, "show", name).code == 0
        header = next(csv.reader(io.StringIO(retrompi(group, "show", name, "--csv").out)))
        assert sorted(header) == sorted(k for k in rows[0] if k != "rows")


def test_show_takes_paths_and_overrides(retrompi: Run, toy: Path) -> None:
    rows = json.loads(retrompi("models", "show", str(toy), "--set", "packet=1MiB", "--json").out)["parameters"]
    assert rows[0]["name"] == "packet"
    assert rows[0]["value"] == 2**20
    assert rows[0]["overridden"] is True
    card = retrompi("models", "show", f"{toy}:spinning", "--full").out
    assert "variant of toy: the receiver spins" in card
    assert "block | spin" in card
    path = registry.platform("nt-pair").path
    assert "server.quantum" in retrompi("platforms", "show", str(path), "--full").out


def test_claims_are_filtered(retrompi: Run) -> None:
    rows = json.loads(retrompi("claims", "list", "--paper", "baker-fox", "--use", "calibrate", "--system", "hpvm", "--json").out)
    assert rows
    assert {r["use"] for r in rows} == {"calibrate"}
    assert all("hpvm" in r["system"].lower() for r in rows)


def test_runs(retrompi: Run, engine: Watched, tmp_path: Path) -> None:
    assert retrompi("runs", "list").out == "no runs stored\n"
    retrompi("pingpong", "--model", "wmpi", "--sizes", "0,1KiB")
    retrompi("pingpong", "--model", "wmpi", "--sizes", "0,1KiB", "--set", "platform.host.cores=2")
    retrompi("pingpong", "--model", "wmpi", "--sizes", "0,1KiB", "--fresh")
    retrompi("explain", "wmpi", "--size", "0")
    retrompi("replay", _trace(tmp_path), "--model", "wmpi")
    rows = json.loads(retrompi("runs", "list", "--json").out)
    assert [r["kind"] for r in rows] == ["pingpong"] * 2 + ["explain", "replay"]  # --fresh takes the place of the first
    assert rows[1]["overrides"] == "platform.host.cores=2"
    assert [r["id"] for r in json.loads(retrompi("runs", "list", "--kind", "explain", "--json").out)] == [3]
    assert len(retrompi("runs", "list", "--last", "2").out.splitlines()) == 3
    shown = json.loads(retrompi("runs", "show", "2", "--json").out)
    assert len(shown) == 1
    assert all(not isinstance(v, dict | list) for v in shown[0].values())
    assert any(k.startswith("parameter.") for k in shown[0])
    assert [p["size_B"] for p in json.loads(retrompi("runs", "show", "2", "--part", "points", "--json").out)] == [0, 1024]
    assert "anatomy" in retrompi("runs", "show", "3").out
    assert "ranks" in retrompi("runs", "show", "4").out
    assert retrompi("runs", "show", "4", "--part", "points").out.strip() == "points\nno points stored"
    same = retrompi("runs", "diff", "1", "1")
    assert (same.code, same.out) == (0, "no difference\n")
    differs = retrompi("runs", "diff", "1", "2", "--json")
    rows = json.loads(differs.out)
    assert differs.code == 1
    assert {r["what"] for r in rows} >= {"platform_hash", "platform.host.cores", "time at 0 B", "time at 1 KiB"}
    assert all(r["ratio"] < 1 for r in rows if r["part"] == "point")  # a second CPU
    assert retrompi("runs", "diff", "1", "9").code == 2


def test_a_scenario_runs(retrompi: Run, engine: Watched) -> None:
    result = retrompi("scenarios", "run", "hpvm-two-cpus", "--json")
    assert result.code == 0
    assert len(json.loads(result.out)) == 24
    assert "expected: " in retrompi("scenarios", "run", "hpvm-two-cpus").out
    assert len(engine.calls) == 1
    run = json.loads(retrompi("runs", "show", "1", "--json").out)[0]
    assert run["scenario"] == "hpvm-two-cpus"
    assert run["overrides"] == "platform.host.cores=2"


# -- judging and fitting: the work is tested elsewhere, here only what the commands make of it ---------------------------


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make run_papers return studies in which one held-out claim has the given verdict and no other is judged."""
    from retrompi import papers as validate
    from retrompi.papers.statements import claims

    def judged(word: str) -> None:
        def one(paper: str) -> validate.Reproduction:
            mine = claims.by_paper(paper)
            verdicts = [replace(v, verdict=word) if v.id == "BF-SM-03" else v for v in validate.judge(mine, [], {})]
            return validate.Reproduction(validate.find_paper(paper), tuple(mine), verdicts=verdicts, runs=(1, 2, 3), simulated=1)

        def run_papers(names: Any, store: Any, fresh: bool, progress: Any, *, workers: int, fidelity: str) -> list[validate.Reproduction]:
            progress(1, 1, "all of it")
            return [one(name) for name in names]

        monkeypatch.setattr(validate, "run_papers", run_papers, raising=False)

    return judged


@pytest.mark.parametrize(("word", "code"), [("pass", 0), ("fail", 1), ("unjudged", 0)])
def test_validate_json_is_the_interface(retrompi: Run, study: Callable[[str], None], word: str, code: int) -> None:
    study(word)
    result = retrompi("validate", "--paper", "baker-fox", "--json")
    rows = json.loads(result.out)
    assert (result.code, result.err) == (code, "")
    keys = ["id", "system", "use", "verdict", "observed", "low", "high", "unit", "note"]
    assert all(list(row) == keys for row in rows)
    assert {row["verdict"] for row in rows} <= {"pass", "fail", "unjudged"}
    assert [row["id"] for row in rows if row["verdict"] != "unjudged"] == (["BF-SM-03"] if word != "unjudged" else [])
    from retrompi.papers.statements import claims

    everything = json.loads(retrompi("validate", "--json").out)
    assert len(everything) >= len(claims.load()) > len(rows)  # excluded and context rows stay visible
    assert len(list(csv.DictReader(io.StringIO(retrompi("validate", "--csv").out)))) == len(everything)


def test_validate_table(retrompi: Run, study: Callable[[str], None]) -> None:
    study("fail")
    result = retrompi("validate", "--paper", "baker-fox", "--full")
    shown = [line.split()[0] for line in result.out.split("\n\n")[0].splitlines()[1:] if line[0] != " "]
    assert shown == ["BF-SM-03", "BF-DM-09"]  # what was judged, and what is excluded
    assert "held out: 0 of 1 pass" in result.out
    assert len(retrompi("validate", "--paper", "baker-fox", "--all").out.splitlines()) > 100
    assert "1 statements fail" in retrompi("validate", "--paper", "baker-fox").out


def test_reproduce_prints_the_verdicts_and_the_report(
    retrompi: Run, study: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrompi import render

    study("fail")
    written = render.WrittenPage(tmp_path / "out" / "baker-fox.html", (), (), "no PNG or SVG written: no browser")
    monkeypatch.setattr(render, "write", lambda study, folder, images: written)
    result = retrompi("reproduce", "baker-fox", "--out", str(tmp_path / "out"), "--image", "png")
    assert result.code == 0  # a failing statement is a finding, not an error
    assert result.out.splitlines()[-3::2] == ["3 runs: 1 simulated, 2 found in the store", f"report: {written.page}"]
    assert result.err == "no PNG or SVG written: no browser\n"
    assert json.loads(retrompi("reproduce", "baker-fox", "--json").out)[0]["id"].startswith("BF-")


def test_calibrate(retrompi: Run, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrompi.papers.fit import calibrate

    asked: list[Any] = []

    def fit(model: str, platform: str, *, seed: int, evaluations: int | None, progress: Any) -> calibrate.ModelFit:
        asked.append((model, platform, seed, evaluations))
        progress(1, 1, "candidate 1")
        values = [{"parameter": "call", "value": "12.5 us", "low": "5 us", "high": "50 us", "note": "determined"}]
        residuals = [{"claim": "BF-SM-01", "observed": 176.0, "low": 165, "high": 185, "unit": "us", "residual": 0.1}]
        return calibrate.ModelFit("toy", toy, seed, 1, values, residuals, "every claim lies in its range")

    monkeypatch.setattr(calibrate, "fit", fit)
    result = retrompi("calibrate", str(toy), "--seed", "7", "--evaluations", "3", "--dry-run")
    assert result.code == 0
    assert not (toy / "fit.toml").exists()
    assert "determined" in result.out
    assert "BF-SM-01" in result.out
    assert asked == [(str(toy), "nt-pair", 7, 3)]
    assert retrompi("calibrate", str(toy)).out.endswith(f"written: {toy / 'fit.toml'}\n")
    assert json.loads(retrompi("models", "show", str(toy), "--json").out)["parameters"][1]["source"] == "fit:fit.toml [toy]"
    assert json.loads(retrompi("calibrate", str(toy), "--json").out)[0]["parameter"] == "call"
    outside = [{"claim": "BF-SM-01", "observed": 476.0, "low": 165, "high": 185, "unit": "us", "residual": 29.0}]
    monkeypatch.setattr(calibrate, "fit", lambda *_, **__: calibrate.ModelFit("toy", toy, 1, 1, [], outside, "outside: BF-SM-01"))
    assert retrompi("calibrate", str(toy)).code == 1


# -- terminals, pipes, shells ----------------------------------------------------------------------------------------


def _on_terminal(*arguments: str, **environment: str) -> str:
    """What the command line writes when stdout and stderr are a terminal."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "retrompi.cli.main", *arguments], stdout=follower, stderr=follower, stdin=follower, env=env
    )
    os.close(follower)
    out = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        out += chunk
    process.wait()
    os.close(leader)
    return out.decode()


def test_colour_on_a_terminal_only_and_not_with_no_color() -> None:
    assert "\x1b[1m" in _on_terminal("platforms", "list")
    assert "\x1b[" not in _on_terminal("platforms", "list", NO_COLOR="1")
    assert "\x1b[31m" in _on_terminal("models", "show", "wmpy")
    assert "\x1b[" not in _on_terminal("models", "show", "wmpy", NO_COLOR="1")
    piped = subprocess.run([sys.executable, "-m", "retrompi.cli.main", "platforms", "list"], capture_output=True, check=True)
    assert b"\x1b[" not in piped.stdout
    assert piped.stderr == b""


def test_progress_is_quiet_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    from retrompi.cli.options import progress

    with progress("work") as report:
        report(1, 2, "half")
    assert capfd.readouterr() == ("", "")
    code = "from retrompi.cli.options import progress\nwith progress('work') as r:\n    r(1, 2, 'half')\n    r(2, 2, 'all')\n"
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=follower, env={**os.environ, "TERM": "xterm"}, check=True)
    os.close(follower)
    assert b"100%" in os.read(leader, 65536)
    os.close(leader)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(retrompi: Run, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = retrompi("completion", shell).out
    assert "_RETROMPI_COMPLETE" in script
    assert "retrompi" in script
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert retrompi("completion").out == script
    monkeypatch.setenv("SHELL", "/bin/other")
    result = retrompi("completion")
    one_error(result, 2)
    agrees(result, "missing-option | bash | zsh | fish")


@for_each(
    "words, expected",
    [
        (["retrompi", "ping"], ["pingpong"]),
        (["retrompi", "pingpong", "--model", "wm"], ["wmpi"]),
        (["retrompi", "pingpong", "--platform", "nt-p"], ["nt-pair"]),
        (["retrompi", "explain", "hp"], ["hpvm"]),
        (["retrompi", "scenarios", "show", "bf-wmpi-s"], ["bf-wmpi-shared"]),
        (["retrompi", "models", "sh"], ["show"]),
    ],
)
def test_completion_knows_commands_and_names(words: list[str], expected: list[str]) -> None:
    environment = {**os.environ, "_RETROMPI_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", "from retrompi.cli.main import main; main()"], capture_output=True, text=True, env=environment, check=False
    )
    found: list[Any] = [line.partition(",")[2] for line in done.stdout.splitlines()]
    assert found == expected


# -- what -o writes -------------------------------------------------------------------------------------------------------------


WRITTEN = {
    "html": lambda data: data.startswith(b"<!doctype html>"),
    "svg": lambda data: b"<svg" in data[:200],
    "png": lambda data: data.startswith(b"\x89PNG"),
    "csv": lambda data: data.startswith(b"size_B,"),
    "json": lambda data: len(json.loads(data)["points"]) == 2,
}


@for_each("ending", list(WRITTEN))
def test_a_file_is_what_its_ending_says(retrompi: Run, tmp_path: Path, ending: str) -> None:
    from retrompi.render.document.export import browser

    if ending in ("svg", "png") and browser() is None:
        pytest.skip("no browser to draw an image")
    file = tmp_path / f"curve.{ending}"
    told = retrompi("pingpong", "-m", "wmpi", "--sizes", "1,1024", "--reps", "2", "-o", str(file))
    assert (told.code, str(file) in told.err) == (0, True)
    assert WRITTEN[ending](file.read_bytes())


def test_an_image_is_refused_before_anything_runs_where_no_browser_is(
    retrompi: Run, engine: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETROMPI_BROWSER", "/no/such/browser")
    agrees(retrompi("pingpong", "-m", "wmpi", "-o", "x.svg"), "no-image | x.svg | Chromium")
    assert engine.calls == []


def _with_output() -> list[str]:
    return [words for words, c in commands().items() if any("--output" in p.opts for p in c.params)]


@for_each("words", _with_output())
def test_an_ending_that_a_command_does_not_write_is_refused(words: str, retrompi: Run, engine: Watched, here: None) -> None:
    needed = {"pingpong": ["-m", "wmpi"], "smpi export": ["-m", "wmpi"], "lab report": [], "compare": [], "trace record": []}
    told = retrompi(*words.split(), *needed.get(words, ["x"]), "-o", "made.pdf")
    agrees(told, "unknown-format | made.pdf")
    assert told.code == 2
    assert not Path("made.pdf").exists()
    assert engine.calls == []


# -- stored runs put in order ---------------------------------------------------------------------------------------------------


def test_runs_are_tagged_exported_and_deleted(retrompi: Run, tmp_path: Path) -> None:
    for seed in ("1", "2", "3"):
        retrompi("pingpong", "-m", "wmpi", "--sizes", "1,1024", "--reps", "2", "--seed", seed)
    assert "2 of 2 runs now have the tag slow" in retrompi("runs", "tag", "1..2", "slow").out
    assert [r["tags"] for r in json.loads(retrompi("runs", "list", "--json").out)] == ["slow", "slow", ""]
    assert [r["id"] for r in json.loads(retrompi("runs", "list", "--tag", "slow", "--json").out)] == [1, 2]
    assert json.loads(retrompi("runs", "show", "1", "--json").out)[0]["tags"] == "slow"

    whole = json.loads(retrompi("runs", "export", "slow", "--json").out)
    assert [(len(r["points"]), r["tags"]) for r in whole] == [(2, ["slow"])] * 2
    rows = list(csv.DictReader(io.StringIO(retrompi("runs", "export", "1,3", "--part", "points", "--csv").out)))
    assert [(r["run_id"], r["size_B"]) for r in rows] == [("1", "1"), ("1", "1024"), ("3", "1"), ("3", "1024")]
    for name in ("runs.csv", "runs.json"):
        assert retrompi("runs", "export", "1..3", "-o", str(tmp_path / name)).code == 0
    assert len(list(csv.DictReader((tmp_path / "runs.csv").open()))) == len(json.loads((tmp_path / "runs.json").read_text())) == 3

    assert retrompi("runs", "tag", "2", "slow", "--remove").code == 0
    assert retrompi("runs", "delete", "slow").out == "1 run deleted\n"
    assert [r["id"] for r in json.loads(retrompi("runs", "list", "--json").out)] == [2, 3]


@for_each(
    "arguments, says",
    [
        (("tag", "1", "2x"), "bad-name | '2x'"),
        (("tag", "99", "slow"), "unknown-run | 99"),
        (("delete", "1,x"), "bad-syntax | '1,x' | 12..20"),
        (("delete", "2..1"), "bad-range | '2..1'"),
        (("delete", "slwo"), "unknown-run | 'slwo' | 'slow'"),
        (("export", "1"), "missing-option | -o FILE"),
        (("export", "1", "-o", "x.html"), "unknown-format | x.html | .csv"),
    ],
)
def test_runs_that_are_not_there_are_one_line(retrompi: Run, arguments: tuple[str, ...], says: str) -> None:
    retrompi("pingpong", "-m", "wmpi", "--sizes", "1", "--reps", "1")
    retrompi("runs", "tag", "1", "slow")
    told = retrompi("runs", *arguments)
    agrees(told, says)
    assert told.code == 2


# -- the first call -------------------------------------------------------------------------------------------------------------


def test_warm_up_repetitions_are_not_timed_and_the_first_call_is_said(retrompi: Run) -> None:
    given = ("pingpong", "-m", "hpvm", "--mode", "shared", "--set", "platform.host.cores=2", "--sizes", "0,1", "--reps", "10")
    cold, warm = (retrompi(*given, *more, "--json") for more in (("--warm-up", "0"), ()))
    first, second = ([row["time_us"] for row in json.loads(told.out)] for told in (cold, warm))
    assert first[0] > first[1]
    assert second[0] <= second[1]
    assert "the first size includes what the first call sets up" in cold.err
    assert "--warm-up" not in warm.err
    assert [row["repetitions"] for row in json.loads(warm.out)] == [10, 10]


def test_without_warm_up_the_trace_is_as_before() -> None:
    from retrompi.traces import generate

    plain = generate.pingpong([0, 8], 3)
    assert generate.pingpong([0, 8], 3, 0).sha256 == plain.sha256
    assert generate.pingpong([0, 8], 3, 2).actions == plain.actions + 2 * 2 * 2 * 2
