"""Messages and receives find each other in the order in which they came, however many there are."""

from __future__ import annotations

import pytest
from cases import for_each
from engine_runs import ANY_SOURCE, ANY_TAG, completed, job
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nobody_is_overtaken(data: st.DataObject) -> None:
    """Every message of an envelope is as long as its number among them: one that came out of its turn would not fit its receive.

    Receives with and without wildcards are drawn so that MPI's order says which message each one takes.
    """
    sent = data.draw(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=80))
    wild = data.draw(st.sampled_from(["none", "source", "tag"]))
    comms = ("", " comm=1")
    sends = [f"isend 1 {0 if wild == 'tag' else tag} {k} 6{comms[other]}" for k, (tag, other) in enumerate(sent, 1)]
    # In the order of the sends within each envelope; the envelopes themselves in any order.
    keys = sorted({(0 if wild == "tag" else tag, other) for tag, other in sent})
    queues = {key: [k for k, (tag, other) in enumerate(sent, 1) if (0 if wild == "tag" else tag, other) == key] for key in keys}
    order = data.draw(st.permutations([key for key, some in queues.items() for _ in some]))
    receives = []
    for tag, other in order:
        k = queues[tag, other].pop(0)
        source = ANY_SOURCE if wild == "source" else 0
        receives.append(f"irecv {source} {ANY_TAG if wild == 'tag' else tag} {k} 6{comms[other]}")
    late = data.draw(st.sampled_from([("", ""), ("sleep 1; ", ""), ("", "sleep 1; ")]))
    made = "comm_dup 1 0-1; "
    trace = job(made + late[0] + "; ".join(sends) + "; waitall", made + late[1] + "; ".join(receives) + "; waitall")
    completed(trace, data.draw(st.sampled_from(["wmpi", "hpvm"])), "shared")


@for_each("late", [("", "sleep 1; "), ("sleep 1; ", "")])
@for_each("count", [3, 40, 300])
def test_a_wildcard_takes_the_oldest_and_an_older_receive_goes_first(late: tuple[str, str], count: int) -> None:
    """Receives from anybody stand between those of one tag each; which message each one takes is a matter of order alone."""
    sends = [f"isend 1 {k} {10 + k} 6" for k in range(count)]
    receives = [f"irecv 0 {k} {10 + k} 6" if k % 3 else f"irecv {ANY_SOURCE} {ANY_TAG} {10 + k} 6" for k in range(count)]
    completed(job(late[0] + "; ".join(sends) + "; waitall", late[1] + "; ".join(receives) + "; waitall"), "winmpich", "shared")


@pytest.mark.parametrize("count", [10, 200])
def test_receives_that_are_posted_backwards(count: int) -> None:
    sends = "; ".join(f"isend 1 {k} {10 + k} 6" for k in range(count))
    receives = "; ".join(f"irecv 0 {k} {10 + k} 6" for k in reversed(range(count)))
    for late in (("", "sleep 1; "), ("sleep 1; ", "")):
        completed(job(f"{late[0]}{sends}; waitall", f"{late[1]}{receives}; waitall"), "winmpich", "shared")
