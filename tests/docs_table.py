"""How the commands of the documentation are run where they cannot run as they stand: one table, each entry with its reason.

Four lists. ``READY``: what a page's reader has before its first command. ``INSTEAD``: what is run in place of words of a command. ``NOT_RUN``: whole
commands that nothing runs here, with who does. ``BACKGROUND``: what serves until it is ended. A command that is in none of them runs exactly as the
page has it, and an entry that no command needs fails the test.
"""

from __future__ import annotations

import functools
import re
import subprocess
from dataclasses import dataclass

__all__ = ["BACKGROUND", "INSTEAD", "LONG", "NOT_RUN", "READY", "TOOLS", "Instead", "NotRun", "Ready", "lacking", "left_out", "replaced"]


@dataclass(frozen=True)
class Ready:
    """``page`` takes for granted what ``commands`` (a shell's) make."""

    page: str
    commands: str
    reason: str


@dataclass(frozen=True)
class Instead:
    """In commands of ``page`` (a regular expression) ``old`` (a regular expression) becomes ``new``."""

    page: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True)
class NotRun:
    """Commands of ``page`` that match ``command`` (both regular expressions, from begin to end) are not run."""

    page: str
    command: str
    reason: str


_SOURCES = "cp examples/jacobi.c app.c && cp examples/example.h ."
_APP = f"{_SOURCES} && mpicc -O2 app.c -lm -o app"
_MPICH = "retrompi calibrate this-machine --recording tests/data/machine/epyc-mpich.json.zst"
_TRACE = "retrompi trace convert examples/traces/jacobi-4.tar.zst my-trace/"
_NETPIPE = "cp tests/data/measured/netpipe37-np.out"

READY = [
    Ready("README.md", f"{_APP} && {_NETPIPE} netpipe.out", "the reader's own program and measurement"),
    Ready("docs/recording.md", f"{_APP} && cp examples/life.py app.py", "the reader's own programs"),
    Ready("docs/labs.md", "for who in anna ben; do retrompi lab start 1 --student $who --folder handed-in/$who; done", "what a class handed in"),
    Ready("docs/smpi.md", _SOURCES, "the reader's own source"),
    Ready("docs/run.md", "mpicc -O2 examples/jacobi.c -lm -o jacobi", "the reader's own binary"),
    Ready("docs/compare.md", f"{_MPICH} && {_SOURCES}", "a machine that was calibrated before, and the reader's own source"),
    Ready("docs/compare.md", "retrompi measured import tests/data/measured/netpipe37-np.out --label netpipe", "a curve that was imported before"),
    Ready("docs/fit.md", f"{_NETPIPE} np.out", "the reader's own measurement"),
    Ready("docs/timeline.md", _TRACE, "the reader's own trace"),
    Ready("docs/function.md", "retrompi trace convert examples/traces/pingpong-2.tar.zst my-trace/", "the reader's own trace, of two ranks"),
    Ready("docs/course-lti.md", "retrompi course new MPI --labs 1", "a course"),
    Ready("docs/convert.md", _TRACE, "the reader's own trace"),
    Ready("docs/convert.md", "retrompi replay examples/traces/jacobi-4.tar.zst -m wmpi -p nt-cluster --timeline run.otf2 --timeline-limit 100000",
          "a trace in OTF2"),
]

_SHORT = "hundreds of PingPongs of 4 MiB take half a minute; a hundredth of them says as much"
_FEW = "ten repetitions of a program are for its noise, which nothing here looks at"
_LAST = "$(retrompi runs list --csv | tail -1 | cut -d, -f1)"
_NATIVE = "$(retrompi runs list --kind native --csv | tail -1 | cut -d, -f1)"

