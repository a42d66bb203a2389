"""Attacks on the box for students' programs, and on what reads what comes out of it: each is a short function of a C program.

It is compiled once, and run in boxes two at a time. Some attacks are on the assembler of a recording, by what they leave for it, the others
on the box itself; these print LEAK where they succeed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from retrompi.base.errors import RetrompiError
from retrompi.labs import box_bounds, sandbox
from retrompi.labs.box_calls import REFUSED, filter_program
from retrompi.labs.box_stream import read_files
from retrompi.measure.record import assemble, smpi
from retrompi.measure.record.run import files_of
from retrompi.studio.labs import lab_programs

needs_box = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no box here: {sandbox.missing()}")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
SECRET = "of the server alone 4711"
MEMORY_B = 320 << 20

PROGRAMS = [Path(__file__).parent / "data" / "programs" / name for name in ("attacks.c", "attacks_hidden.c", "attacks.h")]
BUILT = ["cc", "-O1", "-w", "-o"]


@dataclass(frozen=True)
class Attack:
    """``ends``: what is said at its end, a pattern. ``recording``: it works in the recorder's folder, and what it leaves is assembled."""

    ends: str
    recording: bool = False
    seconds: float = 30.0


def recording(ends: str) -> Attack:
    return Attack(ends, recording=True)


REFUSED_FILE = "not a regular file of its own"
ATTACKS = {
    # links in place of the recorder's files
    "relative_link": recording(REFUSED_FILE),
    "link_by_the_servers_working_folder": recording(REFUSED_FILE),
    "link_by_the_root": recording(REFUSED_FILE),
    "link_that_leads_to_itself": recording(REFUSED_FILE),
    "link_in_place_of_a_state": recording(REFUSED_FILE),
    "link_in_place_of_the_folder": recording("nothing was recorded"),
    "link_in_place_of_the_whole_trace": recording("read 2"),
    "links_swapped_in_and_out": recording(f"read 2|{REFUSED_FILE}|damaged|nothing was recorded"),
    "hard_link": recording(REFUSED_FILE),
    # what is no file
    "named_pipe": recording(REFUSED_FILE),
    "socket": recording("rank-0.txt"),
    "device": recording("rank-0.txt"),
    "folder": recording(REFUSED_FILE),
    # too large, too many
    "sparse_files": recording("left more than 48 MiB"),
    "two_hundred_thousand_files": recording("ended for its memory"),
    # forged states
    "more_written_than_there_is": recording("damaged"),
    "a_negative_length": recording("nothing was recorded"),
    "lines_in_the_name_of_a_call": recording("read 2"),
    "wrong_magic": recording("nothing was recorded"),
    "states_of_other_ranks": recording("nothing was recorded"),
    "thousand_million_ranks": recording("nothing was recorded"),
    "million_ranks": recording("left nothing"),
    # hostile traces
    "a_rank_beyond_all": recording("rank-0.txt"),
    "a_long_line": recording("rank-0.txt"),
    "a_group_of_all": recording("rank-0.txt|read 2"),
    "escape_sequences": recording("is not text"),
    "compressed": recording("does not begin"),
    # forged archives on the stream itself
    "an_archive_with_a_path": recording("not asked for|no stream"),
    "an_archive_with_an_absolute_path": recording("not asked for|no stream"),
    "an_archive_with_a_link": recording(f"{REFUSED_FILE}|no stream"),
    "an_archive_that_ends_early": recording("ends within|no stream"),
    "an_extended_archive": recording(f"{REFUSED_FILE}|no stream"),
    "a_long_stream": recording("left more than 48 MiB|nothing was"),
    "writing_on_after_the_end": recording("read 2|another format|damaged|nothing was"),
    "another_archiver": recording("read 2"),
    # disk and memory
    "filling_all_that_can_be_written": Attack(r"held: 2[45]\d MiB|ended for its memory"),
    "files_and_memory_together": Attack("ended for its memory"),
    "memory_of_those_who_hide": Attack("ended for its memory"),
    "memory_that_nobody_holds": Attack("queue"),
    "tables_of_pages": Attack("ended for its memory"),
    "buffers_of_sockets": Attack("ended for its memory"),
    "fork_bomb": Attack("ended", seconds=3),
    "output_without_an_end": Attack("ended", seconds=3),
    "a_process_that_stays": Attack(""),
    # calls
    "other_processes": Attack("descriptor"),
    "mounts": Attack("setattr"),
    "namespaces": Attack("gid"),
    "the_kernel": Attack("pattern"),
    "calls_by_other_numbers": Attack("held"),
    "terminals": Attack("TIOCSTI: Operation not permitted"),
    "what_was_open_before": Attack("held"),
    "killing_what_is_above": recording("nothing was recorded|read 2|has no end|damaged"),
    "networks": Attack("xdp"),
    "files_of_the_server": Attack("kcore"),
    "words_of_the_servers_environment": Attack("held"),
    "rights": Attack("held"),
    # memory that no process and no file shows
    "mappings_without_pages": Attack("ended", seconds=4),
    "locks_of_single_bytes": Attack("ended", seconds=4),
    "buffers_of_connections": Attack("ended for its memory"),
    "buffers_made_larger": Attack("pages of ours in a socket: Operation not permitted"),
    "pages_that_only_pipes_hold": Attack("vmsplice: Operation not permitted"),
    "pages_of_files_that_are_gone": Attack("held"),
    "watches_of_events": Attack("held|ended", seconds=4),
    "files_that_travel": Attack(r"held: 2[45]\d MiB|ended for its memory"),
    "words_beside_files": Attack("ended for its memory"),
    "huge_pages": Attack("1 GiB: Operation not permitted"),
    "all_at_once": Attack("ended for its memory"),
    "locked_memory": Attack("more: Operation not permitted"),
    "requests_of_the_whole_machine": Attack("aio: Operation not permitted"),
    # ends
    "the_first_process_taken_over": Attack("ended", seconds=3),
    "those_above_stopped": Attack("ended", seconds=3),
    "signals_that_do_not_count": Attack("ended", seconds=3),
    "what_a_crash_starts": Attack("file: No such file"),
    "last_of_all_to_be_killed": Attack("held"),
    # calls whose arguments reach further than they seem to
    "families_by_pairs": Attack("held"),
    "protocols_that_load_modules": Attack("held"),
    "writing_anywhere": Attack("held"),
    # names, and lines
    "names_that_are_none": recording("read 2"),
    "a_deep_tree": recording("read 2"),
    "a_file_that_grows_as_it_is_read": recording("damaged|read 2|has no end"),
    "lines_of_other_ranks": recording("out of range"),
    "counts_beyond_all": recording("is larger than"),
    "a_zero_in_a_line": recording("is not text"),
    "words_for_terminals": recording("unknown action"),
}
"""Name of a function of `PROGRAMS` -> what becomes of it."""


