"""A model's ``curve`` rung for a placement as a plain text file, which the SMPI plug-in reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.sim import fidelity, simulate
from retrompi.sim.cautions import Caution, to_keep
from retrompi.sim.resolved import Resolved
from retrompi.sim.samples import Samples
from retrompi.spec.declare.calls import ANYTHING
from retrompi.spec.hosts import one_by_one
from retrompi.spec.media import NO_LIMIT
from retrompi.spec.question import Question, Replay, Starts
from retrompi.store.lookup import samples_in
from retrompi.traces.generate import DEFAULT_SIZES

__all__ = ["COLLECTIVES", "FORMAT", "SETTINGS", "Export", "export"]

FORMAT = 2
PS = 1e-12
NONE = "none"

SETTINGS: dict[str, str] = {
    "smpi/simulate-computation": "no",  # the plug-in measures it, or the recorder reports it
    "smpi/host-speed": "1Gf",
    "smpi/cpu-threshold": "0",
    "smpi/wtime": "0",
    "smpi/test": "0",
    "smpi/iprobe": "0",
    "smpi/iprobe-cpu-usage": "1",
    "smpi/init": "0",
    "smpi/grow-injected-times": "no",
    "smpi/finalization-barrier": "no",
    "smpi/privatization": "dlopen",
    "smpi/coll-selector": "default",
    "network/model": "CM02",
    "network/TCP-gamma": "0",
    "network/crosstraffic": "no",
    "network/weight-S": "0",
    "network/loopback-lat": "0",
    "network/loopback-bw": "1e30",
    "maxmin/precision": "1e-7",
    "surf/precision": "1e-12",
}
"""Every SimGrid setting that affects times, set explicitly: none of its defaults, fitted on another cluster, is used."""

COLLECTIVES = {
    "barrier": {"dissemination": "ompi_bruck", "tree": "ompi_tree"},
    "bcast": {"binomial": "binomial_tree", "folded": "binomial_tree", "linear": "flattree", "scatter_doubling": "scatter_rdb_allgather",
              "scatter_ring": "scatter_LR_allgather"},
    "reduce": {"binomial": "binomial", "linear": "flat_tree", "rabenseifner": "scatter_gather"},
    "allreduce": {"reduce_bcast": "redbcast", "doubling": "rdb", "ring": "lr", "rabenseifner": "rab"},
    "allgather": {"ring": "NTSLR", "doubling": "rdb", "bruck": "bruck"},
    "alltoall": {"pairwise": "pair", "bruck": "bruck", "posted": "basic_linear", "in_order": "basic_linear"},
    "gather": {"binomial": "ompi_binomial", "linear": "ompi_basic_linear"},
    "scatter": {"binomial": "ompi_binomial", "linear": "ompi_basic_linear"},
}
"""Operation -> our algorithm -> SMPI's name of the same or the nearest one (equal ones: tests/test_smpi_online.py)."""


