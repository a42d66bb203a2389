"""The views of the store, for people who open it with SQL: what each is for, and what its columns mean.

The views themselves are made by the migrations; a test compares their columns with these, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrompi.spec.declare.outcome import Outcome

__all__ = ["EXAMPLES", "VIEWS", "DatabaseView", "Example"]

_ENDS = tuple(o for o in Outcome if o != Outcome.ENDED)
_RUN: Mapping[str, str] = {
    "model": "runtime model",
    "platform": "platform",
    "placement": "placement of the ranks: shared (all on the first host), distributed (one on each host in turn), or a list of hosts",
    "seed": "seed of every random draw",
    "fidelity": "level of detail: mechanism, curve or loggp",
    "network": "what carried the frames: native, fluid, simgrid",
    "outcome": "how the run ended: " + ", ".join(_ENDS[:-1]) + f" or {_ENDS[-1]}",
}


@dataclass(frozen=True)
class DatabaseView:
    """A view: what a row of it is, and its columns with their meaning, in order."""

    name: str
    row: str
    columns: Mapping[str, str]


VIEWS = (
    DatabaseView("runs_v", "a run: one simulation or measurement", {
        "run_id": "number of the run, as of `retrompi runs list`",
        "stored_utc": "when it was stored, `YYYY-MM-DD HH:MM:SS` in UTC",
        "kind": "pingpong, benchmark, replay, explain, startup, sample, rinf1 and others; native and smpi are measurements",
        "model": _RUN["model"],
        "platform": _RUN["platform"],
        "placement": _RUN["placement"],
        "scenario": "scenario that it comes from, if any",
        "trace": "trace or generator",
        "seed": _RUN["seed"],
        "fidelity": _RUN["fidelity"],
        "network": _RUN["network"],
        "outcome": _RUN["outcome"],
        "reason": "why it did not complete",
        "time_s": "simulated time of the job, seconds",
        "ranks": "number of ranks",
        "messages": "messages sent",
        "payload_B": "bytes of these messages, without headers",
        "packets": "packets of the library",
        "mpi_calls": "actions of the trace",
        "simulating_took_s": "wall time of the simulation, seconds",
        "tags": "words given by `retrompi runs tag`, separated by spaces",
        "overrides_json": "what was set by the user, as a JSON object of texts (`overrides_v` has its keys as rows)",
        "parameters_json": "values of all parameters of the model in base units, as a JSON object (`parameters_v` has its keys as rows)",
        "identity": "SHA-256 of everything that determines the run",
        "code_version": "version of the code that simulated it",
        "simulated_on": "name of the machine that simulated it",
    }),
    DatabaseView("points_v", "a point of a run's curve: one message size of a benchmark", {
        "run_id": "run",
        **_RUN,
        "size_B": "message size, bytes",
        "size_KiB": "message size, KiB (1024 bytes)",
        "one_way_us": "time of one message one way, microseconds",
        "bandwidth_MBps": "bandwidth, 10^6 bytes a second",
        "repetitions": "repetitions over which the time is averaged",
    }),
    DatabaseView("ranks_v", "a rank of a run", {
        "run_id": "run",
        **_RUN,
        "rank": "number of the rank",
        "host": "host it ran on",
        "time_s": "when it ended, simulated seconds",
        "mpi_s": "time in MPI calls, seconds",
        "compute_s": "time computing, seconds",
        "cpu_s": "processor time, seconds; empty for a measurement",
        "mpi_percent": "time in MPI calls, percent of its time",
        "messages_sent": "messages it sent",
        "messages_received": "messages it received",
        "sent_B": "bytes it sent",
        "received_B": "bytes it received",
    }),
    DatabaseView("stages_v", "a stage of one message's time (`retrompi explain`); the stages sum to the message's time", {
        "run_id": "run",
        **_RUN,
        "size_B": "message size, bytes",
        "position": "position of the stage in the message's time, from 0 on",
        "stage": "kind of work or waiting",
        "process": "process that it belongs to",
        "time_us": "time of the stage, microseconds",
    }),
    DatabaseView("overrides_v", "a parameter that the user set for a run", {
        "run_id": "run",
        "parameter": "key as of `--set`",
        "value": "value as written",
    }),
    DatabaseView("parameters_v", "a parameter of a run's model", {
        "run_id": "run",
        "model": _RUN["model"],
        "parameter": "name of the parameter",
        "value": "its value: a number in the base unit (s, B, B/s), or a word",
    }),
    DatabaseView("studies_v", "a study", {
        "study_id": "number of the study, as of `retrompi study list`",
        "name": "name of the study",
        "title": "its title",
        "question": "the question that it answers",
        "first_run_utc": "when it was first run, `YYYY-MM-DD HH:MM:SS` in UTC",
        "points": "points stored so far",
        "completed": "of these, runs that completed",
        "errors": "of these, points that could not be run",
        "hash": "SHA-256 of all that determines its points",
        "code_version": "version of the code that last ran it",
    }),
    DatabaseView("study_points_v", "a point of a study, with its run", {
        "study_id": "study",
        "study": "name of the study",
        "position": "number of the point, from 0 on",
        "outcome": "outcome of its run; error: it could not be run",
        "reason": "why it did not complete",
        "run_id": "its run; empty if it could not be run",
        "model": _RUN["model"],
        "platform": _RUN["platform"],
        "placement": _RUN["placement"],
        "seed": _RUN["seed"],
        "fidelity": _RUN["fidelity"],
        "time_s": "simulated time of the job, seconds",
        "messages": "messages sent",
        "simulating_took_s": "wall time of the point, seconds",
        "axes_json": "its values of the study's axes, as a JSON object of texts (`study_axes_v` has its keys as rows)",
    }),
    DatabaseView("study_axes_v", "the value of one axis at one point of a study", {
        "study_id": "study",
        "study": "name of the study",
        "position": "number of the point",
        "run_id": "its run",
        "axis": "key of the axis, e.g. wmpi.packet",
        "value": "value as written, e.g. 64KiB; `-` where the axis does not apply",
    }),
    DatabaseView("verdicts_v", "the newest verdict on a published statement", {
        "claim": "statement, e.g. BF-SM-12a",
        "paper": "paper",
        "system": "system that the statement is about",
        "verdict": "pass, deviation, no-data and others",
        "observed": "what was simulated, in `unit` (JSON where it is not one number)",
        "low": "lower end of what the statement allows",
        "high": "upper end",
        "unit": "unit of the three numbers",
        "note": "remark of the judge",
        "judged_utc": "when it was judged, `YYYY-MM-DD HH:MM:SS` in UTC",
        "code_version": "version of the code that judged it",
    }),
)


@dataclass(frozen=True)
class Example:
    """A question and the query that answers it, the same on SQLite and PostgreSQL."""

    question: str
    query: str


EXAMPLES = (
    Example("How many runs are stored of each model, and how did they end?", """
