"""Real MPI libraries as an oracle: generated programs whose result MPI's standard decides, by MPICH or Open MPI and by the engine.

    python tests/real_mpi.py 2000 [mpich|openmpi]     programs of fresh seeds, printed; a row a family

Programs are drawn by the specification's grammar (`retrompi.reference.drawing`), and those are kept of which the standard decides what
happens (`retrompi.reference.standard`): who gets which message, what statuses say, whether it hangs. data/programs/calls.c makes their
calls; those that complete are many to a job, each other one has its own. The engine runs each on a machine and with a runtime that are
drawn; where that runtime's memory ends first, which the standard allows (MPI 1.1, 3.5), it is counted apart.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from retrompi.base.errors import RetrompiError
from retrompi.reference.compare import by_engine
from retrompi.reference.drawing import Drawing
from retrompi.reference.programs import DrawnProgram, shrink
from retrompi.reference.standard import MAKERS, Decision, Match, Operation, Undecided, decide, operations
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import engine_rows
from retrompi.spec import registry

SOURCE = Path(__file__).parent / "data" / "programs" / "calls.c"
DEGREES, OWN_LENGTH, ROOT_BETWEEN, BSEND_AGAIN = (
    SOURCE.with_name(f"{name}.c") for name in ("degrees", "own_length", "root_between", "bsend_again"))
FAMILIES = ("mpich", "openmpi")
QUIET_S = 3
"""A program in which nothing happens for so long hangs."""
LATE_S = 30
"""The same of a program that ought to end, of which many are in a job."""
JOB_S = 300
"""Seconds that a job of many programs may take."""
PIECE = 200
"""Programs that are compared before the next ones are drawn."""
TYPES = {"alltoallv": 2, "gatherv": 2, "scatterv": 2, "allgatherv": 2, "alltoall": 2, "allgather": 2, "gather": 2, "scatter": 2, "bcast": 1,
         "reduce": 1, "allreduce": 1, "scan": 1, "exscan": 1, "reducescatter": 1, "reducescatterblock": 1, "neighbor_allgather": 2,
         "neighbor_allgatherv": 2, "neighbor_alltoall": 2, "neighbor_alltoallv": 2}
"""Numbers at the end of a collective's line that are types."""


class StandardDrawing(Drawing):
    """Of the grammar what a library need not accept is left out: a ready send, whose receive has to be posted (MPI 1.1, 3.4), tags above
    the least that MPI_TAG_UB may be, and what is recorded of a run. A wait for one of two of which only one can be complete is added."""

    def __init__(self, rng: random.Random, ranks: int) -> None:
        super().__init__(rng, ranks)
        self.named = [True] * ranks
        self.loops = False

    def put(self, rank: int, line: str) -> None:
        words = [word for word in line.split() if not word.startswith(("from=", "mtag="))]
        words[0] = {"rsend": "send", "irsend": "isend", "rsendInit": "sendInit"}.get(words[0], words[0])
        super().put(rank, " ".join("32767" if word == str((1 << 31) - 1) else word for word in words))

    def step(self) -> None:
        if len(self.ranks) > 2 and self.rng.random() < 0.05:
            self.only_one()
        else:
            super().step()

    def only_one(self) -> None:
        """``c`` sends after it has heard that the message of ``a`` has come."""
        rng = self.rng
        a, b, c = rng.sample(range(len(self.ranks)), 3)
        waiting = self.ranks[b].pending
        first, second = (self.request(b, "") for _ in range(2))
        del waiting[-2:]
        one, two = (int(text.split("=")[1]) for text in (first, second))
        self.put(b, f"irecv {a} 4 100 6{first}")
        self.put(b, f"irecv {rng.choice((-555, c))} 5 100 6{second}")
        self.put(a, f"send {b} 4 8 6")
        listed = ",".join(map(str, rng.sample((one, two), 2)))
        self.put(b, f"{rng.choice(('waitany', 'waitsome'))} 2 reqs={listed} done={one}")
        self.put(b, f"{rng.choice(('send', 'Ssend'))} {c} 6 0 6")
        self.put(c, f"recv {b} 6 0 6")
        self.put(c, f"send {b} 5 8 6")
        self.put(b, f"wait req={two}")

    def complete(self, rank: int) -> None:
        """All requests, perhaps after tests and waits for some of them."""
        rng, me = self.rng, self.ranks[rank]
        if not me.pending:
            return
        numbers, me.pending = [number for number, _ in me.pending], []
        rng.shuffle(numbers)
        listed = ",".join(map(str, numbers))
        if rng.random() < 0.4:
            word = rng.choice(("testall", "testany", "testsome", "waitany", "waitsome"))
            self.put(rank, f"{word} {len(numbers)} reqs={listed}")
        if rng.random() < 0.2:
            self.put(rank, f"test req={numbers[-1]} flag=0")
        match rng.randrange(4):
            case 0:
                for number in numbers:
                    self.put(rank, rng.choice((f"wait req={number}", f"test req={number} flag=1")))
            case 1:
                self.put(rank, f"testall {len(numbers)} reqs={listed} flag=1")
            case _:
                self.put(rank, f"waitall {len(numbers)} reqs={listed}")