TYPICAL = 1024
"""Bytes of the call for which SMPI's own algorithm is selected: SMPI uses one for all sizes."""
LAT = "curve points: send, transit, recv, gap, port, both, wire"
SPLITMIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True)
class Export:
    """Everything needed to run a program on a model under SMPI.

    ``rows`` are the engine's channel specifications at fidelity ``curve`` (`fidelity.lower_fidelity`); ``puts`` the costs of a one-sided
    put, by pair kind, for the algorithms that use one: (bytes, picoseconds of the origin, picoseconds until all has arrived).
    """

    model: str
    platform: str
    mode: str
    ranks: int
    seed: int
    rows: Mapping[str, Any]
    puts: Mapping[str, Sequence[tuple[int, int, int]]]
    notes: tuple[str, ...] = ()
    cautions: tuple[Caution, ...] = ()

    def text(self) -> str:
        """The file that the plug-in reads; docs/smpi.md has its grammar."""
        return "\n".join(self._lines()) + "\n"

    def settings(self) -> dict[str, str]:
        """SimGrid's settings for a run: those of the plug-in and, for plain SMPI, the nearest thresholds."""
        limit = str(min(self.eager_limit(), 2**31 - 1))
        thresholds = {"smpi/async-small-thresh": limit, "smpi/send-is-detached-thresh": limit}
        named = ((o, COLLECTIVES.get(o, {}).get(a)) for o, a in self._typical().items())
        return SETTINGS | thresholds | {f"smpi/{operation}": name for operation, name in named if name is not None}

    def unknown(self) -> list[tuple[str, str]]:
        """(operation, algorithm) pairs that SMPI lacks: its default is used where SMPI's own collectives run."""
        return [(o, a) for o, a in self._typical().items() if a not in COLLECTIVES.get(o, {})]

    def _typical(self) -> dict[str, str]:
        """Operation -> the algorithm for `TYPICAL` bytes over all ranks."""
        power = self.ranks & (self.ranks - 1) == 0
        chosen: dict[str, str] = {}
        for operation, algorithm, low, high, least, most, count, _, nodes in self._table():
            fits = low <= TYPICAL and (high is None or high > TYPICAL) and not nodes
            fits = fits and least <= self.ranks and (most is None or self.ranks <= most)
            if fits and (count == "any" or power == (count == "power")):
                chosen.setdefault(operation, algorithm)
        return chosen

    def _table(self) -> list[tuple[Any, ...]]:
        """The model's collective table; its special broadcasts (a put tree, a shared buffer) follow it, as in the engine."""
        own = ("bcast", self.rows["bcast"]["algorithm"], 0, None, 1, None, "any", "both", False)
        return [*self.rows["collectives"], own]

    def points(self) -> Iterator[dict[str, Any]]:
        """The points of the curves as rows: pair, curve, size_B and the times in picoseconds."""
        names = ("size_B", "send_ps", "transit_ps", "recv_ps", "gap_ps", "port_ps", "both_ps", "wire_ps")
        for which in self.kinds():
            for number, (table, _, _) in enumerate(self._hop(which)["curve"]["tables"]):
                for point in table:
                    yield {"pair": which, "curve": number, **dict(zip(names, point, strict=True))}

    def eager_limit(self) -> int:
        """The smallest message that uses rendezvous, over both pair kinds of the placement; bytes."""
        bounds = [low for which in self.kinds() for low, _, kind in self.rows[f"protocol_{which}"] if kind != "eager"]
        return int(min(bounds, default=2**31 - 1))

    def kinds(self) -> list[str]:
        """The pair kinds that occur: ``same`` and ``remote``."""
        return [which for which in ("same", "remote") if self.rows[which]]

    def _lines(self) -> Iterator[str]:
        rows = self.rows
        yield f"retrompi-smpi {FORMAT}"
        yield f"model {self.model}"
        yield f"platform {self.platform}"
        yield f"# mode {self.mode}, {self.ranks} ranks, seed {self.seed}"
        yield "# times are picoseconds, sizes bytes, rates bytes or operations a second"
        for note in (*self.cautions, *self.notes):
            yield "# " + " ".join(str(note).split())
        yield "# host NAME FLOPS CLOCK WORK SYSCALL CORES TICK PHASE QUANTUM WAIT_CHARGE BOOST QUANTUM_CARRY QUANTUM_AT_TICK"
        yield "#      L1 L2 WAYS COPY_L1 COPY_L2 COPY_MEM"
        hosts = one_by_one(rows["hosts"])
        for host, phase in zip(hosts, _phases(hosts, self.seed), strict=True):
            numbers = [host["flops"], host["clock"], host["work"]]
            copies = [host[k] for k in ("l1", "l2", "l2_ways", "copy_l1", "copy_l2", "copy_mem")]
            system = [_ps(host["syscall"]), int(host["cores"]), _ps(host["tick"]), phase, _ps(host["quantum"]), _ps(host["wait_charge"])]
            system += [int(host[k]) for k in ("boost", "quantum_carry", "quantum_at_tick")]
            yield " ".join(["host", host["name"], *map(_number, numbers), *map(str, system), *map(_number, copies)])
        yield "# rank HOST CLASS"
        classes = self._classes()
        for host, cls in zip(rows["placement"], classes, strict=True):
            yield f"rank {host} {cls}"
        yield f"ports {self._ports()}"
        yield f"test {_ps(rows['test_cpu'])} {_ps(rows['test_system'])}"
        yield f"unexpected {int(rows['unexpected_limit'])}"
        yield f"broadcast-copies {_number(rows['bcast']['copies_root'])} {_number(rows['bcast']['copies_leaf'])}"
        yield f"communicators {int(rows['context_bytes'])} {int(rows['split_gathers'])}"
        for which in self.kinds():
            yield from self._pair(which)
        yield from self._work()
        yield "# collective OPERATION ALGORITHM FROM TO RANKS_FROM RANKS_TO COUNT NODES; the first that fits counts"
        yield from self._collectives()
        yield "# set SIMGRID_SETTING VALUE"
        for key, value in self.settings().items():
            yield f"set {key} {value}"

    def _hop(self, which: str) -> Mapping[str, Any]:
        hop: Mapping[str, Any] = self.rows[which][0]
        return hop

    def _classes(self) -> Sequence[int]:
        for which in self.kinds():
            found: Sequence[int] = self._hop(which)["curve"]["classes"]
            return found
        return [0] * self.ranks

    def _ports(self) -> str:
        return next((str(self._hop(which)["curve"]["ports"]) for which in self.kinds()), "host")

    def _pair(self, which: str) -> Iterator[str]:
        hop = self._hop(which)
        yield f"# pairs of ranks on {'one host' if which == 'same' else 'two hosts'}: {LAT}"
        yield f"connect {which} {_ps(hop['connect'])}"
        for low, high, kind in self.rows[f"protocol_{which}"]:
            yield f"protocol {which} {int(low)} {_bound_text(high)} {'eager' if kind == 'eager' else 'rendezvous'}"
        for a, line in enumerate(hop["curve"]["of"]):
            for b, table in enumerate(line):
                if table >= 0:
                    yield f"between {which} {a} {b} {table}"
        for points, limit, reason in hop["curve"]["tables"]:
            yield f"curve {which} {NONE if limit is None else limit} {' '.join(str(reason).split())}".rstrip()
            for point in points:
                yield "point " + " ".join(map(str, point))
        if which in self.puts:
            yield f"put {which}"
            for size, busy, there in self.puts[which]:
                yield f"point {size} {busy} {there} 0 0 0 0 0"

    def _work(self) -> Iterator[str]:
        """The library's work besides messages, where the model states it (`rows.work`)."""
        work = self.rows.get("work")
        if work is None:
            return
        yield "# work WHAT; cost SIZE PICOSECONDS: what collectives do beside their messages"
        tables = [(f"call {operation}", points) for operation, points in work["call"].items()]
        tables += [("combine", work["combine"]), *((f"buffers {i}", points) for i, points in enumerate(work["buffers"], 1))]
        for what, points in tables:
            yield f"work {what}"
            for size, ps in points:
                yield f"cost {size} {ps}"

    def _collectives(self) -> Iterator[str]:
        for operation, algorithm, low, high, least, most, count, _, nodes in self._table():
            bounds = [str(int(low)), _bound_text(high), str(least), NONE if most is None else str(most)]
            yield " ".join(["collective", operation, algorithm, *bounds, count, str(int(nodes))])


