"""Every command, file and program of README.md and docs/ is run, as a reader would: page by page, in order, in a folder of its own.

What cannot run as it stands is in `docs_table`, with its reason. A command that needs no shell is run in a fork of a process that has
imported all commands (`forked_commands`); `make exhaustive` types everything into a shell, and has the pages that compile programs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import doc_pages
import docs_table
import pytest
from cases import for_each
from doc_pages import PAGES, ROOT, SHOWN, Block, Command, blocks, commands, every_command, missing
from forked_commands import Forked, plain_words
from study_runs import descendants, lives

from retrompi.cli.main import cli

FOLDERS = ("examples", "validate", "tests", "benchmarks", "models", "platforms", "scenarios")
"""Of the checkout, from which a reader types the commands."""


def _base(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """A whole scenario of which a page shows a part."""
    return {"name": "part", "title": "t", "summary": "s", "reproduces": "what-if: a page's", "model": "wmpi", "platform": "nt-cluster",
            "mode": "distributed", "trace": {"generator": "pingpong"}, **given}


def read_toml(text: str, folder: Path) -> None:
    """Load a TOML block by the reader that it is for, which its keys tell; raises what that reader raises."""
    from retrompi.studies.define import scenario
    from retrompi.studies.execute import design

    data = tomllib.loads(text)
    if "vary" in data or "zip" in data:
        design.check(
            design.from_definition(
                {"name": "part", **({"scenario": "bf-wmpi-shared"} if not {"scenario", "base"} & set(data) else {}), **data}
            )
        )
    elif "claim" in data:
        from retrompi.papers.judging.evidence import KEYS

        assert all(set(c) <= set(KEYS) for c in data["claim"])
    elif {"authors", "experiments"} & set(data):  # 'retrompi paper check' reads it as the file that it is
        assert {"title", "models", "platforms"} <= set(data)
    elif all(isinstance(v, list) and all(isinstance(c, dict) and "kind" in c for c in v) for v in data.values()):
        from retrompi.papers.judging.evaluators import EVALUATORS

        assert {c["kind"] for v in data.values() for c in v} <= set(EVALUATORS)
    elif {"hosts", "like"} & set(data):  # tests/test_add_a_platform.py reads them as the files that they are
        assert set(data) & {"title", "name"}
    elif {"host", "link"} & set(data):
        from retrompi.spec.declare.fields import fields_of
        from retrompi.spec.host import Host
        from retrompi.spec.machine.link import Link

        assert set(data.get("link", {})) <= {*fields_of(Link), "sites"}
        for host in data.get("host", []):
            assert set(host) <= {*fields_of(Host), "like"}
    elif {"task", "parameter"} & set(data):
        from retrompi.labs.lab import Parameter, Task

        for kind, rows in ((Parameter, data.get("parameter", [])), (Task, data.get("task", []))):
            known = {f.name for f in fields(kind)} | {"choices", "low", "high", "step", "mistake"}
            assert all(set(row) <= known for row in rows)
    else:
        known = set(data) & set(scenario.KEYS)
        assert known == set(data), f"no reader knows {sorted(set(data) - known)}"
        scenario.from_data(_base(folder, data), folder / "part.toml")


class Reader:
    """Somebody who does what a page says, in ``folder``."""

    def __init__(self, page: str, folder: Path, environment: dict[str, str], forked: Forked | None = None) -> None:
        self.page, self.folder, self.environment, self.forked = page, folder, environment, forked
        self.here = folder
        self.wrong: list[str] = []
        self.serving: list[subprocess.Popen[bytes]] = []
        self.seconds: list[tuple[float, str]] = []

    def shell(self, text: str) -> tuple[int, str]:
        """Exit code and all that was printed."""
        begin = time.monotonic()
        words = plain_words(text) if self.forked is not None else None
        printed = self.folder / "printed.txt"
        if self.forked is not None and words is not None:
            code = self.forked.run(words, self.here, self.environment, printed)
        else:
            with printed.open("wb") as out:
                code = subprocess.run(
                    ["bash", "-c", text], cwd=self.here, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                    stderr=subprocess.STDOUT, timeout=600, check=False,
                ).returncode
        self.seconds.append((time.monotonic() - begin, text))
        return code, printed.read_text(encoding="utf-8", errors="replace")

    def serve(self, text: str, ready: str) -> None:
        """Start what serves until the page ends, and wait until it does."""
        log = self.folder / f"served-{len(self.serving)}.log"
        with log.open("wb") as out:
            self.serving.append(
                subprocess.Popen(["bash", "-c", f"exec {text}"], cwd=self.here, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=out, process_group=0)
            )
        until = time.monotonic() + 300
        while ready and time.monotonic() < until:
            if ready == "said" and log.read_bytes().strip():
                return
            if ready == "tcp":
                with socket.socket() as line:
                    if line.connect_ex(("127.0.0.1", int(self.environment["PORT"]))) == 0:
                        return
            time.sleep(0.1)
        if ready:
            self.wrong.append(f"{text}: not ready after five minutes: {log.read_text(errors='replace')[-300:]}")

    def write(self, block: Block) -> None:
        """Make the file that a block is."""
        place = self.here / block.title
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(block.text, encoding="utf-8")

    def do(self, command: Command) -> None:
        """Run a command of the page and look at how it ends and what it prints."""
        if docs_table.left_out(self.page, command.text):
            return
        text, _ = docs_table.replaced(self.page, command.text)
        if docs_table.lacking(text):
            print(f"left out, {docs_table.lacking(text)} is missing: {text}")
            return
        if text.startswith("cd "):
            (self.here,) = sorted(self.here.glob(text[3:].strip().strip("/")))
            return
        variable = re.fullmatch(r"(?:export )?([A-Za-z_]\w*)=(\$\(.*\)|\S*)", text)
        if variable:
            code, value = self.shell(f"printf %s {variable[2]}")
            self.environment[variable[1]] = value
            if code:
                self.wrong.append(f"{command.at}: {command.text}\n  ended with {code}: {value[-300:]}")
            return
        for pattern, ready in docs_table.BACKGROUND:
            if re.fullmatch(pattern, text):
                return self.serve(text, ready)
        code, said = self.shell(text)
        shown = command.text if text == command.text else f"{command.text}\n  run as: {text}"
        if code != command.exit_code:
            self.wrong.append(f"{command.at}: {shown}\n  ended with {code}, not {command.exit_code}:\n{said[-1500:]}")
        lost = missing(command.promised, said)
        if lost:
            self.wrong.append(f"{command.at}: {shown}\n  does not print (in this order): {lost}\n  but:\n{said[-3000:]}")

    def program(self, parts: list[Block]) -> None:
        """Run the page's Python, all of it as one session."""
        file = self.folder / "session.py"
        file.write_text("\n".join("\n" * (0 if i == 0 else 1) + b.text for i, b in enumerate(parts)), encoding="utf-8")
        code, said = self.shell(f"{shlex.quote(sys.executable)} session.py")
        if code:
            self.wrong.append(f"{self.page}:{parts[0].line}: the page's Python fails:\n{said[-1500:]}")

    def read(self) -> None:
        """The page, from its first block to its last."""
        for entry in docs_table.READY:
            if entry.page == self.page:
                code, said = self.shell(entry.commands)
                if code:
                    self.wrong.append(f"{self.page}: before it begins, '{entry.commands}' ended with {code}: {said[-800:]}")
        python: list[Block] = []
        for block in blocks(self.page):
            if block.kind in ("sh", "console"):
                for command in commands(self.page, block):
                    self.do(command)
            elif block.title:
                self.write(block)
            if block.kind == "toml" and self.page not in docs_table.APPLIED:  # keys that the page adds: its own test reads them
                try:
                    read_toml(block.text, self.folder)
                except Exception as error:  # whatever a reader raises is what is wrong with the page
                    self.wrong.append(f"{self.page}:{block.line}: {type(error).__name__}: {error}")
            if block.kind == "python" and not block.title:
                python.append(block)
        if python:
            self.program(python)

    def end(self) -> None:
        """End what still serves, and nothing else."""
        for process in self.serving:
            for pid in [*descendants(process.pid), process.pid]:
                if lives(pid):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
    return port