@dataclass(frozen=True)
class Case:
    """A program with what is decided of it."""

    seed: int
    program: DrawnProgram
    decision: Decision


def drawn(seed: int) -> DrawnProgram:
    """The program of a seed, whose result may be open."""
    rng = random.Random(f"standard {seed}")
    ranks = rng.choice((2, 2, 3, 3, 4, 5))
    lines = tuple(StandardDrawing(rng, ranks).lines())
    model = rng.choice(sorted(registry.models()))
    platform = registry.own_platform(model) if rng.random() < 0.5 else rng.choice(registry.platform_names())
    hosts = len(registry.platform(platform).hosts)
    placement = tuple(rng.randrange(hosts) if rng.random() < 0.5 else r % hosts for r in range(ranks))
    return DrawnProgram(model, platform, placement, lines, wildcards="free")


def cases(seeds: Iterable[int], hangs: float = 0.1) -> Iterator[Case]:
    """Programs of which the standard decides the result; of those that do not complete at most this share."""
    given = others = 0
    for seed in seeds:
        program = drawn(seed)
        try:
            program.question()
            case = Case(seed, program, decide(program.lines))
        except (RetrompiError, Undecided):
            continue
        bad = case.decision.outcome != "completed"
        if bad and others > hangs * given:
            continue
        given, others = given + 1, others + bad
        yield case


# ------------------------------------------------------------------------------------------------------------ by the engine


def engine_differs(case: Case) -> str:
    """What the engine does otherwise than the standard; "" for nothing, "beyond: ..." where this runtime's memory ends first."""
    decision = case.decision
    asked = Resolved.of(case.program.question())
    engine = by_engine(engine_rows(asked), asked.trace)
    outcome, detail = engine["outcome"], str(engine["detail"])
    if outcome == "aborted" and "MPI_ERR_TRUNCATE" not in detail:
        return f"beyond: {case.program.model}"
    outcome = {"aborted": "truncated"}.get(outcome, outcome)
    full = outcome == "deadlock" and "waits for room in " in detail
    if outcome != decision.outcome:
        return f"beyond: {case.program.model}" if full else f"{outcome} instead of {decision.outcome}: {detail}"
    own = [context % 2 == 0 for (context,) in struct.iter_unpack("i", engine["timeline"]["messages"]["context"])]
    got = frozenset((m[1], m[5], m[0], m[4], m[2], m[3]) for m, mine in zip(engine["messages_of"], own, strict=True) if mine and m[-1] >= 0)
    what = _outcome_differs(decision, got, tuple(engine["waits"]))
    return f"beyond: {case.program.model}" if what and full and not what.startswith("received") else what


def _outcome_differs(decision: Decision, got: frozenset[Match], stuck: tuple[tuple[int, int], ...]) -> str:
    if decision.outcome == "truncated":
        return ""
    if missing := decision.matches - got:
        return f"not received: {min(missing)} (rank, line, source, its line, tag, bytes)"
    if more := got - decision.most:
        return f"received: {min(more)} (rank, line, source, its line, tag, bytes)"
    if decision.stuck and tuple(sorted(stuck)) != decision.stuck:
        return f"stuck in (rank, line) {tuple(sorted(stuck))} instead of {decision.stuck}"
    return ""


# ------------------------------------------------------------------------------------------------------------ by a library


