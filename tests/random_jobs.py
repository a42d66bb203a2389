"""Random jobs that can run: a common order of messages and collectives, from which each rank's lines follow."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from retrompi import traces

SENDS = ("send", "isend", "Ssend", "bsend")


@st.composite
def jobs(draw: st.DrawFn, max_ranks: int = 4, max_steps: int = 25, wildcards: bool = True) -> Any:
    """A trace of 2 to ``max_ranks`` ranks: computation, messages in several modes, requests that are waited for late,
    exchanges, persistent requests, collectives of the world and of a communicator."""
    n = draw(st.integers(2, max_ranks))
    lines: list[list[str]] = [["init"] for _ in range(n)]
    pending: list[list[tuple[int, str]]] = [[] for _ in range(n)]  # identity, key
    ids = [0] * n
    comm: list[int] = []
    tag = 0

    def post(rank: int, text: str, key: str) -> None:
        ids[rank] += 1
        lines[rank].append(f"{text} req={ids[rank]}")
        pending[rank].append((ids[rank], key))

    def finish(rank: int, how: str) -> None:
        if not pending[rank]:
            return
        if how == "waitall":
            lines[rank].append("waitall " + str(len(pending[rank])))
        elif how == "named":
            lines[rank].append(f"waitall {len(pending[rank])} reqs={','.join(str(i) for i, _ in pending[rank])}")
        else:
            req, key = pending[rank].pop(0)
            lines[rank].append(f"wait {key} req={req}")
            return
        pending[rank].clear()

    for _ in range(draw(st.integers(1, max_steps))):
        step = draw(st.sampled_from(["message", "message", "message", "exchange", "wait", "compute", "collective", "comm", "oncomm"]))
        tag = draw(st.integers(0, 3))
        size = draw(st.integers(0, 3000))
        if step == "message":
            a, b = draw(st.permutations(range(n)))[:2]
            ahead = draw(st.booleans())
            send, lazy = draw(st.sampled_from(SENDS)), draw(st.booleans())
            source = "-555" if wildcards and draw(st.integers(0, 5)) == 0 else str(a)
            matched = f" from={a}" if source == "-555" else ""
            if ahead or lazy or send == "Ssend":
                post(b, f"irecv {source} {tag} {size} 6{matched}", f"{source} {b} {tag}")
            if send == "isend":
                post(a, f"isend {b} {tag} {size} 6", f"{a} {b} {tag}")
            else:
                lines[a].append(f"{send} {b} {tag} {size} 6")
            if not (ahead or lazy or send == "Ssend"):
                # An earlier receive of the same key, or of any source, must not be waited for by what has not come yet.
                lines[b].append(f"recv {source} {tag} {size} 6{matched}")
        elif step == "exchange":
            a, b = draw(st.permutations(range(n)))[:2]
            lines[a].append(f"sendRecv {size} {b} {size + 1} {b} 6 6 stag={tag} rtag=9")
            lines[b].append(f"sendRecv {size + 1} {a} {size} {a} 6 6 stag=9 rtag={tag}")
        elif step == "wait":
            finish(draw(st.integers(0, n - 1)), draw(st.sampled_from(["waitall", "named", "one"])))
        elif step == "compute":
            lines[draw(st.integers(0, n - 1))].append(f"compute {size}")
        elif step == "collective":
            line = draw(st.sampled_from(["barrier", f"bcast {size} 0 6", f"allreduce {size} 0 6"]))
            for row in lines:
                row.append(line)
        elif step == "comm" and not comm:
            comm = sorted(draw(st.sets(st.integers(0, n - 1), min_size=2)))
            for r, row in enumerate(lines):
                row.append(f"comm_split 1 {','.join(map(str, comm))}" if r in comm else "comm_split -1")
        elif step == "oncomm" and comm:
            for r in comm:
                lines[r].append(f"bcast {size} {len(comm) - 1} 6 comm=1")
    for rank in range(n):
        finish(rank, "waitall")
    texts = ["".join(f"{r} {line}\n" for line in [*row, "finalize"]) for r, row in enumerate(lines)]
    return traces.parse(texts, name="random")
