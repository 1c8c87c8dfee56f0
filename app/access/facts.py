"""The facts that decide questions about access, read by one statement for all questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.access.questions import Question, meanings
from app.core import json_text
from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.json_text import Json
from app.flags.evaluation import FLAG_STATE, FROM_PLANS, EffectiveFlag, flags_of
from app.flags.rules import Facts, user_facts

Place = tuple[str | None, str | None]
"""A resource's type and id; of the whole tenant None and None."""

FIND = Statement(
    "access.find_facts",
    f"""
    SELECT asked.place, f.facts AS known, flags.*
    FROM json_array_elements(CAST(:asked AS json)) WITH ORDINALITY asked (question, place)
    CROSS JOIN LATERAL access_facts(asked.question) f
    LEFT JOIN LATERAL (
        SELECT {FLAG_STATE % "o.flag_key = ANY (f.flag_keys)"} {FROM_PLANS}
        WHERE plan.tenant_id = CASE WHEN f.flag_keys <> '{{}}' THEN f.tenant_id END
    ) flags ON true
    """,  # noqa: S608 - no input
)


@dataclass(frozen=True, slots=True)
class TenantFacts:
    """The facts that decide questions about one tenant, from the function ``access_facts``.

    ``roles`` maps each permission to the roles that have it, id -> key. ``grants`` are the roles of
    a principal in a place, each with its assignment. ``limits`` says which have something left.
    """

    tenant: Mapping[str, Any]
    permissions: Mapping[str, Mapping[str, str | None]]
    roles: Mapping[str, Mapping[str, str]]
    subjects: Mapping[tuple[str, str], Mapping[str, Any]]
    resources: Mapping[tuple[str, str], Mapping[str, Any]]
    grants: Mapping[tuple[str, Place], Sequence[tuple[str, str | None]]]
    limits: dict[str, bool]
    flags: Any

    @property
    def tenant_id(self) -> UUID:
        return UUID(self.tenant["id"])

    def flag(self, key: str, question: Question) -> EffectiveFlag | None:
        """A flag in the context of the question; None if the plan does not have it."""
        facts = None
        if self.flags.facts is not None:
            subject, user = self.subjects[question.subject.place], {}
            if subject["is_active"] and subject["is_member"]:
                user = user_facts(subject["role"], subject["email"], subject["meta_data"])
            attributes = self.resources[question.resource.place]["attributes"] or {}
            context = {**question.compared(attributes), "targetingKey": subject["user_id"]}
            facts = Facts(self.tenant_id, self.flags.facts, context, user)
        return flags_of(self.flags, facts, key).get(key)


def find_facts(questions: Sequence[Question], home: UUID | None) -> list[TenantFacts | None]:
    """The facts for each question; None where the scope cannot see its tenant.

    ``home`` is the tenant of questions that name none. Without it, the tenant is that of a tenant's
    scope, and in the platform's scope that of the user who is the subject.
    """
    is_platform = current_scope().tenant_id is None
    groups: dict[tuple[str | None, str], list[Question]] = {}
    chosen = []
    for question in questions:
        name = question.tenant_name or home
        tenant = None if name is None else str(name)
        chosen.append((tenant, question.subject.id if is_platform and tenant is None else ""))
        groups.setdefault(chosen[-1], []).append(question)
    if not groups:
        return []
    asked = [_asked(tenant, each) for (tenant, _), each in groups.items()]
    rows = {row.place: row for row in FIND.all(asked=json_text.dumps_text(asked))}
    found = {
        key: _facts(rows[place], each)
        for place, (key, each) in enumerate(groups.items(), 1)
        if place in rows
    }
    return [found.get(key) for key in chosen]


def _asked(tenant: str | None, questions: Sequence[Question]) -> dict[str, Json]:
    subjects = {one.subject.place: one.subject for one in questions}
    resources = dict.fromkeys(one.resource.place for one in questions)
    subject_places = {one: place for place, one in enumerate(subjects)}
    resource_places = {one: place for place, one in enumerate(resources)}
    return {
        "tenant": tenant,
        "tenant_id": tenant and id_or_none(tenant),
        "actions": list({one.permission for one in questions}),
        "subjects": [
            {"place": place, **meanings(subject)} for place, subject in enumerate(subjects.values())
        ],
        "resources": [
            {"place": place, "type": type_, "id": id_}
            for place, (type_, id_) in enumerate(resources)
        ],
        "asking": [subject_places[one.subject.place] for one in questions],
        "about": [resource_places[one.resource.place] for one in questions],
    }


def _facts(row: Any, questions: Sequence[Question]) -> TenantFacts:
    known = row.known
    subjects = dict.fromkeys(one.subject.place for one in questions)
    roles: dict[str, dict[str, str]] = {}
    for permission, role_id, key in known["roles"]:
        roles.setdefault(permission, {})[role_id] = key
    grants: dict[tuple[str, Place], list[tuple[str, str | None]]] = {}
    for principal_id, role_id, type_, id_, assignment_id in known["grants"]:
        grants.setdefault((principal_id, (type_, id_)), []).append((role_id, assignment_id))
    return TenantFacts(
        known["tenant"],
        known["permissions"],
        roles,
        dict(zip(subjects, known["subjects"], strict=True)),
        {tuple(one["chain"][0]): one for one in known["resources"]},
        grants,
        known["limits"],
        row,
    )