def _made(op: Operation, neighbours: tuple[Sequence[int], Sequence[int]]) -> list[int]:
    """The numbers of a call that makes a communicator, as calls.c reads them."""
    if op.numbers[0] < 0:
        return [-1]
    rest = dict(op.rest)
    local, remote = op.groups[0], op.groups[1] if len(op.groups) > 1 else ()
    dims = [int(k) for k in rest["dims"].split("x")] if "dims" in rest else []
    periods = [int(k) for k in rest["periods"].split("x")] if dims else []
    return [op.numbers[0], len(local), *local, len(remote), *remote, len(dims), *dims, *periods,
            len(neighbours[0]), *neighbours[0], len(neighbours[1]), *neighbours[1]]


def _arguments(op: Operation, neighbours: tuple[Sequence[int], Sequence[int]], remote: dict[int, tuple[int, ...]]) -> list[int]:
    if op.word in MAKERS:
        if op.word == "comm_dup" and op.comm in remote:
            op = replace(op, groups=(op.groups[0], remote[op.comm]))
        if len(op.groups) > 1:
            remote[op.numbers[0]] = op.groups[1]
        return _made(op, neighbours)
    if op.word == "sendRecv":
        return [*op.numbers, op.stag, op.rtag]
    if "probe" in op.word:
        return [*op.numbers, op.told]
    if op.word.startswith(("wait", "test")):
        return [op.told, *op.slots]
    if op.slots:
        return list(op.slots)
    bare = op.word.removeprefix("i")
    numbers = list(op.numbers)
    if bare in TYPES and not op.word.endswith("Init"):
        del numbers[len(numbers) - TYPES[bare] :]
        if bare in ("reduce", "allreduce", "scan", "exscan", "reducescatter", "reducescatterblock"):
            del numbers[-2 if bare == "reduce" else -1]  # the operations
        if bare == "alltoallv":
            half = len(numbers) // 2
            numbers = [*numbers[1:half], *numbers[half + 1 :]]
    return numbers


def written(number: int, program: DrawnProgram) -> str:
    """A program as calls.c reads it."""
    trace = program.question().workload.trace  # type: ignore[union-attr]
    rows = [f"program {number} {len(program.lines)}"]
    for rank, lines in enumerate(program.lines):
        mine = []
        remote: dict[int, tuple[int, ...]] = {}
        for op in operations(lines):
            neighbours: tuple[Sequence[int], Sequence[int]] = ((), ())
            if op.word in MAKERS and op.numbers[0] > 0:
                made = trace.communicator(op.numbers[0])
                at = list(op.groups[0]).index(rank)
                neighbours = tuple(list(made[k][at]) if made[k] else [] for k in ("sources", "destinations"))  # type: ignore[assignment]
            numbers = _arguments(op, neighbours, remote)
            mine.append(" ".join(map(str, (op.line, op.word, op.comm, op.request, len(numbers), *numbers))))
        rows += [f"rank {rank} {len(mine)}", *mine]
    return "\n".join(rows) + "\n"


@cache
def compiled(family: str, source: Path = SOURCE) -> Path:
    """calls.c, or another program."""
    folder = Path(tempfile.mkdtemp(prefix="calls-"))
    atexit.register(shutil.rmtree, folder)
    program = folder / f"{source.stem}-{family}"
    subprocess.run([f"mpicc.{family}", "-std=c11", "-D_DEFAULT_SOURCE", "-O1", "-w", "-o", program, source], check=True)
    return program


def _command(family: str, ranks: int) -> list[str]:
    more = ["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"] if family == "openmpi" else []
    return [f"mpiexec.{family}", *more, "-n", str(ranks)]


@cache
def has_fault(family: str, source: Path, ranks: int) -> bool:
    """Whether the program that shows a fault says that this library has it."""
    told = subprocess.run([*_command(family, ranks), compiled(family, source)], capture_output=True, text=True, timeout=60)
    return told.stdout.split() != ["0", "wrong"]


def known_fault(family: str, case: Case) -> bool:
    """Whether a program calls what this library is known to do wrong."""
    long = case.decision.matches if case.decision.outcome == "truncated" else frozenset()
    if long and all(match[0] == match[2] for match in long):  # sent by the rank to itself
        return has_fault(family, OWN_LENGTH, 1)
    if of_unequal_degrees(case.program) and has_fault(family, DEGREES, 2):
        return True
    if of_later_root(case.program) and has_fault(family, ROOT_BETWEEN, 4):
        return True
    return starts_buffered_again(case.program) and has_fault(family, BSEND_AGAIN, 2)


def starts_buffered_again(program: DrawnProgram) -> bool:
    """Whether a rank that has a persistent buffered send starts persistent requests more than once."""
    has = [lines for lines in program.lines if any(line.startswith("bsendInit") for line in lines)]
    return any(sum(line.startswith("start") for line in lines) > 1 for lines in has)


