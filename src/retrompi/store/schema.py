"""The tables of the store. A change here needs a new migration in ``migrations/versions``, a new `REVISION`, and ``new_store.sql`` written
again (``python tests/test_store.py``)."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, DateTime, Double, ForeignKey, Index, Integer, MetaData, String, Table, Text

__all__ = ["ANATOMY", "MEASURED", "METADATA", "POINT", "RANK_TIME", "REVISION", "RUN", "RUN_TAG", "STUDY", "STUDY_POINT",
           "STUDY_SHARD", "VERDICT", "VERDICT_BATCH", "VERSION_TABLE"]

REVISION = "0007"
"""The migration this code works with."""

MEASURED = ("native", "smpi")
"""Kinds of runs that repeat a measurement: each execution has a row of its own. Of other runs an identity has one row, by the index
``ux_runs_identity`` of revision 0003. It is not declared below: a partial index names its condition for each dialect, and SQLAlchemy would
load them all, a tenth of a second in every command."""

VERSION_TABLE = "retrompi_version"
"""Alembic's version table under a specific name, so that another application's database is never mistaken for a store."""

# SQLite auto-increments only columns of type INTEGER; elsewhere ids are 64 bits.
_Id = BigInteger().with_variant(Integer, "sqlite")

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)
"""All tables; constraint names are fixed so that later migrations can address them."""

RUN = Table(
    "runs",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("identity", String(64), index=True, nullable=False),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("kind", String(16), index=True, nullable=False),
    Column("model", String(80), index=True, nullable=False),
    Column("model_hash", String(64), nullable=False),
    Column("platform", String(80), index=True, nullable=False),
    Column("platform_hash", String(64), nullable=False),
    Column("mode", Text, nullable=False),
    Column("parameters", JSON, nullable=False),
    Column("overrides", JSON, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("fidelity", String(16), nullable=False),
    Column("network", String(32), server_default="native", nullable=False),
    Column("trace", Text, nullable=False),
    Column("trace_hash", String(64), nullable=False),
    Column("scenario", String(80), nullable=False),
    Column("scenario_hash", String(64), nullable=False),
    Column("code_version", String(80), nullable=False),
    Column("simgrid_version", String(32), nullable=False),
    Column("host", String(255), nullable=False),
    Column("wall_s", Double, nullable=False),
    Column("outcome", String(16), index=True, nullable=False),
    Column("detail", Text, nullable=False),
    Column("time_s", Double),
    Column("ranks", Integer),
    Column("actions", BigInteger),
    Column("messages", BigInteger),
    Column("bytes", BigInteger),
    Column("packets", BigInteger),
    # Other results of the run: marks, the wait-for graph, start-up steps.
    Column("facts", JSON, nullable=False),
    # What was asked (`Question.row`); none for a measurement, an import, and a run stored before revision 0007.
    Column("question", JSON(none_as_null=True)),
)
"""One simulation: its question, what determines its result, and its outcome."""

RUN_TAG = Table(
    "run_tags",
    METADATA,
    Column("run_id", _Id, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String(80), primary_key=True, index=True),
)
"""A word that the user gave a run."""

POINT = Table(
    "points",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("run_id", _Id, ForeignKey("runs.id", ondelete="CASCADE"), index=True, nullable=False),
    Column("size_B", BigInteger, nullable=False),
    Column("time_us", Double, nullable=False),
    Column("bandwidth_MBps", Double, nullable=False),
    Column("repetitions", Integer, nullable=False),
)
"""One point of a curve: one-way time and bandwidth (10^6 B/s) at one message size."""

RANK_TIME = Table(
    "rank_times",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("run_id", _Id, ForeignKey("runs.id", ondelete="CASCADE"), index=True, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("host", String(80), nullable=False),
    Column("time_s", Double, nullable=False),
    Column("mpi_s", Double, nullable=False),
    Column("compute_s", Double, nullable=False),
    Column("cpu_s", Double),
    Column("sent", BigInteger, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("bytes_sent", BigInteger, nullable=False),
    Column("bytes_received", BigInteger, nullable=False),
)
"""Where one rank's time went, and what it sent and received."""

ANATOMY = Table(
    "anatomy",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("run_id", _Id, ForeignKey("runs.id", ondelete="CASCADE"), index=True, nullable=False),
    Column("size_B", BigInteger),
    Column("position", Integer, nullable=False),
    Column("stage", String(80), nullable=False),
    Column("process", String(80), nullable=False),
    Column("seconds", Double, nullable=False),
    Column("ps", BigInteger),
)
"""One stage of a message's time. ``ps`` are integer picoseconds, which sum to the total exactly."""

VERDICT_BATCH = Table(
    "verdict_batches",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("paper", String(80), index=True, nullable=False),
    Column("code_version", String(80), nullable=False),
    Column("run_ids", JSON, nullable=False),
)
"""One judging of one paper's claims."""

VERDICT = Table(
    "verdicts",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("batch_id", _Id, ForeignKey("verdict_batches.id", ondelete="CASCADE"), index=True, nullable=False),
    Column("claim", String(40), index=True, nullable=False),
    Column("system", Text, nullable=False),
    Column("use", String(16), nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("observed", JSON),
    Column("low", Double),
    Column("high", Double),
    Column("unit", String(40), nullable=False),
    Column("note", Text, nullable=False),
    # Whether this is the newest judgement of the claim.
    Column("latest", Boolean, nullable=False),
)
"""One claim's verdict in a judging."""

STUDY = Table(
    "studies",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("name", String(80), index=True, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("definition", JSON, nullable=False),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("code_version", String(80), nullable=False),
    Index("ix_studies_hash", "hash", unique=True),
)
"""A study: its definition (`retrompi.studies.execute.design`) is sufficient to run it again."""

STUDY_SHARD = Table(
    "study_shards",
    METADATA,
    Column("study_id", _Id, ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("shards", Integer, primary_key=True, autoincrement=False),
    Column("shard", Integer, primary_key=True, autoincrement=False),
)
"""A shard of a study that was run: number ``shard`` of ``shards``."""

STUDY_POINT = Table(
    "study_points",
    METADATA,
    Column("id", _Id, primary_key=True),
    Column("study_id", _Id, ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("axes", JSON, nullable=False),
    # Identity of its run; empty for a point without a run.
    Column("identity", String(64), nullable=False),
    Column("run_id", _Id, ForeignKey("runs.id", ondelete="SET NULL"), index=True),
    # Outcome of its run, or ``error``.
    Column("outcome", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("wall_s", Double, nullable=False),
    Index("ix_study_points_study_id_position", "study_id", "position", unique=True),
)
"""One point of a study that has been looked up, simulated or rejected; ``axes`` has a text for every axis."""
