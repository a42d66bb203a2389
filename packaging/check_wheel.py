"""What a wheelhouse does on a machine that has nothing: ``python3 packaging/check_wheel.py dist/wheelhouse [--picoseconds FILE]``.

Installs with ``install.sh`` outside of the checkout, without an index, goes to an empty folder as another user, and runs the demo, a trace,
a study, a lab and the studio. As root a mount namespace first hides every SimGrid, compiler and MPI of the machine; where that is not
allowed it says so, and what is left is the proof by the process's memory map that the carried library is used. Needs a Python only.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

HIDDEN_FILES = (
    "/usr/lib/*/libsimgrid*", "/usr/lib/libsimgrid*", "/usr/local/lib/libsimgrid*", "/usr/bin/smpi*", "/usr/local/bin/smpi*",
    "/usr/bin/gcc*", "/usr/bin/g++*", "/usr/bin/cc", "/usr/bin/c++", "/usr/bin/c[89]9", "/usr/bin/clang*", "/usr/bin/*-linux-gnu-g*",
    "/usr/bin/gfortran*", "/usr/bin/f77", "/usr/bin/f95", "/usr/bin/cmake", "/usr/bin/ninja", "/usr/bin/make", "/usr/bin/mpi*",
    "/usr/local/bin/mpi*",
)
"""What a lab's machine does not have: SimGrid, compilers, MPIs."""
HIDDEN_FOLDERS = ("/usr/include", "/usr/local/include")
NOBODY = 65534

PROGRAM = """#include <mpi.h>
int main(int argc, char** argv) { MPI_Init(&argc, &argv); MPI_Finalize(); return 0; }
"""
SOLVE = """
import sys
from pathlib import Path
from retrompi.labs import lab, start, student
from retrompi.labs.bench import Bench
from retrompi.store import open_store
one, folder, who = lab.lab(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
store = open_store(Path(sys.argv[4]))
with store.hold_connection():
    getattr(start, sys.argv[5])(one, folder, student.draw(one, who), Bench(store, folder), who)
"""


class Failed(Exception):
    """A step did not do what it should; the message has its words."""


def hide() -> str:
    """Go into a mount namespace without SimGrid, compilers and MPIs, if there are any; what was done, in words."""
    import ctypes
    import glob

    files = {os.path.realpath(p) for pattern in HIDDEN_FILES for p in glob.glob(pattern) if os.path.isfile(p)}
    folders = [f for f in HIDDEN_FOLDERS if os.path.isdir(f) and os.listdir(f)]
    if not files:
        return "this machine has no SimGrid, no compiler and no MPI: there is nothing to hide"
    clone_newns, bind, recursive, private = 0x20000, 4096, 16384, 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)
    refused = (
        "this machine lets us hide nothing: a compiler, an MPI and another SimGrid can be seen; that ours is used is checked all the same"
    )
    if os.geteuid() != 0 or libc.unshare(clone_newns) != 0 or libc.mount(b"none", b"/", None, recursive | private, None) != 0:
        return refused
    empty = tempfile.mkdtemp(prefix="retrompi-nothing-")
    for path, nothing in [*((f, os.devnull) for f in files), *((f, empty) for f in folders)]:
        if libc.mount(nothing.encode(), path.encode(), None, bind, None) != 0:
            return refused
    return f"hidden for this check: {len(files)} files of SimGrid, compilers and MPIs, and {', '.join(folders)}"


