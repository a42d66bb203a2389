"""Similar works of a class, with reasons (`retrompi.labs.alike`): facts for the teacher to look at, never a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from retrompi.base.errors import RetrompiError
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Member, Work
from retrompi.classroom.works.shelf import work_of
from retrompi.labs.lab import Lab
from retrompi.labs.lab import lab as lab_of
from retrompi.labs.work import Work as Done

if TYPE_CHECKING:
    from retrompi.labs.alike import Facts

__all__ = ["compare_works", "works"]


def works(db: Database, lab: Lab) -> list[tuple[int, str, Done]]:
    """(member id, student, work) of all students with a work on the lab."""
    query = sa.select(Work.__table__, Member.student).join(Member, Member.id == Work.member_id)
    with db.reading() as connection:
        rows = connection.execute(query.where(Work.lab == lab.name, Member.role == "student").order_by(Member.id)).mappings().all()
        return [(row["member_id"], row["student"], work_of(connection, dict(row))) for row in rows]


def compare_works(
    report: Any, name: str, found: Sequence[tuple[int, str, Done]], known: Mapping[str, Mapping[str, Any]], store: str | None
) -> dict[str, Any]:
    """A job: ``pairs`` (one, other: member ids; why: the reasons, the strongest first; weight: about the decimal digits of how unlikely
    it is by chance), and ``left_out``, the member ids whose own right values are not ``known`` yet, or whose work is of another version
    of the lab. Nothing is simulated."""
    from retrompi.labs import alike

    lab = lab_of(name)
    ids, facts, left_out = [], [], []
    for done, (member_id, student, work) in enumerate(found):
        report(done, len(found), student)
        one = _facts(lab, student, work, known, store) if work.state.version == lab.version else None
        if one is None:
            left_out.append(member_id)
        else:
            ids.append(member_id)
            facts.append(one)
    pairs = [{"one": ids[p.one], "other": ids[p.other], "why": list(p.why), "weight": p.weight} for p in alike.pairs(facts)]
    return {"pairs": pairs, "left_out": left_out, "compared": len(facts)}


def _facts(lab: Lab, student: str, work: Done, known: Mapping[str, Mapping[str, Any]], store: str | None) -> Facts | None:
    """The facts of a work that are compared; None if its right values are not known."""
    from retrompi.labs.facts import gather_facts
    from retrompi.studio.labs.lab_jobs import bench_of, key_of

    values = known.get(key_of(lab, student))
    if values is None:
        return None
    files = {t.file: work.files[t.file].decode("utf-8", "replace") for t in lab.tasks if t.kind == "file" and t.file in work.files}
    try:
        return gather_facts(lab, work.state, work.given_answers(lab), files, bench_of(lab, student, store, values))
    except RetrompiError:
        return None
