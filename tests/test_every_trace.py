"""Every reference trace on every model: replayed to its last action, or refused with the place and the reason; nothing is lost in silence.

What a replay carried out is compared with an account of the trace's text made without the project's reader. Each trace is replayed on two
models here, by turns, and a long one on one; `make exhaustive` replays the short ones on every model and the gigabytes of class B, and
RETROMPI_EVERY_TRACE=1 all on all.
"""

from __future__ import annotations

import os
from functools import lru_cache

import pytest
from trace_account import Account, account, texts

from retrompi import traces
from retrompi.base.errors import InputError, UsageError
from retrompi.base.paths import reference_dir
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace
from retrompi.traces.origin import LOST_BY_SMPI, may_have_lost

FOLDER = reference_dir() / "traces"
ARCHIVES = sorted(p.name for p in FOLDER.glob("*.tar.zst"))
MODELS = [name for name in registry.model_names() if ":" not in name]
ROOMS = {"nemesis": "abe", "craympt": "cray-t3e", "mpibip": "myrinet-piii"}
"""Machines of the runtime's papers; the others run on the NT machines."""
ALL = os.environ.get("RETROMPI_EVERY_TRACE") == "1"
LONG = 100_000
"""Actions beyond which a trace counts as long."""
DETAILED = 12_000
"""Actions up to which every packet is simulated; longer traces run at the rung of the sampled curves."""
HEAVY = "npb3.3.1-is-B-"
"""Few actions that move gigabytes: so do those of class A, of which every packet is simulated; these run at the rung of the curves."""


@lru_cache(maxsize=1)
def held(archive: str) -> list[tuple[str, Trace, Account]]:
    told = dict(texts(FOLDER / archive))
    if len(told) > 1:
        return [(name, trace, account(told[name])) for name, trace in traces.read_folders(FOLDER / archive)]
    ((name, ranks),) = told.items()
    return [(name, traces.read(FOLDER / archive), account(ranks))]


def carried_out(model: str, name: str, trace: Trace, wanted: Account, detailed: bool = True) -> str:
    """Replays, compares; the outcome, or why it was refused."""
    refused = trace.unsupported()
    fidelity = "mechanism" if detailed and trace.actions <= DETAILED else "curve"
    try:
        result = simulate.run(Question(model, ROOMS.get(model, "nt-cluster"), Replay(trace), "distributed", fidelity=fidelity))
    except (InputError, UsageError) as error:
        why = str(error)
    else:
        why = ""
    if why:
        assert any(file in why for file in trace.files), f"{name}: no place in '{why}'"
        return why
    assert not refused, f"{name} was replayed although {refused[0]} cannot be"
    if result.outcome == "completed":
        assert result.done == dict(wanted.calls), name
        assert result.own_bytes == wanted.sent_bytes, name
        assert result.messages >= wanted.sent, name
        # A program that cancels a send, or never receives it, says so by its own lines.
        assert result.messages - result.delivered == wanted.sent - wanted.received, name
        assert result.bytes == result.delivered_bytes or wanted.sent > wanted.received, name
    else:
        assert result.detail, name
        assert all(result.done.get(call, 0) <= n for call, n in wanted.calls.items())
    return result.outcome


def by_turns(archive: str, number: int) -> list[str]:
    """So many models, others for each archive."""
    first = ARCHIVES.index(archive)
    return [MODELS[(first + i * len(MODELS) // number) % len(MODELS)] for i in range(number)]


def replayed(archive: str, models: int) -> None:
    runs = held(archive)
    long = sum(t.actions for _, t, _ in runs) > LONG and not ALL
    for model in by_turns(archive, 1 if long else models):
        outcomes = {name: carried_out(model, name, trace, wanted, ALL or not archive.startswith(HEAVY)) for name, trace, wanted in runs}
        if archive.startswith(("npb", "osu", "imb", "netpipe")):
            assert set(outcomes.values()) == {"completed"}, (model, outcomes)


@pytest.mark.parametrize("archive", [name for name in ARCHIVES if "-B-" not in name])
def test_nothing_is_lost_in_silence(archive: str) -> None:
    replayed(archive, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("archive", ARCHIVES)
def test_nothing_is_lost_on_any_model(archive: str) -> None:
    replayed(archive, len(MODELS))


def test_what_smpis_own_tracer_loses_is_refused_or_told() -> None:
    runs = held("ibm-suite-raw.tar.zst")
    refused = {name for name, trace, _ in runs if trace.unsupported()}
    warned = {name for name, trace, _ in runs if trace.warnings}
    assert len(runs) > 100
    assert warned
    for name, _, wanted in runs:
        if {"Start", "Startall"} & set(wanted.calls):
            assert name in refused
    aborted = {m: t for m, t, _ in runs}["ibm-smpi-raw/ibm-env-abort-4"]
    ended = simulate.run(Question("winmpich", "nt-cluster", Replay(aborted), "distributed"))
    assert (ended.outcome, [c.text for c in ended.cautions[-1:]]) == ("deadlock", [LOST_BY_SMPI])
    lost = {n for n in refused if "size is lost" in str({m: t for m, t, _ in runs}[n].unsupported())}
    assert lost


LOSSY = [  # what rank 0 and 1 do; whether the form of the lines may have lost communicators or requests
    ("barrier", "", True),
    ("irecv 1 0 8 6; wait 1 0 0", "", True),
    ("comm_split; send 1 0 8 6", "recv 0 0 8 6", True),
    ("recv 1 0 8 6", "recv 0 0 8 6", False),
    ("irecv 1 0 8 6 req=1; wait req=1", "barrier", False),
    ("comm_dup 1 0-1; barrier comm=1", "comm_dup 1 0-1", False),
]


@pytest.mark.parametrize(("first", "second", "lossy"), LOSSY)
def test_a_trace_in_the_form_of_smpis_tracer_says_that_it_may_have_lost_something(first: str, second: str, lossy: bool) -> None:
    calls = [f"init;{lines};finalize".split(";") for lines in (first, second)]
    trace = traces.parse(["".join(f"{r} {line.strip()}\n" for line in mine if line) for r, mine in enumerate(calls)])
    assert may_have_lost(trace) is lossy
    ended = simulate.run(Question("winmpich", "nt-cluster", Replay(trace), "distributed"))
    assert (LOST_BY_SMPI in [c.text for c in ended.cautions]) is (lossy and ended.outcome == "deadlock")
