"""Golden records: all that is written down beside a run, of every runtime and of programs that pass through much of the engine.

tests/data/records.json begins with the parameters that made it. Of each part of a record it has short digests of consecutive blocks of
lines, so that a failure says which part is another, and shows its first lines. What changes a record on purpose writes the file anew:

    python tests/test_records.py                    # all of it
    python tests/test_records.py NAME [PART]        # print a record: what two engines wrote down can be compared line by line

Which records are right is not known here: test_critical_path.py, test_engine_anatomy.py and test_timeline.py say what must hold of any.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cases import for_each
from engine_runs import job
from extremes import platform_of

from retrompi import _engine
from retrompi.reference.programs import DrawnProgram
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.resolved import Resolved
from retrompi.sim.timeline import TimelineRequest
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.spec.question import Question, Replay

GOLDEN = Path(__file__).parent / "data" / "records.json"
BLOCKS = 8
"""Blocks of a part, each with a digest of 20 bits."""
SHOWN = 12
"""Lines of a block that are shown when it is another."""
Record = dict[str, list[str]]
"""Part -> its lines."""

# ------------------------------------------------------------------------------------------------------------------ what is run

MESSAGE = 3000
"""Bytes of the message that every runtime sends between two machines and within one."""
EXCHANGE = (
    ("init", "irecv 1 0 40000 6", "isend 1 0 40000 6", "waitall", "bcast 9000 0 6", "allreduce 300 1000 6", "send 2 1 0 6", "finalize"),
    ("init", "irecv 0 0 40000 6", "isend 0 0 40000 6", "waitall", "bcast 9000 0 6", "compute 2e5", "allreduce 300 1000 6", "finalize"),
    ("init", "compute 1e6", "bcast 9000 0 6", "allreduce 300 1000 6", "recv 0 1 0 6", "finalize"),
)
"""A program of three ranks that every runtime replays: messages of two protocols, collectives, computation."""


@dataclass(frozen=True)
class OtherJob:
    """A job beside the first one."""

    model: str
    lines: tuple[str, ...]
    placement: tuple[int, ...]
    start_s: float = 0.0
    background: bool = False


@dataclass(frozen=True)
class Recorded:
    """A program, and what may be beside it; ``events``: the bound that ends it."""

    program: DrawnProgram
    jobs: tuple[OtherJob, ...] = ()
    events: int | None = None

    def question(self) -> Question:
        """The question that is asked."""
        asked = self.program.question()
        others = [JobSpec(j.model, job(*j.lines), j.placement, start_s=j.start_s, background=j.background) for j in self.jobs]
        return replace(asked, beside=replace(asked.beside, jobs=others), bounds=Bounds(events=self.events))


def _lines(*ranks: str) -> tuple[tuple[str, ...], ...]:
    """The lines of each rank, which are separated by ``;``."""
    return tuple(tuple(line.strip() for line in ("init;" + text + ";finalize").split(";") if line.strip()) for text in ranks)


def _program(model: str, platform: str, *ranks: str, **more: Any) -> DrawnProgram:
    """A program of a rank on each machine, unless told otherwise."""
    more.setdefault("placement", tuple(range(len(ranks))))
    sets = tuple(more.pop("sets", {}).items())
    return DrawnProgram(model, platform, more.pop("placement"), _lines(*ranks), sets, **more)


def _ring(ranks: int, size: int, times: int = 2, between: str = "") -> tuple[str, ...]:
    """Each sends to the next, all at once; the first round is marked, so that its anatomy is recorded."""
    told = []
    for me in range(ranks):
        exchange = f"irecv {(me - 1) % ranks} 0 {size} 6; isend {(me + 1) % ranks} 0 {size} 6; waitall; "
        marked = f"# mark anatomy; {exchange}# mark end; " if me == 0 else exchange
        told.append(marked + f"{between}{exchange}" * (times - 1))
    return tuple(told)


def _ping(size: int, *others: str) -> tuple[str, ...]:
    """Two round trips; of the second the path is recorded. Others compute meanwhile."""
    ping, pong = f"send 1 0 {size} 6; recv 1 0 {size} 6; ", f"recv 0 0 {size} 6; {{}}send 0 0 {size} 6; "
    return f"{ping}# mark anatomy; {ping}# mark end", pong.format("") + pong.format("# mark there; "), *others


def _all_to_all(ranks: int, size: int) -> tuple[str, ...]:
    """All send to all at once, so that frames wait everywhere."""
    told = []
    for me in range(ranks):
        others = [(me + k) % ranks for k in range(1, ranks)]
        posted = [*(f"irecv {other} 0 {size} 6" for other in others), *(f"isend {other} 0 {size} 6" for other in others)]
        told.append("; ".join([*posted, "waitall"]))
    return tuple(told)


HUB, SWITCH, TREE, TORUS = "nt4-p6-200*4@hub-10", "nt4-p6-200*4@switch-100", "nt-fat-tree", "cray-t3e"
ACCESS = (
    "win_create 1 1000; Win_fence win=1; Put 1 0 5000 6 win=1; Get 1 0 9000 6 win=1; Win_fence win=1; Win_lock 1 1 win=1; "
    "Accumulate 1 0 64 6 win=1; Win_unlock 1 win=1; win_free 1",
    "win_create 1 1000; Win_fence win=1; Put 0 0 100 6 win=1; Win_fence win=1; Win_lock 1 1 win=1; compute 1e6; Win_unlock 1 win=1; "
    "win_free 1",
)
LOOKING = (
    "compute 1e5; isend 1 1 100 6 req=1; isend 1 2 20000 6 req=2; waitsome 2 reqs=1,2; waitall; recv 1 3 8 6",
    "irecv 0 2 20000 6 req=1; irecv 0 1 100 6 req=2; testany 2 reqs=1,2; iprobe 0 1; waitany 2 reqs=1,2; waitall; probe 2 9; "
    "recv -555 -444 64 6; send 0 3 8 6",
    "compute 3e6; Ssend 1 9 64 6",
)
COMBINING = (
    "allreduce 4000 1e5 6; reduce 700 5e4 1 6; scan 64 1e4 6; reducescatter 100 200 300 400 1e4 6; alltoall 500 500 6 6; "
    "allgather 90 90 6 6",
) * 4
GROUPS = tuple(
    "comm_split 1 0,1; comm_dup 3 0,1,2,3; intercomm_create 4 0,1 2,3 comm=1; {}"
    if me < 2 else "comm_split 2 2,3; comm_dup 3 0,1,2,3; intercomm_create 4 2,3 0,1 comm=2; {}"
    for me in range(4)
)
BETWEEN = "barrier comm=4; allgather {} {} 6 6 comm=4; allreduce 64 1e4 6 comm=4; alltoall 20 20 6 6 comm=4; barrier comm=3"
WAITING = (
    "irecv 1 1 8 6 req=1; irecv 1 2 8 6 req=2; waitany 2 reqs=1,2",
    "irecv 0 5 8 6 req=7; irecv 2 6 8 6 req=8; waitsome 2 reqs=7,8; send 0 1 8 6",
    "isend 1 3 100 6 req=1; recv 1 0 8 6",
)

PROGRAMS: Mapping[str, Recorded] = {
    "a window narrower than the way is long": Recorded(_program(
        "mpich", "nt4-p6-200*2@switch-100", *_ring(2, 60_000), sets={"platform.link.latency": "2ms", "platform.host.window": "x0.5"})),
    "nagle and delayed acknowledgements": Recorded(_program(
        "winmpich:delayed-ack", "nt-pair", *_ring(2, 700, 3), sets={"platform.host.delayed_ack": "50ms"})),
    "frames wait for a hub": Recorded(_program("wmpi", HUB, *_ring(4, 9000))),
    "strangers on a hub": Recorded(_program("mpich", HUB, *_ring(3, 5000), traffic=("any 300kB/s 1000B poisson",))),
    "collisions": Recorded(_program("mpich", HUB, *_ring(4, 3000), sets={"platform.link.access": "csma-cd"})),
    "ports of a switch": Recorded(_program("mpich", SWITCH, *_all_to_all(4, 9000), sets={"platform.link.buffer": "6000B"})),
    "strangers on a switch": Recorded(_program("lam", "nt-cluster", *_ring(4, 20_000, 2, "compute 1e5; "),
                                              traffic=("any 2MB/s 1500B poisson", "n1->n3 500kB/s 200B onoff:1ms/2ms"))),
    "a tree that loses a switch": Recorded(_program(
        "pvm", TREE, *_ring(8, 6000), failures=("switch 1.0@3ms..20ms", "link n3@30ms..40ms"),
        sets={"platform.link.latency": "7.3000004us"})),
    "two sites": Recorded(_program("mpich", "nt-wan", *_ring(4, 4000), placement=(0, 1, 3, 4))),
    "a torus and memory of others": Recorded(_program("craympt:shmem", TORUS, *ACCESS)),
    "a torus full of messages": Recorded(_program("craympt", TORUS, *_ring(8, 30_000))),
    "shares of a fluid network": Recorded(_program("mpich", SWITCH, *_all_to_all(4, 20_000), network="fluid")),
    "two rails": Recorded(_program("mpich", "nt4-p6-200*2@switch-100-bonded", *_ring(2, 70_000))),
    "cards that move messages": Recorded(_program("gm", "p4-1800*2@myrinet-pci64a", *_ring(2, 40_000))),
    "memory that is registered": Recorded(_program("mvapich", "pc-2003*2@infiniband-2003", *_ring(2, 40_000, 3))),
    "datagrams that are lost": Recorded(_program("wmpi", "nt-pair", *_ring(2, 9000), sets={"wmpi.loss": "0.2"}, seed=7)),
    "a segment that is sent again": Recorded(
        _program("mpich", "nt4-p6-200*2@switch-100", *_ping(20_000), failures=("link n1@26ms..28ms",))),
    "a pool that is full": Recorded(_program("wmpi", "nt-pair", *_all_to_all(4, 50_000), placement=(0, 0, 1, 1))),
    "one processor for two": Recorded(_program("hpvm", "nt-pair", *_ring(2, 20_000, 3, "compute 9e6; "), placement=(0, 0))),
    "polling on one processor": Recorded(_program("winmpich", "nt-pair", *_ring(3, 9000), placement=(0, 0, 1))),
    "quanta that end while nobody waits": Recorded(_program(
        "wmpi", "nt-pair", "compute 3e8; # mark anatomy; send 1 0 9000 6; recv 1 0 8 6; # mark end",
        "recv 0 0 9000 6; compute 2e8; send 0 0 8 6", placement=(0, 0))),
    "caches and buses that cores share": Recorded(_program(
        "nemesis", "abe", *_ring(8, 100_000), placement=(0,) * 8, sets={"platform.host.mem_streams": "2"})),
    "a sampled curve": Recorded(_program("wmpi", SWITCH, *_ring(4, 5000, 2, "compute 1e5; "), fidelity="curve")),
    "a sampled curve on one machine": Recorded(_program(
        "wmpi", SWITCH, *_ping(5000, "compute 1e8"), placement=(0, 0, 0), fidelity="curve")),
    "a sampled curve while others are busy": Recorded(_program(
        "wmpi", SWITCH, *_ping(5000, "; ".join(["send 3 0 700 6; recv 3 0 700 6"] * 9), "; ".join(["recv 2 0 700 6; send 2 0 700 6"] * 9)),
        fidelity="curve")),
    "five numbers of a message": Recorded(_program("mpich", SWITCH, *_ring(4, 5000, 2, "compute 1e5; "), fidelity="loggp")),
    "looking and waiting for any": Recorded(_program("mpich", SWITCH, *LOOKING, wildcards="free")),
    "collectives that compute": Recorded(_program(
        "mpich", SWITCH, *COMBINING, sets={"mpich.coll.alltoall": "bruck", "mpich.coll.allreduce": "rabenseifner"})),
    "two groups": Recorded(_program(
        "mpich2sock", SWITCH, *(text.format(BETWEEN.format(*((30, 50) if me < 2 else (50, 30)))) for me, text in enumerate(GROUPS)))),
    "nobody sends what any waits for": Recorded(_program("mpich", SWITCH, *WAITING)),
    "a collective that one does not call": Recorded(_program(
        "wmpi", SWITCH, "barrier; bcast 8 0 6", "barrier; recv 0 0 8 6", "barrier; bcast 8 0 6")),
    "a message too long": Recorded(_program("mpich", SWITCH, "send 1 0 100 6; send 1 1 9000 6", "recv 0 1 100 6; recv 0 0 100 6")),
    "a daemon that is killed": Recorded(_program("wmpi", "nt-pair", *_ring(2, 30_000), kills=("daemon on workstation@20ms",))),
    "left behind": Recorded(_program("mpich", SWITCH, "send 1 0 100 6; irecv 1 4 8 6 req=3", "irecv 0 5 9 6 req=2; compute 1e6")),
    "a bound": Recorded(_program("mpich", SWITCH, *_all_to_all(4, 9000)), events=400),
    "a limit": Recorded(_program("wmpi", HUB, *_ring(4, 9000), limit_s=0.01)),
    "jobs beside it": Recorded(
        _program("mpich", SWITCH, *_ring(4, 20_000, 3, "compute 2e5; ")),
        (OtherJob("wmpi", _ring(2, 9000), (0, 1), 0.001),
         OtherJob("mpich", ("recv 1 0 8 6", "compute 1e4; barrier"), (2, 3), 0.0005, True))),
    "a job that goes on": Recorded(
        _program("wmpi", "nt-pair", "recv 1 0 8 6", "send 0 1 8 6"),
        (OtherJob("mpich", _ring(2, 20_000, 4, "compute 1e6; "), (0, 1), 0.0002), OtherJob("mpich", ("compute 1e5",), (0,), 0, True))),
}

# ------------------------------------------------------------------------------------------------------------- what is written down


class Recorder:
    """In the place of the server: the engine runs in this process, and its answer is kept as it is."""

    got: Mapping[str, Any]

    def simulate(self, rows: Mapping[str, Any], trace: Any, _: str, others: list[Any]) -> Mapping[str, Any]:
        self.got = _engine.simulate(rows, trace, others)
        return self.got


def _numbers(data: bytes, kind: str) -> array[Any]:
    found = array(kind)
    found.frombytes(data)
    return found


_KINDS = dict.fromkeys(("op", "state", "merged", "open", "rendezvous", "stage", "why", "kind", "first", "last"), "b")
_LONG = {"begin", "end", "bytes", "sent", "received", "hop_in", "hop_out", "links_begin", "links_end", "message", "queued", "copy_in_begin",
         "copy_in_end", "copy_out_begin", "copy_out_end"}


def _columns(told: Mapping[str, Any]) -> Iterator[str]:
    """A table of the engine, whose columns are bytes, a line a row; columns of other lengths follow it."""
    packed = {name: data for name, data in told.items() if isinstance(data, bytes)}
    columns: dict[str, Any] = {name: _numbers(data, _KINDS.get(name, "q" if name in _LONG else "i")) for name, data in packed.items()}
    columns |= {name: data for name, data in told.items() if isinstance(data, list)}
    for _, same in itertools.groupby(sorted(columns, key=lambda name: len(columns[name])), key=lambda name: len(columns[name])):
        names = sorted(same)
        yield "columns " + " ".join(names)
        yield from (" ".join(map(str, row)) for row in zip(*(columns[name] for name in names), strict=True))


def _graph_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Each point of the recorded network with its delay, in declared numbers, and what it waited for."""
    graph = told["graph"]
    column = {name: _numbers(graph[name], kind) for name, kind in (
        ("t", "q"), ("from", "I"), ("who", "I"), ("bill", "I"), ("stage", "B"), ("joins", "I"), ("resumed", "I"), ("orders", "I"),
        ("bill_begin", "I"), ("term_number", "I"), ("term_times", "d"))}
    begin, stages = column["bill_begin"], told["stages"]
    bills = [sorted(f"{_number(graph['numbers'][column['term_number'][i]])}*{column['term_times'][i]:.9g}" for i in range(a, b))
             for a, b in itertools.pairwise(begin)]
    for p, (t, before, who, bill, stage) in enumerate(zip(*(column[name] for name in ("t", "from", "who", "bill", "stage")), strict=True)):
        spent = f" {stages[stage & 127]}{' fixed' * (stage >> 7)} {graph['names'][who]}" if t != column["t"][before] else ""
        yield " ".join([f"{p}: {t} from {before}{spent}", *bills[bill]])
    for name, each in (("joins", 2), ("resumed", 3), ("orders", 2)):
        rows = zip(*(column[name][i::each] for i in range(each)), strict=True)
        yield from (f"{name} " + " ".join(map(str, row)) for row in (sorted(rows) if name == "orders" else rows))
    yield f"end {graph['end']}, without a derivative {dict(graph['unfollowed'])}"


