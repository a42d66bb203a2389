"""Traces that use the extension: one of everything in it, and random ones that are always well formed."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

COLLECTIVES = ["barrier", "bcast", "reduce", "allreduce", "scan", "gather", "scatter", "allgather", "alltoall", "reducescatterblock"]
VECTORS = ["reducescatter", "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw"]
NEIGHBOURS = ["neighbor_allgather", "neighbor_alltoall", "neighbor_allgatherv", "neighbor_alltoallv", "neighbor_alltoallw"]


def everything() -> list[str]:
    """Four ranks, each line of the extension once and more."""
    return [_everything(r) for r in range(4)]


def _everything(r: int) -> str:
    half, own, other = r // 2, ("0-1", "2,3")[r // 2], ("2,3", "0-1")[r // 2]
    before, after = (r - 1) % 4, (r + 1) % 4
    local = 1 + half
    lines = [
        "init",
        f"comm_split {local} {own}",
        "comm_dup 3 0-3",
        "cart_create 4 0-3 dims=2x2 periods=1x0 comm=3",
        f"graph_create 5 3-0 in={(3 - r + 1) % 4} out={(3 - r - 1) % 4}",
        "comm_create 6 0,2,1" if r < 3 else "comm_create -1",
        "comm_create_group 7 0,3 comm=3" if r in (0, 3) else "compute 1",
        f"bcast 100 1 6 comm={local}",
        f"ibcast 100 1 6 comm={local} req=7",
        "wait req=7",
        f"allgatherv {r % 2 + 1} 1 2 6 6 comm={local}",
        "neighbor_allgather 8 8 comm=4",
        "neighbor_alltoall 8 8 comm=4",
        "neighbor_alltoallv 1 2 3 4 2 1 4 3 comm=4",
        "neighbor_allgatherv 5 5 0 0 comm=5",
        "ineighbor_alltoallw 5 5 comm=5 req=1",
        "irecv -555 -444 8 6 req=2",
        f"isend {after} 5 8 6 req=3",
        f"waitall 3 reqs=1,2,3 from=2:{before} mtag=2:5",
        f"sendRecv 8 {after} 8 -555 6 6 stag=4 rtag=-444 from={before} mtag=4",
        "recvInit -555 3 8 6 req=4",
        f"sendInit {after} 3 8 6 req=5 comm=3",
        "startall 2 reqs=4,5",
        f"waitany 2 reqs=4,5 done=4 from=4:{before}",
        "testsome 1 reqs=5 done=none",
        "testall 1 reqs=5 flag=1",
        "start req=4",
        "test req=4 flag=1 from=1",
        "requestFree req=4",
        "iprobe -555 -444 flag=0",
        "iprobe -555 -444 flag=1 from=0 mtag=3",
        "probe -555 5 from=2",
        "recv -555 7 8 6 from=2",
        "win_create 1 1000 comm=3",
        "Win_fence win=1",
        "Put 1 0 10 6 win=1",
        "Rget 1 0 10 6 win=1 req=9",
        "wait req=9",
        "Fetch_and_op 0 0 8 6 win=1",
        "Win_lock 1 1 win=1",
        "Win_flush 1 win=1",
        "Win_flush_local_all win=1",
        "Win_unlock 1 win=1",
        "Win_lock_all win=1",
        "Win_unlock_all win=1",
        "Win_post 0-3:2,1 win=1",
        "Win_start 0 win=1",
        "Win_complete win=1",
        "Win_wait win=1",
        "win_free 1",
        f"intercomm_create 10 {own} {other} comm={local}",
        f"bcast 8 {(-777, -666, 0, 0)[r]} 6 comm=10",
        f"comm_dup 12 {own} comm=10",
        "intercomm_merge 11 0-3 comm=10",
        f"alltoallw 1 2 3 4 {' '.join([str(r + 1)] * 4)} comm=11",
        "reducescatterblock 8 1.5 6",
        f"comm_free comm={local}",
        "finalize",
    ]
    return "".join(f"{r} {line}\n" for line in lines)


@dataclass
class _Comm:
    id: int
    group: list[int]
    neighbours: list[list[int]] | None = None  # by rank of the communicator, both ways


@dataclass
class _Program:
    ranks: int
    draw: random.Random
    lines: list[list[str]] = field(default_factory=list)
    comms: list[_Comm] = field(default_factory=list)
    next_id: int = 1
    next_window: int = 1

    def say(self, rank: int, line: str) -> None:
        self.lines[rank].append(f"{rank} {line}\n")

    def comm(self) -> _Comm:
        return self.draw.choice(self.comms)


def group_text(group: list[int], draw: random.Random) -> str:
    """A group in one of the ways in which it may be written."""
    steps = {b - a for a, b in itertools.pairwise(group)}
    if len(steps) == 1 and draw.random() < 0.7:
        (step,) = steps
        return f"{group[0]}-{group[-1]}" + ("" if abs(step) == 1 else f":{abs(step)}")
    return ",".join(map(str, group))


def random_trace(seed: int) -> list[str]:
    """A program of two to six ranks that makes communicators, requests and windows; well formed, and it ends, whatever the seed."""
    draw = random.Random(seed)
    ranks = draw.randint(2, 6)
    p = _Program(ranks, draw, [[f"{r} init\n"] for r in range(ranks)], [_Comm(0, list(range(ranks)))])
    for _ in range(draw.randint(1, 25)):
        draw.choice([_new_comm, _collective, _collective, _messages, _messages, _persistent, _window])(p)
    for r in range(ranks):
        p.say(r, "finalize")
    return ["".join(own) for own in p.lines]


def _comm_key(c: _Comm) -> str:
    return f" comm={c.id}" if c.id else ""


def _new_comm(p: _Program) -> None:
    draw, parent = p.draw, p.comm()
    how = draw.choice(["split", "dup", "create", "create_group", "cart", "graph"])
    members = parent.group[:]
    if how != "dup":
        draw.shuffle(members)
        members = members[: draw.randint(1, len(members))]
    extra = [""] * len(members)
    neighbours: list[list[int]] | None = None
    size = len(members)
    if how == "dup":
        neighbours = parent.neighbours
    if how == "cart":
        neighbours = [[r - 1 if r > 0 else -666, r + 1 if r + 1 < size else -666] for r in range(size)]
        extra = [f" dims={size} periods=0"] * size
    if how == "graph":  # a ring, both ways
        neighbours = [[(r - 1) % size, (r + 1) % size] for r in range(size)]
        extra = [f" in={a},{b} out={a},{b}" for a, b in neighbours]
    name = f"{how}_create" if how in ("cart", "graph") else f"comm_{how}"
    if how in ("split", "create", "cart", "graph"):
        for r in parent.group:
            if r not in members:
                p.say(r, f"{name} -1{_comm_key(parent)}")
    text = group_text(members, draw)
    for i, r in enumerate(members):
        spelled = text if draw.random() < 0.8 else ",".join(map(str, members))
        p.say(r, f"{name} {p.next_id} {spelled}{_comm_key(parent)}{extra[i]}")
    p.comms.append(_Comm(p.next_id, members, neighbours))
    p.next_id += draw.randint(1, 3)


def _collective(p: _Program) -> None:
    draw, comm = p.draw, p.comm()
    n = len(comm.group)
    name = draw.choice(COLLECTIVES + VECTORS + (NEIGHBOURS if comm.neighbours else []))
    root, nonblocking, count = draw.randrange(n), draw.random() < 0.3, draw.randint(0, 5000)
    block = [[draw.randint(1, 99) for _ in range(n)] for _ in range(n)]  # bytes from one rank to another
    near = " ".join([str(draw.randint(1, 99))] * 2)
    for me, r in enumerate(comm.group):
        row, column, own = (" ".join(map(str, x)) for x in (block[me], [b[me] for b in block], block[0]))
        mine = block[0][me]
        arguments = {
            "barrier": "", "bcast": f"{count} {root} 1", "reduce": f"{count} 2.5 {root} 0", "allreduce": f"{count} 0 6",
            "scan": f"{count} 1e3", "gather": f"{count} {count} {root} 1 1", "scatter": f"{count} {count} {root} 6 6",
            "allgather": f"{count} {count} 1 1", "alltoall": f"{count} {count} 6 6", "reducescatterblock": f"{count} 0 0",
            "reducescatter": f"{own} 0 6", "gatherv": f"{mine} {own} {root} 6 6", "scatterv": f"{own} {mine} {root} 6 6",
            "allgatherv": f"{mine} {own} 6 6", "alltoallv": f"9 {row} 9 {column} 6 6", "alltoallw": f"{row} {column}",
            "neighbor_allgather": f"{count} {count}", "neighbor_alltoall": f"{count} {count} 1 1",
            "neighbor_allgatherv": f"{near.split()[0]} {near} 6 6", "neighbor_alltoallv": f"{near} {near} 0 0",
            "neighbor_alltoallw": f"{near} {near}",
        }[name]
        p.say(r, f"{'i' if nonblocking else ''}{name} {arguments}{_comm_key(comm)}{' req=77' if nonblocking else ''}")
        if nonblocking:
            ends = ["wait req=77", "waitall reqs=77", "waitsome 1 reqs=77 done=77", "test req=77 flag=1", "testany reqs=77 done=77"]
            p.say(r, draw.choice(ends))


def _messages(p: _Program) -> None:
    draw, comm = p.draw, p.comm()
    a, b = draw.choice(comm.group), draw.choice(comm.group)
    tag, size, k = draw.randint(0, 9), draw.randint(0, 40000), draw.randint(1, 4)
    key = _comm_key(comm)
    sends = draw.choice(["isend", "ISsend", "ibsend", "irsend"])
    reqs = draw.sample(range(1, 60), 2 * k)
    out, into = reqs[:k], reqs[k:]
    told = draw.random() < 0.7  # an untold wildcard might take the message of another step
    source = draw.choice([str(a), "-555"]) if told else str(a)
    ask = draw.choice([str(tag), "-444"]) if told else str(tag)
    for q in out:
        p.say(a, f"{sends} {b} {tag} {size} 6{key} req={q}")
    for q in into:
        p.say(b, f"irecv {source} {ask} {draw.choice([size, -1])} 6{key} req={q}")
    p.say(a, f"waitall {k} reqs={','.join(map(str, out))}")
    if draw.random() < 0.5:
        match = f" from={','.join(f'{q}:{a}' for q in into)} mtag={','.join(f'{q}:{tag}' for q in into)}" if told else ""
        p.say(b, f"waitall reqs={','.join(map(str, into))}{match}")
        return
    for i, q in enumerate(into):
        left = ",".join(map(str, into[i:]))
        if draw.random() < 0.3:
            p.say(b, f"testany 3 reqs={left} done=none")
        match = f" from={q}:{a} mtag={q}:{tag}" if told else ""
        p.say(b, f"{draw.choice(['waitany', 'waitsome', 'testany', 'testsome'])} reqs={left} done={q}{match}")
    for r, peer in ((a, b), (b, a)) if a != b else ((a, a),):
        match = f"-555 6 6{key} stag={tag} rtag=-444 from={peer} mtag={tag}" if told else f"{peer} 6 6{key} stag={tag} rtag={tag}"
        p.say(r, f"sendRecv 8 {peer} 16 {match}")


def _persistent(p: _Program) -> None:
    draw, comm = p.draw, p.comm()
    a, b = draw.choice(comm.group), draw.choice(comm.group)
    key, source = _comm_key(comm), draw.choice([a, -555])
    p.say(b, f"recvInit {source} 1 64 6{key} req=90")
    p.say(b, f"recvInit {a} 2 64 6{key} req=91")
    p.say(a, f"sendInit {b} 1 64 6{key} req=80")
    p.say(a, f"ssendInit {b} 2 32 6{key} req=81")
    for _ in range(draw.randint(0, 3)):
        p.say(b, "startall 2 reqs=91,90")
        p.say(a, "startall reqs=81,80")
        p.say(b, f"waitall 2 reqs=90,91 from=90:{a}")
        p.say(a, "waitall reqs=80,81")
        p.say(b, "start req=90")
        p.say(a, "start req=80")
        p.say(a, f"wait {a} {b} 1 req=80")
        p.say(b, f"wait req=90 from={a} mtag=1")
    for r, q in ((b, 90), (b, 91), (a, 80), (a, 81)):
        p.say(r, f"requestFree req={q}")


def _window(p: _Program) -> None:
    draw, comm = p.draw, p.comm()
    w, p.next_window = p.next_window, p.next_window + draw.randint(1, 2)
    freed = draw.random() < 0.5
    for r in comm.group:
        target = draw.choice(comm.group)
        p.say(r, f"win_create {w} {draw.randint(0, 1 << 30)}{_comm_key(comm)}")
        p.say(r, f"Win_fence win={w}")
        for name in draw.sample(["Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"], 2):
            p.say(r, f"{name} {target} 0 {draw.randint(0, 999)} 1 win={w}")
        p.say(r, f"Win_lock {target} {draw.randint(0, 1)} win={w}")
        p.say(r, f"{draw.choice(['Rput', 'Rget', 'Raccumulate', 'Rget_accumulate'])} {target} 0 9 6 win={w} req=70")
        p.say(r, "wait req=70")
        p.say(r, draw.choice([f"Win_flush {target} win={w}", f"Win_flush_local_all win={w}", f"Win_flush_all win={w}"]))
        p.say(r, f"Win_unlock {target} win={w}")
        everybody = group_text(comm.group, draw)
        for line in (f"Win_post {everybody}", f"Win_start {everybody}", "Win_complete", "Win_wait", "Win_fence"):
            p.say(r, f"{line} win={w}")
        if freed:
            p.say(r, f"win_free {w}")
