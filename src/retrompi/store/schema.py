"""The tables of the store. A change here needs a new migration in ``migrations/versions`` and a new `REVISION`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, DateTime, Double, ForeignKey, Index, Integer, MetaData, String, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = ["MEASURED", "REVISION", "SIMULATED", "VERSION_TABLE", "Anatomy", "Base", "Point", "RankTime", "Run", "RunTag", "Study",
           "StudyPoint", "StudyShard",
           "Verdict", "VerdictBatch"]  # fmt: skip

REVISION = "0007"
"""The migration this code works with."""

MEASURED = ("native", "smpi")
"""Kinds of runs that repeat a measurement: each execution has a row of its own. Any other run is stored once."""

SIMULATED = text("kind NOT IN ('native', 'smpi')")

VERSION_TABLE = "retrompi_version"
"""Alembic's version table under a specific name, so that another application's database is never mistaken for a store."""

# SQLite auto-increments only columns of type INTEGER; elsewhere ids are 64 bits.
_Id = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """Declarative base; constraint names are fixed so that later migrations can address them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Run(Base):
    """One simulation: its question, what determines its result, and its outcome."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    identity: Mapped[str] = mapped_column(String(64), index=True)
    created: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    kind: Mapped[str] = mapped_column(String(16), index=True)
    model: Mapped[str] = mapped_column(String(80), index=True)
    model_hash: Mapped[str] = mapped_column(String(64))
    platform: Mapped[str] = mapped_column(String(80), index=True)
    platform_hash: Mapped[str] = mapped_column(String(64))
    mode: Mapped[str] = mapped_column(Text)
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    overrides: Mapped[dict[str, Any]] = mapped_column(JSON)
    seed: Mapped[int] = mapped_column(BigInteger)
    fidelity: Mapped[str] = mapped_column(String(16))
    network: Mapped[str] = mapped_column(String(32), server_default="native")
    trace: Mapped[str] = mapped_column(Text)
    trace_hash: Mapped[str] = mapped_column(String(64))
    scenario: Mapped[str] = mapped_column(String(80))
    scenario_hash: Mapped[str] = mapped_column(String(64))
    code_version: Mapped[str] = mapped_column(String(80))
    simgrid_version: Mapped[str] = mapped_column(String(32))
    host: Mapped[str] = mapped_column(String(255))
    wall_s: Mapped[float] = mapped_column(Double)
    outcome: Mapped[str] = mapped_column(String(16), index=True)
    detail: Mapped[str] = mapped_column(Text)
    time_s: Mapped[float | None] = mapped_column(Double)
    ranks: Mapped[int | None] = mapped_column(Integer)
    actions: Mapped[int | None] = mapped_column(BigInteger)
    messages: Mapped[int | None] = mapped_column(BigInteger)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    packets: Mapped[int | None] = mapped_column(BigInteger)
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)
    """Other results of the run: marks, the wait-for graph, start-up steps."""
    question: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """What was asked (`Question.row`); none for a measurement, an import, and a run stored before revision 0007."""

    __table_args__ = (Index("ux_runs_identity", "identity", unique=True, sqlite_where=SIMULATED, postgresql_where=SIMULATED),)


def _of_run() -> Mapped[int]:
    return mapped_column(_Id, ForeignKey("runs.id", ondelete="CASCADE"), index=True)


class RunTag(Base):
    """A word that the user gave a run."""

    __tablename__ = "run_tags"

    run_id: Mapped[int] = mapped_column(_Id, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    tag: Mapped[str] = mapped_column(String(80), primary_key=True, index=True)


class Point(Base):
    """One point of a curve: one-way time and bandwidth (10^6 B/s) at one message size."""

    __tablename__ = "points"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    run_id: Mapped[int] = _of_run()
    size_B: Mapped[int] = mapped_column(BigInteger)
    time_us: Mapped[float] = mapped_column(Double)
    bandwidth_MBps: Mapped[float] = mapped_column(Double)
    repetitions: Mapped[int] = mapped_column(Integer)


class RankTime(Base):
    """Where one rank's time went, and what it sent and received."""

    __tablename__ = "rank_times"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    run_id: Mapped[int] = _of_run()
    rank: Mapped[int] = mapped_column(Integer)
    host: Mapped[str] = mapped_column(String(80))
    time_s: Mapped[float] = mapped_column(Double)
    mpi_s: Mapped[float] = mapped_column(Double)
    compute_s: Mapped[float] = mapped_column(Double)
    cpu_s: Mapped[float | None] = mapped_column(Double)
    sent: Mapped[int] = mapped_column(BigInteger)
    received: Mapped[int] = mapped_column(BigInteger)
    bytes_sent: Mapped[int] = mapped_column(BigInteger)
    bytes_received: Mapped[int] = mapped_column(BigInteger)