@dataclass(frozen=True)
class Server:
    """A folder that nobody in a box may reach, and a port that nobody may connect to."""

    folder: Path
    port: int
    reached: list[Any]
    before: str = ""

    def digest(self) -> str:
        """Of all files, their names and their rights."""
        made = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            made.update(f"{path.relative_to(self.folder)} {path.lstat().st_mode} {path.lstat().st_size}\n".encode() + path.read_bytes())
        return made.hexdigest()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "app_module.py").write_text("answer = 42\n")
    (folder / "course.db").write_bytes(b"SQLite format 3\0" + SECRET.encode())
    reached: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as plain, socket.socket(socket.AF_UNIX) as abstract:
        port = plain.getsockname()[1]
        abstract.bind(f"\0retrompi-{port}")
        abstract.listen()

        def accept(one: socket.socket) -> None:
            try:
                reached.append(one.accept())
            except OSError:
                return

        for one in (plain, abstract):
            threading.Thread(target=accept, args=(one,), daemon=True).start()
        before = Path.cwd()
        os.chdir(folder)
        os.environ["RETROMPI_TEST_SECRET"] = SECRET
        try:
            yield Server(folder, port, reached, Server(folder, port, reached).digest())
        finally:
            os.chdir(before)
            del os.environ["RETROMPI_TEST_SECRET"]


