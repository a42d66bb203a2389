"""What others install: the version, man pages, completions and install.sh. The wheel itself is `make wheel-check`'s matter."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import click
import pytest
from cases import for_each

import retrompi
from retrompi.cli.main import cli
from retrompi.measure.smpi.plugin import source_files

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
INSTALL = PACKAGING / "install.sh"
PYTHON_TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"


# -- the version -----------------------------------------------------------------------------------------------------------------------


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    newest = re.search(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited is not None
    assert newest is not None
    assert project["version"] == cited[1] == newest[1] == retrompi.__version__


def test_folders_of_the_wheel_exist() -> None:
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    assert [f for f in folders.values() if not (ROOT / f / "__init__.py").is_file()] == []


def test_the_wheel_takes_the_sources_of_the_smpi_plug_in_along() -> None:
    """It is compiled on the user's machine, of its own sources and some of the engine's."""
    pathspec = pytest.importorskip("pathspec")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]
    excluded = pathspec.GitIgnoreSpec.from_lines(settings["exclude"])
    files = [f"retrompi/{f.relative_to(Path(retrompi.__file__).parent)}" for f in source_files()]
    assert len(files) > 100
    assert [f for f in files if excluded.match_file(f)] == []


# -- man pages and completions ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make man` makes."""
    if importlib.util.find_spec("click_man") is None:
        pytest.skip("click-man is not installed")
    folder = tmp_path_factory.mktemp("share")
    subprocess.run([sys.executable, str(PACKAGING / "manpages.py"), str(folder)], check=True)
    return folder


def names(command: click.Command, name: str) -> list[str]:
    """The command and those in it, as their pages are called."""
    within = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
    out = [name]
    for sub in within:
        found = command.get_command(click.Context(command), sub) if isinstance(command, click.Group) else None
        out += names(found, f"{name}-{sub}") if found is not None and not found.hidden else []
    return out


def test_every_command_has_a_page_with_its_options(share: Path) -> None:
    assert {p.stem for p in (share / "man" / "man1").iterdir()} == {*names(cli, "retrompi")}
    page = (share / "man" / "man1" / "retrompi-pingpong.1").read_text()
    for word in (r"\-\-model", r"\-\-set", r"\-h,", "PingPong"):
        assert word in page
    assert ".nf" in (share / "man" / "man1" / "retrompi.1").read_text(), "examples are kept as they are"


@pytest.mark.parametrize("reader", ["groff", "mandoc", "man"])
def test_pages_are_read_without_a_warning(share: Path, reader: str) -> None:
    if shutil.which(reader) is None:
        pytest.skip(f"{reader} is not installed")
    command = {
        "groff": ["groff", "-man", "-Tutf8", "-ww", "-z"],
        "mandoc": ["mandoc", "-T", "lint", "-W", "warning"],
        "man": ["man", "--warnings", "-l"],
    }[reader]
    env = {**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}
    for page in sorted((share / "man" / "man1").iterdir()):
        done = subprocess.run([*command, str(page)], capture_output=True, text=True, env=env)
        assert (done.returncode, done.stderr, done.stdout if reader == "mandoc" else "") == (0, "", ""), page.name


@pytest.mark.parametrize(("shell", "place"), [
    ("bash", "bash-completion/completions/retrompi"),
    ("zsh", "zsh/site-functions/_retrompi"),
    ("fish", "fish/vendor_completions.d/retrompi.fish"),
])
def test_completions_are_what_a_shell_reads(share: Path, shell: str, place: str) -> None:
    assert "_RETROMPI_COMPLETE" in (share / place).read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n", str(share / place)]).returncode == 0


# -- scripts ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", sorted(PACKAGING.glob("*.sh")), ids=lambda p: p.name)
def test_scripts_are_plain_sh(script: Path) -> None:
    assert subprocess.run(["sh", "-n", str(script)]).returncode == 0
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True)
    assert done.stdout == ""


