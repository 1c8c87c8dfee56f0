"""Decides questions about access. Nothing is read here: the same facts give the same verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.access.facts import WHOLE_TENANT, TenantFacts
from app.access.questions import Question
from app.access.steps import Outcome, Step, StepName, failed, passed, skipped, tenant_step
from app.auth.permissions import ASSIGNABLE, TENANT
from app.core.json_text import Json

NO_TENANT = failed(
    StepName.TENANT,
    "The question names no tenant that the credential can see.",
    "Name the tenant as tenant_id in the resource's properties or in the context.",
    code="tenant_not_found",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a question, and the steps to it. ``usage`` is what a yes has counted."""

    steps: list[Step]
    usage: Mapping[str, Json] | None = None

    @property
    def refusal(self) -> Step | None:
        """The first step that refuses; None: yes."""
        return next((step for step in self.steps if step.outcome is Outcome.FAILED), None)


def decide(facts: TenantFacts | None, question: Question) -> Verdict:
    """Judge tenant, user, membership, permission, flag and limit, in this order.

    Each step is judged, also those after the first that refuses.
    """
    if facts is None:
        return Verdict([NO_TENANT])
    subject = facts.subjects[question.subject.place]
    return Verdict(
        [
            tenant_step(facts.tenant),
            *_subject_steps(question, subject),
            _permission_step(facts, question, subject),
            *_conditions(facts, question),
        ]
    )


def _subject_steps(question: Question, subject: Mapping[str, Any]) -> Iterator[Step]:
    if subject["key_id"] is not None:
        name, key_id = subject["key_name"], subject["key_id"]
        if subject["is_usable"]:
            yield passed(StepName.CREDENTIAL, f"The API key {name} can be used.", key_id)
        else:
            found = f"The API key {name} was revoked or has expired."
            change = "Create another API key."
            yield failed(StepName.CREDENTIAL, found, change, key_id, code="key_invalid")
        return
    user_id, membership_id = subject["user_id"], subject["membership_id"]
    if user_id is None:
        found = f"The tenant has no {question.subject.type} with this id."
        change = "A subject is a user, an identity, an email or an api_key of the tenant."
        yield failed(StepName.USER, found, change, code="subject_not_found")
        return
    if subject["is_active"]:
        yield passed(StepName.USER, f"The user {subject['email']} is active.", user_id)
    else:
        found = f"The user {subject['email']} is not active."
        yield failed(StepName.USER, found, "Activate the user.", user_id, code="user_inactive")
    if membership_id is None:
        change = "Make the user a member of the tenant."
        found = "The user has no membership."
        yield failed(StepName.MEMBERSHIP, found, change, code="membership_not_found")
    elif subject["is_member"]:
        yield passed(StepName.MEMBERSHIP, "The membership is active.", membership_id)
    else:
        found, change = "The membership is not active.", "Activate the membership."
        yield failed(StepName.MEMBERSHIP, found, change, membership_id, code="membership_inactive")


def _permission_step(facts: TenantFacts, question: Question, subject: Mapping[str, Any]) -> Step:
    permission, step = question.permission, StepName.PERMISSION
    if permission not in facts.permissions and permission not in TENANT:
        found = f"There is no permission {permission[:128]}."
        return failed(step, found, "Create the permission.", code="permission_not_found")
    if permission in TENANT and permission in (subject["permissions"] or ()):
        return passed(step, f"The key has the permission {permission}.", subject["key_id"])
    is_assignable = permission in facts.permissions or permission in ASSIGNABLE
    roles = facts.roles.get(permission, {}) if is_assignable else {}
    principal_id = subject["membership_id"] or subject["key_id"]
    chain = facts.resources[question.resource.place]["chain"]
    for place in (WHOLE_TENANT, *map(tuple, chain)):
        for grant in facts.grants.get((principal_id, place), ()):
            if grant.role_id in roles:
                where = "" if place is WHOLE_TENANT else f" on {place[0]} {place[1]}"
                found = f"The role {roles[grant.role_id]} has the permission {permission}{where}."
                return passed(step, found, grant.assignment_id)
    found = f"No role gives the subject the permission {permission} here."
    named = ", ".join(sorted(roles.values()))
    change = f"Assign a role that has it: {named}." if named else "Add it to a role."
    return failed(step, found, change, code="permission_denied")


def _conditions(facts: TenantFacts, question: Question) -> Iterator[Step]:
    """What the permission requires besides: a flag that is on, a limit with something left."""
    required = facts.permissions.get(question.permission, {})
    flag_key, limit = required.get("flag"), required.get("limit")
    if flag_key is None:
        yield skipped(StepName.FLAG, "The permission requires no flag.")
    else:
        flag = facts.flag(flag_key, question)
        layer = "not_in_plan" if flag is None else flag.layer
        if flag is not None and flag.value is True:
            yield passed(StepName.FLAG, f"The flag {flag_key} is on ({layer}).")
        else:
            found, change = f"The flag {flag_key} is off ({layer}).", "Explain the flag to see why."
            yield failed(StepName.FLAG, found, change, code="flag_off")
    if limit is None:
        yield skipped(StepName.LIMIT, "The permission requires no limit.")
    elif facts.limits.get(limit):
        yield passed(StepName.LIMIT, f"The limit {limit} has something left.")
    else:
        found, change = f"Nothing is left of the limit {limit}.", "Raise the limit."
        yield failed(StepName.LIMIT, found, change, code="limit_reached")
