"""Searches: the subjects, resources or actions to which the answer is yes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.access.evaluating import refusal_of
from app.access.facts import find_facts
from app.access.questions import Question, Thing
from app.core.db.statements import Statement

FIND = Statement(
    "access.find_candidates",
    "SELECT * FROM access_candidates(CAST(:tenant_id AS uuid), CAST(:principal_id AS uuid), :kind,"
    " :subject_type, :permission, :type, :id, :after, :limit)",
)


def search(
    kind: str, question: Question, *, after: str, limit: int, home: UUID | None
) -> tuple[list[Thing], str | None]:
    """A page of the entities for which the answer is yes, and where the next page begins.

    ``kind`` is what is searched for, such as ``subject``. PostgreSQL looks at 10,000 rows at most,
    and finds candidates whose roles have the permission. Each candidate is decided like any other
    question. ``after`` is where the page begins, "" for the first page. ``home``: see
    :func:`find_facts`.
    """
    (known,) = find_facts([question], home)
    if known is None or not known.tenant["is_active"]:
        return [], None
    subject, resource = known.subjects[question.subject.place], question.resource
    rows = FIND.all(
        tenant_id=known.tenant_id,
        principal_id=subject["membership_id"] or subject["key_id"],
        kind=kind,
        subject_type=question.subject.type,
        permission=question.permission,
        type=resource.type,
        id=resource.id,
        after=after,
        limit=limit + 1,
    )
    wanted: Any = getattr(question, kind)
    candidates = [
        wanted._replace(type=row.asked_type or wanted.type, id=row.asked_id)
        for row in rows[:limit]
        if row.asked_id is not None
    ]
    questions = [question._replace(**{kind: one}) for one in candidates]
    facts = find_facts(questions, known.tenant_id)
    found = [
        wanted._replace(id=row.shown_id)
        for row, each, one in zip(rows, facts, questions, strict=False)
        if refusal_of(each, one) is None
    ]
    if len(rows) > limit:
        return found, rows[limit - 1].place if limit else after
    return found, next((row.place for row in rows if row.asked_id is None), None)