@pytest.fixture(scope="module")
def outcomes(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Attack -> how it ended, in words."""
    base = tmp_path_factory.mktemp("boxes")
    for program in PROGRAMS:
        shutil.copy(program, base)
    built = base / "attacks"
    sources = [str(base / program.name) for program in PROGRAMS if program.suffix == ".c"]
    made = sandbox.run([*BUILT, str(built), *sources], base, wanted=[built], seconds=120)
    assert made.code == 0, made.output
    built.chmod(0o755)

    def attempt(name: str) -> str:
        attack = ATTACKS[name]
        work = base / name
        part = work / "t.part"
        part.mkdir(parents=True)
        out = work / "t.tar.zst"
        shutil.copy(built, work / "attacks")
        words = [str(work / "attacks"), name, str(server.folder), str(server.port)]
        environment = {"RETROMPI_RECORD_DIR": str(part)} if attack.recording else {}
        wanted = [part / p.name for p in files_of(out, 2)] if attack.recording else []
        try:
            done = sandbox.run(words, work, environment, wanted=wanted, seconds=attack.seconds, memory_B=MEMORY_B)
            ended = "ended for its memory" if done.too_large else "ended for its time" if done.timed_out else ""
            if not attack.recording or ended:
                return done.output[-2000:] + ended
            found = assemble(part, out, done.code)
            return f"{done.output[-2000:]}read {found.trace.ranks} {found.notes}"
        except RetrompiError as error:
            return str(error)
        finally:
            assert not [p for p in work.rglob("*") if p.is_symlink()]
            shutil.rmtree(work)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(ATTACKS, pool.map(attempt, ATTACKS), strict=True))


@needs_box
@needs_cc
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_held(name: str, outcomes: dict[str, str]) -> None:
    said = outcomes[name]
    assert "LEAK" not in said
    assert re.search(ATTACKS[name].ends, said), said
    assert "\x1b" not in said


@needs_cc
def test_every_attack_of_the_programs_is_in_the_table(tmp_path: Path) -> None:
    subprocess.run([*BUILT, str(tmp_path / "attacks"), *(str(p) for p in PROGRAMS if p.suffix == ".c")], check=True)
    listed = subprocess.run([tmp_path / "attacks"], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(ATTACKS)


LEAVES = r"""
#include <dirent.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int r;
  MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &r);
  if (r == 0) MPI_Send(&r, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  else MPI_Recv(&r, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  chdir(getenv("RETROMPI_RECORD_DIR"));
  DIR *d = opendir("."); struct dirent *e;
  while ((e = readdir(d))) unlink(e->d_name);
  symlink("/proc/self/cwd/app_module.py", "rank-0.txt");
  symlink("/proc/self/cwd/course.db", "../trace.tar.zst");
  FILE *f = fopen("rank-0.state", "wb");
  uint64_t n[14] = {0, 1, 0, 0, 1, 1, 0};
  char in[64] = "\\nimport os; os.system('id > pwned')#";
  fwrite("RETROREC", 1, 8, f); fwrite(n, 8, 14, f); fwrite(in, 1, 64, f); fclose(f);
  _exit(0);
}
"""


@needs_box
@pytest.mark.skipif(shutil.which("smpicc") is None, reason="smpicc is not installed: apt-get install libsimgrid-dev")
def test_the_recorder_of_lab_9_writes_no_file_of_the_server(server: Server, tmp_path: Path) -> None:
    (tmp_path / "exchange.c").write_text(LEAVES)
    with pytest.raises(RetrompiError, match=REFUSED_FILE):
        lab_programs.record_program({"ranks": "2"}, tmp_path)
    assert server.digest() == server.before


COMPILED = {
    "#include </etc/shadow>\n": "No such file",
    "#include </proc/1/environ>\n": "",
    'asm(".incbin \\"/etc/shadow\\"");\n': "cannot compile",
    '#if __has_include("/root") || __has_include("/etc/passwd")\n#error LEAK\n#endif\n': "",
    "#include __FILE__\n#include __FILE__\n": "cannot compile",
    'asm(".incbin \\"/dev/urandom\\"");\n': "cannot compile",
    'asm(".fill 1000000000, 8, 1");\n': "cannot compile",
    "#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(x))))\nint a[] = {B(B(B(1,)))};\n": "cannot compile",
    'asm(".section .dynamic,\\"aw\\"\\n.rept 9000\\n.quad 1, 1\\n.endr");\n': "",
}
"""What stands before a program -> what its student is told; empty: anything in one line."""


@needs_box
@pytest.mark.skipif(shutil.which("smpicc") is None, reason="smpicc is not installed: apt-get install libsimgrid-dev")
def test_a_compiler_in_a_box_tells_nothing_and_takes_no_more_than_its_box(server: Server, tmp_path: Path) -> None:
    for before, says in COMPILED.items():
        (tmp_path / "exchange.c").write_text(before + "#include <mpi.h>\nint main(int n, char **v) { return MPI_Init(&n, &v); }\n")
        try:
            lab_programs.record_program({"ranks": "2"}, tmp_path)
            said = ""
        except RetrompiError as error:
            said = str(error)
        assert re.search(says, said), (before, said)
        assert "LEAK" not in said
        assert "4711" not in said
        assert len(said.splitlines()) <= 1
    assert server.digest() == server.before


@needs_box
@needs_cc
def test_all_of_them_together_changed_nothing_and_left_nothing(server: Server, outcomes: dict[str, str]) -> None:
    assert len(outcomes) == len(ATTACKS)
    assert sorted(p.name for p in server.folder.iterdir()) == ["app_module.py", "course.db"]
    assert server.digest() == server.before
    assert server.reached == []
    assert [p for p in Path("/proc").glob("[0-9]*") if "attacks" in _read(p / "comm")] == []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


# --- the parts, without a box ------------------------------------------------------------------------------------------------


def test_a_call_s_name_in_a_state_is_a_name_and_its_numbers_are_possible(tmp_path: Path) -> None:
    recorded(tmp_path / "t.part", inside=b"\nimport os; os.system('id')#", phase=1)
    found = assemble(tmp_path / "t.part", tmp_path / "t", None)
    assert (tmp_path / "t" / "rank-0.txt").read_text().splitlines()[-1] == "# partial: rank 0 stopped"
    assert found.partial


@pytest.mark.parametrize(
    ("values", "says"),
    [({"written": 1 << 40}, "damaged"), ({"written": 2**64 - 1}, "nothing was recorded"), ({"ranks": 1 << 19}, "left nothing"),
     ({"ranks": 10**9}, "nothing was recorded"), ({"rank": 3}, "nothing was recorded"), ({"phase": 9}, "nothing was recorded"),
     ({"threads": 4}, "nothing was recorded"), ({"text": b"\x28\xb5\x2f\xfd\0\0"}, "does not begin"),
     ({"text": b"# retrompi record 1: rank 0 of 1\n0 init\0\n"}, "is not text")],
)
def test_a_hostile_recording_is_refused_without_a_box_too(values: dict[str, Any], says: str, tmp_path: Path) -> None:
    recorded(tmp_path / "t.part", **values)
    with pytest.raises(RetrompiError, match=says):
        assemble(tmp_path / "t.part", tmp_path / "t", None)


def test_links_in_a_recording_lead_nowhere(tmp_path: Path) -> None:
    """`trace record --finish` of somebody's folder, without a box: neither its links nor one in place of the trace are written through."""
    for way in ("lines", "hard", "state", "index", "trace", "out"):
        place = tmp_path / way
        place.mkdir()
        victim, part, out = place / "victim", place / "t.part", place / "t.tar.zst"
        victim.write_bytes(b"# retrompi record 1: of the user\n" * 9)
        recorded(part)
        if way in ("lines", "state"):
            name = part / ("rank-0.txt" if way == "lines" else "rank-0.state")
            if way == "state":
                shutil.copy(name, victim)
            name.unlink()
            name.symlink_to(victim)
        elif way == "hard":
            (part / "rank-0.txt").unlink()
            os.link(victim, part / "rank-0.txt")
        elif way == "out":
            victim.unlink()
            out.symlink_to(victim)
        else:
            (part / ("index.txt" if way == "index" else "trace")).symlink_to(victim)
        before = victim.read_bytes() if way != "out" else b""
        if way in ("index", "trace"):
            assert assemble(part, out, None).ranks == 1
        else:
            with pytest.raises(RetrompiError):
                assemble(part, out, None)
        assert (victim.read_bytes() == before) if way != "out" else not victim.exists()


def recorded(
    part: Path, *, text: bytes = b"# retrompi record 1: rank 0 of 1\n0 init\n0 finalize\n", rank: int = 0, ranks: int = 1,
    written: int | None = None, phase: int = 2, threads: int = 0, inside: bytes = b"",
) -> None:
    """A recording of one rank, as its files are."""
    part.mkdir()
    (part / "rank-0.txt").write_bytes(text)
    numbers = (rank, ranks, len(text) if written is None else written, 2, 2, phase, 0, 0, 0, threads, 0, 0, 0, 0)
    (part / "rank-0.state").write_bytes(struct.pack("=8s14Q64s", b"RETROREC", *numbers, inside))


def test_a_program_that_no_linker_made_is_refused(tmp_path: Path) -> None:
    """What a compiler in a box leaves is looked into outside: offsets beyond all, and as many libraries with as long names as fit."""
    segments = [(2, 0, 176, 0, 0, 16 * 301), (1, 0, 0, 0, 0, 1 << 40)]
    names = struct.pack("<qQ", 5, 0) + struct.pack("<qQ", 1, 176 + 16 * 301) * 300 + b"A" * (1 << 20)
    for table, parts, rest in (
        (1 << 63, [], b""),
        (64, [(2, 0, 1 << 63, 0, 0, 64)], b""),
        (64, segments, names),
        (64, [(2, 0, 0, 0, 0, 1 << 63)], b""),
    ):
        head = bytearray(b"\x7fELF\x02\x01".ljust(64, b"\0"))
        struct.pack_into("<Q", head, 32, table)
        struct.pack_into("<HH", head, 54, 56, len(parts))
        made = b"".join(struct.pack("<IIQQQQQ", *part, 0) for part in parts)
        (tmp_path / "exchange").write_bytes(head + made + rest + b"\0")
        with pytest.raises(RetrompiError, match="was not built by smpicc"):
            smpi.relink(tmp_path / "exchange", tmp_path / "out")


def test_what_leaves_a_box_is_read_strictly(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 700)
    (tmp_path / "b").write_bytes(b"")
    made = subprocess.run(["tar", "-c", "--format=ustar", "-C", str(tmp_path), "--", "a", "b"], capture_output=True, check=True).stdout
    assert read_files(made, ("a", "b")) == {"a": b"x" * 700, "b": b""}
    for damaged in (made[:600], made.replace(b"ustar", b"ustaR"), made[:512], b"", b"\1" * 512):
        with pytest.raises(RetrompiError):
            read_files(damaged, ("a", "b"))
    for names in (("a",), ("b",), ()):
        with pytest.raises(RetrompiError, match="not asked for"):
            read_files(made, names)
    with pytest.raises(RetrompiError):
        read_files(made[:1536] + made, ("a", "b"))  # the same file twice


@needs_cc
def test_the_numbers_of_refused_calls_are_the_kernel_s(tmp_path: Path) -> None:
    machine = os.uname().machine
    if (data := filter_program()) is None:
        pytest.skip(f"no filter for {machine}")
    column = ("x86_64", "aarch64").index(machine)
    said = subprocess.run(["cc", "-E", "-dM", "-"], input="#include <sys/syscall.h>\n", capture_output=True, text=True, check=True).stdout
    numbers = {m[1]: int(m[2]) for m in re.finditer(r"^#define __NR_(\w+) (\d+)$", said, re.MULTILINE)}
    compared = {name: pair[column] for name, pair in REFUSED.items() if name in numbers}
    assert compared == {name: numbers[name] for name in compared}
    assert len(compared) > len(REFUSED) - 8  # an older header lacks the newest
    assert len(data) % 8 == 0
    assert len(data) // 8 < 4096


def test_a_group_of_the_kernel_has_the_bounds(tmp_path: Path) -> None:
    """The files of a cgroup, in a folder that is none: what is written where."""
    group = box_bounds.Cgroup(tmp_path, 1 << 30, 96)
    assert (group.folder / "memory.max").read_text() == "1073741824\n"
    assert (group.folder / "memory.swap.max").read_text() == "0\n"
    assert (group.folder / "pids.max").read_text() == "96\n"
    command = [*group.words(), sys.executable, "-c", "import os; print(os.getpid())"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (group.folder / "cgroup.procs").read_text() == said.stdout  # it joins before it is the command
    assert not group.ran_out()
    (group.folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.ran_out()
    group.remove()
    assert (group.folder / "cgroup.kill").read_text() == "1\n"