INSTEAD = [
    Instead(".*", r"^make ([\w-]+)(?: \w+=\S+)*$", r"make -n -C checkout \1", "would install, build or run for minutes: here, that make knows the goal"),
    Instead("README.md", r"reproduce baker-fox --image svg", "reproduce krishna-2010 --image svg",
            "3 s instead of 30 s; docs/howto/published-curve.md reproduces baker-fox"),
    Instead("docs/howto/published-curve.md", r"\b(reproduce|validate --paper) baker-fox\b", r"\1 hudson-wang",
            "another paper with statements that fail: 2 s instead of 20 s; tests/test_atlas.py and tests/test_cli.py have baker-fox"),
    Instead("README.md", r"^(retrompi break-even .*)$", r"\1 --set trace.sizes=64KiB --set trace.reps=10", "one size, few repetitions, as docs/answers.md has it: 3 s instead of 20 s"),
    Instead("README.md", r"^(retrompi sweep .*wmpi,hpvm)$", r"\1 --set trace.sizes=64KiB --set trace.reps=5", "one size, few repetitions: a tenth of the time"),
    Instead("README.md|docs/run.md|docs/compare.md", r"(.*(?:--backend native|compare examples/pingpong.c).*)", r"\1 -r 1", _FEW),
    Instead("README.md|docs/run.md|docs/compare.md", r"(.*) -- (.*) -r 1$", r"\1 -r 1 -- \2", "options stand before the program's own arguments"),
    Instead("README.md|docs/run.md|docs/compare.md", r"(.*(?:--backend|compare) .*examples/pingpong\.c.*)", r"\1 -- --scale 0.01 --max 65536", _SHORT),
    Instead("README.md|docs/smpi.md|docs/compare.md", r"(.*(?:--backend smpi|compare) .*(?:jacobi|app)\.c.*)", r"\1 -- --size 40 --sweeps 10",
            "a small grid: what is shown is that it runs"),
    Instead("docs/compare.md", r"compare --suite", "compare --suite --only jacobi -r 1", "the suite takes minutes: one program of it; tests/test_compare.py"),
    Instead("docs/this-machine.md", r"^(retrompi calibrate this-machine)$", rf"{_MPICH} #\1",
            "a minute and a half of measuring, and a machine at rest: here from the recording; --quick measures, on docs/this-machine.md"),
    Instead("docs/this-machine.md", r"--record m.json.zst", "--quick --record m.json.zst", "seconds instead of a minute and a half"),
    Instead("docs/nemesis.md", r"calibrate nemesis -p abe", "calibrate nemesis -p abe --dry-run", "would write into the models of the checkout"),
    Instead("docs/rinf1.md", r"--fit", "--fit --dry-run", "would write into the platforms of the checkout"),
    Instead("docs/recording.md", r"--smpi -n 4 -- ./app", "--smpi -n 4 -- ./app.c -- --size 40 --sweeps 10", "the same program as a source, for it was built by mpicc"),
    Instead("docs/recording.md", r"python app.py", "/usr/bin/python3 app.py --size 32 --generations 4", "mpi4py is the system's, not this environment's"),
    Instead("docs/fit.md", r"mpiexec -n 2 ./osu_latency", "cat tests/data/measured/osu53-latency.txt", "OSU's programs are not in the checkout: here what one printed"),
    Instead("docs/timeline.md", r"--versus 11\b", f"--versus {_LAST}", "11 stands for another run"),
    Instead("docs/timeline.md", r"retrompi timeline 12\b", f"retrompi timeline {_LAST}", "12 stands for the run just made"),
    Instead("docs/compare.md", r"--runs 12,13,14", "--runs $(retrompi runs list --csv | cut -d, -f1,3 | grep -E ',(native|smpi|program)$' | head -3 | cut -d, -f1 | paste -sd,)",
            "12, 13 and 14 stand for the three runs of the first comparison"),
    Instead("docs/compare.md", r"--measured 12\b", f"--measured {_NATIVE}", "12 stands for a native run"),
    Instead("docs/compare.md", r"reproduce baker-fox", "reproduce krishna-2010", "3 s instead of 30 s"),
    Instead("docs/compare.md", r"netpipe@shared-time", "netpipe@node-latency", "the other paper's figure"),
    Instead("README.md|docs/.*", r"^(retrompi studio)(?: --no-browser)?$", r"\1 --no-browser --port 0", "a port that is free, and no window"),
    Instead("docs/cluster.md", r"postgresql\+psycopg://me@node1/retrompi", "$POSTGRES", "a database of the tests' own server"),
    Instead("docs/cluster.md", r"node1", "127.0.0.1", "one machine plays all"),
    Instead("docs/cluster.md", r"8786", "$PORT", "a port that is free"),
]

ELSEWHERE = {"docs/your-own-paper.md": "tests/test_your_own_paper.py"}
"""Pages that another test reads, in a folder in which there is nothing."""

LONG = ("docs/answers.md", "docs/cluster.md", "docs/compare.md", "docs/recording.md", "docs/run.md", "docs/smpi.md", "docs/this-machine.md")
"""Pages that compile, run and measure programs, search at length or start a cluster: `make exhaustive` runs them; tests/test_answers.py,
test_dask.py, test_compare.py, test_record.py, test_run.py, test_smpi_backend.py and test_this_machine.py have what they are about."""