class Anatomy(Base):
    """One stage of a message's time. ``ps`` are integer picoseconds, which sum to the total exactly."""

    __tablename__ = "anatomy"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    run_id: Mapped[int] = _of_run()
    size_B: Mapped[int | None] = mapped_column(BigInteger)
    position: Mapped[int] = mapped_column(Integer)
    stage: Mapped[str] = mapped_column(String(80))
    process: Mapped[str] = mapped_column(String(80))
    seconds: Mapped[float] = mapped_column(Double)
    ps: Mapped[int | None] = mapped_column(BigInteger)


class VerdictBatch(Base):
    """One judging of one paper's claims."""

    __tablename__ = "verdict_batches"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    created: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    paper: Mapped[str] = mapped_column(String(80), index=True)
    code_version: Mapped[str] = mapped_column(String(80))
    run_ids: Mapped[list[int]] = mapped_column(JSON)


class Verdict(Base):
    """One claim's verdict in a judging."""

    __tablename__ = "verdicts"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    batch_id: Mapped[int] = mapped_column(_Id, ForeignKey("verdict_batches.id", ondelete="CASCADE"), index=True)
    claim: Mapped[str] = mapped_column(String(40), index=True)
    system: Mapped[str] = mapped_column(Text)
    use: Mapped[str] = mapped_column(String(16))
    verdict: Mapped[str] = mapped_column(String(16))
    observed: Mapped[Any] = mapped_column(JSON, nullable=True)
    low: Mapped[float | None] = mapped_column(Double)
    high: Mapped[float | None] = mapped_column(Double)
    unit: Mapped[str] = mapped_column(String(40))
    note: Mapped[str] = mapped_column(Text)
    latest: Mapped[bool] = mapped_column(Boolean)
    """Whether this is the newest judgement of the claim."""


class Study(Base):
    """A study: its definition (`retrompi.studies.design`) is sufficient to run it again."""

    __tablename__ = "studies"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(80), index=True)
    hash: Mapped[str] = mapped_column(String(64))
    definition: Mapped[dict[str, Any]] = mapped_column(JSON)
    created: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    code_version: Mapped[str] = mapped_column(String(80))

    __table_args__ = (Index("ix_studies_hash", "hash", unique=True),)


class StudyShard(Base):
    """A shard of a study that was run: number ``shard`` of ``shards``."""

    __tablename__ = "study_shards"

    study_id: Mapped[int] = mapped_column(_Id, ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True)
    shards: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    shard: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)


class StudyPoint(Base):
    """One point of a study that has been looked up, simulated or rejected; ``axes`` has a text for every axis."""

    __tablename__ = "study_points"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    study_id: Mapped[int] = mapped_column(_Id, ForeignKey("studies.id", ondelete="CASCADE"))
    position: Mapped[int] = mapped_column(BigInteger)
    axes: Mapped[dict[str, Any]] = mapped_column(JSON)
    identity: Mapped[str] = mapped_column(String(64))
    """Identity of its run; empty for a point without a run."""
    run_id: Mapped[int | None] = mapped_column(_Id, ForeignKey("runs.id", ondelete="SET NULL"), index=True)
    outcome: Mapped[str] = mapped_column(String(16))
    """Outcome of its run, or ``error``."""
    reason: Mapped[str] = mapped_column(Text)
    wall_s: Mapped[float] = mapped_column(Double)

    __table_args__ = (Index("ix_study_points_study_id_position", "study_id", "position", unique=True),)
