"""The navigation: what the person may see, in one order everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flask import g, request, url_for

from app.auth.permissions import Permission
from app.console import api


@dataclass(frozen=True)
class Link:
    """One entry of a menu."""

    label: str
    url: str
    is_current: bool
    count: int | None = None  # of what the page lists


Pages = tuple[tuple[str, str, Permission], ...]  # endpoint, label, permission
# They are the platform's pages, and show rows of every tenant.
PLATFORM = (
    ("search", "Home", Permission.TENANTS_READ),
    ("list_tenants", "Tenants", Permission.SUPERADMIN),
    ("list_users", "Users", Permission.USERS_READ),
    ("list_subscriptions", "Subscriptions", Permission.BILLING_READ),
    ("list_plans", "Plans", Permission.FLAGS_READ),
    ("show_billing", "Billing", Permission.SUPERADMIN),
    ("list_roles", "Roles", Permission.SUPERADMIN),
    ("list_webhooks", "Webhooks in", Permission.WEBHOOKS_READ),
    ("list_endpoints", "Events out", Permission.EVENTS_READ),
    ("list_log_streams", "Log streams", Permission.LOG_STREAMS_READ),
    ("list_suppressions", "Suppressions", Permission.WEBHOOKS_READ),
    ("list_imports", "Imports", Permission.SUPERADMIN),
    ("list_api_keys", "API keys", Permission.API_KEYS_READ),
    ("list_audit", "Audit", Permission.AUDIT_READ),
    ("show_operations", "Operations", Permission.SUPERADMIN),
)
# The pages of one tenant.
TENANT = (
    ("show_tenant", "Overview", Permission.TENANTS_READ),
    ("list_members", "Members", Permission.MEMBERSHIPS_READ),
    ("list_users", "Users", Permission.USERS_READ),
    ("list_roles", "Roles", Permission.ROLES_READ),
    ("list_flags", "Flags and limits", Permission.FLAGS_READ),
    ("list_subscriptions", "Subscriptions", Permission.BILLING_READ),
    ("list_fields", "Custom fields", Permission.CUSTOM_FIELDS_READ),
    ("list_api_keys", "API keys", Permission.API_KEYS_READ),
    ("list_endpoints", "Events out", Permission.EVENTS_READ),
    ("list_log_streams", "Log streams", Permission.LOG_STREAMS_READ),
    ("list_domains", "Sign-in", Permission.DOMAINS_READ),
    ("list_connections", "SCIM", Permission.SCIM_READ),
    ("list_audit", "Audit", Permission.AUDIT_READ),
)
# A page of a tenant -> the number that its tab shows, of the tenant's counts.
COUNTS = {
    "list_members": "active_members",
    "list_users": "active_users",
    "list_subscriptions": "open_subscriptions",
    "list_flags": "overrides",
    "list_fields": "custom_fields",
    "list_api_keys": "api_keys",
    "list_endpoints": "webhook_endpoints",
}
# Actions that the palette offers in addition to rows: endpoint (and the page it is for), label,
# permission.
PLATFORM_ACTIONS = (
    ("create_tenant", "New tenant", Permission.SUPERADMIN),
    ("choose_tenant_for/grant_flag", "Grant a flag to …", Permission.SUPERADMIN),
    ("choose_tenant_for/assign_plan", "Assign a plan to …", Permission.SUPERADMIN),
    ("choose_tenant_for/create_member", "Add a member to …", Permission.SUPERADMIN),
    ("create_plan", "New plan", Permission.SUPERADMIN),
    ("create_import", "New import", Permission.SUPERADMIN),
    ("create_api_key", "New platform API key", Permission.SUPERADMIN),
    ("create_endpoint", "New platform endpoint", Permission.SUPERADMIN),
    ("replay_failed_webhooks", "Replay the failed events", Permission.WEBHOOKS_WRITE),
)
TENANT_ACTIONS = (
    ("grant_flag", "Grant a flag", Permission.SUPERADMIN),
    ("assign_plan", "Assign a plan", Permission.SUPERADMIN),
    ("edit_tenant", "Edit the tenant", Permission.TENANTS_WRITE),
    ("create_user", "New user", Permission.USERS_WRITE),
    ("create_member", "Add a member", Permission.MEMBERSHIPS_WRITE),
    ("create_invitation", "Invite a person", Permission.MEMBERSHIPS_WRITE),
    ("create_role", "New role", Permission.ROLES_WRITE),
    ("assign_role", "Assign a role", Permission.ROLES_WRITE),
    ("create_api_key", "New API key", Permission.API_KEYS_WRITE),
    ("create_endpoint", "New endpoint", Permission.EVENTS_WRITE),
    ("create_field", "New custom field", Permission.CUSTOM_FIELDS_WRITE),
    ("create_connection", "New SCIM connection", Permission.SCIM_WRITE),
    ("create_domain", "Add a domain", Permission.DOMAINS_WRITE),
    ("create_setup_link", "New setup link", Permission.TENANTS_WRITE),
    ("suspend_tenant", "Suspend the tenant", Permission.SUPERADMIN),
)


def navigation() -> list[Link]:
    """The menu beside the page: the platform's pages, or those of the person's tenant."""
    principal = g.session.principal
    if principal is None:
        return []
    return _links(PLATFORM) if principal.is_platform else tenant_tabs(principal.tenant_id)


def tenant_tabs(tenant_id: object) -> list[Link]:
    """The pages of a tenant, with how much each has."""
    counts = api.get_once(f"/v1/tenants/{tenant_id}/counts").data
    return _links(TENANT, {name: counts[count] for name, count in COUNTS.items()}, tenant_id)


def actions() -> list[Link]:
    """The actions that the person may perform: on the current tenant, then on the platform."""
    tenant_id = (request.view_args or {}).get("tenant_id") or g.session.tenant_id
    offered = [(tenant_id, *each) for each in TENANT_ACTIONS if tenant_id]
    offered += [(None, *each) for each in PLATFORM_ACTIONS if g.session.is_platform]
    found = []
    for of, name, label, permission in offered:
        endpoint, _, purpose = name.partition("/")
        if g.session.can(permission):
            url = url_for(f"console.{endpoint}", tenant_id=of, purpose=purpose or None)
            found.append(Link(label, url, is_current=of is not None))
    return found


def _links(
    pages: Pages, counts: Mapping[str, int | None] | None = None, tenant_id: object = None
) -> list[Link]:
    """The pages that the person may see. The current page has the longest part of the address."""
    urls = {
        name: url_for(f"console.{name}", tenant_id=tenant_id)
        for name, _, permission in pages
        if g.session.can(permission)
    }
    above = [url for url in urls.values() if f"{request.path}/".startswith(f"{url}/")]
    current, counts = max(above, key=len, default=""), counts or {}
    return [
        Link(label, urls[name], urls[name] == current, counts.get(name))
        for name, label, _ in pages
        if name in urls
    ]
