"""Decides questions about access. Nothing is read here: the same facts give the same steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.access.facts import TenantFacts
from app.access.questions import Question
from app.access.steps import (
    Step,
    StepName,
    failed,
    membership_step,
    passed,
    skipped,
    tenant_step,
    user_step,
)
from app.auth.permissions import ASSIGNABLE, TENANT


def decide(facts: TenantFacts | None, question: Question) -> Iterator[Step]:
    """Judge tenant, user, membership, permission, flag and limit, in this order.

    A step is judged when it is read, also those after the first that refuses.
    """
    if facts is None:
        found = "The question names no tenant that the credential can see."
        change = "Name it as tenant_id in the resource's properties or in the context."
        yield failed(StepName.TENANT, found, change, code="tenant_not_found")
        return
    subject = facts.subjects[question.subject.place]
    yield tenant_step(**facts.tenant)
    yield from _key_steps(subject) if subject["key_id"] else _user_steps(question, subject)
    yield _permission_step(facts, question, subject)
    yield from _condition_steps(facts, question)


def _key_steps(subject: Mapping[str, Any]) -> Iterator[Step]:
    name, key_id = subject["key_name"], subject["key_id"]
    if subject["is_usable"]:
        yield passed(StepName.CREDENTIAL, f"The API key {name} can be used.", key_id)
        return
    found, change = f"The API key {name} was revoked or has expired.", "Create another API key."
    yield failed(StepName.CREDENTIAL, found, change, key_id, code="key_invalid")


def _user_steps(question: Question, subject: Mapping[str, Any]) -> Iterator[Step]:
    if (user_id := subject["user_id"]) is None:
        found = f"The tenant has no {question.subject.type} with this id."
        change = "A subject is a user, an identity, an email or an api_key of the tenant."
        yield failed(StepName.USER, found, change, code="subject_not_found")
        return
    yield user_step(user_id, subject["email"], subject["is_active"])
    yield membership_step(subject["membership_id"], subject["is_member"])


def _permission_step(facts: TenantFacts, question: Question, subject: Mapping[str, Any]) -> Step:
    permission, step = question.permission, StepName.PERMISSION
    if permission not in facts.permissions and permission not in TENANT:
        found = f"There is no permission {permission}."
        return failed(step, found, "Create the permission.", code="permission_not_found")
    if permission in TENANT and permission in (subject["permissions"] or ()):
        return passed(step, f"The key has the permission {permission}.", subject["key_id"])
    is_assignable = permission in facts.permissions or permission in ASSIGNABLE
    roles = facts.roles.get(permission, {}) if is_assignable else {}
    principal_id = subject["membership_id"] or subject["key_id"]
    for type_, id_ in [(None, None), *facts.resources[question.resource.place]["chain"]]:
        for role_id, assignment_id in facts.grants.get((principal_id, (type_, id_)), ()):
            if role_id in roles:
                where = f" on {type_} {id_}" if type_ is not None else ""
                found = f"The role {roles[role_id]} has the permission {permission}{where}."
                return passed(step, found, assignment_id)
    found = f"No role gives the subject the permission {permission} here."
    named = ", ".join(sorted(roles.values()))
    change = f"Assign a role that has it: {named}." if named else "Add it to a role."
    return failed(step, found, change, code="permission_denied")


def _condition_steps(facts: TenantFacts, question: Question) -> Iterator[Step]:
    """The other requirements of the permission: a flag that is on, a limit with something left."""
    required = facts.permissions.get(question.permission, {})
    if (key := required.get("flag")) is None:
        yield skipped(StepName.FLAG, "The permission requires no flag.")
    else:
        flag = facts.flag(key, question)
        layer = "not_in_plan" if flag is None else flag.layer
        if flag is not None and flag.value is True:
            yield passed(StepName.FLAG, f"The flag {key} is on ({layer}).")
        else:
            found, change = f"The flag {key} is off ({layer}).", "Explain the flag to see why."
            yield failed(StepName.FLAG, found, change, code="flag_off")
    if (limit := required.get("limit")) is None:
        yield skipped(StepName.LIMIT, "The permission requires no limit.")
    elif facts.limits[limit]:
        yield passed(StepName.LIMIT, f"The limit {limit} has something left.")
    else:
        found, change = f"Nothing is left of the limit {limit}.", "Raise the limit."
        yield failed(StepName.LIMIT, found, change, code="limit_reached")
