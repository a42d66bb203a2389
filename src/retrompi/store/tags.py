"""The part of the store that orders runs: tags, and deleting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import sqlalchemy as sa

from retrompi.base.errors import UsageError, nearest
from retrompi.store.schema import ANATOMY, POINT, RANK_TIME, RUN, RUN_TAG, STUDY, STUDY_POINT

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["Tags", "check_tag"]

_AT_ONCE = 500
"""Identifiers in one statement: databases limit the number of its values."""


def check_tag(tag: str) -> str:
    """``tag`` if it can be one; UsageError otherwise. It begins with a letter, so that it is never taken for a run's number."""
    if not re.fullmatch(r"[A-Za-z][\w.-]{0,79}", tag, re.ASCII):
        raise UsageError(f"'{tag}' is no tag: a letter, then letters, digits, '.', '_' and '-', at most 80 in all", code="bad-name")
    return tag


def _some(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for at in range(0, len(ids), _AT_ONCE):
        yield ids[at : at + _AT_ONCE]


class Tags:
    """The methods of `Store` for tags and for deleting runs."""

    label: str
    _connect: Callable[..., AbstractContextManager[Connection]]

    def tag_runs(self, ids: Iterable[int], tag: str, *, remove: bool = False) -> int:
        """Give every run the tag, or take it away; returns the number of runs for which this changed something."""
        check_tag(tag)
        wanted = self.check_runs(ids)
        with self._connect(write=True) as connection:
            have = set(connection.scalars(sa.select(RUN_TAG.c.run_id).where(RUN_TAG.c.tag == tag)))
            changed = [i for i in wanted if (i in have) == remove]
            for some in _some(changed):
                if remove:
                    connection.execute(sa.delete(RUN_TAG).where(RUN_TAG.c.tag == tag, RUN_TAG.c.run_id.in_(some)))
                else:
                    connection.execute(sa.insert(RUN_TAG), [{"run_id": i, "tag": tag} for i in some])
        return len(changed)

    def tags(self) -> dict[int, list[str]]:
        """The tags of every run that has any, in alphabetical order."""
        found: dict[int, list[str]] = {}
        with self._connect() as connection:
            for run_id, tag in connection.execute(sa.select(RUN_TAG.c.run_id, RUN_TAG.c.tag).order_by(RUN_TAG.c.run_id, RUN_TAG.c.tag)):
                found.setdefault(int(run_id), []).append(str(tag))
        return found

    def runs_tagged(self, tag: str) -> list[int]:
        """The runs with this tag, oldest first; UsageError when no run has it."""
        with self._connect() as connection:
            ids = [int(i) for i in connection.scalars(sa.select(RUN_TAG.c.run_id).where(RUN_TAG.c.tag == tag).order_by(RUN_TAG.c.run_id))]
            known = [] if ids else [str(t) for t in connection.scalars(sa.select(RUN_TAG.c.tag).distinct().order_by(RUN_TAG.c.tag))]
        if not ids:
            raise UsageError(f"no run in {self.label} has the tag '{tag}'{nearest(tag, known)}", code="unknown-run")
        return ids

    def check_runs(self, ids: Iterable[int]) -> list[int]:
        """``ids`` without repetitions; UsageError names the first that is not stored."""
        wanted = list(dict.fromkeys(ids))
        known: set[int] = set()
        with self._connect() as connection:
            for some in _some(wanted):
                known |= {int(i) for i in connection.scalars(sa.select(RUN.c.id).where(RUN.c.id.in_(some)))}
        missing = next((i for i in wanted if i not in known), None)
        if missing is not None:
            raise UsageError(f"no run {missing} in {self.label}; 'retrompi runs list' has their numbers", code="unknown-run")
        return wanted

    def delete_runs(self, ids: Iterable[int]) -> int:
        """Delete runs with their points, ranks, stages and tags, all or none; returns how many there were.

        UsageError for a run of a study: its results would have holes.
        """
        wanted = self.check_runs(ids)
        with self._connect(write=True) as connection:
            for some in _some(wanted):
                used = connection.execute(
                    sa.select(STUDY_POINT.c.run_id, STUDY.c.name).join(STUDY, STUDY.c.id == STUDY_POINT.c.study_id)
                    .where(STUDY_POINT.c.run_id.in_(some)).limit(1)
                ).first()
                if used is not None:
                    raise UsageError(f"run {used[0]} belongs to the study '{used[1]}'; delete that first: retrompi study delete {used[1]}",
                                     code="in-use")
                for table in (POINT, RANK_TIME, ANATOMY, RUN_TAG):
                    connection.execute(sa.delete(table).where(table.c.run_id.in_(some)))
                connection.execute(sa.delete(RUN).where(RUN.c.id.in_(some)))
        return len(wanted)
