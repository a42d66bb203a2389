"""The engine's terms (stages, states, processes, outcomes) in the language of the reader.

Data, files and the command line keep the engine's own words; these are for pages. A word that is not listed is shown as it is.
"""

from __future__ import annotations

import re

from retrompi.base.translate import _, lazy, pgettext

__all__ = ["outcome_name", "process_name", "stage_name", "state_name", "waited_for"]

_WAITED = {"a message": lazy("a message"), "a send": lazy("a send"), "room": lazy("room in a buffer"), "a lock": lazy("a lock"),
           "nothing to do": lazy("nothing to do")}
_ROLES = {"daemon": lazy("daemon"), "proxy": lazy("proxy"), "wire": lazy("wire")}
_PROCESS = re.compile(r"(?P<role>rank|[a-z]+)(?: (?P<n>\d+))?(?: on (?P<host>.+?))?(?: of (?P<job>.+))?")


def stage_name(stage: str) -> str:
    """A stage of a message."""
    return {
        "library": pgettext("stage", "library"), "copy": pgettext("stage", "copy"), "syscall": pgettext("stage", "syscall"),
        "event": pgettext("stage", "event"), "switch": pgettext("stage", "switch"), "tick": pgettext("stage", "tick"),
        "quantum": pgettext("stage", "quantum"), "queueing": pgettext("stage", "queueing"), "poll": pgettext("stage", "poll"),
        "stack": pgettext("stage", "stack"), "interrupt": pgettext("stage", "interrupt"), "nic": pgettext("stage", "nic"),
        "wire": pgettext("stage", "wire"), "ack": pgettext("stage", "ack"), "compute": pgettext("stage", "compute"),
        "lock": pgettext("stage", "lock"), "line": pgettext("stage", "line"), "wait": pgettext("stage", "wait"),
        "latency": pgettext("stage", "latency"),
    }.get(stage, stage)


def waited_for(why: str) -> str:
    """The name of a reason for waiting."""
    return _(_WAITED.get(why, why))


def state_name(state: str) -> str:
    """A state of a process: a stage, or ``wait: what for``."""
    stage, _colon, why = state.partition(": ")
    return f"{stage_name(stage)}: {waited_for(why)}" if why else stage_name(stage)


def outcome_name(outcome: str) -> str:
    """How a run ended."""
    return _(outcome)


def process_name(name: str, *, short: bool = False) -> str:
    """A process, ``rank 3`` or ``daemon on node1``; ``short``: without its host."""
    found = _PROCESS.fullmatch(name)
    if found is None:
        return name
    role, n, host, job = found.group("role", "n", "host", "job")
    shown = _("rank {n}").format(n=n) if role == "rank" and n else (_(_ROLES[role]) if role in _ROLES else role) + (f" {n}" if n else "")
    if host and not short:
        shown = _("{process} on {host}").format(process=shown, host=host)
    return _("{process} of {job}").format(process=shown, job=job) if job else shown