def of_later_root(program: DrawnProgram) -> bool:
    """Whether it calls ibcast between two groups with another root than the first of its group."""
    trace = program.question().workload.trace  # type: ignore[union-attr]
    calls = (op for lines in program.lines for op in operations(lines) if op.word == "ibcast" and op.comm)
    return any(op.numbers[1] > 0 and trace.communicator(op.comm)["remote"] for op in calls)


def of_unequal_degrees(program: DrawnProgram) -> bool:
    """Whether it calls neighbor_alltoallw on a graph in which some rank hears of more or fewer ranks than it tells."""
    trace = program.question().workload.trace  # type: ignore[union-attr]
    numbers = {op.comm for lines in program.lines for op in operations(lines) if op.word.endswith("neighbor_alltoallw")}
    made = [trace.communicator(number) for number in numbers]
    return any(len(a) != len(b) for c in made if c["sources"] for a, b in zip(c["sources"], c["destinations"], strict=True))


def _kill(session: int) -> None:
    """Ends what is left of a job: Open MPI puts each rank into a process group of its own."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(folder.name), signal.SIGKILL)


@dataclass
class Results:
    """What the ranks of a job wrote of one program."""

    matches: set[Match] = field(default_factory=set)
    probed: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    stuck: list[tuple[int, int]] = field(default_factory=list)
    truncated: bool = False
    finished: int = 0


def run(family: str, text: str, ranks: int, seconds: float, quiet: int) -> dict[int, Results]:
    """Runs programs in one job; what is written of each, by its number."""
    found: dict[int, Results] = {}
    with tempfile.TemporaryDirectory(prefix="calls-") as folder:
        programs, results = Path(folder, "programs"), Path(folder, "results")
        programs.write_text(text)
        command = [*_command(family, ranks), compiled(family), programs, results, str(quiet)]
        # On a loaded machine a process that spins keeps those from running that it waits for.
        environment = {**os.environ, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as job:
            try:
                job.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                job.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    job.communicate(timeout=10)
            finally:
                _kill(job.pid)
        for rank in range(ranks):
            file = Path(f"{results}.{rank}")
            for line in file.read_text(errors="replace").splitlines() if file.exists() else ():
                kind, number, *rest = line.split(" ", 3 if line[0] == "E" else -1)
                of = found.setdefault(int(number), Results())
                match kind:
                    case "M":
                        at, source, sent, tag, size = map(int, rest)
                        of.matches.add((rank, at, source, sent, tag, size))
                    case "P":
                        at, source, tag, size = map(int, rest)
                        of.probed[rank, at] = source, tag, size
                    case "E":
                        of.wrong.append(f"rank {rank} line {rest[0]}: {rest[1]}")
                    case "T":
                        of.truncated = True
                    case "S":
                        of.stuck.append((rank, int(rest[0])))
                    case "F":
                        of.finished += 1
    return found


def library_differs(case: Case, got: Results) -> str:
    """What a library did otherwise than is decided."""
    decision = case.decision
    if got.wrong and decision.outcome != "truncated":
        return got.wrong[0]
    done = got.finished == len(case.program.lines)
    outcome = "truncated" if got.truncated else "completed" if done else "deadlock"
    if outcome != decision.outcome:
        return f"{outcome} instead of {decision.outcome}" + (f": stuck in (rank, line) {got.stuck}" if got.stuck else "")
    for place, status in decision.probed.items():
        if decision.outcome != "truncated" and got.probed.get(place, status) != status:
            return f"the probe {place} (rank, line) found {got.probed[place]} instead of {status} (source, tag, bytes)"
    return _outcome_differs(decision, frozenset(got.matches), tuple(p for p in got.stuck if p[1]))


def compared(family: str, all_cases: Sequence[Case]) -> Iterator[tuple[Case, str]]:
    """Each case with what the library did otherwise. Of a job that does not end the first program that is not done is taken for it."""
    # A job for each number of ranks: those that have no part in a program would spin.
    for ranks in sorted({len(case.program.lines) for case in all_cases}):
        left = [case for case in all_cases if case.decision.outcome == "completed" and len(case.program.lines) == ranks]
        while left:
            found = run(family, "".join(written(i, case.program) for i, case in enumerate(left)), ranks, JOB_S, LATE_S)
            done = 0
            for i, case in enumerate(left):
                got = found.get(i, Results())
                yield case, library_differs(case, got)
                done += 1
                if got.finished < ranks:
                    break
            left = left[done:]
    others = [case for case in all_cases if case.decision.outcome != "completed"]

    with ThreadPoolExecutor(8) as jobs:
        yield from zip(others, jobs.map(lambda case: alone(family, case, QUIET_S), others), strict=True)


def alone(family: str, case: Case, quiet: int) -> str:
    """What the library does otherwise with a case that has a job of its own; it hangs when nothing happens for ``quiet`` seconds."""
    found = run(family, written(0, case.program), len(case.program.lines), JOB_S, quiet)
    return library_differs(case, found.get(0, Results()))


def small(case: Case, family: str = "") -> DrawnProgram:
    """The program made small, by the library, or by the engine."""

    def differs(program: DrawnProgram) -> bool:
        try:
            program.question()
            less = Case(case.seed, program, decide(program.lines))
            if family:
                return any(what for _, what in compared(family, [less]))
            told = engine_differs(less)
            return bool(told) and not told.startswith("beyond")
        except (RetrompiError, Undecided, KeyError, ValueError):
            return False

    return shrink(case.program, differs)


@dataclass
class Tally:
    """What came out of a number of programs. ``differences``: by whom, seed, what, and the program made small. ``faulty``: programs that
    call what a library is known to do wrong, which are not compared with it. ``late``: those that hung, or were taken for such, elsewhere
    than decided, and not when they were run again alone and given longer: the machine was busy."""

    families: Sequence[str]
    compared: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    beyond: Counter[str] = field(default_factory=Counter)
    faulty: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[str, int, str, str]] = field(default_factory=list)

    def add(self, cases_: Iterable[Case]) -> None:
        """Compares some cases: by the engine, and by each family."""
        kept = []
        for case in cases_:
            try:
                what = engine_differs(case)
            except RetrompiError:  # this runtime cannot be asked for this program
                continue
            kept.append(case)
            self.outcomes[case.decision.outcome] += 1
            if what.startswith("beyond: "):
                self.beyond[what.removeprefix("beyond: ")] += 1
                what = ""
            self._tell("engine", case, what)
        for family in self.families:
            wrong = [case for case in kept if known_fault(family, case)]
            self.faulty[family] += len(wrong)
            # All of them are done before one is run again: it is to have the machine for itself.
            for case, what in list(compared(family, [case for case in kept if case not in wrong])):
                hangs = "deadlock" in (case.decision.outcome, what.partition(" ")[0])
                if what and hangs and not alone(family, case, LATE_S):
                    self.late[family] += 1
                    what = ""
                self._tell(family, case, what)

    def _tell(self, by: str, case: Case, what: str) -> None:
        self.compared[by] += 1
        if what:
            self.differences.append((by, case.seed, what, small(case, "" if by == "engine" else by).text()))

    def text(self) -> str:
        """Some lines."""
        told = ", ".join(f"{by} {n}" for by, n in self.compared.items())
        kinds = ", ".join(f"{what} {n}" for what, n in sorted(self.outcomes.items()))
        beyond = ", ".join(f"{model} {n}" for model, n in sorted(self.beyond.items())) or "none"
        faulty = ", ".join(f"{by} {n}" for by, n in self.faulty.items() if n) or "none"
        late = ", ".join(f"{by} {n}" for by, n in self.late.items() if n) or "none"
        rows = [f"programs by {told}: {len(self.differences)} differ; {kinds}; beyond a runtime's memory: {beyond}; "
                f"of a known fault: {faulty}; as decided when run again alone: {late}"]
        return "\n".join(rows + [f"{by}, seed {seed}: {what}\n  {program}" for by, seed, what, program in self.differences])


def main() -> int:
    """Prints what was compared and what differs, again and again; 1 if anything does."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    families = sys.argv[2:] or [f for f in FAMILIES if shutil.which(f"mpicc.{f}")]
    first = int(os.environ.get("RETROMPI_SEED") or random.SystemRandom().getrandbits(32))
    print(f"programs from {first} on: RETROMPI_SEED={first}", flush=True)
    tally, source = Tally(families), cases(itertools.count(first))
    while tally.outcomes.total() < wanted:
        tally.add(itertools.islice(source, min(PIECE, wanted - tally.outcomes.total())))
        print(tally.text(), flush=True)
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