def test_another_source_distribution_of_simgrid_is_refused(tmp_path: Path) -> None:
    (tmp_path / "simgrid.tar.gz").write_bytes(b"something else")
    env = {**os.environ, "SIMGRID_SDIST": str(tmp_path / "simgrid.tar.gz")}
    done = subprocess.run([str(PACKAGING / "simgrid.sh"), str(tmp_path / "out")], capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert re.fullmatch(r".* is not SimGrid 4\.1: its SHA-256 is [0-9a-f]{64}, not [0-9a-f]{64}; .*\n", done.stderr)


# -- install.sh ------------------------------------------------------------------------------------------------------------------------

METADATA = "Metadata-Version: 2.1\nName: retrompi\nVersion: {version}\n"
PROGRAM = "def main():\n    print('retrompi {version}')\n"


def wheel(folder: Path, version: str, program: str = PROGRAM, needs: str = "", glibc: str = "linux") -> Path:
    """A small stand-in for retrompi: a command, a man page and a completion."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    tag = f"{PYTHON_TAG}-{PYTHON_TAG}-{glibc}_{platform.machine()}"
    path = folder / f"retrompi-{version}-{tag}.whl"
    info, data = f"retrompi-{version}.dist-info", f"retrompi-{version}.data/data/share"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("retrompi.py", program.format(version=version))
        z.writestr(f"{info}/METADATA", METADATA.format(version=version) + (f"Requires-Dist: {needs}\n" if needs else ""))
        z.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        z.writestr(f"{info}/entry_points.txt", "[console_scripts]\nretrompi = retrompi:main\n")
        z.writestr(f"{data}/man/man1/retrompi.1", ".TH RETROMPI 1\n")
        z.writestr(f"{data}/bash-completion/completions/retrompi", "complete retrompi\n")
        z.writestr(f"{info}/RECORD", "")
    return path


def install(place: Path, *options: str, path: str | None = None, python: bool = True) -> subprocess.CompletedProcess[str]:
    """Call install.sh with a prefix and links in ``place``; ``path``: a folder whose programs come first."""
    env = {"PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"], "HOME": str(place), "PIP_CONFIG_FILE": os.devnull}
    with_python = ["--python", sys.executable] if python and "--uninstall" not in options else []
    command = ["sh", str(INSTALL), "--prefix", str(place / "prefix"), "--links", str(place / "links"), *with_python, *options]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=place)


@pytest.mark.exhaustive
def test_install_upgrade_failed_upgrade_and_uninstall(tmp_path: Path) -> None:
    house, command = tmp_path / "house", tmp_path / "links" / "bin" / "retrompi"
    wheel(house, "1.0")
    foreign = tmp_path / "links" / "share" / "bash-completion" / "completions" / "retrompi"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("somebody's own")

    done = install(tmp_path, "--from", str(house))
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(command)], capture_output=True, text=True).stdout == "retrompi 1.0\n"
    assert (tmp_path / "links" / "share" / "man" / "man1" / "retrompi.1").resolve().is_file()
    assert foreign.read_text() == "somebody's own"
    assert "is kept" in done.stderr
    for file in (tmp_path / "prefix").rglob("*"):
        assert file.is_symlink() or not file.stat().st_mode & 0o022, f"others may write {file}"
        assert file.stat().st_mode & 0o044, f"others may not read {file}"

    before = command.resolve()
    assert "already" in install(tmp_path, "--from", str(house)).stdout
    assert command.resolve() == before

    wheel(house, "2.0", needs="no-such-package-of-retrompi")
    done = install(tmp_path, "--from", str(house))
    assert done.returncode == 2
    assert subprocess.run([str(command)], capture_output=True, text=True).stdout == "retrompi 1.0\n"

    wheel(house, "2.0")
    assert install(tmp_path, "--from", str(house)).returncode == 0
    assert subprocess.run([str(command)], capture_output=True, text=True).stdout == "retrompi 2.0\n"
    assert len([*(tmp_path / "prefix").glob("venv-*")]) == 1

    assert install(tmp_path, "--uninstall").returncode == 0
    assert not (tmp_path / "prefix").exists()
    assert [p for p in (tmp_path / "links").rglob("*") if not p.is_dir()] == [foreign]


def stub(folder: Path, name: str, text: str) -> str:
    """A program of this name that prints ``text``; the folder, for the PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{text}'\n")
    (folder / name).chmod(0o755)
    return str(folder)


@for_each("what, says", [
    ("python", r"python3 is Python 3\.9, too old: 3\.11 or newer is needed"),
    ("venv", r"python3 \(Python 3\.11\) cannot make a virtual environment; Debian and Ubuntu: apt-get install python3-venv"),
    ("other python", r"python3 is cp399, and the wheels in .* are for cp3\d+ "),
    ("glibc", r"glibc 2\.31 is too old, 2\.34 is needed \(Debian 12, .*"),
    ("musl", r"this system's C library is not the GNU one, .*"),
    ("processor", r".*no wheel for this processor \(riscv64\), only .*"),
    ("no folder", r"--from .*: no such folder, .*"),
    ("no wheel", r"--from .*: no wheel of retrompi in that folder; .*"),
    ("occupied", r".*/prefix has files of something else; .*"),
    ("same", r"--prefix and --links name the same folder; .*"),
    ("option", r"unknown option '--frm' .*"),
    ("value", r"--from needs a value .*"),
    ("nothing", r"nothing of install\.sh in .*"),
])
def test_a_machine_that_does_not_fit_is_told_in_one_line(what: str, says: str, tmp_path: Path) -> None:
    house, path = tmp_path / "house", None
    wheel(house, "1.0", glibc="manylinux_2_34" if what == "glibc" else "linux")
    options = ["--from", str(house)]
    words = {"python": "old 3.9", "venv": "venv 3.11", "other python": "cp399"}
    if what in words:
        for name in ("python3", "python3.11", "python3.12", "python3.13"):
            path = stub(tmp_path / "bin", name, words[what])
        says = says.replace("python3 ", r"python3(\.1\d)? ")
    elif what == "glibc":
        path = stub(tmp_path / "bin", "getconf", "glibc 2.31")
    elif what == "musl":
        path = stub(tmp_path / "bin", "getconf", "")
    elif what == "processor":
        path = stub(tmp_path / "bin", "uname", "riscv64")
    elif what == "no folder":
        options = ["--from", str(tmp_path / "nowhere")]
    elif what == "no wheel":
        (tmp_path / "empty").mkdir()
        options = ["--from", str(tmp_path / "empty")]
    elif what == "occupied":
        (tmp_path / "prefix").mkdir()
        (tmp_path / "prefix" / "thesis.tex").write_text("")
    elif what == "same":
        options += ["--links", str(tmp_path / "prefix")]
    elif what == "option":
        options = ["--frm", str(house)]
    elif what == "value":
        options = ["--from"]
    elif what == "nothing":
        options = ["--uninstall"]
    done = install(tmp_path, *options, path=path, python=what not in words)
    assert done.returncode == 2
    assert re.fullmatch(f"install\\.sh: {says}\n", done.stderr), done.stderr
    assert [*tmp_path.glob("prefix/venv-*"), *tmp_path.glob("links/*")] == []
