"""Lab 09: four traces of a ring, and a student's own program judged by what it asks of MPI."""

from __future__ import annotations

import io
import os
import shutil
import signal
import tarfile
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zstandard

from retrompi import traces
from retrompi.base.errors import InputError
from retrompi.labs import sandbox
from retrompi.labs.bench import Bench
from retrompi.labs.student import Parameters
from retrompi.measure.launch import mpi_job
from retrompi.measure.launch.mpi_job import Ended
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.store.lookup import answer

if TYPE_CHECKING:
    from retrompi._engine import Trace

WAYS = ("naive", "chain", "oddeven", "nonblocking")
ROOM = ("nemesis", "abe*16", "distributed")
STRICT = {"nemesis.eager": "0B"}
LARGEST_FILE, LARGEST_TRACE, MOST_ACTIONS = 4 << 20, 32 << 20, 100_000
"""Bytes of a trace's file, bytes of what it unpacks to, actions: far above what any right program of this lab has."""
SECONDS, MEMORY, WRITTEN = 20, 8 << 30, 64 << 20
"""What a student's program may take: wall and processor time, address space (SMPI maps much), bytes of a file."""
RUNS = ("program",)
"""Tasks whose file is run, where ``bench.may_run`` says so."""
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LANG")
TITLES = {"ring": "a ring", "mirror": "a mirror", "line": "a line", "star": "a star"}


def derive(p: Parameters) -> dict[str, str]:
    """The names that the text and the program have besides the parameters."""
    centre = p.text("centre")
    rules = {
        "ring": "In a round every rank sends one message to its right neighbour, rank + 1 (the last one to rank 0).",
        "mirror": "In a round rank r sends one message to rank p - 1 - r of p ranks. A rank that would be its own partner does nothing.",
        "line": "In a round every rank sends one message to rank - 1 and one to rank + 1, as far as these exist: the line has two ends.",
        "star": f"In a round every rank but rank {centre} sends one message to rank {centre}, which then sends one to each of them.",
    }
    return {"title": TITLES[p["pattern"]], "rule": rules[p["pattern"]], "size": str(8 * int(p["doubles"]))}


def one_round(p: Parameters) -> list[tuple[int, int]]:
    """(from, to) of every message of a round."""
    n, centre = int(p["ranks"]), int(p["centre"])
    if p["pattern"] == "ring":
        return [(r, (r + 1) % n) for r in range(n)]
    if p["pattern"] == "mirror":
        return [(r, n - 1 - r) for r in range(n) if r != n - 1 - r]
    if p["pattern"] == "line":
        return [(r, o) for r in range(n) for o in (r - 1, r + 1) if 0 <= o < n]
    others = [r for r in range(n) if r != centre]
    return [(r, centre) for r in others] + [(centre, r) for r in others]


def ring_of(way: str, p: Parameters) -> str:
    """The text of one of the four traces: the lines of all ranks."""
    n, tag, size, rounds = int(p["ranks"]), p.text("tag"), 8 * int(p["doubles"]), int(p["rounds"])
    lines = []
    for me in range(n):
        right, left = (me + 1) % n, (me - 1) % n
        send, receive = f"{me} send {right} {tag} {size} 6\n", f"{me} recv {left} {tag} {size} 6\n"
        receives_first = {"naive": False, "chain": me == 0, "oddeven": me % 2 == 1}.get(way)
        step = receive + send if receives_first else send + receive
        if way == "nonblocking":
            step = f"{me} irecv {left} {tag} {size} 6\n{me} isend {right} {tag} {size} 6\n{me} waitall 2\n"
        lines.append(f"{me} init\n{step * rounds}{me} finalize\n")
    return "".join(lines)


def prepare(folder: Path, p: Parameters) -> None:
    """The four traces."""
    for way in WAYS:
        (folder / f"{way}.ti").write_text(ring_of(way, p), encoding="utf-8")


