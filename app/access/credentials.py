"""The two kinds of credentials whose access is explained, and the steps of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from app.access.steps import (
    Assigned,
    Outcome,
    Step,
    StepName,
    assigned_permission_step,
    columns_of,
    failed,
    membership_step,
    named_roles,
    passed,
    platform_step,
    role_permission_step,
    skipped,
    tenant_step,
    user_step,
)
from app.auth.models import ApiKey
from app.auth.permissions import PLATFORM_ONLY, Permission, Role
from app.auth.principals import Principal, principal_of_key, principal_of_user
from app.auth.tokens import Claims
from app.core.clock import rfc3339
from app.domains.models import JoinRequest
from app.invitations.models import API, Invitation
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User

ADD_SUPERADMIN = "Add the subject as a platform superadmin: flask platform-admins add."
MEMBER_STEPS = (StepName.TENANT, StepName.USER, StepName.MEMBERSHIP, StepName.ROLE)


@dataclass(frozen=True)
class Member:
    """A user token, and the rows that exist for it.

    ``join_request`` is that of a domain that has let the user in, and ``invitation`` the last one
    that the user has accepted. ``sso_domain`` is the verified domain of the user's address if it has
    ``enforce_sso``. ``is_superadmin`` is None where the caller may not know it. ``assigned`` are the
    roles that assignments of the member and of groups give.
    """

    claims: Claims
    tenant: Tenant | None
    user: User | None
    membership: Membership | None
    join_request: JoinRequest | None
    invitation: Invitation | None
    sso_domain: str | None
    is_superadmin: bool | None
    assigned: Sequence[Assigned]

    @property
    def is_platform(self) -> bool:
        return bool(self.is_superadmin)

    def principal(self) -> Principal:
        """The principal of a request; raises NoMembership."""
        tenant, user, membership = self.tenant, self.user, self.membership
        is_member = user and user.is_active and membership and membership.is_active
        found = SimpleNamespace(  # what ``authenticate_user`` would return
            is_superadmin=self.is_platform,
            tenant_id=tenant.id if tenant else None,
            tenant_is_active=tenant.is_active if tenant else None,
            user_id=user.id if user and is_member else None,
            **columns_of(self.assigned, membership.role if membership and is_member else None),
        )
        return principal_of_user(found, self.claims)

    def steps(self, permission: Permission) -> list[Step]:
        """The steps in their order; those of a member do not matter for a superadmin."""
        steps = [
            self._credential_step(),
            self._tenant_step(),
            self._user_step(),
            self._membership_step(),
            self._role_step(),
            self._permission_step(permission),
            self._platform_step(permission),
        ]
        if not self.is_superadmin:
            return steps
        return [
            step._replace(outcome=Outcome.SKIPPED, change="") if step.step in MEMBER_STEPS else step
            for step in steps
        ]

    def _credential_step(self) -> Step:
        org_id = self.claims.org_id
        place = "no organization" if org_id is None else f"the organization {org_id}"
        found = f"A valid token has the subject {self.claims.subject} and {place}."
        return passed(StepName.CREDENTIAL, found)

    def _tenant_step(self) -> Step:
        if self.tenant is not None:
            return tenant_step(self.tenant.id, self.tenant.slug, self.tenant.is_active)
        if self.claims.org_id is None:
            found, change = "The token names no organization.", "Use a token of an organization."
        else:
            found = "No tenant has this organization."
            change = "Create the tenant with this idp_org_id, or correct that of the tenant."
        return failed(StepName.TENANT, found, change)

    def _user_step(self) -> Step:
        user = self.user
        if self.tenant is None:
            return skipped(StepName.USER, "Without a tenant there is no user.")
        if user is None:
            found = "The tenant has no user with this subject as idp_user_id."
            return failed(StepName.USER, found, "Create the user in this tenant.")
        must = f" People of {self.sso_domain} must use single sign-on (enforce_sso)."
        return user_step(user.id, user.email, user.is_active, must if self.sso_domain else "")

    def _membership_step(self) -> Step:
        if self.user is None:
            return skipped(StepName.MEMBERSHIP, "Without a user there is no membership.")
        if self.membership is None:
            return membership_step(None, is_active=False)
        return membership_step(self.membership.id, self.membership.is_active, self._origin)

    @property
    def _origin(self) -> str:
        """How the person became a member, as sentences; empty if nothing is recorded."""
        found = ""
        if self.join_request is not None:
            found += f" The user was let in by the domain {self.join_request.domain}."
        if (one := self.invitation) is not None:
            sender = one.created_by_user_id if one.source == API else one.source
            found += f" The user was let in by the invitation {one.id} of {sender}."
        return found

    def _role_step(self) -> Step:
        if self.membership is None:
            return skipped(StepName.ROLE, "Without a membership there is no role.")
        found = f"The membership has the role {self.membership.role}."
        return passed(StepName.ROLE, found + named_roles(self.assigned))

    def _permission_step(self, permission: Permission) -> Step:
        if self.is_superadmin:
            return passed(StepName.PERMISSION, "A platform superadmin has all permissions.")
        if self.membership is None:
            return skipped(StepName.PERMISSION, "Without a role there are no permissions.")
        return role_permission_step(Role(self.membership.role), self.assigned, permission)

    def _platform_step(self, permission: Permission) -> Step:
        if self.is_superadmin:
            return passed(StepName.PLATFORM, "The subject is a platform superadmin.")
        if self.is_superadmin is None:
            found = "A tenant's credential cannot see who is a platform superadmin."
            return platform_step(permission, found, "Ask the platform's operator.")
        found = "The subject is not a platform superadmin."
        return platform_step(permission, found, ADD_SUPERADMIN)


@dataclass(frozen=True)
class Key:
    """An API key; a platform key has no tenant."""

    row: ApiKey
    tenant: Tenant | None
    is_expired: bool
    assigned: Sequence[Assigned]

    @property
    def is_platform(self) -> bool:
        return self.tenant is None

    def principal(self) -> Principal:
        """The principal of a request; raises Unauthenticated."""
        is_usable = self.row.revoked_at is None and not self.is_expired
        return principal_of_key(self._found if is_usable else None)

    def steps(self, permission: Permission) -> list[Step]:
        if self.tenant is None:
            tenant = skipped(StepName.TENANT, "A platform key belongs to no tenant.")
            platform = passed(StepName.PLATFORM, "The key is a platform key.")
        else:
            tenant = tenant_step(self.tenant.id, self.tenant.slug, self.tenant.is_active)
            found, change = "The key is a tenant's.", "Use an API key without a tenant."
            platform = platform_step(permission, found, change)
        role = "Where roles are compared, an API key without platform:superadmin counts as admin."
        return [
            self._credential_step(),
            tenant,
            skipped(StepName.USER, "An API key has no user."),
            skipped(StepName.MEMBERSHIP, "An API key has no membership."),
            skipped(StepName.ROLE, role + named_roles(self.assigned)),
            self._permission_step(permission),
            platform,
        ]

    @property
    def _found(self) -> SimpleNamespace:
        """The row that ``authenticate_key`` would return for a key that can be used."""
        is_active = self.tenant.is_active if self.tenant else None
        row = self.row._asdict() | columns_of(self.assigned)
        return SimpleNamespace(**row, key_id=self.row.id, tenant_is_active=is_active)

    def _credential_step(self) -> Step:
        named = f"The API key {self.row.name} ({self.row.prefix}…)"
        if self.row.revoked_at is not None:
            found = f"{named} was revoked at {rfc3339(self.row.revoked_at)}."
        elif self.is_expired and self.row.expires_at is not None:
            found = f"{named} expired at {rfc3339(self.row.expires_at)}."
        else:
            return passed(StepName.CREDENTIAL, f"{named} can be used.", self.row.id)
        return failed(StepName.CREDENTIAL, found, "Create another API key.", self.row.id)

    def _permission_step(self, permission: Permission) -> Step:
        if (step := assigned_permission_step(self.assigned, permission)) is not None:
            return step
        if principal_of_key(self._found).has(permission):
            return passed(StepName.PERMISSION, f"The key has the permission {permission}.")
        found = f"The key does not have the permission {permission}."
        if permission in PLATFORM_ONLY and not self.is_platform:
            return failed(StepName.PERMISSION, found, "No tenant's key can have it.")
        return failed(StepName.PERMISSION, found, "Create an API key that has it.")
