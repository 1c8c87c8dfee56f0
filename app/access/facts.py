"""What decides questions about access, read by one statement for any number of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from app.access.questions import Question, Thing, meanings
from app.core import json_text
from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.json_text import Json
from app.flags.evaluation import FLAG_STATE, FROM_PLANS, EffectiveFlag, flags_of
from app.flags.rules import Facts, user_facts

Place = tuple[str | None, str | None]
WHOLE_TENANT: Place = (None, None)

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


class Grant(NamedTuple):
    """A role that a principal has; ``assignment_id`` is None for a membership's own role."""

    role_id: str
    assignment_id: str | None


class Name(NamedTuple):
    """The tenant."""

    id: UUID
    slug: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class TenantFacts:
    """What decides questions about one tenant.

    ``permissions`` are those of the product, with the flag and the limit that they require.
    ``roles`` maps each permission to the roles that have it, id -> key. ``limits`` says which have
    something left.
    """

    tenant: Name
    permissions: Mapping[str, Mapping[str, str | None]]
    roles: Mapping[str, Mapping[str, str]]
    subjects: Mapping[tuple[str, str], Mapping[str, Json]]
    resources: Mapping[tuple[str, str], Mapping[str, Json]]
    grants: Mapping[tuple[str, Place], Sequence[Grant]]
    limits: dict[str, bool]
    flags: Any

    def flag(self, key: str, question: Question) -> EffectiveFlag | None:
        """A flag in the context of the question; None if the plan does not have it."""
        facts = None
        if self.flags.facts is not None:
            subject = self.subjects[question.subject.place]
            is_member = subject["is_active"] and subject["is_member"]
            user = (
                user_facts(subject["role"], subject["email"], subject["meta_data"] or {})
                if is_member
                else {}
            )
            attributes = self.resources[question.resource.place]["attributes"] or {}
            context = question.compared(subject["user_id"], attributes)
            facts = Facts(self.tenant.id, self.flags.facts, context, user)
        return flags_of(self.flags, facts, key).get(key)


def find_facts(questions: Sequence[Question], home: UUID | None = None) -> list[TenantFacts | None]:
    """The facts for each question; None where its tenant is one that the scope cannot see.

    ``home`` is the tenant of questions that name none. Without it, a tenant's scope means its own
    tenant, and the platform that of the user who is the subject.
    """
    is_platform = current_scope().tenant_id is None
    groups: dict[tuple[str | None, str], _Asked] = {}
    chosen = []
    for question in questions:
        name = question.tenant_name or home
        tenant = None if name is None else str(name)
        key = (tenant, question.subject.id if is_platform and tenant is None else "")
        chosen.append(groups.setdefault(key, _Asked(tenant)))
        chosen[-1].add(question)
    asked = list(groups.values())
    rows = FIND.all(asked=json_text.dumps_text([one.as_json() for one in asked]))
    found = {id(asked[row.place - 1]): asked[row.place - 1].facts(row) for row in rows}
    return [found.get(id(one)) for one in chosen]


class _Asked:
    """What questions about one tenant ask about, each thing once."""

    def __init__(self, tenant: str | None) -> None:
        self._tenant = tenant
        self._subjects: dict[tuple[str, str], Thing] = {}
        self._permissions: dict[str, None] = {}
        self._resources: dict[tuple[str, str], None] = {}

    def add(self, question: Question) -> None:
        self._subjects[question.subject.place] = question.subject
        self._permissions[question.permission] = None
        self._resources[question.resource.place] = None

    def as_json(self) -> dict[str, Json]:
        """The argument of the database function ``access_facts``."""
        return {
            "tenant": self._tenant,
            "tenant_id": self._tenant and id_or_none(self._tenant),
            "actions": list(self._permissions),
            "subjects": [
                {"place": place, **meanings(subject)}
                for place, subject in enumerate(self._subjects.values())
            ],
            "resources": [
                {"place": place, "type": type_, "id": id_}
                for place, (type_, id_) in enumerate(self._resources)
            ],
        }

    def facts(self, row: Any) -> TenantFacts:
        found = row.known
        roles: dict[str, dict[str, str]] = {}
        for permission, role_id, key in found["roles"]:
            roles.setdefault(permission, {})[role_id] = key
        grants: dict[tuple[str, Place], list[Grant]] = {}
        for principal_id, role_id, type_, id_, assignment_id in found["grants"]:
            grant = Grant(role_id, assignment_id)
            grants.setdefault((principal_id, (type_, id_)), []).append(grant)
        return TenantFacts(
            Name(**found["tenant"]),
            found["permissions"],
            roles,
            dict(zip(self._subjects, found["subjects"], strict=True)),
            dict(zip(self._resources, found["resources"], strict=True)),
            grants,
            found["limits"],
            row,
        )
