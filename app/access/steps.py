"""The steps of a decision about access."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from app.auth.permissions import ASSIGNABLE, PLATFORM_ONLY, ROLE_PERMISSIONS, Permission, Role


class StepName(StrEnum):
    """The steps, in their order."""

    REQUEST = "request"
    CREDENTIAL = "credential"
    TENANT = "tenant"
    USER = "user"
    MEMBERSHIP = "membership"
    ROLE = "role"
    PERMISSION = "permission"
    FLAG = "flag"
    LIMIT = "limit"
    PLATFORM = "platform"


class Outcome(StrEnum):
    """The result of a step. A skipped step does not matter to the decision."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Step(NamedTuple):
    """The result of a step, and what would change it; ``row_id`` is the id of the found row.

    ``code`` names the reason of a refusal for programs, where the step decides it.
    """

    step: StepName
    outcome: Outcome
    found: str
    change: str = ""
    row_id: UUID | str | None = None
    code: str = ""


class Assigned(NamedTuple):
    """A role that an assignment gives for the whole tenant, with the permissions it inherits."""

    id: str
    role: str
    permissions: Sequence[str] | None


def columns_of(assigned: Sequence[Assigned], role: str | None = None) -> dict[str, Any]:
    """The columns that ``authenticate_user`` or ``authenticate_key`` would return for the roles."""
    is_owner = any(one.role == Role.OWNER for one in assigned)
    names = [name for one in assigned for name in one.permissions or ()]
    return {"role": Role.OWNER.value if is_owner else role, "assigned": names}


def passed(step: StepName, found: str, row_id: UUID | str | None = None) -> Step:
    """A step that its row or value satisfies."""
    return Step(step, Outcome.PASSED, found, row_id=row_id)


def failed(
    step: StepName, found: str, change: str, row_id: UUID | str | None = None, *, code: str = ""
) -> Step:
    """A step that refuses the request, if no other step does."""
    return Step(step, Outcome.FAILED, found, change, row_id, code)


def skipped(step: StepName, found: str) -> Step:
    return Step(step, Outcome.SKIPPED, found)


def tenant_step(id: UUID | str, slug: str, is_active: bool) -> Step:
    if is_active:
        return passed(StepName.TENANT, f"The tenant {slug} is active.", id)
    found, change = f"The tenant {slug} is suspended.", "Activate the tenant."
    return failed(StepName.TENANT, found, change, id, code="tenant_suspended")


def user_step(user_id: UUID | str, email: str, is_active: bool, further: str = "") -> Step:
    if is_active:
        return passed(StepName.USER, f"The user {email} is active.{further}", user_id)
    found, change = f"The user {email} is not active.", "Activate the user."
    return failed(StepName.USER, found, change, user_id, code="user_inactive")


def membership_step(membership_id: UUID | str | None, is_active: bool, origin: str = "") -> Step:
    step = StepName.MEMBERSHIP
    if membership_id is None:
        change = "Make the user a member of the tenant."
        return failed(step, "The user has no membership.", change, code="membership_not_found")
    if is_active:
        return passed(step, f"The membership is active.{origin}", membership_id)
    found, change = f"The membership is not active.{origin}", "Activate the membership."
    return failed(step, found, change, membership_id, code="membership_inactive")


def named_roles(assigned: Sequence[Assigned]) -> str:
    """The keys of assigned roles as a sentence; empty if there is none."""
    keys = ", ".join(sorted({one.role for one in assigned}))
    return f" Roles are assigned for the whole tenant: {keys}." if keys else ""


def assigned_permission_step(assigned: Sequence[Assigned], permission: Permission) -> Step | None:
    """The step that an assigned role satisfies; None if no role does."""
    for one in assigned if permission in ASSIGNABLE else ():
        if permission in (one.permissions or ()):
            found = f"The assigned role {one.role} has the permission {permission}."
            return passed(StepName.PERMISSION, found, UUID(one.id))
    return None


def role_permission_step(role: Role, assigned: Sequence[Assigned], permission: Permission) -> Step:
    if permission in ROLE_PERMISSIONS[role]:
        return passed(StepName.PERMISSION, f"The role {role} has the permission {permission}.")
    if (step := assigned_permission_step(assigned, permission)) is not None:
        return step
    found = f"The role {role} does not have the permission {permission}."
    roles = [each for each in Role if permission in ROLE_PERMISSIONS[each]]
    change = f"Give the member a role that has it: {', '.join(roles)}." if roles else NO_ROLE
    return failed(StepName.PERMISSION, found, change)


NO_ROLE = "No role has it. Use a platform credential."


def platform_step(permission: Permission, found: str, change: str) -> Step:
    """The step of a credential that is, as ``found`` says, not the platform's."""
    if permission in PLATFORM_ONLY:
        found = f"{found} Only platform credentials can have this permission."
        return failed(StepName.PLATFORM, found, change)
    return skipped(StepName.PLATFORM, f"{found} This permission does not need one.")
