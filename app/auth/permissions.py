"""Permissions, roles, and the permissions of each role."""

from __future__ import annotations

from enum import StrEnum


class Permission(StrEnum):
    """The permissions: to read or write a kind of resource, or platform superadmin."""

    TENANTS_READ = "tenants:read"
    TENANTS_WRITE = "tenants:write"
    USERS_READ = "users:read"
    USERS_WRITE = "users:write"
    MEMBERSHIPS_READ = "memberships:read"
    MEMBERSHIPS_WRITE = "memberships:write"
    BILLING_READ = "billing:read"
    BILLING_WRITE = "billing:write"
    FLAGS_READ = "flags:read"
    FLAGS_WRITE = "flags:write"
    CUSTOM_FIELDS_READ = "custom_fields:read"
    CUSTOM_FIELDS_WRITE = "custom_fields:write"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"
    AUDIT_READ = "audit:read"
    AUDIT_WRITE = "audit:write"
    API_KEYS_READ = "api_keys:read"
    API_KEYS_WRITE = "api_keys:write"
    SCIM_READ = "scim:read"
    SCIM_WRITE = "scim:write"
    DOMAINS_READ = "domains:read"
    DOMAINS_WRITE = "domains:write"
    SSO_READ = "sso:read"
    USAGE_READ = "usage:read"
    USAGE_WRITE = "usage:write"
    EVENTS_READ = "events:read"
    EVENTS_WRITE = "events:write"
    ROLES_READ = "roles:read"
    ROLES_WRITE = "roles:write"
    ACCESS_READ = "access:read"
    LOG_STREAMS_READ = "log_streams:read"
    LOG_STREAMS_WRITE = "log_streams:write"
    SUPERADMIN = "platform:superadmin"


class Role(StrEnum):
    """The roles of a membership, from the highest to the lowest."""

    OWNER = "owner"
    ADMIN = "admin"
    BILLING = "billing"
    MEMBER = "member"
    VIEWER = "viewer"

    @property
    def rank(self) -> int:
        """4 for the highest role, owner, to 0 for viewer."""
        return len(Role) - 1 - list(Role).index(self)


ALL = frozenset(Permission)
# Only platform credentials can have these: the webhook inbox belongs to no tenant.
PLATFORM_ONLY = frozenset(
    {Permission.WEBHOOKS_READ, Permission.WEBHOOKS_WRITE, Permission.SUPERADMIN}
)
TENANT = ALL - PLATFORM_ONLY
# Only a platform credential can give these to a tenant's API key. No role has them.
GRANTED_BY_PLATFORM = frozenset({Permission.USAGE_WRITE})
# The permissions of this service that a role can have.
ASSIGNABLE = TENANT - GRANTED_BY_PLATFORM

_READER = frozenset(
    {
        Permission.TENANTS_READ,
        Permission.USERS_READ,
        Permission.MEMBERSHIPS_READ,
        Permission.CUSTOM_FIELDS_READ,
        Permission.FLAGS_READ,
        Permission.USAGE_READ,
    }
)
# The templates of these roles have the same permissions: a change here needs a migration that updates
# the rows of `roles` without a tenant, as migration 0043 made them.
ROLE_PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.OWNER: ASSIGNABLE,
    Role.ADMIN: ASSIGNABLE,
    Role.BILLING: _READER - {Permission.CUSTOM_FIELDS_READ}
    | {Permission.BILLING_READ, Permission.BILLING_WRITE},
    Role.MEMBER: _READER,
    Role.VIEWER: _READER,
}