def _environment(folder: Path, cache: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RETROMPI_", "FORCE_COLOR")) and k not in ("COLUMNS",)}
    allowed = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"), "1")
    return {**kept, **allowed, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "RETROMPI_STORE": str(folder / "runs.db"),
            "XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(cache), "NO_COLOR": "1", "PORT": str(_free_port()),
            "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "180"}  # a reader with a wide terminal


def _work(page: str) -> int:
    """How long a page takes, roughly: the longest begin."""
    return sum(len(commands(page, b)) for b in blocks(page) if b.kind in ("sh", "console"))


def _tools(page: str) -> list[str]:
    text = [c.text for b in blocks(page) if b.kind in ("sh", "console") for c in commands(page, b) if not docs_table.left_out(page, c.text)]
    text += [r.commands for r in docs_table.READY if r.page == page]
    return [tool for pattern, tool in docs_table.TOOLS if any(re.search(pattern, t) for t in text) and shutil.which(tool) is None]


def _has_work(page: str) -> bool:
    return any(b.kind in ("sh", "console", "python", "toml") or b.title for b in blocks(page))


RUN = sorted((p for p in PAGES if _has_work(p) and p not in docs_table.ELSEWHERE), key=_work, reverse=True)


@pytest.fixture(scope="module")
def forked() -> Iterator[Forked]:
    process = Forked()
    yield process
    process.close()


def _read(page: str, folder: Path, cache: Path, request: pytest.FixtureRequest, forked: Forked | None = None) -> None:
    environment = _environment(folder, cache)
    if page == "docs/cluster.md":
        pytest.importorskip("distributed", reason="distributed not installed")
        environment["POSTGRES"] = request.getfixturevalue("postgres").database()
    if _tools(page):
        pytest.skip(f"{', '.join(_tools(page))} not installed")
    for name in FOLDERS:
        (folder / name).symlink_to(ROOT / name)
    (folder / "checkout").symlink_to(ROOT)
    reader = Reader(page, folder, environment, forked)
    try:
        reader.read()
    finally:
        reader.end()
    for seconds, text in reader.seconds:
        print(f"{seconds:6.1f} s  {text[:120]}")
    assert not reader.wrong, "\n\n".join(reader.wrong)


@pytest.mark.parametrize("page", [p for p in RUN if p not in docs_table.LONG])
def test_page(page: str, tmp_path: Path, cache_folder: Path, request: pytest.FixtureRequest, forked: Forked) -> None:
    _read(page, tmp_path, cache_folder, request, forked)


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", RUN)
def test_page_as_it_is_typed(page: str, tmp_path: Path, cache_folder: Path, request: pytest.FixtureRequest) -> None:
    _read(page, tmp_path, cache_folder, request)


def test_every_command_of_a_long_page_is_understood() -> None:
    """What `make exhaustive` runs has the commands and the options that there are."""
    for page in docs_table.LONG:
        said = [_parsed(c.text) for b in blocks(page) if b.kind in ("sh", "console") for c in commands(page, b)]
        assert [s for s in said if s] == []


def _parsed(text: str) -> str:
    """Why a command's words are not understood; "" where they are, and for what is no command of ours."""
    if not text.startswith("retrompi "):
        return ""
    words = shlex.split(text.partition(" | ")[0].partition(" > ")[0])[1:]
    context, command = click.Context(cli, info_name="retrompi"), cli
    try:
        while isinstance(command, click.Group):
            name, found, words = command.resolve_command(context, words)
            assert found is not None
            context, command = click.Context(found, parent=context, info_name=name), found
        command.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        return f"{text}: {error.format_message()}"
    return ""


# -- the pages and the table ------------------------------------------------------------------------------------------


@for_each("page", PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    for block in blocks(page):
        where = f"{page}:{block.line}"
        assert block.kind in ("sh", "console", "python", "toml", "json", *SHOWN), f"{where}: a block of kind '{block.kind}'"
        if block.kind in SHOWN and block.kind != "bash" and not block.title:  # scripts in bash: tests/test_shards.py runs them
            for line in block.lines:
                assert line.split(" ")[0] not in ("retrompi", "$", "make", "pip"), (
                    f"{where}: a command in a block that is only shown: {line}"
                )
        if block.kind == "console":
            assert block.lines[0].startswith("$ "), f"{where}: printed by nothing"


@for_each("page", PAGES)
def test_a_file_that_a_page_shows_is_used_by_it(page: str) -> None:
    if page in docs_table.APPLIED:
        assert (ROOT / docs_table.APPLIED[page]).is_file()
        return
    text = "\n".join(c.text for b in blocks(page) if b.kind in ("sh", "console") for c in commands(page, b))
    for block in blocks(page):
        if block.title:
            top = block.title.partition("/")[0]
            assert top in text, f"{page}:{block.line}: no command uses {block.title}"


def test_every_entry_of_the_table_is_needed_and_has_a_reason() -> None:
    every = every_command()
    used = {id(e) for c in every if not docs_table.left_out(c.page, c.text) for e in docs_table.replaced(c.page, c.text)[1]}
    used |= {id(docs_table.left_out(c.page, c.text)) for c in every}
    for entry in (*docs_table.INSTEAD, *docs_table.NOT_RUN):
        assert id(entry) in used, f"no command needs {entry}"
        assert len(entry.reason) > 10
    for ready in docs_table.READY:
        assert ready.page in PAGES
        assert ready.reason


def test_who_is_said_to_run_what_is_not_run_here_exists() -> None:
    for page, test in docs_table.ELSEWHERE.items():
        assert page in PAGES
        assert page in (ROOT / test).read_text(encoding="utf-8")
    for entry in docs_table.NOT_RUN:
        named = re.findall(r"(?:tests|docs|packaging)/\w[\w-]*\.(?:py|md)", entry.reason)
        assert named, entry
        for file in named:
            assert (ROOT / file).is_file(), file


def test_few_commands_are_not_run() -> None:
    every = every_command()
    left = [c for c in every if docs_table.left_out(c.page, c.text)]
    assert len(left) < len(every) / 10, [c.at for c in left]


def test_what_a_page_promises_is_looked_for_in_order() -> None:
    assert missing(("a  b", "", "...", "c"), "x\na b\ny c z") == []
    assert missing(("c", "a b"), "a b\nc") == ["a b"]
    assert missing(("gone",), "here") == ["gone"]


def test_commands_are_read_as_they_are_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n    retrompi one 'a # b'   # exit code 1: so it is\n\n"
        "- a list\n\n    not code\n\n```console\n$ retrompi two \\\n    --more   # why\n"
        "first\n\n"
        '$ retrompi three\n```\n\n```toml title="a.toml"\nx = 1\n```\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(doc_pages, "ROOT", tmp_path)
    found = blocks("page.md")
    assert [(b.kind, b.title) for b in found] == [("sh", ""), ("console", ""), ("toml", "a.toml")]
    one, two, three = [c for b in found[:2] for c in commands("page.md", b)]
    assert (one.text, one.exit_code) == ("retrompi one 'a # b'", 1)
    assert (two.text, two.promised) == ("retrompi two      --more", ("first", ""))
    assert (three.text, three.promised, three.exit_code) == ("retrompi three", (), 0)
