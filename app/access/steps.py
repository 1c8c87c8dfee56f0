"""The steps of a decision about access."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from app.auth.permissions import PLATFORM_ONLY, ROLE_PERMISSIONS, Permission, Role
from app.tenants.models import Tenant


class StepName(StrEnum):
    """The steps, in their order."""

    CREDENTIAL = "credential"
    TENANT = "tenant"
    USER = "user"
    MEMBERSHIP = "membership"
    ROLE = "role"
    PERMISSION = "permission"
    PLATFORM = "platform"


class Outcome(StrEnum):
    """The result of a step. A skipped step does not matter to the decision."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Step:
    """What a step finds, and what would change it; ``row_id`` is the id of the row it found."""

    step: StepName
    outcome: Outcome
    found: str
    change: str = ""
    row_id: UUID | None = None


def passed(step: StepName, found: str, row_id: UUID | None = None) -> Step:
    """A step that its row or value satisfies."""
    return Step(step, Outcome.PASSED, found, row_id=row_id)


def failed(step: StepName, found: str, change: str, row_id: UUID | None = None) -> Step:
    """A step that refuses the request, if no other step does."""
    return Step(step, Outcome.FAILED, found, change, row_id)


def skipped(step: StepName, found: str) -> Step:
    return Step(step, Outcome.SKIPPED, found)


def tenant_step(tenant: Tenant) -> Step:
    if tenant.is_active:
        return passed(StepName.TENANT, f"The tenant {tenant.slug} is active.", tenant.id)
    found = f"The tenant {tenant.slug} is suspended."
    return failed(StepName.TENANT, found, "Activate the tenant.", tenant.id)


def role_permission_step(role: Role, permission: Permission) -> Step:
    if permission in ROLE_PERMISSIONS[role]:
        return passed(StepName.PERMISSION, f"The role {role} has the permission {permission}.")
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