class Bed:
    """An installation in a temporary folder and an empty folder to stand in."""

    def __init__(self, wheelhouse: Path, where: Path, bare: bool) -> None:
        self.wheelhouse, self.where, self.bare = wheelhouse, where, bare
        self.prefix, self.links, self.home, self.here = (where / n for n in ("prefix", "links", "home", "empty"))
        for folder in (self.home, self.here):
            folder.mkdir()
        where.chmod(0o755)
        self.user = NOBODY if os.geteuid() == 0 and runs_as_nobody() else None
        if os.geteuid() == 0 and self.user is None:
            print(f"other users may not run {sys.executable}: the commands run as root")
        if self.user is not None:
            for folder in (self.home, self.here):
                os.chown(folder, NOBODY, NOBODY)
        self.env = {"PATH": f"{self.links}/bin:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8", "NO_COLOR": "1"}
        self.python = self.prefix / "current" / "bin" / "python"

    def install(self, *options: str) -> str:
        """Call install.sh as whoever we are."""
        command = ["sh", str(self.wheelhouse / "install.sh"), "--prefix", str(self.prefix), "--links", str(self.links), *options]
        if "--uninstall" not in options:
            command += ["--python", sys.executable]
        # pip must find all in the wheelhouse: no setting of this machine helps it.
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PIP_CONFIG_FILE": os.devnull}
        done = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def run(self, *command: str, code: int = 0, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run ``command`` in the empty folder as nobody; another exit code than ``code`` has failed."""
        done = subprocess.run(
            command, cwd=self.here, env=self.env, user=self.user, group=self.user, extra_groups=[] if self.user else None,
            capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
        )
        if done.returncode != code:
            raise Failed(f"exit code {done.returncode}, not {code}, of {' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        if "Traceback (most recent" in done.stderr:
            raise Failed(f"a traceback of {' '.join(command)}:\n{done.stderr[-3000:]}")
        return done

    def ask(self, code: str, *arguments: str) -> str:
        """What ``code`` prints in the installed Python."""
        return self.run(str(self.python), "-c", code, *arguments).stdout.strip()

    # -- the steps -------------------------------------------------------------------------------------------------------------

    def installs(self) -> str:
        """install.sh, once and again."""
        said = self.install("--from", str(self.wheelhouse))
        again = self.install("--from", str(self.wheelhouse))
        need("already" in again, f"a second call is no second installation: {again}")
        for link in (self.links / "bin" / "retrompi", self.links / "share" / "man" / "man1" / "retrompi-pingpong.1",
                     self.links / "share" / "bash-completion" / "completions" / "retrompi"):
            need(link.is_symlink() and link.resolve().is_file(), f"no link {link}")
        need(not (self.prefix / "current" / "bin" / "retrompi").stat().st_mode & 0o022, "others may write what all share")
        return said.splitlines()[0]

    def version(self) -> str:
        """Installed is what the wheel's name says."""
        wheel = next(self.wheelhouse.glob("retrompi-*.whl")).name
        said = self.run("retrompi", "--version").stdout.strip()
        need(said == f"retrompi {wheel.split('-')[1]}", f"{said} of {wheel}")
        return f"{said} of {wheel}"

    def library(self) -> str:
        """The SimGrid in use is the carried one, with its licence."""
        code = "import retrompi._engine as e; print(e.simgrid_version()); print(open('/proc/self/maps').read())"
        version, *maps = self.ask(code).splitlines()
        loaded = {line.split(maxsplit=5)[5] for line in maps if "libsimgrid" in line}
        need(len(loaded) == 1 and all(f.startswith(str(self.prefix.resolve())) for f in loaded), f"the SimGrid in use is {loaded}")
        site = Path(self.ask("import retrompi; print(retrompi.__path__[0])")).parent
        licences = sorted(p.name for p in site.glob("retrompi-*.dist-info/licenses/simgrid/*"))
        need({"LICENSE-LGPL-2.1", "COPYING", "README"} <= {*licences}, f"licence texts of SimGrid: {licences}")
        return f"SimGrid {version} from {Path(loaded.pop()).relative_to(self.prefix.resolve())}"

    def files(self) -> str:
        """Everything of the source distribution that belongs to the package is there."""
        import tarfile

        sdist = next((self.wheelhouse / "sources").glob("retrompi-*.tar.gz"))
        with tarfile.open(sdist) as archive:
            names = [n.partition("/")[2] for n in archive.getnames()]
        site = Path(self.ask("import retrompi; print(retrompi.__path__[0])"))
        missing, n = [], 0
        for name in names:
            top, _, rest = name.partition("/")
            place = {"labs": "course/labs"}.get(top, top)
            if top == "src" and rest.startswith("retrompi/"):
                path = site / rest.removeprefix("retrompi/")
            elif top in ("models", "platforms", "scenarios", "validate", "labs", "cli") and rest:
                path = site / place / rest
            else:
                continue
            n += 1
            if not path.exists():
                missing.append(name)
        need(not missing and n > 300, f"not in the wheel: {', '.join(missing[:10])} ({n} looked for)")
        return f"{n} files"

    def demo(self) -> str:
        """What make demo does."""
        self.run("retrompi", "reproduce", "baker-fox", "--out", "demo")
        page = self.here / "demo" / "baker-fox.html"
        need(page.stat().st_size > 100_000, "the page is small")
        return f"demo/baker-fox.html, {page.stat().st_size >> 10} KiB"

    def trace(self) -> str:
        """A captured NAS program on another runtime."""
        folder = self.ask("from retrompi.base.paths import reference_dir; print(reference_dir() / 'traces')")
        said = self.run("retrompi", "replay", f"{folder}/npb3.3.1-lu-A-4.tar.zst", "-m", "winmpich", "-p", "nt-cluster", "--np", "4")
        need("completed" in said.stdout, said.stdout[-500:])
        return "NAS LU, class A, 4 ranks, completed"

    def study(self) -> str:
        """A sweep that stores its runs, and its table again."""
        self.run("retrompi", "sweep", "bf-wmpi-distributed", "--vary", "platform.link.bandwidth=10Mbps,100Mbps", "--name", "check")
        shown = self.run("retrompi", "study", "show", "check").stdout
        need("100" in shown, shown)
        return "two points, stored and shown"

    def lab(self) -> str:
        """A blank sheet and a wrong one fail, the reference solution passes."""
        self.run("retrompi", "lab", "start", "01", "--student", "anna", "--folder", "mine")
        self.run("retrompi", "lab", "check", "mine", code=1)
        for what, code in (("spoil", 1), ("solve", 0)):
            shutil.rmtree(self.here / "mine")
            self.run("retrompi", "lab", "start", "01", "--student", "anna", "--folder", "mine")
            self.ask(SOLVE, "01", "mine", "anna", str(self.home / "lab.db"), what)
            self.run("retrompi", "lab", "check", "mine", code=code)
        return "lab 01: blank and wrong sheets fail, the reference passes"

    def studio(self) -> str:
        """The first page, and its own files, by HTTP."""
        command = ["retrompi", "studio", "--port", "0", "--no-browser"]
        server = subprocess.Popen(
            command, cwd=self.here, env=self.env, user=self.user, group=self.user, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            found = re.search(r"https?://\S+", line)
            need(found is not None, f"no address: {line}{server.stderr.read() if server.poll() is not None and server.stderr else ''}")
            assert found is not None
            address = found[0]
            page = fetched(address)
            need("retrompi" in page, page[:500])
            assets = re.findall(r'(?:src|href)="(/[^"]+)"', page)
            foreign = re.findall(r'(?:src|href)="((?:https?:)?//[^"]+)"', page)
            need(bool(assets) and not foreign, f"files of other hosts: {foreign}")
            for asset in assets:
                fetched(address.split("/?")[0].rstrip("/") + asset.replace("&amp;", "&"))
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        return f"first page and {len(assets)} files of its own"

    def backends(self) -> str:
        """What needs a compiler says what to install, in one line; where one can be seen, it is kept from the commands by their PATH."""
        (self.here / "program.c").write_text(PROGRAM, encoding="utf-8")
        wanted = {"smpi": "libsimgrid-dev", "native": "libmpich-dev", "model": "libsimgrid-dev"}
        if not self.bare:
            self.env["PATH"] = f"{self.links}/bin"
        for backend, package in wanted.items():
            more = [] if backend == "native" else ["-m", "wmpi", "-p", "nt-cluster", "-n", "2"]
            said = self.run("retrompi", "run", "--backend", backend, *more, "program.c", code=2).stderr.splitlines()
            need(len(said) == 1 and package in said[0], f"--backend {backend}: {said}")
        return "smpi, native and model name their package in one line"

    def manual(self) -> str:
        """man finds the pages beside the command."""
        pages = sorted((self.prefix / "current" / "share" / "man" / "man1").glob("retrompi*.1"))
        need(len(pages) > 50, f"{len(pages)} man pages")
        if shutil.which("man"):
            found = subprocess.run(["man", "-w", "retrompi-pingpong"], env={**self.env, "MANPATH": ""}, capture_output=True, text=True)
            need(found.returncode == 0, found.stderr)
        return f"{len(pages)} pages"

    def uninstalls(self) -> str:
        """Nothing is left but what users kept."""
        self.install("--uninstall")
        left = [p for p in self.links.rglob("*") if p.is_symlink() or p.is_file()] + [p for p in [self.prefix] if p.exists()]
        need(not left, f"left behind: {left[:5]}")
        return "prefix and links are gone"


def runs_as_nobody() -> bool:
    """Whether another user may run this Python, which is not so of one in root's home."""
    try:
        done = subprocess.run([sys.executable, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def need(right: bool, otherwise: str) -> None:
    """Raise Failed unless ``right``."""
    if not right:
        raise Failed(otherwise)


def fetched(address: str) -> str:
    """A page by HTTP; the server has up to 30 s to begin."""
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return str(answer.read().decode("utf-8", "replace"))
        except (ConnectionError, TimeoutError):
            refused = True
        except urllib.error.HTTPError as error:
            raise Failed(f"{address}: {error}") from error
        except urllib.error.URLError as error:
            refused = isinstance(error.reason, (ConnectionError, TimeoutError))
        need(refused and time.monotonic() < end, f"{address}: no answer")
        time.sleep(0.1)


def same_times(bed: Bed, expected: Path) -> Callable[[], str]:
    """The step that runs picoseconds.py in the installation and compares."""

    def times() -> str:
        script = bed.where / "picoseconds.py"
        shutil.copy(Path(__file__).with_name("picoseconds.py"), script)
        script.chmod(0o644)
        got = bed.run(str(bed.python), str(script)).stdout.splitlines()
        want = expected.read_text(encoding="utf-8").splitlines()
        need(len(want) > 1000, f"{expected} has {len(want)} lines")
        other = [f"  {a}\n  {b}" for a, b in zip(want, got, strict=False) if a != b]
        need(want == got, f"{len(other)} of {len(want)} runs differ from {expected}, first:\n" + "\n".join(other[:3]))
        return f"{len(want)} runs, not a picosecond apart"

    return times


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps; exit code 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheelhouse", type=Path)
    parser.add_argument("--picoseconds", type=Path, help="what picoseconds.py printed with another build: compare")
    given = parser.parse_args(arguments)
    hidden = hide()
    print(hidden, flush=True)
    where = Path(tempfile.mkdtemp(prefix="retrompi-wheel-")).resolve()
    try:
        bed = Bed(given.wheelhouse.resolve(), where, bare="no SimGrid" in hidden or "hidden for" in hidden)
        steps: list[Callable[[], str]] = [
            bed.installs, bed.version, bed.library, bed.files, bed.manual, bed.demo, bed.trace, bed.study, bed.lab, bed.studio,
            bed.backends,
        ]
        if given.picoseconds:
            steps.append(same_times(bed, given.picoseconds.resolve()))
        for step in [*steps, bed.uninstalls]:
            began = time.monotonic()
            try:
                said = step()
            except Failed as failure:
                print(f"FAILED {getattr(step, '__name__', '?')}: {failure}", file=sys.stderr)
                return 1
            print(f"ok {time.monotonic() - began:6.1f} s  {getattr(step, '__name__', '?'):<11} {said}", flush=True)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
