"""Programs of students on a server: what one does in its box reaches nothing outside, and ends."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from retrompi.labs import lab as _lab
from retrompi.labs import sandbox, student, work
from retrompi.labs.bench import Bench
from retrompi.measure.launch import mpi_job
from retrompi.store import open_store

needs_box = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no box here: {sandbox.missing()}")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
SECONDS = 6
HEAD = "".join(f"#include <{name}.h>\n" for name in ("stdio", "stdlib", "string", "unistd", "sys/socket", "arpa/inet"))


def ran(tmp_path: Path, body: str, seconds: float = SECONDS, memory_B: int = 256 << 20) -> Any:
    """How a program ends that is compiled and run in a box."""
    place = tmp_path / "box"
    place.mkdir()
    (place / "evil.c").write_text(f"{HEAD}int main(void) {{ {body} return 0; }}\n")
    for folder in (tmp_path, *tmp_path.parents):  # pytest's own folders, which only we may enter
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place), "TMPDIR": str(place)}
    made = mpi_job.run(sandbox.boxed(["cc", "-o", str(place / "evil"), str(place / "evil.c")], place), environment, 30, cwd=str(place))
    assert made.code == 0, made.errors
    words = sandbox.boxed([str(place / "evil")], place)
    return mpi_job.run(words, environment, seconds, cwd=str(place), memory_B=memory_B)


def left() -> int:
    """Processes of the programs here, once those that are just ending are gone."""
    until = time.monotonic() + 20
    while (found := sum("evil" in _read(p / "comm") for p in Path("/proc").glob("[0-9]*"))) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@needs_box
@needs_cc
def test_files_of_the_host_are_not_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of another student")
    home = Path.home() / ".profile"
    names = ["/etc/passwd", "/etc/shadow", str(secret), str(home), str(Path(__file__).resolve())]
    body = "".join(f'{{ FILE *f = fopen("{n}", "r"); if (f) printf("LEAK {n}\\n"); }}' for n in names)
    body += 'if (fopen("/usr/written", "w")) puts("LEAK write"); if (fopen("/etc/written", "w")) puts("LEAK etc"); puts("end");'
    done = ran(tmp_path, body)
    assert (done.code, done.output) == (0, "end\n")


@needs_box
@needs_cc
def test_no_network_is_reached_not_even_this_machine_s(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS + 30)
        reached: list[Any] = []

        def accept() -> None:
            try:
                reached.append(server.accept())
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        body = (
            f"struct sockaddr_in a = {{ .sin_family = AF_INET, .sin_port = htons({port}) }}; a.sin_addr.s_addr = htonl(0x7f000001);"
            'int s = socket(AF_INET, SOCK_STREAM, 0); puts(connect(s, (struct sockaddr *)&a, sizeof a) ? "none" : "LEAK");'
        )
        done = ran(tmp_path, body)
        assert (done.code, done.output, reached) == (0, "none\n", [])


@needs_box
@needs_cc
def test_a_fork_bomb_is_held_and_leaves_nothing(tmp_path: Path) -> None:
    done = ran(tmp_path, "for (;;) fork();", seconds=3)
    assert done.timed_out or done.too_large or done.code != 0
    assert left() == 0


@needs_box
@needs_cc
@pytest.mark.parametrize(
    "body",
    ["for (;;);", 'for (;;) puts("a long line of output that has no end");',
     "for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); }",
     'FILE *f = fopen("big", "w"); for (;;) fputs("aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", f);', "setsid(); if (!fork()) for (;;) sleep(1);"],
    ids=["loop", "output", "memory", "file", "left behind"],
)  # fmt: skip
def test_what_has_no_end_is_ended(body: str, tmp_path: Path) -> None:
    done = ran(tmp_path, body, seconds=3)
    assert done.timed_out or done.too_large or done.code != 0 or "setsid" in body
    assert left() == 0
    assert sum(f.stat().st_size for f in (tmp_path / "box").iterdir()) < 80 << 20


@needs_box
@pytest.mark.skipif(shutil.which("smpicc") is None, reason="smpicc is not installed: apt-get install libsimgrid-dev")
def test_lab_9_is_right_in_a_box_and_open_without_one(tmp_path: Path) -> None:
    lab = _lab.lab("09")
    begun = work.begin(lab, "Ann")
    p, store = student.draw(lab, "Ann"), open_store(tmp_path / "labs.db")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "exchange.c").write_bytes(begun.files["exchange.c"])
    lab.reference.solve(tmp_path / "mine", p, Bench(store))
    done = begun
    for file in (tmp_path / "mine").iterdir():
        done = work.put(done, file.name, file.read_bytes())
    boxed = {r.task: r for r in work.graded(done, lab, Bench(store, may_run=True, boxed=True)).results}
    assert (boxed["program"].status, boxed["trace"].status) == ("right", "right"), boxed["program"].says
    without = {r.task: r for r in work.graded(done, lab, Bench(store)).results}
    assert (without["program"].status, without["program"].open) == ("open", boxed["program"].of)