def _bound_text(high: float | None) -> str:
    return NONE if high is None or high >= NO_LIMIT else str(int(high))


def _number(value: float) -> str:
    return repr(float(value))


def _ps(seconds: float) -> int:
    return int(seconds / PS + 0.5)


def _phases(hosts: Sequence[Mapping[str, Any]], seed: int) -> list[int]:
    """Phase of each host's clock tick, as drawn by the engine (engine/sim/sim.cpp, engine/event/core.hpp): the first host's per run."""
    mask = (1 << 64) - 1
    state = (seed ^ 0x7469636B) & mask
    phases = [0] * min(1, len(hosts))
    for host in hosts[1:]:
        state = z = (state + SPLITMIX[0]) & mask
        z = ((z ^ (z >> 30)) * SPLITMIX[1]) & mask
        z = ((z ^ (z >> 27)) * SPLITMIX[2]) & mask
        z ^= z >> 31
        phases.append(int((z >> 11) * 2.0**-53 * float(_ps(host["tick"]))))
    return phases


def _puts(asked: Resolved, sizes: Sequence[int]) -> dict[str, list[tuple[int, int, int]]]:
    """Costs of a put between two ranks of each kind, from the engine, one put at a time."""
    from retrompi._engine import Trace

    placement = asked.placement
    spots = list(zip(placement, placement.cores or [-1] * len(placement), strict=True))
    found: dict[str, list[tuple[int, int, int]]] = {}
    for a in range(len(spots)):
        for b in range(len(spots)):
            which = "same" if spots[a][0] == spots[b][0] else "remote"
            if a == b or which in found:
                continue
            cores = (spots[a][1], spots[b][1]) if placement.cores else ()
            lines: list[list[str]] = [["init", "win_create 1 0"], ["init", "win_create 1 0"]]
            # What the other rank sends while it waits for the window's end is received before anything is timed.
            lines[0] += ["sleep 1", "Put 1 0 1 6 win=1", "Win_flush 1 win=1"]
            for size in sizes:
                lines[0] += [f"# mark {size} begin", f"Put 1 0 {size} 6 win=1", f"# mark {size} left"]
                lines[0] += ["Win_flush 1 win=1", f"# mark {size} there"]
            for mine in lines:
                mine += ["win_free 1", "finalize"]
            texts = ["\n".join(x if x.startswith("#") else f"{r} {x}" for x in mine) + "\n" for r, mine in enumerate(lines)]
            trace = Trace.parse([(text.encode(), f"puts, rank {r}", r) for r, text in enumerate(texts)])
            pair = asked.with_fields(workload=Replay(trace), placement=(spots[a][0], spots[b][0]), cores=cores, idle_overrides=True)
            result = simulate.run(pair)
            simulate.require_completed(result, f"puts of {asked.question.model} on {asked.question.platform}")
            at = {m["label"]: int(m["time_ps"]) for m in result.marks}
            found[which] = [(s, at[f"{s} left"] - at[f"{s} begin"], at[f"{s} there"] - at[f"{s} begin"]) for s in sizes]
    return found