def _number(number: Iterable[Any]) -> str:
    return " ".join(map(str, number))


def _path_parts(told: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    ends, stages, whos = (_numbers(told[name], kind) for name, kind in (("end_ps", "q"), ("stage", "B"), ("who", "I")))
    yield "critical path", [f"{end} {told['stages'][s]} {told['names'][w]}" for end, s, w in zip(ends, stages, whos, strict=True)]
    yield "graph", list(_graph_lines(told))
    graph = _engine.PathGraph(told["graph"])
    unit = [[float(i == j) for j in range(len(graph.numbers))] for i in range(len(graph.numbers))]
    yield "slopes", sorted(f"{_number(number)}: {graph.slope(one):.9g}" for number, one in zip(graph.numbers, unit, strict=True))
    yield "slack", [" ".join(map(str, row)) for row in graph.slacks()]


def _timeline_parts(told: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    states = []
    for p in told["processes"]:
        totals = {s: t for s, t in zip(told["states"], p["totals"], strict=True) if t}
        states += [f"{p['name']} ({p['kind']}) on {p['host']} until {p['end']}: {totals}"]
        at = zip(*(_numbers(p[name], kind) for name, kind in (("begin", "q"), ("state", "b"), ("merged", "b"))), strict=True)
        states += [f"{begin} {told['states'][state]}{' merged' * merged}" for begin, state, merged in at]
    yield "states", states
    yield "calls", list(_columns(told["calls"]))
    yield "messages", [*_columns(told["messages"]), *map(str, told["traffic"]), *map(str, told["comms"])]


def _message_path_lines(told: Mapping[str, Any]) -> Iterator[str]:
    for name in ("hosts", "channels", "packets", "work"):
        yield from (f"{name[:-1] if name[-1] == 's' else name} {row}" for row in told[name])
    for each in (*told["directions"], *told["processes"]):
        yield str({name: value for name, value in each.items() if not isinstance(value, bytes | list)})
        yield from _columns({name: value for name, value in each.items() if isinstance(value, bytes | list)})
    yield from _columns(told["transits"])


def record_of(question: Question) -> Record:
    """All that is written down beside a run, in parts; of a program with the mark ``anatomy`` also where the time to ``end`` went."""
    assert isinstance(question.workload, Replay)
    labels = set(question.workload.trace.labels)
    directions = simulate.DIRECTIONS if "there" in labels else ()
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events"
        wanted = Observe({"anatomy", "end"} <= labels, timeline=TimelineRequest(), profile=True, directions=directions, critical_path=True,
                         trace_events=str(events))
        simulate.run(question, wanted, recorder)  # type: ignore[arg-type]
        written = events.read_text(encoding="utf-8").splitlines()
    got = recorder.got
    ending = ("outcome", "detail", "failed", "time_ps", "end_ps", "leftovers", "contended")
    told: Record = {"ending": [f"{name}: {got[name]}" for name in ending]}
    told["ending"] += [f"waits {row}" for row in got["waits"]] + [f"traffic {row}" for row in got["traffic"]]
    told["diagnosis"] = [f"{name}: {value}" for name, value in got.get("diagnosis", {}).items()]
    told["profile"] = [*sorted(map(str, got["profile"]["calls"])), str(got["profile"]["finalized_ps"])]
    told["profile"] += [*map(str, got["collectives"]), str(got["done"])]
    told["anatomy"] = [f"{stage} {process} {ps}" for stage, process, ps in got["anatomy"]]
    told["jobs"] = [f"{name}: {value}" for one in got["jobs"] for name, value in sorted(one.items()) if name != "per_rank"]
    told |= dict(_timeline_parts(got["timeline"]))
    if "critical_path" in got and "graph" in got["critical_path"]:
        told |= dict(_path_parts(got["critical_path"]))
    if "message_path" in got:
        told["message path"] = list(_message_path_lines(got["message_path"]))
    told["events"] = written
    return {part: lines for part, lines in told.items() if lines}


def _of_a_runtime(model: str) -> Iterator[tuple[str, Question]]:
    """What every runtime is asked, on a platform of its own: a message between machines, one within a machine, and `EXCHANGE`."""
    platform = platform_of(model)
    hosts = len(registry.platform(platform).hosts)
    for what, host in (("between machines", 1), ("on a machine", 0)):
        question = Question(model, platform, Replay(simulate.explained_trace(MESSAGE)), (0, host), what_if_hardware=True)
        if host < hosts and not Resolved.of(question).apart:
            yield f"{model}: a message {what}", question
    spread = DrawnProgram(model, platform, tuple(rank % hosts for rank in range(len(EXCHANGE))), EXCHANGE)
    together = replace(spread, placement=(0,) * len(EXCHANGE))
    yield f"{model}: an exchange", (together if Resolved.of(spread.question()).apart else spread).question()


def _recorded(name: str) -> Iterator[tuple[str, Question]]:
    """The runs of a runtime, or the one of a program."""
    return iter(((name, PROGRAMS[name].question()),)) if name in PROGRAMS else _of_a_runtime(name)


# ---------------------------------------------------------------------------------------------------------------- the golden file


def parameters() -> dict[str, Any]:
    """What determines the file, beside the runtimes and machines themselves."""
    plain = {name: {**vars(of), "program": vars(of.program), "jobs": [vars(j) for j in of.jobs]} for name, of in PROGRAMS.items()}
    told = {"message": MESSAGE, "exchange": EXCHANGE, "platforms": {m: platform_of(m) for m in registry.model_names()}, "programs": plain}
    found: dict[str, Any] = json.loads(json.dumps(told))
    return found


def _blocks(lines: list[str]) -> list[list[str]]:
    """At most `BLOCKS` pieces, as long as each other."""
    size = max(1, -(-len(lines) // BLOCKS))
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def digest(lines: list[str]) -> str:
    """The number of lines, and five hexadecimal digits of each block."""
    return f"{len(lines)} " + "".join(hashlib.sha256("\n".join(block).encode()).hexdigest()[:5] for block in _blocks(lines))


def difference(record: Record, known: Mapping[str, str]) -> str:
    """Which parts are others than those known, each with the first lines that can be; "" for none."""
    told = [f"no {part} any more" for part in known if part not in record]
    for part, lines in record.items():
        fresh, golden = digest(lines), known.get(part, "")
        if fresh == golden:
            continue
        (count, now), (before, old) = fresh.split(" "), (golden or "0 ").split(" ")
        at = next((i for i in range(0, len(now), 5) if now[i : i + 5] != old[i : i + 5]), 0) // 5 if count == before else 0
        blocks = _blocks(lines)
        first = sum(map(len, blocks[:at]))
        shown = [f"  {first + i + 1}: {line[:200]}" for i, line in enumerate(blocks[at][:SHOWN])]
        told.append("\n".join([f"{part}: {count} lines, {before} in the file; among these:", *shown]))
    return "\n".join(told)


@cache
def load() -> dict[str, Any]:
    """The golden file."""
    found: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


def write() -> None:
    """Make the golden file anew."""
    records = {}
    for name in (*PROGRAMS, *registry.model_names()):
        for run, question in _recorded(name):
            records[run] = {part: digest(lines) for part, lines in record_of(question).items()}
    rows = ",\n".join(f"{json.dumps(run)}: {json.dumps(parts)}" for run, parts in records.items())
    head = {"made_by": "python tests/test_records.py", "parameters": parameters()}
    GOLDEN.write_text(f'{json.dumps(head, indent=1)[:-2]},\n"records": {{\n{rows}\n}}}}\n', encoding="utf-8")


# -------------------------------------------------------------------------------------------------------------------- the tests


def _compare(name: str) -> None:
    for run, question in _recorded(name):
        known = load()["records"].get(run)
        told = difference(record_of(question), known or {part: digest(lines) for part, lines in record_of(question).items()})
        assert not told, f"{run}\n{told}\nof parameters {load()['parameters']['programs'].get(name, name)}"


@for_each("name", list(PROGRAMS))
def test_a_program_leaves_the_record_that_it_left(name: str) -> None:
    _compare(name)


@for_each("model", registry.model_names)
def test_a_runtime_leaves_the_record_that_it_left(model: str) -> None:
    """One that is not in the file yet leaves the same record twice."""
    _compare(model)


def test_the_file_is_of_the_programs_as_they_are() -> None:
    told, now = load()["parameters"], parameters()
    assert told["programs"] == now["programs"], "python tests/test_records.py"
    assert (told["message"], told["exchange"]) == (now["message"], now["exchange"])
    assert {m: p for m, p in now["platforms"].items() if m in told["platforms"]} == told["platforms"]


def test_a_difference_names_the_part_and_its_first_lines() -> None:
    lines = [f"line {i}" for i in range(100)]
    known = {"a": digest(lines), "b": digest(["b"])}
    assert difference({"a": lines, "b": ["b"]}, known) == ""
    told = difference({"a": [*lines[:60], "another", *lines[61:]], "b": ["b"]}, known)
    assert told.startswith("a: 100 lines, 100 in the file; among these:\n  53: line 52\n")
    assert "  61: another" in told
    assert difference({"a": lines}, known) == "no b any more"


def main(arguments: list[str]) -> None:
    """Write the file, or print a record or a part of one."""
    if not arguments:
        return write()
    run, *parts = arguments
    (name,) = {n for n in (*PROGRAMS, *registry.model_names()) if (n in PROGRAMS and n == run) or run.startswith(f"{n}: ")}
    record = record_of(dict(_recorded(name))[run])
    print("\n".join(f"{part}\t{line}" for part in parts or record for line in record[part]))
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