SELECT model, outcome, count(*) AS runs, round(CAST(sum(simulating_took_s) AS numeric), 1) AS wall_s
FROM runs_v GROUP BY model, outcome ORDER BY model, outcome"""),
    Example("Which runtime has the lowest latency on each platform?", """
SELECT platform, placement, model, min(one_way_us) AS latency_us
FROM points_v WHERE "size_KiB" < 1 AND outcome = 'completed'
GROUP BY platform, placement, model ORDER BY platform, placement, latency_us"""),
    Example("The curve of a study's points, one axis as a column.", """
SELECT a.value AS packet, p."size_B", p.one_way_us, p."bandwidth_MBps"
FROM study_axes_v a JOIN points_v p ON p.run_id = a.run_id
WHERE a.study = 'packets' AND a.axis = 'wmpi.packet' ORDER BY a.position, p."size_B\""""),
    Example("Which ranks spend most of their time in MPI?", """
SELECT run_id, model, rank, host, round(CAST(mpi_percent AS numeric), 1) AS mpi_percent
FROM ranks_v WHERE outcome = 'completed' ORDER BY ranks_v.mpi_percent DESC, run_id, rank LIMIT 10"""),
    Example("Which points of a study have no result, and why?", """
SELECT study, position, outcome, reason FROM study_points_v WHERE outcome <> 'completed' ORDER BY study, position"""),
    Example("What did the user change in a run, and what was in force?", """
SELECT o.run_id, o.parameter, o.value AS set_to, p.value AS in_base_units
FROM overrides_v o JOIN parameters_v p ON p.run_id = o.run_id AND o.parameter = p.model || '.' || p.parameter
ORDER BY o.run_id, o.parameter"""),
)