APPLIED = {
    "docs/add-a-call.md": "tests/test_add_a_parameter.py",
    "docs/add-a-link-kind.md": "tests/test_add_a_link_kind.py",
    "docs/add-a-metric.md": "tests/test_add_a_metric.py",
    "docs/add-an-option.md": "tests/test_add_an_option.py",
    "docs/add-a-parameter.md": "tests/test_add_a_parameter.py",
}
"""Pages whose blocks are edits of the source -> the test that makes them, then builds and runs the result."""

NOT_RUN = [
    NotRun("docs/add-a-link-kind.md", r"retrompi pingpong .*", "needs an engine built with the page's edits; tests/test_add_a_link_kind.py builds and runs it"),
    NotRun("docs/add-a-metric.md", r"retrompi sweep .*", "needs an engine built with the page's edits; tests/test_add_a_metric.py builds and runs it"),
    NotRun("docs/add-an-option.md", r"retrompi .*", "needs the page's edits; tests/test_add_an_option.py makes them and runs the command"),
    NotRun("docs/add-a-parameter.md", r"retrompi pingpong --model ./tubes.*", "needs an engine built with the page's edits; tests/test_add_a_parameter.py builds and runs it"),
    NotRun("docs/simgrid.md", r"retrompi reproduce all .*", "minutes; tests/test_network_agreement.py does it for one paper"),
    NotRun("docs/install.md", r"(?!make ).*", "installs a wheel that takes minutes to build; packaging/check_wheel.py (make wheel-check, in CI) does it in an empty room, "
           "tests/test_packaging.py runs install.sh"),
    NotRun("docs/course.md", r"retrompi course serve.*", "serves until it is stopped; tests/test_course_browser.py does it"),
    NotRun("README.md", r"retrompi validate", "minutes; tests/test_atlas.py judges every paper, tests/test_cli.py the exit codes"),
    NotRun("docs/cluster.md", r"pip install .*", "installs from an index; tests/test_dask.py needs what it installs"),
    NotRun("docs/this-machine.md", r"sudo .*", "needs root and two network namespaces; tests/test_this_machine.py"),
    NotRun("docs/benchmarks.md", r"\.venv/bin/python benchmarks/.*", "measures speed, for minutes: no verdict of a test; tests/test_engine_benchmark.py has the cases"),
    NotRun("docs/third-party.md", r"(?!.*pytest).*", "programs that the reader fetches and builds; tests/test_third_party.py where they are"),
    NotRun("docs/validation.md", r"for page in docs/validation.md .*", "writes the pages themselves; tests/test_report.py compares it"),
]

BACKGROUND = [(r"dask scheduler .*", "tcp"), (r"dask worker .*", ""), (r"retrompi studio.*", "said")]
"""Command -> when it is ready: ``tcp`` (its port answers), ``said`` (it has printed a line), or at once."""

TOOLS = [
    (r"--smpi|--backend smpi|\bsmpi (plugin|export)|smpicc|backends smpi|compare examples", "smpicc"),
    (r"mpiexec|--backend (native|model)|compare (examples|--suite)|this-machine --quick|\bmpicc\b", "mpicc"),
]
"""A command that matches needs the tool; where it is missing the page is skipped."""


@functools.cache
def _mpi4py() -> bool:
    try:
        return subprocess.run(["/usr/bin/python3", "-c", "from mpi4py import MPI"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def lacking(command: str) -> str:
    """What this one command (as it is run) needs and the machine does not have, "" where nothing is missing: the rest of its page runs."""
    return "mpi4py for /usr/bin/python3" if "/usr/bin/python3 app.py" in command and not _mpi4py() else ""


def replaced(page: str, command: str) -> tuple[str, list[Instead]]:
    """``command`` of ``page`` as it is run, and the entries that changed it."""
    used = []
    for entry in INSTEAD:
        if re.fullmatch(entry.page, page):
            after = re.sub(entry.old, entry.new, command, count=1)
            if after != command:
                command, used = after, [*used, entry]
    return command, used


def left_out(page: str, command: str) -> NotRun | None:
    """The entry by which ``command`` of ``page`` is not run, if there is one."""
    return next((e for e in NOT_RUN if re.fullmatch(e.page, page) and re.fullmatch(e.command, command)), None)