def replayed(way: str, p: Parameters, bench: Bench, strict: bool = True) -> tuple[str, float]:
    """(outcome, seconds) of one of the four."""

    def work() -> tuple[str, float]:
        model, platform, mode = ROOM
        workload = Replay(traces.parse(ring_of(way, p)), f"{way}.ti")
        run = bench.run(answer(bench.store, Question(model, platform, workload, mode, STRICT if strict else {})).run_id)
        return str(run["outcome"]), float(run["time_s"])

    found: tuple[str, float] = bench.once(("ring", way, strict, tuple(sorted(p.texts.items()))), work)
    return found


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """Task -> answer."""
    told = {"completed": "completes", "deadlock": "deadlocks"}
    pairs = one_round(p)
    count = len(pairs) * int(p["rounds"])
    return {
        "naive-usual": told[replayed("naive", p, bench, strict=False)[0]],
        "naive-strict": told[replayed("naive", p, bench)[0]],
        "cycle": int(p["ranks"]),
        "chain": replayed("chain", p, bench)[1],
        "oddeven": replayed("oddeven", p, bench)[1],
        "chain-factor": replayed("chain", p, bench)[1] / replayed("nonblocking", p, bench)[1],
        "messages": count,
        "bytes": count * 8 * int(p["doubles"]),
        "first": sum(a == 0 for a, _ in pairs) * int(p["rounds"]),
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    strict = {way: replayed(way, p, bench) for way in WAYS}
    usual = {way: replayed(way, p, bench, strict=False) for way in WAYS}
    return {
        "MPICH2 sends messages of up to 128 KiB eagerly": 8 * int(p["doubles"]) <= 128 << 10 and usual["naive"][0] == "completed",
        "Here a deadlock is a result: exit code 1, and the wait-for cycle with the lines of the trace.": strict["naive"][0] == "deadlock",
        "All three are safe, but not equally efficient": (
            all(strict[w][0] == "completed" for w in WAYS[1:]) and strict["chain"][1] > 1.2 * strict["nonblocking"][1]
        ),
        "two ranks that wait for each other are the smallest possible cycle": int(p["ranks"]) > 2,
        "First count the messages of one round. Then multiply by the number of rounds.": int(p["rounds"]) > 1,
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Task -> mistake -> the value that it leads to."""
    right = expected(p, bench)
    n, rounds = int(p["ranks"]), int(p["rounds"])
    usual = {w: replayed(w, p, bench, strict=False)[1] for w in WAYS}
    return {
        "cycle": {"pair": 2},
        "chain": {"usual": usual["chain"]},
        "oddeven": {"usual": usual["oddeven"]},
        "chain-factor": {"usual": usual["chain"] / usual["nonblocking"]},
        "messages": {"round": right["messages"] // rounds, "all": n * (n - 1) * rounds},
        "bytes": {"elements": right["bytes"] // 8, "float": right["bytes"] // 2},
        "first": {},
    }


# --- files -----------------------------------------------------------------------------------------------------------------


def inspect(task: str, folder: Path, p: Parameters, bench: Bench) -> str:
    """What is wrong with the student's program or trace; empty when nothing is.

    The program is somebody's code: it is compiled and run only where ``bench.may_run`` says so, else it is right when it is no longer what
    the lab began with. Raises RetrompiError for what cannot be read, and for a missing compiler.
    """
    if task == "trace":
        return judged(_read(folder / "trace.tar.zst"), p)
    source = folder / "exchange.c"
    text = source.read_bytes()[:LARGEST_FILE].decode("utf-8", "replace")
    if not any(call in text for call in ("MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Start", "MPI_Issend", "MPI_Neighbor", "MPI_Put")):
        return "the program sends no message yet: write the function exchange"
    if not bench.may_run:
        return ""
    with tempfile.TemporaryDirectory(prefix="retrompi-lab-") as name:
        return judged(recorded(source, int(p["ranks"]), Path(name), bench.boxed), p)


def judged(trace: Trace, p: Parameters) -> str:
    """What is wrong with what a program asked of MPI, the first thing only; empty when nothing is."""
    n, rounds, size = int(p["ranks"]), int(p["rounds"]), 8 * int(p["doubles"])
    if trace.ranks != n:
        return f"it is of {trace.ranks} ranks; run it with the number that the text says"
    if trace.actions > MOST_ACTIONS:
        return "far more calls than the pattern has"
    calls = trace.info()["calls"]
    if calls.get("finalize", 0) != n:
        return "not every rank came to MPI_Finalize: the program hung, crashed, or was recorded partly"
    wanted = Counter(one_round(p))
    found = {(a, b): (count, total) for a, b, count, total in trace.traffic()["pairs"]}
    for a, b in sorted(found.keys() - wanted.keys()):
        return f"rank {a} sends to rank {b}, which the pattern does not have" if a != b else f"rank {a} sends to itself"
    for a, b in sorted(wanted.keys() - found.keys()):
        return f"rank {a} sends nothing to rank {b}"
    for (a, b), (count, total) in sorted(found.items()):
        if total != count * size:
            unit = total in (8 * count * size, count * size // 8, count * size // 2)
            said = "; was the count given in bytes, or the type wrong?" if unit else ""
            return f"the messages from rank {a} to rank {b} have not the asked length{said}"
        if count != rounds:
            return f"rank {a} sends rank {b} {'more' if count > rounds else 'fewer'} messages than one a round"
    tag = int(p["tag"])
    for rank in range(n):
        for line, action, _, first, _, *_ in trace.rank_actions(rank):
            if action in ("send", "isend", "ssend", "issend", "Ssend", "ISsend", "sendRecv") and first != tag:
                return f"line {line} of rank {rank}: another tag than the asked one"
    if calls.get("allreduce", 0) != n:
        return "after the rounds there is one MPI_Allreduce on every rank"
    result = simulate.run(Question(*ROOM[:2], Replay(trace), ROOM[2], STRICT, limit_s=3600.0, idle_overrides=True))
    if result.outcome == "deadlock":
        return "it completes only where the library buffers: without that it is a deadlock (replay your trace with --set nemesis.eager=0B)"
    return "" if result.outcome == "completed" else f"without buffering it ends as {result.outcome}"


def _read(file: Path) -> Trace:
    """A student's trace, if it is of a size that such a trace can have."""
    if file.stat().st_size > LARGEST_FILE:
        raise InputError(f"has more than {LARGEST_FILE >> 20} MiB; a trace of this lab has some KiB", file, code="too-large")
    try:
        unpacked = zstandard.ZstdDecompressor().stream_reader(file.read_bytes(), read_across_frames=True).read(LARGEST_TRACE + 1)
    except zstandard.ZstdError:
        raise InputError("is no archive as 'retrompi trace record -o trace.tar.zst' writes it", file, code="damaged-file") from None
    if len(unpacked) > LARGEST_TRACE:
        raise InputError(f"unpacks to more than {LARGEST_TRACE >> 20} MiB; a trace of this lab has some KiB", file, code="too-large")
    if unpacked[257:262] != b"ustar":  # a list of files would have files read that are none of the student's
        raise InputError("is no archive as 'retrompi trace record -o trace.tar.zst' writes it", file, code="damaged-file")
    return traces.read(file)


def recorded(source: Path, ranks: int, work: Path, boxed: bool = False) -> Trace:
    """The trace of the program in ``source``, compiled and run in ``work``: under SMPI, or natively where only an MPI is.

    ``boxed``: in a box (`retrompi.labs.sandbox`), as on a server; the student's own machine needs none.
    """
    from retrompi.measure.launch.build import default_family
    from retrompi.measure.launch.mpiexec import command_line, find_mpiexec
    from retrompi.measure.record.library import find_compiler
    from retrompi.measure.record.run import files_of, record

    work = work.resolve()
    family = "smpi" if shutil.which("smpicc") else default_family()
    if family is None:
        raise InputError(
            "neither smpicc nor mpicc is installed (apt-get install libsimgrid-dev, or mpich): not tried", source, code="missing-tool"
        )
    compiler = "smpicc" if family == "smpi" else "mpicc"
    wrapper = str(shutil.which("smpicc")) if family == "smpi" else find_compiler(family).path
    program, mine = work / "exchange", work / source.name
    shutil.copyfile(source, mine)
    made = _limited([wrapper, "-O1", "-o", str(program), str(mine), "-lm"], os.environ, work, boxed, [program])
    if made.code != 0 or not program.is_file():
        lines = (made.output + made.errors).replace(f"{sandbox.PLACE}/", "").splitlines()
        first = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
        raise InputError(f"{compiler} cannot compile it: {first.replace(str(mine), source.name)[:200]}", source)
    program.chmod(0o755)
    out = work / "trace.tar.zst"
    ended: list[Ended] = []

    def run(words: list[str], environment: dict[str, str]) -> int:
        ended.append(_limited(words, environment, work, boxed, list(files_of(out, ranks))))
        return ended[0].code

    command = [str(program)]
    if family != "smpi":
        command = command_line(find_mpiexec(family), ranks, command, len(mpi_job.cores()))
    done = record(command, out, use_smpi=family == "smpi", ranks=ranks if family == "smpi" else None, runner=run, family=family)
    if done.exit_code:
        said = f"the program failed: {done.failed}"
        if ended[0].timed_out or ended[0].code == 128 + signal.SIGXCPU:
            said = "it did not end by itself: a deadlock, or too long"
        if ended[0].too_large:
            said = "it took too much memory, or made too many files"
        raise InputError(f"{said}; try it with 'retrompi run'", source)
    if done.trace is None:
        raise InputError("its trace cannot be read", source, code="unreadable-file")
    return done.trace  # type: ignore[no-any-return]


def _limited(
    words: list[str], environment: Mapping[str, str], work: Path, boxed: bool = False, wanted: Sequence[Path] = ()
) -> Ended:
    """Runs a command in ``work`` with limits of time, memory and files and little of our environment; none of its processes is left.

    In a box it works on a copy of the folder, and only the files that are ``wanted`` come back.
    """
    if boxed:
        told = {k: v for k, v in environment.items() if k.startswith("RETROMPI_RECORD")}
        return sandbox.run(words, work, told, wanted=wanted)
    kept = {k: v for k, v in environment.items() if k in _KEPT or k.startswith("RETROMPI_RECORD")}
    limits = f"ulimit -t {SECONDS} -v {MEMORY >> 10} -f {WRITTEN >> 9} -c 0"
    command = ["/bin/sh", "-c", f'{limits}; exec "$@"', "sh", *words]
    return mpi_job.run(command, {**kept, "HOME": str(work), "TMPDIR": str(work)}, SECONDS, cwd=str(work))


# --- a solution as a student writes it -------------------------------------------------------------------------------------

_CHECK = """
  for (int i = 0; i < NUMBERS; i++) wrong += in[i] != 1000.0 * from + round;"""
_BODIES = {
    "ring": """  const int right = (rank + 1) % size, from = (rank + size - 1) % size;
  long wrong = 0;
  for (int i = 0; i < NUMBERS; i++) out[i] = 1000.0 * rank + round;
  MPI_Sendrecv(out, NUMBERS, MPI_DOUBLE, right, TAG, in, NUMBERS, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);"""
    + _CHECK,
    "mirror": """  const int from = size - 1 - rank;
  long wrong = 0;
  if (from == rank) return 0;
  for (int i = 0; i < NUMBERS; i++) out[i] = 1000.0 * rank + round;
  MPI_Request both[2];
  MPI_Irecv(in, NUMBERS, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(out, NUMBERS, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);"""
    + _CHECK,
    "line": """  MPI_Request all[4];
  int n = 0, side = 0;
  long wrong = 0;
  for (int i = 0; i < NUMBERS; i++) out[i] = rank;
  for (int other = rank - 1; other <= rank + 1; other += 2, side++) {
    if (other < 0 || other >= size) continue;
    MPI_Irecv(in + side * NUMBERS, NUMBERS, MPI_DOUBLE, other, TAG, MPI_COMM_WORLD, &all[n++]);
    MPI_Isend(out, NUMBERS, MPI_DOUBLE, other, TAG, MPI_COMM_WORLD, &all[n++]);
  }
  MPI_Waitall(n, all, MPI_STATUSES_IGNORE);
  for (int i = 0; i < NUMBERS; i++) wrong += (rank > 0 && in[i] != rank - 1) + (rank < size - 1 && in[NUMBERS + i] != rank + 1);
  (void)round;""",
    "star": """  long wrong = 0;
  for (int i = 0; i < NUMBERS; i++) out[i] = 1000.0 * rank + round;
  if (rank == CENTRE) {
    for (int r = 0; r < size; r++)
      if (r != rank) MPI_Recv(in + (size_t)r * NUMBERS, NUMBERS, MPI_DOUBLE, r, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int r = 0; r < size; r++)
      if (r != rank) MPI_Send(out, NUMBERS, MPI_DOUBLE, r, TAG, MPI_COMM_WORLD);
    return 0;
  }
  MPI_Send(out, NUMBERS, MPI_DOUBLE, CENTRE, TAG, MPI_COMM_WORLD);
  MPI_Recv(in, NUMBERS, MPI_DOUBLE, CENTRE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < NUMBERS; i++) wrong += in[i] != 1000.0 * CENTRE + round;""",
}


def _program(folder: Path, body: str, p: Parameters) -> None:
    """exchange.c of the folder with ``body`` as the function's."""
    text = (folder / "exchange.c").read_text(encoding="utf-8")
    before, rest = text.split("  /* Yours.", 1)
    after = rest.split("  return 0;\n", 1)[1]
    text = f"{before}{body}\n  return wrong;\n{after}".replace("enum { NUMBERS", f"enum {{ CENTRE = {p.text('centre')}, NUMBERS")
    (folder / "exchange.c").write_text(text, encoding="utf-8")


def trace_of(p: Parameters, safe: bool = True) -> list[str]:
    """The trace of a solution, a text a rank; without ``safe`` that of a program whose ranks all send before they receive."""
    n, tag, size = int(p["ranks"]), p.text("tag"), 8 * int(p["doubles"])
    pairs = one_round(p)
    texts = []
    for me in range(n):
        to, sources = [b for a, b in pairs if a == me], [a for a, b in pairs if b == me]
        step = ""
        if safe:
            halves = [(sources, to)]
            if p["pattern"] == "star" and me == int(p["centre"]):
                halves = [(sources, []), ([], to)]
            for receives, sends in halves:
                step += "".join(f"{me} irecv {r} {tag} {size} 6\n" for r in receives)
                step += "".join(f"{me} isend {s} {tag} {size} 6\n" for s in sends)
                step += f"{me} waitall {len(receives) + len(sends)}\n" if receives or sends else ""
        else:
            step += "".join(f"{me} send {s} {tag} {size} 6\n" for s in to) + "".join(f"{me} recv {r} {tag} {size} 6\n" for r in sources)
        texts.append(f"{me} init\n{step * int(p['rounds'])}{me} allreduce 1 0\n{me} finalize\n")
    return texts


def _pack(texts: list[str], file: Path) -> None:
    """A trace as `retrompi trace record` leaves it: one archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        names = {"trace/index.txt": "".join(f"rank-{r}.txt\n" for r in range(len(texts)))}
        names |= {f"trace/rank-{r}.txt": t for r, t in enumerate(texts)}
        for name, text in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    file.write_bytes(zstandard.ZstdCompressor().compress(buffer.getvalue()))


def solve(folder: Path, p: Parameters, bench: Bench) -> None:
    """A right program and its trace."""
    _program(folder, _BODIES[p["pattern"]], p)
    _pack(trace_of(p), folder / "trace.tar.zst")


def wrong(folder: Path, p: Parameters, bench: Bench) -> None:
    """The program as the lab begins it, and a trace in which every rank also sends a short message to the next but one."""
    texts = trace_of(p)
    n, tag = len(texts), p.text("tag")
    for me in range(n):
        more = f"{me} send {(me + 2) % n} {tag} 8 6\n{me} recv {(me - 2) % n} {tag} 8 6\n"
        texts[me] = texts[me].replace(f"{me} allreduce", f"{more}{me} allreduce")
    _pack(texts, folder / "trace.tar.zst")
