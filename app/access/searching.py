"""Searches: the subjects, resources or actions to which the answer is yes.

PostgreSQL finds candidates, of which a role has the permission; it looks at no more than 10,000 rows
for one page. Each candidate is a question that is decided like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from app.access.facts import find_facts
from app.access.judging import decide
from app.access.questions import Question, Thing
from app.core.db.statements import Statement

FIRST_ID = UUID(int=0)
MEMBERS = Statement(
    "access.find_members",
    "SELECT * FROM find_permitted_members(CAST(:tenant_id AS uuid), :permission, :type, :id,"
    " CAST(:after AS uuid), :limit)",
)
KEYS = Statement(
    "access.find_keys",
    "SELECT id AS place, id FROM api_keys WHERE tenant_id = CAST(:tenant_id AS uuid)"
    " AND id > CAST(:after AS uuid) AND revoked_at IS NULL ORDER BY id LIMIT :limit",
)
RESOURCES = Statement(
    "access.find_resources",
    "SELECT * FROM find_permitted_resources(CAST(:tenant_id AS uuid), :permission,"
    " CAST(:principal_id AS uuid), :type, :after, :limit)",
)
ACTIONS = Statement(
    "access.find_actions",
    "SELECT * FROM find_held_permissions(CAST(:tenant_id AS uuid), CAST(:principal_id AS uuid),"
    " :type, :id, :after, :limit)",
)
LAST_MEMBER = Statement(
    "access.last_member_seen",
    "SELECT id FROM memberships WHERE tenant_id = CAST(:tenant_id AS uuid)"
    " AND id > CAST(:after AS uuid) ORDER BY id OFFSET 9999 LIMIT 1",
)
LAST_RESOURCE = Statement(
    "access.last_resource_seen",
    "SELECT id FROM access_resources WHERE tenant_id = CAST(:tenant_id AS uuid)"
    " AND type = :type AND id > :after ORDER BY id OFFSET 9999 LIMIT 1",
)
SUBJECT_IDS: Mapping[str, Callable[[Any], str]] = {
    "user": lambda row: row.idp_user_id or str(row.id),
    "identity": lambda row: row.idp_user_id,
    "email": lambda row: row.email,
    "api_key": lambda row: str(row.id),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A page of things. ``last`` is where the next page begins; None: there is none."""

    things: Sequence[Thing]
    last: str | None = None


def search(kind: str, question: Question, after: str, limit: int, home: UUID | None) -> Found:
    """The subjects, resources or actions (``kind``) that may be in the place of the question's.

    ``after`` is where the page begins, "" for the first one. ``home`` is the tenant of a question
    that names none.
    """
    (known,) = find_facts([question], home)
    type_, resource = question.subject.type, question.resource
    if known is None or not known.tenant.is_active:
        return Found(())
    asked = {"tenant_id": known.tenant.id, "permission": question.permission, "after": after}
    asked |= {"type": resource.type, "id": resource.id}
    subject, last = known.subjects[question.subject.place], None
    asked["principal_id"] = subject["membership_id"] or subject["key_id"]
    if kind == "subject":
        if type_ not in SUBJECT_IDS:
            return Found(())
        asked["after"] = after or FIRST_ID
        statement, last = (KEYS, None) if type_ == "api_key" else (MEMBERS, LAST_MEMBER)
    elif asked["principal_id"] is None:
        return Found(())
    else:
        statement, last = (RESOURCES, LAST_RESOURCE) if kind == "resource" else (ACTIONS, None)
    rows = _run(statement, {**asked, "limit": limit + 1})
    may = _decide([_asked(kind, question, row) for row in rows[:limit]], known.tenant.id)
    things = [_thing(kind, question, row) for row, is_yes in zip(rows, may, strict=False) if is_yes]
    if len(rows) > limit:
        return Found(things, str(rows[limit - 1].place) if limit else after)
    seen = _run(last, asked) if last else ()
    return Found(things, str(seen[0].id) if seen else None)


def _run(statement: Statement[Any], values: Mapping[str, object]) -> list[Any]:
    return statement.all(**{name: values[name] for name in statement.required})


def _asked(kind: str, question: Question, row: Any) -> Question:
    """The question about a candidate; a person is asked about by the user's id."""
    if kind == "subject":
        type_ = "api_key" if question.subject.type == "api_key" else "user"
        return replace(question, subject=replace(question.subject, type=type_, id=str(row.id)))
    return replace(question, **{kind: replace(getattr(question, kind), id=row.place)})


def _thing(kind: str, question: Question, row: Any) -> Thing:
    if kind == "subject":
        return Thing(SUBJECT_IDS[question.subject.type](row), question.subject.type)
    return Thing(row.place, question.resource.type if kind == "resource" else "")


def _decide(questions: Sequence[Question], tenant_id: UUID) -> list[bool]:
    facts = find_facts(questions, tenant_id) if questions else ()
    return [decide(known, one).refusal is None for known, one in zip(facts, questions, strict=True)]
