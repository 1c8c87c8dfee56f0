"""Counts of a tenant's rows, by one statement that reads at most :data:`MOST` rows of a kind."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.auth.permissions import Permission, Role
from app.core.db.queries import visible_id
from app.core.db.statements import Statement

MOST = 10_000
NEEDED = {
    "active_users": Permission.USERS_READ,
    "inactive_users": Permission.USERS_READ,
    "active_members": Permission.MEMBERSHIPS_READ,
    "ended_members": Permission.MEMBERSHIPS_READ,
    "members_by_role": Permission.MEMBERSHIPS_READ,
    "open_subscriptions": Permission.BILLING_READ,
    "overrides": Permission.FLAGS_READ,
    "custom_fields": Permission.CUSTOM_FIELDS_READ,
    "api_keys": Permission.API_KEYS_READ,
    "webhook_endpoints": Permission.EVENTS_READ,
    "open_deliveries": Permission.EVENTS_READ,
}
"""A number -> the permission to read what it counts."""

COUNT = Statement(
    "tenants.count",
    "SELECT t.id AS tenant_id, u.*, m.*, r.*,"
    " (SELECT count(*) FILTER (WHERE status_class <> 'ended') FROM (SELECT status_class"
    "   FROM subscriptions WHERE tenant_id = t.id LIMIT :most) s) AS open_subscriptions,"
    " (SELECT count(*) FROM (SELECT FROM feature_overrides"
    "   WHERE tenant_id = t.id LIMIT :most) o) AS overrides,"
    " (SELECT count(*) FILTER (WHERE is_active) FROM (SELECT is_active FROM custom_fields"
    "   WHERE tenant_id = t.id LIMIT :most) f) AS custom_fields,"
    " (SELECT count(*) FILTER (WHERE revoked_at IS NULL) FROM (SELECT revoked_at"
    "   FROM api_keys WHERE tenant_id = t.id LIMIT :most) k) AS api_keys,"
    " (SELECT count(*) FROM webhook_endpoints WHERE tenant_id = t.id) AS webhook_endpoints,"
    " (SELECT count(*) FROM (SELECT FROM webhook_deliveries WHERE tenant_id = t.id"
    "   AND next_attempt_at IS NOT NULL LIMIT :most) d) AS open_deliveries"
    " FROM tenants t"
    " CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE is_active) AS active_users,"
    "   count(*) FILTER (WHERE NOT is_active) AS inactive_users"
    "   FROM (SELECT is_active FROM users WHERE tenant_id = t.id LIMIT :most) read) u"
    " CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE is_active) AS active_members,"
    "   count(*) FILTER (WHERE NOT is_active) AS ended_members"
    "   FROM (SELECT is_active FROM memberships WHERE tenant_id = t.id LIMIT :most) read) m"
    " CROSS JOIN LATERAL (SELECT json_object_agg(role, members) AS members_by_role"
    "   FROM (SELECT role, count(*) AS members FROM (SELECT is_active, role FROM memberships"
    "     WHERE tenant_id = t.id LIMIT :most) read WHERE is_active GROUP BY role) each) r"
    " WHERE t.id = :tenant_id",
)


def get_counts(tenant_id: UUID | str) -> Any:
    """The row of numbers of :data:`COUNT`; raises NotFound."""
    found = COUNT.get("tenant", tenant_id=visible_id(tenant_id), most=MOST)
    members = found.members_by_role or {}
    return found._replace(members_by_role={role.value: members.get(role, 0) for role in Role})