def export(question: Question | Resolved, ranks: int, store: Any = None) -> Export:
    """The ``curve`` rung of ``question`` for ``ranks`` ranks; the question's workload and fidelity are ignored.

    ``store``: where samples of the mechanism are looked up and kept. Raises UsageError for an invalid name, mode or override and for hosts
    that the runtime cannot connect, `sampling.NotSampled` (akin to SimulationEnded) when not even the smallest message completes.
    """
    asked = Resolved.of(question).with_fields(workload=Starts(ranks), fidelity="curve")
    q = asked.question
    samples = Samples(simulate.run) if store is None else samples_in(store)
    samples.prepare(asked)
    rows = simulate.compile_question(asked, replace(ANYTHING, start_up=False)).rows
    if asked.apart:
        raise UsageError(f"{q.model} on {q.platform}: {asked.apart}")
    lowered, notes = fidelity.lower_fidelity(rows, "curve", asked.platform, asked.placement, lambda pair: samples.of(asked, pair))
    puts: dict[str, list[tuple[int, int, int]]] = {}
    if lowered["bcast"]["algorithm"] == "put_tree" or any(c[1] == "put_tree" for c in lowered["collectives"]):
        puts = _puts(asked, DEFAULT_SIZES)
    return Export(q.model, q.platform, q.where, ranks, q.seed, lowered, puts, tuple(notes), tuple(to_keep(asked)))
